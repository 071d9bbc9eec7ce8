//! That bodies of entry points have the types of the driver's functions.
//!
//! A body has handles as pointers, and numbers for what NVIDIA's headers give a name to. So its type
//! must only be passed in the same way as that of the declarations. What does not fit does not
//! compile.

use core::ffi::c_void;

use cuda_events::sys::more::*;

cuda_events::__passing!(returns CUresult);

cuda_events::__passing! { structures
    CUctx_st, CUctxCreateParams, CUdevResource, CUdevResourceDesc_st, CUdevResourceType,
    CUDA_BATCH_MEM_OP_NODE_PARAMS, CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC,
    CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS, CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS,
    CUDA_GRAPH_INSTANTIATE_PARAMS, CUDA_HOST_NODE_PARAMS, CUDA_MEMCPY2D, CUDA_MEMCPY3D,
    CUDA_MEMCPY3D_PEER, CUDA_MEMSET_NODE_PARAMS,
    CUgraphExecUpdateResultInfo, CUdevice_attribute, CUdriverProcAddressQueryResult,
    CUextSemaphore_st, CUgreenCtx_st, CUipcEventHandle, CUstreamBatchMemOpParams,
    CUstreamCaptureMode, CUstreamCaptureStatus, CUstreamCallback,
    CUevent_st, CUexecAffinityParam, CUgraph_st, CUgraphEdgeData, CUgraphExec_st,
    CUDA_KERNEL_NODE_PARAMS_v1, CUDA_KERNEL_NODE_PARAMS_v2, CUgraphNode_st, CUipcMemHandle,
    CUlaunchAttributeValue, CUlaunchConfig, CUmemAccessDesc, CUmemAllocationProp, CUmemLocation,
    CUmemPoolProps, CUmemPoolPtrExportData, CUstream_st, CUuuid,
}

cuda_events::__passing! { types
    CUhostFn: CUhostFn, *const c_void: CUoccupancyB2DSize, CUlaunchAttributeID: CUlaunchAttributeID,
}
