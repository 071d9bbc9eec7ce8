//! What is unusual about this process, in one flag that the hot path looks at.
//!
//! The driver does not survive a fork: in the child most calls answer `CUDA_ERROR_NOT_INITIALIZED`, queries of inherited
//! handles answer success, and destroying an inherited stream crashes. And a handle of one driver library is an arbitrary
//! address to another. Neither is so in most processes, so that the wrappers ask for both at once, and look closer only
//! when the answer is not zero.

use core::sync::atomic::{AtomicU8, Ordering};

/// A bit of the flag: this process was forked from one in which the driver was initialised.
pub(super) const FORKED: u8 = 1;
/// A bit of the flag: this process has loaded more than one driver library.
pub(super) const SEVERAL_LIBRARIES: u8 = 2;

static UNUSUAL: AtomicU8 = AtomicU8::new(0);

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
