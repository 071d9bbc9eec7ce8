//! The host's own accesses to pinned memory, by the protection of pages.
//!
//! From the submission of an asynchronous copy until the host is ordered after it, its pinned pages
//! are protected: those that it reads from writes, those that it writes from all accesses. The
//! device goes on as ever. An access of the host faults: [`faults`] notes it in [`accesses`], lifts
//! the [`protection`], and has the access tried again. The next hook gives it to the checker, which
//! decides by the accessed bytes whether the order is missing. [`calls`] does the same for system
//! calls, which would fail. The page of a flag that a stream will write is protected from writes as
//! well: the host may set the flag back before its next call. [`budget`] bounds what all this may
//! take.

use core::sync::atomic::{AtomicU8, Ordering};

pub(crate) mod accesses;
pub(crate) mod budget;
pub(crate) mod bytes;
pub mod calls;
pub mod faults;
pub(crate) mod protection;

/// The program has not come to the driver yet.
const UNDECIDED: u8 = 0;
const ON: u8 = 1;
const OFF: u8 = 2;

static STATE: AtomicU8 = AtomicU8::new(UNDECIDED);

/// Whether pages may be protected.
pub(crate) fn is_on() -> bool {
    STATE.load(Ordering::Relaxed) == ON
}

/// Whether pages may be protected some day.
pub(crate) fn may_be_on() -> bool {
    STATE.load(Ordering::Relaxed) != OFF
}

/// Nothing is protected from now on.
pub(crate) fn stop() {
    STATE.store(OFF, Ordering::Relaxed);
}

/// Nothing is protected any longer, nor will be: after an error, and in the child of a fork.
pub(crate) fn give_up() {
    stop();
    protection::forget_all();
}

/// Whether accesses wait for the next hook, or pages to be protected anew.
pub(crate) fn has_more() -> bool {
    accesses::any() || protection::has_holes()
}

/// Gets ready to protect pages.
pub(crate) fn prepare() {
    faults::look_up();
    faults::unblock();
    STATE.store(ON, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::Ordering;

    use super::{OFF, STATE, UNDECIDED, faults, prepare};

    /// Whether the calling thread blocks SIGSEGV and SIGUSR1.
    fn blocked() -> [bool; 2] {
        let mut set = core::mem::MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: a place for the set, which the call fills.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, core::ptr::null(), set.as_mut_ptr());
            let set = set.assume_init();
            [libc::SIGSEGV, libc::SIGUSR1].map(|signal| libc::sigismember(&set, signal) == 1)
        }
    }

    /// A fault that is blocked ends the process: neither the parent nor the program can have it so, as
    /// long as pages may be protected.
    #[test]
    fn faults_are_not_blocked() {
        let _turn = crate::lock::TURN.lock();
        let before = STATE.load(Ordering::Relaxed);
        let work = || {
            let mut both = core::mem::MaybeUninit::<libc::sigset_t>::uninit();
            // SAFETY: a set that is made here.
            let both = unsafe {
                libc::sigemptyset(both.as_mut_ptr());
                libc::sigaddset(both.as_mut_ptr(), libc::SIGSEGV);
                libc::sigaddset(both.as_mut_ptr(), libc::SIGUSR1);
                both.assume_init()
            };
            // SAFETY: a set, and no place for the old one; here and below.
            let real = |how| unsafe { libc::pthread_sigmask(how, &both, core::ptr::null_mut()) };
            assert_eq!((real(libc::SIG_BLOCK), blocked()), (0, [true; 2]));
            prepare();
            assert_eq!(blocked(), [false, true], "what the parent had blocked");
            // SAFETY: as above.
            let mask = |how| unsafe { faults::mask(how, &both, core::ptr::null_mut()) };
            for how in [libc::SIG_BLOCK, libc::SIG_SETMASK] {
                assert_eq!((mask(how), blocked()), (0, [false, true]));
            }
            real(libc::SIG_BLOCK);
            assert_eq!((mask(libc::SIG_UNBLOCK), blocked()), (0, [false; 2]));
            // It may be on some day; if not, the program has its own way, also in its handlers.
            let mut action = faults::default_action();
            action.sa_mask = both;
            for (state, blocks) in [(UNDECIDED, false), (OFF, true)] {
                STATE.store(state, Ordering::Relaxed);
                assert_eq!((mask(libc::SIG_BLOCK), blocked()), (0, [blocks, true]));
                let mut found = faults::default_action();
                // SAFETY: an action, and a place for one.
                let codes = unsafe {
                    let none = core::ptr::null_mut();
                    let set = faults::sigaction(libc::SIGUSR2, &action, none);
                    [set, faults::sigaction(libc::SIGUSR2, core::ptr::null(), &mut found)]
                };
                let masked = [libc::SIGSEGV, libc::SIGUSR1]
                    // SAFETY: a set of signals.
                    .map(|signal| unsafe { libc::sigismember(&found.sa_mask, signal) == 1 });
                assert_eq!((codes, masked), ([0; 2], [blocks, true]));
            }
        };
        std::thread::spawn(work).join().expect("no panic");
        STATE.store(before, Ordering::Relaxed);
    }
}
