//! Sequences of safe calls of the crate, from three threads at once. Whatever they do: nothing
//! crashes, hangs, is left over, or is misuse to the driver.

use std::pin::Pin;
use std::sync::{Arc, LazyLock, Mutex};
use std::task::{Context as TaskContext, Waker};
use std::time::Duration;

use cuda_events::attributes::{MemorySyncDomain, SynchronizationPolicy};
use cuda_events::capture::{CaptureMode, ThreadCaptureMode};
use cuda_events::ext::{
    EventPool, IpcLease, LazyEvent, PooledEvent, StreamScope, Timer, Timing, current_stream,
};
use cuda_events::graph::{Graph, GraphExec, GraphNode};
use cuda_events::host_functions::pending_host_functions;
use cuda_events::ipc::ExporterProcess;
use cuda_events::sys::{CUdevice_attribute, CUlaunchAttributeID, CUlaunchMemSyncDomain};
use cuda_events::{
    Context, Device, Driver, Event, EventFlags, IpcEventDescriptor, Stream, StreamOptions,
    StreamRef,
};
use cuda_soft_driver::{Live, OnDeadlock, OnMisuse, SoftDriver};
use cuda_timelines::{
    Completion, CudaStreamExt, HostTimeline, Point, PointCompletion, Timeline, TimelineFile,
};

use super::bytes::Bytes;

/// Two drivers of two devices, for what does not go together.
static DRIVERS: LazyLock<[(SoftDriver, Driver); 2]> = LazyLock::new(|| {
    [(), ()].map(|()| {
        let soft = SoftDriver::builder().devices(2).on_misuse(OnMisuse::Abort);
        let soft = soft.on_deadlock(OnDeadlock::Hang).build();
        let driver = soft.driver();
        (soft, driver)
    })
});

/// Whatever a program may have, which all threads share.
#[derive(Default)]
struct Things {
    contexts: Vec<Context>,
    streams: Vec<Arc<Stream>>,
    others: Vec<Arc<StreamRef>>,
    events: Vec<Arc<Event>>,
    pooled: Vec<Arc<PooledEvent>>,
    lazy: Vec<Arc<LazyEvent>>,
    pools: Vec<EventPool>,
    timelines: Vec<Arc<Ended>>,
    hosts: Vec<Arc<HostTimeline>>,
    points: Vec<Point>,
    timings: Vec<Timing>,
    leases: Vec<IpcLease>,
    completions: Vec<Completion<Arc<Event>>>,
    arrivals: Vec<PointCompletion>,
    graphs: Vec<(Graph, Vec<GraphNode>)>,
    execs: Vec<GraphExec>,
}

/// A timeline that is poisoned in the end.
struct Ended(Option<Timeline>);

impl std::ops::Deref for Ended {
    type Target = Timeline;

    fn deref(&self) -> &Timeline {
        self.0.as_ref().expect("it is taken by the drop alone")
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        if let Some(timeline) = self.0.take() {
            let _ = timeline.poison();
        }
    }
}

type Shared = Mutex<Things>;

/// Some more of it, but never without end.
fn keep<T>(list: &mut Vec<T>, thing: T, at: usize) -> Option<T> {
    if list.len() < 12 {
        list.push(thing);
        return None;
    }
    let at = at % list.len();
    Some(std::mem::replace(&mut list[at], thing))
}

fn get<T: Clone>(list: &[T], at: usize) -> Option<T> {
    list.get(at % list.len().max(1)).cloned()
}

fn take<T>(list: &mut Vec<T>, at: usize) -> Option<T> {
    (!list.is_empty()).then(|| list.swap_remove(at % list.len()))
}

macro_rules! with {
    ($shared:ident.$list:ident[$at:expr]) => {{
        let things = $shared.lock().expect("no panic");
        match get(&things.$list, $at) {
            Some(thing) => thing,
            None => return,
        }
    }};
}

macro_rules! store {
    ($shared:ident.$list:ident[$at:expr] = $thing:expr) => {{
        let thing = $thing;
        let _old = keep(&mut $shared.lock().expect("no panic").$list, thing, $at);
        // It is dropped here, with nothing locked.
    }};
}

/// One step: what it is made of, and the numbers that say which of the things it uses.
#[derive(Clone, Copy)]
struct Step<'a> {
    shared: &'a Shared,
    first: usize,
    second: usize,
    /// One if streams may wait for values that are not submitted yet.
    ahead: u64,
}

type Method = fn(Step<'_>);

/// The calls, each with its share of the steps. The corpus depends on the order.
const CALLS: &[(u8, Method)] = &[
    (1, retain_context),
    (1, drop_context),
    (3, create_event),
    (2, create_stream),
    (1, default_stream),
    (1, close_event),
    (1, close_stream),
    (4, record),
    (3, wait_event),
    (1, wait_stream),
    (1, ask_event),
    (1, elapsed),
    (1, ask_stream),
    (1, create_pool),
    (2, record_pooled),
    (1, take_pooled),
    (1, discard_pooled),
    (1, reuse_pooled),
    (1, create_lazy),
    (3, use_lazy),
    (1, time),
    (1, read_timing),
    (3, await_event),
    (1, poll_event),
    (2, create_timeline),
    (3, signal),
    (1, create_host_timeline),
    (1, signal_host),
    (3, wait_point),
    (1, ask_point),
    (1, await_point),
    (1, drop_timeline),
    (1, end_host_timeline),
    (1, wait_ahead),
    (1, lease),
    (1, enter_stream),
    (1, launch_host_function),
    (1, create_graph),
    (2, add_node),
    (1, instantiate),
    (1, launch),
    (1, close_graph),
    (1, use_context),
    (1, set_attributes),
    (1, change_capture_mode),
    (1, change_nodes),
    (1, create_lazy_event),
    (1, set_domains),
    (1, ask_device),
    (1, ask_pool),
    (1, share_timeline),
    (1, record_new_event),
    (1, synchronize),
];

fn step(shared: &Shared, bytes: &mut Bytes<'_>, ahead: u64) {
    let mut number = bytes.byte() % CALLS.iter().map(|(share, _)| share).sum::<u8>();
    let (first, second) = (usize::from(bytes.byte()), usize::from(bytes.byte()));
    for (share, call) in CALLS {
        if number < *share {
            return call(Step { shared, first, second, ahead });
        }
        number -= share;
    }
}

/// A default stream, or one that was created.
macro_rules! stream {
    ($shared:ident, $at:expr) => {{
        let at = $at;
        let other = if at.is_multiple_of(5) {
            get(&$shared.lock().expect("no panic").others, at / 5)
        } else {
            None
        };
        match other {
            Some(other) => Either::Other(other),
            None => Either::Own(with!($shared.streams[at])),
        }
    }};
}

fn retain_context(Step { shared, first, second, .. }: Step<'_>) {
    let (_, driver) = &DRIVERS[usize::from(first.is_multiple_of(7))];
    let Ok(device) = Device::new(*driver, second as u32 % 3) else { return };
    let Ok(context) = Context::primary(device) else { return };
    store!(shared.contexts[first] = context);
}

fn drop_context(Step { shared, first, .. }: Step<'_>) {
    drop(take(&mut shared.lock().expect("no panic").contexts, first));
}

fn create_event(Step { shared, first, second, .. }: Step<'_>) {
    let context = with!(shared.contexts[first]);
    let flags = EventFlags::from_bits_retain(second as u32 % 16);
    let Ok(event) = Event::new(&context, flags) else { return };
    store!(shared.events[second] = Arc::new(event));
}

fn create_stream(Step { shared, first, second, .. }: Step<'_>) {
    let context = with!(shared.contexts[first]);
    let options = StreamOptions::new().blocking(second.is_multiple_of(2));
    let options = options.priority_clamped(second as i32 - 128);
    let Ok(stream) = Stream::new(&context, options) else { return };
    store!(shared.streams[second] = Arc::new(stream));
}

fn default_stream(Step { shared, first, second, .. }: Step<'_>) {
    let context = with!(shared.contexts[first]);
    let stream = match second % 3 {
        0 => StreamRef::default_stream(&context),
        1 => StreamRef::legacy_default(&context),
        _ => StreamRef::per_thread_default(&context),
    };
    store!(shared.others[second] = Arc::new(stream));
}

fn close_event(Step { shared, first, .. }: Step<'_>) {
    let event = take(&mut shared.lock().expect("no panic").events, first);
    if let Some(Ok(event)) = event.map(Arc::try_unwrap) {
        let _ = event.close();
    }
}

fn close_stream(Step { shared, first, .. }: Step<'_>) {
    let stream = take(&mut shared.lock().expect("no panic").streams, first);
    if let Some(Ok(stream)) = stream.map(Arc::try_unwrap) {
        let _ = stream.close();
    }
}

fn record(Step { shared, first, second, .. }: Step<'_>) {
    let (event, stream) = (with!(shared.events[first]), stream!(shared, second));
    let _ = event.record(&stream);
}

fn wait_event(Step { shared, first, second, .. }: Step<'_>) {
    let (event, stream) = (with!(shared.events[first]), stream!(shared, second));
    let _ = stream.wait_event(&event);
}

fn wait_stream(Step { shared, first, second, .. }: Step<'_>) {
    let (one, other) = (stream!(shared, first), stream!(shared, second));
    let _ = one.wait_stream(&other);
}

fn ask_event(Step { shared, first, second, .. }: Step<'_>) {
    let event = with!(shared.events[first]);
    let _ = event.query();
    let _ = event.synchronize_timeout(Duration::from_micros(second as u64));
}

fn elapsed(Step { shared, first, second, .. }: Step<'_>) {
    let (start, end) = (with!(shared.events[first]), with!(shared.events[second]));
    let _ = start.elapsed_ms(&end);
    let _ = start.elapsed(&end);
    let _ = (start == end, format!("{start:?}"));
}

fn ask_stream(Step { shared, first, second, .. }: Step<'_>) {
    let stream = stream!(shared, first);
    let _ = (stream.query(), stream.priority(), stream.is_blocking(), stream.id());
    let _ = stream.synchronize_timeout(Duration::from_micros(second as u64));
    let _ = (stream.capture_status(), stream.capture_info().is_ok());
}

fn create_pool(Step { shared, first, second, .. }: Step<'_>) {
    let context = with!(shared.contexts[first]);
    let flags = EventFlags::from_bits_retain(second as u32 % 8);
    let Ok(pool) = EventPool::new(&context, flags) else { return };
    let _ = pool.reserve(second % 5);
    store!(shared.pools[second] = pool);
}

fn record_pooled(Step { shared, first, second, .. }: Step<'_>) {
    let (pool, stream) = (with!(shared.pools[first]), stream!(shared, second));
    let Ok(event) = pool.record_event(&stream) else { return };
    store!(shared.pooled[second] = Arc::new(event));
}

fn take_pooled(Step { shared, first, second, .. }: Step<'_>) {
    let pool = with!(shared.pools[first]);
    if second.is_multiple_of(8) {
        pool.clear();
    }
    let Ok(event) = pool.take() else { return };
    store!(shared.pooled[second] = Arc::new(event));
}

fn discard_pooled(Step { shared, first, second, .. }: Step<'_>) {
    let event = take(&mut shared.lock().expect("no panic").pooled, first);
    if let Some(Ok(event)) = event.map(Arc::try_unwrap)
        && second.is_multiple_of(2)
    {
        event.discard();
    }
}

fn reuse_pooled(Step { shared, first, second, .. }: Step<'_>) {
    let (event, stream) = (with!(shared.pooled[first]), stream!(shared, second));
    let _ = (event.record(&stream), stream.wait_event(&event), event.query());
}

fn create_lazy(Step { shared, first, second, .. }: Step<'_>) {
    let Ok(event) = LazyEvent::new(EventFlags::from_bits_retain(first as u32 % 16)) else {
        return;
    };
    store!(shared.lazy[second] = Arc::new(event));
}

fn use_lazy(Step { shared, first, second, .. }: Step<'_>) {
    let (event, stream) = (with!(shared.lazy[first]), stream!(shared, second));
    let _ = match first % 6 {
        0 => event.record(&stream),
        1 => event.record_once(&stream).map(drop),
        2 => event.wait(&stream),
        3 => event.wait_recorded(&stream),
        4 => event.record_external(&stream),
        _ => event.wait_external(&stream),
    };
    let _ = (event.state(), event.query(), format!("{event:?}"));
}

fn time(Step { shared, first, second, .. }: Step<'_>) {
    let stream = stream!(shared, first);
    let Ok(timer) = Timer::start(&stream) else { return };
    let Ok(timing) = timer.stop() else { return };
    store!(shared.timings[second] = timing);
}

fn read_timing(Step { shared, first, ahead, .. }: Step<'_>) {
    let timing = take(&mut shared.lock().expect("no panic").timings, first);
    let Some(timing) = timing else { return };
    let _ = (timing.query(), timing.elapsed_ms(), timing.elapsed());
    if ahead == 0 {
        let _ = timing.synchronize();
    }
}

fn await_event(Step { shared, first, second, .. }: Step<'_>) {
    let event = with!(shared.events[first]);
    let mut completion = Completion::new(event);
    let mut context = TaskContext::from_waker(Waker::noop());
    let _ = Pin::new(&mut completion).poll(&mut context);
    if second.is_multiple_of(2) {
        store!(shared.completions[second] = completion);
    }
}

fn poll_event(Step { shared, first, .. }: Step<'_>) {
    let completion = take(&mut shared.lock().expect("no panic").completions, first);
    let Some(mut completion) = completion else { return };
    let _ = Pin::new(&mut completion).poll(&mut TaskContext::from_waker(Waker::noop()));
}

fn create_timeline(Step { shared, first, second, .. }: Step<'_>) {
    let stream = with!(shared.streams[first]);
    let Ok(timeline) = Timeline::new(stream) else { return };
    store!(shared.timelines[second] = Arc::new(Ended(Some(timeline))));
}

fn signal(Step { shared, first, second, .. }: Step<'_>) {
    let timeline = with!(shared.timelines[first]);
    let Ok(point) = timeline.signal() else { return };
    store!(shared.points[second] = point);
}

fn create_host_timeline(Step { shared, first, second, .. }: Step<'_>) {
    let context = with!(shared.contexts[first]);
    let Ok(host) = HostTimeline::new(&context) else { return };
    store!(shared.hosts[second] = Arc::new(host));
}

fn signal_host(Step { shared, first, second, .. }: Step<'_>) {
    let host = with!(shared.hosts[first]);
    let Ok(point) = host.signal() else { return };
    store!(shared.points[second] = point);
}

fn wait_point(Step { shared, first, second, .. }: Step<'_>) {
    let (point, stream) = (with!(shared.points[first]), stream!(shared, second));
    let _ = stream.wait_point(point);
}

fn ask_point(Step { shared, first, second, .. }: Step<'_>) {
    let point = with!(shared.points[first]);
    let _ = (point.query(), point.is_done(), point.value(), format!("{point:?}"));
    let _ = point.wait_timeout(Duration::from_micros(second as u64));
    let _ = point.spin_timeout(Duration::from_micros(second as u64 % 16));
}

fn await_point(Step { shared, first, second, .. }: Step<'_>) {
    let point = with!(shared.points[first]);
    let mut arrival = point.into_future();
    let _ = Pin::new(&mut arrival).poll(&mut TaskContext::from_waker(Waker::noop()));
    if second.is_multiple_of(2) {
        store!(shared.arrivals[second] = arrival);
    }
}

fn drop_timeline(Step { shared, first, .. }: Step<'_>) {
    let timeline = take(&mut shared.lock().expect("no panic").timelines, first);
    drop(timeline);
}

fn end_host_timeline(Step { shared, first, second, .. }: Step<'_>) {
    let host = take(&mut shared.lock().expect("no panic").hosts, first);
    if let Some(Ok(host)) = host.map(Arc::try_unwrap)
        && second.is_multiple_of(2)
    {
        host.poison();
    }
}

fn wait_ahead(Step { shared, first, second, ahead }: Step<'_>) {
    // For a value that a stream must signal, such a wait may close a circle through waits
    // for events, which nothing ends: the documented deadlock. So it is for one that was
    // submitted. A host's timeline ends all waits for it with its drop: see `run`.
    let stream = stream!(shared, second);
    if first.is_multiple_of(2) {
        let timeline = with!(shared.timelines[first]);
        let value = timeline.completed() + first as u64;
        let _ = timeline.wait_ahead(&stream, value.min(timeline.submitted().unwrap_or(0)));
    } else {
        let host = with!(shared.hosts[first]);
        let _ = host.wait_ahead(&stream, host.completed() + first as u64 * ahead);
    }
}

fn lease(Step { shared, first, second, .. }: Step<'_>) {
    let event = with!(shared.events[first]);
    let Ok(lease) = IpcLease::new(event) else { return };
    let descriptor = *lease.descriptor();
    let _ = ExporterProcess::of(&descriptor).state();
    assert_eq!(IpcEventDescriptor::from_bytes(&descriptor.to_bytes()), Ok(descriptor));
    store!(shared.leases[second] = lease);
}

fn enter_stream(Step { shared, first, second, .. }: Step<'_>) {
    let stream = with!(shared.streams[first]);
    let context = with!(shared.contexts[second]);
    let _scope = StreamScope::enter(stream);
    let _ = current_stream(&context).query();
}

fn launch_host_function(Step { shared, first, second, .. }: Step<'_>) {
    let stream = stream!(shared, first);
    let text = vec![first as u8; second];
    let _ = stream.launch_host_function(move || drop(text));
    if second.is_multiple_of(4) {
        let _ = stream.add_callback(drop);
    }
}

fn create_graph(Step { shared, first, second, .. }: Step<'_>) {
    let context = with!(shared.contexts[first]);
    let Ok(graph) = Graph::new(&context) else { return };
    store!(shared.graphs[second] = (graph, Vec::new()));
}

fn add_node(Step { shared, first, second, .. }: Step<'_>) {
    let event = with!(shared.events[second]);
    // Taken out: its methods need it alone.
    let graph = take(&mut shared.lock().expect("no panic").graphs, first);
    let Some((mut graph, mut nodes)) = graph else { return };
    // A node of another graph may be among them.
    let after: Vec<GraphNode> = nodes.iter().copied().skip(second % 4).collect();
    let node = if first.is_multiple_of(2) {
        graph.add_event_record_node(&after, &event)
    } else {
        graph.add_event_wait_node(&after, &event)
    };
    nodes.extend(node.ok().filter(|_| nodes.len() < 8));
    if let Some(node) = get(&nodes, second) {
        let _ = graph.record_node_event(node);
        let _ = graph.set_wait_node_event(node, &event);
    }
    store!(shared.graphs[first] = (graph, nodes));
}

fn instantiate(Step { shared, first, second, .. }: Step<'_>) {
    let things = shared.lock().expect("no panic");
    let Some((graph, _)) = things.graphs.get(first % things.graphs.len().max(1)) else {
        return;
    };
    let Ok(exec) = graph.instantiate() else { return };
    drop(things);
    store!(shared.execs[second] = exec);
}

fn launch(Step { shared, first, second, .. }: Step<'_>) {
    let stream = stream!(shared, second);
    // Taken out: it is of one thread at a time.
    let exec = take(&mut shared.lock().expect("no panic").execs, first);
    let Some(exec) = exec else { return };
    let _ = exec.launch(&stream);
    store!(shared.execs[first] = exec);
}

fn close_graph(Step { shared, first, second, .. }: Step<'_>) {
    let graph = take(&mut shared.lock().expect("no panic").graphs, first);
    if let Some((graph, _)) = graph {
        let _ = graph.close();
    }
    drop(take(&mut shared.lock().expect("no panic").execs, second));
}

fn use_context(Step { shared, first, second, .. }: Step<'_>) {
    let (context, event) = (with!(shared.contexts[first]), with!(shared.events[second]));
    let _ = (event.record_context(&context), context.wait_event(&event));
    let _ = (context.stream_priority_range().is_ok(), context.is_green());
}

fn set_attributes(Step { shared, first, second, .. }: Step<'_>) {
    let (one, other) = (stream!(shared, first), stream!(shared, second));
    let _ = one.copy_attributes_from(&other);
    let _ = one.set_synchronization_policy(SynchronizationPolicy::SPIN);
    let _ = (one.set_priority(second as i32 - 128), one.memory_sync_domain().is_ok());
}

fn change_nodes(Step { shared, first, second, .. }: Step<'_>) {
    let event = with!(shared.events[second]);
    let graph = take(&mut shared.lock().expect("no panic").graphs, first);
    let exec = take(&mut shared.lock().expect("no panic").execs, second);
    let Some((mut graph, nodes)) = graph else { return };
    for node in &nodes {
        let _ = (graph.wait_node_event(*node), graph.record_node_event(*node));
        let _ = graph.set_record_node_event(*node, &event);
    }
    if let Some(mut exec) = exec {
        for node in &nodes {
            let _ = exec.set_record_node_event(&graph, *node, &event);
            let _ = exec.set_wait_node_event(&graph, *node, &event);
        }
        store!(shared.execs[second] = exec);
    }
    store!(shared.graphs[first] = (graph, nodes));
}

fn create_lazy_event(Step { shared, first, second, .. }: Step<'_>) {
    let (lazy, context) = (with!(shared.lazy[first]), with!(shared.contexts[second]));
    let _ = (lazy.create(&context).is_ok(), lazy.ipc_descriptor(&context).is_ok());
}

fn set_domains(Step { shared, first, second, .. }: Step<'_>) {
    let stream = stream!(shared, first);
    let domain = CUlaunchMemSyncDomain(second as u32 % 4);
    let _ = stream.set_memory_sync_domain(MemorySyncDomain::from_raw(domain));
    if let Ok(map) = stream.memory_sync_domain_map() {
        let _ = stream.set_memory_sync_domain_map(map);
    }
    let attribute = CUlaunchAttributeID(second as u32);
    let _ = (stream.attribute(attribute).is_ok(), stream.synchronization_policy().is_ok());
    let _ = (stream.context() == stream.context(), stream.cuda_stream());
}

fn ask_device(Step { shared, first, second, .. }: Step<'_>) {
    let context = with!(shared.contexts[first]);
    let device = context.device();
    let _ = (device.name().is_ok(), device.uuid().is_ok(), device.total_memory().is_ok());
    let _ = device.attribute(CUdevice_attribute(second as u32)).is_ok();
    let driver = device.driver();
    let _ = (Device::count(driver), Device::all(driver).is_ok(), device.ordinal());
    let resources = [context.sm_resource(), device.sm_resource()];
    for resource in resources.into_iter().flatten() {
        let _ = resource.split_by_count(second as u32 % 5, first as u32 % 40).is_ok();
        let _ = (resource.count(), resource.min_partition_size());
        let _ = resource.coscheduled_alignment();
    }
    let _ = pending_host_functions();
}

fn ask_pool(Step { shared, first, .. }: Step<'_>) {
    let pool = with!(shared.pools[first]);
    let _ = (pool.available(), format!("{pool:?}"));
}

/// Each file keeps a page until the process ends.
fn share_timeline(step: Step<'_>) {
    let Step { shared, first, second, .. } = step;
    if !second.is_multiple_of(32) {
        return change_capture_mode(step);
    }
    let (context, stream) = (with!(shared.contexts[first]), with!(shared.streams[second]));
    let file = match first % 2 {
        0 => TimelineFile::writable(&context),
        _ => TimelineFile::new(&context),
    };
    let Ok(file) = file else { return };
    let Ok(timeline) = Timeline::shared(stream, &file) else { return };
    let _ = (file.context() == &context, timeline.descriptor());
    if let Ok(point) = timeline.signal() {
        store!(shared.points[second] = point);
    }
    store!(shared.timelines[second] = Arc::new(Ended(Some(timeline))));
}

fn record_new_event(Step { shared, first, second, .. }: Step<'_>) {
    let (event, stream) = (with!(shared.events[first]), stream!(shared, second));
    let _ = (event.is_imported(), event.flags(), event.ipc_descriptor().is_ok());
    let _ = event.context() == stream.context();
    let flags = EventFlags::from_bits_retain(second as u32 % 8);
    let Ok(event) = stream.record_event(flags) else { return };
    store!(shared.events[first] = Arc::new(event));
}

/// Without a limit: what streams wait for then comes by itself.
fn synchronize(step: Step<'_>) {
    let Step { shared, first, second, ahead } = step;
    if ahead != 0 {
        return change_capture_mode(step);
    }
    let (event, stream) = (with!(shared.events[first]), stream!(shared, second));
    let _ = (event.synchronize(), stream.synchronize());
    let _ = with!(shared.contexts[first]).synchronize();
    let _ = with!(shared.lazy[second]).synchronize();
    let point = with!(shared.points[second]);
    let _ = (point.wait(), point.spin());
}

fn change_capture_mode(Step { shared, first, second, .. }: Step<'_>) {
    let (_, driver) = &DRIVERS[first % 2];
    let mode = [CaptureMode::Global, CaptureMode::ThreadLocal, CaptureMode::Relaxed];
    let guard = ThreadCaptureMode::exchange(*driver, mode[second % 3]);
    let context = with!(shared.contexts[first]);
    if let Ok(_current) = context.make_current() {
        let _ = context.stream_priority_range().is_ok();
    }
    drop(guard);
}

enum Either {
    Own(Arc<Stream>),
    Other(Arc<StreamRef>),
}

impl std::ops::Deref for Either {
    type Target = StreamRef;

    fn deref(&self) -> &StreamRef {
        match self {
            Self::Own(stream) => stream,
            Self::Other(stream) => stream,
        }
    }
}

/// Makes the calls that the bytes say, a third of them in each thread.
///
/// The end of a context waits for its work, also for work that waits for the host, by whatever
/// chain of events: a thread that ends one before it signals is the documented deadlock. So in half
/// of the sequences streams wait for values that the host has yet to signal, and no context ends;
/// in the other half contexts end, and nothing waits for such values.
pub fn run(data: &[u8]) {
    let shared = Shared::default();
    let ahead = u64::from(data.first().is_some_and(|first| first.is_multiple_of(2)));
    let all = DRIVERS.iter().flat_map(|(_, driver)| [0, 1].map(|ordinal| (*driver, ordinal)));
    let all = all.filter(|_| ahead == 1).map(|(driver, ordinal)| {
        Device::new(driver, ordinal).and_then(Context::primary).expect("a context")
    });
    let contexts_stay: Vec<Context> = all.collect();
    {
        let mut start = Bytes(&[0, 1, 0, 0, 1, 1, 5, 0, 1, 5, 0, 2, 2, 0, 2, 2, 0, 4]);
        while !start.is_empty() {
            step(&shared, &mut start, ahead);
        }
    }
    let third = data.len().div_ceil(3).max(1);
    std::thread::scope(|scope| {
        for part in data.chunks(third) {
            let shared = &shared;
            scope.spawn(move || {
                let mut bytes = Bytes(part);
                while !bytes.is_empty() {
                    step(shared, &mut bytes, ahead);
                }
            });
        }
    });
    let Things { timelines, hosts, contexts, .. } = {
        let mut things = shared.lock().expect("no panic");
        // What waits for them goes on with their end, and only then a context can end.
        things.hosts.clear();
        things.timelines.clear();
        std::mem::take(&mut *things)
    };
    drop((timelines, hosts, contexts, contexts_stay));
    // The crate's thread and the driver's may have some of it for a moment. A wait of a stream of
    // another context holds a share of both until a timeline is dropped after it: as documented.
    let sweep = || {
        let context = Device::new(DRIVERS[0].1, 0).and_then(Context::primary).expect("a context");
        let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
        drop(Timeline::new(stream));
    };
    for (soft, _) in DRIVERS.iter() {
        for _ in 0..50_000 {
            if soft.live() == Live::default() {
                break;
            }
            sweep();
            std::thread::yield_now();
        }
        soft.assert_no_leaks();
    }
}
