//! The user objects of the program, and which graphs have them.

use core::sync::atomic::{AtomicUsize, Ordering};
use std::collections::{BTreeSet, HashMap};

use crate::call::{Function, Handle};

pub(crate) struct Destructor {
    pub(crate) function: Function,
    pub(crate) data: Handle,
    pub(crate) number: u64,
    pub(crate) object: AtomicUsize,
}

/// The user objects of the program.
#[derive(Default)]
pub(crate) struct UserObjects {
    /// The objects that each graph has.
    pub(crate) of_graphs: HashMap<Handle, BTreeSet<u64>>,
    /// The numbers of user objects.
    pub(crate) numbers: HashMap<Handle, u64>,
}

impl UserObjects {
    /// A graph has these, in the place of those that it had.
    pub(crate) fn set(&mut self, graph: Handle, objects: BTreeSet<u64>) {
        self.of_graphs.remove(&graph);
        if !objects.is_empty() {
            self.of_graphs.insert(graph, objects);
        }
    }

    /// The last reference to an object is gone. Its handle may be that of another one.
    pub(crate) fn ended(&mut self, ended: &Destructor) {
        let object = ended.object.load(Ordering::Relaxed);
        if self.numbers.get(&object) == Some(&ended.number) {
            self.numbers.remove(&object);
        }
        self.of_graphs.retain(|_, all| {
            all.remove(&ended.number);
            !all.is_empty()
        });
    }
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::AtomicUsize;

    use super::{Destructor, UserObjects};
    use crate::call::Handle;

    /// The handle of an object may be that of a new one before its end was posted.
    #[test]
    fn the_late_end_of_an_object_leaves_a_new_one_alone() {
        const OBJECT: Handle = 0x10;
        let destructor = |number| Destructor {
            function: None,
            data: 0,
            number,
            object: AtomicUsize::new(OBJECT),
        };
        let mut all = UserObjects::default();
        for (newer, left) in [(8, Some(8)), (7, None)] {
            all.numbers.insert(OBJECT, newer);
            all.of_graphs.insert(0x20, [7, 9].into());
            all.ended(&destructor(7));
            assert_eq!(all.numbers.get(&OBJECT).copied(), left, "the handle is that of {newer}");
            assert_eq!(all.of_graphs.get(&0x20), Some(&[9].into()), "the graph has it no longer");
        }
    }
}
