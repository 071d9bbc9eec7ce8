//! Executable graphs, their launches, and the user objects that they hold.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;

use super::calls::Observer;
use super::memory::{Launch, MemoryFeed};
use super::nodes::GraphNode;
use super::streams::Awaited;
use crate::checker::{Options, Size};
use crate::op::{
    Access, AccessKind, EventId, FunctionId, GraphId, Node, NodeWork, Op, StreamId, What,
};
use crate::task::Mark;

/// Whether a captured node writes.
fn writes_any(node: &Node) -> bool {
    match &node.work {
        NodeWork::Work(accesses) => accesses.iter().any(|access| access.kind == AccessKind::Write),
        work => matches!(work, NodeWork::WriteValue(..)),
    }
}

/// A checker that takes a driver's calls. See the [module](super).
///
/// Some operations have a `place`: a number that the caller chooses. With the same number it
/// reports later that the operation begins or is done. An operation without a place may be done at
/// any time.
pub struct Feed<O> {
    memory: MemoryFeed<O>,
    graphs: HashMap<GraphId, Vec<GraphNode>>,
    /// The launches of destroyed graphs, by the user objects that they held.
    objects: BTreeMap<u64, Mark>,
    /// The launches that come before each destructor that has not begun.
    destructors: VecDeque<Mark>,
}

impl<O: fmt::Debug> fmt::Debug for Feed<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = f.debug_struct("Feed");
        text.field("call", &self.call).field("observer", &self.observer).finish()
    }
}

part!(Feed, memory: MemoryFeed);

impl<O: Observer> Feed<O> {
    /// Creates a feed without objects.
    #[must_use]
    pub fn new(options: Options, observer: O) -> Self {
        Self {
            memory: MemoryFeed::new(options, observer),
            graphs: HashMap::new(),
            objects: BTreeMap::new(),
            destructors: VecDeque::new(),
        }
    }

    /// The wait is over, without an error.
    // As a method of this very type it takes what `await_stream` of the same feed returns.
    pub fn reached(&mut self, awaited: &Awaited) {
        awaited.marks().for_each(|mark| self.reach(mark));
    }

    /// The memory use of the checker, and the number of unfinished operations that the feed keeps.
    #[must_use]
    pub fn size(&self) -> (Size, usize) {
        let places = self.functions.len() + self.visible.len() + self.records.len();
        (self.checker.size(), places + self.objects.len() + self.destructors.len())
    }

    /// The nodes of an executable graph, as they are now. Child graphs are replaced by their nodes.
    pub fn graph(&mut self, graph: GraphId, nodes: Vec<GraphNode>) {
        self.define(graph, &nodes, false);
        self.graphs.insert(graph, nodes);
    }

    fn define(&mut self, graph: GraphId, given: &[GraphNode], launched: bool) {
        let mut nodes: Vec<Node> = Vec::new();
        // The last node here of each one there.
        let mut ends: Vec<usize> = Vec::new();
        for GraphNode { work, after } in given {
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

    /// The accesses of the copies and memsets of a graph for which `wanted` returns `true`. Of a
    /// kernel it is not known what it accesses.
    #[must_use]
    pub fn graph_accesses(&self, graph: GraphId, wanted: impl Fn(&Access) -> bool) -> Vec<Access> {
        let nodes = self.checker.nodes(graph).unwrap_or_default();
        let accesses = nodes.iter().flat_map(|node| match &node.work {
            NodeWork::Work(accesses)
                if !accesses.iter().any(|access| access.launch().is_some()) =>
            {
                &accesses[..]
            }
            _ => &[],
        });
        accesses.filter(|access| wanted(access)).cloned().collect()
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
        if launches.is_empty() {
            return;
        }
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
        writes
            .extend(own.iter().zip(ends).filter(|(node, _)| writes_any(node)).map(|(_, end)| end));
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
        self.begin_within("a destructor");
        self.reach(&launches);
    }

    /// The destructor has ended.
    pub fn destructor_ends(&mut self) {
        self.begin_within("a destructor");
        // It is no thread of the program, and the next function has an order of its own.
        self.apply(Op::ThreadEnd);
    }
}
