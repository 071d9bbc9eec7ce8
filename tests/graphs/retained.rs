//! What keeps the events of graphs and captures alive, and for how long.

use crate::common;

use std::ptr::null_mut;
use std::sync::{Arc, Weak};

use common::{Gpu, Latch, check};
use cuda_events::capture::{CaptureMode, CaptureStatus};
use cuda_events::graph::{Graph, GraphExec, GraphNode};
use cuda_events::sys::{CUresult, CUstreamCaptureMode, Function};
use cuda_events::{
    Context, Device, Error, Event, EventFlags, Stream, StreamOptions, StreamRef, Version,
};
use cuda_soft_driver::{Fault, SoftDriver};

use crate::graphs::*;

#[test]
fn a_graph_keeps_its_events_alive() {
    let Some(gpu) = Gpu::with(Function::cuGraphAddEventRecordNode) else { return };
    let stream = gpu.stream();
    let captured = || {
        let (record, wait) = (event(&gpu), event(&gpu));
        let weak = [Arc::downgrade(&record), Arc::downgrade(&wait)];
        let capture = begin(&stream);
        stream.record_external(&record).expect("a record");
        stream.wait_external(&wait).expect("a wait");
        drop((record, wait));
        assert!(weak.iter().all(alive));
        (capture.end().expect("a graph"), weak)
    };
    let made = || {
        let (record, wait) = (event(&gpu), event(&gpu));
        let weak = [Arc::downgrade(&record), Arc::downgrade(&wait)];
        let mut graph = Graph::new(&gpu.context).expect("a graph");
        let first = graph.add_event_record_node(&[], &record).expect("a node");
        graph.add_event_wait_node(&[first], &wait).expect("a node");
        (graph, weak)
    };
    for (graph, weak) in [captured(), made()] {
        assert!(weak.iter().all(alive));
        // On a real driver this is a crash if an event is gone.
        let exec = graph.instantiate().expect("an executable graph");
        drop(graph);
        assert!(weak.iter().all(alive));
        let latch = Latch::hold(&stream);
        exec.launch(&stream).expect("a launch");
        drop(exec);
        assert!(!weak.iter().any(alive));
        latch.release();
        assert_eq!(stream.synchronize(), Ok(()));
    }
    let (graph, weak) = captured();
    drop(graph);
    assert!(!weak.iter().any(alive));
}

#[test]
fn a_failed_capture_retains_nothing() {
    let Some(gpu) = Gpu::with(Function::cuGraphAddEventRecordNode) else { return };
    let stream = gpu.stream();
    for harm in [false, true] {
        let event = event(&gpu);
        let capture = begin(&stream);
        stream.record_external(&event).expect("a record");
        if harm {
            stream.query().expect_err("a query of the stream itself");
            stream.record_external(&event).expect_err("an invalidated capture");
        }
        drop(capture);
        assert_eq!(Arc::strong_count(&event), 1);
    }
}

#[test]
fn a_failed_record_retains_nothing() {
    let soft = SoftDriver::builder().version(11, 0).build();
    let context = Device::new(soft.driver(), 0).and_then(Context::primary).expect("the context");
    let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
    let event = Arc::new(Event::new(&context, EventFlags::empty()).expect("an event"));
    let _capture = begin(&stream);
    let error = stream.record_external(&event);
    let function = Function::cuEventRecordWithFlags;
    let (since, driver) = (Version::new(11, 1), Version::new(11, 0));
    assert_eq!(error, Err(Error::Unsupported { function, since, driver }));
    assert_eq!(Arc::strong_count(&event), 1);
}

#[test]
fn setting_an_event_again_releases_the_one_before() {
    let Some(gpu) = Gpu::with(Function::cuGraphAddEventRecordNode) else { return };
    let stream = gpu.stream();
    let first = event(&gpu);
    let capture = begin(&stream);
    stream.record_external(&first).expect("a record");
    // SAFETY: this thread is the only one that uses the stream.
    let node = unsafe { capture.dependencies(&stream) }.expect("dependencies")[0].node;
    let mut graph = capture.end().expect("a graph");
    let mut exec = graph.instantiate().expect("an executable graph");
    let mut before: Option<Weak<Event>> = None;
    for _ in 0..3 {
        let next = event(&gpu);
        graph.set_record_node_event(node, &next).expect("a new event");
        exec.set_record_node_event(&graph, node, &next).expect("a new event");
        assert!(!before.is_some_and(|before| alive(&before)));
        before = Some(Arc::downgrade(&next));
        drop(next);
        assert!(before.as_ref().is_some_and(alive));
    }
}

/// A driver answers with the errors of earlier work, too: such an answer does not say that the call
/// did nothing.
#[test]
fn an_event_is_retained_despite_an_error() {
    let soft = SoftDriver::builder().devices(2).build();
    let context = Device::new(soft.driver(), 0).and_then(Context::primary).expect("the context");
    let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
    let event = || Arc::new(Event::new(&context, EventFlags::empty()).expect("an event"));
    let code = CUresult::CUDA_ERROR_LAUNCH_FAILED;
    let fail = |function: Function| {
        soft.clear_faults();
        soft.inject(Fault::on(function.name()).once().after_the_work().answer(code));
    };
    let failed = |result: Result<(), Error>, function| {
        assert_eq!(result, Err(Error::Driver { function, code }))
    };

    type Work = fn(&mut Graph, &mut GraphExec, [GraphNode; 2], &Arc<Event>) -> Result<(), Error>;
    let works: [(Function, Work); 6] = [
        (Function::cuGraphAddEventRecordNode, |graph, _, _, event| {
            graph.add_event_record_node(&[], event).map(drop)
        }),
        (Function::cuGraphAddEventWaitNode, |graph, _, _, event| {
            graph.add_event_wait_node(&[], event).map(drop)
        }),
        (Function::cuGraphEventRecordNodeSetEvent, |graph, _, [node, _], event| {
            graph.set_record_node_event(node, event)
        }),
        (Function::cuGraphEventWaitNodeSetEvent, |graph, _, [_, node], event| {
            graph.set_wait_node_event(node, event)
        }),
        (Function::cuGraphExecEventRecordNodeSetEvent, |graph, exec, [node, _], event| {
            exec.set_record_node_event(graph, node, event)
        }),
        (Function::cuGraphExecEventWaitNodeSetEvent, |graph, exec, [_, node], event| {
            exec.set_wait_node_event(graph, node, event)
        }),
    ];
    for (function, work) in works {
        let (first, second) = (event(), event());
        let weak = [&first, &second].map(Arc::downgrade);
        let mut graph = Graph::new(&context).expect("a graph");
        let record = graph.add_event_record_node(&[], &first).expect("a node");
        let wait = graph.add_event_wait_node(&[], &first).expect("a node");
        let mut exec = graph.instantiate().expect("an executable graph");
        fail(function);
        failed(work(&mut graph, &mut exec, [record, wait], &second), function);
        drop((first, second));
        assert!(weak.iter().all(alive), "{function}: a node refers to it");
        exec.launch(&stream).expect("a launch");
        graph.instantiate().expect("an executable graph").launch(&stream).expect("a launch");
        stream.synchronize().expect("the work ends");
        drop((graph, exec));
        assert!(!weak.iter().any(alive), "{function}: nothing refers to it any more");
    }

    // In a capture of ours, and in one that others began.
    type External = fn(&Stream, &Arc<Event>) -> Result<(), Error>;
    let works: [(Function, External); 2] = [
        (Function::cuEventRecordWithFlags, |stream, event| stream.record_external(event)),
        (Function::cuStreamWaitEvent, |stream, event| stream.wait_external(event)),
    ];
    for (function, work) in works {
        let event = event();
        let weak = Arc::downgrade(&event);
        let capture = begin(&stream);
        fail(function);
        failed(work(&stream, &event), function);
        drop(event);
        assert!(alive(&weak), "{function}: a node refers to it");
        let exec =
            capture.end().and_then(|graph| graph.instantiate()).expect("an executable graph");
        exec.launch(&stream).expect("a launch");
        stream.synchronize().expect("the work ends");
        drop(exec);
        assert!(!alive(&weak), "{function}: nothing refers to it any more");
    }
    let theirs = event();
    let weak = Arc::downgrade(&theirs);
    let mut graph = null_mut();
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    let symbols = soft.driver().symbols();
    // SAFETY: the stream is alive.
    check(Function::cuStreamBeginCapture_v2, unsafe {
        (symbols.cuStreamBeginCapture_v2)(stream.as_raw(), mode)
    });
    fail(Function::cuEventRecordWithFlags);
    failed(stream.record_external(&theirs), Function::cuEventRecordWithFlags);
    drop(theirs);
    assert!(alive(&weak), "nobody can tell how long it is needed");
    // SAFETY: the stream is alive; a place for the handle.
    check(Function::cuStreamEndCapture, unsafe {
        (symbols.cuStreamEndCapture)(stream.as_raw(), &mut graph)
    });
    // SAFETY: the graph is nobody else's, and its event is never destroyed.
    drop(unsafe { Graph::from_raw(&context, graph) });

    // The node is made although what was current cannot be restored.
    soft.clear_faults();
    let own = StreamRef::per_thread_default(&context);
    let event = event();
    let weak = Arc::downgrade(&event);
    let capture = common::begin_capture(&own, CaptureMode::ThreadLocal).expect("a capture");
    // The first restores after the capture was asked for.
    soft.inject(Fault::on("cuCtxPopCurrent_v2").nth(2).after_the_work().answer(code));
    failed(own.record_external(&event), Function::cuCtxPopCurrent_v2);
    soft.clear_faults();
    drop(event);
    assert!(alive(&weak), "a node refers to it");
    let exec = capture.end().and_then(|graph| graph.instantiate()).expect("an executable graph");
    exec.launch(&stream).and_then(|()| stream.synchronize()).expect("the work ends");
    drop(exec);
    assert!(!alive(&weak), "nothing refers to it any more");

    // An interprocess event that a node may refer to stays in its context.
    let interprocess =
        || Arc::new(Event::new(&context, EventFlags::INTERPROCESS).expect("an event"));
    let second = Context::primary(Device::new(soft.driver(), 1).expect("a second device"))
        .expect("its context");
    let elsewhere = Stream::new(&second, StreamOptions::new()).expect("a stream");
    let mut graph = Graph::new(&context).expect("a graph");
    let plain = Arc::new(Event::new(&context, EventFlags::empty()).expect("an event"));
    let node = graph.add_event_wait_node(&[], &plain).expect("a node");
    let mut exec = graph.instantiate().expect("an executable graph");
    let function = Function::cuGraphExecEventWaitNodeSetEvent;
    fail(function);
    failed(exec.set_wait_node_event(&graph, node, &interprocess()), function);
    assert!(matches!(exec.launch(&elsewhere), Err(Error::ContextMismatch { .. })));
    drop((graph, exec));

    // What the driver was not asked for, it did not do.
    soft.clear_faults();
    let capture = begin(&stream);
    let other = SoftDriver::new();
    let elsewhere =
        Device::new(other.driver(), 0).and_then(Context::primary).expect("the other context");
    let elsewhere = Arc::new(Event::new(&elsewhere, EventFlags::empty()).expect("an event"));
    assert!(matches!(stream.record_external(&elsewhere), Err(Error::DriverMismatch { .. })));
    drop(capture);
    assert_eq!(Arc::strong_count(&elsewhere), 1);
}

/// Nobody may destroy a graph while a capture adds to it: the capture is ended first.
#[test]
fn a_capture_begun_with_an_error_is_ended() {
    let soft = SoftDriver::new();
    let context = Device::new(soft.driver(), 0).and_then(Context::primary).expect("the context");
    let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
    let function = Function::cuStreamBeginCaptureToGraph;
    let begin = |stream| {
        common::begin_capture_to_graph(stream, Graph::new(&context)?, &[], CaptureMode::ThreadLocal)
    };
    let code = CUresult::CUDA_ERROR_LAUNCH_FAILED;
    soft.inject(Fault::on(function.name()).once().after_the_work().answer(code));
    assert_eq!(begin(&stream).err(), Some(Error::Driver { function, code }));
    assert_eq!(stream.capture_status(), Ok(CaptureStatus::None));
    assert_eq!((soft.live().captures, soft.live().graphs), (0, 0));

    // Where it cannot be told, nothing is touched.
    let info = Function::cuStreamGetCaptureInfo_v3;
    soft.inject(Fault::on(function.name()).once().after_the_work().answer(code));
    soft.inject(Fault::on(info.name()).once().answer(code));
    soft.inject(Fault::on("cuGraphDestroy").answer(code));
    let before = soft.injected();
    assert_eq!(begin(&stream).err(), Some(Error::Driver { function, code }));
    assert_eq!(soft.injected() - before, 2, "the graph is not destroyed");
    soft.clear_faults();
    assert_eq!((soft.live().captures, soft.live().graphs), (1, 1));
    let mut graph = null_mut();
    let end = soft.driver().symbols().cuStreamEndCapture;
    // SAFETY: the stream is alive; a place for the handle.
    check(Function::cuStreamEndCapture, unsafe { end(stream.as_raw(), &mut graph) });
    // SAFETY: the graph is nobody else's, and has no nodes.
    drop(unsafe { Graph::from_raw(&context, graph) });
    assert_eq!((soft.live().captures, soft.live().graphs), (0, 0));

    // Nor where the capture began and was invalidated since, as its graph is not told then.
    let spoiled = soft.driver().observe({
        let (query, stream) = (soft.driver().symbols().cuStreamQuery, stream.as_raw().addr());
        move |call| {
            if call.function == function {
                // SAFETY: the stream is alive as long as the driver is observed.
                unsafe { query(std::ptr::without_provenance_mut(stream)) };
            }
        }
    });
    let spoiled = Device::new(spoiled.expect("a free slot"), 0)
        .and_then(Context::primary)
        .expect("the context");
    // SAFETY: it is used only as long as the stream lives.
    let named = unsafe { StreamRef::from_raw(&spoiled, stream.as_raw()) };
    let graph = Graph::new(&spoiled).expect("a graph");
    let live = soft.live().graphs;
    soft.inject(Fault::on(function.name()).once().after_the_work().answer(code));
    let refused =
        common::begin_capture_to_graph(&named, graph, &[], CaptureMode::ThreadLocal).err();
    assert_eq!(refused, Some(Error::Driver { function, code }));
    assert_eq!(stream.capture_status(), Ok(CaptureStatus::Invalidated));
    assert_eq!(soft.live().graphs, live, "the graph is not destroyed");
    let mut graph = null_mut();
    // SAFETY: the stream is alive; a place for the handle.
    let ended = unsafe { end(stream.as_raw(), &mut graph) };
    assert_eq!(ended, CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    assert!(spoiled.device().driver().stop_observing());

    // A refusal is one, and the graph is destroyed: also where the stream captures something else.
    soft.inject(Fault::on(function.name()).once().answer(code));
    assert_eq!(begin(&stream).err(), Some(Error::Driver { function, code }));
    assert_eq!(soft.live().graphs, 0);
    let capture = common::begin_capture(&stream, CaptureMode::ThreadLocal).expect("a capture");
    let refused = begin(&stream).err().and_then(|error| error.code());
    assert_eq!(refused, Some(CUresult::CUDA_ERROR_ILLEGAL_STATE));
    drop(capture.end().expect("the capture goes on"));
    assert_eq!((soft.live().captures, soft.live().graphs), (0, 0));
}
