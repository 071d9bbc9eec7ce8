//! What a program repeats.

use std::ffi::{CString, c_char, c_void};
use std::ptr::{null, null_mut};

use super::{HOST, Program, called, new, nothing};

/// A part of a program, which is repeated.
pub(super) type Part = fn(&mut Program, u64);

pub(super) fn streams(p: &mut Program, _: u64) {
    let event = new(|event| p.cuda.cuEventCreate(event, 2));
    let [stream, blocking] = [1, 0].map(|flags| new(|it| p.cuda.cuStreamCreate(it, flags)));
    p.set(p.memory, stream);
    p.cuda.cuEventRecord(event, stream);
    p.cuda.cuStreamWaitEvent(blocking, event, 0);
    p.set(p.memory, blocking);
    p.cuda.cuMemcpyDtoHAsync_v2(p.pinned, p.memory, 64, blocking);
    p.cuda.cuStreamSynchronize(blocking);
    p.cuda.cuEventDestroy_v2(event);
    p.cuda.cuStreamDestroy_v2(stream);
    p.cuda.cuStreamDestroy_v2(blocking);
}

pub(super) fn contexts(p: &mut Program, _: u64) {
    let context = new(|context| p.cuda.cuCtxCreate_v2(context, 0, 0));
    let memory = p.allocated();
    let event = new(|event| p.cuda.cuEventCreate(event, 2));
    p.set(memory, 0);
    p.cuda.cuCtxRecordEvent(context, event);
    p.cuda.cuCtxWaitEvent(p.context, event);
    p.cuda.cuEventDestroy_v2(event);
    p.cuda.cuMemFree_v2(memory);
    p.cuda.cuCtxDestroy_v2(context);
    p.cuda.cuCtxSetCurrent(p.context);
}

pub(super) fn memory(p: &mut Program, _: u64) {
    let (memory, stream) = (p.allocated(), p.streams[0]);
    p.set(memory, stream);
    p.cuda.cuMemFree_v2(memory);
    let managed = new(|address| p.cuda.cuMemAllocManaged(address, 4096, 1));
    p.set(managed, stream);
    p.cuda.cuMemFree_v2(managed);
    let memory = new(|address| p.cuda.cuMemAllocAsync(address, 4096, stream));
    p.set(memory, stream);
    p.cuda.cuMemFreeAsync(memory, stream);
    let memory = new(|address| p.cuda.cuMemAllocAsync(address, 4096, stream));
    p.set(memory, stream);
    p.cuda.cuStreamSynchronize(stream);
    p.cuda.cuMemFree_v2(memory);
}

pub(super) fn pools(p: &mut Program, _: u64) {
    let stream = p.streams[0];
    // `CUmemPoolProps`: pinned memory, of a device.
    let mut properties = [0; 22];
    (properties[0], properties[2]) = (1, 1);
    let pool = new(|pool| p.cuda.cuMemPoolCreate(pool, &properties));
    let memory = new(|to| p.cuda.cuMemAllocFromPoolAsync(to, 4096, pool, stream));
    p.set(memory, stream);
    p.cuda.cuMemFreeAsync(memory, stream);
    p.cuda.cuStreamSynchronize(stream);
    p.cuda.cuMemPoolDestroy(pool);
}

pub(super) fn pinned(p: &mut Program, _: u64) {
    let stream = p.streams[0];
    let mut memory = null_mut();
    p.cuda.cuMemHostAlloc(&mut memory, 1 << 14, 0);
    p.cuda.cuMemcpyHtoDAsync_v2(p.memory, memory, 1 << 14, stream);
    p.cuda.cuMemcpyDtoHAsync_v2(memory, p.memory, 1 << 14, stream);
    p.cuda.cuStreamSynchronize(stream);
    // SAFETY: pinned memory, which no copy uses any longer.
    unsafe { memory.write_volatile(1) };
    p.cuda.cuMemFreeHost(memory);
    let mut own = vec![0_u8; 1 << 14];
    p.cuda.cuMemHostRegister_v2(own.as_mut_ptr(), own.len(), 0);
    p.cuda.cuMemcpyHtoDAsync_v2(p.memory, own.as_ptr(), own.len(), stream);
    p.cuda.cuStreamSynchronize(stream);
    p.cuda.cuMemHostUnregister(own.as_mut_ptr());
}

pub(super) fn values(p: &mut Program, round: u64) {
    let [one, other] = p.streams;
    let value = round as u32 + 1;
    p.cuda.cuStreamWaitValue32_v2(other, p.memory, value, 1);
    p.cuda.cuStreamWriteValue32_v2(one, p.memory, value, 0);
    p.set(p.memory + 1024, other);
    let place = p.pinned.wrapping_add(1024).expose_provenance() as u64;
    p.cuda.cuStreamWriteValue32_v2(one, place, value, 0);
    p.cuda.cuStreamWaitValue32_v2(other, place, value, 1);
    p.synchronize();
}

/// Other processes may have each event, and the memory.
pub(super) fn descriptors(p: &mut Program, _: u64) {
    let event = new(|event| p.cuda.cuEventCreate(event, 2 | 4));
    let mut descriptor = [0; 64];
    p.cuda.cuIpcGetEventHandle(&mut descriptor, event);
    p.cuda.cuEventRecord(event, p.streams[0]);
    p.cuda.cuStreamWaitEvent(p.streams[1], event, 0);
    p.cuda.cuEventSynchronize(event);
    p.cuda.cuEventDestroy_v2(event);
    let memory = p.allocated();
    p.cuda.cuIpcGetMemHandle(&mut descriptor, memory);
    p.set(memory, p.streams[0]);
    p.cuda.cuMemFree_v2(memory);
}

pub(super) fn named_streams(p: &mut Program, round: u64) {
    type Name = unsafe extern "C" fn(usize, *const c_char);
    let stream = new(|stream| p.cuda.cuStreamCreate(stream, 1));
    let name = CString::new(format!("stream {round}")).expect("without a 0");
    // SAFETY: the library's function has this type; it is not there without the library.
    unsafe {
        let found = libc::dlsym(libc::RTLD_DEFAULT, c"cuda_order_check_name_stream".as_ptr());
        if !found.is_null() {
            std::mem::transmute::<*mut c_void, Name>(found)(stream, name.as_ptr());
        }
    }
    p.set(p.memory, stream);
    p.cuda.cuStreamSynchronize(stream);
    p.cuda.cuStreamDestroy_v2(stream);
}

pub(super) fn host_functions(p: &mut Program, _: u64) {
    let stream = p.streams[0];
    p.cuda.cuLaunchHostFunc(stream, nothing, null_mut());
    p.cuda.cuStreamAddCallback(stream, called, null_mut(), 0);
    p.set(p.memory, stream);
    p.cuda.cuStreamSynchronize(stream);
}

pub(super) fn threads(p: &mut Program, round: u64) {
    let p = &*p;
    let work = || {
        let event = new(|event| p.cuda.cuEventCreate(event, 2));
        p.cuda.cuMemsetD8Async_ptsz(p.memory, 1, 256, 0);
        p.cuda.cuMemcpyDtoHAsync_v2_ptsz(p.pinned, p.memory, 64, 0);
        p.cuda.cuLaunchHostFunc_ptsz(0, nothing, null_mut());
        p.cuda.cuEventRecord_ptsz(event, 0);
        p.cuda.cuStreamWaitEvent(p.streams[0], event, 0);
        p.cuda.cuEventDestroy_v2(event);
        // It may end before its stream's work does.
        if round.is_multiple_of(2) {
            p.cuda.cuStreamSynchronize_ptsz(0);
        }
    };
    p.in_thread(work);
    p.synchronize();
}

/// Threads that use no stream of their own.
pub(super) fn plain_threads(p: &mut Program, _: u64) {
    let p = &*p;
    p.in_thread(|| p.set(p.memory, p.streams[0]));
    p.synchronize();
}

pub(super) fn modules(p: &mut Program, _: u64) {
    let module = new(|module| p.cuda.cuModuleLoadData(module, c"code".as_ptr().cast()));
    let function = new(|it| p.cuda.cuModuleGetFunction(it, module, c"own".as_ptr()));
    p.launch_kernel(function);
    p.cuda.cuStreamSynchronize(p.streams[0]);
    p.cuda.cuModuleUnload(module);
}

pub(super) fn libraries(p: &mut Program, _: u64) {
    let library = new(|library| {
        let (code, none, no_values) = (c"code".as_ptr().cast(), null_mut(), null_mut());
        p.cuda.cuLibraryLoadData(library, code, none, no_values, 0, none, no_values, 0);
    });
    let kernel = new(|kernel| p.cuda.cuLibraryGetKernel(kernel, library, c"own".as_ptr()));
    let function = new(|function| p.cuda.cuKernelGetFunction(function, kernel));
    p.launch_kernel(function);
    p.launch_kernel(kernel);
    p.cuda.cuStreamSynchronize(p.streams[0]);
    p.cuda.cuLibraryUnload(library);
}

pub(super) fn captures(p: &mut Program, _: u64) {
    p.launched_once(p.captured());
}

/// Newer drivers may have other functions that begin a capture.
pub(super) fn unseen_captures(p: &mut Program, _: u64) {
    let graph = p.captured_by(p.begin_unseen);
    let exec = p.instantiated(graph);
    p.launch(exec);
    p.launch(exec);
    p.cuda.cuGraphExecDestroy(exec);
    p.cuda.cuGraphDestroy(graph);
}

pub(super) fn abandoned_captures(p: &mut Program, _: u64) {
    p.cuda.cuGraphDestroy(p.captured());
    // A capture that fails has no graph.
    let stream = p.streams[0];
    p.cuda.cuStreamBeginCapture_v2(stream, 2);
    p.cuda.cuLaunchHostFunc(stream, nothing, null_mut());
    let mut graph = 0;
    // SAFETY: a stream, and a place for the graph.
    let codes = unsafe {
        [(p.cuda.cuStreamSynchronize)(stream), (p.cuda.cuStreamEndCapture)(stream, &mut graph)]
    };
    assert!(codes[0] != 0 && codes[1] != 0 && graph == 0, "{codes:?}");
}

pub(super) fn graphs(p: &mut Program, _: u64) {
    let graph = p.built();
    p.host_node(graph);
    p.launched_once(graph);
}

pub(super) fn clones(p: &mut Program, _: u64) {
    for graph in [p.captured(), p.built()] {
        p.host_node(graph);
        let clone = new(|clone| p.cuda.cuGraphClone(clone, graph));
        p.cuda.cuGraphDestroy(graph);
        p.launched_once(clone);
    }
}

pub(super) fn children(p: &mut Program, _: u64) {
    let (outer, inner) = (p.built(), p.captured());
    new(|node| p.cuda.cuGraphAddChildGraphNode(node, outer, null(), 0, inner));
    p.cuda.cuGraphDestroy(inner);
    p.launched_once(outer);
}

/// A node of a graph that stays gets other functions.
pub(super) fn changed_nodes(p: &mut Program, _: u64) {
    p.cuda.cuGraphHostNodeSetParams(p.node, &HOST);
    let exec = p.instantiated(p.graph);
    p.launch(exec);
    p.cuda.cuGraphExecDestroy(exec);
}

pub(super) fn destroyed_nodes(p: &mut Program, _: u64) {
    p.cuda.cuGraphDestroyNode(p.host_node(p.graph));
    p.launch(p.exec);
}

/// An executable graph that stays gets other functions.
pub(super) fn changed_functions(p: &mut Program, _: u64) {
    p.cuda.cuGraphExecHostNodeSetParams(p.exec, p.node, &HOST);
    p.launch(p.exec);
}

/// An executable graph is updated with other graphs. In this driver it keeps their objects.
pub(super) fn updates(p: &mut Program, round: u64) {
    if round.is_multiple_of(50) {
        p.cuda.cuGraphExecDestroy(p.exec);
        p.exec = p.instantiated(p.graph);
    }
    let graph = p.built();
    p.host_node(graph);
    p.cuda.cuGraphExecUpdate_v2(p.exec, graph, &mut [0; 3]);
    p.cuda.cuGraphDestroy(graph);
    p.launch(p.exec);
}

pub(super) fn objects(p: &mut Program, _: u64) {
    let graph = p.built();
    p.cuda.cuGraphRetainUserObject(graph, p.new_object(), 1, 1);
    p.launched_once(graph);
    p.cuda.cuUserObjectRelease(p.new_object(), 1);
}

/// An object of the program that many graphs have.
pub(super) fn kept_objects(p: &mut Program, _: u64) {
    let graph = p.built();
    p.cuda.cuGraphRetainUserObject(graph, p.object, 1, 0);
    p.launched_once(graph);
    p.cuda.cuGraphRetainUserObject(p.graph, p.object, 1, 0);
    p.cuda.cuGraphReleaseUserObject(p.graph, p.object, 1);
    let object = p.new_object();
    p.cuda.cuGraphRetainUserObject(p.graph, object, 1, 1);
    p.cuda.cuGraphReleaseUserObject(p.graph, object, 1);
}

/// An executable graph is updated with a graph that has an object.
pub(super) fn updates_of_objects(p: &mut Program, round: u64) {
    if round == 0 {
        p.cuda.cuGraphRetainUserObject(p.graph, p.object, 1, 0);
    }
    p.cuda.cuGraphExecUpdate_v2(p.exec, p.graph, &mut [0; 3]);
    p.launch(p.exec);
    if round.is_multiple_of(50) {
        p.cuda.cuGraphExecDestroy(p.exec);
        p.exec = p.instantiated(p.graph);
    }
}

pub(super) const PARTS: &[(&str, Part)] = &[
    ("streams", streams),
    ("contexts", contexts),
    ("memory", memory),
    ("pools", pools),
    ("pinned", pinned),
    ("values", values),
    ("descriptors", descriptors),
    ("named_streams", named_streams),
    ("host_functions", host_functions),
    ("threads", threads),
    ("plain_threads", plain_threads),
    ("modules", modules),
    ("libraries", libraries),
    ("captures", captures),
    ("unseen_captures", unseen_captures),
    ("abandoned_captures", abandoned_captures),
    ("graphs", graphs),
    ("clones", clones),
    ("children", children),
    ("changed_nodes", changed_nodes),
    ("destroyed_nodes", destroyed_nodes),
    ("changed_functions", changed_functions),
    ("updates", updates),
    ("objects", objects),
    ("kept_objects", kept_objects),
    ("updates_of_objects", updates_of_objects),
];
