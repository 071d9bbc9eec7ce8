//! What keeps an error inside the library away from the program.
//!
//! The library's own work, all of it, runs in [`caught`]. A panic there switches the checker off
//! for the process: that is written once to standard error and again in the summary, and from then
//! on calls are only forwarded. The real call is not part of that work: it is made once, before, in
//! between or after.
//!
//! What holds in unusual places:
//!
//! * In a signal handler that has interrupted the library's own work on this thread, and in a
//!   function that the driver runs within that work, a call is forwarded and not seen. The next
//!   call that is seen then counts as ordered with everything.
//! * In the dynamic loader, in constructors of libraries: the memory of this thread's variables is
//!   there before a lock is taken, so that no thread waits for the loader with a lock.
//! * In a child of `fork`: before the first call of the parent it is a process of its own. After it
//!   the checker is off in the child, as the driver is, and it writes nothing.
//! * Running out of memory or of stack, and a panic while another one unwinds, end the process.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::cell::Cell;
use std::io::{Error, ErrorKind};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

use cuda_order_check_engine::pipe::without_signal;

use crate::settings::variable;

static OFF: AtomicBool = AtomicBool::new(false);
/// Whether a call was seen.
static USED: AtomicBool = AtomicBool::new(false);
/// Calls that were not seen.
static UNSEEN: AtomicU64 = AtomicU64::new(0);
/// The error that switched the checker off.
static ERROR: OnceLock<String> = OnceLock::new();
/// The function whose hook panics. For tests.
static PLANTED: OnceLock<String> = OnceLock::new();

thread_local!(static INSIDE: Cell<bool> = const { Cell::new(false) });

/// Whether calls are only forwarded.
pub(crate) fn off() -> bool {
    OFF.load(Ordering::Relaxed)
}

/// The error that switched the checker off.
pub(crate) fn error() -> Option<&'static str> {
    ERROR.get().map(String::as_str)
}

/// Own work that may come at any place of the program; `None` if the checker is off, or if this is
/// in the midst of such work.
pub(crate) fn own<R>(work: impl FnOnce() -> R) -> Option<R> {
    if off() {
        return None;
    }
    USED.store(true, Ordering::Relaxed);
    if INSIDE.try_with(|inside| inside.replace(true)) != Ok(false) {
        UNSEEN.fetch_add(1, Ordering::Relaxed);
        return None;
    }
    thread_is_ready();
    let done = caught(work);
    let _ = INSIDE.try_with(|inside| inside.set(false));
    done
}

/// What registers destructors of a thread's variables comes before any lock.
fn thread_is_ready() {
    thread_local!(static READY: Cell<bool> = const { Cell::new(false) });
    if READY.try_with(|ready| ready.replace(true)) == Ok(false) {
        cuda_order_check_engine::trace::thread_is_ready();
        crate::report::regions::thread_is_ready();
    }
}

/// Own work. A panic switches the checker off.
pub(crate) fn caught<R>(work: impl FnOnce() -> R) -> Option<R> {
    // What the work leaves unfinished is not used again.
    catch_unwind(AssertUnwindSafe(work)).map_err(switch_off).ok()
}

fn switch_off(cause: Box<dyn core::any::Any + Send>) {
    let text = match (cause.downcast_ref::<&str>(), cause.downcast_ref::<String>()) {
        (Some(text), _) => text,
        (_, Some(text)) => text.as_str(),
        _ => "unknown",
    };
    // Pages that are still protected would stop the program, as nothing lifts their protection now.
    crate::pinned::give_up();
    if !OFF.swap(true, Ordering::Relaxed) {
        let text = ERROR.get_or_init(|| text.to_owned());
        let line = format!(
            "cuda-order-check: an error inside the checker: {text}. It is off for this process; \
             all calls are forwarded\n"
        );
        let write = || {
            // SAFETY: so many bytes of text. It has no lock that a panic could have left.
            let count = unsafe { libc::write(2, line.as_ptr().cast(), line.len()) };
            if count < 0 { Err(Error::last_os_error()) } else { Ok(()) }
        };
        let _ = without_signal(write);
    }
    // It may panic when it is dropped.
    core::mem::forget(cause);
}

/// Whether there were calls that were not seen since [`take_unseen`].
pub(crate) fn has_unseen() -> bool {
    UNSEEN.load(Ordering::Relaxed) > 0
}

/// The number of calls that were not seen since the last question.
pub(crate) fn take_unseen() -> u64 {
    if has_unseen() { UNSEEN.swap(0, Ordering::Relaxed) } else { 0 }
}

/// In the child of a fork.
pub(crate) fn forked() {
    if USED.load(Ordering::Relaxed) {
        OFF.store(true, Ordering::Relaxed);
        crate::pinned::give_up();
    }
}

/// The process begins.
pub(crate) fn start() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        if let Some(name) = variable("CUDA_ORDER_CHECK_PLANT") {
            let _ = PLANTED.set(name.to_string_lossy().into_owned());
        }
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let _ = without_signal(|| {
                usual(panic);
                // It may have been, and does not say so.
                Err(ErrorKind::BrokenPipe.into())
            });
        }));
    });
}

/// Where tests plant a panic.
pub(crate) fn planted(name: &str) {
    if PLANTED.get().is_some_and(|planted| planted == name) {
        std::panic::panic_any("planted");
    }
}

#[cfg(test)]
mod tests {
    use super::{has_unseen, own, take_unseen};

    /// A call in the midst of own work is not seen, and counts until somebody takes the number.
    #[test]
    fn work_within_work_is_not_seen() {
        let _turn = crate::lock::TURN.lock();
        take_unseen();
        assert_eq!((own(|| 1), has_unseen()), (Some(1), false));
        assert_eq!(own(|| [own(|| 1), own(|| 2)]), Some([None; 2]));
        assert!(has_unseen());
        assert_eq!((take_unseen(), take_unseen(), has_unseen()), (2, 0, false));
        assert_eq!(own(|| 3), Some(3), "it is over");
    }
}
