//! Copies and memsets in a stream, and what the host waits for.

pub(crate) mod rows;
pub(crate) mod synchronous;

use core::ffi::c_void;

use cuda_order_check_engine::Access;

use crate::abi::*;
use crate::allocation;
use crate::arg::{In, Memory, StreamArg};
use crate::engine::work::Task;
use crate::graph::NodeKind;
use crate::machine::call_frame::CallFrame;
use crate::machine::{Locked, State};
use crate::memory::addresses::Allocation;
use crate::memory::allocations::Allocations;
use crate::memory::work::MemoryWork;
use crate::memory::{Kind, Place};
use crate::order::Feed;
use crate::stream::wait_idle;

exports! { $ [copy]
    cuMemsetD8Async, cuMemsetD8Async_ptsz => (memset_async::<u8>);
    cuMemsetD16Async, cuMemsetD16Async_ptsz => (memset_async::<u16>);
    cuMemsetD32Async, cuMemsetD32Async_ptsz => (memset_async::<u32>);
    cuMemcpyHtoDAsync_v2, cuMemcpyHtoDAsync_v2_ptsz => memcpy_h_to_d_async;
    cuMemcpyDtoHAsync_v2, cuMemcpyDtoHAsync_v2_ptsz => memcpy_d_to_h_async;
    cuMemcpyDtoDAsync_v2, cuMemcpyDtoDAsync_v2_ptsz => memcpy_d_to_d_async;
}

/// The call itself reads, or will write, ordinary memory of the program.
pub(crate) fn feed_pageable(
    feed: Option<&mut Feed>,
    place: &Place,
    accesses: impl FnOnce() -> Vec<Access>,
) {
    if let Some(feed) = feed.filter(|_| place.pageable()) {
        feed.pageable(&accesses());
    }
}

/// Whether an asynchronous copy returns after the copy. NVIDIA's page "API synchronization
/// behavior": from any host memory to any host memory it is synchronous with respect to the host.
pub(crate) fn waits_for_copy(memory: &Allocations, to: &Place, from: &Place) -> bool {
    to.pageable() || memory.addresses.is_of_host(to) && memory.addresses.is_of_host(from)
}

/// The other device's legacy stream, if a legacy stream copies from one device to another.
/// Measured: such a copy is in the legacy streams of both.
fn legacy_stream_of_other_device(
    state: &mut State,
    call: &CallFrame,
    stream: u32,
    places: [&Place; 2],
) -> Result<Option<u32>, CUresult> {
    let own_stream = &state.streams[stream];
    if !own_stream.is_legacy {
        return Ok(None);
    }
    let own = state.contexts[own_stream.context].device as usize;
    let two = between_devices(&state.memory, places);
    let other = two.into_iter().flatten().find(|memory| memory.device != own);
    other.map(|memory| memory.context).map(|context| state.legacy_stream(call, context)).transpose()
}

/// The two allocations, if they are of two devices.
fn between_devices<'a>(
    memory: &'a Allocations,
    places: [&Place; 2],
) -> Option<[&'a Allocation; 2]> {
    let allocation = |place: &Place| {
        let (_, allocation) = memory.addresses.around(place.address as u64)?;
        (!allocation.kind.is_host()).then_some(allocation)
    };
    let [to, from] = [allocation(places[0])?, allocation(places[1])?];
    (to.device != from.device).then_some([to, from])
}

/// The contexts whose work a copy is besides its stream's. Measured of copies between the stream's
/// device and another: it is also work of the other one, unless the stream's device has access to
/// the other, and this is the destination or has no access to the stream's device.
pub(crate) fn shared_with(state: &State, stream: u32, work: &MemoryWork) -> Vec<u32> {
    if state.devices.len() < 2 {
        return Vec::new();
    }
    let Some([to, from]) = work.copied().and_then(|copied| between_devices(&state.memory, copied))
    else {
        return Vec::new();
    };
    let own = state.streams[stream].context;
    let device = state.contexts[own].device as usize;
    let reaches = |from: u32, to: u32| state.contexts[from].settings.peers.contains(&to);
    let makes = |allocation: &Allocation, other: &Allocation, is_source: bool| {
        // What copies between two other devices was not asked.
        allocation.device != device
            && (other.device != device
                || allocation.kind != Kind::Device
                || !reaches(own, allocation.context)
                || is_source && reaches(allocation.context, own))
    };
    let devices = [(to, from, false), (from, to, true)].map(|(allocation, other, is_source)| {
        makes(allocation, other, is_source).then_some(allocation.device)
    });
    state
        .contexts
        .indices(|context| context.alive && devices.contains(&Some(context.device as usize)))
}

/// A stream has got these copies.
pub(crate) fn share(state: &mut State, stream: u32, contexts: Vec<u32>) {
    let own = state.streams[stream].context;
    let contexts: Vec<u32> = contexts.into_iter().filter(|context| *context != own).collect();
    if contexts.is_empty() {
        return;
    }
    let end = state.engine.new_point(false, None);
    state.running().submit(stream, Task::Complete(end.clone()));
    for context in &contexts {
        state.engine.contexts.add_copy_elsewhere(*context, &end);
    }
    state.feed(|feed, ids| feed.contexts_share(&ids.contexts(&contexts), ids.stream(stream)));
}

/// What a stream gets from now on waits for what another one has.
fn stream_after(state: &mut State, later: u32, earlier: u32) {
    let point = state.engine.new_point(false, None);
    let mut running = state.running();
    running.submit(earlier, Task::Complete(point.clone()));
    running.submit(later, Task::Wait(point));
    state.feed(|feed, ids| feed.stream_waits_for_stream(ids.stream(later), ids.stream(earlier)));
}

pub(crate) fn submit(call: &CallFrame, mut state: Locked, stream: u32, work: MemoryWork) -> Answer {
    let State { captures, streams, graphs, .. } = &mut *state;
    if captures.add(streams, graphs, call.number, stream, || NodeKind::Memory(work.clone()))? {
        return Ok(());
    }
    state.engine.threads.ensure_pool(call.machine)?;
    let shared = shared_with(&state, stream, &work);
    state.running().submit(stream, Task::Memory(work));
    share(&mut state, stream, shared);
    Ok(())
}

pub(crate) fn set(
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
    let to = state.memory.addresses.device_range(destination, bytes)?;
    allocation::may_write(&state, call, &to)?;
    let after = HostAfter::set(&state.memory, &to);
    submit(call, state, stream, MemoryWork::Set { to, value, width, count })?;
    Ok(after)
}

pub(crate) fn memset_async<T: Into<u32>>(
    call: &CallFrame,
    to: CUdeviceptr,
    value: T,
    count: usize,
    stream: StreamArg,
) -> Answer {
    set(call, to, value.into(), size_of::<T>(), count, stream).map(drop)
}

/// Which side of a copy is what.
pub(crate) enum Side {
    Device(u64),
    Host(*const c_void),
    /// An address that may be of the host or of a device.
    Any(u64),
}

pub(crate) fn copy(
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
        Side::Device(address) => state.memory.addresses.device_range(address, bytes),
        Side::Host(pointer) if pointer.is_null() => Err(INVALID_VALUE),
        Side::Host(pointer) => Ok(state.memory.addresses.host_range(pointer, bytes)),
        Side::Any(0) => Err(INVALID_VALUE),
        Side::Any(address) => state.memory.addresses.any_range(address, bytes),
    };
    let (to, mut from) = (place(to)?, place(from)?);
    allocation::may_write(&state, call, &to)?;
    if state.captures.is_capturing(stream) {
        submit(call, state, stream, MemoryWork::Copy { to, from, bytes })?;
        return Ok(HostAfter::Nothing);
    }
    let after = HostAfter::copy(&state.memory, &to, &from);
    let waits = waits_for_copy(&state.memory, &to, &from);
    // As documented of ordinary memory: it has been read when the call returns, and has been
    // written.
    if from.pageable() {
        feed_pageable(state.feed.as_deref_mut(), &from, || {
            vec![Access::read(from.address as u64, bytes as u64)]
        });
        from = from.staged(bytes);
    }
    feed_pageable(state.feed.as_deref_mut(), &to, || {
        vec![Access::write(to.address as u64, bytes as u64)]
    });
    let other = legacy_stream_of_other_device(&mut state, call, stream, [&to, &from])?;
    if let Some(other) = other {
        stream_after(&mut state, stream, other);
    }
    submit(call, state, stream, MemoryWork::Copy { to, from, bytes })?;
    if let Some(other) = other {
        stream_after(&mut *call.ready()?, other, stream);
    }
    if waits {
        wait_idle(call, call.ready()?, stream, true)?;
    }
    Ok(after)
}

pub(crate) fn memcpy_h_to_d_async(
    call: &CallFrame,
    destination: CUdeviceptr,
    source: In<c_void>,
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

/// What the host waits for in a call without a stream: NVIDIA's page "API synchronization
/// behavior".
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum HostAfter {
    /// The copy or memset itself.
    Work,
    /// The read of the program's ordinary memory, before which the call waits for the stream. The
    /// device's own memory may be written later.
    Read,
    /// Nothing: memory of devices only.
    Nothing,
}

impl HostAfter {
    pub(crate) fn set(memory: &Allocations, to: &Place) -> Self {
        if memory.addresses.is_of_device(to) { Self::Nothing } else { Self::Work }
    }

    pub(crate) fn copy(memory: &Allocations, to: &Place, from: &Place) -> Self {
        match (memory.addresses.is_of_device(to), memory.addresses.is_of_device(from)) {
            (true, true) => Self::Nothing,
            (true, false) if from.pageable() => Self::Read,
            _ => Self::Work,
        }
    }
}
