//! Copies and memsets in a stream, and what the host waits for.

pub(crate) mod rows;
pub(crate) mod synchronous;

use core::ffi::{c_uchar, c_uint, c_void};

use cuda_order_check_engine::Access;

use crate::abi::*;
use crate::allocation;
use crate::arg::{In, Memory, StreamArg};
use crate::engine::work::Task;
use crate::graph::NodeKind;
use crate::machine::call_frame::CallFrame;
use crate::machine::{Locked, State};
use crate::memory::Place;
use crate::memory::allocations::Allocations;
use crate::memory::work::MemoryWork;
use crate::order::Feed;
use crate::stream::wait_idle;

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
    let owner = |place: &Place| {
        let (_, allocation) = state.memory.addresses.around(place.address as u64)?;
        (!allocation.kind.is_host()).then_some((allocation.device, allocation.context))
    };
    let (Some(to), Some(from)) = (owner(places[0]), owner(places[1])) else { return Ok(None) };
    let other = [to, from].into_iter().find(|(device, _)| *device != own);
    let other = other.filter(|_| to.0 != from.0);
    other.map(|(_, context)| state.legacy_stream(call, context)).transpose()
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
    state.running().submit(stream, Task::Memory(work));
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

pub(crate) fn memset_d8_async(
    call: &CallFrame,
    to: CUdeviceptr,
    value: c_uchar,
    count: usize,
    stream: StreamArg,
) -> Answer {
    set(call, to, u32::from(value), 1, count, stream).map(drop)
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
pub(crate) enum Side {
    Device(u64),
    Host(*const c_void),
    /// Determined by the address.
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
    /// The copy or memset.
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
