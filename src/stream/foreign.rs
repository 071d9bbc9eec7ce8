//! Default streams, and streams that other libraries own.

use core::ops::Deref;
use core::ptr::null_mut;

use super::StreamRef;
use crate::context::Context;
use crate::driver::Driver;
use crate::driver::call::call;
#[cfg(doc)]
use crate::error::Error;
use crate::error::Result;
use crate::handle_traits::impl_handle_traits;
use crate::sys::{CU_STREAM_LEGACY, CU_STREAM_PER_THREAD, CUcontext, CUstream, Function};

#[cfg(doc)]
use crate::sys::calls::*;

/// # Making a `StreamRef`
#[allow(unsafe_code)]
impl StreamRef {
    /// Returns the default stream of the context, whose handle is NULL.
    ///
    /// It is the [legacy](Self::legacy_default) or the [per-thread](Self::per_thread_default)
    /// default stream, depending on how the driver was
    /// [loaded](crate::LoadOptions::per_thread_default_stream). It compares equal to that stream.
    ///
    /// ```
    /// use cuda_events::{Context, Device, StreamRef};
    ///
    /// # use cuda_soft_driver::examples::Driver;
    /// let driver = Driver::load()?;
    /// let context = Context::primary(Device::new(driver, 0)?)?;
    /// // The driver was loaded without an option for its default stream.
    /// let stream = StreamRef::default_stream(&context);
    /// assert_eq!(stream, StreamRef::legacy_default(&context));
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    pub fn default_stream(context: &Context) -> Self {
        Self::new(context, null_mut())
    }

    /// Returns the legacy default stream of the context (`CU_STREAM_LEGACY`), which synchronizes
    /// with all blocking streams of the context.
    ///
    /// [`per_thread_default`](Self::per_thread_default) has an example.
    #[doc(alias = "CU_STREAM_LEGACY")]
    #[doc(alias = "LEGACY_DEFAULT_STREAM")]
    pub fn legacy_default(context: &Context) -> Self {
        Self::new(context, CU_STREAM_LEGACY)
    }

    /// Returns the per-thread default stream of the context (`CU_STREAM_PER_THREAD`).
    ///
    /// Each thread that uses the result uses its own stream. A [green](Context::green) context has
    /// no such stream: there the driver returns `CUDA_ERROR_INVALID_HANDLE`.
    ///
    /// ```
    /// use cuda_events::{Context, Device, StreamRef};
    ///
    /// # use cuda_soft_driver::examples::Driver;
    /// let driver = Driver::load()?;
    /// let context = Context::primary(Device::new(driver, 0)?)?;
    ///
    /// let own = StreamRef::per_thread_default(&context);
    /// let legacy = StreamRef::legacy_default(&context);
    /// // Later work of this thread in its own stream runs after the work that is now in the stream
    /// // shared by all threads.
    /// own.wait_stream(&legacy)?;
    /// own.synchronize()?;
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    #[doc(alias = "CU_STREAM_PER_THREAD")]
    #[doc(alias = "PER_THREAD_DEFAULT_STREAM")]
    pub fn per_thread_default(context: &Context) -> Self {
        Self::new(context, CU_STREAM_PER_THREAD)
    }

    /// Wraps a stream of `context` that other code owns. It makes no driver call.
    ///
    /// Dropping the result does not affect the stream. NULL and the driver's special handles are
    /// valid. NULL is the [default stream](Self::default_stream) of `context`. [`StreamRef`] has an
    /// example.
    ///
    /// # Safety
    ///
    /// `raw` must be a live stream of `context`, or a default stream's handle, until the result is
    /// dropped.
    ///
    /// The stream may take part in a capture of the owner. Until that capture ends, only one thread
    /// at a time may use the capture, its streams and its events. Threads of the owner count too:
    /// see [`Capture::begin`](crate::capture::Capture::begin). Futures and pools may use an event
    /// on another thread, and so may [`wait_stream`](StreamRef::wait_stream). So do not await an event
    /// that was recorded in the capture, do not return it to a pool, and call `wait_stream` only while
    /// a [`ForeignCapture`](crate::foundation::ForeignCapture) of the capture exists.
    ///
    /// A [semaphore](crate::external#captures) that is used in a capture of the owner must outlive
    /// the graph and its executable graphs.
    pub unsafe fn from_raw(context: &Context, raw: CUstream) -> Self {
        Self::new(context, raw)
    }

    /// Wraps a stream that other code owns, and gets its context from the driver.
    ///
    /// Use this for a handle without its context, such as `torch.cuda.Stream.cuda_stream`. If you
    /// know the context, use [`from_raw`](Self::from_raw). Dropping the result does not affect the
    /// stream.
    ///
    /// The [`context`](Self::context) of the result is [borrowed](Context::from_raw): nothing keeps
    /// it alive. PyTorch uses the device's primary context. To keep that one alive, call
    /// [`Context::primary`], and then [`from_raw`](Self::from_raw) or [`ForeignStream::new`].
    ///
    /// NULL and the driver's special handles are valid. They stand for a stream of the context that
    /// is current on the calling thread now. A later change of the current context does not affect
    /// the result.
    ///
    /// ```
    /// use cuda_events::{Context, Device, EventFlags, Stream, StreamOptions, StreamRef};
    ///
    /// # use cuda_soft_driver::examples::Driver;
    /// let driver = Driver::load()?;
    /// let context = Context::primary(Device::new(driver, 0)?)?;
    /// let owned = Stream::new(&context, StreamOptions::new())?;
    /// let raw = owned.as_raw();
    /// // `raw` is the handle of another library's stream.
    /// // SAFETY: the stream and its context live until the end of the example, and the stream is
    /// // not captured.
    /// let stream = unsafe { StreamRef::from_foreign(driver, raw) }?;
    /// let event = stream.record_event(EventFlags::empty())?;
    /// event.synchronize()?;
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    ///
    /// Driver calls: [`cuStreamGetCtx`], and that of [`Context::from_raw`].
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_CONTEXT` for a default stream's handle if no context is current;
    /// [`Error::ForkedChild`].
    ///
    /// # Safety
    ///
    /// `raw` must be a live stream of this driver, or a default stream's handle, until the result
    /// is dropped. Its context must outlive every object made through the result, such as a
    /// recorded event. For a stream of a green context, [`Context::green`] has a rule about
    /// threads.
    ///
    /// The stream may take part in a capture of the owner. Until that capture ends, only one thread
    /// at a time may use the capture, its streams and its events. Threads of the owner count too:
    /// see [`Capture::begin`](crate::capture::Capture::begin). Futures and pools may use an event
    /// on another thread, and so may [`wait_stream`](StreamRef::wait_stream). So do not await an event
    /// that was recorded in the capture, do not return it to a pool, and call `wait_stream` only while
    /// a [`ForeignCapture`](crate::foundation::ForeignCapture) of the capture exists.
    ///
    /// A [semaphore](crate::external#captures) that is used in a capture of the owner must outlive
    /// the graph and its executable graphs.
    #[doc(alias = "cuStreamGetCtx")]
    #[doc(alias = "from_handle")]
    #[doc(alias = "ExternalStream")]
    #[doc(alias = "get_stream_from_external")]
    pub unsafe fn from_foreign(driver: Driver, raw: CUstream) -> Result<Self> {
        // SAFETY: a stream that the caller vouches for.
        let context = unsafe { context_of(driver, raw) }?;
        // SAFETY: the driver has just returned it; the caller vouches for the rest.
        let context = unsafe { Context::from_raw(driver, context) }?;
        Ok(Self::new(&context, raw))
    }
}

/// The context that the driver returns for the stream.
///
/// # Safety
///
/// `raw` must be a live stream of the driver, or a default stream's handle.
#[allow(unsafe_code)]
unsafe fn context_of(driver: Driver, raw: CUstream) -> Result<CUcontext> {
    let mut context = null_mut();
    // SAFETY: a place for the handle, and a stream that the caller vouches for.
    unsafe { call!(driver, cuStreamGetCtx(raw, &mut context)) }?.check()?;
    Ok(context)
}

/// A stream that another library owns, together with an owner that keeps it alive.
///
/// The owner can be an `Arc` of that library's stream, a Python object, or a box of anything. It is
/// dropped last. The type dereferences to [`StreamRef`], which has the methods of the stream.
///
/// [`new`](Self::new) takes a [`Context`] of this crate. This context keeps the stream's context
/// alive for every object made through the stream, even after the owner is gone. cudarc's
/// `CudaContext::new`, PyTorch and the CUDA runtime use the device's primary context: pass
/// [`Context::primary`] of the same device. For any other context use
/// [`Context::from_raw_with_owner`].
///
/// ```
/// use std::sync::Arc;
///
/// use cuda_events::{Context, Device, EventFlags, ForeignStream, Stream, StreamOptions};
///
/// # use cuda_soft_driver::examples::Driver;
/// let driver = Driver::load()?;
/// let context = Context::primary(Device::new(driver, 0)?)?;
/// // Stands for the stream of another library.
/// let theirs = Arc::new(Stream::new(&context, StreamOptions::new())?);
///
/// // SAFETY: the `Arc` keeps the stream alive, and no other thread captures it.
/// let ours = unsafe { ForeignStream::new(&context, theirs.as_raw(), theirs.clone()) }?;
/// let event = ours.record_event(EventFlags::empty())?;
/// assert!(Arc::ptr_eq(ours.owner(), &theirs));
/// drop(ours.into_owner()); // or `drop(ours)`
/// drop(theirs);
/// event.synchronize()?; // the event keeps the context
/// # Ok::<(), cuda_events::Error>(())
/// ```
///
/// The crate `cuda-events-cudarc` adopts cudarc's objects without unsafe code.
pub struct ForeignStream<O> {
    // The field before the owner, and so dropped first: everything that the owner keeps alive
    // outlives the `StreamRef`.
    stream: StreamRef,
    owner: O,
}

#[allow(unsafe_code)]
impl<O> ForeignStream<O> {
    /// Wraps a stream of `context` that other code owns, together with an `owner` that keeps it
    /// alive.
    ///
    /// NULL and the driver's special handles are valid: they stand for a default stream of
    /// `context`.
    ///
    /// One driver call: [`cuStreamGetCtx`], to check the context. For a default stream's handle it
    /// makes none.
    ///
    /// # Errors
    ///
    /// [`Error::ContextMismatch`] if the stream belongs to another context, such as a green
    /// context; [`Error::ForkedChild`]. On an error the owner is dropped.
    ///
    /// # Safety
    ///
    /// `raw` must be a live stream of the context's driver, or a default stream's handle, until
    /// `owner` is dropped.
    ///
    /// The stream may take part in a capture of the owner. Until that capture ends, only one thread
    /// at a time may use the capture, its streams and its events. Threads of the owner count too:
    /// see [`Capture::begin`](crate::capture::Capture::begin). Futures and pools may use an event
    /// on another thread, and so may [`wait_stream`](StreamRef::wait_stream). So do not await an event
    /// that was recorded in the capture, do not return it to a pool, and call `wait_stream` only while
    /// a [`ForeignCapture`](crate::foundation::ForeignCapture) of the capture exists.
    ///
    /// A [semaphore](crate::external#captures) that is used in a capture of the owner must outlive
    /// the graph and its executable graphs.
    #[doc(alias = "cuStreamGetCtx")]
    #[doc(alias = "ExternalStream")]
    pub unsafe fn new(context: &Context, raw: CUstream, owner: O) -> Result<Self> {
        let stream = StreamRef::new(context, raw);
        let (driver, function) = (stream.driver(), Function::cuStreamGetCtx);
        driver.check_alone(function)?;
        if !stream.is_default() {
            // SAFETY: a stream that the caller vouches for.
            let theirs = unsafe { context_of(driver, raw) }?;
            if theirs != context.as_raw() {
                // SAFETY: the driver has just returned it, and its stream is alive.
                let theirs = unsafe { Context::from_raw(driver, theirs) }?;
                return Err(context.mismatch(&theirs, function, None));
            }
        }
        Ok(Self { stream, owner })
    }

    /// Returns the owner, which keeps the stream alive.
    pub fn owner(&self) -> &O {
        &self.owner
    }

    /// Returns the owner and drops the rest, without destroying the stream.
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

impl_handle_traits!(StreamRef: ForeignStream<O>);

static_assertions::assert_impl_all!(ForeignStream<()>: Send, Sync);
static_assertions::assert_not_impl_any!(ForeignStream<*mut ()>: Send, Sync);
