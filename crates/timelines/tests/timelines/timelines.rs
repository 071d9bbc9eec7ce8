//! Timelines: signals, and everybody who waits for them.

use crate::common;

use std::future::IntoFuture;
use std::hash::BuildHasher as _;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context as TaskContext, Poll, Waker};
use std::time::{Duration, Instant};

use common::counting::{calls, counted_context};
use common::futures::wait_until;
use common::hooked::{Hooked, hook_in};
use common::timelines::{PATIENCE, WAIT, WRITE, gpu, idle, reached, timeline};
use common::{Gpu, Latch, check, needs, own_process};
use cuda_events::sys::{CUresult, Function};
use cuda_events::{Context, Device, Progress, Stream, StreamOptions, StreamRef};
use cuda_soft_driver::{SoftDriver, Time};
use cuda_timelines::{CudaStreamExt, Error, HostTimeline, Point, Timeline};

#[test]
fn a_timeline_moves_to_another_stream_once_it_is_idle() {
    let Some(gpu) = gpu() else { return };
    let mut timeline = timeline(&gpu);
    let other = || Stream::new(&gpu.context, StreamOptions::new()).expect("a stream");
    let latch = Latch::hold(timeline.stream());
    let first = timeline.signal().expect("a signal");
    let held = timeline.stream().as_raw();
    assert_eq!(timeline.move_to(other()), Ok(false), "two streams would write it");
    assert_eq!(timeline.stream().as_raw(), held);
    latch.release();
    reached(first);
    assert_eq!(timeline.move_to(other()), Ok(true));
    assert_ne!(timeline.stream().as_raw(), held);
    let second = timeline.signal().expect("a signal");
    assert_eq!(second.value(), first.value() + 1);
    reached(second);
    assert!(first.is_done());
    let per_thread = StreamRef::per_thread_default(&gpu.context);
    assert_eq!(timeline.move_to(per_thread), Err(cuda_timelines::Error::PerThreadTimeline));
    // Nor to one of another context.
    let soft = cuda_soft_driver::SoftDriver::builder().devices(2).build();
    let [here, there] = [0, 1].map(|device| {
        let device = Device::new(soft.driver(), device).expect("a device");
        Stream::new(&Context::primary(device).expect("a context"), StreamOptions::new())
            .expect("a stream")
    });
    let mut elsewhere = Timeline::new(here).expect("a timeline");
    let refused = elsewhere.move_to(there).expect_err("a stream of another context");
    assert_eq!(refused, Error::ContextMismatch { device: 1, other_device: 0 });
    let text = "no call was made: the stream belongs to a context of device 1, and the timeline,";
    assert!(refused.to_string().starts_with(text), "{refused}");
    reached(elsewhere.signal().expect("a signal"));
    reached(timeline.signal().expect("a signal"));
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
    // Those of another timeline are others, whatever their values.
    let hosts = [(); 2].map(|()| HostTimeline::new(&gpu.context).expect("a timeline"));
    let [mut here, mut there] = [0, 1].map(|at: usize| hosts[at].signal().expect("a signal"));
    let largest = here.value().max(there.value());
    while here.value() < largest {
        here = hosts[0].signal().expect("a signal");
    }
    while there.value() < largest {
        there = hosts[1].signal().expect("a signal");
    }
    assert!(here.value() == there.value() && here != there);
    assert_eq!(std::collections::HashSet::from([one, copy, two, here, there]).len(), 4);
    // So that a set of one timeline's points is quick.
    let state = std::hash::RandomState::new();
    let [first, same, next] = [one, copy, two].map(|point| state.hash_one(point));
    assert!(first == same && first != next);
    drop(hosts);
    assert_eq!(size_of::<Point>(), 3 * size_of::<usize>());
    reached(two);
    assert_eq!(format!("{one:?}"), format!("Point {{ value: {}, is_done: true }}", one.value()));
    assert!(format!("{timeline:?}").starts_with("Timeline { completed: "), "{timeline:?}");
    // Points outlive their timeline and the driver.
    drop((timeline, gpu));
    assert!(one.is_done() && two.is_done());
}

/// Looking costs no driver call; a signal and a wait cost one, and what is over costs none.
#[test]
fn what_it_costs_in_driver_calls() {
    own_process!();
    let Some(gpu) = gpu() else { return };
    let context = counted_context(gpu.driver);
    let (stream, other) =
        (Stream::new(&context, StreamOptions::new()), Stream::new(&context, StreamOptions::new()));
    let (stream, other) = (Arc::new(stream.expect("a stream")), other.expect("a stream"));
    // The first one may take a page.
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

/// While a future waits for the same timeline, a question makes no event of its own. The question
/// is one call, and disturbs no capture.
#[test]
fn a_query_shares_the_event_of_those_who_wait() {
    const MODE: Function = Function::cuThreadExchangeStreamCaptureMode;
    let Some(gpu) = gpu() else { return };
    let context = counted_context(gpu.driver);
    let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
    let timeline = Timeline::new(stream).expect("a timeline");
    let latch = Latch::hold(timeline.stream());
    let point = timeline.signal().expect("a signal");
    let pending = || calls(|| assert_eq!(point.query(), Ok(Progress::Pending))).1;
    let made = pending();
    let count = |of| made.iter().filter(|function| **function == of).count();
    assert_eq!([Function::cuEventCreate, Function::cuEventDestroy_v2].map(count), [1, 1]);
    let mut future = point.into_future();
    assert_eq!(pin!(&mut future).poll(&mut TaskContext::from_waker(Waker::noop())), Poll::Pending);
    assert_eq!(pending(), [MODE, Function::cuEventQuery, MODE]);
    drop(future);
    assert!(pending().contains(&Function::cuEventCreate));
    latch.release();
    reached(point);
}

/// A host's timeline makes no driver call but for the waits of streams.
#[test]
fn what_a_hosts_timeline_costs_in_driver_calls() {
    let Some(gpu) = gpu() else { return };
    let context = counted_context(gpu.driver);
    let stream = || Stream::new(&context, StreamOptions::new()).expect("a stream");
    let (stream, far) = (stream(), stream());
    // The first one may take a page.
    let first = HostTimeline::new(&context).expect("a timeline");
    let ends: [fn(HostTimeline); 2] = [|host| host.poison(), drop];
    for end in ends {
        let (timeline, made) = calls(|| HostTimeline::new(&context).expect("a timeline"));
        assert_eq!(made, []);
        let (point, made) = calls(|| timeline.signal().expect("a signal"));
        assert_eq!(made, []);
        let looks = calls(|| (timeline.completed(), point.is_done(), point.query()));
        assert_eq!(looks, ((point.value(), true, Ok(Progress::Done)), vec![]));
        assert_eq!(calls(|| timeline.wait_ahead(&stream, point.value())), (Ok(()), vec![]));
        let ahead = point.value() + 1;
        assert_eq!(calls(|| timeline.wait_ahead(&stream, ahead)), (Ok(()), vec![WAIT]));
        // Larger than any, which the stream would take for a negative number.
        assert_eq!(calls(|| timeline.wait_ahead(&far, u64::MAX)), (Ok(()), vec![WAIT]));
        assert_eq!((stream.query(), far.query()), (Ok(Progress::Pending), Ok(Progress::Pending)));
        assert_eq!(calls(|| end(timeline)), ((), vec![]));
        idle(&stream);
        idle(&far);
    }
    drop(first);
}

/// Where other code may capture in the stream, the driver is asked before each write.
#[test]
fn a_stream_of_other_code_is_asked_for_captures() {
    own_process!();
    const CAPTURES: Function = Function::cuStreamIsCapturing;
    let Some(gpu) = gpu() else { return };
    let context = counted_context(gpu.driver);
    let own = Arc::new(Stream::new(&context, StreamOptions::new()).expect("a stream"));
    // SAFETY: the stream lives until the end of the test.
    let named = unsafe { StreamRef::from_raw(&context, own.as_raw()) };
    let foreign = Timeline::new(named).expect("a timeline");
    assert_eq!(calls(|| foreign.signal().is_ok()), (true, vec![CAPTURES, WRITE]));
    assert_eq!(calls(|| foreign.poison()), (Ok(()), vec![CAPTURES, WRITE]));
    let timeline = Timeline::new(Arc::clone(&own)).expect("a timeline");
    assert_eq!(calls(|| timeline.signal().is_ok()), (true, vec![WRITE]));
    assert_eq!(calls(|| timeline.poison()), (Ok(()), vec![WRITE]));
}

/// The timeline's stream waits ahead for the timeline and is full, so that a signal is blocked.
#[test]
fn poison_ends_a_blocked_signal() {
    let Some(gpu) = gpu() else { return };
    let timeline = Arc::new(timeline(&gpu));
    timeline.wait_ahead(timeline.stream(), timeline.completed() + 1_000_000).expect("a wait");
    let signals = Arc::new(AtomicU64::new(0));
    let (blocked, counted) = (Arc::clone(&timeline), Arc::clone(&signals));
    let blocked = std::thread::spawn(move || {
        loop {
            if let Err(error) = blocked.signal() {
                return error;
            }
            counted.fetch_add(1, Ordering::Relaxed);
        }
    });
    let before = AtomicU64::new(0);
    wait_until("the stream is full", || {
        std::thread::sleep(Duration::from_millis(50));
        let count = signals.load(Ordering::Relaxed);
        count > 500 && count == before.swap(count, Ordering::Relaxed)
    });
    let poisoned = Arc::clone(&timeline);
    let poison = std::thread::spawn(move || poisoned.poison());
    wait_until("poison returns", || poison.is_finished() && blocked.is_finished());
    assert_eq!(poison.join().expect("no panic"), Ok(()));
    assert_eq!(blocked.join().expect("no panic"), Error::Poisoned);
    idle(timeline.stream());
}

/// A later value would hold back the streams again that poison has released.
#[test]
fn nothing_is_signalled_after_poison() {
    let Some(gpu) = gpu() else { return };
    let (timeline, stream) = (timeline(&gpu), gpu.stream());
    let last = timeline.signal().expect("a signal");
    timeline.wait_ahead(&stream, last.value() + 9).expect("a wait");
    timeline.poison().expect("a write");
    assert_eq!(timeline.signal(), Err(Error::Poisoned));
    assert_eq!(timeline.poison(), Ok(()));
    idle(&stream);
    reached(last);
    assert_eq!((timeline.completed(), timeline.submitted()), (last.value(), Ok(last.value())));
}

/// A wait queries the driver every five milliseconds, and no more often.
#[test]
fn a_waiter_asks_the_driver_seldom() {
    let Some(gpu) = gpu() else { return };
    let context = counted_context(gpu.driver);
    let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
    let timeline = Timeline::new(stream).expect("a timeline");
    let latch = Latch::hold(timeline.stream());
    let point = timeline.signal().expect("a signal");
    for wait in [Point::wait_timeout, Point::spin_timeout] {
        let started = Instant::now();
        // A wait whose thread stood still for all of its time may end without a question.
        let made = loop {
            let (result, made) = calls(|| wait(&point, Duration::from_millis(50)));
            assert_eq!(result, Ok(Progress::Pending));
            assert!(started.elapsed() < PATIENCE, "it never asks");
            if !made.is_empty() {
                break made;
            }
        };
        let count = |of| made.iter().filter(|function| **function == of).count();
        let (asked, most) = (count(Function::cuEventQuery), started.elapsed().as_millis() / 5);
        assert!((1..=most).contains(&(asked as u128)), "{asked} of {most}");
        assert_eq!(count(Function::cuEventCreate), 1);
    }
    drop(latch);
    reached(point);
}

fn hooked() -> Option<Hooked> {
    let hooked = Hooked::new();
    (needs(hooked.gpu.driver, WRITE) && needs(hooked.gpu.driver, WAIT)).then_some(hooked)
}

/// Threads signal one timeline at once: the values are in the order of the writes.
#[test]
fn threads_signal_at_once_and_the_value_rises() {
    const THREADS: u64 = 8;
    const EACH: u64 = 250;
    let Some(hooked) = hooked() else { return };
    // In the order in which the driver is called.
    let written = Arc::new(Mutex::new(Vec::new()));
    let note = Arc::clone(&written);
    hook_in(move |function, value, answer| {
        if function == WRITE && answer.is_none() {
            note.lock().expect("no panic").push(value as u64);
        }
        None
    });
    let stream = Stream::new(&hooked.context, StreamOptions::new()).expect("a stream");
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
    let written = std::mem::take(&mut *written.lock().expect("no panic"));
    assert!(written.into_iter().eq(start + 1..=start + THREADS * EACH), "in this order");
    assert_eq!(timeline.completed(), start + THREADS * EACH);
}

/// No other signal gets between a value and its write: while the one is with the driver, another
/// does not return.
#[test]
fn a_value_and_its_place_in_the_stream_are_one_step() {
    /// How long the first signal is held up in the driver's call, for the other one to come.
    const TURNS: usize = 20_000;
    let Some(hooked) = hooked() else { return };
    let [armed, inside, returned, overtaken] = [(); 4].map(|()| Arc::new(AtomicBool::new(false)));
    let seen = [&armed, &inside, &returned, &overtaken].map(Arc::clone);
    hook_in(move |function, _, answer| {
        let [armed, inside, returned, overtaken] = &seen;
        if function != WRITE || answer.is_some() || !armed.swap(false, Ordering::SeqCst) {
            return None;
        }
        inside.store(true, Ordering::SeqCst);
        for _ in 0..TURNS {
            if returned.load(Ordering::SeqCst) {
                overtaken.store(true, Ordering::SeqCst);
                return None;
            }
            std::thread::yield_now();
        }
        None
    });
    let stream = Stream::new(&hooked.context, StreamOptions::new()).expect("a stream");
    let timeline = Timeline::new(stream).expect("a timeline");
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            wait_until("the first is in its call", || inside.load(Ordering::SeqCst));
            let point = timeline.signal().expect("a signal");
            returned.store(true, Ordering::SeqCst);
            point
        });
        armed.store(true, Ordering::SeqCst);
        let first = timeline.signal().expect("a signal");
        assert!(other.join().expect("no panic").value() > first.value());
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
    let context = counted_context(gpu.driver);
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

/// Where the driver's time is virtual, a wait ends at its limit or when the stream has come to the
/// signal, and who asks again and again waits as well.
#[test]
fn waits_go_by_the_clock_of_the_driver() {
    common::own_process!();
    const HOUR: Duration = Duration::from_secs(3600);
    let soft = SoftDriver::builder().time(Time::Virtual).build();
    let clock = soft.driver().clock().expect("the time is virtual");
    let context = Device::new(soft.driver(), 0).and_then(Context::primary).expect("a context");
    let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
    let timeline = Timeline::new(stream).expect("a timeline");
    let mut begin = clock.now();
    let mut hours = |all: u64| {
        let took = clock.now() - begin;
        begin += took;
        assert!(took >= HOUR * all as u32 && took < HOUR * all as u32 + HOUR / 60, "{took:?}");
    };
    soft.busy(timeline.stream(), 3 * HOUR);
    let point = timeline.signal().expect("a signal");
    assert_eq!(point.wait_timeout(HOUR), Ok(Progress::Pending));
    hours(1);
    assert_eq!(point.spin_timeout(HOUR), Ok(Progress::Pending));
    hours(1);
    assert_eq!(point.wait_timeout(2 * HOUR), Ok(Progress::Done));
    hours(1);
    soft.busy(timeline.stream(), HOUR);
    let point = timeline.signal().expect("a signal");
    while point.wait_timeout(Duration::ZERO) == Ok(Progress::Pending) {}
    hours(1);
    soft.busy(timeline.stream(), HOUR);
    let point = timeline.signal().expect("a signal");
    while !point.is_done() {}
    hours(1);
    // A wait whose time is up has asked.
    soft.busy(timeline.stream(), HOUR);
    let point = timeline.signal().expect("a signal");
    let code = CUresult::CUDA_ERROR_LAUNCH_FAILED;
    soft.fail_contexts(code);
    let failed = point.wait_timeout(Duration::from_nanos(1)).map_err(|error| error.code());
    assert_eq!(failed, Err(Some(code)));
}

/// A stream has waited ahead for a signal that was not the last one, and nothing is owed any more.
#[test]
fn a_hosts_timeline_gives_its_line_back() {
    // The crate's thread uses the counting driver, too.
    common::own_process!();
    let Some(gpu) = gpu() else { return };
    let context = counted_context(gpu.driver);
    let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
    let round = || {
        let host = HostTimeline::new(&context).expect("a timeline");
        host.wait_ahead(&stream, host.completed() + 1).expect("a wait");
        (0..3).for_each(|_| _ = host.signal().expect("a signal"));
        idle(&stream);
    };
    round();
    let (_, made) = calls(|| (0..200).for_each(|_| round()));
    assert!(!made.contains(&Function::cuMemHostRegister_v2), "a page for more lines");
}
