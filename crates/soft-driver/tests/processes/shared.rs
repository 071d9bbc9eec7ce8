//! The shared library, opened as a program would open the real driver. One library has one machine,
//! so these tests run each in a process of their own.
//!
//! Linux: most open it by `dlopen` themselves. On Windows the crate's own tests open it, by
//! `CUDA_EVENTS_TEST_DRIVER=shared`.

#![cfg(target_os = "linux")]

use cuda_events::Driver;
use cuda_events_test_support::child::{full_name, own_binary, starting};
use cuda_events_test_support::shared_library;
use cuda_soft_driver::exports::NEWEST;

pub(crate) fn load() -> cuda_events::Result<Driver> {
    Driver::load_with(&cuda_events_test_support::options_of(shared_library()))
}

/// Runs one of the ignored tests below in its own process, configured by `text`.
#[track_caller]
pub(crate) fn run(test: &str, text: &str) -> String {
    let output = starting(&own_binary())
        .args(["--exact", &full_name(test), "--ignored", "--nocapture"])
        .env("CUDA_SOFT_DRIVER", text)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{errors}");
    errors
}

#[test]
fn it_is_a_driver() {
    run("inner_use", "");
    run("inner_use", "version=13.0,devices=2");
    let errors = run("inner_use", "leaks=report");
    assert!(errors.contains("still alive: 1 retain of a primary context, 1 stream"), "{errors}");
}

/// A program asks for the driver by its usual name. A library that was opened before by its path,
/// or preloaded, serves it, because it has that name inside; and a C program that is linked with it
/// asks for that name. musl does not look for it.
#[test]
#[cfg(target_env = "gnu")]
fn the_usual_name_finds_a_library_opened_by_its_path() {
    run("inner_usual_name", "");
}

#[test]
#[cfg(target_env = "gnu")]
#[ignore = "another process, which the tests start: cargo test -p cuda-soft-driver --test \
    processes"]
fn inner_usual_name() {
    let path = std::ffi::CString::new(shared_library().to_str().unwrap()).unwrap();
    let by_path = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
    assert!(!by_path.is_null());
    let loaded = libc::RTLD_NOW | libc::RTLD_NOLOAD;
    assert_eq!(unsafe { libc::dlopen(c"libcuda.so.1".as_ptr(), loaded) }, by_path);
}

#[test]
fn what_an_older_driver_lacks_is_not_found() {
    for (major, minor) in [(11, 0), (11, 4), (11, 8), (12, 0), (12, 4), (12, 8), (13, 0), NEWEST] {
        run("inner_version", &format!("version={major}.{minor}"));
    }
}

#[test]
#[ignore = "another process, which the tests start: cargo test -p cuda-soft-driver --test \
    processes"]
fn inner_version() {
    let text = std::env::var("CUDA_SOFT_DRIVER").unwrap();
    let (major, minor) = text.strip_prefix("version=").unwrap().split_once('.').unwrap();
    let version = major.parse::<i32>().unwrap() * 1000 + minor.parse::<i32>().unwrap() * 10;
    let path = std::ffi::CString::new(shared_library().to_str().unwrap()).unwrap();
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
    assert!(!handle.is_null());
    for export in cuda_soft_driver::exports::EXPORTS {
        let name = std::ffi::CString::new(export.name).unwrap();
        let found = !unsafe { libc::dlsym(handle, name.as_ptr()) }.is_null();
        assert_eq!(found, export.version <= version, "{} of {}", export.name, export.version);
    }
    let driver = load().unwrap();
    assert_eq!(driver.version().to_string(), format!("{major}.{minor}"));
    assert_eq!(driver.symbols().cuEventElapsedTime_v2.is_some(), version >= 12080);
}

#[test]
fn what_is_left_out_is_not_found() {
    run("inner_without", "without=cuStreamUpdateCaptureDependencies_v2,without=cuEventRecord_ptsz");
}

#[test]
#[ignore = "another process, which the tests start: cargo test -p cuda-soft-driver --test \
    processes"]
fn inner_without() {
    type GetProcAddress =
        unsafe extern "C" fn(*const u8, *mut *mut libc::c_void, i32, u64, *mut u32) -> u32;
    let path = std::ffi::CString::new(shared_library().to_str().unwrap()).unwrap();
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
    let found = |name: &std::ffi::CStr| unsafe { libc::dlsym(handle, name.as_ptr()) };
    let look: GetProcAddress = unsafe { std::mem::transmute(found(c"cuGetProcAddress_v2")) };
    let look = |name: &std::ffi::CStr, version: i32, flags: u64| {
        let (mut function, mut status) = (std::ptr::null_mut(), 77);
        assert_eq!(
            unsafe { look(name.as_ptr().cast(), &mut function, version, flags, &mut status) },
            0
        );
        (function, status)
    };
    let nothing = (std::ptr::null_mut(), 1);
    assert!(found(c"cuStreamUpdateCaptureDependencies_v2").is_null());
    assert_eq!(look(c"cuStreamUpdateCaptureDependencies", 12030, 0), nothing);
    assert_eq!(look(c"cuStreamUpdateCaptureDependencies", 13000, 0), nothing);
    let older = found(c"cuStreamUpdateCaptureDependencies");
    assert!(!older.is_null());
    assert_eq!(look(c"cuStreamUpdateCaptureDependencies", 12020, 0), (older, 0));
    // What stands for another stream does not stand in for the twin either.
    assert!(found(c"cuEventRecord_ptsz").is_null());
    assert_eq!(look(c"cuEventRecord", 13000, 2), nothing);
    assert_eq!(look(c"cuEventRecord", 13000, 0), (found(c"cuEventRecord"), 0));
    // Without one of those that it requires there is no driver; the per-thread table is one.
    assert!(load().unwrap().symbols().cuStreamUpdateCaptureDependencies_v2.is_none());
    let per_thread =
        cuda_events_test_support::options_of(shared_library()).per_thread_default_stream(true);
    let error = Driver::load_with(&per_thread).unwrap_err().to_string();
    assert!(error.contains("cuEventRecord"), "{error}");
}

#[test]
fn at_exit_calls_answer_that_it_is_gone() {
    run("inner_exit", "leaks=report");
}

#[test]
#[ignore = "another process, which the tests start: cargo test -p cuda-soft-driver --test \
    processes"]
fn inner_exit() {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU32, Ordering};
    static DRIVER: OnceLock<Driver> = OnceLock::new();
    static BEFORE: AtomicU32 = AtomicU32::new(99);
    fn count() -> u32 {
        let mut count = 0;
        unsafe { (DRIVER.get().unwrap().symbols().cuDeviceGetCount)(&mut count) }.0
    }
    // Runs last: it was registered before the library was loaded.
    extern "C" fn last() {
        let (before, after) = (BEFORE.load(Ordering::SeqCst), count());
        unsafe { libc::_exit(if (before, after) == (0, 4) { 0 } else { 1 }) };
    }
    extern "C" fn first() {
        BEFORE.store(count(), Ordering::SeqCst);
    }
    assert_eq!(unsafe { libc::atexit(last) }, 0);
    let driver = *DRIVER.get_or_init(|| load().unwrap());
    assert_eq!(unsafe { (driver.symbols().cuInit)(0) }.0, 0);
    assert_eq!(unsafe { libc::atexit(first) }, 0);
    std::process::exit(1);
}

#[test]
fn it_is_controlled_by_words() {
    run("inner_control", "log=10");
}

#[test]
#[ignore = "another process, which the tests start: cargo test -p cuda-soft-driver --test \
    processes"]
fn inner_control() {
    type Control = unsafe extern "C" fn(*const libc::c_char, *mut libc::c_char, usize) -> i32;
    let driver = load().unwrap();
    let path = std::ffi::CString::new(shared_library().to_str().unwrap()).unwrap();
    let control: Control = unsafe {
        let handle = libc::dlopen(path.as_ptr(), libc::RTLD_NOW);
        std::mem::transmute(libc::dlsym(handle, c"cuda_soft_driver_control".as_ptr()))
    };
    let say = |command: &str| {
        let command = std::ffi::CString::new(command).unwrap();
        let mut answer = [0_u8; 4096];
        let code = unsafe { control(command.as_ptr(), answer.as_mut_ptr().cast(), 4096) };
        (code, std::ffi::CStr::from_bytes_until_nul(&answer).unwrap().to_str().unwrap().to_owned())
    };
    assert_eq!(say("dance").0, 1);
    assert_eq!(say("fault=cuInit:once:code=46"), (0, String::new()));
    let codes = [0, 0].map(|_| unsafe { (driver.symbols().cuInit)(0) }.0);
    assert_eq!(codes, [46, 0]);
    assert_eq!(say("injected").1, "1");
    assert_eq!(say("live").1, "nothing");
    assert!(say("log").1.contains("cuInit(0) = 46 (injected)"));
    assert_eq!(unsafe { control(c"log".as_ptr(), std::ptr::null_mut(), 0) }, 0);
    say("shutdown");
    assert_eq!(unsafe { (driver.symbols().cuInit)(0) }.0, 4);
}

#[test]
fn a_setting_that_is_not_understood_ends_the_process() {
    let output = starting(&own_binary())
        .args(["--exact", &full_name("inner_use"), "--ignored", "--nocapture"])
        .env("CUDA_SOFT_DRIVER", "colour=red")
        .output()
        .unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("there is no setting `colour`"));
    use std::os::unix::ffi::OsStrExt;
    let output = starting(&own_binary())
        .args(["--exact", &full_name("inner_use"), "--ignored", "--nocapture"])
        .env("CUDA_SOFT_DRIVER", std::ffi::OsStr::from_bytes(b"version=12.4,\xff"))
        .output()
        .unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("CUDA_SOFT_DRIVER: it is not UTF-8"));
}

#[test]
#[ignore = "another process, which the tests start: cargo test -p cuda-soft-driver --test \
    processes"]
fn inner_use() {
    let driver = load().unwrap();
    let symbols = driver.symbols();
    assert_eq!(driver.version().to_string(), "13.0");
    let mut stream = std::ptr::null_mut();
    let mut context = std::ptr::null_mut();
    unsafe {
        assert_eq!((symbols.cuInit)(0).0, 0);
        assert_eq!((symbols.cuDevicePrimaryCtxRetain)(&mut context, 0).0, 0);
        assert_eq!((symbols.cuCtxSetCurrent)(context).0, 0);
        assert_eq!((symbols.cuStreamCreate)(&mut stream, 0).0, 0);
        assert_eq!((symbols.cuStreamQuery)(stream).0, 0);
        let mut count = 0;
        assert_eq!((symbols.cuDeviceGetCount)(&mut count).0, 0);
        let two = std::env::var("CUDA_SOFT_DRIVER").unwrap().contains("devices=2");
        assert_eq!(count, if two { 2 } else { 1 });
    }
}

/// The accesses of a kernel in one stream, of one in another stream, and the host's own, told by
/// the functions that other languages call.
#[test]
fn other_languages_declare_their_accesses() {
    assert!(!run("inner_accesses", "time=virtual order=off").contains("error: "));
    let errors = run("inner_accesses", "time=virtual order=report");
    let reports: Vec<&str> = errors.split("cuda-soft-driver: error: ").skip(1).collect();
    let [kernels, host] = &reports[..] else { panic!("{errors}") };
    let parts = |report: &str, parts: [&str; 3]| {
        for part in parts {
            assert!(report.contains(part), "{part}\n{report}");
        }
    };
    parts(kernels, ["  writes   writes in stream ", "  reads    reads in stream ", ", 64 bytes"]);
    parts(host, ["  reads    reads in stream ", "  writes   host_writes on thread ", ", 8 bytes"]);
}

#[test]
#[ignore = "another process, which the tests start: cargo test -p cuda-soft-driver --test \
    processes"]
fn inner_accesses() {
    use cuda_events::sys::{CUdeviceptr, CUstream};
    use cuda_events::{Context, Device, Event, EventFlags, Stream, StreamOptions};
    type InStream = unsafe extern "C" fn(CUstream, CUdeviceptr, usize) -> u32;
    type OnHost = unsafe extern "C" fn(*const libc::c_void, usize) -> u32;
    let path = std::ffi::CString::new(shared_library().to_str().unwrap()).unwrap();
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
    assert!(!handle.is_null());
    let find = |name: &std::ffi::CStr| {
        let found = unsafe { libc::dlsym(handle, name.as_ptr()) };
        assert!(!found.is_null(), "{name:?}");
        found
    };
    let (reads, writes): (InStream, InStream) = unsafe {
        (
            std::mem::transmute::<*mut libc::c_void, InStream>(find(c"cuda_soft_driver_reads")),
            std::mem::transmute::<*mut libc::c_void, InStream>(find(c"cuda_soft_driver_writes")),
        )
    };
    let [host_reads, host_writes]: [OnHost; 2] =
        [find(c"cuda_soft_driver_host_reads"), find(c"cuda_soft_driver_host_writes")]
            .map(|found| unsafe { std::mem::transmute::<*mut libc::c_void, OnHost>(found) });

    let busy = unsafe {
        std::mem::transmute::<*mut libc::c_void, unsafe extern "C" fn(CUstream, u64) -> u32>(find(
            c"cuda_soft_driver_busy",
        ))
    };

    let context = Context::primary(Device::new(load().unwrap(), 0).unwrap()).unwrap();
    let stream = || Stream::new(&context, StreamOptions::new()).unwrap();
    let (one, two) = (stream(), stream());
    let event = Event::new(&context, EventFlags::empty()).unwrap();
    let memory = std::ptr::without_provenance::<libc::c_void>(0x8000);
    // An hour of virtual time.
    assert_eq!(unsafe { busy(one.as_raw(), 3_600_000_000_000) }, 0);
    assert!(!one.query().unwrap().is_done() && two.query().unwrap().is_done());
    one.synchronize().unwrap();
    unsafe {
        assert_eq!(writes(one.as_raw(), 0x7000, 64), 0);
        assert_eq!(reads(two.as_raw(), 0x7000, 64), 0, "nothing orders it");
        // The host writes while a kernel reads, and then when that is done.
        assert_eq!(host_writes(memory, 8), 0);
        assert_eq!(reads(one.as_raw(), 0x8000, 64), 0);
        assert_eq!(host_reads(memory, 8), 0);
        assert_eq!(host_writes(memory, 8), 0, "nothing orders it");
        event.record(&one).unwrap();
        event.synchronize().unwrap();
        assert_eq!(host_writes(memory, 64), 0);
    }
}

/// Other languages make a semaphore and signal it by the two functions that are exported for that.
#[test]
fn other_languages_have_the_other_side_of_a_semaphore() {
    run("inner_semaphores", "");
}

#[test]
#[ignore = "another process, which the tests start: cargo test -p cuda-soft-driver --test \
    processes"]
fn inner_semaphores() {
    use cuda_events::external::{BinarySemaphore, TimelineSemaphore};
    use cuda_events::{Context, Device, Stream, StreamOptions};
    use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
    const INVALID_VALUE: u32 = 1;
    type Make = unsafe extern "C" fn(libc::c_int) -> libc::c_int;
    type Signal = unsafe extern "C" fn(libc::c_int, u64) -> u32;
    let path = std::ffi::CString::new(shared_library().to_str().unwrap()).unwrap();
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
    assert!(!handle.is_null());
    let find = |name: &std::ffi::CStr| {
        let found = unsafe { libc::dlsym(handle, name.as_ptr()) };
        assert!(!found.is_null(), "{name:?}");
        found
    };
    let (make, signal): (Make, Signal) = unsafe {
        (
            std::mem::transmute::<*mut libc::c_void, Make>(find(
                c"cuda_soft_driver_external_semaphore",
            )),
            std::mem::transmute::<*mut libc::c_void, Signal>(find(
                c"cuda_soft_driver_signal_external_semaphore",
            )),
        )
    };
    // One descriptor to import, and one to signal by.
    let made = |timeline: libc::c_int| {
        let fd = unsafe { make(timeline) };
        assert!(fd >= 0, "it is made before the driver is used, too");
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        (fd.try_clone().unwrap(), fd)
    };
    let signal = |file: &OwnedFd, value: u64| unsafe { signal(file.as_raw_fd(), value) };
    let (timeline, their_timeline) = made(1);
    let (binary, their_binary) = made(0);

    let context = Context::primary(Device::new(load().unwrap(), 0).unwrap()).unwrap();
    let stream = Stream::new(&context, StreamOptions::new()).unwrap();
    let device = context.device().uuid().unwrap();
    let binary = unsafe { BinarySemaphore::import_fd(&context, binary, device) }.unwrap();
    let timeline = unsafe { TimelineSemaphore::import_fd(&context, timeline, device) }.unwrap();

    stream.wait_external_semaphore(&timeline, 3).unwrap();
    assert_eq!(signal(&their_timeline, 2), 0);
    assert!(!stream.query().unwrap().is_done());
    assert_eq!(signal(&their_timeline, 3), 0);
    stream.signal_external(&timeline, 4).unwrap();
    stream.synchronize().unwrap();
    assert_eq!(signal(&their_timeline, 4), INVALID_VALUE, "the stream signalled it");
    assert_eq!(signal(&their_timeline, 5), 0);

    stream.wait_external_binary(&binary).unwrap();
    assert!(!stream.query().unwrap().is_done());
    assert_eq!(signal(&their_binary, 0), 0);
    stream.synchronize().unwrap();
    let twice = [0, 0].map(|value| signal(&their_binary, value));
    assert_eq!(twice, [0, INVALID_VALUE], "no wait has consumed the first");

    let file = OwnedFd::from(std::fs::File::open("/dev/null").unwrap());
    assert_eq!(signal(&file, 9), INVALID_VALUE);
}

/// Another thread forks while the first call starts the driver: the child has all of it.
#[test]
#[cfg(target_env = "gnu")]
fn a_fork_during_the_start_has_all_of_it() {
    let path = std::env::temp_dir().join(format!("cuda-soft-driver-start-{}", std::process::id()));
    // It takes far longer to read it than to fork.
    std::fs::write(&path, "call:x\n".repeat(500_000)).unwrap();
    let text = format!("order=report,order_suppress=file:{}", path.display());
    let ended = std::panic::catch_unwind(|| run("inner_fork_during_the_start", &text));
    std::fs::remove_file(path).unwrap();
    ended.unwrap();
}

#[test]
#[cfg(target_env = "gnu")]
#[ignore = "another process, which the tests start: cargo test -p cuda-soft-driver --test \
    processes"]
fn inner_fork_during_the_start() {
    let path = std::ffi::CString::new(shared_library().to_str().unwrap()).unwrap();
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
    let init = unsafe { libc::dlsym(handle, c"cuInit".as_ptr()) };
    assert!(!init.is_null());
    let init: unsafe extern "C" fn(u32) -> u32 = unsafe { std::mem::transmute(init) };
    let settings = std::env::var("CUDA_SOFT_DRIVER").unwrap();
    let (_, list) = settings.rsplit_once(':').unwrap();
    // The library reads it once when it is loaded, too.
    let list = std::ffi::CString::new(list).unwrap();
    let opened = unsafe { libc::inotify_init() };
    assert!(unsafe { libc::inotify_add_watch(opened, list.as_ptr(), libc::IN_OPEN) } >= 0);
    std::thread::scope(|scope| {
        scope.spawn(|| assert_eq!(unsafe { init(0) }, 0));
        let mut event = [0_u8; 256];
        assert!(unsafe { libc::read(opened, event.as_mut_ptr().cast(), 256) } > 0);
        let child = unsafe { libc::fork() };
        if child == 0 {
            unsafe {
                libc::alarm(60);
                // If the parent has been faster with its own call, the driver is the parent's.
                libc::_exit(i32::from(![0, 3].contains(&init(0))));
            }
        }
        let mut status = 0;
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        assert_eq!(status, 0, "the child has ended");
    });
}
