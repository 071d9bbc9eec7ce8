//! Launches in graphs.

use crate::common;

use std::ptr::null_mut;

use common::*;
use cuda_events::sys::*;
use cuda_soft_driver::{OrderCheck, SoftDriver};

use super::{Handle, NON_BLOCKING, WORDS, contents, function, launch, memory, register_add};

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

/// Of a library's kernel a node has both, and of a module's function only that.
#[test]
fn a_node_says_which_kernel_its_function_is() {
    let raw = Raw::new();
    register_add(&raw.soft);
    let (mut library, mut kernel, mut graph) = (null_mut(), null_mut(), null_mut());
    let nothing = null_mut::<std::ffi::c_void>;
    let code = call!(raw, cuLibraryLoadData(&mut library => *mut Handle,
        c"anything".as_ptr().cast() => *const std::ffi::c_void, nothing() => Handle,
        nothing() => Handle, 0 => u32, nothing() => Handle, nothing() => Handle, 0 => u32));
    assert_eq!(code, OK);
    let code = call!(raw, cuLibraryGetKernel(&mut kernel => *mut Handle, library => Handle,
        c"add".as_ptr() => *const std::ffi::c_char));
    assert_eq!(code, OK);
    assert_eq!(call!(raw, cuGraphCreate(&mut graph => *mut CUgraph, 0 => u32)), OK);
    let (mut address, mut value) = (memory(&raw), 10_u32);
    let mut parameters =
        [std::ptr::from_mut(&mut address).cast(), std::ptr::from_mut(&mut value).cast()];
    for (function, is_kernel) in [(kernel, true), (function(&raw, c"add"), false)] {
        let given = NodeParams {
            function,
            grid: [1; 3],
            block: [7, 1, 1],
            shared: 0,
            parameters: parameters.as_mut_ptr(),
            extra: null_mut(),
        };
        let mut node = null_mut();
        let code = call!(raw, cuGraphAddKernelNode(&mut node => *mut CUgraphNode,
            graph => CUgraph, null_mut() => Handle, 0 => usize, &given => *const NodeParams));
        assert_eq!(code, OK);
        let mut shown = more::CUDA_KERNEL_NODE_PARAMS_v2::default();
        let code = call!(raw, cuGraphKernelNodeGetParams_v2(node => CUgraphNode,
            &mut shown => *mut more::CUDA_KERNEL_NODE_PARAMS_v2));
        assert_eq!((code, shown.func.cast(), shown.blockDimX), (OK, function, 7));
        let expected = if is_kernel { function } else { null_mut() };
        assert_eq!(shown.kern.cast(), expected);
    }
}
