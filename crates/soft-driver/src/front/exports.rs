//! The one list of what the driver does.
//!
//! A line names an exported function, its per-thread-default-stream twin where there is one, the
//! body that implements it, and its parameters. The version that introduced a name follows it,
//! unless `cuda-events` binds the name: then its list has the version. The C functions, the table that `cuGetProcAddress` and
//! [`resolve`](crate::SoftDriver::resolve) look in, the exports of the shared library and the names
//! in the call log all come from here.
//!
//! The other exports have no body and stand in `foreign.rs`.

use crate::front::export::{Export, is_same};
use crate::front::foreign::FOREIGN;
pub use crate::machine::call_frame::Id;

/// Calls `$callback!` with the whole list.
#[macro_export]
#[doc(hidden)]
macro_rules! for_each_export {
    ($callback:ident) => { $callback! {
        cuInit => init(flags: c_uint);
        cuDriverGetVersion => driver_get_version(version: *mut c_int);
        cuGetProcAddress
            => get_proc_address_v1(symbol: *const c_uchar, function: *mut *mut c_void,
                version: c_int, flags: cuuint64_t);
        cuGetProcAddress_v2,
        cuGetProcAddress_v2_ptsz 12000
            => get_proc_address(symbol: *const c_uchar, function: *mut *mut c_void, version: c_int,
                flags: cuuint64_t, status: *mut CUdriverProcAddressQueryResult);
        cuGetErrorName => get_error_name(error: CUresult, text: *mut *const c_uchar);
        cuGetErrorString => get_error_string(error: CUresult, text: *mut *const c_uchar);

        cuGetExportTable 3000
            => get_export_table(table: *mut *const c_void, id: *const CUuuid);
        cuModuleGetLoadingMode 11070 => module_get_loading_mode(mode: *mut c_int);
        cuProfilerStart 4000 => profiler_switch();
        cuProfilerStop 4000 => profiler_switch();
        cuKernelGetName 12030
            => function_name(name: *mut *const c_uchar, function: *mut c_void);
        cuFuncGetName 12030
            => function_name(name: *mut *const c_uchar, function: *mut c_void);

        cuDeviceGet => device_get(device: *mut CUdevice, ordinal: c_int);
        cuDeviceGetCount => device_get_count(count: *mut c_int);
        cuDeviceGetName => device_get_name(name: *mut c_uchar, length: c_int,
            device: CUdevice);
        cuDeviceGetAttribute
            => device_get_attribute(value: *mut c_int, attribute: CUdevice_attribute,
                device: CUdevice);
        cuDeviceTotalMem_v2 => device_total_mem(bytes: *mut usize, device: CUdevice);
        cuDeviceGetUuid => device_get_uuid(uuid: *mut CUuuid, device: CUdevice);
        cuDeviceGetUuid_v2 => device_get_uuid(uuid: *mut CUuuid, device: CUdevice);
        cuDeviceGetLuid
            => device_get_luid(luid: *mut c_uchar, node_mask: *mut c_uint, device: CUdevice);
        cuDevicePrimaryCtxRetain
            => device_primary_ctx_retain(context: *mut CUcontext, device: CUdevice);
        cuDevicePrimaryCtxRelease_v2 => device_primary_ctx_release(device: CUdevice);
        cuDevicePrimaryCtxGetState
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

        cuCtxCreate_v2 => ctx_create(context: *mut CUcontext, flags: c_uint, device: CUdevice);
        cuCtxCreate_v4 => ctx_create_v4(context: *mut CUcontext,
            params: *mut CUctxCreateParams, flags: c_uint, device: CUdevice);
        cuCtxDestroy_v2 => ctx_destroy(context: CUcontext);
        cuCtxGetCurrent => ctx_get_current(context: *mut CUcontext);
        cuCtxSetCurrent => ctx_set_current(context: CUcontext);
        cuCtxPushCurrent_v2 => ctx_push_current(context: CUcontext);
        cuCtxPopCurrent_v2 => ctx_pop_current(context: *mut CUcontext);
        cuCtxGetDevice => ctx_get_device(device: *mut CUdevice);
        cuCtxGetDevice_v2 => ctx_get_device_of(device: *mut CUdevice, context: CUcontext);
        cuCtxSynchronize => ctx_synchronize();
        cuCtxSynchronize_v2 => ctx_synchronize_of(context: CUcontext);
        cuCtxGetStreamPriorityRange
            => ctx_get_stream_priority_range(least: *mut c_int, greatest: *mut c_int);
        cuCtxGetFlags => ctx_get_flags(flags: *mut c_uint);
        cuCtxGetId => ctx_get_id(context: CUcontext, id: *mut c_ulonglong);
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

        cuEventCreate => event_create(event: *mut CUevent, flags: c_uint);
        cuEventDestroy_v2 => event_destroy(event: CUevent);
        cuEventDestroy 2000 => event_destroy(event: CUevent);
        cuEventRecord, cuEventRecord_ptsz
            => event_record(event: CUevent, stream: CUstream);
        cuEventRecordWithFlags,
        cuEventRecordWithFlags_ptsz
            => event_record_with_flags(event: CUevent, stream: CUstream, flags: c_uint);
        cuEventQuery => event_query(event: CUevent);
        cuEventSynchronize => event_synchronize(event: CUevent);
        cuEventElapsedTime
            => event_elapsed_time(milliseconds: *mut f32, start: CUevent, end: CUevent);
        cuEventElapsedTime_v2
            => event_elapsed_time(milliseconds: *mut f32, start: CUevent, end: CUevent);
        cuIpcGetEventHandle
            => ipc_get_event_handle(handle: *mut CUipcEventHandle, event: CUevent);
        cuIpcOpenEventHandle
            => ipc_open_event_handle(event: *mut CUevent, handle: CUipcEventHandle);
        cuIpcGetMemHandle => ipc_get_mem_handle(handle: *mut MemHandle, address: CUdeviceptr);
        cuIpcOpenMemHandle 4010
            => ipc_open_mem_handle(address: *mut CUdeviceptr, handle: MemHandle, flags: c_uint);
        cuIpcOpenMemHandle_v2
            => ipc_open_mem_handle(address: *mut CUdeviceptr, handle: MemHandle, flags: c_uint);
        cuIpcCloseMemHandle => ipc_close_mem_handle(address: CUdeviceptr);
        cuCtxRecordEvent => ctx_record_event(context: CUcontext, event: CUevent);
        cuCtxWaitEvent => ctx_wait_event(context: CUcontext, event: CUevent);

        cuStreamCreate => stream_create(stream: *mut CUstream, flags: c_uint);
        cuStreamCreateWithPriority
            => stream_create_with_priority(stream: *mut CUstream, flags: c_uint, priority: c_int);
        cuStreamDestroy_v2 => stream_destroy(stream: CUstream);
        cuStreamDestroy 2000 => stream_destroy(stream: CUstream);
        cuStreamQuery, cuStreamQuery_ptsz => stream_query(stream: CUstream);
        cuStreamSynchronize,
        cuStreamSynchronize_ptsz => stream_synchronize(stream: CUstream);
        cuStreamWaitEvent,
        cuStreamWaitEvent_ptsz
            => stream_wait_event(stream: CUstream, event: CUevent, flags: c_uint);
        cuStreamGetPriority,
        cuStreamGetPriority_ptsz
            => stream_get_priority(stream: CUstream, priority: *mut c_int);
        cuStreamGetFlags,
        cuStreamGetFlags_ptsz => stream_get_flags(stream: CUstream, flags: *mut c_uint);
        cuStreamGetId, cuStreamGetId_ptsz
            => stream_get_id(stream: CUstream, id: *mut c_ulonglong);
        cuStreamGetCtx, cuStreamGetCtx_ptsz
            => stream_get_ctx(stream: CUstream, context: *mut CUcontext);
        cuStreamGetCtx_v2,
        cuStreamGetCtx_v2_ptsz
            => stream_get_ctx_v2(stream: CUstream, context: *mut CUcontext, green: *mut CUgreenCtx);
        cuStreamGetGreenCtx => stream_get_green_ctx(stream: CUstream, green: *mut CUgreenCtx);
        cuStreamGetDevice,
        cuStreamGetDevice_ptsz => stream_get_device(stream: CUstream, device: *mut CUdevice);
        cuStreamGetAttribute,
        cuStreamGetAttribute_ptsz
            => stream_get_attribute(stream: CUstream, attribute: CUstreamAttrID,
                value: *mut CUstreamAttrValue);
        cuStreamSetAttribute,
        cuStreamSetAttribute_ptsz
            => stream_set_attribute(stream: CUstream, attribute: CUstreamAttrID,
                value: *const CUstreamAttrValue);
        cuStreamCopyAttributes,
        cuStreamCopyAttributes_ptsz
            => stream_copy_attributes(destination: CUstream, source: CUstream);
        cuStreamAddCallback,
        cuStreamAddCallback_ptsz
            => stream_add_callback(stream: CUstream, callback: CUstreamCallback,
                user_data: *mut c_void, flags: c_uint);
        cuLaunchHostFunc,
        cuLaunchHostFunc_ptsz
            => launch_host_func(stream: CUstream, host_fn: CUhostFn, user_data: *mut c_void);
        cuLaunchHostFunc_v2,
        cuLaunchHostFunc_v2_ptsz
            => launch_host_func_v2(stream: CUstream, host_fn: CUhostFn, user_data: *mut c_void,
                sync_mode: c_uint);

        cuStreamBeginCapture 10000,
        cuStreamBeginCapture_ptsz 10000 => stream_begin_capture_v1(stream: CUstream);
        cuStreamBeginCapture_v2,
        cuStreamBeginCapture_v2_ptsz
            => stream_begin_capture(stream: CUstream, mode: CUstreamCaptureMode);
        cuStreamBeginCaptureToGraph,
        cuStreamBeginCaptureToGraph_ptsz
            => stream_begin_capture_to_graph(stream: CUstream, graph: CUgraph,
                dependencies: *const CUgraphNode, edges: *const CUgraphEdgeData, count: usize,
            mode: CUstreamCaptureMode);
        cuStreamEndCapture,
        cuStreamEndCapture_ptsz => stream_end_capture(stream: CUstream, graph: *mut CUgraph);
        cuStreamIsCapturing,
        cuStreamIsCapturing_ptsz
            => stream_is_capturing(stream: CUstream, status: *mut CUstreamCaptureStatus);
        cuStreamGetCaptureInfo,
        cuStreamGetCaptureInfo_ptsz
            => stream_get_capture_info_v1(stream: CUstream, status: *mut CUstreamCaptureStatus,
                id: *mut cuuint64_t);
        cuStreamGetCaptureInfo_v2,
        cuStreamGetCaptureInfo_v2_ptsz
            => stream_get_capture_info_v2(stream: CUstream, status: *mut CUstreamCaptureStatus,
                id: *mut cuuint64_t, graph: *mut CUgraph, dependencies: *mut *const CUgraphNode,
            count: *mut usize);
        cuStreamGetCaptureInfo_v3,
        cuStreamGetCaptureInfo_v3_ptsz
            => stream_get_capture_info_v3(stream: CUstream, status: *mut CUstreamCaptureStatus,
                id: *mut cuuint64_t, graph: *mut CUgraph, dependencies: *mut *const CUgraphNode,
            edge_data: *mut *const CUgraphEdgeData, count: *mut usize);
        cuStreamUpdateCaptureDependencies,
        cuStreamUpdateCaptureDependencies_ptsz
            => stream_update_capture_dependencies(stream: CUstream, nodes: *mut CUgraphNode,
                count: usize, flags: c_uint);
        cuStreamUpdateCaptureDependencies_v2,
        cuStreamUpdateCaptureDependencies_v2_ptsz
            => stream_update_capture_dependencies_v2(stream: CUstream, nodes: *mut CUgraphNode,
                edges: *const CUgraphEdgeData, count: usize, flags: c_uint);
        cuThreadExchangeStreamCaptureMode
            => thread_exchange_stream_capture_mode(mode: *mut CUstreamCaptureMode);

        cuStreamWaitValue32,
        cuStreamWaitValue32_ptsz
            => stream_wait_value32(stream: CUstream, address: CUdeviceptr, value: cuuint32_t,
                flags: c_uint);
        cuStreamWaitValue32_v2,
        cuStreamWaitValue32_v2_ptsz
            => stream_wait_value32(stream: CUstream, address: CUdeviceptr, value: cuuint32_t,
                flags: c_uint);
        cuStreamWaitValue64,
        cuStreamWaitValue64_ptsz
            => stream_wait_value64(stream: CUstream, address: CUdeviceptr, value: cuuint64_t,
                flags: c_uint);
        cuStreamWaitValue64_v2,
        cuStreamWaitValue64_v2_ptsz
            => stream_wait_value64(stream: CUstream, address: CUdeviceptr, value: cuuint64_t,
                flags: c_uint);
        cuStreamWriteValue32,
        cuStreamWriteValue32_ptsz
            => stream_write_value32(stream: CUstream, address: CUdeviceptr, value: cuuint32_t,
                flags: c_uint);
        cuStreamWriteValue32_v2,
        cuStreamWriteValue32_v2_ptsz
            => stream_write_value32(stream: CUstream, address: CUdeviceptr, value: cuuint32_t,
                flags: c_uint);
        cuStreamWriteValue64,
        cuStreamWriteValue64_ptsz
            => stream_write_value64(stream: CUstream, address: CUdeviceptr, value: cuuint64_t,
                flags: c_uint);
        cuStreamWriteValue64_v2,
        cuStreamWriteValue64_v2_ptsz
            => stream_write_value64(stream: CUstream, address: CUdeviceptr, value: cuuint64_t,
                flags: c_uint);
        cuStreamBatchMemOp,
        cuStreamBatchMemOp_ptsz
            => stream_batch_mem_op(stream: CUstream, count: c_uint,
                operations: *mut CUstreamBatchMemOpParams, flags: c_uint);
        cuStreamBatchMemOp_v2,
        cuStreamBatchMemOp_v2_ptsz
            => stream_batch_mem_op(stream: CUstream, count: c_uint,
                operations: *mut CUstreamBatchMemOpParams, flags: c_uint);

        cuImportExternalSemaphore
            => import_external_semaphore(semaphore: *mut CUexternalSemaphore,
                description: *const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC);
        cuDestroyExternalSemaphore
            => destroy_external_semaphore(semaphore: CUexternalSemaphore);
        cuSignalExternalSemaphoresAsync,
        cuSignalExternalSemaphoresAsync_ptsz
            => signal_external_semaphores_async(semaphores: *const CUexternalSemaphore,
                params: *const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS, count: c_uint,
                stream: CUstream);
        cuWaitExternalSemaphoresAsync,
        cuWaitExternalSemaphoresAsync_ptsz
            => wait_external_semaphores_async(semaphores: *const CUexternalSemaphore,
                params: *const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS, count: c_uint,
                stream: CUstream);

        cuMemGetInfo_v2 => mem_get_info(free: *mut usize, total: *mut usize);
        cuMemAlloc_v2 => mem_alloc(address: *mut CUdeviceptr, bytes: usize);
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
        cuStreamAttachMemAsync, cuStreamAttachMemAsync_ptsz
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
        cuMemFree_v2 => mem_free(address: CUdeviceptr);
        cuMemHostAlloc => mem_host_alloc(memory: *mut *mut c_void, bytes: usize,
            flags: c_uint);
        cuMemFreeHost => mem_free_host(memory: *mut c_void);
        cuMemHostGetDevicePointer_v2
            => mem_host_get_device_pointer(address: *mut CUdeviceptr, memory: *mut c_void,
                flags: c_uint);
        cuMemsetD8Async,
        cuMemsetD8Async_ptsz
            => memset_d8_async(destination: CUdeviceptr, value: c_uchar, count: usize,
                stream: CUstream);
        cuMemsetD32Async,
        cuMemsetD32Async_ptsz
            => memset_d32_async(destination: CUdeviceptr, value: c_uint, count: usize,
                stream: CUstream);
        cuMemcpyHtoDAsync_v2,
        cuMemcpyHtoDAsync_v2_ptsz
            => memcpy_h_to_d_async(destination: CUdeviceptr, source: *const c_void, bytes: usize,
                stream: CUstream);
        cuMemcpyDtoHAsync_v2,
        cuMemcpyDtoHAsync_v2_ptsz
            => memcpy_d_to_h_async(destination: *mut c_void, source: CUdeviceptr, bytes: usize,
                stream: CUstream);
        cuMemcpyDtoDAsync_v2,
        cuMemcpyDtoDAsync_v2_ptsz
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
        cuMemHostRegister_v2
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

        cuGraphCreate => graph_create(graph: *mut CUgraph, flags: c_uint);
        cuGraphInstantiate_v2
            => graph_instantiate(exec: *mut CUgraphExec, graph: CUgraph,
                error_node: *mut CUgraphNode, log: *mut c_uchar, log_size: usize);
        cuGraphInstantiateWithFlags
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
        cuGraphLaunch, cuGraphLaunch_ptsz
            => graph_launch(exec: CUgraphExec, stream: CUstream);
        cuGraphDestroy => graph_destroy(graph: CUgraph);
        cuGraphExecDestroy => graph_exec_destroy(exec: CUgraphExec);
        cuGraphAddEventRecordNode
            => graph_add_event_record_node(node: *mut CUgraphNode, graph: CUgraph,
                dependencies: *const CUgraphNode, count: usize, event: CUevent);
        cuGraphAddEventWaitNode
            => graph_add_event_wait_node(node: *mut CUgraphNode, graph: CUgraph,
                dependencies: *const CUgraphNode, count: usize, event: CUevent);
        cuGraphEventRecordNodeGetEvent
            => graph_event_record_node_get_event(node: CUgraphNode, event: *mut CUevent);
        cuGraphEventRecordNodeSetEvent
            => graph_event_record_node_set_event(node: CUgraphNode, event: CUevent);
        cuGraphEventWaitNodeGetEvent
            => graph_event_wait_node_get_event(node: CUgraphNode, event: *mut CUevent);
        cuGraphEventWaitNodeSetEvent
            => graph_event_wait_node_set_event(node: CUgraphNode, event: CUevent);
        cuGraphExecEventRecordNodeSetEvent
            => graph_exec_event_record_node_set_event(exec: CUgraphExec, node: CUgraphNode,
                event: CUevent);
        cuGraphExecEventWaitNodeSetEvent
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

        cuDeviceGetDevResource
            => device_get_dev_resource(device: CUdevice, resource: *mut CUdevResource,
                kind: CUdevResourceType);
        cuCtxGetDevResource
            => ctx_get_dev_resource(context: CUcontext, resource: *mut CUdevResource,
                kind: CUdevResourceType);
        cuGreenCtxGetDevResource
            => green_ctx_get_dev_resource(green: CUgreenCtx, resource: *mut CUdevResource,
                kind: CUdevResourceType);
        cuDevSmResourceSplitByCount
            => dev_sm_resource_split_by_count(result: *mut CUdevResource, groups: *mut c_uint,
                input: *const CUdevResource, remaining: *mut CUdevResource, flags: c_uint,
            min_count: c_uint);
        cuDevResourceGenerateDesc
            => dev_resource_generate_desc(description: *mut CUdevResourceDesc,
                resources: *mut CUdevResource, count: c_uint);
        cuGreenCtxCreate
            => green_ctx_create(green: *mut CUgreenCtx, description: CUdevResourceDesc,
                device: CUdevice, flags: c_uint);
        cuGreenCtxDestroy => green_ctx_destroy(green: CUgreenCtx);
        cuCtxFromGreenCtx => ctx_from_green_ctx(context: *mut CUcontext, green: CUgreenCtx);
        cuGreenCtxRecordEvent => green_ctx_record_event(green: CUgreenCtx, event: CUevent);
        cuGreenCtxWaitEvent => green_ctx_wait_event(green: CUgreenCtx, event: CUevent);
        cuGreenCtxStreamCreate
            => green_ctx_stream_create(stream: *mut CUstream, green: CUgreenCtx, flags: c_uint,
                priority: c_int);
    } };
}

macro_rules! define {
    ($($name:ident $($version:literal)? $(, $twin:ident $($twin_version:literal)?)?
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
        #[allow(long_running_const_eval, reason = "each name is looked up in another list")]
        const OWN: &[Export] = &[
            $(
                Export::new(stringify!($name), &[$($version)?], false),
                $(Export::new(stringify!($twin), &[$($twin_version)?], true),)?
            )*
        ];
    };
}

impl Id {
    /// The one at a place of the list of foreign functions.
    pub(crate) const fn foreign(index: usize) -> Self {
        Self((OWN.len() + index) as u16)
    }
}

/// How many of the exports are in this list; the foreign ones come after them.
pub(crate) const OWN_COUNT: usize = OWN.len();

/// The number of exported functions.
pub const COUNT: usize = OWN.len() + FOREIGN.len();

/// All exported functions.
pub static EXPORTS: &[Export] = &{
    let mut all = [OWN[0]; COUNT];
    let mut at = 0;
    while at < COUNT {
        all[at] = match at.checked_sub(OWN.len()) {
            None => OWN[at],
            Some(foreign) => FOREIGN[foreign],
        };
        at += 1;
    }
    all
};

for_each_export!(define);

/// A line for each entry point that `cuda-events` binds.
macro_rules! check_bound {
    ($($page:ident { $(
        $need:ident $function:ident $(($header:ident))? $typedef:ident $($twin:ident)?
            $(, $creates:ident)?;
    )* })*) => {
        $($(const _: () = assert!(
            is_exported(stringify!($function)),
            concat!(
                stringify!($function),
                " is bound, but not exported: add it to the list in front/foreign.rs, or to that \
                 in front/exports.rs with its body",
            ),
        );)*)*
    };
}

#[allow(dead_code, reason = "Rust 1.88 counts no uses in unnamed constants")]
const fn is_exported(name: &str) -> bool {
    let mut at = 0;
    while at < COUNT {
        if is_same(EXPORTS[at].name, name) {
            return true;
        }
        at += 1;
    }
    false
}

cuda_events::for_each_entry_point!(check_bound);
