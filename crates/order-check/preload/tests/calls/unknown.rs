//! What the stand-in does not model: it orders everything, and the summary names it.

use std::ffi::{CStr, c_void};
use std::os::fd::IntoRawFd as _;
use std::path::PathBuf;
use std::ptr::null_mut;

use cuda_events::sys::{
    CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC, CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS,
    CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS, CUexternalSemaphore, CUexternalSemaphoreHandleType,
    CUgraph, CUgraphExec, CUgraphNode, CUstream,
};
use cuda_events_test_support::aside;
use cuda_events_test_support::planted::{Desk, GEQ, builder, word, word_address};
use cuda_events_test_support::raw::{Front, NodeParams, OK, Raw, call};
use cuda_order_check_preload as preload;
use cuda_soft_driver::{ExternalSemaphore, SemaphoreKind, SoftDriver};

use super::front::{FRONT, found};

fn log() -> PathBuf {
    std::env::temp_dir().join(format!("order-check-unknown-{}", std::process::id()))
}

pub(super) fn install(resolve: &dyn Fn(&CStr) -> *mut c_void) {
    let settings = format!("stacks=off,possible=on,log={}", log().display());
    preload::install(resolve, &preload::Settings::from_text(&settings).expect("it is valid"));
}

/// The summary of the program before, which writes it once.
pub(super) fn summary() -> String {
    preload::summary();
    let text = std::fs::read_to_string(log()).expect("it is written");
    std::fs::remove_file(log()).expect("it was made here");
    text
}

const PLAIN: Front = Front {
    install: |soft| install(&|name| soft.resolve(name)),
    resolve: FRONT.resolve,
    declare: FRONT.declare,
};

fn semaphore(raw: &Raw) -> CUexternalSemaphore {
    let theirs = ExternalSemaphore::new(SemaphoreKind::Timeline).expect("a semaphore");
    let fd = theirs.descriptor().expect("a descriptor").into_raw_fd();
    let mut description = CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC::default();
    description.handle.fd = fd;
    description.type_ =
        CUexternalSemaphoreHandleType::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD;
    let mut semaphore = null_mut();
    let code = unsafe { raw.cuImportExternalSemaphore.unwrap()(&mut semaphore, &description) };
    assert_eq!(code.0, OK);
    semaphore
}

fn signal(raw: &Raw, stream: CUstream, semaphore: CUexternalSemaphore) {
    let mut params = CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS::default();
    params.params.fence.value = 1;
    let signal = raw.cuSignalExternalSemaphoresAsync.unwrap();
    assert_eq!(unsafe { signal(&semaphore, &params, 1, stream) }.0, OK);
}

fn wait(raw: &Raw, stream: CUstream, semaphore: CUexternalSemaphore) {
    let mut params = CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS::default();
    params.params.fence.value = 1;
    let wait = raw.cuWaitExternalSemaphoresAsync.unwrap();
    assert_eq!(unsafe { wait(&semaphore, &params, 1, stream) }.0, OK);
}

fn destroy(raw: &Raw, semaphore: CUexternalSemaphore) {
    assert_eq!(unsafe { raw.cuDestroyExternalSemaphore.unwrap()(semaphore) }.0, OK);
}

#[test]
fn external_semaphores_order_everything() {
    aside!();
    let raw = Raw::behind(builder(0), PLAIN);
    let p = Desk::new(&raw, false);
    let semaphore = semaphore(&raw);
    p.writes(p.a);
    signal(&raw, p.a, semaphore);
    wait(&raw, p.b, semaphore);
    p.reads(p.b);
    p.end();
    destroy(&raw, semaphore);
    assert_eq!(found(), []);
    let text = summary();
    for name in ["cuSignalExternalSemaphoresAsync", "cuWaitExternalSemaphoresAsync"] {
        let line = format!("each call counts as ordering everything: {name} 1 time");
        assert!(text.contains(&line), "{line}:\n{text}");
    }
}

/// The wait is submitted first, and the work before the signal comes later.
#[test]
fn a_wait_before_its_signal_is_after_the_work_before_that() {
    aside!();
    for (signals, reports) in [(true, 0), (false, 1)] {
        let raw = Raw::behind(builder(0), PLAIN);
        let p = Desk::new(&raw, false);
        let semaphore = semaphore(&raw);
        if signals {
            wait(&raw, p.b, semaphore);
        }
        p.reads(p.b);
        p.writes(p.a);
        if signals {
            signal(&raw, p.a, semaphore);
        }
        p.end();
        destroy(&raw, semaphore);
        assert_eq!(found().len(), reports);
    }
}

/// A captured call adds a node, of which only the driver has the kind.
/// Something else than a call writes the value, as a kernel may.
#[test]
fn a_wait_for_a_value_that_nobody_is_known_to_write_orders_everything() {
    aside!();
    let raw = Raw::behind(builder(0), FRONT);
    let p = Desk::new(&raw, false);
    p.writes(p.a);
    let wait = p.raw.cuStreamWaitValue32_v2.unwrap();
    p.number(unsafe { wait(p.b, word_address(&p), 1, GEQ) });
    p.reads(p.b);
    word(&p).store(1, std::sync::atomic::Ordering::Release);
    p.raw.sync(p.b);
    assert_eq!(found(), []);
    p.writes(p.a);
    p.reads(p.b);
    assert_eq!(found().len(), 1, "it orders nothing that comes later");
    p.end();
}

#[test]
fn captured_semaphores_order_everything_at_each_launch() {
    aside!();
    let raw = Raw::behind(builder(0), PLAIN);
    let p = Desk::new(&raw, false);
    let semaphore = semaphore(&raw);
    let written = p.captured(|| {
        p.writes(p.c);
        signal(&raw, p.c, semaphore);
    });
    let read = p.captured(|| {
        wait(&raw, p.c, semaphore);
        p.reads(p.c);
    });
    p.launch(written, p.a);
    p.launch(read, p.b);
    p.end();
    destroy(&raw, semaphore);
    assert_eq!(found(), []);
    let text = summary();
    let line = "each counts as ordering everything: 2 launches of graphs";
    assert!(text.contains(line), "{text}");
}

/// The kind of all nodes, as the driver answers: a conditional node.
unsafe extern "C" fn conditional(_: CUgraphNode, kind: &mut u32) -> u32 {
    *kind = 13;
    OK
}

fn with_conditions(soft: &SoftDriver, name: &CStr) -> *mut c_void {
    match name.to_bytes() {
        b"cuGraphNodeGetType" => conditional as *mut c_void,
        _ => soft.resolve(name),
    }
}

#[test]
fn conditional_nodes_order_nothing_else() {
    aside!();
    let conditions = Front {
        install: |soft| install(&|name| with_conditions(soft, name)),
        resolve: |soft, name| preload::target(name, &|name| with_conditions(soft, name)),
        declare: FRONT.declare,
    };
    for (front, is_conditional) in [(PLAIN, false), (conditions, true)] {
        let raw = Raw::behind(builder(0), front);
        let p = Desk::new(&raw, false);
        // A capture that somebody adds a node to: the driver is asked for its nodes.
        let (mut graph, mut node, mut exec) = (null_mut(), null_mut(), null_mut());
        p.capture(p.c);
        p.writes(p.c);
        unsafe { assert_eq!((raw.cuStreamEndCapture)(p.c, &mut graph).0, OK) };
        let code = call!(raw, cuGraphAddEmptyNode(&mut node => *mut CUgraphNode,
            graph => CUgraph, std::ptr::null() => *const CUgraphNode, 0 => usize));
        assert_eq!(code, OK);
        let instantiate = raw.cuGraphInstantiateWithFlags.unwrap();
        assert_eq!(unsafe { instantiate(&mut exec, graph, 0) }.0, OK);
        p.writes(p.b);
        p.launch(exec, p.a);
        p.reads(p.a);
        p.end();
        // The work after it has no order with another stream's. The work in it is not seen.
        assert_eq!(found().len(), if is_conditional { 1 } else { 2 });
        let line = "2 nodes of graphs with conditions: the work in them is not seen";
        let text = summary();
        assert_eq!(text.contains(line), is_conditional, "{text}");
    }
}

/// The value of each attribute of a kernel node.
unsafe extern "C" fn attribute(_: CUgraphNode, id: u32, value: &mut u32) -> u32 {
    *value = u32::from(id == UPDATABLE);
    OK
}

/// Each has an address of its own.
unsafe extern "C" fn done<const N: u32>() -> u32 {
    std::hint::black_box(N) - N
}

/// `CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE`.
const UPDATABLE: u32 = 13;

fn with_updates(soft: &SoftDriver, name: &CStr) -> *mut c_void {
    match name.to_bytes() {
        b"cuGraphKernelNodeGetAttribute" => attribute as *mut c_void,
        b"cuLaunchKernelEx" => done::<1> as *mut c_void,
        b"cuStreamBatchMemOp_v2" => done::<9> as *mut c_void,
        b"cuGraphAddMemAllocNode" => done::<2> as *mut c_void,
        b"cuGraphAddNode" => done::<3> as *mut c_void,
        b"cuGraphAddNode_v2" => done::<4> as *mut c_void,
        _ => soft.resolve(name),
    }
}

const UPDATES: Front = Front {
    install: |soft| install(&|name| with_updates(soft, name)),
    resolve: |soft, name| preload::target(name, &|name| with_updates(soft, name)),
    declare: FRONT.declare,
};

/// A kernel that reads 64 bytes.
pub(super) fn kernel(raw: &Raw) -> *mut c_void {
    let fill = raw.soft.kernel("fill", |_| ());
    fill.parameters(&[8]).accesses(|launch, all| all.reads(launch.parameter(0), 64));
    let (mut module, mut function) = (null_mut(), null_mut());
    let code = call!(raw, cuModuleLoadData(&mut module => *mut *mut c_void,
        c"anything".as_ptr().cast() => *const c_void));
    assert_eq!(code, OK);
    let code = call!(raw, cuModuleGetFunction(&mut function => *mut *mut c_void,
        module => *mut c_void, c"fill".as_ptr().cast() => *const c_void));
    assert_eq!(code, OK);
    function
}

/// Drivers before CUDA 12.4 do not say where the parameters of a kernel are.
#[test]
fn a_driver_that_does_not_describe_kernels_is_named() {
    aside!();
    for (minor, launches) in [(3, 1), (4, 1), (3, 0)] {
        let raw = Raw::behind(builder(0).version(12, minor), PLAIN);
        let p = Desk::new(&raw, false);
        let function = kernel(&raw);
        let parameters = [std::ptr::from_ref(&p.buffer).cast::<c_void>()];
        for _ in 0..launches {
            let code = call!(raw, cuLaunchKernel(function => *mut c_void,
                1 => u32, 1 => u32, 1 => u32, 1 => u32, 1 => u32, 1 => u32, 0 => u32,
                p.a => CUstream, parameters.as_ptr() => *const *const c_void,
                std::ptr::null() => *const c_void));
            assert_eq!(code, OK);
        }
        p.set(p.b, p.buffer, 1);
        p.end();
        let described = minor >= 4;
        assert_eq!(found().len(), usize::from(described), "12.{minor}");
        let text = summary();
        let line = "order check: the driver does not describe the parameters of kernels";
        assert_eq!(text.contains(line), launches > 0 && !described, "12.{minor}: {text}");
    }
}

/// The node's address may be another one at a launch, so none is compared.
#[test]
fn nodes_that_kernels_may_change_are_counted() {
    aside!();
    for (front, reports) in [(PLAIN, 1), (UPDATES, 0)] {
        let raw = Raw::behind(builder(0), front);
        let p = Desk::new(&raw, false);
        let (mut graph, mut node, mut exec) = (null_mut(), null_mut(), null_mut());
        assert_eq!(unsafe { (raw.cuGraphCreate)(&mut graph, 0) }.0, OK);
        let mut parameters = [std::ptr::from_ref(&p.buffer).cast_mut().cast()];
        let given = NodeParams {
            function: kernel(&raw),
            grid: [1; 3],
            block: [1; 3],
            shared: 0,
            parameters: parameters.as_mut_ptr(),
            extra: null_mut(),
        };
        let code = call!(raw, cuGraphAddKernelNode(&mut node => *mut CUgraphNode,
            graph => CUgraph, std::ptr::null() => *const CUgraphNode, 0 => usize,
            &given => *const NodeParams));
        assert_eq!(code, OK);
        let instantiate = raw.cuGraphInstantiateWithFlags.unwrap();
        assert_eq!(unsafe { instantiate(&mut exec, graph, 0) }.0, OK);
        p.launch(exec, p.a);
        p.writes(p.b);
        p.end();
        assert_eq!(found().len(), reports);
        let text = summary();
        let line = "1 node of graphs that kernels may change";
        assert_eq!(text.contains(line), reports == 0, "{text}");
    }
}

/// The driver is asked for a captured node with the attribute. (This one has none.)
#[test]
fn a_captured_node_that_kernels_may_change_is_asked_for() {
    aside!();
    for (id, reports) in [(UPDATABLE, 0), (UPDATABLE + 1, 1)] {
        let raw = Raw::behind(builder(0), UPDATES);
        let p = Desk::new(&raw, false);
        let function = kernel(&raw);
        let parameters = [std::ptr::from_ref(&p.buffer)];
        let exec = p.captured(|| {
            let attributes = [u64::from(id), 1, 0, 0, 0, 0, 0, 0, 0];
            let one = u64::from(1_u32) | 1 << 32;
            let config =
                [one, one, one, 0, p.c.addr() as u64, attributes.as_ptr().addr() as u64, 1];
            let code = call!(raw, cuLaunchKernelEx(config.as_ptr() => *const u64,
                function => *mut c_void, parameters.as_ptr() => *const *const u64,
                null_mut() => *mut c_void));
            assert_eq!(code, OK);
        });
        p.launch(exec, p.a);
        p.writes(p.b);
        p.end();
        assert_eq!(found().len(), reports, "{id}");
        summary();
    }
}

#[test]
fn graphs_that_kernels_may_launch_are_counted() {
    aside!();
    for (flags, counted) in [(0, false), (4, true)] {
        let raw = Raw::behind(builder(0), PLAIN);
        let p = Desk::new(&raw, false);
        let (mut graph, mut exec) = (null_mut(), null_mut());
        p.capture(p.c);
        p.writes(p.c);
        unsafe {
            p.number((raw.cuStreamEndCapture)(p.c, &mut graph));
            p.number(raw.cuGraphInstantiateWithFlags.unwrap()(&mut exec, graph, flags));
        }
        let mut settings = [flags, 0, 0, 0];
        let code = call!(raw, cuGraphInstantiateWithParams(&mut exec => *mut CUgraphExec,
            graph => CUgraph, settings.as_mut_ptr() => *mut u64));
        assert_eq!(code, OK);
        p.end();
        let text = summary();
        assert_eq!(text.contains("2 graphs that kernels may launch"), counted, "{text}");
    }
}

/// `CU_STREAM_MEM_OP_ATOMIC_REDUCTION` adds to a counter, which other streams or the host may await.
#[test]
fn operations_in_memory_of_an_unknown_kind_order_everything() {
    aside!();
    for (kind, reports) in [(8, 0), (6, 1)] {
        let raw = Raw::behind(builder(0), UPDATES);
        let p = Desk::new(&raw, false);
        p.writes(p.a);
        let operation = [kind, word_address(&p), 1, 0, 0, 0];
        let code = call!(raw, cuStreamBatchMemOp_v2(p.a => CUstream, 1 => u32,
            &operation => *const [u64; 6], 0 => u32));
        assert_eq!(code, OK);
        p.reads(p.b);
        p.end();
        assert_eq!(found().len(), reports);
        let line = "each counts as ordering everything: 1 batch of operations";
        let text = summary();
        assert_eq!(text.contains(line), reports == 0, "{text}");
    }
}

#[test]
fn nodes_that_allocate_are_counted() {
    aside!();
    let raw = Raw::behind(builder(0), UPDATES);
    let p = Desk::new(&raw, false);
    let none = std::ptr::null::<c_void>;
    let add = |kind: u64, of_alloc| {
        // A whole description: the hooks read what follows the kind, too.
        let mut described = [0_u64; 32];
        described[0] = kind;
        let code = match of_alloc {
            Some(true) => call!(raw, cuGraphAddMemAllocNode(null_mut() => *mut CUgraphNode,
                null_mut() => CUgraph, none() => *const c_void, 0 => usize,
                &described => *const [u64; 32])),
            Some(false) => call!(raw, cuGraphAddNode(null_mut() => *mut CUgraphNode,
                null_mut() => CUgraph, none() => *const c_void, 0 => usize,
                &described => *const [u64; 32])),
            None => call!(raw, cuGraphAddNode_v2(null_mut() => *mut CUgraphNode,
                null_mut() => CUgraph, none() => *const c_void, none() => *const c_void,
                0 => usize, &described => *const [u64; 32])),
        };
        assert_eq!(code, OK);
    };
    for kind in [10, 2] {
        add(kind, Some(false));
        add(kind, None);
    }
    add(0, Some(true));
    p.end();
    let text = summary();
    assert!(text.contains("3 nodes of graphs that allocate memory: kernels with"), "{text}");
}

/// The functions of code and green contexts, which the software driver lacks or refuses.
fn with_objects(soft: &SoftDriver, name: &CStr) -> *mut c_void {
    unsafe extern "C" fn given<const N: u64>(place: *mut u64) -> u32 {
        if !place.is_null() {
            unsafe { *place = 0x7_2000_0000 + N };
        }
        OK
    }
    unsafe extern "C" fn set() -> u32 {
        OK
    }
    match name.to_bytes() {
        b"cuLibraryGetModule" => given::<1> as *mut c_void,
        b"cuLibraryGetGlobal" => given::<2> as *mut c_void,
        b"cuGreenCtxCreate" => given::<3> as *mut c_void,
        b"cuKernelSetAttribute" => set as *mut c_void,
        _ => soft.resolve(name),
    }
}

/// What asks for an object, makes one that has no work, or sets an attribute.
#[test]
fn questions_and_settings_order_nothing() {
    const WITH_OBJECTS: Front = Front {
        install: |soft| install(&|name| with_objects(soft, name)),
        resolve: |soft, name| preload::target(name, &|name| with_objects(soft, name)),
        declare: FRONT.declare,
    };
    aside!();
    let raw = Raw::behind(builder(0), WITH_OBJECTS);
    let p = Desk::new(&raw, false);
    let mut place = 0;
    p.writes(p.a);
    let codes = [
        call!(raw, cuLibraryGetModule(&mut place => *mut u64, 7 => usize)),
        call!(raw, cuLibraryGetGlobal(&mut place => *mut u64, null_mut() => *mut usize,
            7 => usize, null_mut() => *mut c_void)),
        call!(raw, cuGreenCtxCreate(&mut place => *mut u64, 8 => usize, 0 => i32, 1 => u32)),
        call!(raw, cuKernelSetAttribute(1 => u32, 2 => i32, 9 => usize, 0 => i32)),
    ];
    assert_eq!(codes, [OK; 4]);
    p.reads(p.b);
    p.end();
    let text = summary();
    assert_eq!(found().len(), 1, "{text}");
    assert!(!text.contains("cuLibrary") && !text.contains("cuKernel"), "{text}");
    assert!(!text.contains("cuGreen"), "{text}");
}
