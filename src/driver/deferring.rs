//! Code that defers observers: a lock that is held during driver calls.

use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};

#[cfg(feature = "observe")]
use crate::driver::observing::{DEFERRAL, Deferral, call_deferred};

#[cfg(doc)]
use crate::Driver;

/// A guard, from [`deferring_observers`]. Its drop calls the deferred observers.
pub struct Deferring<G> {
    guard: G,
    // Fields drop in order, so deferred calls are reported after the guard is gone.
    _observers: DeferringObservers,
}

/// Defers the observers of this thread's driver calls until the guard is dropped.
///
/// An observer (`Driver::observe`) may call your crate. If your crate makes a driver call while it
/// holds a lock, such an observer can wait for the lock forever. To avoid this, wrap the lock
/// guard. The observers then run after the lock is released, on the same thread and in the order of
/// the calls. Without observers the wrapper costs a few loads and stores of a thread-local; without
/// the feature `observe`, nothing.
///
/// ```
/// use std::sync::atomic::{AtomicU32, Ordering};
/// use std::sync::{Arc, Mutex};
///
/// use cuda_events::Device;
/// use cuda_events::foundation::deferring_observers;
///
/// # use cuda_soft_driver::examples::Driver;
/// let driver = Driver::load()?;
/// let (count, seen) = (Arc::new(Mutex::new(0)), Arc::new(AtomicU32::new(0)));
/// let (theirs, sum) = (Arc::clone(&count), Arc::clone(&seen));
/// let driver = driver.observe(move |_call| {
///     // It takes the same lock.
///     sum.fetch_add(*theirs.lock().unwrap(), Ordering::Relaxed);
/// })?;
/// let mut locked = deferring_observers(count.lock().unwrap());
/// **locked = Device::count(driver)?;
/// drop(locked); // the observer is called here
/// assert!(seen.load(Ordering::Relaxed) >= 1);
/// # Ok::<(), cuda_events::Error>(())
/// ```
#[inline(always)]
pub fn deferring_observers<G>(guard: G) -> Deferring<G> {
    Deferring { guard, _observers: DeferringObservers::begin() }
}

impl<G> Deref for Deferring<G> {
    type Target = G;

    #[inline(always)]
    fn deref(&self) -> &G {
        &self.guard
    }
}

impl<G> DerefMut for Deferring<G> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut G {
        &mut self.guard
    }
}

/// Defers observers from its making until its drop.
struct DeferringObservers {
    /// Inside another one, which calls the observers.
    #[cfg(feature = "observe")]
    nested: bool,
    _not_send: PhantomData<*mut ()>,
}

impl DeferringObservers {
    #[inline(always)]
    fn begin() -> Self {
        #[cfg(feature = "observe")]
        let nested = DEFERRAL.get() != Deferral::Off;
        #[cfg(feature = "observe")]
        if !nested {
            DEFERRAL.set(Deferral::Empty);
        }
        Self {
            #[cfg(feature = "observe")]
            nested,
            _not_send: PhantomData,
        }
    }
}

#[cfg(feature = "observe")]
impl Drop for DeferringObservers {
    #[inline(always)]
    fn drop(&mut self) {
        if !self.nested && DEFERRAL.replace(Deferral::Off) == Deferral::Filled {
            call_deferred();
        }
    }
}
