//! Records in a whole context, and records with flags.

use bitflags::bitflags;

use super::EventRef;
use crate::context::Context;
use crate::debug_by_names::debug_by_names;
use crate::driver::call::call;
#[cfg(doc)]
use crate::error::Error;
use crate::error::Result;
use crate::stream::StreamRef;
use crate::sys::CU_EVENT_RECORD_EXTERNAL;

#[cfg(doc)]
use crate::sys::calls::*;

bitflags! {
    /// Flags for [`EventRef::record_with`], which has an example.
    #[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
    pub struct RecordFlags: u32 {
        /// Makes the record in a capture a node of the graph: each launch records the event, for
        /// use outside of the graph (`CU_EVENT_RECORD_EXTERNAL`). Needs CUDA 11.1. In a stream that
        /// is not capturing, the flag is an error.
        const EXTERNAL = CU_EVENT_RECORD_EXTERNAL;
    }
}

debug_by_names!(RecordFlags);

/// # Other records
#[allow(unsafe_code)]
impl EventRef {
    /// Records the event in a whole context: the event completes when all work that is now in any
    /// stream of the context is done. Needs CUDA 12.5.
    ///
    /// The call does not wait. The event must belong to the same context. A primary context and its
    /// [green](Context::green) contexts count as one. A record in a primary context covers the
    /// streams of its green contexts too. A record in a green context covers only its own streams.
    ///
    /// No stream of the context may be capturing: the call would invalidate that capture.
    ///
    /// One driver call: [`cuCtxRecordEvent`].
    ///
    /// ```
    /// use cuda_events::{Context, Device, Event, EventFlags, Stream, StreamOptions};
    ///
    /// # use cuda_soft_driver::examples::Driver;
    /// let driver = Driver::load()?;
    /// let context = Context::primary(Device::new(driver, 0)?)?;
    /// let one = Stream::new(&context, StreamOptions::new())?;
    /// let two = Stream::new(&context, StreamOptions::new())?;
    ///
    /// // Later work in any stream runs after the work that is now in any stream.
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

    /// Records the event in the stream, with flags. With no flags it does the same as
    /// [`record`](Self::record).
    ///
    /// With [`RecordFlags::EXTERNAL`], the record in a capture becomes a node of the graph, and
    /// each launch records the event. [`StreamRef::record_external`] is the safe form: it sets the
    /// flag and keeps the event alive. Flags need CUDA 11.1.
    ///
    /// One driver call: [`cuEventRecordWithFlags`], or without flags [`cuEventRecord`].
    ///
    /// ```
    /// use cuda_events::capture::{Capture, CaptureMode, RecordFlags, WaitFlags};
    /// use cuda_events::{Context, Device, Event, EventFlags, Stream, StreamOptions};
    ///
    /// # use cuda_soft_driver::examples::Driver;
    /// let driver = Driver::load()?;
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
    /// After a record with [`RecordFlags::EXTERNAL`] in a capturing stream, the event must outlive
    /// the graph and its executable graphs. Otherwise the driver crashes.
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
}
