//! Executable graphs, their launches, and what they hold: semaphores and user objects.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Feed, Launch, Observer};
use crate::op::{
    Access, AccessKind, Cell, Compare, EventId, FunctionId, GraphId, Node, NodeWork, Op, StreamId,
    What,
};

/// A semaphore of another API. Clones are the same semaphore, for all feeds of a process.
#[derive(Clone, Debug)]
pub struct Semaphore {
    address: u64,
    /// The signals and the waits of a binary one so far: it has no value that would show which wait
    /// is for which signal.
    counts: Option<Arc<(AtomicU64, AtomicU64)>>,
}

fn next(count: &AtomicU64) -> u64 {
    count.fetch_add(1, Ordering::Relaxed) + 1
}

impl Semaphore {
    /// Creates a semaphore: binary, or with a value that only rises.
    #[must_use]
    pub fn new(binary: bool) -> Self {
        /// Addresses from here on are no memory of a program.
        static LAST: AtomicU64 = AtomicU64::new(1 << 63);
        let address = LAST.fetch_add(8, Ordering::Relaxed);
        Self { address, counts: binary.then(Arc::default) }
    }

    /// The place of the semaphore's value, as if the value were in memory.
    #[must_use]
    pub fn cell(&self) -> Cell {
        Cell { address: self.address, bytes: 8 }
    }

    /// The value of a signal.
    pub(super) fn signal(&self, value: u64) -> u64 {
        self.counts.as_ref().map_or(value, |counts| next(&counts.0))
    }

    /// That of a wait, which is over when a signal of this value or a higher one is.
    pub(super) fn wait(&self, value: u64) -> u64 {
        self.counts.as_ref().map_or(value, |counts| next(&counts.1))
    }
}

/// A part of a graph node's work.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum GraphWork {
    /// A kernel, an empty node, or other work that the host does not poll.
    Work(Vec<Access>),
    /// A copy or a memset.
    Write(Vec<Access>),
    /// A host function.
    Function,
    /// The record of an event.
    Record(EventId),
    /// A wait for an event.
    Wait(EventId),
    /// The write of a value.
    WriteValue(Cell, u64),
    /// A wait for a value.
    WaitValue(Cell, u64, Compare),
    /// A signal of an external semaphore.
    Signal(Semaphore, u64),
    /// A wait for an external semaphore.
    WaitSemaphore(Semaphore, u64),
}

/// A node of an executable graph.
#[derive(Clone, Debug)]
pub struct GraphNode {
    /// Its work, one part after the other.
    pub work: Vec<GraphWork>,
    /// The nodes that it waits for, by index. Each index is less than the node's own.
    pub after: Vec<usize>,
}

impl GraphNode {
    fn has_binary(&self) -> bool {
        self.work.iter().any(|work| match work {
            GraphWork::Signal(semaphore, _) | GraphWork::WaitSemaphore(semaphore, _) => {
                semaphore.counts.is_some()
            }
            _ => false,
        })
    }
}

impl GraphWork {
    /// The work for the checker. A launch numbers the signals and waits of binary semaphores.
    fn node_work(&self, launched: bool) -> NodeWork {
        let numbered = |semaphore: &Semaphore| launched || semaphore.counts.is_none();
        match self {
            Self::Work(accesses) | Self::Write(accesses) => NodeWork::Work(accesses.clone()),
            Self::Function => NodeWork::Function(Vec::new()),
            Self::Record(event) => NodeWork::Record(*event),
            Self::Wait(event) => NodeWork::Wait(*event),
            Self::WriteValue(cell, value) => NodeWork::WriteValue(*cell, *value),
            Self::WaitValue(cell, value, compare) => NodeWork::WaitValue(*cell, *value, *compare),
            Self::Signal(semaphore, value) => {
                let value = if numbered(semaphore) { semaphore.signal(*value) } else { 0 };
                NodeWork::WriteValue(semaphore.cell(), value)
            }
            Self::WaitSemaphore(semaphore, value) => {
                let value = if numbered(semaphore) { semaphore.wait(*value) } else { 0 };
                NodeWork::WaitValue(semaphore.cell(), value, Compare::GreaterOrEqual)
            }
        }
    }

    /// Whether a launch has a place for it that the host may see.
    fn writes(&self) -> bool {
        matches!(self, Self::Write(_) | Self::WriteValue(..) | Self::Signal(..))
    }
}

/// Whether a captured node writes.
fn writes_any(node: &Node) -> bool {
    match &node.work {
        NodeWork::Work(accesses) => accesses.iter().any(|of| of.kind == AccessKind::Write),
        work => matches!(work, NodeWork::WriteValue(..)),
    }
}

impl<O: Observer> Feed<O> {
    /// The nodes of an executable graph, as they are now. Child graphs are replaced by their nodes.
    pub fn graph(&mut self, graph: GraphId, nodes: Vec<GraphNode>) {
        self.define(graph, &nodes, false);
        self.graphs.insert(graph, nodes);
    }

    fn define(&mut self, graph: GraphId, of: &[GraphNode], launched: bool) {
        let mut nodes: Vec<Node> = Vec::new();
        // The last node here of each one there.
        let mut ends: Vec<usize> = Vec::new();
        for GraphNode { work, after } in of {
            let mut after: Vec<usize> =
                after.iter().filter_map(|node| ends.get(*node).copied()).collect();
            let nothing = work.is_empty().then(|| NodeWork::Work(Vec::new()));
            for work in work.iter().map(|work| work.node_work(launched)).chain(nothing) {
                nodes.push(Node { work, after });
                after = vec![nodes.len() - 1];
            }
            ends.push(nodes.len() - 1);
        }
        self.apply(Op::GraphDefine { graph, nodes: &nodes });
    }

    /// A capture begins. Until it ends, operations of this stream, and of streams that join the
    /// capture, are nodes. A driver that reports its graphs with [`graph`](Self::graph) reports no
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

    /// The accesses of the copies, memsets and kernels of a graph for which `wanted` returns
    /// `true`.
    #[must_use]
    pub fn graph_accesses(&self, graph: GraphId, wanted: impl Fn(&Access) -> bool) -> Vec<Access> {
        let nodes = self.checker.nodes(graph).unwrap_or_default();
        let of = |node: &Node| match &node.work {
            NodeWork::Work(accesses) => accesses.iter().filter(|of| wanted(of)).cloned().collect(),
            _ => Vec::new(),
        };
        nodes.iter().flat_map(of).collect()
    }

    /// A graph is instantiated, cloned or updated: `to` has the nodes that `from` has now.
    pub fn graph_copy(&mut self, from: GraphId, to: GraphId) {
        self.graphs.remove(&to);
        self.apply(Op::GraphCopy { from, to });
    }

    /// An executable graph is destroyed. Destructors of the user objects that it held run after its
    /// launches.
    pub fn graph_destroy(&mut self, graph: GraphId, objects: impl IntoIterator<Item = u64>) {
        self.objects_left(graph, objects);
        self.graphs.remove(&graph);
        self.apply(Op::GraphDestroy { graph });
        self.apply(Op::EventDestroy { event: EventId(graph.0) });
    }

    /// An executable graph may no longer hold these user objects. Their destructors run after the
    /// launches of the graph so far.
    pub fn objects_left(&mut self, graph: GraphId, objects: impl IntoIterator<Item = u64>) {
        let launches = self.checker.mark(What::Event(EventId(graph.0)));
        for object in objects {
            self.objects.entry(object).or_default().join(&launches);
        }
    }

    /// An executable graph is launched. Until [`launched`](Self::launched), report the nodes of the
    /// launch, one after the other: host functions, and operations that write. You may leave out
    /// other nodes.
    pub fn launch(&mut self, stream: StreamId, graph: GraphId) {
        let nodes = self.graphs.remove(&graph);
        if let Some(nodes) = &nodes
            && nodes.iter().any(GraphNode::has_binary)
        {
            self.define(graph, nodes, true);
        }
        let own = self.checker.nodes(graph).unwrap_or_default();
        let hosts = own.iter().filter(|node| matches!(node.work, NodeWork::Function(_)));
        let functions: Vec<FunctionId> = hosts.map(|_| self.new_function()).collect();
        // Launches of one graph do not overlap.
        let last = EventId(graph.0);
        self.apply(Op::Join { stream, event: last });
        self.apply(Op::Launch { stream, graph, functions: &functions });
        let mut ends = self.checker.launched().into_iter();
        self.apply(Op::Record { event: last, stream, external: false });
        let mut writes = VecDeque::new();
        for node in nodes.iter().flatten() {
            if node.work.is_empty() {
                ends.next();
            }
            for (work, end) in node.work.iter().zip(&mut ends) {
                writes.extend(work.writes().then_some(end));
            }
        }
        // Of a captured graph there are no other nodes.
        writes.extend(own.iter().zip(ends).filter(|(node, _)| writes_any(node)).map(|of| of.1));
        self.launch = Some(Launch { functions: functions.into(), writes });
        self.graphs.extend(nodes.map(|nodes| (graph, nodes)));
    }

    /// All nodes of the launch are submitted.
    pub fn launched(&mut self) {
        self.launch = None;
    }

    /// The last reference to a user object is gone: its destructor will run.
    pub fn object_released(&mut self, object: u64) {
        let launches = self.objects.remove(&object).unwrap_or_default();
        self.destructors.push_back(launches);
    }

    /// A destructor begins on the calling thread. Destructors run in the order of
    /// [`object_released`](Self::object_released).
    pub fn destructor_begins(&mut self) {
        let launches = self.destructors.pop_front().unwrap_or_default();
        self.begin("a destructor", self.call.number, None);
        self.reach(&launches);
    }

    /// The destructor has ended.
    pub fn destructor_ends(&mut self) {
        self.begin("a destructor", self.call.number, None);
        // It is no thread of the program, and the next function has an order of its own.
        self.apply(Op::ThreadEnd);
    }
}
