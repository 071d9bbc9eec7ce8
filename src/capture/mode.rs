//! What captures forbid: the mode of a capture, and the mode of a thread.

use core::fmt;
use core::marker::PhantomData;

use crate::driver::Driver;
use crate::driver::call::call;
#[cfg(doc)]
use crate::error::Error;
use crate::error::Result;
use crate::sys::CUstreamCaptureMode;

/// What a capture forbids while it is under way, because it might belong to the work that is
/// captured: calls such as queries and synchronization of other streams and events. Shown at
/// [`Capture`](super::Capture) and [`ThreadCaptureMode`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CaptureMode {
    /// Such calls fail in all threads, and invalidate the capture, but in threads that [are
    /// exempt](ThreadCaptureMode).
    Global,
    /// Such calls fail in the thread that captures.
    ThreadLocal,
    /// Such calls are allowed. What concerns the captured streams and events themselves is not.
    Relaxed,
}

impl CaptureMode {
    pub(super) const fn to_driver(self) -> CUstreamCaptureMode {
        match self {
            Self::Global => CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL,
            Self::ThreadLocal => CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
            Self::Relaxed => CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED,
        }
    }
}

/// The calling thread's own capture mode, changed until the guard is dropped, which restores the
/// one before.
///
/// The mode says which calls of this thread are dangerous to captures: those of
/// [`ThreadLocal`](CaptureMode::ThreadLocal) captures of its own and
/// [`Global`](CaptureMode::Global) captures of any thread by default. In a thread that has set
/// [`ThreadLocal`](CaptureMode::ThreadLocal), calls leave the global captures of others alone; in
/// one that has set [`Relaxed`](CaptureMode::Relaxed), its own too. It is what a thread that polls
/// events needs, so that it does not break the captures of others.
///
/// The guard stays on its thread. Drop guards in the reverse order of making them.
///
/// ```
/// use cuda_events::capture::{CaptureMode, ThreadCaptureMode};
/// # use cuda_events::{Context, Device, Event, EventFlags, Stream, StreamOptions};
/// # use cuda_events::capture::Capture;
/// # let soft = cuda_soft_driver::SoftDriver::new();
/// # let driver = soft.driver();
/// # let context = Context::primary(Device::new(driver, 0)?)?;
/// # let stream = Stream::new(&context, StreamOptions::new())?;
/// # let event = Event::new(&context, EventFlags::empty())?;
/// # // SAFETY: no other thread has this stream.
/// # let capture = unsafe { Capture::begin(&stream, CaptureMode::Global) }?;
///
/// let relaxed = ThreadCaptureMode::exchange(driver, CaptureMode::Relaxed)?;
/// let _ = event.query()?; // harms no capture
/// drop(relaxed);
/// # capture.end()?;
/// # Ok::<(), cuda_events::Error>(())
/// ```
#[must_use = "the mode is changed only as long as the guard lives"]
pub struct ThreadCaptureMode {
    driver: Driver,
    before: CUstreamCaptureMode,
    _not_send: PhantomData<*mut ()>,
}

#[allow(unsafe_code)]
impl ThreadCaptureMode {
    /// Changes the calling thread's capture mode.
    ///
    /// One driver call, `cuThreadExchangeStreamCaptureMode`, and one more when the guard is
    /// dropped.
    ///
    /// # Errors
    ///
    /// What the driver returns; [`Error::ForkedChild`].
    #[doc(alias = "cuThreadExchangeStreamCaptureMode")]
    #[doc(alias = "CaptureModeGuard")]
    pub fn exchange(driver: Driver, mode: CaptureMode) -> Result<Self> {
        let mut before = mode.to_driver();
        exchange(driver, &mut before)?;
        Ok(Self { driver, before, _not_send: PhantomData })
    }
}

/// Sets the thread's mode to `mode`, which becomes the one that was set before.
#[allow(unsafe_code)]
fn exchange(driver: Driver, mode: &mut CUstreamCaptureMode) -> Result<()> {
    // SAFETY: the one argument is a place with a valid mode, of this module or from an earlier
    // exchange.
    unsafe { call!(driver, cuThreadExchangeStreamCaptureMode(mode)) }
}

impl Drop for ThreadCaptureMode {
    fn drop(&mut self) {
        // What it answers cannot be acted on here.
        let _ = exchange(self.driver, &mut self.before);
    }
}

impl fmt::Debug for ThreadCaptureMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadCaptureMode").field("before", &self.before).finish_non_exhaustive()
    }
}

static_assertions::assert_not_impl_any!(ThreadCaptureMode: Send, Sync);
