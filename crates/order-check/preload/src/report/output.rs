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

use crate::call::thread;
use crate::settings::{Kind, Settings, is_launch};

/// The threads of the process, and where findings go.
pub(crate) struct Output {
    pub(crate) settings: Settings,
    pub(crate) findings: Findings,
    /// How many of them were taken.
    taken: usize,
    /// Words within structures that count or not, by the names of the operations that use them.
    pub(crate) words: HashMap<&'static str, Word>,
    /// Findings about words of which it is not known yet whether they count.
    pub(crate) held: Vec<(&'static str, Finding)>,
    /// The pairs of calls that were reported, as a kernel is reported once for all its words.
    pub(crate) reported: HashSet<[String; 2]>,
    /// The call that begins.
    call: &'static str,
    /// What comes now was done by this thread, which goes on meanwhile.
    pub(crate) thread_of_host_function: Option<u64>,
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
    /// The region that this thread is in.
    static REGION: RefCell<Option<Arc<Region>>> = const { RefCell::new(None) };
}

/// A region, with the one around it. A program may enter regions without an end.
struct Region {
    name: Box<str>,
    around: Option<Arc<Self>>,
    depth: usize,
}

impl Drop for Region {
    /// One by one, as a stack has no place for as many as there may be.
    fn drop(&mut self) {
        let mut next = self.around.take();
        while let Some(mut region) = next.and_then(Arc::into_inner) {
            next = region.around.take();
        }
    }
}

/// How many names of regions a report has, at most.
const NAMES: usize = 16;

/// `step / forward`, from the outermost one on.
impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = core::iter::successors(Some(self), |region| region.around.as_deref());
        let names: Vec<&str> = all.take(NAMES).map(|region| &*region.name).collect();
        if self.depth > NAMES {
            f.write_str("... / ")?;
        }
        for (at, name) in names.iter().rev().enumerate() {
            write!(f, "{}{name}", if at == 0 { "" } else { " / " })?;
        }
        Ok(())
    }
}

impl fmt::Debug for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Gets the thread's variables ready.
pub(crate) fn thread_is_ready() {
    let _ = REGION.try_with(|_| ());
}

/// The calling thread enters a region. Returns how many it is in.
pub fn push_region(name: &str) -> usize {
    let push = |current: &RefCell<Option<Arc<Region>>>| {
        let mut current = current.borrow_mut();
        let around = current.take();
        let depth = around.as_ref().map_or(0, |around| around.depth) + 1;
        *current = Some(Arc::new(Region { name: name.into(), around, depth }));
        depth
    };
    REGION.try_with(push).unwrap_or(0)
}

/// It leaves the last one. Returns how many it is in.
pub fn pop_region() -> usize {
    let pop = |current: &RefCell<Option<Arc<Region>>>| {
        let mut current = current.borrow_mut();
        let last = current.take();
        *current = last.as_ref().and_then(|region| region.around.clone());
        current.as_ref().map_or(0, |region| region.depth)
    };
    REGION.try_with(pop).unwrap_or(0)
}

/// A call in a region, with its stack if it has one.
#[derive(Debug)]
struct InRegion {
    region: Arc<Region>,
    stack: Option<Arc<dyn Backtrace>>,
}

impl fmt::Display for InRegion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Region: {}", self.region)?;
        self.stack.as_ref().map_or(Ok(()), |stack| stack.fmt(f))
    }
}

/// Whether a word within a structure counts as an address.
#[derive(Clone, Copy)]
pub(crate) struct Word {
    /// The name of the kernel's launch.
    pub(crate) kernel: &'static str,
    pub(crate) counts: Option<bool>,
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
        ThreadId(self.thread_of_host_function.unwrap_or_else(thread))
    }

    fn thread_name(&self, of: ThreadId) -> String {
        let current = std::thread::current();
        let name = current.name().filter(|_| of.0 == thread());
        name.map_or_else(|| of.0.to_string(), str::to_owned)
    }

    fn backtrace(&self) -> Option<Arc<dyn Backtrace>> {
        if self.thread_of_host_function.is_some_and(|of| of != thread()) {
            return None;
        }
        let stack = if self.settings.stacks { self.stacks.here(self.call) } else { None };
        match REGION.try_with(|region| region.borrow().clone()) {
            Ok(Some(region)) => Some(Arc::new(InRegion { region, stack })),
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
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            settings: settings.clone(),
            findings: Findings::new(Vec::new(), Vec::new()),
            taken: 0,
            words: HashMap::new(),
            held: Vec::new(),
            reported: HashSet::new(),
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
    }

    /// Calls with this name have stacks from now on.
    pub(crate) fn want_stack(&mut self, call: &str) {
        self.stacks.wanted.insert(call.to_owned());
    }

    /// The errors since the last call.
    pub(crate) fn take(&mut self) -> Vec<Finding> {
        let all = self.findings.errors().get(self.taken..).unwrap_or_default().to_vec();
        self.taken += all.len();
        all.into_iter().map(Finding::Report).collect()
    }

    pub(crate) fn report(&mut self, finding: Finding) {
        let Some(report) = finding.report() else {
            if self.settings.has(Kind::Records) {
                self.findings.add(finding, Kind::Records.name());
            }
            return;
        };
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
    pub(crate) fn decide(&mut self, words: impl Iterator<Item = (&'static str, bool)>) {
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
    Findings::new(sinks, settings.suppressed.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program that enters a region in each step, and leaves none.
    #[test]
    fn a_region_has_its_own_name_only() {
        const COUNT: usize = 1_000_000;
        (1..=COUNT).for_each(|depth| assert_eq!(push_region("step"), depth));
        let current = || REGION.with(|region| region.borrow().clone()).expect("it is in one");
        let mut bytes = 0;
        let mut region = Some(current());
        while let Some(own) = region {
            bytes += size_of::<Region>() + own.name.len();
            region = own.around.clone();
        }
        assert!(bytes <= 64 * COUNT, "{bytes}");
        let last = ["step"; NAMES].join(" / ");
        assert_eq!(current().to_string(), format!("... / {last}"));
        for depth in (2..COUNT).rev() {
            assert_eq!(pop_region(), depth);
        }
        assert_eq!(push_region("forward"), 3);
        assert_eq!(current().to_string(), "step / step / forward");
        // What is left is dropped with the thread, however deep.
        std::thread::spawn(|| (0..COUNT).for_each(|_| _ = push_region("")))
            .join()
            .expect("it ends");
        assert_eq!([pop_region(), pop_region(), pop_region(), pop_region()], [2, 1, 0, 0]);
    }
}
