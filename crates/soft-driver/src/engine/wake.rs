//! What threads sleep on: the driver's own, and those of the program that wait for work.

use std::sync::Condvar;

use crate::machine::places::SLOTS;

/// The condition variables of one machine, all for its state.
pub(crate) struct Wake {
    /// Host threads that wait for work to be done.
    pub(crate) done: Condvar,
    /// The thread that runs host functions.
    pub(crate) host: Condvar,
    /// The threads that set and copy memory.
    pub(crate) pool: Condvar,
    /// The thread that looks at memory for stream wait-value, and drives a seeded scheduler.
    pub(crate) ticker: Condvar,
    /// The thread that ends work of a given duration.
    pub(crate) timer: Condvar,
}

/// Those of each machine, by its slot.
pub(crate) static WAKES: [Wake; SLOTS] = [const { Wake::new() }; SLOTS];

impl Wake {
    const fn new() -> Self {
        Self {
            done: Condvar::new(),
            host: Condvar::new(),
            pool: Condvar::new(),
            ticker: Condvar::new(),
            timer: Condvar::new(),
        }
    }

    /// Wakes all threads, as their driver ends.
    pub(crate) fn all(&self) {
        for condition in [&self.done, &self.host, &self.pool, &self.ticker, &self.timer] {
            condition.notify_all();
        }
    }
}
