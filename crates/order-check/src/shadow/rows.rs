//! Rows that are alike: a copy of a rectangle takes as long as one of a line.

use std::ops::Range;

use crate::clock::Slot;
use crate::op::Stride;
use crate::shadow::entries::{Check, Hit};
use crate::shadow::segment::Segment;
use crate::shadow::segments::Segments;

/// How many times as long the rows of a segment may become, so that rows of another pitch fit into
/// them, and how many columns they may have then.
const LONGER: u64 = 16;
pub(super) const COLUMNS: usize = 256;

/// Whole rows, of which each has the same accesses in the same columns.
#[derive(Debug)]
pub(super) struct Rows {
    pub(super) pitch: u64,
    /// The accesses of a row, whose first byte is at 0.
    pub(super) columns: Segments,
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
    pub(super) fn lengthen(&mut self, pitch: u64) -> bool {
        let times = pitch / self.pitch;
        if times > 1 {
            if self.columns.len() * times as usize > COLUMNS {
                return false;
            }
            let mut columns = Segments::default();
            for shift in (0..times).map(|time| time * self.pitch) {
                for (start, segment) in self.columns.iter() {
                    columns.insert(start + shift, segment.copy(segment.end + shift));
                }
            }
            self.columns = columns;
            self.columns.merge(&(0..pitch));
            self.pitch = pitch;
        }
        true
    }

    /// The new access touches these columns of all rows of a segment.
    pub(super) fn access(
        &mut self,
        segment: &Range<u64>,
        columns: &Range<u64>,
        check: &mut Check<'_, impl Fn(Slot, u64) -> bool>,
    ) {
        let mut found = Vec::new();
        self.columns.access(columns, &mut Check { hits: &mut found, ..*check });
        for Hit { earlier, ordered, ranges } in found {
            let mut row = segment.start;
            while row < segment.end {
                for columns in &ranges {
                    check.hit(&earlier, ordered, row + columns.start..row + columns.end);
                }
                row += self.pitch;
            }
        }
    }

    pub(super) fn same(&self, other: &Self) -> bool {
        let (mine, others) = (&self.columns, &other.columns);
        self.pitch == other.pitch
            && mine.len() == others.len()
            && mine.iter().zip(others.iter()).all(|(one, other)| {
                one.0 == other.0 && one.1.end == other.1.end && one.1.same(other.1)
            })
    }
}

impl Segments {
    /// The new access touches rows: the first one has `width` bytes from the start of `range` on,
    /// and the last one ends where the range ends.
    ///
    /// It takes as long as the number of segments there, not of the rows.
    pub(super) fn access_rows(
        &mut self,
        range: &Range<u64>,
        Stride { width, pitch }: Stride,
        check: &mut Check<'_, impl Fn(Slot, u64) -> bool>,
    ) {
        // The bytes between the rows are the others', and those after the last row may be anything.
        let last = range.end - width;
        self.access(&(last..range.end), check);
        let mut row = range.start;
        for (piece, rows) in self.pieces(range.start..last) {
            self.touched += 1;
            while row < piece.start {
                self.access(&(row..row + width), check);
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
                    rows.access(&block, &columns, check);
                    touched += 1;
                }
                segment.simplify();
                row += whole * long;
            }
            self.touched += touched;
        }
        while row < last {
            self.access(&(row..row + width), check);
            row += pitch;
        }
        self.merge(range);
    }

    /// Segments and gaps between them, with the pitch of those that consist of rows.
    fn pieces(&self, range: Range<u64>) -> Vec<(Range<u64>, Option<u64>)> {
        let mut pieces = Vec::new();
        let mut at = range.start;
        for (start, segment) in self.overlapping(&range) {
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
        if self.get_mut(range.start).is_none() {
            let rows = Some(Box::new(Rows { pitch, columns: Self::default() }));
            let segment = Segment { end: range.end, rows, ..Segment::default() };
            self.insert(range.start, segment);
        }
        let segment = self.get_mut(range.start)?;
        if segment.end != range.end {
            return None;
        }
        if segment.rows.is_none() {
            let entries = std::mem::take(&mut segment.entries);
            let freed = segment.freed.take();
            let all = Segment { end: pitch, entries, freed, ..Segment::default() };
            let columns = Self::from_iter([(0, all)]);
            segment.rows = Some(Box::new(Rows { pitch, columns }));
        }
        Some(segment)
    }
}
