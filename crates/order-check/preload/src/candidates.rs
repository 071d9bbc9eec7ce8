//! Findings about launches: candidates, until the code of the kernels has said what they mean.

use cuda_order_check_engine::Report;

use crate::code::nearby;
use crate::code::signals::Waiting;
use crate::code::verdict::{Verdict, judge};
use crate::watch::{WATCH, Watch};

impl Watch {
    /// The findings about launches that are to be judged.
    pub(crate) fn take_candidates(&mut self) -> Vec<Report> {
        let mut all = self.feed.observer_mut().take_candidates();
        if all.is_empty() {
            return all;
        }
        all.retain(|report| {
            let wanted = self.feed.observer().wants(report);
            if !wanted && report.is_nearby() {
                nearby::is_settled(report);
            } else if !wanted {
                self.feed.confirm(report);
            }
            wanted && !self.feed.observer().unsettled.has_enough(report)
        });
        all
    }

    /// The findings that have waited for a signal as long as they do, or so many of them, are reported if
    /// none has come.
    #[cold]
    pub(crate) fn settle(&mut self, count: usize) {
        for (report, verdict) in self.feed.observer_mut().unsettled.take(count) {
            if verdict != Verdict::Refuted {
                apply_verdict(self, report, verdict, Vec::new());
            }
        }
    }

    /// Reports the findings that wait for something.
    pub(crate) fn release_all(&mut self) {
        self.settle(usize::MAX);
        self.feed.observer_mut().release_held();
    }
}

/// Findings about launches are judged, without the lock, as this may take long.
pub(crate) fn judge_all(candidates: Vec<Report>) {
    for report in candidates {
        let (verdict, waiting) = judge(&report);
        if let Ok(mut watch) = WATCH.lock()
            && let Some(watch) = watch.as_mut()
        {
            apply_verdict(watch, report, verdict, waiting);
        }
    }
}

/// A finding about a launch was judged. If that says nothing for certain, the next one of its two
/// places is looked at. With kernels that wait it is settled later, and until then it is none: the next
/// one of its places may be one without a signal.
pub(crate) fn apply_verdict(
    watch: &mut Watch,
    report: Report,
    verdict: Verdict,
    waiting: Vec<Waiting>,
) {
    if !waiting.is_empty() {
        watch.feed.observer_mut().unsettled.add(report, verdict, waiting);
        return;
    }
    let is_new = match verdict {
        Verdict::Refuted => {
            if report.is_nearby() {
                nearby::is_refuted(&report);
            }
            false
        }
        Verdict::Known => true,
        Verdict::Possible(..) => {
            let [first, last] = watch.feed.observer_mut().is_possible(&report);
            if last {
                watch.feed.confirm(&report);
            }
            first
        }
        Verdict::Certain(_) | Verdict::Likely(_) => {
            let is_new = watch.feed.confirm(&report);
            if !is_new && report.is_nearby() {
                nearby::is_settled(&report);
            }
            is_new
        }
    };
    if is_new {
        watch.feed.observer_mut().judged(report, verdict);
    }
}

#[cfg(test)]
mod tests {
    use cuda_order_check_engine::feed::Observer as _;
    use cuda_order_check_engine::{Access, Call, Finding, StreamId, ThreadId};

    use super::apply_verdict;
    use crate::code::verdict::{Bytes, Verdict};
    use crate::report::output::LOOKS;
    use crate::settings::{Settings, launched};
    use crate::start::start;
    use crate::walk::locked;
    use crate::watch::Watch;

    /// A kernel and a memset that have no order, once more: how many candidates there are.
    fn round(watch: &mut Watch, round: u64, verdict: &Verdict) -> usize {
        let write = || Access::write(0x1000, 64);
        let calls = [("cuLaunchKernel of k", launched(write())), ("cuMemsetD8Async", write())];
        for (stream, (name, access)) in (1..).zip(calls) {
            watch.feed.resume(Call::new(name, 2 * round + stream, ThreadId(1)));
            watch.feed.work(StreamId(stream), &[access]);
        }
        // The next round is after this one.
        for stream in [1, 2] {
            let awaited = watch.feed.await_stream(StreamId(stream));
            watch.feed.reached(&awaited);
        }
        let output = watch.feed.observer_mut();
        let all = output.take_candidates();
        let count = all.len();
        all.into_iter().for_each(|report| output.finding(Finding::Report(report)));
        for report in watch.take_candidates() {
            apply_verdict(watch, report, verdict.clone(), Vec::new());
        }
        count
    }

    /// In a loop: what was reported, or is of no class that is on, is no candidate again, and what is
    /// possible only so often.
    #[test]
    fn a_pair_is_judged_until_it_is_settled() {
        const ROUNDS: u64 = LOOKS as u64 + 2;
        let bytes = Bytes { ranges: Vec::new(), writes: [true; 2] };
        let possible = Verdict::Possible(0, "nobody knows".into());
        for (class, verdict, candidates, errors, possible) in [
            ("+copy", Verdict::Certain(bytes.clone()), 1, 1, 0),
            ("+copy", Verdict::Likely(bytes.clone()), 1, 1, 0),
            ("-copy", Verdict::Certain(bytes), 1, 0, 0),
            ("+copy", Verdict::Refuted, ROUNDS, 0, 0),
            ("+copy", possible, u64::from(LOOKS), 0, 1),
        ] {
            let _turn = crate::lock::TURN.lock();
            let settings = format!("log=/dev/null,class={class}");
            start(&|_| core::ptr::null_mut(), &Settings::from_text(&settings).expect("valid"));
            let found = locked(|watch| {
                let all =
                    (0..ROUNDS).map(|at| round(watch, at, &verdict) as u64).collect::<Vec<_>>();
                watch.release_all();
                let output = watch.feed.observer();
                (all, output.findings.errors().len(), output.lines_of_possible())
            });
            let (all, found, lines) = found.expect("no error");
            let expected: Vec<u64> = (0..ROUNDS).map(|at| u64::from(at < candidates)).collect();
            assert_eq!((all, found), (expected, errors), "{class} {verdict:?}");
            let line = lines.first().map(|line| line.starts_with(&format!("{possible} possible")));
            assert_eq!(line, (possible > 0).then_some(true), "{class} {verdict:?} {lines:?}");
        }
    }
}
