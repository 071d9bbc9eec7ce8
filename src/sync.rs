//! The atomics and locks of every structure whose comments argue about orderings.
//!
//! They are those of core and std. `tests/orderings` compiles the same source files with loom's
//! types in place of this module, and tries the orders in which threads may run and see each
//! other's writes.

#[cfg(feature = "safe")]
pub(crate) use core::sync::atomic::AtomicBool;
pub(crate) use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicUsize, Ordering};
#[cfg(feature = "safe")]
use std::sync::PoisonError;
#[cfg(feature = "safe")]
pub(crate) use std::sync::{Arc, Mutex, MutexGuard};

/// Locks. A panic of another thread is no error: what is locked is never left half changed.
#[cfg(feature = "safe")]
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Declares a static. Loom makes it anew for each run.
macro_rules! global {
    ($(#[$note:meta])* static $name:ident: $type:ty = $value:expr;) => {
        $(#[$note])*
        static $name: $type = $value;
    };
}
pub(crate) use global;

/// Declares a constructor that statics can use. Loom's constructors are not constant.
macro_rules! constant {
    ($(#[$note:meta])* $visible:vis fn $($rest:tt)*) => {
        $(#[$note])*
        $visible const fn $($rest)*
    };
}
pub(crate) use constant;

/// The size of a structure. The checked version is smaller, because all orders are tried.
#[cfg(feature = "safe")]
pub(crate) const fn shipped_or_checked(shipped: usize, _checked: usize) -> usize {
    shipped
}
