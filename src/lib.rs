//! CUDA driver events and streams, on any machine that has the NVIDIA display driver.
//!
//! # What this crate does
//!
//! * It opens the driver library at run time. Building needs no CUDA toolkit, no libclang and no
//!   GPU. A program built with this crate starts on a machine without a driver: there
//!   [`Driver::load`] returns an error.
//! * It resolves each entry point at the version that introduced its ABI, so that it works with
//!   every driver from CUDA 11.0 on. A call that the driver is too old for returns
//!   [`Error::Unsupported`] when it is made, and not before.
//! * It wraps [contexts](Context), [streams](Stream), [events](Event) and [interprocess
//!   events](IpcEventDescriptor) in types that own objects they created and borrow all others.
//! * Record, query, synchronize, wait and elapsed time on a stream you created are one driver call
//!   each: no context call, no lock, no allocation.
//! * An error names the call that failed and the driver's code, and says what to do where the cause
//!   is known.
//!
//! # What this crate does not do
//!
//! * It launches no kernels and allocates no memory.
//! * The items of the root and of all modules except [`ext`] start no thread, and track nothing
//!   behind your back: [what they keep](#what-is-kept-for-the-process) is listed below. The page of
//!   [`ext`] says what its items keep.
//! * It does not use a current device or a current stream. Constructors take a context; operations
//!   take a stream.
//! * It never panics, never unloads the driver, and never initialises it before the first use of a
//!   device.
//! * It serves 64-bit programs only. It compiles for 32-bit targets, but finds no driver there and
//!   calls none: the declarations are those of the 64-bit driver. [`Driver::load`] says so.
//!
//! # Where to look
//!
//! In all examples `driver` is the result of [`Driver::load`].
//!
//! ```
//! use cuda_events::{Context, Device, Event, EventFlags, Stream, StreamOptions};
//!
//! # let soft = cuda_soft_driver::SoftDriver::new();
//! # let driver = soft.driver();
//! let context = Context::primary(Device::new(driver, 0)?)?;
//! let producer = Stream::new(&context, StreamOptions::new())?;
//! let consumer = Stream::new(&context, StreamOptions::new())?;
//! let done = Event::new(&context, EventFlags::empty())?;
//! // ... work is put into `producer` ...
//! done.record(&producer)?;
//! consumer.wait_event(&done)?;
//! // Work that is put into `consumer` from here on runs after that work.
//! # Ok::<(), cuda_events::Error>(())
//! ```
//!
//! The root has the types that every program uses. The rest is in modules by subject.
//!
//! | for | there is |
//! | --- | --- |
//! | events and streams you create | [`Event`], [`Stream`]; their methods are those of [`EventRef`] and [`StreamRef`] |
//! | events and streams of another library | [`EventRef::from_raw`], [`StreamRef::from_foreign`], [`ForeignStream`] |
//! | order between streams | [`record`](EventRef::record), [`wait_event`](StreamRef::wait_event), [`wait_stream`](StreamRef::wait_stream) |
//! | times | [`EventFlags::TIMING`], [`elapsed_ms`](EventRef::elapsed_ms), [`ext::Timer`] |
//! | waiting on the host | [`synchronize`](EventRef::synchronize), [`synchronize_timeout`](EventRef::synchronize_timeout), [`query`](EventRef::query) |
//! | a completion that many threads look at, signals of the host | [`ext::Timeline`], [`ext::HostTimeline`] |
//! | awaiting | `event.await`, [`completion`](StreamRef::completion), [`ext::Completion`] |
//! | other processes | [`IpcEventDescriptor`], [`ipc::ExporterProcess`], [`ext::IpcLease`] |
//! | other containers, and processes that may be killed | [`ext::TimelineFile`], [`ext::ImportedTimeline`]; by bytes alone [`ext::TimelineMemory`], [`ext::OpenedTimeline`] |
//! | order with a graphics API | [`external`] |
//! | captures and graphs | [`capture`], [`graph`], [`record_external`](StreamRef::record_external) |
//! | host functions, values in memory | [`launch_host_function`](StreamRef::launch_host_function), [`mem_ops`] |
//! | stream attributes | [`attributes`] |
//! | a part of the GPU | [`green`] |
//! | many short-lived events | [`ext::EventPool`] |
//! | habits of PyTorch | [`ext::LazyEvent`], [`ext::StreamScope`], [`ext::current_stream`] |
//! | every driver call | [`Driver::observe`], [`observer`] |
//!
//! # Two layers
//!
//! [`sys`] is the raw layer: declarations, and the table of function pointers that
//! [`Driver::symbols`] returns. All other modules are safe wrappers around it. Handles convert both
//! ways (`as_raw`, `into_raw`, `from_raw`), so that the two layers mix, also with other bindings.
//!
//! # Contexts and threads
//!
//! Objects are `Send` and `Sync`, as the driver is. Guards are neither: they stay on their thread.
//! Graphs are `Send` only: one thread at a time may use one. Creation, interprocess export and
//! import, and default streams depend on the current context; those calls make theirs current and
//! restore the previous one. Nothing else depends on it.
//!
//! Each method names the driver calls that it makes, or the method whose calls they are. A method
//! that names none makes none. "With the context current" means one more call, `cuCtxGetCurrent`,
//! where the context is already current, and three more where it is not. A method that makes one
//! call on a stream you created makes it with the context current on a default stream.
//!
//! # What is kept for the process
//!
//! Records, queries, waits and elapsed times look at the flag, and at nothing else of this.
//!
//! | kept | until | lock |
//! | --- | --- | --- |
//! | a flag: the process was forked after the driver was initialised; it has loaded several driver libraries | its end | none |
//! | the drivers that were loaded | its end | none |
//! | a list of the captures that [`Capture`](capture::Capture) began, with the events of each. Only [`record_external`](StreamRef::record_external) and [`wait_external`](StreamRef::wait_external) look it up: they must find the graph that keeps the event, and the driver tells only the capture's number | the graph is gone and another capture begins | a mutex, also in [`Capture::begin`](capture::Capture::begin) |
//! | how many of these captures are under way, for [`ext::EventPool`] and [`ext::Timeline`] | its end | none |
//! | the closures of [`launch_host_function`](StreamRef::launch_host_function) and [`add_callback`](StreamRef::add_callback): the driver is given their numbers and never their addresses | the driver calls them | a mutex, in these two and when the driver calls |
//! | the sixteen places for [observers](Driver::observe): a function of the driver's type carries no data | its end | one for each place, in the observed calls |
//!
//! A graph has a number, of a counter, and a mutex of its own for the events that its nodes refer
//! to.
//!
//! # Forking
//!
//! CUDA does not survive a fork once it is initialised. In such a child every call returns
//! [`Error::ForkedChild`], and dropping inherited objects does nothing. Loading does not
//! initialise: a process may load, fork, and use the device in the child.

#![deny(missing_docs, unreachable_pub, unsafe_code)]
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::unreachable
)]
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)
)]

// Who may import whom is in floors.txt beside this file, which tools/floors holds the imports to.
pub mod capture;
mod context;
mod device;
mod driver;
mod error;
mod event;
pub mod ext;
pub mod external;
mod flags;
mod forms;
pub mod graph;
pub mod green;
pub mod ipc;
mod list;
pub mod loader;
mod order;
mod progress;
mod share;
mod stream;
mod sync;
pub mod sys;
mod timeout;

pub use context::{Context, CurrentContext};
pub use device::{Device, Uuid};
pub use driver::{Driver, observer};
pub use error::{Error, Result};
pub use event::{Event, EventFlags, EventRef};
pub use ipc::IpcEventDescriptor;
pub use loader::{LoadError, LoadOptions};
pub use progress::Progress;
pub use stream::{ForeignStream, PriorityRange, Stream, StreamOptions, StreamRef};
pub use stream::{attributes, host_functions, mem_ops};
pub use sys::Version;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
