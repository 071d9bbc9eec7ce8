//! Memory calls: device memory is host memory that the driver tracks, at the same address for both.

use core::ffi::{c_uchar, c_uint, c_ushort, c_void};
use std::sync::Arc;

use cuda_order_check::Access;

use crate::abi::*;
use crate::arg::{ContextArg, Memory, Ptr, StreamArg};
use crate::model::call_frame::CallFrame;
use crate::model::context::Context;
use crate::model::machine::{Locked, State};
use crate::model::memory::{
    ALIGNMENT, Allocation, Keeper, Kind, Place, READ_ONLY, Region, can_pin, map,
};
use crate::model::memory_work::MemoryWork;
use crate::model::work::Task;
use crate::stream::wait_idle;

impl State {
    pub(crate) fn allocate(
        &mut self,
        context: u32,
        bytes: usize,
        kind: Kind,
    ) -> Result<u64, CUresult> {
        if bytes == 0 {
            return Err(INVALID_VALUE);
        }
        let rounded = bytes.checked_next_multiple_of(ALIGNMENT).ok_or(OUT_OF_MEMORY)?;
        let device = self.contexts[context].device as usize;
        let used = self.devices[device].used;
        if kind.is_counted() {
            if used.checked_add(rounded as u64).is_none_or(|wanted| wanted > self.config.memory) {
                return Err(OUT_OF_MEMORY);
            }
            self.devices[device].used += rounded as u64;
        }
        let mapped = match kind {
            Kind::Device => self.memory.map_device(rounded),
            Kind::Pooled(pool) => match &mut self.pools[pool].arena {
                Some(arena) => arena.map(rounded).map(|(base, backing)| (base, Some(backing))),
                None => map(rounded).map(|base| (base, None)),
            },
            _ => map(rounded).map(|base| (base, None)),
        };
        let Some((base, backing)) = mapped else {
            self.devices[device].used = used;
            return Err(OUT_OF_MEMORY);
        };
        let region = Arc::new(Region { base, bytes: rounded, owned: true, backing });
        let freeing = false;
        self.memory.0.insert(base as u64, Allocation { region, context, kind, bytes, freeing });
        match kind {
            // In stream order, which the caller tells.
            Kind::Pooled(pool) => self.pools[pool].took(rounded as u64),
            _ => self.feed_allocation(base, bytes, kind),
        }
        Ok(base as u64)
    }

    fn free(&mut self, address: u64, host: bool) -> Answer {
        match self.memory.0.get(&address) {
            Some(Allocation { kind: Kind::Imported(..), .. }) => return Err(INVALID_VALUE),
            Some(Allocation { freeing: true, .. }) => return Err(INVALID_VALUE),
            Some(allocation) if allocation.kind.is_host() == host => {}
            _ => return Err(INVALID_VALUE),
        }
        self.feed(|feed, _| feed.free(address));
        self.forget(address);
        Ok(())
    }

    /// The memory behind a device address, whole.
    pub(crate) fn device_range(&self, address: u64, bytes: usize) -> Result<Place, CUresult> {
        let region = self.memory.within(address, bytes).ok_or(INVALID_VALUE)?;
        Ok(Place { address: address as usize, keeper: Keeper::Region(region) })
    }

    /// Refuses what would have the device write memory that was registered for reading alone: on a
    /// card its context fails.
    pub(crate) fn may_write(&self, call: &CallFrame, place: &Place) -> Answer {
        let address = place.address as u64;
        if !self.memory.read_only(address) {
            return Ok(());
        }
        Err(self.misuse(
            call,
            &format!("{address:#x} is written, but was registered as read-only"),
            INVALID_VALUE,
        ))
    }

    /// The memory behind a host pointer: the driver's if it knows it, else the program's, for which
    /// it answers.
    pub(crate) fn host_range(&self, pointer: *const c_void, bytes: usize) -> Place {
        let address = pointer.expose_provenance();
        let keeper =
            self.memory.within(address as u64, bytes).map_or(Keeper::Program, Keeper::Region);
        Place { address, keeper }
    }

    /// The memory behind an address that says itself whose it is.
    pub(crate) fn any_range(&self, address: u64, bytes: usize) -> Result<Place, CUresult> {
        match self.memory.around(address) {
            Some(_) => self.device_range(address, bytes),
            None => {
                Ok(self.host_range(core::ptr::with_exposed_provenance(address as usize), bytes))
            }
        }
    }
}

pub(crate) fn submit(call: &CallFrame, mut state: Locked, stream: u32, work: MemoryWork) -> Answer {
    if state.captured_memory(stream, &work)? {
        return Ok(());
    }
    state.ensure_pool_thread(call.machine)?;
    state.submit(call.machine, stream, Task::Memory(work));
    Ok(())
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

fn allocate(
    call: &CallFrame,
    mut state: Locked,
    address: Ptr<CUdeviceptr>,
    bytes: usize,
) -> Answer {
    address.required()?;
    let context = state.current(call)?;
    state.refuse_unsafe(call)?;
    let base = state.allocate(context, bytes, Kind::Device)?;
    address.put(base)
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
    state.refuse_unsafe(call)?;
    let base = state.allocate(context, bytes, Kind::Managed)?;
    address.put(base)
}

pub(crate) fn mem_free(call: &CallFrame, address: CUdeviceptr) -> Answer {
    let mut state = call.ready()?;
    if address == 0 {
        return Ok(());
    }
    state.current(call)?;
    state.refuse_unsafe(call)?;
    let device = match state.memory.0.get(&address) {
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

pub(crate) fn mem_alloc_host(call: &CallFrame, memory: Ptr<*mut c_void>, bytes: usize) -> Answer {
    mem_host_alloc(call, memory, bytes, 0)
}

pub(crate) fn mem_free_host(call: &CallFrame, memory: Memory) -> Answer {
    let mut state = call.ready()?;
    state.current(call)?;
    let pinned = match state.memory.0.get(&memory.addr()) {
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

impl State {
    /// The live contexts of a device, or of all devices, with their green contexts.
    fn contexts_of(&self, device: Option<CUdevice>) -> Vec<u32> {
        let of = |context: &Context| device.is_none_or(|device| context.device == device);
        let live = self.contexts.iter().filter(|(_, context)| context.alive && of(context));
        live.map(|(index, _)| index).collect()
    }
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
fn after_the_uses(
    call: &CallFrame,
    mut state: Locked,
    region: &Arc<Region>,
) -> Result<Locked, CUresult> {
    let points = if call.in_host_function() { Vec::new() } else { state.marks_behind(region) };
    points.iter().for_each(|point| point.want());
    state.engine.idle_waiters += 1;
    let mut state =
        call.machine.wait_until(state, |_| points.iter().all(|point| point.is_done()))?;
    state.engine.idle_waiters -= 1;
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

pub(crate) fn mem_host_get_flags(call: &CallFrame, flags: Ptr<c_uint>, memory: Memory) -> Answer {
    let state = call.ready()?;
    flags.required()?;
    match state.memory.around(memory.addr()) {
        Some((_, Allocation { kind: Kind::Host(kept) | Kind::Registered(kept), .. })) => {
            flags.put(*kept)
        }
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
    let region = Arc::new(Region { base, bytes, owned: false, backing: None });
    state.memory.0.insert(
        base as u64,
        Allocation { region, context, kind: Kind::Registered(flags), bytes, freeing: false },
    );
    state.feed_allocation(base, bytes, Kind::Registered(flags));
    Ok(())
}

pub(crate) fn mem_host_unregister(call: &CallFrame, memory: Memory) -> Answer {
    const NOT_REGISTERED: CUresult = CUresult::CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    let state = call.ready()?;
    memory.required()?;
    let region = match state.memory.0.get(&memory.addr()) {
        Some(Allocation { kind: Kind::Registered(_), region, .. }) => region.clone(),
        _ => return Err(NOT_REGISTERED),
    };
    let mut state = after_the_uses(call, state, &region)?;
    match state.memory.0.get(&memory.addr()) {
        Some(Allocation { region: still, .. }) if Arc::ptr_eq(still, &region) => {
            state.memory.0.remove(&memory.addr());
            // Whatever the streams had to do with it is over.
            state.feed(|feed, _| feed.unregister(memory.addr()));
            Ok(())
        }
        _ => Err(NOT_REGISTERED),
    }
}

pub(crate) fn mem_get_address_range(
    call: &CallFrame,
    base: Ptr<CUdeviceptr>,
    size: Ptr<usize>,
    address: CUdeviceptr,
) -> Answer {
    let state = call.ready()?;
    let (found, allocation) = state.memory.around(address).ok_or(NOT_FOUND)?;
    base.put_if(found);
    size.put_if(allocation.bytes);
    Ok(())
}

fn set(
    call: &CallFrame,
    destination: u64,
    value: u32,
    width: usize,
    count: usize,
    stream: StreamArg,
) -> Result<HostAfter, CUresult> {
    let mut state = call.ready()?;
    let stream = state.stream(call, stream)?;
    let bytes = width.checked_mul(count).ok_or(INVALID_VALUE)?;
    if !destination.is_multiple_of(width as u64) {
        return Err(INVALID_VALUE);
    }
    if count == 0 {
        return Ok(HostAfter::Nothing);
    }
    let to = state.device_range(destination, bytes)?;
    state.may_write(call, &to)?;
    let after = state.host_after_set(&to);
    submit(call, state, stream, MemoryWork::Set { to, value, width, count })?;
    Ok(after)
}

pub(crate) fn memset_d8_async(
    call: &CallFrame,
    to: CUdeviceptr,
    value: c_uchar,
    count: usize,
    stream: StreamArg,
) -> Answer {
    set(call, to, u32::from(value), 1, count, stream).map(drop)
}

pub(crate) fn memset_d16_async(
    call: &CallFrame,
    to: CUdeviceptr,
    value: c_ushort,
    count: usize,
    stream: StreamArg,
) -> Answer {
    set(call, to, u32::from(value), 2, count, stream).map(drop)
}

pub(crate) fn memset_d32_async(
    call: &CallFrame,
    to: CUdeviceptr,
    value: c_uint,
    count: usize,
    stream: StreamArg,
) -> Answer {
    set(call, to, value, 4, count, stream).map(drop)
}

/// Which side of a copy is what.
enum Side {
    Device(u64),
    Host(*const c_void),
    /// Told by the address.
    Any(u64),
}

fn copy(
    call: &CallFrame,
    to: Side,
    from: Side,
    bytes: usize,
    stream: StreamArg,
) -> Result<HostAfter, CUresult> {
    let mut state = call.ready()?;
    let stream = state.stream(call, stream)?;
    if bytes == 0 {
        return Ok(HostAfter::Nothing);
    }
    let place = |side| match side {
        Side::Device(address) => state.device_range(address, bytes),
        Side::Host(pointer) if pointer.is_null() => Err(INVALID_VALUE),
        Side::Host(pointer) => Ok(state.host_range(pointer, bytes)),
        Side::Any(0) => Err(INVALID_VALUE),
        Side::Any(address) => state.any_range(address, bytes),
    };
    let (to, mut from) = (place(to)?, place(from)?);
    state.may_write(call, &to)?;
    if state.streams[stream].capture.is_some() {
        submit(call, state, stream, MemoryWork::Copy { to, from, bytes })?;
        return Ok(HostAfter::Nothing);
    }
    let after = state.host_after_copy(&to, &from);
    let waits = to.pageable() || state.waits_for_copy(&to, &from);
    // As documented of ordinary memory: it has been read when the call returns, and has been
    // written.
    if from.pageable() {
        state.feed_pageable(&from, || vec![Access::read(from.address as u64, bytes as u64)]);
        from = from.staged(bytes);
    }
    state.feed_pageable(&to, || vec![Access::write(to.address as u64, bytes as u64)]);
    submit(call, state, stream, MemoryWork::Copy { to, from, bytes })?;
    if waits {
        wait_idle(call, call.ready()?, stream, true)?;
    }
    Ok(after)
}

pub(crate) fn memcpy_h_to_d_async(
    call: &CallFrame,
    destination: CUdeviceptr,
    source: Memory,
    bytes: usize,
    stream: StreamArg,
) -> Answer {
    copy(call, Side::Device(destination), Side::Host(source.raw()), bytes, stream).map(drop)
}

pub(crate) fn memcpy_d_to_h_async(
    call: &CallFrame,
    destination: Memory,
    source: CUdeviceptr,
    bytes: usize,
    stream: StreamArg,
) -> Answer {
    copy(call, Side::Host(destination.raw()), Side::Device(source), bytes, stream).map(drop)
}

pub(crate) fn memcpy_d_to_d_async(
    call: &CallFrame,
    destination: CUdeviceptr,
    source: CUdeviceptr,
    bytes: usize,
    stream: StreamArg,
) -> Answer {
    copy(call, Side::Device(destination), Side::Device(source), bytes, stream).map(drop)
}

/// Documented: both contexts are the program's to name right. Addresses say by themselves whose
/// they are, so that the contexts only have to be there.
fn peers(
    call: &CallFrame,
    destination: ContextArg,
    source: ContextArg,
) -> Result<Vec<u32>, CUresult> {
    let state = call.ready()?;
    let mut peers = Vec::new();
    // Measured: NULL is taken, too.
    for context in [destination, source].into_iter().filter(|context| !context.is_null()) {
        let context = state.context(call, context)?;
        state.usable(context)?;
        peers.push(context);
    }
    Ok(peers)
}

pub(crate) fn memcpy_peer_async(
    call: &CallFrame,
    destination: CUdeviceptr,
    destination_context: ContextArg,
    source: CUdeviceptr,
    source_context: ContextArg,
    bytes: usize,
    stream: StreamArg,
) -> Answer {
    peers(call, destination_context, source_context)?;
    copy(call, Side::Device(destination), Side::Device(source), bytes, stream).map(drop)
}

pub(crate) fn memcpy_peer(
    call: &CallFrame,
    destination: CUdeviceptr,
    destination_context: ContextArg,
    source: CUdeviceptr,
    source_context: ContextArg,
    bytes: usize,
) -> Answer {
    let mut contexts = peers(call, destination_context, source_context)?;
    let (to, from) = (Side::Device(destination), Side::Device(source));
    synchronous(call, |stream| {
        // Documented: it comes after all work of these contexts, and before all their later work.
        let mut state = call.ready()?;
        contexts.push(state.current(call)?);
        contexts.sort_unstable();
        contexts.dedup();
        let index = state.stream(call, stream)?;
        state.feed(|feed, of| {
            feed.stream_waits_for_contexts(of.stream(index), &of.contexts(&contexts));
        });
        drop(state);
        let after = copy(call, to, from, bytes, stream)?;
        call.ready()?.feed(|feed, of| {
            feed.contexts_wait_for_stream(&of.contexts(&contexts), of.stream(index));
        });
        Ok(after)
    })
}

pub(crate) fn memcpy_async(
    call: &CallFrame,
    destination: CUdeviceptr,
    source: CUdeviceptr,
    bytes: usize,
    stream: StreamArg,
) -> Answer {
    copy(call, Side::Any(destination), Side::Any(source), bytes, stream).map(drop)
}

/// What the host is after when a form without a stream has returned: NVIDIA's page "API
/// synchronization behavior".
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum HostAfter {
    /// The copy or memset.
    Work,
    /// The read of the program's ordinary memory, before which the call waits for the stream. The
    /// device's own memory may be written later.
    Read,
    /// Nothing: memory of devices only.
    Nothing,
}

/// NVIDIA's page "API synchronization behavior", of asynchronous copies: from any host memory to any
/// host memory they are synchronous with respect to the host.
const COPIES_ON_THE_HOST_WAIT: bool = true;

impl State {
    fn is_of_device(&self, place: &Place) -> bool {
        let around = self.memory.around(place.address as u64);
        around.is_some_and(|(_, allocation)| {
            allocation.kind.is_counted() || matches!(allocation.kind, Kind::Imported(..))
        })
    }

    /// Whether the host owns this memory: ordinary, pinned or registered memory.
    fn is_of_host(&self, place: &Place) -> bool {
        match self.memory.around(place.address as u64) {
            Some((_, allocation)) => allocation.kind.is_host(),
            None => place.pageable(),
        }
    }

    /// Whether an asynchronous copy between these returns after the copy.
    pub(crate) fn waits_for_copy(&self, to: &Place, from: &Place) -> bool {
        COPIES_ON_THE_HOST_WAIT && self.is_of_host(to) && self.is_of_host(from)
    }

    pub(crate) fn host_after_set(&self, to: &Place) -> HostAfter {
        if self.is_of_device(to) { HostAfter::Nothing } else { HostAfter::Work }
    }

    pub(crate) fn host_after_copy(&self, to: &Place, from: &Place) -> HostAfter {
        match (self.is_of_device(to), self.is_of_device(from)) {
            (true, true) => HostAfter::Nothing,
            (true, false) if from.pageable() => HostAfter::Read,
            _ => HostAfter::Work,
        }
    }
}

/// The forms without a stream: in the default stream. As on a card, the call waits for the stream
/// where the host has memory of its own in it, and otherwise returns at once.
pub(crate) fn synchronous(
    call: &CallFrame,
    submit: impl FnOnce(StreamArg) -> Result<HostAfter, CUresult>,
) -> Answer {
    // SAFETY: the NULL stream is a handle value that is never dereferenced.
    let stream: StreamArg = unsafe { crate::arg::Arg::take(core::ptr::null_mut::<CUstream_st>()) };
    let mut state = call.ready()?;
    let index = state.stream(call, stream)?;
    state.refuse_stream_in_capture(call, index)?;
    let before = state.feed(|feed, of| feed.await_stream(of.stream(index)));
    drop(state);
    let after = submit(stream)?;
    if after == HostAfter::Nothing {
        return Ok(());
    }
    let mut state = call.ready()?;
    if let (HostAfter::Read, Some(before)) = (after, before) {
        state.feed(|feed, _| feed.reached(&before));
    }
    wait_idle(call, state, index, after == HostAfter::Work)
}

pub(crate) fn memcpy(
    call: &CallFrame,
    destination: CUdeviceptr,
    source: CUdeviceptr,
    bytes: usize,
) -> Answer {
    let (to, from) = (Side::Any(destination), Side::Any(source));
    synchronous(call, |stream| copy(call, to, from, bytes, stream))
}

pub(crate) fn memcpy_h_to_d(
    call: &CallFrame,
    destination: CUdeviceptr,
    source: Memory,
    bytes: usize,
) -> Answer {
    let (to, from) = (Side::Device(destination), Side::Host(source.raw()));
    synchronous(call, |stream| copy(call, to, from, bytes, stream))
}

pub(crate) fn memcpy_d_to_h(
    call: &CallFrame,
    destination: Memory,
    source: CUdeviceptr,
    bytes: usize,
) -> Answer {
    let (to, from) = (Side::Host(destination.raw()), Side::Device(source));
    synchronous(call, |stream| copy(call, to, from, bytes, stream))
}

pub(crate) fn memcpy_d_to_d(
    call: &CallFrame,
    destination: CUdeviceptr,
    source: CUdeviceptr,
    bytes: usize,
) -> Answer {
    let (to, from) = (Side::Device(destination), Side::Device(source));
    synchronous(call, |stream| copy(call, to, from, bytes, stream))
}

pub(crate) fn memset_d8(
    call: &CallFrame,
    destination: CUdeviceptr,
    value: c_uchar,
    count: usize,
) -> Answer {
    synchronous(call, |stream| set(call, destination, u32::from(value), 1, count, stream))
}

pub(crate) fn memset_d16(
    call: &CallFrame,
    destination: CUdeviceptr,
    value: c_ushort,
    count: usize,
) -> Answer {
    synchronous(call, |stream| set(call, destination, u32::from(value), 2, count, stream))
}

pub(crate) fn memset_d32(
    call: &CallFrame,
    destination: CUdeviceptr,
    value: c_uint,
    count: usize,
) -> Answer {
    synchronous(call, |stream| set(call, destination, value, 4, count, stream))
}
