//! Timelines and captures.

use crate::common;

use std::sync::Arc;
use std::time::Duration;

use common::counting::{calls, counted_context};
use common::futures::wait_until;
use common::timelines::{WRITE, gpu, idle, reached, timeline, timeline as timeline_of};
use common::{Gpu, Latch, check, own_process};
use cuda_events::capture::{CaptureMode, CaptureStatus};
use cuda_events::sys::{CUresult, Function};
use cuda_events::{
    Context, Device, EventFlags, ForeignStream, Progress, Stream, StreamOptions, StreamRef,
};
use cuda_timelines::{CudaStreamExt, Error, HostTimeline, Timeline, TimelineMemory};

/// A signal in a capture is refused, so that no launch can put the counter back.
#[test]
fn a_signal_in_a_capture_is_refused() {
    let Some(gpu) = gpu() else { return };
    let refused = Err(Error::TimelineInCapture { function: WRITE });
    let stream = Arc::new(gpu.stream());
    let timeline = Timeline::new(Arc::clone(&stream)).expect("a timeline");
    let first = timeline.signal().expect("a signal");
    reached(first);
    // In a capture of this crate, which it detects.
    let capture = common::begin_capture(&stream, CaptureMode::Relaxed).expect("a capture");
    assert_eq!(timeline.signal(), refused);
    assert_eq!(stream.capture_status(), Ok(CaptureStatus::Active), "it goes on");
    stream.wait_point(first).expect("a wait, of no work");
    let exec = capture.end().and_then(|graph| graph.instantiate());
    let exec = exec.expect("a graph");
    // Another stream is signalled while one captures.
    let other = timeline_of(&gpu);
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
fn other_codes_captures_are_noticed() {
    let Some(gpu) = gpu() else { return };
    let context = counted_context(gpu.driver);
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

/// A timeline that is moved asks as its present stream needs, and in memory always.
#[test]
fn a_moved_timeline_notices_captures() {
    own_process!();
    const CAPTURES: Function = Function::cuStreamIsCapturing;
    let Some(gpu) = gpu() else { return };
    let context = counted_context(gpu.driver);
    let stream = || Arc::new(Stream::new(&context, StreamOptions::new()).expect("a stream"));
    let (own, theirs) = (stream(), stream());
    // SAFETY: the stream lives until the end of the test.
    let named = || unsafe { StreamRef::from_raw(&context, theirs.as_raw()) };
    let memory = TimelineMemory::new(&context).ok();
    let in_memory = memory.as_ref().map(|memory| Timeline::in_memory(Arc::clone(&own), memory));
    let timelines = [Some(Timeline::new(Arc::clone(&own))), in_memory];
    for mut timeline in timelines.into_iter().flatten().map(|made| made.expect("a timeline")) {
        let is_plain = timeline.descriptor().is_none();
        let writes = if is_plain { vec![WRITE] } else { vec![WRITE, WRITE] };
        let asked = [vec![CAPTURES], writes.clone()].concat();
        let signal = |timeline: &Timeline| {
            let (point, made) = calls(|| timeline.signal().expect("a signal"));
            reached(point);
            made
        };
        let own_calls = if is_plain { &writes } else { &asked };
        assert_eq!(signal(&timeline), *own_calls);
        assert_eq!(timeline.move_to(named()), Ok(true));
        assert_eq!(signal(&timeline), asked);
        assert_eq!(timeline.move_to(Arc::clone(&own)), Ok(true));
        assert_eq!(signal(&timeline), *own_calls);
    }
}

/// A stream of this program becomes a part of other code's capture, by a safe wait of its own. A
/// timeline that was given a name of the stream, and not the stream, notices that.
#[test]
fn a_capture_joined_by_a_wait_is_noticed() {
    let Some(gpu) = gpu() else { return };
    let (theirs, ours) = (gpu.stream(), gpu.stream());
    // SAFETY: it lives until the end of the test.
    let named = unsafe { StreamRef::from_raw(&gpu.context, ours.as_raw()) };
    let timeline = Timeline::new(named).expect("a timeline");
    reached(timeline.signal().expect("a signal"));
    let symbols = gpu.driver.symbols();
    let mode = cuda_events::sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
    for by_event in [true, false] {
        // SAFETY: no other thread has the stream.
        let begun = unsafe { (symbols.cuStreamBeginCapture_v2)(theirs.as_raw(), mode) };
        check(Function::cuStreamBeginCapture_v2, begun);
        let joined = if by_event {
            theirs.record_event(EventFlags::empty()).and_then(|event| ours.wait_event(&event))
        } else {
            ours.wait_stream(&theirs)
        };
        let refused = timeline.signal();
        let back = theirs.wait_stream(&ours);
        let mut graph = std::ptr::null_mut();
        // Ended first, whatever came of it.
        // SAFETY: a place for the graph, which is destroyed.
        unsafe {
            let ended = (symbols.cuStreamEndCapture)(theirs.as_raw(), &mut graph);
            check(Function::cuStreamEndCapture, ended);
            check(Function::cuGraphDestroy, (symbols.cuGraphDestroy)(graph));
        }
        assert_eq!((joined, back), (Ok(()), Ok(())), "{by_event}");
        assert_eq!(refused, Err(Error::TimelineInCapture { function: WRITE }), "{by_event}");
        reached(timeline.signal().expect("a signal"));
    }
}

/// Has other code capture a stream while `work` runs: what that returns, and how often it wrote.
fn captured_by_others<T>(stream: &StreamRef, work: impl FnOnce() -> T) -> (T, usize) {
    let symbols = *stream.context().driver().symbols();
    let mode = cuda_events::sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
    let mut graph = std::ptr::null_mut();
    // SAFETY: no other thread has the stream.
    let begun = unsafe { (symbols.cuStreamBeginCapture_v2)(stream.as_raw(), mode) };
    check(Function::cuStreamBeginCapture_v2, begun);
    let (done, made) = calls(work);
    // SAFETY: a place for the graph, which is destroyed.
    unsafe {
        let ended = (symbols.cuStreamEndCapture)(stream.as_raw(), &mut graph);
        check(Function::cuStreamEndCapture, ended);
        check(Function::cuGraphDestroy, (symbols.cuGraphDestroy)(graph));
    }
    (done, writes(&made))
}

fn writes(made: &[Function]) -> usize {
    made.iter().filter(|made| **made == WRITE).count()
}

/// The device memory of such a timeline is freed one day. A graph with a write to it must not come
/// about, whichever code began the capture: by a signal, by the end of the timeline, or by its
/// drop.
#[test]
fn a_timeline_in_memory_is_never_captured() {
    let Some(gpu) = gpu() else { return };
    if !common::needs(gpu.driver, Function::cuIpcOpenMemHandle_v2) {
        return;
    }
    let context = counted_context(gpu.driver);
    let stream = Arc::new(Stream::new(&context, StreamOptions::new()).expect("a stream"));
    let memory = match TimelineMemory::new(&context) {
        Err(error) if cfg!(windows) => {
            assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_NOT_SUPPORTED));
            return common::say_not_run("Windows shares no device memory between processes");
        }
        memory => memory.expect("memory"),
    };
    let make = || Timeline::in_memory(Arc::clone(&stream), &memory).expect("a timeline");
    let timeline = make();
    let (point, made) = calls(|| timeline.signal().expect("a signal"));
    assert_eq!(made, [Function::cuStreamIsCapturing, WRITE, WRITE]);
    reached(point);
    let refused = Some(Error::TimelineInCapture { function: WRITE });
    let signalled = captured_by_others(&stream, || timeline.signal().err());
    assert_eq!(signalled, (refused.clone(), 0));
    assert_eq!(timeline.submitted(), Ok(point.value()));
    assert_eq!(captured_by_others(&stream, || timeline.poison().err()), (refused, 0));
    let timeline = make();
    assert_eq!(captured_by_others(&stream, || drop(timeline)), ((), 0));
    // In a capture of this crate the same.
    let timeline = make();
    let capture = common::begin_capture(&stream, CaptureMode::Relaxed).expect("a capture");
    let ((), made) = calls(|| drop(timeline));
    assert_eq!(writes(&made), 0, "{made:?}");
    capture.end().expect("it goes on");
    // Otherwise the drop ends it.
    let timeline = make();
    let ((), made) = calls(|| drop(timeline));
    assert_eq!(writes(&made), 1, "{made:?}");
}

/// A capture that was invalidated is one: the signal is refused, and not its write.
#[test]
fn an_invalidated_capture_refuses_signals_too() {
    let Some(gpu) = gpu() else { return };
    let stream = Arc::new(gpu.stream());
    let timeline = Timeline::new(Arc::clone(&stream)).expect("a timeline");
    let before = timeline.submitted();
    let capture = common::begin_capture(&stream, CaptureMode::Relaxed).expect("a capture");
    stream.synchronize().expect_err("a capturing stream cannot be waited for");
    assert_eq!(stream.capture_status(), Ok(CaptureStatus::Invalidated));
    assert_eq!(timeline.signal(), Err(Error::TimelineInCapture { function: WRITE }));
    assert_eq!(timeline.submitted(), before);
    capture.end().expect_err("it was invalidated");
    reached(timeline.signal().expect("a signal"));
}

/// A capture whose end fails is over, and signals of other streams ask about captures no more.
#[test]
fn a_failed_end_is_the_end_of_a_capture() {
    // The crate counts the captures of the process.
    common::own_process!();
    let Some(gpu) = gpu() else { return };
    let context = counted_context(gpu.driver);
    let stream = || Stream::new(&context, StreamOptions::new()).expect("a stream");
    let (captured, timeline) = (stream(), Timeline::new(stream()).expect("a timeline"));
    let capture = common::begin_capture(&captured, CaptureMode::Relaxed).expect("a capture");
    let (signalled, made) = calls(|| timeline.signal().is_ok());
    assert_eq!((signalled, made), (true, vec![Function::cuStreamIsCapturing, WRITE]));
    captured.synchronize().expect_err("a capturing stream cannot be waited for");
    capture.end().expect_err("it was invalidated");
    let (signalled, made) = calls(|| timeline.signal().is_ok());
    assert_eq!((signalled, made), (true, vec![WRITE]));
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

/// The primary context of the second device, which nobody else has, or none.
fn second_primary(gpu: &Gpu) -> Option<Context> {
    let Ok(second) = Device::new(gpu.driver, 1) else {
        common::not_run("this machine has one device");
        return None;
    };
    Some(Context::primary(second).expect("a context"))
}

/// A launch in a stream of another context keeps nothing alive: the drop of the last share of the
/// graph's context waits until that stream has done it. The graph has captured a wait, and its page
/// is registered for as long.
#[test]
fn the_last_drop_waits_for_a_launch_elsewhere() {
    common::own_process!("devices=2");
    let Some(gpu) = gpu() else { return };
    let Some(second) = second_primary(&gpu) else { return };
    let captured = Stream::new(&second, StreamOptions::new()).expect("a stream");
    let reaches = HostTimeline::new(&second).expect("a timeline");
    let capture = common::begin_capture(&captured, CaptureMode::Relaxed).expect("a capture");
    reaches.wait_ahead(&captured, reaches.completed() + 1).expect("a wait");
    let exec = capture.end().and_then(|graph| graph.instantiate()).expect("a graph");
    reaches.signal().expect("a signal");
    let launched = timeline(&gpu);
    let latch = Latch::hold(launched.stream());
    exec.launch(launched.stream()).expect("a launch");
    let done = launched.signal().expect("a signal");
    let context = second.downgrade();
    drop((captured, reaches, second));
    assert!(context.is_alive(), "the graph has the last share");
    std::thread::scope(|scope| {
        // Let go also where this fails.
        let latch = latch;
        let dropping = scope.spawn(|| {
            drop(exec);
            done.is_done()
        });
        wait_until("the last share is dropped", || !context.is_alive());
        latch.release();
        assert!(dropping.join().expect("no panic"), "the context ended before the launch was done");
    });
    reached(done);
}

/// A stream joins a capture of another context and waits for a point there. The graph keeps that
/// stream's context, in which the point's page is registered, until no launch can come.
#[test]
fn a_graph_keeps_the_contexts_of_streams_that_joined() {
    common::own_process!("devices=2");
    let Some(gpu) = gpu() else { return };
    for launch_until_end in [false, true] {
        let Some(second) = second_primary(&gpu) else { return };
        let (stream, joins) =
            (gpu.stream(), Stream::new(&second, StreamOptions::new()).expect("a stream"));
        let reaches = HostTimeline::new(&second).expect("a timeline");
        let capture = common::begin_capture(&stream, CaptureMode::Relaxed).expect("a capture");
        joins.wait_stream(&stream).expect("it joins");
        reaches.wait_ahead(&joins, reaches.completed() + 1).expect("a wait");
        stream.wait_stream(&joins).expect("it joins back");
        let graph = capture.end().expect("a graph");
        let context = second.downgrade();
        drop((joins, reaches, second));
        assert!(context.is_alive(), "a launch looks at the page");
        let exec = graph.instantiate().expect("it is instantiated");
        drop(graph);
        for _ in 0..2 {
            exec.launch(&stream).expect("a launch");
        }
        if !launch_until_end {
            idle(&stream);
        }
        assert!(context.is_alive());
        drop(exec);
        assert!(!context.is_alive(), "nobody has a share");
        idle(&stream);
    }
}

#[test]
fn the_per_thread_stream_has_no_timeline() {
    let Some(gpu) = gpu() else { return };
    let own = StreamRef::per_thread_default(&gpu.context);
    assert_eq!(Timeline::new(own).map(drop), Err(Error::PerThreadTimeline));
    // The legacy default stream can have a timeline.
    let timeline = Timeline::new(StreamRef::legacy_default(&gpu.context)).expect("a timeline");
    reached(timeline.signal().expect("a signal"));
}
