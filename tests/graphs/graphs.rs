//! Graphs: event nodes, launches, what keeps events alive, external records and waits.

use crate::common;

use std::ptr::null_mut;
use std::sync::{Arc, Mutex, Weak};

use common::counting::Watched;
use common::{Gpu, Latch, Other, check, current};
use cuda_events::capture::{Capture, CaptureMode, CaptureStatus};
use cuda_events::graph::{Graph, GraphNode};
use cuda_events::sys::{CUresult, CUstreamCaptureMode, Function};
use cuda_events::{Context, Device, Error, Event, EventFlags, Progress, Stream, StreamOptions};
use cuda_soft_driver::SoftDriver;

pub fn event(gpu: &Gpu) -> Arc<Event> {
    Arc::new(Event::new(&gpu.context, EventFlags::empty()).expect("an event"))
}

pub fn alive(event: &Weak<Event>) -> bool {
    event.strong_count() > 0
}

pub fn begin(stream: &Stream) -> Capture<'_> {
    common::begin_capture(stream, CaptureMode::ThreadLocal).expect("a capture")
}

/// The driver with an observer, and the calls that it saw since they were last asked for.
pub fn observed(gpu: &Gpu) -> (Context, impl Fn() -> Vec<Function>) {
    let watched = Watched::new(gpu.driver);
    (watched.context(), move || watched.made())
}

#[test]
fn nodes_record_and_wait_at_each_launch() {
    let Some(gpu) = Gpu::with(Function::cuGraphAddEventRecordNode) else { return };
    let (stream, elsewhere) = (gpu.stream(), gpu.stream());
    let (waited, recorded) = (event(&gpu), event(&gpu));
    let mut graph = Graph::new(&gpu.context).expect("a graph");
    let wait = graph.add_event_wait_node(&[], &waited).expect("a node");
    graph.add_event_record_node(&[wait], &recorded).expect("a node");
    let exec = graph.instantiate().expect("an executable graph");
    exec.launch(&stream).expect("a launch");
    stream.synchronize().expect("an event that was never recorded is not waited for");
    for _ in 0..2 {
        let latch = Latch::hold(&elsewhere);
        waited.record(&elsewhere).expect("a record");
        exec.launch(&stream).expect("a launch");
        assert_eq!(recorded.query(), Ok(Progress::Pending));
        assert_eq!(stream.query(), Ok(Progress::Pending));
        latch.release();
        assert_eq!(recorded.synchronize(), Ok(()));
        assert_eq!(waited.query(), Ok(Progress::Done), "it was waited for");
    }
}

#[test]
fn what_was_captured_waits_for_those_outside() {
    let Some(gpu) = Gpu::with(Function::cuGraphAddEventRecordNode) else { return };
    let (stream, elsewhere) = (gpu.stream(), gpu.stream());
    let (waited, recorded) = (event(&gpu), event(&gpu));
    waited.record(&elsewhere).expect("a record");
    let capture = begin(&stream);
    // A plain wait for a record of outside would be an error here.
    stream.wait_external(&waited).expect("a wait");
    stream.record_external(&recorded).expect("a record");
    let exec = capture.end().and_then(|graph| graph.instantiate()).expect("an executable graph");
    let latch = Latch::hold(&elsewhere);
    waited.record(&elsewhere).expect("a record");
    exec.launch(&stream).expect("a launch");
    assert_eq!(recorded.query(), Ok(Progress::Pending));
    let after = gpu.stream();
    after.wait_event(&recorded).expect("a wait for what the launch records");
    assert_eq!(after.query(), Ok(Progress::Pending));
    latch.release();
    assert_eq!(after.synchronize(), Ok(()));
    assert_eq!(recorded.query(), Ok(Progress::Done));
}

#[test]
fn the_stream_decides_between_node_and_record() {
    let Some(gpu) = Gpu::with(Function::cuGraphAddEventRecordNode) else { return };
    let (capturing, other) = (gpu.stream(), gpu.stream());
    let (inside, outside, fork) = (event(&gpu), event(&gpu), event(&gpu));
    // As another stream captures, and then as none does.
    for captures in [true, false] {
        let capture = captures.then(|| begin(&capturing));
        let latch = Latch::hold(&other);
        other.record_external(&outside).expect("a record");
        other.wait_external(&outside).expect("a wait");
        // In this thread a query would be forbidden.
        let query = || {
            std::thread::scope(|scope| scope.spawn(|| outside.query()).join().expect("no panic"))
        };
        assert_eq!(query(), Ok(Progress::Pending));
        latch.release();
        assert_eq!(other.capture_status(), Ok(CaptureStatus::None));
        capturing.record_external(&inside).expect("a record");
        if let Some(capture) = capture {
            // A stream that joined the capture is a capturing one as well.
            let joined = gpu.stream();
            fork.record(&capturing).expect("a record");
            joined.wait_event(&fork).expect("the fork");
            joined.record_external(&outside).expect("a record");
            capturing.wait_stream(&joined).expect("the join");
            let info = capturing.capture_info().expect("an answer");
            assert_eq!(info.status, CaptureStatus::Active);
            let weak = Arc::downgrade(&outside);
            let count = weak.strong_count();
            let graph = capture.end().expect("a graph");
            assert_eq!(weak.strong_count(), count);
            drop(graph);
            assert_eq!(weak.strong_count(), 1, "the graph kept it, and nothing else");
        }
        outside.synchronize().expect("the latch is released");
    }
}

#[test]
fn nodes_give_and_take_events() {
    let Some(gpu) = Gpu::with(Function::cuGraphAddEventRecordNode) else { return };
    let stream = gpu.stream();
    let (first, second, third) = (event(&gpu), event(&gpu), event(&gpu));
    let mut graph = Graph::new(&gpu.context).expect("a graph");
    let record = graph.add_event_record_node(&[], &first).expect("a node");
    let wait = graph.add_event_wait_node(&[record], &first).expect("a node");
    let is = |known: Result<Option<Arc<Event>>, Error>, event: &Arc<Event>| {
        Arc::ptr_eq(&known.expect("an answer").expect("an event of this program's"), event)
    };
    assert!(is(graph.record_node_event(record), &first));
    assert!(is(graph.wait_node_event(wait), &first));
    graph.set_record_node_event(record, &second).expect("a new event");
    graph.set_wait_node_event(wait, &third).expect("a new event");
    assert!(is(graph.record_node_event(record), &second));
    assert!(is(graph.wait_node_event(wait), &third));
    assert_eq!(Arc::strong_count(&first), 1, "what was replaced is let go");

    // Each kind of node has its own calls.
    for wrong in [graph.record_node_event(wait).err(), graph.wait_node_event(record).err()] {
        assert_eq!(wrong.and_then(|error| error.code()), Some(CUresult::CUDA_ERROR_INVALID_VALUE));
    }
    let unused = event(&gpu);
    let wrong = graph.set_record_node_event(wait, &unused).err();
    assert_eq!(wrong.and_then(|error| error.code()), Some(CUresult::CUDA_ERROR_INVALID_VALUE));
    assert!(Arc::strong_count(&unused) > 1, "an error does not say that the node was left alone");
    assert!(is(graph.wait_node_event(wait), &third));

    // An executable graph has events of its own, and changes for itself.
    let mut exec = graph.instantiate().expect("an executable graph");
    graph.set_record_node_event(record, &first).expect("a new event");
    assert!(Arc::strong_count(&second) > 1, "the executable graph still records it");
    exec.set_wait_node_event(&graph, wait, &first).expect("a new event");
    let latch = Latch::hold(&stream);
    exec.launch(&stream).expect("a launch");
    assert_eq!((first.query(), second.query()), (Ok(Progress::Done), Ok(Progress::Pending)));
    latch.release();
    stream.synchronize().expect("the work ends");
    exec.set_record_node_event(&graph, record, &third).expect("a new event");
    assert_eq!(Arc::strong_count(&second), 1);
    let latch = Latch::hold(&stream);
    exec.launch(&stream).expect("a launch");
    assert_eq!((second.query(), third.query()), (Ok(Progress::Done), Ok(Progress::Pending)));
    latch.release();
    stream.synchronize().expect("the work ends");
    assert!(is(graph.record_node_event(record), &first));
    let wrong = exec.set_wait_node_event(&graph, record, &first).err();
    assert_eq!(wrong.and_then(|error| error.code()), Some(CUresult::CUDA_ERROR_INVALID_VALUE));
}

#[test]
fn a_node_is_good_for_its_own_graph_only() {
    let Some(gpu) = Gpu::with(Function::cuGraphAddEventRecordNode) else { return };
    let event = event(&gpu);
    let mut graph = Graph::new(&gpu.context).expect("a graph");
    let node = graph.add_event_record_node(&[], &event).expect("a node");
    let mut exec = graph.instantiate().expect("an executable graph");
    let mut other = Graph::new(&gpu.context).expect("a graph");
    let foreign = other.add_event_record_node(&[], &event).expect("a node");
    let not_called = |result: Result<(), Error>, function| {
        assert_eq!(result, Err(Error::GraphMismatch { function }))
    };
    not_called(other.record_node_event(node).map(drop), Function::cuGraphEventRecordNodeGetEvent);
    not_called(other.set_record_node_event(node, &event), Function::cuGraphEventRecordNodeSetEvent);
    not_called(
        other.add_event_wait_node(&[node], &event).map(drop),
        Function::cuGraphAddEventWaitNode,
    );
    not_called(
        exec.set_record_node_event(&other, node, &event),
        Function::cuGraphExecEventRecordNodeSetEvent,
    );
    // Its own node, of a graph that the executable one was not made of.
    not_called(
        exec.set_record_node_event(&other, foreign, &event),
        Function::cuGraphExecEventRecordNodeSetEvent,
    );
    not_called(
        exec.set_wait_node_event(&other, foreign, &event),
        Function::cuGraphExecEventWaitNodeSetEvent,
    );
    // SAFETY: the node is one of this graph.
    assert_eq!(unsafe { GraphNode::from_raw(&graph, node.as_raw()) }, node);
}

#[test]
fn events_that_the_graph_was_not_given_have_no_name() {
    let Some(gpu) = Gpu::with(Function::cuGraphAddEventRecordNode) else { return };
    let event = event(&gpu);
    let mut graph = Graph::new(&gpu.context).expect("a graph");
    let mut raw = null_mut();
    let add = gpu.driver.symbols().cuGraphAddEventRecordNode.expect("CUDA 11.1");
    // SAFETY: a place for the handle; graph and event are alive until the end of this function.
    let node = unsafe {
        check(
            Function::cuGraphAddEventRecordNode,
            add(&mut raw, graph.as_raw(), null_mut(), 0, event.as_raw()),
        );
        GraphNode::from_raw(&graph, raw)
    };
    assert!(graph.record_node_event(node).expect("an answer").is_none());
    graph.set_record_node_event(node, &event).expect("an event");
    assert!(graph.record_node_event(node).expect("an answer").is_some());
}

#[test]
fn graphs_make_the_expected_calls() {
    let Some(gpu) = Gpu::with(Function::cuStreamGetCaptureInfo_v3) else { return };
    let (context, calls) = observed(&gpu);
    let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
    let event = Arc::new(Event::new(&context, EventFlags::empty()).expect("an event"));
    calls();
    stream.record_external(&event).expect("a record");
    assert_eq!(calls(), [Function::cuStreamGetCaptureInfo_v3, Function::cuEventRecord]);
    stream.wait_external(&event).expect("a wait");
    assert_eq!(calls(), [Function::cuStreamGetCaptureInfo_v3, Function::cuStreamWaitEvent]);
    let capture = begin(&stream);
    assert_eq!(calls(), [Function::cuStreamBeginCapture_v2, Function::cuStreamGetCaptureInfo_v3]);
    stream.record_external(&event).expect("a record");
    let info = Function::cuStreamGetCaptureInfo_v3;
    assert_eq!(calls(), [info, Function::cuEventRecordWithFlags]);
    let graph = capture.end().expect("a graph");
    assert_eq!(calls(), [Function::cuStreamEndCapture]);
    let exec = graph.instantiate().expect("an executable graph");
    assert_eq!(
        calls(),
        [
            Function::cuCtxGetCurrent,
            Function::cuCtxPushCurrent_v2,
            Function::cuGraphInstantiateWithFlags,
            Function::cuCtxPopCurrent_v2
        ]
    );
    assert!(current(gpu.driver).is_null());
    exec.launch(&stream).expect("a launch");
    assert_eq!(calls(), [Function::cuGraphLaunch]);
    stream.synchronize().expect("the work ends");
    calls();
    drop(exec);
    let mode = Function::cuThreadExchangeStreamCaptureMode;
    assert_eq!(calls(), [mode, Function::cuGraphExecDestroy, mode]);
    assert_eq!(graph.instantiate().and_then(|exec| exec.close()), Ok(()));
    assert_eq!(calls().iter().filter(|call| **call == Function::cuGraphExecDestroy).count(), 1);
    assert_eq!(graph.close(), Ok(()));
    assert_eq!(calls(), [Function::cuGraphDestroy]);
    drop(Graph::new(&context).expect("a graph"));
    assert_eq!(calls(), [Function::cuGraphCreate, Function::cuGraphDestroy]);
}

#[test]
fn the_dependencies_of_a_node_reach_the_driver() {
    let Some(gpu) = Gpu::with(Function::cuGraphAddEventRecordNode) else { return };
    let counts = Arc::new(Mutex::new(Vec::new()));
    let seen = counts.clone();
    let driver = gpu.driver.observe(move |call| {
        if [Function::cuGraphAddEventRecordNode, Function::cuGraphAddEventWaitNode]
            .contains(&call.function)
        {
            seen.lock().expect("no panic").push(call.arguments[3]);
        }
    });
    let context = Device::new(driver.expect("a free slot"), 0)
        .and_then(Context::primary)
        .expect("the context");
    let event = Arc::new(Event::new(&context, EventFlags::empty()).expect("an event"));
    let mut graph = Graph::new(&context).expect("a graph");
    let first = graph.add_event_record_node(&[], &event).expect("a node");
    let second = graph.add_event_wait_node(&[first], &event).expect("a node");
    graph.add_event_record_node(&[first, second], &event).expect("a node");
    assert_eq!(*counts.lock().expect("no panic"), [0, 1, 2]);
}

#[test]
fn an_interprocess_event_stays_in_its_context() {
    // A wait for one of another context is a crash in the real driver.
    let Some(gpu) = Gpu::with(Function::cuGraphAddEventRecordNode) else { return };
    let other = Other::new(&gpu);
    let elsewhere = Stream::new(&other, StreamOptions::new()).expect("a stream");
    let interprocess =
        |context| Arc::new(Event::new(context, EventFlags::INTERPROCESS).expect("an event"));
    let (own, foreign) = (interprocess(&gpu.context), interprocess(&other));
    let refused = |result: Result<(), Error>, function| {
        assert_eq!(
            result,
            Err(Error::ContextMismatch { function, code: None, device: 0, other_device: 0 })
        );
    };
    let mut graph = Graph::new(&gpu.context).expect("a graph");
    graph.add_event_wait_node(&[], &foreign).expect("a node");
    refused(graph.instantiate().map(drop), Function::cuGraphInstantiateWithFlags);
    drop(graph);
    let mut graph = Graph::new(&gpu.context).expect("a graph");
    let node = graph.add_event_wait_node(&[], &own).expect("a node");
    let mut exec = graph.instantiate().expect("an executable graph");
    refused(exec.launch(&elsewhere), Function::cuGraphLaunch);
    let function = Function::cuGraphExecEventWaitNodeSetEvent;
    refused(exec.set_wait_node_event(&graph, node, &foreign), function);
    exec.launch(&gpu.stream()).expect("a launch");
    gpu.context.synchronize().expect("the work ends");
    graph.set_wait_node_event(node, &event(&gpu)).expect("a new event");
    let mut exec = graph.instantiate().expect("an executable graph");
    exec.launch(&elsewhere).expect("a launch without one");
    exec.set_wait_node_event(&graph, node, &own).expect("a new event");
    refused(exec.launch(&elsewhere), Function::cuGraphLaunch);
    other.synchronize().expect("the work ends");
}

/// Two libraries number their captures alike: a graph keeps its own events, and not the other's.
#[test]
fn captures_with_one_number_retain_their_own_events() {
    let softs = [SoftDriver::new(), SoftDriver::new()];
    let streams = softs.each_ref().map(|soft| {
        let context =
            Device::new(soft.driver(), 0).and_then(Context::primary).expect("the context");
        Stream::new(&context, StreamOptions::new()).expect("a stream")
    });
    let captures = streams.each_ref().map(begin);
    let ids = streams.each_ref().map(|stream| stream.capture_info().expect("an answer").id);
    assert_eq!(ids[0], ids[1], "otherwise this shows nothing");
    let events = streams.each_ref().map(|stream| {
        let event =
            Event::new(stream.context(), EventFlags::empty()).map(Arc::new).expect("an event");
        stream.record_external(&event).expect("a record");
        event
    });
    let held = || events.each_ref().map(|event| Arc::strong_count(event) > 1);
    let [first, second] = captures.map(|capture| capture.end().expect("a graph"));
    assert_eq!(held(), [true, true]);
    drop(second);
    assert_eq!(held(), [true, false]);
    drop(first);
    assert_eq!(held(), [false, false]);
}

/// In a capture of other code an event is kept forever, but not one that never got there.
#[test]
fn an_event_of_a_failed_call_is_not_retained() {
    let soft = SoftDriver::builder().version(11, 0).build();
    let context = Device::new(soft.driver(), 0).and_then(Context::primary).expect("the context");
    let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
    let (begin, end) = (
        soft.driver().symbols().cuStreamBeginCapture_v2,
        soft.driver().symbols().cuStreamEndCapture,
    );
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    // SAFETY: the stream is alive.
    check(Function::cuStreamBeginCapture_v2, unsafe { begin(stream.as_raw(), mode) });
    let event = Event::new(&context, EventFlags::empty()).map(Arc::new).expect("an event");
    let made = stream.record_external(&event);
    assert!(matches!(made, Err(Error::Unsupported { .. })), "{made:?}");
    assert_eq!(Arc::strong_count(&event), 1);
    let mut graph = null_mut();
    // SAFETY: the stream is alive; a place for the handle.
    check(Function::cuStreamEndCapture, unsafe { end(stream.as_raw(), &mut graph) });
    // SAFETY: the graph is nobody else's, and has no nodes.
    drop(unsafe { Graph::from_raw(&context, graph) });
}
