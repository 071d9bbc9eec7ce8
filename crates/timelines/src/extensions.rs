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
    /// No driver call if the point is already reached. Otherwise one, [`cuStreamWaitValue64`]. For
    /// a stream of another context than the timeline's also [`cuStreamIsCapturing`], those of
    /// [`record_event`](StreamRef::record_event), and those of [`Point::query`] if a signal is
    /// pending. Such a wait holds a share of both contexts while it is pending. The drop of a
    /// timeline, or a later wait between two contexts, gives the shares back. If one of them is
    /// then the last share of its context, a separate thread ends the context, so neither blocks.
    /// Destroy a [borrowed](cuda_events::Context::from_raw) context only when its streams are
    /// drained and a timeline was dropped after that.
    ///
    /// If the timeline's context fails, a stream of another context goes on **as if the point were
    /// reached**, within 10 ms and one pass of the crate's thread, which queries the driver every 5
    /// ms while such a wait and a signal are pending. If other code owns the timeline's context
    /// ([`Context::from_raw`](cuda_events::Context::from_raw)), the thread does not query, and the
    /// drop of a timeline does.
    ///
    /// In a capture the wait becomes a node. Each launch waits for the same point, so only the
    /// first launch may have to wait. The graph keeps this stream's context. If other code than
    /// cuda-events' [`Capture`](cuda_events::capture::Capture) began the capture, that code must
    /// keep it. While a `Capture` is under way, the call also makes that of
    /// [`capture_info`](StreamRef::capture_info). [`Timeline`](crate::Timeline) has an example.
    ///
    /// # Errors
    ///
    /// * [`Error::Poisoned`] or the driver's error, if the point is known to be
    ///   [unreachable](Point#failures), or its context has failed.
    /// * [`Error::TimelineInCapture`] in a capture, for a point of another context.
    /// * [`Error::NoThread`] if the wait needs the crate's thread, because the point is of another
    ///   context or process, and the system starts none.
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
