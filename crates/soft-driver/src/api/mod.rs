//! The software driver's interface for programs, in Rust and as a C library.

// In this order, because the documentation has the methods in the order of the modules.
pub(crate) mod builder;
pub(crate) mod driver;

pub(crate) mod busy;
pub(crate) mod kernel;
pub(crate) mod order;

mod accesses;
pub(crate) mod control;
pub mod examples;
pub(crate) mod external;
pub(crate) mod report;
pub(crate) mod settings;
pub(crate) mod shared_library;
mod target;
