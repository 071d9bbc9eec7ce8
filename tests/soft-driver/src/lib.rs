//! A CUDA driver in software.
pub mod abi;
mod arg;
mod capture;
mod clock;
mod config;
mod context;
mod device;
mod driver;
mod engine;
mod entry;
mod errors;
mod event;
pub mod exports;
mod fork;
mod graph;
mod handles;
mod hooks;
mod ipc;
mod machine;
mod memory;
mod stream;
mod thread;

/// The bodies of the entry points, by the names that the list of exports gives them.
pub(crate) mod bodies {
    pub(crate) use crate::capture::*;
    pub(crate) use crate::context::*;
    pub(crate) use crate::device::*;
    pub(crate) use crate::entry::*;
    pub(crate) use crate::event::*;
    pub(crate) use crate::graph::*;
    pub(crate) use crate::ipc::*;
    pub(crate) use crate::memory::*;
    pub(crate) use crate::stream::*;
}

pub use config::{OnMisuse, Rules, Scheduler, Time};
pub use device::DEVICE_NAME;
pub use driver::{Builder, SoftDriver, start_shared_library};
pub use entry::{Export, exported_at};
pub use machine::SLOTS;
