//! Catching panics of a user's code, where none may escape.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs a user's code inside a function that the driver calls, or inside a method that must not
/// panic because an observer does. The panic hook has reported the panic. Its payload is dropped
/// here, and leaked if that panics again.
pub(crate) fn contain(code: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(code))
        && let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(payload)))
    {
        core::mem::forget(payload);
    }
}
