//! The scenarios: short programs that together use the whole safe layer.
//!
//! Each returns the first error that it meets, as a program with `?` does. What a healthy driver
//! refuses is part of them too: such errors go through [`Run::refused`], and those of drivers that
//! are too old through [`Run::optional`].

use std::cell::RefCell;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::task::{Poll, Waker};
use std::time::Duration;

use cuda_events::attributes::{MemorySyncDomain, SynchronizationPolicy};
use cuda_events::capture::{Capture, CaptureMode, RecordFlags, WaitFlags};
use cuda_events::ext::{EventPool, LazyEvent, LazyState, StreamScope, Timer, current_stream};
#[cfg(target_os = "linux")]
use cuda_events::external::{BinarySemaphore, TimelineSemaphore};
use cuda_events::ipc::DescriptorError;
use cuda_events::mem_ops::{BarrierScope, MemOp, WaitCondition, WaitValueFlags, WriteValueFlags};
use cuda_events::sys::{
    CUcontext, CUdevResourceType, CUdevice_attribute, CUdeviceptr, CUresult, CUstreamAttrID,
    Function,
};
use cuda_events::{
    Context, Device, Driver, Error, Event, EventFlags, EventRef, ForeignStream, IpcEventDescriptor,
    Result, Stream, StreamOptions, StreamRef, Uuid, Version,
};
use cuda_timelines::{Completion, CudaEventExt, CudaStreamExt};

#[cfg(target_os = "linux")]
use cuda_soft_driver::{ExternalSemaphore, SemaphoreKind};

use crate::common::futures::block_on;
use crate::graphs_and_ipc::{
    capture_of_default_stream, captures, dropped_capture, exports, external, graph_close, graphs,
    imports, other_device,
};
use crate::timelines::{
    cuda, graph_timelines, memory_timelines, opened_timelines, sealed_timelines, shared_timelines,
    timelines,
};

/// What a scenario has to work with.
pub struct Run {
    pub driver: Driver,
    /// A context of somebody else's, on device 0.
    pub foreign: CUcontext,
    /// 64 bytes of device memory, all 0.
    pub memory: CUdeviceptr,
    /// Of an event of another process.
    pub import: IpcEventDescriptor,
    /// Held by every closure that the scenario gives away.
    pub token: Arc<()>,
    /// The errors that the scenario took for what a healthy driver answers.
    pub refusals: RefCell<Vec<Error>>,
    /// The `Unsupported` that it met.
    pub unsupported: RefCell<Vec<Error>>,
}

impl Run {
    /// A result that a healthy driver refuses with such an error; anything but that is passed on.
    pub fn refused<T>(&self, result: Result<T>, such: impl FnOnce(&Error) -> bool) -> Result<()> {
        match result {
            Ok(_) => Ok(()),
            Err(error) if such(&error) => {
                self.refusals.borrow_mut().push(error);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// A refusal by the driver with this code, which depends on the version or the device.
    pub fn maybe<T>(&self, result: Result<T>, code: CUresult) -> Result<()> {
        self.refused(result, |error| error.code() == Some(code))
    }

    /// None from a driver that is too old.
    pub fn optional<T>(&self, result: Result<T>) -> Result<Option<T>> {
        match result {
            Err(error @ Error::Unsupported { .. }) => {
                self.unsupported.borrow_mut().push(error);
                Ok(None)
            }
            result => result.map(Some),
        }
    }

    pub fn context(&self) -> Result<Context> {
        Context::primary(Device::new(self.driver, 0)?)
    }

    pub fn stream(&self) -> Result<(Context, Stream)> {
        let context = self.context()?;
        let stream = Stream::new(&context, StreamOptions::new())?;
        Ok((context, stream))
    }

    pub fn capture<'a>(&self, stream: &'a StreamRef, mode: CaptureMode) -> Result<Capture<'a>> {
        // SAFETY: no other thread knows what the scenarios capture.
        unsafe { Capture::begin(stream, mode) }
    }

    /// Holds the stream until the result is dropped.
    pub fn hold(&self, stream: &StreamRef) -> Result<std::sync::mpsc::Sender<()>> {
        let (release, held) = channel::<()>();
        let token = self.token.clone();
        stream.launch_host_function(move || {
            let _ = held.recv();
            drop(token);
        })?;
        Ok(release)
    }
}

pub struct Scenario {
    pub name: &'static str,
    pub run: fn(&Run) -> Result<()>,
    /// The destroying calls that are made by `close` only, so that their failure must be told.
    pub closes: &'static [Function],
    /// Other calls whose failure is not told here, because nobody is there to be told or because it
    /// changes nothing.
    pub silent: &'static [Function],
}

const fn plain(name: &'static str, run: fn(&Run) -> Result<()>) -> Scenario {
    Scenario { name, run, closes: &[], silent: &[] }
}

/// The mode is exchanged round the end of an executable graph. Without it the graph ends all the same.
const fn drops_exec(name: &'static str, run: fn(&Run) -> Result<()>) -> Scenario {
    Scenario { silent: &[Function::cuThreadExchangeStreamCaptureMode], ..plain(name, run) }
}

/// Of timelines in device memory. What is dropped tells nobody, and neither does the thread, which
/// tries again what the host's word of the maker's end could not do.
const MEMORY: &[Function] = &[
    Function::cuThreadExchangeStreamCaptureMode,
    Function::cuCtxGetCurrent,
    Function::cuCtxPushCurrent_v2,
    Function::cuCtxPopCurrent_v2,
    Function::cuStreamQuery,
    Function::cuStreamSynchronize,
    Function::cuStreamIsCapturing,
    Function::cuEventRecord,
    Function::cuEventSynchronize,
    Function::cuMemsetD8Async,
];

pub const SCENARIOS: &[Scenario] = &[
    plain("devices", devices),
    // How many devices there are is asked for the message only.
    Scenario {
        name: "no_device",
        run: no_device,
        closes: &[],
        silent: &[Function::cuDeviceGetCount],
    },
    plain("contexts", contexts),
    plain("green_contexts", green_contexts),
    // A guard that is dropped has nobody to tell.
    Scenario { name: "guards", run: guards, closes: &[], silent: &[Function::cuCtxPopCurrent_v2] },
    plain("streams", streams),
    // What the work itself refuses comes before what restoring the stack does.
    Scenario {
        name: "own_refusals",
        run: own_refusals,
        closes: &[],
        silent: &[Function::cuCtxPopCurrent_v2],
    },
    Scenario {
        name: "stream_close",
        run: stream_close,
        closes: &[Function::cuStreamDestroy_v2],
        silent: &[],
    },
    plain("default_streams", default_streams),
    plain("attributes", attributes),
    plain("foreign_streams", foreign_streams),
    plain("current_streams", current_streams),
    plain("events", events),
    Scenario {
        name: "event_close",
        run: event_close,
        closes: &[Function::cuEventDestroy_v2],
        silent: &[],
    },
    plain("order", order),
    plain("pending", pending),
    plain("elapsed", elapsed),
    plain("context_events", context_events),
    plain("host_functions", host_functions),
    plain("values", values),
    // The guards round an import and a destruction have nobody to tell.
    Scenario {
        name: "external_semaphores",
        run: external_semaphores,
        closes: &[Function::cuDestroyExternalSemaphore],
        silent: &[Function::cuCtxPopCurrent_v2, Function::cuThreadExchangeStreamCaptureMode],
    },
    plain("lazy_events", lazy_events),
    plain("timers", timers),
    plain("pools", pools),
    // The mode is exchanged round a query so as not to disturb others; without it the query is made
    // all the same.
    Scenario {
        name: "completions",
        run: completions,
        closes: &[],
        silent: &[Function::cuThreadExchangeStreamCaptureMode],
    },
    // As for the completions, and round a registration of memory.
    Scenario {
        name: "timelines",
        run: |run| cuda(timelines(run)),
        closes: &[],
        silent: &[Function::cuThreadExchangeStreamCaptureMode],
    },
    Scenario {
        name: "graph_timelines",
        run: |run| cuda(graph_timelines(run)),
        closes: &[],
        silent: &[Function::cuThreadExchangeStreamCaptureMode],
    },
    Scenario {
        name: "shared_timelines",
        run: |run| cuda(shared_timelines(run)),
        closes: &[],
        silent: &[
            Function::cuThreadExchangeStreamCaptureMode,
            // The drop gives its last writes to the stream.
            Function::cuStreamIsCapturing,
            Function::cuStreamWriteValue64,
            Function::cuStreamWriteValue64_v2,
        ],
    },
    Scenario {
        name: "sealed_timelines",
        run: |run| cuda(sealed_timelines(run)),
        closes: &[],
        silent: &[Function::cuThreadExchangeStreamCaptureMode],
    },
    Scenario {
        name: "memory_timelines",
        run: |run| cuda(memory_timelines(run)),
        closes: &[],
        silent: MEMORY,
    },
    Scenario {
        name: "opened_timelines",
        run: |run| cuda(opened_timelines(run)),
        closes: &[],
        silent: MEMORY,
    },
    plain("captures", captures),
    // The guard's end has nobody to tell, of a stream for which the context must be made current
    // either.
    Scenario {
        name: "dropped_capture",
        run: dropped_capture,
        closes: &[],
        silent: &[
            Function::cuThreadExchangeStreamCaptureMode,
            Function::cuCtxGetCurrent,
            Function::cuCtxPushCurrent_v2,
            Function::cuStreamEndCapture,
            Function::cuCtxPopCurrent_v2,
        ],
    },
    drops_exec("external", external),
    drops_exec("capture_of_default_stream", capture_of_default_stream),
    drops_exec("graphs", graphs),
    Scenario {
        name: "graph_close",
        run: graph_close,
        closes: &[Function::cuGraphDestroy, Function::cuGraphExecDestroy],
        silent: &[Function::cuThreadExchangeStreamCaptureMode],
    },
    plain("exports", exports),
    // Which device it is of is asked for the message only.
    Scenario {
        name: "other_device",
        run: other_device,
        closes: &[],
        silent: &[
            Function::cuDeviceGetCount,
            Function::cuDeviceGetUuid,
            Function::cuDeviceGetUuid_v2,
        ],
    },
    plain("imports", imports),
];

fn devices(run: &Run) -> Result<()> {
    let driver = run.driver;
    assert!(!driver.is_per_thread_default_stream() || driver.library().is_none());
    let count = Device::count(driver)?;
    assert_eq!(Device::all(driver)?.len(), count as usize);
    for device in Device::all(driver)? {
        assert!(!device.name()?.is_empty());
        let uuid = device.uuid()?;
        assert_eq!(Uuid::from_bytes(*uuid.as_bytes()), uuid);
        assert!(device.total_memory()? > 0);
        assert_eq!(device.driver(), driver);
        let device = Device::new(driver, device.ordinal())?;
        assert!(
            device
                .attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS)?
                >= 0
        );
        assert_eq!(device.as_raw().unsigned_abs(), device.ordinal());
    }
    assert!(driver.version() >= Version::new(11, 0));
    Ok(())
}

fn no_device(run: &Run) -> Result<()> {
    let none = |error: &Error| error.code() == Some(CUresult::CUDA_ERROR_INVALID_DEVICE);
    run.refused(Device::new(run.driver, 99), none)?;
    run.refused(Device::new(run.driver, u32::MAX), none)
}

fn contexts(run: &Run) -> Result<()> {
    let context = run.context()?;
    assert_eq!(context.driver(), run.driver);
    assert_eq!(context.device().ordinal(), 0);
    context.synchronize()?;
    let range = context.stream_priority_range()?;
    assert!(range.contains(range.least));
    // SAFETY: the harness keeps the context.
    let foreign = unsafe { Context::from_raw(run.driver, run.foreign) }?;
    assert_eq!(foreign.as_raw(), run.foreign);
    assert_eq!(foreign.device(), context.device());
    let foreign = foreign.leak();
    foreign.synchronize()?;
    foreign.abandon();
    // SAFETY: what is current is the harness's or `context`.
    let before = unsafe { Context::current(run.driver) }?;
    assert_ne!(before.as_ref(), Some(&context));
    Ok(())
}

fn green_contexts(run: &Run) -> Result<()> {
    let device = Device::new(run.driver, 0)?;
    // SAFETY: the harness keeps the context.
    let foreign = unsafe { Context::from_raw(run.driver, run.foreign) }?;
    assert!(!foreign.is_green()?);
    let Some(all) = run.optional(device.sm_resource())? else { return Ok(()) };
    assert!(all.device() == device && all.count() >= all.min_partition_size());
    assert!(all.count() >= all.coscheduled_alignment());
    assert_eq!(all.as_raw().type_, CUdevResourceType::CU_DEV_RESOURCE_TYPE_SM);
    let none = |error: &Error| error.code() == Some(CUresult::CUDA_ERROR_INVALID_VALUE);
    run.refused(all.split_by_count(0, 1), none)?;
    let split = all.split_by_count(2, 16)?;
    let parts: Vec<_> = split.groups.iter().collect();
    // SAFETY: this thread alone uses the context.
    let green = unsafe { Context::green(device, &parts) }?;
    assert!(green.is_green()?);
    assert_eq!(green.sm_resource()?.count(), parts.iter().map(|part| part.count()).sum::<u32>());
    // SAFETY: the context lives as long as what is named here.
    let named = unsafe { Context::from_raw(run.driver, green.as_raw()) }?;
    assert!(named.is_green()?);
    let stream = Stream::new(&green, StreamOptions::new())?;
    stream.record_event(EventFlags::empty())?.synchronize()?;
    // SAFETY: this thread alone would use the context.
    run.refused(unsafe { Context::green(device, &[]) }, |error| {
        matches!(error, Error::ResourceMismatch { .. })
    })
}

#[cfg(target_os = "linux")]
fn external_semaphores(run: &Run) -> Result<()> {
    let (context, stream) = run.stream()?;
    let device_uuid = context.device().uuid()?;
    let [their_timeline, their_binary] = [SemaphoreKind::Timeline, SemaphoreKind::Binary]
        .map(|kind| ExternalSemaphore::new(kind).expect("a semaphore"));
    let descriptor = |semaphore: &ExternalSemaphore| semaphore.descriptor().expect("a descriptor");
    let fd = descriptor(&their_binary);
    // SAFETY: of this kind, for the one import, here and below.
    let binary = unsafe { BinarySemaphore::import_fd(&context, fd, device_uuid) };
    let binary = match binary {
        Ok(binary) => binary,
        Err(refused) => {
            let stored = refused.error().clone();
            let (error, fd) = refused.into_parts();
            assert_eq!(stored, error);
            // It is still of the scenario.
            drop(fd);
            return Err(error);
        }
    };
    stream.signal_external_binary(&binary)?;
    stream.wait_external_binary(&binary)?;
    let fd = std::fs::File::open("/dev/null").expect("it is there").into();
    // SAFETY: the software driver sees that it is none.
    let none = unsafe { TimelineSemaphore::import_fd(&context, fd, device_uuid) };
    run.refused(
        none.map_err(|refused| (refused.error().clone(), refused.into_handle()).0),
        |error| matches!(error, Error::NotASemaphore { .. } | Error::Unsupported { .. }),
    )?;
    let fd = descriptor(&their_timeline);
    // SAFETY: as above.
    let timeline = unsafe { TimelineSemaphore::import_fd(&context, fd, device_uuid) };
    if let Some(timeline) = run.optional(timeline.map_err(Error::from))? {
        stream.signal_external(&timeline, 1)?;
        stream.wait_external_semaphore(&timeline, 1)?;
        let points = [timeline.at(2), binary.once()];
        stream.signal_externals(&points)?;
        stream.wait_externals(&points)?;
        stream.synchronize()?;
        assert_eq!((timeline.context(), timeline.as_raw()), (&context, timeline.as_raw()));
        // SAFETY: it was given up just now.
        let timeline = unsafe { TimelineSemaphore::from_raw(&context, timeline.into_raw()) };
        timeline.close()?;
    }
    stream.synchronize()?;
    // A graph keeps the semaphore of its node, whatever goes wrong.
    let capture = run.capture(&stream, CaptureMode::ThreadLocal)?;
    stream.signal_external_binary(&binary)?;
    stream.wait_external_binary(&binary)?;
    drop(capture.end()?.instantiate()?);
    assert_eq!((binary.context(), binary.as_raw()), (&context, binary.as_raw()));
    // SAFETY: as above.
    let binary = unsafe { BinarySemaphore::from_raw(&context, binary.into_raw()) };
    binary.close()
}

/// The software driver has them on Linux alone.
#[cfg(not(target_os = "linux"))]
fn external_semaphores(_run: &Run) -> Result<()> {
    Ok(())
}

fn guards(run: &Run) -> Result<()> {
    let context = run.context()?;
    // SAFETY: the harness keeps the context.
    let foreign = unsafe { Context::from_raw(run.driver, run.foreign) }?;
    let outer = context.make_current()?;
    {
        let _inner = foreign.make_current()?;
        // SAFETY: the harness keeps the context.
        assert_eq!(unsafe { Context::current(run.driver) }?, Some(foreign.clone()));
        // Here it is current already, there it is not.
        Event::new(&foreign, EventFlags::empty())?;
        Event::new(&context, EventFlags::empty())?;
    }
    // SAFETY: a default stream's handle, whose context is the one that is current; it lives on.
    let default = unsafe { StreamRef::from_foreign(run.driver, null_mut()) }?;
    assert_eq!(default.context(), &context);
    drop(outer);
    let _ = default.query()?;
    Ok(())
}

fn streams(run: &Run) -> Result<()> {
    let context = run.context()?;
    let range = context.stream_priority_range()?;
    let options = StreamOptions::new().blocking(true).priority(range.greatest);
    let stream = Stream::new(&context, options)?;
    assert_eq!(stream.priority()?, range.greatest);
    assert!(stream.is_blocking()?);
    run.optional(stream.id())?;
    assert_eq!((stream.context(), stream.device()), (&context, context.device()));
    assert_eq!(stream.cuda_stream(), (0, stream.as_raw().addr()));
    let _ = stream.query()?;
    stream.synchronize()?;
    let _ = stream.synchronize_timeout(Duration::ZERO)?;
    let clamped = Stream::new(&context, StreamOptions::new().priority_clamped(1000))?;
    assert_eq!(clamped.priority()?, range.least);
    Ok(())
}

fn own_refusals(run: &Run) -> Result<()> {
    let context = run.context()?;
    let out = Stream::new(&context, StreamOptions::new().priority(1000));
    run.refused(out, |error| matches!(error, Error::PriorityOutOfRange { .. }))?;
    let descriptor = Event::new(&context, EventFlags::INTERPROCESS)?.ipc_descriptor()?;
    // SAFETY: this process refuses its own.
    let own = unsafe { Event::from_ipc_descriptor(&context, &descriptor) };
    run.refused(own, |error| {
        matches!(error, Error::Descriptor(DescriptorError::SameProcess { .. }))
    })
}

fn stream_close(run: &Run) -> Result<()> {
    let (context, stream) = run.stream()?;
    let raw = stream.into_raw();
    // SAFETY: a stream of this context, which lives until the owner below closes it.
    let borrowed = unsafe { StreamRef::from_raw(&context, raw) };
    let queried = borrowed.query();
    drop(borrowed);
    // SAFETY: it was given up above.
    let stream = unsafe { Stream::from_raw(&context, raw) };
    // So that `close` is what destroys it whatever happens.
    let closed = stream.close();
    let _ = queried?;
    closed
}

fn default_streams(run: &Run) -> Result<()> {
    let context = run.context()?;
    let (null, legacy) = (StreamRef::default_stream(&context), StreamRef::legacy_default(&context));
    let own = StreamRef::per_thread_default(&context);
    assert_ne!(legacy, own);
    for stream in [&null, &legacy, &own] {
        let _ = stream.query()?;
        let event = stream.record_event(EventFlags::empty())?;
        stream.wait_event(&event)?;
        stream.synchronize()?;
        stream.capture_status()?;
    }
    legacy.priority()?;
    legacy.is_blocking()?;
    run.optional(legacy.id())?;
    own.wait_stream(&null)?;
    let token = run.token.clone();
    own.launch_host_function(move || drop(token))?;
    own.synchronize()
}

fn attributes(run: &Run) -> Result<()> {
    let (context, stream) = run.stream()?;
    let id = CUstreamAttrID::CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY;
    // The policy of a new stream, which is none that could be set.
    let Some(_) = run.optional(stream.attribute(id))? else { return Ok(()) };
    stream.set_synchronization_policy(SynchronizationPolicy::from_raw(
        SynchronizationPolicy::YIELD.as_raw(),
    ))?;
    assert_eq!(stream.synchronization_policy()?, SynchronizationPolicy::YIELD);
    let value = stream.attribute(id)?;
    // SAFETY: a value that this driver gave for this attribute.
    unsafe { stream.set_attribute(id, &value) }?;
    let least = context.stream_priority_range()?.least;
    run.maybe(stream.set_priority(least), CUresult::CUDA_ERROR_INVALID_VALUE)?;
    run.refused(stream.set_priority(1000), |error| {
        matches!(error, Error::PriorityOutOfRange { .. })
    })?;
    let remote = MemorySyncDomain::from_raw(MemorySyncDomain::REMOTE.as_raw());
    run.maybe(stream.set_memory_sync_domain(remote), CUresult::CUDA_ERROR_INVALID_VALUE)?;
    run.maybe(stream.memory_sync_domain(), CUresult::CUDA_ERROR_INVALID_VALUE)?;
    let map = stream.memory_sync_domain_map();
    if let Ok(map) = map {
        run.maybe(stream.set_memory_sync_domain_map(map), CUresult::CUDA_ERROR_INVALID_VALUE)?;
    }
    run.maybe(map, CUresult::CUDA_ERROR_INVALID_VALUE)?;
    let other = Stream::new(&context, StreamOptions::new())?;
    other.copy_attributes_from(&stream)?;
    StreamRef::legacy_default(&context).synchronization_policy()?;
    Ok(())
}

fn foreign_streams(run: &Run) -> Result<()> {
    let (context, stream) = run.stream()?;
    let stream = Arc::new(stream);
    // SAFETY: a live stream, whose context lives too.
    let named = unsafe { StreamRef::from_foreign(run.driver, stream.as_raw()) }?;
    assert_eq!(named.context(), &context);
    // SAFETY: as above.
    let foreign = unsafe { ForeignStream::new(&context, stream.as_raw(), stream.clone()) }?;
    named.wait_stream(&foreign)?;
    foreign.synchronize()?;
    assert_eq!(foreign.owner().as_raw(), stream.as_raw());
    // SAFETY: the harness keeps the context.
    let elsewhere = unsafe { Context::from_raw_with_owner(run.driver, run.foreign, ()) }?;
    // SAFETY: a live stream.
    let refused = unsafe { ForeignStream::new(&elsewhere, stream.as_raw(), ()) };
    run.refused(refused.map(drop), |error| matches!(error, Error::ContextMismatch { .. }))?;
    drop((named, stream));
    drop(foreign.into_owner());
    Ok(())
}

fn current_streams(run: &Run) -> Result<()> {
    let (context, stream) = run.stream()?;
    let stream = Arc::new(stream);
    let scope = StreamScope::enter(stream.clone());
    let current = current_stream(&context);
    assert_eq!(*current, **stream);
    current.record_event(EventFlags::empty())?;
    drop(scope);
    current_stream(&context).synchronize()
}

fn events(run: &Run) -> Result<()> {
    let (context, stream) = run.stream()?;
    let event = Event::new(&context, EventFlags::BLOCKING_SYNC)?;
    assert!(event.flags() == EventFlags::BLOCKING_SYNC && !event.is_imported());
    assert_eq!((event.context(), event.device()), (&context, context.device()));
    let _ = event.query()?;
    event.record(&stream)?;
    event.synchronize()?;
    let _ = event.query()?;
    let _ = event.synchronize_timeout(Duration::ZERO)?;
    // SAFETY: no flags.
    unsafe { event.record_with(&stream, RecordFlags::empty()) }?;
    // SAFETY: outside of a capture this is an error.
    let external = unsafe { event.record_with(&stream, RecordFlags::EXTERNAL) };
    if let Some(error) = run.optional(external).err() {
        run.maybe::<()>(Err(error), CUresult::CUDA_ERROR_ILLEGAL_STATE)?;
    }
    let both = Event::new(&context, EventFlags::TIMING | EventFlags::INTERPROCESS);
    run.refused(both, |error| *error == Error::TimingWithInterprocess)?;
    // SAFETY: the harness keeps the context.
    let foreign = unsafe { Context::from_raw(run.driver, run.foreign) }?;
    let elsewhere = Event::new(&foreign, EventFlags::empty())?;
    run.refused(elsewhere.record(&stream), |error| matches!(error, Error::ContextMismatch { .. }))
}

fn event_close(run: &Run) -> Result<()> {
    let context = run.context()?;
    let raw = Event::new(&context, EventFlags::empty())?.into_raw();
    // SAFETY: an event of this context, which lives until the owner below closes it.
    let borrowed = unsafe { EventRef::from_raw(&context, raw, EventFlags::empty()) };
    assert_eq!(borrowed.as_raw(), raw);
    drop(borrowed);
    // SAFETY: it was given up above.
    unsafe { Event::from_raw(&context, raw, EventFlags::empty()) }.close()
}

fn order(run: &Run) -> Result<()> {
    let (context, stream) = run.stream()?;
    let other = Stream::new(&context, StreamOptions::new().blocking(true))?;
    let event = stream.record_event(EventFlags::empty())?;
    other.wait_event(&event)?;
    // SAFETY: no flags.
    unsafe { other.wait_event_with(&event, WaitFlags::empty()) }?;
    // SAFETY: outside of a capture this is an error.
    let external = unsafe { other.wait_event_with(&event, WaitFlags::EXTERNAL) };
    run.maybe(external, CUresult::CUDA_ERROR_ILLEGAL_STATE)?;
    stream.wait_stream(&other)?;
    stream.wait_stream(&other)?;
    // SAFETY: the harness keeps the context.
    let foreign = unsafe { Context::from_raw(run.driver, run.foreign) }?;
    let apart = Event::new(&foreign, EventFlags::INTERPROCESS)?;
    run.refused(stream.wait_event(&apart), |error| matches!(error, Error::ContextMismatch { .. }))?;
    stream.synchronize()
}

fn pending(run: &Run) -> Result<()> {
    let (context, stream) = run.stream()?;
    let held = run.hold(&stream)?;
    assert!(stream.query()?.is_pending());
    assert!(stream.synchronize_timeout(Duration::ZERO)?.is_pending());
    let event = stream.record_event(EventFlags::empty())?;
    assert!(event.query()?.is_pending());
    assert!(event.synchronize_timeout(Duration::from_micros(100))?.is_pending());
    drop(held);
    event.synchronize()?;
    context.synchronize()
}

fn elapsed(run: &Run) -> Result<()> {
    let (context, stream) = run.stream()?;
    let start = Event::new(&context, EventFlags::TIMING)?;
    let end = Event::new(&context, EventFlags::TIMING)?;
    run.refused(start.elapsed_ms(&end), |error| matches!(error, Error::NotRecorded { .. }))?;
    start.record(&stream)?;
    end.record(&stream)?;
    end.synchronize()?;
    start.elapsed_ms(&end)?;
    start.elapsed(&end)?;
    let untimed = stream.record_event(EventFlags::empty())?;
    run.refused(start.elapsed_ms(&untimed), |error| matches!(error, Error::TimingDisabled { .. }))?;
    let held = run.hold(&stream)?;
    end.record(&stream)?;
    run.refused(start.elapsed_ms(&end), |error| matches!(error, Error::NotReady { .. }))?;
    drop(held);
    stream.synchronize()
}

fn context_events(run: &Run) -> Result<()> {
    let (context, stream) = run.stream()?;
    let event = Event::new(&context, EventFlags::empty())?;
    run.optional(event.record_context(&context))?;
    run.optional(context.wait_event(&event))?;
    stream.record_event(EventFlags::empty())?.synchronize()
}

fn host_functions(run: &Run) -> Result<()> {
    extern "C" fn raw(_: *mut c_void) {}

    let (_context, stream) = run.stream()?;
    let (sender, receiver) = channel();
    let token = run.token.clone();
    stream.launch_host_function({
        let sender = sender.clone();
        move || drop((sender.send(()), token))
    })?;
    let token = run.token.clone();
    stream.add_callback(move |status| drop((sender.send(()), status, token)))?;
    // SAFETY: the function does nothing.
    unsafe { stream.launch_host_function_raw(raw, null_mut()) }?;
    stream.synchronize()?;
    assert_eq!(receiver.try_iter().count(), 2);
    let capture = run.capture(&stream, CaptureMode::Relaxed)?;
    let refused = stream.launch_host_function(|| ());
    run.refused(refused, |error| matches!(error, Error::ClosureInCapture { .. }))?;
    capture.end()?;
    Ok(())
}

fn values(run: &Run) -> Result<()> {
    const EMPTY: WaitValueFlags = WaitValueFlags::empty();
    const PLAIN: WriteValueFlags = WriteValueFlags::empty();
    let (_context, stream) = run.stream()?;
    let (first, second) = (run.memory, run.memory + 8);
    let unsupported = CUresult::CUDA_ERROR_NOT_SUPPORTED;
    // SAFETY: the memory is the harness's, which frees it last.
    unsafe {
        // All waits are over at once, so that nothing hangs on a write that was not done.
        run.maybe(stream.write_value32(first, 0, PLAIN), unsupported)?;
        run.maybe(
            stream.wait_value32(first, 0, WaitCondition::GreaterOrEqual, EMPTY),
            unsupported,
        )?;
        run.maybe(stream.write_value64(second, 0, PLAIN), unsupported)?;
        run.maybe(stream.wait_value64(second, 0, WaitCondition::Equal, EMPTY), unsupported)?;
    }
    let mut operations = [
        MemOp::write_value32(first, 0, PLAIN),
        MemOp::wait_value32(first, 0, WaitCondition::Equal, EMPTY),
        MemOp::write_value64(second, 3, PLAIN),
        MemOp::wait_value64(second, 1, WaitCondition::And, EMPTY),
    ];
    // SAFETY: as above.
    run.maybe(unsafe { stream.batch_mem_op(&mut operations) }, unsupported)?;
    for operation in [MemOp::barrier(BarrierScope::Device), MemOp::flush_remote_writes()] {
        // SAFETY: neither has an address.
        let batch = unsafe { stream.batch_mem_op(&mut [operation]) };
        run.refused(batch, |error| {
            matches!(
                error.code(),
                Some(CUresult::CUDA_ERROR_NOT_SUPPORTED | CUresult::CUDA_ERROR_INVALID_VALUE)
            )
        })?;
        // SAFETY: every operation begins with its kind.
        assert_ne!(unsafe { operation.as_raw().operation.0 }, 0);
    }
    stream.synchronize()
}

fn lazy_events(run: &Run) -> Result<()> {
    let (context, stream) = run.stream()?;
    let (start, end) = (LazyEvent::new(EventFlags::TIMING)?, LazyEvent::new(EventFlags::TIMING)?);
    run.refused(start.elapsed(&end), |error| matches!(error, Error::NotRecorded { .. }))?;
    run.refused(start.wait_recorded(&stream), |error| {
        matches!(error, Error::NotRecorded { code: None, .. })
    })?;
    assert!(start.query()?.is_done() && start.event().is_none());
    assert!(start.context().is_none() && start.device().is_none());
    start.wait(&stream)?;
    start.wait_external(&stream)?;
    assert!(start.record_once(&stream)?);
    assert!(!start.record_once(&stream)?);
    assert_eq!((start.state(), start.flags()), (LazyState::Recorded, EventFlags::TIMING));
    end.create(&context)?;
    end.record(&stream)?;
    end.record_external(&stream)?;
    end.wait(&stream)?;
    end.wait_recorded(&stream)?;
    end.wait_external(&stream)?;
    end.synchronize()?;
    let _ = end.query()?;
    let _ = end.synchronize_timeout(Duration::ZERO)?;
    start.elapsed(&end)?;
    start.elapsed_ms(&end)?;
    let shared = LazyEvent::new(EventFlags::INTERPROCESS)?;
    shared.ipc_descriptor(&context)?;
    run.refused(end.ipc_descriptor(&context), |error| *error == Error::NotInterprocess)
}

fn timers(run: &Run) -> Result<()> {
    let (_context, stream) = run.stream()?;
    let timing = Timer::start(&stream)?.stop()?;
    let _ = timing.query()?;
    timing.synchronize()?;
    timing.elapsed()?;
    timing.elapsed_ms()?;
    let _ = timing.start().query()?;
    let _ = timing.end().query()?;
    drop(Timer::start(&stream)?);
    Ok(())
}

fn pools(run: &Run) -> Result<()> {
    let (context, stream) = run.stream()?;
    let pool = EventPool::new(&context, EventFlags::TIMING)?;
    assert_eq!((pool.context(), pool.flags()), (&context, EventFlags::TIMING));
    pool.reserve(2)?;
    assert_eq!(pool.available(), 2);
    let events = [pool.take()?, pool.take()?, pool.take()?];
    let [first, second, third] = &events;
    first.record(&stream)?;
    first.synchronize()?;
    second.record(&stream)?;
    let _ = second.query()?;
    let _ = third.synchronize_timeout(Duration::ZERO)?;
    let [first, ..] = events;
    first.discard();
    assert!(pool.available() <= 2);
    pool.clear();
    pool.record_event(&stream)?.synchronize()?;
    let outlives = pool.take()?;
    drop(pool);
    outlives.record(&stream)?;
    run.refused(EventPool::new(&context, EventFlags::INTERPROCESS), |error| {
        *error == Error::InterprocessPool
    })
}

fn completions(run: &Run) -> Result<()> {
    let (context, stream) = run.stream()?;
    block_on(stream.completion()?)?;
    block_on(stream.record_event(EventFlags::empty())?.completion())?;
    let pool = EventPool::new(&context, EventFlags::empty())?;
    let event = pool.take()?;
    event.record(&stream)?;
    block_on(event.completion())?;
    let held = run.hold(&stream)?;
    let event = Arc::new(stream.record_event(EventFlags::empty())?);
    let mut dropped = Completion::new(event.clone());
    let polled =
        std::pin::Pin::new(&mut dropped).poll(&mut std::task::Context::from_waker(Waker::noop()));
    drop(dropped);
    if let Poll::Ready(result) = polled {
        result?;
    }
    let pending = Completion::new(event.clone());
    drop(held);
    block_on(pending)?;
    let _ = event.query()?;
    Ok(())
}
