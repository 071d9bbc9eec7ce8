//! Explains why this machine has no usable GPU, or which GPU it has.
//!
//! The doctor checks everything that [`cuda_events`] uses to load the driver, and more: driver
//! libraries and the functions they lack, the kernel module, device nodes and this user's rights to
//! them, containers, sandboxes, WSL, `CUDA_VISIBLE_DEVICES`, MPS, MIG, compute modes, the fabric
//! manager, `/dev/shm` and limits. It prints one line for each finding. The last lines are advice:
//! one sentence for each obstacle.
//!
//! ```text
//! cargo install cuda-events-doctor
//! cuda-events-doctor
//! ```
//!
//! It is a separate command because Cargo cannot run the examples of a dependency. A program can
//! also create the report about itself:
//!
//! ```
//! use cuda_events::Driver;
//! use cuda_events_doctor::Report;
//!
//! let loaded = Driver::load();
//! if loaded.is_err() {
//!     eprintln!("{}", Report::of_this_process(loaded));
//! }
//! ```

#![deny(unsafe_code, missing_docs)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod advice;
mod checks;
mod child;
mod exports;
mod probe;
mod report;
mod system;

// They look at private items, and lie with the other tests all the same.
#[cfg(all(test, target_os = "linux"))]
#[path = "../tests/simulated/mod.rs"]
mod simulated;

use std::process::{Command, ExitCode};
use std::time::Duration;

use cuda_events::{Driver, Error};
use lexopt::Arg::{Long, Short};
use lexopt::Parser;

pub use probe::Probe;
pub use report::{Check, Finding, Level, Report};
pub use system::{Platform, System};

const HELP: &str = "\
Shows which GPU a program would use here, or why it cannot use one: one line for each finding, then
one sentence of advice for each obstacle.

usage: cuda-events-doctor [--json] [--context]

  --json     print the report as one JSON object
  --context  also create a context on each device; this uses some hundred megabytes of its memory
             for a moment, and detects a device that another process uses exclusively
  --help     print this text
  --version  print the doctor's version

The doctor calls the driver in a separate process and ends that process after a minute, so a driver
that crashes or hangs becomes a finding. The variable CUDA_EVENTS_DRIVER selects a driver library,
as for every program that uses the crate cuda-events.

exit code: 0 a GPU can be used, 1 no GPU can be used, 2 a bad option,
           3 programs run on the software driver, without a GPU
";

const VISIBLE_DEVICES: &str = "CUDA_VISIBLE_DEVICES";

/// How long the driver may take. `cuInit` on eight GPUs that sleep takes some ten seconds.
const LIMIT: Duration = Duration::from_secs(60);

/// Runs the command `cuda-events-doctor`: reads this process's arguments and prints the report.
///
/// It returns the exit code: 0 if a GPU can be used, 1 if none can be used, 2 for a bad option, and
/// 3 if the driver library is the software driver of this project, which needs no GPU.
/// It starts its own program again and calls the driver there, so a driver that crashes or hangs
/// does no harm. So call it first in `main`.
pub fn main() -> ExitCode {
    let (mut json, mut contexts, mut child) = (false, false, false);
    let mut arguments = Parser::from_env();
    loop {
        match arguments.next() {
            Ok(None) => break,
            Ok(Some(Long("json"))) => json = true,
            Ok(Some(Long("context"))) => contexts = true,
            Ok(Some(Long(child::OPTION))) => child = true,
            Ok(Some(Long("help") | Short('h'))) => return print(HELP),
            Ok(Some(Long("version") | Short('V'))) => {
                return print(concat!("cuda-events-doctor ", env!("CARGO_PKG_VERSION"), "\n"));
            }
            Ok(Some(other)) => return refuse(&other.unexpected()),
            Err(error) => return refuse(&error),
        }
    }
    let system = System::here();
    if child {
        child::answer(&system, contexts);
        return ExitCode::SUCCESS;
    }
    let probe = match std::env::current_exe() {
        Ok(program) => {
            let command = || {
                let mut command = Command::new(&program);
                command.arg(format!("--{}", child::OPTION)).args(contexts.then_some("--context"));
                command
            };
            let probe = child::ask(command(), LIMIT);
            ask_unhidden(&system, probe, command)
        }
        // Where the program does not know itself, the driver is asked here.
        Err(_) => Probe::ask(&system, Driver::load(), contexts),
    };
    let report = Report::new(&system, &probe);
    let text = if json { report.to_json() } else { report.to_string() };
    print(&format!("{text}\n"));
    ExitCode::from(code_of(&report))
}

fn code_of(report: &Report) -> u8 {
    match (report.usable(), report.is_software()) {
        (true, false) => 0,
        (true, true) => 3,
        (false, _) => 1,
    }
}

/// If no device is visible, asks once more without `CUDA_VISIBLE_DEVICES`: a driver that then has
/// one shows that the variable is the reason.
fn ask_unhidden(system: &System, mut probe: Probe, command: impl Fn() -> Command) -> Probe {
    if probe.is_without_device() && system.env(VISIBLE_DEVICES).is_some() {
        let mut command = command();
        command.env_remove(VISIBLE_DEVICES);
        let again = child::ask(command, LIMIT);
        probe.unhidden = again.lost.is_none().then_some(again.devices.len());
    }
    probe
}

/// Prints what may be cut off: `| head` is no failure.
fn print(text: &str) -> ExitCode {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    ExitCode::SUCCESS
}

fn refuse(error: &lexopt::Error) -> ExitCode {
    use std::io::Write;
    let text = format!("cuda-events-doctor: {error}\n\n{HELP}");
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
    ExitCode::from(2)
}

impl Report {
    /// Creates the report from a machine's files and a driver's results.
    pub fn new(system: &System, probe: &Probe) -> Self {
        checks::examine(system, probe)
    }

    /// Creates the report about this process: its environment, rights, limits, and the driver
    /// that it loaded or could not load.
    ///
    /// It makes the driver calls of [`Probe::ask`] without contexts, in this process. So a driver
    /// that crashes in `cuInit` ends this process. It creates no context and does not wait for a
    /// device.
    pub fn of_this_process(driver: Result<Driver, Error>) -> Self {
        let system = System::here();
        Self::new(&system, &Probe::ask(&system, driver, false))
    }
}
