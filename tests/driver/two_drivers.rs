//! Objects of two driver libraries in one process: to each of them the other's handles are
//! arbitrary addresses. And of two tables of one library, in which NULL means two streams.

use crate::common::{self, table};

use std::cell::RefCell;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use common::{Gpu, Latch, Other};
use cuda_events::attributes::SynchronizationPolicy;
use cuda_events::capture::{CaptureMode, DependencyUpdate, RecordFlags, WaitFlags};
use cuda_events::ext::{EventPool, LazyEvent};
use cuda_events::external::{BinarySemaphore, TimelineSemaphore};
use cuda_events::graph::Graph;
use cuda_events::sys::{CUcontext, CUdevice, CUresult, Function};
use cuda_events::{
    Context, Device, Driver, Error, Event, EventFlags, EventRef, LoadOptions, Progress, Stream,
    StreamOptions, StreamRef,
};
use cuda_soft_driver::SoftDriver;
use cuda_timelines::{CudaStreamExt, HostTimeline, Timeline};

/// What a method that is given objects of two libraries must say.
type Case<'a> = (&'static str, Function, Call<'a>);
type Call<'a> = Box<dyn FnMut() -> cuda_timelines::Result<()> + 'a>;

/// One `Type::method` a line, with what is to refuse and objects of two libraries. A method
/// that takes two objects has a line here.
macro_rules! table {
    ($($method:literal: $function:expr => $call:expr;)*) => {
        [$(($method, $function, Box::new(|| $call.map(drop).map_err(Into::into)) as Call<'_>),)*]
    };
}

/// Each method that takes two objects, by the list of public items. What it has to say for one that
/// needs no line of the table is in a comment here.
#[test]
fn each_method_of_two_objects_has_a_line() {
    const OBJECTS: [&str; 12] = [
        "BinarySemaphore",
        "Capture",
        "Context",
        "Event",
        "EventPool",
        "EventRef",
        "Graph",
        "GraphExec",
        "LazyEvent",
        "Stream",
        "StreamRef",
        "TimelineSemaphore",
    ];
    let is_object = |path: &str| path.rsplit("::").next().is_some_and(|it| OBJECTS.contains(&it));
    let mut methods = 0;
    for line in include_str!("../../docs/public-api.txt").lines() {
        let Some((_, item)) = line.split_once("fn cuda_events::") else { continue };
        let Some((path, arguments)) = item.split_once('(') else { continue };
        // Without generics, of which none has others in it.
        let path: String = path.split('<').map(|it| it.rsplit('>').next().unwrap_or(it)).collect();
        let Some((owner, method)) = path.rsplit_once("::") else { continue };
        let (arguments, _) = arguments.split_once(')').unwrap_or((arguments, ""));
        let words = arguments.split(|sign: char| !sign.is_alphanumeric() && sign != ':');
        let takes_two = words.filter(|word| match *word {
            "self" | "Self" => is_object(owner),
            word => is_object(word),
        });
        // Comparisons look at the drivers themselves.
        if takes_two.count() < 2 || method == "eq" {
            continue;
        }
        methods += 1;
        let owner = owner.rsplit("::").next().unwrap_or(owner);
        assert!(
            include_str!("two_drivers.rs").contains(&format!("\"{owner}::{method}\"")),
            "{owner}::{method} takes two objects: add a line to the table in \
             tests/driver/two_drivers.rs that gives it those of two drivers"
        );
    }
    assert!(methods > 30, "{methods} methods");
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of calls, and its objects")]
fn objects_of_two_libraries_do_not_mix() {
    let Some(gpu) = Gpu::with(Function::cuStreamBeginCaptureToGraph) else { return };
    let soft = SoftDriver::new();
    let other = Device::new(soft.driver(), 0)
        .and_then(Context::primary)
        .expect("the other primary context");
    let stream = gpu.stream();
    let event = Arc::new(Event::new(&gpu.context, EventFlags::TIMING).expect("an event"));
    let theirs = Arc::new(Event::new(&other, EventFlags::TIMING).expect("an event"));
    let elsewhere = Stream::new(&other, StreamOptions::new()).expect("a stream");
    let captured = Stream::new(&gpu.context, StreamOptions::new()).expect("a stream");
    // What the first event's driver has.
    let elapsed = |driver: Driver| match driver.symbols().cuEventElapsedTime_v2 {
        Some(_) => Function::cuEventElapsedTime_v2,
        None => Function::cuEventElapsedTime,
    };
    let (elapsed, their_elapsed) = (elapsed(gpu.driver), elapsed(soft.driver()));
    let lazy = |context: &Context| {
        let lazy = LazyEvent::new(EventFlags::TIMING).expect("flags");
        lazy.create(context).expect("an event");
        lazy
    };
    let (lazy, their_lazy) = (lazy(&gpu.context), lazy(&other));
    let recorded = LazyEvent::new(EventFlags::TIMING).expect("flags");
    recorded.record(&stream).expect("a record");
    let pool = EventPool::new(&gpu.context, EventFlags::empty()).expect("a pool");

    let mut graph = Graph::new(&gpu.context).expect("a graph");
    let node = graph.add_event_record_node(&[], &event).expect("a node");
    let waiting = graph.add_event_wait_node(&[], &event).expect("a node");
    let mut their_graph = Graph::new(&other).expect("a graph");
    let their_node = their_graph.add_event_record_node(&[], &theirs).expect("a node");
    let their_waiting = their_graph.add_event_wait_node(&[], &theirs).expect("a node");
    let exec = graph.instantiate().expect("an executable graph");
    let their_exec = their_graph.instantiate().expect("an executable graph");
    let adds_record = Function::cuGraphAddEventRecordNode;
    let adds_wait = Function::cuGraphAddEventWaitNode;
    let (sets_record, sets_wait) =
        (Function::cuGraphEventRecordNodeSetEvent, Function::cuGraphEventWaitNodeSetEvent);
    let exec_sets_record = Function::cuGraphExecEventRecordNodeSetEvent;
    let exec_sets_wait = Function::cuGraphExecEventWaitNodeSetEvent;
    let newest = match gpu.driver.symbols().cuStreamUpdateCaptureDependencies_v2 {
        Some(_) => Function::cuStreamUpdateCaptureDependencies_v2,
        None => Function::cuStreamUpdateCaptureDependencies,
    };
    let asks = match gpu.driver.symbols().cuStreamGetCaptureInfo_v3 {
        Some(_) => Function::cuStreamGetCaptureInfo_v3,
        None => Function::cuStreamGetCaptureInfo_v2,
    };
    let capture = common::begin_capture(&captured, CaptureMode::Relaxed).expect("a capture");
    let (graph, their_graph) = (RefCell::new(graph), RefCell::new(their_graph));
    let (exec, their_exec) = (RefCell::new(exec), RefCell::new(their_exec));
    let new_graph = || Graph::new(&gpu.context).expect("a graph");

    let record_with = |event: &EventRef, stream: &StreamRef, flags| {
        // SAFETY: it is refused, so that no node is made.
        unsafe { event.record_with(stream, flags) }
    };
    let wait_event_with = |stream: &StreamRef, event: &EventRef, flags| {
        // SAFETY: as above.
        unsafe { stream.wait_event_with(event, flags) }
    };
    // SAFETY: this thread is the only one.
    let dependencies = |stream: &StreamRef| unsafe { capture.dependencies(stream) };

    let host = HostTimeline::new(&gpu.context).expect("a timeline");
    let held = Timeline::new(Stream::new(&other, StreamOptions::new()).expect("a stream"))
        .expect("a timeline");
    let _latch = Latch::hold(held.stream());
    let point = held.signal().expect("a signal");
    let ahead = |value: u64| value + 1;

    // No driver is given these, which are none.
    let no_semaphore = std::ptr::without_provenance_mut(8);
    // SAFETY: as above; they are given up again below.
    let (timeline, binary) = unsafe {
        (
            TimelineSemaphore::from_raw(&other, no_semaphore),
            BinarySemaphore::from_raw(&other, no_semaphore),
        )
    };
    let points = [timeline.at(1), binary.once()];
    let (signals, waits) =
        (Function::cuSignalExternalSemaphoresAsync, Function::cuWaitExternalSemaphoresAsync);

    let cases: Vec<Case> = table! {
        "StreamRef::signal_external": signals => stream.signal_external(&timeline, 1);
        "StreamRef::wait_external_semaphore": waits => stream.wait_external_semaphore(&timeline, 1);
        "StreamRef::signal_external_binary": signals => stream.signal_external_binary(&binary);
        "StreamRef::wait_external_binary": waits => stream.wait_external_binary(&binary);
        "StreamRef::signal_externals": signals => stream.signal_externals(&points);
        "StreamRef::wait_externals": waits => stream.wait_externals(&points);
        "StreamRef::wait_point": Function::cuStreamWaitValue64_v2 => stream.wait_point(point);
        "Timeline::wait_ahead": Function::cuStreamWaitValue64_v2
            => held.wait_ahead(&stream, ahead(point.value()));
        "HostTimeline::wait_ahead": Function::cuStreamWaitValue64_v2
            => host.wait_ahead(&elsewhere, ahead(host.completed()));
        "EventRef::record": Function::cuEventRecord => event.record(&elsewhere);
        "EventRef::record": Function::cuEventRecord => theirs.record(&stream);
        "EventRef::record_with": Function::cuEventRecord
            => record_with(&event, &elsewhere, RecordFlags::empty());
        "EventRef::record_with": Function::cuEventRecordWithFlags
            => record_with(&theirs, &captured, RecordFlags::EXTERNAL);
        "EventRef::elapsed_ms": elapsed => event.elapsed_ms(&theirs);
        "EventRef::elapsed_ms": their_elapsed => theirs.elapsed_ms(&event);
        "EventRef::elapsed": elapsed => event.elapsed(&theirs);
        "EventRef::record_context": Function::cuCtxRecordEvent
            => theirs.record_context(&gpu.context);
        "EventRef::record_context": Function::cuCtxRecordEvent => event.record_context(&other);
        "Context::wait_event": Function::cuCtxWaitEvent => gpu.context.wait_event(&theirs);
        "Context::wait_event": Function::cuCtxWaitEvent => other.wait_event(&event);
        "StreamRef::wait_event": Function::cuStreamWaitEvent => stream.wait_event(&theirs);
        "StreamRef::wait_event": Function::cuStreamWaitEvent => elsewhere.wait_event(&event);
        "StreamRef::wait_event": Function::cuStreamWaitEvent
            => StreamRef::default_stream(&other).wait_event(&event);
        "StreamRef::wait_event_with": Function::cuStreamWaitEvent
            => wait_event_with(&stream, &theirs, WaitFlags::empty());
        "StreamRef::wait_stream": Function::cuStreamWaitEvent => stream.wait_stream(&elsewhere);
        "StreamRef::wait_stream": Function::cuStreamWaitEvent => elsewhere.wait_stream(&stream);
        "StreamRef::wait_stream": Function::cuStreamWaitEvent
            => stream.wait_stream(&StreamRef::legacy_default(&other));
        "StreamRef::copy_attributes_from": Function::cuStreamCopyAttributes
            => stream.copy_attributes_from(&elsewhere);
        "StreamRef::record_external": Function::cuEventRecord => stream.record_external(&theirs);
        "StreamRef::record_external": Function::cuEventRecordWithFlags
            => captured.record_external(&theirs);
        "StreamRef::wait_external": Function::cuStreamWaitEvent => stream.wait_external(&theirs);
        "StreamRef::wait_external": Function::cuStreamWaitEvent => captured.wait_external(&theirs);
        "LazyEvent::record": Function::cuEventRecord => lazy.record(&elsewhere);
        "LazyEvent::record_external": Function::cuEventRecord => lazy.record_external(&elsewhere);
        "LazyEvent::record_once": Function::cuEventRecord => lazy.record_once(&elsewhere);
        "LazyEvent::wait": Function::cuStreamWaitEvent => lazy.wait(&elsewhere);
        "LazyEvent::wait_recorded": Function::cuStreamWaitEvent
            => recorded.wait_recorded(&elsewhere);
        "LazyEvent::wait_external": Function::cuStreamWaitEvent => lazy.wait_external(&elsewhere);
        "LazyEvent::elapsed_ms": elapsed => lazy.elapsed_ms(&their_lazy);
        "LazyEvent::elapsed": their_elapsed => their_lazy.elapsed(&lazy);
        "EventPool::record_event": Function::cuEventRecord => pool.record_event(&elsewhere);
        "Graph::add_event_record_node": adds_record
            => graph.borrow_mut().add_event_record_node(&[], &theirs);
        "Graph::add_event_record_node": adds_record
            => their_graph.borrow_mut().add_event_record_node(&[node], &theirs);
        "Graph::add_event_wait_node": adds_wait
            => graph.borrow_mut().add_event_wait_node(&[], &theirs);
        "Graph::record_node_event": Function::cuGraphEventRecordNodeGetEvent
            => graph.borrow().record_node_event(their_node);
        "Graph::wait_node_event": Function::cuGraphEventWaitNodeGetEvent
            => graph.borrow().wait_node_event(their_waiting);
        "Graph::set_record_node_event": sets_record
            => graph.borrow_mut().set_record_node_event(node, &theirs);
        "Graph::set_record_node_event": sets_record
            => graph.borrow_mut().set_record_node_event(their_node, &event);
        "Graph::set_wait_node_event": sets_wait
            => graph.borrow_mut().set_wait_node_event(waiting, &theirs);
        "GraphExec::launch": Function::cuGraphLaunch => exec.borrow().launch(&elsewhere);
        "GraphExec::launch": Function::cuGraphLaunch => their_exec.borrow().launch(&stream);
        "GraphExec::launch": Function::cuGraphLaunch
            => exec.borrow().launch(&StreamRef::legacy_default(&other));
        // Any one of the three may be the other library's.
        "GraphExec::set_record_node_event": exec_sets_record
            => exec.borrow_mut().set_record_node_event(&graph.borrow(), node, &theirs);
        "GraphExec::set_record_node_event": exec_sets_record
            => exec.borrow_mut().set_record_node_event(&their_graph.borrow(), their_node, &event);
        "GraphExec::set_record_node_event": exec_sets_record
            => exec.borrow_mut().set_record_node_event(&their_graph.borrow(), their_node, &theirs);
        "GraphExec::set_record_node_event": exec_sets_record
            => their_exec.borrow_mut().set_record_node_event(&graph.borrow(), node, &theirs);
        "GraphExec::set_record_node_event": exec_sets_record
            => exec.borrow_mut().set_record_node_event(&graph.borrow(), their_node, &event);
        "GraphExec::set_wait_node_event": exec_sets_wait
            => exec.borrow_mut().set_wait_node_event(&graph.borrow(), waiting, &theirs);
        "GraphExec::set_wait_node_event": exec_sets_wait
            => exec.borrow_mut().set_wait_node_event(&their_graph.borrow(), their_waiting, &event);
        "GraphExec::set_wait_node_event": exec_sets_wait
            => their_exec.borrow_mut().set_wait_node_event(&graph.borrow(), waiting, &theirs);
        "Capture::begin_to_graph": Function::cuStreamBeginCaptureToGraph
            => common::begin_capture_to_graph(&elsewhere, new_graph(), &[], CaptureMode::Relaxed);
        "Capture::begin_to_graph": Function::cuStreamBeginCaptureToGraph
            => common::begin_capture_to_graph(&stream, new_graph(), &[their_node],
                CaptureMode::Relaxed);
        "Capture::dependencies": asks => dependencies(&elsewhere);
        "Capture::update_dependencies": newest
            => capture.update_dependencies(&elsewhere, &[], DependencyUpdate::Set);
        "Capture::update_dependencies": newest
            => capture.update_dependencies(&captured, &[their_node.into()], DependencyUpdate::Add);
    }
    .into();
    for (index, (method, function, mut call)) in cases.into_iter().enumerate() {
        let refused = call();
        let function = || function;
        let expected = [
            Error::DriverMismatch { function: function() },
            // What is of another library is also of another graph, and of no capture of this one.
            Error::GraphMismatch { function: function() },
            Error::CaptureMismatch { function: function() },
        ]
        .map(cuda_timelines::Error::from);
        assert!(
            refused.as_ref().is_err_and(|error| expected.contains(error)),
            "{index}, {method}: {refused:?}"
        );
    }
    capture.end().expect("none of it has reached the capture");
    assert_eq!((timeline.into_raw(), binary.into_raw()), (no_semaphore, no_semaphore));

    // "LazyEvent::create" and "LazyEvent::ipc_descriptor": a created lazy event has its context,
    // and looks at no other.
    assert!(Arc::ptr_eq(
        lazy.create(&other).expect("it is created"),
        lazy.event().expect("it is created")
    ));
    let shared = LazyEvent::new(EventFlags::INTERPROCESS).expect("flags");
    let event_here = shared.create(&gpu.context).expect("an event").clone();
    assert_eq!(shared.ipc_descriptor(&other), event_here.ipc_descriptor());

    assert_ne!(gpu.device, other.device());
    // Each is of use with its own.
    event.record(&stream).expect("a record");
    theirs.record(&elsewhere).expect("a record");
    exec.borrow().launch(&stream).expect("a launch");
    their_exec.borrow().launch(&elsewhere).expect("a launch");
    stream.synchronize().expect("no work");
    elsewhere.synchronize().expect("no work");
}

/// A handle is a number, which two libraries may both give.
#[test]
fn equal_handles_of_two_libraries_are_not_equal() {
    extern "C" fn device(device: *mut CUdevice, _: CUcontext) -> CUresult {
        // SAFETY: the caller's place for the one integer.
        unsafe { *device = 0 };
        CUresult::CUDA_SUCCESS
    }
    let gpu = Gpu::new();
    let soft = SoftDriver::new();
    // Knows every context, so that it takes the other library's.
    let other = table::replaced(soft.driver(), |function| {
        (function == Function::cuCtxGetDevice_v2).then_some(device as *mut std::ffi::c_void)
    });
    let (event, stream) =
        (Event::new(&gpu.context, EventFlags::empty()).expect("an event"), gpu.stream());
    // SAFETY: the context lives. Here and below, nothing is destroyed, and the other driver is
    // asked for nothing.
    let same = unsafe { Context::from_raw(gpu.driver, gpu.context.as_raw()) }.expect("the context");
    // SAFETY: as above.
    let theirs = unsafe { Context::from_raw(other, gpu.context.as_raw()) }.expect("a device");
    assert_eq!(same, gpu.context);
    assert_ne!(theirs, gpu.context);
    // SAFETY: as above.
    let named = |context: &Context| unsafe {
        EventRef::from_raw(context, event.as_raw(), EventFlags::empty())
    };
    assert_eq!(named(&same), event);
    assert_ne!(named(&theirs), event);
    assert_ne!(event, named(&theirs));
    // SAFETY: as above.
    let named = |context: &Context| unsafe { StreamRef::from_raw(context, stream.as_raw()) };
    assert_eq!(named(&same), stream);
    assert_ne!(named(&theirs), stream);
    assert_ne!(stream, named(&theirs));
    assert_eq!(StreamRef::legacy_default(&same), StreamRef::legacy_default(&gpu.context));
    assert_ne!(StreamRef::legacy_default(&theirs), StreamRef::legacy_default(&gpu.context));
}

/// Another table of the same library: with the per-thread default stream.
fn per_thread(gpu: &Gpu) -> Context {
    let driver = match gpu.soft() {
        Some(soft) => {
            let options = LoadOptions::new().per_thread_default_stream(true);
            // SAFETY: the software driver has the driver's ABI, and its functions are part of this
            // program.
            unsafe { Driver::from_resolver(&mut |name| soft.resolve(name), &options) }
                .expect("it resolves")
        }
        None => {
            let library = gpu.driver.library().expect("it was opened from a file");
            let options = common::options_of(library).per_thread_default_stream(true);
            Driver::load_with(&options).expect("it loads again")
        }
    };
    assert_ne!(driver, gpu.driver);
    let device = Device::new(driver, 0).expect("device 0");
    assert_eq!(device, gpu.device);
    let context = Context::primary(device).expect("the primary context");
    assert_eq!(context, gpu.context);
    context
}

fn hash(stream: &StreamRef) -> u64 {
    let mut hasher = DefaultHasher::new();
    stream.hash(&mut hasher);
    hasher.finish()
}

#[test]
fn null_streams_compare_as_what_they_mean() {
    let gpu = Gpu::new();
    let (legacy, own) = (&gpu.context, &per_thread(&gpu));
    let legacy_ones = [
        StreamRef::default_stream(legacy),
        StreamRef::legacy_default(legacy),
        StreamRef::legacy_default(own),
    ];
    let own_ones = [
        StreamRef::default_stream(own),
        StreamRef::per_thread_default(legacy),
        StreamRef::per_thread_default(own),
    ];
    for ones in [&legacy_ones, &own_ones] {
        for (one, another) in
            ones.iter().flat_map(|one| ones.iter().map(move |another| (one, another)))
        {
            assert_eq!(one, another);
            assert_eq!(hash(one), hash(another));
        }
    }
    assert!(legacy_ones.iter().all(|one| own_ones.iter().all(|another| one != another)));
    let other = Other::new(&gpu);
    assert_ne!(StreamRef::default_stream(&other), legacy_ones[0]);
    assert_ne!(StreamRef::legacy_default(&other), legacy_ones[0]);
    // Python takes 0 for the legacy default stream.
    assert_eq!(
        [&legacy_ones[0], &own_ones[0]].map(|stream| stream.cuda_stream()),
        [(0, 0), (0, 2)]
    );
}

/// NULL is the stream that the stream's own table says, whatever table the other object is of.
#[test]
fn null_is_the_stream_of_its_own_table() {
    let gpu = Gpu::new();
    let own = per_thread(&gpu);
    // A NULL stream is held by the raw call, which wants its context current.
    let _current = gpu.context.make_current().expect("the context can be made current");
    let [legacy_null, own_null] = [&gpu.context, &own].map(StreamRef::default_stream);
    let event =
        |context: &Context| Arc::new(Event::new(context, EventFlags::empty()).expect("an event"));
    let pending = |event: &Event| {
        assert_eq!(event.query(), Ok(Progress::Pending), "it is of the held stream")
    };

    let (of_legacy, of_own) = (event(&gpu.context), event(&own));
    let stream = Stream::new(&own, StreamOptions::new()).expect("a stream");
    let waiting = event(&own);
    // The legacy default stream waits for the work of this one, and the thread's own one does not.
    let blocking =
        Stream::new(&gpu.context, StreamOptions::new().blocking(true)).expect("a stream");
    let held = |work: &dyn Fn()| {
        let latch = Latch::hold(&blocking);
        work();
        latch.release();
        blocking.synchronize().expect("the work ends");
        legacy_null.synchronize().expect("the work ends");
    };
    held(&|| {
        of_legacy.record(&own_null).expect("a record");
        let limit = Duration::from_secs(10);
        assert_eq!(
            of_legacy.synchronize_timeout(limit),
            Ok(Progress::Done),
            "it is of the stream that is free"
        );
        assert_eq!(own_null.query(), Ok(Progress::Done));
    });
    held(&|| {
        of_own.record(&legacy_null).expect("a record");
        pending(&of_own);
    });
    held(&|| {
        // SAFETY: no flags.
        unsafe { of_own.record_with(&legacy_null, RecordFlags::empty()) }.expect("a record");
        pending(&of_own);
    });
    for _ in 0..2 {
        held(&|| {
            stream.wait_stream(&legacy_null).expect("a join");
            waiting.record(&stream).expect("a record");
            pending(&waiting);
        });
    }

    // Attributes: each default stream has its own.
    if gpu.driver.symbols().cuStreamCopyAttributes.is_some() {
        let policies = [SynchronizationPolicy::YIELD, SynchronizationPolicy::BLOCKING_SYNC];
        for (stream, policy) in [&legacy_null, &own_null].into_iter().zip(policies) {
            stream.set_synchronization_policy(policy).expect("a policy");
        }
        for context in [&gpu.context, &own] {
            let copy = Stream::new(context, StreamOptions::new()).expect("a stream");
            for (stream, policy) in [&legacy_null, &own_null].into_iter().zip(policies) {
                copy.copy_attributes_from(stream).expect("attributes");
                assert_eq!(copy.synchronization_policy(), Ok(policy));
            }
        }
        own_null.copy_attributes_from(&legacy_null).expect("attributes");
        assert_eq!(own_null.synchronization_policy(), Ok(policies[0]));
        for stream in [&legacy_null, &own_null] {
            stream.set_synchronization_policy(SynchronizationPolicy::AUTO).expect("a policy");
        }
    }

    if !common::needs(gpu.driver, Function::cuGraphAddEventRecordNode) {
        return;
    }
    // A launch: the executable graph is of the table in which NULL is the other stream.
    let mut graph = Graph::new(&own).expect("a graph");
    graph.add_event_record_node(&[], &of_own).expect("a node");
    let exec = graph.instantiate().expect("an executable graph");
    of_own.synchronize().expect("the work ends");
    held(&|| {
        exec.launch(&legacy_null).expect("a launch");
        pending(&of_own);
    });

    // A record that becomes a node: the thread's own stream captures, which the legacy one cannot.
    let capture = common::begin_capture(&own_null, CaptureMode::Relaxed).expect("a capture");
    own_null.record_external(&of_legacy).expect("a node");
    drop(capture.end().expect("a graph"));
}
