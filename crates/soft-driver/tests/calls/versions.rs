//! What `without` takes away, and what is found instead: nothing. An older function has other
//! arguments.

use std::ffi::{CString, c_void};
use std::sync::Arc;

use cuda_events::capture::{Capture, CaptureMode, DependencyUpdate};
use cuda_events::{Context, Device, Driver, Event, EventFlags, Stream, StreamOptions};
use cuda_soft_driver::exports::{EXPORTS, NEWEST};
use cuda_soft_driver::{Export, SoftDriver};

type GetProcAddress = unsafe extern "C" fn(*const u8, *mut *mut c_void, i32, u64, *mut u32) -> u32;
type GetProcAddressV1 = unsafe extern "C" fn(*const u8, *mut *mut c_void, i32, u64) -> u32;

const SUCCESS: u32 = 0;
const NOT_FOUND: u32 = 500;
const NO_SUCH_NAME: u32 = 1;
const TOO_OLD: u32 = 2;

/// All functions of one base name, oldest first: plain ones, or per-thread twins.
fn family(base: &str, per_thread: bool) -> Vec<&'static Export> {
    let unlisted = "cuGetProcAddress_v2_ptsz";
    let is_of_family = |export: &&Export| {
        export.base() == base && export.per_thread == per_thread && export.name != unlisted
    };
    let mut family: Vec<_> = EXPORTS.iter().filter(is_of_family).collect();
    family.sort_by_key(|export| export.version);
    family
}

/// The address and status that the lookup of five arguments gives, and the code of that of four.
fn look(soft: &SoftDriver, base: &str, version: i32, flags: u64) -> (*mut c_void, u32, u32) {
    let name = CString::new(base).unwrap();
    let (mut function, mut older, mut status) = (std::ptr::null_mut(), std::ptr::null_mut(), 77);
    let five = soft.resolve(c"cuGetProcAddress_v2");
    let four = soft.resolve(c"cuGetProcAddress");
    assert!(!five.is_null() && !four.is_null());
    let (code, older_code) = unsafe {
        let five: GetProcAddress = std::mem::transmute(five);
        let four: GetProcAddressV1 = std::mem::transmute(four);
        let code = five(name.as_ptr().cast(), &mut function, version, flags, &mut status);
        (code, four(name.as_ptr().cast(), &mut older, version, flags))
    };
    assert_eq!(code, SUCCESS, "{base} at {version}");
    assert_eq!(function, older, "{base} at {version}: both forms find the same");
    assert_eq!(
        older_code,
        if function.is_null() { NOT_FOUND } else { SUCCESS },
        "{base} at {version}"
    );
    (function, status, older_code)
}

#[test]
fn what_is_left_out_is_replaced_by_nothing() {
    const VERSION: i32 = (NEWEST.0 * 1000 + NEWEST.1 * 10) as i32;
    let mut pairs = 0;
    for left_out in EXPORTS.iter().filter(|export| !export.name.starts_with("cuGetProcAddress")) {
        let family = family(left_out.base(), left_out.per_thread);
        if family.len() == 1 && family[0].supported {
            // One such name is as good as another; this is about pairs, and about twins.
            if !left_out.per_thread {
                continue;
            }
        }
        pairs += usize::from(family.len() > 1);
        let soft = SoftDriver::builder().version(NEWEST.0, NEWEST.1).without(left_out.name).build();
        let flags = if left_out.per_thread { 2 } else { 0 };
        let others = EXPORTS
            .iter()
            .any(|export| export.base() == left_out.base() && export.name != left_out.name);
        let name = CString::new(left_out.name).unwrap();
        assert!(soft.resolve(&name).is_null(), "{} is exported", left_out.name);
        // At each version at which the answer may change, just below it, and at the driver's own.
        let versions =
            family.iter().flat_map(|export| [export.version - 1, export.version]).chain([VERSION]);
        for version in versions {
            let (function, status, _) = look(&soft, left_out.base(), version, flags);
            let meant = family.iter().rfind(|export| export.version <= version);
            let expected = match meant {
                Some(meant) if meant.name != left_out.name => {
                    (soft.resolve(&CString::new(meant.name).unwrap()), SUCCESS)
                }
                Some(_) => (std::ptr::null_mut(), NO_SUCH_NAME),
                None => (std::ptr::null_mut(), if others { TOO_OLD } else { NO_SUCH_NAME }),
            };
            assert_eq!(
                (function, status),
                expected,
                "{} at {version} without {}",
                left_out.base(),
                left_out.name
            );
        }
    }
    assert!(pairs > 40, "{pairs} functions with other versions");
}

/// The same through the library: it finds the older function under its own name, and calls that
/// with its own arguments.
fn updates_dependencies(driver: Driver) {
    let context = Context::primary(Device::new(driver, 0).unwrap()).unwrap();
    let stream = Stream::new(&context, StreamOptions::new()).unwrap();
    let event = Arc::new(Event::new(&context, EventFlags::empty()).unwrap());
    // SAFETY: this thread is the only one.
    let capture = unsafe { Capture::begin(&stream, CaptureMode::Relaxed) }.unwrap();
    stream.record_external(&event).unwrap();
    // SAFETY: as above.
    let dependencies = unsafe { capture.dependencies(&stream) }.unwrap();
    assert_eq!(dependencies.len(), 1);
    capture.update_dependencies(&stream, &[], DependencyUpdate::Set).unwrap();
    // SAFETY: as above.
    assert_eq!(unsafe { capture.dependencies(&stream) }.unwrap(), []);
    capture.update_dependencies(&stream, &dependencies, DependencyUpdate::Add).unwrap();
    // SAFETY: as above.
    assert_eq!(unsafe { capture.dependencies(&stream) }.unwrap(), dependencies);
    capture.end().unwrap();
}

#[test]
fn the_older_function_is_called_as_the_older_one() {
    for version in [(12, 3), (12, 4), (13, 0), NEWEST] {
        let builder = SoftDriver::builder().version(version.0, version.1).log(1000);
        let soft = builder
            .without("cuStreamUpdateCaptureDependencies_v2")
            .without("cuStreamGetCaptureInfo_v3")
            .build();
        let driver = soft.driver();
        assert!(driver.symbols().cuStreamUpdateCaptureDependencies_v2.is_none());
        assert!(driver.symbols().cuStreamGetCaptureInfo_v3.is_none());
        updates_dependencies(driver);
        let called = |name: &str| soft.log().iter().filter(|call| call.function == name).count();
        assert_eq!(called("cuStreamUpdateCaptureDependencies"), 2);
        assert_eq!(
            called("cuStreamUpdateCaptureDependencies_v2") + called("cuStreamGetCaptureInfo_v3"),
            0
        );
        soft.assert_no_leaks();
    }
}
