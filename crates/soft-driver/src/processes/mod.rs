//! What processes share. Interprocess events: one piece of shared memory for each exporting
//! context, one slot for each event. Interprocess memory: [`shared_memory`]. External semaphores:
//! [`semaphore`].
//!
//! A slot's word of 64 bits holds how many records were made, how many of them are done, and which
//! event of the slot's it is about. A record, in any process, adds to the first two, always by
//! compare-and-swap, so that a process that is killed leaves no lock behind. The
//! memory's header has a bell that rings with each completion somebody may wait for.
//!
//! `slots.rs` is the same everywhere. A platform has names for shared memory, and a way to sleep
//! until the bell rings.

#[cfg_attr(
    not(target_os = "linux"),
    expect(unreachable_code, unused_variables, reason = "there is no page, so none can be had")
)]
pub(crate) mod semaphore;
pub(crate) mod shared_memory;

#[cfg(any(target_os = "linux", windows))]
pub(crate) use self::slots::{Exporter, Record, SharedEvent, Wait, block, tidy_up, watch};

#[cfg(not(any(target_os = "linux", windows)))]
pub(crate) use self::nowhere::{Exporter, Record, SharedEvent, Wait, block, tidy_up, watch};

#[cfg(target_os = "linux")]
#[path = "linux.rs"]
mod platform;
#[cfg(windows)]
#[path = "windows.rs"]
mod platform;
#[cfg(any(target_os = "linux", windows))]
mod slots;

#[cfg(not(any(target_os = "linux", windows)))]
mod nowhere;

/// Holds what this process has open, for a fork.
#[cfg(all(unix, not(miri)))]
pub(crate) fn hold() -> Vec<Box<dyn core::any::Any>> {
    vec![
        #[cfg(target_os = "linux")]
        Box::new(slots::hold()),
        Box::new(semaphore::hold()),
    ]
}

/// Whether this platform has interprocess events in software.
pub(crate) const AVAILABLE: bool = cfg!(any(target_os = "linux", windows));
