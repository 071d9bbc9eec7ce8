//! Launches beside work elsewhere in the allocations that they have addresses in.
//!
//! Such a pair concerns the program only if the launch's code says so, and there may be many of them:
//! an allocator inside the program has a few allocations for all that it gives. So all of this has an
//! allowance of its own, and what was compared once is not compared again.

use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use cuda_order_check_engine::{Access, AccessKind, Launched, Other, Report};

use crate::code::kernel::KernelCode;
use crate::code::launch::{Values, mix};
use crate::code::threads::Time;
use crate::code::verdict::{OtherWork, Verdict, of_nearby};

/// The time that all of this may take: so much, and a fiftieth of the program's time.
const ALLOWANCE: Duration = match cfg!(debug_assertions) {
    true => Duration::from_secs(3600),
    false => Duration::from_millis(500),
};
const PART: u32 = 50;

/// What a candidate costs beside the evaluation of its kernels.
const CANDIDATE: Duration = Duration::from_micros(20);

/// The nanoseconds that were spent.
static SPENT: AtomicU64 = AtomicU64::new(0);

/// The time of what is here.
pub(crate) const TIME: Time = Time { is_left: has_time, spend };

fn spend(time: Duration) {
    SPENT.fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
}

/// The time, to some milliseconds: a launch may come here often.
fn now() -> Duration {
    // SAFETY: zero bytes are a time.
    let mut time: libc::timespec = unsafe { core::mem::zeroed() };
    // SAFETY: a place for the time.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn has_time() -> bool {
    static BEGIN: OnceLock<Duration> = OnceLock::new();
    let allowed = ALLOWANCE + now().saturating_sub(*BEGIN.get_or_init(now)) / PART;
    Duration::from_nanos(SPENT.load(Ordering::Relaxed)) < allowed
}

/// How many pairs were not compared, as the time was used up.
static UNCOMPARED: AtomicU64 = AtomicU64::new(0);

pub(crate) fn uncompared() -> u64 {
    UNCOMPARED.load(Ordering::Relaxed)
}

/// How many pairs are known to be no candidates.
const PAIRS: usize = 1 << 13;

/// Their numbers, each at a place that its number says.
static APART: [AtomicU64; PAIRS] = [const { AtomicU64::new(0) }; PAIRS];

/// What a launch is beside: in which way it accesses what, or another launch.
type Beside<'a> = (AccessKind, &'a [Access], Option<&'a Launched>);

/// The place of a pair, and its number, which is that of no other one. None if it has too many accesses.
fn place_of(
    launch: &Values,
    allocations: &[Range<u64>],
    (kind, accesses, other): Beside<'_>,
) -> Option<(&'static AtomicU64, u64)> {
    const ACCESSES: usize = 16;
    if accesses.len() > ACCESSES {
        return None;
    }
    let first = mix(launch.number, kind as u64);
    let first = allocations.iter().fold(first, |number, of| mix(mix(number, of.start), of.end));
    let words = accesses.iter().flat_map(|of| {
        let [width, pitch] = of.stride().map_or([0; 2], |of| [of.width, of.pitch]);
        [of.range.start, of.range.end, width, pitch]
    });
    let other = other.and_then(|of| of.get::<Values>()).map(|of| of.number);
    let number =
        words.chain(other).fold(first, |number, of| mix(number.rotate_left(23), of)).max(1);
    Some((APART.get(number as usize % PAIRS)?, number))
}

/// The two places of a candidate are those of another one that was reported, or of no class that is on.
pub(crate) fn is_settled(report: &Report) {
    let [launch, other] = match report.second.launch() {
        Some(_) => [&report.second, &report.first],
        None => [&report.first, &report.second],
    };
    if let Some(launch) = launch.launch().and_then(|of| of.get::<Values>())
        && let other = (other.kind, other.accesses(), other.launch())
        && let Some((place, number)) = place_of(launch, &report.shared, other)
    {
        place.store(number, Ordering::Relaxed);
    }
}

/// Whether a launch with addresses in these allocations may be a candidate with work elsewhere in them.
pub(crate) fn is_near(launch: &Values, allocations: &[Range<u64>], other: &Other<'_>) -> bool {
    if !has_time() {
        UNCOMPARED.fetch_add(1, Ordering::Relaxed);
        return false;
    }
    let place = place_of(launch, allocations, (other.kind, other.accesses, other.launch));
    if place.is_some_and(|(place, number)| place.load(Ordering::Relaxed) == number) {
        return false;
    }
    let begin = Instant::now();
    // Kernels that were not evaluated are when the candidate is judged.
    let may_meet = match compare(launch, allocations, other) {
        Some(verdict) => matches!(verdict, Verdict::Certain(_) | Verdict::Likely(_)),
        None => true,
    };
    if !may_meet {
        place.into_iter().for_each(|(place, number)| place.store(number, Ordering::Relaxed));
    }
    spend(begin.elapsed() + if may_meet { CANDIDATE } else { Duration::ZERO });
    may_meet
}

/// What the two mean, if both were evaluated.
fn compare(launch: &Values, allocations: &[Range<u64>], other: &Other<'_>) -> Option<Verdict> {
    let unknown = Some(Verdict::Refuted);
    let Ok(found) = KernelCode::known(launch)? else { return unknown };
    let Some(second) = other.launch else {
        let work = OtherWork::of_device(other);
        return Some(of_nearby((launch, &found), Err(work), 0, allocations, None));
    };
    let Some(second) = second.get::<Values>() else { return unknown };
    match KernelCode::known(second)? {
        Ok(of) => Some(of_nearby((launch, &found), Ok((second, &of)), 0, allocations, None)),
        Err(_) => unknown,
    }
}

/// For tests: the allowance is used up, or there is a new one.
#[cfg(test)]
pub(crate) fn set_spent(all: bool) {
    let spent = if all { u64::MAX / 2 } else { 0 };
    SPENT.store(spent, Ordering::Relaxed);
}

#[cfg(test)]
pub(crate) fn spent() -> Duration {
    Duration::from_nanos(SPENT.load(Ordering::Relaxed))
}
