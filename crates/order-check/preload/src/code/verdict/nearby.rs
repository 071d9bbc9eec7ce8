//! A launch, and work elsewhere in the allocations that it has addresses in.

use core::ops::Range;

use cuda_order_check_engine::Side;

use super::two_launches::of_two_launches;
use super::work::of_launch_and_work;
use super::{EvaluatedLaunch, OtherWork, Question, Reach, Verdict};
use crate::code::evaluated::Evaluated;
use crate::code::launch::Values;
use crate::code::time::{NEARBY, Time};

/// How many comparisons one pair may take.
const COMPARISONS: usize = 1 << 16;

/// Such a pair is reported only if the code is sure of it: what is possible only is refuted.
pub(super) fn judge(
    sides: [&Side; 2],
    launches: [Option<&Values>; 2],
    shared: &[Range<u64>],
) -> Verdict {
    let time = Some(NEARBY);
    let evaluate = |launch: &Values| launch.evaluate(NEARBY).ok();
    let [first, second] = sides;
    let with_work = |at: usize, launch: &Values, other: &Side| {
        let found = evaluate(launch)?;
        let work = OtherWork::of(other, sides[at].call.number);
        Some(judge_nearby((launch, &found), Err(work), at, shared, time))
    };
    let judged = match launches {
        [Some(one), Some(two)] => evaluate(one).zip(evaluate(two)).map(|(first, second)| {
            judge_nearby((one, &first), Ok((two, &second)), 0, shared, time)
        }),
        [Some(launch), None] => with_work(0, launch, second),
        [None, Some(launch)] => with_work(1, launch, first),
        [None, None] => None,
    };
    judged.unwrap_or(Verdict::Refuted)
}

/// A launch, which is the one side or the other, and another launch or other work, somewhere in
/// allocations.
pub(crate) fn judge_nearby(
    own: EvaluatedLaunch<'_>,
    other: Result<EvaluatedLaunch<'_>, OtherWork<'_>>,
    at: usize,
    allocations: &[Range<u64>],
    time: Option<Time>,
) -> Verdict {
    let size = |found: &Evaluated| {
        found.sure.len() + found.bounds.as_ref().map_or(0, |bounds| bounds.spans.len())
    };
    let others = match &other {
        Ok((_, found)) => size(found),
        Err(work) => work.accesses.len(),
    };
    let waits = match &other {
        Ok(other) => {
            own.1.may_wait_for(own.0, allocations, *other)
                || other.1.may_wait_for(other.0, allocations, own)
        }
        Err(work) => own.1.may_wait_for_work(own.0, allocations, |bytes| work.hits(bytes)),
    };
    if waits || size(own.1).saturating_mul(others) > COMPARISONS {
        return Verdict::Refuted;
    }
    let question = Question { shared: allocations, memory: None, reach: Reach::Sure, time };
    let verdict = match other {
        Ok(other) => of_two_launches([own, other], &question),
        Err(work) => of_launch_and_work(own, work, at, &question),
    };
    match verdict {
        Verdict::Possible(..) => Verdict::Refuted,
        verdict => verdict,
    }
}
