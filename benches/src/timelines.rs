//! Timelines beside a loop in C and beside events: what looks, signals and waits cost, and how soon a
//! waiter learns of a point.

use core::ffi::c_void;
use core::hint::{black_box, spin_loop};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use core::task::{Context as TaskContext, Waker};
use std::future::{Future, IntoFuture};
use std::sync::{Arc, Barrier};
use std::task::Wake;
use std::thread::Thread;
use std::time::{Duration, Instant};

use cuda_events::mem_ops::{WaitCondition, WaitValueFlags};
use cuda_events::sys::{CUhostFn, CUresult};
use cuda_events::{Context, Event, EventFlags, Stream, StreamOptions, StreamRef};
use cuda_timelines::{CudaStreamExt, Point, Timeline};
use serde_json::{Value, json};

use crate::rounds::{percentile, rounded};

type ValueCall = unsafe extern "C" fn(*mut c_void, u64, u64, u32) -> u32;

unsafe extern "C" {
    fn c_write_value(
        write: ValueCall,
        stream: *mut c_void,
        address: u64,
        value: u64,
        n: u64,
    ) -> u64;
    fn c_wait_value(wait: ValueCall, stream: *mut c_void, address: u64, value: u64, n: u64) -> u64;
}

/// How many calls are made at once: fewer than a queue of the driver's holds.
const BATCH: u64 = 200;

pub fn measure(context: &Context, samples: usize, report: &mut impl FnMut(Value)) {
    for threads in [1, 16] {
        looks(context, threads, report);
    }
    calls(context, samples, report);
    wakes(context, samples, report);
}

fn stream(context: &Context) -> Stream {
    Stream::new(context, StreamOptions::new()).expect("a stream")
}

fn timeline(context: &Context) -> Timeline {
    Timeline::new(stream(context)).expect("a timeline")
}

/// Nanoseconds of one look, on so many threads at once: each at a point, and each at an event.
fn looks(context: &Context, threads: usize, report: &mut impl FnMut(Value)) {
    let timeline = timeline(context);
    let point = timeline.signal().expect("a signal");
    point.wait().expect("it comes");
    let event = timeline.stream().record_event(EventFlags::empty()).expect("a record");
    event.synchronize().expect("no work");
    let point_ns = at_once(threads, 1_000_000, || assert!(black_box(&point).is_done()));
    let event_ns = at_once(threads, 2_000, || assert!(event.query().is_ok()));
    report(json!({
        "kind": "timeline", "operation": "look", "threads": threads,
        "point_ns": rounded(point_ns), "event_ns": rounded(event_ns),
    }));
}

/// The median of the threads' times of a call.
fn at_once(threads: usize, times: u32, call: impl Fn() + Sync) -> f64 {
    let barrier = Barrier::new(threads);
    let mut each: Vec<f64> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(|| {
                    barrier.wait();
                    let started = Instant::now();
                    (0..times).for_each(|_| call());
                    started.elapsed().as_nanos() as f64 / f64::from(times)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    each.sort_by(f64::total_cmp);
    percentile(&each, 0.5)
}

/// Signals, and waits for a point that is pending, each beside the C loop and beside events.
fn calls(context: &Context, rounds: usize, report: &mut impl FnMut(Value)) {
    const DEVICEMAP: u32 = 2;
    let symbols = context.driver().symbols();
    let (mut memory, mut address) = (null_mut(), 0);
    // SAFETY: places for both; the context is current.
    let code = unsafe { (symbols.cuMemHostAlloc)(&mut memory, 64, DEVICEMAP) };
    assert_eq!(code, CUresult::CUDA_SUCCESS, "cuMemHostAlloc failed");
    // SAFETY: 64 bytes.
    unsafe { memory.cast::<u64>().write(0) };
    // SAFETY: a place for the address; the memory is mapped.
    let code = unsafe { (symbols.cuMemHostGetDevicePointer_v2)(&mut address, memory, 0) };
    assert_eq!(code, CUresult::CUDA_SUCCESS, "cuMemHostGetDevicePointer failed");
    let (Some(write), Some(wait)) =
        (symbols.cuStreamWriteValue64_v2, symbols.cuStreamWaitValue64_v2)
    else {
        return;
    };
    // SAFETY: the handle is a pointer, and the code an unsigned number of 32 bits.
    let call =
        |address: *const ()| unsafe { core::mem::transmute::<*const (), ValueCall>(address) };
    let (write, wait) = (call(write as *const ()), call(wait as *const ()));
    let (timeline, other) = (timeline(context), stream(context));
    let event = Event::new(context, EventFlags::empty()).expect("an event");
    let own = timeline.stream();
    let mut samples: [Vec<f64>; 6] = Default::default();
    let mut value = 0;
    let per_call = |work: &mut dyn FnMut()| {
        let started = Instant::now();
        work();
        started.elapsed().as_nanos() as f64 / BATCH as f64
    };
    for round in 0..rounds {
        // SAFETY: the stream is alive, and the address that of 8 bytes that are freed when it is
        // done.
        let c = &mut || unsafe {
            assert_eq!(c_write_value(write, own.as_raw().cast(), address, value, BATCH), 0)
        };
        let ours = &mut || (0..BATCH).for_each(|_| assert!(timeline.signal().is_ok()));
        // Each of the two is first in every other round.
        let (c, ours) = in_turn(round, || per_call(c), || per_call(ours));
        samples[0].push(c);
        samples[1].push(ours);
        value += BATCH;
        samples[2]
            .push(per_call(&mut || (0..BATCH).for_each(|_| assert!(event.record(own).is_ok()))));
        own.synchronize().expect("no work fails");
        let hold = Hold::new(own);
        let point = timeline.signal().expect("a signal");
        event.record(own).expect("a record");
        // SAFETY: as above; the value is the next one, which is written below.
        unsafe { assert_eq!(c_write_value(write, own.as_raw().cast(), address, value, 1), 0) };
        value += 1;
        // SAFETY: as above.
        let c = &mut || unsafe {
            assert_eq!(c_wait_value(wait, other.as_raw().cast(), address, value, BATCH), 0)
        };
        let ours = &mut || (0..BATCH).for_each(|_| assert!(other.wait_point(point).is_ok()));
        let (c, ours) = in_turn(round, || per_call(c), || per_call(ours));
        samples[3].push(c);
        samples[4].push(ours);
        samples[5].push(per_call(&mut || {
            (0..BATCH).for_each(|_| assert!(other.wait_event(&event).is_ok()))
        }));
        drop(hold);
        other.synchronize().expect("no work fails");
    }
    // The two of a round are made one after the other, so that what else the machine does slows
    // down both.
    let ratios = |c: usize, ours: usize| {
        let mut ratios: Vec<f64> =
            samples[ours].iter().zip(&samples[c]).map(|(ours, c)| ours / c).collect();
        ratios.sort_by(f64::total_cmp);
        [0.5, 0.1, 0.9].map(|part| rounded(percentile(&ratios, part)))
    };
    let (signal_ratios, wait_ratios) = (ratios(0, 1), ratios(3, 4));
    for samples in &mut samples {
        samples.sort_by(f64::total_cmp);
    }
    let [c_signal, signal, record, c_wait, wait, wait_event] =
        samples.each_ref().map(|times| percentile(times, 0.5));
    for (operation, c, ours, event, [ratio, low, high]) in [
        ("signal", c_signal, signal, record, signal_ratios),
        ("wait", c_wait, wait, wait_event, wait_ratios),
    ] {
        report(json!({
            "kind": "timeline", "operation": operation, "rounds": rounds, "c_ns": rounded(c),
            "point_ns": rounded(ours), "event_ns": rounded(event),
            "ratio": ratio, "ratio_p10": low, "ratio_p90": high,
        }));
    }
    // SAFETY: nothing looks at it any more.
    unsafe { (symbols.cuMemFreeHost)(memory) };
}

/// Runs both, and the second one first in every other round.
fn in_turn<T>(round: usize, first: impl FnOnce() -> T, second: impl FnOnce() -> T) -> (T, T) {
    if round.is_multiple_of(2) {
        let first = first();
        (first, second())
    } else {
        let second = second();
        (first(), second)
    }
}

/// What the stream does between the host function, whose end is noted, and the signal or the
/// record. With nothing between, the device completes an event sooner than it writes a value; with
/// work between, as programs have it, it does not.
#[derive(Clone, Copy)]
enum Between<'a> {
    Nothing,
    Memset(&'a Bytes<'a>),
}

impl Between<'_> {
    fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Memset(_) => "a memset of 4 KiB",
        }
    }

    fn submit(self, stream: &StreamRef) {
        if let Self::Memset(bytes) = self {
            bytes.set(stream);
        }
    }
}

/// 4 KiB of the device's memory.
struct Bytes<'a> {
    context: &'a Context,
    address: u64,
}

impl<'a> Bytes<'a> {
    const COUNT: usize = 4096;

    fn new(context: &'a Context) -> Self {
        let mut address = 0;
        let allocate = context.driver().symbols().cuMemAlloc_v2;
        // SAFETY: a place for the address; the context is current.
        let code = unsafe { allocate(&mut address, Self::COUNT) };
        assert_eq!(code, CUresult::CUDA_SUCCESS, "cuMemAlloc failed");
        Self { context, address }
    }

    fn set(&self, stream: &StreamRef) {
        let set = self.context.driver().symbols().cuMemsetD8Async;
        // SAFETY: so many bytes, which are freed when the stream is done.
        let code = unsafe { set(self.address, 0, Self::COUNT, stream.as_raw()) };
        assert_eq!(code, CUresult::CUDA_SUCCESS, "cuMemsetD8Async failed");
    }
}

impl Drop for Bytes<'_> {
    fn drop(&mut self) {
        // SAFETY: allocated above; the streams that wrote it are done.
        let _ = unsafe { (self.context.driver().symbols().cuMemFree_v2)(self.address) };
    }
}

const WAYS: [&str; 5] = [
    "point, spinning",
    "point, sleeping",
    "point, future",
    "event, spinning",
    "event, BLOCKING_SYNC",
];

/// How long after the end of the work its waiter runs.
fn wakes(context: &Context, samples: usize, report: &mut impl FnMut(Value)) {
    let timeline = timeline(context);
    let bytes = Bytes::new(context);
    for between in [Between::Nothing, Between::Memset(&bytes)] {
        let mut late: [Vec<f64>; 5] = Default::default();
        for sample in 0..samples {
            for (way, late) in WAYS.iter().zip(&mut late) {
                late.extend(lateness(context, &timeline, way, between, short(sample)));
            }
        }
        for (way, late) in WAYS.into_iter().zip(late) {
            report(wake_row(way, between, late));
        }
    }
}

fn wake_row(way: &str, between: Between, mut late: Vec<f64>) -> Value {
    late.sort_by(f64::total_cmp);
    json!({
        "kind": "timeline wake",
        "way": way,
        "between": between.name(),
        "p50_us": rounded(percentile(&late, 0.5)),
        "p90_us": rounded(percentile(&late, 0.9)),
        "p99_us": rounded(percentile(&late, 0.99)),
        "samples": late.len(),
    })
}

/// Work of another length each time, so that its end falls anywhere between two looks of one that
/// looks from time to time.
fn short(sample: usize) -> Duration {
    Duration::from_micros(100 + (sample as u64 * 7919) % 211)
}

/// From the end of the host function, so that what is between is in it.
fn lateness(
    context: &Context,
    timeline: &Timeline,
    way: &str,
    between: Between,
    duration: Duration,
) -> Option<f64> {
    let base = Instant::now();
    let stream = timeline.stream();
    let work = Box::new(Work { base, duration, ended: AtomicU64::new(0) });
    let data: *const Work = &raw const *work;
    let flags = if way.ends_with("BLOCKING_SYNC") {
        EventFlags::BLOCKING_SYNC
    } else {
        EventFlags::empty()
    };
    let event = Event::new(context, flags).expect("an event");
    launch(stream, Some(Work::run), data.cast_mut().cast());
    between.submit(stream);
    let woken = if way.starts_with("event") {
        event.record(stream).expect("a record");
        event.synchronize().map(|()| Some(nanoseconds(base))).expect("the event is done")
    } else {
        let point = timeline.signal().expect("a signal");
        match way {
            "point, spinning" => point.spin().map(|()| Some(nanoseconds(base))).expect("it comes"),
            "point, sleeping" => point.wait().map(|()| Some(nanoseconds(base))).expect("it comes"),
            _ => wait(base, point),
        }
    };
    stream.synchronize().expect("the stream is done");
    Some((woken? as f64 - work.ended.load(Ordering::Relaxed) as f64) / 1000.0)
}

/// When the point's future was woken; none if it was reached before.
fn wait(base: Instant, point: Point) -> Option<u64> {
    let signal =
        Arc::new(Signal { base, woken: AtomicU64::new(0), waiter: std::thread::current() });
    let waker = Waker::from(Arc::clone(&signal));
    let mut future = core::pin::pin!(point.into_future());
    if future.as_mut().poll(&mut TaskContext::from_waker(&waker)).is_ready() {
        return None;
    }
    let started = Instant::now();
    loop {
        std::thread::park_timeout(Duration::from_secs(1));
        assert!(started.elapsed() < Duration::from_secs(20), "no point was reported for 20 s");
        let woken = signal.woken.load(Ordering::Acquire);
        if woken != 0 {
            return Some(woken);
        }
    }
}

fn nanoseconds(base: Instant) -> u64 {
    base.elapsed().as_nanos() as u64
}

/// A host function that takes a while and notes when it ended.
struct Work {
    base: Instant,
    duration: Duration,
    ended: AtomicU64,
}

impl Work {
    extern "C" fn run(work: *mut c_void) {
        // SAFETY: the box lives until the stream was synchronized.
        let work = unsafe { &*work.cast::<Self>() };
        let started = Instant::now();
        while started.elapsed() < work.duration {
            spin_loop();
        }
        work.ended.store(nanoseconds(work.base), Ordering::Relaxed);
    }
}

fn launch(stream: &StreamRef, function: CUhostFn, data: *mut c_void) {
    let symbols = stream.context().driver().symbols();
    // SAFETY: the stream is alive, and the caller passes what the function takes.
    let code = unsafe { (symbols.cuLaunchHostFunc)(stream.as_raw(), function, data) };
    assert_eq!(code, CUresult::CUDA_SUCCESS, "cuLaunchHostFunc failed");
}

struct Signal {
    base: Instant,
    woken: AtomicU64,
    waiter: Thread,
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.woken.store(nanoseconds(self.base), Ordering::Release);
        self.waiter.unpark();
    }
}

/// Holds a stream until it is dropped. A host function that blocks would hold up those of all other
/// streams too.
struct Hold<'a> {
    stream: &'a StreamRef,
    word: *mut c_void,
}

impl<'a> Hold<'a> {
    fn new(stream: &'a StreamRef) -> Self {
        const DEVICEMAP: u32 = 2;
        let symbols = stream.context().driver().symbols();
        let (mut word, mut address) = (null_mut(), 0);
        // SAFETY: a place for the memory; the context is current.
        let code = unsafe { (symbols.cuMemHostAlloc)(&mut word, 64, DEVICEMAP) };
        assert_eq!(code, CUresult::CUDA_SUCCESS, "cuMemHostAlloc failed");
        let hold = Self { stream, word };
        hold.word().store(0, Ordering::SeqCst);
        // SAFETY: a place for the address; the memory is mapped.
        let code = unsafe { (symbols.cuMemHostGetDevicePointer_v2)(&mut address, word, 0) };
        assert_eq!(code, CUresult::CUDA_SUCCESS, "cuMemHostGetDevicePointer failed");
        // SAFETY: the memory is freed when the stream is done.
        let held = unsafe {
            stream.wait_value32(address, 1, WaitCondition::Equal, WaitValueFlags::empty())
        };
        held.expect("a wait for a value in memory");
        hold
    }

    fn word(&self) -> &AtomicU32 {
        // SAFETY: 64 bytes that live as long as this; all others that look at them only read.
        unsafe { &*self.word.cast::<AtomicU32>() }
    }
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        self.word().store(1, Ordering::SeqCst);
        self.stream.synchronize().expect("the stream is done");
        // SAFETY: nothing looks at it any more.
        unsafe { (self.stream.context().driver().symbols().cuMemFreeHost)(self.word) };
    }
}
