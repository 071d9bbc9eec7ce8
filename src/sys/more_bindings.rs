// Generated from wrapper-more.h by `tools/bindings --write`. Do not edit.
pub use crate::sys::*;

#[repr(C)]
#[derive(Debug)]
pub struct CUmemPoolHandle_st {
    _unused: [u8; 0],
}
pub type CUmemoryPool = *mut CUmemPoolHandle_st;
#[repr(C)]
#[derive(Debug)]
pub struct CUfunc_st {
    _unused: [u8; 0],
}
pub type CUfunction = *mut CUfunc_st;
#[repr(C)]
#[derive(Debug)]
pub struct CUmod_st {
    _unused: [u8; 0],
}
pub type CUmodule = *mut CUmod_st;
#[repr(C)]
#[derive(Debug)]
pub struct CUkern_st {
    _unused: [u8; 0],
}
pub type CUkernel = *mut CUkern_st;
#[repr(C)]
#[derive(Debug)]
pub struct CUarray_st {
    _unused: [u8; 0],
}
pub type CUarray = *mut CUarray_st;
#[repr(C)]
#[derive(Debug)]
pub struct CUuserObject_st {
    _unused: [u8; 0],
}
pub type CUuserObject = *mut CUuserObject_st;
#[repr(C)]
#[derive(Debug)]
pub struct CUgraphicsResource_st {
    _unused: [u8; 0],
}
pub type CUgraphicsResource = *mut CUgraphicsResource_st;
#[repr(C)]
#[derive(Debug)]
pub struct CUlib_st {
    _unused: [u8; 0],
}
pub type CUlibrary = *mut CUlib_st;
impl CUfunc_cache {
    pub const CU_FUNC_CACHE_PREFER_NONE: CUfunc_cache = CUfunc_cache(0);
    pub const CU_FUNC_CACHE_PREFER_SHARED: CUfunc_cache = CUfunc_cache(1);
    pub const CU_FUNC_CACHE_PREFER_L1: CUfunc_cache = CUfunc_cache(2);
    pub const CU_FUNC_CACHE_PREFER_EQUAL: CUfunc_cache = CUfunc_cache(3);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUfunc_cache(pub u32);
impl CUlimit {
    pub const CU_LIMIT_STACK_SIZE: CUlimit = CUlimit(0);
    pub const CU_LIMIT_PRINTF_FIFO_SIZE: CUlimit = CUlimit(1);
    pub const CU_LIMIT_MALLOC_HEAP_SIZE: CUlimit = CUlimit(2);
    pub const CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH: CUlimit = CUlimit(3);
    pub const CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT: CUlimit = CUlimit(4);
    pub const CU_LIMIT_MAX_L2_FETCH_GRANULARITY: CUlimit = CUlimit(5);
    pub const CU_LIMIT_PERSISTING_L2_CACHE_SIZE: CUlimit = CUlimit(6);
    pub const CU_LIMIT_SHMEM_SIZE: CUlimit = CUlimit(7);
    pub const CU_LIMIT_CIG_ENABLED: CUlimit = CUlimit(8);
    pub const CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED: CUlimit = CUlimit(9);
    pub const CU_LIMIT_PER_BLOCK_MEMORY_SIZE: CUlimit = CUlimit(10);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUlimit(pub u32);
impl CUsharedconfig {
    pub const CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE: CUsharedconfig = CUsharedconfig(0);
    pub const CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE: CUsharedconfig = CUsharedconfig(
        1,
    );
    pub const CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE: CUsharedconfig = CUsharedconfig(
        2,
    );
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUsharedconfig(pub u32);
impl CUdevice_P2PAttribute {
    pub const CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK: CUdevice_P2PAttribute = CUdevice_P2PAttribute(
        1,
    );
    pub const CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED: CUdevice_P2PAttribute = CUdevice_P2PAttribute(
        2,
    );
    pub const CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED: CUdevice_P2PAttribute = CUdevice_P2PAttribute(
        3,
    );
    pub const CU_DEVICE_P2P_ATTRIBUTE_ACCESS_ACCESS_SUPPORTED: CUdevice_P2PAttribute = CUdevice_P2PAttribute(
        4,
    );
    pub const CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED: CUdevice_P2PAttribute = CUdevice_P2PAttribute(
        4,
    );
    pub const CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED: CUdevice_P2PAttribute = CUdevice_P2PAttribute(
        5,
    );
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUdevice_P2PAttribute(pub u32);
impl CUfunction_attribute {
    pub const CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: CUfunction_attribute = CUfunction_attribute(
        0,
    );
    pub const CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: CUfunction_attribute = CUfunction_attribute(
        1,
    );
    pub const CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES: CUfunction_attribute = CUfunction_attribute(
        2,
    );
    pub const CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: CUfunction_attribute = CUfunction_attribute(
        3,
    );
    pub const CU_FUNC_ATTRIBUTE_NUM_REGS: CUfunction_attribute = CUfunction_attribute(4);
    pub const CU_FUNC_ATTRIBUTE_PTX_VERSION: CUfunction_attribute = CUfunction_attribute(
        5,
    );
    pub const CU_FUNC_ATTRIBUTE_BINARY_VERSION: CUfunction_attribute = CUfunction_attribute(
        6,
    );
    pub const CU_FUNC_ATTRIBUTE_CACHE_MODE_CA: CUfunction_attribute = CUfunction_attribute(
        7,
    );
    pub const CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: CUfunction_attribute = CUfunction_attribute(
        8,
    );
    pub const CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: CUfunction_attribute = CUfunction_attribute(
        9,
    );
    pub const CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET: CUfunction_attribute = CUfunction_attribute(
        10,
    );
    pub const CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH: CUfunction_attribute = CUfunction_attribute(
        11,
    );
    pub const CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT: CUfunction_attribute = CUfunction_attribute(
        12,
    );
    pub const CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH: CUfunction_attribute = CUfunction_attribute(
        13,
    );
    pub const CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED: CUfunction_attribute = CUfunction_attribute(
        14,
    );
    pub const CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE: CUfunction_attribute = CUfunction_attribute(
        15,
    );
    pub const CU_FUNC_ATTRIBUTE_DEVICE_NODE_UPDATE_SUPPORTED: CUfunction_attribute = CUfunction_attribute(
        16,
    );
    pub const CU_FUNC_ATTRIBUTE_SHARED_MEMORY_MODE: CUfunction_attribute = CUfunction_attribute(
        17,
    );
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUfunction_attribute(pub u32);
impl CUfunctionLoadingState {
    pub const CU_FUNCTION_LOADING_STATE_UNLOADED: CUfunctionLoadingState = CUfunctionLoadingState(
        0,
    );
    pub const CU_FUNCTION_LOADING_STATE_LOADED: CUfunctionLoadingState = CUfunctionLoadingState(
        1,
    );
    pub const CU_FUNCTION_LOADING_STATE_MAX: CUfunctionLoadingState = CUfunctionLoadingState(
        2,
    );
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUfunctionLoadingState(pub u32);
#[repr(C)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUDA_KERNEL_NODE_PARAMS_v1 {
    pub func: CUfunction,
    pub gridDimX: ::core::ffi::c_uint,
    pub gridDimY: ::core::ffi::c_uint,
    pub gridDimZ: ::core::ffi::c_uint,
    pub blockDimX: ::core::ffi::c_uint,
    pub blockDimY: ::core::ffi::c_uint,
    pub blockDimZ: ::core::ffi::c_uint,
    pub sharedMemBytes: ::core::ffi::c_uint,
    pub kernelParams: *mut *mut ::core::ffi::c_void,
    pub extra: *mut *mut ::core::ffi::c_void,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    [
        "Size of CUDA_KERNEL_NODE_PARAMS_v1",
    ][::core::mem::size_of::<CUDA_KERNEL_NODE_PARAMS_v1>() - 56usize];
    [
        "Alignment of CUDA_KERNEL_NODE_PARAMS_v1",
    ][::core::mem::align_of::<CUDA_KERNEL_NODE_PARAMS_v1>() - 8usize];
    [
        "Offset of field: CUDA_KERNEL_NODE_PARAMS_v1::func",
    ][::core::mem::offset_of!(CUDA_KERNEL_NODE_PARAMS_v1, func) - 0usize];
    [
        "Offset of field: CUDA_KERNEL_NODE_PARAMS_v1::gridDimX",
    ][::core::mem::offset_of!(CUDA_KERNEL_NODE_PARAMS_v1, gridDimX) - 8usize];
    [
        "Offset of field: CUDA_KERNEL_NODE_PARAMS_v1::gridDimY",
    ][::core::mem::offset_of!(CUDA_KERNEL_NODE_PARAMS_v1, gridDimY) - 12usize];
    [
        "Offset of field: CUDA_KERNEL_NODE_PARAMS_v1::gridDimZ",
    ][::core::mem::offset_of!(CUDA_KERNEL_NODE_PARAMS_v1, gridDimZ) - 16usize];
    [
        "Offset of field: CUDA_KERNEL_NODE_PARAMS_v1::blockDimX",
    ][::core::mem::offset_of!(CUDA_KERNEL_NODE_PARAMS_v1, blockDimX) - 20usize];
    [
        "Offset of field: CUDA_KERNEL_NODE_PARAMS_v1::blockDimY",
    ][::core::mem::offset_of!(CUDA_KERNEL_NODE_PARAMS_v1, blockDimY) - 24usize];
    [
        "Offset of field: CUDA_KERNEL_NODE_PARAMS_v1::blockDimZ",
    ][::core::mem::offset_of!(CUDA_KERNEL_NODE_PARAMS_v1, blockDimZ) - 28usize];
    [
        "Offset of field: CUDA_KERNEL_NODE_PARAMS_v1::sharedMemBytes",
    ][::core::mem::offset_of!(CUDA_KERNEL_NODE_PARAMS_v1, sharedMemBytes) - 32usize];
    [
        "Offset of field: CUDA_KERNEL_NODE_PARAMS_v1::kernelParams",
    ][::core::mem::offset_of!(CUDA_KERNEL_NODE_PARAMS_v1, kernelParams) - 40usize];
    [
        "Offset of field: CUDA_KERNEL_NODE_PARAMS_v1::extra",
    ][::core::mem::offset_of!(CUDA_KERNEL_NODE_PARAMS_v1, extra) - 48usize];
};
impl Default for CUDA_KERNEL_NODE_PARAMS_v1 {
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
pub struct CUDA_KERNEL_NODE_PARAMS_v2 {
    pub func: CUfunction,
    pub gridDimX: ::core::ffi::c_uint,
    pub gridDimY: ::core::ffi::c_uint,
    pub gridDimZ: ::core::ffi::c_uint,
    pub blockDimX: ::core::ffi::c_uint,
    pub blockDimY: ::core::ffi::c_uint,
    pub blockDimZ: ::core::ffi::c_uint,
    pub sharedMemBytes: ::core::ffi::c_uint,
    pub kernelParams: *mut *mut ::core::ffi::c_void,
    pub extra: *mut *mut ::core::ffi::c_void,
    pub kern: CUkernel,
    pub ctx: CUcontext,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    [
        "Size of CUDA_KERNEL_NODE_PARAMS_v2",
    ][::core::mem::size_of::<CUDA_KERNEL_NODE_PARAMS_v2>() - 72usize];
    [
        "Alignment of CUDA_KERNEL_NODE_PARAMS_v2",
    ][::core::mem::align_of::<CUDA_KERNEL_NODE_PARAMS_v2>() - 8usize];
    [
        "Offset of field: CUDA_KERNEL_NODE_PARAMS_v2::func",
    ][::core::mem::offset_of!(CUDA_KERNEL_NODE_PARAMS_v2, func) - 0usize];
    [
        "Offset of field: CUDA_KERNEL_NODE_PARAMS_v2::gridDimX",
    ][::core::mem::offset_of!(CUDA_KERNEL_NODE_PARAMS_v2, gridDimX) - 8usize];
    [
        "Offset of field: CUDA_KERNEL_NODE_PARAMS_v2::gridDimY",
    ][::core::mem::offset_of!(CUDA_KERNEL_NODE_PARAMS_v2, gridDimY) - 12usize];
    [
        "Offset of field: CUDA_KERNEL_NODE_PARAMS_v2::gridDimZ",
    ][::core::mem::offset_of!(CUDA_KERNEL_NODE_PARAMS_v2, gridDimZ) - 16usize];
    [
        "Offset of field: CUDA_KERNEL_NODE_PARAMS_v2::blockDimX",
    ][::core::mem::offset_of!(CUDA_KERNEL_NODE_PARAMS_v2, blockDimX) - 20usize];
    [
        "Offset of field: CUDA_KERNEL_NODE_PARAMS_v2::blockDimY",
    ][::core::mem::offset_of!(CUDA_KERNEL_NODE_PARAMS_v2, blockDimY) - 24usize];
    [
        "Offset of field: CUDA_KERNEL_NODE_PARAMS_v2::blockDimZ",
    ][::core::mem::offset_of!(CUDA_KERNEL_NODE_PARAMS_v2, blockDimZ) - 28usize];
    [
        "Offset of field: CUDA_KERNEL_NODE_PARAMS_v2::sharedMemBytes",
    ][::core::mem::offset_of!(CUDA_KERNEL_NODE_PARAMS_v2, sharedMemBytes) - 32usize];
    [
        "Offset of field: CUDA_KERNEL_NODE_PARAMS_v2::kernelParams",
    ][::core::mem::offset_of!(CUDA_KERNEL_NODE_PARAMS_v2, kernelParams) - 40usize];
    [
        "Offset of field: CUDA_KERNEL_NODE_PARAMS_v2::extra",
    ][::core::mem::offset_of!(CUDA_KERNEL_NODE_PARAMS_v2, extra) - 48usize];
    [
        "Offset of field: CUDA_KERNEL_NODE_PARAMS_v2::kern",
    ][::core::mem::offset_of!(CUDA_KERNEL_NODE_PARAMS_v2, kern) - 56usize];
    [
        "Offset of field: CUDA_KERNEL_NODE_PARAMS_v2::ctx",
    ][::core::mem::offset_of!(CUDA_KERNEL_NODE_PARAMS_v2, ctx) - 64usize];
};
impl Default for CUDA_KERNEL_NODE_PARAMS_v2 {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
impl CUmemorytype {
    pub const CU_MEMORYTYPE_HOST: CUmemorytype = CUmemorytype(1);
    pub const CU_MEMORYTYPE_DEVICE: CUmemorytype = CUmemorytype(2);
    pub const CU_MEMORYTYPE_ARRAY: CUmemorytype = CUmemorytype(3);
    pub const CU_MEMORYTYPE_UNIFIED: CUmemorytype = CUmemorytype(4);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUmemorytype(pub u32);
#[repr(C)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUDA_MEMCPY3D {
    pub srcXInBytes: usize,
    pub srcY: usize,
    pub srcZ: usize,
    pub srcLOD: usize,
    pub srcMemoryType: CUmemorytype,
    pub srcHost: *const ::core::ffi::c_void,
    pub srcDevice: CUdeviceptr,
    pub srcArray: CUarray,
    pub reserved0: *mut ::core::ffi::c_void,
    pub srcPitch: usize,
    pub srcHeight: usize,
    pub dstXInBytes: usize,
    pub dstY: usize,
    pub dstZ: usize,
    pub dstLOD: usize,
    pub dstMemoryType: CUmemorytype,
    pub dstHost: *mut ::core::ffi::c_void,
    pub dstDevice: CUdeviceptr,
    pub dstArray: CUarray,
    pub reserved1: *mut ::core::ffi::c_void,
    pub dstPitch: usize,
    pub dstHeight: usize,
    pub WidthInBytes: usize,
    pub Height: usize,
    pub Depth: usize,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    ["Size of CUDA_MEMCPY3D"][::core::mem::size_of::<CUDA_MEMCPY3D>() - 200usize];
    ["Alignment of CUDA_MEMCPY3D"][::core::mem::align_of::<CUDA_MEMCPY3D>() - 8usize];
    [
        "Offset of field: CUDA_MEMCPY3D::srcXInBytes",
    ][::core::mem::offset_of!(CUDA_MEMCPY3D, srcXInBytes) - 0usize];
    [
        "Offset of field: CUDA_MEMCPY3D::srcY",
    ][::core::mem::offset_of!(CUDA_MEMCPY3D, srcY) - 8usize];
    [
        "Offset of field: CUDA_MEMCPY3D::srcZ",
    ][::core::mem::offset_of!(CUDA_MEMCPY3D, srcZ) - 16usize];
    [
        "Offset of field: CUDA_MEMCPY3D::srcLOD",
    ][::core::mem::offset_of!(CUDA_MEMCPY3D, srcLOD) - 24usize];
    [
        "Offset of field: CUDA_MEMCPY3D::srcMemoryType",
    ][::core::mem::offset_of!(CUDA_MEMCPY3D, srcMemoryType) - 32usize];
    [
        "Offset of field: CUDA_MEMCPY3D::srcHost",
    ][::core::mem::offset_of!(CUDA_MEMCPY3D, srcHost) - 40usize];
    [
        "Offset of field: CUDA_MEMCPY3D::srcDevice",
    ][::core::mem::offset_of!(CUDA_MEMCPY3D, srcDevice) - 48usize];
    [
        "Offset of field: CUDA_MEMCPY3D::srcArray",
    ][::core::mem::offset_of!(CUDA_MEMCPY3D, srcArray) - 56usize];
    [
        "Offset of field: CUDA_MEMCPY3D::reserved0",
    ][::core::mem::offset_of!(CUDA_MEMCPY3D, reserved0) - 64usize];
    [
        "Offset of field: CUDA_MEMCPY3D::srcPitch",
    ][::core::mem::offset_of!(CUDA_MEMCPY3D, srcPitch) - 72usize];
    [
        "Offset of field: CUDA_MEMCPY3D::srcHeight",
    ][::core::mem::offset_of!(CUDA_MEMCPY3D, srcHeight) - 80usize];
    [
        "Offset of field: CUDA_MEMCPY3D::dstXInBytes",
    ][::core::mem::offset_of!(CUDA_MEMCPY3D, dstXInBytes) - 88usize];
    [
        "Offset of field: CUDA_MEMCPY3D::dstY",
    ][::core::mem::offset_of!(CUDA_MEMCPY3D, dstY) - 96usize];
    [
        "Offset of field: CUDA_MEMCPY3D::dstZ",
    ][::core::mem::offset_of!(CUDA_MEMCPY3D, dstZ) - 104usize];
    [
        "Offset of field: CUDA_MEMCPY3D::dstLOD",
    ][::core::mem::offset_of!(CUDA_MEMCPY3D, dstLOD) - 112usize];
    [
        "Offset of field: CUDA_MEMCPY3D::dstMemoryType",
    ][::core::mem::offset_of!(CUDA_MEMCPY3D, dstMemoryType) - 120usize];
    [
        "Offset of field: CUDA_MEMCPY3D::dstHost",
    ][::core::mem::offset_of!(CUDA_MEMCPY3D, dstHost) - 128usize];
    [
        "Offset of field: CUDA_MEMCPY3D::dstDevice",
    ][::core::mem::offset_of!(CUDA_MEMCPY3D, dstDevice) - 136usize];
    [
        "Offset of field: CUDA_MEMCPY3D::dstArray",
    ][::core::mem::offset_of!(CUDA_MEMCPY3D, dstArray) - 144usize];
    [
        "Offset of field: CUDA_MEMCPY3D::reserved1",
    ][::core::mem::offset_of!(CUDA_MEMCPY3D, reserved1) - 152usize];
    [
        "Offset of field: CUDA_MEMCPY3D::dstPitch",
    ][::core::mem::offset_of!(CUDA_MEMCPY3D, dstPitch) - 160usize];
    [
        "Offset of field: CUDA_MEMCPY3D::dstHeight",
    ][::core::mem::offset_of!(CUDA_MEMCPY3D, dstHeight) - 168usize];
    [
        "Offset of field: CUDA_MEMCPY3D::WidthInBytes",
    ][::core::mem::offset_of!(CUDA_MEMCPY3D, WidthInBytes) - 176usize];
    [
        "Offset of field: CUDA_MEMCPY3D::Height",
    ][::core::mem::offset_of!(CUDA_MEMCPY3D, Height) - 184usize];
    [
        "Offset of field: CUDA_MEMCPY3D::Depth",
    ][::core::mem::offset_of!(CUDA_MEMCPY3D, Depth) - 192usize];
};
impl Default for CUDA_MEMCPY3D {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
impl CUarray_format {
    pub const CU_AD_FORMAT_UNSIGNED_INT8: CUarray_format = CUarray_format(1);
    pub const CU_AD_FORMAT_UNSIGNED_INT16: CUarray_format = CUarray_format(2);
    pub const CU_AD_FORMAT_UNSIGNED_INT32: CUarray_format = CUarray_format(3);
    pub const CU_AD_FORMAT_SIGNED_INT8: CUarray_format = CUarray_format(8);
    pub const CU_AD_FORMAT_SIGNED_INT16: CUarray_format = CUarray_format(9);
    pub const CU_AD_FORMAT_SIGNED_INT32: CUarray_format = CUarray_format(10);
    pub const CU_AD_FORMAT_HALF: CUarray_format = CUarray_format(16);
    pub const CU_AD_FORMAT_FLOAT: CUarray_format = CUarray_format(32);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUarray_format(pub u32);
#[repr(C)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUDA_ARRAY3D_DESCRIPTOR {
    pub Width: usize,
    pub Height: usize,
    pub Depth: usize,
    pub Format: CUarray_format,
    pub NumChannels: ::core::ffi::c_uint,
    pub Flags: ::core::ffi::c_uint,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    [
        "Size of CUDA_ARRAY3D_DESCRIPTOR",
    ][::core::mem::size_of::<CUDA_ARRAY3D_DESCRIPTOR>() - 40usize];
    [
        "Alignment of CUDA_ARRAY3D_DESCRIPTOR",
    ][::core::mem::align_of::<CUDA_ARRAY3D_DESCRIPTOR>() - 8usize];
    [
        "Offset of field: CUDA_ARRAY3D_DESCRIPTOR::Width",
    ][::core::mem::offset_of!(CUDA_ARRAY3D_DESCRIPTOR, Width) - 0usize];
    [
        "Offset of field: CUDA_ARRAY3D_DESCRIPTOR::Height",
    ][::core::mem::offset_of!(CUDA_ARRAY3D_DESCRIPTOR, Height) - 8usize];
    [
        "Offset of field: CUDA_ARRAY3D_DESCRIPTOR::Depth",
    ][::core::mem::offset_of!(CUDA_ARRAY3D_DESCRIPTOR, Depth) - 16usize];
    [
        "Offset of field: CUDA_ARRAY3D_DESCRIPTOR::Format",
    ][::core::mem::offset_of!(CUDA_ARRAY3D_DESCRIPTOR, Format) - 24usize];
    [
        "Offset of field: CUDA_ARRAY3D_DESCRIPTOR::NumChannels",
    ][::core::mem::offset_of!(CUDA_ARRAY3D_DESCRIPTOR, NumChannels) - 28usize];
    [
        "Offset of field: CUDA_ARRAY3D_DESCRIPTOR::Flags",
    ][::core::mem::offset_of!(CUDA_ARRAY3D_DESCRIPTOR, Flags) - 32usize];
};
impl Default for CUDA_ARRAY3D_DESCRIPTOR {
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
pub struct CUDA_MEMSET_NODE_PARAMS {
    pub dst: CUdeviceptr,
    pub pitch: usize,
    pub value: ::core::ffi::c_uint,
    pub elementSize: ::core::ffi::c_uint,
    pub width: usize,
    pub height: usize,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    [
        "Size of CUDA_MEMSET_NODE_PARAMS",
    ][::core::mem::size_of::<CUDA_MEMSET_NODE_PARAMS>() - 40usize];
    [
        "Alignment of CUDA_MEMSET_NODE_PARAMS",
    ][::core::mem::align_of::<CUDA_MEMSET_NODE_PARAMS>() - 8usize];
    [
        "Offset of field: CUDA_MEMSET_NODE_PARAMS::dst",
    ][::core::mem::offset_of!(CUDA_MEMSET_NODE_PARAMS, dst) - 0usize];
    [
        "Offset of field: CUDA_MEMSET_NODE_PARAMS::pitch",
    ][::core::mem::offset_of!(CUDA_MEMSET_NODE_PARAMS, pitch) - 8usize];
    [
        "Offset of field: CUDA_MEMSET_NODE_PARAMS::value",
    ][::core::mem::offset_of!(CUDA_MEMSET_NODE_PARAMS, value) - 16usize];
    [
        "Offset of field: CUDA_MEMSET_NODE_PARAMS::elementSize",
    ][::core::mem::offset_of!(CUDA_MEMSET_NODE_PARAMS, elementSize) - 20usize];
    [
        "Offset of field: CUDA_MEMSET_NODE_PARAMS::width",
    ][::core::mem::offset_of!(CUDA_MEMSET_NODE_PARAMS, width) - 24usize];
    [
        "Offset of field: CUDA_MEMSET_NODE_PARAMS::height",
    ][::core::mem::offset_of!(CUDA_MEMSET_NODE_PARAMS, height) - 32usize];
};
impl CUgraphExecUpdateResult {
    pub const CU_GRAPH_EXEC_UPDATE_SUCCESS: CUgraphExecUpdateResult = CUgraphExecUpdateResult(
        0,
    );
    pub const CU_GRAPH_EXEC_UPDATE_ERROR: CUgraphExecUpdateResult = CUgraphExecUpdateResult(
        1,
    );
    pub const CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED: CUgraphExecUpdateResult = CUgraphExecUpdateResult(
        2,
    );
    pub const CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED: CUgraphExecUpdateResult = CUgraphExecUpdateResult(
        3,
    );
    pub const CU_GRAPH_EXEC_UPDATE_ERROR_FUNCTION_CHANGED: CUgraphExecUpdateResult = CUgraphExecUpdateResult(
        4,
    );
    pub const CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED: CUgraphExecUpdateResult = CUgraphExecUpdateResult(
        5,
    );
    pub const CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED: CUgraphExecUpdateResult = CUgraphExecUpdateResult(
        6,
    );
    pub const CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE: CUgraphExecUpdateResult = CUgraphExecUpdateResult(
        7,
    );
    pub const CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED: CUgraphExecUpdateResult = CUgraphExecUpdateResult(
        8,
    );
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUgraphExecUpdateResult(pub u32);
#[repr(C)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUgraphExecUpdateResultInfo {
    pub result: CUgraphExecUpdateResult,
    pub errorNode: CUgraphNode,
    pub errorFromNode: CUgraphNode,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    [
        "Size of CUgraphExecUpdateResultInfo",
    ][::core::mem::size_of::<CUgraphExecUpdateResultInfo>() - 24usize];
    [
        "Alignment of CUgraphExecUpdateResultInfo",
    ][::core::mem::align_of::<CUgraphExecUpdateResultInfo>() - 8usize];
    [
        "Offset of field: CUgraphExecUpdateResultInfo::result",
    ][::core::mem::offset_of!(CUgraphExecUpdateResultInfo, result) - 0usize];
    [
        "Offset of field: CUgraphExecUpdateResultInfo::errorNode",
    ][::core::mem::offset_of!(CUgraphExecUpdateResultInfo, errorNode) - 8usize];
    [
        "Offset of field: CUgraphExecUpdateResultInfo::errorFromNode",
    ][::core::mem::offset_of!(CUgraphExecUpdateResultInfo, errorFromNode) - 16usize];
};
impl Default for CUgraphExecUpdateResultInfo {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
impl CUgraphInstantiateResult {
    pub const CUDA_GRAPH_INSTANTIATE_SUCCESS: CUgraphInstantiateResult = CUgraphInstantiateResult(
        0,
    );
    pub const CUDA_GRAPH_INSTANTIATE_ERROR: CUgraphInstantiateResult = CUgraphInstantiateResult(
        1,
    );
    pub const CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE: CUgraphInstantiateResult = CUgraphInstantiateResult(
        2,
    );
    pub const CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED: CUgraphInstantiateResult = CUgraphInstantiateResult(
        3,
    );
    pub const CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED: CUgraphInstantiateResult = CUgraphInstantiateResult(
        4,
    );
    pub const CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED: CUgraphInstantiateResult = CUgraphInstantiateResult(
        5,
    );
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUgraphInstantiateResult(pub u32);
#[repr(C)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUDA_GRAPH_INSTANTIATE_PARAMS {
    pub flags: cuuint64_t,
    pub hUploadStream: CUstream,
    pub hErrNode_out: CUgraphNode,
    pub result_out: CUgraphInstantiateResult,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    [
        "Size of CUDA_GRAPH_INSTANTIATE_PARAMS",
    ][::core::mem::size_of::<CUDA_GRAPH_INSTANTIATE_PARAMS>() - 32usize];
    [
        "Alignment of CUDA_GRAPH_INSTANTIATE_PARAMS",
    ][::core::mem::align_of::<CUDA_GRAPH_INSTANTIATE_PARAMS>() - 8usize];
    [
        "Offset of field: CUDA_GRAPH_INSTANTIATE_PARAMS::flags",
    ][::core::mem::offset_of!(CUDA_GRAPH_INSTANTIATE_PARAMS, flags) - 0usize];
    [
        "Offset of field: CUDA_GRAPH_INSTANTIATE_PARAMS::hUploadStream",
    ][::core::mem::offset_of!(CUDA_GRAPH_INSTANTIATE_PARAMS, hUploadStream) - 8usize];
    [
        "Offset of field: CUDA_GRAPH_INSTANTIATE_PARAMS::hErrNode_out",
    ][::core::mem::offset_of!(CUDA_GRAPH_INSTANTIATE_PARAMS, hErrNode_out) - 16usize];
    [
        "Offset of field: CUDA_GRAPH_INSTANTIATE_PARAMS::result_out",
    ][::core::mem::offset_of!(CUDA_GRAPH_INSTANTIATE_PARAMS, result_out) - 24usize];
};
impl Default for CUDA_GRAPH_INSTANTIATE_PARAMS {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
impl CUgraphNodeType {
    pub const CU_GRAPH_NODE_TYPE_KERNEL: CUgraphNodeType = CUgraphNodeType(0);
    pub const CU_GRAPH_NODE_TYPE_MEMCPY: CUgraphNodeType = CUgraphNodeType(1);
    pub const CU_GRAPH_NODE_TYPE_MEMSET: CUgraphNodeType = CUgraphNodeType(2);
    pub const CU_GRAPH_NODE_TYPE_HOST: CUgraphNodeType = CUgraphNodeType(3);
    pub const CU_GRAPH_NODE_TYPE_GRAPH: CUgraphNodeType = CUgraphNodeType(4);
    pub const CU_GRAPH_NODE_TYPE_EMPTY: CUgraphNodeType = CUgraphNodeType(5);
    pub const CU_GRAPH_NODE_TYPE_WAIT_EVENT: CUgraphNodeType = CUgraphNodeType(6);
    pub const CU_GRAPH_NODE_TYPE_EVENT_RECORD: CUgraphNodeType = CUgraphNodeType(7);
    pub const CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL: CUgraphNodeType = CUgraphNodeType(8);
    pub const CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT: CUgraphNodeType = CUgraphNodeType(9);
    pub const CU_GRAPH_NODE_TYPE_MEM_ALLOC: CUgraphNodeType = CUgraphNodeType(10);
    pub const CU_GRAPH_NODE_TYPE_MEM_FREE: CUgraphNodeType = CUgraphNodeType(11);
    pub const CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: CUgraphNodeType = CUgraphNodeType(12);
    pub const CU_GRAPH_NODE_TYPE_CONDITIONAL: CUgraphNodeType = CUgraphNodeType(13);
    pub const CU_GRAPH_NODE_TYPE_MEMCPY_BATCH: CUgraphNodeType = CUgraphNodeType(14);
    pub const CU_GRAPH_NODE_TYPE_RESERVED_16: CUgraphNodeType = CUgraphNodeType(16);
    pub const CU_GRAPH_NODE_TYPE_EXTERNAL_ENGINE: CUgraphNodeType = CUgraphNodeType(17);
    pub const CU_GRAPH_NODE_TYPE_FABRIC_CPY_BATCH: CUgraphNodeType = CUgraphNodeType(18);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUgraphNodeType(pub u32);
#[repr(C)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUlaunchConfig {
    pub gridDimX: ::core::ffi::c_uint,
    pub gridDimY: ::core::ffi::c_uint,
    pub gridDimZ: ::core::ffi::c_uint,
    pub blockDimX: ::core::ffi::c_uint,
    pub blockDimY: ::core::ffi::c_uint,
    pub blockDimZ: ::core::ffi::c_uint,
    pub sharedMemBytes: ::core::ffi::c_uint,
    pub hStream: CUstream,
    pub attrs: *mut CUlaunchAttribute,
    pub numAttrs: ::core::ffi::c_uint,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    ["Size of CUlaunchConfig"][::core::mem::size_of::<CUlaunchConfig>() - 56usize];
    ["Alignment of CUlaunchConfig"][::core::mem::align_of::<CUlaunchConfig>() - 8usize];
    [
        "Offset of field: CUlaunchConfig::gridDimX",
    ][::core::mem::offset_of!(CUlaunchConfig, gridDimX) - 0usize];
    [
        "Offset of field: CUlaunchConfig::gridDimY",
    ][::core::mem::offset_of!(CUlaunchConfig, gridDimY) - 4usize];
    [
        "Offset of field: CUlaunchConfig::gridDimZ",
    ][::core::mem::offset_of!(CUlaunchConfig, gridDimZ) - 8usize];
    [
        "Offset of field: CUlaunchConfig::blockDimX",
    ][::core::mem::offset_of!(CUlaunchConfig, blockDimX) - 12usize];
    [
        "Offset of field: CUlaunchConfig::blockDimY",
    ][::core::mem::offset_of!(CUlaunchConfig, blockDimY) - 16usize];
    [
        "Offset of field: CUlaunchConfig::blockDimZ",
    ][::core::mem::offset_of!(CUlaunchConfig, blockDimZ) - 20usize];
    [
        "Offset of field: CUlaunchConfig::sharedMemBytes",
    ][::core::mem::offset_of!(CUlaunchConfig, sharedMemBytes) - 24usize];
    [
        "Offset of field: CUlaunchConfig::hStream",
    ][::core::mem::offset_of!(CUlaunchConfig, hStream) - 32usize];
    [
        "Offset of field: CUlaunchConfig::attrs",
    ][::core::mem::offset_of!(CUlaunchConfig, attrs) - 40usize];
    [
        "Offset of field: CUlaunchConfig::numAttrs",
    ][::core::mem::offset_of!(CUlaunchConfig, numAttrs) - 48usize];
};
impl Default for CUlaunchConfig {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
impl CUjit_option {
    pub const CU_JIT_MAX_REGISTERS: CUjit_option = CUjit_option(0);
    pub const CU_JIT_THREADS_PER_BLOCK: CUjit_option = CUjit_option(1);
    pub const CU_JIT_WALL_TIME: CUjit_option = CUjit_option(2);
    pub const CU_JIT_INFO_LOG_BUFFER: CUjit_option = CUjit_option(3);
    pub const CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES: CUjit_option = CUjit_option(4);
    pub const CU_JIT_ERROR_LOG_BUFFER: CUjit_option = CUjit_option(5);
    pub const CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES: CUjit_option = CUjit_option(6);
    pub const CU_JIT_OPTIMIZATION_LEVEL: CUjit_option = CUjit_option(7);
    pub const CU_JIT_TARGET_FROM_CUCONTEXT: CUjit_option = CUjit_option(8);
    pub const CU_JIT_TARGET: CUjit_option = CUjit_option(9);
    pub const CU_JIT_FALLBACK_STRATEGY: CUjit_option = CUjit_option(10);
    pub const CU_JIT_GENERATE_DEBUG_INFO: CUjit_option = CUjit_option(11);
    pub const CU_JIT_LOG_VERBOSE: CUjit_option = CUjit_option(12);
    pub const CU_JIT_GENERATE_LINE_INFO: CUjit_option = CUjit_option(13);
    pub const CU_JIT_CACHE_MODE: CUjit_option = CUjit_option(14);
    pub const CU_JIT_NEW_SM3X_OPT: CUjit_option = CUjit_option(15);
    pub const CU_JIT_FAST_COMPILE: CUjit_option = CUjit_option(16);
    pub const CU_JIT_GLOBAL_SYMBOL_NAMES: CUjit_option = CUjit_option(17);
    pub const CU_JIT_GLOBAL_SYMBOL_ADDRESSES: CUjit_option = CUjit_option(18);
    pub const CU_JIT_GLOBAL_SYMBOL_COUNT: CUjit_option = CUjit_option(19);
    pub const CU_JIT_LTO: CUjit_option = CUjit_option(20);
    pub const CU_JIT_FTZ: CUjit_option = CUjit_option(21);
    pub const CU_JIT_PREC_DIV: CUjit_option = CUjit_option(22);
    pub const CU_JIT_PREC_SQRT: CUjit_option = CUjit_option(23);
    pub const CU_JIT_FMA: CUjit_option = CUjit_option(24);
    pub const CU_JIT_REFERENCED_KERNEL_NAMES: CUjit_option = CUjit_option(25);
    pub const CU_JIT_REFERENCED_KERNEL_COUNT: CUjit_option = CUjit_option(26);
    pub const CU_JIT_REFERENCED_VARIABLE_NAMES: CUjit_option = CUjit_option(27);
    pub const CU_JIT_REFERENCED_VARIABLE_COUNT: CUjit_option = CUjit_option(28);
    pub const CU_JIT_OPTIMIZE_UNUSED_DEVICE_VARIABLES: CUjit_option = CUjit_option(29);
    pub const CU_JIT_POSITION_INDEPENDENT_CODE: CUjit_option = CUjit_option(30);
    pub const CU_JIT_MIN_CTA_PER_SM: CUjit_option = CUjit_option(31);
    pub const CU_JIT_MAX_THREADS_PER_BLOCK: CUjit_option = CUjit_option(32);
    pub const CU_JIT_OVERRIDE_DIRECTIVE_VALUES: CUjit_option = CUjit_option(33);
    pub const CU_JIT_SPLIT_COMPILE: CUjit_option = CUjit_option(34);
    pub const CU_JIT_BINARY_LOADER_THREAD_COUNT: CUjit_option = CUjit_option(35);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUjit_option(pub u32);
impl CUlibraryOption {
    pub const CU_LIBRARY_HOST_UNIVERSAL_FUNCTION_AND_DATA_TABLE: CUlibraryOption = CUlibraryOption(
        0,
    );
    pub const CU_LIBRARY_BINARY_IS_PRESERVED: CUlibraryOption = CUlibraryOption(1);
    pub const CU_LIBRARY_NUM_OPTIONS: CUlibraryOption = CUlibraryOption(2);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUlibraryOption(pub u32);
impl CUmem_advise {
    pub const CU_MEM_ADVISE_SET_READ_MOSTLY: CUmem_advise = CUmem_advise(1);
    pub const CU_MEM_ADVISE_UNSET_READ_MOSTLY: CUmem_advise = CUmem_advise(2);
    pub const CU_MEM_ADVISE_SET_PREFERRED_LOCATION: CUmem_advise = CUmem_advise(3);
    pub const CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION: CUmem_advise = CUmem_advise(4);
    pub const CU_MEM_ADVISE_SET_ACCESSED_BY: CUmem_advise = CUmem_advise(5);
    pub const CU_MEM_ADVISE_UNSET_ACCESSED_BY: CUmem_advise = CUmem_advise(6);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUmem_advise(pub u32);
impl CUmemLocationType {
    pub const CU_MEM_LOCATION_TYPE_INVALID: CUmemLocationType = CUmemLocationType(0);
    pub const CU_MEM_LOCATION_TYPE_NONE: CUmemLocationType = CUmemLocationType(0);
    pub const CU_MEM_LOCATION_TYPE_DEVICE: CUmemLocationType = CUmemLocationType(1);
    pub const CU_MEM_LOCATION_TYPE_HOST: CUmemLocationType = CUmemLocationType(2);
    pub const CU_MEM_LOCATION_TYPE_HOST_NUMA: CUmemLocationType = CUmemLocationType(3);
    pub const CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT: CUmemLocationType = CUmemLocationType(
        4,
    );
    pub const CU_MEM_LOCATION_TYPE_INVISIBLE: CUmemLocationType = CUmemLocationType(5);
    pub const CU_MEM_LOCATION_TYPE_DEVICE_LOCALITY_DOMAIN: CUmemLocationType = CUmemLocationType(
        6,
    );
    pub const CU_MEM_LOCATION_TYPE_MAX: CUmemLocationType = CUmemLocationType(
        2147483647,
    );
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUmemLocationType(pub u32);
#[repr(C)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUmemLocation {
    pub type_: CUmemLocationType,
    pub id: ::core::ffi::c_int,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    ["Size of CUmemLocation"][::core::mem::size_of::<CUmemLocation>() - 8usize];
    ["Alignment of CUmemLocation"][::core::mem::align_of::<CUmemLocation>() - 4usize];
    [
        "Offset of field: CUmemLocation::type_",
    ][::core::mem::offset_of!(CUmemLocation, type_) - 0usize];
    [
        "Offset of field: CUmemLocation::id",
    ][::core::mem::offset_of!(CUmemLocation, id) - 4usize];
};
impl Default for CUmemLocation {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
pub type CUmemGenericAllocationHandle = ::core::ffi::c_ulonglong;
impl CUmemAllocationType {
    pub const CU_MEM_ALLOCATION_TYPE_INVALID: CUmemAllocationType = CUmemAllocationType(
        0,
    );
    pub const CU_MEM_ALLOCATION_TYPE_PINNED: CUmemAllocationType = CUmemAllocationType(
        1,
    );
    pub const CU_MEM_ALLOCATION_TYPE_MANAGED: CUmemAllocationType = CUmemAllocationType(
        2,
    );
    pub const CU_MEM_ALLOCATION_TYPE_MAX: CUmemAllocationType = CUmemAllocationType(
        2147483647,
    );
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUmemAllocationType(pub u32);
impl CUmemAllocationHandleType {
    pub const CU_MEM_HANDLE_TYPE_NONE: CUmemAllocationHandleType = CUmemAllocationHandleType(
        0,
    );
    pub const CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR: CUmemAllocationHandleType = CUmemAllocationHandleType(
        1,
    );
    pub const CU_MEM_HANDLE_TYPE_WIN32: CUmemAllocationHandleType = CUmemAllocationHandleType(
        2,
    );
    pub const CU_MEM_HANDLE_TYPE_WIN32_KMT: CUmemAllocationHandleType = CUmemAllocationHandleType(
        4,
    );
    pub const CU_MEM_HANDLE_TYPE_FABRIC: CUmemAllocationHandleType = CUmemAllocationHandleType(
        8,
    );
    pub const CU_MEM_HANDLE_TYPE_MAX: CUmemAllocationHandleType = CUmemAllocationHandleType(
        2147483647,
    );
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUmemAllocationHandleType(pub u32);
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUmemAllocationProp_allocFlags_u {
    pub compressionType: ::core::ffi::c_uchar,
    pub gpuDirectRDMACapable: ::core::ffi::c_uchar,
    pub usage: ::core::ffi::c_ushort,
    pub reserved: [::core::ffi::c_uchar; 4usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    [
        "Size of CUmemAllocationProp_allocFlags_u",
    ][::core::mem::size_of::<CUmemAllocationProp_allocFlags_u>() - 8usize];
    [
        "Alignment of CUmemAllocationProp_allocFlags_u",
    ][::core::mem::align_of::<CUmemAllocationProp_allocFlags_u>() - 2usize];
    [
        "Offset of field: CUmemAllocationProp_allocFlags_u::compressionType",
    ][::core::mem::offset_of!(CUmemAllocationProp_allocFlags_u, compressionType)
        - 0usize];
    [
        "Offset of field: CUmemAllocationProp_allocFlags_u::gpuDirectRDMACapable",
    ][::core::mem::offset_of!(CUmemAllocationProp_allocFlags_u, gpuDirectRDMACapable)
        - 1usize];
    [
        "Offset of field: CUmemAllocationProp_allocFlags_u::usage",
    ][::core::mem::offset_of!(CUmemAllocationProp_allocFlags_u, usage) - 2usize];
    [
        "Offset of field: CUmemAllocationProp_allocFlags_u::reserved",
    ][::core::mem::offset_of!(CUmemAllocationProp_allocFlags_u, reserved) - 4usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUmemAllocationProp {
    pub type_: CUmemAllocationType,
    pub requestedHandleTypes: CUmemAllocationHandleType,
    pub location: CUmemLocation,
    pub win32HandleMetaData: *mut ::core::ffi::c_void,
    pub allocFlags: CUmemAllocationProp_allocFlags_u,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    [
        "Size of CUmemAllocationProp",
    ][::core::mem::size_of::<CUmemAllocationProp>() - 32usize];
    [
        "Alignment of CUmemAllocationProp",
    ][::core::mem::align_of::<CUmemAllocationProp>() - 8usize];
    [
        "Offset of field: CUmemAllocationProp::type_",
    ][::core::mem::offset_of!(CUmemAllocationProp, type_) - 0usize];
    [
        "Offset of field: CUmemAllocationProp::requestedHandleTypes",
    ][::core::mem::offset_of!(CUmemAllocationProp, requestedHandleTypes) - 4usize];
    [
        "Offset of field: CUmemAllocationProp::location",
    ][::core::mem::offset_of!(CUmemAllocationProp, location) - 8usize];
    [
        "Offset of field: CUmemAllocationProp::win32HandleMetaData",
    ][::core::mem::offset_of!(CUmemAllocationProp, win32HandleMetaData) - 16usize];
    [
        "Offset of field: CUmemAllocationProp::allocFlags",
    ][::core::mem::offset_of!(CUmemAllocationProp, allocFlags) - 24usize];
};
impl Default for CUmemAllocationProp {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
pub const CU_MEM_ALLOC_GRANULARITY_MINIMUM: CUmemAllocationGranularity_flags = 0;
pub const CU_MEM_ALLOC_GRANULARITY_RECOMMENDED: CUmemAllocationGranularity_flags = 1;
pub type CUmemAllocationGranularity_flags = u32;
#[repr(C)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUmemPoolProps {
    pub allocType: CUmemAllocationType,
    pub handleTypes: CUmemAllocationHandleType,
    pub location: CUmemLocation,
    pub win32SecurityAttributes: *mut ::core::ffi::c_void,
    pub maxSize: usize,
    pub usage: ::core::ffi::c_ushort,
    pub gpuDirectRDMACapable: ::core::ffi::c_uchar,
    pub reserved: [::core::ffi::c_uchar; 53usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    ["Size of CUmemPoolProps"][::core::mem::size_of::<CUmemPoolProps>() - 88usize];
    ["Alignment of CUmemPoolProps"][::core::mem::align_of::<CUmemPoolProps>() - 8usize];
    [
        "Offset of field: CUmemPoolProps::allocType",
    ][::core::mem::offset_of!(CUmemPoolProps, allocType) - 0usize];
    [
        "Offset of field: CUmemPoolProps::handleTypes",
    ][::core::mem::offset_of!(CUmemPoolProps, handleTypes) - 4usize];
    [
        "Offset of field: CUmemPoolProps::location",
    ][::core::mem::offset_of!(CUmemPoolProps, location) - 8usize];
    [
        "Offset of field: CUmemPoolProps::win32SecurityAttributes",
    ][::core::mem::offset_of!(CUmemPoolProps, win32SecurityAttributes) - 16usize];
    [
        "Offset of field: CUmemPoolProps::maxSize",
    ][::core::mem::offset_of!(CUmemPoolProps, maxSize) - 24usize];
    [
        "Offset of field: CUmemPoolProps::usage",
    ][::core::mem::offset_of!(CUmemPoolProps, usage) - 32usize];
    [
        "Offset of field: CUmemPoolProps::gpuDirectRDMACapable",
    ][::core::mem::offset_of!(CUmemPoolProps, gpuDirectRDMACapable) - 34usize];
    [
        "Offset of field: CUmemPoolProps::reserved",
    ][::core::mem::offset_of!(CUmemPoolProps, reserved) - 35usize];
};
impl Default for CUmemPoolProps {
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
pub struct CUmemPoolPtrExportData {
    pub reserved: [::core::ffi::c_uchar; 64usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    [
        "Size of CUmemPoolPtrExportData",
    ][::core::mem::size_of::<CUmemPoolPtrExportData>() - 64usize];
    [
        "Alignment of CUmemPoolPtrExportData",
    ][::core::mem::align_of::<CUmemPoolPtrExportData>() - 1usize];
    [
        "Offset of field: CUmemPoolPtrExportData::reserved",
    ][::core::mem::offset_of!(CUmemPoolPtrExportData, reserved) - 0usize];
};
impl Default for CUmemPoolPtrExportData {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
pub const CU_MEM_ACCESS_FLAGS_PROT_NONE: CUmemAccess_flags = 0;
pub const CU_MEM_ACCESS_FLAGS_PROT_READ: CUmemAccess_flags = 1;
pub const CU_MEM_ACCESS_FLAGS_PROT_READWRITE: CUmemAccess_flags = 3;
pub const CU_MEM_ACCESS_FLAGS_PROT_MAX: CUmemAccess_flags = 2147483647;
pub type CUmemAccess_flags = u32;
impl CUmemPool_attribute {
    pub const CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES: CUmemPool_attribute = CUmemPool_attribute(
        1,
    );
    pub const CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC: CUmemPool_attribute = CUmemPool_attribute(
        2,
    );
    pub const CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES: CUmemPool_attribute = CUmemPool_attribute(
        3,
    );
    pub const CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: CUmemPool_attribute = CUmemPool_attribute(
        4,
    );
    pub const CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT: CUmemPool_attribute = CUmemPool_attribute(
        5,
    );
    pub const CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: CUmemPool_attribute = CUmemPool_attribute(
        6,
    );
    pub const CU_MEMPOOL_ATTR_USED_MEM_CURRENT: CUmemPool_attribute = CUmemPool_attribute(
        7,
    );
    pub const CU_MEMPOOL_ATTR_USED_MEM_HIGH: CUmemPool_attribute = CUmemPool_attribute(
        8,
    );
    pub const CU_MEMPOOL_ATTR_ALLOCATION_TYPE: CUmemPool_attribute = CUmemPool_attribute(
        9,
    );
    pub const CU_MEMPOOL_ATTR_EXPORT_HANDLE_TYPES: CUmemPool_attribute = CUmemPool_attribute(
        10,
    );
    pub const CU_MEMPOOL_ATTR_LOCATION_ID: CUmemPool_attribute = CUmemPool_attribute(11);
    pub const CU_MEMPOOL_ATTR_LOCATION_TYPE: CUmemPool_attribute = CUmemPool_attribute(
        12,
    );
    pub const CU_MEMPOOL_ATTR_MAX_POOL_SIZE: CUmemPool_attribute = CUmemPool_attribute(
        13,
    );
    pub const CU_MEMPOOL_ATTR_HW_DECOMPRESS_ENABLED: CUmemPool_attribute = CUmemPool_attribute(
        14,
    );
    pub const CU_MEMPOOL_ATTR_LOCALITY_DOMAIN_ID: CUmemPool_attribute = CUmemPool_attribute(
        15,
    );
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUmemPool_attribute(pub u32);
#[repr(C)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUmemAccessDesc {
    pub location: CUmemLocation,
    pub flags: CUmemAccess_flags,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    ["Size of CUmemAccessDesc"][::core::mem::size_of::<CUmemAccessDesc>() - 12usize];
    [
        "Alignment of CUmemAccessDesc",
    ][::core::mem::align_of::<CUmemAccessDesc>() - 4usize];
    [
        "Offset of field: CUmemAccessDesc::location",
    ][::core::mem::offset_of!(CUmemAccessDesc, location) - 0usize];
    [
        "Offset of field: CUmemAccessDesc::flags",
    ][::core::mem::offset_of!(CUmemAccessDesc, flags) - 8usize];
};
impl Default for CUmemAccessDesc {
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
pub struct CUDA_MEMCPY2D {
    pub srcXInBytes: usize,
    pub srcY: usize,
    pub srcMemoryType: CUmemorytype,
    pub srcHost: *const ::core::ffi::c_void,
    pub srcDevice: CUdeviceptr,
    pub srcArray: CUarray,
    pub srcPitch: usize,
    pub dstXInBytes: usize,
    pub dstY: usize,
    pub dstMemoryType: CUmemorytype,
    pub dstHost: *mut ::core::ffi::c_void,
    pub dstDevice: CUdeviceptr,
    pub dstArray: CUarray,
    pub dstPitch: usize,
    pub WidthInBytes: usize,
    pub Height: usize,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    ["Size of CUDA_MEMCPY2D"][::core::mem::size_of::<CUDA_MEMCPY2D>() - 128usize];
    ["Alignment of CUDA_MEMCPY2D"][::core::mem::align_of::<CUDA_MEMCPY2D>() - 8usize];
    [
        "Offset of field: CUDA_MEMCPY2D::srcXInBytes",
    ][::core::mem::offset_of!(CUDA_MEMCPY2D, srcXInBytes) - 0usize];
    [
        "Offset of field: CUDA_MEMCPY2D::srcY",
    ][::core::mem::offset_of!(CUDA_MEMCPY2D, srcY) - 8usize];
    [
        "Offset of field: CUDA_MEMCPY2D::srcMemoryType",
    ][::core::mem::offset_of!(CUDA_MEMCPY2D, srcMemoryType) - 16usize];
    [
        "Offset of field: CUDA_MEMCPY2D::srcHost",
    ][::core::mem::offset_of!(CUDA_MEMCPY2D, srcHost) - 24usize];
    [
        "Offset of field: CUDA_MEMCPY2D::srcDevice",
    ][::core::mem::offset_of!(CUDA_MEMCPY2D, srcDevice) - 32usize];
    [
        "Offset of field: CUDA_MEMCPY2D::srcArray",
    ][::core::mem::offset_of!(CUDA_MEMCPY2D, srcArray) - 40usize];
    [
        "Offset of field: CUDA_MEMCPY2D::srcPitch",
    ][::core::mem::offset_of!(CUDA_MEMCPY2D, srcPitch) - 48usize];
    [
        "Offset of field: CUDA_MEMCPY2D::dstXInBytes",
    ][::core::mem::offset_of!(CUDA_MEMCPY2D, dstXInBytes) - 56usize];
    [
        "Offset of field: CUDA_MEMCPY2D::dstY",
    ][::core::mem::offset_of!(CUDA_MEMCPY2D, dstY) - 64usize];
    [
        "Offset of field: CUDA_MEMCPY2D::dstMemoryType",
    ][::core::mem::offset_of!(CUDA_MEMCPY2D, dstMemoryType) - 72usize];
    [
        "Offset of field: CUDA_MEMCPY2D::dstHost",
    ][::core::mem::offset_of!(CUDA_MEMCPY2D, dstHost) - 80usize];
    [
        "Offset of field: CUDA_MEMCPY2D::dstDevice",
    ][::core::mem::offset_of!(CUDA_MEMCPY2D, dstDevice) - 88usize];
    [
        "Offset of field: CUDA_MEMCPY2D::dstArray",
    ][::core::mem::offset_of!(CUDA_MEMCPY2D, dstArray) - 96usize];
    [
        "Offset of field: CUDA_MEMCPY2D::dstPitch",
    ][::core::mem::offset_of!(CUDA_MEMCPY2D, dstPitch) - 104usize];
    [
        "Offset of field: CUDA_MEMCPY2D::WidthInBytes",
    ][::core::mem::offset_of!(CUDA_MEMCPY2D, WidthInBytes) - 112usize];
    [
        "Offset of field: CUDA_MEMCPY2D::Height",
    ][::core::mem::offset_of!(CUDA_MEMCPY2D, Height) - 120usize];
};
impl Default for CUDA_MEMCPY2D {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
impl CUmemcpy3DOperandType {
    pub const CU_MEMCPY_OPERAND_TYPE_POINTER: CUmemcpy3DOperandType = CUmemcpy3DOperandType(
        1,
    );
    pub const CU_MEMCPY_OPERAND_TYPE_ARRAY: CUmemcpy3DOperandType = CUmemcpy3DOperandType(
        2,
    );
    pub const CU_MEMCPY_OPERAND_TYPE_MAX: CUmemcpy3DOperandType = CUmemcpy3DOperandType(
        2147483647,
    );
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUmemcpy3DOperandType(pub u32);
#[repr(C)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUmemcpy3DOperand_ptr_u {
    pub ptr: CUdeviceptr,
    pub rowLength: usize,
    pub layerHeight: usize,
    pub locHint: CUmemLocation,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    [
        "Size of CUmemcpy3DOperand_ptr_u",
    ][::core::mem::size_of::<CUmemcpy3DOperand_ptr_u>() - 32usize];
    [
        "Alignment of CUmemcpy3DOperand_ptr_u",
    ][::core::mem::align_of::<CUmemcpy3DOperand_ptr_u>() - 8usize];
    [
        "Offset of field: CUmemcpy3DOperand_ptr_u::ptr",
    ][::core::mem::offset_of!(CUmemcpy3DOperand_ptr_u, ptr) - 0usize];
    [
        "Offset of field: CUmemcpy3DOperand_ptr_u::rowLength",
    ][::core::mem::offset_of!(CUmemcpy3DOperand_ptr_u, rowLength) - 8usize];
    [
        "Offset of field: CUmemcpy3DOperand_ptr_u::layerHeight",
    ][::core::mem::offset_of!(CUmemcpy3DOperand_ptr_u, layerHeight) - 16usize];
    [
        "Offset of field: CUmemcpy3DOperand_ptr_u::locHint",
    ][::core::mem::offset_of!(CUmemcpy3DOperand_ptr_u, locHint) - 24usize];
};
impl Default for CUmemcpy3DOperand_ptr_u {
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
pub struct CUoffset3D {
    pub x: usize,
    pub y: usize,
    pub z: usize,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    ["Size of CUoffset3D"][::core::mem::size_of::<CUoffset3D>() - 24usize];
    ["Alignment of CUoffset3D"][::core::mem::align_of::<CUoffset3D>() - 8usize];
    ["Offset of field: CUoffset3D::x"][::core::mem::offset_of!(CUoffset3D, x) - 0usize];
    ["Offset of field: CUoffset3D::y"][::core::mem::offset_of!(CUoffset3D, y) - 8usize];
    ["Offset of field: CUoffset3D::z"][::core::mem::offset_of!(CUoffset3D, z) - 16usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUmemcpy3DOperand_array_u {
    pub array: CUarray,
    pub offset: CUoffset3D,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    [
        "Size of CUmemcpy3DOperand_array_u",
    ][::core::mem::size_of::<CUmemcpy3DOperand_array_u>() - 32usize];
    [
        "Alignment of CUmemcpy3DOperand_array_u",
    ][::core::mem::align_of::<CUmemcpy3DOperand_array_u>() - 8usize];
    [
        "Offset of field: CUmemcpy3DOperand_array_u::array",
    ][::core::mem::offset_of!(CUmemcpy3DOperand_array_u, array) - 0usize];
    [
        "Offset of field: CUmemcpy3DOperand_array_u::offset",
    ][::core::mem::offset_of!(CUmemcpy3DOperand_array_u, offset) - 8usize];
};
impl Default for CUmemcpy3DOperand_array_u {
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
pub union CUmemcpy3DOperand_u {
    pub ptr: CUmemcpy3DOperand_ptr_u,
    pub array: CUmemcpy3DOperand_array_u,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    [
        "Size of CUmemcpy3DOperand_u",
    ][::core::mem::size_of::<CUmemcpy3DOperand_u>() - 32usize];
    [
        "Alignment of CUmemcpy3DOperand_u",
    ][::core::mem::align_of::<CUmemcpy3DOperand_u>() - 8usize];
    [
        "Offset of field: CUmemcpy3DOperand_u::ptr",
    ][::core::mem::offset_of!(CUmemcpy3DOperand_u, ptr) - 0usize];
    [
        "Offset of field: CUmemcpy3DOperand_u::array",
    ][::core::mem::offset_of!(CUmemcpy3DOperand_u, array) - 0usize];
};
impl Default for CUmemcpy3DOperand_u {
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
pub struct CUmemcpy3DOperand {
    pub type_: CUmemcpy3DOperandType,
    pub op: CUmemcpy3DOperand_u,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    ["Size of CUmemcpy3DOperand"][::core::mem::size_of::<CUmemcpy3DOperand>() - 40usize];
    [
        "Alignment of CUmemcpy3DOperand",
    ][::core::mem::align_of::<CUmemcpy3DOperand>() - 8usize];
    [
        "Offset of field: CUmemcpy3DOperand::type_",
    ][::core::mem::offset_of!(CUmemcpy3DOperand, type_) - 0usize];
    [
        "Offset of field: CUmemcpy3DOperand::op",
    ][::core::mem::offset_of!(CUmemcpy3DOperand, op) - 8usize];
};
impl Default for CUmemcpy3DOperand {
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
pub struct CUextent3D {
    pub width: usize,
    pub height: usize,
    pub depth: usize,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    ["Size of CUextent3D"][::core::mem::size_of::<CUextent3D>() - 24usize];
    ["Alignment of CUextent3D"][::core::mem::align_of::<CUextent3D>() - 8usize];
    [
        "Offset of field: CUextent3D::width",
    ][::core::mem::offset_of!(CUextent3D, width) - 0usize];
    [
        "Offset of field: CUextent3D::height",
    ][::core::mem::offset_of!(CUextent3D, height) - 8usize];
    [
        "Offset of field: CUextent3D::depth",
    ][::core::mem::offset_of!(CUextent3D, depth) - 16usize];
};
impl CUmemcpySrcAccessOrder {
    pub const CU_MEMCPY_SRC_ACCESS_ORDER_INVALID: CUmemcpySrcAccessOrder = CUmemcpySrcAccessOrder(
        0,
    );
    pub const CU_MEMCPY_SRC_ACCESS_ORDER_STREAM: CUmemcpySrcAccessOrder = CUmemcpySrcAccessOrder(
        1,
    );
    pub const CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL: CUmemcpySrcAccessOrder = CUmemcpySrcAccessOrder(
        2,
    );
    pub const CU_MEMCPY_SRC_ACCESS_ORDER_ANY: CUmemcpySrcAccessOrder = CUmemcpySrcAccessOrder(
        3,
    );
    pub const CU_MEMCPY_SRC_ACCESS_ORDER_MAX: CUmemcpySrcAccessOrder = CUmemcpySrcAccessOrder(
        2147483647,
    );
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUmemcpySrcAccessOrder(pub u32);
#[repr(C)]
#[derive(Copy, Clone)]
pub struct CUDA_MEMCPY3D_BATCH_OP {
    pub src: CUmemcpy3DOperand,
    pub dst: CUmemcpy3DOperand,
    pub extent: CUextent3D,
    pub srcAccessOrder: CUmemcpySrcAccessOrder,
    pub flags: ::core::ffi::c_uint,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    [
        "Size of CUDA_MEMCPY3D_BATCH_OP",
    ][::core::mem::size_of::<CUDA_MEMCPY3D_BATCH_OP>() - 112usize];
    [
        "Alignment of CUDA_MEMCPY3D_BATCH_OP",
    ][::core::mem::align_of::<CUDA_MEMCPY3D_BATCH_OP>() - 8usize];
    [
        "Offset of field: CUDA_MEMCPY3D_BATCH_OP::src",
    ][::core::mem::offset_of!(CUDA_MEMCPY3D_BATCH_OP, src) - 0usize];
    [
        "Offset of field: CUDA_MEMCPY3D_BATCH_OP::dst",
    ][::core::mem::offset_of!(CUDA_MEMCPY3D_BATCH_OP, dst) - 40usize];
    [
        "Offset of field: CUDA_MEMCPY3D_BATCH_OP::extent",
    ][::core::mem::offset_of!(CUDA_MEMCPY3D_BATCH_OP, extent) - 80usize];
    [
        "Offset of field: CUDA_MEMCPY3D_BATCH_OP::srcAccessOrder",
    ][::core::mem::offset_of!(CUDA_MEMCPY3D_BATCH_OP, srcAccessOrder) - 104usize];
    [
        "Offset of field: CUDA_MEMCPY3D_BATCH_OP::flags",
    ][::core::mem::offset_of!(CUDA_MEMCPY3D_BATCH_OP, flags) - 108usize];
};
impl Default for CUDA_MEMCPY3D_BATCH_OP {
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
pub struct CUDA_MEMCPY3D_PEER {
    pub srcXInBytes: usize,
    pub srcY: usize,
    pub srcZ: usize,
    pub srcLOD: usize,
    pub srcMemoryType: CUmemorytype,
    pub srcHost: *const ::core::ffi::c_void,
    pub srcDevice: CUdeviceptr,
    pub srcArray: CUarray,
    pub srcContext: CUcontext,
    pub srcPitch: usize,
    pub srcHeight: usize,
    pub dstXInBytes: usize,
    pub dstY: usize,
    pub dstZ: usize,
    pub dstLOD: usize,
    pub dstMemoryType: CUmemorytype,
    pub dstHost: *mut ::core::ffi::c_void,
    pub dstDevice: CUdeviceptr,
    pub dstArray: CUarray,
    pub dstContext: CUcontext,
    pub dstPitch: usize,
    pub dstHeight: usize,
    pub WidthInBytes: usize,
    pub Height: usize,
    pub Depth: usize,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    [
        "Size of CUDA_MEMCPY3D_PEER",
    ][::core::mem::size_of::<CUDA_MEMCPY3D_PEER>() - 200usize];
    [
        "Alignment of CUDA_MEMCPY3D_PEER",
    ][::core::mem::align_of::<CUDA_MEMCPY3D_PEER>() - 8usize];
    [
        "Offset of field: CUDA_MEMCPY3D_PEER::srcXInBytes",
    ][::core::mem::offset_of!(CUDA_MEMCPY3D_PEER, srcXInBytes) - 0usize];
    [
        "Offset of field: CUDA_MEMCPY3D_PEER::srcY",
    ][::core::mem::offset_of!(CUDA_MEMCPY3D_PEER, srcY) - 8usize];
    [
        "Offset of field: CUDA_MEMCPY3D_PEER::srcZ",
    ][::core::mem::offset_of!(CUDA_MEMCPY3D_PEER, srcZ) - 16usize];
    [
        "Offset of field: CUDA_MEMCPY3D_PEER::srcLOD",
    ][::core::mem::offset_of!(CUDA_MEMCPY3D_PEER, srcLOD) - 24usize];
    [
        "Offset of field: CUDA_MEMCPY3D_PEER::srcMemoryType",
    ][::core::mem::offset_of!(CUDA_MEMCPY3D_PEER, srcMemoryType) - 32usize];
    [
        "Offset of field: CUDA_MEMCPY3D_PEER::srcHost",
    ][::core::mem::offset_of!(CUDA_MEMCPY3D_PEER, srcHost) - 40usize];
    [
        "Offset of field: CUDA_MEMCPY3D_PEER::srcDevice",
    ][::core::mem::offset_of!(CUDA_MEMCPY3D_PEER, srcDevice) - 48usize];
    [
        "Offset of field: CUDA_MEMCPY3D_PEER::srcArray",
    ][::core::mem::offset_of!(CUDA_MEMCPY3D_PEER, srcArray) - 56usize];
    [
        "Offset of field: CUDA_MEMCPY3D_PEER::srcContext",
    ][::core::mem::offset_of!(CUDA_MEMCPY3D_PEER, srcContext) - 64usize];
    [
        "Offset of field: CUDA_MEMCPY3D_PEER::srcPitch",
    ][::core::mem::offset_of!(CUDA_MEMCPY3D_PEER, srcPitch) - 72usize];
    [
        "Offset of field: CUDA_MEMCPY3D_PEER::srcHeight",
    ][::core::mem::offset_of!(CUDA_MEMCPY3D_PEER, srcHeight) - 80usize];
    [
        "Offset of field: CUDA_MEMCPY3D_PEER::dstXInBytes",
    ][::core::mem::offset_of!(CUDA_MEMCPY3D_PEER, dstXInBytes) - 88usize];
    [
        "Offset of field: CUDA_MEMCPY3D_PEER::dstY",
    ][::core::mem::offset_of!(CUDA_MEMCPY3D_PEER, dstY) - 96usize];
    [
        "Offset of field: CUDA_MEMCPY3D_PEER::dstZ",
    ][::core::mem::offset_of!(CUDA_MEMCPY3D_PEER, dstZ) - 104usize];
    [
        "Offset of field: CUDA_MEMCPY3D_PEER::dstLOD",
    ][::core::mem::offset_of!(CUDA_MEMCPY3D_PEER, dstLOD) - 112usize];
    [
        "Offset of field: CUDA_MEMCPY3D_PEER::dstMemoryType",
    ][::core::mem::offset_of!(CUDA_MEMCPY3D_PEER, dstMemoryType) - 120usize];
    [
        "Offset of field: CUDA_MEMCPY3D_PEER::dstHost",
    ][::core::mem::offset_of!(CUDA_MEMCPY3D_PEER, dstHost) - 128usize];
    [
        "Offset of field: CUDA_MEMCPY3D_PEER::dstDevice",
    ][::core::mem::offset_of!(CUDA_MEMCPY3D_PEER, dstDevice) - 136usize];
    [
        "Offset of field: CUDA_MEMCPY3D_PEER::dstArray",
    ][::core::mem::offset_of!(CUDA_MEMCPY3D_PEER, dstArray) - 144usize];
    [
        "Offset of field: CUDA_MEMCPY3D_PEER::dstContext",
    ][::core::mem::offset_of!(CUDA_MEMCPY3D_PEER, dstContext) - 152usize];
    [
        "Offset of field: CUDA_MEMCPY3D_PEER::dstPitch",
    ][::core::mem::offset_of!(CUDA_MEMCPY3D_PEER, dstPitch) - 160usize];
    [
        "Offset of field: CUDA_MEMCPY3D_PEER::dstHeight",
    ][::core::mem::offset_of!(CUDA_MEMCPY3D_PEER, dstHeight) - 168usize];
    [
        "Offset of field: CUDA_MEMCPY3D_PEER::WidthInBytes",
    ][::core::mem::offset_of!(CUDA_MEMCPY3D_PEER, WidthInBytes) - 176usize];
    [
        "Offset of field: CUDA_MEMCPY3D_PEER::Height",
    ][::core::mem::offset_of!(CUDA_MEMCPY3D_PEER, Height) - 184usize];
    [
        "Offset of field: CUDA_MEMCPY3D_PEER::Depth",
    ][::core::mem::offset_of!(CUDA_MEMCPY3D_PEER, Depth) - 192usize];
};
impl Default for CUDA_MEMCPY3D_PEER {
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
pub struct CUmemcpyAttributes {
    pub srcAccessOrder: CUmemcpySrcAccessOrder,
    pub srcLocHint: CUmemLocation,
    pub dstLocHint: CUmemLocation,
    pub flags: ::core::ffi::c_uint,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    [
        "Size of CUmemcpyAttributes",
    ][::core::mem::size_of::<CUmemcpyAttributes>() - 24usize];
    [
        "Alignment of CUmemcpyAttributes",
    ][::core::mem::align_of::<CUmemcpyAttributes>() - 4usize];
    [
        "Offset of field: CUmemcpyAttributes::srcAccessOrder",
    ][::core::mem::offset_of!(CUmemcpyAttributes, srcAccessOrder) - 0usize];
    [
        "Offset of field: CUmemcpyAttributes::srcLocHint",
    ][::core::mem::offset_of!(CUmemcpyAttributes, srcLocHint) - 4usize];
    [
        "Offset of field: CUmemcpyAttributes::dstLocHint",
    ][::core::mem::offset_of!(CUmemcpyAttributes, dstLocHint) - 12usize];
    [
        "Offset of field: CUmemcpyAttributes::flags",
    ][::core::mem::offset_of!(CUmemcpyAttributes, flags) - 20usize];
};
impl Default for CUmemcpyAttributes {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
impl CUmoduleLoadingMode {
    pub const CU_MODULE_EAGER_LOADING: CUmoduleLoadingMode = CUmoduleLoadingMode(1);
    pub const CU_MODULE_LAZY_LOADING: CUmoduleLoadingMode = CUmoduleLoadingMode(2);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUmoduleLoadingMode(pub u32);
pub type CUoccupancyB2DSize = ::core::option::Option<
    unsafe extern "C" fn(arg1: ::core::ffi::c_int) -> usize,
>;
impl CUpointer_attribute {
    pub const CU_POINTER_ATTRIBUTE_CONTEXT: CUpointer_attribute = CUpointer_attribute(1);
    pub const CU_POINTER_ATTRIBUTE_MEMORY_TYPE: CUpointer_attribute = CUpointer_attribute(
        2,
    );
    pub const CU_POINTER_ATTRIBUTE_DEVICE_POINTER: CUpointer_attribute = CUpointer_attribute(
        3,
    );
    pub const CU_POINTER_ATTRIBUTE_HOST_POINTER: CUpointer_attribute = CUpointer_attribute(
        4,
    );
    pub const CU_POINTER_ATTRIBUTE_P2P_TOKENS: CUpointer_attribute = CUpointer_attribute(
        5,
    );
    pub const CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: CUpointer_attribute = CUpointer_attribute(
        6,
    );
    pub const CU_POINTER_ATTRIBUTE_BUFFER_ID: CUpointer_attribute = CUpointer_attribute(
        7,
    );
    pub const CU_POINTER_ATTRIBUTE_IS_MANAGED: CUpointer_attribute = CUpointer_attribute(
        8,
    );
    pub const CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: CUpointer_attribute = CUpointer_attribute(
        9,
    );
    pub const CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE: CUpointer_attribute = CUpointer_attribute(
        10,
    );
    pub const CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: CUpointer_attribute = CUpointer_attribute(
        11,
    );
    pub const CU_POINTER_ATTRIBUTE_RANGE_SIZE: CUpointer_attribute = CUpointer_attribute(
        12,
    );
    pub const CU_POINTER_ATTRIBUTE_MAPPED: CUpointer_attribute = CUpointer_attribute(13);
    pub const CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES: CUpointer_attribute = CUpointer_attribute(
        14,
    );
    pub const CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE: CUpointer_attribute = CUpointer_attribute(
        15,
    );
    pub const CU_POINTER_ATTRIBUTE_ACCESS_FLAGS: CUpointer_attribute = CUpointer_attribute(
        16,
    );
    pub const CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: CUpointer_attribute = CUpointer_attribute(
        17,
    );
    pub const CU_POINTER_ATTRIBUTE_MAPPING_SIZE: CUpointer_attribute = CUpointer_attribute(
        18,
    );
    pub const CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR: CUpointer_attribute = CUpointer_attribute(
        19,
    );
    pub const CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID: CUpointer_attribute = CUpointer_attribute(
        20,
    );
    pub const CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE: CUpointer_attribute = CUpointer_attribute(
        21,
    );
    pub const CU_POINTER_ATTRIBUTE_LOCALITY_DOMAIN_ORDINAL: CUpointer_attribute = CUpointer_attribute(
        22,
    );
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUpointer_attribute(pub u32);
pub type PFN_cuArray3DGetDescriptor_v3020 = ::core::option::Option<
    unsafe extern "C" fn(
        descriptor: *mut CUDA_ARRAY3D_DESCRIPTOR,
        array: CUarray,
    ) -> CUresult,
>;
pub type PFN_cuCtxAttach_v2000 = ::core::option::Option<
    unsafe extern "C" fn(context: *mut CUcontext, flags: ::core::ffi::c_uint) -> CUresult,
>;
pub type PFN_cuCtxCreate_v11040 = ::core::option::Option<
    unsafe extern "C" fn(
        context: *mut CUcontext,
        params: *mut CUexecAffinityParam,
        count: ::core::ffi::c_int,
        flags: ::core::ffi::c_uint,
        device: CUdevice,
    ) -> CUresult,
>;
pub type PFN_cuCtxDestroy_v2000 = ::core::option::Option<
    unsafe extern "C" fn(context: CUcontext) -> CUresult,
>;
pub type PFN_cuCtxDetach_v2000 = ::core::option::Option<
    unsafe extern "C" fn(context: CUcontext) -> CUresult,
>;
pub type PFN_cuCtxDisablePeerAccess_v4000 = ::core::option::Option<
    unsafe extern "C" fn(peer: CUcontext) -> CUresult,
>;
pub type PFN_cuCtxEnablePeerAccess_v4000 = ::core::option::Option<
    unsafe extern "C" fn(peer: CUcontext, flags: ::core::ffi::c_uint) -> CUresult,
>;
pub type PFN_cuCtxGetApiVersion_v3020 = ::core::option::Option<
    unsafe extern "C" fn(
        context: CUcontext,
        version: *mut ::core::ffi::c_uint,
    ) -> CUresult,
>;
pub type PFN_cuCtxGetCacheConfig_v3020 = ::core::option::Option<
    unsafe extern "C" fn(config: *mut CUfunc_cache) -> CUresult,
>;
pub type PFN_cuCtxGetLimit_v3010 = ::core::option::Option<
    unsafe extern "C" fn(value: *mut usize, limit: CUlimit) -> CUresult,
>;
pub type PFN_cuCtxGetSharedMemConfig_v4020 = ::core::option::Option<
    unsafe extern "C" fn(config: *mut CUsharedconfig) -> CUresult,
>;
pub type PFN_cuCtxPopCurrent_v2000 = ::core::option::Option<
    unsafe extern "C" fn(context: *mut CUcontext) -> CUresult,
>;
pub type PFN_cuCtxPushCurrent_v2000 = ::core::option::Option<
    unsafe extern "C" fn(context: CUcontext) -> CUresult,
>;
pub type PFN_cuCtxResetPersistingL2Cache_v11000 = ::core::option::Option<
    unsafe extern "C" fn() -> CUresult,
>;
pub type PFN_cuCtxSetCacheConfig_v3020 = ::core::option::Option<
    unsafe extern "C" fn(config: CUfunc_cache) -> CUresult,
>;
pub type PFN_cuCtxSetFlags_v12010 = ::core::option::Option<
    unsafe extern "C" fn(flags: ::core::ffi::c_uint) -> CUresult,
>;
pub type PFN_cuCtxSetLimit_v3010 = ::core::option::Option<
    unsafe extern "C" fn(limit: CUlimit, value: usize) -> CUresult,
>;
pub type PFN_cuCtxSetSharedMemConfig_v4020 = ::core::option::Option<
    unsafe extern "C" fn(config: CUsharedconfig) -> CUresult,
>;
pub type PFN_cuDeviceCanAccessPeer_v4000 = ::core::option::Option<
    unsafe extern "C" fn(
        can: *mut ::core::ffi::c_int,
        device: CUdevice,
        peer: CUdevice,
    ) -> CUresult,
>;
pub type PFN_cuDeviceComputeCapability_v2000 = ::core::option::Option<
    unsafe extern "C" fn(
        major: *mut ::core::ffi::c_int,
        minor: *mut ::core::ffi::c_int,
        device: CUdevice,
    ) -> CUresult,
>;
pub type PFN_cuDeviceGetByPCIBusId_v4010 = ::core::option::Option<
    unsafe extern "C" fn(
        device: *mut CUdevice,
        id: *const ::core::ffi::c_char,
    ) -> CUresult,
>;
pub type PFN_cuDeviceGetDefaultMemPool_v11020 = ::core::option::Option<
    unsafe extern "C" fn(pool: *mut CUmemoryPool, device: CUdevice) -> CUresult,
>;
pub type PFN_cuDeviceGetMemPool_v11020 = ::core::option::Option<
    unsafe extern "C" fn(pool: *mut CUmemoryPool, device: CUdevice) -> CUresult,
>;
pub type PFN_cuDeviceGetP2PAttribute_v8000 = ::core::option::Option<
    unsafe extern "C" fn(
        value: *mut ::core::ffi::c_int,
        attribute: CUdevice_P2PAttribute,
        device: CUdevice,
        peer: CUdevice,
    ) -> CUresult,
>;
pub type PFN_cuDeviceGetPCIBusId_v4010 = ::core::option::Option<
    unsafe extern "C" fn(
        id: *mut ::core::ffi::c_char,
        size: ::core::ffi::c_int,
        device: CUdevice,
    ) -> CUresult,
>;
pub type PFN_cuDevicePrimaryCtxRelease_v7000 = ::core::option::Option<
    unsafe extern "C" fn(device: CUdevice) -> CUresult,
>;
pub type PFN_cuDevicePrimaryCtxReset_v7000 = ::core::option::Option<
    unsafe extern "C" fn(device: CUdevice) -> CUresult,
>;
pub type PFN_cuDevicePrimaryCtxReset_v11000 = ::core::option::Option<
    unsafe extern "C" fn(device: CUdevice) -> CUresult,
>;
pub type PFN_cuDevicePrimaryCtxSetFlags_v7000 = ::core::option::Option<
    unsafe extern "C" fn(device: CUdevice, flags: ::core::ffi::c_uint) -> CUresult,
>;
pub type PFN_cuDevicePrimaryCtxSetFlags_v11000 = ::core::option::Option<
    unsafe extern "C" fn(device: CUdevice, flags: ::core::ffi::c_uint) -> CUresult,
>;
pub type PFN_cuDeviceSetMemPool_v11020 = ::core::option::Option<
    unsafe extern "C" fn(device: CUdevice, pool: CUmemoryPool) -> CUresult,
>;
pub type PFN_cuEventDestroy_v2000 = ::core::option::Option<
    unsafe extern "C" fn(event: CUevent) -> CUresult,
>;
pub type PFN_cuFuncGetAttribute_v2020 = ::core::option::Option<
    unsafe extern "C" fn(
        value: *mut ::core::ffi::c_int,
        attribute: CUfunction_attribute,
        function: CUfunction,
    ) -> CUresult,
>;
pub type PFN_cuFuncGetModule_v11000 = ::core::option::Option<
    unsafe extern "C" fn(owner: *mut CUmodule, function: CUfunction) -> CUresult,
>;
pub type PFN_cuFuncGetName_v12030 = ::core::option::Option<
    unsafe extern "C" fn(
        name: *mut *const ::core::ffi::c_char,
        function: CUfunction,
    ) -> CUresult,
>;
pub type PFN_cuFuncGetParamCount_v13020 = ::core::option::Option<
    unsafe extern "C" fn(function: CUfunction, count: *mut usize) -> CUresult,
>;
pub type PFN_cuFuncGetParamInfo_v12040 = ::core::option::Option<
    unsafe extern "C" fn(
        function: CUfunction,
        index: usize,
        offset: *mut usize,
        size: *mut usize,
    ) -> CUresult,
>;
pub type PFN_cuFuncIsLoaded_v12040 = ::core::option::Option<
    unsafe extern "C" fn(
        loaded: *mut CUfunctionLoadingState,
        function: CUfunction,
    ) -> CUresult,
>;
pub type PFN_cuFuncLoad_v12040 = ::core::option::Option<
    unsafe extern "C" fn(function: CUfunction) -> CUresult,
>;
pub type PFN_cuFuncSetAttribute_v9000 = ::core::option::Option<
    unsafe extern "C" fn(
        function: CUfunction,
        attribute: CUfunction_attribute,
        value: ::core::ffi::c_int,
    ) -> CUresult,
>;
pub type PFN_cuFuncSetCacheConfig_v3000 = ::core::option::Option<
    unsafe extern "C" fn(function: CUfunction, config: CUfunc_cache) -> CUresult,
>;
pub type PFN_cuFuncSetSharedMemConfig_v4020 = ::core::option::Option<
    unsafe extern "C" fn(function: CUfunction, config: CUsharedconfig) -> CUresult,
>;
pub type PFN_cuGetExportTable_v3000 = ::core::option::Option<
    unsafe extern "C" fn(
        table: *mut *const ::core::ffi::c_void,
        id: *const CUuuid,
    ) -> CUresult,
>;
pub type PFN_cuGraphAddChildGraphNode_v10000 = ::core::option::Option<
    unsafe extern "C" fn(
        node: *mut CUgraphNode,
        graph: CUgraph,
        after: *const CUgraphNode,
        count: usize,
        child: CUgraph,
    ) -> CUresult,
>;
pub type PFN_cuGraphAddDependencies_v10000 = ::core::option::Option<
    unsafe extern "C" fn(
        graph: CUgraph,
        from: *const CUgraphNode,
        to: *const CUgraphNode,
        count: usize,
    ) -> CUresult,
>;
pub type PFN_cuGraphAddDependencies_v12030 = ::core::option::Option<
    unsafe extern "C" fn(
        graph: CUgraph,
        from: *const CUgraphNode,
        to: *const CUgraphNode,
        edges: *const CUgraphEdgeData,
        count: usize,
    ) -> CUresult,
>;
pub type PFN_cuGraphAddEmptyNode_v10000 = ::core::option::Option<
    unsafe extern "C" fn(
        node: *mut CUgraphNode,
        graph: CUgraph,
        after: *const CUgraphNode,
        count: usize,
    ) -> CUresult,
>;
pub type PFN_cuGraphAddKernelNode_v10000 = ::core::option::Option<
    unsafe extern "C" fn(
        node: *mut CUgraphNode,
        graph: CUgraph,
        after: *const CUgraphNode,
        count: usize,
        params: *const CUDA_KERNEL_NODE_PARAMS_v1,
    ) -> CUresult,
>;
pub type PFN_cuGraphAddKernelNode_v12000 = ::core::option::Option<
    unsafe extern "C" fn(
        node: *mut CUgraphNode,
        graph: CUgraph,
        after: *const CUgraphNode,
        count: usize,
        params: *const CUDA_KERNEL_NODE_PARAMS_v2,
    ) -> CUresult,
>;
pub type PFN_cuGraphAddMemcpyNode_v10000 = ::core::option::Option<
    unsafe extern "C" fn(
        node: *mut CUgraphNode,
        graph: CUgraph,
        after: *const CUgraphNode,
        count: usize,
        params: *const CUDA_MEMCPY3D,
        context: CUcontext,
    ) -> CUresult,
>;
pub type PFN_cuGraphAddMemsetNode_v10000 = ::core::option::Option<
    unsafe extern "C" fn(
        node: *mut CUgraphNode,
        graph: CUgraph,
        after: *const CUgraphNode,
        count: usize,
        params: *const CUDA_MEMSET_NODE_PARAMS,
        context: CUcontext,
    ) -> CUresult,
>;
pub type PFN_cuGraphChildGraphNodeGetGraph_v10000 = ::core::option::Option<
    unsafe extern "C" fn(node: CUgraphNode, graph: *mut CUgraph) -> CUresult,
>;
pub type PFN_cuGraphClone_v10000 = ::core::option::Option<
    unsafe extern "C" fn(clone: *mut CUgraph, graph: CUgraph) -> CUresult,
>;
pub type PFN_cuGraphDestroyNode_v10000 = ::core::option::Option<
    unsafe extern "C" fn(node: CUgraphNode) -> CUresult,
>;
pub type PFN_cuGraphExecGetFlags_v12000 = ::core::option::Option<
    unsafe extern "C" fn(exec: CUgraphExec, flags: *mut cuuint64_t) -> CUresult,
>;
pub type PFN_cuGraphExecKernelNodeSetParams_v10010 = ::core::option::Option<
    unsafe extern "C" fn(
        exec: CUgraphExec,
        node: CUgraphNode,
        params: *const CUDA_KERNEL_NODE_PARAMS_v1,
    ) -> CUresult,
>;
pub type PFN_cuGraphExecKernelNodeSetParams_v12000 = ::core::option::Option<
    unsafe extern "C" fn(
        exec: CUgraphExec,
        node: CUgraphNode,
        params: *const CUDA_KERNEL_NODE_PARAMS_v2,
    ) -> CUresult,
>;
pub type PFN_cuGraphExecMemcpyNodeSetParams_v10020 = ::core::option::Option<
    unsafe extern "C" fn(
        exec: CUgraphExec,
        node: CUgraphNode,
        params: *const CUDA_MEMCPY3D,
        context: CUcontext,
    ) -> CUresult,
>;
pub type PFN_cuGraphExecMemsetNodeSetParams_v10020 = ::core::option::Option<
    unsafe extern "C" fn(
        exec: CUgraphExec,
        node: CUgraphNode,
        params: *const CUDA_MEMSET_NODE_PARAMS,
        context: CUcontext,
    ) -> CUresult,
>;
pub type PFN_cuGraphExecUpdate_v10020 = ::core::option::Option<
    unsafe extern "C" fn(
        exec: CUgraphExec,
        graph: CUgraph,
        node: *mut CUgraphNode,
        result: *mut CUgraphExecUpdateResult,
    ) -> CUresult,
>;
pub type PFN_cuGraphExecUpdate_v12000 = ::core::option::Option<
    unsafe extern "C" fn(
        exec: CUgraphExec,
        graph: CUgraph,
        result: *mut CUgraphExecUpdateResultInfo,
    ) -> CUresult,
>;
pub type PFN_cuGraphGetEdges_v10000 = ::core::option::Option<
    unsafe extern "C" fn(
        graph: CUgraph,
        from: *mut CUgraphNode,
        to: *mut CUgraphNode,
        count: *mut usize,
    ) -> CUresult,
>;
pub type PFN_cuGraphGetEdges_v12030 = ::core::option::Option<
    unsafe extern "C" fn(
        graph: CUgraph,
        from: *mut CUgraphNode,
        to: *mut CUgraphNode,
        edges: *mut CUgraphEdgeData,
        count: *mut usize,
    ) -> CUresult,
>;
pub type PFN_cuGraphGetNodes_v10000 = ::core::option::Option<
    unsafe extern "C" fn(
        graph: CUgraph,
        nodes: *mut CUgraphNode,
        count: *mut usize,
    ) -> CUresult,
>;
pub type PFN_cuGraphGetRootNodes_v10000 = ::core::option::Option<
    unsafe extern "C" fn(
        graph: CUgraph,
        nodes: *mut CUgraphNode,
        count: *mut usize,
    ) -> CUresult,
>;
pub type PFN_cuGraphInstantiate_v10000 = ::core::option::Option<
    unsafe extern "C" fn(
        exec: *mut CUgraphExec,
        graph: CUgraph,
        node: *mut CUgraphNode,
        log: *mut ::core::ffi::c_char,
        size: usize,
    ) -> CUresult,
>;
pub type PFN_cuGraphInstantiateWithParams_v12000 = ::core::option::Option<
    unsafe extern "C" fn(
        exec: *mut CUgraphExec,
        graph: CUgraph,
        params: *mut CUDA_GRAPH_INSTANTIATE_PARAMS,
    ) -> CUresult,
>;
pub type PFN_cuGraphInstantiateWithParams_v12000_ptsz = PFN_cuGraphInstantiateWithParams_v12000;
pub type PFN_cuGraphKernelNodeGetAttribute_v11000 = ::core::option::Option<
    unsafe extern "C" fn(
        node: CUgraphNode,
        attribute: CUlaunchAttributeID,
        value: *mut CUlaunchAttributeValue,
    ) -> CUresult,
>;
pub type PFN_cuGraphKernelNodeGetParams_v10000 = ::core::option::Option<
    unsafe extern "C" fn(
        node: CUgraphNode,
        params: *mut CUDA_KERNEL_NODE_PARAMS_v1,
    ) -> CUresult,
>;
pub type PFN_cuGraphKernelNodeGetParams_v12000 = ::core::option::Option<
    unsafe extern "C" fn(
        node: CUgraphNode,
        params: *mut CUDA_KERNEL_NODE_PARAMS_v2,
    ) -> CUresult,
>;
pub type PFN_cuGraphKernelNodeSetParams_v10000 = ::core::option::Option<
    unsafe extern "C" fn(
        node: CUgraphNode,
        params: *const CUDA_KERNEL_NODE_PARAMS_v1,
    ) -> CUresult,
>;
pub type PFN_cuGraphKernelNodeSetParams_v12000 = ::core::option::Option<
    unsafe extern "C" fn(
        node: CUgraphNode,
        params: *const CUDA_KERNEL_NODE_PARAMS_v2,
    ) -> CUresult,
>;
pub type PFN_cuGraphMemcpyNodeGetParams_v10000 = ::core::option::Option<
    unsafe extern "C" fn(node: CUgraphNode, params: *mut CUDA_MEMCPY3D) -> CUresult,
>;
pub type PFN_cuGraphMemcpyNodeSetParams_v10000 = ::core::option::Option<
    unsafe extern "C" fn(node: CUgraphNode, params: *const CUDA_MEMCPY3D) -> CUresult,
>;
pub type PFN_cuGraphMemsetNodeGetParams_v10000 = ::core::option::Option<
    unsafe extern "C" fn(
        node: CUgraphNode,
        params: *mut CUDA_MEMSET_NODE_PARAMS,
    ) -> CUresult,
>;
pub type PFN_cuGraphMemsetNodeSetParams_v10000 = ::core::option::Option<
    unsafe extern "C" fn(
        node: CUgraphNode,
        params: *const CUDA_MEMSET_NODE_PARAMS,
    ) -> CUresult,
>;
pub type PFN_cuGraphNodeFindInClone_v10000 = ::core::option::Option<
    unsafe extern "C" fn(
        node: *mut CUgraphNode,
        original: CUgraphNode,
        clone: CUgraph,
    ) -> CUresult,
>;
pub type PFN_cuGraphNodeGetContainingGraph_v13010 = ::core::option::Option<
    unsafe extern "C" fn(node: CUgraphNode, graph: *mut CUgraph) -> CUresult,
>;
pub type PFN_cuGraphNodeGetDependencies_v10000 = ::core::option::Option<
    unsafe extern "C" fn(
        node: CUgraphNode,
        nodes: *mut CUgraphNode,
        count: *mut usize,
    ) -> CUresult,
>;
pub type PFN_cuGraphNodeGetDependencies_v12030 = ::core::option::Option<
    unsafe extern "C" fn(
        node: CUgraphNode,
        nodes: *mut CUgraphNode,
        edges: *mut CUgraphEdgeData,
        count: *mut usize,
    ) -> CUresult,
>;
pub type PFN_cuGraphNodeGetDependentNodes_v10000 = ::core::option::Option<
    unsafe extern "C" fn(
        node: CUgraphNode,
        nodes: *mut CUgraphNode,
        count: *mut usize,
    ) -> CUresult,
>;
pub type PFN_cuGraphNodeGetDependentNodes_v12030 = ::core::option::Option<
    unsafe extern "C" fn(
        node: CUgraphNode,
        nodes: *mut CUgraphNode,
        edges: *mut CUgraphEdgeData,
        count: *mut usize,
    ) -> CUresult,
>;
pub type PFN_cuGraphNodeGetEnabled_v11060 = ::core::option::Option<
    unsafe extern "C" fn(
        exec: CUgraphExec,
        node: CUgraphNode,
        enabled: *mut ::core::ffi::c_uint,
    ) -> CUresult,
>;
pub type PFN_cuGraphNodeGetParams_v13020 = ::core::option::Option<
    unsafe extern "C" fn(node: CUgraphNode, params: *mut CUgraphNodeParams) -> CUresult,
>;
pub type PFN_cuGraphNodeGetType_v10000 = ::core::option::Option<
    unsafe extern "C" fn(node: CUgraphNode, type_: *mut CUgraphNodeType) -> CUresult,
>;
pub type PFN_cuGraphNodeSetEnabled_v11060 = ::core::option::Option<
    unsafe extern "C" fn(
        exec: CUgraphExec,
        node: CUgraphNode,
        enabled: ::core::ffi::c_uint,
    ) -> CUresult,
>;
pub type PFN_cuGraphReleaseUserObject_v11030 = ::core::option::Option<
    unsafe extern "C" fn(
        graph: CUgraph,
        object: CUuserObject,
        count: ::core::ffi::c_uint,
    ) -> CUresult,
>;
pub type PFN_cuGraphRemoveDependencies_v10000 = ::core::option::Option<
    unsafe extern "C" fn(
        graph: CUgraph,
        from: *const CUgraphNode,
        to: *const CUgraphNode,
        count: usize,
    ) -> CUresult,
>;
pub type PFN_cuGraphRemoveDependencies_v12030 = ::core::option::Option<
    unsafe extern "C" fn(
        graph: CUgraph,
        from: *const CUgraphNode,
        to: *const CUgraphNode,
        edges: *const CUgraphEdgeData,
        count: usize,
    ) -> CUresult,
>;
pub type PFN_cuGraphRetainUserObject_v11030 = ::core::option::Option<
    unsafe extern "C" fn(
        graph: CUgraph,
        object: CUuserObject,
        count: ::core::ffi::c_uint,
        flags: ::core::ffi::c_uint,
    ) -> CUresult,
>;
pub type PFN_cuGraphUpload_v11010 = ::core::option::Option<
    unsafe extern "C" fn(exec: CUgraphExec, stream: CUstream) -> CUresult,
>;
pub type PFN_cuGraphUpload_v11010_ptsz = PFN_cuGraphUpload_v11010;
pub type PFN_cuGraphicsResourceGetMappedPointer_v3020 = ::core::option::Option<
    unsafe extern "C" fn(
        address: *mut CUdeviceptr,
        bytes: *mut usize,
        resource: CUgraphicsResource,
    ) -> CUresult,
>;
pub type PFN_cuIpcOpenMemHandle_v4010 = ::core::option::Option<
    unsafe extern "C" fn(
        address: *mut CUdeviceptr,
        descriptor: CUipcMemHandle,
        flags: ::core::ffi::c_uint,
    ) -> CUresult,
>;
pub type PFN_cuKernelGetAttribute_v12000 = ::core::option::Option<
    unsafe extern "C" fn(
        value: *mut ::core::ffi::c_int,
        attribute: CUfunction_attribute,
        kernel: CUkernel,
        device: CUdevice,
    ) -> CUresult,
>;
pub type PFN_cuKernelGetFunction_v12000 = ::core::option::Option<
    unsafe extern "C" fn(function: *mut CUfunction, kernel: CUkernel) -> CUresult,
>;
pub type PFN_cuKernelGetLibrary_v12050 = ::core::option::Option<
    unsafe extern "C" fn(owner: *mut CUlibrary, kernel: CUkernel) -> CUresult,
>;
pub type PFN_cuKernelGetName_v12030 = ::core::option::Option<
    unsafe extern "C" fn(
        name: *mut *const ::core::ffi::c_char,
        kernel: CUkernel,
    ) -> CUresult,
>;
pub type PFN_cuKernelGetParamCount_v13020 = ::core::option::Option<
    unsafe extern "C" fn(kernel: CUkernel, count: *mut usize) -> CUresult,
>;
pub type PFN_cuKernelGetParamInfo_v12040 = ::core::option::Option<
    unsafe extern "C" fn(
        kernel: CUkernel,
        index: usize,
        offset: *mut usize,
        size: *mut usize,
    ) -> CUresult,
>;
pub type PFN_cuKernelSetAttribute_v12000 = ::core::option::Option<
    unsafe extern "C" fn(
        attribute: CUfunction_attribute,
        value: ::core::ffi::c_int,
        kernel: CUkernel,
        device: CUdevice,
    ) -> CUresult,
>;
pub type PFN_cuKernelSetCacheConfig_v12000 = ::core::option::Option<
    unsafe extern "C" fn(
        kernel: CUkernel,
        config: CUfunc_cache,
        device: CUdevice,
    ) -> CUresult,
>;
pub type PFN_cuLaunchCooperativeKernel_v9000 = ::core::option::Option<
    unsafe extern "C" fn(
        function: CUfunction,
        grid_x: ::core::ffi::c_uint,
        grid_y: ::core::ffi::c_uint,
        grid_z: ::core::ffi::c_uint,
        block_x: ::core::ffi::c_uint,
        block_y: ::core::ffi::c_uint,
        block_z: ::core::ffi::c_uint,
        shared: ::core::ffi::c_uint,
        stream: CUstream,
        parameters: *mut *mut ::core::ffi::c_void,
    ) -> CUresult,
>;
pub type PFN_cuLaunchCooperativeKernel_v9000_ptsz = PFN_cuLaunchCooperativeKernel_v9000;
pub type PFN_cuLaunchKernel_v4000 = ::core::option::Option<
    unsafe extern "C" fn(
        function: CUfunction,
        grid_x: ::core::ffi::c_uint,
        grid_y: ::core::ffi::c_uint,
        grid_z: ::core::ffi::c_uint,
        block_x: ::core::ffi::c_uint,
        block_y: ::core::ffi::c_uint,
        block_z: ::core::ffi::c_uint,
        shared: ::core::ffi::c_uint,
        stream: CUstream,
        parameters: *mut *mut ::core::ffi::c_void,
        extra: *mut *mut ::core::ffi::c_void,
    ) -> CUresult,
>;
pub type PFN_cuLaunchKernel_v7000_ptsz = PFN_cuLaunchKernel_v4000;
pub type PFN_cuLaunchKernelEx_v11060 = ::core::option::Option<
    unsafe extern "C" fn(
        config: *const CUlaunchConfig,
        function: CUfunction,
        parameters: *mut *mut ::core::ffi::c_void,
        extra: *mut *mut ::core::ffi::c_void,
    ) -> CUresult,
>;
pub type PFN_cuLaunchKernelEx_v11060_ptsz = PFN_cuLaunchKernelEx_v11060;
pub type PFN_cuLibraryEnumerateKernels_v12040 = ::core::option::Option<
    unsafe extern "C" fn(
        kernels: *mut CUkernel,
        count: ::core::ffi::c_uint,
        library: CUlibrary,
    ) -> CUresult,
>;
pub type PFN_cuLibraryGetGlobal_v12000 = ::core::option::Option<
    unsafe extern "C" fn(
        address: *mut CUdeviceptr,
        bytes: *mut usize,
        library: CUlibrary,
        name: *const ::core::ffi::c_char,
    ) -> CUresult,
>;
pub type PFN_cuLibraryGetKernel_v12000 = ::core::option::Option<
    unsafe extern "C" fn(
        kernel: *mut CUkernel,
        library: CUlibrary,
        name: *const ::core::ffi::c_char,
    ) -> CUresult,
>;
pub type PFN_cuLibraryGetKernelCount_v12040 = ::core::option::Option<
    unsafe extern "C" fn(count: *mut ::core::ffi::c_uint, library: CUlibrary) -> CUresult,
>;
pub type PFN_cuLibraryGetManaged_v12000 = ::core::option::Option<
    unsafe extern "C" fn(
        address: *mut CUdeviceptr,
        bytes: *mut usize,
        library: CUlibrary,
        name: *const ::core::ffi::c_char,
    ) -> CUresult,
>;
pub type PFN_cuLibraryGetModule_v12000 = ::core::option::Option<
    unsafe extern "C" fn(module: *mut CUmodule, library: CUlibrary) -> CUresult,
>;
pub type PFN_cuLibraryLoadData_v12000 = ::core::option::Option<
    unsafe extern "C" fn(
        library: *mut CUlibrary,
        image: *const ::core::ffi::c_void,
        options: *mut CUjit_option,
        values: *mut *mut ::core::ffi::c_void,
        count: ::core::ffi::c_uint,
        library_options: *mut CUlibraryOption,
        library_values: *mut *mut ::core::ffi::c_void,
        library_count: ::core::ffi::c_uint,
    ) -> CUresult,
>;
pub type PFN_cuLibraryLoadFromFile_v12000 = ::core::option::Option<
    unsafe extern "C" fn(
        library: *mut CUlibrary,
        path: *const ::core::ffi::c_char,
        options: *mut CUjit_option,
        values: *mut *mut ::core::ffi::c_void,
        count: ::core::ffi::c_uint,
        library_options: *mut CUlibraryOption,
        library_values: *mut *mut ::core::ffi::c_void,
        library_count: ::core::ffi::c_uint,
    ) -> CUresult,
>;
pub type PFN_cuLibraryUnload_v12000 = ::core::option::Option<
    unsafe extern "C" fn(library: CUlibrary) -> CUresult,
>;
pub type PFN_cuMemAddressFree_v10020 = ::core::option::Option<
    unsafe extern "C" fn(address: CUdeviceptr, bytes: usize) -> CUresult,
>;
pub type PFN_cuMemAddressReserve_v10020 = ::core::option::Option<
    unsafe extern "C" fn(
        address: *mut CUdeviceptr,
        bytes: usize,
        alignment: usize,
        wanted: CUdeviceptr,
        flags: ::core::ffi::c_ulonglong,
    ) -> CUresult,
>;
pub type PFN_cuMemAdvise_v8000 = ::core::option::Option<
    unsafe extern "C" fn(
        address: CUdeviceptr,
        bytes: usize,
        advice: CUmem_advise,
        device: CUdevice,
    ) -> CUresult,
>;
pub type PFN_cuMemAdvise_v12020 = ::core::option::Option<
    unsafe extern "C" fn(
        address: CUdeviceptr,
        bytes: usize,
        advice: CUmem_advise,
        location: CUmemLocation,
    ) -> CUresult,
>;
pub type PFN_cuMemAllocAsync_v11020 = ::core::option::Option<
    unsafe extern "C" fn(
        address: *mut CUdeviceptr,
        bytes: usize,
        stream: CUstream,
    ) -> CUresult,
>;
pub type PFN_cuMemAllocAsync_v11020_ptsz = PFN_cuMemAllocAsync_v11020;
pub type PFN_cuMemAllocFromPoolAsync_v11020 = ::core::option::Option<
    unsafe extern "C" fn(
        address: *mut CUdeviceptr,
        bytes: usize,
        pool: CUmemoryPool,
        stream: CUstream,
    ) -> CUresult,
>;
pub type PFN_cuMemAllocFromPoolAsync_v11020_ptsz = PFN_cuMemAllocFromPoolAsync_v11020;
pub type PFN_cuMemAllocHost_v3020 = ::core::option::Option<
    unsafe extern "C" fn(memory: *mut *mut ::core::ffi::c_void, bytes: usize) -> CUresult,
>;
pub type PFN_cuMemAllocManaged_v6000 = ::core::option::Option<
    unsafe extern "C" fn(
        address: *mut CUdeviceptr,
        bytes: usize,
        flags: ::core::ffi::c_uint,
    ) -> CUresult,
>;
pub type PFN_cuMemAllocPitch_v3020 = ::core::option::Option<
    unsafe extern "C" fn(
        address: *mut CUdeviceptr,
        pitch: *mut usize,
        width: usize,
        height: usize,
        element: ::core::ffi::c_uint,
    ) -> CUresult,
>;
pub type PFN_cuMemCreate_v10020 = ::core::option::Option<
    unsafe extern "C" fn(
        handle: *mut CUmemGenericAllocationHandle,
        bytes: usize,
        props: *const CUmemAllocationProp,
        flags: ::core::ffi::c_ulonglong,
    ) -> CUresult,
>;
pub type PFN_cuMemDiscardAndPrefetchBatchAsync_v13000 = ::core::option::Option<
    unsafe extern "C" fn(
        addresses: *mut CUdeviceptr,
        sizes: *mut usize,
        count: usize,
        places: *mut CUmemLocation,
        first: *mut usize,
        places_count: usize,
        flags: ::core::ffi::c_ulonglong,
        stream: CUstream,
    ) -> CUresult,
>;
pub type PFN_cuMemDiscardAndPrefetchBatchAsync_v13000_ptsz = PFN_cuMemDiscardAndPrefetchBatchAsync_v13000;
pub type PFN_cuMemDiscardBatchAsync_v13000 = ::core::option::Option<
    unsafe extern "C" fn(
        addresses: *mut CUdeviceptr,
        sizes: *mut usize,
        count: usize,
        flags: ::core::ffi::c_ulonglong,
        stream: CUstream,
    ) -> CUresult,
>;
pub type PFN_cuMemDiscardBatchAsync_v13000_ptsz = PFN_cuMemDiscardBatchAsync_v13000;
pub type PFN_cuMemFreeAsync_v11020 = ::core::option::Option<
    unsafe extern "C" fn(address: CUdeviceptr, stream: CUstream) -> CUresult,
>;
pub type PFN_cuMemFreeAsync_v11020_ptsz = PFN_cuMemFreeAsync_v11020;
pub type PFN_cuMemGetAccess_v10020 = ::core::option::Option<
    unsafe extern "C" fn(
        flags: *mut ::core::ffi::c_ulonglong,
        location: *const CUmemLocation,
        address: CUdeviceptr,
    ) -> CUresult,
>;
pub type PFN_cuMemGetAddressRange_v3020 = ::core::option::Option<
    unsafe extern "C" fn(
        base: *mut CUdeviceptr,
        size: *mut usize,
        address: CUdeviceptr,
    ) -> CUresult,
>;
pub type PFN_cuMemGetAllocationGranularity_v10020 = ::core::option::Option<
    unsafe extern "C" fn(
        granularity: *mut usize,
        properties: *const CUmemAllocationProp,
        option: CUmemAllocationGranularity_flags,
    ) -> CUresult,
>;
pub type PFN_cuMemGetAllocationPropertiesFromHandle_v10020 = ::core::option::Option<
    unsafe extern "C" fn(
        props: *mut CUmemAllocationProp,
        handle: CUmemGenericAllocationHandle,
    ) -> CUresult,
>;
pub type PFN_cuMemGetDefaultMemPool_v13000 = ::core::option::Option<
    unsafe extern "C" fn(
        pool: *mut CUmemoryPool,
        location: *mut CUmemLocation,
        type_: CUmemAllocationType,
    ) -> CUresult,
>;
pub type PFN_cuMemGetMemPool_v13000 = ::core::option::Option<
    unsafe extern "C" fn(
        pool: *mut CUmemoryPool,
        location: *mut CUmemLocation,
        type_: CUmemAllocationType,
    ) -> CUresult,
>;
pub type PFN_cuMemHostGetFlags_v2030 = ::core::option::Option<
    unsafe extern "C" fn(
        flags: *mut ::core::ffi::c_uint,
        memory: *mut ::core::ffi::c_void,
    ) -> CUresult,
>;
pub type PFN_cuMemHostRegister_v4000 = ::core::option::Option<
    unsafe extern "C" fn(
        memory: *mut ::core::ffi::c_void,
        bytes: usize,
        flags: ::core::ffi::c_uint,
    ) -> CUresult,
>;
pub type PFN_cuMemHostUnregister_v4000 = ::core::option::Option<
    unsafe extern "C" fn(memory: *mut ::core::ffi::c_void) -> CUresult,
>;
pub type PFN_cuMemMap_v10020 = ::core::option::Option<
    unsafe extern "C" fn(
        address: CUdeviceptr,
        bytes: usize,
        offset: usize,
        memory: CUmemGenericAllocationHandle,
        flags: ::core::ffi::c_ulonglong,
    ) -> CUresult,
>;
pub type PFN_cuMemPoolCreate_v11020 = ::core::option::Option<
    unsafe extern "C" fn(
        pool: *mut CUmemoryPool,
        props: *const CUmemPoolProps,
    ) -> CUresult,
>;
pub type PFN_cuMemPoolDestroy_v11020 = ::core::option::Option<
    unsafe extern "C" fn(pool: CUmemoryPool) -> CUresult,
>;
pub type PFN_cuMemPoolExportPointer_v11020 = ::core::option::Option<
    unsafe extern "C" fn(
        descriptor: *mut CUmemPoolPtrExportData,
        address: CUdeviceptr,
    ) -> CUresult,
>;
pub type PFN_cuMemPoolExportToShareableHandle_v11020 = ::core::option::Option<
    unsafe extern "C" fn(
        handle: *mut ::core::ffi::c_void,
        pool: CUmemoryPool,
        handle_type: CUmemAllocationHandleType,
        flags: ::core::ffi::c_ulonglong,
    ) -> CUresult,
>;
pub type PFN_cuMemPoolGetAccess_v11020 = ::core::option::Option<
    unsafe extern "C" fn(
        flags: *mut CUmemAccess_flags,
        pool: CUmemoryPool,
        location: *mut CUmemLocation,
    ) -> CUresult,
>;
pub type PFN_cuMemPoolGetAttribute_v11020 = ::core::option::Option<
    unsafe extern "C" fn(
        pool: CUmemoryPool,
        attribute: CUmemPool_attribute,
        value: *mut ::core::ffi::c_void,
    ) -> CUresult,
>;
pub type PFN_cuMemPoolImportFromShareableHandle_v11020 = ::core::option::Option<
    unsafe extern "C" fn(
        pool: *mut CUmemoryPool,
        handle: *mut ::core::ffi::c_void,
        handle_type: CUmemAllocationHandleType,
        flags: ::core::ffi::c_ulonglong,
    ) -> CUresult,
>;
pub type PFN_cuMemPoolImportPointer_v11020 = ::core::option::Option<
    unsafe extern "C" fn(
        address: *mut CUdeviceptr,
        pool: CUmemoryPool,
        descriptor: *mut CUmemPoolPtrExportData,
    ) -> CUresult,
>;
pub type PFN_cuMemPoolSetAccess_v11020 = ::core::option::Option<
    unsafe extern "C" fn(
        pool: CUmemoryPool,
        descriptions: *const CUmemAccessDesc,
        count: usize,
    ) -> CUresult,
>;
pub type PFN_cuMemPoolSetAttribute_v11020 = ::core::option::Option<
    unsafe extern "C" fn(
        pool: CUmemoryPool,
        attribute: CUmemPool_attribute,
        value: *mut ::core::ffi::c_void,
    ) -> CUresult,
>;
pub type PFN_cuMemPoolTrimTo_v11020 = ::core::option::Option<
    unsafe extern "C" fn(pool: CUmemoryPool, keep: usize) -> CUresult,
>;
pub type PFN_cuMemPrefetchAsync_v8000 = ::core::option::Option<
    unsafe extern "C" fn(
        address: CUdeviceptr,
        bytes: usize,
        device: CUdevice,
        stream: CUstream,
    ) -> CUresult,
>;
pub type PFN_cuMemPrefetchAsync_v8000_ptsz = PFN_cuMemPrefetchAsync_v8000;
pub type PFN_cuMemPrefetchAsync_v12020 = ::core::option::Option<
    unsafe extern "C" fn(
        address: CUdeviceptr,
        bytes: usize,
        location: CUmemLocation,
        flags: ::core::ffi::c_uint,
        stream: CUstream,
    ) -> CUresult,
>;
pub type PFN_cuMemPrefetchAsync_v12020_ptsz = PFN_cuMemPrefetchAsync_v12020;
pub type PFN_cuMemPrefetchBatchAsync_v13000 = ::core::option::Option<
    unsafe extern "C" fn(
        addresses: *mut CUdeviceptr,
        sizes: *mut usize,
        count: usize,
        places: *mut CUmemLocation,
        first: *mut usize,
        places_count: usize,
        flags: ::core::ffi::c_ulonglong,
        stream: CUstream,
    ) -> CUresult,
>;
pub type PFN_cuMemPrefetchBatchAsync_v13000_ptsz = PFN_cuMemPrefetchBatchAsync_v13000;
pub type PFN_cuMemRelease_v10020 = ::core::option::Option<
    unsafe extern "C" fn(handle: CUmemGenericAllocationHandle) -> CUresult,
>;
pub type PFN_cuMemRetainAllocationHandle_v11000 = ::core::option::Option<
    unsafe extern "C" fn(
        handle: *mut CUmemGenericAllocationHandle,
        address: *mut ::core::ffi::c_void,
    ) -> CUresult,
>;
pub type PFN_cuMemSetAccess_v10020 = ::core::option::Option<
    unsafe extern "C" fn(
        address: CUdeviceptr,
        bytes: usize,
        access: *const CUmemAccessDesc,
        count: usize,
    ) -> CUresult,
>;
pub type PFN_cuMemSetMemPool_v13000 = ::core::option::Option<
    unsafe extern "C" fn(
        location: *mut CUmemLocation,
        type_: CUmemAllocationType,
        pool: CUmemoryPool,
    ) -> CUresult,
>;
pub type PFN_cuMemUnmap_v10020 = ::core::option::Option<
    unsafe extern "C" fn(address: CUdeviceptr, bytes: usize) -> CUresult,
>;
pub type PFN_cuMemcpy_v4000 = ::core::option::Option<
    unsafe extern "C" fn(to: CUdeviceptr, from: CUdeviceptr, bytes: usize) -> CUresult,
>;
pub type PFN_cuMemcpy_v7000_ptds = PFN_cuMemcpy_v4000;
pub type PFN_cuMemcpy2D_v3020 = ::core::option::Option<
    unsafe extern "C" fn(copy: *const CUDA_MEMCPY2D) -> CUresult,
>;
pub type PFN_cuMemcpy2D_v7000_ptds = PFN_cuMemcpy2D_v3020;
pub type PFN_cuMemcpy2DAsync_v3020 = ::core::option::Option<
    unsafe extern "C" fn(copy: *const CUDA_MEMCPY2D, stream: CUstream) -> CUresult,
>;
pub type PFN_cuMemcpy2DAsync_v7000_ptsz = PFN_cuMemcpy2DAsync_v3020;
pub type PFN_cuMemcpy2DUnaligned_v3020 = ::core::option::Option<
    unsafe extern "C" fn(copy: *const CUDA_MEMCPY2D) -> CUresult,
>;
pub type PFN_cuMemcpy2DUnaligned_v7000_ptds = PFN_cuMemcpy2DUnaligned_v3020;
pub type PFN_cuMemcpy3D_v3020 = ::core::option::Option<
    unsafe extern "C" fn(copy: *const CUDA_MEMCPY3D) -> CUresult,
>;
pub type PFN_cuMemcpy3D_v7000_ptds = PFN_cuMemcpy3D_v3020;
pub type PFN_cuMemcpy3DAsync_v3020 = ::core::option::Option<
    unsafe extern "C" fn(copy: *const CUDA_MEMCPY3D, stream: CUstream) -> CUresult,
>;
pub type PFN_cuMemcpy3DAsync_v7000_ptsz = PFN_cuMemcpy3DAsync_v3020;
pub type PFN_cuMemcpy3DBatchAsync_v12080 = ::core::option::Option<
    unsafe extern "C" fn(
        count: usize,
        copies: *mut CUDA_MEMCPY3D_BATCH_OP,
        failed: *mut usize,
        flags: ::core::ffi::c_ulonglong,
        stream: CUstream,
    ) -> CUresult,
>;
pub type PFN_cuMemcpy3DBatchAsync_v12080_ptsz = PFN_cuMemcpy3DBatchAsync_v12080;
pub type PFN_cuMemcpy3DBatchAsync_v13000 = ::core::option::Option<
    unsafe extern "C" fn(
        count: usize,
        copies: *mut CUDA_MEMCPY3D_BATCH_OP,
        flags: ::core::ffi::c_ulonglong,
        stream: CUstream,
    ) -> CUresult,
>;
pub type PFN_cuMemcpy3DBatchAsync_v13000_ptsz = PFN_cuMemcpy3DBatchAsync_v13000;
pub type PFN_cuMemcpy3DPeer_v4000 = ::core::option::Option<
    unsafe extern "C" fn(copy: *const CUDA_MEMCPY3D_PEER) -> CUresult,
>;
pub type PFN_cuMemcpy3DPeer_v7000_ptds = PFN_cuMemcpy3DPeer_v4000;
pub type PFN_cuMemcpy3DPeerAsync_v4000 = ::core::option::Option<
    unsafe extern "C" fn(copy: *const CUDA_MEMCPY3D_PEER, stream: CUstream) -> CUresult,
>;
pub type PFN_cuMemcpy3DPeerAsync_v7000_ptsz = PFN_cuMemcpy3DPeerAsync_v4000;
pub type PFN_cuMemcpy3DWithAttributesAsync_v13020 = ::core::option::Option<
    unsafe extern "C" fn(
        copy: *mut CUDA_MEMCPY3D_BATCH_OP,
        flags: ::core::ffi::c_ulonglong,
        stream: CUstream,
    ) -> CUresult,
>;
pub type PFN_cuMemcpy3DWithAttributesAsync_v13020_ptsz = PFN_cuMemcpy3DWithAttributesAsync_v13020;
pub type PFN_cuMemcpyAsync_v4000 = ::core::option::Option<
    unsafe extern "C" fn(
        to: CUdeviceptr,
        from: CUdeviceptr,
        bytes: usize,
        stream: CUstream,
    ) -> CUresult,
>;
pub type PFN_cuMemcpyAsync_v7000_ptsz = PFN_cuMemcpyAsync_v4000;
pub type PFN_cuMemcpyAtoA_v3020 = ::core::option::Option<
    unsafe extern "C" fn(
        to: CUarray,
        to_at: usize,
        from: CUarray,
        from_at: usize,
        bytes: usize,
    ) -> CUresult,
>;
pub type PFN_cuMemcpyAtoA_v7000_ptds = PFN_cuMemcpyAtoA_v3020;
pub type PFN_cuMemcpyAtoD_v3020 = ::core::option::Option<
    unsafe extern "C" fn(
        to: CUdeviceptr,
        from: CUarray,
        at: usize,
        bytes: usize,
    ) -> CUresult,
>;
pub type PFN_cuMemcpyAtoD_v7000_ptds = PFN_cuMemcpyAtoD_v3020;
pub type PFN_cuMemcpyAtoH_v3020 = ::core::option::Option<
    unsafe extern "C" fn(
        to: *mut ::core::ffi::c_void,
        from: CUarray,
        at: usize,
        bytes: usize,
    ) -> CUresult,
>;
pub type PFN_cuMemcpyAtoH_v7000_ptds = PFN_cuMemcpyAtoH_v3020;
pub type PFN_cuMemcpyAtoHAsync_v3020 = ::core::option::Option<
    unsafe extern "C" fn(
        to: *mut ::core::ffi::c_void,
        from: CUarray,
        at: usize,
        bytes: usize,
        stream: CUstream,
    ) -> CUresult,
>;
pub type PFN_cuMemcpyAtoHAsync_v7000_ptsz = PFN_cuMemcpyAtoHAsync_v3020;
pub type PFN_cuMemcpyBatchAsync_v12080 = ::core::option::Option<
    unsafe extern "C" fn(
        to: *mut CUdeviceptr,
        from: *mut CUdeviceptr,
        bytes: *mut usize,
        count: usize,
        attributes: *mut CUmemcpyAttributes,
        first: *mut usize,
        attributes_count: usize,
        failed: *mut usize,
        stream: CUstream,
    ) -> CUresult,
>;
pub type PFN_cuMemcpyBatchAsync_v12080_ptsz = PFN_cuMemcpyBatchAsync_v12080;
pub type PFN_cuMemcpyBatchAsync_v13000 = ::core::option::Option<
    unsafe extern "C" fn(
        to: *mut CUdeviceptr,
        from: *mut CUdeviceptr,
        bytes: *mut usize,
        count: usize,
        attributes: *mut CUmemcpyAttributes,
        first: *mut usize,
        attributes_count: usize,
        stream: CUstream,
    ) -> CUresult,
>;
pub type PFN_cuMemcpyBatchAsync_v13000_ptsz = PFN_cuMemcpyBatchAsync_v13000;
pub type PFN_cuMemcpyDtoA_v3020 = ::core::option::Option<
    unsafe extern "C" fn(
        to: CUarray,
        at: usize,
        from: CUdeviceptr,
        bytes: usize,
    ) -> CUresult,
>;
pub type PFN_cuMemcpyDtoA_v7000_ptds = PFN_cuMemcpyDtoA_v3020;
pub type PFN_cuMemcpyDtoD_v3020 = ::core::option::Option<
    unsafe extern "C" fn(to: CUdeviceptr, from: CUdeviceptr, bytes: usize) -> CUresult,
>;
pub type PFN_cuMemcpyDtoD_v7000_ptds = PFN_cuMemcpyDtoD_v3020;
pub type PFN_cuMemcpyDtoH_v3020 = ::core::option::Option<
    unsafe extern "C" fn(
        to: *mut ::core::ffi::c_void,
        from: CUdeviceptr,
        bytes: usize,
    ) -> CUresult,
>;
pub type PFN_cuMemcpyDtoH_v7000_ptds = PFN_cuMemcpyDtoH_v3020;
pub type PFN_cuMemcpyHtoA_v3020 = ::core::option::Option<
    unsafe extern "C" fn(
        to: CUarray,
        at: usize,
        from: *const ::core::ffi::c_void,
        bytes: usize,
    ) -> CUresult,
>;
pub type PFN_cuMemcpyHtoA_v7000_ptds = PFN_cuMemcpyHtoA_v3020;
pub type PFN_cuMemcpyHtoAAsync_v3020 = ::core::option::Option<
    unsafe extern "C" fn(
        to: CUarray,
        at: usize,
        from: *const ::core::ffi::c_void,
        bytes: usize,
        stream: CUstream,
    ) -> CUresult,
>;
pub type PFN_cuMemcpyHtoAAsync_v7000_ptsz = PFN_cuMemcpyHtoAAsync_v3020;
pub type PFN_cuMemcpyHtoD_v3020 = ::core::option::Option<
    unsafe extern "C" fn(
        to: CUdeviceptr,
        from: *const ::core::ffi::c_void,
        bytes: usize,
    ) -> CUresult,
>;
pub type PFN_cuMemcpyHtoD_v7000_ptds = PFN_cuMemcpyHtoD_v3020;
pub type PFN_cuMemcpyPeer_v4000 = ::core::option::Option<
    unsafe extern "C" fn(
        to: CUdeviceptr,
        to_context: CUcontext,
        from: CUdeviceptr,
        from_context: CUcontext,
        bytes: usize,
    ) -> CUresult,
>;
pub type PFN_cuMemcpyPeer_v7000_ptds = PFN_cuMemcpyPeer_v4000;
pub type PFN_cuMemcpyPeerAsync_v4000 = ::core::option::Option<
    unsafe extern "C" fn(
        to: CUdeviceptr,
        to_context: CUcontext,
        from: CUdeviceptr,
        from_context: CUcontext,
        bytes: usize,
        stream: CUstream,
    ) -> CUresult,
>;
pub type PFN_cuMemcpyPeerAsync_v7000_ptsz = PFN_cuMemcpyPeerAsync_v4000;
pub type PFN_cuMemcpyWithAttributesAsync_v13020 = ::core::option::Option<
    unsafe extern "C" fn(
        to: CUdeviceptr,
        from: CUdeviceptr,
        bytes: usize,
        attributes: *mut CUmemcpyAttributes,
        stream: CUstream,
    ) -> CUresult,
>;
pub type PFN_cuMemcpyWithAttributesAsync_v13020_ptsz = PFN_cuMemcpyWithAttributesAsync_v13020;
pub type PFN_cuMemsetD16_v3020 = ::core::option::Option<
    unsafe extern "C" fn(
        to: CUdeviceptr,
        value: ::core::ffi::c_ushort,
        count: usize,
    ) -> CUresult,
>;
pub type PFN_cuMemsetD16_v7000_ptds = PFN_cuMemsetD16_v3020;
pub type PFN_cuMemsetD16Async_v3020 = ::core::option::Option<
    unsafe extern "C" fn(
        to: CUdeviceptr,
        value: ::core::ffi::c_ushort,
        count: usize,
        stream: CUstream,
    ) -> CUresult,
>;
pub type PFN_cuMemsetD16Async_v7000_ptsz = PFN_cuMemsetD16Async_v3020;
pub type PFN_cuMemsetD2D16_v3020 = ::core::option::Option<
    unsafe extern "C" fn(
        to: CUdeviceptr,
        pitch: usize,
        value: ::core::ffi::c_ushort,
        width: usize,
        height: usize,
    ) -> CUresult,
>;
pub type PFN_cuMemsetD2D16_v7000_ptds = PFN_cuMemsetD2D16_v3020;
pub type PFN_cuMemsetD2D16Async_v3020 = ::core::option::Option<
    unsafe extern "C" fn(
        to: CUdeviceptr,
        pitch: usize,
        value: ::core::ffi::c_ushort,
        width: usize,
        height: usize,
        stream: CUstream,
    ) -> CUresult,
>;
pub type PFN_cuMemsetD2D16Async_v7000_ptsz = PFN_cuMemsetD2D16Async_v3020;
pub type PFN_cuMemsetD2D32_v3020 = ::core::option::Option<
    unsafe extern "C" fn(
        to: CUdeviceptr,
        pitch: usize,
        value: ::core::ffi::c_uint,
        width: usize,
        height: usize,
    ) -> CUresult,
>;
pub type PFN_cuMemsetD2D32_v7000_ptds = PFN_cuMemsetD2D32_v3020;
pub type PFN_cuMemsetD2D32Async_v3020 = ::core::option::Option<
    unsafe extern "C" fn(
        to: CUdeviceptr,
        pitch: usize,
        value: ::core::ffi::c_uint,
        width: usize,
        height: usize,
        stream: CUstream,
    ) -> CUresult,
>;
pub type PFN_cuMemsetD2D32Async_v7000_ptsz = PFN_cuMemsetD2D32Async_v3020;
pub type PFN_cuMemsetD2D8_v3020 = ::core::option::Option<
    unsafe extern "C" fn(
        to: CUdeviceptr,
        pitch: usize,
        value: ::core::ffi::c_uchar,
        width: usize,
        height: usize,
    ) -> CUresult,
>;
pub type PFN_cuMemsetD2D8_v7000_ptds = PFN_cuMemsetD2D8_v3020;
pub type PFN_cuMemsetD2D8Async_v3020 = ::core::option::Option<
    unsafe extern "C" fn(
        to: CUdeviceptr,
        pitch: usize,
        value: ::core::ffi::c_uchar,
        width: usize,
        height: usize,
        stream: CUstream,
    ) -> CUresult,
>;
pub type PFN_cuMemsetD2D8Async_v7000_ptsz = PFN_cuMemsetD2D8Async_v3020;
pub type PFN_cuMemsetD32_v3020 = ::core::option::Option<
    unsafe extern "C" fn(
        to: CUdeviceptr,
        value: ::core::ffi::c_uint,
        count: usize,
    ) -> CUresult,
>;
pub type PFN_cuMemsetD32_v7000_ptds = PFN_cuMemsetD32_v3020;
pub type PFN_cuMemsetD8_v3020 = ::core::option::Option<
    unsafe extern "C" fn(
        to: CUdeviceptr,
        value: ::core::ffi::c_uchar,
        count: usize,
    ) -> CUresult,
>;
pub type PFN_cuMemsetD8_v7000_ptds = PFN_cuMemsetD8_v3020;
pub type PFN_cuModuleEnumerateFunctions_v12040 = ::core::option::Option<
    unsafe extern "C" fn(
        functions: *mut CUfunction,
        count: ::core::ffi::c_uint,
        module: CUmodule,
    ) -> CUresult,
>;
pub type PFN_cuModuleGetFunction_v2000 = ::core::option::Option<
    unsafe extern "C" fn(
        function: *mut CUfunction,
        module: CUmodule,
        name: *const ::core::ffi::c_char,
    ) -> CUresult,
>;
pub type PFN_cuModuleGetFunctionCount_v12040 = ::core::option::Option<
    unsafe extern "C" fn(count: *mut ::core::ffi::c_uint, module: CUmodule) -> CUresult,
>;
pub type PFN_cuModuleGetGlobal_v3020 = ::core::option::Option<
    unsafe extern "C" fn(
        address: *mut CUdeviceptr,
        bytes: *mut usize,
        module: CUmodule,
        name: *const ::core::ffi::c_char,
    ) -> CUresult,
>;
pub type PFN_cuModuleGetLoadingMode_v11070 = ::core::option::Option<
    unsafe extern "C" fn(mode: *mut CUmoduleLoadingMode) -> CUresult,
>;
pub type PFN_cuModuleLoad_v2000 = ::core::option::Option<
    unsafe extern "C" fn(
        module: *mut CUmodule,
        path: *const ::core::ffi::c_char,
    ) -> CUresult,
>;
pub type PFN_cuModuleLoadData_v2000 = ::core::option::Option<
    unsafe extern "C" fn(
        module: *mut CUmodule,
        image: *const ::core::ffi::c_void,
    ) -> CUresult,
>;
pub type PFN_cuModuleLoadDataEx_v2010 = ::core::option::Option<
    unsafe extern "C" fn(
        module: *mut CUmodule,
        image: *const ::core::ffi::c_void,
        count: ::core::ffi::c_uint,
        options: *mut CUjit_option,
        values: *mut *mut ::core::ffi::c_void,
    ) -> CUresult,
>;
pub type PFN_cuModuleLoadFatBinary_v2000 = ::core::option::Option<
    unsafe extern "C" fn(
        module: *mut CUmodule,
        image: *const ::core::ffi::c_void,
    ) -> CUresult,
>;
pub type PFN_cuModuleUnload_v2000 = ::core::option::Option<
    unsafe extern "C" fn(module: CUmodule) -> CUresult,
>;
pub type PFN_cuOccupancyMaxActiveBlocksPerMultiprocessor_v6050 = ::core::option::Option<
    unsafe extern "C" fn(
        blocks: *mut ::core::ffi::c_int,
        function: CUfunction,
        threads: ::core::ffi::c_int,
        shared: usize,
    ) -> CUresult,
>;
pub type PFN_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags_v7000 = ::core::option::Option<
    unsafe extern "C" fn(
        blocks: *mut ::core::ffi::c_int,
        function: CUfunction,
        threads: ::core::ffi::c_int,
        shared: usize,
        flags: ::core::ffi::c_uint,
    ) -> CUresult,
>;
pub type PFN_cuOccupancyMaxPotentialBlockSize_v6050 = ::core::option::Option<
    unsafe extern "C" fn(
        grid: *mut ::core::ffi::c_int,
        block: *mut ::core::ffi::c_int,
        function: CUfunction,
        shared_of: CUoccupancyB2DSize,
        shared: usize,
        limit: ::core::ffi::c_int,
    ) -> CUresult,
>;
pub type PFN_cuOccupancyMaxPotentialBlockSizeWithFlags_v7000 = ::core::option::Option<
    unsafe extern "C" fn(
        grid: *mut ::core::ffi::c_int,
        block: *mut ::core::ffi::c_int,
        function: CUfunction,
        shared_of: CUoccupancyB2DSize,
        shared: usize,
        limit: ::core::ffi::c_int,
        flags: ::core::ffi::c_uint,
    ) -> CUresult,
>;
pub type PFN_cuPointerGetAttribute_v4000 = ::core::option::Option<
    unsafe extern "C" fn(
        value: *mut ::core::ffi::c_void,
        attribute: CUpointer_attribute,
        address: CUdeviceptr,
    ) -> CUresult,
>;
pub type PFN_cuPointerGetAttributes_v7000 = ::core::option::Option<
    unsafe extern "C" fn(
        count: ::core::ffi::c_uint,
        attributes: *mut CUpointer_attribute,
        places: *mut *mut ::core::ffi::c_void,
        address: CUdeviceptr,
    ) -> CUresult,
>;
pub type PFN_cuStreamBeginCapture_v10000 = ::core::option::Option<
    unsafe extern "C" fn(stream: CUstream) -> CUresult,
>;
pub type PFN_cuStreamBeginCapture_v10000_ptsz = PFN_cuStreamBeginCapture_v10000;
pub type PFN_cuStreamDestroy_v2000 = ::core::option::Option<
    unsafe extern "C" fn(stream: CUstream) -> CUresult,
>;
pub type PFN_cuUserObjectCreate_v11030 = ::core::option::Option<
    unsafe extern "C" fn(
        object: *mut CUuserObject,
        data: *mut ::core::ffi::c_void,
        destroy: CUhostFn,
        count: ::core::ffi::c_uint,
        flags: ::core::ffi::c_uint,
    ) -> CUresult,
>;
pub type PFN_cuUserObjectRelease_v11030 = ::core::option::Option<
    unsafe extern "C" fn(object: CUuserObject, count: ::core::ffi::c_uint) -> CUresult,
>;
pub type PFN_cuUserObjectRetain_v11030 = ::core::option::Option<
    unsafe extern "C" fn(object: CUuserObject, count: ::core::ffi::c_uint) -> CUresult,
>;
macro_rules! for_each_other_function {
    ($callback:ident) => { $callback! {
        cuArray3DGetDescriptor_v2 PFN_cuArray3DGetDescriptor_v3020;
        cuCtxAttach PFN_cuCtxAttach_v2000;
        cuCtxCreate_v3 PFN_cuCtxCreate_v11040;
        cuCtxDestroy PFN_cuCtxDestroy_v2000;
        cuCtxDetach PFN_cuCtxDetach_v2000;
        cuCtxDisablePeerAccess PFN_cuCtxDisablePeerAccess_v4000;
        cuCtxEnablePeerAccess PFN_cuCtxEnablePeerAccess_v4000;
        cuCtxGetApiVersion PFN_cuCtxGetApiVersion_v3020;
        cuCtxGetCacheConfig PFN_cuCtxGetCacheConfig_v3020;
        cuCtxGetLimit PFN_cuCtxGetLimit_v3010;
        cuCtxGetSharedMemConfig PFN_cuCtxGetSharedMemConfig_v4020;
        cuCtxPopCurrent PFN_cuCtxPopCurrent_v2000;
        cuCtxPushCurrent PFN_cuCtxPushCurrent_v2000;
        cuCtxResetPersistingL2Cache PFN_cuCtxResetPersistingL2Cache_v11000;
        cuCtxSetCacheConfig PFN_cuCtxSetCacheConfig_v3020;
        cuCtxSetFlags PFN_cuCtxSetFlags_v12010;
        cuCtxSetLimit PFN_cuCtxSetLimit_v3010;
        cuCtxSetSharedMemConfig PFN_cuCtxSetSharedMemConfig_v4020;
        cuDeviceCanAccessPeer PFN_cuDeviceCanAccessPeer_v4000;
        cuDeviceComputeCapability PFN_cuDeviceComputeCapability_v2000;
        cuDeviceGetByPCIBusId PFN_cuDeviceGetByPCIBusId_v4010;
        cuDeviceGetDefaultMemPool PFN_cuDeviceGetDefaultMemPool_v11020;
        cuDeviceGetMemPool PFN_cuDeviceGetMemPool_v11020;
        cuDeviceGetP2PAttribute PFN_cuDeviceGetP2PAttribute_v8000;
        cuDeviceGetPCIBusId PFN_cuDeviceGetPCIBusId_v4010;
        cuDevicePrimaryCtxRelease PFN_cuDevicePrimaryCtxRelease_v7000;
        cuDevicePrimaryCtxReset PFN_cuDevicePrimaryCtxReset_v7000;
        cuDevicePrimaryCtxReset_v2 PFN_cuDevicePrimaryCtxReset_v11000;
        cuDevicePrimaryCtxSetFlags PFN_cuDevicePrimaryCtxSetFlags_v7000;
        cuDevicePrimaryCtxSetFlags_v2 PFN_cuDevicePrimaryCtxSetFlags_v11000;
        cuDeviceSetMemPool PFN_cuDeviceSetMemPool_v11020;
        cuEventDestroy PFN_cuEventDestroy_v2000;
        cuFuncGetAttribute PFN_cuFuncGetAttribute_v2020;
        cuFuncGetModule PFN_cuFuncGetModule_v11000;
        cuFuncGetName PFN_cuFuncGetName_v12030;
        cuFuncGetParamCount PFN_cuFuncGetParamCount_v13020;
        cuFuncGetParamInfo PFN_cuFuncGetParamInfo_v12040;
        cuFuncIsLoaded PFN_cuFuncIsLoaded_v12040;
        cuFuncLoad PFN_cuFuncLoad_v12040;
        cuFuncSetAttribute PFN_cuFuncSetAttribute_v9000;
        cuFuncSetCacheConfig PFN_cuFuncSetCacheConfig_v3000;
        cuFuncSetSharedMemConfig PFN_cuFuncSetSharedMemConfig_v4020;
        cuGetExportTable PFN_cuGetExportTable_v3000;
        cuGraphAddChildGraphNode PFN_cuGraphAddChildGraphNode_v10000;
        cuGraphAddDependencies PFN_cuGraphAddDependencies_v10000;
        cuGraphAddDependencies_v2 PFN_cuGraphAddDependencies_v12030;
        cuGraphAddEmptyNode PFN_cuGraphAddEmptyNode_v10000;
        cuGraphAddKernelNode PFN_cuGraphAddKernelNode_v10000;
        cuGraphAddKernelNode_v2 PFN_cuGraphAddKernelNode_v12000;
        cuGraphAddMemcpyNode PFN_cuGraphAddMemcpyNode_v10000;
        cuGraphAddMemsetNode PFN_cuGraphAddMemsetNode_v10000;
        cuGraphChildGraphNodeGetGraph PFN_cuGraphChildGraphNodeGetGraph_v10000;
        cuGraphClone PFN_cuGraphClone_v10000;
        cuGraphDestroyNode PFN_cuGraphDestroyNode_v10000;
        cuGraphExecGetFlags PFN_cuGraphExecGetFlags_v12000;
        cuGraphExecKernelNodeSetParams PFN_cuGraphExecKernelNodeSetParams_v10010;
        cuGraphExecKernelNodeSetParams_v2 PFN_cuGraphExecKernelNodeSetParams_v12000;
        cuGraphExecMemcpyNodeSetParams PFN_cuGraphExecMemcpyNodeSetParams_v10020;
        cuGraphExecMemsetNodeSetParams PFN_cuGraphExecMemsetNodeSetParams_v10020;
        cuGraphExecUpdate PFN_cuGraphExecUpdate_v10020;
        cuGraphExecUpdate_v2 PFN_cuGraphExecUpdate_v12000;
        cuGraphGetEdges PFN_cuGraphGetEdges_v10000;
        cuGraphGetEdges_v2 PFN_cuGraphGetEdges_v12030;
        cuGraphGetNodes PFN_cuGraphGetNodes_v10000;
        cuGraphGetRootNodes PFN_cuGraphGetRootNodes_v10000;
        cuGraphInstantiate PFN_cuGraphInstantiate_v10000;
        cuGraphInstantiateWithParams PFN_cuGraphInstantiateWithParams_v12000 PFN_cuGraphInstantiateWithParams_v12000_ptsz;
        cuGraphKernelNodeGetAttribute PFN_cuGraphKernelNodeGetAttribute_v11000;
        cuGraphKernelNodeGetParams PFN_cuGraphKernelNodeGetParams_v10000;
        cuGraphKernelNodeGetParams_v2 PFN_cuGraphKernelNodeGetParams_v12000;
        cuGraphKernelNodeSetParams PFN_cuGraphKernelNodeSetParams_v10000;
        cuGraphKernelNodeSetParams_v2 PFN_cuGraphKernelNodeSetParams_v12000;
        cuGraphMemcpyNodeGetParams PFN_cuGraphMemcpyNodeGetParams_v10000;
        cuGraphMemcpyNodeSetParams PFN_cuGraphMemcpyNodeSetParams_v10000;
        cuGraphMemsetNodeGetParams PFN_cuGraphMemsetNodeGetParams_v10000;
        cuGraphMemsetNodeSetParams PFN_cuGraphMemsetNodeSetParams_v10000;
        cuGraphNodeFindInClone PFN_cuGraphNodeFindInClone_v10000;
        cuGraphNodeGetContainingGraph PFN_cuGraphNodeGetContainingGraph_v13010;
        cuGraphNodeGetDependencies PFN_cuGraphNodeGetDependencies_v10000;
        cuGraphNodeGetDependencies_v2 PFN_cuGraphNodeGetDependencies_v12030;
        cuGraphNodeGetDependentNodes PFN_cuGraphNodeGetDependentNodes_v10000;
        cuGraphNodeGetDependentNodes_v2 PFN_cuGraphNodeGetDependentNodes_v12030;
        cuGraphNodeGetEnabled PFN_cuGraphNodeGetEnabled_v11060;
        cuGraphNodeGetParams PFN_cuGraphNodeGetParams_v13020;
        cuGraphNodeGetType PFN_cuGraphNodeGetType_v10000;
        cuGraphNodeSetEnabled PFN_cuGraphNodeSetEnabled_v11060;
        cuGraphReleaseUserObject PFN_cuGraphReleaseUserObject_v11030;
        cuGraphRemoveDependencies PFN_cuGraphRemoveDependencies_v10000;
        cuGraphRemoveDependencies_v2 PFN_cuGraphRemoveDependencies_v12030;
        cuGraphRetainUserObject PFN_cuGraphRetainUserObject_v11030;
        cuGraphUpload PFN_cuGraphUpload_v11010 PFN_cuGraphUpload_v11010_ptsz;
        cuGraphicsResourceGetMappedPointer_v2 PFN_cuGraphicsResourceGetMappedPointer_v3020;
        cuIpcOpenMemHandle PFN_cuIpcOpenMemHandle_v4010;
        cuKernelGetAttribute PFN_cuKernelGetAttribute_v12000;
        cuKernelGetFunction PFN_cuKernelGetFunction_v12000;
        cuKernelGetLibrary PFN_cuKernelGetLibrary_v12050;
        cuKernelGetName PFN_cuKernelGetName_v12030;
        cuKernelGetParamCount PFN_cuKernelGetParamCount_v13020;
        cuKernelGetParamInfo PFN_cuKernelGetParamInfo_v12040;
        cuKernelSetAttribute PFN_cuKernelSetAttribute_v12000;
        cuKernelSetCacheConfig PFN_cuKernelSetCacheConfig_v12000;
        cuLaunchCooperativeKernel PFN_cuLaunchCooperativeKernel_v9000 PFN_cuLaunchCooperativeKernel_v9000_ptsz;
        cuLaunchKernel PFN_cuLaunchKernel_v4000 PFN_cuLaunchKernel_v7000_ptsz;
        cuLaunchKernelEx PFN_cuLaunchKernelEx_v11060 PFN_cuLaunchKernelEx_v11060_ptsz;
        cuLibraryEnumerateKernels PFN_cuLibraryEnumerateKernels_v12040;
        cuLibraryGetGlobal PFN_cuLibraryGetGlobal_v12000;
        cuLibraryGetKernel PFN_cuLibraryGetKernel_v12000;
        cuLibraryGetKernelCount PFN_cuLibraryGetKernelCount_v12040;
        cuLibraryGetManaged PFN_cuLibraryGetManaged_v12000;
        cuLibraryGetModule PFN_cuLibraryGetModule_v12000;
        cuLibraryLoadData PFN_cuLibraryLoadData_v12000;
        cuLibraryLoadFromFile PFN_cuLibraryLoadFromFile_v12000;
        cuLibraryUnload PFN_cuLibraryUnload_v12000;
        cuMemAddressFree PFN_cuMemAddressFree_v10020;
        cuMemAddressReserve PFN_cuMemAddressReserve_v10020;
        cuMemAdvise PFN_cuMemAdvise_v8000;
        cuMemAdvise_v2 PFN_cuMemAdvise_v12020;
        cuMemAllocAsync PFN_cuMemAllocAsync_v11020 PFN_cuMemAllocAsync_v11020_ptsz;
        cuMemAllocFromPoolAsync PFN_cuMemAllocFromPoolAsync_v11020 PFN_cuMemAllocFromPoolAsync_v11020_ptsz;
        cuMemAllocHost_v2 PFN_cuMemAllocHost_v3020;
        cuMemAllocManaged PFN_cuMemAllocManaged_v6000;
        cuMemAllocPitch_v2 PFN_cuMemAllocPitch_v3020;
        cuMemCreate PFN_cuMemCreate_v10020;
        cuMemDiscardAndPrefetchBatchAsync PFN_cuMemDiscardAndPrefetchBatchAsync_v13000 PFN_cuMemDiscardAndPrefetchBatchAsync_v13000_ptsz;
        cuMemDiscardBatchAsync PFN_cuMemDiscardBatchAsync_v13000 PFN_cuMemDiscardBatchAsync_v13000_ptsz;
        cuMemFreeAsync PFN_cuMemFreeAsync_v11020 PFN_cuMemFreeAsync_v11020_ptsz;
        cuMemGetAccess PFN_cuMemGetAccess_v10020;
        cuMemGetAddressRange_v2 PFN_cuMemGetAddressRange_v3020;
        cuMemGetAllocationGranularity PFN_cuMemGetAllocationGranularity_v10020;
        cuMemGetAllocationPropertiesFromHandle PFN_cuMemGetAllocationPropertiesFromHandle_v10020;
        cuMemGetDefaultMemPool PFN_cuMemGetDefaultMemPool_v13000;
        cuMemGetMemPool PFN_cuMemGetMemPool_v13000;
        cuMemHostGetFlags PFN_cuMemHostGetFlags_v2030;
        cuMemHostRegister PFN_cuMemHostRegister_v4000;
        cuMemHostUnregister PFN_cuMemHostUnregister_v4000;
        cuMemMap PFN_cuMemMap_v10020;
        cuMemPoolCreate PFN_cuMemPoolCreate_v11020;
        cuMemPoolDestroy PFN_cuMemPoolDestroy_v11020;
        cuMemPoolExportPointer PFN_cuMemPoolExportPointer_v11020;
        cuMemPoolExportToShareableHandle PFN_cuMemPoolExportToShareableHandle_v11020;
        cuMemPoolGetAccess PFN_cuMemPoolGetAccess_v11020;
        cuMemPoolGetAttribute PFN_cuMemPoolGetAttribute_v11020;
        cuMemPoolImportFromShareableHandle PFN_cuMemPoolImportFromShareableHandle_v11020;
        cuMemPoolImportPointer PFN_cuMemPoolImportPointer_v11020;
        cuMemPoolSetAccess PFN_cuMemPoolSetAccess_v11020;
        cuMemPoolSetAttribute PFN_cuMemPoolSetAttribute_v11020;
        cuMemPoolTrimTo PFN_cuMemPoolTrimTo_v11020;
        cuMemPrefetchAsync PFN_cuMemPrefetchAsync_v8000 PFN_cuMemPrefetchAsync_v8000_ptsz;
        cuMemPrefetchAsync_v2 PFN_cuMemPrefetchAsync_v12020 PFN_cuMemPrefetchAsync_v12020_ptsz;
        cuMemPrefetchBatchAsync PFN_cuMemPrefetchBatchAsync_v13000 PFN_cuMemPrefetchBatchAsync_v13000_ptsz;
        cuMemRelease PFN_cuMemRelease_v10020;
        cuMemRetainAllocationHandle PFN_cuMemRetainAllocationHandle_v11000;
        cuMemSetAccess PFN_cuMemSetAccess_v10020;
        cuMemSetMemPool PFN_cuMemSetMemPool_v13000;
        cuMemUnmap PFN_cuMemUnmap_v10020;
        cuMemcpy PFN_cuMemcpy_v4000 PFN_cuMemcpy_v7000_ptds;
        cuMemcpy2D_v2 PFN_cuMemcpy2D_v3020 PFN_cuMemcpy2D_v7000_ptds;
        cuMemcpy2DAsync_v2 PFN_cuMemcpy2DAsync_v3020 PFN_cuMemcpy2DAsync_v7000_ptsz;
        cuMemcpy2DUnaligned_v2 PFN_cuMemcpy2DUnaligned_v3020 PFN_cuMemcpy2DUnaligned_v7000_ptds;
        cuMemcpy3D_v2 PFN_cuMemcpy3D_v3020 PFN_cuMemcpy3D_v7000_ptds;
        cuMemcpy3DAsync_v2 PFN_cuMemcpy3DAsync_v3020 PFN_cuMemcpy3DAsync_v7000_ptsz;
        cuMemcpy3DBatchAsync PFN_cuMemcpy3DBatchAsync_v12080 PFN_cuMemcpy3DBatchAsync_v12080_ptsz;
        cuMemcpy3DBatchAsync_v2 PFN_cuMemcpy3DBatchAsync_v13000 PFN_cuMemcpy3DBatchAsync_v13000_ptsz;
        cuMemcpy3DPeer PFN_cuMemcpy3DPeer_v4000 PFN_cuMemcpy3DPeer_v7000_ptds;
        cuMemcpy3DPeerAsync PFN_cuMemcpy3DPeerAsync_v4000 PFN_cuMemcpy3DPeerAsync_v7000_ptsz;
        cuMemcpy3DWithAttributesAsync PFN_cuMemcpy3DWithAttributesAsync_v13020 PFN_cuMemcpy3DWithAttributesAsync_v13020_ptsz;
        cuMemcpyAsync PFN_cuMemcpyAsync_v4000 PFN_cuMemcpyAsync_v7000_ptsz;
        cuMemcpyAtoA_v2 PFN_cuMemcpyAtoA_v3020 PFN_cuMemcpyAtoA_v7000_ptds;
        cuMemcpyAtoD_v2 PFN_cuMemcpyAtoD_v3020 PFN_cuMemcpyAtoD_v7000_ptds;
        cuMemcpyAtoH_v2 PFN_cuMemcpyAtoH_v3020 PFN_cuMemcpyAtoH_v7000_ptds;
        cuMemcpyAtoHAsync_v2 PFN_cuMemcpyAtoHAsync_v3020 PFN_cuMemcpyAtoHAsync_v7000_ptsz;
        cuMemcpyBatchAsync PFN_cuMemcpyBatchAsync_v12080 PFN_cuMemcpyBatchAsync_v12080_ptsz;
        cuMemcpyBatchAsync_v2 PFN_cuMemcpyBatchAsync_v13000 PFN_cuMemcpyBatchAsync_v13000_ptsz;
        cuMemcpyDtoA_v2 PFN_cuMemcpyDtoA_v3020 PFN_cuMemcpyDtoA_v7000_ptds;
        cuMemcpyDtoD_v2 PFN_cuMemcpyDtoD_v3020 PFN_cuMemcpyDtoD_v7000_ptds;
        cuMemcpyDtoH_v2 PFN_cuMemcpyDtoH_v3020 PFN_cuMemcpyDtoH_v7000_ptds;
        cuMemcpyHtoA_v2 PFN_cuMemcpyHtoA_v3020 PFN_cuMemcpyHtoA_v7000_ptds;
        cuMemcpyHtoAAsync_v2 PFN_cuMemcpyHtoAAsync_v3020 PFN_cuMemcpyHtoAAsync_v7000_ptsz;
        cuMemcpyHtoD_v2 PFN_cuMemcpyHtoD_v3020 PFN_cuMemcpyHtoD_v7000_ptds;
        cuMemcpyPeer PFN_cuMemcpyPeer_v4000 PFN_cuMemcpyPeer_v7000_ptds;
        cuMemcpyPeerAsync PFN_cuMemcpyPeerAsync_v4000 PFN_cuMemcpyPeerAsync_v7000_ptsz;
        cuMemcpyWithAttributesAsync PFN_cuMemcpyWithAttributesAsync_v13020 PFN_cuMemcpyWithAttributesAsync_v13020_ptsz;
        cuMemsetD16_v2 PFN_cuMemsetD16_v3020 PFN_cuMemsetD16_v7000_ptds;
        cuMemsetD16Async PFN_cuMemsetD16Async_v3020 PFN_cuMemsetD16Async_v7000_ptsz;
        cuMemsetD2D16_v2 PFN_cuMemsetD2D16_v3020 PFN_cuMemsetD2D16_v7000_ptds;
        cuMemsetD2D16Async PFN_cuMemsetD2D16Async_v3020 PFN_cuMemsetD2D16Async_v7000_ptsz;
        cuMemsetD2D32_v2 PFN_cuMemsetD2D32_v3020 PFN_cuMemsetD2D32_v7000_ptds;
        cuMemsetD2D32Async PFN_cuMemsetD2D32Async_v3020 PFN_cuMemsetD2D32Async_v7000_ptsz;
        cuMemsetD2D8_v2 PFN_cuMemsetD2D8_v3020 PFN_cuMemsetD2D8_v7000_ptds;
        cuMemsetD2D8Async PFN_cuMemsetD2D8Async_v3020 PFN_cuMemsetD2D8Async_v7000_ptsz;
        cuMemsetD32_v2 PFN_cuMemsetD32_v3020 PFN_cuMemsetD32_v7000_ptds;
        cuMemsetD8_v2 PFN_cuMemsetD8_v3020 PFN_cuMemsetD8_v7000_ptds;
        cuModuleEnumerateFunctions PFN_cuModuleEnumerateFunctions_v12040;
        cuModuleGetFunction PFN_cuModuleGetFunction_v2000;
        cuModuleGetFunctionCount PFN_cuModuleGetFunctionCount_v12040;
        cuModuleGetGlobal_v2 PFN_cuModuleGetGlobal_v3020;
        cuModuleGetLoadingMode PFN_cuModuleGetLoadingMode_v11070;
        cuModuleLoad PFN_cuModuleLoad_v2000;
        cuModuleLoadData PFN_cuModuleLoadData_v2000;
        cuModuleLoadDataEx PFN_cuModuleLoadDataEx_v2010;
        cuModuleLoadFatBinary PFN_cuModuleLoadFatBinary_v2000;
        cuModuleUnload PFN_cuModuleUnload_v2000;
        cuOccupancyMaxActiveBlocksPerMultiprocessor PFN_cuOccupancyMaxActiveBlocksPerMultiprocessor_v6050;
        cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags PFN_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags_v7000;
        cuOccupancyMaxPotentialBlockSize PFN_cuOccupancyMaxPotentialBlockSize_v6050;
        cuOccupancyMaxPotentialBlockSizeWithFlags PFN_cuOccupancyMaxPotentialBlockSizeWithFlags_v7000;
        cuPointerGetAttribute PFN_cuPointerGetAttribute_v4000;
        cuPointerGetAttributes PFN_cuPointerGetAttributes_v7000;
        cuStreamBeginCapture PFN_cuStreamBeginCapture_v10000 PFN_cuStreamBeginCapture_v10000_ptsz;
        cuStreamDestroy PFN_cuStreamDestroy_v2000;
        cuUserObjectCreate PFN_cuUserObjectCreate_v11030;
        cuUserObjectRelease PFN_cuUserObjectRelease_v11030;
        cuUserObjectRetain PFN_cuUserObjectRetain_v11030;
    } };
}
pub(crate) use for_each_other_function;
