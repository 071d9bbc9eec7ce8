//! Calls, with the source line and the path of the program to them.

use std::borrow::Cow;
use std::fmt;
use std::panic;
use std::sync::Arc;

use crate::op::handle::{By, ThreadId};

/// A line of source code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Location {
    /// The file's name.
    pub file: Cow<'static, str>,
    /// The line, from 1 on.
    pub line: u32,
    /// The column, from 1 on; 0 if it is not known.
    pub column: u32,
}

impl From<&'static panic::Location<'static>> for Location {
    fn from(location: &'static panic::Location<'static>) -> Self {
        Self {
            file: Cow::Borrowed(location.file()),
            line: location.line(),
            column: location.column(),
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)?;
        if self.column > 0 { write!(f, ":{}", self.column) } else { Ok(()) }
    }
}

/// The path of a program to a call: a [`std::backtrace::Backtrace`], or any text.
///
/// A report shows the lines that are of the program, the call's own function first. Such a line is
/// `upload, at game.cpp:7`, or the name of the function.
pub trait Backtrace: fmt::Debug + fmt::Display + Send + Sync {
    /// A number that only this path has, if that is known. The text is then made once for all calls
    /// that come on this path.
    fn path(&self) -> Option<u64> {
        None
    }

    /// The lines that are enough to know whether two calls came from the same lines of the program.
    fn outline(&self) -> String {
        self.to_string()
    }
}

impl Backtrace for std::backtrace::Backtrace {}
impl Backtrace for String {}
impl Backtrace for &'static str {}

/// The call that an operation belongs to. Findings name it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Call {
    /// The name of the driver's function, or of another action.
    pub name: Cow<'static, str>,
    /// Its number in the sequence of calls.
    pub number: u64,
    /// The thread or the host function that made the call.
    pub by: By,
    /// The source line of the call, if it is known.
    pub location: Option<Location>,
    /// The backtrace of the call, if it is known. Its text is created when a report is printed.
    pub backtrace: Option<Arc<dyn Backtrace>>,
}

impl Call {
    /// A call of a thread, without a source line.
    pub fn new(name: impl Into<Cow<'static, str>>, number: u64, thread: ThreadId) -> Self {
        Self { name: name.into(), number, by: By::Thread(thread), location: None, backtrace: None }
    }

    /// Sets the source line of the call.
    #[must_use]
    pub fn at(mut self, location: impl Into<Location>) -> Self {
        self.location = Some(location.into());
        self
    }
}

/// Backtraces do not count: their text is not there before a report is printed.
impl PartialEq for Call {
    fn eq(&self, other: &Self) -> bool {
        (&self.name, self.number, &self.by, &self.location)
            == (&other.name, other.number, &other.by, &other.location)
    }
}

/// `call #12 (cuMemcpyHtoDAsync)`.
impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "call #{} ({})", self.number, self.name)
    }
}
