//! The library's own functions for programs: they declare accesses, name streams and take findings.

use core::sync::atomic::Ordering;

use cuda_order_check_engine::{Access, Finding};

use crate::call::{Address, Call, Handle};
use crate::model::uploads::overwritten;
use crate::report::output::LAUNCHES;
use crate::state::node::Node;
use crate::walk::{begin_call, caught_up, locked};
use crate::watch::Watch;

/// The findings since the last call.
pub fn take_findings() -> Vec<Finding> {
    // What was found so far is judged after this.
    caught_up(|_| ());
    let take = |watch: &mut Watch| {
        watch.release_all();
        watch.feed.observer_mut().take()
    };
    locked(take).unwrap_or_default()
}

/// Has the findings so far written. None of them waits for the next launch, which would show where its
/// kernel is launched, so launches have stacks from now on.
pub fn flush() {
    LAUNCHES.store(true, Ordering::Relaxed);
    take_findings();
}

/// Reports an access that no driver sees: of work in a stream, or of the host.
pub fn declare(
    name: &'static str,
    stream: Option<Handle>,
    address: Address,
    bytes: u64,
    write: bool,
) {
    let access = if write { Access::write } else { Access::read }(address, bytes);
    let call = Call { name, per_thread: false };
    begin_call(&call, |watch| match stream {
        Some(stream) => {
            let stream = watch.stream(&call, stream);
            overwritten(watch, core::slice::from_ref(&access));
            watch.feed.work(stream, &[access]);
            if write {
                watch.graphs.add(&watch.feed, stream, Node::Work);
            }
        }
        None => watch.feed.host(&[access]),
    });
}

/// Reports name the stream so.
pub fn name_stream(stream: Handle, name: &str) {
    let call = Call { name: "cuda_order_check_name_stream", per_thread: false };
    begin_call(&call, |watch| {
        let stream = watch.stream(&call, stream);
        watch.feed.stream_name(stream, name);
    });
}
