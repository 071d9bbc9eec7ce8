//! What a driver must have to be loaded, what it may lack, and what it is too old for.

#![cfg(any(target_os = "linux", windows))]

use crate::common;

use std::collections::BTreeSet;
use std::ffi::{CStr, c_int, c_void};
use std::path::PathBuf;
use std::ptr::null_mut;

use common::child::{role, say};
use common::counting::{counting, fail_next};
use common::{load, shared_library};
use cuda_events::loader::LoadFailure;
use cuda_events::sys::*;
use cuda_events::{
    Context, Device, Driver, Error, EventFlags, LoadOptions, Stream, StreamOptions, Version,
};

use crate::loading::*;

// What a driver must have. A resolver in front of the driver under test takes parts away.

/// The exported names of `real`'s table without cuGetProcAddress, so that each entry point is asked
/// for by its exported name; `replace` comes first.
fn in_front_of(
    real: Driver,
    replace: impl Fn(&CStr) -> Option<*mut c_void>,
) -> Result<Driver, Error> {
    let mut resolve = |name: &CStr| {
        if name.to_bytes().starts_with(b"cuGetProcAddress") {
            return null_mut();
        }
        let entry = || ENTRY_POINTS.iter().find(|entry| entry.name == name);
        replace(name).unwrap_or_else(|| {
            entry().map_or(null_mut(), |entry| real.symbols().address(entry.function))
        })
    };
    // SAFETY: the addresses are those of a driver's table by their names, or a test's own functions
    // of the same type.
    unsafe { Driver::from_resolver(&mut resolve, &LoadOptions::new()) }
}

/// The one failure of a resolver function that gave no driver.
#[track_caller]
fn resolver_failure(loaded: Result<Driver, Error>) -> LoadFailure {
    let error = refused(loaded);
    assert!(error.to_string().contains("from a resolver function"), "{error}");
    let [attempt] = error.attempts() else { panic!("one attempt, not {error:?}") };
    assert_eq!(attempt.candidate(), None);
    attempt.failure().clone()
}

type GetVersion = extern "C" fn(*mut c_int) -> CUresult;

/// A `cuDriverGetVersion` that says `VERSION`, or fails with `CODE`.
extern "C" fn get_version<const VERSION: c_int, const CODE: u32>(version: *mut c_int) -> CUresult {
    if CODE == 0 {
        // SAFETY: the loader passes a place for the one integer.
        unsafe { version.write(VERSION) };
    }
    CUresult(CODE)
}

/// A replacement of `cuDriverGetVersion` alone.
fn version(get_version: GetVersion) -> impl Fn(&CStr) -> Option<*mut c_void> {
    move |name| (name == c"cuDriverGetVersion").then_some(get_version as *mut c_void)
}

#[test]
fn a_bare_driver_lacks_all_that_is_required() {
    let (real, _soft) = load(&LoadOptions::new());
    let failure = resolver_failure(in_front_of(real, |name| {
        (name != c"cuDriverGetVersion").then_some(null_mut())
    }));
    let required = ENTRY_POINTS.iter().filter(|entry| entry.required).map(|entry| entry.function);
    let functions: Vec<_> =
        required.filter(|function| *function != Function::cuDriverGetVersion).collect();
    // The reason and a few of them: all would be a page.
    let more = format!(
        "(it lacks cuInit, cuGetErrorName, cuGetErrorString and {} more)",
        functions.len() - 3
    );
    assert!(failure.to_string().ends_with(&more), "{failure}");
    assert_eq!(failure, LoadFailure::MissingSymbols { driver: real.version(), functions });
}

/// What every driver has had since CUDA 11.0, and nothing that NVIDIA means to remove. A line less
/// changes a field of `Symbols`, and a line more refuses drivers that were accepted: both break
/// callers, so the list stays as it is.
const REQUIRED: [&str; 63] = [
    "cuInit",
    "cuDriverGetVersion",
    "cuGetErrorName",
    "cuGetErrorString",
    "cuDeviceGet",
    "cuDeviceGetCount",
    "cuDeviceGetName",
    "cuDeviceGetAttribute",
    "cuDeviceTotalMem_v2",
    "cuDeviceGetUuid",
    "cuDevicePrimaryCtxRetain",
    "cuDevicePrimaryCtxRelease_v2",
    "cuDevicePrimaryCtxGetState",
    "cuCtxCreate_v2",
    "cuCtxDestroy_v2",
    "cuCtxGetCurrent",
    "cuCtxSetCurrent",
    "cuCtxPushCurrent_v2",
    "cuCtxPopCurrent_v2",
    "cuCtxGetDevice",
    "cuCtxSynchronize",
    "cuCtxGetStreamPriorityRange",
    "cuCtxGetFlags",
    "cuEventCreate",
    "cuEventDestroy_v2",
    "cuEventRecord",
    "cuEventQuery",
    "cuEventSynchronize",
    "cuEventElapsedTime",
    "cuIpcGetEventHandle",
    "cuIpcOpenEventHandle",
    "cuMemGetInfo_v2",
    "cuMemAlloc_v2",
    "cuMemFree_v2",
    "cuIpcGetMemHandle",
    "cuIpcCloseMemHandle",
    "cuMemHostAlloc",
    "cuMemFreeHost",
    "cuMemHostRegister_v2",
    "cuMemHostGetDevicePointer_v2",
    "cuMemsetD8Async",
    "cuMemsetD32Async",
    "cuMemcpyHtoDAsync_v2",
    "cuMemcpyDtoHAsync_v2",
    "cuMemcpyDtoDAsync_v2",
    "cuStreamCreate",
    "cuStreamCreateWithPriority",
    "cuStreamDestroy_v2",
    "cuStreamQuery",
    "cuStreamSynchronize",
    "cuStreamWaitEvent",
    "cuStreamGetPriority",
    "cuStreamGetFlags",
    "cuStreamGetCtx",
    "cuStreamBeginCapture_v2",
    "cuStreamEndCapture",
    "cuStreamIsCapturing",
    "cuThreadExchangeStreamCaptureMode",
    "cuLaunchHostFunc",
    "cuGraphCreate",
    "cuGraphLaunch",
    "cuGraphDestroy",
    "cuGraphExecDestroy",
];

#[test]
fn the_required_entry_points_are_frozen() {
    let required = ENTRY_POINTS.iter().filter(|entry| entry.required);
    let names: BTreeSet<_> = required.map(|entry| entry.function.name()).collect();
    assert_eq!(names, BTreeSet::from(REQUIRED));
    let too_new = |name: &str| {
        let entry = ENTRY_POINTS.iter().find(|entry| entry.name.to_bytes() == name.as_bytes());
        entry.is_none_or(|entry| entry.version > Version::new(11, 0))
    };
    assert_eq!(REQUIRED.iter().find(|name| too_new(name)), None);
}

/// A driver that has these and no other function can be used. What it lacks is an error.
#[test]
fn what_is_required_is_enough() {
    let (real, _soft) = load(&LoadOptions::new());
    let driver = in_front_of(real, |name| {
        let required = name.to_str().is_ok_and(|name| REQUIRED.contains(&name));
        (!required).then_some(null_mut())
    });
    let driver = driver.expect("nothing that is required is missing");
    let context = Device::new(driver, 0).and_then(Context::primary).expect("the context");
    let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
    let event = stream.record_event(EventFlags::empty()).expect("a record");
    stream.wait_event(&event).and_then(|()| event.synchronize()).expect("no work");
    let error = stream.add_callback(|_| {}).expect_err("the driver does not have it any more");
    assert!(matches!(error, Error::Unsupported { .. }), "{error}");
    assert_eq!(error.function(), Some(Function::cuStreamAddCallback));
    let text = error.to_string();
    assert!(text.contains("cuStreamAddCallback is missing from the driver"), "{text}");
    stream.launch_host_function(|| {}).and_then(|()| stream.synchronize()).expect("its like");
}

#[test]
fn a_resolver_that_finds_nothing() {
    let nothing = &mut |_: &CStr| null_mut();
    // SAFETY: it gives no address at all.
    let failure = resolver_failure(unsafe { Driver::from_resolver(nothing, &LoadOptions::new()) });
    assert_eq!(failure, LoadFailure::NotADriver);
}

#[test]
fn the_toolkits_stub_is_recognised() {
    let (real, _soft) = load(&LoadOptions::new());
    let failure = resolver_failure(in_front_of(real, version(get_version::<0, 34>)));
    assert_eq!(failure, LoadFailure::Stub);
    let text = failure.to_string();
    for part in
        ["stub library", "CUDA_ERROR_STUB_LIBRARY", "34", "install the NVIDIA display driver"]
    {
        assert!(text.contains(part), "{text}");
    }
}

// What a driver is too old for.

#[test]
fn before_cuda_11_is_refused_with_its_version() {
    let (real, _soft) = load(&LoadOptions::new());
    let failure = resolver_failure(in_front_of(real, version(get_version::<10020, 0>)));
    let LoadFailure::MissingSymbols { driver, functions } = &failure else { panic!("{failure:?}") };
    assert_eq!(*driver, Version::new(10, 2));
    assert_eq!(*functions, [Function::cuDevicePrimaryCtxRelease_v2]);
    assert_eq!(
        failure.to_string(),
        "the driver supports CUDA 10.2, and this crate needs 11.0 or newer: update the driver (it \
         lacks cuDevicePrimaryCtxRelease_v2)"
    );
}

#[test]
fn no_device() {
    let (real, _soft) = load(&LoadOptions::new());
    let driver = counting(real);
    fail_next(Function::cuInit, CUresult::CUDA_ERROR_NO_DEVICE);
    let error = Device::new(driver, 0).expect_err("cuInit says that there is none");
    // A driver from a resolver function has no file to name.
    assert_eq!(error, Error::Init { code: CUresult::CUDA_ERROR_NO_DEVICE, library: None });
    let text = error.to_string();
    for part in [
        "cuInit",
        "CUDA_ERROR_NO_DEVICE (100)",
        "no CUDA device is visible",
        "CUDA_VISIBLE_DEVICES",
    ] {
        assert!(text.contains(part), "{text}");
    }
    fail_next(Function::cuInit, CUresult::CUDA_ERROR_NO_DEVICE);
    assert_eq!(Device::count(driver), Err(error));
    // It was only a failure: the next attempt initialises.
    assert!(Device::count(driver).expect("there is a device after all") > 0);
}

#[test]
fn without_a_device_it_loads_and_reports_that() {
    if role().is_some() {
        let driver = common::load_from(shared_library()).expect("the software driver");
        // On Windows the system has the path as it was given.
        let file = if cfg!(windows) {
            shared_library()
        } else {
            shared_library().canonicalize().expect("it is there")
        };
        let file: &'static PathBuf = Box::leak(Box::new(file));
        let none = Error::Init { code: CUresult::CUDA_ERROR_NO_DEVICE, library: Some(file) };
        let named =
            format!("cuInit of {} failed with CUDA_ERROR_NO_DEVICE (100): ", file.display());
        assert!(none.to_string().starts_with(&named), "{none}");
        assert_eq!(Device::count(driver), Err(none.clone()));
        assert_eq!(Device::new(driver, 0), Err(none.clone()));
        assert_eq!(Device::all(driver).map(|devices| devices.len()), Err(none));
        return say("done");
    }
    in_child("without_a_device_it_loads_and_reports_that", |command| {
        command.env("CUDA_SOFT_DRIVER", "devices=0");
    });
}
