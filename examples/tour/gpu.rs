//! Memory, memory operations and host functions: the crate has them in its raw layer only, and the
//! tour wraps the few that it needs.

use std::ffi::c_void;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use cuda_events::sys::{CUdeviceptr, CUresult, Function};
use cuda_events::{Context, Error, Event, StreamRef};

use crate::report::Failure;

/// The tour's work takes much less. Work that takes longer will never end.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

fn check(function: Function, code: CUresult) -> Result<(), Error> {
    if code == CUresult::CUDA_SUCCESS { Ok(()) } else { Err(Error::Driver { function, code }) }
}

/// Waits for the event for at most [`TIMEOUT`].
pub(crate) fn finish(event: &Event) -> Result<(), Failure> {
    if event.synchronize_timeout(TIMEOUT)?.is_done() {
        Ok(())
    } else {
        Err(Failure::Runtime(format!(
            "the work on the device was not done after {} s",
            TIMEOUT.as_secs()
        )))
    }
}

/// Device memory. It is allocated in the current context, and freed when all work of that context
/// is done.
pub(crate) struct DeviceBuffer {
    context: Context,
    address: CUdeviceptr,
    bytes: usize,
}

impl DeviceBuffer {
    pub(crate) fn new(context: &Context, bytes: usize) -> Result<Self, Error> {
        let mut address = 0;
        // SAFETY: a place for the address; the tour has made the context current.
        let code = unsafe { (context.driver().symbols().cuMemAlloc_v2)(&mut address, bytes) };
        check(Function::cuMemAlloc_v2, code)?;
        Ok(Self { context: context.clone(), address, bytes })
    }

    /// Sets every word of four bytes, in stream order.
    pub(crate) fn memset(&self, value: u32, stream: &StreamRef) -> Result<(), Error> {
        let memset = self.context.driver().symbols().cuMemsetD32Async;
        // SAFETY: the memory has that many words, and is not freed before the stream is done with
        // it: see drop.
        check(Function::cuMemsetD32Async, unsafe {
            memset(self.address, value, self.bytes / 4, stream.as_raw())
        })
    }

    /// Copies to another buffer of the device, in stream order.
    pub(crate) fn copy_to(&self, other: &Self, stream: &StreamRef) -> Result<(), Error> {
        let copy = self.context.driver().symbols().cuMemcpyDtoDAsync_v2;
        let bytes = self.bytes.min(other.bytes);
        // SAFETY: both have that many bytes, and are not freed before the stream is done with them:
        // see drop.
        check(Function::cuMemcpyDtoDAsync_v2, unsafe {
            copy(other.address, self.address, bytes, stream.as_raw())
        })
    }

    /// Copies the last bytes, as many as the other buffer has, to host memory, in stream order.
    pub(crate) fn copy_end_to_host(
        &self,
        host: &HostBuffer,
        stream: &StreamRef,
    ) -> Result<(), Error> {
        let copy = self.context.driver().symbols().cuMemcpyDtoHAsync_v2;
        let bytes = self.bytes.min(host.bytes);
        let from = self.address + (self.bytes - bytes) as CUdeviceptr;
        // SAFETY: both have that many bytes, and are not freed before the stream is done with them:
        // see drop. No code reads the host's meanwhile: see `HostBuffer::words`.
        check(Function::cuMemcpyDtoHAsync_v2, unsafe {
            copy(host.memory.cast(), from, bytes, stream.as_raw())
        })
    }
}

impl Drop for DeviceBuffer {
    fn drop(&mut self) {
        // A drop cannot return the errors of these two calls.
        let _ = self.context.synchronize();
        // SAFETY: the memory is owned, and no work uses it any more.
        unsafe { (self.context.driver().symbols().cuMemFree_v2)(self.address) };
    }
}

/// Page-locked host memory, which asynchronous copies need in order to be asynchronous. It starts
/// as zeros.
pub(crate) struct HostBuffer {
    context: Context,
    memory: *mut u32,
    bytes: usize,
}

// SAFETY: it is plain memory that does not belong to a thread, and its contents can be read only
// through an unsafe method, whose caller guarantees that nothing writes.
unsafe impl Sync for HostBuffer {}

impl HostBuffer {
    pub(crate) fn new(context: &Context, bytes: usize) -> Result<Self, Error> {
        let mut memory = std::ptr::null_mut::<c_void>();
        // SAFETY: a place for the address; the tour has made the context current.
        let code = unsafe { (context.driver().symbols().cuMemHostAlloc)(&mut memory, bytes, 0) };
        check(Function::cuMemHostAlloc, code)?;
        // SAFETY: the memory has that many bytes, and no other code has its address yet.
        unsafe { memory.cast::<u8>().write_bytes(0, bytes) };
        Ok(Self { context: context.clone(), memory: memory.cast(), bytes })
    }

    /// The contents.
    ///
    /// # Safety
    ///
    /// No work that writes to it may be queued or running while the result is used.
    pub(crate) unsafe fn words(&self) -> &[u32] {
        // SAFETY: that many initialised words, which live as long as `self`; pages are aligned for
        // them; the caller guarantees that nothing writes.
        unsafe { std::slice::from_raw_parts(self.memory, self.bytes / 4) }
    }
}

impl Drop for HostBuffer {
    fn drop(&mut self) {
        // A drop cannot return the errors of these two calls.
        let _ = self.context.synchronize();
        // SAFETY: the memory is owned, and no work uses it any more.
        unsafe { (self.context.driver().symbols().cuMemFreeHost)(self.memory.cast()) };
    }
}

/// Runs `work` on one of the driver's threads, in stream order. It must not call the driver.
///
/// # Safety
///
/// Everything that `work` borrows must stay alive until it has run.
pub(crate) unsafe fn run_on_host<'a>(
    stream: &StreamRef,
    work: impl FnOnce() + Send + 'a,
) -> Result<(), Error> {
    type Work<'a> = Box<dyn FnOnce() + Send + 'a>;

    extern "C" fn call(work: *mut c_void) {
        // SAFETY: the box that was given away below for this one call. The values that it
        // borrows still exist: the caller of `run_on_host` guarantees that.
        let work = unsafe { Box::from_raw(work.cast::<Work<'static>>()) };
        work();
    }

    let work: Work<'a> = Box::new(work);
    // A closure's pointer has two words and the driver carries one, so it is boxed again.
    let work = Box::into_raw(Box::new(work)).cast::<c_void>();
    let launch = stream.context().driver().symbols().cuLaunchHostFunc;
    // SAFETY: the stream is alive; the function takes the box over, and is called once.
    let code = unsafe { launch(stream.as_raw(), Some(call), work) };
    check(Function::cuLaunchHostFunc, code).inspect_err(|_| {
        // SAFETY: the driver did not take the function, so that the box is still ours.
        drop(unsafe { Box::from_raw(work.cast::<Work<'a>>()) });
    })
}

/// Holds a stream: later work in it does not run before the latch is released or dropped.
///
/// In a function that creates a latch, declare it after the buffers: their drop waits for the work
/// that the latch holds.
pub(crate) struct Latch(#[expect(dead_code, reason = "dropping it releases the work")] Sender<()>);

impl Latch {
    pub(crate) fn hold(stream: &StreamRef) -> Result<Self, Error> {
        let (release, released) = channel::<()>();
        // Nothing is ever sent: the wait ends when the sender is dropped.
        let wait = move || {
            let _ = released.recv();
        };
        // SAFETY: the closure owns what it uses.
        unsafe { run_on_host(stream, wait) }?;
        Ok(Self(release))
    }

    pub(crate) fn release(self) {}
}
