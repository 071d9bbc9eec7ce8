//! Timers measure how long the work between two points of a stream takes.

use std::sync::Arc;
use std::time::Duration;

use crate::{Event, EventFlags, EventRef, Progress, Result, StreamRef};

#[cfg(doc)]
use crate::sys::calls::*;

/// A running timer: it has recorded the start, and [`stop`](Self::stop) records the end.
///
/// `start` and `stop` do not wait. [`stop`](Self::stop) returns a [`Timing`], which returns the
/// duration once the work is done.
///
/// ```
/// use cuda_events::ext::Timer;
/// use cuda_events::{Context, Device, Stream, StreamOptions};
///
/// # use cuda_soft_driver::examples::Driver;
/// let driver = Driver::load()?;
/// let context = Context::primary(Device::new(driver, 0)?)?;
/// let stream = Stream::new(&context, StreamOptions::new())?;
///
/// let timer = Timer::start(&stream)?;
/// // ... put work into the stream ...
/// let timing = timer.stop()?;
/// // ... do something else ...
/// println!("the work took {:?}", timing.synchronize()?);
/// # Ok::<(), cuda_events::Error>(())
/// ```
///
/// In a capturing stream the two records become nodes of the graph (see
/// [`record_external`](StreamRef::record_external)). The timing then measures the last launch that
/// is done.
///
/// A timer costs two events with [`EventFlags::TIMING`], and a record of each.
/// `docs/performance.md` has the cost of such a record.
#[must_use = "a timer that is not stopped has no time"]
#[derive(Debug)]
pub struct Timer<'a> {
    stream: &'a StreamRef,
    timing: Timing,
}

impl<'a> Timer<'a> {
    /// Records the start in the stream.
    ///
    /// Driver calls: [`cuEventCreate`] twice, with the stream's context current, and those of
    /// [`record_external`](StreamRef::record_external).
    ///
    /// # Errors
    ///
    /// The errors of [`Event::new`] and [`StreamRef::record_external`].
    pub fn start(stream: &'a StreamRef) -> Result<Self> {
        // Both before the first record, so that creating the second is not timed.
        let event = || Event::new(stream.context(), EventFlags::TIMING).map(Arc::new);
        let timing = Timing { start: event()?, end: event()? };
        stream.record_external(&timing.start)?;
        Ok(Self { stream, timing })
    }

    /// Records the end in the stream.
    ///
    /// Driver calls: those of [`record_external`](StreamRef::record_external).
    ///
    /// # Errors
    ///
    /// The errors of [`StreamRef::record_external`].
    pub fn stop(self) -> Result<Timing> {
        self.stream.record_external(&self.timing.end)?;
        Ok(self.timing)
    }
}

/// The time between the two records of a [`Timer`], available when the work is done.
///
/// ```
/// use cuda_events::ext::Timer;
/// use cuda_events::{Context, Device, Error, Stream, StreamOptions};
///
/// # use cuda_soft_driver::examples::Driver;
/// let driver = Driver::load()?;
/// let context = Context::primary(Device::new(driver, 0)?)?;
/// let stream = Stream::new(&context, StreamOptions::new())?;
/// let other = Stream::new(&context, StreamOptions::new())?;
///
/// let timing = Timer::start(&stream)?.stop()?;
/// other.wait_event(timing.end())?;
/// match timing.elapsed_ms() {
///     Ok(milliseconds) => println!("{milliseconds} ms"),
///     Err(Error::NotReady { .. }) => println!("not done"),
///     Err(error) => return Err(error),
/// }
/// let took = timing.synchronize()?;
/// assert!(timing.query()?.is_done());
/// assert_eq!(took, timing.elapsed()?);
/// assert_eq!(took, timing.start().elapsed(timing.end())?);
/// # Ok::<(), cuda_events::Error>(())
/// ```
#[derive(Debug)]
pub struct Timing {
    start: Arc<Event>,
    end: Arc<Event>,
}

impl Timing {
    /// Returns whether the work is done. It does not wait.
    ///
    /// One driver call: [`cuEventQuery`].
    ///
    /// # Errors
    ///
    /// The errors of [`EventRef::query`].
    #[doc(alias = "is_done")]
    pub fn query(&self) -> Result<Progress> {
        self.end.query()
    }

    /// Blocks the calling thread until the work is done, and returns the time it took.
    ///
    /// Driver calls: [`cuEventSynchronize`], and that of [`elapsed`](Self::elapsed).
    ///
    /// # Errors
    ///
    /// The errors of [`EventRef::synchronize`] and [`elapsed`](Self::elapsed).
    #[doc(alias = "cuEventSynchronize")]
    pub fn synchronize(&self) -> Result<Duration> {
        self.end.synchronize()?;
        self.elapsed()
    }

    /// Returns the time that the work took. It does not wait.
    ///
    /// One driver call: [`cuEventElapsedTime_v2`] (CUDA 12.8), on older drivers
    /// [`cuEventElapsedTime`].
    ///
    /// # Errors
    ///
    /// * [`Error::NotReady`](crate::Error::NotReady) until the work is done.
    /// * [`Error::NotRecorded`](crate::Error::NotRecorded) if the records were captured and their
    ///   graph was never launched.
    /// * The errors of [`EventRef::elapsed`].
    pub fn elapsed(&self) -> Result<Duration> {
        self.start.elapsed(&self.end)
    }

    /// Returns the milliseconds that the work took. It makes the driver call of
    /// [`elapsed`](Self::elapsed).
    ///
    /// # Errors
    ///
    /// The errors of [`elapsed`](Self::elapsed).
    pub fn elapsed_ms(&self) -> Result<f32> {
        self.start.elapsed_ms(&self.end)
    }

    /// Returns the event that was recorded before the work.
    pub fn start(&self) -> &EventRef {
        &self.start
    }

    /// Returns the event that was recorded after the work.
    pub fn end(&self) -> &EventRef {
        &self.end
    }
}

static_assertions::assert_impl_all!(Timer<'static>: Send, Sync);
static_assertions::assert_impl_all!(Timing: Send, Sync);
