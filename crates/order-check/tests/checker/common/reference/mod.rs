//! The same question answered the slow way: a graph with all its edges, a search for each question,
//! and every access to every byte kept. It shares no code with the checker but the vocabulary.

mod memory;
mod streams;
mod tasks;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use cuda_order_check_engine::{
    Access, AccessKind, By, Cell, Compare, FunctionId, HostOrder, Node, StreamKind, ThreadId, What,
};

use super::{Do, Step};
use memory::{Memory, cell_access};

pub use memory::Expected;

/// Nodes of the happens-before graph, by their numbers.
type Set = BTreeSet<usize>;

#[derive(Clone, Debug)]
enum Act {
    Nothing,
    Work(Vec<Access>),
    Write(Cell, u64),
    Wait(Cell, u64, Compare),
    Function(Vec<Access>),
}

#[derive(Clone, Debug)]
struct Task {
    act: Act,
    /// For a host function that the stream has come to: its begin, and what it is after now.
    running: Option<Vec<usize>>,
}

#[derive(Default)]
struct Stream {
    context: u64,
    kind: Option<StreamKind>,
    tail: Option<usize>,
    capture: Option<usize>,
}

#[derive(Default)]
struct Event {
    record: Option<usize>,
    captured: Option<(usize, Vec<usize>)>,
}

struct Capture {
    origin: u64,
    nodes: Vec<Node>,
    fronts: HashMap<u64, Vec<usize>>,
    over: bool,
}

/// Which operations are before which, as a graph of them.
#[derive(Default)]
struct Graph {
    /// The direct predecessors of each node, and its line.
    before: Vec<Vec<usize>>,
    lines: Vec<usize>,
    /// The line of the step under way.
    line: usize,
}

impl Graph {
    /// All that is before any of these, and they themselves.
    fn closure(&self, nodes: &[usize]) -> Set {
        let mut seen = vec![false; self.before.len()];
        let mut open = nodes.to_vec();
        while let Some(node) = open.pop() {
            if !std::mem::replace(&mut seen[node], true) {
                open.extend(&self.before[node]);
            }
        }
        (0..seen.len()).filter(|node| seen[*node]).collect()
    }

    fn node(&mut self, before: Vec<usize>) -> usize {
        self.before.push(before);
        self.lines.push(self.line);
        self.before.len() - 1
    }
}

pub struct Reference {
    order: HostOrder,
    graph: Graph,
    memory: Memory,
    /// Those that wait or run; a node that is no task, or whose task is over, is not here.
    tasks: BTreeMap<usize, Task>,
    /// What each thread is after; one for all in submission order.
    threads: BTreeMap<u64, (Vec<usize>, bool)>,
    host: Vec<usize>,
    tokens: HashMap<u64, Vec<usize>>,
    /// In the order of creation.
    streams: BTreeMap<u64, Stream>,
    /// Context, kind and last task of streams that are gone.
    gone: Vec<(u64, StreamKind, Option<usize>)>,
    /// For each context, what its later streams wait for, and its last legacy operation.
    entry: HashMap<u64, Vec<usize>>,
    events: HashMap<u64, Event>,
    captures: Vec<Capture>,
    graphs: HashMap<u64, Vec<Node>>,
    functions: HashMap<u64, usize>,
}

fn one<T>(item: T) -> Vec<T> {
    vec![item]
}

impl Reference {
    pub fn new(order: HostOrder) -> Self {
        Self {
            order,
            graph: Graph::default(),
            memory: Memory::default(),
            tasks: BTreeMap::new(),
            threads: BTreeMap::new(),
            host: Vec::new(),
            tokens: HashMap::new(),
            streams: BTreeMap::new(),
            gone: Vec::new(),
            entry: HashMap::new(),
            events: HashMap::new(),
            captures: Vec::new(),
            graphs: HashMap::new(),
            functions: HashMap::new(),
        }
    }

    pub fn into_expected(self) -> Expected {
        self.memory.expected
    }

    fn only_reported(&self) -> bool {
        self.order == HostOrder::Reported
    }

    /// What a thread or a host function is after.
    fn past(&self, by: By) -> Vec<usize> {
        match by {
            By::Function(function) => {
                self.tasks[&self.functions[&function.0]].running.clone().unwrap()
            }
            By::Thread(thread) if self.only_reported() => self.threads[&thread.0].0.clone(),
            By::Thread(_) => self.host.clone(),
        }
    }

    fn learn(&mut self, by: By, what: &[usize]) {
        match by {
            By::Function(function) => {
                let task = self.tasks.get_mut(&self.functions[&function.0]).unwrap();
                task.running.as_mut().unwrap().extend(what);
            }
            By::Thread(thread) if self.only_reported() => {
                self.threads.get_mut(&thread.0).unwrap().0.extend(what)
            }
            By::Thread(_) => self.host.extend(what),
        }
    }

    fn agreed(&self) -> Vec<usize> {
        if !self.only_reported() {
            return self.host.clone();
        }
        let live = self
            .threads
            .values()
            .filter(|thread| thread.1)
            .map(|thread| self.graph.closure(&thread.0));
        live.reduce(|one, two| &one & &two)
            .map_or_else(|| self.host.clone(), |all| all.into_iter().collect())
    }

    fn leave(&mut self, thread: u64) {
        if self.only_reported() {
            let agreed = self.agreed();
            self.host.extend(agreed);
        }
        if let Some(thread) = self.threads.get_mut(&thread) {
            thread.1 = false;
        }
    }

    pub fn step(&mut self, line: usize, step: &Step) {
        self.graph.line = line;
        if let By::Thread(thread) = step.by {
            if self.only_reported() && self.threads.get(&thread.0).is_some_and(|thread| !thread.1) {
                self.threads.remove(&thread.0);
            }
            if !self.threads.contains_key(&thread.0) {
                let agreed = self.agreed();
                self.threads.insert(thread.0, (agreed, true));
            }
        }
        self.go(step.by, &step.does);
        self.drain();
    }

    fn go(&mut self, by: By, does: &Do) {
        match does {
            Do::Create(stream, context, kind) => {
                self.object(by, false, *stream, AccessKind::Allocate);
                self.destroy(*stream);
                let tail =
                    self.entry.get(context).cloned().map(|entry| self.submit(entry, Act::Nothing));
                let state = Stream { context: *context, kind: Some(*kind), tail, capture: None };
                self.streams.insert(*stream, state);
            }
            Do::Destroy(stream) => {
                self.object(by, false, *stream, AccessKind::Write);
                self.destroy(*stream);
            }
            Do::ContextDestroy(context) => self.destroy_context(by, *context),
            Do::Event(event, _) => {
                self.object(by, true, *event, AccessKind::Allocate);
                self.events.insert(*event, Event::default());
            }
            Do::EventDestroy(event) => {
                self.object(by, true, *event, AccessKind::Write);
                self.events.remove(event);
            }
            Do::Work(stream, accesses) => {
                self.stream_work(by, *stream, Act::Work(accesses.clone()))
            }
            Do::Function(stream, None, accesses) => {
                self.stream_work(by, *stream, Act::Work(accesses.clone()))
            }
            Do::Function(stream, Some(function), accesses) => {
                let captured =
                    self.streams.get(stream).is_some_and(|state| state.capture.is_some());
                self.stream_work(by, *stream, Act::Function(accesses.clone()));
                if !captured {
                    self.functions.insert(*function, self.streams[stream].tail.unwrap());
                }
            }
            Do::Write(stream, cell, value) => {
                self.stream_work(by, *stream, Act::Write(*cell, *value))
            }
            Do::WaitValue(stream, cell, value, compare) => {
                self.stream_work(by, *stream, Act::Wait(*cell, *value, *compare));
            }
            Do::Record(event, stream) => self.record(by, *event, *stream, false),
            Do::RecordExternal(event, stream) => self.record(by, *event, *stream, true),
            Do::Wait(stream, event) => self.wait(by, *stream, *event, false),
            Do::WaitExternal(stream, event) => self.wait(by, *stream, *event, true),
            Do::ContextRecord(context, event) => {
                self.object(by, true, *event, AccessKind::AtomicWrite);
                let mut before = self.context_work(*context);
                before.extend(self.past(by));
                let node = self.submit(before, Act::Nothing);
                self.set_record(*event, node);
            }
            Do::ContextWait(context, event) => self.context_wait(by, *context, *event),
            Do::ContextShares(context, stream) => {
                if let Some(state) =
                    self.streams.get(stream).filter(|state| state.capture.is_none())
                {
                    self.gone.push((*context, StreamKind::NonBlocking, state.tail));
                }
            }
            Do::Begin(function) => {
                let Some(&node) = self.functions.get(function) else { return };
                while self.tasks.get(&node).is_some_and(|task| task.running.is_none())
                    && self.force_one(node)
                {}
                if !self.only_reported() && self.tasks.contains_key(&node) {
                    let host = self.host.clone();
                    self.learn(By::Function(FunctionId(*function)), &host);
                }
            }
            Do::End(function) => {
                let Some(node) = self.functions.remove(function) else { return };
                let Some(task) = self.tasks.remove(&node) else { return };
                self.graph.before[node].extend(task.running.unwrap());
                if !self.only_reported() {
                    self.host.push(node);
                }
            }
            Do::Capture(stream) => self.begin_capture(*stream),
            Do::EndCapture(stream, graph) => self.end_capture(*stream, *graph),
            Do::Define(graph, nodes) => self.define(*graph, nodes),
            Do::Copy(from, to) => {
                if let Some(nodes) = self.graphs.get(from).cloned() {
                    self.graphs.insert(*to, nodes);
                }
            }
            Do::Launch(stream, graph) => self.launch(by, *stream, *graph),
            Do::Host(accesses) => {
                let node = self.host_node(by);
                self.memory.accesses(&self.graph, node, accesses);
            }
            Do::HostWrite(cell, value) => {
                let node = self.host_node(by);
                self.memory.write(&self.graph, node, *cell, *value);
            }
            Do::HostSaw(cell, value) => {
                let before = self.past(by);
                if let Some(seen) =
                    self.memory.seen(&self.graph, &before, *cell, *value, Compare::Equal)
                {
                    self.learn(by, &seen);
                }
                let node = self.host_node(by);
                self.memory.access(&self.graph, node, &cell_access(AccessKind::AtomicRead, *cell));
            }
            Do::Sync(what) => {
                if let What::Event(event) = what {
                    self.object(by, true, event.0, AccessKind::Read);
                }
                self.reach(by, *what);
            }
            Do::Query(what, true) => self.reach(by, *what),
            Do::Query(..) => {}
            Do::HandOver(token) => {
                let past = self.past(by);
                self.tokens.entry(*token).or_default().extend(past);
            }
            Do::TakeOver(token) => {
                let past = self.tokens.get(token).cloned().unwrap_or_default();
                self.learn(by, &past);
            }
            Do::Start(thread) => {
                let past = self.past(by);
                if self.only_reported() {
                    self.leave(*thread);
                    self.threads.insert(*thread, (past, true));
                }
            }
            Do::Join(thread) => {
                if self.only_reported()
                    && let Some((past, _)) = self.threads.get(thread).cloned()
                {
                    self.learn(by, &past);
                    self.leave(*thread);
                    self.threads.remove(thread);
                }
            }
            Do::EndThread => {
                if let By::Thread(ThreadId(thread)) = by {
                    self.leave(thread);
                }
            }
        }
    }

    fn host_node(&mut self, by: By) -> usize {
        let before = self.past(by);
        let node = self.graph.node(before);
        self.learn(by, &[node]);
        node
    }

    fn object(&mut self, by: By, event: bool, number: u64, kind: AccessKind) {
        if !self.only_reported() || matches!(by, By::Function(_)) {
            return;
        }
        let node = self.host_node(by);
        let number = number * 2 + u64::from(!event);
        self.memory.touch(&self.graph, node, true, kind, std::iter::once(number..number + 1));
    }
}
