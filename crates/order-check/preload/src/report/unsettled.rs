//! Findings that are none if a signal comes for which a kernel waits.

use std::time::{Duration, Instant};

use cuda_order_check_engine::{Report, Side};

use crate::code::signals::Waiting;
use crate::code::verdict::{Verdict, unless_ordered};

/// How long a finding waits for what comes later.
pub(crate) const HELD_FOR: Duration = Duration::from_secs(2);

/// How many of them wait, of all places and of the same two. A signal may come for one of these, and for the
/// next one none.
const ALL: usize = 256;
const OF_A_PAIR: usize = 4;

#[derive(Default)]
pub(crate) struct Unsettled {
    /// The oldest one first.
    all: Vec<One>,
}

/// A finding between two sides, of which one may be behind a kernel that waits for a signal. A program may
/// submit the signal later than both.
struct One {
    report: Report,
    verdict: Verdict,
    waiting: Vec<Waiting>,
    /// The two places.
    pair: [String; 2],
    since: Instant,
}

impl Unsettled {
    /// A candidate was judged, and kernels wait that may make an order.
    pub(crate) fn add(&mut self, report: Report, verdict: Verdict, waiting: Vec<Waiting>) {
        let pair = pair_of(&report);
        self.all.push(One { report, verdict, waiting, pair, since: Instant::now() });
    }

    /// Whether as many findings of its two places wait as may.
    pub(crate) fn has_enough(&self, report: &Report) -> bool {
        if self.all.is_empty() {
            return false;
        }
        let pair = pair_of(report);
        self.all.iter().filter(|one| one.pair == pair).count() >= OF_A_PAIR
    }

    /// How many have waited as long as they do. If too many wait, the oldest ones have.
    #[inline]
    pub(crate) fn settled(&self) -> usize {
        if self.all.is_empty() {
            return 0;
        }
        let old = self.all.iter().take_while(|one| one.since.elapsed() > HELD_FOR).count();
        old.max(self.all.len().saturating_sub(ALL))
    }

    /// Takes so many, the oldest ones. Each comes with its verdict, now that it is seen whether a signal came.
    #[cold]
    pub(crate) fn take(&mut self, count: usize) -> Vec<(Report, Verdict)> {
        let oldest = self.all.drain(..count.min(self.all.len()));
        let settled = oldest.map(|One { report, verdict, waiting, .. }| {
            let verdict = match waiting.iter().find_map(Waiting::ordered) {
                Some((at, why)) => unless_ordered(&report, verdict, at, why),
                None => verdict,
            };
            (report, verdict)
        });
        settled.collect()
    }
}

/// The two places of a report.
pub(crate) fn pair_of(report: &Report) -> [String; 2] {
    let place = |side: &Side| {
        let trace = side.call.backtrace.as_ref().map(|trace| match trace.path() {
            Some(path) => path.to_string(),
            None => trace.outline(),
        });
        format!("{} {} {}", side.call.name, side.agent, trace.unwrap_or_default())
    };
    let mut pair = [place(&report.first), place(&report.second)];
    pair.sort_unstable();
    pair
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Instant;

    use cuda_order_check_engine::{Access, Call, Checker, Finding, Op, StreamId, ThreadId};

    use super::{ALL, HELD_FOR, OF_A_PAIR, One, Unsettled, pair_of};
    use crate::code::kernel::KernelCode;
    use crate::code::signals::{Side, forget, launched, waiting};
    use crate::code::verdict::Verdict;
    use crate::settings::Settings;

    /// A finding waits its time for a signal, though an older one has waited long enough, and there are many.
    #[test]
    fn a_finding_waits_for_a_signal_beside_older_ones() {
        let _turn = crate::lock::TURN.lock();
        let settings = Settings::from_text("log=/dev/null").expect("it is valid");
        crate::start::start(&|_| core::ptr::null_mut(), &settings);
        forget();
        let code = Arc::new(KernelCode::new("kernel".to_owned(), 90, None));
        launched(&code, Some((StreamId(2), 5)), None, false);
        let side = |number| Side { stream: Some(number), number: 2 * number + 2, launch: None };
        let report = || {
            let mut checker = Checker::default();
            for number in [1, 2] {
                let call = Call::new("cuMemsetD8Async", number, ThreadId(1));
                let accesses = &[Access::write(0x1000, 64)];
                checker.apply(call, Op::Work { stream: StreamId(number), accesses });
            }
            match checker.take_findings().pop() {
                Some(Finding::Report(report)) => report,
                other => panic!("no report: {other:?}"),
            }
        };
        let left = crate::walk::locked(|watch| {
            let all = &mut watch.feed.observer_mut().unsettled;
            let since = Instant::now().checked_sub(2 * HELD_FOR).expect("it runs for long");
            let pair = pair_of(&report());
            let (verdict, waiting_for) = (Verdict::Known, Vec::new());
            let old = One { report: report(), verdict, waiting: waiting_for, pair, since };
            all.all.push(old);
            let waits = |all: &mut Unsettled| {
                let waiting = waiting([side(1), side(2)]);
                assert!(!waiting.is_empty());
                all.add(report(), Verdict::Known, waiting);
            };
            waits(all);
            watch.numbered("cuNext");
            let all = &mut watch.feed.observer_mut().unsettled;
            let beside = all.all.len();
            let enough: Vec<bool> =
                (0..OF_A_PAIR).map(|_| (all.has_enough(&report()), waits(all)).0).collect();
            (0..ALL).for_each(|_| waits(all));
            watch.numbered("cuNext");
            (beside, enough, watch.feed.observer().unsettled.all.len())
        });
        forget();
        assert_eq!(left, Some((1, vec![false, false, false, true], ALL)));
    }
}
