/*
 * The one list of what is bound: types, constants, and one function-pointer
 * typedef for every entry point and ABI version.
 *
 * Rules of this file:
 *  - It stands alone: nothing is included, and it is read for one fixed
 *    target, so the bindings come out the same on every host.
 *  - No `long`, whose width differs from target to target, and `char` for text
 *    only: the bytes of handles and UUIDs are `unsigned char`.
 *  - An entry point's typedef is named PFN_<function>_v<version>[_ptsz]. The
 *    version is the CUDA release that introduced this ABI (12080 is 12.8);
 *    `_ptsz` is the twin for which the stream 0 means the per-thread stream.
 *  - A comment before the typedef has `required` if every driver from CUDA 11.0
 *    on has the function, and the exported name if that is another one than
 *    <function>. A comment `page X` begins what NVIDIA describes in its page
 *    group__CUDA__X.html.
 *  - Every union has a name. One that the vendor leaves without is called
 *    <struct>_u, after the struct that holds it, and its member `u` where the
 *    vendor names no member either.
 *  - A number never changes its meaning. New ones are added at the end of
 *    their group.
 *
 * tools/abi-proof compares all of it with the vendor's own headers.
 */

typedef __SIZE_TYPE__ size_t;
typedef unsigned int cuuint32_t;
typedef unsigned long long cuuint64_t;

/* ---- Handles ---- */

typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUgreenCtx_st *CUgreenCtx;
typedef struct CUdevResourceDesc_st *CUdevResourceDesc;
typedef struct CUevent_st *CUevent;
typedef struct CUstream_st *CUstream;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUextSemaphore_st *CUexternalSemaphore;
typedef struct CUextMemory_st *CUexternalMemory;
typedef struct CUlogsCallbackEntry_st *CUlogsCallbackHandle;
typedef struct CUasyncCallbackEntry_st *CUasyncCallbackHandle;
typedef struct CUcoredumpCallbackEntry_st *CUcoredumpCallbackHandle;
typedef struct CUIcheckpointOperation_st *CUcheckpointOperationHandle;

/* A place in the driver's log, not a pointer. */
typedef unsigned int CUlogIterator;

/* Stream handles that name a default stream. build.rs gives them the handle's type. */
static const size_t CU_STREAM_LEGACY = 0x1;
static const size_t CU_STREAM_PER_THREAD = 0x2;

/* ---- Result codes ---- */

typedef enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_NOT_INITIALIZED = 3,
    CUDA_ERROR_DEINITIALIZED = 4,
    CUDA_ERROR_PROFILER_DISABLED = 5,
    CUDA_ERROR_PROFILER_NOT_INITIALIZED = 6,
    CUDA_ERROR_PROFILER_ALREADY_STARTED = 7,
    CUDA_ERROR_PROFILER_ALREADY_STOPPED = 8,
    CUDA_ERROR_STUB_LIBRARY = 34,
    CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER = 36,
    CUDA_ERROR_DEVICE_UNAVAILABLE = 46,
    CUDA_ERROR_MULTICAST_RESOURCE_FULL = 47,
    CUDA_ERROR_NO_DEVICE = 100,
    CUDA_ERROR_INVALID_DEVICE = 101,
    CUDA_ERROR_DEVICE_NOT_LICENSED = 102,
    CUDA_ERROR_INVALID_IMAGE = 200,
    CUDA_ERROR_INVALID_CONTEXT = 201,
    CUDA_ERROR_CONTEXT_ALREADY_CURRENT = 202,
    CUDA_ERROR_MAP_FAILED = 205,
    CUDA_ERROR_UNMAP_FAILED = 206,
    CUDA_ERROR_ARRAY_IS_MAPPED = 207,
    CUDA_ERROR_ALREADY_MAPPED = 208,
    CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
    CUDA_ERROR_ALREADY_ACQUIRED = 210,
    CUDA_ERROR_NOT_MAPPED = 211,
    CUDA_ERROR_NOT_MAPPED_AS_ARRAY = 212,
    CUDA_ERROR_NOT_MAPPED_AS_POINTER = 213,
    CUDA_ERROR_ECC_UNCORRECTABLE = 214,
    CUDA_ERROR_UNSUPPORTED_LIMIT = 215,
    CUDA_ERROR_CONTEXT_ALREADY_IN_USE = 216,
    CUDA_ERROR_PEER_ACCESS_UNSUPPORTED = 217,
    CUDA_ERROR_INVALID_PTX = 218,
    CUDA_ERROR_INVALID_GRAPHICS_CONTEXT = 219,
    CUDA_ERROR_NVLINK_UNCORRECTABLE = 220,
    CUDA_ERROR_JIT_COMPILER_NOT_FOUND = 221,
    CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222,
    CUDA_ERROR_JIT_COMPILATION_DISABLED = 223,
    CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY = 224,
    CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC = 225,
    CUDA_ERROR_CONTAINED = 226,
    CUDA_ERROR_INSUFFICIENT_LOADER_VERSION = 227,
    CUDA_ERROR_INVALID_SOURCE = 300,
    CUDA_ERROR_FILE_NOT_FOUND = 301,
    CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND = 302,
    CUDA_ERROR_SHARED_OBJECT_INIT_FAILED = 303,
    CUDA_ERROR_OPERATING_SYSTEM = 304,
    CUDA_ERROR_INVALID_HANDLE = 400,
    CUDA_ERROR_ILLEGAL_STATE = 401,
    CUDA_ERROR_LOSSY_QUERY = 402,
    CUDA_ERROR_NOT_FOUND = 500,
    CUDA_ERROR_NOT_READY = 600,
    CUDA_ERROR_ILLEGAL_ADDRESS = 700,
    CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701,
    CUDA_ERROR_LAUNCH_TIMEOUT = 702,
    CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING = 703,
    CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED = 704,
    CUDA_ERROR_PEER_ACCESS_NOT_ENABLED = 705,
    CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE = 708,
    CUDA_ERROR_CONTEXT_IS_DESTROYED = 709,
    CUDA_ERROR_ASSERT = 710,
    CUDA_ERROR_TOO_MANY_PEERS = 711,
    CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED = 712,
    CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED = 713,
    CUDA_ERROR_HARDWARE_STACK_ERROR = 714,
    CUDA_ERROR_ILLEGAL_INSTRUCTION = 715,
    CUDA_ERROR_MISALIGNED_ADDRESS = 716,
    CUDA_ERROR_INVALID_ADDRESS_SPACE = 717,
    CUDA_ERROR_INVALID_PC = 718,
    CUDA_ERROR_LAUNCH_FAILED = 719,
    CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE = 720,
    CUDA_ERROR_TENSOR_MEMORY_LEAK = 721,
    CUDA_ERROR_NOT_PERMITTED = 800,
    CUDA_ERROR_NOT_SUPPORTED = 801,
    CUDA_ERROR_SYSTEM_NOT_READY = 802,
    CUDA_ERROR_SYSTEM_DRIVER_MISMATCH = 803,
    CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE = 804,
    CUDA_ERROR_MPS_CONNECTION_FAILED = 805,
    CUDA_ERROR_MPS_RPC_FAILURE = 806,
    CUDA_ERROR_MPS_SERVER_NOT_READY = 807,
    CUDA_ERROR_MPS_MAX_CLIENTS_REACHED = 808,
    CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED = 809,
    CUDA_ERROR_MPS_CLIENT_TERMINATED = 810,
    CUDA_ERROR_CDP_NOT_SUPPORTED = 811,
    CUDA_ERROR_CDP_VERSION_MISMATCH = 812,
    CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
    CUDA_ERROR_STREAM_CAPTURE_INVALIDATED = 901,
    CUDA_ERROR_STREAM_CAPTURE_MERGE = 902,
    CUDA_ERROR_STREAM_CAPTURE_UNMATCHED = 903,
    CUDA_ERROR_STREAM_CAPTURE_UNJOINED = 904,
    CUDA_ERROR_STREAM_CAPTURE_ISOLATION = 905,
    CUDA_ERROR_STREAM_CAPTURE_IMPLICIT = 906,
    CUDA_ERROR_CAPTURED_EVENT = 907,
    CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD = 908,
    CUDA_ERROR_TIMEOUT = 909,
    CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE = 910,
    CUDA_ERROR_EXTERNAL_DEVICE = 911,
    CUDA_ERROR_INVALID_CLUSTER_SIZE = 912,
    CUDA_ERROR_FUNCTION_NOT_LOADED = 913,
    CUDA_ERROR_INVALID_RESOURCE_TYPE = 914,
    CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION = 915,
    CUDA_ERROR_KEY_ROTATION = 916,
    CUDA_ERROR_STREAM_DETACHED = 917,
    CUDA_ERROR_GRAPH_RECAPTURE_FAILURE = 918,
    CUDA_ERROR_FABRIC_NOT_READY = 919,
    CUDA_ERROR_UNKNOWN = 999,
} CUresult;

/* ---- Device attributes ---- */

typedef enum {
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
    CU_DEVICE_ATTRIBUTE_INTEGRATED = 18,
    CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY = 19,
    CU_DEVICE_ATTRIBUTE_PCI_BUS_ID = 33,
    CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID = 34,
    CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING = 41,
    CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID = 50,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
    CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED = 78,
    CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY = 83,
    CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS = 89,
    CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1 = 92,
    CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS_V1 = 93,
    CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR_V1 = 94,
    CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES = 98,
    CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED = 113,
    CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS = 122,
    CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR = 123,
    CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED = 125,
} CUdevice_attribute;

/* ---- Enums that the driver returns, or that select what it returns ---- */

typedef enum {
    CU_GET_PROC_ADDRESS_SUCCESS = 0,
    CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND = 1,
    CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT = 2,
} CUdriverProcAddressQueryResult;

typedef enum {
    CU_STREAM_CAPTURE_STATUS_NONE = 0,
    CU_STREAM_CAPTURE_STATUS_ACTIVE = 1,
    CU_STREAM_CAPTURE_STATUS_INVALIDATED = 2,
} CUstreamCaptureStatus;

typedef enum {
    CU_STREAM_CAPTURE_MODE_GLOBAL = 0,
    CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1,
    CU_STREAM_CAPTURE_MODE_RELAXED = 2,
} CUstreamCaptureMode;

typedef enum {
    CU_GRAPH_RECAPTURE_ELIGIBLE_FOR_UPDATE = 0,
    CU_GRAPH_RECAPTURE_INELIGIBLE_FOR_UPDATE = 1,
    CU_GRAPH_RECAPTURE_ERROR = 2,
} CUgraphRecaptureStatus;

/* The launch attributes that a stream can carry, or that record an event. */
typedef enum {
    CU_LAUNCH_ATTRIBUTE_IGNORE = 0,
    CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW = 1,
    CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY = 3,
    CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT = 7,
    CU_LAUNCH_ATTRIBUTE_PRIORITY = 8,
    CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP = 9,
    CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN = 10,
    CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT = 12,
    CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING = 16,
} CUlaunchAttributeID;

typedef enum {
    CU_ACCESS_PROPERTY_NORMAL = 0,
    CU_ACCESS_PROPERTY_STREAMING = 1,
    CU_ACCESS_PROPERTY_PERSISTING = 2,
} CUaccessProperty;

typedef enum {
    CU_SYNC_POLICY_AUTO = 1,
    CU_SYNC_POLICY_SPIN = 2,
    CU_SYNC_POLICY_YIELD = 3,
    CU_SYNC_POLICY_BLOCKING_SYNC = 4,
} CUsynchronizationPolicy;

typedef enum {
    CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT = 0,
    CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE = 1,
} CUlaunchMemSyncDomain;

typedef enum {
    CU_STREAM_MEM_OP_WAIT_VALUE_32 = 1,
    CU_STREAM_MEM_OP_WRITE_VALUE_32 = 2,
    CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES = 3,
    CU_STREAM_MEM_OP_WAIT_VALUE_64 = 4,
    CU_STREAM_MEM_OP_WRITE_VALUE_64 = 5,
    CU_STREAM_MEM_OP_BARRIER = 6,
    CU_STREAM_MEM_OP_ATOMIC_REDUCTION = 8,
} CUstreamBatchMemOpType;

typedef enum {
    CU_STREAM_ATOMIC_REDUCTION_OP_ADD = 0,
    CU_STREAM_ATOMIC_REDUCTION_OP_AND = 5,
    CU_STREAM_ATOMIC_REDUCTION_OP_OR = 6,
} CUstreamAtomicReductionOpType;

typedef enum {
    CU_STREAM_ATOMIC_REDUCTION_UNSIGNED_32 = 0x0e,
    CU_STREAM_ATOMIC_REDUCTION_UNSIGNED_64 = 0x16,
} CUstreamAtomicReductionDataType;

typedef enum {
    CU_ATOMIC_OPERATION_INTEGER_ADD = 0,
    CU_ATOMIC_OPERATION_INTEGER_MIN = 1,
    CU_ATOMIC_OPERATION_INTEGER_MAX = 2,
    CU_ATOMIC_OPERATION_INTEGER_INCREMENT = 3,
    CU_ATOMIC_OPERATION_INTEGER_DECREMENT = 4,
    CU_ATOMIC_OPERATION_AND = 5,
    CU_ATOMIC_OPERATION_OR = 6,
    CU_ATOMIC_OPERATION_XOR = 7,
    CU_ATOMIC_OPERATION_EXCHANGE = 8,
    CU_ATOMIC_OPERATION_CAS = 9,
    CU_ATOMIC_OPERATION_FLOAT_ADD = 10,
    CU_ATOMIC_OPERATION_FLOAT_MIN = 11,
    CU_ATOMIC_OPERATION_FLOAT_MAX = 12,
} CUatomicOperation;

typedef enum {
    CU_LOG_LEVEL_ERROR = 0,
    CU_LOG_LEVEL_WARNING = 1,
} CUlogLevel;

typedef enum {
    CU_ASYNC_NOTIFICATION_TYPE_OVER_BUDGET = 1,
} CUasyncNotificationType;

typedef enum {
    CU_PROCESS_STATE_RUNNING = 0,
    CU_PROCESS_STATE_LOCKED = 1,
    CU_PROCESS_STATE_CHECKPOINTED = 2,
    CU_PROCESS_STATE_FAILED = 3,
    CU_PROCESS_STATE_CHECKPOINTING = 4,
    CU_PROCESS_STATE_RESTORING = 5,
} CUprocessState;

typedef enum {
    CU_COREDUMP_ENABLE_ON_EXCEPTION = 1,
    CU_COREDUMP_TRIGGER_HOST = 2,
    CU_COREDUMP_LIGHTWEIGHT = 3,
    CU_COREDUMP_ENABLE_USER_TRIGGER = 4,
    CU_COREDUMP_FILE = 5,
    CU_COREDUMP_PIPE = 6,
    CU_COREDUMP_GENERATION_FLAGS = 7,
} CUcoredumpSettings;

typedef enum {
    CU_EXEC_AFFINITY_TYPE_SM_COUNT = 0,
} CUexecAffinityType;

typedef enum {
    CIG_DATA_TYPE_D3D12_COMMAND_QUEUE = 1,
    CIG_DATA_TYPE_NV_BLOB = 2,
} CUcigDataType;

typedef enum {
    STREAM_CIG_DATA_TYPE_D3D12_COMMAND_LIST = 1,
    STREAM_CIG_DATA_TYPE_VULKAN_COMMAND_BUFFER_HANDLE_NV = 2,
} CUstreamCigDataType;

typedef enum {
    CU_DEV_RESOURCE_TYPE_INVALID = 0,
    CU_DEV_RESOURCE_TYPE_SM = 1,
    CU_DEV_RESOURCE_TYPE_WORKQUEUE_CONFIG = 1000,
    CU_DEV_RESOURCE_TYPE_WORKQUEUE = 10000,
} CUdevResourceType;

typedef enum {
    CU_WORKQUEUE_SCOPE_DEVICE_CTX = 0,
    CU_WORKQUEUE_SCOPE_GREEN_CTX_BALANCED = 1,
} CUdevWorkqueueConfigScope;

typedef enum {
    CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD = 1,
    CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_WIN32 = 2,
    CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_WIN32_KMT = 3,
    CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_D3D12_FENCE = 4,
    CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_D3D11_FENCE = 5,
    CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_NVSCISYNC = 6,
    CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_D3D11_KEYED_MUTEX = 7,
    CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_D3D11_KEYED_MUTEX_KMT = 8,
    CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD = 9,
    CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_WIN32 = 10,
} CUexternalSemaphoreHandleType;

typedef enum {
    CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD = 1,
    CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_WIN32 = 2,
    CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_WIN32_KMT = 3,
    CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D12_HEAP = 4,
    CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D12_RESOURCE = 5,
    CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D11_RESOURCE = 6,
    CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D11_RESOURCE_KMT = 7,
    CU_EXTERNAL_MEMORY_HANDLE_TYPE_NVSCIBUF = 8,
    CU_EXTERNAL_MEMORY_HANDLE_TYPE_DMABUF_FD = 9,
} CUexternalMemoryHandleType;

/* ---- Flags: passed as plain unsigned integers ---- */

typedef enum {
    CU_EVENT_DEFAULT = 0x0,
    CU_EVENT_BLOCKING_SYNC = 0x1,
    CU_EVENT_DISABLE_TIMING = 0x2,
    CU_EVENT_INTERPROCESS = 0x4,
} CUevent_flags;

typedef enum {
    CU_EVENT_RECORD_DEFAULT = 0x0,
    CU_EVENT_RECORD_EXTERNAL = 0x1,
} CUevent_record_flags;

/* How device memory of another process is opened. */
typedef enum {
    CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS = 0x1,
} CUipcMem_flags;

typedef enum {
    CU_EVENT_WAIT_DEFAULT = 0x0,
    CU_EVENT_WAIT_EXTERNAL = 0x1,
} CUevent_wait_flags;

typedef enum {
    CU_STREAM_DEFAULT = 0x0,
    CU_STREAM_NON_BLOCKING = 0x1,
} CUstream_flags;

typedef enum {
    CU_GREEN_CTX_NONE = 0x0,
    CU_GREEN_CTX_DEFAULT_STREAM = 0x1,
} CUgreenCtxCreate_flags;

typedef enum {
    CU_CTX_SCHED_AUTO = 0x00,
    CU_CTX_SCHED_SPIN = 0x01,
    CU_CTX_SCHED_YIELD = 0x02,
    CU_CTX_SCHED_BLOCKING_SYNC = 0x04,
    CU_CTX_SCHED_MASK = 0x07,
    CU_CTX_MAP_HOST = 0x08,
    CU_CTX_LMEM_RESIZE_TO_MAX = 0x10,
    CU_CTX_COREDUMP_ENABLE = 0x20,
    CU_CTX_USER_COREDUMP_ENABLE = 0x40,
    CU_CTX_SYNC_MEMOPS = 0x80,
} CUctx_flags;

typedef enum {
    CU_GET_PROC_ADDRESS_DEFAULT = 0x0,
    CU_GET_PROC_ADDRESS_LEGACY_STREAM = 0x1,
    CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM = 0x2,
} CUdriverProcAddress_flags;

typedef enum {
    CU_STREAM_ADD_CAPTURE_DEPENDENCIES = 0x0,
    CU_STREAM_SET_CAPTURE_DEPENDENCIES = 0x1,
} CUstreamUpdateCaptureDependencies_flags;

typedef enum {
    CU_STREAM_WAIT_VALUE_GEQ = 0x0,
    CU_STREAM_WAIT_VALUE_EQ = 0x1,
    CU_STREAM_WAIT_VALUE_AND = 0x2,
    CU_STREAM_WAIT_VALUE_NOR = 0x3,
    CU_STREAM_WAIT_VALUE_FLUSH = 0x40000000,
} CUstreamWaitValue_flags;

typedef enum {
    CU_STREAM_WRITE_VALUE_DEFAULT = 0x0,
    CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER = 0x1,
} CUstreamWriteValue_flags;

typedef enum {
    CU_STREAM_MEMORY_BARRIER_TYPE_SYS = 0x0,
    CU_STREAM_MEMORY_BARRIER_TYPE_GPU = 0x1,
} CUstreamMemoryBarrier_flags;

typedef enum {
    CU_HOST_TASK_BLOCKING = 0x0,
    CU_HOST_TASK_SPINWAIT = 0x1,
} CUhostTaskSyncMode;

typedef enum {
    CU_MEM_ATTACH_GLOBAL = 0x1,
    CU_MEM_ATTACH_HOST = 0x2,
    CU_MEM_ATTACH_SINGLE = 0x4,
} CUmemAttach_flags;

typedef enum {
    CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH = 0x1,
    CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD = 0x2,
    CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH = 0x4,
    CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY = 0x8,
} CUgraphInstantiate_flags;

/* What a device's atomic operation can do, of the widths and kinds that it is asked for. */
typedef enum {
    CU_ATOMIC_CAPABILITY_SIGNED = 0x01,
    CU_ATOMIC_CAPABILITY_UNSIGNED = 0x02,
    CU_ATOMIC_CAPABILITY_REDUCTION = 0x04,
    CU_ATOMIC_CAPABILITY_SCALAR_32 = 0x08,
    CU_ATOMIC_CAPABILITY_SCALAR_64 = 0x10,
    CU_ATOMIC_CAPABILITY_SCALAR_128 = 0x20,
    CU_ATOMIC_CAPABILITY_VECTOR_32x4 = 0x40,
} CUatomicOperationCapability;

typedef enum {
    CU_COREDUMP_DEFAULT_FLAGS = 0x0,
    CU_COREDUMP_SKIP_NONRELOCATED_ELF_IMAGES = 0x1,
    CU_COREDUMP_SKIP_GLOBAL_MEMORY = 0x2,
    CU_COREDUMP_SKIP_SHARED_MEMORY = 0x4,
    CU_COREDUMP_SKIP_LOCAL_MEMORY = 0x8,
    CU_COREDUMP_SKIP_ABORT = 0x10,
    CU_COREDUMP_SKIP_CONSTBANK_MEMORY = 0x20,
    CU_COREDUMP_GZIP_COMPRESS = 0x40,
    CU_COREDUMP_FAULTED_CONTEXTS_ONLY = 0x80,
    CU_COREDUMP_SKIP_TENSOR_MEMORY = 0x100,
    CU_COREDUMP_NO_ERRBAR_AT_EXIT = 0x40000000,
} CUCoredumpGenerationFlags;

/* The value of CUgraphEdgeData.type, which is one byte there. */
typedef enum {
    CU_GRAPH_DEPENDENCY_TYPE_DEFAULT = 0,
    CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC = 1,
} CUgraphDependencyType;

/* Of external semaphores of NvSciSync alone. */
#define CUDA_EXTERNAL_SEMAPHORE_SIGNAL_SKIP_NVSCIBUF_MEMSYNC 0x01
#define CUDA_EXTERNAL_SEMAPHORE_WAIT_SKIP_NVSCIBUF_MEMSYNC 0x02

/* The external memory is an allocation of its own. */
#define CUDA_EXTERNAL_MEMORY_DEDICATED 0x1

#define CU_MEMHOSTALLOC_PORTABLE 0x01
#define CU_MEMHOSTALLOC_DEVICEMAP 0x02
#define CU_MEMHOSTALLOC_WRITECOMBINED 0x04

/* What memory of the program is registered for. */
#define CU_MEMHOSTREGISTER_PORTABLE 0x01
#define CU_MEMHOSTREGISTER_DEVICEMAP 0x02
#define CU_MEMHOSTREGISTER_READ_ONLY 0x08

/* ---- Structs ---- */

static const size_t CU_IPC_HANDLE_SIZE = 64;

typedef struct {
    unsigned char reserved[64];
} CUipcEventHandle;

typedef struct {
    unsigned char reserved[64];
} CUipcMemHandle;

typedef struct {
    unsigned char bytes[16];
} CUuuid;

typedef union {
    cuuint32_t value;
    cuuint64_t value64;
} CUstreamMemOpWaitValueParams_u;

typedef struct {
    CUstreamBatchMemOpType operation;
    CUdeviceptr address;
    CUstreamMemOpWaitValueParams_u u;
    unsigned int flags;
    CUdeviceptr alias;
} CUstreamMemOpWaitValueParams;

typedef union {
    cuuint32_t value;
    cuuint64_t value64;
} CUstreamMemOpWriteValueParams_u;

typedef struct {
    CUstreamBatchMemOpType operation;
    CUdeviceptr address;
    CUstreamMemOpWriteValueParams_u u;
    unsigned int flags;
    CUdeviceptr alias;
} CUstreamMemOpWriteValueParams;

typedef struct {
    CUstreamBatchMemOpType operation;
    unsigned int flags;
} CUstreamMemOpFlushRemoteWritesParams;

typedef struct {
    CUstreamBatchMemOpType operation;
    unsigned int flags;
} CUstreamMemOpMemoryBarrierParams;

typedef struct {
    CUstreamBatchMemOpType operation;
    unsigned int flags;
    CUstreamAtomicReductionOpType reductionOp;
    CUstreamAtomicReductionDataType dataType;
    CUdeviceptr address;
    cuuint64_t value;
    CUdeviceptr alias;
} CUstreamMemOpAtomicReductionParams;

typedef union {
    CUstreamBatchMemOpType operation;
    CUstreamMemOpWaitValueParams waitValue;
    CUstreamMemOpWriteValueParams writeValue;
    CUstreamMemOpFlushRemoteWritesParams flushRemoteWrites;
    CUstreamMemOpMemoryBarrierParams memoryBarrier;
    CUstreamMemOpAtomicReductionParams atomicReduction;
    cuuint64_t pad[6];
} CUstreamBatchMemOpParams;

typedef struct {
    CUcontext ctx;
    unsigned int count;
    CUstreamBatchMemOpParams *paramArray;
    unsigned int flags;
} CUDA_BATCH_MEM_OP_NODE_PARAMS;

typedef struct {
    void *base_ptr;
    size_t num_bytes;
    float hitRatio;
    CUaccessProperty hitProp;
    CUaccessProperty missProp;
} CUaccessPolicyWindow;

typedef struct {
    unsigned char default_;
    unsigned char remote;
} CUlaunchMemSyncDomainMap;

typedef struct {
    CUevent event;
    int flags;
    int triggerAtBlockStart;
} CUlaunchAttributeValue_programmaticEvent_u;

typedef struct {
    CUevent event;
    int flags;
} CUlaunchAttributeValue_launchCompletionEvent_u;

/* Only the members for the attributes above; pad gives the full size. */
typedef union {
    unsigned char pad[64];
    CUaccessPolicyWindow accessPolicyWindow;
    CUsynchronizationPolicy syncPolicy;
    CUlaunchAttributeValue_programmaticEvent_u programmaticEvent;
    CUlaunchAttributeValue_launchCompletionEvent_u launchCompletionEvent;
    int priority;
    CUlaunchMemSyncDomainMap memSyncDomainMap;
    CUlaunchMemSyncDomain memSyncDomain;
    unsigned int nvlinkUtilCentricScheduling;
} CUlaunchAttributeValue;

/* One attribute of a launch. */
typedef struct {
    CUlaunchAttributeID id;
    unsigned char pad[4];
    CUlaunchAttributeValue value;
} CUlaunchAttribute;

typedef CUlaunchAttributeID CUstreamAttrID;
typedef CUlaunchAttributeValue CUstreamAttrValue;

typedef struct {
    unsigned char from_port;
    unsigned char to_port;
    unsigned char type;
    unsigned char reserved[5];
} CUgraphEdgeData;

typedef struct {
    unsigned int val;
} CUexecAffinitySmCount;

typedef union {
    CUexecAffinitySmCount smCount;
} CUexecAffinityParam_u;

typedef struct {
    CUexecAffinityType type;
    CUexecAffinityParam_u param;
} CUexecAffinityParam;

typedef struct {
    CUcigDataType sharedDataType;
    void *sharedData;
} CUctxCigParam;

typedef struct {
    CUexecAffinityParam *execAffinityParams;
    int numExecAffinityParams;
    CUctxCigParam *cigParams;
} CUctxCreateParams;

typedef struct {
    CUstreamCigDataType streamSharedDataType;
    void *streamSharedData;
} CUstreamCigParam;

typedef struct {
    CUstreamCigParam *streamCigParams;
} CUstreamCigCaptureParams;

typedef struct {
    unsigned int smCount;
    unsigned int minSmPartitionSize;
    unsigned int smCoscheduledAlignment;
    unsigned int flags;
    unsigned int localityDomainId;
} CUdevSmResource;

typedef struct {
    CUdevice device;
    unsigned int wqConcurrencyLimit;
    CUdevWorkqueueConfigScope sharingScope;
} CUdevWorkqueueConfigResource;

typedef struct {
    unsigned char reserved[40];
} CUdevWorkqueueResource;

typedef union {
    CUdevSmResource sm;
    CUdevWorkqueueConfigResource wqConfig;
    CUdevWorkqueueResource wq;
    unsigned char _oversize[40];
} CUdevResource_u;

typedef struct CUdevResource CUdevResource;
struct CUdevResource {
    CUdevResourceType type;
    unsigned char _internal_padding[92];
    CUdevResource_u u;
    CUdevResource *nextResource;
};

typedef struct {
    unsigned int smCount;
    unsigned int coscheduledSmCount;
    unsigned int preferredCoscheduledSmCount;
    unsigned int flags;
    unsigned int localityDomainId;
    unsigned int reserved[11];
} CU_DEV_SM_RESOURCE_GROUP_PARAMS;

typedef struct {
    void *handle;
    const void *name;
} CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_win32_u;

typedef union {
    int fd;
    CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_win32_u win32;
    const void *nvSciSyncObj;
} CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_u;

typedef struct {
    CUexternalSemaphoreHandleType type;
    CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_u handle;
    unsigned int flags;
    unsigned int reserved[16];
} CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC;

typedef struct {
    unsigned long long value;
} CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_fence_u;

typedef union {
    void *fence;
    unsigned long long reserved;
} CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_nvSciSync_u;

typedef struct {
    unsigned long long key;
} CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_keyedMutex_u;

typedef struct {
    CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_fence_u fence;
    CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_nvSciSync_u nvSciSync;
    CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_keyedMutex_u keyedMutex;
    unsigned int reserved[12];
} CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_u;

typedef struct {
    CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_u params;
    unsigned int flags;
    unsigned int reserved[16];
} CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS;

typedef struct {
    unsigned long long value;
} CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_fence_u;

typedef union {
    void *fence;
    unsigned long long reserved;
} CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_nvSciSync_u;

typedef struct {
    unsigned long long key;
    unsigned int timeoutMs;
} CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_keyedMutex_u;

typedef struct {
    CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_fence_u fence;
    CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_nvSciSync_u nvSciSync;
    CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_keyedMutex_u keyedMutex;
    unsigned int reserved[10];
} CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_u;

typedef struct {
    CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_u params;
    unsigned int flags;
    unsigned int reserved[16];
} CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS;

typedef struct {
    void *handle;
    const void *name;
} CUDA_EXTERNAL_MEMORY_HANDLE_DESC_win32_u;

typedef union {
    int fd;
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC_win32_u win32;
    const void *nvSciBufObject;
} CUDA_EXTERNAL_MEMORY_HANDLE_DESC_u;

typedef struct {
    CUexternalMemoryHandleType type;
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC_u handle;
    unsigned long long size;
    unsigned int flags;
    unsigned int reserved[16];
} CUDA_EXTERNAL_MEMORY_HANDLE_DESC;

typedef struct {
    unsigned long long offset;
    unsigned long long size;
    unsigned int flags;
    unsigned int reserved[16];
} CUDA_EXTERNAL_MEMORY_BUFFER_DESC;

typedef struct {
    CUexternalSemaphore *extSemArray;
    const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS *paramsArray;
    unsigned int numExtSems;
} CUDA_EXT_SEM_SIGNAL_NODE_PARAMS;

typedef struct {
    CUexternalSemaphore *extSemArray;
    const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS *paramsArray;
    unsigned int numExtSems;
} CUDA_EXT_SEM_WAIT_NODE_PARAMS;

typedef struct {
    unsigned long long bytesOverBudget;
} CUasyncNotificationInfo_overBudget_u;

typedef union {
    CUasyncNotificationInfo_overBudget_u overBudget;
} CUasyncNotificationInfo_u;

typedef struct {
    CUasyncNotificationType type;
    CUasyncNotificationInfo_u info;
} CUasyncNotificationInfo;

typedef struct {
    CUdeviceptr devPtr;
    size_t size;
    CUstream stream;
} CUcheckpointCustomStoragePerDeviceData;

typedef struct {
    CUcheckpointOperationHandle handle;
    CUcheckpointCustomStoragePerDeviceData *perDeviceData;
    unsigned int deviceCount;
} CUcheckpointCustomStorageInfo;

typedef struct {
    unsigned int timeoutMs;
    unsigned int reserved0;
    cuuint64_t reserved1[7];
} CUcheckpointLockArgs;

typedef struct {
    CUcheckpointCustomStorageInfo **customStorageInfo_out;
    unsigned char reserved[56];
} CUcheckpointCheckpointArgs;

typedef struct {
    CUuuid oldUuid;
    CUuuid newUuid;
} CUcheckpointGpuPair;

typedef struct {
    CUcheckpointGpuPair *gpuPairs;
    unsigned int gpuPairsCount;
    unsigned int padding0;
    CUcheckpointCustomStorageInfo **customStorageInfo_out;
    unsigned char reserved[40];
} CUcheckpointRestoreArgs;

typedef struct {
    cuuint64_t reserved[8];
} CUcheckpointUnlockArgs;

/* Reached only through a pointer that the driver hands to a callback. */
typedef struct CUgraphNodeParams_st CUgraphNodeParams;

/* ---- Callbacks ---- */

typedef void (*CUhostFn)(void *user_data);
typedef void (*CUlogsCallback)(void *user_data, CUlogLevel level, char *message,
    size_t length);
typedef void (*CUasyncCallback)(CUasyncNotificationInfo *info, void *user_data,
    CUasyncCallbackHandle callback);
typedef void (*CUcoredumpStatusCallback)(void *user_data, int pid, CUdevice device);
typedef void (*CUstreamCallback)(CUstream stream, CUresult status, void *user_data);
typedef CUresult (*CUgraphRecaptureCallback)(void *user_data, CUgraphNode node,
    const CUgraphNodeParams *original,
                                             const CUgraphNodeParams *recaptured,
    CUgraphRecaptureStatus status);

typedef struct {
    CUhostFn fn;
    void *userData;
} CUDA_HOST_NODE_PARAMS;

/* ---- Library, version, errors ---- */

/* page INITIALIZE */
/* required */
typedef CUresult (*PFN_cuInit_v2000)(unsigned int flags);

/* page VERSION */
/* required */
typedef CUresult (*PFN_cuDriverGetVersion_v2020)(int *version);

/* page DRIVER__ENTRY__POINT */
typedef CUresult (*PFN_cuGetProcAddress_v11030)(const char *symbol, void **function,
    int version,
    cuuint64_t flags);
/* cuGetProcAddress_v2 */
typedef CUresult (*PFN_cuGetProcAddress_v12000)(const char *symbol, void **function,
    int version,
    cuuint64_t flags, CUdriverProcAddressQueryResult *status);

/* page ERROR */
/* required */
typedef CUresult (*PFN_cuGetErrorName_v6000)(CUresult error, const char **text);
/* required */
typedef CUresult (*PFN_cuGetErrorString_v6000)(CUresult error, const char **text);

/* page LOGS */
typedef CUresult (*PFN_cuLogsCurrent_v12090)(CUlogIterator *iterator, unsigned int flags);
typedef CUresult (*PFN_cuLogsDumpToFile_v12090)(CUlogIterator *iterator,
    const char *path, unsigned int flags);
typedef CUresult (*PFN_cuLogsDumpToMemory_v12090)(CUlogIterator *iterator, char *buffer,
    size_t *size, unsigned int flags);
typedef CUresult (*PFN_cuLogsRegisterCallback_v12090)(CUlogsCallback callback, void *user_data,
    CUlogsCallbackHandle *handle);
typedef CUresult (*PFN_cuLogsUnregisterCallback_v12090)(CUlogsCallbackHandle handle);

/* ---- Devices ---- */

/* page DEVICE */
/* required */
typedef CUresult (*PFN_cuDeviceGet_v2000)(CUdevice *device, int ordinal);
/* required */
typedef CUresult (*PFN_cuDeviceGetCount_v2000)(int *count);
/* required */
typedef CUresult (*PFN_cuDeviceGetName_v2000)(char *name, int length, CUdevice device);
/* required */
typedef CUresult (*PFN_cuDeviceGetUuid_v9020)(CUuuid *uuid, CUdevice device);
/* cuDeviceGetUuid_v2 */
typedef CUresult (*PFN_cuDeviceGetUuid_v11040)(CUuuid *uuid, CUdevice device);
typedef CUresult (*PFN_cuDeviceGetLuid_v10000)(char *luid, unsigned int *node_mask,
    CUdevice device);
/* required cuDeviceTotalMem_v2 */
typedef CUresult (*PFN_cuDeviceTotalMem_v3020)(size_t *bytes, CUdevice device);
/* required */
typedef CUresult (*PFN_cuDeviceGetAttribute_v2000)(int *value, CUdevice_attribute attribute,
    CUdevice device);
typedef CUresult (*PFN_cuDeviceGetHostAtomicCapabilities_v13000)(unsigned int *capabilities,
    const CUatomicOperation *operations, unsigned int count, CUdevice device);

/* page PEER__ACCESS */
typedef CUresult (*PFN_cuDeviceGetP2PAtomicCapabilities_v13000)(unsigned int *capabilities,
    const CUatomicOperation *operations, unsigned int count, CUdevice source,
    CUdevice destination);

/* page MEM */
typedef CUresult (*PFN_cuDeviceRegisterAsyncNotification_v12040)(CUdevice device,
    CUasyncCallback callback, void *user_data, CUasyncCallbackHandle *handle);
typedef CUresult (*PFN_cuDeviceUnregisterAsyncNotification_v12040)(CUdevice device,
    CUasyncCallbackHandle handle);

/* page PRIMARY__CTX */
/* required */
typedef CUresult (*PFN_cuDevicePrimaryCtxRetain_v7000)(CUcontext *context, CUdevice device);
/* required cuDevicePrimaryCtxRelease_v2 */
typedef CUresult (*PFN_cuDevicePrimaryCtxRelease_v11000)(CUdevice device);
/* required */
typedef CUresult (*PFN_cuDevicePrimaryCtxGetState_v7000)(CUdevice device, unsigned int *flags,
    int *active);

/* ---- Contexts ---- */

/* page CTX */
/* required cuCtxCreate_v2 */
typedef CUresult (*PFN_cuCtxCreate_v3020)(CUcontext *context, unsigned int flags, CUdevice device);
/* cuCtxCreate_v4 */
typedef CUresult (*PFN_cuCtxCreate_v12050)(CUcontext *context, CUctxCreateParams *params,
    unsigned int flags,
    CUdevice device);
/* required cuCtxDestroy_v2 */
typedef CUresult (*PFN_cuCtxDestroy_v4000)(CUcontext context);
/* required */
typedef CUresult (*PFN_cuCtxGetCurrent_v4000)(CUcontext *context);
/* required */
typedef CUresult (*PFN_cuCtxSetCurrent_v4000)(CUcontext context);
/* required cuCtxPushCurrent_v2 */
typedef CUresult (*PFN_cuCtxPushCurrent_v4000)(CUcontext context);
/* required cuCtxPopCurrent_v2 */
typedef CUresult (*PFN_cuCtxPopCurrent_v4000)(CUcontext *context);
/* required */
typedef CUresult (*PFN_cuCtxGetDevice_v2000)(CUdevice *device);
/* cuCtxGetDevice_v2 */
typedef CUresult (*PFN_cuCtxGetDevice_v13000)(CUdevice *device, CUcontext context);
/* required */
typedef CUresult (*PFN_cuCtxSynchronize_v2000)(void);
/* cuCtxSynchronize_v2 */
typedef CUresult (*PFN_cuCtxSynchronize_v13000)(CUcontext context);
/* required */
typedef CUresult (*PFN_cuCtxGetStreamPriorityRange_v5050)(int *least, int *greatest);
typedef CUresult (*PFN_cuCtxGetId_v12000)(CUcontext context, unsigned long long *id);
/* required */
typedef CUresult (*PFN_cuCtxGetFlags_v7000)(unsigned int *flags);

/* page GREEN__CONTEXTS */
typedef CUresult (*PFN_cuCtxFromGreenCtx_v12040)(CUcontext *context, CUgreenCtx green);
typedef CUresult (*PFN_cuGreenCtxCreate_v12040)(CUgreenCtx *green, CUdevResourceDesc description,
    CUdevice device,
    unsigned int flags);
typedef CUresult (*PFN_cuGreenCtxDestroy_v12040)(CUgreenCtx green);
typedef CUresult (*PFN_cuGreenCtxGetId_v12090)(CUgreenCtx green, unsigned long long *id);
typedef CUresult (*PFN_cuDeviceGetDevResource_v12040)(CUdevice device, CUdevResource *resource,
    CUdevResourceType type);
typedef CUresult (*PFN_cuCtxGetDevResource_v12040)(CUcontext context, CUdevResource *resource,
    CUdevResourceType type);
typedef CUresult (*PFN_cuGreenCtxGetDevResource_v12040)(CUgreenCtx green, CUdevResource *resource,
    CUdevResourceType type);
typedef CUresult (*PFN_cuDevSmResourceSplitByCount_v12040)(CUdevResource *result,
    unsigned int *groups,
    const CUdevResource *input, CUdevResource *remaining, unsigned int flags,
    unsigned int min_count);
typedef CUresult (*PFN_cuDevSmResourceSplit_v13010)(CUdevResource *result, unsigned int groups,
    const CUdevResource *input, CUdevResource *remaining, unsigned int flags,
    CU_DEV_SM_RESOURCE_GROUP_PARAMS *params);
typedef CUresult (*PFN_cuDevResourceGenerateDesc_v12040)(CUdevResourceDesc *description,
    CUdevResource *resources,
    unsigned int count);

/* page CTX */
typedef CUresult (*PFN_cuCtxRecordEvent_v12050)(CUcontext context, CUevent event);
typedef CUresult (*PFN_cuCtxWaitEvent_v12050)(CUcontext context, CUevent event);

/* page GREEN__CONTEXTS */
typedef CUresult (*PFN_cuGreenCtxRecordEvent_v12040)(CUgreenCtx green, CUevent event);
typedef CUresult (*PFN_cuGreenCtxWaitEvent_v12040)(CUgreenCtx green, CUevent event);
typedef CUresult (*PFN_cuGreenCtxStreamCreate_v12050)(CUstream *stream, CUgreenCtx green,
    unsigned int flags,
    int priority);

/* ---- Events ---- */

/* page EVENT */
/* required */
typedef CUresult (*PFN_cuEventCreate_v2000)(CUevent *event, unsigned int flags);
/* required */
typedef CUresult (*PFN_cuEventRecord_v2000)(CUevent event, CUstream stream);
typedef CUresult (*PFN_cuEventRecord_v7000_ptsz)(CUevent event, CUstream stream);
typedef CUresult (*PFN_cuEventRecordWithFlags_v11010)(CUevent event, CUstream stream,
    unsigned int flags);
typedef CUresult (*PFN_cuEventRecordWithFlags_v11010_ptsz)(CUevent event, CUstream stream,
    unsigned int flags);
/* required */
typedef CUresult (*PFN_cuEventQuery_v2000)(CUevent event);
/* required */
typedef CUresult (*PFN_cuEventSynchronize_v2000)(CUevent event);
/* required cuEventDestroy_v2 */
typedef CUresult (*PFN_cuEventDestroy_v4000)(CUevent event);
/* required */
typedef CUresult (*PFN_cuEventElapsedTime_v2000)(float *milliseconds, CUevent start, CUevent end);
/* cuEventElapsedTime_v2 */
typedef CUresult (*PFN_cuEventElapsedTime_v12080)(float *milliseconds, CUevent start, CUevent end);

/* page MEM */
/* required */
typedef CUresult (*PFN_cuIpcGetEventHandle_v4010)(CUipcEventHandle *handle, CUevent event);
/* required */
typedef CUresult (*PFN_cuIpcOpenEventHandle_v4010)(CUevent *event, CUipcEventHandle handle);

/* ---- Streams ---- */

/* page STREAM */
/* required */
typedef CUresult (*PFN_cuStreamCreate_v2000)(CUstream *stream, unsigned int flags);
/* required */
typedef CUresult (*PFN_cuStreamCreateWithPriority_v5050)(CUstream *stream, unsigned int flags,
    int priority);
/* required cuStreamDestroy_v2 */
typedef CUresult (*PFN_cuStreamDestroy_v4000)(CUstream stream);
/* required */
typedef CUresult (*PFN_cuStreamQuery_v2000)(CUstream stream);
typedef CUresult (*PFN_cuStreamQuery_v7000_ptsz)(CUstream stream);
/* required */
typedef CUresult (*PFN_cuStreamSynchronize_v2000)(CUstream stream);
typedef CUresult (*PFN_cuStreamSynchronize_v7000_ptsz)(CUstream stream);
/* required */
typedef CUresult (*PFN_cuStreamWaitEvent_v3020)(CUstream stream, CUevent event, unsigned int flags);
typedef CUresult (*PFN_cuStreamWaitEvent_v7000_ptsz)(CUstream stream, CUevent event,
    unsigned int flags);
/* required */
typedef CUresult (*PFN_cuStreamGetPriority_v5050)(CUstream stream, int *priority);
typedef CUresult (*PFN_cuStreamGetPriority_v7000_ptsz)(CUstream stream, int *priority);
/* required */
typedef CUresult (*PFN_cuStreamGetFlags_v5050)(CUstream stream, unsigned int *flags);
typedef CUresult (*PFN_cuStreamGetFlags_v7000_ptsz)(CUstream stream, unsigned int *flags);
typedef CUresult (*PFN_cuStreamGetId_v12000)(CUstream stream, unsigned long long *id);
typedef CUresult (*PFN_cuStreamGetId_v12000_ptsz)(CUstream stream, unsigned long long *id);
/* required */
typedef CUresult (*PFN_cuStreamGetCtx_v9020)(CUstream stream, CUcontext *context);
typedef CUresult (*PFN_cuStreamGetCtx_v9020_ptsz)(CUstream stream, CUcontext *context);
/* cuStreamGetCtx_v2 */
typedef CUresult (*PFN_cuStreamGetCtx_v12050)(CUstream stream, CUcontext *context,
    CUgreenCtx *green);
typedef CUresult (*PFN_cuStreamGetCtx_v12050_ptsz)(CUstream stream, CUcontext *context,
    CUgreenCtx *green);

/* page GREEN__CONTEXTS */
typedef CUresult (*PFN_cuStreamGetGreenCtx_v12040)(CUstream stream, CUgreenCtx *green);

/* page STREAM */
typedef CUresult (*PFN_cuStreamGetDevice_v12080)(CUstream stream, CUdevice *device);
typedef CUresult (*PFN_cuStreamGetDevice_v12080_ptsz)(CUstream stream, CUdevice *device);

/* page GREEN__CONTEXTS */
typedef CUresult (*PFN_cuStreamGetDevResource_v13010)(CUstream stream, CUdevResource *resource,
    CUdevResourceType type);
typedef CUresult (*PFN_cuStreamGetDevResource_v13010_ptsz)(CUstream stream, CUdevResource *resource,
    CUdevResourceType type);

/* page STREAM */
typedef CUresult (*PFN_cuStreamGetAttribute_v11000)(CUstream stream, CUstreamAttrID attribute,
    CUstreamAttrValue *value);
typedef CUresult (*PFN_cuStreamGetAttribute_v11000_ptsz)(CUstream stream, CUstreamAttrID attribute,
    CUstreamAttrValue *value);
typedef CUresult (*PFN_cuStreamSetAttribute_v11000)(CUstream stream, CUstreamAttrID attribute,
    const CUstreamAttrValue *value);
typedef CUresult (*PFN_cuStreamSetAttribute_v11000_ptsz)(CUstream stream, CUstreamAttrID attribute,
    const CUstreamAttrValue *value);
typedef CUresult (*PFN_cuStreamCopyAttributes_v11000)(CUstream destination, CUstream source);
typedef CUresult (*PFN_cuStreamCopyAttributes_v11000_ptsz)(CUstream destination, CUstream source);
typedef CUresult (*PFN_cuStreamAddCallback_v5000)(CUstream stream, CUstreamCallback callback,
    void *user_data,
    unsigned int flags);
typedef CUresult (*PFN_cuStreamAddCallback_v7000_ptsz)(CUstream stream, CUstreamCallback callback,
    void *user_data,
    unsigned int flags);

/* page EXEC */
/* required */
typedef CUresult (*PFN_cuLaunchHostFunc_v10000)(CUstream stream, CUhostFn host_fn, void *user_data);
typedef CUresult (*PFN_cuLaunchHostFunc_v10000_ptsz)(CUstream stream, CUhostFn host_fn,
    void *user_data);
/* cuLaunchHostFunc_v2 */
typedef CUresult (*PFN_cuLaunchHostFunc_v13010)(CUstream stream, CUhostFn host_fn, void *user_data,
    unsigned int sync_mode);
typedef CUresult (*PFN_cuLaunchHostFunc_v13010_ptsz)(CUstream stream, CUhostFn host_fn,
    void *user_data,
    unsigned int sync_mode);

/* page STREAM */
typedef CUresult (*PFN_cuStreamAttachMemAsync_v6000)(CUstream stream, CUdeviceptr address,
    size_t length,
    unsigned int flags);
typedef CUresult (*PFN_cuStreamAttachMemAsync_v7000_ptsz)(CUstream stream, CUdeviceptr address,
    size_t length,
    unsigned int flags);

/* ---- Stream capture ---- */

/* required cuStreamBeginCapture_v2 */
typedef CUresult (*PFN_cuStreamBeginCapture_v10010)(CUstream stream, CUstreamCaptureMode mode);
typedef CUresult (*PFN_cuStreamBeginCapture_v10010_ptsz)(CUstream stream, CUstreamCaptureMode mode);
typedef CUresult (*PFN_cuStreamBeginCaptureToGraph_v12030)(CUstream stream, CUgraph graph,
    const CUgraphNode *dependencies, const CUgraphEdgeData *edges, size_t count,
    CUstreamCaptureMode mode);
typedef CUresult (*PFN_cuStreamBeginCaptureToGraph_v12030_ptsz)(CUstream stream, CUgraph graph,
    const CUgraphNode *dependencies, const CUgraphEdgeData *edges, size_t count,
    CUstreamCaptureMode mode);
typedef CUresult (*PFN_cuStreamBeginRecaptureToGraph_v13030)(CUstream stream,
    CUstreamCaptureMode mode, CUgraph graph,
    CUgraphRecaptureCallback callback, void *user_data);
typedef CUresult (*PFN_cuStreamBeginRecaptureToGraph_v13030_ptsz)(CUstream stream,
    CUstreamCaptureMode mode,
    CUgraph graph, CUgraphRecaptureCallback callback, void *user_data);
typedef CUresult (*PFN_cuStreamBeginCaptureToCig_v13010)(CUstream stream,
    CUstreamCigCaptureParams *params);
typedef CUresult (*PFN_cuStreamBeginCaptureToCig_v13010_ptsz)(CUstream stream,
    CUstreamCigCaptureParams *params);
/* required */
typedef CUresult (*PFN_cuStreamEndCapture_v10000)(CUstream stream, CUgraph *graph);
typedef CUresult (*PFN_cuStreamEndCapture_v10000_ptsz)(CUstream stream, CUgraph *graph);
typedef CUresult (*PFN_cuStreamEndCaptureToCig_v13010)(CUstream stream);
typedef CUresult (*PFN_cuStreamEndCaptureToCig_v13010_ptsz)(CUstream stream);
/* required */
typedef CUresult (*PFN_cuStreamIsCapturing_v10000)(CUstream stream, CUstreamCaptureStatus *status);
typedef CUresult (*PFN_cuStreamIsCapturing_v10000_ptsz)(CUstream stream,
    CUstreamCaptureStatus *status);
typedef CUresult (*PFN_cuStreamGetCaptureInfo_v10010)(CUstream stream,
    CUstreamCaptureStatus *status, cuuint64_t *id);
typedef CUresult (*PFN_cuStreamGetCaptureInfo_v10010_ptsz)(CUstream stream,
    CUstreamCaptureStatus *status,
    cuuint64_t *id);
/* cuStreamGetCaptureInfo_v2 */
typedef CUresult (*PFN_cuStreamGetCaptureInfo_v11030)(CUstream stream,
    CUstreamCaptureStatus *status, cuuint64_t *id,
    CUgraph *graph, const CUgraphNode **dependencies, size_t *count);
typedef CUresult (*PFN_cuStreamGetCaptureInfo_v11030_ptsz)(CUstream stream,
    CUstreamCaptureStatus *status,
    cuuint64_t *id, CUgraph *graph, const CUgraphNode **dependencies, size_t *count);
/* cuStreamGetCaptureInfo_v3 */
typedef CUresult (*PFN_cuStreamGetCaptureInfo_v12030)(CUstream stream,
    CUstreamCaptureStatus *status, cuuint64_t *id,
    CUgraph *graph, const CUgraphNode **dependencies, const CUgraphEdgeData **edges, size_t *count);
typedef CUresult (*PFN_cuStreamGetCaptureInfo_v12030_ptsz)(CUstream stream,
    CUstreamCaptureStatus *status,
    cuuint64_t *id, CUgraph *graph, const CUgraphNode **dependencies,
    const CUgraphEdgeData **edges, size_t *count);
typedef CUresult (*PFN_cuStreamUpdateCaptureDependencies_v11030)(CUstream stream,
    CUgraphNode *dependencies,
    size_t count, unsigned int flags);
typedef CUresult (*PFN_cuStreamUpdateCaptureDependencies_v11030_ptsz)(CUstream stream,
    CUgraphNode *dependencies,
    size_t count, unsigned int flags);
/* cuStreamUpdateCaptureDependencies_v2 */
typedef CUresult (*PFN_cuStreamUpdateCaptureDependencies_v12030)(CUstream stream,
    CUgraphNode *dependencies,
    const CUgraphEdgeData *edges, size_t count, unsigned int flags);
typedef CUresult (*PFN_cuStreamUpdateCaptureDependencies_v12030_ptsz)(CUstream stream,
    CUgraphNode *dependencies,
    const CUgraphEdgeData *edges, size_t count, unsigned int flags);
/* required */
typedef CUresult (*PFN_cuThreadExchangeStreamCaptureMode_v10010)(CUstreamCaptureMode *mode);

/* ---- Stream memory operations ---- */

/* page MEMOP */
typedef CUresult (*PFN_cuStreamWaitValue32_v8000)(CUstream stream, CUdeviceptr address,
    cuuint32_t value,
    unsigned int flags);
typedef CUresult (*PFN_cuStreamWaitValue32_v8000_ptsz)(CUstream stream, CUdeviceptr address,
    cuuint32_t value,
    unsigned int flags);
/* cuStreamWaitValue32_v2 */
typedef CUresult (*PFN_cuStreamWaitValue32_v11070)(CUstream stream, CUdeviceptr address,
    cuuint32_t value,
    unsigned int flags);
typedef CUresult (*PFN_cuStreamWaitValue32_v11070_ptsz)(CUstream stream, CUdeviceptr address,
    cuuint32_t value,
    unsigned int flags);
typedef CUresult (*PFN_cuStreamWaitValue64_v9000)(CUstream stream, CUdeviceptr address,
    cuuint64_t value,
    unsigned int flags);
typedef CUresult (*PFN_cuStreamWaitValue64_v9000_ptsz)(CUstream stream, CUdeviceptr address,
    cuuint64_t value,
    unsigned int flags);
/* cuStreamWaitValue64_v2 */
typedef CUresult (*PFN_cuStreamWaitValue64_v11070)(CUstream stream, CUdeviceptr address,
    cuuint64_t value,
    unsigned int flags);
typedef CUresult (*PFN_cuStreamWaitValue64_v11070_ptsz)(CUstream stream, CUdeviceptr address,
    cuuint64_t value,
    unsigned int flags);
typedef CUresult (*PFN_cuStreamWriteValue32_v8000)(CUstream stream, CUdeviceptr address,
    cuuint32_t value,
    unsigned int flags);
typedef CUresult (*PFN_cuStreamWriteValue32_v8000_ptsz)(CUstream stream, CUdeviceptr address,
    cuuint32_t value,
    unsigned int flags);
/* cuStreamWriteValue32_v2 */
typedef CUresult (*PFN_cuStreamWriteValue32_v11070)(CUstream stream, CUdeviceptr address,
    cuuint32_t value,
    unsigned int flags);
typedef CUresult (*PFN_cuStreamWriteValue32_v11070_ptsz)(CUstream stream, CUdeviceptr address,
    cuuint32_t value,
    unsigned int flags);
typedef CUresult (*PFN_cuStreamWriteValue64_v9000)(CUstream stream, CUdeviceptr address,
    cuuint64_t value,
    unsigned int flags);
typedef CUresult (*PFN_cuStreamWriteValue64_v9000_ptsz)(CUstream stream, CUdeviceptr address,
    cuuint64_t value,
    unsigned int flags);
/* cuStreamWriteValue64_v2 */
typedef CUresult (*PFN_cuStreamWriteValue64_v11070)(CUstream stream, CUdeviceptr address,
    cuuint64_t value,
    unsigned int flags);
typedef CUresult (*PFN_cuStreamWriteValue64_v11070_ptsz)(CUstream stream, CUdeviceptr address,
    cuuint64_t value,
    unsigned int flags);
typedef CUresult (*PFN_cuStreamBatchMemOp_v8000)(CUstream stream, unsigned int count,
    CUstreamBatchMemOpParams *operations, unsigned int flags);
typedef CUresult (*PFN_cuStreamBatchMemOp_v8000_ptsz)(CUstream stream, unsigned int count,
    CUstreamBatchMemOpParams *operations, unsigned int flags);
/* cuStreamBatchMemOp_v2 */
typedef CUresult (*PFN_cuStreamBatchMemOp_v11070)(CUstream stream, unsigned int count,
    CUstreamBatchMemOpParams *operations, unsigned int flags);
typedef CUresult (*PFN_cuStreamBatchMemOp_v11070_ptsz)(CUstream stream, unsigned int count,
    CUstreamBatchMemOpParams *operations, unsigned int flags);

/* ---- Graphs ---- */

/* page GRAPH */
/* required */
typedef CUresult (*PFN_cuGraphCreate_v10000)(CUgraph *graph, unsigned int flags);
/* required */
typedef CUresult (*PFN_cuGraphDestroy_v10000)(CUgraph graph);
typedef CUresult (*PFN_cuGraphGetId_v13010)(CUgraph graph, unsigned int *id);
typedef CUresult (*PFN_cuGraphNodeGetLocalId_v13010)(CUgraphNode node, unsigned int *id);
typedef CUresult (*PFN_cuGraphNodeGetToolsId_v13010)(CUgraphNode node, unsigned long long *id);
/* cuGraphInstantiate_v2 */
typedef CUresult (*PFN_cuGraphInstantiate_v11000)(CUgraphExec *exec, CUgraph graph,
    CUgraphNode *error_node,
    char *log, size_t log_size);
typedef CUresult (*PFN_cuGraphInstantiateWithFlags_v11040)(CUgraphExec *exec, CUgraph graph,
    unsigned long long flags);
/* required */
typedef CUresult (*PFN_cuGraphLaunch_v10000)(CUgraphExec exec, CUstream stream);
typedef CUresult (*PFN_cuGraphLaunch_v10000_ptsz)(CUgraphExec exec, CUstream stream);
/* required */
typedef CUresult (*PFN_cuGraphExecDestroy_v10000)(CUgraphExec exec);
typedef CUresult (*PFN_cuGraphExecGetId_v13010)(CUgraphExec exec, unsigned int *id);
typedef CUresult (*PFN_cuGraphAddEventRecordNode_v11010)(CUgraphNode *node, CUgraph graph,
    const CUgraphNode *dependencies, size_t count, CUevent event);
typedef CUresult (*PFN_cuGraphAddEventWaitNode_v11010)(CUgraphNode *node, CUgraph graph,
    const CUgraphNode *dependencies, size_t count, CUevent event);
typedef CUresult (*PFN_cuGraphEventRecordNodeGetEvent_v11010)(CUgraphNode node, CUevent *event);
typedef CUresult (*PFN_cuGraphEventRecordNodeSetEvent_v11010)(CUgraphNode node, CUevent event);
typedef CUresult (*PFN_cuGraphEventWaitNodeGetEvent_v11010)(CUgraphNode node, CUevent *event);
typedef CUresult (*PFN_cuGraphEventWaitNodeSetEvent_v11010)(CUgraphNode node, CUevent event);
typedef CUresult (*PFN_cuGraphExecEventRecordNodeSetEvent_v11010)(CUgraphExec exec,
    CUgraphNode node, CUevent event);
typedef CUresult (*PFN_cuGraphExecEventWaitNodeSetEvent_v11010)(CUgraphExec exec, CUgraphNode node,
    CUevent event);
typedef CUresult (*PFN_cuGraphAddHostNode_v10000)(CUgraphNode *node, CUgraph graph,
    const CUgraphNode *dependencies, size_t count,
    const CUDA_HOST_NODE_PARAMS *params);
typedef CUresult (*PFN_cuGraphHostNodeGetParams_v10000)(CUgraphNode node,
    CUDA_HOST_NODE_PARAMS *params);
typedef CUresult (*PFN_cuGraphHostNodeSetParams_v10000)(CUgraphNode node,
    const CUDA_HOST_NODE_PARAMS *params);
typedef CUresult (*PFN_cuGraphExecHostNodeSetParams_v10020)(CUgraphExec exec,
    CUgraphNode node, const CUDA_HOST_NODE_PARAMS *params);
typedef CUresult (*PFN_cuGraphAddExternalSemaphoresSignalNode_v11020)(CUgraphNode *node, CUgraph graph,
    const CUgraphNode *dependencies, size_t count,
    const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS *params);
typedef CUresult (*PFN_cuGraphExternalSemaphoresSignalNodeGetParams_v11020)(CUgraphNode node,
    CUDA_EXT_SEM_SIGNAL_NODE_PARAMS *params);
typedef CUresult (*PFN_cuGraphExternalSemaphoresSignalNodeSetParams_v11020)(CUgraphNode node,
    const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS *params);
typedef CUresult (*PFN_cuGraphExecExternalSemaphoresSignalNodeSetParams_v11020)(CUgraphExec exec,
    CUgraphNode node, const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS *params);
typedef CUresult (*PFN_cuGraphAddExternalSemaphoresWaitNode_v11020)(CUgraphNode *node, CUgraph graph,
    const CUgraphNode *dependencies, size_t count,
    const CUDA_EXT_SEM_WAIT_NODE_PARAMS *params);
typedef CUresult (*PFN_cuGraphExternalSemaphoresWaitNodeGetParams_v11020)(CUgraphNode node,
    CUDA_EXT_SEM_WAIT_NODE_PARAMS *params);
typedef CUresult (*PFN_cuGraphExternalSemaphoresWaitNodeSetParams_v11020)(CUgraphNode node,
    const CUDA_EXT_SEM_WAIT_NODE_PARAMS *params);
typedef CUresult (*PFN_cuGraphExecExternalSemaphoresWaitNodeSetParams_v11020)(CUgraphExec exec,
    CUgraphNode node, const CUDA_EXT_SEM_WAIT_NODE_PARAMS *params);
typedef CUresult (*PFN_cuGraphAddBatchMemOpNode_v11070)(CUgraphNode *node, CUgraph graph,
    const CUgraphNode *dependencies, size_t count,
    const CUDA_BATCH_MEM_OP_NODE_PARAMS *params);
typedef CUresult (*PFN_cuGraphBatchMemOpNodeGetParams_v11070)(CUgraphNode node,
    CUDA_BATCH_MEM_OP_NODE_PARAMS *params);
typedef CUresult (*PFN_cuGraphBatchMemOpNodeSetParams_v11070)(CUgraphNode node,
    const CUDA_BATCH_MEM_OP_NODE_PARAMS *params);
typedef CUresult (*PFN_cuGraphExecBatchMemOpNodeSetParams_v11070)(CUgraphExec exec,
    CUgraphNode node, const CUDA_BATCH_MEM_OP_NODE_PARAMS *params);

/* ---- Memory ---- */

/* page MEM */
/* required cuMemGetInfo_v2 */
typedef CUresult (*PFN_cuMemGetInfo_v3020)(size_t *free, size_t *total);
/* required */
typedef CUresult (*PFN_cuIpcGetMemHandle_v4010)(CUipcMemHandle *handle, CUdeviceptr address);
/* cuIpcOpenMemHandle_v2 */
typedef CUresult (*PFN_cuIpcOpenMemHandle_v11000)(CUdeviceptr *address, CUipcMemHandle handle,
    unsigned int flags);
/* required */
typedef CUresult (*PFN_cuIpcCloseMemHandle_v4010)(CUdeviceptr address);
/* required cuMemAlloc_v2 */
typedef CUresult (*PFN_cuMemAlloc_v3020)(CUdeviceptr *address, size_t bytes);
/* required cuMemFree_v2 */
typedef CUresult (*PFN_cuMemFree_v3020)(CUdeviceptr address);
/* required */
typedef CUresult (*PFN_cuMemHostAlloc_v2020)(void **memory, size_t bytes, unsigned int flags);
/* required */
typedef CUresult (*PFN_cuMemFreeHost_v2000)(void *memory);
/* required cuMemHostRegister_v2 */
typedef CUresult (*PFN_cuMemHostRegister_v6050)(void *memory, size_t bytes, unsigned int flags);
/* required cuMemHostGetDevicePointer_v2 */
typedef CUresult (*PFN_cuMemHostGetDevicePointer_v3020)(CUdeviceptr *address, void *memory,
    unsigned int flags);
/* required */
typedef CUresult (*PFN_cuMemsetD8Async_v3020)(CUdeviceptr destination, unsigned char value,
    size_t count,
    CUstream stream);
typedef CUresult (*PFN_cuMemsetD8Async_v7000_ptsz)(CUdeviceptr destination, unsigned char value,
    size_t count,
    CUstream stream);
/* required */
typedef CUresult (*PFN_cuMemsetD32Async_v3020)(CUdeviceptr destination, unsigned int value,
    size_t count,
    CUstream stream);
typedef CUresult (*PFN_cuMemsetD32Async_v7000_ptsz)(CUdeviceptr destination, unsigned int value,
    size_t count,
    CUstream stream);
/* required cuMemcpyHtoDAsync_v2 */
typedef CUresult (*PFN_cuMemcpyHtoDAsync_v3020)(CUdeviceptr destination, const void *source,
    size_t bytes,
    CUstream stream);
typedef CUresult (*PFN_cuMemcpyHtoDAsync_v7000_ptsz)(CUdeviceptr destination, const void *source,
    size_t bytes,
    CUstream stream);
/* required cuMemcpyDtoHAsync_v2 */
typedef CUresult (*PFN_cuMemcpyDtoHAsync_v3020)(void *destination, CUdeviceptr source,
    size_t bytes, CUstream stream);
typedef CUresult (*PFN_cuMemcpyDtoHAsync_v7000_ptsz)(void *destination, CUdeviceptr source,
    size_t bytes,
    CUstream stream);
/* required cuMemcpyDtoDAsync_v2 */
typedef CUresult (*PFN_cuMemcpyDtoDAsync_v3020)(CUdeviceptr destination, CUdeviceptr source,
    size_t bytes,
    CUstream stream);
typedef CUresult (*PFN_cuMemcpyDtoDAsync_v7000_ptsz)(CUdeviceptr destination, CUdeviceptr source,
    size_t bytes,
    CUstream stream);

/* ---- Semaphores and memory of other APIs ---- */

/* page EXTRES__INTEROP */
typedef CUresult (*PFN_cuImportExternalSemaphore_v10000)(CUexternalSemaphore *semaphore,
    const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC *description);
typedef CUresult (*PFN_cuDestroyExternalSemaphore_v10000)(CUexternalSemaphore semaphore);
typedef CUresult (*PFN_cuSignalExternalSemaphoresAsync_v10000)(
    const CUexternalSemaphore *semaphores,
    const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS *params, unsigned int count, CUstream stream);
typedef CUresult (*PFN_cuSignalExternalSemaphoresAsync_v10000_ptsz)(
    const CUexternalSemaphore *semaphores,
    const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS *params, unsigned int count, CUstream stream);
typedef CUresult (*PFN_cuWaitExternalSemaphoresAsync_v10000)(
    const CUexternalSemaphore *semaphores,
    const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS *params, unsigned int count, CUstream stream);
typedef CUresult (*PFN_cuWaitExternalSemaphoresAsync_v10000_ptsz)(
    const CUexternalSemaphore *semaphores,
    const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS *params, unsigned int count, CUstream stream);
typedef CUresult (*PFN_cuImportExternalMemory_v10000)(CUexternalMemory *memory,
    const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *description);
typedef CUresult (*PFN_cuExternalMemoryGetMappedBuffer_v10000)(CUdeviceptr *address,
    CUexternalMemory memory, const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *description);
typedef CUresult (*PFN_cuDestroyExternalMemory_v10000)(CUexternalMemory memory);

/* ---- Checkpoints of processes ---- */

/* page CHECKPOINT */
typedef CUresult (*PFN_cuCheckpointProcessGetRestoreThreadId_v12080)(int pid, int *tid);
typedef CUresult (*PFN_cuCheckpointProcessGetState_v12080)(int pid, CUprocessState *state);
typedef CUresult (*PFN_cuCheckpointProcessLock_v12080)(int pid, CUcheckpointLockArgs *args);
typedef CUresult (*PFN_cuCheckpointProcessCheckpoint_v12080)(int pid,
    CUcheckpointCheckpointArgs *args);
typedef CUresult (*PFN_cuCheckpointProcessRestore_v12080)(int pid, CUcheckpointRestoreArgs *args);
typedef CUresult (*PFN_cuCheckpointProcessUnlock_v12080)(int pid, CUcheckpointUnlockArgs *args);
typedef CUresult (*PFN_cuCheckpointOperationComplete_v13040)(CUcheckpointOperationHandle handle);

/* ---- Core dumps of devices ---- */

/* page COREDUMP */
typedef CUresult (*PFN_cuCoredumpGetAttribute_v12010)(CUcoredumpSettings setting, void *value,
    size_t *size);
typedef CUresult (*PFN_cuCoredumpGetAttributeGlobal_v12010)(CUcoredumpSettings setting,
    void *value, size_t *size);
typedef CUresult (*PFN_cuCoredumpSetAttribute_v12010)(CUcoredumpSettings setting, void *value,
    size_t *size);
typedef CUresult (*PFN_cuCoredumpSetAttributeGlobal_v12010)(CUcoredumpSettings setting,
    void *value, size_t *size);
typedef CUresult (*PFN_cuCoredumpRegisterStartCallback_v13020)(CUcoredumpStatusCallback callback,
    void *user_data, CUcoredumpCallbackHandle *handle);
typedef CUresult (*PFN_cuCoredumpRegisterCompleteCallback_v13020)(
    CUcoredumpStatusCallback callback, void *user_data, CUcoredumpCallbackHandle *handle);
typedef CUresult (*PFN_cuCoredumpDeregisterStartCallback_v13020)(CUcoredumpCallbackHandle handle);
typedef CUresult (*PFN_cuCoredumpDeregisterCompleteCallback_v13020)(
    CUcoredumpCallbackHandle handle);
