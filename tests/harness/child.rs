//! Child processes: a test starts itself again, and the two speak in lines.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, Write};
use std::panic::Location;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::{TestDriver, watch};

const ROLE: &str = "CUDA_EVENTS_TEST_CHILD";
/// What a line of the child's begins with, among those of the test harness.
const MARK: &str = "@ ";

/// The role that this process was started in, if a test started it.
pub fn role() -> Option<String> {
    std::env::var(ROLE).ok()
}

/// What the harness calls the test `name` of the caller's file.
#[track_caller]
pub fn full_name(name: &str) -> String {
    let file = Path::new(Location::caller().file());
    let mut modules: Vec<_> = file.iter().skip_while(|part| *part != "tests").skip(2).collect();
    let last = modules.pop().map(Path::new).and_then(Path::file_stem);
    modules.extend(last.filter(|stem| *stem != "main" && *stem != "mod"));
    let modules = modules.iter().map(|part| part.to_str().expect("text"));
    modules.chain([name]).collect::<Vec<_>>().join("::")
}

/// What starts the test of this full name in a role: the one of this binary, or that of a copy of
/// it.
pub fn command(program: &Path, test: &str, role: &str) -> Command {
    let mut command = starting(program);
    command
        .args(["--exact", test, "--include-ignored", "--nocapture", "--test-threads=1"])
        .env(ROLE, role);
    command
}

/// The emulator's program, where tests run on one.
const RUNNER_VARIABLE: &str = "CUDA_EVENTS_TEST_RUNNER";

/// The emulator that the variable names. An empty variable names none.
fn runner(value: Option<OsString>) -> Option<OsString> {
    value.filter(|program| !program.is_empty())
}

/// What starts a program of the tests' own platform: an emulator, where one is named.
pub fn starting(program: &Path) -> Command {
    match runner(std::env::var_os(RUNNER_VARIABLE)) {
        Some(runner) => {
            let mut command = Command::new(runner);
            command.arg(program);
            command
        }
        None => Command::new(program),
    }
}

/// Starts a process. On a busy machine wine refuses one now and then by an internal error, to which
/// nothing here can lead.
fn spawn(command: &mut Command) -> std::process::Child {
    const INTERNAL_ERROR: i32 = 1359;
    for _ in 0..9 {
        match command.spawn() {
            Err(error) if cfg!(windows) && error.raw_os_error() == Some(INTERNAL_ERROR) => {
                std::thread::sleep(std::time::Duration::from_millis(100));
            }
            started => return started.expect("the test binary starts again"),
        }
    }
    command.spawn().expect("the test binary starts again")
}

/// Whether a process is given another time of its own start than others are. It says so.
pub fn starts_are_made_up() -> bool {
    if is_emulated() {
        crate::say_not_run("an emulator makes up the process's own /proc/self/stat");
    }
    is_emulated()
}

/// Whether the tests run on an emulator.
pub fn is_emulated() -> bool {
    runner(std::env::var_os(RUNNER_VARIABLE)).is_some()
}

pub fn own_binary() -> std::path::PathBuf {
    std::env::current_exe().expect("the test binary has a path")
}

/// What a child says beside its answers: shown when it fails, and only then.
///
/// A file and no pipe, which would have to be read all the while, and to the end of all that the
/// child leaves behind.
struct Errors(File);

impl Errors {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("cuda-events-test-{}-{number}", std::process::id()));
        let file = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&path)
            .expect("a file for the errors");
        std::fs::remove_file(path).expect("the file is ours");
        Self(file)
    }

    fn text(&mut self) -> String {
        let mut text = Vec::new();
        self.0.rewind().and_then(|()| self.0.read_to_end(&mut text)).expect("the file can be read");
        String::from_utf8_lossy(&text).into_owned()
    }
}

/// A child that runs the test `name` of this same binary in a role. It may be one that is ignored
/// otherwise.
pub struct Child {
    process: std::process::Child,
    output: BufReader<std::process::ChildStdout>,
    errors: Errors,
    /// Whether the harness said that it has the test: a name that it does not know is no failure to
    /// it.
    runs_the_test: bool,
}

impl Child {
    /// `test` as it is called in the file of the caller, whatever the binary and the module are.
    #[track_caller]
    pub fn start(test: &str, role: &str) -> Self {
        Self::start_with(test, role, |_| {})
    }

    #[track_caller]
    pub fn start_with(test: &str, role: &str, configure: impl FnOnce(&mut Command)) -> Self {
        Self::start_named(&full_name(test), role, configure)
    }

    pub fn start_named(test: &str, role: &str, configure: impl FnOnce(&mut Command)) -> Self {
        watch::alive();
        let errors = Errors::new();
        let mut command = command(&own_binary(), test, role);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(errors.0.try_clone().expect("a second handle of the file"));
        configure(&mut command);
        let mut process = spawn(&mut command);
        let output = BufReader::new(process.stdout.take().expect("stdout is a pipe"));
        Self { process, output, errors, runs_the_test: false }
    }

    pub fn send(&mut self, line: &str) {
        let input = self.process.stdin.as_mut().expect("stdin is a pipe");
        writeln!(input, "{line}").and_then(|()| input.flush()).expect("the child reads");
    }

    /// The child's next line; panics when the child ends without one.
    #[track_caller]
    pub fn receive(&mut self) -> String {
        loop {
            watch::alive();
            let Some(line) = self.line() else {
                panic!("the child ended without an answer\n{}", self.errors.text());
            };
            // The harness may have begun the line.
            if let Some((_, reply)) = line.split_once(MARK) {
                return reply.trim_end().to_owned();
            }
        }
    }

    /// The child's next line, or how it ended, if it does so without one.
    pub fn receive_or_end(&mut self) -> Result<String, ExitStatus> {
        loop {
            watch::alive();
            let Some(line) = self.line() else {
                return Err(self.process.wait().expect("the child has ended"));
            };
            if let Some((_, reply)) = line.split_once(MARK) {
                return Ok(reply.trim_end().to_owned());
            }
        }
    }

    /// What the child says on standard error: for who finds that it failed.
    pub fn errors(&mut self) -> String {
        self.errors.text()
    }

    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = self.output.read_line(&mut line).expect("the child writes text");
        self.runs_the_test |= line.starts_with("running 1 test");
        (read != 0).then_some(line)
    }

    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Kills it and leaves it to be waited for: it is a zombie then.
    pub fn kill_only(&mut self) {
        self.process.kill().expect("the child can be killed");
    }

    pub fn kill(&mut self) {
        self.kill_only();
        self.process.wait().expect("the child has ended");
    }

    /// Waits for the end; panics unless there was such a test in the child and it passed.
    #[track_caller]
    pub fn finish(mut self) {
        drop(self.process.stdin.take());
        let mut rest = String::new();
        while let Some(line) = self.line() {
            rest.push_str(&line);
        }
        let status = self.process.wait().expect("the child has ended");
        let errors = self.errors.text();
        assert!(status.success(), "the child failed: {status}\n{rest}{errors}");
        assert!(self.runs_the_test, "the child has no such test\n{rest}");
        // Past the harness, as the child itself said it.
        for line in errors.lines().filter(|line| line.starts_with(crate::NOT_RUN)) {
            let _ = writeln!(std::io::stderr(), "{line}");
        }
    }
}

/// For handles that are put into it.
#[cfg(windows)]
impl std::os::windows::io::AsHandle for Child {
    fn as_handle(&self) -> std::os::windows::io::BorrowedHandle<'_> {
        self.process.as_handle()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // A test that failed must not leave its child waiting.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The rest of a test runs in a process of its own, with no other test in it; the test that has
/// this line waits for it. It may name settings for the software driver, which any that is made
/// there has, beside those of the environment.
#[macro_export]
macro_rules! own_process {
    () => {
        $crate::own_process!("")
    };
    ($settings:literal) => {
        fn here() {}
        if $crate::child::passed_alone(std::any::type_name_of_val(&here), $settings) {
            return;
        }
    };
}

/// Whether a process of its own was started for the test, and ended well; not so in that process.
/// `place` is the path of an item within the test.
#[track_caller]
pub fn passed_alone(place: &str, settings: &str) -> bool {
    const ALONE: &str = "alone";
    if role().is_some() {
        return false;
    }
    let _turn = turn();
    let child = Child::start_named(test_of(place), ALONE, |command| {
        if !settings.is_empty() {
            command.env("CUDA_SOFT_DRIVER", crate::soft_settings(settings));
        }
        if settings.contains("version=") {
            // Which all tests are to have that say nothing else.
            command.env_remove("CUDA_EVENTS_TEST_VERSION");
        }
    });
    watch::without_limit(|| child.finish());
    true
}

/// What the harness calls the test in which an item has this path.
pub fn test_of(place: &str) -> &str {
    let path = place.split_once("::").and_then(|(_, path)| path.rsplit_once("::"));
    path.expect("a test is in a crate, and the item in the test").0
}

/// The turn of a child that is alone with a device: each process has a context on it, and it has
/// room for so many.
pub fn turn() -> Option<MutexGuard<'static, ()>> {
    static TURN: Mutex<()> = Mutex::new(());
    let take = || TURN.lock().unwrap_or_else(PoisonError::into_inner);
    (TestDriver::chosen() == TestDriver::Native).then(|| watch::without_limit(take))
}

/// In a child that may hang: ends it after so many seconds, which fails its test in the parent.
#[cfg(unix)]
pub fn end_after(seconds: u32) {
    unsafe extern "C" {
        fn alarm(seconds: u32) -> u32;
    }
    // SAFETY: the declaration is POSIX's; nothing here handles the signal.
    unsafe { alarm(seconds) };
}

/// In a child that may hang: ends it after so many seconds, which fails its test in the parent.
#[cfg(windows)]
pub fn end_after(seconds: u32) {
    std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_secs(seconds.into()));
        end_at_once(HUNG)
    });
}

/// Ends this process without exit handlers, the driver's included.
pub fn end_at_once(status: i32) -> ! {
    unsafe extern "C" {
        fn _exit(status: i32) -> !;
    }
    // SAFETY: it has no preconditions.
    unsafe { _exit(status) }
}

/// How a child ended, unless it ended well.
#[cfg(unix)]
pub fn how_it_failed(status: ExitStatus) -> Option<String> {
    use std::os::unix::process::ExitStatusExt as _;
    match (status.signal(), status.code()) {
        (None, Some(0)) => None,
        (Some(6), _) => Some("aborted".to_owned()),
        (Some(11), _) => Some("crashed (SIGSEGV)".to_owned()),
        (Some(14), _) => Some("hung".to_owned()),
        (Some(signal), _) => Some(format!("ended by signal {signal}")),
        (None, code) => Some(format!("failed with {code:?}")),
    }
}

/// The status of a process that [`end_after`] ended.
#[cfg(windows)]
const HUNG: i32 = 14;

/// How a child ended, unless it ended well.
#[cfg(windows)]
pub fn how_it_failed(status: ExitStatus) -> Option<String> {
    const ACCESS_VIOLATION: u32 = 0xC000_0005;
    /// Of `std::process::abort`.
    const FAST_FAIL: u32 = 0xC000_0409;
    match status.code()? {
        0 => None,
        HUNG => Some("hung".to_owned()),
        code => Some(match code as u32 {
            FAST_FAIL => "aborted".to_owned(),
            ACCESS_VIOLATION => "crashed (access violation)".to_owned(),
            code => format!("failed with {code:#x}"),
        }),
    }
}

/// In the child: says a line to the parent.
pub fn say(line: &str) {
    println!("\n{MARK}{line}");
    std::io::stdout().flush().expect("the parent reads");
}

/// In the child: the parent's next line.
pub fn read_line() -> String {
    let mut line = String::new();
    let read = std::io::stdin().read_line(&mut line).expect("the parent writes text");
    assert_ne!(read, 0, "the parent ended without an answer");
    line.trim_end().to_owned()
}

pub fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub fn from_hex(text: &str) -> Vec<u8> {
    assert!(text.len().is_multiple_of(2), "hexadecimal digits come in pairs");
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).expect("a hexadecimal digit"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_variable_names_no_emulator() {
        assert_eq!(runner(Some(OsString::new())), None);
        assert_eq!(runner(Some("qemu".into())), Some("qemu".into()));
    }
}
