//! What events and streams can do with this crate.

use cuda_events::{EventFlags, EventRef, StreamRef};

use crate::completion::Completion;
use crate::error::Result;
use crate::timeline::{Point, wait_point};

#[cfg(doc)]
use crate::calls::*;
#[cfg(doc)]
use crate::error::Error;

/// Adds futures to events.
///
/// ```
/// use std::sync::Arc;
///
/// use cuda_events::{Event, Result, StreamRef};
/// use cuda_timelines::CudaEventExt;
///
/// async fn twice(event: Event, stream: &StreamRef) -> Result<()> {
///     event.record(stream)?;
///     // A share, because the future keeps what it is given.
///     let event = Arc::new(event);
///     Arc::clone(&event).completion().await?;
///     event.record(stream)?;
///     event.completion().await
/// }
/// ```
pub trait CudaEventExt: AsRef<EventRef> + Sized + 'static {
    /// Returns a future that resolves when the work before the event's last record is done.
    ///
    /// It takes the event: see [`Completion::new`], which makes no driver call.
    fn completion(self) -> Completion<Self>;
}

impl<E: AsRef<EventRef> + 'static> CudaEventExt for E {
    fn completion(self) -> Completion<Self> {
        Completion::new(self)
    }
}

mod sealed {
    pub trait Sealed {}

    impl Sealed for cuda_events::StreamRef {}
}

/// Adds futures and waits for points to streams.
///
/// ```
/// use cuda_events::StreamRef;
/// use cuda_timelines::{CudaStreamExt, Point, Result};
///
/// /// Everything in the stream, after the point.
/// async fn after(stream: &StreamRef, point: Point) -> Result<()> {
///     stream.wait_point(point)?;
///     Ok(stream.completion()?.await?)
/// }
/// ```
pub trait CudaStreamExt: sealed::Sealed {
    /// Returns a future that resolves when all work that is in the stream now is done.
    ///
    /// It records a new event. Do not call it in a capturing stream: a query of a captured event is
    /// an error, and invalidates the capture.
    ///
    /// Driver calls: those of [`record_event`](StreamRef::record_event), and later those of
    /// [`Completion`], which has an example.
    ///
    /// # Errors
    ///
    /// Those of [`record_event`](StreamRef::record_event).
    fn completion(&self) -> cuda_events::Result<Completion>;

    /// Makes all later work in this stream wait until the point is reached.
    ///
    /// The stream may belong to any context and any device of the process. A program that waits for
    /// points only cannot deadlock: `docs/timelines.md` has the proof.
    ///
    /// No driver call if the point is already reached. Otherwise one: [`cuStreamWaitValue64`].
    /// While a [`Capture`](cuda_events::capture::Capture) is in progress, also that of
    /// [`capture_info`](StreamRef::capture_info). [`Timeline`](crate::Timeline) has an example.
    ///
    /// **A stream of another context** than the timeline's makes more calls:
    /// [`cuStreamIsCapturing`], those of [`record_event`](StreamRef::record_event), and those of
    /// [`Point::query`] if a signal is pending. While it waits, this crate keeps both contexts
    /// alive. If other code owns a context ([`Context::from_raw`](cuda_events::Context::from_raw)),
    /// it must not destroy the context before two things have happened: the streams of the context
    /// have no work left, and after that some timeline was dropped.
    ///
    /// If the timeline's context fails, a stream of another context goes on **as if the point were
    /// reached**, within 10 ms and one pass of the crate's thread. If other code owns the
    /// timeline's context, the thread does not watch it: the stream goes on when some timeline is
    /// dropped.
    ///
    /// **In a capture** the wait becomes a node of the graph. Each launch waits for the same point,
    /// so only the first launch may have to wait. The graph keeps this stream's context alive. If
    /// other code than a [`Capture`](cuda_events::capture::Capture) began the capture, that code
    /// must keep the context alive.
    ///
    /// # Errors
    ///
    /// * [`Error::Poisoned`] or the driver's error, if the point is known to be
    ///   [unreachable](Point#failures), or its context has failed.
    /// * [`Error::TimelineInCapture`] in a capture, for a point of another context.
    /// * [`Error::NoThread`] if the point belongs to another context or process, and the system
    ///   refuses to start the crate's thread.
    /// * [`Error::ContextDropped`]; [`DriverMismatch`](cuda_events::Error::DriverMismatch);
    ///   [`ForkedChild`](cuda_events::Error::ForkedChild).
    /// * Errors of work that was launched earlier.
    #[doc(alias = "cuStreamWaitValue64")]
    fn wait_point(&self, point: Point) -> Result<()>;
}

impl CudaStreamExt for StreamRef {
    fn completion(&self) -> cuda_events::Result<Completion> {
        Ok(Completion::new(self.record_event(EventFlags::empty())?))
    }

    #[inline]
    fn wait_point(&self, point: Point) -> Result<()> {
        wait_point(self, point)
    }
}
