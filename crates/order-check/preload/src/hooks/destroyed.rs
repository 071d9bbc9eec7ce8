//! The calls that destroy, wait for or use an event or a stream: none may use it after its end, or destroy
//! it while another one waits for it.

use cuda_order_check_engine::{By, Problem, ThreadId};

use crate::call::{Call, Code, Handle, OK, thread};
use crate::model::destroyed::may_be_destroyed;
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
