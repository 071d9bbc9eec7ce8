//! Counted shares of a value, which can be made to live forever.

use core::mem::ManuallyDrop;
use core::ops::Deref;
use std::sync::{Arc, Weak};

use crate::sync::{AtomicBool, Ordering};

/// A counted share of a value, like an `Arc`. After [`leak`](Self::leak) the value is never
/// dropped, and clones are no longer counted.
///
/// Why the count never falls to zero after `leak`, and every copy stays valid, with relaxed loads
/// of a flag that is never cleared:
///
/// 1. The share on which `leak` is called is counted, unless another `leak` has set the flag
///    before; then these steps are about the share of that one. The thread that has this share sets
///    the flag. The thread that drops the share is the same, or got it through a synchronizing
///    operation. So the store happens before the load in `drop`, which sees the flag and gives
///    nothing back: the count stays at least one forever.
/// 2. A clone that was made after a load of `false` is counted. Its drop gives one back, or none if
///    it sees the flag: the count is right, or too high.
/// 3. A clone that was made after a load of `true` is not counted. The thread that drops it got it
///    from the thread of that load, so that load happens before the one in `drop`, and the later of
///    two such loads never reads an older value. So it sees the flag too, and gives nothing back.
pub(crate) struct Share<T>(ManuallyDrop<Arc<Shared<T>>>);

struct Shared<T> {
    value: T,
    /// Set once. From then on one counted share is never given back, and the others need not be.
    leaked: AtomicBool,
}

impl<T> Share<T> {
    pub(crate) fn new(value: T) -> Self {
        let shared = Shared { value, leaked: AtomicBool::new(false) };
        Self(ManuallyDrop::new(Arc::new(shared)))
    }

    /// Ensures that this share, or one leaked earlier, is never given back.
    pub(crate) fn leak(&self) {
        self.0.leaked.store(true, Ordering::Relaxed);
    }

    /// Gives this share back, and returns the value if it was the last one.
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
            // SAFETY: the count keeps the leaked share forever, so a copy is valid without being
            // counted. When the copy is dropped it sees the flag, as this function does, and gives
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

    /// Whether a share exists now. Unlike `upgrade`, it cannot leave the caller with the last
    /// share, whose drop may block.
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
