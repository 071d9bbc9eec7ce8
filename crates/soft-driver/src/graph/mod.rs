//! Graphs: their nodes, and how they are made and destroyed. [`exec`] has the executable ones and their
//! launches, [`events`] the nodes that have an event.

use core::ffi::c_uint;
use std::collections::BTreeMap;
use std::sync::Arc;

use cuda_order_check::feed::GraphWork;
use cuda_order_check::{Access, EventId};

use crate::abi::*;
use crate::arg::{In, Ptr};
use crate::engine::point::Point;
use crate::engine::user_object::References;
use crate::engine::work::HostCall;
use crate::machine::State;
use crate::machine::call_frame::CallFrame;
use crate::machine::handles::{Kind, Table};
use crate::memory::word::{Batch, ValueOperation};
use crate::memory::work::MemoryWork;
use crate::processes::semaphore::Semaphores;

pub(crate) mod flatten;

pub(crate) mod events;
pub(crate) mod exec;

/// What a node does. Events are named by handle: a graph does not keep them.
#[derive(Clone, Debug)]
pub(crate) enum NodeKind {
    Empty,
    Host(HostCall),
    Memory(MemoryWork),
    /// Nothing, for so many nanoseconds.
    Busy(u64),
    Record(u64),
    Wait(u64),
    Values(Batch),
    /// Signals of external semaphores, or waits for them.
    Semaphores(Semaphores),
    /// Another graph, which is the node's own. An executable graph has the nodes of that instead.
    Child(u32),
    /// What the program says that a kernel touches, for the order checker.
    Declared(Vec<Access>),
}

/// A node of a graph.
pub(crate) struct Node {
    pub(crate) graph: u32,
    pub(crate) after: Vec<u32>,
    pub(crate) kind: NodeKind,
    /// The context of the stream from which it was captured.
    pub(crate) context: Option<u32>,
    /// Its number among all nodes that the graph ever had.
    pub(crate) id: u32,
    /// The handle of the node that it was cloned from, or 0.
    pub(crate) clone_of: u64,
    /// The parameters of a node that sets or copies memory.
    pub(crate) params: Option<NodeParams>,
}

/// What a node was made with that sets or copies memory.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NodeParams {
    Set(MemsetParams),
    Copy(Copy3D),
}

// SAFETY: the pointers are the program's, which says that they are good for as long as the node is,
// in whatever thread. They are shown to it again, and nothing else.
unsafe impl Send for NodeParams {}

/// A graph's nodes in the order in which they were added.
#[derive(Default)]
pub(crate) struct Graph {
    pub(crate) nodes: Vec<u32>,
    pub(crate) objects: References,
    /// Its number among all graphs and executable graphs.
    pub(crate) id: u32,
    /// How many nodes it ever had.
    pub(crate) nodes_made: u32,
    /// The node that it belongs to, if it is a node's own.
    pub(crate) parent: Option<u32>,
}

impl NodeKind {
    /// The number that the driver has for a kind of node.
    pub(crate) fn number(&self) -> u32 {
        match self {
            Self::Memory(work) if work.is_copy() => 1,
            Self::Memory(_) => 2,
            Self::Host(_) => 3,
            Self::Child(_) => 4,
            Self::Empty | Self::Declared(_) | Self::Busy(_) => 5,
            Self::Wait(_) => 6,
            Self::Record(_) => 7,
            Self::Semaphores(of) if of.signals => 8,
            Self::Semaphores(_) => 9,
            Self::Values(_) => 12,
        }
    }
}

impl NodeKind {
    /// The node's work for the order checker.
    pub(crate) fn work(&self) -> Vec<GraphWork> {
        match self {
            // Child graphs have been replaced by their nodes.
            Self::Empty | Self::Busy(_) | Self::Child(_) => Vec::new(),
            Self::Declared(accesses) => vec![GraphWork::Work(accesses.clone())],
            Self::Host(_) => vec![GraphWork::Function],
            Self::Memory(work) => {
                vec![GraphWork::Write(work.accesses(None, <[Access]>::to_vec))]
            }
            Self::Record(event) => vec![GraphWork::Record(EventId(*event))],
            Self::Wait(event) => vec![GraphWork::Wait(EventId(*event))],
            Self::Values(batch) => {
                let work = |operation: &ValueOperation| match operation {
                    ValueOperation::Wait(wait) => {
                        GraphWork::WaitValue(wait.word.cell(), wait.value, wait.compare())
                    }
                    ValueOperation::Write(write) => {
                        GraphWork::WriteValue(write.word.cell(), write.value)
                    }
                    ValueOperation::Nothing => GraphWork::Work(Vec::new()),
                };
                batch.operations.iter().map(work).collect()
            }
            Self::Semaphores(of) => {
                let work = if of.signals { GraphWork::Signal } else { GraphWork::WaitSemaphore };
                let points = of.points.iter();
                points.map(|point| work(point.semaphore.order.clone(), point.value)).collect()
            }
        }
    }
}

/// A node of an executable graph.
pub(crate) struct ExecNode {
    /// The handle of the graph's node.
    pub(crate) of: u64,
    pub(crate) kind: NodeKind,
    /// The context of the stream from which it was captured.
    pub(crate) context: Option<u32>,
    /// The nodes that it depends on, by their places.
    pub(crate) after: Vec<usize>,
    /// Whether its event was set in the executable graph, and is not the one that it was
    /// instantiated with.
    pub(crate) set: bool,
    /// In how many child graphs it is.
    pub(crate) depth: u32,
}

/// A graph that can be launched: a copy, in an order that keeps all dependencies.
pub(crate) struct Exec {
    /// The context in which it was instantiated.
    pub(crate) context: u32,
    pub(crate) nodes: Vec<ExecNode>,
    /// The end of the last launch: launches of one graph do not overlap.
    pub(crate) last: Option<Arc<Point>>,
    pub(crate) objects: References,
    /// Its number among all graphs and executable graphs.
    pub(crate) id: u32,
    /// How it was instantiated.
    pub(crate) flags: u64,
}

/// The graphs of a machine, what is in them and what was made of them.
pub(crate) struct Graphs {
    pub(crate) all: Table<Graph>,
    pub(crate) nodes: Table<Node>,
    pub(crate) execs: Table<Exec>,
    /// The number of the last graph or executable graph.
    ids: u32,
}

impl Graphs {
    pub(crate) const fn new(slot: usize) -> Self {
        Self {
            all: Table::new(Kind::Graph, slot),
            nodes: Table::new(Kind::Node, slot),
            execs: Table::new(Kind::Exec, slot),
            ids: 0,
        }
    }

    pub(crate) fn reset(&mut self, life: u64) {
        self.all.reset(life);
        self.nodes.reset(life);
        self.execs.reset(life);
    }

    /// The number of a new graph or executable graph.
    pub(crate) fn next_id(&mut self) -> u32 {
        self.ids += 1;
        self.ids
    }
}

impl State {
    pub(crate) fn new_graph(&mut self) -> Result<(u32, u64), CUresult> {
        let new = Graph { id: self.graphs.next_id(), ..Graph::default() };
        self.graphs.all.insert(self.call_number, new).ok_or(OUT_OF_MEMORY)
    }

    pub(crate) fn graph_handle(&self, graph: u32) -> CUgraph {
        core::ptr::without_provenance_mut(self.graphs.all.handle(graph) as usize)
    }

    /// Measured: these handles are checked, and a bad one is an invalid value.
    pub(crate) fn graph(&self, graph: Ptr<CUgraph_st>) -> Result<u32, CUresult> {
        self.graphs.all.find(graph.addr()).map_err(|_| INVALID_VALUE)
    }

    pub(crate) fn node(&self, node: CUgraphNode) -> Result<u32, CUresult> {
        self.graphs.nodes.find(node.addr() as u64).map_err(|_| INVALID_VALUE)
    }

    pub(crate) fn exec(&self, exec: Ptr<CUgraphExec_st>) -> Result<u32, CUresult> {
        self.graphs.execs.find(exec.addr()).map_err(|_| INVALID_VALUE)
    }

    /// The nodes of an array argument, which must be of that graph.
    pub(crate) fn nodes_of<P>(
        &self,
        graph: u32,
        nodes: Ptr<CUgraphNode, P>,
        count: usize,
    ) -> Result<Vec<u32>, CUresult> {
        let nodes = nodes.read_array(count)?.into_iter().map(|node| {
            let node = self.node(node)?;
            if self.graphs.nodes[node].graph == graph { Ok(node) } else { Err(INVALID_VALUE) }
        });
        nodes.collect()
    }

    pub(crate) fn add_node(
        &mut self,
        graph: u32,
        after: Vec<u32>,
        kind: NodeKind,
    ) -> Result<u32, CUresult> {
        let id = self.graphs.all[graph].nodes_made;
        let new = Node { graph, after, kind, context: None, id, clone_of: 0, params: None };
        let (node, _) = self.graphs.nodes.insert(self.call_number, new).ok_or(OUT_OF_MEMORY)?;
        let graph = &mut self.graphs.all[graph];
        graph.nodes.push(node);
        graph.nodes_made += 1;
        Ok(node)
    }

    /// Removes a node, and the graph that is its own. Its graph still has it in its list.
    pub(crate) fn remove_node(&mut self, node: u32) {
        if let Some(Node { kind: NodeKind::Child(inner), .. }) = self.graphs.nodes.remove(node) {
            self.remove_graph(inner);
        }
    }

    /// Refuses a copy of a graph and `more` nodes if there are not enough handles. A copy that
    /// failed halfway would have to be taken back.
    pub(crate) fn room_for_copy(&self, graph: u32, more: usize) -> Answer {
        let (mut graphs, mut nodes, mut left) = (0, more, vec![graph]);
        while let Some(graph) = left.pop() {
            graphs += 1;
            nodes += self.graphs.all[graph].nodes.len();
            left.extend(self.graphs.all[graph].nodes.iter().filter_map(|node| {
                match self.graphs.nodes[*node].kind {
                    NodeKind::Child(inner) => Some(inner),
                    _ => None,
                }
            }));
        }
        let fits = self.graphs.all.room() >= graphs && self.graphs.nodes.room() >= nodes;
        if fits { Ok(()) } else { Err(OUT_OF_MEMORY) }
    }

    /// A copy of a graph and of the graphs of its nodes, for which there is
    /// [room](Self::room_for_copy).
    pub(crate) fn copy_graph(&mut self, graph: u32, parent: Option<u32>) -> Result<u32, CUresult> {
        let (new, _) = self.new_graph()?;
        self.graphs.all[new].parent = parent;
        let mut copies = BTreeMap::new();
        let nodes = self.graphs.all[graph].nodes.clone();
        for node in &nodes {
            let copy = self.add_node(new, Vec::new(), self.graphs.nodes[*node].kind.clone())?;
            copies.insert(*node, copy);
            self.graphs.nodes[copy].clone_of = self.graphs.nodes.handle(*node);
            self.graphs.nodes[copy].params = self.graphs.nodes[*node].params;
            self.graphs.nodes[copy].context = self.graphs.nodes[*node].context;
            if let NodeKind::Child(inner) = self.graphs.nodes[*node].kind {
                self.graphs.nodes[copy].kind = NodeKind::Child(self.copy_graph(inner, Some(copy))?);
            }
        }
        // An edge may come from a node that was added later.
        for node in &nodes {
            let after = self.graphs.nodes[*node].after.iter();
            self.graphs.nodes[copies[node]].after =
                after.filter_map(|other| copies.get(other).copied()).collect();
        }
        let objects = self.graphs.all[graph].objects.clone();
        self.graphs.all[new].objects = self.engine.share_objects(&objects);
        Ok(new)
    }

    pub(crate) fn remove_graph(&mut self, graph: u32) {
        if let Some(graph) = self.graphs.all.remove(graph) {
            for node in graph.nodes {
                self.remove_node(node);
            }
            self.engine.release_objects(self.feed.as_deref_mut(), graph.objects);
        }
    }
}

pub(crate) fn graph_create(call: &CallFrame, graph: Ptr<CUgraph>, flags: c_uint) -> Answer {
    let mut state = call.ready()?;
    graph.required()?;
    if flags != 0 {
        return Err(INVALID_VALUE);
    }
    let (new, _) = state.new_graph()?;
    graph.put(state.graph_handle(new))
}

pub(crate) fn graph_destroy(call: &CallFrame, graph: Ptr<CUgraph_st>) -> Answer {
    let mut state = call.ready()?;
    let index = state.graph(graph)?;
    if state.captures.has_graph(index) {
        return Err(ILLEGAL_STATE);
    }
    // Documented: it goes with its node.
    if state.graphs.all[index].parent.is_some() {
        return Err(INVALID_VALUE);
    }
    state.remove_graph(index);
    Ok(())
}

pub(crate) fn add_node_with(
    call: &CallFrame,
    out: Ptr<CUgraphNode>,
    graph: Ptr<CUgraph_st>,
    dependencies: In<CUgraphNode>,
    count: usize,
    kind: impl FnOnce(&State) -> Result<NodeKind, CUresult>,
) -> Answer {
    add_node_of(call, out, graph, dependencies, count, |state| Ok((kind(state)?, None)))
}

/// As [`add_node_with`], for a node that shows the parameters it was made with.
pub(crate) fn add_node_of(
    call: &CallFrame,
    out: Ptr<CUgraphNode>,
    graph: Ptr<CUgraph_st>,
    dependencies: In<CUgraphNode>,
    count: usize,
    made: impl FnOnce(&State) -> Result<(NodeKind, Option<NodeParams>), CUresult>,
) -> Answer {
    let mut state = call.ready()?;
    out.required()?;
    let graph = state.graph(graph)?;
    let after = state.nodes_of(graph, dependencies, count)?;
    let (kind, params) = made(&state)?;
    let node = state.add_node(graph, after, kind)?;
    state.graphs.nodes[node].params = params;
    out.put(core::ptr::without_provenance_mut(state.graphs.nodes.handle(node) as usize))
}
