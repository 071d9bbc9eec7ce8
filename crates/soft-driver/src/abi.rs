//! The C types of the driver, and constants that this crate uses often.

pub use cuda_events::sys::more::{
    CUDA_GRAPH_INSTANTIATE_PARAMS, CUDA_MEMSET_NODE_PARAMS, CUgraphExecUpdateResult,
    CUgraphExecUpdateResultInfo, CUgraphInstantiateResult,
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

/// A handle of device memory for another process.
pub type MemHandle = CUipcMemHandle;

/// One side of [`Copy2D`].
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Side2D {
    /// Bytes before the copied ones in each row.
    pub x: usize,
    /// Rows before the copied ones.
    pub y: usize,
    /// Selects one of the places below.
    pub memory_type: u32,
    /// The address in host memory.
    pub host: *mut core::ffi::c_void,
    /// The address in device memory, or a unified address.
    pub device: CUdeviceptr,
    /// The array.
    pub array: *mut core::ffi::c_void,
    /// The bytes from one row to the next.
    pub pitch: usize,
}

/// A copy of rows (`CUDA_MEMCPY2D`).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Copy2D {
    /// The side to read.
    pub source: Side2D,
    /// The side to write.
    pub destination: Side2D,
    /// The bytes in a row.
    pub width: usize,
    /// The number of rows.
    pub height: usize,
}

/// One side of [`Copy3D`].
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Side3D {
    /// Bytes before the copied ones in each row.
    pub x: usize,
    /// Rows before the copied ones in each layer.
    pub y: usize,
    /// Layers before the copied ones.
    pub z: usize,
    /// The level of a mipmapped array.
    pub lod: usize,
    /// Selects one of the places below.
    pub memory_type: u32,
    /// The address in host memory.
    pub host: *mut core::ffi::c_void,
    /// The address in device memory, or a unified address.
    pub device: CUdeviceptr,
    /// The array.
    pub array: *mut core::ffi::c_void,
    /// NULL.
    pub reserved: *mut core::ffi::c_void,
    /// The bytes from one row to the next.
    pub pitch: usize,
    /// The rows from one layer to the next.
    pub height: usize,
}

/// A copy of layers of rows (`CUDA_MEMCPY3D`).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Copy3D {
    /// The side to read.
    pub source: Side3D,
    /// The side to write.
    pub destination: Side3D,
    /// The bytes in a row.
    pub width: usize,
    /// The rows in a layer.
    pub height: usize,
    /// The number of layers.
    pub depth: usize,
}

#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<Copy2D>() == 128 && size_of::<Copy3D>() == 200);

/// The location of memory (`CUmemLocation`).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Location {
    /// A device (1), the host (2), or a part of the host's memory.
    pub kind: u32,
    /// The number of the device or part.
    pub id: i32,
}

/// The properties of a memory pool (`CUmemPoolProps`).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct PoolProps {
    /// Pinned (1) or managed (2).
    pub alloc_type: u32,
    /// The kinds of handles that other processes can receive.
    pub handle_types: u32,
    /// The location of the memory.
    pub location: Location,
    /// For Windows only.
    pub security_attributes: *mut core::ffi::c_void,
    /// The maximum size.
    pub max_size: usize,
    /// The intended use.
    pub usage: u16,
    /// Whether other devices of the machine may access it directly.
    pub gpu_direct_rdma_capable: u8,
    /// Zeros.
    pub reserved: [u8; 53],
}

/// The access of a device to a pool's memory (`CUmemAccessDesc`).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct AccessDesc {
    /// The device.
    pub location: Location,
    /// No access (0), read (1), read and write (3).
    pub flags: u32,
}

/// What memory without an address is (`CUmemAllocationProp`).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct AllocationProps {
    /// Pinned memory (1).
    pub kind: u32,
    /// The kinds of handles for other processes.
    pub handle_types: u32,
    /// Where it is.
    pub location: Location,
    /// For handles of Windows.
    pub security_attributes: *mut core::ffi::c_void,
    /// Compression, remote access, usage.
    pub flags: [u8; 8],
}

// SAFETY: the pointer is the program's, and only returned to it.
unsafe impl Send for AllocationProps {}

/// A handle of a pool's memory for another process (`CUmemPoolPtrExportData`).
pub type PoolPointer = MemHandle;

#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<PoolProps>() == 88 && size_of::<AccessDesc>() == 12);
