//! What a crate on top of this one needs beyond events and streams.
//!
//! A crate that wraps more of the driver (memory, modules, kernels) takes the function pointers
//! from [`Driver::symbols`](crate::Driver::symbols) and calls them by itself. The items here are
//! the rest of what such a crate needs, and this workspace's own crates use no others:
//!
//! | for | use |
//! | --- | --- |
//! | turning the driver's code into an [`Error`] that names the call | [`Function::check`](crate::sys::Function::check) |
//! | calls that depend on the current context | [`with_current`] |
//! | referring to a context without keeping it alive | [`WeakContext`] |
//! | doing without what a capture would take in | [`is_capture_under_way`] |
//! | leaving a forked child alone | [`is_forked_child`] |
//! | sending bytes to another process that detects damage | [`Envelope`] |
//!
//! ```
//! use cuda_events::foundation::with_current;
//! use cuda_events::sys::CUdeviceptr;
//! use cuda_events::sys::Function::{cuMemAlloc_v2, cuMemFree_v2};
//! use cuda_events::{Context, Device, Result};
//!
//! /// Memory of a device; dropping it frees it.
//! struct Buffer {
//!     context: Context,
//!     address: CUdeviceptr,
//! }
//!
//! impl Buffer {
//!     fn new(context: &Context, bytes: usize) -> Result<Self> {
//!         let mut address = 0;
//!         let alloc = context.driver().symbols().cuMemAlloc_v2;
//!         // SAFETY: a place for the address; the context is current.
//!         with_current(context, || cuMemAlloc_v2.check(unsafe { alloc(&mut address, bytes) }))?;
//!         Ok(Self { context: context.clone(), address })
//!     }
//! }
//!
//! impl Drop for Buffer {
//!     fn drop(&mut self) {
//!         let free = self.context.driver().symbols().cuMemFree_v2;
//!         // SAFETY: this value owns the memory.
//!         let _ = with_current(&self.context, || {
//!             cuMemFree_v2.check(unsafe { free(self.address) })
//!         });
//!     }
//! }
//!
//! # let soft = cuda_soft_driver::SoftDriver::new();
//! # let driver = soft.driver();
//! let context = Context::primary(Device::new(driver, 0)?)?;
//! let buffer = Buffer::new(&context, 4096)?;
//! // Its error reads as those of this crate do.
//! let refused = Buffer::new(&context, 0).err().map(|error| error.to_string());
//! assert!(refused.is_some_and(|text| text.starts_with("cuMemAlloc_v2 failed")));
//! # Ok::<(), cuda_events::Error>(())
//! ```

use crate::context::Context;
use crate::error::{Error, Result};
use crate::sys::{CUresult, Function};
#[cfg(doc)]
use crate::{capture::Capture, sys::calls::*};

pub use crate::context::WeakContext;
pub use crate::ipc::envelope::{Damage, Envelope, Fields};

impl Function {
    /// Turns the code that this function returned into a result.
    ///
    /// The error names the function and the code, as those of this crate do. It makes no driver
    /// call, and a success costs one comparison.
    ///
    /// [`foundation`](crate::foundation) has an example.
    ///
    /// # Errors
    ///
    /// [`Error::Driver`] for every code except `CUDA_SUCCESS`.
    #[inline(always)]
    pub fn check(self, code: CUresult) -> Result<()> {
        Error::check(self, code)
    }
}

/// Calls `f` with the context current on the calling thread, and leaves the thread's context stack
/// as it was, also if `f` fails.
///
/// One driver call ([`cuCtxGetCurrent`]) if the context is already current, and three more
/// otherwise. [The module](self) has an example.
///
/// # Errors
///
/// That of `f`. If `f` succeeds and the driver refuses to restore the previous context, that
/// error; the result of `f` is dropped. [`Error::ForkedChild`], without calling `f`.
#[inline]
pub fn with_current<T>(context: &Context, f: impl FnOnce() -> Result<T>) -> Result<T> {
    context.with_current(f)
}

/// Returns whether a [`Capture`] is in progress anywhere in this process.
///
/// While one is, some calls would invalidate it or become a part of its graph, whichever thread
/// makes them: destroying an event that it recorded, for example. Code that could do without such a
/// call asks here first. It is one load, and no driver call. Captures that other libraries begin do
/// not count; [`capture_status`](crate::StreamRef::capture_status) asks the driver about one stream.
///
/// ```
/// use cuda_events::capture::{Capture, CaptureMode};
/// use cuda_events::foundation::is_capture_under_way;
/// use cuda_events::{Context, Device, Stream, StreamOptions};
///
/// # let soft = cuda_soft_driver::SoftDriver::new();
/// # let driver = soft.driver();
/// let context = Context::primary(Device::new(driver, 0)?)?;
/// let stream = Stream::new(&context, StreamOptions::new())?;
/// // SAFETY: no other thread has this stream.
/// let capture = unsafe { Capture::begin(&stream, CaptureMode::ThreadLocal) }?;
/// assert!(is_capture_under_way());
/// capture.end()?;
/// # Ok::<(), cuda_events::Error>(())
/// ```
#[inline(always)]
pub fn is_capture_under_way() -> bool {
    crate::capture::under_way()
}

/// Returns whether this process was forked after the driver was initialised, and so cannot use it.
///
/// Every method of this crate that would call the driver returns [`Error::ForkedChild`] there. Ask
/// here before code that has no such error: a destructor, or a lock that a thread of the parent may
/// have held. It is one load, and no driver call.
///
/// ```
/// use cuda_events::foundation::is_forked_child;
///
/// assert!(!is_forked_child());
/// ```
#[inline(always)]
pub fn is_forked_child() -> bool {
    crate::driver::fork::forked()
}
