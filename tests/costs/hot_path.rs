//! How many driver calls each operation makes, which, and what becomes of their arguments and
//! answers: counted in front of the driver under test.
//!
//! Each case runs twice, each time in a process of its own: with one driver library, where an
//! operation goes straight to the driver, and with two, where it looks at its objects first.

#![allow(non_upper_case_globals, reason = "patterns have the driver's names")]

use crate::common;

use std::sync::Arc;
use std::time::{Duration, Instant};

use common::counting::{calls, calls_with_arguments, counting};
use common::{Gpu, Latch, TestDriver};
use cuda_events::capture::{CaptureMode, RecordFlags, WaitFlags};
use cuda_events::ext::{StreamScope, current_stream};
use cuda_events::graph::Graph;
use cuda_events::sys::Function;
use cuda_events::sys::functions::*;
use cuda_events::sys::{
    CU_EVENT_BLOCKING_SYNC, CU_EVENT_DISABLE_TIMING, CU_EVENT_INTERPROCESS,
    CU_EVENT_RECORD_EXTERNAL, CU_EVENT_WAIT_EXTERNAL, CU_STREAM_DEFAULT, CU_STREAM_NON_BLOCKING,
    CUresult,
};
use cuda_events::{
    Context, Device, Error, Event, EventFlags, EventRef, ForeignStream, Progress, Stream,
    StreamOptions, StreamRef,
};

/// A context of a counting driver, in front of the one under test.
struct Counted {
    context: Context,
}

impl Counted {
    fn new(gpu: &Gpu) -> Self {
        let device = Device::new(counting(gpu.driver), 0).expect("device 0");
        Self { context: Context::primary(device).expect("the primary context") }
    }

    fn stream(&self) -> Stream {
        Stream::new(&self.context, StreamOptions::new()).expect("a stream")
    }

    fn event(&self, flags: EventFlags) -> Event {
        Event::new(&self.context, flags).expect("an event")
    }
}

#[track_caller]
fn makes<T>(expected: &[Function], work: impl FnOnce() -> cuda_events::Result<T>) -> T {
    let (result, made) = calls(work);
    assert_eq!(made, expected);
    result.expect("the call succeeds")
}

/// As `makes`, for one call, by its last arguments.
#[track_caller]
fn hands<T>(expected: Function, last: &[u64], work: impl FnOnce() -> cuda_events::Result<T>) -> T {
    let (result, made) = calls_with_arguments(work);
    match &*made {
        [(function, arguments)] => {
            assert_eq!(*function, expected);
            assert!(
                arguments.ends_with(last),
                "{function} was given {arguments:?}, and not {last:?}"
            );
        }
        _ => panic!("{made:?} is not one call of {expected}"),
    }
    result.expect("the call succeeds")
}

fn word<T>(handle: *mut T) -> u64 {
    handle.addr() as u64
}

/// The one lookup of the newest elapsed-time call that the driver has.
fn elapsed_function(context: &Context) -> Function {
    match context.driver().symbols().cuEventElapsedTime_v2 {
        Some(_) => cuEventElapsedTime_v2,
        None => cuEventElapsedTime,
    }
}

#[test]
fn operations_hand_their_objects_on() {
    let gpu = &Gpu::with_virtual_time();
    let gpu = Counted::new(gpu);
    let (stream, other) = (gpu.stream(), gpu.stream());
    let (start, end) = (gpu.event(EventFlags::TIMING), gpu.event(EventFlags::TIMING));
    let graph = Graph::new(&gpu.context).expect("a graph");
    let exec = graph.instantiate().expect("an executable graph");
    let [a, b] = [&start, &end].map(|event| word(event.as_raw()));
    let [s, o] = [&stream, &other].map(|stream| word(stream.as_raw()));

    hands(cuEventRecord, &[a, s], || start.record(&stream));
    hands(cuEventRecord, &[b, o], || end.record(&other));
    // SAFETY: without flags there is nothing to keep alive.
    hands(cuEventRecord, &[b, s], || unsafe { end.record_with(&stream, RecordFlags::empty()) });
    hands(cuEventSynchronize, &[b], || end.synchronize());
    let _ = hands(cuEventQuery, &[a], || start.query());
    hands(cuStreamWaitEvent, &[o, a, 0], || other.wait_event(&start));
    // SAFETY: without flags there is nothing to keep alive.
    hands(cuStreamWaitEvent, &[s, b, 0], || unsafe {
        stream.wait_event_with(&end, WaitFlags::empty())
    });
    hands(elapsed_function(&gpu.context), &[a, b], || start.elapsed_ms(&end));
    hands(elapsed_function(&gpu.context), &[a, b], || start.elapsed(&end));
    hands(cuGraphLaunch, &[word(exec.as_raw()), o], || exec.launch(&other));
    hands(cuStreamSynchronize, &[o], || other.synchronize());
    let _ = hands(cuStreamQuery, &[s], || stream.query());
    // A wait without time is one look.
    let _ = hands(cuEventQuery, &[b], || end.synchronize_timeout(Duration::ZERO));
    let _ = hands(cuStreamQuery, &[o], || other.synchronize_timeout(Duration::ZERO));
    makes(&[cuStreamGetPriority], || stream.priority());
    makes(&[cuStreamGetFlags], || stream.is_blocking());

    let (event, made) = calls_with_arguments(|| other.record_event(EventFlags::empty()));
    let event = event.expect("an event");
    assert_eq!(made.last(), Some(&(cuEventRecord, vec![word(event.as_raw()), o])));

    stream.wait_stream(&other).expect("the first join");
    let (joined, made) = calls_with_arguments(|| stream.wait_stream(&other));
    assert_eq!(joined, Ok(()));
    let join = made[0].1[0];
    assert_eq!(made, [(cuEventRecord, vec![join, o]), (cuStreamWaitEvent, vec![s, join, 0])]);

    // What is recorded in a capture is no other thread's, so the wait has an event of its own.
    let capture = common::begin_capture(&stream, CaptureMode::Relaxed).expect("a capture");
    let (joined, made) = calls_with_arguments(|| other.wait_stream(&stream));
    assert_eq!(joined, Ok(()));
    let record =
        made.iter().position(|(function, _)| *function == cuEventRecord).expect("a record");
    let own = made[record].1[0];
    let expected = [
        (cuEventRecord, vec![own, s]),
        (cuStreamWaitEvent, vec![o, own, 0]),
        (cuEventDestroy_v2, vec![own]),
    ];
    assert!(own != join && made[record..] == expected, "{made:?}");
    stream.wait_stream(&other).expect("the fork ends");
    drop(capture.end().expect("a graph"));
    let (_, made) = calls_with_arguments(|| stream.wait_stream(&other));
    assert_eq!(made[0], (cuEventRecord, vec![join, o]), "the one from before");

    let modes = [CaptureMode::Global, CaptureMode::ThreadLocal, CaptureMode::Relaxed];
    for (mode, number) in modes.into_iter().zip(0..) {
        let (capture, made) = calls_with_arguments(|| common::begin_capture(&stream, mode));
        assert_eq!(made[0], (cuStreamBeginCapture_v2, vec![s, number]));
        drop(capture.expect("a capture"));
    }
    if !common::needs(gpu.context.driver(), cuEventRecordWithFlags) {
        return;
    }
    let capture = common::begin_capture(&stream, CaptureMode::ThreadLocal).expect("a capture");
    // SAFETY: the graph is dropped before the events.
    unsafe {
        let external = u64::from(CU_EVENT_WAIT_EXTERNAL);
        hands(cuStreamWaitEvent, &[s, a, external], || {
            stream.wait_event_with(&start, WaitFlags::EXTERNAL)
        });
        let external = u64::from(CU_EVENT_RECORD_EXTERNAL);
        hands(cuEventRecordWithFlags, &[b, s, external], || {
            end.record_with(&stream, RecordFlags::EXTERNAL)
        });
    }
    drop(capture.end().expect("a graph"));
}

#[test]
fn elapsed_time_is_that_of_the_clock() {
    let gpu = &Gpu::with_virtual_time();
    // As measured on a device: what it tells lies on a grid, and a record takes a step of it.
    const STEP: f32 = 0.001;
    let stream = gpu.stream();
    let timed = || Event::new(&gpu.context, EventFlags::TIMING).expect("an event");
    let (start, end) = (timed(), timed());
    start.record(&stream).expect("a record");
    start.synchronize().expect("no work");
    // How long the stream certainly had nothing to do between the two records, and how long at
    // most.
    let (least, most) = match gpu.soft() {
        Some(soft) => {
            // What rounding this number once more loses is more than a nanosecond.
            soft.advance(Duration::from_micros(250_123));
            (250.123 - STEP, 250.123 + STEP)
        }
        None => {
            let held = Instant::now();
            while held.elapsed() < Duration::from_millis(3) {
                std::hint::spin_loop();
            }
            (2.9, f32::INFINITY)
        }
    };
    assert_eq!(gpu.soft().is_some(), TestDriver::chosen() == TestDriver::Soft);
    end.record(&stream).expect("a record");
    end.synchronize().expect("no work");
    let elapsed = start.elapsed_ms(&end).expect("both are recorded and done");
    assert!((least..=most).contains(&elapsed), "{elapsed} ms, and not {least} to {most} ms");
    assert_eq!(end.elapsed_ms(&start), Ok(-elapsed));
    assert_eq!(start.elapsed_ms(&start), Ok(0.0));
    assert_eq!(start.elapsed(&end), Ok(Duration::from_secs_f64(f64::from(elapsed) / 1000.0)));
    assert_eq!(end.elapsed(&start), Err(Error::EndBeforeStart));
    assert_eq!(end.elapsed(&end), Ok(Duration::ZERO));
}

#[test]
fn not_done_is_an_answer() {
    let gpu = &Gpu::with_virtual_time();
    let gpu = Counted::new(gpu);
    let (stream, waiting) = (gpu.stream(), gpu.stream());
    let (event, first) = (gpu.event(EventFlags::TIMING), gpu.event(EventFlags::TIMING));
    makes(&[cuEventRecord], || first.record(&stream));
    let latch = Latch::hold(&stream);
    makes(&[cuEventRecord], || event.record(&stream));
    makes(&[cuStreamWaitEvent], || waiting.wait_event(&event));
    assert_eq!(makes(&[cuEventQuery], || event.query()), Progress::Pending);
    assert_eq!(makes(&[cuStreamQuery], || stream.query()), Progress::Pending);
    assert_eq!(makes(&[cuStreamQuery], || waiting.query()), Progress::Pending);
    let no_wait = || waiting.synchronize_timeout(Duration::ZERO);
    assert_eq!(makes(&[cuStreamQuery], no_wait), Progress::Pending);
    let function = elapsed_function(&gpu.context);
    let not_ready = Error::NotReady { function, code: CUresult::CUDA_ERROR_NOT_READY };
    assert_eq!(calls(|| first.elapsed_ms(&event)), (Err(not_ready), vec![function]));
    latch.release();
    makes(&[cuEventSynchronize], || event.synchronize());
    assert_eq!(makes(&[cuEventQuery], || event.query()), Progress::Done);
    makes(&[cuStreamSynchronize], || waiting.synchronize());
    assert_eq!(makes(&[cuStreamQuery], || waiting.query()), Progress::Done);
    makes(&[cuStreamSynchronize], || stream.synchronize());
}

#[test]
fn one_call_while_another_context_is_current() {
    let gpu = &Gpu::with_virtual_time();
    let gpu = Counted::new(gpu);
    let (stream, event) = (gpu.stream(), gpu.event(EventFlags::empty()));
    let (driver, mut other) = (gpu.context.driver(), std::ptr::null_mut());
    // SAFETY: a place for the handle; the context is current from here on.
    let code =
        unsafe { (driver.symbols().cuCtxCreate_v2)(&mut other, 0, gpu.context.device().as_raw()) };
    common::check(cuCtxCreate_v2, code);
    makes(&[cuEventRecord], || event.record(&stream));
    makes(&[cuStreamWaitEvent], || stream.wait_event(&event));
    let _ = makes(&[cuEventQuery], || event.query());
    makes(&[cuStreamSynchronize], || stream.synchronize());
    // SAFETY: nothing was made in it.
    common::check(cuCtxDestroy_v2, unsafe { (driver.symbols().cuCtxDestroy_v2)(other) });
}

#[test]
fn wait_stream_of_a_named_stream_is_two_calls() {
    let gpu = &Gpu::with_virtual_time();
    let gpu = Counted::new(gpu);
    let stream = gpu.stream();
    let other = Arc::new(gpu.stream());
    let current = || current_stream(&gpu.context);
    {
        let _scope = StreamScope::enter(other.clone());
        stream.wait_stream(&current()).expect("the first join");
        makes(&[cuEventRecord, cuStreamWaitEvent], || stream.wait_stream(&current()));
        makes(&[cuEventRecord, cuStreamWaitEvent], || stream.wait_stream(&other));
    }
    // The legacy default stream is one, whatever stands for it.
    let _current = gpu.context.make_current().expect("the context can be made current");
    let default = [cuCtxGetCurrent, cuEventRecord, cuStreamWaitEvent];
    makes(&default, || stream.wait_stream(&current()));
    makes(&default, || stream.wait_stream(&StreamRef::legacy_default(&gpu.context)));
    let clone = gpu.context.clone();
    makes(&default, || stream.wait_stream(&StreamRef::default_stream(&clone)));
    makes(&default, || {
        // SAFETY: a default stream's handle.
        stream.wait_stream(&unsafe { StreamRef::from_raw(&clone, std::ptr::null_mut()) })
    });
}

#[test]
fn the_legacy_streams_event_ends_with_it() {
    let gpu = &Gpu::with_virtual_time();
    let gpu = Counted::new(gpu);
    let context = Context::primary(gpu.context.device()).expect("the primary context");
    let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
    stream.wait_stream(&StreamRef::legacy_default(&context)).expect("a join");
    stream.synchronize().expect("no work");
    let ((), made) = calls(|| drop(stream));
    assert_eq!(made, [cuStreamDestroy_v2]);
    let ((), made) = calls(|| drop(context));
    assert_eq!(made, [cuEventDestroy_v2, cuDevicePrimaryCtxRelease_v2], "the event first");
}

#[test]
fn a_handle_named_for_a_wait_creates_nothing() {
    let gpu = &Gpu::with_virtual_time();
    let gpu = Counted::new(gpu);
    let (stream, other) = (gpu.stream(), gpu.stream());
    let _current = gpu.context.make_current().expect("the context can be made current");
    // SAFETY: `other` outlives it.
    let named = || unsafe { StreamRef::from_raw(&gpu.context, other.as_raw()) };
    let order = [cuEventRecord, cuStreamWaitEvent];
    makes(&[&[cuCtxGetCurrent, cuEventCreate], &order[..]].concat(), || {
        stream.wait_stream(&named())
    });
    for _ in 0..2 {
        makes(&order, || stream.wait_stream(&named()));
        // SAFETY: as above.
        let foreign = unsafe { ForeignStream::new(&gpu.context, other.as_raw(), ()) };
        makes(&order, || stream.wait_stream(foreign.as_ref().expect("a stream")));
        // The record in a default stream wants the context current.
        makes(&[&[cuCtxGetCurrent], &order[..]].concat(), || {
            stream.wait_stream(&StreamRef::per_thread_default(&gpu.context))
        });
        // Here the context is named for the one wait, too: the event is that of the waiting stream's.
        let device = match gpu.context.driver().symbols().cuCtxGetDevice_v2 {
            Some(_) => &[cuCtxGetDevice_v2][..],
            None => &[cuCtxGetCurrent, cuCtxGetDevice],
        };
        makes(&[&[cuStreamGetCtx], device, &order].concat(), || {
            // SAFETY: as above.
            stream.wait_stream(&unsafe {
                StreamRef::from_foreign(gpu.context.driver(), other.as_raw())
            }?)
        });
    }
}

#[test]
fn creation_changes_the_context_where_it_must() {
    let gpu = &Gpu::with_virtual_time();
    let gpu = Counted::new(gpu);
    let elsewhere = [cuCtxGetCurrent, cuCtxPushCurrent_v2, cuEventCreate, cuCtxPopCurrent_v2];
    makes(&elsewhere, || Event::new(&gpu.context, EventFlags::empty()));
    let (_, made) = calls(|| drop(gpu.event(EventFlags::empty())));
    assert_eq!(made.last(), Some(&cuEventDestroy_v2));
    assert_eq!(made.len(), elsewhere.len() + 1);

    let _current = gpu.context.make_current().expect("the context can be made current");
    makes(&[cuCtxGetCurrent, cuEventCreate], || Event::new(&gpu.context, EventFlags::empty()));
    makes(&[cuCtxGetCurrent, cuStreamCreate], || Stream::new(&gpu.context, StreamOptions::new()));
    let stream = gpu.stream();
    makes(&[cuCtxGetCurrent, cuEventCreate, cuEventRecord], || {
        stream.record_event(EventFlags::empty())
    });
    let shared = gpu.event(EventFlags::INTERPROCESS);
    // The first also asks for the device's UUID.
    shared.ipc_descriptor().expect("a descriptor");
    makes(&[cuCtxGetCurrent, cuIpcGetEventHandle], || shared.ipc_descriptor());
}

#[test]
fn default_streams_cost_one_call_more_or_three() {
    let gpu = &Gpu::with_virtual_time();
    let gpu = Counted::new(gpu);
    let event = gpu.event(EventFlags::empty());
    for stream in
        [StreamRef::legacy_default(&gpu.context), StreamRef::per_thread_default(&gpu.context)]
    {
        makes(&[cuCtxGetCurrent, cuCtxPushCurrent_v2, cuEventRecord, cuCtxPopCurrent_v2], || {
            event.record(&stream)
        });
        let _current = gpu.context.make_current().expect("the context can be made current");
        makes(&[cuCtxGetCurrent, cuEventRecord], || event.record(&stream));
        let _ = makes(&[cuCtxGetCurrent, cuStreamQuery], || stream.query());
    }
}

#[test]
fn what_is_created_has_the_flags_it_asked() {
    let gpu = &Gpu::with_virtual_time();
    let gpu = Counted::new(gpu);
    let (blocking, interprocess) = (EventFlags::BLOCKING_SYNC, EventFlags::INTERPROCESS);
    for flags in [EventFlags::TIMING | interprocess, EventFlags::all()] {
        let (refused, made) = calls(|| Event::new(&gpu.context, flags).map(drop));
        assert_eq!((refused, made), (Err(Error::TimingWithInterprocess), vec![]));
    }
    for (flags, driver) in [
        (EventFlags::empty(), CU_EVENT_DISABLE_TIMING),
        (EventFlags::TIMING, 0),
        (blocking, CU_EVENT_DISABLE_TIMING | CU_EVENT_BLOCKING_SYNC),
        (EventFlags::TIMING | blocking, CU_EVENT_BLOCKING_SYNC),
        (interprocess, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS),
        (
            interprocess | blocking,
            CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS | CU_EVENT_BLOCKING_SYNC,
        ),
    ] {
        let stream = gpu.stream();
        let works: [&dyn Fn() -> Result<Event, Error>; 2] =
            [&|| Event::new(&gpu.context, flags), &|| stream.record_event(flags)];
        for work in works {
            let (event, made) = calls_with_arguments(work);
            assert_eq!(event.expect("an event").flags(), flags);
            let asked = made
                .iter()
                .find(|(function, _)| *function == cuEventCreate)
                .expect("it was created");
            assert_eq!(asked.1[1], u64::from(driver), "{flags:?}");
        }
    }
    let _current = gpu.context.make_current().expect("the context can be made current");
    let asked = |options| {
        let (stream, made) = calls_with_arguments(|| Stream::new(&gpu.context, options));
        stream.expect("a stream");
        let (function, arguments) = made.last().expect("it was created").clone();
        (function, arguments[1..].to_vec())
    };
    let [non_blocking, any] = [CU_STREAM_NON_BLOCKING, CU_STREAM_DEFAULT].map(u64::from);
    assert_eq!(asked(StreamOptions::new()), (cuStreamCreate, vec![non_blocking]));
    assert_eq!(asked(StreamOptions::new().blocking(true)), (cuStreamCreate, vec![any]));
    let greatest = gpu.context.stream_priority_range().expect("a range").greatest;
    let word = u64::from(greatest.cast_unsigned());
    assert_eq!(
        asked(StreamOptions::new().priority(greatest)),
        (cuStreamCreateWithPriority, vec![non_blocking, word])
    );
    let clamped = StreamOptions::new().blocking(true).priority_clamped(greatest);
    assert_eq!(asked(clamped), (cuStreamCreateWithPriority, vec![any, word]));
}

#[test]
fn closing_and_dropping_are_one_call() {
    let gpu = &Gpu::with_virtual_time();
    let gpu = Counted::new(gpu);
    let (event, stream) = (gpu.event(EventFlags::empty()), gpu.stream());
    makes(&[cuEventDestroy_v2], || event.close());
    makes(&[cuStreamDestroy_v2], || stream.close());
    let (event, stream) = (gpu.event(EventFlags::empty()), gpu.stream());
    assert_eq!(calls(|| drop(event)).1, [cuEventDestroy_v2]);
    assert_eq!(calls(|| drop(stream)).1, [cuStreamDestroy_v2]);
    let (event, stream) = (gpu.event(EventFlags::empty()), gpu.stream());
    let ((raw_event, raw_stream), made) = calls(|| (event.into_raw(), stream.into_raw()));
    assert_eq!(made, []);
    // SAFETY: both were given up by their owners a line above.
    drop(unsafe {
        (
            Event::from_raw(&gpu.context, raw_event, EventFlags::empty()),
            Stream::from_raw(&gpu.context, raw_stream),
        )
    });
}

#[test]
fn a_wait_that_times_out_only_queries() {
    let gpu = &Gpu::with_virtual_time();
    let counted = Counted::new(gpu);
    let (stream, event) = (counted.stream(), counted.event(EventFlags::empty()));
    let latch = Latch::hold(&stream);
    event.record(&stream).expect("a record");
    let limit = Duration::from_millis(5);
    let (done, made) = calls(|| event.synchronize_timeout(limit));
    assert_eq!(done, Ok(Progress::Pending));
    // One query is enough: on a loaded machine five milliseconds may pass before a second.
    assert!(!made.is_empty() && made.iter().all(|function| *function == cuEventQuery), "{made:?}");
    // The software driver's clock stands still but for the wait.
    if let Some(clock) = gpu.soft().and_then(|soft| soft.driver().clock()) {
        let driver = gpu.driver.with_clock(clock);
        // SAFETY: the context and the event outlive what is borrowed here.
        let pending = unsafe {
            let context = Context::from_raw(driver, counted.context.as_raw()).expect("a context");
            EventRef::from_raw(&context, event.as_raw(), event.flags())
        };
        let begun = clock.now();
        assert_eq!(pending.synchronize_timeout(limit), Ok(Progress::Pending));
        assert_eq!(clock.now() - begun, limit);
    }
    latch.release();
    event.synchronize().expect("the work is released");
}
