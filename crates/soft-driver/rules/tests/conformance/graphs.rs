//! The information about a capture, captures into graphs, and event nodes.

use std::ptr::{null, null_mut};

use cuda_events::sys::*;

use crate::capture::{GLOBAL, RELAXED, begin, capturing, end, fate, status};
use crate::raw::{
    NO_TIMING, NON_BLOCKING, NULL_STREAM, Raw, Sent, TIMING, code_text, elsewhere, must,
};
use crate::rules;

const EXTERNAL: u32 = CU_EVENT_RECORD_EXTERNAL;
const ADD: u32 = CU_STREAM_ADD_CAPTURE_DEPENDENCIES;
const SET: u32 = CU_STREAM_SET_CAPTURE_DEPENDENCIES;

fn graph(raw: &Raw) -> CUgraph {
    let mut graph = null_mut();
    must!(raw.cuGraphCreate(&mut graph, 0));
    graph
}

fn record_node(raw: &Raw, graph: CUgraph, event: CUevent) -> CUgraphNode {
    let mut node = null_mut();
    must!(raw.cuGraphAddEventRecordNode(&mut node, graph, null(), 0, event));
    node
}

pub fn instantiate(raw: &Raw, graph: CUgraph) -> CUgraphExec {
    let mut exec = null_mut();
    must("cuGraphInstantiate", raw.cuGraphInstantiateWithFlags(&mut exec, graph, 0));
    exec
}

/// The graph of a capture of these operations.
fn captured(raw: &Raw, work: impl FnOnce(CUstream)) -> CUgraph {
    let stream = capturing(raw, RELAXED);
    work(stream);
    let (code, graph) = end(raw, stream);
    must("cuStreamEndCapture", code);
    graph
}

/// The information about a capture. Its places first have numbers that show which of them the call
/// did not write.
struct Info {
    code: CUresult,
    status: u32,
    id: u64,
    graph: CUgraph,
    nodes: *const CUgraphNode,
    count: usize,
}

fn info(raw: &Raw, stream: CUstream) -> Info {
    let mut status = CUstreamCaptureStatus(77);
    let (mut id, mut graph, mut nodes, mut count) =
        (77, std::ptr::without_provenance_mut(77), std::ptr::without_provenance(77), 77);
    let code = raw.cuStreamGetCaptureInfo_v2(
        stream,
        &mut status,
        &mut id,
        &mut graph,
        &mut nodes,
        &mut count,
    );
    Info { code, status: status.0, id, graph, nodes, count }
}

impl Info {
    fn others_untouched(&self) -> bool {
        self.id == 77 && self.graph.addr() == 77 && self.nodes.addr() == 77 && self.count == 77
    }
}

/// The nodes on which the next work of a capture depends.
fn dependencies(raw: &Raw, stream: CUstream) -> Vec<CUgraphNode> {
    let info = info(raw, stream);
    must("cuStreamGetCaptureInfo", info.code);
    if info.count == 0 {
        return Vec::new();
    }
    // SAFETY: the driver's array of so many nodes, which lasts until the next call on the stream.
    unsafe { std::slice::from_raw_parts(info.nodes, info.count) }.to_vec()
}

/// The flags from 0 to 17 with which a graph can be instantiated.
fn instantiation_flags(raw: &Raw, graph: CUgraph) -> String {
    let works = |flags: &u64| {
        let mut exec = null_mut();
        let code = raw.cuGraphInstantiateWithFlags(&mut exec, graph, *flags);
        if code == CUresult::CUDA_SUCCESS {
            must!(raw.cuGraphExecDestroy(exec));
        } else {
            assert_eq!(code, CUresult::CUDA_ERROR_INVALID_VALUE, "flags {flags}");
        }
        code == CUresult::CUDA_SUCCESS
    };
    let flags: Vec<_> = (0..18).filter(works).map(|flags| flags.to_string()).collect();
    flags.join(", ")
}

rules! {
    /// Every graph can be instantiated with the flags 1 (at each launch, the memory that the graph
    /// allocates is freed) and 8 (node priorities), with both, and with none. The flag 4 (launches
    /// from the device) needs a graph that has work, and no host, event or empty node. All other
    /// flags return `CUDA_ERROR_INVALID_VALUE`.
    [since(12, 0)]
    fn flags_of_instantiation(rig, saw) =
        "nothing 0, 1, 8, 9; empty node 0, 1, 8, 9; host node 0, 1, 8, 9; record node 0, 1, 8, 9; \
         memset node 0, 1, 4, 8, 9, 12; memset and host node 0, 1, 8, 9"
    {
        extern "C" fn nothing(_: *mut std::ffi::c_void) {}
        let (mut address, mut node) = (0, null_mut());
        must!(rig.cuMemAlloc_v2(&mut address, 16));
        let empty = graph(rig);
        must!(rig.cuGraphAddEmptyNode(&mut node, empty, null(), 0));
        let memset =
            |stream| must!(rig.cuMemsetD8Async(address, 1, 16, stream));
        let host = |stream| {
            must!(rig.cuLaunchHostFunc(stream, Some(nothing), null_mut()));
        };
        let record = graph(rig);
        record_node(rig, record, rig.event(NO_TIMING));
        let both = |stream| {
            memset(stream);
            host(stream);
        };
        for (what, graph) in [
            ("nothing", graph(rig)),
            ("empty node", empty),
            ("host node", captured(rig, host)),
            ("record node", record),
            ("memset node", captured(rig, memset)),
            ("memset and host node", captured(rig, both)),
        ] {
            saw.text(format_args!("{what} {}", instantiation_flags(rig, graph)));
            must!(rig.cuGraphDestroy(graph));
        }
        must!(rig.cuMemFree_v2(address));
    }

    /// For a stream that does not capture, `cuStreamGetCaptureInfo_v2` returns status 0, and writes
    /// nothing more.
    [since(11, 3)]
    fn info_without_a_capture(rig, saw) = "success, status 0, nothing else written; NULL stream \
        success, status 0" {
        let one = info(rig, rig.stream(NON_BLOCKING));
        let others = if one.others_untouched() {
            "nothing else written"
        } else {
            "something else \
            written"
        };
        saw.text(format_args!("{}, status {}, {others}", code_text(one.code), one.status));
        let null = info(rig, NULL_STREAM);
        saw.text(format_args!("NULL stream {}, status {}", code_text(null.code), null.status));
    }

    /// For an invalidated capture, `cuStreamGetCaptureInfo_v2` returns only the status, and writes
    /// nothing more.
    [since(11, 3)]
    fn info_of_an_invalidated_capture(rig, saw) = "success, status 2, nothing else written" {
        let stream = capturing(rig, GLOBAL);
        let _ = rig.cuStreamQuery(stream);
        let one = info(rig, stream);
        let others = if one.others_untouched() {
            "nothing else written"
        } else {
            "something else \
            written"
        };
        saw.text(format_args!("{}, status {}, {others}", code_text(one.code), one.status));
        let _ = end(rig, stream);
    }

    /// The first capture of a process has the id 1, and the next one has the id 2. All streams of a
    /// capture have its id.
    [since(11, 3), alone]
    fn ids(rig, saw) = "first 1; joined 1; next 2" {
        let (stream, joined) = (capturing(rig, GLOBAL), rig.stream(NON_BLOCKING));
        let event = rig.recorded(stream);
        must!(rig.cuStreamWaitEvent(joined, event, 0));
        saw.text(format_args!("first {}", info(rig, stream).id));
        saw.text(format_args!("joined {}", info(rig, joined).id));
        let _ = fate(rig, stream);
        begin(rig, stream, GLOBAL);
        saw.text(format_args!("next {}", info(rig, stream).id));
        let _ = fate(rig, stream);
    }

    /// The first version of `cuStreamGetCaptureInfo` returns the same status and id as the second.
    [since(11, 3)]
    fn the_first_version(rig, saw) = "success; the same status and id" {
        let stream = capturing(rig, GLOBAL);
        let (mut status, mut id) = (CUstreamCaptureStatus(77), 77);
        saw.text(code_text(rig.cuStreamGetCaptureInfo(stream, &mut status, &mut id)));
        let second = info(rig, stream);
        saw.holds("the same status and id", (status.0, id) == (second.status, second.id));
        let _ = fate(rig, stream);
    }

    /// The third version of `cuStreamGetCaptureInfo` also returns edges. Its other results are the
    /// same as those of the second version. The place for the edges may be NULL.
    [since(12, 3)]
    fn the_third_version(rig, saw) = "success; without edges success; the same status, id, graph \
        and count" {
        let (stream, event) = (capturing(rig, GLOBAL), rig.event(NO_TIMING));
        must!(rig.cuEventRecordWithFlags(event, stream, EXTERNAL));
        let mut status = CUstreamCaptureStatus(77);
        let (mut id, mut graph, mut nodes, mut count, mut edges) =
            (77, null_mut(), null(), 77, null());
        let mut ask = |edges| {
            rig.cuStreamGetCaptureInfo_v3(
                stream,
                &mut status,
                &mut id,
                &mut graph,
                &mut nodes,
                edges,
                &mut count,
            )
        };
        saw.text(code_text(ask(&mut edges)));
        saw.code("without edges", ask(null_mut()));
        let second = info(rig, stream);
        let same =
            (status.0, id, graph, count) == (second.status, second.id, second.graph, second.count);
        saw.holds("the same status, id, graph and count", same);
        let _ = fate(rig, stream);
    }

    /// During a capture, `cuStreamGetCaptureInfo_v2` returns the graph of the capture. The end of
    /// the capture returns the same graph.
    [since(11, 3)]
    fn the_graph_being_captured(rig, saw) = "the same graph" {
        let stream = capturing(rig, GLOBAL);
        let returned = info(rig, stream).graph;
        let (_, graph) = end(rig, stream);
        saw.holds("the same graph", returned == graph);
        must!(rig.cuGraphDestroy(graph));
    }

    /// In a capture, an external record becomes a node with its event. A plain record becomes no
    /// node.
    [since(11, 3)]
    fn nodes_of_records(rig, saw) = "at first 0; after a plain record 0; after an external one 1; \
        it is of the event" {
        let (stream, event) = (capturing(rig, GLOBAL), rig.event(NO_TIMING));
        saw.text(format_args!("at first {}", dependencies(rig, stream).len()));
        let _ = rig.recorded(stream);
        saw.text(format_args!("after a plain record {}", dependencies(rig, stream).len()));
        must!(rig.cuEventRecordWithFlags(event, stream, EXTERNAL));
        let nodes = dependencies(rig, stream);
        saw.text(format_args!("after an external one {}", nodes.len()));
        let mut found = null_mut();
        let code = nodes.first().map(|node| rig.cuGraphEventRecordNodeGetEvent(*node, &mut found));
        saw.holds("it is of the event", code == Some(CUresult::CUDA_SUCCESS) && found == event);
        let _ = fate(rig, stream);
    }

    /// In a capture, an external wait becomes a node with its event.
    [since(11, 3)]
    fn nodes_of_waits(rig, saw) = "1; it is of the event" {
        let (stream, event) = (capturing(rig, GLOBAL), rig.event(NO_TIMING));
        must!(rig.cuStreamWaitEvent(stream, event, CU_EVENT_WAIT_EXTERNAL));
        let nodes = dependencies(rig, stream);
        saw.text(nodes.len());
        let mut found = null_mut();
        let code = nodes.first().map(|node| rig.cuGraphEventWaitNodeGetEvent(*node, &mut found));
        saw.holds("it is of the event", code == Some(CUresult::CUDA_SUCCESS) && found == event);
        let _ = fate(rig, stream);
    }

    /// The dependencies of the next work in a capture can be added to, replaced and emptied.
    [since(11, 3)]
    fn dependencies_can_be_changed(rig, saw) = "captured 1; added 2; replaced 1; emptied 0; \
        unharmed" {
        let (stream, event) = (capturing(rig, GLOBAL), rig.event(NO_TIMING));
        must!(rig.cuEventRecordWithFlags(event, stream, EXTERNAL));
        let one = dependencies(rig, stream);
        saw.text(format_args!("captured {}", one.len()));
        let mut two = record_node(rig, info(rig, stream).graph, event);
        must("add", rig.cuStreamUpdateCaptureDependencies(stream, &mut two, 1, ADD));
        saw.text(format_args!("added {}", dependencies(rig, stream).len()));
        must("set", rig.cuStreamUpdateCaptureDependencies(stream, &mut two, 1, SET));
        saw.text(format_args!("replaced {}", dependencies(rig, stream).len()));
        must("set", rig.cuStreamUpdateCaptureDependencies(stream, null_mut(), 0, SET));
        saw.text(format_args!("emptied {}", dependencies(rig, stream).len()));
        must(
            "set",
            rig.cuStreamUpdateCaptureDependencies(stream, one.clone().as_mut_ptr(), 1, SET),
        );
        must("add", rig.cuStreamUpdateCaptureDependencies(stream, &mut two, 1, ADD));
        saw.text(fate(rig, stream));
    }

    /// A change of the dependencies returns an error for a stream that does not capture, for
    /// unknown flags, and for a node of another graph. The capture is unharmed.
    [since(11, 3)]
    fn dependencies_that_make_no_sense(rig, saw) =
        "no capture CUDA_ERROR_ILLEGAL_STATE (401); unknown flags CUDA_ERROR_INVALID_VALUE (1); a \
         node of another graph CUDA_ERROR_INVALID_VALUE (1); unharmed"
    {
        let (stream, event, other) = (rig.stream(NON_BLOCKING), rig.event(NO_TIMING), graph(rig));
        let mut node = record_node(rig, other, event);
        saw.code("no capture", rig.cuStreamUpdateCaptureDependencies(stream, null_mut(), 0, SET));
        begin(rig, stream, GLOBAL);
        saw.code("unknown flags", rig.cuStreamUpdateCaptureDependencies(stream, null_mut(), 0, 7));
        saw.code(
            "a node of another graph",
            rig.cuStreamUpdateCaptureDependencies(stream, &mut node, 1, SET),
        );
        saw.text(fate(rig, stream));
        must!(rig.cuGraphDestroy(other));
    }

    /// For the second version of `cuStreamUpdateCaptureDependencies`, NULL in place of the edges
    /// means default edges.
    [since(12, 3)]
    fn dependencies_without_edges(rig, saw) = "success; 1" {
        let (stream, event) = (capturing(rig, GLOBAL), rig.event(NO_TIMING));
        let mut node = record_node(rig, info(rig, stream).graph, event);
        saw.text(code_text(rig.cuStreamUpdateCaptureDependencies_v2(stream, &mut node, null(), 1, SET)));
        saw.text(dependencies(rig, stream).len());
        let _ = fate(rig, stream);
    }

    /// A change of the dependencies returns `CUDA_ERROR_INVALID_VALUE` for edge data with an
    /// unknown type or port. The capture is unharmed.
    [since(12, 3)]
    fn edges_that_make_no_sense(rig, saw) =
        "CUDA_ERROR_INVALID_VALUE (1) from type 77, port 77 from, port 77 to; depends on 1; \
            unharmed"
    {
        let (stream, event) = (capturing(rig, GLOBAL), rig.event(NO_TIMING));
        must!(rig.cuEventRecordWithFlags(event, stream, EXTERNAL));
        let mut nodes = dependencies(rig, stream);
        let mut set = |change: fn(&mut CUgraphEdgeData)| {
            let mut edge = CUgraphEdgeData::default();
            change(&mut edge);
            rig.cuStreamUpdateCaptureDependencies_v2(stream, nodes.as_mut_ptr(), &edge, 1, SET)
        };
        saw.codes(&[
            ("type 77", set(|edge| edge.type_ = 77)),
            ("port 77 from", set(|edge| edge.from_port = 77)),
            ("port 77 to", set(|edge| edge.to_port = 77)),
        ]);
        saw.text(format_args!("depends on {}", dependencies(rig, stream).len()));
        saw.text(fate(rig, stream));
    }

    /// A capture can extend an existing graph. The end of the capture returns that graph.
    [since(12, 3)]
    fn capturing_into_a_graph(rig, saw) = "success; depends on 1; the same graph" {
        let (stream, event, into) = (rig.stream(NON_BLOCKING), rig.event(NO_TIMING), graph(rig));
        let node = record_node(rig, into, event);
        saw.text(code_text(rig.cuStreamBeginCaptureToGraph(stream, into, &node, null(), 1, RELAXED)));
        saw.text(format_args!("depends on {}", dependencies(rig, stream).len()));
        let (code, ended) = end(rig, stream);
        must("cuStreamEndCapture", code);
        saw.holds("the same graph", ended == into);
        must!(rig.cuGraphDestroy(into));
    }

    /// A capture into a graph does not begin if the graph is NULL, if a node belongs to another
    /// graph, or if the nodes are NULL although their number is not 0.
    [since(12, 3)]
    fn capturing_into_a_graph_refused(rig, saw) =
        "no graph CUDA_ERROR_INVALID_VALUE (1); a node of another graph CUDA_ERROR_INVALID_VALUE \
         (1); no nodes CUDA_ERROR_INVALID_VALUE (1); status 0"
    {
        let (stream, event, into, other) =
            (rig.stream(NON_BLOCKING), rig.event(NO_TIMING), graph(rig), graph(rig));
        let node = record_node(rig, other, event);
        saw.code(
            "no graph",
            rig.cuStreamBeginCaptureToGraph(stream, null_mut(), null(), null(), 0, GLOBAL),
        );
        saw.code(
            "a node of another graph",
            rig.cuStreamBeginCaptureToGraph(stream, into, &node, null(), 1, GLOBAL),
        );
        saw.code(
            "no nodes",
            rig.cuStreamBeginCaptureToGraph(stream, into, null(), null(), 1, GLOBAL),
        );
        saw.text(format_args!("status {}", status(rig, stream).expect("a status")));
        must!(rig.cuGraphDestroy(into));
        must!(rig.cuGraphDestroy(other));
    }

    /// Only one capture at a time can extend a graph, and the graph cannot be destroyed during the
    /// capture. Neither attempt harms the capture.
    [since(12, 3)]
    fn capturing_into_a_graph_twice(rig, saw) =
        "a second capture CUDA_ERROR_ILLEGAL_STATE (401); destroy CUDA_ERROR_ILLEGAL_STATE (401); \
            unharmed"
    {
        let (one, two, into) = (rig.stream(NON_BLOCKING), rig.stream(NON_BLOCKING), graph(rig));
        must("begin", rig.cuStreamBeginCaptureToGraph(one, into, null(), null(), 0, GLOBAL));
        saw.code(
            "a second capture",
            rig.cuStreamBeginCaptureToGraph(two, into, null(), null(), 0, GLOBAL),
        );
        saw.code("destroy", rig.cuGraphDestroy(into));
        saw.text(fate(rig, one));
    }

    /// A capture into a graph that fails destroys the graph. Calls with the graph then return
    /// `CUDA_ERROR_INVALID_VALUE`.
    [since(12, 3)]
    fn a_failed_capture_into_a_graph(rig, saw) =
        "invalidated: CUDA_ERROR_INVALID_VALUE (1) from instantiate, destroy; unjoined: \
         CUDA_ERROR_INVALID_VALUE (1) from instantiate, destroy"
    {
        let after = |into| {
            let one = rules::Saw::default();
            one.codes(&[
                ("instantiate", rig.cuGraphInstantiateWithFlags(&mut null_mut(), into, 0)),
                ("destroy", rig.cuGraphDestroy(into)),
            ]);
            one.all()
        };
        let (stream, into) = (rig.stream(NON_BLOCKING), graph(rig));
        must("begin", rig.cuStreamBeginCaptureToGraph(stream, into, null(), null(), 0, RELAXED));
        let _ = rig.cuStreamQuery(stream);
        let _ = end(rig, stream);
        saw.text(format_args!("invalidated: {}", after(into)));

        let (into, forked) = (graph(rig), rig.stream(NON_BLOCKING));
        must("begin", rig.cuStreamBeginCaptureToGraph(stream, into, null(), null(), 0, RELAXED));
        let event = rig.recorded(stream);
        must!(rig.cuStreamWaitEvent(forked, event, 0));
        must("cuLaunchHostFunc", rig.host(forked, || {}));
        let _ = end(rig, stream);
        saw.text(format_args!("unjoined: {}", after(into)));
    }

    /// Destroying the stream of a capture into a graph also destroys the graph.
    [since(12, 3)]
    fn destroying_the_stream_of_a_capture_into_a_graph(rig, saw) = "CUDA_ERROR_INVALID_VALUE (1)" {
        let (stream, into) = (rig.stream(NON_BLOCKING), graph(rig));
        must("begin", rig.cuStreamBeginCaptureToGraph(stream, into, null(), null(), 0, RELAXED));
        must!(rig.cuStreamDestroy_v2(stream));
        saw.text(code_text(rig.cuGraphDestroy(into)));
    }

    /// The driver checks the handles of graphs, executable graphs and nodes, including destroyed
    /// ones. For a wrong handle, the call returns `CUDA_ERROR_INVALID_VALUE`.
    [since(11, 4)]
    fn handles_are_checked(rig, saw) =
        "CUDA_ERROR_INVALID_VALUE (1) from graph destroyed twice, exec destroyed twice, launch of \
         a destroyed exec, record node as wait node, wait node as record node, a node of another \
         graph in exec, dependency of another graph, record node of NULL"
    {
        let (event, stream) = (rig.event(NO_TIMING), rig.stream(NON_BLOCKING));
        let (gone, first, second) = (graph(rig), graph(rig), graph(rig));
        must!(rig.cuGraphDestroy(gone));
        let (record, other) = (record_node(rig, first, event), record_node(rig, second, event));
        let (mut wait, mut node, mut found) = (null_mut(), null_mut(), null_mut());
        must!(rig.cuGraphAddEventWaitNode(&mut wait, second, null(), 0, event));
        let (exec, dead) = (instantiate(rig, first), instantiate(rig, first));
        must!(rig.cuGraphExecDestroy(dead));
        saw.codes(&[
            ("graph destroyed twice", rig.cuGraphDestroy(gone)),
            ("exec destroyed twice", rig.cuGraphExecDestroy(dead)),
            ("launch of a destroyed exec", rig.cuGraphLaunch(dead, stream)),
            ("record node as wait node", rig.cuGraphEventWaitNodeGetEvent(record, &mut found)),
            ("wait node as record node", rig.cuGraphEventRecordNodeSetEvent(wait, event)),
            (
                "a node of another graph in exec",
                rig.cuGraphExecEventRecordNodeSetEvent(exec, other, event),
            ),
            (
                "dependency of another graph",
                rig.cuGraphAddEventRecordNode(&mut node, first, &other, 1, event),
            ),
            (
                "record node of NULL",
                rig.cuGraphAddEventRecordNode(&mut node, first, null(), 0, null_mut()),
            ),
        ]);
        must!(rig.cuGraphExecDestroy(exec));
    }

    /// An executable graph can be launched after its graph was destroyed. Calls that name one of
    /// its nodes then return an error.
    [since(11, 4)]
    fn an_exec_outlives_its_graph(rig, saw) = "set CUDA_ERROR_INVALID_VALUE (1); launch success" {
        let (event, stream, source) = (rig.event(NO_TIMING), rig.stream(NON_BLOCKING), graph(rig));
        let node = record_node(rig, source, event);
        let exec = instantiate(rig, source);
        must!(rig.cuGraphDestroy(source));
        saw.code("set", rig.cuGraphExecEventRecordNodeSetEvent(exec, node, event));
        saw.code("launch", rig.cuGraphLaunch(exec, stream));
        rig.synchronize(stream);
        must!(rig.cuGraphExecDestroy(exec));
    }

    /// Instantiating a graph, and launching it in a default stream, need a current context. Other
    /// calls on graphs need none.
    [since(11, 4)]
    fn what_needs_a_context(rig, saw) =
        "CUDA_ERROR_INVALID_CONTEXT (201) from instantiate, launch in NULL; success from create, \
         add, get, set, exec set, launch, exec destroy, destroy"
    {
        let (event, stream, source) = (rig.event(NO_TIMING), rig.stream(NON_BLOCKING), graph(rig));
        let node = record_node(rig, source, event);
        let exec = instantiate(rig, source);
        elsewhere(|| {
            let (mut made, mut added, mut found) = (null_mut(), null_mut(), null_mut());
            saw.codes(&[
                ("instantiate", rig.cuGraphInstantiateWithFlags(&mut null_mut(), source, 0)),
                ("launch in NULL", rig.cuGraphLaunch(exec, NULL_STREAM)),
                ("create", rig.cuGraphCreate(&mut made, 0)),
                ("add", rig.cuGraphAddEventRecordNode(&mut added, made, null(), 0, event)),
                ("get", rig.cuGraphEventRecordNodeGetEvent(added, &mut found)),
                ("set", rig.cuGraphEventRecordNodeSetEvent(added, event)),
                ("exec set", rig.cuGraphExecEventRecordNodeSetEvent(exec, node, event)),
                ("launch", rig.cuGraphLaunch(exec, stream)),
                ("exec destroy", {
                    rig.synchronize(stream);
                    rig.cuGraphExecDestroy(exec)
                }),
                ("destroy", rig.cuGraphDestroy(made)),
            ]);
        });
    }

    /// A launch into a capturing stream invalidates the capture.
    [since(11, 4)]
    fn launching_into_a_capture(rig, saw) = "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED (900); \
        invalidated" {
        let (event, source) = (rig.event(NO_TIMING), graph(rig));
        record_node(rig, source, event);
        let exec = instantiate(rig, source);
        let stream = capturing(rig, RELAXED);
        saw.text(code_text(rig.cuGraphLaunch(exec, stream)));
        saw.text(fate(rig, stream));
        must!(rig.cuGraphExecDestroy(exec));
    }

    /// A launch does the captured work: it calls a captured host function once for each launch.
    [since(11, 4)]
    fn launching(rig, saw) = "before 0; after two launches 2" {
        let count = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
        unsafe extern "C" fn add(count: *mut std::ffi::c_void) {
            // SAFETY: the rule keeps the counter until the launches are done.
            let count = unsafe { &*count.cast::<std::sync::atomic::AtomicUsize>() };
            count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        }
        let source = captured(rig, |stream| {
            let data = std::sync::Arc::as_ptr(&count).cast_mut().cast();
            must!(rig.cuLaunchHostFunc(stream, Some(add), data));
        });
        let (exec, stream) = (instantiate(rig, source), rig.stream(NON_BLOCKING));
        let called = || count.load(std::sync::atomic::Ordering::SeqCst);
        saw.text(format_args!("before {}", called()));
        for _ in 0..2 {
            must!(rig.cuGraphLaunch(exec, stream));
        }
        rig.synchronize(stream);
        saw.text(format_args!("after two launches {}", called()));
        must!(rig.cuGraphExecDestroy(exec));
        must!(rig.cuGraphDestroy(source));
    }

    /// A launch records the events of captured external records. These events are pending until the
    /// launch is done, they have times, and other streams can wait for them.
    [since(11, 4)]
    fn a_launch_records_events(rig, saw) =
        "before: query success, elapsed CUDA_ERROR_INVALID_HANDLE (400); launched: query \
         CUDA_ERROR_NOT_READY (600), a stream that waits CUDA_ERROR_NOT_READY (600); done: query \
         success, the stream success, elapsed success"
    {
        let (first, last) = (rig.event(TIMING), rig.event(TIMING));
        let source = captured(rig, |stream| {
            must!(rig.cuEventRecordWithFlags(first, stream, EXTERNAL));
            must!(rig.cuEventRecordWithFlags(last, stream, EXTERNAL));
        });
        let (exec, stream, waiting) =
            (instantiate(rig, source), rig.stream(NON_BLOCKING), rig.stream(NON_BLOCKING));
        saw.text(format_args!(
            "before: query {}, elapsed {}",
            code_text(rig.cuEventQuery(last)),
            code_text(rig.elapsed_code(first, last))
        ));
        let latch = rig.hold(stream);
        must!(rig.cuGraphLaunch(exec, stream));
        must!(rig.cuStreamWaitEvent(waiting, last, 0));
        saw.text(format_args!(
            "launched: query {}, a stream that waits {}",
            code_text(rig.cuEventQuery(last)),
            code_text(rig.cuStreamQuery(waiting))
        ));
        latch.release();
        rig.synchronize(stream);
        rig.synchronize(waiting);
        saw.text(format_args!(
            "done: query {}, the stream {}, elapsed {}",
            code_text(rig.cuEventQuery(last)),
            code_text(rig.cuStreamQuery(waiting)),
            code_text(rig.elapsed_code(first, last))
        ));
        must!(rig.cuGraphExecDestroy(exec));
        must!(rig.cuGraphDestroy(source));
    }

    /// A graph and its executable graph can be destroyed while a launch is running. The launch
    /// still completes, and so does the record of its event.
    [since(11, 4)]
    fn destroyed_while_launched(rig, saw) =
        "exec success; graph success; event CUDA_ERROR_NOT_READY (600); then success"
    {
        let event = rig.event(NO_TIMING);
        let source = captured(rig, |stream| {
            must("record", rig.cuEventRecordWithFlags(event, stream, EXTERNAL))
        });
        let (exec, stream) = (instantiate(rig, source), rig.stream(NON_BLOCKING));
        let latch = rig.hold(stream);
        must!(rig.cuGraphLaunch(exec, stream));
        saw.code("exec", rig.cuGraphExecDestroy(exec));
        saw.code("graph", rig.cuGraphDestroy(source));
        saw.code("event", rig.cuEventQuery(event));
        latch.release();
        saw.code("then", rig.cuEventSynchronize(event));
    }

    /// An event can be destroyed after the instantiation, or while a launch is running. The
    /// launches still succeed.
    [since(11, 4)]
    fn events_destroyed_after_instantiation(rig, saw) =
        "event success; launch success; stream success; again success, success; destroyed while \
         launched success, success"
    {
        let launch =
            |exec, stream| (rig.cuGraphLaunch(exec, stream), rig.cuStreamSynchronize(stream));
        let (event, stream) = (rig.event(NO_TIMING), rig.stream(NON_BLOCKING));
        let source = captured(rig, |stream| {
            must("record", rig.cuEventRecordWithFlags(event, stream, EXTERNAL))
        });
        let exec = instantiate(rig, source);
        saw.code("event", rig.cuEventDestroy_v2(event));
        let (launched, synchronized) = launch(exec, stream);
        saw.code("launch", launched);
        saw.code("stream", synchronized);
        let (launched, synchronized) = launch(exec, stream);
        saw.text(format_args!("again {}, {}", code_text(launched), code_text(synchronized)));
        must!(rig.cuGraphExecDestroy(exec));

        let event = rig.event(NO_TIMING);
        let source = captured(rig, |stream| {
            must("record", rig.cuEventRecordWithFlags(event, stream, EXTERNAL))
        });
        let exec = instantiate(rig, source);
        let latch = rig.hold(stream);
        must!(rig.cuGraphLaunch(exec, stream));
        let destroyed = rig.cuEventDestroy_v2(event);
        latch.release();
        saw.text(format_args!(
            "destroyed while launched {}, {}",
            code_text(destroyed),
            code_text(rig.cuStreamSynchronize(stream))
        ));
        must!(rig.cuGraphExecDestroy(exec));
    }

    /// The event of a record node can be replaced in the graph, and in an executable graph for its
    /// later launches.
    [since(11, 4)]
    fn replacing_a_nodes_event(rig, saw) =
        "the graph tells the new one; launched: first not recorded, second recorded"
    {
        let (first, second, stream, source) =
            (rig.event(TIMING), rig.event(TIMING), rig.stream(NON_BLOCKING), graph(rig));
        let node = record_node(rig, source, first);
        let exec = instantiate(rig, source);
        must!(rig.cuGraphExecEventRecordNodeSetEvent(exec, node, second));
        must!(rig.cuGraphEventRecordNodeSetEvent(node, second));
        let mut returned = null_mut();
        must!(rig.cuGraphEventRecordNodeGetEvent(node, &mut returned));
        saw.holds("the graph tells the new one", returned == second);
        must!(rig.cuGraphLaunch(exec, stream));
        rig.synchronize(stream);
        // Only a recorded event has a time.
        let recorded =
            |event| if rig.elapsed(event, event).is_ok() { "recorded" } else { "not recorded" };
        saw.text(format_args!("launched: first {}, second {}", recorded(first), recorded(second)));
        must!(rig.cuGraphExecDestroy(exec));
        must!(rig.cuGraphDestroy(source));
    }

    /// The event of a wait node can be replaced in the graph, and in an executable graph for its
    /// later launches.
    [since(11, 4)]
    fn replacing_a_wait_nodes_event(rig, saw) = "the graph tells the new one; launched success" {
        let (held, stream, source) = (rig.stream(NON_BLOCKING), rig.stream(NON_BLOCKING), graph(rig));
        let latch = rig.hold(held);
        let (pending, never, mut node, mut returned) =
            (rig.recorded(held), rig.event(NO_TIMING), null_mut(), null_mut());
        must!(rig.cuGraphAddEventWaitNode(&mut node, source, null(), 0, pending));
        let exec = instantiate(rig, source);
        must!(rig.cuGraphExecEventWaitNodeSetEvent(exec, node, never));
        must!(rig.cuGraphEventWaitNodeSetEvent(node, never));
        must!(rig.cuGraphEventWaitNodeGetEvent(node, &mut returned));
        saw.holds("the graph tells the new one", returned == never);
        must!(rig.cuGraphLaunch(exec, stream));
        // The first event is still pending.
        saw.code("launched", rig.cuStreamSynchronize(stream));
        latch.release();
        rig.synchronize(held);
        must!(rig.cuGraphExecDestroy(exec));
        must!(rig.cuGraphDestroy(source));
    }

    /// A wait node holds the launch until its event is done.
    [since(11, 4)]
    fn a_wait_node_holds_the_launch(rig, saw) =
        "launched CUDA_ERROR_NOT_READY (600); then success" {
        let (held, stream, source) = (rig.stream(NON_BLOCKING), rig.stream(NON_BLOCKING), graph(rig));
        let latch = rig.hold(held);
        let (event, mut node) = (rig.recorded(held), null_mut());
        must!(rig.cuGraphAddEventWaitNode(&mut node, source, null(), 0, event));
        let exec = instantiate(rig, source);
        must!(rig.cuGraphLaunch(exec, stream));
        saw.code("launched", rig.cuStreamQuery(stream));
        latch.release();
        saw.code("then", rig.cuStreamSynchronize(stream));
        must!(rig.cuGraphExecDestroy(exec));
        must!(rig.cuGraphDestroy(source));
    }

    /// Several threads can create and launch graphs with the same events, and record these events
    /// and wait for them outside graphs, without errors.
    [since(11, 4)]
    fn threads_that_share_events(rig, saw) = "4 threads, 200 graphs, success" {
        const THREADS: usize = 4;
        const GRAPHS: usize = 50;
        let raw: &Raw = rig;
        let context = Sent::new(rig.context);
        let events: Vec<Sent> = (0..8).map(|_| Sent::new(rig.event(NO_TIMING))).collect();
        let started = std::sync::Barrier::new(THREADS);
        let work = |number: usize| -> Result<usize, CUresult> {
            let check = |code| if code == CUresult::CUDA_SUCCESS { Ok(()) } else { Err(code) };
            check(raw.cuCtxSetCurrent(context.get()))?;
            let stream = raw.stream(NON_BLOCKING);
            started.wait();
            for round in 0..GRAPHS {
                let event =
                    |at: usize| -> CUevent { events[(number + round + at) % events.len()].get() };
                let (source, mut wait) = (graph(raw), null_mut());
                let record = record_node(raw, source, event(0));
                check(raw.cuGraphAddEventWaitNode(&mut wait, source, &record, 1, event(1)))?;
                let exec = instantiate(raw, source);
                check(raw.cuGraphExecEventRecordNodeSetEvent(exec, record, event(2)))?;
                check(raw.cuEventRecord(event(3), stream))?;
                check(raw.cuStreamWaitEvent(stream, event(4), 0))?;
                check(raw.cuGraphLaunch(exec, stream))?;
                match raw.cuEventQuery(event(0)) {
                    CUresult::CUDA_ERROR_NOT_READY => {}
                    code => check(code)?,
                }
                check(raw.cuStreamSynchronize(stream))?;
                check(raw.cuGraphExecDestroy(exec))?;
                check(raw.cuGraphDestroy(source))?;
            }
            check(raw.cuStreamDestroy_v2(stream))?;
            Ok(GRAPHS)
        };
        let made: Vec<Result<usize, CUresult>> = std::thread::scope(|scope| {
            let work = &work;
            let threads: Vec<_> =
                (0..THREADS).map(|number| scope.spawn(move || work(number))).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        let count: usize = made.iter().flatten().sum();
        let failed = made.iter().find_map(|made| made.as_ref().err());
        let end = failed.map_or_else(|| "success".to_owned(), |code| code_text(*code));
        saw.text(format_args!("{THREADS} threads, {count} graphs, {end}"));
    }
}
