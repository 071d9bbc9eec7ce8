//! A range of bytes with the same accesses, and what a new access does to it.

use crate::clock::Slot;
use crate::op::AccessKind;
use crate::shadow::entries::{Check, Entries, Entry, LAUNCHES};
use crate::shadow::rows::Rows;

#[derive(Debug, Default)]
pub(super) struct Segment {
    pub(super) start: u64,
    pub(super) end: u64,
    /// The place of the segment that was accessed after this one, and likely is again: a kernel
    /// gets the same addresses at each launch.
    pub(super) next: usize,
    /// Those that no later access has replaced. Two writes are among them only if they race.
    pub(super) entries: Entries,
    /// The access that freed these bytes. Then nothing else is kept.
    pub(super) freed: Option<Box<Entry>>,
    /// If the segment consists of rows that are alike: the accesses of each row. Then the two
    /// fields above are empty.
    pub(super) rows: Option<Box<Rows>>,
}

/// The number of some accesses, and the place of the oldest one.
#[derive(Default)]
struct Places {
    count: usize,
    first: usize,
}

impl Places {
    fn add(&mut self, at: usize) {
        if self.count == 0 {
            self.first = at;
        }
        self.count += 1;
    }
}

impl Segment {
    pub(super) fn same(&self, other: &Self) -> bool {
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
    pub(super) fn replace(&mut self, check: &Check<'_, impl Fn(Slot, u64) -> bool>) -> bool {
        let Some(earlier) = self.entries.only() else { return false };
        let new = check.new;
        let replaced =
            !matches!(new.kind, AccessKind::Allocate | AccessKind::Forget | AccessKind::Free)
                && check.is_after(earlier)
                && earlier.is_replaced(new);
        if replaced {
            *earlier = new.clone();
        }
        replaced
    }

    /// The same accesses, up to another end.
    pub(super) fn copy(&self, end: u64) -> Self {
        let rows = self.rows.as_ref().map(|rows| {
            let columns = rows.columns.iter();
            let columns = columns.map(|(start, segment)| (start, segment.copy(segment.end)));
            Box::new(Rows { pitch: rows.pitch, columns: columns.collect() })
        });
        let (entries, freed) = (self.entries.clone(), self.freed.clone());
        Self { end, entries, freed, rows, ..Self::default() }
    }

    /// Rows of which all columns are alike are no rows.
    pub(super) fn simplify(&mut self) {
        let Some(rows) = &mut self.rows else { return };
        if rows.columns.len() > 1 {
            return;
        }
        let pitch = rows.pitch;
        if let Some(all) = rows.columns.get_mut(0)
            && all.end == pitch
        {
            self.entries = std::mem::take(&mut all.entries);
            self.freed = all.freed.take();
            self.rows = None;
        }
    }

    /// The new access touches all of these bytes.
    pub(super) fn touch(&mut self, check: &mut Check<'_, impl Fn(Slot, u64) -> bool>) {
        let (new, range) = (check.new, self.start..self.end);
        if let Some(rows) = &mut self.rows {
            let columns = 0..rows.pitch;
            rows.access(&range, &columns, check);
            self.simplify();
            return;
        }
        if matches!(new.kind, AccessKind::Allocate | AccessKind::Forget) {
            self.freed = None;
            self.entries.clear();
            if new.kind == AccessKind::Allocate {
                self.entries.push(new.clone());
            }
            return;
        }
        if let Some(freed) = &self.freed {
            check.hit(freed, check.is_after(freed), range);
            return;
        }
        // The places of those that go, as the new one stands for them, and of the launches before it.
        let (mut gone, mut launches) = (Places::default(), Places::default());
        let mut last_goes = false;
        let mut at = 0;
        for piece in self.entries.pieces() {
            for earlier in piece {
                let before = check.is_after(earlier);
                if !before && new.kind.conflicts(earlier.kind) {
                    check.hit(earlier, false, range.clone());
                }
                last_goes = before && earlier.is_replaced(new);
                if last_goes {
                    gone.add(at);
                } else if before && earlier.of_launch {
                    launches.add(at);
                }
                at += 1;
            }
        }
        // Mostly none does, or just the last one, and nothing is moved.
        if gone.count == 1 && last_goes && new.kind != AccessKind::Free && launches.count < LAUNCHES
        {
            self.entries.last_mut().into_iter().for_each(|last| *last = new.clone());
            return;
        }
        let excess = match new.of_launch {
            true => (launches.count + 1).saturating_sub(LAUNCHES),
            false => 0,
        };
        match (gone.count, excess) {
            (0, 0) => {}
            (1, 0) => self.entries.remove(gone.first),
            (0, 1) => self.entries.remove(launches.first),
            _ => {
                let mut excess = excess;
                self.entries.retain(|earlier| {
                    if !check.is_after(earlier) {
                        return true;
                    }
                    let is_oldest = excess > 0 && earlier.of_launch && !earlier.is_replaced(new);
                    excess -= usize::from(is_oldest);
                    !is_oldest && !earlier.is_replaced(new)
                });
            }
        }
        if new.kind == AccessKind::Free {
            self.entries.clear();
            self.freed = Some(Box::new(new.clone()));
        } else {
            self.entries.push(new.clone());
        }
    }
}
