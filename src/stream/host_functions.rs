//! Host functions: the program's own work in a stream.

use core::ffi::c_void;
use core::ptr::without_provenance_mut;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::driver::call::{Answer, Entry, call, entry};
use crate::driver::{fork, panics};
use crate::error::{Error, Result};
use crate::stream::StreamRef;
use crate::stream::capture_info::CaptureStatus;
use crate::sys::{CUresult, CUstream, Function};

type Closure = Box<dyn FnOnce(CUresult) + Send>;

/// The closures that the driver was given and has not called.
///
/// The driver gets a closure's number and never its address. So whatever it does with that, such as
/// calling it at every launch of a graph that another thread's capture has put it into, a closure
/// runs once at most, and a number whose closure is gone does nothing.
static WAITING: Mutex<Waiting> = Mutex::new(Waiting { last: 0, closures: BTreeMap::new() });

struct Waiting {
    last: usize,
    closures: BTreeMap<usize, Closure>,
}

/// No closure is called or dropped under the lock.
fn waiting() -> MutexGuard<'static, Waiting> {
    // Nothing under the lock leaves the map half changed.
    WAITING.lock().unwrap_or_else(PoisonError::into_inner)
}

fn keep(closure: Closure) -> usize {
    let mut waiting = waiting();
    waiting.last += 1;
    let number = waiting.last;
    waiting.closures.insert(number, closure);
    number
}

fn take(number: usize) -> Option<Closure> {
    waiting().closures.remove(&number)
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

/// How many closures that were given to [`StreamRef::launch_host_function`] and
/// [`StreamRef::add_callback`] in this process have not begun to run.
///
/// The driver skips the host functions of a context that has failed. Their closures, and what they
/// hold, are kept for good, since nothing tells that the driver will not call them yet; here they
/// are counted.
///
/// ```
/// use cuda_events::host_functions::pending_host_functions;
/// # use cuda_events::{Context, Device, Stream, StreamOptions};
/// # let soft = cuda_soft_driver::SoftDriver::new();
/// # let driver = soft.driver();
/// # let context = Context::primary(Device::new(driver, 0)?)?;
/// # let stream = Stream::new(&context, StreamOptions::new())?;
///
/// stream.launch_host_function(|| println!("done"))?;
/// stream.synchronize()?;
/// assert_eq!(pending_host_functions(), 0);
/// # Ok::<(), cuda_events::Error>(())
/// ```
pub fn pending_host_functions() -> usize {
    // In a forked child another thread of the parent may seem to hold the lock for ever.
    if fork::forked() { 0 } else { waiting().closures.len() }
}

#[allow(unsafe_code)]
impl StreamRef {
    /// Calls `function` on a thread of the driver's, after all work that is in the stream now and
    /// before all that comes later.
    ///
    /// The function must not make CUDA calls, and must not wait for work that is not before it in
    /// the stream: the driver may run the host functions of all streams one after another. Dropping
    /// is a call too: a [`Stream`](crate::Stream), an [`Event`](crate::Event) or a
    /// [`Context`](crate::Context) that the function owns is destroyed on the driver's thread when
    /// the function ends, and dropping a [`Completion`](crate::ext::Completion) may wait for a
    /// query that the driver does not answer meanwhile. The driver may refuse that, so that the
    /// thing stays for ever, or deadlock. Keep such things elsewhere, or send them to another
    /// thread, to be dropped there (the example does). If the stream's context fails before its
    /// turn comes it is never called (see [`pending_host_functions`]);
    /// [`add_callback`](Self::add_callback) is called then too. If it panics, the panic is reported
    /// as any other and ends there.
    ///
    /// A capturing stream is refused. A graph calls a captured host function at every launch, and
    /// this one can be called once; capture one with
    /// [`launch_host_function_raw`](Self::launch_host_function_raw).
    ///
    /// It is two driver calls: the other is `cuStreamIsCapturing`.
    ///
    /// # Errors
    ///
    /// [`Error::ClosureInCapture`] for a capturing stream, whose capture goes on unharmed; the
    /// driver's code; [`Error::ForkedChild`]. The closure is dropped then.
    ///
    /// ```
    /// use cuda_events::{Context, Device, EventFlags, Stream, StreamOptions};
    /// use std::sync::mpsc::channel;
    ///
    /// # let soft = cuda_soft_driver::SoftDriver::new();
    /// # let driver = soft.driver();
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
    #[doc(alias = "cuLaunchHostFunc")]
    pub fn launch_host_function(&self, function: impl FnOnce() + Send + 'static) -> Result<()> {
        let launch = entry!(self, cuLaunchHostFunc);
        self.launch(launch, Box::new(move |_| function()), |launch, number| {
            // SAFETY: the stream is alive as long as `self` is; the function takes any number.
            unsafe { launch(self.as_raw(), Some(run_host_function), number) }
        })
    }

    /// As [`launch_host_function`](Self::launch_host_function), for a function that is told how the
    /// work before it went: it is called when the stream's context has failed too, with the error.
    ///
    /// The error's function is `cuStreamAddCallback`, whichever work failed. The function may run
    /// under a lock of the driver's, so it should be short. NVIDIA calls the driver's function one
    /// that may be removed some day.
    ///
    /// Driver calls: as there, with `cuStreamAddCallback`.
    ///
    /// # Errors
    ///
    /// As [`launch_host_function`](Self::launch_host_function).
    ///
    /// ```
    /// # use cuda_events::{Context, Device, Stream, StreamOptions};
    /// # let soft = cuda_soft_driver::SoftDriver::new();
    /// # let driver = soft.driver();
    /// # let context = Context::primary(Device::new(driver, 0)?)?;
    /// # let stream = Stream::new(&context, StreamOptions::new())?;
    /// stream.add_callback(|result| match result {
    ///     Ok(()) => println!("the work before is done"),
    ///     Err(error) => eprintln!("the work before has failed: {error}"),
    /// })?;
    /// # stream.synchronize()?;
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    #[doc(alias = "cuStreamAddCallback")]
    pub fn add_callback(&self, callback: impl FnOnce(Result<()>) + Send + 'static) -> Result<()> {
        let add = entry!(self, cuStreamAddCallback);
        let closure = Box::new(move |status| callback(add.answer(status).check()));
        self.launch(add, closure, |add, number| {
            // SAFETY: the stream is alive as long as `self` is; the function takes any number; 0
            // are the flags there are.
            unsafe { add(self.as_raw(), Some(run_callback), number, 0) }
        })
    }

    /// Calls `function` with `data` on a thread of the driver's, after all work that is in the
    /// stream now and before all that comes later. A capturing stream captures it: then it is
    /// called at every launch of the graph.
    ///
    /// It is one driver call, `cuLaunchHostFunc`.
    ///
    /// # Errors
    ///
    /// What the driver returns; [`Error::ForkedChild`]. The function is not called then.
    ///
    /// # Safety
    ///
    /// `function` may be called with `data`, from another thread, at any time until the stream's
    /// work is done and as often as a graph that captured it is launched. It must not unwind and
    /// must not make CUDA calls.
    #[doc(alias = "cuLaunchHostFunc")]
    pub unsafe fn launch_host_function_raw(
        &self,
        function: unsafe extern "C" fn(*mut c_void),
        data: *mut c_void,
    ) -> Result<()> {
        // SAFETY: the stream is alive as long as `self` is; the caller vouches for the function.
        unsafe { call!(self, cuLaunchHostFunc(self.as_raw(), Some(function), data)) }
    }

    fn launch<F: Copy>(
        &self,
        entry: Entry<F>,
        closure: Closure,
        launch: impl FnOnce(F, *mut c_void) -> CUresult,
    ) -> Result<()> {
        self.refuse_capture(entry.function)?;
        let number = keep(closure);
        let answer = entry.ask(self, |pointer| launch(pointer, without_provenance_mut(number)));
        let launched = answer.and_then(Answer::check);
        if launched.is_err() {
            drop(take(number));
        }
        launched
    }

    /// Asked beforehand, because a callback would end the capture, and a closure in a graph would
    /// run at the first launch only.
    fn refuse_capture(&self, function: Function) -> Result<()> {
        if self.capture_status()? == CaptureStatus::Active {
            return Err(Error::ClosureInCapture { function });
        }
        Ok(())
    }
}
