//! User objects: something of the program's that graphs keep.

use crate::engine::work::{Job, Work};
use crate::host_function::Destroy;
use crate::machine::{MACHINES, Machine, State};

/// A user object.
pub(crate) struct UserObject {
    /// All references: the program's own, and those of graphs and executable graphs.
    pub(crate) references: u64,
    pub(crate) destroy: Destroy,
}

/// References that a graph holds: which object, and how many.
pub(crate) type References = Vec<(u32, u32)>;

impl State {
    /// Another holder of the same references.
    pub(crate) fn share_objects(&mut self, references: &References) -> References {
        for (object, count) in references {
            if let Some(entry) = self.graphs.objects.get_mut(*object) {
                entry.references += u64::from(*count);
            }
        }
        references.clone()
    }
}

impl State {
    /// Takes back references to a user object.
    pub(crate) fn release_object(&mut self, object: u32, count: u32) {
        let Some(entry) = self.graphs.objects.get_mut(object) else { return };
        entry.references = entry.references.saturating_sub(u64::from(count));
        if entry.references == 0
            && let Some(entry) = self.graphs.objects.remove(object)
        {
            self.feed(|feed, _| feed.object_released(u64::from(object)));
            self.destroy_later(&MACHINES[self.graphs.objects.slot()], entry.destroy);
        }
    }

    pub(crate) fn release_objects(&mut self, references: References) {
        for (object, count) in references {
            self.release_object(object, count);
        }
    }

    /// Has a user object destroyed by the thread of the host functions.
    pub(crate) fn destroy_later(&mut self, machine: &'static Machine, destroy: Destroy) {
        self.engine.host_queue.push_back(Job {
            stream: u32::MAX,
            id: 0,
            at: 0,
            work: Work::Destroy(destroy),
        });
        machine.host.notify_one();
    }
}
