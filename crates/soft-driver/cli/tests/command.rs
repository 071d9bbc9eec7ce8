//! The command `cuda-soft-driver`, with programs that load the driver by its name.

#![cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    target_env = "gnu"
))]

use std::ffi::{CStr, CString, c_char, c_void};
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::ptr::null_mut;

use cuda_events::sys::{CUstream, Version};
use cuda_events::{Context, Device, Driver, Event, EventFlags, Stream, StreamOptions};
use cuda_test_harness::child::{command, own_binary, role, say};

const SELF: &str = env!("CARGO_BIN_EXE_cuda-soft-driver");

/// A folder that is removed.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("soft-driver-cli-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).expect("a new folder");
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The command, whose links are in the folder.
fn soft(folder: &Folder, arguments: &[&str]) -> Command {
    let mut command = Command::new(SELF);
    command.args(arguments).env("XDG_CACHE_HOME", &folder.0);
    command.env_remove("CUDA_SOFT_DRIVER").env_remove("LD_LIBRARY_PATH");
    command
}

/// `run` with these options, and a program of this file.
fn run(folder: &Folder, options: &[&str], test: &str, role: &str) -> Command {
    let program = command(&own_binary(), test, role);
    let mut run = soft(folder, &["run"]);
    run.args(options).arg("--").arg(program.get_program()).args(program.get_args());
    let set = program.get_envs().filter_map(|(name, value)| Some((name, value?)));
    run.envs(set);
    run
}

fn ended(command: &mut Command) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = command.output().expect("it starts");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (status.code(), text(stdout), text(stderr))
}

/// Two streams set the same bytes; an event orders them in some roles. An event is not destroyed
/// in others.
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
        if role != "unordered" {
            event.record(&one).expect("it records");
            other.wait_event(&event).expect("it waits");
        }
        assert_eq!((symbols.cuMemsetD8Async)(memory + 64, 1, 64, other.as_raw()).0, 0);
        assert_eq!((symbols.cuCtxSynchronize)().0, 0);
        assert_eq!((symbols.cuMemFree_v2)(memory).0, 0);
        assert_eq!((symbols.cuCtxSetCurrent)(core::ptr::null_mut()).0, 0);
    }
    match role {
        "leaking" => std::mem::forget(event),
        "failing" => std::process::exit(7),
        "devices" => {
            say(&format!(
                "{} {} {}",
                Device::count(driver).expect("it counts"),
                driver.version() == Version::new(12, 4),
                driver.library().expect("a file").display()
            ));
        }
        _ => {}
    }
}

#[test]
fn the_settings_are_the_programs() {
    if let Some(role) = role() {
        return program(&role);
    }
    let folder = Folder::new("settings");
    let options = ["--devices=2", "--version", "12.4"];
    let test = "the_settings_are_the_programs";
    let mut command = run(&folder, &options, test, "devices");
    // What names another driver is no hindrance, and what is set already is replaced.
    command.env("CUDA_EVENTS_DRIVER", "/nowhere").env("CUDA_SOFT_DRIVER", "devices=5");
    let (code, text, errors) = ended(&mut command);
    assert_eq!((code, &*errors), (Some(0), ""), "{text}");
    assert!(text.contains(&format!("@ 2 true {SELF}\n")), "{text}");
}

#[test]
fn both_names_are_the_driver() {
    let folder = Folder::new("names");
    assert_eq!(ended(&mut soft(&folder, &["run", "true"])).0, Some(0));
    let links = fs::read_dir(folder.0.join("cuda-soft-driver")).expect("it is there");
    let links = links.map(|it| it.expect("an entry").path()).next().expect("one folder");
    for name in ["libcuda.so.1", "libcuda.so"] {
        assert_eq!(fs::read_link(links.join(name)).expect("a link"), Path::new(SELF), "{name}");
    }
}

#[test]
fn findings_and_leaks_come_at_the_end() {
    if let Some(role) = role() {
        return program(&role);
    }
    let test = "findings_and_leaks_come_at_the_end";
    let folder = Folder::new("findings");
    let check = |options: &[&str], role, expected, parts: &[&str]| {
        let (code, text, errors) = ended(&mut run(&folder, options, test, role));
        assert_eq!(code, Some(expected), "{options:?} {role}:\n{text}{errors}");
        for part in parts {
            assert!(errors.contains(part), "{options:?} {role} lacks {part}:\n{errors}");
        }
        assert_eq!(errors.is_empty(), parts.is_empty(), "{options:?} {role}:\n{errors}");
    };
    let order = "--order=report";
    let found = ["process ", ": error: missing order: ", "missing order: 1 finding in 1 process\n"];
    check(&[order], "unordered", 66, &found);
    check(&[order, "--exitcode", "3"], "unordered", 3, &found);
    check(&[order, "--exitcode=0"], "unordered", 0, &found);
    check(&[order, "--order-format=json"], "unordered", 66, &["1 finding in 1 process\n"]);
    check(&[order], "ordered", 0, &["missing order: 0 findings in 1 process\n"]);
    check(&[], "unordered", 0, &[]);
    let leaks = ["process ", ": still alive: ", "1 event"];
    check(&[], "leaking", 0, &leaks);
    check(&["--leaks", "fail"], "leaking", 66, &leaks);
    check(&["--leaks", "ignore"], "leaking", 0, &[]);
    // A program that fails has its own status, whatever was found.
    check(&[order, "--leaks=fail"], "failing", 7, &["still alive: ", "0 findings in 1 process\n"]);
    // Nothing of the command is left.
    let mine =
        |it: &fs::DirEntry| it.file_name().to_string_lossy().starts_with("cuda-soft-driver-");
    let temporary = Folder::new("temporary");
    let mut command = run(&folder, &[order], test, "unordered");
    assert_eq!(ended(command.env("TMPDIR", &temporary.0)).0, Some(66));
    let left = fs::read_dir(&temporary.0).expect("it is there").map(|it| it.expect("an entry"));
    assert_eq!(left.filter(mine).count(), 0);
}

/// The kernel of an image writes what a copy reads, and a program in some roles orders them.
fn program_with_kernel(role: &str) {
    const IMAGE: &str = include_str!("../../tests/calls/images.ptx");
    let driver = Driver::load().expect("there is a library of this name");
    let context = Context::primary(Device::new(driver, 0).expect("it has a device"));
    let context = context.expect("it has a context");
    let [one, other] = [(); 2].map(|()| Stream::new(&context, StreamOptions::new()).expect("two"));
    let event = Event::new(&context, EventFlags::empty()).expect("an event");
    let symbols = driver.symbols();
    let entry = |name: &CStr| {
        let look_up = symbols.cuGetProcAddress_v2.expect("a driver of CUDA 12.0");
        let (mut found, none) = (null_mut(), null_mut());
        // SAFETY: a name, and a place for the address; the status may be NULL.
        assert_eq!(unsafe { look_up(name.as_ptr().cast(), &mut found, 12000, 0, none) }.0, 0);
        assert!(!found.is_null(), "{name:?}");
        found
    };
    type Load = unsafe extern "C" fn(*mut *mut c_void, *const c_void) -> u32;
    type Find = unsafe extern "C" fn(*mut *mut c_void, *mut c_void, *const c_char) -> u32;
    #[rustfmt::skip]
    type Launch = unsafe extern "C" fn(*mut c_void, u32, u32, u32, u32, u32, u32, u32, CUstream,
        *const *const u64, *mut c_void) -> u32;
    let image = CString::new(IMAGE).expect("a text");
    let (mut module, mut kernel, mut memory) = (null_mut(), null_mut(), 0);
    let mut host = [0_u8; 1024];
    // SAFETY: the types are the driver's; places for the results, and handles that live.
    unsafe {
        let load: Load = std::mem::transmute(entry(c"cuModuleLoadData"));
        let find: Find = std::mem::transmute(entry(c"cuModuleGetFunction"));
        let launch: Launch = std::mem::transmute(entry(c"cuLaunchKernel"));
        assert_eq!((symbols.cuCtxSetCurrent)(context.as_raw()).0, 0);
        assert_eq!((symbols.cuMemAlloc_v2)(&mut memory, 2048).0, 0);
        assert_eq!(load(&mut module, image.as_ptr().cast()), 0);
        assert_eq!(find(&mut kernel, module, c"copy".as_ptr()), 0);
        let given = [memory, memory + 1024, 256];
        let each = [&raw const given[0], &raw const given[1], &raw const given[2]];
        let stream = one.as_raw();
        let done = launch(kernel, 2, 1, 1, 128, 1, 1, 0, stream, each.as_ptr(), null_mut());
        assert_eq!(done, 0);
        if role == "ordered" {
            event.record(&one).expect("it records");
            other.wait_event(&event).expect("it waits");
        }
        let to = host.as_mut_ptr().cast();
        assert_eq!((symbols.cuMemcpyDtoHAsync_v2)(to, memory, 1024, other.as_raw()).0, 0);
        assert_eq!((symbols.cuCtxSynchronize)().0, 0);
        assert_eq!((symbols.cuMemFree_v2)(memory).0, 0);
    }
}

#[test]
fn kernels_of_images_are_checked() {
    if let Some(role) = role() {
        return program_with_kernel(&role);
    }
    let test = "kernels_of_images_are_checked";
    let folder = Folder::new("kernels");
    let not_run = "kernels of images did not run and changed no memory: \"copy\" 1 time\n";
    for (role, expected, found) in
        [("unordered", 66, "1 finding in"), ("ordered", 0, "0 findings in")]
    {
        let (code, text, errors) = ended(&mut run(&folder, &["--order=report"], test, role));
        assert_eq!(code, Some(expected), "{role}:\n{text}{errors}");
        for part in [found, not_run] {
            assert!(errors.contains(part), "{role} lacks {part}:\n{errors}");
        }
    }
    // Without the checker it says that the kernel does nothing.
    let (code, text, errors) = ended(&mut run(&folder, &[], test, "unordered"));
    assert_eq!(code, Some(0), "{text}{errors}");
    assert!(errors.contains("such as \"copy\", do not run, and change no memory"), "{errors}");
}

/// What is not known may be a finding.
#[test]
fn lost_reports_are_no_success() {
    let folder = Folder::new("lost");
    // Of the settings the one that names the folder.
    let place = "$(echo $CUDA_SOFT_DRIVER | sed 's/.*order_log=//; s/\\/order-%p.*//')";
    for (does, part) in [
        (format!("rm -r {place}"), " was removed"),
        (format!("rm -r {place}; mkdir {place}"), " was removed"),
        (format!("mkdir {place}/order-7"), "/order-7: "),
        (format!("mkdir {place}/leaks-7"), "/leaks-7: "),
    ] {
        for (status, expected) in [("0", Some(66)), ("7", Some(7))] {
            let script = format!("{does}; exit {status}");
            let options = ["run", "--order=report", "--leaks=fail", "sh", "-c", &script];
            let mut command = soft(&folder, &options);
            let (code, _, errors) = ended(command.env("TMPDIR", &folder.0));
            assert_eq!(code, expected, "{script}: {errors}");
            let lost = errors.contains("cuda-soft-driver: the reports are lost: ");
            assert!(lost && errors.contains(part), "{script}: {errors}");
        }
    }
}

#[test]
fn the_folders_of_reports_are_absolute_and_go() {
    let folder = Folder::new("reports");
    let temporary = folder.0.join("t");
    // No process has the first number.
    let left = |process: u32| temporary.join(format!("cuda-soft-driver-{process}-0"));
    let none = i32::MAX.unsigned_abs();
    let [ended_one, living, elsewhere] = [none, std::process::id(), none - 1].map(left);
    for it in [&ended_one, &living, &elsewhere] {
        fs::create_dir_all(it).expect("a folder");
    }
    // As in a container, where processes have other numbers.
    let locked = fs::File::open(&elsewhere).expect("it is there");
    // SAFETY: the file is open.
    assert_eq!(unsafe { libc::flock(std::os::fd::AsRawFd::as_raw_fd(&locked), libc::LOCK_EX) }, 0);
    let mut command =
        soft(&folder, &["run", "sh", "-c", "echo $CUDA_SOFT_DRIVER $LD_LIBRARY_PATH"]);
    // There is no cache, so the links are below the temporary folder as well.
    command.env_remove("XDG_CACHE_HOME").env_remove("HOME");
    let (code, text, errors) = ended(command.current_dir(&folder.0).env("TMPDIR", "t"));
    assert_eq!(code, Some(0), "{errors}");
    let begin = format!("{}/cuda-soft-driver-", temporary.display());
    for part in [format!("leaks_log={begin}"), format!(" {begin}")] {
        assert!(text.contains(&part), "{text} lacks {part}");
    }
    assert!(living.exists() && elsewhere.exists() && !ended_one.exists());
}

/// What children find counts, as with `ctest`, which makes no call itself.
#[test]
fn children_are_covered() {
    if let Some(role) = role() {
        return program(&role);
    }
    let folder = Folder::new("children");
    let program = run(&folder, &["--order=report"], "children_are_covered", "unordered");
    let arguments: Vec<_> =
        program.get_args().map(|it| it.to_string_lossy().into_owned()).collect();
    let at = arguments.iter().position(|it| it == "--").expect("the options end") + 1;
    let line = format!("{0} && {0}; true", arguments[at..].join(" "));
    let mut shell = soft(&folder, &["run", "--order=report", "sh", "-c", &line]);
    shell.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let (code, text, errors) = ended(&mut shell);
    assert_eq!(code, Some(66), "{text}{errors}");
    assert!(errors.ends_with("missing order: 2 findings in 2 processes\n"), "{errors}");
}

#[test]
fn the_end_of_the_program_is_that_of_the_command() {
    let folder = Folder::new("ends");
    pipe(&folder.0.join("pipe"));
    let of_pipe = format!("--order_suppress=file:{}/pipe", folder.0.display());
    let status = |arguments: &[&str]| ended(&mut soft(&folder, arguments));
    assert_eq!(status(&["run", "sh", "-c", "exit 5"]).0, Some(5));
    assert_eq!(status(&["run", "sh", "-c", "kill -9 $$"]).0, Some(128 + 9));
    // What is not covered is named, as a static program or one for another C library.
    let (code, _, errors) = status(&["run", "--order=report", "true"]);
    assert!(code == Some(0) && errors.contains("no process has reported"), "{errors}");
    assert_eq!(status(&["run", "true"]).2, "");
    assert_eq!(status(&["run", "/nowhere/x"]).0, Some(127));
    assert_eq!(status(&["run", "/"]).0, Some(126));
    for (wrong, part) in [
        (&["run"][..], "there is no program"),
        (&["run", "--device=2", "true"], "there is no setting `device`"),
        (&["run", "--order=report", &of_pipe, "true"], "pipe: it is not a plain file"),
        (&["start"], "`start` is no command"),
        (&["install"], "into which folder"),
        (&["install", "a", "b"], "usage: "),
    ] {
        let (code, _, errors) = status(wrong);
        assert!(code == Some(2) && errors.contains(part), "{wrong:?}: {code:?} {errors}");
    }
    // A signal for the command alone goes to the program.
    for signal in ["TERM", "INT", "QUIT"] {
        let script = format!(
            "trap 'exit 9' {signal}; echo; while [ $((i+=1)) -lt 2000 ]; do sleep 0.01; done"
        );
        let mut command = soft(&folder, &["run", "sh", "-c", &script]);
        // A shell starts what runs in the background without two of them.
        let usual = || {
            for signal in [libc::SIGINT, libc::SIGQUIT] {
                // SAFETY: it sets no handler.
                unsafe { libc::signal(signal, libc::SIG_DFL) };
            }
            Ok(())
        };
        // SAFETY: it makes calls alone that may be made after a fork.
        unsafe { command.pre_exec(usual) };
        let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
        output.read_line(&mut line).expect("its line");
        let kill = format!("kill -{signal} {}", child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().expect("it runs").success());
        assert_eq!(child.wait().expect("it ends").code(), Some(9), "{signal}");
    }
}

#[test]
fn installed_it_serves_a_path() {
    if let Some(role) = role() {
        return program(&role);
    }
    let folder = Folder::new("installed");
    let place = folder.0.join("a/b");
    let text = place.to_str().expect("text");
    for _ in 0..2 {
        let (code, said, errors) = ended(&mut soft(&folder, &["install", text]));
        assert_eq!((code, &*errors), (Some(0), ""));
        assert!(said.ends_with(&format!("LD_LIBRARY_PATH={text} PROGRAM\n")), "{said}");
    }
    let mut names: Vec<_> = fs::read_dir(&place)
        .expect("it is there")
        .map(|it| it.expect("an entry").file_name().into_string().expect("text"))
        .collect();
    names.sort();
    assert_eq!(names, ["libcuda.so", "libcuda.so.1"]);
    let mut program = command(&own_binary(), "installed_it_serves_a_path", "devices");
    program.env_remove("CUDA_EVENTS_DRIVER").env("LD_LIBRARY_PATH", &place);
    let (code, said, errors) = ended(program.env("CUDA_SOFT_DRIVER", "devices=3"));
    assert!(
        code == Some(0) && said.contains(&format!("@ 3 false {text}/libcuda.so.1\n")),
        "{said}{errors}"
    );
    // The new file is no link to another.
    let other = folder.0.join("other");
    fs::write(&other, "of somebody").expect("a file");
    let mut shell = Command::new("sh");
    shell.args(["-c", "ln -s \"$1\" \"$2/libcuda.so.1.$$\" && exec \"$0\" install \"$2\"", SELF]);
    assert_eq!(ended(shell.arg(&other).arg(&place)).0, Some(0));
    assert_eq!(fs::read_to_string(&other).expect("it is text"), "of somebody");
    let installed = place.join("libcuda.so.1").symlink_metadata().expect("it is there");
    assert!(installed.is_file());
    // A file of another driver is not replaced.
    fs::remove_file(place.join("libcuda.so")).expect("it was written");
    fs::write(place.join("libcuda.so"), "another").expect("a file");
    let refused = || {
        let (code, _, errors) = ended(&mut soft(&folder, &["install", text]));
        assert!(code == Some(2) && errors.contains("is not the software driver"), "{errors}");
    };
    refused();
    // It is not opened: nobody writes into the pipe.
    fs::remove_file(place.join("libcuda.so")).expect("it was written");
    pipe(&place.join("libcuda.so"));
    refused();
}

/// A named pipe, which nobody opens.
fn pipe(path: &Path) {
    let name = std::ffi::CString::new(path.as_os_str().as_encoded_bytes()).expect("no zero");
    // SAFETY: a path.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
}
