//! How a checker checks, and how much it remembers.

/// What is assumed about the order of the threads of the host, of which a driver sees calls only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostOrder {
    /// Calls are ordered as they are told, whichever thread makes them, and host functions among
    /// them: a call is after all that threads have waited for before, and after the host functions
    /// that have ended. This reports no order as missing that threads may have made among
    /// themselves. It finds nothing that is wrong between two threads.
    #[default]
    Submission,
    /// Threads are ordered only by what is told of them: [`Op::HandOver`](crate::Op::HandOver),
    /// [`Op::TakeOver`](crate::Op::TakeOver), [`Op::ThreadStart`](crate::Op::ThreadStart) and
    /// [`Op::ThreadJoin`](crate::Op::ThreadJoin). A thread that nobody was told of is after what
    /// all other threads are after: one of them has started it.
    Told,
}

/// Which warnings are given. None is, unless asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Warnings {
    /// [`Warning::NeverRecorded`](crate::Warning::NeverRecorded).
    pub never_recorded: bool,
    /// [`Warning::LostRecord`](crate::Warning::LostRecord).
    pub lost_record: bool,
    /// [`Warning::IgnoredQuery`](crate::Warning::IgnoredQuery).
    pub ignored_query: bool,
    /// [`Warning::UselessWait`](crate::Warning::UselessWait).
    pub useless_wait: bool,
    /// [`Warning::CaptureLeak`](crate::Warning::CaptureLeak).
    pub capture_leak: bool,
}

impl Warnings {
    /// None of them.
    pub const NONE: Self = Self {
        never_recorded: false,
        lost_record: false,
        ignored_query: false,
        useless_wait: false,
        capture_leak: false,
    };

    /// All of them.
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

/// How a [`Checker`](crate::Checker) checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The order of the host's threads.
    pub host_order: HostOrder,
    /// The warnings.
    pub warnings: Warnings,
    /// After how many operations, at the earliest, accesses are forgotten that nothing can race
    /// with any more. It has no effect on what is found.
    pub retire_every: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { host_order: HostOrder::default(), warnings: Warnings::default(), retire_every: 4096 }
    }
}

/// How much a [`Checker`](crate::Checker) remembers now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Size {
    /// Ranges of bytes that differ in who touched them.
    pub ranges: usize,
    /// Places in the clocks: streams, threads, and the widest graph of each stream.
    pub agents: usize,
    /// Operations that something holds back.
    pub tasks: usize,
    /// Values that streams wait for, or may.
    pub values: usize,
}
