//! The walk of a hooked call, and what happens at each one.
//!
//! `cuMemcpyHtoDAsync`, for example:
//!
//! 1. **Hook.** A line of [`table`](crate::table) makes the function that the program calls. It runs in
//!    [`run`](crate::hooks::run::run), which forwards the call while the checker is off, and goes to
//!    [`copies::copy`](crate::hooks::copies::copy) with the real function and both sides of the copy.
//! 2. A copy within a device would only [wait](crate::model::waiting) for the next call. This one has a side of
//!    the host's, so [`around_or_defer`] goes on with it.
//! 3. **Before the real call**, with the lock of the checker: what waits comes first
//!    ([`Watch::catch_up`]), then the call begins ([`Watch::call_begins`]), and
//!    [`prepare_copy`](crate::model::copies::prepare_copy) asks the **model** for the stream, and what the
//!    memory of each side is.
//! 4. **The real call**, without the lock.
//! 5. **If it succeeds**, with the lock: [`copied`](crate::model::copies::copied) gives the accesses to the
//!    **feed**, which makes operations for the **engine** of them. What the call's return says of the
//!    stream follows.
//! 6. Pages of pinned memory that the copy uses are protected ([`settle_copies`]). Without the lock,
//!    findings about launches are [judged](crate::candidates).
//!
//! No lock is held while a real function runs, as it may wait for a function of the program that
//! makes calls itself. So two calls that overlap may come to the feed in either order; of two calls
//! that the program has ordered the earlier one comes first. What gives a number back, such as a
//! free, comes to the feed before the real call, as another thread may get the number at once.
//! Questions to the driver are asked with the lock, so what the driver itself calls does not wait
//! for it.

use std::sync::OnceLock;

use cuda_order_check_engine::{Call as Made, ThreadId};

use crate::call::{Call, Code, OK, thread};
use crate::candidates::judge_all;
use crate::guard;
use crate::model::memory::forget_gone;
use crate::model::pinned::{host_accesses, settle_copies};
use crate::model::threads::{note_end, threads_ended};
use crate::pinned::faults::Inside;
use crate::report::trace::NUMBER;
use crate::state::under_way::Visible;
use crate::watch::{WATCH, Watch};

/// With the checker, and no more: what waits for the next call goes on waiting.
pub(crate) fn locked<R>(f: impl FnOnce(&mut Watch) -> R) -> Option<R> {
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

/// With the checker, after all that came before this call, as far as the library knows of it.
pub(crate) fn caught_up<R>(f: impl FnOnce(&mut Watch) -> R) -> Option<R> {
    locked(|watch| {
        watch.catch_up();
        let result = f(watch);
        settle_copies(watch);
        result
    })
}

/// A call begins, and `f` is all that it means.
pub(crate) fn begin_call<R>(call: &Call, f: impl FnOnce(&mut Watch) -> R) -> Option<R> {
    locked(|watch| watch.within_call(call, f))
}

/// The real call, and what its success means. What it gives out is there by then.
pub(crate) fn after_success(
    call: &Call,
    real: impl FnOnce() -> Code,
    f: impl FnOnce(&mut Watch),
) -> Code {
    let code = real();
    if code == OK {
        begin_call(call, f);
    }
    code
}

/// What is noted before the real call, and what its success means, as one call.
pub(crate) fn around<B>(
    call: &Call,
    before: impl FnOnce(&mut Watch) -> B,
    real: impl FnOnce() -> Code,
    f: impl FnOnce(&mut Watch, B),
) -> Code {
    let begun: Option<(Made, B)> = begin_call(call, |watch| {
        let before = before(watch);
        (watch.feed.caller(), before)
    });
    let code = real();
    if let (OK, Some((caller, before))) = (code, begun) {
        caught_up(|watch| {
            watch.feed.resume(caller);
            // The program may store other values before its next call.
            watch.look_at_values();
            f(watch, before);
        });
    }
    code
}

/// The real call of a submission. What it submits may be seen before it returns, so what `visible` gives
/// is under way until then: whoever sees it first makes `f` run.
pub(crate) fn around_submission<B: Send + 'static>(
    call: &Call,
    before: impl FnOnce(&mut Watch) -> B,
    real: impl FnOnce() -> Code,
    visible: impl FnOnce(&B) -> Visible,
    f: impl FnOnce(&mut Watch, B) + Send + 'static,
) -> Code {
    let never = (|_: &Watch| false, |_: &mut Watch| {});
    around_or_defer(call, never, before, real, visible, f)
}

/// The same, unless the submission may wait for the next call, as the host has no part in it: then
/// its success means `defer`.
pub(crate) fn around_or_defer<B: Send + 'static>(
    call: &Call,
    (may_wait, defer): (impl FnOnce(&Watch) -> bool, impl FnOnce(&mut Watch)),
    before: impl FnOnce(&mut Watch) -> B,
    real: impl FnOnce() -> Code,
    visible: impl FnOnce(&B) -> Visible,
    f: impl FnOnce(&mut Watch, B) + Send + 'static,
) -> Code {
    enum Begun<B, F> {
        Waits,
        UnderWay(u64),
        Alone(Made, B, F),
    }
    let begun = locked(|watch| {
        if may_wait(watch) {
            return Begun::Waits;
        }
        watch.within_call(call, |watch| {
            let before = before(watch);
            let visible = visible(&before);
            if visible.ids.is_empty() && !visible.at_once {
                return Begun::Alone(watch.feed.caller(), before, f);
            }
            Begun::UnderWay(watch.submission_begins(visible, |watch| f(watch, before)))
        })
    });
    let code = real();
    match begun {
        Some(Begun::UnderWay(number)) => {
            caught_up(|watch| watch.submission_returned(number, code));
        }
        Some(Begun::Waits) if code == OK => _ = locked(defer),
        Some(Begun::Alone(caller, before, f)) if code == OK => {
            caught_up(|watch| {
                watch.feed.resume(caller);
                watch.look_at_values();
                f(watch, before);
            });
        }
        _ => {}
    }
    code
}

impl Watch {
    /// Before the next call: what waits for it.
    pub(crate) fn catch_up(&mut self) {
        self.submit_waiting();
        host_accesses(self);
    }

    /// A call begins after all that came before it, and `f` is all that it means.
    fn within_call<R>(&mut self, call: &Call, f: impl FnOnce(&mut Self) -> R) -> R {
        self.catch_up();
        self.call_begins(call);
        let result = f(self);
        settle_copies(self);
        result
    }

    /// A call has its number.
    pub(crate) fn numbered(&mut self, name: &'static str) {
        self.seen.calls += 1;
        let _ = NUMBER.try_with(|number| number.set(self.seen.calls));
        self.feed.observer_mut().begins(name);
        let settled = self.feed.observer().unsettled.settled();
        if settled > 0 {
            self.settle(settled);
        }
        guard::planted(name);
    }

    /// A call begins: it has a number, and what the host may have seen before it is looked at.
    pub(crate) fn call_begins(&mut self, call: &Call) {
        if self.seen.calls == 0 {
            // Not at the load: a child of a fork that comes before has its own files.
            self.feed.observer_mut().open();
            AT_FIRST_CALL.get().into_iter().for_each(|does| does());
        }
        let unseen = guard::take_unseen();
        self.numbered(call.name);
        self.look_at_values();
        if !self.feed.has_begun(ThreadId(thread())) {
            note_end();
        }
        self.feed.begin(call.name, self.seen.calls, None);
        threads_ended(self);
        if unseen > 0 {
            self.feed.assume("calls that were not seen before it have ordered everything");
            self.order_everything();
        }
        if self.memory.context_may_have_ended {
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
        watch.as_mut()?.release_all();
        Some(())
    };
    guard::own(work);
}
