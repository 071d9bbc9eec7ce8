//! Graphs, their nodes, and executable graphs.

use std::sync::Arc;

use cuda_order_check::Access;

use crate::model::host_function::HostCall;
use crate::model::mem_ops::Batch;
use crate::model::memory::MemoryWork;
use crate::model::point::Point;
use crate::model::user_object::References;

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
    /// What the program says that a kernel touches, for the order checker.
    Told(Vec<Access>),
}

/// A node of a graph.
pub(crate) struct Node {
    pub(crate) graph: u32,
    pub(crate) after: Vec<u32>,
    pub(crate) kind: NodeKind,
}

/// A graph's nodes in the order in which they were added: each after all that it depends on.
#[derive(Default)]
pub(crate) struct Graph {
    pub(crate) nodes: Vec<u32>,
    pub(crate) objects: References,
}

/// A node of an executable graph.
pub(crate) struct ExecNode {
    /// The handle of the graph's node.
    pub(crate) of: u64,
    pub(crate) kind: NodeKind,
    /// The nodes that it depends on, by their places.
    pub(crate) after: Vec<usize>,
    /// Whether its event was set in the executable graph, and is not the one that it was
    /// instantiated with.
    pub(crate) set: bool,
}

/// A graph that can be launched: a copy, in an order that keeps all dependencies.
pub(crate) struct Exec {
    pub(crate) nodes: Vec<ExecNode>,
    /// The end of the last launch: launches of one graph do not overlap.
    pub(crate) last: Option<Arc<Point>>,
    pub(crate) objects: References,
}
