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
