//! How a stream is created, and the priorities that it can have.

use core::ffi::c_int;

use crate::context::Context;
use crate::driver::call::call;
#[cfg(doc)]
use crate::error::Error;
use crate::error::Result;

/// How a stream is created.
///
/// By default the stream is non-blocking, which means that it does not synchronize with the legacy
/// default stream, and has the least priority.
///
/// ```
/// use cuda_events::{Stream, StreamOptions};
/// # use cuda_events::{Context, Device};
/// # let soft = cuda_soft_driver::SoftDriver::new();
/// # let driver = soft.driver();
/// # let context = Context::primary(Device::new(driver, 0)?)?;
/// let stream = Stream::new(&context, StreamOptions::new().blocking(true).priority_clamped(-100))?;
/// assert!(stream.is_blocking()?);
/// assert_eq!(stream.priority()?, context.stream_priority_range()?.greatest);
/// # Ok::<(), cuda_events::Error>(())
/// ```
///
/// A method gives changed options and leaves its own as they were. Not to use the result is a
/// mistake, of which the compiler warns:
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
    /// Non-blocking, of the least priority.
    pub const fn new() -> Self {
        Self { blocking: false, priority: Priority::Least }
    }

    /// Whether the stream synchronizes with the legacy default stream of its context: work in that
    /// one waits for all blocking streams, and they wait for it. `false` is the driver's
    /// `CU_STREAM_NON_BLOCKING`.
    #[doc(alias = "CU_STREAM_NON_BLOCKING")]
    #[doc(alias = "nonblocking")]
    pub const fn blocking(mut self, blocking: bool) -> Self {
        self.blocking = blocking;
        self
    }

    /// The priority, within [`Context::stream_priority_range`]: outside of it
    /// [`Stream::new`](crate::Stream::new) fails. A smaller number is more important. It is a hint
    /// for the order in which kernels start.
    pub const fn priority(mut self, priority: i32) -> Self {
        self.priority = Priority::Exactly(priority);
        self
    }

    /// As [`priority`](Self::priority), but a number outside the range stands for the nearest one
    /// in it, as the driver and PyTorch have it.
    /// [`StreamRef::priority`](crate::StreamRef::priority) tells which it became.
    pub const fn priority_clamped(mut self, priority: i32) -> Self {
        self.priority = Priority::Nearest(priority);
        self
    }
}

/// The stream priorities of a context, of [`Context::stream_priority_range`]. A smaller number is
/// more important.
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
    /// The least important, which is the largest number.
    pub least: i32,
    /// The most important, which is the smallest number.
    pub greatest: i32,
}

impl PriorityRange {
    /// Whether a stream can have this priority.
    pub const fn contains(self, priority: i32) -> bool {
        self.greatest <= priority && priority <= self.least
    }
}

#[allow(unsafe_code)]
impl Context {
    /// The priorities that streams of this context can have. Both ends are 0 on a device without
    /// priorities.
    ///
    /// One driver call with the context current: `cuCtxGetStreamPriorityRange`.
    ///
    /// # Errors
    ///
    /// What the driver returns; [`Error::ForkedChild`].
    #[doc(alias = "cuCtxGetStreamPriorityRange")]
    pub fn stream_priority_range(&self) -> Result<PriorityRange> {
        self.with_current(|ready| {
            let (mut least, mut greatest): (c_int, c_int) = (0, 0);
            // SAFETY: places for the two integers; the context is current.
            unsafe { call!(ready, cuCtxGetStreamPriorityRange(&mut least, &mut greatest)) }?;
            Ok(PriorityRange { least, greatest })
        })
    }
}
