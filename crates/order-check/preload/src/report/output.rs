//! The output of findings, and candidates that wait for a verdict.

use core::sync::atomic::{AtomicBool, Ordering};
use std::borrow::Cow;
use std::cell::Cell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use cuda_order_check_engine::feed::Observer;
use cuda_order_check_engine::findings::{Certainty, Findings, Sink, counted};
use cuda_order_check_engine::trace::Trace;
use cuda_order_check_engine::{AccessKind, Allocation, Backtrace, Finding, Report, Side, ThreadId};

use crate::call::thread;
use crate::code::Reason;
use crate::code::verdict::{Verdict, may_have_flags};
use crate::report::regions::place;
use crate::report::unsettled::{HELD_FOR, Unsettled, pair_of};
use crate::settings::{CLASSES, Kind, Settings, is_launch, is_of_kernel, is_read};

/// The threads of the process, and where findings go.
pub(crate) struct Output {
    pub(crate) settings: Settings,
    pub(crate) findings: Findings,
    /// How many of them were taken.
    taken: usize,
    /// Findings about launches, before they are judged.
    candidates: Vec<Report>,
    /// The pairs of calls that possibly need an order, and that were not reported.
    possible: Possible,
    /// Findings that wait for the stack of a launch.
    held: Vec<Held>,
    pub(crate) unsettled: Unsettled,
    /// The name of the call that began last.
    call: &'static str,
    /// What comes now was done by this thread, which goes on meanwhile.
    pub(crate) thread_of_host_function: Option<u64>,
    stacks: Stacks,
}

/// A finding that would not say where the program launches a kernel. The next launch of the kernel has
/// a stack, so if the pair comes again, that one is reported in place of this.
struct Held {
    report: Report,
    word: String,
    text: String,
    /// The functions and the streams of the two calls.
    pair: [String; 2],
    since: Instant,
}

/// How many findings are held.
const HELD: usize = 64;

/// Which calls get a stack. To take one is slow, so it is not done for launches: only for those
/// that are in a finding which waits for it.
struct Stacks {
    wanted: HashSet<String>,
    begin: Instant,
    /// The time that it took so far.
    spent: Cell<Duration>,
}

/// The begins of the names of calls that always get one.
const ALWAYS: [&str; 8] = [
    "cuMem",
    "cuStreamCreate",
    "cuStreamDestroy",
    "cuEventDestroy",
    "cuModuleGetGlobal",
    "cuLibraryGet",
    "cuExternalMemoryGet",
    "cuGraphicsResourceGet",
];

/// Whether launches of kernels always get one, too.
pub(crate) static LAUNCHES: AtomicBool = AtomicBool::new(false);

/// The begins of the names of calls that make an order.
const EVENTS: [&str; 2] = ["cuEventRecord", "cuStreamWaitEvent"];

/// Stacks take at most this time, and a twentieth of the program's.
const ALLOWANCE: Duration = Duration::from_secs(2);

/// The possible findings, for the summary.
#[derive(Default)]
struct Possible {
    count: u64,
    /// How often each kernel was possible for each reason.
    reasons: BTreeMap<(String, Reason), u64>,
    /// By the two places, how often they were possible.
    pairs: HashMap<[String; 2], u32>,
}

/// How many reasons the summary has, and how many are kept.
const SHOWN: usize = 8;
const REASONS: usize = 256;

/// How many pairs of places are kept that were possible, and how often each is judged: the next one may
/// be certain.
const PAIRS: usize = 4096;
pub(crate) const LOOKS: u32 = 16;

impl Stacks {
    #[inline]
    fn here(&self, call: &str) -> Option<Arc<dyn Backtrace>> {
        let of_launch = call.starts_with("cuLaunch");
        if of_launch && self.wanted.is_empty() && !LAUNCHES.load(Ordering::Relaxed) {
            return None;
        }
        self.taken(call, of_launch)
    }

    fn taken(&self, call: &str, of_launch: bool) -> Option<Arc<dyn Backtrace>> {
        let begins = |names: &[&str]| names.iter().any(|name| call.starts_with(name));
        // A finding that waits for a stack also says where an event was recorded.
        let is_wanted =
            || !self.wanted.is_empty() && (self.wanted.contains(call) || begins(&EVENTS));
        let is_launch = || LAUNCHES.load(Ordering::Relaxed) && of_launch;
        if !begins(&ALWAYS) && !is_wanted() && !is_launch() {
            return None;
        }
        let begin = Instant::now();
        if self.spent.get() > ALLOWANCE + (begin - self.begin) / 20 {
            return None;
        }
        let trace = Trace::here();
        self.spent.set(self.spent.get() + begin.elapsed());
        Some(Arc::new(trace))
    }
}

impl Observer for Output {
    fn thread(&self) -> ThreadId {
        ThreadId(self.thread_of_host_function.unwrap_or_else(thread))
    }

    fn thread_name(&self, id: ThreadId) -> String {
        let current = std::thread::current();
        let name = current.name().filter(|_| id.0 == thread());
        name.map_or_else(|| id.0.to_string(), str::to_owned)
    }

    fn backtrace(&self) -> Option<Arc<dyn Backtrace>> {
        if self.thread_of_host_function.is_some_and(|other| other != thread()) {
            return None;
        }
        let stack = if self.settings.stacks { self.stacks.here(self.call) } else { None };
        place(stack)
    }

    fn finding(&mut self, finding: Finding) {
        match finding {
            Finding::Report(report) if self.is_candidate(&report) => self.candidates.push(report),
            finding => self.report(finding, None),
        }
    }
}

impl Output {
    /// Whether the code of kernels decides what it means.
    fn is_candidate(&self, report: &Report) -> bool {
        [&report.first, &report.second].iter().any(|side| side.launch().is_some())
            || may_have_flags(report)
    }

    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            settings: settings.clone(),
            findings: Findings::new(Vec::new(), Vec::new()),
            taken: 0,
            candidates: Vec::new(),
            possible: Possible::default(),
            held: Vec::new(),
            unsettled: Unsettled::default(),
            call: "",
            thread_of_host_function: None,
            stacks: Stacks {
                wanted: HashSet::new(),
                begin: Instant::now(),
                spent: Cell::new(Duration::ZERO),
            },
        }
    }

    /// Opens the files.
    pub(crate) fn open(&mut self) {
        self.findings = findings(&self.settings);
    }

    /// A call with this name begins.
    pub(crate) fn begins(&mut self, call: &'static str) {
        self.call = call;
        if self.held.first().is_some_and(|oldest| oldest.since.elapsed() > HELD_FOR) {
            self.release_held();
        }
    }

    /// Reports the findings that wait for the stack of a launch.
    pub(crate) fn release_held(&mut self) {
        // If one of them comes again, it comes with its stack.
        for Held { report, word, text, .. } in std::mem::take(&mut self.held) {
            self.write(report, Some((&word, &text)));
        }
    }

    /// Holds a finding back whose launch has no stack. If the same two calls are held already, one of
    /// the two findings is enough.
    fn hold(&mut self, report: Report, certainty: Option<(&str, &str)>) -> Option<Report> {
        let pair = [&report.first, &report.second]
            .map(|side| format!("{}\n{}", side.call.name, side.agent));
        let lacks = |side: &Side| {
            let has = |trace: &Arc<dyn Backtrace>| {
                trace.outline().lines().any(|line| !line.starts_with("Region: "))
            };
            is_launch(side) && !side.call.backtrace.as_ref().is_some_and(has)
        };
        let lacks = [&report.first, &report.second].into_iter().any(lacks);
        let known = self.held.iter().position(|held| {
            let [one, two] = &held.pair;
            let [first, second] = &pair;
            [one, two] == [first, second] || [two, one] == [first, second]
        });
        match (known, lacks) {
            (Some(_), true) => None,
            (at, false) => {
                at.map(|at| self.held.remove(at));
                pair.iter().for_each(|side| self.unwant(side));
                Some(report)
            }
            (None, true) if self.settings.stacks && self.held.len() < HELD => {
                for side in &pair {
                    self.stacks.wanted.extend(name_of(side).map(str::to_owned));
                }
                let (word, text) = certainty.unwrap_or_default();
                let (word, text) = (word.to_owned(), text.to_owned());
                self.held.push(Held { report, word, text, pair, since: Instant::now() });
                None
            }
            (None, _) => Some(report),
        }
    }

    /// A side of a pair needs no stack any more, unless another pair needs it.
    fn unwant(&mut self, side: &str) {
        let name = name_of(side);
        if !self.held.iter().flat_map(|held| &held.pair).any(|other| name_of(other) == name) {
            name.map(|name| self.stacks.wanted.remove(name));
        }
    }

    /// Calls with this name have stacks from now on.
    pub(crate) fn want_stack(&mut self, call: &str) {
        self.stacks.wanted.insert(call.to_owned());
    }

    /// The number of findings, with those that wait for a stack.
    #[cfg(test)]
    pub(crate) fn reported(&self) -> usize {
        self.findings.errors().len() + self.held.len()
    }

    /// The errors since the last call.
    pub(crate) fn take(&mut self) -> Vec<Finding> {
        let all = self.findings.errors().get(self.taken..).unwrap_or_default().to_vec();
        self.taken += all.len();
        all.into_iter().map(Finding::Report).collect()
    }

    /// The findings that were not looked at yet.
    pub(crate) fn take_candidates(&mut self) -> Vec<Report> {
        std::mem::take(&mut self.candidates)
    }

    /// Whether a finding is of a class that is on.
    pub(crate) fn wants(&self, report: &Report) -> bool {
        self.settings.has(Kind::of(report))
    }

    /// A candidate was judged: it is reported, counted as possible, or dropped.
    pub(crate) fn judged(&mut self, mut report: Report, verdict: Verdict) {
        let (word, text, bytes) = match verdict {
            Verdict::Refuted => return,
            Verdict::Known => return self.report(Finding::Report(report), None),
            Verdict::Certain(bytes) => ("certain", CERTAIN.to_owned(), Some(bytes)),
            Verdict::Likely(bytes) => ("likely", LIKELY.to_owned(), Some(bytes)),
            Verdict::Possible(at, why) => {
                let side = if at == 0 { &report.first } else { &report.second };
                let kernel = side.kernel().unwrap_or(Cow::Borrowed(&side.call.name)).into_owned();
                let text = match side.launch() {
                    Some(_) => format!("what {kernel} accesses is not known: {why}"),
                    None => why.to_string(),
                };
                if !self.settings.possible {
                    return self.possible(kernel, why);
                }
                // It is not known whether it writes, where it may read as well.
                let sides = [&report.first, &report.second];
                let other_writes = sides.iter().any(|side| !is_of_kernel(side) && !is_read(side));
                for side in [&mut report.first, &mut report.second] {
                    if side.launch().is_some() && other_writes {
                        side.kind = AccessKind::Read;
                    }
                }
                ("possible", text, None)
            }
        };
        if let Some(bytes) = bytes {
            let sides = [&mut report.first, &mut report.second];
            for (side, writes) in sides.into_iter().zip(bytes.writes) {
                if side.launch().is_some() {
                    side.kind = if writes { AccessKind::Write } else { AccessKind::Read };
                }
            }
            let first = bytes.ranges.first().map(|range| range.start);
            let within =
                |allocation: &Allocation| first.is_some_and(|at| allocation.range.contains(&at));
            report.allocation = report.allocation.filter(within);
            report.shared = bytes.ranges;
        }
        self.report(Finding::Report(report), Some((word, &text)));
    }

    /// A finding is possible. Says whether it is the first one of its two places, and the last one that
    /// is looked at.
    pub(crate) fn is_possible(&mut self, report: &Report) -> [bool; 2] {
        let pair = pair_of(report);
        let pairs = &mut self.possible.pairs;
        if pairs.len() >= PAIRS && !pairs.contains_key(&pair) {
            return [false, true];
        }
        let looks = pairs.entry(pair).or_default();
        *looks += 1;
        [*looks == 1, *looks >= LOOKS]
    }

    fn possible(&mut self, kernel: String, why: Reason) {
        self.possible.count += 1;
        let reasons = &mut self.possible.reasons;
        if reasons.len() < REASONS || reasons.contains_key(&(kernel.clone(), why.clone())) {
            *reasons.entry((kernel, why)).or_default() += 1;
        }
    }

    /// The lines of the summary about findings that were not reported.
    pub(crate) fn lines_of_possible(&self) -> Vec<String> {
        let Possible { count, reasons, .. } = &self.possible;
        let (findings, were) = if *count == 1 { ("finding", "was") } else { ("findings", "were") };
        let mut lines = Vec::new();
        if *count > 0 {
            lines.push(format!("{count} possible {findings} {were} not reported: --possible"));
        }
        let mut all: Vec<_> = reasons.iter().collect();
        all.sort_by_key(|(_, count)| core::cmp::Reverse(**count));
        let line = |((kernel, why), count): &(&(String, Reason), &u64)| {
            format!("possible, {}: {kernel}: {why}", counted(**count, "times"))
        };
        lines.extend(all.iter().take(SHOWN).map(line));
        if all.len() > SHOWN {
            lines.push(format!("possible: and {} other kernels", all.len() - SHOWN));
        }
        lines
    }

    /// `certainty` is what is known of a launch's accesses.
    fn report(&mut self, finding: Finding, certainty: Option<(&str, &str)>) {
        // Only records are given without a report, and only if their class is on.
        let Some(report) = finding.report() else {
            self.findings.add(finding, Kind::Records.name());
            return;
        };
        let kind = Kind::of(report);
        if !self.settings.has(kind) {
            return;
        }
        if let Finding::Report(report) = finding
            && let Some(report) = self.hold(report, certainty)
        {
            self.write(report, certainty);
        }
    }

    fn write(&mut self, report: Report, certainty: Option<(&str, &str)>) {
        let kind = Kind::of(&report);
        let certainty = certainty.filter(|(word, _)| !word.is_empty());
        let certainty = certainty.map(|(word, text)| Certainty { word, text });
        if self.findings.add_with(Finding::Report(report), kind.name(), certainty) {
            cuda_order_check_engine::exit::set(self.settings.exitcode);
        }
    }
}

/// The function of a side of a pair.
fn name_of(side: &str) -> Option<&str> {
    side.split('\n').next()
}

const CERTAIN: &str = "a thread that surely runs accesses these bytes, as the kernel's code has it";
const LIKELY: &str = "accesses of the kernel are within these bytes, as far as its code says";

/// The begin of each text on standard error.
const NAME: &str = "cuda-order-check: ";

/// A file, or what standard error says is instead of it.
pub(crate) fn open<T>(path: &str, instead: &str, file: std::io::Result<T>) -> Option<T> {
    let failed =
        |error| Sink::stderr(NAME).write(&format!("cannot write {path}, so {instead}: {error}"));
    file.map_err(failed).ok()
}

fn findings(settings: &Settings) -> Findings {
    let mut sinks = Vec::new();
    let log = settings.log.as_deref();
    let log = log.and_then(|path| open(path, "findings go here", Sink::file(path)));
    sinks.push(log.unwrap_or_else(|| Sink::stderr(NAME)));
    let json = settings.json.as_deref();
    let json = json.and_then(|path| open(path, "there is no JSON", Sink::file(path)));
    sinks.extend(json.map(Sink::json));
    let new = || Findings::new(Vec::new(), settings.suppressed.clone()).stacks(settings.shown);
    let sarif = settings.sarif.as_deref();
    let classes: Vec<_> = CLASSES.iter().map(|class| (class.name, class.about)).collect();
    let sarif = sarif.and_then(|path| open(path, "there is no SARIF", new().sarif(path, &classes)));
    sarif.unwrap_or_else(new).sinks(sinks)
}

#[cfg(test)]
mod tests;
