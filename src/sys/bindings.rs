// Generated from wrapper.h by `tools/bindings --write`. Do not edit.

pub const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_SKIP_NVSCIBUF_MEMSYNC: u32 = 1;
pub const CUDA_EXTERNAL_SEMAPHORE_WAIT_SKIP_NVSCIBUF_MEMSYNC: u32 = 2;
pub const CUDA_EXTERNAL_MEMORY_DEDICATED: u32 = 1;
pub const CU_MEMHOSTALLOC_PORTABLE: u32 = 1;
pub const CU_MEMHOSTALLOC_DEVICEMAP: u32 = 2;
pub const CU_MEMHOSTALLOC_WRITECOMBINED: u32 = 4;
pub const CU_MEMHOSTREGISTER_PORTABLE: u32 = 1;
pub const CU_MEMHOSTREGISTER_DEVICEMAP: u32 = 2;
pub const CU_MEMHOSTREGISTER_READ_ONLY: u32 = 8;
pub type cuuint32_t = ::core::ffi::c_uint;
pub type cuuint64_t = ::core::ffi::c_ulonglong;
pub type CUdevice = ::core::ffi::c_int;
pub type CUdeviceptr = ::core::ffi::c_ulonglong;
#[repr(C)]
#[derive(Debug)]
pub struct CUctx_st {
    _unused: [u8; 0],
}
pub type CUcontext = *mut CUctx_st;
#[repr(C)]
#[derive(Debug)]
pub struct CUgreenCtx_st {
    _unused: [u8; 0],
}
pub type CUgreenCtx = *mut CUgreenCtx_st;
#[repr(C)]
#[derive(Debug)]
pub struct CUdevResourceDesc_st {
    _unused: [u8; 0],
}
pub type CUdevResourceDesc = *mut CUdevResourceDesc_st;
#[repr(C)]
#[derive(Debug)]
pub struct CUevent_st {
    _unused: [u8; 0],
}
pub type CUevent = *mut CUevent_st;
#[repr(C)]
#[derive(Debug)]
pub struct CUstream_st {
    _unused: [u8; 0],
}
pub type CUstream = *mut CUstream_st;
#[repr(C)]
#[derive(Debug)]
pub struct CUgraph_st {
    _unused: [u8; 0],
}
pub type CUgraph = *mut CUgraph_st;
#[repr(C)]
#[derive(Debug)]
pub struct CUgraphExec_st {
    _unused: [u8; 0],
}
pub type CUgraphExec = *mut CUgraphExec_st;
#[repr(C)]
#[derive(Debug)]
pub struct CUgraphNode_st {
    _unused: [u8; 0],
}
pub type CUgraphNode = *mut CUgraphNode_st;
#[repr(C)]
#[derive(Debug)]
pub struct CUextSemaphore_st {
    _unused: [u8; 0],
}
pub type CUexternalSemaphore = *mut CUextSemaphore_st;
#[repr(C)]
#[derive(Debug)]
pub struct CUextMemory_st {
    _unused: [u8; 0],
}
pub type CUexternalMemory = *mut CUextMemory_st;
#[repr(C)]
#[derive(Debug)]
pub struct CUlogsCallbackEntry_st {
    _unused: [u8; 0],
}
pub type CUlogsCallbackHandle = *mut CUlogsCallbackEntry_st;
#[repr(C)]
#[derive(Debug)]
pub struct CUasyncCallbackEntry_st {
    _unused: [u8; 0],
}
pub type CUasyncCallbackHandle = *mut CUasyncCallbackEntry_st;
#[repr(C)]
#[derive(Debug)]
pub struct CUcoredumpCallbackEntry_st {
    _unused: [u8; 0],
}
pub type CUcoredumpCallbackHandle = *mut CUcoredumpCallbackEntry_st;
#[repr(C)]
#[derive(Debug)]
pub struct CUIcheckpointOperation_st {
    _unused: [u8; 0],
}
pub type CUcheckpointOperationHandle = *mut CUIcheckpointOperation_st;
pub type CUlogIterator = ::core::ffi::c_uint;
pub const CU_STREAM_LEGACY: CUstream = ::core::ptr::without_provenance_mut(1);
pub const CU_STREAM_PER_THREAD: CUstream = ::core::ptr::without_provenance_mut(2);
impl CUresult {
    pub const CUDA_SUCCESS: CUresult = CUresult(0);
    pub const CUDA_ERROR_INVALID_VALUE: CUresult = CUresult(1);
    pub const CUDA_ERROR_OUT_OF_MEMORY: CUresult = CUresult(2);
    pub const CUDA_ERROR_NOT_INITIALIZED: CUresult = CUresult(3);
    pub const CUDA_ERROR_DEINITIALIZED: CUresult = CUresult(4);
    pub const CUDA_ERROR_PROFILER_DISABLED: CUresult = CUresult(5);
    pub const CUDA_ERROR_PROFILER_NOT_INITIALIZED: CUresult = CUresult(6);
    pub const CUDA_ERROR_PROFILER_ALREADY_STARTED: CUresult = CUresult(7);
    pub const CUDA_ERROR_PROFILER_ALREADY_STOPPED: CUresult = CUresult(8);
    pub const CUDA_ERROR_STUB_LIBRARY: CUresult = CUresult(34);
    pub const CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER: CUresult = CUresult(36);
    pub const CUDA_ERROR_DEVICE_UNAVAILABLE: CUresult = CUresult(46);
    pub const CUDA_ERROR_MULTICAST_RESOURCE_FULL: CUresult = CUresult(47);
    pub const CUDA_ERROR_NO_DEVICE: CUresult = CUresult(100);
    pub const CUDA_ERROR_INVALID_DEVICE: CUresult = CUresult(101);
    pub const CUDA_ERROR_DEVICE_NOT_LICENSED: CUresult = CUresult(102);
    pub const CUDA_ERROR_INVALID_IMAGE: CUresult = CUresult(200);
    pub const CUDA_ERROR_INVALID_CONTEXT: CUresult = CUresult(201);
    pub const CUDA_ERROR_CONTEXT_ALREADY_CURRENT: CUresult = CUresult(202);
    pub const CUDA_ERROR_MAP_FAILED: CUresult = CUresult(205);
    pub const CUDA_ERROR_UNMAP_FAILED: CUresult = CUresult(206);
    pub const CUDA_ERROR_ARRAY_IS_MAPPED: CUresult = CUresult(207);
    pub const CUDA_ERROR_ALREADY_MAPPED: CUresult = CUresult(208);
    pub const CUDA_ERROR_NO_BINARY_FOR_GPU: CUresult = CUresult(209);
    pub const CUDA_ERROR_ALREADY_ACQUIRED: CUresult = CUresult(210);
    pub const CUDA_ERROR_NOT_MAPPED: CUresult = CUresult(211);
    pub const CUDA_ERROR_NOT_MAPPED_AS_ARRAY: CUresult = CUresult(212);
    pub const CUDA_ERROR_NOT_MAPPED_AS_POINTER: CUresult = CUresult(213);
    pub const CUDA_ERROR_ECC_UNCORRECTABLE: CUresult = CUresult(214);
    pub const CUDA_ERROR_UNSUPPORTED_LIMIT: CUresult = CUresult(215);
    pub const CUDA_ERROR_CONTEXT_ALREADY_IN_USE: CUresult = CUresult(216);
    pub const CUDA_ERROR_PEER_ACCESS_UNSUPPORTED: CUresult = CUresult(217);
    pub const CUDA_ERROR_INVALID_PTX: CUresult = CUresult(218);
    pub const CUDA_ERROR_INVALID_GRAPHICS_CONTEXT: CUresult = CUresult(219);
    pub const CUDA_ERROR_NVLINK_UNCORRECTABLE: CUresult = CUresult(220);
    pub const CUDA_ERROR_JIT_COMPILER_NOT_FOUND: CUresult = CUresult(221);
    pub const CUDA_ERROR_UNSUPPORTED_PTX_VERSION: CUresult = CUresult(222);
    pub const CUDA_ERROR_JIT_COMPILATION_DISABLED: CUresult = CUresult(223);
    pub const CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY: CUresult = CUresult(224);
    pub const CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC: CUresult = CUresult(225);
    pub const CUDA_ERROR_CONTAINED: CUresult = CUresult(226);
    pub const CUDA_ERROR_INSUFFICIENT_LOADER_VERSION: CUresult = CUresult(227);
    pub const CUDA_ERROR_INVALID_SOURCE: CUresult = CUresult(300);
    pub const CUDA_ERROR_FILE_NOT_FOUND: CUresult = CUresult(301);
    pub const CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND: CUresult = CUresult(302);
    pub const CUDA_ERROR_SHARED_OBJECT_INIT_FAILED: CUresult = CUresult(303);
    pub const CUDA_ERROR_OPERATING_SYSTEM: CUresult = CUresult(304);
    pub const CUDA_ERROR_INVALID_HANDLE: CUresult = CUresult(400);
    pub const CUDA_ERROR_ILLEGAL_STATE: CUresult = CUresult(401);
    pub const CUDA_ERROR_LOSSY_QUERY: CUresult = CUresult(402);
    pub const CUDA_ERROR_NOT_FOUND: CUresult = CUresult(500);
    pub const CUDA_ERROR_NOT_READY: CUresult = CUresult(600);
    pub const CUDA_ERROR_ILLEGAL_ADDRESS: CUresult = CUresult(700);
    pub const CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES: CUresult = CUresult(701);
    pub const CUDA_ERROR_LAUNCH_TIMEOUT: CUresult = CUresult(702);
    pub const CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING: CUresult = CUresult(703);
    pub const CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED: CUresult = CUresult(704);
    pub const CUDA_ERROR_PEER_ACCESS_NOT_ENABLED: CUresult = CUresult(705);
    pub const CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE: CUresult = CUresult(708);
    pub const CUDA_ERROR_CONTEXT_IS_DESTROYED: CUresult = CUresult(709);
    pub const CUDA_ERROR_ASSERT: CUresult = CUresult(710);
    pub const CUDA_ERROR_TOO_MANY_PEERS: CUresult = CUresult(711);
    pub const CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED: CUresult = CUresult(712);
    pub const CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED: CUresult = CUresult(713);
    pub const CUDA_ERROR_HARDWARE_STACK_ERROR: CUresult = CUresult(714);
    pub const CUDA_ERROR_ILLEGAL_INSTRUCTION: CUresult = CUresult(715);
    pub const CUDA_ERROR_MISALIGNED_ADDRESS: CUresult = CUresult(716);
    pub const CUDA_ERROR_INVALID_ADDRESS_SPACE: CUresult = CUresult(717);
    pub const CUDA_ERROR_INVALID_PC: CUresult = CUresult(718);
    pub const CUDA_ERROR_LAUNCH_FAILED: CUresult = CUresult(719);
    pub const CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE: CUresult = CUresult(720);
    pub const CUDA_ERROR_TENSOR_MEMORY_LEAK: CUresult = CUresult(721);
    pub const CUDA_ERROR_NOT_PERMITTED: CUresult = CUresult(800);
    pub const CUDA_ERROR_NOT_SUPPORTED: CUresult = CUresult(801);
    pub const CUDA_ERROR_SYSTEM_NOT_READY: CUresult = CUresult(802);
    pub const CUDA_ERROR_SYSTEM_DRIVER_MISMATCH: CUresult = CUresult(803);
    pub const CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE: CUresult = CUresult(804);
    pub const CUDA_ERROR_MPS_CONNECTION_FAILED: CUresult = CUresult(805);
    pub const CUDA_ERROR_MPS_RPC_FAILURE: CUresult = CUresult(806);
    pub const CUDA_ERROR_MPS_SERVER_NOT_READY: CUresult = CUresult(807);
    pub const CUDA_ERROR_MPS_MAX_CLIENTS_REACHED: CUresult = CUresult(808);
    pub const CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED: CUresult = CUresult(809);
    pub const CUDA_ERROR_MPS_CLIENT_TERMINATED: CUresult = CUresult(810);
    pub const CUDA_ERROR_CDP_NOT_SUPPORTED: CUresult = CUresult(811);
    pub const CUDA_ERROR_CDP_VERSION_MISMATCH: CUresult = CUresult(812);
    pub const CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED: CUresult = CUresult(900);
    pub const CUDA_ERROR_STREAM_CAPTURE_INVALIDATED: CUresult = CUresult(901);
    pub const CUDA_ERROR_STREAM_CAPTURE_MERGE: CUresult = CUresult(902);
    pub const CUDA_ERROR_STREAM_CAPTURE_UNMATCHED: CUresult = CUresult(903);
    pub const CUDA_ERROR_STREAM_CAPTURE_UNJOINED: CUresult = CUresult(904);
    pub const CUDA_ERROR_STREAM_CAPTURE_ISOLATION: CUresult = CUresult(905);
    pub const CUDA_ERROR_STREAM_CAPTURE_IMPLICIT: CUresult = CUresult(906);
    pub const CUDA_ERROR_CAPTURED_EVENT: CUresult = CUresult(907);
    pub const CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD: CUresult = CUresult(908);
    pub const CUDA_ERROR_TIMEOUT: CUresult = CUresult(909);
    pub const CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE: CUresult = CUresult(910);
    pub const CUDA_ERROR_EXTERNAL_DEVICE: CUresult = CUresult(911);
    pub const CUDA_ERROR_INVALID_CLUSTER_SIZE: CUresult = CUresult(912);
    pub const CUDA_ERROR_FUNCTION_NOT_LOADED: CUresult = CUresult(913);
    pub const CUDA_ERROR_INVALID_RESOURCE_TYPE: CUresult = CUresult(914);
    pub const CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION: CUresult = CUresult(915);
    pub const CUDA_ERROR_KEY_ROTATION: CUresult = CUresult(916);
    pub const CUDA_ERROR_STREAM_DETACHED: CUresult = CUresult(917);
    pub const CUDA_ERROR_GRAPH_RECAPTURE_FAILURE: CUresult = CUresult(918);
    pub const CUDA_ERROR_FABRIC_NOT_READY: CUresult = CUresult(919);
    pub const CUDA_ERROR_UNKNOWN: CUresult = CUresult(999);
}
/// The result of a driver call, with a constant for each code that CUDA 13.5 has.
///
/// The guide [`errors`](crate::guide::errors#codes-of-the-driver) explains the codes of events and
/// streams, and NVIDIA's page [all of them][page]. [`Error::is_sticky`](crate::Error::is_sticky)
/// tells after which of them CUDA no longer works in this process.
///
/// ```
/// use cuda_events::sys::CUresult;
///
/// let code = CUresult(719);
/// assert_eq!(code, CUresult::CUDA_ERROR_LAUNCH_FAILED);
/// assert_eq!(code.to_string(), "CUDA_ERROR_LAUNCH_FAILED (719)");
/// assert_eq!(CUresult(4242).name(), None); // a code of a newer driver
/// ```
///
/// [page]: https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TYPES.html
#[repr(transparent)]
#[derive(Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUresult(pub u32);
impl CUdevice_attribute {
    pub const CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: CUdevice_attribute = CUdevice_attribute(
        16,
    );
    pub const CU_DEVICE_ATTRIBUTE_INTEGRATED: CUdevice_attribute = CUdevice_attribute(
        18,
    );
    pub const CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY: CUdevice_attribute = CUdevice_attribute(
        19,
    );
    pub const CU_DEVICE_ATTRIBUTE_PCI_BUS_ID: CUdevice_attribute = CUdevice_attribute(
        33,
    );
    pub const CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID: CUdevice_attribute = CUdevice_attribute(
        34,
    );
    pub const CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING: CUdevice_attribute = CUdevice_attribute(
        41,
    );
    pub const CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID: CUdevice_attribute = CUdevice_attribute(
        50,
    );
    pub const CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: CUdevice_attribute = CUdevice_attribute(
        75,
    );
    pub const CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: CUdevice_attribute = CUdevice_attribute(
        76,
    );
    pub const CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED: CUdevice_attribute = CUdevice_attribute(
        78,
    );
    pub const CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY: CUdevice_attribute = CUdevice_attribute(
        83,
    );
    pub const CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS: CUdevice_attribute = CUdevice_attribute(
        89,
    );
    pub const CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1: CUdevice_attribute = CUdevice_attribute(
        92,
    );
    pub const CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS_V1: CUdevice_attribute = CUdevice_attribute(
        93,
    );
    pub const CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR_V1: CUdevice_attribute = CUdevice_attribute(
        94,
    );
    pub const CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES: CUdevice_attribute = CUdevice_attribute(
        98,
    );
    pub const CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED: CUdevice_attribute = CUdevice_attribute(
        113,
    );
    pub const CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS: CUdevice_attribute = CUdevice_attribute(
        122,
    );
    pub const CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR: CUdevice_attribute = CUdevice_attribute(
        123,
    );
    pub const CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED: CUdevice_attribute = CUdevice_attribute(
        125,
    );
}
#[repr(transparent)]
#[derive(Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUdevice_attribute(pub u32);
impl CUdriverProcAddressQueryResult {
    pub const CU_GET_PROC_ADDRESS_SUCCESS: CUdriverProcAddressQueryResult = CUdriverProcAddressQueryResult(
        0,
    );
    pub const CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND: CUdriverProcAddressQueryResult = CUdriverProcAddressQueryResult(
        1,
    );
    pub const CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT: CUdriverProcAddressQueryResult = CUdriverProcAddressQueryResult(
        2,
    );
}
#[repr(transparent)]
#[derive(Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUdriverProcAddressQueryResult(pub u32);
impl CUstreamCaptureStatus {
    pub const CU_STREAM_CAPTURE_STATUS_NONE: CUstreamCaptureStatus = CUstreamCaptureStatus(
        0,
    );
    pub const CU_STREAM_CAPTURE_STATUS_ACTIVE: CUstreamCaptureStatus = CUstreamCaptureStatus(
        1,
    );
    pub const CU_STREAM_CAPTURE_STATUS_INVALIDATED: CUstreamCaptureStatus = CUstreamCaptureStatus(
        2,
    );
}
#[repr(transparent)]
#[derive(Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUstreamCaptureStatus(pub u32);
impl CUstreamCaptureMode {
    pub const CU_STREAM_CAPTURE_MODE_GLOBAL: CUstreamCaptureMode = CUstreamCaptureMode(
        0,
    );
    pub const CU_STREAM_CAPTURE_MODE_THREAD_LOCAL: CUstreamCaptureMode = CUstreamCaptureMode(
        1,
    );
    pub const CU_STREAM_CAPTURE_MODE_RELAXED: CUstreamCaptureMode = CUstreamCaptureMode(
        2,
    );
}
#[repr(transparent)]
#[derive(Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUstreamCaptureMode(pub u32);
impl CUgraphRecaptureStatus {
    pub const CU_GRAPH_RECAPTURE_ELIGIBLE_FOR_UPDATE: CUgraphRecaptureStatus = CUgraphRecaptureStatus(
        0,
    );
    pub const CU_GRAPH_RECAPTURE_INELIGIBLE_FOR_UPDATE: CUgraphRecaptureStatus = CUgraphRecaptureStatus(
        1,
    );
    pub const CU_GRAPH_RECAPTURE_ERROR: CUgraphRecaptureStatus = CUgraphRecaptureStatus(
        2,
    );
}
#[repr(transparent)]
#[derive(Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUgraphRecaptureStatus(pub u32);
impl CUlaunchAttributeID {
    pub const CU_LAUNCH_ATTRIBUTE_IGNORE: CUlaunchAttributeID = CUlaunchAttributeID(0);
    pub const CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW: CUlaunchAttributeID = CUlaunchAttributeID(
        1,
    );
    pub const CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY: CUlaunchAttributeID = CUlaunchAttributeID(
        3,
    );
    pub const CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT: CUlaunchAttributeID = CUlaunchAttributeID(
        7,
    );
    pub const CU_LAUNCH_ATTRIBUTE_PRIORITY: CUlaunchAttributeID = CUlaunchAttributeID(8);
    pub const CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP: CUlaunchAttributeID = CUlaunchAttributeID(
        9,
    );
    pub const CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN: CUlaunchAttributeID = CUlaunchAttributeID(
        10,
    );
    pub const CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT: CUlaunchAttributeID = CUlaunchAttributeID(
        12,
    );
    pub const CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING: CUlaunchAttributeID = CUlaunchAttributeID(
        16,
    );
}
#[repr(transparent)]
#[derive(Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUlaunchAttributeID(pub u32);
impl CUaccessProperty {
    pub const CU_ACCESS_PROPERTY_NORMAL: CUaccessProperty = CUaccessProperty(0);
    pub const CU_ACCESS_PROPERTY_STREAMING: CUaccessProperty = CUaccessProperty(1);
    pub const CU_ACCESS_PROPERTY_PERSISTING: CUaccessProperty = CUaccessProperty(2);
}
#[repr(transparent)]
#[derive(Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUaccessProperty(pub u32);
impl CUsynchronizationPolicy {
    pub const CU_SYNC_POLICY_AUTO: CUsynchronizationPolicy = CUsynchronizationPolicy(1);
    pub const CU_SYNC_POLICY_SPIN: CUsynchronizationPolicy = CUsynchronizationPolicy(2);
    pub const CU_SYNC_POLICY_YIELD: CUsynchronizationPolicy = CUsynchronizationPolicy(3);
    pub const CU_SYNC_POLICY_BLOCKING_SYNC: CUsynchronizationPolicy = CUsynchronizationPolicy(
        4,
    );
}
#[repr(transparent)]
#[derive(Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUsynchronizationPolicy(pub u32);
impl CUlaunchMemSyncDomain {
    pub const CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT: CUlaunchMemSyncDomain = CUlaunchMemSyncDomain(
        0,
    );
    pub const CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE: CUlaunchMemSyncDomain = CUlaunchMemSyncDomain(
        1,
    );
}
#[repr(transparent)]
#[derive(Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUlaunchMemSyncDomain(pub u32);
impl CUstreamBatchMemOpType {
    pub const CU_STREAM_MEM_OP_WAIT_VALUE_32: CUstreamBatchMemOpType = CUstreamBatchMemOpType(
        1,
    );
    pub const CU_STREAM_MEM_OP_WRITE_VALUE_32: CUstreamBatchMemOpType = CUstreamBatchMemOpType(
        2,
    );
    pub const CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES: CUstreamBatchMemOpType = CUstreamBatchMemOpType(
        3,
    );
    pub const CU_STREAM_MEM_OP_WAIT_VALUE_64: CUstreamBatchMemOpType = CUstreamBatchMemOpType(
        4,
    );
    pub const CU_STREAM_MEM_OP_WRITE_VALUE_64: CUstreamBatchMemOpType = CUstreamBatchMemOpType(
        5,
    );
    pub const CU_STREAM_MEM_OP_BARRIER: CUstreamBatchMemOpType = CUstreamBatchMemOpType(
        6,
    );
    pub const CU_STREAM_MEM_OP_ATOMIC_REDUCTION: CUstreamBatchMemOpType = CUstreamBatchMemOpType(
        8,
    );
}
#[repr(transparent)]
#[derive(Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUstreamBatchMemOpType(pub u32);
impl CUstreamAtomicReductionOpType {
    pub const CU_STREAM_ATOMIC_REDUCTION_OP_ADD: CUstreamAtomicReductionOpType = CUstreamAtomicReductionOpType(
        0,
    );
    pub const CU_STREAM_ATOMIC_REDUCTION_OP_AND: CUstreamAtomicReductionOpType = CUstreamAtomicReductionOpType(
        5,
    );
    pub const CU_STREAM_ATOMIC_REDUCTION_OP_OR: CUstreamAtomicReductionOpType = CUstreamAtomicReductionOpType(
        6,
    );
}
#[repr(transparent)]
#[derive(Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUstreamAtomicReductionOpType(pub u32);
impl CUstreamAtomicReductionDataType {
    pub const CU_STREAM_ATOMIC_REDUCTION_UNSIGNED_32: CUstreamAtomicReductionDataType = CUstreamAtomicReductionDataType(
        14,
    );
    pub const CU_STREAM_ATOMIC_REDUCTION_UNSIGNED_64: CUstreamAtomicReductionDataType = CUstreamAtomicReductionDataType(
        22,
    );
}
#[repr(transparent)]
#[derive(Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUstreamAtomicReductionDataType(pub u32);
impl CUatomicOperation {
    pub const CU_ATOMIC_OPERATION_INTEGER_ADD: CUatomicOperation = CUatomicOperation(0);
    pub const CU_ATOMIC_OPERATION_INTEGER_MIN: CUatomicOperation = CUatomicOperation(1);
    pub const CU_ATOMIC_OPERATION_INTEGER_MAX: CUatomicOperation = CUatomicOperation(2);
    pub const CU_ATOMIC_OPERATION_INTEGER_INCREMENT: CUatomicOperation = CUatomicOperation(
        3,
    );
    pub const CU_ATOMIC_OPERATION_INTEGER_DECREMENT: CUatomicOperation = CUatomicOperation(
        4,
    );
    pub const CU_ATOMIC_OPERATION_AND: CUatomicOperation = CUatomicOperation(5);
    pub const CU_ATOMIC_OPERATION_OR: CUatomicOperation = CUatomicOperation(6);
    pub const CU_ATOMIC_OPERATION_XOR: CUatomicOperation = CUatomicOperation(7);
    pub const CU_ATOMIC_OPERATION_EXCHANGE: CUatomicOperation = CUatomicOperation(8);
    pub const CU_ATOMIC_OPERATION_CAS: CUatomicOperation = CUatomicOperation(9);
    pub const CU_ATOMIC_OPERATION_FLOAT_ADD: CUatomicOperation = CUatomicOperation(10);
    pub const CU_ATOMIC_OPERATION_FLOAT_MIN: CUatomicOperation = CUatomicOperation(11);
    pub const CU_ATOMIC_OPERATION_FLOAT_MAX: CUatomicOperation = CUatomicOperation(12);
}
#[repr(transparent)]
#[derive(Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUatomicOperation(pub u32);
impl CUlogLevel {
    pub const CU_LOG_LEVEL_ERROR: CUlogLevel = CUlogLevel(0);
    pub const CU_LOG_LEVEL_WARNING: CUlogLevel = CUlogLevel(1);
}
#[repr(transparent)]
#[derive(Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUlogLevel(pub u32);
impl CUasyncNotificationType {
    pub const CU_ASYNC_NOTIFICATION_TYPE_OVER_BUDGET: CUasyncNotificationType = CUasyncNotificationType(
        1,
    );
}
#[repr(transparent)]
#[derive(Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUasyncNotificationType(pub u32);
impl CUprocessState {
    pub const CU_PROCESS_STATE_RUNNING: CUprocessState = CUprocessState(0);
    pub const CU_PROCESS_STATE_LOCKED: CUprocessState = CUprocessState(1);
    pub const CU_PROCESS_STATE_CHECKPOINTED: CUprocessState = CUprocessState(2);
    pub const CU_PROCESS_STATE_FAILED: CUprocessState = CUprocessState(3);
    pub const CU_PROCESS_STATE_CHECKPOINTING: CUprocessState = CUprocessState(4);
    pub const CU_PROCESS_STATE_RESTORING: CUprocessState = CUprocessState(5);
}
#[repr(transparent)]
#[derive(Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUprocessState(pub u32);
impl CUcoredumpSettings {
    pub const CU_COREDUMP_ENABLE_ON_EXCEPTION: CUcoredumpSettings = CUcoredumpSettings(
        1,
    );
    pub const CU_COREDUMP_TRIGGER_HOST: CUcoredumpSettings = CUcoredumpSettings(2);
    pub const CU_COREDUMP_LIGHTWEIGHT: CUcoredumpSettings = CUcoredumpSettings(3);
    pub const CU_COREDUMP_ENABLE_USER_TRIGGER: CUcoredumpSettings = CUcoredumpSettings(
        4,
    );
    pub const CU_COREDUMP_FILE: CUcoredumpSettings = CUcoredumpSettings(5);
    pub const CU_COREDUMP_PIPE: CUcoredumpSettings = CUcoredumpSettings(6);
    pub const CU_COREDUMP_GENERATION_FLAGS: CUcoredumpSettings = CUcoredumpSettings(7);
}
#[repr(transparent)]
#[derive(Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUcoredumpSettings(pub u32);
impl CUexecAffinityType {
    pub const CU_EXEC_AFFINITY_TYPE_SM_COUNT: CUexecAffinityType = CUexecAffinityType(0);
}
#[repr(transparent)]
#[derive(Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUexecAffinityType(pub u32);
impl CUcigDataType {
    pub const CIG_DATA_TYPE_D3D12_COMMAND_QUEUE: CUcigDataType = CUcigDataType(1);
    pub const CIG_DATA_TYPE_NV_BLOB: CUcigDataType = CUcigDataType(2);
}
#[repr(transparent)]
#[derive(Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUcigDataType(pub u32);
impl CUstreamCigDataType {
    pub const STREAM_CIG_DATA_TYPE_D3D12_COMMAND_LIST: CUstreamCigDataType = CUstreamCigDataType(
        1,
    );
    pub const STREAM_CIG_DATA_TYPE_VULKAN_COMMAND_BUFFER_HANDLE_NV: CUstreamCigDataType = CUstreamCigDataType(
        2,
    );
}
#[repr(transparent)]
#[derive(Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUstreamCigDataType(pub u32);
impl CUdevResourceType {
    pub const CU_DEV_RESOURCE_TYPE_INVALID: CUdevResourceType = CUdevResourceType(0);
    pub const CU_DEV_RESOURCE_TYPE_SM: CUdevResourceType = CUdevResourceType(1);
    pub const CU_DEV_RESOURCE_TYPE_WORKQUEUE_CONFIG: CUdevResourceType = CUdevResourceType(
        1000,
    );
    pub const CU_DEV_RESOURCE_TYPE_WORKQUEUE: CUdevResourceType = CUdevResourceType(
        10000,
    );
}
#[repr(transparent)]
#[derive(Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUdevResourceType(pub u32);
impl CUdevWorkqueueConfigScope {
    pub const CU_WORKQUEUE_SCOPE_DEVICE_CTX: CUdevWorkqueueConfigScope = CUdevWorkqueueConfigScope(
        0,
    );
    pub const CU_WORKQUEUE_SCOPE_GREEN_CTX_BALANCED: CUdevWorkqueueConfigScope = CUdevWorkqueueConfigScope(
        1,
    );
}
#[repr(transparent)]
#[derive(Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUdevWorkqueueConfigScope(pub u32);
impl CUexternalSemaphoreHandleType {
    pub const CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD: CUexternalSemaphoreHandleType = CUexternalSemaphoreHandleType(
        1,
    );
    pub const CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_WIN32: CUexternalSemaphoreHandleType = CUexternalSemaphoreHandleType(
        2,
    );
    pub const CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_WIN32_KMT: CUexternalSemaphoreHandleType = CUexternalSemaphoreHandleType(
        3,
    );
    pub const CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_D3D12_FENCE: CUexternalSemaphoreHandleType = CUexternalSemaphoreHandleType(
        4,
    );
    pub const CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_D3D11_FENCE: CUexternalSemaphoreHandleType = CUexternalSemaphoreHandleType(
        5,
    );
    pub const CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_NVSCISYNC: CUexternalSemaphoreHandleType = CUexternalSemaphoreHandleType(
        6,
    );
    pub const CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_D3D11_KEYED_MUTEX: CUexternalSemaphoreHandleType = CUexternalSemaphoreHandleType(
        7,
    );
    pub const CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_D3D11_KEYED_MUTEX_KMT: CUexternalSemaphoreHandleType = CUexternalSemaphoreHandleType(
        8,
    );
    pub const CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD: CUexternalSemaphoreHandleType = CUexternalSemaphoreHandleType(
        9,
    );
    pub const CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_WIN32: CUexternalSemaphoreHandleType = CUexternalSemaphoreHandleType(
        10,
    );
}
#[repr(transparent)]
#[derive(Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUexternalSemaphoreHandleType(pub u32);
impl CUexternalMemoryHandleType {
    pub const CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD: CUexternalMemoryHandleType = CUexternalMemoryHandleType(
        1,
    );
    pub const CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_WIN32: CUexternalMemoryHandleType = CUexternalMemoryHandleType(
        2,
    );
    pub const CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_WIN32_KMT: CUexternalMemoryHandleType = CUexternalMemoryHandleType(
        3,
    );
    pub const CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D12_HEAP: CUexternalMemoryHandleType = CUexternalMemoryHandleType(
        4,
    );
    pub const CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D12_RESOURCE: CUexternalMemoryHandleType = CUexternalMemoryHandleType(
        5,
    );
    pub const CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D11_RESOURCE: CUexternalMemoryHandleType = CUexternalMemoryHandleType(
        6,
    );
    pub const CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D11_RESOURCE_KMT: CUexternalMemoryHandleType = CUexternalMemoryHandleType(
        7,
    );
    pub const CU_EXTERNAL_MEMORY_HANDLE_TYPE_NVSCIBUF: CUexternalMemoryHandleType = CUexternalMemoryHandleType(
        8,
    );
    pub const CU_EXTERNAL_MEMORY_HANDLE_TYPE_DMABUF_FD: CUexternalMemoryHandleType = CUexternalMemoryHandleType(
        9,
    );
}
#[repr(transparent)]
#[derive(Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUexternalMemoryHandleType(pub u32);
pub const CU_EVENT_DEFAULT: CUevent_flags = 0;
pub const CU_EVENT_BLOCKING_SYNC: CUevent_flags = 1;
pub const CU_EVENT_DISABLE_TIMING: CUevent_flags = 2;
pub const CU_EVENT_INTERPROCESS: CUevent_flags = 4;
pub type CUevent_flags = u32;
pub const CU_EVENT_RECORD_DEFAULT: CUevent_record_flags = 0;
pub const CU_EVENT_RECORD_EXTERNAL: CUevent_record_flags = 1;
pub type CUevent_record_flags = u32;
pub const CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS: CUipcMem_flags = 1;
pub type CUipcMem_flags = u32;
pub const CU_EVENT_WAIT_DEFAULT: CUevent_wait_flags = 0;
pub const CU_EVENT_WAIT_EXTERNAL: CUevent_wait_flags = 1;
pub type CUevent_wait_flags = u32;
pub const CU_STREAM_DEFAULT: CUstream_flags = 0;
pub const CU_STREAM_NON_BLOCKING: CUstream_flags = 1;
pub type CUstream_flags = u32;
pub const CU_GREEN_CTX_NONE: CUgreenCtxCreate_flags = 0;
pub const CU_GREEN_CTX_DEFAULT_STREAM: CUgreenCtxCreate_flags = 1;
pub type CUgreenCtxCreate_flags = u32;
pub const CU_CTX_SCHED_AUTO: CUctx_flags = 0;
pub const CU_CTX_SCHED_SPIN: CUctx_flags = 1;
pub const CU_CTX_SCHED_YIELD: CUctx_flags = 2;
pub const CU_CTX_SCHED_BLOCKING_SYNC: CUctx_flags = 4;
pub const CU_CTX_SCHED_MASK: CUctx_flags = 7;
pub const CU_CTX_MAP_HOST: CUctx_flags = 8;
pub const CU_CTX_LMEM_RESIZE_TO_MAX: CUctx_flags = 16;
pub const CU_CTX_COREDUMP_ENABLE: CUctx_flags = 32;
pub const CU_CTX_USER_COREDUMP_ENABLE: CUctx_flags = 64;
pub const CU_CTX_SYNC_MEMOPS: CUctx_flags = 128;
pub type CUctx_flags = u32;
pub const CU_GET_PROC_ADDRESS_DEFAULT: CUdriverProcAddress_flags = 0;
pub const CU_GET_PROC_ADDRESS_LEGACY_STREAM: CUdriverProcAddress_flags = 1;
pub const CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM: CUdriverProcAddress_flags = 2;
pub type CUdriverProcAddress_flags = u32;
pub const CU_STREAM_ADD_CAPTURE_DEPENDENCIES: CUstreamUpdateCaptureDependencies_flags = 0;
pub const CU_STREAM_SET_CAPTURE_DEPENDENCIES: CUstreamUpdateCaptureDependencies_flags = 1;
pub type CUstreamUpdateCaptureDependencies_flags = u32;
pub const CU_STREAM_WAIT_VALUE_GEQ: CUstreamWaitValue_flags = 0;
pub const CU_STREAM_WAIT_VALUE_EQ: CUstreamWaitValue_flags = 1;
pub const CU_STREAM_WAIT_VALUE_AND: CUstreamWaitValue_flags = 2;
pub const CU_STREAM_WAIT_VALUE_NOR: CUstreamWaitValue_flags = 3;
pub const CU_STREAM_WAIT_VALUE_FLUSH: CUstreamWaitValue_flags = 1073741824;
pub type CUstreamWaitValue_flags = u32;
pub const CU_STREAM_WRITE_VALUE_DEFAULT: CUstreamWriteValue_flags = 0;
pub const CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER: CUstreamWriteValue_flags = 1;
pub type CUstreamWriteValue_flags = u32;
pub const CU_STREAM_MEMORY_BARRIER_TYPE_SYS: CUstreamMemoryBarrier_flags = 0;
pub const CU_STREAM_MEMORY_BARRIER_TYPE_GPU: CUstreamMemoryBarrier_flags = 1;
pub type CUstreamMemoryBarrier_flags = u32;
pub const CU_HOST_TASK_BLOCKING: CUhostTaskSyncMode = 0;
pub const CU_HOST_TASK_SPINWAIT: CUhostTaskSyncMode = 1;
pub type CUhostTaskSyncMode = u32;
pub const CU_MEM_ATTACH_GLOBAL: CUmemAttach_flags = 1;
pub const CU_MEM_ATTACH_HOST: CUmemAttach_flags = 2;
pub const CU_MEM_ATTACH_SINGLE: CUmemAttach_flags = 4;
pub type CUmemAttach_flags = u32;
pub const CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH: CUgraphInstantiate_flags = 1;
pub const CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD: CUgraphInstantiate_flags = 2;
pub const CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH: CUgraphInstantiate_flags = 4;
pub const CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY: CUgraphInstantiate_flags = 8;
pub type CUgraphInstantiate_flags = u32;
pub const CU_ATOMIC_CAPABILITY_SIGNED: CUatomicOperationCapability = 1;
pub const CU_ATOMIC_CAPABILITY_UNSIGNED: CUatomicOperationCapability = 2;
pub const CU_ATOMIC_CAPABILITY_REDUCTION: CUatomicOperationCapability = 4;
pub const CU_ATOMIC_CAPABILITY_SCALAR_32: CUatomicOperationCapability = 8;
pub const CU_ATOMIC_CAPABILITY_SCALAR_64: CUatomicOperationCapability = 16;
pub const CU_ATOMIC_CAPABILITY_SCALAR_128: CUatomicOperationCapability = 32;
pub const CU_ATOMIC_CAPABILITY_VECTOR_32x4: CUatomicOperationCapability = 64;
pub type CUatomicOperationCapability = u32;
pub const CU_COREDUMP_DEFAULT_FLAGS: CUCoredumpGenerationFlags = 0;
pub const CU_COREDUMP_SKIP_NONRELOCATED_ELF_IMAGES: CUCoredumpGenerationFlags = 1;
pub const CU_COREDUMP_SKIP_GLOBAL_MEMORY: CUCoredumpGenerationFlags = 2;
pub const CU_COREDUMP_SKIP_SHARED_MEMORY: CUCoredumpGenerationFlags = 4;
pub const CU_COREDUMP_SKIP_LOCAL_MEMORY: CUCoredumpGenerationFlags = 8;
pub const CU_COREDUMP_SKIP_ABORT: CUCoredumpGenerationFlags = 16;
pub const CU_COREDUMP_SKIP_CONSTBANK_MEMORY: CUCoredumpGenerationFlags = 32;
pub const CU_COREDUMP_GZIP_COMPRESS: CUCoredumpGenerationFlags = 64;
pub const CU_COREDUMP_FAULTED_CONTEXTS_ONLY: CUCoredumpGenerationFlags = 128;
pub const CU_COREDUMP_SKIP_TENSOR_MEMORY: CUCoredumpGenerationFlags = 256;
pub const CU_COREDUMP_NO_ERRBAR_AT_EXIT: CUCoredumpGenerationFlags = 1073741824;
pub type CUCoredumpGenerationFlags = u32;
pub const CU_GRAPH_DEPENDENCY_TYPE_DEFAULT: CUgraphDependencyType = 0;
pub const CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC: CUgraphDependencyType = 1;
pub type CUgraphDependencyType = u32;
pub const CU_IPC_HANDLE_SIZE: usize = 64;
#[repr(C)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUipcEventHandle {
    pub reserved: [::core::ffi::c_uchar; 64usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    ["Size of CUipcEventHandle"][::core::mem::size_of::<CUipcEventHandle>() - 64usize];
    [
        "Alignment of CUipcEventHandle",
    ][::core::mem::align_of::<CUipcEventHandle>() - 1usize];
    [
        "Offset of field: CUipcEventHandle::reserved",
    ][::core::mem::offset_of!(CUipcEventHandle, reserved) - 0usize];
};
impl Default for CUipcEventHandle {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUipcMemHandle {
    pub reserved: [::core::ffi::c_uchar; 64usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    ["Size of CUipcMemHandle"][::core::mem::size_of::<CUipcMemHandle>() - 64usize];
    ["Alignment of CUipcMemHandle"][::core::mem::align_of::<CUipcMemHandle>() - 1usize];
    [
        "Offset of field: CUipcMemHandle::reserved",
    ][::core::mem::offset_of!(CUipcMemHandle, reserved) - 0usize];
};
impl Default for CUipcMemHandle {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUuuid {
    pub bytes: [::core::ffi::c_uchar; 16usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    ["Size of CUuuid"][::core::mem::size_of::<CUuuid>() - 16usize];
    ["Alignment of CUuuid"][::core::mem::align_of::<CUuuid>() - 1usize];
    ["Offset of field: CUuuid::bytes"][::core::mem::offset_of!(CUuuid, bytes) - 0usize];
};
#[repr(C)]
#[derive(Copy, Clone)]
pub union CUstreamMemOpWaitValueParams_u {
    pub value: cuuint32_t,
    pub value64: cuuint64_t,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    [
        "Size of CUstreamMemOpWaitValueParams_u",
    ][::core::mem::size_of::<CUstreamMemOpWaitValueParams_u>() - 8usize];
    [
        "Alignment of CUstreamMemOpWaitValueParams_u",
    ][::core::mem::align_of::<CUstreamMemOpWaitValueParams_u>() - 8usize];
    [
        "Offset of field: CUstreamMemOpWaitValueParams_u::value",
    ][::core::mem::offset_of!(CUstreamMemOpWaitValueParams_u, value) - 0usize];
    [
        "Offset of field: CUstreamMemOpWaitValueParams_u::value64",
    ][::core::mem::offset_of!(CUstreamMemOpWaitValueParams_u, value64) - 0usize];
};
impl Default for CUstreamMemOpWaitValueParams_u {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Copy, Clone)]
pub struct CUstreamMemOpWaitValueParams {
    pub operation: CUstreamBatchMemOpType,
    pub address: CUdeviceptr,
    pub u: CUstreamMemOpWaitValueParams_u,
    pub flags: ::core::ffi::c_uint,
    pub alias: CUdeviceptr,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    [
        "Size of CUstreamMemOpWaitValueParams",
    ][::core::mem::size_of::<CUstreamMemOpWaitValueParams>() - 40usize];
    [
        "Alignment of CUstreamMemOpWaitValueParams",
    ][::core::mem::align_of::<CUstreamMemOpWaitValueParams>() - 8usize];
    [
        "Offset of field: CUstreamMemOpWaitValueParams::operation",
    ][::core::mem::offset_of!(CUstreamMemOpWaitValueParams, operation) - 0usize];
    [
        "Offset of field: CUstreamMemOpWaitValueParams::address",
    ][::core::mem::offset_of!(CUstreamMemOpWaitValueParams, address) - 8usize];
    [
        "Offset of field: CUstreamMemOpWaitValueParams::u",
    ][::core::mem::offset_of!(CUstreamMemOpWaitValueParams, u) - 16usize];
    [
        "Offset of field: CUstreamMemOpWaitValueParams::flags",
    ][::core::mem::offset_of!(CUstreamMemOpWaitValueParams, flags) - 24usize];
    [
        "Offset of field: CUstreamMemOpWaitValueParams::alias",
    ][::core::mem::offset_of!(CUstreamMemOpWaitValueParams, alias) - 32usize];
};
impl Default for CUstreamMemOpWaitValueParams {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Copy, Clone)]
pub union CUstreamMemOpWriteValueParams_u {
    pub value: cuuint32_t,
    pub value64: cuuint64_t,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    [
        "Size of CUstreamMemOpWriteValueParams_u",
    ][::core::mem::size_of::<CUstreamMemOpWriteValueParams_u>() - 8usize];
    [
        "Alignment of CUstreamMemOpWriteValueParams_u",
    ][::core::mem::align_of::<CUstreamMemOpWriteValueParams_u>() - 8usize];
    [
        "Offset of field: CUstreamMemOpWriteValueParams_u::value",
    ][::core::mem::offset_of!(CUstreamMemOpWriteValueParams_u, value) - 0usize];
    [
        "Offset of field: CUstreamMemOpWriteValueParams_u::value64",
    ][::core::mem::offset_of!(CUstreamMemOpWriteValueParams_u, value64) - 0usize];
};
impl Default for CUstreamMemOpWriteValueParams_u {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Copy, Clone)]
pub struct CUstreamMemOpWriteValueParams {
    pub operation: CUstreamBatchMemOpType,
    pub address: CUdeviceptr,
    pub u: CUstreamMemOpWriteValueParams_u,
    pub flags: ::core::ffi::c_uint,
    pub alias: CUdeviceptr,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    [
        "Size of CUstreamMemOpWriteValueParams",
    ][::core::mem::size_of::<CUstreamMemOpWriteValueParams>() - 40usize];
    [
        "Alignment of CUstreamMemOpWriteValueParams",
    ][::core::mem::align_of::<CUstreamMemOpWriteValueParams>() - 8usize];
    [
        "Offset of field: CUstreamMemOpWriteValueParams::operation",
    ][::core::mem::offset_of!(CUstreamMemOpWriteValueParams, operation) - 0usize];
    [
        "Offset of field: CUstreamMemOpWriteValueParams::address",
    ][::core::mem::offset_of!(CUstreamMemOpWriteValueParams, address) - 8usize];
    [
        "Offset of field: CUstreamMemOpWriteValueParams::u",
    ][::core::mem::offset_of!(CUstreamMemOpWriteValueParams, u) - 16usize];
    [
        "Offset of field: CUstreamMemOpWriteValueParams::flags",
    ][::core::mem::offset_of!(CUstreamMemOpWriteValueParams, flags) - 24usize];
    [
        "Offset of field: CUstreamMemOpWriteValueParams::alias",
    ][::core::mem::offset_of!(CUstreamMemOpWriteValueParams, alias) - 32usize];
};
impl Default for CUstreamMemOpWriteValueParams {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUstreamMemOpFlushRemoteWritesParams {
    pub operation: CUstreamBatchMemOpType,
    pub flags: ::core::ffi::c_uint,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    [
        "Size of CUstreamMemOpFlushRemoteWritesParams",
    ][::core::mem::size_of::<CUstreamMemOpFlushRemoteWritesParams>() - 8usize];
    [
        "Alignment of CUstreamMemOpFlushRemoteWritesParams",
    ][::core::mem::align_of::<CUstreamMemOpFlushRemoteWritesParams>() - 4usize];
    [
        "Offset of field: CUstreamMemOpFlushRemoteWritesParams::operation",
    ][::core::mem::offset_of!(CUstreamMemOpFlushRemoteWritesParams, operation) - 0usize];
    [
        "Offset of field: CUstreamMemOpFlushRemoteWritesParams::flags",
    ][::core::mem::offset_of!(CUstreamMemOpFlushRemoteWritesParams, flags) - 4usize];
};
impl Default for CUstreamMemOpFlushRemoteWritesParams {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUstreamMemOpMemoryBarrierParams {
    pub operation: CUstreamBatchMemOpType,
    pub flags: ::core::ffi::c_uint,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    [
        "Size of CUstreamMemOpMemoryBarrierParams",
    ][::core::mem::size_of::<CUstreamMemOpMemoryBarrierParams>() - 8usize];
    [
        "Alignment of CUstreamMemOpMemoryBarrierParams",
    ][::core::mem::align_of::<CUstreamMemOpMemoryBarrierParams>() - 4usize];
    [
        "Offset of field: CUstreamMemOpMemoryBarrierParams::operation",
    ][::core::mem::offset_of!(CUstreamMemOpMemoryBarrierParams, operation) - 0usize];
    [
        "Offset of field: CUstreamMemOpMemoryBarrierParams::flags",
    ][::core::mem::offset_of!(CUstreamMemOpMemoryBarrierParams, flags) - 4usize];
};
impl Default for CUstreamMemOpMemoryBarrierParams {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUstreamMemOpAtomicReductionParams {
    pub operation: CUstreamBatchMemOpType,
    pub flags: ::core::ffi::c_uint,
    pub reductionOp: CUstreamAtomicReductionOpType,
    pub dataType: CUstreamAtomicReductionDataType,
    pub address: CUdeviceptr,
    pub value: cuuint64_t,
    pub alias: CUdeviceptr,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    [
        "Size of CUstreamMemOpAtomicReductionParams",
    ][::core::mem::size_of::<CUstreamMemOpAtomicReductionParams>() - 40usize];
    [
        "Alignment of CUstreamMemOpAtomicReductionParams",
    ][::core::mem::align_of::<CUstreamMemOpAtomicReductionParams>() - 8usize];
    [
        "Offset of field: CUstreamMemOpAtomicReductionParams::operation",
    ][::core::mem::offset_of!(CUstreamMemOpAtomicReductionParams, operation) - 0usize];
    [
        "Offset of field: CUstreamMemOpAtomicReductionParams::flags",
    ][::core::mem::offset_of!(CUstreamMemOpAtomicReductionParams, flags) - 4usize];
    [
        "Offset of field: CUstreamMemOpAtomicReductionParams::reductionOp",
    ][::core::mem::offset_of!(CUstreamMemOpAtomicReductionParams, reductionOp) - 8usize];
    [
        "Offset of field: CUstreamMemOpAtomicReductionParams::dataType",
    ][::core::mem::offset_of!(CUstreamMemOpAtomicReductionParams, dataType) - 12usize];
    [
        "Offset of field: CUstreamMemOpAtomicReductionParams::address",
    ][::core::mem::offset_of!(CUstreamMemOpAtomicReductionParams, address) - 16usize];
    [
        "Offset of field: CUstreamMemOpAtomicReductionParams::value",
    ][::core::mem::offset_of!(CUstreamMemOpAtomicReductionParams, value) - 24usize];
    [
        "Offset of field: CUstreamMemOpAtomicReductionParams::alias",
    ][::core::mem::offset_of!(CUstreamMemOpAtomicReductionParams, alias) - 32usize];
};
impl Default for CUstreamMemOpAtomicReductionParams {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Copy, Clone)]
pub union CUstreamBatchMemOpParams {
    pub operation: CUstreamBatchMemOpType,
    pub waitValue: CUstreamMemOpWaitValueParams,
    pub writeValue: CUstreamMemOpWriteValueParams,
    pub flushRemoteWrites: CUstreamMemOpFlushRemoteWritesParams,
    pub memoryBarrier: CUstreamMemOpMemoryBarrierParams,
    pub atomicReduction: CUstreamMemOpAtomicReductionParams,
    pub pad: [cuuint64_t; 6usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    [
        "Size of CUstreamBatchMemOpParams",
    ][::core::mem::size_of::<CUstreamBatchMemOpParams>() - 48usize];
    [
        "Alignment of CUstreamBatchMemOpParams",
    ][::core::mem::align_of::<CUstreamBatchMemOpParams>() - 8usize];
    [
        "Offset of field: CUstreamBatchMemOpParams::operation",
    ][::core::mem::offset_of!(CUstreamBatchMemOpParams, operation) - 0usize];
    [
        "Offset of field: CUstreamBatchMemOpParams::waitValue",
    ][::core::mem::offset_of!(CUstreamBatchMemOpParams, waitValue) - 0usize];
    [
        "Offset of field: CUstreamBatchMemOpParams::writeValue",
    ][::core::mem::offset_of!(CUstreamBatchMemOpParams, writeValue) - 0usize];
    [
        "Offset of field: CUstreamBatchMemOpParams::flushRemoteWrites",
    ][::core::mem::offset_of!(CUstreamBatchMemOpParams, flushRemoteWrites) - 0usize];
    [
        "Offset of field: CUstreamBatchMemOpParams::memoryBarrier",
    ][::core::mem::offset_of!(CUstreamBatchMemOpParams, memoryBarrier) - 0usize];
    [
        "Offset of field: CUstreamBatchMemOpParams::atomicReduction",
    ][::core::mem::offset_of!(CUstreamBatchMemOpParams, atomicReduction) - 0usize];
    [
        "Offset of field: CUstreamBatchMemOpParams::pad",
    ][::core::mem::offset_of!(CUstreamBatchMemOpParams, pad) - 0usize];
};
impl Default for CUstreamBatchMemOpParams {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUDA_BATCH_MEM_OP_NODE_PARAMS {
    pub ctx: CUcontext,
    pub count: ::core::ffi::c_uint,
    pub paramArray: *mut CUstreamBatchMemOpParams,
    pub flags: ::core::ffi::c_uint,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    [
        "Size of CUDA_BATCH_MEM_OP_NODE_PARAMS",
    ][::core::mem::size_of::<CUDA_BATCH_MEM_OP_NODE_PARAMS>() - 32usize];
    [
        "Alignment of CUDA_BATCH_MEM_OP_NODE_PARAMS",
    ][::core::mem::align_of::<CUDA_BATCH_MEM_OP_NODE_PARAMS>() - 8usize];
    [
        "Offset of field: CUDA_BATCH_MEM_OP_NODE_PARAMS::ctx",
    ][::core::mem::offset_of!(CUDA_BATCH_MEM_OP_NODE_PARAMS, ctx) - 0usize];
    [
        "Offset of field: CUDA_BATCH_MEM_OP_NODE_PARAMS::count",
    ][::core::mem::offset_of!(CUDA_BATCH_MEM_OP_NODE_PARAMS, count) - 8usize];
    [
        "Offset of field: CUDA_BATCH_MEM_OP_NODE_PARAMS::paramArray",
    ][::core::mem::offset_of!(CUDA_BATCH_MEM_OP_NODE_PARAMS, paramArray) - 16usize];
    [
        "Offset of field: CUDA_BATCH_MEM_OP_NODE_PARAMS::flags",
    ][::core::mem::offset_of!(CUDA_BATCH_MEM_OP_NODE_PARAMS, flags) - 24usize];
};
impl Default for CUDA_BATCH_MEM_OP_NODE_PARAMS {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Copy, Clone, PartialEq)]
pub struct CUaccessPolicyWindow {
    pub base_ptr: *mut ::core::ffi::c_void,
    pub num_bytes: usize,
    pub hitRatio: f32,
    pub hitProp: CUaccessProperty,
    pub missProp: CUaccessProperty,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    [
        "Size of CUaccessPolicyWindow",
    ][::core::mem::size_of::<CUaccessPolicyWindow>() - 32usize];
    [
        "Alignment of CUaccessPolicyWindow",
    ][::core::mem::align_of::<CUaccessPolicyWindow>() - 8usize];
    [
        "Offset of field: CUaccessPolicyWindow::base_ptr",
    ][::core::mem::offset_of!(CUaccessPolicyWindow, base_ptr) - 0usize];
    [
        "Offset of field: CUaccessPolicyWindow::num_bytes",
    ][::core::mem::offset_of!(CUaccessPolicyWindow, num_bytes) - 8usize];
    [
        "Offset of field: CUaccessPolicyWindow::hitRatio",
    ][::core::mem::offset_of!(CUaccessPolicyWindow, hitRatio) - 16usize];
    [
        "Offset of field: CUaccessPolicyWindow::hitProp",
    ][::core::mem::offset_of!(CUaccessPolicyWindow, hitProp) - 20usize];
    [
        "Offset of field: CUaccessPolicyWindow::missProp",
    ][::core::mem::offset_of!(CUaccessPolicyWindow, missProp) - 24usize];
};
impl Default for CUaccessPolicyWindow {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUlaunchMemSyncDomainMap {
    pub default_: ::core::ffi::c_uchar,
    pub remote: ::core::ffi::c_uchar,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    [
        "Size of CUlaunchMemSyncDomainMap",
    ][::core::mem::size_of::<CUlaunchMemSyncDomainMap>() - 2usize];
    [
        "Alignment of CUlaunchMemSyncDomainMap",
    ][::core::mem::align_of::<CUlaunchMemSyncDomainMap>() - 1usize];
    [
        "Offset of field: CUlaunchMemSyncDomainMap::default_",
    ][::core::mem::offset_of!(CUlaunchMemSyncDomainMap, default_) - 0usize];
    [
        "Offset of field: CUlaunchMemSyncDomainMap::remote",
    ][::core::mem::offset_of!(CUlaunchMemSyncDomainMap, remote) - 1usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUlaunchAttributeValue_programmaticEvent_u {
    pub event: CUevent,
    pub flags: ::core::ffi::c_int,
    pub triggerAtBlockStart: ::core::ffi::c_int,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    [
        "Size of CUlaunchAttributeValue_programmaticEvent_u",
    ][::core::mem::size_of::<CUlaunchAttributeValue_programmaticEvent_u>() - 16usize];
    [
        "Alignment of CUlaunchAttributeValue_programmaticEvent_u",
    ][::core::mem::align_of::<CUlaunchAttributeValue_programmaticEvent_u>() - 8usize];
    [
        "Offset of field: CUlaunchAttributeValue_programmaticEvent_u::event",
    ][::core::mem::offset_of!(CUlaunchAttributeValue_programmaticEvent_u, event)
        - 0usize];
    [
        "Offset of field: CUlaunchAttributeValue_programmaticEvent_u::flags",
    ][::core::mem::offset_of!(CUlaunchAttributeValue_programmaticEvent_u, flags)
        - 8usize];
    [
        "Offset of field: CUlaunchAttributeValue_programmaticEvent_u::triggerAtBlockStart",
    ][::core::mem::offset_of!(
        CUlaunchAttributeValue_programmaticEvent_u, triggerAtBlockStart
    ) - 12usize];
};
impl Default for CUlaunchAttributeValue_programmaticEvent_u {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUlaunchAttributeValue_launchCompletionEvent_u {
    pub event: CUevent,
    pub flags: ::core::ffi::c_int,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    [
        "Size of CUlaunchAttributeValue_launchCompletionEvent_u",
    ][::core::mem::size_of::<CUlaunchAttributeValue_launchCompletionEvent_u>()
        - 16usize];
    [
        "Alignment of CUlaunchAttributeValue_launchCompletionEvent_u",
    ][::core::mem::align_of::<CUlaunchAttributeValue_launchCompletionEvent_u>()
        - 8usize];
    [
        "Offset of field: CUlaunchAttributeValue_launchCompletionEvent_u::event",
    ][::core::mem::offset_of!(CUlaunchAttributeValue_launchCompletionEvent_u, event)
        - 0usize];
    [
        "Offset of field: CUlaunchAttributeValue_launchCompletionEvent_u::flags",
    ][::core::mem::offset_of!(CUlaunchAttributeValue_launchCompletionEvent_u, flags)
        - 8usize];
};
impl Default for CUlaunchAttributeValue_launchCompletionEvent_u {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Copy, Clone)]
pub union CUlaunchAttributeValue {
    pub pad: [::core::ffi::c_uchar; 64usize],
    pub accessPolicyWindow: CUaccessPolicyWindow,
    pub syncPolicy: CUsynchronizationPolicy,
    pub programmaticEvent: CUlaunchAttributeValue_programmaticEvent_u,
    pub launchCompletionEvent: CUlaunchAttributeValue_launchCompletionEvent_u,
    pub priority: ::core::ffi::c_int,
    pub memSyncDomainMap: CUlaunchMemSyncDomainMap,
    pub memSyncDomain: CUlaunchMemSyncDomain,
    pub nvlinkUtilCentricScheduling: ::core::ffi::c_uint,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    [
        "Size of CUlaunchAttributeValue",
    ][::core::mem::size_of::<CUlaunchAttributeValue>() - 64usize];
    [
        "Alignment of CUlaunchAttributeValue",
    ][::core::mem::align_of::<CUlaunchAttributeValue>() - 8usize];
    [
        "Offset of field: CUlaunchAttributeValue::pad",
    ][::core::mem::offset_of!(CUlaunchAttributeValue, pad) - 0usize];
    [
        "Offset of field: CUlaunchAttributeValue::accessPolicyWindow",
    ][::core::mem::offset_of!(CUlaunchAttributeValue, accessPolicyWindow) - 0usize];
    [
        "Offset of field: CUlaunchAttributeValue::syncPolicy",
    ][::core::mem::offset_of!(CUlaunchAttributeValue, syncPolicy) - 0usize];
    [
        "Offset of field: CUlaunchAttributeValue::programmaticEvent",
    ][::core::mem::offset_of!(CUlaunchAttributeValue, programmaticEvent) - 0usize];
    [
        "Offset of field: CUlaunchAttributeValue::launchCompletionEvent",
    ][::core::mem::offset_of!(CUlaunchAttributeValue, launchCompletionEvent) - 0usize];
    [
        "Offset of field: CUlaunchAttributeValue::priority",
    ][::core::mem::offset_of!(CUlaunchAttributeValue, priority) - 0usize];
    [
        "Offset of field: CUlaunchAttributeValue::memSyncDomainMap",
    ][::core::mem::offset_of!(CUlaunchAttributeValue, memSyncDomainMap) - 0usize];
    [
        "Offset of field: CUlaunchAttributeValue::memSyncDomain",
    ][::core::mem::offset_of!(CUlaunchAttributeValue, memSyncDomain) - 0usize];
    [
        "Offset of field: CUlaunchAttributeValue::nvlinkUtilCentricScheduling",
    ][::core::mem::offset_of!(CUlaunchAttributeValue, nvlinkUtilCentricScheduling)
        - 0usize];
};
impl Default for CUlaunchAttributeValue {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Copy, Clone)]
#[non_exhaustive]
pub struct CUlaunchAttribute {
    pub id: CUlaunchAttributeID,
    pub pad: [::core::ffi::c_uchar; 4usize],
    pub value: CUlaunchAttributeValue,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    ["Size of CUlaunchAttribute"][::core::mem::size_of::<CUlaunchAttribute>() - 72usize];
    [
        "Alignment of CUlaunchAttribute",
    ][::core::mem::align_of::<CUlaunchAttribute>() - 8usize];
    [
        "Offset of field: CUlaunchAttribute::id",
    ][::core::mem::offset_of!(CUlaunchAttribute, id) - 0usize];
    [
        "Offset of field: CUlaunchAttribute::pad",
    ][::core::mem::offset_of!(CUlaunchAttribute, pad) - 4usize];
    [
        "Offset of field: CUlaunchAttribute::value",
    ][::core::mem::offset_of!(CUlaunchAttribute, value) - 8usize];
};
impl Default for CUlaunchAttribute {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
pub use self::CUlaunchAttributeID as CUstreamAttrID;
pub type CUstreamAttrValue = CUlaunchAttributeValue;
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, Hash, PartialEq, Eq)]
#[non_exhaustive]
pub struct CUgraphEdgeData {
    pub from_port: ::core::ffi::c_uchar,
    pub to_port: ::core::ffi::c_uchar,
    pub type_: ::core::ffi::c_uchar,
    pub reserved: [::core::ffi::c_uchar; 5usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    ["Size of CUgraphEdgeData"][::core::mem::size_of::<CUgraphEdgeData>() - 8usize];
    [
        "Alignment of CUgraphEdgeData",
    ][::core::mem::align_of::<CUgraphEdgeData>() - 1usize];
    [
        "Offset of field: CUgraphEdgeData::from_port",
    ][::core::mem::offset_of!(CUgraphEdgeData, from_port) - 0usize];
    [
        "Offset of field: CUgraphEdgeData::to_port",
    ][::core::mem::offset_of!(CUgraphEdgeData, to_port) - 1usize];
    [
        "Offset of field: CUgraphEdgeData::type_",
    ][::core::mem::offset_of!(CUgraphEdgeData, type_) - 2usize];
    [
        "Offset of field: CUgraphEdgeData::reserved",
    ][::core::mem::offset_of!(CUgraphEdgeData, reserved) - 3usize];
};
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUexecAffinitySmCount {
    pub val: ::core::ffi::c_uint,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    [
        "Size of CUexecAffinitySmCount",
    ][::core::mem::size_of::<CUexecAffinitySmCount>() - 4usize];
    [
        "Alignment of CUexecAffinitySmCount",
    ][::core::mem::align_of::<CUexecAffinitySmCount>() - 4usize];
    [
        "Offset of field: CUexecAffinitySmCount::val",
    ][::core::mem::offset_of!(CUexecAffinitySmCount, val) - 0usize];
};
#[repr(C)]
#[derive(Copy, Clone)]
pub union CUexecAffinityParam_u {
    pub smCount: CUexecAffinitySmCount,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    [
        "Size of CUexecAffinityParam_u",
    ][::core::mem::size_of::<CUexecAffinityParam_u>() - 4usize];
    [
        "Alignment of CUexecAffinityParam_u",
    ][::core::mem::align_of::<CUexecAffinityParam_u>() - 4usize];
    [
        "Offset of field: CUexecAffinityParam_u::smCount",
    ][::core::mem::offset_of!(CUexecAffinityParam_u, smCount) - 0usize];
};
impl Default for CUexecAffinityParam_u {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Copy, Clone)]
pub struct CUexecAffinityParam {
    pub type_: CUexecAffinityType,
    pub param: CUexecAffinityParam_u,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    [
        "Size of CUexecAffinityParam",
    ][::core::mem::size_of::<CUexecAffinityParam>() - 8usize];
    [
        "Alignment of CUexecAffinityParam",
    ][::core::mem::align_of::<CUexecAffinityParam>() - 4usize];
    [
        "Offset of field: CUexecAffinityParam::type_",
    ][::core::mem::offset_of!(CUexecAffinityParam, type_) - 0usize];
    [
        "Offset of field: CUexecAffinityParam::param",
    ][::core::mem::offset_of!(CUexecAffinityParam, param) - 4usize];
};
impl Default for CUexecAffinityParam {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUctxCigParam {
    pub sharedDataType: CUcigDataType,
    pub sharedData: *mut ::core::ffi::c_void,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    ["Size of CUctxCigParam"][::core::mem::size_of::<CUctxCigParam>() - 16usize];
    ["Alignment of CUctxCigParam"][::core::mem::align_of::<CUctxCigParam>() - 8usize];
    [
        "Offset of field: CUctxCigParam::sharedDataType",
    ][::core::mem::offset_of!(CUctxCigParam, sharedDataType) - 0usize];
    [
        "Offset of field: CUctxCigParam::sharedData",
    ][::core::mem::offset_of!(CUctxCigParam, sharedData) - 8usize];
};
impl Default for CUctxCigParam {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUctxCreateParams {
    pub execAffinityParams: *mut CUexecAffinityParam,
    pub numExecAffinityParams: ::core::ffi::c_int,
    pub cigParams: *mut CUctxCigParam,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    ["Size of CUctxCreateParams"][::core::mem::size_of::<CUctxCreateParams>() - 24usize];
    [
        "Alignment of CUctxCreateParams",
    ][::core::mem::align_of::<CUctxCreateParams>() - 8usize];
    [
        "Offset of field: CUctxCreateParams::execAffinityParams",
    ][::core::mem::offset_of!(CUctxCreateParams, execAffinityParams) - 0usize];
    [
        "Offset of field: CUctxCreateParams::numExecAffinityParams",
    ][::core::mem::offset_of!(CUctxCreateParams, numExecAffinityParams) - 8usize];
    [
        "Offset of field: CUctxCreateParams::cigParams",
    ][::core::mem::offset_of!(CUctxCreateParams, cigParams) - 16usize];
};
impl Default for CUctxCreateParams {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUstreamCigParam {
    pub streamSharedDataType: CUstreamCigDataType,
    pub streamSharedData: *mut ::core::ffi::c_void,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    ["Size of CUstreamCigParam"][::core::mem::size_of::<CUstreamCigParam>() - 16usize];
    [
        "Alignment of CUstreamCigParam",
    ][::core::mem::align_of::<CUstreamCigParam>() - 8usize];
    [
        "Offset of field: CUstreamCigParam::streamSharedDataType",
    ][::core::mem::offset_of!(CUstreamCigParam, streamSharedDataType) - 0usize];
    [
        "Offset of field: CUstreamCigParam::streamSharedData",
    ][::core::mem::offset_of!(CUstreamCigParam, streamSharedData) - 8usize];
};
impl Default for CUstreamCigParam {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUstreamCigCaptureParams {
    pub streamCigParams: *mut CUstreamCigParam,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    [
        "Size of CUstreamCigCaptureParams",
    ][::core::mem::size_of::<CUstreamCigCaptureParams>() - 8usize];
    [
        "Alignment of CUstreamCigCaptureParams",
    ][::core::mem::align_of::<CUstreamCigCaptureParams>() - 8usize];
    [
        "Offset of field: CUstreamCigCaptureParams::streamCigParams",
    ][::core::mem::offset_of!(CUstreamCigCaptureParams, streamCigParams) - 0usize];
};
impl Default for CUstreamCigCaptureParams {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, Hash, PartialEq, Eq)]
#[non_exhaustive]
pub struct CUdevSmResource {
    pub smCount: ::core::ffi::c_uint,
    pub minSmPartitionSize: ::core::ffi::c_uint,
    pub smCoscheduledAlignment: ::core::ffi::c_uint,
    pub flags: ::core::ffi::c_uint,
    pub localityDomainId: ::core::ffi::c_uint,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    ["Size of CUdevSmResource"][::core::mem::size_of::<CUdevSmResource>() - 20usize];
    [
        "Alignment of CUdevSmResource",
    ][::core::mem::align_of::<CUdevSmResource>() - 4usize];
    [
        "Offset of field: CUdevSmResource::smCount",
    ][::core::mem::offset_of!(CUdevSmResource, smCount) - 0usize];
    [
        "Offset of field: CUdevSmResource::minSmPartitionSize",
    ][::core::mem::offset_of!(CUdevSmResource, minSmPartitionSize) - 4usize];
    [
        "Offset of field: CUdevSmResource::smCoscheduledAlignment",
    ][::core::mem::offset_of!(CUdevSmResource, smCoscheduledAlignment) - 8usize];
    [
        "Offset of field: CUdevSmResource::flags",
    ][::core::mem::offset_of!(CUdevSmResource, flags) - 12usize];
    [
        "Offset of field: CUdevSmResource::localityDomainId",
    ][::core::mem::offset_of!(CUdevSmResource, localityDomainId) - 16usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
#[non_exhaustive]
pub struct CUdevWorkqueueConfigResource {
    pub device: CUdevice,
    pub wqConcurrencyLimit: ::core::ffi::c_uint,
    pub sharingScope: CUdevWorkqueueConfigScope,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    [
        "Size of CUdevWorkqueueConfigResource",
    ][::core::mem::size_of::<CUdevWorkqueueConfigResource>() - 12usize];
    [
        "Alignment of CUdevWorkqueueConfigResource",
    ][::core::mem::align_of::<CUdevWorkqueueConfigResource>() - 4usize];
    [
        "Offset of field: CUdevWorkqueueConfigResource::device",
    ][::core::mem::offset_of!(CUdevWorkqueueConfigResource, device) - 0usize];
    [
        "Offset of field: CUdevWorkqueueConfigResource::wqConcurrencyLimit",
    ][::core::mem::offset_of!(CUdevWorkqueueConfigResource, wqConcurrencyLimit)
        - 4usize];
    [
        "Offset of field: CUdevWorkqueueConfigResource::sharingScope",
    ][::core::mem::offset_of!(CUdevWorkqueueConfigResource, sharingScope) - 8usize];
};
impl Default for CUdevWorkqueueConfigResource {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
#[non_exhaustive]
pub struct CUdevWorkqueueResource {
    pub reserved: [::core::ffi::c_uchar; 40usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    [
        "Size of CUdevWorkqueueResource",
    ][::core::mem::size_of::<CUdevWorkqueueResource>() - 40usize];
    [
        "Alignment of CUdevWorkqueueResource",
    ][::core::mem::align_of::<CUdevWorkqueueResource>() - 1usize];
    [
        "Offset of field: CUdevWorkqueueResource::reserved",
    ][::core::mem::offset_of!(CUdevWorkqueueResource, reserved) - 0usize];
};
impl Default for CUdevWorkqueueResource {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Copy, Clone)]
pub union CUdevResource_u {
    pub sm: CUdevSmResource,
    pub wqConfig: CUdevWorkqueueConfigResource,
    pub wq: CUdevWorkqueueResource,
    pub _oversize: [::core::ffi::c_uchar; 40usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    ["Size of CUdevResource_u"][::core::mem::size_of::<CUdevResource_u>() - 40usize];
    [
        "Alignment of CUdevResource_u",
    ][::core::mem::align_of::<CUdevResource_u>() - 4usize];
    [
        "Offset of field: CUdevResource_u::sm",
    ][::core::mem::offset_of!(CUdevResource_u, sm) - 0usize];
    [
        "Offset of field: CUdevResource_u::wqConfig",
    ][::core::mem::offset_of!(CUdevResource_u, wqConfig) - 0usize];
    [
        "Offset of field: CUdevResource_u::wq",
    ][::core::mem::offset_of!(CUdevResource_u, wq) - 0usize];
    [
        "Offset of field: CUdevResource_u::_oversize",
    ][::core::mem::offset_of!(CUdevResource_u, _oversize) - 0usize];
};
impl Default for CUdevResource_u {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Copy, Clone)]
#[non_exhaustive]
pub struct CUdevResource {
    pub type_: CUdevResourceType,
    pub _internal_padding: [::core::ffi::c_uchar; 92usize],
    pub u: CUdevResource_u,
    pub nextResource: *mut CUdevResource,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    ["Size of CUdevResource"][::core::mem::size_of::<CUdevResource>() - 144usize];
    ["Alignment of CUdevResource"][::core::mem::align_of::<CUdevResource>() - 8usize];
    [
        "Offset of field: CUdevResource::type_",
    ][::core::mem::offset_of!(CUdevResource, type_) - 0usize];
    [
        "Offset of field: CUdevResource::_internal_padding",
    ][::core::mem::offset_of!(CUdevResource, _internal_padding) - 4usize];
    [
        "Offset of field: CUdevResource::u",
    ][::core::mem::offset_of!(CUdevResource, u) - 96usize];
    [
        "Offset of field: CUdevResource::nextResource",
    ][::core::mem::offset_of!(CUdevResource, nextResource) - 136usize];
};
impl Default for CUdevResource {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, Hash, PartialEq, Eq)]
#[non_exhaustive]
pub struct CU_DEV_SM_RESOURCE_GROUP_PARAMS {
    pub smCount: ::core::ffi::c_uint,
    pub coscheduledSmCount: ::core::ffi::c_uint,
    pub preferredCoscheduledSmCount: ::core::ffi::c_uint,
    pub flags: ::core::ffi::c_uint,
    pub localityDomainId: ::core::ffi::c_uint,
    pub reserved: [::core::ffi::c_uint; 11usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    [
        "Size of CU_DEV_SM_RESOURCE_GROUP_PARAMS",
    ][::core::mem::size_of::<CU_DEV_SM_RESOURCE_GROUP_PARAMS>() - 64usize];
    [
        "Alignment of CU_DEV_SM_RESOURCE_GROUP_PARAMS",
    ][::core::mem::align_of::<CU_DEV_SM_RESOURCE_GROUP_PARAMS>() - 4usize];
    [
        "Offset of field: CU_DEV_SM_RESOURCE_GROUP_PARAMS::smCount",
    ][::core::mem::offset_of!(CU_DEV_SM_RESOURCE_GROUP_PARAMS, smCount) - 0usize];
    [
        "Offset of field: CU_DEV_SM_RESOURCE_GROUP_PARAMS::coscheduledSmCount",
    ][::core::mem::offset_of!(CU_DEV_SM_RESOURCE_GROUP_PARAMS, coscheduledSmCount)
        - 4usize];
    [
        "Offset of field: CU_DEV_SM_RESOURCE_GROUP_PARAMS::preferredCoscheduledSmCount",
    ][::core::mem::offset_of!(
        CU_DEV_SM_RESOURCE_GROUP_PARAMS, preferredCoscheduledSmCount
    ) - 8usize];
    [
        "Offset of field: CU_DEV_SM_RESOURCE_GROUP_PARAMS::flags",
    ][::core::mem::offset_of!(CU_DEV_SM_RESOURCE_GROUP_PARAMS, flags) - 12usize];
    [
        "Offset of field: CU_DEV_SM_RESOURCE_GROUP_PARAMS::localityDomainId",
    ][::core::mem::offset_of!(CU_DEV_SM_RESOURCE_GROUP_PARAMS, localityDomainId)
        - 16usize];
    [
        "Offset of field: CU_DEV_SM_RESOURCE_GROUP_PARAMS::reserved",
    ][::core::mem::offset_of!(CU_DEV_SM_RESOURCE_GROUP_PARAMS, reserved) - 20usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_win32_u {
    pub handle: *mut ::core::ffi::c_void,
    pub name: *const ::core::ffi::c_void,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    [
        "Size of CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_win32_u",
    ][::core::mem::size_of::<CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_win32_u>() - 16usize];
    [
        "Alignment of CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_win32_u",
    ][::core::mem::align_of::<CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_win32_u>() - 8usize];
    [
        "Offset of field: CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_win32_u::handle",
    ][::core::mem::offset_of!(CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_win32_u, handle)
        - 0usize];
    [
        "Offset of field: CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_win32_u::name",
    ][::core::mem::offset_of!(CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_win32_u, name)
        - 8usize];
};
impl Default for CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_win32_u {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Copy, Clone)]
pub union CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_u {
    pub fd: ::core::ffi::c_int,
    pub win32: CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_win32_u,
    pub nvSciSyncObj: *const ::core::ffi::c_void,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    [
        "Size of CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_u",
    ][::core::mem::size_of::<CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_u>() - 16usize];
    [
        "Alignment of CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_u",
    ][::core::mem::align_of::<CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_u>() - 8usize];
    [
        "Offset of field: CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_u::fd",
    ][::core::mem::offset_of!(CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_u, fd) - 0usize];
    [
        "Offset of field: CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_u::win32",
    ][::core::mem::offset_of!(CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_u, win32) - 0usize];
    [
        "Offset of field: CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_u::nvSciSyncObj",
    ][::core::mem::offset_of!(CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_u, nvSciSyncObj)
        - 0usize];
};
impl Default for CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_u {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Copy, Clone)]
#[non_exhaustive]
pub struct CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC {
    pub type_: CUexternalSemaphoreHandleType,
    pub handle: CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_u,
    pub flags: ::core::ffi::c_uint,
    pub reserved: [::core::ffi::c_uint; 16usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    [
        "Size of CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC",
    ][::core::mem::size_of::<CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC>() - 96usize];
    [
        "Alignment of CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC",
    ][::core::mem::align_of::<CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC>() - 8usize];
    [
        "Offset of field: CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC::type_",
    ][::core::mem::offset_of!(CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC, type_) - 0usize];
    [
        "Offset of field: CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC::handle",
    ][::core::mem::offset_of!(CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC, handle) - 8usize];
    [
        "Offset of field: CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC::flags",
    ][::core::mem::offset_of!(CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC, flags) - 24usize];
    [
        "Offset of field: CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC::reserved",
    ][::core::mem::offset_of!(CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC, reserved) - 28usize];
};
impl Default for CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_fence_u {
    pub value: ::core::ffi::c_ulonglong,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    [
        "Size of CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_fence_u",
    ][::core::mem::size_of::<CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_fence_u>() - 8usize];
    [
        "Alignment of CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_fence_u",
    ][::core::mem::align_of::<CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_fence_u>() - 8usize];
    [
        "Offset of field: CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_fence_u::value",
    ][::core::mem::offset_of!(CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_fence_u, value)
        - 0usize];
};
#[repr(C)]
#[derive(Copy, Clone)]
pub union CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_nvSciSync_u {
    pub fence: *mut ::core::ffi::c_void,
    pub reserved: ::core::ffi::c_ulonglong,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    [
        "Size of CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_nvSciSync_u",
    ][::core::mem::size_of::<CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_nvSciSync_u>()
        - 8usize];
    [
        "Alignment of CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_nvSciSync_u",
    ][::core::mem::align_of::<CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_nvSciSync_u>()
        - 8usize];
    [
        "Offset of field: CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_nvSciSync_u::fence",
    ][::core::mem::offset_of!(CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_nvSciSync_u, fence)
        - 0usize];
    [
        "Offset of field: CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_nvSciSync_u::reserved",
    ][::core::mem::offset_of!(
        CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_nvSciSync_u, reserved
    ) - 0usize];
};
impl Default for CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_nvSciSync_u {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_keyedMutex_u {
    pub key: ::core::ffi::c_ulonglong,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    [
        "Size of CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_keyedMutex_u",
    ][::core::mem::size_of::<CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_keyedMutex_u>()
        - 8usize];
    [
        "Alignment of CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_keyedMutex_u",
    ][::core::mem::align_of::<CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_keyedMutex_u>()
        - 8usize];
    [
        "Offset of field: CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_keyedMutex_u::key",
    ][::core::mem::offset_of!(CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_keyedMutex_u, key)
        - 0usize];
};
#[repr(C)]
#[derive(Copy, Clone)]
#[non_exhaustive]
pub struct CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_u {
    pub fence: CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_fence_u,
    pub nvSciSync: CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_nvSciSync_u,
    pub keyedMutex: CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_keyedMutex_u,
    pub reserved: [::core::ffi::c_uint; 12usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    [
        "Size of CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_u",
    ][::core::mem::size_of::<CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_u>() - 72usize];
    [
        "Alignment of CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_u",
    ][::core::mem::align_of::<CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_u>() - 8usize];
    [
        "Offset of field: CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_u::fence",
    ][::core::mem::offset_of!(CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_u, fence) - 0usize];
    [
        "Offset of field: CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_u::nvSciSync",
    ][::core::mem::offset_of!(CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_u, nvSciSync)
        - 8usize];
    [
        "Offset of field: CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_u::keyedMutex",
    ][::core::mem::offset_of!(CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_u, keyedMutex)
        - 16usize];
    [
        "Offset of field: CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_u::reserved",
    ][::core::mem::offset_of!(CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_u, reserved)
        - 24usize];
};
impl Default for CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_u {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Copy, Clone)]
#[non_exhaustive]
pub struct CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS {
    pub params: CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_u,
    pub flags: ::core::ffi::c_uint,
    pub reserved: [::core::ffi::c_uint; 16usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    [
        "Size of CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS",
    ][::core::mem::size_of::<CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS>() - 144usize];
    [
        "Alignment of CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS",
    ][::core::mem::align_of::<CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS>() - 8usize];
    [
        "Offset of field: CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS::params",
    ][::core::mem::offset_of!(CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS, params) - 0usize];
    [
        "Offset of field: CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS::flags",
    ][::core::mem::offset_of!(CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS, flags) - 72usize];
    [
        "Offset of field: CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS::reserved",
    ][::core::mem::offset_of!(CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS, reserved)
        - 76usize];
};
impl Default for CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_fence_u {
    pub value: ::core::ffi::c_ulonglong,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    [
        "Size of CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_fence_u",
    ][::core::mem::size_of::<CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_fence_u>() - 8usize];
    [
        "Alignment of CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_fence_u",
    ][::core::mem::align_of::<CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_fence_u>() - 8usize];
    [
        "Offset of field: CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_fence_u::value",
    ][::core::mem::offset_of!(CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_fence_u, value)
        - 0usize];
};
#[repr(C)]
#[derive(Copy, Clone)]
pub union CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_nvSciSync_u {
    pub fence: *mut ::core::ffi::c_void,
    pub reserved: ::core::ffi::c_ulonglong,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    [
        "Size of CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_nvSciSync_u",
    ][::core::mem::size_of::<CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_nvSciSync_u>()
        - 8usize];
    [
        "Alignment of CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_nvSciSync_u",
    ][::core::mem::align_of::<CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_nvSciSync_u>()
        - 8usize];
    [
        "Offset of field: CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_nvSciSync_u::fence",
    ][::core::mem::offset_of!(CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_nvSciSync_u, fence)
        - 0usize];
    [
        "Offset of field: CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_nvSciSync_u::reserved",
    ][::core::mem::offset_of!(CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_nvSciSync_u, reserved)
        - 0usize];
};
impl Default for CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_nvSciSync_u {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_keyedMutex_u {
    pub key: ::core::ffi::c_ulonglong,
    pub timeoutMs: ::core::ffi::c_uint,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    [
        "Size of CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_keyedMutex_u",
    ][::core::mem::size_of::<CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_keyedMutex_u>()
        - 16usize];
    [
        "Alignment of CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_keyedMutex_u",
    ][::core::mem::align_of::<CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_keyedMutex_u>()
        - 8usize];
    [
        "Offset of field: CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_keyedMutex_u::key",
    ][::core::mem::offset_of!(CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_keyedMutex_u, key)
        - 0usize];
    [
        "Offset of field: CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_keyedMutex_u::timeoutMs",
    ][::core::mem::offset_of!(
        CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_keyedMutex_u, timeoutMs
    ) - 8usize];
};
#[repr(C)]
#[derive(Copy, Clone)]
#[non_exhaustive]
pub struct CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_u {
    pub fence: CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_fence_u,
    pub nvSciSync: CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_nvSciSync_u,
    pub keyedMutex: CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_keyedMutex_u,
    pub reserved: [::core::ffi::c_uint; 10usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    [
        "Size of CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_u",
    ][::core::mem::size_of::<CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_u>() - 72usize];
    [
        "Alignment of CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_u",
    ][::core::mem::align_of::<CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_u>() - 8usize];
    [
        "Offset of field: CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_u::fence",
    ][::core::mem::offset_of!(CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_u, fence) - 0usize];
    [
        "Offset of field: CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_u::nvSciSync",
    ][::core::mem::offset_of!(CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_u, nvSciSync)
        - 8usize];
    [
        "Offset of field: CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_u::keyedMutex",
    ][::core::mem::offset_of!(CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_u, keyedMutex)
        - 16usize];
    [
        "Offset of field: CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_u::reserved",
    ][::core::mem::offset_of!(CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_u, reserved)
        - 32usize];
};
impl Default for CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_u {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Copy, Clone)]
#[non_exhaustive]
pub struct CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS {
    pub params: CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_u,
    pub flags: ::core::ffi::c_uint,
    pub reserved: [::core::ffi::c_uint; 16usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    [
        "Size of CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS",
    ][::core::mem::size_of::<CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS>() - 144usize];
    [
        "Alignment of CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS",
    ][::core::mem::align_of::<CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS>() - 8usize];
    [
        "Offset of field: CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS::params",
    ][::core::mem::offset_of!(CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS, params) - 0usize];
    [
        "Offset of field: CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS::flags",
    ][::core::mem::offset_of!(CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS, flags) - 72usize];
    [
        "Offset of field: CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS::reserved",
    ][::core::mem::offset_of!(CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS, reserved) - 76usize];
};
impl Default for CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUDA_EXTERNAL_MEMORY_HANDLE_DESC_win32_u {
    pub handle: *mut ::core::ffi::c_void,
    pub name: *const ::core::ffi::c_void,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    [
        "Size of CUDA_EXTERNAL_MEMORY_HANDLE_DESC_win32_u",
    ][::core::mem::size_of::<CUDA_EXTERNAL_MEMORY_HANDLE_DESC_win32_u>() - 16usize];
    [
        "Alignment of CUDA_EXTERNAL_MEMORY_HANDLE_DESC_win32_u",
    ][::core::mem::align_of::<CUDA_EXTERNAL_MEMORY_HANDLE_DESC_win32_u>() - 8usize];
    [
        "Offset of field: CUDA_EXTERNAL_MEMORY_HANDLE_DESC_win32_u::handle",
    ][::core::mem::offset_of!(CUDA_EXTERNAL_MEMORY_HANDLE_DESC_win32_u, handle)
        - 0usize];
    [
        "Offset of field: CUDA_EXTERNAL_MEMORY_HANDLE_DESC_win32_u::name",
    ][::core::mem::offset_of!(CUDA_EXTERNAL_MEMORY_HANDLE_DESC_win32_u, name) - 8usize];
};
impl Default for CUDA_EXTERNAL_MEMORY_HANDLE_DESC_win32_u {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Copy, Clone)]
pub union CUDA_EXTERNAL_MEMORY_HANDLE_DESC_u {
    pub fd: ::core::ffi::c_int,
    pub win32: CUDA_EXTERNAL_MEMORY_HANDLE_DESC_win32_u,
    pub nvSciBufObject: *const ::core::ffi::c_void,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    [
        "Size of CUDA_EXTERNAL_MEMORY_HANDLE_DESC_u",
    ][::core::mem::size_of::<CUDA_EXTERNAL_MEMORY_HANDLE_DESC_u>() - 16usize];
    [
        "Alignment of CUDA_EXTERNAL_MEMORY_HANDLE_DESC_u",
    ][::core::mem::align_of::<CUDA_EXTERNAL_MEMORY_HANDLE_DESC_u>() - 8usize];
    [
        "Offset of field: CUDA_EXTERNAL_MEMORY_HANDLE_DESC_u::fd",
    ][::core::mem::offset_of!(CUDA_EXTERNAL_MEMORY_HANDLE_DESC_u, fd) - 0usize];
    [
        "Offset of field: CUDA_EXTERNAL_MEMORY_HANDLE_DESC_u::win32",
    ][::core::mem::offset_of!(CUDA_EXTERNAL_MEMORY_HANDLE_DESC_u, win32) - 0usize];
    [
        "Offset of field: CUDA_EXTERNAL_MEMORY_HANDLE_DESC_u::nvSciBufObject",
    ][::core::mem::offset_of!(CUDA_EXTERNAL_MEMORY_HANDLE_DESC_u, nvSciBufObject)
        - 0usize];
};
impl Default for CUDA_EXTERNAL_MEMORY_HANDLE_DESC_u {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Copy, Clone)]
#[non_exhaustive]
pub struct CUDA_EXTERNAL_MEMORY_HANDLE_DESC {
    pub type_: CUexternalMemoryHandleType,
    pub handle: CUDA_EXTERNAL_MEMORY_HANDLE_DESC_u,
    pub size: ::core::ffi::c_ulonglong,
    pub flags: ::core::ffi::c_uint,
    pub reserved: [::core::ffi::c_uint; 16usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    [
        "Size of CUDA_EXTERNAL_MEMORY_HANDLE_DESC",
    ][::core::mem::size_of::<CUDA_EXTERNAL_MEMORY_HANDLE_DESC>() - 104usize];
    [
        "Alignment of CUDA_EXTERNAL_MEMORY_HANDLE_DESC",
    ][::core::mem::align_of::<CUDA_EXTERNAL_MEMORY_HANDLE_DESC>() - 8usize];
    [
        "Offset of field: CUDA_EXTERNAL_MEMORY_HANDLE_DESC::type_",
    ][::core::mem::offset_of!(CUDA_EXTERNAL_MEMORY_HANDLE_DESC, type_) - 0usize];
    [
        "Offset of field: CUDA_EXTERNAL_MEMORY_HANDLE_DESC::handle",
    ][::core::mem::offset_of!(CUDA_EXTERNAL_MEMORY_HANDLE_DESC, handle) - 8usize];
    [
        "Offset of field: CUDA_EXTERNAL_MEMORY_HANDLE_DESC::size",
    ][::core::mem::offset_of!(CUDA_EXTERNAL_MEMORY_HANDLE_DESC, size) - 24usize];
    [
        "Offset of field: CUDA_EXTERNAL_MEMORY_HANDLE_DESC::flags",
    ][::core::mem::offset_of!(CUDA_EXTERNAL_MEMORY_HANDLE_DESC, flags) - 32usize];
    [
        "Offset of field: CUDA_EXTERNAL_MEMORY_HANDLE_DESC::reserved",
    ][::core::mem::offset_of!(CUDA_EXTERNAL_MEMORY_HANDLE_DESC, reserved) - 36usize];
};
impl Default for CUDA_EXTERNAL_MEMORY_HANDLE_DESC {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, Hash, PartialEq, Eq)]
#[non_exhaustive]
pub struct CUDA_EXTERNAL_MEMORY_BUFFER_DESC {
    pub offset: ::core::ffi::c_ulonglong,
    pub size: ::core::ffi::c_ulonglong,
    pub flags: ::core::ffi::c_uint,
    pub reserved: [::core::ffi::c_uint; 16usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    [
        "Size of CUDA_EXTERNAL_MEMORY_BUFFER_DESC",
    ][::core::mem::size_of::<CUDA_EXTERNAL_MEMORY_BUFFER_DESC>() - 88usize];
    [
        "Alignment of CUDA_EXTERNAL_MEMORY_BUFFER_DESC",
    ][::core::mem::align_of::<CUDA_EXTERNAL_MEMORY_BUFFER_DESC>() - 8usize];
    [
        "Offset of field: CUDA_EXTERNAL_MEMORY_BUFFER_DESC::offset",
    ][::core::mem::offset_of!(CUDA_EXTERNAL_MEMORY_BUFFER_DESC, offset) - 0usize];
    [
        "Offset of field: CUDA_EXTERNAL_MEMORY_BUFFER_DESC::size",
    ][::core::mem::offset_of!(CUDA_EXTERNAL_MEMORY_BUFFER_DESC, size) - 8usize];
    [
        "Offset of field: CUDA_EXTERNAL_MEMORY_BUFFER_DESC::flags",
    ][::core::mem::offset_of!(CUDA_EXTERNAL_MEMORY_BUFFER_DESC, flags) - 16usize];
    [
        "Offset of field: CUDA_EXTERNAL_MEMORY_BUFFER_DESC::reserved",
    ][::core::mem::offset_of!(CUDA_EXTERNAL_MEMORY_BUFFER_DESC, reserved) - 20usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUDA_EXT_SEM_SIGNAL_NODE_PARAMS {
    pub extSemArray: *mut CUexternalSemaphore,
    pub paramsArray: *const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS,
    pub numExtSems: ::core::ffi::c_uint,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    [
        "Size of CUDA_EXT_SEM_SIGNAL_NODE_PARAMS",
    ][::core::mem::size_of::<CUDA_EXT_SEM_SIGNAL_NODE_PARAMS>() - 24usize];
    [
        "Alignment of CUDA_EXT_SEM_SIGNAL_NODE_PARAMS",
    ][::core::mem::align_of::<CUDA_EXT_SEM_SIGNAL_NODE_PARAMS>() - 8usize];
    [
        "Offset of field: CUDA_EXT_SEM_SIGNAL_NODE_PARAMS::extSemArray",
    ][::core::mem::offset_of!(CUDA_EXT_SEM_SIGNAL_NODE_PARAMS, extSemArray) - 0usize];
    [
        "Offset of field: CUDA_EXT_SEM_SIGNAL_NODE_PARAMS::paramsArray",
    ][::core::mem::offset_of!(CUDA_EXT_SEM_SIGNAL_NODE_PARAMS, paramsArray) - 8usize];
    [
        "Offset of field: CUDA_EXT_SEM_SIGNAL_NODE_PARAMS::numExtSems",
    ][::core::mem::offset_of!(CUDA_EXT_SEM_SIGNAL_NODE_PARAMS, numExtSems) - 16usize];
};
impl Default for CUDA_EXT_SEM_SIGNAL_NODE_PARAMS {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUDA_EXT_SEM_WAIT_NODE_PARAMS {
    pub extSemArray: *mut CUexternalSemaphore,
    pub paramsArray: *const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS,
    pub numExtSems: ::core::ffi::c_uint,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    [
        "Size of CUDA_EXT_SEM_WAIT_NODE_PARAMS",
    ][::core::mem::size_of::<CUDA_EXT_SEM_WAIT_NODE_PARAMS>() - 24usize];
    [
        "Alignment of CUDA_EXT_SEM_WAIT_NODE_PARAMS",
    ][::core::mem::align_of::<CUDA_EXT_SEM_WAIT_NODE_PARAMS>() - 8usize];
    [
        "Offset of field: CUDA_EXT_SEM_WAIT_NODE_PARAMS::extSemArray",
    ][::core::mem::offset_of!(CUDA_EXT_SEM_WAIT_NODE_PARAMS, extSemArray) - 0usize];
    [
        "Offset of field: CUDA_EXT_SEM_WAIT_NODE_PARAMS::paramsArray",
    ][::core::mem::offset_of!(CUDA_EXT_SEM_WAIT_NODE_PARAMS, paramsArray) - 8usize];
    [
        "Offset of field: CUDA_EXT_SEM_WAIT_NODE_PARAMS::numExtSems",
    ][::core::mem::offset_of!(CUDA_EXT_SEM_WAIT_NODE_PARAMS, numExtSems) - 16usize];
};
impl Default for CUDA_EXT_SEM_WAIT_NODE_PARAMS {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUasyncNotificationInfo_overBudget_u {
    pub bytesOverBudget: ::core::ffi::c_ulonglong,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    [
        "Size of CUasyncNotificationInfo_overBudget_u",
    ][::core::mem::size_of::<CUasyncNotificationInfo_overBudget_u>() - 8usize];
    [
        "Alignment of CUasyncNotificationInfo_overBudget_u",
    ][::core::mem::align_of::<CUasyncNotificationInfo_overBudget_u>() - 8usize];
    [
        "Offset of field: CUasyncNotificationInfo_overBudget_u::bytesOverBudget",
    ][::core::mem::offset_of!(CUasyncNotificationInfo_overBudget_u, bytesOverBudget)
        - 0usize];
};
#[repr(C)]
#[derive(Copy, Clone)]
pub union CUasyncNotificationInfo_u {
    pub overBudget: CUasyncNotificationInfo_overBudget_u,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    [
        "Size of CUasyncNotificationInfo_u",
    ][::core::mem::size_of::<CUasyncNotificationInfo_u>() - 8usize];
    [
        "Alignment of CUasyncNotificationInfo_u",
    ][::core::mem::align_of::<CUasyncNotificationInfo_u>() - 8usize];
    [
        "Offset of field: CUasyncNotificationInfo_u::overBudget",
    ][::core::mem::offset_of!(CUasyncNotificationInfo_u, overBudget) - 0usize];
};
impl Default for CUasyncNotificationInfo_u {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Copy, Clone)]
pub struct CUasyncNotificationInfo {
    pub type_: CUasyncNotificationType,
    pub info: CUasyncNotificationInfo_u,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    [
        "Size of CUasyncNotificationInfo",
    ][::core::mem::size_of::<CUasyncNotificationInfo>() - 16usize];
    [
        "Alignment of CUasyncNotificationInfo",
    ][::core::mem::align_of::<CUasyncNotificationInfo>() - 8usize];
    [
        "Offset of field: CUasyncNotificationInfo::type_",
    ][::core::mem::offset_of!(CUasyncNotificationInfo, type_) - 0usize];
    [
        "Offset of field: CUasyncNotificationInfo::info",
    ][::core::mem::offset_of!(CUasyncNotificationInfo, info) - 8usize];
};
impl Default for CUasyncNotificationInfo {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUcheckpointCustomStoragePerDeviceData {
    pub devPtr: CUdeviceptr,
    pub size: usize,
    pub stream: CUstream,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    [
        "Size of CUcheckpointCustomStoragePerDeviceData",
    ][::core::mem::size_of::<CUcheckpointCustomStoragePerDeviceData>() - 24usize];
    [
        "Alignment of CUcheckpointCustomStoragePerDeviceData",
    ][::core::mem::align_of::<CUcheckpointCustomStoragePerDeviceData>() - 8usize];
    [
        "Offset of field: CUcheckpointCustomStoragePerDeviceData::devPtr",
    ][::core::mem::offset_of!(CUcheckpointCustomStoragePerDeviceData, devPtr) - 0usize];
    [
        "Offset of field: CUcheckpointCustomStoragePerDeviceData::size",
    ][::core::mem::offset_of!(CUcheckpointCustomStoragePerDeviceData, size) - 8usize];
    [
        "Offset of field: CUcheckpointCustomStoragePerDeviceData::stream",
    ][::core::mem::offset_of!(CUcheckpointCustomStoragePerDeviceData, stream) - 16usize];
};
impl Default for CUcheckpointCustomStoragePerDeviceData {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUcheckpointCustomStorageInfo {
    pub handle: CUcheckpointOperationHandle,
    pub perDeviceData: *mut CUcheckpointCustomStoragePerDeviceData,
    pub deviceCount: ::core::ffi::c_uint,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    [
        "Size of CUcheckpointCustomStorageInfo",
    ][::core::mem::size_of::<CUcheckpointCustomStorageInfo>() - 24usize];
    [
        "Alignment of CUcheckpointCustomStorageInfo",
    ][::core::mem::align_of::<CUcheckpointCustomStorageInfo>() - 8usize];
    [
        "Offset of field: CUcheckpointCustomStorageInfo::handle",
    ][::core::mem::offset_of!(CUcheckpointCustomStorageInfo, handle) - 0usize];
    [
        "Offset of field: CUcheckpointCustomStorageInfo::perDeviceData",
    ][::core::mem::offset_of!(CUcheckpointCustomStorageInfo, perDeviceData) - 8usize];
    [
        "Offset of field: CUcheckpointCustomStorageInfo::deviceCount",
    ][::core::mem::offset_of!(CUcheckpointCustomStorageInfo, deviceCount) - 16usize];
};
impl Default for CUcheckpointCustomStorageInfo {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, Hash, PartialEq, Eq)]
#[non_exhaustive]
pub struct CUcheckpointLockArgs {
    pub timeoutMs: ::core::ffi::c_uint,
    pub reserved0: ::core::ffi::c_uint,
    pub reserved1: [cuuint64_t; 7usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    [
        "Size of CUcheckpointLockArgs",
    ][::core::mem::size_of::<CUcheckpointLockArgs>() - 64usize];
    [
        "Alignment of CUcheckpointLockArgs",
    ][::core::mem::align_of::<CUcheckpointLockArgs>() - 8usize];
    [
        "Offset of field: CUcheckpointLockArgs::timeoutMs",
    ][::core::mem::offset_of!(CUcheckpointLockArgs, timeoutMs) - 0usize];
    [
        "Offset of field: CUcheckpointLockArgs::reserved0",
    ][::core::mem::offset_of!(CUcheckpointLockArgs, reserved0) - 4usize];
    [
        "Offset of field: CUcheckpointLockArgs::reserved1",
    ][::core::mem::offset_of!(CUcheckpointLockArgs, reserved1) - 8usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
#[non_exhaustive]
pub struct CUcheckpointCheckpointArgs {
    pub customStorageInfo_out: *mut *mut CUcheckpointCustomStorageInfo,
    pub reserved: [::core::ffi::c_uchar; 56usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    [
        "Size of CUcheckpointCheckpointArgs",
    ][::core::mem::size_of::<CUcheckpointCheckpointArgs>() - 64usize];
    [
        "Alignment of CUcheckpointCheckpointArgs",
    ][::core::mem::align_of::<CUcheckpointCheckpointArgs>() - 8usize];
    [
        "Offset of field: CUcheckpointCheckpointArgs::customStorageInfo_out",
    ][::core::mem::offset_of!(CUcheckpointCheckpointArgs, customStorageInfo_out)
        - 0usize];
    [
        "Offset of field: CUcheckpointCheckpointArgs::reserved",
    ][::core::mem::offset_of!(CUcheckpointCheckpointArgs, reserved) - 8usize];
};
impl Default for CUcheckpointCheckpointArgs {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUcheckpointGpuPair {
    pub oldUuid: CUuuid,
    pub newUuid: CUuuid,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    [
        "Size of CUcheckpointGpuPair",
    ][::core::mem::size_of::<CUcheckpointGpuPair>() - 32usize];
    [
        "Alignment of CUcheckpointGpuPair",
    ][::core::mem::align_of::<CUcheckpointGpuPair>() - 1usize];
    [
        "Offset of field: CUcheckpointGpuPair::oldUuid",
    ][::core::mem::offset_of!(CUcheckpointGpuPair, oldUuid) - 0usize];
    [
        "Offset of field: CUcheckpointGpuPair::newUuid",
    ][::core::mem::offset_of!(CUcheckpointGpuPair, newUuid) - 16usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
#[non_exhaustive]
pub struct CUcheckpointRestoreArgs {
    pub gpuPairs: *mut CUcheckpointGpuPair,
    pub gpuPairsCount: ::core::ffi::c_uint,
    pub padding0: ::core::ffi::c_uint,
    pub customStorageInfo_out: *mut *mut CUcheckpointCustomStorageInfo,
    pub reserved: [::core::ffi::c_uchar; 40usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    [
        "Size of CUcheckpointRestoreArgs",
    ][::core::mem::size_of::<CUcheckpointRestoreArgs>() - 64usize];
    [
        "Alignment of CUcheckpointRestoreArgs",
    ][::core::mem::align_of::<CUcheckpointRestoreArgs>() - 8usize];
    [
        "Offset of field: CUcheckpointRestoreArgs::gpuPairs",
    ][::core::mem::offset_of!(CUcheckpointRestoreArgs, gpuPairs) - 0usize];
    [
        "Offset of field: CUcheckpointRestoreArgs::gpuPairsCount",
    ][::core::mem::offset_of!(CUcheckpointRestoreArgs, gpuPairsCount) - 8usize];
    [
        "Offset of field: CUcheckpointRestoreArgs::padding0",
    ][::core::mem::offset_of!(CUcheckpointRestoreArgs, padding0) - 12usize];
    [
        "Offset of field: CUcheckpointRestoreArgs::customStorageInfo_out",
    ][::core::mem::offset_of!(CUcheckpointRestoreArgs, customStorageInfo_out) - 16usize];
    [
        "Offset of field: CUcheckpointRestoreArgs::reserved",
    ][::core::mem::offset_of!(CUcheckpointRestoreArgs, reserved) - 24usize];
};
impl Default for CUcheckpointRestoreArgs {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, Hash, PartialEq, Eq)]
#[non_exhaustive]
pub struct CUcheckpointUnlockArgs {
    pub reserved: [cuuint64_t; 8usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    [
        "Size of CUcheckpointUnlockArgs",
    ][::core::mem::size_of::<CUcheckpointUnlockArgs>() - 64usize];
    [
        "Alignment of CUcheckpointUnlockArgs",
    ][::core::mem::align_of::<CUcheckpointUnlockArgs>() - 8usize];
    [
        "Offset of field: CUcheckpointUnlockArgs::reserved",
    ][::core::mem::offset_of!(CUcheckpointUnlockArgs, reserved) - 0usize];
};
#[repr(C)]
#[derive(Debug)]
pub struct CUgraphNodeParams_st {
    _unused: [u8; 0],
}
pub type CUgraphNodeParams = CUgraphNodeParams_st;
pub type CUhostFn = ::core::option::Option<
    unsafe extern "C" fn(user_data: *mut ::core::ffi::c_void),
>;
pub type CUlogsCallback = ::core::option::Option<
    unsafe extern "C" fn(
        user_data: *mut ::core::ffi::c_void,
        level: CUlogLevel,
        message: *mut ::core::ffi::c_char,
        length: usize,
    ),
>;
pub type CUasyncCallback = ::core::option::Option<
    unsafe extern "C" fn(
        info: *mut CUasyncNotificationInfo,
        user_data: *mut ::core::ffi::c_void,
        callback: CUasyncCallbackHandle,
    ),
>;
pub type CUcoredumpStatusCallback = ::core::option::Option<
    unsafe extern "C" fn(
        user_data: *mut ::core::ffi::c_void,
        pid: ::core::ffi::c_int,
        device: CUdevice,
    ),
>;
pub type CUstreamCallback = ::core::option::Option<
    unsafe extern "C" fn(
        stream: CUstream,
        status: CUresult,
        user_data: *mut ::core::ffi::c_void,
    ),
>;
pub type CUgraphRecaptureCallback = ::core::option::Option<
    unsafe extern "C" fn(
        user_data: *mut ::core::ffi::c_void,
        node: CUgraphNode,
        original: *const CUgraphNodeParams,
        recaptured: *const CUgraphNodeParams,
        status: CUgraphRecaptureStatus,
    ) -> CUresult,
>;
#[repr(C)]
#[derive(Debug, Copy, Clone, Hash)]
pub struct CUDA_HOST_NODE_PARAMS {
    pub fn_: CUhostFn,
    pub userData: *mut ::core::ffi::c_void,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    [
        "Size of CUDA_HOST_NODE_PARAMS",
    ][::core::mem::size_of::<CUDA_HOST_NODE_PARAMS>() - 16usize];
    [
        "Alignment of CUDA_HOST_NODE_PARAMS",
    ][::core::mem::align_of::<CUDA_HOST_NODE_PARAMS>() - 8usize];
    [
        "Offset of field: CUDA_HOST_NODE_PARAMS::fn_",
    ][::core::mem::offset_of!(CUDA_HOST_NODE_PARAMS, fn_) - 0usize];
    [
        "Offset of field: CUDA_HOST_NODE_PARAMS::userData",
    ][::core::mem::offset_of!(CUDA_HOST_NODE_PARAMS, userData) - 8usize];
};
impl Default for CUDA_HOST_NODE_PARAMS {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
pub type PFN_cuInit_v2000 = ::core::option::Option<
    unsafe extern "C" fn(flags: ::core::ffi::c_uint) -> CUresult,
>;
pub type PFN_cuDriverGetVersion_v2020 = ::core::option::Option<
    unsafe extern "C" fn(version: *mut ::core::ffi::c_int) -> CUresult,
>;
pub type PFN_cuGetProcAddress_v11030 = ::core::option::Option<
    unsafe extern "C" fn(
        symbol: *const ::core::ffi::c_char,
        function: *mut *mut ::core::ffi::c_void,
        version: ::core::ffi::c_int,
        flags: cuuint64_t,
    ) -> CUresult,
>;
pub type PFN_cuGetProcAddress_v12000 = ::core::option::Option<
    unsafe extern "C" fn(
        symbol: *const ::core::ffi::c_char,
        function: *mut *mut ::core::ffi::c_void,
        version: ::core::ffi::c_int,
        flags: cuuint64_t,
        status: *mut CUdriverProcAddressQueryResult,
    ) -> CUresult,
>;
pub type PFN_cuGetErrorName_v6000 = ::core::option::Option<
    unsafe extern "C" fn(
        error: CUresult,
        text: *mut *const ::core::ffi::c_char,
    ) -> CUresult,
>;
pub type PFN_cuGetErrorString_v6000 = ::core::option::Option<
    unsafe extern "C" fn(
        error: CUresult,
        text: *mut *const ::core::ffi::c_char,
    ) -> CUresult,
>;
pub type PFN_cuLogsCurrent_v12090 = ::core::option::Option<
    unsafe extern "C" fn(
        iterator: *mut CUlogIterator,
        flags: ::core::ffi::c_uint,
    ) -> CUresult,
>;
pub type PFN_cuLogsDumpToFile_v12090 = ::core::option::Option<
    unsafe extern "C" fn(
        iterator: *mut CUlogIterator,
        path: *const ::core::ffi::c_char,
        flags: ::core::ffi::c_uint,
    ) -> CUresult,
>;
pub type PFN_cuLogsDumpToMemory_v12090 = ::core::option::Option<
    unsafe extern "C" fn(
        iterator: *mut CUlogIterator,
        buffer: *mut ::core::ffi::c_char,
        size: *mut usize,
        flags: ::core::ffi::c_uint,
    ) -> CUresult,
>;
pub type PFN_cuLogsRegisterCallback_v12090 = ::core::option::Option<
    unsafe extern "C" fn(
        callback: CUlogsCallback,
        user_data: *mut ::core::ffi::c_void,
        handle: *mut CUlogsCallbackHandle,
    ) -> CUresult,
>;
pub type PFN_cuLogsUnregisterCallback_v12090 = ::core::option::Option<
    unsafe extern "C" fn(handle: CUlogsCallbackHandle) -> CUresult,
>;
pub type PFN_cuDeviceGet_v2000 = ::core::option::Option<
    unsafe extern "C" fn(device: *mut CUdevice, ordinal: ::core::ffi::c_int) -> CUresult,
>;
pub type PFN_cuDeviceGetCount_v2000 = ::core::option::Option<
    unsafe extern "C" fn(count: *mut ::core::ffi::c_int) -> CUresult,
>;
pub type PFN_cuDeviceGetName_v2000 = ::core::option::Option<
    unsafe extern "C" fn(
        name: *mut ::core::ffi::c_char,
        length: ::core::ffi::c_int,
        device: CUdevice,
    ) -> CUresult,
>;
pub type PFN_cuDeviceGetUuid_v9020 = ::core::option::Option<
    unsafe extern "C" fn(uuid: *mut CUuuid, device: CUdevice) -> CUresult,
>;
pub type PFN_cuDeviceGetUuid_v11040 = ::core::option::Option<
    unsafe extern "C" fn(uuid: *mut CUuuid, device: CUdevice) -> CUresult,
>;
pub type PFN_cuDeviceGetLuid_v10000 = ::core::option::Option<
    unsafe extern "C" fn(
        luid: *mut ::core::ffi::c_char,
        node_mask: *mut ::core::ffi::c_uint,
        device: CUdevice,
    ) -> CUresult,
>;
pub type PFN_cuDeviceTotalMem_v3020 = ::core::option::Option<
    unsafe extern "C" fn(bytes: *mut usize, device: CUdevice) -> CUresult,
>;
pub type PFN_cuDeviceGetAttribute_v2000 = ::core::option::Option<
    unsafe extern "C" fn(
        value: *mut ::core::ffi::c_int,
        attribute: CUdevice_attribute,
        device: CUdevice,
    ) -> CUresult,
>;
pub type PFN_cuDeviceGetHostAtomicCapabilities_v13000 = ::core::option::Option<
    unsafe extern "C" fn(
        capabilities: *mut ::core::ffi::c_uint,
        operations: *const CUatomicOperation,
        count: ::core::ffi::c_uint,
        device: CUdevice,
    ) -> CUresult,
>;
pub type PFN_cuDeviceGetP2PAtomicCapabilities_v13000 = ::core::option::Option<
    unsafe extern "C" fn(
        capabilities: *mut ::core::ffi::c_uint,
        operations: *const CUatomicOperation,
        count: ::core::ffi::c_uint,
        source: CUdevice,
        destination: CUdevice,
    ) -> CUresult,
>;
pub type PFN_cuDeviceRegisterAsyncNotification_v12040 = ::core::option::Option<
    unsafe extern "C" fn(
        device: CUdevice,
        callback: CUasyncCallback,
        user_data: *mut ::core::ffi::c_void,
        handle: *mut CUasyncCallbackHandle,
    ) -> CUresult,
>;
pub type PFN_cuDeviceUnregisterAsyncNotification_v12040 = ::core::option::Option<
    unsafe extern "C" fn(device: CUdevice, handle: CUasyncCallbackHandle) -> CUresult,
>;
pub type PFN_cuDevicePrimaryCtxRetain_v7000 = ::core::option::Option<
    unsafe extern "C" fn(context: *mut CUcontext, device: CUdevice) -> CUresult,
>;
pub type PFN_cuDevicePrimaryCtxRelease_v11000 = ::core::option::Option<
    unsafe extern "C" fn(device: CUdevice) -> CUresult,
>;
pub type PFN_cuDevicePrimaryCtxGetState_v7000 = ::core::option::Option<
    unsafe extern "C" fn(
        device: CUdevice,
        flags: *mut ::core::ffi::c_uint,
        active: *mut ::core::ffi::c_int,
    ) -> CUresult,
>;
pub type PFN_cuCtxCreate_v3020 = ::core::option::Option<
    unsafe extern "C" fn(
        context: *mut CUcontext,
        flags: ::core::ffi::c_uint,
        device: CUdevice,
    ) -> CUresult,
>;
pub type PFN_cuCtxCreate_v12050 = ::core::option::Option<
    unsafe extern "C" fn(
        context: *mut CUcontext,
        params: *mut CUctxCreateParams,
        flags: ::core::ffi::c_uint,
        device: CUdevice,
    ) -> CUresult,
>;
pub type PFN_cuCtxDestroy_v4000 = ::core::option::Option<
    unsafe extern "C" fn(context: CUcontext) -> CUresult,
>;
pub type PFN_cuCtxGetCurrent_v4000 = ::core::option::Option<
    unsafe extern "C" fn(context: *mut CUcontext) -> CUresult,
>;
pub type PFN_cuCtxSetCurrent_v4000 = ::core::option::Option<
    unsafe extern "C" fn(context: CUcontext) -> CUresult,
>;
pub type PFN_cuCtxPushCurrent_v4000 = ::core::option::Option<
    unsafe extern "C" fn(context: CUcontext) -> CUresult,
>;
pub type PFN_cuCtxPopCurrent_v4000 = ::core::option::Option<
    unsafe extern "C" fn(context: *mut CUcontext) -> CUresult,
>;
pub type PFN_cuCtxGetDevice_v2000 = ::core::option::Option<
    unsafe extern "C" fn(device: *mut CUdevice) -> CUresult,
>;
pub type PFN_cuCtxGetDevice_v13000 = ::core::option::Option<
    unsafe extern "C" fn(device: *mut CUdevice, context: CUcontext) -> CUresult,
>;
pub type PFN_cuCtxSynchronize_v2000 = ::core::option::Option<
    unsafe extern "C" fn() -> CUresult,
>;
pub type PFN_cuCtxSynchronize_v13000 = ::core::option::Option<
    unsafe extern "C" fn(context: CUcontext) -> CUresult,
>;
pub type PFN_cuCtxGetStreamPriorityRange_v5050 = ::core::option::Option<
    unsafe extern "C" fn(
        least: *mut ::core::ffi::c_int,
        greatest: *mut ::core::ffi::c_int,
    ) -> CUresult,
>;
pub type PFN_cuCtxGetId_v12000 = ::core::option::Option<
    unsafe extern "C" fn(
        context: CUcontext,
        id: *mut ::core::ffi::c_ulonglong,
    ) -> CUresult,
>;
pub type PFN_cuCtxGetFlags_v7000 = ::core::option::Option<
    unsafe extern "C" fn(flags: *mut ::core::ffi::c_uint) -> CUresult,
>;
pub type PFN_cuCtxFromGreenCtx_v12040 = ::core::option::Option<
    unsafe extern "C" fn(context: *mut CUcontext, green: CUgreenCtx) -> CUresult,
>;
pub type PFN_cuGreenCtxCreate_v12040 = ::core::option::Option<
    unsafe extern "C" fn(
        green: *mut CUgreenCtx,
        description: CUdevResourceDesc,
        device: CUdevice,
        flags: ::core::ffi::c_uint,
    ) -> CUresult,
>;
pub type PFN_cuGreenCtxDestroy_v12040 = ::core::option::Option<
    unsafe extern "C" fn(green: CUgreenCtx) -> CUresult,
>;
pub type PFN_cuGreenCtxGetId_v12090 = ::core::option::Option<
    unsafe extern "C" fn(
        green: CUgreenCtx,
        id: *mut ::core::ffi::c_ulonglong,
    ) -> CUresult,
>;
pub type PFN_cuDeviceGetDevResource_v12040 = ::core::option::Option<
    unsafe extern "C" fn(
        device: CUdevice,
        resource: *mut CUdevResource,
        type_: CUdevResourceType,
    ) -> CUresult,
>;
pub type PFN_cuCtxGetDevResource_v12040 = ::core::option::Option<
    unsafe extern "C" fn(
        context: CUcontext,
        resource: *mut CUdevResource,
        type_: CUdevResourceType,
    ) -> CUresult,
>;
pub type PFN_cuGreenCtxGetDevResource_v12040 = ::core::option::Option<
    unsafe extern "C" fn(
        green: CUgreenCtx,
        resource: *mut CUdevResource,
        type_: CUdevResourceType,
    ) -> CUresult,
>;
pub type PFN_cuDevSmResourceSplitByCount_v12040 = ::core::option::Option<
    unsafe extern "C" fn(
        result: *mut CUdevResource,
        groups: *mut ::core::ffi::c_uint,
        input: *const CUdevResource,
        remaining: *mut CUdevResource,
        flags: ::core::ffi::c_uint,
        min_count: ::core::ffi::c_uint,
    ) -> CUresult,
>;
pub type PFN_cuDevSmResourceSplit_v13010 = ::core::option::Option<
    unsafe extern "C" fn(
        result: *mut CUdevResource,
        groups: ::core::ffi::c_uint,
        input: *const CUdevResource,
        remaining: *mut CUdevResource,
        flags: ::core::ffi::c_uint,
        params: *mut CU_DEV_SM_RESOURCE_GROUP_PARAMS,
    ) -> CUresult,
>;
pub type PFN_cuDevResourceGenerateDesc_v12040 = ::core::option::Option<
    unsafe extern "C" fn(
        description: *mut CUdevResourceDesc,
        resources: *mut CUdevResource,
        count: ::core::ffi::c_uint,
    ) -> CUresult,
>;
pub type PFN_cuCtxRecordEvent_v12050 = ::core::option::Option<
    unsafe extern "C" fn(context: CUcontext, event: CUevent) -> CUresult,
>;
pub type PFN_cuCtxWaitEvent_v12050 = ::core::option::Option<
    unsafe extern "C" fn(context: CUcontext, event: CUevent) -> CUresult,
>;
pub type PFN_cuGreenCtxRecordEvent_v12040 = ::core::option::Option<
    unsafe extern "C" fn(green: CUgreenCtx, event: CUevent) -> CUresult,
>;
pub type PFN_cuGreenCtxWaitEvent_v12040 = ::core::option::Option<
    unsafe extern "C" fn(green: CUgreenCtx, event: CUevent) -> CUresult,
>;
pub type PFN_cuGreenCtxStreamCreate_v12050 = ::core::option::Option<
    unsafe extern "C" fn(
        stream: *mut CUstream,
        green: CUgreenCtx,
        flags: ::core::ffi::c_uint,
        priority: ::core::ffi::c_int,
    ) -> CUresult,
>;
pub type PFN_cuEventCreate_v2000 = ::core::option::Option<
    unsafe extern "C" fn(event: *mut CUevent, flags: ::core::ffi::c_uint) -> CUresult,
>;
pub type PFN_cuEventRecord_v2000 = ::core::option::Option<
    unsafe extern "C" fn(event: CUevent, stream: CUstream) -> CUresult,
>;
pub type PFN_cuEventRecord_v7000_ptsz = ::core::option::Option<
    unsafe extern "C" fn(event: CUevent, stream: CUstream) -> CUresult,
>;
pub type PFN_cuEventRecordWithFlags_v11010 = ::core::option::Option<
    unsafe extern "C" fn(
        event: CUevent,
        stream: CUstream,
        flags: ::core::ffi::c_uint,
    ) -> CUresult,
>;
pub type PFN_cuEventRecordWithFlags_v11010_ptsz = ::core::option::Option<
    unsafe extern "C" fn(
        event: CUevent,
        stream: CUstream,
        flags: ::core::ffi::c_uint,
    ) -> CUresult,
>;
pub type PFN_cuEventQuery_v2000 = ::core::option::Option<
    unsafe extern "C" fn(event: CUevent) -> CUresult,
>;
pub type PFN_cuEventSynchronize_v2000 = ::core::option::Option<
    unsafe extern "C" fn(event: CUevent) -> CUresult,
>;
pub type PFN_cuEventDestroy_v4000 = ::core::option::Option<
    unsafe extern "C" fn(event: CUevent) -> CUresult,
>;
pub type PFN_cuEventElapsedTime_v2000 = ::core::option::Option<
    unsafe extern "C" fn(
        milliseconds: *mut f32,
        start: CUevent,
        end: CUevent,
    ) -> CUresult,
>;
pub type PFN_cuEventElapsedTime_v12080 = ::core::option::Option<
    unsafe extern "C" fn(
        milliseconds: *mut f32,
        start: CUevent,
        end: CUevent,
    ) -> CUresult,
>;
pub type PFN_cuIpcGetEventHandle_v4010 = ::core::option::Option<
    unsafe extern "C" fn(handle: *mut CUipcEventHandle, event: CUevent) -> CUresult,
>;
pub type PFN_cuIpcOpenEventHandle_v4010 = ::core::option::Option<
    unsafe extern "C" fn(event: *mut CUevent, handle: CUipcEventHandle) -> CUresult,
>;
pub type PFN_cuStreamCreate_v2000 = ::core::option::Option<
    unsafe extern "C" fn(stream: *mut CUstream, flags: ::core::ffi::c_uint) -> CUresult,
>;
pub type PFN_cuStreamCreateWithPriority_v5050 = ::core::option::Option<
    unsafe extern "C" fn(
        stream: *mut CUstream,
        flags: ::core::ffi::c_uint,
        priority: ::core::ffi::c_int,
    ) -> CUresult,
>;
pub type PFN_cuStreamDestroy_v4000 = ::core::option::Option<
    unsafe extern "C" fn(stream: CUstream) -> CUresult,
>;
pub type PFN_cuStreamQuery_v2000 = ::core::option::Option<
    unsafe extern "C" fn(stream: CUstream) -> CUresult,
>;
pub type PFN_cuStreamQuery_v7000_ptsz = ::core::option::Option<
    unsafe extern "C" fn(stream: CUstream) -> CUresult,
>;
pub type PFN_cuStreamSynchronize_v2000 = ::core::option::Option<
    unsafe extern "C" fn(stream: CUstream) -> CUresult,
>;
pub type PFN_cuStreamSynchronize_v7000_ptsz = ::core::option::Option<
    unsafe extern "C" fn(stream: CUstream) -> CUresult,
>;
pub type PFN_cuStreamWaitEvent_v3020 = ::core::option::Option<
    unsafe extern "C" fn(
        stream: CUstream,
        event: CUevent,
        flags: ::core::ffi::c_uint,
    ) -> CUresult,
>;
pub type PFN_cuStreamWaitEvent_v7000_ptsz = ::core::option::Option<
    unsafe extern "C" fn(
        stream: CUstream,
        event: CUevent,
        flags: ::core::ffi::c_uint,
    ) -> CUresult,
>;
pub type PFN_cuStreamGetPriority_v5050 = ::core::option::Option<
    unsafe extern "C" fn(stream: CUstream, priority: *mut ::core::ffi::c_int) -> CUresult,
>;
pub type PFN_cuStreamGetPriority_v7000_ptsz = ::core::option::Option<
    unsafe extern "C" fn(stream: CUstream, priority: *mut ::core::ffi::c_int) -> CUresult,
>;
pub type PFN_cuStreamGetFlags_v5050 = ::core::option::Option<
    unsafe extern "C" fn(stream: CUstream, flags: *mut ::core::ffi::c_uint) -> CUresult,
>;
pub type PFN_cuStreamGetFlags_v7000_ptsz = ::core::option::Option<
    unsafe extern "C" fn(stream: CUstream, flags: *mut ::core::ffi::c_uint) -> CUresult,
>;
pub type PFN_cuStreamGetId_v12000 = ::core::option::Option<
    unsafe extern "C" fn(stream: CUstream, id: *mut ::core::ffi::c_ulonglong) -> CUresult,
>;
pub type PFN_cuStreamGetId_v12000_ptsz = ::core::option::Option<
    unsafe extern "C" fn(stream: CUstream, id: *mut ::core::ffi::c_ulonglong) -> CUresult,
>;
pub type PFN_cuStreamGetCtx_v9020 = ::core::option::Option<
    unsafe extern "C" fn(stream: CUstream, context: *mut CUcontext) -> CUresult,
>;
pub type PFN_cuStreamGetCtx_v9020_ptsz = ::core::option::Option<
    unsafe extern "C" fn(stream: CUstream, context: *mut CUcontext) -> CUresult,
>;
pub type PFN_cuStreamGetCtx_v12050 = ::core::option::Option<
    unsafe extern "C" fn(
        stream: CUstream,
        context: *mut CUcontext,
        green: *mut CUgreenCtx,
    ) -> CUresult,
>;
pub type PFN_cuStreamGetCtx_v12050_ptsz = ::core::option::Option<
    unsafe extern "C" fn(
        stream: CUstream,
        context: *mut CUcontext,
        green: *mut CUgreenCtx,
    ) -> CUresult,
>;
pub type PFN_cuStreamGetGreenCtx_v12040 = ::core::option::Option<
    unsafe extern "C" fn(stream: CUstream, green: *mut CUgreenCtx) -> CUresult,
>;
pub type PFN_cuStreamGetDevice_v12080 = ::core::option::Option<
    unsafe extern "C" fn(stream: CUstream, device: *mut CUdevice) -> CUresult,
>;
pub type PFN_cuStreamGetDevice_v12080_ptsz = ::core::option::Option<
    unsafe extern "C" fn(stream: CUstream, device: *mut CUdevice) -> CUresult,
>;
pub type PFN_cuStreamGetDevResource_v13010 = ::core::option::Option<
    unsafe extern "C" fn(
        stream: CUstream,
        resource: *mut CUdevResource,
        type_: CUdevResourceType,
    ) -> CUresult,
>;
pub type PFN_cuStreamGetDevResource_v13010_ptsz = ::core::option::Option<
    unsafe extern "C" fn(
        stream: CUstream,
        resource: *mut CUdevResource,
        type_: CUdevResourceType,
    ) -> CUresult,
>;
pub type PFN_cuStreamGetAttribute_v11000 = ::core::option::Option<
    unsafe extern "C" fn(
        stream: CUstream,
        attribute: CUstreamAttrID,
        value: *mut CUstreamAttrValue,
    ) -> CUresult,
>;
pub type PFN_cuStreamGetAttribute_v11000_ptsz = ::core::option::Option<
    unsafe extern "C" fn(
        stream: CUstream,
        attribute: CUstreamAttrID,
        value: *mut CUstreamAttrValue,
    ) -> CUresult,
>;
pub type PFN_cuStreamSetAttribute_v11000 = ::core::option::Option<
    unsafe extern "C" fn(
        stream: CUstream,
        attribute: CUstreamAttrID,
        value: *const CUstreamAttrValue,
    ) -> CUresult,
>;
pub type PFN_cuStreamSetAttribute_v11000_ptsz = ::core::option::Option<
    unsafe extern "C" fn(
        stream: CUstream,
        attribute: CUstreamAttrID,
        value: *const CUstreamAttrValue,
    ) -> CUresult,
>;
pub type PFN_cuStreamCopyAttributes_v11000 = ::core::option::Option<
    unsafe extern "C" fn(destination: CUstream, source: CUstream) -> CUresult,
>;
pub type PFN_cuStreamCopyAttributes_v11000_ptsz = ::core::option::Option<
    unsafe extern "C" fn(destination: CUstream, source: CUstream) -> CUresult,
>;
pub type PFN_cuStreamAddCallback_v5000 = ::core::option::Option<
    unsafe extern "C" fn(
        stream: CUstream,
        callback: CUstreamCallback,
        user_data: *mut ::core::ffi::c_void,
        flags: ::core::ffi::c_uint,
    ) -> CUresult,
>;
pub type PFN_cuStreamAddCallback_v7000_ptsz = ::core::option::Option<
    unsafe extern "C" fn(
        stream: CUstream,
        callback: CUstreamCallback,
        user_data: *mut ::core::ffi::c_void,
        flags: ::core::ffi::c_uint,
    ) -> CUresult,
>;
pub type PFN_cuLaunchHostFunc_v10000 = ::core::option::Option<
    unsafe extern "C" fn(
        stream: CUstream,
        host_fn: CUhostFn,
        user_data: *mut ::core::ffi::c_void,
    ) -> CUresult,
>;
pub type PFN_cuLaunchHostFunc_v10000_ptsz = ::core::option::Option<
    unsafe extern "C" fn(
        stream: CUstream,
        host_fn: CUhostFn,
        user_data: *mut ::core::ffi::c_void,
    ) -> CUresult,
>;
pub type PFN_cuLaunchHostFunc_v13010 = ::core::option::Option<
    unsafe extern "C" fn(
        stream: CUstream,
        host_fn: CUhostFn,
        user_data: *mut ::core::ffi::c_void,
        sync_mode: ::core::ffi::c_uint,
    ) -> CUresult,
>;
pub type PFN_cuLaunchHostFunc_v13010_ptsz = ::core::option::Option<
    unsafe extern "C" fn(
        stream: CUstream,
        host_fn: CUhostFn,
        user_data: *mut ::core::ffi::c_void,
        sync_mode: ::core::ffi::c_uint,
    ) -> CUresult,
>;
pub type PFN_cuStreamAttachMemAsync_v6000 = ::core::option::Option<
    unsafe extern "C" fn(
        stream: CUstream,
        address: CUdeviceptr,
        length: usize,
        flags: ::core::ffi::c_uint,
    ) -> CUresult,
>;
pub type PFN_cuStreamAttachMemAsync_v7000_ptsz = ::core::option::Option<
    unsafe extern "C" fn(
        stream: CUstream,
        address: CUdeviceptr,
        length: usize,
        flags: ::core::ffi::c_uint,
    ) -> CUresult,
>;
pub type PFN_cuStreamBeginCapture_v10010 = ::core::option::Option<
    unsafe extern "C" fn(stream: CUstream, mode: CUstreamCaptureMode) -> CUresult,
>;
pub type PFN_cuStreamBeginCapture_v10010_ptsz = ::core::option::Option<
    unsafe extern "C" fn(stream: CUstream, mode: CUstreamCaptureMode) -> CUresult,
>;
pub type PFN_cuStreamBeginCaptureToGraph_v12030 = ::core::option::Option<
    unsafe extern "C" fn(
        stream: CUstream,
        graph: CUgraph,
        dependencies: *const CUgraphNode,
        edges: *const CUgraphEdgeData,
        count: usize,
        mode: CUstreamCaptureMode,
    ) -> CUresult,
>;
pub type PFN_cuStreamBeginCaptureToGraph_v12030_ptsz = ::core::option::Option<
    unsafe extern "C" fn(
        stream: CUstream,
        graph: CUgraph,
        dependencies: *const CUgraphNode,
        edges: *const CUgraphEdgeData,
        count: usize,
        mode: CUstreamCaptureMode,
    ) -> CUresult,
>;
pub type PFN_cuStreamBeginRecaptureToGraph_v13030 = ::core::option::Option<
    unsafe extern "C" fn(
        stream: CUstream,
        mode: CUstreamCaptureMode,
        graph: CUgraph,
        callback: CUgraphRecaptureCallback,
        user_data: *mut ::core::ffi::c_void,
    ) -> CUresult,
>;
pub type PFN_cuStreamBeginRecaptureToGraph_v13030_ptsz = ::core::option::Option<
    unsafe extern "C" fn(
        stream: CUstream,
        mode: CUstreamCaptureMode,
        graph: CUgraph,
        callback: CUgraphRecaptureCallback,
        user_data: *mut ::core::ffi::c_void,
    ) -> CUresult,
>;
pub type PFN_cuStreamBeginCaptureToCig_v13010 = ::core::option::Option<
    unsafe extern "C" fn(
        stream: CUstream,
        params: *mut CUstreamCigCaptureParams,
    ) -> CUresult,
>;
pub type PFN_cuStreamBeginCaptureToCig_v13010_ptsz = ::core::option::Option<
    unsafe extern "C" fn(
        stream: CUstream,
        params: *mut CUstreamCigCaptureParams,
    ) -> CUresult,
>;
pub type PFN_cuStreamEndCapture_v10000 = ::core::option::Option<
    unsafe extern "C" fn(stream: CUstream, graph: *mut CUgraph) -> CUresult,
>;
pub type PFN_cuStreamEndCapture_v10000_ptsz = ::core::option::Option<
    unsafe extern "C" fn(stream: CUstream, graph: *mut CUgraph) -> CUresult,
>;
pub type PFN_cuStreamEndCaptureToCig_v13010 = ::core::option::Option<
    unsafe extern "C" fn(stream: CUstream) -> CUresult,
>;
pub type PFN_cuStreamEndCaptureToCig_v13010_ptsz = ::core::option::Option<
    unsafe extern "C" fn(stream: CUstream) -> CUresult,
>;
pub type PFN_cuStreamIsCapturing_v10000 = ::core::option::Option<
    unsafe extern "C" fn(
        stream: CUstream,
        status: *mut CUstreamCaptureStatus,
    ) -> CUresult,
>;
pub type PFN_cuStreamIsCapturing_v10000_ptsz = ::core::option::Option<
    unsafe extern "C" fn(
        stream: CUstream,
        status: *mut CUstreamCaptureStatus,
    ) -> CUresult,
>;
pub type PFN_cuStreamGetCaptureInfo_v10010 = ::core::option::Option<
    unsafe extern "C" fn(
        stream: CUstream,
        status: *mut CUstreamCaptureStatus,
        id: *mut cuuint64_t,
    ) -> CUresult,
>;
pub type PFN_cuStreamGetCaptureInfo_v10010_ptsz = ::core::option::Option<
    unsafe extern "C" fn(
        stream: CUstream,
        status: *mut CUstreamCaptureStatus,
        id: *mut cuuint64_t,
    ) -> CUresult,
>;
pub type PFN_cuStreamGetCaptureInfo_v11030 = ::core::option::Option<
    unsafe extern "C" fn(
        stream: CUstream,
        status: *mut CUstreamCaptureStatus,
        id: *mut cuuint64_t,
        graph: *mut CUgraph,
        dependencies: *mut *const CUgraphNode,
        count: *mut usize,
    ) -> CUresult,
>;
pub type PFN_cuStreamGetCaptureInfo_v11030_ptsz = ::core::option::Option<
    unsafe extern "C" fn(
        stream: CUstream,
        status: *mut CUstreamCaptureStatus,
        id: *mut cuuint64_t,
        graph: *mut CUgraph,
        dependencies: *mut *const CUgraphNode,
        count: *mut usize,
    ) -> CUresult,
>;
pub type PFN_cuStreamGetCaptureInfo_v12030 = ::core::option::Option<
    unsafe extern "C" fn(
        stream: CUstream,
        status: *mut CUstreamCaptureStatus,
        id: *mut cuuint64_t,
        graph: *mut CUgraph,
        dependencies: *mut *const CUgraphNode,
        edges: *mut *const CUgraphEdgeData,
        count: *mut usize,
    ) -> CUresult,
>;
pub type PFN_cuStreamGetCaptureInfo_v12030_ptsz = ::core::option::Option<
    unsafe extern "C" fn(
        stream: CUstream,
        status: *mut CUstreamCaptureStatus,
        id: *mut cuuint64_t,
        graph: *mut CUgraph,
        dependencies: *mut *const CUgraphNode,
        edges: *mut *const CUgraphEdgeData,
        count: *mut usize,
    ) -> CUresult,
>;
pub type PFN_cuStreamUpdateCaptureDependencies_v11030 = ::core::option::Option<
    unsafe extern "C" fn(
        stream: CUstream,
        dependencies: *mut CUgraphNode,
        count: usize,
        flags: ::core::ffi::c_uint,
    ) -> CUresult,
>;
pub type PFN_cuStreamUpdateCaptureDependencies_v11030_ptsz = ::core::option::Option<
    unsafe extern "C" fn(
        stream: CUstream,
        dependencies: *mut CUgraphNode,
        count: usize,
        flags: ::core::ffi::c_uint,
    ) -> CUresult,
>;
pub type PFN_cuStreamUpdateCaptureDependencies_v12030 = ::core::option::Option<
    unsafe extern "C" fn(
        stream: CUstream,
        dependencies: *mut CUgraphNode,
        edges: *const CUgraphEdgeData,
        count: usize,
        flags: ::core::ffi::c_uint,
    ) -> CUresult,
>;
pub type PFN_cuStreamUpdateCaptureDependencies_v12030_ptsz = ::core::option::Option<
    unsafe extern "C" fn(
        stream: CUstream,
        dependencies: *mut CUgraphNode,
        edges: *const CUgraphEdgeData,
        count: usize,
        flags: ::core::ffi::c_uint,
    ) -> CUresult,
>;
pub type PFN_cuThreadExchangeStreamCaptureMode_v10010 = ::core::option::Option<
    unsafe extern "C" fn(mode: *mut CUstreamCaptureMode) -> CUresult,
>;
pub type PFN_cuStreamWaitValue32_v8000 = ::core::option::Option<
    unsafe extern "C" fn(
        stream: CUstream,
        address: CUdeviceptr,
        value: cuuint32_t,
        flags: ::core::ffi::c_uint,
    ) -> CUresult,
>;
pub type PFN_cuStreamWaitValue32_v8000_ptsz = ::core::option::Option<
    unsafe extern "C" fn(
        stream: CUstream,
        address: CUdeviceptr,
        value: cuuint32_t,
        flags: ::core::ffi::c_uint,
    ) -> CUresult,
>;
pub type PFN_cuStreamWaitValue32_v11070 = ::core::option::Option<
    unsafe extern "C" fn(
        stream: CUstream,
        address: CUdeviceptr,
        value: cuuint32_t,
        flags: ::core::ffi::c_uint,
    ) -> CUresult,
>;
pub type PFN_cuStreamWaitValue32_v11070_ptsz = ::core::option::Option<
    unsafe extern "C" fn(
        stream: CUstream,
        address: CUdeviceptr,
        value: cuuint32_t,
        flags: ::core::ffi::c_uint,
    ) -> CUresult,
>;
pub type PFN_cuStreamWaitValue64_v9000 = ::core::option::Option<
    unsafe extern "C" fn(
        stream: CUstream,
        address: CUdeviceptr,
        value: cuuint64_t,
        flags: ::core::ffi::c_uint,
    ) -> CUresult,
>;
pub type PFN_cuStreamWaitValue64_v9000_ptsz = ::core::option::Option<
    unsafe extern "C" fn(
        stream: CUstream,
        address: CUdeviceptr,
        value: cuuint64_t,
        flags: ::core::ffi::c_uint,
    ) -> CUresult,
>;
pub type PFN_cuStreamWaitValue64_v11070 = ::core::option::Option<
    unsafe extern "C" fn(
        stream: CUstream,
        address: CUdeviceptr,
        value: cuuint64_t,
        flags: ::core::ffi::c_uint,
    ) -> CUresult,
>;
pub type PFN_cuStreamWaitValue64_v11070_ptsz = ::core::option::Option<
    unsafe extern "C" fn(
        stream: CUstream,
        address: CUdeviceptr,
        value: cuuint64_t,
        flags: ::core::ffi::c_uint,
    ) -> CUresult,
>;
pub type PFN_cuStreamWriteValue32_v8000 = ::core::option::Option<
    unsafe extern "C" fn(
        stream: CUstream,
        address: CUdeviceptr,
        value: cuuint32_t,
        flags: ::core::ffi::c_uint,
    ) -> CUresult,
>;
pub type PFN_cuStreamWriteValue32_v8000_ptsz = ::core::option::Option<
    unsafe extern "C" fn(
        stream: CUstream,
        address: CUdeviceptr,
        value: cuuint32_t,
        flags: ::core::ffi::c_uint,
    ) -> CUresult,
>;
pub type PFN_cuStreamWriteValue32_v11070 = ::core::option::Option<
    unsafe extern "C" fn(
        stream: CUstream,
        address: CUdeviceptr,
        value: cuuint32_t,
        flags: ::core::ffi::c_uint,
    ) -> CUresult,
>;
pub type PFN_cuStreamWriteValue32_v11070_ptsz = ::core::option::Option<
    unsafe extern "C" fn(
        stream: CUstream,
        address: CUdeviceptr,
        value: cuuint32_t,
        flags: ::core::ffi::c_uint,
    ) -> CUresult,
>;
pub type PFN_cuStreamWriteValue64_v9000 = ::core::option::Option<
    unsafe extern "C" fn(
        stream: CUstream,
        address: CUdeviceptr,
        value: cuuint64_t,
        flags: ::core::ffi::c_uint,
    ) -> CUresult,
>;
pub type PFN_cuStreamWriteValue64_v9000_ptsz = ::core::option::Option<
    unsafe extern "C" fn(
        stream: CUstream,
        address: CUdeviceptr,
        value: cuuint64_t,
        flags: ::core::ffi::c_uint,
    ) -> CUresult,
>;
pub type PFN_cuStreamWriteValue64_v11070 = ::core::option::Option<
    unsafe extern "C" fn(
        stream: CUstream,
        address: CUdeviceptr,
        value: cuuint64_t,
        flags: ::core::ffi::c_uint,
    ) -> CUresult,
>;
pub type PFN_cuStreamWriteValue64_v11070_ptsz = ::core::option::Option<
    unsafe extern "C" fn(
        stream: CUstream,
        address: CUdeviceptr,
        value: cuuint64_t,
        flags: ::core::ffi::c_uint,
    ) -> CUresult,
>;
pub type PFN_cuStreamBatchMemOp_v8000 = ::core::option::Option<
    unsafe extern "C" fn(
        stream: CUstream,
        count: ::core::ffi::c_uint,
        operations: *mut CUstreamBatchMemOpParams,
        flags: ::core::ffi::c_uint,
    ) -> CUresult,
>;
pub type PFN_cuStreamBatchMemOp_v8000_ptsz = ::core::option::Option<
    unsafe extern "C" fn(
        stream: CUstream,
        count: ::core::ffi::c_uint,
        operations: *mut CUstreamBatchMemOpParams,
        flags: ::core::ffi::c_uint,
    ) -> CUresult,
>;
pub type PFN_cuStreamBatchMemOp_v11070 = ::core::option::Option<
    unsafe extern "C" fn(
        stream: CUstream,
        count: ::core::ffi::c_uint,
        operations: *mut CUstreamBatchMemOpParams,
        flags: ::core::ffi::c_uint,
    ) -> CUresult,
>;
pub type PFN_cuStreamBatchMemOp_v11070_ptsz = ::core::option::Option<
    unsafe extern "C" fn(
        stream: CUstream,
        count: ::core::ffi::c_uint,
        operations: *mut CUstreamBatchMemOpParams,
        flags: ::core::ffi::c_uint,
    ) -> CUresult,
>;
pub type PFN_cuGraphCreate_v10000 = ::core::option::Option<
    unsafe extern "C" fn(graph: *mut CUgraph, flags: ::core::ffi::c_uint) -> CUresult,
>;
pub type PFN_cuGraphDestroy_v10000 = ::core::option::Option<
    unsafe extern "C" fn(graph: CUgraph) -> CUresult,
>;
pub type PFN_cuGraphGetId_v13010 = ::core::option::Option<
    unsafe extern "C" fn(graph: CUgraph, id: *mut ::core::ffi::c_uint) -> CUresult,
>;
pub type PFN_cuGraphNodeGetLocalId_v13010 = ::core::option::Option<
    unsafe extern "C" fn(node: CUgraphNode, id: *mut ::core::ffi::c_uint) -> CUresult,
>;
pub type PFN_cuGraphNodeGetToolsId_v13010 = ::core::option::Option<
    unsafe extern "C" fn(
        node: CUgraphNode,
        id: *mut ::core::ffi::c_ulonglong,
    ) -> CUresult,
>;
pub type PFN_cuGraphInstantiate_v11000 = ::core::option::Option<
    unsafe extern "C" fn(
        exec: *mut CUgraphExec,
        graph: CUgraph,
        error_node: *mut CUgraphNode,
        log: *mut ::core::ffi::c_char,
        log_size: usize,
    ) -> CUresult,
>;
pub type PFN_cuGraphInstantiateWithFlags_v11040 = ::core::option::Option<
    unsafe extern "C" fn(
        exec: *mut CUgraphExec,
        graph: CUgraph,
        flags: ::core::ffi::c_ulonglong,
    ) -> CUresult,
>;
pub type PFN_cuGraphLaunch_v10000 = ::core::option::Option<
    unsafe extern "C" fn(exec: CUgraphExec, stream: CUstream) -> CUresult,
>;
pub type PFN_cuGraphLaunch_v10000_ptsz = ::core::option::Option<
    unsafe extern "C" fn(exec: CUgraphExec, stream: CUstream) -> CUresult,
>;
pub type PFN_cuGraphExecDestroy_v10000 = ::core::option::Option<
    unsafe extern "C" fn(exec: CUgraphExec) -> CUresult,
>;
pub type PFN_cuGraphExecGetId_v13010 = ::core::option::Option<
    unsafe extern "C" fn(exec: CUgraphExec, id: *mut ::core::ffi::c_uint) -> CUresult,
>;
pub type PFN_cuGraphAddEventRecordNode_v11010 = ::core::option::Option<
    unsafe extern "C" fn(
        node: *mut CUgraphNode,
        graph: CUgraph,
        dependencies: *const CUgraphNode,
        count: usize,
        event: CUevent,
    ) -> CUresult,
>;
pub type PFN_cuGraphAddEventWaitNode_v11010 = ::core::option::Option<
    unsafe extern "C" fn(
        node: *mut CUgraphNode,
        graph: CUgraph,
        dependencies: *const CUgraphNode,
        count: usize,
        event: CUevent,
    ) -> CUresult,
>;
pub type PFN_cuGraphEventRecordNodeGetEvent_v11010 = ::core::option::Option<
    unsafe extern "C" fn(node: CUgraphNode, event: *mut CUevent) -> CUresult,
>;
pub type PFN_cuGraphEventRecordNodeSetEvent_v11010 = ::core::option::Option<
    unsafe extern "C" fn(node: CUgraphNode, event: CUevent) -> CUresult,
>;
pub type PFN_cuGraphEventWaitNodeGetEvent_v11010 = ::core::option::Option<
    unsafe extern "C" fn(node: CUgraphNode, event: *mut CUevent) -> CUresult,
>;
pub type PFN_cuGraphEventWaitNodeSetEvent_v11010 = ::core::option::Option<
    unsafe extern "C" fn(node: CUgraphNode, event: CUevent) -> CUresult,
>;
pub type PFN_cuGraphExecEventRecordNodeSetEvent_v11010 = ::core::option::Option<
    unsafe extern "C" fn(
        exec: CUgraphExec,
        node: CUgraphNode,
        event: CUevent,
    ) -> CUresult,
>;
pub type PFN_cuGraphExecEventWaitNodeSetEvent_v11010 = ::core::option::Option<
    unsafe extern "C" fn(
        exec: CUgraphExec,
        node: CUgraphNode,
        event: CUevent,
    ) -> CUresult,
>;
pub type PFN_cuGraphAddHostNode_v10000 = ::core::option::Option<
    unsafe extern "C" fn(
        node: *mut CUgraphNode,
        graph: CUgraph,
        dependencies: *const CUgraphNode,
        count: usize,
        params: *const CUDA_HOST_NODE_PARAMS,
    ) -> CUresult,
>;
pub type PFN_cuGraphHostNodeGetParams_v10000 = ::core::option::Option<
    unsafe extern "C" fn(
        node: CUgraphNode,
        params: *mut CUDA_HOST_NODE_PARAMS,
    ) -> CUresult,
>;
pub type PFN_cuGraphHostNodeSetParams_v10000 = ::core::option::Option<
    unsafe extern "C" fn(
        node: CUgraphNode,
        params: *const CUDA_HOST_NODE_PARAMS,
    ) -> CUresult,
>;
pub type PFN_cuGraphExecHostNodeSetParams_v10020 = ::core::option::Option<
    unsafe extern "C" fn(
        exec: CUgraphExec,
        node: CUgraphNode,
        params: *const CUDA_HOST_NODE_PARAMS,
    ) -> CUresult,
>;
pub type PFN_cuGraphAddExternalSemaphoresSignalNode_v11020 = ::core::option::Option<
    unsafe extern "C" fn(
        node: *mut CUgraphNode,
        graph: CUgraph,
        dependencies: *const CUgraphNode,
        count: usize,
        params: *const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS,
    ) -> CUresult,
>;
pub type PFN_cuGraphExternalSemaphoresSignalNodeGetParams_v11020 = ::core::option::Option<
    unsafe extern "C" fn(
        node: CUgraphNode,
        params: *mut CUDA_EXT_SEM_SIGNAL_NODE_PARAMS,
    ) -> CUresult,
>;
pub type PFN_cuGraphExternalSemaphoresSignalNodeSetParams_v11020 = ::core::option::Option<
    unsafe extern "C" fn(
        node: CUgraphNode,
        params: *const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS,
    ) -> CUresult,
>;
pub type PFN_cuGraphExecExternalSemaphoresSignalNodeSetParams_v11020 = ::core::option::Option<
    unsafe extern "C" fn(
        exec: CUgraphExec,
        node: CUgraphNode,
        params: *const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS,
    ) -> CUresult,
>;
pub type PFN_cuGraphAddExternalSemaphoresWaitNode_v11020 = ::core::option::Option<
    unsafe extern "C" fn(
        node: *mut CUgraphNode,
        graph: CUgraph,
        dependencies: *const CUgraphNode,
        count: usize,
        params: *const CUDA_EXT_SEM_WAIT_NODE_PARAMS,
    ) -> CUresult,
>;
pub type PFN_cuGraphExternalSemaphoresWaitNodeGetParams_v11020 = ::core::option::Option<
    unsafe extern "C" fn(
        node: CUgraphNode,
        params: *mut CUDA_EXT_SEM_WAIT_NODE_PARAMS,
    ) -> CUresult,
>;
pub type PFN_cuGraphExternalSemaphoresWaitNodeSetParams_v11020 = ::core::option::Option<
    unsafe extern "C" fn(
        node: CUgraphNode,
        params: *const CUDA_EXT_SEM_WAIT_NODE_PARAMS,
    ) -> CUresult,
>;
pub type PFN_cuGraphExecExternalSemaphoresWaitNodeSetParams_v11020 = ::core::option::Option<
    unsafe extern "C" fn(
        exec: CUgraphExec,
        node: CUgraphNode,
        params: *const CUDA_EXT_SEM_WAIT_NODE_PARAMS,
    ) -> CUresult,
>;
pub type PFN_cuGraphAddBatchMemOpNode_v11070 = ::core::option::Option<
    unsafe extern "C" fn(
        node: *mut CUgraphNode,
        graph: CUgraph,
        dependencies: *const CUgraphNode,
        count: usize,
        params: *const CUDA_BATCH_MEM_OP_NODE_PARAMS,
    ) -> CUresult,
>;
pub type PFN_cuGraphBatchMemOpNodeGetParams_v11070 = ::core::option::Option<
    unsafe extern "C" fn(
        node: CUgraphNode,
        params: *mut CUDA_BATCH_MEM_OP_NODE_PARAMS,
    ) -> CUresult,
>;
pub type PFN_cuGraphBatchMemOpNodeSetParams_v11070 = ::core::option::Option<
    unsafe extern "C" fn(
        node: CUgraphNode,
        params: *const CUDA_BATCH_MEM_OP_NODE_PARAMS,
    ) -> CUresult,
>;
pub type PFN_cuGraphExecBatchMemOpNodeSetParams_v11070 = ::core::option::Option<
    unsafe extern "C" fn(
        exec: CUgraphExec,
        node: CUgraphNode,
        params: *const CUDA_BATCH_MEM_OP_NODE_PARAMS,
    ) -> CUresult,
>;
pub type PFN_cuMemGetInfo_v3020 = ::core::option::Option<
    unsafe extern "C" fn(free: *mut usize, total: *mut usize) -> CUresult,
>;
pub type PFN_cuIpcGetMemHandle_v4010 = ::core::option::Option<
    unsafe extern "C" fn(handle: *mut CUipcMemHandle, address: CUdeviceptr) -> CUresult,
>;
pub type PFN_cuIpcOpenMemHandle_v11000 = ::core::option::Option<
    unsafe extern "C" fn(
        address: *mut CUdeviceptr,
        handle: CUipcMemHandle,
        flags: ::core::ffi::c_uint,
    ) -> CUresult,
>;
pub type PFN_cuIpcCloseMemHandle_v4010 = ::core::option::Option<
    unsafe extern "C" fn(address: CUdeviceptr) -> CUresult,
>;
pub type PFN_cuMemAlloc_v3020 = ::core::option::Option<
    unsafe extern "C" fn(address: *mut CUdeviceptr, bytes: usize) -> CUresult,
>;
pub type PFN_cuMemFree_v3020 = ::core::option::Option<
    unsafe extern "C" fn(address: CUdeviceptr) -> CUresult,
>;
pub type PFN_cuMemHostAlloc_v2020 = ::core::option::Option<
    unsafe extern "C" fn(
        memory: *mut *mut ::core::ffi::c_void,
        bytes: usize,
        flags: ::core::ffi::c_uint,
    ) -> CUresult,
>;
pub type PFN_cuMemFreeHost_v2000 = ::core::option::Option<
    unsafe extern "C" fn(memory: *mut ::core::ffi::c_void) -> CUresult,
>;
pub type PFN_cuMemHostRegister_v6050 = ::core::option::Option<
    unsafe extern "C" fn(
        memory: *mut ::core::ffi::c_void,
        bytes: usize,
        flags: ::core::ffi::c_uint,
    ) -> CUresult,
>;
pub type PFN_cuMemHostGetDevicePointer_v3020 = ::core::option::Option<
    unsafe extern "C" fn(
        address: *mut CUdeviceptr,
        memory: *mut ::core::ffi::c_void,
        flags: ::core::ffi::c_uint,
    ) -> CUresult,
>;
pub type PFN_cuMemsetD8Async_v3020 = ::core::option::Option<
    unsafe extern "C" fn(
        destination: CUdeviceptr,
        value: ::core::ffi::c_uchar,
        count: usize,
        stream: CUstream,
    ) -> CUresult,
>;
pub type PFN_cuMemsetD8Async_v7000_ptsz = ::core::option::Option<
    unsafe extern "C" fn(
        destination: CUdeviceptr,
        value: ::core::ffi::c_uchar,
        count: usize,
        stream: CUstream,
    ) -> CUresult,
>;
pub type PFN_cuMemsetD32Async_v3020 = ::core::option::Option<
    unsafe extern "C" fn(
        destination: CUdeviceptr,
        value: ::core::ffi::c_uint,
        count: usize,
        stream: CUstream,
    ) -> CUresult,
>;
pub type PFN_cuMemsetD32Async_v7000_ptsz = ::core::option::Option<
    unsafe extern "C" fn(
        destination: CUdeviceptr,
        value: ::core::ffi::c_uint,
        count: usize,
        stream: CUstream,
    ) -> CUresult,
>;
pub type PFN_cuMemcpyHtoDAsync_v3020 = ::core::option::Option<
    unsafe extern "C" fn(
        destination: CUdeviceptr,
        source: *const ::core::ffi::c_void,
        bytes: usize,
        stream: CUstream,
    ) -> CUresult,
>;
pub type PFN_cuMemcpyHtoDAsync_v7000_ptsz = ::core::option::Option<
    unsafe extern "C" fn(
        destination: CUdeviceptr,
        source: *const ::core::ffi::c_void,
        bytes: usize,
        stream: CUstream,
    ) -> CUresult,
>;
pub type PFN_cuMemcpyDtoHAsync_v3020 = ::core::option::Option<
    unsafe extern "C" fn(
        destination: *mut ::core::ffi::c_void,
        source: CUdeviceptr,
        bytes: usize,
        stream: CUstream,
    ) -> CUresult,
>;
pub type PFN_cuMemcpyDtoHAsync_v7000_ptsz = ::core::option::Option<
    unsafe extern "C" fn(
        destination: *mut ::core::ffi::c_void,
        source: CUdeviceptr,
        bytes: usize,
        stream: CUstream,
    ) -> CUresult,
>;
pub type PFN_cuMemcpyDtoDAsync_v3020 = ::core::option::Option<
    unsafe extern "C" fn(
        destination: CUdeviceptr,
        source: CUdeviceptr,
        bytes: usize,
        stream: CUstream,
    ) -> CUresult,
>;
pub type PFN_cuMemcpyDtoDAsync_v7000_ptsz = ::core::option::Option<
    unsafe extern "C" fn(
        destination: CUdeviceptr,
        source: CUdeviceptr,
        bytes: usize,
        stream: CUstream,
    ) -> CUresult,
>;
pub type PFN_cuImportExternalSemaphore_v10000 = ::core::option::Option<
    unsafe extern "C" fn(
        semaphore: *mut CUexternalSemaphore,
        description: *const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC,
    ) -> CUresult,
>;
pub type PFN_cuDestroyExternalSemaphore_v10000 = ::core::option::Option<
    unsafe extern "C" fn(semaphore: CUexternalSemaphore) -> CUresult,
>;
pub type PFN_cuSignalExternalSemaphoresAsync_v10000 = ::core::option::Option<
    unsafe extern "C" fn(
        semaphores: *const CUexternalSemaphore,
        params: *const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS,
        count: ::core::ffi::c_uint,
        stream: CUstream,
    ) -> CUresult,
>;
pub type PFN_cuSignalExternalSemaphoresAsync_v10000_ptsz = ::core::option::Option<
    unsafe extern "C" fn(
        semaphores: *const CUexternalSemaphore,
        params: *const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS,
        count: ::core::ffi::c_uint,
        stream: CUstream,
    ) -> CUresult,
>;
pub type PFN_cuWaitExternalSemaphoresAsync_v10000 = ::core::option::Option<
    unsafe extern "C" fn(
        semaphores: *const CUexternalSemaphore,
        params: *const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS,
        count: ::core::ffi::c_uint,
        stream: CUstream,
    ) -> CUresult,
>;
pub type PFN_cuWaitExternalSemaphoresAsync_v10000_ptsz = ::core::option::Option<
    unsafe extern "C" fn(
        semaphores: *const CUexternalSemaphore,
        params: *const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS,
        count: ::core::ffi::c_uint,
        stream: CUstream,
    ) -> CUresult,
>;
pub type PFN_cuImportExternalMemory_v10000 = ::core::option::Option<
    unsafe extern "C" fn(
        memory: *mut CUexternalMemory,
        description: *const CUDA_EXTERNAL_MEMORY_HANDLE_DESC,
    ) -> CUresult,
>;
pub type PFN_cuExternalMemoryGetMappedBuffer_v10000 = ::core::option::Option<
    unsafe extern "C" fn(
        address: *mut CUdeviceptr,
        memory: CUexternalMemory,
        description: *const CUDA_EXTERNAL_MEMORY_BUFFER_DESC,
    ) -> CUresult,
>;
pub type PFN_cuDestroyExternalMemory_v10000 = ::core::option::Option<
    unsafe extern "C" fn(memory: CUexternalMemory) -> CUresult,
>;
pub type PFN_cuCheckpointProcessGetRestoreThreadId_v12080 = ::core::option::Option<
    unsafe extern "C" fn(
        pid: ::core::ffi::c_int,
        tid: *mut ::core::ffi::c_int,
    ) -> CUresult,
>;
pub type PFN_cuCheckpointProcessGetState_v12080 = ::core::option::Option<
    unsafe extern "C" fn(pid: ::core::ffi::c_int, state: *mut CUprocessState) -> CUresult,
>;
pub type PFN_cuCheckpointProcessLock_v12080 = ::core::option::Option<
    unsafe extern "C" fn(
        pid: ::core::ffi::c_int,
        args: *mut CUcheckpointLockArgs,
    ) -> CUresult,
>;
pub type PFN_cuCheckpointProcessCheckpoint_v12080 = ::core::option::Option<
    unsafe extern "C" fn(
        pid: ::core::ffi::c_int,
        args: *mut CUcheckpointCheckpointArgs,
    ) -> CUresult,
>;
pub type PFN_cuCheckpointProcessRestore_v12080 = ::core::option::Option<
    unsafe extern "C" fn(
        pid: ::core::ffi::c_int,
        args: *mut CUcheckpointRestoreArgs,
    ) -> CUresult,
>;
pub type PFN_cuCheckpointProcessUnlock_v12080 = ::core::option::Option<
    unsafe extern "C" fn(
        pid: ::core::ffi::c_int,
        args: *mut CUcheckpointUnlockArgs,
    ) -> CUresult,
>;
pub type PFN_cuCheckpointOperationComplete_v13040 = ::core::option::Option<
    unsafe extern "C" fn(handle: CUcheckpointOperationHandle) -> CUresult,
>;
pub type PFN_cuCoredumpGetAttribute_v12010 = ::core::option::Option<
    unsafe extern "C" fn(
        setting: CUcoredumpSettings,
        value: *mut ::core::ffi::c_void,
        size: *mut usize,
    ) -> CUresult,
>;
pub type PFN_cuCoredumpGetAttributeGlobal_v12010 = ::core::option::Option<
    unsafe extern "C" fn(
        setting: CUcoredumpSettings,
        value: *mut ::core::ffi::c_void,
        size: *mut usize,
    ) -> CUresult,
>;
pub type PFN_cuCoredumpSetAttribute_v12010 = ::core::option::Option<
    unsafe extern "C" fn(
        setting: CUcoredumpSettings,
        value: *mut ::core::ffi::c_void,
        size: *mut usize,
    ) -> CUresult,
>;
pub type PFN_cuCoredumpSetAttributeGlobal_v12010 = ::core::option::Option<
    unsafe extern "C" fn(
        setting: CUcoredumpSettings,
        value: *mut ::core::ffi::c_void,
        size: *mut usize,
    ) -> CUresult,
>;
pub type PFN_cuCoredumpRegisterStartCallback_v13020 = ::core::option::Option<
    unsafe extern "C" fn(
        callback: CUcoredumpStatusCallback,
        user_data: *mut ::core::ffi::c_void,
        handle: *mut CUcoredumpCallbackHandle,
    ) -> CUresult,
>;
pub type PFN_cuCoredumpRegisterCompleteCallback_v13020 = ::core::option::Option<
    unsafe extern "C" fn(
        callback: CUcoredumpStatusCallback,
        user_data: *mut ::core::ffi::c_void,
        handle: *mut CUcoredumpCallbackHandle,
    ) -> CUresult,
>;
pub type PFN_cuCoredumpDeregisterStartCallback_v13020 = ::core::option::Option<
    unsafe extern "C" fn(handle: CUcoredumpCallbackHandle) -> CUresult,
>;
pub type PFN_cuCoredumpDeregisterCompleteCallback_v13020 = ::core::option::Option<
    unsafe extern "C" fn(handle: CUcoredumpCallbackHandle) -> CUresult,
>;
/// Each result code that CUDA 13.5 has, with its name, in the order of `wrapper.h`.
pub const RESULT_CODES: &[(CUresult, &::core::ffi::CStr)] = &[
    (CUresult::CUDA_SUCCESS, c"CUDA_SUCCESS"),
    (CUresult::CUDA_ERROR_INVALID_VALUE, c"CUDA_ERROR_INVALID_VALUE"),
    (CUresult::CUDA_ERROR_OUT_OF_MEMORY, c"CUDA_ERROR_OUT_OF_MEMORY"),
    (CUresult::CUDA_ERROR_NOT_INITIALIZED, c"CUDA_ERROR_NOT_INITIALIZED"),
    (CUresult::CUDA_ERROR_DEINITIALIZED, c"CUDA_ERROR_DEINITIALIZED"),
    (CUresult::CUDA_ERROR_PROFILER_DISABLED, c"CUDA_ERROR_PROFILER_DISABLED"),
    (CUresult::CUDA_ERROR_PROFILER_NOT_INITIALIZED, c"CUDA_ERROR_PROFILER_NOT_INITIALIZED"),
    (CUresult::CUDA_ERROR_PROFILER_ALREADY_STARTED, c"CUDA_ERROR_PROFILER_ALREADY_STARTED"),
    (CUresult::CUDA_ERROR_PROFILER_ALREADY_STOPPED, c"CUDA_ERROR_PROFILER_ALREADY_STOPPED"),
    (CUresult::CUDA_ERROR_STUB_LIBRARY, c"CUDA_ERROR_STUB_LIBRARY"),
    (CUresult::CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER, c"CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER"),
    (CUresult::CUDA_ERROR_DEVICE_UNAVAILABLE, c"CUDA_ERROR_DEVICE_UNAVAILABLE"),
    (CUresult::CUDA_ERROR_MULTICAST_RESOURCE_FULL, c"CUDA_ERROR_MULTICAST_RESOURCE_FULL"),
    (CUresult::CUDA_ERROR_NO_DEVICE, c"CUDA_ERROR_NO_DEVICE"),
    (CUresult::CUDA_ERROR_INVALID_DEVICE, c"CUDA_ERROR_INVALID_DEVICE"),
    (CUresult::CUDA_ERROR_DEVICE_NOT_LICENSED, c"CUDA_ERROR_DEVICE_NOT_LICENSED"),
    (CUresult::CUDA_ERROR_INVALID_IMAGE, c"CUDA_ERROR_INVALID_IMAGE"),
    (CUresult::CUDA_ERROR_INVALID_CONTEXT, c"CUDA_ERROR_INVALID_CONTEXT"),
    (CUresult::CUDA_ERROR_CONTEXT_ALREADY_CURRENT, c"CUDA_ERROR_CONTEXT_ALREADY_CURRENT"),
    (CUresult::CUDA_ERROR_MAP_FAILED, c"CUDA_ERROR_MAP_FAILED"),
    (CUresult::CUDA_ERROR_UNMAP_FAILED, c"CUDA_ERROR_UNMAP_FAILED"),
    (CUresult::CUDA_ERROR_ARRAY_IS_MAPPED, c"CUDA_ERROR_ARRAY_IS_MAPPED"),
    (CUresult::CUDA_ERROR_ALREADY_MAPPED, c"CUDA_ERROR_ALREADY_MAPPED"),
    (CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU, c"CUDA_ERROR_NO_BINARY_FOR_GPU"),
    (CUresult::CUDA_ERROR_ALREADY_ACQUIRED, c"CUDA_ERROR_ALREADY_ACQUIRED"),
    (CUresult::CUDA_ERROR_NOT_MAPPED, c"CUDA_ERROR_NOT_MAPPED"),
    (CUresult::CUDA_ERROR_NOT_MAPPED_AS_ARRAY, c"CUDA_ERROR_NOT_MAPPED_AS_ARRAY"),
    (CUresult::CUDA_ERROR_NOT_MAPPED_AS_POINTER, c"CUDA_ERROR_NOT_MAPPED_AS_POINTER"),
    (CUresult::CUDA_ERROR_ECC_UNCORRECTABLE, c"CUDA_ERROR_ECC_UNCORRECTABLE"),
    (CUresult::CUDA_ERROR_UNSUPPORTED_LIMIT, c"CUDA_ERROR_UNSUPPORTED_LIMIT"),
    (CUresult::CUDA_ERROR_CONTEXT_ALREADY_IN_USE, c"CUDA_ERROR_CONTEXT_ALREADY_IN_USE"),
    (CUresult::CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, c"CUDA_ERROR_PEER_ACCESS_UNSUPPORTED"),
    (CUresult::CUDA_ERROR_INVALID_PTX, c"CUDA_ERROR_INVALID_PTX"),
    (CUresult::CUDA_ERROR_INVALID_GRAPHICS_CONTEXT, c"CUDA_ERROR_INVALID_GRAPHICS_CONTEXT"),
    (CUresult::CUDA_ERROR_NVLINK_UNCORRECTABLE, c"CUDA_ERROR_NVLINK_UNCORRECTABLE"),
    (CUresult::CUDA_ERROR_JIT_COMPILER_NOT_FOUND, c"CUDA_ERROR_JIT_COMPILER_NOT_FOUND"),
    (CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION, c"CUDA_ERROR_UNSUPPORTED_PTX_VERSION"),
    (CUresult::CUDA_ERROR_JIT_COMPILATION_DISABLED, c"CUDA_ERROR_JIT_COMPILATION_DISABLED"),
    (CUresult::CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY, c"CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY"),
    (CUresult::CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC, c"CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC"),
    (CUresult::CUDA_ERROR_CONTAINED, c"CUDA_ERROR_CONTAINED"),
    (CUresult::CUDA_ERROR_INSUFFICIENT_LOADER_VERSION, c"CUDA_ERROR_INSUFFICIENT_LOADER_VERSION"),
    (CUresult::CUDA_ERROR_INVALID_SOURCE, c"CUDA_ERROR_INVALID_SOURCE"),
    (CUresult::CUDA_ERROR_FILE_NOT_FOUND, c"CUDA_ERROR_FILE_NOT_FOUND"),
    (CUresult::CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND, c"CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND"),
    (CUresult::CUDA_ERROR_SHARED_OBJECT_INIT_FAILED, c"CUDA_ERROR_SHARED_OBJECT_INIT_FAILED"),
    (CUresult::CUDA_ERROR_OPERATING_SYSTEM, c"CUDA_ERROR_OPERATING_SYSTEM"),
    (CUresult::CUDA_ERROR_INVALID_HANDLE, c"CUDA_ERROR_INVALID_HANDLE"),
    (CUresult::CUDA_ERROR_ILLEGAL_STATE, c"CUDA_ERROR_ILLEGAL_STATE"),
    (CUresult::CUDA_ERROR_LOSSY_QUERY, c"CUDA_ERROR_LOSSY_QUERY"),
    (CUresult::CUDA_ERROR_NOT_FOUND, c"CUDA_ERROR_NOT_FOUND"),
    (CUresult::CUDA_ERROR_NOT_READY, c"CUDA_ERROR_NOT_READY"),
    (CUresult::CUDA_ERROR_ILLEGAL_ADDRESS, c"CUDA_ERROR_ILLEGAL_ADDRESS"),
    (CUresult::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, c"CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"),
    (CUresult::CUDA_ERROR_LAUNCH_TIMEOUT, c"CUDA_ERROR_LAUNCH_TIMEOUT"),
    (CUresult::CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING, c"CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING"),
    (CUresult::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, c"CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED"),
    (CUresult::CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, c"CUDA_ERROR_PEER_ACCESS_NOT_ENABLED"),
    (CUresult::CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE, c"CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE"),
    (CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED, c"CUDA_ERROR_CONTEXT_IS_DESTROYED"),
    (CUresult::CUDA_ERROR_ASSERT, c"CUDA_ERROR_ASSERT"),
    (CUresult::CUDA_ERROR_TOO_MANY_PEERS, c"CUDA_ERROR_TOO_MANY_PEERS"),
    (CUresult::CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, c"CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED"),
    (CUresult::CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, c"CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED"),
    (CUresult::CUDA_ERROR_HARDWARE_STACK_ERROR, c"CUDA_ERROR_HARDWARE_STACK_ERROR"),
    (CUresult::CUDA_ERROR_ILLEGAL_INSTRUCTION, c"CUDA_ERROR_ILLEGAL_INSTRUCTION"),
    (CUresult::CUDA_ERROR_MISALIGNED_ADDRESS, c"CUDA_ERROR_MISALIGNED_ADDRESS"),
    (CUresult::CUDA_ERROR_INVALID_ADDRESS_SPACE, c"CUDA_ERROR_INVALID_ADDRESS_SPACE"),
    (CUresult::CUDA_ERROR_INVALID_PC, c"CUDA_ERROR_INVALID_PC"),
    (CUresult::CUDA_ERROR_LAUNCH_FAILED, c"CUDA_ERROR_LAUNCH_FAILED"),
    (CUresult::CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, c"CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE"),
    (CUresult::CUDA_ERROR_TENSOR_MEMORY_LEAK, c"CUDA_ERROR_TENSOR_MEMORY_LEAK"),
    (CUresult::CUDA_ERROR_NOT_PERMITTED, c"CUDA_ERROR_NOT_PERMITTED"),
    (CUresult::CUDA_ERROR_NOT_SUPPORTED, c"CUDA_ERROR_NOT_SUPPORTED"),
    (CUresult::CUDA_ERROR_SYSTEM_NOT_READY, c"CUDA_ERROR_SYSTEM_NOT_READY"),
    (CUresult::CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, c"CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"),
    (CUresult::CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, c"CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE"),
    (CUresult::CUDA_ERROR_MPS_CONNECTION_FAILED, c"CUDA_ERROR_MPS_CONNECTION_FAILED"),
    (CUresult::CUDA_ERROR_MPS_RPC_FAILURE, c"CUDA_ERROR_MPS_RPC_FAILURE"),
    (CUresult::CUDA_ERROR_MPS_SERVER_NOT_READY, c"CUDA_ERROR_MPS_SERVER_NOT_READY"),
    (CUresult::CUDA_ERROR_MPS_MAX_CLIENTS_REACHED, c"CUDA_ERROR_MPS_MAX_CLIENTS_REACHED"),
    (CUresult::CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED, c"CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED"),
    (CUresult::CUDA_ERROR_MPS_CLIENT_TERMINATED, c"CUDA_ERROR_MPS_CLIENT_TERMINATED"),
    (CUresult::CUDA_ERROR_CDP_NOT_SUPPORTED, c"CUDA_ERROR_CDP_NOT_SUPPORTED"),
    (CUresult::CUDA_ERROR_CDP_VERSION_MISMATCH, c"CUDA_ERROR_CDP_VERSION_MISMATCH"),
    (CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, c"CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"),
    (CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, c"CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"),
    (CUresult::CUDA_ERROR_STREAM_CAPTURE_MERGE, c"CUDA_ERROR_STREAM_CAPTURE_MERGE"),
    (CUresult::CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, c"CUDA_ERROR_STREAM_CAPTURE_UNMATCHED"),
    (CUresult::CUDA_ERROR_STREAM_CAPTURE_UNJOINED, c"CUDA_ERROR_STREAM_CAPTURE_UNJOINED"),
    (CUresult::CUDA_ERROR_STREAM_CAPTURE_ISOLATION, c"CUDA_ERROR_STREAM_CAPTURE_ISOLATION"),
    (CUresult::CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, c"CUDA_ERROR_STREAM_CAPTURE_IMPLICIT"),
    (CUresult::CUDA_ERROR_CAPTURED_EVENT, c"CUDA_ERROR_CAPTURED_EVENT"),
    (CUresult::CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, c"CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD"),
    (CUresult::CUDA_ERROR_TIMEOUT, c"CUDA_ERROR_TIMEOUT"),
    (CUresult::CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, c"CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE"),
    (CUresult::CUDA_ERROR_EXTERNAL_DEVICE, c"CUDA_ERROR_EXTERNAL_DEVICE"),
    (CUresult::CUDA_ERROR_INVALID_CLUSTER_SIZE, c"CUDA_ERROR_INVALID_CLUSTER_SIZE"),
    (CUresult::CUDA_ERROR_FUNCTION_NOT_LOADED, c"CUDA_ERROR_FUNCTION_NOT_LOADED"),
    (CUresult::CUDA_ERROR_INVALID_RESOURCE_TYPE, c"CUDA_ERROR_INVALID_RESOURCE_TYPE"),
    (CUresult::CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION, c"CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION"),
    (CUresult::CUDA_ERROR_KEY_ROTATION, c"CUDA_ERROR_KEY_ROTATION"),
    (CUresult::CUDA_ERROR_STREAM_DETACHED, c"CUDA_ERROR_STREAM_DETACHED"),
    (CUresult::CUDA_ERROR_GRAPH_RECAPTURE_FAILURE, c"CUDA_ERROR_GRAPH_RECAPTURE_FAILURE"),
    (CUresult::CUDA_ERROR_FABRIC_NOT_READY, c"CUDA_ERROR_FABRIC_NOT_READY"),
    (CUresult::CUDA_ERROR_UNKNOWN, c"CUDA_ERROR_UNKNOWN"),
];
impl ::core::fmt::Debug for CUdevice_attribute {
    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
        let name = match *self {
            Self::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT => "CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT",
            Self::CU_DEVICE_ATTRIBUTE_INTEGRATED => "CU_DEVICE_ATTRIBUTE_INTEGRATED",
            Self::CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY => "CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY",
            Self::CU_DEVICE_ATTRIBUTE_PCI_BUS_ID => "CU_DEVICE_ATTRIBUTE_PCI_BUS_ID",
            Self::CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID => "CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID",
            Self::CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING => "CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING",
            Self::CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID => "CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID",
            Self::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR => "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR",
            Self::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR => "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR",
            Self::CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED => "CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED",
            Self::CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY => "CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY",
            Self::CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS => "CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS",
            Self::CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1 => "CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1",
            Self::CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS_V1 => "CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS_V1",
            Self::CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR_V1 => "CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR_V1",
            Self::CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES => "CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES",
            Self::CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED => "CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED",
            Self::CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS => "CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS",
            Self::CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR => "CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR",
            Self::CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED => "CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED",
            _ => "CUdevice_attribute",
        };
        write!(f, "{name} ({})", self.0)
    }
}
impl ::core::fmt::Debug for CUdriverProcAddressQueryResult {
    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
        let name = match *self {
            Self::CU_GET_PROC_ADDRESS_SUCCESS => "CU_GET_PROC_ADDRESS_SUCCESS",
            Self::CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND => "CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND",
            Self::CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT => "CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT",
            _ => "CUdriverProcAddressQueryResult",
        };
        write!(f, "{name} ({})", self.0)
    }
}
impl ::core::fmt::Debug for CUstreamCaptureStatus {
    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
        let name = match *self {
            Self::CU_STREAM_CAPTURE_STATUS_NONE => "CU_STREAM_CAPTURE_STATUS_NONE",
            Self::CU_STREAM_CAPTURE_STATUS_ACTIVE => "CU_STREAM_CAPTURE_STATUS_ACTIVE",
            Self::CU_STREAM_CAPTURE_STATUS_INVALIDATED => "CU_STREAM_CAPTURE_STATUS_INVALIDATED",
            _ => "CUstreamCaptureStatus",
        };
        write!(f, "{name} ({})", self.0)
    }
}
impl ::core::fmt::Debug for CUstreamCaptureMode {
    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
        let name = match *self {
            Self::CU_STREAM_CAPTURE_MODE_GLOBAL => "CU_STREAM_CAPTURE_MODE_GLOBAL",
            Self::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL => "CU_STREAM_CAPTURE_MODE_THREAD_LOCAL",
            Self::CU_STREAM_CAPTURE_MODE_RELAXED => "CU_STREAM_CAPTURE_MODE_RELAXED",
            _ => "CUstreamCaptureMode",
        };
        write!(f, "{name} ({})", self.0)
    }
}
impl ::core::fmt::Debug for CUgraphRecaptureStatus {
    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
        let name = match *self {
            Self::CU_GRAPH_RECAPTURE_ELIGIBLE_FOR_UPDATE => "CU_GRAPH_RECAPTURE_ELIGIBLE_FOR_UPDATE",
            Self::CU_GRAPH_RECAPTURE_INELIGIBLE_FOR_UPDATE => "CU_GRAPH_RECAPTURE_INELIGIBLE_FOR_UPDATE",
            Self::CU_GRAPH_RECAPTURE_ERROR => "CU_GRAPH_RECAPTURE_ERROR",
            _ => "CUgraphRecaptureStatus",
        };
        write!(f, "{name} ({})", self.0)
    }
}
impl ::core::fmt::Debug for CUlaunchAttributeID {
    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
        let name = match *self {
            Self::CU_LAUNCH_ATTRIBUTE_IGNORE => "CU_LAUNCH_ATTRIBUTE_IGNORE",
            Self::CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW => "CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW",
            Self::CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY => "CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY",
            Self::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT => "CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT",
            Self::CU_LAUNCH_ATTRIBUTE_PRIORITY => "CU_LAUNCH_ATTRIBUTE_PRIORITY",
            Self::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP => "CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP",
            Self::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN => "CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN",
            Self::CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT => "CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT",
            Self::CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING => "CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING",
            _ => "CUlaunchAttributeID",
        };
        write!(f, "{name} ({})", self.0)
    }
}
impl ::core::fmt::Debug for CUaccessProperty {
    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
        let name = match *self {
            Self::CU_ACCESS_PROPERTY_NORMAL => "CU_ACCESS_PROPERTY_NORMAL",
            Self::CU_ACCESS_PROPERTY_STREAMING => "CU_ACCESS_PROPERTY_STREAMING",
            Self::CU_ACCESS_PROPERTY_PERSISTING => "CU_ACCESS_PROPERTY_PERSISTING",
            _ => "CUaccessProperty",
        };
        write!(f, "{name} ({})", self.0)
    }
}
impl ::core::fmt::Debug for CUsynchronizationPolicy {
    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
        let name = match *self {
            Self::CU_SYNC_POLICY_AUTO => "CU_SYNC_POLICY_AUTO",
            Self::CU_SYNC_POLICY_SPIN => "CU_SYNC_POLICY_SPIN",
            Self::CU_SYNC_POLICY_YIELD => "CU_SYNC_POLICY_YIELD",
            Self::CU_SYNC_POLICY_BLOCKING_SYNC => "CU_SYNC_POLICY_BLOCKING_SYNC",
            _ => "CUsynchronizationPolicy",
        };
        write!(f, "{name} ({})", self.0)
    }
}
impl ::core::fmt::Debug for CUlaunchMemSyncDomain {
    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
        let name = match *self {
            Self::CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT => "CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT",
            Self::CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE => "CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE",
            _ => "CUlaunchMemSyncDomain",
        };
        write!(f, "{name} ({})", self.0)
    }
}
impl ::core::fmt::Debug for CUstreamBatchMemOpType {
    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
        let name = match *self {
            Self::CU_STREAM_MEM_OP_WAIT_VALUE_32 => "CU_STREAM_MEM_OP_WAIT_VALUE_32",
            Self::CU_STREAM_MEM_OP_WRITE_VALUE_32 => "CU_STREAM_MEM_OP_WRITE_VALUE_32",
            Self::CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES => "CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES",
            Self::CU_STREAM_MEM_OP_WAIT_VALUE_64 => "CU_STREAM_MEM_OP_WAIT_VALUE_64",
            Self::CU_STREAM_MEM_OP_WRITE_VALUE_64 => "CU_STREAM_MEM_OP_WRITE_VALUE_64",
            Self::CU_STREAM_MEM_OP_BARRIER => "CU_STREAM_MEM_OP_BARRIER",
            Self::CU_STREAM_MEM_OP_ATOMIC_REDUCTION => "CU_STREAM_MEM_OP_ATOMIC_REDUCTION",
            _ => "CUstreamBatchMemOpType",
        };
        write!(f, "{name} ({})", self.0)
    }
}
impl ::core::fmt::Debug for CUstreamAtomicReductionOpType {
    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
        let name = match *self {
            Self::CU_STREAM_ATOMIC_REDUCTION_OP_ADD => "CU_STREAM_ATOMIC_REDUCTION_OP_ADD",
            Self::CU_STREAM_ATOMIC_REDUCTION_OP_AND => "CU_STREAM_ATOMIC_REDUCTION_OP_AND",
            Self::CU_STREAM_ATOMIC_REDUCTION_OP_OR => "CU_STREAM_ATOMIC_REDUCTION_OP_OR",
            _ => "CUstreamAtomicReductionOpType",
        };
        write!(f, "{name} ({})", self.0)
    }
}
impl ::core::fmt::Debug for CUstreamAtomicReductionDataType {
    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
        let name = match *self {
            Self::CU_STREAM_ATOMIC_REDUCTION_UNSIGNED_32 => "CU_STREAM_ATOMIC_REDUCTION_UNSIGNED_32",
            Self::CU_STREAM_ATOMIC_REDUCTION_UNSIGNED_64 => "CU_STREAM_ATOMIC_REDUCTION_UNSIGNED_64",
            _ => "CUstreamAtomicReductionDataType",
        };
        write!(f, "{name} ({})", self.0)
    }
}
impl ::core::fmt::Debug for CUatomicOperation {
    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
        let name = match *self {
            Self::CU_ATOMIC_OPERATION_INTEGER_ADD => "CU_ATOMIC_OPERATION_INTEGER_ADD",
            Self::CU_ATOMIC_OPERATION_INTEGER_MIN => "CU_ATOMIC_OPERATION_INTEGER_MIN",
            Self::CU_ATOMIC_OPERATION_INTEGER_MAX => "CU_ATOMIC_OPERATION_INTEGER_MAX",
            Self::CU_ATOMIC_OPERATION_INTEGER_INCREMENT => "CU_ATOMIC_OPERATION_INTEGER_INCREMENT",
            Self::CU_ATOMIC_OPERATION_INTEGER_DECREMENT => "CU_ATOMIC_OPERATION_INTEGER_DECREMENT",
            Self::CU_ATOMIC_OPERATION_AND => "CU_ATOMIC_OPERATION_AND",
            Self::CU_ATOMIC_OPERATION_OR => "CU_ATOMIC_OPERATION_OR",
            Self::CU_ATOMIC_OPERATION_XOR => "CU_ATOMIC_OPERATION_XOR",
            Self::CU_ATOMIC_OPERATION_EXCHANGE => "CU_ATOMIC_OPERATION_EXCHANGE",
            Self::CU_ATOMIC_OPERATION_CAS => "CU_ATOMIC_OPERATION_CAS",
            Self::CU_ATOMIC_OPERATION_FLOAT_ADD => "CU_ATOMIC_OPERATION_FLOAT_ADD",
            Self::CU_ATOMIC_OPERATION_FLOAT_MIN => "CU_ATOMIC_OPERATION_FLOAT_MIN",
            Self::CU_ATOMIC_OPERATION_FLOAT_MAX => "CU_ATOMIC_OPERATION_FLOAT_MAX",
            _ => "CUatomicOperation",
        };
        write!(f, "{name} ({})", self.0)
    }
}
impl ::core::fmt::Debug for CUlogLevel {
    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
        let name = match *self {
            Self::CU_LOG_LEVEL_ERROR => "CU_LOG_LEVEL_ERROR",
            Self::CU_LOG_LEVEL_WARNING => "CU_LOG_LEVEL_WARNING",
            _ => "CUlogLevel",
        };
        write!(f, "{name} ({})", self.0)
    }
}
impl ::core::fmt::Debug for CUasyncNotificationType {
    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
        let name = match *self {
            Self::CU_ASYNC_NOTIFICATION_TYPE_OVER_BUDGET => "CU_ASYNC_NOTIFICATION_TYPE_OVER_BUDGET",
            _ => "CUasyncNotificationType",
        };
        write!(f, "{name} ({})", self.0)
    }
}
impl ::core::fmt::Debug for CUprocessState {
    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
        let name = match *self {
            Self::CU_PROCESS_STATE_RUNNING => "CU_PROCESS_STATE_RUNNING",
            Self::CU_PROCESS_STATE_LOCKED => "CU_PROCESS_STATE_LOCKED",
            Self::CU_PROCESS_STATE_CHECKPOINTED => "CU_PROCESS_STATE_CHECKPOINTED",
            Self::CU_PROCESS_STATE_FAILED => "CU_PROCESS_STATE_FAILED",
            Self::CU_PROCESS_STATE_CHECKPOINTING => "CU_PROCESS_STATE_CHECKPOINTING",
            Self::CU_PROCESS_STATE_RESTORING => "CU_PROCESS_STATE_RESTORING",
            _ => "CUprocessState",
        };
        write!(f, "{name} ({})", self.0)
    }
}
impl ::core::fmt::Debug for CUcoredumpSettings {
    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
        let name = match *self {
            Self::CU_COREDUMP_ENABLE_ON_EXCEPTION => "CU_COREDUMP_ENABLE_ON_EXCEPTION",
            Self::CU_COREDUMP_TRIGGER_HOST => "CU_COREDUMP_TRIGGER_HOST",
            Self::CU_COREDUMP_LIGHTWEIGHT => "CU_COREDUMP_LIGHTWEIGHT",
            Self::CU_COREDUMP_ENABLE_USER_TRIGGER => "CU_COREDUMP_ENABLE_USER_TRIGGER",
            Self::CU_COREDUMP_FILE => "CU_COREDUMP_FILE",
            Self::CU_COREDUMP_PIPE => "CU_COREDUMP_PIPE",
            Self::CU_COREDUMP_GENERATION_FLAGS => "CU_COREDUMP_GENERATION_FLAGS",
            _ => "CUcoredumpSettings",
        };
        write!(f, "{name} ({})", self.0)
    }
}
impl ::core::fmt::Debug for CUexecAffinityType {
    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
        let name = match *self {
            Self::CU_EXEC_AFFINITY_TYPE_SM_COUNT => "CU_EXEC_AFFINITY_TYPE_SM_COUNT",
            _ => "CUexecAffinityType",
        };
        write!(f, "{name} ({})", self.0)
    }
}
impl ::core::fmt::Debug for CUcigDataType {
    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
        let name = match *self {
            Self::CIG_DATA_TYPE_D3D12_COMMAND_QUEUE => "CIG_DATA_TYPE_D3D12_COMMAND_QUEUE",
            Self::CIG_DATA_TYPE_NV_BLOB => "CIG_DATA_TYPE_NV_BLOB",
            _ => "CUcigDataType",
        };
        write!(f, "{name} ({})", self.0)
    }
}
impl ::core::fmt::Debug for CUstreamCigDataType {
    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
        let name = match *self {
            Self::STREAM_CIG_DATA_TYPE_D3D12_COMMAND_LIST => "STREAM_CIG_DATA_TYPE_D3D12_COMMAND_LIST",
            Self::STREAM_CIG_DATA_TYPE_VULKAN_COMMAND_BUFFER_HANDLE_NV => "STREAM_CIG_DATA_TYPE_VULKAN_COMMAND_BUFFER_HANDLE_NV",
            _ => "CUstreamCigDataType",
        };
        write!(f, "{name} ({})", self.0)
    }
}
impl ::core::fmt::Debug for CUdevResourceType {
    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
        let name = match *self {
            Self::CU_DEV_RESOURCE_TYPE_INVALID => "CU_DEV_RESOURCE_TYPE_INVALID",
            Self::CU_DEV_RESOURCE_TYPE_SM => "CU_DEV_RESOURCE_TYPE_SM",
            Self::CU_DEV_RESOURCE_TYPE_WORKQUEUE_CONFIG => "CU_DEV_RESOURCE_TYPE_WORKQUEUE_CONFIG",
            Self::CU_DEV_RESOURCE_TYPE_WORKQUEUE => "CU_DEV_RESOURCE_TYPE_WORKQUEUE",
            _ => "CUdevResourceType",
        };
        write!(f, "{name} ({})", self.0)
    }
}
impl ::core::fmt::Debug for CUdevWorkqueueConfigScope {
    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
        let name = match *self {
            Self::CU_WORKQUEUE_SCOPE_DEVICE_CTX => "CU_WORKQUEUE_SCOPE_DEVICE_CTX",
            Self::CU_WORKQUEUE_SCOPE_GREEN_CTX_BALANCED => "CU_WORKQUEUE_SCOPE_GREEN_CTX_BALANCED",
            _ => "CUdevWorkqueueConfigScope",
        };
        write!(f, "{name} ({})", self.0)
    }
}
impl ::core::fmt::Debug for CUexternalSemaphoreHandleType {
    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
        let name = match *self {
            Self::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD => "CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD",
            Self::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_WIN32 => "CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_WIN32",
            Self::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_WIN32_KMT => "CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_WIN32_KMT",
            Self::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_D3D12_FENCE => "CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_D3D12_FENCE",
            Self::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_D3D11_FENCE => "CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_D3D11_FENCE",
            Self::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_NVSCISYNC => "CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_NVSCISYNC",
            Self::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_D3D11_KEYED_MUTEX => "CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_D3D11_KEYED_MUTEX",
            Self::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_D3D11_KEYED_MUTEX_KMT => "CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_D3D11_KEYED_MUTEX_KMT",
            Self::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD => "CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD",
            Self::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_WIN32 => "CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_WIN32",
            _ => "CUexternalSemaphoreHandleType",
        };
        write!(f, "{name} ({})", self.0)
    }
}
impl ::core::fmt::Debug for CUexternalMemoryHandleType {
    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
        let name = match *self {
            Self::CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD => "CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD",
            Self::CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_WIN32 => "CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_WIN32",
            Self::CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_WIN32_KMT => "CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_WIN32_KMT",
            Self::CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D12_HEAP => "CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D12_HEAP",
            Self::CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D12_RESOURCE => "CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D12_RESOURCE",
            Self::CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D11_RESOURCE => "CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D11_RESOURCE",
            Self::CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D11_RESOURCE_KMT => "CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D11_RESOURCE_KMT",
            Self::CU_EXTERNAL_MEMORY_HANDLE_TYPE_NVSCIBUF => "CU_EXTERNAL_MEMORY_HANDLE_TYPE_NVSCIBUF",
            Self::CU_EXTERNAL_MEMORY_HANDLE_TYPE_DMABUF_FD => "CU_EXTERNAL_MEMORY_HANDLE_TYPE_DMABUF_FD",
            _ => "CUexternalMemoryHandleType",
        };
        write!(f, "{name} ({})", self.0)
    }
}
macro_rules! parameters {
    (PFN_cuInit_v2000) => { "unsigned int flags" };
    (PFN_cuInit_v2000 names) => { "flags" };
    (PFN_cuDriverGetVersion_v2020) => { "int *version" };
    (PFN_cuDriverGetVersion_v2020 names) => { "version" };
    (PFN_cuGetProcAddress_v11030) => { "const char *symbol, void **function, int version, cuuint64_t flags" };
    (PFN_cuGetProcAddress_v11030 names) => { "symbol, function, version, flags" };
    (PFN_cuGetProcAddress_v12000) => { "const char *symbol, void **function, int version, cuuint64_t flags, CUdriverProcAddressQueryResult *status" };
    (PFN_cuGetProcAddress_v12000 names) => { "symbol, function, version, flags, status" };
    (PFN_cuGetErrorName_v6000) => { "CUresult error, const char **text" };
    (PFN_cuGetErrorName_v6000 names) => { "error, text" };
    (PFN_cuGetErrorString_v6000) => { "CUresult error, const char **text" };
    (PFN_cuGetErrorString_v6000 names) => { "error, text" };
    (PFN_cuLogsCurrent_v12090) => { "CUlogIterator *iterator, unsigned int flags" };
    (PFN_cuLogsCurrent_v12090 names) => { "iterator, flags" };
    (PFN_cuLogsDumpToFile_v12090) => { "CUlogIterator *iterator, const char *path, unsigned int flags" };
    (PFN_cuLogsDumpToFile_v12090 names) => { "iterator, path, flags" };
    (PFN_cuLogsDumpToMemory_v12090) => { "CUlogIterator *iterator, char *buffer, size_t *size, unsigned int flags" };
    (PFN_cuLogsDumpToMemory_v12090 names) => { "iterator, buffer, size, flags" };
    (PFN_cuLogsRegisterCallback_v12090) => { "CUlogsCallback callback, void *user_data, CUlogsCallbackHandle *handle" };
    (PFN_cuLogsRegisterCallback_v12090 names) => { "callback, user_data, handle" };
    (PFN_cuLogsUnregisterCallback_v12090) => { "CUlogsCallbackHandle handle" };
    (PFN_cuLogsUnregisterCallback_v12090 names) => { "handle" };
    (PFN_cuDeviceGet_v2000) => { "CUdevice *device, int ordinal" };
    (PFN_cuDeviceGet_v2000 names) => { "device, ordinal" };
    (PFN_cuDeviceGetCount_v2000) => { "int *count" };
    (PFN_cuDeviceGetCount_v2000 names) => { "count" };
    (PFN_cuDeviceGetName_v2000) => { "char *name, int length, CUdevice device" };
    (PFN_cuDeviceGetName_v2000 names) => { "name, length, device" };
    (PFN_cuDeviceGetUuid_v9020) => { "CUuuid *uuid, CUdevice device" };
    (PFN_cuDeviceGetUuid_v9020 names) => { "uuid, device" };
    (PFN_cuDeviceGetUuid_v11040) => { "CUuuid *uuid, CUdevice device" };
    (PFN_cuDeviceGetUuid_v11040 names) => { "uuid, device" };
    (PFN_cuDeviceGetLuid_v10000) => { "char *luid, unsigned int *node_mask, CUdevice device" };
    (PFN_cuDeviceGetLuid_v10000 names) => { "luid, node_mask, device" };
    (PFN_cuDeviceTotalMem_v3020) => { "size_t *bytes, CUdevice device" };
    (PFN_cuDeviceTotalMem_v3020 names) => { "bytes, device" };
    (PFN_cuDeviceGetAttribute_v2000) => { "int *value, CUdevice_attribute attribute, CUdevice device" };
    (PFN_cuDeviceGetAttribute_v2000 names) => { "value, attribute, device" };
    (PFN_cuDeviceGetHostAtomicCapabilities_v13000) => { "unsigned int *capabilities, const CUatomicOperation *operations, unsigned int count, CUdevice device" };
    (PFN_cuDeviceGetHostAtomicCapabilities_v13000 names) => { "capabilities, operations, count, device" };
    (PFN_cuDeviceGetP2PAtomicCapabilities_v13000) => { "unsigned int *capabilities, const CUatomicOperation *operations, unsigned int count, CUdevice source, CUdevice destination" };
    (PFN_cuDeviceGetP2PAtomicCapabilities_v13000 names) => { "capabilities, operations, count, source, destination" };
    (PFN_cuDeviceRegisterAsyncNotification_v12040) => { "CUdevice device, CUasyncCallback callback, void *user_data, CUasyncCallbackHandle *handle" };
    (PFN_cuDeviceRegisterAsyncNotification_v12040 names) => { "device, callback, user_data, handle" };
    (PFN_cuDeviceUnregisterAsyncNotification_v12040) => { "CUdevice device, CUasyncCallbackHandle handle" };
    (PFN_cuDeviceUnregisterAsyncNotification_v12040 names) => { "device, handle" };
    (PFN_cuDevicePrimaryCtxRetain_v7000) => { "CUcontext *context, CUdevice device" };
    (PFN_cuDevicePrimaryCtxRetain_v7000 names) => { "context, device" };
    (PFN_cuDevicePrimaryCtxRelease_v11000) => { "CUdevice device" };
    (PFN_cuDevicePrimaryCtxRelease_v11000 names) => { "device" };
    (PFN_cuDevicePrimaryCtxGetState_v7000) => { "CUdevice device, unsigned int *flags, int *active" };
    (PFN_cuDevicePrimaryCtxGetState_v7000 names) => { "device, flags, active" };
    (PFN_cuCtxCreate_v3020) => { "CUcontext *context, unsigned int flags, CUdevice device" };
    (PFN_cuCtxCreate_v3020 names) => { "context, flags, device" };
    (PFN_cuCtxCreate_v12050) => { "CUcontext *context, CUctxCreateParams *params, unsigned int flags, CUdevice device" };
    (PFN_cuCtxCreate_v12050 names) => { "context, params, flags, device" };
    (PFN_cuCtxDestroy_v4000) => { "CUcontext context" };
    (PFN_cuCtxDestroy_v4000 names) => { "context" };
    (PFN_cuCtxGetCurrent_v4000) => { "CUcontext *context" };
    (PFN_cuCtxGetCurrent_v4000 names) => { "context" };
    (PFN_cuCtxSetCurrent_v4000) => { "CUcontext context" };
    (PFN_cuCtxSetCurrent_v4000 names) => { "context" };
    (PFN_cuCtxPushCurrent_v4000) => { "CUcontext context" };
    (PFN_cuCtxPushCurrent_v4000 names) => { "context" };
    (PFN_cuCtxPopCurrent_v4000) => { "CUcontext *context" };
    (PFN_cuCtxPopCurrent_v4000 names) => { "context" };
    (PFN_cuCtxGetDevice_v2000) => { "CUdevice *device" };
    (PFN_cuCtxGetDevice_v2000 names) => { "device" };
    (PFN_cuCtxGetDevice_v13000) => { "CUdevice *device, CUcontext context" };
    (PFN_cuCtxGetDevice_v13000 names) => { "device, context" };
    (PFN_cuCtxSynchronize_v2000) => { "void" };
    (PFN_cuCtxSynchronize_v2000 names) => { "" };
    (PFN_cuCtxSynchronize_v13000) => { "CUcontext context" };
    (PFN_cuCtxSynchronize_v13000 names) => { "context" };
    (PFN_cuCtxGetStreamPriorityRange_v5050) => { "int *least, int *greatest" };
    (PFN_cuCtxGetStreamPriorityRange_v5050 names) => { "least, greatest" };
    (PFN_cuCtxGetId_v12000) => { "CUcontext context, unsigned long long *id" };
    (PFN_cuCtxGetId_v12000 names) => { "context, id" };
    (PFN_cuCtxGetFlags_v7000) => { "unsigned int *flags" };
    (PFN_cuCtxGetFlags_v7000 names) => { "flags" };
    (PFN_cuCtxFromGreenCtx_v12040) => { "CUcontext *context, CUgreenCtx green" };
    (PFN_cuCtxFromGreenCtx_v12040 names) => { "context, green" };
    (PFN_cuGreenCtxCreate_v12040) => { "CUgreenCtx *green, CUdevResourceDesc description, CUdevice device, unsigned int flags" };
    (PFN_cuGreenCtxCreate_v12040 names) => { "green, description, device, flags" };
    (PFN_cuGreenCtxDestroy_v12040) => { "CUgreenCtx green" };
    (PFN_cuGreenCtxDestroy_v12040 names) => { "green" };
    (PFN_cuGreenCtxGetId_v12090) => { "CUgreenCtx green, unsigned long long *id" };
    (PFN_cuGreenCtxGetId_v12090 names) => { "green, id" };
    (PFN_cuDeviceGetDevResource_v12040) => { "CUdevice device, CUdevResource *resource, CUdevResourceType type" };
    (PFN_cuDeviceGetDevResource_v12040 names) => { "device, resource, type" };
    (PFN_cuCtxGetDevResource_v12040) => { "CUcontext context, CUdevResource *resource, CUdevResourceType type" };
    (PFN_cuCtxGetDevResource_v12040 names) => { "context, resource, type" };
    (PFN_cuGreenCtxGetDevResource_v12040) => { "CUgreenCtx green, CUdevResource *resource, CUdevResourceType type" };
    (PFN_cuGreenCtxGetDevResource_v12040 names) => { "green, resource, type" };
    (PFN_cuDevSmResourceSplitByCount_v12040) => { "CUdevResource *result, unsigned int *groups, const CUdevResource *input, CUdevResource *remaining, unsigned int flags, unsigned int min_count" };
    (PFN_cuDevSmResourceSplitByCount_v12040 names) => { "result, groups, input, remaining, flags, min_count" };
    (PFN_cuDevSmResourceSplit_v13010) => { "CUdevResource *result, unsigned int groups, const CUdevResource *input, CUdevResource *remaining, unsigned int flags, CU_DEV_SM_RESOURCE_GROUP_PARAMS *params" };
    (PFN_cuDevSmResourceSplit_v13010 names) => { "result, groups, input, remaining, flags, params" };
    (PFN_cuDevResourceGenerateDesc_v12040) => { "CUdevResourceDesc *description, CUdevResource *resources, unsigned int count" };
    (PFN_cuDevResourceGenerateDesc_v12040 names) => { "description, resources, count" };
    (PFN_cuCtxRecordEvent_v12050) => { "CUcontext context, CUevent event" };
    (PFN_cuCtxRecordEvent_v12050 names) => { "context, event" };
    (PFN_cuCtxWaitEvent_v12050) => { "CUcontext context, CUevent event" };
    (PFN_cuCtxWaitEvent_v12050 names) => { "context, event" };
    (PFN_cuGreenCtxRecordEvent_v12040) => { "CUgreenCtx green, CUevent event" };
    (PFN_cuGreenCtxRecordEvent_v12040 names) => { "green, event" };
    (PFN_cuGreenCtxWaitEvent_v12040) => { "CUgreenCtx green, CUevent event" };
    (PFN_cuGreenCtxWaitEvent_v12040 names) => { "green, event" };
    (PFN_cuGreenCtxStreamCreate_v12050) => { "CUstream *stream, CUgreenCtx green, unsigned int flags, int priority" };
    (PFN_cuGreenCtxStreamCreate_v12050 names) => { "stream, green, flags, priority" };
    (PFN_cuEventCreate_v2000) => { "CUevent *event, unsigned int flags" };
    (PFN_cuEventCreate_v2000 names) => { "event, flags" };
    (PFN_cuEventRecord_v2000) => { "CUevent event, CUstream stream" };
    (PFN_cuEventRecord_v2000 names) => { "event, stream" };
    (PFN_cuEventRecord_v7000_ptsz) => { "CUevent event, CUstream stream" };
    (PFN_cuEventRecord_v7000_ptsz names) => { "event, stream" };
    (PFN_cuEventRecordWithFlags_v11010) => { "CUevent event, CUstream stream, unsigned int flags" };
    (PFN_cuEventRecordWithFlags_v11010 names) => { "event, stream, flags" };
    (PFN_cuEventRecordWithFlags_v11010_ptsz) => { "CUevent event, CUstream stream, unsigned int flags" };
    (PFN_cuEventRecordWithFlags_v11010_ptsz names) => { "event, stream, flags" };
    (PFN_cuEventQuery_v2000) => { "CUevent event" };
    (PFN_cuEventQuery_v2000 names) => { "event" };
    (PFN_cuEventSynchronize_v2000) => { "CUevent event" };
    (PFN_cuEventSynchronize_v2000 names) => { "event" };
    (PFN_cuEventDestroy_v4000) => { "CUevent event" };
    (PFN_cuEventDestroy_v4000 names) => { "event" };
    (PFN_cuEventElapsedTime_v2000) => { "float *milliseconds, CUevent start, CUevent end" };
    (PFN_cuEventElapsedTime_v2000 names) => { "milliseconds, start, end" };
    (PFN_cuEventElapsedTime_v12080) => { "float *milliseconds, CUevent start, CUevent end" };
    (PFN_cuEventElapsedTime_v12080 names) => { "milliseconds, start, end" };
    (PFN_cuIpcGetEventHandle_v4010) => { "CUipcEventHandle *handle, CUevent event" };
    (PFN_cuIpcGetEventHandle_v4010 names) => { "handle, event" };
    (PFN_cuIpcOpenEventHandle_v4010) => { "CUevent *event, CUipcEventHandle handle" };
    (PFN_cuIpcOpenEventHandle_v4010 names) => { "event, handle" };
    (PFN_cuStreamCreate_v2000) => { "CUstream *stream, unsigned int flags" };
    (PFN_cuStreamCreate_v2000 names) => { "stream, flags" };
    (PFN_cuStreamCreateWithPriority_v5050) => { "CUstream *stream, unsigned int flags, int priority" };
    (PFN_cuStreamCreateWithPriority_v5050 names) => { "stream, flags, priority" };
    (PFN_cuStreamDestroy_v4000) => { "CUstream stream" };
    (PFN_cuStreamDestroy_v4000 names) => { "stream" };
    (PFN_cuStreamQuery_v2000) => { "CUstream stream" };
    (PFN_cuStreamQuery_v2000 names) => { "stream" };
    (PFN_cuStreamQuery_v7000_ptsz) => { "CUstream stream" };
    (PFN_cuStreamQuery_v7000_ptsz names) => { "stream" };
    (PFN_cuStreamSynchronize_v2000) => { "CUstream stream" };
    (PFN_cuStreamSynchronize_v2000 names) => { "stream" };
    (PFN_cuStreamSynchronize_v7000_ptsz) => { "CUstream stream" };
    (PFN_cuStreamSynchronize_v7000_ptsz names) => { "stream" };
    (PFN_cuStreamWaitEvent_v3020) => { "CUstream stream, CUevent event, unsigned int flags" };
    (PFN_cuStreamWaitEvent_v3020 names) => { "stream, event, flags" };
    (PFN_cuStreamWaitEvent_v7000_ptsz) => { "CUstream stream, CUevent event, unsigned int flags" };
    (PFN_cuStreamWaitEvent_v7000_ptsz names) => { "stream, event, flags" };
    (PFN_cuStreamGetPriority_v5050) => { "CUstream stream, int *priority" };
    (PFN_cuStreamGetPriority_v5050 names) => { "stream, priority" };
    (PFN_cuStreamGetPriority_v7000_ptsz) => { "CUstream stream, int *priority" };
    (PFN_cuStreamGetPriority_v7000_ptsz names) => { "stream, priority" };
    (PFN_cuStreamGetFlags_v5050) => { "CUstream stream, unsigned int *flags" };
    (PFN_cuStreamGetFlags_v5050 names) => { "stream, flags" };
    (PFN_cuStreamGetFlags_v7000_ptsz) => { "CUstream stream, unsigned int *flags" };
    (PFN_cuStreamGetFlags_v7000_ptsz names) => { "stream, flags" };
    (PFN_cuStreamGetId_v12000) => { "CUstream stream, unsigned long long *id" };
    (PFN_cuStreamGetId_v12000 names) => { "stream, id" };
    (PFN_cuStreamGetId_v12000_ptsz) => { "CUstream stream, unsigned long long *id" };
    (PFN_cuStreamGetId_v12000_ptsz names) => { "stream, id" };
    (PFN_cuStreamGetCtx_v9020) => { "CUstream stream, CUcontext *context" };
    (PFN_cuStreamGetCtx_v9020 names) => { "stream, context" };
    (PFN_cuStreamGetCtx_v9020_ptsz) => { "CUstream stream, CUcontext *context" };
    (PFN_cuStreamGetCtx_v9020_ptsz names) => { "stream, context" };
    (PFN_cuStreamGetCtx_v12050) => { "CUstream stream, CUcontext *context, CUgreenCtx *green" };
    (PFN_cuStreamGetCtx_v12050 names) => { "stream, context, green" };
    (PFN_cuStreamGetCtx_v12050_ptsz) => { "CUstream stream, CUcontext *context, CUgreenCtx *green" };
    (PFN_cuStreamGetCtx_v12050_ptsz names) => { "stream, context, green" };
    (PFN_cuStreamGetGreenCtx_v12040) => { "CUstream stream, CUgreenCtx *green" };
    (PFN_cuStreamGetGreenCtx_v12040 names) => { "stream, green" };
    (PFN_cuStreamGetDevice_v12080) => { "CUstream stream, CUdevice *device" };
    (PFN_cuStreamGetDevice_v12080 names) => { "stream, device" };
    (PFN_cuStreamGetDevice_v12080_ptsz) => { "CUstream stream, CUdevice *device" };
    (PFN_cuStreamGetDevice_v12080_ptsz names) => { "stream, device" };
    (PFN_cuStreamGetDevResource_v13010) => { "CUstream stream, CUdevResource *resource, CUdevResourceType type" };
    (PFN_cuStreamGetDevResource_v13010 names) => { "stream, resource, type" };
    (PFN_cuStreamGetDevResource_v13010_ptsz) => { "CUstream stream, CUdevResource *resource, CUdevResourceType type" };
    (PFN_cuStreamGetDevResource_v13010_ptsz names) => { "stream, resource, type" };
    (PFN_cuStreamGetAttribute_v11000) => { "CUstream stream, CUstreamAttrID attribute, CUstreamAttrValue *value" };
    (PFN_cuStreamGetAttribute_v11000 names) => { "stream, attribute, value" };
    (PFN_cuStreamGetAttribute_v11000_ptsz) => { "CUstream stream, CUstreamAttrID attribute, CUstreamAttrValue *value" };
    (PFN_cuStreamGetAttribute_v11000_ptsz names) => { "stream, attribute, value" };
    (PFN_cuStreamSetAttribute_v11000) => { "CUstream stream, CUstreamAttrID attribute, const CUstreamAttrValue *value" };
    (PFN_cuStreamSetAttribute_v11000 names) => { "stream, attribute, value" };
    (PFN_cuStreamSetAttribute_v11000_ptsz) => { "CUstream stream, CUstreamAttrID attribute, const CUstreamAttrValue *value" };
    (PFN_cuStreamSetAttribute_v11000_ptsz names) => { "stream, attribute, value" };
    (PFN_cuStreamCopyAttributes_v11000) => { "CUstream destination, CUstream source" };
    (PFN_cuStreamCopyAttributes_v11000 names) => { "destination, source" };
    (PFN_cuStreamCopyAttributes_v11000_ptsz) => { "CUstream destination, CUstream source" };
    (PFN_cuStreamCopyAttributes_v11000_ptsz names) => { "destination, source" };
    (PFN_cuStreamAddCallback_v5000) => { "CUstream stream, CUstreamCallback callback, void *user_data, unsigned int flags" };
    (PFN_cuStreamAddCallback_v5000 names) => { "stream, callback, user_data, flags" };
    (PFN_cuStreamAddCallback_v7000_ptsz) => { "CUstream stream, CUstreamCallback callback, void *user_data, unsigned int flags" };
    (PFN_cuStreamAddCallback_v7000_ptsz names) => { "stream, callback, user_data, flags" };
    (PFN_cuLaunchHostFunc_v10000) => { "CUstream stream, CUhostFn host_fn, void *user_data" };
    (PFN_cuLaunchHostFunc_v10000 names) => { "stream, host_fn, user_data" };
    (PFN_cuLaunchHostFunc_v10000_ptsz) => { "CUstream stream, CUhostFn host_fn, void *user_data" };
    (PFN_cuLaunchHostFunc_v10000_ptsz names) => { "stream, host_fn, user_data" };
    (PFN_cuLaunchHostFunc_v13010) => { "CUstream stream, CUhostFn host_fn, void *user_data, unsigned int sync_mode" };
    (PFN_cuLaunchHostFunc_v13010 names) => { "stream, host_fn, user_data, sync_mode" };
    (PFN_cuLaunchHostFunc_v13010_ptsz) => { "CUstream stream, CUhostFn host_fn, void *user_data, unsigned int sync_mode" };
    (PFN_cuLaunchHostFunc_v13010_ptsz names) => { "stream, host_fn, user_data, sync_mode" };
    (PFN_cuStreamAttachMemAsync_v6000) => { "CUstream stream, CUdeviceptr address, size_t length, unsigned int flags" };
    (PFN_cuStreamAttachMemAsync_v6000 names) => { "stream, address, length, flags" };
    (PFN_cuStreamAttachMemAsync_v7000_ptsz) => { "CUstream stream, CUdeviceptr address, size_t length, unsigned int flags" };
    (PFN_cuStreamAttachMemAsync_v7000_ptsz names) => { "stream, address, length, flags" };
    (PFN_cuStreamBeginCapture_v10010) => { "CUstream stream, CUstreamCaptureMode mode" };
    (PFN_cuStreamBeginCapture_v10010 names) => { "stream, mode" };
    (PFN_cuStreamBeginCapture_v10010_ptsz) => { "CUstream stream, CUstreamCaptureMode mode" };
    (PFN_cuStreamBeginCapture_v10010_ptsz names) => { "stream, mode" };
    (PFN_cuStreamBeginCaptureToGraph_v12030) => { "CUstream stream, CUgraph graph, const CUgraphNode *dependencies, const CUgraphEdgeData *edges, size_t count, CUstreamCaptureMode mode" };
    (PFN_cuStreamBeginCaptureToGraph_v12030 names) => { "stream, graph, dependencies, edges, count, mode" };
    (PFN_cuStreamBeginCaptureToGraph_v12030_ptsz) => { "CUstream stream, CUgraph graph, const CUgraphNode *dependencies, const CUgraphEdgeData *edges, size_t count, CUstreamCaptureMode mode" };
    (PFN_cuStreamBeginCaptureToGraph_v12030_ptsz names) => { "stream, graph, dependencies, edges, count, mode" };
    (PFN_cuStreamBeginRecaptureToGraph_v13030) => { "CUstream stream, CUstreamCaptureMode mode, CUgraph graph, CUgraphRecaptureCallback callback, void *user_data" };
    (PFN_cuStreamBeginRecaptureToGraph_v13030 names) => { "stream, mode, graph, callback, user_data" };
    (PFN_cuStreamBeginRecaptureToGraph_v13030_ptsz) => { "CUstream stream, CUstreamCaptureMode mode, CUgraph graph, CUgraphRecaptureCallback callback, void *user_data" };
    (PFN_cuStreamBeginRecaptureToGraph_v13030_ptsz names) => { "stream, mode, graph, callback, user_data" };
    (PFN_cuStreamBeginCaptureToCig_v13010) => { "CUstream stream, CUstreamCigCaptureParams *params" };
    (PFN_cuStreamBeginCaptureToCig_v13010 names) => { "stream, params" };
    (PFN_cuStreamBeginCaptureToCig_v13010_ptsz) => { "CUstream stream, CUstreamCigCaptureParams *params" };
    (PFN_cuStreamBeginCaptureToCig_v13010_ptsz names) => { "stream, params" };
    (PFN_cuStreamEndCapture_v10000) => { "CUstream stream, CUgraph *graph" };
    (PFN_cuStreamEndCapture_v10000 names) => { "stream, graph" };
    (PFN_cuStreamEndCapture_v10000_ptsz) => { "CUstream stream, CUgraph *graph" };
    (PFN_cuStreamEndCapture_v10000_ptsz names) => { "stream, graph" };
    (PFN_cuStreamEndCaptureToCig_v13010) => { "CUstream stream" };
    (PFN_cuStreamEndCaptureToCig_v13010 names) => { "stream" };
    (PFN_cuStreamEndCaptureToCig_v13010_ptsz) => { "CUstream stream" };
    (PFN_cuStreamEndCaptureToCig_v13010_ptsz names) => { "stream" };
    (PFN_cuStreamIsCapturing_v10000) => { "CUstream stream, CUstreamCaptureStatus *status" };
    (PFN_cuStreamIsCapturing_v10000 names) => { "stream, status" };
    (PFN_cuStreamIsCapturing_v10000_ptsz) => { "CUstream stream, CUstreamCaptureStatus *status" };
    (PFN_cuStreamIsCapturing_v10000_ptsz names) => { "stream, status" };
    (PFN_cuStreamGetCaptureInfo_v10010) => { "CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id" };
    (PFN_cuStreamGetCaptureInfo_v10010 names) => { "stream, status, id" };
    (PFN_cuStreamGetCaptureInfo_v10010_ptsz) => { "CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id" };
    (PFN_cuStreamGetCaptureInfo_v10010_ptsz names) => { "stream, status, id" };
    (PFN_cuStreamGetCaptureInfo_v11030) => { "CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph, const CUgraphNode **dependencies, size_t *count" };
    (PFN_cuStreamGetCaptureInfo_v11030 names) => { "stream, status, id, graph, dependencies, count" };
    (PFN_cuStreamGetCaptureInfo_v11030_ptsz) => { "CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph, const CUgraphNode **dependencies, size_t *count" };
    (PFN_cuStreamGetCaptureInfo_v11030_ptsz names) => { "stream, status, id, graph, dependencies, count" };
    (PFN_cuStreamGetCaptureInfo_v12030) => { "CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph, const CUgraphNode **dependencies, const CUgraphEdgeData **edges, size_t *count" };
    (PFN_cuStreamGetCaptureInfo_v12030 names) => { "stream, status, id, graph, dependencies, edges, count" };
    (PFN_cuStreamGetCaptureInfo_v12030_ptsz) => { "CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph, const CUgraphNode **dependencies, const CUgraphEdgeData **edges, size_t *count" };
    (PFN_cuStreamGetCaptureInfo_v12030_ptsz names) => { "stream, status, id, graph, dependencies, edges, count" };
    (PFN_cuStreamUpdateCaptureDependencies_v11030) => { "CUstream stream, CUgraphNode *dependencies, size_t count, unsigned int flags" };
    (PFN_cuStreamUpdateCaptureDependencies_v11030 names) => { "stream, dependencies, count, flags" };
    (PFN_cuStreamUpdateCaptureDependencies_v11030_ptsz) => { "CUstream stream, CUgraphNode *dependencies, size_t count, unsigned int flags" };
    (PFN_cuStreamUpdateCaptureDependencies_v11030_ptsz names) => { "stream, dependencies, count, flags" };
    (PFN_cuStreamUpdateCaptureDependencies_v12030) => { "CUstream stream, CUgraphNode *dependencies, const CUgraphEdgeData *edges, size_t count, unsigned int flags" };
    (PFN_cuStreamUpdateCaptureDependencies_v12030 names) => { "stream, dependencies, edges, count, flags" };
    (PFN_cuStreamUpdateCaptureDependencies_v12030_ptsz) => { "CUstream stream, CUgraphNode *dependencies, const CUgraphEdgeData *edges, size_t count, unsigned int flags" };
    (PFN_cuStreamUpdateCaptureDependencies_v12030_ptsz names) => { "stream, dependencies, edges, count, flags" };
    (PFN_cuThreadExchangeStreamCaptureMode_v10010) => { "CUstreamCaptureMode *mode" };
    (PFN_cuThreadExchangeStreamCaptureMode_v10010 names) => { "mode" };
    (PFN_cuStreamWaitValue32_v8000) => { "CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags" };
    (PFN_cuStreamWaitValue32_v8000 names) => { "stream, address, value, flags" };
    (PFN_cuStreamWaitValue32_v8000_ptsz) => { "CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags" };
    (PFN_cuStreamWaitValue32_v8000_ptsz names) => { "stream, address, value, flags" };
    (PFN_cuStreamWaitValue32_v11070) => { "CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags" };
    (PFN_cuStreamWaitValue32_v11070 names) => { "stream, address, value, flags" };
    (PFN_cuStreamWaitValue32_v11070_ptsz) => { "CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags" };
    (PFN_cuStreamWaitValue32_v11070_ptsz names) => { "stream, address, value, flags" };
    (PFN_cuStreamWaitValue64_v9000) => { "CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags" };
    (PFN_cuStreamWaitValue64_v9000 names) => { "stream, address, value, flags" };
    (PFN_cuStreamWaitValue64_v9000_ptsz) => { "CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags" };
    (PFN_cuStreamWaitValue64_v9000_ptsz names) => { "stream, address, value, flags" };
    (PFN_cuStreamWaitValue64_v11070) => { "CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags" };
    (PFN_cuStreamWaitValue64_v11070 names) => { "stream, address, value, flags" };
    (PFN_cuStreamWaitValue64_v11070_ptsz) => { "CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags" };
    (PFN_cuStreamWaitValue64_v11070_ptsz names) => { "stream, address, value, flags" };
    (PFN_cuStreamWriteValue32_v8000) => { "CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags" };
    (PFN_cuStreamWriteValue32_v8000 names) => { "stream, address, value, flags" };
    (PFN_cuStreamWriteValue32_v8000_ptsz) => { "CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags" };
    (PFN_cuStreamWriteValue32_v8000_ptsz names) => { "stream, address, value, flags" };
    (PFN_cuStreamWriteValue32_v11070) => { "CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags" };
    (PFN_cuStreamWriteValue32_v11070 names) => { "stream, address, value, flags" };
    (PFN_cuStreamWriteValue32_v11070_ptsz) => { "CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags" };
    (PFN_cuStreamWriteValue32_v11070_ptsz names) => { "stream, address, value, flags" };
    (PFN_cuStreamWriteValue64_v9000) => { "CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags" };
    (PFN_cuStreamWriteValue64_v9000 names) => { "stream, address, value, flags" };
    (PFN_cuStreamWriteValue64_v9000_ptsz) => { "CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags" };
    (PFN_cuStreamWriteValue64_v9000_ptsz names) => { "stream, address, value, flags" };
    (PFN_cuStreamWriteValue64_v11070) => { "CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags" };
    (PFN_cuStreamWriteValue64_v11070 names) => { "stream, address, value, flags" };
    (PFN_cuStreamWriteValue64_v11070_ptsz) => { "CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags" };
    (PFN_cuStreamWriteValue64_v11070_ptsz names) => { "stream, address, value, flags" };
    (PFN_cuStreamBatchMemOp_v8000) => { "CUstream stream, unsigned int count, CUstreamBatchMemOpParams *operations, unsigned int flags" };
    (PFN_cuStreamBatchMemOp_v8000 names) => { "stream, count, operations, flags" };
    (PFN_cuStreamBatchMemOp_v8000_ptsz) => { "CUstream stream, unsigned int count, CUstreamBatchMemOpParams *operations, unsigned int flags" };
    (PFN_cuStreamBatchMemOp_v8000_ptsz names) => { "stream, count, operations, flags" };
    (PFN_cuStreamBatchMemOp_v11070) => { "CUstream stream, unsigned int count, CUstreamBatchMemOpParams *operations, unsigned int flags" };
    (PFN_cuStreamBatchMemOp_v11070 names) => { "stream, count, operations, flags" };
    (PFN_cuStreamBatchMemOp_v11070_ptsz) => { "CUstream stream, unsigned int count, CUstreamBatchMemOpParams *operations, unsigned int flags" };
    (PFN_cuStreamBatchMemOp_v11070_ptsz names) => { "stream, count, operations, flags" };
    (PFN_cuGraphCreate_v10000) => { "CUgraph *graph, unsigned int flags" };
    (PFN_cuGraphCreate_v10000 names) => { "graph, flags" };
    (PFN_cuGraphDestroy_v10000) => { "CUgraph graph" };
    (PFN_cuGraphDestroy_v10000 names) => { "graph" };
    (PFN_cuGraphGetId_v13010) => { "CUgraph graph, unsigned int *id" };
    (PFN_cuGraphGetId_v13010 names) => { "graph, id" };
    (PFN_cuGraphNodeGetLocalId_v13010) => { "CUgraphNode node, unsigned int *id" };
    (PFN_cuGraphNodeGetLocalId_v13010 names) => { "node, id" };
    (PFN_cuGraphNodeGetToolsId_v13010) => { "CUgraphNode node, unsigned long long *id" };
    (PFN_cuGraphNodeGetToolsId_v13010 names) => { "node, id" };
    (PFN_cuGraphInstantiate_v11000) => { "CUgraphExec *exec, CUgraph graph, CUgraphNode *error_node, char *log, size_t log_size" };
    (PFN_cuGraphInstantiate_v11000 names) => { "exec, graph, error_node, log, log_size" };
    (PFN_cuGraphInstantiateWithFlags_v11040) => { "CUgraphExec *exec, CUgraph graph, unsigned long long flags" };
    (PFN_cuGraphInstantiateWithFlags_v11040 names) => { "exec, graph, flags" };
    (PFN_cuGraphLaunch_v10000) => { "CUgraphExec exec, CUstream stream" };
    (PFN_cuGraphLaunch_v10000 names) => { "exec, stream" };
    (PFN_cuGraphLaunch_v10000_ptsz) => { "CUgraphExec exec, CUstream stream" };
    (PFN_cuGraphLaunch_v10000_ptsz names) => { "exec, stream" };
    (PFN_cuGraphExecDestroy_v10000) => { "CUgraphExec exec" };
    (PFN_cuGraphExecDestroy_v10000 names) => { "exec" };
    (PFN_cuGraphExecGetId_v13010) => { "CUgraphExec exec, unsigned int *id" };
    (PFN_cuGraphExecGetId_v13010 names) => { "exec, id" };
    (PFN_cuGraphAddEventRecordNode_v11010) => { "CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count, CUevent event" };
    (PFN_cuGraphAddEventRecordNode_v11010 names) => { "node, graph, dependencies, count, event" };
    (PFN_cuGraphAddEventWaitNode_v11010) => { "CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count, CUevent event" };
    (PFN_cuGraphAddEventWaitNode_v11010 names) => { "node, graph, dependencies, count, event" };
    (PFN_cuGraphEventRecordNodeGetEvent_v11010) => { "CUgraphNode node, CUevent *event" };
    (PFN_cuGraphEventRecordNodeGetEvent_v11010 names) => { "node, event" };
    (PFN_cuGraphEventRecordNodeSetEvent_v11010) => { "CUgraphNode node, CUevent event" };
    (PFN_cuGraphEventRecordNodeSetEvent_v11010 names) => { "node, event" };
    (PFN_cuGraphEventWaitNodeGetEvent_v11010) => { "CUgraphNode node, CUevent *event" };
    (PFN_cuGraphEventWaitNodeGetEvent_v11010 names) => { "node, event" };
    (PFN_cuGraphEventWaitNodeSetEvent_v11010) => { "CUgraphNode node, CUevent event" };
    (PFN_cuGraphEventWaitNodeSetEvent_v11010 names) => { "node, event" };
    (PFN_cuGraphExecEventRecordNodeSetEvent_v11010) => { "CUgraphExec exec, CUgraphNode node, CUevent event" };
    (PFN_cuGraphExecEventRecordNodeSetEvent_v11010 names) => { "exec, node, event" };
    (PFN_cuGraphExecEventWaitNodeSetEvent_v11010) => { "CUgraphExec exec, CUgraphNode node, CUevent event" };
    (PFN_cuGraphExecEventWaitNodeSetEvent_v11010 names) => { "exec, node, event" };
    (PFN_cuGraphAddHostNode_v10000) => { "CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count, const CUDA_HOST_NODE_PARAMS *params" };
    (PFN_cuGraphAddHostNode_v10000 names) => { "node, graph, dependencies, count, params" };
    (PFN_cuGraphHostNodeGetParams_v10000) => { "CUgraphNode node, CUDA_HOST_NODE_PARAMS *params" };
    (PFN_cuGraphHostNodeGetParams_v10000 names) => { "node, params" };
    (PFN_cuGraphHostNodeSetParams_v10000) => { "CUgraphNode node, const CUDA_HOST_NODE_PARAMS *params" };
    (PFN_cuGraphHostNodeSetParams_v10000 names) => { "node, params" };
    (PFN_cuGraphExecHostNodeSetParams_v10020) => { "CUgraphExec exec, CUgraphNode node, const CUDA_HOST_NODE_PARAMS *params" };
    (PFN_cuGraphExecHostNodeSetParams_v10020 names) => { "exec, node, params" };
    (PFN_cuGraphAddExternalSemaphoresSignalNode_v11020) => { "CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count, const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS *params" };
    (PFN_cuGraphAddExternalSemaphoresSignalNode_v11020 names) => { "node, graph, dependencies, count, params" };
    (PFN_cuGraphExternalSemaphoresSignalNodeGetParams_v11020) => { "CUgraphNode node, CUDA_EXT_SEM_SIGNAL_NODE_PARAMS *params" };
    (PFN_cuGraphExternalSemaphoresSignalNodeGetParams_v11020 names) => { "node, params" };
    (PFN_cuGraphExternalSemaphoresSignalNodeSetParams_v11020) => { "CUgraphNode node, const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS *params" };
    (PFN_cuGraphExternalSemaphoresSignalNodeSetParams_v11020 names) => { "node, params" };
    (PFN_cuGraphExecExternalSemaphoresSignalNodeSetParams_v11020) => { "CUgraphExec exec, CUgraphNode node, const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS *params" };
    (PFN_cuGraphExecExternalSemaphoresSignalNodeSetParams_v11020 names) => { "exec, node, params" };
    (PFN_cuGraphAddExternalSemaphoresWaitNode_v11020) => { "CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count, const CUDA_EXT_SEM_WAIT_NODE_PARAMS *params" };
    (PFN_cuGraphAddExternalSemaphoresWaitNode_v11020 names) => { "node, graph, dependencies, count, params" };
    (PFN_cuGraphExternalSemaphoresWaitNodeGetParams_v11020) => { "CUgraphNode node, CUDA_EXT_SEM_WAIT_NODE_PARAMS *params" };
    (PFN_cuGraphExternalSemaphoresWaitNodeGetParams_v11020 names) => { "node, params" };
    (PFN_cuGraphExternalSemaphoresWaitNodeSetParams_v11020) => { "CUgraphNode node, const CUDA_EXT_SEM_WAIT_NODE_PARAMS *params" };
    (PFN_cuGraphExternalSemaphoresWaitNodeSetParams_v11020 names) => { "node, params" };
    (PFN_cuGraphExecExternalSemaphoresWaitNodeSetParams_v11020) => { "CUgraphExec exec, CUgraphNode node, const CUDA_EXT_SEM_WAIT_NODE_PARAMS *params" };
    (PFN_cuGraphExecExternalSemaphoresWaitNodeSetParams_v11020 names) => { "exec, node, params" };
    (PFN_cuGraphAddBatchMemOpNode_v11070) => { "CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count, const CUDA_BATCH_MEM_OP_NODE_PARAMS *params" };
    (PFN_cuGraphAddBatchMemOpNode_v11070 names) => { "node, graph, dependencies, count, params" };
    (PFN_cuGraphBatchMemOpNodeGetParams_v11070) => { "CUgraphNode node, CUDA_BATCH_MEM_OP_NODE_PARAMS *params" };
    (PFN_cuGraphBatchMemOpNodeGetParams_v11070 names) => { "node, params" };
    (PFN_cuGraphBatchMemOpNodeSetParams_v11070) => { "CUgraphNode node, const CUDA_BATCH_MEM_OP_NODE_PARAMS *params" };
    (PFN_cuGraphBatchMemOpNodeSetParams_v11070 names) => { "node, params" };
    (PFN_cuGraphExecBatchMemOpNodeSetParams_v11070) => { "CUgraphExec exec, CUgraphNode node, const CUDA_BATCH_MEM_OP_NODE_PARAMS *params" };
    (PFN_cuGraphExecBatchMemOpNodeSetParams_v11070 names) => { "exec, node, params" };
    (PFN_cuMemGetInfo_v3020) => { "size_t *free, size_t *total" };
    (PFN_cuMemGetInfo_v3020 names) => { "free, total" };
    (PFN_cuIpcGetMemHandle_v4010) => { "CUipcMemHandle *handle, CUdeviceptr address" };
    (PFN_cuIpcGetMemHandle_v4010 names) => { "handle, address" };
    (PFN_cuIpcOpenMemHandle_v11000) => { "CUdeviceptr *address, CUipcMemHandle handle, unsigned int flags" };
    (PFN_cuIpcOpenMemHandle_v11000 names) => { "address, handle, flags" };
    (PFN_cuIpcCloseMemHandle_v4010) => { "CUdeviceptr address" };
    (PFN_cuIpcCloseMemHandle_v4010 names) => { "address" };
    (PFN_cuMemAlloc_v3020) => { "CUdeviceptr *address, size_t bytes" };
    (PFN_cuMemAlloc_v3020 names) => { "address, bytes" };
    (PFN_cuMemFree_v3020) => { "CUdeviceptr address" };
    (PFN_cuMemFree_v3020 names) => { "address" };
    (PFN_cuMemHostAlloc_v2020) => { "void **memory, size_t bytes, unsigned int flags" };
    (PFN_cuMemHostAlloc_v2020 names) => { "memory, bytes, flags" };
    (PFN_cuMemFreeHost_v2000) => { "void *memory" };
    (PFN_cuMemFreeHost_v2000 names) => { "memory" };
    (PFN_cuMemHostRegister_v6050) => { "void *memory, size_t bytes, unsigned int flags" };
    (PFN_cuMemHostRegister_v6050 names) => { "memory, bytes, flags" };
    (PFN_cuMemHostGetDevicePointer_v3020) => { "CUdeviceptr *address, void *memory, unsigned int flags" };
    (PFN_cuMemHostGetDevicePointer_v3020 names) => { "address, memory, flags" };
    (PFN_cuMemsetD8Async_v3020) => { "CUdeviceptr destination, unsigned char value, size_t count, CUstream stream" };
    (PFN_cuMemsetD8Async_v3020 names) => { "destination, value, count, stream" };
    (PFN_cuMemsetD8Async_v7000_ptsz) => { "CUdeviceptr destination, unsigned char value, size_t count, CUstream stream" };
    (PFN_cuMemsetD8Async_v7000_ptsz names) => { "destination, value, count, stream" };
    (PFN_cuMemsetD32Async_v3020) => { "CUdeviceptr destination, unsigned int value, size_t count, CUstream stream" };
    (PFN_cuMemsetD32Async_v3020 names) => { "destination, value, count, stream" };
    (PFN_cuMemsetD32Async_v7000_ptsz) => { "CUdeviceptr destination, unsigned int value, size_t count, CUstream stream" };
    (PFN_cuMemsetD32Async_v7000_ptsz names) => { "destination, value, count, stream" };
    (PFN_cuMemcpyHtoDAsync_v3020) => { "CUdeviceptr destination, const void *source, size_t bytes, CUstream stream" };
    (PFN_cuMemcpyHtoDAsync_v3020 names) => { "destination, source, bytes, stream" };
    (PFN_cuMemcpyHtoDAsync_v7000_ptsz) => { "CUdeviceptr destination, const void *source, size_t bytes, CUstream stream" };
    (PFN_cuMemcpyHtoDAsync_v7000_ptsz names) => { "destination, source, bytes, stream" };
    (PFN_cuMemcpyDtoHAsync_v3020) => { "void *destination, CUdeviceptr source, size_t bytes, CUstream stream" };
    (PFN_cuMemcpyDtoHAsync_v3020 names) => { "destination, source, bytes, stream" };
    (PFN_cuMemcpyDtoHAsync_v7000_ptsz) => { "void *destination, CUdeviceptr source, size_t bytes, CUstream stream" };
    (PFN_cuMemcpyDtoHAsync_v7000_ptsz names) => { "destination, source, bytes, stream" };
    (PFN_cuMemcpyDtoDAsync_v3020) => { "CUdeviceptr destination, CUdeviceptr source, size_t bytes, CUstream stream" };
    (PFN_cuMemcpyDtoDAsync_v3020 names) => { "destination, source, bytes, stream" };
    (PFN_cuMemcpyDtoDAsync_v7000_ptsz) => { "CUdeviceptr destination, CUdeviceptr source, size_t bytes, CUstream stream" };
    (PFN_cuMemcpyDtoDAsync_v7000_ptsz names) => { "destination, source, bytes, stream" };
    (PFN_cuImportExternalSemaphore_v10000) => { "CUexternalSemaphore *semaphore, const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC *description" };
    (PFN_cuImportExternalSemaphore_v10000 names) => { "semaphore, description" };
    (PFN_cuDestroyExternalSemaphore_v10000) => { "CUexternalSemaphore semaphore" };
    (PFN_cuDestroyExternalSemaphore_v10000 names) => { "semaphore" };
    (PFN_cuSignalExternalSemaphoresAsync_v10000) => { "const CUexternalSemaphore *semaphores, const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS *params, unsigned int count, CUstream stream" };
    (PFN_cuSignalExternalSemaphoresAsync_v10000 names) => { "semaphores, params, count, stream" };
    (PFN_cuSignalExternalSemaphoresAsync_v10000_ptsz) => { "const CUexternalSemaphore *semaphores, const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS *params, unsigned int count, CUstream stream" };
    (PFN_cuSignalExternalSemaphoresAsync_v10000_ptsz names) => { "semaphores, params, count, stream" };
    (PFN_cuWaitExternalSemaphoresAsync_v10000) => { "const CUexternalSemaphore *semaphores, const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS *params, unsigned int count, CUstream stream" };
    (PFN_cuWaitExternalSemaphoresAsync_v10000 names) => { "semaphores, params, count, stream" };
    (PFN_cuWaitExternalSemaphoresAsync_v10000_ptsz) => { "const CUexternalSemaphore *semaphores, const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS *params, unsigned int count, CUstream stream" };
    (PFN_cuWaitExternalSemaphoresAsync_v10000_ptsz names) => { "semaphores, params, count, stream" };
    (PFN_cuImportExternalMemory_v10000) => { "CUexternalMemory *memory, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *description" };
    (PFN_cuImportExternalMemory_v10000 names) => { "memory, description" };
    (PFN_cuExternalMemoryGetMappedBuffer_v10000) => { "CUdeviceptr *address, CUexternalMemory memory, const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *description" };
    (PFN_cuExternalMemoryGetMappedBuffer_v10000 names) => { "address, memory, description" };
    (PFN_cuDestroyExternalMemory_v10000) => { "CUexternalMemory memory" };
    (PFN_cuDestroyExternalMemory_v10000 names) => { "memory" };
    (PFN_cuCheckpointProcessGetRestoreThreadId_v12080) => { "int pid, int *tid" };
    (PFN_cuCheckpointProcessGetRestoreThreadId_v12080 names) => { "pid, tid" };
    (PFN_cuCheckpointProcessGetState_v12080) => { "int pid, CUprocessState *state" };
    (PFN_cuCheckpointProcessGetState_v12080 names) => { "pid, state" };
    (PFN_cuCheckpointProcessLock_v12080) => { "int pid, CUcheckpointLockArgs *args" };
    (PFN_cuCheckpointProcessLock_v12080 names) => { "pid, args" };
    (PFN_cuCheckpointProcessCheckpoint_v12080) => { "int pid, CUcheckpointCheckpointArgs *args" };
    (PFN_cuCheckpointProcessCheckpoint_v12080 names) => { "pid, args" };
    (PFN_cuCheckpointProcessRestore_v12080) => { "int pid, CUcheckpointRestoreArgs *args" };
    (PFN_cuCheckpointProcessRestore_v12080 names) => { "pid, args" };
    (PFN_cuCheckpointProcessUnlock_v12080) => { "int pid, CUcheckpointUnlockArgs *args" };
    (PFN_cuCheckpointProcessUnlock_v12080 names) => { "pid, args" };
    (PFN_cuCheckpointOperationComplete_v13040) => { "CUcheckpointOperationHandle handle" };
    (PFN_cuCheckpointOperationComplete_v13040 names) => { "handle" };
    (PFN_cuCoredumpGetAttribute_v12010) => { "CUcoredumpSettings setting, void *value, size_t *size" };
    (PFN_cuCoredumpGetAttribute_v12010 names) => { "setting, value, size" };
    (PFN_cuCoredumpGetAttributeGlobal_v12010) => { "CUcoredumpSettings setting, void *value, size_t *size" };
    (PFN_cuCoredumpGetAttributeGlobal_v12010 names) => { "setting, value, size" };
    (PFN_cuCoredumpSetAttribute_v12010) => { "CUcoredumpSettings setting, void *value, size_t *size" };
    (PFN_cuCoredumpSetAttribute_v12010 names) => { "setting, value, size" };
    (PFN_cuCoredumpSetAttributeGlobal_v12010) => { "CUcoredumpSettings setting, void *value, size_t *size" };
    (PFN_cuCoredumpSetAttributeGlobal_v12010 names) => { "setting, value, size" };
    (PFN_cuCoredumpRegisterStartCallback_v13020) => { "CUcoredumpStatusCallback callback, void *user_data, CUcoredumpCallbackHandle *handle" };
    (PFN_cuCoredumpRegisterStartCallback_v13020 names) => { "callback, user_data, handle" };
    (PFN_cuCoredumpRegisterCompleteCallback_v13020) => { "CUcoredumpStatusCallback callback, void *user_data, CUcoredumpCallbackHandle *handle" };
    (PFN_cuCoredumpRegisterCompleteCallback_v13020 names) => { "callback, user_data, handle" };
    (PFN_cuCoredumpDeregisterStartCallback_v13020) => { "CUcoredumpCallbackHandle handle" };
    (PFN_cuCoredumpDeregisterStartCallback_v13020 names) => { "handle" };
    (PFN_cuCoredumpDeregisterCompleteCallback_v13020) => { "CUcoredumpCallbackHandle handle" };
    (PFN_cuCoredumpDeregisterCompleteCallback_v13020 names) => { "handle" };
}
pub(crate) use parameters;
/// Calls `$callback!` with the list, for code that needs a line for each entry point: the
/// table in `symbols.rs` and the tests. The grammar of the list is no promise, and what is
/// published expands it nowhere else: the tests have the feature that exports the macro.
#[cfg_attr(feature = "__entry_points", macro_export)]
#[doc(hidden)]
macro_rules! for_each_entry_point {
    ($callback:ident) => { $callback! {
        INITIALIZE {
            required cuInit PFN_cuInit_v2000;
        }
        VERSION {
            required cuDriverGetVersion PFN_cuDriverGetVersion_v2020;
        }
        DRIVER__ENTRY__POINT {
            optional cuGetProcAddress PFN_cuGetProcAddress_v11030;
            optional cuGetProcAddress_v2 PFN_cuGetProcAddress_v12000;
        }
        ERROR {
            required cuGetErrorName PFN_cuGetErrorName_v6000;
            required cuGetErrorString PFN_cuGetErrorString_v6000;
        }
        LOGS {
            optional cuLogsCurrent PFN_cuLogsCurrent_v12090;
            optional cuLogsDumpToFile PFN_cuLogsDumpToFile_v12090;
            optional cuLogsDumpToMemory PFN_cuLogsDumpToMemory_v12090;
            optional cuLogsRegisterCallback PFN_cuLogsRegisterCallback_v12090, creates;
            optional cuLogsUnregisterCallback PFN_cuLogsUnregisterCallback_v12090;
        }
        DEVICE {
            required cuDeviceGet PFN_cuDeviceGet_v2000;
            required cuDeviceGetCount PFN_cuDeviceGetCount_v2000;
            required cuDeviceGetName PFN_cuDeviceGetName_v2000;
            required cuDeviceGetUuid PFN_cuDeviceGetUuid_v9020;
            optional cuDeviceGetUuid_v2 PFN_cuDeviceGetUuid_v11040;
            optional cuDeviceGetLuid PFN_cuDeviceGetLuid_v10000;
            required cuDeviceTotalMem_v2 (cuDeviceTotalMem) PFN_cuDeviceTotalMem_v3020;
            required cuDeviceGetAttribute PFN_cuDeviceGetAttribute_v2000;
            optional cuDeviceGetHostAtomicCapabilities PFN_cuDeviceGetHostAtomicCapabilities_v13000;
        }
        PEER__ACCESS {
            optional cuDeviceGetP2PAtomicCapabilities PFN_cuDeviceGetP2PAtomicCapabilities_v13000;
        }
        MEM {
            optional cuDeviceRegisterAsyncNotification PFN_cuDeviceRegisterAsyncNotification_v12040, creates;
            optional cuDeviceUnregisterAsyncNotification PFN_cuDeviceUnregisterAsyncNotification_v12040;
        }
        PRIMARY__CTX {
            required cuDevicePrimaryCtxRetain PFN_cuDevicePrimaryCtxRetain_v7000, creates;
            required cuDevicePrimaryCtxRelease_v2 (cuDevicePrimaryCtxRelease) PFN_cuDevicePrimaryCtxRelease_v11000;
            required cuDevicePrimaryCtxGetState PFN_cuDevicePrimaryCtxGetState_v7000;
        }
        CTX {
            required cuCtxCreate_v2 (cuCtxCreate) PFN_cuCtxCreate_v3020, creates;
            optional cuCtxCreate_v4 PFN_cuCtxCreate_v12050, creates;
            required cuCtxDestroy_v2 (cuCtxDestroy) PFN_cuCtxDestroy_v4000;
            required cuCtxGetCurrent PFN_cuCtxGetCurrent_v4000;
            required cuCtxSetCurrent PFN_cuCtxSetCurrent_v4000;
            required cuCtxPushCurrent_v2 (cuCtxPushCurrent) PFN_cuCtxPushCurrent_v4000;
            required cuCtxPopCurrent_v2 (cuCtxPopCurrent) PFN_cuCtxPopCurrent_v4000;
            required cuCtxGetDevice PFN_cuCtxGetDevice_v2000;
            optional cuCtxGetDevice_v2 PFN_cuCtxGetDevice_v13000;
            required cuCtxSynchronize PFN_cuCtxSynchronize_v2000;
            optional cuCtxSynchronize_v2 PFN_cuCtxSynchronize_v13000;
            required cuCtxGetStreamPriorityRange PFN_cuCtxGetStreamPriorityRange_v5050;
            optional cuCtxGetId PFN_cuCtxGetId_v12000;
            required cuCtxGetFlags PFN_cuCtxGetFlags_v7000;
        }
        GREEN__CONTEXTS {
            optional cuCtxFromGreenCtx PFN_cuCtxFromGreenCtx_v12040, creates;
            optional cuGreenCtxCreate PFN_cuGreenCtxCreate_v12040, creates;
            optional cuGreenCtxDestroy PFN_cuGreenCtxDestroy_v12040;
            optional cuGreenCtxGetId PFN_cuGreenCtxGetId_v12090;
            optional cuDeviceGetDevResource PFN_cuDeviceGetDevResource_v12040;
            optional cuCtxGetDevResource PFN_cuCtxGetDevResource_v12040;
            optional cuGreenCtxGetDevResource PFN_cuGreenCtxGetDevResource_v12040;
            optional cuDevSmResourceSplitByCount PFN_cuDevSmResourceSplitByCount_v12040;
            optional cuDevSmResourceSplit PFN_cuDevSmResourceSplit_v13010;
            optional cuDevResourceGenerateDesc PFN_cuDevResourceGenerateDesc_v12040;
        }
        CTX {
            optional cuCtxRecordEvent PFN_cuCtxRecordEvent_v12050;
            optional cuCtxWaitEvent PFN_cuCtxWaitEvent_v12050;
        }
        GREEN__CONTEXTS {
            optional cuGreenCtxRecordEvent PFN_cuGreenCtxRecordEvent_v12040;
            optional cuGreenCtxWaitEvent PFN_cuGreenCtxWaitEvent_v12040;
            optional cuGreenCtxStreamCreate PFN_cuGreenCtxStreamCreate_v12050, creates;
        }
        EVENT {
            required cuEventCreate PFN_cuEventCreate_v2000, creates;
            required cuEventRecord PFN_cuEventRecord_v2000 PFN_cuEventRecord_v7000_ptsz;
            optional cuEventRecordWithFlags PFN_cuEventRecordWithFlags_v11010 PFN_cuEventRecordWithFlags_v11010_ptsz;
            required cuEventQuery PFN_cuEventQuery_v2000;
            required cuEventSynchronize PFN_cuEventSynchronize_v2000;
            required cuEventDestroy_v2 (cuEventDestroy) PFN_cuEventDestroy_v4000;
            required cuEventElapsedTime PFN_cuEventElapsedTime_v2000;
            optional cuEventElapsedTime_v2 PFN_cuEventElapsedTime_v12080;
        }
        MEM {
            required cuIpcGetEventHandle PFN_cuIpcGetEventHandle_v4010;
            required cuIpcOpenEventHandle PFN_cuIpcOpenEventHandle_v4010, creates;
        }
        STREAM {
            required cuStreamCreate PFN_cuStreamCreate_v2000, creates;
            required cuStreamCreateWithPriority PFN_cuStreamCreateWithPriority_v5050, creates;
            required cuStreamDestroy_v2 (cuStreamDestroy) PFN_cuStreamDestroy_v4000;
            required cuStreamQuery PFN_cuStreamQuery_v2000 PFN_cuStreamQuery_v7000_ptsz;
            required cuStreamSynchronize PFN_cuStreamSynchronize_v2000 PFN_cuStreamSynchronize_v7000_ptsz;
            required cuStreamWaitEvent PFN_cuStreamWaitEvent_v3020 PFN_cuStreamWaitEvent_v7000_ptsz;
            required cuStreamGetPriority PFN_cuStreamGetPriority_v5050 PFN_cuStreamGetPriority_v7000_ptsz;
            required cuStreamGetFlags PFN_cuStreamGetFlags_v5050 PFN_cuStreamGetFlags_v7000_ptsz;
            optional cuStreamGetId PFN_cuStreamGetId_v12000 PFN_cuStreamGetId_v12000_ptsz;
            required cuStreamGetCtx PFN_cuStreamGetCtx_v9020 PFN_cuStreamGetCtx_v9020_ptsz;
            optional cuStreamGetCtx_v2 PFN_cuStreamGetCtx_v12050 PFN_cuStreamGetCtx_v12050_ptsz;
        }
        GREEN__CONTEXTS {
            optional cuStreamGetGreenCtx PFN_cuStreamGetGreenCtx_v12040;
        }
        STREAM {
            optional cuStreamGetDevice PFN_cuStreamGetDevice_v12080 PFN_cuStreamGetDevice_v12080_ptsz;
        }
        GREEN__CONTEXTS {
            optional cuStreamGetDevResource PFN_cuStreamGetDevResource_v13010 PFN_cuStreamGetDevResource_v13010_ptsz;
        }
        STREAM {
            optional cuStreamGetAttribute PFN_cuStreamGetAttribute_v11000 PFN_cuStreamGetAttribute_v11000_ptsz;
            optional cuStreamSetAttribute PFN_cuStreamSetAttribute_v11000 PFN_cuStreamSetAttribute_v11000_ptsz;
            optional cuStreamCopyAttributes PFN_cuStreamCopyAttributes_v11000 PFN_cuStreamCopyAttributes_v11000_ptsz;
            optional cuStreamAddCallback PFN_cuStreamAddCallback_v5000 PFN_cuStreamAddCallback_v7000_ptsz;
        }
        EXEC {
            required cuLaunchHostFunc PFN_cuLaunchHostFunc_v10000 PFN_cuLaunchHostFunc_v10000_ptsz;
            optional cuLaunchHostFunc_v2 PFN_cuLaunchHostFunc_v13010 PFN_cuLaunchHostFunc_v13010_ptsz;
        }
        STREAM {
            optional cuStreamAttachMemAsync PFN_cuStreamAttachMemAsync_v6000 PFN_cuStreamAttachMemAsync_v7000_ptsz;
            required cuStreamBeginCapture_v2 (cuStreamBeginCapture) PFN_cuStreamBeginCapture_v10010 PFN_cuStreamBeginCapture_v10010_ptsz;
            optional cuStreamBeginCaptureToGraph PFN_cuStreamBeginCaptureToGraph_v12030 PFN_cuStreamBeginCaptureToGraph_v12030_ptsz;
            optional cuStreamBeginRecaptureToGraph PFN_cuStreamBeginRecaptureToGraph_v13030 PFN_cuStreamBeginRecaptureToGraph_v13030_ptsz;
            optional cuStreamBeginCaptureToCig PFN_cuStreamBeginCaptureToCig_v13010 PFN_cuStreamBeginCaptureToCig_v13010_ptsz;
            required cuStreamEndCapture PFN_cuStreamEndCapture_v10000 PFN_cuStreamEndCapture_v10000_ptsz, creates;
            optional cuStreamEndCaptureToCig PFN_cuStreamEndCaptureToCig_v13010 PFN_cuStreamEndCaptureToCig_v13010_ptsz;
            required cuStreamIsCapturing PFN_cuStreamIsCapturing_v10000 PFN_cuStreamIsCapturing_v10000_ptsz;
            optional cuStreamGetCaptureInfo PFN_cuStreamGetCaptureInfo_v10010 PFN_cuStreamGetCaptureInfo_v10010_ptsz;
            optional cuStreamGetCaptureInfo_v2 PFN_cuStreamGetCaptureInfo_v11030 PFN_cuStreamGetCaptureInfo_v11030_ptsz;
            optional cuStreamGetCaptureInfo_v3 PFN_cuStreamGetCaptureInfo_v12030 PFN_cuStreamGetCaptureInfo_v12030_ptsz;
            optional cuStreamUpdateCaptureDependencies PFN_cuStreamUpdateCaptureDependencies_v11030 PFN_cuStreamUpdateCaptureDependencies_v11030_ptsz;
            optional cuStreamUpdateCaptureDependencies_v2 PFN_cuStreamUpdateCaptureDependencies_v12030 PFN_cuStreamUpdateCaptureDependencies_v12030_ptsz;
            required cuThreadExchangeStreamCaptureMode PFN_cuThreadExchangeStreamCaptureMode_v10010;
        }
        MEMOP {
            optional cuStreamWaitValue32 PFN_cuStreamWaitValue32_v8000 PFN_cuStreamWaitValue32_v8000_ptsz;
            optional cuStreamWaitValue32_v2 PFN_cuStreamWaitValue32_v11070 PFN_cuStreamWaitValue32_v11070_ptsz;
            optional cuStreamWaitValue64 PFN_cuStreamWaitValue64_v9000 PFN_cuStreamWaitValue64_v9000_ptsz;
            optional cuStreamWaitValue64_v2 PFN_cuStreamWaitValue64_v11070 PFN_cuStreamWaitValue64_v11070_ptsz;
            optional cuStreamWriteValue32 PFN_cuStreamWriteValue32_v8000 PFN_cuStreamWriteValue32_v8000_ptsz;
            optional cuStreamWriteValue32_v2 PFN_cuStreamWriteValue32_v11070 PFN_cuStreamWriteValue32_v11070_ptsz;
            optional cuStreamWriteValue64 PFN_cuStreamWriteValue64_v9000 PFN_cuStreamWriteValue64_v9000_ptsz;
            optional cuStreamWriteValue64_v2 PFN_cuStreamWriteValue64_v11070 PFN_cuStreamWriteValue64_v11070_ptsz;
            optional cuStreamBatchMemOp PFN_cuStreamBatchMemOp_v8000 PFN_cuStreamBatchMemOp_v8000_ptsz;
            optional cuStreamBatchMemOp_v2 PFN_cuStreamBatchMemOp_v11070 PFN_cuStreamBatchMemOp_v11070_ptsz;
        }
        GRAPH {
            required cuGraphCreate PFN_cuGraphCreate_v10000, creates;
            required cuGraphDestroy PFN_cuGraphDestroy_v10000;
            optional cuGraphGetId PFN_cuGraphGetId_v13010;
            optional cuGraphNodeGetLocalId PFN_cuGraphNodeGetLocalId_v13010;
            optional cuGraphNodeGetToolsId PFN_cuGraphNodeGetToolsId_v13010;
            optional cuGraphInstantiate_v2 (cuGraphInstantiate) PFN_cuGraphInstantiate_v11000, creates;
            optional cuGraphInstantiateWithFlags PFN_cuGraphInstantiateWithFlags_v11040, creates;
            required cuGraphLaunch PFN_cuGraphLaunch_v10000 PFN_cuGraphLaunch_v10000_ptsz;
            required cuGraphExecDestroy PFN_cuGraphExecDestroy_v10000;
            optional cuGraphExecGetId PFN_cuGraphExecGetId_v13010;
            optional cuGraphAddEventRecordNode PFN_cuGraphAddEventRecordNode_v11010, creates;
            optional cuGraphAddEventWaitNode PFN_cuGraphAddEventWaitNode_v11010, creates;
            optional cuGraphEventRecordNodeGetEvent PFN_cuGraphEventRecordNodeGetEvent_v11010;
            optional cuGraphEventRecordNodeSetEvent PFN_cuGraphEventRecordNodeSetEvent_v11010;
            optional cuGraphEventWaitNodeGetEvent PFN_cuGraphEventWaitNodeGetEvent_v11010;
            optional cuGraphEventWaitNodeSetEvent PFN_cuGraphEventWaitNodeSetEvent_v11010;
            optional cuGraphExecEventRecordNodeSetEvent PFN_cuGraphExecEventRecordNodeSetEvent_v11010;
            optional cuGraphExecEventWaitNodeSetEvent PFN_cuGraphExecEventWaitNodeSetEvent_v11010;
            optional cuGraphAddHostNode PFN_cuGraphAddHostNode_v10000, creates;
            optional cuGraphHostNodeGetParams PFN_cuGraphHostNodeGetParams_v10000;
            optional cuGraphHostNodeSetParams PFN_cuGraphHostNodeSetParams_v10000;
            optional cuGraphExecHostNodeSetParams PFN_cuGraphExecHostNodeSetParams_v10020;
            optional cuGraphAddExternalSemaphoresSignalNode PFN_cuGraphAddExternalSemaphoresSignalNode_v11020, creates;
            optional cuGraphExternalSemaphoresSignalNodeGetParams PFN_cuGraphExternalSemaphoresSignalNodeGetParams_v11020;
            optional cuGraphExternalSemaphoresSignalNodeSetParams PFN_cuGraphExternalSemaphoresSignalNodeSetParams_v11020;
            optional cuGraphExecExternalSemaphoresSignalNodeSetParams PFN_cuGraphExecExternalSemaphoresSignalNodeSetParams_v11020;
            optional cuGraphAddExternalSemaphoresWaitNode PFN_cuGraphAddExternalSemaphoresWaitNode_v11020, creates;
            optional cuGraphExternalSemaphoresWaitNodeGetParams PFN_cuGraphExternalSemaphoresWaitNodeGetParams_v11020;
            optional cuGraphExternalSemaphoresWaitNodeSetParams PFN_cuGraphExternalSemaphoresWaitNodeSetParams_v11020;
            optional cuGraphExecExternalSemaphoresWaitNodeSetParams PFN_cuGraphExecExternalSemaphoresWaitNodeSetParams_v11020;
            optional cuGraphAddBatchMemOpNode PFN_cuGraphAddBatchMemOpNode_v11070, creates;
            optional cuGraphBatchMemOpNodeGetParams PFN_cuGraphBatchMemOpNodeGetParams_v11070;
            optional cuGraphBatchMemOpNodeSetParams PFN_cuGraphBatchMemOpNodeSetParams_v11070;
            optional cuGraphExecBatchMemOpNodeSetParams PFN_cuGraphExecBatchMemOpNodeSetParams_v11070;
        }
        MEM {
            required cuMemGetInfo_v2 (cuMemGetInfo) PFN_cuMemGetInfo_v3020;
            required cuIpcGetMemHandle PFN_cuIpcGetMemHandle_v4010;
            optional cuIpcOpenMemHandle_v2 (cuIpcOpenMemHandle) PFN_cuIpcOpenMemHandle_v11000;
            required cuIpcCloseMemHandle PFN_cuIpcCloseMemHandle_v4010;
            required cuMemAlloc_v2 (cuMemAlloc) PFN_cuMemAlloc_v3020;
            required cuMemFree_v2 (cuMemFree) PFN_cuMemFree_v3020;
            required cuMemHostAlloc PFN_cuMemHostAlloc_v2020;
            required cuMemFreeHost PFN_cuMemFreeHost_v2000;
            required cuMemHostRegister_v2 (cuMemHostRegister) PFN_cuMemHostRegister_v6050;
            required cuMemHostGetDevicePointer_v2 (cuMemHostGetDevicePointer) PFN_cuMemHostGetDevicePointer_v3020;
            required cuMemsetD8Async PFN_cuMemsetD8Async_v3020 PFN_cuMemsetD8Async_v7000_ptsz;
            required cuMemsetD32Async PFN_cuMemsetD32Async_v3020 PFN_cuMemsetD32Async_v7000_ptsz;
            required cuMemcpyHtoDAsync_v2 (cuMemcpyHtoDAsync) PFN_cuMemcpyHtoDAsync_v3020 PFN_cuMemcpyHtoDAsync_v7000_ptsz;
            required cuMemcpyDtoHAsync_v2 (cuMemcpyDtoHAsync) PFN_cuMemcpyDtoHAsync_v3020 PFN_cuMemcpyDtoHAsync_v7000_ptsz;
            required cuMemcpyDtoDAsync_v2 (cuMemcpyDtoDAsync) PFN_cuMemcpyDtoDAsync_v3020 PFN_cuMemcpyDtoDAsync_v7000_ptsz;
        }
        EXTRES__INTEROP {
            optional cuImportExternalSemaphore PFN_cuImportExternalSemaphore_v10000, creates;
            optional cuDestroyExternalSemaphore PFN_cuDestroyExternalSemaphore_v10000;
            optional cuSignalExternalSemaphoresAsync PFN_cuSignalExternalSemaphoresAsync_v10000 PFN_cuSignalExternalSemaphoresAsync_v10000_ptsz;
            optional cuWaitExternalSemaphoresAsync PFN_cuWaitExternalSemaphoresAsync_v10000 PFN_cuWaitExternalSemaphoresAsync_v10000_ptsz;
            optional cuImportExternalMemory PFN_cuImportExternalMemory_v10000, creates;
            optional cuExternalMemoryGetMappedBuffer PFN_cuExternalMemoryGetMappedBuffer_v10000;
            optional cuDestroyExternalMemory PFN_cuDestroyExternalMemory_v10000;
        }
        CHECKPOINT {
            optional cuCheckpointProcessGetRestoreThreadId PFN_cuCheckpointProcessGetRestoreThreadId_v12080;
            optional cuCheckpointProcessGetState PFN_cuCheckpointProcessGetState_v12080;
            optional cuCheckpointProcessLock PFN_cuCheckpointProcessLock_v12080;
            optional cuCheckpointProcessCheckpoint PFN_cuCheckpointProcessCheckpoint_v12080;
            optional cuCheckpointProcessRestore PFN_cuCheckpointProcessRestore_v12080;
            optional cuCheckpointProcessUnlock PFN_cuCheckpointProcessUnlock_v12080;
            optional cuCheckpointOperationComplete PFN_cuCheckpointOperationComplete_v13040;
        }
        COREDUMP {
            optional cuCoredumpGetAttribute PFN_cuCoredumpGetAttribute_v12010;
            optional cuCoredumpGetAttributeGlobal PFN_cuCoredumpGetAttributeGlobal_v12010;
            optional cuCoredumpSetAttribute PFN_cuCoredumpSetAttribute_v12010;
            optional cuCoredumpSetAttributeGlobal PFN_cuCoredumpSetAttributeGlobal_v12010;
            optional cuCoredumpRegisterStartCallback PFN_cuCoredumpRegisterStartCallback_v13020, creates;
            optional cuCoredumpRegisterCompleteCallback PFN_cuCoredumpRegisterCompleteCallback_v13020, creates;
            optional cuCoredumpDeregisterStartCallback PFN_cuCoredumpDeregisterStartCallback_v13020;
            optional cuCoredumpDeregisterCompleteCallback PFN_cuCoredumpDeregisterCompleteCallback_v13020;
        }
    } };
}
pub(crate) use for_each_entry_point;
