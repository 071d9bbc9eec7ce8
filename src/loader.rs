//! Finding the driver library, opening it, and resolving the symbol table.
//!
//! Nothing here initialises the driver: the only driver calls made are `cuDriverGetVersion` and `cuGetProcAddress`.

pub(crate) mod platform;
#[allow(unsafe_code)]
mod resolve;

use core::ffi::CStr;
use core::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) use resolve::resolve;

use crate::Version;
use crate::sys::{CUresult, Function, Symbols};

/// The environment variable that names the driver library instead of the usual places.
///
/// Its value is an absolute path. It is ignored in a process that has more rights than whoever set the environment
/// (set-user-ID and file capabilities on Linux, elevation on Windows), on platforms where that cannot be told, and
/// wherever the program names a library itself. When it is set, no other place is looked in.
pub const DRIVER_VARIABLE: &str = "CUDA_EVENTS_DRIVER";

/// How to load a driver. [`Driver::load_with`](crate::Driver::load_with) takes it.
///
/// ```
/// use cuda_events::LoadOptions;
///
/// let options = LoadOptions::new().path("/usr/lib/x86_64-linux-gnu/libcuda.so.1").per_thread_default_stream(true);
/// # let _ = options;
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct LoadOptions {
    path: Option<PathBuf>,
    per_thread_default_stream: bool,
}

impl LoadOptions {
    /// The usual places, and the legacy default stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Opens this library and no other. It outranks [`DRIVER_VARIABLE`].
    ///
    /// An absolute path is opened as it is; a bare file name goes through the system's search.
    pub fn path(mut self, path: impl Into<PathBuf>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// Whether the NULL stream means the calling thread's own default stream (`CU_STREAM_PER_THREAD`) instead of the
    /// legacy one: what `CUDA_API_PER_THREAD_DEFAULT_STREAM` does to a C program. It selects the `_ptsz` entry points.
    pub fn per_thread_default_stream(mut self, on: bool) -> Self {
        self.per_thread_default_stream = on;
        self
    }

    pub(crate) fn is_per_thread(&self) -> bool {
        self.per_thread_default_stream
    }

    /// What to try, by these options and the environment.
    pub(crate) fn candidates(&self) -> Candidates {
        let per_thread_default_stream = self.per_thread_default_stream;
        if let Some(path) = &self.path {
            return Candidates { paths: vec![path.clone()], from_environment: false, per_thread_default_stream };
        }
        match std::env::var_os(DRIVER_VARIABLE) {
            Some(path) if !path.is_empty() && !platform::privileged() => {
                Candidates { paths: vec![path.into()], from_environment: true, per_thread_default_stream }
            }
            _ => Candidates {
                paths: platform::CANDIDATES.iter().map(PathBuf::from).collect(),
                from_environment: false,
                per_thread_default_stream,
            },
        }
    }
}

/// The libraries to try, in order, and how to resolve the one that opens.
#[derive(PartialEq, Eq)]
pub(crate) struct Candidates {
    paths: Vec<PathBuf>,
    from_environment: bool,
    per_thread_default_stream: bool,
}

/// A resolved driver library: what a [`Driver`](crate::Driver) points to.
#[derive(Clone)]
pub(crate) struct Loaded {
    pub(crate) symbols: Symbols,
    /// Tells the library from others: the address of one of its functions. Tables that were made out of this one keep it.
    pub(crate) library: usize,
    pub(crate) version: Version,
    pub(crate) per_thread_default_stream: bool,
    /// The name it was opened by; none for one that came from a resolver function.
    pub(crate) candidate: Option<PathBuf>,
    /// The file its code is in, where the platform can tell.
    pub(crate) file: Option<PathBuf>,
}

impl Loaded {
    pub(crate) fn new(symbols: Symbols, version: Version, per_thread: bool, candidate: Option<PathBuf>) -> Self {
        let address = symbols.address(Function::cuDriverGetVersion);
        let file = candidate.as_ref().and_then(|_| platform::file_of(address));
        let library = address.addr();
        Self { symbols, library, version, per_thread_default_stream: per_thread, candidate, file }
    }
}

/// Opens the first candidate that is a usable driver.
pub(crate) fn open(candidates: &Candidates) -> Result<Loaded, LoadError> {
    let mut attempts = Vec::new();
    for candidate in &candidates.paths {
        let loaded = if candidates.from_environment && !candidate.is_absolute() {
            Err(LoadFailure::RelativePath)
        } else {
            open_one(candidate, candidates.per_thread_default_stream)
        };
        match loaded {
            Ok(loaded) => return Ok(loaded),
            Err(failure) => attempts.push(LoadAttempt { candidate: Some(candidate.clone()), failure }),
        }
    }
    Err(LoadError { attempts: Arc::new(attempts) })
}

#[allow(unsafe_code)]
fn open_one(candidate: &Path, per_thread: bool) -> Result<Loaded, LoadFailure> {
    // SAFETY: the library is the NVIDIA driver's by its name or the one that the program or the user named as such.
    // Its initialisation code runs, as it would for any program that is linked with it.
    let library = unsafe { platform::open(candidate) }.map_err(LoadFailure::Open)?;
    // SAFETY: addresses by the names that the driver exports, from a library that is never unloaded once it proved to
    // be a driver. A library that exports functions of those names with other types is not a CUDA driver; nothing can
    // recognise it.
    let (symbols, version) = unsafe { resolve(&mut |name: &CStr| library.symbol(name), per_thread) }?;
    library.leak();
    Ok(Loaded::new(symbols, version, per_thread, Some(candidate.to_owned())))
}

/// Why no driver could be loaded: every library that was tried, each with its own reason.
///
/// ```
/// use cuda_events::{Driver, Error, LoadFailure};
///
/// let Err(Error::Load(error)) = Driver::load_from("/no/such/libcuda.so.1") else { panic!("there is none") };
/// for attempt in error.attempts() {
///     assert!(matches!(attempt.failure(), LoadFailure::Open(_)));
///     println!("{:?}: {}", attempt.candidate(), attempt.failure());
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadError {
    // One pointer, as every result of this crate has room for an error, and one whose destructor is a call, as wherever
    // a result is dropped there is a copy of it.
    attempts: Arc<Vec<LoadAttempt>>,
}

impl LoadError {
    /// What was tried, in order. Empty on a platform that NVIDIA has no driver for.
    pub fn attempts(&self) -> &[LoadAttempt] {
        &self.attempts
    }

    pub(crate) fn from_resolver(failure: LoadFailure) -> Self {
        Self { attempts: Arc::new(vec![LoadAttempt { candidate: None, failure }]) }
    }
}

/// One library that was tried, in a [`LoadError`], which shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadAttempt {
    candidate: Option<PathBuf>,
    failure: LoadFailure,
}

impl LoadAttempt {
    /// The path or name that was opened; none for a [resolver function](crate::Driver::from_resolver).
    pub fn candidate(&self) -> Option<&Path> {
        self.candidate.as_deref()
    }

    /// What was wrong with it.
    pub fn failure(&self) -> &LoadFailure {
        &self.failure
    }
}

/// What was wrong with one library. Shown at [`LoadError`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoadFailure {
    /// The system could not open it: not there, or not a library. The text is the system's.
    Open(String),
    /// It was named by [`DRIVER_VARIABLE`] with a relative path.
    RelativePath,
    /// It is a library, but it exports no `cuDriverGetVersion`.
    NotADriver,
    /// It is the toolkit's stub library, which exists to link against and answers every call with
    /// `CUDA_ERROR_STUB_LIBRARY` (34).
    Stub,
    /// `cuDriverGetVersion` failed with this code.
    Version(CUresult),
    /// The driver lacks entry points that this crate cannot do without.
    MissingSymbols {
        /// The driver's own version.
        driver: Version,
        /// All that are missing.
        functions: Vec<Function>,
    },
}

impl fmt::Display for LoadFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(text) => f.write_str(text),
            Self::RelativePath => write!(f, "{DRIVER_VARIABLE} takes an absolute path only"),
            Self::NotADriver => f.write_str("not a CUDA driver: it exports no cuDriverGetVersion"),
            Self::Stub => f.write_str(
                "the CUDA toolkit's stub library (CUDA_ERROR_STUB_LIBRARY, 34), which is for linking only; \
                 take its folder out of the library search path and install the NVIDIA display driver",
            ),
            Self::Version(code) => write!(f, "cuDriverGetVersion failed with {code}"),
            Self::MissingSymbols { driver, functions } => {
                write!(f, "CUDA driver {driver} lacks ")?;
                for (index, function) in functions.iter().enumerate() {
                    let separator = if index == 0 { "" } else { ", " };
                    write!(f, "{separator}{function}")?;
                }
                f.write_str("; this crate needs the entry points of CUDA 11.0")
            }
        }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no usable CUDA driver library")?;
        if self.attempts.is_empty() {
            return f.write_str(": NVIDIA has no driver for this platform");
        }
        for (index, attempt) in self.attempts.iter().enumerate() {
            f.write_str(if index == 0 { ": " } else { "; " })?;
            match &attempt.candidate {
                Some(candidate) => {
                    let name = candidate.display().to_string();
                    match &attempt.failure {
                        // dlopen's text begins with the name already.
                        LoadFailure::Open(text) if text.starts_with(&format!("{name}: ")) => f.write_str(text)?,
                        failure => write!(f, "{name}: {failure}")?,
                    }
                }
                None => write!(f, "from a resolver function: {}", attempt.failure)?,
            }
        }
        Ok(())
    }
}

impl std::error::Error for LoadError {}
