//! Graphs, their nodes, and executable graphs.

use std::sync::Arc;

use cuda_order_check::Access;

use crate::abi::*;
use crate::external::Semaphores;
use crate::host_function::HostCall;
use crate::memory::work::MemoryWork;
use crate::model::point::Point;
use crate::model::user_object::References;
use crate::values::Batch;

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
