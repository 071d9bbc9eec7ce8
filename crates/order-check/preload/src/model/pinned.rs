//! Pinned and managed memory, for the class `host`: which copies and kernels are watched there, and
//! what the host has accessed meanwhile.

use core::sync::atomic::Ordering;
use std::cell::OnceCell;
use std::sync::{Arc, PoisonError};

use cuda_order_check_engine::trace::{Trace, file_of};
use cuda_order_check_engine::{Access, Call as Made, GraphId, StreamId, ThreadId};

use crate::call::Address;
use crate::code::signals;
use crate::model::host_functions::apply_posted;
use crate::pinned::accesses::EarlyAccess;
use crate::pinned::protection::{self, PAGE};
use crate::pinned::{accesses, faults, has_more};
use crate::state::executions::{HAVE_POSTED, POSTED, Post, have_posted};
use crate::state::pinned::{Region, STREAMS, State, Watched, is_of, text_of};
use crate::state::values::Pending;
use crate::watch::Watch;

/// Pinned or managed memory begins. `registered` has other things of the program beside it.
pub(crate) fn pinned_begins(
    watch: &mut Watch,
    address: Address,
    bytes: usize,
    registered: bool,
    managed: bool,
) {
    // Where the host must not access it while the device is busy, the system sees to that.
    if managed && !watch.questions.has_concurrent_managed_access() {
        return;
    }
    let pinned = &mut watch.pinned;
    let pointer = core::ptr::with_exposed_provenance(address as usize);
    // SAFETY: memory of the driver, which the program does not have yet, or has given to
    // the call under way.
    if pinned.alias.is_none_or(|alias| unsafe { alias(pointer) != 0 }) {
        let (bytes, shared) = (bytes as u64, OnceCell::new());
        pinned.regions.insert(address, Region { bytes, registered, managed, shared });
    }
}

/// The memory ends: its pages are as they were.
pub(crate) fn pinned_ends(watch: &mut Watch, address: Address) {
    let Some(region) = watch.pinned.regions.remove(&address) else { return };
    let range = [address as usize, (address + region.bytes) as usize];
    watch.pinned.unwatch(|index| protection::is_in(index, range));
}

/// A copy, a memset or a kernel was submitted.
pub(crate) fn watch_copies(watch: &mut Watch, stream: StreamId, accesses: &[Access]) {
    if !watch.pinned.is_on() || watch.pinned.regions.is_empty() {
        return;
    }
    for access in accesses {
        if watch.pinned.region(access.range.start).is_none()
            || watch.feed.capture_of(stream).is_some()
        {
            continue;
        }
        let work = watch.feed.await_stream(stream);
        watch.pinned.submitted.push((stream, access.clone(), work));
    }
}

/// The pages of pinned memory that the graph's nodes use are protected.
pub(crate) fn watch_launch(watch: &mut Watch, stream: StreamId, graph: GraphId) {
    if !watch.pinned.is_on()
        || watch.pinned.regions.is_empty()
        || watch.feed.capture_of(stream).is_some()
    {
        return;
    }
    let accesses = watch
        .feed
        .graph_accesses(graph, |access| watch.pinned.region(access.range.start).is_some());
    for access in accesses {
        let work = watch.feed.await_stream(stream);
        watch.pinned.submitted.push((stream, access, work));
    }
}

/// Memory ends: no copy is watched any longer.
pub(crate) fn stop_watching_copies(watch: &mut Watch) {
    watch.pinned.unwatch(|_| true);
}

/// A hook begins: what host functions have posted, and what the host has accessed meanwhile.
pub(crate) fn host_accesses(watch: &mut Watch) {
    if faults::is_around() && matches!(watch.pinned.state, State::On) {
        watch.pinned.turn_off("a library was opened with RTLD_DEEPBIND");
    }
    if !has_more() && !have_posted() {
        return;
    }
    // A function that runs now cannot post its end meanwhile. So each access that is taken has its
    // begin among the posts, and each end that is taken has its accesses.
    let (posts, early) = {
        let mut posts = POSTED.lock().unwrap_or_else(PoisonError::into_inner);
        HAVE_POSTED.store(false, Ordering::Relaxed);
        (std::mem::take(&mut *posts), accesses::take())
    };
    // In the order in which they came: work that waits for the end of a function is after its
    // accesses.
    let (mut posts, mut has_looked) = (posts.into_iter().peekable(), false);
    for (order, access) in early {
        while let Some(Post { thread, posted, .. }) = posts.next_if(|post| post.order < order) {
            apply_posted(watch, thread, posted);
            has_looked = false;
        }
        if !has_looked && !watch.feed.runs_function(ThreadId(access.thread)) {
            // The host may have seen a value first, but not one that is written after the end of a
            // function whose accesses are still to come.
            watch.look_at_values_before_accesses();
            has_looked = true;
        }
        let caller = watch.feed.caller();
        host_access(watch, access);
        watch.feed.resume(caller);
    }
    posts.for_each(|Post { thread, posted, .. }| apply_posted(watch, thread, posted));
    let now = watch.pinned.begin.elapsed().as_secs();
    let budget = &mut watch.pinned.budget;
    protection::close_holes(|[first, end]| budget.allows(now, first, (end - first) / PAGE));
}

pub(crate) fn host_access(watch: &mut Watch, early: EarlyAccess) {
    let own = file_of(file_of as *const () as usize);
    let all = early.frames.into_iter().take_while(|at| *at != 0);
    let frames: Vec<usize> = all.skip_while(|at| file_of(*at) == own).collect();
    let python = text_of(early.python);
    if is_of(watch.pinned.driver, &frames) {
        return;
    }
    watch.seen.calls += 1;
    let mut call = Made::new(early.name, watch.seen.calls, ThreadId(early.thread));
    signals::touched(watch.seen.calls);
    call.backtrace = Some(Arc::new(Trace::of_frames(frames, python.unwrap_or_default())));
    watch.feed.resume(call);
    // What waits for a host function or a value is not over, and comes to the checker later.
    let touched = |copy: &&Watched| protection::touches(copy.index, early.bytes, early.writes);
    for copy in watch.pinned.watched.values().flatten().filter(touched) {
        watch.feed.assume_held_back(&copy.work);
    }
    let access = if early.writes { Access::write } else { Access::read };
    let [start, end] = early.bytes.map(|at| at as u64);
    watch.feed.host(&[access(start, end - start)]);
}

/// A hook ends: what the host is ordered after now is lifted, and what was submitted is
/// protected.
pub(crate) fn settle_copies(watch: &mut Watch) {
    let (feed, pinned) = (&watch.feed, &mut watch.pinned);
    for all in pinned.watched.values_mut() {
        // What comes later in a stream is over later.
        while all.front().is_some_and(|first| feed.host_is_after(&first.work)) {
            if let Some(Watched { index, .. }) = all.pop_front() {
                protection::remove(index);
            }
        }
    }
    if pinned.watched.len() > STREAMS {
        pinned.watched.retain(|_, all| !all.is_empty());
    }
    let over = |flag: &mut Pending| flag.work.as_ref().is_some_and(|work| feed.host_is_after(work));
    for flag in watch.values.pending.extract_if(.., over).collect::<Vec<_>>() {
        watch.has_seen(flag);
    }
    let (feed, pinned) = (&watch.feed, &mut watch.pinned);
    for (stream, access, work) in std::mem::take(&mut pinned.submitted) {
        if !feed.host_is_after(&work) {
            pinned.watch(stream, &access, work);
        }
    }
}

/// Nothing is protected any more, as the process ends.
pub(crate) fn stop_watching(watch: &mut Watch) {
    host_accesses(watch);
    if watch.pinned.is_on() {
        watch.pinned.turn_off("the process ends");
        watch.pinned.state = State::Unused;
    }
}
