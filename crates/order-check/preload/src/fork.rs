//! Forks of the process.

use core::cell::{Cell, UnsafeCell};
use std::sync::Once;

use crate::guard;

/// What a fork waits for, so that a child has all of it or nothing. Handlers of forks take and give
/// it, each in a function of its own.
struct Lock(UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: only the functions for such locks touch it.
unsafe impl Sync for Lock {}

static WHOLE: Lock = Lock(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER));

thread_local! {
    /// Whether this thread is in [`whole`]. A handler of a signal that forks there has what it needs.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

fn is_inside() -> bool {
    INSIDE.try_with(Cell::get).unwrap_or(false)
}

extern "C" fn take() {
    if !is_inside() {
        // SAFETY: a lock that lives as long as the process, and that this thread does not have.
        unsafe { libc::pthread_mutex_lock(WHOLE.0.get()) };
    }
}

extern "C" fn give() {
    if !is_inside() {
        // SAFETY: this thread, or the one that has become it in the child, has it by `take`.
        unsafe { libc::pthread_mutex_unlock(WHOLE.0.get()) };
    }
}

extern "C" fn in_child() {
    give();
    guard::forked();
}

/// Has handlers called at each fork. It comes before the first [`whole`]: a fork under way may have
/// the lock that this needs.
pub fn watch_forks() {
    static ONCE: Once = Once::new();
    // SAFETY: functions of this library, which nothing unloads.
    ONCE.call_once(|| _ = unsafe { libc::pthread_atfork(Some(take), Some(give), Some(in_child)) });
}

/// Work that takes turns, and that a fork of another thread does not come in between.
pub fn whole<R>(work: impl FnOnce() -> R) -> R {
    watch_forks();
    take();
    let _ = INSIDE.try_with(|inside| inside.set(true));
    let result = work();
    let _ = INSIDE.try_with(|inside| inside.set(false));
    give();
    result
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::whole;

    #[test]
    fn work_takes_turns() {
        let turns = AtomicU32::new(0);
        let work = || {
            let before = turns.load(Ordering::Relaxed);
            std::thread::yield_now();
            turns.store(before + 1, Ordering::Relaxed);
        };
        let both = std::sync::Barrier::new(2);
        let turn = || {
            both.wait();
            (0..10_000).for_each(|_| whole(work));
        };
        std::thread::scope(|scope| (0..2).for_each(|_| _ = scope.spawn(turn)));
        assert_eq!(turns.into_inner(), 20_000);
    }
}
