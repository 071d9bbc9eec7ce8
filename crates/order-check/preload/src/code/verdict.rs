//! What a candidate means.

use core::ops::Range;

use cuda_kernel_access::decode::AccessKind as Does;
use cuda_kernel_access::execute::Touch;
use cuda_kernel_access::threads::Sought;
use cuda_kernel_access::touch::{Rows, Span, Uses, joined};
use cuda_order_check_engine::{Access, AccessKind, Other, Report, Side};

use crate::code::Reason;
use crate::code::kernel::{self, Bounds, Evaluated, KernelCode};
use crate::code::launch::Values;
use crate::code::nearby;
use crate::code::threads::{Known, Time};

/// Which bytes, and whether each of the two sides writes them, if it is a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bytes {
    pub(crate) ranges: Vec<Range<u64>>,
    pub(crate) writes: [bool; 2],
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The two need no order.
    Refuted,
    /// A thread that surely runs accesses these bytes.
    Certain(Bytes),
    /// Accesses are somewhere in these bytes, as far as the code says.
    Likely(Bytes),
    /// It is not known: in which launch, and why.
    Possible(usize, Reason),
}

/// How many accesses are compared one by one.
const COMPARED: usize = 1 << 12;

/// A report of which one side is a launch, or both. It may have the code of kernels decoded.
pub(crate) fn judge(report: &Report) -> Verdict {
    let sides = [&report.first, &report.second];
    let launches = sides.map(|side| side.launch().and_then(|of| of.get::<Values>()));
    const TIME: Time = kernel::TIME;
    if report.is_nearby() {
        return judge_nearby(sides, &report.shared);
    }
    let evaluate = |at: usize, launch: &Values| {
        launch.code.evaluate(launch, TIME).map_err(|why| Verdict::Possible(at, why))
    };
    let memory = report.allocation.as_ref().map(|of| &of.range);
    match launches {
        [Some(one), Some(two)] => {
            let (first, second) = match (evaluate(0, one), evaluate(1, two)) {
                (Ok(first), Ok(second)) => (first, second),
                // Of two that are not known the first is named.
                (Err(unknown), _) | (_, Err(unknown)) => return unknown,
            };
            let verdict = of_two(
                [(one, &first), (two, &second)],
                &report.shared,
                memory,
                (Reach::Code, Some(TIME)),
            );
            unless_it_waits(verdict, [first.waits, second.waits])
        }
        [Some(launch), None] => match evaluate(0, launch) {
            Ok(found) => {
                let other = Beside::of(&report.second);
                let verdict = of_one(
                    (launch, &found),
                    &report.shared,
                    other,
                    0,
                    memory,
                    (Reach::Code, Some(TIME)),
                );
                unless_it_waits(verdict, [found.waits, false])
            }
            Err(unknown) => unknown,
        },
        [None, Some(launch)] => match evaluate(1, launch) {
            Ok(found) => {
                let other = Beside::of(&report.first);
                let verdict = of_one(
                    (launch, &found),
                    &report.shared,
                    other,
                    1,
                    memory,
                    (Reach::Code, Some(TIME)),
                );
                unless_it_waits(verdict, [false, found.waits])
            }
            Err(unknown) => unknown,
        },
        [None, None] => Verdict::Possible(0, "it is no launch".into()),
    }
}

/// The same of a launch and work elsewhere in an allocation: no more is said of it than what the code
/// says for sure, so what is possible only is refuted.
fn judge_nearby(sides: [&Side; 2], shared: &[Range<u64>]) -> Verdict {
    let time = Some(nearby::TIME);
    let evaluate = |launch: &Values| launch.code.evaluate(launch, nearby::TIME).ok();
    let [first, second] = sides;
    let launches = sides.map(|side| side.launch().and_then(|of| of.get::<Values>()));
    let beside = |at: usize, launch: &Values, other: &Side| {
        let found = evaluate(launch)?;
        Some(of_nearby((launch, &found), Err(Beside::of(other)), at, shared, time))
    };
    let judged = match launches {
        [Some(one), Some(two)] => evaluate(one)
            .zip(evaluate(two))
            .map(|(first, second)| of_nearby((one, &first), Ok((two, &second)), 0, shared, time)),
        [Some(launch), None] => beside(0, launch, second),
        [None, Some(launch)] => beside(1, launch, first),
        [None, None] => None,
    };
    judged.unwrap_or(Verdict::Refuted)
}

/// A launch, which is the one side or the other, and another launch or other work, somewhere in
/// allocations.
pub(crate) fn of_nearby(
    own: (&Values, &Evaluated),
    other: Result<(&Values, &Evaluated), Beside<'_>>,
    at: usize,
    allocations: &[Range<u64>],
    time: Option<Time>,
) -> Verdict {
    /// How many comparisons one pair may take.
    const MOST: usize = 1 << 16;
    let size = |of: &Evaluated| of.sure.len() + of.bounds.as_ref().map_or(0, |of| of.spans.len());
    let others = match &other {
        Ok((_, found)) => size(found),
        Err(beside) => beside.accesses.len(),
    };
    let waits = own.1.waits || other.as_ref().is_ok_and(|other| other.1.waits);
    if waits || size(own.1).saturating_mul(others) > MOST {
        return Verdict::Refuted;
    }
    let verdict = match other {
        Ok(other) => of_two([own, other], allocations, None, (Reach::Sure, time)),
        Err(other) => of_one(own, allocations, other, at, None, (Reach::Sure, time)),
    };
    match verdict {
        Verdict::Possible(..) => Verdict::Refuted,
        verdict => verdict,
    }
}

/// How far a launch is taken to get from its addresses.
#[derive(Clone, Copy, PartialEq)]
enum Reach {
    /// As far as its code allows: that the other work has one of them says that it is meant.
    Code,
    /// As far as some threads surely do: where only the allocation is the same, bounds that are too wide
    /// would be in other blocks of it.
    Sure,
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

/// What is known of a launch as far as it is taken to get.
fn within_reach(
    (own, found): (&Values, &Evaluated),
    bounds: &Bounds,
    (reach, time): (Reach, Option<Time>),
) -> Known {
    let mut known = found.known(own, &bounds.spans, time);
    if reach == Reach::Sure {
        let all = known.spans.iter();
        known.spans = all.filter_map(|span| between(span, &found.sure)).collect();
    }
    known
}

const WAITS: &str = "it may wait for other work through memory, and such an order is not seen";

/// Kernels that wait for each other, as those of NCCL do, are in an order that no call makes.
fn unless_it_waits(verdict: Verdict, waits: [bool; 2]) -> Verdict {
    match (&verdict, waits.iter().position(|waits| *waits)) {
        (Verdict::Certain(_) | Verdict::Likely(_), Some(at)) => Verdict::Possible(at, WAITS.into()),
        _ => verdict,
    }
}

/// Whether a launch was evaluated, and what it meets needs no order with it.
pub(crate) fn is_known_to_be_apart(
    launch: &Values,
    shared: &[Range<u64>],
    other: &Other<'_>,
) -> bool {
    let known = |launch| KernelCode::known(launch).and_then(Result::ok);
    let Some(found) = known(launch) else { return false };
    let verdict = match other.launch {
        None => {
            let other = Beside { kind: other.kind, accesses: other.accesses, is_host: false };
            of_one((launch, &found), shared, other, 0, None, (Reach::Code, None))
        }
        Some(other) => {
            let Some(other) = other.get::<Values>() else { return false };
            let Some(second) = known(other) else { return false };
            of_two([(launch, &found), (other, &second)], shared, None, (Reach::Code, None))
        }
    };
    verdict == Verdict::Refuted
}

/// The kinds of accesses that a word is used for.
fn kinds(uses: Uses) -> impl Iterator<Item = Does> {
    let all = [
        (uses.read, Does::Read),
        (uses.written, Does::Write),
        (uses.atomic, Does::Atomic),
        (uses.other, Does::Unknown),
    ];
    all.into_iter().filter(|(is, _)| *is).map(|(_, kind)| kind)
}

/// Whether a launch may write to bytes that its words are addresses of, as far as that was asked for
/// an earlier launch of the kernel.
pub(crate) fn may_write(launch: &Values, bytes: &Range<u64>) -> bool {
    let Some(summary) = launch.code.known_summary() else { return true };
    let words = launch.words().iter().zip(&summary.words);
    let mut within = words.filter(|(value, _)| bytes.contains(value)).map(|(_, word)| word.uses);
    within.any(|uses| uses.written || uses.atomic || uses.other)
}

/// What is done with the words that are addresses of these bytes; `None` if there is none, as the
/// address of a pool stands for all of it.
fn uses_of(launch: &Values, bounds: &Bounds, shared: &[Range<u64>]) -> Option<Uses> {
    let words = launch.words().iter().zip(&bounds.summary.words);
    let within = words.filter(|(value, _)| shared.iter().any(|bytes| bytes.contains(value)));
    within.map(|(_, word)| word.uses).reduce(|one, two| {
        let mut both = one;
        both.read |= two.read;
        both.written |= two.written;
        both.atomic |= two.atomic;
        both.other |= two.other;
        both
    })
}

fn reads(does: Does) -> bool {
    matches!(does, Does::Read | Does::CopyToShared)
}

/// Whether an access of a kernel needs an order with another operation's.
fn matters(does: Does, other: AccessKind) -> bool {
    let read = matches!(other, AccessKind::Read | AccessKind::AtomicRead | AccessKind::Wait);
    !(read && reads(does))
}

/// The same for two kernels. Atomic operations need none among each other.
fn conflict(one: Does, two: Does) -> bool {
    let atomic = |does| matches!(does, Does::Atomic | Does::Reduce);
    !(reads(one) && reads(two) || atomic(one) && atomic(two))
}

/// Whether bounds say anything: these bytes are within the memory that the finding is about. An index
/// from memory has the bounds of its type.
fn is_bounded(bytes: &Range<u64>, memory: Option<&Range<u64>>) -> bool {
    match memory {
        Some(memory) => memory.start <= bytes.start && bytes.end <= memory.end,
        None => bytes.end - bytes.start < 1 << 32,
    }
}

/// Whether an access may be one by a word that is used in this way.
fn may_be_of(span: &Span, uses: Option<Uses>) -> bool {
    let class = |does| match does {
        Does::CopyToShared => Does::Read,
        Does::Reduce => Does::Atomic,
        does => does,
    };
    uses.is_none_or(|uses| {
        uses.other || span.kind == Does::Unknown || kinds(uses).any(|of| of == class(span.kind))
    })
}

/// Whether some access of a kernel may be of these bytes.
fn may_hit(span: &Span, accesses: &[Access]) -> bool {
    let hits = |access: &Access| {
        let mut rows = access.each_row();
        match (rows.next(), rows.next(), rows.nth(COMPARED)) {
            // Too many to compare one by one.
            (Some(first), Some(second), Some(_)) => {
                let width = first.end - first.start;
                let rows = Rows::new(first.start, width, second.start - first.start);
                span.may_touch_rows(&access.range, &rows)
            }
            _ => access.each_row().any(|row| span.may_touch(&row)),
        }
    };
    accesses.iter().any(hits)
}

/// Whether an access is of these bytes wherever it is, or not by what memory contains: an index from
/// there that is in bounds may be any.
fn is_of_either(span: &Span, all: &[Range<u64>]) -> bool {
    let covers = |bytes: &Range<u64>| {
        let within = |own: &Range<u64>| bytes.start <= own.start && own.end <= bytes.end;
        span.bytes.as_ref().is_some_and(within)
    };
    !span.from_memory || all.iter().any(covers)
}

/// What a kernel meets that is none.
#[derive(Clone, Copy)]
pub(crate) struct Beside<'a> {
    pub(crate) kind: AccessKind,
    pub(crate) accesses: &'a [Access],
    /// The host may access a flag or a counter at any time, if the kernel's accesses allow it.
    pub(crate) is_host: bool,
}

impl<'a> Beside<'a> {
    fn of(side: &'a Side) -> Self {
        let is_host = side.agent.stream_id().is_none();
        Self { kind: side.kind, accesses: side.accesses(), is_host }
    }
}

const FLAG: &str = "its accesses are those of a flag or a counter, which the host may share";
const BOUNDS: &str = "only where its accesses and the other kernel's may be is known";
const UNBOUNDED: &str = "an address comes from memory, or is not bounded by its code";

const NOT_FOUND: &str = "no thread was found that touches these bytes";

/// What the threads say of accesses that may be of bytes.
#[derive(Default)]
struct Searched {
    /// Bytes that a thread touches for certain.
    touched: Vec<(Range<u64>, Does)>,
    /// Whether a thread was not found that is all known.
    is_not_found: bool,
    /// Whether it depends on memory, or was not asked.
    is_unknown: bool,
}

impl Searched {
    /// Asks for a thread whose access is of these bytes.
    fn ask(
        &mut self,
        (own, found): (&Values, &Evaluated),
        span: &Span,
        bytes: &Range<u64>,
        time: Option<Time>,
    ) {
        match found.seek(own, span.at, bytes, time) {
            Some(Sought::Touched(of)) => self.touched.push((of.bytes, of.kind)),
            Some(Sought::NotFound) => self.is_not_found = true,
            _ => self.is_unknown = true,
        }
    }
}

/// How many accesses of a kernel are looked for, and in how many ranges.
const ASKED: usize = 4;

/// Some of these bytes that an access may be of: the first, the last, and one between.
fn some_of(span: &Span, all: &[Range<u64>]) -> Vec<Range<u64>> {
    let common = |bytes: &Range<u64>| {
        let own = span.bytes.as_ref().filter(|_| span.may_touch(bytes))?;
        Some(own.start.max(bytes.start)..own.end.min(bytes.end))
    };
    let found: Vec<_> = all.iter().filter_map(common).collect();
    let mut places = vec![0, found.len() / 2, found.len().saturating_sub(1)];
    places.dedup();
    places.into_iter().filter_map(|at| found.get(at).cloned()).collect()
}

fn of_one(
    own: (&Values, &Evaluated),
    shared: &[Range<u64>],
    Beside { kind, accesses, is_host }: Beside<'_>,
    at: usize,
    memory: Option<&Range<u64>>,
    (reach, time): (Reach, Option<Time>),
) -> Verdict {
    let found = own.1;
    let hits = |bytes: &Range<u64>| accesses.iter().any(|access| access.touches(bytes));
    let common = |bytes: &Range<u64>| {
        let all = accesses.iter().filter(|access| access.touches(bytes)).map(|access| {
            // Of rows the gaps count as well.
            let range = &access.range;
            range.start.max(bytes.start)..range.end.min(bytes.end)
        });
        all.collect::<Vec<_>>()
    };
    let bytes = |all: Vec<(Range<u64>, Does)>| {
        let mut writes = [false; 2];
        if let Some(own) = writes.get_mut(at) {
            *own = all.iter().any(|(_, does)| !reads(*does));
        }
        let ranges = all.iter().flat_map(|(range, _)| common(range)).collect();
        Bytes { ranges: joined(ranges), writes }
    };
    let may_be_a_flag = |strong: bool| is_host && strong;
    let certain = |all: &mut dyn Iterator<Item = (Range<u64>, Does, bool)>| {
        let all = all.filter(|(range, does, strong)| {
            matters(*does, kind) && !may_be_a_flag(*strong) && hits(range)
        });
        let all: Vec<_> = all.map(|(range, does, _)| (range, does)).collect();
        (!all.is_empty()).then(|| Verdict::Certain(bytes(all)))
    };
    let corners = found.sure.iter().map(|touch| (bytes_of(touch), touch.kind, touch.strong));
    if let Some(verdict) = certain(&mut corners.into_iter()) {
        return verdict;
    }
    let bounds = match &found.bounds {
        Ok(bounds) => bounds,
        Err(why) => return Verdict::Possible(at, why.clone()),
    };
    let uses = uses_of(own.0, bounds, shared);
    if uses.is_some_and(|uses| !kinds(uses).any(|does| matters(does, kind))) {
        return Verdict::Refuted;
    }
    let all: Vec<Range<u64>> = accesses.iter().flat_map(Access::each_row).take(COMPARED).collect();
    let is_likely = |span: &&Span| {
        span.bytes.as_ref().is_some_and(|bytes| is_bounded(bytes, memory))
            && is_of_either(span, &all)
            && !may_be_a_flag(span.strong)
    };
    let concerns = |span: &Span| {
        matters(span.kind, kind)
            && (is_likely(&span) || may_be_of(span, uses))
            && may_hit(span, accesses)
    };
    // The threads are asked only where the bounds leave something.
    let any = |spans: &[Span]| spans.iter().any(concerns);
    if reach == Reach::Code && !any(&bounds.spans) {
        return Verdict::Refuted;
    }
    let known = within_reach(own, bounds, (reach, time));
    if known.is_all
        && let Some(verdict) = certain(&mut known.sure.iter().cloned())
    {
        return verdict;
    }
    let mut searched = Searched::default();
    let left: Vec<&Span> = known.spans.iter().filter(|span| concerns(span)).collect();
    let likely: Vec<&Span> = left.iter().copied().filter(is_likely).collect();
    for span in likely.iter().take(ASKED) {
        if known.is_all {
            // Its threads were run, so what it does depends on memory.
            searched.is_unknown = true;
            continue;
        }
        for range in some_of(span, &all) {
            searched.ask(own, span, &range, time);
        }
    }
    if !searched.touched.is_empty() {
        return Verdict::Certain(bytes(searched.touched));
    }
    if searched.is_unknown {
        let within = likely.iter().filter_map(|span| Some((span.bytes.clone()?, span.kind)));
        return Verdict::Likely(bytes(within.collect()));
    }
    // An access of a flag that threads make is no span any more.
    let is_flag = || {
        let mut sure = known.sure.iter();
        known.is_all
            && sure.any(|(range, does, strong)| matters(*does, kind) && *strong && hits(range))
    };
    let mut others = left.iter().filter(|span| may_be_of(span, uses));
    match others
        .next()
        .map(|first| may_be_a_flag(first.strong) && others.all(|of| may_be_a_flag(of.strong)))
    {
        Some(true) => Verdict::Possible(at, FLAG.into()),
        Some(false) if searched.is_not_found => Verdict::Possible(at, NOT_FOUND.into()),
        Some(false) => Verdict::Possible(at, UNBOUNDED.into()),
        None if is_host && is_flag() => Verdict::Possible(at, FLAG.into()),
        None if searched.is_not_found => Verdict::Possible(at, NOT_FOUND.into()),
        None => Verdict::Refuted,
    }
}

/// The common bytes of accesses of two kernels that need an order, and whether each writes.
fn common_of<'a>(
    first: impl Iterator<Item = (&'a Range<u64>, Does)>,
    second: impl Iterator<Item = (&'a Range<u64>, Does)>,
) -> Option<Bytes> {
    let mut second: Vec<_> = second.collect();
    second.sort_unstable_by_key(|(range, _)| range.start);
    let longest = second.iter().map(|(range, _)| range.end - range.start).max().unwrap_or(0);
    let mut pairs = Pairs::default();
    for (range, does) in first {
        // No earlier one is long enough.
        let from =
            second.partition_point(|(of, _)| of.start.saturating_add(longest) <= range.start);
        let near = second.get(from..).unwrap_or_default().iter();
        for (other, too) in near.take_while(|(other, _)| other.start < range.end) {
            let common = range.start.max(other.start)..range.end.min(other.end);
            if !common.is_empty() && conflict(does, *too) {
                pairs.add(0, common, [does, *too]);
            }
        }
    }
    (!pairs.ranges.is_empty()).then(|| pairs.bytes())
}

/// Bytes that both of two kernels touch, and which of the two writes.
#[derive(Default)]
struct Pairs {
    ranges: Vec<Range<u64>>,
    writes: [bool; 2],
}

impl Pairs {
    /// How the kernel at `at` touches the bytes, and how the other one does.
    fn add(&mut self, at: usize, bytes: Range<u64>, [own, other]: [Does; 2]) {
        self.ranges.push(bytes);
        let both = [!reads(own), !reads(other)];
        let [first, second] = if at == 0 { both } else { [both[1], both[0]] };
        self.writes = [self.writes[0] | first, self.writes[1] | second];
    }

    fn bytes(self) -> Bytes {
        Bytes { ranges: joined(self.ranges), writes: self.writes }
    }
}

fn of_two(
    both: [(&Values, &Evaluated); 2],
    shared: &[Range<u64>],
    memory: Option<&Range<u64>>,
    (reach, time): (Reach, Option<Time>),
) -> Verdict {
    let [one, two] = both;
    let corners = both.map(|(_, found)| {
        found.sure.iter().map(|touch| (bytes_of(touch), touch.kind)).collect::<Vec<_>>()
    });
    let [ours, theirs] =
        corners.each_ref().map(|all| all.iter().map(|(range, does)| (range, *does)));
    if let Some(bytes) = common_of(ours, theirs) {
        return Verdict::Certain(bytes);
    }
    let (first, second) = match (&one.1.bounds, &two.1.bounds) {
        (Ok(first), Ok(second)) => (first, second),
        (Err(why), _) => return Verdict::Possible(0, why.clone()),
        (_, Err(why)) => return Verdict::Possible(1, why.clone()),
    };
    let uses = [uses_of(one.0, first, shared), uses_of(two.0, second, shared)];
    if let [Some(one), Some(two)] = uses
        && !kinds(one).any(|one| kinds(two).any(|two| conflict(one, two)))
    {
        return Verdict::Refuted;
    }
    let meets = |own: &Span, other: &Span| conflict(own.kind, other.kind) && own.may_meet(other);
    let meet = |ours: &[Span], theirs: &[Span]| {
        ours.iter().any(|own| theirs.iter().any(|other| meets(own, other)))
    };
    if reach == Reach::Code && !meet(&first.spans, &second.spans) {
        return Verdict::Refuted;
    }
    let known = [within_reach(one, first, (reach, time)), within_reach(two, second, (reach, time))];
    let [ours, theirs] =
        known.each_ref().map(|of| of.sure.iter().map(|(range, does, _)| (range, *does)));
    if let Some(bytes) = common_of(ours, theirs) {
        return Verdict::Certain(bytes);
    }
    let is_bounded = |span: &Span| span.bytes.as_ref().is_some_and(|of| is_bounded(of, memory));
    let bounded = known.each_ref().map(|of| of.spans.iter().filter(|span| is_bounded(span)));
    let bounded = bounded.map(|spans| spans.cloned().collect::<Vec<_>>());
    // Places that one touches for certain and the other perhaps.
    let mut searched = Searched::default();
    let (mut likely, mut certain) = (Pairs::default(), Pairs::default());
    let mut asked = 0;
    for (at, own) in both.into_iter().enumerate() {
        let (Some(spans), Some(all), Some(other)) =
            (bounded.get(at), known.get(at), known.get(1 - at))
        else {
            continue;
        };
        for (bytes, does, _) in other.sure.iter().take(COMPARED) {
            let is_likely = |span: &&Span| {
                conflict(span.kind, *does)
                    && span.may_touch(bytes)
                    && is_of_either(span, std::slice::from_ref(bytes))
            };
            for span in spans.iter().filter(is_likely) {
                likely.add(at, bytes.clone(), [span.kind, *does]);
                if all.is_all {
                    searched.is_unknown = true;
                } else if asked < 2 * ASKED {
                    asked += 1;
                    searched.ask(own, span, bytes, time);
                }
                for (bytes, kind) in searched.touched.drain(..) {
                    certain.add(at, bytes, [kind, *does]);
                }
            }
        }
    }
    if !certain.ranges.is_empty() {
        return Verdict::Certain(certain.bytes());
    }
    if searched.is_unknown {
        return Verdict::Likely(likely.bytes());
    }
    if reach == Reach::Sure {
        return Verdict::Refuted;
    }
    let [ours, theirs] = &bounded;
    let pairs = ours.iter().flat_map(|own| theirs.iter().map(move |other| (own, other)));
    let pairs: Vec<_> = pairs.filter(|(own, other)| meets(own, other)).collect();
    for (own, other) in pairs.iter().take(ASKED).copied() {
        if let Some(bytes) = both_touch([(one, own), (two, other)], time) {
            let writes = [!reads(own.kind), !reads(other.kind)];
            return Verdict::Certain(Bytes { ranges: vec![bytes], writes });
        }
    }
    let [first, second] = known;
    // What threads touch for certain is in no span if all of them were run.
    let touches = |of: &Known, span: &Span| {
        let mut sure = of.sure.iter();
        of.is_all
            && sure.any(|(range, does, _)| conflict(span.kind, *does) && span.may_touch(range))
    };
    let met = |spans: &[Span], other: &Known| spans.iter().any(|span| touches(other, span));
    if !pairs.is_empty() || met(ours, &second) || met(theirs, &first) {
        let why = if searched.is_not_found { NOT_FOUND } else { BOUNDS };
        return Verdict::Possible(0, why.into());
    }
    // One of the two has no bounds that say anything, and all others are elsewhere.
    let unbounded = |at: usize| {
        let ([own, other], [uses, others]) = match at {
            0 => ([&first, &second], uses),
            _ => ([&second, &first], [uses[1], uses[0]]),
        };
        let meets_any = |span: &Span| {
            let mut all = other.spans.iter().filter(|other| may_be_of(other, others));
            all.any(|other| meets(span, other)) || touches(other, span)
        };
        own.spans.iter().any(|span| !is_bounded(span) && may_be_of(span, uses) && meets_any(span))
    };
    match [0, 1].into_iter().find(|at| unbounded(*at)) {
        Some(at) => Verdict::Possible(at, UNBOUNDED.into()),
        None => Verdict::Refuted,
    }
}

/// Bytes that a thread of each of two launches touches, found from bytes that both may touch.
fn both_touch(
    [(one, own), (two, other)]: [((&Values, &Evaluated), &Span); 2],
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

fn bytes_of(touch: &Touch) -> Range<u64> {
    touch.address..touch.address.saturating_add(touch.bytes.into())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cuda_kernel_access::code::{Code, Launch};
    use cuda_kernel_access::ptx::Module;
    use cuda_kernel_access::touch::{may_touch, summary, surely_touched};

    use super::*;
    use crate::code::threads::Threads;

    const MEMORY: u64 = 0x7000;

    /// Stores four bytes.
    const KERNEL: &str = ".version 8.0\n.target sm_90\n.address_size 64\n\
        .entry kernel(.param .u64 to)\n{ .reg .b64 a; ld.param.u64 a, [to]; st.u32 [a], 1; ret; }\n";

    /// Accesses of four bytes, by their places: some that are sure, and some that may be.
    fn evaluated(sure: &[(u64, Does)], perhaps: &[(u64, Does)]) -> Evaluated {
        let module = Module::parse(KERNEL).expect("it is PTX");
        let code = Code::from_ptx(&module, "kernel").expect("it is known");
        let launch = Launch::new([1; 3], [1; 3], MEMORY.to_le_bytes().to_vec());
        let touch = |(place, kind): &(u64, Does)| {
            let mut touch = surely_touched(&code, &launch).remove(0);
            (touch.kind, touch.address) = (*kind, MEMORY + 64 * place);
            touch
        };
        let span = |(place, kind): &(u64, Does)| {
            let mut span = may_touch(&code, &launch).expect("it is known").remove(0);
            span.kind = *kind;
            span.bytes = Some(MEMORY + 64 * place..MEMORY + 64 * place + 4);
            span
        };
        let spans = sure.iter().chain(perhaps).map(span).collect();
        let summary = Arc::new(summary(&code).expect("it is known"));
        let bounds = Ok(Bounds { summary, spans });
        let threads = Threads::default();
        Evaluated { sure: sure.iter().map(touch).collect(), bounds, waits: false, threads }
    }

    /// Each kind of access with each: `+` needs an order.
    #[test]
    fn what_needs_an_order_is_in_this_table() {
        let does = [
            Does::Read,
            Does::CopyToShared,
            Does::Write,
            Does::Unknown,
            Does::Atomic,
            Does::Reduce,
        ];
        let text = |all: Vec<bool>| -> String {
            all.into_iter().map(|needs| if needs { '+' } else { '.' }).collect()
        };
        let kernels = ["..++++", "..++++", "++++++", "++++++", "++++..", "++++.."];
        for (one, expected) in does.into_iter().zip(kernels) {
            assert_eq!(text(does.map(|two| conflict(one, two)).into()), expected, "{one:?}");
        }
        for (other, expected) in [
            (AccessKind::Read, "..++++"),
            (AccessKind::AtomicRead, "..++++"),
            (AccessKind::Wait, "..++++"),
            (AccessKind::Write, "++++++"),
            (AccessKind::AtomicWrite, "++++++"),
            (AccessKind::Free, "++++++"),
        ] {
            assert_eq!(text(does.map(|does| matters(does, other)).into()), expected, "{other:?}");
        }
    }

    /// A word's uses, by themselves and together, with each kind of access.
    #[test]
    fn an_access_may_be_by_a_word_that_is_used_so() {
        for uses in 0..16 {
            let [read, written, atomic, other] = [0, 1, 2, 3].map(|at| uses >> at & 1 == 1);
            let mut all = Uses::default();
            (all.read, all.written, all.atomic, all.other) = (read, written, atomic, other);
            for (does, expected) in [
                (Does::Read, read || other),
                (Does::CopyToShared, read || other),
                (Does::Write, written || other),
                (Does::Atomic, atomic || other),
                (Does::Reduce, atomic || other),
                (Does::Unknown, true),
            ] {
                let found = evaluated(&[], &[(0, does)]);
                let span = &found.bounds.as_ref().expect("they are known").spans[0];
                assert_eq!(may_be_of(span, Some(all)), expected, "{does:?} {all:?}");
                assert!(may_be_of(span, None), "{does:?}");
            }
        }
    }

    /// Of whichever side the kernel is that waits, nothing but what needs no order is said for sure.
    #[test]
    fn beside_a_kernel_that_waits_a_finding_is_possible_only() {
        let bytes = || Bytes { ranges: vec![0..4, 8..9], writes: [true, false] };
        let own = Verdict::Possible(1, "its own reason".into());
        let sure = [Verdict::Certain(bytes()), Verdict::Likely(bytes())];
        for (waits, at) in [
            ([false; 2], None),
            ([true, false], Some(0)),
            ([false, true], Some(1)),
            ([true; 2], Some(0)),
        ] {
            for verdict in &sure {
                let expected = at.map(|at| Verdict::Possible(at, WAITS.into()));
                let expected = expected.unwrap_or_else(|| verdict.clone());
                assert_eq!(unless_it_waits(verdict.clone(), waits), expected, "{waits:?}");
            }
            for verdict in [&Verdict::Refuted, &own] {
                assert_eq!(unless_it_waits(verdict.clone(), waits), *verdict, "{waits:?}");
            }
        }
    }

    /// Bounds by their ends, in memory that is known or not, and of either of two ranges.
    #[test]
    fn bounds_say_something_up_to_their_ends() {
        let memory = 100..200;
        for (bytes, known) in
            [(100..200, true), (99..200, false), (100..201, false), (150..151, true)]
        {
            assert_eq!(is_bounded(&bytes, Some(&memory)), known, "{bytes:?}");
        }
        assert!(is_bounded(&(8..(1 << 32) + 7), None) && !is_bounded(&(8..(1 << 32) + 8), None));
        let found = evaluated(&[], &[(1, Does::Read)]);
        let mut span = found.bounds.expect("they are known").spans.remove(0);
        let own = span.bytes.clone().expect("they are known");
        let (far, less) = (0..own.start, own.start + 1..own.end);
        for (all, covers) in [
            (vec![own.clone()], true),
            (vec![far.clone(), own.clone()], true),
            (vec![own.start - 1..own.end + 1, far.clone()], true),
            (vec![less.clone(), own.start..own.end - 1], false),
            (vec![far], false),
            (vec![], false),
        ] {
            span.from_memory = true;
            assert_eq!(is_of_either(&span, &all), covers, "{all:?}");
            span.from_memory = false;
            assert!(is_of_either(&span, &all), "{all:?}");
        }
        // What is asked of a range: the first of those that it touches, one between, and the last.
        let ranges = |count: u64| (0..count).map(|at| own.start + at..own.start + at + 1);
        for (count, expected) in
            [(0, &[][..]), (1, &[0]), (2, &[0, 1]), (3, &[0, 1, 2]), (4, &[0, 2, 3])]
        {
            let all: Vec<_> =
                std::iter::once(less.end..less.end + 9).chain(ranges(count)).collect();
            let found = some_of(&span, &all);
            let expected: Vec<_> =
                expected.iter().map(|at| own.start + at..own.start + at + 1).collect();
            assert_eq!(found, expected, "{count}");
        }
        let all = std::iter::once(0..u64::MAX).collect::<Vec<_>>();
        assert_eq!(some_of(&span, &all), [own]);
    }

    /// Each kernel reads what the other writes, at two places: all pairs count.
    #[test]
    fn a_kernel_writes_if_it_does_at_any_of_the_places() {
        let code = || Arc::new(KernelCode::new("kernel".to_owned(), 90, None));
        let [one, two] = [(); 2].map(|()| Values::new(code(), [1; 6], &[]));
        let (memory, places) =
            (MEMORY..MEMORY + 4096, [MEMORY..MEMORY + 4, MEMORY + 64..MEMORY + 68]);
        let none: &[(u64, Does)] = &[];
        for (first, second) in [(Does::Read, Does::Write), (Does::Write, Does::Read)] {
            let (all, others) = ([(0, first), (1, second)], [(0, second), (1, first)]);
            let both = Bytes { ranges: places.to_vec(), writes: [true; 2] };
            for (ours, theirs, expected) in [
                ((&all[..], none), (&others[..], none), Verdict::Certain(both.clone())),
                ((&all, none), (none, &others), Verdict::Likely(both.clone())),
                ((none, &all), (&others, none), Verdict::Likely(both)),
            ] {
                let [ours, theirs] = [ours, theirs].map(|(sure, more)| evaluated(sure, more));
                let verdict = of_two(
                    [(&one, &ours), (&two, &theirs)],
                    &[],
                    Some(&memory),
                    (Reach::Code, None),
                );
                assert_eq!(verdict, expected, "{ours:?} {theirs:?}");
            }
        }
        // Of one place the other kernel only reads.
        let (ours, theirs) =
            (evaluated(&[(1, Does::Write)], none), evaluated(none, &[(1, Does::Read)]));
        for (pair, writes) in [([&ours, &theirs], [true, false]), ([&theirs, &ours], [false, true])]
        {
            let verdict =
                of_two([(&one, pair[0]), (&two, pair[1])], &[], Some(&memory), (Reach::Code, None));
            let bytes = Bytes { ranges: vec![places[1].clone()], writes };
            assert_eq!(verdict, Verdict::Likely(bytes));
        }
    }
}
