//! The handle that a Rust program has of a machine.

use core::ffi::{CStr, c_void};
use core::time::Duration;
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use cuda_events::{Driver, LoadOptions};

use crate::abi::*;
use crate::config::{Config, OnMisuse, Rules, Scheduler, Time};
use crate::entry;
use crate::fork;
use crate::machine::{Locked, MACHINES, Machine, SLOTS};

static TAKEN: Mutex<[bool; SLOTS]> = Mutex::new([false; SLOTS]);
static FREED: Condvar = Condvar::new();

/// A software driver in this process, with nothing in common with any other one.
///
/// There is room for [`SLOTS`](crate::SLOTS) at a time; making one more waits until another one is dropped. Dropping
/// it ends everything that it has: from then on its functions answer `CUDA_ERROR_DEINITIALIZED`.
#[derive(Debug)]
pub struct SoftDriver {
    slot: usize,
    /// The shared library's machine is never given back.
    owned: bool,
}

/// The settings of a [`SoftDriver`].
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct Builder {
    config: Config,
}

impl Default for SoftDriver {
    fn default() -> Self {
        Self::new()
    }
}

impl SoftDriver {
    /// A driver of CUDA 13.0 with one device.
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// A driver that is not as usual.
    pub fn builder() -> Builder {
        Builder { config: Config::DEFAULT }
    }

    fn take(config: Config) -> Self {
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        // The first slot is the shared library's, which has its own copy of all this.
        let slot = loop {
            match taken.iter().position(|taken| !taken) {
                Some(slot) => break slot,
                None => taken = FREED.wait(taken).unwrap_or_else(PoisonError::into_inner),
            }
        };
        taken[slot] = true;
        drop(taken);
        let driver = Self { slot, owned: true };
        driver.start(config);
        driver
    }

    fn start(&self, config: Config) {
        fork::watch();
        let machine = self.machine();
        machine.hooks.reset();
        let mut state = machine.lock();
        state.reset();
        state.clock.start(config.time);
        if let Scheduler::Seeded(seed) = config.scheduler {
            state.engine.random = seed;
        }
        state.config = config;
        state.taken = true;
    }

    fn machine(&self) -> &'static Machine {
        &MACHINES[self.slot]
    }

    fn state(&self) -> Locked {
        self.machine().lock()
    }

    /// The address of an exported function, as `dlsym` would find it: `cuEventRecord`, `cuEventRecord_ptsz`. NULL when
    /// a driver of this version exports no such name.
    ///
    /// The addresses stay good for the whole process; once this value is dropped they answer as after the driver's
    /// shutdown.
    pub fn resolve(&self, name: &CStr) -> *mut c_void {
        entry::resolve(self.machine(), name.to_bytes())
    }

    /// The driver as `cuda-events` sees it.
    ///
    /// # Panics
    ///
    /// When the settings leave out what `cuda-events` requires; see [`try_driver`](Self::try_driver).
    pub fn driver(&self) -> Driver {
        match self.try_driver(&LoadOptions::new()) {
            Ok(driver) => driver,
            Err(error) => panic!("the software driver is not one that cuda-events can use: {error}"),
        }
    }

    /// The driver as `cuda-events` sees it with these options.
    ///
    /// # Errors
    ///
    /// What [`Driver::from_resolver`] answers: a version or settings without a required entry point.
    pub fn try_driver(&self, options: &LoadOptions) -> cuda_events::Result<Driver> {
        // SAFETY: the addresses are those of functions that this crate compiles from the types of the very list that
        // `cuda-events` resolves; they are part of the program and keep the driver's contracts.
        unsafe { Driver::from_resolver(&mut |name| self.resolve(name), options) }
    }

    /// What was done that is undefined on a real driver, where [`OnMisuse::Error`] is set.
    pub fn misuses(&self) -> Vec<String> {
        self.state().misuses.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The one machine of a shared library, set up by the environment when it is first called.
static SHARED: OnceLock<SoftDriver> = OnceLock::new();

/// Starts the shared library's machine, once.
#[doc(hidden)]
pub fn start_shared_library() {
    SHARED.get_or_init(|| {
        let text = std::env::var("CUDA_SOFT_DRIVER").unwrap_or_default();
        let config = match Builder::from_text(&text) {
            Ok(builder) => builder.config,
            Err(what) => {
                // There is nobody to return it to, and to go on as if nothing had been asked for would be silent.
                eprintln!("cuda-soft-driver: CUDA_SOFT_DRIVER: {what}");
                std::process::abort();
            }
        };
        {
            let mut driver = SoftDriver::take(config);
            driver.owned = false;
            driver
        }
    });
}

/// How long a drop waits for a function of the program that still runs.
const PATIENCE: Duration = Duration::from_secs(5);

impl Drop for SoftDriver {
    fn drop(&mut self) {
        if !self.owned {
            return;
        }
        let machine = self.machine();
        let mut state = machine.lock();
        state.stopping = true;
        state.engine.abandon();
        let threads = core::mem::take(&mut state.threads);
        for condition in [&machine.done, &machine.host, &machine.pool, &machine.ticker] {
            condition.notify_all();
        }
        let until = Instant::now() + PATIENCE;
        while (state.engine.running > 0 || state.waiters > 0) && Instant::now() < until {
            drop(state);
            std::thread::sleep(Duration::from_millis(1));
            state = machine.lock();
        }
        let stuck = state.engine.running > 0;
        state.reset();
        drop(state);
        if stuck {
            // The slot stays taken: whatever that function does later, it does to nobody else's driver.
            eprintln!("cuda-soft-driver: a host function did not return; its software driver is given up");
            return;
        }
        let this = std::thread::current().id();
        for thread in threads.into_iter().filter(|thread| thread.thread().id() != this) {
            let _ = thread.join();
        }
        machine.hooks.reset();
        TAKEN.lock().unwrap_or_else(PoisonError::into_inner)[self.slot] = false;
        FREED.notify_one();
    }
}

impl Builder {
    /// The settings as text, as `CUDA_SOFT_DRIVER` gives them to the shared library: `name=value` pairs with commas or
    /// spaces between.
    ///
    /// # Errors
    ///
    /// A sentence about the first pair that is not understood.
    pub fn from_text(text: &str) -> Result<Self, String> {
        let mut builder = SoftDriver::builder();
        for pair in text.split([',', ' ']).filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').ok_or_else(|| format!("`{pair}` is not name=value"))?;
            let bad = || format!("`{value}` is no value for {name}");
            builder = match name {
                "version" => {
                    let (major, minor) = value.split_once('.').ok_or_else(bad)?;
                    builder.version(major.parse().map_err(|_| bad())?, minor.parse().map_err(|_| bad())?)
                }
                "devices" => builder.devices(value.parse().ok().filter(|count| *count <= 8).ok_or_else(bad)?),
                _ => return Err(format!("there is no setting `{name}`")),
            };
        }
        Ok(builder)
    }

    /// The version of CUDA that the driver is of: `(12, 4)`. Later entry points are absent, from exports and lookup.
    pub fn version(mut self, major: u32, minor: u32) -> Self {
        self.config.version = (major * 1000 + minor * 10) as i32;
        self
    }

    /// How many devices there are: 0 to 8. With none, `cuInit` answers `CUDA_ERROR_NO_DEVICE`.
    pub fn devices(mut self, count: u32) -> Self {
        self.config.devices = count.min(8) as i32;
        self
    }

    /// How much memory each device has, in bytes. It is used as it is touched.
    pub fn memory(mut self, bytes: u64) -> Self {
        self.config.memory = bytes;
        self
    }

    /// What happens on what is undefined on a real driver.
    pub fn on_misuse(mut self, on_misuse: OnMisuse) -> Self {
        self.config.on_misuse = on_misuse;
        self
    }

    /// As measured, or as documented.
    pub fn rules(mut self, rules: Rules) -> Self {
        self.config.rules = rules;
        self
    }

    /// Which clock timing events read.
    pub fn time(mut self, time: Time) -> Self {
        self.config.time = time;
        self
    }

    /// In what order independent work is done.
    pub fn scheduler(mut self, scheduler: Scheduler) -> Self {
        self.config.scheduler = scheduler;
        self
    }

    /// Whether there are interprocess events.
    pub fn ipc(mut self, on: bool) -> Self {
        self.config.ipc = on;
        self
    }

    /// How many interprocess events a context can have: 4096 unless told, and no more.
    pub fn ipc_slots(mut self, slots: u32) -> Self {
        self.config.ipc_slots = slots;
        self
    }

    /// An exported name that the driver lacks.
    pub fn without(mut self, name: &str) -> Self {
        self.config.missing.push(name.to_owned());
        self
    }

    /// A name for which `cuGetProcAddress` answers success with a NULL pointer.
    pub fn null_lookup(mut self, name: &str) -> Self {
        self.config.null_lookups.push(name.to_owned());
        self
    }

    /// What `cuInit` answers instead of working: `CUDA_ERROR_STUB_LIBRARY`, a version mismatch.
    pub fn init_result(mut self, code: CUresult) -> Self {
        self.config.init_result = code.0;
        self
    }

    /// Starts the driver; waits while all [`SLOTS`](crate::SLOTS) are taken.
    pub fn build(self) -> SoftDriver {
        SoftDriver::take(self.config)
    }
}
