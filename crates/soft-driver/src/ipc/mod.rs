//! The entry points of interprocess events and memory. [`processes`](crate::processes) has what
//! they share.

pub(crate) mod event;
pub(crate) mod memory;
