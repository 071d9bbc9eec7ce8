//! Launches beside work elsewhere in the allocations that they have addresses in.
//!
//! Such a pair concerns the program only if the launch's code says so, and there may be many of them:
//! an allocator inside the program has a few allocations for all that it gives. So all of this has an
//! allowance of its own, and what was compared once is not compared again.

use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cuda_order_check_engine::{Access, AccessKind, Launch, Launched, Other, Report, Side};

use crate::code::launch::{Values, mix};
use crate::code::time::NEARBY;
use crate::code::verdict::{OtherWork, Verdict, is_apart, judge_nearby};

/// What the engine asks a launch before it makes a candidate of it.
impl Launch for Values {
    fn number(&self) -> u64 {
        self.number
    }

    fn kernel(&self) -> Option<String> {
        self.code.shown_name()
    }

    fn is_apart(&self, shared: &[Range<u64>], other: &Other<'_>) -> bool {
        is_apart(self, shared, other)
    }

    fn is_near(&self, allocations: &[Range<u64>], other: &Other<'_>) -> bool {
        is_near(self, allocations, other)
    }
}

/// What a candidate costs beside the evaluation of its kernels.
const CANDIDATE: Duration = Duration::from_micros(20);

/// How many pairs were not compared, as the time was used up.
static UNCOMPARED: AtomicU64 = AtomicU64::new(0);

pub(crate) fn uncompared() -> u64 {
    UNCOMPARED.load(Ordering::Relaxed)
}

/// How many pairs there may be that are no candidates.
const PAIRS: usize = 1 << 13;

/// Their numbers, each in the slot that its number says.
static APART: [AtomicU64; PAIRS] = [const { AtomicU64::new(0) }; PAIRS];

/// What a launch is beside: in which way it accesses what, or another launch.
type Beside<'a> = (AccessKind, &'a [Access], Option<&'a Launched>);

/// Where the number of a pair is, and the number, which is that of no other one. None if it has too many
/// accesses.
fn number_of(
    launch: &Values,
    allocations: &[Range<u64>],
    (kind, accesses, other): Beside<'_>,
) -> Option<(&'static AtomicU64, u64)> {
    const ACCESSES: usize = 16;
    if accesses.len() > ACCESSES {
        return None;
    }
    let first = mix(launch.number, kind as u64);
    let add = |number, bytes: &Range<u64>| mix(mix(number, bytes.start), bytes.end);
    let first = allocations.iter().fold(first, add);
    let words = accesses.iter().flat_map(|access| {
        let [width, pitch] = access.stride().map_or([0; 2], |rows| [rows.width, rows.pitch]);
        [access.range.start, access.range.end, width, pitch]
    });
    let other = other.and_then(|other| other.get::<Values>());
    let in_memory = |launch: &Values| launch.recall.as_ref().map(|recall| recall.number);
    let numbers = [other.map(|other| other.number), in_memory(launch), other.and_then(in_memory)];
    let number = words
        .chain(numbers.into_iter().flatten())
        .fold(first, |number, word| mix(number.rotate_left(23), word))
        .max(1);
    Some((APART.get(number as usize % PAIRS)?, number))
}

/// Nobody is to look at such a pair again: the two places are those of another one that was reported, or of
/// no class that is on, or what memory holds says nothing.
pub(crate) fn is_settled(report: &Report) {
    let [launch, other] = match report.second.launch() {
        Some(_) => [&report.second, &report.first],
        None => [&report.first, &report.second],
    };
    if let Some(launch) = launch.launch().and_then(|launch| launch.get::<Values>())
        && let other = (other.kind, other.accesses(), other.launch())
        && let Some((slot, number)) = number_of(launch, &report.shared, other)
    {
        slot.store(number, Ordering::Relaxed);
    }
}

/// The pair has come to nothing, though there was time to ask what memory holds.
pub(crate) fn is_refuted(report: &Report) {
    let recalls = |side: &Side| {
        let launch = side.launch().and_then(|launch| launch.get::<Values>());
        launch.is_some_and(|launch| launch.recall.is_some())
    };
    if (NEARBY.is_left)() && [&report.first, &report.second].into_iter().any(recalls) {
        is_settled(report);
    }
}

/// Whether a launch with addresses in these allocations may be a candidate with work elsewhere in them.
fn is_near(launch: &Values, allocations: &[Range<u64>], other: &Other<'_>) -> bool {
    if !(NEARBY.is_left)() {
        UNCOMPARED.fetch_add(1, Ordering::Relaxed);
        return false;
    }
    let pair = number_of(launch, allocations, (other.kind, other.accesses, other.launch));
    if pair.is_some_and(|(slot, number)| slot.load(Ordering::Relaxed) == number) {
        return false;
    }
    let begin = Instant::now();
    // Kernels that were not evaluated are when the candidate is judged.
    let second = other.launch.and_then(|other| other.get::<Values>());
    let is_met = |launch, second| match compare(launch, second, allocations, other) {
        Some(verdict) => matches!(verdict, Verdict::Certain(_) | Verdict::Likely(_)),
        None => true,
    };
    let may_meet = is_met(launch, second)
        // What is in memory is looked at when the candidate is judged, too.
        || match (launch.earlier_recalled(), second.map_or(Some(None), Values::earlier_recalled)) {
            (Some(None), Some(None)) => false,
            (Some(own), Some(others)) => is_met(own.unwrap_or(launch), others.or(second)),
            _ => true,
        };
    if !may_meet {
        pair.into_iter().for_each(|(slot, number)| slot.store(number, Ordering::Relaxed));
    }
    (NEARBY.spend)(begin.elapsed() + if may_meet { CANDIDATE } else { Duration::ZERO });
    may_meet
}

/// What the two mean, if both were evaluated.
fn compare(
    launch: &Values,
    second: Option<&Values>,
    allocations: &[Range<u64>],
    other: &Other<'_>,
) -> Option<Verdict> {
    let unknown = Some(Verdict::Refuted);
    let Ok(found) = launch.evaluated()? else { return unknown };
    let Some(second) = second else {
        if other.launch.is_some() {
            return unknown;
        }
        let work = OtherWork::of_device(other);
        return Some(judge_nearby((launch, &found), Err(work), 0, allocations, None));
    };
    match second.evaluated()? {
        Ok(other) => {
            Some(judge_nearby((launch, &found), Ok((second, &other)), 0, allocations, None))
        }
        Err(_) => unknown,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cuda_order_check_engine::{Access, AccessKind, Stride};

    use super::number_of;
    use crate::code::kernel::KernelCode;
    use crate::code::launch::Values;

    /// Whatever differs between two pairs, they have two numbers; those with many accesses have none.
    #[test]
    fn pairs_that_are_alike_have_one_number() {
        let code = || Arc::new(KernelCode::new("kernel".to_owned(), 90, None));
        let [one, two] = [(); 2].map(|()| Values::new(code(), [1; 6], &[7], false));
        let read = |first, bytes| Access::read(first, bytes);
        let number = |launch: &Values, allocations: &[(u64, u64)], kind, accesses: &[Access]| {
            let allocations: Vec<_> = allocations.iter().map(|(start, end)| *start..*end).collect();
            number_of(launch, &allocations, (kind, accesses, None)).map(|(_, number)| number)
        };
        let memory = [(0x1000, 0x2000), (0x3000, 0x4000)];
        let rows = |width, pitch| read(0x1000, width).rows(4, Stride { width, pitch });
        let first = || number(&one, &memory, AccessKind::Read, &[read(0x1000, 8), read(0x1100, 8)]);
        assert_eq!(first(), first());
        let mut all = vec![
            first(),
            number(&two, &memory, AccessKind::Read, &[read(0x1000, 8), read(0x1100, 8)]),
            number(&one, &memory, AccessKind::Write, &[read(0x1000, 8), read(0x1100, 8)]),
            number(&one, &memory[..1], AccessKind::Read, &[read(0x1000, 8), read(0x1100, 8)]),
            number(&one, &memory, AccessKind::Read, &[read(0x1008, 8), read(0x1100, 8)]),
            number(&one, &memory, AccessKind::Read, &[read(0x1000, 9), read(0x1100, 8)]),
            number(&one, &memory, AccessKind::Read, &[read(0x1100, 8), read(0x1000, 8)]),
            number(&one, &memory, AccessKind::Read, &[read(0x1000, 8)]),
            number(&one, &memory, AccessKind::Read, &[rows(8, 16)]),
            number(&one, &memory, AccessKind::Read, &[rows(8, 32)]),
            number(&one, &memory, AccessKind::Read, &[rows(9, 16)]),
        ];
        for (at, other) in [(0, (0x1001, 0x2000)), (0, (0x1000, 0x2001)), (1, (0x3000, 0x4001))] {
            let mut memory = memory;
            memory[at] = other;
            let accesses = [read(0x1000, 8), read(0x1100, 8)];
            all.push(number(&one, &memory, AccessKind::Read, &accesses));
        }
        assert!(all.iter().all(Option::is_some));
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
        let many = |count| {
            let accesses: Vec<_> = (0..count).map(|at| read(0x1000 + 16 * at, 8)).collect();
            number(&one, &memory, AccessKind::Read, &accesses)
        };
        assert!(many(16).is_some() && many(17).is_none());
    }
}
