//! Vector clocks: sparse, sorted by slot, and shared until one of them changes.

use std::sync::Arc;

/// The place of one agent in all clocks. Agents that are gone give theirs to later ones.
pub(crate) type Slot = u32;

/// For each agent, how many of its operations are known to be over. An agent without an entry is at
/// zero.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clock(Option<Arc<Vec<(Slot, u64)>>>);

impl Clock {
    pub(crate) fn entries(&self) -> &[(Slot, u64)] {
        self.0.as_deref().map_or(&[], Vec::as_slice)
    }

    pub(crate) fn get(&self, slot: Slot) -> u64 {
        let entries = self.entries();
        entries
            .binary_search_by_key(&slot, |entry| entry.0)
            .ok()
            .and_then(|at| entries.get(at))
            .map_or(0, |entry| entry.1)
    }

    /// Raises the entry of a slot.
    pub(crate) fn raise(&mut self, slot: Slot, time: u64) {
        let entries = Arc::make_mut(self.0.get_or_insert_default());
        match entries.binary_search_by_key(&slot, |entry| entry.0) {
            Ok(at) => {
                if let Some(entry) = entries.get_mut(at) {
                    entry.1 = entry.1.max(time);
                }
            }
            Err(at) => entries.insert(at, (slot, time)),
        }
    }

    /// Whether it is the very same clock, at the price of a comparison of pointers.
    pub(crate) fn same(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (None, None) => true,
            _ => false,
        }
    }

    /// Whether all that `other` knows is known here, too.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        if self.same(other) {
            return true;
        }
        let mut mine = self.entries().iter().peekable();
        other.entries().iter().all(|&(slot, time)| {
            while mine.next_if(|entry| entry.0 < slot).is_some() {}
            mine.peek().is_some_and(|entry| entry.0 == slot && entry.1 >= time)
        })
    }

    /// Learns all that `other` knows.
    pub(crate) fn join(&mut self, other: &Self) {
        // Most joins bring nothing new, and then nothing is copied.
        if self.covers(other) {
            return;
        }
        if self.0.is_none() {
            self.0.clone_from(&other.0);
            return;
        }
        let (mut left, mut right) =
            (self.entries().iter().copied().peekable(), other.entries().iter().copied().peekable());
        let mut joined = Vec::with_capacity(self.entries().len().max(other.entries().len()) + 2);
        loop {
            let next = match (left.peek(), right.peek()) {
                (Some(one), Some(two)) if one.0 == two.0 => {
                    let both = (one.0, one.1.max(two.1));
                    left.next();
                    right.next();
                    both
                }
                (Some(one), Some(two)) if one.0 > two.0 => {
                    let entry = *two;
                    right.next();
                    entry
                }
                (Some(one), _) => {
                    let entry = *one;
                    left.next();
                    entry
                }
                (None, Some(two)) => {
                    let entry = *two;
                    right.next();
                    entry
                }
                (None, None) => break,
            };
            joined.push(next);
        }
        self.0 = Some(Arc::new(joined));
    }

    /// What both know.
    pub(crate) fn meet(&self, other: &Self) -> Self {
        if self.same(other) {
            return self.clone();
        }
        let both: Vec<_> = self
            .entries()
            .iter()
            .map(|&(slot, time)| (slot, time.min(other.get(slot))))
            .filter(|entry| entry.1 > 0)
            .collect();
        if both.is_empty() { Self(None) } else { Self(Some(Arc::new(both))) }
    }

    /// Forgets what everybody knows.
    pub(crate) fn prune(&mut self, floor: &Self) {
        let known = |&(slot, time): &(Slot, u64)| time <= floor.get(slot);
        if !self.entries().iter().any(known) {
            return;
        }
        let rest: Vec<_> = self.entries().iter().filter(|entry| !known(entry)).copied().collect();
        self.0 = if rest.is_empty() { None } else { Some(Arc::new(rest)) };
    }
}

#[cfg(test)]
mod tests {
    use super::Clock;

    fn of(entries: &[(u32, u64)]) -> Clock {
        let mut clock = Clock::default();
        for &(slot, time) in entries {
            clock.raise(slot, time);
        }
        clock
    }

    #[test]
    fn joins_meets_and_covers() {
        let (a, b) = (of(&[(1, 5), (3, 2), (7, 1)]), of(&[(0, 1), (3, 4), (9, 9)]));
        let mut joined = a.clone();
        joined.join(&b);
        assert_eq!(joined.entries(), [(0, 1), (1, 5), (3, 4), (7, 1), (9, 9)]);
        assert_eq!(a.meet(&b).entries(), [(3, 2)]);
        assert!(
            joined.covers(&a) && joined.covers(&b) && !a.covers(&b) && a.covers(&Clock::default())
        );
        assert_eq!(a.entries(), [(1, 5), (3, 2), (7, 1)], "a copy changes alone");
        joined.prune(&a);
        assert_eq!(joined.entries(), [(0, 1), (3, 4), (9, 9)]);
    }
}
