//! Ordering streams: records of events, and waits for them.

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

#[cfg(doc)]
use crate::sys::calls::*;

bitflags! {
    /// Flags for [`EventRef::record_with`], which has an example; usually empty.
    #[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
    pub struct RecordFlags: u32 {
        /// In a capturing stream, the record becomes a node of the graph: each launch records the
        /// event for use outside of the graph (`CU_EVENT_RECORD_EXTERNAL`, CUDA 11.1). The flag is
        /// an error in a stream that is not capturing.
        const EXTERNAL = CU_EVENT_RECORD_EXTERNAL;
    }
}

bitflags! {
    /// Flags for [`StreamRef::wait_event_with`]; usually empty.
    ///
    /// [`EventRef::record_with`] has an example.
    #[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
    pub struct WaitFlags: u32 {
        /// In a capturing stream, the wait becomes a node of the graph: each launch waits for the
        /// last record of the event outside of the graph (`CU_EVENT_WAIT_EXTERNAL`, CUDA 11.1). The
        /// flag is an error in a stream that is not capturing.
        const EXTERNAL = CU_EVENT_WAIT_EXTERNAL;
    }
}

debug_by_names!(RecordFlags, WaitFlags);

#[allow(unsafe_code)]
impl StreamRef {
    /// Makes all work that is put into this stream from now on wait for the event's last record;
    /// the calling thread does not wait.
    ///
    /// The event may belong to another context or another device. An interprocess event must belong
    /// to the stream's context. If the event was never recorded, the stream does not wait, and a
    /// later record makes no difference.
    ///
    /// ```
    /// use cuda_events::{Context, Device, EventFlags, Stream, StreamOptions};
    ///
    /// # let soft = cuda_soft_driver::SoftDriver::new();
    /// # let driver = soft.driver();
    /// let context = Context::primary(Device::new(driver, 0)?)?;
    /// let producer = Stream::new(&context, StreamOptions::new())?;
    /// let consumer = Stream::new(&context, StreamOptions::new())?;
    /// // ... put work into `producer` ...
    /// let done = producer.record_event(EventFlags::empty())?;
    /// consumer.wait_event(&done)?;
    /// // Work put into `consumer` from now on runs after that work.
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    ///
    /// One driver call: [`cuStreamWaitEvent`].
    ///
    /// # Errors
    ///
    /// * [`Error::ContextMismatch`]: it is an interprocess event of another context.
    /// * `CUDA_ERROR_STREAM_CAPTURE_ISOLATION`: this stream is capturing, and the event was
    ///   recorded outside of its capture.
    /// * `CUDA_ERROR_INVALID_VALUE`: the event was last [recorded](EventRef::record) in a capture
    ///   that has ended.
    /// * [`Error::ForkedChild`].
    ///
    /// If this stream is capturing, each of these two driver codes invalidates its capture. For
    /// events that are used outside of the graph, use [`record_external`](Self::record_external)
    /// and [`wait_external`](Self::wait_external).
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

    /// Makes all later work in this stream wait for the event's last record, with flags for this
    /// wait. Without flags it is [`wait_event`](Self::wait_event).
    ///
    /// [`wait_external`](Self::wait_external) is the safe form: it sets the flag and keeps the
    /// event alive. Flags need CUDA 11.1.
    ///
    /// One driver call: [`cuStreamWaitEvent`]. [`EventRef::record_with`] has an example.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_ILLEGAL_STATE` for [`WaitFlags::EXTERNAL`] in a stream that is not capturing;
    /// otherwise as [`wait_event`](Self::wait_event).
    ///
    /// # Safety
    ///
    /// After a wait with [`WaitFlags::EXTERNAL`] in a capturing stream, the event must stay alive
    /// as long as the captured graph and every executable graph made of it: the driver crashes if
    /// the event of a node is gone.
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
    /// ```
    /// use cuda_events::{Context, Device, Stream, StreamOptions};
    ///
    /// # let soft = cuda_soft_driver::SoftDriver::new();
    /// # let driver = soft.driver();
    /// let context = Context::primary(Device::new(driver, 0)?)?;
    /// let producer = Stream::new(&context, StreamOptions::new())?;
    /// let consumer = Stream::new(&context, StreamOptions::new())?;
    /// // ... put work into `producer` ...
    /// consumer.wait_stream(&producer)?;
    /// // Work put into `consumer` from now on runs after that work.
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    ///
    /// Two driver calls: it records an event in `other` ([`cuEventRecord`]) and waits for it
    /// ([`cuStreamWaitEvent`]). The first wait for a stream also creates this event, by
    /// [`cuEventCreate`] with the context current; the event is kept for later waits. If several
    /// threads wait for the same `other` at the same time, a wait may include work that another
    /// thread puts into `other` meanwhile.
    ///
    /// | `other` | the event is kept by | calls |
    /// | --- | --- | --- |
    /// | a [`Stream`](crate::Stream), a [`ForeignStream`](crate::ForeignStream) | `other` | two, from the second wait on |
    /// | the [current stream](crate::ext::current_stream) of a scope | the stream of the scope | two, from the second wait on |
    /// | the legacy default stream, also if its handle is NULL | its [`Context`](crate::Context) | two, from the second wait on; the record with the context current |
    /// | a [`StreamRef`] of another library's handle | `other` | two, from the second wait on; dropping `other` destroys the event |
    /// | a per-thread default stream | not kept: it is another stream in each thread | `cuEventCreate` and [`cuEventDestroy`] each time |
    ///
    /// If you make a new [`StreamRef`] for each wait, by [`from_foreign`](Self::from_foreign) or
    /// [`from_raw`](Self::from_raw), each wait makes four calls: create (with the context current),
    /// record, wait, destroy. For the legacy default stream this holds for `from_foreign` only,
    /// which wraps the context anew each time. Keep the [`StreamRef`] or the
    /// [`ForeignStream`](crate::ForeignStream) instead.
    ///
    /// If `other` is capturing, this stream joins its capture. A capturing stream cannot wait for a
    /// stream outside of its capture. Instead, record an event in that stream and use
    /// [`wait_external`](Self::wait_external).
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
        // The event belongs to this process alone, so any context may wait for it.
        // SAFETY: the stream is alive as long as `self` is, the event as long as its reference is.
        unsafe {
            call!(through, cuStreamWaitEvent(self.as_raw(), event.as_raw(), CU_EVENT_WAIT_DEFAULT))
        }
    }

    #[cold]
    #[inline(never)]
    fn wait_stream_first(&self, other: &Self) -> Result<()> {
        if other.is_default() && !other.is_per_thread() {
            // This is one stream, no matter how many `StreamRef` stand for it.
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
    /// Driver calls: [`cuEventCreate`] with the context current, and [`cuEventRecord`].
    ///
    /// ```
    /// use cuda_events::{Context, Device, EventFlags, Stream, StreamOptions};
    ///
    /// # let soft = cuda_soft_driver::SoftDriver::new();
    /// # let driver = soft.driver();
    /// let context = Context::primary(Device::new(driver, 0)?)?;
    /// let stream = Stream::new(&context, StreamOptions::new())?;
    /// let other = Stream::new(&context, StreamOptions::new())?;
    /// // ... work is put into `stream` ...
    /// let event = stream.record_event(EventFlags::empty())?;
    /// other.wait_event(&event)?;
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
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

    /// Blocks the calling thread until all work that is in the stream now is done, for at most
    /// `timeout`, and returns whether it is done.
    ///
    /// The driver has no such call. Unless the stream is idle, this method records an event and
    /// waits for it as [`EventRef::synchronize_timeout`](crate::EventRef::synchronize_timeout)
    /// does. Work that is put into the stream meanwhile does not prolong the wait.
    ///
    /// Driver calls: [`cuStreamQuery`]. If the stream is not idle, also those of
    /// [`record_event`](Self::record_event), then [`cuEventQuery`] repeatedly, and
    /// [`cuEventDestroy`].
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use cuda_events::{Context, Device, Stream, StreamOptions};
    ///
    /// # let soft = cuda_soft_driver::SoftDriver::new();
    /// # let driver = soft.driver();
    /// let context = Context::primary(Device::new(driver, 0)?)?;
    /// let stream = Stream::new(&context, StreamOptions::new())?;
    /// // ... work is put into `stream` ...
    /// if stream.synchronize_timeout(Duration::from_secs(10))?.is_pending() {
    ///     println!("the work takes longer than ten seconds");
    /// }
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`query`](Self::query) and [`record_event`](Self::record_event).
    pub fn synchronize_timeout(&self, timeout: Duration) -> Result<Progress> {
        let progress = self.query()?;
        if progress.is_done() || timeout.is_zero() {
            return Ok(progress);
        }
        self.record_event(EventFlags::empty())?.synchronize_timeout(timeout)
    }
}

#[allow(unsafe_code)]
impl EventRef {
    /// Records the event in the stream: it completes when all work that is in the stream now is
    /// done.
    ///
    /// Event and stream must belong to one context; a primary context and its
    /// [green](crate::Context::green) contexts count as one.
    ///
    /// A record replaces the previous one; waits that were queued earlier still wait for that one.
    /// The call does not wait for the work. It takes one lock of the driver, even if each thread
    /// has its own stream.
    ///
    /// One driver call: [`cuEventRecord`].
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
    /// * [`Error::ContextMismatch`]: event and stream belong to two contexts.
    /// * `CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED`: it is an interprocess event, and the stream is
    ///   capturing.
    /// * Errors of work that was launched earlier.
    /// * [`Error::ForkedChild`].
    #[doc(alias = "cuEventRecord")]
    #[inline]
    pub fn record(&self, stream: &StreamRef) -> Result<()> {
        // The call goes through the stream's table, because the table decides what NULL means.
        // SAFETY: event and stream are alive as long as their references are.
        let answer = unsafe {
            ask!(stream.with(self.driver_ref()), cuEventRecord(self.as_raw(), stream.as_raw()))
        }?;
        if answer.is_success() { Ok(()) } else { Err(self.record_error(stream, answer)) }
    }

    /// Records the event in the stream, with flags for this record. Without flags it is
    /// [`record`](Self::record).
    ///
    /// [`StreamRef::record_external`] is the safe form: it sets the flag and keeps the event alive.
    /// Flags need CUDA 11.1.
    ///
    /// One driver call: [`cuEventRecordWithFlags`], or without flags [`cuEventRecord`].
    ///
    /// ```
    /// use cuda_events::capture::{Capture, CaptureMode, RecordFlags, WaitFlags};
    /// use cuda_events::{Context, Device, Event, EventFlags, Stream, StreamOptions};
    ///
    /// # let soft = cuda_soft_driver::SoftDriver::new();
    /// # let driver = soft.driver();
    /// let context = Context::primary(Device::new(driver, 0)?)?;
    /// let stream = Stream::new(&context, StreamOptions::new())?;
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
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_ILLEGAL_STATE` for [`RecordFlags::EXTERNAL`] in a stream that is not capturing;
    /// [`Error::Unsupported`] if the driver is older than CUDA 11.1; otherwise as
    /// [`record`](Self::record).
    ///
    /// # Safety
    ///
    /// After a record with [`RecordFlags::EXTERNAL`] in a capturing stream, the event must stay
    /// alive as long as the captured graph and every executable graph made of it: the driver
    /// crashes if the event of a node is gone.
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

    /// One path, out of line, for every other case, as for every call on a stream.
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
