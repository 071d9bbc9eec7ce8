//! Where a panic must end: in functions that the driver calls, and in threads of this crate.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs a caller's code where a panic must not get out: inside a function that the driver calls, or
/// in a thread of ours. The panic hook has reported it; what it carries is dropped here, and leaked
/// if that panics again.
pub(crate) fn contain(code: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(code))
        && let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(payload)))
    {
        core::mem::forget(payload);
    }
}
