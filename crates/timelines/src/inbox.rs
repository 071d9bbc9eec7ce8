//! The inbox of a sleeping thread, and how an arrival wakes it.

use core::time::Duration;

use crate::sync::{Condvar, Mutex, MutexGuard, PoisonError, constant, lock};

/// The inbox of a thread: seats, each of which stands for one place where things arrive.
///
/// Why no arrival is slept through:
///
/// 1. What arrives is put where the rounds take it from, and after that [`call`](Self::call) puts
///    the seat into `called` under this lock. If `asleep` is set, it clears it and notifies.
/// 2. The thread looks at `called` and sets `asleep` under the same lock. It goes to sleep and
///    gives the lock back in one step, which is what a condition variable does.
/// 3. So a seat is called either before the thread looks, which then finds it, or after the thread
///    has begun to sleep. Then `asleep` is set, and the notification reaches the thread.
/// 4. A seat that the thread has found has a round after that, which takes all that arrived before
///    the round. What arrives during the round, too late for it, has called the seat anew.
/// 5. While the thread looks or rests, `asleep` is not set. What arrives then waits until it takes
///    the inbox: for one round and one rest, of a millisecond at the most.
///
/// Why there is one thread: `started` is read and set under the lock, with the start in between.
/// The new thread waits for that lock first.
pub(super) struct Inbox<T: 'static> {
    state: Mutex<State<T>>,
    arrival: Condvar,
}

struct State<T: 'static> {
    called: Vec<&'static T>,
    /// Whether there is the thread.
    started: bool,
    /// Whether the thread waits for a notification.
    asleep: bool,
}

impl<T> Inbox<T> {
    constant! {
        pub(super) fn new() -> Self {
            let state = State { called: Vec::new(), started: false, asleep: false };
            Self { state: Mutex::new(state), arrival: Condvar::new() }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        lock(&self.state)
    }

    /// Hands something over, by `put`, and calls the seat; whether there is a thread. If there was
    /// none, `start` starts it. If that fails, `put` is not called.
    pub(super) fn call(
        &self,
        seat: &'static T,
        put: impl FnOnce(),
        start: impl FnOnce() -> bool,
    ) -> bool {
        let mut state = self.lock();
        if !state.started {
            state.started = start();
            if !state.started {
                return false;
            }
        }
        put();
        if !state.called.iter().any(|called| core::ptr::eq(*called, seat)) {
            state.called.push(seat);
        }
        if core::mem::take(&mut state.asleep) {
            self.arrival.notify_one();
        }
        true
    }

    /// Takes the seats that were called. If the thread is `idle`, it sleeps until there is one.
    pub(super) fn take(&self, idle: bool, called: &mut Vec<&'static T>) {
        let mut state = self.lock();
        while idle && state.called.is_empty() {
            state.asleep = true;
            state = self.arrival.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        called.append(&mut state.called);
    }

    /// Sleeps until a call, or for this long.
    pub(super) fn sleep(&self, time: Duration) {
        let mut state = self.lock();
        if state.called.is_empty() && !time.is_zero() {
            state.asleep = true;
            let waited = self.arrival.wait_timeout(state, time);
            waited.unwrap_or_else(PoisonError::into_inner).0.asleep = false;
        }
    }
}
