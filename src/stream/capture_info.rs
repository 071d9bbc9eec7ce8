//! The capture state of a stream; exported by [`capture`](crate::capture).

use core::ptr::null_mut;

use crate::driver::call::call;
#[cfg(doc)]
use crate::error::Error;
use crate::error::Result;
use crate::event::EventRef;
use crate::stream::StreamRef;
use crate::stream::waits::WaitFlags;
use crate::sys::{CUgraph, CUstreamCaptureStatus};

#[cfg(doc)]
use crate::sys::calls::*;

/// Whether a stream is capturing, returned by [`StreamRef::capture_status`].
///
/// ```
/// use cuda_events::capture::{Capture, CaptureMode, CaptureStatus};
/// use cuda_events::{Context, Device, Stream, StreamOptions, StreamRef};
///
/// # use cuda_soft_driver::examples::Driver;
/// let driver = Driver::load()?;
/// let context = Context::primary(Device::new(driver, 0)?)?;
/// let stream = Stream::new(&context, StreamOptions::new())?;
///
/// /// Waits, unless that would harm a capture.
/// fn wait(stream: &StreamRef) -> cuda_events::Result<bool> {
///     match stream.capture_status()? {
///         CaptureStatus::None => stream.synchronize().map(|()| true),
///         _ => Ok(false),
///     }
/// }
/// assert!(wait(&stream)?);
/// // SAFETY: no other thread has this stream.
/// let capture = unsafe { Capture::begin(&stream, CaptureMode::ThreadLocal) }?;
/// assert!(!wait(&stream)?);
/// capture.end()?;
/// # Ok::<(), cuda_events::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CaptureStatus {
    /// The stream is not capturing: its work is executed.
    None,
    /// The stream is capturing: its work becomes part of a graph.
    Active,
    /// An earlier call has invalidated the stream's capture. Calls that put work into the stream
    /// fail until the capture is ended. A status that this crate has no name for counts as
    /// invalidated.
    Invalidated,
}

impl CaptureStatus {
    pub(crate) fn from_driver(status: CUstreamCaptureStatus) -> Self {
        match status {
            CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE => Self::None,
            CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE => Self::Active,
            _ => Self::Invalidated,
        }
    }
}

/// The capture that a stream takes part in, returned by [`StreamRef::capture_info`].
///
/// ```
/// use cuda_events::capture::{Capture, CaptureMode, CaptureStatus};
/// use cuda_events::{Context, Device, Stream, StreamOptions};
///
/// # use cuda_soft_driver::examples::Driver;
/// let driver = Driver::load()?;
/// let context = Context::primary(Device::new(driver, 0)?)?;
/// let stream = Stream::new(&context, StreamOptions::new())?;
/// let other = Stream::new(&context, StreamOptions::new())?;
///
/// // SAFETY: no other thread has these streams.
/// let capture = unsafe { Capture::begin(&stream, CaptureMode::ThreadLocal) }?;
/// other.wait_stream(&stream)?; // `other` joins the capture,
/// assert_eq!(other.capture_info()?.id, stream.capture_info()?.id);
/// stream.wait_stream(&other)?; // and must be joined before the end.
/// capture.end()?;
/// assert_eq!(stream.capture_status()?, CaptureStatus::None);
/// # Ok::<(), cuda_events::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CaptureInfo {
    /// Whether the stream takes part in a capture.
    pub status: CaptureStatus,
    /// The capture's id, which is unique in the process; `None` if the capture is not active.
    pub id: Option<u64>,
    /// The graph under construction. NULL if the capture is not active, or if the driver is older
    /// than CUDA 11.3. The graph belongs to the capture: other code may add nodes, but must not
    /// destroy or instantiate it.
    pub graph: CUgraph,
}

/// # Captures
#[allow(unsafe_code)]
impl StreamRef {
    /// Returns whether the stream is capturing.
    ///
    /// One driver call: [`cuStreamIsCapturing`]. It does not disturb a capture. [`CaptureStatus`]
    /// has an example.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_STREAM_CAPTURE_IMPLICIT` for the legacy default stream while a blocking stream
    /// is capturing; [`Error::ForkedChild`].
    #[doc(alias = "cuStreamIsCapturing")]
    #[doc(alias = "is_capturing")]
    pub fn capture_status(&self) -> Result<CaptureStatus> {
        let mut status = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        // SAFETY: the stream is alive as long as `self` is; a place for the status.
        unsafe { call!(self, cuStreamIsCapturing(self.as_raw(), &mut status)) }?.check()?;
        Ok(CaptureStatus::from_driver(status))
    }

    /// Returns the id and the graph of the capture that the stream takes part in.
    ///
    /// One driver call: [`cuStreamGetCaptureInfo_v3`] (CUDA 12.3), on older drivers
    /// [`cuStreamGetCaptureInfo_v2`] (11.3) or [`cuStreamGetCaptureInfo`]. It does not disturb a
    /// capture. [`CaptureInfo`] has an example.
    ///
    /// # Errors
    ///
    /// As [`capture_status`](Self::capture_status).
    #[doc(alias = "cuStreamGetCaptureInfo")]
    pub fn capture_info(&self) -> Result<CaptureInfo> {
        let mut status = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        let (mut id, mut graph) = (0, null_mut());
        let (stream, none) = (self.as_raw(), null_mut());
        // SAFETY: the stream is alive as long as `self` is; places for the results, and NULL for
        // those that are not needed.
        unsafe {
            call!(self,
                cuStreamGetCaptureInfo_v3(
                    stream, &mut status, &mut id, &mut graph, null_mut(), null_mut(), none,
                )
                or cuStreamGetCaptureInfo_v2(
                    stream, &mut status, &mut id, &mut graph, null_mut(), none,
                )
                or cuStreamGetCaptureInfo?(stream, &mut status, &mut id)
            )
        }?
        .check()?;
        let status = CaptureStatus::from_driver(status);
        // For a stream that is not capturing, the driver returns nothing else.
        Ok(match status {
            CaptureStatus::Active => CaptureInfo { status, id: Some(id), graph },
            _ => CaptureInfo { status, id: None, graph: null_mut() },
        })
    }

    /// Makes all later work in this stream wait for the event's last record, with flags. With no
    /// flags it does the same as [`wait_event`](Self::wait_event).
    ///
    /// With [`WaitFlags::EXTERNAL`], the wait in a capture becomes a node of the graph, and each
    /// launch waits. [`wait_external`](Self::wait_external) is the safe form: it sets the flag and
    /// keeps the event alive. Flags need CUDA 11.1.
    ///
    /// One driver call: [`cuStreamWaitEvent`]. [`EventRef::record_with`] has an example.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_ILLEGAL_STATE` for [`WaitFlags::EXTERNAL`] in a stream that is not capturing;
    /// otherwise as [`wait_event`](Self::wait_event).
    ///
    /// # Safety
    ///
    /// After a wait with [`WaitFlags::EXTERNAL`] in a capturing stream, the event must outlive the
    /// graph and its executable graphs. Otherwise the driver crashes.
    #[doc(alias = "cuStreamWaitEvent")]
    #[doc(alias = "CU_EVENT_WAIT_EXTERNAL")]
    #[inline]
    pub unsafe fn wait_event_with(&self, event: &EventRef, flags: WaitFlags) -> Result<()> {
        self.wait_checked(event, flags)
    }
}
