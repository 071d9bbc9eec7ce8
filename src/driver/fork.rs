//! Whether this process was forked after the driver was initialised.

use std::sync::Once;

use super::flag;

/// Whether the driver is unusable here because the process was forked after the driver was
/// initialised.
#[inline(always)]
pub(crate) fn forked() -> bool {
    flag::is(flag::FORKED)
}

/// Notes that the driver is live, or that its objects were handed to this process, so that a child
/// that is forked from now on is recognised.
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
        flag::set(flag::FORKED);
    }

    // SAFETY: the declaration is POSIX's. The handler only changes an atomic, which is allowed in a
    // forked child, and it is as long-lived as the object that it is part of: the C library takes
    // it off when that object is unloaded. Failure (out of memory) leaves the child without the
    // check, as on a platform without fork handlers.
    unsafe { pthread_atfork(None, None, Some(in_child)) };
}

#[cfg(not(unix))]
fn register() {}
