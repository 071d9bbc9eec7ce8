//! Memory for small programs: copy this file. `cuda-events` itself allocates nothing.
//!
//! Its functions are safe. A buffer is used by streams of its own context only, and dropping it
//! first waits for all work of that context, so that no stream still uses the memory. What a
//! capture records is not waited for: a graph must not be launched after its buffers are dropped.

#![allow(dead_code, reason = "each program uses a part")]

use std::ptr::null_mut;

use cuda_events::foundation::{call, with_current};
use cuda_events::sys::CUdeviceptr;
use cuda_events::{Context, Result, StreamRef};

/// Device memory.
pub struct DeviceBuffer {
    context: Context,
    address: CUdeviceptr,
    bytes: usize,
}

impl DeviceBuffer {
    pub fn new(context: &Context, bytes: usize) -> Result<Self> {
        let (driver, mut address) = (context.driver(), 0);
        // SAFETY: a place for the address; the context is current.
        with_current(context, || unsafe { call!(driver, cuMemAlloc_v2(&mut address, bytes)) })?;
        Ok(Self { context: context.clone(), address, bytes })
    }

    /// The address, for calls of other libraries.
    pub fn address(&self) -> CUdeviceptr {
        self.address
    }

    /// Sets every word of four bytes, in stream order.
    pub fn fill(&self, word: u32, stream: &StreamRef) -> Result<()> {
        let (driver, words) = (self.context.driver(), self.bytes / 4);
        in_order(&self.context, stream, || {
            // SAFETY: the memory has so many words, and `drop` waits before it frees them.
            unsafe { call!(driver, cuMemsetD32Async(self.address, word, words, stream.as_raw())) }
        })
    }

    /// Copies to another buffer as many bytes as both have, in stream order.
    pub fn copy_to(&self, to: &Self, stream: &StreamRef) -> Result<()> {
        let (driver, bytes) = (self.context.driver(), self.bytes.min(to.bytes));
        in_order(&to.context, stream, || Ok(()))?;
        in_order(&self.context, stream, || {
            let (to, from) = (to.address, self.address);
            // SAFETY: both have so many bytes, and `drop` waits before it frees them.
            unsafe { call!(driver, cuMemcpyDtoDAsync_v2(to, from, bytes, stream.as_raw())) }
        })
    }

    /// Copies the last bytes, as many as the other buffer has, to the host, in stream order.
    pub fn download(&self, to: &HostBuffer, stream: &StreamRef) -> Result<()> {
        let (driver, bytes) = (self.context.driver(), self.bytes.min(to.bytes));
        in_order(&to.context, stream, || Ok(()))?;
        in_order(&self.context, stream, || {
            let (to, from) = (to.memory.cast(), self.address + (self.bytes - bytes) as u64);
            // SAFETY: both have so many bytes, and `drop` waits before it frees them. Safe code
            // reads those of the host after a wait only.
            unsafe { call!(driver, cuMemcpyDtoHAsync_v2(to, from, bytes, stream.as_raw())) }
        })
    }

    /// Copies from the host as many bytes as both have, in stream order.
    pub fn upload(&self, from: &HostBuffer, stream: &StreamRef) -> Result<()> {
        let (driver, bytes) = (self.context.driver(), self.bytes.min(from.bytes));
        in_order(&from.context, stream, || Ok(()))?;
        in_order(&self.context, stream, || {
            let (to, from) = (self.address, from.memory.cast());
            // SAFETY: as for `download`; safe code writes to those of the host after a wait only.
            unsafe { call!(driver, cuMemcpyHtoDAsync_v2(to, from, bytes, stream.as_raw())) }
        })
    }
}

impl Drop for DeviceBuffer {
    fn drop(&mut self) {
        let driver = self.context.driver();
        // SAFETY: it is owned, and no work uses it any more.
        free(&self.context, || unsafe { call!(driver, cuMemFree_v2(self.address)) });
    }
}

/// Pinned memory of the host, without which asynchronous copies are synchronous. It starts as
/// zeros.
pub struct HostBuffer {
    context: Context,
    memory: *mut u32,
    bytes: usize,
}

// SAFETY: it is plain memory that belongs to no thread. Shared, only an unsafe method reads it.
unsafe impl Send for HostBuffer {}
// SAFETY: as above.
unsafe impl Sync for HostBuffer {}

impl HostBuffer {
    pub fn new(context: &Context, bytes: usize) -> Result<Self> {
        let (driver, mut memory) = (context.driver(), null_mut());
        // SAFETY: a place for the address; the context is current.
        let alloc = || unsafe { call!(driver, cuMemHostAlloc(&mut memory, bytes, 0)) };
        with_current(context, alloc)?;
        // SAFETY: so many bytes, which no other code has yet.
        unsafe { memory.cast::<u8>().write_bytes(0, bytes) };
        Ok(Self { context: context.clone(), memory: memory.cast(), bytes })
    }

    /// The words, after all work of the context.
    pub fn wait(&mut self) -> Result<&mut [u32]> {
        self.context.synchronize()?;
        // SAFETY: so many initialised words, aligned as pages are. No work uses them, and none can
        // be submitted while they are borrowed.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.memory, self.bytes / 4) })
    }

    /// The words, without a wait.
    ///
    /// # Safety
    ///
    /// The work that writes to them is over, and none is submitted while they are borrowed.
    pub unsafe fn words(&self) -> &[u32] {
        // SAFETY: as for `wait`; the caller guarantees that no work writes to them.
        unsafe { std::slice::from_raw_parts(self.memory, self.bytes / 4) }
    }
}

impl Drop for HostBuffer {
    fn drop(&mut self) {
        let driver = self.context.driver();
        // SAFETY: it is owned, and no work uses it any more.
        free(&self.context, || unsafe { call!(driver, cuMemFreeHost(self.memory.cast())) });
    }
}

/// Submits work to a stream of the context, which is the one that the drop of a buffer waits for.
fn in_order(
    context: &Context,
    stream: &StreamRef,
    submit: impl FnOnce() -> Result<()>,
) -> Result<()> {
    assert!(stream.context() == context, "the stream belongs to another context");
    with_current(context, submit)
}

/// Frees memory after all work of the context. If the wait fails, work may still use the memory,
/// which then stays.
fn free(context: &Context, free: impl FnOnce() -> Result<()>) {
    // A drop cannot return an error.
    if context.synchronize().is_ok() {
        let _ = with_current(context, free);
    }
}
