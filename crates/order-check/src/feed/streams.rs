//! Streams, events and contexts, and the calls that wait for them.

use std::collections::{BTreeMap, BTreeSet};

use super::calls::{CallFeed, Observer};
use crate::checker::{Options, Warnings};
use crate::op::{Call, ContextId, EventId, GraphId, Op, StreamId, StreamKind, What};
use crate::task::Mark;

/// Who created a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Creator {
    /// The current call. Findings name it.
    Call,
    /// The driver: a legacy default stream, or a stream for the driver's own work.
    Driver,
    /// The driver, as the per-thread default stream of the calling thread.
    PerThread,
}

/// The work that a call waits for, from its begin to its end.
#[derive(Clone, Debug)]
pub struct Awaited(Vec<Mark>);

impl Awaited {
    pub(super) fn marks(&self) -> impl Iterator<Item = &Mark> {
        self.0.iter()
    }
}

/// The part of a [`Feed`](super::Feed) that knows streams, events and contexts.
pub struct StreamFeed<O> {
    calls: CallFeed<O>,
    /// Whether any warning is enabled.
    warns: bool,
    last_event: u64,
    /// Events that other processes may have.
    exported: BTreeSet<EventId>,
    /// Unfinished records of those, by their places.
    pub(super) records: BTreeMap<u64, Mark>,
}

part!(StreamFeed, calls: CallFeed);

impl<O: Observer> StreamFeed<O> {
    pub(super) fn new(options: Options, observer: O) -> Self {
        Self {
            calls: CallFeed::new(options, observer),
            warns: options.warnings != Warnings::NONE,
            last_event: 0,
            exported: BTreeSet::new(),
            records: BTreeMap::new(),
        }
    }

    /// A stream begins.
    pub fn stream_create(
        &mut self,
        stream: StreamId,
        (context, device): (ContextId, i32),
        kind: StreamKind,
        creator: Creator,
    ) {
        // Each context, and each thread in it, has its own, of one and the same handle.
        let place = format!("context {:#x}, device {device}", context.0);
        let name = match (kind, creator) {
            (StreamKind::Legacy, _) => Some(format!("0x1 (the legacy default stream of {place})")),
            (_, Creator::PerThread) => {
                let thread = self.observer.thread_name(self.observer.thread());
                Some(format!("0x2 (the per-thread default stream of thread {thread}, {place})"))
            }
            _ => None,
        };
        let mut call = self.caller();
        call.by = self.by();
        if creator != Creator::Call {
            call.name = "".into();
        }
        self.apply_as(call, Op::StreamCreate { stream, context, kind, name: name.as_deref() });
    }

    /// The program names a stream.
    pub fn stream_name(&mut self, stream: StreamId, name: &str) {
        self.apply(Op::StreamName { stream, name });
    }

    /// A stream is destroyed. Its work goes on.
    pub fn stream_destroy(&mut self, stream: StreamId) {
        self.apply(Op::StreamDestroy { stream });
    }

    /// A context is destroyed, with its streams.
    pub fn context_destroy(&mut self, context: ContextId) {
        self.apply(Op::ContextDestroy { context });
    }

    /// An event begins. `exported`: it was opened from a descriptor of another process.
    pub fn event_create(&mut self, event: EventId, exported: bool) {
        if exported {
            self.exported.insert(event);
        }
        self.apply(Op::EventCreate { event, interprocess: exported, name: None });
    }

    /// An event is destroyed. Submitted waits stay valid.
    pub fn event_destroy(&mut self, event: EventId) {
        self.exported.remove(&event);
        self.apply(Op::EventDestroy { event });
    }

    /// The program takes an event's descriptor: from now on other processes may record the event,
    /// and wait for its records. `record` is the place of its last record, if that may be
    /// unfinished.
    pub fn event_exported(&mut self, event: EventId, record: Option<u64>) {
        if self.exported.insert(event) {
            self.apply(Op::EventShared { event });
            self.record_exported(event, record);
        }
    }

    /// An event is recorded.
    pub fn record(&mut self, event: EventId, stream: StreamId) {
        if self.exported.contains(&event) {
            // It does not replace an unfinished one.
            self.apply(Op::Wait { stream, event, external: false });
        }
        self.apply(Op::Record { event, stream, external: false });
    }

    /// An event is recorded by a node of the graph that is captured (`CU_EVENT_RECORD_EXTERNAL`).
    pub fn record_external(&mut self, event: EventId, stream: StreamId) {
        self.apply(Op::Record { event, stream, external: true });
    }

    /// A node of the graph that is captured waits for an event (`CU_EVENT_WAIT_EXTERNAL`).
    pub fn wait_external(&mut self, stream: StreamId, event: EventId) {
        self.apply(Op::Wait { stream, event, external: true });
    }

    /// The record of an event that other processes may have is submitted. After the record is done,
    /// another process may report it to the host. [`record_done`](Self::record_done) with the same
    /// place reports the end of the record. Without a place the record may be done at any time.
    pub fn record_exported(&mut self, event: EventId, place: Option<u64>) {
        if !self.exported.contains(&event) {
            return;
        }
        let work = self.checker.mark(What::Event(event));
        match place {
            Some(place) => {
                self.records.insert(place, work);
            }
            None => self.may_have_seen_now(work),
        }
    }

    /// A record with this place is done.
    pub fn record_done(&mut self, place: u64) {
        if let Some(work) = self.records.remove(&place) {
            self.may_have_seen_now(work);
        }
    }

    /// The other events through which other processes can have passed order on: a wait for an
    /// exported event may be after all records of those.
    fn exported_beside(&self, event: EventId) -> Vec<EventId> {
        let all = if self.exported.contains(&event) { Some(&self.exported) } else { None };
        all.into_iter().flatten().copied().filter(|other| *other != event).collect()
    }

    /// A stream waits for an event.
    pub fn wait(&mut self, stream: StreamId, event: EventId) {
        for event in self.exported_beside(event) {
            self.apply(Op::Join { stream, event });
        }
        self.apply(Op::Wait { stream, event, external: false });
    }

    /// A call has queried the last record of an event.
    pub fn event_query(&mut self, event: EventId, done: bool) {
        self.query(What::Event(event), done);
        if done {
            for event in self.exported_beside(event) {
                self.query(What::Event(event), done);
            }
        }
    }

    /// A call has queried a stream.
    pub fn stream_query(&mut self, stream: StreamId, done: bool) {
        self.query(What::Stream(stream), done);
    }

    fn query(&mut self, what: What, done: bool) {
        if done {
            let by = self.by();
            self.checker.saw(by, what);
            self.collect();
        } else if self.warns {
            self.apply(Op::Query { what, done });
        }
    }

    /// A call waits for the last record of an event. The record is done when the call begins.
    pub fn event_synchronize(&mut self, event: EventId) {
        if self.warns {
            let mark = self.begin_wait(event);
            self.reach(&mark);
        } else {
            self.query(What::Event(event), true);
        }
    }

    fn begin_wait(&mut self, event: EventId) -> Mark {
        let call = Call { by: self.by(), ..self.caller() };
        let mark = self.checker.begin_wait(call, What::Event(event));
        self.collect();
        mark
    }

    /// A call begins to wait for a stream.
    #[must_use]
    pub fn await_stream(&self, stream: StreamId) -> Awaited {
        Awaited(vec![self.checker.mark(What::Stream(stream))])
    }

    /// A call begins to wait for the last record of an event.
    #[must_use]
    pub fn await_event(&mut self, event: EventId) -> Awaited {
        let own = self.begin_wait(event);
        let others = self.exported_beside(event).into_iter();
        let others = others.map(|event| self.checker.mark(What::Event(event)));
        Awaited([own].into_iter().chain(others).collect())
    }

    /// A call begins to wait for all work of some contexts.
    #[must_use]
    pub fn await_contexts(&self, contexts: &[ContextId]) -> Awaited {
        let marks = contexts.iter().map(|context| self.checker.mark(What::Context(*context)));
        Awaited(marks.collect())
    }

    /// Whether the host is ordered after this work: calls have waited for it, or have seen that it
    /// is done.
    #[must_use]
    pub fn host_is_after(&self, awaited: &Awaited) -> bool {
        awaited.0.iter().all(|mark| self.checker.host_is_after(mark))
    }

    /// The driver refuses a call because this event was recorded in a capture, or a capture cannot
    /// end because this stream has not joined it.
    pub fn capture_left(&mut self, what: What) {
        self.apply(Op::CaptureLeft { what });
    }

    /// An event records all work of some contexts. `collector` is a stream without other work.
    pub fn context_record(&mut self, contexts: &[ContextId], event: EventId, collector: StreamId) {
        if let &[context] = contexts {
            self.apply(Op::ContextRecord { context, event });
        } else {
            self.stream_waits_for_contexts(collector, contexts);
            self.apply(Op::Record { event, stream: collector, external: false });
        }
    }

    /// All later work of some contexts waits for an event.
    pub fn context_wait(&mut self, contexts: &[ContextId], event: EventId) {
        for &context in contexts {
            self.apply(Op::ContextWait { context, event });
        }
    }

    /// A number that no event of the program has.
    fn own_event(&mut self) -> EventId {
        self.last_event += 1;
        EventId((1 << 62) + self.last_event)
    }

    /// A stream waits for what another one has got.
    pub fn stream_waits_for_stream(&mut self, stream: StreamId, earlier: StreamId) {
        let event = self.own_event();
        self.apply(Op::Record { event, stream: earlier, external: false });
        self.apply(Op::Join { stream, event });
        self.apply(Op::EventDestroy { event });
    }

    /// A stream waits for all work of some contexts, as for a copy between contexts.
    pub fn stream_waits_for_contexts(&mut self, stream: StreamId, contexts: &[ContextId]) {
        let event = self.own_event();
        for &context in contexts {
            self.apply(Op::ContextRecord { context, event });
            self.apply(Op::Join { stream, event });
        }
        self.apply(Op::EventDestroy { event });
    }

    /// All later work of some contexts waits for a stream.
    pub fn contexts_wait_for_stream(&mut self, contexts: &[ContextId], stream: StreamId) {
        let event = self.own_event();
        self.apply(Op::Record { event, stream, external: false });
        self.context_wait(contexts, event);
        self.apply(Op::EventDestroy { event });
    }

    /// What a stream has got is also work of these contexts, as a copy that their device makes.
    pub fn contexts_share(&mut self, contexts: &[ContextId], stream: StreamId) {
        for &context in contexts {
            self.apply(Op::ContextShares { context, stream });
        }
    }

    /// An access of the host counts as ordered with work that waits for a host function or for a
    /// value: the host may have been waited for. Says whether there is something to wait for.
    pub fn assume_held_back(&mut self, work: &Awaited) -> bool {
        let call = work.marks().find_map(|mark| self.checker.held_back_by(mark)).cloned();
        if let Some(call) = &call {
            let what = "an access of the host is before a copy that waits";
            self.checker.assume(what, call);
        }
        call.is_some()
    }

    /// A capture begins. Until it ends, operations of this stream, and of streams that join the
    /// capture, are nodes. A driver that reports its graphs with [`graph`](super::Feed::graph) reports no
    /// captures.
    pub fn capture_begin(&mut self, stream: StreamId) {
        self.apply(Op::CaptureBegin { stream });
    }

    /// A capture ends, in the stream in which it began. `graph` is its graph, if the call succeeds.
    pub fn capture_end(&mut self, stream: StreamId, graph: Option<GraphId>) {
        self.apply(Op::CaptureEnd { stream, graph });
    }

    /// The number of the capture that a stream is in.
    #[must_use]
    pub fn capture_of(&self, stream: StreamId) -> Option<u64> {
        self.checker.capture_of(stream)
    }
}
