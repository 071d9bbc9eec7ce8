//! Gives a program's calls of a CUDA driver to the order checker: the stand-in for `libcuda.so.1`,
//! except the library itself, which is in the package `cuda-order-check`.
//!
//! [`install`] looks up the real functions. [`target`] is then the address that a name has in the
//! stand-in: a hook, which calls the real function, or that function itself. What each call means
//! to the checker is in `cuda_order_check_engine::feed`, which the software driver uses as well.
//!
//! # Kernels
//!
//! Each word among a kernel's parameters that is an address of known memory counts as a read of that
//! one byte, which a copy, a memset or a free of the byte needs an order with. A finding of that kind is
//! a candidate. It is judged by the kernel's machine code and the values of the launch: it is dropped if
//! these say that the kernel does nothing there that needs an order, and counted in place of reported
//! if they say nothing. Work elsewhere in the address's allocation is a candidate, too, and is dropped
//! if they say nothing.
//!
//! # What it does not model
//!
//! * A function that is not hooked, and that may order work or touch memory as far as its name says,
//!   counts as ordering everything. The summary names it.
//! * The host's own accesses, except to pinned memory ([`watch_host`]), unless they are
//!   [declared](declare).
//! * The moment at which a stream has written a value that the host polls: it is looked for at the
//!   begin and at the end of each call.

#![allow(missing_docs)]
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod abi;
mod call;
mod callbacks;
mod candidates;
mod code;
mod elf;
mod fork;
mod guard;
mod hooks;
mod lock;
mod model;
mod names;
mod pinned;
mod process;
mod real;
mod report;
mod settings;
mod start;
mod state;
mod summary;
mod table;
mod walk;
mod watch;

/// Calls a macro with the names that the stand-in exports.
pub use cuda_events::__for_each_export as for_each_name;
pub use elf::Elf;
pub use fork::{watch_forks, whole};
pub use hooks::declare::{declare, flush, name_stream, take_findings};
pub use hooks::{exported, install, names, target};
pub use pinned::{calls, faults};
pub use process::{before_exec, before_exit, watch_process};
pub use real::{find, open};
pub use report::counts::count_by;
pub use report::regions::{pop_region, push_region};
pub use settings::{CLASSES, Class, Settings, VARIABLE, variable};
pub use start::watch_host;
pub use summary::summary;
