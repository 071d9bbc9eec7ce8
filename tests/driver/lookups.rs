//! How entry points are asked for: by name and version, in each of the driver's ways. A
//! cuGetProcAddress of the tests' own stands in front of the driver's.

use crate::common;

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::null_mut;

use common::{TestDriver, load};
use cuda_events::loader::LoadFailure;
use cuda_events::sys::*;
use cuda_events::{Driver, Error, LoadOptions};
use cuda_soft_driver::SoftDriver;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    WithStatus,
    WithoutStatus,
    Exports,
}

/// How the lookup of one name goes wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Spoiled {
    /// Success, and NULL.
    SuccessWithNull,
    /// An error code, and the place for the address left as it was.
    ErrorAndUntouched,
    /// An error code, and an address all the same.
    ErrorWithAddress,
    /// Success with the status "version not sufficient", and an address all the same.
    StatusWithAddress,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Asked {
    base: String,
    version: c_int,
    flags: u64,
}

thread_local! {
    static REAL: Cell<Option<Driver>> = const { Cell::new(None) };
    static ASKED: RefCell<Vec<Asked>> = const { RefCell::new(Vec::new()) };
    static SPOILED: Cell<Option<(&'static CStr, Spoiled)>> = const { Cell::new(None) };
}

extern "C" fn lookup_with_status(
    name: *const c_char,
    address: *mut *mut c_void,
    version: c_int,
    flags: u64,
    status: *mut CUdriverProcAddressQueryResult,
) -> CUresult {
    let real = REAL
        .get()
        .expect("set before loading")
        .symbols()
        .cuGetProcAddress_v2
        .expect("a driver of 12.0");
    answer(name, address, version, flags, || {
        // SAFETY: what the loader passed, passed on; it has a place for the status.
        unsafe {
            let code = real(name, address, version, flags, status);
            if let Some((_, Spoiled::StatusWithAddress)) = spoiled(name) {
                status.write(
                    CUdriverProcAddressQueryResult::CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT,
                );
            }
            code
        }
    })
}

extern "C" fn lookup_without_status(
    name: *const c_char,
    address: *mut *mut c_void,
    version: c_int,
    flags: u64,
) -> CUresult {
    let real = REAL
        .get()
        .expect("set before loading")
        .symbols()
        .cuGetProcAddress
        .expect("a driver of 11.3");
    // SAFETY: what the loader passed, passed on.
    answer(name, address, version, flags, || unsafe { real(name, address, version, flags) })
}

/// Whether the test wants the lookup of this name to go wrong.
fn spoiled(name: *const c_char) -> Option<(&'static CStr, Spoiled)> {
    // SAFETY: the loader passes a C string.
    let name = unsafe { CStr::from_ptr(name.cast()) };
    SPOILED.get().filter(|(spoiled, _)| *spoiled == name)
}

/// Writes down what was asked, and answers as the driver does or as the test wants it.
fn answer(
    name: *const c_char,
    address: *mut *mut c_void,
    version: c_int,
    flags: u64,
    ask: impl FnOnce() -> CUresult,
) -> CUresult {
    // SAFETY: the loader passes a C string.
    let base = unsafe { CStr::from_ptr(name.cast()) }.to_str().expect("an ASCII name").to_owned();
    ASKED.with_borrow_mut(|asked| asked.push(Asked { base, version, flags }));
    match spoiled(name).map(|(_, spoiled)| spoiled) {
        None | Some(Spoiled::StatusWithAddress) => ask(),
        Some(Spoiled::SuccessWithNull) => {
            // SAFETY: the loader passes a place for the address.
            unsafe { address.write(null_mut()) };
            CUresult::CUDA_SUCCESS
        }
        Some(Spoiled::ErrorAndUntouched) => CUresult::CUDA_ERROR_NOT_FOUND,
        Some(Spoiled::ErrorWithAddress) => {
            ask();
            CUresult::CUDA_ERROR_NOT_FOUND
        }
    }
}

/// Loads through one way of lookup, and tells what was asked of cuGetProcAddress.
fn load_by(
    way: Way,
    real: Driver,
    soft: Option<&SoftDriver>,
    options: &LoadOptions,
) -> (Result<Driver, Error>, Vec<Asked>) {
    // What dlsym finds, not what the table holds: the per-thread twins are in it too.
    let library = driver_library(real);
    let export = |name: &CStr| match (soft, &library) {
        (Some(soft), _) => soft.resolve(name),
        (None, Some(library)) => {
            // SAFETY: the symbol is only taken as an address.
            unsafe { library.get::<*mut c_void>(name) }.map_or(null_mut(), |symbol| *symbol)
        }
        (None, None) => unreachable!("a driver is in the process or in a library"),
    };
    let mut resolve = |name: &CStr| match (name.to_bytes(), way) {
        (b"cuGetProcAddress_v2", Way::WithStatus) => lookup_with_status as *mut c_void,
        (b"cuGetProcAddress", Way::WithoutStatus) => lookup_without_status as *mut c_void,
        (b"cuGetProcAddress_v2" | b"cuGetProcAddress", _) => null_mut(),
        _ => export(name),
    };
    REAL.set(Some(real));
    ASKED.take();
    // SAFETY: the driver's own functions by their exported names, and two of this test with the
    // same types.
    let driver = unsafe { Driver::from_resolver(&mut resolve, options) };
    (driver, ASKED.take())
}

/// The library of a driver that has one. It is open already, and stays so.
fn driver_library(driver: Driver) -> Option<libloading::Library> {
    // SAFETY: the library was initialised when the driver was loaded.
    driver
        .library()
        .map(|library| unsafe { libloading::Library::new(library) }.expect("it is open already"))
}

#[test]
fn each_entry_point_is_asked_for_at_its_own_version() {
    let (real, soft) = load(&LoadOptions::new());
    if !common::needs(real, Function::cuGetProcAddress_v2) {
        return;
    }
    for way in [Way::WithStatus, Way::WithoutStatus] {
        for per_thread in [false, true] {
            let options = LoadOptions::new().per_thread_default_stream(per_thread);
            let (driver, asked) = load_by(way, real, soft.as_ref(), &options);
            driver.unwrap_or_else(|error| panic!("{way:?}, {per_thread}: {error}"));
            let expected: Vec<_> = ENTRY_POINTS
                .iter()
                .map(|entry| {
                    let twin = entry.per_thread_version.filter(|_| per_thread);
                    let (version, flags) = twin.map_or((entry.version, 1), |twin| (twin, 2));
                    Asked { base: entry.base.to_owned(), version: version.as_raw() as c_int, flags }
                })
                .filter(|asked| asked.version <= real.version().as_raw() as c_int)
                .collect();
            assert_eq!(asked, expected, "{way:?}, {per_thread}");
        }
    }
}

/// What the list says of versions is so: at its own an entry point is another function than just
/// below it.
#[test]
fn each_entry_point_came_with_its_version() {
    let (real, _soft) = load(&LoadOptions::new());
    let Some(look) = real.symbols().cuGetProcAddress_v2 else {
        common::needs(real, Function::cuGetProcAddress_v2);
        return;
    };
    let ask = |base: &str, version: c_int, flags| {
        let name = std::ffi::CString::new(base).expect("a name");
        let (mut address, mut status) =
            (null_mut(), CUdriverProcAddressQueryResult::CU_GET_PROC_ADDRESS_SUCCESS);
        // SAFETY: a C string, and places for the two results.
        unsafe { look(name.as_ptr(), &mut address, version, flags, &mut status) };
        address
    };
    for entry in ENTRY_POINTS {
        for (version, flags) in [(Some(entry.version), 1), (entry.per_thread_version, 2)] {
            let Some(version) = version.filter(|version| *version <= real.version()) else {
                continue;
            };
            let version = version.as_raw() as c_int;
            let (at, below) =
                (ask(entry.base, version, flags), ask(entry.base, version - 1, flags));
            let typedef = format!(
                "wrapper.h has PFN_{}_v{version}, looked up with flags {flags}",
                entry.base
            );
            assert!(!at.is_null(), "{typedef}: the driver has none at that version");
            assert_ne!(at, below, "{typedef}: the driver has the same one before that version");
        }
    }
}

#[test]
fn all_ways_of_lookup_give_the_same_table() {
    let (real, soft) = load(&LoadOptions::new());
    if !common::needs(real, Function::cuGetProcAddress_v2) {
        return;
    }
    for per_thread in [false, true] {
        let options = LoadOptions::new().per_thread_default_stream(per_thread);
        let table = |way| {
            let (driver, asked) = load_by(way, real, soft.as_ref(), &options);
            assert_eq!(asked.is_empty(), way == Way::Exports);
            driver.unwrap_or_else(|error| panic!("{way:?}: {error}"))
        };
        let reference = table(Way::WithStatus);
        assert_eq!(reference.is_per_thread_default_stream(), per_thread);
        for way in [Way::WithoutStatus, Way::Exports] {
            let driver = table(way);
            for entry in ENTRY_POINTS {
                let addresses =
                    [reference, driver].map(|driver| driver.symbols().address(entry.function));
                // These two are the tests' own, or hidden.
                if entry.base == "cuGetProcAddress" {
                    continue;
                }
                // A library may export another function than the one that its lookup gives.
                if TestDriver::chosen() == TestDriver::Soft {
                    assert_eq!(addresses[0], addresses[1], "{way:?}, {per_thread}: {entry:?}");
                } else {
                    assert_eq!(
                        addresses[0].is_null(),
                        addresses[1].is_null(),
                        "{way:?}, {per_thread}: {entry:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_lookup_in_vain_is_a_missing_entry_point() {
    let (real, soft) = load(&LoadOptions::new());
    if !common::needs(real, Function::cuGetProcAddress_v2) {
        return;
    }
    for (way, spoiled) in [
        (Way::WithStatus, Spoiled::SuccessWithNull),
        (Way::WithStatus, Spoiled::ErrorAndUntouched),
        (Way::WithStatus, Spoiled::ErrorWithAddress),
        (Way::WithStatus, Spoiled::StatusWithAddress),
        (Way::WithoutStatus, Spoiled::SuccessWithNull),
        (Way::WithoutStatus, Spoiled::ErrorAndUntouched),
        (Way::WithoutStatus, Spoiled::ErrorWithAddress),
    ] {
        let options = LoadOptions::new();
        SPOILED.set(Some((c"cuEventQuery", spoiled)));
        let loaded = load_by(way, real, soft.as_ref(), &options).0;
        let Err(Error::Load(error)) = loaded else {
            panic!("nothing there is a driver, and {loaded:?}")
        };
        let [attempt] = error.attempts() else { panic!("one attempt, not {error:?}") };
        let failure = attempt.failure().clone();
        let functions = vec![Function::cuEventQuery];
        assert_eq!(
            failure,
            LoadFailure::MissingSymbols { driver: real.version(), functions },
            "{way:?}, {spoiled:?}"
        );
        SPOILED.set(Some((c"cuStreamGetId", spoiled)));
        let driver =
            load_by(way, real, soft.as_ref(), &options).0.expect("what is missing is optional");
        assert!(driver.symbols().cuStreamGetId.is_none(), "{way:?}, {spoiled:?}");
        SPOILED.set(None);
    }
}
