//! Options for creating a stream, and the range of priorities.

use core::ffi::c_int;

use crate::context::Context;
use crate::driver::call::call;
#[cfg(doc)]
use crate::error::Error;
use crate::error::Result;

#[cfg(doc)]
use crate::sys::calls::*;

/// Options for [`Stream::new`](crate::Stream::new): blocking or not, and the priority.
///
/// By default the stream is non-blocking (it does not synchronize with the legacy default stream)
/// and has the least priority.
///
/// ```
/// use cuda_events::{Context, Device, Stream, StreamOptions};
///
/// # use cuda_soft_driver::examples::Driver;
/// let driver = Driver::load()?;
/// let context = Context::primary(Device::new(driver, 0)?)?;
/// let stream = Stream::new(&context, StreamOptions::new().blocking(true).priority_clamped(-100))?;
/// assert!(stream.is_blocking()?);
/// assert_eq!(stream.priority()?, context.stream_priority_range()?.greatest);
/// # Ok::<(), cuda_events::Error>(())
/// ```
///
/// Each method returns changed options and leaves the original unchanged. The compiler warns if the
/// result is not used:
///
/// ```compile_fail
/// #![deny(unused_must_use)]
/// # use cuda_events::StreamOptions;
/// let options = StreamOptions::new();
/// options.blocking(true);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[must_use = "options change nothing until Stream::new takes them"]
pub struct StreamOptions {
    pub(super) blocking: bool,
    pub(super) priority: Priority,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Priority {
    #[default]
    Least,
    Exactly(i32),
    Nearest(i32),
}

impl StreamOptions {
    /// Returns the default options: non-blocking, with the least priority.
    pub const fn new() -> Self {
        Self { blocking: false, priority: Priority::Least }
    }

    /// Sets whether the stream synchronizes with the legacy default stream of its context.
    ///
    /// If it does, work in either stream waits for all earlier work in the other. `false` is the
    /// driver's `CU_STREAM_NON_BLOCKING`.
    #[doc(alias = "CU_STREAM_NON_BLOCKING")]
    #[doc(alias = "nonblocking")]
    pub const fn blocking(mut self, blocking: bool) -> Self {
        self.blocking = blocking;
        self
    }

    /// Sets the priority; a smaller number is more important.
    ///
    /// The priority must be within [`Context::stream_priority_range`]; otherwise
    /// [`Stream::new`](crate::Stream::new) returns an error. The priority is a hint for the order
    /// in which kernels start.
    pub const fn priority(mut self, priority: i32) -> Self {
        self.priority = Priority::Exactly(priority);
        self
    }

    /// Sets the priority. A number outside the [range](Context::stream_priority_range) becomes the
    /// nearest one in the range.
    ///
    /// The driver and PyTorch do the same. [`StreamRef::priority`](crate::StreamRef::priority)
    /// returns the priority in effect.
    pub const fn priority_clamped(mut self, priority: i32) -> Self {
        self.priority = Priority::Nearest(priority);
        self
    }
}

/// The range of stream priorities of a context, from [`Context::stream_priority_range`]; a smaller
/// number is more important.
///
/// ```
/// use cuda_events::PriorityRange;
///
/// let range = PriorityRange { least: 0, greatest: -5 };
/// assert!(range.contains(-3));
/// assert!(!range.contains(1));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PriorityRange {
    /// The least important priority, which is the largest number.
    pub least: i32,
    /// The most important priority, which is the smallest number.
    pub greatest: i32,
}

impl PriorityRange {
    /// Returns whether a stream can have this priority.
    pub const fn contains(self, priority: i32) -> bool {
        self.greatest <= priority && priority <= self.least
    }
}

/// # Priorities of streams
#[allow(unsafe_code)]
impl Context {
    /// Returns the range of priorities for streams of this context. On a device without priorities
    /// both ends are 0.
    ///
    /// One driver call with the context current: [`cuCtxGetStreamPriorityRange`]. [`StreamOptions`]
    /// has an example.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_CONTEXT_IS_DESTROYED` if other code destroyed the context;
    /// [`Error::ForkedChild`].
    #[doc(alias = "cuCtxGetStreamPriorityRange")]
    pub fn stream_priority_range(&self) -> Result<PriorityRange> {
        self.with_current(|| {
            let (mut least, mut greatest): (c_int, c_int) = (0, 0);
            // SAFETY: places for the two integers; the context is current.
            unsafe {
                call!(self.driver(), cuCtxGetStreamPriorityRange(&mut least, &mut greatest))
            }?
            .check()?;
            Ok(PriorityRange { least, greatest })
        })
    }
}
