//! Semaphores by handles of Windows: what is refused, and what the driver is given.
//!
//! The software driver has no such semaphores, so a function of this file stands for a driver that
//! imports one.

use crate::common::{self, table};

use std::cell::RefCell;
use std::ffi::c_void;
use std::fs::File;
use std::os::windows::io::{AsHandle as _, AsRawHandle as _, BorrowedHandle};
use std::ptr::{null_mut, without_provenance_mut};

use common::counting::{calls, counting, fail_next};
use cuda_events::external::{BinarySemaphore, TimelineSemaphore};
use cuda_events::sys::{
    CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC, CUexternalSemaphore, CUexternalSemaphoreHandleType,
    CUresult, Function,
};
use cuda_events::{Context, Device, Driver, Error, Result, Version};
use cuda_soft_driver::SoftDriver;

const IMPORT: Function = Function::cuImportExternalSemaphore;

type Kind = CUexternalSemaphoreHandleType;

/// Imports a handle in a context, of a semaphore of the device.
type Import = fn(&Context, BorrowedHandle<'_>, Names) -> Result<CUexternalSemaphore>;

/// The names of a device.
#[derive(Clone, Copy)]
struct Names {
    uuid: [u8; 16],
    luid: [u8; 8],
}

/// Each import, with its type of handle. The semaphore is destroyed before the return.
const IMPORTS: [(Kind, Import); 3] = [
    (Kind::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_WIN32, |context, handle, names| {
        let uuid = cuda_events::Uuid::from_bytes(names.uuid);
        // SAFETY: no driver that imports it looks at the handle, here and below.
        unsafe { BinarySemaphore::import_win32(context, handle, uuid) }.map(|it| it.as_raw())
    }),
    (Kind::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_WIN32, |context, handle, names| {
        let uuid = cuda_events::Uuid::from_bytes(names.uuid);
        // SAFETY: as above.
        unsafe { TimelineSemaphore::import_win32(context, handle, uuid) }.map(|it| it.as_raw())
    }),
    (Kind::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_D3D12_FENCE, |context, handle, names| {
        // SAFETY: as above.
        unsafe { TimelineSemaphore::import_d3d12_fence(context, handle, names.luid) }
            .map(|it| it.as_raw())
    }),
];

fn context(driver: Driver, ordinal: u32) -> Context {
    Device::new(driver, ordinal).and_then(Context::primary).expect("the primary context")
}

fn names(context: &Context) -> Names {
    let device = context.device();
    let uuid = *device.uuid().expect("the device has one").as_bytes();
    let (mut luid, mut nodes) = ([0; 8], 0);
    let get = device.driver().symbols().cuDeviceGetLuid.expect("the driver has it");
    // SAFETY: places for the eight bytes and for the mask.
    let code = unsafe { get(luid.as_mut_ptr().cast(), &mut nodes, device.as_raw()) };
    assert_eq!((code, nodes), (CUresult::CUDA_SUCCESS, 1));
    Names { uuid, luid }
}

/// A handle that is open, and that is no semaphore.
fn file() -> File {
    File::open(std::env::current_exe().expect("this program")).expect("it can be read")
}

#[test]
fn no_handle_is_refused() {
    let soft = SoftDriver::new();
    let context = context(counting(soft.driver()), 0);
    let names = names(&context);
    for (_, import) in IMPORTS {
        // No handle, and the one that stands for this process.
        for raw in [null_mut(), without_provenance_mut(usize::MAX)] {
            // SAFETY: nobody uses it.
            let handle = unsafe { BorrowedHandle::borrow_raw(raw) };
            let (refused, made) = calls(|| import(&context, handle, names));
            assert_eq!(refused, Err(Error::NotASemaphore { function: IMPORT, code: None }));
            assert_eq!(made, [], "the driver is not asked");
        }
    }
}

#[test]
fn another_device_is_refused() {
    let soft = SoftDriver::builder().devices(2).build();
    let driver = counting(soft.driver());
    let (first, second) = (context(driver, 0), context(driver, 1));
    let file = file();
    let none = Names { uuid: [0xA5; 16], luid: [0xA5; 8] };
    for (_, import) in IMPORTS {
        for (there, names, semaphore, ordinal) in [
            (&first, names(&second), Some(1), 0),
            (&second, names(&first), Some(0), 1),
            (&first, none, None, 0),
        ] {
            let (refused, made) = calls(|| import(there, file.as_handle(), names));
            let (function, context) = (IMPORT, ordinal);
            assert_eq!(
                refused,
                Err(Error::SemaphoreOfOtherDevice { function, semaphore, context })
            );
            assert!(!made.contains(&IMPORT), "the driver is not asked: {made:?}");
        }
    }
}

#[test]
fn another_handle_is_refused() {
    let soft = SoftDriver::new();
    let context = context(soft.driver(), 0);
    let file = file();
    for (kind, import) in IMPORTS {
        let refused = import(&context, file.as_handle(), names(&context));
        let error = refused.expect_err("it is no semaphore");
        let code = Some(CUresult::CUDA_ERROR_INVALID_VALUE);
        assert_eq!(error, Error::NotASemaphore { function: IMPORT, code }, "{kind:?}");
        file.metadata().expect("it is open, and the caller's");
    }
}

#[test]
fn imports_are_unsupported_on_older_drivers() {
    let file = file();
    let soft = SoftDriver::builder().version(11, 1).build();
    let old = context(soft.driver(), 0);
    for (kind, import) in IMPORTS {
        let error = import(&old, file.as_handle(), names(&old)).expect_err("it is no semaphore");
        let is_timeline = kind == Kind::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_WIN32;
        let (function, since, driver) = (IMPORT, Version::new(11, 2), Version::new(11, 1));
        match error {
            Error::NotASemaphore { .. } => assert!(!is_timeline, "{error}"),
            error => assert_eq!(error, Error::Unsupported { function, since, driver }),
        }
    }
    // A driver that cannot name the device to Windows, and one that fails to.
    let soft = SoftDriver::new();
    let (_, import) = IMPORTS[2];
    let function = Function::cuDeviceGetLuid;
    let whole = context(counting(soft.driver()), 0);
    let names = names(&whole);
    let none = context(table::hiding(soft.driver(), &[function]), 0);
    let error = import(&none, file.as_handle(), names).expect_err("it is not there");
    assert!(matches!(error, Error::Unsupported { function: it, .. } if it == function), "{error}");
    let code = CUresult::CUDA_ERROR_NOT_SUPPORTED;
    fail_next(function, code);
    let refused = import(&whole, file.as_handle(), names);
    assert_eq!(refused, Err(Error::Driver { function, code }));
}

thread_local! {
    /// The descriptions of imports, and what was destroyed.
    static IMPORTED: RefCell<Vec<(Kind, usize)>> = const { RefCell::new(Vec::new()) };
    static DESTROYED: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

const HANDLE: usize = 0x5e4a;

unsafe extern "C" fn import_any(
    semaphore: *mut CUexternalSemaphore,
    description: *const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC,
) -> CUresult {
    // SAFETY: the crate gives a place and a description, of a handle of Windows.
    unsafe {
        let CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC { type_, handle, flags, reserved, .. } =
            *description;
        assert_eq!((flags, reserved, handle.win32.name.is_null()), (0, [0; 16], true));
        IMPORTED.with_borrow_mut(|all| all.push((type_, handle.win32.handle.addr())));
        semaphore.write(without_provenance_mut(HANDLE));
    }
    CUresult::CUDA_SUCCESS
}

unsafe extern "C" fn destroy_any(semaphore: CUexternalSemaphore) -> CUresult {
    DESTROYED.with_borrow_mut(|all| all.push(semaphore.addr()));
    CUresult::CUDA_SUCCESS
}

#[test]
fn the_driver_is_given_the_handle() {
    let soft = SoftDriver::new();
    let import = import_any as unsafe extern "C" fn(_, _) -> _ as *mut c_void;
    let destroy = destroy_any as unsafe extern "C" fn(_) -> _ as *mut c_void;
    let driver = table::replaced(soft.driver(), |function| match function {
        Function::cuImportExternalSemaphore => Some(import),
        Function::cuDestroyExternalSemaphore => Some(destroy),
        _ => None,
    });
    let context = context(driver, 0);
    let file = file();
    for (kind, import) in IMPORTS {
        let imported = import(&context, file.as_handle(), names(&context));
        assert_eq!(imported, Ok(without_provenance_mut(HANDLE)));
        assert_eq!(IMPORTED.take(), [(kind, file.as_raw_handle().addr())]);
        assert_eq!(DESTROYED.take(), [HANDLE]);
        file.metadata().expect("it is open, and the caller's");
    }
}
