//! The loaded driver, its observers and the flag of unusual processes.

pub(crate) mod call;
#[cfg(feature = "safe")]
pub(crate) mod capture_count;
#[cfg(feature = "safe")]
pub(crate) mod capture_mode;
#[cfg(feature = "safe")]
pub(crate) mod deferring;
pub(crate) mod flag;
pub(crate) mod fork;
#[cfg(feature = "safe")]
mod init;
mod libraries;
#[cfg(feature = "observe")]
pub mod observer;
#[cfg(feature = "observe")]
mod observing;
#[cfg(feature = "safe")]
pub(crate) mod panics;
#[cfg(feature = "safe")]
pub(crate) mod process;
#[cfg(feature = "observe")]
#[allow(unsafe_code)]
mod trampolines;

use core::ffi::{CStr, c_void};
use core::fmt;
use std::path::{Path, PathBuf};
#[cfg(feature = "observe")]
use std::sync::Arc;

#[cfg(feature = "safe")]
use crate::clock::HostClock;
use crate::driver::call::Entry;
#[cfg(feature = "observe")]
use crate::driver::observing::Call;
use crate::error::{Error, Result};
use crate::growing_list::List;
use crate::loader::resolve;
use crate::loader::{self, Candidates, LoadError, LoadOptions, Loaded};
#[cfg(feature = "safe")]
use crate::sync::AtomicBool;
use crate::sync::global;
use crate::sys::{EntryPointType, Function, Symbols, Version};

#[cfg(doc)]
use crate::sys::calls::*;

/// A loaded CUDA driver.
///
/// A `Driver` is a reference to a table of entry points. The table is never freed, and the library
/// is never unloaded. So a `Driver` can be copied, sent to other threads and kept forever. Loading
/// does not initialise the driver: a process may load, fork, and use the devices in the child.
///
/// One library can have several `Driver`s: one with the per-thread default stream, for example, and
/// one with an observer (feature `observe`).
///
/// | the driver | comes from |
/// | --- | --- |
/// | the machine's | [`load`](Self::load): the choice of most programs |
/// | one library, by its path | [`load_from`](Self::load_from) |
/// | either, with the per-thread default stream | [`load_with`](Self::load_with) |
/// | functions of the program, such as a software driver | [`from_resolver`](Self::from_resolver) |
///
/// A program loads the driver once, and makes a [`Device`](crate::Device) and then a
/// [`Context`](crate::Context). A library should take a `Driver`, a `Device` or a `Context` from
/// its caller. Tests of the library can then use the software driver of the crate
/// `cuda-soft-driver`. Objects of two driver libraries cannot be mixed.
///
/// ```
/// use cuda_events::Driver;
///
/// match Driver::load() {
///     Ok(driver) => println!("CUDA {} from {:?}", driver.version(), driver.library()),
///     // On a machine without a driver: the libraries that were tried, each with its reason.
///     Err(error) => println!("{error}"),
/// }
/// ```
#[derive(Clone, Copy)]
pub struct Driver(&'static Instance);

/// A function that gets what the host has read: the address of a word, and the value there.
#[cfg(feature = "safe")]
pub type HostReads = dyn Fn(usize, u64) + Send + Sync;

struct Instance {
    loaded: Loaded,
    /// The clock of waits on the host, if it is not the machine's.
    #[cfg(feature = "safe")]
    clock: Option<&'static dyn HostClock>,
    /// Called with what the host has read in place of asking the driver.
    #[cfg(feature = "safe")]
    host_reads: Option<&'static HostReads>,
    #[cfg(feature = "safe")]
    initialised: AtomicBool,
}

/// Nothing of it changes in steps that a panic could interrupt. The closures are called by this
/// crate alone, which expects panics of them.
impl core::panic::RefUnwindSafe for Instance {}

impl Instance {
    fn new(loaded: Loaded) -> Self {
        libraries::note(loaded.library);
        Self {
            loaded,
            #[cfg(feature = "safe")]
            clock: None,
            #[cfg(feature = "safe")]
            host_reads: None,
            #[cfg(feature = "safe")]
            initialised: AtomicBool::new(false),
        }
    }
}

/// A loaded driver, with the candidates by which it was found.
struct Library {
    candidates: Candidates,
    instance: Instance,
}

global! {
    static LIBRARIES: List<Library> = List::new();
}

/// # Loading
impl Driver {
    /// Loads the driver of this machine.
    ///
    /// If the environment variable [`CUDA_EVENTS_DRIVER`](crate::loader::DRIVER_VARIABLE) is set,
    /// it names the only library that is tried. Otherwise these are tried in order: on Linux
    /// `libcuda.so.1` through the system's search, then `/usr/lib/wsl/lib/libcuda.so.1`; on Windows
    /// `nvcuda.dll` of the system folder. In a 32-bit program no library is tried.
    ///
    /// Later calls return the same driver and open nothing, as long as `CUDA_EVENTS_DRIVER` does
    /// not change; a value that the process was not started with is refused. After an error, the
    /// next call tries again.
    ///
    /// Any thread may call `load`, also in the initialisation code of a library. Two threads that
    /// load at the same time get the same `Driver`.
    ///
    /// Driver calls: [`cuDriverGetVersion`]. If the driver has [`cuGetProcAddress`] (CUDA 11.3),
    /// also that function, once for each entry point. Neither initialises the driver.
    ///
    /// # Errors
    ///
    /// [`Error::Load`] lists every library that was tried, each with the reason for its failure.
    pub fn load() -> Result<Self> {
        Self::load_with(&LoadOptions::new())
    }

    /// Loads the driver from one library. `path` is an absolute path, or a file name without a
    /// folder, for which the system searches.
    ///
    /// Driver calls and rules for threads are those of [`load`](Self::load).
    ///
    /// ```
    /// use cuda_events::Driver;
    ///
    /// // SAFETY: this folder has NVIDIA's driver, or nothing.
    /// if let Err(error) = unsafe { Driver::load_from("/opt/driver/libcuda.so.1") } {
    ///     println!("{error}");
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load), and
    /// [`LoadFailure::RelativePath`](crate::loader::LoadFailure::RelativePath) for a relative path
    /// with a folder.
    ///
    /// # Safety
    ///
    /// The library is a CUDA driver, or may be opened and closed in this process and exports nothing
    /// under the driver's names: see [`LoadOptions::path`].
    #[allow(unsafe_code)]
    pub unsafe fn load_from(path: impl AsRef<Path>) -> Result<Self> {
        // SAFETY: as the caller says.
        Self::load_with(&unsafe { LoadOptions::new().path(path.as_ref()) })
    }

    /// Loads the driver with options; [`load`](Self::load) and [`load_from`](Self::load_from) are
    /// short forms of it.
    ///
    /// The same options return the same `Driver`, as long as the environment variable
    /// `CUDA_EVENTS_DRIVER` does not change. Driver calls and rules for threads are those of
    /// [`load`](Self::load).
    ///
    /// ```
    /// use cuda_events::{Driver, LoadOptions};
    ///
    /// match Driver::load_with(&LoadOptions::new().per_thread_default_stream(true)) {
    ///     Ok(driver) => assert!(driver.is_per_thread_default_stream()),
    ///     Err(error) => println!("{error}"),
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load).
    pub fn load_with(options: &LoadOptions) -> Result<Self> {
        // By candidates, not by options: the environment may have changed since.
        let candidates = options.candidates();
        if let Some(library) = LIBRARIES.items().find(|library| library.candidates == candidates) {
            return Ok(Self(&library.instance));
        }
        // Without any lock of this crate: opening runs the library's own code, which may load a
        // driver too. Another thread may fork meanwhile, and its child would inherit a lock that is
        // never released.
        let loaded = loader::open(&candidates)?;
        let library = Library { candidates, instance: Instance::new(loaded) };
        // Another thread may have been faster. Then the library has been opened twice and stays
        // open.
        let is_same = |one: &Library, other: &Library| one.candidates == other.candidates;
        Ok(Self(&LIBRARIES.add(library, is_same).instance))
    }
}

/// # The driver itself
impl Driver {
    /// Returns the newest CUDA version that the driver supports, read with [`cuDriverGetVersion`]
    /// when it was loaded.
    ///
    /// Use it to choose another method if the driver is too old for the one you want.
    ///
    /// ```
    /// use cuda_events::{Context, Device, Event, EventFlags, Version};
    ///
    /// # let _ = || {
    /// let driver = cuda_events::Driver::load()?;
    /// # Ok::<_, cuda_events::Error>(driver) };
    /// # let soft = cuda_soft_driver::SoftDriver::builder().version(12, 4).build();
    /// # let driver = soft.driver();
    /// let context = Context::primary(Device::new(driver, 0)?)?;
    /// let event = Event::new(&context, EventFlags::empty())?;
    /// if driver.version() >= Version::new(12, 5) {
    ///     event.record_context(&context)?;
    /// } else {
    ///     context.synchronize()?; // the host waits for the streams itself
    /// }
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    #[doc(alias = "cuDriverGetVersion")]
    pub fn version(self) -> Version {
        self.0.loaded.version
    }

    /// Returns the library's file; `None` for a driver from a [resolver
    /// function](Self::from_resolver).
    ///
    /// This is the path that the system reports, or the name by which the library was opened.
    pub fn library(self) -> Option<&'static Path> {
        self.file().map(PathBuf::as_path)
    }

    /// Returns whether both drivers belong to the same library. Objects of one can then be used
    /// with the other.
    ///
    /// It makes no driver call.
    ///
    /// ```
    /// # use cuda_soft_driver::examples::Driver;
    /// let driver = Driver::load()?;
    /// let observed = driver.observe(|_call| {})?;
    /// assert!(observed != driver && observed.is_same_library(driver));
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    pub fn is_same_library(self, other: Self) -> bool {
        self.0.loaded.library == other.0.loaded.library
    }

    /// Returns whether the NULL stream is the per-thread default stream; see
    /// [`LoadOptions::per_thread_default_stream`].
    ///
    /// [`load_with`](Self::load_with) has an example.
    pub fn is_per_thread_default_stream(self) -> bool {
        self.0.loaded.per_thread_default_stream
    }

    /// Looks up a function of the driver by its name and the version of its ABI, whether this
    /// crate's table has it or not.
    ///
    /// `name` is the name without a suffix that [`cuGetProcAddress`] takes: `cuMemAlloc`, and not
    /// `cuMemAlloc_v2`. `version` is the CUDA version that introduced the ABI to be called, which
    /// NVIDIA's typedefs end in: `PFN_cuMemAlloc_v3020` is that of 3.2. If this driver was loaded
    /// with the [per-thread default stream](LoadOptions::per_thread_default_stream), a function
    /// that has a per-thread twin is that twin, and is found at the twin's version only: 7.0 for
    /// `PFN_cuStreamQuery_v7000_ptsz`.
    ///
    /// [`call!`](crate::foundation::call) makes calls of the result, with this crate's checks and
    /// errors. Observers see no calls of functions that the table lacks, or has at another version.
    ///
    /// Driver call: [`cuGetProcAddress`], unless the table has the function at this version. Keep
    /// the result: each other name is remembered for the rest of the process. [`Entry`] has an
    /// example of a struct that keeps some.
    ///
    /// ```
    /// use std::ffi::c_char;
    ///
    /// use cuda_events::foundation::call;
    /// use cuda_events::sys::{CUresult, CUdevice};
    /// use cuda_events::{Device, Version};
    ///
    /// type GetName = unsafe extern "C" fn(*mut c_char, i32, CUdevice) -> CUresult;
    ///
    /// # use cuda_soft_driver::examples::Driver;
    /// let driver = Driver::load()?;
    /// // SAFETY: this is NVIDIA's `PFN_cuDeviceGetName_v2000`.
    /// let get_name =
    ///     unsafe { driver.entry_point::<GetName>(c"cuDeviceGetName", Version::new(2, 0)) }?;
    /// let (device, mut name) = (Device::new(driver, 0)?, [0; 64]);
    /// // SAFETY: a place for 64 bytes.
    /// unsafe { call!(driver, (get_name)(name.as_mut_ptr(), 64, device.as_raw())) }?;
    /// assert_ne!(name[0], 0);
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] if the driver has no such function at that version, or has no
    /// [`cuGetProcAddress`] (before CUDA 11.3) and the table lacks the function at that version.
    ///
    /// # Safety
    ///
    /// `T` is the type of `PFN_<name>_v<version>` in NVIDIA's `cudaTypedefs.h`, for exactly this
    /// name and version (with a twin, that ends in `_ptsz` or `_ptds`). The declaration of the plain
    /// name in `cuda.h` may have another ABI, and a version between two that have a typedef names
    /// the older one.
    #[allow(unsafe_code)]
    pub unsafe fn entry_point<T: EntryPointType>(
        self,
        name: &'static CStr,
        version: Version,
    ) -> Result<Entry<T::Pointer>> {
        let (symbols, per_thread) = (self.symbols(), self.is_per_thread_default_stream());
        let find = |version| resolve::find_by_name(symbols, name, version, per_thread);
        let (function, address) = match Function::bound(name, version, per_thread) {
            Some(function) => {
                let address = symbols.address(function);
                (function, if address.is_null() { find(version) } else { address })
            }
            None => {
                let address = find(version);
                // A version between two that the driver has names the older one: the table's, if
                // the driver finds the same function at the table's version.
                let same = Function::bound_versions(name, per_thread)
                    .find(|(_, version)| !address.is_null() && find(*version) == address);
                match same {
                    Some((function, _)) => (function, symbols.address(function)),
                    None => (Function::unbound(name, version), address),
                }
            }
        };
        // SAFETY: NULL, or the driver's function of this name and version, whose type the caller
        // vouches for, and drivers are never unloaded.
        match unsafe { T::at(address) } {
            Some(pointer) => Ok(Entry { function, pointer }),
            None => Err(Error::Unsupported { function, since: version, driver: self.version() }),
        }
    }

    /// Returns the raw table of entry points.
    ///
    /// The module [`sys`](crate::sys) has an example.
    #[inline(always)]
    pub fn symbols(self) -> &'static Symbols {
        &self.0.loaded.symbols
    }
}

/// # Observers
///
/// With the feature `observe`.
#[cfg(feature = "observe")]
impl Driver {
    /// Returns another `Driver` of the same library, with an observer: a function that is called
    /// after each driver call.
    ///
    /// Only driver calls through the result, and through objects that are created with it, are
    /// observed. Calls that the observer itself makes are not observed. The observer runs on the
    /// thread of the call. A panic in the observer is caught. The observer is kept until
    /// [`stop_observing`](Self::stop_observing), or until the process ends.
    ///
    /// An observer may use and drop every object of this crate.
    ///
    /// A process can have sixteen observers.
    ///
    /// `observe` makes no driver call.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicUsize, Ordering};
    ///
    /// # use cuda_soft_driver::examples::Driver;
    /// let driver = Driver::load()?;
    /// static CALLS: AtomicUsize = AtomicUsize::new(0);
    ///
    /// let observed = driver.observe(|call| {
    ///     CALLS.fetch_add(1, Ordering::Relaxed);
    ///     eprintln!("{call}");
    /// })?;
    /// cuda_events::Device::count(observed)?;
    /// // cuDeviceGetCount, and before it cuInit if this is the first use of the driver.
    /// assert!(CALLS.load(Ordering::Relaxed) >= 1);
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::TooManyObservers`] if there is no room for another observer of this driver.
    pub fn observe(self, observer: impl Fn(&Call<'_>) + Send + Sync + 'static) -> Result<Self> {
        self.add_observer(Arc::new(observer))
    }

    /// Removes the observer of this driver, and returns whether there was one.
    ///
    /// `self` is the result of [`observe`](Self::observe). For any other driver the method does
    /// nothing and returns `false`. This driver and its objects continue to work, and their calls
    /// are no longer observed.
    ///
    /// Any thread may call `stop_observing`, and so may the observer itself. The method does not
    /// wait for other threads in the observer: the last of them drops the observer.
    /// `stop_observing` makes no driver call.
    ///
    /// ```
    /// use cuda_events::Device;
    /// use std::sync::mpsc::channel;
    ///
    /// # use cuda_soft_driver::examples::Driver;
    /// let driver = Driver::load()?;
    /// let (sender, receiver) = channel();
    /// let observed = driver.observe(move |call| drop(sender.send(call.function)))?;
    /// Device::count(observed)?;
    /// assert!(observed.stop_observing());
    /// Device::count(observed)?;
    /// // The sender was dropped with the observer, so this loop ends.
    /// for function in receiver {
    ///     println!("{function}");
    /// }
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    pub fn stop_observing(self) -> bool {
        self.remove_observer()
    }
}

/// # Drivers in software
#[allow(unsafe_code)]
impl Driver {
    /// Makes a driver from the functions that `resolve` returns.
    ///
    /// The functions can be those of a software driver that is linked into the program. They can
    /// also be those of a loaded driver, with some of them replaced (see [`Symbols::address`]).
    ///
    /// `resolve` works like `dlsym`: it takes an exported name ([`cuEventDestroy_v2`],
    /// `cuEventRecord_ptsz`) and returns the address of that function, or NULL. If it returns an
    /// address for [`cuGetProcAddress_v2`] or [`cuGetProcAddress`], this crate looks up all other
    /// entry points through that function. `options` selects the default stream; the path in it is
    /// not used. Each call makes a new table of about 1.5 kB that is never freed.
    ///
    /// ```
    /// use cuda_events::{Device, Driver, LoadOptions};
    /// use cuda_soft_driver::SoftDriver; // of the crate cuda-soft-driver
    ///
    /// let soft = SoftDriver::new();
    /// // SAFETY: the software driver's functions have the driver's ABI, keep its contracts, and
    /// // are part of this program.
    /// let driver =
    ///     unsafe { Driver::from_resolver(&mut |name| soft.resolve(name), &LoadOptions::new()) }?;
    /// assert!(Device::count(driver)? > 0);
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    ///
    /// Driver calls: those of [`load`](Self::load).
    ///
    /// # Errors
    ///
    /// [`Error::Load`] if `resolve` returns NULL for a function that this crate requires, or if
    /// [`cuDriverGetVersion`] fails. The error lists one attempt, without a path. In a 32-bit
    /// program `resolve` is not called.
    ///
    /// # Safety
    ///
    /// Each address that `resolve` returns must stay valid for the rest of the process. The
    /// function there must have the C ABI and the types of the CUDA driver's function of that name.
    /// It must keep the driver's contracts: any thread may call it, and it writes only through the
    /// pointers that it is given.
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
        Ok(Self::leak(Instance::new(loaded)))
    }

    /// Returns another `Driver` of the same library, with a clock. All objects that are created
    /// with the result use the clock for their waits.
    ///
    /// It makes no driver call. Each call makes a new table of about 1.5 kB that is never freed.
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    ///
    /// use cuda_events::{Device, HostClock};
    ///
    /// /// A clock that is a thousand times as fast as the machine's.
    /// struct Fast(Instant);
    ///
    /// impl HostClock for Fast {
    ///     fn now(&self) -> Duration {
    ///         self.0.elapsed() * 1000
    ///     }
    ///     fn wait(&self, _until: Duration) {
    ///         std::thread::sleep(Duration::from_micros(100));
    ///     }
    ///     fn polled(&self, _what: usize) {}
    ///     fn begin_task(&self, _look: fn()) {}
    ///     fn end_task(&self) {}
    ///     fn serve(&self) {}
    /// }
    ///
    /// # use cuda_soft_driver::examples::Driver;
    /// let driver = Driver::load()?;
    /// let clock: &'static Fast = Box::leak(Box::new(Fast(Instant::now())));
    /// let driver = driver.with_clock(clock);
    /// assert!(driver.clock().is_some());
    /// assert_eq!(Device::new(driver, 0)?.driver(), driver);
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    #[cfg(feature = "safe")]
    #[doc(hidden)]
    pub fn with_clock(self, clock: &'static dyn HostClock) -> Self {
        self.with(Some(clock), self.0.host_reads)
    }

    /// Returns the clock of [`with_clock`](Self::with_clock); `None` if no clock was set. Waits
    /// then use the machine's clock.
    ///
    /// It makes no driver call. [`with_clock`](Self::with_clock) has an example.
    #[cfg(feature = "safe")]
    #[doc(hidden)]
    pub fn clock(self) -> Option<&'static dyn HostClock> {
        self.0.clock
    }

    /// For a driver that checks the order of work, such as `cuda-soft-driver`. Returns another
    /// `Driver` of the same library. Code that polls memory gets the function `saw` by
    /// [`host_reads`](Self::host_reads).
    ///
    /// It makes no driver call. Each call makes a new table of about 1.5 kB that is never freed.
    #[cfg(feature = "safe")]
    #[doc(hidden)]
    pub fn with_host_reads(self, saw: &'static HostReads) -> Self {
        self.with(self.0.clock, Some(saw))
    }

    /// Returns the function of [`with_host_reads`](Self::with_host_reads); `None` if no function
    /// was set.
    ///
    /// If your code loads a value that a stream writes, call the function afterwards, on the same
    /// thread. Pass the address and the value.
    ///
    /// It makes no driver call.
    ///
    /// ```
    /// use std::sync::Mutex;
    ///
    /// static SEEN: Mutex<Vec<(usize, u64)>> = Mutex::new(Vec::new());
    ///
    /// # use cuda_soft_driver::examples::Driver;
    /// let driver = Driver::load()?;
    /// assert!(driver.host_reads().is_none());
    /// let driver = driver.with_host_reads(&|address, value| {
    ///     SEEN.lock().unwrap_or_else(|error| error.into_inner()).push((address, value));
    /// });
    /// // Code that polls a flag in pinned memory, after it has seen the value 7:
    /// if let Some(saw) = driver.host_reads() {
    ///     saw(0x1000, 7);
    /// }
    /// assert_eq!(SEEN.lock().unwrap_or_else(|error| error.into_inner())[..], [(0x1000, 7)]);
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    #[cfg(feature = "safe")]
    #[doc(hidden)]
    #[inline]
    pub fn host_reads(self) -> Option<&'static HostReads> {
        self.0.host_reads
    }

    fn leak(instance: Instance) -> Self {
        Self(Box::leak(Box::new(instance)))
    }

    /// A driver of the same library with another table.
    #[cfg(feature = "observe")]
    fn with_symbols(self, symbols: Symbols) -> Self {
        let loaded = Loaded { symbols, ..self.0.loaded.clone() };
        let Instance { clock, host_reads, .. } = *self.0;
        Self::leak(Instance { clock, host_reads, ..Instance::new(loaded) })
    }

    /// The same table with another clock and another function for the host's reads.
    #[cfg(feature = "safe")]
    pub(crate) fn with(
        self,
        clock: Option<&'static dyn HostClock>,
        host_reads: Option<&'static HostReads>,
    ) -> Self {
        Self::leak(Instance { clock, host_reads, ..Instance::new(self.0.loaded.clone()) })
    }

    fn file(self) -> Option<&'static PathBuf> {
        let loaded = &self.0.loaded;
        loaded.file.as_ref().filter(|_| loaded.candidate.is_some()).or(loaded.candidate.as_ref())
    }
}

/// Two drivers are equal if they refer to the same table.
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

/// A software driver for unit tests, and this crate on it.
#[cfg(test)]
#[allow(unsafe_code)]
pub(crate) fn software() -> (cuda_soft_driver::SoftDriver, Driver) {
    let soft = cuda_soft_driver::SoftDriver::new();
    // SAFETY: it has the driver's ABI, and its functions are part of this program.
    let driver =
        unsafe { Driver::from_resolver(&mut |name| soft.resolve(name), &LoadOptions::new()) };
    (soft, driver.unwrap())
}
