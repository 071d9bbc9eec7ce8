//! Who waits in virtual time, and what is known of the program's threads.

use std::collections::{BTreeMap, BTreeSet};

use crate::threads::idle::Quiet;
use crate::threads::processor_time::this_thread;

pub(crate) struct Waits {
    /// Grows with all that a thread may wait for.
    pub(super) changes: u64,
    /// How often time has moved.
    pub(super) moves: u64,
    /// The threads that wait, and the changes that they know of.
    pub(super) waiting: BTreeMap<i32, u64>,
    /// How often a thread or a task stopped waiting.
    pub(super) left: u64,
    /// How many of them, or of those that just look, wait for what the driver does not see.
    pub(super) lookers: usize,
    /// The limits of waits, with their threads.
    pub(super) limits: BTreeSet<(u64, i32)>,
    /// How many tasks wait, and how they are woken.
    pub(super) tasks: usize,
    pub(super) look: Option<fn()>,
    /// After which changes, and what of other threads, the last look was.
    pub(super) looked: Option<(u64, u64)>,
    /// Whether a thread looks after the time now.
    pub(super) attended: bool,
    pub(super) quiet: Quiet,
    pub(super) threads: BTreeMap<i32, Program>,
    /// Threads that wait for others.
    pub(super) servants: Vec<i32>,
    pub(super) has_thread: bool,
}

/// A thread of the program.
#[derive(Default)]
pub(super) struct Program {
    pub(super) calls: u64,
    /// What it asked since its last other call: the question, how often, and after how many moves.
    pub(super) asked: Vec<(u64, u32, u64)>,
}

impl Waits {
    pub(crate) const fn new() -> Self {
        Self {
            changes: 0,
            moves: 0,
            waiting: BTreeMap::new(),
            left: 0,
            lookers: 0,
            limits: BTreeSet::new(),
            tasks: 0,
            look: None,
            looked: None,
            attended: false,
            quiet: Quiet::new(),
            threads: BTreeMap::new(),
            servants: Vec::new(),
            has_thread: false,
        }
    }

    /// The first limit of a wait.
    pub(crate) fn next(&self) -> Option<u64> {
        self.limits.first().map(|(limit, _)| *limit)
    }

    /// Something has happened that a thread may wait for.
    pub(crate) fn changed(&mut self) {
        self.changes += 1;
    }

    /// Whether the calling thread waits for others, so that its calls are not the program's.
    pub(crate) fn is_servant(&self) -> bool {
        !self.servants.is_empty() && self.servants.contains(&this_thread())
    }

    /// Whether the waiting threads know of all that has happened.
    pub(super) fn all_know(&self) -> bool {
        self.waiting.values().all(|known| *known == self.changes)
    }
}
