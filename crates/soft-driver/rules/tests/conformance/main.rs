//! What a CUDA driver does, rule by rule: the software driver and a real one run the same rules.
//! They call the driver's functions directly. Of `cuda-events` they use the raw layer alone: the
//! declarations, and the list of entry points with their versions.
//!
//! Each rule is a test that does a few calls, says in short text what the driver answered, and
//! compares that with what was measured on a real driver. With `--nocapture` the log holds a line
//! `rule <id> | <answer>` for each; from such logs `tools/behaviour` writes
//! `vendor-docs/behaviour/rules.md`.
//!
//! A rule that cannot run (there is one device, the driver is too old) says so in its line and on
//! standard error, and passes: its result is missing, not good.

#![cfg_attr(
    not(target_os = "linux"),
    allow(
        dead_code,
        reason = "what rules of a platform use: fork, exit handlers, files of memory"
    )
)]

mod exported;
mod raw;
mod rules;
#[cfg(target_os = "linux")]
mod semaphores;

mod capture;
mod contexts;
mod devices;
mod edits;
mod elapsed;
mod errors;
mod events;
#[cfg(target_os = "linux")]
mod external;
mod graphs;
mod green;
mod host_functions;
mod initialisation;
mod ipc;
mod legacy;
mod log;
mod lookup;
mod memory;
mod nodes;
mod process;
mod streams;
mod synchronous;
mod undefined;
// They share a file of memory with another process.
#[cfg(target_os = "linux")]
mod values;
