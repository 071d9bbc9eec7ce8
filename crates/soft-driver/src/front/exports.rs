//! The one list of what the driver does.
//!
//! A line names an exported function, the version that introduced its ABI, its
//! per-thread-default-stream twin with that twin's version where there is one, the body that
//! implements it, and its parameters. The C functions, the table that `cuGetProcAddress` and
//! [`resolve`](crate::SoftDriver::resolve) look in, the exports of the shared library and the names
//! in the call log all come from here.
//!
//! The other exports have no body and stand elsewhere: the rest of what a driver exports in
//! `foreign.rs`, and what `cuda-events` binds besides in no list at all (`unlisted.rs`).

use crate::front::export::Export;
use crate::front::foreign::FOREIGN;
use crate::front::unlisted::UNLISTED;
pub use crate::model::call_frame::Id;

/// Calls `$callback!` with the whole list.
#[macro_export]
#[doc(hidden)]
macro_rules! for_each_export {
    ($callback:ident) => { $callback! {
        cuInit 2000 => init(flags: c_uint);
        cuDriverGetVersion 2020 => driver_get_version(version: *mut c_int);
        cuGetProcAddress 11030
            => get_proc_address_v1(symbol: *const c_uchar, function: *mut *mut c_void,
                version: c_int, flags: cuuint64_t);
        cuGetProcAddress_v2 12000,
        cuGetProcAddress_v2_ptsz 12000
            => get_proc_address(symbol: *const c_uchar, function: *mut *mut c_void, version: c_int,
                flags: cuuint64_t, status: *mut CUdriverProcAddressQueryResult);
        cuGetErrorName 6000 => get_error_name(error: CUresult, text: *mut *const c_uchar);
        cuGetErrorString 6000 => get_error_string(error: CUresult, text: *mut *const c_uchar);

        cuGetExportTable 3000
            => get_export_table(table: *mut *const c_void, id: *const CUuuid);
        cuModuleGetLoadingMode 11070 => module_get_loading_mode(mode: *mut c_int);
        cuProfilerStart 4000 => profiler_switch();
        cuProfilerStop 4000 => profiler_switch();
        cuKernelGetName 12030
            => function_name(name: *mut *const c_uchar, function: *mut c_void);
        cuFuncGetName 12030
            => function_name(name: *mut *const c_uchar, function: *mut c_void);

        cuDeviceGet 2000 => device_get(device: *mut CUdevice, ordinal: c_int);
        cuDeviceGetCount 2000 => device_get_count(count: *mut c_int);
        cuDeviceGetName 2000 => device_get_name(name: *mut c_uchar, length: c_int,
            device: CUdevice);
        cuDeviceGetAttribute 2000
            => device_get_attribute(value: *mut c_int, attribute: CUdevice_attribute,
                device: CUdevice);
        cuDeviceTotalMem_v2 3020 => device_total_mem(bytes: *mut usize, device: CUdevice);
        cuDeviceGetUuid 9020 => device_get_uuid(uuid: *mut CUuuid, device: CUdevice);
        cuDeviceGetUuid_v2 11040 => device_get_uuid(uuid: *mut CUuuid, device: CUdevice);
        cuDeviceGetLuid 10000
            => device_get_luid(luid: *mut c_uchar, node_mask: *mut c_uint, device: CUdevice);
        cuDevicePrimaryCtxRetain 7000
            => device_primary_ctx_retain(context: *mut CUcontext, device: CUdevice);
        cuDevicePrimaryCtxRelease_v2 11000 => device_primary_ctx_release(device: CUdevice);
        cuDevicePrimaryCtxGetState 7000
            => device_primary_ctx_get_state(device: CUdevice, flags: *mut c_uint,
                active: *mut c_int);
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

        cuCtxCreate_v2 3020 => ctx_create(context: *mut CUcontext, flags: c_uint, device: CUdevice);
        cuCtxCreate_v4 12050 => ctx_create_v4(context: *mut CUcontext,
            params: *mut CUctxCreateParams, flags: c_uint, device: CUdevice);
        cuCtxDestroy_v2 4000 => ctx_destroy(context: CUcontext);
        cuCtxGetCurrent 4000 => ctx_get_current(context: *mut CUcontext);
        cuCtxSetCurrent 4000 => ctx_set_current(context: CUcontext);
        cuCtxPushCurrent_v2 4000 => ctx_push_current(context: CUcontext);
        cuCtxPopCurrent_v2 4000 => ctx_pop_current(context: *mut CUcontext);
        cuCtxGetDevice 2000 => ctx_get_device(device: *mut CUdevice);
        cuCtxGetDevice_v2 13000 => ctx_get_device_of(device: *mut CUdevice, context: CUcontext);
        cuCtxSynchronize 2000 => ctx_synchronize();
        cuCtxSynchronize_v2 13000 => ctx_synchronize_of(context: CUcontext);
        cuCtxGetStreamPriorityRange 5050
            => ctx_get_stream_priority_range(least: *mut c_int, greatest: *mut c_int);
        cuCtxGetFlags 7000 => ctx_get_flags(flags: *mut c_uint);
        cuCtxGetId 12000 => ctx_get_id(context: CUcontext, id: *mut c_ulonglong);
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

        cuEventCreate 2000 => event_create(event: *mut CUevent, flags: c_uint);
        cuEventDestroy_v2 4000 => event_destroy(event: CUevent);
        cuEventDestroy 2000 => event_destroy(event: CUevent);
        cuEventRecord 2000, cuEventRecord_ptsz 7000
            => event_record(event: CUevent, stream: CUstream);
        cuEventRecordWithFlags 11010,
        cuEventRecordWithFlags_ptsz 11010
            => event_record_with_flags(event: CUevent, stream: CUstream, flags: c_uint);
        cuEventQuery 2000 => event_query(event: CUevent);
        cuEventSynchronize 2000 => event_synchronize(event: CUevent);
        cuEventElapsedTime 2000
            => event_elapsed_time(milliseconds: *mut f32, start: CUevent, end: CUevent);
        cuEventElapsedTime_v2 12080
            => event_elapsed_time(milliseconds: *mut f32, start: CUevent, end: CUevent);
        cuIpcGetEventHandle 4010
            => ipc_get_event_handle(handle: *mut CUipcEventHandle, event: CUevent);
        cuIpcOpenEventHandle 4010
            => ipc_open_event_handle(event: *mut CUevent, handle: CUipcEventHandle);
        cuIpcGetMemHandle 4010 => ipc_get_mem_handle(handle: *mut MemHandle, address: CUdeviceptr);
        cuIpcOpenMemHandle 4010
            => ipc_open_mem_handle(address: *mut CUdeviceptr, handle: MemHandle, flags: c_uint);
        cuIpcOpenMemHandle_v2 11000
            => ipc_open_mem_handle(address: *mut CUdeviceptr, handle: MemHandle, flags: c_uint);
        cuIpcCloseMemHandle 4010 => ipc_close_mem_handle(address: CUdeviceptr);
        cuCtxRecordEvent 12050 => ctx_record_event(context: CUcontext, event: CUevent);
        cuCtxWaitEvent 12050 => ctx_wait_event(context: CUcontext, event: CUevent);

        cuStreamCreate 2000 => stream_create(stream: *mut CUstream, flags: c_uint);
        cuStreamCreateWithPriority 5050
            => stream_create_with_priority(stream: *mut CUstream, flags: c_uint, priority: c_int);
        cuStreamDestroy_v2 4000 => stream_destroy(stream: CUstream);
        cuStreamDestroy 2000 => stream_destroy(stream: CUstream);
        cuStreamQuery 2000, cuStreamQuery_ptsz 7000 => stream_query(stream: CUstream);
        cuStreamSynchronize 2000,
        cuStreamSynchronize_ptsz 7000 => stream_synchronize(stream: CUstream);
        cuStreamWaitEvent 3020,
        cuStreamWaitEvent_ptsz 7000
            => stream_wait_event(stream: CUstream, event: CUevent, flags: c_uint);
        cuStreamGetPriority 5050,
        cuStreamGetPriority_ptsz 7000
            => stream_get_priority(stream: CUstream, priority: *mut c_int);
        cuStreamGetFlags 5050,
        cuStreamGetFlags_ptsz 7000 => stream_get_flags(stream: CUstream, flags: *mut c_uint);
        cuStreamGetId 12000, cuStreamGetId_ptsz 12000
            => stream_get_id(stream: CUstream, id: *mut c_ulonglong);
        cuStreamGetCtx 9020, cuStreamGetCtx_ptsz 9020
            => stream_get_ctx(stream: CUstream, context: *mut CUcontext);
        cuStreamGetCtx_v2 12050,
        cuStreamGetCtx_v2_ptsz 12050
            => stream_get_ctx_v2(stream: CUstream, context: *mut CUcontext, green: *mut CUgreenCtx);
        cuStreamGetGreenCtx 12040 => stream_get_green_ctx(stream: CUstream, green: *mut CUgreenCtx);
        cuStreamGetDevice 12080,
        cuStreamGetDevice_ptsz 12080 => stream_get_device(stream: CUstream, device: *mut CUdevice);
        cuStreamGetAttribute 11000,
        cuStreamGetAttribute_ptsz 11000
            => stream_get_attribute(stream: CUstream, attribute: CUstreamAttrID,
                value: *mut CUstreamAttrValue);
        cuStreamSetAttribute 11000,
        cuStreamSetAttribute_ptsz 11000
            => stream_set_attribute(stream: CUstream, attribute: CUstreamAttrID,
                value: *const CUstreamAttrValue);
        cuStreamCopyAttributes 11000,
        cuStreamCopyAttributes_ptsz 11000
            => stream_copy_attributes(destination: CUstream, source: CUstream);
        cuStreamAddCallback 5000,
        cuStreamAddCallback_ptsz 7000
            => stream_add_callback(stream: CUstream, callback: CUstreamCallback,
                user_data: *mut c_void, flags: c_uint);
        cuLaunchHostFunc 10000,
        cuLaunchHostFunc_ptsz 10000
            => launch_host_func(stream: CUstream, host_fn: CUhostFn, user_data: *mut c_void);
        cuLaunchHostFunc_v2 13010,
        cuLaunchHostFunc_v2_ptsz 13010
            => launch_host_func_v2(stream: CUstream, host_fn: CUhostFn, user_data: *mut c_void,
                sync_mode: c_uint);

        cuStreamBeginCapture 10000,
        cuStreamBeginCapture_ptsz 10000 => stream_begin_capture_v1(stream: CUstream);
        cuStreamBeginCapture_v2 10010,
        cuStreamBeginCapture_v2_ptsz 10010
            => stream_begin_capture(stream: CUstream, mode: CUstreamCaptureMode);
        cuStreamBeginCaptureToGraph 12030,
        cuStreamBeginCaptureToGraph_ptsz 12030
            => stream_begin_capture_to_graph(stream: CUstream, graph: CUgraph,
                dependencies: *const CUgraphNode, edges: *const CUgraphEdgeData, count: usize,
            mode: CUstreamCaptureMode);
        cuStreamEndCapture 10000,
        cuStreamEndCapture_ptsz 10000 => stream_end_capture(stream: CUstream, graph: *mut CUgraph);
        cuStreamIsCapturing 10000,
        cuStreamIsCapturing_ptsz 10000
            => stream_is_capturing(stream: CUstream, status: *mut CUstreamCaptureStatus);
        cuStreamGetCaptureInfo 10010,
        cuStreamGetCaptureInfo_ptsz 10010
            => stream_get_capture_info_v1(stream: CUstream, status: *mut CUstreamCaptureStatus,
                id: *mut cuuint64_t);
        cuStreamGetCaptureInfo_v2 11030,
        cuStreamGetCaptureInfo_v2_ptsz 11030
            => stream_get_capture_info_v2(stream: CUstream, status: *mut CUstreamCaptureStatus,
                id: *mut cuuint64_t, graph: *mut CUgraph, dependencies: *mut *const CUgraphNode,
            count: *mut usize);
        cuStreamGetCaptureInfo_v3 12030,
        cuStreamGetCaptureInfo_v3_ptsz 12030
            => stream_get_capture_info_v3(stream: CUstream, status: *mut CUstreamCaptureStatus,
                id: *mut cuuint64_t, graph: *mut CUgraph, dependencies: *mut *const CUgraphNode,
            edge_data: *mut *const CUgraphEdgeData, count: *mut usize);
        cuStreamUpdateCaptureDependencies 11030,
        cuStreamUpdateCaptureDependencies_ptsz 11030
            => stream_update_capture_dependencies(stream: CUstream, nodes: *mut CUgraphNode,
                count: usize, flags: c_uint);
        cuStreamUpdateCaptureDependencies_v2 12030,
        cuStreamUpdateCaptureDependencies_v2_ptsz 12030
            => stream_update_capture_dependencies_v2(stream: CUstream, nodes: *mut CUgraphNode,
                edges: *const CUgraphEdgeData, count: usize, flags: c_uint);
        cuThreadExchangeStreamCaptureMode 10010
            => thread_exchange_stream_capture_mode(mode: *mut CUstreamCaptureMode);

        cuStreamWaitValue32 8000,
        cuStreamWaitValue32_ptsz 8000
            => stream_wait_value32(stream: CUstream, address: CUdeviceptr, value: cuuint32_t,
                flags: c_uint);
        cuStreamWaitValue32_v2 11070,
        cuStreamWaitValue32_v2_ptsz 11070
            => stream_wait_value32(stream: CUstream, address: CUdeviceptr, value: cuuint32_t,
                flags: c_uint);
        cuStreamWaitValue64 9000,
        cuStreamWaitValue64_ptsz 9000
            => stream_wait_value64(stream: CUstream, address: CUdeviceptr, value: cuuint64_t,
                flags: c_uint);
        cuStreamWaitValue64_v2 11070,
        cuStreamWaitValue64_v2_ptsz 11070
            => stream_wait_value64(stream: CUstream, address: CUdeviceptr, value: cuuint64_t,
                flags: c_uint);
        cuStreamWriteValue32 8000,
        cuStreamWriteValue32_ptsz 8000
            => stream_write_value32(stream: CUstream, address: CUdeviceptr, value: cuuint32_t,
                flags: c_uint);
        cuStreamWriteValue32_v2 11070,
        cuStreamWriteValue32_v2_ptsz 11070
            => stream_write_value32(stream: CUstream, address: CUdeviceptr, value: cuuint32_t,
                flags: c_uint);
        cuStreamWriteValue64 9000,
        cuStreamWriteValue64_ptsz 9000
            => stream_write_value64(stream: CUstream, address: CUdeviceptr, value: cuuint64_t,
                flags: c_uint);
        cuStreamWriteValue64_v2 11070,
        cuStreamWriteValue64_v2_ptsz 11070
            => stream_write_value64(stream: CUstream, address: CUdeviceptr, value: cuuint64_t,
                flags: c_uint);
        cuStreamBatchMemOp 8000,
        cuStreamBatchMemOp_ptsz 8000
            => stream_batch_mem_op(stream: CUstream, count: c_uint,
                operations: *mut CUstreamBatchMemOpParams, flags: c_uint);
        cuStreamBatchMemOp_v2 11070,
        cuStreamBatchMemOp_v2_ptsz 11070
            => stream_batch_mem_op(stream: CUstream, count: c_uint,
                operations: *mut CUstreamBatchMemOpParams, flags: c_uint);

        cuImportExternalSemaphore 10000
            => import_external_semaphore(semaphore: *mut CUexternalSemaphore,
                description: *const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC);
        cuDestroyExternalSemaphore 10000
            => destroy_external_semaphore(semaphore: CUexternalSemaphore);
        cuSignalExternalSemaphoresAsync 10000,
        cuSignalExternalSemaphoresAsync_ptsz 10000
            => signal_external_semaphores_async(semaphores: *const CUexternalSemaphore,
                params: *const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS, count: c_uint,
                stream: CUstream);
        cuWaitExternalSemaphoresAsync 10000,
        cuWaitExternalSemaphoresAsync_ptsz 10000
            => wait_external_semaphores_async(semaphores: *const CUexternalSemaphore,
                params: *const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS, count: c_uint,
                stream: CUstream);

        cuMemGetInfo_v2 3020 => mem_get_info(free: *mut usize, total: *mut usize);
        cuMemAlloc_v2 3020 => mem_alloc(address: *mut CUdeviceptr, bytes: usize);
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
        cuStreamAttachMemAsync 6000, cuStreamAttachMemAsync_ptsz 7000
            => stream_attach_mem_async(stream: CUstream, address: CUdeviceptr, bytes: usize,
                flags: c_uint);
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
        cuMemFree_v2 3020 => mem_free(address: CUdeviceptr);
        cuMemHostAlloc 2020 => mem_host_alloc(memory: *mut *mut c_void, bytes: usize,
            flags: c_uint);
        cuMemFreeHost 2000 => mem_free_host(memory: *mut c_void);
        cuMemHostGetDevicePointer_v2 3020
            => mem_host_get_device_pointer(address: *mut CUdeviceptr, memory: *mut c_void,
                flags: c_uint);
        cuMemsetD8Async 3020,
        cuMemsetD8Async_ptsz 7000
            => memset_d8_async(destination: CUdeviceptr, value: c_uchar, count: usize,
                stream: CUstream);
        cuMemsetD32Async 3020,
        cuMemsetD32Async_ptsz 7000
            => memset_d32_async(destination: CUdeviceptr, value: c_uint, count: usize,
                stream: CUstream);
        cuMemcpyHtoDAsync_v2 3020,
        cuMemcpyHtoDAsync_v2_ptsz 7000
            => memcpy_h_to_d_async(destination: CUdeviceptr, source: *const c_void, bytes: usize,
                stream: CUstream);
        cuMemcpyDtoHAsync_v2 3020,
        cuMemcpyDtoHAsync_v2_ptsz 7000
            => memcpy_d_to_h_async(destination: *mut c_void, source: CUdeviceptr, bytes: usize,
                stream: CUstream);
        cuMemcpyDtoDAsync_v2 3020,
        cuMemcpyDtoDAsync_v2_ptsz 7000
            => memcpy_d_to_d_async(destination: CUdeviceptr, source: CUdeviceptr, bytes: usize,
                stream: CUstream);
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
        cuMemHostRegister_v2 6050
            => mem_host_register(memory: *mut c_void, bytes: usize, flags: c_uint);
        cuMemHostUnregister 4000 => mem_host_unregister(memory: *mut c_void);
        cuPointerGetAttribute 4000
            => pointer_get_attribute(value: *mut c_void, attribute: c_uint, address: CUdeviceptr);
        cuPointerGetAttributes 7000
            => pointer_get_attributes(count: c_uint, attributes: *mut c_uint,
                values: *mut *mut c_void, address: CUdeviceptr);
        cuMemGetAddressRange_v2 3020
            => mem_get_address_range(base: *mut CUdeviceptr, size: *mut usize,
                address: CUdeviceptr);

        cuGraphCreate 10000 => graph_create(graph: *mut CUgraph, flags: c_uint);
        cuGraphInstantiate_v2 11000
            => graph_instantiate(exec: *mut CUgraphExec, graph: CUgraph,
                error_node: *mut CUgraphNode, log: *mut c_uchar, log_size: usize);
        cuGraphInstantiateWithFlags 11040
            => graph_instantiate_with_flags(exec: *mut CUgraphExec, graph: CUgraph,
                flags: c_ulonglong);
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
        cuGraphLaunch 10000, cuGraphLaunch_ptsz 10000
            => graph_launch(exec: CUgraphExec, stream: CUstream);
        cuGraphDestroy 10000 => graph_destroy(graph: CUgraph);
        cuGraphExecDestroy 10000 => graph_exec_destroy(exec: CUgraphExec);
        cuGraphAddEventRecordNode 11010
            => graph_add_event_record_node(node: *mut CUgraphNode, graph: CUgraph,
                dependencies: *const CUgraphNode, count: usize, event: CUevent);
        cuGraphAddEventWaitNode 11010
            => graph_add_event_wait_node(node: *mut CUgraphNode, graph: CUgraph,
                dependencies: *const CUgraphNode, count: usize, event: CUevent);
        cuGraphEventRecordNodeGetEvent 11010
            => graph_event_record_node_get_event(node: CUgraphNode, event: *mut CUevent);
        cuGraphEventRecordNodeSetEvent 11010
            => graph_event_record_node_set_event(node: CUgraphNode, event: CUevent);
        cuGraphEventWaitNodeGetEvent 11010
            => graph_event_wait_node_get_event(node: CUgraphNode, event: *mut CUevent);
        cuGraphEventWaitNodeSetEvent 11010
            => graph_event_wait_node_set_event(node: CUgraphNode, event: CUevent);
        cuGraphExecEventRecordNodeSetEvent 11010
            => graph_exec_event_record_node_set_event(exec: CUgraphExec, node: CUgraphNode,
                event: CUevent);
        cuGraphExecEventWaitNodeSetEvent 11010
            => graph_exec_event_wait_node_set_event(exec: CUgraphExec, node: CUgraphNode,
                event: CUevent);
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

        cuDeviceGetDevResource 12040
            => device_get_dev_resource(device: CUdevice, resource: *mut CUdevResource,
                kind: CUdevResourceType);
        cuCtxGetDevResource 12040
            => ctx_get_dev_resource(context: CUcontext, resource: *mut CUdevResource,
                kind: CUdevResourceType);
        cuGreenCtxGetDevResource 12040
            => green_ctx_get_dev_resource(green: CUgreenCtx, resource: *mut CUdevResource,
                kind: CUdevResourceType);
        cuDevSmResourceSplitByCount 12040
            => dev_sm_resource_split_by_count(result: *mut CUdevResource, groups: *mut c_uint,
                input: *const CUdevResource, remaining: *mut CUdevResource, flags: c_uint,
            min_count: c_uint);
        cuDevResourceGenerateDesc 12040
            => dev_resource_generate_desc(description: *mut CUdevResourceDesc,
                resources: *mut CUdevResource, count: c_uint);
        cuGreenCtxCreate 12040
            => green_ctx_create(green: *mut CUgreenCtx, description: CUdevResourceDesc,
                device: CUdevice, flags: c_uint);
        cuGreenCtxDestroy 12040 => green_ctx_destroy(green: CUgreenCtx);
        cuCtxFromGreenCtx 12040 => ctx_from_green_ctx(context: *mut CUcontext, green: CUgreenCtx);
        cuGreenCtxRecordEvent 12040 => green_ctx_record_event(green: CUgreenCtx, event: CUevent);
        cuGreenCtxWaitEvent 12040 => green_ctx_wait_event(green: CUgreenCtx, event: CUevent);
        cuGreenCtxStreamCreate 12050
            => green_ctx_stream_create(stream: *mut CUstream, green: CUgreenCtx, flags: c_uint,
                priority: c_int);
    } };
}

macro_rules! define {
    ($($name:ident $version:literal $(, $twin:ident $twin_version:literal)?
        => $body:ident $arguments:tt;)*) => {
        #[allow(non_camel_case_types)]
        #[repr(u16)]
        enum Index { $($name, $($twin,)?)* }

        #[allow(non_upper_case_globals, missing_docs)]
        impl Id {
            $(
                pub const $name: Self = Self(Index::$name as u16);
                $(pub const $twin: Self = Self(Index::$twin as u16);)?
            )*
        }

        /// What has a body.
        const OWN: &[Export] = &[
            $(
                Export::new(stringify!($name), $version, false),
                $(Export::new(stringify!($twin), $twin_version, true),)?
            )*
        ];
    };
}

impl Id {
    /// The one at a place of the list of foreign functions.
    pub(crate) const fn foreign(index: usize) -> Self {
        Self((OWN.len() + index) as u16)
    }

    /// The one at a place among those that no list has.
    pub(crate) const fn unlisted(index: usize) -> Self {
        Self((OWN.len() + FOREIGN.len() + index) as u16)
    }
}

/// How many of the exports are in this list; the foreign ones come after them, and then those that
/// no list has.
pub(crate) const OWN_COUNT: usize = OWN.len();

/// The number of exported functions.
pub const COUNT: usize = OWN.len() + FOREIGN.len() + UNLISTED.len();

/// All exported functions.
pub static EXPORTS: &[Export] = &{
    let mut all = [OWN[0]; COUNT];
    let mut at = 0;
    while at < COUNT {
        all[at] = match (at.checked_sub(OWN.len()), at.checked_sub(OWN.len() + FOREIGN.len())) {
            (None, _) => OWN[at],
            (Some(foreign), None) => FOREIGN[foreign],
            (_, Some(unlisted)) => UNLISTED[unlisted],
        };
        at += 1;
    }
    all
};

for_each_export!(define);
