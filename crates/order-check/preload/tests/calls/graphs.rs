//! Graphs that are built node by node, and changed, with the stand-in in front of the driver.

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use cuda_events::sys::{CUcontext, CUevent, CUgraph, CUgraphExec, CUgraphNode};
use cuda_events_test_support::aside;
use cuda_events_test_support::planted::{Desk, builder};
use cuda_events_test_support::raw::{OK, Raw, call, legacy};
use cuda_soft_driver::abi::{
    CUDA_HOST_NODE_PARAMS, CUDA_MEMCPY3D, CUDA_MEMSET_NODE_PARAMS, CUgraphExecUpdateResult,
    CUgraphExecUpdateResultInfo, CUmemorytype,
};

use super::front::{FRONT, Program, found, judged_alike, judged_alike_at_random};

/// A graph under construction, with the nodes that were added.
struct Built<'a> {
    p: &'a Desk<'a>,
    graph: CUgraph,
    nodes: Vec<CUgraphNode>,
}

unsafe extern "C" fn nothing(_: *mut c_void) {}

fn bytes(address: u64) -> CUDA_MEMSET_NODE_PARAMS {
    CUDA_MEMSET_NODE_PARAMS {
        dst: address,
        pitch: 0,
        value: 1,
        elementSize: 1,
        width: 32,
        height: 1,
    }
}

fn line(to: u64, from: u64) -> CUDA_MEMCPY3D {
    CUDA_MEMCPY3D {
        srcMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
        srcDevice: from,
        dstMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
        dstDevice: to,
        WidthInBytes: 32,
        Height: 1,
        Depth: 1,
        ..CUDA_MEMCPY3D::default()
    }
}

impl<'a> Built<'a> {
    fn new(p: &'a Desk<'a>) -> Self {
        let mut graph = null_mut();
        p.number(unsafe { (p.raw.cuGraphCreate)(&mut graph, 0) });
        Self { p, graph, nodes: Vec::new() }
    }

    fn number(&self, code: u32) {
        assert_eq!(code, OK);
    }

    fn set(&mut self, after: &[CUgraphNode], address: u64) {
        let (mut node, raw) = (null_mut(), self.p.raw);
        let (params, context) = (bytes(address), self.p.context());
        self.number(call!(raw, cuGraphAddMemsetNode(&mut node => *mut CUgraphNode,
            self.graph => CUgraph, after.as_ptr() => *const CUgraphNode, after.len() => usize,
            &params => *const CUDA_MEMSET_NODE_PARAMS, context => CUcontext)));
        self.nodes.push(node);
    }

    fn copy(&mut self, after: &[CUgraphNode], to: u64, from: u64) {
        let (mut node, raw) = (null_mut(), self.p.raw);
        let (params, context) = (line(to, from), self.p.context());
        self.number(call!(raw, cuGraphAddMemcpyNode(&mut node => *mut CUgraphNode,
            self.graph => CUgraph, after.as_ptr() => *const CUgraphNode, after.len() => usize,
            &params => *const CUDA_MEMCPY3D, context => CUcontext)));
        self.nodes.push(node);
    }

    fn host(&mut self, after: &[CUgraphNode]) {
        let (mut node, raw) = (null_mut(), self.p.raw);
        let params = CUDA_HOST_NODE_PARAMS { fn_: Some(nothing), userData: 8 as *mut c_void };
        self.number(call!(raw, cuGraphAddHostNode(&mut node => *mut CUgraphNode,
            self.graph => CUgraph, after.as_ptr() => *const CUgraphNode, after.len() => usize,
            &params => *const CUDA_HOST_NODE_PARAMS)));
        let mut own = CUDA_HOST_NODE_PARAMS { fn_: None, userData: null_mut() };
        self.number(call!(raw, cuGraphHostNodeGetParams(node => CUgraphNode,
            &mut own => *mut CUDA_HOST_NODE_PARAMS)));
        let same = own.fn_.is_some_and(|function| {
            std::ptr::fn_addr_eq(function, nothing as unsafe extern "C" fn(*mut c_void))
        });
        assert!(same && own.userData.addr() == 8, "the node's function is the program's own");
        self.nodes.push(node);
    }

    fn empty(&mut self, after: &[CUgraphNode]) {
        let (mut node, raw) = (null_mut(), self.p.raw);
        self.number(call!(raw, cuGraphAddEmptyNode(&mut node => *mut CUgraphNode,
            self.graph => CUgraph, after.as_ptr() => *const CUgraphNode, after.len() => usize)));
        self.nodes.push(node);
    }

    fn child(&mut self, after: &[CUgraphNode], graph: CUgraph) {
        let (mut node, raw) = (null_mut(), self.p.raw);
        self.number(call!(raw, cuGraphAddChildGraphNode(&mut node => *mut CUgraphNode,
            self.graph => CUgraph, after.as_ptr() => *const CUgraphNode, after.len() => usize,
            graph => CUgraph)));
        self.nodes.push(node);
    }

    fn event(&mut self, after: &[CUgraphNode], event: usize, record: bool) {
        let (mut node, raw) = (null_mut(), self.p.raw);
        let event = self.p.e[event];
        let code = match record {
            true => call!(raw, cuGraphAddEventRecordNode(&mut node => *mut CUgraphNode,
                self.graph => CUgraph, after.as_ptr() => *const CUgraphNode,
                after.len() => usize, event => CUevent)),
            false => call!(raw, cuGraphAddEventWaitNode(&mut node => *mut CUgraphNode,
                self.graph => CUgraph, after.as_ptr() => *const CUgraphNode,
                after.len() => usize, event => CUevent)),
        };
        self.number(code);
        self.nodes.push(node);
    }

    fn edge(&mut self, from: usize, to: usize, add: bool) {
        let (raw, from, to) = (self.p.raw, [self.nodes[from]], [self.nodes[to]]);
        let code = match add {
            true => call!(raw, cuGraphAddDependencies(self.graph => CUgraph,
                from.as_ptr() => *const CUgraphNode, to.as_ptr() => *const CUgraphNode,
                1 => usize)),
            false => call!(raw, cuGraphRemoveDependencies(self.graph => CUgraph,
                from.as_ptr() => *const CUgraphNode, to.as_ptr() => *const CUgraphNode,
                1 => usize)),
        };
        self.number(code);
    }

    fn exec(&self) -> CUgraphExec {
        let mut exec = null_mut();
        let code =
            unsafe { self.p.raw.cuGraphInstantiateWithFlags.unwrap()(&mut exec, self.graph, 0) };
        self.p.number(code);
        exec
    }

    fn destroy(self) {
        self.p.number(unsafe { (self.p.raw.cuGraphDestroy)(self.graph) });
    }
}

/// Builds a graph, and launches it in stream a.
fn launched(p: &Desk<'_>, build: impl FnOnce(&mut Built<'_>)) {
    let mut built = Built::new(p);
    build(&mut built);
    let exec = built.exec();
    p.launch(exec, p.a);
    built.destroy();
}

/// A graph of one memset, captured.
fn captured<'a>(p: &'a Desk<'a>) -> Built<'a> {
    p.capture(p.c);
    p.set(p.c, p.buffer, 32);
    let (mut graph, mut node, mut count) = (null_mut(), null_mut(), 1_usize);
    p.number(unsafe { (p.raw.cuStreamEndCapture)(p.c, &mut graph) });
    let code = call!(p.raw, cuGraphGetNodes(graph => CUgraph, &mut node => *mut CUgraphNode,
        &mut count => *mut usize));
    assert_eq!((code, count), (OK, 1));
    Built { p, graph, nodes: vec![node] }
}

/// The only node of a graph does nothing until it is enabled again.
fn disabled(p: &Desk<'_>, graph: Built<'_>) {
    let exec = graph.exec();
    let enable = |is_enabled: u32| {
        let code = call!(p.raw, cuGraphNodeSetEnabled(exec => CUgraphExec,
            graph.nodes[0] => CUgraphNode, is_enabled => u32));
        assert_eq!(code, OK);
    };
    enable(0);
    p.launch(exec, p.a);
    p.set(p.b, p.buffer, 32);
    p.raw.sync(p.b);
    if !p.mended {
        enable(1);
    }
    p.launch(exec, p.a);
    p.set(p.b, p.buffer, 16);
    graph.destroy();
}

const PLANTED: [(&str, Program); 12] = [
    ("a node that is enabled again", |p| {
        let mut graph = Built::new(p);
        graph.set(&[], p.buffer);
        disabled(p, graph);
    }),
    ("a captured node that is enabled again", |p| disabled(p, captured(p))),
    ("a captured node that is set in the executable graph", |p| {
        let graph = captured(p);
        let exec = graph.exec();
        let params = bytes(p.other);
        let code = call!(p.raw, cuGraphExecMemsetNodeSetParams(exec => CUgraphExec,
            graph.nodes[0] => CUgraphNode, &params => *const CUDA_MEMSET_NODE_PARAMS,
            p.context() => CUcontext));
        assert_eq!(code, OK);
        p.launch(exec, p.a);
        p.set(p.b, if p.mended { p.buffer } else { p.other }, 16);
        graph.destroy();
    }),
    ("a child graph without nodes", |p| {
        let inner = Built::new(p);
        launched(p, |graph| {
            graph.set(&[], p.buffer);
            let first = graph.nodes.clone();
            graph.child(if p.mended { &first } else { &[] }, inner.graph);
            let after = graph.nodes.split_off(1);
            graph.set(&after, p.buffer + 16);
        });
        inner.destroy();
    }),
    ("a child graph of empty nodes within another one", |p| {
        let (mut inner, mut outer) = (Built::new(p), Built::new(p));
        inner.empty(&[]);
        outer.child(&[], inner.graph);
        launched(p, |graph| {
            graph.set(&[], p.buffer);
            let first = graph.nodes.clone();
            graph.child(if p.mended { &first } else { &[] }, outer.graph);
            let after = graph.nodes.split_off(1);
            graph.set(&after, p.buffer + 16);
        });
        inner.destroy();
        outer.destroy();
    }),
    ("a host function between two nodes", |p| {
        launched(p, |graph| {
            graph.set(&[], p.buffer);
            graph.host(&graph.nodes.clone());
            let after = graph.nodes.split_off(1);
            graph.set(if p.mended { &after } else { &[] }, p.buffer + 16);
        });
    }),
    ("an edge that is removed", |p| {
        launched(p, |graph| {
            graph.set(&[], p.buffer);
            graph.set(&graph.nodes.clone(), p.buffer + 16);
            if !p.mended {
                graph.edge(0, 1, false);
            }
        });
    }),
    ("a node and a stream", |p| {
        launched(p, |graph| graph.copy(&[], p.buffer, p.other));
        if p.mended {
            p.joined(p.a, p.b);
        }
        p.reads(p.b);
    }),
    ("a child graph", |p| {
        let mut inner = Built::new(p);
        inner.set(&[], p.buffer);
        launched(p, |graph| {
            graph.set(&[], p.buffer);
            let after = graph.nodes.clone();
            graph.child(if p.mended { &after } else { &[] }, inner.graph);
        });
        inner.destroy();
    }),
    ("a node that is set in the executable graph", |p| {
        let mut built = Built::new(p);
        built.set(&[], p.other);
        built.set(&[], p.buffer);
        let exec = built.exec();
        let at = if p.mended { p.other + 64 } else { p.buffer + 16 };
        let (params, context) = (bytes(at), p.context());
        let code = call!(p.raw, cuGraphExecMemsetNodeSetParams(exec => CUgraphExec,
            built.nodes[0] => CUgraphNode, &params => *const CUDA_MEMSET_NODE_PARAMS,
            context => CUcontext));
        assert_eq!(code, OK);
        p.launch(exec, p.a);
        built.destroy();
    }),
    ("a captured graph that is changed", |p| {
        let built = captured(p);
        let at = if p.mended { p.other } else { p.buffer + 32 };
        let params = bytes(at);
        let code = call!(p.raw, cuGraphMemsetNodeSetParams(built.nodes[0] => CUgraphNode,
            &params => *const CUDA_MEMSET_NODE_PARAMS));
        assert_eq!(code, OK);
        let exec = built.exec();
        p.launch(exec, p.a);
        p.set(p.b, p.buffer + 32, 16);
        built.destroy();
    }),
    ("an event of a node", |p| {
        p.writes(p.b);
        p.record(0, p.b);
        launched(p, |graph| {
            if p.mended {
                graph.event(&[], 0, false);
            }
            graph.set(&graph.nodes.clone(), p.buffer);
        });
    }),
];

#[test]
fn built_graphs_have_the_nodes_that_the_driver_has() {
    aside!();
    judged_alike(&PLANTED);
}

/// How a graph becomes executable.
type Made = fn(&Built<'_>) -> CUgraphExec;

fn cloned(graph: &Built<'_>) -> CUgraphExec {
    let (p, mut clone) = (graph.p, null_mut());
    let code = call!(p.raw, cuGraphClone(&mut clone => *mut CUgraph, graph.graph => CUgraph));
    assert_eq!(code, OK);
    let clone = Built { p, graph: clone, nodes: Vec::new() };
    let exec = clone.exec();
    clone.destroy();
    exec
}

fn updated(graph: &Built<'_>) -> CUgraphExec {
    let mut older = Built::new(graph.p);
    graph.nodes.iter().for_each(|_| older.set(&older.nodes.clone(), older.p.other));
    let exec = older.exec();
    update(exec, graph);
    older.destroy();
    exec
}

fn update(exec: CUgraphExec, graph: &Built<'_>) {
    let mut info = CUgraphExecUpdateResultInfo {
        result: CUgraphExecUpdateResult(77),
        ..CUgraphExecUpdateResultInfo::default()
    };
    let code = call!(graph.p.raw, cuGraphExecUpdate_v2(exec => CUgraphExec,
        graph.graph => CUgraph, &mut info => *mut CUgraphExecUpdateResultInfo));
    assert_eq!(code, OK);
}

/// A graph that has the other one as a child.
fn parent<'a>(child: &Built<'a>) -> Built<'a> {
    let mut parent = Built::new(child.p);
    parent.child(&[], child.graph);
    parent
}

/// The graph is made executable, and is gone.
fn only(graph: Built<'_>, made: Made) -> CUgraphExec {
    let exec = made(&graph);
    graph.destroy();
    exec
}

/// The driver's of the running test.
static RAW: AtomicPtr<Raw> = AtomicPtr::new(null_mut());
static ENDED: AtomicUsize = AtomicUsize::new(0);

/// The object's end reads its 64 bytes.
unsafe extern "C" fn object_ends(memory: *mut c_void) {
    unsafe { &*RAW.load(Ordering::Relaxed) }.host_access(memory, 64, false);
    ENDED.fetch_add(1, Ordering::Release);
}

/// The graph of the first node, which is a child's.
fn child(parent: &Built<'_>) -> CUgraph {
    let mut child = null_mut();
    let code = call!(parent.p.raw, cuGraphChildGraphNodeGetGraph(
        parent.nodes[0] => CUgraphNode, &mut child => *mut CUgraph));
    assert_eq!(code, OK);
    child
}

/// An object ends after the launches of what holds it, by whichever way that came to hold it, and
/// is after no others.
#[test]
fn an_object_ends_after_the_launches_of_what_holds_it() {
    /// Makes a graph executable. Somewhere on the way a graph gets the object.
    type Way = fn(&Built<'_>, &dyn Fn(CUgraph)) -> CUgraphExec;
    let ways: [(&str, Way); 10] = [
        ("the graph", |graph, retain| {
            retain(graph.graph);
            graph.exec()
        }),
        ("a clone", |graph, retain| {
            retain(graph.graph);
            cloned(graph)
        }),
        ("an update", |graph, retain| {
            retain(graph.graph);
            updated(graph)
        }),
        ("a child", |graph, retain| {
            retain(graph.graph);
            only(parent(graph), |outer| outer.exec())
        }),
        ("a child of a clone", |graph, retain| {
            retain(graph.graph);
            only(parent(graph), cloned)
        }),
        ("a child of a child", |graph, retain| {
            retain(graph.graph);
            only(parent(graph), |inner| only(parent(inner), |outer| outer.exec()))
        }),
        ("the child itself", |graph, retain| {
            let parent = parent(graph);
            retain(child(&parent));
            only(parent, |outer| outer.exec())
        }),
        ("the child of a child", |graph, retain| {
            let inner = parent(graph);
            retain(child(&inner));
            only(inner, |inner| only(parent(inner), |outer| outer.exec()))
        }),
        ("an update with a parent", |graph, retain| {
            retain(graph.graph);
            let mut other = Built::new(graph.p);
            other.set(&[], other.p.other);
            let (exec, newer) = (only(parent(&other), |outer| outer.exec()), parent(graph));
            update(exec, &newer);
            newer.destroy();
            other.destroy();
            exec
        }),
        ("an executable graph that is updated", |graph, retain| {
            retain(graph.graph);
            let exec = graph.exec();
            let mut other = Built::new(graph.p);
            other.set(&[], graph.p.pinned.addr() as u64);
            update(exec, &other);
            other.destroy();
            exec
        }),
    ];
    aside!();
    for ((way, made), held) in ways.into_iter().flat_map(|way| [true, false].map(|is| (way, is))) {
        let raw = Raw::behind(builder(0), FRONT);
        RAW.store((&raw const raw).cast_mut(), Ordering::Relaxed);
        let p = Desk::new(&raw, held);
        let (mut object, other) = (null_mut(), Built::new(&p));
        let ends: unsafe extern "C" fn(*mut c_void) = object_ends;
        let code = call!(raw, cuUserObjectCreate(&mut object => *mut *mut c_void,
            p.pinned => *mut c_void, ends => unsafe extern "C" fn(*mut c_void),
            1 => u32, 1 => u32));
        assert_eq!(code, OK);
        let retain = |graph| {
            let graph = if held { graph } else { other.graph };
            let code = call!(raw, cuGraphRetainUserObject(graph => CUgraph,
                object => *mut c_void, 1 => u32, 1 => u32));
            assert_eq!(code, OK);
        };
        let mut graph = Built::new(&p);
        graph.set(&[], p.pinned.addr() as u64);
        let exec = made(&graph, &retain);
        let before = ENDED.load(Ordering::Acquire);
        p.launch(exec, p.a);
        p.number(unsafe { (raw.cuGraphExecDestroy)(exec) });
        graph.destroy();
        other.destroy();
        while ENDED.load(Ordering::Acquire) == before {
            std::thread::yield_now();
        }
        p.end();
        let own: Vec<_> = raw.soft.order_findings().iter().map(super::front::seen).collect();
        assert_eq!((own.len(), found()), (usize::from(!held), own), "{way}, held: {held}");
    }
}

/// Since CUDA 13.1 the driver says whose node it is.
#[test]
fn a_destroyed_node_is_none_of_its_captured_graph() {
    aside!();
    let made: [Made; 3] = [|graph| graph.exec(), cloned, updated];
    let versions = [(13, 1), (13, 0)];
    for (version, made) in versions.iter().flat_map(|version| made.map(|made| (version, made))) {
        for reports in [1, 0] {
            let raw = Raw::behind(builder(0).version(version.0, version.1), FRONT);
            let p = Desk::new(&raw, false);
            p.capture(p.c);
            p.set(p.c, p.buffer, 32);
            p.set(p.c, p.other, 32);
            let (mut graph, mut nodes, mut count) = (null_mut(), [null_mut(); 2], 2_usize);
            p.number(unsafe { (raw.cuStreamEndCapture)(p.c, &mut graph) });
            let code = call!(raw, cuGraphGetNodes(graph => CUgraph,
                nodes.as_mut_ptr() => *mut CUgraphNode, &mut count => *mut usize));
            assert_eq!((code, count), (OK, 2));
            let mut built = Built { p: &p, graph, nodes: nodes.into() };
            // An executable graph that was made before has the node.
            let former = built.exec();
            if reports == 0 {
                let gone = built.nodes.remove(0);
                assert_eq!(call!(raw, cuGraphDestroyNode(gone => CUgraphNode)), OK);
            }
            p.launch(made(&built), p.a);
            p.set(p.b, p.buffer, 16);
            built.destroy();
            raw.sync(p.a);
            raw.sync(p.b);
            assert_eq!(found().len(), reports, "{version:?}");
            p.launch(former, p.a);
            p.set(p.b, p.buffer + 16, 16);
            p.end();
            // The same is reported once.
            assert_eq!(found().len(), 1 - reports, "{version:?}");
        }
    }
}

/// A graph chosen by a number, and launches of it among other calls.
fn random_graph(p: &Desk<'_>, mut number: u64) {
    let mut next = |below: u64| {
        number =
            number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (number >> 33) % below
    };
    let mut inner = Built::new(p);
    inner.set(&[], p.buffer + 48);
    if next(2) == 0 {
        inner.copy(&inner.nodes.clone(), p.other + 64, p.buffer);
    }
    let mut built = Built::new(p);
    for _ in 0..4 + next(5) {
        let mut after = built.nodes.clone();
        after.retain(|_| next(3) == 0);
        let at = 16 * next(8);
        match next(12) {
            0..4 => built.set(&after, p.buffer + at),
            4 | 5 => built.copy(&after, p.buffer + at, p.other),
            6 => built.copy(&after, p.other, p.buffer + at),
            // Host functions run when they like, so the two would not see the same order.
            7 | 8 => built.empty(&after),
            9 => built.child(&after, inner.graph),
            10 => built.event(&after, 0, true),
            _ => built.event(&after, 1, false),
        }
    }
    let last = built.nodes.len() - 1;

    for _ in 0..next(3) {
        let (from, to) = (next(last as u64) as usize, last);
        let (raw, from_node, to_node) = (p.raw, built.nodes[from], built.nodes[to]);
        let mut before = [null_mut(); 16];
        let mut count = before.len();
        let code = call!(raw, cuGraphNodeGetDependencies(to_node => CUgraphNode,
            before.as_mut_ptr() => *mut CUgraphNode, &mut count => *mut usize));
        assert_eq!(code, OK);
        let there = before[..count].contains(&from_node);
        built.edge(from, to, !there);
    }
    if next(4) == 0 {
        let gone = built.nodes.remove(next(last as u64 + 1) as usize);
        assert_eq!(call!(p.raw, cuGraphDestroyNode(gone => CUgraphNode)), OK);
    }
    let exec = built.exec();
    let streams = [p.a, p.b, p.c, legacy()];
    for _ in 0..12 {
        let (stream, at) = (streams[next(4) as usize], 16 * next(8));
        match next(8) {
            0 | 1 => _ = p.launch(exec, stream),
            2 => _ = p.set(stream, p.buffer + at, 32),
            3 => _ = p.copy(stream, p.other, p.buffer + at, 32),
            4 => _ = p.record(next(2) as usize, stream),
            5 => _ = p.wait(stream, next(2) as usize),
            6 => p.raw.sync(stream),
            _ => p.event_sync(0),
        }
    }
    built.destroy();
    inner.destroy();
}

#[test]
fn built_graphs_are_judged_alike_in_random_programs() {
    aside!();
    judged_alike_at_random(random_graph);
}
