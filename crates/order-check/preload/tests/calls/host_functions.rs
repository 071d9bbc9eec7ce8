//! Host functions, with the stand-in in front of a driver some of whose functions are replaced.

use std::ffi::{CStr, c_void};
use std::io::Read;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use cuda_events::sys::{CUgraph, CUgraphExec, CUgraphNode, CUstream};
use cuda_events_test_support::aside;
use cuda_events_test_support::planted::{Desk, EQ, builder};
use cuda_events_test_support::raw::{Front, INVALID_VALUE, OK, OUT_OF_MEMORY, Raw, call};
use cuda_order_check_preload as preload;
use cuda_soft_driver::SoftDriver;
use cuda_soft_driver::abi::CUDA_HOST_NODE_PARAMS;

use super::front::{FRONT, found, settings};

unsafe extern "C" fn nothing(_: *mut c_void) {}

/// Calls of the driver that waited for another thread, and those that waited in vain.
static WAITED: [AtomicUsize; 2] = [AtomicUsize::new(0), AtomicUsize::new(0)];

/// The driver's function waits for a call of another thread.
unsafe extern "C" fn waits() -> u32 {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        (FRONT.declare)(None, 8, 1, false);
        let _ = sender.send(());
    });
    let came = receiver.recv_timeout(Duration::from_secs(5)).is_ok();
    WAITED[usize::from(!came)].fetch_add(1, Ordering::Relaxed);
    INVALID_VALUE
}

fn that_waits(soft: &SoftDriver, name: &CStr) -> *mut c_void {
    match name.to_bytes() {
        b"cuStreamGetCaptureInfo_v3" | b"cuGraphNodeGetContainingGraph" => waits as *mut c_void,
        _ => soft.resolve(name),
    }
}

/// The question is asked without a lock that the other thread's call needs.
#[test]
fn the_driver_may_wait_while_it_is_asked() {
    aside!();
    let front = Front {
        install: |soft| preload::install(&|name| that_waits(soft, name), &settings()),
        resolve: |soft, name| preload::target(name, &|name| that_waits(soft, name)),
        ..FRONT
    };
    let raw = Raw::behind(builder(0).version(13, 1), front);
    let p = Desk::new(&raw, false);
    let code = call!(raw, cuLaunchHostFunc(p.a => CUstream,
        Some(nothing) => Option<unsafe extern "C" fn(*mut c_void)>,
        null_mut() => *mut c_void));
    assert_eq!(code, OK);
    raw.sync(p.a);
    let (mut graph, mut node) = (null_mut(), null_mut());
    p.number(unsafe { (raw.cuGraphCreate)(&mut graph, 0) });
    let params = CUDA_HOST_NODE_PARAMS { fn_: Some(nothing), userData: null_mut() };
    let code = call!(raw, cuGraphAddHostNode(&mut node => *mut CUgraphNode,
        graph => CUgraph, null() => *const CUgraphNode, 0 => usize,
        &params => *const CUDA_HOST_NODE_PARAMS));
    assert_eq!(code, OK);
    let code = call!(raw, cuGraphHostNodeSetParams(node => CUgraphNode,
        &params => *const CUDA_HOST_NODE_PARAMS));
    assert_eq!(code, OK);
    assert_eq!(call!(raw, cuGraphDestroyNode(node => CUgraphNode)), OK);
    p.end();
    assert_eq!(WAITED.each_ref().map(|count| count.load(Ordering::Relaxed)), [3, 0]);
}

type GetHost = unsafe extern "C" fn(CUgraphNode, *mut CUDA_HOST_NODE_PARAMS) -> u32;
type Add = unsafe extern "C" fn(
    *mut CUgraphNode,
    CUgraph,
    *const CUgraphNode,
    usize,
    *const CUDA_HOST_NODE_PARAMS,
) -> u32;

/// The driver's functions for host nodes alone.
static GET: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
static ADD: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// `CUgraphNodeParams`, with the part for host nodes.
#[repr(C)]
struct Params {
    kind: u32,
    reserved: [u32; 3],
    host: CUDA_HOST_NODE_PARAMS,
    others: [u64; 28],
}

impl Params {
    fn new() -> Self {
        let host = CUDA_HOST_NODE_PARAMS { fn_: None, userData: null_mut() };
        Self { kind: 0, reserved: [0; 3], host, others: [0; 28] }
    }
}

unsafe extern "C" fn get_params(node: CUgraphNode, params: &mut Params) -> u32 {
    params.kind = 3;
    unsafe {
        let get = std::mem::transmute::<*mut c_void, GetHost>(GET.load(Ordering::Relaxed));
        get(node, &mut params.host)
    }
}

unsafe extern "C" fn add_node(
    node: *mut CUgraphNode,
    graph: CUgraph,
    after: *const CUgraphNode,
    _: *const c_void,
    count: usize,
    params: &Params,
) -> u32 {
    assert_eq!(params.kind, 3);
    unsafe {
        let add = std::mem::transmute::<*mut c_void, Add>(ADD.load(Ordering::Relaxed));
        add(node, graph, after, count, &params.host)
    }
}

fn with_params(soft: &SoftDriver, name: &CStr) -> *mut c_void {
    match name.to_bytes() {
        b"cuGraphNodeGetParams" => get_params as *mut c_void,
        b"cuGraphAddNode_v2" => add_node as *mut c_void,
        _ => soft.resolve(name),
    }
}

/// A program may build a graph of what it is told of another one's nodes.
#[test]
fn a_node_of_any_kind_has_the_programs_own_function() {
    aside!();
    let front = Front {
        install: |soft| {
            GET.store(soft.resolve(c"cuGraphHostNodeGetParams"), Ordering::Relaxed);
            ADD.store(soft.resolve(c"cuGraphAddHostNode"), Ordering::Relaxed);
            preload::install(&|name| with_params(soft, name), &settings());
        },
        resolve: |soft, name| preload::target(name, &|name| with_params(soft, name)),
        ..FRONT
    };
    static RUNS: AtomicUsize = AtomicUsize::new(0);
    unsafe extern "C" fn counts(data: *mut c_void) {
        assert_eq!(data.addr(), 8);
        RUNS.fetch_add(1, Ordering::Relaxed);
    }
    let raw = Raw::behind(builder(0), front);
    let p = Desk::new(&raw, false);
    let (mut graphs, mut nodes) = ([null_mut(); 2], [null_mut(); 2]);
    for graph in &mut graphs {
        p.number(unsafe { (raw.cuGraphCreate)(graph, 0) });
    }
    let own = CUDA_HOST_NODE_PARAMS { fn_: Some(counts), userData: 8 as *mut c_void };
    let code = call!(raw, cuGraphAddHostNode(&mut nodes[0] => *mut CUgraphNode,
        graphs[0] => CUgraph, null() => *const CUgraphNode, 0 => usize,
        &own => *const CUDA_HOST_NODE_PARAMS));
    assert_eq!(code, OK);
    let mut params = Params::new();
    let code = call!(raw, cuGraphNodeGetParams(nodes[0] => CUgraphNode,
        &mut params => *mut Params));
    assert_eq!(code, OK);
    let function = params.host.fn_.expect("a host node") as usize;
    assert_eq!((function, params.host.userData.addr()), (counts as *const () as usize, 8));
    let code = call!(raw, cuGraphAddNode_v2(&mut nodes[1] => *mut CUgraphNode,
        graphs[1] => CUgraph, null() => *const CUgraphNode, null() => *const c_void,
        0 => usize, &params => *const Params));
    assert_eq!(code, OK);
    p.number(unsafe { (raw.cuGraphDestroy)(graphs[0]) });
    let mut exec = null_mut();
    p.number(unsafe { raw.cuGraphInstantiateWithFlags.unwrap()(&mut exec, graphs[1], 0) });
    // What such a node does is not known: its launch orders everything.
    p.writes(p.a);
    p.launch(exec, p.b);
    p.reads(p.c);
    raw.sync(p.b);
    p.end();
    assert_eq!((RUNS.load(Ordering::Relaxed), found()), (1, vec![]));
}

type Launch = unsafe extern "C" fn(CUgraphExec, CUstream) -> u32;

/// The driver's own function, and whether its next call is to fail.
static LAUNCH: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
static FAILS: AtomicBool = AtomicBool::new(false);

unsafe extern "C" fn may_fail(exec: CUgraphExec, stream: CUstream) -> u32 {
    if FAILS.swap(false, Ordering::Relaxed) {
        return OUT_OF_MEMORY;
    }
    // SAFETY: the driver's function has this type.
    unsafe {
        let launch = std::mem::transmute::<*mut c_void, Launch>(LAUNCH.load(Ordering::Relaxed));
        launch(exec, stream)
    }
}

fn with_failures(soft: &SoftDriver, name: &CStr) -> *mut c_void {
    match name.to_bytes() {
        b"cuGraphLaunch" => may_fail as *mut c_void,
        _ => soft.resolve(name),
    }
}

/// A launch, of which the driver may be out of memory.
fn launch(p: &Desk<'_>, exec: CUgraphExec, fails: bool) {
    FAILS.store(fails, Ordering::Relaxed);
    let code = call!(p.raw, cuGraphLaunch(exec => CUgraphExec, p.a => CUstream));
    assert_eq!(code, if fails { OUT_OF_MEMORY } else { OK });
}

unsafe extern "C" fn reads_result(memory: *mut c_void) {
    (FRONT.declare)(None, memory.addr() as u64, 64, false);
}

/// Each launch has a result, which a function of the same launch reads.
fn results(p: &Desk<'_>) {
    let exec = p.captured(|| {
        p.download(p.c);
        let code = call!(p.raw, cuLaunchHostFunc(p.c => CUstream,
            Some(reads_result) => Option<unsafe extern "C" fn(*mut c_void)>,
            p.pinned => *mut c_void));
        assert_eq!(code, OK);
    });
    for _ in 0..3 {
        launch(p, exec, true);
        launch(p, exec, false);
        p.raw.sync(p.a);
    }
}

/// Another stream waits for the value that comes with the result.
fn values(p: &Desk<'_>) {
    let exec = p.captured(|| {
        p.writes(p.c);
        p.signal(p.c, 1);
    });
    launch(p, exec, true);
    launch(p, exec, false);
    p.await_value(p.b, 1, EQ);
    p.reads(p.b);
}

/// Nothing uses the memory: another stream may, and the system may write the pages.
fn nothing_else(p: &Desk<'_>) {
    let exec = p.captured(|| {
        p.download(p.c);
        let write = p.raw.cuStreamWriteValue32_v2.unwrap();
        // SAFETY: a stream, and a word of pinned memory.
        p.number(unsafe { write(p.c, p.pinned.addr() as u64 + 512, 1, 0) });
    });
    launch(p, exec, true);
    // SAFETY: pinned memory that nothing uses.
    let page = unsafe { std::slice::from_raw_parts_mut(p.pinned.cast::<u8>(), 4096) };
    let zeros = std::fs::File::open("/dev/zero").expect("the system has it");
    (&zeros).read_exact(page).expect("it is not protected");
    p.writes(p.b);
}

const FAILING: Front = Front {
    install: |soft| {
        LAUNCH.store(soft.resolve(c"cuGraphLaunch"), Ordering::Relaxed);
        preload::install(&|name| with_failures(soft, name), &settings());
    },
    resolve: |soft, name| preload::target(name, &|name| with_failures(soft, name)),
    ..FRONT
};

/// The work of a launch that fails is none, and its host functions have no place before others.
#[test]
fn a_launch_that_fails_does_nothing() {
    aside!();
    let watching = Front {
        install: |soft| {
            (FAILING.install)(soft);
            preload::watch_host(None, &|_| null_mut());
        },
        ..FAILING
    };
    type Program = fn(&Desk<'_>);
    let unwatched: [Program; 2] = [results, values];
    let all = unwatched.map(|program| (FAILING, program));
    for (front, program) in all.into_iter().chain([(watching, nothing_else as Program)]) {
        let raw = Raw::behind(builder(0), front);
        let p = Desk::new(&raw, true);
        program(&p);
        p.end();
        assert_eq!(found(), []);
    }
}

/// Which execution does something, of how many there were, and with what.
static TURN: AtomicUsize = AtomicUsize::new(0);
static ACTS: AtomicUsize = AtomicUsize::new(0);
static STREAM: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
static MEMORY: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn acts(_: *mut c_void) {
    if TURN.fetch_add(1, Ordering::Relaxed) == ACTS.load(Ordering::Relaxed) {
        let stream = STREAM.load(Ordering::Relaxed).cast();
        (FRONT.declare)(Some(stream), MEMORY.load(Ordering::Relaxed) as u64, 4, true);
    }
}

/// An execution is after what its own launch is after, and not a later one's.
#[test]
fn executions_begin_in_the_order_of_their_launches() {
    aside!();
    for (acts_in, reports) in [(0, 1), (1, 1), (2, 0), (3, 0)] {
        let raw = Raw::behind(builder(0), FRONT);
        let p = Desk::new(&raw, false);
        let exec = p.captured(|| {
            let code = call!(raw, cuLaunchHostFunc(p.c => CUstream,
                Some(acts) => Option<unsafe extern "C" fn(*mut c_void)>,
                null_mut() => *mut c_void));
            assert_eq!(code, OK);
        });
        TURN.store(0, Ordering::Relaxed);
        ACTS.store(acts_in, Ordering::Relaxed);
        STREAM.store(p.b.cast(), Ordering::Relaxed);
        MEMORY.store(p.buffer as usize, Ordering::Relaxed);
        let latch = raw.latch(p.a);
        for turn in 0..4 {
            if turn == 2 {
                p.writes(p.a);
            }
            p.launch(exec, p.a);
        }
        latch.release();
        p.end();
        assert_eq!(found().len(), reports, "the execution {acts_in}");
    }
}
