//! What is known of the waits and writes of values that are under way: whether a wait may be ahead
//! of its write.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::mem_ops::{ValueWait, ValueWrite, WordKey};

/// The waits and writes of values that were submitted and are not done.
pub(crate) struct Values {
    /// Waits by their places, that neither memory nor an earlier write had the value for.
    ahead: BTreeMap<u64, ValueWait>,
    /// Writes by their words and places.
    writes: BTreeMap<WordKey, BTreeMap<u64, u64>>,
    /// The waits of a deadlock that was told and lasts.
    told: BTreeSet<u64>,
}

impl Values {
    pub(crate) const fn new() -> Self {
        Self { ahead: BTreeMap::new(), writes: BTreeMap::new(), told: BTreeSet::new() }
    }

    /// Whether a write that is under way, and was submitted before a place, is for a wait.
    fn has_write(&self, wait: &ValueWait, before: u64) -> bool {
        let writes = self.writes.get(&wait.word.key()).map(|writes| writes.range(..before));
        // The latest is most likely the one.
        writes.is_some_and(|writes| writes.rev().any(|(_, value)| wait.is_met_by(*value)))
    }

    /// A wait is submitted.
    pub(crate) fn waits(&mut self, at: u64, wait: &ValueWait) {
        if !wait.is_done() {
            self.parked(at, wait);
        }
    }

    /// A wait came to its turn, and the value is not there.
    pub(crate) fn parked(&mut self, at: u64, wait: &ValueWait) {
        if !self.ahead.contains_key(&at) && !self.has_write(wait, at) {
            self.ahead.insert(at, wait.clone());
        }
    }

    pub(crate) fn passed(&mut self, at: u64) {
        self.ahead.remove(&at);
        self.told.remove(&at);
    }

    pub(crate) fn writes(&mut self, at: u64, write: &ValueWrite) {
        self.writes.entry(write.word.key()).or_default().insert(at, write.value);
    }

    pub(crate) fn written(&mut self, at: u64, write: &ValueWrite) {
        if let Some(writes) = self.writes.get_mut(&write.word.key()) {
            writes.remove(&at);
            if writes.is_empty() {
                self.writes.remove(&write.word.key());
            }
        }
    }

    /// Whether there can be a deadlock that was not told: a wait ahead of its write.
    pub(crate) fn suspicious(&self) -> bool {
        self.told.is_empty() && self.ahead.values().any(|wait| self.has_write(wait, u64::MAX))
    }

    /// The writes that are under way, by their words and places.
    pub(crate) fn to_write(&self) -> BTreeMap<WordKey, BTreeMap<u64, u64>> {
        self.writes.clone()
    }

    /// A deadlock of these waits is told: until all of them are over nothing else is.
    pub(crate) fn tell(&mut self, waits: BTreeSet<u64>) {
        self.told = waits;
    }
}
