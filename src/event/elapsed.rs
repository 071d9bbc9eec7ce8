//! The time between the records of two events.

use core::mem::MaybeUninit;
use std::time::Duration;

use super::{EventFlags, EventRef};
use crate::driver::call::{Answer, call};
use crate::error::{Error, Result};
use crate::sys::{CUresult, Function};

#[cfg(doc)]
use crate::sys::calls::*;

/// # Elapsed time
#[allow(unsafe_code)]
impl EventRef {
    /// Returns the milliseconds from this event's record to the record of `end`; negative if `end`
    /// was recorded first.
    ///
    /// NVIDIA documents a resolution of about half a microsecond. The driver returns an `f32` of
    /// milliseconds. Its steps are 0.06 µs at one second, 4 µs at one minute, and 250 µs at one
    /// hour.
    ///
    /// To measure a long time precisely, record an event every half second, and add the times from
    /// each event to the next as `f64`.
    ///
    /// ```
    /// use cuda_events::{Context, Device, Event, EventFlags, Stream, StreamOptions};
    ///
    /// # use cuda_soft_driver::examples::Driver;
    /// let driver = Driver::load()?;
    /// let context = Context::primary(Device::new(driver, 0)?)?;
    /// let stream = Stream::new(&context, StreamOptions::new())?;
    /// let mut last = stream.record_event(EventFlags::TIMING)?;
    /// let mut milliseconds = 0.0_f64;
    /// for _ in 0..3 {
    ///     // ... put half a second of work into the stream ...
    ///     let next = stream.record_event(EventFlags::TIMING)?;
    ///     next.synchronize()?;
    ///     milliseconds += f64::from(last.elapsed_ms(&next)?);
    ///     last = next;
    /// }
    /// # assert!(milliseconds >= 0.0);
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    ///
    /// It does not wait. One driver call: [`cuEventElapsedTime_v2`] (CUDA 12.8), on older drivers
    /// [`cuEventElapsedTime`].
    ///
    /// # Errors
    ///
    /// * [`Error::TimingDisabled`]: an event was created without [`TIMING`](EventFlags::TIMING).
    /// * [`Error::ContextMismatch`]: the events belong to different contexts.
    /// * [`Error::NotRecorded`]: an event was never recorded.
    /// * [`Error::NotReady`]: an event is not complete.
    /// * `CUDA_ERROR_CAPTURED_EVENT`: an event was last [recorded](Self::record) in a capture that
    ///   is in progress.
    /// * `CUDA_ERROR_INVALID_VALUE`: an event was last recorded in a capture that has ended. To
    ///   time the launches of a graph, call [`record_external`](crate::StreamRef::record_external)
    ///   in the capture.
    /// * [`Error::ForkedChild`].
    #[doc(alias = "cuEventElapsedTime")]
    #[doc(alias = "elapsed_time")]
    #[inline]
    pub fn elapsed_ms(&self, end: &Self) -> Result<f32> {
        let mut milliseconds = MaybeUninit::uninit();
        // SAFETY: a place for the time; the events are alive as long as their references are.
        let answer = unsafe {
            call!(self.driver, end.driver;
                cuEventElapsedTime_v2(milliseconds.as_mut_ptr(), self.raw, end.raw)
                or cuEventElapsedTime(milliseconds.as_mut_ptr(), self.raw, end.raw))
        }?;
        if !answer.is_success() {
            return Err(self.elapsed_error(end, answer.function, answer.code));
        }
        // SAFETY: on success the driver has written the time.
        Ok(unsafe { milliseconds.assume_init() })
    }

    /// Returns the time from this event's record to the record of `end` as a `Duration`. It does
    /// not wait. The resolution is that of [`elapsed_ms`](Self::elapsed_ms).
    ///
    /// One driver call, that of [`elapsed_ms`](Self::elapsed_ms). [`Event`](crate::Event) has an
    /// example.
    ///
    /// # Errors
    ///
    /// [`Error::EndBeforeStart`] if the time is negative (use [`elapsed_ms`](Self::elapsed_ms),
    /// which returns negative times); otherwise as [`elapsed_ms`](Self::elapsed_ms).
    #[doc(alias = "cuEventElapsedTime")]
    #[doc(alias = "elapsed_time")]
    pub fn elapsed(&self, end: &Self) -> Result<Duration> {
        let seconds = f64::from(self.elapsed_ms(end)?) / 1000.0;
        Duration::try_from_secs_f64(seconds).map_err(|_| Error::EndBeforeStart)
    }

    /// The call that elapsed time makes.
    pub(crate) fn elapsed_function(&self) -> Function {
        if self.driver.symbols().cuEventElapsedTime_v2.is_some() {
            Function::cuEventElapsedTime_v2
        } else {
            Function::cuEventElapsedTime
        }
    }

    #[cold]
    #[inline(never)]
    fn elapsed_error(&self, end: &Self, function: Function, code: CUresult) -> Error {
        // Made here: a caller would keep its driver in a register across the call.
        let answer = Answer::new(self.driver, function, code);
        match code {
            CUresult::CUDA_ERROR_INVALID_HANDLE => {
                answer.probably(if !(self.flags & end.flags).contains(EventFlags::TIMING) {
                    Error::TimingDisabled { function, code: Some(code) }
                } else if !self.context.shares_events(&end.context) {
                    self.context.mismatch(&end.context, function, Some(code))
                } else {
                    Error::NotRecorded { function, code: Some(code) }
                })
            }
            CUresult::CUDA_ERROR_NOT_READY => Error::NotReady { function, code },
            _ => answer.error(),
        }
    }
}
