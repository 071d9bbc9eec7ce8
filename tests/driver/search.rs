//! Where the library is looked for. The environment is the process's, so each of these runs in one
//! of its own.
//!
//! On Windows the crate looks in the system's folder alone, where no test may put a library, and
//! the emulator's processes are elevated, which take no library from the environment: windows.rs.

#![cfg(target_os = "linux")]

use crate::common;

use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use common::child::{self, full_name, role, say};
use common::{say_not_run, shared_library};
use cuda_events::loader::{DRIVER_VARIABLE, LoadFailure};
use cuda_events::{Device, Driver, LoadOptions};

use crate::loading::*;

/// The candidates and reasons of a default search that finds nothing because `folder` has a bad
/// library of that name.
#[track_caller]
fn assert_default_search_found_nothing(folder: &Path) {
    let loaded = Driver::load();
    if Path::new(WSL).exists() {
        // The second candidate is good here: the first one's failure is not the end.
        assert_eq!(
            loaded.expect("the driver of WSL").library(),
            Path::new(WSL).canonicalize().ok().as_deref()
        );
        return;
    }
    let error = refused(loaded);
    let candidates: Vec<_> =
        error.attempts().iter().filter_map(|attempt| attempt.candidate()).collect();
    assert_eq!(candidates, [Path::new(USUAL), Path::new(WSL)]);
    let reasons: Vec<_> =
        error.attempts().iter().map(|attempt| open_text(attempt.failure())).collect();
    let musl = cfg!(target_env = "musl");
    let reason = if musl { "Exec format error" } else { "invalid ELF header" };
    assert!(reasons[0].contains(reason), "{reasons:?}");
    assert!(reasons[1].contains("No such file or directory"), "{reasons:?}");
    let bad = folder.join(USUAL);
    let (first, second) = match musl {
        true => (
            format!("Error loading shared library libcuda.so.1: {reason}"),
            "Error loading shared library /usr/lib/wsl/lib/libcuda.so.1: No such file or directory",
        ),
        false => (
            format!("libcuda.so.1: {}: {reason}", bad.display()),
            "/usr/lib/wsl/lib/libcuda.so.1: cannot open shared object file: No such file or \
                directory",
        ),
    };
    let advice = "install the NVIDIA display driver, or start the container with its GPUs (docker \
                  run --gpus all); run cuda-events-doctor for details";
    assert_eq!(
        error.to_string(),
        format!("no usable CUDA driver library: {first}; {second}; {advice}")
    );
}

/// A file of the driver's name that the system's search finds before any other, and that is no
/// library.
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
        let named =
            std::env::var_os(DRIVER_VARIABLE).map(PathBuf::from).expect("set by the parent");
        if named.exists() {
            let driver = Driver::load().expect("the variable names a driver");
            assert_eq!(driver.library(), named.canonicalize().ok().as_deref());
            assert_eq!(Driver::load(), Ok(driver));
        } else {
            // The system's search would find a driver, but nothing takes the place of what was
            // named.
            let error = refused(Driver::load());
            let failure = only_failure(&error, &named);
            assert!(open_text(&failure).contains("No such file or directory"), "{failure}");
            let text = error.to_string();
            let cause =
                if cfg!(target_env = "musl") { "Error loading shared library " } else { "" };
            let names = format!("CUDA_EVENTS_DRIVER names {cause}{}: ", named.display());
            assert!(text.contains(&names), "{text}");
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

/// For a pipe the system's loader waits until somebody writes into it.
#[test]
fn a_pipe_or_a_device_is_no_library() {
    unsafe extern "C" {
        fn mkfifo(name: *const std::ffi::c_char, mode: u32) -> std::ffi::c_int;
    }
    if role().is_some() {
        let named =
            std::env::var_os(DRIVER_VARIABLE).map(PathBuf::from).expect("set by the parent");
        let error = refused(Driver::load());
        let failure = only_failure(&error, &named);
        assert_eq!(open_text(&failure), "it is not a plain file");
        return say("done");
    }
    let folder = Folder::new("pipe");
    let pipe = folder.path("libcuda.so.1");
    let name = std::ffi::CString::new(pipe.as_os_str().as_encoded_bytes()).expect("no zero");
    // SAFETY: the declaration is the C library's, and the name a C string.
    assert_eq!(unsafe { mkfifo(name.as_ptr(), 0o600) }, 0);
    for named in [pipe, PathBuf::from("/dev/zero")] {
        in_child("a_pipe_or_a_device_is_no_library", |command| {
            command.env(DRIVER_VARIABLE, named);
        });
    }
}

/// A program cannot choose the library by its own environment: setting that is safe code in older
/// editions, and naming a library is not.
#[test]
fn a_process_cannot_change_the_variable() {
    let set = |value: &Path| {
        // SAFETY: the process has no other thread that reads or writes its environment.
        unsafe { std::env::set_var(DRIVER_VARIABLE, value) };
    };
    if role().is_some() {
        let started = std::env::var_os(DRIVER_VARIABLE).filter(|value| !value.is_empty());
        let changed = shared_library();
        set(&changed);
        let error = refused(Driver::load());
        assert_eq!(only_failure(&error, &changed), LoadFailure::ChangedVariable);
        let text = error.to_string();
        assert!(
            text.contains("this process was not started with that value of CUDA_EVENTS_DRIVER"),
            "{text}"
        );
        // SAFETY: there is no such file.
        let missing = unsafe { LoadOptions::new().path("/missing") };
        let other = refused(Driver::load_with(&missing));
        assert!(matches!(only_failure(&other, Path::new("/missing")), LoadFailure::Open(_)));
        let Some(started) = started else {
            return say("done");
        };
        // What it was started with counts again, also if it is a part of another value.
        set(Path::new(&started));
        let driver = Driver::load().expect("what the process was started with");
        let mut longer = started.clone();
        longer.push("2");
        set(Path::new(&longer));
        assert_eq!(
            only_failure(&refused(Driver::load()), Path::new(&longer)),
            LoadFailure::ChangedVariable
        );
        set(Path::new(&started));
        assert_eq!(Driver::load(), Ok(driver));
        return say("done");
    }
    let folder = Folder::new("changed");
    let link = folder.path("another.so");
    symlink(shared_library(), &link).expect("a symbolic link");
    for named in [None, Some(PathBuf::new()), Some(link)] {
        in_child("a_process_cannot_change_the_variable", |command| {
            if let Some(named) = named {
                // One with the name as its end, and one whose value has the assignment, are others.
                let (other, value) = (format!("X{DRIVER_VARIABLE}"), shared_library());
                command.env(other, value).env(DRIVER_VARIABLE, named);
                let inside = format!("{DRIVER_VARIABLE}={}", shared_library().display());
                command.env("A_TEST", inside);
            }
        });
    }
}

#[test]
fn the_variable_takes_no_relative_path() {
    if role().is_some() {
        let named =
            std::env::var_os(DRIVER_VARIABLE).map(PathBuf::from).expect("set by the parent");
        let error = refused(Driver::load());
        assert_eq!(only_failure(&error, &named), LoadFailure::RelativePath);
        let text = error.to_string();
        assert!(
            text.contains(&format!(
                "CUDA_EVENTS_DRIVER names {}: the path is relative",
                named.display()
            )),
            "{text}"
        );
        assert!(
            text.ends_with("set CUDA_EVENTS_DRIVER to the absolute path of a driver, or unset it"),
            "{text}"
        );
        return say("done");
    }
    let library = shared_library();
    let (folder, name) =
        (library.parent().expect("a folder"), library.file_name().expect("a name"));
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
            let driver = common::load_from(&good).expect("the program names a driver");
            assert_eq!(driver.library(), good.canonicalize().ok().as_deref());
        } else {
            let error = refused(common::load_from(&bad));
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

/// Whether the kernel says that this process has more rights than the process that started it.
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
    line.trim_start_matches(':')
        .split_whitespace()
        .map(|word| word.parse().expect("a number"))
        .collect()
}

#[test]
fn a_privileged_process_ignores_the_variable() {
    const TEST: &str = "a_privileged_process_ignores_the_variable";
    if role().is_some() {
        let named =
            std::env::var_os(DRIVER_VARIABLE).map(PathBuf::from).expect("set by the parent");
        let privileged = is_privileged();
        match Driver::load() {
            Ok(driver) => {
                assert_eq!(driver.library() == named.canonicalize().ok().as_deref(), !privileged)
            }
            Err(error) => {
                let why =
                    "; CUDA_EVENTS_DRIVER is set but ignored because this program has more rights";
                assert!(privileged && error.to_string().contains(why), "{error}");
                assert_eq!(refused(Err(error)).attempts().len(), 2);
            }
        }
        // Nor does it let the variable of the software driver choose what that one does and writes.
        let driver = Driver::load_with(&common::options_of(named)).expect("its own choice");
        assert_eq!(Device::count(driver), Ok(if privileged { 1 } else { 2 }));
        return say(if privileged { "ignored" } else { "honoured" });
    }

    // A copy of this test that sets another group than ours, which gives it no right that matters.
    let own = status("Gid")[0];
    let root = status("Uid")[1] == 0;
    let another =
        if root { Some(65534) } else { status("Groups").into_iter().find(|group| *group != own) };
    let Some(another) = another else {
        return say_not_run("it needs root, or a user with a second group");
    };
    if child::is_emulated() {
        return say_not_run("an emulator gives no program another's rights");
    }
    if status("NoNewPrivs")[0] != 0 {
        return say_not_run("this process may not start privileged ones (no_new_privs)");
    }
    let folder = Folder::new("privileged");
    let copy = folder.path("test");
    // By another process: a child that this one starts meanwhile for another test would have the
    // copy open for writing until it execs, and a file that is open for writing cannot be started.
    assert!(
        Command::new("cp")
            .args([&child::own_binary(), &copy])
            .status()
            .expect("cp is there")
            .success()
    );
    let run = |expected: &str| {
        let answer = |program: &Path| {
            let mut command = child::command(program, &full_name(TEST), "loads");
            command.env(DRIVER_VARIABLE, shared_library()).env("CUDA_SOFT_DRIVER", "devices=2");
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
        assert!(
            !root,
            "{}: set-group-ID programs do not work there; set TMPDIR",
            folder.0.display()
        );
        return say_not_run("set-group-ID programs do not work in the folder for temporary files");
    }
    assert!(run("ignored"));
}
