//! Options for loading a driver, and the errors of loading.
//!
//! Loading finds the driver library, opens it and resolves the symbol table. It does not initialise
//! the driver: its only driver calls are [`cuDriverGetVersion`] and [`cuGetProcAddress`].
//! [`Driver::load`](crate::Driver::load) has the libraries that are tried, and their order.
//! [`Driver`](crate::Driver) helps to choose among the ways to load.
//!
//! ```
//! use cuda_events::loader::LoadOptions;
//! use cuda_events::{Driver, Error};
//!
//! // SAFETY: there is no such file.
//! let options = unsafe { LoadOptions::new().path("/no/such/libcuda.so.1") };
//! match Driver::load_with(&options) {
//!     Err(Error::Load(error)) => println!("{error}"),
//!     other => panic!("{other:?}"),
//! }
//! ```

mod error;
pub(crate) mod platform;
#[allow(unsafe_code)]
pub(crate) mod resolve;

use core::ffi::CStr;
use std::path::{Path, PathBuf};

use error::Origin;

use crate::Version;
use crate::sys::{Function, Symbols};

pub use error::{LoadAttempt, LoadError, LoadFailure};

#[cfg(doc)]
use crate::sys::calls::*;

/// The environment variable that names the driver library.
///
/// Its value is an absolute path. If the variable is set, no other library is tried. It is ignored
///
/// * if the program names a library itself,
/// * in a process with more rights than the user who set the environment (set-user-ID and file
///   capabilities on Linux, elevation on Windows),
/// * on platforms where such rights cannot be detected.
///
/// The user who starts a process sets its environment, and is responsible for this variable as for
/// `LD_LIBRARY_PATH`, so loading by it is safe. A program that names a library itself must vouch for
/// it ([`LoadOptions::path`]), and this variable is no way around that: a value that the process was
/// not started with is refused ([`LoadFailure::ChangedVariable`]). In a library that Windows loads
/// later, such as a Python extension, the value when that was loaded counts.
pub const DRIVER_VARIABLE: &str = "CUDA_EVENTS_DRIVER";

/// Options for [`Driver::load_with`](crate::Driver::load_with): the library and the default stream.
///
/// ```
/// use cuda_events::LoadOptions;
///
/// let options = LoadOptions::new().per_thread_default_stream(true);
/// # let _ = options;
/// ```
///
/// The compiler warns if the result of a method is not used:
///
/// ```compile_fail
/// #![deny(unused_must_use)]
/// # use cuda_events::LoadOptions;
/// LoadOptions::new().per_thread_default_stream(true);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[must_use = "options load nothing until Driver::load_with takes them"]
pub struct LoadOptions {
    path: Option<PathBuf>,
    per_thread_default_stream: bool,
}

impl LoadOptions {
    /// Returns the default options: the usual places, and the legacy default stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Names the only library to open. [`DRIVER_VARIABLE`] is then ignored.
    ///
    /// An absolute path is opened directly. For a file name without a folder, the system searches.
    /// Any other path is refused ([`LoadFailure::RelativePath`]).
    ///
    /// # Safety
    ///
    /// Loading with these options opens the library, which runs its initialisation code, and calls
    /// the functions that it exports under the driver's names. A library without them is closed
    /// again. So it is a CUDA driver (NVIDIA's, or one that keeps its contracts); or its code of
    /// initialisation and of termination is sound to run here, and it exports nothing under those
    /// names; or the file does not exist.
    #[allow(unsafe_code)]
    pub unsafe fn path(mut self, path: impl Into<PathBuf>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// Sets whether the NULL stream is the per-thread default stream (`CU_STREAM_PER_THREAD`)
    /// instead of the legacy one.
    ///
    /// `true` selects the `_ptsz` entry points, as `CUDA_API_PER_THREAD_DEFAULT_STREAM` does in a C
    /// program.
    pub fn per_thread_default_stream(mut self, on: bool) -> Self {
        self.per_thread_default_stream = on;
        self
    }

    pub(crate) fn is_per_thread(&self) -> bool {
        self.per_thread_default_stream
    }

    /// The libraries to try, from these options and the environment.
    pub(crate) fn candidates(&self) -> Candidates {
        let from_environment = || std::env::var_os(DRIVER_VARIABLE).filter(|path| !path.is_empty());
        let usual = || platform::CANDIDATES.iter().map(PathBuf::from).collect();
        let (origin, paths) = if let Some(path) = &self.path {
            (Origin::Program, vec![path.clone()])
        } else {
            match from_environment() {
                Some(_) if platform::privileged() => (Origin::Ignored, usual()),
                Some(path) => (Origin::Environment, vec![path.into()]),
                None => (Origin::Usual, usual()),
            }
        };
        Candidates { paths, origin, per_thread_default_stream: self.per_thread_default_stream }
    }
}

/// The libraries to try, in order, and how to resolve the one that opens.
#[derive(PartialEq, Eq)]
pub(crate) struct Candidates {
    paths: Vec<PathBuf>,
    origin: Origin,
    per_thread_default_stream: bool,
}

/// A resolved driver library, to which a [`Driver`](crate::Driver) points.
#[derive(Clone)]
pub(crate) struct Loaded {
    pub(crate) symbols: Symbols,
    /// Identifies the library: the address of one of its functions. Tables made from this one keep
    /// it.
    pub(crate) library: usize,
    pub(crate) version: Version,
    pub(crate) per_thread_default_stream: bool,
    /// The name it was opened by; none if it came from a resolver function.
    pub(crate) candidate: Option<PathBuf>,
    /// The file of its code, if the platform can find it.
    pub(crate) file: Option<PathBuf>,
}

impl Loaded {
    pub(crate) fn new(
        symbols: Symbols,
        version: Version,
        per_thread: bool,
        candidate: Option<PathBuf>,
    ) -> Self {
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
        let loaded = acceptable(candidate, candidates.origin)
            .and_then(|()| open_one(candidate, candidates.per_thread_default_stream));
        match loaded {
            Ok(loaded) => return Ok(loaded),
            Err(failure) => {
                attempts.push(LoadAttempt { candidate: Some(candidate.clone()), failure })
            }
        }
    }
    Err(LoadError::new(candidates.origin, attempts))
}

/// Refuses names that the system would take for another library.
fn acceptable(candidate: &Path, origin: Origin) -> Result<(), LoadFailure> {
    if !platform::supported() {
        return Err(LoadFailure::Platform);
    }
    if platform::is_static() {
        return Err(LoadFailure::StaticProgram);
    }
    let name = candidate.as_os_str();
    if origin == Origin::Environment && !platform::started_with(DRIVER_VARIABLE, name) {
        return Err(LoadFailure::ChangedVariable);
    }
    if name.is_empty() {
        // For dlopen an empty name is the program itself.
        return Err(LoadFailure::Open("the path is empty".to_owned()));
    }
    if name.as_encoded_bytes().contains(&0) {
        // dlopen would use only the part before the zero byte. If that is empty, it is the program
        // itself.
        return Err(LoadFailure::Open("the path has a zero byte in it".to_owned()));
    }
    // For a named pipe dlopen waits until somebody writes into it.
    let is_other = |data: std::fs::Metadata| !data.is_file() && !data.is_dir();
    if candidate.is_absolute() && std::fs::metadata(candidate).is_ok_and(is_other) {
        return Err(LoadFailure::Open("it is not a plain file".to_owned()));
    }
    let searched = origin != Origin::Environment && candidate.file_name() == Some(name);
    if candidate.is_absolute() || searched { Ok(()) } else { Err(LoadFailure::RelativePath) }
}

#[allow(unsafe_code)]
fn open_one(candidate: &Path, per_thread: bool) -> Result<Loaded, LoadFailure> {
    // SAFETY: the library has the name of the NVIDIA driver in a place that the system trusts, or
    // whoever started the process named it, or the caller of `LoadOptions::path` vouches for it.
    let library = unsafe { platform::open(candidate) }.map_err(LoadFailure::Open)?;
    let mut export = |name: &CStr| library.symbol(name);
    // SAFETY: these are what the library exports under the driver's names, and it is never unloaded
    // once it was called. Who names a library vouches that it exports nothing else under them.
    let resolved = unsafe { resolve::resolve(&mut export, per_thread) };
    // A driver that was called may have threads and handlers of its own, also one that is too old.
    if !matches!(resolved, Err(LoadFailure::NotADriver | LoadFailure::Platform)) {
        library.leak();
    }
    let (symbols, version) = resolved?;
    Ok(Loaded::new(symbols, version, per_thread, Some(candidate.to_owned())))
}
