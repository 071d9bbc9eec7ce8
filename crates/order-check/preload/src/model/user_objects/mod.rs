//! User objects by the graphs that have them: what a graph has ends after all work of its launches.

pub(crate) mod destructors;

use std::collections::BTreeSet;

use crate::call::Handle;
use crate::model::graphs::nodes::children;
use crate::watch::Watch;

/// The user objects of a graph, and of the child graphs of its nodes.
pub(crate) fn objects_within(watch: &Watch, graph: Handle) -> BTreeSet<u64> {
    let objects = &watch.user_objects.of_graphs;
    if objects.is_empty() {
        return BTreeSet::new();
    }
    let own = objects.get(&graph).into_iter().flatten().copied();
    let within = children(&watch.graphs.questions, graph).into_iter();
    own.chain(within.flat_map(|child| objects_within(watch, child))).collect()
}
