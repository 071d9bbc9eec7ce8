//! Calls of which only the name is known.

use cuda_order_check_engine::Compare;

use crate::call::{Call, Handle, read};
use crate::model::host_functions::state as host_functions;
use crate::model::memory::resource_unmapped;
use crate::model::user_objects::objects_within;
use crate::names::{Edited, base, edited};
use crate::walk::begin_call;
use crate::watch::Watch;

/// A stream waits for an external semaphore. What signals it may come after work that is
/// submitted later. So the wait is over when the host has waited for it, or after everything
/// that comes before the next signal.
pub(crate) fn wait_external(watch: &mut Watch, name: &'static str, stream: Handle) {
    let stream = watch.stream(&Call { name, per_thread: name.ends_with("_ptsz") }, stream);
    if watch.feed.capture_of(stream).is_none() {
        if watch.streams.external.waits.len() == OUTSIDE {
            signal_external(watch);
        }
        watch.feed.wait_value(stream, watch.streams.external.semaphore.cell(), 1, Compare::Equal);
        watch.streams.external.waits.push(watch.feed.caller().number);
    }
}

/// A stream signals an external semaphore: other APIs may go on, and signal others.
pub(crate) fn signal_external(watch: &mut Watch) {
    for call in std::mem::take(&mut watch.streams.external.waits) {
        watch.feed.wait_ended(watch.streams.external.semaphore.cell(), call);
    }
}

/// How many waits for external semaphores are remembered.
pub(crate) const OUTSIDE: usize = 1024;

/// The graphics resources of a call that unmaps them.
pub(crate) fn unmapped(arguments: &[Handle; 6]) -> Vec<Handle> {
    let (count, first) = (arguments[0] as u32, arguments[1]);
    let first: *const Handle = core::ptr::with_exposed_provenance(first);
    let count = if first.is_null() { 0 } else { count as usize };
    // SAFETY: the program's list, of so many.
    (0..count).map(|at| unsafe { first.add(at).read() }).collect()
}

/// The description of a node that a call adds or sets, for the functions for nodes of all kinds. It
/// begins with the kind; that of a child graph goes on with its graph.
fn description(name: &str, arguments: &[Handle; 6]) -> [usize; 3] {
    let of = match (name, base(name)) {
        ("cuGraphAddNode", _) => arguments[4],
        (_, "cuGraphAddNode") => arguments[5],
        (_, "cuGraphExecNodeSetParams") => arguments[2],
        _ => 0,
    };
    // SAFETY: NULL or the program's description, which is longer.
    unsafe { read(core::ptr::with_exposed_provenance(of)) }
}

/// Whether a call adds a node that allocates memory.
fn allocates(name: &str, arguments: &[Handle; 6]) -> bool {
    /// `CU_GRAPH_NODE_TYPE_MEM_ALLOC`.
    const ALLOCATES: u32 = 10;
    base(name) == "cuGraphAddMemAllocNode" || description(name, arguments)[0] as u32 == ALLOCATES
}

/// The graph of which a call makes a child, or 0.
fn child(name: &str, arguments: &[Handle; 6]) -> Handle {
    /// `CU_GRAPH_NODE_TYPE_GRAPH`.
    const GRAPH: u32 = 4;
    match base(name) {
        "cuGraphAddChildGraphNode" => arguments[4],
        "cuGraphExecChildGraphNodeSetParams" => arguments[2],
        _ => match description(name, arguments) {
            [kind, _, graph] if kind as u32 == GRAPH => graph,
            _ => 0,
        },
    }
}

/// A call comes of which only the name is known: it may order anything, or change a graph.
pub(crate) fn unmodelled(name: &'static str, arguments: &[Handle; 6]) {
    if name.starts_with("cuGraph") && name.contains("Launch") {
        host_functions::unseen();
    }
    begin_call(&Call { name, per_thread: false }, |watch| match edited(name) {
        Some(what) => {
            watch.seen.allocating += u64::from(allocates(name, arguments));
            watch.graphs.edited(what, arguments);
            // The child is a copy, which holds what the graph and its own children hold.
            if let (Edited::Graph(at), graph @ 1..) = (what, child(name, arguments)) {
                let objects = objects_within(watch, graph);
                if !objects.is_empty() {
                    watch.user_objects.of_graphs.entry(arguments[at]).or_default().extend(objects);
                }
            }
        }
        None => {
            watch.order_everything();
            watch.note_captures();
            if name.contains("Create") {
                watch.destroyed.forget_all();
            }
            match base(name) {
                "cuWaitExternalSemaphoresAsync" => wait_external(watch, name, arguments[3]),
                "cuSignalExternalSemaphoresAsync" => signal_external(watch),
                "cuGraphicsUnmapResources" => {
                    let per_thread = name.ends_with("_ptsz");
                    let stream = watch.stream(&Call { name, per_thread }, arguments[2]);
                    unmapped(arguments)
                        .into_iter()
                        .for_each(|of| resource_unmapped(watch, stream, of));
                }
                _ => {}
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::{allocates, child};
    use crate::call::Handle;

    /// By each function that may add or set a node.
    #[test]
    fn a_node_that_is_described_has_its_kind_and_its_child() {
        const CHILD: Handle = 0x77;
        let described = |kind: usize| {
            let mut of = [0_usize; 32];
            (of[0], of[2]) = (kind | 0x55 << 32, CHILD);
            of
        };
        for (name, at) in [
            ("cuGraphAddNode", 4),
            ("cuGraphAddNode_v2", 5),
            ("cuGraphAddNode_v3", 5),
            ("cuGraphExecNodeSetParams", 2),
            ("cuGraphExecNodeSetParams_v2", 2),
            ("cuGraphNodeSetParams", 6),
        ] {
            for (kind, found) in [(4, (CHILD, false)), (10, (0, true)), (5, (0, false))] {
                let of = described(kind);
                let mut arguments = [0; 7];
                arguments[at] = of.as_ptr().expose_provenance();
                let arguments = arguments.first_chunk().expect("as many as a call may have");
                let found = if at == 6 { (0, false) } else { found };
                assert_eq!((child(name, arguments), allocates(name, arguments)), found, "{name}");
            }
        }
        let arguments = [1, 2, 3, 4, 5, 6];
        assert_eq!(child("cuGraphAddChildGraphNode", &arguments), 5);
        assert_eq!(child("cuGraphExecChildGraphNodeSetParams", &arguments), 3);
        assert_eq!(child("cuGraphAddMemAllocNode", &[0; 6]), 0);
        assert!(allocates("cuGraphAddMemAllocNode", &[0; 6]));
    }
}
