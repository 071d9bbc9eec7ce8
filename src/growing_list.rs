//! A list that only grows, at its front. Its items live as long as the process.

use core::iter::successors;
use core::ptr::null_mut;

use crate::sync::{AtomicPtr, Ordering, constant};

/// The front of such a list. It has no lock, because another thread may hold a lock when the
/// process forks.
///
/// Why a reader sees whole elements, and no item is in it twice:
///
/// 1. `add` writes the whole element, including its `earlier`, before another thread can see it.
/// 2. It exchanges the front that it has read for this element, with release: the writes of step 1
///    happen before it. If the exchange fails, no other thread has seen the element, and it is
///    changed or freed.
/// 3. `newest` loads the front with acquire. The load reads a pointer that an exchange of step 2
///    wrote, so the exchange, and step 1, happen before it: the element is complete.
/// 4. Its `earlier` is the front that its `add` loaded by step 3. So that element was complete
///    before this one was published, and so on to the end of the list.
/// 5. No element is changed after step 2, and none is ever freed. So a `&'static` to it is sound. A
///    front that compares equal in step 2 is the same element from which the search began, because
///    no other element can have its address. So no element was added since the search, which found
///    no such item.
/// 6. A failed exchange does not use the value that it read, and so needs no acquire: the loop
///    begins with step 3 again.
pub(crate) struct List<T: 'static>(AtomicPtr<Element<T>>);

struct Element<T: 'static> {
    item: T,
    earlier: Option<&'static Element<T>>,
}

impl<T> List<T> {
    constant! {
        pub(crate) fn new() -> Self {
            Self(AtomicPtr::new(null_mut()))
        }
    }
}

// Every thread gets references to items that other threads have added.
#[allow(unsafe_code)]
impl<T: Send + Sync> List<T> {
    fn newest(&self) -> Option<&'static Element<T>> {
        // SAFETY: NULL, or an element that `add` put there, complete before it was visible (release
        // and acquire), and that is neither changed nor freed from then on.
        unsafe { self.0.load(Ordering::Acquire).as_ref() }
    }

    /// The items, the newest first.
    pub(crate) fn items(&self) -> impl Iterator<Item = &'static T> + use<T> {
        since(self.newest())
    }

    /// Adds an item at the front, unless the list has one for which `is_it` returns true, maybe
    /// from a faster thread. Then that one is returned, and the new one, which no other thread has
    /// seen, is dropped.
    pub(crate) fn add(&self, item: T, is_it: impl Fn(&T, &T) -> bool) -> &'static T {
        let mut mine = Box::new(Element { item, earlier: None });
        loop {
            let newest = self.newest();
            if let Some(existing) = since(newest).find(|existing| is_it(existing, &mine.item)) {
                return existing;
            }
            mine.earlier = newest;
            let expected =
                newest.map_or(null_mut(), |newest| core::ptr::from_ref(newest).cast_mut());
            let raw = Box::into_raw(mine);
            match self.0.compare_exchange(expected, raw, Ordering::Release, Ordering::Relaxed) {
                // SAFETY: it is in the list now, so never changed or freed again.
                Ok(_) => return unsafe { &(*raw).item },
                // SAFETY: the box that was taken apart above; it did not get into the list.
                Err(_) => mine = unsafe { Box::from_raw(raw) },
            }
        }
    }
}

fn since<T>(newest: Option<&'static Element<T>>) -> impl Iterator<Item = &'static T> + use<T> {
    successors(newest, |element| element.earlier).map(|element| &element.item)
}
