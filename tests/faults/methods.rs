//! Which scenario calls which public method, checked against the sources: a method that is removed does not compile here,
//! one that is added is missing here, and one that its scenario does not call is told.

use std::collections::{BTreeMap, BTreeSet};

use cuda_events::sys::{ENTRY_POINTS, Function};

/// The sources of the safe layer, by file.
const SOURCES: &[(&str, &str)] = &[
    ("capture", include_str!("../../src/capture/mod.rs")),
    ("capture/dependencies", include_str!("../../src/capture/dependencies.rs")),
    ("capture/external", include_str!("../../src/capture/external.rs")),
    ("capture/guard", include_str!("../../src/capture/guard.rs")),
    ("capture/mode", include_str!("../../src/capture/mode.rs")),
    ("capture/registry", include_str!("../../src/capture/registry.rs")),
    ("context", include_str!("../../src/context.rs")),
    ("device", include_str!("../../src/device.rs")),
    ("driver", include_str!("../../src/driver/mod.rs")),
    ("driver/flag", include_str!("../../src/driver/flag.rs")),
    ("driver/fork", include_str!("../../src/driver/fork.rs")),
    ("driver/libraries", include_str!("../../src/driver/libraries.rs")),
    ("driver/observer", include_str!("../../src/driver/observer.rs")),
    ("driver/panics", include_str!("../../src/driver/panics.rs")),
    ("driver/process", include_str!("../../src/driver/process.rs")),
    ("error", include_str!("../../src/error/mod.rs")),
    ("error/advice", include_str!("../../src/error/advice.rs")),
    ("error/descriptor", include_str!("../../src/error/descriptor.rs")),
    ("error/texts", include_str!("../../src/error/texts.rs")),
    ("event", include_str!("../../src/event.rs")),
    ("ext", include_str!("../../src/ext/mod.rs")),
    ("ext/completion", include_str!("../../src/ext/completion/mod.rs")),
    ("ext/completion/poller", include_str!("../../src/ext/completion/poller.rs")),
    ("ext/current_stream", include_str!("../../src/ext/current_stream.rs")),
    ("ext/event_pool", include_str!("../../src/ext/event_pool.rs")),
    ("ext/ipc_lease", include_str!("../../src/ext/ipc_lease.rs")),
    ("ext/lazy_event", include_str!("../../src/ext/lazy_event.rs")),
    ("ext/timer", include_str!("../../src/ext/timer.rs")),
    ("forms", include_str!("../../src/forms.rs")),
    ("graph", include_str!("../../src/graph/mod.rs")),
    ("graph/exec", include_str!("../../src/graph/exec.rs")),
    ("graph/kept", include_str!("../../src/graph/kept.rs")),
    ("graph/node", include_str!("../../src/graph/node.rs")),
    ("green", include_str!("../../src/green.rs")),
    ("ipc", include_str!("../../src/ipc/mod.rs")),
    ("ipc/exporter", include_str!("../../src/ipc/exporter.rs")),
    ("loader", include_str!("../../src/loader/mod.rs")),
    ("loader/error", include_str!("../../src/loader/error.rs")),
    ("order", include_str!("../../src/order.rs")),
    ("progress", include_str!("../../src/progress.rs")),
    ("stream", include_str!("../../src/stream/mod.rs")),
    ("stream/attributes", include_str!("../../src/stream/attributes.rs")),
    ("stream/capture_info", include_str!("../../src/stream/capture_info.rs")),
    ("stream/foreign", include_str!("../../src/stream/foreign.rs")),
    ("stream/host_functions", include_str!("../../src/stream/host_functions.rs")),
    ("stream/mem_ops", include_str!("../../src/stream/mem_ops.rs")),
    ("stream/options", include_str!("../../src/stream/options.rs")),
    ("sys/version", include_str!("../../src/sys/version.rs")),
    ("timeout", include_str!("../../src/timeout.rs")),
];

/// The modules that are not of the safe layer's methods: the raw layer, and what is private to the loader.
const OTHERS: &[&str] = &["sys", "loader/platform", "loader/resolve", "driver/trampolines"];

const SCENARIOS: &str = include_str!("scenarios.rs");
const LOADING: &str = include_str!("loading.rs");
const OBSERVER: &str = include_str!("poller.rs");

/// A line for each method: where it is called, and the method, which must exist.
macro_rules! methods {
    ($($place:ident: $($method:path),* ;)*) => {
        const METHODS: &[(&str, &str)] = &[$($((stringify!($place), stringify!($method)),)*)*];
        /// Never called; it is enough that it compiles.
        #[allow(unused, path_statements)]
        fn exist() {
            $($({ use cuda_events::{attributes::*, capture::*, ext::*, graph::*, green::*, host_functions::*, ipc::*, loader::*, mem_ops::*, observer::*, *}; $method; })*)*
        }
    };
}

methods! {
    loading: Driver::load, Driver::load_with, Driver::from_resolver, Driver::symbols, LoadOptions::new,
        LoadOptions::per_thread_default_stream, LoadError::attempts, LoadAttempt::candidate, LoadAttempt::failure;
    devices: Driver::version, Driver::library, Driver::is_per_thread_default_stream, Device::count, Device::all,
        Device::driver, Device::ordinal, Device::as_raw, Device::name, Device::uuid, Device::attribute,
        Device::total_memory, Uuid::from_bytes, Uuid::as_bytes, Version::new;
    no_device: Device::new, Error::code;
    contexts: Context::from_raw, Context::current, Context::leak, Context::abandon, Context::synchronize,
        Context::driver, Context::device, Context::as_raw, Context::stream_priority_range, PriorityRange::contains;
    green_contexts: Context::green, Context::is_green, Context::sm_resource, Device::sm_resource, SmResource::count,
        SmResource::min_partition_size, SmResource::coscheduled_alignment, SmResource::device, SmResource::as_raw,
        SmResource::split_by_count;
    guards: Context::make_current;
    streams: StreamOptions::new, StreamOptions::blocking, StreamOptions::priority, StreamOptions::priority_clamped,
        StreamRef::query, StreamRef::synchronize, StreamRef::synchronize_timeout,
        StreamRef::priority, StreamRef::is_blocking, StreamRef::id, StreamRef::context,
        StreamRef::device, StreamRef::as_raw, StreamRef::cuda_stream;
    own_refusals: Stream::new;
    stream_close: Stream::into_raw, Stream::from_raw, Stream::close, StreamRef::from_raw;
    default_streams: StreamRef::default_stream, StreamRef::legacy_default, StreamRef::per_thread_default;
    attributes: StreamRef::attribute, StreamRef::set_attribute, StreamRef::synchronization_policy,
        StreamRef::set_synchronization_policy, StreamRef::set_priority, StreamRef::memory_sync_domain,
        StreamRef::set_memory_sync_domain, StreamRef::memory_sync_domain_map,
        StreamRef::set_memory_sync_domain_map, StreamRef::copy_attributes_from,
        SynchronizationPolicy::from_raw, SynchronizationPolicy::as_raw, MemorySyncDomain::from_raw,
        MemorySyncDomain::as_raw;
    foreign_streams: StreamRef::from_foreign, ForeignStream::<()>::new, ForeignStream::<()>::owner,
        ForeignStream::<()>::into_owner, Context::from_raw_with_owner::<()>;
    current_streams: StreamScope::enter::<Stream>, current_stream;
    events: EventRef::record, EventRef::record_with, EventRef::query, EventRef::synchronize,
        EventRef::synchronize_timeout, EventRef::flags, EventRef::is_imported, EventRef::context,
        EventRef::device;
    event_close: Event::new, Event::into_raw, Event::from_raw, Event::close, EventRef::from_raw,
        EventRef::as_raw;
    order: StreamRef::wait_event, StreamRef::wait_event_with, StreamRef::wait_stream,
        StreamRef::record_event;
    elapsed: EventRef::elapsed, EventRef::elapsed_ms;
    context_events: EventRef::record_context, Context::wait_event;
    host_functions: StreamRef::launch_host_function_raw;
    values: StreamRef::wait_value32, StreamRef::wait_value64, StreamRef::write_value32,
        StreamRef::write_value64, StreamRef::batch_mem_op, MemOp::wait_value32, MemOp::wait_value64,
        MemOp::write_value32, MemOp::write_value64, MemOp::flush_remote_writes, MemOp::barrier, MemOp::as_raw;
    lazy_events: LazyEvent::new, LazyEvent::flags, LazyEvent::state, LazyEvent::event, LazyEvent::context, LazyEvent::device,
        LazyEvent::create, LazyEvent::record, LazyEvent::record_external, LazyEvent::record_once, LazyEvent::wait,
        LazyEvent::wait_recorded, LazyEvent::wait_external, LazyEvent::query, LazyEvent::synchronize,
        LazyEvent::synchronize_timeout, LazyEvent::elapsed_ms, LazyEvent::elapsed, LazyEvent::ipc_descriptor;
    timers: Timer::start, Timer::stop, Timing::query, Timing::synchronize, Timing::elapsed, Timing::elapsed_ms,
        Timing::start, Timing::end;
    pools: EventPool::new, EventPool::take, EventPool::record_event, EventPool::reserve, EventPool::clear,
        EventPool::available, EventPool::context,
        EventPool::flags, PooledEvent::record, PooledEvent::query, PooledEvent::synchronize,
        PooledEvent::synchronize_timeout, PooledEvent::discard;
    completions: Completion::<Event>::new, StreamRef::completion;
    captures: Capture::end, Capture::stream, Capture::dependencies, Capture::update_dependencies,
        StreamRef::capture_status, StreamRef::capture_info;
    dropped_capture: ThreadCaptureMode::exchange;
    capture: Capture::begin;
    external: StreamRef::record_external, StreamRef::wait_external;
    graphs: Graph::new, Graph::add_event_record_node, Graph::add_event_wait_node, Graph::record_node_event,
        Graph::wait_node_event, Graph::set_record_node_event, Graph::set_wait_node_event, Graph::instantiate,
        Graph::context, GraphNode::from_raw, GraphNode::as_raw, GraphExec::launch, GraphExec::context,
        GraphExec::set_record_node_event, GraphExec::set_wait_node_event, Capture::begin_to_graph;
    graph_close: Graph::from_raw, Graph::as_raw, Graph::close, GraphExec::as_raw, GraphExec::close;
    exports: EventRef::ipc_descriptor, IpcEventDescriptor::to_bytes, IpcEventDescriptor::from_bytes,
        IpcEventDescriptor::device_uuid, IpcEventDescriptor::is_blocking_sync, IpcEventDescriptor::exporter_pid,
        ExporterProcess::of, ExporterProcess::pid, ExporterProcess::state, IpcLease::new, IpcLease::descriptor,
        IpcLease::event;
    imports: ExporterProcess::wait_for, Event::from_ipc_descriptor, IpcEventDescriptor::from_raw,
        IpcEventDescriptor::to_raw;
    context: Context::primary;
}

/// Those that have a type of their own for an argument and so no path, and those that make no driver call and are tested
/// elsewhere.
const APART: &[(&str, &str)] =
    &[("hold", "launch_host_function"), ("host_functions", "add_callback"), ("observer", "observe")];

/// No driver call is made in them, and none can fail.
const PURE: &[&str] = &[
    "Driver::load_from",
    "Driver::stop_observing",
    "LoadOptions::path",
    "Error::function",
    "Error::is_sticky",
    "Progress::is_done",
    "Progress::is_pending",
    "Version::from_raw",
    "Version::as_raw",
    "Version::major",
    "Version::minor",
    "pending_host_functions",
];

/// The text of a function, from its name to the next one at the same depth.
fn body<'a>(text: &'a str, function: &str) -> Option<&'a str> {
    let from = [format!("fn {function}("), format!("fn {function}<")];
    let start = from.iter().find_map(|from| text.find(from))?;
    let rest = &text[start..];
    let indent = text[..start].lines().last().map_or(0, |line| line.len() - line.trim_start().len());
    let end = format!("\n{}}}\n", " ".repeat(indent));
    Some(&rest[..rest.find(&end).unwrap_or(rest.len())])
}

/// The public functions of a file.
fn public_functions(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let line = line.trim_start();
        let rest = line.strip_prefix("pub ")?;
        let rest = rest.strip_prefix("const ").unwrap_or(rest);
        let rest = rest.strip_prefix("unsafe ").unwrap_or(rest);
        let name = rest.strip_prefix("fn ")?;
        name.split(['(', '<']).next()
    })
}

#[test]
fn every_public_method_is_in_a_scenario() {
    let modules = |text: &'static str| {
        let names = text.lines().map(|line| line.trim_start_matches("pub ").trim_start_matches("pub(crate) "));
        names.filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';'))
    };
    let library = include_str!("../../src/lib.rs");
    let nested = SOURCES.iter().flat_map(|(file, text)| modules(text).map(move |module| format!("{file}/{module}")));
    for module in modules(library).map(str::to_owned).chain(nested) {
        let known = SOURCES.iter().any(|(file, _)| *file == module) || OTHERS.contains(&module.as_str());
        assert!(known, "the file of the module {module} is not looked at");
    }

    // How often a name is that of a public function, and how often one of that name is listed.
    let mut names: BTreeMap<&str, [usize; 2]> = BTreeMap::new();
    for name in SOURCES.iter().flat_map(|(_, text)| public_functions(text)) {
        names.entry(name).or_default()[0] += 1;
    }
    let listed = METHODS.iter().map(|(_, method)| *method).chain(APART.iter().map(|(_, name)| *name));
    for method in listed.chain(PURE.iter().copied()) {
        let name = method.split("::").map(str::trim).filter(|part| !part.starts_with('<')).last().unwrap_or(method);
        let name = name.split('<').next().unwrap_or(name).trim();
        names.entry(name).or_default()[1] += 1;
    }
    let wrong: Vec<_> = names.iter().filter(|(_, [there, listed])| there != listed).collect();
    assert!(wrong.is_empty(), "name, how often it is public, how often it is listed: {wrong:?}");

    for (place, method) in METHODS.iter().chain(APART) {
        let parts: Vec<&str> = method.split("::").map(str::trim).filter(|part| !part.starts_with('<')).collect();
        let Some(name) = parts.last() else { continue };
        let text = match *place {
            "loading" => Some(LOADING),
            "observer" => Some(OBSERVER),
            place => body(SCENARIOS, place),
        };
        let text = text.unwrap_or_else(|| panic!("there is no function {place}"));
        let called = [format!(".{name}("), format!("::{name}("), format!("{name}(&"), format!("::{name})")];
        assert!(called.iter().any(|call| text.contains(call)), "{place} does not call {method}");
    }
}

/// The entry points that the safe layer's sources name as fields of the table.
fn used() -> BTreeSet<Function> {
    let mut used = BTreeSet::new();
    for (_, text) in SOURCES {
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
        let text = code.as_str();
        for (at, _) in text.match_indices("symbols") {
            let rest = text[at..].trim_start_matches("symbols").trim_start_matches("()");
            let Some(name) = rest.strip_prefix(".cu") else { continue };
            let length = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(name.len());
            let name = format!("cu{}", &name[..length]);
            used.extend(ENTRY_POINTS.iter().map(|entry| entry.function).filter(|function| function.name() == name));
        }
    }
    used
}

/// Each entry point that the safe layer can call was called by some scenario.
pub fn assert_all_reached(called: &BTreeSet<Function>) {
    let used = used();
    assert!(used.len() > 50, "the sources name {} entry points", used.len());
    let missed: Vec<_> = used.difference(called).collect();
    assert!(missed.is_empty(), "no scenario has called {missed:?}");
    println!("{:6} entry points that the safe layer can call, and all were", used.len());
}

/// The types whose values stand for objects of the driver.
const OBJECTS: &[&str] = &[
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
    "Stream",
    "StreamRef",
    "Timer",
    "Timing",
];

/// The public methods of a file that take two objects or more, by type and name.
fn methods_of_two(text: &'static str) -> Vec<String> {
    let words = |text: &'static str| text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let mut found = Vec::new();
    let (mut of, mut rest) = ("", text);
    while let Some((line, after)) = rest.split_once('\n') {
        if let Some(header) = line.strip_prefix("impl") {
            // `impl<'a> Capture<'a> {`, `impl<E: Bound> Trait for Type<E> {`
            let header = header.rsplit_once(" for ").map_or(header, |(_, of)| of);
            let named = words(header).find(|word| OBJECTS.contains(word));
            of = named.unwrap_or("");
        }
        let name = public_functions(line).next();
        let end = [") ->", ") {"].into_iter().filter_map(|end| rest.find(end)).min();
        if let (Some(name), Some(arguments)) = (name, end.map(|end| &rest[..end])) {
            let arguments = arguments.split_once('(').map_or("", |(_, arguments)| arguments);
            let objects = words(arguments)
                .filter(|word| OBJECTS.contains(word) || (OBJECTS.contains(&of) && ["self", "Self"].contains(word)));
            if objects.count() > 1 {
                found.push(format!("{of}::{name}"));
            }
        }
        rest = after;
    }
    found
}

#[test]
fn every_method_of_two_objects_is_tried_with_two_libraries() {
    let tried = include_str!("../driver/two_drivers.rs");
    let methods: Vec<_> = SOURCES.iter().flat_map(|(_, text)| methods_of_two(text)).collect();
    assert!(methods.len() > 30, "{methods:?}");
    let missed: Vec<_> = methods.iter().filter(|method| !tried.contains(&format!("\"{method}\""))).collect();
    assert!(missed.is_empty(), "no line of tests/driver/two_drivers.rs is about {missed:?}");
}
