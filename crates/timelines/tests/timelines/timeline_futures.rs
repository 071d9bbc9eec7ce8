//! Points as futures.

use crate::common;

use std::cell::Cell;
use std::future::IntoFuture;
use std::sync::{Arc, Mutex};
use std::task::{Poll, Wake, Waker};
use std::time::{Duration, Instant};

use common::Latch;
use common::counting::Watched;
use common::futures::{Unpark, block_on, wait_until};
use common::hooked::{Calls, Hooked, Made};
use common::timelines::{PATIENCE, gpu, poll, reached, timeline};
use cuda_events::capture::CaptureMode;
use cuda_events::sys::{CUresult, Function};
use cuda_events::{Progress, Stream, StreamOptions};
use cuda_timelines::{HostTimeline, PointCompletion, Timeline};

#[test]
fn a_point_can_be_awaited() {
    let Some(gpu) = gpu() else { return };
    let timeline = timeline(&gpu);
    let latch = Latch::hold(timeline.stream());
    let point = timeline.signal().expect("a signal");
    let mut future = point.into_future();
    assert_eq!(future.point(), point);
    let unpark = Unpark::new();
    let waker = Waker::from(Arc::clone(&unpark));
    for _ in 0..3 {
        assert_eq!(poll(&mut future, &waker), Poll::Pending);
    }
    assert_eq!(unpark.woken(), 0, "nothing is done");
    latch.release();
    assert_eq!(block_on(&mut future), Ok(()));
    assert_eq!(block_on(&mut future), Ok(()), "polling again gives the same");
    assert_eq!(block_on(async { point.await }), Ok(()));
    assert!(format!("{future:?}").starts_with("PointCompletion { point: Point"), "{future:?}");
}

/// The thread looks at the line in each round, and asks the driver now and then only.
#[test]
fn the_thread_asks_every_five_milliseconds() {
    const QUESTIONS: usize = 4;
    common::own_process!();
    let Some(gpu) = gpu() else { return };
    let watched = Watched::new(gpu.driver);
    let stream = Stream::new(&watched.context(), StreamOptions::new()).expect("a stream");
    let timeline = Timeline::new(stream).expect("a timeline");
    let latch = Latch::hold(timeline.stream());
    let mut future = timeline.signal().expect("a signal").into_future();
    assert_eq!(poll(&mut future, Waker::noop()), Poll::Pending);
    let (started, asked) = (Instant::now(), Cell::new(0));
    wait_until("it asks", || {
        let made = watched.made();
        let questions = made.iter().filter(|made| **made == Function::cuEventQuery);
        asked.set(asked.get() + questions.count());
        asked.get() >= QUESTIONS
    });
    let asked = asked.get();
    // The first may come at once.
    let least = Duration::from_millis(5) * (asked as u32 - 1);
    assert!(started.elapsed() >= least, "{asked} in {:?}", started.elapsed());
    latch.release();
    assert_eq!(block_on(future), Ok(()));
}

/// What a waker has is dropped with nothing locked: another future of the timeline, for example.
#[test]
fn a_waker_may_have_another_future() {
    struct Keeps(Mutex<PointCompletion>);
    impl Wake for Keeps {
        fn wake(self: Arc<Self>) {
            let _ = poll(&mut self.0.lock().expect("no panic"), Waker::noop());
        }
    }
    let Some(gpu) = gpu() else { return };
    let timeline = timeline(&gpu);
    let latch = Latch::hold(timeline.stream());
    let point = timeline.signal().expect("a signal");
    let (mut first, mut second) = (point.into_future(), point.into_future());
    assert_eq!(poll(&mut second, Waker::noop()), Poll::Pending);
    let waker = Waker::from(Arc::new(Keeps(Mutex::new(second))));
    assert_eq!(poll(&mut first, &waker), Poll::Pending);
    drop(waker);
    let (send, dropped) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        drop(first);
        send.send(())
    });
    dropped.recv_timeout(PATIENCE).expect("the drop waits for itself");
    latch.release();
    reached(point);
}

/// Those of one timeline are woken by one look: the ones whose points are reached, and no others.
#[test]
fn of_thousands_the_reached_are_woken() {
    const TIMELINES: usize = 8;
    const EACH: usize = 250;
    let Some(gpu) = gpu() else { return };
    let timelines: Vec<_> = (0..TIMELINES).map(|_| timeline(&gpu)).collect();
    let mut held = Vec::new();
    let mut waiting = Vec::new();
    for timeline in &timelines {
        let early = Latch::hold(timeline.stream());
        let first: Vec<_> = (0..EACH).map(|_| timeline.signal().expect("a signal")).collect();
        let late = Latch::hold(timeline.stream());
        let second: Vec<_> = (0..EACH).map(|_| timeline.signal().expect("a signal")).collect();
        held.push((early, late));
        waiting.push([first, second]);
    }
    let counts = [Unpark::new(), Unpark::new(), Unpark::new()];
    let [first, second, gone] = counts.each_ref().map(|count| Waker::from(Arc::clone(count)));
    let mut futures = Vec::new();
    for points in waiting.iter().rev() {
        for (points, waker) in points.iter().zip([&first, &second]) {
            // The futures of later points are polled first.
            for (number, point) in points.iter().enumerate().rev() {
                let mut future = point.into_future();
                let dropped = number % 5 == 0;
                assert_eq!(poll(&mut future, if dropped { &gone } else { waker }), Poll::Pending);
                if !dropped {
                    futures.push(future);
                }
            }
        }
    }
    let (early, late): (Vec<_>, Vec<_>) = held.into_iter().unzip();
    early.into_iter().for_each(Latch::release);
    let expected = TIMELINES * EACH * 4 / 5;
    wait_until("the first half is woken", || counts[0].woken() == expected);
    assert_eq!(counts[1].woken(), 0, "the second half is not reached");
    late.into_iter().for_each(Latch::release);
    wait_until("the second half is woken", || counts[1].woken() == expected);
    assert!(futures.iter_mut().all(|future| poll(future, Waker::noop()) == Poll::Ready(Ok(()))));
    assert_eq!((counts[0].woken(), counts[1].woken()), (expected, expected), "once each");
    assert_eq!(counts[2].woken(), 0, "dropped ones are not woken");
}

/// Several futures wait for one point: each is woken, once.
#[test]
fn all_futures_of_one_point_are_woken() {
    let Some(gpu) = gpu() else { return };
    let timeline = timeline(&gpu);
    let latch = Latch::hold(timeline.stream());
    let point = timeline.signal().expect("a signal");
    let counts = [Unpark::new(), Unpark::new(), Unpark::new()];
    let mut futures = counts.each_ref().map(|count| {
        let mut future = point.into_future();
        assert_eq!(poll(&mut future, &Waker::from(Arc::clone(count))), Poll::Pending);
        future
    });
    latch.release();
    wait_until("all are woken", || counts.iter().all(|count| count.woken() == 1));
    let done = |future| poll(future, Waker::noop()) == Poll::Ready(Ok(()));
    assert!(futures.iter_mut().all(done));
}

/// Futures alone wait for a context that fails: the thread asks the driver about it, once for all
/// its timelines, and goes on asking.
#[test]
fn futures_alone_notice_a_failed_context() {
    common::own_process!();
    let hooked = Hooked::new();
    let gpu = &hooked.gpu;
    let Some(soft) = gpu.soft() else {
        return common::not_run(
            "a context that fails is the software driver's; on a GPU it would be everybody's",
        );
    };
    let calls = Calls::new();
    // By the driver with the hook.
    let stream = || Stream::new(&hooked.context, StreamOptions::new()).expect("a stream");
    let timelines = [stream(), stream()].map(|stream| Timeline::new(stream).expect("a timeline"));
    let latches = timelines.each_ref().map(|timeline| Latch::hold(timeline.stream()));
    let counts = [Unpark::new(), Unpark::new()];
    let mut futures = Vec::new();
    for (timeline, count) in timelines.iter().zip(&counts) {
        let mut future = timeline.signal().expect("a signal").into_future();
        assert_eq!(poll(&mut future, &Waker::from(Arc::clone(count))), Poll::Pending);
        futures.push(future);
    }
    let asked = || {
        let state = calls.lock();
        let by_the_thread =
            |made: &&Made| made.by_the_poller && made.function == Function::cuEventQuery;
        state.made.iter().filter(by_the_thread).map(|made| made.argument).collect::<Vec<_>>()
    };
    // By then both have been there for some rounds.
    let before = asked().len();
    wait_until("it asks", || asked().len() >= before + 5);
    let events: std::collections::BTreeSet<_> = asked().split_off(before + 2).into_iter().collect();
    assert_eq!(events.len(), 1, "one question a round and context");
    let code = CUresult::CUDA_ERROR_ILLEGAL_ADDRESS;
    soft.fail_contexts(code);
    wait_until("both are woken", || counts.iter().all(|count| count.woken() == 1));
    for future in &mut futures {
        let polled = poll(future, Waker::noop());
        assert!(matches!(&polled, Poll::Ready(Err(error)) if error.code() == Some(code)));
    }
    drop(latches);
}

/// The thread sleeps while nothing is pending: where all were woken, and where they were dropped.
#[cfg(target_os = "linux")]
#[test]
fn the_thread_sleeps_when_nothing_is_pending() {
    common::own_process!();
    let Some(gpu) = gpu() else { return };
    let timeline = timeline(&gpu);
    // How often it has gone to sleep.
    let sleeps = || {
        let tasks = std::fs::read_dir("/proc/self/task").expect("this process").flatten();
        let named = |path: &std::path::PathBuf| {
            std::fs::read_to_string(path.join("comm"))
                .is_ok_and(|name| name.trim() == "cuda-events")
        };
        let thread = tasks.map(|task| task.path()).find(named)?;
        let status = std::fs::read_to_string(thread.join("status")).expect("it lives");
        let line = status.lines().find(|line| line.starts_with("voluntary_ctxt_switches"));
        Some(line.expect("Linux has the line").to_owned())
    };
    for dropped in [false, true] {
        let latch = Latch::hold(timeline.stream());
        let mut future = timeline.signal().expect("a signal").into_future();
        assert_eq!(poll(&mut future, Waker::noop()), Poll::Pending);
        wait_until("it is there", || sleeps().is_some());
        let before = sleeps();
        wait_until("it takes rounds", || sleeps() != before);
        // The signal of a future that was dropped does not come, either.
        let held = if dropped {
            drop(future);
            Some(latch)
        } else {
            latch.release();
            assert_eq!(block_on(&mut future), Ok(()));
            None
        };
        // A round comes at least every millisecond.
        wait_until("it sleeps for long", || {
            let before = sleeps();
            std::thread::sleep(Duration::from_millis(200));
            sleeps() == before
        });
        drop(held);
    }
}

/// A task that moves is woken where it is.
#[test]
fn the_last_waker_is_woken() {
    let Some(gpu) = gpu() else { return };
    let timeline = timeline(&gpu);
    let latch = Latch::hold(timeline.stream());
    let mut future = timeline.signal().expect("a signal").into_future();
    let (old, new) = (Unpark::new(), Unpark::new());
    for waker in [&old, &new] {
        assert_eq!(poll(&mut future, &Waker::from(Arc::clone(waker))), Poll::Pending);
    }
    latch.release();
    wait_until("the new waker", || new.woken() == 1);
    assert_eq!(old.woken(), 0);
}

#[test]
fn a_panicking_waker_stops_no_others() {
    struct Panics;
    impl Wake for Panics {
        fn wake(self: Arc<Self>) {
            std::panic::resume_unwind(Box::new("a waker that panics"));
        }
    }
    let Some(gpu) = gpu() else { return };
    let timeline = timeline(&gpu);
    let latch = Latch::hold(timeline.stream());
    let point = timeline.signal().expect("a signal");
    let mut bad = point.into_future();
    assert_eq!(poll(&mut bad, &Waker::from(Arc::new(Panics))), Poll::Pending);
    let count = Unpark::new();
    let mut good = point.into_future();
    assert_eq!(poll(&mut good, &Waker::from(Arc::clone(&count))), Poll::Pending);
    latch.release();
    wait_until("the other one is woken", || count.woken() == 1);
}

#[test]
fn awaiting_breaks_no_capture() {
    let Some(gpu) = gpu() else { return };
    let (stream, captured) = (gpu.stream(), gpu.stream());
    let timeline = Timeline::new(stream).expect("a timeline");
    let latch = Latch::hold(timeline.stream());
    let point = timeline.signal().expect("a signal");
    let mut future = point.into_future();
    let capture = common::begin_capture(&captured, CaptureMode::Global).expect("a capture");
    assert_eq!(poll(&mut future, Waker::noop()), Poll::Pending);
    assert_eq!(point.wait_timeout(Duration::from_millis(20)), Ok(Progress::Pending));
    assert_eq!(point.query(), Ok(Progress::Pending));
    // For a new page too.
    let more: Vec<_> =
        (0..70).map(|_| HostTimeline::new(&gpu.context).expect("a timeline")).collect();
    capture.end().expect("the capture is as it was");
    drop((latch, more));
    reached(point);
}
