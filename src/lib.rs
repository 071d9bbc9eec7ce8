//! CUDA driver events and streams, on any machine that has the NVIDIA display driver.
//!
//! # What this crate does
//!
//! * It opens the driver library at run time. Building needs no CUDA toolkit, no libclang and no GPU, and a program built
//!   with it starts on a machine that has no driver: [`Driver::load`] says so in an error.
//! * It resolves each entry point at the version that introduced its ABI, so that it works with whatever driver there is
//!   from CUDA 11.0 on. A call that the driver is too old for is [`Error::Unsupported`], and only when it is made.
//! * It wraps [contexts](Context), [streams](Stream), [events](Event) and [interprocess events](IpcEventDescriptor) in
//!   types that own what they created and borrow what they did not.
//! * Record, query, synchronize, wait and elapsed time on a stream of one's own are one driver call each: no context call, no
//!   lock, no allocation.
//! * It says which call failed, with the driver's code by name, and what to do where the cause is known.
//!
//! # What this crate does not do
//!
//! * It launches no kernels, allocates no memory, and tracks nothing behind your back: what is not asked for is not done.
//! * Nothing in it uses a current device or a current stream. What is created names its context; what is done names its
//!   stream. ([`StreamScope`] lets programs have a current stream of their own.)
//! * It never panics, never unloads the driver, and never initialises it before the first use of a device.
//!
//! # Two layers
//!
//! The modules above [`sys`] are safe wrappers. [`sys`] is the raw layer: declarations, and the table of function
//! pointers that [`Driver::symbols`] gives. Handles convert both ways (`as_raw`, `into_raw`, `from_raw`), so the two mix,
//! also with other bindings.
//!
//! # Contexts and threads
//!
//! Objects are `Send` and `Sync`, as the driver is, but for guards, which stay on their thread, and graphs, which one thread
//! may use at a time. Only creation, interprocess export and import, and default streams
//! depend on the current context; those calls make theirs current and restore what was before.
//!
//! Each method names the driver calls that it makes. "With the context current" means one more, `cuCtxGetCurrent`, where the
//! context is current already, and three more where it is not. What is one call on a stream of one's own is one with the
//! context current on a default stream.
//!
//! # Forking
//!
//! CUDA does not survive a fork once it is initialised. In such a child every call is [`Error::ForkedChild`], and
//! dropping inherited objects does nothing. Loading does not initialise: load, fork, and use the device in the child if
//! you like.

#![deny(missing_docs, unreachable_pub, unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::unreachable)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

pub mod sys;

mod attributes;
mod capture;
mod completion;
mod context;
mod device;
mod driver;
mod error;
mod event;
mod graph;
mod host;
mod ipc;
mod lazy;
mod lease;
mod loader;
mod observer;
mod pool;
mod process;
mod scope;
mod stream;
mod timer;
mod values;
mod version;

pub use attributes::{MemorySyncDomain, MemorySyncDomainMap, SynchronizationPolicy};
pub use capture::{
    Capture, CaptureDependency, CaptureInfo, CaptureMode, CaptureStatus, DependencyUpdate, ThreadCaptureMode,
};
pub use completion::Completion;
pub use context::{Context, CurrentContext};
pub use device::{Device, Uuid};
pub use driver::Driver;
pub use error::{DescriptorError, Error, Result};
pub use event::{BorrowedEvent, Event, EventFlags};
pub use graph::{Graph, GraphExec, GraphNode};
pub use host::pending_host_functions;
pub use ipc::IpcEventDescriptor;
pub use lazy::{LazyEvent, LazyState};
pub use lease::{ExporterProcess, IpcLease};
pub use loader::{DRIVER_VARIABLE, LoadAttempt, LoadError, LoadFailure, LoadOptions};
pub use observer::Call;
pub use pool::{EventPool, PooledEvent};
pub use scope::{CurrentStream, StreamScope, current_stream};
pub use stream::{BorrowedStream, ForeignStream, PriorityRange, RecordFlags, Stream, StreamOptions, WaitFlags};
pub use timer::{Timer, Timing};
pub use values::{BarrierScope, MemOp, WaitCondition, WaitValueFlags, WriteValueFlags};
pub use version::Version;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
