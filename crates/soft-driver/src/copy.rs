//! Copies and memsets in a stream, and what the host waits for.

use core::ffi::{c_uchar, c_uint, c_void};

use cuda_order_check::Access;

use crate::abi::*;
use crate::arg::{In, Memory, StreamArg};
use crate::engine::work::Task;
use crate::graph::NodeKind;
use crate::machine::call_frame::CallFrame;
use crate::machine::{Locked, State};
use crate::memory::work::MemoryWork;
use crate::memory::{Kind, Place};
use crate::stream::wait_idle;

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

    /// The call itself reads, or will write, ordinary memory of the program.
    pub(crate) fn feed_pageable(&mut self, place: &Place, accesses: impl FnOnce() -> Vec<Access>) {
        if place.pageable() {
            self.feed(|feed, _| feed.pageable(&accesses()));
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

pub(crate) fn submit(call: &CallFrame, mut state: Locked, stream: u32, work: MemoryWork) -> Answer {
    let State { captures, streams, graphs, .. } = &mut *state;
    if captures.add(streams, graphs, call, stream, || NodeKind::Memory(work.clone()))? {
        return Ok(());
    }
    state.ensure_pool_thread(call.machine)?;
    state.submit(call.machine, stream, Task::Memory(work));
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
        Side::Device(address) => state.device_range(address, bytes),
        Side::Host(pointer) if pointer.is_null() => Err(INVALID_VALUE),
        Side::Host(pointer) => Ok(state.host_range(pointer, bytes)),
        Side::Any(0) => Err(INVALID_VALUE),
        Side::Any(address) => state.any_range(address, bytes),
    };
    let (to, mut from) = (place(to)?, place(from)?);
    state.may_write(call, &to)?;
    if state.captures.is_capturing(stream) {
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
