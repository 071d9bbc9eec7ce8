//! The C interface of [`cuda_timelines`]: `include/cuda_timelines.h` is made of these files by
//! cbindgen, `include/cuda_timelines.hpp` is written by hand.
//!
//! A handle is a number ([`handle`]), a point is a value ([`point`]), and every function runs in
//! [`result::guard`]. Not for Rust: use `cuda-timelines`.

#![allow(non_camel_case_types, reason = "the names are those of C")]
#![deny(missing_docs, unreachable_pub)]
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::unreachable
)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

#[cfg(not(target_pointer_width = "64"))]
compile_error!("this library is for 64-bit programs: no other can load the driver");

mod adopt;
mod bytes;
mod callback;
mod event;
mod handle;
mod point;
mod result;
mod share;
mod timeline;

pub use adopt::*;
pub use callback::cutl_callback;
pub use event::*;
pub use point::*;
pub use result::*;
pub use share::*;
pub use timeline::*;
