//! What is unusual about this process, in one flag that the hot path looks at.
//!
//! The driver does not survive a fork: in the child most calls answer `CUDA_ERROR_NOT_INITIALIZED`, queries of inherited
//! handles answer success, and destroying an inherited stream crashes. And a handle of one driver library is an arbitrary
//! address to another. Neither is so in most processes, so that the wrappers ask for both at once, and look closer only
//! when the answer is not zero.

use core::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

/// A bit of the flag: this process was forked from one in which the driver was initialised.
const FORKED: u8 = 1;
/// A bit of the flag: this process has loaded more than one driver library.
const SEVERAL_DRIVERS: u8 = 2;

static UNUSUAL: AtomicU8 = AtomicU8::new(0);

/// Whether the hot path must look closer.
#[inline(always)]
pub(crate) fn unusual() -> bool {
    UNUSUAL.load(Ordering::Relaxed) != 0
}

/// Whether the driver is unusable here because the process was forked after the driver was initialised.
#[inline(always)]
pub(crate) fn forked() -> bool {
    UNUSUAL.load(Ordering::Relaxed) & FORKED != 0
}

/// Runs a caller's code where a panic must not get out: inside a function that the driver calls, or in a thread of ours.
/// The panic hook has reported it; what it carries is dropped here, and leaked if that panics again.
pub(crate) fn contain(code: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(code))
        && let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(payload)))
    {
        core::mem::forget(payload);
    }
}

/// Notes that a driver library was loaded; `library` tells it from others, and is not 0.
pub(crate) fn note_library(library: usize) {
    static FIRST: AtomicUsize = AtomicUsize::new(0);
    let first = FIRST.compare_exchange(0, library, Ordering::Relaxed, Ordering::Relaxed);
    if first.is_err_and(|first| first != library) {
        // Whoever gets this driver gets it from this thread, and so sees the flag.
        UNUSUAL.fetch_or(SEVERAL_DRIVERS, Ordering::Relaxed);
    }
}

/// Notes that the driver is live, or that its objects were handed to this process, so that a child that is forked from
/// now on is recognised.
pub(crate) fn note_initialised() {
    static HANDLER: Once = Once::new();
    HANDLER.call_once(register);
}

#[cfg(unix)]
#[allow(unsafe_code)]
fn register() {
    type Handler = Option<unsafe extern "C" fn()>;
    unsafe extern "C" {
        fn pthread_atfork(prepare: Handler, parent: Handler, child: Handler) -> core::ffi::c_int;
    }

    unsafe extern "C" fn in_child() {
        UNUSUAL.fetch_or(FORKED, Ordering::Relaxed);
    }

    // SAFETY: the declaration is POSIX's. The handler only changes an atomic, which is allowed in a forked child, and it
    // is as long-lived as the object that it is part of: the C library takes it off when that object is unloaded. Failure
    // (out of memory) leaves the child without the check, as on a platform without fork handlers.
    unsafe { pthread_atfork(None, None, Some(in_child)) };
}

#[cfg(not(unix))]
fn register() {}
