//! Host functions and callbacks: order, who drops the closure and when, panics, captures, failed
//! contexts.

use crate::common::{self, table};

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use common::own_process;
use common::{Gpu, Latch, check};
use cuda_events::host_functions::pending_host_functions;
use cuda_events::sys::{
    CUgraph, CUgraphExec, CUhostFn, CUresult, CUstream, CUstreamCallback, CUstreamCaptureMode,
    CUstreamCaptureStatus, Function,
};
use cuda_events::{
    Context, Device, Driver, Error, EventFlags, Progress, Stream, StreamOptions, StreamRef,
};

/// Says whether a closure that holds its clone is there still.
fn token() -> (Arc<()>, impl Fn() -> bool) {
    let held = Arc::new(());
    let weak = Arc::downgrade(&held);
    (held, move || weak.strong_count() > 0)
}

fn context(driver: Driver) -> Context {
    Device::new(driver, 0).and_then(Context::primary).expect("the primary context")
}

fn stream(context: &Context) -> Stream {
    Stream::new(context, StreamOptions::new()).expect("a stream")
}

#[test]
fn they_run_in_the_order_of_the_stream() {
    own_process!();
    let gpu = Gpu::new();
    let stream = gpu.stream();
    let order = Arc::new(Mutex::new(Vec::new()));
    let note = |number| {
        let order = order.clone();
        move || order.lock().expect("no panic").push(number)
    };
    let latch = Latch::hold(&stream);
    stream.launch_host_function(note(1)).expect("a host function");
    let callback = note(2);
    stream
        .add_callback(move |status| {
            assert_eq!(status, Ok(()));
            callback()
        })
        .expect("a callback");
    let between = stream.record_event(EventFlags::empty()).expect("an event");
    stream.launch_host_function(note(3)).expect("a host function");
    assert_eq!(between.query(), Ok(Progress::Pending));
    assert!(order.lock().expect("no panic").is_empty(), "the latch is before them");
    assert_eq!(pending_host_functions(), 3);
    latch.release();
    stream.synchronize().expect("the work ends");
    assert_eq!(*order.lock().expect("no panic"), [1, 2, 3]);
    assert_eq!(pending_host_functions(), 0);
}

#[test]
fn a_panic_ends_in_the_function() {
    struct Worse;
    impl Drop for Worse {
        fn drop(&mut self) {
            if !std::thread::panicking() {
                panic!("and what it carries panics when it is dropped");
            }
        }
    }
    own_process!();
    let gpu = Gpu::new();
    let stream = gpu.stream();
    let (held, is_there) = token();
    let other = held.clone();
    stream
        .launch_host_function(move || {
            let _held = held;
            panic!("a host function panics")
        })
        .expect("ok");
    stream
        .add_callback(move |_| {
            let _held = other;
            panic!("a callback panics")
        })
        .expect("ok");
    stream.launch_host_function(|| std::panic::panic_any(Worse)).expect("a host function");
    let (sender, receiver) = channel();
    stream
        .launch_host_function(move || sender.send(()).expect("the test listens"))
        .expect("a host function");
    assert_eq!(stream.synchronize(), Ok(()));
    assert_eq!(receiver.recv(), Ok(()), "the stream goes on");
    assert!(!is_there(), "what a panicking closure held is dropped");
    assert_eq!(pending_host_functions(), 0);
}

#[test]
fn functions_run_once_and_lost_ones_are_counted() {
    type Launched = (CUhostFn, usize);
    static LAUNCHED: Mutex<Option<Launched>> = Mutex::new(None);
    extern "C" fn launch(_: CUstream, function: CUhostFn, data: *mut c_void) -> CUresult {
        *LAUNCHED.lock().expect("no panic") = Some((function, data.addr()));
        CUresult::CUDA_SUCCESS
    }
    own_process!();
    let gpu = Gpu::new();
    let forgetful = table::replaced(gpu.driver, |function| match function {
        Function::cuLaunchHostFunc => Some(launch as *mut c_void),
        _ => None,
    });
    let stream = stream(&context(forgetful));
    let (held, is_there) = token();
    let ran = Arc::new(AtomicUsize::new(0));
    let counted = ran.clone();
    stream
        .launch_host_function(move || {
            let _held = held;
            counted.fetch_add(1, Ordering::Relaxed);
        })
        .expect("ok");
    stream.synchronize().expect("nothing is in it");
    assert_eq!(pending_host_functions(), 1, "as on a context that has failed");
    assert!(is_there());

    let (function, data) = LAUNCHED.lock().expect("no panic").take().expect("it was launched");
    let function = function.expect("a function");
    for _ in 0..3 {
        // SAFETY: the function takes what it was launched with.
        unsafe { function(std::ptr::without_provenance_mut(data)) };
        assert_eq!(ran.load(Ordering::Relaxed), 1);
        assert!(!is_there());
        assert_eq!(pending_host_functions(), 0);
    }
}

#[test]
fn a_callback_gets_the_error() {
    // A driver whose context has failed calls at once, or soon, with the error.
    extern "C" fn add(
        stream: CUstream,
        callback: CUstreamCallback,
        data: *mut c_void,
        flags: u32,
    ) -> CUresult {
        assert_eq!(flags, 0);
        let callback = callback.expect("a callback");
        // SAFETY: the callback takes what it was added with.
        unsafe { callback(stream, CUresult::CUDA_ERROR_LAUNCH_FAILED, data) };
        CUresult::CUDA_SUCCESS
    }
    own_process!();
    let gpu = Gpu::new();
    let failed = table::replaced(gpu.driver, |function| match function {
        Function::cuStreamAddCallback => Some(add as *mut c_void),
        _ => None,
    });
    let stream = stream(&context(failed));
    let (sender, receiver) = channel();
    stream
        .add_callback(move |status| sender.send(status).expect("the test listens"))
        .expect("a callback");
    let status = receiver.try_recv().expect("it was called").expect_err("an error");
    assert_eq!(status.code(), Some(CUresult::CUDA_ERROR_LAUNCH_FAILED));
    assert_eq!(status.function(), Some(Function::cuStreamAddCallback));
    assert_eq!(pending_host_functions(), 0);
}

fn begin_capture(stream: &StreamRef) {
    let begin = stream.context().driver().symbols().cuStreamBeginCapture_v2;
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
    // SAFETY: the stream is alive.
    check(Function::cuStreamBeginCapture_v2, unsafe { begin(stream.as_raw(), mode) });
}

fn capture_status(stream: &StreamRef) -> CUstreamCaptureStatus {
    let mut status = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
    let symbols = stream.context().driver().symbols();
    // SAFETY: the stream is alive; a place for the status.
    check(Function::cuStreamIsCapturing, unsafe {
        (symbols.cuStreamIsCapturing)(stream.as_raw(), &mut status)
    });
    status
}

fn end_capture(stream: &StreamRef) -> CUgraph {
    let mut graph = null_mut();
    let end = stream.context().driver().symbols().cuStreamEndCapture;
    // SAFETY: the stream is alive; a place for the handle.
    check(Function::cuStreamEndCapture, unsafe { end(stream.as_raw(), &mut graph) });
    graph
}

/// Launches what was captured some times, waits, and destroys it.
fn launch(graph: CUgraph, stream: &StreamRef, times: usize) {
    let symbols = stream.context().driver().symbols();
    let mut exec: CUgraphExec = null_mut();
    let _current = stream.context().make_current().expect("the context can be made current");
    // SAFETY: the graph is owned here, and so is what is made of it; a place for the handle.
    unsafe {
        match symbols.cuGraphInstantiateWithFlags {
            Some(instantiate) => {
                check(Function::cuGraphInstantiateWithFlags, instantiate(&mut exec, graph, 0))
            }
            None => {
                let instantiate = symbols.cuGraphInstantiate_v2.expect("since CUDA 11.0");
                let code = instantiate(&mut exec, graph, null_mut(), null_mut(), 0);
                check(Function::cuGraphInstantiate_v2, code);
            }
        }
        for _ in 0..times {
            check(Function::cuGraphLaunch, (symbols.cuGraphLaunch)(exec, stream.as_raw()));
        }
        stream.synchronize().expect("the work ends");
        check(Function::cuGraphExecDestroy, (symbols.cuGraphExecDestroy)(exec));
        check(Function::cuGraphDestroy, (symbols.cuGraphDestroy)(graph));
    }
}

#[test]
fn a_capturing_stream_is_refused() {
    own_process!();
    let gpu = Gpu::new();
    let stream = gpu.stream();
    begin_capture(&stream);
    let (held, is_there) = token();
    let other = held.clone();
    let refused = [
        (Function::cuLaunchHostFunc, stream.launch_host_function(move || drop(held))),
        (Function::cuStreamAddCallback, stream.add_callback(move |_| drop(other))),
    ];
    for (function, result) in refused {
        assert_eq!(result, Err(Error::ClosureInCapture { function }));
    }
    assert!(!is_there());
    assert_eq!(capture_status(&stream), CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE);
    let graph = end_capture(&stream);
    launch(graph, &stream, 1);
    let (sender, receiver) = channel();
    stream
        .launch_host_function(move || sender.send(()).expect("the test listens"))
        .expect("the capture is over");
    assert_eq!(receiver.recv(), Ok(()));
    stream.synchronize().expect("the work ends");
}

/// The driver's reason, as there is no capture any more that a closure could be a part of.
#[test]
fn an_invalidated_capture_is_the_drivers_error() {
    own_process!();
    let gpu = Gpu::new();
    let stream = gpu.stream();
    begin_capture(&stream);
    stream.query().expect_err("it invalidates the capture");
    let invalidated = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_INVALIDATED;
    assert_eq!(capture_status(&stream), invalidated);
    let (held, is_there) = token();
    let other = held.clone();
    let refused = [
        stream.launch_host_function(move || drop(held)),
        stream.add_callback(move |_| drop(other)),
    ];
    // No capture can take a callback of the old form, so it is refused as that.
    assert_eq!(
        refused.map(|result| result.map_err(|error| error.code())),
        [
            Err(Some(CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED)),
            Err(Some(CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)),
        ]
    );
    assert!(!is_there());
    let mut graph = null_mut();
    // SAFETY: a place for the graph, of which there is none.
    let ended = unsafe { (gpu.driver.symbols().cuStreamEndCapture)(stream.as_raw(), &mut graph) };
    assert_eq!(ended, CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    stream.synchronize().expect("the stream works");
}

#[test]
fn a_closure_that_slips_into_a_graph_runs_once() {
    // Another thread may begin the capture between the question and the launch.
    extern "C" fn none(_: CUstream, status: *mut CUstreamCaptureStatus) -> CUresult {
        // SAFETY: the caller's place for the status.
        unsafe { status.write(CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE) };
        CUresult::CUDA_SUCCESS
    }
    own_process!();
    let gpu = Gpu::new();
    let unknowing = table::replaced(gpu.driver, |function| match function {
        Function::cuStreamIsCapturing => Some(none as *mut c_void),
        _ => None,
    });
    let stream = stream(&context(unknowing));
    let (held, is_there) = token();
    let ran = Arc::new(AtomicUsize::new(0));
    let counted = ran.clone();
    begin_capture(&stream);
    stream
        .launch_host_function(move || {
            let _held = held;
            counted.fetch_add(1, Ordering::Relaxed);
        })
        .expect("ok");
    let graph = end_capture(&stream);
    assert!(is_there());
    launch(graph, &stream, 3);
    assert_eq!(ran.load(Ordering::Relaxed), 1);
    assert!(!is_there());
    assert_eq!(pending_host_functions(), 0);
}

#[test]
fn a_raw_function_runs_at_every_launch() {
    extern "C" fn count(counter: *mut c_void) {
        // SAFETY: the counter below, which outlives the graph.
        unsafe { &*counter.cast::<AtomicUsize>() }.fetch_add(1, Ordering::Relaxed);
    }
    own_process!();
    let gpu = Gpu::new();
    let stream = gpu.stream();
    let counter = AtomicUsize::new(0);
    let data = (&raw const counter).cast_mut().cast();
    // SAFETY: the counter outlives the stream's work.
    unsafe { stream.launch_host_function_raw(count, data) }.expect("a host function");
    stream.synchronize().expect("the work ends");
    assert_eq!(counter.load(Ordering::Relaxed), 1);
    begin_capture(&stream);
    // SAFETY: the counter outlives the graph.
    unsafe { stream.launch_host_function_raw(count, data) }.expect("a host function");
    let graph = end_capture(&stream);
    assert_eq!(counter.load(Ordering::Relaxed), 1, "captured, not run");
    launch(graph, &stream, 3);
    assert_eq!(counter.load(Ordering::Relaxed), 4);
}
