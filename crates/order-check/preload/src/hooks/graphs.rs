//! The calls that make, change and launch executable graphs.

use core::ffi::c_uint;
use std::collections::BTreeSet;

use cuda_events::sys::more::{
    CUDA_GRAPH_INSTANTIATE_PARAMS, CUDA_MEMCPY3D, CUDA_MEMSET_NODE_PARAMS,
};
use cuda_order_check_engine::GraphId;

use crate::call::{Call, Code, Handle, OK, read};
use crate::model::graphs::flatten::kernel_work;
use crate::model::graphs::{
    instantiated, launch_begins, node_enabled, nodes_change, nodes_of_launch,
};
use crate::model::host_functions::nodes::NodeQuestions;
use crate::model::user_objects::{graph_ends, node_ends, objects_within};
use crate::state::executions as host_functions;
use crate::state::nodes::{KernelNode, Work};
use crate::walk::{after_success, begin_call, caught_up};
use crate::watch::Watch;

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
        watch.user_objects.set(exec, objects);
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
        watch.user_objects.set(clone, objects);
    })
}

pub(crate) fn set_kernel<T: Copy + Default + Into<KernelNode>>(
    call: &Call,
    real: impl FnOnce() -> Code,
    exec: Handle,
    node: Handle,
    description: *const T,
) -> Code {
    after_success(call, real, |watch| {
        // SAFETY: NULL or the program's description.
        let work = kernel_work(watch, &unsafe { read(description) }.into());
        nodes_change(watch, exec);
        watch.graphs.set_node(exec, node, work);
    })
}

pub(crate) fn set_copy(
    call: &Call,
    real: impl FnOnce() -> Code,
    exec: Handle,
    node: Handle,
    description: *const CUDA_MEMCPY3D,
) -> Code {
    after_success(call, real, |watch| {
        // SAFETY: as above.
        let description = unsafe { read(description) };
        nodes_change(watch, exec);
        watch.graphs.set_node(exec, node, Work::of_copy(description));
    })
}

pub(crate) fn set_memset(
    call: &Call,
    real: impl FnOnce() -> Code,
    exec: Handle,
    node: Handle,
    description: *const CUDA_MEMSET_NODE_PARAMS,
) -> Code {
    after_success(call, real, |watch| {
        // SAFETY: as above.
        let description = unsafe { read(description) };
        nodes_change(watch, exec);
        watch.graphs.set_node(exec, node, Work::of_set(&description));
    })
}

pub(crate) fn set_enabled(
    call: &Call,
    real: impl FnOnce() -> Code,
    exec: Handle,
    node: Handle,
    is_enabled: c_uint,
) -> Code {
    after_success(call, real, |watch| node_enabled(watch, exec, node, is_enabled != 0))
}

pub(crate) fn destroy_node(call: &Call, real: impl FnOnce() -> Code, node: Handle) -> Code {
    let reference = begin_call(call, NodeQuestions::new).and_then(|asks| {
        let graph = asks.graph(node);
        caught_up(|watch| {
            node_ends(watch, node);
            match graph {
                Some(graph) => watch.graphs.unknown(graph),
                // No graph has the node any longer. So any that was captured may have had it.
                None => watch.graphs.of_graph.clear(),
            }
        });
        asks.reference(graph?, node)
    });
    let code = real();
    if let (OK, Some(reference)) = (code, reference) {
        reference.release();
    }
    code
}

pub(crate) fn destroy(call: &Call, real: impl FnOnce() -> Code, graph: Handle) -> Code {
    begin_call(call, |watch| {
        let objects = graph_ends(watch, graph);
        destroyed(watch, graph, objects);
    });
    real()
}

pub(crate) fn destroy_exec(call: &Call, real: impl FnOnce() -> Code, exec: Handle) -> Code {
    begin_call(call, |watch| {
        let objects = watch.user_objects.of_graphs.remove(&exec).unwrap_or_default();
        destroyed(watch, exec, objects);
    });
    real()
}

/// A graph, or an executable one, is no longer there, and no longer has these user objects.
fn destroyed(watch: &mut Watch, graph: Handle, objects: BTreeSet<u64>) {
    watch.feed.graph_destroy(GraphId(graph as u64), objects);
    watch.graphs.leave(graph);
    watch.graphs.unknown(graph);
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
        let built = watch.graphs.built.get(&exec);
        let has_disabled = built.is_some_and(|built| !built.disabled.is_empty());
        instantiated(watch, graph, exec);
        if has_disabled {
            // Whether an update enables them was not asked.
            watch.graphs.unknown(exec);
        }
        let mut objects = watch.user_objects.of_graphs.remove(&exec).unwrap_or_default();
        watch.feed.objects_left(GraphId(exec as u64), objects.iter().copied());
        objects.extend(objects_within(watch, graph));
        watch.user_objects.set(exec, objects);
    })
}

#[cfg(test)]
mod tests;
