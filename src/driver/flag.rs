//! One flag for unusual processes, which the hot path reads.
//!
//! The driver does not survive a fork: in the child most calls return `CUDA_ERROR_NOT_INITIALIZED`,
//! queries of inherited handles return success, and destroying an inherited stream crashes. Also, a
//! handle of one driver library is an arbitrary address for another. Most processes have neither
//! problem, so the wrappers check for both at once, and look closer only if the flag is not zero.
//!
//! # Why relaxed loads see it
//!
//! The flag guards a decision, not memory: a reader needs to see only the bit, no other write
//! before it. The bits are never cleared. So a load sees a bit if setting it happens before the
//! load, whatever the orderings are.
//!
//! A fork ([`fork`](super::fork)):
//!
//! 1. Before this process has an object of the driver, `note_initialised` has registered the
//!    handler. It does so in a `Once`, so the registration happens before every return from it.
//! 2. A child begins with one thread, the copy of the one that forked. The C library calls the
//!    handler on it, before `fork` returns there: the bit is set.
//! 3. Every later load in the child is made by this thread, later in program order, or by a thread
//!    that this one has started, directly or not. Starting a thread happens before everything that
//!    the thread does.
//!
//! Several libraries ([`libraries`](super::libraries)):
//!
//! 1. `note` exchanges the number of the first library for 0. Exchanges of one atomic have one
//!    order, so one library is the first, and each `note` for another one sees that.
//! 2. That `note` sets the bit, before the `Driver` of its library exists.
//! 3. A call can mix two libraries only if one of its objects belongs to a library that is not the
//!    first. The thread of the call got that object, or the `Driver` of the object, from the thread
//!    of step 2: it is the same thread, or the object came through a synchronizing operation, such
//!    as a channel, a lock, or the list of loaded drivers. So step 2 happens before its load.

use crate::sync::{AtomicU8, Ordering, global};

/// A bit of the flag: this process was forked from one in which the driver was initialised.
pub(super) const FORKED: u8 = 1;
/// A bit of the flag: this process has loaded more than one driver library.
pub(super) const SEVERAL_LIBRARIES: u8 = 2;

global! {
    static UNUSUAL: AtomicU8 = AtomicU8::new(0);
}

/// Whether the hot path must look closer.
#[inline(always)]
pub(crate) fn unusual() -> bool {
    UNUSUAL.load(Ordering::Relaxed) != 0
}

/// Whether one of the bits is set.
#[inline(always)]
pub(super) fn is(bit: u8) -> bool {
    UNUSUAL.load(Ordering::Relaxed) & bit != 0
}

/// Sets one of the bits, for good.
pub(super) fn set(bit: u8) {
    UNUSUAL.fetch_or(bit, Ordering::Relaxed);
}
