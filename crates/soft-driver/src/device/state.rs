//! A device as its machine has it.

use crate::abi::{CUresult, INVALID_CONTEXT};

/// A device, and who has retained its primary context.
pub(crate) struct Device {
    physical: usize,
    /// The primary context, from the first retain on. It keeps its place when it ends.
    primary: Option<u32>,
    /// The flags of the next primary context.
    flags: u32,
    retains: u32,
    /// How many of the retains the program has not tried to release.
    owed: u32,
}

impl Device {
    pub(crate) fn new(physical: usize) -> Self {
        Self { physical, primary: None, flags: 0, retains: 0, owed: 0 }
    }

    /// Its number among all devices of the machine, visible or not.
    pub(crate) fn physical(&self) -> usize {
        self.physical
    }

    /// The primary context, alive or not, and the flags of the next one.
    pub(crate) fn primary(&self) -> (Option<u32>, u32) {
        (self.primary, self.flags)
    }

    /// One more retain of the primary context.
    pub(crate) fn retain(&mut self, primary: u32) {
        self.primary = Some(primary);
        self.retains += 1;
    }

    /// One retain less; whether it was the last.
    pub(crate) fn release(&mut self) -> Result<bool, CUresult> {
        self.retains = self.retains.checked_sub(1).ok_or(INVALID_CONTEXT)?;
        Ok(self.retains == 0)
    }

    pub(crate) fn retains(&self) -> u32 {
        self.retains
    }

    /// The program has retained it by a call, and so owes a release.
    pub(crate) fn owe(&mut self) {
        self.owed += 1;
    }

    /// The program has tried to release one retain, or all.
    pub(crate) fn given_back(&mut self, all: bool) {
        self.owed = if all { 0 } else { self.owed.saturating_sub(1) };
    }

    pub(crate) fn owed(&self) -> u32 {
        self.owed
    }

    /// All retains of the primary context are taken.
    pub(crate) fn reset(&mut self) {
        self.retains = 0;
    }

    /// The primary context has other flags; the one that has them now, if it is retained.
    pub(crate) fn set_flags(&mut self, flags: u32) -> Option<u32> {
        self.flags = flags;
        self.primary.filter(|_| self.retains > 0)
    }
}
