//! Executable graphs.

use std::collections::BTreeSet;
use std::sync::Arc;

use cuda_events::sys::more::{
    CUDA_GRAPH_INSTANTIATE_PARAMS, CUDA_MEMCPY3D, CUDA_MEMSET_NODE_PARAMS,
};
use cuda_order_check_engine::feed::{GraphNode, Memory};
use cuda_order_check_engine::{Access, GraphId, StreamId};

use crate::call::{Call, Code, Handle, OK, read};
use crate::hooks::host_functions::OfNode;
use crate::hooks::nodes::{kernel_work, nodes_of};
use crate::model::graphs::Built;
use crate::model::host_functions::state::{self as host_functions, Host};
use crate::model::launch::Node;
use crate::model::nodes::{Flat, KernelNode, Work, children};
use crate::model::pinned::watch_launch;
use crate::model::under_way::state::Visible;
use crate::model::values::state::{Flag, load};
use crate::walk::{after_success, begin_call, caught_up};
use crate::watch::Watch;

/// An executable graph has the nodes of a graph.
pub(crate) fn instantiated(watch: &mut Watch, graph: Handle, exec: Handle) {
    let captured = watch.graphs.of_graph.get(&graph).cloned();
    watch.graphs.leave(exec);
    if let Some(nodes) = captured.filter(|_| !watch.graphs.was_changed(graph)) {
        watch.feed.graph_copy(GraphId(graph as u64), GraphId(exec as u64));
        watch.graphs.of_exec.insert(exec, nodes);
        return;
    }
    match nodes_of(watch, graph) {
        Some(nodes) => _ = watch.graphs.built.insert(exec, Built::new(nodes)),
        None => watch.graphs.unknown(exec),
    }
}

/// The nodes that an executable graph has at its launch. Programs set its nodes one by one, so
/// the checker has all of them only now.
pub(crate) fn nodes_of_launch(watch: &mut Watch, exec: Handle) -> Option<Vec<Node>> {
    let built = watch.graphs.built.get_mut(&exec);
    if let Some(Built { nodes, changed, .. }) = built.filter(|of| of.changed) {
        *changed = false;
        watch.graphs.defined += 1;
        let node = |of: &Flat| GraphNode { work: of.work.parts(), after: of.after.clone() };
        watch.feed.graph(GraphId(exec as u64), nodes.iter().map(node).collect());
        watch.graphs.of_exec.insert(exec, nodes.iter().flat_map(|of| of.work.nodes()).collect());
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
    if watch.contexts.of_several_devices() {
        watch.feed.assume("a launch of a graph is work of all devices");
        let all = watch.contexts.on_device(None);
        watch.feed.contexts_share(&all, stream);
    }
    for (node, id) in nodes {
        match node {
            Node::Host(_) => {
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

/// The user objects of a graph, and of the child graphs of its nodes.
pub(crate) fn objects_within(watch: &Watch, graph: Handle) -> BTreeSet<u64> {
    let objects = &watch.host_functions.objects;
    if objects.is_empty() {
        return BTreeSet::new();
    }
    let own = objects.get(&graph).into_iter().flatten().copied();
    let within = children(&watch.graphs.questions, graph).into_iter();
    own.chain(within.flat_map(|child| objects_within(watch, child))).collect()
}

/// `settings` begin with the flags.
pub(crate) fn instantiate_with(
    call: &Call,
    real: impl FnOnce() -> Code,
    exec: *mut Handle,
    graph: Handle,
    settings: *const CUDA_GRAPH_INSTANTIATE_PARAMS,
) -> Code {
    // SAFETY: NULL or the program's settings.
    instantiate(call, real, exec, graph, unsafe { read(settings) }.flags)
}

pub(crate) fn instantiate(
    call: &Call,
    real: impl FnOnce() -> Code,
    exec: *mut Handle,
    graph: Handle,
    flags: u64,
) -> Code {
    /// `CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH`.
    const DEVICE_LAUNCH: u64 = 4;
    after_success(call, real, |watch| {
        watch.seen.launchable += u64::from(flags & DEVICE_LAUNCH != 0);
        // SAFETY: the place for the handle, which a success has written.
        let exec = unsafe { read(exec) };
        instantiated(watch, graph, exec);
        let objects = objects_within(watch, graph);
        watch.host_functions.has_objects(exec, objects);
    })
}

pub(crate) fn duplicate(
    call: &Call,
    real: impl FnOnce() -> Code,
    clone: *mut Handle,
    graph: Handle,
) -> Code {
    after_success(call, real, |watch| {
        // SAFETY: as above.
        let clone = unsafe { read(clone) };
        let nodes = watch.graphs.of_graph.get(&graph).cloned();
        match nodes.filter(|_| !watch.graphs.was_changed(graph)) {
            Some(nodes) => {
                watch.feed.graph_copy(GraphId(graph as u64), GraphId(clone as u64));
                watch.graphs.of_graph.insert(clone, nodes);
            }
            // Its instantiation asks the driver.
            None => watch.graphs.unknown(clone),
        }
        let objects = objects_within(watch, graph);
        watch.host_functions.has_objects(clone, objects);
    })
}

pub(crate) fn set_kernel<T: Copy + Default + Into<KernelNode>>(
    call: &Call,
    real: impl FnOnce() -> Code,
    exec: Handle,
    node: Handle,
    of: *const T,
) -> Code {
    after_success(call, real, |watch| {
        // SAFETY: NULL or the program's description.
        let work = kernel_work(watch, &unsafe { read(of) }.into());
        watch.graphs.set_node(exec, node, work);
    })
}

pub(crate) fn set_copy(
    call: &Call,
    real: impl FnOnce() -> Code,
    exec: Handle,
    node: Handle,
    of: *const CUDA_MEMCPY3D,
) -> Code {
    after_success(call, real, |watch| {
        // SAFETY: as above.
        let of = unsafe { read(of) };
        watch.graphs.set_node(exec, node, Work::of_copy(of));
    })
}

pub(crate) fn set_memset(
    call: &Call,
    real: impl FnOnce() -> Code,
    exec: Handle,
    node: Handle,
    of: *const CUDA_MEMSET_NODE_PARAMS,
) -> Code {
    after_success(call, real, |watch| {
        // SAFETY: as above.
        let of = unsafe { read(of) };
        watch.graphs.set_node(exec, node, Work::of_set(&of));
    })
}

pub(crate) fn destroy_node(call: &Call, real: impl FnOnce() -> Code, node: Handle) -> Code {
    let kept = begin_call(call, OfNode::new).and_then(|asks| {
        let graph = asks.graph(node);
        caught_up(|watch| match graph {
            Some(graph) => watch.graphs.unknown(graph),
            // No graph has the node any longer. So any that was captured may have had it.
            None => watch.graphs.of_graph.clear(),
        });
        asks.kept(graph?, node)
    });
    let code = real();
    if let (OK, Some(kept)) = (code, kept) {
        kept.take();
    }
    code
}

pub(crate) fn destroy(call: &Call, real: impl FnOnce() -> Code, graph: Handle) -> Code {
    begin_call(call, |watch| {
        let objects = watch.host_functions.objects.remove(&graph).unwrap_or_default();
        watch.feed.graph_destroy(GraphId(graph as u64), objects);
        watch.graphs.leave(graph);
        watch.graphs.unknown(graph);
    });
    real()
}

pub(crate) fn launch(
    call: &Call,
    real: impl FnOnce() -> Code,
    exec: Handle,
    stream: Handle,
) -> Code {
    let begun = begin_call(call, |watch| {
        watch.seen.graphs += 1;
        let stream = watch.stream(call, stream);
        if watch.feed.capture_of(stream).is_some() {
            // The driver refuses it, and the capture with it.
            return None;
        }
        let Some(nodes) = nodes_of_launch(watch, exec) else {
            watch.seen.unknown += 1;
            watch.order_everything();
            return None;
        };
        Some(launch_begins(watch, stream, GraphId(exec as u64), nodes))
    });
    if begun.is_none() {
        host_functions::unseen();
    }
    let code = real();
    if let Some((number, hosts)) = begun.flatten() {
        if code != OK {
            hosts.iter().for_each(|(host, id)| host.withdrawn(*id));
        }
        caught_up(|watch| watch.submission_returned(number, code));
    }
    code
}

pub(crate) fn update(
    call: &Call,
    real: impl FnOnce() -> Code,
    exec: Handle,
    graph: Handle,
) -> Code {
    after_success(call, real, |watch| {
        instantiated(watch, graph, exec);
        let mut objects = watch.host_functions.objects.remove(&exec).unwrap_or_default();
        watch.feed.objects_left(GraphId(exec as u64), objects.iter().copied());
        objects.extend(objects_within(watch, graph));
        watch.host_functions.has_objects(exec, objects);
    })
}

#[cfg(test)]
mod tests;
