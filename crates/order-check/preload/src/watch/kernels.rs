//! Kernels: what their parameters point to.

use cuda_order_check_engine::{Access, AccessKind, StreamId};

use crate::model::launch::Node;
use crate::watch::Watch;

pub(crate) fn kernel_part(watch: &mut Watch, stream: StreamId, accesses: &[Access]) {
    watch.feed.work(stream, accesses);
    if watch.feed.capture_of(stream).is_some()
        && accesses.iter().any(|of| of.kind == AccessKind::Write)
    {
        watch.graphs.add(&watch.feed, stream, Node::Work);
    }
}
