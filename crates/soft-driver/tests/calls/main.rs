//! What the calls do, on the raw table.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "each calls the raw table with handles that it gave out and places on the stack"
)]
#![allow(unused_unsafe, reason = "some calls by name are within blocks of calls of the table")]

use cuda_events_test_support::raw as common;

/// Calls an entry point that the crate does not bind by its exported name: the code.
macro_rules! call {
    ($raw:expr, $name:ident($($argument:expr => $type:ty),* $(,)?)) => {{
        let name = std::ffi::CString::new(stringify!($name)).unwrap();
        let function = $raw.resolve(&name);
        assert!(!function.is_null(), "{} is not exported", stringify!($name));
        let function: unsafe extern "C" fn($($type),*) -> u32 =
            unsafe { std::mem::transmute(function) };
        unsafe { function($($argument),*) }
    }};
}

mod capture;
mod ends;
#[cfg(target_os = "linux")]
mod external;
mod process;
mod values;
mod versions;
mod work;

mod copies;
mod edits;
#[cfg(all(feature = "images", target_os = "linux"))]
mod images;
mod kernels;
mod order;
mod pools;
