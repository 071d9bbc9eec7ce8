//! Values in memory: which writes a wait may have seen.

use std::collections::{BTreeMap, VecDeque};

use crate::clock::{Clock, Slot};
use crate::op::{Access, Cell, Compare};

/// How many writes of one value are kept.
const KEPT: usize = 256;
/// How many copies are kept that may contain values for which no stream has waited yet.
const COPIES: usize = 64;

#[derive(Debug)]
struct Write {
    /// None for a copy or a memset, of which only the range is known.
    value: Option<u64>,
    slot: Slot,
    time: u64,
    /// The work before it, itself included.
    clock: Clock,
    /// Later writes that it is before. Work after one of them cannot see it any more.
    hidden_by: Vec<(Slot, u64)>,
}

#[derive(Debug, Default)]
struct Value {
    bytes: u8,
    writes: Vec<Write>,
    /// The tasks that wait for it.
    waiting: Vec<u64>,
}

/// A copy or a memset of other sizes than those of values.
#[derive(Debug)]
struct Copied {
    access: Access,
    slot: Slot,
    time: u64,
    clock: Clock,
    anew: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Values {
    values: BTreeMap<u64, Value>,
    /// The last copies, the oldest first. One of them may have written a value for which a stream
    /// waits later.
    copies: VecDeque<Copied>,
}

impl Values {
    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }

    fn value(&mut self, cell: Cell) -> &mut Value {
        let of = self.values.entry(cell.address).or_default();
        of.bytes = of.bytes.max(cell.bytes);
        of
    }

    /// A write. The tasks that wait may be able to go on.
    pub(crate) fn write(
        &mut self,
        cell: Cell,
        value: u64,
        (slot, time): (Slot, u64),
        clock: &Clock,
        knows: impl Fn(Slot, u64) -> bool,
    ) -> Vec<u64> {
        let of = self.value(cell);
        of.push(Some(value), (slot, time), clock, knows);
        std::mem::take(&mut of.waiting)
    }

    /// A copy or a memset went over these bytes, or they were allocated anew.
    pub(crate) fn overwrite(
        &mut self,
        access: &Access,
        at: (Slot, u64),
        clock: &Clock,
        knows: impl Fn(Slot, u64) -> bool,
        anew: bool,
    ) {
        let range = &access.range;
        // It may be what ends a wait that comes later.
        let bytes = range.end.saturating_sub(range.start);
        if !anew
            && access.stride.is_none()
            && matches!(bytes, 4 | 8)
            && range.start.is_multiple_of(bytes)
        {
            self.value(Cell { address: range.start, bytes: bytes as u8 });
        } else if bytes >= 4 {
            if self.copies.len() == COPIES {
                self.copies.pop_front();
            }
            let (slot, time) = at;
            let (access, clock) = (access.clone(), clock.clone());
            self.copies.push_back(Copied { access, slot, time, clock, anew });
        }
        if self.values.is_empty() || range.is_empty() {
            return;
        }
        // A value has at most eight bytes.
        for (address, of) in self.values.range_mut(range.start.saturating_sub(7)..range.end) {
            if !access.touches(&(*address..address.saturating_add(u64::from(of.bytes)))) {
                continue;
            }
            if anew {
                of.writes.clear();
            }
            of.push(None, at, clock, &knows);
        }
    }

    /// What is before every write that a wait may have ended with; None if no write that it can see
    /// ends it.
    pub(crate) fn seen(
        &self,
        cell: Cell,
        value: u64,
        compare: Compare,
        knows: impl Fn(Slot, u64) -> bool,
    ) -> Option<Clock> {
        let writes = &self.values.get(&cell.address)?.writes;
        let fits =
            |write: &&Write| write.value.is_some_and(|seen| compare.holds(cell.bytes, seen, value));
        let visible =
            |write: &&Write| !write.hidden_by.iter().any(|&(slot, time)| knows(slot, time));
        writes
            .iter()
            .filter(fits)
            .filter(visible)
            .map(|write| write.clock.clone())
            .reduce(|one, two| one.meet(&two))
    }

    /// What is before any of the writes.
    pub(crate) fn all(&self, cell: Cell) -> Clock {
        let mut all = Clock::default();
        for write in self.values.get(&cell.address).map_or(&[][..], |of| &of.writes) {
            all.join(&write.clock);
        }
        all
    }

    /// What is before any write of any value.
    pub(crate) fn everything(&self) -> Clock {
        let mut all = Clock::default();
        for write in self.values.values().flat_map(|of| &of.writes) {
            all.join(&write.clock);
        }
        all
    }

    /// A stream waits for a value: the copies that wrote it before count from now on.
    pub(crate) fn expect(&mut self, cell: Cell) {
        if self.values.contains_key(&cell.address) {
            return;
        }
        let range = cell.access().range;
        let mut of = Value { bytes: cell.bytes, ..Value::default() };
        for copied in &self.copies {
            if !copied.access.touches(&range) {
                continue;
            }
            if copied.anew {
                of.writes.clear();
            }
            let knows = |slot, time| copied.clock.get(slot) >= time;
            of.push(None, (copied.slot, copied.time), &copied.clock, knows);
        }
        self.values.insert(cell.address, of);
    }

    pub(crate) fn wait(&mut self, cell: Cell, task: u64) {
        self.value(cell).waiting.push(task);
    }

    /// The slots of all writes, and of those that hide them.
    pub(crate) fn slots(&self, mark: &mut impl FnMut(Slot)) {
        for write in self.values.values().flat_map(|of| &of.writes) {
            mark(write.slot);
            write.hidden_by.iter().for_each(|&(slot, _)| mark(slot));
        }
    }

    /// Forgets the copies of an agent that is gone.
    pub(crate) fn forget_copies(&mut self, slot: Slot) {
        self.copies.retain(|copied| copied.slot != slot);
    }

    pub(crate) fn retire(&mut self, known: impl Fn(Slot, u64) -> bool, floor: &Clock) {
        // One that everybody is after tells nobody anything.
        self.copies.retain(|copied| copied.anew || !known(copied.slot, copied.time));
        for copied in &mut self.copies {
            copied.clock.prune(floor);
        }
        self.values.retain(|_, of| {
            of.writes
                .retain(|write| !write.hidden_by.iter().any(|&(slot, time)| known(slot, time)));
            for write in &mut of.writes {
                write.clock.prune(floor);
            }
            // A copy that everybody is after tells nobody anything.
            let tells = |write: &Write| write.value.is_some() || !known(write.slot, write.time);
            of.writes.iter().any(tells) || !of.waiting.is_empty()
        });
    }
}

impl Value {
    fn push(
        &mut self,
        value: Option<u64>,
        (slot, time): (Slot, u64),
        clock: &Clock,
        knows: impl Fn(Slot, u64) -> bool,
    ) {
        // Of a copy that is before this write, nothing is of use that this write does not know.
        self.writes.retain(|earlier| earlier.value.is_some() || !knows(earlier.slot, earlier.time));
        for earlier in &mut self.writes {
            // One that is before this write hides as much and more.
            let hidden = earlier.hidden_by.iter().any(|&(slot, time)| knows(slot, time));
            if !hidden && knows(earlier.slot, earlier.time) {
                earlier.hidden_by.push((slot, time));
            }
        }
        if self.writes.len() >= KEPT {
            self.writes.remove(0);
        }
        self.writes.push(Write { value, slot, time, clock: clock.clone(), hidden_by: Vec::new() });
    }
}
