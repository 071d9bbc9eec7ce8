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
//! * It serves 64-bit programs only. It compiles for 32-bit targets, but finds no driver there and calls none: the
//!   declarations are those of the 64-bit driver. [`Driver::load`] says so.
//!
//! # Where to look
//!
//! In all examples `driver` is what [`Driver::load`] gives.
//!
//! ```
//! use cuda_events::{Context, Device, Event, EventFlags, Stream, StreamOptions};
//!
//! # let soft = cuda_soft_driver::SoftDriver::new();
//! # let driver = soft.driver();
//! let context = Context::primary(Device::new(driver, 0)?)?;
//! let (producer, consumer) = (Stream::new(&context, StreamOptions::new())?, Stream::new(&context, StreamOptions::new())?);
//! let done = Event::new(&context, EventFlags::empty())?;
//! // ... work is put into `producer` ...
//! done.record(&producer)?;
//! consumer.wait_event(&done)?;
//! // What is put into `consumer` from here on comes after that work.
//! # Ok::<(), cuda_events::Error>(())
//! ```
//!
//! | for | there is |
//! | --- | --- |
//! | events and streams of one's own | [`Event`], [`Stream`]: their methods are those of [`EventRef`] and [`StreamRef`] |
//! | another library's | [`EventRef::from_raw`], [`StreamRef::from_foreign`], [`ForeignStream`] |
//! | a part of the GPU | [`SmResource`], [`Context::green`] |
//! | order between streams | [`record`](EventRef::record), [`wait_event`](StreamRef::wait_event), [`wait_stream`](StreamRef::wait_stream) |
//! | times | [`EventFlags::TIMING`], [`elapsed_ms`](EventRef::elapsed_ms), [`Timer`] |
//! | waiting on the host | [`synchronize`](EventRef::synchronize), [`synchronize_timeout`](EventRef::synchronize_timeout), [`query`](EventRef::query) |
//! | awaiting | `event.await`, [`completion`](StreamRef::completion), [`Completion`] |
//! | other processes | [`IpcEventDescriptor`], [`IpcLease`], [`ExporterProcess`] |
//! | captures and graphs | [`Capture`], [`Graph`], [`record_external`](StreamRef::record_external) |
//! | host functions, values in memory | [`launch_host_function`](StreamRef::launch_host_function), [`wait_value32`](StreamRef::wait_value32) |
//! | many short-lived events | [`EventPool`] |
//! | habits of PyTorch | [`LazyEvent`], [`StreamScope`], [`current_stream`] |
//! | seeing every driver call | [`Driver::observe`] |
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
//! Each method names the driver calls that it makes, or the method whose calls they are; one that names none makes none.
//! "With the context current" means one more, `cuCtxGetCurrent`, where the context is current already, and three more where
//! it is not. What is one call on a stream of one's own is one with the context current on a default stream.
//!
//! # Forking
//!
//! CUDA does not survive a fork once it is initialised. In such a child every call is [`Error::ForkedChild`], and
//! dropping inherited objects does nothing. Loading does not initialise: load, fork, and use the device in the child if
//! you like.

#![deny(missing_docs, unreachable_pub, unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::unreachable)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

// A ladder: a module uses those of its own group and of the groups above it.

// The driver: its declarations and its table, where it is found, what can go wrong.
mod clock;
mod driver;
mod error;
mod forms;
mod loader;
mod observer;
mod process;
mod progress;
pub mod sys;
mod version;

// CUDA's objects.
mod context;
mod device;
mod event;
mod green;
mod stream;

// What CUDA does with streams and events.
mod attributes;
mod capture;
mod graph;
mod host;
mod ipc;
mod values;

// What CUDA does not have, made of the above.
mod completion;
mod lazy;
mod lease;
mod pool;
mod scope;
mod timer;

pub use attributes::{MemorySyncDomain, MemorySyncDomainMap, SynchronizationPolicy};
pub use capture::{
    Capture, CaptureDependency, CaptureInfo, CaptureMode, CaptureStatus, DependencyUpdate, ThreadCaptureMode,
};
pub use completion::Completion;
pub use context::{Context, CurrentContext};
pub use device::{Device, Uuid};
pub use driver::Driver;
pub use error::{DescriptorError, Error, Result};
pub use event::{Event, EventFlags, EventRef};
pub use graph::{Graph, GraphExec, GraphNode};
pub use green::{SmResource, SmSplit};
pub use host::pending_host_functions;
pub use ipc::IpcEventDescriptor;
pub use lazy::{LazyEvent, LazyState};
pub use lease::{ExporterProcess, ExporterState, IpcLease};
pub use loader::{DRIVER_VARIABLE, LoadAttempt, LoadError, LoadFailure, LoadOptions};
pub use observer::Call;
pub use pool::{EventPool, PooledEvent};
pub use progress::Progress;
pub use scope::{CurrentStream, StreamScope, current_stream};
pub use stream::{ForeignStream, PriorityRange, RecordFlags, Stream, StreamOptions, StreamRef, WaitFlags};
pub use timer::{Timer, Timing};
pub use values::{BarrierScope, MemOp, WaitCondition, WaitValueFlags, WriteValueFlags};
pub use version::Version;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
