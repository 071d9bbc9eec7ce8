//! The accesses to each byte: a map of ranges, split and merged as accesses come.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use crate::clock::Slot;
use crate::op::{AccessKind, Call};
use crate::report::Agent;

/// An access that a later one may have to be ordered with.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) slot: Slot,
    pub(crate) time: u64,
    pub(crate) kind: AccessKind,
    pub(crate) call: Arc<Call>,
    pub(crate) agent: Agent,
}

impl Entry {
    fn same(&self, other: &Self) -> bool {
        (self.slot, self.time, self.kind) == (other.slot, other.time, other.kind)
    }
}

#[derive(Debug, Default)]
struct Segment {
    end: u64,
    /// Those that no later access has replaced. Two writes are among them only if they race.
    entries: Vec<Entry>,
    /// The access that freed these bytes. Then nothing else is kept.
    freed: Option<Box<Entry>>,
}

impl Segment {
    fn same(&self, other: &Self) -> bool {
        self.entries.len() == other.entries.len()
            && self.entries.iter().zip(&other.entries).all(|(one, other)| one.same(other))
            && match (&self.freed, &other.freed) {
                (Some(one), Some(other)) => one.same(other),
                (None, None) => true,
                _ => false,
            }
    }
}

/// An earlier access that the new one is wrong with, and the bytes they share.
#[derive(Debug)]
pub(crate) struct Hit {
    pub(crate) earlier: Entry,
    /// Whether the earlier one is known to be over. It is a free then.
    pub(crate) ordered: bool,
    pub(crate) ranges: Vec<Range<u64>>,
}

fn hit(hits: &mut Vec<Hit>, earlier: &Entry, ordered: bool, range: Range<u64>) {
    match hits
        .iter_mut()
        .find(|hit| (hit.earlier.slot, hit.earlier.time) == (earlier.slot, earlier.time))
    {
        Some(hit) => match hit.ranges.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => hit.ranges.push(range),
        },
        None => hits.push(Hit { earlier: earlier.clone(), ordered, ranges: vec![range] }),
    }
}

/// `knows` says whether an operation is over before the new access begins.
fn touch(
    start: u64,
    segment: &mut Segment,
    new: &Entry,
    knows: &impl Fn(Slot, u64) -> bool,
    hits: &mut Vec<Hit>,
) {
    let range = start..segment.end;
    if new.kind == AccessKind::Allocate {
        segment.freed = None;
        segment.entries.clear();
        segment.entries.push(new.clone());
        return;
    }
    if let Some(freed) = &segment.freed {
        hit(hits, freed, knows(freed.slot, freed.time), range);
        return;
    }
    segment.entries.retain(|earlier| {
        // A call may touch the same bytes more than once, in an order of its own.
        let known = knows(earlier.slot, earlier.time);
        if !known && new.kind.conflicts(earlier.kind) {
            hit(hits, earlier, false, range.clone());
        }
        !(known && new.kind.replaces(earlier.kind))
    });
    if new.kind == AccessKind::Free {
        segment.entries.clear();
        segment.freed = Some(Box::new(new.clone()));
    } else {
        segment.entries.push(new.clone());
    }
}

#[derive(Debug, Default)]
pub(crate) struct Shadow {
    /// By the first byte. Segments are never empty ranges and never overlap.
    segments: BTreeMap<u64, Segment>,
}

/// How many freed ranges are remembered.
const FREED: usize = 4096;

impl Shadow {
    pub(crate) fn len(&self) -> usize {
        self.segments.len()
    }

    pub(crate) fn access(
        &mut self,
        range: &Range<u64>,
        new: &Entry,
        knows: impl Fn(Slot, u64) -> bool,
        hits: &mut Vec<Hit>,
    ) {
        if range.is_empty() {
            return;
        }
        // Most programs touch the same ranges again and again.
        if let Some(segment) = self.segments.get_mut(&range.start)
            && segment.end == range.end
        {
            touch(range.start, segment, new, &knows, hits);
            return;
        }
        self.split(range.start);
        self.split(range.end);
        let mut gaps = Vec::new();
        let mut at = range.start;
        for (&start, segment) in self.segments.range_mut(range.clone()) {
            if at < start {
                gaps.push(at..start);
            }
            touch(start, segment, new, &knows, hits);
            at = segment.end;
        }
        if at < range.end {
            gaps.push(at..range.end);
        }
        for gap in gaps {
            let mut segment = Segment { end: gap.end, ..Segment::default() };
            touch(gap.start, &mut segment, new, &knows, hits);
            self.segments.insert(gap.start, segment);
        }
        self.merge(range);
    }

    /// Makes a segment that crosses `at` two.
    fn split(&mut self, at: u64) {
        let Some((_, left)) = self.segments.range_mut(..at).next_back() else { return };
        if left.end <= at {
            return;
        }
        let right =
            Segment { end: left.end, entries: left.entries.clone(), freed: left.freed.clone() };
        left.end = at;
        self.segments.insert(at, right);
    }

    /// Makes neighbours that are alike one, in a range and at its ends.
    fn merge(&mut self, range: &Range<u64>) {
        let first =
            self.segments.range(..range.start).next_back().map_or(range.start, |(&start, _)| start);
        let mut gone = Vec::new();
        let mut left: Option<(&u64, &mut Segment)> = None;
        for (start, segment) in self.segments.range_mut(first..=range.end) {
            if let Some((_, before)) = &mut left
                && before.end == *start
                && before.same(segment)
            {
                before.end = segment.end;
                gone.push(*start);
            } else {
                left = Some((start, segment));
            }
        }
        for start in gone {
            self.segments.remove(&start);
        }
    }

    /// The slots of all accesses.
    pub(crate) fn slots(&self, mark: &mut impl FnMut(Slot)) {
        for segment in self.segments.values() {
            segment.entries.iter().for_each(|entry| mark(entry.slot));
            segment.freed.iter().for_each(|freed| mark(freed.slot));
        }
    }

    /// Forgets accesses that are before all that may still come.
    pub(crate) fn retire(&mut self, known: impl Fn(Slot, u64) -> bool) {
        let mut freed: Vec<u64> = self
            .segments
            .values()
            .filter_map(|segment| Some(segment.freed.as_ref()?.call.number))
            .collect();
        let oldest = if freed.len() > FREED {
            let excess = freed.len() - FREED;
            *freed.select_nth_unstable(excess).1
        } else {
            0
        };
        self.segments.retain(|_, segment| {
            segment.entries.retain(|entry| !known(entry.slot, entry.time));
            if segment.freed.as_ref().is_some_and(|freed| freed.call.number < oldest) {
                segment.freed = None;
            }
            !segment.entries.is_empty() || segment.freed.is_some()
        });
        self.merge(&(0..u64::MAX));
    }
}
