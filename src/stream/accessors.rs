//! The properties, context and handle of a stream.

use core::ffi::c_int;

#[cfg(doc)]
use super::StreamOptions;
use super::StreamRef;
use crate::context::Context;
use crate::device::Device;
use crate::driver::call::call;
#[cfg(doc)]
use crate::error::Error;
use crate::error::Result;
use crate::sys::{CU_STREAM_NON_BLOCKING, CU_STREAM_PER_THREAD, CUstream};

#[cfg(doc)]
use crate::sys::calls::*;

/// # The stream itself
#[allow(unsafe_code)]
impl StreamRef {
    /// Returns the context of the stream.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Returns the device of the stream's context.
    #[doc(alias = "cuStreamGetDevice")]
    pub fn device(&self) -> Device {
        self.context.device()
    }

    /// Returns the driver's handle, for other bindings. It is valid as long as the stream is.
    #[doc(alias = "handle")]
    #[doc(alias = "native_handle")]
    #[inline(always)]
    pub fn as_raw(&self) -> CUstream {
        self.raw
    }

    /// Returns the stream's priority; for a default stream the driver returns 0.
    ///
    /// One driver call: [`cuStreamGetPriority`]. [`StreamOptions`] has an example.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_CONTEXT_IS_DESTROYED` if other code destroyed the context;
    /// [`Error::ForkedChild`].
    #[doc(alias = "cuStreamGetPriority")]
    pub fn priority(&self) -> Result<i32> {
        let mut priority: c_int = 0;
        // SAFETY: the stream is alive as long as `self` is; a place for the one integer.
        unsafe { call!(self, cuStreamGetPriority(self.raw, &mut priority)) }?.check()?;
        Ok(priority)
    }

    /// Returns whether the stream synchronizes with the legacy default stream; see
    /// [`StreamOptions::blocking`].
    ///
    /// One driver call: [`cuStreamGetFlags`]. [`StreamOptions`] has an example.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_CONTEXT_IS_DESTROYED` if other code destroyed the context;
    /// [`Error::ForkedChild`].
    #[doc(alias = "cuStreamGetFlags")]
    #[doc(alias = "is_nonblocking")]
    pub fn is_blocking(&self) -> Result<bool> {
        let mut flags = 0;
        // SAFETY: the stream is alive as long as `self` is; a place for the one integer.
        unsafe { call!(self, cuStreamGetFlags(self.raw, &mut flags)) }?.check()?;
        Ok(flags & CU_STREAM_NON_BLOCKING == 0)
    }

    /// Returns the stream's id, which is unique in the process. Needs CUDA 12.0.
    ///
    /// The driver never reuses an id, unlike a handle. One driver call: [`cuStreamGetId`].
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] if the driver is older than CUDA 12.0; [`Error::ForkedChild`].
    #[doc(alias = "cuStreamGetId")]
    #[doc(alias = "stream_id")]
    pub fn id(&self) -> Result<u64> {
        let mut id = 0;
        // SAFETY: the stream is alive as long as `self` is; a place for the one integer.
        unsafe { call!(self, cuStreamGetId?(self.raw, &mut id)) }?.check()?;
        Ok(id)
    }

    /// Returns the pair for Python's `__cuda_stream__` protocol: the protocol's version (0) and the
    /// handle.
    ///
    /// A Python object for this stream returns the pair from its method `__cuda_stream__`. PyTorch,
    /// cuda.core and CuPy accept such an object as a stream. They read the handle 0 as the legacy
    /// default stream. So for the per-thread default stream the pair always has the handle 2
    /// (`CU_STREAM_PER_THREAD`).
    #[doc(alias = "__cuda_stream__")]
    pub fn cuda_stream(&self) -> (u32, usize) {
        (0, if self.is_per_thread() { CU_STREAM_PER_THREAD.addr() } else { self.raw.addr() })
    }
}
