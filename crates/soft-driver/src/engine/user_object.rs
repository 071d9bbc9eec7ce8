//! User objects: something of the program's that graphs keep, and that the thread of the host
//! functions destroys.

use std::sync::Arc;

use crate::engine::jobs::Jobs;
use crate::engine::point::Point;
use crate::engine::work::{Destroy, Job, Work};
use crate::machine::handles::{Kind, Table};
use crate::order::Feed;

mod references;

struct UserObject {
    /// All references: the program's own, and those of graphs and executable graphs.
    references: u64,
    destroy: Destroy,
}

/// References that a graph holds: which object, and how many.
pub(crate) type References = Vec<(u32, u32)>;

/// The user objects, and the references that go once a launch is done.
pub(crate) struct UserObjects {
    table: Table<UserObject>,
    deferred: Vec<(Arc<Point>, References)>,
}

impl UserObjects {
    pub(super) const fn new(slot: usize) -> Self {
        Self { table: Table::new(Kind::UserObject, slot), deferred: Vec::new() }
    }

    /// The same table, empty: its handles are of the next life of the machine.
    pub(super) fn next_life(&mut self, life: u64) -> Self {
        let slot = self.table.slot();
        let mut next = core::mem::replace(self, Self::new(slot));
        next.table.reset(life);
        next.deferred.clear();
        next
    }

    pub(super) fn slot(&self) -> usize {
        self.table.slot()
    }

    /// The references whose launches are done.
    pub(super) fn take_done(&mut self) -> Vec<References> {
        if self.deferred.is_empty() {
            return Vec::new();
        }
        let done = self.deferred.extract_if(.., |(last, _)| last.is_done());
        done.map(|(_, references)| references).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    /// Another holder of the same references.
    pub(crate) fn share(&mut self, references: &References) -> References {
        for (object, count) in references {
            if let Some(entry) = self.table.get_mut(*object) {
                entry.references += u64::from(*count);
            }
        }
        references.clone()
    }

    /// Takes back references to an object. The last one has it destroyed.
    pub(crate) fn release(
        &mut self,
        jobs: &mut Jobs,
        feed: Option<&mut Feed>,
        object: u32,
        count: u32,
    ) {
        let Some(entry) = self.table.get_mut(object) else { return };
        entry.references = entry.references.saturating_sub(u64::from(count));
        if entry.references == 0
            && let Some(entry) = self.table.remove(object)
        {
            if let Some(feed) = feed {
                feed.object_released(u64::from(object));
            }
            let work = Work::Destroy(entry.destroy);
            jobs.give_host(Job { stream: u32::MAX, id: 0, at: 0, work });
        }
    }

    pub(crate) fn release_all(
        &mut self,
        jobs: &mut Jobs,
        mut feed: Option<&mut Feed>,
        references: References,
    ) {
        for (object, count) in references {
            self.release(jobs, feed.as_deref_mut(), object, count);
        }
    }

    /// The same once a launch is done.
    pub(crate) fn release_after(
        &mut self,
        jobs: &mut Jobs,
        feed: Option<&mut Feed>,
        last: Option<Arc<Point>>,
        references: References,
    ) {
        match last.filter(|last| !last.is_done()) {
            Some(last) => self.deferred.push((last, references)),
            None => self.release_all(jobs, feed, references),
        }
    }
}
