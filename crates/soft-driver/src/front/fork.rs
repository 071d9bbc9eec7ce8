//! `fork` and the end of the process: their handlers, which hold the locks and set the switches.
//!
//! The locks are taken around the fork, so that the child never finds one held by a thread that it
//! does not have. In the child every machine that was initialised answers from then on as the real
//! driver does there.

#[cfg(all(unix, not(miri)))]
mod unix {
    use core::cell::RefCell;
    use std::sync::{MutexGuard, Once};

    use crate::front::hooks::{self, Control};
    use crate::machine::switches::FORKED;
    use crate::machine::{Locked, MACHINES};
    use crate::order::findings;

    thread_local! {
        static HELD: RefCell<Vec<(MutexGuard<'static, Control>, Locked)>> =
            const { RefCell::new(Vec::new()) };
    }

    extern "C" fn before() {
        let _ = HELD.try_with(|held| {
            // The log and the faults first, as everywhere.
            held.borrow_mut().extend(
                MACHINES.iter().map(|machine| (hooks::of(machine).control(), machine.lock())),
            );
        });
    }

    extern "C" fn in_parent() {
        let _ = HELD.try_with(|held| held.borrow_mut().clear());
    }

    extern "C" fn in_child() {
        let _ = HELD.try_with(|held| {
            for ((_, state), machine) in held.borrow().iter().zip(&MACHINES) {
                if state.life.initialised {
                    machine.switches.set(FORKED, true);
                }
            }
            held.borrow_mut().clear();
        });
    }

    /// From here on every call answers that the driver is gone. Handlers run in the reverse order
    /// of their registration: what the program registered before it made its first driver finds
    /// none, what came later does.
    extern "C" fn at_exit() {
        for machine in &MACHINES {
            machine.switches.shut_down(true);
        }
        findings::exit::summaries();
    }

    pub(crate) fn watch() {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            // SAFETY: the function is never unloaded, as below, and sets a flag in statics.
            unsafe { libc::atexit(at_exit) };
            // SAFETY: the three functions are never unloaded: this crate is linked into the
            // program, or into a library that a driver's user never closes. What they do in the
            // child is to set a flag and to release locks that this very thread holds.
            unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
        });
    }
}

#[cfg(all(unix, not(miri)))]
pub(crate) use unix::watch;

/// Miri has no handlers of either, and does not fork.
#[cfg(not(all(unix, not(miri))))]
pub(crate) fn watch() {}
