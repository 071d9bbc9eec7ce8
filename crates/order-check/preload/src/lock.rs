//! Locks with ranks: a thread that has one may only wait for one of a higher rank. So no two
//! threads wait for each other. Builds with debug assertions check it at each lock; others have a
//! plain mutex.
//!
//! A try never waits, so it may come in any order: a thread that has the checker tries the list of
//! threads that have ended, and a function that the driver calls tries the checker.

use core::ops::{Deref, DerefMut};
use std::sync::{LockResult, Mutex, MutexGuard, PoisonError, TryLockError, TryLockResult};

/// The locks of the library, in the order in which a thread may wait for them. The lock for forks is
/// before all of them, as whoever has it runs the program's own code. The list of exports has none of
/// these: a child of a fork reads it too, and after the load all threads only read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    /// The threads that have ended. A signal handler of the program that interrupts a thread's end
    /// may make a call, which waits for the checker.
    EndedThreads,
    /// The checker, with the model of all objects.
    Checker,
    /// The executions of one host function: a launch adds one with the checker's lock.
    Executions,
    /// The posts of host functions. The next call takes it with the checker's lock.
    Posted,
    /// The entries for functions without a hook. A driver that is asked something
    /// with the checker's lock may look up a name.
    Entries,
    /// Images and decoded kernels. Nothing is done with it that takes long.
    Code,
    /// The answers of a launch's threads. Nothing is done with it that takes long.
    Answers,
    /// The counts of the trace.
    Counts,
    /// The names that were looked up and have no export.
    Unlisted,
}

/// A mutex with a rank.
#[derive(Debug)]
pub(crate) struct Lock<T> {
    rank: Rank,
    mutex: Mutex<T>,
}

/// The lock is taken while it lives.
pub(crate) struct Guard<'a, T> {
    guard: MutexGuard<'a, T>,
    _held: Held,
}

impl<T> Lock<T> {
    pub(crate) const fn new(rank: Rank, value: T) -> Self {
        Self { rank, mutex: Mutex::new(value) }
    }

    pub(crate) fn lock(&self) -> LockResult<Guard<'_, T>> {
        Held::check(self.rank);
        match self.mutex.lock() {
            Ok(guard) => Ok(self.guard(guard)),
            Err(poisoned) => Err(PoisonError::new(self.guard(poisoned.into_inner()))),
        }
    }

    /// Takes the lock if nobody has it.
    pub(crate) fn try_lock(&self) -> TryLockResult<Guard<'_, T>> {
        match self.mutex.try_lock() {
            Ok(guard) => Ok(self.guard(guard)),
            Err(TryLockError::WouldBlock) => Err(TryLockError::WouldBlock),
            Err(TryLockError::Poisoned(poisoned)) => {
                Err(TryLockError::Poisoned(PoisonError::new(self.guard(poisoned.into_inner()))))
            }
        }
    }

    fn guard<'a>(&self, guard: MutexGuard<'a, T>) -> Guard<'a, T> {
        Guard { guard, _held: Held::new(self.rank) }
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

#[cfg(debug_assertions)]
use checked::Held;

#[cfg(debug_assertions)]
mod checked {
    use core::cell::Cell;

    use super::Rank;

    thread_local! {
        /// The ranks of the locks that this thread has, a bit for each.
        static RANKS: Cell<u32> = const { Cell::new(0) };
    }

    /// A lock that this thread has.
    pub(super) struct Held(Rank);

    impl Held {
        /// The thread is about to wait for a lock of this rank.
        pub(super) fn check(rank: Rank) {
            let held = RANKS.get() >> rank as u32;
            assert!(held == 0, "a thread waits for the lock {rank:?} with one that comes later");
        }

        pub(super) fn new(rank: Rank) -> Self {
            RANKS.set(RANKS.get() | 1 << rank as u32);
            Self(rank)
        }
    }

    impl Drop for Held {
        fn drop(&mut self) {
            RANKS.set(RANKS.get() & !(1 << self.0 as u32));
        }
    }
}

#[cfg(not(debug_assertions))]
struct Held;

#[cfg(not(debug_assertions))]
impl Held {
    #[inline(always)]
    fn check(_: Rank) {}

    #[inline(always)]
    fn new(_: Rank) -> Self {
        Self
    }
}

/// The tests that begin to watch take turns.
#[cfg(test)]
pub(crate) static TURN: Mutex<()> = Mutex::new(());

#[cfg(all(test, debug_assertions))]
mod tests {
    use std::panic::catch_unwind;

    use std::sync::PoisonError;

    use super::{Guard, Lock, Rank};

    #[test]
    fn a_thread_waits_for_locks_by_their_ranks() {
        let [ended, checker, posted] =
            [Rank::EndedThreads, Rank::Checker, Rank::Posted].map(|rank| Lock::new(rank, ()));
        let refused = |lock: &Lock<()>| catch_unwind(|| drop(lock.mutex_of_test())).is_err();
        let first = checker.lock().expect("nobody has it");
        assert!(refused(&ended), "an earlier one");
        assert!(refused(&Lock::new(Rank::Checker, ())), "another one of the same rank");
        assert!(ended.try_lock().is_ok(), "a try does not wait");
        let second = posted.lock().expect("a later one");
        assert!(refused(&ended), "with two of them");
        drop(first);
        assert!(refused(&checker), "with the later one only");
        drop(second);
        assert!(!refused(&ended), "with none");
    }

    impl Lock<()> {
        fn mutex_of_test(&self) -> Guard<'_, ()> {
            self.lock().unwrap_or_else(PoisonError::into_inner)
        }
    }
}
