//! What needs a process of its own: loading for the first time, and exporting an event.

use core::ffi::c_char;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Instant;

use cuda_events::{Context, Device, Driver, Event, EventFlags, IpcEventDescriptor};
use serde_json::{Value, json};

use crate::rounds::spread;

/// The verbs by which this program starts itself.
pub const LOAD: &str = "child-load";
pub const EXPORT: &str = "child-export";
pub const OPERATIONS: &str = "child-operations";

pub fn child(verb: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("the program has a path"));
    command.arg(verb).stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

/// Opens the library, then has this crate open it again and resolve everything.
///
/// The second open finds the library there and costs next to nothing, so that it is what this crate
/// adds to `dlopen`.
pub fn load() -> ExitCode {
    unsafe extern "C" {
        fn dlopen(name: *const c_char, flags: i32) -> *mut core::ffi::c_void;
    }
    let started = Instant::now();
    // SAFETY: the declaration is POSIX's; the library is the driver's.
    let library = unsafe { dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    let opened = started.elapsed();
    assert!(!library.is_null(), "there is no libcuda.so.1");
    let started = Instant::now();
    let driver = Driver::load().expect("a driver");
    let loaded = started.elapsed();
    let started = Instant::now();
    let again = Driver::load().expect("a driver");
    let cached = started.elapsed();
    assert_eq!(driver, again, "a second load is another driver");
    println!("{} {} {}", opened.as_nanos(), loaded.as_nanos(), cached.as_nanos());
    ExitCode::SUCCESS
}

/// The samples of so many rounds, spread over so many processes: what this verb measures.
pub fn measure_in(verb: &str, processes: usize, rounds: usize) -> Vec<Value> {
    let processes = processes.min(rounds).max(1);
    let rounds = (rounds / processes).max(1).to_string();
    let measure = |_| {
        let output = child(verb).args(["--rounds", &rounds]).stderr(Stdio::inherit()).output();
        let output = output.expect("the program starts again");
        assert!(output.status.success(), "measuring failed in a process of its own");
        serde_json::from_slice(&output.stdout).expect("the process writes JSON")
    };
    (0..processes).map(measure).collect()
}

/// An array of samples that another process wrote; what is no number is not one here either.
pub fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().into_iter().flatten().map(|value| value.as_f64().unwrap_or(f64::NAN)).collect()
}

pub fn measure_loading(processes: usize, report: &mut impl FnMut(Value)) {
    let mut samples: [Vec<f64>; 3] = Default::default();
    for _ in 0..processes {
        let output = child(LOAD).output().expect("the program starts again");
        assert!(output.status.success(), "loading failed in a process of its own");
        let text = String::from_utf8_lossy(&output.stdout);
        for (samples, nanoseconds) in samples.iter_mut().zip(text.split_whitespace()) {
            samples.push(nanoseconds.parse::<f64>().expect("a number") / 1000.0);
        }
    }
    let [opened, loaded, cached] = samples.map(spread);
    report(json!({
        "kind": "load",
        "dlopen_us": opened,
        "over_dlopen_us": loaded,
        "again_us": cached,
        "processes": processes,
    }));
}

/// Creates an interprocess event, says its descriptor, and keeps it until it is told to end.
pub fn export() -> ExitCode {
    let driver = Driver::load().expect("a driver");
    let context =
        Context::primary(Device::new(driver, 0).expect("device 0")).expect("the primary context");
    let event = Event::new(&context, EventFlags::INTERPROCESS).expect("an event");
    println!("{}", event.ipc_descriptor().expect("an exported event"));
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    ExitCode::SUCCESS
}

/// A process that keeps an exported event until this is dropped.
pub struct Exporter {
    pub descriptor: IpcEventDescriptor,
    process: Child,
}

impl Exporter {
    pub fn start() -> Self {
        let mut process = child(EXPORT).spawn().expect("the program starts again");
        let mut line = String::new();
        let output = process.stdout.as_mut().expect("stdout is a pipe");
        BufReader::new(output).read_line(&mut line).expect("the exporter writes text");
        let descriptor = line.parse().expect("the exporter says a descriptor");
        Self { descriptor, process }
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        // The end of its input ends it.
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}
