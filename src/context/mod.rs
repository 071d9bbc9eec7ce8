//! Contexts, in which events and streams are created.

use core::any::Any;
use core::ffi::c_int;
use core::fmt;
use core::hash::{Hash, Hasher};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, OnceLock, Weak};

mod current;

pub use self::current::CurrentContext;
use self::current::{current, push, restore, with_current};
use crate::device::{Device, Uuid};
use crate::driver::Driver;
use crate::driver::call::call;
use crate::driver::fork;
use crate::driver::process::Identity;
use crate::error::{Error, Result};
use crate::sys::{
    CU_STREAM_LEGACY, CUcontext, CUevent, CUevent_st, CUgreenCtx, CUresult, Function,
};

#[cfg(doc)]
use crate::sys::calls::*;

/// A CUDA context, shared by reference count; a clone is cheap.
///
/// [`primary`](Self::primary) retains a device's primary context, the one that the CUDA runtime,
/// PyTorch and most libraries use. It is released when the last clone and the last object made in
/// it are dropped. This last drop [can block](#dropping-the-last-share).
/// [`from_raw`](Self::from_raw) wraps a context that other code owns. [`green`](Self::green)
/// creates a context with a part of the device's multiprocessors.
///
/// ```
/// use cuda_events::{Context, Device, Event, EventFlags, Stream, StreamOptions};
///
/// # use cuda_soft_driver::examples::Driver;
/// let driver = Driver::load()?;
/// let context = Context::primary(Device::new(driver, 0)?)?;
/// let stream = Stream::new(&context, StreamOptions::new())?;
/// let event = Event::new(&context, EventFlags::empty())?;
/// assert_eq!(stream.context(), event.context());
/// assert_eq!(context.device().ordinal(), 0);
/// drop(context); // `stream` and `event` keep it
/// event.record(&stream)?;
/// # Ok::<(), cuda_events::Error>(())
/// ```
///
/// # Current contexts
///
/// Any thread may use a context, and the context need not be current on that thread. Only
/// [green](Self::green) contexts have a rule about threads. If a driver call needs a current
/// context, the method makes its object's context current for the call. Then it restores the
/// previous one.
///
/// "With the context current" in a list of driver calls means that the method also calls
/// [`cuCtxGetCurrent`]. If the context is not current already, the method also calls
/// [`cuCtxPushCurrent`] and [`cuCtxPopCurrent`].
///
/// # Dropping the last share
///
/// Every clone of a context holds a share of it. So does every event, stream or other object made
/// in it. Dropping a share is cheap and does not wait, except for the last one:
///
/// * For a context from [`primary`](Self::primary), the last drop calls
///   [`cuDevicePrimaryCtxRelease`]. If no other code in the process retains the context, this call
///   waits for the context's work, and destroys the context.
/// * For a context from [`green`](Self::green), the last drop calls [`cuGreenCtxDestroy`], which
///   may wait too.
/// * For a context with an [owner](Self::from_raw_with_owner), the last drop drops the owner, which
///   may wait too.
///
/// **The last drop blocks forever if the work never ends**, for example if
///
/// * a stream waits for an event whose exporter was killed before the record completed,
/// * a stream waits for a value in memory that is never written,
/// * a stream waits for a value that the dropping thread would signal later,
/// * a host function needs a lock that the dropping thread holds.
///
/// The last drop also waits for work in a stream of another context in two cases:
///
/// * A stream of this context waits for an event of that stream.
/// * A [graph](crate::graph::GraphExec) of this context was launched in that stream.
///
/// To make sure that no drop blocks:
///
/// * Make a stream wait for an imported event only after the host has seen the event done: see
///   [`ExporterProcess::wait_for`](crate::ipc::ExporterProcess::wait_for).
/// * Hold no lock that a host function needs while you drop the last share.
/// * If a stream has work that may never end, call [`abandon`](Self::abandon) before the last share
///   is dropped.
///
/// Contexts compare by handle and driver library.
#[derive(Clone)]
pub struct Context(Arc<Inner>);

struct Inner {
    raw: CUcontext,
    device: Device,
    owned: Owned,
    /// The device and this process, for other processes: see [`Context::device_and_process`].
    exporter: OnceLock<(Uuid, u32, Identity)>,
    /// The event that `wait_stream` records in the producer. NULL while a call uses it, and before
    /// the first one; destroyed with this context.
    join: AtomicPtr<CUevent_st>,
}

/// A reference to a context that does not keep it alive, from [`Context::downgrade`].
///
/// ```
/// use cuda_events::foundation::WeakContext;
/// use cuda_events::{Context, Device};
///
/// # use cuda_soft_driver::examples::Driver;
/// let driver = Driver::load()?;
/// let context = Context::primary(Device::new(driver, 0)?)?;
/// let weak: WeakContext = context.downgrade();
/// assert_eq!(weak.upgrade().as_ref(), Some(&context));
/// assert!(weak.is_same(&context.clone().downgrade()));
/// drop(context);
/// assert!(!weak.is_alive() && weak.upgrade().is_none());
/// # Ok::<(), cuda_events::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct WeakContext(Weak<Inner>);

impl WeakContext {
    /// Returns a share of the context, unless the last one was dropped.
    ///
    /// If all other shares are dropped while you hold the result, the result is [the last
    /// share](Context#dropping-the-last-share), and dropping it can block.
    pub fn upgrade(&self) -> Option<Context> {
        self.0.upgrade().map(Context)
    }

    /// Returns whether a share exists now. It takes no share, so the caller never holds the last
    /// one.
    pub fn is_alive(&self) -> bool {
        self.0.strong_count() > 0
    }

    /// Returns whether both refer to clones of the same [`Context`]. Contexts that were retained or
    /// wrapped separately are not the same, even if they compare equal.
    pub fn is_same(&self, other: &Self) -> bool {
        self.0.ptr_eq(&other.0)
    }
}

/// The cell is filled once, each change of the event's place is one exchange, and the owner is only
/// dropped.
impl core::panic::RefUnwindSafe for Inner {}

/// The part of a context that its last user releases.
pub(crate) enum Owned {
    /// Nothing: other code owns the context.
    Nothing,
    /// An owner, which keeps another library's context alive. It is dropped last.
    Foreign(#[expect(dead_code, reason = "it has a destructor")] Box<dyn Any + Send + Sync>),
    /// A retain of the device's primary context.
    Primary,
    /// The green context that the context stands for.
    Green(CUgreenCtx),
}

// SAFETY: a context may be used from any thread (CUDA documents this for the whole driver API); the
// handles are addresses that this crate never dereferences; the owner is Send and Sync.
#[allow(unsafe_code)]
unsafe impl Send for Inner {}
// SAFETY: as for Send; only the once-cell and the event's place, an atomic pointer, change, and both
// are Sync.
#[allow(unsafe_code)]
unsafe impl Sync for Inner {}

#[allow(unsafe_code)]
impl Context {
    /// Retains the device's primary context; the driver creates it if it is not active.
    ///
    /// Creating it is slow, and takes device memory (`docs/performance.md`).
    ///
    /// Driver calls: [`cuDevicePrimaryCtxRetain`], and [`cuInit`] the first time. The [last
    /// drop](Self#dropping-the-last-share) calls [`cuDevicePrimaryCtxRelease`], and can block. The
    /// thread's current context does not change.
    ///
    /// ```
    /// use cuda_events::{Context, Device};
    ///
    /// # use cuda_soft_driver::examples::Driver;
    /// let driver = Driver::load()?;
    /// let context = Context::primary(Device::new(driver, 0)?)?;
    /// let same = Context::primary(Device::new(driver, 0)?)?;
    /// assert_eq!(context, same, "a device has one primary context");
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// * [`Error::Init`]: the first use of the driver failed.
    /// * `CUDA_ERROR_OUT_OF_MEMORY`: the device has no room for the context.
    /// * `CUDA_ERROR_DEVICE_UNAVAILABLE`: the device's compute mode excludes this process.
    /// * A [sticky](Error::is_sticky) error: earlier work of this process broke the context.
    /// * [`Error::ForkedChild`].
    #[doc(alias = "cuDevicePrimaryCtxRetain")]
    pub fn primary(device: Device) -> Result<Self> {
        let driver = device.driver().init()?;
        let mut raw = null_mut();
        // SAFETY: a place for the handle.
        unsafe { call!(driver, cuDevicePrimaryCtxRetain(&mut raw, device.as_raw())) }?.check()?;
        Ok(Self::new(raw, device, Owned::Primary))
    }

    /// Blocks the calling thread until all work of the context is done.
    ///
    /// Driver calls: [`cuCtxSynchronize`] with the context current.
    ///
    /// ```
    /// use cuda_events::{Context, Device, Stream, StreamOptions};
    ///
    /// # use cuda_soft_driver::examples::Driver;
    /// let driver = Driver::load()?;
    /// let context = Context::primary(Device::new(driver, 0)?)?;
    /// let stream = Stream::new(&context, StreamOptions::new())?;
    /// let other = Stream::new(&context, StreamOptions::new())?;
    /// // ... work is put into both ...
    /// context.synchronize()?;
    /// assert!(stream.query()?.is_done() && other.query()?.is_done());
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// * Errors of work that was launched earlier.
    /// * `CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED`: a stream of the context is capturing. The call
    ///   invalidates the capture.
    /// * [`Error::ForkedChild`].
    #[doc(alias = "cuCtxSynchronize")]
    pub fn synchronize(&self) -> Result<()> {
        // SAFETY: the call takes no arguments.
        self.with_current(|| unsafe { call!(self.driver(), cuCtxSynchronize()) }?.check())
    }

    /// Returns the device that the context belongs to.
    pub fn device(&self) -> Device {
        self.0.device
    }

    /// Returns the driver that the context belongs to.
    #[inline]
    pub fn driver(&self) -> Driver {
        self.0.device.driver()
    }
}

/// # Keeping and releasing
impl Context {
    /// Keeps the context until the process ends: no drop releases it.
    ///
    /// It is for programs that use the GPU until they end. It makes no driver call.
    ///
    /// A borrowed context ([`from_raw`](Self::from_raw), [`current`](Self::current)) still belongs
    /// to its owner.
    ///
    /// If the context has interprocess events, the driver's file for them stays in the machine's
    /// shared memory.
    ///
    /// ```
    /// use cuda_events::{Context, Device, Event, EventFlags};
    ///
    /// # use cuda_soft_driver::examples::Driver;
    /// let driver = Driver::load()?;
    /// let context = Context::primary(Device::new(driver, 0)?)?.leak();
    /// let event = Event::new(&context, EventFlags::empty())?;
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    #[must_use = "keep the context or a clone; a dropped one cannot be used"]
    pub fn leak(self) -> Self {
        core::mem::forget(self.clone());
        self
    }

    /// Gives the context up without releasing it, so no later drop can block.
    ///
    /// Use it if work in the context can never end and [dropping the last
    /// share](Self#dropping-the-last-share) would block forever. `abandon` makes no driver call and
    /// never blocks. For a context that the program continues to use, there is
    /// [`leak`](Self::leak).
    ///
    /// Clones, events and streams of the context stay valid, and closing or dropping them never
    /// blocks. The context's memory on the device stays in use until the process ends. The process
    /// can end even if a stream waits forever.
    ///
    /// A borrowed context ([`from_raw`](Self::from_raw), [`current`](Self::current)) still belongs
    /// to its owner. The owner in [`from_raw_with_owner`](Self::from_raw_with_owner) is never
    /// dropped.
    ///
    /// If only an event or a stream is left, use its context: `stream.context().clone().abandon()`.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use cuda_events::{Context, Device, Stream, StreamOptions};
    ///
    /// # use cuda_soft_driver::examples::Driver;
    /// let driver = Driver::load()?;
    /// let context = Context::primary(Device::new(driver, 0)?)?;
    /// let stream = Stream::new(&context, StreamOptions::new())?;
    /// // ... the stream is given work ...
    /// if stream.synchronize_timeout(Duration::from_secs(10))?.is_pending() {
    ///     // The work may never end, and then the last drop never returns.
    ///     context.abandon();
    /// }
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    pub fn abandon(self) {
        core::mem::forget(self);
    }

    /// Drops this share, or returns it if it is the last one. It makes no driver call.
    ///
    /// [Dropping the last share](Self#dropping-the-last-share) can block. A thread that must not
    /// block drops its shares with this method, and hands the last one to another thread. Of
    /// several threads that call this method at once, exactly one gets the last share. From then on
    /// [`WeakContext::upgrade`] returns `None`.
    ///
    /// ```
    /// use cuda_events::{Context, Device};
    ///
    /// # use cuda_soft_driver::examples::Driver;
    /// let driver = Driver::load()?;
    /// let context = Context::primary(Device::new(driver, 0)?)?;
    /// let share = context.clone();
    /// assert_eq!(share.drop_unless_last(), None);
    /// if let Some(last) = context.drop_unless_last() {
    ///     std::thread::spawn(move || drop(last));
    /// }
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    #[must_use = "dropping the last share can block"]
    pub fn drop_unless_last(self) -> Option<Self> {
        Arc::into_inner(self.0).map(|last| Self(Arc::new(last)))
    }

    /// Returns a reference that does not keep the context alive.
    ///
    /// It makes no driver call. [`WeakContext`] has an example.
    pub fn downgrade(&self) -> WeakContext {
        WeakContext(Arc::downgrade(&self.0))
    }
}

/// # Contexts of other code
#[allow(unsafe_code)]
impl Context {
    /// Wraps a context that other code owns. Dropping the result does not affect the context.
    ///
    /// If you have an object that keeps the context alive, use
    /// [`from_raw_with_owner`](Self::from_raw_with_owner). For a device's primary context use
    /// [`primary`](Self::primary).
    ///
    /// One driver call: [`cuCtxGetDevice_v2`] (CUDA 13.0), on older drivers [`cuCtxGetDevice`] with
    /// the context current.
    ///
    /// ```
    /// use cuda_events::{Context, Device};
    ///
    /// # use cuda_soft_driver::examples::Driver;
    /// let driver = Driver::load()?;
    /// // Stands for the context of another library.
    /// let theirs = Context::primary(Device::new(driver, 0)?)?;
    /// // SAFETY: `theirs` outlives `ours`, and no stream of it is captured.
    /// let ours = unsafe { Context::from_raw(driver, theirs.as_raw()) }?;
    /// assert_eq!(ours, theirs);
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_CONTEXT` or `CUDA_ERROR_CONTEXT_IS_DESTROYED`, if the driver detects
    /// that the context is gone; [`Error::ForkedChild`].
    ///
    /// # Safety
    ///
    /// `raw` must be a live context of this driver until the result, its clones, and every object
    /// made in it are dropped. For a green context, [`green`](Self::green) has a rule about
    /// threads.
    ///
    /// The owner may capture streams of the context. Until such a capture ends, only one thread at
    /// a time may use the capture, its streams and its events. Threads of the owner count too: see
    /// [`Capture::begin`](crate::capture::Capture::begin).
    #[doc(alias = "cuCtxGetDevice")]
    pub unsafe fn from_raw(driver: Driver, raw: CUcontext) -> Result<Self> {
        // SAFETY: as the caller says.
        unsafe { Self::name(driver, raw, Owned::Nothing) }
    }

    /// Wraps a context that other code owns, together with an `owner` that keeps it alive.
    ///
    /// The owner can be, for example, an `Arc` of another library's context. The result keeps the
    /// owner, and so does each clone and each object made in the context. When the last of these is
    /// dropped, the owner is dropped after it, on the same thread. A [leaked](Self::leak) context
    /// keeps its owner forever. A forked child never drops the owner.
    ///
    /// One driver call, that of [`from_raw`](Self::from_raw).
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use cuda_events::{Context, Device, Event, EventFlags};
    ///
    /// # use cuda_soft_driver::examples::Driver;
    /// let driver = Driver::load()?;
    /// // Stands for the context of another library.
    /// let theirs = Arc::new(Context::primary(Device::new(driver, 0)?)?);
    ///
    /// // SAFETY: the `Arc` keeps the context alive, and no stream of it is captured.
    /// let ours =
    ///     unsafe { Context::from_raw_with_owner(driver, theirs.as_raw(), theirs.clone()) }?;
    /// drop(theirs);
    /// let event = Event::new(&ours, EventFlags::empty())?;
    /// drop(ours);
    /// event.synchronize()?; // the event keeps the context, and the context its owner
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`from_raw`](Self::from_raw); on an error the owner is dropped.
    ///
    /// # Safety
    ///
    /// `raw` must be a live context of this driver until `owner` is dropped. The rules of
    /// [`from_raw`](Self::from_raw) about green contexts and captures apply.
    pub unsafe fn from_raw_with_owner<O>(driver: Driver, raw: CUcontext, owner: O) -> Result<Self>
    where
        O: Any + Send + Sync,
    {
        // SAFETY: as the caller says.
        unsafe { Self::name(driver, raw, Owned::Foreign(Box::new(owner))) }
    }

    /// Returns the calling thread's current context, if any. The result does not own the context.
    ///
    /// Driver calls: [`cuCtxGetCurrent`], that of [`from_raw`](Self::from_raw), and [`cuInit`] the
    /// first time.
    ///
    /// ```
    /// use cuda_events::{Context, Device};
    ///
    /// # use cuda_soft_driver::examples::Driver;
    /// let driver = Driver::load()?;
    /// let context = Context::primary(Device::new(driver, 0)?)?;
    /// let guard = context.make_current()?;
    /// // SAFETY: `context` outlives the result.
    /// let current = unsafe { Context::current(driver) }?;
    /// assert_eq!(current.as_ref(), Some(&context));
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Init`] if the first use of the driver fails; otherwise as
    /// [`from_raw`](Self::from_raw).
    ///
    /// # Safety
    ///
    /// The caller has the duties of [`from_raw`](Self::from_raw).
    #[doc(alias = "cuCtxGetCurrent")]
    pub unsafe fn current(driver: Driver) -> Result<Option<Self>> {
        driver.init()?;
        let raw = current(driver)?;
        if raw.is_null() {
            return Ok(None);
        }
        // SAFETY: the driver has just returned it; the caller vouches for the rest.
        unsafe { Self::from_raw(driver, raw) }.map(Some)
    }

    /// Makes the context current on the calling thread until the returned guard is dropped.
    ///
    /// Dropping the guard restores the previous context. Drop guards in the reverse order of their
    /// creation.
    ///
    /// The guard is for other code that works in the current context. This crate does not need it.
    ///
    /// Driver calls: [`cuCtxGetCurrent`] and [`cuCtxPushCurrent`]. The drop of the guard calls
    /// [`cuCtxPopCurrent`].
    ///
    /// ```
    /// use cuda_events::{Context, Device};
    ///
    /// # use cuda_soft_driver::examples::Driver;
    /// let driver = Driver::load()?;
    /// let context = Context::primary(Device::new(driver, 0)?)?;
    /// {
    ///     let _current = context.make_current()?;
    ///     // Code that uses the current context, such as the CUDA runtime, works in it here.
    /// }
    /// // SAFETY: no context is current here, so the result is `None`.
    /// assert!(unsafe { Context::current(driver) }?.is_none());
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_CONTEXT` or `CUDA_ERROR_CONTEXT_IS_DESTROYED`, if other code destroyed
    /// the context; [`Error::ForkedChild`].
    #[doc(alias = "cuCtxPushCurrent")]
    #[doc(alias = "cuCtxSetCurrent")]
    pub fn make_current(&self) -> Result<CurrentContext<'_>> {
        let driver = self.driver();
        driver.check_alone(Function::cuCtxPushCurrent_v2)?;
        let nested = current(driver)? == self.0.raw;
        push(driver, self.0.raw)?;
        Ok(CurrentContext::new(self, nested))
    }

    /// Returns the driver's handle, for other bindings. It is valid as long as the context is.
    ///
    /// [`from_raw`](Self::from_raw) has an example.
    pub fn as_raw(&self) -> CUcontext {
        self.0.raw
    }

    /// Returns whether the context comes from [`from_raw`](Self::from_raw) or
    /// [`current`](Self::current): other code owns it.
    ///
    /// A library should keep no clone of such a context: the clone does not keep the context alive.
    ///
    /// ```
    /// use cuda_events::{Context, Device};
    ///
    /// # use cuda_soft_driver::examples::Driver;
    /// let driver = Driver::load()?;
    /// let owned = Context::primary(Device::new(driver, 0)?)?;
    /// // SAFETY: `owned` outlives `borrowed`, and no stream of it is captured.
    /// let borrowed = unsafe { Context::from_raw(driver, owned.as_raw()) }?;
    /// assert!(borrowed.is_borrowed() && !owned.is_borrowed());
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    pub fn is_borrowed(&self) -> bool {
        matches!(self.0.owned, Owned::Nothing)
    }

    /// Returns whether this crate retained or created the context: it comes from
    /// [`primary`](Self::primary) or [`green`](Self::green).
    ///
    /// ```
    /// use cuda_events::{Context, Device};
    ///
    /// # use cuda_soft_driver::examples::Driver;
    /// let driver = Driver::load()?;
    /// let context = Context::primary(Device::new(driver, 0)?)?;
    /// // SAFETY: the owner is kept, and no stream of the context is captured.
    /// let theirs =
    ///     unsafe { Context::from_raw_with_owner(driver, context.as_raw(), context.clone()) }?;
    /// assert!(context.is_retained() && !theirs.is_retained());
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    pub fn is_retained(&self) -> bool {
        matches!(self.0.owned, Owned::Primary | Owned::Green(_))
    }

    /// Returns whether this is a green context, from [`green`](Self::green) or of other code.
    ///
    /// For a context from [`primary`](Self::primary) or [`green`](Self::green) it makes no driver
    /// call. For any other context it makes one with the context current: [`cuStreamGetGreenCtx`]
    /// (CUDA 12.4). [`green`](Self::green) has an example.
    ///
    /// # Errors
    ///
    /// [`Error::ForkedChild`].
    #[doc(alias = "cuStreamGetGreenCtx")]
    pub fn is_green(&self) -> Result<bool> {
        match self.0.owned {
            Owned::Green(_) => return Ok(true),
            Owned::Primary => return Ok(false),
            Owned::Nothing | Owned::Foreign(_) => {}
        }
        let driver = self.driver();
        if driver.symbols().cuStreamGetGreenCtx.is_none() {
            return Ok(false);
        }
        driver.check_alone(Function::cuStreamGetGreenCtx)?;
        self.with_current(|| {
            let stream = CU_STREAM_LEGACY;
            let mut green = null_mut();
            // SAFETY: the handle is a constant, and a place for the handle of the green context.
            unsafe { call!(driver, cuStreamGetGreenCtx?(stream, &mut green)) }?.check()?;
            Ok(!green.is_null())
        })
    }

    pub(crate) fn new(raw: CUcontext, device: Device, owned: Owned) -> Self {
        let (exporter, join) = (OnceLock::new(), AtomicPtr::default());
        Self(Arc::new(Inner { raw, device, owned, exporter, join }))
    }

    /// # Safety
    ///
    /// As for `from_raw`, or with an owner as for `from_raw_with_owner`.
    unsafe fn name(driver: Driver, raw: CUcontext, owned: Owned) -> Result<Self> {
        // The code that created the context has initialised the driver. Objects of other code are
        // always wrapped together with their context, so this one place is enough.
        fork::note_initialised();
        let mut device: c_int = 0;
        if driver.symbols().cuCtxGetDevice_v2.is_some() {
            // SAFETY: a place for the one integer, and a context that the caller vouches for.
            unsafe { call!(driver, cuCtxGetDevice_v2?(&mut device, raw)) }?.check()?;
        } else {
            with_current(driver, raw, || {
                // SAFETY: a place for the one integer.
                unsafe { call!(driver, cuCtxGetDevice(&mut device)) }?.check()
            })?;
        }
        let device = Device::from_raw(driver, device);
        Ok(Self::new(raw, device, owned))
    }

    pub(crate) fn owned(&self) -> &Owned {
        &self.0.owned
    }

    /// Whether the driver treats the events of both contexts alike: a primary context and its green
    /// contexts share them. For a context that other code owns this is not known.
    pub(crate) fn shares_events(&self, other: &Self) -> bool {
        self == other
            || self.is_retained() && other.is_retained() && self.device() == other.device()
    }

    /// The error of a call with an object of this context and one of another.
    #[cold]
    #[inline(never)]
    pub(crate) fn mismatch(
        &self,
        other: &Self,
        function: Function,
        code: Option<CUresult>,
    ) -> Error {
        let [device, other_device] = [self, other].map(|context| context.device().short_ordinal());
        Error::ContextMismatch { function, code, device, other_device }
    }

    /// An event of this context for one call of `wait_stream`, which no other call uses before
    /// [`put_join_event`](Self::put_join_event); `None` if there is none.
    #[inline(always)]
    pub(crate) fn take_join_event(&self) -> Option<CUevent> {
        // What another thread did with the event before it was put back happens before.
        let event = self.0.join.swap(null_mut(), Ordering::Acquire);
        (!event.is_null()).then_some(event)
    }

    /// Keeps the event for the next call. If another call has put its own back, this one is
    /// destroyed.
    #[inline(always)]
    pub(crate) fn put_join_event(&self, event: CUevent) {
        let place = &self.0.join;
        if place.compare_exchange(null_mut(), event, Ordering::Release, Ordering::Relaxed).is_err()
        {
            self.destroy_join_event(event);
        }
    }

    #[cold]
    #[inline(never)]
    #[allow(unsafe_code)]
    fn destroy_join_event(&self, event: CUevent) {
        // SAFETY: the caller took the event from this context, and does not use it afterwards. The
        // driver keeps what its record and its wait need.
        let _ = unsafe { call!(self.driver(), cuEventDestroy_v2(event)) };
    }

    /// The context's device and this process, determined once: the device takes one driver call,
    /// the process some system calls, each of which takes longer than an export. A forked child is
    /// another process, and its first driver call here would fail.
    pub(crate) fn device_and_process(&self) -> Result<&(Uuid, u32, Identity)> {
        self.driver().check_alone(Function::cuDeviceGetUuid)?;
        if let Some(exporter) = self.0.exporter.get() {
            return Ok(exporter);
        }
        let device = self.device().uuid()?;
        let own = || (device, std::process::id(), Identity::own());
        Ok(self.0.exporter.get_or_init(own))
    }

    /// Calls `f` with this context current, and leaves the thread's context stack as it was.
    ///
    /// If restoring fails, the result of `f` is dropped and the failure returned.
    #[inline(always)]
    pub(crate) fn with_current<T>(&self, f: impl FnOnce() -> Result<T>) -> Result<T> {
        with_current(self.driver(), self.0.raw, f)
    }

    /// Makes this context current; returns whether it was not current before. Then
    /// [`leave`](Self::leave) restores the thread's context stack.
    #[inline(always)]
    pub(crate) fn enter(&self) -> Result<bool> {
        let (driver, raw) = (self.driver(), self.0.raw);
        if current(driver)? == raw {
            return Ok(false);
        }
        push(driver, raw).map(|()| true)
    }

    /// Undoes an [`enter`](Self::enter) that returned `true`.
    #[inline(always)]
    pub(crate) fn leave(&self) -> Result<()> {
        restore(self.driver(), self.0.raw)
    }
}

impl Drop for Inner {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        if fork::forked() {
            // Its destructor would call the driver, which does not survive a fork.
            core::mem::forget(core::mem::replace(&mut self.owned, Owned::Nothing));
            return;
        }
        let (device, driver) = (self.device, self.device.driver());
        // An error cannot be handled here: the driver may be shutting down with the process, or the
        // context may be gone with its device.
        let event = *self.join.get_mut();
        if !event.is_null() {
            // SAFETY: the event is owned and not used afterwards, and its context lives until this
            // ends.
            let _ = unsafe { call!(driver, cuEventDestroy_v2(event)) };
        }
        match self.owned {
            // The owner is a field, and so dropped after this function.
            Owned::Nothing | Owned::Foreign(_) => {}
            Owned::Primary => {
                // SAFETY: one release for the one retain.
                let _ = unsafe { call!(driver, cuDevicePrimaryCtxRelease_v2(device.as_raw())) };
            }
            Owned::Green(green) => {
                // SAFETY: the green context is owned, and this was its last user: all objects made
                // in it are gone.
                let _ = unsafe { call!(driver, cuGreenCtxDestroy?(green)) };
            }
        }
    }
}

impl PartialEq for Context {
    fn eq(&self, other: &Self) -> bool {
        self.0.raw == other.0.raw && self.driver().is_same_library(other.driver())
    }
}

impl Eq for Context {}

impl Hash for Context {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.raw.hash(state);
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("raw", &self.0.raw)
            .field("device", &self.0.device.ordinal())
            .finish()
    }
}

static_assertions::assert_impl_all!(Context: Send, Sync, Clone);
static_assertions::assert_eq_size!(Context, Option<Context>, usize);
