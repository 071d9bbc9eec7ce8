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

/// The oldest CUDA version whose drivers have every required entry point.
const OLDEST: Version = Version::new(11, 0);

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
///
/// The compiler warns where the result of a method is not used:
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
    /// The usual places, and the legacy default stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Opens this library and no other. It outranks [`DRIVER_VARIABLE`].
    ///
    /// An absolute path is opened as it is; a bare file name goes through the system's search. Any other path is
    /// refused ([`LoadFailure::RelativePath`]).
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
        let from_environment =
            || std::env::var_os(DRIVER_VARIABLE).filter(|path| !path.is_empty() && !platform::privileged());
        let (origin, paths) = if let Some(path) = &self.path {
            (Origin::Program, vec![path.clone()])
        } else if let Some(path) = from_environment() {
            (Origin::Environment, vec![path.into()])
        } else {
            (Origin::Usual, platform::CANDIDATES.iter().map(PathBuf::from).collect())
        };
        Candidates { paths, origin, per_thread_default_stream: self.per_thread_default_stream }
    }
}

/// Who named the libraries to try.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// The program: a path, or a function that resolves names.
    Program,
    /// [`DRIVER_VARIABLE`].
    Environment,
    /// Nobody: they are the usual places.
    Usual,
}

/// The libraries to try, in order, and how to resolve the one that opens.
#[derive(PartialEq, Eq)]
pub(crate) struct Candidates {
    paths: Vec<PathBuf>,
    origin: Origin,
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
        let loaded = acceptable(candidate, candidates.origin)
            .and_then(|()| open_one(candidate, candidates.per_thread_default_stream));
        match loaded {
            Ok(loaded) => return Ok(loaded),
            Err(failure) => attempts.push(LoadAttempt { candidate: Some(candidate.clone()), failure }),
        }
    }
    Err(LoadError::new(candidates.origin, attempts))
}

/// Refuses names that mean something else to the system than they say.
fn acceptable(candidate: &Path, origin: Origin) -> Result<(), LoadFailure> {
    platform::supported()?;
    let name = candidate.as_os_str();
    if name.is_empty() {
        // To dlopen it would name the program itself.
        return Err(LoadFailure::Open("the path is empty".to_owned()));
    }
    if name.as_encoded_bytes().contains(&0) {
        // dlopen would take what comes before it, which may be nothing: the program itself.
        return Err(LoadFailure::Open("the path has a zero byte in it".to_owned()));
    }
    let searched = origin != Origin::Environment && candidate.file_name() == Some(name);
    if candidate.is_absolute() || searched { Ok(()) } else { Err(LoadFailure::RelativePath) }
}

#[allow(unsafe_code)]
fn open_one(candidate: &Path, per_thread: bool) -> Result<Loaded, LoadFailure> {
    // SAFETY: the library is the NVIDIA driver's by its name or the one that the program or the user named as such.
    // Its initialisation code runs, as it would for any program that is linked with it.
    let library = unsafe { platform::open(candidate) }.map_err(LoadFailure::Open)?;
    let mut data = None;
    let mut export = |name: &CStr| {
        let address = library.symbol(name);
        if platform::is_code(address) {
            return address;
        }
        data.get_or_insert_with(|| name.to_string_lossy().into_owned());
        core::ptr::null_mut()
    };
    // SAFETY: addresses of code by the names that the driver exports, from a library that is never unloaded once it
    // proved to be a driver. A library that exports functions of those names with other types is not a CUDA driver;
    // nothing can recognise it (vendor-docs/loading.md has the argument).
    let resolved = unsafe { resolve(&mut export, per_thread) };
    if let Some(name) = data {
        return Err(LoadFailure::NotAFunction(name));
    }
    let (symbols, version) = resolved?;
    library.leak();
    Ok(Loaded::new(symbols, version, per_thread, Some(candidate.to_owned())))
}

/// Why no driver could be loaded: every library that was tried, each with its own reason.
///
/// ```
/// use cuda_events::{Driver, Error};
/// use cuda_events::loader::LoadFailure;
///
/// let Err(Error::Load(error)) = Driver::load_from("/no/such/libcuda.so.1") else { panic!("there is none") };
/// for attempt in error.attempts() {
///     assert!(matches!(attempt.failure(), LoadFailure::Open(_)));
///     println!("{:?}: {}", attempt.candidate(), attempt.failure());
/// }
/// ```
///
/// Its `Debug` is its text, as most programs show an error by `unwrap` or by returning it from `main`.
#[derive(Clone, PartialEq, Eq)]
pub struct LoadError {
    // One pointer, as every result of this crate has room for an error, and one whose destructor is a call, as wherever
    // a result is dropped there is a copy of it.
    tried: Arc<Tried>,
}

#[derive(PartialEq, Eq)]
struct Tried {
    origin: Origin,
    attempts: Vec<LoadAttempt>,
}

impl LoadError {
    fn new(origin: Origin, attempts: Vec<LoadAttempt>) -> Self {
        Self { tried: Arc::new(Tried { origin, attempts }) }
    }

    /// The libraries that were tried, in order. Empty on a platform that NVIDIA has no driver for.
    pub fn attempts(&self) -> &[LoadAttempt] {
        &self.tried.attempts
    }

    pub(crate) fn from_resolver(failure: LoadFailure) -> Self {
        Self::new(Origin::Program, vec![LoadAttempt { candidate: None, failure }])
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
    /// It was named by a relative path, which means another file in every folder. [`DRIVER_VARIABLE`] takes an absolute
    /// path; a program may also name a bare file, for the system's search.
    RelativePath,
    /// It is a library, but it exports no `cuDriverGetVersion`.
    NotADriver,
    /// It exports data under this name of a driver function. Only Linux can tell.
    NotAFunction(String),
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
    /// NVIDIA has no driver for this platform. Nothing was opened.
    Platform,
}

/// How many of the missing entry points the text names.
const NAMED: usize = 3;

impl fmt::Display for LoadFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(text) => f.write_str(text),
            Self::RelativePath => f.write_str("the path is relative, and only an absolute path is taken here"),
            Self::NotADriver => f.write_str("not a CUDA driver: it exports no cuDriverGetVersion"),
            Self::NotAFunction(name) => write!(f, "not a CUDA driver: its {name} is data and not a function"),
            Self::Stub => f.write_str(
                "the CUDA toolkit's stub library (CUDA_ERROR_STUB_LIBRARY, 34), which is for linking only; \
                 take its folder out of the library search path and install the NVIDIA display driver",
            ),
            Self::Version(code) => write!(f, "cuDriverGetVersion failed with {code}"),
            Self::MissingSymbols { driver, functions } => {
                if *driver < OLDEST {
                    write!(
                        f,
                        "the driver supports CUDA {driver}, and this crate needs {OLDEST} or newer: update the driver"
                    )?;
                } else {
                    write!(f, "the driver says that it supports CUDA {driver}, but it is not complete")?;
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
        let nothing_opened = attempts.iter().all(|attempt| matches!(attempt.failure, LoadFailure::Open(_)));
        match origin {
            Origin::Usual if nothing_opened => f.write_str(
                "; install the NVIDIA display driver, or start the container with its GPUs (docker run --gpus all)",
            ),
            Origin::Environment if platform::supported().is_ok() => {
                write!(f, "; set {DRIVER_VARIABLE} to the absolute path of a driver, or unset it")
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The library and the reason: `/opt/libcuda.so.1: invalid ELF header`.
impl fmt::Display for LoadAttempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(candidate) = &self.candidate else {
            return write!(f, "from a resolver function: {}", self.failure);
        };
        let name = candidate.display().to_string();
        match &self.failure {
            // The system's text has the name already: glibc's begins with it, musl's has it in the middle.
            LoadFailure::Open(text) if names(text, &name) => f.write_str(text),
            failure => write!(f, "{name}: {failure}"),
        }
    }
}

/// Whether the text has the name followed by a colon, and not as the end of a longer path.
fn names(text: &str, name: &str) -> bool {
    let begins = |at: usize| text.get(..at).is_some_and(|before| before.is_empty() || before.ends_with(' '));
    let ends = |at: usize| text.get(at + name.len()..).is_some_and(|rest| rest.starts_with(": "));
    text.match_indices(name).any(|(at, _)| begins(at) && ends(at))
}

impl std::error::Error for LoadError {}

#[cfg(test)]
mod tests {
    use super::*;

    /// The texts of the systems' own: this machine has one of them only.
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
            // Others have none.
            ("x.so", "Dynamic loading not supported", "x.so: Dynamic loading not supported"),
            ("x", "x.so: file too short", "x: x.so: file too short"),
        ] {
            let attempt = LoadAttempt { candidate: Some(name.into()), failure: LoadFailure::Open(system.to_owned()) };
            assert_eq!(attempt.to_string(), text);
        }
    }

    #[test]
    fn advice_fits_who_named_the_library() {
        let open = || LoadAttempt { candidate: Some("/x".into()), failure: LoadFailure::Open("no".to_owned()) };
        let stub = || LoadAttempt { candidate: Some("/x".into()), failure: LoadFailure::Stub };
        let text = |origin, attempts| LoadError::new(origin, attempts).to_string();
        assert_eq!(text(Origin::Program, vec![open()]), "no usable CUDA driver library: /x: no");
        let usual = text(Origin::Usual, vec![open(), open()]);
        assert!(usual.starts_with("no usable CUDA driver library: /x: no; /x: no; install the NVIDIA"), "{usual}");
        // What is there but is no driver has its own advice.
        assert!(!text(Origin::Usual, vec![stub(), open()]).contains("container"));
        let named = text(Origin::Environment, vec![open()]);
        assert!(named.starts_with("no usable CUDA driver library: CUDA_EVENTS_DRIVER names /x: no; set"), "{named}");
        assert_eq!(
            text(Origin::Usual, vec![]),
            "no usable CUDA driver library: NVIDIA has no driver for this platform"
        );
    }
}
