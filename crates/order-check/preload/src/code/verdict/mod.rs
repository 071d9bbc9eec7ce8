//! The verdict on a candidate, by the code of the kernels that it is about.
//!
//! From what is cheap to what takes time: the accesses that some thread surely makes
//! ([`Evaluated::sure`]), what the code does with the words of the parameters, where its accesses may
//! be at all ([`Bounds::spans`](crate::code::evaluated::Bounds)), and then threads that are run or looked
//! for. The first that decides is the answer.

use core::ops::Range;

use cuda_order_check_engine::{Other, Problem, Report, Side};

use crate::code::Reason;
use crate::code::evaluated::Evaluated;
use crate::code::launch::Values;
use crate::code::signals::{self, Waiting};
use crate::code::time::{CANDIDATES, NEARBY, Time};

mod accesses;
mod nearby;
mod search;
#[cfg(test)]
mod tests;
mod two_launches;
mod work;

pub(crate) use accesses::{may_write, reads};
pub(crate) use nearby::judge_nearby;
pub(crate) use work::OtherWork;

use two_launches::of_two_launches;
use work::of_launch_and_work;

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
    /// What the calls say: no launch is on either side.
    Known,
    /// A thread that surely runs accesses these bytes.
    Certain(Bytes),
    /// Accesses are somewhere in these bytes, as far as the code says.
    Likely(Bytes),
    /// It is not known: in which launch, and why.
    Possible(usize, Reason),
}

/// A launch, and what its code says of it.
pub(crate) type EvaluatedLaunch<'a> = (&'a Values, &'a Evaluated);

/// What is asked of a launch and what it meets.
#[derive(Clone, Copy)]
pub(crate) struct Question<'a> {
    /// The bytes that both sides have an address in.
    shared: &'a [Range<u64>],
    /// The allocation of the finding: bounds that go beyond it say nothing.
    memory: Option<&'a Range<u64>>,
    reach: Reach,
    /// The time for asking threads. Without it only earlier answers count.
    time: Option<Time>,
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

const WAITS: &str = "it may wait for other work through memory, and such an order is not seen";

/// A report, of which mostly one side is a launch, or both. It may have the code of kernels decoded. If the
/// verdict is a finding, it is none as soon as one of the signals comes for which kernels wait.
pub(crate) fn judge(report: &Report) -> (Verdict, Vec<Waiting>) {
    let verdict = alone(report);
    if !is_finding(&verdict) || report.problem != Problem::Race {
        return (verdict, Vec::new());
    }
    let waiting = signals::waiting([0, 1].map(|at| side_of(report, at)));
    match waiting.iter().find_map(Waiting::ordered) {
        Some((at, why)) => (unless_ordered(report, verdict, at, why), Vec::new()),
        None => (verdict, waiting),
    }
}

/// What is left of a verdict if an order is not seen.
pub(crate) fn unless_ordered(
    report: &Report,
    verdict: Verdict,
    at: usize,
    why: &'static str,
) -> Verdict {
    match verdict {
        // What would be possible there is no finding.
        _ if report.is_nearby() => Verdict::Refuted,
        verdict if is_finding(&verdict) => Verdict::Possible(at, why.into()),
        verdict => verdict,
    }
}

fn side_of(report: &Report, at: usize) -> signals::Side<'_> {
    let side = if at == 0 { &report.first } else { &report.second };
    let stream = side.agent.stream_id().map(|stream| stream.0);
    signals::Side { stream, number: side.call.number, launch: launch_of(side) }
}

/// The verdict without an order that other kernels make between the two.
///
/// What memory holds is asked last. That nothing unseen has changed it is likely.
fn alone(report: &Report) -> Verdict {
    let sides = [&report.first, &report.second];
    let launches = sides.map(launch_of);
    let verdict = judge_launches(report, launches);
    if is_sure(&verdict) || verdict == Verdict::Known {
        return verdict;
    }
    let time = if report.is_nearby() { NEARBY } else { CANDIDATES };
    let recalled = launches.map(|launch| launch.and_then(|launch| launch.recalled(time)));
    if recalled.iter().all(Option::is_none) {
        return verdict;
    }
    let [first, second] = [0, 1].map(|at| recalled[at].or(launches[at]));
    match judge_launches(report, [first, second]) {
        Verdict::Certain(bytes) | Verdict::Likely(bytes) => Verdict::Likely(bytes),
        _ => verdict,
    }
}

fn judge_launches(report: &Report, launches: [Option<&Values>; 2]) -> Verdict {
    let sides = [&report.first, &report.second];
    if report.is_nearby() {
        let verdict = nearby::judge(sides, launches, &report.shared);
        return match order_with_host(report).filter(|_| is_sure(&verdict)) {
            Some((at, why)) => unless_ordered(report, verdict, at, why),
            None => verdict,
        };
    }
    let question = Question {
        shared: &report.shared,
        memory: report.allocation.as_ref().map(|allocation| &allocation.range),
        reach: Reach::Code,
        time: Some(CANDIDATES),
    };
    let allocations = question.memory.map_or(&[][..], std::slice::from_ref);
    let evaluate = |at: usize, launch: &Values| {
        launch.evaluate(CANDIDATES).map_err(|why| Verdict::Possible(at, why))
    };
    let with_work = |at: usize, launch: &Values, other: &Side| match evaluate(at, launch) {
        Ok(found) => {
            let number = side_of(report, at).number;
            let work = OtherWork::of(other, number);
            let waits = found.may_wait_for_work(launch, allocations, |bytes| work.hits(bytes));
            let verdict = of_launch_and_work((launch, &found), work, at, &question);
            if verdict == Verdict::Possible(at, work::FLAG.into())
                && other.agent.stream_id().is_some()
            {
                signals::polled(number, other.call.number);
            }
            if is_sure(&verdict)
                && let Some((at, why)) = order_with_host(report)
            {
                return Verdict::Possible(at, why.into());
            }
            unless_it_waits(verdict, [0, 1].map(|side| side == at && waits))
        }
        Err(unknown) => unknown,
    };
    match launches {
        [Some(one), Some(two)] => match (evaluate(0, one), evaluate(1, two)) {
            (Ok(first), Ok(second)) => {
                let verdict = of_two_launches([(one, &first), (two, &second)], &question);
                let waits = [
                    first.may_wait_for(one, allocations, (two, &second)),
                    second.may_wait_for(two, allocations, (one, &first)),
                ];
                match order_with_host(report).filter(|_| is_sure(&verdict)) {
                    Some((at, why)) => Verdict::Possible(at, why.into()),
                    None => unless_it_waits(verdict, waits),
                }
            }
            // Of two that are not known the first is named.
            (Err(unknown), _) | (_, Err(unknown)) => unknown,
        },
        [Some(launch), None] => with_work(0, launch, &report.second),
        [None, Some(launch)] => with_work(1, launch, &report.first),
        [None, None] => match order_with_host(report) {
            Some((at, why)) => Verdict::Possible(at, why.into()),
            None => Verdict::Known,
        },
    }
}

/// The side that is work of a stream, if the other one is the host's.
fn beside_host(report: &Report) -> Option<(usize, &Side)> {
    let sides = [&report.first, &report.second];
    let is_host = sides.map(|side| side.agent.stream_id().is_none());
    let is_race = report.problem == Problem::Race && is_host.contains(&true);
    let at = is_host.iter().position(|is| !is).filter(|_| is_race)?;
    Some((at, sides.get(at)?))
}

/// Whether kernels were launched, which may make an order between the two. Only then a finding without a
/// launch is judged.
pub(crate) fn may_have_flags(report: &Report) -> bool {
    report.problem == Problem::Race && signals::any()
}

/// The side that the host may be in an order with by flags, and why. It may order two streams, too: it sees
/// how far the one is, and goes on with the other.
fn order_with_host(report: &Report) -> Option<(usize, &'static str)> {
    if !may_have_flags(report) {
        return None;
    }
    let sides = [0, 1].map(|at| side_of(report, at));
    let first = usize::from(sides[1].number < sides[0].number);
    let at = beside_host(report).map_or(first, |(at, _)| at);
    Some((at, signals::may_order(sides[at], sides[1 - at])?))
}

fn launch_of(side: &Side) -> Option<&Values> {
    side.launch()?.get::<Values>()
}

/// Kernels that wait for each other, as those of NCCL do, are in an order that no call makes.
fn unless_it_waits(verdict: Verdict, waits: [bool; 2]) -> Verdict {
    match waits.iter().position(|waits| *waits) {
        Some(at) if is_sure(&verdict) => Verdict::Possible(at, WAITS.into()),
        _ => verdict,
    }
}

fn is_finding(verdict: &Verdict) -> bool {
    is_sure(verdict) || *verdict == Verdict::Known
}

fn is_sure(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Certain(_) | Verdict::Likely(_))
}

/// Whether a launch was evaluated, and what it meets needs no order with it. Nothing is decoded and no
/// thread is run for this: it is asked before there is a candidate.
pub(crate) fn is_apart(launch: &Values, shared: &[Range<u64>], other: &Other<'_>) -> bool {
    let evaluated = |launch: &Values| launch.evaluated().and_then(Result::ok);
    let question = Question { shared, memory: None, reach: Reach::Code, time: None };
    let Some(found) = evaluated(launch) else { return false };
    let verdict = match other.launch {
        None => of_launch_and_work((launch, &found), OtherWork::of_device(other), 0, &question),
        Some(other) => {
            let Some(other) = other.get::<Values>() else { return false };
            let Some(second) = evaluated(other) else { return false };
            of_two_launches([(launch, &found), (other, &second)], &question)
        }
    };
    verdict == Verdict::Refuted
}
