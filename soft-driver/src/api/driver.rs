//! `SoftDriver`: the handle that a Rust program has of a machine.

use core::ffi::{CStr, c_void};
use core::time::Duration;
use std::sync::PoisonError;
use std::time::Instant;

use cuda_events::{Driver, LoadOptions};

use crate::abi::*;
use crate::api::report::{self, Live};
use crate::front::faults::{Fault, can_fail_contexts};
use crate::front::fork;
use crate::front::functions;
use crate::front::hooks::{self, Hooks};
use crate::front::log::CallRecord;
use crate::model::config::{Config, Scheduler, Time};
use crate::model::ipc;
use crate::model::machine::{Locked, MACHINES, Machine};
use crate::model::order::Order;
use crate::model::places::{self, PLACES};

/// A software driver in this process, with nothing in common with any other one.
///
/// There is room for [`SLOTS`](crate::SLOTS) at a time; making one more waits until another one is
/// dropped, and panics after two minutes. Dropping it ends everything that it has: from then on its
/// functions answer `CUDA_ERROR_DEINITIALIZED`, and so do calls that wait or are
/// [blocked](Fault::block).
///
/// Drop it after what was made with it, as the last field of a fixture. What outlives it does
/// nothing to other drivers, as a rule: handles say whose they are, and its place goes to another
/// one when each primary context that the program retained was released, in the order in which
/// places became free. There are two exceptions. A call that names no handle (`cuDeviceGetCount`,
/// `cuDevicePrimaryCtxRelease`), through a [`Driver`] or an address that was kept when all that was
/// retained is given back, reaches whichever driver has the place then. And when no place is free,
/// one that has waited for its releases for more than a second is given away, as a context may be
/// never released ([`Context::leak`](cuda_events::Context::leak)): releases that come later still
/// are the new driver's.
#[derive(Debug)]
pub struct SoftDriver {
    slot: usize,
    /// The shared library's machine is never given back.
    owned: bool,
}

impl SoftDriver {
    pub(crate) fn take(config: Config, faults: Vec<Fault>) -> Self {
        let slot = places::take();
        let driver = Self { slot, owned: true };
        driver.start(config, faults);
        driver
    }

    /// One that is never given back.
    pub(crate) fn keep(mut self) -> Self {
        self.owned = false;
        self
    }

    fn start(&self, config: Config, faults: Vec<Fault>) {
        fork::watch();
        let machine = self.machine();
        self.hooks().start(machine, &config, faults);
        let mut state = machine.lock();
        machine.reset(&mut state);
        machine.restart_calls();
        state.clock.start(config.time);
        if let Scheduler::Seeded(seed) = config.scheduler {
            crate::say!("work is scheduled at random, with the seed {seed}");
            state.engine.random = seed;
            // Without the thread it works all the same, as long as the program makes calls.
            let _ = state.ensure_ticker_thread(machine);
        }
        state.order = Order::new(&config);
        state.look_who_watches();
        state.config = config;
        state.taken = true;
    }

    pub(crate) fn say_what_is_alive(&self) {
        if self.machine().switches.forked() {
            return;
        }
        if self.state().config.report_leaks && !self.live().is_empty() {
            crate::say!("still alive: {}", self.leak_report());
        }
    }

    pub(crate) fn machine(&self) -> &'static Machine {
        &MACHINES[self.slot]
    }

    fn hooks(&self) -> &'static Hooks {
        hooks::of(self.machine())
    }

    fn state(&self) -> Locked {
        self.machine().lock()
    }

    /// The address of an exported function, as `dlsym` would find it: `cuEventRecord`,
    /// `cuEventRecord_ptsz`. NULL when a driver of this version exports no such name.
    ///
    /// The addresses stay good for the whole process; once this value is dropped they answer as
    /// after the driver's shutdown.
    pub fn resolve(&self, name: &CStr) -> *mut c_void {
        functions::resolve(self.machine(), name.to_bytes())
    }

    /// The driver as `cuda-events` sees it.
    ///
    /// # Panics
    ///
    /// When the settings leave out what `cuda-events` requires; see
    /// [`try_driver`](Self::try_driver).
    pub fn driver(&self) -> Driver {
        match self.try_driver(&LoadOptions::new()) {
            Ok(driver) => driver,
            Err(error) => {
                panic!("the software driver is not one that cuda-events can use: {error}")
            }
        }
    }

    /// The driver as `cuda-events` sees it with these options.
    ///
    /// # Errors
    ///
    /// What [`Driver::from_resolver`] answers: a version or settings without a required entry
    /// point.
    pub fn try_driver(&self, options: &LoadOptions) -> cuda_events::Result<Driver> {
        // SAFETY: the addresses are those of functions that this crate compiles from the types of
        // the very list that `cuda-events` resolves; they are part of the program and keep the
        // driver's contracts.
        unsafe { Driver::from_resolver(&mut |name| self.resolve(name), options) }
    }

    /// What was done that is undefined on a real driver, where
    /// [`OnMisuse::Error`](crate::OnMisuse::Error) is set.
    pub fn misuses(&self) -> Vec<String> {
        self.state().misuses.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The deadlocks of waits for values that were found so far, in words: which streams wait for
    /// what, in which channels, and which calls gave them that. [`OnDeadlock`](crate::OnDeadlock)
    /// says what one is. It is found by the call that closes the circle; only where values were
    /// written and taken back it may be found later.
    pub fn deadlocks(&self) -> Vec<String> {
        self.state().deadlocks.clone()
    }

    /// What the [order checker](crate::OrderCheck) found so far, in words: two accesses to the same
    /// bytes, where they were made, what order there is, and what is missing. The first thousand
    /// are kept.
    pub fn order_findings(&self) -> Vec<String> {
        self.state().order.as_ref().map(|order| order.findings().to_vec()).unwrap_or_default()
    }

    /// How many calls were made so far, whatever they answered.
    pub fn calls(&self) -> u64 {
        self.machine().calls()
    }

    /// The latest calls, as many as [`Builder::log`](crate::Builder::log) says, in the order in
    /// which they ended.
    pub fn log(&self) -> Vec<CallRecord> {
        self.hooks().control().log.records()
    }

    /// Forgets the calls that were logged so far.
    pub fn clear_log(&self) {
        self.hooks().control().log.clear();
    }

    /// What is alive now.
    pub fn live(&self) -> Live {
        report::look(self.machine()).0
    }

    /// What is alive now, in words: how much of each kind, and which calls made the first few of
    /// them. With a call [log](crate::Builder::log) it names those calls, without one their
    /// numbers.
    pub fn leak_report(&self) -> String {
        let (live, which) = report::look(self.machine());
        format!("{live}{which}")
    }

    /// Ends a test that left something alive, or left it to its context to destroy (see
    /// [`Live::lost`]).
    ///
    /// # Panics
    ///
    /// When there is anything of that at all; the message is the [report](Self::leak_report).
    #[track_caller]
    pub fn assert_no_leaks(&self) {
        let (live, which) = report::look(self.machine());
        assert!(live.is_empty(), "left on the software driver: {live}{which}");
    }

    /// Has calls fail from now on.
    ///
    /// # Panics
    ///
    /// When the fault can never strike or cannot be meant: its pattern matches no entry point, its
    /// count or probability is none, it has garbage or a failed context but no code.
    #[track_caller]
    pub fn inject(&self, fault: Fault) {
        // A closure would be blamed itself, and not the caller.
        let fault = match fault.checked() {
            Ok(fault) => fault,
            Err(what) => panic!("not a fault to inject: {what}"),
        };
        let hooks = self.hooks();
        let mut control = hooks.control();
        control.faults.add(fault);
        hooks.faults_changed(self.machine(), &control);
    }

    /// Has no calls fail any more, and lets blocked ones go on.
    pub fn clear_faults(&self) {
        let hooks = self.hooks();
        let mut control = hooks.control();
        control.faults.clear();
        hooks.faults_changed(self.machine(), &control);
        drop(control);
        hooks.release();
    }

    /// How often a fault struck.
    pub fn injected(&self) -> u64 {
        self.hooks().control().faults.struck
    }

    /// Lets the calls go on that [`Fault::block`] holds. The answer is how many those were.
    pub fn release(&self) -> usize {
        self.hooks().release()
    }

    /// How many calls [`Fault::block`] holds now.
    pub fn blocked(&self) -> usize {
        self.hooks().control().faults.blocked
    }

    /// How many calls that end a context or unregister memory wait for work now.
    #[doc(hidden)]
    pub fn waiting_for_work(&self) -> usize {
        self.state().engine.idle_waiters
    }

    /// Keeps host functions from being run, or lets them run again. Those that run already are not
    /// stopped. Whatever waits for their streams waits for them, the last release of a context too.
    /// In a context that fails they are held no longer: as without this, its functions are left
    /// out, and its callbacks are called with the error.
    pub fn hold_host_functions(&self, hold: bool) {
        self.machine().hold_host_functions(hold);
    }

    /// All contexts fail, as after a kernel that trapped: what is in their streams is left out, and
    /// everything in them answers `code` from now on. A real driver recovers in a new process only;
    /// neither does this one.
    ///
    /// # Panics
    ///
    /// When the code is `CUDA_SUCCESS` or `CUDA_ERROR_NOT_READY`, with which no context fails.
    #[track_caller]
    pub fn fail_contexts(&self, code: CUresult) {
        assert!(can_fail_contexts(code), "a context cannot fail with the code {}", code.0);
        let machine = self.machine();
        let mut state = machine.lock();
        let contexts: Vec<u32> = state.contexts.iter().map(|(index, _)| index).collect();
        for context in contexts {
            state.fail_context(machine, context, code);
        }
    }

    /// Every call answers as in a forked child of a process that uses the driver, or as usual
    /// again.
    pub fn pretend_forked(&self, on: bool) {
        self.machine().switches.pretend_forked(on);
    }

    /// Every call answers `CUDA_ERROR_DEINITIALIZED` from now on, as while a process ends.
    pub fn shut_down(&self) {
        self.machine().switches.shut_down(true);
    }

    /// Moves [virtual time](crate::Time::Virtual) on.
    ///
    /// # Panics
    ///
    /// When the driver's time is [real](crate::Time::Real): that moves by itself, and a test that
    /// moves it tests nothing.
    #[track_caller]
    pub fn advance(&self, by: Duration) {
        let moved = self.try_advance(by);
        assert!(moved, "real time cannot be moved on: the driver is not built with Time::Virtual");
    }

    pub(crate) fn try_advance(&self, by: Duration) -> bool {
        let mut state = self.state();
        let is_virtual = state.config.time == Time::Virtual;
        if is_virtual {
            let by = u64::try_from(by.as_nanos()).unwrap_or(u64::MAX);
            let until = state.clock.now().saturating_add(by);
            state.pass_time_to(self.machine(), until);
        }
        is_virtual
    }
}

/// How long a drop waits for a function of the program that still runs.
const PATIENCE: Duration = Duration::from_secs(5);

impl Drop for SoftDriver {
    fn drop(&mut self) {
        // In a forked child there are no threads to end, and what is alive is the parent's.
        if !self.owned || self.machine().switches.forked() {
            return;
        }
        let machine = self.machine();
        self.say_what_is_alive();
        let mut state = machine.lock();
        state.stopping = true;
        state.engine.abandon();
        let threads = core::mem::take(&mut state.threads);
        for condition in
            [&machine.done, &machine.host, &machine.pool, &machine.ticker, &machine.timer]
        {
            condition.notify_all();
        }
        drop(state);
        // Before anything is waited for: a host function may be in a call that is blocked.
        self.hooks().release();
        state = machine.lock();
        let until = Instant::now() + PATIENCE;
        while (state.engine.running > 0 || state.waiters > 0) && Instant::now() < until {
            drop(state);
            std::thread::sleep(Duration::from_millis(1));
            state = machine.lock();
        }
        let stuck = state.engine.running > 0;
        // Under the machine's lock, so that a release counts either as one of the living driver or
        // as a late one.
        PLACES.dropped(self.slot, state.held());
        machine.reset(&mut state);
        drop(state);
        self.hooks().end(machine);
        ipc::tidy_up();
        places::count_here(-1);
        if stuck {
            // The slot stays taken: whatever that function does later, it does to nobody else's
            // driver.
            crate::say!("a host function did not return; its software driver is given up");
            return;
        }
        let this = std::thread::current().id();
        for thread in threads.into_iter().filter(|thread| thread.thread().id() != this) {
            let _ = thread.join();
        }
        PLACES.ended(self.slot);
    }
}

#[cfg(test)]
mod tests {
    use core::ptr::null_mut;

    use super::*;
    use crate::model::config::OnMisuse;

    /// Measured: the driver keeps what is destroyed in a failed context, and its release frees it.
    /// The leak report counts what the program could not destroy neither before nor after.
    #[test]
    fn what_is_destroyed_in_a_failed_context() {
        let config = Config { on_misuse: OnMisuse::Error, ..Config::DEFAULT };
        let soft = SoftDriver::take(config, Vec::new());
        let symbols = *soft.driver().symbols();
        let kept = || {
            let state = soft.state();
            (state.events.len(), state.streams.len())
        };
        let (mut context, mut stream, mut event) = (null_mut(), null_mut(), null_mut());
        // SAFETY: places for the handles, and handles that the driver gave out; misuse is an error.
        unsafe {
            assert_eq!((symbols.cuInit)(0).0, 0);
            assert_eq!((symbols.cuDevicePrimaryCtxRetain)(&mut context, 0).0, 0);
            assert_eq!((symbols.cuCtxSetCurrent)(context).0, 0);
            assert_eq!((symbols.cuStreamCreate)(&mut stream, 0).0, 0);
            assert_eq!((symbols.cuEventCreate)(&mut event, 0).0, 0);
            soft.fail_contexts(CUresult(719));
            for time in ["first", "second"] {
                assert_eq!((symbols.cuEventDestroy_v2)(event).0, 719, "{time}");
                assert_eq!((symbols.cuStreamDestroy_v2)(stream).0, 719, "{time}");
                assert_eq!((symbols.cuEventQuery)(event).0, 719, "{time}");
                assert_eq!((symbols.cuStreamQuery)(stream).0, 719, "{time}");
                assert_eq!((soft.live().events, soft.live().streams), (0, 0), "{time}");
                assert_eq!(kept(), (1, 1), "{time}");
            }
            assert_eq!(soft.misuses(), [""; 0]);
            assert_eq!((symbols.cuDevicePrimaryCtxRelease_v2)(0).0, 0);
            assert_eq!(kept(), (0, 0), "the release freed them");
        }
        soft.assert_no_leaks();
    }
}
