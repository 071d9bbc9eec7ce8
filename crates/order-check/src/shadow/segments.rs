//! All segments of the memory, and accesses to ranges of them.

use std::collections::BTreeMap;
use std::ops::{Range, RangeBounds};

use crate::clock::Slot;
use crate::map::Map;
use crate::shadow::ahead::fetch;
use crate::shadow::entries::Check;
use crate::shadow::segment::Segment;

/// How many freed ranges are remembered.
const FREED: usize = 4096;

/// Segments by their first bytes. They are never empty ranges and never overlap.
#[derive(Debug, Default)]
pub(super) struct Segments {
    /// The places in `all`, in the order of the first bytes.
    order: BTreeMap<u64, usize>,
    /// The same places. Most accesses are to a range that is a segment already, and this finds it
    /// several times as fast.
    exact: Map<u64, usize>,
    all: Vec<Segment>,
    /// The unused places in `all`.
    free: Vec<usize>,
    /// The place that was accessed last.
    last: usize,
    /// How many segments accesses have come to.
    pub(super) touched: u64,
}

impl Segments {
    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    pub(super) fn get_mut(&mut self, start: u64) -> Option<&mut Segment> {
        self.all.get_mut(*self.exact.get(&start)?)
    }

    /// The place of the segment of just this range.
    fn just(&mut self, range: &Range<u64>) -> Option<usize> {
        let is_it = |found: &Segment| (found.start, found.end) == (range.start, range.end);
        let next = self.all.get(self.last)?.next;
        if !self.all.get(next).is_some_and(is_it) {
            let at = *self.exact.get(&range.start)?;
            self.all.get(at).filter(|found| is_it(found))?;
            self.all.get_mut(self.last)?.next = at;
            self.last = at;
            return Some(at);
        }
        self.last = next;
        Some(next)
    }

    /// The segments that are likely accessed after this one are not in the processor's caches, where
    /// the program's own work comes between. What the next one has is fetched, and the one after it.
    #[inline]
    fn fetch_after(&self, at: usize) {
        let after = |at: usize| self.all.get(self.all.get(at)?.next);
        let Some(next) = after(at) else { return };
        next.entries.fetch();
        if let Some(second) = self.all.get(next.next) {
            fetch(&second.start);
            fetch(&second.rows);
        }
    }

    pub(super) fn range(
        &self,
        range: impl RangeBounds<u64>,
    ) -> impl DoubleEndedIterator<Item = (u64, &Segment)> {
        self.order.range(range).filter_map(|(start, at)| Some((*start, self.all.get(*at)?)))
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = (u64, &Segment)> {
        self.range(..)
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &Segment> {
        self.iter().map(|(_, segment)| segment)
    }

    /// The segments that have bytes of a range, in their order.
    pub(super) fn overlapping(
        &self,
        range: &Range<u64>,
    ) -> impl Iterator<Item = (u64, &Segment)> + use<'_> {
        let before = self.range(..range.start).next_back();
        let before = before.filter(|(_, segment)| segment.end > range.start);
        before.into_iter().chain(self.range(range.clone()))
    }

    pub(super) fn for_each(&mut self, range: Range<u64>, mut work: impl FnMut(u64, &mut Segment)) {
        for (start, at) in self.order.range(range) {
            if let Some(segment) = self.all.get_mut(*at) {
                work(*start, segment);
            }
        }
    }

    /// The last one that begins before `end`.
    pub(super) fn last_before(&mut self, end: u64) -> Option<(u64, &mut Segment)> {
        let (start, at) = self.order.range(..end).next_back()?;
        Some((*start, self.all.get_mut(*at)?))
    }

    pub(super) fn insert(&mut self, start: u64, segment: Segment) {
        let segment = Segment { start, ..segment };
        if let Some(same) = self.get_mut(start) {
            *same = segment;
            return;
        }
        let at = self.free.pop().unwrap_or(self.all.len());
        match self.all.get_mut(at) {
            Some(unused) => *unused = segment,
            None => self.all.push(segment),
        }
        self.order.insert(start, at);
        self.exact.insert(start, at);
    }

    fn remove(&mut self, start: u64) -> Option<Segment> {
        self.order.remove(&start);
        let at = self.exact.remove(&start)?;
        self.free.push(at);
        self.all.get_mut(at).map(std::mem::take)
    }

    fn retain(&mut self, mut keep: impl FnMut(&mut Segment) -> bool) {
        let Self { order, exact, all, free, .. } = self;
        order.retain(|start, at| {
            let Some(segment) = all.get_mut(*at) else { return false };
            let stays = keep(segment);
            if !stays {
                *segment = Segment::default();
                exact.remove(start);
                free.push(*at);
            }
            stays
        });
        if order.is_empty() {
            *self = Self { touched: self.touched, ..Self::default() };
        }
    }

    /// Makes neighbours that are alike one, among those that begin in a range.
    pub(super) fn merge_within(&mut self, range: impl RangeBounds<u64>) {
        let mut gone = Vec::new();
        let mut left: Option<usize> = None;
        for (start, at) in self.order.range(range) {
            let both = left.and_then(|left| Some((self.all.get(left)?, self.all.get(*at)?)));
            let alike = both.filter(|(left, right)| left.end == *start && left.same(right));
            match (alike.map(|(_, right)| right.end), left.and_then(|left| self.all.get_mut(left)))
            {
                (Some(end), Some(left)) => {
                    left.end = end;
                    gone.push(*start);
                }
                _ => left = Some(*at),
            }
        }
        for start in gone {
            self.remove(start);
        }
    }
}

impl FromIterator<(u64, Segment)> for Segments {
    fn from_iter<T: IntoIterator<Item = (u64, Segment)>>(all: T) -> Self {
        let mut segments = Self::default();
        all.into_iter().for_each(|(start, segment)| segments.insert(start, segment));
        segments
    }
}

/// Accesses, and what they make of segments.
impl Segments {
    /// The new access touches a range. Returns of how many segments that consisted: 0 if there were
    /// gaps.
    pub(super) fn access(
        &mut self,
        range: &Range<u64>,
        check: &mut Check<'_, impl Fn(Slot, u64) -> bool>,
    ) -> usize {
        // Most programs touch the same ranges again and again.
        let Some(at) = self.just(range) else {
            return self.access_others(range, check);
        };
        self.touched += 1;
        self.fetch_after(at);
        if let Some(segment) = self.all.get_mut(at)
            && !segment.replace(check)
        {
            segment.touch(check);
        }
        1
    }

    /// The same of a range that is not one segment.
    #[cold]
    fn access_others(
        &mut self,
        range: &Range<u64>,
        check: &mut Check<'_, impl Fn(Slot, u64) -> bool>,
    ) -> usize {
        self.split(range.start);
        self.split(range.end);
        let mut gaps = Vec::new();
        let (mut at, mut count) = (range.start, 0);
        self.for_each(range.clone(), |start, segment| {
            if at < start {
                gaps.push(at..start);
            }
            segment.touch(check);
            at = segment.end;
            count += 1;
        });
        if at < range.end {
            gaps.push(at..range.end);
        }
        self.touched += (count + gaps.len()) as u64;
        let whole = if gaps.is_empty() { count } else { 0 };
        for Range { start, end } in gaps {
            let mut segment = Segment { start, end, ..Segment::default() };
            segment.touch(check);
            self.insert(start, segment);
        }
        self.merge(range);
        whole
    }

    /// Makes a segment that crosses `at` two.
    pub(super) fn split(&mut self, at: u64) {
        let Some((start, left)) = self.last_before(at) else { return };
        let end = left.end;
        if end <= at {
            return;
        }
        let Some(pitch) = left.rows.as_ref().map(|rows| rows.pitch) else {
            let right = left.copy(end);
            left.end = at;
            self.insert(at, right);
            return;
        };
        let Some(all) = self.remove(start) else { return };
        let row = at - (at - start) % pitch;
        self.insert_rows(start..row, &all);
        if row == at {
            self.insert_rows(row..end, &all);
        } else {
            self.insert_rows(row..row + pitch, &all);
            self.insert_rows(row + pitch..end, &all);
            self.split(at);
        }
    }

    /// Some of the rows of a segment. A single one is as many segments as it has.
    fn insert_rows(&mut self, range: Range<u64>, whole: &Segment) {
        let Some(rows) = whole.rows.as_ref().filter(|_| !range.is_empty()) else { return };
        if range.end - range.start > rows.pitch {
            self.insert(range.start, whole.copy(range.end));
            return;
        }
        for (column, segment) in rows.columns.iter() {
            self.insert(range.start + column, segment.copy(range.start + segment.end));
        }
    }

    /// Makes neighbours that are alike one, in a range and at its ends.
    pub(super) fn merge(&mut self, range: &Range<u64>) {
        let first = self.last_before(range.start).map_or(range.start, |(start, _)| start);
        self.merge_within(first..=range.end);
    }

    /// The slots of all accesses.
    pub(super) fn slots(&self, mark: &mut impl FnMut(Slot)) {
        for segment in self.values() {
            segment.entries.iter().for_each(|entry| mark(entry.slot));
            segment.freed.iter().for_each(|freed| mark(freed.slot));
            if let Some(rows) = &segment.rows {
                rows.columns.slots(mark);
            }
        }
    }

    /// Forgets accesses that are before all that may still come.
    pub(super) fn retire(&mut self, is_over: &impl Fn(Slot, u64) -> bool) {
        let (mut changed, mut freed) = (false, 0);
        self.retain(|segment| {
            if let Some(rows) = &mut segment.rows {
                let before = rows.columns.entries();
                rows.columns.retire(is_over);
                changed |= rows.columns.entries() != before;
                freed += rows.columns.freed().count();
                let empty = rows.columns.len() == 0;
                segment.simplify();
                return !empty;
            }
            let before = segment.entries.len();
            segment.entries.retain(|entry| !is_over(entry.slot, entry.time));
            changed |= segment.entries.len() != before;
            freed += usize::from(segment.freed.is_some());
            !segment.entries.is_empty() || segment.freed.is_some()
        });
        if freed > FREED {
            let mut numbers: Vec<u64> = self.freed().collect();
            let oldest = *numbers.select_nth_unstable(freed - FREED).1;
            self.forget_freed(oldest);
            changed = true;
        }
        if changed {
            self.merge(&(0..u64::MAX));
        }
    }

    fn entries(&self) -> usize {
        self.values().map(|segment| segment.entries.len()).sum()
    }

    /// The numbers of the calls that freed ranges.
    fn freed(&self) -> Box<dyn Iterator<Item = u64> + '_> {
        Box::new(self.values().flat_map(|segment| {
            let rows = segment.rows.iter().flat_map(|rows| rows.columns.freed());
            segment.freed.iter().map(|freed| freed.origin.call.number).chain(rows)
        }))
    }

    pub(super) fn forget_freed(&mut self, oldest: u64) {
        self.retain(|segment| {
            if let Some(rows) = &mut segment.rows {
                rows.columns.forget_freed(oldest);
                return rows.columns.len() > 0;
            }
            if segment.freed.as_ref().is_some_and(|freed| freed.origin.call.number < oldest) {
                segment.freed = None;
            }
            !segment.entries.is_empty() || segment.freed.is_some()
        });
    }
}
