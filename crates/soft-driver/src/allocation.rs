//! Memory of devices and of the host: allocating, freeing, registering.

use core::ffi::{c_uint, c_void};
use std::sync::Arc;

use crate::abi::*;
use crate::arg::{Memory, Ptr, StreamArg};
use crate::context::Context;
use crate::machine::call_frame::CallFrame;
use crate::machine::{Locked, State};
use crate::memory::{Allocation, Kind, READ_ONLY, Region, can_pin};

impl State {
    /// The live contexts of a device, or of all devices, with their green contexts.
    fn contexts_of(&self, device: Option<CUdevice>) -> Vec<u32> {
        let of = |context: &Context| device.is_none_or(|device| context.device == device);
        let live = self.contexts.iter().filter(|(_, context)| context.alive && of(context));
        live.map(|(index, _)| index).collect()
    }
}

pub(crate) fn mem_get_info(call: &CallFrame, free: Ptr<usize>, total: Ptr<usize>) -> Answer {
    let state = call.ready()?;
    free.required()?;
    total.required()?;
    let context = state.current(call)?;
    let used = state.devices[state.contexts[context].device as usize].used;
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
    let device = match state.memory.by_address.get(&address) {
        // Memory of a pool is freed without a wait, as documented.
        Some(Allocation {
            kind: Kind::Device | Kind::Managed, context, freeing: false, ..
        }) => Some(state.contexts[*context].device),
        _ => None,
    };
    if device.is_some() && !call.in_host_function() {
        let contexts = state.contexts_of(device);
        state = after_the_work(call, state, &contexts)?;
    }
    state.free(address, false)
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
    let pinned = match state.memory.by_address.get(&memory.addr()) {
        Some(Allocation { kind: Kind::Registered(_), .. }) => return Err(INVALID_VALUE),
        of => of.is_some_and(|allocation| allocation.kind.is_host()),
    };
    if pinned && !call.in_host_function() {
        // All devices may use it.
        let contexts = state.contexts_of(None);
        state = after_the_work(call, state, &contexts)?;
    }
    state.free(memory.addr(), true)
}

/// Documented in NVIDIA's programming guide: freeing memory waits for the work that was submitted
/// before.
fn after_the_work(
    call: &CallFrame,
    mut state: Locked,
    contexts: &[u32],
) -> Result<Locked, CUresult> {
    let awaited = state.feed(|feed, of| feed.await_contexts(&of.contexts(contexts)));
    let busy = contexts.iter().flat_map(|context| state.contexts[*context].busy.iter().copied());
    let busy: Vec<u32> = busy.collect();
    let points: Vec<_> = busy
        .into_iter()
        .map(|stream| {
            let point = state.new_point(false, None);
            point.want();
            state.push_mark(stream, point.clone());
            point
        })
        .collect();
    if !points.is_empty() {
        state = call.machine.wait_until(state, |_| points.iter().all(|point| point.is_done()))?;
    }
    if let Some(awaited) = awaited {
        state.feed(|feed, _| feed.reached(&awaited));
    }
    Ok(state)
}

/// Measured: what gives pinned memory back waits for the streams that wait on it.
pub(crate) fn after_the_uses(
    call: &CallFrame,
    mut state: Locked,
    region: &Arc<Region>,
) -> Result<Locked, CUresult> {
    let points = if call.in_host_function() { Vec::new() } else { state.marks_behind(region) };
    points.iter().for_each(|point| point.want());
    call.machine.wait_until_idle(state, |_| points.iter().all(|point| point.is_done()))
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
    let region =
        Arc::new(Region { base, bytes, owned: false, backing: None, alias: Default::default() });
    state.memory.by_address.insert(
        base as u64,
        Allocation { region, context, kind: Kind::Registered(flags), bytes, freeing: false },
    );
    state.feed_allocation(base, bytes, Kind::Registered(flags));
    Ok(())
}

impl State {
    /// Where managed memory begins that has a whole range.
    pub(crate) fn managed(&self, address: u64, bytes: usize) -> Result<u64, CUresult> {
        let (base, allocation) = self.memory.around(address).ok_or(INVALID_VALUE)?;
        if allocation.kind != Kind::Managed || self.memory.within(address, bytes).is_none() {
            return Err(INVALID_VALUE);
        }
        Ok(base)
    }
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
    let base = state.managed(address, 1)?;
    let whole = state.memory.by_address.get(&base).map_or(0, |allocation| allocation.bytes);
    if base != address || (bytes != 0 && bytes != whole) {
        return Err(INVALID_VALUE);
    }
    if state.captures.is_capturing(stream) {
        return Err(NOT_SUPPORTED);
    }
    Ok(())
}
