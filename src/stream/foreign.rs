//! Streams of other libraries.

use core::fmt;
use core::ops::Deref;
use core::ptr::null_mut;

use super::StreamRef;
use crate::context::Context;
use crate::driver::Driver;
use crate::error::{Error, Result};
use crate::process;
use crate::sys::{CUstream, Function};

#[allow(unsafe_code)]
impl StreamRef {
    /// Names a stream that other code owns, and asks the driver for its context. Dropping the result does nothing to it.
    ///
    /// It is for a handle that comes without its context, such as `torch.cuda.Stream.cuda_stream`. Where the context is
    /// known, [`from_raw`](Self::from_raw) makes no driver call. [`ForeignStream`] keeps the stream's owner too.
    ///
    /// NULL and the driver's special handles are valid. They mean a stream of the context that is current on the calling
    /// thread now, and go on meaning that one, whatever is current later.
    ///
    /// The stream of a green context has a context that stands for that one; [`Context::is_green`] tells.
    ///
    /// Driver calls: `cuStreamGetCtx`, and one for that context's device.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_CONTEXT` for a default stream's handle while no context is current; what else the driver
    /// answers; [`Error::ForkedChild`].
    ///
    /// # Safety
    ///
    /// `raw` must be a live stream of this driver, or a default stream's handle, and must stay one until the result is
    /// dropped. Its context must live until all that is made through the result, such as a recorded event, is dropped.
    /// For the stream of a green context the rule of [`Context::green`] about threads holds.
    #[doc(alias = "cuStreamGetCtx")]
    #[doc(alias = "from_handle")]
    #[doc(alias = "ExternalStream")]
    #[doc(alias = "get_stream_from_external")]
    pub unsafe fn from_foreign(driver: Driver, raw: CUstream) -> Result<Self> {
        const FUNCTION: Function = Function::cuStreamGetCtx;
        // Whoever made the stream has initialised the driver.
        process::note_initialised();
        driver.check_fork(FUNCTION)?;
        let mut context = null_mut();
        // SAFETY: a place for the handle, and a stream that the caller vouches for.
        Error::check(FUNCTION, unsafe { (driver.symbols().cuStreamGetCtx)(raw, &mut context) })?;
        // SAFETY: the driver has just named it; the caller vouches for the rest.
        let context = unsafe { Context::from_raw(driver, context) }?;
        Ok(Self::new(&context, raw))
    }
}

/// A stream that another library owns, together with what keeps it alive: an `Arc` of that library's stream, a Python
/// object, a box of anything.
///
/// What can be done with it is on [`StreamRef`], which this type dereferences to. The owner is dropped last.
///
/// ```
/// use cuda_events::{Context, Device, EventFlags, ForeignStream, Stream, StreamOptions};
/// use std::sync::Arc;
///
/// # let soft = cuda_soft_driver::SoftDriver::new();
/// # let driver = soft.driver();
/// # let context = Context::primary(Device::new(driver, 0)?)?;
/// // Stands for the stream of a library that knows nothing of this crate.
/// let theirs = Arc::new(Stream::new(&context, StreamOptions::new())?);
///
/// // SAFETY: the handle is that of the stream in the `Arc`, and `context` outlives all of this.
/// let ours = unsafe { ForeignStream::new(driver, theirs.as_raw(), theirs.clone()) }?;
/// assert_eq!(ours.context(), &context);
/// ours.record_event(EventFlags::empty())?.synchronize()?;
/// # Ok::<(), cuda_events::Error>(())
/// ```
pub struct ForeignStream<O> {
    // Before the owner, and so dropped before it: an event that `wait_stream` has left here needs the stream's context.
    stream: StreamRef,
    owner: O,
}

#[allow(unsafe_code)]
impl<O> ForeignStream<O> {
    /// As [`StreamRef::from_foreign`], with the stream's owner. If that fails, the owner is dropped.
    ///
    /// Driver calls: `cuStreamGetCtx`, and one for that context's device.
    ///
    /// # Errors
    ///
    /// As [`StreamRef::from_foreign`].
    ///
    /// # Safety
    ///
    /// As for [`StreamRef::from_foreign`], but `raw` need stay a live stream only until `owner` is dropped.
    pub unsafe fn new(driver: Driver, raw: CUstream, owner: O) -> Result<Self> {
        // SAFETY: as the caller says; `owner` is dropped after the stream.
        let stream = unsafe { StreamRef::from_foreign(driver, raw) }?;
        Ok(Self { stream, owner })
    }

    /// What keeps the stream alive.
    pub fn owner(&self) -> &O {
        &self.owner
    }

    /// Gives the owner back.
    pub fn into_owner(self) -> O {
        self.owner
    }
}

impl<O> Deref for ForeignStream<O> {
    type Target = StreamRef;

    #[inline(always)]
    fn deref(&self) -> &StreamRef {
        &self.stream
    }
}

impl<O> AsRef<StreamRef> for ForeignStream<O> {
    fn as_ref(&self) -> &StreamRef {
        self
    }
}

impl<O> fmt::Debug for ForeignStream<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.stream.fmt(f)
    }
}

static_assertions::assert_impl_all!(ForeignStream<()>: Send, Sync);
static_assertions::assert_not_impl_any!(ForeignStream<*mut ()>: Send, Sync);
