//! The C types of the driver, and constants that this crate uses often.

pub use cuda_events::sys::more::{
    CU_MEM_ACCESS_FLAGS_PROT_READ, CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
    CUDA_GRAPH_INSTANTIATE_PARAMS, CUDA_MEMCPY2D, CUDA_MEMCPY3D, CUDA_MEMCPY3D_PEER,
    CUDA_MEMSET_NODE_PARAMS, CUarray, CUfunction_attribute, CUgraphExecUpdateResult,
    CUgraphExecUpdateResultInfo, CUgraphInstantiateResult, CUmemAccessDesc,
    CUmemAllocationHandleType, CUmemAllocationProp, CUmemAllocationType, CUmemLocation,
    CUmemLocationType, CUmemPoolProps, CUmemPoolPtrExportData, CUmemorytype, CUmoduleLoadingMode,
};
pub use cuda_events::sys::*;

/// What the body of an entry point returns: success, or the error code.
pub(crate) type Answer = Result<(), CUresult>;

pub(crate) const SUCCESS: CUresult = CUresult::CUDA_SUCCESS;
pub(crate) const INVALID_VALUE: CUresult = CUresult::CUDA_ERROR_INVALID_VALUE;
pub(crate) const OUT_OF_MEMORY: CUresult = CUresult::CUDA_ERROR_OUT_OF_MEMORY;
pub(crate) const NOT_INITIALIZED: CUresult = CUresult::CUDA_ERROR_NOT_INITIALIZED;
pub(crate) const DEINITIALIZED: CUresult = CUresult::CUDA_ERROR_DEINITIALIZED;
pub(crate) const NO_DEVICE: CUresult = CUresult::CUDA_ERROR_NO_DEVICE;
pub(crate) const INVALID_DEVICE: CUresult = CUresult::CUDA_ERROR_INVALID_DEVICE;
pub(crate) const INVALID_CONTEXT: CUresult = CUresult::CUDA_ERROR_INVALID_CONTEXT;
#[cfg(any(target_os = "linux", windows))]
pub(crate) const MAP_FAILED: CUresult = CUresult::CUDA_ERROR_MAP_FAILED;
pub(crate) const OPERATING_SYSTEM: CUresult = CUresult::CUDA_ERROR_OPERATING_SYSTEM;
pub(crate) const INVALID_HANDLE: CUresult = CUresult::CUDA_ERROR_INVALID_HANDLE;
pub(crate) const ILLEGAL_STATE: CUresult = CUresult::CUDA_ERROR_ILLEGAL_STATE;
pub(crate) const NOT_FOUND: CUresult = CUresult::CUDA_ERROR_NOT_FOUND;
pub(crate) const NOT_READY: CUresult = CUresult::CUDA_ERROR_NOT_READY;
pub(crate) const CONTEXT_IS_DESTROYED: CUresult = CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED;
pub(crate) const STREAM_DETACHED: CUresult = CUresult::CUDA_ERROR_STREAM_DETACHED;
pub(crate) const NOT_PERMITTED: CUresult = CUresult::CUDA_ERROR_NOT_PERMITTED;
pub(crate) const NOT_SUPPORTED: CUresult = CUresult::CUDA_ERROR_NOT_SUPPORTED;
