//! The findings of a process: some are suppressed, the others are written to files or to standard
//! error, and all are counted.
//!
//! ```
//! use cuda_order_check_engine::findings::{Findings, Sink, Suppression};
//! use cuda_order_check_engine::{Access, Call, Checker, Op, StreamId, ThreadId};
//!
//! let mut checker = Checker::default();
//! for (number, stream) in [(1, StreamId(0xa)), (2, StreamId(0xb))] {
//!     let call = Call::new("cuMemsetD8Async", number, ThreadId(1));
//!     checker.apply(call, Op::Work { stream, accesses: &[Access::write(0x7000, 256)] });
//! }
//! let suppressed = vec![Suppression::from_text("call:cuMemcpy*")?];
//! let mut findings = Findings::new(vec![Sink::stderr("")], suppressed);
//! for finding in checker.take_findings() {
//!     assert!(findings.add(finding, ""));
//! }
//! findings.summary(&[]);
//! assert_eq!(findings.errors().len(), 1);
//! # Ok::<_, String>(())
//! ```

use std::fmt;
use std::fs::File;
use std::io::{self, Write as _};

use crate::files;
pub use crate::form::{Certainty, Stacks};
use crate::form::{TAIL, With};
use crate::json::list;
use crate::report::{Finding, Report, Side, Warning};
use crate::sarif::Sarif;

/// The number of errors, and of warnings, that a program can ask for later. All are written.
const MAX: usize = 1000;

/// Whether a name matches a pattern, in which `*` stands for any text.
#[must_use]
pub fn matches(pattern: &str, name: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == name };
    let (middle, tail) = rest.rsplit_once('*').unwrap_or(("", rest));
    let inner = name.strip_prefix(head).and_then(|name| name.strip_suffix(tail));
    let Some(mut left) = inner else { return false };
    // Each part is matched at its first occurrence, so no pattern takes long.
    middle.split('*').all(|part| {
        let found = left.split_once(part);
        left = found.map_or(left, |(_, rest)| rest);
        found.is_some()
    })
}

/// The findings that are not to be reported. In all patterns `*` stands for any text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Suppression {
    /// The whole name of one of the calls.
    Call(String),
    /// Text in a line of a backtrace, or in the source line of a call.
    Function(String),
    /// Text in the name of a kernel.
    Kernel(String),
    /// The whole name of a class of findings.
    Class(String),
}

impl Suppression {
    /// Parses one line: `call:cuMemcpy*`, `function:upload`, `kernel:softmax`, `class:free`.
    ///
    /// # Errors
    ///
    /// One sentence, if the line is not a suppression.
    pub fn from_text(text: &str) -> Result<Self, String> {
        let within = |pattern: &str| format!("*{pattern}*");
        match text.split_once(':').map(|(kind, pattern)| (kind, pattern.trim())) {
            Some(("call", name)) if !name.is_empty() => Ok(Self::Call(name.to_owned())),
            Some(("function", name)) if !name.is_empty() => Ok(Self::Function(within(name))),
            Some(("kernel", name)) if !name.is_empty() => Ok(Self::Kernel(within(name))),
            Some(("class", name)) if !name.is_empty() => Ok(Self::Class(name.to_owned())),
            _ => Err(format!(
                "`{text}` is not a suppression: use call:NAME, function:NAME, kernel:NAME or \
                 class:NAME, where * stands for any text"
            )),
        }
    }

    /// Parses the text of a file with one suppression in each line. Empty lines, and lines that
    /// begin with `#`, are ignored.
    ///
    /// # Errors
    ///
    /// One sentence about the first line that is not a suppression.
    pub fn from_lines(text: &str) -> Result<Vec<Self>, String> {
        let lines = text.lines().map(str::trim);
        let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        lines.map(Self::from_text).collect()
    }

    fn covers(&self, finding: &Finding, class: &str) -> bool {
        if let Self::Class(pattern) = self {
            return matches(pattern, class);
        }
        if let (Self::Kernel(pattern), Finding::Report(report)) = (self, finding) {
            let names = |side: &Side| side.kernel().is_some_and(|name| matches(pattern, &name));
            return names(&report.first) || names(&report.second);
        }
        finding.calls().into_iter().any(|call| match self {
            Self::Call(pattern) => {
                let (name, _) = parts(&call.name);
                matches(pattern, name)
            }
            Self::Kernel(pattern) => parts(&call.name).1.is_some_and(|name| matches(pattern, name)),
            Self::Function(pattern) => {
                let place = call.location.as_ref().map(ToString::to_string);
                let frames = call.backtrace.as_ref().map(ToString::to_string);
                place.iter().chain(&frames).any(|text| text.lines().any(|it| matches(pattern, it)))
            }
            Self::Class(_) => false,
        })
    }
}

/// As a line of a file has it.
impl fmt::Display for Suppression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let within = |text: &'_ str| text.strip_prefix('*')?.strip_suffix('*').map(str::to_owned);
        let part = |text: &String| within(text).unwrap_or_else(|| text.clone());
        match self {
            Self::Call(name) => write!(f, "call:{name}"),
            Self::Function(text) => write!(f, "function:{}", part(text)),
            Self::Kernel(text) => write!(f, "kernel:{}", part(text)),
            Self::Class(name) => write!(f, "class:{name}"),
        }
    }
}

/// The function and the kernel of a call with the name `cuLaunchKernel of softmax`.
fn parts(name: &str) -> (&str, Option<&str>) {
    name.split_once(" of ").map_or((name, None), |(call, kernel)| (call, Some(kernel)))
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    errors: u64,
    warnings: u64,
    suppressed: u64,
}

/// A number of things that have a regular plural: `1 copy`, `2 copies`.
#[must_use]
pub fn counted(count: u64, plural: &str) -> String {
    let one = match (plural.strip_suffix("ies"), plural.strip_suffix("ches")) {
        (Some(begin), _) => format!("{begin}y"),
        (_, Some(begin)) => format!("{begin}ch"),
        _ => plural.trim_end_matches('s').to_owned(),
    };
    format!("{count} {}", if count == 1 { &one } else { plural })
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { errors, warnings, suppressed } = self;
        let (errors, warnings) = (counted(*errors, "errors"), counted(*warnings, "warnings"));
        write!(f, "{errors}, {warnings}")?;
        if *suppressed > 0 { write!(f, ", {suppressed} suppressed") } else { Ok(()) }
    }
}

/// Where findings are written.
#[derive(Debug)]
pub struct Sink {
    to: Target,
    /// The begin of each text.
    prefix: &'static str,
    json: bool,
}

#[derive(Debug)]
enum Target {
    Stderr,
    File(Named),
    /// A write to the file has failed.
    Nowhere,
}

/// A file that is open. The program may close all files that are, and then has the number of this
/// one for a file of its own.
#[derive(Debug)]
struct Named {
    file: Option<File>,
    path: String,
    identity: Option<[u64; 2]>,
}

impl Named {
    fn open(path: String) -> io::Result<Self> {
        let file = files::appended(&path)?;
        let identity = identity(&file);
        Ok(Self { file: Some(file), path, identity })
    }

    /// Leaves the number alone if it is another file's.
    fn forget_other(&mut self) {
        if let Some(other) = self.file.take_if(|file| identity(file) != self.identity) {
            std::mem::forget(other);
        }
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        self.forget_other();
        if self.file.is_none() {
            *self = Self::open(self.path.clone())?;
            self.file = self.file.take().map(out_of_the_way);
        }
        let Some(file) = &mut self.file else { return Ok(()) };
        quietly(|| file.write_all(text.as_bytes()))
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        self.forget_other();
    }
}

/// With a number that the program, which has closed its files, does not expect for its next one.
fn out_of_the_way(file: File) -> File {
    #[cfg(all(unix, feature = "process"))]
    {
        use std::os::fd::{AsRawFd, FromRawFd};
        // SAFETY: the file's number; the copy is owned by nobody else.
        unsafe {
            let copy = libc::fcntl(file.as_raw_fd(), libc::F_DUPFD_CLOEXEC, 100);
            if copy >= 0 { File::from_raw_fd(copy) } else { file }
        }
    }
    #[cfg(not(all(unix, feature = "process")))]
    file
}

/// Which file it is, where the system says so.
fn identity(file: &File) -> Option<[u64; 2]> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let found = file.metadata().ok()?;
        Some([found.dev(), found.ino()])
    }
    #[cfg(not(unix))]
    {
        let _ = file;
        None
    }
}

/// No signal ends the process if nobody reads there any more.
fn quietly(write: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    #[cfg(all(feature = "process", target_os = "linux"))]
    return crate::pipe::without_signal(write);
    #[cfg(not(all(feature = "process", target_os = "linux")))]
    write()
}

impl Sink {
    /// Standard error. Each text begins with `prefix`.
    #[must_use]
    pub fn stderr(prefix: &'static str) -> Self {
        Self { to: Target::Stderr, prefix, json: false }
    }

    /// The end of a file. `%p` in the path is the number of the process.
    ///
    /// # Errors
    ///
    /// The file cannot be opened or created.
    pub fn file(path: &str) -> io::Result<Self> {
        let file = Named::open(path.replace("%p", &std::process::id().to_string()))?;
        Ok(Self { to: Target::File(file), prefix: "", json: false })
    }

    /// Writes each finding, and the summary, as a JSON object in one line.
    #[must_use]
    pub fn json(mut self) -> Self {
        (self.prefix, self.json) = ("", true);
        self
    }

    /// One write for each text, so that those of several processes do not mix. If a file cannot be
    /// written, standard error says so once, and has the text and all later ones; JSON ends then.
    pub fn write(&mut self, text: &str) {
        let line = format!("{}{text}\n", self.prefix);
        let Target::File(file) = &mut self.to else {
            if matches!(self.to, Target::Stderr) {
                let _ = quietly(|| io::stderr().write_all(line.as_bytes()));
            }
            return;
        };
        let Err(error) = file.write(&line) else { return };
        let (instead, to) = match self.json {
            true => ("there is no more JSON", Target::Nowhere),
            false => ("findings go here", Target::Stderr),
        };
        let what = format!("order check: cannot write {}, so {instead}: {error}", file.path);
        Self::stderr("").write(&what);
        self.to = to;
        self.write(text);
    }
}

/// The findings of a process.
#[derive(Debug)]
pub struct Findings {
    errors: Vec<Report>,
    warnings: Vec<Warning>,
    counts: Counts,
    sinks: Vec<Sink>,
    /// Each with whether it covered a finding.
    suppressed: Vec<(Suppression, bool)>,
    stacks: Stacks,
    sarif: Option<Sarif>,
    /// How often each error was found.
    times: Vec<u64>,
    /// Whether the summary was written.
    ended: bool,
}

impl Findings {
    /// No findings yet.
    #[must_use]
    pub fn new(sinks: Vec<Sink>, suppressed: Vec<Suppression>) -> Self {
        Self {
            errors: Vec::new(),
            warnings: Vec::new(),
            counts: Counts::default(),
            sinks,
            suppressed: suppressed.into_iter().map(|which| (which, false)).collect(),
            stacks: Stacks::Short,
            sarif: None,
            times: Vec::new(),
            ended: false,
        }
    }

    /// Sets where findings are written.
    #[must_use]
    pub fn sinks(mut self, sinks: Vec<Sink>) -> Self {
        self.sinks = sinks;
        self
    }

    /// Sets how much of the backtraces the texts have.
    #[must_use]
    pub fn stacks(mut self, stacks: Stacks) -> Self {
        self.stacks = stacks;
        self
    }

    /// Writes the findings to a file in the format of code review tools as well: SARIF 2.1.0, the
    /// first 200. `%p` in the path is the number of the process. `classes` has the names of classes,
    /// each with a sentence about it.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn sarif(mut self, path: &str, classes: &[(&str, &str)]) -> io::Result<Self> {
        self.sarif = Some(Sarif::new(path, classes)?);
        Ok(self)
    }

    /// The first 1000 errors.
    #[must_use]
    pub fn errors(&self) -> &[Report] {
        &self.errors
    }

    /// The first 1000 warnings.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Writes a finding. `class` is the name of its class, for [`Suppression::Class`]; an empty
    /// name is not written. Returns whether the finding is an error and not suppressed.
    pub fn add(&mut self, finding: Finding, class: &str) -> bool {
        self.add_with(finding, class, None)
    }

    /// The same of a finding about a [launch](crate::Launch), with how sure it is.
    pub fn add_with(
        &mut self,
        finding: Finding,
        class: &str,
        certainty: Option<Certainty<'_>>,
    ) -> bool {
        let mut is_suppressed = false;
        for (which, covered) in &mut self.suppressed {
            if which.covers(&finding, class) {
                (is_suppressed, *covered) = (true, true);
            }
        }
        if is_suppressed {
            self.counts.suppressed += 1;
            return false;
        }
        let with = With { class, certainty, stacks: self.stacks };
        for sink in &mut self.sinks {
            let text = match sink.json {
                true => finding.json(with),
                false => finding.text(with),
            };
            sink.write(&text);
        }
        if let Some(sarif) = &mut self.sarif {
            sarif.add(&finding, with);
        }
        match finding {
            Finding::Report(report) => {
                self.counts.errors += 1;
                if self.errors.len() < MAX {
                    self.errors.push(report);
                }
                true
            }
            Finding::Warning(warning) => {
                self.counts.warnings += 1;
                if self.warnings.len() < MAX {
                    self.warnings.push(warning);
                }
                false
            }
        }
    }

    /// Sets how often each of the [errors](Self::errors) was found. The summary says so.
    pub fn again(&mut self, times: &[u64]) {
        self.times = times.to_vec();
        if let Some(sarif) = &self.sarif {
            let _ = sarif.write(times);
        }
    }

    /// A line for each error that was found more than once.
    fn lines_of_times(&self) -> Vec<String> {
        /// The most lines.
        const SHOWN: usize = 16;
        let all = self.errors.iter().zip(&self.times).filter(|(_, times)| **times > 1);
        let line = |(error, times): (&Report, &u64)| {
            let head = error.head();
            let head = head.trim_end_matches(TAIL).trim_start_matches("missing order: ");
            format!("order check: {times} times: {head}")
        };
        all.take(SHOWN).map(line).collect()
    }

    /// Writes a text for people.
    pub fn note(&mut self, text: &str) {
        self.sinks.iter_mut().filter(|sink| !sink.json).for_each(|sink| sink.write(text));
    }

    /// Writes the counts, once. `seen` has further counts, such as `("kernels", 7)`: the text is
    /// then `order check: 0 findings in 7 kernels`. If `seen` is empty and there was no finding,
    /// only files get the summary, to show that the checker was on. Otherwise it also names the
    /// suppressions that covered no finding.
    pub fn summary(&mut self, seen: &[(&str, u64)]) {
        let Counts { errors, warnings, suppressed } = self.counts;
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        let is_silent = seen.is_empty() && errors + warnings + suppressed == 0;
        let (mut text, mut json) = (format!("order checker: {}", self.counts), String::new());
        if !seen.is_empty() {
            let suppressed =
                if suppressed > 0 { format!(", {suppressed} suppressed,") } else { "".into() };
            let found = counted(errors + warnings, "findings");
            text = format!("order check: {found}{suppressed} in ");
            let counts = seen.iter().map(|(name, count)| counted(*count, name));
            text += &counts.collect::<Vec<_>>().join(", ");
            json = seen.iter().map(|(name, count)| format!(",\"{name}\":{count}")).collect();
        }
        if !self.times.is_empty() {
            let times = self.times.iter().map(ToString::to_string);
            json += &format!(",\"times\":{}", list(times));
        }
        let json = format!(
            "{{\"severity\":\"summary\",\"errors\":{errors},\"warnings\":{warnings},\
             \"suppressed\":{suppressed}{json}}}"
        );
        for sink in &mut self.sinks {
            if !matches!(sink.to, Target::Stderr) || !is_silent {
                sink.write(if sink.json { &json } else { &text });
            }
        }
        let times = self.lines_of_times();
        times.iter().for_each(|line| self.note(line));
        let unused = self.suppressed.iter().filter(|(_, covered)| !covered);
        let unused: Vec<_> = unused.map(|(which, _)| which.to_string()).collect();
        if !is_silent && !unused.is_empty() {
            self.note(&format!("order check: suppressed nothing: {}", unused.join(", ")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Suppression, counted, matches};

    #[test]
    fn suppressions_are_parsed() {
        let call = |text: &str| Ok(Suppression::Call(text.to_owned()));
        assert_eq!(Suppression::from_text("call:cuMem*"), call("cuMem*"));
        let function = Suppression::Function("*game::load*".to_owned());
        assert_eq!(Suppression::from_text("function: game::load"), Ok(function));
        for wrong in ["", "cuMemcpy", "call:", "race:x", "function:  "] {
            assert!(Suppression::from_text(wrong).is_err(), "{wrong}");
        }
        let lines = Suppression::from_lines("# of the library\n\n kernel:copy\nclass:free\n");
        let class = Suppression::Class("free".to_owned());
        assert_eq!(lines, Ok(vec![Suppression::Kernel("*copy*".to_owned()), class]));
    }

    /// Each kind looks at both calls, and at its own part of them.
    #[test]
    fn a_suppression_covers_either_call() {
        use crate::op::{Access, Location, Op, StreamId, ThreadId};
        use crate::{Call, Checker};
        let finding = |swapped: bool| {
            let mut one = Call::new("cuLaunchKernel of softmax", 1, ThreadId(1));
            let file = "src/game.rs".into();
            one.location = Some(Location { file, line: 7, column: 3 });
            let mut other = Call::new("cuMemsetD8Async", 2, ThreadId(1));
            other.backtrace = Some(std::sync::Arc::new("0: game::load\n1: game::main"));
            let mut calls = [one, other];
            if swapped {
                calls.reverse();
            }
            let mut checker = Checker::default();
            for (call, stream) in calls.into_iter().zip([StreamId(1), StreamId(2)]) {
                checker.apply(call, Op::Work { stream, accesses: &[Access::write(0x7000, 16)] });
            }
            checker.take_findings().remove(0)
        };
        for (text, expected) in [
            ("call:cuLaunchKernel", true),
            ("call:cuMemsetD8Async", true),
            ("call:softmax", false),
            ("kernel:softmax", true),
            ("kernel:cuMemset", false),
            ("function:src/game.rs:7:3", true),
            ("function:game.rs:8", false),
            ("function:game::load", true),
            ("function:game::main", true),
            // A pattern is for one line.
            ("function:load*main", false),
            ("function:softmax", false),
            ("class:rac*", true),
            ("class:game", false),
        ] {
            let suppression = Suppression::from_text(text).expect("it is one");
            assert_eq!(suppression.to_string(), text);
            for swapped in [false, true] {
                let covers = suppression.covers(&finding(swapped), "race");
                assert_eq!(covers, expected, "{text}, swapped: {swapped}");
            }
        }
    }

    #[test]
    fn one_thing_has_no_plural() {
        for (plural, one) in [("copies", "1 copy"), ("threads", "1 thread"), ("batches", "1 batch")]
        {
            assert_eq!(counted(1, plural), one);
            assert_eq!(
                [0, 2].map(|count| counted(count, plural)),
                [0, 2].map(|count| format!("{count} {plural}"))
            );
        }
    }

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, name, matching) in [
            ("cuMemcpy", "cuMemcpy", true),
            ("cuMemcpy", "cuMemcpyAsync", false),
            ("cu*Async", "cuMemcpyAsync", true),
            ("*set*D8*", "cuMemsetD2D8Async", true),
            ("*D8*set*", "cuMemsetD2D8Async", false),
            ("a*a", "a", false),
        ] {
            assert_eq!(matches(pattern, name), matching, "{pattern} {name}");
        }
    }
}
