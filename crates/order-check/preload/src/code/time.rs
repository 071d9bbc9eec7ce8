//! The time that questions about the code of kernels may take, and where it is counted.

use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Whether there is time for more, and where it is counted.
#[derive(Clone, Copy)]
pub(crate) struct Time {
    pub(crate) is_left: fn() -> bool,
    pub(crate) spend: fn(Duration),
}

/// The processor time of the calling thread: what it has done does not depend on what else the machine
/// does.
pub(crate) fn thread_time() -> Duration {
    clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

fn clock(clock: libc::clockid_t) -> Duration {
    // SAFETY: zero bytes are a time.
    let mut time: libc::timespec = unsafe { core::mem::zeroed() };
    // SAFETY: a place for the time.
    unsafe { libc::clock_gettime(clock, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The time for judging candidates.
pub(crate) const CANDIDATES: Time =
    Time { is_left: candidates_have_time, spend: spend_on_candidates };

/// Candidates may take so much processor time, and a twentieth of the program's time.
const CANDIDATES_MAY_TAKE: Duration = match cfg!(debug_assertions) {
    true => Duration::from_secs(3600),
    false => Duration::from_secs(10),
};

/// The microseconds that candidates took.
static ON_CANDIDATES: AtomicU64 = AtomicU64::new(0);

fn spend_on_candidates(time: Duration) {
    ON_CANDIDATES.fetch_add(time.as_micros() as u64, Ordering::Relaxed);
}

fn candidates_have_time() -> bool {
    static BEGIN: OnceLock<Instant> = OnceLock::new();
    let begin = BEGIN.get_or_init(Instant::now);
    let spent = Duration::from_micros(ON_CANDIDATES.load(Ordering::Relaxed));
    spent < CANDIDATES_MAY_TAKE + begin.elapsed() / 20
}

/// The time for launches beside work elsewhere in their allocations.
pub(crate) const NEARBY: Time = Time { is_left: nearby_has_time, spend: spend_on_nearby };

/// Such pairs may take so much, and a fiftieth of the program's time.
const NEARBY_MAY_TAKE: Duration = match cfg!(debug_assertions) {
    true => Duration::from_secs(3600),
    false => Duration::from_millis(500),
};

/// The nanoseconds that such pairs took.
static ON_NEARBY: AtomicU64 = AtomicU64::new(0);

fn spend_on_nearby(time: Duration) {
    ON_NEARBY.fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
}

fn nearby_has_time() -> bool {
    static BEGIN: OnceLock<Duration> = OnceLock::new();
    // To some milliseconds: a launch may come here often.
    let now = || clock(libc::CLOCK_MONOTONIC_COARSE);
    let allowed = NEARBY_MAY_TAKE + now().saturating_sub(*BEGIN.get_or_init(now)) / 50;
    Duration::from_nanos(ON_NEARBY.load(Ordering::Relaxed)) < allowed
}

/// For tests: the allowance for candidates is used up, or there is a new one.
#[cfg(test)]
pub(crate) fn set_spent_on_candidates(all: bool) {
    let spent = if all { u64::MAX / 2 } else { 0 };
    ON_CANDIDATES.store(spent, Ordering::Relaxed);
}

/// For tests: the allowance for pairs is used up, or there is a new one.
#[cfg(test)]
pub(crate) fn set_spent_on_nearby(all: bool) {
    let spent = if all { u64::MAX / 2 } else { 0 };
    ON_NEARBY.store(spent, Ordering::Relaxed);
}

#[cfg(test)]
pub(crate) fn spent_on_nearby() -> Duration {
    Duration::from_nanos(ON_NEARBY.load(Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::thread_time;

    /// Other threads' work does not count, and neither does a wait.
    #[test]
    fn the_time_is_that_of_the_thread() {
        let begin = (thread_time(), Instant::now());
        let busy = std::thread::spawn(|| while thread_time() < Duration::from_millis(20) {});
        busy.join().expect("no panic");
        std::thread::sleep(Duration::from_millis(20));
        let waited = begin.1.elapsed();
        assert!(waited >= Duration::from_millis(40));
        assert!(thread_time().saturating_sub(begin.0) < waited / 2);
        while thread_time().saturating_sub(begin.0) < Duration::from_millis(5) {}
    }
}
