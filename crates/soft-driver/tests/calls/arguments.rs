//! What each call returns for each argument that is wrong, and in each state in which calls fail.

use std::ffi::{CStr, CString, c_void};
use std::ptr::null_mut;

use cuda_events::sys::*;
use cuda_soft_driver::{Builder, SoftDriver};

use crate::common::*;

/// Calls, each with its arguments and the codes that it returns. Of the arguments
///
/// * `o8` is a place for a result of 8 bytes, which may be NULL if it is written `?8`; of `v8` the
///   result stands behind the code,
/// * `#64` are as many bytes or elements as the memory has: one more, and none,
/// * `d` is a device: two that there are not; `z` are no flags: some that there are not,
/// * `0-3` is one of these numbers, and a number is always the same,
/// * a letter is an object, memory or a function, as `Table::object` has them: NULL; a capital is a
///   structure of `Table::structure`: each word of it one larger, and one smaller.
///
/// First is the code of the call as it is written, then one for each argument that is replaced so.
/// Then come those of the states: without a current context, while the thread captures, in a forked
/// child, after the context has failed, and before `cuInit`. With a `+` the call has failed and
/// written a place, and with a `-` it has succeeded and not written one.
///
/// They are this driver's. An H200 (CUDA 13.0, 2026-11-29) gives other codes for some of them:
///
/// * it ends the process at some NULLs and at what is no handle, and writes zeros where some calls fail,
/// * in a forked child most calls on streams and graphs succeed, and some crash,
/// * before `cuInit` calls on graphs are invalid values, and some on events are not initialized,
/// * after a failure event nodes can be made and changed, flags set and the context retained, and no
///   context can be made,
/// * it allows managed pools, other handles of pools and memory, to release what a graph does not hold,
///   and a block that begins below zero,
/// * it refuses memory of the program as IO memory, and has other codes for the access of a pool's own
///   device, the end of a default stream, and four limits.
///
/// The rows of a second device and of what is newer were not compared.
const CALLS: &[&str] = &[
    "cuDriverGetVersion v4 = 0=13050; 1; 0=13050 0=13050 0=13050 0=13050 0=13050",
    "cuDeviceGet v4 d = 0=0; 1 101 101; 0=0 0=0 3 0=0 3",
    "cuDeviceGetCount v4 = 0=2; 1; 0=2 0=2 3 0=2 3",
    "cuDeviceGetName o64 64 d = 0; 1 101 101; 0 0 3 0 3",
    "cuDeviceGetAttribute o4 75 d = 0; 1 101 101; 0 0 3 0 3",
    "cuDeviceTotalMem_v2 o8 d = 0; 1 101 101; 0 0 3 0 3",
    "cuDeviceGetUuid o16 d = 0; 1 101 101; 0 0 3 0 3",
    "cuDeviceGetUuid_v2 o16 d = 0; 1 101 101; 0 0 3 0 3",
    "cuDeviceComputeCapability v4 v4 d = 0=9=0; 1 1 101 101; 0=9=0 0=9=0 3 0=9=0 3",
    "cuDeviceCanAccessPeer v4 d 1 = 0=1; 1 101 101; 0=1 0=1 3 0=1 3",
    "cuDeviceGetP2PAttribute o4 2 d 1 = 0; 1 101 101; 0 0 3 0 3",
    "cuDeviceGetPCIBusId o16 16 d = 0; 1 101 101; 0 0 3 0 3",
    "cuDevicePrimaryCtxRetain o8 d = 0; 1 101 101; 0 0 3 719 3",
    "cuDevicePrimaryCtxGetState d v4 v4 = 0=0=1; 101 101 1 1; 0=0=1 0=0=1 3 0=0=1 3",
    "cuCtxCreate_v2 o8 z d = 0; 1 1 101 101; 0 0 3 0 3",
    "cuCtxGetCurrent o8 = 0; 1; 0 0 3 0 3",
    "cuCtxSetCurrent c = 0; 0; 0 0 3 0 3",
    "cuCtxPushCurrent_v2 c = 0; 1; 0 0 3 0 3",
    "cuCtxPopCurrent_v2 ?8 = 0; 0; 201 0 3 0 3",
    "cuCtxGetDevice v4 = 0=0; 1; 201 0=0 3 0=0 3",
    "cuCtxGetDevice_v2 v4 c = 0=0; 1 0=0; 0=0 0=0 3 0=0 3",
    "cuCtxGetStreamPriorityRange v4 v4 = 0=0=-5; 0=-5 0=0; 201 0=0=-5 3 719 3",
    "cuCtxGetFlags v4 = 0=8; 1; 201 0=8 3 0=8 3",
    "cuCtxGetId c o8 = 0; 0 1; 0 0 3 0 3",
    "cuCtxGetApiVersion c v4 = 0=3020; 0=3020 1; 0=3020 0=3020 3 0=3020 3",
    "cuCtxGetLimit o8 0 = 0; 1; 201 0 3 719 3",
    "cuCtxSetLimit 2 1024 = 0; ; 201 900 3 719 3",
    "cuCtxGetCacheConfig v4 = 0=0; 1; 201 0=0 3 719 3",
    "cuCtxSetCacheConfig 1 = 0; ; 201 900 3 719 3",
    "cuCtxGetSharedMemConfig v4 = 0=1; 1; 201 0=1 3 719 3",
    "cuCtxSetSharedMemConfig 1 = 0; ; 201 900 3 719 3",
    "cuCtxResetPersistingL2Cache = 0; ; 201 0 3 719 3",
    "cuCtxSynchronize = 0; ; 201 900 3 719 3",
    "cuCtxSynchronize_v2 c = 0; 0; 0 900 3 719 3",
    "cuCtxRecordEvent c e = 0; 201 400; 0 900 3 719 3",
    "cuCtxWaitEvent c e = 0; 201 400; 0 900 3 719 3",
    "cuEventCreate o8 z = 0; 1 1; 201 0 3 719 3",
    "cuEventDestroy_v2 e = 0; 400; 0 0 0 719 400",
    "cuEventRecord e s = 0; 400 0; 0 0 0 719 400",
    "cuEventRecordWithFlags e s z = 0; 400 0 1; 0 0 3 719 400",
    "cuEventQuery e = 0; 400; 0 900 0 719 400",
    "cuEventSynchronize e = 0; 400; 0 900 0 719 400",
    "cuEventElapsedTime o4 r r = 0; 400 400 400; 0 0 3 719 400",
    "cuEventElapsedTime_v2 o4 r r = 0; 400 400 400; 0 0 3 719 400",
    "cuStreamCreate o8 z = 0; 1 1; 201 0 3 719 3",
    "cuStreamCreateWithPriority o8 z 0 = 0; 1 1; 201 0 3 719 3",
    "cuStreamDestroy_v2 s = 0; 400; 0 0 3 719 3",
    "cuStreamQuery s = 0; 0; 0 900 0 719 3",
    "cuStreamSynchronize s = 0; 0; 0 900 0 719 3",
    "cuStreamWaitEvent s e z = 0; 0 400 1; 0 0 0 719 400",
    "cuStreamGetPriority s v4 = 0=0; 0=0 1; 0=0 0=0 3 719 3",
    "cuStreamGetFlags s v4 = 0=1; 0=0 1; 0=1 0=1 3 719 3",
    "cuStreamGetId s o8 = 0; 0 1; 0 0 3 719 3",
    "cuStreamGetCtx s o8 = 0; 0 1; 0 0 3 719 3",
    "cuStreamGetCtx_v2 s o8 o8 = 0; 0 0 0; 0 0 3 719 3",
    "cuStreamGetDevice s v4 = 0=0; 0=0 1; 0=0 0=0 3 719 3",
    "cuStreamIsCapturing s v4 = 0=0; 0=0 1; 0=0 0=0 3 719 3",
    "cuStreamGetCaptureInfo s o4 ?8 = 0; 0 1 0; 0 0 3 719 3",
    "cuStreamGetCaptureInfo_v2 s o4 ?8 ?8 ?8 ?8 = 0; 0 1 0*4; 0 0 3 719 3",
    "cuStreamBeginCapture_v2 s 2 = 0; 900; 0 0 3 719 3",
    "cuStreamEndCapture s o8 = 401+; 401+ 401; 401+ 401+ 3 719+ 3",
    "cuThreadExchangeStreamCaptureMode b = 0; 1; 0 0 3 0 3",
    "cuLaunchHostFunc s f 0 = 0; 0 1; 0 0 3 719 3",
    "cuStreamAddCallback s f 0 z = 0; 0 1 1; 0 0 3 719 3",
    "cuStreamWaitValue32_v2 s m 0 z = 0; 0 1 1; 0 0 3 719 3",
    "cuStreamWaitValue64_v2 s m 0 z = 0; 0 1 1; 0 0 3 719 3",
    "cuStreamWriteValue32_v2 s m 0 z = 0; 0 1 1; 0 0 3 719 3",
    "cuStreamWriteValue64_v2 s m 0 z = 0; 0 1 1; 0 0 3 719 3",
    "cuMemGetInfo_v2 o8 o8 = 0; 0 0; 201 0 3 719 3",
    "cuMemAlloc_v2 o8 64 = 0; 1; 201 900 3 719 3",
    "cuMemAllocPitch_v2 o8 o8 64 4 4 = 0; 1 1; 201 900 3 719 3",
    "cuMemAllocManaged o8 64 1 = 0; 1; 201 900 3 719 3",
    "cuMemFree_v2 m = 0; 0; 0 900 3 719 3",
    "cuMemHostAlloc o8 64 z = 0; 1 1; 201 900 3 719 3",
    "cuMemAllocHost_v2 o8 64 = 0; 1; 201 900 3 719 3",
    "cuMemFreeHost h = 0; 0; 0 900 3 719 3",
    "cuMemHostGetDevicePointer_v2 o8 h z = 0; 1 1 1; 201 0 3 719 3",
    "cuMemHostGetFlags v4 h = 0=2; 1 1; 201 0=2 3 719 3",
    "cuPointerGetAttribute v4 2 m = 0=2; 1 1; 0=2 0=2 3 0=2 3",
    "cuPointerGetAttribute o8 1 m = 0; 1 1; 0 0 3 0 3",
    "cuMemGetAddressRange_v2 ?8 ?8 m = 0; 0 0 500; 201 0 3 719 3",
    "cuMemsetD8_v2 m 0 #64 = 0; 1 1 0; 201 0 3 719 3",
    "cuMemsetD16_v2 m 0 #32 = 0; 1 1 0; 201 0 3 719 3",
    "cuMemsetD32_v2 m 0 #16 = 0; 1 1 0; 201 0 3 719 3",
    "cuMemsetD8Async m 0 #64 s = 0; 1 1 0 0; 0 0 3 719 3",
    "cuMemsetD16Async m 0 #32 s = 0; 1 1 0 0; 0 0 3 719 3",
    "cuMemsetD32Async m 0 #16 s = 0; 1 1 0 0; 0 0 3 719 3",
    "cuMemsetD2D8_v2 m 16 0 16 #4 = 0; 1 1 0; 201 0 3 719 3",
    "cuMemsetD2D16_v2 m 16 0 8 #4 = 0; 1 1 0; 201 0 3 719 3",
    "cuMemsetD2D32_v2 m 16 0 4 #4 = 0; 1 1 0; 201 0 3 719 3",
    "cuMemsetD2D8Async m 16 0 16 #4 s = 0; 1 1 0 0; 0 0 3 719 3",
    "cuMemsetD2D16Async m 16 0 8 #4 s = 0; 1 1 0 0; 0 0 3 719 3",
    "cuMemsetD2D32Async m 16 0 4 #4 s = 0; 1 1 0 0; 0 0 3 719 3",
    "cuMemcpy m m #64 = 0; 1 1 1 0; 201 0 3 719 3",
    "cuMemcpyAsync m m #64 s = 0; 1 1 1 0 0; 0 0 3 719 3",
    "cuMemcpyHtoD_v2 m b #64 = 0; 1 1 1 0; 201 0 3 719 3",
    "cuMemcpyDtoH_v2 b m #64 = 0; 1 1 1 0; 201 0 3 719 3",
    "cuMemcpyDtoD_v2 m m #64 = 0; 1 1 1 0; 201 0 3 719 3",
    "cuMemcpyHtoDAsync_v2 m b #64 s = 0; 1 1 1 0 0; 0 0 3 719 3",
    "cuMemcpyDtoHAsync_v2 b m #64 s = 0; 1 1 1 0 0; 0 0 3 719 3",
    "cuMemcpyDtoDAsync_v2 m m #64 s = 0; 1 1 1 0 0; 0 0 3 719 3",
    "cuMemcpyPeer m c m c #64 = 0; 1 0 1 0 1 0; 201 0 3 719 3",
    "cuMemcpyPeerAsync m c m c #64 s = 0; 1 0 1 0 1 0 0; 0 0 3 719 3",
    "cuMemAllocAsync o8 64 s = 0; 1 0; 0 900 3 719 3",
    "cuMemAllocFromPoolAsync o8 64 p s = 0; 1 1 0; 0 900 3 719 3",
    "cuMemFreeAsync a s = 0; 0 0; 0 900 3 719 3",
    "cuMemPoolCreate o8 q = 0; 1 1; 0 900 3 0 3",
    "cuMemPoolDestroy p = 0; 1; 0 900 3 0 3",
    "cuMemPoolTrimTo p 0 = 0; 1; 0 900 3 0 3",
    "cuMemPoolGetAttribute p 4 v8 = 0=0; 1 1; 0=0 900 3 0=0 3",
    "cuMemPoolSetAttribute p 4 b = 0; 1 1; 0 900 3 0 3",
    "cuMemPoolGetAccess v4 p l = 0=3; 1 1 1; 0=3 900 3 0=3 3",
    "cuDeviceGetDefaultMemPool o8 d = 0; 1 101 101; 0 0 3 0 3",
    "cuDeviceGetMemPool o8 d = 0; 1 1 1; 0 0 3 0 3",
    "cuDeviceSetMemPool d p = 0; 1 1 1; 0 900 3 0 3",
    "cuGraphCreate o8 z = 0; 1 1; 0 0 3 0 3",
    "cuGraphDestroy g = 0; 1; 0 0 3 0 3",
    "cuGraphClone o8 g = 0; 1 1; 0 0 3 0 3",
    "cuGraphGetId g o4 = 0; 1 1; 0 0 3 0 3",
    "cuGraphInstantiateWithFlags o8 g z = 0; 1 1 1; 201 900 3 719 3",
    "cuGraphInstantiate_v2 o8 g ?8 b 0 = 0; 1+ 1+ 0 0; 201+ 900+ 3 719+ 3+",
    "cuGraphLaunch x s = 0; 1 0; 0 0 3 719 3",
    "cuGraphUpload x s = 0; 1 0; 0 0 3 719 3",
    "cuGraphExecDestroy x = 0; 1; 0 900 3 0 3",
    "cuGraphExecGetFlags x v8 = 0=0; 1 1; 0=0 0=0 3 0=0 3",
    "cuGraphExecGetId x o4 = 0; 1 1; 0 0 3 0 3",
    "cuGraphAddEmptyNode o8 g 0 0 = 0; 1 1; 0 0 3 0 3",
    "cuGraphAddEventRecordNode o8 g 0 0 e = 0; 1 1 1; 0 0 3 719 3",
    "cuGraphAddEventWaitNode o8 g 0 0 e = 0; 1 1 1; 0 0 3 719 3",
    "cuGraphAddHostNode o8 g 0 0 k = 0; 1 1 1; 0 0 3 0 3",
    "cuGraphAddChildGraphNode o8 g 0 0 g = 0; 1 1 1; 0 0 3 0 3",
    "cuGraphHostNodeGetParams t o16 = 0; 1 1; 0 0 3 0 3",
    "cuGraphHostNodeSetParams t k = 0; 1 1; 0 0 3 0 3",
    "cuGraphExecHostNodeSetParams yt t k = 0; 1 1 1; 0 0 3 0 3",
    "cuGraphEventRecordNodeGetEvent v o8 = 0; 1 1; 0 0 3 0 3",
    "cuGraphEventRecordNodeSetEvent v e = 0; 1 1; 0 0 3 719 3",
    "cuGraphNodeGetType n v4 = 0=5; 1 1; 0=5 0=5 3 0=5 3",
    "cuGraphNodeGetLocalId n o4 = 0; 1 1; 0 0 3 0 3",
    "cuGraphNodeGetToolsId n o8 = 0; 1 1; 0 0 3 0 3",
    "cuGraphNodeGetContainingGraph n o8 = 0; 1 1; 0 0 3 0 3",
    "cuGraphDestroyNode n = 0; 1; 0 0 3 0 3",
    "cuUserObjectCreate o8 b f 1 1 = 0; 1 0 1; 0 0 3 0 3",
    "cuUserObjectRetain u 1 = 0; 1; 0 0 3 0 3",
    "cuUserObjectRelease u 1 = 0; 1; 0 0 3 0 3",
    "cuGraphRetainUserObject g u 1 z = 0; 1 1 1; 0 0 3 0 3",
    "cuProfilerStart = 0; ; 201 900 3 719 3",
    "cuDeviceGetP2PAttribute v4 1-6 d 1 = 0=0; 1 0=1 0=1 0=1 0=0 1 101 101; 0=0 0=0 3 0=0 3",
    "cuCtxGetLimit v8 5-10 = 0=64; 1 0=0 215 215 215 1; 201 0=64 3 719 3",
    "cuCtxSetLimit 5-10 1024 = 0; 0 215 215 215 1; 201 900 3 719 3",
    "cuCtxSetCacheConfig 0-4 = 0; 0 0 0 1; 201 900 3 719 3",
    "cuCtxSetSharedMemConfig 0-4 = 0; 0 0 1 1; 201 900 3 719 3",
    "cuCtxSetFlags 0-10 = 0; 0 0 1 0 1 1 1 0 0 0; 201 0 3 719 3",
    "cuEventCreate o8 0-9 = 0; 1 0 0 0 1 1 0 0 1 1; 201 0 3 719 3",
    "cuStreamCreate o8 0-3 = 0; 1 0 1 1; 201 0 3 719 3",
    "cuStreamGetAttribute s 1-9 b = 0; 0 1 0 1*4 0 0 1; 0 0 3 719 3",
    "cuStreamSetAttribute s 1-9 b = 0; 0 1*6 0 0 1; 0 0 3 719 3",
    "cuStreamCopyAttributes s s = 0; 0 0; 0 0 3 719 3",
    "cuStreamBeginCapture_v2 s 0-3 = 0; 900 0 0 1; 0 0 3 719 3",
    "cuLaunchHostFunc_v2 s f 0 0-3 = 0; 0 1 0 1 1; 0 0 3 719 3",
    "cuMemHostAlloc o8 64 0-8 = 0; 1 0*7 1; 201 900 3 719 3",
    "cuMemAllocManaged o8 64 2-4 = 0; 1 1 1; 201 900 3 719 3",
    "cuMemHostRegister_v2 b 64 14-16 = 0; 1 0 1; 201 900 3 719 3",
    "cuMemPoolGetAttribute p 1-9 o8 = 0; 1 0*7 1 1; 0 900 3 0 3",
    "cuMemPoolSetAttribute p 1-9 b = 0; 1 0 0 0 1 0 1 0 1 1; 0 900 3 0 3",
    "cuPointerGetAttribute o64 3-19 m = 0; 1 1 1 0*14 1; 201 0 3 0 3",
    "cuMemAdvise j 64 1-7 d = 0; 1 0*5 1 0 0; 201 900 3 719 3",
    "cuMemPrefetchAsync j #64 d s = 0; 1 1 1 101 0 0; 0 0 3 719 3",
    "cuStreamAttachMemAsync s j #64 1-5 = 0; 0 1 1 0 0 1 0 1; 0 900 3 719 3",
    "cuMemAddressReserve o8 2097152 0-3 0 z = 0; 1 0 0 1 1; 0 0 3 0 3",
    "cuMemGetAllocationGranularity o8 q 0-2 = 0; 1 1 0 1; 0 0 3 0 3",
    "cuMemCreate o8 2097152 q z = 0; 1 1 1; 0 0 3 0 3",
    "cuMemGetAllocationPropertiesFromHandle b 0 = 1; 1; 1 1 3 1 3",
    "cuMemGetAccess o8 l m = 0; 1 1 1; 0 0 3 0 3",
    "cuMemPoolSetAccess p l 0-2 = 0; 1*4; 0 900 3 0 3",
    "cuMemPoolExportPointer b m = 1; 1 1; 1 900 3 1 3",
    "cuMemGetDefaultMemPool o8 l 0-3 = 1; 1 1 0 801 1; 1 1 3 1 3",
    "cuMemGetMemPool o8 l 0-3 = 1; 1 1 0 801 1; 1 1 3 1 3",
    "cuGraphInstantiateWithFlags o8 g 8-16 = 0; 1 1 0 1*7; 201 900 3 719 3",
    "cuGraphGetNodes g ?8 b = 1; 1 0 1; 1 1 3 1 3",
    "cuGraphGetRootNodes g ?8 b = 1; 1 0 1; 1 1 3 1 3",
    "cuGraphGetEdges g ?8 ?8 b = 1; 1*4; 1 1 3 1 3",
    "cuGraphNodeGetDependencies n ?8 b = 1; 1 0 1; 1 1 3 1 3",
    "cuGraphNodeGetDependentNodes n ?8 b = 1; 1 0 1; 1 1 3 1 3",
    "cuGraphNodeGetDependentNodes_v2 n ?8 0 b = 1; 1 0 1; 1 1 3 1 3",
    "cuGraphAddDependencies g b b 0-1 = 0; 1 0 0 1; 0 0 3 0 3",
    "cuGraphRemoveDependencies g b b 0-1 = 0; 1 0 0 1; 0 0 3 0 3",
    "cuGraphRemoveDependencies_v2 g b b 0 0-1 = 0; 1 0 0 1; 0 0 3 0 3",
    "cuGraphChildGraphNodeGetGraph n o8 = 1; 1 1; 1 1 3 1 3",
    "cuGraphEventWaitNodeGetEvent v o8 = 1; 1 1; 1 1 3 1 3",
    "cuGraphNodeFindInClone o8 n g = 1; 1 1 1; 1 1 3 1 3",
    "cuGraphReleaseUserObject g u 1 = 1; 1 1; 1 1 3 1 3",
    "cuUserObjectCreate o8 b f 0-2 1 = 1; 1 1 1 0 0; 1 1 3 1 3",
    "cuUserObjectRetain u 0-2 = 1; 1 0 0; 1 1 3 1 3",
    "cuDeviceGetDevResource d b 1-4 = 0; 101 101 1 914 914 914; 0 0 3 0 3",
    "cuCtxGetDevResource c b 1-4 = 0; 201 1 914 914 914; 0 0 3 719 3",
    "cuMemcpy2D_v2 b = 0; 1; 201 0 3 719 3",
    "cuMemcpy3D_v2 b = 0; 1; 201 0 3 719 3",
    "cuMemcpy2DAsync_v2 b s = 0; 1 0; 0 0 3 719 3",
    "cuMemcpy3DAsync_v2 b s = 0; 1 0; 0 0 3 719 3",
    "cuMemcpy3DPeer b = 0; 1; 201 0 3 719 3",
    "cuMemcpy3DPeerAsync b s = 0; 1 0; 0 0 3 719 3",
    "cuStreamBatchMemOp_v2 s 0-1 b z = 0; 0 1 0 1; 0 0 3 719 3",
    "cuGraphAddBatchMemOpNode o8 g 0 0 b = 1; 1 1 1; 1 1 3 1 3",
    "cuGraphBatchMemOpNodeGetParams n b = 1; 1 1; 1 1 3 1 3",
    "cuGraphBatchMemOpNodeSetParams n b = 1; 1 1; 1 1 3 1 3",
    "cuGraphAddMemsetNode o8 g 0 0 b c = 1; 1*4; 1 1 3 719 3",
    "cuGraphAddMemcpyNode o8 g 0 0 b c = 1; 1*4; 1 1 3 719 3",
    "cuProfilerStop = 0; ; 201 900 3 719 3",
    "cuMemAdvise_v2 j 64 1-7 1 = 0; 1 0*5 1; 201 900 3 719 3",
    "cuMemAdvise_v2 j 64 1-7 9 = 1; 1*7; 1 1 3 1 3",
    "cuMemAdvise_v2 j 64 3 0-6 = 1; 1 0*4 1 1; 1 1 3 1 3",
    "cuMemPrefetchAsync_v2 j #64 1 z s = 0; 1*4 0; 0 0 3 719 3",
    "cuMemPrefetchAsync_v2 j 64 0-6 0 s = 1; 1 0*4 1 1 1; 1 1 3 1 3",
    "cuMemAllocPitch_v2 o8 o8 8 0-1 4 = 1; 1 1 0; 1 1 3 1 3",
    "cuMemAllocPitch_v2 o8 o8 0-1 1 4 = 1; 1 1 0; 1 1 3 1 3",
    "cuMemCreate o8 2097152-2097153 q 0 = 0; 1 1 1; 0 0 3 0 3",
    "cuMemRelease 0-1 = 1; 400; 1 1 3 1 3",
    "cuPointerGetAttribute v4 8 j = 0=1; 1 1; 0=1 0=1 3 0=1 3",
    "cuPointerGetAttribute v4 2 h = 0=1; 1 1; 0=1 0=1 3 0=1 3",
    "cuPointerGetAttribute o8 3 h = 0; 1 1; 201 0 3 0 3",
    "cuPointerGetAttribute o8 4 h = 0; 1 1; 0 0 3 0 3",
    "cuMemPoolGetAttribute p 1 v4 = 0=1; 1 1; 0=1 900 3 0=1 3",
    "cuStreamIsCapturing 1 v4 = 0=0; 1; 201 0=0 3 719 3",
    "cuStreamBeginCapture_v2 1 0 = 900; ; 201 900 3 719 3",
    "cuStreamBeginCapture_v2 2 0 = 0; ; 201 0 3 719 3",
    "cuStreamAttachMemAsync 0 j 64 1-4 = 0; 1 0 1 1; 201 900 3 719 3",
    "cuStreamDestroy_v2 1 = 400; ; 400 400 3 400 3",
    "cuStreamGetPriority 1 v4 = 0=0; 1; 201 0=0 3 719 3",
    "cuStreamGetFlags 2 v4 = 0=0; 1; 201 0=0 3 719 3",
    "cuGraphAddEmptyNode o8 g b 1 = 1; 1 1 1; 1 1 3 1 3",
    "cuGraphLaunch yt 1 = 0; 1; 201 0 3 719 3",
    "cuMemcpy2D_v2 C = 0; 1*6 0 0 1 1 0 0 1*8 0 0 1 1 0 0 1 1 1 0 1 0; 201 0 3 719 3",
    "cuMemcpy2DUnaligned_v2 C = 0; 1*6 0 0 1 1 0 0 1*8 0 0 1 1 0 0 1 1 1 0 1 0; 201 0 3 719 3",
    "cuMemcpy2DAsync_v2 C s = 0; 1*6 0 0 1 1 0 0 1*8 0 0 1 1 0 0 1 1 1 0 1 0 0; 0 0 3 719 3",
    "cuMemcpy3D_v2 D = 0; 1*6 0 0 1 1 0 0 1 1 0*4 1*10 0 0 1 1 0 0 1 1 0*4 1*5 0 1 0 1 0; 201 0 3 719 3",
    "cuMemcpy3DAsync_v2 D s = 0; 1*6 0 0 1 1 0 0 1 1 0*4 1*10 0 0 1 1 0 0 1 1 0*4 1*5 0 1 0 1 0 0; 0 0 3 719 3",
    "cuGraphAddMemcpyNode o8 g 0 0 D c = 0; 1*8 0 0 1 1 0 0 1 1 0*4 1*10 0 0 1 1 0 0 1 1 0*4 1*5 0 1 0 1 0 0; 0 0 3 719 3",
    "cuGraphAddMemsetNode o8 g 0 0 E c = 0; 1*6 0 1 1 0 1 0 0; 0 0 3 719 3",
    "cuStreamBatchMemOp_v2 s 1 O 0 = 0; 0 801 0 1 1 0 0 1 1 0 0; 0 0 3 719 3",
    "cuStreamBatchMemOp_v2 s 1 P 0 = 0; 0 0 0 1 1 0 0 1 1 0 0; 0 0 3 719 3",
    "cuMemPoolCreate o8 Q = 0; 1 801 1 801 1 0*6; 0 900 3 0 3",
    "cuMemCreate o8 2097152 Q 0 = 0; 1 1 1 801 1 0*6; 0 0 3 0 3",
    "cuMemGetAllocationGranularity o8 Q 0 = 0; 1 0*10; 0 0 3 0 3",
    "cuGraphExecHostNodeSetParams yw w k = 1; 1 1 1; 1 1 3 1 3",
    "cuGraphExecHostNodeSetParams yv v k = 1; 1 1 1; 1 1 3 1 3",
    "cuGraphExecMemsetNodeSetParams yw w E c = 1; 1*13; 1 1 3 719 3",
    "cuGraphExecMemsetNodeSetParams yw w F c = 0; 1*4 0 0 0 1 1 0 1 1 0; 0 0 3 719 3",
    "cuGraphExecMemsetNodeSetParams yt t E c = 1; 1*13; 1 1 3 719 3",
    "cuGraphExecMemcpyNodeSetParams yw w D c = 1; 1*53; 1 1 3 719 3",
    "cuGraphExecEventRecordNodeSetEvent yv v e = 0; 1 1 1; 0 0 3 719 3",
    "cuGraphExecEventRecordNodeSetEvent yt t e = 1; 1 1 1; 1 1 3 719 3",
    "cuGraphExecEventWaitNodeSetEvent yv v e = 1; 1 1 1; 1 1 3 719 3",
    "cuGraphMemsetNodeSetParams w E = 0; 1*5 0 1 1 0 1 0; 0 0 3 0 3",
    "cuGraphMemsetNodeSetParams t E = 1; 1*11; 1 1 3 1 3",
    "cuGraphMemsetNodeGetParams w o40 = 0; 1 1; 0 0 3 0 3",
    "cuGraphMemsetNodeGetParams v o40 = 1; 1 1; 1 1 3 1 3",
    "cuGraphMemcpyNodeSetParams w D = 1; 1*51; 1 1 3 1 3",
    "cuGraphHostNodeSetParams w k = 1; 1 1; 1 1 3 1 3",
    "cuGraphHostNodeGetParams v o16 = 1; 1 1; 1 1 3 1 3",
    "cuGraphEventRecordNodeSetEvent t e = 1; 1 1; 1 1 3 719 3",
    "cuGraphEventRecordNodeGetEvent w o8 = 1; 1 1; 1 1 3 1 3",
    "cuGraphEventWaitNodeSetEvent v e = 1; 1 1; 1 1 3 719 3",
    "cuGraphNodeGetType t v4 = 0=3; 1 1; 0=3 0=3 3 0=3 3",
    "cuGraphNodeGetType v v4 = 0=7; 1 1; 0=7 0=7 3 0=7 3",
    "cuGraphNodeGetType w v4 = 0=2; 1 1; 0=2 0=2 3 0=2 3",
    "cuGraphNodeGetEnabled yw w v4 = 0=1; 1 1 1; 0=1 0=1 3 0=1 3",
    "cuGraphNodeGetEnabled yt t v4 = 1; 1 1 1; 1 1 3 1 3",
    "cuGraphNodeSetEnabled yw w 0-2 = 0; 1 1 0 0; 0 0 3 0 3",
    "cuGraphExecUpdate_v2 yt g b = 910; 1 1 910; 910 910 3 910 3",
    "cuMemsetD8_v2 0 0 0-1 = 0; 1; 201 0 3 719 3",
    "cuUserObjectRelease u 0-10 = 1; 1 0*9 1; 1 1 3 1 3",
    "cuMemPoolExportToShareableHandle o4 ps 1 z = 0; 1 1 1; 0 0 3 0 3",
    "cuGraphInstantiateWithParams o8 g I = 0; 1 1 0 1 0*6; 201 900 3 719 3",
    "cuGraphExecUpdate yt g ?8 o4 = 910++; 1 1 910+ 1; 0 0 3 0 3",
    "cuModuleLoadData o8 b = 0; 1 1; 201 0 3 719 3",
    "cuModuleGetFunction o8 mo nk = 0; 1 400 1; 0 0 3 719 3",
    "cuModuleUnload mo = 0; 400; 201 900 3 719 3",
    "cuLibraryLoadData o8 b 0 0 0 0 0 0 = 0; 1 1; 0 0 3 0 3",
    "cuLibraryGetModule o8 li = 0; 1 400; 201 0 3 719 3",
    "cuLibraryGetKernel o8 li nk = 0; 1 400 1; 0 0 3 0 3",
    "cuKernelGetFunction o8 ke = 0; 1 400; 201 0 3 719 3",
    "cuFuncGetAttribute v4 0-16 fu = 0=1024; 1 0=0 0=0 0=0 0=32 0=90 0=90 0=0 0=49152 0=-1 0=0*6 1 400; 0=1024 0=1024 3 719 3",
    "cuFuncSetAttribute fu 7-16 0 = 1; 400 0 0 1 0*5 1; 1 1 3 719 3",
    "cuFuncSetAttribute fu 8 232448-232449 = 0; 400 1; 0 0 3 719 3",
    "cuFuncSetAttribute fu 9 100-101 = 0; 400 1; 0 0 3 719 3",
    "cuFuncSetAttribute fu 11 4294967295-4294967296 = 1; 400 0; 1 1 3 719 3",
    "cuFuncSetAttribute fu 14 0-2 = 0; 400 0 1; 0 0 3 719 3",
    "cuFuncSetAttribute fu 15 0-3 = 0; 400 0 0 1; 0 0 3 719 3",
    "cuKernelGetAttribute v4 0 ke d = 0=1024; 1 400 101 101; 0=1024 0=1024 3 0=1024 3",
    "cuKernelSetAttribute 8 0 ke d = 0; 400 101 101; 201 0 3 719 3",
    "cuKernelSetCacheConfig ke 0 d = 0; 400 101 101; 201 0 3 719 3",
    "cuOccupancyMaxPotentialBlockSize v4 v4 fu 0 0 100-102 = 0=4224=64; 1 1 400 0=4224=64 0=4224=64; 0=4224=64 0=4224=64 3 719 3",
    "cuDeviceGetByPCIBusId v4 no = 0=0; 1 1; 0=0 0=0 3 0=0 3",
    "cuDeviceGetByPCIBusId v4 ns = 0=0; 1 1; 0=0 0=0 3 0=0 3",
    "cuDeviceGetLuid o8 v4 d = 801; 801 801 101 101; 801 801 3 801 3",
    "cuCtxCreate_v3 o8 0 0-1 z d = 0; 1 224 1 101 101; 0 0 3 0 3",
    "cuCtxCreate_v4 o8 N z d = 0; 1 0 0 224 224 0*4 1 101 101; 0 0 3 0 3",
    "cuDevicePrimaryCtxSetFlags_v2 d 0-10 = 0; 101 101 0 0 1 0 1 1 1 0 0 0; 0 0 3 0 3",
    "cuLogsCurrent o8 z = 0; 1 1; 0 0 3 0 0",
    "cuLogsDumpToMemory 0 b nn z = 0; 1 1 1; 0 0 3 0 1",
    "cuImportExternalSemaphore o8 b = 1; 1 1; 201 1 3 719 3",
    "cuMemAddressFree va 2097152-2097153 = 0; 1 1; 0 0 3 0 3",
    "cuMemAddressFree vb 2097152 = 1; 1; 1 1 3 1 3",
    "cuMemMap va 2097152 0-1 vm z = 0; 1*4; 0 0 3 0 3",
    "cuMemMap vb 2097152 0 vm 0 = 1; 1 1; 1 1 3 1 3",
    "cuMemUnmap vb 2097152-2097153 = 0; 1 1; 0 0 3 0 3",
    "cuMemSetAccess vb 2097152 A 1 = 0; 1*5; 0 0 3 0 3",
    "cuMemSetAccess vb 2097152 A 0-1 = 1; 1*5 0; 1 1 3 1 3",
    "cuMemGetAccess v8 l vb = 0=0; 1 1 1; 0=0 0=0 3 0=0 3",
    "cuMemRetainAllocationHandle o8 vb = 0; 1 1; 0 0 3 0 3",
    "cuGraphAddDependencies_v2 g b b 0 0-1 = 0; 1 0 0 1; 0 0 3 0 3",
    "cuGraphGetEdges_v2 g ?8 ?8 0 nu = 0; 1*4; 0 0 3 0 1",
    "cuGraphNodeGetDependencies_v2 n ?8 0 nu = 0; 1 0 1; 0 0 3 0 1",
];

const KERNEL: &CStr = c"kernel";

/// The byte in results before a call, to see whether it has written there.
const UNTOUCHED: u8 = 0xa5;

unsafe extern "C" fn nothing(_: *mut c_void) {}

/// A call with its arguments, the places in it, and with what each argument is wrong.
struct Prepared<'a> {
    name: &'a str,
    function: *mut c_void,
    words: Vec<usize>,
    places: Vec<Place<'a>>,
    wrong: Vec<Vec<usize>>,
}

/// The argument's number, the bytes there, and its letter.
type Place<'a> = (usize, Box<[u8]>, &'a str);

impl Prepared<'_> {
    /// The number of the handle that it gives, after a call without a place for it.
    fn makes(&mut self, nowhere: bool) -> u64 {
        if nowhere {
            let code = self.call(Some((self.places[0].0, 0)));
            assert!(code.starts_with('1'), "{}: {code}", self.name);
        }
        assert_eq!(self.call(None), "0", "{}", self.name);
        let handle: [u8; 8] = (*self.places[0].1).try_into().expect("a handle");
        u64::from_ne_bytes(handle) & 0xFF_FFFF
    }

    /// The code, with one argument replaced by one that is wrong.
    fn call(&mut self, replaced: Option<(usize, usize)>) -> String {
        type Function = unsafe extern "C" fn(
            usize,
            usize,
            usize,
            usize,
            usize,
            usize,
            usize,
            usize,
            usize,
            usize,
        ) -> u32;
        let mut words = [0; 10];
        words[..self.words.len()].copy_from_slice(&self.words);
        if let Some((at, which)) = replaced {
            words[at] = self.wrong[at][which];
        }
        // It takes as many of them as it has.
        let function: Function = unsafe { std::mem::transmute(self.function) };
        let [a, b, c, d, e, f, g, h, i, j] = words;
        let code = unsafe { function(a, b, c, d, e, f, g, h, i, j) };
        let mut text = code.to_string();
        let given = |place: &&Place<'_>| replaced.is_none_or(|(at, _)| at != place.0);
        for (_, place, kind) in self.places.iter().filter(given) {
            let written = place.iter().any(|byte| *byte != UNTOUCHED);
            match (code, written, *kind) {
                (OK, true, "v") => {
                    let number = match **place {
                        [a, b, c, d] => i64::from(i32::from_ne_bytes([a, b, c, d])),
                        ref bytes => i64::from_ne_bytes(bytes.try_into().expect("of 8 bytes")),
                    };
                    text += &format!("={number}");
                }
                (OK, false, "o" | "v") => text.push('-'),
                (OK, ..) | (_, false, _) => {}
                (_, true, _) => text.push('+'),
            }
        }
        text
    }
}

/// Of the names of calls whose first result is a handle.
const CREATE: [&str; 6] = ["Create", "AddEmpty", "AddChild", "Load", "Clone", "Instantiate"];

struct Table {
    raw: Raw,
    context: CUcontext,
    /// What the calls read and write.
    memory: Vec<Vec<u64>>,
    /// The graph and the node that come next, and belong to what has come last.
    graph: Option<usize>,
    node: Option<usize>,
}

impl Table {
    fn new(raw: Raw, context: CUcontext) -> Self {
        Self { raw, context, memory: Vec::new(), graph: None, node: None }
    }

    fn started() -> Self {
        // Nothing orders the calls of a row, which are about their codes.
        let raw = Raw::planting(builder());
        raw.soft.kernel(KERNEL.to_str().expect("text"), |_| ());
        let context = raw.retain(0);
        Self::new(raw, context)
    }

    fn memory(&mut self, words: &[u64]) -> usize {
        let mut memory = vec![0; 32];
        memory[..words.len()].copy_from_slice(words);
        self.memory.push(memory);
        self.memory.last().expect("one").as_ptr().expose_provenance()
    }

    /// Makes an object of the kind that the letter stands for.
    fn object(&mut self, letter: &str) -> usize {
        let function = nothing as unsafe extern "C" fn(*mut c_void) as usize;
        let made = match letter {
            "c" => return self.context.expose_provenance(),
            "f" => return function,
            "b" => return self.memory(&[]),
            // The parameters of a host node; a location; properties of memory or of a pool.
            "k" => return self.memory(&[function as u64]),
            "l" => return self.memory(&[1]),
            // A count, and a size; names of a kernel, and of a device as a whole and in short.
            "nu" => return self.memory(&[1]),
            "nn" => return self.memory(&[64]),
            "nk" => return KERNEL.as_ptr().expose_provenance(),
            "no" => return c"0000:01:00.0".as_ptr().expose_provenance(),
            "ns" => return c"01:00.0".as_ptr().expose_provenance(),
            "q" => return self.memory(&[1, 1]),
            // Of a pool that other processes may open.
            "qs" => return self.memory(&[1 | 1 << 32, 1]),
            "r" => {
                let event = self.raw.event(0);
                self.raw.record(event, null_mut());
                self.raw.sync(null_mut());
                return event.expose_provenance();
            }
            // With a node of this letter, which comes next.
            "yt" | "yv" | "yw" => {
                self.graph = Some(self.object("g"));
                let graph = self.graph;
                self.node = Some(self.object(&letter[1..]));
                self.graph = graph;
                return self.object("x");
            }
            // An address range to which memory is mapped.
            "vb" => {
                let [address, memory] = ["va", "vm"].map(|letter| self.object(letter));
                let map = format!("cuMemMap {address} 2097152 0 {memory} 0");
                assert_eq!(self.prepare(&map, true).call(None), "0");
                return address;
            }
            "va" => "cuMemAddressReserve o8 2097152 0 0 0",
            "vm" => "cuMemCreate o8 2097152 q 0",
            "mo" => "cuModuleLoadData o8 b",
            "li" => "cuLibraryLoadData o8 b 0 0 0 0 0 0",
            "fu" => "cuModuleGetFunction o8 mo nk",
            "ke" => "cuLibraryGetKernel o8 li nk",
            "ps" => "cuMemPoolCreate o8 qs",
            "s" => "cuStreamCreate o8 1",
            "e" => "cuEventCreate o8 2",
            "i" => "cuEventCreate o8 6",
            "m" => "cuMemAlloc_v2 o8 64",
            "j" => "cuMemAllocManaged o8 64 1",
            "h" => "cuMemHostAlloc o8 64 0",
            "a" => "cuMemAllocAsync o8 64 0",
            "p" => "cuMemPoolCreate o8 q",
            "u" => "cuUserObjectCreate o8 0 f 9 1",
            "g" => match self.graph.take() {
                Some(graph) => return graph,
                None => "cuGraphCreate o8 0",
            },
            "x" => "cuGraphInstantiateWithFlags o8 g 0",
            "n" => "cuGraphAddEmptyNode o8 g 0 0",
            "t" | "v" | "w" if self.node.is_some() => return self.node.take().expect("one"),
            "t" => "cuGraphAddHostNode o8 g 0 0 k",
            "v" => "cuGraphAddEventRecordNode o8 g 0 0 e",
            "w" => "cuGraphAddMemsetNode o8 g 0 0 F c",
            other => panic!("{other} is no argument"),
        };
        let mut made = self.prepare(made, true);
        assert_eq!(made.call(None), "0", "{letter}");
        usize::from_ne_bytes((*made.places[0].1).try_into().expect("a handle"))
    }

    /// The parameters of a call whose memory is used to its end.
    fn structure(&mut self, letter: &str) -> Vec<u64> {
        let [a, b] = [0; 2].map(|_| self.object("m") as u64);
        let (device, float) = (2, 4 << 32);
        match letter {
            "C" => vec![0, 0, device, 0, a, 0, 16, 0, 0, device, 0, b, 0, 16, 16, 4],
            "D" => {
                let [mut from, mut to] = [vec![0; 11], vec![0; 11]];
                for (side, address) in [(&mut from, a), (&mut to, b)] {
                    (side[4], side[6], side[9], side[10]) = (device, address, 8, 4);
                }
                [from, to, vec![8, 4, 2]].concat()
            }
            "E" => vec![a, 16, float, 4, 4],
            "F" => vec![a, 0, float, 16, 1],
            "O" => vec![2, a + 60, 5, 0, 0],
            "P" => vec![5, a + 56, 5, 0, 0],
            "Q" => vec![1, 1, 0, 0, 0],
            "A" => vec![1, 3],
            "I" | "N" => vec![0; 4],
            other => panic!("{other} is no structure"),
        }
    }

    /// A driver that is not initialised has no objects.
    fn prepare<'a>(&mut self, row: &'a str, objects: bool) -> Prepared<'a> {
        let mut words = row.split_whitespace();
        let name = words.next().expect("a name");
        let function = self.raw.resolve(&CString::new(name).expect("text"));
        assert!(!function.is_null(), "{row}");
        let (mut right, mut all) = (Vec::new(), Vec::new());
        let mut places = Vec::new();
        for (at, word) in words.enumerate() {
            let (kind, rest) = word.split_at(1);
            let number = |text: &str| text.parse::<usize>();
            let (word, wrong) = match (kind, number(rest)) {
                ("o" | "?" | "v", Ok(bytes)) => {
                    places.push((at, vec![UNTOUCHED; bytes].into_boxed_slice(), kind));
                    let place = places.last_mut().expect("one");
                    (place.1.as_mut_ptr().expose_provenance(), vec![0])
                }
                ("#", Ok(count)) => (count, vec![count + 1, 0]),
                ("d", _) => (0, vec![99, usize::MAX]),
                ("z", _) => (0, vec![1 << 29]),
                (capital, _) if capital.chars().all(|letter| letter.is_ascii_uppercase()) => {
                    let words = if objects { self.structure(word) } else { vec![0] };
                    let changed = (0..words.len()).flat_map(|at| [(at, 1), (at, u64::MAX)]);
                    let wrong = changed.map(|(at, by)| {
                        let mut words = words.clone();
                        words[at] = words[at].wrapping_add(by);
                        self.memory(&words)
                    });
                    let wrong = wrong.collect();
                    (self.memory(&words), wrong)
                }
                _ => match (word.split_once('-'), number(word)) {
                    (Some((first, last)), _) => {
                        let [first, last] = [first, last].map(|end| number(end).expect("a number"));
                        (first, (first + 1..=last).collect())
                    }
                    (None, Ok(number)) => (number, vec![]),
                    (None, Err(_)) if objects || "bfklq".contains(word) => {
                        (self.object(word), vec![0])
                    }
                    (None, Err(_)) => (0, vec![]),
                },
            };
            right.push(word);
            all.push(wrong);
        }
        Prepared { name, function, words: right, places, wrong: all }
    }
}

/// Many equal codes are written once.
fn join(codes: &[String]) -> String {
    let runs = codes.chunk_by(|one, two| one == two).map(|run| match run.len() {
        count @ 4.. => format!("{}*{count}", run[0]),
        _ => run.join(" "),
    });
    runs.collect::<Vec<_>>().join(" ")
}

fn builder() -> Builder {
    SoftDriver::builder().version(13, 5).devices(2)
}

fn end_capture(raw: &Raw, stream: CUstream) {
    let _ = unsafe { (raw.cuStreamEndCapture)(stream, &mut null_mut()) };
}

#[test]
fn each_argument_and_state_has_its_code() {
    let rows: Vec<&str> = CALLS.iter().map(|row| row.split(" =").next().expect("a call")).collect();
    let mut found: Vec<Vec<String>> = Vec::new();
    for row in &rows {
        let wrong = Table::started().prepare(row, true).wrong.into_iter().enumerate();
        let wrong = wrong.flat_map(|(at, all)| (0..all.len()).map(move |which| (at, which)));
        let call = |replaced| {
            let mut table = Table::started();
            let mut prepared = table.prepare(row, true);
            let before = table.raw.soft.live();
            let code = prepared.call(replaced);
            let after = table.raw.soft.live();
            assert!(code.starts_with('0') || after == before, "{row} fails, and leaves {after}");
            code
        };
        let wrong: Vec<_> = wrong.map(|wrong| call(Some(wrong))).collect();
        // Without a place for its handle nothing is made: the next one has the number of the first.
        if CREATE.iter().any(|part| row.contains(part)) && call(None) == "0" {
            let first = Table::started().prepare(row, true).makes(false);
            assert_eq!(Table::started().prepare(row, true).makes(true), first, "{row}");
        }
        found.push(vec![format!("{}; {};", call(None), join(&wrong))]);
    }
    type Change = fn(&Raw, CUstream);
    let states: [(Change, Change); 4] = [
        (|raw, _| raw.set_current(null_mut()), |_, _| ()),
        (
            |raw, stream| {
                let global = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL;
                assert_eq!(unsafe { (raw.cuStreamBeginCapture_v2)(stream, global) }.0, OK);
            },
            end_capture,
        ),
        (|raw, _| raw.soft.pretend_forked(true), |raw, _| raw.soft.pretend_forked(false)),
        (|raw, _| raw.soft.fail_contexts(CUresult::CUDA_ERROR_LAUNCH_FAILED), |_, _| ()),
    ];
    for (change, back) in states {
        let mut table = Table::started();
        let stream = table.raw.stream(1);
        let prepared: Vec<_> = rows.iter().map(|row| table.prepare(row, true)).collect();
        for (mut prepared, codes) in prepared.into_iter().zip(&mut found) {
            change(&table.raw, stream);
            codes.push(prepared.call(None));
            back(&table.raw, stream);
            if prepared.name.starts_with("cuStreamBeginCapture") {
                end_capture(&table.raw, std::ptr::with_exposed_provenance_mut(prepared.words[0]));
            }
            let _ = unsafe { (table.raw.cuCtxSetCurrent)(table.context) };
        }
    }
    let mut bare = Table::new(Raw::bare(builder()), null_mut());
    for (row, codes) in rows.iter().zip(&mut found) {
        codes.push(bare.prepare(row, false).call(None));
    }
    let found = rows.iter().zip(found).map(|(row, codes)| format!("{row} = {}", codes.join(" ")));
    let other = found.zip(CALLS).filter(|(found, row)| found != *row);
    let other: Vec<_> = other.map(|(found, _)| format!("    \"{found}\",")).collect();
    assert!(other.is_empty(), "otherwise:\n{}", other.join("\n"));
}
