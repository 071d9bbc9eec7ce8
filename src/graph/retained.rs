//! Keeps the values that graph nodes refer to alive.

use core::any::Any;
use core::sync::atomic::{AtomicU64, Ordering};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use super::node::GraphNode;
use crate::error::{Error, Result};
use crate::event::Event;
use crate::sync::lock;
use crate::sys::{CUevent, CUgraphNode, Function};

/// The values that the nodes of one graph refer to. The driver's nodes hold bare handles.
pub(crate) struct Retained {
    /// The number of the graph: unlike a handle it is never reused.
    graph: u64,
    values: Mutex<Values>,
}

#[derive(Clone, Default)]
pub(super) struct Values {
    /// Events by the addresses of nodes and of events.
    events: List,
    /// Other retained objects, by their own addresses.
    others: List,
    /// Values that are prepared for launches, by their own addresses.
    prepared: List,
}

/// One type for three kinds of values: each other one would be compiled again.
type List = References<usize, Captured>;

type Other = Arc<dyn Any + Send + Sync>;

/// An object that a graph keeps alive because nodes of the graph use it.
/// [`OwnCapture`](crate::foundation::OwnCapture) has an example.
///
/// A launch does not keep the object alive. If the nodes still need the object, keep the object,
/// the graph or the executable graph until the launch is done.
pub trait GraphValue: Send + Sync + 'static {
    /// Prepares the object for a launch and all later launches.
    ///
    /// Each executable graph with such nodes calls this method once, before its first launch.
    fn prepare(&self) {}
}

impl GraphValue for crate::context::Context {}

/// A value that a node of a capture refers to.
#[derive(Clone)]
pub(crate) enum Captured {
    Event(Arc<Event>),
    /// The owner of another handle, such as an imported semaphore or a context.
    Other(Other),
    Prepared(Arc<dyn GraphValue>),
}

impl Retained {
    pub(crate) fn new() -> Arc<Self> {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Arc::new(Self { graph: LAST.fetch_add(1, Ordering::Relaxed), values: Mutex::default() })
    }

    /// The number of the graph.
    pub(super) fn graph(&self) -> u64 {
        self.graph
    }

    /// Locks the values. Under the lock, no driver call is made and no value dropped.
    fn values(&self) -> MutexGuard<'_, Values> {
        // A panic under the lock leaves no list that is half changed.
        lock(&self.values)
    }

    /// Keeps a value of a node of a capture, which is not known.
    pub(crate) fn keep(&self, value: &Captured) {
        let mut values = self.values();
        let (list, key) = values.list(value);
        list.keep(key, value);
    }

    /// Prepares the values for launches that are not seen.
    pub(crate) fn prepare(&self) {
        self.all().prepare();
    }

    /// Undoes one `keep` of the value. The caller has a share of it, so it is not dropped here.
    pub(crate) fn forget(&self, value: &Captured) {
        let mut values = self.values();
        let (list, key) = values.list(value);
        drop(list.forget(key));
    }

    /// Notes the result of the call that made a node refer to the event: on success, the event
    /// replaces the node's previous one.
    pub(super) fn settle(
        &self,
        node: CUgraphNode,
        event: &Arc<Event>,
        answer: Result<()>,
    ) -> Result<()> {
        let replaced = self.values().settle(node, event, &answer);
        drop(replaced);
        answer
    }

    pub(super) fn all(&self) -> Values {
        self.values().clone()
    }

    pub(super) fn by_handle(&self, raw: CUevent) -> Option<Arc<Event>> {
        match self.values().events.get(raw.addr()) {
            Some(Captured::Event(event)) => Some(event.clone()),
            _ => None,
        }
    }

    /// The handles of the nodes, which must all belong to this graph.
    pub(crate) fn handles(
        &self,
        function: Function,
        nodes: impl IntoIterator<Item = GraphNode>,
    ) -> Result<Vec<CUgraphNode>> {
        nodes.into_iter().map(|node| self.handle(function, node)).collect()
    }

    pub(super) fn handle(&self, function: Function, node: GraphNode) -> Result<CUgraphNode> {
        if node.graph == self.graph { Ok(node.raw) } else { Err(Error::GraphMismatch { function }) }
    }

    /// A node of this graph, from its handle.
    pub(crate) fn node(&self, raw: CUgraphNode) -> GraphNode {
        GraphNode { raw, graph: self.graph }
    }
}

fn address<T: ?Sized>(value: &Arc<T>) -> usize {
    Arc::as_ptr(value).addr()
}

impl Values {
    /// The list that the value belongs to, and its key there.
    fn list(&mut self, value: &Captured) -> (&mut List, usize) {
        match value {
            Captured::Event(event) => (&mut self.events, event.as_raw().addr()),
            Captured::Other(other) => (&mut self.others, address(other)),
            Captured::Prepared(value) => (&mut self.prepared, address(value)),
        }
    }

    pub(super) fn events(&self) -> impl Iterator<Item = &Arc<Event>> {
        self.events.iter().filter_map(|value| match value {
            Captured::Event(event) => Some(event),
            _ => None,
        })
    }

    /// Whether there is something to prepare for launches.
    pub(super) fn has_prepared(&self) -> bool {
        self.prepared.iter().next().is_some()
    }

    /// Prepares the values for launches.
    pub(super) fn prepare(&self) {
        for value in self.prepared.iter() {
            if let Captured::Prepared(value) = value {
                value.prepare();
            }
        }
    }

    /// Notes the result of the call that made a node refer to the event. Returns the event that no
    /// node refers to any more.
    ///
    /// After an error the driver may have done the work all the same, because it also returns
    /// errors of earlier work. Then the node refers to the old event or to the new one, and both
    /// are kept.
    pub(super) fn settle(
        &mut self,
        node: CUgraphNode,
        event: &Arc<Event>,
        answer: &Result<()>,
    ) -> Option<Captured> {
        let (handle, event) = (event.as_raw().addr(), Captured::Event(event.clone()));
        match answer {
            Ok(()) => self.events.refer(node.addr(), handle, &event),
            Err(_) => {
                self.events.keep(handle, &event);
                None
            }
        }
    }
}

/// The values that nodes refer to, each once, with a count. Every operation takes logarithmic time.
#[derive(Clone)]
struct References<K, V> {
    /// The value that each known node refers to.
    nodes: BTreeMap<K, K>,
    values: BTreeMap<K, Value<V>>,
}

#[derive(Clone)]
struct Value<V> {
    value: V,
    /// The number of nodes, known or not, that refer to it.
    references: usize,
}

impl<K, V> Default for References<K, V> {
    fn default() -> Self {
        Self { nodes: BTreeMap::new(), values: BTreeMap::new() }
    }
}

impl<K: Ord + Copy, V: Clone> References<K, V> {
    /// Counts a reference by a node that is not known.
    fn keep(&mut self, key: K, value: &V) {
        self.values
            .entry(key)
            .or_insert_with(|| Value { value: value.clone(), references: 0 })
            .references += 1;
    }

    /// Removes one reference, and returns the value if it was the last.
    fn forget(&mut self, key: K) -> Option<V> {
        let retained = self.values.get_mut(&key)?;
        retained.references = retained.references.saturating_sub(1);
        if retained.references == 0 {
            self.values.remove(&key).map(|retained| retained.value)
        } else {
            None
        }
    }

    /// Makes a known node refer to a value, and returns its previous value if no other node refers
    /// to that.
    fn refer(&mut self, node: K, key: K, value: &V) -> Option<V> {
        self.keep(key, value);
        let before = self.nodes.insert(node, key)?;
        self.forget(before)
    }

    fn get(&self, key: K) -> Option<&V> {
        self.values.get(&key).map(|retained| &retained.value)
    }

    fn iter(&self) -> impl Iterator<Item = &V> {
        self.values.values().map(|retained| &retained.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_stays_while_referred_to() {
        let mut references = References::default();
        assert_eq!(references.refer(1, 10, &"a"), None);
        assert_eq!(references.refer(2, 10, &"a"), None);
        references.keep(10, &"a");
        assert_eq!(references.refer(1, 20, &"b"), None, "node 2 and an unknown one");
        assert_eq!(references.refer(2, 20, &"b"), None, "an unknown one");
        assert_eq!(references.forget(10), Some("a"));
        assert_eq!(references.get(10), None);
        assert_eq!(references.forget(10), None);
        // Setting the same value again changes nothing.
        assert_eq!(references.refer(1, 20, &"b"), None);
        assert_eq!(references.refer(1, 30, &"c"), None, "node 2");
        assert_eq!(references.refer(2, 30, &"c"), Some("b"));
        assert_eq!(references.iter().collect::<Vec<_>>(), [&"c"]);
    }
}
