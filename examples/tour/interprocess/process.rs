//! The child process, as the parent sees it. The two exchange lines, and neither waits forever for
//! the other.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};

use crate::gpu::TIMEOUT;
use crate::options::{CHILD, Choice};
use crate::report::Failure;

/// The first word of the line in which the child reports an error.
pub(crate) const FAILED: &str = "failed";

pub(crate) struct Child {
    process: std::process::Child,
    lines: Receiver<String>,
}

impl Child {
    /// Starts this program again, on the same driver.
    pub(crate) fn start(driver: &Choice, file: &Path) -> Result<Self, Failure> {
        let failed =
            |error| Failure::Runtime(format!("starting the child process failed: {error}"));
        let mut command = Command::new(std::env::current_exe().map_err(failed)?);
        command.arg(format!("--{CHILD}")).arg(file).arg("--driver").arg(driver.argument());
        let mut process =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(failed)?;
        let output = process.stdout.take();
        let (send, lines) = channel();
        // It ends with the child, or when no thread receives from it any more.
        std::thread::spawn(move || {
            let lines = output
                .into_iter()
                .flat_map(|output| BufReader::new(output).lines().map_while(Result::ok));
            lines.for_each(|line| drop(send.send(line)));
        });
        Ok(Self { process, lines })
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    pub(crate) fn send(&mut self, line: &str) -> Result<(), Failure> {
        let written = self.process.stdin.as_mut().map(|input| writeln!(input, "{line}"));
        match written {
            Some(Ok(())) => Ok(()),
            // Its own last words say more than "broken pipe".
            _ => Err(self.receive("an end").err().unwrap_or_else(|| self.ended())),
        }
    }

    /// Returns the rest of the child's next line, which must begin with this word.
    pub(crate) fn receive(&mut self, word: &str) -> Result<String, Failure> {
        let line = match self.lines.recv_timeout(TIMEOUT) {
            Ok(line) => line,
            Err(RecvTimeoutError::Disconnected) => return Err(self.ended()),
            Err(RecvTimeoutError::Timeout) => {
                let seconds = TIMEOUT.as_secs();
                return Err(Failure::Runtime(format!(
                    "the child process sent no line for {seconds} s"
                )));
            }
        };
        match line.split_once(' ') {
            Some((first, rest)) if first == word => Ok(rest.to_owned()),
            Some((FAILED, why)) => {
                Err(Failure::Runtime(format!("the child process failed: {why}")))
            }
            _ => Err(Failure::Runtime(format!(
                "the child process sent {line:?} instead of {word:?}"
            ))),
        }
    }

    /// Waits until the child has ended successfully.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        match self.lines.recv_timeout(TIMEOUT) {
            Err(RecvTimeoutError::Disconnected) => {}
            _ => return Err(Failure::Runtime("the child process did not end".to_owned())),
        }
        match self.process.wait() {
            Ok(status) if status.success() => Ok(()),
            _ => Err(self.ended()),
        }
    }

    fn ended(&mut self) -> Failure {
        match self.process.wait() {
            Ok(status) => Failure::Runtime(format!("the child process ended with {status}")),
            Err(error) => {
                Failure::Runtime(format!("waiting for the child process failed: {error}"))
            }
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // After `finish` there is nothing to kill; otherwise the child must not live on.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub(crate) fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits = |at| text.get(at..at + 2);
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(digits(at)?, 16).ok()).collect()
}
