//! What the driver exports, and the bodies.
//!
//! The names are those of `cuda_events::__for_each_export`. A group here is a module and has its
//! entry points: the exported name, its per-thread-default-stream twin where there is one, and the
//! body, a function of that module, with its generic arguments if it has some: entry points that
//! differ in one word have one body. The parameters of the body are those of the C function, whose
//! type is compared with them when this compiles. A name without a body returns
//! `CUDA_ERROR_NOT_SUPPORTED`: a program that is linked against it, or looks all of them up when it
//! starts, has to find it. The C functions, the table that `cuGetProcAddress` and
//! [`resolve`](crate::SoftDriver::resolve) look in, the exports of the shared library and the names
//! in the call log all come from these two lists.

use crate::front::export::Export;
pub use crate::machine::call_frame::Id;

/// Calls `$callback!` with the groups.
macro_rules! for_each_body {
    ($callback:ident) => { $callback! {
        [init] {
            cuInit => init;
            cuDriverGetVersion => driver_get_version;
            cuGetErrorName => get_error_name;
            cuGetErrorString => get_error_string;
        }
        [driver_log] {
            cuLogsCurrent => logs_current;
            cuLogsDumpToMemory => logs_dump_to_memory;
        }
        [front::functions] {
            cuGetProcAddress => get_proc_address_v1;
            cuGetProcAddress_v2, cuGetProcAddress_v2_ptsz => get_proc_address;
        }
        [device] {
            cuDeviceGet => device_get;
            cuDeviceGetCount => device_get_count;
            cuDeviceGetName => device_get_name;
            cuDeviceGetAttribute => device_get_attribute;
            cuDeviceTotalMem_v2 => device_total_mem;
            cuDeviceGetUuid => device_get_uuid;
            cuDeviceGetUuid_v2 => device_get_uuid;
            cuDeviceGetLuid => device_get_luid;
        }
        [context::primary] {
            cuDevicePrimaryCtxRetain => device_primary_ctx_retain;
            cuDevicePrimaryCtxRelease_v2 => device_primary_ctx_release;
            cuDevicePrimaryCtxGetState => device_primary_ctx_get_state;
            cuDevicePrimaryCtxRelease => device_primary_ctx_release;
        }
        [context] {
            cuCtxCreate_v2 => ctx_create;
            cuCtxCreate_v4 => ctx_create_v4;
            cuCtxDestroy_v2 => ctx_destroy;
            cuCtxGetCurrent => ctx_get_current;
            cuCtxSetCurrent => ctx_set_current;
            cuCtxPushCurrent_v2 => ctx_push_current;
            cuCtxPopCurrent_v2 => ctx_pop_current;
            cuCtxGetDevice => ctx_get_device;
            cuCtxGetDevice_v2 => ctx_get_device_of;
            cuCtxGetStreamPriorityRange => ctx_get_stream_priority_range;
            cuCtxGetFlags => ctx_get_flags;
            cuCtxGetId => ctx_get_id;
            cuCtxDestroy => ctx_destroy;
            cuCtxPushCurrent => ctx_push_current;
            cuCtxPopCurrent => ctx_pop_current;
        }
        [context::all_streams] {
            cuCtxSynchronize => ctx_synchronize;
            cuCtxSynchronize_v2 => ctx_synchronize_of;
            cuCtxRecordEvent => ctx_record_event;
            cuCtxWaitEvent => ctx_wait_event;
        }
        [event] {
            cuEventCreate => event_create;
            cuEventDestroy_v2 => event_destroy;
            cuEventRecord, cuEventRecord_ptsz => event_record;
            cuEventRecordWithFlags, cuEventRecordWithFlags_ptsz => event_record_with_flags;
            cuStreamWaitEvent, cuStreamWaitEvent_ptsz => stream_wait_event;
            cuEventQuery => event_query;
            cuEventSynchronize => event_synchronize;
            cuEventElapsedTime => event_elapsed_time;
            cuEventElapsedTime_v2 => event_elapsed_time;
            cuEventDestroy => event_destroy;
        }
        [ipc::event] {
            cuIpcGetEventHandle => ipc_get_event_handle;
            cuIpcOpenEventHandle => ipc_open_event_handle;
        }
        [ipc::memory] {
            cuIpcGetMemHandle => ipc_get_mem_handle;
            cuIpcOpenMemHandle_v2 => ipc_open_mem_handle;
            cuIpcCloseMemHandle => ipc_close_mem_handle;
            cuIpcOpenMemHandle => ipc_open_mem_handle;
        }
        [stream] {
            cuStreamCreate => stream_create;
            cuStreamCreateWithPriority => stream_create_with_priority;
            cuStreamDestroy_v2 => stream_destroy;
            cuStreamQuery, cuStreamQuery_ptsz => stream_query;
            cuStreamSynchronize, cuStreamSynchronize_ptsz => stream_synchronize;
            cuStreamGetPriority, cuStreamGetPriority_ptsz => stream_get_priority;
            cuStreamGetFlags, cuStreamGetFlags_ptsz => stream_get_flags;
            cuStreamGetId, cuStreamGetId_ptsz => stream_get_id;
            cuStreamGetCtx, cuStreamGetCtx_ptsz => stream_get_ctx;
            cuStreamGetCtx_v2, cuStreamGetCtx_v2_ptsz => stream_get_ctx_v2;
            cuStreamGetGreenCtx => stream_get_green_ctx;
            cuStreamGetDevice, cuStreamGetDevice_ptsz => stream_get_device;
            cuStreamGetAttribute, cuStreamGetAttribute_ptsz => stream_get_attribute;
            cuStreamSetAttribute, cuStreamSetAttribute_ptsz => stream_set_attribute;
            cuStreamCopyAttributes, cuStreamCopyAttributes_ptsz => stream_copy_attributes;
            cuStreamDestroy => stream_destroy;
        }
        [host_function] {
            cuStreamAddCallback, cuStreamAddCallback_ptsz => stream_add_callback;
            cuLaunchHostFunc, cuLaunchHostFunc_ptsz => launch_host_func;
            cuLaunchHostFunc_v2, cuLaunchHostFunc_v2_ptsz => launch_host_func_v2;
        }
        [capture::calls] {
            cuStreamBeginCapture_v2, cuStreamBeginCapture_v2_ptsz => stream_begin_capture;
            cuStreamBeginCaptureToGraph, cuStreamBeginCaptureToGraph_ptsz
                => stream_begin_capture_to_graph;
            cuStreamEndCapture, cuStreamEndCapture_ptsz => stream_end_capture;
            cuStreamIsCapturing, cuStreamIsCapturing_ptsz => stream_is_capturing;
            cuStreamGetCaptureInfo, cuStreamGetCaptureInfo_ptsz => stream_get_capture_info_v1;
            cuStreamGetCaptureInfo_v2, cuStreamGetCaptureInfo_v2_ptsz => stream_get_capture_info_v2;
            cuStreamGetCaptureInfo_v3, cuStreamGetCaptureInfo_v3_ptsz => stream_get_capture_info_v3;
            cuStreamUpdateCaptureDependencies, cuStreamUpdateCaptureDependencies_ptsz
                => stream_update_capture_dependencies;
            cuStreamUpdateCaptureDependencies_v2, cuStreamUpdateCaptureDependencies_v2_ptsz
                => stream_update_capture_dependencies_v2;
            cuThreadExchangeStreamCaptureMode => thread_exchange_stream_capture_mode;
            cuStreamBeginCapture, cuStreamBeginCapture_ptsz => stream_begin_capture_v1;
        }
        [values] {
            cuStreamWaitValue32, cuStreamWaitValue32_ptsz => (stream_value::<u32, false>);
            cuStreamWaitValue32_v2, cuStreamWaitValue32_v2_ptsz => (stream_value::<u32, false>);
            cuStreamWaitValue64, cuStreamWaitValue64_ptsz => (stream_value::<u64, false>);
            cuStreamWaitValue64_v2, cuStreamWaitValue64_v2_ptsz => (stream_value::<u64, false>);
            cuStreamWriteValue32, cuStreamWriteValue32_ptsz => (stream_value::<u32, true>);
            cuStreamWriteValue32_v2, cuStreamWriteValue32_v2_ptsz => (stream_value::<u32, true>);
            cuStreamWriteValue64, cuStreamWriteValue64_ptsz => (stream_value::<u64, true>);
            cuStreamWriteValue64_v2, cuStreamWriteValue64_v2_ptsz => (stream_value::<u64, true>);
            cuStreamBatchMemOp, cuStreamBatchMemOp_ptsz => stream_batch_mem_op;
            cuStreamBatchMemOp_v2, cuStreamBatchMemOp_v2_ptsz => stream_batch_mem_op;
        }
        [external_semaphore] {
            cuImportExternalSemaphore => import_external_semaphore;
            cuDestroyExternalSemaphore => destroy_external_semaphore;
            cuSignalExternalSemaphoresAsync, cuSignalExternalSemaphoresAsync_ptsz
                => signal_external_semaphores_async;
            cuWaitExternalSemaphoresAsync, cuWaitExternalSemaphoresAsync_ptsz
                => wait_external_semaphores_async;
        }
        [allocation] {
            cuMemGetInfo_v2 => mem_get_info;
            cuMemAlloc_v2 => mem_alloc;
            cuStreamAttachMemAsync, cuStreamAttachMemAsync_ptsz => stream_attach_mem_async;
            cuMemFree_v2 => mem_free;
            cuMemHostAlloc => mem_host_alloc;
            cuMemFreeHost => mem_free_host;
            cuMemHostGetDevicePointer_v2 => mem_host_get_device_pointer;
            cuMemHostRegister_v2 => mem_host_register;
        }
        [copy] {
            cuMemsetD8Async, cuMemsetD8Async_ptsz => (memset_async::<u8>);
            cuMemsetD16Async, cuMemsetD16Async_ptsz => (memset_async::<u16>);
            cuMemsetD32Async, cuMemsetD32Async_ptsz => (memset_async::<u32>);
            cuMemcpyHtoDAsync_v2, cuMemcpyHtoDAsync_v2_ptsz => memcpy_h_to_d_async;
            cuMemcpyDtoHAsync_v2, cuMemcpyDtoHAsync_v2_ptsz => memcpy_d_to_h_async;
            cuMemcpyDtoDAsync_v2, cuMemcpyDtoDAsync_v2_ptsz => memcpy_d_to_d_async;
        }
        [graph::calls] {
            cuGraphCreate => graph_create;
            cuGraphDestroy => graph_destroy;
        }
        [graph::exec] {
            cuGraphInstantiate_v2 => graph_instantiate;
            cuGraphInstantiateWithFlags => graph_instantiate_with_flags;
            cuGraphLaunch, cuGraphLaunch_ptsz => graph_launch;
            cuGraphExecDestroy => graph_exec_destroy;
            cuGraphInstantiate => graph_instantiate;
        }
        [graph::events] {
            cuGraphAddEventRecordNode => (graph_add_event_node::<true>);
            cuGraphAddEventWaitNode => (graph_add_event_node::<false>);
            cuGraphEventRecordNodeGetEvent => (graph_event_node_get_event::<true>);
            cuGraphEventRecordNodeSetEvent => (graph_event_node_set_event::<true>);
            cuGraphEventWaitNodeGetEvent => (graph_event_node_get_event::<false>);
            cuGraphEventWaitNodeSetEvent => (graph_event_node_set_event::<false>);
            cuGraphExecEventRecordNodeSetEvent => (graph_exec_event_node_set_event::<true>);
            cuGraphExecEventWaitNodeSetEvent => (graph_exec_event_node_set_event::<false>);
        }
        [graph::host] {
            cuGraphAddHostNode => graph_add_host_node;
            cuGraphHostNodeGetParams => graph_host_node_get_params;
            cuGraphHostNodeSetParams => graph_host_node_set_params;
            cuGraphExecHostNodeSetParams => graph_exec_host_node_set_params;
        }
        [values::nodes] {
            cuGraphAddBatchMemOpNode => graph_add_batch_mem_op_node;
            cuGraphBatchMemOpNodeGetParams => graph_batch_mem_op_node_get_params;
            cuGraphBatchMemOpNodeSetParams => graph_batch_mem_op_node_set_params;
            cuGraphExecBatchMemOpNodeSetParams => graph_exec_batch_mem_op_node_set_params;
        }
        [green_context] {
            cuDeviceGetDevResource => device_get_dev_resource;
            cuCtxGetDevResource => ctx_get_dev_resource;
            cuGreenCtxGetDevResource => green_ctx_get_dev_resource;
            cuDevSmResourceSplitByCount => dev_sm_resource_split_by_count;
            cuDevResourceGenerateDesc => dev_resource_generate_desc;
            cuGreenCtxCreate => green_ctx_create;
            cuGreenCtxDestroy => green_ctx_destroy;
            cuCtxFromGreenCtx => ctx_from_green_ctx;
            cuGreenCtxRecordEvent => green_ctx_record_event;
            cuGreenCtxWaitEvent => green_ctx_wait_event;
            cuGreenCtxStreamCreate => green_ctx_stream_create;
        }
        [kernel::modules] {
            cuGetExportTable => get_export_table;
            cuModuleGetLoadingMode => module_get_loading_mode;
            cuProfilerStart => profiler_switch;
            cuProfilerStop => profiler_switch;
            cuKernelGetName => function_name;
            cuFuncGetName => function_name;
            cuModuleLoad => module_load;
            cuModuleLoadData => module_load_data;
            cuModuleLoadDataEx => module_load_data_ex;
            cuModuleLoadFatBinary => module_load_data;
            cuModuleUnload => module_unload;
            cuModuleGetFunction => (get_function::<false>);
            cuLibraryLoadData => library_load_data;
            cuLibraryLoadFromFile => library_load_from_file;
            cuLibraryUnload => library_unload;
            cuLibraryGetKernel => (get_function::<true>);
            cuLibraryGetModule => library_get_module;
            cuModuleGetFunctionCount => (function_count::<false>);
            cuModuleEnumerateFunctions => (enumerate_functions::<false>);
            cuLibraryGetKernelCount => (function_count::<true>);
            cuLibraryEnumerateKernels => (enumerate_functions::<true>);
            cuKernelGetFunction => kernel_get_function;
            cuKernelGetLibrary => function_get_module;
            cuFuncGetModule => function_get_module;
            cuFuncIsLoaded => function_is_loaded;
            cuFuncLoad => function_load;
            cuFuncGetParamCount => parameter_count;
            cuKernelGetParamCount => parameter_count;
            cuFuncGetParamInfo => parameter_info;
            cuKernelGetParamInfo => parameter_info;
            cuFuncGetAttribute => function_get_attribute;
            cuFuncSetAttribute => function_set_attribute;
            cuKernelGetAttribute => kernel_get_attribute;
            cuKernelSetAttribute => kernel_set_attribute;
            cuFuncSetCacheConfig => function_set_config;
            cuFuncSetSharedMemConfig => function_set_config;
            cuKernelSetCacheConfig => kernel_set_cache_config;
        }
        [kernel::launches] {
            cuLaunchKernel, cuLaunchKernel_ptsz => launch_kernel;
            cuLaunchKernelEx, cuLaunchKernelEx_ptsz => launch_kernel_ex;
            cuLaunchCooperativeKernel, cuLaunchCooperativeKernel_ptsz
                => launch_cooperative_kernel;
            cuGraphAddKernelNode => graph_add_kernel_node;
            cuGraphAddKernelNode_v2 => graph_add_kernel_node_v2;
            cuGraphKernelNodeGetParams => graph_kernel_node_get_params;
            cuGraphKernelNodeGetParams_v2 => graph_kernel_node_get_params_v2;
            cuGraphKernelNodeSetParams => graph_kernel_node_set_params;
            cuGraphKernelNodeSetParams_v2 => graph_kernel_node_set_params_v2;
            cuGraphExecKernelNodeSetParams => graph_exec_kernel_node_set_params;
            cuGraphExecKernelNodeSetParams_v2 => graph_exec_kernel_node_set_params_v2;
            cuOccupancyMaxActiveBlocksPerMultiprocessor => active_blocks;
            cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags => active_blocks_with_flags;
            cuOccupancyMaxPotentialBlockSize => potential_block_size;
            cuOccupancyMaxPotentialBlockSizeWithFlags => potential_block_size_with_flags;
        }
        [context::settings] {
            cuDevicePrimaryCtxReset => device_primary_ctx_reset;
            cuDevicePrimaryCtxReset_v2 => device_primary_ctx_reset;
            cuDevicePrimaryCtxSetFlags => device_primary_ctx_set_flags;
            cuDevicePrimaryCtxSetFlags_v2 => device_primary_ctx_set_flags;
            cuCtxCreate_v3 => ctx_create_v3;
            cuCtxAttach => ctx_attach;
            cuCtxDetach => ctx_detach;
            cuCtxSetFlags => ctx_set_flags;
            cuCtxGetApiVersion => ctx_get_api_version;
            cuCtxGetLimit => ctx_get_limit;
            cuCtxSetLimit => ctx_set_limit;
            cuCtxGetCacheConfig => ctx_get_cache_config;
            cuCtxSetCacheConfig => ctx_set_cache_config;
            cuCtxGetSharedMemConfig => ctx_get_shared_mem_config;
            cuCtxSetSharedMemConfig => ctx_set_shared_mem_config;
            cuCtxResetPersistingL2Cache => ctx_reset_persisting_l2_cache;
            cuCtxEnablePeerAccess => ctx_enable_peer_access;
            cuCtxDisablePeerAccess => ctx_disable_peer_access;
        }
        [device::bus] {
            cuDeviceComputeCapability => device_compute_capability;
            cuDeviceCanAccessPeer => device_can_access_peer;
            cuDeviceGetPCIBusId => device_get_pci_bus_id;
            cuDeviceGetByPCIBusId => device_get_by_pci_bus_id;
            cuDeviceGetP2PAttribute => device_get_p2p_attribute;
        }
        [allocation::host] {
            cuMemAllocPitch_v2 => mem_alloc_pitch;
            cuMemAllocManaged => mem_alloc_managed;
            cuMemAllocHost_v2 => mem_alloc_host;
            cuMemHostGetFlags => mem_host_get_flags;
            cuMemHostUnregister => mem_host_unregister;
            cuPointerGetAttribute => pointer_get_attribute;
            cuPointerGetAttributes => pointer_get_attributes;
            cuMemGetAddressRange_v2 => mem_get_address_range;
        }
        [allocation::advice] {
            cuMemPrefetchAsync, cuMemPrefetchAsync_ptsz => mem_prefetch_async;
            cuMemPrefetchAsync_v2, cuMemPrefetchAsync_v2_ptsz => mem_prefetch_async_v2;
            cuMemAdvise => mem_advise;
            cuMemAdvise_v2 => mem_advise_v2;
        }
        [copy::synchronous] {
            cuMemcpyPeer, cuMemcpyPeer_ptds => memcpy_peer;
            cuMemcpyPeerAsync, cuMemcpyPeerAsync_ptsz => memcpy_peer_async;
            cuMemcpyAsync, cuMemcpyAsync_ptsz => memcpy_async;
            cuMemcpy, cuMemcpy_ptds => memcpy;
            cuMemcpyHtoD_v2, cuMemcpyHtoD_v2_ptds => memcpy_h_to_d;
            cuMemcpyDtoH_v2, cuMemcpyDtoH_v2_ptds => memcpy_d_to_h;
            cuMemcpyDtoD_v2, cuMemcpyDtoD_v2_ptds => memcpy_d_to_d;
            cuMemsetD8_v2, cuMemsetD8_v2_ptds => (memset::<u8>);
            cuMemsetD16_v2, cuMemsetD16_v2_ptds => (memset::<u16>);
            cuMemsetD32_v2, cuMemsetD32_v2_ptds => (memset::<u32>);
        }
        [allocation::pools] {
            cuMemAllocAsync, cuMemAllocAsync_ptsz => mem_alloc_async;
            cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync_ptsz
                => mem_alloc_from_pool_async;
            cuMemFreeAsync, cuMemFreeAsync_ptsz => mem_free_async;
            cuMemPoolCreate => mem_pool_create;
            cuMemPoolDestroy => mem_pool_destroy;
            cuMemPoolTrimTo => mem_pool_trim_to;
            cuMemPoolSetAttribute => mem_pool_set_attribute;
            cuMemPoolGetAttribute => mem_pool_get_attribute;
            cuMemPoolSetAccess => mem_pool_set_access;
            cuMemPoolGetAccess => mem_pool_get_access;
            cuMemPoolExportToShareableHandle => mem_pool_export_to_shareable_handle;
            cuMemPoolImportFromShareableHandle => mem_pool_import_from_shareable_handle;
            cuMemPoolExportPointer => mem_pool_export_pointer;
            cuMemPoolImportPointer => mem_pool_import_pointer;
            cuDeviceGetDefaultMemPool => device_get_default_mem_pool;
            cuDeviceGetMemPool => device_get_mem_pool;
            cuDeviceSetMemPool => device_set_mem_pool;
            cuMemGetDefaultMemPool => mem_get_default_mem_pool;
            cuMemGetMemPool => mem_get_mem_pool;
            cuMemSetMemPool => mem_set_mem_pool;
        }
        [copy::rows] {
            cuMemcpy2D_v2, cuMemcpy2D_v2_ptds => memcpy_2d;
            cuMemcpy2DUnaligned_v2, cuMemcpy2DUnaligned_v2_ptds => memcpy_2d;
            cuMemcpy2DAsync_v2, cuMemcpy2DAsync_v2_ptsz => memcpy_2d_async;
            cuMemcpy3D_v2, cuMemcpy3D_v2_ptds => memcpy_3d;
            cuMemcpy3DAsync_v2, cuMemcpy3DAsync_v2_ptsz => memcpy_3d_async;
            cuMemcpy3DPeer, cuMemcpy3DPeer_ptds => memcpy_3d_peer;
            cuMemcpy3DPeerAsync, cuMemcpy3DPeerAsync_ptsz => memcpy_3d_peer_async;
            cuMemsetD2D8_v2, cuMemsetD2D8_v2_ptds => memset_2d_8;
            cuMemsetD2D8Async, cuMemsetD2D8Async_ptsz => memset_2d_8_async;
            cuMemsetD2D16_v2, cuMemsetD2D16_v2_ptds => memset_2d_16;
            cuMemsetD2D16Async, cuMemsetD2D16Async_ptsz => memset_2d_16_async;
            cuMemsetD2D32_v2, cuMemsetD2D32_v2_ptds => memset_2d_32;
            cuMemsetD2D32Async, cuMemsetD2D32Async_ptsz => memset_2d_32_async;
        }
        [graph::edits] {
            cuGraphAddDependencies => (graph_change_dependencies::<true>);
            cuGraphAddDependencies_v2 => (graph_change_dependencies_v2::<true>);
            cuGraphRemoveDependencies => (graph_change_dependencies::<false>);
            cuGraphRemoveDependencies_v2 => (graph_change_dependencies_v2::<false>);
            cuGraphDestroyNode => graph_destroy_node;
            cuGraphAddMemsetNode => graph_add_memset_node;
            cuGraphMemsetNodeGetParams => graph_memset_node_get_params;
            cuGraphMemsetNodeSetParams => graph_memset_node_set_params;
            cuGraphExecMemsetNodeSetParams => graph_exec_memset_node_set_params;
            cuGraphAddMemcpyNode => graph_add_memcpy_node;
            cuGraphMemcpyNodeGetParams => graph_memcpy_node_get_params;
            cuGraphMemcpyNodeSetParams => graph_memcpy_node_set_params;
            cuGraphExecMemcpyNodeSetParams => graph_exec_memcpy_node_set_params;
            cuGraphAddChildGraphNode => graph_add_child_graph_node;
            cuGraphChildGraphNodeGetGraph => graph_child_graph_node_get_graph;
            cuGraphExecGetFlags => graph_exec_get_flags;
        }
        [allocation::virtual_memory] {
            cuMemAddressReserve => mem_address_reserve;
            cuMemAddressFree => mem_address_free;
            cuMemCreate => mem_create;
            cuMemRelease => mem_release;
            cuMemMap => mem_map;
            cuMemUnmap => mem_unmap;
            cuMemSetAccess => mem_set_access;
            cuMemGetAccess => mem_get_access;
            cuMemGetAllocationGranularity => mem_get_allocation_granularity;
            cuMemGetAllocationPropertiesFromHandle => mem_get_allocation_properties_from_handle;
            cuMemRetainAllocationHandle => mem_retain_allocation_handle;
        }
        [graph::updates] {
            cuGraphExecUpdate => graph_exec_update;
            cuGraphExecUpdate_v2 => graph_exec_update_v2;
            cuGraphNodeSetEnabled => graph_node_set_enabled;
            cuGraphNodeGetEnabled => graph_node_get_enabled;
            cuGraphNodeFindInClone => graph_node_find_in_clone;
            cuGraphGetId => graph_get_id;
            cuGraphExecGetId => graph_exec_get_id;
            cuGraphNodeGetLocalId => graph_node_get_local_id;
            cuGraphNodeGetToolsId => graph_node_get_tools_id;
            cuGraphNodeGetContainingGraph => graph_node_get_containing_graph;
        }
        [graph::nodes] {
            cuGraphAddEmptyNode => graph_add_empty_node;
            cuGraphGetNodes => graph_get_nodes;
            cuGraphGetRootNodes => graph_get_root_nodes;
            cuGraphNodeGetType => graph_node_get_type;
            cuGraphUpload, cuGraphUpload_ptsz => graph_upload;
            cuGraphInstantiateWithParams, cuGraphInstantiateWithParams_ptsz
                => graph_instantiate_with_params;
            cuGraphGetEdges => graph_get_edges;
            cuGraphGetEdges_v2 => graph_get_edges_v2;
            cuGraphNodeGetDependencies => graph_node_get_dependencies;
            cuGraphNodeGetDependencies_v2 => graph_node_get_dependencies_v2;
            cuGraphNodeGetDependentNodes => graph_node_get_dependent_nodes;
            cuGraphNodeGetDependentNodes_v2 => graph_node_get_dependent_nodes_v2;
            cuGraphClone => graph_clone;
        }
        [graph::user_objects] {
            cuUserObjectCreate => user_object_create;
            cuUserObjectRetain => user_object_retain;
            cuUserObjectRelease => user_object_release;
            cuGraphRetainUserObject => graph_retain_user_object;
            cuGraphReleaseUserObject => graph_release_user_object;
        }
    } };
}

pub(crate) use for_each_body;

macro_rules! define {
    ($($name:ident $($version:literal)?),*) => {
        #[allow(non_camel_case_types)]
        #[repr(u16)]
        enum Place { $($name,)* }

        #[allow(non_upper_case_globals, missing_docs)]
        impl Id {
            $(pub const $name: Self = Self(Place::$name as u16);)*
        }

        /// The number of exported functions.
        pub const COUNT: usize = [$(stringify!($name)),*].len();

        const LIST: [Export; COUNT] = [$(
            Export::new(stringify!($name), &[$($version)?], HAS_BODY[Place::$name as usize]),
        )*];
    };
}

cuda_events::__for_each_export!(define);

macro_rules! bodies {
    ($($module:tt { $($name:ident $(, $twin:ident)? => $body:tt;)* })*) => {
        /// Whether each exported function has a body.
        pub(crate) const HAS_BODY: [bool; COUNT] = {
            let mut has_body = [false; COUNT];
            $($(
                has_body[Id::$name.place()] = true;
                $(has_body[Id::$twin.place()] = true;)?
            )*)*
            has_body
        };
    };
}

for_each_body!(bodies);

/// The newest CUDA version that a software driver can have. It is this crate's own: the list comes
/// from any compatible `cuda-events`, which may know functions that are newer.
pub const NEWEST: (u32, u32) = (13, 5);

/// All exported functions.
pub static EXPORTS: &[Export] = &LIST;
