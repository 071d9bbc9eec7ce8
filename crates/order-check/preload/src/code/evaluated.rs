//! Launches whose code was evaluated: the accesses that they surely make, where others may be, and what
//! their threads answer where these bounds do not decide.

use core::ops::Range;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, OnceLock};

use cuda_kernel_access::code::{Code, Launch};
use cuda_kernel_access::decode::AccessKind;
use cuda_kernel_access::execute::Touch;
use cuda_kernel_access::threads::{Every, Sought, every_touch, seek};
use cuda_kernel_access::touch::{Span, Summary, Table, may_touch, surely_touched};

use crate::code::Reason;
use crate::code::launch::Values;
use crate::code::time::{Time, thread_time};
use crate::lock::{Lock, Rank};

/// The instructions that all threads may run, and those of the threads that are looked for: some
/// ten milliseconds.
const ALL: usize = 1 << 19;
const SOUGHT: usize = 1 << 18;

/// How many answers of its threads a launch has at a time.
const ANSWERS: usize = 64;

/// How many words and accesses the launches have together that stay evaluated.
const EVALUATED: usize = 1 << 17;

/// What a launch does, from its code and its arguments.
#[derive(Debug)]
pub(crate) struct Evaluated {
    /// Accesses that some threads make.
    pub(crate) sure: Vec<Touch>,
    /// All that it may do, if the code says it.
    pub(crate) bounds: Result<Bounds, Reason>,
    /// For which other work it may wait through memory.
    pub(crate) waits: Waits,
    /// What was asked of its threads.
    pub(crate) threads: Threads,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Waits {
    None,
    /// Its blocks seem to wait for what other blocks of it store here.
    Itself(Table),
    Any,
}

#[derive(Debug)]
pub(crate) struct Bounds {
    pub(crate) summary: Arc<Summary>,
    /// Where each access may be.
    pub(crate) spans: Vec<Span>,
}

/// What was asked of a launch's threads.
#[derive(Debug)]
pub(crate) struct Threads {
    every: OnceLock<Option<Every>>,
    sought: Lock<Vec<(usize, Range<u64>, Sought)>>,
}

impl Default for Threads {
    fn default() -> Self {
        Self { every: OnceLock::new(), sought: Lock::new(Rank::Answers, Vec::new()) }
    }
}

/// What threads touch for certain: the bytes, in which way, and whether the access is strong.
pub(crate) type Sure = (Range<u64>, AccessKind, bool);

/// The accesses of a launch.
pub(crate) struct Accesses {
    /// Those that threads make for certain.
    pub(crate) sure: Vec<Sure>,
    /// The bytes within which all other accesses are.
    pub(crate) spans: Vec<Span>,
    /// Whether all threads were run. Then what is not sure depends on memory.
    pub(crate) is_all: bool,
    /// The instructions of which it then also does whether they run.
    pub(crate) conditional: BTreeSet<usize>,
}

/// The launches that were evaluated last, by their numbers, and how many words and accesses they have.
type Launches = (HashMap<u64, Result<Arc<Evaluated>, Reason>>, usize);
static LAUNCHES: Lock<Option<Launches>> = Lock::new(Rank::Code, None);

impl Values {
    /// What the launch does, if it was evaluated before.
    pub(crate) fn evaluated(&self) -> Option<Result<Arc<Evaluated>, Reason>> {
        LAUNCHES.lock().ok()?.as_ref()?.0.get(&self.number).cloned()
    }

    /// What the launch does. Its code may be decoded for it.
    pub(crate) fn evaluate(&self, time: Time) -> Result<Arc<Evaluated>, Reason> {
        if let Some(earlier) = self.evaluated() {
            return earlier;
        }
        if !(time.is_left)() {
            return Err("it would take too much time".into());
        }
        let begin = thread_time();
        let found = Evaluated::new(self).map(Arc::new);
        (time.spend)(thread_time().saturating_sub(begin));
        if let Ok(mut all) = LAUNCHES.lock() {
            let (all, size) = all.get_or_insert_with(Launches::default);
            *size += match &found {
                Ok(found) => {
                    let spans = found.bounds.as_ref().map_or(0, |bounds| bounds.spans.len());
                    1 + found.sure.len() + spans
                }
                Err(_) => 1,
            };
            if *size > EVALUATED {
                (*all, *size) = (HashMap::new(), 0);
            }
            all.insert(self.number, found.clone());
        }
        found
    }

    /// What is asked of the code with the launch's values.
    fn ask<T>(&self, ask: impl FnOnce(&Code, &Launch) -> T) -> Option<T> {
        let code = self.code.code().ok()?;
        Some(ask(&code, &self.launch(&code)?))
    }
}

/// The launches have so many accesses more.
fn add_accesses(count: usize) {
    if let Ok(mut all) = LAUNCHES.lock()
        && let Some((_, size)) = all.as_mut()
    {
        *size += count;
    }
}

pub(crate) fn is_bounded(span: &Span) -> bool {
    span.bytes.as_ref().is_some_and(|bytes| bytes.end - bytes.start < 1 << 32)
}

/// Whether others may wait for what it stores.
fn is_signal(span: &Span) -> bool {
    span.strong && span.kind != AccessKind::Read
}

/// Whether another launch that was evaluated signals in the table by which the blocks of this one do, as far
/// as it has bounds. One with the same table comes before or after it, as each would overwrite what the other
/// one has there.
fn is_shared(own: &Values, table: &Table) -> bool {
    let bytes = table.first..table.places.end;
    let shares = |(number, found): (&u64, &Result<Arc<Evaluated>, Reason>)| {
        let Ok(Evaluated { bounds: Ok(Bounds { spans, .. }), waits, .. }) = found.as_deref() else {
            return false;
        };
        let has_table = matches!(waits, Waits::Itself(own) if own.first == table.first);
        let signals = |span: &Span| is_bounded(span) && is_signal(span) && span.may_touch(&bytes);
        *number != own.number && !has_table && spans.iter().any(signals)
    };
    let all = LAUNCHES.lock();
    all.is_ok_and(|all| all.as_ref().is_some_and(|(all, _)| all.iter().any(shares)))
}

impl Evaluated {
    fn new(values: &Values) -> Result<Self, Reason> {
        let code = values.code.code()?;
        let launch = values.launch(&code).ok_or("there was no room for its parameters")?;
        let sure = surely_touched(&code, &launch);
        let bounds = Bounds::new(values, &code, &launch);
        let may_wait = match &bounds {
            Ok(bounds) => code.may_wait_in(&bounds.spans),
            Err(_) => code.may_wait(),
        };
        let waits = match &bounds {
            _ if !may_wait => Waits::None,
            // The host may have a part in what is in its memory.
            Ok(Bounds { summary, spans, .. }) if !values.is_of_host => {
                summary.signals_in(&code, &launch, spans).map_or(Waits::Any, Waits::Itself)
            }
            _ => Waits::Any,
        };
        Ok(Self { sure, bounds, waits, threads: Threads::default() })
    }

    /// Whether it may access any of these bytes: a launch that may not has no part in what is there. A plain
    /// access without bounds is not meant.
    fn may_touch(&self, own: &Values, bytes: &Range<u64>) -> bool {
        own.addresses().any(|word| bytes.contains(&word))
            || self.bounds.as_ref().map_or(true, |bounds| {
                let counts = |span: &&Span| is_bounded(span) || is_signal(span);
                bounds.spans.iter().filter(counts).any(|span| span.may_touch(bytes))
            })
    }

    /// Whether others signal where its blocks do.
    pub(crate) fn is_shared(&self, own: &Values, table: &Table) -> bool {
        is_shared(own, table)
    }

    /// Whether it may wait for work, which may touch some bytes or not, or for what is ordered with that. The
    /// work is in these allocations. Threads do not look for a signal in another allocation than that of the
    /// table, even if their bounds go beyond its beginning.
    pub(crate) fn may_wait_for_work(
        &self,
        own: &Values,
        allocations: &[Range<u64>],
        touches: impl FnOnce(&Range<u64>) -> bool,
    ) -> bool {
        match &self.waits {
            Waits::None => false,
            Waits::Itself(table) => {
                let Table { places, first, .. } = table;
                let others =
                    allocations.iter().map(|all| all.end).filter(|end| *end <= places.start);
                let first = others.fold(*first, u64::max);
                touches(&(first..places.end)) || is_shared(own, table)
            }
            Waits::Any => true,
        }
    }

    /// Whether one of two launches may wait for the other one, or for what is ordered with that.
    pub(crate) fn may_wait_for(
        &self,
        own: &Values,
        allocations: &[Range<u64>],
        (other, found): (&Values, &Self),
    ) -> bool {
        self.may_wait_for_work(own, allocations, |bytes| found.may_touch(other, bytes))
    }

    /// What all threads do, if they are not too many. Without time only if it was asked before.
    fn every(&self, own: &Values, time: Option<Time>) -> Option<&Every> {
        let every = match time.filter(|time| (time.is_left)()) {
            None => self.threads.every.get()?,
            Some(time) => self.threads.every.get_or_init(|| {
                let begin = thread_time();
                let found = own.ask(|code, launch| every_touch(code, launch, ALL));
                (time.spend)(thread_time().saturating_sub(begin));
                let found = found.flatten();
                add_accesses(found.as_ref().map_or(0, |all| all.sure.len() + all.perhaps.len()));
                found
            }),
        };
        every.as_ref()
    }

    /// Whether a thread's instruction at `at` touches any of these bytes. `None` without time, if it
    /// was not asked before.
    pub(crate) fn seek(
        &self,
        own: &Values,
        at: usize,
        bytes: &Range<u64>,
        time: Option<Time>,
    ) -> Option<Sought> {
        let is = |answer: &&(usize, Range<u64>, Sought)| answer.0 == at && answer.1 == *bytes;
        if let Some((.., earlier)) = self.threads.sought.lock().ok()?.iter().find(is) {
            return Some(earlier.clone());
        }
        let time = time.filter(|time| (time.is_left)())?;
        let begin = thread_time();
        let found = own.ask(|code, launch| seek(code, launch, at, bytes, &mut { SOUGHT }));
        (time.spend)(thread_time().saturating_sub(begin));
        let found = found?;
        let mut sought = self.threads.sought.lock().ok()?;
        if sought.len() >= ANSWERS {
            sought.clear();
        }
        sought.push((at, bytes.clone(), found.clone()));
        Some(found)
    }

    /// The accesses of the launch; `spans` is where they may be.
    pub(crate) fn accesses(&self, own: &Values, spans: &[Span], time: Option<Time>) -> Accesses {
        let Some(every) = self.every(own, time) else {
            let bytes =
                |touch: &Touch| touch.address..touch.address.saturating_add(touch.bytes.into());
            let sure = self.sure.iter().map(|touch| (bytes(touch), touch.kind, touch.strong));
            let (sure, spans) = (sure.collect(), spans.to_vec());
            return Accesses { sure, spans, is_all: false, conditional: BTreeSet::new() };
        };
        let sure = every.sure.iter();
        let sure = sure.map(|touch| (touch.bytes.clone(), touch.kind, touch.strong)).collect();
        let missing = spans.iter().filter(|span| every.missing.contains(&span.at)).cloned();
        let perhaps = every.perhaps.iter().filter_map(|access| {
            let mut span = spans.iter().find(|span| span.at == access.at)?.clone();
            (span.bytes, span.rows) = (Some(access.bytes.clone()), Vec::new());
            Some(span)
        });
        let (spans, conditional) = (missing.chain(perhaps).collect(), every.conditional.clone());
        Accesses { sure, spans, is_all: true, conditional }
    }
}

impl Bounds {
    fn new(values: &Values, code: &Code, launch: &Launch) -> Result<Self, Reason> {
        let summary = values.code.summarize(code)?;
        let spans = may_touch(code, launch).map_err(|why| why.to_string())?;
        Ok(Self { summary, spans })
    }
}
