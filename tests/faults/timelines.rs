//! The scenarios of timelines.

use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use cuda_events::graph::Graph;
use cuda_events::ipc::ExporterState;
use cuda_events::sys::CUresult;
use cuda_events::{Context, Device, Event, EventFlags, Result, Stream, StreamOptions};
use cuda_soft_driver::SoftDriver;
use cuda_timelines::{
    CudaStreamExt, HostTimeline, ImportedTimeline, Timeline, TimelineDescriptor, TimelineFile,
    TimelineMemory,
};

use crate::common::{crc32, memory};
use crate::scenarios::Run;

/// A result of timelines, in which only driver calls fail.
pub fn cuda<T>(result: cuda_timelines::Result<T>) -> Result<T> {
    result.map_err(|error| match error {
        cuda_timelines::Error::Cuda(error) => error,
        error => panic!("no driver call failed: {error}"),
    })
}

pub fn timelines(run: &Run) -> cuda_timelines::Result<()> {
    const LONG_ENOUGH_TO_ASK: Duration = Duration::from_millis(6);
    let (context, stream) = run.stream()?;
    let other = Stream::new(&context, StreamOptions::new())?;
    let host = HostTimeline::new(&context)?;
    assert_eq!(host.context(), &context);
    let reached = host.signal()?;
    assert_eq!(host.completed(), reached.value());
    host.wait_ahead(&other, reached.value())?;
    other.wait_point(reached)?;
    let Some(timeline) = run.optional(cuda(Timeline::new(stream)))? else { return Ok(()) };
    let held = run.hold(timeline.stream())?;
    let signalled = timeline.signal();
    let point = signalled.as_ref().ok().copied();
    run.maybe(cuda(signalled), CUresult::CUDA_ERROR_NOT_SUPPORTED)?;
    let Some(point) = point else { return Ok(()) };
    assert_eq!(timeline.submitted(), Ok(point.value()));
    other.wait_point(point)?;
    timeline.wait_ahead(&other, point.value() - 1)?;
    host.wait_ahead(&other, host.completed() + 1)?;
    assert!(point.wait_timeout(LONG_ENOUGH_TO_ASK)?.is_pending());
    // It asks as the wait before it does, which has just asked.
    assert!(point.spin_timeout(Duration::ZERO)?.is_pending());
    assert!(point.query()?.is_pending());
    let mut future = point.into_future();
    assert_eq!(future.point(), point);
    if let Poll::Ready(result) =
        std::pin::Pin::new(&mut future).poll(&mut std::task::Context::from_waker(Waker::noop()))
    {
        return result;
    }
    drop(future);
    drop(held);
    timeline.stream().synchronize()?;
    // No call is made any more, and an error of one is not outweighed by the point.
    point.wait()?;
    point.spin()?;
    assert!(point.is_done() && timeline.completed() >= point.value());
    // A stream waits for the host, which gives up.
    host.poison();
    timeline.poison()?;
    Ok(other.synchronize()?)
}

pub fn graph_timelines(run: &Run) -> cuda_timelines::Result<()> {
    let (context, stream) = run.stream()?;
    let done = Arc::new(Event::new(&context, EventFlags::empty())?);
    let Some(timeline) = run.optional(cuda(Timeline::new(stream)))? else { return Ok(()) };
    let mut graph = Graph::new(&context)?;
    let Some(node) = run.optional(graph.add_event_record_node(&[], &done))? else { return Ok(()) };
    let replay = run.optional(cuda(timeline.in_graph(graph, &[&[node], &[]])))?;
    let Some(replay) = replay else { return Ok(()) };
    for point in replay.launch()? {
        point.wait()?;
    }
    replay.timeline().signal()?.wait()
}

pub fn shared_timelines(run: &Run) -> cuda_timelines::Result<()> {
    let context = run.context()?;
    let file = TimelineFile::writable(&context)?;
    both_roles(run, &context, file, false)
}

pub fn sealed_timelines(run: &Run) -> cuda_timelines::Result<()> {
    let context = run.context()?;
    let file = TimelineFile::new(&context)?;
    both_roles(run, &context, file, true)
}

/// Both in one process, which the library does not mind.
fn both_roles(
    run: &Run,
    context: &Context,
    file: TimelineFile,
    sealed: bool,
) -> cuda_timelines::Result<()> {
    const LONG_ENOUGH_TO_ASK: Duration = Duration::from_millis(6);
    let consumer = Stream::new(context, StreamOptions::new())?;
    assert_eq!(file.context(), context);
    let own = Stream::new(context, StreamOptions::new())?;
    let Some(timeline) = run.optional(cuda(Timeline::shared(own, &file)))? else { return Ok(()) };
    let host = HostTimeline::shared(&file)?;
    let import_from = |sent, descriptor: Option<TimelineDescriptor>| {
        let bytes = descriptor.expect("it is shared").to_bytes();
        ImportedTimeline::open(context, sent, &TimelineDescriptor::from_bytes(&bytes)?)
    };
    let import = |descriptor| import_from(memory::copy(&file), descriptor);
    // The same, of a maker that has died.
    let orphan = memory::orphan(&file, sealed);
    let orphan = import_from(orphan, host.descriptor())?;
    let (stage, stream) = (import(host.descriptor())?, import(timeline.descriptor())?);
    assert_eq!(stream.context(), context);
    let held = run.hold(timeline.stream())?;
    let signalled = timeline.signal();
    let value = signalled.as_ref().ok().map(|point| point.value());
    run.maybe(cuda(signalled), CUresult::CUDA_ERROR_NOT_SUPPORTED)?;
    let Some(value) = value else { return Ok(()) };
    let point = stream.point(value)?;
    // For the file itself, and for the relay of a sealed one.
    consumer.wait_point(point)?;
    assert!(point.wait_timeout(LONG_ENOUGH_TO_ASK)?.is_pending());
    drop(held);
    timeline.stream().synchronize()?;
    point.wait()?;
    assert!(point.is_done() && stream.completed() >= value);
    assert!(stage.point(stage.completed() + 1)?.query()?.is_pending());
    // The maker goes, and with it the end of all waits.
    timeline.poison()?;
    drop((host, file));
    consumer.synchronize()?;
    // Nobody on the host asks for the dead one before the stream has gone on.
    consumer.wait_point(orphan.point(1)?)?;
    consumer.synchronize()?;
    // Neither asks the driver.
    assert_eq!(orphan.point(1)?.query(), Err(cuda_timelines::Error::ExporterGone));
    assert_eq!(consumer.wait_point(orphan.point(1)?), Err(cuda_timelines::Error::ExporterGone));
    Ok(())
}

pub fn memory_timelines(run: &Run) -> cuda_timelines::Result<()> {
    let context = run.context()?;
    let made = TimelineMemory::new(&context);
    let memory = made.as_ref().ok();
    assert!(memory.is_none_or(|memory| memory.context() == &context));
    let made = match made {
        Err(error) => {
            let refused = cuda(Err::<(), _>(error));
            return Ok(run.maybe(refused, CUresult::CUDA_ERROR_NOT_SUPPORTED)?);
        }
        Ok(made) => made,
    };
    let own = Timeline::in_memory(Stream::new(&context, StreamOptions::new())?, &made)?;
    let handle = own.descriptor().expect("it is in memory");
    assert_eq!(TimelineDescriptor::from_bytes(&handle.to_bytes()), Ok(handle));
    assert_eq!(handle.device_uuid(), Some(context.device().uuid()?));
    assert_eq!(handle.exporter_pid(), Some(std::process::id()));
    own.signal()?.wait()?;
    own.poison()
}

/// Reports at the end of a scenario, however it ends, that the exporter has ended.
struct Ended<'opened>(&'opened ImportedTimeline);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        let _ = self.0.exporter_ended();
    }
}

/// The other side, of a timeline of another driver: the two are as two processes are.
pub fn opened_timelines(run: &Run) -> cuda_timelines::Result<()> {
    let context = run.context()?;
    let consumer = Stream::new(&context, StreamOptions::new())?;
    let maker = SoftDriver::builder().devices(2).build();
    let theirs = Device::new(maker.driver(), 0).and_then(Context::primary).expect("a context");
    let memory = match TimelineMemory::new(&theirs) {
        // There is nothing to open.
        Err(error) if cfg!(windows) => {
            assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_NOT_SUPPORTED));
            return Ok(());
        }
        memory => memory.expect("memory"),
    };
    let stream = Stream::new(&theirs, StreamOptions::new()).expect("a stream");
    let timeline = Timeline::in_memory(stream, &memory).expect("a timeline");
    // As of another process, which nobody sees: what the driver refuses to open of this one's own
    // has another error.
    let mut bytes = timeline.descriptor().expect("it is in memory").to_bytes();
    let (body, check) = bytes.split_at_mut(TimelineDescriptor::MEMORY_LEN - 4);
    body[8..12].fill(0xFF);
    check.copy_from_slice(&crc32(body).to_le_bytes());
    let handle = TimelineDescriptor::from_bytes(&bytes)?;
    // SAFETY: the memory lives until the end of the scenario.
    let opened = unsafe { ImportedTimeline::open_memory(&context, &handle) }?;
    // A wait that was submitted and reported as refused would keep the run's driver in use.
    let _ended = Ended(&opened);
    assert_eq!(opened.context(), &context);
    assert_eq!(opened.exporter_state(), ExporterState::Unknown);
    let value = timeline.signal().expect("a signal").value();
    let point = opened.point(value)?;
    consumer.wait_point(point)?;
    consumer.synchronize()?;
    point.wait()?;
    let pending = opened.point(value + 1)?;
    consumer.wait_point(pending)?;
    opened.exporter_ended()?;
    consumer.synchronize()?;
    assert_eq!(pending.query(), Err(cuda_timelines::Error::ExporterGone));
    assert_eq!(opened.exporter_state(), ExporterState::Ended);
    Ok(())
}
