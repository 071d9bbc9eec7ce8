//! What is exported, and what is found by name and version.

use crate::common;

use std::ffi::{CString, c_void};
use std::ptr::null_mut;

use common::*;
use cuda_events::sys::*;
use cuda_events_test_support::own_process;
use cuda_soft_driver::SoftDriver;
use cuda_soft_driver::exports::{EXPORTS, NEWEST};

type GetProcAddress = unsafe extern "C" fn(*const u8, *mut *mut c_void, i32, u64, *mut u32) -> u32;

#[test]
fn what_is_not_of_this_driver_answers_so() {
    own_process!();
    let raw = Raw::with(SoftDriver::builder().version(NEWEST.0, NEWEST.1));
    let import = raw.cuImportExternalMemory.unwrap();
    assert_eq!(unsafe { import(null_mut(), null_mut()) }.0, NOT_SUPPORTED);
    assert_eq!(unsafe { raw.cuStreamEndCaptureToCig.unwrap()(null_mut()) }.0, NOT_SUPPORTED);
}

/// Whatever has no body tells the log its own name, be it of a list or only bound by `cuda-events`.
#[test]
fn what_has_no_body_is_called_by_its_name() {
    own_process!();
    let raw = Raw::with(SoftDriver::builder().version(NEWEST.0, NEWEST.1).log(1));
    let without: Vec<_> = EXPORTS.iter().filter(|export| !export.supported).collect();
    assert!(without.len() > 10, "{} exports without a body", without.len());
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
    for (major, minor) in [(11, 0), (11, 4), (11, 8), (12, 0), (12, 4), (12, 8), (13, 0), NEWEST] {
        let soft = SoftDriver::builder().version(major, minor).build();
        let driver = soft.driver();
        assert_eq!(driver.version().to_string(), format!("{major}.{minor}"));
        assert_eq!(driver.symbols().cuEventElapsedTime_v2.is_some(), (major, minor) >= (12, 8));
        assert_eq!(driver.symbols().cuLaunchHostFunc_v2.is_some(), (major, minor) >= (13, 1));
    }
}

#[test]
fn everything_that_cuda_events_binds_is_exported() {
    const LIST: &str = "src/sys/exports.rs of cuda-events";
    let soft = SoftDriver::builder().version(NEWEST.0, NEWEST.1).build();
    for entry in ENTRY_POINTS {
        let name = entry.function.name();
        let twin = entry.per_thread_version.map(|version| (format!("{name}_ptsz"), version));
        for (name, version) in [(name.to_owned(), entry.version)].into_iter().chain(twin) {
            let export = EXPORTS.iter().find(|export| export.name == name);
            let export = export.unwrap_or_else(|| {
                panic!("{LIST} has {} and lacks {name}: add it", entry.function)
            });
            assert_eq!(export.base(), entry.base);
            let listed = cuda_events::Version::from_raw(export.version as u32);
            assert_eq!(
                listed, version,
                "{LIST} says that {name} came with {listed}, wrapper.h with {version}"
            );
            let found = soft.resolve(&CString::new(name.as_str()).unwrap());
            assert!(!found.is_null(), "{name} is of {version}: raise NEWEST");
        }
    }
    let newest = cuda_events::sys::more::NEWEST;
    assert_eq!((newest.major(), newest.minor()), NEWEST, "{LIST} and src/front/exports.rs");
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

/// Of several faults that strike at a call the first decides, and each counts all of its calls.
#[test]
fn the_first_of_several_faults_decides() {
    let raw = Raw::new();
    let create = || {
        let mut event = null_mut();
        unsafe { (raw.cuEventCreate)(&mut event, 0) }.0
    };
    let on = || cuda_soft_driver::Fault::on("cuEventCreate");
    let code = cuda_soft_driver::abi::CUresult;
    raw.soft.inject(on().nth(2).answer(code(2)));
    raw.soft.inject(on().every(2).answer(code(3)));
    assert_eq!([(); 4].map(|()| create()), [OK, 2, OK, 3]);
    assert_eq!(raw.soft.injected(), 2);
}

/// A program that takes the place of this one, or a child, has none of the driver's files.
#[cfg(target_os = "linux")]
#[test]
fn no_file_of_the_driver_is_inherited() {
    use cuda_events_test_support::pools::{Pool, alloc_from, allocation, create, props};
    use cuda_soft_driver::abi::CUmemAllocationProp;
    own_process!();
    let flags = |file: i32| unsafe { libc::fcntl(file, libc::F_GETFD) };
    let files = || -> Vec<i32> {
        let all = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
        let mut all: Vec<i32> =
            all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
        // One was that of the list itself.
        all.retain(|file| flags(*file) != -1);
        all
    };
    let before = files();
    let raw = Raw::with(SoftDriver::builder().version(13, 0));
    // Memory that is mapped, pools and events of which other processes may have handles, and a
    // semaphore of both.
    let (mut memory, mut address) = (0_u64, 0_u64);
    let bytes = 2 << 20_usize;
    let made = [
        call!(raw, cuMemCreate(&mut memory => *mut u64, bytes => usize,
            &allocation() => *const CUmemAllocationProp, 0 => u64)),
        call!(raw, cuMemAddressReserve(&mut address => *mut u64, bytes => usize, 0 => usize,
            0 => u64, 0 => u64)),
        call!(raw, cuMemMap(address => u64, bytes => usize, 0 => usize, memory => u64, 0 => u64)),
    ];
    assert_eq!(made, [OK; 3]);
    // It is mapped, and not allocated.
    let pointer = std::ptr::with_exposed_provenance_mut(address as usize);
    let freed = unsafe { [(raw.cuMemFree_v2)(address).0, (raw.cuMemFreeHost)(pointer).0] };
    assert_eq!(freed, [INVALID_VALUE; 2]);
    let pool: Pool = create(&raw, &props(1)).expect("a pool");
    let block = alloc_from(&raw, 64, pool, legacy()).expect("memory");
    let (mut exported, mut data) = (-1_i32, [0_u64; 8]);
    let made = [
        call!(raw, cuMemPoolExportToShareableHandle(&mut exported => *mut i32, pool => Pool,
            1 => u32, 0 => u64)),
        call!(raw, cuMemPoolExportPointer(&mut data => *mut [u64; 8], block => u64)),
    ];
    assert_eq!(made, [OK; 2]);
    let event = raw.event(CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING);
    let mut of_event = CUipcEventHandle::default();
    let mut of_memory = [0_u8; 64];
    let mut plain = 0;
    unsafe {
        assert_eq!((raw.cuIpcGetEventHandle)(&mut of_event, event).0, OK);
        assert_eq!((raw.cuMemAlloc_v2)(&mut plain, 4096).0, OK);
    }
    let code = call!(raw, cuIpcGetMemHandle(of_memory.as_mut_ptr() => *mut u8, plain => u64));
    assert_eq!(code, OK);
    let opened: Vec<i32> = files().into_iter().filter(|file| !before.contains(file)).collect();
    assert!(opened.len() > 5, "{opened:?}");
    for file in opened {
        let name = std::fs::read_link(format!("/proc/self/fd/{file}"));
        assert!(flags(file) & libc::FD_CLOEXEC != 0, "{file}: {name:?}");
    }
}
