//! Compares what `cuda-kernel-access` says of kernels with what they do.
//!
//! As a library that is preloaded into a program it repeats launches with other contents of memory,
//! and writes what it sees to a log (`KERNEL_TRUTH` names the folder). The command `kernel-truth`
//! judges the logs.

pub mod judge;
pub mod record;
pub mod set;

#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
mod driver;
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
mod experiment;
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
mod hooks;
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
mod images;
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
mod memory;
