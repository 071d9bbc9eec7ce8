//! Calls of which only the name is known.

use super::*;

/// How many waits for external semaphores are remembered.
const OUTSIDE: usize = 1024;

/// The graphics resources of a call that unmaps them.
pub(super) fn unmapped(arguments: &[Handle; 6]) -> Vec<Handle> {
    let (count, first) = (arguments[0] as u32, arguments[1]);
    let first: *const Handle = core::ptr::with_exposed_provenance(first);
    let count = if first.is_null() { 0 } else { count as usize };
    // SAFETY: the program's list, of so many.
    (0..count).map(|at| unsafe { first.add(at).read() }).collect()
}

/// Whether a call adds a node that allocates memory.
fn allocates(name: &str, arguments: &[Handle; 6]) -> bool {
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
        hosts::unseen();
    }
    begin(&Call { name, per_thread: false }, |watch| match edited(name) {
        Some(what) => {
            watch.seen.allocating += u64::from(allocates(name, arguments));
            watch.edited(what, arguments);
        }
        None => {
            watch.order_everything();
            watch.note_captures();
            match base(name) {
                "cuWaitExternalSemaphoresAsync" => watch.wait_outside(name, arguments[3]),
                "cuSignalExternalSemaphoresAsync" => watch.signal_outside(),
                "cuGraphicsUnmapResources" => {
                    let per_thread = name.ends_with("_ptsz");
                    let stream = watch.stream(&Call { name, per_thread }, arguments[2]);
                    unmapped(arguments).into_iter().for_each(|of| watch.unmapped(stream, of));
                }
                _ => {}
            }
        }
    });
}

impl Watch {
    /// A call may have added a node to any capture.
    pub(super) fn note_captures(&mut self) {
        let streams = self.streams.iter().map(|of| StreamId(*of as u64));
        let all = streams.chain(self.defaults.values().copied());
        self.partial.extend(all.filter_map(|stream| self.feed.capture_of(stream)));
    }

    /// A stream waits for an external semaphore. What signals it may come after work that is
    /// submitted later. So the wait is over when the host has waited for it, or after everything
    /// that comes before the next signal.
    fn wait_outside(&mut self, name: &'static str, stream: Handle) {
        let stream = self.stream(&Call { name, per_thread: name.ends_with("_ptsz") }, stream);
        if self.feed.capture_of(stream).is_none() {
            if self.outside_waits.len() == OUTSIDE {
                self.signal_outside();
            }
            self.feed.wait_value(stream, self.outside.cell(), 1, Compare::Equal);
            self.outside_waits.push(self.feed.caller().number);
        }
    }

    /// A stream signals an external semaphore: other APIs may go on, and signal others.
    fn signal_outside(&mut self) {
        for call in std::mem::take(&mut self.outside_waits) {
            self.feed.wait_ended(self.outside.cell(), call);
        }
    }
}
