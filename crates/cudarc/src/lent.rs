//! Objects of cuda-events for cudarc.

use core::mem::ManuallyDrop;
use core::ops::Deref;
use std::sync::Arc;

use cuda_events::sys::Function;
use cuda_events::{Context, Error, Result, Stream};
use cudarc::driver::{CudaContext, CudaStream, DriverError, sys};

use crate::{OfCall, driver};

/// Returns cudarc's form of a device's primary context, which cudarc retains once more.
///
/// # Errors
///
/// `CUDA_ERROR_INVALID_CONTEXT` if the context is not a primary context; those of
/// `CudaContext::new`.
pub fn lend_context(context: &Context) -> Result<Arc<CudaContext>, DriverError> {
    let theirs = CudaContext::new(context.device().ordinal() as usize)?;
    if theirs.cu_ctx().cast() == context.as_raw() {
        Ok(theirs)
    } else {
        Err(DriverError(sys::CUresult::CUDA_ERROR_INVALID_CONTEXT))
    }
}

/// A stream of cuda-events that cudarc uses, from [`lend_stream`]. It dereferences to cudarc's
/// form.
///
/// Slices that cudarc allocates in the stream keep clones of cudarc's form. If such a clone is left
/// when this value is dropped, the stream is never destroyed.
#[derive(Debug)]
pub struct LentStream {
    theirs: ManuallyDrop<Arc<CudaStream>>,
    ours: ManuallyDrop<Stream>,
    /// cudarc orders its slices between streams only if it has made a stream.
    tracking: ManuallyDrop<Arc<CudaStream>>,
}

/// Lends a stream to cudarc, for slices, copies and kernels.
///
/// cudarc orders the uses of one slice in several streams only while a stream exists that cudarc
/// created. So this function makes cudarc create one.
///
/// # Errors
///
/// [`Error::DriverMismatch`] and [`Error::ContextMismatch`] if the stream is not of this context;
/// the error of [`cuStreamCreate`](Function::cuStreamCreate) in cudarc.
pub fn lend_stream(theirs: &Arc<CudaContext>, stream: Stream) -> Result<LentStream> {
    let function = Function::cuStreamCreate;
    let context = stream.context();
    if !context.driver().is_same_library(driver()?) {
        return Err(Error::DriverMismatch { function });
    }
    if context.as_raw() != theirs.cu_ctx().cast() {
        let device = context.device().ordinal().try_into().unwrap_or(u16::MAX);
        let other_device = theirs.ordinal().try_into().unwrap_or(u16::MAX);
        return Err(Error::ContextMismatch { function, code: None, device, other_device });
    }
    let tracking = theirs.new_stream().of_call(function)?;
    // SAFETY: a live stream of the context. The destructor of the result destroys it only when
    // nothing else has cudarc's form. Work of both goes into one stream, in the order of the calls.
    let lent = unsafe { theirs.wrap_borrowed_stream(stream.as_raw().cast()) };
    Ok(LentStream {
        theirs: ManuallyDrop::new(lent),
        ours: ManuallyDrop::new(stream),
        tracking: ManuallyDrop::new(tracking),
    })
}

impl LentStream {
    /// Returns the stream that was lent.
    pub fn stream(&self) -> &Stream {
        &self.ours
    }
}

impl Deref for LentStream {
    type Target = Arc<CudaStream>;

    fn deref(&self) -> &Arc<CudaStream> {
        &self.theirs
    }
}

impl Drop for LentStream {
    fn drop(&mut self) {
        // SAFETY: taken once, as this is the destructor.
        let theirs = unsafe { ManuallyDrop::take(&mut self.theirs) };
        // cudarc's form does not destroy the stream. Nothing can make another clone of the last one.
        if Arc::into_inner(theirs).is_some() {
            // SAFETY: as above.
            unsafe { ManuallyDrop::drop(&mut self.ours) };
            // SAFETY: as above.
            unsafe { ManuallyDrop::drop(&mut self.tracking) };
        }
    }
}
