//! Streams: the queue, which stream a handle names, and the entry points of streams.

use core::ffi::{c_int, c_uint, c_ulonglong};
use cuda_order_check_engine::StreamKind;
use cuda_order_check_engine::feed::Creator;

use crate::abi::*;
use crate::arg::{In, Ptr, StreamArg};
use crate::context::{GREATEST_PRIORITY, LEAST_PRIORITY};
use crate::green_context;
use crate::machine::call_frame::CallFrame;
use crate::machine::handles::{Bad, Kind};
use crate::machine::{Locked, State};
use crate::threads;

exports! { $ [stream]
    cuStreamCreate => stream_create;
    cuStreamCreateWithPriority => stream_create_with_priority;
    cuStreamDestroy_v2 => stream_destroy;
    cuStreamQuery, cuStreamQuery_ptsz => stream_query;
    cuStreamSynchronize, cuStreamSynchronize_ptsz => stream_synchronize;
    cuStreamGetPriority, cuStreamGetPriority_ptsz => stream_get_priority;
    cuStreamGetFlags, cuStreamGetFlags_ptsz => stream_get_flags;
    cuStreamGetId, cuStreamGetId_ptsz => stream_get_id;
    cuStreamGetCtx, cuStreamGetCtx_ptsz => stream_get_ctx;
    cuStreamGetCtx_v2, cuStreamGetCtx_v2_ptsz => stream_get_ctx_v2;
    cuStreamGetGreenCtx => stream_get_green_ctx;
    cuStreamGetDevice, cuStreamGetDevice_ptsz => stream_get_device;
    cuStreamGetAttribute, cuStreamGetAttribute_ptsz => stream_get_attribute;
    cuStreamSetAttribute, cuStreamSetAttribute_ptsz => stream_set_attribute;
    cuStreamCopyAttributes, cuStreamCopyAttributes_ptsz => stream_copy_attributes;
    cuStreamDestroy => stream_destroy;
}

/// What a stream argument names.
pub(crate) enum Named {
    Legacy,
    PerThread,
    Handle,
}

pub(crate) fn named(call: &CallFrame, stream: StreamArg) -> Named {
    match stream.addr() {
        0 if call.per_thread() => Named::PerThread,
        0 => Named::Legacy,
        1 => Named::Legacy,
        2 => Named::PerThread,
        _ => Named::Handle,
    }
}

impl State {
    fn new_stream(
        &mut self,
        call: &CallFrame,
        context: u32,
        flags: u32,
        priority: i32,
        is_legacy: bool,
    ) -> Result<(u32, u64), CUresult> {
        let id = self.life.next_id();
        let channels = self.engine.channels.per_context;
        let contexts = &mut self.engine.contexts;
        let stream = contexts.new_stream(context, id, (flags, priority), is_legacy, channels);
        self.streams.insert(call.number, stream).ok_or(OUT_OF_MEMORY)
    }

    /// A stream without a handle, which the legacy default stream does not wait for.
    pub(crate) fn hidden_stream(
        &mut self,
        call: &CallFrame,
        context: u32,
    ) -> Result<u32, CUresult> {
        let id = self.life.next_id();
        let stream = self.engine.contexts.new_collector(context, id);
        let (index, _) = self.streams.insert(call.number, stream).ok_or(OUT_OF_MEMORY)?;
        self.feed_stream(index, Creator::Driver);
        Ok(index)
    }

    /// The order checker learns of a new stream.
    pub(crate) fn feed_stream(&mut self, stream: u32, creator: Creator) {
        let entry = &self.streams[stream];
        let kind = match entry.flags & CU_STREAM_NON_BLOCKING {
            _ if entry.is_legacy => StreamKind::Legacy,
            0 => StreamKind::Blocking,
            _ => StreamKind::NonBlocking,
        };
        let (context, device) = (entry.context, self.contexts[entry.context].device);
        self.feed(|feed, ids| {
            feed.stream_create(ids.stream(stream), (ids.context(context), device), kind, creator);
        });
    }

    /// The legacy default stream of a context.
    pub(crate) fn legacy_stream(
        &mut self,
        call: &CallFrame,
        context: u32,
    ) -> Result<u32, CUresult> {
        if let Some(index) = self.engine.contexts.legacy_stream(context) {
            return Ok(index);
        }
        let (index, _) = self.new_stream(call, context, 0, 0, true)?;
        self.engine.contexts.set_legacy_stream(context, index);
        self.feed_stream(index, Creator::Driver);
        Ok(index)
    }

    /// The stream that an argument names, if its context can be used.
    pub(crate) fn stream(&mut self, call: &CallFrame, stream: StreamArg) -> Result<u32, CUresult> {
        let index = match named(call, stream) {
            Named::Legacy => {
                let context = self.context_of_default_streams(call)?;
                self.legacy_stream(call, context)?
            }
            Named::PerThread => {
                let context = self.context_of_default_streams(call)?;
                if self.contexts[context].green {
                    // Measured: a green context has no such stream.
                    return Err(INVALID_HANDLE);
                }
                let thread = threads::number();
                match self.contexts[context].per_thread.get(&thread) {
                    Some(index) => *index,
                    None => {
                        let (index, _) = self.new_stream(call, context, 0, 0, false)?;
                        self.contexts[context].per_thread.insert(thread, index);
                        self.feed_stream(index, Creator::PerThread);
                        index
                    }
                }
            }
            Named::Handle => self.stream_by_handle(call, stream)?,
        };
        self.usable(self.streams[index].context)?;
        Ok(index)
    }

    /// The stream of a handle, also if its context has failed or ended.
    fn stream_by_handle(&self, call: &CallFrame, stream: StreamArg) -> Result<u32, CUresult> {
        let handle = stream.addr();
        let found = match self.streams.find(handle) {
            Ok(index) if self.streams[index].destroyed || !self.streams[index].created => {
                Err(Bad::Stale)
            }
            found => found,
        };
        found.map_err(|bad| self.misuses.bad_handle(call, Kind::Stream, handle, bad))
    }

    /// Destroys a stream: at once if it has no work, otherwise when its work is done.
    pub(crate) fn destroy_stream(&mut self, call: &CallFrame, index: u32) {
        let handle = self.streams.handle(index);
        self.misuses.note_destroyed(call, handle);
        self.feed(|feed, ids| feed.stream_destroy(ids.stream(index)));
        let context = self.streams[index].context;
        // A stream whose last task is done counts as busy until it is looked at once more.
        if self.engine.contexts.is_busy(context, index) {
            self.streams[index].destroyed = true;
            self.streams.hand_on(index);
        } else {
            self.streams.remove(index);
        }
    }

    /// Whether a stream is one that the program has to destroy.
    pub(crate) fn is_live_stream(&self, index: u32) -> bool {
        let stream = &self.streams[index];
        stream.created
            && !stream.destroyed
            && !self.given_back(stream.context, self.streams.handle(index))
    }
}

/// The streams whose work counts as a stream's own: for the legacy default stream all blocking
/// ones too.
fn streams_to_wait_for(state: &State, index: u32) -> Vec<u32> {
    let stream = &state.streams[index];
    let own = stream.has_work().then_some(index);
    let others = state.engine.contexts.busy_in(stream.context);
    let others = others.filter(|other| stream.is_legacy && state.streams[*other].blocking());
    own.into_iter().chain(others).collect()
}

fn has_work(state: &State, index: u32) -> bool {
    let stream = &state.streams[index];
    let blocking = |other: u32| state.streams[other].blocking();
    stream.has_work()
        || stream.is_legacy && state.engine.contexts.busy_in(stream.context).any(blocking)
}

pub(crate) fn stream_create(call: &CallFrame, stream: Ptr<CUstream>, flags: c_uint) -> Answer {
    stream_create_with_priority(call, stream, flags, 0)
}

pub(crate) fn stream_create_with_priority(
    call: &CallFrame,
    stream: Ptr<CUstream>,
    flags: c_uint,
    priority: c_int,
) -> Answer {
    let mut state = call.ready()?;
    stream.required()?;
    if flags & !CU_STREAM_NON_BLOCKING != 0 {
        return Err(INVALID_VALUE);
    }
    let context = state.current(call)?;
    stream_create_in(call, &mut state, stream, context, flags, priority)
}

pub(crate) fn stream_create_in(
    call: &CallFrame,
    state: &mut State,
    stream: Ptr<CUstream>,
    context: u32,
    flags: c_uint,
    priority: c_int,
) -> Answer {
    let priority = priority.clamp(GREATEST_PRIORITY, LEAST_PRIORITY);
    let (index, handle) = state.new_stream(call, context, flags, priority, false)?;
    state.streams[index].created = true;
    state.feed_stream(index, Creator::Call);
    stream.put(core::ptr::without_provenance_mut(handle as usize))
}

pub(crate) fn stream_destroy(call: &CallFrame, stream: StreamArg) -> Answer {
    let mut state = call.ready()?;
    if !matches!(named(call, stream), Named::Handle) || stream.is_null() {
        return Err(INVALID_HANDLE);
    }
    let index = state.stream_by_handle(call, stream)?;
    let context = state.streams[index].context;
    state.may_destroy(context, stream.addr())?;
    let State { captures, graphs, engine, feed, .. } = &mut *state;
    captures.leave(index, graphs, engine, feed.as_deref_mut());
    state.destroy_stream(call, index);
    Ok(())
}

pub(crate) fn stream_query(call: &CallFrame, stream: StreamArg) -> Answer {
    let mut state = call.ready()?;
    let index = state.stream(call, stream)?;
    if !state.quiet() {
        return query_captured_or_checked(&mut state, index);
    }
    if has_work(&state, index) { Err(NOT_READY) } else { Ok(()) }
}

/// A query while a capture is under way, or the order is checked.
#[cold]
#[inline(never)]
fn query_captured_or_checked(state: &mut State, stream: u32) -> Answer {
    state.captures.refuse_wait_for_stream(&state.streams, stream)?;
    let done = !has_work(state, stream);
    state.feed(|feed, ids| feed.stream_query(ids.stream(stream), done));
    if done { Ok(()) } else { Err(NOT_READY) }
}

pub(crate) fn stream_synchronize(call: &CallFrame, stream: StreamArg) -> Answer {
    let mut state = call.ready()?;
    let index = state.stream(call, stream)?;
    let State { captures, streams, .. } = &mut *state;
    captures.refuse_wait_for_stream(streams, index)?;
    wait_idle(call, state, index, true)
}

/// Waits for what a stream has to do now.
pub(crate) fn wait_idle(call: &CallFrame, mut state: Locked, index: u32, orders: bool) -> Answer {
    // Another thread may have destroyed it since the caller looked.
    let Some(context) = state.streams.get(index).map(|stream| stream.context) else {
        return Ok(());
    };
    let awaited = match orders {
        true => state.feed(|feed, ids| feed.await_stream(ids.stream(index))),
        false => None,
    };
    let own = streams_to_wait_for(&state, index);
    let points = state.running().marks(own);
    if points.is_empty() {
        state.reached(awaited);
        return Ok(());
    }
    let mut state =
        call.machine.wait_until(state, |_| points.iter().all(|point| point.is_done()))?;
    // The context may have failed, or gone, meanwhile.
    state.usable(context)?;
    state.reached(awaited);
    Ok(())
}

pub(crate) fn stream_get_priority(
    call: &CallFrame,
    stream: StreamArg,
    priority: Ptr<c_int>,
) -> Answer {
    let mut state = call.ready()?;
    priority.required()?;
    let index = state.stream(call, stream)?;
    priority.put(state.streams[index].priority)
}

pub(crate) fn stream_get_flags(call: &CallFrame, stream: StreamArg, flags: Ptr<c_uint>) -> Answer {
    let mut state = call.ready()?;
    flags.required()?;
    let index = state.stream(call, stream)?;
    flags.put(state.streams[index].flags)
}

pub(crate) fn stream_get_id(call: &CallFrame, stream: StreamArg, id: Ptr<c_ulonglong>) -> Answer {
    let mut state = call.ready()?;
    id.required()?;
    let index = state.stream(call, stream)?;
    id.put(state.streams[index].id)
}

pub(crate) fn stream_get_ctx(
    call: &CallFrame,
    stream: StreamArg,
    context: Ptr<CUcontext>,
) -> Answer {
    let mut state = call.ready()?;
    context.required()?;
    let index = state.stream(call, stream)?;
    let handle = state.contexts.handle(state.streams[index].context);
    context.put(core::ptr::without_provenance_mut(handle as usize))
}

pub(crate) fn stream_get_ctx_v2(
    call: &CallFrame,
    stream: StreamArg,
    context: Ptr<CUcontext>,
    green: Ptr<CUgreenCtx>,
) -> Answer {
    let mut state = call.ready()?;
    let index = state.stream(call, stream)?;
    let (primary, of_green) =
        green_context::green_and_primary(&state, state.streams[index].context);
    context.put_if(primary);
    green.put_if(of_green);
    Ok(())
}

pub(crate) fn stream_get_green_ctx(
    call: &CallFrame,
    stream: StreamArg,
    green: Ptr<CUgreenCtx>,
) -> Answer {
    let mut state = call.ready()?;
    green.required()?;
    let index = state.stream(call, stream)?;
    green.put(green_context::green_and_primary(&state, state.streams[index].context).1)
}

pub(crate) fn stream_get_device(
    call: &CallFrame,
    stream: StreamArg,
    device: Ptr<CUdevice>,
) -> Answer {
    let mut state = call.ready()?;
    device.required()?;
    let index = state.stream(call, stream)?;
    device.put(state.contexts[state.streams[index].context].device)
}

/// What a driver of this version has on streams: access policy and synchronisation policy, and from
/// 12.0 priority and memory domains. All but the priority are kept for the program to read back;
/// nothing in software depends on them.
fn attribute_of(state: &State, attribute: CUstreamAttrID) -> Result<u32, CUresult> {
    match attribute.0 {
        id @ (1 | 3) => Ok(id),
        id @ 8..=10 if state.config.version >= 12_000 => Ok(id),
        _ => Err(INVALID_VALUE),
    }
}

pub(crate) fn stream_get_attribute(
    call: &CallFrame,
    stream: StreamArg,
    attribute: CUstreamAttrID,
    value: Ptr<CUstreamAttrValue>,
) -> Answer {
    let mut state = call.ready()?;
    value.required()?;
    let index = state.stream(call, stream)?;
    let stream = &state.streams[index];
    let id = attribute_of(&state, attribute)?;
    let pad = match (id, stream.attributes.get(&id)) {
        (8, _) => first_word(stream.priority as u32),
        (_, Some(set)) => *set,
        // A policy that has no name; the domain map is 0 for the default domain and 1 for the
        // remote one.
        (3, None) => first_word(u32::MAX),
        (9, None) => first_word(0x100),
        (_, None) => [0; 64],
    };
    value.put(CUstreamAttrValue { pad })
}

fn first_word(word: u32) -> [u8; 64] {
    let mut pad = [0; 64];
    pad[..4].copy_from_slice(&word.to_ne_bytes());
    pad
}

pub(crate) fn stream_set_attribute(
    call: &CallFrame,
    stream: StreamArg,
    attribute: CUstreamAttrID,
    value: In<CUstreamAttrValue>,
) -> Answer {
    let mut state = call.ready()?;
    let value = value.get()?;
    let index = state.stream(call, stream)?;
    // SAFETY: every variant of the union is plain data within these 64 bytes.
    let pad = unsafe { value.pad };
    let word = i32::from_ne_bytes([pad[0], pad[1], pad[2], pad[3]]);
    match attribute_of(&state, attribute)? {
        8 => state.streams[index].priority = word.clamp(GREATEST_PRIORITY, LEAST_PRIORITY),
        3 if !(1..=4).contains(&word) => return Err(INVALID_VALUE),
        10 if !(0..=1).contains(&word) => return Err(INVALID_VALUE),
        id => {
            state.streams[index].attributes.insert(id, pad);
        }
    }
    Ok(())
}

pub(crate) fn stream_copy_attributes(
    call: &CallFrame,
    destination: StreamArg,
    source: StreamArg,
) -> Answer {
    let mut state = call.ready()?;
    let destination = state.stream(call, destination)?;
    let source = state.stream(call, source)?;
    if state.streams[destination].context != state.streams[source].context {
        return Err(INVALID_VALUE);
    }
    state.streams[destination].attributes = state.streams[source].attributes.clone();
    Ok(())
}
