//! The software driver's interface for programs, in Rust and as a C library.

pub(crate) mod builder;
pub(crate) mod busy;
pub(crate) mod control;
pub(crate) mod driver;
pub(crate) mod external;
pub(crate) mod order;
pub(crate) mod report;
pub(crate) mod settings;
pub(crate) mod shared_library;
