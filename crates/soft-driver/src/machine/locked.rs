//! The lock of a machine's state.
//!
//! Sections are short, and never call the program's code: that may call the driver.

use core::ops::{Deref, DerefMut};
use core::time::Duration;
use std::sync::{Condvar, MutexGuard};

use crate::machine::{Machine, State, drop_unlocked};
use crate::sync::{wait, wait_timeout};

/// The machine's state, locked.
pub(crate) struct Locked {
    // The fields are dropped in this order.
    state: MutexGuard<'static, State>,
    count: Count,
}

/// One lock of the calling thread.
struct Count(&'static Machine);

impl Locked {
    pub(super) fn new(machine: &'static Machine, state: MutexGuard<'static, State>) -> Self {
        drop_unlocked::locked();
        Self { state, count: Count(machine) }
    }

    /// Unlocks, sleeps until the condition variable is notified, and locks again. It may return
    /// sooner, as any such wait.
    pub(crate) fn wait(self, on: &Condvar) -> Self {
        self.asleep(|state| (wait(on, state), false)).0
    }

    /// The same for at most `time`; also whether that has passed.
    pub(crate) fn wait_timeout(self, on: &Condvar, time: Duration) -> (Self, bool) {
        self.asleep(|state| wait_timeout(on, state, time))
    }

    fn asleep(
        self,
        sleep: impl FnOnce(MutexGuard<'static, State>) -> (MutexGuard<'static, State>, bool),
    ) -> (Self, bool) {
        if drop_unlocked::has_put_off() {
            let machine = self.count.0;
            drop(self);
            return (machine.lock_uncounted(), false);
        }
        let Self { state, count } = self;
        let (state, over) = sleep(state);
        (Self { state, count }, over)
    }
}

impl Deref for Locked {
    type Target = State;

    #[inline]
    fn deref(&self) -> &State {
        &self.state
    }
}

impl DerefMut for Locked {
    #[inline]
    fn deref_mut(&mut self) -> &mut State {
        &mut self.state
    }
}

impl Drop for Count {
    fn drop(&mut self) {
        drop_unlocked::unlocked();
    }
}
