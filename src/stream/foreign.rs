//! Streams of other libraries.

use core::ops::Deref;
use core::ptr::null_mut;

use super::StreamRef;
use crate::context::Context;
use crate::driver::Driver;
use crate::driver::call::{Entry, entry};
use crate::error::{Error, Result};
use crate::forms::form_of;
use crate::sys::{CUcontext, CUresult, CUstream};

#[allow(unsafe_code)]
impl StreamRef {
    /// Names a stream that other code owns, and asks the driver for its context. Dropping the
    /// result does nothing to it.
    ///
    /// It is for a handle that comes without its context, such as `torch.cuda.Stream.cuda_stream`.
    /// Where the context is known, [`from_raw`](Self::from_raw) makes no driver call, and where it
    /// is the device's primary context, as for PyTorch, a [`Context::primary`] with
    /// [`from_raw`](Self::from_raw) or [`ForeignStream`] keeps it alive, which this does not.
    ///
    /// NULL and the driver's special handles are valid. They mean a stream of the context that is
    /// current on the calling thread now, and go on meaning that one, whatever is current later.
    ///
    /// The stream of a green context has a context that stands for that one; [`Context::is_green`]
    /// tells.
    ///
    /// Driver calls: `cuStreamGetCtx`, and one for that context's device.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_CONTEXT` for a default stream's handle while no context is current; what
    /// else the driver returns; [`Error::ForkedChild`].
    ///
    /// # Safety
    ///
    /// `raw` must be a live stream of this driver, or a default stream's handle, and must stay one
    /// until the result is dropped. Its context must live until all that is made through the
    /// result, such as a recorded event, is dropped. For the stream of a green context the rule of
    /// [`Context::green`] about threads holds.
    ///
    /// The owner may not capture the stream in one thread while another thread uses the result,
    /// even for a record: the driver does not guard what it builds, and crashes. This includes a
    /// stream that joins a capture by a wait, and an event that is recorded through the result
    /// during the capture: until the capture has ended, no other thread may use that event, so do
    /// not await it and do not give it back to a pool. See
    /// [`Capture::begin`](crate::capture::Capture::begin).
    #[doc(alias = "cuStreamGetCtx")]
    #[doc(alias = "from_handle")]
    #[doc(alias = "ExternalStream")]
    #[doc(alias = "get_stream_from_external")]
    pub unsafe fn from_foreign(driver: Driver, raw: CUstream) -> Result<Self> {
        let get = get_context(driver);
        driver.check_fork(get.function)?;
        // SAFETY: a stream that the caller vouches for.
        let context = unsafe { context_of(driver, get, raw) }?;
        // SAFETY: the driver has just named it; the caller vouches for the rest.
        let context = unsafe { Context::from_raw(driver, context) }?;
        Ok(Self::new(&context, raw))
    }
}

type GetContext = unsafe extern "C" fn(CUstream, *mut CUcontext) -> CUresult;

fn get_context(driver: Driver) -> Entry<GetContext> {
    entry!(driver, cuStreamGetCtx)
}

/// The context that the driver names for the stream.
///
/// # Safety
///
/// `raw` must be a live stream of the driver, or a default stream's handle.
#[allow(unsafe_code)]
unsafe fn context_of(driver: Driver, get: Entry<GetContext>, raw: CUstream) -> Result<CUcontext> {
    let mut context = null_mut();
    // SAFETY: a place for the handle, and a stream that the caller vouches for.
    get.ask(driver, |get| unsafe { get(raw, &mut context) })?.check()?;
    Ok(context)
}

/// A stream that another library owns, together with what keeps it alive: an `Arc` of that
/// library's stream, a Python object, a box of anything.
///
/// What can be done with it is on [`StreamRef`], which this type dereferences to. The owner is
/// dropped last.
///
/// It takes a [`Context`] of this crate, which keeps the stream's context alive for everything that
/// is made through the stream, also after the owner is gone. [`Context::primary`] of the same
/// device is the right one for cudarc's `CudaContext::new`, for PyTorch and for the CUDA runtime:
/// they all use the device's primary context, and it is retained once more. A context of another
/// kind is named by [`Context::from_raw_with_owner`].
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
/// // SAFETY: the `Arc` keeps the stream alive, and no other thread captures it.
/// let ours = unsafe { ForeignStream::new(&context, theirs.as_raw(), theirs.clone()) }?;
/// let event = ours.record_event(EventFlags::empty())?;
/// drop((ours, theirs));
/// event.synchronize()?; // the event keeps the context
/// # Ok::<(), cuda_events::Error>(())
/// ```
///
/// With cudarc 0.19, as `tests/foreign/cudarc` in the repository runs it:
///
/// ```text
/// // cudarc's own.
/// let theirs = CudaContext::new(0)?;
/// let their_stream = theirs.new_stream()?;
///
/// // Retains the same primary context once more, so that what is made here may outlive cudarc's
/// // objects.
/// let context = Context::primary(Device::new(Driver::load()?, 0)?)?;
/// let raw = their_stream.cu_stream().cast();
/// // SAFETY: the `Arc` keeps the stream alive, and no other thread captures it.
/// let stream = unsafe { ForeignStream::new(&context, raw, their_stream.clone()) }?;
/// let done = stream.record_event(EventFlags::empty())?;
///
/// let their_event = their_stream.record_event(None)?;
/// // SAFETY: `their_event` is dropped after it, has no flags but no timing, and is recorded in no
/// // capture.
/// let event =
///     unsafe { EventRef::from_raw(&context, their_event.cu_event().cast(), EventFlags::empty()) };
/// Stream::new(&context, StreamOptions::new())?.wait_event(&event)?;
///
/// drop((event, their_event, stream, their_stream, theirs));
/// done.synchronize()?; // keeps the primary context
/// ```
pub struct ForeignStream<O> {
    // Before the owner, and so dropped before it: whatever the owner keeps alive is alive as long
    // as the stream is named.
    stream: StreamRef,
    owner: O,
}

#[allow(unsafe_code)]
impl<O> ForeignStream<O> {
    /// Names a stream of `context` that other code owns, and keeps `owner`, which keeps the stream
    /// alive.
    ///
    /// NULL and the driver's special handles are valid: they mean a default stream of `context`.
    ///
    /// One driver call, `cuStreamGetCtx`, which makes sure of the context; none for a default
    /// stream's handle.
    ///
    /// # Errors
    ///
    /// [`Error::ContextMismatch`] for a stream of another context, such as one of a green context;
    /// what the driver returns; [`Error::ForkedChild`]. The owner is dropped then.
    ///
    /// # Safety
    ///
    /// `raw` must be a live stream of the context's driver, or a default stream's handle, and must
    /// stay one until `owner` is dropped.
    ///
    /// The owner may not capture the stream in one thread while another thread uses the result,
    /// even for a record: the driver does not guard what it builds, and crashes. This includes a
    /// stream that joins a capture by a wait, and an event that is recorded through the result
    /// during the capture: until the capture has ended, no other thread may use that event, so do
    /// not await it and do not give it back to a pool. See
    /// [`Capture::begin`](crate::capture::Capture::begin).
    #[doc(alias = "cuStreamGetCtx")]
    #[doc(alias = "ExternalStream")]
    pub unsafe fn new(context: &Context, raw: CUstream, owner: O) -> Result<Self> {
        let stream = StreamRef::new(context, raw);
        let get = get_context(stream.driver());
        stream.driver().check_fork(get.function)?;
        if !stream.is_default() {
            // SAFETY: a stream that the caller vouches for.
            let theirs = unsafe { context_of(stream.driver(), get, raw) }?;
            if theirs != context.as_raw() {
                // SAFETY: the driver has just named it, and its stream is alive.
                let theirs = unsafe { Context::from_raw(stream.driver(), theirs) }?;
                let devices = [context, &theirs].map(|context| context.device().ordinal());
                return Err(Error::context_mismatch(get.function, None, devices));
            }
        }
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

form_of!(StreamRef: ForeignStream<O>, O);

static_assertions::assert_impl_all!(ForeignStream<()>: Send, Sync);
static_assertions::assert_not_impl_any!(ForeignStream<*mut ()>: Send, Sync);
