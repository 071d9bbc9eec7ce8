//! Words in memory: what a wait for a value and a write of one are, alone and in batches.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use cuda_order_check_engine::{Cell, Compare};

use crate::abi::*;
use crate::memory::Place;

/// The address of a word, and whether it has 64 bits.
pub(crate) type WordKey = (usize, bool);

/// A word in memory that a stream waits for or writes.
#[derive(Clone, Debug)]
pub(crate) struct Word {
    pub(crate) place: Place,
    pub(crate) wide: bool,
}

impl Word {
    /// Which word: an address and its width.
    pub(crate) fn key(&self) -> WordKey {
        (self.place.address, self.wide)
    }

    /// The word for the order checker.
    pub(crate) fn cell(&self) -> Cell {
        Cell { address: self.place.address as u64, bytes: if self.wide { 8 } else { 4 } }
    }

    pub(crate) fn load(&self) -> u64 {
        // SAFETY: within a region that `place` keeps, aligned as submission checked. The program
        // reads and writes the same word from other threads, hence the atomics.
        unsafe {
            if self.wide {
                AtomicU64::from_ptr(self.place.pointer().cast()).load(Ordering::Acquire)
            } else {
                u64::from(AtomicU32::from_ptr(self.place.pointer().cast()).load(Ordering::Acquire))
            }
        }
    }

    fn store(&self, value: u64) {
        // SAFETY: as in `load`.
        unsafe {
            if self.wide {
                AtomicU64::from_ptr(self.place.pointer().cast()).store(value, Ordering::Release);
            } else {
                AtomicU32::from_ptr(self.place.pointer().cast())
                    .store(value as u32, Ordering::Release);
            }
        }
    }
}

/// A wait for a value.
#[derive(Clone, Debug)]
pub(crate) struct ValueWait {
    pub(crate) word: Word,
    pub(crate) value: u64,
    pub(crate) condition: u32,
}

impl ValueWait {
    pub(crate) fn is_done(&self) -> bool {
        self.is_met_by(self.word.load())
    }

    /// Whether it would be over with this value in memory.
    pub(crate) fn is_met_by(&self, now: u64) -> bool {
        let value = self.value;
        match self.condition {
            // Cyclic: the difference, as a signed number.
            CU_STREAM_WAIT_VALUE_GEQ if self.word.wide => now.wrapping_sub(value) as i64 >= 0,
            CU_STREAM_WAIT_VALUE_GEQ => (now as u32).wrapping_sub(value as u32) as i32 >= 0,
            CU_STREAM_WAIT_VALUE_EQ => now == value,
            CU_STREAM_WAIT_VALUE_AND => now & value != 0,
            _ => {
                let mask = if self.word.wide { u64::MAX } else { u64::from(u32::MAX) };
                !(now | value) & mask != 0
            }
        }
    }

    /// The condition for the order checker.
    pub(crate) fn compare(&self) -> Compare {
        match self.condition {
            CU_STREAM_WAIT_VALUE_GEQ => Compare::GreaterOrEqual,
            CU_STREAM_WAIT_VALUE_EQ => Compare::Equal,
            CU_STREAM_WAIT_VALUE_AND => Compare::And,
            _ => Compare::Nor,
        }
    }
}

/// A write of a value.
#[derive(Clone, Debug)]
pub(crate) struct ValueWrite {
    pub(crate) word: Word,
    pub(crate) value: u64,
}

impl ValueWrite {
    /// Whether it makes a difference.
    pub(crate) fn changes(&self) -> bool {
        let value = if self.word.wide { self.value } else { self.value & u64::from(u32::MAX) };
        self.word.load() != value
    }

    pub(crate) fn execute(&self) {
        self.word.store(self.value);
    }
}

/// What one operation of a batch does.
#[derive(Clone, Debug)]
pub(crate) enum ValueOperation {
    Wait(ValueWait),
    Write(ValueWrite),
    /// A barrier, or a flush: here there is nothing to be done.
    Nothing,
}

impl ValueOperation {
    /// The word that it is about.
    pub(crate) fn word(&self) -> Option<&Word> {
        match self {
            Self::Wait(wait) => Some(&wait.word),
            Self::Write(write) => Some(&write.word),
            Self::Nothing => None,
        }
    }
}

/// Operations as a node of a graph keeps them.
#[derive(Clone, Debug)]
pub(crate) struct Batch {
    /// The handle of the context that does them.
    pub(crate) context: u64,
    pub(crate) operations: Vec<ValueOperation>,
    /// As the program gave them, for it to read back: it is shown where they are.
    pub(crate) given: Vec<[u64; 6]>,
}

impl Batch {
    /// What it reads and writes.
    pub(crate) fn places(&self) -> impl Iterator<Item = &Place> {
        self.operations.iter().filter_map(ValueOperation::word).map(|word| &word.place)
    }

    /// Whether another one has as many operations, and of the same kinds.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        let kind = |given: &[u64; 6]| given[0] as u32;
        self.context == other.context
            && self.given.iter().map(kind).eq(other.given.iter().map(kind))
    }
}
