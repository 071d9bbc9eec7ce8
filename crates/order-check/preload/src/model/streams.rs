//! Streams by the handles that calls have: those that were seen, default ones, and those that no call
//! has created.

use core::ffi::c_uint;

use cuda_order_check_engine::feed::Creator;
use cuda_order_check_engine::{Compare, ContextId, GraphId, StreamId, StreamKind};

use crate::call::{Call, Handle};
use crate::state::driver::Questions;
use crate::watch::Watch;

impl Watch {
    /// A stream that was seen before.
    pub(crate) fn seen_stream(&self, call: &Call, stream: Handle) -> Option<StreamId> {
        if stream > 2 {
            return self.streams.created.contains_key(&stream).then_some(StreamId(stream as u64));
        }
        self.streams
            .defaults
            .get(&(self.contexts.handle(), call.thread_of_default(stream)))
            .copied()
    }

    pub(crate) fn stream(&mut self, call: &Call, stream: Handle) -> StreamId {
        if let Some(stream) = self.seen_stream(call, stream) {
            return stream;
        }
        if stream > 2 {
            self.found(stream);
            return StreamId(stream as u64);
        }
        let (context, device) = self.contexts.current();
        self.default_stream(context, device, call.thread_of_default(stream))
    }

    /// The legacy default stream of a context that was current before.
    pub(crate) fn legacy_stream(&mut self, context: Handle) -> StreamId {
        let stream = self.streams.defaults.get(&(context, 0)).copied();
        let device = self.contexts.devices.get(&context).copied().unwrap_or_default();
        stream.unwrap_or_else(|| self.default_stream(context, device, 0))
    }

    pub(crate) fn default_stream(&mut self, context: Handle, device: i32, thread: u64) -> StreamId {
        // Not the number of those that are left: a context that ends takes its own away.
        let stream = StreamId((1 << 61) + self.next_id());
        self.kernels.in_one_context = self.contexts.are_one();
        self.streams.defaults.insert((context, thread), stream);
        let (kind, creator) = match thread {
            0 => (StreamKind::Legacy, Creator::Driver),
            _ => (StreamKind::Blocking, Creator::PerThread),
        };
        self.feed.stream_create(stream, (ContextId(context as u64), device), kind, creator);
        stream
    }

    /// A stream that no call has created, as far as this library has seen.
    pub(crate) fn found(&mut self, stream: Handle) {
        if self.destroyed.is_destroyed(stream) {
            // The driver may crash if it is asked.
            let (context, device) = self.contexts.current();
            let context = (ContextId(context as u64), device);
            let kind = StreamKind::NonBlocking;
            return self.feed.stream_create(StreamId(stream as u64), context, kind, Creator::Call);
        }
        let (mut context, mut flags) = (0, 0);
        let Questions { stream_context, stream_flags, .. } = self.questions;
        // SAFETY: a stream that the driver has just accepted, and places for the answers.
        unsafe {
            stream_context.map(|ask| ask(stream, &mut context));
            stream_flags.map(|ask| ask(stream, &mut flags));
        }
        let (current, device) = self.contexts.current();
        let context = if context == 0 { current } else { context };
        let device = *self.contexts.devices.entry(context).or_insert(device);
        self.created(stream, (context, device), flags);
    }

    pub(crate) fn created(
        &mut self,
        stream: Handle,
        (context, device): (Handle, i32),
        flags: c_uint,
    ) {
        self.destroyed.created(stream);
        self.kernels.in_one_context = self.contexts.are_one();
        self.streams.created.insert(stream, context);
        let kind = match flags & NON_BLOCKING {
            0 => StreamKind::Blocking,
            _ => StreamKind::NonBlocking,
        };
        let context = (ContextId(context as u64), device);
        self.feed.stream_create(StreamId(stream as u64), context, kind, Creator::Call);
    }
}

/// `CU_STREAM_NON_BLOCKING`.
pub(crate) const NON_BLOCKING: c_uint = 1;

impl Watch {
    /// A call may have added a node to any capture.
    pub(crate) fn note_captures(&mut self) {
        let streams = self.streams.created.keys().map(|stream| StreamId(*stream as u64));
        let all = streams.chain(self.streams.defaults.values().copied());
        self.graphs.partial.extend(all.filter_map(|stream| self.feed.capture_of(stream)));
    }
}

/// A capture has ended, with this graph if the driver has given one.
pub(crate) fn capture_ended(watch: &mut Watch, stream: StreamId, graph: Option<Handle>) {
    let capture = watch.feed.capture_of(stream);
    let nodes = capture.and_then(|capture| watch.graphs.in_capture.remove(&capture));
    let whole = capture.is_some_and(|capture| !watch.graphs.partial.remove(&capture));
    watch.feed.capture_end(stream, graph.map(|graph| GraphId(graph as u64)));
    // The driver is asked for the nodes of one that has others as well, and of one whose begin was
    // not seen.
    let graph = graph.filter(|_| whole);
    watch.graphs.of_graph.extend(graph.map(|graph| (graph, nodes.unwrap_or_default())));
}

/// A stream waits for an external semaphore. What signals it may come after work that is
/// submitted later. So the wait is over when the host has waited for it, or after everything
/// that comes before the next signal.
pub(crate) fn wait_external(watch: &mut Watch, stream: StreamId) {
    if watch.feed.capture_of(stream).is_none() {
        if watch.streams.external.waits.len() == EXTERNAL_WAITS {
            signal_external(watch);
        }
        let cell = watch.streams.external.semaphore.cell();
        watch.uploads.host_may_be_late();
        watch.feed.wait_value(stream, cell, 1, Compare::Equal);
        watch.streams.external.waits.push(watch.feed.caller().number);
    }
}

/// A stream signals an external semaphore: other APIs may go on, and signal others.
pub(crate) fn signal_external(watch: &mut Watch) {
    for call in std::mem::take(&mut watch.streams.external.waits) {
        watch.feed.wait_ended(watch.streams.external.semaphore.cell(), call);
    }
}

/// How many waits for external semaphores are remembered.
pub(crate) const EXTERNAL_WAITS: usize = 1024;
