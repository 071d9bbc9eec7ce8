//! What the calls do, on the raw table.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "each calls the raw table with handles that it gave out and places on the stack"
)]
#![allow(unused_unsafe, reason = "some calls by name are within blocks of calls of the table")]

use cuda_events_test_support::raw as common;

#[cfg(target_os = "linux")]
mod arguments;
mod capture;
mod ends;
#[cfg(target_os = "linux")]
mod external;
mod process;
mod values;
mod versions;
#[cfg(target_os = "linux")]
mod virtual_memory;
mod work;

mod copies;
mod edits;
mod green;
#[cfg(all(feature = "images", target_os = "linux"))]
mod images;
mod kernels;
mod order;
mod pools;
mod refused;
