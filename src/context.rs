//! Contexts: what an event or a stream is created in.

use core::any::Any;
use core::ffi::c_int;
use core::fmt;
use core::hash::{Hash, Hasher};
use core::marker::PhantomData;
use core::ptr::null_mut;
use std::sync::OnceLock;

use crate::device::{Device, Uuid};
use crate::driver::Driver;
use crate::driver::call::{Ready, Through, ask, call, entry};
use crate::driver::fork;
use crate::driver::process::Identity;
#[cfg(doc)]
use crate::error::Error;
use crate::error::Result;
use crate::share::{Share, WeakShare};
use crate::sys::{CUcontext, CUevent, CUgreenCtx};

/// A context, shared by reference count: cloning it and keeping it in an event or a stream is
/// cheap.
///
/// [`primary`](Self::primary) retains a device's primary context, the one that the CUDA runtime,
/// PyTorch and most libraries use, and releases it when the last clone and the last object made in
/// it are gone, or never, if it is [leaked](Self::leak). [`from_raw`](Self::from_raw) names a
/// context that somebody else owns. [`green`](Self::green) creates one that has a part of the
/// device's multiprocessors.
///
/// # Dropping the last share
///
/// Every clone of a context holds a share of it, and so does every event, stream or other object
/// made in it. Dropping a share is cheap and never waits, with one exception: the last share of a
/// context that [`primary`](Self::primary) retained or [`green`](Self::green) created. (The last
/// share of a context with an [owner](Self::from_raw_with_owner) drops the owner, which may do the
/// same.) That drop calls `cuDevicePrimaryCtxRelease` or `cuGreenCtxDestroy`. The driver destroys a
/// green context then, and a primary one if nobody else in the process retains it. For a primary
/// one it first waits until all work in the context's streams is done. **It blocks for ever if that
/// work never ends**, for example if
///
/// * a stream waits for an event whose exporter was killed before the record completed,
/// * a stream waits for a value in memory that nobody writes,
/// * a host function needs a lock that the dropping thread holds.
///
/// Closing or dropping an event or a stream with such work in it returns at once, unless it holds
/// the last share. So that no drop blocks:
///
/// * Let a stream wait for an imported event only after the host has seen it done: see
///   [`ExporterProcess::wait_for`](crate::ipc::ExporterProcess::wait_for).
/// * Hold no lock that a host function needs while you drop the last share.
/// * If work is in a stream that may never end, give the context up with
///   [`abandon`](Self::abandon), before the last share is dropped. A drop that blocks already
///   cannot be ended, except with the process.
///
/// # Current contexts
///
/// A context need not be current on the calling thread: what needs it makes it current for the one
/// call, and leaves the thread's context stack as it was, also when the call fails. "With the
/// context current" means, for each such call, one `cuCtxGetCurrent` before, and `cuCtxPushCurrent`
/// and `cuCtxPopCurrent` where it is not current already.
///
/// Equality and hash are by handle.
#[derive(Clone)]
pub struct Context(Share<Inner>);

struct Inner {
    raw: CUcontext,
    device: Device,
    owned: Owned,
    origin: OnceLock<Origin>,
    /// Recorded by `wait_stream` in the legacy default stream, made when first needed; destroyed
    /// with this.
    join: OnceLock<CUevent>,
}

/// A context without a share of it.
#[derive(Clone)]
pub(crate) struct WeakContext(WeakShare<Inner>);

impl WeakContext {
    /// A share, unless the last one was dropped.
    pub(crate) fn upgrade(&self) -> Option<Context> {
        self.0.upgrade().map(Context)
    }

    /// Whether somebody has a share now. Unlike `upgrade` it cannot leave the caller with the last
    /// one, whose drop may block.
    pub(crate) fn is_held(&self) -> bool {
        self.0.is_held()
    }

    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.0.is_same(&other.0)
    }
}

/// What is given back with the last user of a context.
pub(crate) enum Owned {
    /// Nothing: somebody else owns the context.
    Nothing,
    /// Nothing either: somebody else owns the context, and this keeps it alive. It is dropped last.
    KeptBy(#[expect(dead_code, reason = "kept for its destructor")] Box<dyn Any + Send + Sync>),
    /// A retain of the device's primary context.
    Primary,
    /// The green context that the context stands for.
    Green(CUgreenCtx),
}

/// Where an event that is made in a context comes from, for other processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Origin {
    pub(crate) pid: u32,
    pub(crate) device: Uuid,
    pub(crate) process: Identity,
}

// SAFETY: a context may be used from any thread (CUDA's documents say so of the whole driver API);
// the handle is an address that this crate never dereferences.
#[allow(unsafe_code)]
unsafe impl Send for Inner {}
// SAFETY: as for Send; nothing in it changes but the once-cells, which are Sync.
#[allow(unsafe_code)]
unsafe impl Sync for Inner {}

#[allow(unsafe_code)]
impl Context {
    /// Retains the device's primary context, creating it if it is not active.
    ///
    /// The first one on a device takes a tenth of a second and a few hundred megabytes of its
    /// memory.
    ///
    /// Driver calls: `cuDevicePrimaryCtxRetain`, and `cuInit` the first time;
    /// `cuDevicePrimaryCtxRelease` when the last share is dropped, which [can
    /// block](Self#dropping-the-last-share). What is current stays so.
    ///
    /// # Errors
    ///
    /// What the driver returns, such as `CUDA_ERROR_OUT_OF_MEMORY`; [`Error::ForkedChild`].
    #[doc(alias = "cuDevicePrimaryCtxRetain")]
    pub fn primary(device: Device) -> Result<Self> {
        let ready = device.driver().init()?;
        let mut raw = null_mut();
        // SAFETY: a place for the handle.
        unsafe { call!(ready, cuDevicePrimaryCtxRetain(&mut raw, device.as_raw())) }?;
        Ok(Self::new(raw, device, Owned::Primary))
    }

    pub(crate) fn new(raw: CUcontext, device: Device, owned: Owned) -> Self {
        let (origin, join) = (OnceLock::new(), OnceLock::new());
        Self(Share::new(Inner { raw, device, owned, origin, join }))
    }

    /// Keeps the context until the process ends: the primary context that this one retained is
    /// never released. It makes no driver call.
    ///
    /// In return nothing needs to count the context's users any more: an event is made and dropped
    /// some nanoseconds sooner, and threads that make events at once share nothing
    /// (`docs/performance.md` has the figures). It is for programs that use the GPU until they end.
    /// Clones and objects that this context has already are no longer counted either; what comes of
    /// another call of [`primary`](Self::primary) is.
    ///
    /// A context that is only named ([`from_raw`](Self::from_raw), [`current`](Self::current)) is
    /// its owner's as before: what is kept of it then is a few bytes, each time.
    ///
    /// If interprocess events were made in it, the driver's file for them stays in the shared
    /// memory of the machine, as it does when a process is killed.
    ///
    /// ```
    /// use cuda_events::{Context, Device, Event, EventFlags};
    ///
    /// # let soft = cuda_soft_driver::SoftDriver::new();
    /// # let driver = soft.driver();
    /// let context = Context::primary(Device::new(driver, 0)?)?.leak();
    /// let event = Event::new(&context, EventFlags::empty())?;
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    #[must_use = "what is dropped cannot be used; keep it, or any clone"]
    pub fn leak(self) -> Self {
        self.0.leak();
        self
    }

    /// Gives the context up: the primary context that this one retained is never released,
    /// whichever clone or object is dropped last. It makes no driver call and never blocks.
    ///
    /// It is the way out when work in the context can never end, so that [dropping the last
    /// share](Self#dropping-the-last-share) would block for ever. [`leak`](Self::leak) keeps a
    /// context that the program goes on using; `abandon` gives up one that cannot be released.
    ///
    /// Clones, events and streams of the context stay valid. Closing or dropping them does not
    /// block, now or later. The releases of other values from [`primary`](Self::primary) do not
    /// block either: the driver counts them, and this one is missing. The context's memory on the
    /// device stays in use until the process ends. A process whose stream waits for ever can end:
    /// its exit does not wait for the stream.
    ///
    /// A context that is only named ([`from_raw`](Self::from_raw), [`current`](Self::current)) is
    /// its owner's as before. The owner in [`from_raw_with_owner`](Self::from_raw_with_owner) is
    /// never dropped.
    ///
    /// If only an event or a stream is left, its context is there:
    /// `stream.context().clone().abandon()`.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use cuda_events::{Context, Device, Stream, StreamOptions};
    ///
    /// # let soft = cuda_soft_driver::SoftDriver::new();
    /// # let driver = soft.driver();
    /// let context = Context::primary(Device::new(driver, 0)?)?;
    /// let stream = Stream::new(&context, StreamOptions::new())?;
    /// // ... the stream is given work ...
    /// if stream.synchronize_timeout(Duration::from_secs(10))?.is_pending() {
    ///     // It may wait for ever, and the last drop with it.
    ///     context.abandon();
    /// }
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    pub fn abandon(self) {
        // The share that `leak` keeps is this one: it sees the flag and is not given back.
        drop(self.leak());
    }

    /// Names a context that somebody else owns. Dropping the result does nothing to it.
    ///
    /// Where an object of the owner's can be kept,
    /// [`from_raw_with_owner`](Self::from_raw_with_owner) makes sure that the context lives long
    /// enough. For a device's primary context neither is needed: [`primary`](Self::primary) retains
    /// the same one.
    ///
    /// One driver call, for the device: `cuCtxGetDevice`, of CUDA 13.0. An older driver tells the
    /// device of the current context only, so that the context is made current for it.
    ///
    /// # Errors
    ///
    /// What the driver returns when the context is made current to learn its device.
    ///
    /// # Safety
    ///
    /// `raw` must be a live context of this driver, and must stay one until the result, its clones,
    /// and every object made in it are dropped. If it stands for a green context, the rule of
    /// [`green`](Self::green) about threads holds.
    ///
    /// While the owner captures a stream of the context, what
    /// [`Capture::begin`](crate::capture::Capture::begin) forbids to other threads holds for the
    /// threads of the owner and of this crate together: no thread may use a stream or an event of
    /// that capture while another thread uses one of them.
    #[doc(alias = "cuCtxGetDevice")]
    pub unsafe fn from_raw(driver: Driver, raw: CUcontext) -> Result<Self> {
        // SAFETY: as the caller says.
        unsafe { Self::name(driver, raw, Owned::Nothing) }
    }

    /// Names a context that somebody else owns, and keeps `owner`, which keeps that context alive,
    /// until the last clone and the last object made in it are dropped: an `Arc` of another
    /// library's context, say.
    ///
    /// The owner is dropped on the thread that drops the last of these, after everything else. A
    /// context that is [leaked](Self::leak) keeps it for ever, and a forked child does not drop it.
    ///
    /// Driver calls as [`from_raw`](Self::from_raw).
    ///
    /// ```
    /// use cuda_events::{Context, Event, EventFlags};
    /// # use cuda_events::Device;
    /// use std::sync::Arc;
    ///
    /// # let soft = cuda_soft_driver::SoftDriver::new();
    /// # let driver = soft.driver();
    /// // Stands for the context of a library that knows nothing of this crate.
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
    /// As [`from_raw`](Self::from_raw); then the owner is dropped.
    ///
    /// # Safety
    ///
    /// `raw` must be a live context of this driver, and must stay one until `owner` is dropped.
    /// Captures as for [`from_raw`](Self::from_raw).
    pub unsafe fn from_raw_with_owner<O>(driver: Driver, raw: CUcontext, owner: O) -> Result<Self>
    where
        O: Any + Send + Sync,
    {
        // SAFETY: as the caller says.
        unsafe { Self::name(driver, raw, Owned::KeptBy(Box::new(owner))) }
    }

    /// # Safety
    ///
    /// As for `from_raw`, or with an owner as for `from_raw_with_owner`.
    unsafe fn name(driver: Driver, raw: CUcontext, owned: Owned) -> Result<Self> {
        // Whoever made the context has initialised the driver. What other code makes in a context
        // is named with the context, so that this one place is enough.
        fork::note_initialised();
        let mut device: c_int = 0;
        match entry!(driver, cuCtxGetDevice_v2?) {
            // SAFETY: a place for the one integer, and a context that the caller vouches for.
            Ok(get) => get.ask(driver, |get| unsafe { get(&mut device, raw) })?.check()?,
            Err(_) => with_current(driver, raw, |ready| {
                // SAFETY: a place for the one integer.
                unsafe { call!(ready, cuCtxGetDevice(&mut device)) }
            })?,
        }
        let device = Device::from_raw(driver, device);
        Ok(Self::new(raw, device, owned))
    }

    /// The context that is current on the calling thread, if one is; it is named, not owned.
    ///
    /// Driver calls: `cuCtxGetCurrent`, and that of [`from_raw`](Self::from_raw).
    ///
    /// # Errors
    ///
    /// What the driver returns; [`Error::ForkedChild`].
    ///
    /// # Safety
    ///
    /// As for [`from_raw`](Self::from_raw): whoever owns the current context must keep it until the
    /// result, its clones, and every object made in it are dropped.
    #[doc(alias = "cuCtxGetCurrent")]
    pub unsafe fn current(driver: Driver) -> Result<Option<Self>> {
        driver.init()?;
        let raw = current(driver)?;
        if raw.is_null() {
            return Ok(None);
        }
        // SAFETY: the driver has just named it; the caller vouches for the rest.
        unsafe { Self::from_raw(driver, raw) }.map(Some)
    }

    /// Makes the context current on the calling thread until the guard is dropped, which restores
    /// what was before.
    ///
    /// Nothing in this crate needs it; it is for other code that works in the current context. Drop
    /// guards in the reverse order of making them.
    ///
    /// Driver calls: `cuCtxGetCurrent` and `cuCtxPushCurrent`, and `cuCtxPopCurrent` when the guard
    /// is dropped.
    ///
    /// ```
    /// use cuda_events::{Context, Device};
    ///
    /// # let soft = cuda_soft_driver::SoftDriver::new();
    /// # let driver = soft.driver();
    /// let context = Context::primary(Device::new(driver, 0)?)?;
    /// {
    ///     let _current = context.make_current()?;
    ///     // Here a library of the CUDA runtime, say, works in this context.
    /// }
    /// // SAFETY: nothing is current any more, and nothing is done with what would be.
    /// assert!(unsafe { Context::current(driver) }?.is_none());
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// What the driver returns; [`Error::ForkedChild`].
    #[doc(alias = "cuCtxPushCurrent")]
    #[doc(alias = "cuCtxSetCurrent")]
    pub fn make_current(&self) -> Result<CurrentContext<'_>> {
        let push = entry!(self.driver(), cuCtxPushCurrent_v2);
        self.driver().check_fork(push.function)?;
        let nested = current(self.driver())? == self.0.raw;
        // SAFETY: the context is alive as long as `self` is.
        push.ask(self.driver(), |push| unsafe { push(self.0.raw) })?.check()?;
        Ok(CurrentContext { context: self, nested, _not_send: PhantomData })
    }

    /// Blocks until all work of the context is done.
    ///
    /// Driver calls: `cuCtxSynchronize` with the context current.
    ///
    /// # Errors
    ///
    /// What the driver returns, among it errors of work that was launched before;
    /// [`Error::ForkedChild`].
    #[doc(alias = "cuCtxSynchronize")]
    pub fn synchronize(&self) -> Result<()> {
        // SAFETY: the call takes no arguments.
        self.with_current(|ready| unsafe { call!(ready, cuCtxSynchronize()) })
    }

    /// The driver that the context belongs to.
    #[inline]
    pub fn driver(&self) -> Driver {
        self.0.device.driver()
    }

    /// The device that the context belongs to.
    pub fn device(&self) -> Device {
        self.0.device
    }

    /// The driver's handle, for other bindings. It is valid as long as the context is.
    pub fn as_raw(&self) -> CUcontext {
        self.0.raw
    }

    pub(crate) fn downgrade(&self) -> WeakContext {
        WeakContext(self.0.downgrade())
    }

    pub(crate) fn owned(&self) -> &Owned {
        &self.0.owned
    }

    /// Gives this share back. If it was the last one, what ends the context when it is dropped,
    /// which may block.
    pub(crate) fn give_back(self) -> Option<impl Send + 'static> {
        self.0.into_last()
    }

    /// Whether the driver takes the events of both for those of one: a primary context and its
    /// green ones share theirs. Of a context that somebody else owns it is not known.
    pub(crate) fn shares_events(&self, other: &Self) -> bool {
        let retained = |context: &Self| matches!(context.0.owned, Owned::Primary | Owned::Green(_));
        self == other || retained(self) && retained(other) && self.device() == other.device()
    }

    /// The place for the event that `wait_stream` records in the legacy default stream.
    pub(crate) fn join(&self) -> &OnceLock<CUevent> {
        &self.0.join
    }

    /// This process and the context's device, asked once: the one takes some system calls, the
    /// other one of the driver. In a forked child, where the process would be wrong, nothing of the
    /// context works.
    #[inline]
    pub(crate) fn origin(&self) -> Result<&Origin> {
        match self.0.origin.get() {
            Some(origin) => Ok(origin),
            None => self.ask_origin(),
        }
    }

    #[cold]
    fn ask_origin(&self) -> Result<&Origin> {
        let device = self.device().uuid()?;
        let origin = Origin { pid: std::process::id(), device, process: Identity::own() };
        Ok(self.0.origin.get_or_init(|| origin))
    }

    /// Calls `f` with this context current, and leaves the thread's context stack as it was.
    ///
    /// If that fails, what `f` made is dropped and the failure returned.
    #[inline(always)]
    pub(crate) fn with_current<T>(&self, f: impl FnOnce(Ready) -> Result<T>) -> Result<T> {
        with_current(self.driver(), self.0.raw, f)
    }
}

/// The current context of this thread, or NULL.
#[allow(unsafe_code)]
#[inline(always)]
fn current(driver: Driver) -> Result<CUcontext> {
    let mut current = null_mut();
    // SAFETY: a place for the handle.
    unsafe { call!(driver, cuCtxGetCurrent(&mut current)) }?;
    Ok(current)
}

#[allow(unsafe_code)]
fn push(ready: Ready, raw: CUcontext) -> Result<()> {
    // SAFETY: the context is alive: a `Context` keeps it, or whoever named it vouched for it.
    unsafe { call!(ready, cuCtxPushCurrent_v2(raw)) }
}

#[allow(unsafe_code)]
fn pop(through: impl Through) -> Result<()> {
    let mut popped = null_mut();
    // SAFETY: a place for the handle.
    unsafe { call!(through, cuCtxPopCurrent_v2(&mut popped)) }
}

#[inline(always)]
fn with_current<T>(
    driver: Driver,
    raw: CUcontext,
    f: impl FnOnce(Ready) -> Result<T>,
) -> Result<T> {
    let (current, ready) = (current(driver)?, Ready::after_a_call(driver));
    if current == raw { f(ready) } else { with_pushed(ready, raw, f) }
}

#[inline(never)]
fn with_pushed<T>(ready: Ready, raw: CUcontext, f: impl FnOnce(Ready) -> Result<T>) -> Result<T> {
    push(ready, raw)?;
    let made = f(ready);
    let restored = restore(ready, raw);
    // The operation's own error comes first; what was made is dropped when the driver refused to
    // restore the stack.
    let made = made?;
    restored.map(|()| made)
}

/// Pops `raw`, which was pushed over something else. A refusal is returned, but not left at that: a
/// context that is still current afterwards is popped once more, or the thread would go on with it.
fn restore(through: impl Through + Copy, raw: CUcontext) -> Result<()> {
    let popped = pop(through);
    if popped.is_err() && current(through.driver()) == Ok(raw) {
        let _ = pop(through);
    }
    popped
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
        // What the driver returns cannot be acted on here: it may be shutting down with the
        // process, or the context gone with its device.
        if let Some(event) = self.join.take() {
            // SAFETY: the event is owned and not used afterwards, and its context lives until this
            // ends.
            let _ = unsafe { ask!(driver, cuEventDestroy_v2(event)) };
        }
        match self.owned {
            // An owner is dropped after this, as a field.
            Owned::Nothing | Owned::KeptBy(_) => {}
            Owned::Primary => {
                // SAFETY: one release for the one retain.
                let _ = unsafe { ask!(driver, cuDevicePrimaryCtxRelease_v2(device.as_raw())) };
            }
            Owned::Green(green) => {
                // SAFETY: the green context is owned, and this was its last user: whatever was made
                // in it is gone.
                let _ = unsafe { ask!(driver, cuGreenCtxDestroy?(green)) };
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

/// A context made current on this thread; dropping it restores what was before. It stays on its
/// thread.
#[must_use = "the context is current only as long as the guard lives"]
pub struct CurrentContext<'a> {
    context: &'a Context,
    /// Whether it was current before too.
    nested: bool,
    _not_send: PhantomData<*mut ()>,
}

impl Drop for CurrentContext<'_> {
    fn drop(&mut self) {
        let (driver, raw) = (self.context.driver(), self.context.as_raw());
        // What it answers cannot be acted on here. A nested one is current afterwards either way,
        // which tells nothing.
        let _ = if self.nested { pop(driver) } else { restore(driver, raw) };
    }
}

impl fmt::Debug for CurrentContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CurrentContext").field("context", &self.context).finish_non_exhaustive()
    }
}

static_assertions::assert_impl_all!(Context: Send, Sync, Clone);
static_assertions::assert_not_impl_any!(CurrentContext<'static>: Send, Sync);
static_assertions::assert_eq_size!(Context, Option<Context>, usize);
