//! Work of a given duration: a stream is busy until a time, and does nothing else meanwhile. Any
//! number of streams are busy at the same time.

use std::collections::BTreeMap;

/// The streams that are busy, by the time at which each is done and by the order of their begin.
pub(crate) struct Busy {
    pub(crate) until: BTreeMap<(u64, u64), (u32, u64)>,
    pub(crate) begun: u64,
}

/// Whether virtual time may go on while a thread of the program waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Passing {
    /// Nothing else is left to do.
    Now,
    /// Only functions of the program run. They may take as long as they like, or wait for the very
    /// thread that waits.
    Soon,
    /// Work that takes no time in this sense is left, or nothing is busy.
    No,
}

impl Busy {
    pub(crate) const fn new() -> Self {
        Self { until: BTreeMap::new(), begun: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.until.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.until.clear();
    }

    /// When the next one is done.
    pub(crate) fn next(&self) -> Option<u64> {
        self.until.first_key_value().map(|(key, _)| key.0)
    }
}
