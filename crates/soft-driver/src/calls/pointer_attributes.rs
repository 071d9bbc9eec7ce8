//! Pointer attributes: the allocation that an address is in.

use core::ffi::{c_uint, c_void};

use crate::abi::*;
use crate::arg::{Memory, Ptr};
use crate::model::call_frame::CallFrame;
use crate::model::machine::State;

/// A value of an attribute, at its width.
enum Value {
    Word(u32),
    Wide(u64),
}

/// The attribute of an address. `None` for an attribute that there is no such thing as; for an
/// address that is nobody's there are values too, those of ordinary memory.
fn value(state: &State, attribute: u32, address: u64) -> Option<Value> {
    let known = state.memory.describe(address);
    let host = known.as_ref().is_some_and(|known| known.host);
    let wide = |value: Option<u64>| Some(Value::Wide(value.unwrap_or(0)));
    match attribute {
        // The context, the kind of memory, the address for the device and for the host.
        1 => wide(known.map(|known| state.contexts.handle(known.context))),
        2 => Some(Value::Word(known.map_or(0, |known| if known.host { 1 } else { 2 }))),
        3 => wide(known.map(|_| address)),
        4 => wide(known.filter(|known| known.host || known.managed).map(|_| address)),
        // Synchronous operations, the allocation's number, managed memory, the device.
        6 => Some(Value::Word(0)),
        7 => wide(known.map(|known| known.base)),
        8 => Some(Value::Word(u32::from(known.is_some_and(|known| known.managed)))),
        9 => Some(Value::Word(
            known.map_or(-2_i32 as u32, |known| state.contexts[known.context].device as u32),
        )),
        // Whether a legacy handle can be made, where the allocation begins and how long it is,
        // whether it is mapped, the pool.
        10 => Some(Value::Word(u32::from(known.is_some() && !host))),
        11 => wide(known.map(|known| known.base)),
        12 => wide(known.map(|known| known.bytes)),
        17 => wide(known.and_then(|known| known.pool).map(|pool| state.pools.handle(pool))),
        13 => Some(Value::Word(u32::from(known.is_some()))),
        _ => None,
    }
}

fn put(place: *mut c_void, value: Value) {
    // SAFETY: by the contract of the C call the place is as wide as the attribute it is for.
    unsafe {
        match value {
            Value::Word(word) => place.cast::<u32>().write_unaligned(word),
            Value::Wide(word) => place.cast::<u64>().write_unaligned(word),
        }
    }
}

pub(crate) fn pointer_get_attribute(
    call: &CallFrame,
    place: Memory,
    attribute: c_uint,
    address: CUdeviceptr,
) -> Answer {
    let state = call.ready()?;
    place.required()?;
    let value = value(&state, attribute, address).ok_or(INVALID_VALUE)?;
    if state.memory.describe(address).is_none() {
        return Err(INVALID_VALUE);
    }
    put(place.raw(), value);
    Ok(())
}

pub(crate) fn pointer_get_attributes(
    call: &CallFrame,
    count: c_uint,
    attributes: Ptr<c_uint>,
    places: Ptr<*mut c_void>,
    address: CUdeviceptr,
) -> Answer {
    let state = call.ready()?;
    let attributes = attributes.read_array(count as usize)?;
    let places = places.read_array(count as usize)?;
    for (attribute, place) in attributes.into_iter().zip(places) {
        let value = value(&state, attribute, address).ok_or(INVALID_VALUE)?;
        if place.is_null() {
            return Err(INVALID_VALUE);
        }
        put(place, value);
    }
    Ok(())
}
