//! For PyTorch's expandable segments: addresses that are reserved, memory without an address, and
//! maps of the second at the first. Of a device's own memory, on Linux.

use core::ffi::{c_uint, c_ulonglong};

use crate::abi::*;
use crate::arg::{In, Memory, Ptr};
use crate::device;
use crate::machine::State;
use crate::machine::call_frame::CallFrame;
use crate::machine::handles::{self, Bad};
use crate::memory::Kind;
use crate::memory::reserved::GRANULARITY;

exports! { $ [allocation::virtual_memory]
    cuMemAddressReserve => mem_address_reserve;
    cuMemAddressFree => mem_address_free;
    cuMemCreate => mem_create;
    cuMemRelease => mem_release;
    cuMemMap => mem_map;
    cuMemUnmap => mem_unmap;
    cuMemSetAccess => mem_set_access;
    cuMemGetAccess => mem_get_access;
    cuMemGetAllocationGranularity => mem_get_allocation_granularity;
    cuMemGetAllocationPropertiesFromHandle => mem_get_allocation_properties_from_handle;
    cuMemRetainAllocationHandle => mem_retain_allocation_handle;
}

/// Whether a size or an address is one that memory can have.
fn is_even(number: u64) -> bool {
    number != 0 && number.is_multiple_of(GRANULARITY)
}

/// The memory of a handle that the program has not released.
fn find_physical(state: &State, call: &CallFrame, handle: u64) -> Result<u32, CUresult> {
    let found = state.memory.reserved.memory.find(handle);
    match found.and_then(|index| match state.memory.reserved.memory[index].handles {
        0 => Err(Bad::Stale),
        _ => Ok(index),
    }) {
        Ok(index) => Ok(index),
        // Measured: both are an invalid value; anything else is dereferenced.
        Err(_) if handle == 0 => Err(INVALID_VALUE),
        Err(Bad::Stale) => Err(INVALID_VALUE),
        Err(bad) => Err(state.misuses.bad_handle(call, handles::Kind::Memory, handle, bad)),
    }
}

/// Memory that nothing refers to any more is the device's again.
fn settle_physical(state: &mut State, memory: u32) {
    if let Some((device, bytes)) = state.memory.reserved.settle(memory) {
        state.memory.gave_back(device, bytes);
    }
}

pub(crate) fn mem_get_allocation_granularity(
    call: &CallFrame,
    granularity: Ptr<usize>,
    props: In<CUmemAllocationProp>,
    option: c_uint,
) -> Answer {
    drop(call.ready()?);
    granularity.required()?;
    // Measured on an H200: the values of the properties do not matter.
    props.required()?;
    if option > 1 { Err(INVALID_VALUE) } else { granularity.put(GRANULARITY as usize) }
}

/// Measured: an address that is asked for is no promise.
pub(crate) fn mem_address_reserve(
    call: &CallFrame,
    address: Ptr<CUdeviceptr>,
    bytes: usize,
    alignment: usize,
    wanted: CUdeviceptr,
    flags: c_ulonglong,
) -> Answer {
    let mut state = call.ready()?;
    address.required()?;
    let alignment = alignment as u64;
    let aligned = alignment == 0 || alignment.is_power_of_two();
    if flags != 0 || !is_even(bytes as u64) || !aligned || !wanted.is_multiple_of(GRANULARITY) {
        return Err(INVALID_VALUE);
    }
    address.put(state.memory.reserved.reserve(bytes as u64, alignment.max(GRANULARITY))?)
}

pub(crate) fn mem_address_free(call: &CallFrame, address: CUdeviceptr, bytes: usize) -> Answer {
    let mut state = call.ready()?;
    if state.memory.addresses.overlaps(address, bytes) {
        return Err(INVALID_VALUE);
    }
    state.memory.reserved.give_back(address, bytes as u64)
}

pub(crate) fn mem_create(
    call: &CallFrame,
    handle: Ptr<c_ulonglong>,
    bytes: usize,
    props: In<CUmemAllocationProp>,
    flags: c_ulonglong,
) -> Answer {
    let mut state = call.ready()?;
    handle.required()?;
    let (props, bytes) = (props.get()?, bytes as u64);
    if flags != 0
        || !is_even(bytes)
        || props.type_ != CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED
    {
        return Err(INVALID_VALUE);
    }
    let device = match props.location.type_ {
        CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE => device::check(&state, props.location.id)?,
        // The locations 2 to 4 are memory of the host.
        CUmemLocationType(2..=4) => return Err(NOT_SUPPORTED),
        _ => return Err(INVALID_VALUE),
    };
    let limit = state.config.devices.memory;
    state.memory.take(device, limit, bytes)?;
    match state.memory.reserved.create(call.number, bytes, props, device) {
        Ok(new) => handle.put(new),
        Err(code) => {
            state.memory.gave_back(device, bytes);
            Err(code)
        }
    }
}

/// The memory lasts as long as it is mapped.
pub(crate) fn mem_release(call: &CallFrame, handle: c_ulonglong) -> Answer {
    let mut state = call.ready()?;
    let memory = find_physical(&state, call, handle)?;
    state.memory.reserved.memory[memory].handles -= 1;
    settle_physical(&mut state, memory);
    Ok(())
}

pub(crate) fn mem_get_allocation_properties_from_handle(
    call: &CallFrame,
    props: Ptr<CUmemAllocationProp>,
    handle: c_ulonglong,
) -> Answer {
    let state = call.ready()?;
    props.required()?;
    let memory = find_physical(&state, call, handle)?;
    props.put(state.memory.reserved.memory[memory].props())
}

/// The handle of what is mapped at an address, to be released once more.
pub(crate) fn mem_retain_allocation_handle(
    call: &CallFrame,
    handle: Ptr<c_ulonglong>,
    address: Memory,
) -> Answer {
    let mut state = call.ready()?;
    handle.required()?;
    let mapped =
        state.memory.addresses.around(address.addr()).map(|(_, allocation)| allocation.kind);
    let Some(Kind::Mapped(memory, _)) = mapped else { return Err(INVALID_VALUE) };
    state.memory.reserved.memory[memory].handles += 1;
    handle.put(state.memory.reserved.memory.handle(memory))
}

/// Documented: the whole memory, at addresses that are reserved and where nothing is mapped.
pub(crate) fn mem_map(
    call: &CallFrame,
    address: CUdeviceptr,
    bytes: usize,
    offset: usize,
    handle: c_ulonglong,
    flags: c_ulonglong,
) -> Answer {
    let mut state = call.ready()?;
    if flags != 0 || offset != 0 || !is_even(bytes as u64) || !address.is_multiple_of(GRANULARITY) {
        return Err(INVALID_VALUE);
    }
    let region = state.memory.reserved.around(address, bytes as u64);
    let region = region.cloned().ok_or(INVALID_VALUE)?;
    let memory = find_physical(&state, call, handle)?;
    let physical = &state.memory.reserved.memory[memory];
    let device = physical.device;
    if physical.bytes != bytes as u64 || state.memory.addresses.overlaps(address, bytes) {
        return Err(INVALID_VALUE);
    }
    state.memory.reserved.map(memory, address)?;
    let State { memory: all, feed, .. } = &mut *state;
    all.add_mapping(feed.as_deref_mut(), address, region, (bytes, device), memory);
    Ok(())
}

/// Whole mappings, one after the other. Measured: the call waits for nothing, and no work either.
pub(crate) fn mem_unmap(call: &CallFrame, address: CUdeviceptr, bytes: usize) -> Answer {
    let mut state = call.ready()?;
    for (at, memory) in state.memory.mappings_within(address, bytes)? {
        let State { memory: all, feed, .. } = &mut *state;
        all.remove_mapping(feed.as_deref_mut(), at);
        all.reserved.unmap(memory, at);
        settle_physical(&mut state, memory);
    }
    Ok(())
}

fn access_device(state: &State, location: CUmemLocation) -> Result<usize, CUresult> {
    match location.type_ {
        CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE => {
            device::check(state, location.id).map_err(|_| INVALID_VALUE)
        }
        _ => Err(INVALID_VALUE),
    }
}

pub(crate) fn mem_set_access(
    call: &CallFrame,
    address: CUdeviceptr,
    bytes: usize,
    accesses: In<CUmemAccessDesc>,
    count: usize,
) -> Answer {
    let mut state = call.ready()?;
    accesses.required()?;
    let accesses = accesses.read_array(count)?;
    if accesses.is_empty() {
        return Err(INVALID_VALUE);
    }
    let mappings = state.memory.addresses.mappings(address, bytes)?;
    let mut set = Vec::new();
    for access in accesses {
        if !matches!(
            access.flags,
            0 | CU_MEM_ACCESS_FLAGS_PROT_READ | CU_MEM_ACCESS_FLAGS_PROT_READWRITE
        ) {
            return Err(INVALID_VALUE);
        }
        set.push((access_device(&state, access.location)?, access.flags as u8));
    }
    for (at, _) in mappings {
        set.iter()
            .for_each(|(device, flags)| state.memory.addresses.set_access(at, *device, *flags));
    }
    Ok(())
}

pub(crate) fn mem_get_access(
    call: &CallFrame,
    flags: Ptr<c_ulonglong>,
    location: In<CUmemLocation>,
    address: CUdeviceptr,
) -> Answer {
    let state = call.ready()?;
    flags.required()?;
    let device = access_device(&state, location.get()?)?;
    match state.memory.addresses.around(address).map(|(_, allocation)| allocation.kind) {
        Some(Kind::Mapped(_, access)) => flags.put(u64::from(access[device])),
        // Measured: of other memory nothing is said.
        Some(_) => flags.put(0),
        None => Err(INVALID_VALUE),
    }
}
