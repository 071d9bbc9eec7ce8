//! What orders streams: records of events, and waits for them.

use std::time::Duration;

use bitflags::bitflags;

use crate::driver::Driver;
use crate::driver::call::{Answer, Through, ask, call};
use crate::error::{Error, Result};
use crate::event::{Event, EventFlags, EventRef, NewEvent};
use crate::flags::debug_by_names;
use crate::progress::Progress;
use crate::stream::StreamRef;
use crate::sys::{
    CU_EVENT_RECORD_EXTERNAL, CU_EVENT_WAIT_DEFAULT, CU_EVENT_WAIT_EXTERNAL, CUresult, Function,
    Symbols,
};

bitflags! {
    /// How one record is made; none as a rule. [`EventRef::record_with`] takes it, and shows it.
    #[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
    pub struct RecordFlags: u32 {
        /// In a capturing stream the record becomes a node of the graph, so that each launch
        /// records the event for those outside of the graph (`CU_EVENT_RECORD_EXTERNAL`, CUDA
        /// 11.1). In a stream that does not capture it is an error.
        const EXTERNAL = CU_EVENT_RECORD_EXTERNAL;
    }
}

bitflags! {
    /// How one wait is made; none as a rule. [`StreamRef::wait_event_with`] takes it; it is shown
    /// at [`EventRef::record_with`].
    #[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
    pub struct WaitFlags: u32 {
        /// In a capturing stream the wait becomes a node of the graph, so that each launch waits
        /// for what the event then stands for outside of the graph (`CU_EVENT_WAIT_EXTERNAL`, CUDA
        /// 11.1). In a stream that does not capture it is an error.
        const EXTERNAL = CU_EVENT_WAIT_EXTERNAL;
    }
}

debug_by_names!(RecordFlags, WaitFlags);

#[allow(unsafe_code)]
impl StreamRef {
    /// Makes all work that is put into this stream from now on wait for the event's last record;
    /// the calling thread does not wait.
    ///
    /// The event may belong to another context or another device, unless it is an interprocess
    /// event: that must belong to the stream's context. If it was never recorded there is nothing
    /// to wait for: a record that comes later is not seen.
    ///
    /// One driver call: `cuStreamWaitEvent`.
    ///
    /// # Errors
    ///
    /// [`Error::ContextMismatch`]; what the driver returns, such as
    /// `CUDA_ERROR_STREAM_CAPTURE_ISOLATION` in a capturing stream for an event that was recorded
    /// outside of its capture, and `CUDA_ERROR_INVALID_VALUE` for an event that was last
    /// [recorded](EventRef::record) in a capture which has ended; such a wait invalidates the
    /// capture that it is made in. Events that are used outside of the graph are for
    /// [`record_external`](Self::record_external) and [`wait_external`](Self::wait_external).
    /// [`Error::ForkedChild`].
    #[doc(alias = "cuStreamWaitEvent")]
    #[doc(alias = "wait")]
    #[inline]
    pub fn wait_event(&self, event: &EventRef) -> Result<()> {
        // The flags are not captured: see `WithOther`.
        // SAFETY: the stream is alive as long as `self` is, the event as long as its reference is.
        unsafe {
            call!(
                self.for_wait(event),
                cuStreamWaitEvent(self.as_raw(), event.as_raw(), CU_EVENT_WAIT_DEFAULT)
            )
        }
    }

    /// As [`wait_event`](Self::wait_event), with flags for this one wait. With none it is the same.
    ///
    /// [`wait_external`](Self::wait_external) chooses the flag and keeps the event.
    ///
    /// One driver call: `cuStreamWaitEvent`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_ILLEGAL_STATE` for [`WaitFlags::EXTERNAL`] in a stream that does not capture;
    /// else as [`wait_event`](Self::wait_event).
    ///
    /// # Safety
    ///
    /// After a wait with [`WaitFlags::EXTERNAL`] in a capturing stream, the event must stay alive
    /// as long as the graph that is captured and the executable graphs that are made of it: the
    /// driver crashes over a node without its event.
    #[doc(alias = "cuStreamWaitEvent")]
    #[doc(alias = "CU_EVENT_WAIT_EXTERNAL")]
    #[inline]
    pub unsafe fn wait_event_with(&self, event: &EventRef, flags: WaitFlags) -> Result<()> {
        // SAFETY: as in `wait_event`; the caller answers for the flags.
        unsafe {
            call!(
                self.for_wait(event),
                cuStreamWaitEvent(self.as_raw(), event.as_raw(), flags.bits())
            )
        }
    }

    #[inline(always)]
    fn for_wait<'a>(&'a self, event: &'a EventRef) -> WaitFor<'a> {
        WaitFor { stream: self, event }
    }

    /// Makes all work that is put into this stream from now on wait for all work that is in `other`
    /// now; the calling thread does not wait.
    ///
    /// It records an event that is kept for this purpose, and waits for it: two driver calls,
    /// `cuEventRecord` and `cuStreamWaitEvent`. The first wait for a stream also creates the event,
    /// by `cuEventCreate` with the context current. Called from several threads for one `other`, it
    /// may wait for what another thread has put into `other` in the meantime.
    ///
    /// | `other` | the event is kept by | calls |
    /// | --- | --- | --- |
    /// | a [`Stream`](crate::Stream), a [`ForeignStream`](crate::ForeignStream) | `other` | two, from the second wait on |
    /// | the [current stream](crate::ext::current_stream) of a scope | the stream of the scope | two, from the second wait on |
    /// | the legacy default stream, also by NULL | its [`Context`](crate::Context) | two, from the second wait on; the record with the context current |
    /// | a [`StreamRef`] of another library's handle | `other` | two, from the second wait on; dropping `other` destroys the event |
    /// | a per-thread default stream | nobody: it is another stream in each thread | `cuEventCreate` and `cuEventDestroy` each time |
    ///
    /// So a [`from_foreign`](Self::from_foreign) or a [`from_raw`](Self::from_raw) for each wait
    /// costs four calls on top of its own, of which the first needs the context current: create,
    /// record, wait, destroy. So does a [`from_foreign`](Self::from_foreign) of a default stream's
    /// handle, which names the context anew each time. Keep the [`StreamRef`] or the
    /// [`ForeignStream`](crate::ForeignStream) instead.
    ///
    /// If `other` captures, this stream joins its capture. A stream that captures cannot wait like
    /// this for one outside of its capture: [`wait_external`](Self::wait_external) can, for an
    /// event that is recorded there.
    ///
    /// # Errors
    ///
    /// As [`wait_event`](Self::wait_event), [`Event::new`] and [`EventRef::record`].
    #[doc(alias = "wait")]
    #[doc(alias = "join")]
    #[inline]
    pub fn wait_stream(&self, other: &Self) -> Result<()> {
        match other.join().get() {
            Some(event) => self.wait_for_record(event, other),
            None => self.wait_stream_first(other),
        }
    }

    #[inline(always)]
    fn wait_for_record(&self, event: &EventRef, other: &Self) -> Result<()> {
        event.record(other)?;
        let through = self.with(event.driver_ref());
        // The event is of this process alone, so that it may be waited for in any context.
        // SAFETY: the stream is alive as long as `self` is, the event as long as its reference is.
        unsafe {
            call!(through, cuStreamWaitEvent(self.as_raw(), event.as_raw(), CU_EVENT_WAIT_DEFAULT))
        }
    }

    #[cold]
    #[inline(never)]
    fn wait_stream_first(&self, other: &Self) -> Result<()> {
        if other.is_default() && !other.is_per_thread() {
            // One stream, however often it is named.
            return self.wait_for_record(&other.context().join_event()?, other);
        }
        let event = Event::new(other.context(), EventFlags::empty())?;
        if other.is_per_thread() {
            return self.wait_for_record(&event, other);
        }
        self.wait_for_record(other.join().get_or_init(|| event), other)
    }

    /// Creates an event in the stream's context and records it here.
    ///
    /// Driver calls: `cuEventCreate` with the context current, and `cuEventRecord`.
    ///
    /// # Errors
    ///
    /// As [`Event::new`] and [`EventRef::record`].
    #[inline]
    pub fn record_event(&self, flags: EventFlags) -> Result<Event> {
        let event = NewEvent::create(self.context(), flags)?;
        let raw = event.as_raw();
        // SAFETY: the event was just made, and the stream is alive as long as `self` is.
        unsafe { call!(self, cuEventRecord(raw, self.as_raw())) }?;
        Ok(event.in_context(self.context(), flags))
    }

    /// As [`synchronize`](Self::synchronize), for at most `timeout`: whether the work that is in
    /// the stream at this call is done.
    ///
    /// The driver has no such call. Unless the stream is idle, this one records an event and waits
    /// for it as [`EventRef::synchronize_timeout`](crate::EventRef::synchronize_timeout) does. Work
    /// that comes into the stream meanwhile does not prolong the wait.
    ///
    /// Driver calls: `cuStreamQuery`; where the stream is not idle, those of
    /// [`record_event`](Self::record_event) too, `cuEventQuery` as often as it asks, and
    /// `cuEventDestroy`.
    ///
    /// # Errors
    ///
    /// As [`query`](Self::query) and [`record_event`](Self::record_event).
    pub fn synchronize_timeout(&self, timeout: Duration) -> Result<Progress> {
        if self.query()?.is_done() {
            return Ok(Progress::Done);
        }
        self.record_event(EventFlags::empty())?.synchronize_timeout(timeout)
    }
}

#[allow(unsafe_code)]
impl EventRef {
    /// Makes the event stand for all work that is in the stream now. Both must belong to one
    /// context, where the primary context of a device and its [green](crate::Context::green) ones
    /// count as one.
    ///
    /// A record replaces the one before; waits that were queued keep the one that they saw. It does
    /// not wait for the work, but for one lock of the driver, also between threads that have a
    /// stream each.
    ///
    /// One driver call: `cuEventRecord`.
    ///
    /// ```
    /// use cuda_events::{Context, Device, Error, Event, EventFlags, Stream, StreamOptions};
    ///
    /// # let soft = cuda_soft_driver::SoftDriver::builder().devices(2).build();
    /// # let driver = soft.driver();
    /// let first = Context::primary(Device::new(driver, 0)?)?;
    /// let second = Context::primary(Device::new(driver, 1)?)?;
    /// let event = Event::new(&first, EventFlags::empty())?;
    /// let stream = Stream::new(&first, StreamOptions::new())?;
    /// let other = Stream::new(&second, StreamOptions::new())?;
    /// event.record(&stream)?;
    /// let refused = event.record(&other);
    /// assert!(matches!(refused, Err(Error::ContextMismatch { device: 0, other_device: 1, .. })));
    /// other.wait_event(&event)?; // a wait may be on any device
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::ContextMismatch`]; else what the driver returns, such as
    /// `CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED` for an interprocess event on a capturing stream;
    /// [`Error::ForkedChild`].
    #[doc(alias = "cuEventRecord")]
    #[inline]
    pub fn record(&self, stream: &StreamRef) -> Result<()> {
        // Through the stream's table, which says what NULL means.
        // SAFETY: event and stream are alive as long as their references are.
        let answer = unsafe {
            ask!(stream.with(self.driver_ref()), cuEventRecord(self.as_raw(), stream.as_raw()))
        }?;
        if answer.is_success() { Ok(()) } else { Err(self.record_error(stream, answer)) }
    }

    /// As [`record`](Self::record), with flags for this one record. With none it is the same; any
    /// takes CUDA 11.1.
    ///
    /// [`StreamRef::record_external`] chooses the flag and keeps the event.
    ///
    /// One driver call: `cuEventRecordWithFlags`, or without flags `cuEventRecord`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_ILLEGAL_STATE` for [`RecordFlags::EXTERNAL`] in a stream that does not capture;
    /// [`Error::Unsupported`]; else as [`record`](Self::record).
    ///
    /// # Safety
    ///
    /// After a record with [`RecordFlags::EXTERNAL`] in a capturing stream, the event must stay
    /// alive as long as the graph that is captured and the executable graphs that are made of it:
    /// the driver crashes over a node without its event.
    ///
    /// ```
    /// use cuda_events::{Event, EventFlags};
    /// use cuda_events::capture::{Capture, CaptureMode, RecordFlags, WaitFlags};
    /// # use cuda_events::{Context, Device, Stream, StreamOptions};
    /// # let soft = cuda_soft_driver::SoftDriver::new();
    /// # let driver = soft.driver();
    /// # let context = Context::primary(Device::new(driver, 0)?)?;
    /// # let stream = Stream::new(&context, StreamOptions::new())?;
    ///
    /// let begin = Event::new(&context, EventFlags::empty())?;
    /// let end = Event::new(&context, EventFlags::empty())?;
    /// // SAFETY: no other thread has this stream or these events.
    /// let capture = unsafe { Capture::begin(&stream, CaptureMode::ThreadLocal) }?;
    /// // SAFETY: graph and executable graph are dropped before the events.
    /// unsafe {
    ///     stream.wait_event_with(&begin, WaitFlags::EXTERNAL)?;
    ///     end.record_with(&stream, RecordFlags::EXTERNAL)?;
    /// }
    /// let exec = capture.end()?.instantiate()?;
    /// begin.record(&stream)?;
    /// exec.launch(&stream)?; // waits for `begin`, and records `end`
    /// end.synchronize()?;
    /// drop(exec);
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    #[doc(alias = "cuEventRecordWithFlags")]
    #[doc(alias = "CU_EVENT_RECORD_EXTERNAL")]
    pub unsafe fn record_with(&self, stream: &StreamRef, flags: RecordFlags) -> Result<()> {
        if flags.is_empty() {
            return self.record(stream);
        }
        let through = stream.with(self.driver_ref());
        // SAFETY: event and stream are alive as long as their references are.
        let answer = unsafe {
            ask!(through, cuEventRecordWithFlags?(self.as_raw(), stream.as_raw(), flags.bits()))
        }?;
        if answer.is_success() { Ok(()) } else { Err(self.record_error(stream, answer)) }
    }

    #[cold]
    #[inline(never)]
    fn record_error(&self, stream: &StreamRef, answer: Answer) -> Error {
        self.note_failure();
        let shared = self.context().shares_events(stream.context());
        if answer.code == CUresult::CUDA_ERROR_INVALID_HANDLE && !shared {
            self.mismatch(stream.context(), answer)
        } else {
            answer.error()
        }
    }
}

/// A stream, and the event that it is to wait for.
#[derive(Clone, Copy)]
struct WaitFor<'a> {
    stream: &'a StreamRef,
    event: &'a EventRef,
}

impl Through for WaitFor<'_> {
    #[inline(always)]
    fn driver(&self) -> Driver {
        self.stream.driver()
    }

    fn check(&self, function: Function) -> Result<()> {
        self.event.check_wait(function, self.stream.context())
    }

    /// One way out of line for all that is not plain, as for every call on a stream.
    #[inline(always)]
    fn make(
        self,
        function: Function,
        call: impl FnOnce(&'static Symbols) -> CUresult,
    ) -> Result<CUresult> {
        let Self { stream, event } = self;
        if event.cannot_be_waited_for(stream.context()) || stream.needs_a_look() {
            self.make_closely(function, call)
        } else {
            Ok(call(stream.driver().symbols()))
        }
    }
}

impl WaitFor<'_> {
    #[cold]
    #[inline(never)]
    fn make_closely(
        self,
        function: Function,
        call: impl FnOnce(&'static Symbols) -> CUresult,
    ) -> Result<CUresult> {
        self.check(function)?;
        self.stream.with(self.event.driver_ref()).make(function, call)
    }
}
