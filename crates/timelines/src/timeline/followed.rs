//! Whether the thread looks after an import, or after a shared timeline, and until when.

use crate::sync::{AtomicBool, AtomicU64, Ordering};

/// The value that streams wait for, and whether the thread follows it.
///
/// Why the thread follows every wait:
///
/// 1. [`begin`](Self::begin) notes the value, and then exchanges `on` for `true`.
///    [`is_over`](Self::is_over) exchanges `on` for `false`, and then reads the value.
/// 2. Exchanges of one atomic have one order, and each reads what the one before it wrote.
/// 3. If that of `begin` comes later, it reads `false`, and the caller gives the import to the
///    thread again.
/// 4. If it comes earlier, that of `is_over` reads it, or reads a later exchange, which continues
///    its release sequence in any ordering. It acquires, so the value that it reads next is not
///    older than the one of step 1: the thread goes on, unless that value is over, too.
/// 5. If the thread then goes on, it exchanges `on` once more. A caller that got `false` in between
///    has given the import to the thread a second time, and this first one ends. This exchange
///    orders nothing: step 3 gives the import to the thread through a lock.
pub(super) struct Followed {
    /// The largest value that a stream was given to wait for.
    waited: AtomicU64,
    /// Whether the thread has the import.
    on: AtomicBool,
}

impl Followed {
    pub(super) fn new() -> Self {
        Self { waited: AtomicU64::new(0), on: AtomicBool::new(false) }
    }

    /// Notes, before it is submitted, that a stream waits for a value; whether the thread must be
    /// given the import.
    pub(super) fn begin(&self, value: u64) -> bool {
        // Spare exchange: the checks have one waiter. With two, the largest value must stay.
        self.waited.fetch_max(value, Ordering::Relaxed);
        !self.on.swap(true, Ordering::Release)
    }

    /// For the thread: whether the import is over, by `is_over` of the value.
    pub(super) fn is_over(&self, is_over: impl Fn(u64) -> bool) -> bool {
        let is_over = || is_over(self.waited.load(Ordering::Relaxed));
        if !is_over() {
            return false;
        }
        self.on.swap(false, Ordering::Acquire);
        is_over() || self.on.swap(true, Ordering::Relaxed)
    }

    /// The largest value that was waited for. With exclusive access, none comes later.
    pub(super) fn largest(&mut self) -> u64 {
        self.waited.load(Ordering::Relaxed)
    }
}

/// Whether the thread looks after timelines whose states have locks.
///
/// Why the thread looks after every signal:
///
/// 1. A signal is noted in a state under its lock, and then [`begin`](Self::begin) reads `on`.
///    [`is_over`](Self::is_over) stores `false`, and then looks at the states under their locks.
/// 2. If its look comes before the signal, then the lock orders the store before the read: `begin`
///    reads `false`, and the caller gives the timelines to the thread again.
/// 3. If the look comes after the signal, it finds the signal. The thread goes on, unless its
///    exchange shows that the timelines were given to it a second time.
pub(super) struct Called(AtomicBool);

impl Called {
    pub(super) fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Whether the thread may have to be called, after a signal was noted.
    #[inline(always)]
    pub(super) fn is_off(&self) -> bool {
        // Spare ordering, here and below: the locks of the states order it. It costs nothing on
        // x86.
        !self.0.load(Ordering::SeqCst)
    }

    /// Whether the thread must be given the timelines.
    pub(super) fn begin(&self) -> bool {
        // Spare ordering: as in the function above.
        !self.0.swap(true, Ordering::SeqCst)
    }

    /// For the thread: whether the timelines are over, by `is_over` of their states.
    pub(super) fn is_over(&self, is_over: impl Fn() -> bool) -> bool {
        if !is_over() {
            return false;
        }
        // Spare ordering: as in the function above.
        self.0.store(false, Ordering::SeqCst);
        is_over() || self.0.swap(true, Ordering::SeqCst)
    }
}
