//! Two launches beside each other.

use core::ops::Range;

use cuda_kernel_access::decode::AccessKind as KernelAccess;
use cuda_kernel_access::touch::{Span, Uses, joined};

use super::accesses::{
    COMPARED, bytes_of, conflict, is_bounded, is_of_either, is_within, kinds, may_be_of, reads,
    uses_of,
};
use super::search::{
    ASKED, CONDITIONAL, LATE, NOT_FOUND, Searched, UNBOUNDED, both_touch, within_reach,
};
use super::{Bytes, EvaluatedLaunch, Question, Reach, Verdict};
use crate::code::evaluated::{Accesses, Sure};
use crate::code::time::Time;

const BOUNDS: &str = "only where its accesses and the other kernel's may be is known";

/// Bytes that both of two kernels touch, and which of the two writes.
#[derive(Default)]
struct Pairs {
    ranges: Vec<Range<u64>>,
    writes: [bool; 2],
}

impl Pairs {
    /// How the kernel at `at` touches the bytes, and how the other one does.
    fn add(&mut self, at: usize, bytes: Range<u64>, [own, other]: [KernelAccess; 2]) {
        self.ranges.push(bytes);
        let both = [!reads(own), !reads(other)];
        let [first, second] = if at == 0 { both } else { [both[1], both[0]] };
        self.writes = [self.writes[0] | first, self.writes[1] | second];
    }

    fn bytes(self) -> Option<Bytes> {
        (!self.ranges.is_empty())
            .then(|| Bytes { ranges: joined(self.ranges), writes: self.writes })
    }
}

/// The common bytes of accesses of two kernels that need an order, and whether each writes.
fn common_of<'a>(
    first: impl Iterator<Item = &'a Sure>,
    second: impl Iterator<Item = &'a Sure>,
) -> Option<Bytes> {
    let mut second: Vec<_> = second.collect();
    second.sort_unstable_by_key(|(range, ..)| range.start);
    let longest = second.iter().map(|(range, ..)| range.end - range.start).max().unwrap_or(0);
    let mut pairs = Pairs::default();
    for (range, kind, strong) in first {
        // No earlier one is long enough.
        let from = second
            .partition_point(|(other, ..)| other.start.saturating_add(longest) <= range.start);
        let near = second.get(from..).unwrap_or_default().iter();
        for (other, other_kind, is_strong) in near.take_while(|(other, ..)| other.start < range.end)
        {
            let common = range.start.max(other.start)..range.end.min(other.end);
            if !common.is_empty() && conflict((*kind, *strong), (*other_kind, *is_strong)) {
                pairs.add(0, common, [*kind, *other_kind]);
            }
        }
    }
    pairs.bytes()
}

fn meets(own: &Span, other: &Span) -> bool {
    conflict((own.kind, own.strong), (other.kind, other.strong)) && own.may_meet(other)
}

/// Whether threads that were all run touch something where this access of the other kernel may be:
/// what they touch for certain is in no span then.
fn touches(accesses: &Accesses, span: &Span) -> bool {
    let mut sure = accesses.sure.iter();
    accesses.is_all
        && sure.any(|(range, kind, strong)| {
            conflict((span.kind, span.strong), (*kind, *strong)) && span.may_touch(range)
        })
}

/// Places that one launch touches for certain and the other perhaps.
#[derive(Default)]
struct Halves {
    likely: Pairs,
    certain: Pairs,
    searched: Searched,
    asked: usize,
    /// The launch of which a condition decides.
    conditional: Option<usize>,
}

impl Halves {
    /// Looks for the places where the launch at `at` may touch what the other one surely does.
    fn search(
        &mut self,
        at: usize,
        (own, accesses, bounded): (EvaluatedLaunch<'_>, &Accesses, &[Span]),
        other: &Accesses,
        question: &Question<'_>,
    ) {
        for (bytes, kind, strong) in other.sure.iter().take(COMPARED) {
            let is_likely = |span: &&Span| {
                conflict((span.kind, span.strong), (*kind, *strong))
                    && span.may_touch(bytes)
                    && is_of_either(span, std::slice::from_ref(bytes))
            };
            for span in bounded.iter().filter(is_likely) {
                let is_unknown = match accesses.is_all {
                    true => self.searched.was_run(accesses, span),
                    false if self.asked < 2 * ASKED => {
                        self.asked += 1;
                        self.searched.ask(own, span, bytes, question.time)
                    }
                    false => false,
                };
                if self.searched.is_conditional {
                    self.conditional.get_or_insert(at);
                }
                if is_unknown {
                    self.likely.add(at, bytes.clone(), [span.kind, *kind]);
                }
                for (bytes, own_kind) in self.searched.touched.drain(..) {
                    self.certain.add(at, bytes, [own_kind, *kind]);
                }
            }
        }
    }
}

/// Bytes of these accesses, as far as they are looked at, that a thread of each launch touches.
fn touched_by_both(
    [one, two]: [EvaluatedLaunch<'_>; 2],
    pairs: &[(&Span, &Span)],
    time: Option<Time>,
) -> Option<Bytes> {
    pairs.iter().take(ASKED).find_map(|(own, other)| {
        let bytes = both_touch([(one, own), (two, other)], time)?;
        Some(Bytes { ranges: vec![bytes], writes: [!reads(own.kind), !reads(other.kind)] })
    })
}

/// What threads say of launches that are only near each other, where their bounds are within the allocations.
fn of_threads(both: [EvaluatedLaunch<'_>; 2], question: &Question<'_>) -> Option<Verdict> {
    let [ours, theirs] = both.map(|(_, found)| {
        let spans = found.bounds.as_ref().map_or(&[][..], |bounds| &bounds.spans).iter();
        spans.filter(|span| is_within(span, question.shared))
    });
    let pairs = ours.flat_map(|own| theirs.clone().map(move |other| (own, other)));
    let pairs: Vec<_> = pairs.filter(|(own, other)| meets(own, other)).collect();
    if pairs.is_empty() {
        return None;
    }
    match question.time {
        // Nobody was asked yet.
        None => Some(Verdict::Likely(Bytes { ranges: Vec::new(), writes: [false; 2] })),
        time => touched_by_both(both, &pairs, time).map(Verdict::Certain),
    }
}

pub(super) fn of_two_launches(both: [EvaluatedLaunch<'_>; 2], question: &Question<'_>) -> Verdict {
    let [one, two] = both;
    let corners: [Vec<Sure>; 2] = both.map(|(_, found)| {
        found.sure.iter().map(|touch| (bytes_of(touch), touch.kind, touch.strong)).collect()
    });
    let [ours, theirs] = corners.each_ref().map(|all| all.iter());
    if let Some(bytes) = common_of(ours, theirs) {
        return Verdict::Certain(bytes);
    }
    let (first, second) = match (&one.1.bounds, &two.1.bounds) {
        (Ok(first), Ok(second)) => (first, second),
        (Err(why), _) => return Verdict::Possible(0, why.clone()),
        (_, Err(why)) => return Verdict::Possible(1, why.clone()),
    };
    let uses = [uses_of(one.0, first, question.shared), uses_of(two.0, second, question.shared)];
    if let [Some(one), Some(two)] = uses
        && !kinds(one).any(|one| kinds(two).any(|two| conflict((one, false), (two, false))))
    {
        return Verdict::Refuted;
    }
    // The threads are asked only where the bounds leave something.
    let may_meet = || first.spans.iter().any(|own| second.spans.iter().any(|two| meets(own, two)));
    if question.reach == Reach::Code && !may_meet() {
        return Verdict::Refuted;
    }
    let accesses = [within_reach(one, first, question), within_reach(two, second, question)];
    let [ours, theirs] = accesses.each_ref().map(|all| all.sure.iter());
    if let Some(bytes) = common_of(ours, theirs) {
        return Verdict::Certain(bytes);
    }
    let [first, second] = &accesses;
    let is_bounded =
        |span: &Span| span.bytes.as_ref().is_some_and(|bytes| is_bounded(bytes, question.memory));
    let bounded = |accesses: &Accesses| {
        accesses.spans.iter().filter(|span| is_bounded(span)).cloned().collect::<Vec<_>>()
    };
    let (ours, theirs) = (bounded(first), bounded(second));
    let mut halves = Halves::default();
    halves.search(0, (one, first, &ours), second, question);
    halves.search(1, (two, second, &theirs), first, question);
    if let Some(bytes) = halves.certain.bytes() {
        return Verdict::Certain(bytes);
    }
    if halves.searched.is_unknown
        && let Some(bytes) = halves.likely.bytes()
    {
        return Verdict::Likely(bytes);
    }
    if question.reach == Reach::Sure {
        return of_threads(both, question).unwrap_or(Verdict::Refuted);
    }
    if halves.searched.is_late {
        return Verdict::Possible(0, LATE.into());
    }
    let pairs = ours.iter().flat_map(|own| theirs.iter().map(move |other| (own, other)));
    let pairs: Vec<_> = pairs.filter(|(own, other)| meets(own, other)).collect();
    if let Some(bytes) = touched_by_both(both, &pairs, question.time) {
        return Verdict::Certain(bytes);
    }
    if let Some(at) = halves.conditional {
        return Verdict::Possible(at, CONDITIONAL.into());
    }
    let met = |spans: &[Span], other: &Accesses| spans.iter().any(|span| touches(other, span));
    if !pairs.is_empty() || met(&ours, second) || met(&theirs, first) {
        let why = if halves.searched.is_not_found { NOT_FOUND } else { BOUNDS };
        return Verdict::Possible(0, why.into());
    }
    // One of the two has no bounds that say anything, and all others are elsewhere.
    let unbounded = |own: &Accesses, uses: Option<Uses>, other: &Accesses, others: Option<Uses>| {
        let meets_any = |span: &Span| {
            let mut all = other.spans.iter().filter(|other| may_be_of(other, others));
            all.any(|other| meets(span, other)) || touches(other, span)
        };
        own.spans.iter().any(|span| !is_bounded(span) && may_be_of(span, uses) && meets_any(span))
    };
    if unbounded(first, uses[0], second, uses[1]) {
        return Verdict::Possible(0, UNBOUNDED.into());
    }
    if unbounded(second, uses[1], first, uses[0]) {
        return Verdict::Possible(1, UNBOUNDED.into());
    }
    Verdict::Refuted
}
