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
///     // The future takes the event, so give it a clone of the `Arc`.
///     let event = Arc::new(event);
///     Arc::clone(&event).completion().await?;
///     event.record(stream)?;
///     event.completion().await
/// }
/// ```
pub trait CudaEventExt: AsRef<EventRef> + Sized + 'static {
    /// Returns a future that resolves when the work before the event's last record is done.
    ///
    /// The future takes the event: see [`Completion::new`]. No driver call.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the event, and loses nothing else. To go on with the same wait,
    /// await a clone of the event's `Arc`, or `&mut future`.
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
/// async fn finish(stream: &StreamRef, point: Point) -> Result<()> {
///     // Work that is submitted to the stream from here on waits for the point.
///     stream.wait_point(point)?;
///     // ... submit work ...
///     Ok(stream.completion()?.await?)
/// }
/// ```
pub trait CudaStreamExt: sealed::Sealed {
    /// Returns a future that resolves when all work that is in the stream now is done.
    ///
    /// It records a new event. Do not call it in a capturing stream: the query of a captured event
    /// fails, and invalidates the capture.
    ///
    /// Driver calls: those of [`record_event`](StreamRef::record_event), and later those of
    /// [`Completion`]. That page has an example.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing. A second call also waits for the work that was put into
    /// the stream in the meantime. To go on with the same wait, await `&mut future`.
    ///
    /// # Errors
    ///
    /// The errors of [`record_event`](StreamRef::record_event).
    fn completion(&self) -> cuda_events::Result<Completion>;

    /// Makes all later work in this stream wait until the point is reached.
    ///
    /// The stream may belong to any context and any device of the process. A program that waits only
    /// for points whose signals were submitted cannot deadlock: `docs/timelines.md` has the proof.
    ///
    /// No driver call if the point is already reached. Otherwise one: [`cuStreamWaitValue64`].
    /// While a [`Capture`](cuda_events::capture::Capture) is in progress, the call of
    /// [`capture_info`](StreamRef::capture_info) comes first. [`Timeline`](crate::Timeline) has an
    /// example.
    ///
    /// **If the stream and the timeline have different contexts**, there are more driver calls:
    /// [`cuStreamIsCapturing`], those of [`record_event`](StreamRef::record_event), and those of
    /// [`Point::query`] if a signal is pending. While the stream waits, this crate keeps both
    /// contexts alive. If the timeline's context fails, the stream goes on **as if the point were
    /// reached**, some milliseconds later.
    ///
    /// **If the process that had to signal was killed**, or the timeline was poisoned, the stream also
    /// goes on, with whatever bytes are there, and `synchronize` succeeds. Ask the point before you
    /// use a result: [`Point::wait`] or [`Point::query`] returns the error.
    ///
    /// Other code may own one of the contexts
    /// ([`Context::from_raw`](cuda_events::Context::from_raw)). It must keep the context until its
    /// streams have no work left and, after that, some timeline was dropped. If other code owns the
    /// timeline's context and that context fails, the stream goes on only when some timeline is
    /// dropped.
    ///
    /// **In a capture** the wait becomes a node of the graph. Each launch waits for the same point,
    /// so only the first launch may have to wait. The graph keeps this stream's context alive. If
    /// the capture was not begun by a [`Capture`](cuda_events::capture::Capture), the code that
    /// began it must keep the context alive.
    ///
    /// # Errors
    ///
    /// * [`Error::Poisoned`] or the driver's error, if the point is known to be
    ///   [unreachable](Point#failures), or its context has failed.
    /// * [`Error::TimelineInCapture`] in a capture, for a point of another context.
    /// * [`Error::NoThread`] if the point belongs to another context or process, and the system
    ///   refuses to start the poller.
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
