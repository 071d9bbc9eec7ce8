//! User objects by the graphs that have them: what a graph has ends after all work of its launches.

use std::collections::BTreeSet;

use crate::call::Handle;
use crate::state::nodes::{child, children};
use crate::watch::Watch;

/// The user objects of a graph, and of the child graphs of its nodes. Where these cannot be asked
/// for, any object may be theirs.
pub(crate) fn objects_within(watch: &Watch, graph: Handle) -> BTreeSet<u64> {
    let objects = &watch.user_objects.of_graphs;
    if objects.is_empty() {
        return BTreeSet::new();
    }
    let Some(within) = children(&watch.graphs.questions, graph) else {
        return objects.values().flatten().copied().collect();
    };
    let own = objects.get(&graph).into_iter().flatten().copied();
    own.chain(within.into_iter().flat_map(|child| objects_within(watch, child))).collect()
}

/// A graph ends, with the child graphs of its nodes: another one may get the handle of each.
pub(crate) fn graph_ends(watch: &mut Watch, graph: Handle) -> BTreeSet<u64> {
    if watch.user_objects.of_graphs.is_empty() {
        return BTreeSet::new();
    }
    for child in children(&watch.graphs.questions, graph).unwrap_or_default() {
        graph_ends(watch, child);
    }
    watch.user_objects.of_graphs.remove(&graph).unwrap_or_default()
}

/// A node ends, with its child graph, if it has one.
pub(crate) fn node_ends(watch: &mut Watch, node: Handle) {
    if !watch.user_objects.of_graphs.is_empty()
        && let Some(child) = child(&watch.graphs.questions, node)
    {
        graph_ends(watch, child);
    }
}
