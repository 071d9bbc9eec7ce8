//! What threads of a launch say where its bounds do not decide.

use core::ops::Range;

use cuda_kernel_access::decode::AccessKind as KernelAccess;
use cuda_kernel_access::execute::Touch;
use cuda_kernel_access::threads::Sought;
use cuda_kernel_access::touch::Span;

use super::accesses::bytes_of;
use super::{EvaluatedLaunch, Question, Reach};
use crate::code::evaluated::{Accesses, Bounds};
use crate::code::time::Time;

pub(super) const NOT_FOUND: &str = "no thread was found that touches these bytes";
pub(super) const LATE: &str = "it would take too much time";
pub(super) const CONDITIONAL: &str = "values in memory decide whether it touches these bytes, or any, or constants are read and not used";
pub(super) const UNBOUNDED: &str = "an address comes from memory, or is not bounded by its code";

/// How many accesses of a kernel are looked for, and in how many ranges.
pub(super) const ASKED: usize = 4;

/// What the threads say of accesses that may be of bytes.
#[derive(Default)]
pub(super) struct Searched {
    /// Bytes that a thread touches for certain.
    pub(super) touched: Vec<(Range<u64>, KernelAccess)>,
    /// Whether no thread was found, and all of them are in the code.
    pub(super) is_not_found: bool,
    /// Whether it depends on memory. Before there is a candidate nobody is asked, and it may.
    pub(super) is_unknown: bool,
    /// Whether that decides if they are touched at all, and not only which.
    pub(super) is_conditional: bool,
    /// Whether there was no time to ask.
    pub(super) is_late: bool,
}

impl Searched {
    /// Asks for a thread whose access is of these bytes. Says whether there may be one whose address depends
    /// on memory.
    pub(super) fn ask(
        &mut self,
        (values, found): EvaluatedLaunch<'_>,
        span: &Span,
        bytes: &Range<u64>,
        time: Option<Time>,
    ) -> bool {
        let sought = found.seek(values, span.at, bytes, time);
        let is_unknown =
            matches!(sought, Some(Sought::Unknown)) || sought.is_none() && time.is_none();
        match sought {
            Some(Sought::Touched(touch)) => self.touched.push((touch.bytes, touch.kind)),
            Some(Sought::NotFound) => self.is_not_found = true,
            Some(Sought::Conditional) => self.is_conditional = true,
            None if time.is_some() => self.is_late = true,
            _ => self.is_unknown = true,
        }
        is_unknown
    }

    /// All threads were run, so what this access does depends on memory. Says whether only its address does.
    pub(super) fn was_run(&mut self, accesses: &Accesses, span: &Span) -> bool {
        let is_conditional = accesses.conditional.contains(&span.at);
        self.is_conditional |= is_conditional;
        self.is_unknown |= !is_conditional;
        !is_conditional
    }
}

/// Bytes that a thread of each of two launches touches, found from bytes that both may touch.
pub(super) fn both_touch(
    [(one, own), (two, other)]: [(EvaluatedLaunch<'_>, &Span); 2],
    time: Option<Time>,
) -> Option<Range<u64>> {
    let (ours, theirs) = (own.bytes.as_ref()?, other.bytes.as_ref()?);
    let common = ours.start.max(theirs.start)..ours.end.min(theirs.end);
    let Some(Sought::Touched(found)) = one.1.seek(one.0, own.at, &common, time) else {
        return None;
    };
    match two.1.seek(two.0, other.at, &found.bytes, time) {
        Some(Sought::Touched(found)) => Some(found.bytes),
        _ => None,
    }
}

/// The accesses of a launch as far as it is taken to get.
pub(super) fn within_reach(
    (values, found): EvaluatedLaunch<'_>,
    bounds: &Bounds,
    question: &Question<'_>,
) -> Accesses {
    let mut accesses = found.accesses(values, &bounds.spans, question.time);
    if question.reach == Reach::Sure {
        let all = accesses.spans.iter();
        accesses.spans = all.filter_map(|span| between(span, &found.sure)).collect();
    }
    accesses
}

/// Where an access may be between those of its places that some threads surely touch.
fn between(span: &Span, sure: &[Touch]) -> Option<Span> {
    let all = || sure.iter().filter(|touch| touch.at == span.at).map(bytes_of);
    let start = all().map(|bytes| bytes.start).min()?;
    let end = all().map(|bytes| bytes.end).max()?;
    let own = span.bytes.as_ref().filter(|_| !span.from_memory)?;
    let bytes = own.start.max(start)..own.end.min(end);
    (!bytes.is_empty()).then(|| {
        let mut between = span.clone();
        between.bytes = Some(bytes);
        between
    })
}
