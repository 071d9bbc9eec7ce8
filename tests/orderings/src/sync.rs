//! What stands in the place of the library's `src/sync.rs` here: loom's atomics and locks.

pub use loom::sync::{Arc, Condvar, Mutex, MutexGuard};
pub use std::sync::PoisonError;
pub use std::sync::atomic::Ordering;

use std::panic::Location;

use loom::sync::atomic;

use crate::faults;

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Wraps an atomic of loom's, for the sake of its search.
///
/// Loom goes back to the last access that an access depends on and runs the other thread first. It
/// remembers one access of an atomic, and takes a load to depend on no other load: so a load hides
/// those of other threads before it, and orders in which they see what is written next are never
/// tried. Here each access exchanges something else first, which orders nothing and depends on
/// each other access.
macro_rules! wrap {
    ($(
        $name:ident $(<$parameter:ident>)?: $value:ty {
            $($method:ident: $change:expr;)*
        }
    )*) => { $(
        pub struct $name $(<$parameter>)? {
            turns: atomic::AtomicUsize,
            inner: atomic::$name $(<$parameter>)?,
        }

        impl $(<$parameter>)? $name $(<$parameter>)? {
            pub fn new(value: $value) -> Self {
                Self { turns: atomic::AtomicUsize::new(0), inner: atomic::$name::new(value) }
            }

            /// A load and a store, where an exchange in two steps is planted.
            fn torn(
                &self,
                place: &'static Location<'static>,
                change: impl FnOnce($value) -> Option<$value>,
            ) -> Option<$value> {
                if !faults::is_torn(place) {
                    return None;
                }
                let before = self.load(Ordering::Acquire);
                if let Some(value) = change(before) {
                    self.store(value, Ordering::Release);
                }
                Some(before)
            }

            #[track_caller]
            pub fn load(&self, order: Ordering) -> $value {
                let order = faults::order(order, Location::caller());
                self.turns.fetch_add(1, Ordering::Relaxed);
                self.inner.load(order)
            }

            #[track_caller]
            pub fn store(&self, value: $value, order: Ordering) {
                let order = faults::order(order, Location::caller());
                self.turns.fetch_add(1, Ordering::Relaxed);
                self.inner.store(value, order);
            }

            #[track_caller]
            pub fn swap(&self, value: $value, order: Ordering) -> $value {
                let place = Location::caller();
                if let Some(before) = self.torn(place, |_| Some(value)) {
                    return before;
                }
                let order = faults::order(order, place);
                self.turns.fetch_add(1, Ordering::Relaxed);
                self.inner.swap(value, order)
            }

            #[track_caller]
            pub fn compare_exchange(
                &self,
                known: $value,
                value: $value,
                success: Ordering,
                failure: Ordering,
            ) -> core::result::Result<$value, $value> {
                let place = Location::caller();
                if let Some(before) = self.torn(place, |now| (now == known).then_some(value)) {
                    return if before == known { Ok(before) } else { Err(before) };
                }
                let success = faults::order(success, place);
                self.turns.fetch_add(1, Ordering::Relaxed);
                self.inner.compare_exchange(known, value, success, failure)
            }

            $(#[track_caller]
            pub fn $method(&self, value: $value, order: Ordering) -> $value {
                let place = Location::caller();
                let change: fn($value, $value) -> $value = $change;
                if let Some(before) = self.torn(place, |now| Some(change(now, value))) {
                    return before;
                }
                let order = faults::order(order, place);
                self.turns.fetch_add(1, Ordering::Relaxed);
                self.inner.$method(value, order)
            })*
        }

        impl $(<$parameter>)? Default for $name $(<$parameter>)?
        where
            atomic::$name $(<$parameter>)?: Default,
        {
            fn default() -> Self {
                Self { turns: Default::default(), inner: Default::default() }
            }
        }
    )* };
}

wrap! {
    AtomicBool: bool {}
    AtomicPtr<T>: *mut T {}
    AtomicU8: u8 {
        fetch_or: |now, value| now | value;
    }
    AtomicU32: u32 {}
    AtomicU64: u64 {
        fetch_add: |now, value| now.wrapping_add(value);
        fetch_max: |now, value| now.max(value);
        fetch_or: |now, value| now | value;
    }
    AtomicUsize: usize {}
}

/// A static that each run has anew.
macro_rules! global {
    ($(#[$note:meta])* static $name:ident: $type:ty = $value:expr;) => {
        loom::lazy_static! {
            $(#[$note])*
            static ref $name: $type = $value;
        }
    };
}
pub(crate) use global;

/// Loom's constructors are not constant.
macro_rules! constant {
    ($(#[$note:meta])* $visible:vis fn $($rest:tt)*) => {
        $(#[$note])*
        $visible fn $($rest)*
    };
}
pub(crate) use constant;

pub const fn shipped_or_checked(_shipped: usize, checked: usize) -> usize {
    checked
}
