//! Calls that the library has no hook for: their names say whether they may order work.

use crate::call::{Call, Handle, read};
use crate::model::memory::resource_unmapped;
use crate::model::streams::{signal_external, wait_external};
use crate::model::user_objects::objects_within;
use crate::names::{Edited, base, edited};
use crate::state::executions as host_functions;
use crate::walk::begin_call;

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
    let place = match (name, base(name)) {
        ("cuGraphAddNode", _) => arguments[4],
        (_, "cuGraphAddNode") => arguments[5],
        (_, "cuGraphExecNodeSetParams") => arguments[2],
        _ => 0,
    };
    // SAFETY: NULL or the program's description, which is longer.
    unsafe { read(core::ptr::with_exposed_provenance(place)) }
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

/// A call without a hook comes: it may order anything, or change a graph.
pub(crate) fn unmodelled(name: &'static str, arguments: &[Handle; 6]) {
    if name.starts_with("cuGraph") && name.contains("Launch") {
        host_functions::unseen();
    }
    let call = Call { name, per_thread: name.ends_with("_ptsz") };
    begin_call(&call, |watch| match edited(name) {
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
                "cuWaitExternalSemaphoresAsync" => {
                    let stream = watch.stream(&call, arguments[3]);
                    wait_external(watch, stream);
                }
                "cuSignalExternalSemaphoresAsync" => signal_external(watch),
                "cuGraphicsUnmapResources" => {
                    let stream = watch.stream(&call, arguments[2]);
                    for resource in unmapped(arguments) {
                        resource_unmapped(watch, stream, resource);
                    }
                }
                _ => {}
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::{allocates, child};
    use crate::call::{Call, Handle, OK};
    use crate::hooks::streams;
    use crate::hooks::tests::with_context;
    use crate::model::streams::{EXTERNAL_WAITS, signal_external, wait_external};
    use crate::walk::begin_call;

    const CALL: Call = Call { name: "cuWaitExternalSemaphoresAsync", per_thread: false };

    /// Waits for external semaphores are remembered up to a number, and in no capture; a signal may end
    /// all of them.
    #[test]
    fn waits_for_external_semaphores_are_bounded() {
        let _turn = crate::lock::TURN.lock();
        with_context();
        let mut stream = 0x100;
        streams::create(&CALL, || OK, &mut stream, 1);
        let wait = || {
            let waits = begin_call(&CALL, |watch| {
                let stream = watch.stream(&CALL, stream);
                wait_external(watch, stream);
                watch.streams.external.waits.len()
            });
            waits.expect("it is seen")
        };
        for count in (1..=EXTERNAL_WAITS).chain([1, 2]) {
            assert_eq!(wait(), count);
        }
        streams::capture_begin(&CALL, || OK, stream);
        assert_eq!(wait(), 2);
        streams::capture_end(&CALL, || OK, stream, &mut 0x200);
        assert_eq!(wait(), 3);
        let left = begin_call(&CALL, |watch| {
            signal_external(watch);
            watch.streams.external.waits.len()
        });
        assert_eq!(left, Some(0));
    }

    /// By each function that may add or set a node.
    #[test]
    fn a_node_that_is_described_has_its_kind_and_its_child() {
        const CHILD: Handle = 0x77;
        let described = |kind: usize| {
            let mut words = [0_usize; 32];
            (words[0], words[2]) = (kind | 0x55 << 32, CHILD);
            words
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
                let words = described(kind);
                let mut arguments = [0; 7];
                arguments[at] = words.as_ptr().expose_provenance();
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
