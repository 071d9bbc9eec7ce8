//! The end of the process by a signal, or without the handlers of the exit.

use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::io::{Error, Write};

use cuda_order_check_engine::pipe::without_signal;

use crate::pinned::faults::{Ends, default_action, ends_by, register};
use crate::summary::{summary, waits_for_lock};
use crate::walk;

/// The signals that end a program, and that users send.
const SIGNALS: [c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// What the thread is asked for: a bit for each signal. The thread waits for this word, and not at
/// a pipe: a program may close all its descriptors, and then has the numbers for its own files.
static WANTED: AtomicU32 = AtomicU32::new(0);
/// The process that has the thread, or 0.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// The bit of no signal: the program ends the process without the handlers of the exit.
const LEAVES: c_int = 0;
/// Whether the summary is written.
static WRITTEN: AtomicBool = AtomicBool::new(false);

/// The milliseconds that an end waits for a thread that works on the summary, and for one that
/// sleeps all the while: it waits for what the interrupted thread has, such as an allocator's lock.
const PATIENCE: u32 = 10_000;
const ASLEEP: u32 = 200;
/// The thread's number, from its beginning.
static NUMBER: AtomicU32 = AtomicU32::new(0);

/// Has the summary written also if a signal ends the process.
pub fn watch_process() {
    walk::at_first_call(watch_signals);
}

/// Whether this process has the thread. A child of a fork has none.
fn has_thread() -> bool {
    PROCESS.load(Ordering::Acquire) == std::process::id()
}

/// Wakes who waits for this word.
fn wake(word: &'static AtomicU32) {
    let flags = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: a word that lives as long as the process.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), flags, 1) };
}

/// Waits while the word is 0, or until it is woken; without a time for ever.
fn wait(word: &'static AtomicU32, time: Option<&libc::timespec>) {
    let flags = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    let time = time.map_or(core::ptr::null(), core::ptr::from_ref);
    // SAFETY: as above, and a time or NULL.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), flags, 0, time) };
}

/// Asks the thread. A handler may call it.
fn want(signal: c_int) {
    WANTED.fetch_or(1 << signal, Ordering::Release);
    wake(&WANTED);
}

/// What the thread is asked for next.
fn wanted() -> u32 {
    loop {
        match WANTED.swap(0, Ordering::Acquire) {
            0 => wait(&WANTED, None),
            bits => return bits,
        }
    }
}

/// A thread writes the summary: a handler may not, as it runs in the middle of anything.
fn watch_signals() {
    let ends = || {
        // SAFETY: it has no preconditions.
        NUMBER.store(unsafe { libc::gettid() }.unsigned_abs(), Ordering::Release);
        wake(&NUMBER);
        loop {
            let bits = wanted();
            summary();
            WRITTEN.store(true, Ordering::Release);
            if let Some(signal) = SIGNALS.into_iter().find(|signal| bits & 1 << signal != 0) {
                end(signal);
            }
        }
    };
    let thread = std::thread::Builder::new().name("cuda-order-check".to_owned());
    if all_signals_blocked(|| thread.spawn(ends)).is_err() {
        return;
    }
    // It allocates as it begins, and a signal that the program gets next would interrupt that.
    wait(&NUMBER, Some(&libc::timespec { tv_sec: 1, tv_nsec: 0 }));
    ends_by(Ends { instead_of, is_own });
    PROCESS.store(std::process::id(), Ordering::Release);
    for signal in SIGNALS {
        let mut found = default_action();
        register(signal, None, &mut found);
        if found.sa_sigaction == libc::SIG_DFL {
            register(signal, Some(&own_action()), core::ptr::null_mut());
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

fn own_action() -> libc::sigaction {
    let mut action = default_action();
    action.sa_sigaction = on_signal as *const () as libc::sighandler_t;
    action.sa_flags = libc::SA_RESTART | libc::SA_ONSTACK;
    action
}

/// Whether this is the handler of this library: for the program it is the default.
fn is_own(handler: libc::sighandler_t) -> bool {
    handler == on_signal as *const () as libc::sighandler_t
}

/// What is in the place of the default that the program sets.
fn instead_of(signal: c_int, handler: libc::sighandler_t) -> Option<libc::sigaction> {
    let is_it = handler == libc::SIG_DFL && SIGNALS.contains(&signal) && has_thread();
    is_it.then(own_action)
}

/// The signal ends the process, as if nobody had handled it.
fn end(signal: c_int) {
    register(signal, Some(&default_action()), core::ptr::null_mut());
    // Every thread may block it: this one in its handler, or where it waits with another mask.
    // SAFETY: a set that is emptied first; the rest has no preconditions.
    unsafe {
        let mut only = core::mem::MaybeUninit::<libc::sigset_t>::zeroed();
        libc::sigemptyset(only.as_mut_ptr());
        libc::sigaddset(only.as_mut_ptr(), signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, only.as_ptr(), core::ptr::null_mut());
        libc::kill(libc::getpid(), signal);
    }
}

/// The program may become another one. In a child of a fork, which may have the memory of its
/// parent, nothing waits.
pub fn before_exec() {
    if has_thread() {
        walk::catch_up();
    }
}

/// The program ends the process by `_exit` or `abort`. It may do so in a handler of a signal, so the
/// summary is the thread's, and is not waited for without end: the handler may have interrupted what
/// the thread needs. A child of a fork, also one that has the memory of its parent, has no such
/// thread.
pub fn before_exit() {
    if !has_thread() {
        return;
    }
    want(LEAVES);
    if !is_written() {
        const TEXT: &str = "cuda-order-check: the process ended in the midst of what the summary \
                            needs, so there is none\n";
        let write = || {
            // SAFETY: so many bytes of text. A handler may call it.
            let count = unsafe { libc::syscall(libc::SYS_write, 2, TEXT.as_ptr(), TEXT.len()) };
            if count < 0 { Err(Error::last_os_error()) } else { Ok(()) }
        };
        let _ = without_signal(write);
    }
}

/// Waits for the summary, though not without end. A handler may call it.
fn is_written() -> bool {
    let mut asleep = 0;
    for _ in 0..PATIENCE {
        if WRITTEN.load(Ordering::Acquire) {
            return true;
        }
        asleep = if waits_for_lock() || sleeps() { asleep + 1 } else { 0 };
        if asleep == ASLEEP {
            return false;
        }
        let time = libc::timespec { tv_sec: 0, tv_nsec: 1_000_000 };
        // SAFETY: a time, and no place for what is left of it.
        unsafe { libc::nanosleep(&time, core::ptr::null_mut()) };
    }
    false
}

/// Whether the thread sleeps, by the letter after its name, which is in brackets. On a busy machine
/// one that works may wait for its turn for long, and does not sleep.
fn sleeps() -> bool {
    // A handler of signals calls this, so it must not allocate.
    let (mut path, mut text) = ([0_u8; 48], [0_u8; 64]);
    let number = NUMBER.load(Ordering::Acquire);
    if write!(&mut path[..47], "/proc/self/task/{number}/stat").is_err() {
        return false;
    }
    // SAFETY: a path, and a place for so many bytes. These are calls that a handler may make.
    let count = unsafe {
        let flags = libc::O_RDONLY | libc::O_CLOEXEC;
        let file = libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags);
        let count = libc::syscall(libc::SYS_read, file, text.as_mut_ptr(), text.len());
        libc::syscall(libc::SYS_close, file);
        usize::try_from(count).unwrap_or(0)
    };
    let mut after = text.iter().take(count).skip_while(|sign| **sign != b')').skip(2);
    after.next().is_none_or(|state| *state == b'S')
}

extern "C" fn on_signal(signal: c_int) {
    // SAFETY: the place of the error number is the thread's own, here and below.
    let error = unsafe { *libc::__errno_location() };
    if !has_thread() {
        end(signal);
    } else {
        want(signal);
        // A program that sends itself the signal does not expect to go on. But this thread may have
        // what the summary needs: an allocator's lock, say.
        if is_written() {
            end(signal);
        }
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = error };
}

#[cfg(test)]
mod tests {
    use super::all_signals_blocked;

    fn mask() -> Vec<bool> {
        let mut set = core::mem::MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: a place for the set, which the first call fills.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, core::ptr::null(), set.as_mut_ptr());
            let set = set.assume_init();
            (1..=31).map(|signal| libc::sigismember(&set, signal) == 1).collect()
        }
    }

    /// The thread that it starts gets none of the program's signals, and this one as before.
    #[test]
    fn signals_are_blocked_for_a_while() {
        let before = mask();
        let inside = all_signals_blocked(mask);
        assert_eq!(mask(), before);
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGUSR1, libc::SIGALRM] {
            assert!(inside[signal as usize - 1], "{signal}");
        }
    }
}
