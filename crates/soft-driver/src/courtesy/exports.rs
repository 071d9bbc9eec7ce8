//! The list of exports that `cuda-events` does not bind: older forms of what it binds, and what other
//! programs call. The form of a line is that of `front/exports.rs`.

/// Calls a callback with the lines that it is given and those of this list.
#[macro_export]
#[doc(hidden)]
macro_rules! for_each_courtesy_export {
    ($callback:ident $($bound:tt)*) => { $callback! {
        $($bound)*

        cuGetExportTable 3000
            => get_export_table(table: *mut *const c_void, id: *const CUuuid);
        cuModuleGetLoadingMode 11070 => module_get_loading_mode(mode: *mut c_int);
        cuProfilerStart 4000 => profiler_switch();
        cuProfilerStop 4000 => profiler_switch();
        cuKernelGetName 12030
            => function_name(name: *mut *const c_uchar, function: *mut c_void);
        cuFuncGetName 12030
            => function_name(name: *mut *const c_uchar, function: *mut c_void);
        cuDevicePrimaryCtxRelease 7000 => device_primary_ctx_release(device: CUdevice);
        cuDevicePrimaryCtxReset 7000 => device_primary_ctx_reset(device: CUdevice);
        cuDevicePrimaryCtxReset_v2 11000 => device_primary_ctx_reset(device: CUdevice);
        cuDevicePrimaryCtxSetFlags 7000
            => device_primary_ctx_set_flags(device: CUdevice, flags: c_uint);
        cuDevicePrimaryCtxSetFlags_v2 11000
            => device_primary_ctx_set_flags(device: CUdevice, flags: c_uint);
        cuDeviceComputeCapability 2000
            => device_compute_capability(major: *mut c_int, minor: *mut c_int, device: CUdevice);
        cuDeviceCanAccessPeer 4000
            => device_can_access_peer(can: *mut c_int, device: CUdevice, peer: CUdevice);
        cuDeviceGetPCIBusId 4010
            => device_get_pci_bus_id(text: *mut c_uchar, length: c_int, device: CUdevice);
        cuDeviceGetByPCIBusId 4010
            => device_get_by_pci_bus_id(device: *mut CUdevice, text: *const c_uchar);
        cuCtxCreate_v3 11040 => ctx_create_v3(context: *mut CUcontext,
            params: *mut CUexecAffinityParam, count: c_int, flags: c_uint, device: CUdevice);
        cuCtxDestroy 2000 => ctx_destroy(context: CUcontext);
        cuCtxPushCurrent 2000 => ctx_push_current(context: CUcontext);
        cuCtxPopCurrent 2000 => ctx_pop_current(context: *mut CUcontext);
        cuCtxAttach 2000 => ctx_attach(context: *mut CUcontext, flags: c_uint);
        cuCtxDetach 2000 => ctx_detach(context: CUcontext);
        cuCtxSetFlags 12010 => ctx_set_flags(flags: c_uint);
        cuCtxGetApiVersion 3020 => ctx_get_api_version(context: CUcontext, version: *mut c_uint);
        cuCtxGetLimit 3010 => ctx_get_limit(value: *mut usize, limit: c_uint);
        cuCtxSetLimit 3010 => ctx_set_limit(limit: c_uint, value: usize);
        cuCtxGetCacheConfig 3020 => ctx_get_cache_config(config: *mut c_uint);
        cuCtxSetCacheConfig 3020 => ctx_set_cache_config(config: c_uint);
        cuCtxGetSharedMemConfig 4020 => ctx_get_shared_mem_config(config: *mut c_uint);
        cuCtxSetSharedMemConfig 4020 => ctx_set_shared_mem_config(config: c_uint);
        cuCtxResetPersistingL2Cache 11000 => ctx_reset_persisting_l2_cache();
        cuCtxEnablePeerAccess 4000 => ctx_enable_peer_access(peer: CUcontext, flags: c_uint);
        cuCtxDisablePeerAccess 4000 => ctx_disable_peer_access(peer: CUcontext);
        cuEventDestroy 2000 => event_destroy(event: CUevent);
        cuIpcOpenMemHandle 4010
            => ipc_open_mem_handle(address: *mut CUdeviceptr, handle: MemHandle, flags: c_uint);
        cuStreamDestroy 2000 => stream_destroy(stream: CUstream);

        cuStreamBeginCapture 10000,
        cuStreamBeginCapture_ptsz 10000 => stream_begin_capture_v1(stream: CUstream);
        cuMemAllocPitch_v2 3020
            => mem_alloc_pitch(address: *mut CUdeviceptr, pitch: *mut usize, width: usize,
                height: usize, element: c_uint);
        cuMemAllocManaged 6000
            => mem_alloc_managed(address: *mut CUdeviceptr, bytes: usize, flags: c_uint);
        cuMemPrefetchAsync 8000, cuMemPrefetchAsync_ptsz 8000
            => mem_prefetch_async(address: CUdeviceptr, bytes: usize, device: CUdevice,
                stream: CUstream);
        cuMemPrefetchAsync_v2 12020, cuMemPrefetchAsync_v2_ptsz 12020
            => mem_prefetch_async_v2(address: CUdeviceptr, bytes: usize, goal: Location,
                flags: c_uint, stream: CUstream);
        cuMemAdvise 8000
            => mem_advise(address: CUdeviceptr, bytes: usize, advice: c_uint, device: CUdevice);
        cuMemAdvise_v2 12020
            => mem_advise_v2(address: CUdeviceptr, bytes: usize, advice: c_uint, goal: Location);
        cuMemcpyPeer 4000, cuMemcpyPeer_ptds 7000
            => memcpy_peer(destination: CUdeviceptr, destination_context: CUcontext,
                source: CUdeviceptr, source_context: CUcontext, bytes: usize);
        cuMemcpyPeerAsync 4000, cuMemcpyPeerAsync_ptsz 7000
            => memcpy_peer_async(destination: CUdeviceptr, destination_context: CUcontext,
                source: CUdeviceptr, source_context: CUcontext, bytes: usize, stream: CUstream);
        cuDeviceGetP2PAttribute 8000
            => device_get_p2p_attribute(value: *mut c_int, attribute: c_uint, device: CUdevice,
                peer: CUdevice);
        cuMemAllocAsync 11020, cuMemAllocAsync_ptsz 11020
            => mem_alloc_async(address: *mut CUdeviceptr, bytes: usize, stream: CUstream);
        cuMemAllocFromPoolAsync 11020, cuMemAllocFromPoolAsync_ptsz 11020
            => mem_alloc_from_pool_async(address: *mut CUdeviceptr, bytes: usize,
                pool: *mut c_void, stream: CUstream);
        cuMemFreeAsync 11020, cuMemFreeAsync_ptsz 11020
            => mem_free_async(address: CUdeviceptr, stream: CUstream);
        cuMemPoolCreate 11020
            => mem_pool_create(pool: *mut *mut c_void, props: *const PoolProps);
        cuMemPoolDestroy 11020 => mem_pool_destroy(pool: *mut c_void);
        cuMemPoolTrimTo 11020 => mem_pool_trim_to(pool: *mut c_void, keep: usize);
        cuMemPoolSetAttribute 11020
            => mem_pool_set_attribute(pool: *mut c_void, attribute: c_uint, value: *mut c_void);
        cuMemPoolGetAttribute 11020
            => mem_pool_get_attribute(pool: *mut c_void, attribute: c_uint, value: *mut c_void);
        cuMemPoolSetAccess 11020
            => mem_pool_set_access(pool: *mut c_void, descriptions: *const AccessDesc,
                count: usize);
        cuMemPoolGetAccess 11020
            => mem_pool_get_access(flags: *mut c_uint, pool: *mut c_void,
                location: *const Location);
        cuMemPoolExportToShareableHandle 11020
            => mem_pool_export_to_shareable_handle(handle: *mut c_void, pool: *mut c_void,
                handle_type: c_uint, flags: c_ulonglong);
        cuMemPoolImportFromShareableHandle 11020
            => mem_pool_import_from_shareable_handle(pool: *mut *mut c_void, handle: *mut c_void,
                handle_type: c_uint, flags: c_ulonglong);
        cuMemPoolExportPointer 11020
            => mem_pool_export_pointer(data: *mut PoolPointer, address: CUdeviceptr);
        cuMemPoolImportPointer 11020
            => mem_pool_import_pointer(address: *mut CUdeviceptr, pool: *mut c_void,
                data: *const PoolPointer);
        cuDeviceGetDefaultMemPool 11020
            => device_get_default_mem_pool(pool: *mut *mut c_void, device: CUdevice);
        cuDeviceGetMemPool 11020
            => device_get_mem_pool(pool: *mut *mut c_void, device: CUdevice);
        cuDeviceSetMemPool 11020
            => device_set_mem_pool(device: CUdevice, pool: *mut c_void);
        cuMemGetDefaultMemPool 13000
            => mem_get_default_mem_pool(pool: *mut *mut c_void, location: *const Location,
                alloc_type: c_uint);
        cuMemGetMemPool 13000
            => mem_get_mem_pool(pool: *mut *mut c_void, location: *const Location,
                alloc_type: c_uint);
        cuMemSetMemPool 13000
            => mem_set_mem_pool(location: *const Location, alloc_type: c_uint,
                pool: *mut c_void);
        cuMemcpyAsync 4000, cuMemcpyAsync_ptsz 7000
            => memcpy_async(destination: CUdeviceptr, source: CUdeviceptr, bytes: usize,
                stream: CUstream);
        cuMemsetD16Async 3020,
        cuMemsetD16Async_ptsz 7000
            => memset_d16_async(destination: CUdeviceptr, value: c_ushort, count: usize,
                stream: CUstream);
        cuMemcpy 4000, cuMemcpy_ptds 7000
            => memcpy(destination: CUdeviceptr, source: CUdeviceptr, bytes: usize);
        cuMemcpyHtoD_v2 3020,
        cuMemcpyHtoD_v2_ptds 7000
            => memcpy_h_to_d(destination: CUdeviceptr, source: *const c_void, bytes: usize);
        cuMemcpyDtoH_v2 3020,
        cuMemcpyDtoH_v2_ptds 7000
            => memcpy_d_to_h(destination: *mut c_void, source: CUdeviceptr, bytes: usize);
        cuMemcpyDtoD_v2 3020,
        cuMemcpyDtoD_v2_ptds 7000
            => memcpy_d_to_d(destination: CUdeviceptr, source: CUdeviceptr, bytes: usize);
        cuMemsetD8_v2 3020, cuMemsetD8_v2_ptds 7000
            => memset_d8(destination: CUdeviceptr, value: c_uchar, count: usize);
        cuMemsetD16_v2 3020, cuMemsetD16_v2_ptds 7000
            => memset_d16(destination: CUdeviceptr, value: c_ushort, count: usize);
        cuMemsetD32_v2 3020, cuMemsetD32_v2_ptds 7000
            => memset_d32(destination: CUdeviceptr, value: c_uint, count: usize);
        cuMemcpy2D_v2 3020, cuMemcpy2D_v2_ptds 7000 => memcpy_2d(rows: *const Copy2D);
        cuMemcpy2DUnaligned_v2 3020,
        cuMemcpy2DUnaligned_v2_ptds 7000 => memcpy_2d(rows: *const Copy2D);
        cuMemcpy2DAsync_v2 3020,
        cuMemcpy2DAsync_v2_ptsz 7000 => memcpy_2d_async(rows: *const Copy2D, stream: CUstream);
        cuMemcpy3D_v2 3020, cuMemcpy3D_v2_ptds 7000 => memcpy_3d(layers: *const Copy3D);
        cuMemcpy3DAsync_v2 3020,
        cuMemcpy3DAsync_v2_ptsz 7000 => memcpy_3d_async(layers: *const Copy3D, stream: CUstream);
        cuMemsetD2D8_v2 3020, cuMemsetD2D8_v2_ptds 7000
            => memset_2d_8(destination: CUdeviceptr, pitch: usize, value: c_uchar, width: usize,
                height: usize);
        cuMemsetD2D8Async 3020, cuMemsetD2D8Async_ptsz 7000
            => memset_2d_8_async(destination: CUdeviceptr, pitch: usize, value: c_uchar,
                width: usize, height: usize, stream: CUstream);
        cuMemsetD2D16_v2 3020, cuMemsetD2D16_v2_ptds 7000
            => memset_2d_16(destination: CUdeviceptr, pitch: usize, value: c_ushort, width: usize,
                height: usize);
        cuMemsetD2D16Async 3020, cuMemsetD2D16Async_ptsz 7000
            => memset_2d_16_async(destination: CUdeviceptr, pitch: usize, value: c_ushort,
                width: usize, height: usize, stream: CUstream);
        cuMemsetD2D32_v2 3020, cuMemsetD2D32_v2_ptds 7000
            => memset_2d_32(destination: CUdeviceptr, pitch: usize, value: c_uint, width: usize,
                height: usize);
        cuMemsetD2D32Async 3020, cuMemsetD2D32Async_ptsz 7000
            => memset_2d_32_async(destination: CUdeviceptr, pitch: usize, value: c_uint,
                width: usize, height: usize, stream: CUstream);
        cuMemAllocHost_v2 3020 => mem_alloc_host(memory: *mut *mut c_void, bytes: usize);
        cuMemHostGetFlags 2030 => mem_host_get_flags(flags: *mut c_uint, memory: *mut c_void);
        cuMemHostUnregister 4000 => mem_host_unregister(memory: *mut c_void);
        cuPointerGetAttribute 4000
            => pointer_get_attribute(value: *mut c_void, attribute: c_uint, address: CUdeviceptr);
        cuPointerGetAttributes 7000
            => pointer_get_attributes(count: c_uint, attributes: *mut c_uint,
                values: *mut *mut c_void, address: CUdeviceptr);
        cuMemGetAddressRange_v2 3020
            => mem_get_address_range(base: *mut CUdeviceptr, size: *mut usize,
                address: CUdeviceptr);
        cuGraphInstantiate 10000
            => graph_instantiate(exec: *mut CUgraphExec, graph: CUgraph,
                error_node: *mut CUgraphNode, log: *mut c_uchar, log_size: usize);
        cuGraphAddDependencies 10000
            => graph_add_dependencies(graph: CUgraph, from: *const CUgraphNode,
                to: *const CUgraphNode, count: usize);
        cuGraphAddDependencies_v2 12030
            => graph_add_dependencies_v2(graph: CUgraph, from: *const CUgraphNode,
                to: *const CUgraphNode, edges: *const CUgraphEdgeData, count: usize);
        cuGraphRemoveDependencies 10000
            => graph_remove_dependencies(graph: CUgraph, from: *const CUgraphNode,
                to: *const CUgraphNode, count: usize);
        cuGraphRemoveDependencies_v2 12030
            => graph_remove_dependencies_v2(graph: CUgraph, from: *const CUgraphNode,
                to: *const CUgraphNode, edges: *const CUgraphEdgeData, count: usize);
        cuGraphDestroyNode 10000 => graph_destroy_node(node: CUgraphNode);
        cuGraphAddMemsetNode 10000
            => graph_add_memset_node(node: *mut CUgraphNode, graph: CUgraph,
                dependencies: *const CUgraphNode, count: usize, params: *const MemsetParams,
                context: CUcontext);
        cuGraphMemsetNodeGetParams 10000
            => graph_memset_node_get_params(node: CUgraphNode, params: *mut MemsetParams);
        cuGraphMemsetNodeSetParams 10000
            => graph_memset_node_set_params(node: CUgraphNode, params: *const MemsetParams);
        cuGraphExecMemsetNodeSetParams 10020
            => graph_exec_memset_node_set_params(exec: CUgraphExec, node: CUgraphNode,
                params: *const MemsetParams, context: CUcontext);
        cuGraphAddMemcpyNode 10000
            => graph_add_memcpy_node(node: *mut CUgraphNode, graph: CUgraph,
                dependencies: *const CUgraphNode, count: usize, params: *const Copy3D,
                context: CUcontext);
        cuGraphMemcpyNodeGetParams 10000
            => graph_memcpy_node_get_params(node: CUgraphNode, params: *mut Copy3D);
        cuGraphMemcpyNodeSetParams 10000
            => graph_memcpy_node_set_params(node: CUgraphNode, params: *const Copy3D);
        cuGraphExecMemcpyNodeSetParams 10020
            => graph_exec_memcpy_node_set_params(exec: CUgraphExec, node: CUgraphNode,
                params: *const Copy3D, context: CUcontext);
        cuGraphExecHostNodeSetParams 10020
            => graph_exec_host_node_set_params(exec: CUgraphExec, node: CUgraphNode,
                params: *const HostNodeParams);
        cuGraphAddChildGraphNode 10000
            => graph_add_child_graph_node(node: *mut CUgraphNode, graph: CUgraph,
                dependencies: *const CUgraphNode, count: usize, child: CUgraph);
        cuGraphChildGraphNodeGetGraph 10000
            => graph_child_graph_node_get_graph(node: CUgraphNode, graph: *mut CUgraph);
        cuGraphExecUpdate 10020
            => graph_exec_update(exec: CUgraphExec, graph: CUgraph, node: *mut CUgraphNode,
                result: *mut c_uint);
        cuGraphExecUpdate_v2 12000
            => graph_exec_update_v2(exec: CUgraphExec, graph: CUgraph, info: *mut UpdateInfo);
        cuGraphExecGetFlags 12000
            => graph_exec_get_flags(exec: CUgraphExec, flags: *mut cuuint64_t);
        cuGraphNodeFindInClone 10000
            => graph_node_find_in_clone(node: *mut CUgraphNode, original: CUgraphNode,
                clone: CUgraph);
        cuGraphGetId 13010 => graph_get_id(graph: CUgraph, id: *mut c_uint);
        cuGraphExecGetId 13010 => graph_exec_get_id(exec: CUgraphExec, id: *mut c_uint);
        cuGraphNodeGetLocalId 13010 => graph_node_get_local_id(node: CUgraphNode, id: *mut c_uint);
        cuGraphNodeGetToolsId 13010
            => graph_node_get_tools_id(node: CUgraphNode, id: *mut c_ulonglong);
        cuGraphNodeGetContainingGraph 13010
            => graph_node_get_containing_graph(node: CUgraphNode, graph: *mut CUgraph);
        cuGraphAddEmptyNode 10000
            => graph_add_empty_node(node: *mut CUgraphNode, graph: CUgraph,
                dependencies: *const CUgraphNode, count: usize);
        cuGraphGetNodes 10000
            => graph_get_nodes(graph: CUgraph, nodes: *mut CUgraphNode, count: *mut usize);
        cuGraphGetRootNodes 10000
            => graph_get_root_nodes(graph: CUgraph, nodes: *mut CUgraphNode, count: *mut usize);
        cuGraphNodeGetType 10000 => graph_node_get_type(node: CUgraphNode, kind: *mut c_uint);
        cuGraphUpload 11010, cuGraphUpload_ptsz 11010
            => graph_upload(exec: CUgraphExec, stream: CUstream);
        cuGraphInstantiateWithParams 12000,
        cuGraphInstantiateWithParams_ptsz 12000
            => graph_instantiate_with_params(exec: *mut CUgraphExec, graph: CUgraph,
                params: *mut InstantiateParams);
        cuGraphAddHostNode 10000
            => graph_add_host_node(node: *mut CUgraphNode, graph: CUgraph,
                dependencies: *const CUgraphNode, count: usize, params: *const HostNodeParams);
        cuGraphHostNodeGetParams 10000
            => graph_host_node_get_params(node: CUgraphNode, params: *mut HostNodeParams);
        cuGraphHostNodeSetParams 10000
            => graph_host_node_set_params(node: CUgraphNode, params: *const HostNodeParams);
        cuGraphGetEdges 10000
            => graph_get_edges(graph: CUgraph, from: *mut CUgraphNode, to: *mut CUgraphNode,
                count: *mut usize);
        cuGraphGetEdges_v2 12030
            => graph_get_edges_v2(graph: CUgraph, from: *mut CUgraphNode, to: *mut CUgraphNode,
                edges: *mut CUgraphEdgeData, count: *mut usize);
        cuGraphNodeGetDependencies 10000
            => graph_node_get_dependencies(node: CUgraphNode, nodes: *mut CUgraphNode,
                count: *mut usize);
        cuGraphNodeGetDependencies_v2 12030
            => graph_node_get_dependencies_v2(node: CUgraphNode, nodes: *mut CUgraphNode,
                edges: *mut CUgraphEdgeData, count: *mut usize);
        cuGraphNodeGetDependentNodes 10000
            => graph_node_get_dependent_nodes(node: CUgraphNode, nodes: *mut CUgraphNode,
                count: *mut usize);
        cuGraphNodeGetDependentNodes_v2 12030
            => graph_node_get_dependent_nodes_v2(node: CUgraphNode, nodes: *mut CUgraphNode,
                edges: *mut CUgraphEdgeData, count: *mut usize);
        cuGraphAddBatchMemOpNode 11070
            => graph_add_batch_mem_op_node(node: *mut CUgraphNode, graph: CUgraph,
                dependencies: *const CUgraphNode, count: usize,
                params: *const BatchMemOpNodeParams);
        cuGraphBatchMemOpNodeGetParams 11070
            => graph_batch_mem_op_node_get_params(node: CUgraphNode,
                params: *mut BatchMemOpNodeParams);
        cuGraphBatchMemOpNodeSetParams 11070
            => graph_batch_mem_op_node_set_params(node: CUgraphNode,
                params: *const BatchMemOpNodeParams);
        cuGraphExecBatchMemOpNodeSetParams 11070
            => graph_exec_batch_mem_op_node_set_params(exec: CUgraphExec, node: CUgraphNode,
                params: *const BatchMemOpNodeParams);
        cuUserObjectCreate 11030
            => user_object_create(object: *mut *mut c_void, data: *mut c_void, destroy: CUhostFn,
                count: c_uint, flags: c_uint);
        cuUserObjectRetain 11030 => user_object_retain(object: *mut c_void, count: c_uint);
        cuUserObjectRelease 11030 => user_object_release(object: *mut c_void, count: c_uint);
        cuGraphRetainUserObject 11030
            => graph_retain_user_object(graph: CUgraph, object: *mut c_void, count: c_uint,
                flags: c_uint);
        cuGraphReleaseUserObject 11030
            => graph_release_user_object(graph: CUgraph, object: *mut c_void, count: c_uint);
        cuGraphClone 10000 => graph_clone(clone: *mut CUgraph, graph: CUgraph);
    } };
}
