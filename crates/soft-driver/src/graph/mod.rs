//! Graphs and their nodes. [`calls`] makes and destroys them, [`exec`] has the executable ones and
//! their launches, [`events`], [`parameters`] and `values` the nodes of a kind.

use std::collections::BTreeSet;
use std::sync::Arc;

use cuda_order_check_engine::feed::GraphWork;
use cuda_order_check_engine::{Access, EventId};

use crate::abi::*;
use crate::arg::Ptr;
use crate::engine::point::Point;
use crate::engine::user_object::References;
use crate::engine::work::{DeviceWork, HostCall};
use crate::event::state::Event;
use crate::machine::handles::{Bad, Kind, Table};
use crate::memory::word::{Batch, ValueOperation};
use crate::memory::work::MemoryWork;
use crate::processes::semaphore::Semaphores;

pub(crate) mod calls;
mod changes;
pub(crate) mod edits;
pub(crate) mod flatten;
pub(crate) mod nodes;
pub(crate) mod updates;
pub(crate) mod user_objects;

pub(crate) mod events;
pub(crate) mod exec;
mod host;
pub(crate) mod parameters;

/// The event of a node. A graph does not keep it, and another event may get its handle.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeEvent {
    pub(crate) handle: u64,
    /// The call that made it.
    born: u64,
}

impl NodeEvent {
    pub(crate) fn new(events: &Table<Event>, event: u32) -> Self {
        Self { handle: events.handle(event), born: events.born(event) }
    }

    /// The event, if it is still there.
    pub(crate) fn find(self, events: &Table<Event>) -> Result<u32, Bad> {
        let index = events.find(self.handle)?;
        if events.born(index) == self.born { Ok(index) } else { Err(Bad::Stale) }
    }
}

#[derive(Clone, Debug)]
pub(crate) enum NodeKind {
    Empty,
    Host(HostCall),
    Memory(MemoryWork),
    Device(Arc<dyn DeviceWork>),
    /// The stream is busy for so many nanoseconds.
    Busy(u64),
    Record(NodeEvent),
    Wait(NodeEvent),
    Values(Batch),
    /// Signals of external semaphores, or waits for them.
    Semaphores(Semaphores),
    /// Another graph, which is the node's own. An executable graph has the nodes of that instead.
    Child(u32),
    /// The accesses of a kernel, as the program reports them to the order checker.
    Declared(Vec<Access>),
}

/// A node of a graph.
pub(crate) struct Node {
    pub(crate) graph: u32,
    after: Vec<u32>,
    pub(crate) kind: NodeKind,
    /// The context of the stream from which it was captured.
    pub(crate) context: Option<u32>,
    /// Its number among all nodes that the graph ever had.
    pub(crate) id: u32,
    /// The handle of the node that it was cloned from, or 0.
    clone_of: u64,
    /// The parameters of a node that sets or copies memory.
    pub(crate) params: Option<NodeParams>,
}

/// What a node was made with that sets or copies memory.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NodeParams {
    Set(CUDA_MEMSET_NODE_PARAMS),
    Copy(CUDA_MEMCPY3D),
}

// SAFETY: the pointers are the program's, which promises that they are valid as long as the node
// exists, in any thread. They are only returned to the program.
unsafe impl Send for NodeParams {}

/// A graph's nodes in the order in which they were added.
#[derive(Default)]
pub(crate) struct Graph {
    nodes: Vec<u32>,
    pub(crate) objects: References,
    /// Its number among all graphs and executable graphs.
    pub(crate) id: u32,
    /// How many nodes it ever had.
    nodes_made: u32,
    /// The node that it belongs to, if it is a node's own.
    pub(crate) parent: Option<u32>,
}

impl NodeKind {
    /// Whether it writes values and waits for none.
    fn is_write_of_values(&self) -> bool {
        let Self::Values(batch) = self else { return false };
        !batch.operations.iter().any(|operation| matches!(operation, ValueOperation::Wait(_)))
    }

    /// The node's work for the order checker.
    pub(crate) fn work(&self) -> Vec<GraphWork> {
        match self {
            // Child graphs have been replaced by their nodes.
            Self::Empty | Self::Busy(_) | Self::Child(_) => Vec::new(),
            Self::Declared(accesses) => vec![GraphWork::Work(accesses.clone())],
            Self::Device(work) => {
                vec![GraphWork::Work(work.accesses().unwrap_or_default().to_vec())]
            }
            Self::Host(_) => vec![GraphWork::Function],
            Self::Memory(work) => {
                vec![GraphWork::Write(work.accesses(None, <[Access]>::to_vec))]
            }
            Self::Record(event) => vec![GraphWork::Record(EventId(event.handle))],
            Self::Wait(event) => vec![GraphWork::Wait(EventId(event.handle))],
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
            Self::Semaphores(batch) => {
                let work = if batch.signals { GraphWork::Signal } else { GraphWork::WaitSemaphore };
                let points = batch.points.iter();
                points.map(|point| work(point.semaphore.order.clone(), point.value)).collect()
            }
        }
    }
}

/// A node of an executable graph.
pub(crate) struct ExecNode {
    /// The handle of the graph's node.
    pub(crate) original: u64,
    pub(crate) kind: NodeKind,
    /// The context of the stream from which it was captured.
    pub(crate) context: Option<u32>,
    /// The nodes that it depends on, by their places.
    pub(crate) after: Vec<usize>,
    /// Whether a launch does it. One that is not done keeps its place in the order.
    pub(crate) enabled: bool,
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
    /// The flags with which it was instantiated.
    pub(crate) flags: u64,
}

/// The graphs of a machine, what is in them and what was made of them.
pub(crate) struct Graphs {
    all: Table<Graph>,
    nodes: Table<Node>,
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
    fn next_id(&mut self) -> u32 {
        self.ids += 1;
        self.ids
    }

    pub(crate) fn new_graph(&mut self, born: u64) -> Result<u32, CUresult> {
        let new = Graph { id: self.next_id(), ..Graph::default() };
        self.all.insert(born, new).map(|(graph, _)| graph).ok_or(OUT_OF_MEMORY)
    }

    pub(crate) fn graph_handle(&self, graph: u32) -> CUgraph {
        core::ptr::without_provenance_mut(self.all.handle(graph) as usize)
    }

    pub(crate) fn node_handle(&self, node: u32) -> CUgraphNode {
        core::ptr::without_provenance_mut(self.nodes.handle(node) as usize)
    }

    /// Measured: these handles are checked, and a bad one is an invalid value.
    pub(crate) fn find(&self, graph: Ptr<CUgraph_st>) -> Result<u32, CUresult> {
        self.all.find(graph.addr()).map_err(|_| INVALID_VALUE)
    }

    pub(crate) fn find_node(&self, node: CUgraphNode) -> Result<u32, CUresult> {
        self.nodes.find(node.addr() as u64).map_err(|_| INVALID_VALUE)
    }

    pub(crate) fn find_exec(&self, exec: Ptr<CUgraphExec_st>) -> Result<u32, CUresult> {
        self.execs.find(exec.addr()).map_err(|_| INVALID_VALUE)
    }

    /// The node that an argument names.
    pub(crate) fn node(&self, node: Ptr<CUgraphNode_st>) -> Result<&Node, CUresult> {
        Ok(&self.nodes[self.find_node(node.raw())?])
    }

    pub(crate) fn node_mut(&mut self, node: Ptr<CUgraphNode_st>) -> Result<&mut Node, CUresult> {
        let node = self.find_node(node.raw())?;
        Ok(&mut self.nodes[node])
    }

    pub(crate) fn graph(&self, graph: u32) -> &Graph {
        &self.all[graph]
    }

    /// The place of a graph's node in an executable graph.
    pub(crate) fn exec_node(
        &mut self,
        exec: u32,
        node: Ptr<CUgraphNode_st>,
    ) -> Result<&mut ExecNode, CUresult> {
        self.find_node(node.raw())?;
        let mut nodes = self.execs[exec].nodes.iter_mut();
        nodes.find(|found| found.original == node.addr()).ok_or(INVALID_VALUE)
    }

    /// The nodes of an array argument, which must be of that graph.
    pub(crate) fn nodes_of<P>(
        &self,
        graph: u32,
        nodes: Ptr<CUgraphNode, P>,
        count: usize,
    ) -> Result<Vec<u32>, CUresult> {
        let nodes = nodes.read_array(count)?.into_iter().map(|node| {
            let node = self.find_node(node)?;
            if self.nodes[node].graph == graph { Ok(node) } else { Err(INVALID_VALUE) }
        });
        nodes.collect()
    }

    /// Adds a node after others of its graph.
    pub(crate) fn add_node(
        &mut self,
        born: u64,
        graph: u32,
        after: Vec<u32>,
        kind: NodeKind,
    ) -> Result<u32, CUresult> {
        let id = self.all[graph].nodes_made;
        let new = Node { graph, after, kind, context: None, id, clone_of: 0, params: None };
        let (node, _) = self.nodes.insert(born, new).ok_or(OUT_OF_MEMORY)?;
        let graph = &mut self.all[graph];
        graph.nodes.push(node);
        graph.nodes_made += 1;
        Ok(node)
    }

    /// A node is captured from a stream of this context.
    pub(crate) fn set_context(&mut self, node: u32, context: u32) {
        self.nodes[node].context = Some(context);
    }

    pub(crate) fn set_params(&mut self, node: u32, params: Option<NodeParams>) {
        self.nodes[node].params = params;
    }

    fn take_node(&mut self, node: u32) -> References {
        match self.nodes.remove(node) {
            Some(Node { kind: NodeKind::Child(inner), .. }) => self.remove_graph(inner),
            _ => References::new(),
        }
    }

    /// Removes a graph with its nodes. The user objects that are let go.
    pub(crate) fn remove_graph(&mut self, graph: u32) -> References {
        let Some(graph) = self.all.remove(graph) else { return References::new() };
        let within = graph.nodes.into_iter().flat_map(|node| self.take_node(node));
        let mut released: References = within.collect();
        released.extend(graph.objects);
        released
    }

    /// These nodes and all that they depend on.
    pub(crate) fn reached_from(&self, mut left: Vec<u32>) -> BTreeSet<u32> {
        let mut reached = BTreeSet::new();
        while let Some(node) = left.pop() {
            if reached.insert(node)
                && let Some(node) = self.nodes.get(node)
            {
                left.extend(&node.after);
            }
        }
        reached
    }

    /// The graphs that the program has to destroy: their handles, and the calls that made them.
    pub(crate) fn live(&self) -> Vec<(u64, u64)> {
        self.all.live(|_, graph| graph.parent.is_none())
    }
}
