//! The loaded driver.

pub(crate) mod call;
pub(crate) mod flag;
pub(crate) mod fork;
mod init;
mod libraries;
pub mod observer;
pub(crate) mod panics;
pub(crate) mod process;
#[allow(unsafe_code)]
pub(crate) mod trampolines;

use core::ffi::{CStr, c_void};
use core::fmt;
use std::path::{Path, PathBuf};

#[cfg(doc)]
use crate::error::Error;
use crate::error::Result;
use crate::list::List;
use crate::loader::{self, Candidates, LoadError, LoadOptions, Loaded};
use crate::sync::{AtomicBool, global};
use crate::sys::Symbols;
use crate::sys::Version;

/// A loaded CUDA driver.
///
/// It is a reference to a table that is never freed, from a library that is never unloaded: copy
/// it, send it, keep it as long as you like. Loading initialises nothing, so a process may load,
/// fork, and use the devices in the child.
///
/// ```
/// use cuda_events::Driver;
///
/// match Driver::load() {
///     Ok(driver) => println!("CUDA {} from {:?}", driver.version(), driver.library()),
///     // On a machine without a driver: what was tried, and why it was not that.
///     Err(error) => println!("{error}"),
/// }
/// ```
#[derive(Clone, Copy)]
pub struct Driver(&'static Instance);

struct Instance {
    loaded: Loaded,
    initialised: AtomicBool,
    /// The process that loaded it. A forked child has another number.
    process: u32,
}

impl Instance {
    fn new(loaded: Loaded) -> Self {
        libraries::note(loaded.library);
        Self { loaded, initialised: AtomicBool::new(false), process: std::process::id() }
    }
}

/// A driver that was loaded, by what it was looked for as.
struct Known {
    candidates: Candidates,
    instance: Instance,
}

global! {
    static KNOWN: List<Known> = List::new();
}

impl Driver {
    /// Loads the driver of this machine.
    ///
    /// When the environment variable [`CUDA_EVENTS_DRIVER`](crate::loader::DRIVER_VARIABLE) is set,
    /// it names the only library that is tried. Otherwise these are tried in order: on Linux
    /// `libcuda.so.1` through the system's search, then `/usr/lib/wsl/lib/libcuda.so.1`; on Windows
    /// `nvcuda.dll` of the system folder. There is no driver for 32-bit programs, and none is tried
    /// there.
    ///
    /// A driver that was loaded before is found without opening anything. A failure is not
    /// remembered.
    ///
    /// It may be called from any thread, from the initialisation code of a library that is being
    /// opened, and in a child that was forked while another thread was loading. No lock of this
    /// crate is held while the library is opened: two threads may open it at once, and both get the
    /// same `Driver`.
    ///
    /// Driver calls: `cuDriverGetVersion`, and `cuGetProcAddress` for each entry point where the
    /// driver has it (CUDA 11.3). Neither initialises the driver.
    ///
    /// # Errors
    ///
    /// [`Error::Load`] lists every place that was tried with its own reason, such as a missing
    /// file, a library that is no CUDA driver, the toolkit's stub, or missing entry points.
    pub fn load() -> Result<Self> {
        Self::load_with(&LoadOptions::new())
    }

    /// Loads this library and no other. `path` is an absolute path, or a file name without a
    /// folder, for which the system searches.
    ///
    /// The library's own initialisation code runs, and its functions are taken for the driver's, as
    /// for every library that a program is linked with: name only a library that you would link
    /// with. A library whose driver functions are data is refused on Linux. Driver calls and
    /// threads as for [`load`](Self::load).
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load), and
    /// [`LoadFailure::RelativePath`](crate::loader::LoadFailure::RelativePath) for any other path.
    pub fn load_from(path: impl AsRef<Path>) -> Result<Self> {
        Self::load_with(&LoadOptions::new().path(path.as_ref()))
    }

    /// Loads as the options say. [`load`](Self::load) and [`load_from`](Self::load_from) are short
    /// for this.
    ///
    /// The same options give the same `Driver` as long as the environment is the same. Driver calls
    /// and threads as for [`load`](Self::load).
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load).
    pub fn load_with(options: &LoadOptions) -> Result<Self> {
        // By candidates and not by options: the environment may have changed since.
        let candidates = options.candidates();
        if let Some(known) = KNOWN.items().find(|known| known.candidates == candidates) {
            return Ok(Self(&known.instance));
        }
        // Without any lock of this crate: opening runs the library's own code, which may load as
        // well, and another thread may fork meanwhile, whose child would inherit a lock that nobody
        // gives back.
        let loaded = loader::open(&candidates)?;
        let known = Known { candidates, instance: Instance::new(loaded) };
        // Another thread may have been faster. Then the library stays open, as one that was opened
        // twice.
        Ok(Self(&KNOWN.add(known, |known, new| known.candidates == new.candidates).instance))
    }

    /// A driver whose exported functions are found by `resolve`: one that is linked into the
    /// program, such as a software driver, or one with other functions put in the place of some
    /// (see [`Symbols::address`]).
    ///
    /// `resolve` is what `dlsym` is for a library: it takes an exported name (`cuEventDestroy_v2`,
    /// `cuEventRecord_ptsz`) and gives its address, or NULL. If it gives one for
    /// `cuGetProcAddress_v2` or `cuGetProcAddress`, all others are asked for through that.
    /// `options` tells whether the per-thread twins are wanted; its path is not used. Each call
    /// makes a new table of about 1 kB that is never freed.
    ///
    /// Driver calls as [`load`](Self::load).
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load), without the places. In a 32-bit program `resolve` is not called.
    ///
    /// # Safety
    ///
    /// Each address given must be that of a function with the C ABI and the types that the CUDA
    /// driver API gives to that exported name, and must stay valid for the rest of the process. The
    /// functions must keep the driver's contracts as far as this crate's safe methods rely on them:
    /// they may be called from any thread, and write only through the pointers that they are given.
    #[allow(unsafe_code)]
    pub unsafe fn from_resolver(
        resolve: &mut dyn FnMut(&CStr) -> *mut c_void,
        options: &LoadOptions,
    ) -> Result<Self> {
        let per_thread_default_stream = options.is_per_thread();
        // SAFETY: the caller vouches for the addresses.
        let resolved = unsafe { loader::resolve::resolve(resolve, per_thread_default_stream) };
        let (symbols, version) = resolved.map_err(LoadError::from_resolver)?;
        let loaded = Loaded::new(symbols, version, per_thread_default_stream, None);
        Ok(Self::leak(loaded))
    }

    fn leak(loaded: Loaded) -> Self {
        Self(Box::leak(Box::new(Instance::new(loaded))))
    }

    /// The same library with another table.
    pub(crate) fn with_symbols(self, symbols: Symbols) -> Self {
        Self::leak(Loaded { symbols, ..self.0.loaded.clone() })
    }

    /// The newest CUDA version that the driver supports, as `cuDriverGetVersion` told when it was
    /// loaded.
    #[doc(alias = "cuDriverGetVersion")]
    pub fn version(self) -> Version {
        self.0.loaded.version
    }

    /// The library's file: resolved by the platform where it can tell (Linux can), otherwise the
    /// name it was opened by. None for a driver from a [resolver function](Self::from_resolver).
    pub fn library(self) -> Option<&'static Path> {
        self.file().map(PathBuf::as_path)
    }

    fn file(self) -> Option<&'static PathBuf> {
        let loaded = &self.0.loaded;
        loaded.file.as_ref().filter(|_| loaded.candidate.is_some()).or(loaded.candidate.as_ref())
    }

    /// Whether the NULL stream is the calling thread's own default stream; see
    /// [`LoadOptions::per_thread_default_stream`].
    pub fn is_per_thread_default_stream(self) -> bool {
        self.0.loaded.per_thread_default_stream
    }

    /// The raw table of entry points.
    #[inline(always)]
    pub fn symbols(self) -> &'static Symbols {
        &self.0.loaded.symbols
    }

    /// Whether the two are tables of one library, so that objects of one can be used with the
    /// other.
    pub(crate) fn is_same_library(self, other: Self) -> bool {
        self.0.loaded.library == other.0.loaded.library
    }
}

/// Two are equal when they are the same table.
impl PartialEq for Driver {
    fn eq(&self, other: &Self) -> bool {
        core::ptr::eq(self.0, other.0)
    }
}

impl Eq for Driver {}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver")
            .field("version", &self.version())
            .field("library", &self.library())
            .field("per_thread_default_stream", &self.is_per_thread_default_stream())
            .finish()
    }
}

static_assertions::assert_impl_all!(Driver: Copy, Send, Sync);
static_assertions::assert_eq_size!(Driver, Option<Driver>, usize);
