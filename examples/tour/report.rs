//! The end of the tour: a table, or one line about an error.

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

use cuda_events::Error;

/// The reason why the tour ended early.
pub(crate) enum Failure {
    /// A bad option, device or path.
    Usage(String),
    /// Any other error.
    Runtime(String),
    /// The reader of the tour's output has closed it, as with `tour | head -n 1`.
    OutputClosed,
}

impl Failure {
    /// Prints the failure in one line, and returns the exit code.
    pub(crate) fn report(self) -> ExitCode {
        let (text, code) = match self {
            Self::Usage(text) => (text, 2),
            Self::Runtime(text) => (text, 1),
            Self::OutputClosed => return ExitCode::FAILURE,
        };
        // If standard error is closed too, the error cannot be reported.
        let _ = writeln!(io::stderr(), "tour: {}", text.replace('\n', " "));
        ExitCode::from(code)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Load(_) | Error::NoSuchDevice { .. } => Self::Usage(error.to_string()),
            _ => Self::Runtime(error.to_string()),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::OutputClosed,
            _ => Self::Runtime(format!("writing the output failed: {error}")),
        }
    }
}

/// The measurements, aligned when printed. The columns are: what, the time, the bandwidth, the
/// data.
pub(crate) struct Table(Vec<[String; 4]>);

impl Table {
    pub(crate) fn new() -> Self {
        Self(vec![["operation", "time", "bandwidth", "data"].map(str::to_owned)])
    }

    /// Adds a row. Empty cells are allowed.
    pub(crate) fn row(&mut self, what: &str, time: &str, bandwidth: &str, data: &str) {
        self.0.push([what, time, bandwidth, data].map(str::to_owned));
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width =
            |column: usize| self.0.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let (widest_what, widest_time, widest_bandwidth) = (width(0), width(1), width(2));
        for [what, time, bandwidth, data] in &self.0 {
            let line = format!(
                "   {what:widest_what$}  {time:>widest_time$}  {bandwidth:>widest_bandwidth$}  \
                    {data}"
            );
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}
