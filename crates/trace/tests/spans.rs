//! Spans: their times, how they are collected, and what is counted when they are not.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context as TaskContext, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

use cuda_events::capture::CaptureMode;
use cuda_events::sys::CUresult;
use cuda_events::{Context, Device, Error, Stream, StreamOptions, StreamRef};
use cuda_events_test_support::{Gpu, Latch, begin_capture};
use cuda_events_trace::{GpuSpan, Tracer};
use cuda_soft_driver::{Fault, SoftDriver, Time};

const MICROSECOND: Duration = Duration::from_micros(1);

/// The software driver in virtual time, and a clock of the host's that goes with it.
struct Machine {
    // Before the driver, whose context it is.
    context: Context,
    now: Arc<AtomicU64>,
    origin: Instant,
    soft: Arc<SoftDriver>,
}

impl Machine {
    fn new() -> Self {
        let soft = Arc::new(SoftDriver::builder().time(Time::Virtual).log(100_000).build());
        let context = Context::primary(Device::new(soft.driver(), 0).unwrap()).unwrap();
        Self { context, now: Arc::default(), origin: Instant::now(), soft }
    }

    fn stream(&self) -> Stream {
        Stream::new(&self.context, StreamOptions::new()).unwrap()
    }

    fn tracer(&self) -> Tracer {
        let (now, origin) = (Arc::clone(&self.now), self.origin);
        let now = move || origin + Duration::from_nanos(now.load(Ordering::Relaxed));
        Tracer::with_host_clock(&self.context, now).unwrap()
    }

    fn advance(&self, by: Duration) {
        self.now.fetch_add(by.as_nanos() as u64, Ordering::Relaxed);
        self.soft.advance(by);
    }

    /// How many records, queries and creations of events the driver saw since it was asked last.
    fn events(&self) -> [usize; 3] {
        let log = self.soft.log();
        self.soft.clear_log();
        ["cuEventRecord", "cuEventQuery", "cuEventCreate"]
            .map(|name| log.iter().filter(|call| call.function == name).count())
    }
}

/// A machine, its tracer, and streams.
fn traced<const STREAMS: usize>() -> (Machine, Tracer, [Stream; STREAMS]) {
    let machine = Machine::new();
    let (tracer, streams) = (machine.tracer(), [(); STREAMS].map(|()| machine.stream()));
    (machine, tracer, streams)
}

/// Work that takes so long, in a span.
fn work(
    machine: &Machine,
    tracer: &Tracer,
    stream: &StreamRef,
    name: &'static str,
    time: Duration,
) {
    let span = tracer.span(stream, name).unwrap();
    machine.soft.busy(stream, time);
    span.end(stream).unwrap();
}

#[track_caller]
fn near(one: Duration, other: Duration, slack: Duration) {
    assert!(one.abs_diff(other) <= slack, "{one:?} is not {other:?}");
}

fn names(spans: &[GpuSpan]) -> Vec<&str> {
    spans.iter().map(|span| &*span.name).collect()
}

#[test]
fn durations_and_places_are_those_of_the_work() {
    let (machine, tracer, [stream, other]) = traced();
    machine.advance(Duration::from_millis(3));
    work(&machine, &tracer, &stream, "first", Duration::from_micros(5500));
    work(&machine, &tracer, &stream, "second", Duration::from_millis(2));
    work(&machine, &tracer, &other, "beside", Duration::from_millis(1));
    assert_eq!(names(&tracer.drain_ready().unwrap()), [""; 0]);
    machine.advance(Duration::from_millis(1));
    assert_eq!(names(&tracer.drain_ready().unwrap()), ["beside"]);
    machine.advance(Duration::from_millis(20));
    let spans = tracer.drain_ready().unwrap();
    assert_eq!(names(&spans), ["first", "second"]);
    assert!(tracer.drain_ready().unwrap().is_empty());
    // Stamps are some ticks of 32 ns after the work.
    let tick = Duration::from_nanos(200);
    near(spans[0].duration, Duration::from_micros(5500), tick);
    near(spans[1].duration, Duration::from_millis(2), tick);
    for (span, starts) in spans.iter().zip([3000, 8500]) {
        let starts = machine.origin + Duration::from_micros(starts);
        assert!(span.error <= 4 * MICROSECOND, "{span:?}");
        let off = span.start.max(starts) - span.start.min(starts);
        assert!(off <= span.error + 4 * MICROSECOND, "{off:?}: {span:?}");
        near(span.end - span.start, span.duration, 2 * MICROSECOND);
        assert_eq!(span.begun, machine.origin + Duration::from_millis(3));
        assert_eq!(span.duration_error, Duration::ZERO);
        assert_eq!(span.thread, cuda_events_trace::Thread::current());
        assert_eq!(span.stream.device(), 0);
    }
    assert!(spans[0].end <= spans[1].start);
    assert_eq!(spans[0].stream, spans[1].stream);
}

#[test]
fn spans_nest_and_end_in_another_stream() {
    let (machine, tracer, [stream, other]) = traced();
    let outer = tracer.span(&stream, "outer").unwrap();
    work(&machine, &tracer, &stream, "inner", Duration::from_millis(1));
    let across = tracer.span(&stream, String::from("across")).unwrap();
    other.wait_stream(&stream).unwrap();
    machine.soft.busy(&other, Duration::from_millis(7));
    across.end(&other).unwrap();
    machine.soft.busy(&stream, Duration::from_millis(1));
    outer.end(&stream).unwrap();
    let done = tracer.time(&stream, "closure", || Ok::<_, Error>(5)).unwrap();
    assert_eq!(done, 5);
    let refused = tracer.time(&stream, "error", || Err::<(), _>(Error::EndBeforeStart));
    assert_eq!(refused, Err(Error::EndBeforeStart));
    machine.advance(Duration::from_secs(1));
    let mut spans = tracer.drain_ready().unwrap();
    spans.sort_by_key(|span| span.start);
    assert_eq!(names(&spans), ["outer", "inner", "across", "closure", "error"]);
    assert!(spans[0].start < spans[1].start && spans[1].end < spans[0].end);
    near(spans[0].duration, Duration::from_millis(2), MICROSECOND);
    near(spans[2].duration, Duration::from_millis(7), MICROSECOND);
    // It is shown where it was begun.
    assert_eq!(spans[2].stream, spans[0].stream);
}

#[test]
fn an_end_before_the_start_is_an_error() {
    let (machine, tracer, [stream, other]) = traced();
    machine.soft.busy(&stream, Duration::from_millis(1));
    tracer.span(&stream, "backwards").unwrap().end(&other).unwrap();
    assert!(tracer.drain_ready().unwrap().is_empty());
    work(&machine, &tracer, &stream, "good", Duration::ZERO);
    machine.advance(Duration::from_secs(1));
    // What is good comes first, and nothing is lost by the error.
    assert_eq!(names(&tracer.drain_ready().unwrap()), ["good"]);
    assert_eq!(tracer.drain_ready().unwrap_err(), Error::EndBeforeStart);
    assert!(tracer.drain_ready().unwrap().is_empty());
    assert_eq!(tracer.failed(), 1);
}

/// A span's own time is exact after days, also where nothing was traced for a minute.
#[test]
fn half_a_microsecond_is_exact_after_days() {
    let (machine, tracer, [stream]) = traced();
    let long = Duration::from_nanos(7_123_456);
    for minute in 0..3 * 24 * 60 {
        machine.advance(Duration::from_secs(60) - 10 * long);
        let begun = machine.origin + Duration::from_nanos(machine.now.load(Ordering::Relaxed));
        work(&machine, &tracer, &stream, "each minute", long);
        machine.advance(10 * long);
        let spans = tracer.drain_ready().unwrap();
        assert_eq!(spans.len(), 1, "minute {minute}");
        near(spans[0].duration, long, Duration::from_nanos(500));
        // The virtual device's time runs a tick ahead with each stamp.
        let off = spans[0].start.max(begun) - spans[0].start.min(begun);
        assert!(off <= spans[0].error + MICROSECOND, "minute {minute}: {off:?} {:?}", spans[0]);
        assert!(spans[0].error <= 5 * MICROSECOND, "minute {minute}: {:?}", spans[0]);
    }
    assert_eq!(machine.now.load(Ordering::Relaxed), 3 * 24 * 3600 * 1_000_000_000);
}

/// A number of the driver's for more than half a second is coarse, and another way is taken.
#[test]
fn a_span_of_a_second_is_exact() {
    let (machine, tracer, [stream]) = traced();
    let (other, long) = (machine.stream(), Duration::from_nanos(900_000_064));
    let mut spans = Vec::new();
    work(&machine, &tracer, &stream, "long", long);
    for _ in 0..12 {
        work(&machine, &tracer, &other, "short", Duration::from_micros(7123));
        machine.advance(long / 10);
        spans.extend(tracer.drain_ready().unwrap());
    }
    let last = spans.iter().find(|span| span.name == "long").expect("it is done");
    near(last.duration, long, Duration::from_nanos(200));
    assert_eq!(last.duration_error, Duration::ZERO);
}

/// Where the driver's numbers between anchors are coarse, a span over several says so.
#[test]
fn the_errors_of_all_anchors_between_count() {
    let (machine, tracer, [stream]) = traced();
    let minute = Duration::from_secs(60);
    let open = tracer.span(&stream, "open").unwrap();
    for _ in 0..3 {
        machine.advance(minute);
        tracer.span(&stream, "short").unwrap().end(&stream).unwrap();
    }
    open.end(&stream).unwrap();
    machine.advance(Duration::from_millis(1));
    let spans = tracer.finish(Duration::from_secs(60)).spans;
    let open = spans.iter().find(|span| span.name == "open").expect("it is done");
    // Of each minute half a step of a number of so many milliseconds in 24 bits.
    let each = 60_000.0_f32.next_up() - 60_000.0;
    let error = Duration::from_secs_f32(3.0 * each / 2.0 / 1e3);
    near(open.duration_error, error, MICROSECOND / 10);
    near(open.duration, 3 * minute, open.duration_error + MICROSECOND);
}

/// The host's clock was set between two anchors: the later one is believed.
#[test]
fn a_clock_that_was_set_is_followed() {
    let (machine, tracer, [stream]) = traced();
    machine.now.fetch_add(1_000_000_000, Ordering::Relaxed);
    machine.advance(Duration::from_millis(300));
    let begun = machine.origin + Duration::from_millis(1300);
    work(&machine, &tracer, &stream, "span", Duration::from_millis(1));
    machine.advance(Duration::from_millis(1));
    let spans = tracer.drain_ready().unwrap();
    let off = spans[0].start.max(begun) - spans[0].start.min(begun);
    assert!(off <= spans[0].error + MICROSECOND, "{off:?}: {:?}", spans[0]);
    assert!(spans[0].error < Duration::from_millis(1), "{:?}", spans[0]);
}

/// The spans of a stream are in its order, whichever threads ended them.
#[test]
fn threads_take_turns_in_a_stream() {
    let (machine, tracer, [stream]) = traced();
    let end = |name| {
        machine.advance(MICROSECOND);
        tracer.span(&stream, name).unwrap().end(&stream).unwrap();
    };
    end("one");
    std::thread::scope(|scope| _ = scope.spawn(|| end("two")).join());
    end("three");
    machine.advance(MICROSECOND);
    assert_eq!(names(&tracer.drain_ready().unwrap()), ["one", "two", "three"]);
}

/// The error of the work, not that of the end.
#[test]
fn the_first_error_is_returned() {
    let (machine, tracer, [stream, other]) = traced();
    let code = CUresult::CUDA_ERROR_OUT_OF_MEMORY;
    let failed = tracer.time(&stream, "span", || {
        machine.soft.inject(Fault::on("cuEventRecord").once().answer(code));
        Err::<(), _>(Error::EndBeforeStart)
    });
    assert_eq!(failed, Err(Error::EndBeforeStart));
    // Of two spans one fails, and the other one is waited for meanwhile.
    machine.soft.busy(&stream, Duration::from_millis(1));
    tracer.span(&stream, "backwards").unwrap().end(&other).unwrap();
    machine.advance(Duration::from_millis(2));
    work(&machine, &tracer, &stream, "pending", Duration::from_secs(1));
    let trace = tracer.finish(Duration::from_millis(5));
    assert_eq!((trace.failed, trace.unfinished), (1, 1));
    assert_eq!(trace.error, Some(Error::EndBeforeStart));
}

/// One span around others for an hour: the driver alone would give its length to 250 us.
#[test]
fn a_span_of_an_hour_is_exact() {
    let (machine, tracer, [stream, other]) = traced();
    // One that is open so long, and one whose work takes so long.
    let open = tracer.span(&stream, "open").unwrap();
    let pending = tracer.span(&other, "pending").unwrap();
    let step = Duration::from_nanos(400_000_032);
    let steps = 9000;
    machine.soft.busy(&other, step * steps);
    pending.end(&other).unwrap();
    let mut spans = Vec::new();
    let mut stamps = 0;
    machine.events();
    for _ in 0..steps {
        work(&machine, &tracer, &stream, "step", step);
        machine.advance(step);
        spans.extend(tracer.drain_ready().unwrap());
        stamps += machine.events()[0];
    }
    open.end(&stream).unwrap();
    machine.advance(step);
    spans.extend(tracer.drain_ready().unwrap());
    spans.retain(|span| span.name != "step");
    spans.sort_by_key(|span| span.name.clone());
    assert_eq!(names(&spans), ["open", "pending"]);
    // Each stamp of the virtual device comes a tick after the one before, at least.
    let ticks = Duration::from_nanos(32 * stamps as u64);
    for span in &spans {
        let exactly = step * steps;
        assert!(span.duration + MICROSECOND / 2 >= exactly, "{span:?}");
        assert!(span.duration <= exactly + ticks + MICROSECOND / 2, "{span:?}");
        assert_eq!(span.duration_error, Duration::ZERO, "{span:?}");
    }
    // What is busy ends at its time, whatever ticks were in between.
    near(spans[1].duration, step * steps, MICROSECOND / 2);
}

#[test]
fn a_span_without_an_end_is_counted() {
    let (_machine, tracer, [stream]) = traced();
    let kept = tracer.span(&stream, "kept").unwrap();
    drop(tracer.span(&stream, "dropped").unwrap());
    let lent = tracer.clone();
    std::thread::scope(|scope| {
        scope.spawn(|| drop(lent.span(&stream, "dropped elsewhere").unwrap()));
    });
    assert_eq!((tracer.open(), tracer.dropped()), (1, 2));
    let trace = tracer.finish(Duration::ZERO);
    assert_eq!((trace.open, trace.dropped, trace.unfinished, trace.failed), (1, 2, 0, 0));
    let summary = "0 spans of the GPU, 0 of the host, 0 driver calls; not shown: 1 not ended yet, 2 \
                dropped without an end";
    assert_eq!(trace.to_string(), summary);
    kept.end(&stream).unwrap();
    assert_eq!(names(&tracer.finish(Duration::from_secs(60)).spans), ["kept"]);
    assert_eq!(tracer.open(), 0);
}

#[test]
fn a_span_is_two_records() {
    let (machine, tracer, [stream]) = traced();
    tracer.reserve(10).unwrap();
    machine.events();
    for _ in 0..5 {
        work(&machine, &tracer, &stream, "span", Duration::from_micros(1));
    }
    assert_eq!(machine.events(), [10, 0, 0]);
    // What was drained is used again.
    machine.advance(Duration::from_millis(1));
    assert_eq!(tracer.drain_ready().unwrap().len(), 5);
    machine.events();
    // Of the twenty, the drain's anchor has one.
    for _ in 0..9 {
        work(&machine, &tracer, &stream, "span", Duration::from_micros(1));
    }
    assert_eq!(machine.events(), [18, 0, 0]);
    // An anchor, four times a second: by the span or by its end, and not by both.
    machine.advance(Duration::from_millis(300));
    machine.events();
    work(&machine, &tracer, &stream, "span", Duration::from_micros(1));
    let [records, queries, _] = machine.events();
    assert_eq!((records, queries), (3, 1));
}

#[test]
fn a_drain_asks_for_the_first_of_each_stream() {
    let (machine, tracer, streams) = traced::<2>();
    for stream in &streams {
        machine.soft.busy(stream, Duration::from_secs(1));
        for _ in 0..100 {
            work(&machine, &tracer, stream, "span", Duration::from_millis(1));
        }
    }
    assert!(tracer.drain_ready().unwrap().is_empty());
    machine.soft.clear_log();
    assert!(tracer.drain_ready().unwrap().is_empty());
    let asked = machine.soft.log();
    let asked: Vec<_> = asked.iter().map(|call| call.function).collect();
    let mode = "cuThreadExchangeStreamCaptureMode";
    assert_eq!(asked, [mode, "cuEventElapsedTime_v2", "cuEventElapsedTime_v2", mode]);
}

/// An anchor that is not seen done in time is taken up later, and says how exact it is.
#[test]
fn a_late_anchor_is_less_exact() {
    let (machine, tracer, [stream]) = traced();
    machine.advance(Duration::from_millis(100));
    let begun = machine.origin + Duration::from_millis(100);
    work(&machine, &tracer, &stream, "span", Duration::from_millis(1));
    machine.advance(Duration::from_millis(1));
    machine.soft.inject(Fault::on("cuEventQuery").answer(CUresult::CUDA_ERROR_NOT_READY));
    let looked = Instant::now();
    assert!(tracer.drain_ready().unwrap().is_empty(), "it is not known where it is");
    assert!(looked.elapsed() < Duration::from_secs(10), "a drain waits for an anchor");
    machine.advance(Duration::from_millis(40));
    let trace = tracer.finish(Duration::ZERO);
    assert_eq!((trace.spans.len(), trace.unfinished), (0, 1));
    // The late anchor is done while the drain waits for it, and comes before this one.
    work(&machine, &tracer, &stream, "later", Duration::from_millis(1));
    machine.advance(Duration::from_millis(1));
    machine.soft.clear_faults();
    for look in 1..=3 {
        let fault = Fault::on("cuEventQuery").nth(look);
        machine.soft.inject(fault.answer(CUresult::CUDA_ERROR_NOT_READY));
    }
    let spans = tracer.drain_ready().unwrap();
    assert_eq!(names(&spans), ["span", "later"]);
    near(spans[0].duration, Duration::from_millis(1), MICROSECOND);
    // The last exact one was 101 ms ago: that is what the clocks may have drifted apart since.
    assert!(spans[0].error > 20 * MICROSECOND, "{:?}", spans[0]);
    assert!(spans[0].error < 70 * MICROSECOND, "{:?}", spans[0]);
    let off = spans[0].start.max(begun) - spans[0].start.min(begun);
    assert!(off <= spans[0].error, "{off:?}: {:?}", spans[0]);
}

/// An anchor that was late and is done by now is no reason for two more.
#[test]
fn a_drain_after_a_late_anchor_records_one() {
    let (machine, tracer, [stream]) = traced();
    work(&machine, &tracer, &stream, "one", Duration::from_millis(1));
    machine.advance(Duration::from_millis(2));
    machine.soft.inject(Fault::on("cuEventQuery").answer(CUresult::CUDA_ERROR_NOT_READY));
    assert!(tracer.drain_ready().unwrap().is_empty());
    machine.soft.clear_faults();
    work(&machine, &tracer, &stream, "other", Duration::from_millis(1));
    machine.advance(Duration::from_millis(2));
    machine.events();
    assert_eq!(names(&tracer.drain_ready().unwrap()), ["one", "other"]);
    assert_eq!(machine.events()[0], 1);
}

/// A span whose work is done after the drain's anchor is the next drain's, and so are those that
/// come after it in its stream.
#[test]
fn a_drain_records_one_anchor() {
    let machine = Machine::new();
    let streams = [machine.stream(), machine.stream(), machine.stream()];
    // The host's clock is read twice before an anchor's record, and then after it.
    let (reads, soft) = (Arc::new(AtomicU64::new(u64::MAX)), Arc::clone(&machine.soft));
    let (left, origin) = (Arc::clone(&reads), machine.origin);
    let tracer = Tracer::with_host_clock(&machine.context, move || {
        if left.fetch_sub(1, Ordering::Relaxed) == 1 {
            soft.advance(Duration::from_millis(1));
        }
        origin
    })
    .unwrap();
    work(&machine, &tracer, &streams[0], "done", Duration::ZERO);
    let later = tracer.span(&streams[1], "later").unwrap();
    machine.soft.busy(&streams[2], Duration::from_millis(1));
    later.end(&streams[2]).unwrap();
    work(&machine, &tracer, &streams[1], "after", Duration::ZERO);
    machine.soft.advance(Duration::from_micros(100));
    machine.events();
    reads.store(3, Ordering::Relaxed);
    assert_eq!(names(&tracer.drain_ready().unwrap()), ["done"]);
    assert!(reads.load(Ordering::Relaxed) > 3, "it was done while the drain ran");
    assert_eq!(machine.events()[0], 1);
    assert_eq!(names(&tracer.drain_ready().unwrap()), ["later", "after"]);
    assert_eq!(machine.events()[0], 1);
}

/// An anchor that fails keeps no span back.
#[test]
fn a_span_without_a_later_anchor_is_given_all_the_same() {
    let (machine, tracer, [stream]) = traced();
    machine.advance(Duration::from_millis(100));
    for name in ["one", "other"] {
        work(&machine, &tracer, &stream, name, Duration::from_millis(1));
    }
    machine.advance(Duration::from_millis(3));
    let code = CUresult::CUDA_ERROR_OUT_OF_MEMORY;
    machine.soft.inject(Fault::on("cuEventRecord").once().answer(code));
    let spans = tracer.drain_ready().unwrap();
    assert_eq!(names(&spans), ["one", "other"]);
    near(spans[1].duration, Duration::from_millis(1), MICROSECOND);
    // The last anchor was 103 ms ago.
    assert!(spans[1].error > 60 * MICROSECOND, "{:?}", spans[1]);
    assert_eq!(tracer.drain_ready().unwrap_err().code(), Some(code));
    assert_eq!(tracer.failed(), 0);
}

#[test]
fn a_failed_context_is_an_error_and_no_panic() {
    let (machine, tracer, [stream]) = traced();
    work(&machine, &tracer, &stream, "before", Duration::ZERO);
    let open = tracer.span(&stream, "open").unwrap();
    machine.soft.busy(&stream, Duration::from_secs(1));
    machine.soft.fail_contexts(CUresult::CUDA_ERROR_LAUNCH_FAILED);
    assert!(open.end(&stream).is_err());
    assert!(tracer.span(&stream, "after").is_err());
    let error = tracer.drain_ready().unwrap_err();
    assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_LAUNCH_FAILED));
    assert_eq!((tracer.failed(), tracer.dropped()), (1, 1));
    let trace = tracer.finish(Duration::from_secs(60));
    assert_eq!((trace.failed, trace.dropped, trace.error), (1, 1, None));
}

/// In virtual time the days of a span's anchors are let go.
#[test]
fn old_anchors_are_let_go() {
    let (machine, tracer, [stream]) = traced();
    let _open = tracer.span(&stream, "open").unwrap();
    for _ in 0..1000 {
        work(&machine, &tracer, &stream, "span", Duration::from_millis(1));
        machine.advance(Duration::from_millis(500));
        assert_eq!(tracer.drain_ready().unwrap().len(), 1);
    }
    let live = machine.soft.live();
    assert!(live.events < 200, "{live:?}");
}

/// Both ends of a span see to it that there is an anchor near them: a span may be long.
#[test]
fn the_begin_of_a_span_records_an_anchor_when_one_is_due() {
    let (machine, tracer, [stream]) = traced();
    for (pause, expected) in [(0, 1), (10, 1), (300, 2), (10, 1), (300, 2)] {
        machine.advance(Duration::from_millis(pause));
        machine.events();
        let span = tracer.span(&stream, "span").unwrap();
        assert_eq!(machine.events()[0], expected, "after {pause} ms");
        span.end(&stream).unwrap();
    }
}

#[test]
fn a_capture_of_another_thread_goes_on() {
    let gpu = Gpu::new();
    let (stream, other) = (gpu.stream(), gpu.stream());
    let tracer = Tracer::new(&gpu.context).unwrap();
    tracer.reserve(10).unwrap();
    tracer.span(&stream, "span").unwrap().end(&stream).unwrap();
    stream.synchronize().unwrap();
    let capture = begin_capture(&other, CaptureMode::Global).unwrap();
    let lent = &tracer;
    std::thread::scope(|scope| {
        let drained = scope.spawn(move || lent.finish(Duration::from_secs(60)).spans.len()).join();
        assert_eq!(drained.unwrap(), 1);
    });
    capture.end().unwrap();
}

/// On whatever driver: many threads, each with spans of its own in its own and in a common stream.
#[test]
fn threads_share_a_tracer() {
    let gpu = Gpu::new();
    let tracer = Tracer::new(&gpu.context).unwrap();
    let common = gpu.stream();
    const EACH: usize = 200;
    let began = Instant::now();
    std::thread::scope(|scope| {
        for number in 0..8 {
            let (tracer, common, own) = (&tracer, &common, gpu.stream());
            scope.spawn(move || {
                for index in 0..EACH {
                    let stream: &StreamRef = if index % 2 == 0 { &own } else { common };
                    let span = tracer.span(stream, format!("{number}: {index}")).unwrap();
                    if index % 50 == 49 {
                        tracer.drain_ready().unwrap().iter().for_each(check);
                    }
                    span.end(stream).unwrap();
                }
            });
        }
    });
    let trace = tracer.finish(Duration::from_secs(60));
    assert_eq!((trace.unfinished, trace.open, trace.dropped, trace.failed), (0, 0, 0, 0));
    assert!(!trace.spans.is_empty());
    for span in &trace.spans {
        check(span);
        // On the host's axis a span of the device is neither before it was begun nor after now.
        assert!(span.start + span.error >= began, "{span:?}");
        assert!(span.start + span.error >= span.begun, "{span:?}");
        assert!(span.end <= Instant::now() + span.error, "{span:?}");
    }
}

fn check(span: &GpuSpan) {
    assert!(span.start <= span.end, "{span:?}");
    assert!(span.begun <= span.ended, "{span:?}");
}

/// On whatever driver: work behind a latch is not done, and a drain does not wait for it.
#[test]
fn a_drain_does_not_wait_and_a_future_does() {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let gpu = Gpu::new();
    let (held, free) = (gpu.stream(), gpu.stream());
    let tracer = Tracer::new(&gpu.context).unwrap();
    let latch = Latch::hold(&held);
    for _ in 0..3 {
        tracer.span(&held, "held").unwrap().end(&held).unwrap();
    }
    tracer.span(&free, "free").unwrap().end(&free).unwrap();
    free.synchronize().unwrap();
    let mut spans = Vec::new();
    let until = Instant::now() + Duration::from_secs(60);
    while spans.is_empty() && Instant::now() < until {
        spans.extend(tracer.drain_ready().unwrap());
    }
    assert_eq!(names(&spans), ["free"]);
    assert_eq!(tracer.finish(Duration::ZERO).unfinished, 3);

    // Dropped before it is done: nothing is lost.
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut task = TaskContext::from_waker(&waker);
    assert!(pin!(tracer.drain()).as_mut().poll(&mut task).is_pending());
    fn may_go_to_another_thread<T: Send>(_: &T) {}
    may_go_to_another_thread(&tracer.drain());

    let mut drain = pin!(tracer.drain());
    assert!(drain.as_mut().poll(&mut task).is_pending());
    latch.release();
    let mut spans = loop {
        match drain.as_mut().poll(&mut task) {
            Poll::Ready(spans) => break spans.unwrap(),
            Poll::Pending => std::thread::park_timeout(Duration::from_secs(60)),
        }
    };
    // All of them, unless the anchor behind them was late.
    spans.extend(tracer.finish(Duration::from_secs(60)).spans);
    assert_eq!(names(&spans), ["held"; 3]);
}

#[test]
fn a_stream_of_another_context_is_refused() {
    let soft = SoftDriver::builder().devices(2).build();
    let context = |ordinal| Context::primary(Device::new(soft.driver(), ordinal).unwrap()).unwrap();
    let (one, two) = (context(0), context(1));
    let tracer = Tracer::new(&one).unwrap();
    let other = Stream::new(&two, StreamOptions::new()).unwrap();
    let refused = tracer.span(&other, "elsewhere").unwrap_err();
    assert!(matches!(refused, Error::ContextMismatch { .. }), "{refused}");
    assert_eq!((tracer.open(), tracer.dropped()), (0, 0));
}
