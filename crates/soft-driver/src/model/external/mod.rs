//! External semaphores: one word in a page of shared memory, which a descriptor names.
//!
//! Of a timeline the word is the value. Of a binary semaphore it is 1 once it was signalled, and 0
//! again once a wait has taken that. Nothing rings: who waits looks now and then, as for values in
//! memory, so that a process that is killed leaves nothing behind.
//!
//! `semaphore.rs` is the same everywhere. A platform has pages that a descriptor names.

pub(crate) use self::platform::Descriptor;
pub use self::semaphore::SemaphoreKind;
pub(crate) use self::semaphore::{Imported, Semaphore, SemaphorePoint, Semaphores};

#[cfg(target_os = "linux")]
#[path = "linux.rs"]
mod platform;
#[cfg(not(target_os = "linux"))]
#[path = "nowhere.rs"]
mod platform;
#[cfg_attr(
    not(target_os = "linux"),
    expect(unreachable_code, unused_variables, reason = "there is no page, so none can be had")
)]
mod semaphore;

/// Whether this platform has external semaphores in software.
pub(crate) const AVAILABLE: bool = cfg!(target_os = "linux");
