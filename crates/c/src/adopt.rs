//! Contexts and streams of other code.

use std::ffi::{c_int, c_uint};
use std::mem::MaybeUninit;

use cuda_events::capture::CaptureStatus;
use cuda_events::{Context, Driver, ForeignStream, StreamRef};
use cuda_timelines::CudaStreamExt;

use crate::callback::{self, cutl_callback};
use crate::handle::{self, Handle};
use crate::point::{self, cutl_point};
use crate::result::cutl_result::{self, *};
use crate::result::{Fail, guard, place};

/// The driver's context: CUcontext is a pointer to it.
pub struct CUctx_st;
/// The driver's stream: CUstream is a pointer to it.
pub struct CUstream_st;

/// A stream that other code owns.
pub struct cutl_stream;

impl Handle for cutl_stream {
    type Object = ForeignStream<()>;
    const NAME: &'static str = "cutl_stream";
}

/// Loads the CUDA driver, libcuda.so.1 or the library that the environment variable
/// CUDA_EVENTS_DRIVER names. The calls that need the driver load it as well; this one reports early
/// that there is none. It does not initialise the driver. It may be called often.
///
/// Errors: CUTL_ERROR_NO_DRIVER, with each library that was tried.
#[unsafe(no_mangle)]
pub extern "C" fn cutl_init() -> cutl_result {
    guard(|| Ok(Driver::load().map(|_| CUTL_OK)?))
}

/// A context of the caller's; NULL is the current one.
///
/// # Safety
///
/// As for [`Context::from_raw`].
pub(crate) unsafe fn context(raw: *mut CUctx_st) -> Result<Context, Fail> {
    let driver = Driver::load()?;
    if raw.is_null() {
        // SAFETY: the duties are those of the caller.
        return match unsafe { Context::current(driver) }? {
            Some(context) => share(context),
            None => Err(Fail::new(
                CUTL_ERROR_CONTEXT,
                "no context is current on the calling thread; call cuCtxSetCurrent, or pass one",
            )),
        };
    }
    // SAFETY: the duties are those of the caller.
    share(unsafe { Context::from_raw(driver, raw.cast()) }?)
}

/// If it is its device's primary context, one of our own share: then nothing here can outlive it.
fn share(borrowed: Context) -> Result<Context, Fail> {
    let (driver, device) = (borrowed.driver(), borrowed.device());
    let (mut flags, mut active): (c_uint, c_int) = (0, 0);
    // SAFETY: two places for the integers.
    unsafe {
        cuda_events::foundation::call!(
            driver,
            cuDevicePrimaryCtxGetState(device.as_raw(), &mut flags, &mut active)
        )
    }?;
    // A primary context that is not active would be created.
    if active == 0 {
        return Ok(borrowed);
    }
    let primary = Context::primary(device)?;
    Ok(if primary == borrowed { primary } else { borrowed })
}

/// Adopts a stream that other code owns and destroys, such as a CUstream or a cudaStream_t. All
/// calls take the stream as this handle. `context` is the stream's context; with NULL the driver is
/// asked for it. A default stream (NULL, CU_STREAM_LEGACY) is that of `context` or, if this is
/// NULL, of the context that is current on the calling thread.
///
/// The stream is not owned. If its context is the primary one of its device, as with the CUDA
/// runtime and PyTorch, that is retained until all objects made with this handle are gone.
///
/// Errors: CUTL_ERROR_NO_DRIVER; CUTL_ERROR_CONTEXT if the stream is of another context, or no
/// context is current; CUTL_ERROR_DRIVER; CUTL_ERROR_ARGUMENT.
///
/// # Safety
///
/// `stream` and its context must live until the handle, the timelines made from it and the waits
/// submitted to it are gone: the driver does not detect a destroyed stream. While the stream is
/// captured, only the capturing thread may use the handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cutl_stream_adopt(
    context: *mut CUctx_st,
    stream: *mut CUstream_st,
    out: Option<&mut MaybeUninit<*mut cutl_stream>>,
) -> cutl_result {
    guard(|| {
        let out = place(out, "out")?;
        let raw = stream.cast();
        // SAFETY: the duties are those of the caller.
        let adopted = unsafe {
            let context = if context.is_null() {
                let named = StreamRef::from_foreign(Driver::load()?, raw)?;
                share(named.context().clone())?
            } else {
                self::context(context)?
            };
            ForeignStream::new(&context, raw, ())
        }?;
        handle::put(out, adopted)
    })
}

/// Makes all work that is submitted to the stream later wait until the point is reached. The stream
/// may be of any context and device. One driver call, and none if the point is reached. A program
/// that waits only for points whose signals were submitted cannot deadlock.
///
/// If the timeline can no longer reach the point, the stream goes on as if it were reached: query
/// the point on the host before you trust the results.
///
/// Errors: CUTL_ERROR_POISONED, CUTL_ERROR_EXPORTER_GONE and CUTL_ERROR_CONTEXT_DROPPED if the
/// point cannot be reached; CUTL_ERROR_CAPTURE in a capture, for a point of another context;
/// CUTL_ERROR_NO_THREAD; CUTL_ERROR_DRIVER; CUTL_ERROR_POINT; CUTL_ERROR_HANDLE. After an error the
/// stream does not wait.
#[unsafe(no_mangle)]
pub extern "C" fn cutl_stream_wait(
    stream: *const cutl_stream,
    point: Option<&cutl_point>,
) -> cutl_result {
    guard(|| {
        let (stream, point) = (handle::get(stream)?, point::get(point)?);
        stream.wait_point(point)?;
        Ok(CUTL_OK)
    })
}

/// Has `callback` called once, when all work that is in the stream now is done or has failed. See
/// cutl_callback. It records an event of its own, after it asked whether the stream captures.
///
/// Errors, after which the callback is not called: CUTL_ERROR_CAPTURE, and the capture goes on;
/// CUTL_ERROR_DRIVER; CUTL_ERROR_NO_THREAD; CUTL_ERROR_HANDLE; CUTL_ERROR_ARGUMENT.
///
/// # Safety
///
/// As for cutl_callback.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cutl_stream_on_done(
    stream: *const cutl_stream,
    callback: cutl_callback,
    user: *mut std::ffi::c_void,
) -> cutl_result {
    guard(|| {
        let stream = handle::get(stream)?;
        callback::start(callback, user, || match stream.capture_status()? {
            CaptureStatus::None => Ok(stream.completion()?),
            // A query of the captured event would fail, and end the capture.
            _ => Err(Fail::new(
                CUTL_ERROR_CAPTURE,
                "the stream captures, and captured work has no end to report; call \
                 cutl_stream_on_done after the graph was launched",
            )),
        })
    })
}

/// Destroys the handle, not the stream. Timelines made from it stay.
///
/// Errors: CUTL_ERROR_HANDLE.
#[unsafe(no_mangle)]
pub extern "C" fn cutl_stream_destroy(stream: *mut cutl_stream) -> cutl_result {
    handle::destroy(stream)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::ptr::null_mut;

    use cuda_events::sys::CUresult;
    use cuda_events::{Device, LoadOptions};
    use cuda_soft_driver::SoftDriver;

    use super::*;

    pub(crate) fn driver(soft: &SoftDriver) -> Driver {
        // SAFETY: the software driver has the driver's ABI, and its functions are part of this
        // program.
        let driver =
            unsafe { Driver::from_resolver(&mut |name| soft.resolve(name), &LoadOptions::new()) };
        driver.expect("a driver")
    }

    /// Only a primary context is retained: to ask for it would create it, with its memory.
    #[test]
    fn a_primary_context_is_shared_and_none_is_created() {
        let soft = SoftDriver::builder().log(1000).build();
        let driver = driver(&soft);
        let device = Device::new(driver, 0).expect("a device");
        let mut raw = null_mut();
        let create = driver.symbols().cuCtxCreate_v2;
        // SAFETY: a place for the handle; the context lives as long as the driver.
        let other = unsafe {
            assert_eq!(create(&mut raw, 0, 0), CUresult::CUDA_SUCCESS);
            Context::from_raw(driver, raw)
        };
        let other = other.expect("a context");
        let retained = || {
            let retain = |name: &str| name == "cuDevicePrimaryCtxRetain";
            (soft.log().iter().filter(|call| retain(call.function)).count(), soft.live().retains)
        };
        let shared = share(other.clone()).expect("a context");
        assert!(shared == other && shared.is_borrowed());
        assert_eq!(retained(), (0, 0));
        let primary = Context::primary(device).expect("a context");
        let shared = share(other.clone()).expect("a context");
        assert!(shared == other && shared.is_borrowed());
        assert_eq!(retained().1, 1);
        // SAFETY: the context is alive.
        let named = unsafe { Context::from_raw(driver, primary.as_raw()) }.expect("a context");
        let shared = share(named).expect("a context");
        assert!(shared == primary && !shared.is_borrowed());
        assert_eq!(retained().1, 2);
        drop((shared, primary));
        assert_eq!(retained().1, 0);
    }
}
