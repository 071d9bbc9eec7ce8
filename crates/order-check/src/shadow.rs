//! The accesses to each byte: a map of ranges, split and merged as accesses come.

use std::collections::BTreeMap;
use std::ops::{Bound, Range, RangeBounds};
use std::sync::Arc;

use crate::clock::{Clock, Slot};
use crate::map::Map;
use crate::op::{Access, AccessKind, Call, Launched, Stride};
use crate::report::Agent;

/// An access that a later one may have to be ordered with.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) slot: Slot,
    pub(crate) time: u64,
    pub(crate) kind: AccessKind,
    /// Whether a launch may make it, and the number of the launch, as in the origin: to look there
    /// takes long, as it is seldom in the processor's caches.
    of_launch: bool,
    launch: u64,
    /// One for all accesses of an operation, as a kernel may have hundreds.
    pub(crate) origin: Arc<Origin>,
}

/// Where accesses come from.
#[derive(Debug, PartialEq)]
pub(crate) struct Origin {
    pub(crate) call: Arc<Call>,
    pub(crate) agent: Agent,
    /// All that the operation accesses in this way, unless it is a launch.
    pub(crate) accesses: Box<[Access]>,
    /// The launch that may make the access.
    pub(crate) launch: Option<Launched>,
}

impl Origin {
    pub(crate) fn new(call: Arc<Call>, agent: Agent) -> Self {
        Self { call, agent, accesses: Box::default(), launch: None }
    }
}

/// How many launches at the same bytes are kept that later ones are after.
const LAUNCHES: usize = 8;

impl Entry {
    pub(crate) fn new(slot: Slot, time: u64, kind: AccessKind, origin: Arc<Origin>) -> Self {
        let launch = origin.launch.as_ref().map(|launch| launch.number);
        let (of_launch, launch) = (launch.is_some(), launch.unwrap_or_default());
        Self { slot, time, kind, of_launch, launch, origin }
    }

    /// Whether it need not be kept, as the new one is after it, and everything that conflicts with
    /// this one conflicts with the new one as well. A launch may turn out not to access the bytes, so
    /// it stands for nothing but the same launch.
    #[inline]
    fn is_replaced(&self, new: &Self) -> bool {
        let alike = !new.of_launch || self.of_launch && new.launch == self.launch;
        alike && new.kind.replaces(self.kind)
    }

    fn same(&self, other: &Self) -> bool {
        (self.slot, self.time, self.kind) == (other.slot, other.time, other.kind)
    }
}

/// The accesses of a segment, the oldest first. Most segments have one, which is in the segment
/// itself: to look elsewhere for each of a kernel's hundreds of addresses takes long.
#[derive(Clone, Debug, Default)]
struct Entries {
    /// If there is none, there are no others.
    first: Option<Entry>,
    others: Vec<Entry>,
}

impl Entries {
    fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.others.len()
    }

    fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.first.iter().chain(&self.others)
    }

    fn push(&mut self, entry: Entry) {
        match self.first {
            None => self.first = Some(entry),
            Some(_) => self.others.push(entry),
        }
    }

    /// The only one.
    fn only(&mut self) -> Option<&mut Entry> {
        self.first.as_mut().filter(|_| self.others.is_empty())
    }

    fn retain(&mut self, mut keep: impl FnMut(&Entry) -> bool) {
        self.first.take_if(|entry| !keep(entry));
        if !self.others.is_empty() {
            self.others.retain(keep);
            if self.first.is_none() && !self.others.is_empty() {
                self.first = Some(self.others.remove(0));
            }
        }
    }

    /// Removes the oldest one of some.
    fn remove_first(&mut self, goes: impl Fn(&Entry) -> bool) {
        match &self.first {
            Some(first) if goes(first) => {
                self.first =
                    if self.others.is_empty() { None } else { Some(self.others.remove(0)) };
            }
            _ => {
                let at = self.others.iter().position(goes);
                at.map(|at| self.others.remove(at));
            }
        }
    }

    fn last_mut(&mut self) -> Option<&mut Entry> {
        self.others.last_mut().or(self.first.as_mut())
    }

    fn clear(&mut self) {
        *self = Self::default();
    }
}

/// Segments by their first bytes. They are never empty ranges and never overlap.
#[derive(Debug, Default)]
struct Segments {
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
}

impl Segments {
    fn len(&self) -> usize {
        self.order.len()
    }

    fn get_mut(&mut self, start: u64) -> Option<&mut Segment> {
        self.all.get_mut(*self.exact.get(&start)?)
    }

    /// The segment of just this range.
    fn just(&mut self, range: &Range<u64>) -> Option<&mut Segment> {
        let is_it = |found: &Segment| (found.start, found.end) == (range.start, range.end);
        let next = self.all.get(self.last)?.next;
        if !self.all.get(next).is_some_and(is_it) {
            let at = *self.exact.get(&range.start)?;
            self.all.get(at).filter(|found| is_it(found))?;
            self.all.get_mut(self.last)?.next = at;
            self.last = at;
            return self.all.get_mut(at);
        }
        self.last = next;
        self.all.get_mut(next)
    }

    fn range(
        &self,
        range: impl RangeBounds<u64>,
    ) -> impl DoubleEndedIterator<Item = (u64, &Segment)> {
        self.order.range(range).filter_map(|(start, at)| Some((*start, self.all.get(*at)?)))
    }

    fn iter(&self) -> impl DoubleEndedIterator<Item = (u64, &Segment)> {
        self.range(..)
    }

    fn values(&self) -> impl Iterator<Item = &Segment> {
        self.iter().map(|(_, segment)| segment)
    }

    fn for_each(&mut self, range: Range<u64>, mut work: impl FnMut(u64, &mut Segment)) {
        for (start, at) in self.order.range(range) {
            if let Some(segment) = self.all.get_mut(*at) {
                work(*start, segment);
            }
        }
    }

    /// The last one that begins before `end`.
    fn last_before(&mut self, end: u64) -> Option<(u64, &mut Segment)> {
        let (start, at) = self.order.range(..end).next_back()?;
        Some((*start, self.all.get_mut(*at)?))
    }

    fn insert(&mut self, start: u64, segment: Segment) {
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
            *self = Self::default();
        }
    }

    /// Makes neighbours that are alike one, among those that begin in a range.
    fn merge(&mut self, range: impl RangeBounds<u64>) {
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

#[derive(Debug, Default)]
struct Segment {
    start: u64,
    end: u64,
    /// The place of the segment that was accessed after this one, and likely is again: a kernel
    /// gets the same addresses at each launch.
    next: usize,
    /// Those that no later access has replaced. Two writes are among them only if they race.
    entries: Entries,
    /// The access that freed these bytes. Then nothing else is kept.
    freed: Option<Box<Entry>>,
    /// If the segment consists of rows that are alike: the accesses of each row. Then the two
    /// fields above are empty.
    rows: Option<Box<Rows>>,
}

/// Whole rows, of which each has the same accesses in the same columns.
#[derive(Debug)]
struct Rows {
    pitch: u64,
    /// The accesses of a row, whose first byte is at 0.
    columns: Shadow,
}

/// The smallest number that both divide.
fn common(one: u64, two: u64) -> u64 {
    let (mut divisor, mut rest) = (one, two);
    while rest > 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    one.checked_div(divisor).map_or(u64::MAX, |times| times.saturating_mul(two))
}

impl Rows {
    /// Takes several rows for one. False if it would have too many columns.
    fn lengthen(&mut self, pitch: u64) -> bool {
        let times = pitch / self.pitch;
        if times > 1 {
            if self.columns.segments.len() * times as usize > COLUMNS {
                return false;
            }
            let mut columns = Segments::default();
            for shift in (0..times).map(|time| time * self.pitch) {
                for (start, segment) in self.columns.segments.iter() {
                    columns.insert(start + shift, segment.copy(segment.end + shift));
                }
            }
            self.columns.segments = columns;
            self.columns.merge(&(0..pitch));
            self.pitch = pitch;
        }
        true
    }

    /// The new access touches these columns of all rows of a segment.
    fn access(
        &mut self,
        segment: &Range<u64>,
        columns: &Range<u64>,
        new: &Entry,
        is_before: &impl Fn(Slot, u64) -> bool,
        hits: &mut Vec<Hit>,
    ) {
        let mut found = Vec::new();
        self.columns.access(columns, new, is_before, &mut found);
        // The segments have its one read. Later ones would be lost where rows are copied.
        self.columns.spans.clear();
        for Hit { earlier, ordered, ranges } in found {
            let mut row = segment.start;
            while row < segment.end {
                for columns in &ranges {
                    hit(hits, &earlier, ordered, row + columns.start..row + columns.end);
                }
                row += self.pitch;
            }
        }
    }

    fn same(&self, other: &Self) -> bool {
        let (mine, others) = (&self.columns.segments, &other.columns.segments);
        self.pitch == other.pitch
            && mine.len() == others.len()
            && mine.iter().zip(others.iter()).all(|(one, other)| {
                one.0 == other.0 && one.1.end == other.1.end && one.1.same(other.1)
            })
    }
}

impl Segment {
    fn same(&self, other: &Self) -> bool {
        self.entries.len() == other.entries.len()
            && self.entries.iter().zip(other.entries.iter()).all(|(one, other)| one.same(other))
            && match (&self.freed, &other.freed) {
                (Some(one), Some(other)) => one.same(other),
                (None, None) => true,
                _ => false,
            }
            && match (&self.rows, &other.rows) {
                (Some(one), Some(other)) => one.same(other),
                (None, None) => true,
                _ => false,
            }
    }

    /// If there is one access, and the new one replaces it, this does so: the most frequent case.
    fn replace(&mut self, new: &Entry, is_before: &impl Fn(Slot, u64) -> bool) -> bool {
        let Some(earlier) = self.entries.only() else { return false };
        // All that an agent did is before what it does.
        let own = earlier.slot == new.slot && earlier.time <= new.time;
        let replaced =
            !matches!(new.kind, AccessKind::Allocate | AccessKind::Forget | AccessKind::Free)
                && (own || is_before(earlier.slot, earlier.time))
                && earlier.is_replaced(new);
        if replaced {
            *earlier = new.clone();
        }
        replaced
    }

    /// The same accesses, up to another end.
    fn copy(&self, end: u64) -> Self {
        let rows = self.rows.as_ref().map(|rows| {
            let columns = rows.columns.segments.iter();
            let columns = columns.map(|(start, segment)| (start, segment.copy(segment.end)));
            let columns = Shadow { segments: columns.collect(), spans: Vec::new(), touched: 0 };
            Box::new(Rows { pitch: rows.pitch, columns })
        });
        let (entries, freed) = (self.entries.clone(), self.freed.clone());
        Self { end, entries, freed, rows, ..Self::default() }
    }

    /// Rows of which all columns are alike are no rows.
    fn simplify(&mut self) {
        let Some(rows) = &mut self.rows else { return };
        if rows.columns.segments.len() > 1 {
            return;
        }
        let pitch = rows.pitch;
        if let Some(all) = rows.columns.segments.get_mut(0)
            && all.end == pitch
        {
            self.entries = std::mem::take(&mut all.entries);
            self.freed = all.freed.take();
            self.rows = None;
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

/// `is_before` says whether an operation is over before the new access begins.
fn touch(
    start: u64,
    segment: &mut Segment,
    new: &Entry,
    is_before: &impl Fn(Slot, u64) -> bool,
    hits: &mut Vec<Hit>,
) {
    let range = start..segment.end;
    if let Some(rows) = &mut segment.rows {
        let columns = 0..rows.pitch;
        rows.access(&range, &columns, new, is_before, hits);
        segment.simplify();
        return;
    }
    if matches!(new.kind, AccessKind::Allocate | AccessKind::Forget) {
        segment.freed = None;
        segment.entries.clear();
        if new.kind == AccessKind::Allocate {
            segment.entries.push(new.clone());
        }
        return;
    }
    if let Some(freed) = &segment.freed {
        hit(hits, freed, is_before(freed.slot, freed.time), range);
        return;
    }
    // A call may touch the same bytes more than once, in an order of its own.
    let is_before = |earlier: &Entry| {
        let own = earlier.slot == new.slot && earlier.time <= new.time;
        own || is_before(earlier.slot, earlier.time)
    };
    let (mut launches, mut gone, mut last_goes) = (0, 0, false);
    segment.entries.iter().for_each(|earlier| {
        let before = is_before(earlier);
        if !before && new.kind.conflicts(earlier.kind) {
            hit(hits, earlier, false, range.clone());
        }
        let goes = before && earlier.is_replaced(new);
        gone += usize::from(goes);
        last_goes = goes;
        launches += usize::from(!goes && before && earlier.of_launch);
    });
    // Mostly none does, or just the last one, and nothing is moved.
    if gone == 1 && last_goes && new.kind != AccessKind::Free && launches < LAUNCHES {
        segment.entries.last_mut().into_iter().for_each(|last| *last = new.clone());
        return;
    }
    if gone == 1 {
        segment.entries.remove_first(|earlier| is_before(earlier) && earlier.is_replaced(new));
    } else if gone > 1 {
        segment.entries.retain(|earlier| !(is_before(earlier) && earlier.is_replaced(new)));
    }
    if launches >= LAUNCHES && new.of_launch {
        let goes = |earlier: &Entry| earlier.of_launch && is_before(earlier);
        (LAUNCHES..=launches).for_each(|_| segment.entries.remove_first(goes));
    }
    if new.kind == AccessKind::Free {
        segment.entries.clear();
        segment.freed = Some(Box::new(new.clone()));
    } else {
        segment.entries.push(new.clone());
    }
}

#[derive(Debug, Default)]
pub(crate) struct Shadow {
    segments: Segments,
    /// Ranges of many segments that are read as a whole, again and again. They never overlap.
    spans: Vec<Span>,
    /// How many segments accesses have come to.
    touched: u64,
}

/// Segments without a gap between them that were read as a whole.
#[derive(Debug)]
struct Span {
    range: Range<u64>,
    /// What an access must be after so that it is after all accesses of the segments.
    below: Clock,
    /// The reads of the whole range since then, which the segments outside of `touched` do not
    /// contain yet. Each is after all accesses of those.
    reads: Vec<Entry>,
    /// The parts that something else has touched since, whose segments contain everything.
    touched: Vec<Range<u64>>,
}

/// How many spans there are at most, and how many segments one has at least.
const SPANS: usize = 16;
const SPAN: usize = 3;
/// How many parts of a span may be touched before it ends.
const PARTS: usize = 16;
/// How many times as long the rows of a segment may become, so that rows of another pitch fit into
/// them, and how many columns they may have then.
const LONGER: u64 = 16;
const COLUMNS: usize = 256;

/// How many freed ranges are remembered.
const FREED: usize = 4096;

impl Shadow {
    pub(crate) fn touched(&self) -> u64 {
        self.touched
    }

    pub(crate) fn len(&self) -> usize {
        self.segments.len()
    }

    pub(crate) fn access(
        &mut self,
        range: &Range<u64>,
        new: &Entry,
        is_before: &impl Fn(Slot, u64) -> bool,
        hits: &mut Vec<Hit>,
    ) {
        if range.is_empty() {
            return;
        }
        if !self.spans.is_empty() && self.read_span(range, new, is_before, hits) {
            return;
        }
        self.access_segments(range, new, is_before, hits);
    }

    fn access_segments(
        &mut self,
        range: &Range<u64>,
        new: &Entry,
        is_before: &impl Fn(Slot, u64) -> bool,
        hits: &mut Vec<Hit>,
    ) {
        // Most programs touch the same ranges again and again.
        let Some(segment) = self.segments.just(range) else {
            return self.access_others(range, new, is_before, hits);
        };
        self.touched += 1;
        if !segment.replace(new, is_before) {
            touch(range.start, segment, new, is_before, hits);
        }
    }

    /// The range is not one segment.
    #[cold]
    fn access_others(
        &mut self,
        range: &Range<u64>,
        new: &Entry,
        is_before: &impl Fn(Slot, u64) -> bool,
        hits: &mut Vec<Hit>,
    ) {
        self.split(range.start);
        self.split(range.end);
        let mut gaps = Vec::new();
        let (mut at, mut count, before) = (range.start, 0, hits.len());
        self.segments.for_each(range.clone(), |start, segment| {
            if at < start {
                gaps.push(at..start);
            }
            touch(start, segment, new, is_before, hits);
            at = segment.end;
            count += 1;
        });
        if at < range.end {
            gaps.push(at..range.end);
        }
        self.touched += (count + gaps.len()) as u64;
        // A launch's stands for no other read.
        let is_read = (new.kind, new.of_launch) == (AccessKind::Read, false);
        let span = is_read && count >= SPAN && hits.len() == before;
        if span && gaps.is_empty() {
            self.add_span(range);
        }
        for gap in gaps {
            let mut segment = Segment { end: gap.end, ..Segment::default() };
            touch(gap.start, &mut segment, new, is_before, hits);
            self.segments.insert(gap.start, segment);
        }
        self.merge(range);
    }

    /// If the range is a span, and the new access a read that is after all accesses of it, only the
    /// parts need to be touched that something else has touched. Spans that it overlaps otherwise
    /// have one part more.
    fn read_span(
        &mut self,
        range: &Range<u64>,
        new: &Entry,
        is_before: &impl Fn(Slot, u64) -> bool,
        hits: &mut Vec<Hit>,
    ) -> bool {
        let same = self.spans.iter().position(|span| span.range == *range);
        let same = same.filter(|&at| {
            (new.kind, new.of_launch) == (AccessKind::Read, false)
                && self.spans.get(at).is_some_and(|span| span.below.all(is_before))
        });
        let Some(mut span) = same.map(|at| self.spans.remove(at)) else {
            self.touch_spans(range);
            return false;
        };
        self.touched += 1;
        let (before, mut all_before) = (hits.len(), true);
        for part in &span.touched {
            self.split(part.start);
            self.split(part.end);
            for (_, segment) in self.segments.range(part.clone()) {
                let before = |entry: &Entry| is_before(entry.slot, entry.time);
                all_before &= segment.rows.is_none() && segment.freed.is_none();
                all_before &= segment.entries.iter().all(before);
            }
            self.access_segments(part, new, is_before, hits);
        }
        span.reads.retain(|read| !is_before(read.slot, read.time));
        if all_before && span.reads.is_empty() && hits.len() == before {
            for (_, segment) in span.touched.drain(..).flat_map(|part| self.segments.range(part)) {
                for entry in segment.entries.iter().filter(|entry| !entry.same(new)) {
                    span.below.raise(entry.slot, entry.time);
                }
            }
        }
        span.reads.push(new.clone());
        self.spans.push(span);
        true
    }

    /// Something touches a part of spans. The segments there get the reads.
    fn touch_spans(&mut self, range: &Range<u64>) {
        let overlaps = |span: &Span| span.range.start < range.end && range.start < span.range.end;
        if !self.spans.iter().any(overlaps) {
            return;
        }
        for mut span in self.spans.extract_if(.., |span| overlaps(span)).collect::<Vec<_>>() {
            let part = range.start.max(span.range.start)..range.end.min(span.range.end);
            if part == span.range || span.touched.len() == PARTS {
                self.end_span(span);
                continue;
            }
            if span.touched.iter().any(|old| old.start <= part.start && part.end <= old.end) {
                self.spans.push(span);
                continue;
            }
            // What is touched already has the reads.
            let inside = |old: &Range<u64>| old.start < part.end && part.start < old.end;
            let mut at = part.start;
            let mut others: Vec<Range<u64>> =
                span.touched.iter().filter(|old| inside(old)).cloned().collect();
            others.sort_unstable_by_key(|other| other.start);
            for other in others {
                self.add_reads(at..other.start, &span.reads);
                at = other.end;
            }
            self.add_reads(at..part.end, &span.reads);
            let mut whole = part;
            span.touched.retain(|old| {
                let meets = old.start <= whole.end && whole.start <= old.end;
                if meets {
                    whole = old.start.min(whole.start)..old.end.max(whole.end);
                }
                !meets
            });
            span.touched.push(whole);
            self.spans.push(span);
        }
    }

    /// These bytes get the reads of a span.
    fn add_reads(&mut self, range: Range<u64>, reads: &[Entry]) {
        if reads.is_empty() || range.start >= range.end {
            return;
        }
        // Segments that are alike but for these reads may have become one at the span's ends.
        self.split(range.start);
        self.split(range.end);
        let touched = &mut self.touched;
        self.segments.for_each(range, |_, segment| {
            *touched += 1;
            segment.entries.retain(|entry| !AccessKind::Read.replaces(entry.kind));
            reads.iter().for_each(|read| segment.entries.push(read.clone()));
        });
    }

    fn end_span(&mut self, mut span: Span) {
        span.touched.sort_unstable_by_key(|part| part.start);
        let mut at = span.range.start;
        for part in span.touched {
            self.add_reads(at..part.start, &span.reads);
            at = part.end;
        }
        self.add_reads(at..span.range.end, &span.reads);
    }

    fn add_span(&mut self, range: &Range<u64>) {
        if self.spans.len() == SPANS {
            let oldest = self.spans.first().map_or(0..0, |span| span.range.clone());
            self.end_spans(&oldest);
        }
        let mut below = Clock::default();
        for segment in self.segments.range(range.clone()).map(|(_, segment)| segment) {
            if segment.rows.is_some() || segment.freed.is_some() {
                return;
            }
            for entry in segment.entries.iter() {
                below.raise(entry.slot, entry.time);
            }
        }
        self.spans.push(Span {
            range: range.clone(),
            below,
            reads: Vec::new(),
            touched: Vec::new(),
        });
    }

    /// The segments get the reads of the spans that overlap a range.
    fn end_spans(&mut self, range: &Range<u64>) {
        let overlaps =
            |span: &mut Span| span.range.start < range.end && range.start < span.range.end;
        for span in self.spans.extract_if(.., overlaps).collect::<Vec<_>>() {
            self.end_span(span);
        }
    }

    /// The same for rows: the first one has `width` bytes from the start of `range` on, and the
    /// last one ends where the range ends.
    ///
    /// It takes as long as the number of segments there, not of the rows.
    pub(crate) fn access_rows(
        &mut self,
        range: &Range<u64>,
        Stride { width, pitch }: Stride,
        new: &Entry,
        is_before: &impl Fn(Slot, u64) -> bool,
        hits: &mut Vec<Hit>,
    ) {
        // The bytes between the rows are the others', and those after the last row may be anything.
        let last = range.end - width;
        self.end_spans(range);
        self.access(&(last..range.end), new, is_before, hits);
        let mut row = range.start;
        for (piece, rows) in self.pieces(range.start..last) {
            self.touched += 1;
            while row < piece.start {
                self.access(&(row..row + width), new, is_before, hits);
                row += pitch;
            }
            if row >= piece.end || row >= last {
                continue;
            }
            // Rows of another pitch become longer, so that both kinds fit.
            let has = rows.unwrap_or(pitch);
            let long = common(has, pitch);
            let column = (row - piece.start) % has;
            let column = if rows.is_some() { column } else { 0 };
            let start = row - column;
            let whole = ((piece.end - start) / long).min((last - row) / long);
            if long / has > LONGER || long / pitch > LONGER || column + width > pitch || whole < 2 {
                continue;
            }
            let block = start..start + whole * long;
            let mut touched = 0;
            if let Some(segment) = self.block(&block, has)
                && let Some(rows) = segment.rows.as_mut().filter(|rows| rows.pitch == has)
                && rows.lengthen(long)
            {
                for first in 0..long / pitch {
                    let columns = column + first * pitch..column + first * pitch + width;
                    rows.access(&block, &columns, new, is_before, hits);
                    touched += 1;
                }
                segment.simplify();
                row += whole * long;
            }
            self.touched += touched;
        }
        while row < last {
            self.access(&(row..row + width), new, is_before, hits);
            row += pitch;
        }
        self.merge(range);
    }

    /// Segments and gaps between them, with the pitch of those that consist of rows.
    fn pieces(&mut self, range: Range<u64>) -> Vec<(Range<u64>, Option<u64>)> {
        let mut pieces = Vec::new();
        let mut at = range.start;
        let before = self.segments.range(..=range.start).next_back();
        let before = before.filter(|(_, segment)| segment.end > range.start);
        let inside =
            self.segments.range((Bound::Excluded(range.start), Bound::Excluded(range.end)));
        for (start, segment) in before.into_iter().chain(inside) {
            if at < start {
                pieces.push((at..start, None));
            }
            pieces.push((start..segment.end, segment.rows.as_ref().map(|rows| rows.pitch)));
            at = segment.end;
        }
        if at < range.end {
            pieces.push((at..range.end, None));
        }
        pieces
    }

    /// Makes a range of one segment or one gap a segment of rows.
    fn block(&mut self, range: &Range<u64>, pitch: u64) -> Option<&mut Segment> {
        self.split(range.start);
        self.split(range.end);
        if self.segments.get_mut(range.start).is_none() {
            let rows = Some(Box::new(Rows { pitch, columns: Self::default() }));
            let segment = Segment { end: range.end, rows, ..Segment::default() };
            self.segments.insert(range.start, segment);
        }
        let segment = self.segments.get_mut(range.start)?;
        if segment.end != range.end {
            return None;
        }
        if segment.rows.is_none() {
            let entries = std::mem::take(&mut segment.entries);
            let freed = segment.freed.take();
            let all = Segment { end: pitch, entries, freed, ..Segment::default() };
            let columns = Self { segments: Segments::from_iter([(0, all)]), ..Self::default() };
            segment.rows = Some(Box::new(Rows { pitch, columns }));
        }
        Some(segment)
    }

    /// The accesses to some bytes, each with the bytes of the range that it is about.
    pub(crate) fn entries_in(
        &self,
        range: &Range<u64>,
    ) -> impl Iterator<Item = (Range<u64>, &Entry)> {
        let first =
            self.segments.range(..=range.start).next_back().map_or(range.start, |(start, _)| start);
        let within = |start: u64, end: u64| start.max(range.start)..end.min(range.end);
        self.segments
            .range(first..range.end.max(first))
            .map(move |(start, segment)| (within(start, segment.end), segment))
            .filter(|(shared, _)| !shared.is_empty())
            .flat_map(|(shared, segment)| {
                segment.entries.iter().map(move |entry| (shared.clone(), entry))
            })
    }

    /// Makes a segment that crosses `at` two.
    fn split(&mut self, at: u64) {
        let Some((start, left)) = self.segments.last_before(at) else { return };
        let end = left.end;
        if end <= at {
            return;
        }
        let Some(pitch) = left.rows.as_ref().map(|rows| rows.pitch) else {
            let right = left.copy(end);
            left.end = at;
            self.segments.insert(at, right);
            return;
        };
        let Some(all) = self.segments.remove(start) else { return };
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
            self.segments.insert(range.start, whole.copy(range.end));
            return;
        }
        for (column, segment) in rows.columns.segments.iter() {
            self.segments.insert(range.start + column, segment.copy(range.start + segment.end));
        }
    }

    /// Makes neighbours that are alike one, in a range and at its ends.
    fn merge(&mut self, range: &Range<u64>) {
        let first = self.segments.last_before(range.start).map_or(range.start, |(start, _)| start);
        self.segments.merge(first..=range.end);
    }

    /// The slots of all accesses.
    pub(crate) fn slots(&self, mark: &mut impl FnMut(Slot)) {
        for segment in self.segments.values() {
            segment.entries.iter().for_each(|entry| mark(entry.slot));
            segment.freed.iter().for_each(|freed| mark(freed.slot));
            if let Some(rows) = &segment.rows {
                rows.columns.slots(mark);
            }
        }
    }

    /// Forgets accesses that are before all that may still come.
    pub(crate) fn retire(&mut self, known: &impl Fn(Slot, u64) -> bool) {
        self.end_spans(&(0..u64::MAX));
        let (mut changed, mut freed) = (false, 0);
        self.segments.retain(|segment| {
            if let Some(rows) = &mut segment.rows {
                let before = rows.columns.entries();
                rows.columns.retire(known);
                changed |= rows.columns.entries() != before;
                freed += rows.columns.freed().count();
                let empty = rows.columns.segments.len() == 0;
                segment.simplify();
                return !empty;
            }
            let before = segment.entries.len();
            segment.entries.retain(|entry| !known(entry.slot, entry.time));
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
        self.segments.values().map(|segment| segment.entries.len()).sum()
    }

    /// The numbers of the calls that freed ranges.
    fn freed(&self) -> Box<dyn Iterator<Item = u64> + '_> {
        Box::new(self.segments.values().flat_map(|segment| {
            let rows = segment.rows.iter().flat_map(|rows| rows.columns.freed());
            segment.freed.iter().map(|freed| freed.origin.call.number).chain(rows)
        }))
    }

    fn forget_freed(&mut self, oldest: u64) {
        self.segments.retain(|segment| {
            if let Some(rows) = &mut segment.rows {
                rows.columns.forget_freed(oldest);
                return rows.columns.segments.len() > 0;
            }
            if segment.freed.as_ref().is_some_and(|freed| freed.origin.call.number < oldest) {
                segment.freed = None;
            }
            !segment.entries.is_empty() || segment.freed.is_some()
        });
    }
}

// There is no unsafe code here, and Miri takes minutes for it.
#[cfg(all(test, not(miri)))]
mod tests;
