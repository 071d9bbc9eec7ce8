//! The ends of the closures that stand in for kernels.

use crate::common;

use std::ffi::CString;
use std::ptr::{null_mut, without_provenance_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use common::*;
use cuda_events::sys::*;
use cuda_soft_driver::SoftDriver;

use super::{NON_BLOCKING, function, launch};

/// The closures end with the driver, at the latest.
#[test]
fn closures_are_dropped() {
    let raw = Raw::new();
    let [first, second] = [(); 2].map(|()| Arc::new(()));
    for kept in [&first, &second] {
        let kept = kept.clone();
        raw.soft.kernel("keeps", move |_| drop(kept.clone()));
    }
    assert_eq!([&first, &second].map(Arc::strong_count), [1, 2]);
    let name = CString::new("keeps").unwrap();
    assert_eq!(launch(&raw, function(&raw, &name), legacy(), 0, 0), OK);
    raw.sync(legacy());
    drop(raw);
    assert_eq!(Arc::strong_count(&second), 1);
}

/// Calls the driver when it is dropped, and panics then if that is asked for.
struct CallsInDrop {
    query: unsafe extern "C" fn(CUstream) -> CUresult,
    stream: usize,
    send: std::sync::mpsc::Sender<u32>,
    panics: bool,
}

impl Drop for CallsInDrop {
    fn drop(&mut self) {
        let code = unsafe { (self.query)(without_provenance_mut(self.stream)) }.0;
        self.send.send(code).unwrap();
        assert!(!self.panics, "as planned");
    }
}

/// A closure that calls the driver in its drop, wherever its last owner is.
#[test]
fn a_closure_whose_drop_calls_the_driver() {
    let places = ["nothing", "a graph", "an executable graph", "a node", "a queue", "a thread"];
    for (panics, place) in
        [false, true].into_iter().flat_map(|panics| places.map(|place| (panics, place)))
    {
        let raw = Raw::new();
        let stream = raw.stream(NON_BLOCKING);
        let open = Arc::new(AtomicU32::new(0));
        let gate = open.clone();
        raw.soft.kernel("fails", move |_| {
            while gate.load(Ordering::SeqCst) == 0 {
                std::thread::yield_now();
            }
            panic!("as planned");
        });
        let (send, dropped) = std::sync::mpsc::channel();
        let held = CallsInDrop { query: raw.cuStreamQuery, stream: stream.addr(), send, panics };
        let gate = open.clone();
        raw.soft.kernel("held", move |_| {
            let _ = &held;
            while gate.load(Ordering::SeqCst) == 0 {
                std::thread::yield_now();
            }
        });
        let (held, fails) = (function(&raw, c"held"), function(&raw, c"fails"));
        let run = |function| launch(&raw, function, stream, 0, 0);
        let (mut graph, mut exec, mut nodes) = (null_mut(), null_mut(), [null_mut(); 1]);
        if place.contains("graph") || place == "a node" {
            let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL;
            assert_eq!(unsafe { (raw.cuStreamBeginCapture_v2)(stream, mode) }.0, OK);
            assert_eq!(run(held), OK);
            assert_eq!(unsafe { (raw.cuStreamEndCapture)(stream, &mut graph) }.0, OK);
            let mut count = 1_usize;
            let code = call!(raw, cuGraphGetNodes(graph => CUgraph,
                nodes.as_mut_ptr() => *mut CUgraphNode, &mut count => *mut usize));
            assert_eq!(code, OK);
        }
        if place == "an executable graph" {
            let code = call!(raw, cuGraphInstantiateWithFlags(&mut exec => *mut CUgraphExec,
                graph => CUgraph, 0 => u64));
            assert_eq!((code, call!(raw, cuGraphDestroy(graph => CUgraph))), (OK, OK));
        }
        if place == "a queue" {
            assert_eq!(run(fails), OK);
        }
        if place == "a queue" || place == "a thread" {
            assert_eq!(run(held), OK);
        }
        // The last owner is where this test wants it.
        raw.soft.kernel("held", |_| ());
        assert_eq!(dropped.try_recv().is_ok(), place == "nothing");
        let given = NodeParams {
            function: fails,
            grid: [1; 3],
            block: [1; 3],
            shared: 0,
            parameters: null_mut(),
            extra: null_mut(),
        };
        let code = match place {
            "a graph" => call!(raw, cuGraphDestroy(graph => CUgraph)),
            "an executable graph" => call!(raw, cuGraphExecDestroy(exec => CUgraphExec)),
            "a node" => call!(raw, cuGraphKernelNodeSetParams(nodes[0] => CUgraphNode,
                &given => *const NodeParams)),
            _ => OK,
        };
        assert_eq!(code, OK, "{place}");
        open.store(1, Ordering::SeqCst);
        let fine = unsafe { (raw.cuStreamSynchronize)(stream) }.0 == OK;
        assert_eq!(fine, place != "a queue");
        if place != "nothing" {
            let code = dropped.recv_timeout(Duration::from_secs(60));
            assert!(code.is_ok_and(|code| (code == OK) == fine), "{place}: {code:?}");
        }
        // The thread goes on, if the drop panicked in it.
        if fine {
            assert_eq!(run(held), OK);
            raw.sync(stream);
        }
    }
}

/// The driver ends with a graph that has the last owner.
#[test]
fn the_end_drops_a_closure_that_calls_the_driver() {
    let raw = Raw::new();
    let (stream, mut graph) = (raw.stream(NON_BLOCKING), null_mut());
    let (send, dropped) = std::sync::mpsc::channel();
    let held = CallsInDrop { query: raw.cuStreamQuery, stream: stream.addr(), send, panics: false };
    raw.soft.kernel("held", move |_| {
        let _ = &held;
    });
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL;
    assert_eq!(unsafe { (raw.cuStreamBeginCapture_v2)(stream, mode) }.0, OK);
    assert_eq!(launch(&raw, function(&raw, c"held"), stream, 0, 0), OK);
    assert_eq!(unsafe { (raw.cuStreamEndCapture)(stream, &mut graph) }.0, OK);
    raw.soft.kernel("held", |_| ());
    // Not as `Raw` ends it: then the call would return without a look at the driver.
    let mut raw = std::mem::ManuallyDrop::new(raw);
    let release = raw.cuDevicePrimaryCtxRelease_v2;
    drop(std::mem::replace(&mut raw.soft, SoftDriver::new()));
    assert_eq!(dropped.try_recv(), Ok(DEINITIALIZED));
    unsafe { release(0) };
    drop(std::mem::ManuallyDrop::into_inner(raw));
}

/// What is left of a kernel that was replaced describes the new one no more.
#[test]
fn a_replaced_kernel_is_not_described() {
    let raw = Raw::new();
    let ran = Arc::new(AtomicU32::new(0));
    let [old, new] = [1, 2].map(|number| {
        let ran = ran.clone();
        raw.soft.kernel("kernel", move |_| ran.store(number, Ordering::SeqCst))
    });
    drop((old.parameters(&[8, 4]), new));
    assert_eq!(launch(&raw, function(&raw, c"kernel"), legacy(), 0, 0), OK);
    raw.sync(legacy());
    assert_eq!(ran.load(Ordering::SeqCst), 2);
}
