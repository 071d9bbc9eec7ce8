//! The streams of an importer that follow: how far, and beside captures.

use crate::common;

use std::future::IntoFuture;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, OnceLock};
use std::task::{Poll, Waker};

use common::Latch;
use common::counting::{Watched, counted_context, fail_next};
use common::futures::{Unpark, wait_until};
use common::timelines::{PATIENCE, WAIT, WRITE, error, idle, poll, reached};
use cuda_events::capture::{CaptureMode, CaptureStatus};
use cuda_events::ipc::ExporterState;
use cuda_events::sys::{CUresult, CUstreamCaptureMode, Function};
use cuda_events::{Context, Device, Progress, Stream, StreamOptions};
use cuda_soft_driver::{Fault, abi};
use cuda_timelines::{
    CudaStreamExt, Error, ImportedTimeline, Point, Result, Timeline, TimelineMemory,
};

use super::{COPY, RECORD, gpu, open, peer, start};

/// How many values the follower is given at once; `ImportedTimeline::point` documents it.
const MOST: u64 = 256;

/// A follower that has as much as it may have keeps `point` waiting before the driver does. Each
/// value that comes makes room for one, and the maker's end lets everybody go.
#[test]
fn points_wait_while_a_follower_is_full() {
    // The driver's calls are counted.
    common::own_process!("order=off");
    let Some(gpu) = gpu() else { return };
    let watched = Watched::new(gpu.driver);
    let context = watched.context();
    let seen = AtomicU64::new(0);
    let waits = || {
        let more = watched.made().iter().filter(|made| **made == WAIT).count() as u64;
        seen.fetch_add(more, Ordering::Relaxed) + more
    };
    let mut peer = start();
    let opened = open(&context, &peer.make_in_memory()).expect("it can be opened");
    let first = peer.number("signal");
    reached(opened.point(first).expect("a point"));
    let before = waits();
    let points: Vec<Result<Point>> = std::thread::scope(|scope| {
        let value = |at| first + 1 + at;
        let values = value(0)..value(MOST + 40);
        let asking = scope.spawn(|| values.map(|value| opened.point(value)).collect());
        wait_until("the follower is full", || waits() - before == MOST);
        // Who asks for what was asked for waits for nobody.
        let nearest = opened.point(value(0)).expect("a point");
        assert_eq!(nearest.query(), Ok(Progress::Pending));
        assert_eq!(peer.number("signal"), value(0));
        reached(nearest);
        wait_until("there is room for one", || waits() - before == MOST + 1);
        assert_eq!(peer.number("signal"), value(1));
        wait_until("there is room for two", || waits() - before == MOST + 2);
        assert_eq!(opened.exporter_state(), ExporterState::Running);
        peer.child.kill();
        asking.join().expect("no panic")
    });
    assert_eq!(waits() - before, MOST + 2, "the driver gets no more");
    for (at, point) in points.into_iter().enumerate() {
        let end = point.and_then(|point| point.wait_timeout(PATIENCE));
        let expected = if at < 2 { Ok(Progress::Done) } else { Err(Error::ExporterGone) };
        assert_eq!(end, expected, "{at}");
    }
    drop(opened);
}

/// The driver does not return from the call of one point: nobody else waits for that. Futures of
/// other timelines are woken, and the maker's end is noticed and frees everyone.
#[test]
fn a_point_that_the_driver_holds_holds_nobody() {
    rescued!();
    let Some(gpu) = gpu() else { return };
    let Some(soft) = gpu.soft() else {
        return common::not_run("only the software driver can be made to hold a call");
    };
    let (mut peer, opened) = peer(&gpu);
    let (mut other, second) = self::peer(&gpu);
    let pending = opened.point(peer.number("signal") + 1).expect("a point");
    let never = second.point(other.number("signal") + 1).expect("a point");
    let (stream, theirs) = (gpu.stream(), gpu.stream());
    stream.wait_point(pending).expect("a wait");
    theirs.wait_point(never).expect("a wait");
    let own = common::timelines::timeline(&gpu);
    let latch = Latch::hold(own.stream());
    let unpark = Unpark::new();
    let mut future = own.signal().expect("a signal").into_future();
    assert_eq!(poll(&mut future, &Waker::from(Arc::clone(&unpark))), Poll::Pending);
    let fault = Fault::on("cuStreamWaitValue64_v2").block();
    soft.inject(fault.in_thread("holds").once());
    std::thread::scope(|scope| {
        let ask = || opened.point(pending.value() + 1);
        let holds = std::thread::Builder::new().name("holds".into()).spawn_scoped(scope, ask);
        let holds = holds.expect("a thread");
        wait_until("the driver holds it", || soft.blocked() == 1);
        latch.release();
        wait_until("the future is woken", || unpark.woken() == 1);
        // A maker whose end nobody can see, and one that is seen.
        assert_eq!(second.exporter_ended(), Ok(()));
        assert_eq!(never.query(), Err(Error::ExporterGone));
        idle(&theirs);
        peer.child.kill();
        assert_eq!(error(pending.wait_timeout(PATIENCE)), Error::ExporterGone);
        idle(&stream);
        assert_eq!(opened.exporter_ended(), Ok(()));
        assert_eq!(opened.point(pending.value() + 2).map(drop), Err(Error::ExporterGone));
        assert_eq!(soft.blocked(), 1);
        assert_eq!(soft.release(), 1);
        let held = holds.join().expect("no panic").and_then(|point| point.query());
        assert_eq!(held, Err(Error::ExporterGone));
    });
    other.child.kill();
    drop((opened, second, stream, theirs, own, future));
    wait_until("all is given back", || soft.live().streams == 0);
}

/// An observer may ask for a point in the very call that another one makes.
#[test]
fn an_observer_may_ask_for_a_point() {
    let Some(gpu) = gpu() else { return };
    let opened = Arc::new(OnceLock::<Arc<ImportedTimeline>>::new());
    let (asked, asks) = channel();
    let driver = gpu.driver.observe({
        let opened = Arc::clone(&opened);
        move |call| {
            if let (WAIT, Some(opened)) = (call.function, opened.get()) {
                let _ = asked.send(opened.point(call.arguments[2] + 1));
            }
        }
    });
    let driver = driver.expect("there is room");
    let context = Device::new(driver, 0).and_then(Context::primary).expect("a context");
    let mut peer = start();
    let own = Arc::new(open(&context, &peer.make_in_memory()).expect("it can be opened"));
    opened.set(Arc::clone(&own)).expect("it is set once");
    let value = peer.number("signal") + 1;
    let asking = std::thread::spawn({
        let own = Arc::clone(&own);
        move || own.point(value)
    });
    wait_until("the point returns", || asking.is_finished());
    let first = asking.join().expect("no panic").expect("a point");
    let second = asks.try_recv().expect("the observer has run").expect("a point");
    assert_eq!([first, second].map(|point| point.value()), [value, value + 1]);
    for point in [first, second] {
        assert_eq!(point.query(), Ok(Progress::Pending));
        assert_eq!(peer.number("signal"), point.value());
        reached(point);
    }
    assert!(driver.stop_observing());
    drop((opened, own));
    peer.end();
}

/// Nothing about device memory harms a capture of whichever thread in whichever mode: neither what
/// this thread does, nor what the crate's threads do for what was dropped.
#[test]
fn captures_go_on_beside_device_memory() {
    // Closed memory is counted, and a maker is killed.
    common::own_process!("order=off");
    let Some(gpu) = gpu() else { return };
    let watched = Watched::new(gpu.driver);
    let context = watched.context();
    // Both of its streams, one after the other: the second would count for the next one.
    let destroyed = AtomicUsize::new(0);
    let closed = || {
        let made = watched.made().into_iter();
        let now = made.filter(|made| *made == Function::cuStreamDestroy_v2).count();
        destroyed.fetch_add(now, Ordering::Relaxed) + now == 2
    };
    let close = |opened| {
        watched.made();
        destroyed.store(0, Ordering::Relaxed);
        drop::<ImportedTimeline>(opened);
    };
    // What harms a capture of another mode harms one of these.
    for (mode, other_thread) in
        [(CaptureMode::Global, false), (CaptureMode::Global, true), (CaptureMode::Relaxed, false)]
    {
        let beside = |name: &str, work: &(dyn Fn() + Sync)| {
            let stream = gpu.stream();
            let capture = common::begin_capture(&stream, mode).expect("a capture");
            if other_thread {
                std::thread::scope(|scope| scope.spawn(work).join().expect("no panic"));
            } else {
                work();
            }
            let status = stream.capture_status();
            assert_eq!(status, Ok(CaptureStatus::Active), "{name} {mode:?} {other_thread}");
            capture.end().expect("a graph");
        };
        let in_memory = || {
            let memory = TimelineMemory::new(&context).expect("memory");
            let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
            let timeline = Timeline::in_memory(stream, &memory).expect("a timeline");
            reached(timeline.signal().expect("a signal"));
            timeline
        };
        beside("memory without signals", &|| drop(TimelineMemory::new(&context)));
        beside("memory", &|| drop(in_memory()));
        beside("an opened timeline", &|| {
            let mut peer = start();
            let opened = open(&context, &peer.make_in_memory()).expect("it can be opened");
            reached(opened.point(peer.number("signal")).expect("a point"));
            close(opened);
            // The host may see the value before the stream is done with its copy.
            wait_until("the streams are destroyed", closed);
            peer.end();
        });
        beside("one with a pending point", &|| {
            let mut peer = start();
            let opened = open(&context, &peer.make_in_memory()).expect("it can be opened");
            peer.step("hold");
            let point = opened.point(peer.number("signal")).expect("a point");
            close(opened);
            assert!(!closed() && destroyed.load(Ordering::Relaxed) == 0);
            peer.step("release");
            reached(point);
            wait_until("the thread destroys the streams", closed);
            peer.end();
        });
        // Then only the driver knows whether the stream still waits: the thread asks it.
        if let Some(soft) = gpu.soft() {
            beside("one with a refused copy", &|| {
                let mut peer = start();
                let opened = open(&context, &peer.make_in_memory()).expect("it can be opened");
                peer.step("hold");
                let value = peer.number("signal");
                soft.inject(Fault::on(COPY.name()).once().answer(abi::CUresult(999)));
                assert!(opened.point(value).is_err());
                close(opened);
                wait_until("the thread asks", || watched.made().contains(&Function::cuStreamQuery));
                peer.step("release");
                wait_until("the thread destroys the streams", closed);
                peer.end();
            });
        }
        beside("one of a maker that ends", &|| {
            let mut peer = start();
            let opened = open(&context, &peer.make_in_memory()).expect("it can be opened");
            let point = opened.point(peer.number("signal") + 1).expect("a point");
            peer.child.kill();
            assert_eq!(error(point.wait_timeout(PATIENCE)), Error::ExporterGone);
            assert_eq!(opened.exporter_ended(), Ok(()));
            close(opened);
            wait_until("the streams are destroyed", closed);
        });
    }
}

/// A timeline in memory that is dropped while its stream captures puts nothing into the graph, which
/// each launch would write.
#[test]
fn a_drop_in_a_capture_captures_nothing() {
    common::own_process!();
    let Some(gpu) = gpu() else { return };
    let watched = Watched::new(gpu.driver);
    let symbols = gpu.driver.symbols();
    for by_other_code in [false, true] {
        let stream = Stream::new(&watched.context(), StreamOptions::new()).map(Arc::new);
        let stream = stream.expect("a stream");
        let memory = TimelineMemory::new(stream.context()).expect("memory");
        let timeline = Timeline::in_memory(Arc::clone(&stream), &memory).expect("a timeline");
        timeline.signal().expect("a signal");
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        let ours = if by_other_code {
            // SAFETY: no other thread has the stream.
            let begun = unsafe { (symbols.cuStreamBeginCapture_v2)(stream.as_raw(), mode) };
            common::check(Function::cuStreamBeginCapture_v2, begun);
            None
        } else {
            Some(common::begin_capture(&stream, CaptureMode::Relaxed).expect("a capture"))
        };
        watched.made();
        drop(timeline);
        let made = watched.made();
        let captured = made.iter().filter(|made| [WRITE, RECORD].contains(made)).count();
        assert_eq!(captured, 0, "{by_other_code}: {made:?}");
        drop(memory);
        assert_eq!(watched.made(), []);
        match ours {
            Some(capture) => drop(capture.end().expect("a graph")),
            // SAFETY: a place for the graph, which is destroyed.
            None => unsafe {
                let mut graph = std::ptr::null_mut();
                let ended = (symbols.cuStreamEndCapture)(stream.as_raw(), &mut graph);
                common::check(Function::cuStreamEndCapture, ended);
                common::check(Function::cuGraphDestroy, (symbols.cuGraphDestroy)(graph));
            },
        }
    }
}

/// A wait or a copy that the driver refuses makes no point, and the next one works.
#[test]
fn a_refused_wait_makes_no_point() {
    // The crate's thread uses the counting driver, too.
    common::own_process!();
    let Some(gpu) = gpu() else { return };
    let context = counted_context(gpu.driver);
    let mut peer = start();
    let opened = open(&context, &peer.make_in_memory()).expect("it can be opened");
    peer.step("hold");
    let value = peer.number("signal");
    let code = CUresult::CUDA_ERROR_UNKNOWN;
    for refused in [WAIT, COPY] {
        fail_next(refused, code);
        assert_eq!(opened.point(value).map_err(|error| error.code()), Err(Some(code)));
    }
    let point = opened.point(value).expect("a point");
    assert_eq!(point.query(), Ok(Progress::Pending));
    peer.step("release");
    reached(point);
    // And where the last one was refused.
    peer.step("hold");
    let value = peer.number("signal");
    fail_next(COPY, code);
    assert!(opened.point(value).is_err());
    drop(opened);
    peer.step("release");
    peer.end();
}
