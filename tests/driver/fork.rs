//! A process that was forked after the driver was initialised: every operation is a clear error,
//! and dropping what was inherited does nothing.
//!
//! Each test runs in a process of its own, because a fork of a process with other running tests
//! takes their locks along.

#![cfg(unix)]

use crate::common;

use std::ptr::null_mut;

use common::child::{Child, role};
use common::counting::Watched;
use common::fork::in_child;
use common::{Gpu, Latch, check, load, own_process};
use cuda_events::capture::{Capture, CaptureMode, ThreadCaptureMode};
use cuda_events::ext::EventPool;
use cuda_events::foundation::{Origin, call, is_forked_child};
use cuda_events::graph::{Graph, GraphExec};
use cuda_events::host_functions::pending_host_functions;
use cuda_events::sys::{CU_STREAM_LEGACY, CU_STREAM_PER_THREAD, Function};
use cuda_events::{
    Context, Device, Error, Event, EventFlags, ForeignStream, IpcEventDescriptor, LoadOptions,
    Result, Stream, StreamOptions, StreamRef,
};

/// Also if the program initialises the driver by a raw call of this crate's macro.
#[test]
fn a_child_after_a_raw_initialisation() {
    own_process!();
    let (driver, _soft) = load(&LoadOptions::new());
    // SAFETY: the flags must be 0.
    unsafe { call!(driver, cuInit(0)) }.expect("a driver that works");
    let (seen, _) = in_child(|| {
        let mut count = 0;
        // SAFETY: a place for the number.
        let refused = unsafe { call!(driver, cuDeviceGetCount(&mut count)) };
        format!("{} {refused:?}", is_forked_child())
    });
    assert!(
        seen.starts_with("true Err(cuDeviceGetCount was not called: this process was"),
        "{seen}"
    );
}

/// Loading does not initialise, so a child that is forked after it can use the device.
#[test]
fn a_child_that_was_forked_before() {
    own_process!();
    let (driver, _soft) = load(&LoadOptions::new());
    let used = in_child(|| {
        let context =
            Device::new(driver, 0).and_then(Context::primary).expect("a context in the child");
        let stream = Stream::new(&context, StreamOptions::new()).expect("a stream in the child");
        let event = stream.record_event(EventFlags::empty()).expect("an event in the child");
        event.synchronize().expect("no work");
        format!("{:?}", event.query())
    });
    assert_eq!(used, ("Ok(Done)".to_owned(), 0));
}

/// Each way to the driver: by an event, a stream, a device, a context, and without any of them.
#[test]
fn operations_are_errors() {
    own_process!();
    let gpu = Gpu::new();
    let watched = Watched::new(gpu.driver);
    let (driver, context) = (watched.driver, watched.context());
    let device = context.device();
    let new_stream = || Stream::new(&context, StreamOptions::new()).expect("a stream");
    let stream = new_stream();
    let event = Event::new(&context, EventFlags::INTERPROCESS).expect("an event");
    let pool = EventPool::new(&context, EventFlags::empty()).expect("a pool");
    // What a context remembers of the process is the parent's.
    Origin::of(&context).expect("the driver has UUIDs");
    let latch = Latch::hold(&stream);
    stream.launch_host_function(|| ()).expect("a host function");
    assert_eq!(pending_host_functions(), 1);
    watched.none_in_child(|| {
        let refused =
            |function, result: Result<()>| assert_eq!(result, Err(Error::ForkedChild { function }));
        let default = StreamRef::legacy_default(&context);
        let descriptor = IpcEventDescriptor::from_raw([0; 64], false);
        let none = EventFlags::empty();
        refused(Function::cuEventRecord, event.record(&stream));
        refused(Function::cuEventRecord, event.record(&default));
        refused(Function::cuEventQuery, event.query().map(drop));
        refused(Function::cuEventSynchronize, event.synchronize());
        let long = std::time::Duration::MAX;
        refused(Function::cuEventQuery, event.synchronize_timeout(long).map(drop));
        refused(Function::cuStreamQuery, stream.query().map(drop));
        refused(Function::cuStreamWaitEvent, stream.wait_event(&event));
        refused(Function::cuCtxGetCurrent, stream.wait_stream(&stream));
        refused(Function::cuCtxGetCurrent, Event::new(&context, none).map(drop));
        refused(Function::cuCtxGetCurrent, event.ipc_descriptor().map(drop));
        refused(Function::cuDeviceGetUuid, Origin::of(&context).map(drop));
        // SAFETY: the descriptor is not opened.
        let opened = unsafe { Event::from_ipc_descriptor(&context, &descriptor) };
        refused(Function::cuCtxGetCurrent, opened.map(drop));
        refused(Function::cuCtxPushCurrent_v2, context.make_current().map(drop));
        refused(Function::cuInit, Device::new(driver, 0).map(drop));
        refused(Function::cuInit, Device::count(driver).map(drop));
        refused(Function::cuInit, Context::primary(device).map(drop));
        refused(Function::cuDeviceGetName, device.name().map(drop));
        refused(Function::cuEventCreate, pool.take().map(drop));
        refused(Function::cuGraphCreate, Graph::new(&context).map(drop));
        let raw = stream.as_raw();
        // SAFETY: the driver is not called.
        unsafe {
            // Also for the handles of default streams, about which no call is made.
            let special = [null_mut(), CU_STREAM_LEGACY, CU_STREAM_PER_THREAD];
            let handles = special.into_iter().chain([raw]);
            for raw in handles {
                refused(Function::cuStreamGetCtx, StreamRef::from_foreign(driver, raw).map(drop));
                refused(Function::cuStreamGetCtx, ForeignStream::new(&context, raw, ()).map(drop));
            }
            let capture = Capture::begin(&stream, CaptureMode::Relaxed);
            refused(Function::cuStreamBeginCapture_v2, capture.map(drop));
        }
        let exchange = Function::cuThreadExchangeStreamCaptureMode;
        refused(exchange, ThreadCaptureMode::exchange(driver, CaptureMode::Global).map(drop));
        // The driver's thread, which runs them, is not in the child.
        assert_eq!(pending_host_functions(), 0);
        String::new()
    });
    assert_eq!(pending_host_functions(), 1);
    latch.release();
    stream.synchronize().expect("the parent is unharmed");
    assert_eq!(pending_host_functions(), 0);
    Child::start("named_contexts", "parent").finish();
}

/// An owner that must not be dropped where its destructor would call the driver.
struct Owner;

impl Drop for Owner {
    fn drop(&mut self) {
        panic!("the owner of a context was dropped in a forked child");
    }
}

#[test]
fn drops_make_no_call() {
    own_process!();
    let gpu = Gpu::new();
    let watched = Watched::new(gpu.driver);
    let (driver, context) = (watched.driver, watched.context());
    let device = context.device();
    let new_stream = || Stream::new(&context, StreamOptions::new()).expect("a stream");
    let new_event = || Event::new(&context, EventFlags::empty()).expect("an event");
    let (captured, other) = (new_stream(), new_stream());
    let retained = Context::primary(device).expect("the context");
    StreamRef::legacy_default(&retained).wait_stream(&other).expect("a join");
    let graph = Graph::new(&context).expect("a graph");
    let exec = graph.instantiate().expect("an executable graph");
    let pool = EventPool::new(&context, EventFlags::empty()).expect("a pool");
    pool.reserve(1).expect("an event");
    // SAFETY: the context is alive, and its owner forgotten in the parent.
    let owned = unsafe { Context::from_raw_with_owner(driver, context.as_raw(), Owner) };
    let guard = context.make_current().expect("the context can be made current");
    let mode = ThreadCaptureMode::exchange(driver, CaptureMode::Relaxed).expect("a mode");
    // SAFETY: the stream is used by this thread alone.
    let capture = unsafe { Capture::begin(&captured, CaptureMode::Relaxed) }.expect("a capture");
    let inherited = (capture, mode, guard, exec, graph, pool, retained, new_stream(), new_event());
    let (mut inherited, mut owned) = (Some(inherited), Some(owned.expect("a context")));
    let (event, stream) = (new_event().into_raw(), new_stream().into_raw());
    watched.none_in_child(|| {
        drop((inherited.take(), owned.take()));
        // SAFETY: the handles are good in the parent, and not used in the child.
        let (event, stream) = unsafe {
            (
                Event::from_raw(&context, event, EventFlags::empty()),
                Stream::from_raw(&context, stream),
            )
        };
        let refused = |function| Err(Error::ForkedChild { function });
        assert_eq!(event.close(), refused(Function::cuEventDestroy_v2));
        assert_eq!(stream.close(), refused(Function::cuStreamDestroy_v2));
        String::new()
    });
    // The same in the parent is not nothing.
    std::mem::forget(owned);
    let (capture, mode, guard, exec, graph, pool, retained, ..) = inherited.expect("its own");
    watched.made();
    capture.end().map(drop).expect("nothing happened to the parent's capture");
    drop((mode, guard));
    exec.launch(&other).and_then(|()| other.synchronize()).expect("nor to its graph");
    assert_eq!(GraphExec::close(exec), Ok(()));
    drop((graph, pool, retained));
    let expected = [
        Function::cuStreamEndCapture,
        Function::cuGraphDestroy,
        Function::cuThreadExchangeStreamCaptureMode,
        Function::cuCtxPopCurrent_v2,
        Function::cuGraphLaunch,
        Function::cuStreamSynchronize,
        Function::cuThreadExchangeStreamCaptureMode,
        Function::cuGraphExecDestroy,
        Function::cuThreadExchangeStreamCaptureMode,
        Function::cuGraphDestroy,
        Function::cuEventDestroy_v2,
        Function::cuEventDestroy_v2,
        Function::cuDevicePrimaryCtxRelease_v2,
    ];
    assert_eq!(watched.made(), expected);
    // SAFETY: the child has not destroyed them.
    drop(unsafe {
        (Event::from_raw(&context, event, EventFlags::empty()), Stream::from_raw(&context, stream))
    });
}

/// Not a test of its own process: the crate finds the driver by a context that it is given, and by
/// nothing else.
#[test]
#[ignore = "a process of its own, which the other test starts: cargo test --test driver"]
fn named_contexts() {
    assert!(role().is_some(), "this is no test of its own");
    let (driver, _soft) = load(&LoadOptions::new());
    let (symbols, mut device, mut raw) = (driver.symbols(), Default::default(), null_mut());
    // SAFETY: places for the results; the primary context is released below.
    unsafe {
        check(Function::cuInit, (symbols.cuInit)(0));
        check(Function::cuDeviceGet, (symbols.cuDeviceGet)(&mut device, 0));
        check(
            Function::cuDevicePrimaryCtxRetain,
            (symbols.cuDevicePrimaryCtxRetain)(&mut raw, device),
        );
    }
    // SAFETY: it is retained until the end.
    let context = unsafe { Context::from_raw(driver, raw) }.expect("its device");
    let reply = in_child(|| {
        let refused = Err(Error::ForkedChild { function: Function::cuCtxGetCurrent });
        assert_eq!(context.synchronize(), refused);
        String::new()
    });
    assert_eq!(reply, (String::new(), 0));
    assert_eq!(context.synchronize(), Ok(()));
    drop(context);
    // SAFETY: it was retained once.
    check(Function::cuDevicePrimaryCtxRelease_v2, unsafe {
        (symbols.cuDevicePrimaryCtxRelease_v2)(device)
    });
}

/// A driver that other code initialised before the fork says in the child that it is not
/// initialised. The same code means something else without a fork, and others do anywhere.
#[test]
fn a_driver_that_cannot_initialise() {
    own_process!("init=3");
    if common::TestDriver::chosen() == common::TestDriver::Native {
        return common::not_run("this driver initialises");
    }
    let (driver, _soft) = load(&LoadOptions::new());
    let fails = || format!("{:?}", Device::count(driver).map(drop));
    let init = "CUDA_ERROR_NOT_INITIALIZED";
    assert!(fails().contains(init) && fails().starts_with("Err(cuInit"), "{}", fails());
    let (in_the_child, status) = in_child(fails);
    assert_eq!(status, 0, "{in_the_child}");
    assert!(in_the_child.contains("was forked"), "{in_the_child}");
}

#[test]
fn another_reason_is_the_same_in_a_child() {
    own_process!("init=100");
    if common::TestDriver::chosen() == common::TestDriver::Native {
        return common::not_run("this driver initialises");
    }
    let (driver, _soft) = load(&LoadOptions::new());
    let fails = || format!("{:?}", Device::count(driver).map(drop));
    assert_eq!(in_child(fails), (fails(), 0));
    assert!(fails().contains("CUDA_ERROR_NO_DEVICE"), "{}", fails());
}
