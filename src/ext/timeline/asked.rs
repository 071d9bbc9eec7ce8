//! When a timeline was last asked about.

use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::sync::OnceLock;

use crate::ext::needs::Moment;

/// How often whoever waits asks the driver whether the context works. It is a part of the bound
/// that the documentation of points promises.
pub(super) const ASK: Duration = Duration::from_millis(5);

/// When somebody who waits for a timeline last asked whether it works.
pub(super) struct Asked {
    /// When somebody first waited.
    first: OnceLock<Moment>,
    /// In nanoseconds since then, or `NEVER`.
    last: AtomicU64,
}

const NEVER: u64 = u64::MAX;

impl Asked {
    pub(super) const fn new() -> Self {
        Self { first: OnceLock::new(), last: AtomicU64::new(NEVER) }
    }

    /// A new timeline begins, of which nobody has asked.
    pub(super) fn begin(&self) {
        self.last.store(NEVER, Ordering::Relaxed);
    }

    /// Notes a question.
    pub(super) fn note(&self, now: Moment) {
        self.last.store(self.since_first(now), Ordering::Relaxed);
    }

    /// Whether it is time for a question; if so, this thread has to ask. The time runs from the
    /// first time that somebody wants to know.
    pub(super) fn is_due(&self, now: Moment) -> bool {
        let now = self.since_first(now);
        let last = self.last.load(Ordering::Relaxed);
        if last != NEVER && u128::from(now.saturating_sub(last)) < ASK.as_nanos() {
            return false;
        }
        let order = Ordering::Relaxed;
        // Of several threads one asks.
        let won = self.last.compare_exchange(last, now, order, order).is_ok();
        won && last != NEVER
    }

    fn since_first(&self, now: Moment) -> u64 {
        let since = now - *self.first.get_or_init(|| now);
        u64::try_from(since.as_nanos()).unwrap_or(NEVER - 1)
    }
}
