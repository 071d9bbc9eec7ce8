//! A device: its primary context, and how much of its memory is in use.

/// A device: the state of its primary context.
#[derive(Default)]
pub(crate) struct Device {
    /// Which one of the machine it is.
    pub(crate) physical: usize,
    pub(crate) primary: Option<u32>,
    pub(crate) retained: u32,
    /// How many of its retains the program has not tried to release.
    pub(crate) held: u32,
    pub(crate) flags: u32,
    pub(crate) used: u64,
    /// The pool that it has from the beginning, once somebody asked for it.
    pub(crate) default_pool: Option<u32>,
    /// The pool of allocations that name none, if it is not that.
    pub(crate) current_pool: Option<u32>,
}
