//! Shares of something, of which one can be given up for good.

use core::mem::ManuallyDrop;
use core::ops::Deref;
use std::sync::{Arc, Weak};

use crate::sync::{AtomicBool, Ordering};

/// A counted share of a value, like an `Arc`. [`leak`](Self::leak) gives one share up: the value is
/// never dropped then, and clones are not counted any more.
///
/// Why the count never falls to zero after `leak`, and every copy stays valid, with relaxed loads
/// of a flag that is never cleared:
///
/// 1. The share that `leak` is called for is counted, unless another `leak` has set the flag
///    before: then that one's share is meant in these steps. The flag is set by the thread that has
///    this share. Whoever drops the share has it from this thread, by itself or by something that
///    synchronizes. So the store happens before that load in `drop`, which sees it and gives
///    nothing back: the count stays at one at least, for good.
/// 2. A clone that was made by a load of `false` is counted. Its drop gives one back, or, having
///    seen the flag, none: the count is right, or too high.
/// 3. A clone that was made by a load of `true` is not counted. Whoever drops it has it from the
///    thread of that load, so that the load happens before the one in `drop`; of two loads in that
///    order the later one reads nothing older. It sees the flag, too, and gives nothing back.
pub(crate) struct Share<T>(ManuallyDrop<Arc<Shared<T>>>);

struct Shared<T> {
    value: T,
    /// Set once, after which one share of the count is never given back, and no others need be.
    leaked: AtomicBool,
}

impl<T> Share<T> {
    pub(crate) fn new(value: T) -> Self {
        let shared = Shared { value, leaked: AtomicBool::new(false) };
        Self(ManuallyDrop::new(Arc::new(shared)))
    }

    /// Has this share, or one given up before, never be given back.
    pub(crate) fn leak(&self) {
        self.0.leaked.store(true, Ordering::Relaxed);
    }

    /// Gives this share back. If it was the last one, the value.
    #[allow(unsafe_code)]
    pub(crate) fn into_last(self) -> Option<T> {
        let mut this = ManuallyDrop::new(self);
        if this.0.leaked.load(Ordering::Relaxed) {
            return None;
        }
        // SAFETY: it is not used afterwards, and not dropped.
        let shared = unsafe { ManuallyDrop::take(&mut this.0) };
        Arc::into_inner(shared).map(|shared| shared.value)
    }

    pub(crate) fn downgrade(&self) -> WeakShare<T> {
        WeakShare(Arc::downgrade(&self.0))
    }
}

impl<T> Deref for Share<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        &self.0.value
    }
}

impl<T> Clone for Share<T> {
    #[allow(unsafe_code)]
    #[inline]
    fn clone(&self) -> Self {
        if self.0.leaked.load(Ordering::Relaxed) {
            // SAFETY: the count keeps the share of the one that was leaked for ever, so that a copy
            // is valid without one of its own; dropped, it sees the flag as this does, and gives
            // none back.
            return Self(unsafe { core::ptr::read(&self.0) });
        }
        Self(self.0.clone())
    }
}

impl<T> Drop for Share<T> {
    #[allow(unsafe_code)]
    #[inline]
    fn drop(&mut self) {
        if !self.0.leaked.load(Ordering::Relaxed) {
            // SAFETY: it is dropped here only, and not used afterwards.
            unsafe { ManuallyDrop::drop(&mut self.0) };
        }
    }
}

/// The value without a share of it.
pub(crate) struct WeakShare<T>(Weak<Shared<T>>);

impl<T> WeakShare<T> {
    /// A share, unless the last one was dropped.
    pub(crate) fn upgrade(&self) -> Option<Share<T>> {
        self.0.upgrade().map(|shared| Share(ManuallyDrop::new(shared)))
    }

    /// Whether somebody has a share now. Unlike `upgrade` it cannot leave the caller with the last
    /// one, whose drop may block.
    pub(crate) fn is_held(&self) -> bool {
        self.0.strong_count() > 0
    }

    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.0.ptr_eq(&other.0)
    }
}

impl<T> Clone for WeakShare<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}
