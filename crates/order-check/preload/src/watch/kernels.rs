//! Kernels: what their parameters point to.

use cuda_order_check::{Access, AccessKind, StreamId};

use crate::model::kernels::Open;
use crate::model::launch::Node;
use crate::report::output::Word;
use crate::watch::Watch;

/// Each is an operation of its own, so that what is found of it can be held back.
pub(crate) fn open_words(
    watch: &mut Watch,
    kernel: &'static str,
    stream: StreamId,
    open: Vec<Open>,
) {
    let launch = watch.feed.caller();
    let captured = watch.feed.capture_of(stream).is_some();
    for Open { word, access, .. } in open.into_iter().filter(|of| !captured || of.likely) {
        let words = &mut watch.feed.observer_mut().words;
        words.entry(word).or_insert(Word { kernel, counts: None });
        let mut call = launch.clone();
        call.name = word.into();
        watch.feed.resume(call);
        kernel_part(watch, stream, &[access]);
    }
    watch.feed.resume(launch);
}

pub(crate) fn kernel_part(watch: &mut Watch, stream: StreamId, accesses: &[Access]) {
    watch.feed.work(stream, accesses);
    if watch.feed.capture_of(stream).is_some()
        && accesses.iter().any(|of| of.kind == AccessKind::Write)
    {
        watch.graphs.add(&watch.feed, stream, Node::Work);
    }
}
