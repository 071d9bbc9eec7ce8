//! Recording events.

use super::EventRef;
use crate::context::Context;
use crate::driver::call::{Answer, call};
use crate::error::{Error, Result};
use crate::stream::StreamRef;
use crate::sys::CUresult;

#[cfg(doc)]
use crate::sys::calls::*;

/// # Recording
#[allow(unsafe_code)]
impl EventRef {
    /// Records the event in the stream: the event completes when all work that is now in the stream
    /// is done.
    ///
    /// Event and stream must belong to the same context. A primary context and its
    /// [green](crate::Context::green) contexts count as one.
    ///
    /// A new record replaces the old one. Waits that were queued before still wait for the old one.
    /// The call does not wait for the work. The records of one context share a lock of the driver.
    /// So threads that record at the same time slow each other down, even if each has its own
    /// stream.
    ///
    /// One driver call: [`cuEventRecord`].
    ///
    /// ```
    /// use cuda_events::{Context, Device, Event, EventFlags, Stream, StreamOptions};
    ///
    /// # use cuda_soft_driver::examples::Driver;
    /// let driver = Driver::load()?;
    /// let context = Context::primary(Device::new(driver, 0)?)?;
    /// let stream = Stream::new(&context, StreamOptions::new())?;
    /// let event = Event::new(&context, EventFlags::empty())?;
    /// // ... put work into `stream` ...
    /// event.record(&stream)?;
    /// event.synchronize()?; // the work is done
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// * [`Error::ContextMismatch`]: event and stream belong to different contexts.
    /// * `CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED`: the event is an interprocess event, and the
    ///   stream is capturing.
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

    #[cold]
    #[inline(never)]
    pub(super) fn record_error(&self, context: &Context, answer: Answer) -> Error {
        self.mark_failed();
        let shared = self.context().shares_events(context);
        if answer.code == CUresult::CUDA_ERROR_INVALID_HANDLE && !shared {
            answer.probably(self.context().mismatch(context, answer.function, Some(answer.code)))
        } else {
            answer.error()
        }
    }
}
