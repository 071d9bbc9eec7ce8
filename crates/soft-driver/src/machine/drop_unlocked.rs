//! Values whose drop runs code of the program, which the thread drops without a machine's lock.
//!
//! The last owner of a program's closure may be in any table or queue, so its drop cannot be kept
//! out of the sections under a lock one by one. [`DropUnlocked`] puts it off until the thread has
//! unlocked all machines.

use core::any::Any;
use core::cell::Cell;
use core::mem::ManuallyDrop;
use core::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    /// How many locks of machines the thread has.
    static LOCKS: Cell<usize> = const { Cell::new(0) };
    /// What was dropped under them. A thread without a lock has nothing here, so that nothing has
    /// to be freed when it ends.
    static DROPPED: Cell<ManuallyDrop<Vec<Box<dyn Any>>>> =
        const { Cell::new(ManuallyDrop::new(Vec::new())) };
}

/// The calling thread has locked a machine.
pub(super) fn locked() {
    LOCKS.set(LOCKS.get() + 1);
}

/// It has unlocked one. After the last it drops what was put off.
pub(super) fn unlocked() {
    let left = LOCKS.get() - 1;
    LOCKS.set(left);
    if left == 0 {
        for value in ManuallyDrop::into_inner(DROPPED.take()) {
            drop_quietly(value);
        }
    }
}

/// Whether the calling thread has put off a drop.
pub(super) fn has_put_off() -> bool {
    let dropped = DROPPED.take();
    let has_some = !dropped.is_empty();
    DROPPED.set(dropped);
    has_some
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
