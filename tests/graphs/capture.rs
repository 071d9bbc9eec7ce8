//! Captures: modes, ends, what is captured and what the driver says of it.

use crate::common::{self};

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use common::Gpu;
use common::counting::Watched;
use cuda_events::capture::{
    Capture, CaptureDependency, CaptureMode, CaptureStatus, ThreadCaptureMode,
};
use cuda_events::graph::Graph;
use cuda_events::sys::{CUresult, Function};
use cuda_events::{Context, Error, Event, EventFlags, Progress, Stream, StreamOptions, StreamRef};

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
    let Some(gpu) = Gpu::with(Function::cuStreamBeginCaptureToGraph) else { return };
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
fn a_capture_can_add_to_a_graph() {
    let Some(gpu) = Gpu::with(Function::cuStreamBeginCaptureToGraph) else { return };
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
