//! Stream capture and graphs: the table of what each operation does to a capture, in the three
//! modes.

use crate::common;

use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use common::*;
use cuda_events::sys::*;

const MODES: [u32; 3] = [0, 1, 2];
const NO_TIMING: u32 = CU_EVENT_DISABLE_TIMING;
const NONE: u32 = 0;
const ACTIVE: u32 = 1;
const INVALIDATED: u32 = 2;

fn begin(raw: &Raw, stream: CUstream, mode: u32) -> u32 {
    unsafe { (raw.cuStreamBeginCapture_v2)(stream, CUstreamCaptureMode(mode)) }.0
}

fn end(raw: &Raw, stream: CUstream) -> Result<CUgraph, u32> {
    let mut graph = std::ptr::without_provenance_mut(0x77);
    let code = unsafe { (raw.cuStreamEndCapture)(stream, &mut graph) }.0;
    if code == OK {
        return Ok(graph);
    }
    assert!(graph.is_null(), "{code} leaves no graph");
    Err(code)
}

fn status(raw: &Raw, stream: CUstream) -> Result<u32, u32> {
    let mut status = CUstreamCaptureStatus(99);
    match unsafe { (raw.cuStreamIsCapturing)(stream, &mut status) }.0 {
        OK => Ok(status.0),
        code => Err(code),
    }
}

/// A fresh capture, what `f` answers in it, and the capture's status after that.
fn in_capture<R>(mode: u32, f: impl FnOnce(&Raw, CUstream) -> R) -> (R, Result<u32, u32>) {
    let raw = Raw::new();
    let stream = raw.stream(CU_STREAM_NON_BLOCKING);
    assert_eq!(begin(&raw, stream, mode), OK);
    let answer = f(&raw, stream);
    let status = status(&raw, stream);
    if status == Ok(INVALIDATED) {
        assert_eq!(end(&raw, stream).unwrap_err(), 901);
    }
    (answer, status)
}

/// The same in another thread that has the context current.
fn elsewhere<R: Send>(raw: &Raw, f: impl FnOnce(&Raw) -> R + Send) -> R {
    let mut context = null_mut();
    assert_eq!(unsafe { (raw.cuCtxGetCurrent)(&mut context) }.0, OK);
    let context = context.expose_provenance();
    std::thread::scope(|scope| {
        let thread = scope.spawn(move || {
            raw.set_current(std::ptr::with_exposed_provenance_mut(context));
            f(raw)
        });
        thread.join().unwrap()
    })
}

fn exchange(raw: &Raw, mode: u32) -> u32 {
    let mut mode = CUstreamCaptureMode(mode);
    assert_eq!(unsafe { (raw.cuThreadExchangeStreamCaptureMode)(&mut mode) }.0, OK);
    mode.0
}

#[test]
fn beginning() {
    for mode in MODES {
        let raw = Raw::new();
        let stream = raw.stream(0);
        assert_eq!(begin(&raw, null_mut(), mode), 900);
        assert_eq!(begin(&raw, legacy(), mode), 900);
        assert_eq!(begin(&raw, stream, mode), OK);
        assert_eq!(begin(&raw, stream, mode), ILLEGAL_STATE);
        assert_eq!(status(&raw, stream), Ok(ACTIVE));
        end(&raw, stream).unwrap();
        assert_eq!(status(&raw, stream), Ok(NONE));
        assert_eq!(begin(&raw, per_thread(), mode), OK);
        end(&raw, per_thread()).unwrap();
    }
    let raw = Raw::new();
    let stream = raw.stream(0);
    assert_eq!(begin(&raw, stream, 3), INVALID_VALUE);
    assert_eq!(begin(&raw, stream, u32::MAX), INVALID_VALUE);
    assert_eq!(end(&raw, stream), Err(ILLEGAL_STATE));
    assert_eq!(end(&raw, null_mut()), Err(ILLEGAL_STATE));
}

#[test]
fn what_spoils_a_capture_in_every_mode() {
    for mode in MODES {
        let spoiled = |f: &dyn Fn(&Raw, CUstream) -> CUresult| {
            let (code, status) = in_capture(mode, |raw, stream| f(raw, stream).0);
            assert_eq!(status, Ok(INVALIDATED), "{code} in mode {mode}");
            code
        };
        assert_eq!(spoiled(&|raw, stream| unsafe { (raw.cuStreamQuery)(stream) }), 900);
        assert_eq!(spoiled(&|raw, stream| unsafe { (raw.cuStreamSynchronize)(stream) }), 900);
        assert_eq!(spoiled(&|raw, _| unsafe { (raw.cuCtxSynchronize)() }), 900);
        unsafe extern "C" fn nothing(_: CUstream, _: CUresult, _: *mut std::ffi::c_void) {}
        assert_eq!(
            spoiled(&|raw, stream| unsafe {
                (raw.cuStreamAddCallback)(stream, Some(nothing), null_mut(), 0)
            }),
            900
        );
        for call in [0, 1] {
            let code = spoiled(&|raw, stream| {
                let event = raw.event(0);
                raw.record(event, stream);
                if call == 0 {
                    unsafe { (raw.cuEventQuery)(event) }
                } else {
                    unsafe { (raw.cuEventSynchronize)(event) }
                }
            });
            assert_eq!(code, 907);
        }
        // A wait for what was recorded outside any capture.
        let code = spoiled(&|raw, stream| {
            let (event, other) = (raw.event(0), raw.stream(1));
            raw.record(event, other);
            unsafe { (raw.cuStreamWaitEvent)(stream, event, 0) }
        });
        assert_eq!(code, 905);
        assert_eq!(
            spoiled(&|raw, _| unsafe { raw.cuCtxRecordEvent.unwrap()(null_mut(), raw.event(0)) }),
            900
        );
    }
}

#[test]
fn what_may_be_forbidden_depends_on_mode_and_thread() {
    type Made<'a> = &'a (dyn Fn(&Raw, CUevent, CUstream) -> CUresult + Sync);
    let calls: [Made; 4] = [
        &|raw, event, _| unsafe { (raw.cuEventQuery)(event) },
        &|raw, event, _| unsafe { (raw.cuEventSynchronize)(event) },
        &|raw, _, other| unsafe { (raw.cuStreamQuery)(other) },
        &|raw, _, other| unsafe { (raw.cuStreamSynchronize)(other) },
    ];
    for call in calls {
        let run = |mode: u32, how: &str| {
            let (code, status) = in_capture(mode, |raw, _| {
                let (event, other) = (raw.event(0), raw.stream(1));
                let (event, other) = (event.expose_provenance(), other.expose_provenance());
                let make = |raw: &Raw| {
                    let event = std::ptr::with_exposed_provenance_mut(event);
                    call(raw, event, std::ptr::with_exposed_provenance_mut(other)).0
                };
                match how {
                    "same" => make(raw),
                    "same relaxed" => {
                        assert_eq!(exchange(raw, 2), 0);
                        let code = make(raw);
                        assert_eq!(exchange(raw, 0), 2);
                        code
                    }
                    "other" => elsewhere(raw, make),
                    _ => elsewhere(raw, |raw| {
                        exchange(raw, 2);
                        make(raw)
                    }),
                }
            });
            assert_eq!(status, Ok(if code == OK { ACTIVE } else { INVALIDATED }));
            code
        };
        assert_eq!(MODES.map(|mode| run(mode, "same")), [900, 900, OK]);
        assert_eq!(MODES.map(|mode| run(mode, "other")), [900, OK, OK]);
        assert_eq!(MODES.map(|mode| run(mode, "same relaxed")), [OK, OK, OK]);
        assert_eq!(MODES.map(|mode| run(mode, "other relaxed")), [OK, OK, OK]);
    }
}

#[test]
fn what_does_no_harm() {
    for mode in MODES {
        let (_, status) = in_capture(mode, |raw, stream| {
            let event = raw.event(0);
            assert_eq!(unsafe { (raw.cuEventDestroy_v2)(raw.event(0)) }.0, OK);
            assert_eq!(unsafe { (raw.cuStreamDestroy_v2)(raw.stream(0)) }.0, OK);
            assert_eq!(raw.elapsed(event, event), Err(INVALID_HANDLE));
            raw.wait(stream, event);
            raw.record(event, stream);
            assert_eq!(raw.elapsed(event, event), Err(907));
            assert_eq!(unsafe { (raw.cuEventDestroy_v2)(event) }.0, OK);
            let ipc = raw.event(CU_EVENT_INTERPROCESS | NO_TIMING);
            assert_eq!(unsafe { (raw.cuEventRecord)(ipc, stream) }.0, 900);
            raw.host(stream, || {});
            let external = raw.event(0);
            assert_eq!(unsafe { raw.cuEventRecordWithFlags.unwrap()(external, stream, 1) }.0, OK);
            assert_eq!(unsafe { (raw.cuStreamWaitEvent)(stream, external, 1) }.0, OK);
            assert_eq!(
                raw.elapsed(external, external),
                Err(INVALID_HANDLE),
                "only the launch records it"
            );
        });
        assert_eq!(status, Ok(ACTIVE));
    }
}

#[test]
fn an_event_of_a_finished_capture() {
    let raw = Raw::new();
    let stream = raw.stream(1);
    let event = raw.event(0);
    assert_eq!(begin(&raw, stream, 0), OK);
    raw.record(event, stream);
    end(&raw, stream).unwrap();
    assert_eq!(raw.query(event), INVALID_VALUE);
    assert_eq!(unsafe { (raw.cuStreamWaitEvent)(stream, event, 0) }.0, INVALID_VALUE);
    assert_eq!(raw.elapsed(event, event), Err(INVALID_VALUE));
    raw.record(event, stream);
    assert_eq!(raw.query(event), OK);
    assert_eq!(unsafe { (raw.cuStreamWaitEvent)(stream, event, 1) }.0, ILLEGAL_STATE);
    assert_eq!(unsafe { (raw.cuStreamWaitEvent)(stream, event, 2) }.0, INVALID_VALUE);
}

#[test]
fn forks_and_joins() {
    for mode in MODES {
        let raw = Raw::new();
        let (one, two) = (raw.stream(1), raw.stream(1));
        let (fork, join) = (raw.event(NO_TIMING), raw.event(NO_TIMING));
        // Forked and joined.
        assert_eq!(begin(&raw, one, mode), OK);
        raw.host(one, || {});
        raw.record(fork, one);
        raw.wait(two, fork);
        assert_eq!(status(&raw, two), Ok(ACTIVE));
        raw.host(two, || {});
        assert_eq!(end(&raw, two), Err(903));
        assert_eq!(status(&raw, one), Ok(INVALIDATED));
        assert_eq!(end(&raw, one), Err(901));
        assert_eq!(status(&raw, two), Ok(NONE));

        // Forked, with work that was not joined.
        assert_eq!(begin(&raw, one, mode), OK);
        raw.record(fork, one);
        raw.wait(two, fork);
        raw.host(two, || {});
        assert_eq!(end(&raw, one), Err(904));
        assert_eq!((status(&raw, one), status(&raw, two)), (Ok(NONE), Ok(NONE)));

        // Forked without work.
        assert_eq!(begin(&raw, one, mode), OK);
        raw.record(fork, one);
        raw.wait(two, fork);
        end(&raw, one).unwrap();

        // Forked and joined.
        assert_eq!(begin(&raw, one, mode), OK);
        raw.record(fork, one);
        raw.wait(two, fork);
        raw.host(two, || {});
        raw.record(join, two);
        raw.wait(one, join);
        end(&raw, one).unwrap();

        // Two captures do not merge.
        assert_eq!(begin(&raw, one, mode), OK);
        assert_eq!(begin(&raw, two, mode), OK);
        raw.record(fork, one);
        assert_eq!(unsafe { (raw.cuStreamWaitEvent)(two, fork, 0) }.0, 902);
        assert_eq!((end(&raw, one), end(&raw, two)), (Err(901), Err(901)));
    }
}

#[test]
fn a_joined_stream_that_is_destroyed_in_the_capture() {
    for mode in MODES {
        let raw = Raw::new();
        let one = raw.stream(1);
        let (fork, join) = (raw.event(NO_TIMING), raw.event(NO_TIMING));
        let forked = || {
            let two = raw.stream(1);
            assert_eq!(begin(&raw, one, mode), OK);
            raw.record(fork, one);
            raw.wait(two, fork);
            two
        };
        let destroy = |stream| assert_eq!(unsafe { (raw.cuStreamDestroy_v2)(stream) }.0, OK);
        // Its work would be lost.
        let two = forked();
        raw.host(two, || {});
        destroy(two);
        assert_eq!(status(&raw, one), Ok(ACTIVE));
        assert_eq!(end(&raw, one), Err(904));
        assert_eq!(status(&raw, one), Ok(NONE));
        // It had none.
        destroy(forked());
        end(&raw, one).unwrap();
        // Its work is joined, later or before.
        for later in [true, false] {
            let two = forked();
            raw.host(two, || {});
            raw.record(join, two);
            if later {
                destroy(two);
            }
            raw.wait(one, join);
            if !later {
                destroy(two);
            }
            end(&raw, one).unwrap();
        }
        // It went on after what was joined.
        let two = forked();
        raw.host(two, || {});
        raw.record(join, two);
        raw.host(two, || {});
        raw.wait(one, join);
        destroy(two);
        assert_eq!(end(&raw, one), Err(904));
    }
}

#[test]
fn ending_in_another_thread() {
    for (mode, expected) in [(0, 908), (1, 908), (2, OK)] {
        let raw = Raw::new();
        let stream = raw.stream(1);
        assert_eq!(begin(&raw, stream, mode), OK);
        let handle = stream.expose_provenance();
        let code =
            elsewhere(&raw, |raw| match end(raw, std::ptr::with_exposed_provenance_mut(handle)) {
                Ok(_) => OK,
                Err(code) => code,
            });
        assert_eq!(code, expected);
        assert_eq!(end(&raw, stream), Err(ILLEGAL_STATE), "it is over");
    }
}

#[test]
fn the_legacy_stream_and_captures() {
    for mode in MODES {
        let raw = Raw::new();
        let (blocking, free) = (raw.stream(0), raw.stream(1));
        let event = raw.event(0);
        assert_eq!(begin(&raw, free, mode), OK);
        raw.record(event, null_mut());
        end(&raw, free).unwrap();
        assert_eq!(begin(&raw, blocking, mode), OK);
        assert_eq!(unsafe { (raw.cuEventRecord)(event, null_mut()) }.0, 906);
        assert_eq!(status(&raw, blocking), Ok(INVALIDATED));
        assert_eq!(end(&raw, blocking), Err(901));
        assert_eq!(begin(&raw, blocking, mode), OK);
        assert_eq!(status(&raw, null_mut()), Err(906));
        end(&raw, blocking).expect("asking does no harm");
        assert_eq!(begin(&raw, blocking, mode), OK);
        assert_eq!(unsafe { (raw.cuStreamDestroy_v2)(blocking) }.0, OK);
    }
}

#[test]
fn a_launch_does_the_nodes_in_order() {
    let raw = Raw::new();
    let (one, two) = (raw.stream(1), raw.stream(1));
    let (fork, join, external) = (raw.event(NO_TIMING), raw.event(NO_TIMING), raw.event(NO_TIMING));
    let mut memory = 0;
    assert_eq!(unsafe { (raw.cuMemAlloc_v2)(&mut memory, 16) }.0, OK);
    static RAN: AtomicU32 = AtomicU32::new(0);
    static SEEN: Mutex<Vec<u32>> = Mutex::new(Vec::new());
    unsafe extern "C" fn note(_: *mut std::ffi::c_void) {
        SEEN.lock().unwrap().push(RAN.fetch_add(1, Ordering::SeqCst));
    }
    let out = Arc::new(AtomicU32::new(0));
    assert_eq!(begin(&raw, one, 0), OK);
    unsafe {
        assert_eq!((raw.cuMemsetD32Async)(memory, 7, 4, one).0, OK);
        raw.record(fork, one);
        raw.wait(two, fork);
        assert_eq!((raw.cuLaunchHostFunc)(two, Some(note), null_mut()).0, OK);
        raw.record(join, two);
        raw.wait(one, join);
        assert_eq!((raw.cuMemcpyDtoHAsync_v2)(out.as_ptr().cast(), memory, 4, one).0, OK);
        assert_eq!(raw.cuEventRecordWithFlags.unwrap()(external, one, 1).0, OK);
    }
    let graph = end(&raw, one).unwrap();
    assert_eq!(raw.query(external), OK, "capturing does nothing");
    assert_eq!(RAN.load(Ordering::SeqCst), 0);
    let mut exec = null_mut();
    unsafe {
        assert_eq!(raw.cuGraphInstantiateWithFlags.unwrap()(&mut exec, graph, 0).0, OK);
        assert_eq!((raw.cuGraphDestroy)(graph).0, OK);
        let latch = raw.latch(two);
        latch.reached();
        for _ in 0..3 {
            assert_eq!((raw.cuGraphLaunch)(exec, two).0, OK);
        }
        assert_eq!(raw.query(external), NOT_READY);
        latch.release();
        assert_eq!((raw.cuEventSynchronize)(external).0, OK);
        assert_eq!(out.load(Ordering::SeqCst), 7);
        raw.sync(two);
        assert_eq!(*SEEN.lock().unwrap(), [0, 1, 2]);
        assert_eq!((raw.cuGraphExecDestroy)(exec).0, OK);
    }
}

#[test]
fn nodes_with_events() {
    let raw = Raw::new();
    let stream = raw.stream(1);
    let (first, second) = (raw.event(NO_TIMING), raw.event(NO_TIMING));
    let (mut graph, mut record, mut wait, mut exec, mut found) =
        (null_mut(), null_mut(), null_mut(), null_mut(), null_mut());
    unsafe {
        assert_eq!((raw.cuGraphCreate)(&mut graph, 1).0, INVALID_VALUE);
        assert_eq!((raw.cuGraphCreate)(&mut graph, 0).0, OK);
        let add_record = raw.cuGraphAddEventRecordNode.unwrap();
        assert_eq!(add_record(&mut record, graph, std::ptr::null(), 0, first).0, OK);
        assert_eq!(raw.cuGraphAddEventWaitNode.unwrap()(&mut wait, graph, &record, 1, first).0, OK);
        assert_eq!(raw.cuGraphEventRecordNodeGetEvent.unwrap()(record, &mut found).0, OK);
        assert_eq!(found, first);
        assert_eq!(raw.cuGraphEventRecordNodeGetEvent.unwrap()(wait, &mut found).0, INVALID_VALUE);
        assert_eq!(
            raw.cuGraphInstantiate_v2.unwrap()(&mut exec, graph, null_mut(), null_mut(), 0).0,
            OK
        );
        let set = raw.cuGraphExecEventRecordNodeSetEvent.unwrap();
        assert_eq!(set(exec, record, second).0, OK);
        let latch = raw.latch(stream);
        assert_eq!((raw.cuGraphLaunch)(exec, stream).0, OK);
        assert_eq!((raw.query(first), raw.query(second)), (OK, NOT_READY));
        latch.release();
        raw.sync(stream);
        assert_eq!(raw.query(second), OK);
    }
}

#[test]
fn launching_with_an_event_that_is_gone_is_misuse() {
    for is_record in [true, false] {
        let raw = Raw::new();
        let stream = raw.stream(1);
        let (first, second) = (raw.event(NO_TIMING), raw.event(NO_TIMING));
        let (mut graph, mut node, mut exec) = (null_mut(), null_mut(), null_mut());
        unsafe {
            assert_eq!((raw.cuGraphCreate)(&mut graph, 0).0, OK);
            let (add, set, pattern) = if is_record {
                (
                    raw.cuGraphAddEventRecordNode,
                    raw.cuGraphExecEventRecordNodeSetEvent,
                    "cuGraphExecEventRecord*",
                )
            } else {
                (
                    raw.cuGraphAddEventWaitNode,
                    raw.cuGraphExecEventWaitNodeSetEvent,
                    "cuGraphExecEventWait*",
                )
            };
            assert_eq!(add.unwrap()(&mut node, graph, std::ptr::null(), 0, first).0, OK);
            assert_eq!(raw.cuGraphInstantiateWithFlags.unwrap()(&mut exec, graph, 0).0, OK);
            // The work is done although the program is told otherwise, so that it keeps nothing.
            raw.soft.inject(cuda_soft_driver::Fault::on(pattern).once().after_the_work());
            assert_eq!(set.unwrap()(exec, node, second).0, 999);
            assert_eq!((raw.cuGraphLaunch)(exec, stream).0, OK);
            raw.sync(stream);
            assert_eq!((raw.cuEventDestroy_v2)(second).0, OK);
            assert_eq!((raw.cuGraphLaunch)(exec, stream).0, INVALID_HANDLE);
            let misuses = raw.soft.misuses();
            assert_eq!(misuses.len(), 1);
            assert!(misuses[0].starts_with("cuGraphLaunch: event 0x"), "{misuses:?}");
            assert!(misuses[0].contains("was destroyed by cuEventDestroy_v2"), "{misuses:?}");
            assert!(!raw.busy(stream), "nothing was submitted");
            // Set once more it is good again, and the first one is none of its business any more.
            let third = raw.event(NO_TIMING);
            assert_eq!(set.unwrap()(exec, node, third).0, OK);
            assert_eq!((raw.cuEventDestroy_v2)(first).0, OK);
            assert_eq!((raw.cuGraphLaunch)(exec, stream).0, OK);
            raw.sync(stream);
            assert_eq!(raw.soft.misuses().len(), 1);
            assert_eq!((raw.cuGraphExecDestroy)(exec).0, OK);
        }
    }
}

#[test]
fn edges_with_data_are_refused_and_the_capture_goes_on() {
    let raw = Raw::new();
    let (stream, event) = (raw.stream(1), raw.event(NO_TIMING));
    assert_eq!(begin(&raw, stream, 0), OK);
    let plain = CUgraphEdgeData::default();
    let odd = [
        CUgraphEdgeData { from_port: 1, ..plain },
        CUgraphEdgeData { to_port: 1, ..plain },
        CUgraphEdgeData { type_: 77, ..plain },
        CUgraphEdgeData { reserved: [0, 0, 0, 0, 1], ..plain },
    ];
    unsafe {
        assert_eq!(raw.cuEventRecordWithFlags.unwrap()(event, stream, 1).0, OK);
        let (mut status, mut nodes, mut count) = (CUstreamCaptureStatus(9), std::ptr::null(), 0);
        let ask = raw.cuStreamGetCaptureInfo_v2.unwrap();
        assert_eq!(ask(stream, &mut status, null_mut(), null_mut(), &mut nodes, &mut count).0, OK);
        let mut node = [*nodes];
        let update = raw.cuStreamUpdateCaptureDependencies_v2.unwrap();
        for odd in odd {
            assert_eq!(
                update(stream, node.as_mut_ptr(), &odd, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES).0,
                INVALID_VALUE
            );
        }
        assert_eq!(
            update(stream, node.as_mut_ptr(), &plain, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES).0,
            OK
        );
        // What is not counted is not looked at.
        assert_eq!(
            update(stream, null_mut(), &odd[0], 0, CU_STREAM_ADD_CAPTURE_DEPENDENCIES).0,
            OK
        );
        let graph = end(&raw, stream).unwrap();
        let begin = raw.cuStreamBeginCaptureToGraph.unwrap();
        assert_eq!(
            begin(stream, graph, node.as_ptr(), &odd[0], 1, CUstreamCaptureMode(0)).0,
            INVALID_VALUE
        );
        assert_eq!(self::status(&raw, stream), Ok(NONE));
        assert_eq!(begin(stream, graph, node.as_ptr(), &plain, 1, CUstreamCaptureMode(0)).0, OK);
        assert_eq!(end(&raw, stream), Ok(graph));
    }
}

#[test]
fn launches_are_not_captured_and_handles_are_checked() {
    let raw = Raw::new();
    let stream = raw.stream(1);
    let event = raw.event(0);
    let (mut graph, mut exec, mut node) = (null_mut(), null_mut(), null_mut());
    unsafe {
        assert_eq!((raw.cuGraphCreate)(&mut graph, 0).0, OK);
        let add = raw.cuGraphAddEventRecordNode.unwrap();
        assert_eq!(add(&mut node, graph, std::ptr::null(), 0, null_mut()).0, INVALID_VALUE);
        assert_eq!(add(&mut node, graph, std::ptr::null(), 0, event).0, OK);
        let instantiate = raw.cuGraphInstantiateWithFlags.unwrap();
        assert_eq!(instantiate(&mut exec, graph, 0).0, OK);
        assert_eq!(begin(&raw, stream, 0), OK);
        assert_eq!((raw.cuGraphLaunch)(exec, stream).0, 900);
        assert_eq!(end(&raw, stream), Err(901));
        // A capture that fails takes the graph with it that it was to go to.
        let to_graph = raw.cuStreamBeginCaptureToGraph.unwrap();
        let mode = CUstreamCaptureMode(0);
        assert_eq!(to_graph(stream, graph, std::ptr::null(), std::ptr::null(), 0, mode).0, OK);
        let other = raw.stream(1);
        assert_eq!(
            to_graph(other, graph, std::ptr::null(), std::ptr::null(), 0, mode).0,
            ILLEGAL_STATE
        );
        assert_eq!((raw.cuGraphDestroy)(graph).0, ILLEGAL_STATE);
        raw.host(stream, || {});
        assert_eq!(end(&raw, stream), Ok(graph));
        assert_eq!(to_graph(stream, graph, &node, std::ptr::null(), 1, mode).0, OK);
        assert_eq!((raw.cuStreamQuery)(stream).0, 900);
        assert_eq!(end(&raw, stream), Err(901));
        assert_eq!((raw.cuGraphDestroy)(graph).0, INVALID_VALUE);
        let set = raw.cuGraphExecEventRecordNodeSetEvent.unwrap();
        assert_eq!(set(exec, node, event).0, INVALID_VALUE, "its graph is gone");
        // Events may go before a launch, not before the instantiation.
        assert_eq!((raw.cuEventDestroy_v2)(event).0, OK);
        assert_eq!((raw.cuGraphLaunch)(exec, stream).0, OK);
        raw.sync(stream);
        assert_eq!((raw.cuGraphExecDestroy)(exec).0, OK);
        assert_eq!((raw.cuGraphExecDestroy)(exec).0, INVALID_VALUE);
        assert!(raw.soft.misuses().is_empty());
        let event = raw.event(0);
        assert_eq!((raw.cuGraphCreate)(&mut graph, 0).0, OK);
        assert_eq!(add(&mut node, graph, std::ptr::null(), 0, event).0, OK);
        assert_eq!((raw.cuEventDestroy_v2)(event).0, OK);
        assert_ne!(instantiate(&mut exec, graph, 0).0, OK);
        assert_eq!(raw.soft.misuses().len(), 1);
    }
}

#[test]
fn capture_info_and_dependencies() {
    let raw = Raw::new();
    let stream = raw.stream(1);
    let info = |raw: &Raw| {
        let (mut status, mut id, mut graph) = (CUstreamCaptureStatus(9), 0, null_mut());
        let (mut nodes, mut count) = (std::ptr::null(), 0);
        let ask = raw.cuStreamGetCaptureInfo_v2.unwrap();
        let code = unsafe { ask(stream, &mut status, &mut id, &mut graph, &mut nodes, &mut count) };
        assert_eq!(code.0, OK);
        let nodes = if count == 0 {
            vec![]
        } else {
            unsafe { std::slice::from_raw_parts(nodes, count) }.to_vec()
        };
        (status.0, id, graph, nodes)
    };
    assert_eq!(info(&raw).0, NONE);
    assert_eq!(begin(&raw, stream, 0), OK);
    let (status, id, graph, nodes) = info(&raw);
    assert_eq!((status, nodes.len()), (ACTIVE, 0));
    assert_eq!(id, 1);
    assert!(!graph.is_null());
    raw.host(stream, || {});
    let (_, again, _, nodes) = info(&raw);
    assert_eq!((again, nodes.len()), (id, 1));
    let mut nodes = nodes;
    let update = raw.cuStreamUpdateCaptureDependencies.unwrap();
    assert_eq!(unsafe { update(stream, null_mut(), 0, CU_STREAM_SET_CAPTURE_DEPENDENCIES) }.0, OK);
    assert_eq!(info(&raw).3.len(), 0);
    assert_eq!(
        unsafe { update(stream, nodes.as_mut_ptr(), 1, CU_STREAM_ADD_CAPTURE_DEPENDENCIES) }.0,
        OK
    );
    assert_eq!(info(&raw).3, nodes);
    assert_eq!(end(&raw, stream).unwrap(), graph);
}

#[test]
fn user_objects_live_as_long_as_what_refers_to_them() {
    type Create =
        unsafe extern "C" fn(*mut CUgraph, *mut std::ffi::c_void, CUhostFn, u32, u32) -> CUresult;
    type Count = unsafe extern "C" fn(CUgraph, u32) -> CUresult;
    type Retain = unsafe extern "C" fn(CUgraph, CUgraph, u32, u32) -> CUresult;
    static DESTROYED: AtomicU32 = AtomicU32::new(0);
    unsafe extern "C" fn destroy(_: *mut std::ffi::c_void) {
        DESTROYED.fetch_add(1, Ordering::SeqCst);
    }
    let raw = Raw::new();
    let stream = raw.stream(1);
    unsafe {
        let create: Create = std::mem::transmute(raw.soft.resolve(c"cuUserObjectCreate"));
        let release: Count = std::mem::transmute(raw.soft.resolve(c"cuUserObjectRelease"));
        let give: Retain = std::mem::transmute(raw.soft.resolve(c"cuGraphRetainUserObject"));
        let (mut graph, mut object, mut exec) = (null_mut(), null_mut(), null_mut());
        assert_eq!(create(&mut object, null_mut(), Some(destroy), 1, 0).0, INVALID_VALUE);
        assert_eq!(create(&mut object, null_mut(), Some(destroy), 1, 1).0, OK);
        assert_eq!(release(object, 2).0, INVALID_VALUE);
        assert_eq!((raw.cuGraphCreate)(&mut graph, 0).0, OK);
        assert_eq!(give(graph, object, 1, 1).0, OK);
        assert_eq!(raw.cuGraphInstantiateWithFlags.unwrap()(&mut exec, graph, 0).0, OK);
        assert_eq!((raw.cuGraphDestroy)(graph).0, OK);
        let latch = raw.latch(stream);
        assert_eq!((raw.cuGraphLaunch)(exec, stream).0, OK);
        assert_eq!((raw.cuGraphExecDestroy)(exec).0, OK);
        assert_eq!(
            (DESTROYED.load(Ordering::SeqCst), raw.soft.live().user_objects),
            (0, 1),
            "a launch is under way"
        );
        latch.release();
        raw.sync(stream);
        // The destruction is queued in front of this.
        raw.host(stream, || {});
        raw.sync(stream);
        assert_eq!((DESTROYED.load(Ordering::SeqCst), raw.soft.live().user_objects), (1, 0));
        assert_eq!(release(object, 1).0, INVALID_VALUE);
    }
}

#[test]
fn host_nodes_and_edges() {
    type Add = unsafe extern "C" fn(
        *mut CUgraphNode,
        CUgraph,
        *const CUgraphNode,
        usize,
        *const cuda_soft_driver::abi::HostNodeParams,
    ) -> CUresult;
    type Edges =
        unsafe extern "C" fn(CUgraph, *mut CUgraphNode, *mut CUgraphNode, *mut usize) -> CUresult;
    unsafe extern "C" fn nothing(_: *mut std::ffi::c_void) {}
    let raw = Raw::new();
    unsafe {
        let add: Add = std::mem::transmute(raw.soft.resolve(c"cuGraphAddHostNode"));
        let edges: Edges = std::mem::transmute(raw.soft.resolve(c"cuGraphGetEdges"));
        let (mut graph, mut one, mut two) = (null_mut(), null_mut(), null_mut());
        let params = cuda_soft_driver::abi::HostNodeParams {
            function: Some(nothing),
            user_data: null_mut(),
        };
        assert_eq!((raw.cuGraphCreate)(&mut graph, 0).0, OK);
        assert_eq!(add(&mut one, graph, std::ptr::null(), 0, &params).0, OK);
        assert_eq!(add(&mut two, graph, &one, 1, &params).0, OK);
        let mut count = 0;
        assert_eq!(edges(graph, null_mut(), null_mut(), &mut count).0, OK);
        assert_eq!(count, 1);
        let (mut from, mut to) = ([null_mut(); 2], [null_mut(); 2]);
        count = 2;
        assert_eq!(edges(graph, from.as_mut_ptr(), to.as_mut_ptr(), &mut count).0, OK);
        assert_eq!((count, from, to), (1, [one, null_mut()], [two, null_mut()]));
    }
}
