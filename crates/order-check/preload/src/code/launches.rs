//! Where and when a kernel was launched.

use core::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use cuda_order_check_engine::Launched;

use crate::lock::{Lock, Rank};

/// Each kernel has so many streams by themselves.
pub(super) const STREAMS: usize = 4;

/// The number of a launch that may come at any time, as one of a graph does.
pub(super) const ANY_TIME: u64 = u64::MAX;

/// The calls that launched a kernel first and last in a stream. No stream has the number `NONE`. It is
/// written with the checker's lock alone, so that no two writes meet.
#[derive(Debug)]
pub(super) struct InStream {
    stream: AtomicU64,
    first: AtomicU64,
    pub(super) last: AtomicU64,
}

const NONE: u64 = u64::MAX;

impl InStream {
    const fn new() -> Self {
        Self {
            stream: AtomicU64::new(NONE),
            first: AtomicU64::new(ANY_TIME),
            last: AtomicU64::new(0),
        }
    }

    pub(super) fn add(&self, number: u64) {
        let first = if number == ANY_TIME { 0 } else { number };
        if first < self.first.load(Ordering::Relaxed) {
            self.first.store(first, Ordering::Relaxed);
        }
        if number > self.last.load(Ordering::Relaxed) {
            self.last.store(number, Ordering::Relaxed);
        }
    }

    pub(super) fn numbers(&self) -> Option<[u64; 2]> {
        let numbers = [&self.first, &self.last].map(|number| number.load(Ordering::Relaxed));
        (numbers[1] > 0).then_some(numbers)
    }
}

/// Where a kernel was launched.
#[derive(Debug)]
pub(crate) struct Launches {
    /// Whether it is one of those in [the list](super::signals): `NEW`, `LISTED` or `TOO_MANY`.
    pub(super) place_in_list: AtomicU8,
    streams: [InStream; STREAMS],
    /// In other streams, and in graphs, which may be launched in any.
    pub(super) elsewhere: InStream,
    /// With memory that the host may access, too.
    pub(super) with_host: InStream,
    /// The last launch of those before that.
    pub(super) with_host_before: AtomicU64,
    /// What it was launched with last, if that had addresses.
    pub(super) last: Lock<Option<Launched>>,
}

pub(super) const NEW: u8 = 0;
pub(super) const LISTED: u8 = 1;
pub(super) const TOO_MANY: u8 = 2;

impl Launches {
    pub(crate) fn new() -> Self {
        Self {
            place_in_list: AtomicU8::new(NEW),
            streams: [const { InStream::new() }; STREAMS],
            elsewhere: InStream::new(),
            with_host: InStream::new(),
            with_host_before: AtomicU64::new(0),
            last: Lock::new(Rank::Answers, None),
        }
    }

    pub(super) fn place(&self, stream: Option<u64>) -> &InStream {
        let Some(stream) = stream else { return &self.elsewhere };
        let is_it = |place: &&InStream| match place.stream.load(Ordering::Relaxed) {
            NONE => {
                place.stream.store(stream, Ordering::Relaxed);
                true
            }
            other => other == stream,
        };
        self.streams.iter().find(is_it).unwrap_or(&self.elsewhere)
    }

    /// The streams, `None` for any, with the first and the last call in each.
    pub(super) fn all(&self) -> impl Iterator<Item = (Option<u64>, [u64; 2])> {
        self.streams.iter().chain([&self.elsewhere]).filter_map(|place| {
            let stream = place.stream.load(Ordering::Relaxed);
            Some(((stream != NONE).then_some(stream), place.numbers()?))
        })
    }
}
