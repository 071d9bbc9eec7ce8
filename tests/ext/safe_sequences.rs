//! Random sequences of safe calls, from three threads: a part of what `tools/fuzz safe` does, whose
//! files this takes.

#[path = "../../fuzz/src/bytes.rs"]
#[expect(dead_code, reason = "the fuzzer's file, of which this takes a part")]
mod bytes;
#[path = "../../fuzz/src/safe.rs"]
mod safe;

use crate::common::public_api::Items;
use crate::common::{self, watch};

const SAFE: &str = include_str!("../../fuzz/src/safe.rs");

/// Safe methods that the sequences do not call, and why: whole types, or single methods.
const LEFT_OUT: &[(&str, &[&str])] = &[
    (
        "a plain value, or what other targets and tests make of bytes",
        &[
            "Version",
            "Uuid",
            "Error",
            "LoadError",
            "LoadAttempt",
            "LoadOptions",
            "Progress",
            "MemOp",
            "IpcEventDescriptor",
            "TimelineHandle",
            "SynchronizationPolicy::as_raw",
            "MemorySyncDomain::as_raw",
            "PriorityRange::contains",
            "ExporterProcess",
        ],
    ),
    (
        "only unsafe code can do anything with the raw handle",
        &[
            "Event::into_raw",
            "EventRef::as_raw",
            "Stream::into_raw",
            "StreamRef::as_raw",
            "Context::as_raw",
            "Device::as_raw",
            "Graph::as_raw",
            "GraphExec::as_raw",
            "GraphNode::as_raw",
            "SmResource::as_raw",
        ],
    ),
    (
        "only unsafe code makes one",
        &[
            "Capture",
            "BinarySemaphore",
            "TimelineSemaphore",
            "ImportError",
            "OpenedTimeline",
            "ForeignStream",
            "StreamRef::signal_external",
            "StreamRef::signal_external_binary",
            "StreamRef::signal_externals",
            "StreamRef::wait_external_binary",
            "StreamRef::wait_external_semaphore",
            "StreamRef::wait_externals",
        ],
    ),
    (
        "it is the whole process's, or is never given back",
        &["Context::abandon", "Context::leak", "Driver"],
    ),
    ("it is for two processes: the target `pages`", &["ImportedTimeline", "TimelineMemory"]),
    (
        "a part of the value, which others of its methods use",
        &[
            "EventPool::context",
            "HostTimeline::context",
            "IpcLease::event",
            "LazyEvent::context",
            "LazyEvent::event",
            "PointCompletion::point",
            "Timeline::in_memory",
            "Timeline::stream",
            "Timing::end",
            "Graph::context",
            "GraphExec::context",
            "StreamRef::completion",
        ],
    ),
];

/// Each safe method of the crate is called, or its absence has a reason.
#[test]
fn each_safe_method_is_called() {
    let own = &Items::of_the_crate().own;
    let methods = own.iter().filter(|own| own.arguments().is_some());
    let safe: Vec<&str> = methods
        .filter(|own| !own.line.contains("unsafe fn"))
        .map(|own| own.name.as_str())
        .collect();
    let is_called = |name: &str| {
        let method = name.rsplit("::").next().unwrap_or(name);
        [".", "::"].iter().any(|before| SAFE.contains(&format!("{before}{method}(")))
            || SAFE.contains(&format!(" {method}("))
    };
    let has_reason = |name: &str| {
        let of = name.split("::").next().unwrap_or(name);
        LEFT_OUT.iter().any(|(_, items)| items.contains(&name) || items.contains(&of))
    };
    let missing: Vec<_> =
        safe.iter().filter(|name| !is_called(name) && !has_reason(name)).collect();
    assert!(
        missing.is_empty(),
        "add these to a sequence in fuzz/src/safe.rs, or to LEFT_OUT with a reason: {missing:?}"
    );
    let of_none = |item: &&&str| {
        let below = format!("{item}::");
        !safe.iter().any(|name| name == *item || name.starts_with(&below))
    };
    let stale: Vec<_> = LEFT_OUT.iter().flat_map(|(_, items)| *items).filter(of_none).collect();
    assert!(stale.is_empty(), "these are no safe methods: {stale:?}");
}

/// `CUDA_EVENTS_TEST_SEQUENCES` is how many, from a seed of now; without it the same few each time.
#[test]
fn safe_calls_are_safe() {
    // Its drivers stay until the process ends.
    common::own_process!();
    let many = std::env::var("CUDA_EVENTS_TEST_SEQUENCES").ok();
    let many: Option<u64> = many.map(|text| text.parse().expect("a count"));
    let now = || std::time::UNIX_EPOCH.elapsed().map_or(1, |since| since.as_nanos() as u64);
    let mut seed = many.map_or(1, |_| now());
    let mut next = || {
        // SplitMix64.
        seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    };
    for _ in 0..many.unwrap_or(100) {
        watch::alive();
        let length = next() % 900;
        let input: Vec<u8> = (0..length).map(|_| next() as u8).collect();
        safe::run(&input);
    }
}
