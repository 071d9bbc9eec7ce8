//! Streams, captures and contexts, and the calls that wait for them.

use super::*;

pub(crate) fn create(
    call: &Call,
    real: impl FnOnce() -> Code,
    stream: *mut Handle,
    flags: c_uint,
) -> Code {
    after(call, real, |watch| {
        // SAFETY: the place for the handle, which a success has written.
        let stream = unsafe { read(stream) };
        let of = watch.current();
        watch.created(stream, of, flags);
    })
}

pub(crate) fn destroy(call: &Call, real: impl FnOnce() -> Code, stream: Handle) -> Code {
    if stream <= 2 {
        return real();
    }
    objects::destroys(call, real, stream, |watch| {
        watch.streams.remove(&stream);
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
    after(call, real, |watch| {
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
        begin(call, |watch| {
            let stream = watch.stream(call, stream);
            watch.feed.stream_query(stream, code == OK);
        });
    }
    code
}

fn await_stream(watch: &mut Watch, call: &Call, stream: Handle) -> Awaited {
    let stream = watch.stream(call, stream);
    watch.feed.await_stream(stream)
}

pub(crate) fn synchronize(call: &Call, real: impl FnOnce() -> Code, stream: Handle) -> Code {
    let before = |watch: &mut Watch| await_stream(watch, call, stream);
    objects::waits(call, real, stream, before, |watch, awaited| watch.feed.reached(&awaited))
}

/// Work in a stream that changes no memory, as a prefetch.
pub(crate) fn plain(call: &Call, real: impl FnOnce() -> Code, stream: Handle) -> Code {
    after(call, real, |watch| {
        let stream = watch.stream(call, stream);
        watch.feed.work(stream, &[]);
    })
}

/// A capture into a graph that has nodes already.
pub(crate) fn capture_into(call: &Call, real: impl FnOnce() -> Code, stream: Handle) -> Code {
    after(call, real, |watch| {
        let stream = watch.stream(call, stream);
        watch.feed.capture_begin(stream);
        watch.partial.extend(watch.feed.capture_of(stream));
    })
}

/// What comes next is after other nodes: the driver is asked for the graph.
pub(crate) fn capture_moved(call: &Call, real: impl FnOnce() -> Code, stream: Handle) -> Code {
    after(call, real, |watch| {
        let stream = watch.stream(call, stream);
        watch.partial.extend(watch.feed.capture_of(stream));
    })
}

/// There are green contexts from now on: a wait for a context may be one for theirs.
pub(crate) fn green(
    call: &Call,
    real: impl FnOnce() -> Code,
    green: *mut Handle,
    device: i32,
) -> Code {
    // SAFETY: the place for the handle, which a success has written.
    after(call, real, |watch| _ = watch.greens.insert(unsafe { read(green) }, (device, vec![])))
}

pub(crate) fn of_green(
    call: &Call,
    real: impl FnOnce() -> Code,
    context: *mut Handle,
    green: Handle,
) -> Code {
    after(call, real, |watch| {
        // SAFETY: as above.
        let context = unsafe { read(context) };
        if let Some((_, contexts)) = watch.greens.get_mut(&green)
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
    after(call, real, |watch| {
        // SAFETY: as above.
        let stream = unsafe { read(stream) };
        let device = watch.greens.get(&green).map(|(device, _)| *device);
        let of = device.map_or_else(|| watch.current(), |device| (green, device));
        watch.contexts.insert(of.0, of.1);
        watch.created(stream, of, flags);
    })
}

pub(crate) fn capture_begin(call: &Call, real: impl FnOnce() -> Code, stream: Handle) -> Code {
    after(call, real, |watch| {
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
    begin(call, |watch| {
        let stream = watch.stream(call, stream);
        // SAFETY: the place for the handle, which a success has written.
        let graph = (code == OK).then(|| unsafe { read(graph) }).filter(|graph| *graph != 0);
        let capture = watch.feed.capture_of(stream);
        let nodes = capture.and_then(|of| watch.captured.remove(&of));
        let whole = capture.is_some_and(|of| !watch.partial.remove(&of));
        watch.feed.capture_end(stream, graph.map(|graph| GraphId(graph as u64)));
        // The driver is asked for the nodes of one that has others as well, and of one whose begin
        // was not seen.
        let graph = graph.filter(|_| whole);
        watch.graphs.extend(graph.map(|graph| (graph, nodes.unwrap_or_default())));
    });
    code
}

pub(crate) fn context_synchronize(
    call: &Call,
    real: impl FnOnce() -> Code,
    context: Handle,
) -> Code {
    let before = |watch: &mut Watch| {
        let contexts = watch.contexts_of(context);
        watch.feed.await_contexts(&contexts)
    };
    around(call, before, real, |watch, awaited| watch.feed.reached(&awaited))
}

/// The load of a module waits for all work before, as an H200 has shown, and libraries seem to rely
/// on it.
pub(crate) fn load_code(call: &Call, real: impl FnOnce() -> Code) -> Code {
    let before = |watch: &mut Watch| watch.feed.await_contexts(&watch.all_contexts(None));
    around(call, before, real, |watch, awaited| watch.feed.reached(&awaited))
}

/// The first time it loads the kernel, and waits as the load of a module does. The load of a
/// library does neither.
pub(crate) fn load_kernel(call: &Call, real: impl FnOnce() -> Code, kernel: Handle) -> Code {
    // The runtime asks anew at each launch.
    let known = enter(|watch| {
        let known = watch.only_submits() && watch.loaded.contains(&(watch.context(), kernel));
        if known {
            watch.numbered(call.name);
        }
        known
    });
    if known == Some(true) {
        return real();
    }
    let before = |watch: &mut Watch| {
        let key = (watch.current().0, kernel);
        watch.loaded.insert(key).then(|| watch.feed.await_contexts(&watch.all_contexts(None)))
    };
    around(call, before, real, |watch, awaited| {
        if let Some(awaited) = awaited {
            watch.feed.reached(&awaited);
        }
    })
}

pub(crate) fn context_destroy(call: &Call, real: impl FnOnce() -> Code, context: Handle) -> Code {
    begin(call, |watch| {
        watch.context_ends(context);
        watch.feed.context_destroy(ContextId(context as u64));
        watch.contexts.remove(&context);
        watch.defaults.retain(|(of, _), _| *of != context);
    });
    real()
}

/// The collector of a context's record.
const COLLECTOR: StreamId = StreamId((1 << 61) - 1);

pub(crate) fn context_record(
    call: &Call,
    real: impl FnOnce() -> Code,
    context: Handle,
    event: Handle,
) -> Code {
    after(call, real, |watch| {
        let contexts = watch.contexts_of(context);
        watch.feed.context_record(&contexts, EventId(event as u64), COLLECTOR);
    })
}

pub(crate) fn context_wait(
    call: &Call,
    real: impl FnOnce() -> Code,
    context: Handle,
    event: Handle,
) -> Code {
    after(call, real, |watch| {
        let contexts = watch.contexts_of(context);
        watch.feed.context_wait(&contexts, EventId(event as u64));
    })
}

impl Watch {
    /// A stream that was seen before.
    pub(super) fn known_stream(&self, call: &Call, stream: Handle) -> Option<StreamId> {
        if stream > 2 {
            return self.streams.contains(&stream).then_some(StreamId(stream as u64));
        }
        self.defaults.get(&(self.context(), call.thread_of_default(stream))).copied()
    }

    pub(super) fn stream(&mut self, call: &Call, stream: Handle) -> StreamId {
        if let Some(stream) = self.known_stream(call, stream) {
            return stream;
        }
        if stream > 2 {
            self.found(stream);
            return StreamId(stream as u64);
        }
        let (context, device) = self.current();
        self.default_stream(context, device, call.thread_of_default(stream))
    }

    /// The legacy default stream of a context that was current before.
    pub(super) fn legacy_stream(&mut self, context: Handle) -> StreamId {
        let known = self.defaults.get(&(context, 0)).copied();
        let device = self.contexts.get(&context).copied().unwrap_or_default();
        known.unwrap_or_else(|| self.default_stream(context, device, 0))
    }

    fn default_stream(&mut self, context: Handle, device: i32, thread: u64) -> StreamId {
        // Not the number of those that are left: a context that ends takes its own away.
        let stream = StreamId((1 << 61) + self.new_place());
        self.defaults.insert((context, thread), stream);
        let (kind, creator) = match thread {
            0 => (StreamKind::Legacy, Creator::Driver),
            _ => (StreamKind::Blocking, Creator::PerThread),
        };
        self.feed.stream_create(stream, (ContextId(context as u64), device), kind, creator);
        stream
    }

    /// A stream that no call has created, as far as this library has seen.
    pub(super) fn found(&mut self, stream: Handle) {
        let (mut context, mut flags) = (0, 0);
        let Questions { stream_context, stream_flags, .. } = self.questions;
        // SAFETY: a stream that the driver has just accepted, and places for the answers.
        unsafe {
            stream_context.map(|ask| ask(stream, &mut context));
            stream_flags.map(|ask| ask(stream, &mut flags));
        }
        let (current, device) = self.current();
        let context = if context == 0 { current } else { context };
        let device = *self.contexts.entry(context).or_insert(device);
        self.created(stream, (context, device), flags);
    }

    pub(super) fn created(
        &mut self,
        stream: Handle,
        (context, device): (Handle, i32),
        flags: c_uint,
    ) {
        self.in_use.created(stream);
        self.streams.insert(stream);
        let kind = match flags & NON_BLOCKING {
            0 => StreamKind::Blocking,
            _ => StreamKind::NonBlocking,
        };
        let context = (ContextId(context as u64), device);
        self.feed.stream_create(StreamId(stream as u64), context, kind, Creator::Call);
    }

    /// The contexts whose work a wait for a context waits for: a green one has those that stand for
    /// it, and the work of these is in another one of their device.
    fn contexts_of(&mut self, context: Handle) -> Vec<ContextId> {
        if let Some((_, contexts)) = self.greens.get(&context) {
            return contexts.iter().chain([&context]).map(|of| ContextId(*of as u64)).collect();
        }
        let current = self.current();
        let context = if context == 0 { current.0 } else { context };
        match self.contexts.get(&context) {
            Some(device) if !self.greens.is_empty() => self.all_contexts(Some(*device)),
            _ => vec![ContextId(context as u64)],
        }
    }
}
