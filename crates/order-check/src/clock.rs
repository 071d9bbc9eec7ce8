//! Vector clocks: trees with one place for each slot, whose equal parts are shared.
//!
//! # Why a slot may be used again
//!
//! An agent has a slot, and each of its operations has a time there, one more than the one before.
//! An access at time *t* in slot *s* happens before an operation with clock *C* if `C[s] >= t`, or
//! if the floor, which all that may still come is after, has `floor[s] >= t`. When an agent *F* is
//! gone, another one, *N*, may get its slot. *N* goes on counting at the last time *f* of *F*.
//! `Slots::reuse` gives the slot away only if
//!
//! 1. all work of *F* is over: no operation of *F* will get a time any more, and
//! 2. no kept access is one of *F*, or the floor has `floor[s] >= f`.
//!
//! Then each answer is the one that a new slot would have given:
//!
//! * *An access of N.* It has a time `t > f`. By 1, whatever a clock learned of *F* is at most *f*.
//!   So `C[s] >= t` only if *C* has learned it from *N*: what knows *F* alone is not taken to know
//!   *N*. No race of *N* is hidden.
//! * *An access of F, at `t <= f`.* *N* has `C[s] >= f` from its first operation on, and so would
//!   count as after it without any order. By 2, either no such access is kept and nobody asks, or
//!   the floor has `floor[s] >= f >= t`, and whatever comes is after it indeed. No race with *F* is
//!   hidden.
//! * *No race is invented.* Times of a slot only grow, and so do clocks: what was before an
//!   operation stays before it.
//!
//! A comparison of two whole clocks is not one of an access, and 2 does not cover it: a clock that
//! knows *N* has a time above *f*, whether it knows all of *F* or nothing. `Slots::covers` sees
//! that by the last time of the former owner, and gives the answer that its caller takes for safe.
//!
//! What is not an access but names a slot obeys the same: the values that streams write are looked
//! at as accesses are (2), the copies to them that a slot has made are forgotten with its owner, and
//! the calls that reports name as recent ones are those of the new owner only.

use std::sync::Arc;

/// The place of one agent in all clocks. Agents that are gone give theirs to later ones.
pub(crate) type Slot = u32;

/// The children of a node, or the slots of a leaf.
const WIDTH: usize = 16;
const BITS: u32 = WIDTH.ilog2();

#[derive(Clone, Debug)]
enum Node {
    Leaf([u64; WIDTH]),
    Inner([Option<Arc<Node>>; WIDTH]),
}

/// The part of a slot that selects a child, `height` levels above the leaves.
fn digit(slot: Slot, height: u32) -> usize {
    (slot.checked_shr(height * BITS).unwrap_or(0)) as usize % WIDTH
}

impl Node {
    fn get(&self, slot: Slot, height: u32) -> u64 {
        match self {
            Self::Leaf(times) => times.get(digit(slot, 0)).copied().unwrap_or(0),
            Self::Inner(children) => children
                .get(digit(slot, height))
                .and_then(Option::as_deref)
                .map_or(0, |child| child.get(slot, height.saturating_sub(1))),
        }
    }

    fn raise(this: &mut Option<Arc<Self>>, height: u32, slot: Slot, time: u64) {
        let node = this.get_or_insert_with(|| {
            Arc::new(match height {
                0 => Self::Leaf([0; WIDTH]),
                _ => Self::Inner(Default::default()),
            })
        });
        match Arc::make_mut(node) {
            Self::Leaf(times) => {
                if let Some(entry) = times.get_mut(digit(slot, 0)) {
                    *entry = time.max(*entry);
                }
            }
            Self::Inner(children) => {
                if let Some(child) = children.get_mut(digit(slot, height)) {
                    Self::raise(child, height.saturating_sub(1), slot, time);
                }
            }
        }
    }

    fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Leaf(mine), Self::Leaf(others)) => {
                mine.iter().zip(others).fold(true, |all, (mine, other)| all & (mine >= other))
            }
            (Self::Inner(mine), Self::Inner(others)) => {
                mine.iter().zip(others).all(|(mine, other)| match (mine, other) {
                    (_, None) => true,
                    (None, Some(_)) => false,
                    (Some(mine), Some(other)) => Arc::ptr_eq(mine, other) || mine.covers(other),
                })
            }
            // The two trees have the same height, so a leaf meets a leaf only.
            _ => false,
        }
    }

    /// What either knows. Where one of them knows all, its nodes are used again.
    fn join(one: &Arc<Self>, other: &Arc<Self>) -> Arc<Self> {
        if Arc::ptr_eq(one, other) || one.covers(other) {
            return one.clone();
        }
        if other.covers(one) {
            return other.clone();
        }
        Arc::new(match (&**one, &**other) {
            (Self::Leaf(mine), Self::Leaf(others)) => {
                let mut joined = *mine;
                for (time, other) in joined.iter_mut().zip(others) {
                    *time = (*time).max(*other);
                }
                Self::Leaf(joined)
            }
            (Self::Inner(mine), Self::Inner(others)) => {
                let mut joined = mine.clone();
                for (child, other) in joined.iter_mut().zip(others) {
                    if let Some(other) = other {
                        let both = child.as_ref().map(|mine| Self::join(mine, other));
                        *child = both.or_else(|| Some(other.clone()));
                    }
                }
                Self::Inner(joined)
            }
            // The two trees have the same height, so a leaf meets a leaf only.
            _ => return one.clone(),
        })
    }

    fn meet(one: &Arc<Self>, other: &Arc<Self>) -> Option<Arc<Self>> {
        if Arc::ptr_eq(one, other) {
            return Some(one.clone());
        }
        match (&**one, &**other) {
            (Self::Leaf(mine), Self::Leaf(others)) => {
                let mut both = *mine;
                for (time, other) in both.iter_mut().zip(others) {
                    *time = (*time).min(*other);
                }
                both.iter().any(|time| *time > 0).then(|| Arc::new(Self::Leaf(both)))
            }
            (Self::Inner(mine), Self::Inner(others)) => {
                let mut both: [Option<Arc<Self>>; WIDTH] = Default::default();
                for ((to, mine), other) in both.iter_mut().zip(mine).zip(others) {
                    if let (Some(mine), Some(other)) = (mine, other) {
                        *to = Self::meet(mine, other);
                    }
                }
                both.iter().any(Option::is_some).then(|| Arc::new(Self::Inner(both)))
            }
            // The two trees have the same height, so a leaf meets a leaf only.
            _ => None,
        }
    }

    /// What `floor` does not know. A node of which it knows nothing stays the same node.
    fn prune(this: &Arc<Self>, floor: &Self) -> Option<Arc<Self>> {
        match (&**this, floor) {
            (Self::Leaf(mine), Self::Leaf(others)) => {
                let mut rest = *mine;
                let mut changed = false;
                for (time, floor) in rest.iter_mut().zip(others) {
                    if *time > 0 && *time <= *floor {
                        *time = 0;
                        changed = true;
                    }
                }
                if !changed {
                    return Some(this.clone());
                }
                rest.iter().any(|time| *time > 0).then(|| Arc::new(Self::Leaf(rest)))
            }
            (Self::Inner(mine), Self::Inner(others)) => {
                let mut rest: Option<[Option<Arc<Self>>; WIDTH]> = None;
                for (index, (mine_one, other)) in mine.iter().zip(others).enumerate() {
                    if let (Some(child), Some(floor)) = (mine_one, other) {
                        let left = Self::prune(child, floor);
                        if left.as_ref().is_none_or(|left| !Arc::ptr_eq(left, child))
                            && let Some(to) =
                                rest.get_or_insert_with(|| mine.clone()).get_mut(index)
                        {
                            *to = left;
                        }
                    }
                }
                match rest {
                    None => Some(this.clone()),
                    Some(rest) => {
                        rest.iter().any(Option::is_some).then(|| Arc::new(Self::Inner(rest)))
                    }
                }
            }
            // The two trees have the same height, so a leaf meets a leaf only.
            _ => Some(this.clone()),
        }
    }

    fn all(&self, first: Slot, height: u32, holds: &mut impl FnMut(Slot, u64) -> bool) -> bool {
        match self {
            Self::Leaf(times) => {
                (0..).zip(times).all(|(digit, &time)| time == 0 || holds(first + digit, time))
            }
            Self::Inner(children) => (0..).zip(children).all(|(digit, child): (Slot, _)| {
                let first = first + (digit << (height * BITS));
                child.as_ref().is_none_or(|child| child.all(first, height.saturating_sub(1), holds))
            }),
        }
    }
}

/// For each agent, how many of its operations are known to be over. An agent without an entry is at
/// zero.
///
/// An operation changes a few entries, and all else is shared with the clock before it. So a clock
/// of many agents costs little more than one of a few.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clock {
    root: Option<Arc<Node>>,
    /// How many levels are above the leaves.
    height: u32,
}

impl Clock {
    pub(crate) fn is_empty(&self) -> bool {
        self.root.is_none()
    }

    pub(crate) fn get(&self, slot: Slot) -> u64 {
        match &self.root {
            Some(root) if self.has_room_for(slot) => root.get(slot, self.height),
            _ => 0,
        }
    }

    fn has_room_for(&self, slot: Slot) -> bool {
        slot.checked_shr((self.height + 1) * BITS).unwrap_or(0) == 0
    }

    /// Adds levels, up to `height`.
    fn grow(&mut self, height: u32) {
        if self.root.is_none() {
            self.height = height;
        }
        while self.height < height {
            let mut children: [Option<Arc<Node>>; WIDTH] = Default::default();
            if let Some(first) = children.first_mut() {
                *first = self.root.take();
            }
            self.root = Some(Arc::new(Node::Inner(children)));
            self.height += 1;
        }
    }

    /// Both with the same number of levels.
    fn level(&self, other: &Self) -> (Self, Self) {
        let (mut one, mut two) = (self.clone(), other.clone());
        one.grow(other.height);
        two.grow(self.height);
        (one, two)
    }

    /// Raises the entry of a slot.
    pub(crate) fn raise(&mut self, slot: Slot, time: u64) {
        while !self.has_room_for(slot) {
            self.grow(self.height + 1);
        }
        Node::raise(&mut self.root, self.height, slot, time);
    }

    /// Whether it is the very same clock, at the price of a comparison of pointers.
    pub(crate) fn same(&self, other: &Self) -> bool {
        match (&self.root, &other.root) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (None, None) => true,
            _ => false,
        }
    }

    /// Whether all that `other` knows is known here, too.
    #[cfg(test)]
    fn covers(&self, other: &Self) -> bool {
        other.all(|slot, time| self.get(slot) >= time)
    }

    /// Whether this holds for each entry.
    pub(crate) fn all(&self, mut holds: impl FnMut(Slot, u64) -> bool) -> bool {
        self.root.as_ref().is_none_or(|root| root.all(0, self.height, &mut holds))
    }

    /// Learns all that `other` knows.
    pub(crate) fn join(&mut self, other: &Self) {
        if self.same(other) {
            return;
        }
        let height = self.height.max(other.height);
        self.grow(height);
        let (Some(mine), Some(others)) = (&self.root, &other.root) else {
            if self.root.is_none() {
                self.clone_from(other);
            }
            return;
        };
        if other.height == height {
            self.root = Some(Node::join(mine, others));
            return;
        }
        let mut other = other.clone();
        other.grow(height);
        if let Some(others) = &other.root {
            self.root = Some(Node::join(mine, others));
        }
    }

    /// The greatest clock that is before both: what both know.
    pub(crate) fn meet(&self, other: &Self) -> Self {
        let (one, two) = self.level(other);
        let root = match (&one.root, &two.root) {
            (Some(one), Some(two)) => Node::meet(one, two),
            _ => None,
        };
        Self { height: if root.is_some() { one.height } else { 0 }, root }
    }

    /// Forgets what is in the floor, as everybody knows that.
    pub(crate) fn prune(&mut self, floor: &Self) {
        if self.is_empty() || floor.is_empty() {
            return;
        }
        let (one, floor) = self.level(floor);
        if let (Some(mine), Some(floor)) = (&one.root, &floor.root) {
            let root = Node::prune(mine, floor);
            *self = Self { height: if root.is_some() { one.height } else { 0 }, root };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Clock;

    fn clock(entries: &[(u32, u64)]) -> Clock {
        let mut clock = Clock::default();
        for &(slot, time) in entries {
            clock.raise(slot, time);
        }
        clock
    }

    fn entries(clock: &Clock) -> Vec<(u32, u64)> {
        let mut entries = Vec::new();
        clock.all(|slot, time| {
            entries.push((slot, time));
            true
        });
        entries
    }

    #[test]
    fn joins_meets_and_covers() {
        // In one leaf, in two of them, and in trees of different heights.
        for far in [9, 19, 300, 70_000, u32::MAX] {
            let (a, b) = (clock(&[(1, 5), (3, 2), (7, 1)]), clock(&[(0, 1), (3, 4), (far, 9)]));
            let mut joined = a.clone();
            joined.join(&b);
            assert_eq!(entries(&joined), [(0, 1), (1, 5), (3, 4), (7, 1), (far, 9)]);
            let mut turned = b.clone();
            turned.join(&a);
            assert_eq!(entries(&turned), entries(&joined));
            assert_eq!(entries(&a.meet(&b)), [(3, 2)]);
            assert_eq!(entries(&b.meet(&a)), [(3, 2)]);
            assert!(a.meet(&clock(&[(far, 1)])).is_empty());
            assert!(joined.covers(&a) && joined.covers(&b) && !a.covers(&b));
            assert!(a.covers(&Clock::default()) && joined.get(far) == 9 && a.get(far) == 0);
            assert_eq!(entries(&a), [(1, 5), (3, 2), (7, 1)], "a copy changes alone");
            joined.prune(&a);
            assert_eq!(entries(&joined), [(0, 1), (3, 4), (far, 9)]);
            joined.prune(&b);
            assert!(joined.is_empty());
        }
    }

    /// What a clock learns from one that knows all that it knows is shared.
    #[test]
    fn what_is_equal_is_shared() {
        let mut old = Clock::default();
        (0..10_000).for_each(|slot| old.raise(slot, 1));
        let mut new = old.clone();
        new.raise(5, 2);
        let mut joined = old.clone();
        joined.join(&new);
        assert!(joined.same(&new) && !joined.same(&old));
        joined.join(&old);
        assert!(joined.same(&new));
    }
}
