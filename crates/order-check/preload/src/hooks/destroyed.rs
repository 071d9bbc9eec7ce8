//! The calls that destroy, wait for or use an event or a stream: none may use it after its end, or destroy
//! it while another one waits for it.

use cuda_order_check_engine::{By, Problem, ThreadId};

use crate::call::{Call, Code, Handle, OK, thread};
use crate::state::destroyed::may_be_destroyed;
use crate::walk::{around, begin_call, caught_up, locked};
use crate::watch::Watch;

/// A call that destroys an object.
pub(crate) fn destroys(
    call: &Call,
    real: impl FnOnce() -> Code,
    handle: Handle,
    f: impl FnOnce(&mut Watch),
) -> Code {
    let number = begin_call(call, |watch| {
        let made = watch.feed.caller();
        let number = made.number;
        for waiting in watch.destroyed.ends(handle, made) {
            watch.feed.object_misused(Problem::DestroyedWhileUsed, waiting);
        }
        f(watch);
        number
    });
    let code = real();
    if let (Some(number), true) = (number, code != OK) {
        caught_up(|watch| watch.destroyed.lives(handle, number));
    }
    code
}

/// A call that waits for an object, with what is marked before and what a success means.
pub(crate) fn waits<B>(
    call: &Call,
    real: impl FnOnce() -> Code,
    handle: Handle,
    before: impl FnOnce(&mut Watch) -> B,
    f: impl FnOnce(&mut Watch, B),
) -> Code {
    let before = |watch: &mut Watch| {
        let call = watch.feed.caller();
        watch.destroyed.waiting.push((handle, call));
        before(watch)
    };
    let real = || {
        let code = real();
        let by = By::Thread(ThreadId(thread()));
        locked(|watch| {
            watch.destroyed.waiting.retain(|(object, call)| (*object, call.by) != (handle, by))
        });
        code
    };
    around(call, before, real, f)
}

/// A call with this object is about to be made.
pub(crate) fn uses(name: &'static str, handle: Handle) {
    // What waits for the next call goes on waiting if it is another one that was destroyed.
    if !may_be_destroyed(handle)
        || locked(|watch| watch.destroyed.is_destroyed(handle)) != Some(true)
    {
        return;
    }
    caught_up(|watch| {
        let Some(destroyed) = watch.destroyed.by_handle.get(&handle).cloned() else { return };
        watch.feed.observer_mut().want_stack(name);
        watch.call_begins(&Call { name, per_thread: false });
        watch.feed.object_misused(Problem::UseAfterDestroy, destroyed);
    });
}

/// A call that would have ordered something has failed: for its thread, or in a stream.
pub(crate) fn failed(name: &'static str, stream: Option<Handle>, code: Code) {
    let call = Call { name, per_thread: name.ends_with("_ptsz") };
    begin_call(&call, |watch| {
        // The driver may have refused the stream: it is not asked about it.
        let seen = stream.map(|stream| watch.seen_stream(&call, stream));
        match seen {
            None => watch.feed.call_failed(None, code),
            Some(Some(stream)) => watch.feed.call_failed(Some(stream), code),
            Some(None) => {}
        }
    });
}

#[cfg(test)]
mod tests {
    use super::uses;
    use crate::call::{Call, OK};
    use crate::hooks::declare::take_findings;
    use crate::hooks::tests::with_context;
    use crate::hooks::{events, streams};
    use crate::walk::locked;

    const CALL: Call = Call { name: "cuEventSynchronize", per_thread: false };
    const EVENT: usize = 0x1230;

    /// It is there after a call that has not destroyed it, and if another one has its handle: also one
    /// that no hook has created.
    #[test]
    fn an_object_that_is_there_may_be_used() {
        let _turn = crate::lock::TURN.lock();
        type Step = fn();
        let there: [Step; 3] = [
            || _ = events::destroy(&CALL, || 1, EVENT),
            || {
                events::destroy(&CALL, || OK, EVENT);
                events::create(&CALL, || OK, &mut { EVENT });
            },
            || {
                events::destroy(&CALL, || OK, EVENT);
                events::record(&CALL, || OK, EVENT, 0x100);
            },
        ];
        let gone: Step = || _ = events::destroy(&CALL, || OK, EVENT);
        for (at, (step, found)) in
            there.map(|step| (step, 0)).into_iter().chain([(gone, 1)]).enumerate()
        {
            with_context();
            events::create(&CALL, || OK, &mut { EVENT });
            step();
            uses("cuEventQuery", EVENT);
            assert_eq!(take_findings().len(), found, "{at}");
        }
    }

    /// A function without a hook may create another one with its handle: the driver is asked for that.
    #[test]
    fn a_stream_that_was_destroyed_is_not_known() {
        let _turn = crate::lock::TURN.lock();
        with_context();
        streams::create(&CALL, || OK, &mut { EVENT }, 1);
        let is_seen = || locked(|watch| watch.seen_stream(&CALL, EVENT).is_some());
        assert_eq!(is_seen(), Some(true));
        streams::destroy(&CALL, || OK, EVENT);
        assert_eq!(is_seen(), Some(false));
    }

    /// The end of one wait is not that of another thread's, nor that of this thread's for another event.
    #[test]
    fn an_object_is_waited_for_until_the_last_wait_is_over() {
        let _turn = crate::lock::TURN.lock();
        let aside = |run: fn()| std::thread::spawn(run).join().expect("no panic");
        let destroys: fn() = || _ = events::destroy(&CALL, || OK, EVENT);
        let waits: fn() = || _ = events::synchronize(&CALL, || OK, EVENT);
        let elsewhere: fn() = || _ = events::synchronize(&CALL, || OK, EVENT + 16);
        for (here, within, after, found) in [
            (elsewhere, destroys, waits, 1),
            ((|| ()) as fn(), destroys, waits, 1),
            (elsewhere, waits, destroys, 0),
        ] {
            with_context();
            for at in [0, 16] {
                events::create(&CALL, || OK, &mut { EVENT + at });
            }
            let real = || {
                aside(waits);
                here();
                aside(within);
                OK
            };
            events::synchronize(&CALL, real, EVENT);
            assert_eq!(take_findings().len(), found);
            aside(after);
            assert_eq!(take_findings().len(), 0);
        }
    }
}
