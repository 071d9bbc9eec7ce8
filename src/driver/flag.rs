//! What is unusual about this process, in one flag that the hot path looks at.
//!
//! The driver does not survive a fork: in the child most calls answer `CUDA_ERROR_NOT_INITIALIZED`,
//! queries of inherited handles answer success, and destroying an inherited stream crashes. And a
//! handle of one driver library is an arbitrary address to another. Neither is so in most
//! processes, so that the wrappers ask for both at once, and look closer only when the answer is
//! not zero.
//!
//! # Why relaxed loads see it
//!
//! The flag guards a decision and no memory: a reader needs to see the bit, and nothing else that
//! was written before it. The bits are never cleared. So a load sees a bit if setting it happens
//! before the load, whatever the orderings are.
//!
//! A fork ([`fork`](super::fork)):
//!
//! 1. Before this process has an object of the driver, `note_initialised` has registered the
//!    handler. It runs in a `Once`, so that it happens before every return from it.
//! 2. A child begins with one thread, the copy of the one that forked. The C library calls the
//!    handler on it, before `fork` returns there: the bit is set.
//! 3. Every later load in the child is made by this thread, after it in program order, or by a
//!    thread that this one has started, directly or not; starting a thread happens before all that
//!    the thread does.
//!
//! Several libraries ([`libraries`](super::libraries)):
//!
//! 1. `note` exchanges the number of the first library for 0. Exchanges of one atomic have one
//!    order, so one library is the first, and each `note` for another one sees that.
//! 2. That `note` sets the bit, before the `Driver` of its library exists.
//! 3. A call can mix two libraries only if one of its objects is of a library that is not the
//!    first. Its thread has that object, or the `Driver` that it was made with, from the thread of
//!    step 2: by itself, or by something that synchronizes, such as a channel, a lock, or the list
//!    of loaded drivers. So step 2 happens before its load.

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
