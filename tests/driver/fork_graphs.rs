//! Graphs and captures in a process that was forked after the driver was initialised: what was
//! inherited is dropped without a driver call, and whatever would make one is a clear error.
//!
//! It runs in a process of its own, because a fork of a process with other running tests takes
//! their locks along.

#![cfg(unix)]

use crate::common;

use std::sync::Arc;

use common::Gpu;
use common::counting::{calls, counting};
use common::own_process;
use cuda_events::capture::{Capture, CaptureMode, ThreadCaptureMode};
use cuda_events::graph::{Graph, GraphExec};
use cuda_events::sys::Function;
use cuda_events::{
    Context, Device, Error, Event, EventFlags, ForeignStream, Stream, StreamOptions, StreamRef,
};

/// An owner that must not be dropped where its destructor would call the driver.
struct Owner;

impl Drop for Owner {
    fn drop(&mut self) {
        panic!("the owner of a context was dropped in a forked child");
    }
}

#[test]
fn graphs_and_captures_in_a_forked_child() {
    own_process!();
    let gpu = Gpu::new();
    let driver = counting(gpu.driver);
    let context = Device::new(driver, 0).and_then(Context::primary).expect("the context");
    let stream = || Stream::new(&context, StreamOptions::new()).expect("a stream");
    let (captured, other, third) = (stream(), stream(), stream());
    let event = Arc::new(Event::new(&context, EventFlags::empty()).expect("an event"));
    // A context that was retained, with an event of its own.
    let retained = Context::primary(context.device()).expect("the context");
    other.wait_stream(&StreamRef::legacy_default(&retained)).expect("a join");
    let raw = context.as_raw();
    // SAFETY: `context` keeps it.
    let owned = unsafe { Context::from_raw_with_owner(driver, raw, Owner) }.expect("a context");

    let graph = Graph::new(&context).expect("a graph");
    let exec = graph.instantiate().expect("an executable graph");
    let mode = ThreadCaptureMode::exchange(driver, CaptureMode::Relaxed).expect("a mode");
    // SAFETY: no other thread has the stream.
    let capture = unsafe { Capture::begin(&captured, CaptureMode::Relaxed) }.expect("a capture");
    let (mut graph, mut exec, mut capture) = (Some(graph), Some(exec), Some(capture));
    let (mut mode, mut owned, mut retained) = (Some(mode), Some(owned), Some(retained));

    let (said, status) = common::fork::in_child(|| {
        let mut wrong = String::new();
        let mut none = |what: &str, made: Vec<Function>| {
            if !made.is_empty() {
                wrong += &format!("{what}: {made:?}\n");
            }
        };
        none("dropping a graph", calls(|| drop(graph.take())).1);
        none("dropping an executable graph", calls(|| drop(exec.take())).1);
        none("dropping a capture", calls(|| drop(capture.take())).1);
        none("dropping a thread's mode", calls(|| drop(mode.take())).1);
        none("dropping a context with an owner", calls(|| drop(owned.take())).1);
        none("dropping a retained context", calls(|| drop(retained.take())).1);

        let mut refused = |result: Result<(), Error>, made: Vec<Function>, function: Function| {
            if result != Err(Error::ForkedChild { function }) || !made.is_empty() {
                wrong += &format!("{function}: {result:?}, {made:?}\n");
            }
        };
        let (result, made) = calls(|| Graph::new(&context).map(drop));
        refused(result, made, Function::cuGraphCreate);
        let raw = other.as_raw();
        // SAFETY: nothing is done with the stream in a forked child.
        let (result, made) = calls(|| unsafe { StreamRef::from_foreign(driver, raw) }.map(drop));
        refused(result, made, Function::cuStreamGetCtx);
        // SAFETY: as above.
        let (result, made) = calls(|| unsafe { ForeignStream::new(&context, raw, ()) }.map(drop));
        refused(result, made, Function::cuStreamGetCtx);
        let (result, made) =
            calls(|| ThreadCaptureMode::exchange(driver, CaptureMode::Global).map(drop));
        refused(result, made, Function::cuThreadExchangeStreamCaptureMode);
        // SAFETY: as above.
        let (result, made) =
            calls(|| unsafe { Capture::begin(&third, CaptureMode::Relaxed) }.map(drop));
        refused(result, made, Function::cuStreamBeginCapture_v2);
        wrong
    });
    assert_eq!((said.as_str(), status), ("", 0), "wait status, and what was wrong in the child");

    // The parent is unharmed. The same closings make their calls here, so that they were counted
    // there.
    std::mem::forget(owned);
    let released = [Function::cuEventDestroy_v2, Function::cuDevicePrimaryCtxRelease_v2];
    assert_eq!(calls(|| drop(retained)).1, released);
    let function = |made: Vec<Function>| made.first().copied();
    assert_eq!(function(calls(|| drop(mode)).1), Some(Function::cuThreadExchangeStreamCaptureMode));
    assert_eq!(function(calls(|| capture.map(Capture::end)).1), Some(Function::cuStreamEndCapture));
    exec.iter().for_each(|exec| exec.launch(&other).expect("a launch"));
    other.synchronize().expect("no work");
    assert_eq!(calls(|| exec.map(GraphExec::close)).1, [Function::cuGraphExecDestroy]);
    assert_eq!(calls(|| drop(graph)).1, [Function::cuGraphDestroy]);
    event.record(&third).expect("a record");
}
