//! Drivers that fail: every call of every scenario, random answers, and drivers of every version.

use cuda_events_test_support as common;

mod exhaustive;
mod exporter;
mod faulty_answers;
mod graphs_and_ipc;
mod harness;
mod loading;
mod poller;
mod restoring;
mod scenarios;
mod versions;
