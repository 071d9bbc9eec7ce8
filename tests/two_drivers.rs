//! Objects of two driver libraries in one process: to each of them the other's handles are arbitrary addresses.

mod common;

use std::sync::Arc;

use common::Gpu;
use cuda_events::sys::Function;
use cuda_events::{
    Capture, CaptureMode, Context, Device, Driver, Error, Event, EventFlags, Graph, LoadOptions, Stream, StreamOptions,
};
use cuda_soft_driver::SoftDriver;

#[test]
fn objects_of_two_libraries_are_kept_apart() {
    let gpu = Gpu::new();
    if !common::needs(gpu.driver, cuda_events::sys::Function::cuGraphAddEventRecordNode) {
        return;
    }
    let soft = SoftDriver::new();
    let other = Device::new(soft.driver(), 0).and_then(Context::primary).expect("the other primary context");
    let stream = gpu.stream();
    let event = Arc::new(Event::new(&gpu.context, EventFlags::TIMING).expect("an event"));
    let foreign = Arc::new(Event::new(&other, EventFlags::TIMING).expect("an event"));
    let elsewhere = Stream::new(&other, StreamOptions::new()).expect("a stream");

    let apart = |result: Result<(), Error>, function| assert_eq!(result, Err(Error::OtherDriver { function }));
    apart(event.record(&elsewhere), Function::cuEventRecord);
    apart(foreign.record(&stream), Function::cuEventRecord);
    apart(stream.wait_event(&foreign), Function::cuStreamWaitEvent);
    apart(stream.wait_stream(&elsewhere), Function::cuStreamWaitEvent);
    let elapsed = match gpu.driver.symbols().cuEventElapsedTime_v2 {
        Some(_) => Function::cuEventElapsedTime_v2,
        None => Function::cuEventElapsedTime,
    };
    apart(event.elapsed_ms(&foreign).map(drop), elapsed);
    apart(foreign.record_context(&gpu.context), Function::cuCtxRecordEvent);
    apart(gpu.context.wait_event(&foreign), Function::cuCtxWaitEvent);
    apart(stream.copy_attributes_from(&elsewhere), Function::cuStreamCopyAttributes);

    let mut graph = Graph::new(&gpu.context).expect("a graph");
    apart(graph.add_event_record_node(&[], &foreign).map(drop), Function::cuGraphAddEventRecordNode);
    let node = graph.add_event_record_node(&[], &event).expect("a node");
    apart(graph.set_record_node_event(node, &foreign), Function::cuGraphEventRecordNodeSetEvent);
    let mut exec = graph.instantiate().expect("an executable graph");
    apart(exec.set_record_node_event(&graph, node, &foreign), Function::cuGraphExecEventRecordNodeSetEvent);
    apart(exec.launch(&elsewhere), Function::cuGraphLaunch);
    // SAFETY: no other thread has the stream.
    let capture = unsafe { Capture::begin_to_graph(&elsewhere, graph, &[], CaptureMode::ThreadLocal) };
    apart(capture.map(drop), Function::cuStreamBeginCaptureToGraph);

    assert_ne!(gpu.device, other.device());
    // Each is of use with its own.
    event.record(&stream).expect("a record");
    foreign.record(&elsewhere).expect("a record");
    event.synchronize().expect("no work");
    foreign.synchronize().expect("no work");
}

#[test]
fn tables_of_one_library_go_together() {
    let gpu = Gpu::new();
    // Another table of the same library: with the per-thread default stream.
    let driver = match gpu.soft() {
        Some(soft) => {
            let options = LoadOptions::new().per_thread_default_stream(true);
            // SAFETY: the software driver has the driver's ABI, and its functions are part of this program.
            unsafe { Driver::from_resolver(&mut |name| soft.resolve(name), &options) }.expect("it resolves")
        }
        None => {
            let library = gpu.driver.library().expect("it was opened from a file");
            let options = LoadOptions::new().path(library).per_thread_default_stream(true);
            Driver::load_with(&options).expect("it loads again")
        }
    };
    assert_ne!(driver, gpu.driver);
    let device = Device::new(driver, 0).expect("device 0");
    assert_eq!(device, gpu.device);
    let context = Context::primary(device).expect("the primary context");
    assert_eq!(context, gpu.context);
    let event = Event::new(&context, EventFlags::empty()).expect("an event");
    let stream = gpu.stream();
    event.record(&stream).expect("they are of one library");
    stream.wait_event(&event).expect("they are of one library");
    event.synchronize().expect("no work");

    if !common::needs(gpu.driver, Function::cuEventRecordWithFlags) {
        return;
    }
    let event = Arc::new(event);
    let other = Stream::new(&context, StreamOptions::new()).expect("a stream");
    let capture = common::begin_capture(&stream, CaptureMode::ThreadLocal).expect("a capture");
    other.wait_stream(&stream).expect("it joins the capture");
    other.record_external(&event).expect("a node");
    assert_eq!(Arc::strong_count(&event), 2, "the capture keeps it");
    stream.wait_stream(&other).expect("it is joined");
    drop(capture.end().expect("a graph"));
    assert_eq!(Arc::strong_count(&event), 1, "the graph was the one that kept it");
}
