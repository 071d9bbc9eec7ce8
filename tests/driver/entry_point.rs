//! Functions that a program looks up by name and version.

use cuda_events::foundation::{call, with_current};
use cuda_events::sys::{
    CUdevice, CUdeviceptr, CUresult, Function, PFN_cuCtxGetId_v12000, PFN_cuStreamQuery_v2000,
};
use cuda_events::{Context, Device, Driver, Error, LoadOptions, Version};

use crate::common;

use common::{Gpu, TestDriver};
#[cfg(unix)]
use common::{fork::in_child, own_process};

type Capability = unsafe extern "C" fn(*mut i32, *mut i32, CUdevice) -> CUresult;
type Reserve = unsafe extern "C" fn(*mut CUdeviceptr, usize, usize, CUdeviceptr, u64) -> CUresult;

/// What the table lacks is found, called with the checks, and named in errors.
#[test]
fn a_function_that_the_table_lacks() {
    let gpu = Gpu::new();
    let (name, version) = (c"cuDeviceComputeCapability", Version::new(2, 0));
    // SAFETY: NVIDIA's type of this function.
    let capability = match unsafe { gpu.driver.entry_point::<Capability>(name, version) } {
        // Before cuGetProcAddress.
        Err(error) if gpu.driver.version() < Version::new(11, 3) => {
            let Error::Unsupported { function, since, .. } = error else { panic!("{error}") };
            assert_eq!((function.name(), since), ("cuDeviceComputeCapability", version));
            return;
        }
        found => found.expect("a function of CUDA 2.0"),
    };
    let (mut major, mut minor) = (0, -1);
    // SAFETY: places for the numbers.
    unsafe { call!(gpu.driver, (capability)(&mut major, &mut minor, gpu.device.as_raw())) }
        .expect("two numbers");
    assert!(major > 2 && (0..10).contains(&minor), "{major}.{minor}");
    // SAFETY: as above; the driver refuses the device.
    let error =
        unsafe { call!(gpu.driver, (capability)(&mut major, &mut minor, 1000)) }.expect_err("none");
    assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_DEVICE));
    assert_eq!(error.function(), Some(capability.function()));
    let text = error.to_string();
    assert!(
        text.starts_with("cuDeviceComputeCapability failed with CUDA_ERROR_INVALID_DEVICE"),
        "{text}"
    );
    // SAFETY: as above.
    let again = unsafe { gpu.driver.entry_point::<Option<Capability>>(name, version) };
    let again = again.expect("a second time");
    assert_eq!(again.function(), capability.function());
    assert_eq!(again.pointer() as usize, capability.pointer() as usize);
    assert_eq!(format!("{again:?}"), "Entry(cuDeviceComputeCapability)");
    let entry = capability.function().entry_point();
    assert_eq!(
        (entry.name, entry.base, entry.version),
        (name, "cuDeviceComputeCapability", version)
    );
    assert!(!entry.required && !entry.creates && entry.per_thread_version.is_none());
    assert_eq!(entry.function, capability.function());
    assert!(
        gpu.driver.symbols().address(capability.function()).is_null(),
        "it is not in the table"
    );
}

/// Two names and two versions are four functions.
#[test]
fn names_and_versions_are_told_apart() {
    let gpu = Gpu::new();
    let mut all = Vec::new();
    for name in [c"cuMemAddressReserve", c"cuMemAddressNothing"] {
        for version in [Version::new(10, 2), Version::new(10, 1)] {
            // SAFETY: NVIDIA's type of the one that exists, and nothing is called.
            let found = unsafe { gpu.driver.entry_point::<Reserve>(name, version) };
            let function = match &found {
                Ok(entry) => entry.function(),
                Err(error) => error.function().expect("it names the function"),
            };
            assert_eq!(function.name(), name.to_str().expect("ASCII"));
            assert_eq!(function.entry_point().version, version);
            if name == c"cuMemAddressNothing" {
                let driver = gpu.driver.version();
                let expected = Error::Unsupported { function, since: version, driver };
                assert_eq!(found.map(drop), Err(expected.clone()));
                let text = expected.to_string();
                assert!(text.contains("has no cuMemAddressNothing of CUDA 10."), "{text}");
            }
            all.push(function);
        }
    }
    for (at, function) in all.iter().enumerate() {
        assert!(!all[..at].contains(function), "{all:?}");
    }
}

/// A function of the table is that of the table, and has its name, also with the other default
/// stream.
#[test]
fn a_function_of_the_table() {
    let gpu = Gpu::new();
    let (name, version) = (c"cuCtxGetId", Version::new(12, 0));
    // SAFETY: the typedef of that version.
    let found = unsafe { gpu.driver.entry_point::<PFN_cuCtxGetId_v12000>(name, version) };
    match (found, gpu.driver.symbols().cuCtxGetId) {
        (Ok(entry), Some(pointer)) => {
            assert_eq!(entry.function(), Function::cuCtxGetId);
            assert_eq!(entry.pointer() as usize, pointer as usize);
        }
        (Err(error), None) => assert_eq!(error.function(), Some(Function::cuCtxGetId)),
        other => panic!("{other:?}"),
    }
    if TestDriver::chosen() != TestDriver::Soft {
        return;
    }
    let options = LoadOptions::new().per_thread_default_stream(true);
    let gpu = Gpu::with_options(&options);
    let twin = Version::new(7, 0);
    // SAFETY: the twin has the type.
    let found =
        unsafe { gpu.driver.entry_point::<PFN_cuStreamQuery_v2000>(c"cuStreamQuery", twin) };
    let found = found.expect("every driver has it");
    assert_eq!(found.function(), Function::cuStreamQuery);
    assert_eq!(found.pointer() as usize, gpu.driver.symbols().cuStreamQuery as usize);
}

type Any = unsafe extern "C" fn() -> CUresult;

/// A version between two of the driver's names the older one: if the table has that, it is the
/// table's, also for observers. One that the table lacks is no other version of it.
#[test]
fn a_version_between_two() {
    let gpu = Gpu::new();
    #[cfg(feature = "observe")]
    let drivers = [gpu.driver, gpu.driver.observe(|_| {}).expect("an observer")];
    #[cfg(not(feature = "observe"))]
    let drivers = [gpu.driver];
    for driver in drivers {
        if driver.version() < Version::new(12, 9) {
            return;
        }
        for (name, version, expected) in [
            (c"cuInit", (2, 1), Some(Function::cuInit)),
            (c"cuInit", (12, 9), Some(Function::cuInit)),
            (c"cuMemAlloc", (4, 0), Some(Function::cuMemAlloc_v2)),
            (c"cuEventElapsedTime", (12, 0), Some(Function::cuEventElapsedTime)),
            (c"cuEventElapsedTime", (12, 9), Some(Function::cuEventElapsedTime_v2)),
            // 2.0, which the table lacks; it has 3.2.
            (c"cuMemAlloc", (2, 1), None),
        ] {
            let version = Version::new(version.0, version.1);
            // SAFETY: it is not called.
            let found = unsafe { driver.entry_point::<Any>(name, version) };
            let entry = match found {
                Ok(entry) => entry,
                Err(error) if expected.is_none() => {
                    assert!(matches!(error, Error::Unsupported { .. }), "{error}");
                    continue;
                }
                Err(error) => panic!("{error}"),
            };
            match expected {
                Some(function) => {
                    assert_eq!(entry.function(), function, "{name:?} {version}");
                    let address = driver.symbols().address(function);
                    assert_eq!(entry.pointer() as usize, address as usize, "{name:?} {version}");
                }
                None => {
                    assert_ne!(entry.function(), Function::cuMemAlloc_v2);
                    assert_eq!(entry.function().entry_point().version, version);
                }
            }
        }
    }
}

/// An error for a name that no driver knows says which name to use.
#[test]
fn a_name_that_is_none() {
    let gpu = Gpu::new();
    let newer = Version::new(99, 0);
    for (name, version, part) in [
        (c"", Version::new(2, 0), "a function without a name; give the name of a typedef PFN_*"),
        (
            c"cuMemAlloc_v2",
            Version::new(3, 2),
            "ask for cuMemAlloc without _v2, as the version alone chooses the function: 3.2 if its \
             typedef is PFN_cuMemAlloc_v3020",
        ),
        (
            c"cuStreamQuery_ptsz",
            Version::new(7, 0),
            "ask for cuStreamQuery without _ptsz, as the version alone",
        ),
        (
            c"cuStreamGetCtx_v2_ptsz",
            Version::new(12, 5),
            "ask for cuStreamGetCtx without _v2_ptsz, as the version alone",
        ),
        (c"cuNothing", newer, "; update the driver"),
        (c"cuNothing_version", Version::new(2, 0), "; name and version are those of a typedef"),
    ] {
        // SAFETY: no driver has it.
        let error = unsafe { gpu.driver.entry_point::<Any>(name, version) }.expect_err("none");
        let text = error.to_string();
        let old = gpu.driver.version() < Version::new(11, 3);
        assert!(text.contains(part) || old && text.contains("it needs CUDA 11.3"), "{text}");
    }
}

/// A question mark in an argument leaves the function that has the call, and is no answer of the
/// driver's.
#[test]
fn an_argument_may_leave_the_caller() {
    let gpu = Gpu::new();
    let (driver, raw) = (gpu.driver, gpu.device.as_raw());
    let required = |place: Option<*mut i32>| {
        // SAFETY: a place for the number.
        Some(unsafe { call!(driver, cuDeviceGetCount(place?)) })
    };
    let optional = |place: Option<*mut u32>, luid: &mut [u8; 8]| {
        // SAFETY: places for eight bytes and for the number.
        Some(unsafe { call!(driver, cuDeviceGetLuid?(luid.as_mut_ptr().cast(), place?, raw)) })
    };
    let (name, version) = (c"cuDeviceGetCount", Version::new(2, 0));
    type Count = unsafe extern "C" fn(*mut i32) -> CUresult;
    // SAFETY: NVIDIA's type of this function.
    let count = unsafe { driver.entry_point::<Count>(name, version) }.expect("it is required");
    let found = |place: Option<*mut i32>| {
        // SAFETY: a place for the number.
        Some(unsafe { call!(driver, (count)(place?)) })
    };
    let (mut number, mut same) = (0, 0);
    assert_eq!((required(None), found(None)), (None, None));
    assert_eq!(required(Some(&mut number)), Some(Ok(())));
    assert_eq!(found(Some(&mut same)), Some(Ok(())));
    assert!(number > 0 && same == number);
    // A driver that lacks the function evaluates no argument.
    let there = driver.symbols().cuDeviceGetLuid.is_some();
    assert_eq!(optional(None, &mut [0; 8]).is_none(), there);
}

/// One that is found is called in no forked child, and a call on the current context is made there.
#[test]
fn the_checks_are_those_of_other_calls() {
    let gpu = Gpu::new();
    let Some(reserve) = reserve(gpu.driver) else { return };
    let context = Context::primary(Device::new(gpu.driver, 0).expect("device 0")).expect("primary");
    let mut address = 0;
    // SAFETY: a place for the address.
    let ask = || unsafe { call!(gpu.driver, (reserve)(&mut address, 2 << 20, 0, 0, 0)) };
    match with_current(&context, ask) {
        Ok(()) => {
            assert_ne!(address, 0);
            type Free = unsafe extern "C" fn(CUdeviceptr, usize) -> CUresult;
            let (name, version) = (c"cuMemAddressFree", Version::new(10, 2));
            // SAFETY: NVIDIA's type of this function.
            let free = unsafe { gpu.driver.entry_point::<Free>(name, version) }.expect("its twin");
            // SAFETY: reserved above.
            unsafe { call!(gpu.driver, (free)(address, 2 << 20)) }.expect("it is free again");
        }
        Err(error) => assert_eq!(error.function(), Some(reserve.function()), "{error}"),
    }
}

fn reserve(driver: Driver) -> Option<cuda_events::foundation::Entry<Reserve>> {
    let (name, version) = (c"cuMemAddressReserve", Version::new(10, 2));
    // SAFETY: NVIDIA's type of this function.
    unsafe { driver.entry_point::<Reserve>(name, version) }.ok()
}

/// A forked child makes no call.
#[cfg(unix)]
#[test]
fn not_in_a_forked_child() {
    own_process!();
    let gpu = Gpu::new();
    let Some(reserve) = reserve(gpu.driver) else { return };
    let function = reserve.function();
    let mut address = 0;
    let refused = in_child(|| {
        // SAFETY: no call is made.
        let result = unsafe { call!(gpu.driver, (reserve)(&mut address, 2 << 20, 0, 0, 0)) };
        format!("{}", result == Err(Error::ForkedChild { function }))
    });
    assert_eq!(refused, ("true".to_owned(), 0));
}

/// A child is recognised that was forked after a `cuInit` by any version of its name.
#[cfg(unix)]
#[test]
fn a_fork_after_a_cu_init_of_another_version() {
    own_process!();
    let (driver, _soft) = common::load(&LoadOptions::new());
    if driver.version() < Version::new(11, 3) {
        return;
    }
    type Init = unsafe extern "C" fn(u32) -> CUresult;
    // SAFETY: the type has been the same since 2.0.
    let init = unsafe { driver.entry_point::<Init>(c"cuInit", Version::new(2, 1)) };
    let init = init.expect("every driver has it");
    // SAFETY: the flags must be 0.
    unsafe { call!(driver, (init)(0)) }.expect("a driver");
    let refused = in_child(|| format!("{:?}", Device::count(driver)));
    assert_eq!(refused.1, 0);
    assert!(refused.0.contains("cuInit was not called: this process was forked"), "{refused:?}");
}
