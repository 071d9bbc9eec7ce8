//! Rows, spans and merged segments find what the accesses of each byte tell.

use std::sync::Arc;

use crate::agent::{Agent, Part, StreamName, Who};
use crate::clock::Slot;
use crate::op::{
    Access, AccessKind, Call, ContextId, Launch, Launched, StreamId, StreamKind, Stride, ThreadId,
};
use crate::shadow::entries::{Check, Entry, Hit, LAUNCHES, Origin};
use crate::shadow::rows::COLUMNS;
use crate::shadow::{SPANS, Shadow};

const BYTES: u64 = 192;
const AGENTS: usize = 4;

#[derive(Debug)]
struct Kernel(u64);

impl Launch for Kernel {
    fn number(&self) -> u64 {
        self.0
    }
}

fn random(state: &mut u64, below: u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) % below
}

fn access(
    shadow: &mut Shadow,
    access: &Access,
    new: &Entry,
    is_before: &impl Fn(Slot, u64) -> bool,
) -> Vec<Hit> {
    let mut hits = Vec::new();
    let check = &mut Check { new, is_before, hits: &mut hits };
    match access.stride {
        Some(stride) => shadow.access_rows(&access.range, stride, check),
        None => shadow.access(&access.range, check),
    }
    hits
}

/// The found pairs of a byte and an earlier access.
fn flat(hits: &[Hit]) -> Vec<(u64, Slot, u64, bool)> {
    let each = |hit: &Hit| {
        let (slot, time, ordered) = (hit.earlier.slot, hit.earlier.time, hit.ordered);
        hit.ranges.clone().into_iter().flatten().map(move |byte| (byte, slot, time, ordered))
    };
    let mut all: Vec<_> = hits.iter().flat_map(each).collect();
    all.sort_unstable();
    all
}

/// What is kept of one byte.
#[derive(Clone, Debug, Default)]
struct Byte {
    entries: Vec<Entry>,
    freed: Option<Entry>,
}

impl Byte {
    /// The earlier accesses that the new one is wrong with.
    fn access(&mut self, new: &Entry, is_before: impl Fn(Slot, u64) -> bool) -> Vec<(Entry, bool)> {
        if matches!(new.kind, AccessKind::Allocate | AccessKind::Forget) {
            let own = (new.kind == AccessKind::Allocate).then(|| new.clone());
            *self = Self { entries: own.into_iter().collect(), freed: None };
            return Vec::new();
        }
        if let Some(freed) = &self.freed {
            return vec![(freed.clone(), is_before(freed.slot, freed.time))];
        }
        let is_before = |old: &Entry| is_before(old.slot, old.time);
        let wrong = |old: &&Entry| !is_before(old) && new.kind.conflicts(old.kind);
        let found = self.entries.iter().filter(wrong).map(|old| (old.clone(), false)).collect();
        self.entries.retain(|old| !(is_before(old) && old.is_replaced(new)));
        let is_launch = |old: &Entry| old.of_launch && is_before(old);
        while new.of_launch && self.entries.iter().filter(|old| is_launch(old)).count() >= LAUNCHES
        {
            let oldest = self.entries.iter().position(is_launch);
            oldest.map(|at| self.entries.remove(at));
        }
        self.entries.push(new.clone());
        if new.kind == AccessKind::Free {
            *self = Self { freed: self.entries.pop(), entries: Vec::new() };
        }
        found
    }

    fn slots(&self) -> impl Iterator<Item = Slot> {
        self.entries.iter().chain(&self.freed).map(|entry| entry.slot)
    }
}

/// Each access to `whole` is one to each byte.
#[derive(Debug)]
struct Both {
    whole: Shadow,
    bytes: Vec<Byte>,
    agent: Agent,
    clocks: [[u64; AGENTS]; AGENTS],
    calls: u64,
}

impl Both {
    fn new(bytes: u64) -> Self {
        let (context, kind) = (ContextId(0), StreamKind::NonBlocking);
        let stream = StreamName::new(StreamId(1), "1".into(), context, kind);
        Self {
            whole: Shadow::default(),
            bytes: vec![Byte::default(); bytes as usize],
            agent: Agent(Who::Stream(Arc::new(stream), Part::Work)),
            clocks: [[0; AGENTS]; AGENTS],
            calls: 0,
        }
    }

    /// An operation of an agent: what it finds is the same.
    fn access(&mut self, slot: usize, accesses: &[Access], launch: Option<u64>) {
        self.calls += 1;
        self.clocks[slot][slot] += 1;
        let clock = self.clocks[slot];
        let is_before = |slot: Slot, time| clock[slot as usize] >= time;
        let call = Arc::new(Call::new("call", self.calls, ThreadId(1)));
        let launch = launch.map(|number| Launched::new(Arc::new(Kernel(number))));
        let origin = Arc::new(Origin { launch, ..Origin::new(call, self.agent.clone()) });
        for each in accesses {
            let new = Entry::new(slot as Slot, clock[slot], each.kind, origin.clone());
            let found = flat(&access(&mut self.whole, each, &new, &is_before));
            let mut expected = Vec::new();
            for byte in each.each_row().flatten() {
                let all = self.bytes[byte as usize].access(&new, is_before);
                let pair = |(old, ordered): (Entry, _)| (byte, old.slot, old.time, ordered);
                expected.extend(all.into_iter().map(pair));
            }
            expected.sort_unstable();
            // Two accesses of one operation are one hit.
            expected.dedup();
            let differs = |pair: &&_| !(found.contains(pair) && expected.contains(pair));
            let differ: Vec<_> = found.iter().chain(&expected).filter(differs).collect();
            assert!(
                found.len() == expected.len() && differ.is_empty(),
                "{each:?} of {slot}: {differ:?}"
            );
        }
    }

    /// An agent is after all that another one has done.
    fn wait(&mut self, slot: usize, other: usize) {
        let other = self.clocks[other];
        self.clocks[slot].iter_mut().zip(other).for_each(|(own, it)| *own = it.max(*own));
    }

    fn retire(&mut self) {
        let clocks = self.clocks;
        let is_over = |slot: Slot, time| clocks.iter().all(|clock| clock[slot as usize] >= time);
        self.whole.retire(&is_over);
        for byte in &mut self.bytes {
            byte.entries.retain(|old| !is_over(old.slot, old.time));
        }
        self.check();
    }

    /// What is kept of some bytes is kept, and nothing else is.
    fn check(&self) {
        let (mut slots, mut expected) = ([false; AGENTS], [false; AGENTS]);
        self.whole.slots(&mut |slot| slots[slot as usize] = true);
        self.bytes.iter().flat_map(Byte::slots).for_each(|slot| expected[slot as usize] = true);
        assert_eq!(slots, expected);
        for (start, segment) in self.whole.segments.iter() {
            let bytes = self.bytes.get(start as usize..segment.end as usize);
            let count = bytes.into_iter().flatten().flat_map(Byte::slots).count();
            assert!(count > 0, "{start}..{}", segment.end);
        }
    }

    fn forget_freed(&mut self, oldest: u64) {
        self.whole.segments.forget_freed(oldest);
        for byte in &mut self.bytes {
            byte.freed.take_if(|freed| freed.origin.call.number < oldest);
        }
        self.check();
    }

    /// All that is kept is found by one that is after nothing.
    fn compare(&mut self) {
        let all = Access::write(0, self.bytes.len() as u64);
        self.clocks[0] = [0; AGENTS];
        self.clocks[0][0] = 1 << 40;
        self.access(0, &[all], None);
    }
}

fn program(seed: u64) {
    use AccessKind::{Allocate, AtomicRead, AtomicWrite, Forget, Free, Read, Wait, Write};
    let (mut state, mut both) = (seed, Both::new(BYTES));
    let mut random = |below| random(&mut state, below);
    // Few begins, lengths and pitches, so that the same ranges, and parts of them, come again.
    let unit = [1, 8][random(2) as usize];
    for _ in 0..random(80) {
        let (slot, other) = (random(AGENTS as u64) as usize, random(AGENTS as u64) as usize);
        match random(16) {
            0 => both.retire(),
            1 if random(3) == 0 => {
                let oldest = both.calls.saturating_sub(random(20));
                both.forget_freed(oldest);
            }
            2..4 => both.wait(slot, other),
            4 => {
                (0..AGENTS).for_each(|other| both.wait(slot, other));
                (0..AGENTS).for_each(|other| both.wait(other, slot));
            }
            // Pieces side by side, and a read of the whole.
            5 => {
                let (piece, count) = ([4, 8, 16][random(3) as usize], 3 + random(6));
                for at in 0..count {
                    both.access(slot, &[Access::write(at * piece, piece)], None);
                }
                (0..AGENTS).for_each(|other| both.wait(other, slot));
                for _ in 0..random(3) {
                    both.access(other, &[Access::read(0, count * piece)], None);
                }
            }
            _ => {
                let kinds = [Write, Read, AtomicRead, AtomicWrite, Wait, Free, Allocate, Forget];
                let kind = match random(4) {
                    0 => Write,
                    1 => kinds[random(8) as usize],
                    _ => Read,
                };
                let accesses = (0..=random(2)).map(|_| {
                    let start = random(BYTES / unit) * unit;
                    let len = (random(6) * unit).min(BYTES - start);
                    match random(4) {
                        0 => Access::new(kind, start, len),
                        1 => Access::new(kind, 0, [BYTES, 96, 64, 32][random(4) as usize]),
                        _ => {
                            let pitch = [2, 3, 4, 8, 16, 24][random(6) as usize];
                            let start = random(3) * 8 + random(4);
                            let width = 1 + random(pitch - 1);
                            let most = (BYTES - start - width) / pitch + 1;
                            let rows = [most, most / 2, random(most + 1)][random(3) as usize];
                            Access::new(kind, start, 0).rows(rows, Stride { width, pitch })
                        }
                    }
                });
                let accesses: Vec<Access> = accesses.collect();
                let launch = (random(4) == 0).then(|| random(20));
                both.access(slot, &accesses, launch);
            }
        }
    }
    both.compare();
}

#[test]
fn segments_rows_and_spans_are_as_if_each_byte_were_alone() {
    (0..500).for_each(program);
    // A launch may turn out not to read what was read before.
    let mut both = Both::new(24);
    (0..3).for_each(|piece| both.access(1, &[Access::write(piece * 8, 8)], None));
    let read = Access::read(0, 24);
    both.access(1, std::slice::from_ref(&read), None);
    both.access(1, &[read.clone(), read], Some(1));
    both.compare();
}

/// A part of a span that is read again and again is no span of its own: of two spans at the same
/// bytes, each would take the place of the other's reads.
#[test]
fn spans_do_not_overlap() {
    let mut both = Both::new(48);
    let all = |both: &mut Both| (1..AGENTS).for_each(|slot| both.wait(slot, 1));
    (0..6).for_each(|piece| both.access(1, &[Access::write(piece * 8, 8)], None));
    all(&mut both);
    both.access(2, &[Access::read(0, 48)], None);
    both.wait(1, 2);
    (0..3).for_each(|piece| both.access(1, &[Access::write(piece * 8, 8)], None));
    all(&mut both);
    both.access(2, &[Access::read(0, 24)], None);
    both.wait(3, 2);
    both.access(3, &[Access::read(0, 24)], None);
    both.access(2, &[Access::read(0, 48)], None);
    both.compare();
}

/// What a part of a span has in common with a segment before the span is an access of the span.
#[test]
fn a_span_is_after_what_reaches_into_it() {
    let mut both = Both::new(56);
    (1..7).for_each(|piece| both.access(1, &[Access::write(piece * 8, 8)], None));
    (2..AGENTS).for_each(|slot| both.wait(slot, 1));
    let span = Access::read(8, 48);
    both.access(2, std::slice::from_ref(&span), None);
    [1, 3].into_iter().for_each(|slot| both.wait(slot, 2));
    both.access(3, &[Access::write(0, 12)], None);
    both.access(1, &[Access::write(12, 4)], None);
    [1, 3].into_iter().for_each(|other| both.wait(2, other));
    both.access(2, &[Access::read(0, 8), span.clone()], None);
    both.wait(0, 1);
    both.access(0, &[span], None);
    both.compare();
}

/// As many spans are kept as documented, and rows get as many columns. What is left out is found.
#[test]
fn spans_and_columns_are_bounded() {
    let mut both = Both::new(4096);
    for at in (0..2 * SPANS as u64).map(|at| at * 64) {
        (0..3).for_each(|piece| both.access(1, &[Access::write(at + piece * 8, 8)], None));
        (0..2).for_each(|_| both.access(1, &[Access::read(at, 24)], None));
    }
    assert_eq!(both.whole.spans.len(), SPANS);
    both.compare();
    let mut both = Both::new(1 << 14);
    let mut rows = |pitch, at| {
        let stride = Stride { width: 1, pitch };
        both.access(1, &[Access::write(at, 0).rows((1 << 14) / pitch - 1, stride)], None);
        let rows = both.whole.segments.values().filter_map(|segment| segment.rows.as_ref());
        rows.map(|rows| rows.columns.len()).max()
    };
    let all = (0..200).map(|column| rows(512, column * 2)).last().flatten();
    assert_eq!(all, Some(200));
    assert!(rows(1024, 0).is_none_or(|most| most <= COLUMNS));
    both.compare();
}
