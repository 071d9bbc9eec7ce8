//! The end of a process whose driver is not dropped.

#[cfg(unix)]
use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) use cuda_order_check_engine::exit::leave;

#[cfg(unix)]
use crate::machine::MACHINES;

/// Whether a handler of the shared library leaves.
#[cfg(unix)]
static LIBRARY: AtomicBool = AtomicBool::new(false);

/// Looks at the status when the process ends.
pub(crate) fn watch() {
    #[cfg(unix)]
    {
        extern "C" fn at_exit() {
            if !LIBRARY.load(Ordering::Relaxed) {
                summaries();
                leave();
            }
        }
        static ONCE: std::sync::Once = std::sync::Once::new();
        ONCE.call_once(|| {
            // SAFETY: the handler takes no arguments, and nothing may unload this code once it
            // was used. If there is no memory for it, the exit status does not change.
            unsafe { libc::atexit(at_exit) };
        });
    }
}

/// The shared library calls [`leave`] when it has written its summary. Handlers run in the
/// reverse order of their registration, so the one here would leave before that.
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
pub(crate) fn leave_to_library() {
    LIBRARY.store(true, Ordering::Relaxed);
}

/// Writes the summaries of the drivers that were not dropped: a program may end by `exit`, or
/// have its driver in a static variable. The shared library does it by itself.
#[cfg(unix)]
pub(crate) fn summaries() {
    if LIBRARY.load(Ordering::Relaxed) {
        return;
    }
    for machine in MACHINES.iter().filter(|machine| !machine.switches.forked()) {
        // The threads that set and copy memory go on while the process ends, and take the lock.
        match machine.lock_within(std::time::Duration::from_secs(10)) {
            Some(mut state) => {
                state.feed(|feed, _| feed.observer_mut().summary());
            }
            None => {
                crate::say!("no summary: a call did not return while the process ended");
            }
        }
    }
}
