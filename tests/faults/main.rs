//! Drivers that fail: every call of every scenario, and drivers of every version.

use cuda_events_test_support as common;

mod exhaustive;
mod exporter;
mod graphs_and_ipc;
mod harness;
mod loading;
mod restoring;
mod scenarios;
mod timelines;
mod versions;
