//! A program on the raw layer alone, `cuda-events` without its feature `safe`: the table, the
//! checks of `call!`, and a function that the table does not have.

use std::ptr::null_mut;

use cuda_events::foundation::call;
use cuda_events::sys::{
    CU_EVENT_DISABLE_TIMING, CU_STREAM_NON_BLOCKING, CUcontext, CUresult, Version,
};
use cuda_events::{Driver, Error};

/// NVIDIA's `PFN_cuCtxGetApiVersion_v3020`.
type GetApiVersion = unsafe extern "C" fn(CUcontext, *mut u32) -> CUresult;

fn main() -> Result<(), Error> {
    let driver = Driver::load()?;
    let (mut device, mut context) = (0, null_mut());
    let (mut stream, mut event) = (null_mut(), null_mut());
    // SAFETY: each call gets places for its results, and handles that the calls before it created in
    // the context that is current here.
    unsafe {
        call!(driver, cuInit(0))?;
        call!(driver, cuDeviceGet(&mut device, 0))?;
        call!(driver, cuDevicePrimaryCtxRetain(&mut context, device))?;
        call!(driver, cuCtxPushCurrent_v2(context))?;
        call!(driver, cuStreamCreate(&mut stream, CU_STREAM_NON_BLOCKING))?;
        call!(driver, cuEventCreate(&mut event, CU_EVENT_DISABLE_TIMING))?;
        call!(driver, cuEventRecord(event, stream))?;
        call!(driver, cuEventSynchronize(event))?;
    }
    // SAFETY: the type is that of this function and version.
    let get =
        unsafe { driver.entry_point::<GetApiVersion>(c"cuCtxGetApiVersion", Version::new(3, 2)) }?;
    let mut version = 0;
    // SAFETY: a place for the number, and a context that is alive.
    unsafe { call!(driver, (get)(context, &mut version)) }?;
    assert!(version >= 3020, "{version}");

    // SAFETY: NULL is no event of this driver, which refuses it.
    let refused = unsafe { call!(driver, cuEventRecord(null_mut(), stream)) };
    let error = refused.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(error.starts_with("cuEventRecord failed with CUDA_ERROR_INVALID_HANDLE"), "{error}");

    // SAFETY: nothing uses the objects any more.
    unsafe {
        call!(driver, cuEventDestroy_v2(event))?;
        call!(driver, cuStreamDestroy_v2(stream))?;
        call!(driver, cuCtxPopCurrent_v2(&mut context))?;
        call!(driver, cuDevicePrimaryCtxRelease_v2(device))?;
    }
    println!("the raw layer alone: an event was recorded in a context of version {version}");
    Ok(())
}
