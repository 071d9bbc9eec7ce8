//! The list of entry points, and the table that is resolved from it.

use crate::common;

use std::collections::HashSet;
use std::ffi::{CStr, c_void};

use common::{Door, check, load};
use cuda_events::sys::{CUresult, ENTRY_POINTS, EntryPoint, Function, Symbols};
use cuda_events::{Driver, LoadOptions, Version};

/// What NVIDIA's headers say of an entry point: exported name, name to ask for, versions.
struct Expected {
    name: &'static str,
    base: &'static str,
    version: u32,
    twin: Option<u32>,
}

macro_rules! expected {
    ($($name:ident: $base:ident @ $version:literal $(, $twin:literal)?;)*) => {
        const EXPECTED: &[Expected] = &[$(Expected {
            name: stringify!($name),
            base: stringify!($base),
            version: $version,
            twin: [None, $(Some($twin))?][0 $(+ { let _ = $twin; 1 })?],
        },)*];

        /// What the table's fields hold, by name.
        fn fields(symbols: &Symbols) -> Vec<(&'static str, *mut c_void)> {
            vec![$((stringify!($name), word(symbols.$name)),)*]
        }
    };
}

// Written out a second time on purpose: a line that is lost or mistyped in the library's own list is found here. The
// entry points of before CUDA 4 that newer versions of the same name replaced are not bound.
expected! {
    // Events, streams and capture.
    cuEventCreate: cuEventCreate @ 2000;
    cuEventRecord: cuEventRecord @ 2000, 7000;
    cuEventRecordWithFlags: cuEventRecordWithFlags @ 11010, 11010;
    cuEventQuery: cuEventQuery @ 2000;
    cuEventSynchronize: cuEventSynchronize @ 2000;
    cuEventDestroy_v2: cuEventDestroy @ 4000;
    cuEventElapsedTime: cuEventElapsedTime @ 2000;
    cuEventElapsedTime_v2: cuEventElapsedTime @ 12080;
    cuIpcGetEventHandle: cuIpcGetEventHandle @ 4010;
    cuIpcOpenEventHandle: cuIpcOpenEventHandle @ 4010;
    cuCtxRecordEvent: cuCtxRecordEvent @ 12050;
    cuCtxWaitEvent: cuCtxWaitEvent @ 12050;
    cuGreenCtxRecordEvent: cuGreenCtxRecordEvent @ 12040;
    cuGreenCtxWaitEvent: cuGreenCtxWaitEvent @ 12040;
    cuGreenCtxStreamCreate: cuGreenCtxStreamCreate @ 12050;
    cuGraphAddEventRecordNode: cuGraphAddEventRecordNode @ 11010;
    cuGraphAddEventWaitNode: cuGraphAddEventWaitNode @ 11010;
    cuGraphEventRecordNodeGetEvent: cuGraphEventRecordNodeGetEvent @ 11010;
    cuGraphEventRecordNodeSetEvent: cuGraphEventRecordNodeSetEvent @ 11010;
    cuGraphEventWaitNodeGetEvent: cuGraphEventWaitNodeGetEvent @ 11010;
    cuGraphEventWaitNodeSetEvent: cuGraphEventWaitNodeSetEvent @ 11010;
    cuGraphExecEventRecordNodeSetEvent: cuGraphExecEventRecordNodeSetEvent @ 11010;
    cuGraphExecEventWaitNodeSetEvent: cuGraphExecEventWaitNodeSetEvent @ 11010;
    cuStreamCreate: cuStreamCreate @ 2000;
    cuStreamCreateWithPriority: cuStreamCreateWithPriority @ 5050;
    cuStreamDestroy_v2: cuStreamDestroy @ 4000;
    cuStreamQuery: cuStreamQuery @ 2000, 7000;
    cuStreamSynchronize: cuStreamSynchronize @ 2000, 7000;
    cuStreamWaitEvent: cuStreamWaitEvent @ 3020, 7000;
    cuStreamGetPriority: cuStreamGetPriority @ 5050, 7000;
    cuStreamGetFlags: cuStreamGetFlags @ 5050, 7000;
    cuStreamGetId: cuStreamGetId @ 12000, 12000;
    cuStreamGetCtx: cuStreamGetCtx @ 9020, 9020;
    cuStreamGetCtx_v2: cuStreamGetCtx @ 12050, 12050;
    cuStreamGetGreenCtx: cuStreamGetGreenCtx @ 12040;
    cuStreamGetDevice: cuStreamGetDevice @ 12080, 12080;
    cuStreamGetDevResource: cuStreamGetDevResource @ 13010, 13010;
    cuStreamGetAttribute: cuStreamGetAttribute @ 11000, 11000;
    cuStreamSetAttribute: cuStreamSetAttribute @ 11000, 11000;
    cuStreamCopyAttributes: cuStreamCopyAttributes @ 11000, 11000;
    cuStreamAddCallback: cuStreamAddCallback @ 5000, 7000;
    cuLaunchHostFunc: cuLaunchHostFunc @ 10000, 10000;
    cuLaunchHostFunc_v2: cuLaunchHostFunc @ 13010, 13010;
    cuStreamAttachMemAsync: cuStreamAttachMemAsync @ 6000, 7000;
    cuStreamBeginCapture_v2: cuStreamBeginCapture @ 10010, 10010;
    cuStreamBeginCaptureToGraph: cuStreamBeginCaptureToGraph @ 12030, 12030;
    cuStreamBeginRecaptureToGraph: cuStreamBeginRecaptureToGraph @ 13030, 13030;
    cuStreamBeginCaptureToCig: cuStreamBeginCaptureToCig @ 13010, 13010;
    cuStreamEndCapture: cuStreamEndCapture @ 10000, 10000;
    cuStreamEndCaptureToCig: cuStreamEndCaptureToCig @ 13010, 13010;
    cuStreamIsCapturing: cuStreamIsCapturing @ 10000, 10000;
    cuStreamGetCaptureInfo: cuStreamGetCaptureInfo @ 10010, 10010;
    cuStreamGetCaptureInfo_v2: cuStreamGetCaptureInfo @ 11030, 11030;
    cuStreamGetCaptureInfo_v3: cuStreamGetCaptureInfo @ 12030, 12030;
    cuStreamUpdateCaptureDependencies: cuStreamUpdateCaptureDependencies @ 11030, 11030;
    cuStreamUpdateCaptureDependencies_v2: cuStreamUpdateCaptureDependencies @ 12030, 12030;
    cuThreadExchangeStreamCaptureMode: cuThreadExchangeStreamCaptureMode @ 10010;
    cuStreamWaitValue32: cuStreamWaitValue32 @ 8000, 8000;
    cuStreamWaitValue32_v2: cuStreamWaitValue32 @ 11070, 11070;
    cuStreamWaitValue64: cuStreamWaitValue64 @ 9000, 9000;
    cuStreamWaitValue64_v2: cuStreamWaitValue64 @ 11070, 11070;
    cuStreamWriteValue32: cuStreamWriteValue32 @ 8000, 8000;
    cuStreamWriteValue32_v2: cuStreamWriteValue32 @ 11070, 11070;
    cuStreamWriteValue64: cuStreamWriteValue64 @ 9000, 9000;
    cuStreamWriteValue64_v2: cuStreamWriteValue64 @ 11070, 11070;
    cuStreamBatchMemOp: cuStreamBatchMemOp @ 8000, 8000;
    cuStreamBatchMemOp_v2: cuStreamBatchMemOp @ 11070, 11070;

    // What a crate of events and streams needs besides.
    cuInit: cuInit @ 2000;
    cuDriverGetVersion: cuDriverGetVersion @ 2020;
    cuGetProcAddress: cuGetProcAddress @ 11030;
    cuGetProcAddress_v2: cuGetProcAddress @ 12000;
    cuGetErrorName: cuGetErrorName @ 6000;
    cuGetErrorString: cuGetErrorString @ 6000;
    cuDeviceGet: cuDeviceGet @ 2000;
    cuDeviceGetCount: cuDeviceGetCount @ 2000;
    cuDeviceGetAttribute: cuDeviceGetAttribute @ 2000;
    cuDevicePrimaryCtxRetain: cuDevicePrimaryCtxRetain @ 7000;
    cuDevicePrimaryCtxRelease_v2: cuDevicePrimaryCtxRelease @ 11000;
    cuDevicePrimaryCtxGetState: cuDevicePrimaryCtxGetState @ 7000;
    cuCtxGetCurrent: cuCtxGetCurrent @ 4000;
    cuCtxSetCurrent: cuCtxSetCurrent @ 4000;
    cuCtxPushCurrent_v2: cuCtxPushCurrent @ 4000;
    cuCtxPopCurrent_v2: cuCtxPopCurrent @ 4000;
    cuCtxGetDevice: cuCtxGetDevice @ 2000;
    cuCtxGetDevice_v2: cuCtxGetDevice @ 13000;
    cuCtxSynchronize: cuCtxSynchronize @ 2000;
    cuCtxSynchronize_v2: cuCtxSynchronize @ 13000;
    cuCtxGetStreamPriorityRange: cuCtxGetStreamPriorityRange @ 5050;
    cuCtxGetId: cuCtxGetId @ 12000;
    cuCtxGetFlags: cuCtxGetFlags @ 7000;
    cuCtxCreate_v2: cuCtxCreate @ 3020;
    cuCtxCreate_v4: cuCtxCreate @ 12050;
    cuCtxDestroy_v2: cuCtxDestroy @ 4000;
    cuCtxFromGreenCtx: cuCtxFromGreenCtx @ 12040;
    cuDeviceGetDevResource: cuDeviceGetDevResource @ 12040;
    cuCtxGetDevResource: cuCtxGetDevResource @ 12040;
    cuGreenCtxGetDevResource: cuGreenCtxGetDevResource @ 12040;
    cuDevSmResourceSplitByCount: cuDevSmResourceSplitByCount @ 12040;
    cuDevResourceGenerateDesc: cuDevResourceGenerateDesc @ 12040;
    cuGreenCtxCreate: cuGreenCtxCreate @ 12040;
    cuGreenCtxDestroy: cuGreenCtxDestroy @ 12040;

    // Devices, memory and graphs, for tests and examples.
    cuDeviceGetName: cuDeviceGetName @ 2000;
    cuDeviceTotalMem_v2: cuDeviceTotalMem @ 3020;
    cuDeviceGetUuid: cuDeviceGetUuid @ 9020;
    cuDeviceGetUuid_v2: cuDeviceGetUuid @ 11040;
    cuMemGetInfo_v2: cuMemGetInfo @ 3020;
    cuMemAlloc_v2: cuMemAlloc @ 3020;
    cuMemFree_v2: cuMemFree @ 3020;
    cuMemHostAlloc: cuMemHostAlloc @ 2020;
    cuMemFreeHost: cuMemFreeHost @ 2000;
    cuMemHostGetDevicePointer_v2: cuMemHostGetDevicePointer @ 3020;
    cuMemsetD8Async: cuMemsetD8Async @ 3020, 7000;
    cuMemsetD32Async: cuMemsetD32Async @ 3020, 7000;
    cuMemcpyHtoDAsync_v2: cuMemcpyHtoDAsync @ 3020, 7000;
    cuMemcpyDtoHAsync_v2: cuMemcpyDtoHAsync @ 3020, 7000;
    cuMemcpyDtoDAsync_v2: cuMemcpyDtoDAsync @ 3020, 7000;
    cuGraphCreate: cuGraphCreate @ 10000;
    cuGraphInstantiate_v2: cuGraphInstantiate @ 11000;
    cuGraphInstantiateWithFlags: cuGraphInstantiateWithFlags @ 11040;
    cuGraphLaunch: cuGraphLaunch @ 10000, 10000;
    cuGraphDestroy: cuGraphDestroy @ 10000;
    cuGraphExecDestroy: cuGraphExecDestroy @ 10000;
}

/// A function pointer, or an `Option` of one, as an address.
fn word<F: Copy>(field: F) -> *mut c_void {
    assert_eq!(size_of::<F>(), size_of::<*mut c_void>());
    // SAFETY: the sizes are equal, and both types of fields are an address or NULL.
    unsafe { std::mem::transmute_copy(&field) }
}

fn name(entry: &EntryPoint) -> &'static str {
    entry.name.to_str().expect("an exported name is ASCII")
}

#[test]
fn every_entry_point_of_the_headers_is_in_the_list() {
    for expected in EXPECTED {
        let entry = ENTRY_POINTS.iter().find(|entry| name(entry) == expected.name);
        let entry = entry.unwrap_or_else(|| panic!("{} is not in the list", expected.name));
        assert_eq!(entry.base, expected.base, "{}", expected.name);
        assert_eq!(entry.version, Version::from_raw(expected.version), "{}", expected.name);
        assert_eq!(entry.per_thread_version, expected.twin.map(Version::from_raw), "{}", expected.name);
    }
    let expected: HashSet<_> = EXPECTED.iter().map(|expected| expected.name).collect();
    let unexpected: Vec<_> = ENTRY_POINTS.iter().map(name).filter(|name| !expected.contains(name)).collect();
    assert!(unexpected.is_empty(), "the list has entry points that this test does not know: {unexpected:?}");
}

#[test]
fn names_are_unique_and_in_order() {
    let names: HashSet<_> = ENTRY_POINTS.iter().map(|entry| entry.name).collect();
    assert_eq!(names.len(), ENTRY_POINTS.len());
    // One ABI is one pair of base name and version.
    let asked: HashSet<_> = ENTRY_POINTS.iter().map(|entry| (entry.base, entry.version)).collect();
    assert_eq!(asked.len(), ENTRY_POINTS.len());
    assert!(ENTRY_POINTS.is_sorted_by(|one, next| one.function < next.function));
}

#[test]
fn an_exported_name_is_the_base_name_with_an_abi_suffix() {
    for entry in ENTRY_POINTS {
        let suffix = name(entry).strip_prefix(entry.base).unwrap_or_else(|| panic!("{entry:?}"));
        let plain = suffix.is_empty();
        let numbered = suffix.strip_prefix("_v").is_some_and(|digits| digits.parse::<u8>().is_ok_and(|n| n >= 2));
        assert!(plain || numbered, "{entry:?}");
        // The resolver appends these itself.
        assert!(!name(entry).ends_with("_ptsz") && !name(entry).ends_with("_ptds"), "{entry:?}");
    }
}

#[test]
fn versions_are_versions() {
    for entry in ENTRY_POINTS {
        for version in [Some(entry.version), entry.per_thread_version].into_iter().flatten() {
            assert!((2..=13).contains(&version.major()), "{entry:?}");
            assert_eq!(Version::new(version.major(), version.minor()), version, "{entry:?}");
        }
        if let Some(twin) = entry.per_thread_version {
            // Per-thread default streams came with CUDA 7.0.
            assert!(twin >= entry.version && twin >= Version::new(7, 0), "{entry:?}");
        }
    }
}

#[test]
fn no_driver_since_cuda_11_0_lacks_what_is_required() {
    for entry in ENTRY_POINTS.iter().filter(|entry| entry.required) {
        assert!(entry.version <= Version::new(11, 0), "{entry:?}");
        assert!(entry.per_thread_version.is_none_or(|twin| twin <= Version::new(11, 0)), "{entry:?}");
    }
}

#[test]
fn a_function_prints_as_its_exported_name() {
    for entry in ENTRY_POINTS {
        assert_eq!(entry.function.name(), name(entry));
        assert_eq!(entry.function.to_string(), name(entry));
        assert_eq!(format!("{:?}", entry.function), name(entry));
        assert_eq!(entry.function.entry_point(), *entry);
    }
}

#[test]
fn the_address_of_a_function_is_its_field() {
    let (driver, _soft) = load(&LoadOptions::new());
    let fields = fields(driver.symbols());
    assert_eq!(fields.len(), ENTRY_POINTS.len());
    for (field, address) in fields {
        let entry = ENTRY_POINTS.iter().find(|entry| name(entry) == field).expect("the field is in the list");
        assert_eq!(driver.symbols().address(entry.function), address, "{field}");
        assert!(!(entry.required && address.is_null()), "{field}");
    }
}

#[test]
fn a_driver_has_every_entry_point_that_is_not_newer_than_itself() {
    let (driver, _soft) = load(&LoadOptions::new());
    let missing: Vec<_> = ENTRY_POINTS
        .iter()
        .filter(|entry| (entry.version <= driver.version()) == driver.symbols().address(entry.function).is_null())
        .map(name)
        .collect();
    assert!(
        missing.is_empty(),
        "CUDA driver {}: absent though old enough, or there though newer: {missing:?}",
        driver.version()
    );
}

#[test]
fn every_field_holds_what_the_resolver_gave_for_its_name() {
    let (real, _soft) = load(&LoadOptions::new());
    let mut given = Vec::new();
    let mut resolve = |asked: &CStr| {
        let entry = ENTRY_POINTS.iter().find(|entry| entry.name == asked);
        let address = match entry {
            // Without these, all others are asked for by their exported names.
            Some(entry) if entry.base != "cuGetProcAddress" => real.symbols().address(entry.function),
            _ => std::ptr::null_mut(),
        };
        given.push((asked.to_owned(), address));
        address
    };
    // SAFETY: the addresses are those of a driver's table, by their names.
    let driver = unsafe { Driver::from_resolver(&mut resolve, &LoadOptions::new()) }.expect("the same table");
    let mut checked = 0;
    for entry in ENTRY_POINTS.iter().filter(|entry| entry.version <= driver.version()) {
        let (_, address) = given.iter().find(|(asked, _)| asked.as_c_str() == entry.name).expect("it was asked for");
        assert_eq!(driver.symbols().address(entry.function), *address, "{entry:?}");
        checked += usize::from(!address.is_null());
    }
    let distinct: HashSet<_> = given.iter().map(|(_, address)| address).filter(|address| !address.is_null()).collect();
    assert_eq!(distinct.len(), checked, "two names have one address, so this test cannot tell them apart");
}

#[test]
fn the_table_is_the_driver() {
    let (driver, _soft) = load(&LoadOptions::new());
    let symbols: Symbols = *driver.symbols();
    let mut version = 0;
    // SAFETY: a place for the one integer.
    check(Function::cuDriverGetVersion, unsafe { (symbols.cuDriverGetVersion)(&mut version) });
    assert_eq!(Version::from_raw(version.unsigned_abs()), driver.version());

    let mut text = std::ptr::null();
    // SAFETY: a place for the C string's address.
    let code = unsafe { (symbols.cuGetErrorName)(CUresult::CUDA_ERROR_NOT_READY, &mut text) };
    check(Function::cuGetErrorName, code);
    // SAFETY: on success the driver gives a C string that is never freed.
    let text = unsafe { CStr::from_ptr(text.cast()) };
    assert_eq!(text.to_str(), Ok(CUresult::CUDA_ERROR_NOT_READY.name().expect("a known code")));
    assert_eq!(driver.library().is_none(), Door::chosen() == Door::Soft);
}

#[test]
fn every_bound_code_has_its_name() {
    let bindings = include_str!("../../src/sys/bindings.rs");
    let (_, after) = bindings.split_once("impl CUresult {").expect("bindings.rs declares CUresult");
    let (constants, _) = after.split_once("\n}").expect("the block ends");
    let mut codes = 0;
    for constant in constants.split("pub const ").skip(1) {
        let (name, rest) = constant.split_once(':').expect("a constant has a type");
        let value: String = rest.chars().filter(char::is_ascii_digit).collect();
        let code = CUresult(value.parse().expect("a constant has a number"));
        assert_eq!(code.name(), Some(name));
        codes += 1;
    }
    assert!(codes > 100, "only {codes} codes were found in bindings.rs");
}

#[test]
fn an_unknown_code_keeps_its_number() {
    assert_eq!(CUresult(4242).name(), None);
    assert_eq!(CUresult(4242).to_string(), "an unknown CUDA error (4242)");
    assert_eq!(CUresult(400).to_string(), "CUDA_ERROR_INVALID_HANDLE (400)");
}
