//! Changes of graphs and executable graphs: edges, nodes, child graphs, updates.

use std::ptr::{null, null_mut};

use cuda_events::sys::more::*;
use cuda_soft_driver::abi::{
    CUDA_MEMCPY3D, CUDA_MEMSET_NODE_PARAMS, CUgraphExecUpdateResult, CUgraphExecUpdateResultInfo,
    CUmemorytype,
};

use crate::graphs::instantiate;
use crate::raw::{NON_BLOCKING, Raw, Rig, code_text, must};
use crate::rules;

pub fn graph(raw: &Raw) -> CUgraph {
    let mut graph = null_mut();
    must!(raw.cuGraphCreate(&mut graph, 0));
    graph
}

pub fn empty(rig: &Rig, graph: CUgraph, after: &[CUgraphNode]) -> CUgraphNode {
    let mut node = null_mut();
    must!(rig.cuGraphAddEmptyNode(&mut node, graph, after.as_ptr(), after.len()));
    node
}

pub fn count(rig: &Rig, graph: CUgraph) -> (usize, usize) {
    let (mut nodes, mut edges) = (0, 0);
    must!(rig.cuGraphGetNodes(graph, null_mut(), &mut nodes));
    must!(rig.cuGraphGetEdges(graph, null_mut(), null_mut(), &mut edges));
    (nodes, edges)
}

pub fn instantiation(rig: &Rig, graph: CUgraph) -> (CUresult, CUgraphExec) {
    let mut exec = null_mut();
    (rig.cuGraphInstantiateWithFlags(&mut exec, graph, 0), exec)
}

/// Memory that a graph sets and copies.
pub struct Memory<'a> {
    rig: &'a Rig,
    pub address: CUdeviceptr,
}

pub const BYTES: usize = 64;

impl<'a> Memory<'a> {
    pub fn new(rig: &'a Rig) -> Self {
        let mut address = 0;
        must!(rig.cuMemAlloc_v2(&mut address, BYTES));
        Self { rig, address }
    }

    pub fn params(&self, value: u32) -> CUDA_MEMSET_NODE_PARAMS {
        CUDA_MEMSET_NODE_PARAMS {
            dst: self.address,
            pitch: 0,
            value,
            elementSize: 1,
            width: BYTES,
            height: 1,
        }
    }

    /// Adds a node that sets all bytes.
    pub fn set(&self, graph: CUgraph, after: &[CUgraphNode], value: u32) -> CUgraphNode {
        let (mut node, params) = (null_mut(), self.params(value));
        let (first, count) = (after.as_ptr(), after.len());
        let context = self.rig.context;
        let code = self.rig.cuGraphAddMemsetNode(&mut node, graph, first, count, &params, context);
        must("cuGraphAddMemsetNode", code);
        node
    }

    /// The value of all bytes, or `several` if they differ.
    fn value(&self) -> String {
        let (mut all, stream) = ([0_u8; BYTES], self.rig.stream(NON_BLOCKING));
        let place = all.as_mut_ptr().cast();
        let code = self.rig.cuMemcpyDtoHAsync_v2(place, self.address, BYTES, stream);
        must("cuMemcpyDtoHAsync", code);
        self.rig.synchronize(stream);
        if all == [all[0]; BYTES] { all[0].to_string() } else { "several".to_owned() }
    }

    /// Launches the graph, and returns the value afterwards.
    fn launched(&self, exec: CUgraphExec) -> String {
        let stream = self.rig.stream(NON_BLOCKING);
        must("cuGraphLaunch", self.rig.cuGraphLaunch(exec, stream));
        self.rig.synchronize(stream);
        self.value()
    }
}

impl Drop for Memory<'_> {
    fn drop(&mut self) {
        let _ = self.rig.cuMemFree_v2(self.address);
    }
}

/// The result of an update: the code, the result, and whether it names nodes.
fn update(rig: &Rig, exec: CUgraphExec, graph: CUgraph) -> String {
    let nowhere = std::ptr::without_provenance_mut(77);
    let mut info = CUgraphExecUpdateResultInfo {
        result: CUgraphExecUpdateResult(77),
        errorNode: nowhere,
        errorFromNode: nowhere,
    };
    let code = rig.cuGraphExecUpdate_v2(exec, graph, &mut info);
    let there = |node: CUgraphNode| if node.is_null() { "none" } else { "one" };
    let (node, from) = (there(info.errorNode), there(info.errorFromNode));
    format!("{}, result {}, node {node}, from {from}", code_text(code), info.result.0)
}

rules! {
    /// A memset or a copy of an executable graph can be left out of launches, and nodes of other
    /// kinds than memory work and kernels cannot. A launch that was made before is as it was; a node
    /// that is left out can be changed, and an update leaves it out.
    [since(11, 6)]
    fn nodes_that_are_left_out(rig, saw) =
        "at first 1; CUDA_ERROR_INVALID_VALUE (1) from an empty node, a later node, another \
         graph's; before 3, left out 0 9; switched after the launch 1 9; changed success, 9; \
         with it 6"
    {
        let (memory, graph) = (Memory::new(rig), graph(rig));
        let set = memory.set(graph, &[], 3);
        let nothing = empty(rig, graph, &[set]);
        let (_, exec) = instantiation(rig, graph);
        let other = memory.set(crate::edits::graph(rig), &[], 4);
        let later = memory.set(graph, &[set], 5);
        let enabled = |node| {
            let mut enabled = 77;
            match rig.cuGraphNodeGetEnabled(exec, node, &mut enabled) {
                CUresult::CUDA_SUCCESS => enabled.to_string(),
                code => code_text(code),
            }
        };
        let enable = |enabled| must("enable", rig.cuGraphNodeSetEnabled(exec, set, enabled));
        saw.text(format_args!("at first {}", enabled(set)));
        saw.codes(&[
            ("an empty node", rig.cuGraphNodeSetEnabled(exec, nothing, 0)),
            ("a later node", rig.cuGraphNodeSetEnabled(exec, later, 0)),
            ("another graph's", rig.cuGraphNodeSetEnabled(exec, other, 0)),
        ]);
        let before = memory.launched(exec);
        enable(0);
        must!(rig.cuMemsetD8_v2(memory.address, 9, BYTES));
        // It returns early, and the launches' streams do not wait for it.
        must!(rig.cuCtxSynchronize());
        saw.text(format_args!("before {before}, left out {} {}", enabled(set), memory.launched(exec)));
        let stream = rig.stream(NON_BLOCKING);
        let latch = rig.hold(stream);
        must!(rig.cuGraphLaunch(exec, stream));
        enable(2);
        latch.release();
        rig.synchronize(stream);
        saw.text(format_args!("switched after the launch {} {}", enabled(set), memory.value()));
        enable(0);
        let params = memory.params(6);
        let changed = rig.cuGraphExecMemsetNodeSetParams(exec, set, &params, rig.context);
        saw.text(format_args!("changed {}, {}", code_text(changed), memory.launched(exec)));
        enable(1);
        saw.text(format_args!("with it {}", memory.launched(exec)));
    }

    /// Edges can be added and removed, each once. The calls return `CUDA_ERROR_INVALID_VALUE` for
    /// an edge from a node to itself, for an edge to a node of another graph, for adding an edge
    /// that exists, and for removing an edge that does not exist.
    fn edges(rig, saw) =
        "add a-b success; again CUDA_ERROR_INVALID_VALUE (1); a-a CUDA_ERROR_INVALID_VALUE (1); \
         to another graph CUDA_ERROR_INVALID_VALUE (1); none success; edges 1; two with one that \
         is there CUDA_ERROR_INVALID_VALUE (1); remove a-b success; again \
         CUDA_ERROR_INVALID_VALUE (1); a-c CUDA_ERROR_INVALID_VALUE (1); edges 0"
    {
        let (one, other) = (graph(rig), graph(rig));
        let [a, b, c] = [(); 3].map(|()| empty(rig, one, &[]));
        let foreign = empty(rig, other, &[]);
        let add = |from: CUgraphNode, to: CUgraphNode| {
            rig.cuGraphAddDependencies(one, &from, &to, 1)
        };
        let remove = |from: CUgraphNode, to: CUgraphNode| {
            rig.cuGraphRemoveDependencies(one, &from, &to, 1)
        };
        saw.code("add a-b", add(a, b));
        saw.code("again", add(a, b));
        saw.code("a-a", add(a, a));
        saw.code("to another graph", add(a, foreign));
        saw.code("none", rig.cuGraphAddDependencies(one, null(), null(), 0));
        saw.text(format_args!("edges {}", count(rig, one).1));
        let (from, to) = ([a, a], [c, b]);
        let code = rig.cuGraphAddDependencies(one, from.as_ptr(), to.as_ptr(), 2);
        saw.code("two with one that is there", code);
        // A driver may have added the first of them.
        let _ = remove(a, c);
        saw.code("remove a-b", remove(a, b));
        saw.code("again", remove(a, b));
        saw.code("a-c", remove(a, c));
        saw.text(format_args!("edges {}", count(rig, one).1));
        must!(rig.cuGraphDestroy(one));
        must!(rig.cuGraphDestroy(other));
    }

    /// Edges may form a circle until the graph is instantiated. A node may depend on a node that
    /// was added later, and then runs after it.
    [since(11, 4)]
    fn circles_and_later_edges(rig, saw) =
        "a circle success; instantiated CUDA_ERROR_INVALID_VALUE (1); without it success; the \
         first node comes last: 1"
    {
        let (memory, graph) = (Memory::new(rig), graph(rig));
        let first = memory.set(graph, &[], 1);
        let second = memory.set(graph, &[first], 2);
        saw.code("a circle", rig.cuGraphAddDependencies(graph, &second, &first, 1));
        saw.code("instantiated", instantiation(rig, graph).0);
        must!(rig.cuGraphRemoveDependencies(graph, &first, &second, 1));
        let (code, exec) = instantiation(rig, graph);
        saw.code("without it", code);
        saw.text(format_args!("the first node comes last: {}", memory.launched(exec)));
        must!(rig.cuGraphExecDestroy(exec));
        must!(rig.cuGraphDestroy(graph));
    }

    /// Destroying a node also removes its edges. Executable graphs that were instantiated before
    /// stay as they were.
    [since(11, 4)]
    fn destroying_a_node(rig, saw) =
        "nodes 3, edges 2; destroyed success; nodes 2, edges 0; the old launch sets 2; a new one 1"
    {
        let (memory, graph) = (Memory::new(rig), graph(rig));
        let a = memory.set(graph, &[], 1);
        let b = memory.set(graph, &[a], 2);
        empty(rig, graph, &[b]);
        let exec = instantiate(rig, graph);
        let counts = || {
            let (nodes, edges) = count(rig, graph);
            format!("nodes {nodes}, edges {edges}")
        };
        saw.text(counts());
        saw.code("destroyed", rig.cuGraphDestroyNode(b));
        saw.text(counts());
        saw.text(format_args!("the old launch sets {}", memory.launched(exec)));
        let new = instantiate(rig, graph);
        saw.text(format_args!("a new one {}", memory.launched(new)));
        for exec in [exec, new] {
            must!(rig.cuGraphExecDestroy(exec));
        }
        must!(rig.cuGraphDestroy(graph));
    }

    /// Nodes can set and copy memory. Their parameters can be read, and can be changed in the graph
    /// and in an executable graph.
    [since(11, 4)]
    fn memory_nodes(rig, saw) =
        "kinds 2, 1; launched 1; the parameters as given; set to 2 success; the old launch 1; \
         changed there to 3 success; then 3; a new one 2"
    {
        let (memory, other, graph) = (Memory::new(rig), Memory::new(rig), graph(rig));
        let set = other.set(graph, &[], 1);
        let mut copy = null_mut();
        let copied = CUDA_MEMCPY3D {
            srcMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
            srcDevice: other.address,
            dstMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
            dstDevice: memory.address,
            WidthInBytes: BYTES,
            Height: 1,
            Depth: 1,
            ..CUDA_MEMCPY3D::default()
        };
        must!(rig.cuGraphAddMemcpyNode(&mut copy, graph, &set, 1, &copied, rig.context));
        let kind = |node| {
            let mut kind = CUgraphNodeType(77);
            must!(rig.cuGraphNodeGetType(node, &mut kind));
            kind.0
        };
        saw.text(format_args!("kinds {}, {}", kind(set), kind(copy)));
        let exec = instantiate(rig, graph);
        saw.text(format_args!("launched {}", memory.launched(exec)));
        let mut read = memory.params(0);
        let code = rig.cuGraphMemsetNodeGetParams(set, &mut read);
        must("cuGraphMemsetNodeGetParams", code);
        saw.holds("the parameters as given", read == other.params(1));
        saw.code("set to 2", rig.cuGraphMemsetNodeSetParams(set, &other.params(2)));
        saw.text(format_args!("the old launch {}", memory.launched(exec)));
        let params = other.params(3);
        let code = rig.cuGraphExecMemsetNodeSetParams(exec, set, &params, rig.context);
        saw.code("changed there to 3", code);
        saw.text(format_args!("then {}", memory.launched(exec)));
        let new = instantiate(rig, graph);
        saw.text(format_args!("a new one {}", memory.launched(new)));
        for exec in [exec, new] {
            must!(rig.cuGraphExecDestroy(exec));
        }
        must!(rig.cuGraphDestroy(graph));
    }

    /// A list of nodes or edges without room is an invalid value, even of an empty graph. A memory
    /// node may be made without a context.
    [since(12, 0)]
    fn lists_without_room(rig, saw) =
        "CUDA_ERROR_INVALID_VALUE (1) from cuGraphGetNodes, cuGraphGetEdges; success from \
         cuGraphAddMemsetNode"
    {
        let (memory, graph) = (Memory::new(rig), graph(rig));
        let ([mut node, mut other], params) = ([null_mut(); 2], memory.params(1));
        saw.codes(&[
            ("cuGraphGetNodes", rig.cuGraphGetNodes(graph, &mut node, &mut 0)),
            ("cuGraphGetEdges", rig.cuGraphGetEdges(graph, &mut node, &mut other, &mut 0)),
            (
                "cuGraphAddMemsetNode",
                rig.cuGraphAddMemsetNode(&mut node, graph, null(), 0, &params, null_mut()),
            ),
        ]);
        must!(rig.cuGraphDestroy(graph));
    }

    /// `cuGraphAddMemsetNode` returns `CUDA_ERROR_INVALID_VALUE` for elements of 3 bytes, an
    /// address that is not aligned, memory that is not allocated, a size past the end of the
    /// memory, a size of 0, and NULL as the parameters.
    fn memory_nodes_refused(rig, saw) =
        "CUDA_ERROR_INVALID_VALUE (1) from element of 3, unaligned, nobody's memory, past the end, \
         no bytes, no parameters"
    {
        let (memory, graph) = (Memory::new(rig), graph(rig));
        let add = |params: *const CUDA_MEMSET_NODE_PARAMS| {
            let mut node = null_mut();
            rig.cuGraphAddMemsetNode(&mut node, graph, null(), 0, params, rig.context)
        };
        let good = memory.params(1);
        let unaligned =
            CUDA_MEMSET_NODE_PARAMS { elementSize: 4, dst: good.dst + 1, width: 4, ..good };
        saw.codes(&[
            ("element of 3", add(&CUDA_MEMSET_NODE_PARAMS { elementSize: 3, ..good })),
            ("unaligned", add(&unaligned)),
            ("nobody's memory", add(&CUDA_MEMSET_NODE_PARAMS { dst: 16, ..good })),
            ("past the end", add(&CUDA_MEMSET_NODE_PARAMS { width: 1 << 40, ..good })),
            ("no bytes", add(&CUDA_MEMSET_NODE_PARAMS { width: 0, ..good })),
            ("no parameters", add(null())),
        ]);
        must!(rig.cuGraphDestroy(graph));
    }

    /// The graph of a child node is a copy that belongs to the node. It does not change with the
    /// original graph. It can be changed itself, and it cannot be destroyed alone.
    [since(11, 4)]
    fn child_graphs(rig, saw) =
        "kind 4; a copy; launched 2; the original changed: 2; the copy changed: 4; destroying the \
         copy CUDA_ERROR_INVALID_VALUE (1); of another node CUDA_ERROR_INVALID_VALUE (1)"
    {
        let (memory, inner, outer) = (Memory::new(rig), graph(rig), graph(rig));
        let original = memory.set(inner, &[], 2);
        let before = memory.set(outer, &[], 1);
        let mut node = null_mut();
        must!(rig.cuGraphAddChildGraphNode(&mut node, outer, &before, 1, inner));
        let mut kind = CUgraphNodeType(77);
        must!(rig.cuGraphNodeGetType(node, &mut kind));
        saw.text(format_args!("kind {}", kind.0));
        let mut copy = null_mut();
        must!(rig.cuGraphChildGraphNodeGetGraph(node, &mut copy));
        saw.holds("a copy", copy != inner);
        let launched = || {
            let exec = instantiate(rig, outer);
            let value = memory.launched(exec);
            must!(rig.cuGraphExecDestroy(exec));
            value
        };
        saw.text(format_args!("launched {}", launched()));
        let code = rig.cuGraphMemsetNodeSetParams(original, &memory.params(3));
        must("cuGraphMemsetNodeSetParams", code);
        saw.text(format_args!("the original changed: {}", launched()));
        let (mut own, mut one) = (null_mut(), 1);
        must!(rig.cuGraphGetNodes(copy, &mut own, &mut one));
        must!(rig.cuGraphMemsetNodeSetParams(own, &memory.params(4)));
        saw.text(format_args!("the copy changed: {}", launched()));
        saw.code("destroying the copy", rig.cuGraphDestroy(copy));
        saw.code("of another node", rig.cuGraphChildGraphNodeGetGraph(before, &mut copy));
        must!(rig.cuGraphDestroy(outer));
        must!(rig.cuGraphDestroy(inner));
    }

    /// An update gives an executable graph the values of another graph of the same shape. A
    /// different number of nodes or different edges change the topology, and a different kind of
    /// node changes the type. Such updates fail, and leave the executable graph as it was.
    [since(12, 0)]
    fn updates(rig, saw) =
        "the same shape success, result 0, node none, from none; sets 5; another kind \
         CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE (910), result 3, node one, from none; no node \
         CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE (910), result 2, node none, from none; still sets 5"
    {
        let memory = Memory::new(rig);
        let one = |value| {
            let graph = graph(rig);
            memory.set(graph, &[], value);
            graph
        };
        let (first, same, nothing, other) = (one(1), one(5), graph(rig), graph(rig));
        empty(rig, other, &[]);
        let exec = instantiate(rig, first);
        saw.text(format_args!("the same shape {}", update(rig, exec, same)));
        saw.text(format_args!("sets {}", memory.launched(exec)));
        saw.text(format_args!("another kind {}", update(rig, exec, other)));
        saw.text(format_args!("no node {}", update(rig, exec, nothing)));
        saw.text(format_args!("still sets {}", memory.launched(exec)));
        must!(rig.cuGraphExecDestroy(exec));
        for graph in [first, same, nothing, other] {
            must!(rig.cuGraphDestroy(graph));
        }
    }

    /// An update with a graph of the same nodes and different edges fails, because the topology is
    /// different.
    [since(12, 0)]
    fn updates_with_other_edges(rig, saw) =
        "an edge more CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE (910), result 2; an edge less \
         CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE (910), result 2"
    {
        let (plain, chained) = (graph(rig), graph(rig));
        empty(rig, plain, &[]);
        empty(rig, plain, &[]);
        let first = empty(rig, chained, &[]);
        empty(rig, chained, &[first]);
        let more = ("an edge more", plain, chained);
        for (what, from, to) in [more, ("an edge less", chained, plain)] {
            let exec = instantiate(rig, from);
            // A driver may name any node.
            let answer = update(rig, exec, to);
            let answer = answer.split(", node").next().unwrap_or_default();
            saw.text(format_args!("{what} {answer}"));
            must!(rig.cuGraphExecDestroy(exec));
        }
        must!(rig.cuGraphDestroy(plain));
        must!(rig.cuGraphDestroy(chained));
    }

    /// `cuGraphNodeFindInClone` finds the node of a clone that was made from a node of the
    /// original. For a node that was added to the original later, it returns an error.
    fn nodes_of_a_clone(rig, saw) =
        "found success, another node; one added later CUDA_ERROR_INVALID_VALUE (1)"
    {
        let (one, mut clone, mut found) = (graph(rig), null_mut(), null_mut());
        let node = empty(rig, one, &[]);
        must!(rig.cuGraphClone(&mut clone, one));
        let later = empty(rig, one, &[]);
        let code = rig.cuGraphNodeFindInClone(&mut found, node, clone);
        let which = if found != node { "another node" } else { "the same node" };
        saw.text(format_args!("found {}, {which}", code_text(code)));
        let code = rig.cuGraphNodeFindInClone(&mut found, later, clone);
        saw.code("one added later", code);
        must!(rig.cuGraphDestroy(one));
        must!(rig.cuGraphDestroy(clone));
    }

    /// Graphs and executable graphs have unique ids. Nodes have ids in their graph, and the id of a
    /// destroyed node is not used again. `cuGraphNodeGetContainingGraph` returns the graph of a
    /// node.
    [since(13, 1), settings("version=13.1")]
    fn numbers(rig, saw) =
        "all different; nodes 0, 1, then 2 although one is gone; its graph"
    {
        let (one, other) = (graph(rig), graph(rig));
        let (a, b) = (empty(rig, one, &[]), empty(rig, one, &[]));
        let exec = instantiate(rig, one);
        let number = |call: &dyn Fn(*mut u32) -> CUresult| {
            let mut id = 0;
            must("a number", call(&mut id));
            id
        };
        let graphs = [
            number(&|id| rig.cuGraphGetId(one, id)),
            number(&|id| rig.cuGraphGetId(other, id)),
            number(&|id| rig.cuGraphExecGetId(exec, id)),
        ];
        let different =
            graphs[0] != graphs[1] && graphs[0] != graphs[2] && graphs[1] != graphs[2];
        saw.holds("all different", different);
        let local = |node| number(&|id| rig.cuGraphNodeGetLocalId(node, id));
        let (first, second) = (local(a), local(b));
        must!(rig.cuGraphDestroyNode(b));
        let third = local(empty(rig, one, &[]));
        saw.text(format_args!("nodes {first}, {second}, then {third} although one is gone"));
        let mut containing = null_mut();
        must("the graph", rig.cuGraphNodeGetContainingGraph(a, &mut containing));
        saw.holds("its graph", containing == one);
        must!(rig.cuGraphExecDestroy(exec));
        must!(rig.cuGraphDestroy(one));
        must!(rig.cuGraphDestroy(other));
    }
}
