//! What calls order, in front of a driver that does nothing.

use core::ffi::{CStr, c_uint, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{context, device};
use crate::call::{Address, Call, Code, EXTERNAL, Handle, OK, thread};
use crate::callbacks::post;
use crate::guard;
use crate::hooks::declare::take_findings;
use crate::hooks::{copies, events, graphs, host_functions, streams};
use crate::lock::TURN;
use crate::model::streams::NON_BLOCKING;
use crate::settings::Settings;
use crate::start::start;
use crate::state::blocks::Block;
use crate::state::executions::Posted;
use crate::walk::{begin_call, locked};
use cuda_order_check_engine::Finding;
use cuda_order_check_engine::feed::Memory;

const CALL: Call = Call { name: "cuMemsetD8Async", per_thread: false };
const A: Handle = 0x1010;
const B: Handle = 0x1020;
const C: Handle = 0x1030;
const EVENT: Handle = 0x2010;
const MEMORY: Address = 0x1000_0000_0000;

/// The stream whose capture was asked for last.
static ASKED: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn capture(stream: Handle, status: *mut c_uint) -> Code {
    ASKED.store(stream, Ordering::Relaxed);
    // SAFETY: a place for the answer.
    unsafe { *status = 0 };
    OK
}

/// Begins to watch, with three streams, an event and memory of a device.
fn with_streams(settings: &str) {
    let resolve = |name: &CStr| match name.to_bytes() {
        b"cuCtxGetCurrent" => context as *mut c_void,
        b"cuCtxGetDevice" => device as *mut c_void,
        b"cuStreamGetCaptureInfo_v2" => capture as *mut c_void,
        _ => core::ptr::null_mut(),
    };
    start(&resolve, &Settings::from_text(settings).expect("it is valid"));
    for stream in [A, B, C] {
        streams::create(&CALL, || OK, &mut { stream }, NON_BLOCKING);
    }
    events::create(&CALL, || OK, &mut { EVENT });
    begin_call(&CALL, |watch| watch.allocated(MEMORY, 4096, Memory::Device));
}

const SETTINGS: &str = "log=/dev/null,stacks=off";

fn set_at(at: u64, stream: Handle) {
    copies::set(&CALL, || OK, Block::device(MEMORY + at), (0, 1), [64, 1], Some(stream));
}

fn set(stream: Handle) {
    set_at(0, stream);
}

/// A handler of a signal may make a call in the midst of the library's own work. That one may have ordered
/// anything.
#[test]
fn a_call_that_was_not_seen_orders_everything() {
    let _turn = TURN.lock();
    for unseen in 0..3 {
        with_streams(SETTINGS);
        set(A);
        locked(|_| (0..unseen).for_each(|_| assert_eq!(guard::own(|| ()), None)));
        set(B);
        assert_eq!(take_findings().len(), usize::from(unseen == 0), "{unseen} calls");
    }
}

/// A call of another thread comes while this one is made: each finding names its own.
#[test]
fn a_call_that_goes_on_is_itself() {
    let _turn = TURN.lock();
    let other = |real: fn()| move || (std::thread::spawn(real).join().expect("no panic"), OK).1;
    let meanwhile = || other(|| _ = events::query(&CALL, || OK, EVENT));
    let source = [1_u8; 64];
    let from = || Block::host((&raw const source).expose_provenance() as u64);
    const UPLOAD: Call = Call { name: "cuMemcpyHtoDAsync_v2", per_thread: false };
    const RECORD: Call = Call { name: "cuCtxSynchronize", per_thread: false };
    for waits in [false, true] {
        with_streams(SETTINGS);
        set(A);
        if waits {
            streams::context_synchronize(&RECORD, meanwhile(), 0);
        }
        copies::copy(&UPLOAD, meanwhile(), [Block::device(MEMORY), from()], [64, 1, 1], Some(B));
        let all = take_findings();
        assert_eq!(all.len(), usize::from(!waits), "{all:?}");
        let report = all.first().and_then(Finding::report);
        let names =
            report.map(|report| [&report.first, &report.second].map(|side| &*side.call.name));
        assert_eq!(names, (!waits).then_some([CALL.name, UPLOAD.name]));
        let own = report.map(|report| report.second.call.by);
        let this = cuda_order_check_engine::By::Thread(cuda_order_check_engine::ThreadId(thread()));
        assert_eq!(own, (!waits).then_some(this));
    }
}

/// Work that waits for the next call was submitted before a host function begins, and is not after it.
#[test]
fn work_that_waits_is_before_a_function_that_begins() {
    let _turn = TURN.lock();
    for before in [true, false] {
        with_streams(SETTINGS);
        set(A);
        let submitted = begin_call(&CALL, |watch| {
            let stream = watch.stream(&CALL, A);
            watch.feed.function(stream, 7);
        });
        assert!(submitted.is_some());
        let run = || {
            std::thread::spawn(|| {
                post(Posted::Begins(7));
                post(Posted::Ends(7));
            })
            .join()
            .expect("no panic");
        };
        if before {
            set(B);
            assert_eq!(locked(|watch| watch.waiting.operations.len()), Some(1), "it waits");
            run();
        } else {
            run();
            set(B);
        }
        assert_eq!(take_findings().len(), usize::from(before), "submitted before it: {before}");
    }
}

/// A wait of a node for an event, as each launch finds it; other waits are of what is captured.
#[test]
fn a_node_waits_for_an_event_from_outside() {
    let _turn = TURN.lock();
    const GRAPH: Handle = 0x3010;
    const EXEC: Handle = 0x3020;
    for (flags, found) in [(EXTERNAL, 0), (0, 1)] {
        with_streams(SETTINGS);
        set(B);
        events::record(&CALL, || OK, EVENT, B);
        streams::capture_begin(&CALL, || OK, A);
        streams::wait_event(&CALL, || OK, A, EVENT, flags);
        set(A);
        streams::capture_end(&CALL, || OK, A, &mut { GRAPH });
        graphs::instantiate(&CALL, || OK, &mut { EXEC }, GRAPH, 0);
        graphs::launch(&CALL, || OK, EXEC, C);
        assert_eq!(take_findings().len(), found, "flags {flags}");
    }
}

/// What a capture gives is a graph only if the driver says so.
#[test]
fn a_capture_that_fails_has_no_graph() {
    let _turn = TURN.lock();
    const GRAPH: Handle = 0x3010;
    for (code, graph, has) in [(OK, GRAPH, true), (1, GRAPH, false), (OK, 0, false)] {
        with_streams(SETTINGS);
        streams::capture_begin(&CALL, || OK, A);
        set(A);
        streams::capture_end(&CALL, || code, A, &mut { graph });
        let all = locked(|watch| watch.graphs.of_graph.keys().copied().collect::<Vec<_>>());
        assert_eq!(all, Some(if has { vec![GRAPH] } else { vec![] }), "{code} {graph:#x}");
        let captured = locked(|watch| {
            let stream = watch.stream(&CALL, A);
            watch.feed.capture_of(stream)
        });
        assert_eq!(captured, Some(None), "it is over");
    }
}

/// From the record of an exported event on another process may report it to the host.
#[test]
fn the_host_may_hear_of_the_record_of_an_exported_event() {
    let _turn = TURN.lock();
    for exported in [true, false] {
        with_streams(SETTINGS);
        if exported {
            events::exported(&CALL, || OK, EVENT);
        }
        set(A);
        events::record(&CALL, || OK, EVENT, A);
        set(B);
        assert_eq!(take_findings().len(), usize::from(!exported), "{exported}");
    }
}

/// The driver is asked about the stream that the program means.
#[test]
fn the_stream_of_a_function_may_be_captured_by_others() {
    let _turn = TURN.lock();
    unsafe extern "C" fn nothing(_: *mut c_void) {}
    for (per_thread, stream, asked) in
        [(true, 0, 2), (false, 0, 0), (false, 1, 0), (true, 1, 0), (false, 2, 2), (false, A, A)]
    {
        with_streams(SETTINGS);
        ASKED.store(0, Ordering::Relaxed);
        let call = Call { name: "cuLaunchHostFunc", per_thread };
        // A driver that refuses it takes no reference.
        let code = host_functions::submit(&call, |_| 1, stream, (Some(nothing), None), 0);
        assert_eq!((code, ASKED.load(Ordering::Relaxed)), (1, asked), "{per_thread} {stream:#x}");
    }
}

/// Records that are lost are found if their class is on.
#[test]
fn lost_records_are_looked_for_by_their_class() {
    let _turn = TURN.lock();
    for (class, count) in [("+records", 1), ("-records", 0)] {
        with_streams(&format!("{SETTINGS},class={class}"));
        for (at, stream) in [(0, A), (1024, B)] {
            set_at(at, stream);
            events::record(&CALL, || OK, EVENT, stream);
        }
        streams::wait_event(&CALL, || OK, C, EVENT, 0);
        let found = locked(|watch| watch.feed.observer().findings.warnings().len());
        assert_eq!(found, Some(count), "{class}");
    }
}
