//! What becomes of timelines that fail, are poisoned, or are in a forked child.

use crate::common;

use std::future::IntoFuture;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use common::child::{Child, role};
use common::counting::{Watched, calls, counted_context, counting, fail_next};
use common::futures::{Unpark, wait_until};
use common::timelines::{PATIENCE, WRITE, gpu, idle, poll, reached, timeline};
use common::trap::{FAILED, Trap};
use common::{Latch, Other, TestDriver};
#[cfg(unix)]
use cuda_events::Error::ForkedChild;
use cuda_events::sys::{CUresult, Function};
use cuda_events::{
    Context, Device, Driver, LoadOptions, Progress, Stream, StreamOptions, StreamRef,
};
use cuda_soft_driver::SoftDriver;
use cuda_timelines::{CudaStreamExt, Error, HostTimeline, Point, Timeline};

/// A wait for a context that fails gets its error, and does not wait forever.
#[test]
fn a_wait_for_a_failed_context_is_its_error() {
    let Some(gpu) = gpu() else { return };
    let Some(soft) = gpu.soft() else {
        return common::not_run(
            "a context that fails is the software driver's; on a GPU it would be everybody's",
        );
    };
    let code = CUresult::CUDA_ERROR_ILLEGAL_ADDRESS;
    let failed = |error: &Error| error.code() == Some(code) && error.is_sticky();
    let timeline = timeline(&gpu);
    let latch = Latch::hold(timeline.stream());
    let done = timeline.signal().expect("a signal");
    latch.release();
    reached(done);
    let latch = Latch::hold(timeline.stream());
    let pending = timeline.signal().expect("a signal");
    let unpark = Unpark::new();
    let mut future = pending.into_future();
    assert_eq!(poll(&mut future, &Waker::from(Arc::clone(&unpark))), Poll::Pending);
    std::thread::scope(|scope| {
        let waiters = [Point::wait, Point::spin].map(|wait| scope.spawn(move || wait(&pending)));
        soft.fail_contexts(code);
        for waiter in waiters {
            let error =
                waiter.join().expect("no panic").expect_err("nothing is signalled any more");
            assert!(failed(&error), "{error}");
        }
    });
    wait_until("the future is woken", || unpark.woken() == 1);
    let polled = poll(&mut future, Waker::noop());
    assert!(matches!(&polled, Poll::Ready(Err(error)) if failed(error)), "{polled:?}");
    // A second one makes no driver call to find it.
    assert!(matches!(poll(&mut pending.into_future(), Waker::noop()),
        Poll::Ready(Err(error)) if failed(&error)));
    assert!(failed(&pending.query().expect_err("it failed")));
    assert!(failed(&timeline.stream().wait_point(pending).expect_err("it failed")));
    assert!(failed(&timeline.signal().expect_err("it failed")));
    assert!(!pending.is_done() && done.is_done());
    assert_eq!(done.wait(), Ok(()), "what was reached stays reached");
    drop(latch);
}

type Wait = fn(&Point) -> Result<Progress, Error>;

/// Each way to wait for a short time.
const SHORT: [Wait; 3] = [
    |point| point.spin_timeout(Duration::ZERO),
    |point| point.wait_timeout(Duration::ZERO),
    |point| point.wait_timeout(Duration::from_micros(100)),
];

/// A watchdog waits for a short time again and again.
#[test]
fn short_waits_learn_of_a_failed_context() {
    for wait in SHORT {
        let Some(gpu) = gpu() else { return };
        let Some(soft) = gpu.soft() else {
            return common::not_run(
                "a context that fails is the software driver's; on a GPU it would be everybody's",
            );
        };
        let timeline = timeline(&gpu);
        let latch = Latch::hold(timeline.stream());
        let pending = timeline.signal().expect("a signal");
        assert_eq!(wait(&pending), Ok(Progress::Pending));
        let code = CUresult::CUDA_ERROR_LAUNCH_FAILED;
        soft.fail_contexts(code);
        wait_until("the error is returned", || wait(&pending) != Ok(Progress::Pending));
        assert_eq!(wait(&pending).map_err(|error| error.code()), Err(Some(code)));
        drop(latch);
    }
}

/// They ask the driver every 5 ms, over all of them, and not each time.
#[test]
fn short_waits_ask_now_and_then() {
    const QUESTIONS: usize = 4;
    let Some(gpu) = gpu() else { return };
    let context = counted_context(gpu.driver);
    let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
    let timeline = Timeline::new(stream).expect("a timeline");
    for wait in SHORT {
        let latch = Latch::hold(timeline.stream());
        let pending = timeline.signal().expect("a signal");
        let (started, mut asked) = (Instant::now(), 0);
        while asked < QUESTIONS {
            let (seen, made) = calls(|| wait(&pending));
            assert_eq!(seen, Ok(Progress::Pending));
            let questions = made.iter().filter(|made| **made == Function::cuEventQuery).count();
            assert_eq!(made.is_empty(), questions == 0, "{made:?}");
            asked += questions;
            assert!(started.elapsed() < PATIENCE, "{asked} questions");
        }
        // One of them may be due at once, where somebody has waited for this timeline before.
        let (most, every) = (QUESTIONS as u32 - 1, Duration::from_millis(5));
        assert!(started.elapsed() >= every * most, "{:?}", started.elapsed());
        latch.release();
        reached(pending);
    }
    // The first wait for a timeline asks nobody.
    let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
    let timeline = Timeline::new(stream).expect("a timeline");
    let latch = Latch::hold(timeline.stream());
    let pending = timeline.signal().expect("a signal");
    assert_eq!(calls(|| SHORT[0](&pending)), (Ok(Progress::Pending), vec![]));
    drop(latch);
}

#[test]
fn a_signal_that_fails_leaves_its_value_out() {
    let Some(gpu) = gpu() else { return };
    let context = counted_context(gpu.driver);
    let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
    let timeline = Timeline::new(stream).expect("a timeline");
    let start = timeline.completed();
    fail_next(WRITE, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
    let code = CUresult::CUDA_ERROR_OUT_OF_MEMORY;
    let error = cuda_events::Error::Driver { function: WRITE, code };
    assert_eq!(timeline.signal(), Err(error.into()));
    let point = timeline.signal().expect("a signal");
    assert_eq!(point.value(), start + 2);
    reached(point);
}

/// Two devices: the software driver's, or those of the machine, where a context breaks in a process
/// of its own.
fn two_devices(test: &str) -> Option<(Option<SoftDriver>, Driver, [Context; 2])> {
    if TestDriver::chosen() == TestDriver::Native && role().is_none() {
        Child::start(test, "breaks a context").finish();
        return None;
    }
    let soft = (TestDriver::chosen() == TestDriver::Soft)
        .then(|| SoftDriver::builder().devices(2).build());
    let driver = match &soft {
        Some(soft) => soft.driver(),
        None => common::load(&LoadOptions::new()).0,
    };
    let primary = |at| Device::new(driver, at).and_then(Context::primary);
    if soft.is_none() && (TestDriver::chosen() == TestDriver::Shared || primary(1).is_err()) {
        common::not_run("it takes two devices, of which one fails");
        return None;
    }
    Some((soft, driver, [0, 1].map(|at| primary(at).expect("a context"))))
}

/// A stream of another device, which waited for a context that has failed, is over. It goes on
/// where the failure is one context's. A GPU's trap fails all contexts of the process, on all
/// devices: there the stream's end is the error.
#[track_caller]
fn released(stream: &StreamRef, soft: Option<&SoftDriver>) {
    if soft.is_some() {
        return idle(stream);
    }
    let failed = || stream.query().map_err(|error| error.code()) == Err(Some(FAILED));
    wait_until("the stream has failed, too", failed);
}

/// A stream of one device waits for a signal of another device, whose context fails. It goes on, as
/// nothing else would ever release it; and a later wait is refused. Nobody has to ask for that.
#[test]
fn a_failed_context_releases_streams_of_others() {
    let Some((soft, _, contexts)) = two_devices("a_failed_context_releases_streams_of_others")
    else {
        return;
    };
    let [waits, fails] = &contexts;
    let trap = Trap::set(fails, soft.as_ref());
    let stream = |context| Stream::new(context, StreamOptions::new()).expect("a stream");
    let [first, second, third, fourth] = [waits; 4].map(stream);
    let timeline = Timeline::new(stream(fails)).expect("a timeline");
    // One question is for all timelines of a context.
    let beside = Timeline::new(stream(fails)).expect("a timeline");
    // One that the host signals goes on doing so.
    let host = HostTimeline::new(fails).expect("a timeline");
    host.wait_ahead(&third, host.completed() + 1).expect("a wait");
    let latch = [&timeline, &beside].map(|timeline| Latch::hold(timeline.stream()));
    fourth.wait_point(beside.signal().expect("a signal")).expect("a wait");
    // This wait comes before the signal, and is owed one all the same.
    timeline.wait_ahead(&second, timeline.completed() + 1).expect("a wait");
    let point = timeline.signal().expect("a signal");
    first.wait_point(point).expect("a wait");
    assert_eq!(first.query(), Ok(Progress::Pending));
    trap.spring();
    released(&first, soft.as_ref());
    released(&second, soft.as_ref());
    released(&fourth, soft.as_ref());
    let refused = first.wait_point(point).map_err(|error| error.code());
    assert_eq!(refused, Err(Some(FAILED)));
    wait_until("the thread has asked", || point.query() != Ok(Progress::Pending));
    assert_eq!(point.query().map_err(|error| error.code()), Err(Some(FAILED)));
    assert!(!point.is_done());
    if soft.is_some() {
        assert_eq!(third.query(), Ok(Progress::Pending), "it waits for the host");
        host.signal().expect("a signal");
    }
    released(&third, soft.as_ref());
    drop(latch);
}

/// One context's failure is no error of another one's futures, which are asked about after it.
#[test]
fn a_failed_context_ends_its_own_futures_alone() {
    let test = "a_failed_context_ends_its_own_futures_alone";
    let Some((Some(soft), _, [works, fails])) = two_devices(test) else { return };
    let [failed, other] = [&fails, &works].map(|context| {
        let stream = Stream::new(context, StreamOptions::new()).expect("a stream");
        let timeline = Timeline::new(stream).expect("a timeline");
        let latch = Latch::hold(timeline.stream());
        let point = timeline.signal().expect("a signal");
        let (unpark, mut future) = (Unpark::new(), point.into_future());
        assert_eq!(poll(&mut future, &Waker::from(Arc::clone(&unpark))), Poll::Pending);
        (timeline, latch, unpark, future)
    });
    Trap::set(&fails, Some(&soft)).spring();
    for ((_timeline, latch, unpark, mut future), expected) in
        [(failed, Err(Some(FAILED))), (other, Ok(()))]
    {
        if expected.is_ok() {
            assert_eq!(unpark.woken(), 0);
            latch.release();
        }
        wait_until("the future is woken", || unpark.woken() > 0);
        let polled = poll(&mut future, Waker::noop()).map_err(|error| error.code());
        assert_eq!(polled, Poll::Ready(expected));
    }
}

/// A wait for a signal of a context that has failed is refused, as in that context itself.
#[test]
fn a_wait_for_another_context_that_has_failed_is_refused() {
    let test = "a_wait_for_another_context_that_has_failed_is_refused";
    let Some((soft, _, contexts)) = two_devices(test) else { return };
    let [waits, fails] = &contexts;
    let trap = Trap::set(fails, soft.as_ref());
    let waits = Stream::new(waits, StreamOptions::new()).expect("a stream");
    let stream = Stream::new(fails, StreamOptions::new()).expect("a stream");
    let timeline = Timeline::new(stream).expect("a timeline");
    let latch = Latch::hold(timeline.stream());
    let point = timeline.signal().expect("a signal");
    trap.spring();
    wait_until("the context has failed", || timeline.stream().query().is_err());
    let refused = waits.wait_point(point).map_err(|error| error.code());
    assert_eq!(refused, Err(Some(FAILED)));
    released(&waits, soft.as_ref());
    drop(latch);
}

/// The thread asks about no context that other code owns. The drop of the timeline does.
#[test]
fn the_drop_asks_about_a_context_of_other_code() {
    let test = "the_drop_asks_about_a_context_of_other_code";
    let Some((soft, driver, contexts)) = two_devices(test) else { return };
    let [waits, theirs] = &contexts;
    // SAFETY: the context that it names lives until the end of the test.
    let named = unsafe { Context::from_raw(driver, theirs.as_raw()) }.expect("a context");
    let trap = Trap::set(theirs, soft.as_ref());
    let waits = Stream::new(waits, StreamOptions::new()).expect("a stream");
    let stream = Stream::new(&named, StreamOptions::new()).expect("a stream");
    let timeline = Timeline::new(stream).expect("a timeline");
    let latch = Latch::hold(timeline.stream());
    let point = timeline.signal().expect("a signal");
    waits.wait_point(point).expect("a wait");
    trap.spring();
    wait_until("the context has failed", || timeline.stream().query().is_err());
    if soft.is_some() {
        assert_eq!(waits.query(), Ok(Progress::Pending));
    }
    drop(timeline);
    released(&waits, soft.as_ref());
    assert_eq!(waits.wait_point(point).map_err(|error| error.code()), Err(Some(FAILED)));
    drop(latch);
}

/// A wait in a context that has failed is over, and holds the timeline's context no longer.
#[test]
fn a_failed_wait_holds_no_other_context() {
    let Some((soft, driver, contexts)) = two_devices("a_failed_wait_holds_no_other_context") else {
        return;
    };
    let watched = Watched::new(driver);
    let context = watched.context();
    let trap = Trap::set(&contexts[1], soft.as_ref());
    let waits = Stream::new(&contexts[1], StreamOptions::new()).expect("a stream");
    // SAFETY: both live until the end of the test.
    let there = unsafe { Context::from_raw(context.driver(), contexts[1].as_raw()) };
    let there = there.expect("a context");
    // SAFETY: as above.
    let waits_there = unsafe { StreamRef::from_raw(&there, waits.as_raw()) };
    let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
    let timeline = Timeline::new(stream).expect("a timeline");
    let latch = Latch::hold(timeline.stream());
    let point = timeline.signal().expect("a signal");
    waits_there.wait_point(point).expect("a wait");
    trap.spring();
    wait_until("the context has failed", || waits.query().is_err());
    latch.release();
    reached(point);
    drop((timeline, context));
    wait_until("the timeline's context is released", || {
        watched.made().contains(&Function::cuDevicePrimaryCtxRelease_v2)
    });
}

/// A wait was submitted, and the event that would show its end was not recorded. The timeline's
/// context stays for good.
#[test]
fn a_wait_whose_end_is_unseen_keeps_the_context() {
    let Some(gpu) = gpu() else { return };
    let driver = counting(gpu.driver);
    let context = Device::new(driver, 0).and_then(Context::primary).expect("a context");
    let other = Other::new(&gpu);
    // SAFETY: it is the other's, which lives until the end of the test.
    let there = unsafe { Context::from_raw(driver, other.as_raw()) }.expect("a context");
    let there = Stream::new(&there, StreamOptions::new()).expect("a stream");
    let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
    let timeline = Timeline::new(stream).expect("a timeline");
    let latch = Latch::hold(timeline.stream());
    let point = timeline.signal().expect("a signal");
    fail_next(Function::cuEventRecord, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
    let refused = there.wait_point(point).map_err(|error| error.code());
    assert_eq!(refused, Err(Some(CUresult::CUDA_ERROR_OUT_OF_MEMORY)));
    assert_eq!(there.query(), Ok(Progress::Pending), "it waits");
    latch.release();
    idle(&there);
    let ((), made) = calls(|| drop((timeline, context)));
    assert!(!made.contains(&Function::cuDevicePrimaryCtxRelease_v2), "{made:?}");
}

/// While the last signal of a dropped timeline is pending, the thread asks whether the context
/// works, unless somebody else owns it: that may end at any time.
#[test]
fn the_context_of_somebody_else_is_not_asked() {
    common::own_process!();
    let Some(gpu) = gpu() else { return };
    let (theirs, ours) = (Watched::new(gpu.driver), Watched::new(gpu.driver));
    // SAFETY: the context lives until the end of the test.
    let borrowed = unsafe { Context::from_raw(theirs.driver, gpu.context.as_raw()) };
    // The thread comes to the first one first, in each round.
    let contexts = [borrowed.expect("a context"), ours.context()];
    let waiting = gpu.stream();
    let latches = contexts.map(|context| {
        let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
        let timeline = Timeline::new(stream).expect("a timeline");
        let latch = Latch::hold(timeline.stream());
        let last = timeline.signal().expect("a signal").value();
        timeline.wait_ahead(&waiting, last + 1).expect("a wait");
        drop(timeline);
        (latch, context)
    });
    let _ = theirs.made();
    for round in ["once", "again"] {
        wait_until(round, || ours.made().contains(&Function::cuEventQuery));
    }
    assert_eq!(theirs.made(), []);
    for (latch, _context) in latches {
        latch.release();
    }
    idle(&waiting);
}

/// Streams that wait ahead are released when the timeline is given up or dropped.
#[test]
fn a_wait_ahead_without_a_signal_is_released() {
    let Some(gpu) = gpu() else { return };
    for gently in [true, false] {
        let timeline = timeline(&gpu);
        let (waiting, late) = (gpu.stream(), gpu.stream());
        let latch = Latch::hold(timeline.stream());
        let point = timeline.signal().expect("a signal");
        let submitted = timeline.submitted().expect("no fork");
        for ahead in [1, 1000, u64::MAX - submitted] {
            timeline.wait_ahead(&waiting, submitted + ahead).expect("a wait");
        }
        // One that comes to its wait only when all is over.
        late.wait_stream(timeline.stream()).expect("a wait");
        timeline.wait_ahead(&late, submitted + 5).expect("a wait");
        assert_eq!(waiting.query(), Ok(Progress::Pending));
        assert_eq!(point.query(), Ok(Progress::Pending));
        if gently {
            drop(timeline);
            assert_eq!(point.query(), Ok(Progress::Pending), "it will be reached");
            assert_eq!(waiting.query(), Ok(Progress::Pending), "and before it nobody is released");
        } else {
            let mut future = point.into_future();
            let unpark = Unpark::new();
            assert_eq!(poll(&mut future, &Waker::from(Arc::clone(&unpark))), Poll::Pending);
            timeline.poison().expect("a write");
            idle(&waiting);
            wait_until("the future is woken", || unpark.woken() == 1);
            assert_eq!(poll(&mut future, Waker::noop()), Poll::Ready(Err(Error::Poisoned)));
            assert_eq!(point.query(), Err(Error::Poisoned), "at once");
            assert_eq!(point.wait(), Err(Error::Poisoned));
        }
        assert!(!point.is_done());
        latch.release();
        wait_until("what was submitted happens", || point.is_done());
        assert_eq!(point.wait(), Ok(()));
        idle(&waiting);
        idle(&late);
    }
    type HostEnd = fn(HostTimeline);
    let ends: [HostEnd; 2] = [|host| host.poison(), drop];
    for end in ends {
        let host = HostTimeline::new(&gpu.context).expect("a timeline");
        let point = host.signal().expect("a signal");
        let waiting = gpu.stream();
        host.wait_ahead(&waiting, host.completed() + 1).expect("a wait");
        assert_eq!(waiting.query(), Ok(Progress::Pending));
        end(host);
        idle(&waiting);
        assert!(point.is_done());
    }
}

/// As many streams wait ahead as there are hardware channels, so that nothing that is submitted
/// after the waits may come to the device. Dropping the timeline releases them nevertheless.
#[test]
fn a_drop_releases_without_a_channel() {
    const CHANNELS: usize = 8;
    let Some(gpu) = gpu() else { return };
    let context = counted_context(gpu.driver);
    let stream = || Stream::new(&context, StreamOptions::new()).expect("a stream");
    for pending in [false, true] {
        let waiting: Vec<_> = (0..CHANNELS).map(|_| stream()).collect();
        let timeline = Timeline::new(stream()).expect("a timeline");
        let latch = pending.then(|| Latch::hold(timeline.stream()));
        let point = timeline.signal().expect("a signal");
        if !pending {
            reached(point);
        }
        let submitted = timeline.submitted().expect("no fork");
        for stream in &waiting {
            timeline.wait_ahead(stream, submitted + 1).expect("a wait");
        }
        let ((), made) = calls(|| drop(timeline));
        assert!(!made.contains(&WRITE), "{made:?}");
        if let Some(latch) = latch {
            assert!(waiting.iter().all(|stream| stream.query() == Ok(Progress::Pending)));
            latch.release();
        }
        waiting.iter().for_each(|stream| idle(stream));
        assert!(point.is_done());
    }
    // The timeline's own stream waits, so that a write in it would never come.
    let own = Arc::new(stream());
    let timeline = Timeline::new(Arc::clone(&own)).expect("a timeline");
    timeline.wait_ahead(&own, timeline.completed() + 1).expect("a wait");
    drop(timeline);
    idle(&own);
}

/// The last signal was refused. Nothing shows whether it will come, and a wait ahead is
/// released all the same, after what was accepted.
#[test]
fn a_refused_signal_leaves_nobody_waiting() {
    let Some(gpu) = gpu() else { return };
    let context = counted_context(gpu.driver);
    let stream = || Stream::new(&context, StreamOptions::new()).expect("a stream");
    let (waiting, timeline) = (stream(), Timeline::new(stream()).expect("a timeline"));
    let latch = Latch::hold(timeline.stream());
    let point = timeline.signal().expect("a signal");
    fail_next(WRITE, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
    timeline.signal().expect_err("it is refused");
    timeline.wait_ahead(&waiting, point.value() + 2).expect("a wait");
    drop(timeline);
    assert_eq!(waiting.query(), Ok(Progress::Pending), "a signal is pending");
    latch.release();
    idle(&waiting);
    assert!(point.is_done());
}

/// The last signal was refused, and so is the write that would release those who wait for it: then
/// the drop releases them at once.
#[test]
fn two_refused_writes_leave_nobody_waiting() {
    let Some(gpu) = gpu() else { return };
    let context = counted_context(gpu.driver);
    let stream = || Stream::new(&context, StreamOptions::new()).expect("a stream");
    let (waiting, timeline) = (stream(), Timeline::new(stream()).expect("a timeline"));
    let start = timeline.completed();
    fail_next(WRITE, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
    timeline.signal().expect_err("it is refused");
    timeline.wait_ahead(&waiting, start + 2).expect("a wait");
    fail_next(WRITE, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
    drop(timeline);
    idle(&waiting);
}

/// A timeline whose context has failed can be poisoned as well. The first reason stays.
#[test]
fn the_first_reason_of_a_poison_stays() {
    let Some(gpu) = gpu() else { return };
    let Some(soft) = gpu.soft() else {
        return common::say_not_run("the context fails");
    };
    let timeline = timeline(&gpu);
    let latch = Latch::hold(timeline.stream());
    let point = timeline.signal().expect("a signal");
    let code = CUresult::CUDA_ERROR_ILLEGAL_ADDRESS;
    soft.fail_contexts(code);
    assert_eq!(point.query().map_err(|error| error.code()), Err(Some(code)));
    assert_eq!(timeline.poison().map_err(|error| error.code()), Err(Some(code)));
    assert_eq!(point.query().map_err(|error| error.code()), Err(Some(code)));
    drop(latch);
}

/// The driver refuses the write that would poison: then it is done at once.
#[test]
fn refused_poison_is_there_at_once() {
    let Some(gpu) = gpu() else { return };
    let context = counted_context(gpu.driver);
    let stream = Arc::new(Stream::new(&context, StreamOptions::new()).expect("a stream"));
    let timeline = Timeline::new(Arc::clone(&stream)).expect("a timeline");
    let waiting = gpu.stream();
    let done = timeline.signal().expect("a signal");
    reached(done);
    let latch = Latch::hold(&stream);
    let point = timeline.signal().expect("a signal");
    timeline.wait_ahead(&waiting, point.value() + 1).expect("a wait");
    fail_next(WRITE, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
    assert_eq!(timeline.poison().map_err(|error| error.function()), Err(Some(WRITE)));
    idle(&waiting);
    assert_eq!(point.query(), Err(Error::Poisoned));
    assert_eq!(point.wait(), Err(Error::Poisoned));
    assert_eq!(point.spin(), Err(Error::Poisoned));
    assert_eq!(waiting.wait_point(point), Err(Error::Poisoned));
    assert!(done.is_done() && !point.is_done());
    assert_eq!(done.query(), Ok(Progress::Done));
    latch.release();
    idle(&stream);
}

/// In a forked child nothing of it works, nothing hangs, and nothing is signalled.
#[cfg(unix)]
#[test]
fn a_forked_child() {
    // In a process of its own: a fork takes along the locks that other threads have.
    if role().is_none() {
        return Child::start("a_forked_child", "fork").finish();
    }
    {
        let Some(gpu) = gpu() else { return };
        let timeline = timeline(&gpu);
        let host = HostTimeline::new(&gpu.context).expect("a timeline");
        let done = timeline.signal().expect("a signal");
        reached(done);
        let latch = Latch::hold(timeline.stream());
        let pending = timeline.signal().expect("a signal");
        let mut future = pending.into_future();
        assert_eq!(poll(&mut future, Waker::noop()), Poll::Pending);
        let (value, host_value) = (timeline.completed(), host.completed());
        let mut inherited = Some((timeline, host));
        let (output, status) = common::fork::in_child(|| {
            let (timeline, host) = inherited.take().expect("it was there");
            let forked = |result: Result<(), Error>| match result {
                Err(error @ Error::Cuda(ForkedChild { .. })) => error.is_sticky(),
                other => panic!("{other:?}"),
            };
            assert!(forked(timeline.signal().map(drop)));
            assert!(forked(timeline.submitted().map(drop)));
            assert!(forked(timeline.stream().wait_point(pending)));
            assert!(forked(timeline.stream().wait_point(done)));
            assert!(forked(timeline.wait_ahead(timeline.stream(), value + 9)));
            assert!(forked(host.signal().map(drop)));
            assert!(forked(host.wait_ahead(timeline.stream(), host_value + 1)));
            assert!(forked(HostTimeline::new(&gpu.context).map(drop)));
            let stream = StreamRef::legacy_default(&gpu.context);
            assert!(forked(Timeline::new(stream).map(drop)));
            for point in [done, pending] {
                assert!(forked(point.query().map(drop)));
                assert!(forked(point.wait()));
                assert!(forked(point.spin_timeout(Duration::from_secs(1)).map(drop)));
                assert!(matches!(
                    poll(&mut point.into_future(), Waker::noop()),
                    Poll::Ready(Err(Error::Cuda(ForkedChild { .. })))
                ));
            }
            assert!(matches!(
                poll(&mut future, Waker::noop()),
                Poll::Ready(Err(Error::Cuda(ForkedChild { .. })))
            ));
            drop(future);
            assert!(done.is_done());
            assert!(!format!("{timeline:?} {host:?}").is_empty());
            assert!(forked(timeline.poison()));
            host.poison();
            String::from("well")
        });
        assert_eq!((output.as_str(), status), ("well", 0));
        let (timeline, host) = inherited.expect("the child took its own");
        assert_eq!(
            (timeline.completed(), host.completed()),
            (value, host_value),
            "the child signalled nothing"
        );
        latch.release();
        reached(pending);
        assert_eq!(host.signal().map(|point| point.value()), Ok(host_value + 1));
    }
}
