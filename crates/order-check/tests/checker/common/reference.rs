//! The same question answered the slow way: a graph with all its edges, a search for each question,
//! and every access to every byte kept. It shares no code with the checker but the vocabulary.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use cuda_order_check_engine::{
    Access, AccessKind, By, Cell, Compare, EventId, FunctionId, HostOrder, Node, NodeWork,
    StreamId, StreamKind, ThreadId, What,
};

use super::{Do, Step};

/// Nodes of the happens-before graph, by their numbers.
type Set = BTreeSet<usize>;

fn conflict(one: AccessKind, two: AccessKind) -> bool {
    use AccessKind::{Allocate, AtomicRead, AtomicWrite, Free, Read, Wait};
    // What streams wait for is any write's to end.
    if one == Wait || two == Wait {
        return matches!((one, two), (Allocate | Free, _) | (_, Allocate | Free));
    }
    let read = |kind| matches!(kind, Read | AtomicRead);
    let atomic = |kind| matches!(kind, AtomicWrite | AtomicRead);
    let both = |is: fn(AccessKind) -> bool| is(one) && is(two);
    !both(read) && !both(atomic)
}

/// Whether whatever conflicts with `old` conflicts with `new`, waits apart: a write stands for the
/// allocation before it, though a wait would have to be after that alone.
fn shadows(new: AccessKind, old: AccessKind) -> bool {
    use AccessKind::{Allocate, AtomicRead, AtomicWrite, Free, Read, Write};
    [Read, Write, AtomicRead, AtomicWrite, Allocate, Free]
        .iter()
        .all(|any| !conflict(old, *any) || conflict(new, *any))
}

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

/// What the checker should report: pairs of lines, with the bytes of the first report of each,
/// where only one pair of operations can be meant.
pub type Expected = BTreeMap<(usize, usize), Option<BTreeSet<u64>>>;

pub struct Reference {
    order: HostOrder,
    /// The direct predecessors of each node, and its line.
    before: Vec<Vec<usize>>,
    line: Vec<usize>,
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
    bytes: HashMap<(bool, u64), Vec<(usize, AccessKind)>>,
    /// Address to width.
    cells: BTreeMap<u64, u8>,
    /// Copies of other sizes than those of values, and whether they are allocations.
    copies: Vec<(Access, usize, bool)>,
    /// Writes of all values, in the order in which they ran: address, node, value.
    writes: Vec<(u64, usize, Option<u64>)>,
    at: usize,
    pub expected: Expected,
}

fn one<T>(of: T) -> Vec<T> {
    vec![of]
}

impl Reference {
    pub fn new(order: HostOrder) -> Self {
        Self {
            order,
            before: Vec::new(),
            line: Vec::new(),
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
            bytes: HashMap::new(),
            cells: BTreeMap::new(),
            copies: Vec::new(),
            writes: Vec::new(),
            at: 0,
            expected: Expected::new(),
        }
    }

    fn only_reported(&self) -> bool {
        self.order == HostOrder::Reported
    }

    /// All that is before any of these, and they themselves.
    fn closure(&self, of: &[usize]) -> Set {
        let mut seen = vec![false; self.before.len()];
        let mut open = of.to_vec();
        while let Some(node) = open.pop() {
            if !std::mem::replace(&mut seen[node], true) {
                open.extend(&self.before[node]);
            }
        }
        (0..seen.len()).filter(|node| seen[*node]).collect()
    }

    fn node(&mut self, before: Vec<usize>) -> usize {
        self.before.push(before);
        self.line.push(self.at);
        self.before.len() - 1
    }

    fn knowledge(&self, by: By) -> Vec<usize> {
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
        let live =
            self.threads.values().filter(|thread| thread.1).map(|thread| self.closure(&thread.0));
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
        self.at = line;
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
                let of = Stream { context: *context, kind: Some(*kind), tail, capture: None };
                self.streams.insert(*stream, of);
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
                let captured = self.streams.get(stream).is_some_and(|of| of.capture.is_some());
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
                let mut before = self.of_context(*context);
                before.extend(self.knowledge(by));
                let node = self.submit(before, Act::Nothing);
                self.set_record(*event, node);
            }
            Do::ContextWait(context, event) => self.context_wait(by, *context, *event),
            Do::ContextShares(context, stream) => {
                if let Some(of) = self.streams.get(stream).filter(|of| of.capture.is_none()) {
                    self.gone.push((*context, StreamKind::NonBlocking, of.tail));
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
                self.before[node].extend(task.running.unwrap());
                if !self.only_reported() {
                    self.host.push(node);
                }
            }
            Do::Capture(stream) => {
                self.known(*stream);
                let fronts = HashMap::from([(*stream, Vec::new())]);
                self.captures.push(Capture {
                    origin: *stream,
                    nodes: Vec::new(),
                    fronts,
                    over: false,
                });
                self.streams.get_mut(stream).unwrap().capture = Some(self.captures.len() - 1);
            }
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
                self.accesses(node, accesses);
            }
            Do::HostWrite(cell, value) => {
                let node = self.host_node(by);
                self.write(node, *cell, *value);
            }
            Do::HostSaw(cell, value) => {
                let before = self.knowledge(by);
                if let Some(seen) = self.seen(&before, *cell, *value, Compare::Equal) {
                    self.learn(by, &seen);
                }
                let node = self.host_node(by);
                self.access(node, &of_cell(AccessKind::AtomicRead, *cell));
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
                let known = self.knowledge(by);
                self.tokens.entry(*token).or_default().extend(known);
            }
            Do::TakeOver(token) => {
                let known = self.tokens.get(token).cloned().unwrap_or_default();
                self.learn(by, &known);
            }
            Do::Start(thread) => {
                let known = self.knowledge(by);
                if self.only_reported() {
                    self.leave(*thread);
                    self.threads.insert(*thread, (known, true));
                }
            }
            Do::Join(thread) => {
                if self.only_reported()
                    && let Some((known, _)) = self.threads.get(thread).cloned()
                {
                    self.learn(by, &known);
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

    fn destroy_context(&mut self, by: By, context: u64) {
        let of = |stream: &(&u64, &Stream)| stream.1.context == context;
        let streams: Vec<u64> = self.streams.iter().filter(of).map(|stream| *stream.0).collect();
        for stream in streams {
            self.object(by, false, stream, AccessKind::Write);
            self.streams.remove(&stream);
        }
        self.gone.retain(|gone| gone.0 != context);
        self.entry.remove(&context);
    }

    fn record(&mut self, by: By, event: u64, stream: u64, external: bool) {
        self.object(by, true, event, AccessKind::AtomicWrite);
        self.object(by, false, stream, AccessKind::Read);
        let capture = self.streams.get(&stream).and_then(|of| of.capture);
        match (capture, external) {
            (Some(capture), true) => {
                self.captured(capture, stream, NodeWork::Record(EventId(event)))
            }
            (Some(capture), false) => {
                let front = self.captures[capture].fronts.get(&stream).cloned().unwrap_or_default();
                self.events.entry(event).or_default().captured = Some((capture, front));
            }
            (None, _) => {
                let node = self.in_stream(by, stream, Act::Nothing, &[]);
                self.set_record(event, node);
            }
        }
    }

    fn wait(&mut self, by: By, stream: u64, event: u64, external: bool) {
        self.object(by, true, event, AccessKind::Read);
        self.object(by, false, stream, AccessKind::Read);
        self.known(stream);
        let inside = self.streams[&stream].capture;
        let (record, captured) =
            self.events.get(&event).map_or((None, None), |of| (of.record, of.captured.clone()));
        if let (Some(inside), true) = (inside, external) {
            self.captured(inside, stream, NodeWork::Wait(EventId(event)));
            return;
        }
        match captured {
            Some((capture, nodes)) => {
                let live = !self.captures[capture].over;
                if live && inside.is_none_or(|inside| inside == capture) {
                    self.captures[capture].fronts.entry(stream).or_default().extend(nodes);
                    self.streams.get_mut(&stream).unwrap().capture = Some(capture);
                } else if inside.is_none() {
                    self.in_stream(by, stream, Act::Nothing, &[]);
                }
            }
            // One that was never recorded is no operation.
            None if inside.is_none() && record.is_some() => {
                self.in_stream(by, stream, Act::Nothing, record.as_slice());
            }
            None => {}
        }
    }

    fn context_wait(&mut self, by: By, context: u64, event: u64) {
        self.object(by, true, event, AccessKind::Read);
        let Some(Event { record: Some(record), captured: None }) = self.events.get(&event) else {
            return;
        };
        let record = *record;
        self.entry.entry(context).or_default().push(record);
        let of = |stream: &(&u64, &Stream)| stream.1.context == context;
        let streams: Vec<u64> = self.streams.iter().filter(of).map(|stream| *stream.0).collect();
        for stream in streams {
            let mut before: Vec<usize> = self.streams[&stream].tail.into_iter().collect();
            before.push(record);
            let tail = self.submit(before, Act::Nothing);
            self.streams.get_mut(&stream).unwrap().tail = Some(tail);
        }
    }

    fn end_capture(&mut self, stream: u64, graph: u64) {
        let Some(capture) = self.streams.get(&stream).and_then(|of| of.capture) else {
            return;
        };
        for of in self.streams.values_mut().filter(|of| of.capture == Some(capture)) {
            of.capture = None;
        }
        assert_eq!(self.captures[capture].origin, stream);
        self.captures[capture].over = true;
        self.graphs.insert(graph, self.captures[capture].nodes.clone());
    }

    fn define(&mut self, graph: u64, nodes: &[Node]) {
        let mut flat: Vec<Node> = Vec::new();
        let mut ends: Vec<Vec<usize>> = Vec::new();
        for node in nodes {
            let after: Vec<usize> =
                node.after.iter().flat_map(|node| ends[*node].clone()).collect();
            let NodeWork::Child(child) = node.work else {
                flat.push(Node { work: node.work.clone(), after });
                ends.push(one(flat.len() - 1));
                continue;
            };
            ends.push(append(
                &mut flat,
                self.graphs.get(&child.0).map_or(&[], Vec::as_slice),
                &after,
            ));
        }
        self.graphs.insert(graph, flat);
    }

    fn known(&mut self, stream: u64) {
        if !self.streams.contains_key(&stream) {
            let tail = self.entry.get(&0).cloned().map(|entry| self.submit(entry, Act::Nothing));
            let of = Stream { context: 0, kind: Some(StreamKind::Blocking), tail, capture: None };
            self.streams.insert(stream, of);
        }
    }

    fn destroy(&mut self, stream: u64) {
        if let Some(of) = self.streams.remove(&stream) {
            self.gone.push((of.context, of.kind.unwrap(), of.tail));
        }
    }

    fn of_context(&self, context: u64) -> Vec<usize> {
        let live =
            self.streams.values().filter(|of| of.context == context).filter_map(|of| of.tail);
        live.chain(self.gone.iter().filter(|gone| gone.0 == context).filter_map(|gone| gone.2))
            .collect()
    }

    /// The blocking streams of a context, those that are gone too.
    fn blocking(&self, context: u64) -> Vec<usize> {
        let live = self.streams.values().map(|of| (of.context, of.kind.unwrap(), of.tail));
        let all = live.chain(self.gone.iter().copied());
        all.filter(|of| of.0 == context && of.1 == StreamKind::Blocking)
            .filter_map(|of| of.2)
            .collect()
    }

    fn captured(&mut self, capture: usize, stream: u64, work: NodeWork) {
        let of = &mut self.captures[capture];
        let after = of.fronts.get(&stream).cloned().unwrap_or_default();
        of.nodes.push(Node { work, after });
        of.fronts.insert(stream, one(of.nodes.len() - 1));
    }

    fn stream_work(&mut self, by: By, stream: u64, act: Act) {
        self.object(by, false, stream, AccessKind::Read);
        if let Some(capture) = self.streams.get(&stream).and_then(|of| of.capture) {
            let work = match act {
                Act::Nothing => NodeWork::Work(Vec::new()),
                Act::Work(accesses) | Act::Function(accesses) => NodeWork::Work(accesses),
                Act::Write(cell, value) => NodeWork::WriteValue(cell, value),
                Act::Wait(cell, value, compare) => NodeWork::WaitValue(cell, value, compare),
            };
            self.captured(capture, stream, work);
        } else {
            self.in_stream(by, stream, act, &[]);
        }
    }

    fn in_stream(&mut self, by: By, stream: u64, act: Act, also: &[usize]) -> usize {
        self.known(stream);
        let (context, kind, tail) = {
            let of = &self.streams[&stream];
            (of.context, of.kind.unwrap(), of.tail)
        };
        let mut before: Vec<usize> = tail.into_iter().chain(also.iter().copied()).collect();
        before.extend(self.knowledge(by));
        match kind {
            StreamKind::NonBlocking => {}
            StreamKind::Blocking => {
                let legacy =
                    |of: &&Stream| of.context == context && of.kind == Some(StreamKind::Legacy);
                before.extend(self.streams.values().filter(legacy).filter_map(|of| of.tail));
            }
            StreamKind::Legacy => before.extend(self.blocking(context)),
        }
        let node = self.submit(before, act);
        self.streams.get_mut(&stream).unwrap().tail = Some(node);
        node
    }

    fn set_record(&mut self, event: u64, node: usize) {
        let of = self.events.entry(event).or_default();
        *of = Event { record: Some(node), captured: None };
    }

    fn launch(&mut self, by: By, stream: u64, graph: u64) {
        self.object(by, false, stream, AccessKind::Read);
        self.known(stream);
        let nodes = self.graphs.get(&graph).cloned().unwrap_or_default();
        if let Some(capture) = self.streams[&stream].capture {
            let of = &mut self.captures[capture];
            let front = of.fronts.get(&stream).cloned().unwrap_or_default();
            let front = append(&mut of.nodes, &nodes, &front);
            of.fronts.insert(stream, front);
            return;
        }
        let start = self.in_stream(by, stream, Act::Nothing, &[]);
        let mut all = one(start);
        for node in &nodes {
            let mut before: Vec<usize> = node.after.iter().map(|node| all[node + 1]).collect();
            before.push(start);
            let act = match &node.work {
                NodeWork::Work(accesses) | NodeWork::Function(accesses) => {
                    Act::Work(accesses.clone())
                }
                NodeWork::WriteValue(cell, value) => Act::Write(*cell, *value),
                NodeWork::WaitValue(cell, value, compare) => Act::Wait(*cell, *value, *compare),
                NodeWork::Wait(event) => {
                    if let Some(Event { record: Some(record), captured: None }) =
                        self.events.get(&event.0)
                    {
                        before.push(*record);
                    }
                    Act::Nothing
                }
                NodeWork::Record(_) => Act::Nothing,
                // These programs have no graphs in graphs.
                _ => unreachable!(),
            };
            let task = self.submit(before, act);
            if let NodeWork::Record(event) = node.work {
                self.set_record(event.0, task);
            }
            all.push(task);
        }
        let end = self.submit(all, Act::Nothing);
        self.streams.get_mut(&stream).unwrap().tail = Some(end);
    }

    // ---- Tasks

    fn submit(&mut self, before: Vec<usize>, act: Act) -> usize {
        let node = self.node(before);
        self.tasks.insert(node, Task { act, running: None });
        self.run(node, false);
        node
    }

    fn held(&self, node: usize) -> bool {
        self.before[node].iter().any(|before| self.tasks.contains_key(before))
    }

    /// Whether something changed.
    fn run(&mut self, node: usize, force: bool) -> bool {
        let Some(task) = self.tasks.get(&node).cloned() else { return false };
        if self.held(node) || task.running.is_some() && !force {
            return false;
        }
        match task.act {
            Act::Nothing => {}
            Act::Work(accesses) => {
                self.accesses(node, &accesses);
            }
            Act::Write(cell, value) => self.write(node, cell, value),
            Act::Wait(cell, value, compare) => {
                self.expect(cell);
                let before = self.before[node].clone();
                match self.seen(&before, cell, value, compare) {
                    Some(seen) => self.before[node].extend(seen),
                    None if force => {
                        let all = self
                            .writes
                            .iter()
                            .filter(|write| write.0 == cell.address)
                            .map(|write| write.1);
                        let all: Vec<usize> = all.collect();
                        self.before[node].extend(all);
                    }
                    None => {
                        self.width(cell);
                        return false;
                    }
                }
                self.access(node, &of_cell(AccessKind::Wait, cell));
            }
            Act::Function(accesses) => {
                if task.running.is_none() {
                    let begin = self.node(self.before[node].clone());
                    self.line[begin] = self.line[node];
                    self.accesses(begin, &accesses);
                    self.tasks.get_mut(&node).unwrap().running = Some(one(begin));
                    if !force {
                        return true;
                    }
                }
                self.before[node].extend(self.tasks[&node].running.clone().unwrap());
            }
        }
        self.tasks.remove(&node);
        true
    }

    fn drain(&mut self) {
        while self
            .tasks
            .keys()
            .copied()
            .collect::<Vec<_>>()
            .into_iter()
            .any(|node| self.run(node, false))
        {}
    }

    fn force_one(&mut self, node: usize) -> bool {
        let before = self.closure(&one(node));
        let stuck = before
            .into_iter()
            .find(|other| *other != node && self.tasks.contains_key(other) && !self.held(*other));
        stuck.is_some_and(|stuck| {
            self.run(stuck, true);
            self.drain();
            true
        })
    }

    fn reach(&mut self, by: By, what: What) {
        let points = match what {
            What::Stream(StreamId(stream)) => {
                let Some(of) = self.streams.get(&stream) else { return };
                let mut points: Vec<usize> = of.tail.into_iter().collect();
                if of.kind == Some(StreamKind::Legacy) {
                    points.extend(self.blocking(of.context));
                }
                points
            }
            What::Event(event) => {
                self.events.get(&event.0).and_then(|of| of.record).into_iter().collect()
            }
            What::Context(context) => self.of_context(context.0),
        };
        for point in points {
            while self.tasks.contains_key(&point) {
                if !self.force_one(point) {
                    self.run(point, true);
                    self.drain();
                }
            }
            self.learn(by, &[point]);
        }
    }

    // ---- Bytes and values

    fn host_node(&mut self, by: By) -> usize {
        let before = self.knowledge(by);
        let node = self.node(before);
        self.learn(by, &[node]);
        node
    }

    fn object(&mut self, by: By, event: bool, number: u64, kind: AccessKind) {
        if !self.only_reported() || matches!(by, By::Function(_)) {
            return;
        }
        let node = self.host_node(by);
        let number = number * 2 + u64::from(!event);
        self.touch(node, true, kind, std::iter::once(number..number + 1));
    }

    fn access(&mut self, node: usize, access: &Access) {
        self.accesses(node, std::slice::from_ref(access));
    }

    /// Neighbours of one kind, such as the rows of a copy, are one access.
    fn accesses(&mut self, node: usize, accesses: &[Access]) {
        let mut rest = accesses;
        while let Some(first) = rest.first() {
            let alike = rest.iter().take_while(|access| access.kind == first.kind).count();
            let ranges = rest[..alike].iter().flat_map(rows);
            self.touch(node, false, first.kind, ranges);
            rest = &rest[alike..];
        }
        for access in accesses {
            self.overwritten(node, access);
        }
    }

    fn overwritten(&mut self, node: usize, access: &Access) {
        let range = &access.range;
        let (anew, written) =
            (access.kind == AccessKind::Allocate, access.kind == AccessKind::Write);
        if range.is_empty() || !(anew || written) {
            return;
        }
        let bytes = range.end - range.start;
        if written
            && access.stride().is_none()
            && (bytes == 4 || bytes == 8)
            && range.start.is_multiple_of(bytes)
        {
            self.width(Cell { address: range.start, bytes: bytes as u8 });
        } else if bytes >= 4 {
            self.copies.push((access.clone(), node, anew));
        }
        let over = |cell: &(&u64, &u8)| {
            let end = cell.0 + u64::from(*cell.1);
            rows(access).iter().any(|row| *cell.0 < row.end && end > row.start)
        };
        let cells: Vec<u64> = self.cells.iter().filter(over).map(|cell| *cell.0).collect();
        for cell in cells {
            if anew {
                self.writes.retain(|write| write.0 != cell);
            }
            self.writes.push((cell, node, None));
        }
    }

    /// A wait for a value that nothing has written as one: any copy may have.
    fn expect(&mut self, cell: Cell) {
        if self.cells.contains_key(&cell.address) {
            return;
        }
        let of = range(cell);
        for (copied, node, anew) in self.copies.clone() {
            if rows(&copied).iter().any(|row| row.start < of.end && of.start < row.end) {
                if anew {
                    self.writes.retain(|write| write.0 != cell.address);
                }
                self.writes.push((cell.address, node, None));
            }
        }
        self.width(cell);
    }

    fn width(&mut self, cell: Cell) {
        let width = self.cells.entry(cell.address).or_default();
        *width = cell.bytes.max(*width);
    }

    fn write(&mut self, node: usize, cell: Cell, value: u64) {
        self.touch(node, false, AccessKind::AtomicWrite, [range(cell)]);
        self.width(cell);
        self.writes.push((cell.address, node, Some(value)));
    }

    /// What is certainly before a wait that is after `before`.
    fn seen(
        &self,
        before: &[usize],
        cell: Cell,
        value: u64,
        compare: Compare,
    ) -> Option<Vec<usize>> {
        let before = self.closure(before);
        let writes: Vec<_> = self.writes.iter().filter(|write| write.0 == cell.address).collect();
        let mut seen: Option<Set> = None;
        for (index, (_, node, written)) in writes.iter().enumerate() {
            let hidden = writes[index + 1..].iter().any(|later| {
                before.contains(&later.1) && self.closure(&one(later.1)).contains(node)
            });
            if !hidden && written.is_some_and(|written| holds(compare, cell, written, value)) {
                let all = self.closure(&one(*node));
                seen = Some(seen.map_or_else(|| all.clone(), |seen| &seen & &all));
            }
        }
        seen.map(|seen| seen.into_iter().collect())
    }

    fn touch(
        &mut self,
        node: usize,
        object: bool,
        kind: AccessKind,
        ranges: impl IntoIterator<Item = std::ops::Range<u64>>,
    ) {
        let before = self.closure(&one(node));
        // The bytes with each earlier node that lacks an order, in this access.
        let mut found: BTreeMap<usize, BTreeSet<u64>> = BTreeMap::new();
        for byte in ranges.into_iter().flatten() {
            if kind == AccessKind::Allocate {
                self.bytes.remove(&(object, byte));
            }
            let all = self.bytes.entry((object, byte)).or_default().clone();
            if let Some(freed) = all.iter().find(|access| access.1 == AccessKind::Free) {
                found.entry(freed.0).or_default().insert(byte);
                continue;
            }
            for (index, (earlier, of)) in all.iter().enumerate() {
                if before.contains(earlier) || !conflict(*of, kind) {
                    continue;
                }
                // A later one that stands for it is found instead.
                let stands = all[index + 1..].iter().any(|(later, other)| {
                    shadows(*other, *of) && self.closure(&one(*later)).contains(earlier)
                });
                if !stands {
                    found.entry(*earlier).or_default().insert(byte);
                }
            }
            self.bytes.get_mut(&(object, byte)).unwrap().push((node, kind));
        }
        let mut now: BTreeMap<(usize, usize), Vec<BTreeSet<u64>>> = BTreeMap::new();
        for (earlier, bytes) in found {
            let (one, two) = (self.line[earlier], self.line[node]);
            now.entry((one.min(two), one.max(two))).or_default().push(bytes);
        }
        for (pair, mut bytes) in now {
            let certain = if bytes.len() == 1 { bytes.pop() } else { None };
            self.expected.entry(pair).or_insert(certain);
        }
    }
}

fn of_cell(kind: AccessKind, cell: Cell) -> Access {
    Access::new(kind, cell.address, cell.bytes.into())
}

/// Each row of an access.
fn rows(access: &Access) -> Vec<std::ops::Range<u64>> {
    let Some(stride) = access.stride() else { return vec![access.range.clone()] };
    let starts = access.range.clone().step_by(stride.pitch as usize);
    starts.map(|start| start..start + stride.width).collect()
}

fn range(cell: Cell) -> std::ops::Range<u64> {
    cell.address..cell.address + u64::from(cell.bytes)
}

fn holds(compare: Compare, cell: Cell, seen: u64, value: u64) -> bool {
    assert_eq!(cell.bytes, 4);
    let (seen, value) = (seen as u32, value as u32);
    match compare {
        Compare::GreaterOrEqual => seen.wrapping_sub(value) as i32 >= 0,
        Compare::Equal => seen == value,
        Compare::And => seen & value != 0,
        Compare::Nor => !(seen | value) != 0,
    }
}

fn append(graph: &mut Vec<Node>, child: &[Node], after: &[usize]) -> Vec<usize> {
    let first = graph.len();
    if child.is_empty() {
        graph.push(Node { work: NodeWork::Work(Vec::new()), after: after.to_vec() });
        return one(first);
    }
    for node in child {
        let inner = node.after.iter().map(|node| node + first);
        let after = if node.after.is_empty() { after.to_vec() } else { inner.collect() };
        graph.push(Node { work: node.work.clone(), after });
    }
    let waited = |node: &usize| graph[first..].iter().any(|other| other.after.contains(node));
    (first..graph.len()).filter(|node| !waited(node)).collect()
}
