//! The command `cuda-order-check`, with programs in Python that know nothing of it.

#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use cuda_test_harness::{say_not_run, shared_library};

#[path = "command/compiled.rs"]
mod compiled;
#[path = "command/hostile.rs"]
mod hostile;
#[path = "command/reports.rs"]
mod reports;

/// What all programs begin with: two streams, memory of 4096 bytes, and calls from functions.
const BEGIN: &str = r#"
import ctypes, os, signal, sys, time
cu = ctypes.CDLL("libcuda.so.1")
def call(name, *arguments):
    code = getattr(cu, name)(*arguments)
    assert code == 0, (name, code)
def new(name, *arguments):
    handle = ctypes.c_void_p()
    call(name, ctypes.byref(handle), *arguments)
    return handle
def at(offset):
    return ctypes.c_void_p(memory.value + offset)
def upload():
    call("cuMemsetD8Async", at(0), 1, ctypes.c_size_t(512), one)
def clear():
    call("cuMemsetD32Async", at(256), 1, ctypes.c_size_t(64), two)
def begin():
    global one, two, memory
    call("cuInit", 0)
    call("cuCtxSetCurrent", new("cuDevicePrimaryCtxRetain", 0))
    one, two = new("cuStreamCreate", 1), new("cuStreamCreate", 1)
    memory = new("cuMemAlloc_v2", ctypes.c_size_t(4096))
"#;

/// A folder that is removed.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("order-check-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).expect("a new folder");
        Self(folder)
    }

    /// `None` without an interpreter.
    fn with_python(name: &str) -> Option<Self> {
        python().then(|| Self::new(name))
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).expect("it was written")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// `cuda-order-check run` with these options and a program, after the common begin.
fn checked(folder: &Folder, options: &str, program: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cuda-order-check"));
    command.arg("run").args(options.split_whitespace()).arg("--library").arg(shared_library());
    command.current_dir(&folder.0).env("XDG_CACHE_HOME", folder.0.join("cache"));
    fs::write(folder.0.join("program.py"), format!("{BEGIN}\n{program}\n")).expect("a new file");
    command.args(["--", "python3", "program.py"]);
    command
}

fn output(folder: &Folder, options: &str, program: &str) -> (Output, String) {
    let output = checked(folder, options, program).output().expect("the command is there");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, errors)
}

fn python() -> bool {
    let found = Command::new("python3").arg("--version").output().is_ok();
    if !found {
        say_not_run("there is no python3");
    }
    found
}

#[test]
fn a_report_has_the_lines_of_python() {
    let Some(folder) = Folder::with_python("report") else { return };
    let options = "--exitcode 66 --json found.json";
    let (done, errors) = output(&folder, options, "begin(); upload(); clear(); print('end')");
    assert_eq!(done.status.code(), Some(66), "{errors}");
    assert_eq!(done.stdout, b"end\n");
    for part in [
        "cuda-order-check: the driver's library is /",
        "missing order: program.py:16 (clear) overwrites what program.py:14 (upload) writes, and",
        "256 bytes, bytes 256 to 511 of the 4 KiB that program.py:5 (call) allocated\n  writes",
        "\n  writes   cuMemsetD8Async in stream 0x",
        " (program.py:5), call #4\n           at program.py:14 (upload), called by program.py:24\n",
        "\n  to mend  after program.py:14: cuEventRecord(event, <stream 0x",
        "\n  class    copy\n",
        "order check: 1 finding in 0 kernels, 2 copies, 0 graphs, 1 thread\n",
    ] {
        assert!(errors.contains(part), "{part}:\n{errors}");
    }
    // Nothing of the interpreter, of the library and of ctypes.
    for part in ["cuda_order_check", "_PyEval", "ffi"] {
        assert!(!errors.contains(part), "{part}:\n{errors}");
    }
    let json = folder.read("found.json");
    assert!(json.starts_with(r#"{"class":"copy","severity":"error","#), "{json}");
    assert!(json.contains(r#""backtrace":["Python: call, at "#), "{json}");
    let counts = r#""suppressed":0,"kernels":0,"copies":2,"graphs":0,"threads":1,"times":[1]}"#;
    assert!(json.ends_with(&format!("{counts}\n")), "{json}");
    // Opened by its full path.
    for name in ["libcuda.so.1", "libcuda.so.580.65.06"] {
        let real = folder.0.join(name);
        std::os::unix::fs::symlink(shared_library(), &real).expect("a new link");
        let program = format!("cu = ctypes.CDLL('{}'); begin(); upload(); clear()", real.display());
        let (_, errors) = output(&folder, "--stacks off", &program);
        assert!(errors.contains("order check: 1 finding in"), "{name}: {errors}");
    }
    // Other versions of Python, which give their frames in other ways.
    for python in ["python3.12", "python3.13", "python3.14"] {
        if Command::new(python).arg("--version").output().is_ok_and(|it| it.status.success()) {
            checked(&folder, "", "begin(); upload(); clear()");
            let mut command = Command::new(env!("CARGO_BIN_EXE_cuda-order-check"));
            command.args(["run", "--library"]).arg(shared_library()).args(["--", python]);
            command.arg("program.py").current_dir(&folder.0);
            let done = command.env("XDG_CACHE_HOME", folder.0.join("cache")).output();
            let errors = String::from_utf8_lossy(&done.expect("it runs").stderr).into_owned();
            assert!(
                errors.contains("program.py:16 (clear) overwrites what "),
                "{python}: {errors}"
            );
        }
    }
    // With a lock of the interpreter as well.
    let (_, errors) =
        output(&folder, "", "cu = ctypes.PyDLL('libcuda.so.1'); begin(); upload(); clear()");
    assert!(errors.contains("program.py:16 (clear) overwrites what "), "{errors}");
}

#[test]
fn findings_are_left_out_by_class_and_by_suppression() {
    let Some(folder) = Folder::with_python("left-out") else { return };
    fs::write(folder.0.join("known"), "# of the library\n\nfunction:clear\n").expect("a new file");
    fs::write(folder.0.join("other"), "kernel:clear\nclass:free\n").expect("a new file");
    for (options, status, summary) in [
        ("--exitcode=3 --stacks off", 3, "order check: 1 finding in"),
        ("--exitcode=3 --stacks off --class -copy", 0, "order check: 0 findings in"),
        ("--exitcode=3 --suppressions known", 0, "order check: 0 findings, 1 suppressed, in"),
        ("--exitcode=3 --stacks off --suppressions other", 3, "order check: 1 finding in"),
    ] {
        let options = format!("{options} --log log-%p");
        let (done, errors) = output(&folder, &options, "begin(); upload(); clear()");
        assert_eq!(done.status.code(), Some(status), "{options}: {errors}");
        assert!(!errors.contains("order check:"), "{options}: {errors}");
        let logs = fs::read_dir(&folder.0).expect("it is there").flatten();
        let mut logs = logs.filter(|it| it.file_name().as_encoded_bytes().starts_with(b"log-"));
        let log = logs.next().expect("one process").path();
        let text = fs::read_to_string(&log).expect("it was written");
        assert!(text.contains(summary), "{options}: {text}");
        fs::remove_file(log).expect("it is there");
        assert!(logs.next().is_none(), "{options}");
    }
}

#[test]
fn a_signal_ends_the_program_after_the_summary() {
    let Some(folder) = Folder::with_python("signal") else { return };
    for signal in ["SIGTERM", "SIGHUP"] {
        // Its handler is the default, also where the tests ignore the signal: the process ends,
        // whatever it is in the middle of.
        let program = format!(
            "signal.signal(signal.{signal}, signal.SIG_DFL)
begin(); upload(); clear(); print(os.getpid(), flush=True)
os.kill(os.getpid(), signal.{signal})
while True: new('cuEventCreate', 2)"
        );
        let (done, errors) = output(&folder, "--exitcode 66 --stacks off", &program);
        use std::os::unix::process::ExitStatusExt;
        assert!(done.status.signal().is_some(), "{signal}, {:?}: {errors}", done.status);
        assert_eq!(errors.matches("order check: 1 finding in").count(), 1, "{signal}: {errors}");
    }
    // As an exception of C++ does that nobody catches.
    let (done, errors) = output(&folder, "--stacks off", "begin(); upload(); clear(); os.abort()");
    assert!(!done.status.success(), "{errors}");
    assert_eq!(errors.matches("order check: 1 finding in").count(), 1, "{errors}");
    // A program's own handler stays, and ends it in its own way.
    let program = "signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))
begin(); upload(); print('begun', flush=True)
while True: time.sleep(0.01)";
    let mut child = checked(&folder, "", program)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command is there");
    let mut line = String::new();
    let printed = child.stdout.as_mut().expect("it is a pipe");
    BufReader::new(printed).read_line(&mut line).expect("the program prints");
    // The command is the program by now: the signal reaches that one.
    // SAFETY: a child that was not waited for.
    unsafe { libc::kill(child.id() as i32, libc::SIGTERM) };
    let done = child.wait_with_output().expect("it ends");
    let errors = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(5), "{line}: {errors}");
    assert!(errors.contains("order check: 0 findings in"), "{errors}");
}

/// A program closes all descriptors, and opens files that get their numbers.
#[test]
fn a_program_that_closes_all_files_keeps_its_own() {
    let Some(folder) = Folder::with_python("descriptors") else { return };
    let program = "begin(); upload()
os.closerange(3, 64)
files = [os.open(f'data-{at}', os.O_CREAT | os.O_RDWR) for at in range(3, 64)]
clear()
sys.stdout.flush(); os._exit(0)";
    let (done, errors) = output(&folder, "--log log --stacks off", program);
    // The end has not waited in vain.
    assert!(!errors.contains("so there is none"), "{errors}");
    assert!(done.status.success(), "{errors}");
    for at in 3..64 {
        assert_eq!(folder.read(&format!("data-{at}")), "");
    }
    let log = folder.read("log");
    for part in ["missing order: ", "order check: 1 finding in"] {
        assert_eq!(log.matches(part).count(), 1, "{log}: {errors}");
    }
}

#[test]
fn children_have_their_own_reports() {
    let Some(folder) = Folder::with_python("children") else { return };
    // A child that begins before the first call, and a program that it starts.
    let program = "
if len(sys.argv) > 1:
    begin(); upload(); sys.exit()
if os.fork() == 0:
    begin(); upload(); clear()
    os.execvp('python3', ['python3', 'program.py', 'again'])
os.wait()
begin(); clear()";
    let (done, errors) = output(&folder, "--log log-%p --stacks off", program);
    assert!(done.status.success(), "{errors}");
    let logs = fs::read_dir(&folder.0).expect("it is there").flatten();
    let logs = logs.filter(|it| it.file_name().as_encoded_bytes().starts_with(b"log-"));
    let mut texts: Vec<String> =
        logs.map(|it| fs::read_to_string(it.path()).expect("it was written")).collect();
    texts.sort_by_key(String::len);
    assert_eq!(texts.len(), 2, "{texts:?}");
    assert!(texts[0].starts_with("order check: 0 findings in 0 kernels, 1 copy"), "{texts:?}");
    // The child's own finding, and the summary of the program that took its place.
    assert!(texts[1].contains("missing order"), "{texts:?}");
    assert!(texts[1].contains("order check: 0 findings in"), "{texts:?}");
}

/// The driver does not work there, and what was seen is the parent's to say.
#[test]
fn a_child_that_begins_after_the_first_call_says_nothing() {
    let Some(folder) = Folder::with_python("child") else { return };
    let program = "begin(); upload()
if os.fork() == 0: sys.exit()
os.wait()";
    let (done, errors) = output(&folder, "--stacks off", program);
    assert!(done.status.success(), "{errors}");
    assert_eq!(errors.matches("order check: ").count(), 1, "{errors}");
    assert!(errors.contains("order check: 0 findings in"), "{errors}");
}

#[test]
fn a_program_without_calls_is_left_alone() {
    let folder = Folder::new("quiet");
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cuda-order-check"));
        command.current_dir(&folder.0).env("XDG_CACHE_HOME", folder.0.join("cache"));
        let done = command.args(arguments).output().expect("the command is there");
        let errors = String::from_utf8_lossy(&done.stderr).into_owned();
        (done.status.code(), String::from_utf8_lossy(&done.stdout).into_owned(), errors)
    };
    let library = shared_library();
    let library = library.to_str().expect("it is text");
    let (status, printed, errors) =
        run(&["run", "--library", library, "--log", "log", "--", "echo", "--log", "a b"]);
    assert_eq!((status, &*printed), (Some(0), "--log a b\n"));
    assert_eq!(errors, format!("cuda-order-check: the driver's library is {library}\n"));
    assert!(!folder.0.join("log").exists());
    // Nor is the driver's library opened in such a program.
    let (status, _, errors) = run(&["run", "--library", "/proc/version", "--", "sh", "-c", "true"]);
    assert_eq!((status, errors.lines().count()), (Some(0), 1), "{errors}");
    let (status, _, errors) = run(&["run", "--library", library, "--", "/nowhere/program"]);
    assert_eq!(status, Some(127), "{errors}");
    assert!(errors.contains("/nowhere/program cannot be started"), "{errors}");
    let text = folder.0.join("text");
    fs::write(&text, "").expect("a new file");
    let text = text.to_str().expect("it is text");
    let (status, _, errors) = run(&["run", "--library", library, "--", text]);
    assert_eq!((status, errors.contains("cannot be started")), (Some(126), true), "{errors}");
    let (status, _, errors) = run(&["run", "--library", "/nowhere/libcuda.so.1", "--", "true"]);
    assert_eq!(status, Some(2), "{errors}");
    assert!(errors.contains("/nowhere/libcuda.so.1 is no file"), "{errors}");
    // What the program's own variables have goes on counting, behind what is added.
    let mut command = Command::new(env!("CARGO_BIN_EXE_cuda-order-check"));
    command.current_dir(&folder.0).env("XDG_CACHE_HOME", folder.0.join("cache"));
    command
        .env("CUDA_ORDER_CHECK", "class=-free,stacks=off")
        .env("LD_LIBRARY_PATH", "/own/libraries");
    command.env("LD_PRELOAD", library).env("NVTX_INJECTION64_PATH", "/own/profiler.so");
    let names = ["CUDA_ORDER_CHECK", "LD_LIBRARY_PATH", "LD_PRELOAD", "NVTX_INJECTION64_PATH"];
    let program = names.map(|name| format!("echo ${name}")).join("; ");
    command.args(["run", "--class", "+pools", "--library", library, "--", "sh", "-c", &program]);
    let done = command.output().expect("the command is there");
    let printed = String::from_utf8_lossy(&done.stdout).into_owned();
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines.len(), 4, "{printed}{}", String::from_utf8_lossy(&done.stderr));
    assert!(lines[0].starts_with("class=-free,stacks=off,class=+pools,"), "{printed}");
    assert!(lines[1].ends_with(":/own/libraries"), "{printed}");
    assert!(lines[2].ends_with(library) && lines[2].contains("cuda-order-check"), "{printed}");
    assert_eq!(lines[3], "/own/profiler.so");
    // Nor is a folder whose path the loader would split.
    for cache in ["a b", "a:b", "$a"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cuda-order-check"));
        command.env("XDG_CACHE_HOME", folder.0.join(cache)).env("TMPDIR", &folder.0);
        let program = ["sh", "-c", "echo $LD_PRELOAD"];
        let done = command.args(["run", "--library", library, "--"]).args(program).output();
        let done = done.expect("it runs");
        let (printed, errors) = (done.stdout, String::from_utf8_lossy(&done.stderr));
        assert_eq!(errors.lines().count(), 1, "{cache}: {errors}");
        assert!(printed.starts_with(folder.0.as_os_str().as_encoded_bytes()), "{printed:?}");
    }
    // A folder in which others may write is not used.
    let cache = folder.0.join("cache/cuda-order-check");
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(&cache, fs::Permissions::from_mode(0o777)).expect("it is there");
    let temporary = folder.0.join("temporary");
    fs::write(&temporary, "").expect("no folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_cuda-order-check"));
    command.env("XDG_CACHE_HOME", folder.0.join("cache")).env("TMPDIR", &temporary);
    let done = command.args(["run", "--library", library, "--", "true"]).output().expect("it runs");
    let errors = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(2), "{errors}");
    assert!(errors.contains("others may write there"), "{errors}");
}

/// A program without a loader, that ends at once.
fn without_loader(machine: u8) -> Vec<u8> {
    let mut file = vec![0; 64 + 56];
    let begin = 0x40_0000_u64 + 120;
    let fields: [(usize, &[u8]); 11] = [
        (0, b"\x7fELF\x02\x01\x01"),
        (16, &[2, 0, machine, 0, 1]),
        (24, &begin.to_le_bytes()),
        (32, &[64]),
        (52, &[64, 0, 56, 0, 1]),
        // The one segment that the system loads.
        (64, &[1, 0, 0, 0, 5]),
        (80, &0x40_0000_u64.to_le_bytes()),
        (88, &0x40_0000_u64.to_le_bytes()),
        (96, &[129]),
        (104, &[129]),
        (112, &0x1000_u64.to_le_bytes()),
    ];
    for (at, bytes) in fields {
        file[at..at + bytes.len()].copy_from_slice(bytes);
    }
    // The program calls `exit(0)`.
    file.extend([0xb8, 60, 0, 0, 0, 0x31, 0xff, 0x0f, 0x05]);
    file
}

#[test]
fn programs_without_the_library_are_named() {
    use std::os::unix::fs::{PermissionsExt, chown};
    let folder = Folder::new("unchecked");
    let run_with = |name: &str, path: &std::ffi::OsStr| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cuda-order-check"));
        command.current_dir(&folder.0).env("XDG_CACHE_HOME", folder.0.join("cache"));
        command.args(["run", "--library"]).arg(shared_library()).arg("--").arg(name);
        let done = command.env("PATH", path).output().expect("the command is there");
        let errors = String::from_utf8_lossy(&done.stderr).into_owned();
        let lines = errors.lines().skip(1).map(str::to_owned);
        (done.status.code(), lines.collect::<Vec<String>>())
    };
    let run = |name: &str| run_with(name, folder.0.as_os_str());
    let write = |name: &str, bytes: &[u8], mode: u32| {
        let path = folder.0.join(name);
        fs::write(&path, bytes).expect("a new file");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("it is there");
        path
    };
    let says = |path: &str, what: &str| {
        let path = folder.0.join(path);
        format!("cuda-order-check: {} {what}: it is not checked", path.display())
    };
    let plain = write("plain", &without_loader(62), 0o755);
    let line = says("plain", "is statically linked");
    assert_eq!(run("plain"), (Some(0), vec![line.clone()]));
    // By a path, and by the first line of a script.
    assert_eq!(run(plain.to_str().expect("text")), (Some(0), vec![line.clone()]));
    write("script", format!("#! {} -x\nanything", plain.display()).as_bytes(), 0o755);
    assert_eq!(run("script"), (Some(0), vec![line]));
    write("other", &without_loader(183), 0o755);
    assert_eq!(run("other").1.first(), Some(&says("other", "is for another machine")));
    // One with a loader is checked, and what is no program cannot be started.
    assert_eq!(run("/bin/true"), (Some(0), vec![]));
    assert_eq!(run("nothing").0, Some(127));
    write("damaged", b"\x7fELF\x02", 0o755);
    assert_eq!(run("damaged").1.len(), 1);
    // Nor is the loader itself, which is given a program, or what is no file: to open it may wait.
    let loader = "/lib64/ld-linux-x86-64.so.2";
    assert!(!run(loader).1.iter().any(|line| line.contains("not checked")));
    let pipe = folder.0.join("pipe");
    let name = std::ffi::CString::new(pipe.to_str().expect("text")).expect("no zero");
    // SAFETY: a C string.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o755) }, 0);
    assert_eq!(run(pipe.to_str().expect("text")).0, Some(126));
    // A file that cannot be started is passed over on the way to one that can.
    let first = folder.0.join("first");
    fs::create_dir(&first).expect("a new folder");
    write("first/plain", &without_loader(183), 0o644);
    let path = std::env::join_paths([&first, &folder.0]).expect("no colon");
    assert_eq!(run_with("plain", &path).1, [says("plain", "is statically linked")]);
    // A file with the bit changes no rights if it is the user's own.
    write("own", &fs::read("/bin/true").expect("it is there"), 0o4755);
    assert_eq!(run("own"), (Some(0), vec![]));
    let other = write("rights", &fs::read("/bin/true").expect("it is there"), 0o755);
    if chown(&other, Some(65534), None).is_err() {
        return say_not_run("only root can give a file to another user");
    }
    fs::set_permissions(&other, fs::Permissions::from_mode(0o4755)).expect("it is there");
    assert_eq!(run("rights").1, [says("rights", "has the rights of another user")]);
    // A group's bit counts where the group may start the file: otherwise it is for locks.
    chown(&other, Some(0), Some(65534)).expect("as before");
    for (mode, changes) in [(0o2755, true), (0o2745, false)] {
        fs::set_permissions(&other, fs::Permissions::from_mode(mode)).expect("it is there");
        let line = changes.then(|| says("rights", "has the rights of another user"));
        assert_eq!(run("rights").1, Vec::from_iter(line), "{mode:o}");
    }
}

#[test]
fn a_file_that_cannot_be_written_is_said_once() {
    let Some(folder) = Folder::with_python("full") else { return };
    let program = "begin(); upload(); clear(); print('end')";
    for options in ["--log /dev/full", "--json /dev/full", "--log /nowhere/x", "--json /nowhere/x"]
    {
        let options = format!("--stacks off --exitcode 3 {options}");
        let (done, errors) = output(&folder, &options, program);
        assert_eq!((done.status.code(), &*done.stdout), (Some(3), &b"end\n"[..]), "{errors}");
        assert_eq!(errors.matches("cannot write /").count(), 1, "{options}: {errors}");
        for part in ["missing order: ", "order check: 1 finding in"] {
            assert_eq!(errors.matches(part).count(), 1, "{options}: {errors}");
        }
    }
}

/// Nobody reads standard error any more.
#[test]
fn a_closed_standard_error_does_not_end_the_program() {
    let Some(folder) = Folder::with_python("closed") else { return };
    let program = "signal.signal(signal.SIGPIPE, signal.SIG_DFL)
begin(); upload(); clear(); print('end')";
    for (options, planted) in [
        ("--stacks off", ""),
        ("--stacks off --log /dev/full", ""),
        ("--stacks off", "cuMemAlloc_v2"),
    ] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let mut command = checked(&folder, options, program);
        command.env("CUDA_ORDER_CHECK_PLANT", planted);
        let child = command.stdout(Stdio::piped()).stderr(writer).spawn();
        let done = child.expect("it begins").wait_with_output().expect("it ends");
        assert_eq!(
            (done.status.code(), &*done.stdout),
            (Some(0), &b"end\n"[..]),
            "{options} {planted}"
        );
    }
}

/// A pipe is not opened where that would wait for another program, nor is a device read that has no
/// end.
#[test]
fn pipes_and_devices_hold_nothing_up() {
    let folder = Folder::new("fifo");
    let path = folder.0.join("fifo");
    let name = std::ffi::CString::new(path.as_os_str().as_encoded_bytes()).expect("no zero");
    // SAFETY: a path.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o755) }, 0);
    let long = fs::File::create(folder.0.join("long")).expect("a new file");
    long.set_len(8 << 30).expect("a file without blocks");
    let run = |words: &str, setting: &str| {
        let mut command = Command::new("timeout");
        command.args(["-s", "KILL", "60", env!("CARGO_BIN_EXE_cuda-order-check"), "run"]);
        command.args(["--library", shared_library().to_str().expect("it is text")]);
        command.args(words.split_whitespace()).current_dir(&folder.0);
        command.env("XDG_CACHE_HOME", folder.0.join("cache")).env("CUDA_ORDER_CHECK", setting);
        let done = command.output().expect("the command is there");
        (done.status.code(), String::from_utf8_lossy(&done.stderr).into_owned())
    };
    let shown = folder.0.display();
    for (words, setting, code, part) in [
        ("-- ./fifo", "", 126, "cannot be started"),
        ("--suppressions fifo true", "", 2, "fifo: it is not a plain file"),
        ("--suppressions . true", "", 2, "it is not a plain file"),
        ("--suppressions /dev/zero true", "", 2, "/dev/zero: it is not a plain file"),
        ("--suppressions long true", "", 2, "long: it is longer than 4 MiB"),
        ("true", "suppressions=fifo", 2, "fifo: it is not a plain file"),
        ("--library fifo true", "", 2, "fifo is no file"),
        ("--library /dev/zero true", "", 2, "/dev/zero is no file"),
    ] {
        let (done, errors) = run(words, setting);
        assert!(
            done == Some(code) && errors.contains(part),
            "{words} {setting}: {done:?} {errors}"
        );
    }
    if !python() {
        return;
    }
    // Where nobody reads, the findings go elsewhere, and the program goes on.
    let program = "begin(); upload(); clear(); print('end')";
    for (option, instead) in [
        ("log", "so findings go here: nobody reads this pipe"),
        ("json", "so there is no JSON: nobody reads this pipe"),
        ("sarif", "so there is no SARIF: nobody reads this pipe"),
    ] {
        let (done, errors) = output(&folder, &format!("--{option} fifo"), program);
        assert_eq!(done.stdout, b"end\n", "{option}: {errors}");
        assert!(errors.contains(&format!("cannot write {shown}/fifo, {instead}")), "{errors}");
    }
    // A process gets the settings without the command, too.
    let direct = "
if len(sys.argv) > 1:
    begin(); upload(); clear(); print('end'); sys.exit()
own = os.environ['CUDA_ORDER_CHECK'].split(',')
os.environ['CUDA_ORDER_CHECK'] = ','.join(own + [PLACE])
os.execvp('python3', ['python3', 'program.py', 'again'])";
    for (place, part) in [
        ("suppressions=fifo", "fifo: it is not a plain file"),
        ("trace=fifo", "there is no trace: nobody reads this pipe"),
    ] {
        let (done, errors) = output(&folder, "", &direct.replace("PLACE", &format!("{place:?}")));
        assert_eq!(done.stdout, b"end\n", "{place}: {errors}");
        assert!(errors.contains(part), "{place}: {errors}");
    }
    let wrong = direct.replace("print('end')", "pass").replace("PLACE", "'library=fifo'");
    let (done, errors) = output(&folder, "", &wrong);
    assert!(!done.status.success() && errors.contains("fifo cannot be opened"), "{errors}");
}

/// A child without the file of suppressions has the driver all the same.
#[test]
fn a_process_with_wrong_settings_has_the_driver() {
    let Some(folder) = Folder::with_python("settings") else { return };
    fs::write(folder.0.join("known"), "class:free\n").expect("a new file");
    let program = "
if len(sys.argv) > 1:
    begin(); upload(); clear(); print('end'); sys.exit()
os.remove('known')
os.execvp('python3', ['python3', 'program.py', 'again'])";
    let (done, errors) = output(&folder, "--suppressions known", program);
    assert!(done.status.success(), "{errors}");
    assert_eq!(done.stdout, b"end\n");
    assert!(errors.contains("known: No such file or directory"), "{errors}");
    assert!(errors.contains("Nothing is checked in this process"), "{errors}");
    assert!(!errors.contains("order check:"), "{errors}");
}

/// What NVTX's header does in a program, as far as the injected library sees it.
const NVTX: &str = r#"
TABLES = {1: 17, 2: 9, 4: 7}
functions = {module: (ctypes.c_void_p * size)() for module, size in TABLES.items()}
pointer = ctypes.sizeof(ctypes.c_void_p)
places = {
    module: (ctypes.c_void_p * size)(
        *(ctypes.addressof(functions[module]) + at * pointer for at in range(size))
    )
    for module, size in TABLES.items()
}
@ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_uint, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_uint)
)
def module_table(module, table, size):
    table[0], size[0] = ctypes.addressof(places[module]), TABLES[module]
    return 1
class Callbacks(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("table", type(module_table))]
callbacks = Callbacks(16, module_table)
@ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint32)
def export_table(table):
    return ctypes.addressof(callbacks) if table == 1 else None
injected = ctypes.CDLL(os.environ["NVTX_INJECTION64_PATH"])
assert injected.InitializeInjectionNvtx2(export_table) == 1
def nvtx(module, index, *types):
    return ctypes.CFUNCTYPE(ctypes.c_int, *types)(functions[module][index])
"#;

#[test]
fn streams_and_regions_have_the_names_of_nvtx() {
    let Some(folder) = Folder::with_python("nvtx") else { return };
    let program = format!(
        "{NVTX}
begin()
nvtx(4, 3, ctypes.c_void_p, ctypes.c_char_p)(one, b'copies')
push, pop = nvtx(1, 9, ctypes.c_char_p), nvtx(1, 11)
class Attributes(ctypes.Structure):
    _fields_ = [('head', ctypes.c_uint64 * 4), ('type', ctypes.c_uint64), ('text', ctypes.c_char_p)]
push_with = nvtx(1, 8, ctypes.POINTER(Attributes))
assert (push(b'epoch'), push_with(Attributes(type=1, text=b'batch'))) == (0, 1)
upload()
assert pop() == 1
assert push_with(Attributes(type=2, text=b'wide')) == 1
clear()
assert (pop(), pop()) == (1, 0)"
    );
    let (done, errors) = output(&folder, "", &program);
    assert!(done.status.success(), "{errors}");
    for part in [
        "in stream `copies` (",
        "called by program.py:58\n           in region epoch / batch\n",
        // Letters of another width are not read.
        "called by program.py:61\n           in region epoch /\n",
        "order check: 1 finding in",
    ] {
        assert!(errors.contains(part), "{part}:\n{errors}");
    }
}
