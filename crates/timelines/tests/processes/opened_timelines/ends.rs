//! Ends of makers, timelines, memory and contexts.

use crate::common;

use std::future::IntoFuture;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use common::child::to_hex;
use common::counting::Watched;
use common::futures::{Unpark, wait_until};
use common::timelines::{PATIENCE, error, idle, poll, reached};
use common::{Gpu, Latch, Other};
use cuda_events::ipc::ExporterState;
use cuda_events::sys::{CUresult, Function};
use cuda_events::{Context, Progress, Stream, StreamOptions, Version};
use cuda_timelines::{CudaStreamExt, Error, Point, Timeline, TimelineMemory};

use super::{gpu, open, own, peer, start};

/// The maker is killed: every wait ends, streams go on, and all can be dropped.
#[test]
fn a_killed_maker_of_a_handle_releases_all() {
    rescued!();
    let Some(gpu) = gpu() else { return };
    let (mut peer, opened) = peer(&gpu);
    assert_eq!(opened.context(), &gpu.context);
    let done = opened.point(peer.number("signal")).expect("a point");
    reached(done);
    peer.step("hold");
    let pending = opened.point(peer.number("signal")).expect("a point");
    let other = Other::new(&gpu);
    let theirs = Stream::new(&other, StreamOptions::new()).expect("a stream");
    let stream = gpu.stream();
    stream.wait_point(pending).expect("a wait");
    theirs.wait_point(pending).expect("a wait");
    let unpark = Unpark::new();
    let mut future = pending.into_future();
    assert_eq!(poll(&mut future, &Waker::from(Arc::clone(&unpark))), Poll::Pending);
    assert_eq!(pending.query(), Ok(Progress::Pending));
    assert_eq!(opened.exporter_state(), ExporterState::Running);
    std::thread::scope(|scope| {
        let waiters = [Point::wait_timeout, Point::spin_timeout]
            .map(|wait| scope.spawn(move || wait(&pending, PATIENCE)));
        peer.child.kill();
        for waiter in waiters {
            let found = error(waiter.join().expect("no panic"));
            assert_eq!(found, Error::ExporterGone);
        }
    });
    wait_until("the future is woken", || unpark.woken() == 1);
    assert_eq!(poll(&mut future, Waker::noop()), Poll::Ready(Err(Error::ExporterGone)));
    idle(&stream);
    idle(&theirs);
    assert_eq!(opened.exporter_state(), ExporterState::Ended);
    // They get the error at once from now on, and what was reached stays reached.
    assert_eq!(pending.query(), Err(Error::ExporterGone));
    assert_eq!(stream.wait_point(pending), Err(Error::ExporterGone));
    assert_eq!(opened.point(pending.value() + 1).map(drop), Err(Error::ExporterGone));
    assert!(done.is_done() && !pending.is_done());
    // The follower goes on as well, so that the context can end.
    drop((opened, stream, theirs, future));
    drop(Timeline::new(gpu.stream()));
    ends_with_its_context(gpu, other);
    assert!(done.is_done() && !pending.is_done());
}

/// Nothing is left in the context, which its last drop would wait for; and that drop comes.
#[track_caller]
fn ends_with_its_context(gpu: Gpu, other: Other) {
    drop(other);
    let Some(soft) = gpu.soft() else { return drop(gpu) };
    wait_until("all is given back", || {
        let live = soft.live();
        live.streams == 0 && live.retains == 1
    });
    drop(gpu);
}

/// What this process drops while points are pending goes on, and is given back when the maker's end
/// or the value has come.
#[test]
fn dropped_with_points_that_are_pending() {
    rescued!();
    for killed in [true, false] {
        let Some(gpu) = gpu() else { return };
        let other = Other::new(&gpu);
        let (mut peer, opened) = peer(&gpu);
        peer.step("hold");
        let pending = opened.point(peer.number("signal")).expect("a point");
        let stream = gpu.stream();
        stream.wait_point(pending).expect("a wait");
        drop(opened);
        assert_eq!(pending.query(), Ok(Progress::Pending));
        if killed {
            peer.child.kill();
            idle(&stream);
            assert_eq!(pending.query(), Err(Error::ExporterGone));
        } else {
            peer.step("release");
            idle(&stream);
            assert_eq!(pending.query(), Ok(Progress::Done));
            peer.end();
        }
        drop(stream);
        ends_with_its_context(gpu, other);
    }
}

/// Where nobody can see the maker's end, it can be reported: this process's waits end, and those of
/// other importers.
#[test]
fn the_end_of_a_maker_can_be_reported() {
    rescued!();
    let Some(gpu) = gpu() else { return };
    let mut maker = start();
    let handle = maker.make_in_memory();
    let (opened, second) = (open(&gpu.context, &handle), open(&gpu.context, &handle));
    let (opened, second) = (opened.expect("it can be opened"), second.expect("and again"));
    let mut far = start();
    assert_eq!(far.step(&format!("open {}", to_hex(&handle.to_bytes()))), "opened");
    maker.step("hold");
    let value = maker.number("signal");
    let (pending, same) = (opened.point(value), second.point(value));
    let (pending, same) = (pending.expect("a point"), same.expect("a point"));
    assert!(pending != same);
    let stream = gpu.stream();
    stream.wait_point(pending).expect("a wait");
    far.begin(&format!("wait {value}"));
    assert_eq!(opened.exporter_ended(), Ok(()));
    assert_eq!(pending.query(), Err(Error::ExporterGone));
    assert_eq!(opened.exporter_state(), ExporterState::Ended);
    idle(&stream);
    assert_eq!(error(same.wait_timeout(PATIENCE)), Error::Poisoned);
    assert_eq!(far.child.receive(), "poisoned");
    far.end();
    drop((opened, second));
    maker.child.kill();
}

/// Another importer sees the maker's end first, and its rescue poisons the maker's memory. That is
/// the maker's end here, too, and no poison of the maker's.
#[test]
fn an_end_that_another_importer_sees_first_is_the_end() {
    rescued!();
    let Some(gpu) = gpu() else { return };
    let mut maker = start();
    let handle = maker.make_in_memory();
    let opened = [open(&gpu.context, &handle), open(&gpu.context, &handle)];
    let [first, second] = opened.map(|opened| opened.expect("it can be opened"));
    let value = maker.number("signal") + 1;
    let [one, other] = [&first, &second].map(|opened| opened.point(value).expect("a point"));
    maker.child.kill();
    // Sooner than the thread believes the end.
    assert_eq!(first.exporter_ended(), Ok(()));
    assert_eq!(one.query(), Err(Error::ExporterGone));
    assert_eq!(error(other.wait_timeout(PATIENCE)), Error::ExporterGone);
    assert_eq!(second.point(value + 1).map(drop), Err(Error::ExporterGone));
    let stream = gpu.stream();
    assert_eq!(stream.wait_point(other), Err(Error::ExporterGone));
}

/// A maker that has dropped its timeline and then ended: the end is what is seen from then on.
#[test]
fn an_end_after_a_drop_is_the_end() {
    let Some(gpu) = gpu() else { return };
    let (mut peer, opened) = peer(&gpu);
    let never = opened.point(peer.number("signal") + 1).expect("a point");
    peer.step("drop");
    assert_eq!(error(never.wait_timeout(PATIENCE)), Error::Poisoned);
    peer.end();
    assert_eq!(never.query(), Err(Error::ExporterGone));
    drop(opened);
    assert_eq!(never.query(), Err(Error::ExporterGone), "also when nobody can look any more");
}

/// In peace: who waits for signals gets them, and then an end.
#[test]
fn a_dropped_timeline_in_memory_ends() {
    let Some(gpu) = gpu() else { return };
    let (mut peer, opened) = peer(&gpu);
    peer.step("hold");
    let value = peer.number("signal");
    let pending = opened.point(value).expect("a point");
    let never = opened.point(value + 1).expect("a point");
    let stream = gpu.stream();
    stream.wait_point(never).expect("a wait");
    assert_eq!(never.wait_timeout(Duration::from_millis(20)), Ok(Progress::Pending));
    assert_eq!(peer.step("drop"), "dropped");
    assert_eq!((pending.query(), stream.query()), (Ok(Progress::Pending), Ok(Progress::Pending)));
    peer.step("release");
    reached(pending);
    assert_eq!(error(never.wait_timeout(PATIENCE)), Error::Poisoned);
    idle(&stream);
    let late = opened.point(value + 2);
    assert_eq!(late.map(drop), Err(Error::Poisoned));
    assert_eq!((pending.query(), never.query()), (Ok(Progress::Done), Err(Error::Poisoned)));
    peer.end();
    // It may also be given up.
    let (_memory, timeline) = own(&gpu);
    let mut peer = start();
    peer.open(&timeline);
    let value = timeline.submitted().expect("a value");
    peer.begin(&format!("wait {}", value + 1));
    timeline.poison().expect("the stream works");
    assert_eq!(peer.child.receive(), "poisoned");
    peer.end();
}

/// Who waits for what the maker has ended in peace has nothing pending, and keeps no context.
#[test]
fn an_ended_timeline_in_memory_is_given_back() {
    common::own_process!();
    let Some(gpu) = gpu() else { return };
    let other = Other::new(&gpu);
    let (mut peer, opened) = peer(&gpu);
    let value = peer.number("signal");
    let never = opened.point(value + 1).expect("a point");
    peer.step("drop");
    assert_eq!(error(never.wait_timeout(PATIENCE)), Error::Poisoned);
    drop(opened);
    ends_with_its_context(gpu, other);
    peer.end();
}

/// Runs `work` in a thread, as it may wait for what this one holds.
fn returns(work: impl FnOnce() + Send + 'static) {
    let worker = std::thread::spawn(work);
    wait_until("it returns", || worker.is_finished());
    worker.join().expect("no panic");
}

/// The driver would wait for the device to free it, and others for the driver. So the memory serves
/// the next object of its context, with other lines, and ends with the context.
#[test]
fn dropped_memory_serves_the_next() {
    common::own_process!();
    let Some(gpu) = gpu() else { return };
    let watched = Watched::new(gpu.driver);
    let driver_bytes = |timeline: &Timeline| {
        let descriptor = timeline.descriptor().expect("it is in memory").to_bytes();
        let index = u16::from_le_bytes([descriptor[6], descriptor[7]]);
        (descriptor[60..132].to_vec(), index)
    };
    let make = |context: &Context| {
        let memory = TimelineMemory::new(context).expect("memory");
        assert!(format!("{memory:?}").starts_with("TimelineMemory { number: 0x"));
        let stream = Stream::new(context, StreamOptions::new()).expect("a stream");
        let timeline = Timeline::in_memory(stream, &memory).expect("a timeline");
        (memory, timeline)
    };
    let has_cleared = || watched.made().contains(&Function::cuMemsetD8Async);
    let allocations = || gpu.soft().map(|soft| soft.live().allocations);
    let context = watched.context();
    let (memory, timeline) = make(&context);
    let (first, index) = driver_bytes(&timeline);
    assert!(index == 1 && has_cleared());
    // Two at once do not share.
    let (other_memory, other) = make(&context);
    assert_ne!(driver_bytes(&other).0, first);
    // A peer waits for what no signal ends.
    let mut peer = start();
    peer.open(&timeline);
    let value = timeline.signal().expect("a signal").value();
    assert_eq!(peer.step(&format!("wait {value}")), "done");
    // With work that does not end, also of the memory's own stream.
    let latch = Latch::hold(timeline.stream());
    watched.made();
    returns(move || drop(memory));
    assert_eq!(watched.made(), []);
    returns(move || drop(timeline));
    let (memory, timeline) = make(&context);
    assert_eq!(driver_bytes(&timeline), (first.clone(), 2));
    assert!(!has_cleared(), "other processes may use its lines");
    latch.release();
    // The old one has ended, and is not taken for the new one.
    assert_eq!(peer.step(&format!("wait {}", value + 1)), "poisoned");
    let value = timeline.signal().expect("a signal").value();
    peer.open(&timeline);
    assert_eq!(peer.step(&format!("wait {value}")), "done");
    peer.end();
    drop((memory, timeline, other_memory, other));
    // Objects that were made apart are of one context, if that lives. Before CUDA 12.0, which gave
    // contexts numbers, nothing shows it.
    let has_numbers = gpu.driver.version() >= Version::new(12, 0);
    let same = watched.context();
    drop(context);
    let (memory, timeline) = make(&same);
    assert_eq!(has_cleared(), !has_numbers);
    drop((memory, timeline));
    let expected = if has_numbers { 2 } else { 3 };
    assert_eq!(allocations().unwrap_or(expected), expected);
    // Another context has none of it, whatever its handle is.
    for _ in 0..2 {
        let apart = Other::new(&gpu);
        let (_memory, timeline) = make(&apart);
        assert_eq!(driver_bytes(&timeline).1, 1);
    }
}

/// A context of this process that fails ends the waits here, and not those of the maker.
#[test]
fn an_openers_failed_context_ends_its_waits() {
    common::own_process!();
    let Some(gpu) = gpu() else { return };
    let Some(soft) = gpu.soft() else {
        return common::not_run(
            "a context that fails is the software driver's; on a GPU it would be everybody's",
        );
    };
    let (mut peer, opened) = peer(&gpu);
    peer.step("hold");
    let pending = opened.point(peer.number("signal")).expect("a point");
    let code = CUresult::CUDA_ERROR_ILLEGAL_ADDRESS;
    soft.fail_contexts(code);
    assert_eq!(error(pending.wait_timeout(PATIENCE)).code(), Some(code));
    assert_eq!(pending.query().map_err(|error| error.code()), Err(Some(code)));
    drop(opened);
    peer.end();
}
