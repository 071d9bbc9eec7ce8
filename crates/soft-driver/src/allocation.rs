//! Memory of devices and of the host: allocating, freeing, registering.

use core::ffi::{c_uint, c_void};

use crate::abi::*;
use crate::arg::{Memory, Ptr, StreamArg};
use crate::context::Context;
use crate::machine::call_frame::CallFrame;
use crate::machine::{Locked, State};
use crate::memory::allocations::{Allocation, Owner};
use crate::memory::{Kind, Place, READ_ONLY, Region, can_pin};

impl State {
    /// New memory of a context.
    pub(crate) fn allocate(
        &mut self,
        context: u32,
        bytes: usize,
        kind: Kind,
    ) -> Result<u64, CUresult> {
        let (owner, limit) = (self.owner(context), self.config.memory);
        self.memory.allocate(self.feed.as_deref_mut(), owner, limit, bytes, kind)
    }

    /// A context as the owner of memory.
    pub(crate) fn owner(&self, context: u32) -> Owner {
        Owner { context, device: self.contexts[context].device as usize }
    }

    /// Refuses what would have the device write memory that was registered for reading alone: on a
    /// card its context fails.
    pub(crate) fn may_write(&self, call: &CallFrame, place: &Place) -> Answer {
        let address = place.address as u64;
        if !self.memory.is_read_only(address) {
            return Ok(());
        }
        let what = format!("{address:#x} is written, but was registered as read-only");
        Err(self.misuses.undefined(call, &what, INVALID_VALUE))
    }
}

pub(crate) fn mem_get_info(call: &CallFrame, free: Ptr<usize>, total: Ptr<usize>) -> Answer {
    let state = call.ready()?;
    free.required()?;
    total.required()?;
    let context = state.current(call)?;
    let used = state.memory.used(state.owner(context).device);
    free.put(state.config.memory.saturating_sub(used) as usize)?;
    total.put(state.config.memory as usize)
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
    state.captures.refuse_unsafe(call)?;
    let base = state.allocate(context, bytes, Kind::Device)?;
    address.put(base)
}

pub(crate) fn mem_free(call: &CallFrame, address: CUdeviceptr) -> Answer {
    let mut state = call.ready()?;
    if address == 0 {
        return Ok(());
    }
    state.current(call)?;
    state.captures.refuse_unsafe(call)?;
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
    let base = state.allocate(context, bytes, Kind::Host(flags))?;
    memory.put(core::ptr::with_exposed_provenance_mut(base as usize))
}

pub(crate) fn mem_free_host(call: &CallFrame, memory: Memory) -> Answer {
    let mut state = call.ready()?;
    state.current(call)?;
    let device = match state.memory.starting_at(memory.addr()) {
        Some(Allocation { kind: Kind::Registered(_), .. }) => return Err(INVALID_VALUE),
        of => of.filter(|allocation| allocation.kind.is_host()).map(|of| of.device),
    };
    if let Some(device) = device {
        state = after_work_of(call, state, device)?;
    }
    let State { memory: all, feed, .. } = &mut *state;
    all.free(feed.as_deref_mut(), memory.addr(), true)
}

/// What gives memory back waits for the work of its device that was submitted before. Measured: not
/// for that of other devices (but `cuMemFree` for some copies of the memory, which is left out).
pub(crate) fn after_work_of(
    call: &CallFrame,
    mut state: Locked,
    device: usize,
) -> Result<Locked, CUresult> {
    if call.in_host_function() {
        return Ok(state);
    }
    // Green contexts are among them.
    let of = |context: &Context| context.alive && context.device as usize == device;
    let all = state.contexts.iter().filter(|(_, context)| of(context));
    let contexts: Vec<u32> = all.map(|(context, _)| context).collect();
    let awaited = state.feed(|feed, of| feed.await_contexts(&of.contexts(&contexts)));
    let busy: Vec<u32> =
        contexts.iter().flat_map(|context| state.engine.busy_in(*context)).collect();
    let points = state.running(call.machine).marks(busy);
    if !points.is_empty() {
        state =
            call.machine.wait_until_idle(state, |_| points.iter().all(|point| point.is_done()))?;
    }
    if let Some(awaited) = awaited {
        state.feed(|feed, _| feed.reached(&awaited));
    }
    Ok(state)
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
    match state.memory.around(memory.addr()) {
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
    let context = state.greens.primary_behind(context);
    let base = memory.raw().expose_provenance();
    if state.memory.overlaps(base as u64, bytes) {
        return Err(CUresult::CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    }
    if !can_pin(base, bytes, flags & READ_ONLY != 0) {
        return Err(INVALID_VALUE);
    }
    let owner = state.owner(context);
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
    let base = state.memory.managed(address, 1)?;
    let whole = state.memory.starting_at(base).map_or(0, |allocation| allocation.bytes);
    if base != address || (bytes != 0 && bytes != whole) {
        return Err(INVALID_VALUE);
    }
    if state.captures.is_capturing(stream) {
        return Err(NOT_SUPPORTED);
    }
    Ok(())
}
