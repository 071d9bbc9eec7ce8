//! Guides: pages to read from the top to the end.
//!
//! | Guide | For |
//! | --- | --- |
//! | [`crates`] | which crate of the project does what |
//! | [`choosing`] | event, timeline, host function or future: the cost of each, and how it fails |
//! | [`from_cudarc`] | users of cudarc |
//! | [`from_python`] | users of PyTorch's and `cuda.core`'s events |
//! | [`tokio`] | async programs |
//! | [`processes`] | several processes or containers, some of which may be killed |
//! | [`more_than_one_gpu`] | NCCL, NVSHMEM, UCX and MPI beside this crate |
//! | [`testing`] | tests without a GPU, in Rust and in other languages |
//! | [`errors`] | each error, its cause, and what to do |
//! | [`environment`] | all environment variables |
//!
//! In all examples `driver` is the result of [`Driver::load`](crate::Driver::load), and `?` is in a
//! function that returns a `Result`. The Rust code is compiled and run as documentation tests. The
//! small programs of the folder `examples` in the source tree are whole files to copy.

#[doc = include_str!("../docs/guide/choosing.md")]
pub mod choosing {}

#[doc = include_str!("../docs/guide/crates.md")]
pub mod crates {}

#[doc = include_str!("../docs/guide/environment.md")]
pub mod environment {}

#[doc = include_str!("../docs/guide/errors.md")]
pub mod errors {}

#[doc = include_str!("../docs/guide/from-cudarc.md")]
pub mod from_cudarc {}

#[doc = include_str!("../docs/guide/from-python.md")]
pub mod from_python {}

#[doc = include_str!("../docs/guide/more-than-one-gpu.md")]
pub mod more_than_one_gpu {}

#[doc = include_str!("../docs/guide/processes.md")]
pub mod processes {}

#[doc = include_str!("../docs/guide/testing.md")]
pub mod testing {}

#[doc = include_str!("../docs/guide/tokio.md")]
pub mod tokio {}
