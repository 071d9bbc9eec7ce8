//! Events: markers in streams that a program can wait for, query and time.

// In this order, because the documentation has the methods in the order of the modules.
mod record;

mod queries;

mod elapsed;

mod accessors;

mod record_with;

mod flags;

pub use flags::EventFlags;
pub use record_with::RecordFlags;

use core::fmt;
use core::hash::{Hash, Hasher};
use core::mem::ManuallyDrop;
use core::ops::Deref;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use crate::context::Context;
use crate::driver::Driver;
use crate::driver::call::{Answer, call};
use crate::error::{Error, Result};
use crate::handle_traits::impl_handle_traits;
use crate::sys::{CUevent, Function};

#[cfg(doc)]
use crate::sys::calls::*;

/// An event that this process created or imported, and owns: dropping it destroys it.
///
/// 1. Create it with [`new`](Self::new), or take one of many from a [pool](crate::ext::EventPool).
/// 2. [`record`](EventRef::record) it in a stream. [`record_event`](crate::StreamRef::record_event)
///    does steps 1 and 2 in one call.
/// 3. Let a stream wait for it ([`wait_event`](crate::StreamRef::wait_event)), block on it
///    ([`synchronize`](EventRef::synchronize)), ask ([`query`](EventRef::query)), or await it with
///    the crate `cuda-timelines`.
///
/// Any thread may call the methods, and several threads may do so at once. Most methods are on
/// [`EventRef`], to which `Event` dereferences.
///
/// A record stands for the work that is in the stream when the record is made. A new record
/// replaces the old one; waits that were queued before still wait for the old one. An event that
/// was never recorded stands for no work: a query returns `Done`, and a wait ends at once.
///
/// ```
/// use cuda_events::{Context, Device, Event, EventFlags, Stream, StreamOptions};
///
/// # use cuda_soft_driver::examples::Driver;
/// let driver = Driver::load()?;
/// let context = Context::primary(Device::new(driver, 0)?)?;
/// let stream = Stream::new(&context, StreamOptions::new())?;
/// let start = Event::new(&context, EventFlags::TIMING)?;
/// let end = Event::new(&context, EventFlags::TIMING)?;
/// start.record(&stream)?;
/// end.record(&stream)?;
/// end.synchronize()?;
/// assert!(end.query()?.is_done());
/// assert!(start.elapsed_ms(&end)? >= 0.0);
/// println!("the work took {:?}", start.elapsed(&end)?);
/// # Ok::<(), cuda_events::Error>(())
/// ```
///
/// # Dropping it
///
/// A pending event can be dropped: the driver frees it when it completes. Drop ignores errors from
/// the driver; [`close`](Self::close) returns them. Drop does nothing in a forked child. In a
/// context that has failed, the driver keeps the event until the context is released. Do not keep
/// events in thread-locals: these may be dropped while the driver is shutting down.
///
/// An event keeps its context alive. Dropping or closing the event can block only if [nothing else
/// keeps the context](Context#dropping-the-last-share).
pub struct Event(EventRef);

impl_handle_traits!(EventRef: Event);

/// Lets generic code take an `Arc<Event>`.
impl AsRef<EventRef> for Arc<Event> {
    fn as_ref(&self) -> &EventRef {
        self
    }
}

/// An event without the duty to destroy it; [`Event`] dereferences to this type.
///
/// [`from_raw`](Self::from_raw) makes one for an event that other code owns.
///
/// The methods may be called from any thread, and none needs a current context. An `EventRef` keeps
/// its context alive. Dropping it can block only if [nothing else keeps the
/// context](Context#dropping-the-last-share).
///
/// ```
/// use cuda_events::{Context, Device, Event, EventFlags, EventRef};
///
/// # use cuda_soft_driver::examples::Driver;
/// let driver = Driver::load()?;
/// let context = Context::primary(Device::new(driver, 0)?)?;
/// // Stands for the event of another library.
/// let theirs = Event::new(&context, EventFlags::empty())?;
///
/// // SAFETY: the event was created in this context and with these flags, and lives until the end
/// // of the example.
/// let event = unsafe { EventRef::from_raw(&context, theirs.as_raw(), EventFlags::empty()) };
/// assert!(event.query()?.is_done());
/// assert_eq!((event.context(), event.device()), (&context, context.device()));
/// assert_eq!((event.flags(), event.is_imported()), (EventFlags::empty(), false));
/// # Ok::<(), cuda_events::Error>(())
/// ```
pub struct EventRef {
    raw: CUevent,
    driver: Driver,
    context: Context,
    flags: EventFlags,
    imported: bool,
    /// Whether the driver returned an error for this event. `ext::EventPool` reads it before it
    /// lends the event again. It is written only after errors.
    failed: AtomicBool,
}

// SAFETY: CUDA's driver API may be called from any thread, on one object from several at once; the
// handle is an address that this crate never dereferences, and only an atomic flag here
// is mutable.
#[allow(unsafe_code)]
unsafe impl Send for EventRef {}
// SAFETY: as for Send.
#[allow(unsafe_code)]
unsafe impl Sync for EventRef {}

#[allow(unsafe_code)]
impl Event {
    /// Creates an event in the context, which need not be current.
    ///
    /// One driver call with the context current: [`cuEventCreate`]. Dropping the event calls
    /// [`cuEventDestroy`]. Both take one lock of the driver, so threads slow each other down
    /// (`docs/performance.md`). An [`EventPool`](crate::ext::EventPool) avoids the lock.
    ///
    /// # Errors
    ///
    /// * [`Error::TimingWithInterprocess`]: both flags are set.
    /// * `CUDA_ERROR_NOT_SUPPORTED`: the device or platform has no interprocess events.
    /// * `CUDA_ERROR_OUT_OF_MEMORY`: the memory is used up, or the context has a few thousand
    ///   interprocess events already.
    /// * [`Error::ForkedChild`].
    #[doc(alias = "cuEventCreate")]
    #[inline]
    pub fn new(context: &Context, flags: EventFlags) -> Result<Self> {
        if flags.contains(EventFlags::TIMING | EventFlags::INTERPROCESS) {
            return Err(Error::TimingWithInterprocess);
        }
        context.with_current(|| {
            let mut raw = null_mut();
            // SAFETY: a place for the handle; the context is current.
            unsafe { call!(context.driver(), cuEventCreate(&mut raw, flags.to_driver())) }?
                .check()?;
            Ok(Self(EventRef::new(context, raw, flags, false)))
        })
    }

    /// Destroys the event and returns the driver's error, if any. A pending event still completes.
    ///
    /// One driver call: [`cuEventDestroy`]. It can block only if [nothing else keeps the
    /// context](Context#dropping-the-last-share).
    ///
    /// ```
    /// use cuda_events::{Context, Device, EventFlags, Stream, StreamOptions};
    ///
    /// # use cuda_soft_driver::examples::Driver;
    /// let driver = Driver::load()?;
    /// let context = Context::primary(Device::new(driver, 0)?)?;
    /// let stream = Stream::new(&context, StreamOptions::new())?;
    /// let event = stream.record_event(EventFlags::empty())?;
    /// // A drop would ignore an error.
    /// event.close()?;
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Errors of work that was launched earlier; [`Error::ForkedChild`]. After an error, do not use
    /// a copy of the raw handle: the driver may have destroyed the event. In a context that has
    /// failed, the driver returns the context's error and keeps the event until the context is
    /// released.
    #[doc(alias = "cuEventDestroy")]
    pub fn close(self) -> Result<()> {
        let event = self.disarm();
        // SAFETY: the event is owned, and as `self` is consumed this is the one destruction.
        unsafe { call!(event.driver, cuEventDestroy_v2(event.raw)) }?.check()
    }
}

/// # Raw handles
#[allow(unsafe_code)]
impl Event {
    /// Takes ownership of an event that other code created in `context`.
    ///
    /// `flags` are the flags that the event was created with. The driver cannot return them. This
    /// crate needs them for the method [`flags`](EventRef::flags), for error messages, and to
    /// refuse waits that would crash. `from_raw` makes no driver call.
    ///
    /// ```
    /// use cuda_events::{Context, Device, Event, EventFlags};
    ///
    /// # use cuda_soft_driver::examples::Driver;
    /// let driver = Driver::load()?;
    /// let context = Context::primary(Device::new(driver, 0)?)?;
    /// // Another binding takes the handle, and gives it back.
    /// let raw = Event::new(&context, EventFlags::TIMING)?.into_raw();
    /// // SAFETY: the event is alive, was created in this context with these flags, and nothing
    /// // else owns it.
    /// let event = unsafe { Event::from_raw(&context, raw, EventFlags::TIMING) };
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    ///
    /// # Safety
    ///
    /// `raw` must be a live event of `context`, and no other code may destroy it. `flags` must have
    /// [`INTERPROCESS`](EventFlags::INTERPROCESS) if the event was created with it or opened from
    /// another process.
    ///
    /// If the event is recorded in a capture: until the capture has ended, only one thread at a
    /// time may use the event or end the capture. Threads of other code count too. See
    /// [`Capture::begin`](crate::capture::Capture::begin).
    pub unsafe fn from_raw(context: &Context, raw: CUevent, flags: EventFlags) -> Self {
        Self(EventRef::new(context, raw, flags, false))
    }

    /// Gives up ownership and returns the handle. The caller must destroy the event
    /// ([`cuEventDestroy`]) and keep its context alive until then.
    ///
    /// [`from_raw`](Self::from_raw) has an example.
    pub fn into_raw(self) -> CUevent {
        let raw = self.0.raw;
        drop(self.disarm());
        raw
    }

    /// Wraps an event from [`cuIpcOpenEventHandle`].
    pub(crate) fn imported(context: &Context, raw: CUevent, flags: EventFlags) -> Self {
        Self(EventRef::new(context, raw, flags, true))
    }

    /// Takes the inner value out, without running the destructor.
    fn disarm(self) -> EventRef {
        let this = ManuallyDrop::new(self);
        // SAFETY: the field is read once, and `this` is neither used nor dropped afterwards.
        unsafe { core::ptr::read(&this.0) }
    }
}

impl Drop for Event {
    #[allow(unsafe_code)]
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the event is owned and not used afterwards. An error cannot be handled here: the
        // driver may be shutting down with the process, or failed work may have broken the context.
        let _ = unsafe { call!(self.0.driver, cuEventDestroy_v2(self.0.raw)) };
    }
}

impl Deref for Event {
    type Target = EventRef;

    #[inline(always)]
    fn deref(&self) -> &EventRef {
        &self.0
    }
}

#[allow(unsafe_code)]
impl EventRef {
    #[inline]
    fn new(context: &Context, raw: CUevent, flags: EventFlags, imported: bool) -> Self {
        let failed = AtomicBool::new(false);
        Self { raw, driver: context.driver(), context: context.clone(), flags, imported, failed }
    }

    /// An error if the driver would crash in a wait of this context: it does for an interprocess
    /// event of another context.
    pub(crate) fn check_wait(&self, function: Function, waiting: &Context) -> Result<()> {
        if !self.flags.contains(EventFlags::INTERPROCESS) || self.context == *waiting {
            return Ok(());
        }
        Err(self.context.mismatch(waiting, function, None))
    }

    #[inline(always)]
    pub(crate) fn driver(&self) -> Driver {
        self.driver
    }

    /// Out of line, so a success needs no space for an error.
    #[cold]
    #[inline(never)]
    fn refused(&self, answer: Answer) -> Error {
        self.mark_failed();
        answer.error()
    }

    /// Whether a record, a query or a wait of the host ever returned an error for the event,
    /// through any reference.
    #[inline(always)]
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }
}

/// # Waiting for an event
#[allow(unsafe_code)]
impl Context {
    /// Makes all later work in any stream of the context wait for the event's last record. Needs
    /// CUDA 12.5.
    ///
    /// The calling thread does not wait. The event may belong to another context, unless it is an
    /// interprocess event. If this is a primary context, the streams of its [green](Self::green)
    /// contexts wait, too. [`EventRef::record_context`] has an example.
    ///
    /// No stream of the context may be capturing: the call would invalidate that capture.
    ///
    /// One driver call: [`cuCtxWaitEvent`].
    ///
    /// # Errors
    ///
    /// * [`Error::ContextMismatch`]: the event is an interprocess event of another context.
    /// * [`Error::Unsupported`]: the driver is older than CUDA 12.5.
    /// * `CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED`: a stream of the context is capturing.
    /// * [`Error::ForkedChild`].
    #[doc(alias = "cuCtxWaitEvent")]
    pub fn wait_event(&self, event: &EventRef) -> Result<()> {
        let driver = self.driver();
        driver.check(event.driver, Function::cuCtxWaitEvent)?;
        event.check_wait(Function::cuCtxWaitEvent, self)?;
        // SAFETY: context and event are alive as long as their references are.
        unsafe { call!(driver, event.driver; cuCtxWaitEvent?(self.as_raw(), event.raw)) }?.check()
    }
}

/// Compares handle and driver library. After an event is destroyed, the driver may reuse its
/// handle.
impl PartialEq for EventRef {
    fn eq(&self, other: &Self) -> bool {
        self.raw == other.raw && self.driver.is_same_library(other.driver)
    }
}

impl Eq for EventRef {}

impl Hash for EventRef {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.raw.hash(state);
    }
}

impl fmt::Debug for EventRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.show("EventRef", f)
    }
}

impl EventRef {
    /// The debug output of each type that dereferences to this one begins with its own name.
    pub(crate) fn show(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(name)
            .field("raw", &self.raw)
            .field("flags", &self.flags)
            .field("context", &self.context)
            .finish_non_exhaustive()
    }
}

static_assertions::assert_impl_all!(Event: Send, Sync);
static_assertions::assert_not_impl_any!(Event: Clone);
static_assertions::assert_not_impl_any!(EventRef: Clone);
static_assertions::const_assert!(size_of::<Event>() <= 32);
