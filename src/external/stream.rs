//! Signals and waits of streams.

use crate::driver::call::entry;
use crate::driver::capture_count;
use crate::error::{Error, Result};
use crate::external::point::{is_binary_twice, signal_params, wait_params, with_points};
use crate::external::{BinarySemaphore, SemaphorePoint, TimelineSemaphore};
use crate::graph::retained::Captured;
use crate::stream::StreamRef;
use crate::sys::Function;

#[cfg(doc)]
use crate::sys::calls::*;

/// # Semaphores of other APIs
///
/// The stream and the semaphore must belong to the same context. Streams of a
/// [green](crate::Context::green) context cannot use semaphores. Use a stream of the primary
/// context instead, and order it with the green context's stream by events.
#[allow(unsafe_code)]
impl StreamRef {
    /// Sets the semaphore to this value after all work that is now in the stream.
    ///
    /// One driver call: [`cuSignalExternalSemaphoresAsync`]. While a
    /// [capture](crate::external#captures) is in progress in the process, also the call of
    /// [`capture_info`](Self::capture_info). [`TimelineSemaphore`] has an example.
    ///
    /// # Errors
    ///
    /// * [`Error::ContextMismatch`] if the semaphore was imported in another context.
    /// * [`Error::DriverMismatch`] if the semaphore belongs to another driver library.
    /// * [`Error::Unsupported`] if the driver lacks the call; [`Error::ForkedChild`].
    /// * Errors of work that was launched earlier. While a capture is in progress, also those of
    ///   [`capture_info`](Self::capture_info).
    #[doc(alias = "cuSignalExternalSemaphoresAsync")]
    #[inline]
    pub fn signal_external(&self, semaphore: &TimelineSemaphore, value: u64) -> Result<()> {
        self.signal_externals(&[semaphore.at(value)])
    }

    /// Makes all later work in this stream wait until the semaphore has this value or a higher one.
    ///
    /// The calling thread does not wait. The signal may be submitted after the wait.
    ///
    /// One driver call: [`cuWaitExternalSemaphoresAsync`]. While a
    /// [capture](crate::external#captures) is in progress in the process, also the call of
    /// [`capture_info`](Self::capture_info). [`TimelineSemaphore`] has an example.
    ///
    /// # Errors
    ///
    /// The errors of [`signal_external`](Self::signal_external).
    #[doc(alias = "cuWaitExternalSemaphoresAsync")]
    #[inline]
    pub fn wait_external_semaphore(&self, semaphore: &TimelineSemaphore, value: u64) -> Result<()> {
        self.wait_externals(&[semaphore.at(value)])
    }

    /// Signals the semaphore for one wait, after all work that is now in the stream.
    ///
    /// One driver call: [`cuSignalExternalSemaphoresAsync`]. While a
    /// [capture](crate::external#captures) is in progress in the process, also the call of
    /// [`capture_info`](Self::capture_info). [`BinarySemaphore`] has an example.
    ///
    /// # Errors
    ///
    /// The errors of [`signal_external`](Self::signal_external).
    #[doc(alias = "cuSignalExternalSemaphoresAsync")]
    #[inline]
    pub fn signal_external_binary(&self, semaphore: &BinarySemaphore) -> Result<()> {
        self.signal_externals(&[semaphore.once()])
    }

    /// Makes all later work in this stream wait until the semaphore is signalled. The wait consumes
    /// the signal.
    ///
    /// The calling thread does not wait. Vulkan requires the signal of a binary semaphore to be
    /// submitted before the wait.
    ///
    /// One driver call: [`cuWaitExternalSemaphoresAsync`]. While a
    /// [capture](crate::external#captures) is in progress in the process, also the call of
    /// [`capture_info`](Self::capture_info). [`BinarySemaphore`] has an example.
    ///
    /// # Errors
    ///
    /// The errors of [`signal_external`](Self::signal_external).
    #[doc(alias = "cuWaitExternalSemaphoresAsync")]
    #[inline]
    pub fn wait_external_binary(&self, semaphore: &BinarySemaphore) -> Result<()> {
        self.wait_externals(&[semaphore.once()])
    }

    /// Signals several semaphores after all work that is now in the stream.
    ///
    /// One driver call: [`cuSignalExternalSemaphoresAsync`]. While a
    /// [capture](crate::external#captures) is in progress in the process, also the call of
    /// [`capture_info`](Self::capture_info). If `points` is empty, it makes no call. Up to eight
    /// points need no allocation.
    ///
    /// ```
    /// # #[cfg(target_os = "linux")] {
    /// use cuda_events::external::{BinarySemaphore, TimelineSemaphore};
    /// use cuda_events::{Context, Device, Stream, StreamOptions};
    ///
    /// # use cuda_soft_driver::{ExternalSemaphore, SemaphoreKind};
    /// # use cuda_soft_driver::examples::Driver;
    /// let driver = Driver::load()?;
    /// let context = Context::primary(Device::new(driver, 0)?)?;
    /// let stream = Stream::new(&context, StreamOptions::new())?;
    /// # let uuid = context.device().uuid()?;
    /// # let made = [SemaphoreKind::Timeline, SemaphoreKind::Binary].map(|kind| {
    /// #     ExternalSemaphore::new(kind).and_then(|made| made.descriptor()).expect("a descriptor")
    /// # });
    /// # let [first, second] = made;
    /// // `first`, `second` and `uuid` come from Vulkan.
    /// // SAFETY: the descriptors were exported from semaphores of these kinds. The stream is done
    /// // with both before they are dropped.
    /// let timeline = unsafe { TimelineSemaphore::import_fd(&context, first, uuid) }?;
    /// // SAFETY: as above.
    /// let binary = unsafe { BinarySemaphore::import_fd(&context, second, uuid) }?;
    /// stream.signal_externals(&[timeline.at(3), binary.once()])?;
    /// stream.wait_externals(&[timeline.at(3), binary.once()])?;
    /// stream.synchronize()?;
    /// # }
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`signal_external`](Self::signal_external). [`Error::NotASemaphore`] if `points`
    /// has one [`BinarySemaphore`] twice. Nothing is signalled then. Two imports of one semaphore
    /// are not detected.
    #[doc(alias = "cuSignalExternalSemaphoresAsync")]
    pub fn signal_externals(&self, points: &[SemaphorePoint<'_>]) -> Result<()> {
        let signal = entry!(self, cuSignalExternalSemaphoresAsync?)?;
        self.check_points(points, signal.function)?;
        self.keeping_points(points, signal.function, || {
            with_points(points, signal_params, |raws, params, count| {
                // SAFETY: both are arrays of so many; the stream is alive as long as `self` is, and
                // the semaphores as long as the points are, and as long as the graph in a capture.
                signal.call(self, |signal| unsafe { signal(raws, params, count, self.as_raw()) })
            })
        })
    }

    /// Makes all later work in this stream wait for several semaphores. For an event there is
    /// [`wait_external`](Self::wait_external).
    ///
    /// One driver call: [`cuWaitExternalSemaphoresAsync`]. While a
    /// [capture](crate::external#captures) is in progress in the process, also the call of
    /// [`capture_info`](Self::capture_info). If `points` is empty, it makes no call. Up to eight
    /// points need no allocation. [`signal_externals`](Self::signal_externals) has an example.
    ///
    /// # Errors
    ///
    /// The errors of [`signal_externals`](Self::signal_externals). On an error the stream waits for none
    /// of the semaphores.
    #[doc(alias = "cuWaitExternalSemaphoresAsync")]
    pub fn wait_externals(&self, points: &[SemaphorePoint<'_>]) -> Result<()> {
        let wait = entry!(self, cuWaitExternalSemaphoresAsync?)?;
        self.check_points(points, wait.function)?;
        self.keeping_points(points, wait.function, || {
            with_points(points, wait_params, |raws, params, count| {
                // SAFETY: as in `signal_externals`.
                wait.call(self, |wait| unsafe { wait(raws, params, count, self.as_raw()) })
            })
        })
    }

    /// Makes a call; if the stream is capturing, the graph keeps the semaphores.
    #[inline]
    fn keeping_points(
        &self,
        points: &[SemaphorePoint<'_>],
        function: Function,
        call: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        if capture_count::under_way() && !points.is_empty() {
            self.capture_points(points, function, call)
        } else {
            call()
        }
    }

    #[cold]
    fn capture_points(
        &self,
        points: &[SemaphorePoint<'_>],
        function: Function,
        call: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let Some(capture) = self.active_capture()? else { return call() };
        let retained: Vec<_> =
            points.iter().map(|point| Captured::Other(point.semaphore.clone())).collect();
        self.keeping(capture, function, &retained, call)
    }

    /// Checks that this stream may use all of them: to the driver, a handle of another library is
    /// an arbitrary address. It refuses one of another context, with a code that does not say so.
    #[inline]
    fn check_points(&self, points: &[SemaphorePoint<'_>], function: Function) -> Result<()> {
        self.driver().check_alone(function)?;
        points.iter().try_for_each(|point| {
            let own = &point.semaphore.context;
            self.driver().check(own.driver(), function)?;
            if own == self.context() {
                Ok(())
            } else {
                Err(own.mismatch(self.context(), function, None))
            }
        })?;
        if points.len() > 1 && is_binary_twice(points) {
            return Err(Error::NotASemaphore { function, code: None });
        }
        Ok(())
    }
}
