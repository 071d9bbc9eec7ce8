//! Locks and waits that go on after a panic of another thread. A panic in this crate is a bug in
//! it, but must not take every later test of the process with it.

use std::sync::{Condvar, LockResult, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    in_spite_of_panics(mutex.lock())
}

/// Unlocks, sleeps until the condition variable is notified, and locks again.
pub(crate) fn wait<'a, T>(on: &Condvar, held: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    in_spite_of_panics(on.wait(held))
}

/// The same for at most `time`; also whether that has passed.
pub(crate) fn wait_timeout<'a, T>(
    on: &Condvar,
    held: MutexGuard<'a, T>,
    time: Duration,
) -> (MutexGuard<'a, T>, bool) {
    let (held, over) = in_spite_of_panics(on.wait_timeout(held, time));
    (held, over.timed_out())
}

fn in_spite_of_panics<T>(locked: LockResult<T>) -> T {
    locked.unwrap_or_else(PoisonError::into_inner)
}
