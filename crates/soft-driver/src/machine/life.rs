//! How far a machine's driver is: made, initialised, ending, gone.

use crate::abi::*;

/// Which owner of the slot this is, and what it has done.
pub(crate) struct Life {
    /// Whether the slot has a driver. Without one, calls return what they return after the driver's
    /// shutdown.
    pub(crate) taken: bool,
    pub(crate) initialised: bool,
    pub(crate) stopping: bool,
    /// Grows with each owner of the slot.
    pub(crate) epoch: u64,
    last_id: u64,
}

impl Life {
    pub(super) const fn new() -> Self {
        Self { taken: false, initialised: false, stopping: false, epoch: 0, last_id: 7 }
    }

    pub(super) fn reset(&mut self) {
        *self = Self { epoch: self.epoch + 1, last_id: self.last_id, ..Self::new() };
    }

    /// Whether the driver of this epoch ends, or has ended.
    pub(crate) fn is_over(&self, epoch: u64) -> bool {
        self.epoch != epoch || self.stopping
    }

    /// Refuses to go on when the driver of this epoch ends, or has ended.
    pub(crate) fn lasts(&self, epoch: u64) -> Answer {
        if self.is_over(epoch) { Err(DEINITIALIZED) } else { Ok(()) }
    }

    /// Refuses to go on when another driver, or none, has the slot.
    pub(crate) fn owned_by(&self, epoch: u64) -> Answer {
        if self.epoch == epoch { Ok(()) } else { Err(DEINITIALIZED) }
    }

    /// A number that nothing else of this process's machine has: stream and context ids.
    pub(crate) fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }
}
