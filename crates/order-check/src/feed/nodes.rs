//! The nodes of graphs, and semaphores.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::op::{Access, Cell, Compare, EventId, NodeWork};

/// A semaphore of another API. Clones are the same semaphore, for all feeds of a process.
#[derive(Clone, Debug)]
pub struct Semaphore {
    address: u64,
    /// The signals and the waits of a binary one so far: it has no value that would show which wait
    /// is for which signal.
    counts: Option<Arc<(AtomicU64, AtomicU64)>>,
}

fn next(count: &AtomicU64) -> u64 {
    count.fetch_add(1, Ordering::Relaxed) + 1
}

impl Semaphore {
    /// Creates a semaphore: binary, or with a value that only rises.
    #[must_use]
    pub fn new(binary: bool) -> Self {
        /// Addresses from here on are no memory of a program.
        static LAST: AtomicU64 = AtomicU64::new(1 << 63);
        let address = LAST.fetch_add(8, Ordering::Relaxed);
        Self { address, counts: binary.then(Arc::default) }
    }

    /// The place of the semaphore's value, as if the value were in memory.
    #[must_use]
    pub fn cell(&self) -> Cell {
        Cell { address: self.address, bytes: 8 }
    }

    /// The value of a signal.
    pub(super) fn signal(&self, value: u64) -> u64 {
        self.counts.as_ref().map_or(value, |counts| next(&counts.0))
    }

    /// That of a wait, which is over when a signal of this value or a higher one is.
    pub(super) fn wait(&self, value: u64) -> u64 {
        self.counts.as_ref().map_or(value, |counts| next(&counts.1))
    }
}

/// A part of a graph node's work.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum GraphWork {
    /// A kernel, an empty node, or other work that the host does not poll.
    Work(Vec<Access>),
    /// A copy or a memset.
    Write(Vec<Access>),
    /// A host function.
    Function,
    /// The record of an event.
    Record(EventId),
    /// A wait for an event.
    Wait(EventId),
    /// The write of a value.
    WriteValue(Cell, u64),
    /// A wait for a value.
    WaitValue(Cell, u64, Compare),
    /// A signal of an external semaphore.
    Signal(Semaphore, u64),
    /// A wait for an external semaphore.
    WaitSemaphore(Semaphore, u64),
}

/// A node of an executable graph.
#[derive(Clone, Debug)]
pub struct GraphNode {
    /// Its work, one part after the other.
    pub work: Vec<GraphWork>,
    /// The nodes that it waits for, by index. Each index is less than the node's own.
    pub after: Vec<usize>,
}

impl GraphNode {
    pub(super) fn has_binary(&self) -> bool {
        self.work.iter().any(|work| match work {
            GraphWork::Signal(semaphore, _) | GraphWork::WaitSemaphore(semaphore, _) => {
                semaphore.counts.is_some()
            }
            _ => false,
        })
    }
}

impl GraphWork {
    /// The work for the checker. A launch numbers the signals and waits of binary semaphores.
    pub(super) fn node_work(&self, launched: bool) -> NodeWork {
        let numbered = |semaphore: &Semaphore| launched || semaphore.counts.is_none();
        match self {
            Self::Work(accesses) | Self::Write(accesses) => NodeWork::Work(accesses.clone()),
            Self::Function => NodeWork::Function(Vec::new()),
            Self::Record(event) => NodeWork::Record(*event),
            Self::Wait(event) => NodeWork::Wait(*event),
            Self::WriteValue(cell, value) => NodeWork::WriteValue(*cell, *value),
            Self::WaitValue(cell, value, compare) => NodeWork::WaitValue(*cell, *value, *compare),
            Self::Signal(semaphore, value) => {
                let value = if numbered(semaphore) { semaphore.signal(*value) } else { 0 };
                NodeWork::WriteValue(semaphore.cell(), value)
            }
            Self::WaitSemaphore(semaphore, value) => {
                let value = if numbered(semaphore) { semaphore.wait(*value) } else { 0 };
                NodeWork::WaitValue(semaphore.cell(), value, Compare::GreaterOrEqual)
            }
        }
    }

    /// Whether a launch has a place for it that the host may see.
    pub(super) fn writes(&self) -> bool {
        matches!(self, Self::Write(_) | Self::WriteValue(..) | Self::Signal(..))
    }
}
