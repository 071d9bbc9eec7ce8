//! Events and streams that a call uses after their end, or destroys while another waits for them.

use std::collections::hash_map::Entry;

use cuda_order_check::{By, Problem};

use super::*;

/// How many objects that were destroyed are remembered.
const DESTROYED: usize = 1024;

#[derive(Default)]
pub(super) struct Objects {
    /// The calls that destroyed them.
    destroyed: HashMap<Handle, Made>,
    /// In the order of these calls, each with its number. What was created anew since may be there.
    order: VecDeque<(Handle, u64)>,
    /// The calls under way that wait for one.
    waiting: Vec<(Handle, Made)>,
}

impl Objects {
    /// An object with this handle is there, which may have been another one's.
    pub(super) fn created(&mut self, handle: Handle) {
        self.destroyed.remove(&handle);
    }

    /// A call is about to destroy an object. Returns the calls that wait for it.
    fn ends(&mut self, handle: Handle, call: Made) -> Vec<Made> {
        // Of two that destroy it, the second is the one that is wrong.
        if let Entry::Vacant(place) = self.destroyed.entry(handle) {
            self.order.push_back((handle, call.number));
            place.insert(call);
            if self.destroyed.len() > DESTROYED || self.order.len() > 2 * DESTROYED {
                self.forget_oldest();
            }
        }
        let waiting = self.waiting.iter().filter(|(of, _)| *of == handle);
        waiting.map(|(_, call)| call.clone()).collect()
    }

    /// Some at a time, as it looks at all.
    fn forget_oldest(&mut self) {
        let Self { destroyed, order, .. } = self;
        order.retain(|(of, number)| destroyed.get(of).is_some_and(|call| call.number == *number));
        while order.len() > DESTROYED * 3 / 4
            && let Some((oldest, _)) = order.pop_front()
        {
            destroyed.remove(&oldest);
        }
    }

    /// That call has failed.
    fn lives(&mut self, handle: Handle, number: u64) {
        if self.destroyed.get(&handle).is_some_and(|call| call.number == number) {
            self.destroyed.remove(&handle);
        }
    }
}

/// A call that destroys an object.
pub(super) fn destroys(
    call: &Call,
    real: impl FnOnce() -> Code,
    handle: Handle,
    f: impl FnOnce(&mut Watch),
) -> Code {
    let number = begin(call, |watch| {
        let made = watch.feed.caller();
        let number = made.number;
        for waiting in watch.in_use.ends(handle, made) {
            watch.feed.object_misused(Problem::DestroyedWhileUsed, waiting);
        }
        f(watch);
        number
    });
    let code = real();
    if let (Some(number), true) = (number, code != OK) {
        with(|watch| watch.in_use.lives(handle, number));
    }
    code
}

/// A call that waits for an object, with what is marked before and what a success means.
pub(super) fn waits<B>(
    call: &Call,
    real: impl FnOnce() -> Code,
    handle: Handle,
    before: impl FnOnce(&mut Watch) -> B,
    f: impl FnOnce(&mut Watch, B),
) -> Code {
    let before = |watch: &mut Watch| {
        let call = watch.feed.caller();
        watch.in_use.waiting.push((handle, call));
        before(watch)
    };
    let real = || {
        let code = real();
        let by = By::Thread(ThreadId(thread()));
        enter(|watch| watch.in_use.waiting.retain(|(of, call)| (*of, call.by) != (handle, by)));
        code
    };
    around(call, before, real, f)
}

/// A call with this object has failed.
pub(super) fn failed(name: &'static str, handle: Handle) {
    with(|watch| {
        let Some(destroyed) = watch.in_use.destroyed.get(&handle).cloned() else { return };
        watch.feed.observer_mut().want_stack(name);
        watch.begin(&Call { name, per_thread: false });
        watch.feed.object_misused(Problem::UseAfterDestroy, destroyed);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_may_be_that_of_a_new_object() {
        let mut objects = Objects::default();
        let call = |number| Made::new("cuEventDestroy_v2", number, ThreadId(1));
        let number = |objects: &Objects, handle| Some(objects.destroyed.get(&handle)?.number);
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
        let mut objects = Objects::default();
        let call = |number| Made::new("cuEventDestroy_v2", number, ThreadId(1));
        for number in 0..5 * DESTROYED {
            // Half of them get a handle that is used again and again.
            let handle = if number % 2 == 0 { 7 } else { 8 + number };
            objects.created(handle);
            objects.ends(handle, call(number as u64));
            assert!(objects.destroyed.len() <= DESTROYED && objects.order.len() <= 2 * DESTROYED);
            let oldest = number.saturating_sub(DESTROYED).max(1) | 1;
            for of in [oldest, number | 1].into_iter().filter(|of| *of <= number) {
                assert!(objects.destroyed.contains_key(&(8 + of)), "{of} after {number}");
            }
            assert!(objects.destroyed.contains_key(&7), "after {number}");
        }
    }
}
