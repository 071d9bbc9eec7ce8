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
}
