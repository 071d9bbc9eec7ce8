//! Finding, opening and resolving the driver library: what succeeds, and what each failure says.

#![cfg(target_os = "linux")]

use crate::common;

use std::cell::Cell;
use std::ffi::{CStr, c_int, c_void};
use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::ptr::null_mut;
use std::sync::{Barrier, OnceLock};

use common::child::{self, Child, end_after, full_name, role, say};
use common::counting::{calls, counting, fail_next};
use common::{Door, Gpu, fake_library, load, say_not_run, shared_library};
use cuda_events::loader::{DRIVER_VARIABLE, LoadFailure};
use cuda_events::sys::*;
use cuda_events::{
    Context, Device, Driver, Error, Event, EventFlags, LoadError, LoadOptions, Stream, StreamOptions, Version,
};
use cuda_soft_driver::SoftDriver;

/// Where the system's search is told to look first.
const SEARCH_VARIABLE: &str = "LD_LIBRARY_PATH";
const USUAL: &str = "libcuda.so.1";
const WSL: &str = "/usr/lib/wsl/lib/libcuda.so.1";

/// A folder for one test, gone when it ends.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("cuda-events-{}-{test}", std::process::id()));
        std::fs::create_dir(&path).expect("a folder for temporary files");
        Self(path.canonicalize().expect("it is there"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn file(&self, name: &str, contents: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, contents).expect("a temporary file");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The error of a load that must fail. Its text is one line that says what it is about.
#[track_caller]
fn refused(loaded: Result<Driver, Error>) -> LoadError {
    let error = loaded.expect_err("nothing there is a driver");
    let text = error.to_string();
    assert!(text.starts_with("no usable CUDA driver library: "), "{text}");
    assert!(!text.contains('\n'), "{text}");
    match error {
        Error::Load(error) => {
            assert_eq!(text, error.to_string());
            error
        }
        other => panic!("{other:?}"),
    }
}

/// The one failure of a load that tried one candidate.
#[track_caller]
fn only_failure(error: &LoadError, candidate: &Path) -> LoadFailure {
    let [attempt] = error.attempts() else { panic!("one candidate, not {error:?}") };
    assert_eq!(attempt.candidate(), Some(candidate));
    attempt.failure().clone()
}

/// The system's text for a file that it could not open as a library.
#[track_caller]
fn open_text(failure: &LoadFailure) -> &str {
    match failure {
        LoadFailure::Open(text) => text,
        other => panic!("{other:?}"),
    }
}

/// Runs the test `name` again in a process of its own, which must come to its end.
#[track_caller]
fn in_child(name: &str, configure: impl FnOnce(&mut Command)) {
    let mut child = Child::start_with(name, "loads", |command| {
        command.env_remove(DRIVER_VARIABLE);
        configure(command);
    });
    assert_eq!(child.receive(), "done");
    child.finish();
}

// What a named file is.

#[test]
fn a_missing_file_is_named_with_the_systems_reason() {
    let folder = Folder::new("missing");
    let path = folder.path("libcuda.so.1");
    let error = refused(Driver::load_from(&path));
    let failure = only_failure(&error, &path);
    assert!(open_text(&failure).contains("No such file or directory"), "{failure}");
    // Once the path, once the reason.
    let text = error.to_string();
    assert_eq!(text.matches(path.to_str().expect("an ASCII path")).count(), 1, "{text}");
    assert_eq!(text.matches("No such file or directory").count(), 1, "{text}");
}

#[test]
fn a_file_that_is_not_a_library() {
    let folder = Folder::new("text");
    let long = "This is the text of a letter, and it goes on for a while. ".repeat(40);
    for (name, contents, reason) in [("letter", long.as_str(), "invalid ELF header"), ("empty", "", "file too short")] {
        let path = folder.file(name, contents);
        let error = refused(Driver::load_from(&path));
        let failure = only_failure(&error, &path);
        assert!(open_text(&failure).contains(reason), "{failure}");
        assert!(error.to_string().contains(name) && error.to_string().contains(reason), "{error}");
    }
}

#[test]
fn a_folder() {
    let folder = Folder::new("folder");
    let error = refused(Driver::load_from(&folder.0));
    let failure = only_failure(&error, &folder.0);
    assert!(open_text(&failure).contains("Is a directory"), "{failure}");
}

#[test]
fn paths_that_no_file_can_have() {
    // The system would take each of them for the program itself, or for a library that is there.
    for (path, reason) in [
        ("", "the path is empty"),
        ("\0", "zero byte"),
        ("libc.so.6\0", "zero byte"),
        ("libc.so.6\0.1", "zero byte"),
        ("/\0", "zero byte"),
    ] {
        let error = refused(Driver::load_from(path));
        let failure = only_failure(&error, Path::new(path));
        assert!(open_text(&failure).contains(reason), "{error}");
    }
}

#[test]
fn a_relative_path_is_refused() {
    if role().is_some() {
        let library = shared_library();
        let name = library.file_name().expect("a name").to_str().expect("an ASCII name");
        let folder = library.parent().and_then(Path::file_name).and_then(|name| name.to_str()).expect("an ASCII name");
        // All of them would open, but for the last two.
        for path in [format!("./{name}"), format!("../{folder}/{name}"), format!(".//{name}"), "..".into(), "./".into()]
        {
            let error = refused(Driver::load_from(&path));
            assert_eq!(only_failure(&error, Path::new(&path)), LoadFailure::RelativePath);
            let text = error.to_string();
            assert!(
                text.contains(&format!("{path}: the path is relative")) && !text.contains(DRIVER_VARIABLE),
                "{text}"
            );
        }
        // A name without a folder is no path: the system searches for it.
        let driver = Driver::load_from(name).expect("the search finds it");
        assert_eq!(driver.library(), library.canonicalize().ok().as_deref());
        return say("done");
    }
    let library = shared_library();
    let folder = library.parent().expect("a folder");
    in_child("a_relative_path_is_refused", |command| {
        command.env(SEARCH_VARIABLE, folder).current_dir(folder);
    });
}

/// A process of its own, because the call would be of data.
#[test]
fn a_library_whose_driver_function_is_data() {
    if role().is_some() {
        let path = fake_library();
        let error = refused(Driver::load_from(&path));
        let failure = only_failure(&error, &path);
        assert_eq!(failure, LoadFailure::NotAFunction("cuDriverGetVersion".to_owned()));
        assert_eq!(failure.to_string(), "not a CUDA driver: its cuDriverGetVersion is data and not a function");
        return say("done");
    }
    in_child("a_library_whose_driver_function_is_data", |_| {});
}

/// The software driver by a path that no other test loads it by, so that it is not known yet. A link would do as well,
/// but the system goes on to name the library by the first link that it was opened by, also when that is gone.
fn by_another_path(detours: usize) -> PathBuf {
    let library = shared_library();
    let (folder, name) = (library.parent().expect("a folder"), library.file_name().expect("a name"));
    let detour = Path::new("..").join(folder.file_name().expect("not the root"));
    let folder = (0..detours).fold(folder.to_owned(), |folder, _| folder.join(&detour));
    folder.join(name)
}

/// What this binary's calls of `dlopen` are: they go on to the C library's.
mod dlopen {
    use std::cell::{Cell, RefCell};
    use std::ffi::{CStr, c_char, c_int, c_void};

    thread_local! {
        /// The calls of this thread: the path, the flags.
        pub static CALLS: RefCell<Vec<(Vec<u8>, c_int)>> = const { RefCell::new(Vec::new()) };
        /// What the next call of this thread does first.
        pub static FIRST: Cell<Option<fn()>> = const { Cell::new(None) };
    }

    // SAFETY: it stands in front of the C library's function of the same type, and does what that does.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void {
        type Open = unsafe extern "C" fn(*const c_char, c_int) -> *mut c_void;
        unsafe extern "C" {
            fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
        }
        const RTLD_NEXT: *mut c_void = std::ptr::without_provenance_mut(usize::MAX);
        if !path.is_null() {
            // SAFETY: a path is a C string.
            let path = unsafe { CStr::from_ptr(path) }.to_bytes().to_vec();
            CALLS.with_borrow_mut(|calls| calls.push((path, flags)));
        }
        if let Some(first) = FIRST.take() {
            first();
        }
        // SAFETY: the C library has the function, and its type is that of this one.
        unsafe { std::mem::transmute::<*mut c_void, Open>(dlsym(RTLD_NEXT, c"dlopen".as_ptr()))(path, flags) }
    }
}

#[test]
fn a_library_is_opened_whole_and_for_itself() {
    dlopen::CALLS.take();
    let path = by_another_path(2);
    Driver::load_from(&path).expect("the software driver");
    // RTLD_NOW: what is missing is an error here and no crash later. RTLD_LOCAL, which is 0: nobody else is bound to it.
    const RTLD_NOW: c_int = 2;
    assert_eq!(dlopen::CALLS.take(), [(path.as_os_str().as_encoded_bytes().to_vec(), RTLD_NOW)]);
    // A driver that is known is not opened again.
    Driver::load_from(&path).expect("the software driver");
    assert_eq!(dlopen::CALLS.take(), []);
}

// What happens while a library is opened. Its initialisation code is the program's here.

/// Has the fake library call `code` when it is opened.
fn when_it_is_opened(code: extern "C" fn()) {
    // SAFETY: this process has one test, and no other thread looks at the environment yet.
    unsafe { std::env::set_var("CUDA_EVENTS_TEST_INITIALISE", format!("{:x}", code as usize)) };
}

#[test]
fn a_library_may_load_a_driver_while_it_is_opened() {
    static INSIDE: OnceLock<Driver> = OnceLock::new();
    extern "C" fn load_inside() {
        // Another library, and once more the one that is being opened.
        let driver = Driver::load_from(shared_library()).expect("the software driver");
        refused(Driver::load_from(fake_library()));
        INSIDE.set(driver).expect("it is opened once");
    }
    if role().is_some() {
        end_after(60);
        when_it_is_opened(load_inside);
        refused(Driver::load_from(fake_library()));
        let driver = INSIDE.get().expect("its code has run");
        // What was loaded inside is remembered as anything.
        assert_eq!(Driver::load_from(shared_library()), Ok(*driver));
        return say("done");
    }
    in_child("a_library_may_load_a_driver_while_it_is_opened", |_| {});
}

#[test]
fn a_child_that_is_forked_while_another_thread_loads_can_load() {
    static INSIDE: Barrier = Barrier::new(2);
    static FORKED: Barrier = Barrier::new(2);
    extern "C" fn stay_inside() {
        INSIDE.wait();
        FORKED.wait();
    }
    if role().is_some() {
        end_after(60);
        when_it_is_opened(stay_inside);
        let loading = std::thread::spawn(|| drop(refused(Driver::load_from(fake_library()))));
        INSIDE.wait();
        // A forked child does not inherit the alarm.
        let work = || {
            end_after(60);
            Driver::load_from(shared_library()).map_or_else(|error| error.to_string(), |_| "loaded".to_owned())
        };
        assert_eq!(common::fork::in_child(work), ("loaded".to_owned(), 0));
        FORKED.wait();
        loading.join().expect("it was refused");
        return say("done");
    }
    in_child("a_child_that_is_forked_while_another_thread_loads_can_load", |_| {});
}

#[test]
fn a_library_that_is_no_driver() {
    // By a bare name, which goes through the system's search.
    for library in ["libc.so.6", "libm.so.6"] {
        let error = refused(Driver::load_from(library));
        assert_eq!(only_failure(&error, Path::new(library)), LoadFailure::NotADriver);
        let text = error.to_string();
        assert!(text.contains(library) && text.contains("it exports no cuDriverGetVersion"), "{text}");
    }
}

// What a driver must have. A resolver in front of the driver under test takes parts away.

/// The exported names of `real`'s table without cuGetProcAddress, so that each entry point is asked for by its exported
/// name; `replace` comes first.
fn in_front_of(real: Driver, replace: impl Fn(&CStr) -> Option<*mut c_void>) -> Result<Driver, Error> {
    let mut resolve = |name: &CStr| {
        if name.to_bytes().starts_with(b"cuGetProcAddress") {
            return null_mut();
        }
        let entry = || ENTRY_POINTS.iter().find(|entry| entry.name == name);
        replace(name).unwrap_or_else(|| entry().map_or(null_mut(), |entry| real.symbols().address(entry.function)))
    };
    // SAFETY: the addresses are those of a driver's table by their names, or a test's own functions of the same type.
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
fn all_missing_required_entry_points_are_named() {
    let (real, _soft) = load(&LoadOptions::new());
    let hidden = [c"cuEventQuery", c"cuStreamWaitEvent"];
    let failure = resolver_failure(in_front_of(real, |name| hidden.contains(&name).then_some(null_mut())));
    assert_eq!(
        failure,
        LoadFailure::MissingSymbols {
            driver: real.version(),
            functions: vec![Function::cuEventQuery, Function::cuStreamWaitEvent],
        }
    );
    let text = failure.to_string();
    assert_eq!(
        text,
        format!(
            "the driver says that it supports CUDA {}, but it is not complete (it lacks cuEventQuery, cuStreamWaitEvent)",
            real.version()
        )
    );
}

#[test]
fn a_driver_with_nothing_but_its_version_lacks_all_that_is_required() {
    let (real, _soft) = load(&LoadOptions::new());
    let failure = resolver_failure(in_front_of(real, |name| (name != c"cuDriverGetVersion").then_some(null_mut())));
    let required = ENTRY_POINTS.iter().filter(|entry| entry.required).map(|entry| entry.function);
    let functions: Vec<_> = required.filter(|function| *function != Function::cuDriverGetVersion).collect();
    // The reason and a few of them: all would be a page.
    let more = format!("(it lacks cuInit, cuGetErrorName, cuGetErrorString and {} more)", functions.len() - 3);
    assert!(failure.to_string().ends_with(&more), "{failure}");
    assert_eq!(failure, LoadFailure::MissingSymbols { driver: real.version(), functions });
}

#[test]
fn a_missing_optional_entry_point_is_no_obstacle() {
    let (real, _soft) = load(&LoadOptions::new());
    for entry in ENTRY_POINTS.iter().filter(|entry| !entry.required) {
        let driver = in_front_of(real, |name| (name == entry.name).then_some(null_mut()));
        let driver = driver.unwrap_or_else(|error| panic!("without {}: {error}", entry.function));
        assert!(driver.symbols().address(entry.function).is_null(), "{entry:?}");
    }
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
    for part in ["stub library", "CUDA_ERROR_STUB_LIBRARY", "34", "install the NVIDIA display driver"] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn a_driver_that_does_not_tell_its_version() {
    let (real, _soft) = load(&LoadOptions::new());
    for (get_version, code, name) in
        [(get_version::<0, 999> as GetVersion, 999, "CUDA_ERROR_UNKNOWN"), (get_version::<0, 4242>, 4242, "4242")]
    {
        let failure = resolver_failure(in_front_of(real, version(get_version)));
        assert_eq!(failure, LoadFailure::Version(CUresult(code)));
        assert!(failure.to_string().contains("cuDriverGetVersion") && failure.to_string().contains(name), "{failure}");
    }
}

// What a driver is too old for.

/// A driver of 11.8 in front of the one under test, with a context.
fn old_driver(gpu: &Gpu) -> (Driver, Context) {
    let driver = in_front_of(gpu.driver, version(get_version::<11080, 0>)).expect("a driver of 11.8 is enough");
    let context = Context::primary(Device::new(driver, 0).expect("device 0")).expect("the primary context");
    (driver, context)
}

#[test]
fn a_call_that_the_driver_is_too_old_for_is_unsupported() {
    let gpu = Gpu::new();
    let (driver, context) = old_driver(&gpu);
    let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
    let error = stream.id().expect_err("ids came with 12.0");
    assert_eq!(
        error,
        Error::Unsupported {
            function: Function::cuStreamGetId,
            since: Version::new(12, 0),
            driver: Version::new(11, 8)
        }
    );
    assert_eq!(driver.version(), Version::new(11, 8));
    let text = error.to_string();
    for part in ["cuStreamGetId", "12.0", "11.8", "update the driver"] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn nothing_newer_than_the_driver_is_in_its_table() {
    let (real, _soft) = load(&LoadOptions::new());
    if !common::needs_version(real, Version::new(11, 8), "the entry points") {
        return;
    }
    let driver = in_front_of(real, version(get_version::<11080, 0>)).expect("a driver of 11.8 is enough");
    for entry in ENTRY_POINTS {
        let there = !driver.symbols().address(entry.function).is_null();
        let expected = entry.version <= Version::new(11, 8) && entry.base != "cuGetProcAddress";
        assert_eq!(there, expected, "{entry:?}");
    }
}

#[test]
fn an_older_entry_point_stands_in_for_a_newer_one() {
    let gpu = Gpu::new();
    let (_, context) = old_driver(&gpu);
    let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
    let start = Event::new(&context, EventFlags::TIMING).expect("an event");
    let end = Event::new(&context, EventFlags::TIMING).expect("an event");
    // Since 12.8 there is cuEventElapsedTime_v2.
    let error = start.elapsed_ms(&end).expect_err("neither is recorded");
    assert_eq!(error.function(), Some(Function::cuEventElapsedTime));
    start.record(&stream).and_then(|()| end.record(&stream)).and_then(|()| end.synchronize()).expect("idle work");
    assert!(start.elapsed_ms(&end).expect("both are done") >= 0.0);
    // Since 11.4 there is cuDeviceGetUuid_v2, and a driver of 11.0 has cuDeviceGetUuid.
    let oldest = in_front_of(gpu.driver, version(get_version::<11000, 0>)).expect("a driver of 11.0 is enough");
    assert!(oldest.symbols().cuDeviceGetUuid_v2.is_none());
    let device = Device::new(oldest, 0).expect("device 0");
    assert_eq!(device.uuid().expect("a UUID").as_bytes().len(), 16);
}

#[test]
fn a_driver_of_before_cuda_11_is_refused_with_its_version() {
    let (real, _soft) = load(&LoadOptions::new());
    let failure = resolver_failure(in_front_of(real, version(get_version::<10020, 0>)));
    let LoadFailure::MissingSymbols { driver, functions } = &failure else { panic!("{failure:?}") };
    assert_eq!(*driver, Version::new(10, 2));
    assert_eq!(*functions, [Function::cuDevicePrimaryCtxRelease_v2]);
    assert_eq!(
        failure.to_string(),
        "the driver supports CUDA 10.2, and this crate needs 11.0 or newer: update the driver (it lacks \
         cuDevicePrimaryCtxRelease_v2)"
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
    for part in ["cuInit", "CUDA_ERROR_NO_DEVICE (100)", "no CUDA device is visible", "CUDA_VISIBLE_DEVICES"] {
        assert!(text.contains(part), "{text}");
    }
    fail_next(Function::cuInit, CUresult::CUDA_ERROR_NO_DEVICE);
    assert_eq!(Device::count(driver), Err(error));
    // It was only a failure: the next attempt initialises.
    assert!(Device::count(driver).expect("there is a device after all") > 0);
}

#[test]
fn a_library_without_a_device_loads_and_says_so_when_it_is_used() {
    if role().is_some() {
        let driver = Driver::load_from(shared_library()).expect("the software driver");
        let file = shared_library().canonicalize().expect("it is there");
        let file: &'static PathBuf = Box::leak(Box::new(file));
        let none = Error::Init { code: CUresult::CUDA_ERROR_NO_DEVICE, library: Some(file) };
        let named = format!("cuInit of {} failed with CUDA_ERROR_NO_DEVICE (100): ", file.display());
        assert!(none.to_string().starts_with(&named), "{none}");
        assert_eq!(Device::count(driver), Err(none.clone()));
        assert_eq!(Device::new(driver, 0), Err(none.clone()));
        assert_eq!(Device::all(driver).map(|devices| devices.len()), Err(none));
        return say("done");
    }
    in_child("a_library_without_a_device_loads_and_says_so_when_it_is_used", |command| {
        command.env("CUDA_SOFT_DRIVER", "devices=0");
    });
}

#[test]
fn drivers_of_every_version_load() {
    for (major, minor) in [(11, 0), (11, 2), (11, 3), (11, 4), (11, 8), (12, 0), (12, 4), (12, 8), (13, 0), (13, 5)] {
        let version = Version::new(major, minor);
        let soft = SoftDriver::builder().version(major, minor).build();
        for per_thread in [false, true] {
            let options = LoadOptions::new().per_thread_default_stream(per_thread);
            // SAFETY: the software driver has the driver's ABI, and its functions are part of this program.
            let driver = unsafe { Driver::from_resolver(&mut |name| soft.resolve(name), &options) };
            let driver = driver.unwrap_or_else(|error| panic!("{version}: {error}"));
            assert_eq!(driver.version(), version);
            for entry in ENTRY_POINTS {
                let there = !driver.symbols().address(entry.function).is_null();
                assert_eq!(there, entry.version <= version, "{version}, {per_thread}: {entry:?}");
            }
            use_device(driver).unwrap_or_else(|error| panic!("{version}: {error}"));
        }
    }
}

// Where the library is looked for. The environment is the process's, so each of these runs in one of its own.

/// The candidates and reasons of a default search that finds nothing because `folder` has a bad library of that name.
#[track_caller]
fn assert_default_search_found_nothing(folder: &Path) {
    let loaded = Driver::load();
    if Path::new(WSL).exists() {
        // The second candidate is good here: the first one's failure is not the end.
        assert_eq!(loaded.expect("the driver of WSL").library(), Path::new(WSL).canonicalize().ok().as_deref());
        return;
    }
    let error = refused(loaded);
    let candidates: Vec<_> = error.attempts().iter().filter_map(|attempt| attempt.candidate()).collect();
    assert_eq!(candidates, [Path::new(USUAL), Path::new(WSL)]);
    let reasons: Vec<_> = error.attempts().iter().map(|attempt| open_text(attempt.failure())).collect();
    assert!(reasons[0].contains("invalid ELF header"), "{reasons:?}");
    assert!(reasons[1].contains("No such file or directory"), "{reasons:?}");
    let bad = folder.join(USUAL);
    assert_eq!(
        error.to_string(),
        format!(
            "no usable CUDA driver library: libcuda.so.1: {}: invalid ELF header; /usr/lib/wsl/lib/libcuda.so.1: \
             cannot open shared object file: No such file or directory; install the NVIDIA display driver, or start the \
             container with its GPUs (docker run --gpus all)",
            bad.display()
        )
    );
}

/// A file of the driver's name that the system's search finds before any other, and that is no library.
fn bad_library(folder: &Folder) {
    folder.file(USUAL, &"not a library ".repeat(100));
}

#[test]
fn every_candidate_is_named_with_its_own_reason() {
    if role().is_some() {
        let folder = std::env::var_os(SEARCH_VARIABLE).expect("set by the parent");
        assert_default_search_found_nothing(Path::new(&folder));
        return say("done");
    }
    let folder = Folder::new("candidates");
    bad_library(&folder);
    in_child("every_candidate_is_named_with_its_own_reason", |command| {
        command.env(SEARCH_VARIABLE, &folder.0);
    });
}

#[test]
fn the_default_search_finds_this_machines_driver_or_says_why_not() {
    if role().is_some() {
        match Driver::load() {
            Ok(driver) => {
                let library = driver.library().expect("it came from a library");
                let name = library.file_name().and_then(|name| name.to_str()).expect("an ASCII name");
                assert!(name.starts_with("libcuda.so."), "{}", library.display());
                assert!(library.is_absolute() && driver.version() >= Version::new(11, 0), "{driver:?}");
            }
            Err(error) => {
                assert_ne!(Door::chosen(), Door::Native, "{error}");
                let error = refused(Err(error));
                let candidates: Vec<_> = error.attempts().iter().filter_map(|attempt| attempt.candidate()).collect();
                assert_eq!(candidates, [Path::new(USUAL), Path::new(WSL)]);
                for attempt in error.attempts() {
                    assert!(open_text(attempt.failure()).contains("No such file or directory"), "{error}");
                }
                assert!(error.to_string().contains(USUAL) && error.to_string().contains(WSL), "{error}");
            }
        }
        return say("done");
    }
    in_child("the_default_search_finds_this_machines_driver_or_says_why_not", |_| {});
}

#[test]
fn the_default_search_is_the_systems() {
    if role().is_some() {
        let driver = Driver::load().expect("the parent put one in the way");
        assert_eq!(driver.library(), shared_library().canonicalize().ok().as_deref());
        return say("done");
    }
    let folder = Folder::new("search");
    symlink(shared_library(), folder.path(USUAL)).expect("a symbolic link");
    in_child("the_default_search_is_the_systems", |command| {
        command.env(SEARCH_VARIABLE, &folder.0);
    });
}

#[test]
fn the_variable_names_the_one_library() {
    if role().is_some() {
        let named = std::env::var_os(DRIVER_VARIABLE).map(PathBuf::from).expect("set by the parent");
        if named.exists() {
            let driver = Driver::load().expect("the variable names a driver");
            assert_eq!(driver.library(), named.canonicalize().ok().as_deref());
            assert_eq!(Driver::load(), Ok(driver));
        } else {
            // The system's search would find a driver, but nothing takes the place of what was named.
            let error = refused(Driver::load());
            let failure = only_failure(&error, &named);
            assert!(open_text(&failure).contains("No such file or directory"), "{failure}");
            let text = error.to_string();
            assert!(text.contains(&format!("CUDA_EVENTS_DRIVER names {}: ", named.display())), "{text}");
            assert_eq!(text.matches("missing.so").count(), 1, "{text}");
        }
        return say("done");
    }
    let folder = Folder::new("variable");
    symlink(shared_library(), folder.path(USUAL)).expect("a symbolic link");
    for named in [shared_library(), folder.path("missing.so")] {
        in_child("the_variable_names_the_one_library", |command| {
            command.env(DRIVER_VARIABLE, named).env(SEARCH_VARIABLE, &folder.0);
        });
    }
}

#[test]
fn the_variable_takes_no_relative_path() {
    if role().is_some() {
        let named = std::env::var_os(DRIVER_VARIABLE).map(PathBuf::from).expect("set by the parent");
        let error = refused(Driver::load());
        assert_eq!(only_failure(&error, &named), LoadFailure::RelativePath);
        let text = error.to_string();
        assert!(
            text.contains(&format!("CUDA_EVENTS_DRIVER names {}: the path is relative", named.display())),
            "{text}"
        );
        assert!(text.ends_with("set CUDA_EVENTS_DRIVER to the absolute path of a driver, or unset it"), "{text}");
        return say("done");
    }
    let library = shared_library();
    let (folder, name) = (library.parent().expect("a folder"), library.file_name().expect("a name"));
    // Both would open.
    for named in [PathBuf::from(name), Path::new(".").join(name)] {
        in_child("the_variable_takes_no_relative_path", |command| {
            command.env(DRIVER_VARIABLE, named).env(SEARCH_VARIABLE, folder).current_dir(folder);
        });
    }
}

#[test]
fn an_empty_variable_is_none() {
    if role().is_some() {
        let folder = std::env::var_os(SEARCH_VARIABLE).expect("set by the parent");
        assert_default_search_found_nothing(Path::new(&folder));
        return say("done");
    }
    let folder = Folder::new("empty-variable");
    bad_library(&folder);
    in_child("an_empty_variable_is_none", |command| {
        command.env(DRIVER_VARIABLE, "").env(SEARCH_VARIABLE, &folder.0);
    });
}

#[test]
fn the_programs_own_choice_outranks_the_variable() {
    if role().is_some() {
        let (good, bad) = (shared_library(), PathBuf::from("/nowhere/libcuda.so.1"));
        if std::env::var_os(DRIVER_VARIABLE) == Some(bad.clone().into()) {
            let driver = Driver::load_from(&good).expect("the program names a driver");
            assert_eq!(driver.library(), good.canonicalize().ok().as_deref());
        } else {
            let error = refused(Driver::load_from(&bad));
            open_text(&only_failure(&error, &bad));
        }
        return say("done");
    }
    for named in [shared_library(), PathBuf::from("/nowhere/libcuda.so.1")] {
        in_child("the_programs_own_choice_outranks_the_variable", |command| {
            command.env(DRIVER_VARIABLE, named);
        });
    }
}

/// Whether the kernel says that this process has more rights than whoever started it.
fn is_privileged() -> bool {
    unsafe extern "C" {
        fn getauxval(kind: std::ffi::c_ulong) -> std::ffi::c_ulong;
    }
    const AT_SECURE: std::ffi::c_ulong = 23;
    // SAFETY: the declaration is the C library's; the call reads what the kernel gave this process.
    unsafe { getauxval(AT_SECURE) != 0 }
}

/// A line of this process's status, in words.
fn status(key: &str) -> Vec<u32> {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has /proc");
    let line = status.lines().find_map(|line| line.strip_prefix(key)).expect("a line of that name");
    line.trim_start_matches(':').split_whitespace().map(|word| word.parse().expect("a number")).collect()
}

#[test]
fn a_privileged_process_ignores_the_variable() {
    const TEST: &str = "a_privileged_process_ignores_the_variable";
    if role().is_some() {
        let named = std::env::var_os(DRIVER_VARIABLE).map(PathBuf::from).expect("set by the parent");
        let privileged = is_privileged();
        match Driver::load() {
            Ok(driver) => assert_eq!(driver.library() == named.canonicalize().ok().as_deref(), !privileged),
            Err(error) => {
                assert!(privileged, "{error}");
                assert_eq!(refused(Err(error)).attempts().len(), 2);
            }
        }
        return say(if privileged { "ignored" } else { "honoured" });
    }

    // A copy of this test that sets another group than ours, which gives it no right that matters.
    let own = status("Gid")[0];
    let root = status("Uid")[1] == 0;
    let another = if root { Some(65534) } else { status("Groups").into_iter().find(|group| *group != own) };
    let Some(another) = another else { return say_not_run("it needs root, or a user with a second group") };
    if status("NoNewPrivs")[0] != 0 {
        return say_not_run("this process may not start privileged ones (no_new_privs)");
    }
    let folder = Folder::new("privileged");
    let copy = folder.path("test");
    // By another process: a child that this one starts meanwhile for another test would have the copy open for writing
    // until it execs, and a file that is open for writing cannot be started.
    assert!(Command::new("cp").args([&child::own_binary(), &copy]).status().expect("cp is there").success());
    let run = |expected: &str| {
        let answer = |program: &Path| {
            let mut command = child::command(program, &full_name(TEST), "loads");
            command.env(DRIVER_VARIABLE, shared_library());
            let output = command.output().expect("the copy starts");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        answer(&copy).contains(&format!("@ {expected}"))
    };
    // The set-up is good: the same copy without the bit takes the variable.
    assert!(run("honoured"));
    std::os::unix::fs::chown(&copy, None, Some(another)).expect("a group of ours");
    std::fs::set_permissions(&copy, Permissions::from_mode(0o2710)).expect("the copy is ours");
    if run("honoured") {
        assert!(!root, "{}: set-group-ID programs do not work there; set TMPDIR", folder.0.display());
        return say_not_run("set-group-ID programs do not work in the folder for temporary files");
    }
    assert!(run("ignored"));
}

// What is remembered.

#[test]
fn success_is_remembered_and_failure_is_not() {
    let folder = Folder::new("remembered");
    let path = folder.path("driver.so");
    refused(Driver::load_from(&path));
    refused(Driver::load_from(&path));
    symlink(shared_library(), &path).expect("a symbolic link");
    let driver = Driver::load_from(&path).expect("now it is there");
    assert_eq!(driver.library(), shared_library().canonicalize().ok().as_deref());
    assert_eq!(Driver::load_from(&path), Ok(driver));
    assert_eq!(Driver::load_with(&LoadOptions::new().path(&path)), Ok(driver));
    std::fs::remove_file(&path).expect("it was there");
    assert_eq!(Driver::load_from(&path), Ok(driver));
    // Other options are another table.
    let per_thread = LoadOptions::new().path(shared_library()).per_thread_default_stream(true);
    let per_thread = Driver::load_with(&per_thread).expect("the same library");
    assert_ne!(per_thread, driver);
    assert!(per_thread.is_per_thread_default_stream() && !driver.is_per_thread_default_stream());
}

#[test]
fn threads_that_load_at_once_get_the_same_driver() {
    let path = by_another_path(1);
    let drivers: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| Driver::load_from(&path).expect("a driver"))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    assert!(drivers.iter().all(|driver| *driver == drivers[0]), "{drivers:?}");
}

/// The faster one comes in the midst of the slower one here, every time.
#[test]
fn of_two_loads_at_once_the_faster_one_gives_the_driver_to_both() {
    thread_local! {
        static FASTER: Cell<Option<Driver>> = const { Cell::new(None) };
    }
    fn load() -> Driver {
        Driver::load_from(by_another_path(3)).expect("a driver")
    }
    dlopen::FIRST.set(Some(|| FASTER.set(Some(load()))));
    let slower = load();
    assert_eq!(FASTER.take(), Some(slower));
    assert_eq!(load(), slower);
}

// Loading initialises nothing.

#[test]
fn loading_makes_no_call_that_initialises() {
    let (real, _soft) = load(&LoadOptions::new());
    let (driver, made) = calls(|| counting(real));
    assert_eq!(made, []);
    // The first use of a device does, once.
    let (_, made) = calls(|| (Device::new(driver, 0), Device::new(driver, 0)));
    assert_eq!(made, [Function::cuInit, Function::cuDeviceGet, Function::cuDeviceGet]);
}

#[test]
fn a_loaded_driver_is_not_initialised_and_survives_a_fork() {
    const TEST: &str = "a_loaded_driver_is_not_initialised_and_survives_a_fork";
    if role().is_some() {
        let (driver, _soft) = load(&LoadOptions::new());
        let mut count = 0;
        // SAFETY: a place for the one integer.
        let code = unsafe { (driver.symbols().cuDeviceGetCount)(&mut count) };
        assert_eq!(code, CUresult::CUDA_ERROR_NOT_INITIALIZED);

        let said = || use_device(driver).map_or_else(|error| error.to_string(), |()| "used".to_owned());
        assert_eq!(common::fork::in_child(said), ("used".to_owned(), 0));
        // The parent may use it too, for it has not yet.
        assert_eq!(said(), "used");
        return say("done");
    }
    in_child(TEST, |_| {});
}

/// Whether the process was forked is said only where it is known.
#[test]
fn a_driver_that_is_not_initialised_by_its_initialisation() {
    const TEST: &str = "a_driver_that_is_not_initialised_by_its_initialisation";
    const CODE: CUresult = CUresult::CUDA_ERROR_NOT_INITIALIZED;
    if role().is_some() {
        let (real, _soft) = load(&LoadOptions::new());
        let driver = counting(real);
        let fails = || {
            fail_next(Function::cuInit, CODE);
            Device::count(driver)
        };
        // This process was started, not forked.
        assert_eq!(fails(), Err(Error::Init { code: CODE, library: None }));
        // Other code of the program initialises the driver, which this crate does not see, and forks.
        // SAFETY: there are no other flags than 0.
        assert_eq!(unsafe { (real.symbols().cuInit)(0) }, CUresult::CUDA_SUCCESS);
        let said = common::fork::in_child(|| Device::count(real).expect_err("CUDA does not survive").to_string());
        assert_eq!(said, (Error::ForkedChild { function: Function::cuInit }.to_string(), 0));
        return say("done");
    }
    in_child(TEST, |_| {});
}

/// A little of everything.
fn use_device(driver: Driver) -> Result<(), Error> {
    let context = Context::primary(Device::new(driver, 0)?)?;
    let stream = Stream::new(&context, StreamOptions::new())?;
    let event = stream.record_event(EventFlags::TIMING)?;
    event.synchronize()?;
    assert!(event.query()?.is_done());
    event.close()?;
    stream.close()
}
