//! What each hooked call means: the calls of the feed, and what these need to know of the driver.
//!
//! No lock is held while a real function runs, as it may wait for a function of the program that
//! makes calls itself. So two calls that overlap may come to the feed in either order; of two calls
//! that the program has ordered the earlier one comes first. What gives a number back, such as a
//! free, comes to the feed before the real call, as another thread may get the number at once.
//! Questions to the driver are asked with the lock, so what the driver itself calls does not wait
//! for it.

use std::sync::OnceLock;

use cuda_order_check_engine::feed::Observer as _;
use cuda_order_check_engine::{Call as Made, Report, ThreadId};

use crate::call::{Call, Code, Handle, OK, thread};
use crate::code::nearby;
use crate::code::verdict::{Verdict, judge};
use crate::guard;
use crate::model::host_functions;
use crate::model::under_way::Visible;
use crate::model::waiting::{Operation, Submitted, WAITING, Waiting};
use crate::pinned::faults::Inside;
use crate::pinned::table;
use crate::report::trace::{NUMBER, TRACE};
use crate::watch::copies::wrote;
use crate::watch::host_functions::take_posted;
use crate::watch::kernels::kernel_part;
use crate::watch::memory::forget_gone;
use crate::watch::pinned::{host_accesses, settle_copies};
use crate::watch::threads::{note_end, threads_ended};
use crate::watch::{WATCH, Watch};

impl Watch {
    /// Whether a call that only submits work has nothing else to bring to the checker.
    pub(crate) fn only_submits(&self) -> bool {
        self.seen.calls > 0
            && self.values.pending.is_empty()
            && self.under_way.is_empty()
            && !guard::has_unseen()
            && !host_functions::have_posted()
            && !table::waiting()
            && TRACE.get().is_none()
            && self.feed.has_begun(ThreadId(thread()))
    }

    /// A call has submitted work. It waits, if it may.
    pub(crate) fn later(
        &mut self,
        call: &Call,
        name: &'static str,
        stream: Handle,
        may_wait: bool,
        work: impl FnOnce(&mut Self) -> Submitted,
    ) {
        let may_wait = may_wait && self.only_submits();
        let known = if may_wait { self.known_stream(call, stream) } else { None };
        let (made, stream) = match known {
            Some(stream) => {
                self.numbered(name);
                let mut made = Made::new(name, self.seen.calls, ThreadId(thread()));
                made.backtrace = self.feed.observer().backtrace();
                (made, stream)
            }
            None => {
                self.catch_up();
                self.begin(&Call { name, per_thread: call.per_thread });
                (self.feed.caller(), self.stream(call, stream))
            }
        };
        let work = work(self);
        let operations = &mut self.waiting.operations;
        operations.push(Operation { call: made, stream, work });
        if known.is_none() || operations.len() == WAITING {
            self.submit_waiting();
        }
        if known.is_none() {
            settle_copies(self);
        }
    }

    /// What waits comes to the checker.
    pub(crate) fn submit_waiting(&mut self) {
        if self.waiting.operations.is_empty() {
            return;
        }
        let Waiting { mut operations, mut values } = std::mem::take(&mut self.waiting);
        let (mut begin, mut accesses) = (0, Vec::new());
        for Operation { call, stream, work } in operations.drain(..) {
            self.feed.resume(call);
            match work {
                Submitted::Launch { function, sizes, end } => {
                    let of_launch = values.get(begin..end).unwrap_or_default();
                    begin = end;
                    let Watch { feed, pinned, kernels, .. } = self;
                    let of_host = |word| pinned.of_host(word);
                    let of_host = kernels.addresses(
                        feed,
                        &of_host,
                        function,
                        sizes,
                        of_launch,
                        &mut accesses,
                    );
                    kernel_part(self, stream, &accesses, of_host);
                }
                Submitted::Write(accesses) => wrote(self, stream, None, &accesses),
            }
        }
        values.clear();
        self.waiting = Waiting { operations, values };
    }
}

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
            wanted
        });
        all
    }

    /// Before the next call: what waits for it.
    pub(crate) fn catch_up(&mut self) {
        self.submit_waiting();
        take_posted(self);
        host_accesses(self);
    }

    /// A call has its number.
    pub(crate) fn numbered(&mut self, name: &'static str) {
        self.seen.calls += 1;
        let _ = NUMBER.try_with(|number| number.set(self.seen.calls));
        self.feed.observer_mut().begins(name);
        guard::planted(name);
    }

    /// A call begins.
    pub(crate) fn begin(&mut self, call: &Call) {
        if self.seen.calls == 0 {
            // Not at the load: a child of a fork that comes before has its own files.
            self.feed.observer_mut().open();
            AT_FIRST_CALL.get().into_iter().for_each(|does| does());
        }
        let unseen = guard::take_unseen();
        self.numbered(call.name);
        self.look();
        if !self.feed.has_begun(ThreadId(thread())) {
            note_end();
        }
        self.feed.begin(call.name, self.seen.calls, None);
        threads_ended(self);
        if unseen > 0 {
            self.feed.assume("calls that were not seen before it have ordered everything");
            self.order_everything();
        }
        if self.memory.context_may_be_gone {
            forget_gone(self);
        }
    }
}

pub(crate) static AT_FIRST_CALL: OnceLock<fn()> = OnceLock::new();

/// Sets what a process does at its first call.
pub(crate) fn at_first_call(does: fn()) {
    let _ = AT_FIRST_CALL.set(does);
}

/// What waits for the next call comes to the checker, unless another thread makes calls just now.
pub(crate) fn catch_up() {
    let _inside = Inside::new();
    let work = || {
        let candidates = {
            let mut watch = WATCH.try_lock().ok()?;
            let watch = watch.as_mut()?;
            watch.catch_up();
            watch.take_candidates()
        };
        judge_all(candidates);
        let mut watch = WATCH.try_lock().ok()?;
        watch.as_mut()?.feed.observer_mut().release_all();
        Some(())
    };
    guard::own(work);
}

/// Findings about launches are judged, without the lock, as this may take long.
fn judge_all(candidates: Vec<Report>) {
    for report in candidates {
        let verdict = judge(&report);
        if let Ok(mut watch) = WATCH.lock()
            && let Some(watch) = watch.as_mut()
        {
            settle(watch, report, verdict);
        }
    }
}

/// A finding about a launch was judged. If that says nothing for certain, the next one of its two
/// places is looked at.
pub(crate) fn settle(watch: &mut Watch, report: Report, verdict: Verdict) {
    let is_new = match verdict {
        Verdict::Refuted => false,
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

pub(crate) fn with<R>(f: impl FnOnce(&mut Watch) -> R) -> Option<R> {
    enter(|watch| {
        watch.catch_up();
        let result = f(watch);
        settle_copies(watch);
        result
    })
}

/// What waits for the next call still waits.
pub(crate) fn enter<R>(f: impl FnOnce(&mut Watch) -> R) -> Option<R> {
    let _inside = Inside::new();
    // A panic has poisoned the lock, and has left the rest as it was then.
    let work = || {
        let (result, candidates) = {
            let mut watch = WATCH.lock().ok()?;
            let watch = watch.as_mut()?;
            let result = f(watch);
            (result, watch.take_candidates())
        };
        judge_all(candidates);
        Some(result)
    };
    guard::own(work).flatten()
}

/// A call begins.
pub(crate) fn begin<R>(call: &Call, f: impl FnOnce(&mut Watch) -> R) -> Option<R> {
    with(|watch| {
        watch.begin(call);
        f(watch)
    })
}

/// The real call, and what it means if it succeeds.
pub(crate) fn after(call: &Call, real: impl FnOnce() -> Code, f: impl FnOnce(&mut Watch)) -> Code {
    let code = real();
    if code == OK {
        begin(call, f);
    }
    code
}

/// What is marked before the real call, and what a success means.
pub(crate) fn around<B>(
    call: &Call,
    before: impl FnOnce(&mut Watch) -> B,
    real: impl FnOnce() -> Code,
    f: impl FnOnce(&mut Watch, B),
) -> Code {
    let begun: Option<(Made, B)> = begin(call, |watch| {
        let before = before(watch);
        (watch.feed.caller(), before)
    });
    let code = real();
    if let (OK, Some((caller, before))) = (code, begun) {
        with(|watch| {
            watch.feed.resume(caller);
            // The program may store other values before its next call.
            watch.look();
            f(watch, before);
        });
    }
    code
}

/// The real call of a submission, with what is marked before. `seen` gives what others may see
/// meanwhile.
pub(crate) fn around_seen<B: Send + 'static>(
    call: &Call,
    before: impl FnOnce(&mut Watch) -> B,
    real: impl FnOnce() -> Code,
    seen: impl FnOnce(&B) -> Visible,
    f: impl FnOnce(&mut Watch, B) + Send + 'static,
) -> Code {
    let mut number = None;
    let before = |watch: &mut Watch| {
        let before = before(watch);
        let seen = seen(&before);
        if seen.places.is_empty() && !seen.at_once {
            return Some((before, f));
        }
        number = Some(watch.under_way(seen, |watch| f(watch, before)));
        None
    };
    let begun = begin(call, |watch| (before(watch), watch.feed.caller()));
    let code = real();
    match (begun, number) {
        (_, Some(number)) => _ = with(|watch| watch.returned(number, code)),
        (Some((Some((before, f)), caller)), None) if code == OK => {
            with(|watch| {
                watch.feed.resume(caller);
                watch.look();
                f(watch, before);
            });
        }
        _ => {}
    }
    code
}
