//! Host functions that borrow, latches, and waits with a limit.

use std::ffi::c_void;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use cuda_events::foundation::call;
use cuda_events::{Error, Event, StreamRef};

use crate::report::Failure;

/// The tour's work takes much less. Work that takes longer will never end.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// Waits for the event for at most [`TIMEOUT`].
pub(crate) fn finish(event: &Event) -> Result<(), Failure> {
    if event.synchronize_timeout(TIMEOUT)?.is_done() {
        Ok(())
    } else {
        Err(Failure::Runtime(format!(
            "the work on the device was not done after {} s",
            TIMEOUT.as_secs()
        )))
    }
}

/// Runs `work` on one of the driver's threads, in stream order. It must not call the driver.
///
/// # Safety
///
/// Everything that `work` borrows must stay alive until it has run.
pub(crate) unsafe fn run_on_host<'a>(
    stream: &StreamRef,
    work: impl FnOnce() + Send + 'a,
) -> Result<(), Error> {
    type Work<'a> = Box<dyn FnOnce() + Send + 'a>;

    extern "C" fn run(work: *mut c_void) {
        // SAFETY: the box that was given away below for this one call. The values that it
        // borrows still exist: the caller of `run_on_host` guarantees that.
        let work = unsafe { Box::from_raw(work.cast::<Work<'static>>()) };
        work();
    }

    let work: Work<'a> = Box::new(work);
    // A closure's pointer has two words and the driver carries one, so it is boxed again.
    let work = Box::into_raw(Box::new(work)).cast::<c_void>();
    let driver = stream.context().driver();
    // SAFETY: the stream is alive; the function takes the box over, and is called once.
    let launched = unsafe { call!(driver, cuLaunchHostFunc(stream.as_raw(), Some(run), work)) };
    launched.inspect_err(|_| {
        // SAFETY: the driver did not take the function, so that the box is still ours.
        drop(unsafe { Box::from_raw(work.cast::<Work<'a>>()) });
    })
}

/// Holds a stream: later work in it does not run before the latch is released or dropped.
///
/// In a function that creates a latch, declare it after the buffers: their drop waits for the work
/// that the latch holds.
pub(crate) struct Latch(#[expect(dead_code, reason = "dropping it releases the work")] Sender<()>);

impl Latch {
    pub(crate) fn hold(stream: &StreamRef) -> Result<Self, Error> {
        let (release, released) = channel::<()>();
        // Nothing is ever sent: the wait ends when the sender is dropped.
        let wait = move || {
            let _ = released.recv();
        };
        // SAFETY: the closure owns what it uses.
        unsafe { run_on_host(stream, wait) }?;
        Ok(Self(release))
    }

    pub(crate) fn release(self) {}
}
