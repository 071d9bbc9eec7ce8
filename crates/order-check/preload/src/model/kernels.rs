//! Kernels are submitted: their accesses come to the feed.

use cuda_order_check_engine::{Access, AccessKind, EventId, Launched, StreamId};

use crate::call::{Call, Handle};
use crate::code::launch::{Sizes, Values};
use crate::code::signals;
use crate::code::verdict::may_write;
use crate::model::pinned::{settle_copies, watch_copies};
use crate::report::trace::note;
use crate::state::node::Node;
use crate::state::waiting::Submitted;
use crate::watch::Watch;

/// A launch of a kernel, as the program has made it.
pub(crate) struct KernelLaunch<'a> {
    pub(crate) function: Handle,
    pub(crate) sizes: Sizes,
    /// The addresses of its parameters, or NULL.
    pub(crate) parameters: *const Handle,
    /// A list that ends with 0 and may have their buffer, or NULL.
    pub(crate) extra: *const Handle,
    pub(crate) stream: Handle,
    /// The events that it records.
    pub(crate) records: &'a [Handle],
    /// An assumption about its order: the driver may do otherwise.
    pub(crate) assumes: Option<&'static str>,
}

/// The driver has accepted a launch. It waits for the next call, if it may.
pub(crate) fn launched(watch: &mut Watch, call: &Call, launch: &KernelLaunch<'_>) {
    let KernelLaunch { function, sizes, parameters, extra, stream, records, assumes } = *launch;
    let name = watch.kernels.name_of(&watch.questions, call, function);
    watch.seen.kernels += 1;
    let mut is_of_host = false;
    watch.defer(call, name, stream, assumes.is_none(), |watch| {
        note(|| format!(" [{name}]"));
        let Watch { waiting, kernels, pinned, .. } = watch;
        let first = waiting.values.len();
        if let Some(kernel) = kernels.by_handle.get(&function) {
            // SAFETY: what the program gave to the call.
            unsafe { kernel.values(parameters, extra, &mut waiting.values) };
            let values = waiting.values.get(first..).unwrap_or_default();
            let variables = kernel.code.variables();
            let mut variables = variables.iter().flat_map(|all| all.iter());
            let has = |word: u64| pinned.of_host(word).is_some();
            is_of_host = pinned.may_be_of_host(values) && kernel.addresses(values).any(has)
                || variables.any(|one| has(one.range.start));
        }
        Submitted::Launch { function, sizes, end: waiting.values.len() }
    });
    if is_of_host {
        // The host may access that memory before its next call.
        watch.submit_waiting();
        settle_copies(watch);
    }
    assumes.into_iter().for_each(|what| watch.feed.assume(what));
    for event in records {
        let stream = watch.stream(call, stream);
        watch.feed.record(EventId(*event as u64), stream);
    }
}

/// A kernel comes to the feed. `of_host`: the host may access some of what it does.
pub(crate) fn submitted(
    watch: &mut Watch,
    stream: StreamId,
    function: Handle,
    accesses: &[Access],
    of_host: bool,
    is_captured: bool,
) {
    watch.feed.work(stream, accesses);
    let launch = accesses.first().and_then(Access::launch);
    // With the launch no look for the kernel is needed.
    let code = match launch.and_then(Launched::get::<Values>) {
        Some(values) => Some(&values.code),
        None => watch.kernels.by_handle.get(&function).map(|kernel| &kernel.code),
    };
    if let Some(code) = code {
        let call = (!is_captured).then(|| (stream, watch.feed.call_number()));
        signals::launched(code, call, launch, of_host);
        if of_host && (is_captured || !watch.pinned.is_on()) {
            signals::unwatched();
        }
    }
    if is_captured && accesses.iter().any(|access| access.kind == AccessKind::Write) {
        watch.graphs.add(&watch.feed, stream, Node::Work);
    }
    if !of_host {
        return;
    }
    watch.uploads.host_may_be_late();
    let Some(launch) = launch else { return };
    let is_watched = |access: &Access| watch.pinned.region(access.range.start).is_some();
    if !accesses.iter().any(is_watched) {
        signals::unwatched();
    }
    for access in accesses {
        if watch.pinned.region(access.range.start).is_some() {
            let writes =
                launch.get::<Values>().is_none_or(|values| may_write(values, &access.range));
            let kind = if writes { AccessKind::Write } else { AccessKind::Read };
            let mut touched =
                Access::new(kind, access.range.start, access.range.end - access.range.start);
            touched.set_launch(launch.clone());
            watch_copies(watch, stream, &[touched]);
        }
    }
}
