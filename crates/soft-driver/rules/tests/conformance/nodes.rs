//! Nodes of graphs: their lists, their parameters, and the objects that live as long as a graph.

use std::ffi::c_void;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::Duration;

use cuda_events::sys::more::*;
use cuda_soft_driver::abi::{
    CUDA_GRAPH_INSTANTIATE_PARAMS, CUDA_MEMCPY3D, CUDA_MEMSET_NODE_PARAMS, CUgraphExecUpdateResult,
    CUgraphExecUpdateResultInfo, CUgraphInstantiateResult,
};

use crate::capture::{RELAXED, capturing, end, fate, status};
use crate::edits::{BYTES, Memory, count, empty, graph};
use crate::graphs::instantiate;
use crate::raw::{NON_BLOCKING, Rig, code_text, must};
use crate::rules;

/// The nodes of a graph, of which there are so many.
fn nodes<const COUNT: usize>(rig: &Rig, graph: CUgraph) -> [CUgraphNode; COUNT] {
    let (mut nodes, mut count) = ([null_mut(); COUNT], COUNT);
    must!(rig.cuGraphGetNodes(graph, nodes.as_mut_ptr(), &mut count));
    assert_eq!(count, COUNT);
    nodes
}

/// Handles as the letters of a, b and c.
fn letters(handles: &[CUgraphNode], abc: [CUgraphNode; 3]) -> String {
    let letter = |handle: &CUgraphNode| match abc.iter().position(|node| node == handle) {
        Some(at) => ["a", "b", "c"][at],
        None if handle.is_null() => "NULL",
        None => "another",
    };
    handles.iter().map(letter).collect::<Vec<_>>().join(" ")
}

fn host_node(rig: &Rig, graph: CUgraph, params: &CUDA_HOST_NODE_PARAMS) -> CUgraphNode {
    let mut node = null_mut();
    must!(rig.cuGraphAddHostNode(&mut node, graph, null(), 0, params));
    node
}

/// Parameters of a host node that adds one to a counter.
fn adding_to(counter: &AtomicU32) -> CUDA_HOST_NODE_PARAMS {
    unsafe extern "C" fn add(counter: *mut c_void) {
        // SAFETY: the rules keep their counters until all launches are done.
        unsafe { &*counter.cast::<AtomicU32>() }.fetch_add(1, Ordering::SeqCst);
    }
    let user_data = std::ptr::from_ref(counter).cast_mut().cast();
    CUDA_HOST_NODE_PARAMS { fn_: Some(add), userData: user_data }
}

fn launch(rig: &Rig, exec: CUgraphExec) {
    let stream = rig.stream(NON_BLOCKING);
    must!(rig.cuGraphLaunch(exec, stream));
    rig.synchronize(stream);
}

/// A user object that adds one to a counter when it is destroyed.
fn user_object(rig: &Rig, counter: &AtomicU32) -> CUuserObject {
    let CUDA_HOST_NODE_PARAMS { fn_: function, userData: user_data } = adding_to(counter);
    let mut object = null_mut();
    must!(rig.cuUserObjectCreate(&mut object, user_data, function, 1, 1));
    object
}

/// Waits for the destruction of a user object, which comes in a thread of the driver.
fn destroyed(counter: &AtomicU32) -> &'static str {
    let begun = std::time::Instant::now();
    while counter.load(Ordering::SeqCst) == 0 {
        if begun.elapsed().as_secs() > 5 {
            return "still there";
        }
        std::thread::yield_now();
    }
    "destroyed"
}

rules! {
    /// The driver lists all nodes of a graph, those without dependencies, the edges, and the nodes
    /// before and after a node. It fills the rest of the array with NULL.
    fn lists(rig, saw) =
        "nodes a b c; roots a; edges 2, a b NULL to b c NULL; before b 1, a NULL; after b 1, c \
         NULL; before a 0"
    {
        let graph = graph(rig);
        let a = empty(rig, graph, &[]);
        let b = empty(rig, graph, &[a]);
        let c = empty(rig, graph, &[b]);
        let named = |nodes: &[CUgraphNode]| letters(nodes, [a, b, c]);
        saw.text(format_args!("nodes {}", named(&nodes::<3>(rig, graph))));
        let (mut root, mut one) = (null_mut(), 1);
        must!(rig.cuGraphGetRootNodes(graph, &mut root, &mut one));
        saw.text(format_args!("roots {}", named(&[root])));
        let (mut from, mut to, mut count) = ([a; 3], [a; 3], 3);
        must!(rig.cuGraphGetEdges(graph, from.as_mut_ptr(), to.as_mut_ptr(), &mut count));
        saw.text(format_args!("edges {count}, {} to {}", named(&from), named(&to)));
        let (mut some, mut count) = ([b; 2], 2);
        must!(rig.cuGraphNodeGetDependencies(b, some.as_mut_ptr(), &mut count));
        saw.text(format_args!("before b {count}, {}", named(&some)));
        count = 2;
        must!(rig.cuGraphNodeGetDependentNodes(b, some.as_mut_ptr(), &mut count));
        saw.text(format_args!("after b {count}, {}", named(&some)));
        must!(rig.cuGraphNodeGetDependencies(a, null_mut(), &mut count));
        saw.text(format_args!("before a {count}"));
        must!(rig.cuGraphDestroy(graph));
    }

    /// The function and the argument of a host node can be read. They can be changed in the graph,
    /// and in an executable graph for its later launches.
    [since(11, 4)]
    fn host_nodes(rig, saw) =
        "the parameters as given; launched 1, 0; set in the executable graph success, launched 1, \
         1; set in the graph success, launched 1, 2; CUDA_ERROR_INVALID_VALUE (1) from no \
         function, an empty node"
    {
        let (graph, counters) = (graph(rig), [(); 2].map(|()| AtomicU32::new(0)));
        let [first, second] = [adding_to(&counters[0]), adding_to(&counters[1])];
        let node = host_node(rig, graph, &first);
        let mut read = CUDA_HOST_NODE_PARAMS { fn_: None, userData: null_mut() };
        must!(rig.cuGraphHostNodeGetParams(node, &mut read));
        saw.holds("the parameters as given", read.userData == first.userData
            && read.fn_.map(|function| function as usize)
                == first.fn_.map(|function| function as usize));
        let called = || {
            let [first, second] = [&counters[0], &counters[1]].map(|c| c.load(Ordering::SeqCst));
            format!("launched {first}, {second}")
        };
        let exec = instantiate(rig, graph);
        launch(rig, exec);
        saw.text(called());
        let set = code_text(rig.cuGraphExecHostNodeSetParams(exec, node, &second));
        launch(rig, exec);
        saw.text(format_args!("set in the executable graph {set}, {}", called()));
        let set = code_text(rig.cuGraphHostNodeSetParams(node, &second));
        let new = instantiate(rig, graph);
        launch(rig, new);
        saw.text(format_args!("set in the graph {set}, {}", called()));
        let none = CUDA_HOST_NODE_PARAMS { fn_: None, userData: null_mut() };
        let other = empty(rig, graph, &[]);
        saw.codes(&[
            ("no function", rig.cuGraphHostNodeSetParams(node, &none)),
            ("an empty node", rig.cuGraphHostNodeSetParams(other, &second)),
        ]);
        for exec in [exec, new] {
            must!(rig.cuGraphExecDestroy(exec));
        }
        must!(rig.cuGraphDestroy(graph));
    }

    /// A user object lives as long as a graph, an executable graph or a launch has a reference.
    [since(11, 3), alone]
    fn user_objects(rig, saw) =
        "flags of 0 CUDA_ERROR_INVALID_VALUE (1); moved success; graph gone, launched: 0; \
         executable graph gone: 0; launch done: destroyed"
    {
        let (counter, mut none, graph) = (AtomicU32::new(0), null_mut(), graph(rig));
        let CUDA_HOST_NODE_PARAMS { fn_: function, userData: user_data } = adding_to(&counter);
        saw.code("flags of 0", rig.cuUserObjectCreate(&mut none, user_data, function, 1, 0));
        let (object, stream) = (user_object(rig, &counter), rig.stream(NON_BLOCKING));
        saw.code("moved", rig.cuGraphRetainUserObject(graph, object, 1, 1));
        empty(rig, graph, &[]);
        let exec = instantiate(rig, graph);
        let latch = rig.hold(stream);
        must!(rig.cuGraphLaunch(exec, stream));
        must!(rig.cuGraphDestroy(graph));
        let ended = || counter.load(Ordering::SeqCst);
        saw.text(format_args!("graph gone, launched: {}", ended()));
        must!(rig.cuGraphExecDestroy(exec));
        saw.text(format_args!("executable graph gone: {}", ended()));
        latch.release();
        rig.synchronize(stream);
        saw.text(format_args!("launch done: {}", destroyed(&counter)));
    }

    /// An executable graph ends as many references as its graph had, and no more.
    [since(11, 3), alone]
    fn two_references_of_a_graph(rig, saw) =
        "graphs gone: 0; released success: destroyed"
    {
        let (counter, graph) = (AtomicU32::new(0), graph(rig));
        let object = user_object(rig, &counter);
        must!(rig.cuUserObjectRetain(object, 2));
        must!(rig.cuGraphRetainUserObject(graph, object, 2, 1));
        empty(rig, graph, &[]);
        let exec = instantiate(rig, graph);
        must!(rig.cuGraphExecDestroy(exec));
        must!(rig.cuGraphDestroy(graph));
        sleep(Duration::from_millis(300));
        saw.text(format_args!("graphs gone: {}", counter.load(Ordering::SeqCst)));
        let code = code_text(rig.cuUserObjectRelease(object, 1));
        saw.text(format_args!("released {code}: {}", destroyed(&counter)));
    }

    /// An executable graph has references to the user objects of child graphs, too. A reference of
    /// the program keeps an object that no graph has.
    [since(11, 3), alone]
    fn user_objects_of_child_graphs(rig, saw) =
        "graphs gone: 0; executable graph gone: destroyed; the other: retained success, released \
         by the graph success: 0; released success, success: destroyed"
    {
        let (counters, inner, outer) =
            ([(); 2].map(|()| AtomicU32::new(0)), graph(rig), graph(rig));
        let object = user_object(rig, &counters[0]);
        must!(rig.cuGraphRetainUserObject(inner, object, 1, 1));
        let mut node = null_mut();
        must!(rig.cuGraphAddChildGraphNode(&mut node, outer, null(), 0, inner));
        let exec = instantiate(rig, outer);
        must!(rig.cuGraphDestroy(inner));
        must!(rig.cuGraphDestroy(outer));
        saw.text(format_args!("graphs gone: {}", counters[0].load(Ordering::SeqCst)));
        must!(rig.cuGraphExecDestroy(exec));
        saw.text(format_args!("executable graph gone: {}", destroyed(&counters[0])));
        let (object, other) = (user_object(rig, &counters[1]), graph(rig));
        must!(rig.cuGraphRetainUserObject(other, object, 1, 0));
        let retained = code_text(rig.cuUserObjectRetain(object, 1));
        let released = code_text(rig.cuGraphReleaseUserObject(other, object, 1));
        let ended = counters[1].load(Ordering::SeqCst);
        saw.text(format_args!(
            "the other: retained {retained}, released by the graph {released}: {ended}"
        ));
        let last = [(); 2].map(|()| code_text(rig.cuUserObjectRelease(object, 1)));
        saw.text(format_args!("released {}: {}", last.join(", "), destroyed(&counters[1])));
        must!(rig.cuGraphDestroy(other));
    }

    /// The nodes of a captured memset and copy have the parameters of the calls. They can be
    /// changed as those of other nodes.
    [since(11, 4)]
    fn captured_memory_nodes(rig, saw) =
        "the memset: 64 bytes of 5 in elements of 4; the copy: 64 bytes of the device to the host; \
         CUDA_ERROR_INVALID_VALUE (1) from the copy as memset, the memset as copy; given back \
         success; half of it success, copied 32"
    {
        const WORDS: usize = BYTES / 4;
        let (memory, mut host) = (Memory::new(rig), vec![0_u8; BYTES]);
        let place: *mut c_void = host.as_mut_ptr().cast();
        let stream = capturing(rig, RELAXED);
        let set = rig.cuMemsetD32Async(memory.address, 0x0505_0505, WORDS, stream);
        must("cuMemsetD32Async", set);
        must!(rig.cuMemcpyDtoHAsync_v2(place, memory.address, BYTES, stream));
        let (code, graph) = end(rig, stream);
        must("cuStreamEndCapture", code);
        let [set, copy] = nodes::<2>(rig, graph);
        let mut read = memory.params(0);
        must!(rig.cuGraphMemsetNodeGetParams(set, &mut read));
        let CUDA_MEMSET_NODE_PARAMS { dst: address, value, elementSize: element, width, height, .. } = read;
        saw.holds("the memset: 64 bytes of 5 in elements of 4",
            (address, value, element, width, height)
                == (memory.address, 0x0505_0505, 4, WORDS, 1));
        let mut copied = CUDA_MEMCPY3D::default();
        let code = rig.cuGraphMemcpyNodeGetParams(copy, &mut copied);
        must("cuGraphMemcpyNodeGetParams", code);
        saw.holds("the copy: 64 bytes of the device to the host",
            (copied.srcDevice, copied.dstHost, copied.WidthInBytes)
                == (memory.address, place, BYTES));
        saw.codes(&[
            ("the copy as memset", rig.cuGraphMemsetNodeGetParams(copy, &mut read)),
            ("the memset as copy", rig.cuGraphMemcpyNodeSetParams(set, &copied)),
        ]);
        saw.code("given back", rig.cuGraphMemcpyNodeSetParams(copy, &copied));
        let exec = instantiate(rig, graph);
        let half = CUDA_MEMCPY3D { WidthInBytes: BYTES / 2, ..copied };
        let code = code_text(rig.cuGraphExecMemcpyNodeSetParams(exec, copy, &half, rig.context));
        launch(rig, exec);
        let count = host.iter().filter(|byte| **byte == 5).count();
        saw.text(format_args!("half of it {code}, copied {count}"));
        must!(rig.cuGraphExecDestroy(exec));
        must!(rig.cuGraphDestroy(graph));
    }

    /// An update can change the value of a memset of rows, but not the width of its rows. The first
    /// form of the call returns the same result and node. A graph with a circle is no graph to
    /// update with. The second form needs no place for the result.
    [since(12, 0)]
    fn updates_of_rows(rig, saw) =
        "value success, 0; width CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE (910), 5, its node; one row \
         CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE (910), 5, its node; in a child graph \
         CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE (910), 3; the first form \
         CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE (910), 5, its node; \
         CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE (910) from a circle; success from no place"
    {
        let memory = Memory::new(rig);
        let rows = CUDA_MEMSET_NODE_PARAMS { pitch: 16, width: 8, height: 4, ..memory.params(1) };
        let with_memset = |params: CUDA_MEMSET_NODE_PARAMS| {
            let (graph, mut node) = (graph(rig), null_mut());
            must!(rig.cuGraphAddMemsetNode(&mut node, graph, null(), 0, &params, rig.context));
            (graph, node)
        };
        let ((first, _), (value, _)) = (with_memset(rows), with_memset(CUDA_MEMSET_NODE_PARAMS { value: 7, ..rows }));
        let (wider, row) = (with_memset(CUDA_MEMSET_NODE_PARAMS { width: 9, ..rows }), with_memset(memory.params(1)));
        let (nested, mut child) = (graph(rig), null_mut());
        must!(rig.cuGraphAddChildGraphNode(&mut child, nested, null(), 0, first));
        let exec = instantiate(rig, first);
        let update = |what: &str, (graph, node): (CUgraph, CUgraphNode)| {
            let mut info = CUgraphExecUpdateResultInfo {
            result: CUgraphExecUpdateResult(77),
            ..CUgraphExecUpdateResultInfo::default()
        };
            let code = rig.cuGraphExecUpdate_v2(exec, graph, &mut info);
            let its = if !node.is_null() && info.errorNode == node { ", its node" } else { "" };
            saw.text(format_args!("{what} {}, {}{its}", code_text(code), info.result.0));
        };
        update("value", (value, null_mut()));
        update("width", wider);
        update("one row", row);
        // A driver may name the node or the one within.
        update("in a child graph", (nested, null_mut()));
        let (mut node, mut result) = (null_mut(), CUgraphExecUpdateResult(77));
        let code = code_text(rig.cuGraphExecUpdate(exec, wider.0, &mut node, &mut result));
        let its = if node == wider.1 { "its node" } else { "another" };
        saw.text(format_args!("the first form {code}, {}, {its}", result.0));
        let circle = graph(rig);
        let a = memory.set(circle, &[], 1);
        let b = memory.set(circle, &[a], 1);
        must!(rig.cuGraphAddDependencies(circle, &b, &a, 1));
        let mut info = CUgraphExecUpdateResultInfo {
            result: CUgraphExecUpdateResult(77),
            ..CUgraphExecUpdateResultInfo::default()
        };
        saw.codes(&[
            ("a circle", rig.cuGraphExecUpdate_v2(exec, circle, &mut info)),
            ("no place", rig.cuGraphExecUpdate_v2(exec, first, null_mut())),
        ]);
        must!(rig.cuGraphExecDestroy(exec));
        for graph in [first, value, wider.0, row.0, nested, circle] {
            must!(rig.cuGraphDestroy(graph));
        }
    }

    /// A node on which the next work of a capture depends cannot be destroyed before the end of the
    /// capture. The software driver returns an error. The driver of a GPU crashes.
    [soft_only, since(12, 3)]
    fn destroying_a_node_of_a_capture(rig, saw) =
        "during the capture CUDA_ERROR_ILLEGAL_STATE (401), unharmed; nodes 2, edges 1; afterwards \
         success; again CUDA_ERROR_INVALID_VALUE (1)"
    {
        let (memory, into) = (Memory::new(rig), graph(rig));
        let (node, stream) = (memory.set(into, &[], 1), rig.stream(NON_BLOCKING));
        must!(rig.cuStreamBeginCaptureToGraph(stream, into, &node, null(), 1, RELAXED));
        let code = code_text(rig.cuGraphDestroyNode(node));
        must!(rig.cuMemsetD8Async(memory.address, 5, BYTES, stream));
        let unharmed = status(rig, stream) == Ok(1);
        must("cuStreamEndCapture", end(rig, stream).0);
        let how = if unharmed { "unharmed" } else { "invalidated" };
        saw.text(format_args!("during the capture {code}, {how}"));
        let (nodes, edges) = count(rig, into);
        saw.text(format_args!("nodes {nodes}, edges {edges}"));
        saw.code("afterwards", rig.cuGraphDestroyNode(node));
        saw.code("again", rig.cuGraphDestroyNode(node));
        must!(rig.cuGraphDestroy(into));
    }

    /// A capture into a graph does not begin with edge data of an unknown type or port.
    [since(12, 3)]
    fn edges_of_a_capture_into_a_graph(rig, saw) =
        "CUDA_ERROR_INVALID_VALUE (1) from type 77, port 77 from, port 77 to; status 0; plain \
         edges success, unharmed"
    {
        let (into, stream) = (graph(rig), rig.stream(NON_BLOCKING));
        let node = empty(rig, into, &[]);
        let begin = |change: fn(&mut CUgraphEdgeData)| {
            let mut edge = CUgraphEdgeData::default();
            change(&mut edge);
            rig.cuStreamBeginCaptureToGraph(stream, into, &node, &edge, 1, RELAXED)
        };
        saw.codes(&[
            ("type 77", begin(|edge| edge.type_ = 77)),
            ("port 77 from", begin(|edge| edge.from_port = 77)),
            ("port 77 to", begin(|edge| edge.to_port = 77)),
        ]);
        saw.text(format_args!("status {}", status(rig, stream).expect("a status")));
        saw.text(format_args!("plain edges {}, {}", code_text(begin(|_| ())), fate(rig, stream)));
    }

    /// `cuGraphInstantiateWithParams` returns the node that keeps a graph from being launched by
    /// the device. `cuGraphExecGetFlags` returns the flags of an executable graph, without the flag
    /// for priorities of nodes (8).
    [since(12, 0)]
    fn instantiation_with_parameters(rig, saw) =
        "flags 0, 1, 4, 8, 12 with a memset success, 0; read 0, 1, 4, 0, 4; flag 4 with an empty node \
         CUDA_ERROR_INVALID_VALUE (1), 3, the empty node"
    {
        let (memory, graph) = (Memory::new(rig), graph(rig));
        memory.set(graph, &[], 1);
        let instantiated = |flags: u64| {
            let mut params = CUDA_GRAPH_INSTANTIATE_PARAMS {
                flags,
                result_out: CUgraphInstantiateResult(77),
                ..CUDA_GRAPH_INSTANTIATE_PARAMS::default()
            };
            let (mut exec, mut read) = (null_mut(), 77);
            let code = rig.cuGraphInstantiateWithParams(&mut exec, graph, &mut params);
            if code == CUresult::CUDA_SUCCESS {
                must!(rig.cuGraphExecGetFlags(exec, &mut read));
                must!(rig.cuGraphExecDestroy(exec));
            }
            (code, params.result_out.0, params.hErrNode_out, read)
        };
        const FLAGS: [u64; 5] = [0, 1, 4, 8, 12];
        let all = FLAGS.map(instantiated);
        let good = |(code, result, ..): &(CUresult, u32, CUgraphNode, u64)| {
            (*code, *result) == (CUresult::CUDA_SUCCESS, 0)
        };
        saw.holds("flags 0, 1, 4, 8, 12 with a memset success, 0", all.iter().all(good));
        saw.text(format_args!("read {}", all.map(|(.., read)| read.to_string()).join(", ")));
        let node = empty(rig, graph, &[]);
        let (code, result, error_node, _) = instantiated(4);
        let which = if error_node == node { "the empty node" } else { "another" };
        saw.text(format_args!("flag 4 with an empty node {}, {result}, {which}", code_text(code)));
        must!(rig.cuGraphDestroy(graph));
    }

    /// The operations of a node of stream memory operations can be replaced in the graph by any
    /// number of operations. In an executable graph their number is fixed.
    [since(11, 7)]
    fn nodes_of_values(rig, saw) =
        "two operations success, count 2; in the executable graph:; CUDA_ERROR_INVALID_VALUE (1) \
         from two; success from another value; launched 6"
    {
        let (memory, stream) = (Memory::new(rig), capturing(rig, RELAXED));
        must!(rig.cuStreamWriteValue64_v2(stream, memory.address, 0x0505_0505_0505_0505, 0));
        let (code, graph) = end(rig, stream);
        must("cuStreamEndCapture", code);
        let [node] = nodes::<1>(rig, graph);
        let exec = instantiate(rig, graph);
        let mut params =
            CUDA_BATCH_MEM_OP_NODE_PARAMS { count: 9, flags: 9, ..Default::default() };
        let read = |params: &mut CUDA_BATCH_MEM_OP_NODE_PARAMS| {
            must!(rig.cuGraphBatchMemOpNodeGetParams(node, params));
        };
        read(&mut params);
        // SAFETY: the operations are the node's while it lives, and there is one.
        let operation = unsafe { *params.paramArray };
        let mut two = [operation; 2];
        let twice = CUDA_BATCH_MEM_OP_NODE_PARAMS { count: 2, paramArray: two.as_mut_ptr(), ..params };
        let code = code_text(rig.cuGraphBatchMemOpNodeSetParams(node, &twice));
        read(&mut params);
        saw.text(format_args!("two operations {code}, count {}", params.count));
        let set = |operations: &mut [CUstreamBatchMemOpParams], write: u64| {
            for operation in operations.iter_mut() {
                operation.writeValue.u.value64 = write;
            }
            let params = CUDA_BATCH_MEM_OP_NODE_PARAMS {
                count: operations.len() as u32,
                paramArray: operations.as_mut_ptr(),
                ..params
            };
            rig.cuGraphExecBatchMemOpNodeSetParams(exec, node, &params)
        };
        saw.text("in the executable graph:");
        saw.codes(&[("two", set(&mut two, 7)), ("another value", set(&mut [operation], 6))]);
        launch(rig, exec);
        let mut word = 0_u64;
        let stream = rig.stream(NON_BLOCKING);
        let place = (&raw mut word).cast();
        must("copy", rig.cuMemcpyDtoHAsync_v2(place, memory.address, 8, stream));
        rig.synchronize(stream);
        saw.text(format_args!("launched {}", word & 0xFF));
        must!(rig.cuGraphExecDestroy(exec));
        must!(rig.cuGraphDestroy(graph));
    }

    /// After a join, the next work of a capture depends on the work of both streams.
    [since(11, 4)]
    fn dependencies_after_a_join(rig, saw) = "nodes 3; before the last 2" {
        let memory = Memory::new(rig);
        let (stream, forked) = (capturing(rig, RELAXED), rig.stream(NON_BLOCKING));
        let set = |stream| {
            must!(rig.cuMemsetD8Async(memory.address, 1, BYTES, stream));
        };
        let fork = rig.recorded(stream);
        must!(rig.cuStreamWaitEvent(forked, fork, 0));
        set(stream);
        set(forked);
        let join = rig.recorded(forked);
        must!(rig.cuStreamWaitEvent(stream, join, 0));
        set(stream);
        let (code, graph) = end(rig, stream);
        must("cuStreamEndCapture", code);
        let nodes = nodes::<3>(rig, graph);
        saw.text(format_args!("nodes {}", nodes.len()));
        let before = nodes.map(|node| {
            let mut before = 0;
            must!(rig.cuGraphNodeGetDependencies(node, null_mut(), &mut before));
            before
        });
        saw.text(format_args!("before the last {}", before.into_iter().max().unwrap_or(0)));
        must!(rig.cuGraphDestroy(graph));
    }

    /// An update adds the user objects of the new graph to the executable graph.
    [since(12, 0), alone]
    fn user_objects_of_an_update(rig, saw) =
        "updated success; graphs gone: 0; executable graph gone: destroyed"
    {
        let (counter, one, other) = (AtomicU32::new(0), graph(rig), graph(rig));
        empty(rig, one, &[]);
        empty(rig, other, &[]);
        let object = user_object(rig, &counter);
        must!(rig.cuGraphRetainUserObject(other, object, 1, 1));
        let exec = instantiate(rig, one);
        let mut info = CUgraphExecUpdateResultInfo {
            result: CUgraphExecUpdateResult(77),
            ..CUgraphExecUpdateResultInfo::default()
        };
        saw.code("updated", rig.cuGraphExecUpdate_v2(exec, other, &mut info));
        must!(rig.cuGraphDestroy(one));
        must!(rig.cuGraphDestroy(other));
        saw.text(format_args!("graphs gone: {}", counter.load(Ordering::SeqCst)));
        must!(rig.cuGraphExecDestroy(exec));
        saw.text(format_args!("executable graph gone: {}", destroyed(&counter)));
    }

    /// A launch keeps the order of the captured work, also between the streams of the capture.
    [since(11, 4)]
    fn a_fork_in_a_launch(rig, saw) = "not launched 0; launched 3, 3, 3" {
        let (memory, mut host) = (Memory::new(rig), vec![0_u8; BYTES]);
        let (stream, forked) = (capturing(rig, RELAXED), rig.stream(NON_BLOCKING));
        let set = |value, stream| {
            must!(rig.cuMemsetD8Async(memory.address, value, BYTES, stream));
        };
        set(1, stream);
        let fork = rig.recorded(stream);
        must!(rig.cuStreamWaitEvent(forked, fork, 0));
        set(2, forked);
        let join = rig.recorded(forked);
        must!(rig.cuStreamWaitEvent(stream, join, 0));
        set(3, stream);
        let place = host.as_mut_ptr().cast();
        must("copy", rig.cuMemcpyDtoHAsync_v2(place, memory.address, BYTES, stream));
        // The next launch begins with another value.
        set(4, stream);
        let (code, graph) = end(rig, stream);
        must("cuStreamEndCapture", code);
        let exec = instantiate(rig, graph);
        let copied = |host: &[u8]| if host == [host[0]; BYTES] { host[0] } else { 99 };
        saw.text(format_args!("not launched {}", copied(&host)));
        let launched = [(); 3].map(|()| {
            host.fill(0);
            launch(rig, exec);
            copied(&host).to_string()
        });
        saw.text(format_args!("launched {}", launched.join(", ")));
        must!(rig.cuGraphExecDestroy(exec));
        must!(rig.cuGraphDestroy(graph));
    }
}
