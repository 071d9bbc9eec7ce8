//! The lock of a machine's state, and what must not be dropped under it.
//!
//! Sections are short, and never call the program's code: that may call the driver. But the last
//! owner of a program's closure may be in any table or queue, so its drop cannot be kept out of the
//! sections one by one. [`DropUnlocked`] puts it off until the thread has let go of its lock.

use core::any::Any;
use core::cell::Cell;
use core::mem::ManuallyDrop;
use core::ops::{Deref, DerefMut};
use core::time::Duration;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, MutexGuard};

use crate::machine::{Machine, State};
use crate::sync::{wait, wait_timeout};

thread_local! {
    /// How many locks of machines the thread has.
    static LOCKS: Cell<usize> = const { Cell::new(0) };
    /// What was dropped under them. A thread without a lock has nothing here, so that nothing has
    /// to be freed when it ends.
    static DROPPED: Cell<ManuallyDrop<Vec<Box<dyn Any>>>> =
        const { Cell::new(ManuallyDrop::new(Vec::new())) };
}

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
        LOCKS.set(LOCKS.get() + 1);
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
        let dropped = DROPPED.take();
        let nothing = dropped.is_empty();
        DROPPED.set(dropped);
        if !nothing {
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
        let left = LOCKS.get() - 1;
        LOCKS.set(left);
        if left == 0 {
            for value in ManuallyDrop::into_inner(DROPPED.take()) {
                drop_quietly(value);
            }
        }
    }
}

/// The drop of a closure may panic, which must end neither a thread of the driver nor a call from
/// C.
fn drop_quietly<T>(value: T) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(value))) {
        // Its drop could panic, too.
        core::mem::forget(payload);
    }
}

/// A value whose drop runs code of the program. It is never dropped while the thread has a
/// machine's lock.
#[derive(Clone)]
pub(crate) struct DropUnlocked<T: 'static>(ManuallyDrop<T>);

impl<T> DropUnlocked<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(ManuallyDrop::new(value))
    }
}

impl<T> Deref for DropUnlocked<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> Drop for DropUnlocked<T> {
    fn drop(&mut self) {
        // SAFETY: nothing uses the field again, as this value is dropped.
        let value = unsafe { ManuallyDrop::take(&mut self.0) };
        if LOCKS.get() == 0 {
            drop_quietly(value);
            return;
        }
        let mut dropped = DROPPED.take();
        dropped.push(Box::new(value));
        DROPPED.set(dropped);
    }
}
