//! What `cuda-events` does not bind: older forms of what it binds, what other programs call, and
//! the rest of what a driver exports: arrays, textures, virtual memory, and nodes of graphs for
//! those. A program that is linked against these names, or looks all of them up when it starts, has
//! to find them. Names and versions are those of CUDA 13.5. A line is as in
//! `front/exports.rs`.

/// Calls a callback with what it is given, and this list.
#[macro_export]
#[doc(hidden)]
macro_rules! for_each_courtesy_export {
    ($callback:ident { $($bound:tt)* } { $($without_body:tt)* }) => { $callback! { {
        $($bound)*

        [courtesy::modules] {
            cuGetExportTable 3000 => get_export_table;
            cuModuleGetLoadingMode 11070 => module_get_loading_mode;
            cuProfilerStart 4000 => profiler_switch;
            cuProfilerStop 4000 => profiler_switch;
            cuKernelGetName 12030 => function_name;
            cuFuncGetName 12030 => function_name;
            cuModuleLoad 2000 => module_load;
            cuModuleLoadData 2000 => module_load_data;
            cuModuleLoadDataEx 2010 => module_load_data_ex;
            cuModuleLoadFatBinary 2000 => module_load_data;
            cuModuleUnload 2000 => module_unload;
            cuModuleGetFunction 2000 => module_get_function;
            cuLibraryLoadData 12000 => library_load_data;
            cuLibraryLoadFromFile 12000 => library_load_from_file;
            cuLibraryUnload 12000 => library_unload;
            cuLibraryGetKernel 12000 => library_get_kernel;
            cuLibraryGetModule 12000 => library_get_module;
            cuKernelGetFunction 12000 => kernel_get_function;
            cuKernelGetLibrary 12050 => function_get_module;
            cuFuncGetModule 11000 => function_get_module;
            cuFuncIsLoaded 12040 => function_is_loaded;
            cuFuncLoad 12040 => function_load;
            cuFuncGetParamCount 13020 => parameter_count;
            cuKernelGetParamCount 13020 => parameter_count;
            cuFuncGetParamInfo 12040 => parameter_info;
            cuKernelGetParamInfo 12040 => parameter_info;
            cuFuncGetAttribute 2020 => function_get_attribute;
            cuFuncSetAttribute 9000 => function_set_attribute;
            cuKernelGetAttribute 12000 => kernel_get_attribute;
            cuKernelSetAttribute 12000 => kernel_set_attribute;
            cuFuncSetCacheConfig 3000 => function_set_config;
            cuFuncSetSharedMemConfig 4020 => function_set_config;
            cuKernelSetCacheConfig 12000 => kernel_set_cache_config;
        }
        [courtesy::launches] {
            cuLaunchKernel 4000, cuLaunchKernel_ptsz 7000 => launch_kernel;
            cuLaunchKernelEx 11060, cuLaunchKernelEx_ptsz 11060 => launch_kernel_ex;
            cuLaunchCooperativeKernel 9000, cuLaunchCooperativeKernel_ptsz 9000
                => launch_cooperative_kernel;
            cuGraphAddKernelNode 10000 => graph_add_kernel_node;
            cuGraphAddKernelNode_v2 12000 => graph_add_kernel_node_v2;
            cuGraphKernelNodeGetParams 10000 => graph_kernel_node_get_params;
            cuGraphKernelNodeGetParams_v2 12000 => graph_kernel_node_get_params_v2;
            cuGraphKernelNodeSetParams 10000 => graph_kernel_node_set_params;
            cuGraphKernelNodeSetParams_v2 12000 => graph_kernel_node_set_params_v2;
            cuGraphExecKernelNodeSetParams 10010 => graph_exec_kernel_node_set_params;
            cuGraphExecKernelNodeSetParams_v2 12000 => graph_exec_kernel_node_set_params_v2;
            cuOccupancyMaxActiveBlocksPerMultiprocessor 6050 => active_blocks;
            cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags 7000 => active_blocks_with_flags;
            cuOccupancyMaxPotentialBlockSize 6050 => potential_block_size;
            cuOccupancyMaxPotentialBlockSizeWithFlags 7000 => potential_block_size_with_flags;
        }
        [context::primary] {
            cuDevicePrimaryCtxRelease 7000 => device_primary_ctx_release;
        }
        [courtesy::contexts] {
            cuDevicePrimaryCtxReset 7000 => device_primary_ctx_reset;
            cuDevicePrimaryCtxReset_v2 11000 => device_primary_ctx_reset;
            cuDevicePrimaryCtxSetFlags 7000 => device_primary_ctx_set_flags;
            cuDevicePrimaryCtxSetFlags_v2 11000 => device_primary_ctx_set_flags;
            cuCtxCreate_v3 11040 => ctx_create_v3;
            cuCtxAttach 2000 => ctx_attach;
            cuCtxDetach 2000 => ctx_detach;
            cuCtxSetFlags 12010 => ctx_set_flags;
            cuCtxGetApiVersion 3020 => ctx_get_api_version;
            cuCtxGetLimit 3010 => ctx_get_limit;
            cuCtxSetLimit 3010 => ctx_set_limit;
            cuCtxGetCacheConfig 3020 => ctx_get_cache_config;
            cuCtxSetCacheConfig 3020 => ctx_set_cache_config;
            cuCtxGetSharedMemConfig 4020 => ctx_get_shared_mem_config;
            cuCtxSetSharedMemConfig 4020 => ctx_set_shared_mem_config;
            cuCtxResetPersistingL2Cache 11000 => ctx_reset_persisting_l2_cache;
            cuCtxEnablePeerAccess 4000 => ctx_enable_peer_access;
            cuCtxDisablePeerAccess 4000 => ctx_disable_peer_access;
        }
        [courtesy::devices] {
            cuDeviceComputeCapability 2000 => device_compute_capability;
            cuDeviceCanAccessPeer 4000 => device_can_access_peer;
            cuDeviceGetPCIBusId 4010 => device_get_pci_bus_id;
            cuDeviceGetByPCIBusId 4010 => device_get_by_pci_bus_id;
            cuDeviceGetP2PAttribute 8000 => device_get_p2p_attribute;
        }
        [context] {
            cuCtxDestroy 2000 => ctx_destroy;
            cuCtxPushCurrent 2000 => ctx_push_current;
            cuCtxPopCurrent 2000 => ctx_pop_current;
        }
        [event] {
            cuEventDestroy 2000 => event_destroy;
        }
        [ipc::memory] {
            cuIpcOpenMemHandle 4010 => ipc_open_mem_handle;
        }
        [stream] {
            cuStreamDestroy 2000 => stream_destroy;
        }
        [courtesy::captures] {
            cuStreamBeginCapture 10000, cuStreamBeginCapture_ptsz 10000 => stream_begin_capture_v1;
        }
        [courtesy::allocations] {
            cuMemAllocPitch_v2 3020 => mem_alloc_pitch;
            cuMemAllocManaged 6000 => mem_alloc_managed;
            cuMemAllocHost_v2 3020 => mem_alloc_host;
            cuMemHostGetFlags 2030 => mem_host_get_flags;
            cuMemHostUnregister 4000 => mem_host_unregister;
            cuPointerGetAttribute 4000 => pointer_get_attribute;
            cuPointerGetAttributes 7000 => pointer_get_attributes;
            cuMemGetAddressRange_v2 3020 => mem_get_address_range;
        }
        [courtesy::managed] {
            cuMemPrefetchAsync 8000, cuMemPrefetchAsync_ptsz 8000 => mem_prefetch_async;
            cuMemPrefetchAsync_v2 12020, cuMemPrefetchAsync_v2_ptsz 12020 => mem_prefetch_async_v2;
            cuMemAdvise 8000 => mem_advise;
            cuMemAdvise_v2 12020 => mem_advise_v2;
        }
        [courtesy::copies] {
            cuMemcpyPeer 4000, cuMemcpyPeer_ptds 7000 => memcpy_peer;
            cuMemcpyPeerAsync 4000, cuMemcpyPeerAsync_ptsz 7000 => memcpy_peer_async;
            cuMemcpyAsync 4000, cuMemcpyAsync_ptsz 7000 => memcpy_async;
            cuMemsetD16Async 3020, cuMemsetD16Async_ptsz 7000 => memset_d16_async;
            cuMemcpy 4000, cuMemcpy_ptds 7000 => memcpy;
            cuMemcpyHtoD_v2 3020, cuMemcpyHtoD_v2_ptds 7000 => memcpy_h_to_d;
            cuMemcpyDtoH_v2 3020, cuMemcpyDtoH_v2_ptds 7000 => memcpy_d_to_h;
            cuMemcpyDtoD_v2 3020, cuMemcpyDtoD_v2_ptds 7000 => memcpy_d_to_d;
            cuMemsetD8_v2 3020, cuMemsetD8_v2_ptds 7000 => memset_d8;
            cuMemsetD16_v2 3020, cuMemsetD16_v2_ptds 7000 => memset_d16;
            cuMemsetD32_v2 3020, cuMemsetD32_v2_ptds 7000 => memset_d32;
        }
        [courtesy::pools] {
            cuMemAllocAsync 11020, cuMemAllocAsync_ptsz 11020 => mem_alloc_async;
            cuMemAllocFromPoolAsync 11020, cuMemAllocFromPoolAsync_ptsz 11020
                => mem_alloc_from_pool_async;
            cuMemFreeAsync 11020, cuMemFreeAsync_ptsz 11020 => mem_free_async;
            cuMemPoolCreate 11020 => mem_pool_create;
            cuMemPoolDestroy 11020 => mem_pool_destroy;
            cuMemPoolTrimTo 11020 => mem_pool_trim_to;
            cuMemPoolSetAttribute 11020 => mem_pool_set_attribute;
            cuMemPoolGetAttribute 11020 => mem_pool_get_attribute;
            cuMemPoolSetAccess 11020 => mem_pool_set_access;
            cuMemPoolGetAccess 11020 => mem_pool_get_access;
            cuMemPoolExportToShareableHandle 11020 => mem_pool_export_to_shareable_handle;
            cuMemPoolImportFromShareableHandle 11020 => mem_pool_import_from_shareable_handle;
            cuMemPoolExportPointer 11020 => mem_pool_export_pointer;
            cuMemPoolImportPointer 11020 => mem_pool_import_pointer;
            cuDeviceGetDefaultMemPool 11020 => device_get_default_mem_pool;
            cuDeviceGetMemPool 11020 => device_get_mem_pool;
            cuDeviceSetMemPool 11020 => device_set_mem_pool;
            cuMemGetDefaultMemPool 13000 => mem_get_default_mem_pool;
            cuMemGetMemPool 13000 => mem_get_mem_pool;
            cuMemSetMemPool 13000 => mem_set_mem_pool;
        }
        [courtesy::rows] {
            cuMemcpy2D_v2 3020, cuMemcpy2D_v2_ptds 7000 => memcpy_2d;
            cuMemcpy2DUnaligned_v2 3020, cuMemcpy2DUnaligned_v2_ptds 7000 => memcpy_2d;
            cuMemcpy2DAsync_v2 3020, cuMemcpy2DAsync_v2_ptsz 7000 => memcpy_2d_async;
            cuMemcpy3D_v2 3020, cuMemcpy3D_v2_ptds 7000 => memcpy_3d;
            cuMemcpy3DAsync_v2 3020, cuMemcpy3DAsync_v2_ptsz 7000 => memcpy_3d_async;
            cuMemsetD2D8_v2 3020, cuMemsetD2D8_v2_ptds 7000 => memset_2d_8;
            cuMemsetD2D8Async 3020, cuMemsetD2D8Async_ptsz 7000 => memset_2d_8_async;
            cuMemsetD2D16_v2 3020, cuMemsetD2D16_v2_ptds 7000 => memset_2d_16;
            cuMemsetD2D16Async 3020, cuMemsetD2D16Async_ptsz 7000 => memset_2d_16_async;
            cuMemsetD2D32_v2 3020, cuMemsetD2D32_v2_ptds 7000 => memset_2d_32;
            cuMemsetD2D32Async 3020, cuMemsetD2D32Async_ptsz 7000 => memset_2d_32_async;
        }
        [graph::exec] {
            cuGraphInstantiate 10000 => graph_instantiate;
        }
        [courtesy::graph_edits] {
            cuGraphAddDependencies 10000 => graph_add_dependencies;
            cuGraphAddDependencies_v2 12030 => graph_add_dependencies_v2;
            cuGraphRemoveDependencies 10000 => graph_remove_dependencies;
            cuGraphRemoveDependencies_v2 12030 => graph_remove_dependencies_v2;
            cuGraphDestroyNode 10000 => graph_destroy_node;
            cuGraphAddMemsetNode 10000 => graph_add_memset_node;
            cuGraphMemsetNodeGetParams 10000 => graph_memset_node_get_params;
            cuGraphMemsetNodeSetParams 10000 => graph_memset_node_set_params;
            cuGraphExecMemsetNodeSetParams 10020 => graph_exec_memset_node_set_params;
            cuGraphAddMemcpyNode 10000 => graph_add_memcpy_node;
            cuGraphMemcpyNodeGetParams 10000 => graph_memcpy_node_get_params;
            cuGraphMemcpyNodeSetParams 10000 => graph_memcpy_node_set_params;
            cuGraphExecMemcpyNodeSetParams 10020 => graph_exec_memcpy_node_set_params;
            cuGraphAddChildGraphNode 10000 => graph_add_child_graph_node;
            cuGraphChildGraphNodeGetGraph 10000 => graph_child_graph_node_get_graph;
            cuGraphExecGetFlags 12000 => graph_exec_get_flags;
        }
        [courtesy::graph_updates] {
            cuGraphExecUpdate 10020 => graph_exec_update;
            cuGraphExecUpdate_v2 12000 => graph_exec_update_v2;
            cuGraphNodeFindInClone 10000 => graph_node_find_in_clone;
            cuGraphGetId 13010 => graph_get_id;
            cuGraphExecGetId 13010 => graph_exec_get_id;
            cuGraphNodeGetLocalId 13010 => graph_node_get_local_id;
            cuGraphNodeGetToolsId 13010 => graph_node_get_tools_id;
            cuGraphNodeGetContainingGraph 13010 => graph_node_get_containing_graph;
        }
        [courtesy::graph_nodes] {
            cuGraphAddEmptyNode 10000 => graph_add_empty_node;
            cuGraphGetNodes 10000 => graph_get_nodes;
            cuGraphGetRootNodes 10000 => graph_get_root_nodes;
            cuGraphNodeGetType 10000 => graph_node_get_type;
            cuGraphUpload 11010, cuGraphUpload_ptsz 11010 => graph_upload;
            cuGraphInstantiateWithParams 12000, cuGraphInstantiateWithParams_ptsz 12000
                => graph_instantiate_with_params;
            cuGraphGetEdges 10000 => graph_get_edges;
            cuGraphGetEdges_v2 12030 => graph_get_edges_v2;
            cuGraphNodeGetDependencies 10000 => graph_node_get_dependencies;
            cuGraphNodeGetDependencies_v2 12030 => graph_node_get_dependencies_v2;
            cuGraphNodeGetDependentNodes 10000 => graph_node_get_dependent_nodes;
            cuGraphNodeGetDependentNodes_v2 12030 => graph_node_get_dependent_nodes_v2;
            cuGraphClone 10000 => graph_clone;
        }
        [courtesy::user_objects] {
            cuUserObjectCreate 11030 => user_object_create;
            cuUserObjectRetain 11030 => user_object_retain;
            cuUserObjectRelease 11030 => user_object_release;
            cuGraphRetainUserObject 11030 => graph_retain_user_object;
            cuGraphReleaseUserObject 11030 => graph_release_user_object;
        }
    } {
        $($without_body)*,

        cuArray3DCreate 2000, cuArray3DCreate_v2 3020, cuArray3DGetDescriptor 2000,
        cuArray3DGetDescriptor_v2 3020, cuArrayCreate 2000, cuArrayCreate_v2 3020,
        cuArrayDestroy 2000, cuArrayGetDescriptor 2000, cuArrayGetDescriptor_v2 3020,
        cuArrayGetMemoryRequirements 11060, cuArrayGetPlane 11020, cuArrayGetSparseProperties 11010,
        cuCtxCreate 2000, cuCtxGetExecAffinity 11040, cuDevSmResourceSplit 13010,
        cuDeviceGetCliqueCount 13040, cuDeviceGetCliqueInfo 13040,
        cuDeviceGetExecAffinitySupport 11040, cuDeviceGetFabricClusterUuid 13040,
        cuDeviceGetGraphMemAttribute 11040, cuDeviceGetNvSciSyncAttributes 10020,
        cuDeviceGetProperties 2000, cuDeviceGetTexture1DLinearMaxWidth 11010,
        cuDeviceGraphMemTrim 11040, cuDeviceSetGraphMemAttribute 11040, cuDeviceTotalMem 2000,
        cuEGLStreamConsumerAcquireFrame 7000, cuEGLStreamConsumerConnect 7000,
        cuEGLStreamConsumerConnectWithFlags 8000, cuEGLStreamConsumerDisconnect 7000,
        cuEGLStreamConsumerReleaseFrame 7000, cuEGLStreamProducerConnect 7000,
        cuEGLStreamProducerDisconnect 7000, cuEGLStreamProducerPresentFrame 7000,
        cuEGLStreamProducerReturnFrame 7000, cuEventCreateFromEGLSync 9000,
        cuExternalMemoryGetMappedMipmappedArray 10000, cuFabricCpyBatchAsync 13050,
        cuFabricCpyBatchAsync_ptsz 13050, cuFlushGPUDirectRDMAWrites 11030,
        cuFuncSetBlockShape 2000, cuFuncSetSharedSize 2000, cuGLCtxCreate_v2 3020,
        cuGLGetDevices_v2 6050, cuGLInit 2000, cuGLMapBufferObjectAsync_v2 3020,
        cuGLMapBufferObject_v2 3020, cuGLRegisterBufferObject 2000,
        cuGLSetBufferObjectMapFlags 2030, cuGLUnmapBufferObject 2000,
        cuGLUnmapBufferObjectAsync 2030, cuGLUnregisterBufferObject 2000,
        cuGraphAddMemAllocNode 11040, cuGraphAddMemFreeNode 11040, cuGraphAddNode 12020,
        cuGraphAddNode_v2 12030, cuGraphAddNode_v3 13040, cuGraphConditionalHandleCreate 12030,
        cuGraphDebugDotPrint 11030, cuGraphExecChildGraphNodeSetParams 11010,
        cuGraphExecNodeSetParams 12020, cuGraphKernelNodeCopyAttributes 11000,
        cuGraphKernelNodeGetAttribute 11000, cuGraphKernelNodeSetAttribute 11000,
        cuGraphMemAllocNodeGetParams 11040, cuGraphMemFreeNodeGetParams 11040,
        cuGraphNodeGetEnabled 11060, cuGraphNodeGetParams 13020, cuGraphNodeSetEnabled 11060,
        cuGraphNodeSetParams 12020, cuGraphNodeSetParams_v2 13040, cuGraphicsEGLRegisterImage 7000,
        cuGraphicsGLRegisterBuffer 3000, cuGraphicsGLRegisterImage 3000,
        cuGraphicsMapResources 3000, cuGraphicsMapResources_ptsz 7000,
        cuGraphicsResourceGetMappedEglFrame 7000, cuGraphicsResourceGetMappedMipmappedArray 5000,
        cuGraphicsResourceGetMappedPointer 3000, cuGraphicsResourceGetMappedPointer_v2 3020,
        cuGraphicsResourceSetMapFlags 3000, cuGraphicsResourceSetMapFlags_v2 6050,
        cuGraphicsSubResourceGetMappedArray 3000, cuGraphicsUnmapResources 3000,
        cuGraphicsUnmapResources_ptsz 7000, cuGraphicsUnregisterResource 3000,
        cuGraphicsVDPAURegisterOutputSurface 3010, cuGraphicsVDPAURegisterVideoSurface 3010,
        cuLaunch 2000, cuLaunchCooperativeKernelMultiDevice 9000, cuLaunchGrid 2000,
        cuLaunchGridAsync 2000, cuLibraryEnumerateKernels 12040, cuLibraryGetGlobal 12000,
        cuLibraryGetKernelCount 12040, cuLibraryGetManaged 12000, cuLibraryGetUnifiedFunction 12000,
        cuLinkAddData 5050, cuLinkAddData_v2 6050, cuLinkAddFile 5050, cuLinkAddFile_v2 6050,
        cuLinkComplete 5050, cuLinkCreate 5050, cuLinkCreate_v2 6050, cuLinkDestroy 5050,
        cuLogicalEndpointAddDevice 13030, cuLogicalEndpointBindAddr 13030,
        cuLogicalEndpointBindMem 13030, cuLogicalEndpointCreate 13030,
        cuLogicalEndpointDestroy 13030, cuLogicalEndpointExport 13030,
        cuLogicalEndpointGetLimits 13030, cuLogicalEndpointIdRelease 13030,
        cuLogicalEndpointIdReserve 13030, cuLogicalEndpointImport 13030,
        cuLogicalEndpointQuery 13030, cuLogicalEndpointUnbind 13030, cuMemAddressFree 10020,
        cuMemAddressReserve 10020, cuMemAlloc 2000, cuMemAllocHost 2000, cuMemAllocPitch 2000,
        cuMemBatchDecompressAsync 12060, cuMemBatchDecompressAsync_ptsz 12060, cuMemCreate 10020,
        cuMemDiscardAndPrefetchBatchAsync 13000, cuMemDiscardAndPrefetchBatchAsync_ptsz 13000,
        cuMemDiscardBatchAsync 13000, cuMemDiscardBatchAsync_ptsz 13000,
        cuMemExportToShareableHandle 10020, cuMemFree 2000, cuMemGetAccess 10020,
        cuMemGetAddressRange 2000, cuMemGetAllocationGranularity 10020,
        cuMemGetAllocationPropertiesFromHandle 10020, cuMemGetHandleForAddressRange 11070,
        cuMemGetInfo 2000, cuMemGetLocationInfo 13040, cuMemHostGetDevicePointer 2020,
        cuMemHostRegister 4000, cuMemImportFromShareableHandle 10020, cuMemMap 10020,
        cuMemMapArrayAsync 11010, cuMemMapArrayAsync_ptsz 11010, cuMemPrefetchBatchAsync 13000,
        cuMemPrefetchBatchAsync_ptsz 13000, cuMemRangeGetAttribute 8000,
        cuMemRangeGetAttributes 8000, cuMemRelease 10020, cuMemRetainAllocationHandle 11000,
        cuMemSetAccess 10020, cuMemUnmap 10020, cuMemcpy2D 2000, cuMemcpy2DAsync 2000,
        cuMemcpy2DUnaligned 2000, cuMemcpy3D 2000, cuMemcpy3DAsync 2000, cuMemcpy3DBatchAsync 12080,
        cuMemcpy3DBatchAsync_ptsz 12080, cuMemcpy3DBatchAsync_v2 13000,
        cuMemcpy3DBatchAsync_v2_ptsz 13000, cuMemcpy3DPeer 4000, cuMemcpy3DPeerAsync 4000,
        cuMemcpy3DPeerAsync_ptsz 7000, cuMemcpy3DPeer_ptds 7000,
        cuMemcpy3DWithAttributesAsync 13020, cuMemcpy3DWithAttributesAsync_ptsz 13020,
        cuMemcpyAtoA 2000, cuMemcpyAtoA_v2 3020, cuMemcpyAtoA_v2_ptds 7000, cuMemcpyAtoD 2000,
        cuMemcpyAtoD_v2 3020, cuMemcpyAtoD_v2_ptds 7000, cuMemcpyAtoH 2000, cuMemcpyAtoHAsync 2000,
        cuMemcpyAtoHAsync_v2 3020, cuMemcpyAtoHAsync_v2_ptsz 7000, cuMemcpyAtoH_v2 3020,
        cuMemcpyAtoH_v2_ptds 7000, cuMemcpyBatchAsync 12080, cuMemcpyBatchAsync_ptsz 12080,
        cuMemcpyBatchAsync_v2 13000, cuMemcpyBatchAsync_v2_ptsz 13000, cuMemcpyDtoA 2000,
        cuMemcpyDtoA_v2 3020, cuMemcpyDtoA_v2_ptds 7000, cuMemcpyDtoD 2000, cuMemcpyDtoDAsync 3000,
        cuMemcpyDtoH 2000, cuMemcpyDtoHAsync 2000, cuMemcpyHtoA 2000, cuMemcpyHtoAAsync 2000,
        cuMemcpyHtoAAsync_v2 3020, cuMemcpyHtoAAsync_v2_ptsz 7000, cuMemcpyHtoA_v2 3020,
        cuMemcpyHtoA_v2_ptds 7000, cuMemcpyHtoD 2000, cuMemcpyHtoDAsync 2000,
        cuMemcpyWithAttributesAsync 13020, cuMemcpyWithAttributesAsync_ptsz 13020, cuMemsetD16 2000,
        cuMemsetD2D16 2000, cuMemsetD2D32 2000, cuMemsetD2D8 2000, cuMemsetD32 2000,
        cuMemsetD8 2000, cuMipmappedArrayCreate 5000, cuMipmappedArrayDestroy 5000,
        cuMipmappedArrayGetLevel 5000, cuMipmappedArrayGetMemoryRequirements 11060,
        cuMipmappedArrayGetSparseProperties 11010, cuModuleEnumerateFunctions 12040,
        cuModuleGetFunctionCount 12040, cuModuleGetGlobal 2000, cuModuleGetGlobal_v2 3020,
        cuModuleGetSurfRef 3000, cuModuleGetTexRef 2000, cuMulticastAddDevice 12010,
        cuMulticastBindAddr 12010, cuMulticastBindAddr_v2 13010, cuMulticastBindMem 12010,
        cuMulticastBindMem_v2 13010, cuMulticastCreate 12010, cuMulticastGetGranularity 12010,
        cuMulticastUnbind 12010, cuOccupancyAvailableDynamicSMemPerBlock 10020,
        cuOccupancyMaxActiveClusters 11070, cuOccupancyMaxPotentialClusterSize 11070,
        cuParamSetSize 2000, cuParamSetTexRef 2000, cuParamSetf 2000, cuParamSeti 2000,
        cuParamSetv 2000, cuPointerSetAttribute 6000, cuProfilerInitialize 4000,
        cuSurfObjectCreate 5000, cuSurfObjectDestroy 5000, cuSurfObjectGetResourceDesc 5000,
        cuSurfRefGetArray 3000, cuSurfRefSetArray 3000, cuTensorMapEncodeIm2col 12000,
        cuTensorMapEncodeIm2colWide 12080, cuTensorMapEncodeTiled 12000,
        cuTensorMapReplaceAddress 12000, cuTensorMapSetAllocationClass 13050,
        cuTexObjectCreate 5000, cuTexObjectDestroy 5000, cuTexObjectGetResourceDesc 5000,
        cuTexObjectGetResourceViewDesc 5000, cuTexObjectGetTextureDesc 5000, cuTexRefCreate 2000,
        cuTexRefDestroy 2000, cuTexRefGetAddress 2000, cuTexRefGetAddressMode 2000,
        cuTexRefGetAddress_v2 3020, cuTexRefGetArray 2000, cuTexRefGetBorderColor 8000,
        cuTexRefGetFilterMode 2000, cuTexRefGetFlags 2000, cuTexRefGetFormat 2000,
        cuTexRefGetMaxAnisotropy 5000, cuTexRefGetMipmapFilterMode 5000,
        cuTexRefGetMipmapLevelBias 5000, cuTexRefGetMipmapLevelClamp 5000,
        cuTexRefGetMipmappedArray 5000, cuTexRefSetAddress 2000, cuTexRefSetAddress2D 2020,
        cuTexRefSetAddress2D_v2 3020, cuTexRefSetAddress2D_v3 4010, cuTexRefSetAddressMode 2000,
        cuTexRefSetAddress_v2 3020, cuTexRefSetArray 2000, cuTexRefSetBorderColor 8000,
        cuTexRefSetFilterMode 2000, cuTexRefSetFlags 2000, cuTexRefSetFormat 2000,
        cuTexRefSetMaxAnisotropy 5000, cuTexRefSetMipmapFilterMode 5000,
        cuTexRefSetMipmapLevelBias 5000, cuTexRefSetMipmapLevelClamp 5000,
        cuTexRefSetMipmappedArray 5000, cuVDPAUCtxCreate_v2 3020, cuVDPAUGetDevice 3010
    } } };
}
