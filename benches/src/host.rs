//! Host code between two stages of a stream: by a host function, or by a waiter and a timeline that
//! the host advances. What it costs to submit, how soon the host's part begins, and how soon the
//! stream goes on after it.

use core::ffi::c_void;
use core::hint::{black_box, spin_loop};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use cuda_events::mem_ops::{WaitCondition, WaitValueFlags, WriteValueFlags};
use cuda_events::sys::CUresult;
use cuda_events::{Context, Event, EventFlags, Stream, StreamOptions, StreamRef};
use cuda_timelines::{CudaStreamExt, HostTimeline, Timeline};
use serde_json::{Value, json};

use crate::completions::{launch, nanoseconds, short, wait};
use crate::rounds::{percentile, rounded, spread};
use crate::timelines::{Between, Bytes};

/// How many are submitted at once: fewer than a queue of the driver's holds.
const BATCH: u64 = 100;
/// A wait that takes longer than this has hung.
const PATIENCE: Duration = Duration::from_secs(20);

pub fn measure(context: &Context, samples: usize, report: &mut impl FnMut(Value)) {
    submits(context, samples.div_ceil(10), report);
    let bytes = Bytes::new(context);
    for between in [Between::Nothing, Between::Memset(&bytes)] {
        stages(context, between, samples, report);
    }
}

fn timeline(context: &Context) -> Timeline {
    let stream = Stream::new(context, StreamOptions::new()).expect("a stream");
    Timeline::new(stream).expect("a timeline")
}

/// Nanoseconds to submit the host's part of a stage.
fn submits(context: &Context, rounds: usize, report: &mut impl FnMut(Value)) {
    extern "C" fn nothing(data: *mut c_void) {
        black_box(data);
    }
    let timeline = timeline(context);
    let stream = timeline.stream();
    let host = HostTimeline::new(context).expect("a timeline");
    let ways: [(&str, &dyn Fn(u64)); 4] = [
        ("cuLaunchHostFunc", &|_| launch(stream, Some(nothing), null_mut())),
        ("launch_host_function", &|_| {
            stream.launch_host_function(|| _ = black_box(0)).expect("a host function");
        }),
        ("a point, and a wait for a HostTimeline", &|next| {
            timeline.signal().expect("a signal");
            host.wait_ahead(stream, next).expect("a wait");
        }),
        ("a Completion, and a wait for a HostTimeline", &|next| {
            drop(stream.completion().expect("a completion"));
            host.wait_ahead(stream, next).expect("a wait");
        }),
    ];
    let mut times: [Vec<f64>; 4] = Default::default();
    // The first round warms up.
    for round in 0..rounds + 1 {
        for turn in 0..ways.len() {
            let at = (turn + round) % ways.len();
            let before = host.completed();
            let started = Instant::now();
            (1..=BATCH).for_each(|next| ways[at].1(before + next));
            let elapsed = started.elapsed();
            for _ in 0..BATCH {
                host.signal().expect("a signal");
            }
            stream.synchronize().expect("no work fails");
            if round > 0 {
                times[at].push(elapsed.as_nanos() as f64 / BATCH as f64);
            }
        }
    }
    for ((way, _), times) in ways.iter().zip(times) {
        report(json!({
            "kind": "host submit", "way": way, "rounds": times.len(), "ns": spread(times),
        }));
    }
}

const NOTHING: &str = "nothing";
const FUNCTION: &str = "host function";
const WAYS: [&str; 7] = [
    NOTHING,
    FUNCTION,
    "point that spins, HostTimeline",
    "point that sleeps, HostTimeline",
    "event that spins, HostTimeline",
    "event with BLOCKING_SYNC, HostTimeline",
    "Completion, HostTimeline",
];

/// Two words of the host's memory that streams wait for and write, each in a line of its own.
struct Words<'a> {
    context: &'a Context,
    memory: *mut c_void,
    address: u64,
}

/// Where the second word is.
const SEEN: usize = 128;

// SAFETY: the words are only used as atomics.
unsafe impl Sync for Words<'_> {}

impl<'a> Words<'a> {
    fn new(context: &'a Context) -> Self {
        const DEVICEMAP: u32 = 2;
        let symbols = context.driver().symbols();
        let (mut memory, mut address) = (null_mut(), 0);
        // SAFETY: a place for the memory; the context is current.
        let code = unsafe { (symbols.cuMemHostAlloc)(&mut memory, 2 * SEEN, DEVICEMAP) };
        assert_eq!(code, CUresult::CUDA_SUCCESS, "cuMemHostAlloc failed");
        // SAFETY: a place for the address; the memory is mapped.
        let code = unsafe { (symbols.cuMemHostGetDevicePointer_v2)(&mut address, memory, 0) };
        assert_eq!(code, CUresult::CUDA_SUCCESS, "cuMemHostGetDevicePointer failed");
        let words = Self { context, memory, address };
        words.gate().store(0, Ordering::SeqCst);
        words.seen().store(0, Ordering::SeqCst);
        words
    }

    fn word(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: aligned words of the memory, which lives as long as this.
        unsafe { &*self.memory.cast::<u8>().add(offset).cast::<AtomicU32>() }
    }

    /// The stream goes on when this has the sample's number.
    fn gate(&self) -> &AtomicU32 {
        self.word(0)
    }

    /// Where the stream's next work writes it.
    fn seen(&self) -> &AtomicU32 {
        self.word(SEEN)
    }

    fn wait(&self, stream: &StreamRef, number: u32) {
        let (condition, flags) = (WaitCondition::Equal, WaitValueFlags::empty());
        // SAFETY: the memory is freed when the stream is done.
        let waits = unsafe { stream.wait_value32(self.address, number, condition, flags) };
        waits.expect("a wait for a value in memory");
    }

    fn write(&self, stream: &StreamRef, number: u32) {
        let (address, flags) = (self.address + SEEN as u64, WriteValueFlags::empty());
        // SAFETY: as above.
        let writes = unsafe { stream.write_value32(address, number, flags) };
        writes.expect("a write of a value in memory");
    }
}

impl Drop for Words<'_> {
    fn drop(&mut self) {
        // SAFETY: the streams are done.
        let _ = unsafe { (self.context.driver().symbols().cuMemFreeHost)(self.memory) };
    }
}

/// Spins until it holds.
fn until(base: Instant, what: &str, holds: impl Fn() -> bool) -> u64 {
    let started = Instant::now();
    while !holds() {
        spin_loop();
        assert!(started.elapsed() < PATIENCE, "{what} did not come in 20 s");
    }
    nanoseconds(base)
}

/// When a sample's steps were, in nanoseconds.
#[derive(Default)]
struct Times {
    opened: AtomicU64,
    /// The host's part: its begin and its end.
    begun: AtomicU64,
    ended: AtomicU64,
}

/// `between` is the stage before the host's part: the stream does it when the gate opens.
fn stages(context: &Context, between: Between, samples: usize, report: &mut impl FnMut(Value)) {
    let base = Instant::now();
    let (timeline, host) = (timeline(context), HostTimeline::new(context).expect("a timeline"));
    let words = Words::new(context);
    let times = Arc::new(Times::default());
    // Another thread opens the gate, so that the waiter waits by then.
    let (asked, stops) = (AtomicU32::new(0), AtomicBool::new(false));
    let (mut to_host, mut back): ([Vec<f64>; 7], [Vec<f64>; 7]) = Default::default();
    let mut number = 0;
    std::thread::scope(|scope| {
        let opener = scope.spawn(|| {
            let mut done = 0;
            while !stops.load(Ordering::Acquire) {
                let number = asked.load(Ordering::Acquire);
                if number == done {
                    std::thread::park();
                    continue;
                }
                let from = Instant::now();
                while from.elapsed() < short(number as usize) {
                    spin_loop();
                }
                times.opened.store(nanoseconds(base), Ordering::Relaxed);
                words.gate().store(number, Ordering::SeqCst);
                done = number;
            }
        });
        // A failed assertion does not leave it waiting.
        let _ends = Ends(|| {
            stops.store(true, Ordering::Release);
            opener.thread().unpark();
        });
        let open = |number| {
            asked.store(number, Ordering::Release);
            opener.thread().unpark();
        };
        for sample in 0..samples {
            for turn in 0..WAYS.len() {
                let at = (turn + sample) % WAYS.len();
                number += 1;
                let way = WAYS[at];
                let seen =
                    stage(way, between, base, number, &timeline, &host, &words, &times, &open);
                timeline.stream().synchronize().expect("no work fails");
                let Some(seen) = seen else { continue };
                let at_step = |time: &AtomicU64| time.load(Ordering::Acquire) as f64;
                let (opened, begun, ended) =
                    (at_step(&times.opened), at_step(&times.begun), at_step(&times.ended));
                let from = if WAYS[at] == NOTHING { opened } else { ended };
                back[at].push((seen as f64 - from) / 1000.0);
                if WAYS[at] != NOTHING {
                    to_host[at].push((begun - opened) / 1000.0);
                }
            }
        }
    });
    for ((way, to_host), back) in WAYS.into_iter().zip(to_host).zip(back) {
        report(json!({
            "kind": "host stage", "way": way, "between": between.name(), "samples": back.len(),
            "to_host_us": three(to_host), "back_us": three(back),
        }));
    }
}

struct Ends<F: Fn()>(F);

impl<F: Fn()> Drop for Ends<F> {
    fn drop(&mut self) {
        self.0();
    }
}

/// When the stream's work after the host's part was seen; none if the waiter came too late.
#[expect(clippy::too_many_arguments, reason = "they are what a sample consists of")]
fn stage(
    way: &str,
    between: Between,
    base: Instant,
    number: u32,
    timeline: &Timeline,
    host: &HostTimeline,
    words: &Words<'_>,
    times: &Arc<Times>,
    open: &impl Fn(u32),
) -> Option<u64> {
    let stream = timeline.stream();
    words.wait(stream, number);
    between.submit(stream);
    let seen = || until(base, "the next work", || words.seen().load(Ordering::Acquire) == number);
    match way {
        NOTHING => {
            words.write(stream, number);
            open(number);
            return Some(seen());
        }
        FUNCTION => {
            let times = Arc::clone(times);
            let function = move || {
                times.begun.store(nanoseconds(base), Ordering::Release);
                times.ended.store(nanoseconds(base), Ordering::Release);
            };
            stream.launch_host_function(function).expect("a host function");
            words.write(stream, number);
            open(number);
            return Some(seen());
        }
        _ => {}
    }
    let flags =
        if way.contains("BLOCKING_SYNC") { EventFlags::BLOCKING_SYNC } else { EventFlags::empty() };
    let event = Event::new(stream.context(), flags).expect("an event");
    let point = timeline.signal().expect("a signal");
    event.record(stream).expect("a record");
    host.wait_ahead(stream, host.completed() + 1).expect("a wait");
    words.write(stream, number);
    open(number);
    let begun = match way {
        way if way.starts_with("point that spins") => {
            point.spin().map(|()| Some(nanoseconds(base))).expect("it comes")
        }
        way if way.starts_with("point") => {
            point.wait().map(|()| Some(nanoseconds(base))).expect("it comes")
        }
        way if way.starts_with("event") => {
            event.synchronize().map(|()| Some(nanoseconds(base))).expect("it comes")
        }
        _ => wait(base, event),
    };
    times.begun.store(begun.unwrap_or(0), Ordering::Release);
    times.ended.store(nanoseconds(base), Ordering::Release);
    host.signal().expect("a signal");
    let seen = seen();
    begun.map(|_| seen)
}

fn three(mut times: Vec<f64>) -> Value {
    times.sort_by(f64::total_cmp);
    let at = |share| rounded(percentile(&times, share));
    json!({ "p50": at(0.5), "p90": at(0.9), "p99": at(0.99) })
}
