//! A CUDA driver in software, for tests without a GPU.
//!
//! It implements the event, stream, context, capture, graph, host-function, memory and interprocess
//! entry points of the CUDA driver on host threads and host memory. It interprets no device code: a
//! kernel is a [closure](SoftDriver::kernel) of the test. The order of work, the results and the
//! errors are as measured on an NVIDIA H200, with [exceptions](#what-it-does). If a mistake of the
//! program crashes the real driver, the software driver reports the mistake. A test can make any
//! call [fail](#making-it-fail).
//!
//! # In a test
//!
//! ```text
//! cargo add --dev cuda-soft-driver
//! ```
//!
//! ```
//! use cuda_events::{Context, Device, Event, EventFlags, Stream, StreamOptions};
//! use cuda_soft_driver::SoftDriver;
//!
//! fn records() -> cuda_events::Result<()> {
//!     let soft = SoftDriver::builder().devices(2).log(1000).build();
//!     let driver = soft.driver();
//!
//!     let context = Context::primary(Device::new(driver, 1)?)?;
//!     let stream = Stream::new(&context, StreamOptions::new())?;
//!     let event = Event::new(&context, EventFlags::empty())?;
//!     event.record(&stream)?;
//!     event.synchronize()?;
//!
//!     drop((event, stream, context));
//!     soft.assert_no_leaks();
//!     assert!(soft.log().iter().any(|call| call.function == "cuEventRecord"));
//!     Ok(())
//! }
//! # records().unwrap()
//! ```
//!
//! With `#[test]` in front of the function this is a whole test.
//!
//! Each [`SoftDriver`] has its own devices, handles and threads, so tests run side by side in one
//! process. There is room for [`SLOTS`] drivers at a time. The functions of a driver are plain C
//! functions: [`SoftDriver::resolve`] returns their addresses for any other binding.
//!
//! # As a shared library
//!
//! The package `cuda-soft-driver-shared` contains the same driver as a C shared library, for
//! programs that load `libcuda.so.1` themselves. It exports the driver's names. The variable
//! `CUDA_SOFT_DRIVER` configures it, with the settings of [`Builder::from_text`]. A program that
//! has loaded the library can control it: see [`SoftDriver::control`]. The library is for tests
//! only: do not install it in a folder that the system searches for libraries. `cuDeviceGetName`
//! returns `CUDA software driver (no GPU)`.
//!
//! # Other programs
//!
//! It has each name of the driver, not only what `cuda-events` calls. These programs run on it:
//!
//! | program | what it calls |
//! | --- | --- |
//! | cudarc | settings of contexts, synchronous copies, peer copies, managed memory, pools, clones and uploads of graphs, modules and kernels |
//! | numba-cuda | devices by PCI bus id, peer access, synchronous copies, pointer attributes, the profiler |
//! | cuda.core | host memory, managed memory, pools, 3D copies, graph definitions: nodes, edges, updates, user objects |
//! | FFmpeg | pitched memory, 2D copies, limits and primary contexts |
//! | any program that is linked with `libcuda.so.1` | stubs for all other names of the driver, so that the program links; they return `CUDA_ERROR_NOT_SUPPORTED` |
//!
//! # What it does
//!
//! * A program can load and launch the kernels that the test has [registered](SoftDriver::kernel),
//!   and with the feature `images`, on Linux, those of its images: cubins, fat binaries and PTX.
//!   These do not run, and change no memory; the [order checker](OrderCheck) gets the bytes that the
//!   first and last threads surely touch, from the kernel's code.
//!   To stand in for any other kernel, call [`SoftDriver::busy`]: it keeps a stream busy for a
//!   duration, and other streams go on. In [virtual time](Time::Virtual) hours of work take no
//!   time.
//! * Host functions run on one thread, one after the other, as on the real driver.
//! * The streams of a context share a few channels: eight, or `CUDA_DEVICE_MAX_CONNECTIONS`. A wait
//!   for a value blocks its channel, as on a GPU. If this leads to a deadlock, the driver
//!   [reports](OnDeadlock) the deadlock and does not hang.
//! * It detects a destroyed, foreign or made-up handle. [`OnMisuse`] sets the reaction.
//! * Interprocess events and memory work between processes of one user. As on a GPU, interprocess
//!   memory needs neither a common `/dev/shm` nor a common pid namespace. Unlike on a GPU, it needs
//!   a common network namespace. On Windows there are interprocess events, but no interprocess
//!   memory.
//! * Device attributes are those of an H200. The attributes of missing features are 0: virtual
//!   memory, multicast, pools of host memory, and access by network cards and other PCIe devices
//!   (GPUDirect RDMA).
//! * [External semaphores](ExternalSemaphore) work, external memory does not. Memory of a pool
//!   cannot be allocated in a stream capture.
//! * In a forked child, and while the process ends, calls return the same codes as on the real
//!   driver.
//! * The first call of an unsupported function prints its name on standard error. Programs of the
//!   CUDA runtime (PyTorch, CuPy) cannot run here, because they need the tables of
//!   `cuGetExportTable`.
//!
//! `crates/soft-driver/ARCHITECTURE.md` in the source tree describes how it works.
//!
//! # Making it fail
//!
//! [`Fault`] defines which calls fail, when, and how. It selects calls by name or pattern: the
//! n-th, every k-th, at random with a seed, once or from then on. The call fails before its work or
//! after it. The out-parameters stay unchanged, or get garbage. A call can also block until the
//! test releases it.
//!
//! [`SoftDriver::fail_contexts`] simulates a kernel that trapped. [`SoftDriver::shut_down`]
//! simulates the end of the process, and [`Builder::without`] simulates an old driver.
//! [`Scheduler::Seeded`] runs independent work in a random order, so that a test can fail where the
//! program forgot a wait.
//!
//! # Limits
//!
//! It is correct, but not fast like a GPU. Where the driver's documentation leaves something open,
//! it does one of the things that a real driver may do. So a program that passes here may still
//! have a race.
//!
//! The [order checker](OrderCheck) finds races. It reports two accesses to the same bytes, one of
//! them a write or a free, that nothing orders. In a program that orders its streams by events
//! only, it finds each race on every run.
//!
//! A driver cannot see the order that threads, host functions and values in host memory create. By
//! default the checker assumes that the program intended the order in which its calls came in this
//! run. So it can miss a race in some runs. With [`HostOrder::Reported`] it uses only the order that the program
//! [reports](SoftDriver::hand_over). A program that passes then has no race in this run, for all
//! accesses that the driver sees or that the program [reports](SoftDriver::reads).

#![cfg_attr(docsrs, feature(doc_cfg))]
#![deny(missing_docs, unreachable_pub)]

/// Prints to standard error directly, so a test harness does not capture the text: the process may
/// end before the harness shows captured text.
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), "cuda-soft-driver: {}", format_args!($($text)*));
    }};
}
pub(crate) use say;

// A module is a subject: the struct, its rules and the bodies of its entry points. `machine` has
// the state, `engine` moves the work in streams on, and `order` gives the order checker what
// happens. `front` is how a call comes in, and `api` what a program sees: only they import it, and each other.
#[doc(hidden)]
/// Defines what a module exports, as a macro that calls another one with the list: see
/// `front::exports`. The dollar sign before the list is for the macro that is defined, as a macro
/// cannot write one.
macro_rules! exports {
    ($dollar:tt [$($module:tt)+] $($list:tt)*) => {
        macro_rules! exported {
            ($dollar callback:ident) => { $dollar callback! { [$($module)+] $($list)* } };
        }
        pub(crate) use exported;
    };
}

pub mod abi;
mod allocation;
mod api;
mod arg;
mod capture;
mod context;
mod copy;
mod device;
mod driver_log;
mod engine;
mod errors;
mod event;
mod external_semaphore;
mod front;
mod graph;
mod green_context;
mod host_function;
mod init;
mod ipc;
mod kernel;
mod machine;
mod memory;
mod order;
mod processes;
mod random;
mod stream;
mod sync;
mod threads;
mod values;

#[doc(hidden)]
pub use cuda_events::__for_each_export as for_each_export;

/// The list of the driver's exports.
pub mod exports {
    #[doc(hidden)]
    pub use crate::front::exports::{COUNT, Id};
    pub use crate::front::exports::{EXPORTS, NEWEST};
    #[doc(hidden)]
    pub use crate::front::functions::{Address, Slot, addresses};
}

/// Results measured on a card, for tests that compare.
#[doc(hidden)]
pub mod attributes {
    pub use crate::device::attributes::{COUNT, H200};
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
#[doc(hidden)]
pub use api::examples;
pub use api::external::ExternalSemaphore;
#[doc(hidden)]
pub use api::external::{
    external_semaphore_shared_library, signal_external_semaphore_shared_library,
};
pub use api::kernel::Kernel;
#[doc(hidden)]
pub use api::kernel::{
    KernelInC, LaunchInC, kernel_copies_shared_library, kernel_declares_shared_library,
    kernel_shared_library,
};
#[doc(hidden)]
pub use api::order::{
    access_shared_library, hand_shared_library, name_stream_shared_library, saw_shared_library,
};
pub use api::report::Live;
#[doc(hidden)]
pub use api::shared_library::{
    alias_shared_library, end_shared_library, shared_library_lacks, start_shared_library,
};
pub use cuda_order_check_engine::{
    HostOrder, Problem as OrderProblem, Report as OrderReport, Side as OrderSide,
    Warning as OrderWarning, Warnings as OrderWarnings,
};
pub use device::DEVICE_NAME;
pub use front::export::Export;
pub use front::faults::Fault;
pub use front::log::CallRecord;
pub use kernel::{Accesses, Launch, Word};
pub use machine::config::{OnDeadlock, OnMisuse, OrderCheck, Rules, Scheduler, Time};
pub use machine::places::SLOTS;
#[doc(hidden)]
pub use machine::places::waits_for_places;
pub use processes::semaphore::SemaphoreKind;
