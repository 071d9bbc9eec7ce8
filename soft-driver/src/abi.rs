//! The C types of the driver, and the values that this crate names often.

pub use cuda_events::sys::*;

/// What the body of an entry point returns: success, or the code to answer.
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

/// The parameters of a host node (`CUDA_HOST_NODE_PARAMS`).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct HostNodeParams {
    /// What is called.
    pub function: CUhostFn,
    /// What it is given.
    pub user_data: *mut core::ffi::c_void,
}

/// What names device memory to another process (`CUipcMemHandle`).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct MemHandle {
    /// Nobody's but the driver's.
    pub reserved: [u8; 64],
}

/// The parameters of a node of stream memory operations (`CUDA_BATCH_MEM_OP_NODE_PARAMS`).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct BatchMemOpNodeParams {
    /// The context that does them.
    pub ctx: CUcontext,
    /// How many there are.
    pub count: core::ffi::c_uint,
    /// Where they are: the caller's array, or the driver's own.
    pub operations: *mut CUstreamBatchMemOpParams,
    /// None are defined.
    pub flags: core::ffi::c_uint,
}

/// How a graph is instantiated, and how that went (`CUDA_GRAPH_INSTANTIATE_PARAMS`).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct InstantiateParams {
    /// As for `cuGraphInstantiateWithFlags`.
    pub flags: u64,
    /// Where an upload would go.
    pub upload_stream: CUstream,
    /// The node that was at fault.
    pub error_node: CUgraphNode,
    /// The result: 0 is success.
    pub result: u32,
}

/// Where the rows of a copy are: in memory of the host (`CU_MEMORYTYPE_HOST`), of the device, in an
/// array, or wherever the address says.
pub(crate) const MEMORY_HOST: u32 = 1;
pub(crate) const MEMORY_DEVICE: u32 = 2;
pub(crate) const MEMORY_ARRAY: u32 = 3;
pub(crate) const MEMORY_UNIFIED: u32 = 4;

/// One side of [`Copy2D`].
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Side2D {
    /// Bytes before the copied ones in each row.
    pub x: usize,
    /// Rows before the copied ones.
    pub y: usize,
    /// Which of the places below is meant.
    pub memory_type: u32,
    /// In memory of the host.
    pub host: *mut core::ffi::c_void,
    /// In memory of the device, or where the address says.
    pub device: CUdeviceptr,
    /// In an array.
    pub array: *mut core::ffi::c_void,
    /// From one row to the next.
    pub pitch: usize,
}

/// A copy of rows (`CUDA_MEMCPY2D`).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Copy2D {
    /// What is read.
    pub source: Side2D,
    /// What is written.
    pub destination: Side2D,
    /// Bytes in a row.
    pub width: usize,
    /// Rows.
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
    /// Which of the places below is meant.
    pub memory_type: u32,
    /// In memory of the host.
    pub host: *mut core::ffi::c_void,
    /// In memory of the device, or where the address says.
    pub device: CUdeviceptr,
    /// In an array.
    pub array: *mut core::ffi::c_void,
    /// NULL.
    pub reserved: *mut core::ffi::c_void,
    /// From one row to the next.
    pub pitch: usize,
    /// Rows from one layer to the next.
    pub height: usize,
}

/// A copy of layers of rows (`CUDA_MEMCPY3D`).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Copy3D {
    /// What is read.
    pub source: Side3D,
    /// What is written.
    pub destination: Side3D,
    /// Bytes in a row.
    pub width: usize,
    /// Rows in a layer.
    pub height: usize,
    /// Layers.
    pub depth: usize,
}

#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<Copy2D>() == 128 && size_of::<Copy3D>() == 200);

/// Where memory is (`CUmemLocation`).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Location {
    /// On a device (1), the host (2), or a part of its memory.
    pub kind: u32,
    /// Which one.
    pub id: i32,
}

/// What a pool is made of (`CUmemPoolProps`).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct PoolProps {
    /// Pinned (1) or managed (2).
    pub alloc_type: u32,
    /// Which kinds of handles other processes can be given.
    pub handle_types: u32,
    /// Where the memory is.
    pub location: Location,
    /// For another system.
    pub security_attributes: *mut core::ffi::c_void,
    /// The most that it has at a time.
    pub max_size: usize,
    /// How it is used.
    pub usage: u16,
    /// Zeros.
    pub reserved: [u8; 54],
}

/// What a device may do with a pool's memory (`CUmemAccessDesc`).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct AccessDesc {
    /// The device.
    pub location: Location,
    /// Nothing (0), read (1), read and write (3).
    pub flags: u32,
}

/// What names memory of a pool to another process (`CUmemPoolPtrExportData`).
pub type PoolPointer = MemHandle;

#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<PoolProps>() == 88 && size_of::<AccessDesc>() == 12);

/// The parameters of a node that sets memory (`CUDA_MEMSET_NODE_PARAMS`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct MemsetParams {
    /// Where.
    pub address: CUdeviceptr,
    /// From one row to the next; of no account for one row.
    pub pitch: usize,
    /// What.
    pub value: core::ffi::c_uint,
    /// Bytes of an element: 1, 2 or 4.
    pub element: core::ffi::c_uint,
    /// Elements in a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
}

/// How an update of an executable graph went (`CUgraphExecUpdateResultInfo`).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct UpdateInfo {
    /// 0 is success.
    pub result: u32,
    /// The node of the new graph that is at fault, if it is one.
    pub error_node: CUgraphNode,
    /// Where its edge comes from, if it is that.
    pub error_from_node: CUgraphNode,
}

#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<MemsetParams>() == 40 && size_of::<UpdateInfo>() == 24);
