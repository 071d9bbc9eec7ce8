//! The settings of a machine, and the choices among them that are public.

use core::time::Duration;

use cuda_order_check_engine::findings::Suppression;
use cuda_order_check_engine::{HostOrder, Warnings};

/// The reaction to a call that is undefined on a real driver: a destroyed or made-up handle, a NULL
/// pointer that the real driver dereferences, or a forbidden use of an [external
/// semaphore](crate::ExternalSemaphore#misuse).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum OnMisuse {
    /// Ends the process with a message: the call, the handle, and the place where it was destroyed.
    ///
    /// A real driver was seen to survive some of these calls, with a handle of the wrong kind or
    /// zeroed memory. They are undefined, too, and end the process like the rest.
    #[default]
    Abort,
    /// Returns an error, and keeps the message for [`misuses`](crate::SoftDriver::misuses).
    ///
    /// If a stream executes a signal of an external semaphore that is forbidden at that moment, no
    /// call can return the error. Then the message is also printed on standard error.
    ///
    /// Use it for fuzzing: by default even the use of an event from a damaged descriptor ends the
    /// process.
    Error,
}

/// The reaction to a deadlock of streams. A real driver waits forever, or until the host writes a
/// value.
///
/// In a deadlock, streams wait for values in memory, and the writes of these values are queued
/// after such waits. A write is queued after the earlier waits of its own stream, and of all
/// streams in its channel ([`Builder::connections`](crate::Builder::connections)). If no queued
/// write would end a wait, the wait is not part of a deadlock: the host, another process or a later
/// call may write the value.
///
/// Each deadlock is printed once on standard error, and [`deadlocks`](crate::SoftDriver::deadlocks)
/// returns it. A deadlock that arises during another one counts as part of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum OnDeadlock {
    /// Reacts as [`OnMisuse`] defines. `Abort` ends the process. With `Error` nothing hangs: the
    /// contexts of the deadlocked streams fail with `CUDA_ERROR_LAUNCH_TIMEOUT`, as on a GPU when a
    /// watchdog ends stuck work. The call that completed the deadlock returns this error, and so do
    /// all later calls in those contexts.
    #[default]
    Misuse,
    /// Hangs, as a real driver does. The host can still end the deadlock by writing the value.
    Hang,
}

/// Whether to search for unordered accesses to the same bytes.
///
/// The driver sees each copy, memset, value, allocation and free, and each record, wait and
/// synchronization. The checker reports two accesses to the same bytes if at least one is a write
/// or a free, and no event, wait, value or synchronization orders them. It does not matter which
/// access came first in this run. The checker does not see the accesses of kernels and of the
/// program's threads, unless the program [reports](crate::SoftDriver::reads) them.
/// `docs/order-check.md` has the rules.
///
/// In a program that orders its streams by events only, an error is found on every run. No driver
/// sees the order of the host's threads, so
/// [`Builder::order_host`](crate::Builder::order_host) sets the assumption:
///
/// * With [`HostOrder::Submission`] a correct program is never reported. Some errors are found on
///   some runs only: errors between two threads, and errors that a host function or a value in host
///   memory may hide.
/// * With [`HostOrder::Reported`] these errors are found on every run, too. The program must report
///   the order of its threads ([`hand_over`](crate::SoftDriver::hand_over)).
///
/// Each pair of places is reported once. A place is the source line if it is known, as for calls of
/// `reads`, `writes` and similar methods from Rust. For a call of the driver, a plain C function,
/// the place is the function and its stream or thread. With
/// [`order_backtraces`](crate::Builder::order_backtraces) the place is the call's backtrace.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum OrderCheck {
    /// No search, and no cost.
    #[default]
    Off,
    /// Prints each finding once on standard error, for each pair of places.
    /// [`order_findings`](crate::SoftDriver::order_findings) returns them.
    Report,
    /// Prints the first report and ends the process. Warnings do not end it.
    Abort,
}

/// Whether the driver enforces rules that NVIDIA documents and real drivers do not check.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Rules {
    /// The behaviour measured on the real driver.
    #[default]
    Faithful,
    /// The driver also refuses what the documentation forbids and a real driver does not refuse:
    /// driver calls in host functions, and opening stale IPC descriptors.
    Strict,
}

/// The clock that timing events read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Time {
    /// The machine's monotonic clock.
    #[default]
    Real,
    /// A clock that only [`advance`](crate::SoftDriver::advance) and the work itself can move.
    ///
    /// A memset or copy takes one nanosecond for each 1024 bytes. Work that keeps a stream
    /// [busy](crate::SoftDriver::busy) takes its duration, and all other work one tick.
    ///
    /// Time moves when everything waits: it jumps to the end of the next busy stream, or to the
    /// next timeout. These wait:
    ///
    /// * a thread in a call of the driver that waits,
    /// * a thread in a wait of `cuda-events`, such as `Event::synchronize_timeout` or
    ///   `Point::wait` (timeouts are in virtual time),
    /// * a task that awaits a future of `cuda-events`,
    /// * a thread in a loop of queries (`cuEventQuery`, `cuStreamQuery`, `Point::is_done`). The
    ///   loop counts as a wait after eight equal queries without another call in between.
    ///
    /// Time moves only while all other threads of the process sleep, as in a lock or in an
    /// executor. A thread that runs holds the time as long as it makes calls. It no longer holds
    /// the time after one second of processor time without a call, or after a tenth of a second if
    /// it has never called this driver. Threads that use only other software drivers do not hold
    /// the time. While a thread waits, a host function holds it for a few milliseconds of real time
    /// only.
    ///
    /// So the same program has the same times on every run, however busy the machine is. If threads
    /// submit work at the same moment of virtual time, the order of the calls may differ, as on a
    /// real device. Systems other than Linux do not show whether threads sleep: there the time
    /// moves as soon as one thread waits.
    ///
    /// Waits of `cuda-events` use this clock, which [`SoftDriver::driver`](crate::SoftDriver::driver)
    /// attaches. In the shared library timeouts are in real time, and a loop of queries counts as a
    /// wait.
    Virtual,
}

/// The order of independent work.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Scheduler {
    /// An idle stream does its work at once. Host functions run on one thread, in the order in
    /// which they become ready.
    #[default]
    Prompt,
    /// A random order, from a seed. It decides which ready stream goes on next, and how far it gets
    /// before the call returns.
    ///
    /// Work is done in steps between the program's calls and while the program waits. The same seed
    /// gives the same order, regardless of the machine's load, under three conditions: the program
    /// makes its calls from one thread, its host functions do not wait for that thread, and the
    /// thread makes a driver call at least every tenth of a second of its time. On systems other
    /// than Linux, a machine that delays a thread for long may change the order, too.
    Seeded(u64),
}

impl Scheduler {
    /// Returns [`Seeded`](Self::Seeded) with a seed from the time, and prints the seed, so that the
    /// run can be repeated.
    pub fn random() -> Self {
        let scheduler = Self::from_time();
        scheduler.print();
        scheduler
    }

    /// The same, to be printed later.
    pub(crate) fn from_time() -> Self {
        let since =
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Self::Seeded(since.as_nanos() as u64)
    }

    pub(crate) fn print(self) {
        if let Self::Seeded(seed) = self {
            crate::say!("work is scheduled at random, with the seed {seed}");
        }
    }
}

/// The settings of a machine.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) version: i32,
    pub(crate) devices: DeviceSettings,
    pub(crate) on_misuse: OnMisuse,
    pub(crate) rules: Rules,
    pub(crate) work: WorkSettings,
    /// How many channels a context has; by default `CUDA_DEVICE_MAX_CONNECTIONS`.
    pub(crate) connections: Option<u32>,
    pub(crate) on_deadlock: OnDeadlock,
    pub(crate) order: OrderSettings,
    pub(crate) ipc: bool,
    pub(crate) ipc_slots: u32,
    pub(crate) log: LogSettings,
    pub(crate) lookups: LookupSettings,
    /// What `cuInit` returns, unless it is 0.
    pub(crate) init_result: u32,
}

/// The devices.
#[derive(Clone, Debug)]
pub(crate) struct DeviceSettings {
    pub(crate) count: i32,
    /// Whether `CUDA_VISIBLE_DEVICES` selects them. By default it does in the shared library only.
    pub(crate) visible_from_environment: Option<bool>,
    pub(crate) memory: u64,
}

/// When work is done, and in which order.
#[derive(Clone, Debug)]
pub(crate) struct WorkSettings {
    pub(crate) time: Time,
    pub(crate) scheduler: Scheduler,
    /// Whether the driver's start prints the seed.
    pub(crate) prints_seed: bool,
    pub(crate) latency: Duration,
}

/// The order checker.
#[derive(Clone, Debug)]
pub(crate) struct OrderSettings {
    pub(crate) check: OrderCheck,
    pub(crate) warnings: Warnings,
    pub(crate) backtraces: bool,
    pub(crate) host: HostOrder,
    /// Where the findings are written, in place of standard error.
    pub(crate) log: Option<String>,
    pub(crate) json: bool,
    pub(crate) suppress: Vec<Suppression>,
    /// The exit status of the process if there was an error; 0 for no change.
    pub(crate) exitcode: u8,
}

/// What is kept of calls, and reported at the end.
#[derive(Clone, Debug)]
pub(crate) struct LogSettings {
    /// How many calls are kept.
    pub(crate) calls: usize,
    pub(crate) lookups: bool,
    pub(crate) report_leaks: bool,
    /// Where leaks are reported, in place of standard error.
    pub(crate) leaks_log: Option<String>,
}

/// What lookups of functions do not find, or find wrongly.
#[derive(Clone, Debug)]
pub(crate) struct LookupSettings {
    /// Exported names that are absent.
    pub(crate) missing: Vec<String>,
    /// Names for which `cuGetProcAddress` returns success with NULL.
    pub(crate) null: Vec<String>,
    /// Pairs: a base name, and the exported name whose address a lookup of it gives.
    pub(crate) wrong: Vec<(String, String)>,
}

impl Config {
    /// Whether an exported name was configured away.
    pub(crate) fn lacks(&self, name: &str) -> bool {
        self.lookups.missing.iter().any(|missing| missing == name)
    }

    pub(crate) const DEFAULT: Self = Self {
        version: 13000,
        devices: DeviceSettings { count: 1, visible_from_environment: None, memory: 16 << 30 },
        on_misuse: OnMisuse::Abort,
        rules: Rules::Faithful,
        work: WorkSettings {
            time: Time::Real,
            scheduler: Scheduler::Prompt,
            prints_seed: false,
            latency: Duration::ZERO,
        },
        connections: None,
        on_deadlock: OnDeadlock::Misuse,
        order: OrderSettings {
            check: OrderCheck::Off,
            warnings: Warnings::NONE,
            backtraces: false,
            host: HostOrder::Submission,
            log: None,
            json: false,
            suppress: Vec::new(),
            exitcode: 0,
        },
        ipc: true,
        ipc_slots: 4096,
        log: LogSettings { calls: 0, lookups: false, report_leaks: false, leaks_log: None },
        lookups: LookupSettings { missing: Vec::new(), null: Vec::new(), wrong: Vec::new() },
        init_result: 0,
    };
}
