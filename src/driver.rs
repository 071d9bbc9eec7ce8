//! The loaded driver.

use core::ffi::{CStr, c_void};
use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crate::error::{Error, Result};
use crate::loader::{self, Candidates, LoadError, LoadOptions, Loaded};
use crate::process;
use crate::sys::{CUresult, Function, Symbols};
use crate::version::Version;

/// A loaded CUDA driver.
///
/// It is a reference to a table that is never freed, from a library that is never unloaded: copy it, send it, keep it as
/// long as you like. Loading initialises nothing, so a process may load, fork, and use the devices in the child.
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
}

impl Driver {
    /// Loads the driver of this machine.
    ///
    /// The places, in order: the library that the environment variable
    /// [`CUDA_EVENTS_DRIVER`](crate::DRIVER_VARIABLE) names, and no other, when it is set; else on Linux `libcuda.so.1`
    /// through the system's search, then `/usr/lib/wsl/lib/libcuda.so.1`; on Windows `nvcuda.dll` of the system folder.
    ///
    /// A driver that was loaded once is given again at no cost worth naming; a failure is not remembered.
    ///
    /// Driver calls: `cuDriverGetVersion`, and `cuGetProcAddress` for each entry point where the driver has it (CUDA 11.3).
    /// Neither initialises the driver.
    ///
    /// # Errors
    ///
    /// [`Error::Load`] with every place that was tried and what was wrong with each: nothing there, not a library, not a
    /// CUDA driver, the toolkit's stub, entry points missing.
    pub fn load() -> Result<Self> {
        Self::load_with(&LoadOptions::new())
    }

    /// Loads this library and no other: an absolute path, or a file name for the system's search.
    ///
    /// The library's own initialisation code runs, as for every library that a program opens: name only what you would
    /// also run. Driver calls as [`load`](Self::load).
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load).
    pub fn load_from(path: impl AsRef<Path>) -> Result<Self> {
        Self::load_with(&LoadOptions::new().path(path.as_ref()))
    }

    /// Loads as the options say. [`load`](Self::load) and [`load_from`](Self::load_from) are short for this.
    ///
    /// Driver calls as [`load`](Self::load).
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load).
    pub fn load_with(options: &LoadOptions) -> Result<Self> {
        static LOADED: Mutex<Vec<(Candidates, Driver)>> = Mutex::new(Vec::new());
        // Nothing under the lock leaves the list half changed, so a poisoned one is as good as another.
        let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        // By candidates and not by options: the environment may have changed since.
        let key = options.candidates();
        if let Some((_, driver)) = loaded.iter().find(|(known, _)| *known == key) {
            return Ok(*driver);
        }
        let driver = Self::leak(loader::open(&key)?);
        loaded.push((key, driver));
        Ok(driver)
    }

    /// A driver whose exported functions are found by `resolve`: one that is linked into the program, such as a software
    /// driver, or one with other functions put in the place of some (see [`Symbols::address`]).
    ///
    /// `resolve` is what `dlsym` is for a library: it takes an exported name (`cuEventDestroy_v2`,
    /// `cuEventRecord_ptsz`) and gives its address, or NULL. If it gives one for `cuGetProcAddress_v2` or
    /// `cuGetProcAddress`, all others are asked for through that. `options` tells whether the per-thread twins are
    /// wanted; its path is not used. Each call makes a new table of about 1 kB that is never freed.
    ///
    /// Driver calls as [`load`](Self::load).
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load), without the places.
    ///
    /// # Safety
    ///
    /// Each address given must be that of a function with the C ABI and the types that the CUDA driver API gives to that
    /// exported name, and must stay valid for the rest of the process. The functions must keep the driver's contracts as
    /// far as this crate's safe methods rely on them: they may be called from any thread, and write only through the
    /// pointers that they are given.
    #[allow(unsafe_code)]
    pub unsafe fn from_resolver(resolve: &mut dyn FnMut(&CStr) -> *mut c_void, options: &LoadOptions) -> Result<Self> {
        let per_thread_default_stream = options.is_per_thread();
        // SAFETY: the caller vouches for the addresses.
        let resolved = unsafe { loader::resolve(resolve, per_thread_default_stream) };
        let (symbols, version) = resolved.map_err(LoadError::from_resolver)?;
        let loaded = Loaded::new(symbols, version, per_thread_default_stream, None);
        Ok(Self::leak(loaded))
    }

    fn leak(loaded: Loaded) -> Self {
        process::note_library(loaded.library);
        Self(Box::leak(Box::new(Instance { loaded, initialised: AtomicBool::new(false) })))
    }

    /// The same library with another table.
    pub(crate) fn with_symbols(self, symbols: Symbols) -> Self {
        Self::leak(Loaded { symbols, ..self.0.loaded.clone() })
    }

    /// The newest CUDA version that the driver supports, as `cuDriverGetVersion` told when it was loaded.
    #[doc(alias = "cuDriverGetVersion")]
    pub fn version(self) -> Version {
        self.0.loaded.version
    }

    /// The library's file: resolved by the platform where it can tell (Linux can), else the name it was opened by. None
    /// for a driver from a [resolver function](Self::from_resolver).
    pub fn library(self) -> Option<&'static Path> {
        let loaded = &self.0.loaded;
        loaded.file.as_deref().filter(|_| loaded.candidate.is_some()).or(loaded.candidate.as_deref())
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

    /// Initialises the driver, once.
    #[allow(unsafe_code)]
    pub(crate) fn init(self) -> Result<()> {
        const FUNCTION: Function = Function::cuInit;
        self.check_fork(FUNCTION)?;
        if self.0.initialised.load(Ordering::Acquire) {
            return Ok(());
        }
        // SAFETY: the only flags there are is 0; repeating the call does no harm, so two threads may race here.
        let code = unsafe { (self.symbols().cuInit)(0) };
        if code == CUresult::CUDA_ERROR_NOT_INITIALIZED {
            // The one cause there is: somebody else in this process initialised the driver before it was forked.
            return Err(Error::ForkedChild { function: FUNCTION });
        }
        Error::check(FUNCTION, code)?;
        process::note_initialised();
        self.0.initialised.store(true, Ordering::Release);
        Ok(())
    }

    /// An error if an object of `other` is to be used with one of this driver, and the two are different libraries; or in a
    /// process that was forked after the driver was initialised.
    #[inline(always)]
    pub(crate) fn check_same(self, other: Self, function: Function) -> Result<()> {
        if process::unusual() { self.check_closely(other, function) } else { Ok(()) }
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn check_closely(self, other: Self, function: Function) -> Result<()> {
        self.check_fork(function)?;
        if self.is_same_library(other) { Ok(()) } else { Err(Error::OtherDriver { function }) }
    }

    /// Whether the two are tables of one library, so that objects of one can be used with the other.
    pub(crate) fn is_same_library(self, other: Self) -> bool {
        self.0.loaded.library == other.0.loaded.library
    }

    /// An error in a process that was forked after the driver was initialised.
    #[inline(always)]
    pub(crate) fn check_fork(self, function: Function) -> Result<()> {
        if process::forked() { Err(Error::ForkedChild { function }) } else { Ok(()) }
    }

    /// The entry point, or the error that says since when there is one.
    #[inline]
    pub(crate) fn require<F>(self, function: Function, entry: Option<F>) -> Result<F> {
        entry.ok_or_else(|| Error::Unsupported {
            function,
            since: function.entry_point().version,
            driver: self.version(),
        })
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
