//! `Builder`: how a software driver is set up, in Rust or by a text.

use core::time::Duration;
use std::collections::BTreeSet;

use cuda_order_check_engine::findings::Suppression;
use cuda_order_check_engine::{HostOrder, Warnings};

use crate::abi::*;
use crate::api::driver::{self, SoftDriver};
use crate::engine::channel::MOST_CHANNELS;
use crate::front::exports::{EXPORTS, NEWEST};
use crate::front::faults::Fault;
use crate::machine::config::{Config, OnDeadlock, OnMisuse, OrderCheck, Rules, Scheduler, Time};

/// The settings of a [`SoftDriver`].
///
/// ```
/// use cuda_events::sys::CUresult;
/// use cuda_events::{Context, Device, Error, LoadOptions, Stream, StreamOptions};
/// use cuda_soft_driver::{
///     Builder, Fault, HostOrder, OnDeadlock, OnMisuse, OrderCheck, OrderWarnings, Rules,
///     Scheduler, SoftDriver, Time,
/// };
/// use std::time::Duration;
///
/// // A small machine with an old driver.
/// let machine = SoftDriver::builder()
///     .version(12, 0)
///     .devices(2)
///     .visible_from_environment(false)
///     .memory(64 << 20)
///     .connections(2)
///     .ipc(false)
///     .without("cuStreamGetId")
///     .latency(Duration::from_micros(5));
/// let soft = machine.build();
/// let device = Device::new(soft.driver(), 1)?;
/// assert_eq!(device.total_memory()?, 64 << 20);
/// let context = Context::primary(device)?;
/// let stream = Stream::new(&context, StreamOptions::new())?;
/// assert!(matches!(stream.id(), Err(Error::Unsupported { .. })));
///
/// // Strict tests: the documented rules, work in a random order that can be repeated, and errors
/// // instead of a process that ends.
/// let strict = SoftDriver::builder()
///     .rules(Rules::Strict)
///     .scheduler(Scheduler::Seeded(7))
///     .time(Time::Virtual)
///     .on_misuse(OnMisuse::Error)
///     .on_deadlock(OnDeadlock::Misuse)
///     .log(1000)
///     .report_leaks(true);
/// // The order checker, with everything that it can find.
/// let strict = strict
///     .check_order(OrderCheck::Report)
///     .order_warnings(OrderWarnings::all())
///     .order_host(HostOrder::Reported)
///     .order_backtraces(true)
///     .order_suppress("call:cuMemsetD8*");
/// // For CI: JSON lines in a file, and an exit status.
/// let for_ci = strict.clone().order_log("findings-%p.jsonl").order_json(true).order_exitcode(66);
/// let for_ci = for_ci.leaks_log("leaks-%p.txt");
/// # drop(for_ci);
/// assert_eq!(Device::count(strict.build().driver())?, 1);
///
/// // Drivers that do not work.
/// let mismatch = CUresult::CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
/// let soft = SoftDriver::builder().init_result(mismatch).build();
/// let error = Device::count(soft.driver()).unwrap_err();
/// assert_eq!(error.code(), Some(mismatch));
/// let soft = SoftDriver::builder().null_lookup("cuEventQuery").log(10).log_lookups(true).build();
/// assert!(soft.try_driver(&LoadOptions::new()).is_err());
/// let soft = SoftDriver::builder().fault(Fault::on("cuInit").once()).build();
/// assert!(Device::count(soft.driver()).is_err());
///
/// // The same settings as text, as the shared library takes them.
/// let soft = Builder::from_text("version=12.0 devices=2 ipc_slots=16")?.build();
/// assert_eq!(Device::count(soft.driver())?, 2);
/// assert!(Builder::from_text("devices=9").is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct Builder {
    pub(super) config: Config,
    /// Faults that are active from the start.
    pub(super) faults: Vec<Fault>,
    /// The first invalid setting, and its valid values.
    pub(super) wrong: Option<String>,
}

impl Default for Builder {
    fn default() -> Self {
        Self { config: Config::DEFAULT, faults: Vec::new(), wrong: None }
    }
}

/// The CUDA versions that the list of exports covers.
const VERSIONS: core::ops::RangeInclusive<(u32, u32)> = (11, 0)..=NEWEST;

impl SoftDriver {
    /// Creates a driver of CUDA 13.0 with one device.
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// Returns a builder for a driver with other settings.
    pub fn builder() -> Builder {
        Builder::default()
    }
}

impl Default for SoftDriver {
    fn default() -> Self {
        Self::new()
    }
}

/// The builder keeps the first invalid setting until [`build`](Builder::build) or
/// [`from_text`](Builder::from_text) reports it.
impl Builder {
    fn refuse_unless(mut self, good: bool, what: impl FnOnce() -> String) -> Self {
        if !good && self.wrong.is_none() {
            self.wrong = Some(what());
        }
        self
    }

    /// Sets the driver's CUDA version, from 11.0 to 13.5, such as `(12, 4)`.
    ///
    /// Later entry points are missing from exports and look-ups.
    pub fn version(mut self, major: u32, minor: u32) -> Self {
        let good = VERSIONS.contains(&(major, minor)) && minor < 10;
        if good {
            self.config.version = (major * 1000 + minor * 10) as i32;
        }
        self.refuse_unless(good, || {
            let (newest, minor_of_newest) = NEWEST;
            format!(
                "version {major}.{minor} is not supported: use 11.0 to {newest}.{minor_of_newest}"
            )
        })
    }

    /// Sets the number of devices: 0 to 8. With none, `cuInit` returns `CUDA_ERROR_NO_DEVICE`.
    pub fn devices(mut self, count: u32) -> Self {
        self.config.devices.count = count.min(8) as i32;
        self.refuse_unless(count <= 8, || format!("{count} devices are not supported: use 0 to 8"))
    }

    /// Sets whether `CUDA_VISIBLE_DEVICES` selects and orders the [devices](Self::devices).
    ///
    /// As for a real driver, the variable contains numbers or UUIDs, and `cuInit` reads it. By
    /// default only the shared library uses it. A [`SoftDriver`] ignores it, because on a machine
    /// with GPUs the variable is meant for the GPUs.
    pub fn visible_from_environment(mut self, on: bool) -> Self {
        self.config.devices.visible_from_environment = Some(on);
        self
    }

    /// Sets the memory of each device, in bytes. Memory is allocated when it is touched.
    pub fn memory(mut self, bytes: u64) -> Self {
        self.config.devices.memory = bytes;
        self
    }

    /// Sets the reaction to calls that are undefined on a real driver.
    pub fn on_misuse(mut self, on_misuse: OnMisuse) -> Self {
        self.config.on_misuse = on_misuse;
        self
    }

    /// Sets whether the driver follows measured or documented rules.
    pub fn rules(mut self, rules: Rules) -> Self {
        self.config.rules = rules;
        self
    }

    /// Sets the clock that timing events read.
    pub fn time(mut self, time: Time) -> Self {
        self.config.work.time = time;
        self
    }

    /// Sets the order of independent work.
    pub fn scheduler(mut self, scheduler: Scheduler) -> Self {
        self.config.work.scheduler = scheduler;
        self.config.work.prints_seed = false;
        self
    }

    /// Sets the number of hardware channels that a context's streams share, 1 to 32.
    ///
    /// A wait for a value in memory blocks later work in its channel, including work of other
    /// streams. An idle stream takes a channel without waits, if there is one. As for a real
    /// driver, `cuInit` reads the default from the environment variable
    /// `CUDA_DEVICE_MAX_CONNECTIONS`. Without the variable it is 8.
    pub fn connections(mut self, channels: u32) -> Self {
        let good = (1..=MOST_CHANNELS).contains(&channels);
        if good {
            self.config.connections = Some(channels);
        }
        self.refuse_unless(good, || format!("{channels} channels are not supported: use 1 to 32"))
    }

    /// Sets the reaction to streams that wait forever for each other's values.
    pub fn on_deadlock(mut self, on_deadlock: OnDeadlock) -> Self {
        self.config.on_deadlock = on_deadlock;
        self
    }

    /// Sets whether to search for unordered accesses to the same bytes, and the reaction to them.
    pub fn check_order(mut self, check_order: OrderCheck) -> Self {
        self.config.order.check = check_order;
        self
    }

    /// Sets the warnings of the [order checker](OrderCheck), about likely mistakes that are not a
    /// missing order.
    ///
    /// By default there are none; `OrderWarnings::all()` enables all of them.
    pub fn order_warnings(mut self, warnings: Warnings) -> Self {
        self.config.order.warnings = warnings;
        self
    }

    /// Sets whether reports of the [order checker](OrderCheck) contain the backtraces of both
    /// calls.
    ///
    /// Each call then costs some microseconds more. Source lines need debug information.
    pub fn order_backtraces(mut self, on: bool) -> Self {
        self.config.order.backtraces = on;
        self
    }

    /// Sets which order on the host the [order checker](OrderCheck) assumes.
    ///
    /// [`HostOrder::Submission`] is the default. The checker assumes that each call is ordered
    /// after all earlier calls, of all threads. It also assumes that the program notices each host
    /// function that has run, and each value in host memory. With these assumptions no correct
    /// program is reported. But an assumed order may hide an error, which is then found only in
    /// runs without that order.
    ///
    /// With [`HostOrder::Reported`] the checker assumes less. A thread is ordered after the work
    /// for which its own calls have waited, and after everything that was [handed
    /// over](SoftDriver::hand_over) to it. A new thread is ordered after the work that all earlier
    /// threads are ordered after. So errors among threads are found on every run. The program must
    /// report all other order between threads; otherwise it gets false reports. The checker also
    /// reports the destruction of an event or a stream that another thread uses without an order.
    pub fn order_host(mut self, order: HostOrder) -> Self {
        self.config.order.host = order;
        self
    }

    /// Sets a file for the findings of the [order checker](OrderCheck), in place of standard error.
    ///
    /// `%p` in the path is replaced by the number of the process. The findings are appended, and at
    /// the end the summary. If the file cannot be opened, the findings go to standard error.
    pub fn order_log(mut self, path: &str) -> Self {
        self.config.order.log = Some(path.to_owned());
        self
    }

    /// Sets whether each finding of the [order checker](OrderCheck), and the summary, is written as
    /// a JSON object in one line.
    ///
    /// [`Finding::to_json`](cuda_order_check_engine::Finding::to_json) describes the objects. The object
    /// of the summary has the `severity` `summary`, and the counts `errors`, `warnings` and
    /// `suppressed`.
    pub fn order_json(mut self, on: bool) -> Self {
        self.config.order.json = on;
        self
    }

    /// Suppresses findings of the [order checker](OrderCheck): the summary only counts them.
    ///
    /// * `call:NAME` covers findings that name this call, such as `call:cuMemcpyDtoHAsync*`.
    /// * `function:NAME` covers findings with this text in a line of a backtrace, or in the source
    ///   line of a call. Backtraces require [`order_backtraces`](Self::order_backtraces).
    ///
    /// `*` stands for any text. In [`from_text`](Self::from_text), `order_suppress=file:PATH` reads
    /// a file with one pattern in each line. Empty lines and lines that begin with `#` are ignored.
    pub fn order_suppress(self, pattern: &str) -> Self {
        match Suppression::from_text(pattern) {
            Ok(suppression) => self.suppress(suppression),
            Err(what) => self.refuse_unless(false, || what),
        }
    }

    pub(super) fn suppress(mut self, suppression: Suppression) -> Self {
        self.config.order.suppress.push(suppression);
        self
    }

    /// Sets the exit status of a process in which the [order checker](OrderCheck) has found an
    /// error. 0, the default, does not change the status.
    ///
    /// The status replaces the status of the program, even if the program failed. It has no effect
    /// if the process ends by a signal or by `_exit`, and on Windows.
    pub fn order_exitcode(mut self, status: u8) -> Self {
        self.config.order.exitcode = status;
        self
    }

    /// Notes a setting that has no effect because the order checker is off.
    pub(crate) fn complete(self) -> Self {
        let order = &self.config.order;
        let idle = [
            ("order_warnings", order.warnings != Warnings::NONE),
            ("order_backtraces", order.backtraces),
            ("order_host", order.host != HostOrder::Submission),
            ("order_log", order.log.is_some()),
            ("order_format", order.json),
            ("order_suppress", !order.suppress.is_empty()),
            ("order_exitcode", order.exitcode != 0),
        ];
        let idle = idle.into_iter().find(|(_, set)| *set && order.check == OrderCheck::Off);
        self.refuse_unless(idle.is_none(), || {
            let name = idle.map_or("", |(name, _)| name);
            format!("`{name}` has no effect without the order checker: add `order=report`")
        })
    }

    /// Sets whether there are interprocess events, and device memory that other processes can open.
    pub fn ipc(mut self, on: bool) -> Self {
        self.config.ipc = on;
        self
    }

    /// Sets the number of interprocess events of a context. The default and the maximum are 4096.
    pub fn ipc_slots(mut self, slots: u32) -> Self {
        self.config.ipc_slots = slots;
        self.refuse_unless(slots <= 4096, || {
            format!("{slots} slots are not supported: use 0 to 4096")
        })
    }

    fn needs_export(self, name: &str) -> Self {
        let known = EXPORTS.iter().any(|export| export.name == name);
        self.refuse_unless(known, || {
            format!(
                "no function is exported as `{name}`: use a full name like cuEventDestroy_v2 or \
                 cuEventRecord_ptsz"
            )
        })
    }

    fn needs_base(self, name: &str) -> Self {
        let known = EXPORTS.iter().any(|export| export.base() == name);
        self.refuse_unless(known, || {
            format!(
                "`{name}` cannot be looked up: use a name without version and suffix, like \
                 cuEventDestroy"
            )
        })
    }

    /// Removes an exported name from the driver.
    ///
    /// `cuGetProcAddress` then does not find this version, and returns no older function in its
    /// place: the program would call the older function with the newer arguments. A look-up of the
    /// older version still returns the older function.
    pub fn without(mut self, name: &str) -> Self {
        self.config.lookups.missing.push(name.to_owned());
        self.needs_export(name)
    }

    /// Makes `cuGetProcAddress` return success with a NULL pointer for a base name.
    pub fn null_lookup(mut self, name: &str) -> Self {
        self.config.lookups.null.push(name.to_owned());
        self.needs_base(name)
    }

    /// Makes `cuInit` return this code, such as `CUDA_ERROR_STUB_LIBRARY` or a version mismatch.
    pub fn init_result(mut self, code: CUresult) -> Self {
        self.config.init_result = code.0;
        self
    }

    /// Makes `cuGetProcAddress` return the address of another exported function for a base name, as
    /// if the wrong version were requested.
    pub fn lookup_as(mut self, base: &str, exported: &str) -> Self {
        self.config.lookups.wrong.push((base.to_owned(), exported.to_owned()));
        self.needs_base(base).needs_export(exported)
    }

    /// Makes each call take longer by this time.
    pub fn latency(mut self, latency: Duration) -> Self {
        self.config.work.latency = latency;
        self
    }

    /// Sets how many of the latest calls [`SoftDriver::log`] keeps. The default is none.
    ///
    /// Look-ups of entry points are omitted (loading makes more than a hundred), unless
    /// [`log_lookups`](Self::log_lookups) is on or a fault was injected.
    pub fn log(mut self, calls: usize) -> Self {
        self.config.log.calls = calls;
        self
    }

    /// Sets whether the log also contains calls of `cuGetProcAddress`.
    pub fn log_lookups(mut self, on: bool) -> Self {
        self.config.log.lookups = on;
        self
    }

    /// Adds a fault that is active from the start; see [`SoftDriver::inject`].
    pub fn fault(mut self, fault: Fault) -> Self {
        match fault.checked() {
            Ok(fault) => self.faults.push(fault),
            Err(what) => return self.refuse_unless(false, || what),
        }
        self
    }

    /// Sets whether leaks are printed on standard error when a [`SoftDriver`] is dropped, or when a
    /// process with the shared library ends.
    pub fn report_leaks(mut self, on: bool) -> Self {
        self.config.log.report_leaks = on;
        self
    }

    /// Turns the [report of leaks](Self::report_leaks) on, and sends it to a file in place of
    /// standard error. `%p` in the path is replaced by the process id. The report is appended to
    /// the file.
    pub fn leaks_log(mut self, path: &str) -> Self {
        self.config.log.leaks_log = Some(path.to_owned());
        self.report_leaks(true)
    }

    /// Starts the driver. It waits while all [`SLOTS`](crate::SLOTS) are taken.
    ///
    /// # Panics
    ///
    /// If a setting is invalid: a version or number out of its range, or a name or a fault's
    /// pattern that matches no entry point. A test with such a setting would test nothing.
    #[track_caller]
    pub fn build(self) -> SoftDriver {
        let built = self.complete();
        match built.wrong {
            Some(what) => panic!("the software driver cannot be set up: {what}"),
            None => driver::take(built.config, built.faults),
        }
    }

    pub(crate) fn into_parts(self) -> (Config, Vec<Fault>) {
        (self.config, self.faults)
    }

    /// Parses settings from text: `name=value` pairs, separated by commas or white space. The
    /// shared library takes them from the environment variable `CUDA_SOFT_DRIVER`.
    ///
    /// | name | value | as |
    /// |---|---|---|
    /// | `version` | a CUDA version such as `12.4`, from `11.0` to `13.5` | [`version`](Self::version) |
    /// | `devices` | 0 to 8 | [`devices`](Self::devices) |
    /// | `visible` | `environment` or `all` | [`visible_from_environment`](Self::visible_from_environment) |
    /// | `memory` | bytes, with an optional `K`, `M` or `G` after the number | [`memory`](Self::memory) |
    /// | `misuse` | `abort` or `error` | [`on_misuse`](Self::on_misuse) |
    /// | `rules` | `faithful` or `strict` | [`rules`](Self::rules) |
    /// | `time` | `real` or `virtual` | [`time`](Self::time) |
    /// | `seed` | a number or `random` | [`scheduler`](Self::scheduler) |
    /// | `latency` | whole microseconds | [`latency`](Self::latency) |
    /// | `connections` | 1 to 32 | [`connections`](Self::connections) |
    /// | `deadlock` | `misuse` or `hang` | [`on_deadlock`](Self::on_deadlock) |
    /// | `order` | `report`, `abort` or `off` | [`check_order`](Self::check_order) |
    /// | `order_warnings` | `all`, or names such as `lost_record`, separated by `+` | [`order_warnings`](Self::order_warnings) |
    /// | `order_backtraces` | `on` or `off` | [`order_backtraces`](Self::order_backtraces) |
    /// | `order_host` | `submission` or `reported` | [`order_host`](Self::order_host) |
    /// | `order_log` | a file's path | [`order_log`](Self::order_log) |
    /// | `order_format` | `text` or `json` | [`order_json`](Self::order_json) |
    /// | `order_suppress` | `call:NAME`, `function:NAME` or `file:PATH` | [`order_suppress`](Self::order_suppress) |
    /// | `order_exitcode` | 0 to 255 | [`order_exitcode`](Self::order_exitcode) |
    /// | `ipc` | `on` or `off` | [`ipc`](Self::ipc) |
    /// | `ipc_slots` | 0 to 4096 | [`ipc_slots`](Self::ipc_slots) |
    /// | `log` | how many calls | [`log`](Self::log) |
    /// | `log_lookups` | `on` or `off` | [`log_lookups`](Self::log_lookups) |
    /// | `leaks` | `report` or `ignore` | [`report_leaks`](Self::report_leaks) |
    /// | `leaks_log` | a file's path | [`leaks_log`](Self::leaks_log) |
    /// | `without` | an exported name | [`without`](Self::without) |
    /// | `null` | a base name | [`null_lookup`](Self::null_lookup) |
    /// | `init` | a result code by number or name | [`init_result`](Self::init_result) |
    /// | `fault` | a fault, as for `Fault::from_text` | [`fault`](Self::fault) |
    ///
    /// `without`, `null`, `fault` and `order_suppress` may appear more than once.
    /// [`Fault::from_text`] describes the words of a fault.
    ///
    /// # Errors
    ///
    /// One sentence about the first pair that is unknown, invalid or set twice.
    pub fn from_text(text: &str) -> Result<Self, String> {
        let mut builder = Self::default();
        let mut seen = BTreeSet::new();
        for pair in
            text.split(|at: char| at == ',' || at.is_whitespace()).filter(|pair| !pair.is_empty())
        {
            let (name, value) =
                pair.split_once('=').ok_or_else(|| format!("`{pair}` is not name=value"))?;
            builder = builder.set(name, value)?;
            if !matches!(name, "without" | "null" | "fault" | "order_suppress")
                && !seen.insert(name)
            {
                return Err(format!("`{name}` is set twice"));
            }
        }
        builder = builder.complete();
        match builder.wrong {
            Some(what) => Err(what),
            None => Ok(builder),
        }
    }
}
