//! Timelines: signals, and everybody who waits for them.

use crate::common;

use std::future::IntoFuture;
use std::io::Write as _;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context as TaskContext, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use common::child::{Child, role};
use common::counting::{calls, calls_with_arguments, counting, fail_next};
use common::{Door, Gpu, Latch, Other, check, needs};
use cuda_events::capture::{CaptureMode, CaptureStatus};
use cuda_events::ext::{HostTimeline, Point, PointCompletion, Timeline};
use cuda_events::sys::{CUresult, Function};
use cuda_events::{
    Context, Device, Driver, Error, EventFlags, ForeignStream, Progress, Stream, StreamOptions,
    StreamRef,
};

const WRITE: Function = Function::cuStreamWriteValue64_v2;
const WAIT: Function = Function::cuStreamWaitValue64_v2;

/// Until when a test has failed that waits for something.
const PATIENCE: Duration = Duration::from_secs(60);

/// A driver that has values in memory; a machine where that is a matter of a module parameter is
/// too old.
fn gpu() -> Option<Gpu> {
    let gpu = Gpu::new();
    needs(gpu.driver, WRITE).then_some(gpu)
}

fn timeline(gpu: &Gpu) -> Timeline {
    Timeline::new(gpu.stream()).expect("a timeline")
}

/// Waits, but not for ever: a stream that waits for ever would hold up all that comes after, so
/// that the process ends.
#[track_caller]
fn comes(what: &str, done: Result<Progress, Error>) {
    if done != Ok(Progress::Done) {
        let caller = std::panic::Location::caller();
        // Not eprintln, which the test harness keeps to itself.
        let _ = writeln!(std::io::stderr(), "{caller}: {what} does not come: {done:?}");
        std::process::abort();
    }
}

#[track_caller]
fn reached(point: Point) {
    comes("the point", point.wait_timeout(PATIENCE));
}

#[track_caller]
fn idle(stream: &StreamRef) {
    comes("the stream's end", stream.synchronize_timeout(PATIENCE));
}

#[test]
fn a_point_is_reached_with_the_work_and_not_sooner() {
    let Some(gpu) = gpu() else { return };
    let timeline = timeline(&gpu);
    let start = timeline.completed();
    assert_eq!(timeline.submitted(), Ok(start));
    let first = timeline.signal().expect("a signal");
    reached(first);
    let latch = Latch::hold(timeline.stream());
    let (second, third) =
        (timeline.signal().expect("a signal"), timeline.signal().expect("a signal"));
    assert_eq!(
        [first, second, third].map(|point| point.value()),
        [start + 1, start + 2, start + 3]
    );
    assert_eq!(timeline.submitted(), Ok(start + 3));
    assert_eq!([first, second, third].map(|point| point.is_done()), [true, false, false]);
    assert_eq!(second.query(), Ok(Progress::Pending));
    for timeout in [Duration::ZERO, Duration::from_millis(12)] {
        assert_eq!(second.wait_timeout(timeout), Ok(Progress::Pending));
        assert_eq!(second.spin_timeout(timeout), Ok(Progress::Pending));
    }
    assert_eq!(timeline.completed(), start + 1);
    latch.release();
    second.wait().expect("the latch is open");
    third.spin().expect("the latch is open");
    assert!(second.is_done() && third.is_done() && first.is_done());
    assert_eq!(third.query(), Ok(Progress::Done));
    assert_eq!(timeline.completed(), start + 3);
}

#[test]
fn points_are_plain_values() {
    let Some(gpu) = gpu() else { return };
    let timeline = timeline(&gpu);
    let (one, two) = (timeline.signal().expect("a signal"), timeline.signal().expect("a signal"));
    let copy = one;
    assert!(copy == one && one != two);
    assert_eq!(size_of::<Point>(), 3 * size_of::<usize>());
    reached(two);
    assert_eq!(format!("{one:?}"), format!("Point {{ value: {}, is_done: true }}", one.value()));
    assert!(format!("{timeline:?}").starts_with("Timeline { completed: "), "{timeline:?}");
    // They outlive everything.
    drop((timeline, gpu));
    assert!(one.is_done() && two.is_done());
}

/// Looking costs no driver call; a signal and a wait cost one, and what is over costs none.
#[test]
fn what_it_costs_in_driver_calls() {
    let Some(gpu) = gpu() else { return };
    let driver = counting(gpu.driver);
    let context = Device::new(driver, 0).and_then(Context::primary).expect("a context");
    let (stream, other) =
        (Stream::new(&context, StreamOptions::new()), Stream::new(&context, StreamOptions::new()));
    let (stream, other) = (Arc::new(stream.expect("a stream")), other.expect("a stream"));
    // The first one may need a page.
    let timeline = Timeline::new(Arc::clone(&stream)).expect("a timeline");
    let (again, made) = calls(|| Timeline::new(Arc::clone(&stream)).expect("a timeline"));
    assert_eq!(made, []);
    let latch = Latch::hold(&stream);
    let (point, made) = calls(|| timeline.signal().expect("a signal"));
    assert_eq!(made, [WRITE]);
    let looks =
        || (point.is_done(), timeline.completed(), again.completed(), timeline.submitted().is_ok());
    let (_, made) = calls(looks);
    assert_eq!(made, []);
    assert_eq!(calls(|| other.wait_point(point)), (Ok(()), vec![WAIT]));
    let (query, made) = calls(|| point.query());
    assert_eq!(query, Ok(Progress::Pending));
    assert_eq!(made.iter().filter(|function| **function == Function::cuEventQuery).count(), 1);
    latch.release();
    idle(&other);
    assert_eq!(calls(|| other.wait_point(point)), (Ok(()), vec![]));
    assert_eq!(calls(|| point.query()), (Ok(Progress::Done), vec![]));
    assert_eq!(calls(|| point.wait()), (Ok(()), vec![]));
    assert_eq!(calls(|| point.spin()), (Ok(()), vec![]));
    let (polled, made) =
        calls(|| pin!(point.into_future()).poll(&mut TaskContext::from_waker(Waker::noop())));
    assert_eq!((polled, made), (Poll::Ready(Ok(())), vec![]));
    let ((), made) = calls(|| drop((again, timeline)));
    assert_eq!(made, [], "the stream is still somebody's");
}

/// Whoever waits asks the driver every five milliseconds, and no more often.
#[test]
fn a_waiter_asks_the_driver_seldom() {
    let Some(gpu) = gpu() else { return };
    let driver = counting(gpu.driver);
    let context = Device::new(driver, 0).and_then(Context::primary).expect("a context");
    let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
    let timeline = Timeline::new(stream).expect("a timeline");
    let latch = Latch::hold(timeline.stream());
    let point = timeline.signal().expect("a signal");
    for wait in [Point::wait_timeout, Point::spin_timeout] {
        let started = Instant::now();
        let (result, made) = calls(|| wait(&point, Duration::from_millis(50)));
        assert_eq!(result, Ok(Progress::Pending));
        let asked = made.iter().filter(|function| **function == Function::cuEventQuery).count();
        let most = started.elapsed().as_millis() as usize / 5;
        assert!((1..=most).contains(&asked), "{asked} of {most}");
        assert_eq!(made.iter().filter(|function| **function == Function::cuEventCreate).count(), 1);
    }
    drop(latch);
    reached(point);
}

/// Threads signal one timeline at once: the values are in the order of the writes.
#[test]
fn threads_signal_at_once_and_the_value_rises() {
    const THREADS: u64 = 8;
    const EACH: u64 = 250;
    let Some(gpu) = gpu() else { return };
    // In the order in which the driver is called: an observer is told before and after the call, on
    // the calling thread.
    let written = Arc::new(Mutex::new(Vec::new()));
    let note = Arc::clone(&written);
    let driver = gpu.driver.observe(move |call| {
        if call.function == WRITE {
            note.lock().expect("no panic").push(call.arguments[2]);
        }
    });
    let driver = driver.expect("there is room");
    let context = Device::new(driver, 0).and_then(Context::primary).expect("a context");
    let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
    let timeline = Timeline::new(stream).expect("a timeline");
    let start = timeline.completed();
    let over = AtomicBool::new(false);
    let mut points: Vec<Point> = std::thread::scope(|scope| {
        let looks = scope.spawn(|| {
            let mut last = start;
            while !over.load(Ordering::SeqCst) {
                let now = timeline.completed();
                assert!(now >= last, "{now} after {last}");
                last = now;
            }
        });
        let threads: Vec<_> = (0..THREADS)
            .map(|_| {
                let signal = || timeline.signal().expect("a signal");
                scope.spawn(move || (0..EACH).map(|_| signal()).collect::<Vec<_>>())
            })
            .collect();
        let points =
            threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect();
        idle(timeline.stream());
        over.store(true, Ordering::SeqCst);
        looks.join().expect("no panic");
        points
    });
    assert!(points.iter().all(Point::is_done));
    points.sort_unstable_by_key(Point::value);
    assert!(
        points.iter().map(Point::value).eq(start + 1..=start + THREADS * EACH),
        "each has its own"
    );
    let mut written = std::mem::take(&mut *written.lock().expect("no panic"));
    written.dedup();
    assert!(written.into_iter().eq(start + 1..=start + THREADS * EACH), "in this order");
    assert_eq!(timeline.completed(), start + THREADS * EACH);
}

/// No other signal gets between a value and its write: while the one is with the driver, another
/// does not return.
#[test]
fn a_value_and_its_place_in_the_stream_are_one_step() {
    /// How long the first signal is held up in the driver's call, for the other one to come.
    const TURNS: usize = 20_000;
    let Some(gpu) = gpu() else { return };
    let [armed, inside, returned, overtaken] = [(); 4].map(|()| Arc::new(AtomicBool::new(false)));
    let seen = [&armed, &inside, &returned, &overtaken].map(Arc::clone);
    let driver = gpu.driver.observe(move |call| {
        let [armed, inside, returned, overtaken] = &seen;
        // Told on the thread that signals, before `signal` goes on.
        if call.function != WRITE || !armed.swap(false, Ordering::SeqCst) {
            return;
        }
        inside.store(true, Ordering::SeqCst);
        for _ in 0..TURNS {
            if returned.load(Ordering::SeqCst) {
                overtaken.store(true, Ordering::SeqCst);
                return;
            }
            std::thread::yield_now();
        }
    });
    let driver = driver.expect("there is room");
    let context = Device::new(driver, 0).and_then(Context::primary).expect("a context");
    let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
    let timeline = Timeline::new(stream).expect("a timeline");
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            wait_until("the first is in its call", || inside.load(Ordering::SeqCst));
            let point = timeline.signal().expect("a signal");
            returned.store(true, Ordering::SeqCst);
            point
        });
        armed.store(true, Ordering::SeqCst);
        let mut last = timeline.signal().expect("a signal");
        // An observer is not told of every call while another one is made.
        while !inside.load(Ordering::SeqCst) {
            last = timeline.signal().expect("a signal");
        }
        assert!(other.join().expect("no panic").value() > last.value());
    });
    assert!(
        !overtaken.load(Ordering::SeqCst),
        "another signal returned while one was with the driver"
    );
}

/// Device memory of some words.
struct Words<'a>(&'a Gpu, u64);

impl<'a> Words<'a> {
    const COUNT: usize = 1 << 14;

    fn new(gpu: &'a Gpu) -> Self {
        let _current = gpu.context.make_current().expect("the context can be made current");
        let mut address = 0;
        // SAFETY: a place for the address.
        let code = unsafe { (gpu.driver.symbols().cuMemAlloc_v2)(&mut address, 4 * Self::COUNT) };
        check(Function::cuMemAlloc_v2, code);
        Self(gpu, address)
    }

    fn set(&self, stream: &StreamRef, value: u32) {
        let set = self.0.driver.symbols().cuMemsetD32Async;
        // SAFETY: so many words at the address; the stream is alive.
        let code = unsafe { set(self.1, value, Self::COUNT, stream.as_raw()) };
        check(Function::cuMemsetD32Async, code);
    }

    fn copy_to(&self, other: &Self, stream: &StreamRef) {
        let copy = self.0.driver.symbols().cuMemcpyDtoDAsync_v2;
        // SAFETY: both have so many words.
        let code = unsafe { copy(other.1, self.1, 4 * Self::COUNT, stream.as_raw()) };
        check(Function::cuMemcpyDtoDAsync_v2, code);
    }

    fn read(&self, stream: &StreamRef) -> Vec<u32> {
        let mut words = vec![u32::MAX; Self::COUNT];
        let copy = self.0.driver.symbols().cuMemcpyDtoHAsync_v2;
        // SAFETY: both have so many words, and the stream is waited for.
        let code =
            unsafe { copy(words.as_mut_ptr().cast(), self.1, 4 * Self::COUNT, stream.as_raw()) };
        check(Function::cuMemcpyDtoHAsync_v2, code);
        idle(stream);
        words
    }
}

impl Drop for Words<'_> {
    fn drop(&mut self) {
        let _current = self.0.context.make_current().expect("the context can be made current");
        // SAFETY: allocated above, and the streams were waited for.
        check(Function::cuMemFree_v2, unsafe { (self.0.driver.symbols().cuMemFree_v2)(self.1) });
    }
}

#[test]
fn data_is_in_order_between_streams() {
    let Some(gpu) = gpu() else { return };
    let (here, there) = (Words::new(&gpu), Words::new(&gpu));
    let produced = timeline(&gpu);
    let consumed = timeline(&gpu);
    here.set(consumed.stream(), 0);
    idle(consumed.stream());
    for round in 1..=20 {
        let latch = (round % 2 == 0).then(|| Latch::hold(produced.stream()));
        here.set(produced.stream(), round);
        let full = produced.signal().expect("a signal");
        consumed.stream().wait_point(full).expect("a wait");
        here.copy_to(&there, consumed.stream());
        let empty = consumed.signal().expect("a signal");
        // What comes next in the producer must not overwrite what is still being read.
        produced.stream().wait_point(empty).expect("a wait");
        if let Some(latch) = latch {
            assert!(!full.is_done() && !empty.is_done());
            latch.release();
        }
        reached(empty);
        assert!(full.is_done(), "it came first");
        let words = there.read(consumed.stream());
        assert!(words.iter().all(|word| *word == round), "{round}");
    }
}

#[test]
fn the_host_signals_between_two_stages() {
    let Some(gpu) = gpu() else { return };
    let ready = HostTimeline::new(&gpu.context).expect("a timeline");
    assert_eq!(ready.context(), &gpu.context);
    let computed = timeline(&gpu);
    let last = timeline(&gpu);
    let start = ready.completed();
    let latch = Latch::hold(computed.stream());
    let first = computed.signal().expect("a signal");
    ready.wait_ahead(last.stream(), start + 1).expect("a wait");
    let end = last.signal().expect("a signal");
    latch.release();
    reached(first);
    assert_eq!(end.wait_timeout(Duration::from_millis(5)), Ok(Progress::Pending));
    let point = ready.signal().expect("a signal");
    assert!(point.is_done() && point.value() == start + 1);
    reached(end);
    // What the host has signalled is not waited for.
    let driver = counting(gpu.driver);
    let context = Device::new(driver, 0).and_then(Context::primary).expect("a context");
    let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
    assert_eq!(calls(|| ready.wait_ahead(&stream, start + 1)), (Ok(()), vec![]));
    assert_eq!(calls(|| stream.wait_point(point)), (Ok(()), vec![]));
    let (signalled, made) = calls(|| ready.signal().map(|point| point.value()));
    assert_eq!((signalled, made), (Ok(start + 2), vec![]));
    assert!(format!("{ready:?}").contains(&format!("completed: {}", start + 2)), "{ready:?}");
}

#[test]
fn threads_of_the_host_signal_at_once() {
    let Some(gpu) = gpu() else { return };
    let host = HostTimeline::new(&gpu.context).expect("a timeline");
    let start = host.completed();
    let waiting = timeline(&gpu);
    host.wait_ahead(waiting.stream(), start + 2000).expect("a wait");
    let point = waiting.signal().expect("a signal");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..500).for_each(|_| assert!(host.signal().is_ok())));
        }
    });
    assert_eq!(host.completed(), start + 2000);
    reached(point);
}

struct Unpark(std::thread::Thread, AtomicUsize);

impl Unpark {
    fn new() -> Arc<Self> {
        Arc::new(Self(std::thread::current(), AtomicUsize::new(0)))
    }

    fn woken(&self) -> usize {
        self.1.load(Ordering::SeqCst)
    }
}

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.unpark();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Unpark::new());
    let mut future = pin!(future);
    let started = Instant::now();
    loop {
        // Before it polls, which would find the result even if nobody was woken.
        assert!(started.elapsed() < PATIENCE, "nobody is woken");
        match future.as_mut().poll(&mut TaskContext::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park_timeout(PATIENCE),
        }
    }
}

#[track_caller]
fn wait_until(what: &str, is: impl Fn() -> bool) {
    let started = Instant::now();
    while !is() {
        assert!(started.elapsed() < PATIENCE, "{what}");
        std::thread::yield_now();
    }
}

fn poll(completion: &mut PointCompletion, waker: &Waker) -> Poll<Result<(), Error>> {
    Pin::new(completion).poll(&mut TaskContext::from_waker(waker))
}

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

/// Those of one timeline are woken by one look: the ones whose points are reached, and no others.
#[test]
fn of_thousands_those_are_woken_that_are_reached() {
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
            // Not in their order.
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
fn a_waker_that_panics_does_not_stop_the_others() {
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

/// Whoever waits for a context that fails gets its error, and does not wait for ever.
#[test]
fn who_waits_for_a_context_that_fails_gets_its_error() {
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
    // A second one needs no driver to learn of it.
    assert!(matches!(poll(&mut pending.into_future(), Waker::noop()),
        Poll::Ready(Err(error)) if failed(&error)));
    assert!(failed(&pending.query().expect_err("it failed")));
    assert!(failed(&timeline.stream().wait_point(pending).expect_err("it failed")));
    assert!(failed(&timeline.signal().expect_err("it failed")));
    assert!(!pending.is_done() && done.is_done());
    assert_eq!(done.wait(), Ok(()), "what was reached stays reached");
    drop(latch);
}

#[test]
fn a_signal_that_fails_leaves_its_value_out() {
    let Some(gpu) = gpu() else { return };
    let driver = counting(gpu.driver);
    let context = Device::new(driver, 0).and_then(Context::primary).expect("a context");
    let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
    let timeline = Timeline::new(stream).expect("a timeline");
    let start = timeline.completed();
    fail_next(WRITE, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
    let error = Error::Driver { function: WRITE, code: CUresult::CUDA_ERROR_OUT_OF_MEMORY };
    assert_eq!(timeline.signal(), Err(error));
    let point = timeline.signal().expect("a signal");
    assert_eq!(point.value(), start + 2);
    reached(point);
}

/// Streams that wait ahead are released when the timeline is given up or dropped.
#[test]
fn who_waits_ahead_is_released_when_nobody_signals() {
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
    let ends: [HostEnd; 2] = [HostTimeline::poison, drop];
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

/// The driver refuses the write that would poison: then it is done at once.
#[test]
fn poison_that_the_driver_refuses_is_there_at_once() {
    let Some(gpu) = gpu() else { return };
    let driver = counting(gpu.driver);
    let context = Device::new(driver, 0).and_then(Context::primary).expect("a context");
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

/// A signal in a capture is refused, so that no launch can put the counter back.
#[test]
fn a_signal_in_a_capture_is_refused() {
    let Some(gpu) = gpu() else { return };
    let refused = Err(Error::TimelineInCapture { function: WRITE });
    let stream = Arc::new(gpu.stream());
    let timeline = Timeline::new(Arc::clone(&stream)).expect("a timeline");
    let first = timeline.signal().expect("a signal");
    reached(first);
    // In a capture of this crate, which it knows of.
    let capture = common::begin_capture(&stream, CaptureMode::Relaxed).expect("a capture");
    assert_eq!(timeline.signal(), refused);
    assert_eq!(stream.capture_status(), Ok(CaptureStatus::Active), "it goes on");
    stream.wait_point(first).expect("a wait, of no work");
    let exec = capture.end().and_then(|graph| graph.instantiate());
    let exec = exec.expect("a graph");
    // Another stream is signalled while one captures.
    let other = crate::timelines::timeline(&gpu);
    let capture = common::begin_capture(&stream, CaptureMode::Relaxed).expect("a capture");
    reached(other.signal().expect("a signal"));
    drop(capture);
    let mut last = timeline.completed();
    for _ in 0..3 {
        exec.launch(&stream).expect("a launch");
        let point = timeline.signal().expect("a signal");
        reached(point);
        assert!(timeline.completed() > last);
        last = timeline.completed();
    }
}

/// Other code begins a capture in its own stream, of which this crate learns from the driver alone.
#[test]
fn a_capture_of_other_code_is_noticed_in_its_streams() {
    let Some(gpu) = gpu() else { return };
    let driver = counting(gpu.driver);
    let context = Device::new(driver, 0).and_then(Context::primary).expect("a context");
    let theirs = Arc::new(gpu.stream());
    let raw = theirs.as_raw();
    // SAFETY: the stream lives as long as the owner.
    let foreign =
        unsafe { ForeignStream::new(&context, raw, Arc::clone(&theirs)) }.expect("a stream");
    // SAFETY: it lives until the end of the test.
    let named = unsafe { StreamRef::from_raw(&context, raw) };
    for timeline in [Timeline::new(foreign), Timeline::new(named)] {
        let timeline = timeline.expect("a timeline");
        let (signalled, made) = calls(|| timeline.signal().is_ok());
        assert_eq!((signalled, made), (true, vec![Function::cuStreamIsCapturing, WRITE]));
        let before = timeline.submitted();
        let symbols = gpu.driver.symbols();
        let mode = cuda_events::sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        let mut graph = std::ptr::null_mut();
        // SAFETY: no other thread has the stream.
        let begun = unsafe { (symbols.cuStreamBeginCapture_v2)(raw, mode) };
        check(Function::cuStreamBeginCapture_v2, begun);
        let (refused, made) = calls(|| timeline.signal());
        // Ended first, whatever comes of it.
        // SAFETY: a place for the graph, which is destroyed.
        unsafe {
            check(Function::cuStreamEndCapture, (symbols.cuStreamEndCapture)(raw, &mut graph));
            check(Function::cuGraphDestroy, (symbols.cuGraphDestroy)(graph));
        }
        assert_eq!(refused, Err(Error::TimelineInCapture { function: WRITE }));
        assert_eq!(made, [Function::cuStreamIsCapturing]);
        assert_eq!(timeline.submitted(), before);
        reached(timeline.signal().expect("a signal"));
    }
}

/// A graph may wait for a point: its launches find it reached.
#[test]
fn a_wait_in_a_capture_is_over_once() {
    let Some(gpu) = gpu() else { return };
    let (captured, launched) = (gpu.stream(), timeline(&gpu));
    let timeline = timeline(&gpu);
    let latch = Latch::hold(timeline.stream());
    let point = timeline.signal().expect("a signal");
    let capture = common::begin_capture(&captured, CaptureMode::Relaxed).expect("a capture");
    captured.wait_point(point).expect("a wait");
    let exec = capture.end().and_then(|graph| graph.instantiate()).expect("a graph");
    exec.launch(launched.stream()).expect("a launch");
    let first = launched.signal().expect("a signal");
    assert_eq!(first.wait_timeout(Duration::from_millis(5)), Ok(Progress::Pending));
    latch.release();
    reached(first);
    drop(timeline);
    exec.launch(launched.stream()).expect("a launch");
    reached(launched.signal().expect("a signal"));
}

#[test]
fn the_per_thread_default_stream_has_no_timeline() {
    let Some(gpu) = gpu() else { return };
    let own = StreamRef::per_thread_default(&gpu.context);
    assert_eq!(Timeline::new(own).map(drop), Err(Error::PerThreadTimeline));
    // The legacy one has.
    let timeline = Timeline::new(StreamRef::legacy_default(&gpu.context)).expect("a timeline");
    reached(timeline.signal().expect("a signal"));
}

/// Dropping it does not wait: not for its stream, and not for one that waits for it.
#[test]
fn a_timeline_is_dropped_while_streams_wait_for_it() {
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

/// One page of memory serves all timelines that come one after the other, and 64 at once.
#[test]
fn lines_are_used_again_and_registered_once() {
    let Some(gpu) = gpu() else { return };
    let driver = counting(gpu.driver);
    let context = Device::new(driver, 0).and_then(Context::primary).expect("a context");
    let stream = Arc::new(Stream::new(&context, StreamOptions::new()).expect("a stream"));
    let registers = |made: &[Function]| {
        made.iter().filter(|function| **function == Function::cuMemHostRegister_v2).count()
    };
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
    assert!(points.iter().all(Point::is_done), "for ever");
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
    assert!(points.iter().all(Point::is_done), "for ever");
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
    // Gives the shares back.
    drop(HostTimeline::new(&gpu.context));
}

/// The context stays until the other one's stream has passed its wait, and no longer.
#[test]
fn a_wait_between_contexts_holds_the_timelines() {
    let Some(gpu) = gpu() else { return };
    let other = Other::new(&gpu);
    let watched = common_watched(gpu.driver);
    let released = |made: &[Function]| made.contains(&Function::cuDevicePrimaryCtxRelease_v2);
    let context = Device::new(watched.0, 0).and_then(Context::primary).expect("a context");
    // SAFETY: it is the other's, which lives until the end of the test.
    let there = unsafe { Context::from_raw(watched.0, other.as_raw()) }.expect("a context");
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
    assert!(released(&watched.made()), "nothing is left to wait for");
}

struct Watched(Driver, Arc<Mutex<Vec<Function>>>);

impl Watched {
    fn made(&self) -> Vec<Function> {
        std::mem::take(&mut *self.1.lock().expect("no panic"))
    }
}

fn common_watched(real: Driver) -> Watched {
    let made: Arc<Mutex<Vec<Function>>> = Arc::default();
    let note = made.clone();
    let driver = real.observe(move |call| note.lock().expect("no panic").push(call.function));
    Watched(driver.expect("there is room"), made)
}

/// Nobody holds the context any more, so that nobody can ask the driver: that is told, and
/// `is_done` goes on telling the rest.
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
        let (said, status) = common::fork::in_child(|| {
            let (timeline, host) = inherited.take().expect("it was there");
            let forked = |result: Result<(), Error>| match result {
                Err(error @ Error::ForkedChild { .. }) => error.is_sticky(),
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
                    Poll::Ready(Err(Error::ForkedChild { .. }))
                ));
            }
            assert!(matches!(
                poll(&mut future, Waker::noop()),
                Poll::Ready(Err(Error::ForkedChild { .. }))
            ));
            drop(future);
            assert!(done.is_done());
            assert!(!format!("{timeline:?} {host:?}").is_empty());
            assert!(forked(timeline.poison()));
            host.poison();
            String::from("well")
        });
        assert_eq!((said.as_str(), status), ("well", 0));
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

// Random programs.

/// Numbers from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % bound
    }
}

/// A program that did not come to its end in time.
#[derive(Debug, PartialEq, Eq)]
struct Hang {
    seed: u64,
}

/// What random programs have to work with.
struct Stage {
    streams: Vec<Arc<Stream>>,
    context: Context,
}

impl Stage {
    fn new(gpu: &Gpu) -> Self {
        // As many as make a GPU's channels be shared.
        let streams = if Door::chosen() == Door::Native { 64 } else { 12 };
        let streams = (0..streams).map(|_| Arc::new(gpu.stream())).collect();
        Self { streams, context: gpu.context.clone() }
    }

    /// Some threads submit signals and waits for points, each chosen at random among those that
    /// exist by then, and stages of the host that wait for one point and signal another. With
    /// `planted` two streams also wait ahead for each other, each before its own signal.
    fn run(&self, seed: u64, limit: Duration, planted: bool) -> Result<(), Hang> {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let threads = 1 + random.below(3);
        let operations = 8 + random.below(24);
        let timelines: Vec<Timeline> = (0..2 + random.below(self.streams.len()))
            .map(|_| {
                let stream = &self.streams[random.below(self.streams.len())];
                Timeline::new(Arc::clone(stream)).expect("a timeline")
            })
            .collect();
        let host = HostTimeline::new(&self.context).expect("a timeline");
        let points = Mutex::new(Vec::new());
        if planted {
            let [first, second] = [&timelines[0], &timelines[1]];
            let (one, other) = (&self.streams[0], &self.streams[1]);
            let (one, other) = (
                Timeline::new(Arc::clone(one)).expect("a timeline"),
                Timeline::new(Arc::clone(other)).expect("a timeline"),
            );
            let ahead = other.submitted().expect("no fork") + 1;
            other.wait_ahead(one.stream(), ahead).expect("a wait");
            let point = one.signal().expect("a signal");
            other.stream().wait_point(point).expect("a wait");
            let end = other.signal().expect("a signal");
            points.lock().expect("no panic").extend([point, end]);
            // Whoever has these streams is held up as well.
            drop((first.signal(), second.signal()));
            let result = self.submit(seed, limit, 1, 4, &timelines, &host, &points);
            // Breaks the circle: the streams are released, and can be used again.
            other.poison().expect("a write");
            return result;
        }
        self.submit(seed, limit, threads, operations, &timelines, &host, &points)
    }

    #[allow(clippy::too_many_arguments)]
    fn submit(
        &self,
        seed: u64,
        limit: Duration,
        threads: usize,
        operations: usize,
        timelines: &[Timeline],
        host: &HostTimeline,
        points: &Mutex<Vec<Point>>,
    ) -> Result<(), Hang> {
        let hang = || Err(Hang { seed });
        let results: Vec<Result<(), Hang>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..threads)
                .map(|thread| {
                    let mut random =
                        Random((seed << 8 | thread as u64).wrapping_mul(0xD134_2543_DE82_EF95) | 1);
                    scope.spawn(move || {
                        for _ in 0..operations {
                            let chosen = {
                                let points = points.lock().expect("no panic");
                                (!points.is_empty()).then(|| points[random.below(points.len())])
                            };
                            match (random.below(8), chosen) {
                                (0..=2, _) | (_, None) => {
                                    let timeline = &timelines[random.below(timelines.len())];
                                    let point = timeline.signal().expect("a signal");
                                    points.lock().expect("no panic").push(point);
                                }
                                (3..=6, Some(point)) => {
                                    let stream = &self.streams[random.below(self.streams.len())];
                                    stream.wait_point(point).expect("a wait");
                                }
                                (_, Some(point)) => {
                                    // A stage of the host.
                                    if point.wait_timeout(limit) != Ok(Progress::Done) {
                                        return hang();
                                    }
                                    let point = host.signal().expect("a signal");
                                    points.lock().expect("no panic").push(point);
                                }
                            }
                        }
                        Ok(())
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        results.into_iter().collect::<Result<(), Hang>>()?;
        let until = Instant::now() + limit;
        for point in points.lock().expect("no panic").iter() {
            let left = until.saturating_duration_since(Instant::now());
            if point.wait_timeout(left) != Ok(Progress::Done) {
                return hang();
            }
        }
        Ok(())
    }
}

#[test]
fn no_random_program_of_points_hangs() {
    const PROGRAMS: u64 = 3000;
    let Some(gpu) = gpu() else { return };
    let stage = Stage::new(&gpu);
    let first = std::env::var("CUDA_EVENTS_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
    let seeds = first.map_or(0..PROGRAMS, |seed: u64| seed..seed + 1);
    for seed in seeds {
        if let Err(Hang { seed }) = stage.run(seed, PATIENCE, false) {
            let _ =
                writeln!(std::io::stderr(), "the program of CUDA_EVENTS_TEST_SEED={seed} hangs");
            std::process::abort();
        }
    }
}

/// The same programs hang when one wait ahead closes a circle, and the test says which one. Poison
/// breaks the circle.
#[test]
fn a_wait_ahead_that_closes_a_circle_hangs() {
    common::own_process!("deadlock=hang");
    let Some(gpu) = gpu() else { return };
    let stage = Stage::new(&gpu);
    for seed in 0..5 {
        assert_eq!(stage.run(seed, Duration::from_millis(100), true), Err(Hang { seed }));
        for stream in &stage.streams {
            idle(stream);
        }
        assert_eq!(stage.run(seed, PATIENCE, false), Ok(()));
    }
}

/// An event is not needed for it, and goes together with it.
#[test]
fn points_and_events_order_one_program() {
    let Some(gpu) = gpu() else { return };
    let timeline = timeline(&gpu);
    let (middle, last) = (gpu.stream(), crate::timelines::timeline(&gpu));
    let latch = Latch::hold(timeline.stream());
    let point = timeline.signal().expect("a signal");
    middle.wait_point(point).expect("a wait");
    let event = middle.record_event(EventFlags::empty()).expect("a record");
    last.stream().wait_event(&event).expect("a wait");
    let end = last.signal().expect("a signal");
    assert!(!end.is_done());
    latch.release();
    reached(end);
    assert_eq!(event.query(), Ok(Progress::Done));
    // The driver is given each value once, at one address.
    let driver = counting(gpu.driver);
    let context = Device::new(driver, 0).and_then(Context::primary).expect("a context");
    let counted = Timeline::new(Stream::new(&context, StreamOptions::new()).expect("a stream"));
    let counted = counted.expect("a timeline");
    let ((), made) = calls_with_arguments(|| (0..3).for_each(|_| drop(counted.signal())));
    let written: Vec<_> = made.iter().map(|(_, arguments)| (arguments[1], arguments[2])).collect();
    assert!(written.windows(2).all(|pair| pair[1] == (pair[0].0, pair[0].1 + 1)), "{written:?}");
}
