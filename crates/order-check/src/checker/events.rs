//! Records of events, and waits for them.

use std::sync::Arc;

use crate::checker::{Checker, Record, is_event, is_stream};
use crate::clock::Clock;
use crate::op::{AccessKind, Call, EventId, NodeWork, StreamId, What};
use crate::report::Warning;
use crate::task::{Action, Point};

impl Checker {
    pub(super) fn record(
        &mut self,
        call: &Arc<Call>,
        event: EventId,
        stream: StreamId,
        external: bool,
    ) {
        // A wait reads which record is the last one.
        self.object(call, is_event(event), AccessKind::AtomicWrite);
        self.object(call, is_stream(stream), AccessKind::Read);
        let captured = self.streams.get(&stream).and_then(|of| of.capture);
        if let Some(id) = captured
            && let Some(capture) = self.captures.get_mut(&id)
        {
            if external {
                capture.push(stream, NodeWork::Record(event));
            } else {
                let front = capture.fronts.get(&stream).cloned().unwrap_or_default();
                let of = self.events.entry(event).or_default();
                of.captured = Some((id, front));
            }
            return;
        }
        self.in_stream(call, stream, Action::Nothing, Vec::new());
        let point = self.tail(stream);
        self.set_record(call, event, point);
    }

    pub(super) fn set_record(&mut self, call: &Arc<Call>, event: EventId, point: Point) {
        let known = self.clock_of(call.by);
        let lost = match self.events.get(&event).and_then(|of| of.record.as_ref()) {
            Some(earlier) if self.options.warnings.lost_record && !earlier.used => {
                let over = |after: &Clock| {
                    earlier.point.clock().is_some_and(|clock| self.covers(after, clock, true))
                };
                let replaced = over(&known) || point.clock().is_some_and(over);
                (!replaced).then(|| (earlier.call.clone(), call.clone()))
            }
            _ => None,
        };
        let of = self.events.entry(event).or_default();
        of.record = Some(Record { point, call: call.clone(), used: false });
        of.captured = None;
        if lost.is_some() {
            of.lost = lost;
        }
    }

    pub(super) fn event_name(&self, event: EventId) -> String {
        let name = self.events.get(&event).and_then(|of| of.name.clone());
        name.unwrap_or_else(|| format!("{:#x}", event.0))
    }

    /// The last record of an event that a call waits for, in `stream` or on the host.
    pub(super) fn recorded(
        &mut self,
        call: &Arc<Call>,
        event: EventId,
        stream: Option<StreamId>,
    ) -> Option<Point> {
        let of = self.events.entry(event).or_default();
        let (captured, never) = (of.captured.is_some(), of.record.is_none() && !of.interprocess);
        let (lost, interprocess) = (of.lost.take(), of.interprocess);
        let point =
            if captured { None } else { of.record.as_ref().map(|record| record.point.clone()) };
        if let Some(record) = &mut of.record {
            record.used = true;
        }
        let warnings = self.options.warnings;
        if captured {
            self.left_a_capture(call, What::Event(event));
        } else if never && !captured && warnings.never_recorded {
            let event = self.event_name(event);
            self.warn(call, call, Warning::NeverRecorded { wait: call.clone(), event });
        }
        if let Some((lost, by)) = lost {
            let event = self.event_name(event);
            self.warn(
                &lost.clone(),
                call,
                Warning::LostRecord { lost, by, wait: call.clone(), event },
            );
        }
        if interprocess && let Some(stream) = stream {
            self.unknown_records(call, stream, event);
        }
        point
    }

    /// A stream is after an interprocess event.
    fn unknown_records(&mut self, call: &Arc<Call>, stream: StreamId, event: EventId) {
        let text = format!(
            "stream {} waited for interprocess event {} in {call}, whose records by other \
             processes are unknown here",
            self.stream_name(stream),
            self.event_name(event)
        );
        self.outside(stream, call.number, text);
    }

    pub(super) fn outside(&mut self, stream: StreamId, number: u64, text: String) {
        let Some(of) = self.streams.get_mut(&stream) else { return };
        if of.outside.len() == 3 {
            of.outside.pop_front();
        }
        of.outside.push_back((number, text));
    }

    pub(super) fn wait(
        &mut self,
        call: &Arc<Call>,
        stream: StreamId,
        event: EventId,
        external: bool,
    ) {
        self.object(call, is_event(event), AccessKind::Read);
        self.object(call, is_stream(stream), AccessKind::Read);
        self.stream(stream);
        let inside = self.streams.get(&stream).and_then(|of| of.capture);
        if external && let Some(capture) = inside.and_then(|id| self.captures.get_mut(&id)) {
            capture.push(stream, NodeWork::Wait(event));
            return;
        }
        let captured = self.events.get(&event).and_then(|of| of.captured.clone());
        if let Some((id, nodes)) = captured
            && inside.is_none_or(|inside| inside == id)
            && let Some(capture) = self.captures.get_mut(&id)
        {
            capture.join(stream, &nodes);
            if let Some(of) = self.streams.get_mut(&stream) {
                of.capture = Some(id);
            }
            return;
        }
        let point = self.recorded(call, event, Some(stream));
        if inside.is_some() {
            // Only an event without a record can be waited for in a capture, and it is waited for
            // by nothing.
            return;
        }
        let Some(point) = point else {
            // Measured: a wait for an event that was never recorded is no operation, not even of a
            // legacy default stream. Another process may have recorded its events.
            if self.events.get(&event).is_some_and(|of| of.interprocess || of.captured.is_some()) {
                self.in_stream(call, stream, Action::Nothing, Vec::new());
            }
            return;
        };
        // Another process may have recorded this one anew.
        let interprocess = self.events.get(&event).is_some_and(|of| of.interprocess);
        if !self.options.warnings.useless_wait || interprocess {
            self.in_stream(call, stream, Action::Nothing, vec![point]);
            return;
        }
        self.in_stream(call, stream, Action::Nothing, Vec::new());
        if let (Some(before), Some(event_clock)) = (self.tail(stream).clock(), point.clock())
            && self.covers(before, event_clock, false)
        {
            let event = self.event_name(event);
            self.warn(call, call, Warning::UselessWait { wait: call.clone(), event });
        }
        self.in_stream(call, stream, Action::Nothing, vec![point]);
    }

    /// [`Op::Join`](crate::Op::Join).
    pub(super) fn join(&mut self, call: &Arc<Call>, stream: StreamId, event: EventId) {
        self.stream(stream);
        let record = self.events.get_mut(&event).and_then(|of| of.record.as_mut());
        let Some(record) = record else { return };
        record.used = true;
        let point = record.point.clone();
        self.in_stream(call, stream, Action::Nothing, vec![point]);
    }
}
