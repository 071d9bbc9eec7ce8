//! Initialisation, contexts, lookup by name and version.

use crate::common;

use std::ffi::{CStr, CString, c_void};
use std::ptr::null_mut;

use common::*;
use cuda_events::sys::*;
use cuda_events_test_support::own_process;
use cuda_soft_driver::SoftDriver;
use cuda_soft_driver::exports::EXPORTS;

#[test]
fn initialisation() {
    let raw = Raw::bare(SoftDriver::builder());
    let (mut count, mut event) = (0, null_mut());
    unsafe {
        assert_eq!((raw.cuDeviceGetCount)(&mut count).0, NOT_INITIALIZED);
        assert_eq!((raw.cuEventCreate)(&mut event, 0).0, NOT_INITIALIZED);
        assert_eq!((raw.cuStreamQuery)(null_mut()).0, NOT_INITIALIZED);
        assert_eq!(
            (raw.cuEventQuery)(null_mut()).0,
            INVALID_HANDLE,
            "the handle is looked at first"
        );
        assert_eq!((raw.cuInit)(1).0, INVALID_VALUE);
        assert_eq!((raw.cuDeviceGetCount)(&mut count).0, NOT_INITIALIZED);
        assert_eq!((raw.cuDriverGetVersion)(&mut count).0, OK);
        assert_eq!(count, 13000);
        assert_eq!((raw.cuInit)(0).0, OK);
        assert_eq!((raw.cuInit)(0).0, OK);
        assert_eq!((raw.cuInit)(1).0, INVALID_VALUE);
        assert_eq!((raw.cuDeviceGetCount)(&mut count).0, OK);
        assert_eq!(count, 1);
        let mut device = 7;
        assert_eq!((raw.cuDeviceGet)(&mut device, 1).0, 101);
        assert_eq!((raw.cuDeviceGet)(&mut device, -1).0, 101);
        let mut text = [0_u8; 64];
        assert_eq!((raw.cuDeviceGetName)(text.as_mut_ptr(), 64, 0).0, OK);
        assert_eq!(CStr::from_bytes_until_nul(&text).unwrap(), c"CUDA software driver (no GPU)");
        let mut name = std::ptr::null();
        assert_eq!((raw.cuGetErrorName)(CUresult(600), &mut name).0, OK);
        assert_eq!(CStr::from_ptr(name.cast()), c"CUDA_ERROR_NOT_READY");
        assert_eq!((raw.cuGetErrorName)(CUresult(12345), &mut name).0, INVALID_VALUE);
        assert!(name.is_null());
    }
    let none = Raw::bare(SoftDriver::builder().devices(0));
    assert_eq!(unsafe { (none.cuInit)(0) }.0, 100);
}

#[test]
fn context_stack() {
    let raw = Raw::bare(SoftDriver::builder());
    let current = |raw: &Raw| {
        let mut context = null_mut();
        assert_eq!(unsafe { (raw.cuCtxGetCurrent)(&mut context) }.0, OK);
        context
    };
    unsafe {
        assert_eq!((raw.cuInit)(0).0, OK);
        let mut popped = null_mut();
        assert_eq!((raw.cuCtxPopCurrent_v2)(&mut popped).0, INVALID_CONTEXT);
        assert_eq!((raw.cuCtxPushCurrent_v2)(null_mut()).0, INVALID_VALUE);
        assert_eq!((raw.cuCtxSetCurrent)(null_mut()).0, OK);
        assert!(current(&raw).is_null());
        assert_eq!((raw.cuDevicePrimaryCtxRelease_v2)(0).0, INVALID_CONTEXT);
        let primary = raw.retain(0);
        assert!(current(&raw).is_null(), "retaining does not push");
        assert_eq!((raw.cuCtxPushCurrent_v2)(primary).0, OK);
        let mut made = null_mut();
        assert_eq!((raw.cuCtxCreate_v2)(&mut made, 0, 0).0, OK);
        assert_eq!(current(&raw), made);
        assert_eq!((raw.cuCtxDestroy_v2)(made).0, OK);
        assert_eq!(current(&raw), primary);

        // The primary context outlives its last release as a thing to point at.
        let event = raw.event(0);
        assert_eq!((raw.cuDevicePrimaryCtxRelease_v2)(0).0, OK);
        assert_eq!(current(&raw), primary);
        let mut device = 9;
        assert_eq!((raw.cuCtxGetDevice)(&mut device).0, OK);
        let mut other = null_mut();
        assert_eq!((raw.cuEventCreate)(&mut other, 0).0, DESTROYED);
        assert_eq!((raw.cuStreamQuery)(null_mut()).0, DESTROYED);
        assert_eq!(raw.retain(0), primary);
        assert_eq!((raw.cuEventCreate)(&mut other, 0).0, OK);
        assert_eq!(raw.query(event), INVALID_HANDLE, "a crash on the real driver");
        assert!(raw.soft.misuses()[0].contains("cuDevicePrimaryCtxRelease_v2"));
    }
}

#[test]
fn destroying_a_context_that_is_current_elsewhere() {
    let raw = Raw::new();
    let mut made = null_mut();
    assert_eq!(unsafe { (raw.cuCtxCreate_v2)(&mut made, 0, 0) }.0, OK);
    let event = raw.event(0);
    let (to, from) = std::sync::mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let (raw, made) = (&raw, made.expose_provenance());
        let other = scope.spawn(move || {
            raw.set_current(std::ptr::with_exposed_provenance_mut(made));
            to.send(()).unwrap();
            std::thread::park();
            let mut event = null_mut();
            unsafe { (raw.cuEventCreate)(&mut event, 0) }.0
        });
        from.recv().unwrap();
        let context = std::ptr::with_exposed_provenance_mut(made);
        assert_eq!(unsafe { (raw.cuCtxDestroy_v2)(context) }.0, OK);
        other.thread().unpark();
        assert_eq!(other.join().unwrap(), DESTROYED);
        assert_eq!(unsafe { (raw.cuCtxSetCurrent)(context) }.0, OK, "measured");
    });
    assert_eq!(raw.query(event), DESTROYED);
    assert!(raw.soft.misuses()[0].contains("was destroyed by cuCtxDestroy_v2"));
}

type GetProcAddress = unsafe extern "C" fn(*const u8, *mut *mut c_void, i32, u64, *mut u32) -> u32;
type GetProcAddressV1 = unsafe extern "C" fn(*const u8, *mut *mut c_void, i32, u64) -> u32;

#[test]
fn lookup_by_name_and_version() {
    let soft = SoftDriver::new();
    let look: GetProcAddress = unsafe { std::mem::transmute(soft.resolve(c"cuGetProcAddress_v2")) };
    let poison: *mut c_void = std::ptr::without_provenance_mut(0x55);
    let look = |name: &str, version: i32, flags: u64| {
        let name = CString::new(name).unwrap();
        let (mut function, mut status) = (poison, 77);
        let code =
            unsafe { look(name.as_ptr().cast(), &mut function, version, flags, &mut status) };
        (code, function, status)
    };
    let exported = |name: &CStr| soft.resolve(name);
    assert_eq!(look("cuEventDestroy", 4000, 0), (0, exported(c"cuEventDestroy_v2"), 0));
    assert_eq!(look("cuEventDestroy", 13000, 0), (0, exported(c"cuEventDestroy_v2"), 0));
    assert_eq!(look("cuEventDestroy", 2000, 0), (0, exported(c"cuEventDestroy"), 0));
    assert_eq!(look("cuEventElapsedTime", 12080, 0).1, exported(c"cuEventElapsedTime_v2"));
    assert_eq!(look("cuEventElapsedTime", 12070, 0).1, exported(c"cuEventElapsedTime"));
    assert_eq!(look("cuEventDestroy_v2", 13000, 0), (0, null_mut(), 1));
    assert_eq!(look("cuEventRecord_ptsz", 13000, 0), (0, null_mut(), 1));
    assert_eq!(look("", 13000, 0), (0, null_mut(), 1));
    assert_eq!(look("cuStreamGetId", 11080, 0), (0, null_mut(), 2));
    assert_eq!(look("cuEventRecord", 13010, 0), (1, poison, 77), "above the driver's version");
    assert_eq!(look("cuEventRecord", 13000, 4), (1, poison, 77));
    assert_eq!(look("cuEventRecord", 13000, 1).1, exported(c"cuEventRecord"));
    assert_eq!(look("cuEventRecord", 13000, 2).1, exported(c"cuEventRecord_ptsz"));
    assert_eq!(look("cuEventRecord", 13000, 3).0, 0);
    assert_eq!(
        look("cuEventRecord", 2000, 2),
        (0, null_mut(), 2),
        "no fallback to the legacy function"
    );
    assert_eq!(look("cuEventQuery", 2000, 2).1, exported(c"cuEventQuery"), "no such twin");
    assert_eq!(look("cuEventQuery", -5, 0).1, exported(c"cuEventQuery"));
    assert_eq!(look("cuLaunchHostFunc", 13000, 0).1, exported(c"cuLaunchHostFunc"));
    assert!(exported(c"cuLaunchHostFunc_v2").is_null(), "of 13.1");

    let look: GetProcAddressV1 = unsafe { std::mem::transmute(soft.resolve(c"cuGetProcAddress")) };
    let mut function = poison;
    assert_eq!(unsafe { look(c"cuNothing".as_ptr().cast(), &mut function, 13000, 0) }, 500);
    assert_eq!(unsafe { look(c"cuStreamGetId".as_ptr().cast(), &mut function, 11080, 0) }, 500);
    assert_eq!(function, poison);
    assert_eq!(unsafe { look(c"cuStreamGetId".as_ptr().cast(), &mut function, 12000, 0) }, 0);
    assert_eq!(function, exported(c"cuStreamGetId"));
}

#[test]
fn what_is_not_of_this_driver_answers_so() {
    own_process!();
    let raw = Raw::with(SoftDriver::builder().version(13, 5));
    let load: unsafe extern "C" fn(*mut c_void, *const u8) -> u32 =
        unsafe { std::mem::transmute(raw.soft.resolve(c"cuModuleLoad")) };
    assert_eq!(unsafe { load(null_mut(), c"x".as_ptr().cast()) }, NOT_SUPPORTED);
    assert_eq!(unsafe { raw.cuStreamEndCaptureToCig.unwrap()(null_mut()) }.0, NOT_SUPPORTED);
}

/// Whatever has no body tells the log its own name, be it of a list or only bound by `cuda-events`.
#[test]
fn what_has_no_body_is_called_by_its_name() {
    own_process!();
    let raw = Raw::with(SoftDriver::builder().version(13, 5).log(1));
    let without: Vec<_> = EXPORTS.iter().filter(|export| !export.supported).collect();
    assert!(without.len() > 100, "{} exports without a body", without.len());
    for export in without {
        let address = raw.soft.resolve(&CString::new(export.name).unwrap());
        let call: unsafe extern "C" fn() -> u32 = unsafe { std::mem::transmute(address) };
        assert_eq!(unsafe { call() }, NOT_SUPPORTED, "{}", export.name);
        let last = raw.soft.log().last().unwrap().to_string();
        assert!(
            last.contains(&format!("{}() = {NOT_SUPPORTED}", export.name)),
            "{}: {last}",
            export.name
        );
    }
}

#[test]
fn older_drivers_export_less() {
    let old = SoftDriver::builder().version(11, 0).build();
    assert!(old.resolve(c"cuGetProcAddress").is_null());
    assert!(!old.resolve(c"cuEventRecord_ptsz").is_null());
    assert!(old.resolve(c"cuEventRecordWithFlags").is_null());
    let middle = SoftDriver::builder().version(11, 4).build();
    assert!(!middle.resolve(c"cuGetProcAddress").is_null());
    assert!(middle.resolve(c"cuGetProcAddress_v2").is_null());
    for (major, minor) in [(11, 0), (11, 4), (11, 8), (12, 0), (12, 4), (12, 8), (13, 0), (13, 5)] {
        let soft = SoftDriver::builder().version(major, minor).build();
        let driver = soft.driver();
        assert_eq!(driver.version().to_string(), format!("{major}.{minor}"));
        assert_eq!(driver.symbols().cuEventElapsedTime_v2.is_some(), (major, minor) >= (12, 8));
        assert_eq!(driver.symbols().cuLaunchHostFunc_v2.is_some(), (major, minor) >= (13, 1));
    }
}

/// A line of a list, as `file:line`.
fn line(file: &str, text: &str, start: &str) -> String {
    let at = text.lines().position(|line| line.contains(start));
    at.map_or(file.to_owned(), |at| format!("{file}:{}", at + 1))
}

#[test]
fn everything_that_cuda_events_binds_is_exported() {
    const SUPPORTED: &str = include_str!("../../src/front/exports.rs");
    const FOREIGN: &str = include_str!("../../src/front/foreign.rs");
    let soft = SoftDriver::builder().version(13, 5).build();
    for entry in ENTRY_POINTS {
        let name = entry.function.name();
        let twin = entry.per_thread_version.map(|version| (format!("{name}_ptsz"), version));
        for (name, version) in [(name.to_owned(), entry.version)].into_iter().chain(twin) {
            let listed = |text, file| line(file, text, &format!(" {} ", entry.function));
            let supported = listed(SUPPORTED, "crates/soft-driver/src/front/exports.rs");
            let list = if supported.contains(':') {
                supported
            } else {
                listed(FOREIGN, "crates/soft-driver/src/front/foreign.rs")
            };
            let export = EXPORTS.iter().find(|export| export.name == name);
            let export = export.unwrap_or_else(|| {
                panic!("{list} has {} and lacks {name}: add it", entry.function)
            });
            assert_eq!(export.base(), entry.base);
            let listed = cuda_events::Version::from_raw(export.version as u32);
            assert_eq!(
                listed, version,
                "{list} says that {name} came with {listed}, wrapper.h with {version}"
            );
            let found = soft.resolve(&CString::new(name.as_str()).unwrap());
            assert!(
                !found.is_null(),
                "{name} is of {version}: raise VERSIONS in crates/soft-driver/src/api/builder.rs"
            );
        }
    }
}

#[test]
fn what_is_known_of_an_address() {
    type Get = unsafe extern "C" fn(*mut c_void, u32, u64) -> CUresult;
    type GetAll = unsafe extern "C" fn(u32, *mut u32, *mut *mut c_void, u64) -> CUresult;
    let raw = Raw::new();
    unsafe {
        let get: Get = std::mem::transmute(raw.soft.resolve(c"cuPointerGetAttribute"));
        let get_all: GetAll = std::mem::transmute(raw.soft.resolve(c"cuPointerGetAttributes"));
        let (mut device, mut host) = (0, null_mut());
        assert_eq!((raw.cuMemAlloc_v2)(&mut device, 100).0, OK);
        assert_eq!((raw.cuMemHostAlloc)(&mut host, 100, 0).0, OK);
        let mut kind = 9_u32;
        assert_eq!(get((&raw mut kind).cast(), 2, device + 5).0, OK);
        assert_eq!(kind, 2);
        assert_eq!(get((&raw mut kind).cast(), 2, host.addr() as u64).0, OK);
        assert_eq!(kind, 1);
        let mut size = 0_usize;
        assert_eq!(get((&raw mut size).cast(), 12, device).0, OK);
        assert_eq!(size, 100);
        assert_eq!(get((&raw mut kind).cast(), 2, device + 100).0, INVALID_VALUE, "nobody's");
        assert_eq!(get((&raw mut kind).cast(), 99, device).0, INVALID_VALUE);
        let mut ordinal = 7_i32;
        let mut which = [2, 9];
        let mut places: [*mut c_void; 2] = [(&raw mut kind).cast(), (&raw mut ordinal).cast()];
        assert_eq!(get_all(2, which.as_mut_ptr(), places.as_mut_ptr(), 0x1000).0, OK);
        assert_eq!((kind, ordinal), (0, -2));
    }
}

#[test]
fn the_lookup_of_programs_with_per_thread_streams() {
    let soft = SoftDriver::new();
    let look: GetProcAddress =
        unsafe { std::mem::transmute(soft.resolve(c"cuGetProcAddress_v2_ptsz")) };
    let mut function = null_mut();
    let mut status = 9;
    assert_eq!(
        unsafe { look(c"cuEventRecord".as_ptr().cast(), &mut function, 13000, 0, &mut status) },
        0
    );
    assert_eq!(function, soft.resolve(c"cuEventRecord_ptsz"));
    assert_eq!(
        unsafe { look(c"cuEventRecord".as_ptr().cast(), &mut function, 13000, 1, &mut status) },
        0
    );
    assert_eq!(function, soft.resolve(c"cuEventRecord"));
}
