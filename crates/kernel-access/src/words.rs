//! Sets of the words of a kernel's parameters.

use std::borrow::Borrow;

/// Stands among [`Words`] for what memory contains.
pub(crate) const MEMORY: u32 = u32::MAX;

/// Stands for all words that the kernel stores anywhere, which are known at the end of an evaluation.
pub(crate) const STORED: u32 = u32::MAX - 1;

/// Stands for the address that all parameters have together: any of them may be read by it.
pub(crate) const ADDRESS: u32 = u32::MAX - 2;

/// Parameters by the offsets of their words of eight bytes, [`MEMORY`], [`STORED`] and [`ADDRESS`]. A bit for each:
/// an evaluation joins millions of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Words {
    memory: bool,
    stored: bool,
    address: bool,
    /// Of the first 512 bytes; few kernels have more.
    first: u64,
    /// Of those behind, without zeros at the end.
    more: Vec<u64>,
}

impl Words {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn insert(&mut self, offset: u32) {
        if offset == MEMORY {
            self.memory = true;
            return;
        }
        if offset == STORED {
            self.stored = true;
            return;
        }
        if offset == ADDRESS {
            self.address = true;
            return;
        }
        let (at, bit) = (offset as usize / 512, 1 << (offset / 8 % 64));
        let Some(at) = at.checked_sub(1) else {
            self.first |= bit;
            return;
        };
        if self.more.len() <= at {
            self.more.resize(at + 1, 0);
        }
        if let Some(bits) = self.more.get_mut(at) {
            *bits |= bit;
        }
    }

    pub(crate) fn extend(&mut self, other: impl Borrow<Self>) {
        let other = other.borrow();
        self.memory |= other.memory;
        self.stored |= other.stored;
        self.address |= other.address;
        self.first |= other.first;
        if self.more.len() < other.more.len() {
            self.more.resize(other.more.len(), 0);
        }
        for (own, bits) in self.more.iter_mut().zip(&other.more) {
            *own |= bits;
        }
    }

    pub(crate) fn is_subset(&self, other: &Self) -> bool {
        let inside = |(own, bits): (&u64, &u64)| own & !bits == 0;
        self.memory <= other.memory
            && self.stored <= other.stored
            && self.address <= other.address
            && self.more.len() <= other.more.len()
            && inside((&self.first, &other.first))
            && self.more.iter().zip(&other.more).all(inside)
    }

    /// Whether the parameters' address is among them.
    pub(crate) fn has_address(&self) -> bool {
        self.address
    }

    pub(crate) fn forget_address(&mut self) {
        self.address = false;
    }

    pub(crate) fn is_empty(&self) -> bool {
        !(self.memory || self.stored || self.address) && self.first == 0 && self.more.is_empty()
    }

    /// With these words in the place of [`STORED`].
    pub(crate) fn resolve(&mut self, stored: &Self) {
        if self.stored {
            self.extend(stored);
            self.stored = false;
        }
    }

    /// In the order of the offsets.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> {
        let all = std::iter::once(&self.first).chain(&self.more);
        let offsets = all.zip(0..).flat_map(|(&bits, at)| {
            (0..64).filter(move |bit| bits >> bit & 1 != 0).map(move |bit| at * 512 + bit * 8)
        });
        let others = [(self.address, ADDRESS), (self.stored, STORED), (self.memory, MEMORY)];
        offsets.chain(others.into_iter().filter_map(|(has, one)| has.then_some(one)))
    }
}

impl<const COUNT: usize> From<[u32; COUNT]> for Words {
    fn from(offsets: [u32; COUNT]) -> Self {
        offsets.into_iter().collect()
    }
}

impl FromIterator<u32> for Words {
    fn from_iter<I: IntoIterator<Item = u32>>(offsets: I) -> Self {
        let mut words = Self::new();
        for offset in offsets {
            words.insert(offset);
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// It is a set of numbers, whatever is done.
    #[test]
    fn sets_of_words_are_sets() {
        let mut state = 5_u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        for _ in 0..2000 {
            let mut sets = [BTreeSet::new(), BTreeSet::new()];
            let mut words = [Words::new(), Words::new()];
            for _ in 0..random(6) {
                let which = random(2) as usize;
                let most = [64, 130, 513][random(3) as usize];
                let offset = match random(9) {
                    0 => MEMORY,
                    1 => STORED,
                    2 => ADDRESS,
                    _ => random(most) as u32 * 8,
                };
                sets[which].insert(offset);
                words[which].insert(offset);
            }
            let [one, two] = &sets;
            let [first, second] = &words;
            assert_eq!(first.iter().collect::<Vec<_>>(), one.iter().copied().collect::<Vec<_>>());
            assert_eq!(first == second, one == two);
            assert_eq!(first.is_subset(second), one.is_subset(two));
            assert_eq!(first.is_empty(), one.is_empty());
            let mut both = first.clone();
            both.extend(second);
            assert_eq!(both, one.union(two).copied().collect());
            assert!(first.is_subset(&both) && second.is_subset(&both));
            let mut resolved = first.clone();
            resolved.resolve(second);
            let mut expected = one.clone();
            if expected.remove(&STORED) {
                expected.extend(two.iter().filter(|&&offset| offset != STORED));
            }
            assert_eq!(resolved, expected.into_iter().collect());
        }
    }
}
