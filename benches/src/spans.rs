//! Spans of `cuda-events-trace` beside two bare timing records in C, in turns.

use core::ffi::c_void;
use std::time::{Duration, Instant};

use cuda_events::sys::{CUresult, Function};
use cuda_events::{Context, Event, EventFlags, Stream, StreamOptions};
use cuda_events_trace::Tracer;
use serde_json::{Value, json};

use crate::rounds::{rounded, spread};

unsafe extern "C" {
    fn c_work(set: *mut c_void, address: u64, stream: *mut c_void, n: u64) -> u64;
    fn c_spans(
        record: *mut c_void,
        set: *mut c_void,
        address: u64,
        stream: *mut c_void,
        events: *const *mut c_void,
        stride: u64,
        n: u64,
    ) -> u64;
    fn c_read_spans(
        elapsed: *mut c_void,
        anchor: *mut c_void,
        events: *const *mut c_void,
        n: u64,
    ) -> u64;
}

/// How many spans are timed at once: their records are fewer than a queue of the driver's holds.
const BATCH: usize = 200;
/// How many of those make a round. A tracer collects the spans of a whole round at once.
const BATCHES: usize = 10;

const SPANS: usize = BATCH * BATCHES;

/// What is timed in each batch.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Work,
    /// The same two events again and again.
    Bare,
    /// The driver calls of a tracer: two events for each span of a round, whose start and duration
    /// are read when the round is done.
    Same,
    Span,
}

const WAYS: [(Way, &str); 4] = [
    (Way::Work, "the work alone"),
    (Way::Bare, "c"),
    (Way::Same, "c, the same calls"),
    (Way::Span, "safe"),
];

pub fn measure(context: &Context, rounds: usize, report: &mut impl FnMut(Value)) {
    let stream = Stream::new(context, StreamOptions::new()).expect("a stream");
    let tracer = Tracer::new(context).expect("a tracer");
    tracer.reserve(SPANS + 10).expect("events");
    let word = Word::new(context);
    for (work, address) in [("none", 0), ("a memset of 4 bytes", word.address)] {
        measure_with(work, address, context, &stream, &tracer, rounds, report);
    }
}

/// Nanoseconds for a span of the rounds: to record it, and to read its time afterwards.
#[derive(Default)]
struct Times {
    record: Vec<f64>,
    read: Vec<f64>,
}

fn measure_with(
    work: &str,
    address: u64,
    context: &Context,
    stream: &Stream,
    tracer: &Tracer,
    rounds: usize,
    report: &mut impl FnMut(Value),
) {
    let symbols = context.driver().symbols();
    let elapsed = match symbols.cuEventElapsedTime_v2 {
        Some(_) => Function::cuEventElapsedTime_v2,
        None => Function::cuEventElapsedTime,
    };
    let [record, set, elapsed] =
        [Function::cuEventRecord, Function::cuMemsetD32Async, elapsed].map(|f| symbols.address(f));
    let events: Vec<Event> = (0..2 * SPANS)
        .map(|_| Event::new(context, EventFlags::TIMING).expect("an event"))
        .collect();
    let handles: Vec<*mut c_void> = events.iter().map(|event| event.as_raw().cast()).collect();
    let anchor = stream.record_event(EventFlags::TIMING).expect("an anchor");
    let raw = stream.as_raw().cast();
    // SAFETY of the calls of C: the functions are the driver's, the stream, the events and the word
    // are alive, and there are two events for each span of a batch.
    let run = |way: Way, events: *const *mut c_void| match way {
        // SAFETY: see above.
        Way::Work => unsafe { assert_eq!(c_work(set, address, raw, BATCH as u64), 0) },
        // SAFETY: see above.
        Way::Bare => unsafe {
            assert_eq!(c_spans(record, set, address, raw, events, 0, BATCH as u64), 0);
        },
        // SAFETY: see above.
        Way::Same => unsafe {
            assert_eq!(c_spans(record, set, address, raw, events, 2, BATCH as u64), 0);
        },
        Way::Span => {
            let set = symbols.cuMemsetD32Async;
            for _ in 0..BATCH {
                let span = tracer.span(stream, "span").expect("a span");
                if address != 0 {
                    // SAFETY: the word and the stream are alive.
                    let code = unsafe { set(address, 0, 1, stream.as_raw()) };
                    assert_eq!(code, CUresult::CUDA_SUCCESS, "cuMemsetD32Async failed");
                }
                span.end(stream).expect("the end of a span");
            }
        }
    };
    let mut times: [Times; 4] = Default::default();
    // The first round warms up.
    for round in 0..rounds + 1 {
        let (mut recorded, mut read) = ([Duration::ZERO; 4], [Duration::ZERO; 4]);
        for (batch, of_batch) in handles.as_chunks::<{ 2 * BATCH }>().0.iter().enumerate() {
            for turn in 0..WAYS.len() {
                // Another one is first each time.
                let at = (turn + batch + round) % WAYS.len();
                let way = WAYS[at].0;
                stream.synchronize().expect("the stream is done");
                let started = Instant::now();
                run(way, of_batch.as_ptr());
                recorded[at] += started.elapsed();
            }
        }
        stream.synchronize().expect("the stream is done");
        let started = Instant::now();
        // SAFETY: the events and the anchor are alive, and there are so many pairs.
        let unread = unsafe {
            c_read_spans(elapsed, anchor.as_raw().cast(), handles.as_ptr(), SPANS as u64)
        };
        read[2] = started.elapsed();
        assert_eq!(unread, 0);
        let started = Instant::now();
        let spans = tracer.drain_ready().expect("the spans");
        read[3] = started.elapsed();
        if spans.len() != SPANS {
            // An anchor that came late: this round shows nothing.
            tracer.finish(Duration::from_secs(10));
            continue;
        }
        if round > 0 {
            let each = |time: Duration| time.as_nanos() as f64 / SPANS as f64;
            for ((times, recorded), read) in times.iter_mut().zip(recorded).zip(read) {
                times.record.push(each(recorded));
                times.read.push(each(read));
            }
        }
    }
    let bare = &times[1].record;
    for ((way, name), own) in WAYS.iter().zip(&times) {
        if *way == Way::Work && address == 0 {
            continue;
        }
        let pairs = |of: &dyn Fn(f64, f64) -> f64| {
            own.record.iter().zip(&own.read).map(|(a, b)| of(*a, *b)).collect()
        };
        let ratios = |values: Vec<f64>| -> Value {
            spread(values.iter().zip(bare).map(|(value, bare)| value / bare).collect())
        };
        let mut row = json!({
            "kind": "span",
            "work": work,
            "implementation": name,
            "ns": spread(own.record.clone()),
            "min_ns": rounded(own.record.iter().copied().fold(f64::INFINITY, f64::min)),
            "ratio": ratios(own.record.clone()),
            "rounds": own.record.len(),
            "spans": SPANS,
        });
        if matches!(way, Way::Same | Way::Span) {
            row["read_ns"] = spread(own.read.clone());
            row["whole_ratio"] = ratios(pairs(&|record, read| record + read));
        }
        report(row);
    }
}

/// A word of the device's memory.
struct Word<'a> {
    context: &'a Context,
    address: u64,
}

impl<'a> Word<'a> {
    fn new(context: &'a Context) -> Self {
        let mut address = 0;
        // SAFETY: a place for the address; the context is current.
        let code = unsafe { (context.driver().symbols().cuMemAlloc_v2)(&mut address, 4) };
        assert_eq!(code, CUresult::CUDA_SUCCESS, "cuMemAlloc failed");
        Self { context, address }
    }
}

impl Drop for Word<'_> {
    fn drop(&mut self) {
        // SAFETY: allocated above; the streams that wrote it are done.
        let _ = unsafe { (self.context.driver().symbols().cuMemFree_v2)(self.address) };
    }
}
