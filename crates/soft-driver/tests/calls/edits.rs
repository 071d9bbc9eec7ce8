//! Graphs that are changed: what is left alive.

use crate::common;

use std::ptr::null_mut;

use common::*;
use cuda_events::sys::*;
use cuda_soft_driver::SoftDriver;

const NON_BLOCKING: u32 = 1;

fn graph(raw: &Raw) -> CUgraph {
    let mut graph = null_mut();
    assert_eq!(unsafe { (raw.cuGraphCreate)(&mut graph, 0) }.0, OK);
    graph
}

fn child(raw: &Raw, graph: CUgraph, after: &[CUgraphNode], child: CUgraph) -> CUgraphNode {
    let mut node = null_mut();
    let code = call!(raw, cuGraphAddChildGraphNode(&mut node => *mut CUgraphNode,
        graph => CUgraph, after.as_ptr() => *const CUgraphNode, after.len() => usize,
        child => CUgraph));
    assert_eq!(code, OK);
    node
}

fn instantiate(raw: &Raw, graph: CUgraph) -> CUgraphExec {
    let mut exec = null_mut();
    let code = unsafe { raw.cuGraphInstantiateWithFlags.unwrap()(&mut exec, graph, 0) };
    assert_eq!(code.0, OK);
    exec
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
