//! Host functions: functions of the program that run in a stream.
//!
//! | to run | use |
//! | --- | --- |
//! | a closure, once | [`StreamRef::launch_host_function`] |
//! | a closure that learns of an error, and runs after one, too | [`StreamRef::add_callback`] |
//! | a C function, also in a capture | [`StreamRef::launch_host_function_raw`] |
//!
//! A host function should be short, because the driver may run those of all streams one after
//! another. It must make no CUDA call. It must not be the only way to learn that work is done: in a
//! context that has failed, only callbacks still run. The guide
//! [`choosing`](crate::guide::choosing) has other ways, also for longer work of the host.
//!
//! ```
//! use std::sync::mpsc::channel;
//!
//! use cuda_events::{Context, Device, Stream, StreamOptions};
//!
//! # use cuda_soft_driver::examples::Driver;
//! let driver = Driver::load()?;
//! let context = Context::primary(Device::new(driver, 0)?)?;
//! let stream = Stream::new(&context, StreamOptions::new())?;
//! let (sender, receiver) = channel();
//! // ... work is put into `stream` ...
//! stream.launch_host_function(move || drop(sender.send("the work is done")))?;
//! assert_eq!(receiver.recv(), Ok("the work is done"));
//! # Ok::<(), cuda_events::Error>(())
//! ```

use core::ffi::c_void;
use core::ptr::without_provenance_mut;
use std::collections::BTreeMap;
use std::sync::Mutex;

use crate::driver::call::{Answer, Entry, call, entry};
use crate::driver::{fork, panics};
use crate::error::{Error, Result};
use crate::stream::StreamRef;
use crate::stream::capture_info::CaptureStatus;
use crate::sync::lock;
use crate::sys::{CUresult, CUstream};

#[cfg(doc)]
use crate::sys::calls::*;

type Closure = Box<dyn FnOnce(CUresult) + Send>;

/// The closures that were given to the driver and not called yet.
///
/// The driver gets a closure's number and never its address. The driver may call a number several
/// times, for example at every launch of a graph into which another thread's capture has put it. A
/// closure still runs at most once, and a number whose closure is gone does nothing. No closure is
/// called or dropped under the lock.
static WAITING: Mutex<Waiting> = Mutex::new(Waiting { last: 0, closures: BTreeMap::new() });

struct Waiting {
    last: usize,
    closures: BTreeMap<usize, Closure>,
}

fn keep(closure: Closure) -> usize {
    let mut waiting = lock(&WAITING);
    waiting.last += 1;
    let number = waiting.last;
    waiting.closures.insert(number, closure);
    number
}

fn take(number: usize) -> Option<Closure> {
    lock(&WAITING).closures.remove(&number)
}

extern "C" fn run_host_function(number: *mut c_void) {
    run(number.addr(), CUresult::CUDA_SUCCESS);
}

extern "C" fn run_callback(_stream: CUstream, status: CUresult, number: *mut c_void) {
    run(number.addr(), status);
}

fn run(number: usize, status: CUresult) {
    let Some(closure) = take(number) else { return };
    panics::contain(|| closure(status));
}

/// Returns the number of closures of this process that wait to run in a stream.
///
/// It counts the closures of [`StreamRef::launch_host_function`] and [`StreamRef::add_callback`]
/// that have not begun to run. The driver skips the host functions of a context that has failed. It
/// may still call a skipped closure, so this crate keeps the closure and the values that it owns
/// forever. Such closures are counted too. `pending_host_functions` makes no driver call.
///
/// ```
/// use cuda_events::host_functions::pending_host_functions;
/// use cuda_events::{Context, Device, Stream, StreamOptions};
///
/// # use cuda_soft_driver::examples::Driver;
/// let driver = Driver::load()?;
/// let context = Context::primary(Device::new(driver, 0)?)?;
/// let stream = Stream::new(&context, StreamOptions::new())?;
///
/// stream.launch_host_function(|| println!("done"))?;
/// stream.synchronize()?;
/// assert_eq!(pending_host_functions(), 0);
/// # Ok::<(), cuda_events::Error>(())
/// ```
pub fn pending_host_functions() -> usize {
    // In a forked child, the lock may stay locked forever: a thread of the parent may have held
    // it.
    if fork::forked() { 0 } else { lock(&WAITING).closures.len() }
}

/// # Host functions
#[allow(unsafe_code)]
impl StreamRef {
    /// Calls `function` on a thread of the driver, after all work that is now in the stream and
    /// before all later work.
    ///
    /// The function must not wait for work of another stream, or for later work of this stream. The
    /// driver may run the host functions of all streams one after another. The function must not
    /// make CUDA calls: they may deadlock or fail.
    ///
    /// Dropping a [`Stream`](crate::Stream), an [`Event`](crate::Event), a
    /// [`Context`](crate::Context) or a future of the crate `cuda-timelines` is a CUDA call too. If
    /// the function owns one, send it to another thread and drop it there, as in the example.
    ///
    /// If the stream's context fails first, the function is never called (see
    /// [`pending_host_functions`]). A callback of [`add_callback`](Self::add_callback) is called
    /// even then.
    ///
    /// If the function panics, the panic message is printed as usual, and the work in the stream
    /// continues.
    ///
    /// The method refuses a capturing stream: a graph calls a captured host function at every
    /// launch, but this function can be called only once. To capture a host function, use
    /// [`launch_host_function_raw`](Self::launch_host_function_raw).
    ///
    /// Two driver calls: [`cuStreamIsCapturing`] and [`cuLaunchHostFunc`].
    ///
    /// ```
    /// use cuda_events::{Context, Device, EventFlags, Stream, StreamOptions};
    /// use std::sync::mpsc::channel;
    ///
    /// # use cuda_soft_driver::examples::Driver;
    /// let driver = Driver::load()?;
    /// let context = Context::primary(Device::new(driver, 0)?)?;
    /// let stream = Stream::new(&context, StreamOptions::new())?;
    /// let (sender, receiver) = channel();
    /// let event = stream.record_event(EventFlags::empty())?;
    /// stream.launch_host_function(move || {
    ///     // The work before is done. The event goes to the thread that receives it, and is
    ///     // dropped there.
    ///     let _ = sender.send(event);
    /// })?;
    /// let event = receiver.recv().expect("the function was called");
    /// assert!(event.query()?.is_done());
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// * [`Error::ClosureInCapture`]: the stream is capturing. The capture is not disturbed.
    /// * A [sticky](Error::is_sticky) error: the context has failed.
    /// * [`Error::ForkedChild`].
    ///
    /// On an error the closure is dropped.
    #[doc(alias = "cuLaunchHostFunc")]
    pub fn launch_host_function(&self, function: impl FnOnce() + Send + 'static) -> Result<()> {
        let launch = entry!(self, cuLaunchHostFunc);
        self.launch(launch, Box::new(move |_| function()), |launch, number| {
            // SAFETY: the stream is alive as long as `self` is; the function takes any number.
            unsafe { launch(self.as_raw(), Some(run_host_function), number) }
        })
    }

    /// Calls `callback` as [`launch_host_function`](Self::launch_host_function) does, with the
    /// result of the earlier work.
    ///
    /// If the stream's context fails, the callback is called with the error. That error names
    /// [`cuStreamAddCallback`], and not the work that failed. The callback may run under a lock of
    /// the driver, so it should be short.
    ///
    /// Two driver calls: [`cuStreamIsCapturing`] and `cuStreamAddCallback`.
    ///
    /// ```
    /// use cuda_events::{Context, Device, Stream, StreamOptions};
    ///
    /// # use cuda_soft_driver::examples::Driver;
    /// let driver = Driver::load()?;
    /// let context = Context::primary(Device::new(driver, 0)?)?;
    /// let stream = Stream::new(&context, StreamOptions::new())?;
    /// stream.add_callback(|result| match result {
    ///     Ok(()) => println!("the work before is done"),
    ///     Err(error) => eprintln!("the work before has failed: {error}"),
    /// })?;
    /// stream.synchronize()?;
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`launch_host_function`](Self::launch_host_function), and [`Error::Unsupported`] if the
    /// driver no longer has `cuStreamAddCallback`: NVIDIA's documentation says that it may be
    /// removed.
    #[doc(alias = "cuStreamAddCallback")]
    pub fn add_callback(&self, callback: impl FnOnce(Result<()>) + Send + 'static) -> Result<()> {
        let add = entry!(self, cuStreamAddCallback?)?;
        let closure = Box::new(move |status| callback(add.function.check(status)));
        self.launch(add, closure, |add, number| {
            // SAFETY: the stream is alive as long as `self` is; the function takes any number; the
            // flags must be 0.
            unsafe { add(self.as_raw(), Some(run_callback), number, 0) }
        })
    }

    /// Calls `function` with `data` on a thread of the driver, after all work that is in the stream
    /// now and before all later work.
    ///
    /// A capturing stream captures the call. Each launch of the graph then calls the function.
    ///
    /// One driver call: [`cuLaunchHostFunc`].
    ///
    /// ```
    /// use std::ffi::c_void;
    /// use std::sync::atomic::{AtomicU32, Ordering};
    ///
    /// use cuda_events::{Context, Device, Stream, StreamOptions};
    ///
    /// # use cuda_soft_driver::examples::Driver;
    /// let driver = Driver::load()?;
    /// let context = Context::primary(Device::new(driver, 0)?)?;
    /// let stream = Stream::new(&context, StreamOptions::new())?;
    /// static CALLS: AtomicU32 = AtomicU32::new(0);
    ///
    /// unsafe extern "C" fn count(_: *mut c_void) {
    ///     CALLS.fetch_add(1, Ordering::Relaxed);
    /// }
    ///
    /// // SAFETY: the function takes no data, does not unwind and makes no CUDA call.
    /// unsafe { stream.launch_host_function_raw(count, std::ptr::null_mut()) }?;
    /// stream.synchronize()?;
    /// assert_eq!(CALLS.load(Ordering::Relaxed), 1);
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// A [sticky](Error::is_sticky) error if the context has failed; [`Error::ForkedChild`]. On an
    /// error the function is not called.
    ///
    /// # Safety
    ///
    /// It must be sound to call `function` with `data`, from another thread, at any time until the
    /// stream's work is done. If a graph captured the call, this must hold during each launch of
    /// the graph. `function` must not unwind and must not make CUDA calls.
    #[doc(alias = "cuLaunchHostFunc")]
    pub unsafe fn launch_host_function_raw(
        &self,
        function: unsafe extern "C" fn(*mut c_void),
        data: *mut c_void,
    ) -> Result<()> {
        // SAFETY: the stream is alive as long as `self` is; the caller vouches for the function.
        unsafe { call!(self, cuLaunchHostFunc(self.as_raw(), Some(function), data)) }?.check()
    }

    fn launch<F: Copy>(
        &self,
        entry: Entry<F>,
        closure: Closure,
        launch: impl FnOnce(F, *mut c_void) -> CUresult,
    ) -> Result<()> {
        // First, because a callback would invalidate the capture, and a closure in a graph would
        // run only at the first launch.
        if self.capture_status()? == CaptureStatus::Active {
            return Err(Error::ClosureInCapture { function: entry.function });
        }
        let number = keep(closure);
        let answer = entry.call(self, |pointer| launch(pointer, without_provenance_mut(number)));
        let launched = answer.and_then(Answer::check);
        if launched.is_err() {
            drop(take(number));
        }
        launched
    }
}
