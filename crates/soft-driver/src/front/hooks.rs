//! The slow path of a call, on a machine with a switch on: log, faults, latency, special answers,
//! seeded steps.

use core::time::Duration;
use std::sync::{Condvar, LazyLock, Mutex, MutexGuard};
use std::time::Instant;

use crate::abi::*;
use crate::context::primary::released;
use crate::front::answers::{given_back, special};
use crate::front::arguments::Arguments;
use crate::front::export::Export;
use crate::front::exports::{EXPORTS, Id};
use crate::front::faults::{Death, Fault, Faults, Verdict, kill_this_process};
use crate::front::log::Log;
use crate::machine::Machine;
use crate::machine::call_frame::{CallFrame, Words};
use crate::machine::config::{Config, Scheduler, Time};
use crate::machine::handles::Kind;
use crate::machine::places::SLOTS;
use crate::machine::switches::{FAULTS, LATENCY, LOG, SEEDED, VIRTUAL};
use crate::sync::{lock, wait};

/// The settings that the switches of a machine turn on: its log, faults and scheduler.
pub(crate) struct Hooks {
    control: Mutex<Control>,
    released: Condvar,
}

/// The hooks of all machines, by slot.
static HOOKS: [Hooks; SLOTS] = [const { Hooks::new() }; SLOTS];

/// The hooks of a machine.
pub(crate) fn of(machine: &Machine) -> &'static Hooks {
    &HOOKS[machine.slot]
}

/// What the log and the faults need; a lock of its own, so that they work whatever the machine is
/// doing.
pub(crate) struct Control {
    pub(crate) log: Log,
    pub(crate) faults: Faults,
    latency: Duration,
}

impl Hooks {
    const fn new() -> Self {
        Self {
            control: Mutex::new(Control {
                log: Log::new(),
                faults: Faults::new(),
                latency: Duration::ZERO,
            }),
            released: Condvar::new(),
        }
    }

    pub(crate) fn control(&self) -> MutexGuard<'_, Control> {
        lock(&self.control)
    }

    /// Looks again at whether there are faults.
    pub(crate) fn faults_changed(&self, machine: &Machine, control: &Control) {
        machine.switches.set(FAULTS, !control.faults.is_empty());
    }

    /// Lets blocked calls go on.
    pub(crate) fn release(&self) -> usize {
        let mut control = self.control();
        control.faults.releases += 1;
        self.released.notify_all();
        control.faults.blocked
    }

    /// The driver was dropped: blocked calls go on, and find that it is gone.
    pub(crate) fn end(&self, machine: &Machine) {
        self.start(machine, &Config::DEFAULT, Vec::new());
        self.released.notify_all();
    }

    /// For a new owner of the machine, or none.
    pub(crate) fn start(&self, machine: &Machine, config: &Config, faults: Vec<Fault>) {
        let mut control = self.control();
        control.faults = Faults::new();
        control.log.start(config.log.calls, config.log.lookups);
        control.latency = config.work.latency;
        for fault in faults {
            control.faults.add(fault);
        }
        let switches = &machine.switches;
        switches.clear();
        switches.set(LOG, config.log.calls > 0);
        switches.set(LATENCY, !config.work.latency.is_zero());
        switches.set(VIRTUAL, config.work.time == Time::Virtual);
        switches.set(SEEDED, !matches!(config.work.scheduler, Scheduler::Prompt));
        self.faults_changed(machine, &control);
    }
}

/// A call on a machine that has some switch on.
#[cold]
pub(crate) fn hooked(call: &CallFrame, arguments: &dyn Arguments) -> CUresult {
    let (hooks, switches) = (of(call.machine), &call.machine.switches);
    let began = Instant::now();
    let words = arguments.words();
    if switches.has(VIRTUAL) {
        call.machine.note_call(call.epoch, is_question(call), is_neutral(call));
    }
    if switches.has(LATENCY) {
        delay(hooks.control().latency);
    }
    let verdict = if switches.has(FAULTS) { judge(call) } else { Verdict::default() };
    if verdict.kill == Some(Death::Before) {
        kill_this_process();
    }
    // What it is about may be gone after the work.
    let failing = verdict.fails_context.and_then(|code| Some((context_of(call, &words)?, code)));
    let mut ran = false;
    // The work of this import takes the program's descriptor, and a program that gets an
    // error closes it: that number would be closed twice, the second time perhaps as another
    // thread's file. No program can see that coming, so there is nothing to test by it.
    // Documented: the descriptor is the driver's after a success only.
    let takes_over = call.id() == Id::cuImportExternalSemaphore;
    let instead = verdict.instead.or(verdict.after.filter(|_| takes_over));
    let result = match special(call, &words).or(instead) {
        Some(code) => {
            given_back(call, &words);
            code
        }
        None => {
            let mut code = arguments.run(call);
            if code == NOT_READY && switches.has(VIRTUAL) && is_question(call) {
                let question = words.0[0] ^ (u64::from(call.id().0) << 48);
                if call.machine.repeated(call.epoch, question) {
                    code = arguments.run(call);
                }
            }
            ran = code == SUCCESS;
            let returned = verdict.after.unwrap_or(code);
            if call.id() == Id::cuDevicePrimaryCtxRetain && code == SUCCESS && returned != SUCCESS {
                // A program that gets an error releases nothing.
                released(call, words.0[1] as usize, false);
            }
            returned
        }
    };
    if verdict.kill == Some(Death::After) {
        kill_this_process();
    }
    if verdict.poison {
        arguments.poison();
    }
    if let Some((context, code)) = failing {
        fail(call, context, code);
    }
    if switches.has(SEEDED) {
        call.machine.pump_some(call);
    }
    if switches.has(LOG) && call.is_current() {
        let given = if result == SUCCESS && ran && makes(call) { arguments.given() } else { None };
        hooks.control().log.add(call, words, (result, given), began, verdict.injected());
    }
    result
}

/// Whether it asks whether work is done.
fn is_question(call: &CallFrame) -> bool {
    matches!(call.id(), Id::cuEventQuery | Id::cuStreamQuery | Id::cuStreamQuery_ptsz)
}

/// Whether a loop that waits may make it beside its questions.
fn is_neutral(call: &CallFrame) -> bool {
    call.name().starts_with("cuCtx") || call.id() == Id::cuThreadExchangeStreamCaptureMode
}

/// The context that a call is about: that of the first stream, event or context among its
/// arguments, otherwise the calling thread's.
fn context_of(call: &CallFrame, words: &Words) -> Option<u32> {
    let state = call.machine.lock();
    let named = |word: u64| match Kind::of(word)? {
        Kind::Event => Some(state.events[state.events.find(word).ok()?].context),
        Kind::Stream => Some(state.streams[state.streams.find(word).ok()?].context),
        Kind::Context => state.contexts.find(word).ok(),
        _ => None,
    };
    words.0[..words.1].iter().find_map(|word| named(*word)).or_else(|| state.top(call))
}

/// Has a context fail because of a call.
fn fail(call: &CallFrame, context: u32, code: CUresult) {
    let mut state = call.machine.lock();
    if state.life.epoch == call.epoch {
        state.running().fail(context, code);
    }
}

/// Whether a call gives the program a handle or an address, in its first out-parameter of that
/// size.
fn makes(call: &CallFrame) -> bool {
    MAKES[call.id().place()]
}

/// By the place of the name in the list.
static MAKES: LazyLock<Vec<bool>> = LazyLock::new(|| {
    const WORDS: [&str; 9] = [
        "Create",
        "Retain",
        "Open",
        "Instantiate",
        "EndCapture",
        "GraphAdd",
        "Clone",
        "Alloc",
        "Import",
    ];
    let makes = |export: &Export| WORDS.iter().any(|word| export.name.contains(word));
    EXPORTS.iter().map(makes).collect()
});

/// Makes the list of those, which the start of a driver does.
pub(crate) fn prepare() {
    LazyLock::force(&MAKES);
}

/// Asks the faults, and blocks if one says so.
fn judge(call: &CallFrame) -> Verdict {
    let hooks = of(call.machine);
    let mut control = hooks.control();
    let verdict = control.faults.judge(call);
    if verdict.block && !call.machine.lock().life.stopping {
        let released = control.faults.releases;
        control.faults.blocked += 1;
        while control.faults.releases == released && call.is_current() {
            control = wait(&hooks.released, control);
        }
        if !call.is_current() {
            return Verdict::default();
        }
        if call.machine.lock().life.stopping {
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
