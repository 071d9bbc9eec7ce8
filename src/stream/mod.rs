//! Streams: queues of work that runs in order.

use core::fmt;
use core::hash::{Hash, Hasher};
use core::mem::ManuallyDrop;
use core::ops::Deref;
use core::ptr::null_mut;
use std::sync::Arc;

use crate::context::Context;
use crate::driver::Driver;
use crate::driver::call::{Answer, Target, call};
use crate::error::{Error, Result};
use crate::handle_traits::impl_handle_traits;
use crate::sys::{
    CU_STREAM_DEFAULT, CU_STREAM_LEGACY, CU_STREAM_NON_BLOCKING, CU_STREAM_PER_THREAD, CUresult,
    CUstream, Function, Symbols,
};

// In this order, because the documentation has the methods in the order of the modules.
mod waits;

mod foreign;

mod accessors;

pub(crate) mod capture_info;

pub mod host_functions;

pub mod mem_ops;

pub mod attributes;

mod options;

use options::Priority;

pub use foreign::ForeignStream;
pub use options::{PriorityRange, StreamOptions};
pub use waits::WaitFlags;

#[cfg(doc)]
use crate::sys::calls::*;

/// A stream that this process created and owns: dropping it destroys it.
///
/// Work runs in the order in which it is put into the stream, while the host goes on. This crate
/// launches no kernels and no copies. Give the stream's handle ([`as_raw`](StreamRef::as_raw)) to a
/// library that does.
///
/// * To make another stream wait for this one, use [`wait_stream`](StreamRef::wait_stream) or
///   [`wait_event`](StreamRef::wait_event). To make the host wait, use
///   [`synchronize`](StreamRef::synchronize).
/// * [`StreamRef::default_stream`] is the default stream of a context. A [`ForeignStream`] is a
///   stream of another library.
///
/// Any thread may call the methods, and several threads may do so at once. Most methods are on
/// [`StreamRef`], to which `Stream` dereferences.
///
/// ```
/// use cuda_events::{Context, Device, Stream, StreamOptions};
/// use std::time::Duration;
///
/// # use cuda_soft_driver::examples::Driver;
/// let driver = Driver::load()?;
/// let context = Context::primary(Device::new(driver, 0)?)?;
/// let first = Stream::new(&context, StreamOptions::new())?;
/// let urgent = Stream::new(&context, StreamOptions::new().priority_clamped(-3))?;
/// assert!(context.stream_priority_range()?.contains(urgent.priority()?));
/// // Later work in `urgent` runs after the work that is now in `first`.
/// urgent.wait_stream(&first)?;
/// assert!(urgent.synchronize_timeout(Duration::from_secs(10))?.is_done());
/// first.close()?; // a drop would ignore an error
/// # Ok::<(), cuda_events::Error>(())
/// ```
///
/// # Dropping it
///
/// Dropping a stream with work in it does not wait: the driver frees the stream when the work is
/// done. Drop ignores errors from the driver; [`close`](Self::close) returns them. Drop does
/// nothing in a forked child. In a context that has failed, the driver keeps the stream until the
/// context is released.
///
/// A stream keeps its context alive. Dropping or closing the stream can block only if [nothing else
/// keeps the context](Context#dropping-the-last-share).
pub struct Stream(StreamRef);

impl_handle_traits!(StreamRef: Stream);

/// A stream without the duty to destroy it; [`Stream`] dereferences to this type.
///
/// [`default_stream`](Self::default_stream) makes one for a default stream, and
/// [`from_raw`](Self::from_raw) for a stream that other code owns.
///
/// The methods may be called from any thread, and none needs a current context. A `StreamRef` keeps
/// its [`Context`] alive. Dropping it can block only if [nothing else keeps the
/// context](Context#dropping-the-last-share).
///
/// ```
/// use cuda_events::{Context, Device, Event, EventFlags, Stream, StreamOptions, StreamRef};
///
/// # use cuda_soft_driver::examples::Driver;
/// let driver = Driver::load()?;
/// let context = Context::primary(Device::new(driver, 0)?)?;
/// // The default stream, which every context has, and the stream of another library.
/// let default = StreamRef::default_stream(&context);
/// let owned = Stream::new(&context, StreamOptions::new())?;
/// let raw = owned.as_raw();
/// // SAFETY: the stream was created in this context, and lives until the end of the example.
/// let theirs = unsafe { StreamRef::from_raw(&context, raw) };
/// theirs.wait_stream(&default)?;
/// theirs.synchronize()?;
///
/// assert_eq!((theirs.context(), theirs.device()), (&context, context.device()));
/// assert_eq!(theirs.id()?, owned.id()?); // needs CUDA 12.0
/// // For Python's `__cuda_stream__`: the protocol's version and the handle.
/// assert_eq!(theirs.cuda_stream(), (0, raw.addr()));
/// # Ok::<(), cuda_events::Error>(())
/// ```
pub struct StreamRef {
    raw: CUstream,
    driver: Driver,
    context: Context,
}

// SAFETY: CUDA's driver API may be called from any thread, on one object from several at once; the
// handle is an address that this crate never dereferences, and nothing is mutable.
#[allow(unsafe_code)]
unsafe impl Send for StreamRef {}
// SAFETY: as for Send.
#[allow(unsafe_code)]
unsafe impl Sync for StreamRef {}

#[allow(unsafe_code)]
impl Stream {
    /// Creates a stream in the context, which need not be current.
    ///
    /// By default the stream has the lowest priority and is non-blocking: it does not synchronize
    /// with the legacy default stream. The driver's own default is a blocking stream.
    ///
    /// One driver call with the context current: [`cuStreamCreate`], or
    /// [`cuStreamCreateWithPriority`] for a stream with a priority. Two options make one more call:
    ///
    /// * [`StreamOptions::priority`]: [`cuCtxGetStreamPriorityRange`] with the context current, to
    ///   check the priority.
    /// * [`StreamOptions::blocking`]: that of [`Context::is_green`], to refuse a green context.
    ///
    /// # Errors
    ///
    /// * [`Error::BlockingInGreenContext`]: the stream would be blocking, and the context is
    ///   [green](Context::green).
    /// * [`Error::PriorityOutOfRange`]: the priority is outside the context's range.
    /// * `CUDA_ERROR_OUT_OF_MEMORY`: the memory for the stream is used up.
    /// * [`Error::ForkedChild`].
    #[doc(alias = "cuStreamCreate")]
    #[doc(alias = "cuStreamCreateWithPriority")]
    pub fn new(context: &Context, options: StreamOptions) -> Result<Self> {
        // The driver creates it, and NVIDIA's page of green contexts demands non-blocking streams.
        if options.blocking && context.is_green()? {
            return Err(Error::BlockingInGreenContext);
        }
        let flags = if options.blocking { CU_STREAM_DEFAULT } else { CU_STREAM_NON_BLOCKING };
        context.with_current(|| {
            let mut raw = null_mut();
            let priority = match options.priority {
                Priority::Least => None,
                Priority::Exactly(priority) => {
                    let PriorityRange { least, greatest } = context.stream_priority_range()?;
                    if !(PriorityRange { least, greatest }).contains(priority) {
                        return Err(Error::PriorityOutOfRange { priority, least, greatest });
                    }
                    Some(priority)
                }
                // The driver itself takes the nearest priority that it has.
                Priority::Nearest(priority) => Some(priority),
            };
            let created = match priority {
                // SAFETY: a place for the handle; the context is current.
                None => unsafe { call!(context.driver(), cuStreamCreate(&mut raw, flags)) },
                // SAFETY: as above.
                Some(it) => unsafe {
                    call!(context.driver(), cuStreamCreateWithPriority(&mut raw, flags, it))
                },
            };
            created?.check()?;
            Ok(Self(StreamRef::new(context, raw)))
        })
    }

    /// Destroys the stream and returns the driver's error, if any. Work in the stream still runs to
    /// its end.
    ///
    /// One driver call: [`cuStreamDestroy`]. It can block only if [nothing else keeps the
    /// context](Context#dropping-the-last-share).
    ///
    /// # Errors
    ///
    /// Errors of work that was launched earlier; [`Error::ForkedChild`]. After an error, do not use
    /// a copy of the raw handle: the driver may have destroyed the stream. In a context that has
    /// failed, the driver returns the context's error and keeps the stream until the context is
    /// released.
    #[doc(alias = "cuStreamDestroy")]
    pub fn close(self) -> Result<()> {
        let stream = self.disarm();
        // SAFETY: the stream is owned, and as `self` is consumed this is the one destruction.
        unsafe { call!(stream.driver, cuStreamDestroy_v2(stream.raw)) }?.check()
    }
}

/// # Raw handles
#[allow(unsafe_code)]
impl Stream {
    /// Takes ownership of a stream that other code created in `context`.
    ///
    /// It makes no driver call.
    ///
    /// ```
    /// use cuda_events::{Context, Device, Stream, StreamOptions};
    ///
    /// # use cuda_soft_driver::examples::Driver;
    /// let driver = Driver::load()?;
    /// let context = Context::primary(Device::new(driver, 0)?)?;
    /// // Another binding takes the handle, and gives it back.
    /// let raw = Stream::new(&context, StreamOptions::new())?.into_raw();
    /// // SAFETY: the stream is alive, was created in this context, and nothing else owns it.
    /// let stream = unsafe { Stream::from_raw(&context, raw) };
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    ///
    /// # Safety
    ///
    /// `raw` must be a live stream of `context` from [`cuStreamCreate`] or a similar call, not a
    /// default stream, and no other code may destroy it.
    ///
    /// The stream may take part in a capture of other code. Until that capture ends, only one
    /// thread at a time may use the capture, its streams and its events. Threads of that code count
    /// too: see [`Capture::begin`](crate::capture::Capture::begin). Futures and pools may use an
    /// event on another thread, and so may [`wait_stream`](StreamRef::wait_stream). So do not await an
    /// event that was recorded in the capture, do not return it to a pool, and call `wait_stream` only
    /// while a [`ForeignCapture`](crate::foundation::ForeignCapture) of the capture exists.
    ///
    /// A [semaphore](crate::external#captures) that is used in a capture of other code must outlive
    /// the graph and its executable graphs.
    pub unsafe fn from_raw(context: &Context, raw: CUstream) -> Self {
        Self(StreamRef::new(context, raw))
    }

    /// Gives up ownership and returns the handle. The caller must destroy the stream
    /// ([`cuStreamDestroy`]) and keep its context alive until then.
    ///
    /// [`from_raw`](Self::from_raw) has an example.
    pub fn into_raw(self) -> CUstream {
        let raw = self.0.raw;
        drop(self.disarm());
        raw
    }

    /// Takes the inner value out, without running the destructor.
    fn disarm(self) -> StreamRef {
        let this = ManuallyDrop::new(self);
        // SAFETY: the field is read once, and `this` is neither used nor dropped afterwards.
        unsafe { core::ptr::read(&this.0) }
    }
}

impl Drop for Stream {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // SAFETY: the stream is owned and not used afterwards. An error cannot be handled here: the
        // driver may be shutting down with the process, or failed work may have broken the context.
        let _ = unsafe { call!(self.0.driver, cuStreamDestroy_v2(self.0.raw)) };
    }
}

impl Deref for Stream {
    type Target = StreamRef;

    #[inline(always)]
    fn deref(&self) -> &StreamRef {
        &self.0
    }
}

#[allow(unsafe_code)]
impl StreamRef {
    fn new(context: &Context, raw: CUstream) -> Self {
        Self { raw, driver: context.driver(), context: context.clone() }
    }

    /// Whether the handle is NULL or one of the driver's constants, which stand for a stream of the
    /// current context.
    #[inline(always)]
    pub(crate) fn is_default(&self) -> bool {
        self.raw.addr() <= CU_STREAM_PER_THREAD.addr()
    }

    /// The handle that stands for this stream in every table of its library. NULL stands for one of
    /// two streams, depending on the table through which a call is made.
    pub(crate) fn meaning(&self) -> CUstream {
        match (self.raw.is_null(), self.driver.is_per_thread_default_stream()) {
            (false, _) => self.raw,
            (true, false) => CU_STREAM_LEGACY,
            (true, true) => CU_STREAM_PER_THREAD,
        }
    }

    /// Whether the handle stands for another stream in each thread.
    pub(crate) fn is_per_thread(&self) -> bool {
        self.meaning() == CU_STREAM_PER_THREAD
    }

    /// Each call has its own copy of this, so the parts that need no copy are elsewhere.
    #[cold]
    #[inline(never)]
    fn make_in_context(
        &self,
        other: Driver,
        function: Function,
        call: impl FnOnce(&'static Symbols) -> CUresult,
    ) -> Result<Answer> {
        let pushed = self.enter(other, function)?;
        let answer = Answer::new(self.driver, function, call(self.driver.symbols()));
        if pushed { self.leave(answer) } else { Ok(answer) }
    }

    /// Makes the stream's context current for a call; returns whether it was not current before.
    #[inline(never)]
    fn enter(&self, other: Driver, function: Function) -> Result<bool> {
        // Before the calls that make the context current.
        self.driver.check(other, function)?;
        self.context.enter()
    }

    #[inline(never)]
    fn leave(&self, answer: Answer) -> Result<Answer> {
        let restored = self.context.leave();
        // The call's own error comes first, as everywhere.
        if answer.is_success() { restored.map(|()| answer) } else { Ok(answer) }
    }

    #[inline(always)]
    pub(crate) fn driver(&self) -> Driver {
        self.driver
    }
}

/// If the handle is NULL or a constant of the driver, which stand for a stream of the current
/// context, the call is made with the stream's context current.
impl Target for &StreamRef {
    #[inline(always)]
    fn driver(self) -> Driver {
        self.driver
    }

    #[inline(always)]
    fn make(
        self,
        other: Driver,
        function: Function,
        call: impl FnOnce(&'static Symbols) -> CUresult,
    ) -> Result<Answer> {
        if self.is_default() {
            self.make_in_context(other, function, call)
        } else {
            self.driver.make(other, function, call)
        }
    }
}

impl AsRef<StreamRef> for StreamRef {
    fn as_ref(&self) -> &StreamRef {
        self
    }
}

/// Lets generic code take an `Arc<Stream>`.
impl AsRef<StreamRef> for Arc<Stream> {
    fn as_ref(&self) -> &StreamRef {
        self
    }
}

/// Compares handle and driver library. Default streams also compare by context, because all
/// contexts share their handles. NULL is equal to the default stream that it stands for, the legacy
/// or the per-thread one. After a stream is destroyed, the driver may reuse its handle.
impl PartialEq for StreamRef {
    fn eq(&self, other: &Self) -> bool {
        self.meaning() == other.meaning()
            && if self.is_default() {
                self.context == other.context
            } else {
                self.driver.is_same_library(other.driver)
            }
    }
}

impl Eq for StreamRef {}

impl Hash for StreamRef {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.meaning().hash(state);
    }
}

impl fmt::Debug for StreamRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.show("StreamRef", f)
    }
}

impl StreamRef {
    /// The debug output of each type that dereferences to this one begins with its own name.
    pub(crate) fn show(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(name)
            .field("raw", &self.raw)
            .field("context", &self.context)
            .finish_non_exhaustive()
    }
}

static_assertions::assert_impl_all!(Stream: Send, Sync);
static_assertions::assert_not_impl_any!(Stream: Clone);
static_assertions::assert_not_impl_any!(StreamRef: Clone);
static_assertions::const_assert!(size_of::<Stream>() <= 64);
