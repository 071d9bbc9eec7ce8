//! Captures: modes, ends, what is captured and what the driver says of it.

use crate::common::{self, table};

use std::cell::{Cell, RefCell};
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use common::counting::Watched;
use common::{Gpu, current};
use cuda_events::capture::{
    Capture, CaptureDependency, CaptureMode, CaptureStatus, DependencyUpdate, ThreadCaptureMode,
};
use cuda_events::graph::Graph;
use cuda_events::sys::{CUgraph, CUgraphEdgeData, CUgraphNode, CUresult, CUstream, CUstreamCaptureStatus, Function};
use cuda_events::{
    Context, Device, Driver, Error, Event, EventFlags, Progress, Stream, StreamOptions, StreamRef, Version,
};
use cuda_soft_driver::SoftDriver;

const MODES: [CaptureMode; 3] = [CaptureMode::Global, CaptureMode::ThreadLocal, CaptureMode::Relaxed];

const UNSUPPORTED: CUresult = CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
const INVALIDATED: CUresult = CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;

fn event(gpu: &Gpu) -> Event {
    Event::new(&gpu.context, EventFlags::empty()).expect("an event")
}

fn shared(gpu: &Gpu) -> Arc<Event> {
    Arc::new(event(gpu))
}

#[track_caller]
fn code<T: std::fmt::Debug>(result: Result<T, Error>) -> CUresult {
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
fn observed(gpu: &Gpu) -> (Context, impl Fn() -> Vec<Function>) {
    let watched = Watched::new(gpu.driver);
    (watched.context(), move || watched.made())
}

#[test]
fn what_is_captured_is_done_at_each_launch_and_not_before() {
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
    let (here, there) = (first.capture_info().expect("an answer"), second.capture_info().expect("an answer"));
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
fn work_that_is_not_joined_ends_the_capture_with_an_error() {
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
            works(capture, exempted(), exempt == CaptureMode::Relaxed || mode == CaptureMode::Relaxed);
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
        let _outer = ThreadCaptureMode::exchange(gpu.driver, CaptureMode::Relaxed).expect("the mode changes");
        assert!(relaxed());
        {
            let _inner = ThreadCaptureMode::exchange(gpu.driver, CaptureMode::Global).expect("the mode changes");
            assert!(!relaxed());
        }
        assert!(relaxed());
    }
    assert!(!relaxed());
    let unwound = catch_unwind(AssertUnwindSafe(|| {
        let guard = ThreadCaptureMode::exchange(gpu.driver, CaptureMode::Relaxed).expect("the mode changes");
        assert!(format!("{guard:?}").starts_with("ThreadCaptureMode { before: "), "{guard:?}");
        resume_unwind(Box::new(()));
    }));
    assert!(unwound.is_err());
    assert!(!relaxed());
}

#[test]
fn a_capture_that_is_dropped_is_ended_and_its_graph_destroyed() {
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
    drop(common::begin_capture_to_graph(&stream, graph, &[], CaptureMode::Global).expect("a capture"));
    assert_eq!(ends(), both);
    usable();

    let graph = common::begin_capture(&stream, CaptureMode::Global).and_then(Capture::end).expect("a graph");
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
    let error = common::begin_capture(&legacy, CaptureMode::Relaxed).expect_err("it cannot be captured");
    assert_eq!(error.code(), Some(UNSUPPORTED));
    assert!(error.to_string().contains("legacy default stream"), "{error}");

    let stream = gpu.stream();
    let capture = common::begin_capture(&stream, CaptureMode::Relaxed).expect("a capture");
    let error = common::begin_capture(&stream, CaptureMode::Relaxed).expect_err("it captures already");
    assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_ILLEGAL_STATE));
    assert!(error.to_string().contains("captures already"), "{error}");
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
fn a_blocking_stream_that_captures_shuts_the_legacy_default_stream() {
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
fn an_event_of_a_capture_is_for_that_capture_until_it_is_recorded_outside() {
    let gpu = Gpu::new();
    let stream = gpu.stream();
    let event = Event::new(&gpu.context, EventFlags::TIMING).expect("an event");
    let capture = common::begin_capture(&stream, CaptureMode::Relaxed).expect("a capture");
    event.record(&stream).expect("a record");
    assert_eq!(code(event.elapsed_ms(&event)), CUresult::CUDA_ERROR_CAPTURED_EVENT);
    assert_eq!(stream.capture_status(), Ok(CaptureStatus::Active), "which harms nothing");
    let error = event.query().expect_err("it stands for no work");
    assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_CAPTURED_EVENT));
    assert!(error.to_string().contains("until it is recorded outside"), "{error}");
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
fn each_capture_has_an_id_of_its_own() {
    let gpu = Gpu::new();
    if !common::needs(gpu.driver, cuda_events::sys::Function::cuStreamGetCaptureInfo_v2) {
        return;
    }
    let stream = gpu.stream();
    let before = stream.capture_info().expect("an answer");
    assert_eq!((before.status, before.id, before.graph.is_null()), (CaptureStatus::None, None, true));
    let mut ids = Vec::new();
    for _ in 0..3 {
        let capture = common::begin_capture(&stream, CaptureMode::ThreadLocal).expect("a capture");
        assert_eq!(format!("{capture:?}"), format!("Capture {{ stream: {:?}, .. }}", &*stream));
        let info = stream.capture_info().expect("an answer");
        assert_eq!((info.status, info.graph.is_null()), (CaptureStatus::Active, false));
        ids.extend(info.id);
        capture.end().expect("a graph");
    }
    ids.dedup();
    assert_eq!(ids.len(), 3, "{ids:?}");
    let capture = common::begin_capture(&stream, CaptureMode::ThreadLocal).expect("a capture");
    stream.query().expect_err("a query of the stream itself");
    let info = stream.capture_info().expect("an answer");
    assert_eq!((info.status, info.id, info.graph.is_null()), (CaptureStatus::Invalidated, None, true));
    drop(capture);
}

#[test]
fn dependencies_are_told_and_can_be_changed() {
    let gpu = Gpu::new();
    if !common::needs(gpu.driver, cuda_events::sys::Function::cuStreamUpdateCaptureDependencies_v2) {
        return;
    }
    let (stream, other) = (gpu.stream(), gpu.stream());
    let events = [shared(&gpu), shared(&gpu)];
    let capture = common::begin_capture(&stream, CaptureMode::ThreadLocal).expect("a capture");
    let nodes = || {
        // SAFETY: this thread is the only one that uses the streams.
        let dependencies = unsafe { capture.dependencies(&stream) }.expect("dependencies");
        assert!(dependencies.iter().all(|dependency| dependency.edge == CUgraphEdgeData::default()));
        dependencies.iter().map(|dependency| dependency.node).collect::<Vec<_>>()
    };
    let update = |stream: &StreamRef, nodes: &[_], how| {
        let dependencies: Vec<CaptureDependency> = nodes.iter().copied().map(CaptureDependency::from).collect();
        capture.update_dependencies(stream, &dependencies, how)
    };
    assert_eq!(nodes(), []);
    stream.record_external(&events[0]).expect("a record");
    let [first] = nodes()[..] else { panic!("{:?}", nodes()) };
    update(&stream, &[], DependencyUpdate::Set).expect("an update");
    assert_eq!(nodes(), []);
    stream.record_external(&events[1]).expect("a record");
    let [second] = nodes()[..] else { panic!("{:?}", nodes()) };
    assert_ne!(first, second);
    update(&stream, &[first], DependencyUpdate::Add).expect("an update");
    assert_eq!(nodes().len(), 2);
    update(&stream, &[first], DependencyUpdate::Set).expect("an update");
    assert_eq!(nodes(), [first]);

    let function = Function::cuStreamUpdateCaptureDependencies_v2;
    assert_eq!(update(&other, &[], DependencyUpdate::Set), Err(Error::CaptureMismatch { function }));
    // SAFETY: as above.
    assert!(matches!(unsafe { capture.dependencies(&other) }, Err(Error::CaptureMismatch { .. })));
    let third = gpu.stream();
    let elsewhere = common::begin_capture(&third, CaptureMode::ThreadLocal).expect("a capture");
    assert_eq!(update(&third, &[], DependencyUpdate::Set), Err(Error::CaptureMismatch { function }));
    elsewhere.end().expect("it is unharmed");
    let mut graph = Graph::new(&gpu.context).expect("a graph");
    let foreign = graph.add_event_record_node(&[], &events[0]).expect("a node");
    assert_eq!(update(&stream, &[foreign], DependencyUpdate::Set), Err(Error::GraphMismatch { function }));
    assert_eq!(nodes(), [first], "nothing came of these");

    // The nodes are names of the graph's.
    let graph = capture.end().expect("a graph");
    for (node, event) in [first, second].into_iter().zip(&events) {
        let known = graph.record_node_event(node).expect("a record node").expect("an event of this program's");
        assert!(Arc::ptr_eq(&known, event));
    }
}

#[test]
fn the_dependencies_of_an_invalidated_capture_are_not_there() {
    let gpu = Gpu::new();
    let stream = gpu.stream();
    let capture = common::begin_capture(&stream, CaptureMode::ThreadLocal).expect("a capture");
    stream.query().expect_err("a query of the stream itself");
    // SAFETY: this thread is the only one that uses the stream.
    assert_eq!(code(unsafe { capture.dependencies(&stream) }), INVALIDATED);
    assert_eq!(code(capture.update_dependencies(&stream, &[], DependencyUpdate::Set)), INVALIDATED);
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
        common::begin_capture_to_graph(&stream, graph, &[first], CaptureMode::ThreadLocal).expect("a capture");
    // SAFETY: this thread is the only one that uses the stream.
    let dependencies = unsafe { capture.dependencies(&stream) }.expect("dependencies");
    assert_eq!(dependencies, [CaptureDependency::from(first)]);
    stream.record_external(&events[1]).expect("a record");
    // SAFETY: as above.
    let second = unsafe { capture.dependencies(&stream) }.expect("dependencies")[0].node;
    let graph = capture.end().expect("the graph comes back");
    assert_eq!(graph.as_raw(), raw);
    for (node, event) in [first, second].into_iter().zip(&events) {
        let known = graph.record_node_event(node).expect("a record node").expect("an event of this program's");
        assert!(Arc::ptr_eq(&known, event));
    }

    let other = Graph::new(&gpu.context).expect("a graph");
    let function = Function::cuStreamBeginCaptureToGraph;
    let error =
        common::begin_capture_to_graph(&stream, other, &[first], CaptureMode::ThreadLocal).expect_err("a foreign node");
    assert_eq!(error, Error::GraphMismatch { function });
    assert!(error.to_string().contains("another graph"), "{error}");

    // Which destroys the graph, in the driver; the wrapper must not do it again.
    let capture = common::begin_capture_to_graph(&stream, graph, &[], CaptureMode::ThreadLocal).expect("a capture");
    stream.query().expect_err("a query of the stream itself");
    assert_eq!(code(capture.end()), INVALIDATED);
    assert_eq!(stream.query(), Ok(Progress::Done));
}

#[test]
fn older_drivers_say_what_they_can() {
    for (major, minor) in [(11, 0), (11, 3), (12, 2), (12, 3)] {
        let soft = SoftDriver::builder().version(major, minor).build();
        let version = Version::new(major, minor);
        let context = Device::new(soft.driver(), 0).and_then(Context::primary).expect("the context");
        let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
        let capture = common::begin_capture(&stream, CaptureMode::ThreadLocal).expect("a capture");
        let info = stream.capture_info().expect("an answer");
        assert_eq!(info.status, CaptureStatus::Active);
        assert!(info.id.is_some());
        assert_eq!(info.graph.is_null(), version < Version::new(11, 3));
        // SAFETY: this thread is the only one that uses the stream.
        let dependencies = unsafe { capture.dependencies(&stream) };
        let updated = capture.update_dependencies(&stream, &[], DependencyUpdate::Set);
        if version < Version::new(11, 3) {
            let function = Function::cuStreamGetCaptureInfo_v2;
            let since = Version::new(11, 3);
            assert_eq!(dependencies, Err(Error::Unsupported { function, since, driver: version }));
            let function = Function::cuStreamUpdateCaptureDependencies;
            assert_eq!(updated, Err(Error::Unsupported { function, since, driver: version }));
        } else {
            assert_eq!(dependencies, Ok(Vec::new()));
            assert_eq!(updated, Ok(()));
        }
        if version == Version::new(12, 2) {
            let event = Arc::new(Event::new(&context, EventFlags::empty()).expect("an event"));
            stream.record_external(&event).expect("a record");
            // SAFETY: as above.
            let mut dependency = unsafe { capture.dependencies(&stream) }.expect("dependencies")[0];
            dependency.edge.type_ = 1;
            let error = capture.update_dependencies(&stream, &[dependency], DependencyUpdate::Set);
            let function = Function::cuStreamUpdateCaptureDependencies_v2;
            assert_eq!(error, Err(Error::Unsupported { function, since: Version::new(12, 3), driver: version }));
        }
        let graph = capture.end().expect("a graph");
        let into = common::begin_capture_to_graph(&stream, graph, &[], CaptureMode::ThreadLocal);
        assert_eq!(into.is_ok(), version >= Version::new(12, 3), "{into:?}");
    }
}

#[test]
fn dependencies_that_the_query_cannot_tell_are_an_error() {
    unsafe extern "C" fn lossy(
        stream: CUstream,
        status: *mut CUstreamCaptureStatus,
        id: *mut u64,
        graph: *mut CUgraph,
        dependencies: *mut *const CUgraphNode,
        count: *mut usize,
    ) -> CUresult {
        if !dependencies.is_null() {
            return CUresult::CUDA_ERROR_LOSSY_QUERY;
        }
        let real = REAL.get().and_then(|driver| driver.symbols().cuStreamGetCaptureInfo_v2).expect("CUDA 11.3");
        // SAFETY: the caller's arguments, passed on.
        unsafe { real(stream, status, id, graph, dependencies, count) }
    }
    static REAL: std::sync::OnceLock<cuda_events::Driver> = std::sync::OnceLock::new();
    let gpu = Gpu::new();
    if !common::needs(gpu.driver, cuda_events::sys::Function::cuStreamGetCaptureInfo_v2) {
        return;
    }
    REAL.get_or_init(|| gpu.driver);
    let older = table::replaced(gpu.driver, |function| match function {
        Function::cuStreamGetCaptureInfo_v3 => Some(std::ptr::null_mut()),
        Function::cuStreamGetCaptureInfo_v2 => Some(lossy as *mut c_void),
        _ => None,
    });
    let context = Device::new(older, 0).and_then(Context::primary).expect("the context");
    let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
    let capture = common::begin_capture(&stream, CaptureMode::ThreadLocal).expect("a capture");
    // SAFETY: this thread is the only one that uses the stream.
    let error = unsafe { capture.dependencies(&stream) }.expect_err("it cannot be told");
    assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_LOSSY_QUERY));
    assert!(error.to_string().contains("edge data"), "{error}");
    capture.end().expect("which harms nothing");
}

#[test]
fn every_code_of_captures_comes_with_advice() {
    for code in 900..=908 {
        let error = Error::Driver { function: Function::cuEventSynchronize, code: CUresult(code) };
        let text = error.to_string();
        assert!(
            text.contains("CAPTURE") && text.split_once(": ").is_some_and(|(_, advice)| !advice.is_empty()),
            "{text}"
        );
    }
}

#[test]
fn a_capture_whose_info_fails_is_ended() {
    let gpu = Gpu::new();
    if !common::needs(gpu.driver, cuda_events::sys::Function::cuStreamGetCaptureInfo_v3) {
        return;
    }
    unsafe extern "C" fn fail(
        _: CUstream,
        _: *mut CUstreamCaptureStatus,
        _: *mut u64,
        _: *mut CUgraph,
        _: *mut *const CUgraphNode,
        _: *mut *const CUgraphEdgeData,
        _: *mut usize,
    ) -> CUresult {
        CUresult(4242)
    }
    let failing = table::replaced(gpu.driver, |function| {
        (function == Function::cuStreamGetCaptureInfo_v3).then_some(fail as *mut c_void)
    });
    let context = Device::new(failing, 0).and_then(Context::primary).expect("the context");
    let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
    assert_eq!(code(common::begin_capture(&stream, CaptureMode::Global)), CUresult(4242));
    assert_eq!(stream.capture_status(), Ok(CaptureStatus::None));
    assert_eq!(stream.query(), Ok(Progress::Done));
}

thread_local! {
    static REAL: Cell<Option<Driver>> = const { Cell::new(None) };
    /// The edges that the driver was given last.
    static GIVEN: RefCell<Vec<CUgraphEdgeData>> = const { RefCell::new(Vec::new()) };
}

fn edge(from_port: u8) -> CUgraphEdgeData {
    CUgraphEdgeData { from_port, to_port: 2, type_: 1, reserved: [0; 5] }
}

/// The edge data reaches the driver with its node, and comes back with it. The software driver has none of its own.
#[test]
fn dependencies_have_their_edge_data() {
    extern "C" fn update(
        stream: CUstream,
        nodes: *mut CUgraphNode,
        edges: *const CUgraphEdgeData,
        count: usize,
        flags: u32,
    ) -> CUresult {
        // SAFETY: the caller says that there are as many.
        GIVEN.set(unsafe { std::slice::from_raw_parts(edges, count) }.to_vec());
        let real = REAL.get().and_then(|driver| driver.symbols().cuStreamUpdateCaptureDependencies_v2);
        let plain = vec![CUgraphEdgeData::default(); count];
        // SAFETY: the caller's arguments, passed on with edges that each driver takes.
        unsafe { real.expect("CUDA 12.3")(stream, nodes, plain.as_ptr(), count, flags) }
    }
    extern "C" fn info(
        stream: CUstream,
        status: *mut CUstreamCaptureStatus,
        id: *mut u64,
        graph: *mut CUgraph,
        nodes: *mut *const CUgraphNode,
        edges: *mut *const CUgraphEdgeData,
        count: *mut usize,
    ) -> CUresult {
        let real = REAL.get().and_then(|driver| driver.symbols().cuStreamGetCaptureInfo_v3).expect("CUDA 12.3");
        // SAFETY: the caller's arguments, passed on.
        let code = unsafe { real(stream, status, id, graph, nodes, edges, count) };
        if !edges.is_null() {
            // SAFETY: the caller's place for the address, which stays until the next update of this thread.
            unsafe { *edges = GIVEN.with_borrow(|given| given.as_ptr()) };
        }
        code
    }
    let gpu = Gpu::new();
    if !common::needs(gpu.driver, Function::cuStreamUpdateCaptureDependencies_v2) {
        return;
    }
    REAL.set(Some(gpu.driver));
    let driver = table::replaced(gpu.driver, |function| match function {
        Function::cuStreamUpdateCaptureDependencies_v2 => Some(update as *mut c_void),
        Function::cuStreamGetCaptureInfo_v3 => Some(info as *mut c_void),
        _ => None,
    });
    let context = Device::new(driver, 0).and_then(Context::primary).expect("the context");
    let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
    let mut graph = Graph::new(&context).expect("a graph");
    let nodes = [(); 3].map(|()| graph.add_event_record_node(&[], &shared(&gpu)).expect("a node"));
    let capture = common::begin_capture_to_graph(&stream, graph, &[], CaptureMode::ThreadLocal).expect("a capture");
    let given = [
        CaptureDependency { node: nodes[2], edge: edge(7) },
        nodes[0].into(),
        CaptureDependency { node: nodes[1], edge: edge(9) },
    ];
    capture.update_dependencies(&stream, &given, DependencyUpdate::Set).expect("an update");
    assert_eq!(GIVEN.with_borrow(Vec::clone), [edge(7), CUgraphEdgeData::default(), edge(9)]);
    // SAFETY: this thread is the only one that uses the stream.
    let known = unsafe { capture.dependencies(&stream) }.expect("dependencies");
    assert_eq!(known.iter().map(|known| known.edge).collect::<Vec<_>>(), GIVEN.with_borrow(Vec::clone));
    assert_eq!(known.len(), 3);
    drop(capture);

    // A driver without edge data is not given any, and is not asked to leave it out.
    let older = table::hiding(gpu.driver, &[Function::cuStreamUpdateCaptureDependencies_v2]);
    let context = Device::new(older, 0).and_then(Context::primary).expect("the context");
    let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
    let mut graph = Graph::new(&context).expect("a graph");
    let node = graph.add_event_record_node(&[], &shared(&gpu)).expect("a node");
    let capture = common::begin_capture_to_graph(&stream, graph, &[], CaptureMode::ThreadLocal).expect("a capture");
    let dependency = CaptureDependency { node, edge: edge(1) };
    let refused = capture.update_dependencies(&stream, &[dependency], DependencyUpdate::Set);
    assert!(matches!(
        refused,
        Err(Error::Unsupported { function: Function::cuStreamUpdateCaptureDependencies_v2, .. })
    ));
    capture.update_dependencies(&stream, &[node.into()], DependencyUpdate::Set).expect("a plain edge");
}

#[test]
fn a_status_that_is_not_known_is_no_status_to_work_with() {
    extern "C" fn is_capturing(_: CUstream, status: *mut CUstreamCaptureStatus) -> CUresult {
        // SAFETY: the caller's place for the status.
        unsafe { *status = CUstreamCaptureStatus(77) };
        CUresult::CUDA_SUCCESS
    }
    extern "C" fn info(
        _: CUstream,
        status: *mut CUstreamCaptureStatus,
        id: *mut u64,
        graph: *mut CUgraph,
        _: *mut *const CUgraphNode,
        _: *mut *const CUgraphEdgeData,
        _: *mut usize,
    ) -> CUresult {
        // SAFETY: the caller's places.
        unsafe { (*status, *id, *graph) = (CUstreamCaptureStatus(77), 5, std::ptr::without_provenance_mut(64)) };
        CUresult::CUDA_SUCCESS
    }
    let gpu = Gpu::new();
    if !common::needs(gpu.driver, Function::cuStreamGetCaptureInfo_v3) {
        return;
    }
    let newer = table::replaced(gpu.driver, |function| match function {
        Function::cuStreamIsCapturing => Some(is_capturing as *mut c_void),
        Function::cuStreamGetCaptureInfo_v3 => Some(info as *mut c_void),
        _ => None,
    });
    let context = Device::new(newer, 0).and_then(Context::primary).expect("the context");
    let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
    assert_eq!(stream.capture_status(), Ok(CaptureStatus::Invalidated));
    let info = stream.capture_info().expect("an answer");
    assert_eq!((info.status, info.id, info.graph.is_null()), (CaptureStatus::Invalidated, None, true));
}
