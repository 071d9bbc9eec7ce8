//! Streams, and what goes into them.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::checker::{Checker, Stream, is_stream};
use crate::clock::Clock;
use crate::op::{AccessKind, Call, ContextId, NodeWork, StreamId, StreamKind, ThreadId};
use crate::report::{Agent, Part, StreamName, Who};
use crate::task::{Action, Job, Point};

impl Checker {
    pub(super) fn create_stream(
        &mut self,
        stream: StreamId,
        context: ContextId,
        kind: StreamKind,
        name: Option<&str>,
    ) {
        self.destroy_stream(stream);
        let name = name.map_or_else(|| format!("{:#x}", stream.0), str::to_owned);
        let slot = self.new_slot();
        let of = self.contexts.entry(context).or_default();
        let at = of.streams.partition_point(|other| *other < stream);
        of.streams.insert(at, stream);
        if kind == StreamKind::Legacy {
            of.legacy = Some(stream);
        }
        let entry: Vec<Point> = of.entry.points().collect();
        let of = Stream {
            name: Arc::new(StreamName::new(stream, name, context, kind)),
            slot,
            branches: Vec::new(),
            tail: Point::default(),
            joined: Clock::default(),
            legacy_seen: 0,
            fresh: false,
            capture: None,
            outside: VecDeque::new(),
        };
        if !entry.is_empty() {
            let call = Arc::new(Call::new("cuStreamCreate", 0, ThreadId(0)));
            let agent = Agent(Who::Stream(of.name.clone(), Part::Work));
            let job = Job { agent, slot, action: Action::Nothing, call };
            let tail = self.submit(job, Clock::default(), entry);
            self.streams.insert(stream, Stream { tail, ..of });
        } else {
            self.streams.insert(stream, of);
        }
    }

    pub(super) fn destroy_stream(&mut self, stream: StreamId) {
        let Some(of) = self.streams.remove(&stream) else { return };
        // With its context, nothing is left that could wait for the whole of it.
        if let Some(context) = self.contexts.get_mut(&of.name.context) {
            context.streams.retain(|other| *other != stream);
            if context.legacy == Some(stream) {
                context.legacy = None;
            }
            if of.fresh {
                context.fresh.retain(|other| *other != stream);
                context.fresh_gone.push(of.tail.clone());
            }
            context.gone.push(of.tail.clone());
        }
        for slot in of.branches.into_iter().chain([of.slot]) {
            self.leaving.push((slot, of.tail.clone()));
        }
    }

    pub(super) fn stream(&mut self, stream: StreamId) {
        if !self.streams.contains_key(&stream) {
            self.create_stream(stream, ContextId(0), StreamKind::Blocking, None);
        }
    }

    /// Work that is a node if the stream is captured.
    pub(super) fn stream_work(&mut self, call: &Arc<Call>, stream: StreamId, action: Action<'_>) {
        self.object(call, is_stream(stream), AccessKind::Read);
        let captured = self.streams.get(&stream).and_then(|of| of.capture);
        let Some(capture) = captured.and_then(|capture| self.captures.get_mut(&capture)) else {
            self.in_stream(call, stream, action, Vec::new());
            return;
        };
        let work = match action {
            Action::Nothing => NodeWork::Work(Vec::new()),
            Action::Work(accesses) => NodeWork::Work(accesses.into_owned()),
            Action::Function(accesses) => NodeWork::Function(accesses.into_owned()),
            Action::WriteValue(cell, value) => NodeWork::WriteValue(cell, value),
            Action::WaitValue(cell, value, compare) => NodeWork::WaitValue(cell, value, compare),
        };
        capture.push(stream, work);
    }

    /// The next operation of a stream, which also waits for `after`.
    pub(super) fn in_stream(
        &mut self,
        call: &Arc<Call>,
        stream: StreamId,
        action: Action<'_>,
        mut after: Vec<Point>,
    ) {
        self.stream(stream);
        let submit = self.clock_of(call.by);
        let Some(of) = self.streams.get_mut(&stream) else { return };
        let tail = std::mem::take(&mut of.tail);
        let mut base = Clock::default();
        // A thread that is after nothing more since adds nothing.
        let mut joined = of.joined.same(&submit);
        match tail {
            Point::Done(clock) => base = clock,
            pending => {
                after.push(pending);
                joined = false;
            }
        }
        if !joined {
            base.join(&submit);
            of.joined = submit;
        }
        let (name, slot) = (of.name.clone(), of.slot);
        if let Some(context) = self.contexts.get_mut(&name.context) {
            match name.kind {
                StreamKind::NonBlocking => {}
                StreamKind::Blocking => {
                    if !of.fresh {
                        of.fresh = true;
                        context.fresh.push(stream);
                    }
                    let seen = std::mem::replace(&mut of.legacy_seen, context.legacy_count);
                    if seen != context.legacy_count
                        && let Some(legacy) =
                            context.legacy.and_then(|legacy| self.streams.get(&legacy))
                    {
                        after.push(legacy.tail.clone());
                    }
                }
                StreamKind::Legacy => {
                    context.legacy_count += 1;
                    after.extend(std::mem::take(&mut context.fresh_gone).points());
                    for fresh in context.fresh.drain(..) {
                        if let Some(of) = self.streams.get_mut(&fresh) {
                            of.fresh = false;
                            after.push(of.tail.clone());
                        }
                    }
                }
            }
        }
        let job =
            Job { agent: Agent(Who::Stream(name, Part::Work)), slot, action, call: call.clone() };
        let tail = self.submit(job, base, after);
        if let Some(of) = self.streams.get_mut(&stream) {
            of.tail = tail;
        }
    }

    /// Later work of a stream waits for something, without an operation in the stream.
    pub(super) fn hold(&mut self, call: &Arc<Call>, stream: StreamId, point: Point) {
        let Some(of) = self.streams.get_mut(&stream) else { return };
        let agent = Agent(Who::Stream(of.name.clone(), Part::Work));
        let job = Job { agent, slot: of.slot, action: Action::Nothing, call: call.clone() };
        let tail = std::mem::take(&mut of.tail);
        let tail = self.submit(job, Clock::default(), vec![tail, point]);
        if let Some(of) = self.streams.get_mut(&stream) {
            of.tail = tail;
        }
    }

    pub(super) fn stream_name(&self, stream: StreamId) -> String {
        let name = self.streams.get(&stream).map(|of| of.name.to_string());
        name.unwrap_or_else(|| format!("{:#x}", stream.0))
    }

    pub(super) fn tail(&self, stream: StreamId) -> Point {
        self.streams.get(&stream).map(|of| of.tail.clone()).unwrap_or_default()
    }
}
