//! The checker: who is after what, and the operations that make it so.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use crate::clock::{Clock, Slot};
use crate::graph::{Capture, append};
use crate::op::{
    Access, AccessKind, By, Call, Cell, Compare, ContextId, EventId, FunctionId, GraphId, Location,
    Node, NodeWork, Op, StreamId, StreamKind, ThreadId, TokenId, What,
};
use crate::report::{
    Agent, Finding, Found, Part, Problem, Side, StreamName, Warning, Who, by_name,
};
use crate::shadow::{Entry, Hit, Shadow};
use crate::task::{Action, Job, Point, Task, Unfinished};
use crate::values::Values;

/// Handles are numbers that nobody chooses to harm us with, so that a multiplication is enough.
#[derive(Default)]
struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        let mixed = (self.0 ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = mixed ^ mixed >> 32;
    }
}

type Map<K, V> = HashMap<K, V, BuildHasherDefault<Mix>>;

/// What is assumed about the order of the threads of the host, of which a driver sees calls only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostOrder {
    /// Calls are ordered as they are told, whichever thread makes them, and host functions among
    /// them: a call is after all that threads have waited for before, and after the host functions
    /// that have ended. This reports no order as missing that threads may have made among
    /// themselves. It finds nothing that is wrong between two threads.
    #[default]
    Submission,
    /// Threads are ordered only by what is told of them: [`Op::HandOver`], [`Op::TakeOver`],
    /// [`Op::ThreadStart`] and [`Op::ThreadJoin`]. A thread that nobody was told of is after what
    /// all other threads are after: one of them has started it.
    Told,
}

/// Which warnings are given. None is, unless asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Warnings {
    /// [`Warning::NeverRecorded`].
    pub never_recorded: bool,
    /// [`Warning::LostRecord`].
    pub lost_record: bool,
    /// [`Warning::IgnoredQuery`].
    pub ignored_query: bool,
    /// [`Warning::UselessWait`].
    pub useless_wait: bool,
    /// [`Warning::CaptureLeak`].
    pub capture_leak: bool,
}

impl Warnings {
    /// All of them.
    #[must_use]
    pub fn all() -> Self {
        Self {
            never_recorded: true,
            lost_record: true,
            ignored_query: true,
            useless_wait: true,
            capture_leak: true,
        }
    }
}

/// How a [`Checker`] checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The order of the host's threads.
    pub host_order: HostOrder,
    /// The warnings.
    pub warnings: Warnings,
    /// After how many operations, at the earliest, accesses are forgotten that nothing can race
    /// with any more. It has no effect on what is found.
    pub retire_every: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { host_order: HostOrder::default(), warnings: Warnings::default(), retire_every: 4096 }
    }
}

/// How much a [`Checker`] remembers now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Size {
    /// Ranges of bytes that differ in who touched them.
    pub ranges: usize,
    /// Places in the clocks: streams, threads, and the widest graph of each stream.
    pub agents: usize,
    /// Operations that something holds back.
    pub tasks: usize,
}

/// Some work, to be waited for: see [`Checker::mark`].
#[derive(Clone, Debug, Default)]
pub struct Mark(Vec<Point>);

/// The calls of an agent that are kept to say what another one is after.
const RECENT: usize = 16;
/// Failed queries of a thread that are kept.
const QUERIES: usize = 8;
/// Tasks that may be held back; beyond that the oldest go on as if by an order from outside.
const TASKS: usize = 1 << 16;

#[derive(Debug, Default)]
struct SlotState {
    time: u64,
    recent: VecDeque<(u64, Arc<Call>)>,
}

#[derive(Debug)]
struct Thread {
    name: Arc<str>,
    slot: Slot,
    clock: Clock,
    live: bool,
    /// Queries that said "not done", the last ones.
    queries: VecDeque<(Mark, Arc<Call>)>,
}

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
    /// What may order it and is not known.
    outside: VecDeque<String>,
}

#[derive(Debug)]
struct Record {
    point: Point,
    call: Arc<Call>,
    used: bool,
}

#[derive(Debug, Default)]
struct Event {
    name: Option<String>,
    interprocess: bool,
    record: Option<Record>,
    /// The last record is a part of this capture, after these nodes.
    captured: Option<(u64, Vec<usize>)>,
    /// A record that nobody waited for, and the one that replaced it.
    lost: Option<(Arc<Call>, Arc<Call>)>,
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
    /// The same of streams that are destroyed.
    fresh_gone: Vec<Point>,
    /// The work of streams that are destroyed.
    gone: Vec<Point>,
    /// What streams wait for that do not exist yet.
    entry: Vec<Point>,
}

/// Where a report was made: a line of source, or else a function and an agent.
type Place = (Cow<'static, str>, Result<Location, String>);

/// Finds accesses that no order joins in a sequence of operations. See the [crate].
#[derive(Debug)]
pub struct Checker {
    options: Options,
    slots: Vec<SlotState>,
    spare: Vec<Slot>,
    /// Slots whose owners are gone, and the end of their work.
    leaving: Vec<(Slot, Point)>,
    /// All threads, in [`HostOrder::Submission`].
    host: (Slot, Clock),
    threads: Map<ThreadId, Thread>,
    tokens: Map<TokenId, Clock>,
    contexts: Map<ContextId, Context>,
    streams: Map<StreamId, Stream>,
    events: Map<EventId, Event>,
    graphs: Map<GraphId, Arc<[Node]>>,
    captures: Map<u64, Capture>,
    functions: Map<FunctionId, u64>,
    tasks: Map<u64, Task>,
    /// Those that nothing holds back, the oldest first.
    ready: BinaryHeap<Reverse<u64>>,
    /// For tasks and captures.
    counter: u64,
    values: Values,
    memory: Shadow,
    /// Events and streams, as if each were a byte.
    objects: Shadow,
    /// What all that may still come is after. Clocks do not repeat it.
    floor: Clock,
    until_retire: usize,
    findings: Vec<Finding>,
    reported: HashSet<(Place, Place)>,
    warned: HashSet<(Place, Place)>,
    hits: Vec<Hit>,
}

impl std::fmt::Debug for Mix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Mix")
    }
}

impl Default for Checker {
    fn default() -> Self {
        Self::new(Options::default())
    }
}

/// Where an object is among the objects: events at even places, streams at odd ones.
fn is_event(event: EventId) -> Range<u64> {
    let at = event.0 << 1;
    at..at + 1
}

fn is_stream(stream: StreamId) -> Range<u64> {
    let at = stream.0 << 1 | 1;
    at..at.saturating_add(1)
}

impl Checker {
    /// A checker that was told nothing.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self {
            options,
            slots: vec![SlotState::default()],
            spare: Vec::new(),
            leaving: Vec::new(),
            host: (0, Clock::default()),
            threads: Map::default(),
            tokens: Map::default(),
            contexts: Map::default(),
            streams: Map::default(),
            events: Map::default(),
            graphs: Map::default(),
            captures: Map::default(),
            functions: Map::default(),
            tasks: Map::default(),
            ready: BinaryHeap::new(),
            counter: 0,
            values: Values::default(),
            memory: Shadow::default(),
            objects: Shadow::default(),
            floor: Clock::default(),
            until_retire: options.retire_every,
            findings: Vec::new(),
            reported: HashSet::new(),
            warned: HashSet::new(),
            hits: Vec::new(),
        }
    }

    /// What was found since this was asked last. Each pair of places is reported once.
    pub fn take_findings(&mut self) -> Vec<Finding> {
        std::mem::take(&mut self.findings)
    }

    /// How much is remembered.
    #[must_use]
    pub fn size(&self) -> Size {
        Size {
            ranges: self.memory.len(),
            agents: self.slots.len() - self.spare.len(),
            tasks: self.tasks.len(),
        }
    }

    /// The work that a call waits for that begins now. It is for calls of many threads: with
    /// [`Op::Synchronize`] told when the call returns, work would count that another thread
    /// submitted meanwhile.
    #[must_use]
    pub fn mark(&self, what: What) -> Mark {
        let mut points = Vec::new();
        match what {
            What::Event(event) => {
                points.extend(
                    self.events
                        .get(&event)
                        .and_then(|event| Some(event.record.as_ref()?.point.clone())),
                );
            }
            What::Stream(stream) => {
                let Some(of) = self.streams.get(&stream) else { return Mark(points) };
                points.push(of.tail.clone());
                if of.name.kind == StreamKind::Legacy
                    && let Some(context) = self.contexts.get(&of.name.context)
                {
                    let streams =
                        context.streams.iter().filter_map(|stream| self.streams.get(stream));
                    points.extend(
                        streams
                            .filter(|stream| stream.name.kind == StreamKind::Blocking)
                            .map(|stream| stream.tail.clone()),
                    );
                    points.extend(context.fresh_gone.iter().cloned());
                }
            }
            What::Context(context) => points = self.of_context(context),
        }
        Mark(points)
    }

    fn of_context(&self, context: ContextId) -> Vec<Point> {
        let Some(of) = self.contexts.get(&context) else { return Vec::new() };
        let streams = of.streams.iter().filter_map(|stream| self.streams.get(stream));
        streams.map(|stream| stream.tail.clone()).chain(of.gone.iter().cloned()).collect()
    }

    /// A host call has waited for the work of a mark, and has returned without an error.
    pub fn reached(&mut self, call: &Call, mark: &Mark) {
        self.ensure(call.by);
        self.acquire(call.by, mark);
        self.drain();
    }

    /// The next operation. It belongs to `call`, and [`Call::by`] says who made it.
    pub fn apply(&mut self, call: Call, op: Op<'_>) {
        self.ensure(call.by);
        let call = Arc::new(call);
        self.operation(&call, op);
        self.drain();
        while self.tasks.len() > TASKS {
            let Some(&oldest) = self.tasks.keys().min() else { break };
            self.force(oldest);
        }
        self.until_retire = self.until_retire.saturating_sub(1);
        if self.until_retire == 0 {
            self.retire();
        }
    }

    fn operation(&mut self, call: &Arc<Call>, op: Op<'_>) {
        match op {
            Op::StreamCreate { stream, context, kind, name } => {
                self.object(call, is_stream(stream), AccessKind::Allocate);
                self.create_stream(stream, context, kind, name);
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
            Op::EventDestroy { event } => {
                self.object(call, is_event(event), AccessKind::Write);
                self.events.remove(&event);
            }
            Op::ContextDestroy { context } => {
                for stream in
                    self.contexts.remove(&context).map(|of| of.streams).unwrap_or_default()
                {
                    self.object(call, is_stream(stream), AccessKind::Write);
                    self.destroy_stream(stream);
                }
                self.contexts.remove(&context);
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
            Op::ContextRecord { context, event } => {
                self.object(call, is_event(event), AccessKind::Read);
                let points = self.of_context(context);
                let base = self.clock_of(call.by);
                // It belongs to no stream, and does nothing itself.
                let agent = Agent(Who::Thread(Arc::from("of a context")));
                let job = Job { agent, slot: 0, action: Action::Nothing, call: call.clone() };
                let point = self.submit(job, base, points);
                self.set_record(call, event, point);
            }
            Op::ContextWait { context, event } => {
                self.object(call, is_event(event), AccessKind::Read);
                let Some(point) = self.recorded(call, event, None) else { return };
                let of = self.contexts.entry(context).or_default();
                of.entry.push(point.clone());
                for stream in of.streams.clone() {
                    self.hold(call, stream, point.clone());
                }
            }
            Op::WriteValue { stream, cell, value } => {
                self.stream_work(call, stream, Action::WriteValue(cell, value));
            }
            Op::WaitValue { stream, cell, value, compare } => {
                self.stream_work(call, stream, Action::WaitValue(cell, value, compare));
            }
            Op::Function { stream, function, accesses } => {
                let accesses = Cow::Borrowed(accesses);
                match function {
                    Some(function) => {
                        self.stream_work(call, stream, Action::Function(accesses));
                        // In a capture it is a node like others.
                        let captured =
                            self.streams.get(&stream).is_some_and(|of| of.capture.is_some());
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
            Op::FunctionBegin { function } => self.begin_function(function),
            Op::FunctionEnd { function } => self.end_function(function),
            Op::CaptureBegin { stream } => {
                self.stream(stream);
                self.counter += 1;
                let fronts = HashMap::from([(stream, Vec::new())]);
                self.captures
                    .insert(self.counter, Capture { origin: stream, nodes: Vec::new(), fronts });
                if let Some(of) = self.streams.get_mut(&stream) {
                    of.capture = Some(self.counter);
                }
            }
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
            Op::Host { accesses } => {
                let (slot, mut clock) = self.actor(call.by);
                let time = self.tick(slot, &mut clock, call);
                let agent = self.agent(call.by);
                for access in accesses {
                    self.touch(access.kind, &access.range, (slot, time), &clock, &agent, call);
                    self.overwrite(access, (slot, time), &clock);
                }
                self.learn(call.by, &clock);
            }
            Op::HostWriteValue { cell, value } => {
                let (slot, mut clock) = self.actor(call.by);
                let agent = self.agent(call.by);
                self.write_value(cell, value, slot, &mut clock, &agent, call);
                self.learn(call.by, &clock);
            }
            Op::HostSawValue { cell, value } => {
                let (slot, mut clock) = self.actor(call.by);
                let floor = &self.floor;
                let knows = |slot, time| clock.get(slot) >= time || floor.get(slot) >= time;
                if let Some(seen) = self.values.seen(cell, value, Compare::Equal, knows) {
                    clock.join(&seen);
                }
                let time = self.tick(slot, &mut clock, call);
                let agent = self.agent(call.by);
                self.touch(
                    AccessKind::AtomicRead,
                    &cell.range(),
                    (slot, time),
                    &clock,
                    &agent,
                    call,
                );
                self.learn(call.by, &clock);
            }
            Op::Synchronize { what } => {
                if let What::Event(event) = what {
                    self.object(call, is_event(event), AccessKind::Read);
                    self.recorded(call, event, None);
                }
                let mark = self.mark(what);
                self.acquire(call.by, &mark);
            }
            Op::Query { what, done } => {
                let mark = self.mark(what);
                if done {
                    if let What::Event(event) = what
                        && let Some(record) =
                            self.events.get_mut(&event).and_then(|event| event.record.as_mut())
                    {
                        record.used = true;
                    }
                    self.acquire(call.by, &mark);
                } else if let By::Thread(thread) = call.by
                    && let Some(thread) = self.threads.get_mut(&thread)
                {
                    if thread.queries.len() == QUERIES {
                        thread.queries.pop_front();
                    }
                    thread.queries.push_back((mark, call.clone()));
                }
            }
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
                if self.options.host_order == HostOrder::Told {
                    self.leave_thread(thread);
                    self.add_thread(thread, clock);
                }
            }
            Op::ThreadJoin { thread } => {
                if self.options.host_order == HostOrder::Told
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

    // ---- Slots and clocks

    fn new_slot(&mut self) -> Slot {
        self.spare.pop().unwrap_or_else(|| {
            self.slots.push(SlotState::default());
            // There is no memory for more slots than numbers.
            (self.slots.len() - 1) as Slot
        })
    }

    /// The next operation of an agent: a time, which the clock knows from now on.
    fn tick(&mut self, slot: Slot, clock: &mut Clock, call: &Arc<Call>) -> u64 {
        let Some(state) = self.slots.get_mut(slot as usize) else { return 0 };
        state.time += 1;
        if state.recent.len() == RECENT {
            state.recent.pop_front();
        }
        state.recent.push_back((state.time, call.clone()));
        clock.raise(slot, state.time);
        state.time
    }

    fn covers(&self, clock: &Clock, other: &Clock) -> bool {
        let knows =
            |&(slot, time): &(Slot, u64)| clock.get(slot) >= time || self.floor.get(slot) >= time;
        other.entries().iter().all(knows)
    }

    // ---- The host

    fn add_thread(&mut self, thread: ThreadId, clock: Clock) {
        let slot = match self.options.host_order {
            HostOrder::Submission => self.host.0,
            HostOrder::Told => self.new_slot(),
        };
        let name = Arc::from(thread.0.to_string());
        self.threads
            .insert(thread, Thread { name, slot, clock, live: true, queries: VecDeque::new() });
    }

    fn end_thread(&mut self, thread: ThreadId) {
        // If it is the last one, the next one is after all that it is after.
        if self.options.host_order == HostOrder::Told {
            self.host.1.join(&self.agreed());
        }
        if let Some(thread) = self.threads.get_mut(&thread) {
            thread.live = false;
            thread.queries.clear();
        }
    }

    fn leave_thread(&mut self, thread: ThreadId) {
        self.end_thread(thread);
        if let Some(of) = self.threads.remove(&thread) {
            self.leaving.push((of.slot, Point::Done(of.clock)));
        }
    }

    /// Knows a thread that nobody told of.
    fn ensure(&mut self, by: By) {
        let By::Thread(thread) = by else { return };
        let told = self.options.host_order == HostOrder::Told;
        match self.threads.get_mut(&thread) {
            // Its number is another thread's now.
            Some(of) if !of.live && told => self.leave_thread(thread),
            Some(of) => {
                of.live = true;
                return;
            }
            None => {}
        }
        let clock = if told { self.agreed() } else { Clock::default() };
        self.add_thread(thread, clock);
    }

    /// What all threads are after.
    fn agreed(&self) -> Clock {
        // In submission order there is one clock for all of them, and otherwise it is what the last
        // ones agreed about.
        let all = || self.host.1.clone();
        if self.options.host_order == HostOrder::Submission {
            return all();
        }
        let live = self.threads.values().filter(|thread| thread.live);
        live.map(|thread| thread.clock.clone())
            .reduce(|one, two| one.meet(&two))
            .unwrap_or_else(all)
    }

    fn clock_of(&self, by: By) -> Clock {
        let told = self.options.host_order == HostOrder::Told;
        match by {
            By::Function(function) => self
                .functions
                .get(&function)
                .and_then(|task| self.tasks.get(task))
                .map_or_else(|| self.host.1.clone(), |task| task.base.clone()),
            By::Thread(thread) if told => {
                self.threads.get(&thread).map_or_else(Clock::default, |of| of.clock.clone())
            }
            By::Thread(_) => self.host.1.clone(),
        }
    }

    /// The slot and the clock of who touches memory on the host.
    fn actor(&self, by: By) -> (Slot, Clock) {
        let slot = match by {
            By::Function(function) => self
                .functions
                .get(&function)
                .and_then(|task| self.tasks.get(task))
                .map(|task| task.job.slot),
            By::Thread(thread) => self.threads.get(&thread).map(|thread| thread.slot),
        };
        (slot.unwrap_or(self.host.0), self.clock_of(by))
    }

    fn agent(&self, by: By) -> Agent {
        match by {
            By::Thread(thread) => Agent(Who::Thread(
                self.threads.get(&thread).map_or_else(|| Arc::from("?"), |of| of.name.clone()),
            )),
            By::Function(function) => {
                let task = self.functions.get(&function).and_then(|task| self.tasks.get(task));
                task.map_or_else(
                    || Agent(Who::Thread(Arc::from(format!("of host function {}", function.0)))),
                    |task| task.job.agent.clone(),
                )
            }
        }
    }

    /// Whoever it is on the host is after all that `clock` knows.
    fn learn(&mut self, by: By, clock: &Clock) {
        let mine = match by {
            By::Function(function) => {
                match self.functions.get(&function).and_then(|task| self.tasks.get_mut(task)) {
                    Some(task) => &mut task.base,
                    // It is over, for all that was told.
                    None => return,
                }
            }
            By::Thread(thread) if self.options.host_order == HostOrder::Told => {
                match self.threads.get_mut(&thread) {
                    Some(thread) => &mut thread.clock,
                    None => return,
                }
            }
            By::Thread(_) => &mut self.host.1,
        };
        mine.join(clock);
    }

    fn acquire(&mut self, by: By, mark: &Mark) {
        for point in &mark.0 {
            // The call has returned, so the work is over, whatever it was that it waited for.
            if let Point::Pending(unfinished) = point
                && unfinished.clock.get().is_none()
            {
                self.force(unfinished.task);
            }
            if let Some(clock) = point.clock() {
                self.learn(by, clock);
            }
        }
    }

    fn begin_function(&mut self, function: FunctionId) {
        let Some(&id) = self.functions.get(&function) else { return };
        while self.tasks.get(&id).is_some_and(|task| !task.running) && self.force_one(id) {}
        if self.options.host_order == HostOrder::Submission
            && let Some(task) = self.tasks.get_mut(&id)
        {
            task.base.join(&self.host.1);
        }
    }

    fn end_function(&mut self, function: FunctionId) {
        let Some(id) = self.functions.remove(&function) else { return };
        let Some(task) = self.tasks.remove(&id) else { return };
        if self.options.host_order == HostOrder::Submission {
            self.host.1.join(&task.base);
        }
        self.finish(task);
    }

    // ---- Streams

    fn create_stream(
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
        let entry = of.entry.clone();
        let of = Stream {
            name: Arc::new(StreamName { id: stream, name, context, kind }),
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

    fn destroy_stream(&mut self, stream: StreamId) {
        let Some(of) = self.streams.remove(&stream) else { return };
        let context = self.contexts.entry(of.name.context).or_default();
        context.streams.retain(|other| *other != stream);
        if context.legacy == Some(stream) {
            context.legacy = None;
        }
        if of.fresh {
            context.fresh.retain(|other| *other != stream);
            context.fresh_gone.push(of.tail.clone());
        }
        context.gone.push(of.tail.clone());
        for slot in of.branches.into_iter().chain([of.slot]) {
            self.leaving.push((slot, of.tail.clone()));
        }
    }

    fn stream(&mut self, stream: StreamId) {
        if !self.streams.contains_key(&stream) {
            self.create_stream(stream, ContextId(0), StreamKind::Blocking, None);
        }
    }

    /// Work that is a node if the stream is captured.
    fn stream_work(&mut self, call: &Arc<Call>, stream: StreamId, action: Action<'_>) {
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
    fn in_stream(
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
        // A thread that has learned nothing since has nothing to tell.
        let mut told = of.joined.same(&submit);
        match tail {
            Point::Done(clock) => base = clock,
            pending => {
                after.push(pending);
                told = false;
            }
        }
        if !told {
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
                    after.append(&mut context.fresh_gone);
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
    fn hold(&mut self, call: &Arc<Call>, stream: StreamId, point: Point) {
        let Some(of) = self.streams.get_mut(&stream) else { return };
        let agent = Agent(Who::Stream(of.name.clone(), Part::Work));
        let job = Job { agent, slot: of.slot, action: Action::Nothing, call: call.clone() };
        let tail = std::mem::take(&mut of.tail);
        let tail = self.submit(job, Clock::default(), vec![tail, point]);
        if let Some(of) = self.streams.get_mut(&stream) {
            of.tail = tail;
        }
    }

    fn tail(&self, stream: StreamId) -> Point {
        self.streams.get(&stream).map(|of| of.tail.clone()).unwrap_or_default()
    }

    // ---- Events

    fn record(&mut self, call: &Arc<Call>, event: EventId, stream: StreamId, external: bool) {
        self.object(call, is_event(event), AccessKind::Read);
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

    fn set_record(&mut self, call: &Arc<Call>, event: EventId, point: Point) {
        let known = self.clock_of(call.by);
        let lost = match self.events.get(&event).and_then(|of| of.record.as_ref()) {
            Some(earlier) if self.options.warnings.lost_record && !earlier.used => {
                let over = |after: &Clock| {
                    earlier.point.clock().is_some_and(|clock| self.covers(after, clock))
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

    fn event_name(&self, event: EventId) -> String {
        let name = self.events.get(&event).and_then(|of| of.name.clone());
        name.unwrap_or_else(|| format!("{:#x}", event.0))
    }

    /// The last record of an event that a call waits for, in `stream` or on the host.
    fn recorded(
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
        if captured && warnings.capture_leak {
            let what = format!("event {}", self.event_name(event));
            self.warn(call, call, Warning::CaptureLeak { call: call.clone(), what });
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
            let text = format!(
                "stream {} waited for interprocess event {} in {call}, and its records by other \
                 processes are not known here",
                self.streams.get(&stream).map_or("", |of| &of.name.name),
                self.event_name(event)
            );
            self.outside(stream, text);
        }
        point
    }

    fn outside(&mut self, stream: StreamId, text: String) {
        let Some(of) = self.streams.get_mut(&stream) else { return };
        if of.outside.len() == 3 {
            of.outside.pop_front();
        }
        of.outside.push_back(text);
    }

    fn wait(&mut self, call: &Arc<Call>, stream: StreamId, event: EventId, external: bool) {
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
            // It orders nothing, but is an operation: of a legacy default stream, say.
            self.in_stream(call, stream, Action::Nothing, Vec::new());
            return;
        };
        if !self.options.warnings.useless_wait {
            self.in_stream(call, stream, Action::Nothing, vec![point]);
            return;
        }
        self.in_stream(call, stream, Action::Nothing, Vec::new());
        if let (Some(before), Some(event_clock)) = (self.tail(stream).clock(), point.clock())
            && self.covers(before, event_clock)
        {
            let event = self.event_name(event);
            self.warn(call, call, Warning::UselessWait { wait: call.clone(), event });
        }
        self.in_stream(call, stream, Action::Nothing, vec![point]);
    }

    // ---- Graphs

    fn end_capture(&mut self, call: &Arc<Call>, stream: StreamId, graph: Option<GraphId>) {
        let Some(id) = self.streams.get(&stream).and_then(|of| of.capture) else { return };
        let Some(capture) = self.captures.remove(&id) else { return };
        for of in self.streams.values_mut() {
            if of.capture == Some(id) {
                of.capture = None;
            }
        }
        if self.options.warnings.capture_leak {
            for stream in capture.unjoined() {
                let name =
                    self.streams.get(&stream).map_or_else(String::new, |of| of.name.name.clone());
                self.warn(
                    call,
                    call,
                    Warning::CaptureLeak { call: call.clone(), what: format!("stream {name}") },
                );
            }
        }
        if let Some(graph) = graph {
            self.graphs.insert(graph, capture.nodes.into());
        }
    }

    /// Nodes without children.
    fn flatten(&self, nodes: &[Node]) -> Vec<Node> {
        let mut flat = Vec::with_capacity(nodes.len());
        // The last nodes of each.
        let mut ends: Vec<Vec<usize>> = Vec::with_capacity(nodes.len());
        for node in nodes {
            let after: Vec<usize> =
                node.after.iter().filter_map(|&node| ends.get(node)).flatten().copied().collect();
            let end = match &node.work {
                NodeWork::Child(graph) => {
                    let child = self.graphs.get(graph).cloned().unwrap_or_default();
                    append(&mut flat, &child, &after)
                }
                work => {
                    flat.push(Node { work: work.clone(), after });
                    vec![flat.len() - 1]
                }
            };
            ends.push(end);
        }
        flat
    }

    fn launch(
        &mut self,
        call: &Arc<Call>,
        stream: StreamId,
        graph: GraphId,
        functions: &[FunctionId],
    ) {
        let mut functions = functions.iter();
        self.object(call, is_stream(stream), AccessKind::Read);
        self.stream(stream);
        let nodes = self.graphs.get(&graph).cloned().unwrap_or_default();
        let captured = self.streams.get(&stream).and_then(|of| of.capture);
        if let Some(capture) = captured.and_then(|id| self.captures.get_mut(&id)) {
            let front = capture.fronts.entry(stream).or_default();
            *front = append(&mut capture.nodes, &nodes, front);
            return;
        }
        self.in_stream(call, stream, Action::Nothing, Vec::new());
        let start = self.tail(stream);
        let Some(of) = self.streams.get(&stream) else { return };
        let (name, slot) = (of.name.clone(), of.slot);
        // A branch goes on where a node waits for its last one. The first branch is the stream
        // itself.
        let mut branches: Vec<(Slot, Option<usize>)> = vec![(slot, None)];
        let mut points: Vec<Point> = Vec::with_capacity(nodes.len());
        for (index, node) in nodes.iter().enumerate() {
            let mut after: Vec<Point> =
                node.after.iter().filter_map(|&node| points.get(node).cloned()).collect();
            if after.is_empty() {
                after.push(start.clone());
            }
            let goes_on = |last: &Option<usize>| last.is_none_or(|last| node.after.contains(&last));
            let branch = match branches.iter().position(|(_, last)| goes_on(last)) {
                Some(branch) => branch,
                None => {
                    branches.push((self.branch(stream, branches.len() - 1), None));
                    branches.len() - 1
                }
            };
            let Some(branch) = branches.get_mut(branch) else { continue };
            branch.1 = Some(index);
            let slot = branch.0;
            let mut function = None;
            let action = match &node.work {
                NodeWork::Work(accesses) => Action::Work(Cow::Borrowed(accesses)),
                NodeWork::Function(accesses) => {
                    function = functions.next();
                    match function {
                        Some(_) => Action::Function(Cow::Borrowed(accesses)),
                        None => Action::Work(Cow::Borrowed(accesses)),
                    }
                }
                NodeWork::WriteValue(cell, value) => Action::WriteValue(*cell, *value),
                NodeWork::WaitValue(cell, value, compare) => {
                    Action::WaitValue(*cell, *value, *compare)
                }
                NodeWork::Wait(event) => {
                    after.extend(self.recorded(call, *event, Some(stream)));
                    Action::Nothing
                }
                NodeWork::Record(_) | NodeWork::Child(_) => Action::Nothing,
            };
            let agent = Agent(Who::Stream(name.clone(), Part::Node(index)));
            let point = self.submit(
                Job { agent, slot, action, call: call.clone() },
                Clock::default(),
                after,
            );
            if let NodeWork::Record(event) = node.work {
                self.set_record(call, event, point.clone());
            }
            if let (Some(&function), Point::Pending(unfinished)) = (function, &point) {
                self.functions.insert(function, unfinished.task);
            }
            points.push(point);
        }
        points.push(start);
        let agent = Agent(Who::Stream(name, Part::Work));
        let job = Job { agent, slot, action: Action::Nothing, call: call.clone() };
        let tail = self.submit(job, Clock::default(), points);
        if let Some(of) = self.streams.get_mut(&stream) {
            of.tail = tail;
        }
    }

    /// The slot of a stream's branch.
    fn branch(&mut self, stream: StreamId, index: usize) -> Slot {
        if let Some(&slot) = self.streams.get(&stream).and_then(|of| of.branches.get(index)) {
            return slot;
        }
        let slot = self.new_slot();
        if let Some(of) = self.streams.get_mut(&stream) {
            of.branches.push(slot);
        }
        slot
    }

    // ---- Tasks

    /// Work that comes after `base` and `after`: done at once, if nothing holds it back.
    fn submit(&mut self, mut job: Job<'_>, mut base: Clock, after: Vec<Point>) -> Point {
        let mut waits = Vec::new();
        for point in &after {
            match point {
                Point::Pending(unfinished) if unfinished.clock.get().is_none() => {
                    waits.push(unfinished.task)
                }
                _ => base.join(point.clock().unwrap_or(&Clock::default())),
            }
        }
        waits.sort_unstable();
        waits.dedup();
        self.counter += 1;
        let id = self.counter;
        if waits.is_empty() && self.run(&mut job, &mut base, id, false) {
            return Point::Done(base);
        }
        for wait in &waits {
            if let Some(task) = self.tasks.get_mut(wait) {
                task.before.push(id);
            }
        }
        let point = Arc::new(Unfinished { task: id, clock: OnceLock::new() });
        let running = waits.is_empty() && matches!(job.action, Action::Function(_));
        let task = Task {
            job: job.into_owned(),
            base,
            left: waits.len(),
            after: waits,
            before: Vec::new(),
            point: point.clone(),
            running,
        };
        self.tasks.insert(id, task);
        Point::Pending(point)
    }

    /// Does what a job does, as nothing it comes after is left. Says whether it is over.
    fn run(&mut self, job: &mut Job<'_>, clock: &mut Clock, id: u64, force: bool) -> bool {
        let Job { agent, slot, action, call } = job;
        match action {
            Action::Nothing => true,
            Action::Work(accesses) => {
                self.work(accesses, *slot, clock, agent, call);
                true
            }
            Action::WriteValue(cell, value) => {
                self.write_value(*cell, *value, *slot, clock, agent, call);
                true
            }
            Action::WaitValue(cell, value, compare) => {
                let floor = &self.floor;
                let knows = |slot, time| clock.get(slot) >= time || floor.get(slot) >= time;
                match self.values.seen(*cell, *value, *compare, knows) {
                    Some(seen) => clock.join(&seen),
                    None if force => {
                        // Somebody has written it. All that could have been the one are before it,
                        // to be safe.
                        clock.join(&self.values.all(*cell));
                        if let Some(stream) = agent.stream() {
                            let text = format!(
                                "stream {} waited in {call} for a value that no known write gave",
                                stream.name
                            );
                            self.outside(stream.id, text);
                        }
                    }
                    None => {
                        self.values.wait(*cell, id);
                        return false;
                    }
                }
                let time = self.tick(*slot, clock, call);
                self.touch(
                    AccessKind::AtomicRead,
                    &cell.range(),
                    (*slot, time),
                    clock,
                    agent,
                    call,
                );
                true
            }
            Action::Function(accesses) => {
                if !force {
                    if let Who::Stream(stream, _) = &agent.0 {
                        *agent = Agent(Who::Stream(stream.clone(), Part::Function));
                    }
                    self.work(accesses, *slot, clock, agent, call);
                }
                force
            }
        }
    }

    fn work(
        &mut self,
        accesses: &[Access],
        slot: Slot,
        clock: &mut Clock,
        agent: &Agent,
        call: &Arc<Call>,
    ) {
        let time = self.tick(slot, clock, call);
        for access in accesses {
            self.touch(access.kind, &access.range, (slot, time), clock, agent, call);
            self.overwrite(access, (slot, time), clock);
        }
    }

    fn write_value(
        &mut self,
        cell: Cell,
        value: u64,
        slot: Slot,
        clock: &mut Clock,
        agent: &Agent,
        call: &Arc<Call>,
    ) {
        let time = self.tick(slot, clock, call);
        self.touch(AccessKind::AtomicWrite, &cell.range(), (slot, time), clock, agent, call);
        let floor = &self.floor;
        let knows = |slot, time| clock.get(slot) >= time || floor.get(slot) >= time;
        let woken = self.values.write(cell, value, (slot, time), clock, knows);
        self.ready.extend(woken.into_iter().map(Reverse));
    }

    fn overwrite(&mut self, access: &Access, at: (Slot, u64), clock: &Clock) {
        let anew = access.kind == AccessKind::Allocate;
        if anew || access.kind == AccessKind::Write {
            let floor = &self.floor;
            let knows = |slot, time| clock.get(slot) >= time || floor.get(slot) >= time;
            self.values.overwrite(&access.range, at, clock, knows, anew);
        }
    }

    /// Runs what nothing holds back any more, the oldest first.
    fn drain(&mut self) {
        while let Some(Reverse(id)) = self.ready.pop() {
            self.step(id, false);
        }
    }

    fn step(&mut self, id: u64, force: bool) {
        let Some(mut task) = self.tasks.remove(&id) else { return };
        if task.left > 0 || task.running && !force {
            self.tasks.insert(id, task);
            return;
        }
        let function = matches!(task.job.action, Action::Function(_));
        if function && force && !task.running {
            // It touches what it touches before it is taken to be over.
            self.run(&mut task.job, &mut task.base, id, false);
        }
        if self.run(&mut task.job, &mut task.base, id, force) {
            self.finish(task);
        } else {
            task.running = function;
            self.tasks.insert(id, task);
        }
    }

    fn finish(&mut self, task: Task) {
        for id in &task.before {
            if let Some(later) = self.tasks.get_mut(id) {
                later.base.join(&task.base);
                later.left -= 1;
                if later.left == 0 {
                    self.ready.push(Reverse(*id));
                }
            }
        }
        // Nobody else sets it.
        let _ = task.point.clock.set(task.base);
    }

    /// A wait for a value is over. If a task is left of it, nobody knows who ended it.
    fn end_wait(&mut self, by: By, wait: u64, cell: Cell) {
        let is_it = |task: &Task| {
            task.job.call.number == wait
                && matches!(task.job.action, Action::WaitValue(of, ..) if of == cell)
        };
        let found = self.tasks.iter().filter(|(_, task)| is_it(task)).map(|(&id, _)| id).min();
        let Some(id) = found else { return };
        let mut known = self.clock_of(by);
        known.join(&self.values.everything());
        if let Some(task) = self.tasks.get_mut(&id) {
            task.base.join(&known);
        }
        self.force(id);
    }

    /// A task is over, whatever it is that holds it back here.
    fn force(&mut self, id: u64) {
        while self.tasks.contains_key(&id) {
            if !self.force_one(id) {
                self.step(id, true);
                self.drain();
            }
        }
    }

    /// Takes the oldest one of what a task waits for to be over. False if it waits for nothing.
    fn force_one(&mut self, id: u64) -> bool {
        let (mut seen, mut open, mut oldest) = (HashSet::from([id]), vec![id], None);
        while let Some(at) = open.pop() {
            let Some(task) = self.tasks.get(&at) else { continue };
            if at != id && task.left == 0 {
                oldest = Some(oldest.map_or(at, |oldest: u64| oldest.min(at)));
            }
            open.extend(
                task.after
                    .iter()
                    .filter(|task| self.tasks.contains_key(task) && seen.insert(**task)),
            );
        }
        let Some(oldest) = oldest else { return false };
        self.step(oldest, true);
        self.drain();
        true
    }

    // ---- Accesses

    fn touch(
        &mut self,
        kind: AccessKind,
        range: &Range<u64>,
        (slot, time): (Slot, u64),
        clock: &Clock,
        agent: &Agent,
        call: &Arc<Call>,
    ) {
        let entry = Entry { slot, time, kind, call: call.clone(), agent: agent.clone() };
        let floor = &self.floor;
        let mut hits = std::mem::take(&mut self.hits);
        let knows = |slot, time| clock.get(slot) >= time || floor.get(slot) >= time;
        self.memory.access(range, &entry, knows, &mut hits);
        for hit in hits.drain(..) {
            let problem = if hit.ordered { Problem::UseAfterFree } else { Problem::Race };
            self.report(problem, hit, &entry, clock);
        }
        self.hits = hits;
    }

    /// A call uses an event or a stream, or destroys it.
    fn object(&mut self, call: &Arc<Call>, range: Range<u64>, kind: AccessKind) {
        // Where calls are in one order, so are these.
        if self.options.host_order == HostOrder::Submission || matches!(call.by, By::Function(_)) {
            return;
        }
        let (slot, mut clock) = self.actor(call.by);
        let time = self.tick(slot, &mut clock, call);
        self.learn(call.by, &clock);
        let entry = Entry { slot, time, kind, call: call.clone(), agent: self.agent(call.by) };
        let floor = &self.floor;
        let mut hits = Vec::new();
        let knows = |slot, time| clock.get(slot) >= time || floor.get(slot) >= time;
        self.objects.access(&range, &entry, knows, &mut hits);
        for hit in hits {
            self.report(Problem::DestroyedWhileUsed, hit, &entry, &clock);
        }
    }

    fn side(&self, entry: Entry) -> Side {
        let name = |thread| {
            self.threads.get(&thread).map_or_else(|| thread.0.to_string(), |of| of.name.to_string())
        };
        let thread = by_name(entry.call.by, name);
        Side { call: entry.call, agent: entry.agent, kind: entry.kind, thread }
    }

    fn report(&mut self, problem: Problem, hit: Hit, second: &Entry, clock: &Clock) {
        let first = hit.earlier;
        if self.options.warnings.ignored_query {
            self.ignored_query(&first, second);
        }
        if !once(
            &mut self.reported,
            place(&first.call, &first.agent),
            place(&second.call, &second.agent),
        ) {
            return;
        }
        let known = clock.get(first.slot).max(self.floor.get(first.slot));
        let recent = self.slots.get(first.slot as usize).map(|state| &state.recent);
        let known = recent
            .into_iter()
            .flatten()
            .rev()
            .find(|call| call.0 <= known)
            .map(|call| call.1.clone());
        let nodes =
            [&first, second].map(|side| matches!(side.agent.0, Who::Stream(_, Part::Node(_))));
        let stream = second.agent.stream().and_then(|stream| self.streams.get(&stream.id));
        let found = Found {
            problem,
            siblings: nodes == [true, true] && Arc::ptr_eq(&first.call, &second.call),
            first: self.side(first),
            second: self.side(second.clone()),
            shared: hit.ranges,
            known,
            outside: stream
                .map(|stream| stream.outside.iter().cloned().collect())
                .unwrap_or_default(),
        };
        self.findings.push(Finding::Report(found.into()));
    }

    fn ignored_query(&mut self, first: &Entry, second: &Entry) {
        let (Some(_), By::Thread(thread), Who::Thread(_)) =
            (first.agent.stream(), second.call.by, &second.agent.0)
        else {
            return;
        };
        let Some(thread) = self.threads.get(&thread) else { return };
        let about = |mark: &Mark| {
            mark.0
                .iter()
                .any(|point| point.clock().is_some_and(|clock| clock.get(first.slot) >= first.time))
        };
        let query =
            thread.queries.iter().rev().find(|query| about(&query.0)).map(|query| query.1.clone());
        if let Some(query) = query {
            self.warn(
                &query.clone(),
                &second.call,
                Warning::IgnoredQuery { query, access: second.call.clone() },
            );
        }
    }

    fn warn(&mut self, one: &Arc<Call>, two: &Arc<Call>, warning: Warning) {
        let place = |call: &Arc<Call>| {
            let location = call.location.clone();
            // One call may be wrong in several ways.
            let kind = match &warning {
                Warning::NeverRecorded { .. } => "never recorded",
                Warning::LostRecord { .. } => "lost record",
                Warning::IgnoredQuery { .. } => "ignored query",
                Warning::UselessWait { .. } => "useless wait",
                Warning::CaptureLeak { .. } => "capture leak",
            };
            (Cow::Borrowed(kind), location.ok_or_else(|| call.name.to_string()))
        };
        if once(&mut self.warned, place(one), place(two)) {
            self.findings.push(Finding::Warning(warning));
        }
    }

    // ---- Memory of this checker

    /// Forgets what nothing can race with any more: it is before all that may still come.
    fn retire(&mut self) {
        let held = self.tasks.values().map(|task| task.base.clone());
        let mut floor = held.fold(self.agreed(), |one, two| one.meet(&two));
        floor.join(&self.floor);
        self.floor = floor;
        let floor = &self.floor;
        let known = |slot, time| floor.get(slot) >= time;
        self.memory.retire(known);
        self.objects.retire(known);
        self.values.retire(known, floor);
        self.host.1.prune(floor);
        for thread in self.threads.values_mut() {
            thread.clock.prune(floor);
        }
        self.tokens.retain(|_, clock| {
            clock.prune(floor);
            !clock.entries().is_empty()
        });
        for stream in self.streams.values_mut() {
            stream.tail.prune(floor);
            stream.joined.prune(floor);
        }
        for record in self.events.values_mut().filter_map(|event| event.record.as_mut()) {
            record.point.prune(floor);
        }
        for context in self.contexts.values_mut() {
            for points in [&mut context.gone, &mut context.fresh_gone, &mut context.entry] {
                points.retain_mut(|point| !point.prune(floor));
            }
        }
        self.graceful();
        self.until_retire = self.options.retire_every.max(
            2 * (self.memory.len()
                + self.streams.len()
                + self.events.len()
                + self.threads.len()
                + self.tasks.len()),
        );
    }

    /// Slots of agents that are gone, and that everybody is after, can be had anew.
    fn graceful(&mut self) {
        let (floor, slots, spare) = (&self.floor, &mut self.slots, &mut self.spare);
        self.leaving.retain_mut(|(slot, end)| {
            let Some(state) = slots.get_mut(*slot as usize) else { return false };
            if end.clock().is_none() || state.time > floor.get(*slot) {
                return true;
            }
            state.recent.clear();
            spare.push(*slot);
            false
        });
        if self.options.host_order == HostOrder::Told {
            let gone: Vec<ThreadId> = self
                .threads
                .iter()
                .filter(|(_, thread)| !thread.live && thread.clock.entries().is_empty())
                .map(|(&thread, _)| thread)
                .collect();
            for thread in gone {
                self.leave_thread(thread);
            }
        } else {
            self.threads.retain(|_, thread| thread.live);
        }
    }
}

fn place(call: &Call, agent: &Agent) -> Place {
    (call.name.clone(), call.location.clone().ok_or_else(|| agent.to_string()))
}

/// Whether a pair of places is new.
fn once(seen: &mut HashSet<(Place, Place)>, one: Place, two: Place) -> bool {
    let turned = (two, one);
    if seen.contains(&turned) {
        return false;
    }
    seen.insert((turned.1, turned.0))
}
