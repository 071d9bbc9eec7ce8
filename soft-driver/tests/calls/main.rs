//! What the calls do, on the raw table.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "each calls the raw table with handles that it gave out and places on the stack"
)]

use cuda_events_test_support::raw as common;

mod capture;
mod ends;
mod order;
mod process;
mod values;
mod versions;
mod work;
