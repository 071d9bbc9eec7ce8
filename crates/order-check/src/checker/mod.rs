//! The checker: the order of all agents, and the operations that create it.

mod accesses;
mod events;
mod graphs;
mod host;
mod operations;
mod options;
mod retire;
mod streams;
mod tasks;

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;
use std::sync::Arc;

use crate::allocations::Allocations;
use crate::clock::{Clock, Slot};
use crate::graph::Capture;
use crate::op::{
    AccessKind, By, Call, ContextId, EventId, FunctionId, GraphId, Location, Node, Op, StreamId,
    StreamKind, ThreadId, TokenId, What,
};
use crate::report::{Finding, StreamName};
use crate::shadow::{Entry, Hit, Shadow};
use crate::task::{Point, Points, Task};
use crate::values::Values;

pub use options::{HostOrder, Options, Size, Warnings};

#[derive(Default)]
pub(crate) struct Mix(u64);

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

pub(crate) type Map<K, V> = HashMap<K, V, BuildHasherDefault<Mix>>;

/// Work to wait for, from [`Checker::mark`].
#[derive(Clone, Debug, Default)]
pub struct Mark(Vec<Point>);

impl Mark {
    /// Marks other work as well.
    pub(crate) fn join(&mut self, other: &Self) {
        let mut points = Points::default();
        self.0.drain(..).chain(other.0.iter().cloned()).for_each(|point| points.push(point));
        points.prune(&Clock::default());
        self.0.extend(points.points());
    }
}

/// The number of an agent's calls that are kept for reports about their order.
const RECENT: usize = 16;
/// Failed queries of a thread that are kept.
const QUERIES: usize = 8;
/// The maximum of distinct pairs of places with findings.
const PLACES: usize = 1 << 16;
/// The maximum of races of two functions in two streams or threads that backtraces distinguish.
const TRACES: u32 = 64;
/// The maximum of tasks that are held back. Beyond it the oldest go on, as if ordered from outside.
const TASKS: usize = 1 << 16;
/// The maximum of polled writes that are kept.
const POLLED: usize = 64;

#[derive(Debug, Default)]
struct SlotState {
    time: u64,
    /// The last time of the agent that had it before. No access has this time or an earlier one.
    former: u64,
    recent: VecDeque<(u64, Arc<Call>)>,
}

#[derive(Debug)]
struct Thread {
    name: Arc<str>,
    slot: Slot,
    clock: Clock,
    live: bool,
    /// The last queries that returned "not done".
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
    /// What may order it and is not known, with the number of the call that waited.
    outside: VecDeque<(u64, String)>,
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
    /// A record for which no work waited, and the one that replaced it.
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
    fresh_gone: Points,
    /// The work of streams that are destroyed.
    gone: Points,
    /// What streams wait for that do not exist yet.
    entry: Points,
}

/// The place of a report: a source line, otherwise a backtrace, otherwise a function and an agent.
type Place = (Cow<'static, str>, Result<Location, String>);

/// Finds unordered accesses in a sequence of operations. See the [crate].
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
    /// The ends of the nodes of the last launch.
    launched: Vec<Point>,
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
    /// Races that are distinguished by their backtraces.
    traced: HashMap<[Place; 2], u32>,
    hits: Vec<Hit>,
    /// For the texts of reports.
    allocations: Allocations,
    /// Bytes that the host may have polled, and their last writes. No call has waited for these
    /// writes, so the host may not read the bytes as data.
    polled: Vec<(Range<u64>, Entry)>,
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
    /// Creates a checker without operations.
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
            launched: Vec::new(),
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
            traced: HashMap::new(),
            hits: Vec::new(),
            allocations: Allocations::default(),
            polled: Vec::new(),
        }
    }

    /// Returns the findings since the last call.
    ///
    /// Each pair of places is reported once. A place is the source line of the call; without a
    /// source line it is the call's backtrace; without a backtrace it is the function and its
    /// stream or thread.
    pub fn take_findings(&mut self) -> Vec<Finding> {
        std::mem::take(&mut self.findings)
    }

    /// The current memory use.
    #[must_use]
    pub fn size(&self) -> Size {
        Size {
            ranges: self.memory.len(),
            agents: self.slots.len() - self.spare.len(),
            tasks: self.tasks.len(),
            values: self.values.len(),
            touched: self.memory.touched() + self.values.touched(),
        }
    }

    /// Marks the work for which a call is about to wait.
    ///
    /// Use it in programs with several threads. [`Op::Synchronize`], reported when the call
    /// returns, would also count work that another thread submitted meanwhile.
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
                    points.extend(context.fresh_gone.points());
                }
            }
            What::Context(context) => points = self.of_context(context),
        }
        Mark(points)
    }

    /// Marks the work for which a call is about to wait, and adds the warnings about that wait.
    ///
    /// It is [`mark`](Self::mark) with warnings.
    pub fn begin_wait(&mut self, call: Call, what: What) -> Mark {
        self.ensure(call.by);
        self.begins_to_wait(&Arc::new(call), what)
    }

    /// Marks the nodes of the last graph that [`Op::Launch`] has launched. Each mark is the end of
    /// a node: the work of the node, and all work that comes before it. A second call returns
    /// nothing.
    ///
    /// A launch into a stream that is captured has no such marks.
    pub fn launched(&mut self) -> Vec<Mark> {
        std::mem::take(&mut self.launched).into_iter().map(|point| Mark(vec![point])).collect()
    }

    /// The capture that a stream is in.
    pub(crate) fn capture_of(&self, stream: StreamId) -> Option<u64> {
        self.streams.get(&stream)?.capture
    }

    /// The nodes of a graph.
    pub(crate) fn nodes(&self, graph: GraphId) -> Option<Arc<[Node]>> {
        self.graphs.get(&graph).cloned()
    }

    fn begins_to_wait(&mut self, call: &Arc<Call>, what: What) -> Mark {
        if let What::Event(event) = what {
            self.object(call, is_event(event), AccessKind::Read);
            self.recorded(call, event, None);
        }
        self.mark(what)
    }

    fn of_context(&self, context: ContextId) -> Vec<Point> {
        let Some(of) = self.contexts.get(&context) else { return Vec::new() };
        let streams = of.streams.iter().filter_map(|stream| self.streams.get(stream));
        streams.map(|stream| stream.tail.clone()).chain(of.gone.points()).collect()
    }

    /// Reports that a host call has waited for the marked work, and has returned without an error.
    pub fn reached(&mut self, call: &Call, mark: &Mark) {
        self.ensure(call.by);
        self.acquire(call.by, mark);
        self.drain();
    }

    /// Whether the host is after the marked work: calls have waited for it, or have seen that it is
    /// done. The threads of the host count as one, as in [`HostOrder::Submission`].
    #[must_use]
    pub fn host_is_after(&self, mark: &Mark) -> bool {
        let is_before = |clock: &Clock| self.covers(&self.host.1, clock, true);
        mark.0.iter().all(|point| point.clock().is_some_and(is_before))
    }

    /// Reports that the host has seen that this work is done.
    ///
    /// This is [`Op::Query`] with `done`, but without a call, so no finding names one. It is
    /// cheaper than that operation.
    pub fn saw(&mut self, by: By, what: What) {
        self.ensure(by);
        let point = match what {
            What::Event(event) => {
                let record = self.events.get_mut(&event).and_then(|of| of.record.as_mut());
                let Some(record) = record else { return };
                record.used = true;
                Some(&record.point)
            }
            What::Stream(stream) => {
                let of = self.streams.get(&stream);
                of.filter(|of| of.name.kind != StreamKind::Legacy).map(|of| &of.tail)
            }
            What::Context(_) => None,
        };
        if let (Some(Point::Done(clock)), By::Thread(_), HostOrder::Submission) =
            (point, by, self.options.host_order)
        {
            self.host.1.join(clock);
            return;
        }
        let mark = self.mark(what);
        self.acquire(by, &mark);
        self.drain();
    }

    /// Reports that the marked work is done, and that the host may have seen this without a call,
    /// by polling `range`: bytes that the last operation of the work wrote.
    ///
    /// Later calls are after the work. But a read of `range` by the host ([`Op::Host`]) is reported
    /// unless a call has waited for that write: only a value shows that it was polled, and the
    /// checker does not see it.
    pub fn polled(&mut self, call: &Call, mark: &Mark, range: Range<u64>) {
        self.ensure(call.by);
        let kept = std::mem::take(&mut self.polled);
        self.acquire(call.by, mark);
        self.drain();
        self.polled = kept;
        let over = |entry: &Entry| {
            let covers = |clock: &Clock| clock.get(entry.slot) >= entry.time;
            entry.kind == AccessKind::Write && mark.0.iter().filter_map(Point::clock).any(covers)
        };
        let writes = self.memory.entries_in(&range).filter(|(_, entry)| over(entry));
        self.polled.extend(writes.map(|(range, entry)| (range, entry.clone())));
        let excess = self.polled.len().saturating_sub(POLLED);
        self.polled.drain(..excess);
    }

    /// Applies the next operation, which is a part of `call`. [`Call::by`] is the thread or host
    /// function that made the call.
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
}
