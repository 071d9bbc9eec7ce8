//! The accesses to each byte: a map of ranges, split and merged as accesses come.

mod ahead;
mod entries;
mod rows;
mod segment;
mod segments;
// There is no unsafe code here, and Miri takes minutes for it.
#[cfg(all(test, not(miri)))]
mod tests;

use std::ops::Range;

use crate::clock::{Clock, Slot};
use crate::op::{AccessKind, Stride};
use crate::shadow::segments::Segments;

pub(crate) use entries::{Check, Entry, Hit, Origin};

#[derive(Debug, Default)]
pub(crate) struct Shadow {
    segments: Segments,
    /// Ranges of many segments that are read as a whole, again and again. They never overlap.
    spans: Vec<Span>,
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

impl Span {
    fn overlaps(&self, range: &Range<u64>) -> bool {
        self.range.start < range.end && range.start < self.range.end
    }
}

/// Whether a span may stand for this access. A launch's read stands for no other one.
fn may_be_of_span(new: &Entry) -> bool {
    (new.kind, new.of_launch) == (AccessKind::Read, false)
}

/// How many spans there are at most, and how many segments one has at least.
const SPANS: usize = 16;
const SPAN: usize = 3;
/// How many parts of a span may be touched before it ends.
const PARTS: usize = 16;

impl Shadow {
    pub(crate) fn touched(&self) -> u64 {
        self.segments.touched
    }

    pub(crate) fn len(&self) -> usize {
        self.segments.len()
    }

    pub(crate) fn access(
        &mut self,
        range: &Range<u64>,
        check: &mut Check<'_, impl Fn(Slot, u64) -> bool>,
    ) {
        if range.is_empty() {
            return;
        }
        if !self.spans.is_empty() && self.read_span(range, check) {
            return;
        }
        let before = check.hits.len();
        let count = self.segments.access(range, check);
        if count >= SPAN && check.hits.len() == before && may_be_of_span(check.new) {
            self.add_span(range);
        }
    }

    /// If the range is a span, and the new access a read that is after all accesses of it, only the
    /// parts need to be touched that something else has touched. Spans that it overlaps otherwise
    /// have one part more.
    fn read_span(
        &mut self,
        range: &Range<u64>,
        check: &mut Check<'_, impl Fn(Slot, u64) -> bool>,
    ) -> bool {
        let same = self.spans.iter().position(|span| span.range == *range);
        let same = same.filter(|&at| {
            may_be_of_span(check.new)
                && self.spans.get(at).is_some_and(|span| span.below.all(check.is_before))
        });
        let Some(mut span) = same.map(|at| self.spans.remove(at)) else {
            self.touch_spans(range);
            return false;
        };
        self.segments.touched += 1;
        let (before, mut all_before) = (check.hits.len(), true);
        for part in &span.touched {
            self.segments.split(part.start);
            self.segments.split(part.end);
            for (_, segment) in self.segments.range(part.clone()) {
                all_before &= segment.rows.is_none() && segment.freed.is_none();
                all_before &= segment.entries.iter().all(|entry| check.is_after(entry));
            }
            self.segments.access(part, check);
        }
        span.reads.retain(|read| !check.is_after(read));
        if all_before && span.reads.is_empty() && check.hits.len() == before {
            for (_, segment) in
                span.touched.drain(..).flat_map(|part| self.segments.overlapping(&part))
            {
                for entry in segment.entries.iter().filter(|entry| !entry.same(check.new)) {
                    span.below.raise(entry.slot, entry.time);
                }
            }
        }
        span.reads.push(check.new.clone());
        self.spans.push(span);
        true
    }

    /// Something touches a part of spans. The segments there get the reads.
    fn touch_spans(&mut self, range: &Range<u64>) {
        if !self.spans.iter().any(|span| span.overlaps(range)) {
            return;
        }
        for mut span in self.spans.extract_if(.., |span| span.overlaps(range)).collect::<Vec<_>>() {
            let part = range.start.max(span.range.start)..range.end.min(span.range.end);
            if part == span.range || span.touched.len() == PARTS {
                self.end_span(span);
                continue;
            }
            if span.touched.iter().any(|old| old.start <= part.start && part.end <= old.end) {
                self.spans.push(span);
                continue;
            }
            // The segments of parts that were touched before have the reads already.
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
        self.segments.split(range.start);
        self.segments.split(range.end);
        let mut touched = 0;
        self.segments.for_each(range, |_, segment| {
            touched += 1;
            segment.entries.retain(|entry| !AccessKind::Read.replaces(entry.kind));
            reads.iter().for_each(|read| segment.entries.push(read.clone()));
        });
        self.segments.touched += touched;
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

    /// A part of another span is none: each would take the place of the other's reads.
    fn add_span(&mut self, range: &Range<u64>) {
        if self.spans.iter().any(|span| span.overlaps(range)) {
            return;
        }
        if self.spans.len() == SPANS {
            let oldest = self.spans.first().map_or(0..0, |span| span.range.clone());
            self.end_spans(&oldest);
        }
        let mut below = Clock::default();
        for (_, segment) in self.segments.overlapping(range) {
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
        for span in self.spans.extract_if(.., |span| span.overlaps(range)).collect::<Vec<_>>() {
            self.end_span(span);
        }
    }

    /// The same for rows, as [`Segments::access_rows`] says.
    pub(crate) fn access_rows(
        &mut self,
        range: &Range<u64>,
        stride: Stride,
        check: &mut Check<'_, impl Fn(Slot, u64) -> bool>,
    ) {
        self.end_spans(range);
        self.segments.access_rows(range, stride, check);
    }

    /// The accesses to some bytes, each with the bytes of the range that it is about.
    pub(crate) fn entries_in(
        &self,
        range: &Range<u64>,
    ) -> impl Iterator<Item = (Range<u64>, &Entry)> {
        self.segments.overlapping(range).flat_map(|(start, segment)| {
            let shared = start.max(range.start)..segment.end.min(range.end);
            segment.entries.iter().map(move |entry| (shared.clone(), entry))
        })
    }

    /// The slots of all accesses that the segments have: of spans, after [`retire`](Self::retire).
    pub(crate) fn slots(&self, mark: &mut impl FnMut(Slot)) {
        self.segments.slots(mark);
    }

    /// Forgets accesses that are before all that may still come.
    pub(crate) fn retire(&mut self, is_over: &impl Fn(Slot, u64) -> bool) {
        self.end_spans(&(0..u64::MAX));
        self.segments.retire(is_over);
    }
}
