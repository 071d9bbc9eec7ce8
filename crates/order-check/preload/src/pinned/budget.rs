//! The bounds on what the class may cost.

use std::collections::HashMap;

/// How often a second a page may be protected, at most.
pub(crate) const TIMES: u32 = 1000;
/// How many pages may be protected in a second, at most: one GiB, which takes about 20 ms.
pub(crate) const PAGES: usize = 1 << 18;
/// How many accesses in gaps may fault in a second, at most: they take some 30 ms.
pub(crate) const GAPS: u64 = 1000;

/// What was protected in this second.
#[derive(Default)]
pub(crate) struct Budget {
    second: u64,
    pages: usize,
    times: HashMap<usize, u32>,
    /// The last second with gaps, and how many accesses there had been before it.
    gaps: Option<(u64, u64)>,
    /// How often something was not protected, for each bound.
    pub(crate) refused: [u64; 3],
}

impl Budget {
    /// Whether some pages may be protected, of which this is the first one.
    pub(crate) fn allows(&mut self, second: u64, first: usize, pages: usize) -> bool {
        if self.second != second {
            (self.second, self.pages) = (second, 0);
            self.times.clear();
        }
        let times = self.times.entry(first).or_default();
        if *times >= TIMES {
            self.refused[0] += 1;
            return false;
        }
        if self.pages + pages > PAGES {
            self.refused[1] += 1;
            return false;
        }
        *times += 1;
        self.pages += pages;
        true
    }
}

impl Budget {
    /// Whether something with gaps may be protected, when there have been so many accesses there.
    pub(crate) fn allows_gaps(&mut self, second: u64, accesses: u64) -> bool {
        let before = match self.gaps {
            Some((own, before)) if own == second => before,
            _ => self.gaps.insert((second, accesses)).1,
        };
        let allows = accesses.saturating_sub(before) < GAPS;
        self.refused[2] += u64::from(!allows);
        allows
    }
}

#[cfg(test)]
mod tests {
    use super::{Budget, GAPS, PAGES, TIMES};

    #[test]
    fn a_page_is_protected_so_often_in_a_second() {
        let mut budget = Budget::default();
        let allowed = |budget: &mut Budget, second, first| {
            (0..TIMES + 5).filter(|_| budget.allows(second, first, 1)).count()
        };
        assert_eq!(allowed(&mut budget, 7, 0x1000), TIMES as usize);
        assert_eq!(allowed(&mut budget, 7, 0x2000), TIMES as usize, "another page");
        assert_eq!(allowed(&mut budget, 8, 0x1000), TIMES as usize, "another second");
        assert_eq!(budget.refused, [15, 0, 0]);
    }

    #[test]
    fn so_many_pages_are_protected_in_a_second() {
        let mut budget = Budget::default();
        assert!(budget.allows(1, 0, PAGES - 1));
        assert!(!budget.allows(1, 0x1000, 2));
        assert!(budget.allows(1, 0x1000, 1));
        assert!(budget.allows(2, 0x1000, 2));
        assert_eq!(budget.refused, [0, 1, 0]);
    }

    #[test]
    fn so_many_accesses_in_gaps_may_fault_in_a_second() {
        let mut budget = Budget::default();
        assert!(budget.allows_gaps(3, 50) && budget.allows_gaps(3, 49 + GAPS));
        assert!(!budget.allows_gaps(3, 50 + GAPS));
        assert!(budget.allows_gaps(4, 50 + GAPS) && !budget.allows_gaps(4, 50 + 2 * GAPS));
        assert_eq!(budget.refused, [0, 0, 2]);
    }
}
