//! Faults: calls that fail on purpose.

use std::collections::BTreeSet;

use cuda_order_check_engine::findings::matches;

use crate::abi::{CUresult, NOT_READY, SUCCESS};
use crate::errors;
use crate::front::exports::EXPORTS;
use crate::machine::call_frame::CallFrame;
use crate::random;
use crate::threads;

/// The settings of a fault in text, after its pattern.
const WORDS: &str = "`nth=3`, `every=2`, `chance=0.1` or `chance=0.1/7` with a seed, `code=2` or \
                     `code=CUDA_ERROR_OUT_OF_MEMORY`, `once`, `on` (from then on), `after`, \
                     `block`, `poison`, `context`, `kill`, `thread=NAME`";

/// When a fault strikes, counted in calls that match it.
#[derive(Clone, Copy, PartialEq, Debug)]
enum When {
    Always,
    Nth(u64),
    Every(u64),
    /// How often in a million calls, at random.
    Chance(u32),
}

/// A rule that makes calls fail, for [`SoftDriver::inject`](crate::SoftDriver::inject).
///
/// ```
/// use cuda_events::sys::CUresult;
/// use cuda_events::{Context, Device, Event, EventFlags, Stream, StreamOptions};
/// use cuda_soft_driver::{Fault, SoftDriver};
///
/// // For the tests of other processes: the process ends at its first export.
/// let dies = Fault::on("cuIpcGetEventHandle").kill();
/// let soft = SoftDriver::builder().fault(dies).build();
/// let context = Context::primary(Device::new(soft.driver(), 0)?)?;
/// let stream = Stream::new(&context, StreamOptions::new())?;
/// let event = Event::new(&context, EventFlags::empty())?;
///
/// // The first record fails, and the second one works.
/// soft.inject(Fault::on("cuEventRecord").once().answer(CUresult::CUDA_ERROR_OUT_OF_MEMORY));
/// let error = event.record(&stream).unwrap_err();
/// assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_OUT_OF_MEMORY));
/// event.record(&stream)?;
/// assert_eq!(soft.injected(), 1);
///
/// // Every second call fails after it has done its work, and leaves garbage in its results.
/// soft.inject(Fault::on("cuStreamQuery").every(2).after_the_work().poison());
/// assert!(stream.query().is_ok() && stream.query().is_err());
///
/// // In threads named `worker` calls fail at random, with the seed 7. After the first failure all
/// // calls of these threads fail. The text is the same fault.
/// soft.inject(Fault::on("cuEventQuery").probability(0.5, 7).from_then_on().in_thread("worker"));
/// soft.inject(Fault::from_text("cuEventQuery:chance=0.5/7:on:thread=worker")?);
/// assert!(event.query().is_ok());
///
/// // A call blocks until it is released.
/// soft.clear_faults();
/// soft.inject(Fault::on("cuEventSynchronize").block());
/// std::thread::scope(|scope| {
///     let waiting = scope.spawn(|| event.synchronize());
///     while soft.blocked() == 0 {
///         std::thread::yield_now();
///     }
///     assert!(!waiting.is_finished());
///     assert_eq!(soft.release(), 1);
///     waiting.join().unwrap()
/// })?;
///
/// // The third record fails, and its context with it.
/// let code = CUresult::CUDA_ERROR_LAUNCH_FAILED;
/// soft.inject(Fault::on("cuEventRecord").nth(3).answer(code).fails_context());
/// assert!(event.record(&stream).is_ok() && event.record(&stream).is_ok());
/// assert!(event.record(&stream).is_err_and(|error| error.is_sticky()));
/// assert!(stream.synchronize().is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a fault does nothing until it is injected"]
pub struct Fault {
    pattern: String,
    thread: Option<String>,
    when: When,
    code: Option<CUresult>,
    after: bool,
    block: bool,
    /// Whether the process ends at once.
    kill: bool,
    /// How often it may strike.
    limit: Option<u64>,
    persistent: bool,
    poison: bool,
    fails_context: bool,
    seen: u64,
    struck: u64,
    random: u64,
    /// The first error in its settings; `checked` returns it.
    wrong: Option<String>,
}

impl Fault {
    /// A fault of the functions whose exported names match `pattern`.
    ///
    /// The pattern is a name, in which `*` is a wildcard. `cuEventRecord` matches the plain
    /// function only; `cuEventRecord*` also matches its per-thread twin. By default the fault
    /// strikes at every call, and the call returns `CUDA_ERROR_UNKNOWN` and does no work.
    ///
    /// [`inject`](crate::SoftDriver::inject) and [`Builder::fault`](crate::Builder::fault) refuse a
    /// pattern that matches no export of any version. They also refuse a fault that cannot strike
    /// or is contradictory: a count of 0, a probability of zero, two conditions for when to strike,
    /// an empty thread name, `CUDA_SUCCESS` as the code, garbage or a failed context without a
    /// code.
    pub fn on(pattern: &str) -> Self {
        let fault = Self {
            pattern: pattern.to_owned(),
            thread: None,
            when: When::Always,
            code: None,
            after: false,
            block: false,
            kill: false,
            limit: None,
            persistent: false,
            poison: false,
            fails_context: false,
            seen: 0,
            struck: 0,
            random: 0,
            wrong: None,
        };
        let known = EXPORTS.iter().any(|export| matches(pattern, export.name));
        fault.refuse_unless(known, || {
            format!(
                "no entry point matches `{pattern}`: use an exported name like cuEventRecord_ptsz, \
                 with * as a wildcard"
            )
        })
    }

    fn refuse_unless(mut self, good: bool, what: impl FnOnce() -> String) -> Self {
        if !good && self.wrong.is_none() {
            self.wrong = Some(what());
        }
        self
    }

    /// The fault, or what is wrong with it. What depends on several of its words is looked at here,
    /// because they come in any order.
    pub(crate) fn checked(self) -> Result<Self, String> {
        let answers = self.code();
        let kills = self.kill;
        let says = self.code.is_some() || self.block || self.poison || self.fails_context;
        let (poison, fails_context) = (self.poison, self.fails_context);
        let checked = self
            .refuse_unless(!poison || answers.is_some(), || {
                "a fault with garbage needs a result code: a blocked call works after its release, \
                 and no driver returns success with garbage"
                    .to_owned()
            })
            .refuse_unless(!fails_context || answers.is_some(), || {
                "a fault that makes a context fail needs a result code: calls in the context \
                 return it from then on"
                    .to_owned()
            })
            .refuse_unless(!fails_context || answers.is_none_or(can_fail_contexts), || {
                "a context cannot fail with CUDA_ERROR_NOT_READY: nothing in it would ever be \
                 ready"
                    .to_owned()
            })
            .refuse_unless(!kills || !says, || {
                "a fault that kills the process cannot have code, block, poison or context: no \
                 caller is left to see it"
                    .to_owned()
            });
        match checked.wrong {
            Some(what) => Err(what),
            None => Ok(checked),
        }
    }

    /// Sets when it strikes, once.
    fn when(mut self, when: When) -> Self {
        let first = core::mem::replace(&mut self.when, when) == When::Always;
        self.refuse_unless(first, || {
            "a fault takes at most one of nth, every and chance".to_owned()
        })
    }

    fn one_limit(self) -> Self {
        let good = self.limit.is_none() || !self.persistent;
        self.refuse_unless(good, || {
            "a fault strikes either once or from then on, not both".to_owned()
        })
    }

    /// Strikes only at the n-th matching call, counted from 1 after the injection.
    pub fn nth(self, n: u64) -> Self {
        self.when(When::Nth(n)).refuse_unless(n > 0, || {
            "a fault at the 0th call never strikes: calls are counted from 1".to_owned()
        })
    }

    /// Strikes at every k-th matching call.
    pub fn every(self, k: u64) -> Self {
        self.when(When::Every(k)).refuse_unless(k > 0, || {
            "a fault at every 0th call never strikes: use 1 or more".to_owned()
        })
    }

    /// Strikes at each matching call with this probability, from 0.000001 to 1. The seed makes it
    /// repeatable.
    pub fn probability(mut self, probability: f64, seed: u64) -> Self {
        self.random = seed;
        let good = (1e-6..=1.0).contains(&probability);
        self.when(When::Chance((probability * 1e6).round() as u32)).refuse_unless(good, || {
            format!("a fault cannot strike with the probability {probability}: use 0.000001 to 1")
        })
    }

    /// Strikes at most once.
    pub fn once(mut self) -> Self {
        self.limit = Some(1);
        self.one_limit()
    }

    /// After the first strike, strikes at every matching call.
    pub fn from_then_on(mut self) -> Self {
        self.persistent = true;
        self.one_limit()
    }

    /// Strikes only in threads of this name.
    pub fn in_thread(mut self, name: &str) -> Self {
        self.thread = Some(name.to_owned());
        self.refuse_unless(!name.is_empty(), || {
            "a fault in a thread needs the thread's name".to_owned()
        })
    }

    /// Sets the code that the call returns. It must be an error.
    pub fn answer(mut self, code: CUresult) -> Self {
        self.code = Some(code);
        self.refuse_unless(code != SUCCESS, || {
            "a fault cannot return CUDA_SUCCESS: no driver returns success without the work and \
             its results"
                .to_owned()
        })
    }

    /// Does the work, and then returns the code.
    ///
    /// `cuImportExternalSemaphore` is an exception: it returns the code without doing the work. A
    /// driver takes the descriptor on success only, so the program closes the descriptor after an
    /// error. If the driver had taken it, both would close it.
    pub fn after_the_work(mut self) -> Self {
        self.after = true;
        self
    }

    /// Blocks the call until [`SoftDriver::release`](crate::SoftDriver::release). Then it works as
    /// usual, unless the fault has a code to [return](Self::answer).
    pub fn block(mut self) -> Self {
        self.block = true;
        self
    }

    /// Kills the process at the call, like `kill -9`: no thread cleans up.
    ///
    /// This happens before the call's work, or [after](Self::after_the_work) it. It is for tests of
    /// the other processes, and takes no code.
    pub fn kill(mut self) -> Self {
        self.kill = true;
        self
    }

    /// The code that it returns when it strikes, or none if the call does its work and returns its
    /// result.
    fn code(&self) -> Option<CUresult> {
        let holds = self.block && !self.after;
        let default = (!holds && !self.kill).then_some(CUresult::CUDA_ERROR_UNKNOWN);
        self.code.or(default)
    }

    /// Fills small out-parameters of a failing call with garbage. Without this setting a failing
    /// call leaves them unchanged. Arrays are never filled, because their length is unknown. A
    /// fault that [blocks](Self::block) must also have an [answer](Self::answer).
    pub fn poison(mut self) -> Self {
        self.poison = true;
        self
    }

    /// Makes a context fail with the code permanently: all later calls in it return the code.
    ///
    /// The other contexts go on. On a GPU, a kernel that traps fails all contexts of the process,
    /// as [`SoftDriver::fail_contexts`](crate::SoftDriver::fail_contexts) does.
    ///
    /// The context is the one that the call names, directly or by an event or a stream. If the call
    /// names none, it is the calling thread's current context. If none is current either, no
    /// context fails.
    pub fn fails_context(mut self) -> Self {
        self.fails_context = true;
        self
    }

    /// Parses a fault from text: the pattern, and then words separated by colons.
    ///
    /// The words are `nth=3`, `every=2`, `chance=0.1/7` (with its seed), `code=2` or
    /// `code=CUDA_ERROR_OUT_OF_MEMORY`, `once`, `on` (from then on), `after`, `block`, `poison`,
    /// `context`, `kill`, `thread=NAME`.
    ///
    /// # Errors
    ///
    /// One sentence about the first word that is unknown, set twice, or contradicts the others.
    pub fn from_text(text: &str) -> Result<Self, String> {
        let mut seen = BTreeSet::new();
        let mut words = text.split(':');
        let mut fault = Self::on(
            words.next().filter(|pattern| !pattern.is_empty()).ok_or("a fault needs a pattern")?,
        );
        for word in words {
            // What takes no value is one whole word.
            let (name, value) = word
                .split_once('=')
                .map_or((word, ""), |(name, value)| (&word[..=name.len()], value));
            let bad = || format!("`{word}` is not valid in the fault `{text}`: use {WORDS}");
            if !seen.insert(name) {
                return Err(format!("`{name}` is set twice in the fault `{text}`"));
            }
            fault = match name {
                "nth=" => fault.nth(value.parse().map_err(|_| bad())?),
                "every=" => fault.every(value.parse().map_err(|_| bad())?),
                "chance=" => {
                    let (chance, seed) = value.split_once('/').unwrap_or((value, "1"));
                    fault.probability(
                        chance.parse().map_err(|_| bad())?,
                        seed.parse().map_err(|_| bad())?,
                    )
                }
                "code=" => fault.answer(errors::parse(value)?),
                "once" => fault.once(),
                "on" => fault.from_then_on(),
                "after" => fault.after_the_work(),
                "block" => fault.block(),
                "poison" => fault.poison(),
                "context" => fault.fails_context(),
                "kill" => fault.kill(),
                "thread=" => fault.in_thread(value),
                _ => return Err(bad()),
            };
        }
        fault.checked()
    }

    /// Whether the fault strikes at this call.
    fn strikes(&mut self, call: &CallFrame) -> bool {
        if !matches(&self.pattern, call.name()) {
            return false;
        }
        if self.thread.as_ref().is_some_and(|name| *name != threads::name(threads::number())) {
            return false;
        }
        self.seen += 1;
        if self.limit.is_some_and(|limit| self.struck >= limit) {
            return false;
        }
        let strikes = self.strikes_by_count();
        self.struck += u64::from(strikes);
        strikes
    }

    /// Whether it strikes at a call that matches.
    fn strikes_by_count(&mut self) -> bool {
        (self.persistent && self.struck > 0)
            || match self.when {
                When::Always => true,
                When::Nth(n) => self.seen == n,
                When::Every(k) => self.seen.is_multiple_of(k),
                When::Chance(of_a_million) => {
                    random::next(&mut self.random) % 1_000_000 < u64::from(of_a_million)
                }
            }
    }
}

/// Whether a context can fail with this code. With success its calls would do nothing and report
/// nothing; with "not ready" waits would never end.
pub(crate) fn can_fail_contexts(code: CUresult) -> bool {
    code != SUCCESS && code != NOT_READY
}

/// What is to happen to a call.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Verdict {
    pub(crate) instead: Option<CUresult>,
    pub(crate) after: Option<CUresult>,
    pub(crate) block: bool,
    pub(crate) poison: bool,
    pub(crate) fails_context: Option<CUresult>,
    /// Whether the process ends, before the work or after it.
    pub(crate) kill: Option<Death>,
}

/// When a fault ends the process: before the call, or after it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Death {
    Before,
    After,
}

impl Verdict {
    pub(crate) fn injected(self) -> bool {
        self.instead.is_some() || self.after.is_some() || self.block || self.kill.is_some()
    }
}

/// Ends the process as `kill -9` does: no handler runs, and no other thread takes another step.
#[cfg(unix)]
pub(crate) fn kill_this_process() -> ! {
    // SAFETY: it has no preconditions.
    unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    // It has been sent, and ends this thread too.
    loop {
        std::thread::park();
    }
}

/// Ends the process as its task manager does: no handler runs.
#[cfg(windows)]
pub(crate) fn kill_this_process() -> ! {
    use windows_sys::Win32::System::Threading::{GetCurrentProcess, TerminateProcess};
    // SAFETY: the handle means this process, and needs no closing.
    unsafe { TerminateProcess(GetCurrentProcess(), 9) };
    std::process::abort()
}

/// Ends the process.
#[cfg(not(any(unix, windows)))]
pub(crate) fn kill_this_process() -> ! {
    std::process::abort()
}

/// The faults of a machine.
pub(crate) struct Faults {
    rules: Vec<Fault>,
    pub(crate) struck: u64,
    /// How often blocked calls were released.
    pub(crate) releases: u64,
    pub(crate) blocked: usize,
}

impl Faults {
    pub(crate) const fn new() -> Self {
        Self { rules: Vec::new(), struck: 0, releases: 0, blocked: 0 }
    }

    pub(crate) fn add(&mut self, fault: Fault) {
        self.rules.push(fault);
    }

    pub(crate) fn clear(&mut self) {
        self.rules.clear();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Looks at all rules, so that each counts its calls; the first that strikes decides.
    pub(crate) fn judge(&mut self, call: &CallFrame) -> Verdict {
        let mut verdict = Verdict::default();
        for rule in &mut self.rules {
            if !rule.strikes(call) || verdict.injected() {
                continue;
            }
            let code = rule.code();
            verdict = Verdict {
                instead: code.filter(|_| !rule.after),
                after: code.filter(|_| rule.after),
                block: rule.block,
                poison: rule.poison,
                fails_context: code.filter(|_| rule.fails_context),
                kill: rule.kill.then_some(if rule.after { Death::After } else { Death::Before }),
            };
            self.struck += 1;
        }
        verdict
    }
}

#[cfg(test)]
mod tests;
