//! Records of events, waits for them, and what calls wait for.

use std::sync::Arc;

use crate::checker::accesses::{is_event, is_stream};
use crate::checker::options::Warnings;
use crate::checker::reports::Reports;
use crate::checker::streams::Streams;
use crate::clock::Clock;
use crate::map::Map;
use crate::op::{AccessKind, By, Call, ContextId, EventId, Node, NodeWork, StreamId, What};
use crate::report::Warning;
use crate::task::{Action, Mark, Point};

#[derive(Debug)]
struct Record {
    point: Point,
    call: Arc<Call>,
    used: bool,
}

#[derive(Debug)]
struct Lost {
    record: Arc<Call>,
    by: Arc<Call>,
    /// Whether the second record is after the work of the first.
    covered: bool,
}

#[derive(Debug, Default)]
struct Event {
    name: Option<String>,
    interprocess: bool,
    record: Option<Record>,
    /// The last record is a part of this capture, after these nodes.
    captured: Option<(u64, Vec<usize>)>,
    /// A record for which no work waited, and the one that replaced it.
    lost: Option<Lost>,
}

#[derive(Debug, Default)]
pub(super) struct Events {
    pub(super) streams: Streams,
    events: Map<EventId, Event>,
}

impl Events {
    pub(super) fn reports(&mut self) -> &mut Reports {
        &mut self.streams.tasks.accesses.reports
    }

    pub(super) fn len(&self) -> usize {
        self.events.len()
    }

    fn object(&mut self, call: &Arc<Call>, event: EventId, kind: AccessKind) {
        self.streams.tasks.accesses.object(call, is_event(event), kind);
    }

    fn covers(&self, clock: &Clock, other: &Clock, unsure: bool) -> bool {
        self.streams.tasks.accesses.slots.covers(clock, other, unsure)
    }

    fn name(&self, event: EventId) -> String {
        let name = self.events.get(&event).and_then(|event| event.name.clone());
        name.unwrap_or_else(|| format!("{:#x}", event.0))
    }

    /// The work for which a call is about to wait.
    pub(super) fn mark(&self, what: What) -> Mark {
        Mark(match what {
            What::Event(event) => {
                let record = self.events.get(&event).and_then(|event| event.record.as_ref());
                record.map(|record| record.point.clone()).into_iter().collect()
            }
            What::Stream(stream) => self.streams.work_of_stream(stream),
            What::Context(context) => self.streams.work_of_context(context),
        })
    }

    /// The same, with the warnings about that wait.
    pub(super) fn begin_wait(&mut self, call: &Arc<Call>, what: What) -> Mark {
        if let What::Event(event) = what {
            self.object(call, event, AccessKind::Read);
            self.recorded(call, event, None);
        }
        self.mark(what)
    }

    /// Whether the host is after the marked work.
    pub(super) fn host_is_after(&self, mark: &Mark) -> bool {
        let host = &self.streams.tasks.accesses.threads.host.1;
        let is_before = |clock: &Clock| self.covers(host, clock, true);
        mark.0.iter().all(|point| point.clock().is_some_and(is_before))
    }

    /// The host has seen that this work is done.
    pub(super) fn saw(&mut self, by: By, what: What) {
        let is_all = match what {
            What::Event(event) => {
                let record = self.events.get_mut(&event).and_then(|event| event.record.as_mut());
                let Some(record) = record else { return };
                record.used = true;
                self.streams.tasks.saw(by, &record.point)
            }
            What::Stream(stream) => self.streams.saw(by, stream),
            What::Context(_) => false,
        };
        if is_all {
            return;
        }
        let mark = self.mark(what);
        self.streams.acquire(by, &mark);
    }

    pub(super) fn set_record(&mut self, call: &Arc<Call>, event: EventId, point: Point) {
        let past = self.streams.tasks.clock_of(call.by);
        let lost = match self.events.get(&event).and_then(|event| event.record.as_ref()) {
            Some(earlier) if self.warnings().lost_record && !earlier.used => {
                let over = |after: &Clock| {
                    earlier.point.clock().is_some_and(|clock| self.covers(after, clock, true))
                };
                // What is not held back is not after what is. What is held back may be after
                // anything.
                let covered = point.clock().is_none_or(over);
                let (record, by) = (earlier.call.clone(), call.clone());
                (!over(&past)).then_some(Lost { record, by, covered })
            }
            _ => None,
        };
        let event = self.events.entry(event).or_default();
        event.record = Some(Record { point, call: call.clone(), used: false });
        event.captured = None;
        // One whose work is not waited for at all is worse.
        if lost
            .as_ref()
            .is_some_and(|new| !new.covered || event.lost.as_ref().is_none_or(|lost| lost.covered))
        {
            event.lost = lost;
        }
    }

    /// The last record of an event that a call waits for, in `stream` or on the host.
    pub(super) fn recorded(
        &mut self,
        call: &Arc<Call>,
        event: EventId,
        stream: Option<StreamId>,
    ) -> Option<Point> {
        let state = self.events.entry(event).or_default();
        let (captured, interprocess) = (state.captured.is_some(), state.interprocess);
        let never = state.record.is_none() && !interprocess;
        let lost = state.lost.take();
        let point =
            if captured { None } else { state.record.as_ref().map(|record| record.point.clone()) };
        if let Some(record) = &mut state.record {
            record.used = true;
        }
        if captured {
            self.capture_left(call, What::Event(event));
        } else if never && self.warnings().never_recorded {
            let event = self.name(event);
            self.reports().warn(call, call, Warning::NeverRecorded { wait: call.clone(), event });
        }
        // A thread that records again knows that it does. Another one that waits may mean the record
        // before.
        let is_late =
            |lost: &Lost| stream.is_none() && lost.record.by != call.by && lost.by.by != call.by;
        if let Some(lost) = lost.filter(|lost| !lost.covered || is_late(lost)) {
            let (event, wait) = (self.name(event), call.clone());
            let Lost { record: lost, by, covered } = lost;
            let record = lost.clone();
            let warning = Warning::LostRecord { lost, by, wait, event, covered };
            self.reports().warn(&record, call, warning);
        }
        if interprocess && let Some(stream) = stream {
            let text = format!(
                "stream {} waited for interprocess event {} in {call}, whose records by other \
                 processes are unknown here",
                self.streams.name(stream),
                self.name(event)
            );
            self.reports().assume("the records of other processes are before a wait", call);
            self.streams.waited_for_unknown(stream, call, text);
        }
        point
    }

    /// A stream records an event, or waits for it.
    fn marks(&mut self, call: &Arc<Call>, stream: StreamId, event: EventId, waits: bool) {
        if let Some((name, _)) = self.streams.agent(stream) {
            self.reports().marks(call, &name, event, waits);
        }
    }

    fn warnings(&self) -> &Warnings {
        &self.streams.tasks.accesses.reports.warnings
    }

    /// Forgets what everything that may still come is ordered after. Returns how much is left.
    pub(super) fn retire(&mut self) -> usize {
        let left = self.streams.retire();
        let floor = &self.streams.tasks.accesses.slots.floor;
        for record in self.events.values_mut().filter_map(|event| event.record.as_mut()) {
            record.point.prune(floor);
        }
        left + self.events.len()
    }
}

/// One method for each operation of events, and of calls that wait.
impl Events {
    pub(super) fn event_create(
        &mut self,
        call: &Arc<Call>,
        event: EventId,
        interprocess: bool,
        name: Option<&str>,
    ) {
        self.object(call, event, AccessKind::Allocate);
        let name = name.map(str::to_owned);
        self.events.insert(event, Event { name, interprocess, ..Event::default() });
    }

    pub(super) fn event_shared(&mut self, event: EventId) {
        self.events.entry(event).or_default().interprocess = true;
    }

    pub(super) fn event_destroy(&mut self, call: &Arc<Call>, event: EventId) {
        self.object(call, event, AccessKind::Write);
        self.events.remove(&event);
    }

    pub(super) fn record(
        &mut self,
        call: &Arc<Call>,
        event: EventId,
        stream: StreamId,
        external: bool,
    ) {
        // A wait reads which record is the last one.
        self.object(call, event, AccessKind::AtomicWrite);
        self.streams.tasks.accesses.object(call, is_stream(stream), AccessKind::Read);
        if let Some((id, capture)) = self.streams.capture_mut(stream) {
            if external {
                capture.push(stream, NodeWork::Record(event));
            } else {
                let front = capture.fronts.get(&stream).cloned().unwrap_or_default();
                self.events.entry(event).or_default().captured = Some((id, front));
            }
            return;
        }
        self.streams.in_stream(call, stream, Action::Nothing, Vec::new());
        let point = self.streams.tail(stream);
        self.set_record(call, event, point);
        self.marks(call, stream, event, false);
    }

    pub(super) fn wait(
        &mut self,
        call: &Arc<Call>,
        stream: StreamId,
        event: EventId,
        external: bool,
    ) {
        self.object(call, event, AccessKind::Read);
        self.streams.tasks.accesses.object(call, is_stream(stream), AccessKind::Read);
        self.streams.ensure(stream);
        let inside = self.streams.capture_of(stream);
        if external && let Some((_, capture)) = self.streams.capture_mut(stream) {
            capture.push(stream, NodeWork::Wait(event));
            return;
        }
        let captured = self.events.get(&event).and_then(|event| event.captured.as_ref());
        if let Some((id, nodes)) = captured
            && inside.is_none_or(|inside| inside == *id)
            && self.streams.join_capture(stream, *id, nodes)
        {
            return;
        }
        let point = self.recorded(call, event, Some(stream));
        if inside.is_some() {
            // Only an event without a record can be waited for in a capture, and it is waited for
            // by nothing.
            return;
        }
        self.marks(call, stream, event, true);
        let Some(state) = self.events.get(&event) else { return };
        let Some(point) = point else {
            // Measured: a wait for an event that was never recorded is no operation, not even of a
            // legacy default stream. Another process may have recorded its events.
            if state.interprocess || state.captured.is_some() {
                self.streams.in_stream(call, stream, Action::Nothing, Vec::new());
            }
            return;
        };
        // Another process may have recorded this one anew.
        if !self.warnings().useless_wait || state.interprocess {
            self.streams.in_stream(call, stream, Action::Nothing, vec![point]);
            return;
        }
        self.streams.in_stream(call, stream, Action::Nothing, Vec::new());
        if let (Some(before), Some(event_clock)) =
            (self.streams.tail(stream).clock(), point.clock())
            && self.covers(before, event_clock, false)
        {
            let event = self.name(event);
            self.reports().warn(call, call, Warning::UselessWait { wait: call.clone(), event });
        }
        self.streams.in_stream(call, stream, Action::Nothing, vec![point]);
    }

    pub(super) fn join(&mut self, call: &Arc<Call>, stream: StreamId, event: EventId) {
        self.streams.ensure(stream);
        let record = self.events.get_mut(&event).and_then(|event| event.record.as_mut());
        let Some(record) = record else { return };
        record.used = true;
        let point = record.point.clone();
        self.streams.in_stream(call, stream, Action::Nothing, vec![point]);
    }

    /// Something has work in a graph only, and is used or left outside it.
    pub(super) fn capture_left(&mut self, call: &Arc<Call>, what: What) {
        if !self.warnings().capture_leak {
            return;
        }
        let what = match what {
            What::Event(event) => format!("event {}", self.name(event)),
            What::Stream(stream) => format!("stream {}", self.streams.name(stream)),
            What::Context(context) => format!("context {:#x}", context.0),
        };
        self.reports().warn(call, call, Warning::CaptureLeak { call: call.clone(), what });
    }

    /// Returns the nodes of the capture.
    pub(super) fn capture_end(&mut self, call: &Arc<Call>, stream: StreamId) -> Option<Vec<Node>> {
        let capture = self.streams.end_capture(stream)?;
        if self.warnings().capture_leak {
            for stream in capture.unjoined() {
                self.capture_left(call, What::Stream(stream));
            }
        }
        Some(capture.nodes)
    }

    pub(super) fn context_record(&mut self, call: &Arc<Call>, context: ContextId, event: EventId) {
        self.object(call, event, AccessKind::AtomicWrite);
        let points = self.streams.work_of_context(context);
        let point = self.streams.after_all(call, "of a context", points);
        self.set_record(call, event, point);
    }

    pub(super) fn context_wait(&mut self, call: &Arc<Call>, context: ContextId, event: EventId) {
        self.object(call, event, AccessKind::Read);
        if let Some(point) = self.recorded(call, event, None) {
            self.streams.hold_context(call, context, point);
        }
    }

    pub(super) fn synchronize(&mut self, call: &Arc<Call>, what: What) {
        let mark = self.begin_wait(call, what);
        self.streams.acquire(call.by, &mark);
    }

    pub(super) fn query(&mut self, call: &Arc<Call>, what: What, done: bool) {
        if done {
            self.saw(call.by, what);
        } else if let By::Thread(thread) = call.by
            && self.warnings().ignored_query
        {
            let mark = self.mark(what);
            self.streams.tasks.accesses.threads.queried(thread, mark, call);
        }
    }
}
