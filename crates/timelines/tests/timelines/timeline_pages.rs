//! The memory of timelines, and the contexts that it is registered in.

use crate::common;

use std::future::IntoFuture;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Poll, Wake, Waker};
use std::time::Duration;

use common::counting::{Watched, calls, counted_context, counting};
use common::futures::{PATIENCE, wait_until};
use common::hooked::{Hooked, hook_in};
use common::timelines::{WAIT, WRITE, gpu, idle, poll, reached, timeline};
use common::{Gpu, Latch, Other, TestDriver};
use cuda_events::capture::CaptureMode;
use cuda_events::sys::{CU_MEMHOSTREGISTER_DEVICEMAP, CU_MEMHOSTREGISTER_PORTABLE, Function};
use cuda_events::{Context, Device, Progress, Stream, StreamOptions};
use cuda_soft_driver::SoftDriver;
use cuda_timelines::{CudaStreamExt, Error, HostTimeline, Point, Timeline};

/// Dropping it does not wait: not for its stream, and not for one that waits for it.
#[test]
fn a_timeline_is_dropped_under_waiting_streams() {
    let Some(gpu) = gpu() else { return };
    let waiting = timeline(&gpu);
    let timeline = timeline(&gpu);
    let latch = Latch::hold(timeline.stream());
    let point = timeline.signal().expect("a signal");
    waiting.stream().wait_point(point).expect("a wait");
    let end = waiting.signal().expect("a signal");
    drop(timeline);
    assert!(!point.is_done() && !end.is_done(), "it did not wait");
    assert_eq!(point.query(), Ok(Progress::Pending));
    latch.release();
    reached(point);
    reached(end);
}

/// How many pages were registered.
fn registers(made: &[Function]) -> usize {
    made.iter().filter(|function| **function == Function::cuMemHostRegister_v2).count()
}

/// Streams of all contexts and devices may wait for a line.
#[test]
fn pages_are_registered_for_all_contexts() {
    common::own_process!();
    let Some(gpu) = gpu() else { return };
    let flags = Arc::new(AtomicU64::new(0));
    let seen = Arc::clone(&flags);
    let driver = gpu.driver.observe(move |call| {
        if call.function == Function::cuMemHostRegister_v2 {
            seen.store(call.arguments[2], Ordering::SeqCst);
        }
    });
    let context = Device::new(driver.expect("there is room"), 0).and_then(Context::primary);
    drop(HostTimeline::new(&context.expect("a context")).expect("a timeline"));
    let expected = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP;
    assert_eq!(flags.load(Ordering::SeqCst), u64::from(expected));
}

/// One page of memory serves all timelines that come one after the other, and 64 at once.
#[test]
fn lines_are_used_again_and_registered_once() {
    let Some(gpu) = gpu() else { return };
    let context = counted_context(gpu.driver);
    let stream = Arc::new(Stream::new(&context, StreamOptions::new()).expect("a stream"));
    let (points, made) = calls(|| {
        let mut points = Vec::new();
        for _ in 0..500 {
            let timeline = Timeline::new(Arc::clone(&stream)).expect("a timeline");
            let point = timeline.signal().expect("a signal");
            point.wait().expect("it comes");
            points.push(point);
        }
        points
    });
    assert!(registers(&made) <= 2, "{}", registers(&made));
    assert!(points.iter().all(Point::is_done), "forever");
    let (all, made) = calls(|| {
        (0..640).map(|_| HostTimeline::new(&context).expect("a timeline")).collect::<Vec<_>>()
    });
    let count = registers(&made);
    assert!((9..=11).contains(&count), "{count} pages for 640 timelines");
    drop(all);
    let (all, made) = calls(|| {
        (0..640).map(|_| HostTimeline::new(&context).expect("a timeline")).collect::<Vec<_>>()
    });
    assert_eq!(registers(&made), 0);
    drop(all);
    assert!(points.iter().all(Point::is_done), "forever");
}

/// However many timelines a process has had, and however they ended, the next one costs what the
/// first ones did.
#[test]
fn old_timelines_cost_new_ones_nothing() {
    const MANY: usize = 1280;
    const PAGE: usize = 64;
    // A card's stream holds about a thousand operations; the next call waits for room, with the
    // context's lock.
    const HELD: usize = 128;
    let Some(gpu) = gpu() else { return };
    let context = counted_context(gpu.driver);
    let stream = || Stream::new(&context, StreamOptions::new()).expect("a stream");
    let (waiting, held, stream) = (stream(), Arc::new(stream()), Arc::new(stream()));
    let new = |stream: &Arc<Stream>| Timeline::new(Arc::clone(stream)).expect("a timeline");
    let host = || HostTimeline::new(&context).expect("a timeline");
    // With streams that wait ahead, and no signal pending.
    let ((), made) = calls(|| {
        for _ in 0..MANY {
            let (timeline, host) = (new(&stream), host());
            for value in [1, 9, 4] {
                timeline.wait_ahead(&waiting, timeline.completed() + value).expect("a wait");
                host.wait_ahead(&waiting, host.completed() + value).expect("a wait");
            }
        }
        idle(&waiting);
    });
    assert!(registers(&made) <= 2, "{}", registers(&made));
    assert!(!made.contains(&WRITE), "the host releases them");
    // With a signal that is pending: as many lines as there are timelines, and not one more.
    let latch = Latch::hold(&held);
    for (batch, most) in [(0, HELD / PAGE + 2), (1, HELD / PAGE + 1), (2, HELD / PAGE + 1)] {
        let ((), made) = calls(|| (0..HELD).for_each(|_| drop(new(&held).signal())));
        assert!(registers(&made) <= most, "{batch}: {}", registers(&made));
    }
    latch.release();
    idle(&held);
    let (all, made) = calls(|| (0..3 * HELD).map(|_| host()).collect::<Vec<_>>());
    assert_eq!(registers(&made), 0, "all of them serve again");
    drop(all);
    // Poisoned with a signal that is pending: these lines serve nobody.
    let latch = Latch::hold(&held);
    for batch in 0..2 {
        let ((), made) = calls(|| {
            for _ in 0..HELD {
                let timeline = new(&held);
                timeline.signal().expect("a signal");
                timeline.poison().expect("a write");
            }
        });
        assert!(registers(&made) <= HELD / PAGE + 1, "{batch}: {}", registers(&made));
    }
    latch.release();
    idle(&held);
}

/// A line goes to nobody else while a stream has still to write it: the write would put the next
/// one's value back.
#[test]
fn a_line_rests_while_a_signal_is_pending() {
    let Some(gpu) = gpu() else { return };
    let stream = Arc::new(gpu.stream());
    let other = Arc::new(gpu.stream());
    // Fill up what is free, so that a wrong choice is the only one but a new page.
    let mut all: Vec<_> =
        (0..64).map(|_| HostTimeline::new(&gpu.context).expect("a timeline")).collect();
    let latch = Latch::hold(&stream);
    let old = Timeline::new(Arc::clone(&stream)).expect("a timeline");
    let pending = old.signal().expect("a signal");
    drop(old);
    let new: Vec<_> =
        (0..64).map(|_| Timeline::new(Arc::clone(&other)).expect("a timeline")).collect();
    let last: Vec<_> = new
        .iter()
        .map(|timeline| {
            for _ in 0..3 {
                timeline.signal().expect("a signal");
            }
            timeline.signal().expect("a signal")
        })
        .collect();
    idle(&other);
    assert!(last.iter().all(Point::is_done));
    let before: Vec<_> = new.iter().map(Timeline::completed).collect();
    latch.release();
    idle(&stream);
    assert!(pending.is_done());
    assert!(new.iter().map(Timeline::completed).eq(before), "nobody else wrote them");
    assert!(last.iter().all(Point::is_done));
    all.clear();
}

/// Holds the thread that wakes it, until it is let go.
#[derive(Default)]
struct Held {
    entered: AtomicBool,
    released: AtomicBool,
}

impl Wake for Held {
    fn wake(self: Arc<Self>) {
        self.entered.store(true, Ordering::SeqCst);
        wait_until("it is let go", || self.released.load(Ordering::SeqCst));
    }
}

/// A line goes to nobody else before the streams are released that wait ahead for it, even if its
/// last signal has happened.
#[test]
fn a_line_rests_until_its_waits_are_released() {
    common::own_process!();
    let Some(gpu) = gpu() else { return };
    let context = counted_context(gpu.driver);
    let stream = || Stream::new(&context, StreamOptions::new()).expect("a stream");
    let (waiter, own) = (stream(), Arc::new(stream()));
    let (held, blocker) = (Arc::new(Held::default()), Timeline::new(stream()));
    let blocker = blocker.expect("a timeline");
    let old = Timeline::new(Arc::clone(&own)).expect("a timeline");
    let rest: Vec<_> = (0..62).map(|_| HostTimeline::new(&context).expect("a timeline")).collect();
    let first = Latch::hold(blocker.stream());
    let mut future = blocker.signal().expect("a signal").into_future();
    assert_eq!(poll(&mut future, &Waker::from(Arc::clone(&held))), Poll::Pending);
    let second = Latch::hold(&own);
    let last = old.signal().expect("a signal");
    old.wait_ahead(&waiter, last.value() + 1).expect("a wait");
    first.release();
    wait_until("the thread is held", || held.entered.load(Ordering::SeqCst));
    drop(old);
    second.release();
    idle(&own);
    assert!(last.is_done());
    let (next, made) = calls(|| HostTimeline::new(&context));
    held.released.store(true, Ordering::SeqCst);
    assert_eq!(registers(&made), 1, "no line was free: {made:?}");
    idle(&waiter);
    drop((next, rest, future));
}

/// A timeline on a line that others have had is as a new one: a first wait that is short makes no
/// driver call.
#[test]
fn the_first_short_wait_of_each_timeline_makes_no_call() {
    const ASK: Duration = Duration::from_millis(5);
    common::own_process!();
    let Some(gpu) = gpu() else { return };
    let context = counted_context(gpu.driver);
    let stream = Arc::new(Stream::new(&context, StreamOptions::new()).expect("a stream"));
    for round in 0..2 {
        let latch = Latch::hold(&stream);
        let new = || Timeline::new(Arc::clone(&stream)).expect("a timeline");
        let (all, made) = calls(|| (0..64).map(|_| new()).collect::<Vec<_>>());
        assert_eq!(registers(&made), 1 - round, "the same lines serve twice");
        for timeline in &all {
            let point = timeline.signal().expect("a signal");
            let (seen, made) = calls(|| point.wait_timeout(Duration::ZERO));
            assert_eq!((seen, made), (Ok(Progress::Pending), vec![]), "{round}");
        }
        latch.release();
        idle(&stream);
        // From now on a question about the old timelines would be due.
        std::thread::sleep(2 * ASK);
    }
}

/// The drop of a timeline, of whatever kind, gives back the shares of a wait that is over.
#[test]
fn each_drop_gives_back_the_shares_of_waits_between_contexts() {
    common::own_process!();
    let Some(gpu) = gpu() else { return };
    let driver = counting(gpu.driver);
    let context = Device::new(driver, 0).and_then(Context::primary).expect("a context");
    let other = Other::new(&gpu);
    // SAFETY: it lives until the end of the test.
    let theirs = unsafe { Context::from_raw(driver, other.as_raw()) }.expect("a context");
    let there = Stream::new(&theirs, StreamOptions::new()).expect("a stream");
    for of_host in [false, true] {
        let own = Stream::new(&context, StreamOptions::new()).expect("a stream");
        let timeline = Timeline::new(own).expect("a timeline");
        let host = HostTimeline::new(&context).expect("a timeline");
        let latch = Latch::hold(timeline.stream());
        there.wait_point(timeline.signal().expect("a signal")).expect("a wait");
        latch.release();
        idle(&there);
        let ((), made) = if of_host { calls(|| drop(host)) } else { calls(|| drop(timeline)) };
        // The one that was recorded after the wait.
        assert!(made.contains(&Function::cuEventDestroy_v2), "{of_host}: {made:?}");
    }
}

/// While another thread asks whether a wait is over, the drop of a timeline waits for that thread:
/// the owner of a context may destroy it after the last drop.
#[test]
fn a_drop_waits_for_another_threads_question() {
    common::own_process!();
    if gpu().is_none() {
        return;
    }
    let hooked = Hooked::new();
    let driver = hooked.context.driver();
    let other = Other::new(&hooked.gpu);
    // SAFETY: it lives until the end of the test.
    let theirs = unsafe { Context::from_raw(driver, other.as_raw()) }.expect("a context");
    let there = Stream::new(&theirs, StreamOptions::new()).expect("a stream");
    let own = Stream::new(&hooked.context, StreamOptions::new()).expect("a stream");
    let timeline = Timeline::new(own).expect("a timeline");
    let latch = Latch::hold(timeline.stream());
    there.wait_point(timeline.signal().expect("a signal")).expect("a wait");
    latch.release();
    idle(&there);
    let [first, second] = [(); 2].map(|()| HostTimeline::new(&hooked.context).expect("a timeline"));
    let (asks, asked) = std::sync::mpsc::channel();
    let (dropped, overtaken) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (seen, early) = (Arc::clone(&dropped), Arc::clone(&overtaken));
    hook_in(move |function, _, answer| {
        let first = std::thread::current().name() == Some("first");
        if first && function == Function::cuEventQuery && answer.is_none() {
            let _ = asks.send(());
            // The second drop returns at once, unless it waits for this one.
            for _ in 0..20 {
                std::thread::sleep(Duration::from_millis(1));
            }
            early.store(seen.load(Ordering::SeqCst), Ordering::SeqCst);
        }
        None
    });
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name(String::from("first"));
        thread.spawn_scoped(scope, || drop(first)).expect("a thread");
        asked.recv_timeout(PATIENCE).expect("the first drop asks");
        drop(second);
        dropped.store(true, Ordering::SeqCst);
    });
    assert!(!overtaken.load(Ordering::SeqCst), "the first drop still uses the event");
}

/// A page outlives its context, and serves the next one.
#[test]
fn pages_go_on_to_the_next_context() {
    let Some(gpu) = gpu() else { return };
    let mut points = Vec::new();
    for _ in 0..3 {
        let other = Other::new(&gpu);
        let stream = Stream::new(&other, StreamOptions::new()).expect("a stream");
        let timeline = Timeline::new(stream).expect("a timeline");
        let point = timeline.signal().expect("a signal");
        reached(point);
        points.push(point);
    }
    assert!(points.iter().all(Point::is_done));
}

/// A stream of another context waits. Until it has passed the wait, the timeline's context stays.
#[test]
fn streams_of_another_context_wait_too() {
    let Some(gpu) = gpu() else { return };
    let other = Other::new(&gpu);
    let there = Stream::new(&other, StreamOptions::new()).expect("a stream");
    let timeline = timeline(&gpu);
    let latch = Latch::hold(timeline.stream());
    let point = timeline.signal().expect("a signal");
    there.wait_point(point).expect("a wait");
    assert_eq!(there.query(), Ok(Progress::Pending));
    latch.release();
    idle(&there);
    // The other way round, and over the end of the timeline.
    let theirs = Timeline::new(Stream::new(&other, StreamOptions::new()).expect("a stream"));
    let theirs = theirs.expect("a timeline");
    let point = {
        let latch = Latch::hold(theirs.stream());
        let point = theirs.signal().expect("a signal");
        timeline.stream().wait_point(point).expect("a wait");
        latch.release();
        point
    };
    reached(point);
    // In a capture only waits for points of the same context.
    let latch = Latch::hold(timeline.stream());
    let pending = timeline.signal().expect("a signal");
    let capture = common::begin_capture(&there, CaptureMode::Relaxed).expect("a capture");
    assert_eq!(there.wait_point(pending), Err(Error::TimelineInCapture { function: WAIT }));
    capture.end().expect("it goes on");
    drop(latch);
    idle(timeline.stream());
    drop((there, theirs, timeline));
    // A new timeline gives back the shares of those before it.
    drop(HostTimeline::new(&gpu.context));
}

/// The context stays until the other one's stream has passed its wait, and no longer.
#[test]
fn a_wait_between_contexts_holds_the_timelines() {
    let Some(gpu) = gpu() else { return };
    let other = Other::new(&gpu);
    let watched = Watched::new(gpu.driver);
    let released = |made: &[Function]| made.contains(&Function::cuDevicePrimaryCtxRelease_v2);
    let context = Device::new(watched.driver, 0).and_then(Context::primary).expect("a context");
    // SAFETY: it is the other's, which lives until the end of the test.
    let there = unsafe { Context::from_raw(watched.driver, other.as_raw()) }.expect("a context");
    let there = Stream::new(&there, StreamOptions::new()).expect("a stream");
    let timeline = Timeline::new(Stream::new(&context, StreamOptions::new()).expect("a stream"));
    let timeline = timeline.expect("a timeline");
    // A latch would hold up the other one, too.
    let behind = HostTimeline::new(there.context()).expect("a timeline");
    behind.wait_ahead(&there, behind.completed() + 1).expect("a wait");
    let latch = Latch::hold(timeline.stream());
    let point = timeline.signal().expect("a signal");
    there.wait_point(point).expect("a wait");
    latch.release();
    reached(point);
    drop((timeline, context));
    assert!(!released(&watched.made()), "the other stream has not come to its wait");
    behind.signal().expect("a signal");
    idle(&there);
    drop(behind);
    // By a thread of its own, so that the drop of another timeline is not held up.
    let seen = std::cell::RefCell::new(Vec::new());
    wait_until("nothing is left to wait for", || {
        seen.borrow_mut().extend(watched.made());
        released(&seen.borrow())
    });
}

/// A wait between two devices was the last that held the one's context, in which work goes on.
/// The drop of a timeline of the other one finds it over, and is not blocked by the end of a
/// context with which it has nothing to do.
#[test]
fn the_end_of_another_context_blocks_nobody() {
    let gpu = common::Gpu::new();
    let soft = (TestDriver::chosen() == TestDriver::Soft)
        .then(|| SoftDriver::builder().devices(2).build());
    let driver = soft.as_ref().map_or(gpu.driver, SoftDriver::driver);
    let Ok(second) = Device::new(driver, 1) else {
        return common::not_run("this machine has one device");
    };
    let mine = Device::new(driver, 0).and_then(Context::primary).expect("a context");
    let theirs = Context::primary(second).expect("a context");
    let stream = |context| Stream::new(context, StreamOptions::new()).expect("a stream");
    let waiting = stream(&mine);
    let unrelated = HostTimeline::new(&mine).expect("a timeline");
    let timeline = Timeline::new(stream(&theirs)).expect("a timeline");
    let latch = Latch::hold(timeline.stream());
    let point = timeline.signal().expect("a signal");
    let rest = Latch::hold(timeline.stream());
    waiting.wait_point(point).expect("a wait");
    drop((timeline, theirs));
    latch.release();
    idle(&waiting);
    std::thread::scope(|scope| {
        // Let go also where this fails.
        let rest = rest;
        let dropping = scope.spawn(|| drop(unrelated));
        wait_until("the drop returns", || dropping.is_finished());
        rest.release();
    });
    if let Some(soft) = &soft {
        wait_until("the context ends", || soft.live().retains == 1);
    }
}

/// Nobody holds the context any more, so nobody can query the driver: waits return that error, and
/// `is_done` still works.
#[test]
fn a_point_without_a_context_is_not_waited_for() {
    let Some(gpu) = gpu() else { return };
    let other = Other::new(&gpu);
    // SAFETY: it lives until the end of the test.
    let named = unsafe { Context::from_raw(gpu.driver, other.as_raw()) }.expect("a context");
    let timeline = Timeline::new(Stream::new(&named, StreamOptions::new()).expect("a stream"));
    let timeline = timeline.expect("a timeline");
    let latch = Latch::hold(timeline.stream());
    let point = timeline.signal().expect("a signal");
    drop((timeline, named));
    assert_eq!(point.query(), Err(Error::ContextDropped));
    assert_eq!(point.wait(), Err(Error::ContextDropped));
    assert_eq!(
        poll(&mut point.into_future(), Waker::noop()),
        Poll::Ready(Err(Error::ContextDropped))
    );
    assert_eq!(gpu.stream().wait_point(point), Err(Error::ContextDropped));
    latch.release();
    wait_until("the signal comes", || point.is_done());
    assert_eq!((point.query(), point.wait()), (Ok(Progress::Done), Ok(())));
}

/// A page of timelines that a green context registered is the primary context's, and serves the
/// next green context. None is left behind.
#[test]
fn timelines_of_green_contexts_share_pages() {
    let Some(gpu) = Gpu::with(Function::cuGreenCtxCreate) else { return };
    let watched = Watched::new(gpu.driver);
    let device = watched.context().device();
    let split = device.sm_resource().and_then(|all| all.split_by_count(1, 16)).expect("a part");
    let mut registered = Vec::new();
    for _ in 0..12 {
        // SAFETY: the context is used from this thread alone.
        let context = unsafe { Context::green(device, &[&split.groups[0]]) }.expect("a context");
        watched.made();
        let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
        let timeline = Timeline::new(stream).expect("a timeline");
        registered.push(registers(&watched.made()));
        timeline.signal().and_then(|point| point.wait()).expect("it comes");
    }
    // A later context finds that the page is registered already, and is not refused another one.
    assert!(registered.iter().skip(1).all(|count| *count <= 1), "{registered:?}");
}
