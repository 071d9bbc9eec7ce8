//! Sets of bytes, by their addresses.

use std::ops::Range;

/// Ranges in order that do not touch each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Set(Vec<Range<u64>>);

impl FromIterator<Range<u64>> for Set {
    fn from_iter<T: IntoIterator<Item = Range<u64>>>(ranges: T) -> Self {
        let mut all: Vec<Range<u64>> = ranges.into_iter().filter(|one| !one.is_empty()).collect();
        all.sort_unstable_by_key(|one| one.start);
        let mut merged: Vec<Range<u64>> = Vec::new();
        for one in all {
            match merged.last_mut() {
                Some(last) if one.start <= last.end => last.end = last.end.max(one.end),
                _ => merged.push(one),
            }
        }
        Self(merged)
    }
}

impl Set {
    pub fn ranges(&self) -> &[Range<u64>] {
        &self.0
    }

    pub fn bytes(&self) -> u64 {
        self.0.iter().map(|one| one.end - one.start).sum()
    }

    /// What is in `range` and not in this set.
    pub fn missing(&self, range: &Range<u64>) -> Vec<Range<u64>> {
        let mut at = range.start;
        let mut missing = Vec::new();
        let first = self.0.partition_point(|one| one.end <= range.start);
        for one in self.0.get(first..).unwrap_or_default() {
            if one.start >= range.end {
                break;
            }
            if at < one.start {
                missing.push(at..one.start);
            }
            at = at.max(one.end);
        }
        if at < range.end {
            missing.push(at..range.end);
        }
        missing
    }

    /// What is in this set and not in the other.
    pub fn without(&self, other: &Self) -> Self {
        self.0.iter().flat_map(|one| other.missing(one)).collect()
    }

    /// What is in both.
    pub fn and(&self, other: &Self) -> Self {
        self.without(&self.without(other))
    }

    pub fn contains(&self, range: &Range<u64>) -> bool {
        self.missing(range).is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_merged_and_subtracted() {
        let set: Set = [10..20, 40..50, 18..30, 60..60].into_iter().collect();
        assert_eq!(set.ranges(), [10..30, 40..50]);
        assert_eq!(set.bytes(), 30);
        assert_eq!(set.missing(&(0..100)), [0..10, 30..40, 50..100]);
        assert_eq!(set.missing(&(12..55)), [30..40, 50..55]);
        assert!(set.contains(&(10..30)) && !set.contains(&(10..31)) && set.contains(&(44..44)));
        let other: Set = [0..12, 25..45].into_iter().collect();
        assert_eq!(set.without(&other).ranges(), [12..25, 45..50]);
        assert_eq!(set.and(&other).ranges(), [10..12, 25..30, 40..45]);
    }
}
