//! Executable graphs: the nodes that they have, and what their launches do.

pub(crate) mod flatten;

use std::sync::Arc;

use cuda_order_check_engine::feed::{GraphNode, Memory};
use cuda_order_check_engine::{Access, GraphId, StreamId};

use crate::call::Handle;
use crate::model::graphs::flatten::nodes_of;
use crate::model::pinned::watch_launch;
use crate::state::executions::Host;
use crate::state::graphs::Built;
use crate::state::node::Node;
use crate::state::nodes::Flat;
use crate::state::under_way::Visible;
use crate::state::values::{Flag, load};
use crate::watch::Watch;

/// An executable graph has the nodes of a graph.
pub(crate) fn instantiated(watch: &mut Watch, graph: Handle, exec: Handle) {
    let captured = watch.graphs.of_graph.get(&graph).cloned();
    watch.graphs.leave(exec);
    if let Some(nodes) = captured.filter(|_| !watch.graphs.was_changed(graph)) {
        watch.feed.graph_copy(GraphId(graph as u64), GraphId(exec as u64));
        watch.graphs.of_exec.insert(exec, nodes);
        watch.graphs.captured.insert(exec, graph);
        return;
    }
    watch.graphs.captured.remove(&exec);
    match nodes_of(watch, graph) {
        Some(nodes) => _ = watch.graphs.built.insert(exec, Built::new(nodes)),
        None => watch.graphs.unknown(exec),
    }
}

/// The nodes of an executable graph are changed one by one. Of one that was captured the driver is asked
/// for those of the graph, as long as these are what they were.
pub(crate) fn nodes_change(watch: &mut Watch, exec: Handle) {
    let graphs = &watch.graphs;
    let Some(&graph) = graphs.captured.get(&exec) else { return };
    if graphs.of_graph.contains_key(&graph) && !graphs.was_changed(graph) {
        let nodes = nodes_of(watch, graph);
        watch.graphs.built.extend(nodes.map(|nodes| (exec, Built::new(nodes))));
    }
    watch.graphs.captured.remove(&exec);
}

/// A node of an executable graph is disabled or enabled.
pub(crate) fn node_enabled(watch: &mut Watch, exec: Handle, node: Handle, is_enabled: bool) {
    nodes_change(watch, exec);
    let built = watch.graphs.built.get_mut(&exec);
    if built.and_then(|built| built.enable(node, is_enabled)).is_none() {
        watch.graphs.unknown(exec);
    }
}

/// The nodes that an executable graph has at its launch. Programs set its nodes one by one, so
/// the checker has all of them only now.
pub(crate) fn nodes_of_launch(watch: &mut Watch, exec: Handle) -> Option<Vec<Node>> {
    let built = watch.graphs.built.get_mut(&exec);
    if let Some(Built { nodes, disabled, changed, .. }) = built.filter(|built| built.changed) {
        *changed = false;
        watch.graphs.defined += 1;
        // What waits for one that does nothing waits for what is before that.
        let work = |at: usize, node: &Flat| (!disabled.contains(&at)).then(|| node.work.clone());
        let node = |(at, node): (usize, &Flat)| GraphNode {
            work: work(at, node).map_or_else(Vec::new, |work| work.parts()),
            after: node.after.clone(),
        };
        let all = || nodes.iter().enumerate();
        watch.feed.graph(GraphId(exec as u64), all().map(node).collect());
        let works = all().filter_map(|(at, node)| work(at, node));
        watch.graphs.of_exec.insert(exec, works.flat_map(|work| work.nodes()).collect());
    }
    watch.graphs.of_exec.get(&exec).cloned()
}

/// Before the real call of a launch. The number of the call, and the numbers of its host
/// functions.
pub(crate) fn launch_begins(
    watch: &mut Watch,
    stream: StreamId,
    graph: GraphId,
    nodes: Vec<Node>,
) -> (u64, Vec<(Arc<Host>, u64)>) {
    for node in &nodes {
        match node {
            Node::WriteValue(cell, _) | Node::WaitValue(cell) => {
                watch.feed.find_stored(*cell, || load(*cell));
            }
            Node::Write(access) => {
                let range = &access.range;
                watch.find_stored_word(range.start, range.end - range.start);
            }
            Node::Host(_) | Node::Work => {}
        }
    }
    let with_id = |node| {
        let id = match &node {
            Node::Host(host) => {
                let id = watch.next_id();
                host.submitted(id);
                Some(id)
            }
            Node::Write(Access { range, .. }) => {
                let flag = watch.before_write(range.start, range.end - range.start);
                watch.expect_write(stream, flag)
            }
            Node::WriteValue(cell, value) => {
                let flag = watch.flag(stream, *cell, *value);
                watch.expect_value(flag.map(Flag::of_graph))
            }
            Node::WaitValue(_) | Node::Work => None,
        };
        (node, id)
    };
    let mut nodes: Vec<_> = nodes.into_iter().map(with_id).collect();
    let mut hosts = Vec::new();
    for (node, id) in &mut nodes {
        match (node, id) {
            (Node::Host(host), Some(id)) => hosts.push((host.clone(), *id)),
            (_, id) => watch.values.clear_unless_pending(id),
        }
    }
    let ids = nodes.iter().filter_map(|(_, id)| *id).collect();
    let is_seen = |(node, id): &(Node, Option<u64>)| id.is_none() && is_visible(watch, node);
    let at_once = nodes.iter().any(is_seen);
    let visible = Visible { stream, ids, at_once };
    let number =
        watch.submission_begins(visible, move |watch| launch_accepted(watch, stream, graph, nodes));
    (number, hosts)
}

/// Whether a node writes a word that others than streams can see.
pub(crate) fn is_visible(watch: &Watch, node: &Node) -> bool {
    let address = match node {
        Node::WriteValue(cell, _) => cell.address,
        Node::Write(access) if access.range.end - access.range.start <= 8 => access.range.start,
        _ => return false,
    };
    !matches!(watch.feed.memory(address), None | Some(Memory::Device))
}

/// The driver has accepted a launch of these nodes, with the ids of host functions and of
/// what the host may see.
pub(crate) fn launch_accepted(
    watch: &mut Watch,
    stream: StreamId,
    graph: GraphId,
    nodes: Vec<(Node, Option<u64>)>,
) {
    watch.feed.launch(stream, graph);
    watch.uploads.forget();
    if watch.contexts.of_several_devices() {
        watch.feed.assume("a launch of a graph is work of all devices");
        let all = watch.contexts.on_device(None);
        watch.feed.contexts_share(&all, stream);
    }
    for (node, id) in nodes {
        match node {
            Node::Host(_) => {
                watch.uploads.host_may_be_late();
                id.into_iter().for_each(|id| watch.feed.function(stream, id));
            }
            Node::Write(access) => {
                let range = &access.range;
                watch.feed.forget_words(range.start, range.end - range.start);
                watch.feed.write(stream, id, &[access]);
            }
            Node::WriteValue(cell, value) => {
                watch.feed.write_value(stream, id, cell, value);
            }
            Node::WaitValue(_) => {}
            Node::Work => watch.feed.write(stream, None, &[]),
        }
    }
    watch.feed.launched();
    watch_launch(watch, stream, graph);
}
