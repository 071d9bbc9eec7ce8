//! The end of the process by a signal, or without the handlers of the exit.

use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use std::fs::File;
use std::io::Read;
use std::os::fd::{FromRawFd, IntoRawFd};

use crate::watch;

/// The signals that end a program, and that users send.
const SIGNALS: [c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// Where a handler writes, and the process that reads there.
static PIPE: AtomicI32 = AtomicI32::new(-1);
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// In the pipe: the program ends the process without the handlers of the exit.
const LEAVES: u8 = 0;
/// Whether the summary is written.
static WRITTEN: AtomicBool = AtomicBool::new(false);

/// The milliseconds that such an end waits for the summary.
const PATIENCE: u32 = 10_000;

/// Has the summary written also if a signal ends the process.
pub fn watch_process() {
    watch::at_first_call(watch_signals);
}

/// A thread writes the summary: a handler may not, as it runs in the middle of anything.
fn watch_signals() {
    let Ok((mut reader, writer)) = std::io::pipe() else { return };
    let writer = writer.into_raw_fd();
    PROCESS.store(std::process::id(), Ordering::Relaxed);
    PIPE.store(writer, Ordering::Release);
    let ends = move || {
        let mut signal = [0];
        while reader.read_exact(&mut signal).is_ok() {
            watch::summary();
            WRITTEN.store(true, Ordering::Release);
            if signal != [LEAVES] {
                end(c_int::from(signal[0]));
            }
        }
    };
    let thread = std::thread::Builder::new().name("cuda-order-check".to_owned());
    if all_signals_blocked(|| thread.spawn(ends)).is_err() {
        // SAFETY: it was made above, and no handler has it.
        drop(unsafe { File::from_raw_fd(writer) });
        return;
    }
    for signal in SIGNALS {
        let mut found = core::mem::MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: a place for the action, of which zeroes are a value.
        let found = unsafe {
            libc::sigaction(signal, core::ptr::null(), found.as_mut_ptr());
            found.assume_init()
        };
        if found.sa_sigaction == libc::SIG_DFL {
            set(signal, on_signal as *const () as libc::sighandler_t);
        }
    }
}

/// A thread inherits its signals; this one is to get none of the program's.
fn all_signals_blocked<R>(f: impl FnOnce() -> R) -> R {
    let mut all = core::mem::MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = core::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: places for the two sets, of which the first call fills one and the second the other.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
    }
    let result = f();
    // SAFETY: the set that was there before.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), core::ptr::null_mut()) };
    result
}

fn set(signal: c_int, handler: libc::sighandler_t) {
    let mut action = core::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: zeroes are a value of that type; the handler is a function of the right type that
    // calls only what a handler may, or the default.
    unsafe {
        (*action.as_mut_ptr()).sa_sigaction = handler;
        (*action.as_mut_ptr()).sa_flags = libc::SA_RESTART | libc::SA_ONSTACK;
        libc::sigaction(signal, action.as_ptr(), core::ptr::null_mut());
    }
}

/// The signal ends the process, as if nobody had handled it.
fn end(signal: c_int) {
    set(signal, libc::SIG_DFL);
    // SAFETY: both have no preconditions.
    unsafe { libc::kill(libc::getpid(), signal) };
}

/// The program may become another one. In a child of a fork, which may have the memory of its
/// parent, nothing waits.
pub fn before_exec() {
    if PROCESS.load(Ordering::Relaxed) == std::process::id() {
        watch::catch_up();
    }
}

/// The program ends the process by `_exit` or `abort`. It may do so in a handler of a signal, so the
/// summary is the thread's, and is not waited for without end: the handler may have interrupted what
/// the thread needs. A child of a fork, also one that has the memory of its parent, has no such
/// thread.
pub fn before_exit() {
    let pipe = PIPE.load(Ordering::Acquire);
    if pipe < 0 || PROCESS.load(Ordering::Relaxed) != std::process::id() {
        return;
    }
    let leaves = LEAVES;
    let pause = libc::timespec { tv_sec: 0, tv_nsec: 1_000_000 };
    // SAFETY: a byte of a variable; a handler may call both.
    unsafe {
        if libc::write(pipe, (&raw const leaves).cast(), 1) != 1 {
            return;
        }
        for _ in 0..PATIENCE {
            if WRITTEN.load(Ordering::Acquire) {
                return;
            }
            libc::nanosleep(&pause, core::ptr::null_mut());
        }
    }
}

extern "C" fn on_signal(signal: c_int) {
    let number = signal as u8;
    // SAFETY: the functions may be called in a handler; a byte is written from a variable. The
    // place of the error number is the thread's own.
    unsafe {
        let error = *libc::__errno_location();
        let here = PROCESS.load(Ordering::Relaxed) == std::process::id();
        let pipe = PIPE.load(Ordering::Acquire);
        // A child of a fork has no such thread.
        if !here || libc::write(pipe, (&raw const number).cast(), 1) != 1 {
            end(signal);
        }
        *libc::__errno_location() = error;
    }
}
