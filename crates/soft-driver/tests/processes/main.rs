//! What takes a process of its own: forks, interprocess events, the shared library, all places for
//! drivers, the processor.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "each calls the raw table with handles that it gave out and places on the stack"
)]

use cuda_events_test_support::raw as common;

mod findings;
mod fork;
mod gpu;
mod ipc;
mod kernels;
mod late;
mod many;
mod shared;
#[cfg(unix)]
mod watch;

mod unsupported;
