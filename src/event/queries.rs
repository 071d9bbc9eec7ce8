//! Queries of events, and waits of the host for them.

use std::time::Duration;

use super::EventRef;
use crate::driver::call::call;
use crate::error::Result;
use crate::progress::Progress;
use crate::timeout;

#[cfg(doc)]
use super::EventFlags;
#[cfg(doc)]
use crate::error::Error;
#[cfg(doc)]
use crate::sys::calls::*;

/// # Queries and waits
#[allow(unsafe_code)]
impl EventRef {
    /// Returns whether all work before the last record is done. For an event that was never
    /// recorded, it returns `Done`.
    ///
    /// It does not wait. [`Progress::Pending`] is not an error.
    ///
    /// One driver call: [`cuEventQuery`]. Queries share a lock of the driver: threads that query at
    /// the same time slow each other down. If many threads need the result, let one thread query
    /// for all of them: see `Completion` of the crate `cuda-timelines`.
    ///
    /// ```
    /// use cuda_events::{Context, Device, EventFlags, Stream, StreamOptions};
    ///
    /// # use cuda_soft_driver::examples::Driver;
    /// let driver = Driver::load()?;
    /// let context = Context::primary(Device::new(driver, 0)?)?;
    /// let stream = Stream::new(&context, StreamOptions::new())?;
    /// let event = stream.record_event(EventFlags::empty())?;
    /// while event.query()?.is_pending() {
    ///     // The host does other work.
    /// }
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// * Errors of work that was launched earlier.
    /// * `CUDA_ERROR_CAPTURED_EVENT`: the event was last [recorded](Self::record) in a capture that
    ///   is in progress. The query invalidates that capture.
    /// * `CUDA_ERROR_INVALID_VALUE`: the event was last recorded in a capture that has ended. If
    ///   the event is also used outside of the graph, call
    ///   [`record_external`](crate::StreamRef::record_external) in the capture.
    /// * [`Error::ForkedChild`].
    #[doc(alias = "cuEventQuery")]
    #[doc(alias = "is_done")]
    #[inline]
    pub fn query(&self) -> Result<Progress> {
        // SAFETY: the event is alive as long as `self` is.
        unsafe { call!(self.driver, cuEventQuery(self.raw)) }?
            .progress_or(|answer| self.refused(answer))
    }

    /// Blocks the calling thread until all work before the last record is done. The thread spins
    /// unless the event was created with [`BLOCKING_SYNC`](EventFlags::BLOCKING_SYNC).
    ///
    /// One driver call: [`cuEventSynchronize`].
    ///
    /// ```
    /// use cuda_events::{Context, Device, EventFlags, Stream, StreamOptions};
    ///
    /// # use cuda_soft_driver::examples::Driver;
    /// let driver = Driver::load()?;
    /// let context = Context::primary(Device::new(driver, 0)?)?;
    /// let stream = Stream::new(&context, StreamOptions::new())?;
    /// let event = stream.record_event(EventFlags::BLOCKING_SYNC)?;
    /// // Without `BLOCKING_SYNC` the thread would spin.
    /// event.synchronize()?;
    /// assert!(event.query()?.is_done());
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`query`](Self::query).
    #[doc(alias = "cuEventSynchronize")]
    #[doc(alias = "sync")]
    #[inline]
    pub fn synchronize(&self) -> Result<()> {
        // SAFETY: the event is alive as long as `self` is.
        unsafe { call!(self.driver, cuEventSynchronize(self.raw)) }?
            .check_or(|answer| self.refused(answer))
    }

    /// Blocks the calling thread until all work before the last record is done, but at most for
    /// `timeout`. Returns whether the work is done.
    ///
    /// The driver has no such call. This method queries in a loop: first without sleeping, then
    /// with sleeps of at most one millisecond. So it may return a millisecond late.
    ///
    /// For an imported event, use
    /// [`ExporterProcess::wait_for`](crate::ipc::ExporterProcess::wait_for) instead, which also
    /// watches the exporter: a record of a killed exporter never completes.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use cuda_events::{Context, Device, EventFlags, Stream, StreamOptions};
    ///
    /// # use cuda_soft_driver::examples::Driver;
    /// let driver = Driver::load()?;
    /// let context = Context::primary(Device::new(driver, 0)?)?;
    /// let stream = Stream::new(&context, StreamOptions::new())?;
    /// let event = stream.record_event(EventFlags::empty())?;
    /// if event.synchronize_timeout(Duration::from_secs(10))?.is_pending() {
    ///     eprintln!("the work takes longer than ten seconds");
    /// }
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    ///
    /// Driver calls: [`cuEventQuery`], repeatedly.
    ///
    /// # Errors
    ///
    /// As [`query`](Self::query).
    pub fn synchronize_timeout(&self, timeout: Duration) -> Result<Progress> {
        timeout::poll(self.driver().clock(), timeout, || self.query())
    }
}
