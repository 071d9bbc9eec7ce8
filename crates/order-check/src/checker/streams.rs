//! Streams and contexts, and what goes into them.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use crate::agent::{Agent, Part, StreamName, Who};
use crate::checker::accesses::is_stream;
use crate::checker::tasks::{Step, Tasks};
use crate::clock::{Clock, Slot};
use crate::graph::Capture;
use crate::map::Map;
use crate::op::{
    Access, AccessKind, By, Call, Cell, ContextId, FunctionId, NodeWork, StreamId, StreamKind,
    ThreadId,
};
use crate::task::{Action, Actor, Mark, Point, Points};

#[derive(Debug)]
struct Stream {
    name: Arc<StreamName>,
    slot: Slot,
    /// For the branches of graphs, which all launches in this stream share.
    branches: Vec<Slot>,
    tail: Point,
    /// The clock of a submitting thread that the tail is after already.
    joined: Clock,
    /// The last legacy operation that it waited for.
    legacy_seen: u64,
    /// Whether it has work that the legacy default stream has not waited for.
    fresh: bool,
    capture: Option<u64>,
}

#[derive(Debug, Default)]
struct Context {
    /// In the order of their numbers, so that what is found depends on nothing else.
    streams: Vec<StreamId>,
    legacy: Option<StreamId>,
    /// How many operations the legacy default stream has had.
    legacy_count: u64,
    /// Blocking streams with work that the legacy default stream has not waited for.
    fresh: Vec<StreamId>,
    /// The ends of such streams that are destroyed.
    fresh_gone: Points,
    /// Its work that is in none of its streams: they are destroyed, or are another context's.
    elsewhere: Points,
    /// What streams wait for that do not exist yet.
    entry: Points,
}

#[derive(Debug, Default)]
pub(super) struct Streams {
    pub(super) tasks: Tasks,
    contexts: Map<ContextId, Context>,
    streams: Map<StreamId, Stream>,
    captures: Map<u64, Capture>,
    last_capture: u64,
}

impl Streams {
    /// Adds a stream that was not created.
    pub(super) fn ensure(&mut self, stream: StreamId) {
        if !self.streams.contains_key(&stream) {
            self.begin(stream, ContextId(0), StreamKind::Blocking, None);
        }
    }

    fn begin(
        &mut self,
        stream: StreamId,
        context: ContextId,
        kind: StreamKind,
        name: Option<&str>,
    ) {
        self.end(stream);
        let name = name.map_or_else(|| format!("{:#x}", stream.0), str::to_owned);
        let name = Arc::new(StreamName::new(stream, name, context, kind));
        let slot = self.tasks.accesses.slots.begin();
        let context = self.contexts.entry(context).or_default();
        let at = context.streams.partition_point(|other| *other < stream);
        context.streams.insert(at, stream);
        if kind == StreamKind::Legacy {
            context.legacy = Some(stream);
        }
        let entry: Vec<Point> = context.entry.points().collect();
        let begun = Stream {
            name,
            slot,
            branches: Vec::new(),
            tail: Point::default(),
            joined: Clock::default(),
            legacy_seen: 0,
            fresh: false,
            capture: None,
        };
        self.streams.insert(stream, begun);
        if !entry.is_empty() {
            let call = Arc::new(Call::new("cuStreamCreate", 0, ThreadId(0)));
            self.join_in(&call, stream, entry);
        }
    }

    fn end(&mut self, stream: StreamId) {
        let Some(ended) = self.streams.remove(&stream) else { return };
        self.tasks.accesses.reports.stream_ends(stream);
        // With its context, nothing is left that could wait for the whole of it.
        if let Some(context) = self.contexts.get_mut(&ended.name.context) {
            context.streams.retain(|other| *other != stream);
            if context.legacy == Some(stream) {
                context.legacy = None;
            }
            if ended.fresh {
                context.fresh.retain(|other| *other != stream);
                context.fresh_gone.push(ended.tail.clone());
            }
            context.elsewhere.push(ended.tail.clone());
        }
        for slot in ended.branches.into_iter().chain([ended.slot]) {
            self.tasks.accesses.slots.leave(slot, ended.tail.clone());
        }
    }

    /// Submits the next operation of a stream, which also waits for `after`.
    pub(super) fn in_stream(
        &mut self,
        call: &Arc<Call>,
        stream: StreamId,
        action: Action<'_>,
        mut after: Vec<Point>,
    ) {
        let submit = self.tasks.clock_of(call.by);
        let Some(state) = self.streams.get_mut(&stream) else {
            self.begin(stream, ContextId(0), StreamKind::Blocking, None);
            return self.in_stream(call, stream, action, after);
        };
        let tail = std::mem::take(&mut state.tail);
        let mut base = Clock::default();
        // A thread that is after nothing more since adds nothing.
        let mut joined = state.joined.same(&submit);
        match tail {
            Point::Done(clock) => base = clock,
            pending => {
                after.push(pending);
                joined = false;
            }
        }
        if !joined {
            base.join(&submit);
            state.joined = submit;
        }
        let (name, slot) = (state.name.clone(), state.slot);
        if let Some(context) = self.contexts.get_mut(&name.context) {
            match name.kind {
                StreamKind::NonBlocking => {}
                StreamKind::Blocking => {
                    if !state.fresh {
                        state.fresh = true;
                        context.fresh.push(stream);
                    }
                    let seen = std::mem::replace(&mut state.legacy_seen, context.legacy_count);
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
                        if let Some(fresh) = self.streams.get_mut(&fresh) {
                            fresh.fresh = false;
                            after.push(fresh.tail.clone());
                        }
                    }
                }
            }
        }
        let agent = Agent(Who::Stream(name, Part::Work));
        let actor = Actor { agent, slot, call: call.clone() };
        let tail = self.tasks.submit(actor, action, base, after);
        self.set_tail(stream, tail);
    }

    /// Later work of a stream waits for something, without an operation in the stream.
    fn hold(&mut self, call: &Arc<Call>, stream: StreamId, point: Point) {
        self.join_in(call, stream, vec![self.tail(stream), point]);
    }

    /// All later work of a context waits for something.
    pub(super) fn hold_context(&mut self, call: &Arc<Call>, context: ContextId, point: Point) {
        let context = self.contexts.entry(context).or_default();
        context.entry.push(point.clone());
        for stream in context.streams.clone() {
            self.hold(call, stream, point.clone());
        }
    }

    /// A stream goes on where all of these end.
    pub(super) fn join_in(&mut self, call: &Arc<Call>, stream: StreamId, ends: Vec<Point>) {
        let Some((name, slot)) = self.agent(stream) else { return };
        let actor = Actor { agent: Agent(Who::Stream(name, Part::Work)), slot, call: call.clone() };
        let tail = self.tasks.submit(actor, Action::Nothing, Clock::default(), ends);
        self.set_tail(stream, tail);
    }

    #[inline]
    fn set_tail(&mut self, stream: StreamId, tail: Point) {
        if let Some(state) = self.streams.get_mut(&stream) {
            state.tail = tail;
        }
    }

    pub(super) fn tail(&self, stream: StreamId) -> Point {
        self.streams.get(&stream).map(|state| state.tail.clone()).unwrap_or_default()
    }

    /// The host has seen that a stream is done. False if this may be more than its own work.
    pub(super) fn saw(&mut self, by: By, stream: StreamId) -> bool {
        let own = self.streams.get(&stream).filter(|state| state.name.kind != StreamKind::Legacy);
        own.is_some_and(|state| self.tasks.saw(by, &state.tail))
    }

    /// The ends of the work for which a call waits that waits for a stream.
    pub(super) fn work_of_stream(&self, stream: StreamId) -> Vec<Point> {
        let Some(state) = self.streams.get(&stream) else { return Vec::new() };
        let mut points = vec![state.tail.clone()];
        if state.name.kind == StreamKind::Legacy
            && let Some(context) = self.contexts.get(&state.name.context)
        {
            let streams = context.streams.iter().filter_map(|stream| self.streams.get(stream));
            let blocking = streams.filter(|stream| stream.name.kind == StreamKind::Blocking);
            points.extend(blocking.map(|stream| stream.tail.clone()));
            points.extend(context.fresh_gone.points());
        }
        points
    }

    /// The ends of the work for which a call waits that waits for a context.
    pub(super) fn work_of_context(&self, context: ContextId) -> Vec<Point> {
        let Some(context) = self.contexts.get(&context) else { return Vec::new() };
        let streams = context.streams.iter().filter_map(|stream| self.streams.get(stream));
        streams.map(|stream| stream.tail.clone()).chain(context.elsewhere.points()).collect()
    }

    fn work_of_all(&self) -> Vec<Point> {
        self.contexts.keys().flat_map(|context| self.work_of_context(*context)).collect()
    }

    /// A point after some work, and after all that the calling thread is after. It belongs to no
    /// stream, and does nothing itself.
    pub(super) fn after_all(
        &mut self,
        call: &Arc<Call>,
        name: &'static str,
        points: Vec<Point>,
    ) -> Point {
        let agent = Agent(Who::Thread(Arc::from(name)));
        let actor = Actor { agent, slot: 0, call: call.clone() };
        self.tasks.submit(actor, Action::Nothing, self.tasks.clock_of(call.by), points)
    }

    pub(super) fn agent(&self, stream: StreamId) -> Option<(Arc<StreamName>, Slot)> {
        self.streams.get(&stream).map(|state| (state.name.clone(), state.slot))
    }

    /// The slot of a stream's branch.
    pub(super) fn branch(&mut self, stream: StreamId, index: usize) -> Slot {
        if let Some(&slot) = self.streams.get(&stream).and_then(|state| state.branches.get(index)) {
            return slot;
        }
        let slot = self.tasks.accesses.slots.begin();
        if let Some(state) = self.streams.get_mut(&stream) {
            state.branches.push(slot);
        }
        slot
    }

    pub(super) fn name(&self, stream: StreamId) -> String {
        let name = self.streams.get(&stream).map(|state| state.name.to_string());
        name.unwrap_or_else(|| format!("{:#x}", stream.0))
    }

    /// A stream has waited for something that is not known.
    pub(super) fn waited_for_unknown(&mut self, stream: StreamId, call: &Call, text: String) {
        if self.streams.contains_key(&stream) {
            self.tasks.accesses.reports.waited_for_unknown(stream, call.number, text);
        }
    }

    /// The capture that a stream is in.
    pub(super) fn capture_of(&self, stream: StreamId) -> Option<u64> {
        self.streams.get(&stream)?.capture
    }

    #[inline]
    pub(super) fn capture_mut(&mut self, stream: StreamId) -> Option<(u64, &mut Capture)> {
        let id = self.streams.get(&stream)?.capture?;
        Some((id, self.captures.get_mut(&id)?))
    }

    /// A stream is after these nodes of a capture, and is captured from now on. False if the
    /// capture has ended.
    pub(super) fn join_capture(&mut self, stream: StreamId, id: u64, nodes: &[usize]) -> bool {
        let Some(capture) = self.captures.get_mut(&id) else { return false };
        capture.join(stream, nodes);
        if let Some(state) = self.streams.get_mut(&stream) {
            state.capture = Some(id);
        }
        true
    }

    pub(super) fn end_capture(&mut self, stream: StreamId) -> Option<Capture> {
        let id = self.capture_of(stream)?;
        let capture = self.captures.remove(&id)?;
        let captured = self.streams.values_mut().filter(|state| state.capture == Some(id));
        captured.for_each(|state| state.capture = None);
        Some(capture)
    }

    /// The host has waited for the marked work.
    pub(super) fn acquire(&mut self, by: By, mark: &Mark) {
        for point in &mark.0 {
            // The call has returned, so the work is over, whatever it was that it waited for.
            if let Point::Pending(unfinished) = point
                && unfinished.clock.get().is_none()
            {
                self.force(unfinished.task);
            }
            if let Some(clock) = point.clock() {
                self.tasks.learn(by, clock);
            }
        }
    }

    /// Ends a task, even if something still holds it back here.
    pub(super) fn force(&mut self, id: u64) {
        while self.tasks.queue.has(id) {
            self.force_step(self.tasks.queue.oldest_before(id).unwrap_or(id));
        }
    }

    /// Takes a task for which nothing is left to wait to be over.
    fn force_step(&mut self, id: u64) {
        let Some(mut task) = self.tasks.queue.take(id) else { return self.tasks.drain() };
        if let Step::Blocked(cell) = self.tasks.step(&mut task) {
            if self.tasks.may_be_unseen(cell) {
                // All that is over, and all that threads know.
                let points = self.work_of_all();
                points.iter().filter_map(Point::clock).for_each(|clock| task.base.join(clock));
                let threads = &self.tasks.accesses.threads;
                task.base.join(&threads.host.1);
                threads.join_all(&mut task.base);
            }
            if let Some(stream) = task.actor.agent.stream() {
                let call = &task.actor.call;
                let text =
                    format!("stream {stream} waited in {call} for a value that no known write set");
                self.waited_for_unknown(stream.id, call, text);
            }
            self.tasks.unseen_write(cell, &mut task);
        }
        self.tasks.queue.finish(task);
        self.tasks.drain();
    }

    /// Forgets what everything that may still come is ordered after. Returns how much is left.
    pub(super) fn retire(&mut self) -> usize {
        let left = self.tasks.retire();
        let floor = &self.tasks.accesses.slots.floor;
        for stream in self.streams.values_mut() {
            stream.tail.prune(floor);
            stream.joined.prune(floor);
        }
        for context in self.contexts.values_mut() {
            for points in [&mut context.elsewhere, &mut context.fresh_gone, &mut context.entry] {
                points.prune(floor);
            }
        }
        left + self.streams.len()
    }
}

/// One method for each operation of streams.
impl Streams {
    pub(super) fn stream_create(
        &mut self,
        call: &Arc<Call>,
        stream: StreamId,
        context: ContextId,
        kind: StreamKind,
        name: Option<&str>,
    ) {
        self.tasks.accesses.object(call, is_stream(stream), AccessKind::Allocate);
        self.begin(stream, context, kind, name);
        // A default stream has no call that creates it.
        if let Some(state) = self.streams.get(&stream).filter(|_| !call.name.is_empty()) {
            state.name.set_created(call);
        }
    }

    pub(super) fn stream_name(&mut self, stream: StreamId, name: &str) {
        self.ensure(stream);
        if let Some(state) = self.streams.get(&stream) {
            state.name.set_given(name);
        }
    }

    pub(super) fn stream_destroy(&mut self, call: &Arc<Call>, stream: StreamId) {
        self.tasks.accesses.object(call, is_stream(stream), AccessKind::Write);
        self.end(stream);
    }

    pub(super) fn context_destroy(&mut self, call: &Arc<Call>, context: ContextId) {
        let streams = self.contexts.remove(&context).map(|context| context.streams);
        for stream in streams.unwrap_or_default() {
            self.stream_destroy(call, stream);
        }
    }

    /// The work of a captured stream is none yet.
    pub(super) fn context_shares(&mut self, context: ContextId, stream: StreamId) {
        if self.capture_of(stream).is_none() {
            let tail = self.tail(stream);
            self.contexts.entry(context).or_default().elsewhere.push(tail);
        }
    }

    /// Work, a write of a value or a wait for one: a node if the stream is captured.
    pub(super) fn work(&mut self, call: &Arc<Call>, stream: StreamId, action: Action<'_>) {
        self.tasks.accesses.object(call, is_stream(stream), AccessKind::Read);
        let Some((_, capture)) = self.capture_mut(stream) else {
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

    pub(super) fn function(
        &mut self,
        call: &Arc<Call>,
        stream: StreamId,
        function: Option<FunctionId>,
        accesses: &[Access],
    ) {
        let accesses = Cow::Borrowed(accesses);
        let Some(function) = function else {
            return self.work(call, stream, Action::Work(accesses));
        };
        self.work(call, stream, Action::Function(accesses));
        // In a capture it is a node like others.
        if let Some(Stream { tail, capture: None, .. }) = self.streams.get(&stream) {
            self.tasks.queue.is_function(function, tail);
        }
    }

    pub(super) fn function_begin(&mut self, function: FunctionId) {
        while let Some((id, task)) = self.tasks.queue.function(function)
            && !task.running
            && let Some(oldest) = self.tasks.queue.oldest_before(id)
        {
            self.force_step(oldest);
        }
        self.tasks.function_began(function);
    }

    pub(super) fn capture_begin(&mut self, stream: StreamId) {
        self.ensure(stream);
        self.last_capture += 1;
        let fronts = HashMap::from([(stream, Vec::new())]);
        let capture = Capture { origin: stream, nodes: Vec::new(), fronts };
        self.captures.insert(self.last_capture, capture);
        if let Some(state) = self.streams.get_mut(&stream) {
            state.capture = Some(self.last_capture);
        }
    }

    /// A wait for a value is over. If its task still exists, an unreported writer ended it.
    pub(super) fn wait_ended(&mut self, call: &Call, wait: u64, cell: Cell) {
        let Some(id) = self.tasks.queue.wait_of_call(wait, cell) else { return };
        let mut past = self.tasks.clock_of(call.by);
        if self.tasks.accesses.threads.are_reported() {
            // Any thread may have written it.
            self.tasks.accesses.threads.join_all(&mut past);
        }
        past.join(&self.tasks.values.everything());
        self.tasks.queue.put_after(id, &past);
        self.force(id);
    }

    pub(super) fn barrier(&mut self, call: &Arc<Call>) {
        let points = self.work_of_all();
        // What is not over yet may be waiting for the host.
        for clock in points.iter().filter_map(Point::clock) {
            self.tasks.learn(call.by, clock);
        }
        let point = self.after_all(call, "of all contexts", points);
        for context in self.contexts.values_mut() {
            context.entry.push(point.clone());
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
}
