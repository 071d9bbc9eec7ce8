/*
 * What this crate does not bind, and other crates of the project call or stand
 * in for: the software driver and the library in front of a driver. The rules
 * are those of wrapper.h, which is read first, except that the typedef of a
 * twin may be that of its function, and that pages and `required` are left out.
 * bindgen makes src/sys/more_bindings.rs from it.
 */

/* ---- Handles ---- */

typedef struct CUmemPoolHandle_st *CUmemoryPool;
typedef struct CUfunc_st *CUfunction;
typedef struct CUmod_st *CUmodule;
typedef struct CUkern_st *CUkernel;
typedef struct CUarray_st *CUarray;
typedef struct CUuserObject_st *CUuserObject;
typedef struct CUgraphicsResource_st *CUgraphicsResource;
typedef struct CUlib_st *CUlibrary;

/* ---- Types ---- */

typedef enum {
    CU_FUNC_CACHE_PREFER_NONE = 0,
    CU_FUNC_CACHE_PREFER_SHARED = 1,
    CU_FUNC_CACHE_PREFER_L1 = 2,
    CU_FUNC_CACHE_PREFER_EQUAL = 3,
} CUfunc_cache;

typedef enum {
    CU_LIMIT_STACK_SIZE = 0,
    CU_LIMIT_PRINTF_FIFO_SIZE = 1,
    CU_LIMIT_MALLOC_HEAP_SIZE = 2,
    CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH = 3,
    CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT = 4,
    CU_LIMIT_MAX_L2_FETCH_GRANULARITY = 5,
    CU_LIMIT_PERSISTING_L2_CACHE_SIZE = 6,
    CU_LIMIT_SHMEM_SIZE = 7,
    CU_LIMIT_CIG_ENABLED = 8,
    CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED = 9,
    CU_LIMIT_PER_BLOCK_MEMORY_SIZE = 10,
} CUlimit;

typedef enum {
    CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE = 0,
    CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE = 1,
    CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE = 2,
} CUsharedconfig;

typedef enum {
    CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK = 1,
    CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED = 2,
    CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED = 3,
    CU_DEVICE_P2P_ATTRIBUTE_ACCESS_ACCESS_SUPPORTED = 4,
    CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED = 4,
    CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED = 5,
} CUdevice_P2PAttribute;

typedef enum {
    CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0,
    CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1,
    CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES = 2,
    CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES = 3,
    CU_FUNC_ATTRIBUTE_NUM_REGS = 4,
    CU_FUNC_ATTRIBUTE_PTX_VERSION = 5,
    CU_FUNC_ATTRIBUTE_BINARY_VERSION = 6,
    CU_FUNC_ATTRIBUTE_CACHE_MODE_CA = 7,
    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
    CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT = 9,
    CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET = 10,
    CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH = 11,
    CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT = 12,
    CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH = 13,
    CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED = 14,
    CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE = 15,
    CU_FUNC_ATTRIBUTE_DEVICE_NODE_UPDATE_SUPPORTED = 16,
    CU_FUNC_ATTRIBUTE_SHARED_MEMORY_MODE = 17,
} CUfunction_attribute;

typedef enum {
    CU_FUNCTION_LOADING_STATE_UNLOADED = 0,
    CU_FUNCTION_LOADING_STATE_LOADED = 1,
    CU_FUNCTION_LOADING_STATE_MAX = 2,
} CUfunctionLoadingState;

typedef struct {
    CUfunction func;
    unsigned int gridDimX;
    unsigned int gridDimY;
    unsigned int gridDimZ;
    unsigned int blockDimX;
    unsigned int blockDimY;
    unsigned int blockDimZ;
    unsigned int sharedMemBytes;
    void **kernelParams;
    void **extra;
} CUDA_KERNEL_NODE_PARAMS_v1;

typedef struct {
    CUfunction func;
    unsigned int gridDimX;
    unsigned int gridDimY;
    unsigned int gridDimZ;
    unsigned int blockDimX;
    unsigned int blockDimY;
    unsigned int blockDimZ;
    unsigned int sharedMemBytes;
    void **kernelParams;
    void **extra;
    CUkernel kern;
    CUcontext ctx;
} CUDA_KERNEL_NODE_PARAMS_v2;

typedef enum {
    CU_MEMORYTYPE_HOST = 1,
    CU_MEMORYTYPE_DEVICE = 2,
    CU_MEMORYTYPE_ARRAY = 3,
    CU_MEMORYTYPE_UNIFIED = 4,
} CUmemorytype;

typedef struct {
    size_t srcXInBytes;
    size_t srcY;
    size_t srcZ;
    size_t srcLOD;
    CUmemorytype srcMemoryType;
    const void *srcHost;
    CUdeviceptr srcDevice;
    CUarray srcArray;
    void *reserved0;
    size_t srcPitch;
    size_t srcHeight;
    size_t dstXInBytes;
    size_t dstY;
    size_t dstZ;
    size_t dstLOD;
    CUmemorytype dstMemoryType;
    void *dstHost;
    CUdeviceptr dstDevice;
    CUarray dstArray;
    void *reserved1;
    size_t dstPitch;
    size_t dstHeight;
    size_t WidthInBytes;
    size_t Height;
    size_t Depth;
} CUDA_MEMCPY3D;

typedef enum {
    CU_AD_FORMAT_UNSIGNED_INT8 = 0x01,
    CU_AD_FORMAT_UNSIGNED_INT16 = 0x02,
    CU_AD_FORMAT_UNSIGNED_INT32 = 0x03,
    CU_AD_FORMAT_SIGNED_INT8 = 0x08,
    CU_AD_FORMAT_SIGNED_INT16 = 0x09,
    CU_AD_FORMAT_SIGNED_INT32 = 0x0a,
    CU_AD_FORMAT_HALF = 0x10,
    CU_AD_FORMAT_FLOAT = 0x20,
} CUarray_format;

typedef struct {
    size_t Width;
    size_t Height;
    size_t Depth;
    CUarray_format Format;
    unsigned int NumChannels;
    unsigned int Flags;
} CUDA_ARRAY3D_DESCRIPTOR;

typedef struct {
    CUdeviceptr dst;
    size_t pitch;
    unsigned int value;
    unsigned int elementSize;
    size_t width;
    size_t height;
} CUDA_MEMSET_NODE_PARAMS;

typedef enum {
    CU_GRAPH_EXEC_UPDATE_SUCCESS = 0,
    CU_GRAPH_EXEC_UPDATE_ERROR = 1,
    CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED = 2,
    CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED = 3,
    CU_GRAPH_EXEC_UPDATE_ERROR_FUNCTION_CHANGED = 4,
    CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED = 5,
    CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED = 6,
    CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE = 7,
    CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED = 8,
} CUgraphExecUpdateResult;

typedef struct {
    CUgraphExecUpdateResult result;
    CUgraphNode errorNode;
    CUgraphNode errorFromNode;
} CUgraphExecUpdateResultInfo;

typedef enum {
    CUDA_GRAPH_INSTANTIATE_SUCCESS = 0,
    CUDA_GRAPH_INSTANTIATE_ERROR = 1,
    CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE = 2,
    CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED = 3,
    CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED = 4,
    CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED = 5,
} CUgraphInstantiateResult;

typedef struct {
    cuuint64_t flags;
    CUstream hUploadStream;
    CUgraphNode hErrNode_out;
    CUgraphInstantiateResult result_out;
} CUDA_GRAPH_INSTANTIATE_PARAMS;

typedef enum {
    CU_GRAPH_NODE_TYPE_KERNEL = 0,
    CU_GRAPH_NODE_TYPE_MEMCPY = 1,
    CU_GRAPH_NODE_TYPE_MEMSET = 2,
    CU_GRAPH_NODE_TYPE_HOST = 3,
    CU_GRAPH_NODE_TYPE_GRAPH = 4,
    CU_GRAPH_NODE_TYPE_EMPTY = 5,
    CU_GRAPH_NODE_TYPE_WAIT_EVENT = 6,
    CU_GRAPH_NODE_TYPE_EVENT_RECORD = 7,
    CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL = 8,
    CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT = 9,
    CU_GRAPH_NODE_TYPE_MEM_ALLOC = 10,
    CU_GRAPH_NODE_TYPE_MEM_FREE = 11,
    CU_GRAPH_NODE_TYPE_BATCH_MEM_OP = 12,
    CU_GRAPH_NODE_TYPE_CONDITIONAL = 13,
    CU_GRAPH_NODE_TYPE_MEMCPY_BATCH = 14,
    CU_GRAPH_NODE_TYPE_RESERVED_16 = 16,
    CU_GRAPH_NODE_TYPE_EXTERNAL_ENGINE = 17,
    CU_GRAPH_NODE_TYPE_FABRIC_CPY_BATCH = 18,
} CUgraphNodeType;

typedef struct {
    unsigned int gridDimX;
    unsigned int gridDimY;
    unsigned int gridDimZ;
    unsigned int blockDimX;
    unsigned int blockDimY;
    unsigned int blockDimZ;
    unsigned int sharedMemBytes;
    CUstream hStream;
    CUlaunchAttribute *attrs;
    unsigned int numAttrs;
} CUlaunchConfig;

typedef enum {
    CU_JIT_MAX_REGISTERS = 0,
    CU_JIT_THREADS_PER_BLOCK = 1,
    CU_JIT_WALL_TIME = 2,
    CU_JIT_INFO_LOG_BUFFER = 3,
    CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES = 4,
    CU_JIT_ERROR_LOG_BUFFER = 5,
    CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6,
    CU_JIT_OPTIMIZATION_LEVEL = 7,
    CU_JIT_TARGET_FROM_CUCONTEXT = 8,
    CU_JIT_TARGET = 9,
    CU_JIT_FALLBACK_STRATEGY = 10,
    CU_JIT_GENERATE_DEBUG_INFO = 11,
    CU_JIT_LOG_VERBOSE = 12,
    CU_JIT_GENERATE_LINE_INFO = 13,
    CU_JIT_CACHE_MODE = 14,
    CU_JIT_NEW_SM3X_OPT = 15,
    CU_JIT_FAST_COMPILE = 16,
    CU_JIT_GLOBAL_SYMBOL_NAMES = 17,
    CU_JIT_GLOBAL_SYMBOL_ADDRESSES = 18,
    CU_JIT_GLOBAL_SYMBOL_COUNT = 19,
    CU_JIT_LTO = 20,
    CU_JIT_FTZ = 21,
    CU_JIT_PREC_DIV = 22,
    CU_JIT_PREC_SQRT = 23,
    CU_JIT_FMA = 24,
    CU_JIT_REFERENCED_KERNEL_NAMES = 25,
    CU_JIT_REFERENCED_KERNEL_COUNT = 26,
    CU_JIT_REFERENCED_VARIABLE_NAMES = 27,
    CU_JIT_REFERENCED_VARIABLE_COUNT = 28,
    CU_JIT_OPTIMIZE_UNUSED_DEVICE_VARIABLES = 29,
    CU_JIT_POSITION_INDEPENDENT_CODE = 30,
    CU_JIT_MIN_CTA_PER_SM = 31,
    CU_JIT_MAX_THREADS_PER_BLOCK = 32,
    CU_JIT_OVERRIDE_DIRECTIVE_VALUES = 33,
    CU_JIT_SPLIT_COMPILE = 34,
    CU_JIT_BINARY_LOADER_THREAD_COUNT = 35,
} CUjit_option;

typedef enum {
    CU_LIBRARY_HOST_UNIVERSAL_FUNCTION_AND_DATA_TABLE = 0,
    CU_LIBRARY_BINARY_IS_PRESERVED = 1,
    CU_LIBRARY_NUM_OPTIONS = 2,
} CUlibraryOption;

typedef enum {
    CU_MEM_ADVISE_SET_READ_MOSTLY = 1,
    CU_MEM_ADVISE_UNSET_READ_MOSTLY = 2,
    CU_MEM_ADVISE_SET_PREFERRED_LOCATION = 3,
    CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION = 4,
    CU_MEM_ADVISE_SET_ACCESSED_BY = 5,
    CU_MEM_ADVISE_UNSET_ACCESSED_BY = 6,
} CUmem_advise;

typedef enum {
    CU_MEM_LOCATION_TYPE_INVALID = 0,
    CU_MEM_LOCATION_TYPE_NONE = 0,
    CU_MEM_LOCATION_TYPE_DEVICE = 1,
    CU_MEM_LOCATION_TYPE_HOST = 2,
    CU_MEM_LOCATION_TYPE_HOST_NUMA = 3,
    CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT = 4,
    CU_MEM_LOCATION_TYPE_INVISIBLE = 5,
    CU_MEM_LOCATION_TYPE_DEVICE_LOCALITY_DOMAIN = 6,
    CU_MEM_LOCATION_TYPE_MAX = 0x7FFFFFFF,
} CUmemLocationType;

typedef struct {
    CUmemLocationType type;
    int id;
} CUmemLocation;

typedef unsigned long long CUmemGenericAllocationHandle;

typedef enum {
    CU_MEM_ALLOCATION_TYPE_INVALID = 0,
    CU_MEM_ALLOCATION_TYPE_PINNED = 1,
    CU_MEM_ALLOCATION_TYPE_MANAGED = 2,
    CU_MEM_ALLOCATION_TYPE_MAX = 0x7FFFFFFF,
} CUmemAllocationType;

typedef enum {
    CU_MEM_HANDLE_TYPE_NONE = 0,
    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR = 1,
    CU_MEM_HANDLE_TYPE_WIN32 = 2,
    CU_MEM_HANDLE_TYPE_WIN32_KMT = 4,
    CU_MEM_HANDLE_TYPE_FABRIC = 8,
    CU_MEM_HANDLE_TYPE_MAX = 0x7FFFFFFF,
} CUmemAllocationHandleType;

typedef struct {
    unsigned char compressionType;
    unsigned char gpuDirectRDMACapable;
    unsigned short usage;
    unsigned char reserved[4];
} CUmemAllocationProp_allocFlags_u;

typedef struct {
    CUmemAllocationType type;
    CUmemAllocationHandleType requestedHandleTypes;
    CUmemLocation location;
    void *win32HandleMetaData;
    CUmemAllocationProp_allocFlags_u allocFlags;
} CUmemAllocationProp;

typedef enum {
    CU_MEM_ALLOC_GRANULARITY_MINIMUM = 0,
    CU_MEM_ALLOC_GRANULARITY_RECOMMENDED = 1,
} CUmemAllocationGranularity_flags;

typedef struct {
    CUmemAllocationType allocType;
    CUmemAllocationHandleType handleTypes;
    CUmemLocation location;
    void *win32SecurityAttributes;
    size_t maxSize;
    unsigned short usage;
    unsigned char gpuDirectRDMACapable;
    unsigned char reserved[53];
} CUmemPoolProps;

typedef struct {
    unsigned char reserved[64];
} CUmemPoolPtrExportData;

typedef enum {
    CU_MEM_ACCESS_FLAGS_PROT_NONE = 0,
    CU_MEM_ACCESS_FLAGS_PROT_READ = 1,
    CU_MEM_ACCESS_FLAGS_PROT_READWRITE = 3,
    CU_MEM_ACCESS_FLAGS_PROT_MAX = 0x7FFFFFFF,
} CUmemAccess_flags;

typedef enum {
    CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES = 1,
    CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC = 2,
    CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES = 3,
    CU_MEMPOOL_ATTR_RELEASE_THRESHOLD = 4,
    CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT = 5,
    CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH = 6,
    CU_MEMPOOL_ATTR_USED_MEM_CURRENT = 7,
    CU_MEMPOOL_ATTR_USED_MEM_HIGH = 8,
    CU_MEMPOOL_ATTR_ALLOCATION_TYPE = 9,
    CU_MEMPOOL_ATTR_EXPORT_HANDLE_TYPES = 10,
    CU_MEMPOOL_ATTR_LOCATION_ID = 11,
    CU_MEMPOOL_ATTR_LOCATION_TYPE = 12,
    CU_MEMPOOL_ATTR_MAX_POOL_SIZE = 13,
    CU_MEMPOOL_ATTR_HW_DECOMPRESS_ENABLED = 14,
    CU_MEMPOOL_ATTR_LOCALITY_DOMAIN_ID = 15,
} CUmemPool_attribute;

typedef struct {
    CUmemLocation location;
    CUmemAccess_flags flags;
} CUmemAccessDesc;

typedef struct {
    size_t srcXInBytes;
    size_t srcY;
    CUmemorytype srcMemoryType;
    const void *srcHost;
    CUdeviceptr srcDevice;
    CUarray srcArray;
    size_t srcPitch;
    size_t dstXInBytes;
    size_t dstY;
    CUmemorytype dstMemoryType;
    void *dstHost;
    CUdeviceptr dstDevice;
    CUarray dstArray;
    size_t dstPitch;
    size_t WidthInBytes;
    size_t Height;
} CUDA_MEMCPY2D;

typedef enum {
    CU_MEMCPY_OPERAND_TYPE_POINTER = 1,
    CU_MEMCPY_OPERAND_TYPE_ARRAY = 2,
    CU_MEMCPY_OPERAND_TYPE_MAX = 0x7FFFFFFF,
} CUmemcpy3DOperandType;

typedef struct {
    CUdeviceptr ptr;
    size_t rowLength;
    size_t layerHeight;
    CUmemLocation locHint;
} CUmemcpy3DOperand_ptr_u;

typedef struct {
    size_t x;
    size_t y;
    size_t z;
} CUoffset3D;

typedef struct {
    CUarray array;
    CUoffset3D offset;
} CUmemcpy3DOperand_array_u;

typedef union {
    CUmemcpy3DOperand_ptr_u ptr;
    CUmemcpy3DOperand_array_u array;
} CUmemcpy3DOperand_u;

typedef struct {
    CUmemcpy3DOperandType type;
    CUmemcpy3DOperand_u op;
} CUmemcpy3DOperand;

typedef struct {
    size_t width;
    size_t height;
    size_t depth;
} CUextent3D;

typedef enum {
    CU_MEMCPY_SRC_ACCESS_ORDER_INVALID = 0,
    CU_MEMCPY_SRC_ACCESS_ORDER_STREAM = 1,
    CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL = 2,
    CU_MEMCPY_SRC_ACCESS_ORDER_ANY = 3,
    CU_MEMCPY_SRC_ACCESS_ORDER_MAX = 0x7FFFFFFF,
} CUmemcpySrcAccessOrder;

typedef struct {
    CUmemcpy3DOperand src;
    CUmemcpy3DOperand dst;
    CUextent3D extent;
    CUmemcpySrcAccessOrder srcAccessOrder;
    unsigned int flags;
} CUDA_MEMCPY3D_BATCH_OP;

typedef struct {
    size_t srcXInBytes;
    size_t srcY;
    size_t srcZ;
    size_t srcLOD;
    CUmemorytype srcMemoryType;
    const void *srcHost;
    CUdeviceptr srcDevice;
    CUarray srcArray;
    CUcontext srcContext;
    size_t srcPitch;
    size_t srcHeight;
    size_t dstXInBytes;
    size_t dstY;
    size_t dstZ;
    size_t dstLOD;
    CUmemorytype dstMemoryType;
    void *dstHost;
    CUdeviceptr dstDevice;
    CUarray dstArray;
    CUcontext dstContext;
    size_t dstPitch;
    size_t dstHeight;
    size_t WidthInBytes;
    size_t Height;
    size_t Depth;
} CUDA_MEMCPY3D_PEER;

typedef struct {
    CUmemcpySrcAccessOrder srcAccessOrder;
    CUmemLocation srcLocHint;
    CUmemLocation dstLocHint;
    unsigned int flags;
} CUmemcpyAttributes;

typedef enum {
    CU_MODULE_EAGER_LOADING = 1,
    CU_MODULE_LAZY_LOADING = 2,
} CUmoduleLoadingMode;

typedef size_t (*CUoccupancyB2DSize)(int);

typedef enum {
    CU_POINTER_ATTRIBUTE_CONTEXT = 1,
    CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2,
    CU_POINTER_ATTRIBUTE_DEVICE_POINTER = 3,
    CU_POINTER_ATTRIBUTE_HOST_POINTER = 4,
    CU_POINTER_ATTRIBUTE_P2P_TOKENS = 5,
    CU_POINTER_ATTRIBUTE_SYNC_MEMOPS = 6,
    CU_POINTER_ATTRIBUTE_BUFFER_ID = 7,
    CU_POINTER_ATTRIBUTE_IS_MANAGED = 8,
    CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9,
    CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE = 10,
    CU_POINTER_ATTRIBUTE_RANGE_START_ADDR = 11,
    CU_POINTER_ATTRIBUTE_RANGE_SIZE = 12,
    CU_POINTER_ATTRIBUTE_MAPPED = 13,
    CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES = 14,
    CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE = 15,
    CU_POINTER_ATTRIBUTE_ACCESS_FLAGS = 16,
    CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE = 17,
    CU_POINTER_ATTRIBUTE_MAPPING_SIZE = 18,
    CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR = 19,
    CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID = 20,
    CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE = 21,
    CU_POINTER_ATTRIBUTE_LOCALITY_DOMAIN_ORDINAL = 22,
} CUpointer_attribute;

/* ---- Functions ---- */

/* cuArray3DGetDescriptor_v2 */
typedef CUresult (*PFN_cuArray3DGetDescriptor_v3020)(CUDA_ARRAY3D_DESCRIPTOR *descriptor,
    CUarray array);
typedef CUresult (*PFN_cuCtxAttach_v2000)(CUcontext *context, unsigned int flags);
/* cuCtxCreate_v3 */
typedef CUresult (*PFN_cuCtxCreate_v11040)(CUcontext *context, CUexecAffinityParam *params,
    int count, unsigned int flags, CUdevice device);
typedef CUresult (*PFN_cuCtxDestroy_v2000)(CUcontext context);
typedef CUresult (*PFN_cuCtxDetach_v2000)(CUcontext context);
typedef CUresult (*PFN_cuCtxDisablePeerAccess_v4000)(CUcontext peer);
typedef CUresult (*PFN_cuCtxEnablePeerAccess_v4000)(CUcontext peer, unsigned int flags);
typedef CUresult (*PFN_cuCtxGetApiVersion_v3020)(CUcontext context, unsigned int *version);
typedef CUresult (*PFN_cuCtxGetCacheConfig_v3020)(CUfunc_cache *config);
typedef CUresult (*PFN_cuCtxGetLimit_v3010)(size_t *value, CUlimit limit);
typedef CUresult (*PFN_cuCtxGetSharedMemConfig_v4020)(CUsharedconfig *config);
typedef CUresult (*PFN_cuCtxPopCurrent_v2000)(CUcontext *context);
typedef CUresult (*PFN_cuCtxPushCurrent_v2000)(CUcontext context);
typedef CUresult (*PFN_cuCtxResetPersistingL2Cache_v11000)(void);
typedef CUresult (*PFN_cuCtxSetCacheConfig_v3020)(CUfunc_cache config);
typedef CUresult (*PFN_cuCtxSetFlags_v12010)(unsigned int flags);
typedef CUresult (*PFN_cuCtxSetLimit_v3010)(CUlimit limit, size_t value);
typedef CUresult (*PFN_cuCtxSetSharedMemConfig_v4020)(CUsharedconfig config);
typedef CUresult (*PFN_cuDeviceCanAccessPeer_v4000)(int *can, CUdevice device, CUdevice peer);
typedef CUresult (*PFN_cuDeviceComputeCapability_v2000)(int *major, int *minor, CUdevice device);
typedef CUresult (*PFN_cuDeviceGetByPCIBusId_v4010)(CUdevice *device, const char *id);
typedef CUresult (*PFN_cuDeviceGetDefaultMemPool_v11020)(CUmemoryPool *pool, CUdevice device);
typedef CUresult (*PFN_cuDeviceGetMemPool_v11020)(CUmemoryPool *pool, CUdevice device);
typedef CUresult (*PFN_cuDeviceGetP2PAttribute_v8000)(int *value, CUdevice_P2PAttribute attribute,
    CUdevice device, CUdevice peer);
typedef CUresult (*PFN_cuDeviceGetPCIBusId_v4010)(char *id, int size, CUdevice device);
typedef CUresult (*PFN_cuDevicePrimaryCtxRelease_v7000)(CUdevice device);
typedef CUresult (*PFN_cuDevicePrimaryCtxReset_v7000)(CUdevice device);
/* cuDevicePrimaryCtxReset_v2 */
typedef CUresult (*PFN_cuDevicePrimaryCtxReset_v11000)(CUdevice device);
typedef CUresult (*PFN_cuDevicePrimaryCtxSetFlags_v7000)(CUdevice device, unsigned int flags);
/* cuDevicePrimaryCtxSetFlags_v2 */
typedef CUresult (*PFN_cuDevicePrimaryCtxSetFlags_v11000)(CUdevice device, unsigned int flags);
typedef CUresult (*PFN_cuDeviceSetMemPool_v11020)(CUdevice device, CUmemoryPool pool);
typedef CUresult (*PFN_cuEventDestroy_v2000)(CUevent event);
typedef CUresult (*PFN_cuFuncGetAttribute_v2020)(int *value, CUfunction_attribute attribute,
    CUfunction function);
typedef CUresult (*PFN_cuFuncGetModule_v11000)(CUmodule *owner, CUfunction function);
typedef CUresult (*PFN_cuFuncGetName_v12030)(const char **name, CUfunction function);
typedef CUresult (*PFN_cuFuncGetParamCount_v13020)(CUfunction function, size_t *count);
typedef CUresult (*PFN_cuFuncGetParamInfo_v12040)(CUfunction function, size_t index, size_t *offset,
    size_t *size);
typedef CUresult (*PFN_cuFuncIsLoaded_v12040)(CUfunctionLoadingState *loaded, CUfunction function);
typedef CUresult (*PFN_cuFuncLoad_v12040)(CUfunction function);
typedef CUresult (*PFN_cuFuncSetAttribute_v9000)(CUfunction function,
    CUfunction_attribute attribute, int value);
typedef CUresult (*PFN_cuFuncSetCacheConfig_v3000)(CUfunction function, CUfunc_cache config);
typedef CUresult (*PFN_cuFuncSetSharedMemConfig_v4020)(CUfunction function, CUsharedconfig config);
typedef CUresult (*PFN_cuGetExportTable_v3000)(const void **table, const CUuuid *id);
typedef CUresult (*PFN_cuGraphAddChildGraphNode_v10000)(CUgraphNode *node, CUgraph graph,
    const CUgraphNode *after, size_t count, CUgraph child);
typedef CUresult (*PFN_cuGraphAddDependencies_v10000)(CUgraph graph, const CUgraphNode *from,
    const CUgraphNode *to, size_t count);
/* cuGraphAddDependencies_v2 */
typedef CUresult (*PFN_cuGraphAddDependencies_v12030)(CUgraph graph, const CUgraphNode *from,
    const CUgraphNode *to, const CUgraphEdgeData *edges, size_t count);
typedef CUresult (*PFN_cuGraphAddEmptyNode_v10000)(CUgraphNode *node, CUgraph graph,
    const CUgraphNode *after, size_t count);
typedef CUresult (*PFN_cuGraphAddKernelNode_v10000)(CUgraphNode *node, CUgraph graph,
    const CUgraphNode *after, size_t count, const CUDA_KERNEL_NODE_PARAMS_v1 *params);
/* cuGraphAddKernelNode_v2 */
typedef CUresult (*PFN_cuGraphAddKernelNode_v12000)(CUgraphNode *node, CUgraph graph,
    const CUgraphNode *after, size_t count, const CUDA_KERNEL_NODE_PARAMS_v2 *params);
typedef CUresult (*PFN_cuGraphAddMemcpyNode_v10000)(CUgraphNode *node, CUgraph graph,
    const CUgraphNode *after, size_t count, const CUDA_MEMCPY3D *params, CUcontext context);
typedef CUresult (*PFN_cuGraphAddMemsetNode_v10000)(CUgraphNode *node, CUgraph graph,
    const CUgraphNode *after, size_t count, const CUDA_MEMSET_NODE_PARAMS *params,
    CUcontext context);
typedef CUresult (*PFN_cuGraphChildGraphNodeGetGraph_v10000)(CUgraphNode node, CUgraph *graph);
typedef CUresult (*PFN_cuGraphClone_v10000)(CUgraph *clone, CUgraph graph);
typedef CUresult (*PFN_cuGraphDestroyNode_v10000)(CUgraphNode node);
typedef CUresult (*PFN_cuGraphExecGetFlags_v12000)(CUgraphExec exec, cuuint64_t *flags);
typedef CUresult (*PFN_cuGraphExecKernelNodeSetParams_v10010)(CUgraphExec exec, CUgraphNode node,
    const CUDA_KERNEL_NODE_PARAMS_v1 *params);
/* cuGraphExecKernelNodeSetParams_v2 */
typedef CUresult (*PFN_cuGraphExecKernelNodeSetParams_v12000)(CUgraphExec exec, CUgraphNode node,
    const CUDA_KERNEL_NODE_PARAMS_v2 *params);
typedef CUresult (*PFN_cuGraphExecMemcpyNodeSetParams_v10020)(CUgraphExec exec, CUgraphNode node,
    const CUDA_MEMCPY3D *params, CUcontext context);
typedef CUresult (*PFN_cuGraphExecMemsetNodeSetParams_v10020)(CUgraphExec exec, CUgraphNode node,
    const CUDA_MEMSET_NODE_PARAMS *params, CUcontext context);
typedef CUresult (*PFN_cuGraphExecUpdate_v10020)(CUgraphExec exec, CUgraph graph, CUgraphNode *node,
    CUgraphExecUpdateResult *result);
/* cuGraphExecUpdate_v2 */
typedef CUresult (*PFN_cuGraphExecUpdate_v12000)(CUgraphExec exec, CUgraph graph,
    CUgraphExecUpdateResultInfo *result);
typedef CUresult (*PFN_cuGraphGetEdges_v10000)(CUgraph graph, CUgraphNode *from, CUgraphNode *to,
    size_t *count);
/* cuGraphGetEdges_v2 */
typedef CUresult (*PFN_cuGraphGetEdges_v12030)(CUgraph graph, CUgraphNode *from, CUgraphNode *to,
    CUgraphEdgeData *edges, size_t *count);
typedef CUresult (*PFN_cuGraphGetNodes_v10000)(CUgraph graph, CUgraphNode *nodes, size_t *count);
typedef CUresult (*PFN_cuGraphGetRootNodes_v10000)(CUgraph graph, CUgraphNode *nodes,
    size_t *count);
typedef CUresult (*PFN_cuGraphInstantiate_v10000)(CUgraphExec *exec, CUgraph graph,
    CUgraphNode *node, char *log, size_t size);
typedef CUresult (*PFN_cuGraphInstantiateWithParams_v12000)(CUgraphExec *exec, CUgraph graph,
    CUDA_GRAPH_INSTANTIATE_PARAMS *params);
typedef PFN_cuGraphInstantiateWithParams_v12000 PFN_cuGraphInstantiateWithParams_v12000_ptsz;
typedef CUresult (*PFN_cuGraphKernelNodeGetAttribute_v11000)(CUgraphNode node,
    CUlaunchAttributeID attribute, CUlaunchAttributeValue *value);
typedef CUresult (*PFN_cuGraphKernelNodeGetParams_v10000)(CUgraphNode node,
    CUDA_KERNEL_NODE_PARAMS_v1 *params);
/* cuGraphKernelNodeGetParams_v2 */
typedef CUresult (*PFN_cuGraphKernelNodeGetParams_v12000)(CUgraphNode node,
    CUDA_KERNEL_NODE_PARAMS_v2 *params);
typedef CUresult (*PFN_cuGraphKernelNodeSetParams_v10000)(CUgraphNode node,
    const CUDA_KERNEL_NODE_PARAMS_v1 *params);
/* cuGraphKernelNodeSetParams_v2 */
typedef CUresult (*PFN_cuGraphKernelNodeSetParams_v12000)(CUgraphNode node,
    const CUDA_KERNEL_NODE_PARAMS_v2 *params);
typedef CUresult (*PFN_cuGraphMemcpyNodeGetParams_v10000)(CUgraphNode node, CUDA_MEMCPY3D *params);
typedef CUresult (*PFN_cuGraphMemcpyNodeSetParams_v10000)(CUgraphNode node,
    const CUDA_MEMCPY3D *params);
typedef CUresult (*PFN_cuGraphMemsetNodeGetParams_v10000)(CUgraphNode node,
    CUDA_MEMSET_NODE_PARAMS *params);
typedef CUresult (*PFN_cuGraphMemsetNodeSetParams_v10000)(CUgraphNode node,
    const CUDA_MEMSET_NODE_PARAMS *params);
typedef CUresult (*PFN_cuGraphNodeFindInClone_v10000)(CUgraphNode *node, CUgraphNode original,
    CUgraph clone);
typedef CUresult (*PFN_cuGraphNodeGetContainingGraph_v13010)(CUgraphNode node, CUgraph *graph);
typedef CUresult (*PFN_cuGraphNodeGetDependencies_v10000)(CUgraphNode node, CUgraphNode *nodes,
    size_t *count);
/* cuGraphNodeGetDependencies_v2 */
typedef CUresult (*PFN_cuGraphNodeGetDependencies_v12030)(CUgraphNode node, CUgraphNode *nodes,
    CUgraphEdgeData *edges, size_t *count);
typedef CUresult (*PFN_cuGraphNodeGetDependentNodes_v10000)(CUgraphNode node, CUgraphNode *nodes,
    size_t *count);
/* cuGraphNodeGetDependentNodes_v2 */
typedef CUresult (*PFN_cuGraphNodeGetDependentNodes_v12030)(CUgraphNode node, CUgraphNode *nodes,
    CUgraphEdgeData *edges, size_t *count);
typedef CUresult (*PFN_cuGraphNodeGetEnabled_v11060)(CUgraphExec exec, CUgraphNode node,
    unsigned int *enabled);
typedef CUresult (*PFN_cuGraphNodeGetParams_v13020)(CUgraphNode node, CUgraphNodeParams *params);
typedef CUresult (*PFN_cuGraphNodeGetType_v10000)(CUgraphNode node, CUgraphNodeType *type);
typedef CUresult (*PFN_cuGraphNodeSetEnabled_v11060)(CUgraphExec exec, CUgraphNode node,
    unsigned int enabled);
typedef CUresult (*PFN_cuGraphReleaseUserObject_v11030)(CUgraph graph, CUuserObject object,
    unsigned int count);
typedef CUresult (*PFN_cuGraphRemoveDependencies_v10000)(CUgraph graph, const CUgraphNode *from,
    const CUgraphNode *to, size_t count);
/* cuGraphRemoveDependencies_v2 */
typedef CUresult (*PFN_cuGraphRemoveDependencies_v12030)(CUgraph graph, const CUgraphNode *from,
    const CUgraphNode *to, const CUgraphEdgeData *edges, size_t count);
typedef CUresult (*PFN_cuGraphRetainUserObject_v11030)(CUgraph graph, CUuserObject object,
    unsigned int count, unsigned int flags);
typedef CUresult (*PFN_cuGraphUpload_v11010)(CUgraphExec exec, CUstream stream);
typedef PFN_cuGraphUpload_v11010 PFN_cuGraphUpload_v11010_ptsz;
/* cuGraphicsResourceGetMappedPointer_v2 */
typedef CUresult (*PFN_cuGraphicsResourceGetMappedPointer_v3020)(CUdeviceptr *address,
    size_t *bytes, CUgraphicsResource resource);
typedef CUresult (*PFN_cuIpcOpenMemHandle_v4010)(CUdeviceptr *address, CUipcMemHandle descriptor,
    unsigned int flags);
typedef CUresult (*PFN_cuKernelGetAttribute_v12000)(int *value, CUfunction_attribute attribute,
    CUkernel kernel, CUdevice device);
typedef CUresult (*PFN_cuKernelGetFunction_v12000)(CUfunction *function, CUkernel kernel);
typedef CUresult (*PFN_cuKernelGetLibrary_v12050)(CUlibrary *owner, CUkernel kernel);
typedef CUresult (*PFN_cuKernelGetName_v12030)(const char **name, CUkernel kernel);
typedef CUresult (*PFN_cuKernelGetParamCount_v13020)(CUkernel kernel, size_t *count);
typedef CUresult (*PFN_cuKernelGetParamInfo_v12040)(CUkernel kernel, size_t index, size_t *offset,
    size_t *size);
typedef CUresult (*PFN_cuKernelSetAttribute_v12000)(CUfunction_attribute attribute, int value,
    CUkernel kernel, CUdevice device);
typedef CUresult (*PFN_cuKernelSetCacheConfig_v12000)(CUkernel kernel, CUfunc_cache config,
    CUdevice device);
typedef CUresult (*PFN_cuLaunchCooperativeKernel_v9000)(CUfunction function, unsigned int grid_x,
    unsigned int grid_y, unsigned int grid_z, unsigned int block_x, unsigned int block_y,
    unsigned int block_z, unsigned int shared, CUstream stream, void **parameters);
typedef PFN_cuLaunchCooperativeKernel_v9000 PFN_cuLaunchCooperativeKernel_v9000_ptsz;
typedef CUresult (*PFN_cuLaunchKernel_v4000)(CUfunction function, unsigned int grid_x,
    unsigned int grid_y, unsigned int grid_z, unsigned int block_x, unsigned int block_y,
    unsigned int block_z, unsigned int shared, CUstream stream, void **parameters, void **extra);
typedef PFN_cuLaunchKernel_v4000 PFN_cuLaunchKernel_v7000_ptsz;
typedef CUresult (*PFN_cuLaunchKernelEx_v11060)(const CUlaunchConfig *config, CUfunction function,
    void **parameters, void **extra);
typedef PFN_cuLaunchKernelEx_v11060 PFN_cuLaunchKernelEx_v11060_ptsz;
typedef CUresult (*PFN_cuLibraryEnumerateKernels_v12040)(CUkernel *kernels, unsigned int count,
    CUlibrary library);
typedef CUresult (*PFN_cuLibraryGetGlobal_v12000)(CUdeviceptr *address, size_t *bytes,
    CUlibrary library, const char *name);
typedef CUresult (*PFN_cuLibraryGetKernel_v12000)(CUkernel *kernel, CUlibrary library,
    const char *name);
typedef CUresult (*PFN_cuLibraryGetKernelCount_v12040)(unsigned int *count, CUlibrary library);
typedef CUresult (*PFN_cuLibraryGetManaged_v12000)(CUdeviceptr *address, size_t *bytes,
    CUlibrary library, const char *name);
typedef CUresult (*PFN_cuLibraryGetModule_v12000)(CUmodule *module, CUlibrary library);
typedef CUresult (*PFN_cuLibraryLoadData_v12000)(CUlibrary *library, const void *image,
    CUjit_option *options, void **values, unsigned int count, CUlibraryOption *library_options,
    void **library_values, unsigned int library_count);
typedef CUresult (*PFN_cuLibraryLoadFromFile_v12000)(CUlibrary *library, const char *path,
    CUjit_option *options, void **values, unsigned int count, CUlibraryOption *library_options,
    void **library_values, unsigned int library_count);
typedef CUresult (*PFN_cuLibraryUnload_v12000)(CUlibrary library);
typedef CUresult (*PFN_cuMemAddressFree_v10020)(CUdeviceptr address, size_t bytes);
typedef CUresult (*PFN_cuMemAddressReserve_v10020)(CUdeviceptr *address, size_t bytes,
    size_t alignment, CUdeviceptr wanted, unsigned long long flags);
typedef CUresult (*PFN_cuMemAdvise_v8000)(CUdeviceptr address, size_t bytes, CUmem_advise advice,
    CUdevice device);
/* cuMemAdvise_v2 */
typedef CUresult (*PFN_cuMemAdvise_v12020)(CUdeviceptr address, size_t bytes, CUmem_advise advice,
    CUmemLocation location);
typedef CUresult (*PFN_cuMemAllocAsync_v11020)(CUdeviceptr *address, size_t bytes, CUstream stream);
typedef PFN_cuMemAllocAsync_v11020 PFN_cuMemAllocAsync_v11020_ptsz;
typedef CUresult (*PFN_cuMemAllocFromPoolAsync_v11020)(CUdeviceptr *address, size_t bytes,
    CUmemoryPool pool, CUstream stream);
typedef PFN_cuMemAllocFromPoolAsync_v11020 PFN_cuMemAllocFromPoolAsync_v11020_ptsz;
/* cuMemAllocHost_v2 */
typedef CUresult (*PFN_cuMemAllocHost_v3020)(void **memory, size_t bytes);
typedef CUresult (*PFN_cuMemAllocManaged_v6000)(CUdeviceptr *address, size_t bytes,
    unsigned int flags);
/* cuMemAllocPitch_v2 */
typedef CUresult (*PFN_cuMemAllocPitch_v3020)(CUdeviceptr *address, size_t *pitch, size_t width,
    size_t height, unsigned int element);
typedef CUresult (*PFN_cuMemCreate_v10020)(CUmemGenericAllocationHandle *handle, size_t bytes,
    const CUmemAllocationProp *props, unsigned long long flags);
typedef CUresult (*PFN_cuMemDiscardAndPrefetchBatchAsync_v13000)(CUdeviceptr *addresses,
    size_t *sizes, size_t count, CUmemLocation *places, size_t *first, size_t places_count,
    unsigned long long flags, CUstream stream);
typedef PFN_cuMemDiscardAndPrefetchBatchAsync_v13000
    PFN_cuMemDiscardAndPrefetchBatchAsync_v13000_ptsz;
typedef CUresult (*PFN_cuMemDiscardBatchAsync_v13000)(CUdeviceptr *addresses, size_t *sizes,
    size_t count, unsigned long long flags, CUstream stream);
typedef PFN_cuMemDiscardBatchAsync_v13000 PFN_cuMemDiscardBatchAsync_v13000_ptsz;
typedef CUresult (*PFN_cuMemFreeAsync_v11020)(CUdeviceptr address, CUstream stream);
typedef PFN_cuMemFreeAsync_v11020 PFN_cuMemFreeAsync_v11020_ptsz;
typedef CUresult (*PFN_cuMemGetAccess_v10020)(unsigned long long *flags,
    const CUmemLocation *location, CUdeviceptr address);
/* cuMemGetAddressRange_v2 */
typedef CUresult (*PFN_cuMemGetAddressRange_v3020)(CUdeviceptr *base, size_t *size,
    CUdeviceptr address);
typedef CUresult (*PFN_cuMemGetAllocationGranularity_v10020)(size_t *granularity,
    const CUmemAllocationProp *properties, CUmemAllocationGranularity_flags option);
typedef CUresult (*PFN_cuMemGetAllocationPropertiesFromHandle_v10020)(CUmemAllocationProp *props,
    CUmemGenericAllocationHandle handle);
typedef CUresult (*PFN_cuMemGetDefaultMemPool_v13000)(CUmemoryPool *pool, CUmemLocation *location,
    CUmemAllocationType type);
typedef CUresult (*PFN_cuMemGetMemPool_v13000)(CUmemoryPool *pool, CUmemLocation *location,
    CUmemAllocationType type);
typedef CUresult (*PFN_cuMemHostGetFlags_v2030)(unsigned int *flags, void *memory);
typedef CUresult (*PFN_cuMemHostRegister_v4000)(void *memory, size_t bytes, unsigned int flags);
typedef CUresult (*PFN_cuMemHostUnregister_v4000)(void *memory);
typedef CUresult (*PFN_cuMemMap_v10020)(CUdeviceptr address, size_t bytes, size_t offset,
    CUmemGenericAllocationHandle memory, unsigned long long flags);
typedef CUresult (*PFN_cuMemPoolCreate_v11020)(CUmemoryPool *pool, const CUmemPoolProps *props);
typedef CUresult (*PFN_cuMemPoolDestroy_v11020)(CUmemoryPool pool);
typedef CUresult (*PFN_cuMemPoolExportPointer_v11020)(CUmemPoolPtrExportData *descriptor,
    CUdeviceptr address);
typedef CUresult (*PFN_cuMemPoolExportToShareableHandle_v11020)(void *handle, CUmemoryPool pool,
    CUmemAllocationHandleType handle_type, unsigned long long flags);
typedef CUresult (*PFN_cuMemPoolGetAccess_v11020)(CUmemAccess_flags *flags, CUmemoryPool pool,
    CUmemLocation *location);
typedef CUresult (*PFN_cuMemPoolGetAttribute_v11020)(CUmemoryPool pool,
    CUmemPool_attribute attribute, void *value);
typedef CUresult (*PFN_cuMemPoolImportFromShareableHandle_v11020)(CUmemoryPool *pool, void *handle,
    CUmemAllocationHandleType handle_type, unsigned long long flags);
typedef CUresult (*PFN_cuMemPoolImportPointer_v11020)(CUdeviceptr *address, CUmemoryPool pool,
    CUmemPoolPtrExportData *descriptor);
typedef CUresult (*PFN_cuMemPoolSetAccess_v11020)(CUmemoryPool pool,
    const CUmemAccessDesc *descriptions, size_t count);
typedef CUresult (*PFN_cuMemPoolSetAttribute_v11020)(CUmemoryPool pool,
    CUmemPool_attribute attribute, void *value);
typedef CUresult (*PFN_cuMemPoolTrimTo_v11020)(CUmemoryPool pool, size_t keep);
typedef CUresult (*PFN_cuMemPrefetchAsync_v8000)(CUdeviceptr address, size_t bytes, CUdevice device,
    CUstream stream);
typedef PFN_cuMemPrefetchAsync_v8000 PFN_cuMemPrefetchAsync_v8000_ptsz;
/* cuMemPrefetchAsync_v2 */
typedef CUresult (*PFN_cuMemPrefetchAsync_v12020)(CUdeviceptr address, size_t bytes,
    CUmemLocation location, unsigned int flags, CUstream stream);
typedef PFN_cuMemPrefetchAsync_v12020 PFN_cuMemPrefetchAsync_v12020_ptsz;
typedef CUresult (*PFN_cuMemPrefetchBatchAsync_v13000)(CUdeviceptr *addresses, size_t *sizes,
    size_t count, CUmemLocation *places, size_t *first, size_t places_count,
    unsigned long long flags, CUstream stream);
typedef PFN_cuMemPrefetchBatchAsync_v13000 PFN_cuMemPrefetchBatchAsync_v13000_ptsz;
typedef CUresult (*PFN_cuMemRelease_v10020)(CUmemGenericAllocationHandle handle);
typedef CUresult (*PFN_cuMemRetainAllocationHandle_v11000)(CUmemGenericAllocationHandle *handle,
    void *address);
typedef CUresult (*PFN_cuMemSetAccess_v10020)(CUdeviceptr address, size_t bytes,
    const CUmemAccessDesc *access, size_t count);
typedef CUresult (*PFN_cuMemSetMemPool_v13000)(CUmemLocation *location, CUmemAllocationType type,
    CUmemoryPool pool);
typedef CUresult (*PFN_cuMemUnmap_v10020)(CUdeviceptr address, size_t bytes);
typedef CUresult (*PFN_cuMemcpy_v4000)(CUdeviceptr to, CUdeviceptr from, size_t bytes);
typedef PFN_cuMemcpy_v4000 PFN_cuMemcpy_v7000_ptds;
/* cuMemcpy2D_v2 */
typedef CUresult (*PFN_cuMemcpy2D_v3020)(const CUDA_MEMCPY2D *copy);
typedef PFN_cuMemcpy2D_v3020 PFN_cuMemcpy2D_v7000_ptds;
/* cuMemcpy2DAsync_v2 */
typedef CUresult (*PFN_cuMemcpy2DAsync_v3020)(const CUDA_MEMCPY2D *copy, CUstream stream);
typedef PFN_cuMemcpy2DAsync_v3020 PFN_cuMemcpy2DAsync_v7000_ptsz;
/* cuMemcpy2DUnaligned_v2 */
typedef CUresult (*PFN_cuMemcpy2DUnaligned_v3020)(const CUDA_MEMCPY2D *copy);
typedef PFN_cuMemcpy2DUnaligned_v3020 PFN_cuMemcpy2DUnaligned_v7000_ptds;
/* cuMemcpy3D_v2 */
typedef CUresult (*PFN_cuMemcpy3D_v3020)(const CUDA_MEMCPY3D *copy);
typedef PFN_cuMemcpy3D_v3020 PFN_cuMemcpy3D_v7000_ptds;
/* cuMemcpy3DAsync_v2 */
typedef CUresult (*PFN_cuMemcpy3DAsync_v3020)(const CUDA_MEMCPY3D *copy, CUstream stream);
typedef PFN_cuMemcpy3DAsync_v3020 PFN_cuMemcpy3DAsync_v7000_ptsz;
typedef CUresult (*PFN_cuMemcpy3DBatchAsync_v12080)(size_t count, CUDA_MEMCPY3D_BATCH_OP *copies,
    size_t *failed, unsigned long long flags, CUstream stream);
typedef PFN_cuMemcpy3DBatchAsync_v12080 PFN_cuMemcpy3DBatchAsync_v12080_ptsz;
/* cuMemcpy3DBatchAsync_v2 */
typedef CUresult (*PFN_cuMemcpy3DBatchAsync_v13000)(size_t count, CUDA_MEMCPY3D_BATCH_OP *copies,
    unsigned long long flags, CUstream stream);
typedef PFN_cuMemcpy3DBatchAsync_v13000 PFN_cuMemcpy3DBatchAsync_v13000_ptsz;
typedef CUresult (*PFN_cuMemcpy3DPeer_v4000)(const CUDA_MEMCPY3D_PEER *copy);
typedef PFN_cuMemcpy3DPeer_v4000 PFN_cuMemcpy3DPeer_v7000_ptds;
typedef CUresult (*PFN_cuMemcpy3DPeerAsync_v4000)(const CUDA_MEMCPY3D_PEER *copy, CUstream stream);
typedef PFN_cuMemcpy3DPeerAsync_v4000 PFN_cuMemcpy3DPeerAsync_v7000_ptsz;
typedef CUresult (*PFN_cuMemcpy3DWithAttributesAsync_v13020)(CUDA_MEMCPY3D_BATCH_OP *copy,
    unsigned long long flags, CUstream stream);
typedef PFN_cuMemcpy3DWithAttributesAsync_v13020 PFN_cuMemcpy3DWithAttributesAsync_v13020_ptsz;
typedef CUresult (*PFN_cuMemcpyAsync_v4000)(CUdeviceptr to, CUdeviceptr from, size_t bytes,
    CUstream stream);
typedef PFN_cuMemcpyAsync_v4000 PFN_cuMemcpyAsync_v7000_ptsz;
/* cuMemcpyAtoA_v2 */
typedef CUresult (*PFN_cuMemcpyAtoA_v3020)(CUarray to, size_t to_at, CUarray from, size_t from_at,
    size_t bytes);
typedef PFN_cuMemcpyAtoA_v3020 PFN_cuMemcpyAtoA_v7000_ptds;
/* cuMemcpyAtoD_v2 */
typedef CUresult (*PFN_cuMemcpyAtoD_v3020)(CUdeviceptr to, CUarray from, size_t at, size_t bytes);
typedef PFN_cuMemcpyAtoD_v3020 PFN_cuMemcpyAtoD_v7000_ptds;
/* cuMemcpyAtoH_v2 */
typedef CUresult (*PFN_cuMemcpyAtoH_v3020)(void *to, CUarray from, size_t at, size_t bytes);
typedef PFN_cuMemcpyAtoH_v3020 PFN_cuMemcpyAtoH_v7000_ptds;
/* cuMemcpyAtoHAsync_v2 */
typedef CUresult (*PFN_cuMemcpyAtoHAsync_v3020)(void *to, CUarray from, size_t at, size_t bytes,
    CUstream stream);
typedef PFN_cuMemcpyAtoHAsync_v3020 PFN_cuMemcpyAtoHAsync_v7000_ptsz;
typedef CUresult (*PFN_cuMemcpyBatchAsync_v12080)(CUdeviceptr *to, CUdeviceptr *from, size_t *bytes,
    size_t count, CUmemcpyAttributes *attributes, size_t *first, size_t attributes_count,
    size_t *failed, CUstream stream);
typedef PFN_cuMemcpyBatchAsync_v12080 PFN_cuMemcpyBatchAsync_v12080_ptsz;
/* cuMemcpyBatchAsync_v2 */
typedef CUresult (*PFN_cuMemcpyBatchAsync_v13000)(CUdeviceptr *to, CUdeviceptr *from, size_t *bytes,
    size_t count, CUmemcpyAttributes *attributes, size_t *first, size_t attributes_count,
    CUstream stream);
typedef PFN_cuMemcpyBatchAsync_v13000 PFN_cuMemcpyBatchAsync_v13000_ptsz;
/* cuMemcpyDtoA_v2 */
typedef CUresult (*PFN_cuMemcpyDtoA_v3020)(CUarray to, size_t at, CUdeviceptr from, size_t bytes);
typedef PFN_cuMemcpyDtoA_v3020 PFN_cuMemcpyDtoA_v7000_ptds;
/* cuMemcpyDtoD_v2 */
typedef CUresult (*PFN_cuMemcpyDtoD_v3020)(CUdeviceptr to, CUdeviceptr from, size_t bytes);
typedef PFN_cuMemcpyDtoD_v3020 PFN_cuMemcpyDtoD_v7000_ptds;
/* cuMemcpyDtoH_v2 */
typedef CUresult (*PFN_cuMemcpyDtoH_v3020)(void *to, CUdeviceptr from, size_t bytes);
typedef PFN_cuMemcpyDtoH_v3020 PFN_cuMemcpyDtoH_v7000_ptds;
/* cuMemcpyHtoA_v2 */
typedef CUresult (*PFN_cuMemcpyHtoA_v3020)(CUarray to, size_t at, const void *from, size_t bytes);
typedef PFN_cuMemcpyHtoA_v3020 PFN_cuMemcpyHtoA_v7000_ptds;
/* cuMemcpyHtoAAsync_v2 */
typedef CUresult (*PFN_cuMemcpyHtoAAsync_v3020)(CUarray to, size_t at, const void *from,
    size_t bytes, CUstream stream);
typedef PFN_cuMemcpyHtoAAsync_v3020 PFN_cuMemcpyHtoAAsync_v7000_ptsz;
/* cuMemcpyHtoD_v2 */
typedef CUresult (*PFN_cuMemcpyHtoD_v3020)(CUdeviceptr to, const void *from, size_t bytes);
typedef PFN_cuMemcpyHtoD_v3020 PFN_cuMemcpyHtoD_v7000_ptds;
typedef CUresult (*PFN_cuMemcpyPeer_v4000)(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
    CUcontext from_context, size_t bytes);
typedef PFN_cuMemcpyPeer_v4000 PFN_cuMemcpyPeer_v7000_ptds;
typedef CUresult (*PFN_cuMemcpyPeerAsync_v4000)(CUdeviceptr to, CUcontext to_context,
    CUdeviceptr from, CUcontext from_context, size_t bytes, CUstream stream);
typedef PFN_cuMemcpyPeerAsync_v4000 PFN_cuMemcpyPeerAsync_v7000_ptsz;
typedef CUresult (*PFN_cuMemcpyWithAttributesAsync_v13020)(CUdeviceptr to, CUdeviceptr from,
    size_t bytes, CUmemcpyAttributes *attributes, CUstream stream);
typedef PFN_cuMemcpyWithAttributesAsync_v13020 PFN_cuMemcpyWithAttributesAsync_v13020_ptsz;
/* cuMemsetD16_v2 */
typedef CUresult (*PFN_cuMemsetD16_v3020)(CUdeviceptr to, unsigned short value, size_t count);
typedef PFN_cuMemsetD16_v3020 PFN_cuMemsetD16_v7000_ptds;
typedef CUresult (*PFN_cuMemsetD16Async_v3020)(CUdeviceptr to, unsigned short value, size_t count,
    CUstream stream);
typedef PFN_cuMemsetD16Async_v3020 PFN_cuMemsetD16Async_v7000_ptsz;
/* cuMemsetD2D16_v2 */
typedef CUresult (*PFN_cuMemsetD2D16_v3020)(CUdeviceptr to, size_t pitch, unsigned short value,
    size_t width, size_t height);
typedef PFN_cuMemsetD2D16_v3020 PFN_cuMemsetD2D16_v7000_ptds;
typedef CUresult (*PFN_cuMemsetD2D16Async_v3020)(CUdeviceptr to, size_t pitch, unsigned short value,
    size_t width, size_t height, CUstream stream);
typedef PFN_cuMemsetD2D16Async_v3020 PFN_cuMemsetD2D16Async_v7000_ptsz;
/* cuMemsetD2D32_v2 */
typedef CUresult (*PFN_cuMemsetD2D32_v3020)(CUdeviceptr to, size_t pitch, unsigned int value,
    size_t width, size_t height);
typedef PFN_cuMemsetD2D32_v3020 PFN_cuMemsetD2D32_v7000_ptds;
typedef CUresult (*PFN_cuMemsetD2D32Async_v3020)(CUdeviceptr to, size_t pitch, unsigned int value,
    size_t width, size_t height, CUstream stream);
typedef PFN_cuMemsetD2D32Async_v3020 PFN_cuMemsetD2D32Async_v7000_ptsz;
/* cuMemsetD2D8_v2 */
typedef CUresult (*PFN_cuMemsetD2D8_v3020)(CUdeviceptr to, size_t pitch, unsigned char value,
    size_t width, size_t height);
typedef PFN_cuMemsetD2D8_v3020 PFN_cuMemsetD2D8_v7000_ptds;
typedef CUresult (*PFN_cuMemsetD2D8Async_v3020)(CUdeviceptr to, size_t pitch, unsigned char value,
    size_t width, size_t height, CUstream stream);
typedef PFN_cuMemsetD2D8Async_v3020 PFN_cuMemsetD2D8Async_v7000_ptsz;
/* cuMemsetD32_v2 */
typedef CUresult (*PFN_cuMemsetD32_v3020)(CUdeviceptr to, unsigned int value, size_t count);
typedef PFN_cuMemsetD32_v3020 PFN_cuMemsetD32_v7000_ptds;
/* cuMemsetD8_v2 */
typedef CUresult (*PFN_cuMemsetD8_v3020)(CUdeviceptr to, unsigned char value, size_t count);
typedef PFN_cuMemsetD8_v3020 PFN_cuMemsetD8_v7000_ptds;
typedef CUresult (*PFN_cuModuleEnumerateFunctions_v12040)(CUfunction *functions, unsigned int count,
    CUmodule module);
typedef CUresult (*PFN_cuModuleGetFunction_v2000)(CUfunction *function, CUmodule module,
    const char *name);
typedef CUresult (*PFN_cuModuleGetFunctionCount_v12040)(unsigned int *count, CUmodule module);
/* cuModuleGetGlobal_v2 */
typedef CUresult (*PFN_cuModuleGetGlobal_v3020)(CUdeviceptr *address, size_t *bytes,
    CUmodule module, const char *name);
typedef CUresult (*PFN_cuModuleGetLoadingMode_v11070)(CUmoduleLoadingMode *mode);
typedef CUresult (*PFN_cuModuleLoad_v2000)(CUmodule *module, const char *path);
typedef CUresult (*PFN_cuModuleLoadData_v2000)(CUmodule *module, const void *image);
typedef CUresult (*PFN_cuModuleLoadDataEx_v2010)(CUmodule *module, const void *image,
    unsigned int count, CUjit_option *options, void **values);
typedef CUresult (*PFN_cuModuleLoadFatBinary_v2000)(CUmodule *module, const void *image);
typedef CUresult (*PFN_cuModuleUnload_v2000)(CUmodule module);
typedef CUresult (*PFN_cuOccupancyMaxActiveBlocksPerMultiprocessor_v6050)(int *blocks,
    CUfunction function, int threads, size_t shared);
typedef CUresult (*PFN_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags_v7000)(int *blocks,
    CUfunction function, int threads, size_t shared, unsigned int flags);
typedef CUresult (*PFN_cuOccupancyMaxPotentialBlockSize_v6050)(int *grid, int *block,
    CUfunction function, CUoccupancyB2DSize shared_of, size_t shared, int limit);
typedef CUresult (*PFN_cuOccupancyMaxPotentialBlockSizeWithFlags_v7000)(int *grid, int *block,
    CUfunction function, CUoccupancyB2DSize shared_of, size_t shared, int limit,
    unsigned int flags);
typedef CUresult (*PFN_cuPointerGetAttribute_v4000)(void *value, CUpointer_attribute attribute,
    CUdeviceptr address);
typedef CUresult (*PFN_cuPointerGetAttributes_v7000)(unsigned int count,
    CUpointer_attribute *attributes, void **places, CUdeviceptr address);
typedef CUresult (*PFN_cuStreamBeginCapture_v10000)(CUstream stream);
typedef PFN_cuStreamBeginCapture_v10000 PFN_cuStreamBeginCapture_v10000_ptsz;
typedef CUresult (*PFN_cuStreamDestroy_v2000)(CUstream stream);
typedef CUresult (*PFN_cuUserObjectCreate_v11030)(CUuserObject *object, void *data,
    CUhostFn destroy, unsigned int count, unsigned int flags);
typedef CUresult (*PFN_cuUserObjectRelease_v11030)(CUuserObject object, unsigned int count);
typedef CUresult (*PFN_cuUserObjectRetain_v11030)(CUuserObject object, unsigned int count);
