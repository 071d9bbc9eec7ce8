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
    /// None for a copy or a memset of which only the range is known.
    value: Option<u64>,
    /// Whether it is a copy or a memset, and no allocation.
    copied: bool,
    /// Its place among the writes of the value.
    place: u64,
    time: u64,
    /// The work before it, itself included.
    clock: Clock,
    /// Later writes that it is before. Work after one of them cannot see it any more.
    hidden_by: Vec<(Slot, u64)>,
}

#[derive(Debug, Default)]
struct Value {
    bytes: u8,
    /// The writes of each agent, the oldest first. Each knows the ones before it, so a write or a
    /// wait that comes later needs to look at the last one that it knows, and at those after it.
    writes: Vec<(Slot, VecDeque<Write>)>,
    count: usize,
    last_place: u64,
    /// Whether a stream has waited for it.
    awaited: bool,
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
    /// How many writes later writes and waits have come to.
    touched: u64,
}

impl Values {
    pub(crate) fn touched(&self) -> u64 {
        self.touched
    }

    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }

    fn value(&mut self, cell: Cell) -> &mut Value {
        let state = self.values.entry(cell.address).or_default();
        state.bytes = state.bytes.max(cell.bytes);
        state
    }

    /// A write. The tasks that wait may be able to go on.
    pub(crate) fn write(
        &mut self,
        cell: Cell,
        value: u64,
        (slot, time): (Slot, u64),
        clock: &Clock,
        is_before: impl Fn(Slot, u64) -> bool,
    ) -> Vec<u64> {
        if !self.values.contains_key(&cell.address) {
            // A stream that waits may still see what a copy wrote before.
            let before = self.copied_value(cell, |copied| copied.access.content.is_some());
            self.values.insert(cell.address, before);
        }
        let state = self.value(cell);
        let touched = state.push((Some(value), false), (slot, time), clock, is_before);
        let woken = std::mem::take(&mut state.waiting);
        self.touched += touched;
        woken
    }

    /// A copy or a memset went over these bytes, or they were allocated anew. The tasks that wait
    /// for a value that it wrote may be able to go on.
    #[inline]
    pub(crate) fn overwrite(
        &mut self,
        access: &Access,
        at: (Slot, u64),
        clock: &Clock,
        is_before: impl Fn(Slot, u64) -> bool,
        anew: bool,
    ) -> Vec<u64> {
        // Most accesses of kernels are of one byte, and no value.
        let is_short = access.range.end.saturating_sub(access.range.start) < 4;
        if is_short && self.values.is_empty() {
            return Vec::new();
        }
        self.overwrite_some(access, at, clock, is_before, anew)
    }

    fn overwrite_some(
        &mut self,
        access: &Access,
        at: (Slot, u64),
        clock: &Clock,
        is_before: impl Fn(Slot, u64) -> bool,
        anew: bool,
    ) -> Vec<u64> {
        let mut woken = Vec::new();
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
            return woken;
        }
        // A value has at most eight bytes.
        for (address, state) in self.values.range_mut(range.start.saturating_sub(7)..range.end) {
            let bytes = *address..address.saturating_add(u64::from(state.bytes));
            if !access.touches(&bytes) {
                continue;
            }
            if anew {
                state.clear();
            }
            let value = access.content(&bytes);
            self.touched += state.push((value, !anew), at, clock, &is_before);
            if value.is_some() {
                woken.append(&mut state.waiting);
            }
        }
        woken
    }

    /// What is before every write that a wait may have ended with; None if no write that it can see
    /// ends it.
    pub(crate) fn seen(
        &mut self,
        cell: Cell,
        value: u64,
        compare: Compare,
        is_before: impl Fn(Slot, u64) -> bool,
    ) -> Option<Clock> {
        let mut seen: Option<Clock> = None;
        for (slot, writes) in &self.values.get(&cell.address)?.writes {
            let over = writes.partition_point(|write| is_before(*slot, write.time));
            for write in writes.range(over.saturating_sub(1)..) {
                self.touched += 1;
                let fits = |seen| compare.holds(cell.bytes, seen, value);
                if write.value.is_some_and(fits) && !write.is_hidden(&is_before) {
                    seen = Some(match seen {
                        Some(seen) => seen.meet(&write.clock),
                        None => write.clock.clone(),
                    });
                    // The agent's later writes come after this one, so they have no less in common
                    // with the others.
                    break;
                }
            }
        }
        seen
    }

    /// What is before any of the writes.
    pub(crate) fn all(&self, cell: Cell) -> Clock {
        let mut all = Clock::default();
        for write in self.values.get(&cell.address).iter().flat_map(|state| state.last_writes()) {
            all.join(&write.clock);
        }
        all
    }

    /// Whether a copy of unknown bytes may have written the value.
    pub(crate) fn is_copied(&self, cell: Cell) -> bool {
        let mut writes = self.values.get(&cell.address).into_iter().flat_map(Value::last_writes);
        writes.any(|write| write.copied && write.value.is_none())
    }

    /// What is before any write of any value.
    pub(crate) fn everything(&self) -> Clock {
        let mut all = Clock::default();
        for write in self.values.values().flat_map(Value::last_writes) {
            all.join(&write.clock);
        }
        all
    }

    /// A stream waits for a value: the copies that wrote it before count from now on.
    pub(crate) fn expect(&mut self, cell: Cell) {
        if let Some(state) = self.values.get_mut(&cell.address) {
            state.awaited = true;
            return;
        }
        let state = Value { awaited: true, ..self.copied_value(cell, |_| true) };
        self.values.insert(cell.address, state);
    }

    /// A value that was only copied so far, by the copies that are chosen.
    fn copied_value(&self, cell: Cell, chosen: impl Fn(&Copied) -> bool) -> Value {
        let range = cell.access().range;
        let mut state = Value { bytes: cell.bytes, ..Value::default() };
        for copied in &self.copies {
            if !copied.access.touches(&range) {
                continue;
            }
            if copied.anew {
                state.clear();
            }
            if !chosen(copied) {
                continue;
            }
            let is_before = |slot, time| copied.clock.get(slot) >= time;
            let content = (copied.access.content(&range), !copied.anew);
            state.push(content, (copied.slot, copied.time), &copied.clock, is_before);
        }
        state
    }

    pub(crate) fn wait(&mut self, cell: Cell, task: u64) {
        self.value(cell).waiting.push(task);
    }

    /// The slots of all writes, and of those that hide them.
    pub(crate) fn slots(&self, mark: &mut impl FnMut(Slot)) {
        for (slot, writes) in self.values.values().flat_map(|state| &state.writes) {
            mark(*slot);
            let hidden_by = writes.iter().flat_map(|write| &write.hidden_by);
            hidden_by.for_each(|&(slot, _)| mark(slot));
        }
    }

    /// Forgets the copies of an agent that is gone.
    pub(crate) fn forget_copies(&mut self, slot: Slot) {
        self.copies.retain(|copied| copied.slot != slot);
    }

    pub(crate) fn retire(&mut self, is_over: impl Fn(Slot, u64) -> bool, floor: &Clock) {
        // One that all agents are after orders no work, unless a stream may see its bytes.
        self.copies.retain(|copied| {
            copied.anew || copied.access.content.is_some() || !is_over(copied.slot, copied.time)
        });
        for copied in &mut self.copies {
            copied.clock.prune(floor);
        }
        self.values.retain(|_, state| {
            // A copy that all agents are after orders no work, unless a stream may see it.
            let mut orders = false;
            for (slot, writes) in &mut state.writes {
                writes.retain(|write| !write.is_hidden(&is_over));
                for write in writes {
                    write.clock.prune(floor);
                    orders |= write.value.is_some() && (state.awaited || !write.copied)
                        || !is_over(*slot, write.time);
                }
            }
            state.writes.retain(|(_, writes)| !writes.is_empty());
            state.count = state.writes.iter().map(|(_, writes)| writes.len()).sum();
            orders || !state.waiting.is_empty()
        });
    }
}

impl Write {
    /// Whether work that knows this much cannot see it any more.
    fn is_hidden(&self, is_before: impl Fn(Slot, u64) -> bool) -> bool {
        self.hidden_by.iter().any(|&(slot, time)| is_before(slot, time))
    }
}

impl Value {
    fn clear(&mut self) {
        self.writes.clear();
        self.count = 0;
    }

    /// The last write of each agent, which is after its earlier ones.
    fn last_writes(&self) -> impl Iterator<Item = &Write> {
        self.writes.iter().filter_map(|(_, writes)| writes.back())
    }

    /// Adds a write. Returns how many earlier ones it has come to.
    fn push(
        &mut self,
        (value, copied): (Option<u64>, bool),
        (slot, time): (Slot, u64),
        clock: &Clock,
        is_before: impl Fn(Slot, u64) -> bool,
    ) -> u64 {
        let mut touched = 0;
        for (other, writes) in &mut self.writes {
            touched += 1;
            // Of a copy that is before this write, nothing is of use that this write does not know.
            // Only an agent's last write can be one.
            if writes
                .back()
                .is_some_and(|last| last.value.is_none() && is_before(*other, last.time))
            {
                writes.pop_back();
                self.count -= 1;
            }
            let over = writes.partition_point(|write| is_before(*other, write.time));
            let last = over.checked_sub(1).and_then(|last| writes.get_mut(last));
            // One that is before this write hides as much and more.
            if let Some(last) = last.filter(|last| !last.is_hidden(&is_before)) {
                last.hidden_by.push((slot, time));
            }
        }
        self.writes.retain(|(_, writes)| !writes.is_empty());
        if self.count >= KEPT {
            touched += self.writes.len() as u64;
            let first = |writes: &VecDeque<Write>| writes.front().map(|write| write.place);
            let all = self.writes.iter().map(|(_, writes)| first(writes));
            let oldest = (0..).zip(all).min_by_key(|(_, place)| *place).map(|(at, _)| at);
            if let Some((_, writes)) = oldest.and_then(|oldest: usize| self.writes.get_mut(oldest))
            {
                writes.pop_front();
                self.count -= 1;
            }
        }
        self.last_place += 1;
        self.count += 1;
        let (place, hidden_by) = (self.last_place, Vec::new());
        let write = Write { value, copied, place, time, clock: clock.clone(), hidden_by };
        match self.writes.iter_mut().find(|(other, _)| *other == slot) {
            Some((_, writes)) => writes.push_back(write),
            None => self.writes.push((slot, VecDeque::from([write]))),
        }
        touched
    }
}
