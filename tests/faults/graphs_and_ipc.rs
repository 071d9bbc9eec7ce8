//! The scenarios of captures, graphs and interprocess events.

use std::ptr::null_mut;
use std::sync::Arc;
use std::time::Duration;

use cuda_events::capture::{
    Capture, CaptureDependency, CaptureMode, CaptureStatus, DependencyUpdate, ThreadCaptureMode,
};
use cuda_events::ext::{IpcLease, LazyEvent, Timer};
use cuda_events::foundation::ForeignCapture;
use cuda_events::graph::{Graph, GraphNode};
use cuda_events::ipc::{DescriptorError, ExporterProcess, ExporterState};
use cuda_events::sys::{CUresult, Function};
use cuda_events::{
    Context, Device, Error, Event, EventFlags, IpcEventDescriptor, Result, Stream, StreamOptions,
    StreamRef, Version,
};

use crate::common::child::is_emulated;
use crate::scenarios::Run;

pub fn captures(run: &Run) -> Result<()> {
    let (context, stream) = run.stream()?;
    let other = Stream::new(&context, StreamOptions::new())?;
    for mode in [CaptureMode::Global, CaptureMode::ThreadLocal, CaptureMode::Relaxed] {
        let capture = run.capture(&stream, mode)?;
        assert_eq!(*capture.stream(), *stream);
        assert_eq!(stream.capture_status()?, CaptureStatus::Active);
        other.wait_stream(&stream)?;
        run.optional(stream.capture_info())?;
        // SAFETY: no other thread knows the stream.
        if let Some(dependencies) = run.optional(unsafe { capture.dependencies(&stream) })? {
            capture.update_dependencies(&stream, &dependencies, DependencyUpdate::Set)?;
            capture.update_dependencies(&stream, &[], DependencyUpdate::Add)?;
        }
        stream.wait_stream(&other)?;
        capture.end()?;
    }
    let apart = Stream::new(&context, StreamOptions::new())?;
    let capture = run.capture(&stream, CaptureMode::Relaxed)?;
    let foreign = capture.update_dependencies(&apart, &[], DependencyUpdate::Set);
    if run.driver.version() >= Version::new(11, 3) {
        run.refused(foreign, |error| matches!(error, Error::CaptureMismatch { .. }))?;
    } else {
        run.refused(foreign, |error| {
            matches!(error, Error::CaptureMismatch { .. } | Error::Unsupported { .. })
        })?;
    }
    run.maybe(run.capture(&stream, CaptureMode::Relaxed), CUresult::CUDA_ERROR_ILLEGAL_STATE)?;
    // Refused, and the end of this capture.
    run.maybe(stream.synchronize(), CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)?;
    run.maybe(capture.end(), CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED)?;
    stream.synchronize()
}

pub fn dropped_capture(run: &Run) -> Result<()> {
    let context = run.context()?;
    // A stream that is never destroyed, so that nothing else ends the capture.
    let stream = StreamRef::per_thread_default(&context);
    let event = Event::new(&context, EventFlags::empty())?;
    let capture = run.capture(&stream, CaptureMode::Global)?;
    let mode = ThreadCaptureMode::exchange(run.driver, CaptureMode::Relaxed)?;
    let _ = event.query()?;
    drop((mode, capture));
    Ok(())
}

pub fn external(run: &Run) -> Result<()> {
    let (context, stream) = run.stream()?;
    let event = Arc::new(Event::new(&context, EventFlags::TIMING)?);
    stream.record_external(&event)?;
    stream.wait_external(&event)?;
    let capture = run.capture(&stream, CaptureMode::ThreadLocal)?;
    run.optional(stream.record_external(&event))?;
    stream.wait_external(&event)?;
    let lazy = LazyEvent::new(EventFlags::empty())?;
    lazy.wait_external(&stream)?;
    run.optional(lazy.record_external(&stream))?;
    let timing = run.optional(Timer::start(&stream))?.map(Timer::stop).transpose()?;
    let exec = capture.end()?.instantiate()?;
    exec.launch(&stream)?;
    stream.synchronize()?;
    if let Some(timing) = timing {
        timing.synchronize()?;
    }
    event.synchronize()
}

pub fn capture_of_default_stream(run: &Run) -> Result<()> {
    let context = run.context()?;
    let stream = StreamRef::per_thread_default(&context);
    let event = Arc::new(Event::new(&context, EventFlags::empty())?);
    let capture = run.capture(&stream, CaptureMode::Relaxed)?;
    run.optional(stream.record_external(&event))?;
    let graph = capture.end()?;
    drop(event);
    let exec = graph.instantiate()?;
    exec.launch(&stream)?;
    stream.synchronize()
}

pub fn graphs(run: &Run) -> Result<()> {
    let (context, stream) = run.stream()?;
    let event = || Event::new(&context, EventFlags::TIMING).map(Arc::new);
    let (first, second, third) = (event()?, event()?, event()?);
    let mut graph = Graph::new(&context)?;
    assert_eq!(graph.context(), &context);
    let Some(record) = run.optional(graph.add_event_record_node(&[], &first))? else {
        let exec = graph.instantiate()?;
        return exec.launch(&stream);
    };
    let wait = graph.add_event_wait_node(&[record], &second)?;
    // SAFETY: a node of this graph.
    assert_eq!(unsafe { GraphNode::from_raw(&graph, record.as_raw()) }, record);
    assert!(graph.record_node_event(record)?.is_some_and(|event| Arc::ptr_eq(&event, &first)));
    assert!(graph.wait_node_event(wait)?.is_some_and(|event| Arc::ptr_eq(&event, &second)));
    graph.set_record_node_event(record, &second)?;
    graph.set_wait_node_event(wait, &first)?;
    let mut exec = graph.instantiate()?;
    assert_eq!(exec.context(), &context);
    exec.set_record_node_event(&graph, record, &third)?;
    exec.set_wait_node_event(&graph, wait, &third)?;
    drop((first, second));
    exec.launch(&stream)?;
    stream.synchronize()?;
    third.synchronize()?;
    run.maybe(graph.wait_node_event(record), CUresult::CUDA_ERROR_INVALID_VALUE)?;
    let mut strange = Graph::new(&context)?;
    let mixed = strange.add_event_record_node(&[record], &third);
    run.refused(mixed, |error| matches!(error, Error::GraphMismatch { .. }))?;
    assert!(ForeignCapture::of(&stream)?.is_none());
    // SAFETY: no other thread knows the stream.
    let capture =
        unsafe { Capture::begin_to_graph(&stream, graph, &[record, wait], CaptureMode::Relaxed) };
    if let Some(capture) = run.optional(capture)? {
        let dependency = CaptureDependency::from(record);
        capture.update_dependencies(&stream, &[dependency], DependencyUpdate::Set)?;
        stream.record_external(&third)?;
        capture.end()?.instantiate()?.launch(&stream)?;
    }
    stream.synchronize()
}

pub fn graph_close(run: &Run) -> Result<()> {
    let context = run.context()?;
    let mut raw = null_mut();
    // SAFETY: a place for the handle.
    match unsafe { (run.driver.symbols().cuGraphCreate)(&mut raw, 0) } {
        CUresult::CUDA_SUCCESS => {}
        code => return Err(Error::Driver { function: Function::cuGraphCreate, code }),
    }
    // SAFETY: nobody else knows the graph.
    let graph = unsafe { Graph::from_raw(&context, raw) };
    assert_eq!(graph.as_raw(), raw);
    // So that `close` is what destroys both whatever happens.
    let exec = graph.instantiate();
    let closed = graph.close();
    let exec = exec?;
    assert!(!exec.as_raw().is_null());
    let exec_closed = exec.close();
    closed.and(exec_closed)
}

pub fn exports(run: &Run) -> Result<()> {
    let (context, stream) = run.stream()?;
    let event =
        Arc::new(Event::new(&context, EventFlags::INTERPROCESS | EventFlags::BLOCKING_SYNC)?);
    let descriptor = event.ipc_descriptor()?;
    assert_eq!(IpcEventDescriptor::from_bytes(&descriptor.to_bytes())?, descriptor);
    assert_eq!(descriptor.device_uuid(), Some(context.device().uuid()?));
    assert!(descriptor.is_blocking_sync() && descriptor.exporter_pid() == Some(std::process::id()));
    let exporter = ExporterProcess::of(&descriptor);
    assert_eq!(exporter.pid(), Some(std::process::id()));
    assert_ne!(exporter.state(), ExporterState::Ended);
    let lease = IpcLease::new(event.clone())?;
    assert!(*lease.descriptor() == descriptor && Arc::ptr_eq(lease.event(), &event));
    lease.record(&stream)?;
    lease.synchronize()?;
    let plain = Event::new(&context, EventFlags::empty())?;
    run.refused(plain.ipc_descriptor(), |error| *error == Error::NotInterprocess)
}

pub fn other_device(run: &Run) -> Result<()> {
    let context = Context::primary(Device::new(run.driver, 1)?)?;
    // SAFETY: it is not opened, being of another device.
    let other = unsafe { Event::from_ipc_descriptor(&context, &run.import) };
    run.refused(other, |error| {
        matches!(error, Error::Descriptor(DescriptorError::DeviceMismatch { .. }))
    })
}

pub fn imports(run: &Run) -> Result<()> {
    let (context, stream) = run.stream()?;
    // SAFETY: the harness's child keeps the event.
    let event = unsafe { Event::from_ipc_descriptor(&context, &run.import) }?;
    assert!(event.is_imported());
    let _ = event.query()?;
    event.synchronize()?;
    stream.wait_event(&event)?;
    event.record(&stream)?;
    let _ = event.synchronize_timeout(Duration::from_millis(100))?;
    // An emulator makes up when a process started, so that the exporter seems to be another one.
    if !is_emulated() {
        let _ = ExporterProcess::of(&run.import).wait_for(&event, Duration::from_millis(10))?;
    }
    run.refused(event.ipc_descriptor(), |error| *error == Error::ExportOfImport)?;
    let bare = IpcEventDescriptor::from_raw(run.import.to_raw(), false);
    // SAFETY: as above.
    let again = unsafe { Event::from_ipc_descriptor(&context, &bare) }?;
    let lazy = LazyEvent::from(again);
    lazy.wait(&stream)?;
    stream.synchronize()
}
