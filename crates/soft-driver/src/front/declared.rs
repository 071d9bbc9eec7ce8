//! That bodies of entry points have the types of the driver's functions.
//!
//! A body has handles as pointers, and numbers for what NVIDIA's headers give a name to. So its type
//! must only be passed in the same way as that of the declarations. What does not fit does not
//! compile.

use core::ffi::c_void;

use cuda_events::sys::more::*;

use crate::abi::*;

cuda_events::__passing!(returns CUresult);

cuda_events::__passing! { structures
    CUctx_st, CUctxCreateParams, CUdevResource, CUdevResourceDesc_st, CUdevResourceType,
    CUDA_BATCH_MEM_OP_NODE_PARAMS, CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC,
    CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS, CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS,
    CUDA_GRAPH_INSTANTIATE_PARAMS, CUDA_HOST_NODE_PARAMS, CUDA_MEMSET_NODE_PARAMS,
    CUgraphExecUpdateResultInfo, CUdevice_attribute, CUdriverProcAddressQueryResult,
    CUextSemaphore_st, CUgreenCtx_st, CUipcEventHandle, CUstreamBatchMemOpParams,
    CUstreamCaptureMode, CUstreamCaptureStatus, CUstreamCallback,
    CUevent_st, CUexecAffinityParam, CUgraph_st, CUgraphEdgeData, CUgraphExec_st,
    CUDA_KERNEL_NODE_PARAMS_v1, CUDA_KERNEL_NODE_PARAMS_v2, CUgraphNode_st, CUipcMemHandle,
    CUlaunchAttributeValue, CUlaunchConfig, CUstream_st, CUuuid,
}

cuda_events::__passing! { types
    CUhostFn: CUhostFn, *const c_void: CUoccupancyB2DSize, MemHandle: CUmemPoolPtrExportData,
    CUlaunchAttributeID: CUlaunchAttributeID,
}

/// A structure of this crate has the layout of the driver's: each field is where that one's is, and
/// none is left out. The latter is only asked by tests: a later version may have one more in the place
/// of reserved bytes.
macro_rules! layouts {
    ($($own:ident as $their:ident { $($name:ident at $($field:ident).+),* $(,)? })*) => {$(
        cuda_events::__passing! { types $own: $their }
        $(const _: () = assert!(
            core::mem::offset_of!($own, $($field).+) == core::mem::offset_of!($their, $name)
        );)*
        #[cfg(test)]
        const _: fn($their) = |$their { $($name: _),* }| {};
    )*};
}

layouts! {
    Copy2D as CUDA_MEMCPY2D {
        srcXInBytes at source.x, srcY at source.y, srcMemoryType at source.memory_type,
        srcHost at source.host, srcDevice at source.device, srcArray at source.array,
        srcPitch at source.pitch, dstXInBytes at destination.x, dstY at destination.y,
        dstMemoryType at destination.memory_type, dstHost at destination.host,
        dstDevice at destination.device, dstArray at destination.array,
        dstPitch at destination.pitch, WidthInBytes at width, Height at height,
    }
    Copy3D as CUDA_MEMCPY3D {
        srcXInBytes at source.x, srcY at source.y, srcZ at source.z, srcLOD at source.lod,
        srcMemoryType at source.memory_type, srcHost at source.host, srcDevice at source.device,
        srcArray at source.array, reserved0 at source.reserved, srcPitch at source.pitch,
        srcHeight at source.height, dstXInBytes at destination.x, dstY at destination.y,
        dstZ at destination.z, dstLOD at destination.lod,
        dstMemoryType at destination.memory_type, dstHost at destination.host,
        dstDevice at destination.device, dstArray at destination.array,
        reserved1 at destination.reserved, dstPitch at destination.pitch,
        dstHeight at destination.height, WidthInBytes at width, Height at height, Depth at depth,
    }
    Copy3D as CUDA_MEMCPY3D_PEER {
        srcXInBytes at source.x, srcY at source.y, srcZ at source.z, srcLOD at source.lod,
        srcMemoryType at source.memory_type, srcHost at source.host, srcDevice at source.device,
        srcArray at source.array, srcContext at source.reserved, srcPitch at source.pitch,
        srcHeight at source.height, dstXInBytes at destination.x, dstY at destination.y,
        dstZ at destination.z, dstLOD at destination.lod,
        dstMemoryType at destination.memory_type, dstHost at destination.host,
        dstDevice at destination.device, dstArray at destination.array,
        dstContext at destination.reserved, dstPitch at destination.pitch,
        dstHeight at destination.height, WidthInBytes at width, Height at height, Depth at depth,
    }
    Location as CUmemLocation { type_ at kind, id at id }
    AccessDesc as CUmemAccessDesc { location at location, flags at flags }
    PoolProps as CUmemPoolProps {
        allocType at alloc_type, handleTypes at handle_types, location at location,
        win32SecurityAttributes at security_attributes, maxSize at max_size, usage at usage,
        gpuDirectRDMACapable at gpu_direct_rdma_capable, reserved at reserved,
    }
    AllocationProps as CUmemAllocationProp {
        type_ at kind, requestedHandleTypes at handle_types, location at location,
        win32HandleMetaData at security_attributes, allocFlags at flags,
    }
}
