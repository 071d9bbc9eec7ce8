//! Switches of a machine, which each call looks at with one load.

use core::sync::atomic::{AtomicU32, Ordering};

/// The process was forked since the machine was initialised.
pub(crate) const FORKED: u32 = 1;
/// Calls return what they return in a forked child, as the program asked.
pub(crate) const PRETEND_FORKED: u32 = 128;
/// A host function runs.
pub(crate) const IN_HOST_FUNCTIONS: u32 = 2;
/// Calls are logged.
pub(crate) const LOG: u32 = 4;
/// Some calls are to fail.
pub(crate) const FAULTS: u32 = 8;
/// Calls take longer.
pub(crate) const LATENCY: u32 = 16;
/// The driver was shut down, as at the end of a process.
pub(crate) const SHUT_DOWN: u32 = 32;
/// Work is done in steps between calls.
pub(crate) const SEEDED: u32 = 64;

/// Time is virtual.
pub(crate) const VIRTUAL: u32 = 256;

/// All off is the fast path.
pub(crate) struct Switches(AtomicU32);

impl Switches {
    pub(crate) const fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Whether all are off.
    pub(crate) fn plain(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }

    pub(crate) fn set(&self, flag: u32, on: bool) {
        if on {
            self.0.fetch_or(flag, Ordering::Relaxed);
        } else {
            self.0.fetch_and(!flag, Ordering::Relaxed);
        }
    }

    /// Turns all off.
    pub(crate) fn clear(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    pub(crate) fn has(&self, flag: u32) -> bool {
        self.0.load(Ordering::Relaxed) & flag != 0
    }

    /// The thread of the host functions calls this before and after each function.
    pub(crate) fn host_function(&self, running: bool) {
        self.set(IN_HOST_FUNCTIONS, running);
    }

    /// Whether this is a forked child of the process that initialised the driver.
    pub(crate) fn forked(&self) -> bool {
        self.has(FORKED)
    }

    pub(crate) fn in_host_functions(&self) -> bool {
        self.has(IN_HOST_FUNCTIONS)
    }

    pub(crate) fn pretend_forked(&self, on: bool) {
        self.set(PRETEND_FORKED, on);
    }

    pub(crate) fn shut_down(&self, on: bool) {
        self.set(SHUT_DOWN, on);
    }
}
