//! Device memory that a drop leaves to the next call that can use it.
//!
//! To free memory, or to close another process's, the driver waits for work of the device, and
//! other threads wait for the driver meanwhile. One of them may be about to make the signal for
//! which a stream of the device waits ahead, and then nobody goes on. So no drop does it.

use std::sync::Mutex;

use crate::sync::lock;
use cuda_events::foundation::{WeakContext, call};
use cuda_events::{Context, Driver, Error, Result};

/// Which context memory is in, without a share of it: it ends with that.
#[derive(Clone)]
pub(super) struct Place {
    driver: Driver,
    held: WeakContext,
    /// The context's handle, and its number, which no other context of the process ever has. None
    /// before CUDA 12.0.
    context: Option<(usize, u64)>,
}

impl Place {
    /// The device's primary context has the memory of green contexts, too.
    #[allow(unsafe_code)]
    pub(super) fn of(context: &Context) -> Result<Self> {
        let driver = context.driver();
        let primary = context.is_retained().then(|| Context::primary(context.device()));
        let raw = primary.transpose()?.as_ref().unwrap_or(context).as_raw();
        let mut number = 0;
        // SAFETY: the context is alive: it is `context`, or `context` retains it. A place for the
        // number.
        let context_number = match unsafe { call!(driver, cuCtxGetId?(raw, &mut number)) } {
            Err(Error::Unsupported { .. }) => None,
            answered => answered.map(|()| Some((raw.addr(), number)))?,
        };
        Ok(Self { driver, held: context.downgrade(), context: context_number })
    }

    /// Whether both are the same context, which was never destroyed in between.
    fn is(&self, other: &Self) -> bool {
        self.driver.is_same_library(other.driver)
            && (self.held.is_same(&other.held)
                || self.context.is_some() && self.context == other.context)
    }

    /// Whether the context is certain to have ended, or nobody can find its memory any more, given
    /// one that lives.
    fn is_lost(&self, living: &Self) -> bool {
        let same_handle = |(handle, _)| living.context.is_some_and(|(other, _)| handle == other);
        let ended = self.driver.is_same_library(living.driver)
            && self.context.is_none_or(same_handle)
            && !self.is(living);
        ended && !self.held.is_alive()
    }
}

/// What drops could not release, until it can be released.
pub(super) struct Leftover<T>(Mutex<Vec<(Place, T)>>);

impl<T> Leftover<T> {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// It makes no driver call. Not in a forked child, where another thread of the parent may have
    /// the lock.
    pub(super) fn put(&self, place: Place, left: T) {
        lock(&self.0).push((place, left));
    }

    /// Something that is left in this context.
    pub(super) fn take(&self, place: &Place) -> Option<T> {
        let mut all = lock(&self.0);
        all.retain(|(other, _)| !other.is_lost(place));
        let at = all.iter().position(|(other, _)| other.is(place))?;
        Some(all.swap_remove(at).1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cuda_events::Device;
    use cuda_soft_driver::SoftDriver;

    /// A context is found again while it lives, and no later one with its handle is taken for it.
    #[test]
    fn what_is_left_ends_with_its_context() {
        for (version, has_numbers) in [((13, 0), true), ((11, 8), false)] {
            let soft = SoftDriver::builder().version(version.0, version.1).build();
            let primary = || Device::new(soft.driver(), 0).and_then(Context::primary).unwrap();
            let (left, context) = (Leftover::new(), primary());
            let put = |context: &Context| left.put(Place::of(context).unwrap(), ());
            let take = |context: &Context| left.take(&Place::of(context).unwrap()).is_some();
            put(&context);
            assert!(take(&context.clone()) && !take(&context));
            put(&context);
            let apart = primary();
            let handle = context.as_raw();
            drop(context);
            assert_eq!(take(&apart), has_numbers, "of the same context, by another share");
            put(&apart);
            drop(apart);
            let next = primary();
            assert_eq!(next.as_raw(), handle);
            assert!(!take(&next), "of a context that has ended");
            assert!(lock(&left.0).is_empty(), "what nobody can find is forgotten");
        }
    }
}
