//! The calls of events: creation, record, query, synchronize, export and import.

use core::ffi::c_uint;

use cuda_order_check_engine::EventId;

use crate::call::{Call, Code, EXTERNAL, Handle, NOT_READY, OK, read};
use crate::hooks::destroyed;
use crate::walk::{after_success, begin_call};
use crate::watch::Watch;

pub(crate) fn event_created(watch: &mut Watch, event: Handle, imported: bool) {
    watch.destroyed.created(event);
    watch.feed.event_create(EventId(event as u64), imported);
}

pub(crate) fn create(call: &Call, real: impl FnOnce() -> Code, event: *mut Handle) -> Code {
    after_success(call, real, |watch| {
        // SAFETY: the place for the handle, which a success has written.
        event_created(watch, unsafe { read(event) }, false)
    })
}

pub(crate) fn destroy(call: &Call, real: impl FnOnce() -> Code, event: Handle) -> Code {
    destroyed::destroys(call, real, event, |watch| watch.feed.event_destroy(EventId(event as u64)))
}

pub(crate) fn record(
    call: &Call,
    real: impl FnOnce() -> Code,
    event: Handle,
    stream: Handle,
) -> Code {
    after_success(call, real, |watch| {
        let stream = watch.stream(call, stream);
        // It may be one that no hook has created.
        watch.destroyed.created(event);
        watch.feed.record(EventId(event as u64), stream);
        // Nobody sees its end: another process may report it from now on.
        watch.feed.record_exported(EventId(event as u64), None);
    })
}

pub(crate) fn record_with_flags(
    call: &Call,
    real: impl FnOnce() -> Code,
    event: Handle,
    stream: Handle,
    flags: c_uint,
) -> Code {
    if flags & EXTERNAL == 0 {
        return record(call, real, event, stream);
    }
    after_success(call, real, |watch| {
        let stream = watch.stream(call, stream);
        watch.feed.record_external(EventId(event as u64), stream);
    })
}

pub(crate) fn query(call: &Call, real: impl FnOnce() -> Code, event: Handle) -> Code {
    let code = real();
    if code == OK || code == NOT_READY {
        begin_call(call, |watch| watch.feed.event_query(EventId(event as u64), code == OK));
    }
    code
}

pub(crate) fn synchronize(call: &Call, real: impl FnOnce() -> Code, event: Handle) -> Code {
    let before = |watch: &mut Watch| watch.feed.await_event(EventId(event as u64));
    destroyed::waits(call, real, event, before, |watch, awaited| watch.feed.reached(&awaited))
}

pub(crate) fn elapsed(
    call: &Call,
    real: impl FnOnce() -> Code,
    start: Handle,
    end: Handle,
) -> Code {
    after_success(call, real, |watch| {
        watch.feed.event_query(EventId(start as u64), true);
        watch.feed.event_query(EventId(end as u64), true);
    })
}

pub(crate) fn exported(call: &Call, real: impl FnOnce() -> Code, event: Handle) -> Code {
    after_success(call, real, |watch| watch.feed.event_exported(EventId(event as u64), None))
}

pub(crate) fn imported(call: &Call, real: impl FnOnce() -> Code, event: *mut Handle) -> Code {
    // SAFETY: the place for the handle, which a success has written.
    after_success(call, real, |watch| event_created(watch, unsafe { read(event) }, true))
}
