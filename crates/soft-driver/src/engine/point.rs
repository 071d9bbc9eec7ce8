//! Points: the completion of a record, or of what a stream has at some moment.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::processes;

/// The completion of one record: created by the record, and shared by everything that then waits
/// for it.
#[derive(Debug)]
pub(crate) struct Point {
    pub(crate) id: u64,
    pub(crate) timing: bool,
    pub(crate) done: AtomicBool,
    pub(crate) stamp: AtomicU64,
    /// Whether a host thread waits.
    pub(crate) wanted: AtomicBool,
    /// Its record in shared memory, for other processes.
    pub(crate) shared: Option<processes::Record>,
}

impl Point {
    pub(crate) fn is_done(&self) -> bool {
        self.done.load(Ordering::Relaxed)
    }

    pub(crate) fn stamp(&self) -> u64 {
        self.stamp.load(Ordering::Relaxed)
    }

    /// The completion is to wake host threads.
    pub(crate) fn want(&self) {
        self.wanted.store(true, Ordering::Relaxed);
    }
}
