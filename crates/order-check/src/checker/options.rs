//! Options of a checker.

/// The assumed order of the host's threads. A driver sees only their calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum HostOrder {
    /// Calls are ordered as they are reported, for all threads and host functions together. A call
    /// is ordered after all work that any thread has waited for before, and after the host
    /// functions that have ended. So the checker never reports an order as missing that threads may
    /// have created among themselves. An error between two threads is found on some runs only.
    #[default]
    Submission,
    /// Only reported operations order threads: [`Op::HandOver`](crate::Op::HandOver),
    /// [`Op::TakeOver`](crate::Op::TakeOver), [`Op::ThreadStart`](crate::Op::ThreadStart) and
    /// [`Op::ThreadJoin`](crate::Op::ThreadJoin). A thread without a reported start is ordered
    /// after everything that all other threads are ordered after, because one of them has started
    /// it.
    Reported,
}

/// The enabled warnings. By default none is enabled.
///
/// ```
/// use cuda_order_check_engine::Warnings;
///
/// let mut warnings = Warnings::NONE;
/// warnings.lost_record = true;
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Warnings {
    /// Enables [`Warning::NeverRecorded`](crate::Warning::NeverRecorded).
    pub never_recorded: bool,
    /// Enables [`Warning::LostRecord`](crate::Warning::LostRecord).
    pub lost_record: bool,
    /// Enables [`Warning::IgnoredQuery`](crate::Warning::IgnoredQuery).
    pub ignored_query: bool,
    /// Enables [`Warning::UselessWait`](crate::Warning::UselessWait).
    pub useless_wait: bool,
    /// Enables [`Warning::CaptureLeak`](crate::Warning::CaptureLeak).
    pub capture_leak: bool,
}

impl Warnings {
    /// No warnings.
    pub const NONE: Self = Self {
        never_recorded: false,
        lost_record: false,
        ignored_query: false,
        useless_wait: false,
        capture_leak: false,
    };

    /// All warnings.
    #[must_use]
    pub fn all() -> Self {
        Self {
            never_recorded: true,
            lost_record: true,
            ignored_query: true,
            useless_wait: true,
            capture_leak: true,
        }
    }
}

/// Options of a [`Checker`](crate::Checker).
///
/// ```
/// use cuda_order_check_engine::{Checker, HostOrder, Options, Warnings};
///
/// let options = Options::new().host_order(HostOrder::Reported).warnings(Warnings::all());
/// let checker = Checker::new(options);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    pub(crate) host_order: HostOrder,
    pub(crate) warnings: Warnings,
    pub(crate) unseen_writers: bool,
    pub(crate) retire_every: usize,
}

impl Options {
    /// Threads are ordered as their calls are reported; no warnings.
    pub fn new() -> Self {
        let (host_order, warnings) = (HostOrder::default(), Warnings::NONE);
        Self { host_order, warnings, unseen_writers: false, retire_every: 4096 }
    }

    /// Sets the assumed order of the host's threads.
    #[must_use]
    pub fn host_order(mut self, order: HostOrder) -> Self {
        self.host_order = order;
        self
    }

    /// Sets the enabled warnings.
    #[must_use]
    pub fn warnings(mut self, warnings: Warnings) -> Self {
        self.warnings = warnings;
        self
    }

    /// Whether kernels, other devices and other processes may write the values that streams wait
    /// for. A wait that no reported write or copy can have ended then counts as after all work
    /// before the call that showed its end. By default it is after all writes to this place.
    #[must_use]
    pub fn unseen_writers(mut self, may_write: bool) -> Self {
        self.unseen_writers = may_write;
        self
    }

    /// Sets the least number of operations between two clean-ups. A clean-up forgets accesses with
    /// which nothing can race any more. It does not change the findings.
    #[must_use]
    pub fn retire_every(mut self, operations: usize) -> Self {
        self.retire_every = operations;
        self
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}

/// The memory use of a [`Checker`](crate::Checker).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Size {
    /// Byte ranges with different accesses.
    pub ranges: usize,
    /// Entries in the clocks: streams, threads, and the widest graph of each stream.
    pub agents: usize,
    /// Events, also those of other operations.
    pub events: usize,
    /// Events and streams whose uses by threads are compared: with
    /// [`HostOrder::Reported`].
    pub objects: usize,
    /// Operations that are held back.
    pub tasks: usize,
    /// Values that streams wait for or may wait for.
    pub values: usize,
    /// How many byte ranges all accesses together have come to, and how many earlier writes all
    /// writes of values and waits: a measure of time, not of memory.
    pub touched: u64,
}
