//! The one list of what the driver does.
//!
//! A line names an exported function, its per-thread-default-stream twin where there is one, the
//! body that implements it, and its parameters. This file has the names that `cuda-events` binds:
//! its list has their versions, and its types are compared with the parameters when this compiles.
//! `courtesy/exports.rs` has the others, each with its version. The C functions, the table that
//! `cuGetProcAddress` and [`resolve`](crate::SoftDriver::resolve) look in, the exports of the shared
//! library and the names in the call log all come from the two.
//!
//! The other exports have no body and stand in `foreign.rs`.

use crate::front::export::{Export, is_same};
use crate::front::foreign::FOREIGN;
pub use crate::machine::call_frame::Id;

/// Calls `$callback!` with the whole list: these lines, and after them those of the courtesy.
#[macro_export]
#[doc(hidden)]
macro_rules! for_each_export {
    ($callback:ident) => { $crate::for_each_courtesy_export! { $callback
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

        cuEventCreate => event_create(event: *mut CUevent, flags: c_uint);
        cuEventDestroy_v2 => event_destroy(event: CUevent);
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
        cuIpcOpenMemHandle_v2
            => ipc_open_mem_handle(address: *mut CUdeviceptr, handle: MemHandle, flags: c_uint);
        cuIpcCloseMemHandle => ipc_close_mem_handle(address: CUdeviceptr);
        cuCtxRecordEvent => ctx_record_event(context: CUcontext, event: CUevent);
        cuCtxWaitEvent => ctx_wait_event(context: CUcontext, event: CUevent);

        cuStreamCreate => stream_create(stream: *mut CUstream, flags: c_uint);
        cuStreamCreateWithPriority
            => stream_create_with_priority(stream: *mut CUstream, flags: c_uint, priority: c_int);
        cuStreamDestroy_v2 => stream_destroy(stream: CUstream);
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
        cuStreamAttachMemAsync, cuStreamAttachMemAsync_ptsz
            => stream_attach_mem_async(stream: CUstream, address: CUdeviceptr, bytes: usize,
                flags: c_uint);
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
        cuMemHostRegister_v2
            => mem_host_register(memory: *mut c_void, bytes: usize, flags: c_uint);

        cuGraphCreate => graph_create(graph: *mut CUgraph, flags: c_uint);
        cuGraphInstantiate_v2
            => graph_instantiate(exec: *mut CUgraphExec, graph: CUgraph,
                error_node: *mut CUgraphNode, log: *mut c_uchar, log_size: usize);
        cuGraphInstantiateWithFlags
            => graph_instantiate_with_flags(exec: *mut CUgraphExec, graph: CUgraph,
                flags: c_ulonglong);
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
