//! Events and streams that were destroyed, and those that calls under way wait for.

use core::sync::atomic::{AtomicU16, Ordering};
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};

use cuda_order_check_engine::Call as Made;

use crate::call::Handle;

/// How many objects that were destroyed are remembered.
pub(crate) const DESTROYED: usize = 1024;

/// How many of those have this remainder: most calls need not look further.
pub(crate) static REMAINDERS: [AtomicU16; 16 * DESTROYED] =
    [const { AtomicU16::new(0) }; 16 * DESTROYED];

/// The counter of a handle. Handles are addresses of structures.
pub(crate) fn counter(handle: Handle) -> Option<&'static AtomicU16> {
    REMAINDERS.get((handle / 16) % REMAINDERS.len())
}

pub(crate) fn may_be_destroyed(handle: Handle) -> bool {
    counter(handle).is_some_and(|count| count.load(Ordering::Relaxed) > 0)
}

#[derive(Default)]
pub(crate) struct Destroyed {
    /// The calls that destroyed them.
    pub(crate) by_handle: HashMap<Handle, Made>,
    /// In the order of these calls, each with its number. What was created anew since may be there.
    pub(crate) order: VecDeque<(Handle, u64)>,
    /// The calls under way that wait for one.
    pub(crate) waiting: Vec<(Handle, Made)>,
}

impl Destroyed {
    /// An object with this handle is there, which may have been another one's.
    pub(crate) fn created(&mut self, handle: Handle) {
        self.forget(handle);
    }

    pub(crate) fn is_destroyed(&self, handle: Handle) -> bool {
        self.by_handle.contains_key(&handle)
    }

    pub(crate) fn forget(&mut self, handle: Handle) {
        if self.by_handle.remove(&handle).is_some()
            && let Some(count) = counter(handle)
        {
            count.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// A function without a hook may have created any object.
    pub(crate) fn forget_all(&mut self) {
        for (handle, _) in std::mem::take(&mut self.order) {
            self.forget(handle);
        }
    }

    /// A call is about to destroy an object. Returns the calls that wait for it.
    pub(crate) fn ends(&mut self, handle: Handle, call: Made) -> Vec<Made> {
        // Of two that destroy it, the second is the one that is wrong.
        if let Entry::Vacant(entry) = self.by_handle.entry(handle) {
            self.order.push_back((handle, call.number));
            entry.insert(call);
            counter(handle).into_iter().for_each(|count| _ = count.fetch_add(1, Ordering::Relaxed));
            if self.by_handle.len() > DESTROYED || self.order.len() > 2 * DESTROYED {
                self.forget_oldest();
            }
        }
        let waiting = self.waiting.iter().filter(|(object, _)| *object == handle);
        waiting.map(|(_, call)| call.clone()).collect()
    }

    /// Some at a time, as it looks at all.
    pub(crate) fn forget_oldest(&mut self) {
        let Self { by_handle, order, .. } = self;
        order.retain(|(handle, number)| {
            by_handle.get(handle).is_some_and(|call| call.number == *number)
        });
        while self.order.len() > DESTROYED * 3 / 4
            && let Some((oldest, _)) = self.order.pop_front()
        {
            self.forget(oldest);
        }
    }

    /// The call that was about to destroy it has failed.
    pub(crate) fn lives(&mut self, handle: Handle, number: u64) {
        if self.by_handle.get(&handle).is_some_and(|call| call.number == number) {
            self.forget(handle);
        }
    }
}

#[cfg(test)]
mod tests {
    use cuda_order_check_engine::{Call as Made, ThreadId};

    use super::{DESTROYED, Destroyed};

    #[test]
    fn a_handle_may_be_that_of_a_new_object() {
        let mut objects = Destroyed::default();
        let call = |number| Made::new("cuEventDestroy_v2", number, ThreadId(1));
        let number = |objects: &Destroyed, handle| Some(objects.by_handle.get(&handle)?.number);
        objects.ends(0x10, call(1));
        objects.ends(0x10, call(2));
        assert_eq!(number(&objects, 0x10), Some(1));
        objects.lives(0x10, 2);
        assert_eq!(number(&objects, 0x10), Some(1), "the first one has destroyed it");
        objects.created(0x10);
        assert_eq!(number(&objects, 0x10), None);
        objects.ends(0x10, call(3));
        objects.lives(0x10, 3);
        assert_eq!(number(&objects, 0x10), None);
    }

    #[test]
    fn the_last_ones_are_remembered() {
        let mut objects = Destroyed::default();
        let call = |number| Made::new("cuEventDestroy_v2", number, ThreadId(1));
        for number in 0..5 * DESTROYED {
            // Half of them get a handle that is used again and again.
            let handle = if number % 2 == 0 { 7 } else { 8 + number };
            objects.created(handle);
            objects.ends(handle, call(number as u64));
            assert!(objects.by_handle.len() <= DESTROYED && objects.order.len() <= 2 * DESTROYED);
            let oldest = number.saturating_sub(DESTROYED).max(1) | 1;
            for one in [oldest, number | 1].into_iter().filter(|one| *one <= number) {
                assert!(objects.by_handle.contains_key(&(8 + one)), "{one} after {number}");
            }
            assert!(objects.by_handle.contains_key(&7), "after {number}");
        }
    }
}
