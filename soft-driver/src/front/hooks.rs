//! What a machine can do to a call beside its work: the call log, faults, latency, and the answers in special times.

use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::abi::*;
use crate::front::entry::{self, Call, Words};
use crate::front::exports::Id;
use crate::front::faults::{Faults, Verdict};
use crate::front::log::Log;
use crate::model::config::{Config, Scheduler};
use crate::model::engine::strict;

/// The process was forked since the machine was initialised.
pub(crate) const FORKED: u32 = 1;
/// The program asked for the answers of a forked child.
const PRETEND_FORKED: u32 = 128;
/// A host function runs.
const IN_HOST_FUNCTIONS: u32 = 2;
/// Calls are logged.
const LOG: u32 = 4;
/// There are faults.
const FAULTS: u32 = 8;
/// Calls take longer.
const LATENCY: u32 = 16;
/// The driver was shut down, as at the end of a process.
const SHUT_DOWN: u32 = 32;
/// Work is done in steps between calls.
const SEEDED: u32 = 64;

/// Switches that the fast path looks at with one load, and what is behind them.
pub(crate) struct Hooks {
    flags: AtomicU32,
    control: Mutex<Control>,
    released: Condvar,
}

/// What the log and the faults need; a lock of its own, so that they work whatever the machine is doing.
pub(crate) struct Control {
    pub(crate) log: Log,
    pub(crate) faults: Faults,
    latency: Duration,
}

impl Hooks {
    pub(crate) const fn new() -> Self {
        Self {
            flags: AtomicU32::new(0),
            control: Mutex::new(Control { log: Log::new(), faults: Faults::new(), latency: Duration::ZERO }),
            released: Condvar::new(),
        }
    }

    pub(crate) fn plain(&self) -> bool {
        self.flags.load(Ordering::Relaxed) == 0
    }

    pub(crate) fn set(&self, flag: u32, on: bool) {
        if on {
            self.flags.fetch_or(flag, Ordering::Relaxed);
        } else {
            self.flags.fetch_and(!flag, Ordering::Relaxed);
        }
    }

    fn has(&self, flag: u32) -> bool {
        self.flags.load(Ordering::Relaxed) & flag != 0
    }

    pub(crate) fn control(&self) -> MutexGuard<'_, Control> {
        self.control.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Said by the thread of the host functions around each one.
    pub(crate) fn host_function(&self, running: bool) {
        self.set(IN_HOST_FUNCTIONS, running);
    }

    /// Whether this is a forked child of the process that initialised the driver.
    pub(crate) fn forked(&self) -> bool {
        self.has(FORKED)
    }

    pub(crate) fn in_host_functions(&self) -> bool {
        self.has(IN_HOST_FUNCTIONS)
    }

    pub(crate) fn pretend_forked(&self, on: bool) {
        self.set(PRETEND_FORKED, on);
    }

    pub(crate) fn shut_down(&self, on: bool) {
        self.set(SHUT_DOWN, on);
    }

    /// Looks again at whether there are faults.
    pub(crate) fn faults_changed(&self, control: &Control) {
        self.set(FAULTS, !control.faults.is_empty());
    }

    /// Lets blocked calls go on.
    pub(crate) fn release(&self) -> usize {
        let mut control = self.control();
        control.faults.releases += 1;
        self.released.notify_all();
        control.faults.blocked
    }

    /// The driver was dropped: blocked calls go on, and find that it is gone.
    pub(crate) fn end(&self) {
        self.start(&Config::DEFAULT);
        self.released.notify_all();
    }

    /// For a new owner of the machine, or none.
    pub(crate) fn start(&self, config: &Config) {
        let mut control = self.control();
        control.faults = Faults::new();
        control.log.start(config.log, config.log_lookups);
        control.latency = config.latency;
        for fault in &config.faults {
            control.faults.add(fault.clone());
        }
        self.flags.store(0, Ordering::Relaxed);
        self.set(LOG, config.log > 0);
        self.set(LATENCY, !config.latency.is_zero());
        self.set(SEEDED, !matches!(config.scheduler, Scheduler::Prompt));
        self.faults_changed(&control);
    }
}

/// A call on a machine that has some switch on.
#[cold]
pub(crate) fn hooked(
    call: &Call,
    words: impl FnOnce() -> Words,
    poison: impl FnOnce(),
    given: impl FnOnce() -> Option<u64>,
    body: impl FnOnce() -> CUresult,
) -> CUresult {
    let hooks = &call.machine.hooks;
    let began = Instant::now();
    let words = words();
    if hooks.has(LATENCY) {
        delay(hooks.control().latency);
    }
    let verdict = if hooks.has(FAULTS) { judge(call) } else { Verdict::default() };
    // What it is about may be gone after the work.
    let failing = verdict.fails_context.and_then(|code| Some((call.machine.context_of(call, &words)?, code)));
    let mut ran = false;
    let result = match special(call, &words).or(verdict.instead) {
        Some(code) => {
            entry::given_back(call, &words);
            code
        }
        None => {
            let code = body();
            ran = code == SUCCESS;
            let told = verdict.after.unwrap_or(code);
            if call.id == Id::cuDevicePrimaryCtxRetain && code == SUCCESS && told != SUCCESS {
                // Who is told that it failed releases nothing.
                call.machine.released(call, words.0[1] as usize, false);
            }
            told
        }
    };
    if verdict.poison {
        poison();
    }
    if let Some((context, code)) = failing {
        call.machine.fail(call, context, code);
    }
    if hooks.has(SEEDED) {
        call.machine.pump_some(call);
    }
    if hooks.has(LOG) && call.is_current() {
        let given = if result == SUCCESS && ran && entry::makes(call.id) { given() } else { None };
        hooks.control().log.add(call, words, (result, given), began, verdict.injected());
    }
    result
}

/// What is answered in special times, whatever the call is for.
fn special(call: &Call, words: &Words) -> Option<CUresult> {
    let hooks = &call.machine.hooks;
    if hooks.has(SHUT_DOWN) || !call.is_current() {
        return Some(DEINITIALIZED);
    }
    if hooks.has(FORKED | PRETEND_FORKED)
        && let Some(code) = entry::forked_answer(call, words)
    {
        return Some(code);
    }
    let refused = || strict(&call.machine.lock()) || entry::refused_in_host_function(call.id);
    (call.in_host_function() && refused()).then_some(NOT_PERMITTED)
}

/// Asks the faults, and blocks if one says so.
fn judge(call: &Call) -> Verdict {
    let hooks = &call.machine.hooks;
    let mut control = hooks.control();
    let verdict = control.faults.judge(call);
    if verdict.block && !call.machine.lock().stopping {
        let released = control.faults.releases;
        control.faults.blocked += 1;
        while control.faults.releases == released && call.is_current() {
            control = hooks.released.wait(control).unwrap_or_else(PoisonError::into_inner);
        }
        if !call.is_current() {
            return Verdict::default();
        }
        if call.machine.lock().stopping {
            return Verdict { instead: Some(DEINITIALIZED), ..Verdict::default() };
        }
        control.faults.blocked = control.faults.blocked.saturating_sub(1);
    }
    verdict
}

/// Lets time pass: without sleeping where that would take much longer.
fn delay(latency: Duration) {
    if latency > Duration::from_millis(1) {
        std::thread::sleep(latency);
    } else {
        let until = Instant::now() + latency;
        while Instant::now() < until {
            core::hint::spin_loop();
        }
    }
}
