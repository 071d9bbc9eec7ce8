//! Who has which of the slots: those that live, and those that were dropped before what was made
//! with them.
//!
//! A handle contains the life of its slot, so that it is never taken for a handle of the next
//! driver in the slot. The release of a primary context names only a device: it would release the
//! next driver's. That is why a dropped driver keeps its slot until the releases that its program
//! owes have come.

use core::cell::Cell;
use core::time::Duration;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Instant;

use crate::sync::{lock, wait_timeout};

/// The number of drivers that can exist at a time in one process.
pub const SLOTS: usize = 16;

/// How many releases are owed, by device.
pub(crate) type Owed = [u32; 8];

#[derive(Clone, Copy)]
enum Place {
    /// Free since the change with this number.
    Free(u64),
    Taken,
    /// Dropped, and its threads are being ended.
    Ending(Owed),
    /// Its driver was dropped, and still owes releases.
    Retired(Owed, Instant),
}

pub(crate) struct Table {
    places: [Place; SLOTS],
    changes: u64,
    /// How many threads wait for a place now.
    waiting: usize,
    /// How often one had to wait so far.
    waits: u64,
}

pub(crate) struct Places {
    table: Mutex<Table>,
    changed: Condvar,
}

pub(crate) static PLACES: Places = Places {
    table: Mutex::new(Table { places: [Place::Free(0); SLOTS], changes: 0, waiting: 0, waits: 0 }),
    changed: Condvar::new(),
};

thread_local! {
    /// How many drivers the thread has made and not dropped.
    static HERE: Cell<isize> = const { Cell::new(0) };
}

/// How many places are kept for threads that have a driver already.
const RESERVE: usize = 6;
const LONGEST_WAIT: Duration = Duration::from_secs(120);
/// How long a release is waited for once its driver was dropped, where a slot is wanted: contexts
/// may be leaked.
const LATEST_RELEASE: Duration = Duration::from_secs(1);
/// How often the time is looked at while waiting.
const LOOK: Duration = Duration::from_millis(50);

/// Counts the calling thread's drivers.
pub(crate) fn count_here(more: isize) {
    let _ = HERE.try_with(|here| here.set((here.get() + more).max(0)));
}

/// A slot for a new driver; waits while there is none.
pub(crate) fn take() -> usize {
    // Threads that have a driver and make another come first: if the last places went to those that
    // have none, tests that need two could wait for each other.
    let kept = if HERE.with(Cell::get) == 0 { RESERVE } else { 0 };
    let until = Instant::now() + LONGEST_WAIT;
    let mut table = PLACES.lock();
    if let Some(slot) = table.free(kept) {
        return taken(table, slot);
    }
    table.waits += 1;
    table.waiting += 1;
    let slot = loop {
        if let Some(slot) = table.free(kept) {
            break slot;
        }
        let left = until.saturating_duration_since(Instant::now());
        assert!(!left.is_zero(), "{}", table.listing(kept));
        (table, _) = wait_timeout(&PLACES.changed, table, left.min(LOOK));
    };
    table.waiting -= 1;
    taken(table, slot)
}

fn taken(mut table: MutexGuard<'_, Table>, slot: usize) -> usize {
    table.places[slot] = Place::Taken;
    drop(table);
    count_here(1);
    slot
}

/// How many threads wait for a place now, and how often one had to so far. For tests of this very
/// thing.
#[doc(hidden)]
pub fn waits_for_places() -> (usize, u64) {
    let table = PLACES.lock();
    (table.waiting, table.waits)
}

impl Places {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Table> {
        lock(&self.table)
    }

    /// The driver of the slot is gone for its program, which owes these releases.
    pub(crate) fn dropped(&self, slot: usize, owed: Owed) {
        self.lock().places[slot] = Place::Ending(owed);
    }

    /// All that the driver had of its own is gone too.
    pub(crate) fn ended(&self, slot: usize) {
        let mut table = self.lock();
        if let Place::Ending(owed) = table.places[slot] {
            table.places[slot] = Place::Retired(owed, Instant::now());
            table.settle(slot);
        }
        self.changed.notify_all();
    }

    /// A release, or a reset, that came after its driver was dropped.
    pub(crate) fn released(&self, slot: usize, device: usize, all: bool) {
        let mut table = self.lock();
        if let Place::Ending(owed) | Place::Retired(owed, _) = &mut table.places[slot]
            && let Some(owed) = owed.get_mut(device)
        {
            *owed = if all { 0 } else { owed.saturating_sub(1) };
            table.settle(slot);
            self.changed.notify_all();
        }
    }
}

impl Table {
    /// Frees a retired slot that nothing is owed to.
    fn settle(&mut self, slot: usize) {
        if let Place::Retired(owed, _) = self.places[slot]
            && owed == Owed::default()
        {
            self.changes += 1;
            self.places[slot] = Place::Free(self.changes);
        }
    }

    /// The slot that was free for longest, so that a late call most likely meets none that lives.
    /// Where there is none, the one that has waited longest for its releases.
    fn free(&self, kept: usize) -> Option<usize> {
        let at = |place: &Place| match place {
            Place::Free(since) => Some((0, *since)),
            Place::Retired(_, since) if since.elapsed() >= LATEST_RELEASE => {
                Some((1, u64::MAX - since.elapsed().as_nanos() as u64))
            }
            _ => None,
        };
        let mut free: Vec<_> =
            (0..SLOTS).filter_map(|slot| Some((at(&self.places[slot])?, slot))).collect();
        free.sort_unstable();
        free.get(kept).and(free.first()).map(|(_, slot)| *slot)
    }

    /// What the panic says. A dropped driver is no reason for it: its place is free a second later.
    fn listing(&self, kept: usize) -> String {
        let used = self.places.iter().filter(|place| !matches!(place, Place::Free(_))).count();
        let reserve = if kept == 0 {
            String::new()
        } else {
            format!(", and the last {kept} are for threads that have a driver already")
        };
        format!(
            "no place for another software driver came free in two minutes: {used} of the {SLOTS} \
             places of this process are in use{reserve}; drop the drivers that are not needed"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Also that a thread without a driver gets no place of the reserve.
    #[test]
    fn the_panic_names_the_places_in_use() {
        let mut table = Table { places: [Place::Free(0); SLOTS], changes: 0, waiting: 0, waits: 0 };
        table.places[..SLOTS - RESERVE].fill(Place::Taken);
        assert_eq!((table.free(RESERVE), table.free(0)), (None, Some(SLOTS - RESERVE)));
        assert_eq!(
            table.listing(RESERVE),
            "no place for another software driver came free in two minutes: 10 of the 16 places \
             of this process are in use, and the last 6 are for threads that have a driver \
             already; drop the drivers that are not needed"
        );
        table.places.fill(Place::Taken);
        assert!(
            table.listing(0).contains(": 16 of the 16 places of this process are in use; drop")
        );
    }
}
