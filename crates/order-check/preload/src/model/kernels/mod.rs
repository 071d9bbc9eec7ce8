//! Kernels are submitted: their accesses come to the feed.

pub(crate) mod state;

use cuda_order_check_engine::{Access, AccessKind, StreamId};

use crate::code::launch::Values;
use crate::code::verdict::may_write;
use crate::model::graphs::node::Node;
use crate::model::pinned::watch_copies;
use crate::watch::Watch;

/// A kernel is submitted. `of_host`: the host may access some of what it does.
pub(crate) fn kernel_part(watch: &mut Watch, stream: StreamId, accesses: &[Access], of_host: bool) {
    watch.feed.work(stream, accesses);
    if watch.feed.capture_of(stream).is_some()
        && accesses.iter().any(|of| of.kind == AccessKind::Write)
    {
        watch.graphs.add(&watch.feed, stream, Node::Work);
    }
    if !of_host {
        return;
    }
    let Some(launch) = accesses.first().and_then(Access::launch) else { return };
    for access in accesses {
        if watch.pinned.region(access.range.start).is_some() {
            let writes = launch.get::<Values>().is_none_or(|of| may_write(of, &access.range));
            let kind = if writes { AccessKind::Write } else { AccessKind::Read };
            let mut of =
                Access::new(kind, access.range.start, access.range.end - access.range.start);
            of.set_launch(launch.clone());
            watch_copies(watch, stream, &[of]);
        }
    }
}
