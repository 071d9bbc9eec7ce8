//! Events that are created when they are first needed.

use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::capture::CaptureStatus;
use crate::ext::needs::elapsed_function;
use crate::sys::Function;
use crate::{
    Context, Device, Error, Event, EventFlags, IpcEventDescriptor, Progress, Result, StreamRef,
};

/// An event that needs no context and no driver until it is first recorded or exported.
///
/// It is `torch.cuda.Event`: [`new`](Self::new) creates nothing; the first [record](Self::record)
/// creates the event in the stream's context, where it stays for good. Without a driver object a
/// query says done, a wait is over at once, and no driver call is made.
///
/// All methods may be called from any thread; of two first records one creates the event for both.
///
/// Where a context is at hand, [`Event::new`] is simpler: mistakes show at once.
///
/// # Where an event is expected
///
/// A lazy event is not an [`EventRef`](crate::EventRef), and does not dereference to one: before
/// the first record there is no driver object that a reference could name, and each use has its own
/// meaning then. Here a wait without a driver object waits for nothing, a record creates one, and
/// an export needs to know the context. So the caller says it:
///
/// * [`create`](Self::create) gives the event and creates it where it is missing. Its result goes
///   wherever an `&EventRef` or an `Arc<Event>` goes.
/// * [`event`](Self::event) gives the event only if it is there. `None` means that there is nothing
///   to wait for.
///
/// ```
/// use cuda_events::EventFlags;
/// use cuda_events::ext::LazyEvent;
/// # use cuda_events::{Context, Device, Stream, StreamOptions};
/// # let soft = cuda_soft_driver::SoftDriver::new();
/// # let driver = soft.driver();
/// # let context = Context::primary(Device::new(driver, 0)?)?;
/// # let stream = Stream::new(&context, StreamOptions::new())?;
/// let lazy = LazyEvent::new(EventFlags::empty())?;
/// // nothing was recorded: the wait is over at once
/// stream.wait_event(lazy.create(stream.context())?)?;
/// lazy.record(&stream)?;
/// if let Some(event) = lazy.event() {
///     stream.wait_event(event)?;
/// }
/// # Ok::<(), cuda_events::Error>(())
/// ```
///
/// # In use
///
/// ```
/// use cuda_events::EventFlags;
/// use cuda_events::ext::{LazyEvent, LazyState};
/// # use cuda_events::{Context, Device, Stream, StreamOptions};
///
/// let event = LazyEvent::new(EventFlags::empty())?; // no driver was loaded yet
/// assert_eq!(event.state(), LazyState::NotCreated);
/// assert!(event.query()?.is_done());
/// # let soft = cuda_soft_driver::SoftDriver::new();
/// # let driver = soft.driver();
/// # let context = Context::primary(Device::new(driver, 0)?)?;
/// # let stream = Stream::new(&context, StreamOptions::new())?;
///
/// event.record(&stream)?;
/// event.synchronize()?;
/// assert_eq!(event.context(), Some(&context));
/// # Ok::<(), cuda_events::Error>(())
/// ```
pub struct LazyEvent {
    flags: EventFlags,
    event: OnceLock<Arc<Event>>,
    recorded: AtomicBool,
}

/// What there is of a [`LazyEvent`]; see [`LazyEvent::state`].
///
/// ```
/// use cuda_events::EventFlags;
/// use cuda_events::ext::{LazyEvent, LazyState};
/// # use cuda_events::{Context, Device, Stream, StreamOptions};
/// # let soft = cuda_soft_driver::SoftDriver::new();
/// # let driver = soft.driver();
/// # let context = Context::primary(Device::new(driver, 0)?)?;
/// # let stream = Stream::new(&context, StreamOptions::new())?;
///
/// let event = LazyEvent::new(EventFlags::INTERPROCESS)?;
/// assert_eq!(event.state(), LazyState::NotCreated);
/// // for the importer, before any work is there
/// let line = event.ipc_descriptor(&context)?.to_string();
/// assert_eq!(event.state(), LazyState::Created);
/// event.record(&stream)?;
/// assert_eq!(event.state(), LazyState::Recorded);
/// # let _ = line;
/// # Ok::<(), cuda_events::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LazyState {
    /// No driver object: it has no context and no device.
    NotCreated,
    /// A driver object that was not recorded through the lazy event: it was created by an export or
    /// [`create`](LazyEvent::create), was recorded in a capture only, or came from elsewhere.
    Created,
    /// It was recorded.
    Recorded,
}

impl LazyEvent {
    /// Chooses the flags, and creates nothing: it makes no driver call.
    ///
    /// # Errors
    ///
    /// [`Error::TimingWithInterprocess`].
    pub fn new(flags: EventFlags) -> Result<Self> {
        if flags.contains(EventFlags::TIMING | EventFlags::INTERPROCESS) {
            return Err(Error::TimingWithInterprocess);
        }
        Ok(Self { flags, event: OnceLock::new(), recorded: AtomicBool::new(false) })
    }

    /// The flags that were chosen.
    pub fn flags(&self) -> EventFlags {
        self.flags
    }

    /// Which of the three states it is in.
    ///
    /// What is done by others, to the same driver object, is not seen: a launch of a graph that
    /// records it, a record of another process, or one through [`event`](Self::event).
    pub fn state(&self) -> LazyState {
        match self.event() {
            None => LazyState::NotCreated,
            Some(_) if self.recorded.load(Ordering::Relaxed) => LazyState::Recorded,
            Some(_) => LazyState::Created,
        }
    }

    /// The event, once it is created.
    #[doc(alias = "cuda_event")]
    pub fn event(&self) -> Option<&Arc<Event>> {
        self.event.get()
    }

    /// The device that the event is of, once it is created.
    pub fn device(&self) -> Option<Device> {
        self.context().map(Context::device)
    }

    /// The context that the event is in, once it is created.
    pub fn context(&self) -> Option<&Context> {
        self.event().map(|event| event.context())
    }

    /// Creates the event in the context, unless it is created, and gives it. It may then be in
    /// another context.
    ///
    /// Driver calls: those of [`Event::new`] where it creates the event, else none.
    ///
    /// # Errors
    ///
    /// As [`Event::new`].
    pub fn create(&self, context: &Context) -> Result<&Arc<Event>> {
        if let Some(event) = self.event() {
            return Ok(event);
        }
        let event = Arc::new(Event::new(context, self.flags)?);
        // If another thread was faster, its event is the one, and this one is dropped.
        Ok(self.event.get_or_init(|| event))
    }

    /// Records the event in the stream, creating it in the stream's context if need be.
    ///
    /// A record in a capturing stream orders the streams of the capture and no more; it does not
    /// count as one.
    ///
    /// One driver call: `cuEventRecord`. Until the first record has succeeded `cuStreamIsCapturing`
    /// comes before it, and those of [`create`](Self::create) before that.
    ///
    /// # Errors
    ///
    /// [`Error::ContextMismatch`] when it was created in another context; else as [`Event::new`]
    /// and [`EventRef::record`](crate::EventRef::record).
    #[doc(alias = "cuEventRecord")]
    pub fn record(&self, stream: &StreamRef) -> Result<()> {
        self.record_by(stream, |event| event.record(stream))
    }

    /// Records the event for those outside of the graph, as [`StreamRef::record_external`] does,
    /// creating it in the stream's context if need be.
    ///
    /// Driver calls: those of [`StreamRef::record_external`]. Until the first record outside of a
    /// capture has succeeded `cuStreamIsCapturing` comes before them, and those of
    /// [`create`](Self::create) before that.
    ///
    /// # Errors
    ///
    /// As [`record`](Self::record) and [`StreamRef::record_external`].
    #[doc(alias = "external")]
    pub fn record_external(&self, stream: &StreamRef) -> Result<()> {
        self.record_by(stream, |event| stream.record_external(event))
    }

    fn record_by(
        &self,
        stream: &StreamRef,
        record: impl FnOnce(&Arc<Event>) -> Result<()>,
    ) -> Result<()> {
        let event = self.create(stream.context())?;
        if self.recorded.load(Ordering::Relaxed) {
            return record(event);
        }
        let captured = stream.capture_status()? != CaptureStatus::None;
        record(event)?;
        if !captured {
            self.recorded.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Records the event in the stream if it was never recorded, and says whether it did.
    ///
    /// Of two threads that call it at one time, both may record.
    ///
    /// Driver calls: those of [`record`](Self::record), or none.
    ///
    /// # Errors
    ///
    /// As [`record`](Self::record).
    #[doc(alias = "recordOnce")]
    pub fn record_once(&self, stream: &StreamRef) -> Result<bool> {
        if self.state() == LazyState::Recorded {
            return Ok(false);
        }
        self.record(stream).map(|()| true)
    }

    /// Makes all work that is put into the stream from now on wait for the last record; the calling
    /// thread does not wait. If there is no driver object nothing is waited for, and no driver call
    /// is made.
    ///
    /// One driver call else: `cuStreamWaitEvent`.
    ///
    /// # Errors
    ///
    /// As [`StreamRef::wait_event`].
    #[doc(alias = "cuStreamWaitEvent")]
    pub fn wait(&self, stream: &StreamRef) -> Result<()> {
        self.event().map_or(Ok(()), |event| stream.wait_event(event))
    }

    /// As [`wait`](Self::wait), and an error where [`state`](Self::state) knows of no record that
    /// could be waited for.
    ///
    /// One driver call, `cuStreamWaitEvent`, or none.
    ///
    /// # Errors
    ///
    /// [`Error::NotRecorded`]; else as [`wait`](Self::wait).
    pub fn wait_recorded(&self, stream: &StreamRef) -> Result<()> {
        if self.state() == LazyState::Recorded {
            self.wait(stream)
        } else {
            Err(Error::NotRecorded { function: Function::cuStreamWaitEvent, code: None })
        }
    }

    /// Waits for what the event stands for outside of the graph, as [`StreamRef::wait_external`]
    /// does. If there is no driver object one is created in the stream's context when the stream
    /// captures, for the graph to wait for.
    ///
    /// Driver calls: those of [`StreamRef::wait_external`]. Without a driver object
    /// `cuStreamIsCapturing` alone, but in a capture it is followed by those of
    /// [`create`](Self::create) and of [`StreamRef::wait_external`].
    ///
    /// # Errors
    ///
    /// As [`Event::new`] and [`StreamRef::wait_external`].
    #[doc(alias = "external")]
    pub fn wait_external(&self, stream: &StreamRef) -> Result<()> {
        if self.event().is_none() && stream.capture_status()? == CaptureStatus::None {
            return Ok(());
        }
        stream.wait_external(self.create(stream.context())?)
    }

    /// Whether the work that the last record stands for is done; true without a driver object,
    /// which takes no driver call.
    ///
    /// One driver call else: `cuEventQuery`.
    ///
    /// # Errors
    ///
    /// As [`EventRef::query`](crate::EventRef::query).
    #[doc(alias = "cuEventQuery")]
    pub fn query(&self) -> Result<Progress> {
        self.event().map_or(Ok(Progress::Done), |event| event.query())
    }

    /// Blocks the calling thread until the work that the last record stands for is done; it is over
    /// at once without a driver object, which takes no driver call.
    ///
    /// One driver call else: `cuEventSynchronize`.
    ///
    /// # Errors
    ///
    /// As [`EventRef::synchronize`](crate::EventRef::synchronize).
    #[doc(alias = "cuEventSynchronize")]
    pub fn synchronize(&self) -> Result<()> {
        self.event().map_or(Ok(()), |event| event.synchronize())
    }

    /// As [`synchronize`](Self::synchronize), for at most `timeout`: whether the work is done.
    ///
    /// Driver calls: `cuEventQuery`, as often as it asks; none without a driver object.
    ///
    /// # Errors
    ///
    /// As [`query`](Self::query).
    pub fn synchronize_timeout(&self, timeout: Duration) -> Result<Progress> {
        self.event().map_or(Ok(Progress::Done), |event| event.synchronize_timeout(timeout))
    }

    /// The milliseconds from this event's record to `end`'s; negative if `end` was recorded first.
    ///
    /// One driver call: `cuEventElapsedTime_v2` (CUDA 12.8), on older drivers `cuEventElapsedTime`;
    /// none without a driver object on either side.
    ///
    /// # Errors
    ///
    /// As [`EventRef::elapsed_ms`](crate::EventRef::elapsed_ms), in this order: timing, recorded,
    /// ready. Where one of the two has no driver object, [`Error::TimingDisabled`] or
    /// [`Error::NotRecorded`] without a code.
    #[doc(alias = "cuEventElapsedTime")]
    #[doc(alias = "elapsed_time")]
    pub fn elapsed_ms(&self, end: &Self) -> Result<f32> {
        self.created(end).and_then(|(start, end)| start.elapsed_ms(end))
    }

    /// The time from this event's record to `end`'s, by the same driver call as
    /// [`elapsed_ms`](Self::elapsed_ms).
    ///
    /// # Errors
    ///
    /// [`Error::EndBeforeStart`] when it is negative; else as [`elapsed_ms`](Self::elapsed_ms).
    #[doc(alias = "elapsed_time")]
    pub fn elapsed(&self, end: &Self) -> Result<Duration> {
        self.created(end).and_then(|(start, end)| start.elapsed(end))
    }

    /// Both events, or the error of elapsed time when one is not created.
    fn created<'a>(&'a self, end: &'a Self) -> Result<(&'a Event, &'a Event)> {
        if let (Some(start), Some(end)) = (self.event(), end.event()) {
            return Ok((start, end));
        }
        // Without any driver object there is no driver to be asked which call it has.
        let known = self.event().or(end.event()).map(|event| elapsed_function(event));
        let function = known.unwrap_or(Function::cuEventElapsedTime_v2);
        Err(if (self.flags & end.flags).contains(EventFlags::TIMING) {
            Error::NotRecorded { function, code: None }
        } else {
            Error::TimingDisabled { function, code: None }
        })
    }

    /// The descriptor by which another process can open the event, which is created in the context
    /// if need be. It needs no record.
    ///
    /// Driver calls: those of [`create`](Self::create) and of
    /// [`EventRef::ipc_descriptor`](crate::EventRef::ipc_descriptor).
    ///
    /// # Errors
    ///
    /// As [`Event::new`] and [`EventRef::ipc_descriptor`](crate::EventRef::ipc_descriptor).
    #[doc(alias = "cuIpcGetEventHandle")]
    #[doc(alias = "ipc_handle")]
    pub fn ipc_descriptor(&self, context: &Context) -> Result<IpcEventDescriptor> {
        if !self.flags.contains(EventFlags::INTERPROCESS) {
            return Err(Error::NotInterprocess);
        }
        self.create(context)?.ipc_descriptor()
    }
}

/// A lazy event that is created, such as one that was imported.
impl From<Event> for LazyEvent {
    fn from(event: Event) -> Self {
        let flags = event.flags();
        Self { flags, event: OnceLock::from(Arc::new(event)), recorded: AtomicBool::new(false) }
    }
}

impl fmt::Debug for LazyEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LazyEvent")
            .field("state", &self.state())
            .field("flags", &self.flags)
            .field("event", &self.event())
            .finish()
    }
}

static_assertions::assert_impl_all!(LazyEvent: Send, Sync);
// There may be no event to stand for: see "Where an event is expected".
static_assertions::assert_not_impl_any!(LazyEvent: Clone, core::ops::Deref, AsRef<crate::EventRef>);
