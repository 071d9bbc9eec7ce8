//! The exit status of a process in which the checker has found an error.

use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

/// The exit status that the process is to have; 0 leaves it as it is.
static STATUS: AtomicI32 = AtomicI32::new(0);
/// The process that has the status. A child of a fork has its own.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// Sets the status with which [`leave`] ends this process. 0 for none.
pub fn set(status: u8) {
    PROCESS.store(std::process::id(), Ordering::Relaxed);
    STATUS.store(i32::from(status), Ordering::Relaxed);
}

/// The status with which a process ends that would end with `own`.
#[must_use]
pub fn status(own: i32) -> i32 {
    let status = STATUS.load(Ordering::Relaxed);
    let is_set = status != 0 && PROCESS.load(Ordering::Relaxed) == std::process::id();
    if is_set { status } else { own }
}

/// Ends the process with the status, if there is one. Only for handlers of the exit.
pub fn leave() {
    let status = STATUS.swap(0, Ordering::Relaxed);
    if status == 0 || PROCESS.load(Ordering::Relaxed) != std::process::id() {
        return;
    }
    // SAFETY: in a handler of the exit, glibc's `exit` continues with the handlers that are left,
    // and the process ends with the new status.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    unsafe {
        libc::exit(status)
    };
    // SAFETY: another library may not allow that. So this is the last handler, after what the
    // program has printed was written.
    #[cfg(all(unix, not(all(target_os = "linux", target_env = "gnu"))))]
    unsafe {
        libc::fflush(core::ptr::null_mut());
        libc::_exit(status)
    };
}
