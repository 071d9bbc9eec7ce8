//! How a call comes in: the exports and their lookup, and what is done to a call beside its work.

pub(crate) mod entry;
pub mod exports;
pub(crate) mod faults;
#[doc(hidden)]
pub mod foreign;
pub(crate) mod fork;
pub(crate) mod hooks;
pub(crate) mod log;
