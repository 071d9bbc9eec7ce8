//! The allocations that reports name.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use crate::op::Call;

/// The freed allocations that are kept for reports of uses after the free.
const FREED: usize = 1024;

/// Memory that one call allocated ([`Op::Allocate`](crate::Op::Allocate)).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Allocation {
    /// The addresses, without the last one.
    pub range: Range<u64>,
    /// The call that allocated it.
    pub call: Arc<Call>,
}

#[derive(Debug, Default)]
pub(crate) struct Allocations {
    /// By their first addresses, and whether they were freed. They do not overlap.
    all: BTreeMap<u64, (Allocation, bool)>,
    /// The first addresses of those that were freed, the oldest first, each with its call's number.
    freed: VecDeque<(u64, u64)>,
    /// Where maps are beside each other, from the first address to the end of the last one.
    joined: BTreeMap<u64, u64>,
}

impl Allocations {
    /// Memory begins, where there is none.
    pub(crate) fn begin(&mut self, range: Range<u64>, call: &Arc<Call>) {
        if !range.is_empty() {
            self.all.insert(range.start, (Allocation { range, call: call.clone() }, false));
        }
    }

    /// The memory is a map: with those before and behind it without a gap it is one.
    pub(crate) fn join(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let Range { mut start, mut end } = range;
        if let Some((&first, _)) =
            self.joined.range(..start).next_back().filter(|of| *of.1 == start)
        {
            start = first;
        }
        if let Some(last) = self.joined.remove(&end) {
            end = last;
        }
        self.joined.insert(start, end);
    }

    /// What is left of joined maps without these bytes.
    fn part(&mut self, range: &Range<u64>) {
        while let Some((&start, &end)) = self.joined.range(..range.end).next_back()
            && end > range.start
            && !range.is_empty()
        {
            self.joined.remove(&start);
            if start < range.start {
                self.joined.insert(start, range.start);
            }
            if end > range.end {
                self.joined.insert(range.end, end);
            }
        }
    }

    /// The memory that an address is in, with the maps that it is joined with.
    pub(crate) fn whole(&self, at: u64) -> Option<(Range<u64>, &Allocation)> {
        let live = self.live(at)?;
        let joined = self.joined.range(..=at).next_back().filter(|(_, end)| at < **end);
        Some((joined.map_or_else(|| live.range.clone(), |(&start, &end)| start..end), live))
    }

    /// The memory is freed. A report may still name it, until other memory takes its place.
    pub(crate) fn free(&mut self, range: &Range<u64>) {
        self.part(range);
        let Some((allocation, freed)) = self.all.get_mut(&range.start) else { return };
        *freed = true;
        self.freed.push_back((range.start, allocation.call.number));
        if self.freed.len() > FREED
            && let Some((start, number)) = self.freed.pop_front()
            && self.all.get(&start).is_some_and(|(oldest, _)| oldest.call.number == number)
        {
            self.all.remove(&start);
        }
    }

    /// The bytes are no longer those of any earlier allocation.
    pub(crate) fn forget(&mut self, range: &Range<u64>) {
        if range.is_empty() {
            return;
        }
        self.part(range);
        while let Some((last, _)) = self.last_before(range.end)
            && last.range.end > range.start
        {
            let start = last.range.start;
            self.all.remove(&start);
        }
    }

    pub(crate) fn around(&self, address: u64) -> Option<Allocation> {
        let (last, _) = self.last_before(address.checked_add(1)?)?;
        last.range.contains(&address).then(|| last.clone())
    }

    /// The same, unless it was freed.
    pub(crate) fn live(&self, address: u64) -> Option<&Allocation> {
        let (last, freed) = self.last_before(address.checked_add(1)?)?;
        (!freed && last.range.contains(&address)).then_some(last)
    }

    fn last_before(&self, end: u64) -> Option<&(Allocation, bool)> {
        self.all.range(..end).next_back().map(|(_, last)| last)
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;
    use std::sync::Arc;

    use super::{Allocations, FREED};
    use crate::op::{Call, ThreadId};

    /// One byte of an allocation is enough, and none of its neighbours ends with it.
    #[test]
    fn memory_ends_where_other_memory_begins() {
        let left = |new: Range<u64>| {
            let mut all = Allocations::default();
            let call = |number| Arc::new(Call::new("cuMemAlloc_v2", number, ThreadId(1)));
            for (number, start) in [(1, 0x100), (2, 0x200), (3, 0x300)] {
                all.begin(start..start + 0x100, &call(number));
            }
            all.forget(&new);
            [0x100, 0x200, 0x300].map(|at| all.around(at).is_some())
        };
        let others = [true, false, true];
        for new in [0x200..0x201, 0x280..0x281, 0x2ff..0x300, 0x200..0x300, 0x201..0x2ff] {
            assert_eq!(left(new.clone()), others, "{new:x?}");
        }
        assert_eq!(left(0x1ff..0x300), [false, false, true]);
        assert_eq!(left(0x2ff..0x301), [true, false, false]);
        assert_eq!(left(0x1ff..0x301), [false; 3]);
        assert_eq!([left(0..0x100), left(0x400..0x500)], [[true; 3]; 2]);
        // An empty range is in no allocation, also within one.
        assert_eq!([left(0x200..0x200), left(0x280..0x280)], [[true; 3]; 2]);
    }

    #[test]
    fn memory_has_one_allocation_at_a_time() {
        let mut all = Allocations::default();
        let call = |number| Arc::new(Call::new("cuMemAlloc_v2", number, ThreadId(1)));
        all.begin(0x100..0x200, &call(1));
        all.begin(0x200..0x280, &call(2));
        let number = |all: &Allocations, at| all.around(at).map(|found| found.call.number);
        assert_eq!(
            [0xff, 0x100, 0x1ff, 0x200, 0x280].map(|at| number(&all, at)),
            [None, Some(1), Some(1), Some(2), None]
        );
        all.begin(0x200..0x200, &call(3));
        assert_eq!(number(&all, 0x200), Some(2), "no bytes take nobody's place");
        // It is named after its end, until something else is there.
        all.free(&(0x100..0x200));
        assert_eq!(number(&all, 0x180), Some(1));
        all.forget(&(0x1f0..0x210));
        assert_eq!([0x180, 0x220].map(|at| number(&all, at)), [None, None]);
        // Those that are freed do not pile up, and a new one in an old one's place stays.
        for round in 0..2 * FREED as u64 {
            all.forget(&(0x1000 * round..0x1000 * round + 16));
            all.begin(0x1000 * round..0x1000 * round + 16, &call(round));
            all.free(&(0x1000 * round..0x1000 * round + 16));
        }
        assert_eq!((all.all.len(), all.freed.len()), (FREED, FREED));
    }
}
