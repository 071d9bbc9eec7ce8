//! Calls of which only the name is known.

use core::ffi::c_uint;

use cuda_order_check_engine::Compare;

use crate::call::{Call, Handle, read};
use crate::model::host_functions;
use crate::names::{base, edited};
use crate::watch::Watch;
use crate::watch::memory::resource_unmapped;
use crate::watch::walk::begin;

/// A stream waits for an external semaphore. What signals it may come after work that is
/// submitted later. So the wait is over when the host has waited for it, or after everything
/// that comes before the next signal.
pub(crate) fn wait_external(watch: &mut Watch, name: &'static str, stream: Handle) {
    let stream = watch.stream(&Call { name, per_thread: name.ends_with("_ptsz") }, stream);
    if watch.feed.capture_of(stream).is_none() {
        if watch.external.waits.len() == OUTSIDE {
            signal_external(watch);
        }
        watch.feed.wait_value(stream, watch.external.place.cell(), 1, Compare::Equal);
        watch.external.waits.push(watch.feed.caller().number);
    }
}

/// A stream signals an external semaphore: other APIs may go on, and signal others.
pub(crate) fn signal_external(watch: &mut Watch) {
    for call in std::mem::take(&mut watch.external.waits) {
        watch.feed.wait_ended(watch.external.place.cell(), call);
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

/// Whether a call adds a node that allocates memory.
pub(crate) fn allocates(name: &str, arguments: &[Handle; 6]) -> bool {
    /// `CU_GRAPH_NODE_TYPE_MEM_ALLOC`, with which the description of a node begins.
    const ALLOCATES: c_uint = 10;
    let of = match (name, base(name)) {
        (_, "cuGraphAddMemAllocNode") => return true,
        ("cuGraphAddNode", _) => arguments[4],
        (_, "cuGraphAddNode") => arguments[5],
        _ => 0,
    };
    // SAFETY: NULL or the program's description.
    unsafe { read(core::ptr::with_exposed_provenance::<c_uint>(of)) == ALLOCATES }
}

/// A call comes of which only the name is known: it may order anything, or change a graph.
pub(crate) fn unmodelled(name: &'static str, arguments: &[Handle; 6]) {
    if name.starts_with("cuGraph") && name.contains("Launch") {
        host_functions::unseen();
    }
    begin(&Call { name, per_thread: false }, |watch| match edited(name) {
        Some(what) => {
            watch.seen.allocating += u64::from(allocates(name, arguments));
            watch.graphs.edited(what, arguments);
        }
        None => {
            watch.order_everything();
            watch.note_captures();
            if name.contains("Create") {
                watch.in_use.forget_all();
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
