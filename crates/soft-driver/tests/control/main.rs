//! What a test can do with the driver.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "each calls the raw table with handles that it gave out and places on the stack"
)]

use cuda_events_test_support::raw as common;

mod busy;
mod control;
mod failures;
mod faults;
mod leaks;
mod pending;
mod settings;
mod targets;
mod virtual_time;
