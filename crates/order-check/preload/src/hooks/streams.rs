//! The calls of streams, captures and contexts, and those that wait for them.

use core::ffi::c_uint;

use cuda_order_check_engine::feed::Awaited;
use cuda_order_check_engine::{ContextId, EventId, StreamId};

use crate::call::{Call, Code, EXTERNAL, Handle, NOT_READY, OK, read};
use crate::hooks::destroyed;
use crate::model::memory::context_ends;
use crate::model::streams::capture_ended;
use crate::walk::{after_success, around, begin_call};
use crate::watch::Watch;

pub(crate) fn create(
    call: &Call,
    real: impl FnOnce() -> Code,
    stream: *mut Handle,
    flags: c_uint,
) -> Code {
    after_success(call, real, |watch| {
        // SAFETY: the place for the handle, which a success has written.
        let stream = unsafe { read(stream) };
        let context = watch.contexts.current();
        watch.created(stream, context, flags);
    })
}

pub(crate) fn destroy(call: &Call, real: impl FnOnce() -> Code, stream: Handle) -> Code {
    if stream <= 2 {
        return real();
    }
    destroyed::destroys(call, real, stream, |watch| {
        watch.streams.created.remove(&stream);
        watch.feed.stream_destroy(StreamId(stream as u64));
    })
}

pub(crate) fn wait_event(
    call: &Call,
    real: impl FnOnce() -> Code,
    stream: Handle,
    event: Handle,
    flags: c_uint,
) -> Code {
    after_success(call, real, |watch| {
        let stream = watch.stream(call, stream);
        match flags & EXTERNAL {
            0 => watch.feed.wait(stream, EventId(event as u64)),
            _ => watch.feed.wait_external(stream, EventId(event as u64)),
        }
    })
}

pub(crate) fn query(call: &Call, real: impl FnOnce() -> Code, stream: Handle) -> Code {
    let code = real();
    if code == OK || code == NOT_READY {
        begin_call(call, |watch| {
            let stream = watch.stream(call, stream);
            watch.feed.stream_query(stream, code == OK);
        });
    }
    code
}

pub(crate) fn await_stream(watch: &mut Watch, call: &Call, stream: Handle) -> Awaited {
    let stream = watch.stream(call, stream);
    watch.feed.await_stream(stream)
}

pub(crate) fn synchronize(call: &Call, real: impl FnOnce() -> Code, stream: Handle) -> Code {
    let before = |watch: &mut Watch| await_stream(watch, call, stream);
    destroyed::waits(call, real, stream, before, |watch, awaited| watch.feed.reached(&awaited))
}

/// Work in a stream that changes no memory, as a prefetch, or the upload of a graph.
pub(crate) fn plain(call: &Call, real: impl FnOnce() -> Code, stream: Handle) -> Code {
    after_success(call, real, |watch| {
        let stream = watch.stream(call, stream);
        watch.feed.work(stream, &[]);
    })
}

/// A capture into a graph that has nodes already.
pub(crate) fn capture_into(call: &Call, real: impl FnOnce() -> Code, stream: Handle) -> Code {
    after_success(call, real, |watch| {
        let stream = watch.stream(call, stream);
        watch.feed.capture_begin(stream);
        watch.graphs.partial.extend(watch.feed.capture_of(stream));
    })
}

/// What comes next is after other nodes: the driver is asked for the graph.
pub(crate) fn capture_moved(call: &Call, real: impl FnOnce() -> Code, stream: Handle) -> Code {
    after_success(call, real, |watch| {
        let stream = watch.stream(call, stream);
        watch.graphs.partial.extend(watch.feed.capture_of(stream));
    })
}

/// There are green contexts from now on: a wait for a context may be one for theirs.
pub(crate) fn green(
    call: &Call,
    real: impl FnOnce() -> Code,
    green: *mut Handle,
    device: i32,
) -> Code {
    after_success(call, real, |watch| {
        // SAFETY: the place for the handle, which a success has written.
        let green = unsafe { read(green) };
        watch.contexts.greens.insert(green, (device, vec![]));
    })
}

pub(crate) fn context_from_green(
    call: &Call,
    real: impl FnOnce() -> Code,
    context: *mut Handle,
    green: Handle,
) -> Code {
    after_success(call, real, |watch| {
        // SAFETY: as above.
        let context = unsafe { read(context) };
        if let Some((_, contexts)) = watch.contexts.greens.get_mut(&green)
            && !contexts.contains(&context)
        {
            contexts.push(context);
        }
    })
}

pub(crate) fn create_green(
    call: &Call,
    real: impl FnOnce() -> Code,
    stream: *mut Handle,
    green: Handle,
    flags: c_uint,
) -> Code {
    after_success(call, real, |watch| {
        // SAFETY: as above.
        let stream = unsafe { read(stream) };
        let device = watch.contexts.greens.get(&green).map(|(device, _)| *device);
        let (context, device) =
            device.map_or_else(|| watch.contexts.current(), |device| (green, device));
        watch.contexts.devices.insert(context, device);
        watch.created(stream, (context, device), flags);
    })
}

pub(crate) fn capture_begin(call: &Call, real: impl FnOnce() -> Code, stream: Handle) -> Code {
    after_success(call, real, |watch| {
        let stream = watch.stream(call, stream);
        watch.feed.capture_begin(stream);
    })
}

pub(crate) fn capture_end(
    call: &Call,
    real: impl FnOnce() -> Code,
    stream: Handle,
    graph: *mut Handle,
) -> Code {
    let code = real();
    begin_call(call, |watch| {
        let stream = watch.stream(call, stream);
        // SAFETY: the place for the handle, which a success has written.
        let graph = (code == OK).then(|| unsafe { read(graph) }).filter(|graph| *graph != 0);
        capture_ended(watch, stream, graph);
    });
    code
}

pub(crate) fn context_synchronize(
    call: &Call,
    real: impl FnOnce() -> Code,
    context: Handle,
) -> Code {
    let before = |watch: &mut Watch| {
        let contexts = watch.contexts.waited_for(context);
        watch.feed.await_contexts(&contexts)
    };
    around(call, before, real, |watch, awaited| watch.feed.reached(&awaited))
}

pub(crate) fn context_destroy(call: &Call, real: impl FnOnce() -> Code, context: Handle) -> Code {
    begin_call(call, |watch| {
        context_ends(watch, context);
        watch.feed.context_destroy(ContextId(context as u64));
        watch.contexts.ends(context);
        watch.streams.defaults.retain(|(own, _), _| *own != context);
    });
    real()
}

/// The current context gets access to the memory of a peer, or loses it.
pub(crate) fn peer_access(
    call: &Call,
    real: impl FnOnce() -> Code,
    peer: Handle,
    enabled: bool,
) -> Code {
    after_success(call, real, |watch| {
        let pair = (watch.contexts.current().0, peer);
        match enabled {
            true => watch.contexts.peers.insert(pair),
            false => watch.contexts.peers.remove(&pair),
        };
    })
}

/// The collector of a context's record.
pub(crate) const COLLECTOR: StreamId = StreamId((1 << 61) - 1);

pub(crate) fn context_record(
    call: &Call,
    real: impl FnOnce() -> Code,
    context: Handle,
    event: Handle,
) -> Code {
    after_success(call, real, |watch| {
        let contexts = watch.contexts.waited_for(context);
        watch.feed.context_record(&contexts, EventId(event as u64), COLLECTOR);
    })
}

pub(crate) fn context_wait(
    call: &Call,
    real: impl FnOnce() -> Code,
    context: Handle,
    event: Handle,
) -> Code {
    after_success(call, real, |watch| {
        let contexts = watch.contexts.waited_for(context);
        watch.feed.context_wait(&contexts, EventId(event as u64));
    })
}
