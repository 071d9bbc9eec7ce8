//! Catching panics: in functions that the driver calls, and in threads of this crate.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs a user's code where a panic must not escape: inside a function that the driver calls, or in
/// a thread of this crate. The panic hook has reported the panic. Its payload is dropped here, and
/// leaked if that panics again.
pub(crate) fn contain(code: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(code))
        && let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(payload)))
    {
        core::mem::forget(payload);
    }
}
