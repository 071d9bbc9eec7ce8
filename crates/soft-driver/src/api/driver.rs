//! `SoftDriver`: a Rust program's handle of a software driver.

use core::ffi::{CStr, c_void};
use core::time::Duration;
use std::time::Instant;

use cuda_events::{Device, Driver, LoadOptions};
use cuda_order_check_engine::findings::Sink;
use cuda_order_check_engine::{HostOrder, Report as OrderReport, Warning as OrderWarning};

use crate::abi::*;
use crate::api::accesses;
use crate::api::report::{self, Live};
use crate::engine::pending;
use crate::engine::virtual_time::VirtualClock;
use crate::engine::workers;
use crate::front::exit;
use crate::front::faults::{Fault, can_fail_contexts};
use crate::front::fork;
use crate::front::functions;
use crate::front::hooks;
use crate::front::log::CallRecord;
use crate::front::lookup;
use crate::machine::config::{Config, OrderCheck, Scheduler, Time};
use crate::machine::places::{self, PLACES};
use crate::machine::{MACHINES, Machine};
use crate::order::new_feed;
use crate::processes;

/// A software driver in this process, independent of all others.
///
/// A process can have 16 drivers at a time ([`SLOTS`](crate::SLOTS)). Six of them are reserved: only
/// a thread that already has a driver gets one of these. If there is no room, creating a driver
/// waits, and panics after two minutes.
///
/// Dropping a driver ends everything that belongs to it. From then on its functions return
/// `CUDA_ERROR_DEINITIALIZED`, and so do calls that are waiting or [blocked](Fault::block).
///
/// Drop the driver after the objects that were created with it: make it the last field of a
/// fixture.
///
/// ```
/// use cuda_events::{Context, Device, Event, EventFlags, Stream, StreamOptions};
/// use cuda_soft_driver::SoftDriver;
///
/// let soft = SoftDriver::new();
/// let context = Context::primary(Device::new(soft.driver(), 0)?)?;
/// let stream = Stream::new(&context, StreamOptions::new())?;
/// let event = Event::new(&context, EventFlags::empty())?;
/// event.record(&stream)?;
/// event.synchronize()?;
///
/// assert_eq!((soft.live().events, soft.live().streams), (1, 1));
/// drop((event, stream, context));
/// soft.assert_no_leaks();
/// # Ok::<(), cuda_events::Error>(())
/// ```
#[derive(Debug)]
pub struct SoftDriver {
    slot: usize,
    /// False for the shared library's driver, which is never dropped.
    pub(super) owned: bool,
    /// The clock of virtual time, if time is virtual.
    clock: Option<&'static VirtualClock>,
    /// Whether the order checker needs the values that the host reads.
    reports_reads: bool,
}

/// # The driver
impl SoftDriver {
    /// The first GPU of the NVIDIA driver. On a machine without a driver, or without a GPU, it is the
    /// first device of this one, so that an example runs everywhere.
    ///
    /// # Errors
    ///
    /// What [`Driver::load`] and [`Device::new`] return while `CUDA_EVENTS_DRIVER` is set: a wrong
    /// path there is never hidden.
    ///
    /// # Panics
    ///
    /// As [`driver`](Self::driver).
    pub fn gpu_or_soft(&self) -> cuda_events::Result<Device> {
        let names_a_driver =
            std::env::var_os("CUDA_EVENTS_DRIVER").is_some_and(|path| !path.is_empty());
        match Driver::load().and_then(|driver| Device::new(driver, 0)) {
            Err(_) if !names_a_driver => Device::new(self.driver(), 0),
            device => device,
        }
    }

    /// This driver as a [`Driver`] of `cuda-events`.
    ///
    /// # Panics
    ///
    /// If the settings remove an entry point that `cuda-events` requires; see
    /// [`try_driver`](Self::try_driver).
    pub fn driver(&self) -> Driver {
        match self.try_driver(&LoadOptions::new()) {
            Ok(driver) => driver,
            Err(error) => {
                panic!("cuda-events cannot use this software driver: {error}")
            }
        }
    }

    /// This driver as a [`Driver`] of `cuda-events`, with these options.
    ///
    /// # Errors
    ///
    /// Those of [`Driver::from_resolver`]: the version or the settings lack a required entry point.
    pub fn try_driver(&self, options: &LoadOptions) -> cuda_events::Result<Driver> {
        // SAFETY: the addresses are those of functions that this crate compiles from the types of
        // the very list that `cuda-events` resolves; they are part of the program and keep the
        // driver's contracts.
        let driver = unsafe { Driver::from_resolver(&mut |name| self.resolve(name), options) }?;
        let driver = self.clock.map_or(driver, |clock| driver.with_clock(clock));
        if !self.reports_reads {
            return Ok(driver);
        }
        let (machine, epoch) = (self.machine(), self.machine().epoch());
        let saw = move |address, value| accesses::read(machine, epoch, address, value);
        // As the driver's table, it is never freed.
        Ok(driver.with_host_reads(Box::leak(Box::new(saw))))
    }

    /// The address of an exported function, as `dlsym` would return it: `cuEventRecord`,
    /// `cuEventRecord_ptsz`. NULL if a driver of this version does not export the name.
    ///
    /// The addresses stay valid for the whole process. After this value is dropped, the functions
    /// return `CUDA_ERROR_DEINITIALIZED`.
    pub fn resolve(&self, name: &CStr) -> *mut c_void {
        functions::resolve(self.machine(), name.to_bytes())
    }
}

/// # Reports
impl SoftDriver {
    /// The number of calls so far, successful or not. Look-ups of functions do not count.
    pub fn calls(&self) -> u64 {
        self.machine().calls()
    }

    /// The latest calls, in the order in which they ended. [`Builder::log`](crate::Builder::log)
    /// sets their number.
    ///
    /// ```
    /// use cuda_events::{Device};
    /// use cuda_soft_driver::SoftDriver;
    ///
    /// let soft = SoftDriver::builder().log(100).build();
    /// let driver = soft.driver();
    /// soft.clear_log();
    /// Device::count(driver)?;
    /// let functions: Vec<_> = soft.log().iter().map(|call| call.function).collect();
    /// assert_eq!(functions, ["cuInit", "cuDeviceGetCount"]);
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    pub fn log(&self) -> Vec<CallRecord> {
        hooks::of(self.machine()).control().log.records()
    }

    /// Removes all calls from the log.
    pub fn clear_log(&self) {
        hooks::of(self.machine()).control().log.clear();
    }

    /// The counts of live objects.
    pub fn live(&self) -> Live {
        report::count(&self.machine().lock())
    }

    /// The live objects as text: the count of each kind, and the calls that created the first few.
    ///
    /// With a call [log](crate::Builder::log), the text has the names of these calls.
    pub fn leak_report(&self) -> String {
        let (live, which) = report::look(self.machine());
        format!("{live}{which}")
    }

    /// Panics if an object is still alive, or was destroyed only with its context (see
    /// [`Live::lost`]).
    ///
    /// # Panics
    ///
    /// If there is any such object. The message is the [report](Self::leak_report).
    #[track_caller]
    pub fn assert_no_leaks(&self) {
        let (live, which) = report::look(self.machine());
        assert!(live.is_empty(), "still alive on the software driver: {live}{which}");
    }

    /// The misuses so far: calls that are undefined on a real driver, and [forbidden signals of
    /// external semaphores](crate::ExternalSemaphore#misuse). The list is empty unless
    /// [`OnMisuse::Error`](crate::OnMisuse::Error) is set.
    ///
    /// ```
    /// use cuda_events::{Context, Device, Event, EventFlags};
    /// use cuda_soft_driver::{OnMisuse, SoftDriver};
    ///
    /// let soft = SoftDriver::builder().on_misuse(OnMisuse::Error).build();
    /// let driver = soft.driver();
    /// let context = Context::primary(Device::new(driver, 0)?)?;
    /// let event = Event::new(&context, EventFlags::empty())?.into_raw();
    /// let destroy = driver.symbols().cuEventDestroy_v2;
    /// // SAFETY: this driver detects destroyed handles.
    /// let codes = unsafe { (destroy(event), destroy(event)) };
    /// assert!(codes.0 != codes.1 && soft.misuses().len() == 1);
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    pub fn misuses(&self) -> Vec<String> {
        self.machine().lock().misuses.reports()
    }

    /// The deadlocks so far, as text. Each text names the waiting streams, their channels, the
    /// values for which they wait, and the calls that submitted the waits.
    ///
    /// [`OnDeadlock`](crate::OnDeadlock) defines a deadlock.
    pub fn deadlocks(&self) -> Vec<String> {
        self.machine().lock().engine.values.deadlocks().to_vec()
    }

    /// What each stream with unfinished work waits for now, a text each: an event and the stream
    /// that records it, a value in memory and the call that submitted the wait, or the work that
    /// runs. Look here when a program hangs.
    ///
    /// ```
    /// use cuda_events::{Context, Device, EventFlags, Stream, StreamOptions};
    /// use cuda_soft_driver::SoftDriver;
    ///
    /// let soft = SoftDriver::new();
    /// let context = Context::primary(Device::new(soft.driver(), 0)?)?;
    /// let stream = || Stream::new(&context, StreamOptions::new());
    /// let (forward, copies) = (stream()?, stream()?);
    /// let peer = cuda_timelines::HostTimeline::new(&context)?;
    /// peer.wait_ahead(&forward, 1)?;
    /// let ready = forward.record_event(EventFlags::empty())?;
    /// copies.wait_event(&ready)?;
    ///
    /// let pending = soft.pending();
    /// assert!(pending[0].contains(" waits for at least 1 at 0x"));
    /// assert!(pending[0].contains(": cuStreamWaitValue64_v2, call "));
    /// assert!(pending[1].contains(" waits for an event that stream 0x"));
    /// peer.signal()?;
    /// copies.synchronize()?;
    /// assert!(soft.pending().is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn pending(&self) -> Vec<String> {
        let state = self.machine().lock();
        pending::describe(&state.engine, &state.streams)
    }

    /// The findings of the [order checker](crate::OrderCheck) so far. A finding describes two
    /// accesses to the same bytes that have no order. `Display` gives the text.
    ///
    /// The list has the first thousand findings. It leaves out those that the setting
    /// [`order_suppress`](crate::Builder::order_suppress) covers.
    ///
    /// Work behind a host function that still runs is judged when the function has ended, as the
    /// function may order it: so look after the streams were synchronized. Kernels that do not
    /// declare their accesses are not judged; the summary at the end names them.
    ///
    /// [`hand_over`](Self::hand_over) has an example.
    pub fn order_findings(&self) -> Vec<OrderReport> {
        let mut state = self.machine().lock();
        state.feed(|feed, _| feed.observer().findings.errors().to_vec()).unwrap_or_default()
    }

    /// The warnings of the order checker so far, if [some are
    /// enabled](crate::Builder::order_warnings). `Display` gives the text.
    ///
    /// The list has the first thousand warnings.
    pub fn order_warnings(&self) -> Vec<OrderWarning> {
        let mut state = self.machine().lock();
        state.feed(|feed, _| feed.observer().findings.warnings().to_vec()).unwrap_or_default()
    }
}

/// # Faults
impl SoftDriver {
    /// Makes calls fail from now on.
    ///
    /// [`Fault`] has an example.
    ///
    /// # Panics
    ///
    /// If the fault can never strike, or contradicts itself: [`Fault::on`] has the list.
    #[track_caller]
    pub fn inject(&self, fault: Fault) {
        // A closure would be blamed itself, and not the caller.
        let fault = match fault.checked() {
            Ok(fault) => fault,
            Err(what) => panic!("the fault is not valid: {what}"),
        };
        let hooks = hooks::of(self.machine());
        let mut control = hooks.control();
        control.faults.add(fault);
        hooks.faults_changed(self.machine(), &control);
    }

    /// The number of times that a fault has struck.
    ///
    /// [`Fault`] has an example.
    pub fn injected(&self) -> u64 {
        hooks::of(self.machine()).control().faults.struck
    }

    /// Removes all faults, and lets blocked calls go on.
    ///
    /// [`Fault`] has an example.
    pub fn clear_faults(&self) {
        let hooks = hooks::of(self.machine());
        let mut control = hooks.control();
        control.faults.clear();
        hooks.faults_changed(self.machine(), &control);
        drop(control);
        hooks.release();
    }

    /// The number of calls that [`Fault::block`] blocks now.
    ///
    /// [`Fault`] has an example.
    pub fn blocked(&self) -> usize {
        hooks::of(self.machine()).control().faults.blocked
    }

    /// Lets the calls that [`Fault::block`] blocks go on, and returns their number.
    ///
    /// [`Fault`] has an example.
    pub fn release(&self) -> usize {
        hooks::of(self.machine()).release()
    }

    /// Makes all contexts fail, as after a kernel that trapped.
    ///
    /// The pending work of their streams is skipped, and all calls on them return `code` from now
    /// on. Like a real driver, this driver does not recover.
    ///
    /// # Panics
    ///
    /// If the code is `CUDA_SUCCESS` or `CUDA_ERROR_NOT_READY`: no context fails with these.
    #[track_caller]
    pub fn fail_contexts(&self, code: CUresult) {
        assert!(can_fail_contexts(code), "a context cannot fail with the code {}", code.0);
        let machine = self.machine();
        let mut state = machine.lock();
        let contexts = state.contexts.indices(|_| true);
        for context in contexts {
            state.running().fail(context, code);
        }
    }

    /// Begins or ends a simulated fork. While it is on, every call returns what it returns in a
    /// forked child of a process that has used the driver.
    ///
    /// ```
    /// use cuda_events::{Device};
    /// use cuda_soft_driver::SoftDriver;
    ///
    /// let soft = SoftDriver::new();
    /// let device = Device::new(soft.driver(), 0)?;
    /// soft.pretend_forked(true);
    /// assert!(device.name().is_err());
    /// soft.pretend_forked(false);
    /// assert!(device.name().is_ok());
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    pub fn pretend_forked(&self, on: bool) {
        self.machine().switches.pretend_forked(on);
    }

    /// Makes every call return `CUDA_ERROR_DEINITIALIZED` from now on, as while a process ends.
    pub fn shut_down(&self) {
        self.machine().switches.shut_down(true);
    }
}

/// # Time and host functions
impl SoftDriver {
    /// Advances [virtual time](crate::Time::Virtual).
    ///
    /// ```
    /// use cuda_events::{Context, Device, Event, EventFlags, Stream, StreamOptions};
    /// use cuda_soft_driver::{SoftDriver, Time};
    /// use std::time::Duration;
    ///
    /// let soft = SoftDriver::builder().time(Time::Virtual).build();
    /// let context = Context::primary(Device::new(soft.driver(), 0)?)?;
    /// let stream = Stream::new(&context, StreamOptions::new())?;
    /// let event = Event::new(&context, EventFlags::empty())?;
    /// soft.busy(&stream, Duration::from_secs(7200));
    /// event.record(&stream)?;
    /// soft.advance(Duration::from_secs(7199));
    /// assert!(event.query()?.is_pending());
    /// soft.advance(Duration::from_secs(1));
    /// assert!(event.query()?.is_done());
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If the driver uses [real time](crate::Time::Real), which moves by itself: a test that
    /// advances it would test nothing.
    #[track_caller]
    pub fn advance(&self, by: Duration) {
        let moved = try_advance(self, by);
        assert!(moved, "real time cannot be advanced: build the driver with Time::Virtual");
    }

    /// Stops the running of host functions, or resumes it.
    ///
    /// Functions that already run are not stopped. A call that waits for a stream with stopped
    /// functions blocks. So does dropping the last share of the context.
    ///
    /// ```
    /// use cuda_events::{Context, Device, Event, EventFlags, Stream, StreamOptions};
    /// use cuda_soft_driver::SoftDriver;
    ///
    /// let soft = SoftDriver::new();
    /// let context = Context::primary(Device::new(soft.driver(), 0)?)?;
    /// let stream = Stream::new(&context, StreamOptions::new())?;
    /// let event = Event::new(&context, EventFlags::empty())?;
    /// soft.hold_host_functions(true);
    /// stream.launch_host_function(|| ())?;
    /// event.record(&stream)?;
    /// assert!(event.query()?.is_pending());
    /// soft.hold_host_functions(false);
    /// event.synchronize()?;
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    pub fn hold_host_functions(&self, hold: bool) {
        self.machine().hold_host_functions(hold);
    }

    pub(crate) fn machine(&self) -> &'static Machine {
        &MACHINES[self.slot]
    }

    /// The number of calls that now wait for work in order to end a context or memory.
    #[doc(hidden)]
    pub fn waiting_for_work(&self) -> usize {
        self.machine().lock().engine.waiters.for_idle
    }
}

pub(super) fn take(config: Config, faults: Vec<Fault>) -> SoftDriver {
    let slot = places::take();
    let is_virtual = config.work.time == Time::Virtual;
    let reports_reads =
        config.order.check != OrderCheck::Off && config.order.host == HostOrder::Reported;
    let mut driver = SoftDriver { slot, owned: true, clock: None, reports_reads };
    fork::whole(|| start(&driver, config, faults));
    if is_virtual {
        let machine = driver.machine();
        // A driver is never freed, and neither is what it names.
        driver.clock = Some(Box::leak(Box::new(VirtualClock::new(machine, machine.epoch()))));
    }
    driver
}

fn start(driver: &SoftDriver, config: Config, faults: Vec<Fault>) {
    // A child may need them, and nobody there ends what another thread has begun.
    hooks::prepare();
    lookup::prepare();
    let machine = driver.machine();
    hooks::of(driver.machine()).start(machine, &config, faults);
    let mut state = machine.lock();
    machine.reset(&mut state);
    machine.restart_calls();
    state.engine.start(&config, Box::new(|wait| workers::listen(machine, wait)));
    state.misuses.start(config.on_misuse);
    if config.work.prints_seed {
        config.work.scheduler.print();
    }
    if let Scheduler::Seeded(_) = config.work.scheduler {
        // Without the thread it works all the same, as long as the program makes calls.
        let _ = state.engine.threads.ensure_ticker(machine);
    }
    state.feed = new_feed(&config);
    if state.feed.is_some() && config.order.exitcode != 0 {
        exit::watch();
    }
    state.config = config;
    state.life.taken = true;
}

/// What is printed at the end: leaks, and the summary of the order checker.
pub(super) fn print_the_end(driver: &SoftDriver) {
    if driver.machine().switches.forked() {
        return;
    }
    driver.machine().lock().feed(|feed, _| feed.observer_mut().summary());
    if driver.machine().lock().config.log.report_leaks && !driver.live().is_empty() {
        let text = format!("still alive: {}", driver.leak_report());
        let log = driver.machine().lock().config.log.leaks_log.clone();
        let written = log.map(|path| Sink::file(&path).map(|mut file| file.write(&text)));
        if !matches!(written, Some(Ok(()))) {
            crate::say!("{text}");
        }
    }
}

/// Moves virtual time; whether time is virtual.
pub(super) fn try_advance(driver: &SoftDriver, by: Duration) -> bool {
    let mut state = driver.machine().lock();
    let is_virtual = state.engine.clock.is_virtual();
    if is_virtual {
        let by = u64::try_from(by.as_nanos()).unwrap_or(u64::MAX);
        let until = state.engine.clock.now().saturating_add(by);
        state.running().pass_time_to(until);
    }
    is_virtual
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
        print_the_end(self);
        let mut state = machine.lock();
        if let Some(clock) = self.clock {
            clock.end(state.engine.clock.now());
        }
        state.life.stopping = true;
        let threads = state.engine.abandon();
        machine.wake.all();
        drop(state);
        // Before anything is waited for: a host function may be in a call that is blocked.
        hooks::of(self.machine()).release();
        state = machine.lock();
        let until = Instant::now() + PATIENCE;
        while state.engine.has_threads_inside() && Instant::now() < until {
            drop(state);
            std::thread::sleep(Duration::from_millis(1));
            state = machine.lock();
        }
        let stuck = state.engine.jobs.are_under_way();
        // Under the machine's lock, so that a release counts either as one of the living driver or
        // as a late one.
        PLACES.dropped(self.slot, state.held());
        machine.reset(&mut state);
        drop(state);
        hooks::of(self.machine()).end(machine);
        processes::tidy_up();
        places::count_here(-1);
        if stuck {
            // The slot stays taken: whatever that function does later, it does to nobody else's
            // driver.
            crate::say!("a host function did not return; its software driver is abandoned");
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
    use crate::machine::config::OnMisuse;

    /// Measured: the driver keeps what is destroyed in a failed context, and its release frees it.
    /// The leak report counts the objects that the program destroyed neither before nor after the
    /// failure.
    #[test]
    fn what_is_destroyed_in_a_failed_context() {
        let config = Config { on_misuse: OnMisuse::Error, ..Config::DEFAULT };
        let soft = take(config, Vec::new());
        let symbols = *soft.driver().symbols();
        let kept = || {
            let state = soft.machine().lock();
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
