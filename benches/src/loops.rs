//! The measured operations: each as a loop of the safe layer, of C and of cudarc.
//!
//! Each loop is a function of its own under a plain name, so that callgrind's figures can be told
//! apart.

use core::hint::black_box;
use core::ptr::null_mut;
use std::time::Instant;

use cuda_events::{Event, EventFlags, Stream, StreamOptions};
use cuda_events_trace::Tracer;
use cuda_timelines::Timeline;

use crate::rig::{Handles, Rig, make_current};

/// Makes an operation so many times, stops at the first failure, and says how often it was not
/// made.
pub type Loop = fn(&Rig, u64) -> u64;

/// `name: |rig| call` is a loop over `call`, a `Result`.
macro_rules! loops {
    ($($name:ident: |$rig:ident| $(let $local:ident = $value:expr;)* $call:expr;)*) => {
        $(
            #[unsafe(no_mangle)]
            #[inline(never)]
            extern "C" fn $name($rig: &Rig, n: u64) -> u64 {
                // Two loops of one body must not become one function.
                // SAFETY: it is only a comment.
                unsafe { core::arch::asm!(concat!("/* ", stringify!($name), " */"),
                    options(nomem, nostack)) };
                $(let $local = $value;)*
                let mut left = n;
                while left != 0 {
                    if $call.is_err() {
                        break;
                    }
                    left -= 1;
                }
                left
            }
        )*
    };
}

loops! {
    safe_record: |rig| let event = &rig.event; let stream = &rig.stream; event.record(stream);
    safe_record_timing: |rig| let event = &rig.end; let stream = &rig.stream; event.record(stream);
    safe_record_shared: |rig| let event = &rig.shared; let stream = &rig.stream;
    event.record(stream);
    safe_record_default: |rig| let event = &rig.event; let stream = &rig.legacy;
    event.record(stream);
    safe_query: |rig| let event = &rig.event; pending(event.query());
    safe_synchronize: |rig| let event = &rig.event; event.synchronize();
    safe_wait: |rig| let event = &rig.event; let stream = &rig.other; stream.wait_event(event);
    safe_elapsed: |rig| let start = &rig.start; let end = &rig.end; positive(start.elapsed_ms(end));
    safe_stream_query: |rig| let stream = &rig.stream; pending(stream.query());
    safe_stream_synchronize: |rig| let stream = &rig.stream; stream.synchronize();
    safe_create_drop: |rig| let context = &rig.context; Event::new(context, EventFlags::empty());
    safe_record_event: |rig| let stream = &rig.stream; stream.record_event(EventFlags::empty());
    safe_wait_stream: |rig| let stream = &rig.stream; let other = &rig.other;
    stream.wait_stream(other);
    safe_pool: |rig| let pool = &rig.pool; pool.take();
    safe_export: |rig| let event = &rig.shared; seen(&event.ipc_descriptor());
    safe_create_drop_elsewhere: |rig| let context = &rig.context;
    Event::new(context, EventFlags::empty());
    safe_record_default_elsewhere: |rig| let event = &rig.event; let stream = &rig.legacy;
    event.record(stream);
    safe_import_close: |rig| let context = &rig.context; let descriptor = &rig.imported;
    import(context, descriptor);

    cudarc_record: |rig| let event = &rig.peer.event; let stream = &*rig.peer.stream;
    event.record(stream);
    cudarc_record_timing: |rig| let event = &rig.peer.end; let stream = &*rig.peer.stream;
    event.record(stream);
    cudarc_query: |rig| let event = &rig.peer.event; pending(event.try_is_complete());
    cudarc_synchronize: |rig| let event = &rig.peer.event; event.synchronize();
    cudarc_wait: |rig| let event = &rig.peer.event; let stream = &*rig.peer.other;
    stream.wait(event);
    cudarc_elapsed: |rig| let start = &rig.peer.start; let end = &rig.peer.end;
    positive(start.elapsed_ms(end));
    cudarc_stream_synchronize: |rig| let stream = &*rig.peer.stream; stream.synchronize();
    cudarc_create_drop: |rig| let context = &rig.peer.context; context.new_event(None);
    cudarc_record_event: |rig| let stream = &*rig.peer.stream; stream.record_event(None);
    cudarc_wait_stream: |rig| let stream = &*rig.peer.stream; let other = &*rig.peer.other;
    stream.join(other);
}

/// Done and not done are both answers, as they are to the C loop.
#[inline(always)]
fn pending<T, E>(answer: Result<T, E>) -> Result<(), E> {
    answer.map(|_| ())
}

#[inline(always)]
fn positive<E>(milliseconds: Result<f32, E>) -> Result<(), ()> {
    if milliseconds.is_ok_and(|milliseconds| milliseconds >= 0.0) { Ok(()) } else { Err(()) }
}

/// What is not copied: a caller that looks at the descriptor where it is has no copy of it either.
#[inline(always)]
fn seen<T, E>(answer: &Result<T, E>) -> Result<(), ()> {
    black_box(answer).as_ref().map(|_| ()).map_err(|_| ())
}

#[inline(always)]
fn import(
    context: &cuda_events::Context,
    descriptor: &cuda_events::IpcEventDescriptor,
) -> cuda_events::Result<Event> {
    // SAFETY: the process that exported it keeps the event until this program has ended.
    unsafe { Event::from_ipc_descriptor(context, descriptor) }
}

macro_rules! c_loops {
    ($($name:ident)*) => {
        mod c {
            use super::Handles;
            unsafe extern "C" {
                $(pub(super) fn $name(handles: &Handles, n: u64) -> u64;)*
            }
        }
        $(
            fn $name(rig: &Rig, n: u64) -> u64 {
                // SAFETY: the declaration is that of loops.c, and so are the layouts; the rig's
                // objects are alive.
                unsafe { c::$name(&rig.handles, n) }
            }
        )*
    };
}

/// Begins and ends spans. With `drained`, it then collects them.
fn spans(rig: &Rig, n: u64, drained: bool) -> u64 {
    let Some(tracer) = *rig.tracer.lock().expect("nothing panics with it") else { return n };
    for left in (1..=n).rev() {
        let span = tracer.span(&rig.stream, "span").and_then(|span| span.end(&rig.stream));
        if span.is_err() {
            return left;
        }
    }
    if !drained {
        return 0;
    }
    match tracer.drain_ready() {
        Ok(spans) => {
            let left = n - spans.len() as u64;
            // What becomes of them is their owner's.
            core::mem::forget(spans);
            left
        }
        Err(_) => n,
    }
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn safe_span(rig: &Rig, n: u64) -> u64 {
    spans(rig, n, false)
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn safe_span_drained(rig: &Rig, n: u64) -> u64 {
    spans(rig, n, true)
}

/// With a tracer that takes no anchors, and has collected as many spans before: their events are
/// ready for the next ones.
fn traced(rig: &Rig, n: u64, run: extern "C" fn(&Rig, u64) -> u64) -> u64 {
    let now = Instant::now();
    let tracer = Tracer::with_host_clock(&rig.context, move || now).expect("a tracer");
    tracer.reserve(n as usize + 1).expect("events");
    *rig.tracer.lock().expect("nothing panics with it") = Some(Box::leak(Box::new(tracer)));
    assert_eq!(spans(rig, n, true), 0, "spans were not collected");
    run(rig, n)
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn safe_signal(rig: &Rig, n: u64) -> u64 {
    let Some((timeline, _)) = rig.timeline.get() else { return n };
    n - (0..n).take_while(|_| timeline.signal().is_ok()).count() as u64
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn safe_look(rig: &Rig, n: u64) -> u64 {
    let Some((_, point)) = rig.timeline.get() else { return n };
    (0..n).filter(|_| !black_box(point).is_done()).count() as u64
}

/// With a timeline that has a point.
fn signalled(rig: &Rig, n: u64, run: extern "C" fn(&Rig, u64) -> u64) -> u64 {
    let _ = rig.timeline.get_or_init(|| {
        let stream = Stream::new(&rig.context, StreamOptions::new()).expect("a stream");
        let timeline = Timeline::new(stream).expect("a timeline");
        let point = timeline.signal().expect("a signal");
        (timeline, point)
    });
    run(rig, n)
}

c_loops! {
    c_span c_span_drained c_signal c_look
    c_record c_record_timing c_record_shared c_record_default c_get_current c_query
    c_synchronize c_wait c_elapsed c_stream_query c_stream_synchronize
    c_create_drop c_record_event c_wait_stream c_export c_import_close
}

/// Without a current context, which is restored.
fn elsewhere(rig: &Rig, n: u64, run: extern "C" fn(&Rig, u64) -> u64) -> u64 {
    make_current(rig.symbols, null_mut());
    let failed = run(rig, n);
    make_current(rig.symbols, rig.context.as_raw());
    failed
}

/// One operation, and who can do it.
pub struct Operation {
    /// What it is called in reports.
    pub name: &'static str,
    /// The C loop is the first.
    pub loops: &'static [Timed],
}

/// One operation of one implementation.
pub struct Timed {
    /// The loop's function: the implementation's name, an underscore, what it does.
    pub function: &'static str,
    pub run: Loop,
}

impl Timed {
    pub fn implementation(&self) -> &'static str {
        self.function.split_once('_').map_or(self.function, |(implementation, _)| implementation)
    }
}

macro_rules! operation {
    ($name:literal: $($function:ident $(($place:ident))?)*) => {
        Operation {
            name: $name,
            loops: &[$(Timed {
                function: stringify!($function),
                run: |rig, n| operation!(@run rig, n, $function $(($place))?),
            }),*],
        }
    };
    (@run $rig:ident, $n:ident, $function:ident) => { $function($rig, $n) };
    (@run $rig:ident, $n:ident, $function:ident ($place:ident)) => { $place($rig, $n, $function) };
}

const OPERATIONS: &[Operation] = &[
    operation!("record": c_record safe_record cudarc_record),
    operation!("query, done": c_query safe_query cudarc_query),
    operation!("synchronize, done": c_synchronize safe_synchronize cudarc_synchronize),
    operation!("stream wait": c_wait safe_wait cudarc_wait),
    operation!("elapsed": c_elapsed safe_elapsed cudarc_elapsed),
    operation!("stream query": c_stream_query safe_stream_query),
    operation!("stream synchronize, idle":
        c_stream_synchronize safe_stream_synchronize cudarc_stream_synchronize),
    operation!("record, timing": c_record_timing safe_record_timing cudarc_record_timing),
    operation!("record, interprocess": c_record_shared safe_record_shared),
    operation!("create + drop": c_create_drop safe_create_drop cudarc_create_drop),
    operation!("record_event + drop": c_record_event safe_record_event cudarc_record_event),
    operation!("wait_stream": c_wait_stream safe_wait_stream cudarc_wait_stream),
    operation!("pool take + return": c_create_drop safe_pool),
    operation!("record, default stream": c_record_default safe_record_default),
    operation!("IPC export, again": c_export safe_export),
    operation!("IPC import + close": c_import_close safe_import_close),
    // With no context current for the safe layer; C needs one.
    operation!("create + drop, not current": c_create_drop safe_create_drop_elsewhere(elsewhere)),
    operation!("record, default stream, not current":
        c_record_default safe_record_default_elsewhere(elsewhere)),
    // What creation and default streams cannot do without.
    operation!("ask for the current context": c_get_current),
];

/// Only their instructions are counted: who measures the time of spans measures work in them, too.
const COUNTED: &[Operation] = &[
    operation!("span": c_span safe_span(traced)),
    operation!("span, drained": c_span_drained safe_span_drained(traced)),
    operation!("signal": c_signal safe_signal(signalled)),
    operation!("look at a point": c_look safe_look(signalled)),
];

/// The variable with a word that the names of the wanted operations have; the processes that
/// measure inherit it.
pub const MATCHING: &str = "EVENTS_BENCH_MATCHING";

/// The operations that are wanted.
pub fn operations() -> Vec<&'static Operation> {
    let word = std::env::var(MATCHING).unwrap_or_default();
    OPERATIONS.iter().filter(|operation| operation.name.contains(&word)).collect()
}

/// Makes every loop once, for callgrind to count, and says which they are.
pub fn count(rig: &Rig, n: u64) {
    println!("compilers\t{}; {}", env!("BENCH_RUSTC"), env!("BENCH_CC"));
    let mut counted = Vec::new();
    for operation in OPERATIONS.iter().chain(COUNTED) {
        for timed in operation.loops {
            println!("{}\t{}\t{}", operation.name, timed.implementation(), timed.function);
            if !counted.contains(&timed.function) {
                counted.push(timed.function);
                assert_eq!((timed.run)(rig, n), 0, "calls of {} failed", timed.function);
            }
        }
    }
}
