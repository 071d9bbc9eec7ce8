//! What the threads of a launch say of a candidate, where bounds do not decide.

use core::ops::Range;
use std::sync::OnceLock;
use std::time::Duration;

use cuda_kernel_access::decode::AccessKind;
use cuda_kernel_access::threads::{Every, Sought, every_touch, seek};
use cuda_kernel_access::touch::Span;

use crate::code::kernel::{Evaluated, keeps_more, thread_time};
use crate::code::launch::Values;
use crate::lock::{Lock, Rank};

/// The instructions that all threads may run, and those of the threads that are looked for: some
/// ten milliseconds.
const ALL: usize = 1 << 19;
const SOUGHT: usize = 1 << 18;

/// How many answers are kept of a launch.
const ANSWERS: usize = 64;

/// Whether there is time for more, and where it is counted.
#[derive(Clone, Copy)]
pub(crate) struct Time {
    pub(crate) is_left: fn() -> bool,
    pub(crate) spend: fn(Duration),
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

/// What is known of a launch's accesses.
pub(crate) struct Known {
    /// Those that threads make for certain: the bytes, in which way, and whether they are strong.
    pub(crate) sure: Vec<(Range<u64>, AccessKind, bool)>,
    /// Where others may be.
    pub(crate) spans: Vec<Span>,
    /// Whether all threads were run. Then what is not sure depends on memory.
    pub(crate) is_all: bool,
}

impl Evaluated {
    /// What all threads do, if they are few. Without time only if it was asked before.
    fn every(&self, own: &Values, time: Option<Time>) -> Option<&Every> {
        let every = match time.filter(|time| (time.is_left)()) {
            None => self.threads.every.get()?,
            Some(time) => self.threads.every.get_or_init(|| {
                let begin = thread_time();
                let found = own.code.ask(own, |code, launch| every_touch(code, launch, ALL));
                (time.spend)(thread_time().saturating_sub(begin));
                let found = found.flatten();
                keeps_more(found.as_ref().map_or(0, |of| of.sure.len() + of.perhaps.len()));
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
        if let Some((.., known)) = self.threads.sought.lock().ok()?.iter().find(is) {
            return Some(known.clone());
        }
        let time = time.filter(|time| (time.is_left)())?;
        let begin = thread_time();
        let found =
            own.code.ask(own, |code, launch| seek(code, launch, at, bytes, &mut { SOUGHT }));
        (time.spend)(thread_time().saturating_sub(begin));
        let found = found?;
        let mut sought = self.threads.sought.lock().ok()?;
        if sought.len() >= ANSWERS {
            sought.clear();
        }
        sought.push((at, bytes.clone(), found.clone()));
        Some(found)
    }

    /// What a launch is known to do; `spans` is where its accesses may be.
    pub(crate) fn known(&self, own: &Values, spans: &[Span], time: Option<Time>) -> Known {
        let Some(every) = self.every(own, time) else {
            let sure = self.sure.iter();
            let sure = sure.map(|of| {
                (of.address..of.address.saturating_add(of.bytes.into()), of.kind, of.strong)
            });
            return Known { sure: sure.collect(), spans: spans.to_vec(), is_all: false };
        };
        let sure = every.sure.iter().map(|of| (of.bytes.clone(), of.kind, of.strong)).collect();
        let missing = spans.iter().filter(|span| every.missing.contains(&span.at)).cloned();
        let perhaps = every.perhaps.iter().filter_map(|of| {
            let mut span = spans.iter().find(|span| span.at == of.at)?.clone();
            (span.bytes, span.rows) = (Some(of.bytes.clone()), Vec::new());
            Some(span)
        });
        Known { sure, spans: missing.chain(perhaps).collect(), is_all: true }
    }
}
