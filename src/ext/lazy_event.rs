//! Events that are created when they are first needed.

use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::capture::CaptureStatus;
use crate::sys::Function;
use crate::{
    Context, Device, Error, Event, EventFlags, IpcEventDescriptor, Progress, Result, StreamRef,
};

#[cfg(doc)]
use crate::sys::calls::*;

/// An event that needs no context and no driver until it is first recorded or exported.
///
/// It works like `torch.cuda.Event`. [`new`](Self::new) creates no driver object. The first
/// [record](Self::record) creates the event in the stream's context, where it stays. Without a
/// driver object a query returns done, a wait ends at once, and neither makes a driver call.
///
/// All methods may be called from any thread. If two threads record first at the same time, one of
/// them creates the event for both.
///
/// If you have a context, prefer [`Event::new`]: it reports mistakes earlier.
///
/// # Where an event is expected
///
/// A lazy event does not dereference to an [`EventRef`](crate::EventRef): before the first record
/// there is no driver object. There are two ways to get the event:
///
/// * [`create`](Self::create) returns the event, and creates it if necessary. Pass the result
///   wherever an `&EventRef` or an `Arc<Event>` is expected.
/// * [`event`](Self::event) returns the event if it was created. If it returns `None`, there is
///   nothing to wait for.
///
/// ```
/// use cuda_events::ext::LazyEvent;
/// use cuda_events::{Context, Device, EventFlags, Stream, StreamOptions};
///
/// # use cuda_soft_driver::examples::Driver;
/// let driver = Driver::load()?;
/// let context = Context::primary(Device::new(driver, 0)?)?;
/// let stream = Stream::new(&context, StreamOptions::new())?;
/// let lazy = LazyEvent::new(EventFlags::empty())?;
/// // nothing was recorded: the wait ends at once
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
/// use std::time::Duration;
///
/// use cuda_events::ext::{LazyEvent, LazyState};
/// use cuda_events::{Context, Device, EventFlags, Stream, StreamOptions};
///
/// let event = LazyEvent::new(EventFlags::empty())?; // no driver is loaded yet
/// assert_eq!(event.state(), LazyState::NotCreated);
/// assert!(event.query()?.is_done());
/// # use cuda_soft_driver::examples::Driver;
/// let driver = Driver::load()?;
/// let context = Context::primary(Device::new(driver, 0)?)?;
/// let stream = Stream::new(&context, StreamOptions::new())?;
///
/// event.record(&stream)?;
/// let other = Stream::new(&context, StreamOptions::new())?;
/// event.wait(&other)?; // `other` waits; the thread does not
/// assert!(event.synchronize_timeout(Duration::from_secs(10))?.is_done());
/// event.synchronize()?; // without a limit
/// assert_eq!(event.context(), Some(&context));
/// assert_eq!((event.device(), event.flags()), (Some(context.device()), EventFlags::empty()));
/// # Ok::<(), cuda_events::Error>(())
/// ```
#[derive(Debug)]
pub struct LazyEvent {
    flags: EventFlags,
    event: OnceLock<Arc<Event>>,
    recorded: AtomicBool,
}

/// The state of a [`LazyEvent`], from [`LazyEvent::state`].
///
/// ```
/// use cuda_events::ext::{LazyEvent, LazyState};
/// use cuda_events::{Context, Device, EventFlags, Stream, StreamOptions};
///
/// # use cuda_soft_driver::examples::Driver;
/// let driver = Driver::load()?;
/// let context = Context::primary(Device::new(driver, 0)?)?;
/// let stream = Stream::new(&context, StreamOptions::new())?;
///
/// let event = LazyEvent::new(EventFlags::INTERPROCESS)?;
/// assert_eq!(event.state(), LazyState::NotCreated);
/// // for the importer, before any work is submitted
/// let line = event.ipc_descriptor(&context)?.to_string();
/// assert_eq!(event.state(), LazyState::Created);
/// event.record(&stream)?;
/// assert_eq!(event.state(), LazyState::Recorded);
/// # let _ = line;
/// # Ok::<(), cuda_events::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LazyState {
    /// There is no driver object: the event has no context and no device.
    NotCreated,
    /// There is a driver object, and no record through the lazy event.
    ///
    /// An export or [`create`](LazyEvent::create) created it, a capture recorded it, or the lazy
    /// event was made from an existing event.
    Created,
    /// The lazy event was recorded.
    Recorded,
}

impl LazyEvent {
    /// Stores the flags, and creates no driver object. It makes no driver call.
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

    /// Returns the flags passed to [`new`](Self::new), or those of the event it was made from.
    pub fn flags(&self) -> EventFlags {
        self.flags
    }

    /// Returns the state: not created, created, or recorded.
    ///
    /// Records that bypass the lazy event do not count: those by the launch of a graph, by another
    /// process, or through [`event`](Self::event).
    pub fn state(&self) -> LazyState {
        match self.event() {
            None => LazyState::NotCreated,
            Some(_) if self.recorded.load(Ordering::Relaxed) => LazyState::Recorded,
            Some(_) => LazyState::Created,
        }
    }

    /// Returns the event, if it was created.
    #[doc(alias = "cuda_event")]
    pub fn event(&self) -> Option<&Arc<Event>> {
        self.event.get()
    }

    /// Returns the device of the event, if it was created.
    pub fn device(&self) -> Option<Device> {
        self.context().map(Context::device)
    }

    /// Returns the context of the event, if it was created.
    pub fn context(&self) -> Option<&Context> {
        self.event().map(|event| event.context())
    }

    /// Returns the event, and creates it in the context if necessary.
    ///
    /// An event that already exists may be in another context.
    ///
    /// Driver calls: those of [`Event::new`] if it creates the event, otherwise none.
    ///
    /// # Errors
    ///
    /// The errors of [`Event::new`].
    pub fn create(&self, context: &Context) -> Result<&Arc<Event>> {
        if let Some(event) = self.event() {
            return Ok(event);
        }
        let event = Arc::new(Event::new(context, self.flags)?);
        // If another thread was faster, its event is the one, and this one is dropped.
        Ok(self.event.get_or_init(|| event))
    }

    /// Records the event in the stream. If there is no event yet, it is created in the stream's
    /// context.
    ///
    /// A record in a capturing stream only orders the streams of the capture. It does not change
    /// the [state](Self::state) to recorded.
    ///
    /// One driver call: [`cuEventRecord`]. Until the first record outside a capture has succeeded,
    /// the calls of [`create`](Self::create) come first, then [`cuStreamIsCapturing`].
    ///
    /// # Errors
    ///
    /// [`Error::ContextMismatch`] if the event was created in another context; those of
    /// [`Event::new`] and [`EventRef::record`](crate::EventRef::record).
    #[doc(alias = "cuEventRecord")]
    pub fn record(&self, stream: &StreamRef) -> Result<()> {
        self.record_by(stream, |event| event.record(stream))
    }

    /// Records the event for waiters outside the graph, as [`StreamRef::record_external`] does.
    ///
    /// It creates the event in the stream's context if necessary.
    ///
    /// Driver calls: those of [`StreamRef::record_external`]. Until the first record outside a
    /// capture has succeeded, the calls of [`create`](Self::create) come first, then
    /// [`cuStreamIsCapturing`].
    ///
    /// ```
    /// use cuda_events::capture::{Capture, CaptureMode};
    /// use cuda_events::ext::LazyEvent;
    /// use cuda_events::{Context, Device, EventFlags, Stream, StreamOptions};
    ///
    /// # use cuda_soft_driver::examples::Driver;
    /// let driver = Driver::load()?;
    /// let context = Context::primary(Device::new(driver, 0)?)?;
    /// let stream = Stream::new(&context, StreamOptions::new())?;
    /// let ready = LazyEvent::new(EventFlags::empty())?;
    /// let done = LazyEvent::new(EventFlags::empty())?;
    /// // SAFETY: no other thread has this stream or these events.
    /// let capture = unsafe { Capture::begin(&stream, CaptureMode::ThreadLocal) }?;
    /// ready.wait_external(&stream)?; // each launch waits for the last record of `ready`
    /// done.record_external(&stream)?; // each launch records `done`
    /// let exec = capture.end()?.instantiate()?;
    ///
    /// exec.launch(&stream)?;
    /// done.synchronize()?;
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`record`](Self::record) and [`StreamRef::record_external`].
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

    /// Records the event in the stream if the event was never recorded. Returns whether it recorded
    /// the event.
    ///
    /// If two threads call it at the same time, both may record.
    ///
    /// Driver calls: those of [`record`](Self::record), or none.
    ///
    /// ```
    /// use cuda_events::ext::LazyEvent;
    /// use cuda_events::{Context, Device, EventFlags, Stream, StreamOptions};
    ///
    /// # use cuda_soft_driver::examples::Driver;
    /// let driver = Driver::load()?;
    /// let context = Context::primary(Device::new(driver, 0)?)?;
    /// let stream = Stream::new(&context, StreamOptions::new())?;
    /// let started = LazyEvent::new(EventFlags::TIMING)?;
    /// for _ in 0..3 {
    ///     // The event marks the begin of the first round.
    ///     started.record_once(&stream)?;
    ///     // ... work ...
    /// }
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`record`](Self::record).
    #[doc(alias = "recordOnce")]
    pub fn record_once(&self, stream: &StreamRef) -> Result<bool> {
        if self.state() == LazyState::Recorded {
            return Ok(false);
        }
        self.record(stream).map(|()| true)
    }

    /// Makes all later work in the stream wait for the last record.
    ///
    /// The calling thread does not wait. Without a driver object the stream waits for nothing, and
    /// no driver call is made. Otherwise one driver call: [`cuStreamWaitEvent`].
    ///
    /// # Errors
    ///
    /// The errors of [`StreamRef::wait_event`].
    #[doc(alias = "cuStreamWaitEvent")]
    pub fn wait(&self, stream: &StreamRef) -> Result<()> {
        self.event().map_or(Ok(()), |event| stream.wait_event(event))
    }

    /// Makes all later work in the stream wait for the last record, and returns an error if there
    /// is no record.
    ///
    /// One driver call, [`cuStreamWaitEvent`], or none.
    ///
    /// ```
    /// use cuda_events::ext::LazyEvent;
    /// use cuda_events::{Context, Device, Error, EventFlags, Stream, StreamOptions};
    ///
    /// # use cuda_soft_driver::examples::Driver;
    /// let driver = Driver::load()?;
    /// let context = Context::primary(Device::new(driver, 0)?)?;
    /// let stream = Stream::new(&context, StreamOptions::new())?;
    /// let event = LazyEvent::new(EventFlags::empty())?;
    /// // A mistake that `wait` does not report: there is no record to wait for.
    /// assert!(matches!(event.wait_recorded(&stream), Err(Error::NotRecorded { .. })));
    /// event.record(&stream)?;
    /// event.wait_recorded(&stream)?;
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NotRecorded`] if the [state](Self::state) is not recorded; those of
    /// [`wait`](Self::wait).
    pub fn wait_recorded(&self, stream: &StreamRef) -> Result<()> {
        if self.state() == LazyState::Recorded {
            self.wait(stream)
        } else {
            Err(Error::NotRecorded { function: Function::cuStreamWaitEvent, code: None })
        }
    }

    /// Makes later work in the stream wait for work outside the graph, as
    /// [`StreamRef::wait_external`] does.
    ///
    /// In a capturing stream it creates the event in the stream's context if necessary, because the
    /// graph needs an event to wait for. In any other stream without a driver object, it waits for
    /// nothing.
    ///
    /// Driver calls: those of [`StreamRef::wait_external`] if there is a driver object. Otherwise
    /// [`cuStreamIsCapturing`]; if the stream is capturing, those of [`create`](Self::create) and
    /// of [`StreamRef::wait_external`] follow. [`record_external`](Self::record_external) has an
    /// example.
    ///
    /// # Errors
    ///
    /// The errors of [`Event::new`] and [`StreamRef::wait_external`].
    #[doc(alias = "external")]
    pub fn wait_external(&self, stream: &StreamRef) -> Result<()> {
        if self.event().is_none() && stream.capture_status()? == CaptureStatus::None {
            return Ok(());
        }
        stream.wait_external(self.create(stream.context())?)
    }

    /// Returns whether the work before the last record is done. It does not wait.
    ///
    /// Without a driver object the result is done, and no driver call is made. Otherwise one driver
    /// call: [`cuEventQuery`].
    ///
    /// # Errors
    ///
    /// The errors of [`EventRef::query`](crate::EventRef::query).
    #[doc(alias = "cuEventQuery")]
    pub fn query(&self) -> Result<Progress> {
        self.event().map_or(Ok(Progress::Done), |event| event.query())
    }

    /// Blocks the calling thread until the work before the last record is done.
    ///
    /// Without a driver object it returns at once, and no driver call is made. Otherwise one driver
    /// call: [`cuEventSynchronize`].
    ///
    /// # Errors
    ///
    /// The errors of [`EventRef::synchronize`](crate::EventRef::synchronize).
    #[doc(alias = "cuEventSynchronize")]
    pub fn synchronize(&self) -> Result<()> {
        self.event().map_or(Ok(()), |event| event.synchronize())
    }

    /// Blocks the calling thread until the work before the last record is done, for at most
    /// `timeout`, and returns whether it is done.
    ///
    /// Driver calls: one [`cuEventQuery`] for each check; none without a driver object.
    ///
    /// # Errors
    ///
    /// The errors of [`query`](Self::query).
    pub fn synchronize_timeout(&self, timeout: Duration) -> Result<Progress> {
        self.event().map_or(Ok(Progress::Done), |event| event.synchronize_timeout(timeout))
    }

    /// Returns the milliseconds from this event's record to `end`'s; negative if `end` was recorded
    /// first.
    ///
    /// One driver call: [`cuEventElapsedTime_v2`] (CUDA 12.8), on older drivers
    /// [`cuEventElapsedTime`]. None if either event has no driver object.
    ///
    /// ```
    /// use cuda_events::ext::LazyEvent;
    /// use cuda_events::{Context, Device, EventFlags, Stream, StreamOptions};
    ///
    /// # use cuda_soft_driver::examples::Driver;
    /// let driver = Driver::load()?;
    /// let context = Context::primary(Device::new(driver, 0)?)?;
    /// let stream = Stream::new(&context, StreamOptions::new())?;
    /// let start = LazyEvent::new(EventFlags::TIMING)?;
    /// let end = LazyEvent::new(EventFlags::TIMING)?;
    /// start.record(&stream)?;
    /// // ... work ...
    /// end.record(&stream)?;
    /// end.synchronize()?;
    /// assert!(start.elapsed_ms(&end)? >= 0.0);
    /// println!("the work took {:?}", start.elapsed(&end)?);
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`EventRef::elapsed_ms`](crate::EventRef::elapsed_ms), checked in this order:
    /// timing, recorded, ready. If either event has no driver object, the error is
    /// [`Error::TimingDisabled`] or [`Error::NotRecorded`], without a code.
    #[doc(alias = "cuEventElapsedTime")]
    #[doc(alias = "elapsed_time")]
    pub fn elapsed_ms(&self, end: &Self) -> Result<f32> {
        self.created(end).and_then(|(start, end)| start.elapsed_ms(end))
    }

    /// Returns the time from this event's record to `end`'s. It makes the driver call of
    /// [`elapsed_ms`](Self::elapsed_ms).
    ///
    /// [`elapsed_ms`](Self::elapsed_ms) has an example.
    ///
    /// # Errors
    ///
    /// [`Error::EndBeforeStart`] if the time is negative; those of
    /// [`elapsed_ms`](Self::elapsed_ms).
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
        let function = self.event().or(end.event()).map(|event| event.elapsed_function());
        let function = function.unwrap_or(Function::cuEventElapsedTime_v2);
        Err(if (self.flags & end.flags).contains(EventFlags::TIMING) {
            Error::NotRecorded { function, code: None }
        } else {
            Error::TimingDisabled { function, code: None }
        })
    }

    /// Returns the descriptor with which another process can open the event.
    ///
    /// It creates the event in the context if necessary. The event needs no record.
    ///
    /// Driver calls: those of [`create`](Self::create) and of
    /// [`EventRef::ipc_descriptor`](crate::EventRef::ipc_descriptor). [`LazyState`] has an example.
    ///
    /// # Errors
    ///
    /// [`Error::NotInterprocess`] without [`EventFlags::INTERPROCESS`]; those of [`Event::new`] and
    /// [`EventRef::ipc_descriptor`](crate::EventRef::ipc_descriptor).
    #[doc(alias = "cuIpcGetEventHandle")]
    #[doc(alias = "ipc_handle")]
    pub fn ipc_descriptor(&self, context: &Context) -> Result<IpcEventDescriptor> {
        if !self.flags.contains(EventFlags::INTERPROCESS) {
            return Err(Error::NotInterprocess);
        }
        self.create(context)?.ipc_descriptor()
    }
}

/// Wraps an existing event, such as an imported one.
impl From<Event> for LazyEvent {
    fn from(event: Event) -> Self {
        let flags = event.flags();
        Self { flags, event: OnceLock::from(Arc::new(event)), recorded: AtomicBool::new(false) }
    }
}

static_assertions::assert_impl_all!(LazyEvent: Send, Sync);
// There may be no event to stand for: see "Where an event is expected".
static_assertions::assert_not_impl_any!(LazyEvent: Clone, core::ops::Deref, AsRef<crate::EventRef>);
