//! Memory that processes share, as the system has it: files of memory on Linux, sections on
//! Windows. And mappings of it.

use std::ffi::c_void;
use std::sync::atomic::AtomicU64;

#[cfg(target_os = "linux")]
mod linux;
#[cfg(windows)]
mod windows;

#[cfg(target_os = "linux")]
pub use linux::*;
#[cfg(windows)]
pub use windows::*;

/// What a file of timelines has, in bytes.
pub const PAGE: usize = 4096;

/// The start of a file, mapped until the process ends: the driver may have it.
#[derive(Clone, Copy, Debug)]
pub struct Mapping {
    memory: *mut c_void,
    bytes: usize,
}

impl Mapping {
    /// For reading and writing.
    ///
    /// # Errors
    ///
    /// The system refuses it.
    pub fn new(file: impl AsShared, bytes: usize) -> std::io::Result<Self> {
        Ok(Self { memory: map(file, bytes, true)?, bytes })
    }

    /// For reading alone.
    ///
    /// # Errors
    ///
    /// The system refuses it.
    pub fn for_reading(file: impl AsShared, bytes: usize) -> std::io::Result<Self> {
        Ok(Self { memory: map(file, bytes, false)?, bytes })
    }

    pub fn as_ptr(&self) -> *mut c_void {
        self.memory
    }

    /// The address of the memory for devices too, where the driver has it.
    pub fn address(&self) -> u64 {
        self.memory.expose_provenance() as u64
    }

    pub fn words(&self) -> &'static [AtomicU64] {
        // SAFETY: so many bytes, changed by atomics or the driver; who unmaps them does not look.
        unsafe { std::slice::from_raw_parts(self.memory.cast(), self.bytes / 8) }
    }

    /// # Safety
    ///
    /// Nobody uses it any more, a driver included.
    pub unsafe fn unmap(self) {
        // SAFETY: it was mapped, and the caller says that nobody uses it.
        unsafe { unmap(self.memory, self.bytes) };
    }
}
