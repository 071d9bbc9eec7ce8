//! A CUDA driver in software.
pub mod abi;
mod arg;
mod builder;
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
mod faults;
#[doc(hidden)]
pub mod foreign;
mod fork;
mod graph;
mod handles;
mod hooks;
mod ipc;
mod limits;
mod log;
mod machine;
mod memory;
mod nodes;
mod objects;
mod pointers;
mod report;
mod stream;
mod thread;
mod values;

/// The bodies of the entry points, by the names that the list of exports gives them.
pub(crate) mod bodies {
    pub(crate) use crate::capture::*;
    pub(crate) use crate::context::*;
    pub(crate) use crate::device::*;
    pub(crate) use crate::entry::*;
    pub(crate) use crate::event::*;
    pub(crate) use crate::graph::*;
    pub(crate) use crate::ipc::*;
    pub(crate) use crate::limits::*;
    pub(crate) use crate::memory::*;
    pub(crate) use crate::nodes::*;
    pub(crate) use crate::objects::*;
    pub(crate) use crate::pointers::*;
    pub(crate) use crate::stream::*;
    pub(crate) use crate::values::*;
}

pub use builder::Builder;
pub use config::{OnMisuse, Rules, Scheduler, Time};
pub use device::DEVICE_NAME;
pub use driver::SoftDriver;
#[doc(hidden)]
pub use driver::{end_shared_library, shared_library_version, start_shared_library};
pub use entry::{Export, exported_at};
pub use faults::Fault;
pub use log::CallRecord;
pub use machine::SLOTS;
pub use report::Live;
