//! For cudarc and numba-cuda (without a stream), cudarc (between contexts), cuda.core and FFmpeg
//! (of any addresses): copies and memsets that `cuda-events` does not bind.

use core::ffi::c_void;

use crate::abi::*;
use crate::arg::{ContextArg, In, Memory, StreamArg};
use crate::copy::{HostAfter, Side, copy, set};
use crate::machine::State;
use crate::machine::call_frame::CallFrame;
use crate::stream::wait_idle;

exports! { $ [copy::synchronous]
    cuMemcpyPeer, cuMemcpyPeer_ptds => memcpy_peer;
    cuMemcpyPeerAsync, cuMemcpyPeerAsync_ptsz => memcpy_peer_async;
    cuMemcpyAsync, cuMemcpyAsync_ptsz => memcpy_async;
    cuMemcpy, cuMemcpy_ptds => memcpy;
    cuMemcpyHtoD_v2, cuMemcpyHtoD_v2_ptds => memcpy_h_to_d;
    cuMemcpyDtoH_v2, cuMemcpyDtoH_v2_ptds => memcpy_d_to_h;
    cuMemcpyDtoD_v2, cuMemcpyDtoD_v2_ptds => memcpy_d_to_d;
    cuMemsetD8_v2, cuMemsetD8_v2_ptds => (memset::<u8>);
    cuMemsetD16_v2, cuMemsetD16_v2_ptds => (memset::<u16>);
    cuMemsetD32_v2, cuMemsetD32_v2_ptds => (memset::<u32>);
}

/// Documented: both contexts are the program's to name right. Addresses say by themselves whose
/// they are, so that the contexts only have to be there.
pub(super) fn peers(
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
    let contexts = peers(call, destination_context, source_context)?;
    let (to, from) = (Side::Device(destination), Side::Device(source));
    synchronous_between(call, contexts, |stream| copy(call, to, from, bytes, stream))
}

/// A copy without a stream between these contexts and the current one.
pub(super) fn synchronous_between(
    call: &CallFrame,
    mut contexts: Vec<u32>,
    submit: impl FnOnce(StreamArg) -> Result<HostAfter, CUresult>,
) -> Answer {
    synchronous(call, |stream| {
        // Documented: it comes after all work of these contexts, and before all their later work.
        let mut state = call.ready()?;
        contexts.push(state.current(call)?);
        contexts.sort_unstable();
        contexts.dedup();
        let index = state.stream(call, stream)?;
        state.feed(|feed, ids| {
            feed.stream_waits_for_contexts(ids.stream(index), &ids.contexts(&contexts));
        });
        drop(state);
        let after = submit(stream)?;
        call.ready()?.feed(|feed, ids| {
            feed.contexts_wait_for_stream(&ids.contexts(&contexts), ids.stream(index));
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
    let State { captures, streams, .. } = &mut *state;
    captures.refuse_captured(streams, index)?;
    let before = state.feed(|feed, ids| feed.await_stream(ids.stream(index)));
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
    source: In<c_void>,
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

pub(crate) fn memset<T: Into<u32>>(
    call: &CallFrame,
    destination: CUdeviceptr,
    value: T,
    count: usize,
) -> Answer {
    let value = value.into();
    synchronous(call, |stream| set(call, destination, value, size_of::<T>(), count, stream))
}
