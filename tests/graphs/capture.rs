//! Captures: modes, ends, what is captured and what the driver says of it.

use crate::common::{self};

use std::cell::{Cell, RefCell};
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use common::counting::Watched;
use common::{Gpu, current};
use cuda_events::capture::{
    Capture, CaptureDependency, CaptureMode, CaptureStatus, ThreadCaptureMode,
};
use cuda_events::graph::Graph;
use cuda_events::sys::{CUgraphEdgeData, CUresult, Function};
use cuda_events::{
    Context, Driver, Error, Event, EventFlags, Progress, Stream, StreamOptions, StreamRef,
};

pub const MODES: [CaptureMode; 3] =
    [CaptureMode::Global, CaptureMode::ThreadLocal, CaptureMode::Relaxed];

pub const UNSUPPORTED: CUresult = CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
pub const INVALIDATED: CUresult = CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;

pub fn event(gpu: &Gpu) -> Event {
    Event::new(&gpu.context, EventFlags::empty()).expect("an event")
}

pub fn shared(gpu: &Gpu) -> Arc<Event> {
    Arc::new(event(gpu))
}

#[track_caller]
pub fn code<T: std::fmt::Debug>(result: Result<T, Error>) -> CUresult {
    result.expect_err("a failure").code().expect("the driver's code")
}

/// Puts a function into the stream that counts how often it is called.
fn count(stream: &StreamRef, counter: &'static AtomicU32) {
    unsafe extern "C" fn add(counter: *mut c_void) {
        // SAFETY: the address is that of a static counter.
        unsafe { &*counter.cast::<AtomicU32>() }.fetch_add(1, Ordering::Relaxed);
    }
    let data = std::ptr::from_ref(counter).cast_mut().cast();
    // SAFETY: the function takes the address of a static, as often as it is called.
    unsafe { stream.launch_host_function_raw(add, data) }.expect("a host function");
}

/// The driver with an observer, and the calls that it saw.
pub fn observed(gpu: &Gpu) -> (Context, impl Fn() -> Vec<Function>) {
    let watched = Watched::new(gpu.driver);
    (watched.context(), move || watched.made())
}

#[test]
fn captured_work_is_done_at_each_launch() {
    static CALLED: AtomicU32 = AtomicU32::new(0);
    let gpu = Gpu::new();
    for mode in MODES {
        let stream = gpu.stream();
        CALLED.store(0, Ordering::Relaxed);
        let capture = common::begin_capture(&stream, mode).expect("a capture");
        assert_eq!(capture.stream(), &*stream);
        count(&stream, &CALLED);
        let graph = capture.end().expect("a graph");
        assert_eq!(graph.context(), &gpu.context);
        stream.synchronize().expect("an empty stream");
        assert_eq!(CALLED.load(Ordering::Relaxed), 0, "{mode:?}");
        let exec = graph.instantiate().expect("an executable graph");
        for launches in 1..=3 {
            exec.launch(&stream).expect("a launch");
            stream.synchronize().expect("the work ends");
            assert_eq!(CALLED.load(Ordering::Relaxed), launches, "{mode:?}");
        }
    }
}

#[test]
fn a_capture_spreads_to_the_streams_that_wait_for_it() {
    static CALLED: AtomicU32 = AtomicU32::new(0);
    let gpu = Gpu::new();
    if !common::needs(gpu.driver, cuda_events::sys::Function::cuStreamGetCaptureInfo_v2) {
        return;
    }
    let (first, second) = (gpu.stream(), gpu.stream());
    let capture = common::begin_capture(&first, CaptureMode::ThreadLocal).expect("a capture");
    assert_eq!(second.capture_status(), Ok(CaptureStatus::None));
    second.wait_stream(&first).expect("the fork");
    assert_eq!(second.capture_status(), Ok(CaptureStatus::Active));
    let (here, there) =
        (first.capture_info().expect("an answer"), second.capture_info().expect("an answer"));
    assert_eq!(here, there);
    count(&second, &CALLED);
    first.wait_stream(&second).expect("the join");
    let graph = capture.end().expect("a graph");
    assert_eq!(graph.as_raw(), here.graph);
    for stream in [&first, &second] {
        assert_eq!(stream.capture_status(), Ok(CaptureStatus::None));
        assert_eq!(stream.query(), Ok(Progress::Done));
    }
    graph.instantiate().and_then(|exec| exec.launch(&first)).expect("a launch");
    first.synchronize().expect("the work ends");
    assert_eq!(CALLED.load(Ordering::Relaxed), 1);
}

#[test]
fn unjoined_work_ends_it_with_an_error() {
    static CALLED: AtomicU32 = AtomicU32::new(0);
    let gpu = Gpu::new();
    let (first, second) = (gpu.stream(), gpu.stream());
    let capture = common::begin_capture(&first, CaptureMode::ThreadLocal).expect("a capture");
    second.wait_stream(&first).expect("the fork");
    count(&second, &CALLED);
    let error = capture.end().expect_err("work that nobody waits for");
    assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_STREAM_CAPTURE_UNJOINED));
    assert!(error.to_string().contains("does not wait for all work"), "{error}");
    for stream in [&first, &second] {
        assert_eq!(stream.capture_status(), Ok(CaptureStatus::None));
        assert_eq!(stream.synchronize(), Ok(()));
    }
    assert_eq!(CALLED.load(Ordering::Relaxed), 0);
}

#[test]
fn the_mode_says_which_queries_invalidate_a_capture() {
    let gpu = Gpu::new();
    let event = event(&gpu);
    let elsewhere = |work: &(dyn Fn() -> Result<Progress, Error> + Sync)| {
        std::thread::scope(|scope| scope.spawn(work).join().expect("no panic"))
    };
    for mode in MODES {
        let stream = gpu.stream();
        let other = gpu.stream();
        let works = |capture: Capture<'_>, result: Result<Progress, Error>, allowed: bool| {
            if allowed {
                assert_eq!(result, Ok(Progress::Done), "{mode:?}");
                assert_eq!(stream.capture_status(), Ok(CaptureStatus::Active), "{mode:?}");
                capture.end().expect("a graph");
            } else {
                let error = result.expect_err("not in this mode");
                assert_eq!(error.code(), Some(UNSUPPORTED), "{mode:?}");
                assert!(error.to_string().contains("CaptureMode"), "{error}");
                assert_eq!(stream.capture_status(), Ok(CaptureStatus::Invalidated), "{mode:?}");
                assert_eq!(code(capture.end()), INVALIDATED, "{mode:?}");
            }
            assert_eq!(stream.query(), Ok(Progress::Done), "{mode:?}");
        };
        let begin = || common::begin_capture(&stream, mode).expect("a capture");
        let capture = begin();
        works(capture, event.query(), mode == CaptureMode::Relaxed);
        let capture = begin();
        works(capture, other.query(), mode == CaptureMode::Relaxed);
        let capture = begin();
        works(capture, elsewhere(&|| event.query()), mode != CaptureMode::Global);
        let capture = begin();
        works(capture, stream.query(), false);
        // Whoever has exempted his thread breaks nothing.
        for exempt in [CaptureMode::ThreadLocal, CaptureMode::Relaxed] {
            let exempted = || {
                let _exempt = ThreadCaptureMode::exchange(gpu.driver, exempt)?;
                event.query()
            };
            let capture = begin();
            works(capture, elsewhere(&exempted), true);
            let capture = begin();
            works(
                capture,
                exempted(),
                exempt == CaptureMode::Relaxed || mode == CaptureMode::Relaxed,
            );
        }
    }
}

#[test]
fn the_threads_mode_is_restored() {
    let gpu = Gpu::new();
    let (stream, event) = (gpu.stream(), event(&gpu));
    // What the thread's mode is shows in whether a query breaks a global capture of its own.
    let relaxed = || {
        let capture = common::begin_capture(&stream, CaptureMode::Global).expect("a capture");
        let relaxed = event.query().is_ok();
        assert_eq!(capture.end().is_ok(), relaxed);
        relaxed
    };
    assert!(!relaxed());
    {
        let outer = ThreadCaptureMode::exchange(gpu.driver, CaptureMode::Relaxed)
            .expect("the mode changes");
        let text = format!("{outer:?}");
        assert!(text.starts_with("ThreadCaptureMode { before: "), "{text}");
        assert!(relaxed());
        {
            let _inner = ThreadCaptureMode::exchange(gpu.driver, CaptureMode::Global)
                .expect("the mode changes");
            assert!(!relaxed());
        }
        assert!(relaxed());
    }
    assert!(!relaxed());
    let unwound = catch_unwind(AssertUnwindSafe(|| {
        let guard = ThreadCaptureMode::exchange(gpu.driver, CaptureMode::Relaxed)
            .expect("the mode changes");
        assert!(format!("{guard:?}").starts_with("ThreadCaptureMode { before: "), "{guard:?}");
        resume_unwind(Box::new(()));
    }));
    assert!(unwound.is_err());
    assert!(!relaxed());
}

#[test]
fn a_dropped_capture_is_ended() {
    let gpu = Gpu::new();
    if !common::needs(gpu.driver, cuda_events::sys::Function::cuStreamBeginCaptureToGraph) {
        return;
    }
    let (context, calls) = observed(&gpu);
    let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
    let usable = || {
        assert_eq!(stream.capture_status(), Ok(CaptureStatus::None));
        let event = stream.record_event(EventFlags::empty()).expect("a record that is done");
        assert_eq!(event.synchronize(), Ok(()));
    };
    let ends = || {
        calls()
            .into_iter()
            .filter(|call| [Function::cuStreamEndCapture, Function::cuGraphDestroy].contains(call))
            .collect::<Vec<_>>()
    };
    let both: Vec<Function> = vec![Function::cuStreamEndCapture, Function::cuGraphDestroy];

    drop(common::begin_capture(&stream, CaptureMode::Global).expect("a capture"));
    assert_eq!(ends(), both);
    usable();

    let capture = common::begin_capture(&stream, CaptureMode::Global).expect("a capture");
    assert_eq!(code(stream.query()), UNSUPPORTED);
    drop(capture);
    assert_eq!(ends(), [Function::cuStreamEndCapture], "an invalidated capture has no graph");
    usable();

    let unwound = catch_unwind(AssertUnwindSafe(|| {
        let _capture = common::begin_capture(&stream, CaptureMode::Global).expect("a capture");
        resume_unwind(Box::new(()));
    }));
    assert!(unwound.is_err());
    assert_eq!(ends(), both);
    usable();

    let graph = Graph::new(&context).expect("a graph");
    drop(
        common::begin_capture_to_graph(&stream, graph, &[], CaptureMode::Global)
            .expect("a capture"),
    );
    assert_eq!(ends(), both);
    usable();

    let graph = common::begin_capture(&stream, CaptureMode::Global)
        .and_then(Capture::end)
        .expect("a graph");
    assert_eq!(ends(), [Function::cuStreamEndCapture], "it is ended once");
    drop(graph);
    assert_eq!(ends(), [Function::cuGraphDestroy]);
    usable();
}

#[test]
fn what_cannot_be_captured_is_said() {
    let gpu = Gpu::new();
    if !common::needs(gpu.driver, cuda_events::sys::Function::cuGraphAddEventRecordNode) {
        return;
    }
    let legacy = StreamRef::legacy_default(&gpu.context);
    let error =
        common::begin_capture(&legacy, CaptureMode::Relaxed).expect_err("it cannot be captured");
    assert_eq!(error.code(), Some(UNSUPPORTED));
    assert!(error.to_string().contains("legacy default stream"), "{error}");

    let stream = gpu.stream();
    let capture = common::begin_capture(&stream, CaptureMode::Relaxed).expect("a capture");
    let error =
        common::begin_capture(&stream, CaptureMode::Relaxed).expect_err("it captures already");
    assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_ILLEGAL_STATE));
    assert!(error.to_string().contains("already capturing"), "{error}");
    assert_eq!(stream.capture_status(), Ok(CaptureStatus::Active), "the first goes on");
    capture.end().expect("a graph");

    let mut graph = Graph::new(&gpu.context).expect("a graph");
    graph.add_event_record_node(&[], &shared(&gpu)).expect("a node");
    let exec = graph.instantiate().expect("an executable graph");
    let capture = common::begin_capture(&stream, CaptureMode::Global).expect("a capture");
    let error = exec.launch(&stream).expect_err("graphs do not nest so");
    assert_eq!(error.code(), Some(UNSUPPORTED));
    assert!(error.to_string().contains("cannot be launched in a capturing stream"), "{error}");
    assert_eq!(code(capture.end()), INVALIDATED);
}

#[test]
fn a_per_thread_default_stream_can_be_captured() {
    let gpu = Gpu::new();
    let stream = StreamRef::per_thread_default(&gpu.context);
    let capture = common::begin_capture(&stream, CaptureMode::ThreadLocal).expect("a capture");
    assert_eq!(stream.capture_status(), Ok(CaptureStatus::Active));
    let exec = capture.end().and_then(|graph| graph.instantiate()).expect("an executable graph");
    exec.launch(&stream).expect("a launch");
    exec.launch(&StreamRef::legacy_default(&gpu.context)).expect("a launch");
    stream.synchronize().expect("the work ends");
    drop(common::begin_capture(&stream, CaptureMode::ThreadLocal).expect("a capture"));
    assert_eq!(stream.capture_status(), Ok(CaptureStatus::None));
    assert!(current(gpu.driver).is_null());
}

#[test]
fn a_blocking_capture_shuts_the_legacy_stream() {
    let gpu = Gpu::new();
    let legacy = StreamRef::legacy_default(&gpu.context);
    let stream = Stream::new(&gpu.context, StreamOptions::new().blocking(true)).expect("a stream");
    let capture = common::begin_capture(&stream, CaptureMode::Relaxed).expect("a capture");
    let error = legacy.capture_status().expect_err("it would be captured implicitly");
    assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_STREAM_CAPTURE_IMPLICIT));
    assert!(error.to_string().contains("legacy default stream"), "{error}");
    drop(capture);
    assert_eq!(legacy.capture_status(), Ok(CaptureStatus::None));
}

#[test]
fn waits_do_not_cross_the_bounds_of_a_capture() {
    let gpu = Gpu::new();
    let (first, second) = (gpu.stream(), gpu.stream());
    let outside = first.record_event(EventFlags::empty()).expect("an event");
    let capture = common::begin_capture(&first, CaptureMode::Relaxed).expect("a capture");
    first.wait_event(&event(&gpu)).expect("nothing is waited for");
    assert_eq!(first.capture_status(), Ok(CaptureStatus::Active));
    let error = first.wait_event(&outside).expect_err("it was recorded outside");
    assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_STREAM_CAPTURE_ISOLATION));
    assert!(error.to_string().contains("unless the wait is external"), "{error}");
    assert_eq!(code(capture.end()), INVALIDATED);

    let one = common::begin_capture(&first, CaptureMode::Relaxed).expect("a capture");
    let two = common::begin_capture(&second, CaptureMode::Relaxed).expect("a capture");
    let inside = first.record_event(EventFlags::empty()).expect("an event");
    let error = second.wait_event(&inside).expect_err("it was recorded in another capture");
    assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_STREAM_CAPTURE_MERGE));
    assert!(error.to_string().contains("another capture"), "{error}");
    assert_eq!(code(one.end()), INVALIDATED);
    assert_eq!(code(two.end()), INVALIDATED);
}

#[test]
fn an_event_of_a_capture_is_for_that_capture() {
    let gpu = Gpu::new();
    let stream = gpu.stream();
    let event = Event::new(&gpu.context, EventFlags::TIMING).expect("an event");
    let capture = common::begin_capture(&stream, CaptureMode::Relaxed).expect("a capture");
    event.record(&stream).expect("a record");
    assert_eq!(code(event.elapsed_ms(&event)), CUresult::CUDA_ERROR_CAPTURED_EVENT);
    assert_eq!(stream.capture_status(), Ok(CaptureStatus::Active), "which harms nothing");
    let error = event.query().expect_err("it stands for no work");
    assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_CAPTURED_EVENT));
    assert!(error.to_string().contains("until it is recorded again outside"), "{error}");
    assert_eq!(code(capture.end()), INVALIDATED);
    let capture = common::begin_capture(&stream, CaptureMode::Relaxed).expect("a capture");
    event.record(&stream).expect("a record");
    capture.end().expect("a graph");
    assert_eq!(code(event.query()), CUresult::CUDA_ERROR_INVALID_VALUE);
    assert_eq!(code(stream.wait_event(&event)), CUresult::CUDA_ERROR_INVALID_VALUE);
    event.record(&stream).expect("a record");
    assert_eq!(event.synchronize(), Ok(()));
    assert_eq!(event.query(), Ok(Progress::Done));
}

#[test]
fn a_capture_can_add_to_a_graph() {
    let gpu = Gpu::new();
    if !common::needs(gpu.driver, cuda_events::sys::Function::cuStreamBeginCaptureToGraph) {
        return;
    }
    let stream = gpu.stream();
    let events = [shared(&gpu), shared(&gpu)];
    let mut graph = Graph::new(&gpu.context).expect("a graph");
    let first = graph.add_event_record_node(&[], &events[0]).expect("a node");
    let raw = graph.as_raw();
    let capture =
        common::begin_capture_to_graph(&stream, graph, &[first], CaptureMode::ThreadLocal)
            .expect("a capture");
    // SAFETY: this thread is the only one that uses the stream.
    let dependencies = unsafe { capture.dependencies(&stream) }.expect("dependencies");
    assert_eq!(dependencies, [CaptureDependency::from(first)]);
    stream.record_external(&events[1]).expect("a record");
    // SAFETY: as above.
    let second = unsafe { capture.dependencies(&stream) }.expect("dependencies")[0].node;
    let graph = capture.end().expect("the graph comes back");
    assert_eq!(graph.as_raw(), raw);
    for (node, event) in [first, second].into_iter().zip(&events) {
        let known = graph
            .record_node_event(node)
            .expect("a record node")
            .expect("an event of this program's");
        assert!(Arc::ptr_eq(&known, event));
    }

    let other = Graph::new(&gpu.context).expect("a graph");
    let function = Function::cuStreamBeginCaptureToGraph;
    let error = common::begin_capture_to_graph(&stream, other, &[first], CaptureMode::ThreadLocal)
        .expect_err("a foreign node");
    assert_eq!(error, Error::GraphMismatch { function });
    assert!(error.to_string().contains("another graph"), "{error}");

    // Which destroys the graph, in the driver; the wrapper must not do it again.
    let capture = common::begin_capture_to_graph(&stream, graph, &[], CaptureMode::ThreadLocal)
        .expect("a capture");
    stream.query().expect_err("a query of the stream itself");
    assert_eq!(code(capture.end()), INVALIDATED);
    assert_eq!(stream.query(), Ok(Progress::Done));
}

#[test]
fn every_code_of_captures_comes_with_advice() {
    for code in 900..=908 {
        let error = Error::Driver { function: Function::cuEventSynchronize, code: CUresult(code) };
        let text = error.to_string();
        assert!(
            text.contains("CAPTURE")
                && text.split_once(": ").is_some_and(|(_, advice)| !advice.is_empty()),
            "{text}"
        );
    }
}

thread_local! {
    static REAL: Cell<Option<Driver>> = const { Cell::new(None) };
    /// The edges that the driver was given last.
    static GIVEN: RefCell<Vec<CUgraphEdgeData>> = const { RefCell::new(Vec::new()) };
}
