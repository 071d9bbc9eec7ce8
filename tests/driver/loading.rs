//! Finding, opening and resolving the driver library: what succeeds, and what each failure says.

#![cfg(any(target_os = "linux", windows))]

use crate::common;

#[cfg(target_os = "linux")]
use std::cell::Cell;
#[cfg(target_os = "linux")]
use std::ffi::c_int;
use std::path::{Path, PathBuf};
use std::process::Command;
#[cfg(target_os = "linux")]
use std::sync::{Barrier, OnceLock};

#[cfg(target_os = "linux")]
use common::child::end_after;
use common::child::{Child, role, say};
use common::counting::{calls, counting};
#[cfg(target_os = "linux")]
use common::fake_library;
use common::{load, shared_library};
use cuda_events::loader::{DRIVER_VARIABLE, LoadFailure};
use cuda_events::sys::Function;
use cuda_events::{Device, Driver, Error, LoadError, LoadOptions};

/// Where the system's search is told to look first. On Windows the crate has it look nowhere but in
/// the system's folder.
pub const SEARCH_VARIABLE: &str = if cfg!(windows) { "PATH" } else { "LD_LIBRARY_PATH" };
pub const USUAL: &str = if cfg!(windows) { "nvcuda.dll" } else { "libcuda.so.1" };
#[cfg(target_os = "linux")]
pub const WSL: &str = "/usr/lib/wsl/lib/libcuda.so.1";

/// What the system says of a file that is not there. On Windows the words before the number are in
/// the user's language.
pub const NO_FILE: &str = if cfg!(windows) { "os error 126" } else { "No such file or directory" };

/// Another name of a library: a link, or where that takes a right, a copy.
fn another_name(library: &Path, name: &Path) {
    #[cfg(unix)]
    std::os::unix::fs::symlink(library, name).expect("a symbolic link");
    #[cfg(windows)]
    std::fs::copy(library, name).expect("a copy");
}

/// A folder for one test, gone when it ends.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("cuda-events-{}-{test}", std::process::id()));
        std::fs::create_dir(&path).expect("a folder for temporary files");
        // On Windows that would be another form of the path.
        Self(if cfg!(windows) { path } else { path.canonicalize().expect("it is there") })
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    #[cfg(target_os = "linux")]
    pub fn file(&self, name: &str, contents: &str) -> PathBuf {
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
pub fn refused(loaded: Result<Driver, Error>) -> LoadError {
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
pub fn only_failure(error: &LoadError, candidate: &Path) -> LoadFailure {
    let [attempt] = error.attempts() else { panic!("one candidate, not {error:?}") };
    assert_eq!(attempt.candidate(), Some(candidate));
    attempt.failure().clone()
}

/// The system's text for a file that it could not open as a library.
#[track_caller]
pub fn open_text(failure: &LoadFailure) -> &str {
    match failure {
        LoadFailure::Open(text) => text,
        other => panic!("{other:?}"),
    }
}

/// Runs the test `name` again in a process of its own, which must come to its end.
#[track_caller]
pub fn in_child(name: &str, configure: impl FnOnce(&mut Command)) {
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
    let path = folder.path(USUAL);
    let error = refused(common::load_from(&path));
    let failure = only_failure(&error, &path);
    assert!(open_text(&failure).contains(NO_FILE), "{failure}");
    // Once the path, once the reason.
    let text = error.to_string();
    assert_eq!(text.matches(path.to_str().expect("an ASCII path")).count(), 1, "{text}");
    assert_eq!(text.matches(NO_FILE).count(), 1, "{text}");
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
        let error = refused(common::load_from(path));
        let failure = only_failure(&error, Path::new(path));
        assert!(open_text(&failure).contains(reason), "{error}");
    }
}

#[test]
fn a_relative_path_is_refused() {
    if role().is_some() {
        let library = shared_library();
        let name = library.file_name().expect("a name").to_str().expect("an ASCII name");
        let folder = library
            .parent()
            .and_then(Path::file_name)
            .and_then(|name| name.to_str())
            .expect("an ASCII name");
        // On Linux all of them would open, except the last two of these.
        let mut paths = vec![
            format!("./{name}"),
            format!("../{folder}/{name}"),
            format!(".//{name}"),
            "..".into(),
            "./".into(),
        ];
        if cfg!(windows) {
            // Of the current folder, of the current drive, and of a drive's current folder.
            paths.extend([format!(r".\{name}"), format!(r"\{name}"), format!("C:{name}")]);
        }
        for path in paths {
            let error = refused(common::load_from(&path));
            assert_eq!(only_failure(&error, Path::new(&path)), LoadFailure::RelativePath);
            let text = error.to_string();
            assert!(
                text.contains(&format!("{path}: the path is relative"))
                    && !text.contains(DRIVER_VARIABLE),
                "{text}"
            );
        }
        if cfg!(windows) {
            // A name without a folder is searched for in the system's folder alone: windows.rs.
            return say("done");
        }
        // A name without a folder is no path: the system searches for it.
        let driver = common::load_from(name).expect("the search finds it");
        assert_eq!(driver.library(), library.canonicalize().ok().as_deref());
        return say("done");
    }
    let library = shared_library();
    let folder = library.parent().expect("a folder");
    in_child("a_relative_path_is_refused", |command| {
        command.env(SEARCH_VARIABLE, folder).current_dir(folder);
    });
}

#[cfg(target_os = "linux")]
/// The software driver by a path that no other test loads it by, so that it is not known yet. A
/// link would do as well, but the system goes on to name the library by the first link that it was
/// opened by, also when that is gone.
fn by_another_path(detours: usize) -> PathBuf {
    let library = shared_library();
    let (folder, name) =
        (library.parent().expect("a folder"), library.file_name().expect("a name"));
    let detour = Path::new("..").join(folder.file_name().expect("not the root"));
    let folder = (0..detours).fold(folder.to_owned(), |folder, _| folder.join(&detour));
    folder.join(name)
}

/// What this binary's calls of `dlopen` are: they go on to the C library's. On Windows nothing can
/// be put in front of what a program takes from the system's libraries.
#[cfg(target_os = "linux")]
mod dlopen {
    use std::cell::{Cell, RefCell};
    use std::ffi::{CStr, c_char, c_int, c_void};

    thread_local! {
        /// The calls of this thread: the path, the flags.
        pub static CALLS: RefCell<Vec<(Vec<u8>, c_int)>> = const { RefCell::new(Vec::new()) };
        /// What the next call of this thread does first.
        pub static FIRST: Cell<Option<fn()>> = const { Cell::new(None) };
    }

    // SAFETY: it stands in front of the C library's function of the same type, and does what that
    // does.
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
        unsafe {
            std::mem::transmute::<*mut c_void, Open>(dlsym(RTLD_NEXT, c"dlopen".as_ptr()))(
                path, flags,
            )
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_library_is_opened_whole_and_for_itself() {
    dlopen::CALLS.take();
    let path = by_another_path(2);
    common::load_from(&path).expect("the software driver");
    // RTLD_NOW: what is missing is an error here and no crash later. RTLD_LOCAL, which is 0: nobody
    // else is bound to it.
    const RTLD_NOW: c_int = 2;
    assert_eq!(dlopen::CALLS.take(), [(path.as_os_str().as_encoded_bytes().to_vec(), RTLD_NOW)]);
    // A driver that is known is not opened again.
    common::load_from(&path).expect("the software driver");
    assert_eq!(dlopen::CALLS.take(), []);
}

// What happens while a library is opened. Its initialisation code is the program's here. The fake
// library, which does that, is made of what Linux has.

/// Has the fake library call `code` when it is opened.
#[cfg(target_os = "linux")]
fn when_it_is_opened(code: extern "C" fn()) {
    // SAFETY: this process has one test, and no other thread looks at the environment yet.
    unsafe { std::env::set_var("CUDA_EVENTS_TEST_INITIALISE", format!("{:x}", code as usize)) };
}

#[cfg(target_os = "linux")]
#[test]
fn a_library_may_load_a_driver_while_it_is_opened() {
    static INSIDE: OnceLock<Driver> = OnceLock::new();
    extern "C" fn load_inside() {
        // Another library, and once more the one that is being opened.
        let driver = common::load_from(shared_library()).expect("the software driver");
        refused(common::load_from(fake_library()));
        INSIDE.set(driver).expect("it is opened once");
    }
    if role().is_some() {
        end_after(60);
        when_it_is_opened(load_inside);
        refused(common::load_from(fake_library()));
        let driver = INSIDE.get().expect("its code has run");
        // What was loaded inside is remembered as anything.
        assert_eq!(common::load_from(shared_library()), Ok(*driver));
        return say("done");
    }
    in_child("a_library_may_load_a_driver_while_it_is_opened", |_| {});
}

#[cfg(target_os = "linux")]
#[test]
fn a_child_forked_while_a_thread_loads_can_load() {
    static INSIDE: Barrier = Barrier::new(2);
    static FORKED: Barrier = Barrier::new(2);
    extern "C" fn stay_inside() {
        INSIDE.wait();
        FORKED.wait();
    }
    if role().is_some() {
        end_after(60);
        when_it_is_opened(stay_inside);
        let loading = std::thread::spawn(|| drop(refused(common::load_from(fake_library()))));
        INSIDE.wait();
        // A forked child does not inherit the alarm.
        let work = || {
            end_after(60);
            common::load_from(shared_library())
                .map_or_else(|error| error.to_string(), |_| "loaded".to_owned())
        };
        assert_eq!(common::fork::in_child(work), ("loaded".to_owned(), 0));
        FORKED.wait();
        loading.join().expect("it was refused");
        return say("done");
    }
    in_child("a_child_forked_while_a_thread_loads_can_load", |_| {});
}

/// A driver may have threads and handlers of the process's end once it was called.
#[cfg(target_os = "linux")]
#[test]
fn a_driver_that_was_called_is_never_closed() {
    if role().is_some() {
        let library = fake_library();
        let error = refused(common::load_from(&library));
        let LoadFailure::MissingSymbols { driver, .. } = only_failure(&error, &library) else {
            panic!("{error}");
        };
        assert_eq!(driver.to_string(), "10.0");
        let maps = std::fs::read_to_string("/proc/self/maps").expect("it is there");
        assert!(maps.contains(library.to_str().expect("an ASCII path")), "{maps}");
        return say("done");
    }
    in_child("a_driver_that_was_called_is_never_closed", |_| {});
}

#[test]
fn a_library_that_is_no_driver() {
    // By a bare name, which goes through the system's search.
    let libraries = match cfg!(windows) {
        true => ["kernel32.dll", "ntdll.dll"],
        false => ["libc.so.6", "libm.so.6"],
    };
    for library in libraries {
        let error = refused(common::load_from(library));
        assert_eq!(only_failure(&error, Path::new(library)), LoadFailure::NotADriver);
        let text = error.to_string();
        assert!(
            text.contains(library) && text.contains("it exports no cuDriverGetVersion"),
            "{text}"
        );
    }
}

// What is remembered.

/// In another process, as Windows keeps the file of a library until all that have it open end.
#[test]
fn success_is_remembered_and_failure_is_not() {
    if role().is_some() {
        let folder = std::env::current_dir().expect("set by the parent");
        remembers(&folder.join(if cfg!(windows) { "driver.dll" } else { "driver.so" }));
        return say("done");
    }
    let folder = Folder::new("remembered");
    in_child("success_is_remembered_and_failure_is_not", |command| {
        command.current_dir(&folder.0);
    });
}

fn remembers(path: &Path) {
    refused(common::load_from(path));
    refused(common::load_from(path));
    another_name(&shared_library(), path);
    let driver = common::load_from(path).expect("now it is there");
    if cfg!(windows) {
        assert_eq!(driver.library(), Some(path));
    } else {
        assert_eq!(driver.library(), shared_library().canonicalize().ok().as_deref());
    }
    assert_eq!(common::load_from(path), Ok(driver));
    assert_eq!(Driver::load_with(&common::options_of(path)), Ok(driver));
    // Other options are another table.
    let per_thread = common::options_of(path).per_thread_default_stream(true);
    let per_thread = Driver::load_with(&per_thread).expect("the same library");
    assert_ne!(per_thread, driver);
    assert!(per_thread.is_per_thread_default_stream() && !driver.is_per_thread_default_stream());
    if cfg!(unix) {
        std::fs::remove_file(path).expect("it was there");
        assert_eq!(common::load_from(path), Ok(driver));
    }
}

/// The faster one comes in the midst of the slower one here, every time.
#[cfg(target_os = "linux")]
#[test]
fn of_two_loads_at_once_the_faster_one_counts() {
    thread_local! {
        static FASTER: Cell<Option<Driver>> = const { Cell::new(None) };
    }
    fn load() -> Driver {
        common::load_from(by_another_path(3)).expect("a driver")
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
