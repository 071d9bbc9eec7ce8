//! A CUDA driver in software, for tests without a GPU.
//!
//! It implements the event, stream, context, capture, graph, host-function, memory and interprocess
//! entry points of the CUDA driver on host threads and host memory. It computes nothing: there are
//! no kernels and no modules. What it does is to behave like the real driver where programs that
//! order work depend on it, as measured on an NVIDIA H200, to say what a program does wrong where
//! the real one crashes, and to fail on command.
//!
//! # In a test
//!
//! ```
//! use cuda_events::{Context, Device, Event, EventFlags, Stream, StreamOptions};
//! use cuda_soft_driver::SoftDriver;
//!
//! # fn main() -> cuda_events::Result<()> {
//! let soft = SoftDriver::builder().devices(2).log(1000).build();
//! let driver = soft.driver();
//!
//! let context = Context::primary(Device::new(driver, 1)?)?;
//! let stream = Stream::new(&context, StreamOptions::new())?;
//! let event = Event::new(&context, EventFlags::empty())?;
//! event.record(&stream)?;
//! event.synchronize()?;
//!
//! drop((event, stream, context));
//! soft.assert_no_leaks();
//! assert!(soft.log().iter().any(|call| call.function == "cuEventRecord"));
//! # Ok(())
//! # }
//! ```
//!
//! Each [`SoftDriver`] is a driver of its own, with its own devices, handles and threads, so that
//! tests run side by side in one process; there is room for [`SLOTS`] at a time. Its functions are
//! plain C functions: [`SoftDriver::resolve`] gives their addresses to any other binding.
//!
//! # As a shared library
//!
//! The package `cuda-soft-driver-shared` is the same as a C shared library with the driver's
//! exported names, for programs that load `libcuda.so.1` themselves. `CUDA_SOFT_DRIVER` configures
//! it; [`Builder::from_text`] says how, and [`SoftDriver::control`] what can be done with it from
//! outside. It is for tests: no program should find it unasked, so do not install it where
//! libraries are looked for, and `cuDeviceGetName` says what it is.
//!
//! # How it works
//!
//! * A record makes a point of completion. Whatever waits for the event takes the point that it has
//!   then: recording the event again changes nothing for it.
//! * A stream is a queue. One that has nothing to do does what it is given at once; one that waits
//!   costs no thread. One that waits for a value in memory is looked at now and then, less often
//!   the longer nothing comes.
//! * The streams of a context share a few channels, eight unless `CUDA_DEVICE_MAX_CONNECTIONS` says
//!   otherwise, and a wait for a value holds back its channel, as on a card; a stream with nothing
//!   to do takes one without waits, while there is one. Where that is a
//!   deadlock it is [told](OnDeadlock) and hangs nothing. Host functions run on one thread, one
//!   after the other, as on the real driver; copies run on two others.
//! * What a kernel is to a scheduler, [`SoftDriver::busy`] is: a stream is busy for a duration, and
//!   others go on. In [virtual time](Time::Virtual) hours of that take no time.
//! * Handles are numbers that are never dereferenced. A destroyed, foreign or made-up one is
//!   recognised, and [`OnMisuse`] says what then happens.
//! * A device has 132 multiprocessors, as an H200 has, and parts of eight or more. A green context
//!   is a context that has some of them, and shares the events of the primary one.
//! * Interprocess events are slots in shared memory, one file for each exporting context, owned by
//!   and readable for one user. Device memory lies in a file without a name, which the exporter
//!   sends to whoever asks by a handle, through a Unix socket in the abstract namespace: a private
//!   `/dev/shm`, or one of its own for process numbers, is no obstacle, as on a card. A network
//!   namespace of its own is, which it is not on a card. Windows has the events, in named sections
//!   of the page file, and no memory. Elsewhere both are `CUDA_ERROR_NOT_SUPPORTED`.
//! * A call that is not supported says so once, on standard error, by name. Programs of the CUDA
//!   runtime (PyTorch, CuPy) need the tables of `cuGetExportTable` and cannot run here.
//! * Device attributes are an H200's, from one list of what was measured; what would send a program
//!   to calls that are not here is 0: virtual memory, multicast, pools of host memory, and devices
//!   that read a GPU's memory.
//! * Memory of a pool begins and ends in stream order, and the order checker is told so. It comes
//!   from the system and goes back at once; what a real pool would keep is only counted. It cannot
//!   be allocated in a stream capture.
//! * An [external semaphore](ExternalSemaphore) is a page of a file of memory. A signal or a wait
//!   that is captured becomes a node of the graph, as is documented of a card: each launch signals
//!   or waits for the same value again. External memory is not supported.
//! * A child graph is part of the order that its graph is launched in, node by node.
//! * In a forked child, and while a process ends, it answers as the real driver does then.
//!
//! # Making it fail
//!
//! [`Fault`] says which calls fail, when, and how: by name or pattern, the n-th, every k-th, at
//! random with a seed, once or from then on, instead of the work or after it, with out-parameters
//! left alone or filled with garbage, or held until released. [`SoftDriver::fail_contexts`] is the
//! trapped kernel, [`SoftDriver::shut_down`] the end of the process, [`Builder::without`] the old
//! driver. [`Scheduler::Seeded`] does independent work in an order that a seed chooses, which finds
//! what is not ordered at all.
//!
//! # What it is not
//!
//! Fast, as a GPU is fast: it is there to be right. Where the documents of the driver leave
//! something open it does one of the things that a real driver may do. So a program that passes
//! here may still have a race. The [order checker](OrderCheck) finds it: it reports each two
//! accesses to the same bytes, at least one of them a write or a free, that no event, wait, value
//! or synchronization orders. Between streams that only events order, it does so on every run. By
//! default it takes for order what may be one that no driver sees: among threads, by host
//! functions, and by values in host memory. With [`HostOrder::Told`] it takes only what it [is
//! told](SoftDriver::hand_over): then a program that passes has no race in what it did, as far as
//! the driver sees its accesses or [is told](SoftDriver::reads) of them.

#![deny(missing_docs, unreachable_pub)]

/// Says something on standard error itself, not through what a test harness captures: the process
/// may end before the harness shows it.
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), "cuda-soft-driver: {}", format_args!($($text)*));
    }};
}
pub(crate) use say;

// Four floors, each of which imports only from those below it (floors.txt, held by tools/floors):
// `model` is what a driver is, `calls` what its entry points do, `front` how a call comes in, and
// `api` what a program sees. The other modules are what all of them use.
pub mod abi;
mod api;
mod arg;
mod calls;
mod errors;
mod front;
mod model;
mod random;

/// What the driver exports: the list, and the C functions.
pub mod exports {
    pub use crate::front::exports::{COUNT, EXPORTS, Id};
    pub use crate::front::functions::functions;
}

/// What a card answers, for tests that compare.
#[doc(hidden)]
pub mod attributes {
    pub use crate::model::attributes::{COUNT, H200};
}

/// The C functions of what a driver exports beside what this one is about.
#[doc(hidden)]
pub mod foreign {
    pub use crate::front::functions::foreign_functions as functions;
}

/// The C functions of what `cuda-events` binds and no list has.
#[doc(hidden)]
pub mod unlisted {
    pub use crate::front::functions::unlisted_function as function;
    pub use crate::front::unlisted::index;
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

pub use api::builder::Builder;
#[doc(hidden)]
pub use api::busy::busy_shared_library;
#[doc(hidden)]
pub use api::control::control_shared_library;
pub use api::driver::SoftDriver;
pub use api::external::ExternalSemaphore;
#[doc(hidden)]
pub use api::external::{
    external_semaphore_shared_library, signal_external_semaphore_shared_library,
};
#[doc(hidden)]
pub use api::order::{hand_shared_library, saw_shared_library, tell_shared_library};
pub use api::report::Live;
#[doc(hidden)]
pub use api::shared_library::{end_shared_library, shared_library_lacks, start_shared_library};
pub use calls::device::DEVICE_NAME;
#[doc(hidden)]
pub use cuda_events::for_each_entry_point;
pub use cuda_order_check::{HostOrder, Warnings as OrderWarnings};
pub use front::export::Export;
pub use front::faults::Fault;
pub use front::log::CallRecord;
pub use model::config::{OnDeadlock, OnMisuse, OrderCheck, Rules, Scheduler, Time};
pub use model::external::SemaphoreKind;
pub use model::places::SLOTS;
#[doc(hidden)]
pub use model::places::waits_for_places;
