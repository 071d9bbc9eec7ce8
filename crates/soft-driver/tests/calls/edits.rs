//! Graphs that are changed: what is left alive, and what the order checker sees.

use crate::common;

use std::ptr::null_mut;

use common::*;
use cuda_events::sys::*;
use cuda_soft_driver::abi::{
    CUDA_MEMSET_NODE_PARAMS, CUgraphExecUpdateResult, CUgraphExecUpdateResultInfo,
};
use cuda_soft_driver::{OrderCheck, SoftDriver};

const NON_BLOCKING: u32 = 1;

fn graph(raw: &Raw) -> CUgraph {
    let mut graph = null_mut();
    assert_eq!(unsafe { (raw.cuGraphCreate)(&mut graph, 0) }.0, OK);
    graph
}

fn alloc(raw: &Raw) -> u64 {
    let mut address = 0;
    assert_eq!(unsafe { (raw.cuMemAlloc_v2)(&mut address, 64) }.0, OK);
    address
}

fn set(
    raw: &Raw,
    graph: CUgraph,
    after: &[CUgraphNode],
    params: CUDA_MEMSET_NODE_PARAMS,
) -> CUgraphNode {
    let (mut node, context) = (null_mut(), raw.retain(0));
    let code = call!(raw, cuGraphAddMemsetNode(&mut node => *mut CUgraphNode, graph => CUgraph,
        after.as_ptr() => *const CUgraphNode, after.len() => usize,
        &params => *const CUDA_MEMSET_NODE_PARAMS, context => CUcontext));
    assert_eq!(code, OK);
    node
}

fn bytes(address: u64, value: u32) -> CUDA_MEMSET_NODE_PARAMS {
    CUDA_MEMSET_NODE_PARAMS { dst: address, pitch: 0, value, elementSize: 1, width: 64, height: 1 }
}

fn child(raw: &Raw, graph: CUgraph, after: &[CUgraphNode], of: CUgraph) -> CUgraphNode {
    let mut node = null_mut();
    let code = call!(raw, cuGraphAddChildGraphNode(&mut node => *mut CUgraphNode,
        graph => CUgraph, after.as_ptr() => *const CUgraphNode, after.len() => usize,
        of => CUgraph));
    assert_eq!(code, OK);
    node
}

fn instantiate(raw: &Raw, graph: CUgraph) -> CUgraphExec {
    let mut exec = null_mut();
    let code = unsafe { raw.cuGraphInstantiateWithFlags.unwrap()(&mut exec, graph, 0) };
    assert_eq!(code.0, OK);
    exec
}

fn update(raw: &Raw, exec: CUgraphExec, graph: CUgraph) -> (u32, u32, CUgraphNode) {
    let mut info = CUgraphExecUpdateResultInfo {
        result: CUgraphExecUpdateResult(77),
        ..CUgraphExecUpdateResultInfo::default()
    };
    let code = call!(raw, cuGraphExecUpdate_v2(exec => CUgraphExec, graph => CUgraph,
        &mut info => *mut CUgraphExecUpdateResultInfo));
    (code, info.result.0, info.errorNode)
}

/// A graph's nodes go with it, with their own graphs and whatever those have.
#[test]
fn child_graphs_go_with_their_nodes() {
    let raw = Raw::new();
    let (inner, middle, outer) = (graph(&raw), graph(&raw), graph(&raw));
    child(&raw, middle, &[], inner);
    let node = child(&raw, outer, &[], middle);
    assert_eq!(raw.soft.live().graphs, 3, "those of nodes are not the program's");
    assert_eq!(call!(raw, cuGraphDestroyNode(node => CUgraphNode)), OK);
    for graph in [inner, middle, outer] {
        assert_eq!(unsafe { (raw.cuGraphDestroy)(graph) }.0, OK);
    }
    assert_eq!((raw.soft.live().graphs, raw.soft.live().graph_execs), (0, 0));
}

/// What comes before a child graph comes before all of its nodes, and what comes after it after
/// all; one without nodes keeps that order too.
#[test]
fn the_order_checker_sees_through_child_graphs() {
    // Its reports are for nobody.
    cuda_events_test_support::own_process!();
    for (empty, chained, reports) in
        [(false, true, 0), (true, true, 0), (false, false, 1), (true, false, 1)]
    {
        let raw = Raw::planting(SoftDriver::builder().check_order(OrderCheck::Report));
        let (address, other) = (alloc(&raw), alloc(&raw));
        let (inner, outer) = (graph(&raw), graph(&raw));
        if !empty {
            set(&raw, inner, &[], bytes(other, 2));
        }
        let before = set(&raw, outer, &[], bytes(address, 1));
        let node = child(&raw, outer, &[before], inner);
        let after: &[CUgraphNode] = if chained { &[node] } else { &[] };
        set(&raw, outer, after, bytes(address, 3));
        let exec = instantiate(&raw, outer);
        let stream = raw.stream(NON_BLOCKING);
        assert_eq!(unsafe { (raw.cuGraphLaunch)(exec, stream) }.0, OK);
        raw.sync(stream);
        let findings = order_texts(&raw.soft);
        assert_eq!(findings.len(), reports, "empty {empty}, chained {chained}: {findings:?}");
    }
}

/// An update is what the checker knows of the graph from then on.
#[test]
fn the_order_checker_sees_updates() {
    // Its reports are for nobody.
    cuda_events_test_support::own_process!();
    let raw = Raw::planting(SoftDriver::builder().check_order(OrderCheck::Report));
    let (one, two) = (alloc(&raw), alloc(&raw));
    let of = |address: u64| {
        let graph = graph(&raw);
        set(&raw, graph, &[], bytes(one, 1));
        set(&raw, graph, &[], bytes(address, 2));
        graph
    };
    let (apart, same) = (of(two), of(one));
    let exec = instantiate(&raw, apart);
    let stream = raw.stream(NON_BLOCKING);
    let launch = || {
        assert_eq!(unsafe { (raw.cuGraphLaunch)(exec, stream) }.0, OK);
        raw.sync(stream);
        order_texts(&raw.soft).len()
    };
    assert_eq!(launch(), 0);
    assert_eq!(update(&raw, exec, same), (OK, 0, null_mut()));
    assert_eq!(launch(), 1);
}

/// A context's end waits for the launches of its work in streams of other contexts, also if the
/// work is in a copy of the graph.
#[test]
fn a_context_waits_for_its_work_in_copies_of_graphs() {
    for copy in ["none", "a clone", "a child"] {
        let raw = Raw::with(SoftDriver::builder().devices(2));
        let (here, mut there) = (raw.retain(0), null_mut());
        assert_eq!(unsafe { (raw.cuCtxCreate_v2)(&mut there, 0, 1) }.0, OK);
        let [(theirs, back), (ours, forth)] = [there, here].map(|context| {
            raw.set_current(context);
            (raw.stream(NON_BLOCKING), raw.event(CU_EVENT_DISABLE_TIMING))
        });
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        assert_eq!(unsafe { (raw.cuStreamBeginCapture_v2)(ours, mode) }.0, OK);
        raw.record(forth, ours);
        raw.wait(theirs, forth);
        raw.host(theirs, || ());
        raw.record(back, theirs);
        raw.wait(ours, back);
        let mut original = null_mut();
        assert_eq!(unsafe { (raw.cuStreamEndCapture)(ours, &mut original) }.0, OK);
        let mut launched = original;
        if copy == "a clone" {
            let code = call!(raw, cuGraphClone(&mut launched => *mut CUgraph,
                original => CUgraph));
            assert_eq!(code, OK);
        } else if copy == "a child" {
            launched = graph(&raw);
            child(&raw, launched, &[], original);
        }
        let (exec, stream) = (instantiate(&raw, launched), raw.stream(NON_BLOCKING));
        let latch = raw.latch(stream);
        latch.reached();
        assert_eq!(unsafe { (raw.cuGraphLaunch)(exec, stream) }.0, OK);
        let (destroy, there) = (raw.cuCtxDestroy_v2, there.expose_provenance());
        let ended =
            begin(move || unsafe { destroy(std::ptr::with_exposed_provenance_mut(there)) }.0);
        while raw.soft.waiting_for_work() == 0 {
            assert!(!ended.is_finished(), "{copy}: it did not wait");
            std::thread::yield_now();
        }
        latch.release();
        assert_eq!(ended.join(), OK, "{copy}");
    }
}
