//! Calls during a capture that have nothing to do with it: what drops of the library make, and what
//! else allocates, frees or ends something.

use std::ffi::c_void;
use std::ptr::null_mut;

use cuda_events::sys::more::*;
use cuda_soft_driver::abi::CUmemAccessDesc;

use crate::capture::{RELAXED, calls_in_each_mode, with_mode};
use crate::graphs::instantiate;
use crate::memory::on_device;
use crate::raw::{NO_TIMING, NON_BLOCKING, Rig, must};
use crate::rules;

/// What such a call needs is made by a relaxed thread, so that it harms no capture.
fn made<T>(rig: &Rig, make: impl FnOnce() -> T) -> T {
    with_mode(rig, RELAXED, make)
}

fn graph(rig: &Rig) -> CUgraph {
    let mut graph = null_mut();
    must!(rig.cuGraphCreate(&mut graph, 0));
    graph
}

fn exec(rig: &Rig) -> CUgraphExec {
    made(rig, || instantiate(rig, graph(rig)))
}

fn pool(rig: &Rig, pool: &mut CUmemoryPool) -> CUresult {
    rig.cuMemPoolCreate(pool, &crate::memory::props(rig, 0))
}

fn own_pool(rig: &Rig) -> CUmemoryPool {
    made(rig, || {
        let mut new = null_mut();
        must("cuMemPoolCreate", pool(rig, &mut new));
        new
    })
}

/// A page of the program's.
fn page() -> *mut c_void {
    #[repr(align(4096))]
    struct Page(#[expect(dead_code, reason = "its address is used")] [u8; 4096]);
    Box::into_raw(Box::new(Page([1; 4096]))).cast()
}

fn pinned(rig: &Rig) -> *mut c_void {
    made(rig, || {
        let mut memory = null_mut();
        must!(rig.cuMemHostAlloc(&mut memory, 64, 0));
        memory
    })
}

fn asynchronous(rig: &Rig, stream: CUstream) -> CUdeviceptr {
    made(rig, || {
        let mut address = 0;
        must!(rig.cuMemAllocAsync(&mut address, 64, stream));
        address
    })
}

rules! {
    /// Calls that allocate memory, free it, or set up something on the device are forbidden where
    /// queries of events and streams are, by the mode of the capture or of the thread.
    [since(12, 0)]
    fn forbidden(rig, saw) =
        "global: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED (900), invalidated (cuGraphInstantiate, \
         cuGraphExecDestroy, cuCtxSetLimit, cuMemFree of NULL, cuMemAllocManaged, \
         cuMemHostAlloc, cuMemFreeHost, cuMemHostRegister, cuMemHostUnregister, \
         cuMemAllocAsync elsewhere, cuMemFreeAsync elsewhere, cuMemPoolCreate, \
         cuMemPoolDestroy, cuMemPoolTrimTo, cuProfilerStart); thread-local: \
         CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED (900), invalidated (cuGraphInstantiate, \
         cuGraphExecDestroy, cuCtxSetLimit, cuMemFree of NULL, cuMemAllocManaged, \
         cuMemHostAlloc, cuMemFreeHost, cuMemHostRegister, cuMemHostUnregister, \
         cuMemAllocAsync elsewhere, cuMemFreeAsync elsewhere, cuMemPoolCreate, \
         cuMemPoolDestroy, cuMemPoolTrimTo, cuProfilerStart); relaxed: success, unharmed \
         (cuGraphInstantiate, cuGraphExecDestroy, cuCtxSetLimit, cuMemFree of NULL, \
         cuMemAllocManaged, cuMemHostAlloc, cuMemFreeHost, cuMemHostRegister, \
         cuMemHostUnregister, cuMemAllocAsync elsewhere, cuMemFreeAsync elsewhere, \
         cuMemPoolCreate, cuMemPoolDestroy, cuMemPoolTrimTo, cuProfilerStart)"
    {
        let other = rig.stream(NON_BLOCKING);
        calls_in_each_mode(rig, saw, &[
            ("cuGraphInstantiate", &|_| {
                rig.cuGraphInstantiateWithFlags(&mut null_mut(), graph(rig), 0)
            }),
            ("cuGraphExecDestroy", &|_| rig.cuGraphExecDestroy(exec(rig))),
            ("cuCtxSetLimit", &|_| rig.cuCtxSetLimit(CUlimit(0), 4096)),
            ("cuMemFree of NULL", &|_| rig.cuMemFree_v2(0)),
            ("cuMemAllocManaged", &|_| rig.cuMemAllocManaged(&mut 0, 64, 1)),
            ("cuMemHostAlloc", &|_| rig.cuMemHostAlloc(&mut null_mut(), 64, 0)),
            ("cuMemFreeHost", &|_| rig.cuMemFreeHost(pinned(rig))),
            ("cuMemHostRegister", &|_| rig.cuMemHostRegister_v2(page(), 4096, 0)),
            ("cuMemHostUnregister", &|_| {
                let page = page();
                made(rig, || must("register", rig.cuMemHostRegister_v2(page, 4096, 0)));
                rig.cuMemHostUnregister(page)
            }),
            ("cuMemAllocAsync elsewhere", &|_| rig.cuMemAllocAsync(&mut 0, 64, other)),
            ("cuMemFreeAsync elsewhere", &|_| rig.cuMemFreeAsync(asynchronous(rig, other), other)),
            ("cuMemPoolCreate", &|_| pool(rig, &mut null_mut())),
            ("cuMemPoolDestroy", &|_| rig.cuMemPoolDestroy(own_pool(rig))),
            ("cuMemPoolTrimTo", &|_| rig.cuMemPoolTrimTo(own_pool(rig), 0)),
            ("cuProfilerStart", &|_| rig.cuProfilerStart()),
        ]);
    }

    /// So are settings of contexts, pools and managed memory, and questions about a pool.
    [since(12, 0)]
    fn forbidden_settings(rig, saw) =
        "global: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED (900), invalidated (cuCtxSetCacheConfig, \
         cuCtxSetSharedMemConfig, cuMemPoolGetAttribute, cuMemPoolSetAttribute, \
         cuMemPoolGetAccess, cuMemPoolSetAccess, cuDeviceSetMemPool, cuMemAdvise, \
         cuStreamAttachMemAsync elsewhere); thread-local: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED \
         (900), invalidated (cuCtxSetCacheConfig, cuCtxSetSharedMemConfig, cuMemPoolGetAttribute, \
         cuMemPoolSetAttribute, cuMemPoolGetAccess, cuMemPoolSetAccess, cuDeviceSetMemPool, \
         cuMemAdvise, cuStreamAttachMemAsync elsewhere); relaxed: success, unharmed \
         (cuCtxSetCacheConfig, cuCtxSetSharedMemConfig, cuMemPoolGetAttribute, \
         cuMemPoolSetAttribute, cuMemPoolGetAccess, cuMemPoolSetAccess, cuDeviceSetMemPool, \
         cuMemAdvise, cuStreamAttachMemAsync elsewhere)"
    {
        let other = rig.stream(NON_BLOCKING);
        let managed = made(rig, || {
            let mut address = 0;
            must!(rig.cuMemAllocManaged(&mut address, 64, 1));
            address
        });
        let mut default = null_mut();
        must("the pool", rig.cuDeviceGetDefaultMemPool(&mut default, rig.device));
        let access = CUmemAccessDesc { location: on_device(rig.device), flags: 3 };
        calls_in_each_mode(rig, saw, &[
            ("cuCtxSetCacheConfig", &|_| rig.cuCtxSetCacheConfig(CUfunc_cache(0))),
            ("cuCtxSetSharedMemConfig", &|_| rig.cuCtxSetSharedMemConfig(CUsharedconfig(0))),
            ("cuMemPoolGetAttribute", &|_| {
                let mut threshold = 0_u64;
                let place = (&raw mut threshold).cast();
                rig.cuMemPoolGetAttribute(own_pool(rig), CUmemPool_attribute(4), place)
            }),
            ("cuMemPoolSetAttribute", &|_| {
                let mut threshold = 0_u64;
                let place = (&raw mut threshold).cast();
                rig.cuMemPoolSetAttribute(own_pool(rig), CUmemPool_attribute(4), place)
            }),
            ("cuMemPoolGetAccess", &|_| {
                let mut place = on_device(rig.device);
                rig.cuMemPoolGetAccess(&mut 0, own_pool(rig), &mut place)
            }),
            ("cuMemPoolSetAccess", &|_| rig.cuMemPoolSetAccess(own_pool(rig), &access, 1)),
            ("cuDeviceSetMemPool", &|_| rig.cuDeviceSetMemPool(rig.device, default)),
            ("cuMemAdvise", &|_| rig.cuMemAdvise(managed, 64, CUmem_advise(1), rig.device)),
            ("cuStreamAttachMemAsync elsewhere", &|_| {
                rig.cuStreamAttachMemAsync(other, managed, 64, 1)
            }),
        ]);
    }

    /// Where its thread is relaxed, such a call harms no capture.
    [since(11, 4)]
    fn forbidden_calls_of_a_relaxed_thread(rig, saw) =
        "each mode: success, unharmed (cuGraphExecDestroy, cuMemFreeHost)"
    {
        calls_in_each_mode(rig, saw, &[
            ("cuGraphExecDestroy", &|_| made(rig, || rig.cuGraphExecDestroy(exec(rig)))),
            ("cuMemFreeHost", &|_| made(rig, || rig.cuMemFreeHost(pinned(rig)))),
        ]);
    }

    /// Other calls are allowed: those that end graphs, user objects and contexts, that give work to
    /// other streams, and copies and memsets without a stream.
    [since(12, 0)]
    fn allowed(rig, saw) =
        "each mode: success, unharmed (cuGraphDestroy, cuGraphClone, cuGraphLaunch elsewhere, \
         cuUserObjectRelease, cuCtxCreate and cuCtxDestroy, cuDevicePrimaryCtxRelease, \
         cuEventRecord elsewhere, cuStreamWaitEvent elsewhere, cuLaunchHostFunc elsewhere, \
         cuMemsetD8Async elsewhere, cuMemsetD8, cuMemcpyHtoD)"
    {
        let other = rig.stream(NON_BLOCKING);
        let event = rig.event(NO_TIMING);
        let mut address = 0;
        must!(rig.cuMemAlloc_v2(&mut address, 128));
        unsafe extern "C" fn nothing(_: *mut c_void) {}
        calls_in_each_mode(rig, saw, &[
            ("cuGraphDestroy", &|_| rig.cuGraphDestroy(graph(rig))),
            ("cuGraphClone", &|_| rig.cuGraphClone(&mut null_mut(), graph(rig))),
            ("cuGraphLaunch elsewhere", &|_| rig.cuGraphLaunch(exec(rig), other)),
            ("cuUserObjectRelease", &|_| {
                let mut object = null_mut();
                let number = std::ptr::without_provenance_mut(1);
                must!(rig.cuUserObjectCreate(&mut object, number, Some(nothing), 1, 1));
                rig.cuUserObjectRelease(object, 1)
            }),
            ("cuCtxCreate and cuCtxDestroy", &|_| rig.destroy_context(rig.new_context())),
            ("cuDevicePrimaryCtxRelease", &|_| {
                must!(rig.cuDevicePrimaryCtxRetain(&mut null_mut(), rig.device));
                rig.cuDevicePrimaryCtxRelease_v2(rig.device)
            }),
            ("cuEventRecord elsewhere", &|_| rig.cuEventRecord(event, other)),
            ("cuStreamWaitEvent elsewhere", &|_| rig.cuStreamWaitEvent(other, event, 0)),
            ("cuLaunchHostFunc elsewhere", &|_| {
                rig.cuLaunchHostFunc(other, Some(nothing), null_mut())
            }),
            ("cuMemsetD8Async elsewhere", &|_| rig.cuMemsetD8Async(address, 1, 64, other)),
            ("cuMemsetD8", &|_| rig.cuMemsetD8_v2(address + 64, 1, 64)),
            ("cuMemcpyHtoD", &|_| {
                rig.cuMemcpyHtoD_v2(address + 64, [1_u8; 64].as_ptr().cast(), 64)
            }),
        ]);
    }

    /// What no capture can take is refused as such, also after the capture was invalidated.
    [since(11, 4)]
    fn what_cannot_be_captured(rig, saw) =
        "each mode: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED (900), invalidated \
         (cuStreamAddCallback, cuStreamAddCallback after a query, cuGraphLaunch, \
         cuGraphLaunch after a query)"
    {
        unsafe extern "C" fn nothing(_: CUstream, _: CUresult, _: *mut c_void) {}
        let exec = made(rig, || exec(rig));
        let add = |stream| rig.cuStreamAddCallback(stream, Some(nothing), null_mut(), 0);
        let asked = |stream| {
            let _ = rig.cuStreamQuery(stream);
            stream
        };
        calls_in_each_mode(rig, saw, &[
            ("cuStreamAddCallback", &add),
            ("cuStreamAddCallback after a query", &|stream| add(asked(stream))),
            ("cuGraphLaunch", &|stream| rig.cuGraphLaunch(exec, stream)),
            ("cuGraphLaunch after a query", &|stream| rig.cuGraphLaunch(exec, asked(stream))),
        ]);
    }
}
