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

/// Checks a call that must succeed, and that the rule does not test.
macro_rules! must {
    ($on:ident.$call:ident($($arguments:tt)*)) => {
        $crate::raw::must(stringify!($call), $on.$call($($arguments)*))
    };
}

pub(crate) mod raw;
pub(crate) mod rules;
#[cfg(target_os = "linux")]
pub(crate) mod semaphores;

pub(crate) mod capture;
pub(crate) mod capture_calls;
pub(crate) mod contexts;
pub(crate) mod devices;
pub(crate) mod edits;
pub(crate) mod elapsed;
pub(crate) mod errors;
pub(crate) mod events;
#[cfg(target_os = "linux")]
pub(crate) mod external;
pub(crate) mod graphs;
pub(crate) mod green;
pub(crate) mod host_functions;
pub(crate) mod initialisation;
pub(crate) mod ipc;
pub(crate) mod legacy;
pub(crate) mod log;
pub(crate) mod lookup;
pub(crate) mod memory;
pub(crate) mod nodes;
pub(crate) mod process;
pub(crate) mod streams;
pub(crate) mod synchronous;
pub(crate) mod undefined;
pub(crate) mod virtual_memory;
pub(crate) mod waits;
// They share a file of memory with another process.
#[cfg(target_os = "linux")]
pub(crate) mod values;
