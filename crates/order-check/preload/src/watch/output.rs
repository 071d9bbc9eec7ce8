//! Where findings go, and those that wait until it is known whether a word is an address.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cuda_order_check::feed::Observer;
use cuda_order_check::findings::{Findings, Sink};
use cuda_order_check::trace::Trace;
use cuda_order_check::{Backtrace, Finding, ThreadId};

use super::thread;
use crate::settings::{Kind, Settings, is_launch};

/// The threads of the process, and where findings go.
pub(super) struct Output {
    pub(super) settings: Settings,
    pub(super) findings: Findings,
    /// How many of them were taken.
    taken: usize,
    /// Words within structures that count or not, by the names of the operations that use them.
    pub(super) words: HashMap<&'static str, Word>,
    /// Findings about words of which it is not known yet whether they count.
    pub(super) held: Vec<(&'static str, Finding)>,
    /// The pairs of calls that were reported, as a kernel is reported once for all its words.
    pub(super) reported: HashSet<[String; 2]>,
    /// The call that begins.
    call: &'static str,
    /// What comes now was told by this thread, which goes on meanwhile.
    pub(super) told_by: Option<u64>,
    stacks: Stacks,
}

/// Which calls get a stack. To take one is slow, so it is not done for launches: only for those
/// that were in a report already, so that the next report has both stacks.
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

/// Stacks take at most this time, and a twentieth of the program's.
const ALLOWANCE: Duration = Duration::from_secs(2);

thread_local! {
    /// The regions that this thread is in, each with the names of those around it.
    static REGIONS: RefCell<Vec<Arc<str>>> = const { RefCell::new(Vec::new()) };
}

/// Gets the thread's variables ready.
pub(super) fn thread_is_ready() {
    let _ = REGIONS.try_with(|_| ());
}

/// The calling thread enters a region. Returns how many it is in.
pub fn push_region(name: &str) -> usize {
    let push = |all: &RefCell<Vec<Arc<str>>>| {
        let mut all = all.borrow_mut();
        let names = match all.last() {
            Some(around) => format!("{around} / {name}"),
            None => name.to_owned(),
        };
        all.push(names.into());
        all.len()
    };
    REGIONS.try_with(push).unwrap_or(0)
}

/// It leaves the last one. Returns how many it is in.
pub fn pop_region() -> usize {
    let pop = |all: &RefCell<Vec<Arc<str>>>| {
        let mut all = all.borrow_mut();
        all.pop();
        all.len()
    };
    REGIONS.try_with(pop).unwrap_or(0)
}

/// A call in a region, with its stack if it has one.
#[derive(Debug)]
struct InRegions {
    names: Arc<str>,
    stack: Option<Arc<dyn Backtrace>>,
}

impl fmt::Display for InRegions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Region: {}", self.names)?;
        self.stack.as_ref().map_or(Ok(()), |stack| stack.fmt(f))
    }
}

/// Whether a word within a structure counts as an address.
#[derive(Clone, Copy)]
pub(super) struct Word {
    /// The name of the kernel's launch.
    pub(super) kernel: &'static str,
    pub(super) counts: Option<bool>,
}

impl Stacks {
    fn here(&self, call: &str) -> Option<Arc<dyn Backtrace>> {
        let always = ALWAYS.iter().any(|name| call.starts_with(name));
        if !always && (self.wanted.is_empty() || !self.wanted.contains(call)) {
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
        ThreadId(self.told_by.unwrap_or_else(thread))
    }

    fn thread_name(&self, of: ThreadId) -> String {
        let current = std::thread::current();
        let name = current.name().filter(|_| of.0 == thread());
        name.map_or_else(|| of.0.to_string(), str::to_owned)
    }

    fn backtrace(&self) -> Option<Arc<dyn Backtrace>> {
        if self.told_by.is_some_and(|of| of != thread()) {
            return None;
        }
        let stack = if self.settings.stacks { self.stacks.here(self.call) } else { None };
        match REGIONS.try_with(|all| all.borrow().last().cloned()) {
            Ok(Some(names)) => Some(Arc::new(InRegions { names, stack })),
            _ => stack,
        }
    }

    fn finding(&mut self, finding: Finding) {
        let sides = finding.report().map(|report| [&report.first, &report.second]);
        let word = sides.into_iter().flatten().find_map(|side| {
            self.words.get_key_value(&*side.call.name).map(|(name, word)| (*name, word.counts))
        });
        match word {
            Some((name, None)) => self.held.push((name, finding)),
            Some((_, Some(false))) => {}
            Some((_, Some(true))) | None => self.report(finding),
        }
    }
}

impl Output {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            settings: settings.clone(),
            findings: Findings::new(Vec::new(), Vec::new()),
            taken: 0,
            words: HashMap::new(),
            held: Vec::new(),
            reported: HashSet::new(),
            call: "",
            told_by: None,
            stacks: Stacks {
                wanted: HashSet::new(),
                begin: Instant::now(),
                spent: Cell::new(Duration::ZERO),
            },
        }
    }

    /// Opens the files.
    pub(super) fn open(&mut self) {
        self.findings = findings(&self.settings);
    }

    /// A call with this name begins.
    pub(super) fn begins(&mut self, call: &'static str) {
        self.call = call;
    }

    /// Calls with this name have stacks from now on.
    pub(super) fn want_stack(&mut self, call: &str) {
        self.stacks.wanted.insert(call.to_owned());
    }

    /// The errors since the last call.
    pub(super) fn take(&mut self) -> Vec<Finding> {
        let all = self.findings.errors().get(self.taken..).unwrap_or_default().to_vec();
        self.taken += all.len();
        all.into_iter().map(Finding::Report).collect()
    }

    pub(super) fn report(&mut self, finding: Finding) {
        let Some(report) = finding.report() else { return };
        let kind = Kind::of(report);
        if !self.settings.has(kind) {
            return;
        }
        let sides = [&report.first, &report.second];
        let names = sides.map(|side| {
            let word = self.words.get(&*side.call.name);
            word.map_or_else(|| side.call.name.to_string(), |word| word.kernel.to_owned())
        });
        // The checker reports each pair of calls once: for a kernel, each of its words.
        if sides.into_iter().any(is_launch) {
            let mut pair = [0, 1].map(|at| {
                let (side, name) = (sides[at], &names[at]);
                let stream = side.agent.stream_id().map_or(0, |stream| stream.0);
                let trace = side.call.backtrace.as_ref().map(ToString::to_string);
                format!("{name} {stream:#x} {} {}", side.agent, trace.unwrap_or_default())
            });
            pair.sort_unstable();
            if !self.reported.insert(pair) {
                return;
            }
        }
        if !self.findings.add(finding, kind.name()) {
            return;
        }
        if self.settings.exitcode != 0 {
            cuda_order_check::exit::set(self.settings.exitcode);
        }
        self.stacks.wanted.extend(names);
    }

    /// It is known now which of a kernel's words count.
    pub(super) fn decide(&mut self, words: impl Iterator<Item = (&'static str, bool)>) {
        for (name, counts) in words {
            if let Some(word) = self.words.get_mut(name) {
                word.counts = Some(counts);
            }
        }
        let held = std::mem::take(&mut self.held);
        for (name, finding) in held {
            match self.words.get(name).and_then(|word| word.counts) {
                None => self.held.push((name, finding)),
                Some(false) => {}
                Some(true) => self.report(finding),
            }
        }
    }
}

/// The begin of each text on standard error.
const NAME: &str = "cuda-order-check: ";

/// A file, or what standard error says is instead of it.
pub(super) fn open<T>(path: &str, instead: &str, file: std::io::Result<T>) -> Option<T> {
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
    Findings::new(sinks, settings.suppressed.clone())
}
