//! How a call comes in: the exports and their lookup, and what is done to a call beside its work.

pub(crate) mod answers;
pub(crate) mod arguments;
mod declared;
pub(crate) mod entry;
pub(crate) mod exit;
pub(crate) mod export;
pub(crate) mod exports;
pub(crate) mod faults;
pub(crate) mod fork;
pub(crate) mod functions;
pub(crate) mod hooks;
pub(crate) mod log;
pub(crate) mod lookup;
