//! The stand-in in front of the software driver, in programs that load the driver's library by its
//! name and know nothing of a checker.

#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use cuda_events::{Context, Device, Driver, Event, EventFlags, Stream, StreamOptions};
use cuda_test_harness::child::{command, full_name, own_binary, role};
use cuda_test_harness::shared_library;

fn stand_in() -> PathBuf {
    env!("CARGO_BIN_EXE_cuda-order-check").into()
}

/// Two streams set the same bytes; an event orders them in the second role.
fn program(role: &str) {
    let driver = Driver::load().expect("there is a library of this name");
    let context = Context::primary(Device::new(driver, 0).expect("it has a device"));
    let context = context.expect("it has a context");
    let [one, other] = [(); 2].map(|()| Stream::new(&context, StreamOptions::new()).expect("two"));
    let event = Event::new(&context, EventFlags::empty()).expect("an event");
    let symbols = driver.symbols();
    let mut memory = 0;
    // SAFETY: a place for the address, memory of that size, and streams that live.
    unsafe {
        assert_eq!((symbols.cuCtxSetCurrent)(context.as_raw()).0, 0);
        assert_eq!((symbols.cuMemAlloc_v2)(&mut memory, 256).0, 0);
        assert_eq!((symbols.cuMemsetD8Async)(memory, 1, 256, one.as_raw()).0, 0);
        if role == "ordered" {
            event.record(&one).expect("it records");
            other.wait_event(&event).expect("it waits");
        }
        assert_eq!((symbols.cuMemsetD8Async)(memory + 64, 1, 64, other.as_raw()).0, 0);
    }
    // The checker hooks no function of this name, so the driver's is found.
    type GraphCreate = unsafe extern "C" fn(*mut usize, u32) -> u32;
    let mut graph = 0;
    // SAFETY: the driver is loaded; the function has this type, and a place for the handle.
    unsafe {
        let library = libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW);
        let create = libc::dlsym(library, c"cuGraphCreate".as_ptr());
        let create: GraphCreate = std::mem::transmute(create);
        assert_eq!([create(&mut graph, 0), create(&mut graph, 0)], [0, 0]);
    }
    // Neither has this, and it may order anything.
    type Flush = unsafe extern "C" fn(u32, u32) -> u32;
    // SAFETY: as above.
    unsafe {
        let library = libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW);
        let flush = libc::dlsym(library, c"cuFlushGPUDirectRDMAWrites".as_ptr());
        let flush: Flush = std::mem::transmute(flush);
        assert_ne!([flush(0, 1), flush(0, 1)], [0, 0], "the software driver has it not");
    }
    one.synchronize().expect("it ends");
    other.synchronize().expect("it ends");
}

/// What the checker wrote about a program that is started so, and what that printed.
fn run(folder: &Path, test: &str, role: &str, set: impl FnOnce(&mut Command)) -> [String; 2] {
    let log = folder.join("log");
    let _ = fs::remove_file(&log);
    let mut command = command(&own_binary(), &full_name(test), role);
    set(command.env("CUDA_ORDER_CHECK", format!("log={}", log.display())));
    let output = command.output().expect("the test's own program runs");
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{printed}");
    [fs::read_to_string(log).expect("it is written at the end"), printed]
}

/// The setting that names the real library.
fn real() -> String {
    format!("library={}", shared_library().display())
}

/// Adds a setting.
fn add(command: &mut Command, setting: &str) {
    let value = |(name, value): (&OsStr, Option<&OsStr>)| {
        (name == "CUDA_ORDER_CHECK").then(|| value.expect("it is set").to_owned())
    };
    let mut settings = command.get_envs().find_map(value).expect("it is set");
    settings.push(format!(",{setting}"));
    command.env("CUDA_ORDER_CHECK", settings);
}

/// The log of a program that is traced.
fn log(folder: &Path, test: &str, role: &str, set: impl FnOnce(&mut Command)) -> String {
    let trace = folder.join(format!("{role}.trace"));
    let [log, _] = run(folder, test, role, |command| {
        set(command);
        add(command, &format!("trace={}", trace.display()));
    });
    let trace = fs::read_to_string(trace).expect("it is written");
    for part in [
        "\nnot hooked: cuGraphCreate 2\n",
        "cuMemsetD8Async to=0x",
        " cuMemAlloc_v2 address=->0x",
        " = 0\n",
    ] {
        assert!(trace.contains(part), "{part}:\n{trace}");
    }
    log
}

fn folder(name: &str, library: &Path) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir(&folder).expect("a new folder");
    symlink(library, folder.join("libcuda.so.1")).expect("a link in it");
    folder
}

fn judge(test: &str, folder: &Path, set: impl Fn(&mut Command)) {
    let wrong = log(folder, test, "unordered", &set);
    for part in ["missing order", "64 bytes", "writes   cuMemsetD8Async in", "1 finding in"] {
        assert!(wrong.contains(part), "{part}:\n{wrong}");
    }
    let good = log(folder, test, "ordered", &set);
    assert!(good.starts_with("order check: 0 findings in "), "{good}");
    let line = "\norder check: not modelled, so each call counts as ordering everything: \
                cuFlushGPUDirectRDMAWrites 2 times\n";
    assert!([&wrong, &good].into_iter().all(|log| log.ends_with(line)), "{wrong}{good}");
    fs::remove_dir_all(folder).expect("it was made here");
}

#[test]
fn a_library_path_suffices() {
    if let Some(role) = role() {
        return program(&role);
    }
    let folder = folder("order-check-path", &stand_in());
    judge("a_library_path_suffices", &folder.clone(), |command| {
        add(command.env("LD_LIBRARY_PATH", &folder), &real());
    });
}

#[test]
fn a_preloaded_library_finds_the_real_one() {
    if let Some(role) = role() {
        return program(&role);
    }
    let folder = folder("order-check-preload", &shared_library());
    judge("a_preloaded_library_finds_the_real_one", &folder.clone(), |command| {
        command.env("LD_LIBRARY_PATH", &folder).env("LD_PRELOAD", stand_in());
    });
}

/// An error inside the library changes nothing for the program, wherever in the library it is.
#[test]
fn an_error_inside_switches_the_checker_off() {
    if let Some(role) = role() {
        return program(&role);
    }
    let folder = folder("order-check-error", &stand_in());
    for planted in ["cuMemAlloc_v2", "cuMemsetD8Async", "cuStreamSynchronize", "cuEventCreate"] {
        let [log, printed] =
            run(&folder, "an_error_inside_switches_the_checker_off", "unordered", |command| {
                command.env("LD_LIBRARY_PATH", &folder).env("CUDA_ORDER_CHECK_PLANT", planted);
                add(command, &real());
            });
        let lines: Vec<&str> = log.lines().collect();
        let last = "order check: off since an error inside the checker: planted";
        assert_eq!(lines.last(), Some(&last), "{planted}:\n{log}");
        // What was found before it stays.
        let found = log.matches("missing order").count();
        assert_eq!(found, usize::from(planted == "cuStreamSynchronize"), "{planted}:\n{log}");
        let message = "cuda-order-check: an error inside the checker: planted. It is off";
        assert_eq!(printed.matches(message).count(), 1, "{planted}:\n{printed}");
    }
    fs::remove_dir_all(folder).expect("it was made here");
}

/// Ends as the role says, after a program with an error.
fn ends(role: &str) {
    match role {
        "leaves" => {
            program("unordered");
            // SAFETY: it has no preconditions.
            unsafe { libc::_exit(0) };
        }
        "forks-early" => {
            // SAFETY: the child goes on as this program does.
            let child = unsafe { libc::fork() };
            program(if child == 0 { "unordered" } else { "ordered" });
            // SAFETY: no preconditions; the parent's child, without a place for its status.
            unsafe {
                if child == 0 {
                    libc::_exit(0);
                }
                libc::waitpid(child, std::ptr::null_mut(), 0);
            }
        }
        _ => {
            program("unordered");
            // SAFETY: as above. The driver answers in a child, though with an error.
            unsafe {
                let library = libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW);
                let wait = libc::dlsym(library, c"cuCtxSynchronize".as_ptr());
                let wait: unsafe extern "C" fn() -> u32 = std::mem::transmute(wait);
                let child = libc::fork();
                if child == 0 {
                    assert_ne!(wait(), 0);
                    libc::exit(0);
                }
                libc::waitpid(child, std::ptr::null_mut(), 0);
            }
        }
    }
}

/// However a process ends, and whose child it is, it writes its own summary once.
#[test]
fn each_process_has_its_own_summary() {
    if let Some(role) = role() {
        return ends(&role);
    }
    let test = "each_process_has_its_own_summary";
    for (role, expected) in
        [("leaves", &[1_usize][..]), ("forks-early", &[0, 1]), ("forks-late", &[1])]
    {
        let folder = folder("order-check-ends", &shared_library());
        let mut command = command(&own_binary(), &full_name(test), role);
        command.env("CUDA_ORDER_CHECK", format!("log={}/log-%p", folder.display()));
        command.env("LD_LIBRARY_PATH", &folder).env("LD_PRELOAD", stand_in());
        let output = command.output().expect("the test's own program runs");
        assert!(output.status.success(), "{role}: {}", String::from_utf8_lossy(&output.stderr));
        let files = fs::read_dir(&folder).expect("it is there").map(|it| it.expect("it is").path());
        let logs = files.filter(|path| path.to_string_lossy().contains("/log-"));
        let mut found: Vec<usize> = logs
            .map(|path| {
                let log = fs::read_to_string(path).expect("it is a text");
                assert_eq!(log.matches(" kernels, ").count(), 1, "{role}:\n{log}");
                log.matches("missing order").count()
            })
            .collect();
        found.sort_unstable();
        assert_eq!(found, expected, "{role}");
        fs::remove_dir_all(folder).expect("it was made here");
    }
}
