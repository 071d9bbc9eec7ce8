//! What each operation does.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use crate::checker::{Checker, Event, HostOrder, QUERIES, Stream, is_event, is_stream};
use crate::graph::Capture;
use crate::op::{
    Access, AccessKind, By, Call, Cell, Compare, ContextId, EventId, FunctionId, Op, StreamId, What,
};
use crate::report::{Agent, Who};
use crate::task::{Action, Job, Point};

impl Checker {
    pub(super) fn operation(&mut self, call: &Arc<Call>, op: Op<'_>) {
        match op {
            Op::StreamCreate { stream, context, kind, name } => {
                self.object(call, is_stream(stream), AccessKind::Allocate);
                self.create_stream(stream, context, kind, name);
                // A default stream has no call that creates it.
                if let Some(of) = self.streams.get(&stream).filter(|_| !call.name.is_empty()) {
                    of.name.set_created(call);
                }
            }
            Op::StreamName { stream, name } => {
                self.stream(stream);
                if let Some(of) = self.streams.get(&stream) {
                    of.name.set_given(name);
                }
            }
            Op::StreamDestroy { stream } => {
                self.object(call, is_stream(stream), AccessKind::Write);
                self.destroy_stream(stream);
            }
            Op::EventCreate { event, interprocess, name } => {
                self.object(call, is_event(event), AccessKind::Allocate);
                let name = name.map(str::to_owned);
                self.events.insert(event, Event { name, interprocess, ..Event::default() });
            }
            Op::EventShared { event } => {
                self.events.entry(event).or_default().interprocess = true;
            }
            Op::EventDestroy { event } => {
                self.object(call, is_event(event), AccessKind::Write);
                self.events.remove(&event);
            }
            Op::ContextDestroy { context } => {
                let streams = self.contexts.remove(&context).map(|of| of.streams);
                for stream in streams.unwrap_or_default() {
                    self.object(call, is_stream(stream), AccessKind::Write);
                    self.destroy_stream(stream);
                }
            }
            Op::ThreadName { thread, name } => {
                self.ensure(By::Thread(thread));
                if let Some(of) = self.threads.get_mut(&thread) {
                    of.name = name.into();
                }
            }
            Op::Work { stream, accesses } => {
                self.stream_work(call, stream, Action::Work(Cow::Borrowed(accesses)));
            }
            Op::Record { event, stream, external } => self.record(call, event, stream, external),
            Op::Wait { stream, event, external } => self.wait(call, stream, event, external),
            Op::Join { stream, event } => self.join(call, stream, event),
            Op::CaptureLeft { what } => self.left_a_capture(call, what),
            Op::ContextRecord { context, event } => self.context_record(call, context, event),
            Op::ContextWait { context, event } => {
                self.object(call, is_event(event), AccessKind::Read);
                let Some(point) = self.recorded(call, event, None) else { return };
                let of = self.contexts.entry(context).or_default();
                of.entry.push(point.clone());
                for stream in of.streams.clone() {
                    self.hold(call, stream, point.clone());
                }
            }
            Op::Barrier => self.barrier(call),
            Op::WriteValue { stream, cell, value } => {
                self.stream_work(call, stream, Action::WriteValue(cell, value));
            }
            Op::WaitValue { stream, cell, value, compare } => {
                self.stream_work(call, stream, Action::WaitValue(cell, value, compare));
            }
            Op::Function { stream, function, accesses } => {
                self.function(call, stream, function, accesses);
            }
            Op::FunctionBegin { function } => self.begin_function(function),
            Op::FunctionEnd { function } => self.end_function(function),
            Op::CaptureBegin { stream } => self.begin_capture(stream),
            Op::CaptureEnd { stream, graph } => self.end_capture(call, stream, graph),
            Op::GraphDefine { graph, nodes } => {
                let nodes = self.flatten(nodes);
                self.graphs.insert(graph, nodes.into());
            }
            Op::GraphCopy { from, to } => {
                if let Some(nodes) = self.graphs.get(&from).cloned() {
                    self.graphs.insert(to, nodes);
                }
            }
            Op::GraphDestroy { graph } => {
                self.graphs.remove(&graph);
            }
            Op::Launch { stream, graph, functions } => {
                self.launch(call, stream, graph, functions);
            }
            Op::WaitEnded { call: wait, cell } => self.end_wait(call.by, wait, cell),
            Op::Allocate { address, bytes } => {
                let access = Access::allocate(address, bytes);
                let range = access.range.clone();
                self.operation(call, Op::Host { accesses: &[access] });
                self.allocations.begin(range, call);
            }
            Op::Host { accesses } => {
                let (slot, mut clock) = self.actor(call.by);
                let agent = self.agent(call.by);
                self.work(accesses, slot, &mut clock, &agent, call);
                self.advance(call.by, &clock);
            }
            Op::HostWriteValue { cell, value } => {
                let (slot, mut clock) = self.actor(call.by);
                let agent = self.agent(call.by);
                self.write_value(cell, value, slot, &mut clock, &agent, call);
                self.advance(call.by, &clock);
            }
            Op::FoundValue { cell, value } => self.found_value(call, cell, value),
            Op::HostSawValue { cell, value } => self.host_saw_value(call, cell, value),
            Op::Synchronize { what } => {
                let mark = self.begins_to_wait(call, what);
                self.acquire(call.by, &mark);
            }
            Op::Query { what, done } => self.query(call, what, done),
            Op::HandOver { token } => {
                let clock = self.clock_of(call.by);
                self.tokens.entry(token).or_default().join(&clock);
            }
            Op::TakeOver { token } => {
                if let Some(clock) = self.tokens.get(&token).cloned() {
                    self.learn(call.by, &clock);
                }
            }
            Op::ThreadStart { thread } => {
                let clock = self.clock_of(call.by);
                if self.options.host_order == HostOrder::Reported {
                    self.leave_thread(thread);
                    self.add_thread(thread, clock);
                }
            }
            Op::ThreadJoin { thread } => {
                if self.options.host_order == HostOrder::Reported
                    && let Some(of) = self.threads.get(&thread)
                {
                    let clock = of.clock.clone();
                    self.learn(call.by, &clock);
                    self.leave_thread(thread);
                }
            }
            Op::ThreadEnd => {
                if let By::Thread(thread) = call.by {
                    self.end_thread(thread);
                }
            }
        }
    }

    fn context_record(&mut self, call: &Arc<Call>, context: ContextId, event: EventId) {
        self.object(call, is_event(event), AccessKind::AtomicWrite);
        let points = self.of_context(context);
        let base = self.clock_of(call.by);
        // It belongs to no stream, and does nothing itself.
        let agent = Agent(Who::Thread(Arc::from("of a context")));
        let job = Job { agent, slot: 0, action: Action::Nothing, call: call.clone() };
        let point = self.submit(job, base, points);
        self.set_record(call, event, point);
    }

    fn barrier(&mut self, call: &Arc<Call>) {
        let contexts: Vec<ContextId> = self.contexts.keys().copied().collect();
        let points: Vec<Point> = contexts.iter().flat_map(|of| self.of_context(*of)).collect();
        // What is not over yet may be waiting for the host.
        for clock in points.iter().filter_map(Point::clock).cloned().collect::<Vec<_>>() {
            self.learn(call.by, &clock);
        }
        let agent = Agent(Who::Thread(Arc::from("of all contexts")));
        let job = Job { agent, slot: 0, action: Action::Nothing, call: call.clone() };
        let point = self.submit(job, self.clock_of(call.by), points);
        for of in self.contexts.values_mut() {
            of.entry.push(point.clone());
        }
        for stream in self.streams.keys().copied().collect::<Vec<_>>() {
            self.hold(call, stream, point.clone());
        }
        for capture in self.captures.values_mut() {
            let mut all: Vec<usize> = capture.fronts.values().flatten().copied().collect();
            all.sort_unstable();
            all.dedup();
            capture.fronts.values_mut().for_each(|front| front.clone_from(&all));
        }
    }

    fn function(
        &mut self,
        call: &Arc<Call>,
        stream: StreamId,
        function: Option<FunctionId>,
        accesses: &[Access],
    ) {
        let accesses = Cow::Borrowed(accesses);
        match function {
            Some(function) => {
                self.stream_work(call, stream, Action::Function(accesses));
                // In a capture it is a node like others.
                let captured = self.streams.get(&stream).is_some_and(|of| of.capture.is_some());
                if !captured
                    && let Some(Stream { tail: Point::Pending(unfinished), .. }) =
                        self.streams.get(&stream)
                {
                    self.functions.insert(function, unfinished.task);
                }
            }
            None => self.stream_work(call, stream, Action::Work(accesses)),
        }
    }

    fn begin_capture(&mut self, stream: StreamId) {
        self.stream(stream);
        self.counter += 1;
        let fronts = HashMap::from([(stream, Vec::new())]);
        self.captures.insert(self.counter, Capture { origin: stream, nodes: Vec::new(), fronts });
        if let Some(of) = self.streams.get_mut(&stream) {
            of.capture = Some(self.counter);
        }
    }

    fn found_value(&mut self, call: &Arc<Call>, cell: Cell, value: u64) {
        let (slot, mut clock) = self.actor(call.by);
        let time = self.tick(slot, &mut clock, call);
        self.advance(call.by, &clock);
        let floor = &self.floor;
        let is_before = |slot, time| clock.get(slot) >= time || floor.get(slot) >= time;
        let mut before = self.values.everything();
        before.join(&clock);
        let woken = self.values.write(cell, value, (slot, time), &before, is_before);
        self.ready.extend(woken.into_iter().map(Reverse));
    }

    fn host_saw_value(&mut self, call: &Arc<Call>, cell: Cell, value: u64) {
        let (slot, mut clock) = self.actor(call.by);
        let floor = &self.floor;
        let is_before = |slot, time| clock.get(slot) >= time || floor.get(slot) >= time;
        if let Some(seen) = self.values.seen(cell, value, Compare::Equal, is_before) {
            clock.join(&seen);
        }
        let time = self.tick(slot, &mut clock, call);
        let agent = self.agent(call.by);
        self.touch(AccessKind::AtomicRead, &[cell.access()], (slot, time), &clock, &agent, call);
        self.learn(call.by, &clock);
    }

    fn query(&mut self, call: &Arc<Call>, what: What, done: bool) {
        if done {
            self.saw(call.by, what);
        } else if self.options.warnings.ignored_query
            && let By::Thread(thread) = call.by
        {
            let mark = self.mark(what);
            let Some(thread) = self.threads.get_mut(&thread) else { return };
            if thread.queries.len() == QUERIES {
                thread.queries.pop_front();
            }
            thread.queries.push_back((mark, call.clone()));
        }
    }
}
