//! Recording events.

use bitflags::bitflags;

use super::EventRef;
use crate::context::Context;
use crate::debug_by_names::debug_by_names;
use crate::driver::call::{Answer, call};
use crate::error::{Error, Result};
use crate::stream::StreamRef;
use crate::sys::{CU_EVENT_RECORD_EXTERNAL, CUresult};

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

debug_by_names!(RecordFlags);

/// # Recording
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
    /// # let _ = || {
    /// let driver = cuda_events::Driver::load()?;
    /// # Ok::<_, cuda_events::Error>(driver) };
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
        unsafe { call!(stream, self.driver; cuEventRecord(self.raw, stream.as_raw())) }?
            .check_or(|answer| self.record_error(stream.context(), answer))
    }

    /// Records the event after all work that is in any stream of the context now. CUDA 12.5.
    ///
    /// It does not wait. The event must belong to the context; a primary context and its
    /// [green](Context::green) contexts count as one.
    ///
    /// No stream of the context may be capturing: the call would invalidate that capture.
    ///
    /// One driver call: [`cuCtxRecordEvent`].
    ///
    /// ```
    /// use cuda_events::{Context, Device, Event, EventFlags, Stream, StreamOptions};
    ///
    /// # let _ = || {
    /// let driver = cuda_events::Driver::load()?;
    /// # Ok::<_, cuda_events::Error>(driver) };
    /// # let soft = cuda_soft_driver::SoftDriver::new();
    /// # let driver = soft.driver();
    /// let context = Context::primary(Device::new(driver, 0)?)?;
    /// let one = Stream::new(&context, StreamOptions::new())?;
    /// let two = Stream::new(&context, StreamOptions::new())?;
    ///
    /// // Work put into any stream from now on runs after the work that is in any stream now.
    /// let event = Event::new(&context, EventFlags::empty())?;
    /// event.record_context(&context)?;
    /// context.wait_event(&event)?;
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// * [`Error::ContextMismatch`]: the event belongs to another context.
    /// * [`Error::Unsupported`]: the driver is older than CUDA 12.5.
    /// * `CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED`: a stream of the context is capturing.
    /// * [`Error::ForkedChild`].
    #[doc(alias = "cuCtxRecordEvent")]
    pub fn record_context(&self, context: &Context) -> Result<()> {
        // SAFETY: context and event are alive as long as their references are.
        unsafe {
            call!(self.driver, context.driver(); cuCtxRecordEvent?(context.as_raw(), self.raw))
        }?
        .check_or(|answer| self.record_error(context, answer))
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
    /// # let _ = || {
    /// let driver = cuda_events::Driver::load()?;
    /// # Ok::<_, cuda_events::Error>(driver) };
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
        // SAFETY: event and stream are alive as long as their references are.
        unsafe {
            call!(stream, self.driver;
                cuEventRecordWithFlags?(self.raw, stream.as_raw(), flags.bits()))
        }?
        .check_or(|answer| self.record_error(stream.context(), answer))
    }

    #[cold]
    #[inline(never)]
    fn record_error(&self, context: &Context, answer: Answer) -> Error {
        self.mark_failed();
        let shared = self.context().shares_events(context);
        if answer.code == CUresult::CUDA_ERROR_INVALID_HANDLE && !shared {
            self.context().mismatch(context, answer.function, Some(answer.code))
        } else {
            answer.error()
        }
    }
}
