//! Entry points that the raw layer does not declare: the list here has their types, and each must
//! be passed as the driver's.

use std::ffi::{CStr, c_char, c_void};

use cuda_events::sys::more::*;

use crate::raw::{Rig, exported_name};

impl Rig {
    /// The function with this exported name. A driver of the version that the rule needs has it.
    ///
    /// # Safety
    ///
    /// `F` is the type of a function pointer, and the driver's declaration of that name.
    pub unsafe fn entry<F: Copy>(&self, name: &CStr) -> F {
        let address = self.export(name);
        assert!(!address.is_null(), "{name:?} is not there");
        const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
        // SAFETY: the caller says that it is a function of this type.
        unsafe { std::mem::transmute_copy(&address) }
    }
}

/// Defines calls in the same way as those of `Raw`, with the same duties for the holder of a `Rig`.
macro_rules! exported {
    ($($name:ident($($argument:ident: $type:ty),*);)*) => {
        #[allow(non_snake_case, clippy::too_many_arguments)]
        impl Rig {
            $(pub fn $name(&self, $($argument: $type),*) -> CUresult {
                type Function = unsafe extern "C" fn($($type),*) -> CUresult;
                // SAFETY: the list below has the driver's declarations.
                let call = unsafe { self.entry::<Function>(exported_name!($name)) };
                // SAFETY: the arguments are as `Raw::new` requires.
                unsafe { call($($argument),*) }
            })*
        }

        // What the raw layer does not declare, `wrapper-more.h` does. Handles may be pointers to
        // anything, the structures are the generated ones.
        $(const _: () = is_called_as::<unsafe extern "C" fn($($type),*) -> CUresult, types::$name>();)*
    };
}

cuda_events::__passing!(returns CUresult);

cuda_events::__passing! { structures
    CUDA_GRAPH_INSTANTIATE_PARAMS, CUDA_MEMCPY2D, CUDA_MEMCPY3D, CUDA_MEMCPY3D_PEER,
    CUDA_MEMSET_NODE_PARAMS, CUctx_st, CUgraph_st, CUgraphEdgeData, CUgraphExec_st,
    CUgraphExecUpdateResultInfo, CUgraphNode_st, CUhostFn, CUipcMemHandle, CUmemAccessDesc,
    CUmemAllocationProp, CUmemLocation, CUmemPoolProps, CUmemPoolPtrExportData, CUstream_st,
    CUuuid,
}

exported! {
    cuGetExportTable(table: *mut *const c_void, id: *const CUuuid);
    cuDeviceGetUuid(uuid: *mut CUuuid, device: CUdevice);
    cuModuleGetLoadingMode(mode: *mut u32);
    cuCtxSetLimit(limit: u32, value: usize);
    cuMemAddressReserve(address: *mut CUdeviceptr, bytes: usize, alignment: usize,
        wanted: CUdeviceptr, flags: u64);
    cuMemAddressFree(address: CUdeviceptr, bytes: usize);
    cuMemCreate(handle: *mut u64, bytes: usize, props: *const CUmemAllocationProp, flags: u64);
    cuMemRelease(handle: u64);
    cuMemMap(address: CUdeviceptr, bytes: usize, offset: usize, handle: u64, flags: u64);
    cuMemUnmap(address: CUdeviceptr, bytes: usize);
    cuMemSetAccess(address: CUdeviceptr, bytes: usize, accesses: *const CUmemAccessDesc, count: usize);
    cuMemGetAccess(flags: *mut u64, location: *const CUmemLocation, address: CUdeviceptr);
    cuMemGetAllocationGranularity(bytes: *mut usize, props: *const CUmemAllocationProp, option: u32);
    cuMemGetAllocationPropertiesFromHandle(props: *mut CUmemAllocationProp, handle: u64);
    cuMemRetainAllocationHandle(handle: *mut u64, address: *mut c_void);
    cuMemHostRegister_v2(memory: *mut c_void, bytes: usize, flags: u32);
    cuMemHostUnregister(memory: *mut c_void);
    cuMemHostGetFlags(flags: *mut u32, memory: *mut c_void);
    cuProfilerStart();
    cuProfilerStop();
    cuModuleLoadData(module: *mut *mut c_void, image: *const c_void);
    cuModuleUnload(module: *mut c_void);
    cuModuleGetFunction(function: *mut *mut c_void, module: *mut c_void, name: *const c_char);
    cuLibraryLoadData(library: *mut *mut c_void, code: *const c_void, options: *mut u32,
        values: *mut *mut c_void, count: u32, own: *mut u32, own_values: *mut *mut c_void,
        own_count: u32);
    cuLibraryGetKernel(kernel: *mut *mut c_void, library: *mut c_void, name: *const c_char);
    cuLibraryGetModule(module: *mut *mut c_void, library: *mut c_void);
    cuLibraryUnload(library: *mut c_void);
    cuKernelGetFunction(function: *mut *mut c_void, kernel: *mut c_void);
    cuLaunchKernel(function: *mut c_void, grid_x: u32, grid_y: u32, grid_z: u32, block_x: u32,
        block_y: u32, block_z: u32, shared: u32, stream: CUstream, each: *mut *mut c_void,
        extra: *mut *mut c_void);
    cuKernelGetName(name: *mut *const c_char, kernel: *mut c_void);
    cuFuncGetName(name: *mut *const c_char, function: *mut c_void);
    cuCtxAttach(context: *mut CUcontext, flags: u32);
    cuCtxDetach(context: CUcontext);
    cuMemAllocPitch_v2(address: *mut CUdeviceptr, pitch: *mut usize, width: usize, height: usize,
        element: u32);
    cuMemsetD8_v2(address: CUdeviceptr, value: u8, count: usize);
    cuMemcpyDtoD_v2(destination: CUdeviceptr, source: CUdeviceptr, bytes: usize);
    cuMemcpyHtoD_v2(destination: CUdeviceptr, source: *const c_void, bytes: usize);
    cuMemcpyDtoH_v2(destination: *mut c_void, source: CUdeviceptr, bytes: usize);
    cuMemAllocManaged(address: *mut CUdeviceptr, bytes: usize, flags: u32);
    cuMemPrefetchAsync(address: CUdeviceptr, bytes: usize, device: CUdevice, stream: CUstream);
    cuCtxSetCacheConfig(config: u32);
    cuCtxSetSharedMemConfig(config: u32);
    cuMemAdvise(address: CUdeviceptr, bytes: usize, advice: u32, device: CUdevice);
    cuPointerGetAttribute(value: *mut c_void, attribute: u32, address: CUdeviceptr);
    cuMemcpy3DPeer(copy: *const CUDA_MEMCPY3D_PEER);
    cuMemcpy3DPeerAsync(copy: *const CUDA_MEMCPY3D_PEER, stream: CUstream);
    cuMemcpyPeer(destination: CUdeviceptr, destination_context: CUcontext, source: CUdeviceptr,
        source_context: CUcontext, bytes: usize);
    cuMemcpyPeerAsync(destination: CUdeviceptr, destination_context: CUcontext,
        source: CUdeviceptr, source_context: CUcontext, bytes: usize, stream: CUstream);
    cuDeviceCanAccessPeer(can: *mut i32, device: CUdevice, peer: CUdevice);
    cuCtxEnablePeerAccess(peer: CUcontext, flags: u32);
    cuCtxDisablePeerAccess(peer: CUcontext);
    cuDeviceGetP2PAttribute(value: *mut i32, attribute: u32, device: CUdevice, peer: CUdevice);
    cuMemAllocAsync(address: *mut CUdeviceptr, bytes: usize, stream: CUstream);
    cuMemAllocFromPoolAsync(address: *mut CUdeviceptr, bytes: usize, pool: *mut c_void,
        stream: CUstream);
    cuMemFreeAsync(address: CUdeviceptr, stream: CUstream);
    cuMemPoolCreate(pool: *mut *mut c_void, props: *const CUmemPoolProps);
    cuMemPoolDestroy(pool: *mut c_void);
    cuMemPoolGetAttribute(pool: *mut c_void, attribute: u32, value: *mut c_void);
    cuMemPoolSetAttribute(pool: *mut c_void, attribute: u32, value: *mut c_void);
    cuDeviceGetDefaultMemPool(pool: *mut *mut c_void, device: CUdevice);
    cuDeviceGetMemPool(pool: *mut *mut c_void, device: CUdevice);
    cuDeviceSetMemPool(device: CUdevice, pool: *mut c_void);
    cuMemPoolExportToShareableHandle(handle: *mut c_void, pool: *mut c_void, kind: u32,
        flags: u64);
    cuMemPoolImportFromShareableHandle(pool: *mut *mut c_void, handle: *mut c_void, kind: u32,
        flags: u64);
    cuMemPoolExportPointer(data: *mut CUmemPoolPtrExportData, address: CUdeviceptr);
    cuMemPoolImportPointer(address: *mut CUdeviceptr, pool: *mut c_void,
        data: *const CUmemPoolPtrExportData);
    cuMemPoolTrimTo(pool: *mut c_void, keep: usize);
    cuMemPoolSetAccess(pool: *mut c_void, access: *const CUmemAccessDesc, count: usize);
    cuMemPoolGetAccess(flags: *mut u32, pool: *mut c_void, location: *mut CUmemLocation);
    cuMemGetAddressRange_v2(base: *mut CUdeviceptr, size: *mut usize, address: CUdeviceptr);
    cuPointerGetAttributes(count: u32, attributes: *mut u32, values: *mut *mut c_void,
        address: CUdeviceptr);
    cuMemPrefetchAsync_v2(address: CUdeviceptr, bytes: usize, location: CUmemLocation, flags: u32,
        stream: CUstream);
    cuStreamAttachMemAsync(stream: CUstream, address: CUdeviceptr, bytes: usize, flags: u32);
    cuMemcpyDtoDAsync_v2(destination: CUdeviceptr, source: CUdeviceptr, bytes: usize,
        stream: CUstream);
    cuMemcpy3D_v2(copy: *const CUDA_MEMCPY3D);
    cuMemcpyAsync(destination: CUdeviceptr, source: CUdeviceptr, bytes: usize, stream: CUstream);
    cuMemcpy2D_v2(copy: *const CUDA_MEMCPY2D);
    cuMemcpy2DUnaligned_v2(copy: *const CUDA_MEMCPY2D);
    cuMemcpy2DAsync_v2(copy: *const CUDA_MEMCPY2D, stream: CUstream);
    cuMemsetD2D16_v2(address: CUdeviceptr, pitch: usize, value: u16, width: usize, height: usize);
    cuGraphGetNodes(graph: CUgraph, nodes: *mut CUgraphNode, count: *mut usize);
    cuGraphGetEdges(graph: CUgraph, from: *mut CUgraphNode, to: *mut CUgraphNode,
        count: *mut usize);
    cuGraphNodeGetType(node: CUgraphNode, kind: *mut u32);
    cuGraphAddDependencies(graph: CUgraph, from: *const CUgraphNode, to: *const CUgraphNode,
        count: usize);
    cuGraphRemoveDependencies(graph: CUgraph, from: *const CUgraphNode, to: *const CUgraphNode,
        count: usize);
    cuGraphDestroyNode(node: CUgraphNode);
    cuGraphAddMemsetNode(node: *mut CUgraphNode, graph: CUgraph, dependencies: *const CUgraphNode,
        count: usize, params: *const CUDA_MEMSET_NODE_PARAMS, context: CUcontext);
    cuGraphMemsetNodeGetParams(node: CUgraphNode, params: *mut CUDA_MEMSET_NODE_PARAMS);
    cuGraphMemsetNodeSetParams(node: CUgraphNode, params: *const CUDA_MEMSET_NODE_PARAMS);
    cuGraphExecMemsetNodeSetParams(exec: CUgraphExec, node: CUgraphNode,
        params: *const CUDA_MEMSET_NODE_PARAMS, context: CUcontext);
    cuGraphAddMemcpyNode(node: *mut CUgraphNode, graph: CUgraph, dependencies: *const CUgraphNode,
        count: usize, params: *const CUDA_MEMCPY3D, context: CUcontext);
    cuGraphAddChildGraphNode(node: *mut CUgraphNode, graph: CUgraph,
        dependencies: *const CUgraphNode, count: usize, child: CUgraph);
    cuGraphChildGraphNodeGetGraph(node: CUgraphNode, graph: *mut CUgraph);
    cuGraphExecUpdate_v2(exec: CUgraphExec, graph: CUgraph, info: *mut CUgraphExecUpdateResultInfo);
    cuGraphClone(clone: *mut CUgraph, graph: CUgraph);
    cuGraphNodeFindInClone(node: *mut CUgraphNode, original: CUgraphNode, clone: CUgraph);
    cuGraphNodeGetContainingGraph(node: CUgraphNode, graph: *mut CUgraph);
    cuGraphGetRootNodes(graph: CUgraph, nodes: *mut CUgraphNode, count: *mut usize);
    cuGraphNodeGetDependencies(node: CUgraphNode, nodes: *mut CUgraphNode, count: *mut usize);
    cuGraphNodeGetDependentNodes(node: CUgraphNode, nodes: *mut CUgraphNode, count: *mut usize);
    cuGraphMemcpyNodeGetParams(node: CUgraphNode, params: *mut CUDA_MEMCPY3D);
    cuGraphMemcpyNodeSetParams(node: CUgraphNode, params: *const CUDA_MEMCPY3D);
    cuGraphExecMemcpyNodeSetParams(exec: CUgraphExec, node: CUgraphNode, params: *const CUDA_MEMCPY3D,
        context: CUcontext);
    cuGraphNodeSetEnabled(exec: CUgraphExec, node: CUgraphNode, enabled: u32);
    cuGraphNodeGetEnabled(exec: CUgraphExec, node: CUgraphNode, enabled: *mut u32);
    cuGraphExecUpdate(exec: CUgraphExec, graph: CUgraph, node: *mut CUgraphNode, result: *mut u32);
    cuGraphInstantiateWithParams(exec: *mut CUgraphExec, graph: CUgraph,
        params: *mut CUDA_GRAPH_INSTANTIATE_PARAMS);
    cuGraphExecGetFlags(exec: CUgraphExec, flags: *mut u64);
    cuUserObjectCreate(object: *mut *mut c_void, data: *mut c_void, destroy: CUhostFn, count: u32,
        flags: u32);
    cuUserObjectRetain(object: *mut c_void, count: u32);
    cuUserObjectRelease(object: *mut c_void, count: u32);
    cuGraphRetainUserObject(graph: CUgraph, object: *mut c_void, count: u32, flags: u32);
    cuGraphReleaseUserObject(graph: CUgraph, object: *mut c_void, count: u32);
    cuGraphAddEmptyNode(node: *mut CUgraphNode, graph: CUgraph, dependencies: *const CUgraphNode,
        count: usize);
}
