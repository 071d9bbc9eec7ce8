//! A timeline in memory: one cache line, which devices, threads and processes share.

use crate::error::{Error, Result};
use crate::sync::{AtomicU64, Ordering};
use cuda_events::Progress;
use cuda_events::sys::{CUresult, Function};

/// Set in the value of a poisoned timeline. The bits below it keep the last value that was reached.
///
/// A stream waits until memory minus value, as a signed number, is not negative. A value with this
/// bit is larger than each value that can be waited for, and not by half the range: it ends every
/// wait of a stream. Poison and the last value change in one step, so that a point that was reached
/// stays reached.
const POISON: u64 = 1 << 62;

/// The largest value that a timeline can have: a signal a nanosecond reaches it in 146 years.
pub(super) const LARGEST: u64 = POISON - 1;

/// The reason of a poison that is no driver error. It is no code of the driver's, which have 32
/// bits.
const GIVEN_UP: u64 = u64::MAX;

/// The reason where the exporter's process has ended.
const GONE: u64 = u64::MAX - 1;

/// How many lines a page has.
pub(super) const LINES: usize = 64;
pub(super) const BYTES: usize = LINES * size_of::<Line>();

/// The value, why it is poisoned, and which timeline has the line.
///
/// Devices and other processes write it, and nothing in it is trusted. Values are only compared:
/// with any value, a point may at worst look reached or poisoned. The reason of a poison is
/// believed only if no other process can write the line: see [`Failure`](super::shared_failure::Failure)
/// and [`Foreign`](super::foreign::Foreign).
///
/// All of it may be zero, as fresh memory is.
#[derive(Default)]
#[repr(C, align(64))]
pub(super) struct Line {
    value: AtomicU64,
    /// 0, a code of the driver's, or `GIVEN_UP`.
    poison: AtomicU64,
    /// How many timelines have had the line.
    version: AtomicU64,
    rest: [AtomicU64; 5],
}

impl Line {
    /// Where the poison is in the value, and the byte that it makes there. Values of timelines
    /// never come that far: a signal a nanosecond does in two years.
    pub(super) const POISONED_BYTE: (u64, u8) = if cfg!(target_endian = "little") {
        (7, (POISON >> 56) as u8)
    } else {
        (0, (POISON >> 56) as u8)
    };

    /// The last value that was reached.
    ///
    /// A thread that reads a value sees the writes of the work before its signal. Step by step: the
    /// stream ends that work; the driver's write of the value is ordered after the work's writes
    /// for the whole system, because the flag that would lift that is not given; the load here
    /// acquires, so this thread's later reads are not moved before it. For a signal of the host the
    /// release in `advance` takes the place of the first two steps.
    #[inline(always)]
    pub(super) fn reached(&self) -> u64 {
        self.value.load(Ordering::Acquire) & LARGEST
    }

    /// The address of the value, and what is there.
    pub(super) fn word(&self) -> (usize, u64) {
        (core::ptr::from_ref(&self.value).addr(), self.value.load(Ordering::Acquire))
    }

    /// Whether the value was reached; the error is that it will not be. One load if it was, and two
    /// of this line if not.
    #[inline(always)]
    pub(super) fn look(&self, value: u64) -> Result<Progress> {
        let now = self.value.load(Ordering::Acquire);
        if now & LARGEST >= value {
            return Ok(Progress::Done);
        }
        // A stream that still works may write over the bit in the value, and not over the reason:
        // so a line that is poisoned stays so. Loaded after the value, as that load acquires: who
        // sees the bit sees the reason, which was stored before it.
        let reason = self.poison.load(Ordering::Acquire);
        if now <= LARGEST && reason == 0 { Ok(Progress::Pending) } else { Err(error(reason)) }
    }

    pub(super) fn is_poisoned(&self) -> bool {
        self.value.load(Ordering::Acquire) > LARGEST || self.poison.load(Ordering::Acquire) != 0
    }

    /// The host's signal: the next value.
    ///
    /// It releases the host's earlier writes to all threads that read the value. One atomic
    /// operation both counts and publishes, so threads that signal at once get different values,
    /// and the value never goes back.
    pub(super) fn advance(&self) -> u64 {
        (self.value.fetch_add(1, Ordering::Release) & LARGEST) + 1
    }

    /// Poisons the line: `code` is the driver's, or none. The first reason stays.
    ///
    /// Hosts see the reason from now on. Streams see the value. A later write of a stream removes
    /// the bit from it, so a stream that still works must write the poison once more at the end.
    pub(super) fn poison(&self, code: Option<CUresult>) {
        self.poison_for(code.map_or(GIVEN_UP, |code| u64::from(code.0)));
    }

    /// Poisons the line of a process that has ended; at any other time it is that process's.
    pub(super) fn bury(&self) {
        self.poison_for(GONE);
    }

    fn poison_for(&self, reason: u64) {
        // Spare exchange: no check poisons a line twice, or while it is signalled.
        let _ = self.poison.compare_exchange(0, reason, Ordering::AcqRel, Ordering::Relaxed);
        self.value.fetch_or(POISON, Ordering::AcqRel);
    }

    /// Has the value be at least this one. The line must be one that no stream writes.
    pub(super) fn raise(&self, value: u64) {
        // Spare exchange: the checks have one thread that raises it. With two, the larger stays.
        self.value.fetch_max(value, Ordering::AcqRel);
    }

    /// Has the value be at least this one, and the line be as one that was never poisoned. The line
    /// must be one that no stream writes, and poison must have been the host's. Streams that wait
    /// for values up to this one are released as they were by the poison.
    pub(super) fn settle(&self, value: u64) -> u64 {
        let value = value.max(self.reached());
        // The value first: a waiting thread must find one or the other.
        self.value.store(value, Ordering::Release);
        self.poison.store(0, Ordering::Release);
        value
    }

    /// Whether a stream that waits for any value goes on, if it looks now.
    pub(super) fn releases_all(&self) -> bool {
        // As a stream compares: memory minus value, as a signed number.
        self.value.load(Ordering::Acquire).wrapping_sub(LARGEST) as i64 >= 0
    }

    /// Ends all waits, after the last signal: no stream may have anything to write there.
    pub(super) fn end(&self) {
        self.value.fetch_or(POISON, Ordering::AcqRel);
    }

    /// Whether all waits were ended after the last signal, by its stream or by [`end`](Self::end),
    /// and not earlier.
    pub(super) fn has_ended(&self) -> bool {
        // Spare ordering: nothing is read because of it.
        self.releases_all() && self.poison.load(Ordering::Acquire) == 0
    }

    /// Stores words, the first of which come first.
    pub(super) fn put(&self, words: [u64; 2]) {
        self.value.store(words[0], Ordering::Release);
        self.poison.store(words[1], Ordering::Release);
    }

    /// What [`put`](Self::put) stored.
    pub(super) fn words(&self) -> [u64; 2] {
        [self.value.load(Ordering::Acquire), self.poison.load(Ordering::Acquire)]
    }

    /// Notes in the first line of a file who made it: the number of the process, and when it
    /// started.
    #[cfg(windows)]
    pub(super) fn put_maker(&self, words: [u64; 2]) {
        let [number, started, ..] = &self.rest;
        number.store(words[0], Ordering::Release);
        started.store(words[1], Ordering::Release);
    }

    /// What [`put_maker`](Self::put_maker) stored.
    #[cfg(windows)]
    pub(super) fn maker(&self) -> [u64; 2] {
        let [number, started, ..] = &self.rest;
        [number.load(Ordering::Acquire), started.load(Ordering::Acquire)]
    }

    /// Notes in the first line of a file that its exporter does not have it any more.
    #[cfg(windows)]
    pub(super) fn give_up(&self) {
        let [_, _, given_up, ..] = &self.rest;
        given_up.store(1, Ordering::Release);
    }

    /// Whether its exporter has noted that.
    #[cfg(windows)]
    pub(super) fn is_given_up(&self) -> bool {
        let [_, _, given_up, ..] = &self.rest;
        given_up.load(Ordering::Acquire) != 0
    }

    /// The value that a stream writes after its last signal, to end all waits of other streams.
    pub(super) fn end_after(last: u64) -> u64 {
        last | POISON
    }

    /// Whether the value is this one, and the line was never poisoned: a stream that still worked
    /// may have written over the bit in the value, and the reason stays.
    pub(super) fn is_exactly(&self, value: u64) -> bool {
        self.value.load(Ordering::Acquire) == value && self.poison.load(Ordering::Acquire) == 0
    }

    /// Notes that another timeline has the line from now on.
    pub(super) fn begin(&self) {
        self.version.fetch_add(1, Ordering::Relaxed);
    }
}

/// The error of a line that is poisoned for this reason.
#[cold]
fn error(reason: u64) -> Error {
    if reason == GONE {
        return Error::ExporterGone;
    }
    match u32::try_from(reason) {
        // Only the bit is there: the timeline was dropped.
        Ok(0) | Err(_) => Error::Poisoned,
        Ok(code) => failure(CUresult(code)),
    }
}

/// The error of a timeline whose context has failed.
pub(super) fn failure(code: CUresult) -> Error {
    cuda_events::Error::Driver { function: Function::cuEventQuery, code }.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line() -> Line {
        Line {
            value: AtomicU64::new(0),
            poison: AtomicU64::new(0),
            version: AtomicU64::new(0),
            rest: Default::default(),
        }
    }

    /// As a stream waits: memory minus value, as a signed number.
    fn releases(line: &Line, value: u64) -> bool {
        line.value.load(Ordering::Relaxed).wrapping_sub(value) as i64 >= 0
    }

    #[test]
    fn poison_ends_all_waits() {
        for reached in [0, 1, 7, LARGEST - 1, LARGEST] {
            let line = line();
            line.value.store(reached, Ordering::Relaxed);
            assert!(releases(&line, reached) && !line.is_poisoned());
            assert!(reached == LARGEST || !releases(&line, LARGEST));
            line.poison(None);
            assert!(line.is_poisoned());
            for value in [0, 1, reached, reached + 1, LARGEST] {
                assert!(releases(&line, value), "{reached} {value}");
                let expected =
                    if value <= reached { Ok(Progress::Done) } else { Err(Error::Poisoned) };
                assert_eq!(line.look(value), expected, "{reached} {value}");
            }
            assert_eq!(line.reached(), reached);
        }
    }

    #[test]
    fn the_first_reason_stays() {
        let line = line();
        line.poison(Some(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS));
        line.poison(None);
        let code = CUresult::CUDA_ERROR_ILLEGAL_ADDRESS;
        assert_eq!(line.look(1), Err(failure(code)));
        assert_eq!(line.look(0), Ok(Progress::Done));
    }

    /// Whatever another process writes, nothing panics, and the host sees one of three things.
    #[test]
    fn any_bytes_are_looked_at_in_peace() {
        let interesting = [0, 1, POISON, LARGEST, POISON | 5, 1 << 63, u64::MAX, u64::MAX - 1];
        for value in interesting {
            for poison in interesting {
                let line = line();
                line.value.store(value, Ordering::Relaxed);
                line.poison.store(poison, Ordering::Relaxed);
                for asked in interesting {
                    let _ = line.look(asked & LARGEST);
                }
                assert!(line.reached() <= LARGEST);
            }
        }
    }

    #[test]
    fn the_host_counts_on_in_one_step() {
        let line = line();
        let mut values: Vec<u64> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| scope.spawn(|| (0..1000).map(|_| line.advance()).collect::<Vec<_>>()))
                .collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        values.sort_unstable();
        assert!(values.into_iter().eq(1..=4000));
        assert_eq!(line.reached(), 4000);
    }
}
