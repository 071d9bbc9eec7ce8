//! The waits and writes of values that streams have, for the search for deadlocks, and the deadlocks
//! that it found.

use std::collections::{BTreeMap, BTreeSet};

use crate::machine::config::OnDeadlock;
use crate::memory::word::{ValueWait, ValueWrite, WordKey};

/// The waits and writes of values that were submitted and are not done.
pub(crate) struct Values {
    /// Waits by their places, that no earlier write had the value for.
    ahead: BTreeMap<u64, ValueWait>,
    /// Writes by their words and places.
    writes: BTreeMap<WordKey, BTreeMap<u64, u64>>,
    /// The waits of a reported deadlock that lasts.
    reported: BTreeSet<u64>,
    /// The deadlocks that were found, in words.
    found: Vec<String>,
    pub(super) reaction: OnDeadlock,
}

impl Values {
    pub(super) const fn new() -> Self {
        Self {
            ahead: BTreeMap::new(),
            writes: BTreeMap::new(),
            reported: BTreeSet::new(),
            found: Vec::new(),
            reaction: OnDeadlock::Misuse,
        }
    }

    /// Forgets all waits and writes.
    pub(super) fn clear(&mut self) {
        self.ahead.clear();
        self.writes.clear();
        self.reported.clear();
    }

    /// Whether a write that is under way, and was submitted before a place, is for a wait.
    fn has_write(&self, wait: &ValueWait, before: u64) -> bool {
        let writes = self.writes.get(&wait.word.key()).map(|writes| writes.range(..before));
        // The latest is most likely the one.
        writes.is_some_and(|writes| writes.rev().any(|(_, value)| wait.is_met_by(*value)))
    }

    /// A wait is submitted, or came to its turn and the value is not there. Nobody looks at memory
    /// before its turn: earlier work of the stream may be writing there.
    pub(crate) fn waits(&mut self, at: u64, wait: &ValueWait) {
        if !self.ahead.contains_key(&at) && !self.has_write(wait, at) {
            self.ahead.insert(at, wait.clone());
        }
    }

    pub(crate) fn passed(&mut self, at: u64) {
        self.ahead.remove(&at);
        self.reported.remove(&at);
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

    /// Whether there can be a deadlock that was not reported: a wait ahead of its write.
    pub(crate) fn suspicious(&self) -> bool {
        self.reported.is_empty() && self.ahead.values().any(|wait| self.has_write(wait, u64::MAX))
    }

    /// The writes that are under way, by their words and places.
    pub(crate) fn to_write(&self) -> BTreeMap<WordKey, BTreeMap<u64, u64>> {
        self.writes.clone()
    }

    /// A deadlock of these waits is reported. Until all of them are over no other one is.
    pub(crate) fn report(&mut self, waits: BTreeSet<u64>, text: String) {
        self.reported = waits;
        self.found.push(text);
    }

    /// The deadlocks that were found, in words.
    pub(crate) fn deadlocks(&self) -> &[String] {
        &self.found
    }
}
