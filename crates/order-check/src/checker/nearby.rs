//! Launches, and work elsewhere in the allocations that they have addresses in.
//!
//! A launch with an address of an allocation may access all of it, so it may meet work of which the
//! bytes have none of its addresses. The ranges of bytes know nothing of that. The last launches and
//! the last other works are kept here for it, and a pair that nothing orders is a candidate if the
//! launch says that it [may be one](crate::Launch::is_near).
//!
//! All of this is bounded: by how many are kept, and by how many of them one operation looks at. What
//! is before some work is before all later work of its slot, so most are looked at once.
//!
//! No slot is kept for what is here. If another agent has it by now, what is after that one counts as
//! after the former owner: a pair may be missed, and none is made up.

use std::collections::VecDeque;
use std::ops::Range;

use crate::agent::Who;
use crate::allocations::Allocations;
use crate::clock::Slot;
use crate::op::{Access, AccessKind, Other};
use crate::shadow::{Entry, Hit};

/// How many launches are kept, and how many addresses of each.
const LAUNCHES: usize = 128;
const ADDRESSES: usize = 32;

/// How many reads and writes of other work are kept (a copy is two), and of how many of its accesses the allocations are.
const WORKS: usize = 64;
const ACCESSES: usize = 16;

/// Among how many of the last works one is looked for that new work stands for.
const REPEATED: usize = 8;

/// How many launches a launch is compared with, and among how many these are looked for.
const COMPARED: usize = 16;
const LOOKED_AT: usize = 64;

/// How many candidates an operation may make.
const CANDIDATES: usize = 16;

/// The time of what is before everything.
const BEFORE_ALL: u64 = 0;

/// Memory that work is in.
#[derive(Clone, Debug, PartialEq)]
struct Place {
    /// Its bytes, with those of the maps beside it.
    range: Range<u64>,
    /// Where the allocation begins that the work is in, and the number of the call that made it.
    start: u64,
    begun: u64,
}

/// The last operations of a kind, in the order in which they were done.
#[derive(Debug)]
struct Recent<T> {
    /// The number of the oldest one that is kept.
    first: u64,
    all: VecDeque<(Entry, T)>,
    /// For each slot, up to which number all of them are before its work, and the time of that work.
    seen: Vec<(u64, u64)>,
}

impl<T> Default for Recent<T> {
    fn default() -> Self {
        Self { first: 0, all: VecDeque::new(), seen: Vec::new() }
    }
}

impl<T> Recent<T> {
    fn pop(&mut self) -> Option<T> {
        let (_, item) = self.all.pop_front()?;
        self.first += 1;
        Some(item)
    }

    /// The first place from which on there may be operations that are not before the new work.
    /// `former` is the last time of the agent that had its slot before.
    fn skip(&mut self, new: &Entry, former: u64, is_before: &impl Fn(Slot, u64) -> bool) -> usize {
        let at = new.slot as usize;
        if self.seen.len() <= at {
            self.seen.resize(at + 1, (0, 0));
        }
        let Some(seen) = self.seen.get_mut(at) else { return 0 };
        let start = if seen.1 <= former { 0 } else { seen.0 };
        let mut place = start.saturating_sub(self.first) as usize;
        while self.all.get(place).is_some_and(|(entry, _)| comes_before(entry, new, is_before)) {
            place += 1;
        }
        *seen = (self.first + place as u64, new.time);
        place
    }

    /// Forgets the oldest ones that are before all that may still come.
    fn retire(&mut self, is_over: &impl Fn(Slot, u64) -> bool, mut gone: impl FnMut(T)) {
        while self.all.front().is_some_and(|(entry, _)| is_over(entry.slot, entry.time)) {
            self.pop().into_iter().for_each(&mut gone);
        }
    }
}

/// All that an agent did is before what it does.
fn comes_before(earlier: &Entry, new: &Entry, is_before: &impl Fn(Slot, u64) -> bool) -> bool {
    let own = earlier.slot == new.slot && earlier.time <= new.time;
    own || is_before(earlier.slot, earlier.time)
}

/// The addresses of launches, one after the other.
#[derive(Debug, Default)]
struct Addresses {
    all: Vec<u64>,
    /// How many of the first addresses are unused: their launches were removed.
    gone: usize,
}

impl Addresses {
    fn pop(&mut self, count: usize) {
        self.gone += count;
        if self.gone > LAUNCHES * ADDRESSES {
            self.all.drain(..self.gone);
            self.gone = 0;
        }
    }

    fn range(&self, range: Range<usize>) -> &[u64] {
        self.all.get(range).unwrap_or_default()
    }
}

#[derive(Debug, Default)]
pub(super) struct Nearby {
    /// Launches, each with how many addresses it has.
    launches: Recent<usize>,
    /// The addresses of all launches, in the same order.
    addresses: Addresses,
    /// Other work, with the allocations that it is in.
    works: Recent<Vec<Place>>,
    /// The allocations of all works before number `placed`, each with the number of the last work in
    /// it.
    places: Vec<(Place, u64)>,
    placed: u64,
    /// The allocations that a launch and another operation have in common, during one look-up.
    common: Vec<Range<u64>>,
}

/// The allocations that these addresses of an operation are in, unless they were freed, or are others by
/// now.
fn places(
    addresses: impl Iterator<Item = u64>,
    entry: &Entry,
    allocations: &Allocations,
) -> Vec<Place> {
    let mut all: Vec<Place> = Vec::new();
    for at in addresses {
        if !all.iter().any(|place| place.range.contains(&at)) {
            let place = allocations.whole(at).map(|(range, own)| Place {
                range,
                start: own.range.start,
                begun: own.call.number,
            });
            all.extend(place.filter(|place| place.begun < entry.origin.call.number));
        }
    }
    all
}

fn begins(accesses: &[Access]) -> impl Iterator<Item = u64> {
    accesses.iter().take(ACCESSES).map(|access| access.range.start)
}

impl Nearby {
    /// New work: a launch, or other work of a stream. `former` is the last time of who had its slot
    /// before. Returns the candidates.
    pub(super) fn touch(
        &mut self,
        accesses: &[Access],
        new: &Entry,
        former: u64,
        allocations: &Allocations,
        is_before: &impl Fn(Slot, u64) -> bool,
    ) -> Vec<Hit> {
        let in_stream = matches!(new.origin.agent.0, Who::Stream(..));
        if !in_stream || !matches!(new.kind, AccessKind::Read | AccessKind::Write) {
            return Vec::new();
        }
        let mut found = Candidates { new, found: Vec::new() };
        if new.origin.launch.is_none() {
            self.beside_work(accesses, former, allocations, is_before, &mut found);
            if self.works.all.len() == WORKS {
                self.works.pop();
            }
            self.works.all.push_back((new.clone(), Vec::new()));
            return found.found;
        }
        let before = self.addresses.all.len();
        for Access { range, .. } in accesses {
            // Whatever is longer stands for the whole of its memory.
            if range.end == range.start.wrapping_add(1) {
                self.addresses.all.push(range.start);
            }
        }
        self.addresses.all.truncate(before + ADDRESSES);
        let count = self.addresses.all.len() - before;
        if count == 0 {
            return Vec::new();
        }
        self.beside_launch(before, former, allocations, is_before, &mut found);
        if self.launches.all.len() == LAUNCHES {
            let gone = self.launches.pop().unwrap_or_default();
            self.addresses.pop(gone);
        }
        self.launches.all.push_back((new.clone(), count));
        found.found
    }

    /// Looks up the allocations of new work. The answer is whether some address is in one of them, as
    /// far as the work behind this place is in it.
    fn may_meet(&mut self, skipped: usize, addresses: usize, allocations: &Allocations) -> bool {
        let Self { works, places, placed, .. } = self;
        let end = works.first + works.all.len() as u64;
        if *placed < end {
            let start = placed.saturating_sub(works.first) as usize;
            places.retain(|(_, last)| *last >= works.first);
            for at in start..works.all.len() {
                forget_repeated(&mut works.all, at);
            }
            for (number, (work, own)) in (works.first..).zip(&mut works.all).skip(start) {
                *own = self::places(begins(&work.origin.accesses), work, allocations);
                for place in own {
                    match places.iter_mut().find(|(earlier, _)| earlier == place) {
                        Some((_, last)) => *last = number,
                        None => places.push((place.clone(), number)),
                    }
                }
            }
            *placed = end;
        }
        let first = works.first + skipped as u64;
        let mut behind = places.iter().filter(|(_, last)| *last >= first);
        let addresses = self.addresses.range(addresses..self.addresses.all.len());
        behind.any(|(place, _)| addresses.iter().any(|at| place.range.contains(at)))
    }

    /// The launches that other work may meet, the last ones first.
    fn beside_work(
        &mut self,
        accesses: &[Access],
        former: u64,
        allocations: &Allocations,
        is_before: &impl Fn(Slot, u64) -> bool,
        found: &mut Candidates<'_>,
    ) {
        let skipped = self.launches.skip(found.new, former, is_before);
        if skipped == self.launches.all.len() {
            return;
        }
        let places = places(begins(accesses), found.new, allocations);
        let mut end = self.addresses.all.len();
        for (launch, count) in self.launches.all.range(skipped..).rev() {
            let begin = end - count;
            let own = self.addresses.range(begin..end);
            end = begin;
            if meet(own, launch, &places, |_| true, &mut self.common)
                && !comes_before(launch, found.new, is_before)
                && !found.add(launch, &self.common)
            {
                return;
            }
        }
    }

    /// What a launch may meet. Its addresses are those from this place on.
    fn beside_launch(
        &mut self,
        addresses: usize,
        former: u64,
        allocations: &Allocations,
        is_before: &impl Fn(Slot, u64) -> bool,
        found: &mut Candidates<'_>,
    ) {
        let new = found.new;
        let skipped = self.works.skip(new, former, is_before);
        if skipped < self.works.all.len() && self.may_meet(skipped, addresses, allocations) {
            let own = self.addresses.range(addresses..self.addresses.all.len());
            for (work, places) in self.works.all.range(skipped..).rev() {
                // The allocation may have ended since then.
                let is_it = |place: &Place| {
                    let live = allocations.live(place.start);
                    live.is_some_and(|live| live.call.number == place.begun)
                };
                if meet(own, new, places, is_it, &mut self.common)
                    && !comes_before(work, new, is_before)
                    && !found.add(work, &self.common)
                {
                    return;
                }
            }
        }
        let skipped = self.launches.skip(new, former, is_before);
        let count = self.launches.all.len();
        if skipped == count {
            return;
        }
        let from = skipped.max(count.saturating_sub(LOOKED_AT));
        let (mut end, mut compared, mut own) = (addresses, 0, None);
        for (launch, count) in self.launches.all.range(from..).rev() {
            let begin = end - count;
            let others = self.addresses.range(begin..end);
            end = begin;
            if comes_before(launch, new, is_before) {
                continue;
            }
            let addresses = self.addresses.range(addresses..self.addresses.all.len());
            let own =
                own.get_or_insert_with(|| places(addresses.iter().copied(), new, allocations));
            if meet(others, launch, own, |_| true, &mut self.common)
                && !found.add(launch, &self.common)
            {
                return;
            }
            compared += 1;
            if compared == COMPARED {
                return;
            }
        }
    }

    /// Forgets what is before all that may still come.
    pub(super) fn retire(&mut self, is_over: &impl Fn(Slot, u64) -> bool) {
        self.works.retire(is_over, |_| ());
        let addresses = &mut self.addresses;
        self.launches.retire(is_over, |count| addresses.pop(count));
    }
}

/// What comes after some work in its slot stands for the same work before.
fn forget_repeated(works: &mut VecDeque<(Entry, Vec<Place>)>, at: usize) {
    let Some((new, _)) = works.get(at) else { return };
    let is_same = |old: &Entry| old.slot == new.slot && old.origin.accesses == new.origin.accesses;
    let mut before = (at.saturating_sub(REPEATED)..at).rev();
    let same = before.find(|at| works.get(*at).is_some_and(|(old, _)| is_same(old)));
    if let Some((same, _)) = same.and_then(|at| works.get_mut(at)) {
        same.time = BEFORE_ALL;
    }
}

/// Puts those of these allocations together that the launch has an address in. It has none in one that
/// was made after it. The answer is whether there is any.
fn meet(
    addresses: &[u64],
    launch: &Entry,
    places: &[Place],
    is_it: impl Fn(&Place) -> bool,
    common: &mut Vec<Range<u64>>,
) -> bool {
    let number = launch.origin.call.number;
    let meets = |place: &&Place| {
        let meets = addresses.iter().any(|at| place.range.contains(at));
        place.begun < number && meets && is_it(place)
    };
    common.clear();
    common.extend(places.iter().filter(meets).map(|place| place.range.clone()));
    !common.is_empty()
}

struct Candidates<'a> {
    new: &'a Entry,
    found: Vec<Hit>,
}

impl Candidates<'_> {
    /// Adds an earlier operation, if the launch may meet the other one in one of these allocations. The
    /// answer is whether there may be more.
    fn add(&mut self, earlier: &Entry, ranges: &[Range<u64>]) -> bool {
        let new = self.new;
        let near = |launch: &Entry, other: &Entry| {
            let accesses = &other.origin.accesses;
            let other = Other { kind: other.kind, accesses, launch: other.origin.launch.as_ref() };
            launch.origin.launch.as_ref().map(|launched| launched.launch.is_near(ranges, &other))
        };
        if new.kind.conflicts(earlier.kind)
            && near(new, earlier).or_else(|| near(earlier, new)) == Some(true)
        {
            let ranges = ranges.to_vec();
            self.found.push(Hit { earlier: earlier.clone(), ordered: false, ranges });
        }
        self.found.len() < CANDIDATES
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{ADDRESSES, LAUNCHES, Nearby};
    use crate::agent::{Agent, Part, StreamName, Who};
    use crate::allocations::Allocations;
    use crate::op::{
        Access, AccessKind, Call, ContextId, Launch, Launched, StreamId, StreamKind, ThreadId,
    };
    use crate::shadow::{Entry, Origin};

    #[derive(Debug)]
    struct Kernel;

    impl Launch for Kernel {
        fn number(&self) -> u64 {
            1
        }
    }

    /// The addresses go with their launches.
    #[test]
    fn as_many_addresses_are_kept_as_launches_have() {
        let context = ContextId(0);
        let stream = StreamName::new(StreamId(1), "1".into(), context, StreamKind::NonBlocking);
        let stream = Arc::new(stream);
        let mut nearby = Nearby::default();
        let touch = |nearby: &mut Nearby, time: u64, addresses: u64| {
            let call = Arc::new(Call::new("cuLaunchKernel", time, ThreadId(1)));
            let agent = Agent(Who::Stream(stream.clone(), Part::Work));
            let launch = Some(Launched::new(Arc::new(Kernel)));
            let origin = Arc::new(Origin { launch, ..Origin::new(call, agent) });
            let new = Entry::new(1, time, AccessKind::Write, origin);
            let accesses: Vec<Access> = (0..addresses).map(|at| Access::write(at, 1)).collect();
            let found = nearby.touch(&accesses, &new, 0, &Allocations::default(), &|_, _| false);
            assert!(found.is_empty());
        };
        let counts = |nearby: &Nearby| {
            (nearby.launches.all.len(), nearby.addresses.all.len() - nearby.addresses.gone)
        };
        for time in 1..=10_000 {
            touch(&mut nearby, time, time % 3);
            assert!(nearby.addresses.all.len() <= 2 * LAUNCHES * ADDRESSES);
        }
        // Those without an address are none.
        let all = LAUNCHES * 3 / 2;
        assert_eq!(counts(&nearby), (LAUNCHES, all));
        nearby.retire(&|_, time| time <= 9_994);
        assert_eq!(counts(&nearby), (4, 6));
        touch(&mut nearby, 10_001, 40);
        assert_eq!(counts(&nearby), (5, 6 + ADDRESSES));
        nearby.retire(&|_, _| true);
        assert_eq!(counts(&nearby), (0, 0));
    }
}
