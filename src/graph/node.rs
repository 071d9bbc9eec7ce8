//! Nodes of graphs.

use super::Graph;
use crate::sys::CUgraphNode;

/// A node of a [`Graph`]. It is valid as long as the graph; other graphs refuse it.
///
/// ```
/// use std::sync::Arc;
///
/// use cuda_events::graph::{Graph, GraphNode};
/// use cuda_events::{Context, Device, Event, EventFlags};
///
/// # use cuda_soft_driver::examples::Driver;
/// let driver = Driver::load()?;
/// let context = Context::primary(Device::new(driver, 0)?)?;
/// let event = Event::new(&context, EventFlags::empty())?;
/// let other = Event::new(&context, EventFlags::empty())?;
/// let (event, other) = (Arc::new(event), Arc::new(other));
///
/// let mut graph = Graph::new(&context)?;
/// let node = graph.add_event_record_node(&[], &event)?;
/// assert!(graph.record_node_event(node)?.is_some_and(|recorded| Arc::ptr_eq(&recorded, &event)));
/// graph.set_record_node_event(node, &other)?;
///
/// let wait = graph.add_event_wait_node(&[node], &event)?;
/// assert!(graph.wait_node_event(wait)?.is_some_and(|awaited| Arc::ptr_eq(&awaited, &event)));
/// graph.set_wait_node_event(wait, &other)?;
///
/// // Another binding takes the handle, and gives it back.
/// // SAFETY: the handle is a node of the graph, and only this thread uses the graph.
/// let same = unsafe { GraphNode::from_raw(&graph, node.as_raw()) };
/// assert_eq!(same, node);
/// assert!(same.is_of(&graph));
/// # Ok::<(), cuda_events::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct GraphNode {
    pub(super) raw: CUgraphNode,
    /// The number of the graph.
    pub(super) graph: u64,
}

// SAFETY: the handle is an address that this crate never dereferences; every call that uses it also
// takes the graph.
#[allow(unsafe_code)]
unsafe impl Send for GraphNode {}
// SAFETY: as for Send.
#[allow(unsafe_code)]
unsafe impl Sync for GraphNode {}

impl GraphNode {
    /// Returns the driver's handle, for other bindings. It is valid as long as the graph is.
    pub fn as_raw(self) -> CUgraphNode {
        self.raw
    }

    /// Returns whether the node belongs to this graph. It makes no driver call.
    pub fn is_of(self, graph: &Graph) -> bool {
        self.graph == graph.retained().graph()
    }
}

static_assertions::assert_impl_all!(GraphNode: Send, Sync, Copy);
