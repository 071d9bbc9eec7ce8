//! The one list of what the driver exports.
//!
//! A group is a module and has its entry points: the exported name, its per-thread-default-stream
//! twin where there is one, and the body, a function of that module. The parameters of the body are
//! those of the C function. This file has what `cuda-events` binds: its list has the versions, and
//! its types are compared with the parameters when this compiles. `courtesy/exports.rs` has the
//! rest, each with its version. The C functions, the table that `cuGetProcAddress` and
//! [`resolve`](crate::SoftDriver::resolve) look in, the exports of the shared library and the names
//! in the call log all come from the two.

use crate::front::export::{Export, is_same};
pub use crate::machine::call_frame::Id;

/// Calls `$callback!` with the groups, and with the names that have no body and return
/// `CUDA_ERROR_NOT_SUPPORTED`: these, and after them those of the courtesy.
#[macro_export]
#[doc(hidden)]
macro_rules! for_each_export {
    ($callback:ident) => { $crate::for_each_courtesy_export! { $callback {
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
            cuGetProcAddress_v2, cuGetProcAddress_v2_ptsz 12000 => get_proc_address;
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
            cuEventQuery => event_query;
            cuEventSynchronize => event_synchronize;
            cuEventElapsedTime => event_elapsed_time;
            cuEventElapsedTime_v2 => event_elapsed_time;
        }
        [ipc::event] {
            cuIpcGetEventHandle => ipc_get_event_handle;
            cuIpcOpenEventHandle => ipc_open_event_handle;
        }
        [ipc::memory] {
            cuIpcGetMemHandle => ipc_get_mem_handle;
            cuIpcOpenMemHandle_v2 => ipc_open_mem_handle;
            cuIpcCloseMemHandle => ipc_close_mem_handle;
        }
        [stream] {
            cuStreamCreate => stream_create;
            cuStreamCreateWithPriority => stream_create_with_priority;
            cuStreamDestroy_v2 => stream_destroy;
            cuStreamQuery, cuStreamQuery_ptsz => stream_query;
            cuStreamSynchronize, cuStreamSynchronize_ptsz => stream_synchronize;
            cuStreamWaitEvent, cuStreamWaitEvent_ptsz => stream_wait_event;
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
        }
        [values] {
            cuStreamWaitValue32, cuStreamWaitValue32_ptsz => stream_wait_value32;
            cuStreamWaitValue32_v2, cuStreamWaitValue32_v2_ptsz => stream_wait_value32;
            cuStreamWaitValue64, cuStreamWaitValue64_ptsz => stream_wait_value64;
            cuStreamWaitValue64_v2, cuStreamWaitValue64_v2_ptsz => stream_wait_value64;
            cuStreamWriteValue32, cuStreamWriteValue32_ptsz => stream_write_value32;
            cuStreamWriteValue32_v2, cuStreamWriteValue32_v2_ptsz => stream_write_value32;
            cuStreamWriteValue64, cuStreamWriteValue64_ptsz => stream_write_value64;
            cuStreamWriteValue64_v2, cuStreamWriteValue64_v2_ptsz => stream_write_value64;
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
            cuMemsetD8Async, cuMemsetD8Async_ptsz => memset_d8_async;
            cuMemsetD32Async, cuMemsetD32Async_ptsz => memset_d32_async;
            cuMemcpyHtoDAsync_v2, cuMemcpyHtoDAsync_v2_ptsz => memcpy_h_to_d_async;
            cuMemcpyDtoHAsync_v2, cuMemcpyDtoHAsync_v2_ptsz => memcpy_d_to_h_async;
            cuMemcpyDtoDAsync_v2, cuMemcpyDtoDAsync_v2_ptsz => memcpy_d_to_d_async;
        }
        [graph] {
            cuGraphCreate => graph_create;
            cuGraphDestroy => graph_destroy;
        }
        [graph::exec] {
            cuGraphInstantiate_v2 => graph_instantiate;
            cuGraphInstantiateWithFlags => graph_instantiate_with_flags;
            cuGraphLaunch, cuGraphLaunch_ptsz => graph_launch;
            cuGraphExecDestroy => graph_exec_destroy;
        }
        [graph::events] {
            cuGraphAddEventRecordNode => graph_add_event_record_node;
            cuGraphAddEventWaitNode => graph_add_event_wait_node;
            cuGraphEventRecordNodeGetEvent => graph_event_record_node_get_event;
            cuGraphEventRecordNodeSetEvent => graph_event_record_node_set_event;
            cuGraphEventWaitNodeGetEvent => graph_event_wait_node_get_event;
            cuGraphEventWaitNodeSetEvent => graph_event_wait_node_set_event;
            cuGraphExecEventRecordNodeSetEvent => graph_exec_event_record_node_set_event;
            cuGraphExecEventWaitNodeSetEvent => graph_exec_event_wait_node_set_event;
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
    } {
        cuCheckpointOperationComplete, cuCheckpointProcessCheckpoint,
        cuCheckpointProcessGetRestoreThreadId, cuCheckpointProcessGetState,
        cuCheckpointProcessLock, cuCheckpointProcessRestore, cuCheckpointProcessUnlock,
        cuCoredumpDeregisterCompleteCallback, cuCoredumpDeregisterStartCallback,
        cuCoredumpGetAttribute, cuCoredumpGetAttributeGlobal, cuCoredumpRegisterCompleteCallback,
        cuCoredumpRegisterStartCallback, cuCoredumpSetAttribute, cuCoredumpSetAttributeGlobal,
        cuDestroyExternalMemory, cuDeviceGetHostAtomicCapabilities,
        cuDeviceGetP2PAtomicCapabilities, cuDeviceRegisterAsyncNotification,
        cuDeviceUnregisterAsyncNotification, cuExternalMemoryGetMappedBuffer,
        cuGraphAddExternalSemaphoresSignalNode, cuGraphAddExternalSemaphoresWaitNode,
        cuGraphExecExternalSemaphoresSignalNodeSetParams,
        cuGraphExecExternalSemaphoresWaitNodeSetParams,
        cuGraphExternalSemaphoresSignalNodeGetParams, cuGraphExternalSemaphoresSignalNodeSetParams,
        cuGraphExternalSemaphoresWaitNodeGetParams, cuGraphExternalSemaphoresWaitNodeSetParams,
        cuGreenCtxGetId, cuImportExternalMemory, cuLogsDumpToFile, cuLogsRegisterCallback,
        cuLogsUnregisterCallback, cuStreamBeginCaptureToCig, cuStreamBeginCaptureToCig_ptsz,
        cuStreamBeginRecaptureToGraph, cuStreamBeginRecaptureToGraph_ptsz, cuStreamEndCaptureToCig,
        cuStreamEndCaptureToCig_ptsz, cuStreamGetDevResource, cuStreamGetDevResource_ptsz
    } } };
}

macro_rules! define {
    ({ $($module:tt { $(
        $name:ident $($version:literal)? $(, $twin:ident $($twin_version:literal)?)? => $body:ident;
    )* })* } { $($without:ident $($without_version:literal)?),* }) => {
        #[allow(non_camel_case_types)]
        #[repr(u16)]
        enum Place { $($($name, $($twin,)?)*)* $($without,)* }

        #[allow(non_upper_case_globals, missing_docs)]
        impl Id {
            $($(
                pub const $name: Self = Self(Place::$name as u16);
                $(pub const $twin: Self = Self(Place::$twin as u16);)?
            )*)*
            $(pub const $without: Self = Self(Place::$without as u16);)*
        }

        const LIST: &[Export] = &[
            $($(
                Export::new(stringify!($name), &[$($version)?], true),
                $(Export::new(stringify!($twin), &[$($twin_version)?], true),)?
            )*)*
            $(Export::new(stringify!($without), &[$($without_version)?], false),)*
        ];
    };
}

for_each_export!(define);

/// The number of exported functions.
pub const COUNT: usize = LIST.len();

/// All exported functions.
pub static EXPORTS: &[Export] = LIST;

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
                " is bound, but not exported: add it to the list in front/exports.rs, with its \
                 body or to the names without one",
            ),
        );)*)*
    };
}

#[allow(dead_code, reason = "Rust 1.88 counts no uses in unnamed constants")]
const fn is_exported(name: &str) -> bool {
    let mut at = 0;
    while at < COUNT {
        if is_same(LIST[at].name, name) {
            return true;
        }
        at += 1;
    }
    false
}

cuda_events::for_each_entry_point!(check_bound);
