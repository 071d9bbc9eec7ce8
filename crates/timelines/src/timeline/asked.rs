//! When a timeline was last asked about.

use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::sync::OnceLock;

use crate::time::Moment;

/// How often a waiter asks the driver whether the context works. The documented bound of points
/// includes it.
pub(super) const ASK: Duration = Duration::from_millis(5);

/// The time at which a waiter last asked whether the timeline's context works.
pub(super) struct Asked {
    /// The time of the first wait.
    first: OnceLock<Moment>,
    /// In nanoseconds since then, or `NEVER`.
    last: AtomicU64,
}

const NEVER: u64 = u64::MAX;

impl Asked {
    pub(super) const fn new() -> Self {
        Self { first: OnceLock::new(), last: AtomicU64::new(NEVER) }
    }

    /// Begins a new timeline, about which no waiter has asked.
    pub(super) fn begin(&self) {
        self.last.store(NEVER, Ordering::Relaxed);
    }

    /// Notes that a thread has asked the driver.
    pub(super) fn note(&self, now: Moment) {
        self.last.store(self.since_first(now), Ordering::Relaxed);
    }

    /// Whether a question is due; this thread must then ask. The time runs from the first wait.
    pub(super) fn is_due(&self, now: Moment) -> bool {
        let now = self.since_first(now);
        let last = self.last.load(Ordering::Relaxed);
        if last != NEVER && u128::from(now.saturating_sub(last)) < ASK.as_nanos() {
            return false;
        }
        let order = Ordering::Relaxed;
        // If several threads come here at once, one of them asks.
        let won = self.last.compare_exchange(last, now, order, order).is_ok();
        won && last != NEVER
    }

    fn since_first(&self, now: Moment) -> u64 {
        let since = now - *self.first.get_or_init(|| now);
        u64::try_from(since.as_nanos()).unwrap_or(NEVER - 1)
    }
}
