//! For FFmpeg (pitched memory), cudarc (managed memory), cuda.core (host memory) and numba-cuda
//! (managed memory, questions about addresses): allocations that `cuda-events` does not bind.

use core::ffi::{c_uint, c_void};

use crate::abi::*;
use crate::allocation;
use crate::allocation::{allocate, mem_host_alloc};
use crate::arg::{Array, Memory, Ptr};
use crate::context::all_streams::after_work_of;
use crate::machine::State;
use crate::machine::call_frame::CallFrame;
use crate::memory::Kind;
use crate::memory::addresses::{AddressInfo, Allocation};

exports! { $ [allocation::host]
    cuMemAllocPitch_v2 => mem_alloc_pitch;
    cuMemAllocManaged => mem_alloc_managed;
    cuMemAllocHost_v2 => mem_alloc_host;
    cuMemHostGetFlags => mem_host_get_flags;
    cuMemHostUnregister => mem_host_unregister;
    cuPointerGetAttribute => pointer_get_attribute;
    cuPointerGetAttributes => pointer_get_attributes;
    cuMemGetAddressRange_v2 => mem_get_address_range;
}

/// What the device can use well: each row begins where a texture could.
const PITCH: usize = 512;

pub(crate) fn mem_alloc_pitch(
    call: &CallFrame,
    address: Ptr<CUdeviceptr>,
    pitch: Ptr<usize>,
    width: usize,
    height: usize,
    element: c_uint,
) -> Answer {
    let state = call.ready()?;
    pitch.required()?;
    if width == 0 || height == 0 || !matches!(element, 4 | 8 | 16) {
        return Err(INVALID_VALUE);
    }
    let row = width.checked_next_multiple_of(PITCH).ok_or(OUT_OF_MEMORY)?;
    allocate(call, state, address, row.checked_mul(height).ok_or(OUT_OF_MEMORY)?)?;
    pitch.put(row)
}

/// Memory that the device and the host use alike, whichever streams may (`CU_MEM_ATTACH_GLOBAL`) or
/// none at first (`CU_MEM_ATTACH_HOST`): in software they all can.
pub(crate) fn mem_alloc_managed(
    call: &CallFrame,
    address: Ptr<CUdeviceptr>,
    bytes: usize,
    flags: c_uint,
) -> Answer {
    let mut state = call.ready()?;
    address.required()?;
    if !matches!(flags, 1 | 2) {
        return Err(INVALID_VALUE);
    }
    let context = state.current(call)?;
    state.captures.refuse_unsafe()?;
    let base = allocation::allocate_in(&mut state, context, bytes, Kind::Managed)?;
    address.put(base)
}

pub(crate) fn mem_alloc_host(call: &CallFrame, memory: Ptr<*mut c_void>, bytes: usize) -> Answer {
    mem_host_alloc(call, memory, bytes, 0)
}

pub(crate) fn mem_host_get_flags(call: &CallFrame, flags: Ptr<c_uint>, memory: Memory) -> Answer {
    let state = call.ready()?;
    flags.required()?;
    state.current(call)?;
    match state.memory.addresses.around(memory.addr()) {
        Some((_, Allocation { kind: Kind::Host(kept) | Kind::Registered(kept), .. })) => {
            // CU_MEMHOSTALLOC_DEVICEMAP: all of it is.
            flags.put(*kept | 2)
        }
        _ => Err(INVALID_VALUE),
    }
}

pub(crate) fn mem_host_unregister(call: &CallFrame, memory: Memory) -> Answer {
    const NOT_REGISTERED: CUresult = CUresult::CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    let mut state = call.ready()?;
    memory.required()?;
    state.captures.refuse_unsafe()?;
    let (device, region) = match state.memory.addresses.starting_at(memory.addr()) {
        Some(Allocation { kind: Kind::Registered(_), device, region, .. }) => {
            (*device, region.clone())
        }
        _ => return Err(NOT_REGISTERED),
    };
    let mut state = after_work_of(call, state, device)?;
    let State { memory, feed, .. } = &mut *state;
    if !memory.unregister(feed.as_deref_mut(), &region) {
        return Err(NOT_REGISTERED);
    }
    state.running().fail_users_of_lost_memory();
    Ok(())
}

pub(crate) fn mem_get_address_range(
    call: &CallFrame,
    base: Ptr<CUdeviceptr>,
    size: Ptr<usize>,
    address: CUdeviceptr,
) -> Answer {
    let state = call.ready()?;
    state.current(call)?;
    let (found, allocation) = state.memory.addresses.around(address).ok_or(NOT_FOUND)?;
    base.put_if(found);
    size.put_if(allocation.bytes);
    Ok(())
}

/// A value of an attribute, at its width.
enum Value {
    Word(u32),
    Wide(u64),
}

/// The attribute of an address, or `None` if there is no such attribute. An address that the driver
/// does not manage has the values of ordinary memory.
fn value(state: &State, attribute: u32, address: u64) -> Option<Value> {
    let known = state.memory.addresses.describe(address);
    let is_plain = |known: AddressInfo| {
        !known.host && !known.managed && known.pool.is_none() && known.context.is_some()
    };
    let wide = |value: Option<u64>| Some(Value::Wide(value.unwrap_or(0)));
    match attribute {
        // The context, the kind of memory, the address for the device and for the host.
        1 => wide(
            known
                .filter(|known| known.pool.is_none())
                .and_then(|known| known.context)
                .map(|owner| state.contexts.handle(owner)),
        ),
        2 => Some(Value::Word(known.map_or(0, |known| if known.host { 1 } else { 2 }))),
        3 => wide(known.map(|_| address)),
        4 => wide(known.filter(|known| known.host || known.managed).map(|_| address)),
        // Synchronous operations, the allocation's number, managed memory, the device.
        6 => Some(Value::Word(u32::from(known.is_some_and(|known| known.managed)))),
        7 => wide(known.map(|known| known.base)),
        8 => Some(Value::Word(u32::from(known.is_some_and(|known| known.managed)))),
        9 => Some(Value::Word(known.map_or(-2_i32 as u32, |known| known.device as u32))),
        // Whether a legacy handle can be made and another device may reach it directly, where the
        // allocation begins and how long it is, whether it is mapped, the pool.
        10 | 15 => Some(Value::Word(u32::from(known.is_some_and(is_plain)))),
        11 => wide(known.map(|known| known.base)),
        12 => wide(known.map(|known| known.bytes)),
        17 => wide(known.and_then(|known| known.pool).map(|pool| state.memory.pools.handle(pool))),
        13 => Some(Value::Word(u32::from(known.is_some()))),
        // Handles that it could be shared by, what a device may do with it (read and write), how long
        // the mapping is and where it begins.
        // Of maps they are not known.
        14 | 16 if known.as_ref().is_some_and(|known| known.context.is_none()) => None,
        14 => wide(None),
        16 => Some(Value::Word(if known.is_some() { 3 } else { 0 })),
        18 => wide(known.map(|known| known.bytes)),
        19 => wide(known.map(|known| known.base)),
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
    let known = state.memory.addresses.describe(address).ok_or(INVALID_VALUE)?;
    match attribute {
        3 => drop(state.top(call).ok_or(INVALID_CONTEXT)?),
        // The host has no address of it.
        4 if !known.host && !known.managed => return Err(INVALID_VALUE),
        _ => {}
    }
    put(place.raw(), value);
    Ok(())
}

pub(crate) fn pointer_get_attributes(
    call: &CallFrame,
    count: c_uint,
    attributes: Array<c_uint>,
    places: Array<*mut c_void>,
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
