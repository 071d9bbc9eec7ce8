//! The settings of a machine, and the choices among them that are public.

use core::time::Duration;

use cuda_order_check::{HostOrder, Warnings};

/// What happens when the program does what is undefined on a real driver: a destroyed or made-up
/// handle, a NULL pointer where the real driver dereferences it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OnMisuse {
    /// Ends the process with a message: the call, the handle, and where it was destroyed. Some of
    /// it a real driver was seen to survive, a handle of the wrong kind and zeroed memory; that is
    /// undefined too, and ends the process like the rest.
    #[default]
    Abort,
    /// Answers an error, and keeps the message for [`misuses`](crate::SoftDriver::misuses). A
    /// fuzzer wants this: by default even the use of an event from a damaged descriptor ends the
    /// process.
    Error,
}

/// What happens when streams wait for values that only writes behind those very waits would write:
/// a real driver waits for ever, or until the host writes the value.
///
/// A deadlock is when streams wait for values that were given to other streams to write, and none
/// of those writes can come to its turn: each is behind such a wait, in its own stream or in the
/// channel that its stream shares with others
/// ([`Builder::connections`](crate::Builder::connections)). A wait that no submitted write would
/// end is no part of one: the host may write the value, or another process, or a later call.
/// However it is dealt with, it is said on standard error, once, and
/// [`deadlocks`](crate::SoftDriver::deadlocks) has it. One that comes while another one lasts is a
/// part of that.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OnDeadlock {
    /// As [`OnMisuse`] says. `Abort` ends the process. With `Error` the contexts that are part of
    /// it fail with `CUDA_ERROR_LAUNCH_TIMEOUT`, as a real one does where a watchdog ends work that
    /// does not come to its end: the call that closed the circle answers so, and everything in
    /// those contexts from then on, and nothing hangs.
    #[default]
    Misuse,
    /// As on a real driver: it hangs. The host can still end it by writing the value.
    Hang,
}

/// Whether accesses to the same bytes are looked for that nothing orders.
///
/// The driver sees each copy, memset, value, allocation and free, and each record, wait and
/// synchronization. The checker says of which two accesses, at least one of them a write, no event,
/// wait or synchronization orders, whichever of them came first in this run. It does not see what
/// the program's own kernels and threads touch, unless that is
/// [told](crate::SoftDriver::reads). `docs/order-check.md` says what orders.
///
/// Between streams that only events order, an error is found on every run. What the host's threads
/// tell each other no driver sees. [`Builder::order_host`](crate::Builder::order_host) chooses what
/// that means. With [`HostOrder::Submission`] a good program is never reported, and an error
/// between two threads, or one that a host function or a value in host memory may have mended, is
/// found on some runs only. With [`HostOrder::Told`] such errors are found on every run too, and
/// the program tells how its threads are ordered ([`hand_over`](crate::SoftDriver::hand_over)).
///
/// A report is given once for each pair of places. A place is the source line where that is known:
/// Rust programs that call `reads`, `writes` and their like have it. For a call of the driver, a
/// plain C function, it is the function and its stream or thread; with
/// [`order_backtraces`](crate::Builder::order_backtraces) it is how the program came to the call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OrderCheck {
    /// Nothing is looked for, and nothing is paid.
    #[default]
    Off,
    /// What is found is said on standard error, once for each pair of places, and
    /// [`order_findings`](crate::SoftDriver::order_findings) has it.
    Report,
    /// The first one that is found ends the process, with the same report. Warnings do not.
    Abort,
}

/// What the driver does about rules that real drivers leave open.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Rules {
    /// As measured on the real driver.
    #[default]
    Faithful,
    /// As documented, where the document forbids more than the real driver refuses: no driver call
    /// in a host function, and stale IPC descriptors are recognised.
    Strict,
}

/// The clock that timing events read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Time {
    /// The machine's monotonic clock.
    #[default]
    Real,
    /// A clock that only [`advance`](crate::SoftDriver::advance) and the work itself move: a memset
    /// or copy takes one nanosecond for each 1024 bytes, what keeps a stream
    /// [busy](crate::SoftDriver::busy) as long as it says, everything else one tick.
    ///
    /// A call that waits lets time pass. A query does not. So what only looks, again and again,
    /// does not end by itself: `Point::wait`, `Event::synchronize_timeout` and futures of
    /// `cuda-events` wait for ever, or until their timeout, for a stream that is busy. There the
    /// test calls `advance`, from another thread if need be, or waits by a call.
    Virtual,
}

/// In what order independent work is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Scheduler {
    /// At once where a stream is idle; host functions on one thread in the order in which they
    /// become ready.
    #[default]
    Prompt,
    /// Seeded random: among the streams that could go on, which one goes on next, and how far
    /// before the call returns.
    ///
    /// Work is done in steps between the program's calls and while it waits. The same seed gives
    /// the same order to a program that makes its calls from one thread, and whose host functions
    /// do not wait for it, however much the machine has to do (on Linux; elsewhere a machine that
    /// lets a thread wait for long may change it). A program whose thread does not call the driver
    /// for a tenth of a second of its time gets its work done all the same, in an order that then
    /// depends on time.
    Seeded(u64),
}

impl Scheduler {
    /// Seeded by the time. The seed is printed when the driver starts, so that the run can be had
    /// again.
    pub fn random() -> Self {
        let since =
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Self::Seeded(since.as_nanos() as u64)
    }
}

/// The settings of a machine.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) version: i32,
    pub(crate) devices: i32,
    /// Whether the environment says which of them are there; unless told, the shared library asks
    /// it.
    pub(crate) visible_from_environment: Option<bool>,
    pub(crate) memory: u64,
    pub(crate) on_misuse: OnMisuse,
    pub(crate) rules: Rules,
    pub(crate) time: Time,
    pub(crate) scheduler: Scheduler,
    pub(crate) latency: Duration,
    /// How many channels a context has; what the environment says, unless told.
    pub(crate) connections: Option<u32>,
    pub(crate) on_deadlock: OnDeadlock,
    pub(crate) check_order: OrderCheck,
    pub(crate) order_warnings: Warnings,
    pub(crate) order_backtraces: bool,
    pub(crate) order_host: HostOrder,
    pub(crate) ipc: bool,
    pub(crate) ipc_slots: u32,
    pub(crate) log: usize,
    pub(crate) log_lookups: bool,
    pub(crate) report_leaks: bool,
    /// Exported names that are absent.
    pub(crate) missing: Vec<String>,
    /// Names for which `cuGetProcAddress` answers success with NULL.
    pub(crate) null_lookups: Vec<String>,
    /// `cuInit` answers this instead.
    pub(crate) init_result: u32,
    /// Pairs: a base name, and the exported name whose address a lookup of it gives.
    pub(crate) wrong_lookups: Vec<(String, String)>,
}

impl Config {
    /// Whether an exported name was configured away.
    pub(crate) fn lacks(&self, name: &str) -> bool {
        self.missing.iter().any(|missing| missing == name)
    }

    pub(crate) const DEFAULT: Self = Self {
        version: 13000,
        devices: 1,
        visible_from_environment: None,
        memory: 16 << 30,
        on_misuse: OnMisuse::Abort,
        rules: Rules::Faithful,
        time: Time::Real,
        scheduler: Scheduler::Prompt,
        latency: Duration::ZERO,
        connections: None,
        on_deadlock: OnDeadlock::Misuse,
        check_order: OrderCheck::Off,
        order_warnings: Warnings::NONE,
        order_backtraces: false,
        order_host: HostOrder::Submission,
        ipc: true,
        ipc_slots: 4096,
        log: 0,
        log_lookups: false,
        report_leaks: false,
        missing: Vec::new(),
        null_lookups: Vec::new(),
        init_result: 0,
        wrong_lookups: Vec::new(),
    };
}
