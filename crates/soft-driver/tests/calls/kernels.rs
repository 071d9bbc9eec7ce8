//! Kernels as closures: loading, launching, capturing, and what the order checker finds of them.

use crate::common;

use std::ffi::{CStr, CString, c_void};
use std::ptr::{null_mut, without_provenance_mut};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use common::*;
use cuda_events::sys::*;
use cuda_events_test_support::own_process;
use cuda_soft_driver::{Fault, OrderCheck, Scheduler, SoftDriver, Time};

const NON_BLOCKING: u32 = 1;
const WORDS: usize = 64;
const NOT_FOUND: u32 = 500;
const COOPERATIVE_LAUNCH_TOO_LARGE: u32 = 720;
const ILLEGAL_ADDRESS: u32 = 700;
const LAUNCH_OUT_OF_RESOURCES: u32 = 701;
const MISALIGNED_ADDRESS: u32 = 716;
const LAUNCH_FAILED: u32 = 719;

type Handle = *mut c_void;

fn load(raw: &Raw) -> Handle {
    let mut module = null_mut();
    let code = call!(raw, cuModuleLoadData(&mut module => *mut Handle,
        c"anything".as_ptr().cast() => *const c_void));
    assert_eq!(code, OK);
    module
}

fn find(raw: &Raw, module: Handle, name: &CStr) -> Result<Handle, u32> {
    let mut function = null_mut();
    let code = call!(raw, cuModuleGetFunction(&mut function => *mut Handle, module => Handle,
        name.as_ptr().cast() => *const c_void));
    if code == OK { Ok(function) } else { Err(code) }
}

/// The function of a registered kernel.
fn function(raw: &Raw, name: &CStr) -> Handle {
    find(raw, load(raw), name).unwrap()
}

fn launch_with(
    raw: &Raw,
    function: Handle,
    stream: CUstream,
    (grid, block, shared): ([u32; 3], [u32; 3], u32),
    parameters: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> u32 {
    call!(raw, cuLaunchKernel(function => Handle,
        grid[0] => u32, grid[1] => u32, grid[2] => u32,
        block[0] => u32, block[1] => u32, block[2] => u32,
        shared => u32, stream => CUstream, parameters => *mut *mut c_void,
        extra => *mut *mut c_void))
}

/// One block, with these parameters: addresses and numbers.
fn launch(raw: &Raw, function: Handle, stream: CUstream, address: u64, value: u32) -> u32 {
    let (mut address, mut value) = (address, value);
    let mut parameters =
        [std::ptr::from_mut(&mut address).cast(), std::ptr::from_mut(&mut value).cast()];
    let one = ([1; 3], [1; 3], 0);
    launch_with(raw, function, stream, one, parameters.as_mut_ptr(), null_mut())
}

/// Memory of a device.
fn memory(raw: &Raw) -> u64 {
    let mut address = 0;
    assert_eq!(unsafe { (raw.cuMemAlloc_v2)(&mut address, 4 * WORDS) }.0, OK);
    assert_eq!(unsafe { (raw.cuMemsetD32Async)(address, 1, WORDS, legacy()) }.0, OK);
    raw.sync(legacy());
    address
}

fn contents(raw: &Raw, address: u64) -> Vec<u32> {
    let mut words = vec![0_u32; WORDS];
    let to = words.as_mut_ptr().cast();
    let code = unsafe { (raw.cuMemcpyDtoHAsync_v2)(to, address, 4 * WORDS, legacy()) };
    assert_eq!(code.0, OK);
    raw.sync(legacy());
    words
}

/// Registers a kernel that adds a number to each word.
fn register_add(soft: &SoftDriver) {
    let add = soft.kernel("add", |launch| {
        let (address, value): (u64, u32) = (launch.parameter(0), launch.parameter(1));
        let mut words = launch.read::<u32>(address, WORDS);
        words.iter_mut().for_each(|word| *word += value);
        launch.write(address, &words);
    });
    add.parameters(&[8, 4]).accesses(|launch, accesses| {
        accesses.reads(launch.parameter(0), 4 * WORDS);
        accesses.writes(launch.parameter(0), 4 * WORDS);
    });
}

#[test]
fn a_kernel_runs_with_its_parameters() {
    let raw = Raw::new();
    register_add(&raw.soft);
    let (add, address) = (function(&raw, c"add"), memory(&raw));
    let stream = raw.stream(NON_BLOCKING);
    assert_eq!(launch(&raw, add, stream, address, 41), OK);
    raw.sync(stream);
    assert_eq!(contents(&raw, address), [42; WORDS]);

    // The other form: a buffer, in which each parameter is aligned to its size.
    let mut buffer = [0_u8; 12];
    buffer[..8].copy_from_slice(&address.to_ne_bytes());
    buffer[8..].copy_from_slice(&8_u32.to_ne_bytes());
    let extra = |size: &mut usize, buffer: &mut [u8]| {
        let name = |name: usize| std::ptr::without_provenance_mut(name);
        let (buffer, size) = (buffer.as_mut_ptr().cast(), std::ptr::from_mut(size).cast());
        let mut extra: [*mut c_void; 5] = [name(1), buffer, name(2), size, name(0)];
        let one = ([1; 3], [1; 3], 0);
        launch_with(&raw, add, stream, one, null_mut(), extra.as_mut_ptr())
    };
    assert_eq!(extra(&mut 12, &mut buffer), OK);
    raw.sync(stream);
    assert_eq!(contents(&raw, address), [50; WORDS]);
    // On an H200 a buffer that is too short is no error, and one that is too long is one.
    assert_eq!(extra(&mut 8, &mut buffer), OK);
    raw.sync(stream);
    assert_eq!(contents(&raw, address), [50; WORDS]);
    assert_eq!(extra(&mut 64, &mut [0; 64]), LAUNCH_OUT_OF_RESOURCES);
    // A structure of C may have padding at its end.
    let mut padded = [0; 17];
    padded[..12].copy_from_slice(&buffer);
    assert_eq!(extra(&mut 16, &mut padded), OK);
    assert_eq!(extra(&mut 17, &mut padded), LAUNCH_OUT_OF_RESOURCES);
    raw.sync(stream);
    assert_eq!(contents(&raw, address), [58; WORDS]);

    let (mut offset, mut size) = (0_usize, 0_usize);
    let mut info = |index: usize| {
        let code = call!(raw, cuFuncGetParamInfo(add => Handle, index => usize,
            &mut offset => *mut usize, &mut size => *mut usize));
        (code, offset, size)
    };
    assert_eq!([info(0), info(1)], [(OK, 0, 8), (OK, 8, 4)]);
    assert_eq!(info(2).0, INVALID_VALUE);
    assert_eq!(unsafe { (raw.cuMemFree_v2)(address) }.0, OK);
}

/// Parameters of several sizes, in an array and in a buffer, as a C compiler lays out a structure.
#[test]
fn parameters_are_aligned() {
    #[repr(C)]
    struct All {
        byte: u8,
        float: f64,
        short: u16,
        words: [u32; 3],
        last: u8,
    }
    let raw = Raw::new();
    let (send, receive) = std::sync::mpsc::channel();
    let kernel = raw.soft.kernel("all", move |launch| {
        let words = launch.parameter_bytes(3).to_vec();
        let (byte, float): (u8, f64) = (launch.parameter(0), launch.parameter(1));
        let (short, last): (u16, i8) = (launch.parameter(2), launch.parameter(4));
        send.send((byte, float, short, words, last)).unwrap();
    });
    kernel.parameters(&[1, 8, 2, 12, 1]);
    let all = function(&raw, c"all");
    let mut of = All { byte: 1, float: 2.5, short: 3, words: [4, 5, 6], last: 0xFF };
    let mut each: [*mut c_void; 5] = [
        std::ptr::from_mut(&mut of.byte).cast(),
        std::ptr::from_mut(&mut of.float).cast(),
        std::ptr::from_mut(&mut of.short).cast(),
        std::ptr::from_mut(&mut of.words).cast(),
        std::ptr::from_mut(&mut of.last).cast(),
    ];
    let one = ([1; 3], [1; 3], 0);
    let code = launch_with(&raw, all, legacy(), one, each.as_mut_ptr(), null_mut());
    assert_eq!(code, OK);
    let name = |name: usize| std::ptr::without_provenance_mut(name);
    let mut size = std::mem::size_of::<All>();
    let (buffer, bytes) =
        (std::ptr::from_mut(&mut of).cast(), std::ptr::from_mut(&mut size).cast());
    let mut extra = [name(2), bytes, name(1), buffer, name(0)];
    let code = launch_with(&raw, all, legacy(), one, null_mut(), extra.as_mut_ptr());
    assert_eq!(code, OK);
    // Both forms at once are none.
    let code = launch_with(&raw, all, legacy(), one, each.as_mut_ptr(), extra.as_mut_ptr());
    assert_eq!(code, INVALID_VALUE);
    raw.sync(legacy());
    let words: Vec<u8> = of.words.into_iter().flat_map(u32::to_ne_bytes).collect();
    for _ in 0..2 {
        assert_eq!(receive.try_recv(), Ok((1, 2.5, 3, words.clone(), -1)));
    }
    assert!(receive.try_recv().is_err());
}

#[test]
fn a_kernel_sees_its_configuration() {
    let raw = Raw::new();
    let (send, receive) = std::sync::mpsc::channel();
    raw.soft.kernel("_Z4sizev", move |launch| {
        send.send((launch.grid(), launch.block(), launch.shared_bytes())).unwrap();
    });
    let size = function(&raw, c"_Z4sizev");
    let run = |grid, block, shared| {
        launch_with(&raw, size, legacy(), (grid, block, shared), null_mut(), null_mut())
    };
    assert_eq!(run([1, 2, 3], [32, 4, 2], 100), OK);
    raw.sync(legacy());
    assert_eq!(receive.try_recv(), Ok(([1, 2, 3], [32, 4, 2], 100)));
    // No parameters, in the form of an array that ends at once.
    let mut none: [*mut c_void; 1] = [null_mut()];
    let one = ([1; 3], [1; 3], 0);
    assert_eq!(launch_with(&raw, size, legacy(), one, null_mut(), none.as_mut_ptr()), OK);
    raw.sync(legacy());
    assert_eq!(receive.try_recv(), Ok(([1; 3], [1; 3], 0)));
    for (grid, block, shared) in [
        ([0, 1, 1], [1; 3], 0),
        ([1, 65_536, 1], [1; 3], 0),
        ([1; 3], [0, 1, 1], 0),
        ([1; 3], [1025, 1, 1], 0),
        ([1; 3], [33, 32, 1], 0),
        ([1; 3], [1, 1, 65], 0),
        // Their products do not fit into 64 and 32 bits.
        ([1; 3], [u32::MAX; 3], 0),
        ([1; 3], [1 << 11, 1 << 11, 1 << 11], 0),
        ([1 << 31, 1, 1], [1; 3], 0),
        ([1, 1, 65_536], [1; 3], 0),
        ([1; 3], [1; 3], 49_153),
    ] {
        assert_eq!(run(grid, block, shared), INVALID_VALUE, "{grid:?} {block:?} {shared}");
    }
    // A program that raises the limit has more.
    let set = |value| call!(raw, cuFuncSetAttribute(size => Handle, 8 => u32, value => i32));
    assert_eq!((set(60_000), set(1 << 20)), (OK, INVALID_VALUE));
    assert_eq!(run([1; 3], [1; 3], 49_153), OK);
    raw.sync(legacy());
    assert_eq!(receive.try_recv(), Ok(([1; 3], [1; 3], 49_153)));
}

/// Without a kernel only images are loaded; with one, an unknown name is not found, and the driver's
/// log lists what there is.
#[test]
fn names_that_are_not_registered() {
    let raw = Raw::new();
    let mut module = null_mut();
    let image = c"anything".as_ptr().cast();
    let code = call!(raw, cuModuleLoadData(&mut module => *mut Handle, image => *const c_void));
    let reads_images = cfg!(all(feature = "images", target_os = "linux"));
    let refused = if reads_images { CUresult::CUDA_ERROR_INVALID_IMAGE.0 } else { NOT_SUPPORTED };
    assert_eq!(code, refused);
    register_add(&raw.soft);
    raw.soft.kernel("scale", |_| ());
    let module = load(&raw);
    assert_eq!(find(&raw, module, c"ad"), Err(NOT_FOUND));
    let log = || {
        let (mut text, mut size) = (vec![0_u8; 4096], 4096_usize);
        let code = call!(raw, cuLogsDumpToMemory(null_mut() => *mut u32,
            text.as_mut_ptr() => *mut u8, &mut size => *mut usize, 0 => u32));
        assert_eq!(code, OK);
        String::from_utf8_lossy(&text[..size]).into_owned()
    };
    let text = log();
    assert!(text.contains("no kernel \"ad\" is registered"), "{text}");
    assert!(text.contains("\"add\", \"scale\""), "{text}");
    assert_eq!(find(&raw, module, c"add"), find(&raw, module, c"add"));

    // What is not there.
    let missing = c"/nowhere/kernels.cubin".as_ptr().cast();
    let mut other = null_mut();
    let code = call!(raw, cuModuleLoad(&mut other => *mut Handle, missing => *const c_void));
    assert_eq!(code, CUresult::CUDA_ERROR_FILE_NOT_FOUND.0);
    let code = call!(raw, cuModuleLoadData(&mut other => *mut Handle, null_mut() => Handle));
    assert_eq!(code, INVALID_VALUE);
    let add = find(&raw, module, c"add").unwrap();
    assert_eq!(call!(raw, cuModuleUnload(module => Handle)), OK);
    assert_eq!(launch(&raw, add, legacy(), 0, 0), INVALID_HANDLE);
    assert_eq!(call!(raw, cuModuleUnload(module => Handle)), INVALID_HANDLE);
}

/// As an H200 answered.
#[test]
fn modules_end_with_their_context() {
    let raw = Raw::new();
    register_add(&raw.soft);
    raw.soft.kernel("fails", |_| panic!("as planned"));
    let unload = |module: Handle| call!(raw, cuModuleUnload(module => Handle));

    let mut context = null_mut();
    assert_eq!(unsafe { (raw.cuCtxCreate_v2)(&mut context, 0, 0) }.0, OK);
    let (module, stream) = (load(&raw), raw.stream(NON_BLOCKING));
    let (add, fails) = (find(&raw, module, c"add").unwrap(), find(&raw, module, c"fails").unwrap());

    // What would wait ends a capture.
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL;
    assert_eq!(unsafe { (raw.cuStreamBeginCapture_v2)(stream, mode) }.0, OK);
    load(&raw);
    assert_eq!(unload(module), CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED.0);
    let ended = unsafe { (raw.cuStreamEndCapture)(stream, &mut null_mut()) };
    assert_eq!(ended, CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);

    let one = ([1; 3], [1; 3], 0);
    assert_eq!(launch_with(&raw, fails, stream, one, null_mut(), null_mut()), OK);
    assert_eq!(unsafe { (raw.cuStreamSynchronize)(stream) }.0, LAUNCH_FAILED);
    assert_eq!(unload(module), LAUNCH_FAILED);
    assert_eq!(find(&raw, module, c"add"), Err(LAUNCH_FAILED));
    assert_eq!(launch(&raw, add, stream, 0, 0), LAUNCH_FAILED);

    let _ = unsafe { (raw.cuCtxDestroy_v2)(context) };
    assert_eq!(find(&raw, module, c"add"), Err(INVALID_HANDLE));
    assert_eq!(launch(&raw, add, legacy(), 0, 0), INVALID_HANDLE);
}

#[test]
fn libraries_are_of_every_context() {
    let raw = Raw::with(SoftDriver::builder().devices(2));
    register_add(&raw.soft);
    let (mut library, mut kernel) = (null_mut(), null_mut());
    let nothing = null_mut::<c_void>;
    let code = call!(raw, cuLibraryLoadData(&mut library => *mut Handle,
        c"anything".as_ptr().cast() => *const c_void, nothing() => Handle, nothing() => Handle,
        0 => u32, nothing() => Handle, nothing() => Handle, 0 => u32));
    assert_eq!(code, OK);
    let code = call!(raw, cuLibraryGetKernel(&mut kernel => *mut Handle, library => Handle,
        c"add".as_ptr() => *const std::ffi::c_char));
    assert_eq!(code, OK);
    let (mut module, mut own) = (null_mut(), null_mut());
    let code = call!(raw, cuLibraryGetModule(&mut module => *mut Handle, library => Handle));
    assert_eq!((code, find(&raw, module, c"add").is_ok()), (OK, true));
    let code = call!(raw, cuKernelGetFunction(&mut own => *mut Handle, kernel => Handle));
    assert_eq!(code, OK);
    let mut name = std::ptr::null();
    let code = call!(raw, cuKernelGetName(&mut name => *mut *const std::ffi::c_char,
        kernel => Handle));
    assert_eq!((code, unsafe { CStr::from_ptr(name) }), (OK, c"add"));

    let of_first = function(&raw, c"add");
    let (address, first) = (memory(&raw), raw.stream(NON_BLOCKING));
    assert_eq!(launch(&raw, own, first, address, 1), OK);
    raw.sync(first);
    let other = raw.retain(1);
    raw.set_current(other);
    let (there, second) = (memory(&raw), raw.stream(NON_BLOCKING));
    assert_eq!(launch(&raw, kernel, second, there, 2), OK);
    raw.sync(second);
    assert_eq!(contents(&raw, there), [3; WORDS]);
    // A module's function is one of its context alone.
    assert_eq!(launch(&raw, of_first, second, there, 2), INVALID_HANDLE);
    assert_eq!(call!(raw, cuLibraryUnload(library => Handle)), OK);
    assert_eq!(launch(&raw, kernel, second, there, 2), INVALID_HANDLE);
}

/// Two streams, of which the second one waits for the first one or does not.
#[test]
fn the_order_checker_sees_a_kernel() {
    for ordered in [true, false] {
        let raw = Raw::planting(SoftDriver::builder().check_order(OrderCheck::Report));
        register_add(&raw.soft);
        let (add, address) = (function(&raw, c"add"), memory(&raw));
        let (one, two) = (raw.stream(NON_BLOCKING), raw.stream(NON_BLOCKING));
        assert_eq!(launch(&raw, add, one, address, 1), OK);
        let event = raw.event(2);
        raw.record(event, one);
        if ordered {
            raw.wait(two, event);
        }
        let last = address + 4 * (WORDS as u64 - 1);
        assert_eq!(unsafe { (raw.cuMemsetD32Async)(last, 7, 1, two) }.0, OK);
        raw.sync(two);
        let findings = raw.soft.order_findings();
        assert_eq!(findings.len(), usize::from(!ordered), "{findings:?}");
        for finding in &findings {
            let text = finding.to_string();
            assert!(text.contains("(cuLaunchKernel)") && text.contains("4 bytes"), "{text}");
        }
        // Bytes that it does not access are nobody's concern.
        let beside = memory(&raw);
        assert_eq!(launch(&raw, add, one, address, 1), OK);
        assert_eq!(unsafe { (raw.cuMemsetD32Async)(beside, 7, 1, two) }.0, OK);
        raw.sync(one);
        assert_eq!(raw.soft.order_findings().len(), findings.len());
    }
}

/// A captured launch is a kernel node with the parameters of its capture.
#[test]
fn a_launch_is_captured() {
    let raw = Raw::planting(SoftDriver::builder().check_order(OrderCheck::Report));
    register_add(&raw.soft);
    let (add, address) = (function(&raw, c"add"), memory(&raw));
    let (stream, other) = (raw.stream(NON_BLOCKING), raw.stream(NON_BLOCKING));
    let (mut graph, mut exec) = (null_mut(), null_mut());
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL;
    assert_eq!(unsafe { (raw.cuStreamBeginCapture_v2)(stream, mode) }.0, OK);
    assert_eq!(launch(&raw, add, stream, address, 10), OK);
    assert_eq!(launch(&raw, add, stream, address, 100), OK);
    assert_eq!(unsafe { (raw.cuStreamEndCapture)(stream, &mut graph) }.0, OK);
    assert_eq!(contents(&raw, address), [1; WORDS], "a capture runs nothing");

    let (mut nodes, mut count, mut kind) = ([null_mut(); 2], 2_usize, 77_u32);
    let code = call!(raw, cuGraphGetNodes(graph => CUgraph, nodes.as_mut_ptr() => *mut CUgraphNode,
        &mut count => *mut usize));
    assert_eq!((code, count), (OK, 2));
    let code = call!(raw, cuGraphNodeGetType(nodes[0] => CUgraphNode, &mut kind => *mut u32));
    assert_eq!((code, kind), (OK, 0), "a kernel node");

    let code = call!(raw, cuGraphInstantiateWithFlags(&mut exec => *mut CUgraphExec,
        graph => CUgraph, 0 => u64));
    assert_eq!(code, OK);
    for _ in 0..2 {
        assert_eq!(call!(raw, cuGraphLaunch(exec => CUgraphExec, stream => CUstream)), OK);
    }
    raw.sync(stream);
    assert_eq!(contents(&raw, address), [221; WORDS]);
    assert_eq!(raw.soft.order_findings().len(), 0);
    // The checker sees the nodes of a launch.
    assert_eq!(call!(raw, cuGraphLaunch(exec => CUgraphExec, stream => CUstream)), OK);
    assert_eq!(unsafe { (raw.cuMemsetD32Async)(address, 7, 1, other) }.0, OK);
    raw.sync(other);
    assert_eq!(raw.soft.order_findings().len(), 1);
    raw.sync(stream);
}

#[test]
fn kernel_nodes() {
    let raw = Raw::with(SoftDriver::builder().check_order(OrderCheck::Report));
    register_add(&raw.soft);
    let (add, address, stream) = (function(&raw, c"add"), memory(&raw), raw.stream(NON_BLOCKING));
    let (mut graph, mut exec, mut node) = (null_mut(), null_mut(), null_mut());
    assert_eq!(call!(raw, cuGraphCreate(&mut graph => *mut CUgraph, 0 => u32)), OK);
    let (mut at, mut value) = (address, 10_u32);
    let mut parameters =
        [std::ptr::from_mut(&mut at).cast(), std::ptr::from_mut(&mut value).cast()];
    let given = NodeParams {
        function: add,
        grid: [1; 3],
        block: [7, 1, 1],
        shared: 0,
        parameters: parameters.as_mut_ptr(),
        extra: null_mut(),
    };
    let mut add_node = |given: &NodeParams| {
        call!(raw, cuGraphAddKernelNode(&mut node => *mut CUgraphNode, graph => CUgraph,
            null_mut() => Handle, 0 => usize, given => *const NodeParams))
    };
    assert_eq!(add_node(&NodeParams { parameters: null_mut(), ..given }), INVALID_VALUE);
    assert_eq!(add_node(&given), OK);
    // The node has a copy.
    value = 100;
    let mut shown = NodeParams { function: null_mut(), block: [0; 3], ..given };
    let code = call!(raw, cuGraphKernelNodeGetParams(node => CUgraphNode,
        &mut shown => *mut NodeParams));
    assert_eq!((code, shown.function, shown.block), (OK, add, [7, 1, 1]));
    let kept = unsafe { *shown.parameters.add(1).read().cast::<u32>() };
    assert_eq!((kept, value), (10, 100));

    let instantiate = |exec: &mut CUgraphExec| {
        call!(raw, cuGraphInstantiateWithFlags(exec => *mut CUgraphExec, graph => CUgraph,
            0 => u64))
    };
    let run = |exec: CUgraphExec| {
        assert_eq!(call!(raw, cuGraphLaunch(exec => CUgraphExec, stream => CUstream)), OK);
        raw.sync(stream);
        contents(&raw, address)[0]
    };
    assert_eq!(instantiate(&mut exec), OK);
    assert_eq!(run(exec), 11);
    // An executable graph is changed, and its graph is not.
    let code = call!(raw, cuGraphExecKernelNodeSetParams(exec => CUgraphExec, node => CUgraphNode,
        &given => *const NodeParams));
    assert_eq!((code, run(exec)), (OK, 111));
    assert_eq!(instantiate(&mut exec), OK);
    assert_eq!(run(exec), 121);
    let code = call!(raw, cuGraphKernelNodeSetParams(node => CUgraphNode,
        &given => *const NodeParams));
    assert_eq!((code, run(exec)), (OK, 131));
    assert_eq!(instantiate(&mut exec), OK);
    assert_eq!(run(exec), 231);
    assert_eq!(raw.soft.order_findings().len(), 0);
}

/// A module's load waits for the work of the device, and a library's where all code is loaded at
/// once.
#[test]
fn what_loads_code_waits() {
    own_process!();
    let raw = Raw::with(SoftDriver::builder().time(Time::Virtual));
    raw.soft.kernel("kernel", |_| ());
    let stream = raw.stream(NON_BLOCKING);
    for (mode, module, library) in [("LAZY", true, false), ("EAGER", true, true)] {
        // SAFETY: no other thread of this process looks at its environment.
        unsafe { std::env::set_var("CUDA_MODULE_LOADING", mode) };
        let waits = |load: &dyn Fn(&mut Handle) -> u32| {
            raw.keep_busy(stream, Duration::from_secs(3600));
            assert_eq!(load(&mut null_mut()), OK, "{mode}");
            let waited = !raw.busy(stream);
            raw.sync(stream);
            waited
        };
        let image = || c"anything".as_ptr().cast();
        let waited = waits(
            &|out| call!(raw, cuModuleLoadData(out => *mut Handle, image() => *const c_void)),
        );
        assert_eq!(waited, module, "{mode}: a module");
        let none = null_mut::<c_void>;
        let waited = waits(&|out| {
            call!(raw, cuLibraryLoadData(out => *mut Handle, image() => *const c_void,
                none() => *mut c_void, none() => *mut c_void, 0 => u32,
                none() => *mut c_void, none() => *mut c_void, 0 => u32))
        });
        assert_eq!(waited, library, "{mode}: a library");
    }
}

/// What a wrong kernel does to its context.
#[test]
fn a_kernel_that_fails() {
    for (name, code) in [
        (c"panics", LAUNCH_FAILED),
        (c"outside", ILLEGAL_ADDRESS),
        (c"beyond", ILLEGAL_ADDRESS),
        (c"misaligned", MISALIGNED_ADDRESS),
        (c"no parameter", LAUNCH_FAILED),
        (c"a parameter of another size", LAUNCH_FAILED),
    ] {
        let raw = Raw::new();
        let kernels = [
            raw.soft.kernel("panics", |_| panic!("as planned")),
            raw.soft.kernel("outside", |launch| {
                launch.read::<u8>(16, 1);
            }),
            raw.soft.kernel("beyond", |launch| {
                launch.write(launch.parameter(0), &[0_u32; WORDS + 1]);
            }),
            raw.soft.kernel("misaligned", |launch| {
                launch.read::<u32>(launch.parameter::<u64>(0) + 2, 1);
            }),
            raw.soft.kernel("no parameter", |launch| {
                launch.parameter_bytes(2);
            }),
            raw.soft.kernel("a parameter of another size", |launch| {
                launch.parameter::<u32>(0);
            }),
        ];
        for kernel in kernels {
            kernel.parameters(&[8, 4]);
        }
        let (address, function) = (memory(&raw), function(&raw, name));
        assert_eq!(launch(&raw, function, legacy(), address, 1), OK);
        let synchronized = unsafe { (raw.cuStreamSynchronize)(legacy()) }.0;
        assert_eq!(synchronized, code, "{name:?}");
        assert_eq!(launch(&raw, function, legacy(), address, 1), code, "{name:?}");
    }
}

#[test]
fn parameters_that_are_missing() {
    let raw = Raw::new();
    register_add(&raw.soft);
    raw.soft.kernel("declares", |_| ()).parameters(&[8, 4]).accesses(|_, _| panic!("as planned"));
    let add = function(&raw, c"add");
    let one = ([1; 3], [1; 3], 0);
    assert_eq!(launch_with(&raw, add, legacy(), one, null_mut(), null_mut()), INVALID_VALUE);
    let mut number = 0_u64;
    let mut parameters = [std::ptr::from_mut(&mut number).cast(), null_mut()];
    let code = launch_with(&raw, add, legacy(), one, parameters.as_mut_ptr(), null_mut());
    assert_eq!(code, INVALID_VALUE);
    // A declaration that panics fails the launch, and nothing else.
    let declares = function(&raw, c"declares");
    assert_eq!(launch(&raw, declares, legacy(), 0, 0), LAUNCH_FAILED);
    raw.sync(legacy());
}

/// Kernels of two streams that wait for each other run at the same time, and a kernel that waits
/// for the host does not hold up copies.
#[test]
fn kernels_run_beside_each_other() {
    let raw = Raw::new();
    let arrived = Arc::new(AtomicU32::new(0));
    let meet = arrived.clone();
    raw.soft.kernel("meet", move |_| {
        meet.fetch_add(1, Ordering::SeqCst);
        while meet.load(Ordering::SeqCst) < 5 {
            std::thread::yield_now();
        }
    });
    let (meet, address) = (function(&raw, c"meet"), memory(&raw));
    let streams = [(); 4].map(|()| raw.stream(NON_BLOCKING));
    for stream in streams {
        assert_eq!(launch(&raw, meet, stream, 0, 0), OK);
    }
    let other = raw.stream(NON_BLOCKING);
    assert_eq!(unsafe { (raw.cuMemsetD32Async)(address, 7, WORDS, other) }.0, OK);
    raw.sync(other);
    assert!(streams.iter().all(|stream| raw.busy(*stream)));
    arrived.fetch_add(1, Ordering::SeqCst);
    for stream in streams {
        raw.sync(stream);
    }
}

/// As many kernels run at a time as on a GPU, and copies go on beside them.
#[test]
fn many_kernels_run_beside_each_other() {
    const KERNELS: usize = 128;
    let raw = Raw::new();
    let address = memory(&raw);
    let (arrived, open) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let (here, gate) = (arrived.clone(), open.clone());
    raw.soft.kernel("waits", move |_| {
        here.fetch_add(1, Ordering::SeqCst);
        while gate.load(Ordering::SeqCst) == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    let waits = function(&raw, c"waits");
    let streams = [(); KERNELS + 2].map(|()| raw.stream(NON_BLOCKING));
    for stream in streams {
        assert_eq!(launch(&raw, waits, stream, 0, 0), OK);
    }
    let all = Instant::now() + Duration::from_secs(60);
    while arrived.load(Ordering::SeqCst) < KERNELS as u32 {
        assert!(Instant::now() < all, "{arrived:?} kernels run");
        std::thread::sleep(Duration::from_millis(1));
    }
    let other = raw.stream(NON_BLOCKING);
    assert_eq!(unsafe { (raw.cuMemsetD32Async)(address, 7, WORDS, other) }.0, OK);
    raw.sync(other);
    assert_eq!(arrived.load(Ordering::SeqCst), KERNELS as u32);
    open.store(1, Ordering::SeqCst);
    for stream in streams {
        raw.sync(stream);
    }
}

/// The first copies of a program go on beside kernels, too.
#[test]
fn copies_run_beside_kernels() {
    let raw = Raw::new();
    let (mut address, open) = (0, Arc::new(AtomicU32::new(0)));
    assert_eq!(unsafe { (raw.cuMemAlloc_v2)(&mut address, 4 * WORDS) }.0, OK);
    let gate = open.clone();
    raw.soft.kernel("waits", move |_| {
        while gate.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
    });
    let waits = function(&raw, c"waits");
    let streams = [(); 3].map(|()| raw.stream(NON_BLOCKING));
    for stream in streams {
        assert_eq!(launch(&raw, waits, stream, 0, 0), OK);
    }
    let other = raw.stream(NON_BLOCKING);
    let event = raw.event(2);
    assert_eq!(unsafe { (raw.cuMemsetD32Async)(address, 7, WORDS, other) }.0, OK);
    raw.record(event, other);
    let soon = Instant::now() + Duration::from_secs(60);
    while raw.query(event) == NOT_READY && Instant::now() < soon {
        std::thread::yield_now();
    }
    let done = raw.query(event);
    open.store(1, Ordering::SeqCst);
    assert_eq!(done, OK);
}

/// Memory of the host stays registered while a kernel may use it.
/// Memory that was registered for reading alone, in both forms of a kernel's access.
#[test]
fn kernels_cannot_write_read_only_memory() {
    #[repr(align(4096))]
    struct Page([u8; 4096]);
    const MAPPED: u32 = 2;
    const READ_ONLY: u32 = 8;
    for (flags, writes, expected) in [
        (MAPPED, true, OK),
        (MAPPED, false, OK),
        (MAPPED | READ_ONLY, false, OK),
        (MAPPED | READ_ONLY, true, ILLEGAL_ADDRESS),
    ] {
        let raw = Raw::new();
        let page = Box::leak(Box::new(Page([3; 4096])));
        let memory: Handle = page.0.as_mut_ptr().cast();
        let code = call!(raw, cuMemHostRegister_v2(memory => Handle, 4096 => usize, flags => u32));
        assert_eq!(code, OK);
        let kernel = raw.soft.kernel("uses", move |launch| {
            let last: u64 = launch.parameter::<u64>(0) + 4095;
            match writes {
                true => launch.write(last, &[7_u8]),
                false => assert_eq!(launch.read::<u8>(last, 1), [3]),
            }
        });
        kernel.parameters(&[8, 4]);
        let address = memory.expose_provenance() as u64;
        assert_eq!(launch(&raw, function(&raw, c"uses"), legacy(), address, 0), OK);
        let code = unsafe { (raw.cuStreamSynchronize)(legacy()) }.0;
        assert_eq!(code, expected, "flags {flags}, writes {writes}");
        assert_eq!(page.0[4095], if writes && expected == OK { 7 } else { 3 });
    }
}

#[test]
fn kernels_that_are_not_checked_are_named() {
    let log = std::env::temp_dir().join(format!("unchecked-kernels-{}", std::process::id()));
    let builder = SoftDriver::builder().check_order(OrderCheck::Report);
    let raw = Raw::with(builder.order_log(log.to_str().expect("UTF-8")));
    register_add(&raw.soft);
    for name in ["silent", "unused"] {
        raw.soft.kernel(name, |_| ()).parameters(&[8, 4]);
    }
    let address = memory(&raw);
    for name in [c"add", c"silent", c"silent"] {
        assert_eq!(launch(&raw, function(&raw, name), legacy(), address, 1), OK);
    }
    raw.sync(legacy());
    drop(raw);
    let text = std::fs::read_to_string(&log).expect("the driver wrote its summary");
    let _ = std::fs::remove_file(log);
    let named = "kernels without `accesses` were launched and not checked: \"silent\" 2 times\n";
    assert_eq!(text, format!("{named}order checker: 0 errors, 0 warnings\n"));
}

/// The error that programs are tested for must be found, and not end the test.
#[test]
fn memory_that_another_stream_frees_under_a_kernel() {
    const BYTES: usize = 8 << 20;
    const ROUNDS: usize = 3;
    for writes in [false, true] {
        let raw = Raw::new();
        let entered = Arc::new(AtomicU32::new(0));
        let enters = Arc::clone(&entered);
        let values = vec![7_u8; BYTES];
        let kernel = raw.soft.kernel("long", move |launch| {
            let address = launch.parameter(0);
            enters.fetch_add(1, Ordering::SeqCst);
            if writes {
                launch.write(address, &values);
            } else {
                launch.read::<u8>(address, BYTES);
            }
        });
        kernel.parameters(&[8, 4]);
        let long = function(&raw, c"long");
        let (kernels, frees) = (raw.stream(NON_BLOCKING), raw.stream(NON_BLOCKING));
        for round in 1..=ROUNDS as u32 {
            let mut address = 0;
            let code = call!(raw, cuMemAllocAsync(&mut address => *mut u64, BYTES => usize,
                frees => CUstream));
            assert_eq!(code, OK);
            raw.sync(frees);
            assert_eq!(launch(&raw, long, kernels, address, 0), OK);
            while entered.load(Ordering::SeqCst) < round {
                std::thread::yield_now();
            }
            assert_eq!(call!(raw, cuMemFreeAsync(address => u64, frees => CUstream)), OK);
            raw.sync(frees);
            // The kernel ends as it would have, unless it was late: then its context fails.
            if unsafe { (raw.cuStreamSynchronize)(kernels) }.0 != OK {
                break;
            }
        }
    }
}

#[test]
fn memory_is_unregistered_after_kernels() {
    #[repr(align(4096))]
    struct Page([u8; 4096]);
    type Unregister = unsafe extern "C" fn(*mut c_void) -> u32;
    let raw = Raw::new();
    let open = Arc::new(AtomicU32::new(0));
    let gate = open.clone();
    let stays = move |launch: &cuda_soft_driver::Launch| {
        while gate.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        launch.write(launch.parameter(0), &[7_u32]);
    };
    raw.soft.kernel("stays", stays).parameters(&[8, 4]);
    let unregister = raw.resolve(c"cuMemHostUnregister");
    let unregister: Unregister = unsafe { std::mem::transmute(unregister) };
    let stream = raw.stream(NON_BLOCKING);
    let [page, other] = [(); 2].map(|()| Box::leak(Box::new(Page([0; 4096]))).0.as_mut_ptr());
    let register = |page: *mut u8| {
        let code = call!(raw, cuMemHostRegister_v2(page.cast() => Handle, 4096 => usize,
            0 => u32));
        assert_eq!(code, OK);
    };
    register(page);
    register(other);
    let used = page.expose_provenance();
    for page in [other.expose_provenance(), used] {
        open.store(0, Ordering::SeqCst);
        assert_eq!(launch(&raw, function(&raw, c"stays"), stream, used as u64, 0), OK);
        let unregistered =
            begin(move || unsafe { unregister(std::ptr::with_exposed_provenance_mut(page)) });
        while raw.soft.waiting_for_work() == 0 {
            assert!(!unregistered.is_finished());
            std::thread::yield_now();
        }
        open.store(1, Ordering::SeqCst);
        assert_eq!(unregistered.join(), OK);
        raw.sync(stream);
    }
}

/// A call that unregisters memory waits for its own device alone. On two H200s a copy failed that
/// used the memory afterwards.
#[test]
#[cfg(target_os = "linux")]
fn memory_that_is_registered_no_longer_fails_its_users_on_other_devices() {
    for waits in [false, true] {
        let raw = Raw::with(SoftDriver::builder().devices(2).check_order(OrderCheck::Off));
        let contexts = [raw.retain(0), raw.retain(1)];
        raw.set_current(contexts[0]);
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let page = unsafe { libc::mmap(null_mut(), 4096, access, flags, -1, 0) };
        let registered =
            call!(raw, cuMemHostRegister_v2(page => *mut c_void, 4096 => usize, 3 => u32));
        assert_eq!(registered, OK);
        raw.set_current(contexts[1]);
        let (stream, address) = (raw.stream(NON_BLOCKING), page.expose_provenance() as u64);
        raw.soft.hold_host_functions(true);
        if waits {
            let wait = raw.cuStreamWaitValue64_v2.unwrap();
            let flags = CU_STREAM_WAIT_VALUE_GEQ;
            assert_eq!(unsafe { wait(stream, address, 1, flags) }.0, OK);
        } else {
            raw.host(stream, || {});
            let mut memory = 0;
            assert_eq!(unsafe { (raw.cuMemAlloc_v2)(&mut memory, 4096) }.0, OK);
            let copied = unsafe { (raw.cuMemcpyHtoDAsync_v2)(memory, page, 4096, stream) };
            assert_eq!(copied.0, OK);
        }
        assert_eq!(call!(raw, cuMemHostUnregister(page => *mut c_void)), OK);
        assert_eq!(unsafe { libc::munmap(page, 4096) }, 0);
        raw.soft.hold_host_functions(false);
        assert_eq!(unsafe { (raw.cuStreamSynchronize)(stream) }.0, LAUNCH_FAILED, "{waits}");
        raw.set_current(contexts[0]);
        raw.sync(raw.stream(NON_BLOCKING));
    }
}

/// The arrays of a launch are the program's, and a fault that leaves garbage leaves them alone.
#[test]
fn garbage_in_results_is_not_in_parameters() {
    let raw = Raw::new();
    register_add(&raw.soft);
    let add = function(&raw, c"add");
    raw.soft.inject(Fault::on("cuLaunch*").poison());
    raw.soft.inject(Fault::on("cuModuleLoadDataEx").poison());
    raw.soft.inject(Fault::on("cuLibraryLoadData").poison());
    let (mut number, mut options, nothing) = (1_u64, [1_u32; 4], null_mut::<c_void>);
    let value = std::ptr::from_mut(&mut number).cast::<c_void>();
    let (mut each, mut extra) = ([value; 2], [value; 5]);
    let one = ([1; 3], [1; 3], 0);
    let code = launch_with(&raw, add, legacy(), one, each.as_mut_ptr(), extra.as_mut_ptr());
    assert_ne!(code, OK);
    let code = call!(raw, cuLaunchCooperativeKernel(add => Handle, 1 => u32, 1 => u32, 1 => u32,
        1 => u32, 1 => u32, 1 => u32, 0 => u32, legacy() => CUstream,
        each.as_mut_ptr() => *mut Handle));
    assert_ne!(code, OK);
    let code = call!(raw, cuLaunchKernelEx(nothing() => Handle, add => Handle,
        each.as_mut_ptr() => *mut Handle, extra.as_mut_ptr() => *mut Handle));
    assert_ne!(code, OK);
    let mut module = null_mut();
    let (image, values) = (c"x".as_ptr().cast(), each.as_mut_ptr());
    let code = call!(raw, cuModuleLoadDataEx(&mut module => *mut Handle,
        image => *const c_void, 2 => u32, options.as_mut_ptr() => *mut u32,
        values => *mut Handle));
    assert_ne!(code, OK);
    let code = call!(raw, cuLibraryLoadData(&mut module => *mut Handle, image => *const c_void,
        options.as_mut_ptr() => *mut u32, values => *mut Handle, 2 => u32,
        options.as_mut_ptr() => *mut u32, values => *mut Handle, 2 => u32));
    assert_ne!(code, OK);
    assert_eq!((each, extra, options), ([value; 2], [value; 5], [1; 4]));
    assert_eq!(raw.soft.injected(), 5);
}

/// A kernel is work of its stream: it is after what takes virtual time, and takes none.
#[test]
fn a_kernel_in_virtual_time() {
    let raw = Raw::with(SoftDriver::builder().time(Time::Virtual));
    register_add(&raw.soft);
    let (add, address) = (function(&raw, c"add"), memory(&raw));
    let stream = raw.stream(NON_BLOCKING);
    let (start, end) = (raw.event(0), raw.event(0));
    raw.record(start, stream);
    raw.keep_busy(stream, Duration::from_secs(3600));
    assert_eq!(launch(&raw, add, stream, address, 1), OK);
    raw.record(end, stream);
    raw.soft.advance(Duration::from_secs(3599));
    assert_eq!(raw.query(end), NOT_READY);
    raw.sync(stream);
    assert_eq!(raw.elapsed(start, end), Ok(3_600_000.0));
    assert_eq!(contents(&raw, address), [2; WORDS]);
}

/// Virtual time goes on while a kernel runs, which may wait for the very thread that waits.
#[test]
fn virtual_time_beside_a_kernel() {
    let raw = Raw::with(SoftDriver::builder().time(Time::Virtual));
    let open = Arc::new(AtomicU32::new(0));
    let word = open.clone();
    raw.soft.kernel("latch", move |_| {
        while word.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
    });
    let latch = function(&raw, c"latch");
    let (held, other) = (raw.stream(NON_BLOCKING), raw.stream(NON_BLOCKING));
    assert_eq!(launch(&raw, latch, held, 0, 0), OK);
    raw.keep_busy(other, Duration::from_secs(3600));
    raw.sync(other);
    assert!(raw.busy(held));
    open.store(1, Ordering::SeqCst);
    raw.sync(held);
}

/// The attributes of a launch, and a cooperative one.
#[test]
fn launches_with_attributes() {
    #[repr(C)]
    struct Config {
        grid: [u32; 3],
        block: [u32; 3],
        shared: u32,
        stream: CUstream,
        attributes: *const [u64; 9],
        count: u32,
    }
    let raw = Raw::new();
    let (send, receive) = std::sync::mpsc::channel();
    raw.soft.kernel("grid", move |launch| send.send(launch.grid()).unwrap());
    let (grid, stream) = (function(&raw, c"grid"), raw.stream(NON_BLOCKING));
    let run = |attribute: u64| {
        let attributes = [[attribute, 1, 0, 0, 0, 0, 0, 0, 0]];
        let (one, attributes) = ([1; 3], attributes.as_ptr());
        let config =
            Config { grid: [2, 3, 4], block: one, shared: 0, stream, attributes, count: 1 };
        call!(raw, cuLaunchKernelEx(&config => *const Config, grid => Handle,
            null_mut() => Handle, null_mut() => Handle))
    };
    // Cooperative; and an event of the launch, which nothing here would record.
    assert_eq!((run(2), run(7)), (OK, NOT_SUPPORTED));
    let code = call!(raw, cuLaunchCooperativeKernel(grid => Handle, 5 => u32, 6 => u32, 7 => u32,
        1 => u32, 1 => u32, 1 => u32, 0 => u32, stream => CUstream, null_mut() => Handle));
    assert_eq!(code, OK);
    raw.sync(stream);
    assert_eq!(receive.try_iter().collect::<Vec<_>>(), [[2, 3, 4], [5, 6, 7]]);

    // The blocks of a cooperative launch run at the same time, or it is refused: 2 of 1 024 threads
    // fit on each of the 132 multiprocessors, and 1 with half of their shared memory.
    let resident = |shared: usize| {
        let mut blocks = -1;
        let code = call!(raw, cuOccupancyMaxActiveBlocksPerMultiprocessor(
            &mut blocks => *mut i32, grid => Handle, 1024 => i32, shared => usize));
        assert_eq!(code, OK);
        blocks
    };
    // More than the function may have does not fit.
    assert_eq!([0, 48 << 10, 120_000].map(resident), [2, 2, 0]);
    let code = call!(raw, cuFuncSetAttribute(grid => Handle, 8 => u32, 232_448 => i32));
    assert_eq!(code, OK);
    assert_eq!([0, 120_000, 232_449].map(resident), [2, 1, 0]);
    for value in [-2, 101] {
        let code = call!(raw, cuFuncSetAttribute(grid => Handle, 9 => u32, value => i32));
        assert_eq!(code, INVALID_VALUE, "a carve-out of {value} per cent");
    }
    let cooperative = |blocks: u32| {
        call!(raw, cuLaunchCooperativeKernel(grid => Handle, blocks => u32, 1 => u32, 1 => u32,
            1024 => u32, 1 => u32, 1 => u32, 120_000 => u32, stream => CUstream,
            null_mut() => Handle))
    };
    assert_eq!((cooperative(132), cooperative(133)), (OK, COOPERATIVE_LAUNCH_TOO_LARGE));
    raw.sync(stream);
}

/// A random order of independent work, in which a kernel is as any other.
#[test]
fn kernels_in_a_random_order() {
    let orders = [(); 2].map(|()| {
        let raw = Raw::with(SoftDriver::builder().scheduler(Scheduler::Seeded(7)));
        let ran = Arc::new(Mutex::new(Vec::new()));
        let order = ran.clone();
        let kernel = raw.soft.kernel("note", move |launch| {
            order.lock().unwrap().push(launch.parameter::<u32>(1));
        });
        kernel.parameters(&[8, 4]);
        let note = function(&raw, c"note");
        let streams = [(); 4].map(|()| raw.stream(NON_BLOCKING));
        for number in 0..16 {
            assert_eq!(launch(&raw, note, streams[number as usize % 4], 0, number), OK);
        }
        for stream in streams {
            raw.sync(stream);
        }
        drop(raw);
        Arc::into_inner(ran).unwrap().into_inner().unwrap()
    });
    assert_eq!(orders[0], orders[1]);
    assert_ne!(orders[0], (0..16).collect::<Vec<u32>>());
    for stream in 0..4 {
        let of_stream = orders[0].iter().filter(|number| **number % 4 == stream);
        assert!(of_stream.is_sorted());
    }
}

/// A kernel calls no function of the driver.
#[test]
fn a_kernel_that_calls_the_driver() {
    let raw = Raw::new();
    let (query, free) = (raw.cuCtxSynchronize, raw.cuMemFree_v2);
    let mut memory = 0;
    assert_eq!(unsafe { (raw.cuMemAlloc_v2)(&mut memory, 64) }.0, OK);
    let (send, receive) = std::sync::mpsc::channel();
    raw.soft.kernel("calls", move |_| {
        // No context need be current to free memory.
        send.send(unsafe { [query().0, free(memory).0] }).unwrap();
    });
    let calls = function(&raw, c"calls");
    assert_eq!(launch(&raw, calls, legacy(), 0, 0), OK);
    raw.sync(legacy());
    assert_eq!(receive.try_recv(), Ok([NOT_PERMITTED; 2]));
}

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

/// The limit counts the gaps that alignment leaves.
#[test]
fn parameters_that_no_kernel_can_have() {
    let raw = Raw::new();
    let refused = |sizes: &[usize]| {
        let kernel = raw.soft.kernel("kernel", |_| ());
        let described = std::panic::AssertUnwindSafe(|| drop(kernel.parameters(sizes)));
        std::panic::catch_unwind(described).is_err()
    };
    assert!(!refused(&[32_764]));
    assert!(!refused(&[1; 32_764]));
    assert!(refused(&[32_765]));
    assert!(refused(&[32_760, 1, 4]));
    assert!(refused(&[1, 8].repeat(2048)), "18 432 bytes, which take 32 768");
    assert!(refused(&[usize::MAX]));
    assert!(refused(&[usize::MAX - 15, 32]), "their sum wraps");
}
