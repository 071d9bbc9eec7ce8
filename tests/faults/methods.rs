//! Which scenario calls which public method. That is the only list of them here:
//! docs/public-api.txt says what there is. A method that is missing here, one that is no more, and
//! one that its scenario does not call are told.

use std::collections::BTreeSet;

use cuda_events::sys::Function;

use super::sources;

use crate::common::public_api::Items;

/// Files of the library, with their text.
macro_rules! sources {
    ($($file:literal)*) => { &[$(($file, include_str!(concat!("../../src/", $file, ".rs")))),*] };
}

/// The sources of the safe layer, for the entry points that they call.
pub const SOURCES: &[(&str, &str)] = sources! {
    "capture/dependencies" "capture/external" "capture/guard" "capture/mod" "capture/mode"
    "capture/registry" "context" "device" "driver/call" "driver/flag" "driver/fork" "driver/init"
    "driver/libraries" "driver/mod" "driver/observer" "driver/panics" "driver/process"
    "error/advice" "error/descriptor" "error/mod" "error/shared_timeline" "error/texts" "event"
    "ext/completion/entry" "ext/completion/mod" "ext/completion/poller" "ext/current_stream"
    "ext/event_pool" "ext/inbox" "ext/ipc_lease" "ext/lazy_event" "ext/mod" "ext/needs"
    "ext/poller" "ext/precise_sleep" "ext/timeline/asked" "ext/timeline/crossing"
    "ext/timeline/descriptor" "ext/timeline/ending" "ext/timeline/file" "ext/timeline/followed"
    "ext/timeline/foreign" "ext/timeline/future" "ext/timeline/handle" "ext/timeline/host"
    "ext/timeline/import" "ext/timeline/known" "ext/timeline/line" "ext/timeline/memory/linux"
    "ext/timeline/memory/mod" "ext/timeline/memory/other" "ext/timeline/memory/windows"
    "ext/timeline/mod" "ext/timeline/opened" "ext/timeline/point" "ext/timeline/poller"
    "ext/timeline/queue" "ext/timeline/slot" "ext/timeline/wait" "ext/timeline/watch" "ext/timer"
    "external" "flags" "forms" "graph/exec" "graph/kept" "graph/mod" "graph/node" "green"
    "ipc/envelope" "ipc/exporter" "ipc/mod" "list" "loader/error" "loader/mod" "order" "progress"
    "share" "stream/attributes" "stream/capture_info" "stream/foreign" "stream/host_functions"
    "stream/mem_ops" "stream/mod" "stream/options" "sync" "sys/version" "timeout"
};

/// The modules that call no entry point for the safe layer: the raw layer, and what is private to
/// the loader.
const OTHERS: &[&str] =
    &["sys", "loader/platform", "loader/resolve", "driver/trampolines", "guide"];

const SCENARIOS: &str = concat!(include_str!("scenarios.rs"), include_str!("graphs_and_ipc.rs"));
const LOADING: &str = include_str!("loading.rs");
const OBSERVER: &str = include_str!("poller.rs");

const HERE: &str = include_str!("methods.rs");

/// A line for each method: where it is called, and the method.
macro_rules! methods {
    ($($place:ident: $($method:path),* ;)*) => {
        const METHODS: &[(&str, &str)] = &[$($((stringify!($place), stringify!($method)),)*)*];
    };
}

// The place is a scenario, by its function in scenarios.rs, or `loading` (loading.rs), `observer`
// (poller.rs), or `no_driver_call`: what cannot fail, as it asks the driver for nothing.
methods! {
    loading: Driver::load, Driver::load_with, Driver::from_resolver, Driver::symbols,
        LoadOptions::new, LoadOptions::per_thread_default_stream, LoadError::attempts,
        LoadAttempt::candidate, LoadAttempt::failure;
    devices: Driver::version, Driver::library, Driver::is_per_thread_default_stream, Device::count,
        Device::all, Device::driver, Device::ordinal, Device::as_raw, Device::name, Device::uuid,
        Device::attribute, Device::total_memory, Uuid::from_bytes, Uuid::as_bytes, Version::new;
    no_device: Device::new, Error::code;
    contexts: Context::from_raw, Context::current, Context::leak, Context::abandon,
        Context::synchronize, Context::driver, Context::device, Context::as_raw,
        Context::stream_priority_range, PriorityRange::contains;
    green_contexts: Context::green, Context::is_green, Context::sm_resource, Device::sm_resource,
        SmResource::count, SmResource::min_partition_size, SmResource::coscheduled_alignment,
        SmResource::device, SmResource::as_raw, SmResource::split_by_count;
    guards: Context::make_current;
    streams: StreamOptions::new, StreamOptions::blocking, StreamOptions::priority,
        StreamOptions::priority_clamped, StreamRef::query, StreamRef::synchronize,
        StreamRef::synchronize_timeout, StreamRef::priority, StreamRef::is_blocking, StreamRef::id,
        StreamRef::context, StreamRef::device, StreamRef::as_raw, StreamRef::cuda_stream;
    own_refusals: Stream::new;
    stream_close: Stream::into_raw, Stream::from_raw, Stream::close, StreamRef::from_raw;
    default_streams: StreamRef::default_stream, StreamRef::legacy_default,
        StreamRef::per_thread_default;
    attributes: StreamRef::attribute, StreamRef::set_attribute, StreamRef::synchronization_policy,
        StreamRef::set_synchronization_policy, StreamRef::set_priority,
        StreamRef::memory_sync_domain, StreamRef::set_memory_sync_domain,
        StreamRef::memory_sync_domain_map, StreamRef::set_memory_sync_domain_map,
        StreamRef::copy_attributes_from, SynchronizationPolicy::from_raw,
        SynchronizationPolicy::as_raw, MemorySyncDomain::from_raw, MemorySyncDomain::as_raw;
    foreign_streams: StreamRef::from_foreign, ForeignStream::new, ForeignStream::owner,
        ForeignStream::into_owner, Context::from_raw_with_owner;
    current_streams: StreamScope::enter, current_stream;
    events: EventRef::record, EventRef::record_with, EventRef::query, EventRef::synchronize,
        EventRef::synchronize_timeout, EventRef::flags, EventRef::is_imported, EventRef::context,
        EventRef::device;
    event_close: Event::new, Event::into_raw, Event::from_raw, Event::close, EventRef::from_raw,
        EventRef::as_raw;
    order: StreamRef::wait_event, StreamRef::wait_event_with, StreamRef::wait_stream,
        StreamRef::record_event;
    elapsed: EventRef::elapsed, EventRef::elapsed_ms;
    context_events: EventRef::record_context, Context::wait_event;
    host_functions: StreamRef::launch_host_function_raw, StreamRef::add_callback;
    values: StreamRef::wait_value32, StreamRef::wait_value64, StreamRef::write_value32,
        StreamRef::write_value64, StreamRef::batch_mem_op, MemOp::wait_value32, MemOp::wait_value64,
        MemOp::write_value32, MemOp::write_value64, MemOp::flush_remote_writes, MemOp::barrier,
        MemOp::as_raw;
    external_semaphores: BinarySemaphore::import_fd, BinarySemaphore::once,
        BinarySemaphore::context, BinarySemaphore::as_raw, BinarySemaphore::from_raw,
        BinarySemaphore::into_raw, BinarySemaphore::close, TimelineSemaphore::import_fd,
        TimelineSemaphore::at, TimelineSemaphore::context, TimelineSemaphore::as_raw,
        TimelineSemaphore::from_raw, TimelineSemaphore::into_raw, TimelineSemaphore::close,
        ImportError::error, ImportError::into_handle, ImportError::into_parts,
        StreamRef::signal_external, StreamRef::wait_external_semaphore,
        StreamRef::signal_external_binary, StreamRef::wait_external_binary,
        StreamRef::signal_externals, StreamRef::wait_externals;
    lazy_events: LazyEvent::new, LazyEvent::flags, LazyEvent::state, LazyEvent::event,
        LazyEvent::context, LazyEvent::device, LazyEvent::create, LazyEvent::record,
        LazyEvent::record_external, LazyEvent::record_once, LazyEvent::wait,
        LazyEvent::wait_recorded, LazyEvent::wait_external, LazyEvent::query,
        LazyEvent::synchronize, LazyEvent::synchronize_timeout, LazyEvent::elapsed_ms,
        LazyEvent::elapsed, LazyEvent::ipc_descriptor;
    timers: Timer::start, Timer::stop, Timing::query, Timing::synchronize, Timing::elapsed,
        Timing::elapsed_ms, Timing::start, Timing::end;
    pools: EventPool::new, EventPool::take, EventPool::record_event, EventPool::reserve,
        EventPool::clear, EventPool::available, EventPool::context, EventPool::flags,
        PooledEvent::discard;
    timelines: Timeline::new, Timeline::signal, Timeline::completed, Timeline::submitted,
        Timeline::stream, Timeline::wait_ahead, Timeline::poison, HostTimeline::new,
        HostTimeline::signal, HostTimeline::completed, HostTimeline::wait_ahead,
        HostTimeline::context, HostTimeline::poison, Point::value, Point::is_done, Point::query,
        Point::wait, Point::wait_timeout, Point::spin, Point::spin_timeout, PointCompletion::point,
        StreamRef::wait_point;
    shared_timelines: TimelineFile::new;
    both_roles: TimelineFile::context, Timeline::shared, Timeline::descriptor,
        HostTimeline::shared, HostTimeline::descriptor, TimelineDescriptor::to_bytes,
        TimelineDescriptor::from_bytes, ImportedTimeline::open, ImportedTimeline::point,
        ImportedTimeline::completed, ImportedTimeline::context;
    protected_timelines: TimelineFile::protected;
    memory_timelines: TimelineMemory::new, TimelineMemory::context, Timeline::in_memory,
        Timeline::handle, TimelineHandle::to_bytes, TimelineHandle::from_bytes,
        TimelineHandle::exporter_pid, TimelineHandle::device_uuid;
    opened_timelines: OpenedTimeline::open, OpenedTimeline::point, OpenedTimeline::exporter_ended,
        OpenedTimeline::exporter_state, OpenedTimeline::context;
    completions: Completion::new, StreamRef::completion;
    captures: Capture::end, Capture::stream, Capture::dependencies, Capture::update_dependencies,
        StreamRef::capture_status, StreamRef::capture_info;
    dropped_capture: ThreadCaptureMode::exchange;
    capture: Capture::begin;
    external: StreamRef::record_external, StreamRef::wait_external;
    graphs: Graph::new, Graph::add_event_record_node, Graph::add_event_wait_node,
        Graph::record_node_event, Graph::wait_node_event, Graph::set_record_node_event,
        Graph::set_wait_node_event, Graph::instantiate, Graph::context, GraphNode::from_raw,
        GraphNode::as_raw, GraphExec::launch, GraphExec::context, GraphExec::set_record_node_event,
        GraphExec::set_wait_node_event, Capture::begin_to_graph;
    graph_close: Graph::from_raw, Graph::as_raw, Graph::close, GraphExec::as_raw, GraphExec::close;
    exports: EventRef::ipc_descriptor, IpcEventDescriptor::to_bytes, IpcEventDescriptor::from_bytes,
        IpcEventDescriptor::device_uuid, IpcEventDescriptor::is_blocking_sync,
        IpcEventDescriptor::exporter_pid, ExporterProcess::of, ExporterProcess::pid,
        ExporterProcess::state, IpcLease::new, IpcLease::descriptor, IpcLease::event;
    imports: ExporterProcess::wait_for, Event::from_ipc_descriptor, IpcEventDescriptor::from_raw,
        IpcEventDescriptor::to_raw;
    context: Context::primary;
    hold: StreamRef::launch_host_function;
    observer: Driver::observe;
    no_driver_call: Driver::load_from, Driver::stop_observing, LoadOptions::path, Error::function,
        Error::is_sticky, Progress::is_done, Progress::is_pending, Version::from_raw,
        Version::as_raw, Version::major, Version::minor, pending_host_functions;
}

/// The text of a function, from its name to the next one at the same depth.
fn body<'a>(text: &'a str, function: &str) -> Option<&'a str> {
    let from = [format!("fn {function}("), format!("fn {function}<")];
    let start = from.iter().find_map(|from| text.find(from))?;
    let rest = &text[start..];
    let indent =
        text[..start].lines().last().map_or(0, |line| line.len() - line.trim_start().len());
    let end = format!("\n{}}}\n", " ".repeat(indent));
    Some(&rest[..rest.find(&end).unwrap_or(rest.len())])
}

/// Where a method is listed, or where the list begins.
fn listed(method: &str) -> String {
    let (before, list) = HERE.split_once("\nmethods! {\n").expect("the list is in this file");
    let names = |line: &str| line.split([',', ';', ' ']).any(|word| word == method);
    let within = list.lines().take_while(|line| *line != "}").position(names);
    format!("tests/faults/methods.rs:{}", before.lines().count() + within.map_or(1, |at| at + 2))
}

#[test]
fn every_public_method_is_in_a_scenario() {
    let items = Items::of_the_crate();
    let functions = || items.own.iter().filter(|item| item.arguments().is_some());
    assert!(
        functions().count() > 200,
        "docs/public-api.txt lists {} functions",
        functions().count()
    );
    let mut wrong = Vec::new();
    for item in functions() {
        let name = &item.name;
        match METHODS.iter().filter(|(_, listed)| listed == name).count() {
            1 => {}
            0 => wrong.push(format!(
                "{}: the list has no {name} (docs/public-api.txt:{}): add it to the line of the \
                 scenario that calls it, or to `no_driver_call`",
                listed(name),
                item.at
            )),
            _ => wrong.push(format!("{}: {name} is in the list again", listed(name))),
        }
    }
    for (_, method) in
        METHODS.iter().filter(|(_, method)| !functions().any(|item| item.name == *method))
    {
        wrong.push(format!(
            "{}: docs/public-api.txt has no {method}; tools/public-api --write renews it",
            listed(method)
        ));
    }

    for (place, method) in METHODS.iter().filter(|(place, _)| *place != "no_driver_call") {
        let (file, text) = match *place {
            "loading" => ("loading", Some(LOADING)),
            "observer" => ("poller", Some(OBSERVER)),
            place => ("scenarios", body(SCENARIOS, place)),
        };
        let Some(text) = text else {
            wrong.push(format!(
                "{}: tests/faults/scenarios.rs has no function {place}",
                listed(method)
            ));
            continue;
        };
        let name = method.rsplit("::").next().unwrap_or(method);
        let called =
            [format!(".{name}("), format!("::{name}("), format!("{name}(&"), format!("::{name})")];
        if !called.iter().any(|call| text.contains(call)) {
            wrong.push(format!(
                "{}: {place} in tests/faults/{file}.rs does not call {method}",
                listed(method)
            ));
        }
    }
    wrong.dedup();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_source_is_looked_at() {
    let modules = |text: &'static str| {
        let names = text
            .lines()
            .map(|line| line.trim_start_matches("pub ").trim_start_matches("pub(crate) "));
        names.filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';'))
    };
    let at = HERE.lines().position(|line| line.starts_with("pub const SOURCES"));
    let at = at.expect("the list is in this file") + 1;
    let known: Vec<&str> = SOURCES.iter().map(|(file, _)| file.trim_end_matches("/mod")).collect();
    let nested = SOURCES.iter().flat_map(|(file, text)| {
        let folder = file.trim_end_matches("/mod");
        modules(text).map(move |module| format!("{folder}/{module}"))
    });
    for module in modules(include_str!("../../src/lib.rs")).map(str::to_owned).chain(nested) {
        let known = known.contains(&module.as_str()) || OTHERS.contains(&module.as_str());
        assert!(
            known,
            "tests/faults/methods.rs:{at}: add the file of the module {module} to SOURCES"
        );
    }
}

/// The entry points that the safe layer's sources call.
fn used() -> BTreeSet<Function> {
    SOURCES.iter().flat_map(|(_, text)| sources::calls(text)).map(|call| call.function).collect()
}

/// Each entry point that the safe layer can call was called by some scenario.
pub fn assert_all_reached(called: &BTreeSet<Function>) {
    let used = used();
    assert!(used.len() > 50, "the sources name {} entry points", used.len());
    // The software driver has memory for other processes, and external semaphores, on Linux alone.
    let only_linux = [
        Function::cuIpcOpenMemHandle_v2,
        Function::cuIpcCloseMemHandle,
        Function::cuMemcpyDtoHAsync_v2,
        Function::cuImportExternalSemaphore,
        Function::cuDestroyExternalSemaphore,
        Function::cuSignalExternalSemaphoresAsync,
        Function::cuWaitExternalSemaphoresAsync,
    ];
    // There it has no semaphores, so no scenario comes to this: tests/streams/external_windows.rs.
    let only_windows = [Function::cuDeviceGetLuid];
    let missed: Vec<_> = used
        .difference(called)
        .filter(|function| cfg!(target_os = "linux") || !only_linux.contains(function))
        .filter(|function| !only_windows.contains(function))
        .collect();
    assert!(
        missed.is_empty(),
        "the library calls {missed:?}, and no scenario of tests/faults/scenarios.rs comes to it"
    );
    println!("{:6} entry points that the safe layer can call, and all were", used.len());
}

/// The types whose values stand for objects of the driver.
const OBJECTS: &[&str] = &[
    "BinarySemaphore",
    "Capture",
    "CaptureDependency",
    "Completion",
    "Context",
    "Event",
    "EventPool",
    "EventRef",
    "Graph",
    "GraphExec",
    "GraphNode",
    "LazyEvent",
    "PooledEvent",
    "SemaphorePoint",
    "Stream",
    "StreamRef",
    "TimelineSemaphore",
    "Timer",
    "Timing",
];

/// The public methods that take two objects or more.
fn methods_of_two() -> Vec<String> {
    let mut found = Vec::new();
    for item in &Items::of_the_crate().own {
        let (Some(arguments), of) =
            (item.arguments(), item.name.split("::").next().unwrap_or_default())
        else {
            continue;
        };
        let words = arguments.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let is_object = |word: &&str| {
            OBJECTS.contains(word) || (OBJECTS.contains(&of) && ["self", "Self"].contains(word))
        };
        if words.filter(is_object).count() > 1 {
            found.push(item.name.clone());
        }
    }
    found
}

#[test]
fn methods_of_two_objects_try_two_libraries() {
    let tried = include_str!("../driver/two_drivers.rs");
    let methods = methods_of_two();
    assert!(methods.len() > 30, "{methods:?}");
    let missed: Vec<_> =
        methods.iter().filter(|method| !tried.contains(&format!("\"{method}\""))).collect();
    let at = tried
        .lines()
        .position(|line| line.contains("\"EventRef::elapsed\""))
        .map_or(1, |at| at + 1);
    assert!(
        missed.is_empty(),
        "{missed:?}: it takes two objects, which may be of two libraries; add a line about it to \
         tests/driver/two_drivers.rs, as at line {at}"
    );
}
