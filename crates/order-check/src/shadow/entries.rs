//! Accesses, as they are remembered for the bytes of a segment.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use crate::agent::Agent;
use crate::clock::Slot;
use crate::op::{Access, AccessKind, Call, Launched};
use crate::shadow::ahead::fetch;

/// An access that a later one may have to be ordered with.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) slot: Slot,
    pub(crate) time: u64,
    pub(crate) kind: AccessKind,
    /// Whether a launch may make it, and the number of the launch, as in the origin: to look there
    /// takes long, as it is seldom in the processor's caches.
    pub(super) of_launch: bool,
    launch: u64,
    /// One for all accesses of an operation, as a kernel may have hundreds.
    pub(crate) origin: Arc<Origin>,
}

/// The operation that made an access.
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
pub(super) const LAUNCHES: usize = 8;

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
    pub(super) fn is_replaced(&self, new: &Self) -> bool {
        let alike = !new.of_launch || self.of_launch && new.launch == self.launch;
        alike && new.kind.replaces(self.kind)
    }

    pub(super) fn same(&self, other: &Self) -> bool {
        (self.slot, self.time, self.kind) == (other.slot, other.time, other.kind)
    }
}

/// The accesses of a segment, the oldest first. Most segments have one, which is in the segment
/// itself: to look elsewhere for each of a kernel's hundreds of addresses takes long. From those that
/// many launches have the oldest one goes with each new one, so none is moved then.
#[derive(Clone, Debug, Default)]
pub(super) struct Entries {
    /// If there is none, there are no others.
    first: Option<Entry>,
    others: VecDeque<Entry>,
}

impl Entries {
    pub(super) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.others.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.first.iter().chain(&self.others)
    }

    /// All of them, in pieces: loops over these are several times as fast as over one iterator.
    #[inline]
    pub(super) fn pieces(&self) -> [&[Entry]; 3] {
        let (one, two) = self.others.as_slices();
        [self.first.as_slice(), one, two]
    }

    /// They are looked at soon: all, and the origin of the first one, which most often goes.
    #[inline]
    pub(super) fn fetch(&self) {
        let Some(first) = &self.first else { return };
        if !self.others.is_empty() {
            fetch(&*first.origin);
            let (one, two) = self.others.as_slices();
            for piece in [one, two] {
                piece.iter().step_by(2).for_each(fetch);
            }
        }
    }

    pub(super) fn push(&mut self, entry: Entry) {
        match self.first {
            None => self.first = Some(entry),
            Some(_) => self.others.push_back(entry),
        }
    }

    /// The access, if there is just one.
    pub(super) fn only(&mut self) -> Option<&mut Entry> {
        self.first.as_mut().filter(|_| self.others.is_empty())
    }

    pub(super) fn retain(&mut self, mut keep: impl FnMut(&Entry) -> bool) {
        self.first.take_if(|entry| !keep(entry));
        if !self.others.is_empty() {
            self.others.retain(keep);
            if self.first.is_none() {
                self.first = self.others.pop_front();
            }
        }
    }

    /// Removes the access at a place.
    pub(super) fn remove(&mut self, at: usize) {
        match at.checked_sub(1) {
            None => self.first = self.others.pop_front(),
            Some(at) => drop(self.others.remove(at)),
        }
    }

    pub(super) fn last_mut(&mut self) -> Option<&mut Entry> {
        self.others.back_mut().or(self.first.as_mut())
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
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

/// A new access on its way through the segments.
pub(crate) struct Check<'a, F> {
    pub(crate) new: &'a Entry,
    /// Whether the operation of a slot at a time is over before the new access begins.
    pub(crate) is_before: &'a F,
    /// What the new access was found to be wrong with.
    pub(crate) hits: &'a mut Vec<Hit>,
}

impl<F: Fn(Slot, u64) -> bool> Check<'_, F> {
    /// Whether an earlier access is over before the new one begins. All that an agent did is before
    /// what it does, also if one call touches the same bytes more than once.
    #[inline]
    pub(super) fn is_after(&self, earlier: &Entry) -> bool {
        let own = earlier.slot == self.new.slot && earlier.time <= self.new.time;
        own || self.is_before(earlier)
    }

    #[inline(never)]
    fn is_before(&self, earlier: &Entry) -> bool {
        (self.is_before)(earlier.slot, earlier.time)
    }

    /// Adds bytes to the hit of an earlier access.
    #[cold]
    pub(super) fn hit(&mut self, earlier: &Entry, ordered: bool, range: Range<u64>) {
        let same =
            |hit: &&mut Hit| (hit.earlier.slot, hit.earlier.time) == (earlier.slot, earlier.time);
        match self.hits.iter_mut().find(same) {
            Some(hit) => match hit.ranges.last_mut() {
                Some(last) if last.end == range.start => last.end = range.end,
                _ => hit.ranges.push(range),
            },
            None => self.hits.push(Hit { earlier: earlier.clone(), ordered, ranges: vec![range] }),
        }
    }
}
