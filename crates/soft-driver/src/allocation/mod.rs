//! Memory of devices and of the host: allocating, freeing, registering.

pub(crate) mod advice;
pub(crate) mod host;
pub(crate) mod pools;
pub(crate) mod virtual_memory;

use core::ffi::{c_uint, c_void};

use crate::abi::*;
use crate::arg::{Memory, Ptr, StreamArg};
use crate::context::all_streams::after_work_of;
use crate::machine::call_frame::CallFrame;
use crate::machine::{Locked, State};
use crate::memory::addresses::Allocation;
use crate::memory::allocations::Owner;
use crate::memory::{Kind, Place, READ_ONLY, Region, can_pin};

exports! { $ [allocation]
    cuMemGetInfo_v2 => mem_get_info;
    cuMemAlloc_v2 => mem_alloc;
    cuStreamAttachMemAsync, cuStreamAttachMemAsync_ptsz => stream_attach_mem_async;
    cuMemFree_v2 => mem_free;
    cuMemHostAlloc => mem_host_alloc;
    cuMemFreeHost => mem_free_host;
    cuMemHostGetDevicePointer_v2 => mem_host_get_device_pointer;
    cuMemHostRegister_v2 => mem_host_register;
}

/// New memory of a context.
pub(crate) fn allocate_in(
    state: &mut State,
    context: u32,
    bytes: usize,
    kind: Kind,
) -> Result<u64, CUresult> {
    let (owner, limit) = (owner(state, context), state.config.devices.memory);
    state.memory.allocate(state.feed.as_deref_mut(), owner, limit, bytes, kind)
}

/// A context as the owner of memory.
pub(crate) fn owner(state: &State, context: u32) -> Owner {
    Owner { context, device: state.contexts[context].device as usize }
}

/// Refuses what would have the device write memory that was registered for reading alone: on a
/// card its context fails.
pub(crate) fn may_write(state: &State, call: &CallFrame, place: &Place) -> Answer {
    if state.memory.addresses.is_mapped_read_only(place) {
        return Err(INVALID_VALUE);
    }
    let address = place.address as u64;
    if !state.memory.addresses.is_read_only(address) {
        return Ok(());
    }
    let what = format!("{address:#x} is written, but was registered as read-only");
    Err(state.misuses.undefined(call, &what, INVALID_VALUE))
}

pub(crate) fn mem_get_info(call: &CallFrame, free: Ptr<usize>, total: Ptr<usize>) -> Answer {
    let state = call.ready()?;
    let context = state.current(call)?;
    let used = state.memory.used(owner(&state, context).device);
    free.put_if(state.config.devices.memory.saturating_sub(used) as usize);
    total.put_if(state.config.devices.memory as usize);
    Ok(())
}

pub(crate) fn mem_alloc(call: &CallFrame, address: Ptr<CUdeviceptr>, bytes: usize) -> Answer {
    allocate(call, call.ready()?, address, bytes)
}

pub(crate) fn allocate(
    call: &CallFrame,
    mut state: Locked,
    address: Ptr<CUdeviceptr>,
    bytes: usize,
) -> Answer {
    address.required()?;
    let context = state.current(call)?;
    state.captures.refuse_unsafe()?;
    let base = allocate_in(&mut state, context, bytes, Kind::Device)?;
    address.put(base)
}

/// No context need be current, but that of the memory must not have failed. One that is gone, as a
/// green context may be, is as good as another.
fn may_free(state: &State, call: &CallFrame, address: u64) -> Answer {
    state.permitted(call)?;
    let known = state.memory.addresses.describe(address);
    let failure = known.and_then(|known| state.engine.contexts.failure(known.context?));
    failure.map_or(Ok(()), Err)
}

pub(crate) fn mem_free(call: &CallFrame, address: CUdeviceptr) -> Answer {
    let mut state = call.ready()?;
    state.captures.refuse_unsafe()?;
    if address == 0 {
        return Ok(());
    }
    may_free(&state, call, address)?;
    let device = state.memory.freed_after_work_of(address);
    if let Some(device) = device {
        state = after_work_of(call, state, device)?;
    }
    let State { memory, feed, .. } = &mut *state;
    memory.free(feed.as_deref_mut(), address, false)
}

pub(crate) fn mem_host_alloc(
    call: &CallFrame,
    memory: Ptr<*mut c_void>,
    bytes: usize,
    flags: c_uint,
) -> Answer {
    let mut state = call.ready()?;
    memory.required()?;
    if flags & !7 != 0 {
        return Err(INVALID_VALUE);
    }
    let context = state.current(call)?;
    state.captures.refuse_unsafe()?;
    let base = allocate_in(&mut state, context, bytes, Kind::Host(flags))?;
    memory.put(core::ptr::with_exposed_provenance_mut(base as usize))
}

pub(crate) fn mem_free_host(call: &CallFrame, memory: Memory) -> Answer {
    let mut state = call.ready()?;
    state.captures.refuse_unsafe()?;
    if memory.is_null() {
        return Ok(());
    }
    may_free(&state, call, memory.addr())?;
    let device = match state.memory.addresses.starting_at(memory.addr()) {
        Some(Allocation { kind: Kind::Registered(_), .. }) => return Err(INVALID_VALUE),
        found => found.filter(|allocation| allocation.kind.is_host()).map(|found| found.device),
    };
    if let Some(device) = device {
        state = after_work_of(call, state, device)?;
    }
    let State { memory: all, feed, .. } = &mut *state;
    all.free(feed.as_deref_mut(), memory.addr(), true)
}

pub(crate) fn mem_host_get_device_pointer(
    call: &CallFrame,
    address: Ptr<CUdeviceptr>,
    memory: Memory,
    flags: c_uint,
) -> Answer {
    let state = call.ready()?;
    address.required()?;
    if flags != 0 {
        return Err(INVALID_VALUE);
    }
    state.current(call)?;
    match state.memory.addresses.around(memory.addr()) {
        Some((_, allocation)) if allocation.kind.is_host() => address.put(memory.addr()),
        _ => Err(INVALID_VALUE),
    }
}

pub(crate) fn mem_host_register(
    call: &CallFrame,
    memory: Memory,
    bytes: usize,
    flags: c_uint,
) -> Answer {
    let mut state = call.ready()?;
    memory.required()?;
    if bytes == 0 || flags & !15 != 0 {
        return Err(INVALID_VALUE);
    }
    // Measured: the registration is of the primary context, also where a green one is current, and
    // outlives that.
    let context = state.current(call)?;
    state.captures.refuse_unsafe()?;
    let context = state.greens.primary_behind(context);
    let base = memory.raw().expose_provenance();
    if state.memory.addresses.overlaps(base as u64, bytes) {
        return Err(CUresult::CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    }
    if !can_pin(base, bytes, flags & READ_ONLY != 0) {
        return Err(INVALID_VALUE);
    }
    let owner = owner(&state, context);
    let region = Region::new(base, bytes, false, None);
    let State { memory, feed, .. } = &mut *state;
    memory.add(feed.as_deref_mut(), owner, region, bytes, Kind::Registered(flags));
    Ok(())
}

/// Documented: the whole of it, to every stream (1), to none (2) or to one that is no default one
/// (4).
pub(crate) fn stream_attach_mem_async(
    call: &CallFrame,
    stream: StreamArg,
    address: CUdeviceptr,
    bytes: usize,
    flags: c_uint,
) -> Answer {
    let mut state = call.ready()?;
    if !matches!(flags, 1 | 2 | 4) || (flags == 4 && stream.addr() <= 2) {
        return Err(INVALID_VALUE);
    }
    let stream = state.stream(call, stream)?;
    let base = state.memory.addresses.managed(address, 1)?;
    let whole = state.memory.addresses.starting_at(base).map_or(0, |allocation| allocation.bytes);
    if base != address || (bytes != 0 && bytes != whole) {
        return Err(INVALID_VALUE);
    }
    let State { captures, streams, .. } = &mut *state;
    captures.refuse_implicit(streams, stream)?;
    if captures.is_capturing(stream) {
        return Err(NOT_SUPPORTED);
    }
    captures.refuse_unsafe()
}
