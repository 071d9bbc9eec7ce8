//! Launches of graphs with events that are gone, which a real driver leaves undefined, and external
//! records outside of captures.

use crate::common;

use std::ptr::null_mut;

use common::*;
use cuda_events::sys::*;

const NO_TIMING: u32 = CU_EVENT_DISABLE_TIMING;

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

/// An event that has the handle of one that was destroyed is another event: a graph does not record
/// it.
#[test]
fn a_graph_does_not_record_the_next_event_of_a_handle() {
    let raw = Raw::new();
    let (first, stream) = (raw.event(0), raw.stream(1));
    let (mut graph, mut node, mut exec) = (null_mut(), null_mut(), null_mut());
    unsafe {
        assert_eq!((raw.cuGraphCreate)(&mut graph, 0).0, OK);
        let add = raw.cuGraphAddEventRecordNode.unwrap();
        assert_eq!(add(&mut node, graph, null_mut(), 0, first).0, OK);
        let instantiate = raw.cuGraphInstantiateWithFlags.unwrap();
        assert_eq!(instantiate(&mut exec, graph, 0).0, OK);
        assert_eq!((raw.cuEventDestroy_v2)(first).0, OK);
    }
    // As many as a machine has places for, and one more.
    let mut events: Vec<CUevent> = (0..8).map(|_| raw.event(0)).collect();
    let same = events.iter().position(|event| *event == first).expect("its handle comes back");
    let (same, other) = (events.swap_remove(same), events[0]);
    let mut elapsed = 0.0;
    unsafe {
        assert_eq!((raw.cuGraphLaunch)(exec, stream).0, OK);
        raw.record(other, stream);
        raw.sync(stream);
        let code = (raw.cuEventElapsedTime)(&mut elapsed, same, other);
        assert_eq!(code, CUresult::CUDA_ERROR_INVALID_HANDLE, "it was never recorded");
        // The graph itself has an event that is gone.
        let again = raw.cuGraphInstantiateWithFlags.unwrap()(&mut exec, graph, 0);
        assert_eq!(again, CUresult::CUDA_ERROR_INVALID_HANDLE);
    }
    assert_eq!(raw.soft.misuses().len(), 1, "{:?}", raw.soft.misuses());
}

/// Outside of a capture, an external record is refused for where the event belongs before it is for
/// its flag, whoever else captures; only a capture takes one of another context's event.
#[test]
fn an_external_record_of_another_contexts_event() {
    let raw = Raw::with(cuda_soft_driver::SoftDriver::builder().devices(2));
    let (here, there) = (raw.retain(0), raw.retain(1));
    raw.set_current(there);
    let others = raw.event(NO_TIMING);
    raw.set_current(here);
    let (own, stream, capturing) = (raw.event(NO_TIMING), raw.stream(1), raw.stream(1));
    let record = |event, stream| unsafe {
        raw.cuEventRecordWithFlags.unwrap()(event, stream, CU_EVENT_RECORD_EXTERNAL).0
    };
    let outside = || {
        assert_eq!(
            [own, others].map(|event| record(event, stream)),
            [ILLEGAL_STATE, INVALID_HANDLE]
        );
        // The event counts as never recorded.
        let mut elapsed = 0.0;
        let code = unsafe { (raw.cuEventElapsedTime)(&mut elapsed, own, own) };
        assert_eq!(code.0, INVALID_HANDLE);
    };
    outside();
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
    assert_eq!(unsafe { (raw.cuStreamBeginCapture_v2)(capturing, mode) }.0, OK);
    outside();
    assert_eq!([own, others].map(|event| record(event, capturing)), [OK; 2]);
    let mut graph = null_mut();
    assert_eq!(unsafe { (raw.cuStreamEndCapture)(capturing, &mut graph) }.0, OK);
    outside();
    assert_eq!(unsafe { (raw.cuGraphDestroy)(graph) }.0, OK);
    assert!(raw.soft.misuses().is_empty(), "{:?}", raw.soft.misuses());
}

/// A capture that begins in a stream that does not wait for the default stream, and goes on in one
/// that does, concerns the default stream from then on.
#[test]
fn a_capture_with_streams_of_both_kinds_concerns_the_default_stream() {
    const IMPLICIT: u32 = 906;
    let raw = Raw::new();
    let (free, blocking, event) = (raw.stream(1), raw.stream(0), raw.event(NO_TIMING));
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
    let query = || unsafe { (raw.cuStreamQuery)(legacy()) }.0;
    assert_eq!(unsafe { (raw.cuStreamBeginCapture_v2)(free, mode) }.0, OK);
    assert_eq!(query(), OK);
    raw.record(event, free);
    raw.wait(blocking, event);
    assert_eq!(query(), IMPLICIT);
    let _ = unsafe { (raw.cuStreamEndCapture)(free, &mut null_mut()) };
    assert_eq!(query(), OK);
}

/// What a captured stream waits for more than once is one dependency of its next work.
#[test]
fn a_capture_depends_on_each_node_once() {
    let raw = Raw::new();
    let [first, second, third] = [1; 3].map(|flags| raw.stream(flags));
    let [begun, one, two] = [NO_TIMING; 3].map(|flags| raw.event(flags));
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
    assert_eq!(unsafe { (raw.cuStreamBeginCapture_v2)(first, mode) }.0, OK);
    raw.record(begun, first);
    for (stream, event) in [(second, one), (third, two)] {
        raw.wait(stream, begun);
        raw.host(stream, || ());
        raw.record(event, stream);
    }
    for event in [one, two, one, two, two, one] {
        raw.wait(first, event);
    }
    let mut status = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
    let (mut nodes, mut count) = (std::ptr::null(), 0);
    let info = raw.cuStreamGetCaptureInfo_v2.unwrap();
    let none = null_mut();
    let code = unsafe { info(first, &mut status, none, null_mut(), &mut nodes, &mut count) };
    assert_eq!((code.0, count), (OK, 2));
    let mut graph = null_mut();
    assert_eq!(unsafe { (raw.cuStreamEndCapture)(first, &mut graph) }.0, OK);
    assert_eq!(unsafe { (raw.cuGraphDestroy)(graph) }.0, OK);
}
