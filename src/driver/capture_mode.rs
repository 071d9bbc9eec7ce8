//! Capture modes: the mode of a capture, and the mode of a thread. Drops of lower floors than
//! captures need them, too.

use core::marker::PhantomData;

use crate::driver::Driver;
use crate::driver::call::call;
#[cfg(doc)]
use crate::error::Error;
use crate::error::Result;
use crate::sys::CUstreamCaptureMode;

#[cfg(doc)]
use crate::sys::calls::*;

/// The mode of a capture: which threads may make unsafe calls while it is in progress.
///
/// Unsafe calls are calls that might depend on the captured work, such as queries and
/// synchronization of other streams and events. [`Capture`](crate::capture::Capture) and
/// [`ThreadCaptureMode`] have examples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CaptureMode {
    /// Unsafe calls fail and invalidate the capture in all threads, except in
    /// [exempt](ThreadCaptureMode) threads.
    Global,
    /// Unsafe calls fail and invalidate the capture in the capturing thread.
    ThreadLocal,
    /// Unsafe calls are allowed, except queries and synchronization of the captured streams and
    /// events themselves.
    Relaxed,
}

impl CaptureMode {
    pub(crate) const fn to_driver(self) -> CUstreamCaptureMode {
        match self {
            Self::Global => CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL,
            Self::ThreadLocal => CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
            Self::Relaxed => CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED,
        }
    }
}

/// A guard that changes the calling thread's capture mode; dropping it restores the previous mode.
///
/// The thread's mode decides which captures its [unsafe calls](CaptureMode) can invalidate:
///
/// * By default: the thread's own [`ThreadLocal`](CaptureMode::ThreadLocal) captures, and the
///   [`Global`](CaptureMode::Global) captures of any thread.
/// * With [`ThreadLocal`](CaptureMode::ThreadLocal): only the thread's own captures.
/// * With [`Relaxed`](CaptureMode::Relaxed): none.
///
/// A thread that polls events needs the guard; otherwise it would invalidate other threads'
/// captures.
///
/// The guard stays on its thread. Drop guards in the reverse order of their creation.
///
/// ```
/// use cuda_events::capture::Capture;
/// use cuda_events::capture::{CaptureMode, ThreadCaptureMode};
/// use cuda_events::{Context, Device, Event, EventFlags, Stream, StreamOptions};
///
/// # use cuda_soft_driver::examples::Driver;
/// let driver = Driver::load()?;
/// let context = Context::primary(Device::new(driver, 0)?)?;
/// let stream = Stream::new(&context, StreamOptions::new())?;
/// let event = Event::new(&context, EventFlags::empty())?;
/// // SAFETY: no other thread has this stream.
/// let capture = unsafe { Capture::begin(&stream, CaptureMode::Global) }?;
///
/// let relaxed = ThreadCaptureMode::exchange(driver, CaptureMode::Relaxed)?;
/// let _ = event.query()?; // harms no capture
/// drop(relaxed);
/// capture.end()?;
/// # Ok::<(), cuda_events::Error>(())
/// ```
#[must_use = "the mode is changed only as long as the guard lives"]
#[derive(Debug)]
pub struct ThreadCaptureMode {
    before: CUstreamCaptureMode,
    driver: Driver,
    _not_send: PhantomData<*mut ()>,
}

#[allow(unsafe_code)]
impl ThreadCaptureMode {
    /// Changes the calling thread's capture mode until the returned guard is dropped.
    ///
    /// One driver call: [`cuThreadExchangeStreamCaptureMode`]; the same call when the guard is
    /// dropped.
    ///
    /// # Errors
    ///
    /// [`Error::ForkedChild`].
    #[doc(alias = "cuThreadExchangeStreamCaptureMode")]
    #[doc(alias = "CaptureModeGuard")]
    pub fn exchange(driver: Driver, mode: CaptureMode) -> Result<Self> {
        let mut before = mode.to_driver();
        exchange(driver, &mut before)?;
        Ok(Self { driver, before, _not_send: PhantomData })
    }
}

impl Driver {
    /// Destroys something by a call that captures forbid, of other threads too. Where the mode
    /// cannot be changed, the object must not be lost, and the call is made all the same.
    pub(crate) fn while_relaxed<T>(self, destroy: impl FnOnce() -> T) -> T {
        let _relaxed = ThreadCaptureMode::exchange(self, CaptureMode::Relaxed);
        destroy()
    }
}

/// Sets the thread's mode to `mode`, and `mode` to the previous one.
#[allow(unsafe_code)]
fn exchange(driver: Driver, mode: &mut CUstreamCaptureMode) -> Result<()> {
    // SAFETY: the one argument is a place with a valid mode, of this module or from an earlier
    // exchange.
    unsafe { call!(driver, cuThreadExchangeStreamCaptureMode(mode)) }?.check()
}

impl Drop for ThreadCaptureMode {
    fn drop(&mut self) {
        // An error cannot be handled here.
        let _ = exchange(self.driver, &mut self.before);
    }
}

static_assertions::assert_not_impl_any!(ThreadCaptureMode: Send, Sync);
