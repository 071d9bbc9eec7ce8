//! A launch beside work that is no launch: a copy, a memset, a free, or accesses of the host.

use core::ops::Range;

use cuda_kernel_access::decode::AccessKind as KernelAccess;
use cuda_kernel_access::touch::{Span, joined};
use cuda_order_check_engine::{Access, AccessKind, Other, Side};

use super::accesses::{
    COMPARED, bytes_of, is_bounded, is_of_either, is_within, kinds, matters, may_be_of, may_hit,
    reads, some_of, uses_of,
};
use super::search::{ASKED, CONDITIONAL, LATE, NOT_FOUND, Searched, UNBOUNDED, within_reach};
use super::{Bytes, EvaluatedLaunch, Question, Reach, Verdict};
use crate::code::evaluated::Accesses;
use crate::code::signals::WORD;

pub(super) const FLAG: &str =
    "its accesses are those of a flag or a counter, which others may share";

/// What a launch meets that is no launch.
#[derive(Clone, Copy)]
pub(crate) struct OtherWork<'a> {
    kind: AccessKind,
    pub(super) accesses: &'a [Access],
    /// The host, streams that write values or wait for them, and later copies of a word, by which the host
    /// may poll, may access a flag or a counter at any time, if the kernel's accesses allow it.
    may_share: bool,
}

fn is_of_value(kind: AccessKind) -> bool {
    matches!(kind, AccessKind::AtomicRead | AccessKind::AtomicWrite | AccessKind::Wait)
}

fn is_of_word(kind: AccessKind, accesses: &[Access]) -> bool {
    let is_word = |access: &Access| access.range.end - access.range.start <= WORD;
    kind == AccessKind::Read && !accesses.is_empty() && accesses.iter().all(is_word)
}

impl<'a> OtherWork<'a> {
    /// Beside a launch by the call with this number.
    pub(super) fn of(side: &'a Side, launch: u64) -> Self {
        let is_host = side.agent.stream_id().is_none();
        let polls = || side.call.number > launch && is_of_word(side.kind, side.accesses());
        let may_share = is_host || is_of_value(side.kind) || polls();
        Self { kind: side.kind, accesses: side.accesses(), may_share }
    }

    /// What the engine compares launches with is work of streams.
    pub(crate) fn of_device(other: &Other<'a>) -> Self {
        let may_share = is_of_value(other.kind);
        Self { kind: other.kind, accesses: other.accesses, may_share }
    }

    pub(super) fn hits(&self, bytes: &Range<u64>) -> bool {
        self.accesses.iter().any(|access| access.touches(bytes))
    }

    /// The bytes in common with these. Of rows the gaps count as well.
    fn common(&self, bytes: &Range<u64>) -> impl Iterator<Item = Range<u64>> {
        self.accesses
            .iter()
            .filter(|access| access.touches(bytes))
            .map(|access| access.range.start.max(bytes.start)..access.range.end.min(bytes.end))
    }

    /// What a launch, which is the side `at`, touches of the work's bytes.
    fn bytes(&self, at: usize, all: &[(Range<u64>, KernelAccess)]) -> Bytes {
        let is_written = all.iter().any(|(_, kind)| !reads(*kind));
        let ranges = all.iter().flat_map(|(range, _)| self.common(range)).collect();
        Bytes { ranges: joined(ranges), writes: [0, 1].map(|side| side == at && is_written) }
    }

    fn may_share_a_flag(&self, strong: bool) -> bool {
        self.may_share && strong
    }

    /// Whether accesses that are made for certain need an order with this work.
    fn certain(
        &self,
        at: usize,
        sure: impl Iterator<Item = (Range<u64>, KernelAccess, bool)>,
    ) -> Option<Verdict> {
        let met = sure.filter(|(range, kind, strong)| {
            matters(*kind, self.kind) && !self.may_share_a_flag(*strong) && self.hits(range)
        });
        let met: Vec<_> = met.map(|(range, kind, _)| (range, kind)).collect();
        (!met.is_empty()).then(|| Verdict::Certain(self.bytes(at, &met)))
    }

    /// Whether threads that were all run access a flag here: such an access is no span any more.
    fn meets_flag(&self, accesses: &Accesses) -> bool {
        let mut sure = accesses.sure.iter();
        let is_flag = |(range, kind, strong): &(Range<u64>, KernelAccess, bool)| {
            matters(*kind, self.kind) && *strong && self.hits(range)
        };
        self.may_share && accesses.is_all && sure.any(is_flag)
    }
}

/// What a launch, which is the side `at` of a finding, means beside the work on the other side.
pub(super) fn of_launch_and_work(
    own: EvaluatedLaunch<'_>,
    work: OtherWork<'_>,
    at: usize,
    question: &Question<'_>,
) -> Verdict {
    let (values, found) = own;
    let corners = found.sure.iter().map(|touch| (bytes_of(touch), touch.kind, touch.strong));
    if let Some(verdict) = work.certain(at, corners) {
        return verdict;
    }
    let bounds = match &found.bounds {
        Ok(bounds) => bounds,
        Err(why) => return Verdict::Possible(at, why.clone()),
    };
    let uses = uses_of(values, bounds, question.shared);
    if uses.is_some_and(|uses| !kinds(uses).any(|kind| matters(kind, work.kind))) {
        return Verdict::Refuted;
    }
    let rows = work.accesses.iter().flat_map(Access::each_row);
    let rows: Vec<Range<u64>> = rows.take(COMPARED).collect();
    let is_likely = |span: &&Span| {
        span.bytes.as_ref().is_some_and(|bytes| is_bounded(bytes, question.memory))
            && is_of_either(span, &rows)
            && !work.may_share_a_flag(span.strong)
    };
    let concerns = |span: &Span| {
        matters(span.kind, work.kind)
            && (is_likely(&span) || may_be_of(span, uses))
            && may_hit(span, work.accesses)
    };
    // The threads are asked only where the bounds leave something.
    if question.reach == Reach::Code && !bounds.spans.iter().any(concerns) {
        return Verdict::Refuted;
    }
    let accesses = within_reach(own, bounds, question);
    if accesses.is_all
        && let Some(verdict) = work.certain(at, accesses.sure.iter().cloned())
    {
        return verdict;
    }
    let mut searched = Searched::default();
    let left: Vec<&Span> = accesses.spans.iter().filter(|span| concerns(span)).collect();
    let likely: Vec<&Span> = left.iter().copied().filter(is_likely).collect();
    let mut unknown: Vec<&Span> = Vec::new();
    for span in likely.into_iter().take(ASKED) {
        let mut is_unknown = accesses.is_all && searched.was_run(&accesses, span);
        let ranges = if accesses.is_all { Vec::new() } else { some_of(span, &rows) };
        for range in ranges {
            is_unknown |= searched.ask(own, span, &range, question.time);
        }
        unknown.extend(is_unknown.then_some(span));
    }
    if !searched.touched.is_empty() {
        return Verdict::Certain(work.bytes(at, &searched.touched));
    }
    // Bounds that go beyond the memory say nothing, and neither do those beyond what threads at the corners
    // surely touch if the launch is only near. A thread that is run does.
    let mut beyond = Searched::default();
    let begins = |span: &&Span| {
        let begin = span.bytes.as_ref().map(|bytes| bytes.start);
        !is_likely(span)
            && !work.may_share_a_flag(span.strong)
            && begin.zip(question.memory).is_some_and(|(at, memory)| memory.contains(&at))
    };
    let is_near =
        |span: &&Span| concerns(span) && is_likely(span) && is_within(span, question.shared);
    let wide: Vec<&Span> = match question.reach {
        _ if accesses.is_all => Vec::new(),
        Reach::Code => left.iter().copied().filter(begins).collect(),
        Reach::Sure => bounds.spans.iter().filter(is_near).collect(),
    };
    for span in wide.into_iter().take(ASKED) {
        for range in some_of(span, &rows) {
            beyond.ask(own, span, &range, question.time);
        }
    }
    if !beyond.touched.is_empty() {
        return Verdict::Certain(work.bytes(at, &beyond.touched));
    }
    if beyond.is_unknown && question.time.is_none() {
        return Verdict::Likely(work.bytes(at, &[]));
    }
    if searched.is_unknown {
        let within = unknown.iter().filter_map(|span| Some((span.bytes.clone()?, span.kind)));
        return Verdict::Likely(work.bytes(at, &within.collect::<Vec<_>>()));
    }
    let flags: Vec<bool> = left
        .iter()
        .filter(|span| may_be_of(span, uses))
        .map(|span| work.may_share_a_flag(span.strong))
        .collect();
    let why = match (flags.is_empty(), flags.contains(&false)) {
        _ if searched.is_late => LATE,
        _ if searched.is_conditional => CONDITIONAL,
        (true, _) if work.meets_flag(&accesses) => FLAG,
        (true, _) if !searched.is_not_found => return Verdict::Refuted,
        (false, false) => FLAG,
        _ if searched.is_not_found => NOT_FOUND,
        _ => UNBOUNDED,
    };
    Verdict::Possible(at, why.into())
}
