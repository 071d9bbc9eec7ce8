//! The driver is called in a child process, so a driver that crashes or never returns is a finding.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use cuda_events::Driver;
use serde_json::Value;

use crate::probe::{How, Lost, Probe};
use crate::system::System;

/// The option with which the doctor starts itself to call the driver; the help does not list it.
pub(crate) const OPTION: &str = "ask-the-driver";
/// The first words of a line with the results so far, and of a line that names the next step.
const ANSWERS: &str = "@answers ";
const STEP: &str = "@step ";
/// The beginning of the line with which the software driver refuses its settings.
const SETTINGS: &str = "cuda-soft-driver: CUDA_SOFT_DRIVER: ";
/// The line after the last results.
const DONE: &str = "@done";

/// The first step.
const STARTING: &str = "starting a process that asks the driver";

/// The child's side.
pub(crate) fn answer(system: &System, contexts: bool) {
    // The other end may be gone; then nobody wants to know.
    let write = |line: &str| {
        let mut out = std::io::stdout().lock();
        // A library may have printed the beginning of a line.
        let _ = writeln!(out, "\n{line}").and_then(|()| out.flush());
    };
    let mut step = |name: &str, so_far: &Probe| {
        write(&format!("{ANSWERS}{}\n{STEP}{name}", so_far.to_json()));
    };
    let probe = Probe::ask_aloud(system, Driver::load, contexts, &mut step);
    write(&format!("{ANSWERS}{}\n{DONE}", probe.to_json()));
}

/// Starts `command`, which prints the lines of [`answer`], and kills it after `limit`.
pub(crate) fn ask(mut command: Command, limit: Duration) -> Probe {
    let mut step = String::from(STARTING);
    let mut probe = Probe::empty();
    let started =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = match started {
        Ok(child) => child,
        Err(error) => {
            return not_started(&error);
        }
    };
    let (sender, receiver) = channel();
    if let Some(output) = child.stdout.take() {
        // It ends with the child's output, or with this process.
        let reader = thread::Builder::new().spawn(move || {
            for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
                if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                    return;
                }
            }
        });
        if let Err(error) = reader {
            stop(child);
            return not_started(&error);
        }
    }
    let (sender, settings) = channel();
    if let Some(errors) = child.stderr.take() {
        // Without it the child's errors are not shown, and it may wait for a reader.
        let reader = thread::Builder::new().spawn(move || {
            for line in BufReader::new(errors).split(b'\n').map_while(Result::ok) {
                let line = String::from_utf8_lossy(&line).into_owned();
                match line.strip_prefix(SETTINGS) {
                    Some(what) => drop(sender.send(what.to_owned())),
                    // Other text is shown as it comes.
                    None => drop(writeln!(std::io::stderr().lock(), "{line}")),
                }
            }
        });
        if let Err(error) = reader {
            stop(child);
            return not_started(&error);
        }
    }
    let end = Instant::now() + limit;
    let how = loop {
        match receiver.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(line) if line == DONE => {
                stop(child);
                return probe;
            }
            Ok(line) => {
                if let Some(name) = line.strip_prefix(STEP) {
                    name.clone_into(&mut step);
                } else if let Some(answers) = line.strip_prefix(ANSWERS) {
                    let answers = serde_json::from_str::<Value>(answers).unwrap_or_default();
                    probe = Probe { separate: true, ..Probe::from_json(&answers) };
                }
                // Other lines are what a library itself prints.
            }
            Err(RecvTimeoutError::Timeout) => {
                stop(child);
                break How::Hung(limit);
            }
            Err(RecvTimeoutError::Disconnected) => {
                let ended = child.wait().map_or_else(
                    |error| format!("ended the process ({error})"),
                    |status| format!("ended the process ({status})"),
                );
                break How::Ended(ended);
            }
        }
    };
    // It was written before the end. The other side of the channel goes with the child's errors.
    let settings = match how {
        How::Ended(_) => settings.recv_timeout(Duration::from_secs(1)).ok(),
        How::Hung(_) | How::NotStarted { .. } => None,
    };
    probe.lost = Some(Lost { step, how, settings });
    probe
}

/// The system refused what the doctor itself needs.
fn not_started(error: &std::io::Error) -> Probe {
    let step = String::from(STARTING);
    let how = How::NotStarted { number: error.raw_os_error(), text: error.to_string() };
    Probe { lost: Some(Lost { step, how, settings: None }), ..Probe::empty() }
}

/// Ends the child without waiting for it: one that is stuck in the kernel may never end.
fn stop(mut child: Child) {
    let _ = child.kill();
    // Where there is no thread, the system cleans up when this process ends.
    let _ = thread::Builder::new().spawn(move || child.wait());
}
