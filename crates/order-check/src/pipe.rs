//! Writes to a pipe that nobody reads any more.

use std::io::{self, ErrorKind};
use std::mem::MaybeUninit;

/// Writes. If nobody reads there any more, the error says so, and no `SIGPIPE` ends the process:
/// the program may not write there itself.
///
/// # Errors
///
/// The error of the write.
pub fn without_signal(write: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    let mut sets = [MaybeUninit::<libc::sigset_t>::uninit(); 3];
    let [pipe, before, pending] = sets.each_mut().map(MaybeUninit::as_mut_ptr);
    // SAFETY: places for three sets. The calls that are made here fill each before it is read.
    unsafe {
        libc::sigemptyset(pipe);
        libc::sigaddset(pipe, libc::SIGPIPE);
        if libc::pthread_sigmask(libc::SIG_BLOCK, pipe, before) != 0 {
            return write();
        }
        // A signal of the program's own, which it has blocked, remains.
        libc::sigpending(pending);
        let is_own = libc::sigismember(pending, libc::SIGPIPE) == 1;
        let result = write();
        let broken = |error: &io::Error| error.kind() == ErrorKind::BrokenPipe;
        if !is_own && result.as_ref().is_err_and(broken) {
            let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            libc::sigtimedwait(pipe, core::ptr::null_mut(), &at_once);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, before, core::ptr::null_mut());
        result
    }
}
