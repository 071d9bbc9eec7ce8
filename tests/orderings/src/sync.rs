//! What stands in the place of the library's `src/sync.rs` here: loom's atomics and locks.

pub use loom::sync::{Arc, Condvar, Mutex, MutexGuard};
pub use std::sync::PoisonError;
pub use std::sync::atomic::Ordering;

use loom::sync::atomic;

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
            $($method:ident($($argument:ident: $type:ty),*) -> $result:ty;)*
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

            pub fn load(&self, order: Ordering) -> $value {
                self.turns.fetch_add(1, Ordering::Relaxed);
                self.inner.load(order)
            }

            pub fn store(&self, value: $value, order: Ordering) {
                self.turns.fetch_add(1, Ordering::Relaxed);
                self.inner.store(value, order);
            }

            pub fn swap(&self, value: $value, order: Ordering) -> $value {
                self.turns.fetch_add(1, Ordering::Relaxed);
                self.inner.swap(value, order)
            }

            pub fn compare_exchange(
                &self,
                known: $value,
                value: $value,
                success: Ordering,
                failure: Ordering,
            ) -> core::result::Result<$value, $value> {
                self.turns.fetch_add(1, Ordering::Relaxed);
                self.inner.compare_exchange(known, value, success, failure)
            }

            $(pub fn $method(&self, $($argument: $type),*) -> $result {
                self.turns.fetch_add(1, Ordering::Relaxed);
                self.inner.$method($($argument),*)
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
        fetch_or(value: u8, order: Ordering) -> u8;
    }
    AtomicU32: u32 {}
    AtomicU64: u64 {
        fetch_add(value: u64, order: Ordering) -> u64;
        fetch_max(value: u64, order: Ordering) -> u64;
        fetch_or(value: u64, order: Ordering) -> u64;
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

pub const fn few(_shipped: usize, checked: usize) -> usize {
    checked
}
