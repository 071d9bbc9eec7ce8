//! What keeps the events that graph nodes refer to.

use core::mem::replace;
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::GraphNode;
use crate::error::{Error, Result};
use crate::event::Event;
use crate::sys::{CUevent, CUgraphNode, Function};

/// The events that the nodes of one graph refer to. The driver's nodes hold bare handles.
pub(crate) struct Kept {
    /// Names the graph: unlike a handle it is not used again.
    graph: u64,
    events: Mutex<Events>,
}

/// Events by the address of the node that refers to them, 0 for a node that a capture made.
pub(super) type Events = Vec<(usize, Arc<Event>)>;

impl Kept {
    pub(crate) fn new() -> Arc<Self> {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Arc::new(Self { graph: LAST.fetch_add(1, Ordering::Relaxed), events: Mutex::default() })
    }

    /// No driver call is made, and no event dropped, under the lock.
    fn events(&self) -> MutexGuard<'_, Events> {
        // Nothing under the lock leaves the list half changed.
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps an event that a node of a capture may refer to.
    pub(crate) fn keep(&self, event: &Arc<Event>) {
        self.events().push((0, event.clone()));
    }

    /// Takes one `keep` of the event back.
    pub(crate) fn forget(&self, event: &Arc<Event>) {
        let mut events = self.events();
        let found = events.iter().rposition(|(node, kept)| *node == 0 && Arc::ptr_eq(kept, event));
        let kept = found.map(|at| events.swap_remove(at));
        drop(events);
        drop(kept);
    }

    /// Keeps the event that a node refers to from now on, in the place of the one before.
    pub(super) fn replace(&self, node: CUgraphNode, event: &Arc<Event>) {
        let replaced = replace_event(&mut self.events(), node, event);
        drop(replaced);
    }

    pub(super) fn all(&self) -> Events {
        self.events().clone()
    }

    pub(super) fn by_handle(&self, raw: CUevent) -> Option<Arc<Event>> {
        self.events().iter().find(|(_, event)| event.as_raw() == raw).map(|(_, event)| event.clone())
    }

    /// The handles of the nodes, all of which must be of this graph.
    pub(crate) fn handles(
        &self,
        function: Function,
        nodes: impl IntoIterator<Item = GraphNode>,
    ) -> Result<Vec<CUgraphNode>> {
        nodes.into_iter().map(|node| self.handle(function, node)).collect()
    }

    pub(super) fn handle(&self, function: Function, node: GraphNode) -> Result<CUgraphNode> {
        if node.graph == self.graph { Ok(node.raw) } else { Err(Error::NodeOfOtherGraph { function }) }
    }

    /// Names a node of this graph.
    pub(crate) fn node(&self, raw: CUgraphNode) -> GraphNode {
        GraphNode { raw, graph: self.graph }
    }
}

/// Puts the event in the place of what the node referred to, which is returned.
pub(super) fn replace_event(events: &mut Events, node: CUgraphNode, event: &Arc<Event>) -> Option<Arc<Event>> {
    match events.iter_mut().find(|(known, _)| *known == node.addr()) {
        Some((_, kept)) => Some(replace(kept, event.clone())),
        None => {
            events.push((node.addr(), event.clone()));
            None
        }
    }
}
