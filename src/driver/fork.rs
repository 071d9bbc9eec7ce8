//! Whether this process was forked after the driver was initialised.

use std::sync::Once;

use super::flag;

/// Whether this process was forked after the driver was initialised, and so cannot use it.
#[inline(always)]
pub(crate) fn forked() -> bool {
    flag::is(flag::FORKED)
}

/// Notes that the driver is initialised, or that other code gave its objects to this crate. From
/// now on a forked child is recognised.
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
    // forked child. It lives as long as the shared object that contains it: the C library removes
    // it when that object is unloaded. If it fails (out of memory), the child has no check, as on a
    // platform without fork handlers.
    unsafe { pthread_atfork(None, None, Some(in_child)) };
}

#[cfg(not(unix))]
fn register() {}
