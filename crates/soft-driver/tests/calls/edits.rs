//! Changes of graphs: what the rules on the driver do not ask.

use crate::common;

use std::ffi::c_void;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};

use common::*;
use cuda_events::sys::*;
use cuda_soft_driver::abi::{Copy3D, InstantiateParams, MemsetParams, UpdateInfo};
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

fn set(raw: &Raw, graph: CUgraph, after: &[CUgraphNode], params: MemsetParams) -> CUgraphNode {
    let (mut node, context) = (null_mut(), raw.retain(0));
    let code = call!(raw, cuGraphAddMemsetNode(&mut node => *mut CUgraphNode, graph => CUgraph,
        after.as_ptr() => *const CUgraphNode, after.len() => usize,
        &params => *const MemsetParams, context => CUcontext));
    assert_eq!(code, OK);
    node
}

fn bytes(address: u64, value: u32) -> MemsetParams {
    MemsetParams { address, pitch: 0, value, element: 1, width: 64, height: 1 }
}

fn child(raw: &Raw, graph: CUgraph, after: &[CUgraphNode], of: CUgraph) -> CUgraphNode {
    let mut node = null_mut();
    let code = call!(raw, cuGraphAddChildGraphNode(&mut node => *mut CUgraphNode,
        graph => CUgraph, after.as_ptr() => *const CUgraphNode, after.len() => usize,
        of => CUgraph));
    assert_eq!(code, OK);
    node
}

fn instantiate(raw: &Raw, graph: CUgraph) -> Result<CUgraphExec, u32> {
    let mut exec = null_mut();
    match unsafe { raw.cuGraphInstantiateWithFlags.unwrap()(&mut exec, graph, 0) }.0 {
        OK => Ok(exec),
        code => Err(code),
    }
}

fn update(raw: &Raw, exec: CUgraphExec, graph: CUgraph) -> (u32, u32, CUgraphNode) {
    let (error_node, error_from_node) = (null_mut(), null_mut());
    let mut info = UpdateInfo { result: 77, error_node, error_from_node };
    let code = call!(raw, cuGraphExecUpdate_v2(exec => CUgraphExec, graph => CUgraph,
        &mut info => *mut UpdateInfo));
    (code, info.result, info.error_node)
}

/// A graph's nodes go with it, with their own graphs and whatever those have.
#[test]
fn child_graphs_go_with_their_nodes() {
    let raw = Raw::new();
    let address = alloc(&raw);
    let (inner, middle, outer) = (graph(&raw), graph(&raw), graph(&raw));
    set(&raw, inner, &[], bytes(address, 1));
    let node = child(&raw, middle, &[], inner);
    let node_of_outer = child(&raw, outer, &[], middle);
    assert_eq!(raw.soft.live().graphs, 3, "those of nodes are not the program's");
    let copy_of = |node: CUgraphNode| {
        let mut copy = null_mut();
        let code = call!(raw, cuGraphChildGraphNodeGetGraph(node => CUgraphNode,
            &mut copy => *mut CUgraph));
        (code, copy)
    };
    let (code, copy) = copy_of(node_of_outer);
    assert_eq!(code, OK);
    assert_eq!(unsafe { (raw.cuGraphDestroy)(copy) }.0, INVALID_VALUE);
    assert_eq!(call!(raw, cuGraphDestroyNode(node_of_outer => CUgraphNode)), OK);
    assert_eq!(copy_of(node_of_outer).0, INVALID_VALUE);
    let mut count = 77;
    let asked = call!(raw, cuGraphGetNodes(copy => CUgraph, null_mut() => *mut CUgraphNode,
        &mut count => *mut usize));
    assert_eq!(asked, INVALID_VALUE, "it went with its node");
    assert_eq!(copy_of(node).0, OK);
    // A clone has graphs of its own.
    let mut clone = null_mut();
    assert_eq!(call!(raw, cuGraphClone(&mut clone => *mut CUgraph, middle => CUgraph)), OK);
    for graph in [inner, middle, outer] {
        assert_eq!(unsafe { (raw.cuGraphDestroy)(graph) }.0, OK);
    }
    let exec = instantiate(&raw, clone).unwrap();
    let stream = raw.stream(NON_BLOCKING);
    assert_eq!(unsafe { (raw.cuGraphLaunch)(exec, stream) }.0, OK);
    raw.sync(stream);
    let first = std::ptr::with_exposed_provenance::<u8>(address as usize);
    assert_eq!(unsafe { first.read_volatile() }, 1);
    assert_eq!(unsafe { (raw.cuGraphExecDestroy)(exec) }.0, OK);
    assert_eq!(unsafe { (raw.cuGraphDestroy)(clone) }.0, OK);
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
        let exec = instantiate(&raw, outer).unwrap();
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
    let exec = instantiate(&raw, apart).unwrap();
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

#[test]
fn what_an_update_refuses() {
    let raw = Raw::new();
    let address = alloc(&raw);
    let graph_of = |params: MemsetParams| {
        let graph = graph(&raw);
        (graph, set(&raw, graph, &[], params))
    };
    let rows = MemsetParams { pitch: 16, width: 8, height: 4, ..bytes(address, 1) };
    let ((row, _), (first, _)) = (graph_of(bytes(address, 1)), graph_of(rows));
    let (value, _) = graph_of(MemsetParams { value: 7, ..rows });
    let (wider, wide) = graph_of(MemsetParams { width: 9, ..rows });
    let exec = instantiate(&raw, first).unwrap();
    assert_eq!(update(&raw, exec, value), (OK, 0, null_mut()));
    assert_eq!(update(&raw, exec, wider), (910, 5, wide), "other rows");
    assert_eq!(update(&raw, exec, row).1, 5);
    // One that is in a child graph is another node, and one in a circle none.
    let nested = graph(&raw);
    child(&raw, nested, &[], first);
    assert_eq!(update(&raw, exec, nested).1, 3);
    let circle = graph(&raw);
    let a = set(&raw, circle, &[], rows);
    let b = set(&raw, circle, &[a], rows);
    let circled = call!(raw, cuGraphAddDependencies(circle => CUgraph, &b => *const CUgraphNode,
        &a => *const CUgraphNode, 1 => usize));
    assert_eq!(circled, OK);
    assert_eq!(update(&raw, exec, circle).0, INVALID_VALUE);
    assert_eq!(instantiate(&raw, circle), Err(INVALID_VALUE));
    // The form of CUDA 10.2.
    let (mut node, mut result) = (null_mut(), 77);
    let code = call!(raw, cuGraphExecUpdate(exec => CUgraphExec, wider => CUgraph,
        &mut node => *mut CUgraphNode, &mut result => *mut u32));
    assert_eq!((code, node, result), (910, wide, 5));
    let code = call!(raw, cuGraphExecUpdate_v2(exec => CUgraphExec, row => CUgraph,
        null_mut() => *mut UpdateInfo));
    assert_eq!(code, INVALID_VALUE);
}

/// What depends on a node of a capture is still to come.
#[test]
fn a_node_of_a_capture_cannot_be_destroyed() {
    let raw = Raw::new();
    let (stream, into, address) = (raw.stream(NON_BLOCKING), graph(&raw), alloc(&raw));
    let node = set(&raw, into, &[], bytes(address, 1));
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
    unsafe {
        let begin = raw.cuStreamBeginCaptureToGraph.unwrap();
        assert_eq!(begin(stream, into, &node, null(), 1, mode).0, OK);
        assert_eq!(call!(raw, cuGraphDestroyNode(node => CUgraphNode)), ILLEGAL_STATE);
        assert_eq!((raw.cuMemsetD32Async)(address, 5, 16, stream).0, OK);
        let mut ended = null_mut();
        assert_eq!((raw.cuStreamEndCapture)(stream, &mut ended).0, OK);
    }
    let mut edges = 77;
    let asked = call!(raw, cuGraphGetEdges(into => CUgraph, null_mut() => *mut CUgraphNode,
        null_mut() => *mut CUgraphNode, &mut edges => *mut usize));
    assert_eq!((asked, edges), (OK, 1));
    assert_eq!(call!(raw, cuGraphDestroyNode(node => CUgraphNode)), OK);
    assert_eq!(call!(raw, cuGraphDestroyNode(node => CUgraphNode)), INVALID_VALUE);
}

/// A captured node tells what it would have been made with.
#[test]
fn the_parameters_of_captured_nodes() {
    let raw = Raw::new();
    let (stream, address) = (raw.stream(NON_BLOCKING), alloc(&raw));
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
    let mut host = [0_u8; 32];
    let mut graph = null_mut();
    unsafe {
        assert_eq!((raw.cuStreamBeginCapture_v2)(stream, mode).0, OK);
        assert_eq!((raw.cuMemsetD32Async)(address, 5, 16, stream).0, OK);
        let place = host.as_mut_ptr().cast();
        assert_eq!((raw.cuMemcpyDtoHAsync_v2)(place, address, 32, stream).0, OK);
        assert_eq!((raw.cuStreamEndCapture)(stream, &mut graph).0, OK);
    }
    let (mut nodes, mut count) = ([null_mut(); 2], 2);
    let asked = call!(raw, cuGraphGetNodes(graph => CUgraph,
        nodes.as_mut_ptr() => *mut CUgraphNode, &mut count => *mut usize));
    assert_eq!((asked, count), (OK, 2));
    let mut memset = bytes(0, 0);
    fn memset_of(raw: &Raw, of: CUgraphNode, params: &mut MemsetParams) -> u32 {
        call!(raw, cuGraphMemsetNodeGetParams(of => CUgraphNode, params => *mut MemsetParams))
    }
    assert_eq!(memset_of(&raw, nodes[0], &mut memset), OK);
    let wanted = MemsetParams { address, pitch: 0, value: 5, element: 4, width: 16, height: 1 };
    assert_eq!(memset, wanted);
    assert_eq!(memset_of(&raw, nodes[1], &mut memset), INVALID_VALUE, "a copy");
    let mut copy = std::mem::MaybeUninit::<Copy3D>::uninit();
    let asked = call!(raw, cuGraphMemcpyNodeGetParams(nodes[1] => CUgraphNode,
        copy.as_mut_ptr() => *mut Copy3D));
    assert_eq!(asked, OK);
    let copy = unsafe { copy.assume_init() };
    assert_eq!((copy.source.memory_type, copy.source.device), (2, address));
    assert_eq!(
        (copy.destination.memory_type, copy.destination.host),
        (1, host.as_mut_ptr().cast())
    );
    assert_eq!((copy.width, copy.height, copy.depth), (32, 1, 1));
    // It can be given back, and changed.
    let given = call!(raw, cuGraphMemcpyNodeSetParams(nodes[1] => CUgraphNode,
        &copy => *const Copy3D));
    assert_eq!(given, OK);
    let other = call!(raw, cuGraphMemcpyNodeSetParams(nodes[0] => CUgraphNode,
        &copy => *const Copy3D));
    assert_eq!(other, INVALID_VALUE, "a memset");
    let (exec, context) = (instantiate(&raw, graph).unwrap(), raw.retain(0));
    let shorter = Copy3D { width: 16, ..copy };
    let changed = call!(raw, cuGraphExecMemcpyNodeSetParams(exec => CUgraphExec,
        nodes[1] => CUgraphNode, &shorter => *const Copy3D, context => CUcontext));
    assert_eq!(changed, OK);
    assert_eq!(unsafe { (raw.cuGraphLaunch)(exec, stream) }.0, OK);
    raw.sync(stream);
    assert_eq!(host, std::array::from_fn(|at| if at < 16 && at % 4 == 0 { 5 } else { 0 }));
}

/// With parameters, instantiation says what is at fault.
#[test]
fn which_node_keeps_a_graph_from_the_device() {
    let raw = Raw::new();
    let (address, graph) = (alloc(&raw), graph(&raw));
    let inner = self::graph(&raw);
    set(&raw, inner, &[], bytes(address, 1));
    child(&raw, graph, &[], inner);
    let instantiate = |flags: u64| {
        let (upload_stream, error_node) = (null_mut(), null_mut());
        let mut params = InstantiateParams { flags, upload_stream, error_node, result: 77 };
        let mut exec = null_mut();
        let code = call!(raw, cuGraphInstantiateWithParams(&mut exec => *mut CUgraphExec,
            graph => CUgraph, &mut params => *mut InstantiateParams));
        if code == OK {
            let mut kept = 77;
            let asked = call!(raw, cuGraphExecGetFlags(exec => CUgraphExec,
                &mut kept => *mut u64));
            assert_eq!((asked, kept), (OK, flags));
        }
        (code, params.result, params.error_node)
    };
    for flags in [0, 1, 2, 4, 6, 8, 14] {
        assert_eq!(instantiate(flags), (OK, 0, null_mut()), "{flags}");
    }
    assert_eq!(instantiate(5).0, INVALID_VALUE);
    assert_eq!(instantiate(16).0, INVALID_VALUE);
    let mut empty = null_mut();
    let added = call!(raw, cuGraphAddEmptyNode(&mut empty => *mut CUgraphNode, graph => CUgraph,
        null() => *const CUgraphNode, 0 => usize));
    assert_eq!(added, OK);
    assert_eq!(instantiate(4), (INVALID_VALUE, 3, empty));
    assert_eq!(instantiate(2), (OK, 0, null_mut()));
}

/// What a child graph keeps, whatever was instantiated of it keeps too.
#[test]
fn user_objects_of_child_graphs_are_kept() {
    extern "C" fn end(ended: *mut c_void) {
        // SAFETY: the counter that the object was made with.
        unsafe { &*ended.cast::<AtomicU32>() }.fetch_add(1, Ordering::SeqCst);
    }
    let raw = Raw::new();
    let ended = AtomicU32::new(0);
    let (mut object, place) = (null_mut(), std::ptr::from_ref(&ended).cast_mut().cast());
    let made = call!(raw, cuUserObjectCreate(&mut object => *mut *mut c_void,
        place => *mut c_void, Some(end as _) => CUhostFn, 1 => u32, 1 => u32));
    assert_eq!(made, OK);
    let (inner, outer) = (graph(&raw), graph(&raw));
    let moved = call!(raw, cuGraphRetainUserObject(inner => CUgraph, object => *mut c_void,
        1 => u32, 1 => u32));
    assert_eq!(moved, OK);
    child(&raw, outer, &[], inner);
    let exec = instantiate(&raw, outer).unwrap();
    for graph in [inner, outer] {
        assert_eq!(unsafe { (raw.cuGraphDestroy)(graph) }.0, OK);
    }
    assert_eq!(raw.soft.live().user_objects, 1);
    let stream = raw.stream(NON_BLOCKING);
    assert_eq!(unsafe { (raw.cuGraphLaunch)(exec, stream) }.0, OK);
    raw.sync(stream);
    assert_eq!(unsafe { (raw.cuGraphExecDestroy)(exec) }.0, OK);
    while ended.load(Ordering::SeqCst) == 0 {
        std::thread::yield_now();
    }
    assert_eq!(raw.soft.live().user_objects, 0);
}
