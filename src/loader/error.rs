//! The reasons why no driver could be loaded.

use core::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{DRIVER_VARIABLE, platform};
use crate::Version;
use crate::sys::{CUresult, Function};

#[cfg(doc)]
use crate::sys::calls::*;

/// The oldest CUDA version whose drivers have every required entry point.
const OLDEST: Version = Version::new(11, 0);

/// The source of the list of libraries to try.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// The program: a path, or a function that resolves names.
    Program,
    /// [`DRIVER_VARIABLE`].
    Environment,
    /// No one: they are the usual places.
    Usual,
    /// No one: [`DRIVER_VARIABLE`] is set but ignored, and they are the usual places.
    Ignored,
}

/// The error of loading: every library that was tried, each with its own reason.
///
/// ```
/// use cuda_events::{Driver, Error};
/// use cuda_events::loader::LoadFailure;
///
/// // SAFETY: there is no such file.
/// let Err(Error::Load(error)) = (unsafe { Driver::load_from("/no/such/libcuda.so.1") }) else {
///     panic!("there is none")
/// };
/// for attempt in error.attempts() {
///     assert!(matches!(attempt.failure(), LoadFailure::Open(_)));
///     println!("{:?}: {}", attempt.candidate(), attempt.failure());
/// }
/// ```
///
/// The text ends with advice. It may name the command `cuda-events-doctor`, which finds the cause:
/// `cargo install cuda-events-doctor`.
///
/// `Debug` prints the same text as `Display`: `unwrap`, and an error returned from `main`, print
/// with `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct LoadError {
    // One pointer, because every result of this crate has space for an error. Its destructor is a
    // call, because it is compiled in wherever a result is dropped.
    tried: Arc<Tried>,
}

#[derive(PartialEq, Eq)]
struct Tried {
    origin: Origin,
    attempts: Vec<LoadAttempt>,
}

impl LoadError {
    pub(super) fn new(origin: Origin, attempts: Vec<LoadAttempt>) -> Self {
        Self { tried: Arc::new(Tried { origin, attempts }) }
    }

    /// Returns the libraries that were tried, in order. The list is empty on a platform that has no
    /// NVIDIA driver.
    pub fn attempts(&self) -> &[LoadAttempt] {
        &self.tried.attempts
    }

    pub(crate) fn from_resolver(failure: LoadFailure) -> Self {
        Self::new(Origin::Program, vec![LoadAttempt { candidate: None, failure }])
    }
}

/// One library that was tried, from [`LoadError::attempts`].
///
/// [`LoadError`] has an example.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadAttempt {
    pub(super) candidate: Option<PathBuf>,
    pub(super) failure: LoadFailure,
}

impl LoadAttempt {
    /// Returns the path or name that was opened; `None` for a [resolver
    /// function](crate::Driver::from_resolver).
    ///
    /// [`LoadError`] has an example.
    pub fn candidate(&self) -> Option<&Path> {
        self.candidate.as_deref()
    }

    /// Returns the reason why this library was not used.
    ///
    /// [`LoadError`] has an example.
    pub fn failure(&self) -> &LoadFailure {
        &self.failure
    }
}

/// The reason why one library was not used; [`LoadError`] has an example.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoadFailure {
    /// The system could not open the file: it does not exist or is not a library. The text comes
    /// from the system.
    Open(String),
    /// The path is relative, so it depends on the current folder. [`DRIVER_VARIABLE`] takes an
    /// absolute path. A program may also give a file name without a folder, for which the system
    /// searches.
    RelativePath,
    /// The file is a library, but does not export [`cuDriverGetVersion`].
    NotADriver,
    /// The library is the stub of the CUDA toolkit, which is for linking only. Every call returns
    /// `CUDA_ERROR_STUB_LIBRARY` (34).
    Stub,
    /// [`cuDriverGetVersion`] failed with this code.
    Version(CUresult),
    /// [`DRIVER_VARIABLE`] has another value than the process was started with, or that cannot be
    /// excluded: on Linux there is no `/proc`, or the process has overwritten the environment of
    /// its start; on Windows no C runtime started it. Nothing was opened.
    ChangedVariable,
    /// The driver lacks entry points that this crate requires.
    MissingSymbols {
        /// The driver's version.
        driver: Version,
        /// All missing entry points.
        functions: Vec<Function>,
    },
    /// NVIDIA has no driver for this platform. Nothing was opened.
    Platform,
    /// This program is statically linked, so it cannot load a library. Nothing was opened. This
    /// crate detects it only on Linux.
    StaticProgram,
}

/// The number of missing entry points that the text names.
const NAMED: usize = 3;

impl fmt::Display for LoadFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(text) => f.write_str(text),
            Self::RelativePath => f.write_str("the path is relative; use an absolute path"),
            Self::NotADriver => f.write_str("not a CUDA driver: it exports no cuDriverGetVersion"),
            Self::Stub => f.write_str(
                "the CUDA toolkit's stub library (CUDA_ERROR_STUB_LIBRARY, 34), which is for \
                 linking only; take its folder out of the library search path and install the \
                 NVIDIA display driver",
            ),
            Self::ChangedVariable => write!(
                f,
                "this process was not started with that value of {DRIVER_VARIABLE}; set it before \
                 the start, or name the library by LoadOptions::path"
            ),
            Self::Version(code) => write!(f, "cuDriverGetVersion failed with {code}"),
            Self::MissingSymbols { driver, functions } => {
                if *driver < OLDEST {
                    write!(
                        f,
                        "the driver supports CUDA {driver}, and this crate needs {OLDEST} or \
                            newer: update the driver"
                    )?;
                } else {
                    write!(f, "the driver reports CUDA {driver}, but is not complete")?;
                }
                for (index, function) in functions.iter().take(NAMED).enumerate() {
                    write!(f, "{}{function}", if index == 0 { " (it lacks " } else { ", " })?;
                }
                match functions.len() {
                    0 => Ok(()),
                    1..=NAMED => f.write_str(")"),
                    all => write!(f, " and {} more)", all - NAMED),
                }
            }
            Self::Platform => f.write_str(platform::NO_DRIVER),
            Self::StaticProgram => f.write_str(
                "this program is statically linked, so it cannot load a library; link it \
                 dynamically (RUSTFLAGS=\"-C target-feature=-crt-static\")",
            ),
        }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no usable CUDA driver library: ")?;
        let Tried { origin, attempts } = &*self.tried;
        if attempts.is_empty() {
            return f.write_str(platform::NO_DRIVER);
        }
        if *origin == Origin::Environment {
            write!(f, "{DRIVER_VARIABLE} names ")?;
        }
        for (index, attempt) in attempts.iter().enumerate() {
            if index > 0 {
                f.write_str("; ")?;
            }
            attempt.fmt(f)?;
        }
        let nothing_opened =
            attempts.iter().all(|attempt| matches!(attempt.failure, LoadFailure::Open(_)));
        match origin {
            Origin::Usual | Origin::Ignored => {
                if nothing_opened {
                    f.write_str(
                        "; install the NVIDIA display driver, or start the container with its \
                         GPUs (docker run --gpus all)",
                    )?;
                }
                f.write_str("; run cuda-events-doctor for details")?;
            }
            Origin::Environment if platform::supported() => {
                write!(f, "; set {DRIVER_VARIABLE} to the absolute path of a driver, or unset it")?;
            }
            _ => {}
        }
        if *origin == Origin::Ignored {
            write!(
                f,
                "; {DRIVER_VARIABLE} is set but ignored because {}",
                platform::WHY_PRIVILEGED
            )?;
        }
        Ok(())
    }
}

impl fmt::Debug for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Prints the library and the reason: `/opt/libcuda.so.1: invalid ELF header`.
impl fmt::Display for LoadAttempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(candidate) = &self.candidate else {
            return write!(f, "from a resolver function: {}", self.failure);
        };
        let name = candidate.display().to_string();
        match &self.failure {
            // The system's text may contain the name already: glibc's begins with it, musl's has it
            // in the middle.
            LoadFailure::Open(text) if names(text, &name) => f.write_str(text),
            failure => write!(f, "{name}: {failure}"),
        }
    }
}

/// Whether the text contains the name followed by a colon, and not as the end of a longer path.
fn names(text: &str, name: &str) -> bool {
    let begins =
        |at: usize| text.get(..at).is_some_and(|before| before.is_empty() || before.ends_with(' '));
    let ends = |at: usize| text.get(at + name.len()..).is_some_and(|rest| rest.starts_with(": "));
    text.match_indices(name).any(|(at, _)| begins(at) && ends(at))
}

impl std::error::Error for LoadError {}

#[cfg(test)]
mod tests {
    use super::*;

    /// The texts of several systems, of which a machine has only one.
    #[test]
    fn a_library_is_named_once() {
        for (name, system, text) in [
            // glibc begins with the name, or with the file that its search found under it.
            ("/a/x.so", "/a/x.so: file too short", "/a/x.so: file too short"),
            ("x.so", "/a/x.so: file too short", "x.so: /a/x.so: file too short"),
            // musl has it in the middle.
            (
                "/a/x.so",
                "Error loading shared library /a/x.so: No such file",
                "Error loading shared library /a/x.so: No such file",
            ),
            (
                "x.so",
                "Error relocating /a/x.so: f: symbol not found",
                "x.so: Error relocating /a/x.so: f: symbol not found",
            ),
            // Other texts name no library.
            ("x.so", "Dynamic loading not supported", "x.so: Dynamic loading not supported"),
            ("x", "x.so: file too short", "x: x.so: file too short"),
        ] {
            let attempt = LoadAttempt {
                candidate: Some(name.into()),
                failure: LoadFailure::Open(system.to_owned()),
            };
            assert_eq!(attempt.to_string(), text);
        }
    }

    #[test]
    fn advice_fits_who_named_the_library() {
        let open = || LoadAttempt {
            candidate: Some("/x".into()),
            failure: LoadFailure::Open("no".to_owned()),
        };
        let stub = || LoadAttempt { candidate: Some("/x".into()), failure: LoadFailure::Stub };
        let text = |origin, attempts| LoadError::new(origin, attempts).to_string();
        assert_eq!(text(Origin::Program, vec![open()]), "no usable CUDA driver library: /x: no");
        let usual = text(Origin::Usual, vec![open(), open()]);
        assert!(
            usual.starts_with("no usable CUDA driver library: /x: no; /x: no; install the NVIDIA"),
            "{usual}"
        );
        let ignored = text(Origin::Ignored, vec![open()]);
        assert!(ignored.starts_with("no usable CUDA driver library: /x: no; install the NVIDIA"));
        let why =
            format!("; CUDA_EVENTS_DRIVER is set but ignored because {}", platform::WHY_PRIVILEGED);
        assert!(ignored.ends_with(&why) && !usual.contains("CUDA_EVENTS_DRIVER"), "{ignored}");
        // A library that exists but is not a driver has its own advice.
        let there = text(Origin::Usual, vec![stub(), open()]);
        assert!(!there.contains("container"), "{there}");
        // Where the program did not name the library itself, another program can look further.
        let more = "; run cuda-events-doctor for details";
        assert!(there.ends_with(more) && usual.ends_with(more), "{usual}");
        assert!(ignored.contains(more), "{ignored}");
        let named = text(Origin::Environment, vec![open()]);
        assert!(
            named
                .starts_with("no usable CUDA driver library: CUDA_EVENTS_DRIVER names /x: no; set"),
            "{named}"
        );
        assert_eq!(
            text(Origin::Usual, vec![]),
            "no usable CUDA driver library: NVIDIA has no driver for this platform"
        );
    }
}
