//! CUDA driver events and streams, on any machine that has the NVIDIA display driver.
//!
//! ```no_run
//! use cuda_events::{Context, Device, Driver, EventFlags, Stream, StreamOptions};
//!
//! fn main() -> cuda_events::Result<()> {
//!     let driver = Driver::load()?;
//!     let context = Context::primary(Device::new(driver, 0)?)?;
//!     let producer = Stream::new(&context, StreamOptions::new())?;
//!     let consumer = Stream::new(&context, StreamOptions::new())?;
//!     // ... put work into `producer.as_raw()` with any other library ...
//!     let done = producer.record_event(EventFlags::empty())?;
//!     consumer.wait_event(&done)?;
//!     // Later work in `consumer` runs after that work.
//!     done.synchronize()?; // the host waits too
//!     Ok(())
//! }
//! ```
//!
//! The [`guide`] helps to choose between an event, a timeline, a host function and a future. A
//! timeline is a counter that streams and hosts advance and wait for (crate `cuda-timelines`). The
//! guide has pages for users of cudarc, PyTorch, `cuda.core` and tokio, for several processes and
//! GPUs, and for tests without a GPU. To find a method, search this documentation for the name of
//! the driver's function, such as `cuEventRecord`.
//!
//! # Where to look
//!
//! The root exports the types that every program uses. All other items are in modules by subject.
//!
//! | for | use |
//! | --- | --- |
//! | events and streams you create | [`Event`], [`Stream`]; their methods are those of [`EventRef`] and [`StreamRef`] |
//! | events and streams of another library | [`EventRef::from_raw`], [`StreamRef::from_foreign`], [`ForeignStream`] |
//! | ordering streams | [`record`](EventRef::record), [`wait_event`](StreamRef::wait_event), [`wait_stream`](StreamRef::wait_stream) |
//! | measuring time | [`EventFlags::TIMING`], [`elapsed_ms`](EventRef::elapsed_ms), [`ext::Timer`] |
//! | waiting on the host | [`synchronize`](EventRef::synchronize), [`synchronize_timeout`](EventRef::synchronize_timeout), [`query`](EventRef::query) |
//! | a completion that many threads watch | timelines: the crate `cuda-timelines` |
//! | signals that the host sends | timelines: the crate `cuda-timelines` |
//! | awaiting events, streams and timelines | the crate `cuda-timelines` |
//! | sharing an event with another process | [`IpcEventDescriptor`], [`ipc::ExporterProcess`], [`ext::IpcLease`] |
//! | sharing with other containers, or with processes that may be killed | shared timelines: the crate `cuda-timelines` |
//! | ordering with a graphics API | [`external`] |
//! | captures and graphs | [`capture`], [`graph`], [`record_external`](StreamRef::record_external) |
//! | host functions, values in memory | [`launch_host_function`](StreamRef::launch_host_function), [`mem_ops`] |
//! | stream attributes | [`attributes`] |
//! | a part of the GPU | [`green`] |
//! | many short-lived events | [`ext::EventPool`] |
//! | working as in PyTorch | [`ext::LazyEvent`], [`ext::StreamScope`], [`ext::current_stream`] |
//! | a crate of your own on top of this one | [`foundation`] |
//! | a driver function that has no method here | [`Driver::entry_point`] |
//! | observing every driver call | `Driver::observe` (feature `observe`) |
//! | a picture of GPU work on a time axis | the crate `cuda-events-trace` |
//! | the reason why there is no GPU | the command `cuda-events-doctor` |
//!
//! # Reading the examples
//!
//! The example at the top of this page is a whole program. Every other example is the body of a
//! function that returns [`Result<()>`](Result), below `use cuda_events::Driver;`. Where it does not
//! define `driver`, any loaded [`Driver`] will do. The folder `examples` of the source tree has whole
//! programs to copy.
//!
//! # What this crate does
//!
//! * It opens the driver library at run time. Building needs no CUDA toolkit, no libclang and no
//!   GPU. A program built with this crate also starts on a machine without a driver; there
//!   [`Driver::load`] returns an error.
//! * It works with every driver from CUDA 11.0 on. If a method needs a newer driver, it returns an
//!   error, in most cases [`Error::Unsupported`].
//! * It wraps [contexts](Context), [streams](Stream), [events](Event) and [interprocess
//!   events](IpcEventDescriptor) in safe types. [`Event`] and [`Stream`] own their object and
//!   destroy it; [`EventRef`] and [`StreamRef`] do not.
//! * To record, query, synchronize, wait for or time an event costs one driver call on streams that
//!   you created. This crate adds no context call, no lock and no allocation.
//! * An error names the call that failed and the driver's code. If the cause is known, the error
//!   also gives the remedy.
//!
//! # What this crate does not do
//!
//! * It launches no kernels and allocates no memory.
//! * It starts no thread. `docs/architecture.md` in the source tree lists the state that it keeps
//!   for the process.
//! * Its methods do not depend on a current context, device or stream: constructors take a context,
//!   and operations take a stream. The exceptions are [`Context::current`],
//!   [`StreamRef::from_foreign`] with a default stream's handle, and [`ext::current_stream`].
//! * It never panics and never unloads the driver. It initialises the driver at the first use of a
//!   device or of a context, never earlier.
//! * It works in 64-bit programs only. In a 32-bit program [`Driver::load`] returns an error.
//!
//! # Feature flags
//!
//! * `safe`, on by default: all but the raw layer.
//! * `observe` has `Driver::observe`: a function of the program that sees each driver call.
//! * `serde` implements `Serialize` and `Deserialize` for [`IpcEventDescriptor`]:
//!   `cargo add cuda-events --features serde`.
//! * `bindgen` makes the declarations anew while building, which needs libclang. No program needs
//!   this feature.
//!
//! # Supported platforms and versions
//!
//! * The crate is for Linux (x86-64 and aarch64, also in WSL) and Windows (x86-64), and compiles on
//!   other systems. `docs/platforms.md` in the source tree says what was tested where.
//! * It needs Rust 1.88 or newer. Before 1.0, only a new minor version needs a newer Rust or breaks
//!   the API.
//!
//! # Two layers
//!
//! [`sys`] is the raw layer: declarations, and the table of function pointers that
//! [`Driver::symbols`] returns. All other modules are safe wrappers around it. `as_raw`, `into_raw`
//! and `from_raw` convert between the two layers, and to other bindings.
//!
//! `default-features = false` leaves the raw layer: [`sys`], [`loader`], [`Driver`] with
//! [`entry_point`](Driver::entry_point), [`foundation::call!`](foundation::call), and errors. It
//! needs `std`, which finds and names the library's file.
//!
//! # Contexts and threads
//!
//! Objects are `Send` and `Sync`, because the driver may be called from any thread. Guards, such as
//! [`CurrentContext`], are neither `Send` nor `Sync`: they stay on their thread. Graphs are `Send`
//! but not `Sync`: only one thread at a time may use a graph.
//!
//! Some driver calls depend on the current context, such as those that create an object, and all
//! calls on a default stream. For such a call this crate makes the object's context current, and
//! restores the previous one.
//!
//! The description of each method names its driver calls, or another method that makes the same
//! calls. If it names no call, the method makes no call. "With the context current" means a few
//! extra calls: [`Context`](Context#current-contexts) lists them. Every call on a default stream
//! makes these extra calls too.
//!
//! The name of a call is a link to its entry in [`sys::Function`]. The entry gives the CUDA version
//! of the call and links to its description by NVIDIA. A method of this crate needs CUDA 11.0,
//! unless its description names a newer version.
//!
//! # Forking
//!
//! Once CUDA is initialised it does not survive a fork. In a child that was forked later, every
//! call returns [`Error::ForkedChild`], and dropping inherited objects does nothing. Loading does
//! not initialise CUDA: a process may load the driver, fork, and use the device in the child.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![deny(missing_docs, unreachable_pub, unsafe_code)]
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::unreachable
)]
// Links to the safe layer lead nowhere without it.
#![cfg_attr(not(feature = "safe"), allow(rustdoc::broken_intra_doc_links))]
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)
)]

// The documentation has the methods of a type in the order of these modules: its own come first.
#[cfg(feature = "safe")]
mod context;
#[cfg(feature = "safe")]
mod event;
#[cfg(feature = "safe")]
mod stream;

#[cfg(feature = "safe")]
pub mod capture;
#[cfg(feature = "safe")]
mod clock;
#[cfg(feature = "safe")]
mod debug_by_names;
#[cfg(feature = "safe")]
mod device;
mod driver;
mod error;
#[cfg(feature = "safe")]
pub mod ext;
#[cfg(feature = "safe")]
pub mod external;
pub mod foundation;
#[cfg(feature = "safe")]
pub mod graph;
#[cfg(feature = "safe")]
pub mod green;
mod growing_list;
#[cfg(doc)]
pub mod guide;
#[cfg(feature = "safe")]
mod handle_traits;
#[cfg(feature = "safe")]
pub mod ipc;
pub mod loader;
#[cfg(feature = "safe")]
mod progress;
mod sync;
pub mod sys;
#[cfg(feature = "safe")]
mod timeout;
#[cfg(feature = "safe")]
mod unwind;

// Hidden: for software drivers, and for the crates on top that are tested with one.
#[cfg(feature = "safe")]
#[doc(hidden)]
pub use clock::HostClock;
#[cfg(feature = "safe")]
pub use context::{Context, CurrentContext};
#[cfg(feature = "safe")]
pub use device::{Device, Uuid};
pub use driver::Driver;
#[cfg(feature = "observe")]
pub use driver::observer;
pub use error::{Error, Result};
#[cfg(feature = "safe")]
pub use event::{Event, EventFlags, EventRef};
#[cfg(feature = "safe")]
pub use ipc::IpcEventDescriptor;
pub use loader::{LoadError, LoadOptions};
#[cfg(feature = "safe")]
pub use progress::Progress;
#[cfg(feature = "safe")]
pub use stream::{ForeignStream, PriorityRange, Stream, StreamOptions, StreamRef};
#[cfg(feature = "safe")]
pub use stream::{attributes, host_functions, mem_ops};
pub use sys::Version;

#[cfg(doc)]
use sys::calls::*;

#[cfg(all(doctest, feature = "safe"))]
#[doc = include_str!("../README.md")]
struct Readme;
