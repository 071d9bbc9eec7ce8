//! The findings of the order checker: which are suppressed, where the others are written, their
//! summary, and the exit status of the process.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

use cuda_order_check::{Finding, Report, Warning};

use crate::machine::config::Config;
use crate::pattern::matches;

/// The number of errors, and of warnings, that a program can ask for later. All are written.
const MAX: usize = 1000;

/// The findings that are not to be reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Suppression {
    /// A name of a call, with `*`.
    Call(String),
    /// A part of a line of a backtrace, with `*`.
    Function(String),
}

impl Suppression {
    /// Parses one line: `call:cuMemcpy*`, `function:upload`.
    pub(crate) fn from_text(text: &str) -> Result<Self, String> {
        match text.split_once(':').map(|(kind, pattern)| (kind, pattern.trim())) {
            Some(("call", pattern)) if !pattern.is_empty() => Ok(Self::Call(pattern.to_owned())),
            Some(("function", pattern)) if !pattern.is_empty() => {
                Ok(Self::Function(format!("*{pattern}*")))
            }
            _ => Err(format!(
                "`{text}` is not a suppression: use call:NAME or function:NAME, where * stands \
                 for any text"
            )),
        }
    }

    fn covers(&self, finding: &Finding) -> bool {
        finding.calls().into_iter().any(|call| match self {
            Self::Call(pattern) => matches(pattern, &call.name),
            Self::Function(pattern) => {
                let place = call.location.as_ref().map(ToString::to_string);
                let frames = call.backtrace.as_ref().map(ToString::to_string);
                place.iter().chain(&frames).any(|text| text.lines().any(|it| matches(pattern, it)))
            }
        })
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    errors: u64,
    warnings: u64,
    suppressed: u64,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { errors, warnings, suppressed } = self;
        let s = |count: u64| if count == 1 { "" } else { "s" };
        write!(f, "{errors} error{}, {warnings} warning{}", s(*errors), s(*warnings))?;
        if *suppressed > 0 { write!(f, ", {suppressed} suppressed") } else { Ok(()) }
    }
}

/// What the checker has found.
pub(crate) struct Findings {
    errors: Vec<Report>,
    warnings: Vec<Warning>,
    counts: Counts,
    log: Option<File>,
    json: bool,
    suppress: Vec<Suppression>,
    /// Whether it is still to be printed that reports can show stacks.
    hint: bool,
    exitcode: u8,
    /// Whether the summary was written.
    ended: bool,
}

impl Findings {
    pub(crate) fn new(config: &Config) -> Self {
        let log = config.order_log.as_ref().and_then(|path| {
            let path = path.replace("%p", &std::process::id().to_string());
            let file = OpenOptions::new().create(true).append(true).open(&path);
            let failed = |error| {
                crate::say!("order_log: cannot write {path}, so findings go here: {error}");
            };
            file.map_err(failed).ok()
        });
        if config.order_exitcode != 0 {
            exit::watch();
        }
        Self {
            errors: Vec::new(),
            warnings: Vec::new(),
            counts: Counts::default(),
            log,
            json: config.order_json,
            suppress: config.order_suppress.clone(),
            hint: !config.order_backtraces && !config.order_json,
            exitcode: config.order_exitcode,
            ended: false,
        }
    }

    pub(crate) fn errors(&self) -> &[Report] {
        &self.errors
    }

    pub(crate) fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Writes a finding. Returns whether it is an error, and not suppressed.
    pub(crate) fn add(&mut self, finding: Finding) -> bool {
        if self.suppress.iter().any(|suppression| suppression.covers(&finding)) {
            self.counts.suppressed += 1;
            return false;
        }
        let text = if self.json { finding.to_json() } else { finding.to_string() };
        self.write(&text);
        match finding {
            Finding::Report(report) => {
                if std::mem::take(&mut self.hint) {
                    self.write("set order_backtraces=on to see how the program came to the calls");
                }
                self.counts.errors += 1;
                if self.errors.len() < MAX {
                    self.errors.push(report);
                }
                if self.exitcode != 0 {
                    exit::set(self.exitcode);
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
            _ => false,
        }
    }

    /// Writes the counts: at the end, if there are any or if a file was asked for, which then shows
    /// that the checker was on.
    pub(crate) fn summary(&mut self) {
        let Counts { errors, warnings, suppressed } = self.counts;
        let is_silent = self.log.is_none() && errors + warnings + suppressed == 0;
        if std::mem::replace(&mut self.ended, true) || is_silent {
            return;
        }
        let text = if self.json {
            format!(
                "{{\"severity\":\"summary\",\"errors\":{errors},\"warnings\":{warnings},\
                 \"suppressed\":{suppressed}}}"
            )
        } else {
            format!("order checker: {}", self.counts)
        };
        self.write(&text);
    }

    /// One write for each text, so that those of several processes do not mix.
    fn write(&mut self, text: &str) {
        let line = format!("{text}\n");
        match &mut self.log {
            Some(file) => {
                let _ = file.write_all(line.as_bytes());
            }
            None if self.json => {
                let _ = std::io::stderr().write_all(line.as_bytes());
            }
            None => crate::say!("{text}"),
        }
    }
}

pub(crate) mod exit {
    //! The exit status of the process, if the checker has found an error.

    #[cfg(unix)]
    use std::sync::atomic::AtomicBool;

    use super::*;

    /// 0 for no change.
    static STATUS: AtomicI32 = AtomicI32::new(0);
    /// The process that has the status. A child of a fork has its own.
    static PROCESS: AtomicU32 = AtomicU32::new(0);
    /// Whether a handler of the shared library leaves.
    #[cfg(unix)]
    static LIBRARY: AtomicBool = AtomicBool::new(false);

    pub(super) fn set(status: u8) {
        PROCESS.store(std::process::id(), Ordering::Relaxed);
        STATUS.store(i32::from(status), Ordering::Relaxed);
    }

    /// Looks at the status when the process ends.
    pub(super) fn watch() {
        #[cfg(unix)]
        {
            extern "C" fn at_exit() {
                if !LIBRARY.load(Ordering::Relaxed) {
                    summaries();
                    leave();
                }
            }
            static ONCE: std::sync::Once = std::sync::Once::new();
            ONCE.call_once(|| {
                // SAFETY: the handler takes no arguments, and nothing may unload this code once it
                // was used. If there is no memory for it, the exit status does not change.
                unsafe { libc::atexit(at_exit) };
            });
        }
    }

    /// The shared library calls [`leave`] when it has written its summary. Handlers run in the
    /// reverse order of their registration, so the one here would leave before that.
    #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
    pub(crate) fn leave_to_library() {
        LIBRARY.store(true, Ordering::Relaxed);
    }

    /// Writes the summaries of the drivers that were not dropped: a program may end by `exit`, or
    /// have its driver in a static variable. The shared library does it by itself.
    #[cfg(unix)]
    pub(crate) fn summaries() {
        if LIBRARY.load(Ordering::Relaxed) {
            return;
        }
        for machine in crate::machine::MACHINES.iter().filter(|machine| !machine.switches.forked())
        {
            // The threads that set and copy memory go on while the process ends, and take the lock.
            match machine.lock_within(std::time::Duration::from_secs(10)) {
                Some(mut state) => {
                    state.feed(|feed, _| feed.observer_mut().findings.summary());
                }
                None => {
                    crate::say!("no summary: a call did not return while the process ended");
                }
            }
        }
    }

    /// Ends the process with the status, if there is one. Only for handlers of the exit.
    pub(crate) fn leave() {
        let status = STATUS.swap(0, Ordering::Relaxed);
        if status == 0 || PROCESS.load(Ordering::Relaxed) != std::process::id() {
            return;
        }
        // SAFETY: in a handler of the exit, glibc's `exit` continues with the handlers that are
        // left, and the process ends with the new status.
        #[cfg(all(target_os = "linux", target_env = "gnu"))]
        unsafe {
            libc::exit(status)
        };
        // SAFETY: another library may not allow that. So this is the last handler, after what the
        // program has printed was written.
        #[cfg(all(unix, not(all(target_os = "linux", target_env = "gnu"))))]
        unsafe {
            libc::fflush(core::ptr::null_mut());
            libc::_exit(status)
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suppressions_are_parsed() {
        let call = |text: &str| Ok(Suppression::Call(text.to_owned()));
        assert_eq!(Suppression::from_text("call:cuMem*"), call("cuMem*"));
        let function = Suppression::Function("*game::load*".to_owned());
        assert_eq!(Suppression::from_text("function: game::load"), Ok(function));
        for wrong in ["", "cuMemcpy", "call:", "race:x", "function:  "] {
            assert!(Suppression::from_text(wrong).is_err(), "{wrong}");
        }
    }
}
