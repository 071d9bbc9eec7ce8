//! Descriptions of copies of rows.

use std::ffi::c_void;
use std::ptr::null_mut;

use cuda_events::sys::CUdeviceptr;
use cuda_soft_driver::abi::{CUDA_MEMCPY2D, CUmemorytype};

/// One side of a copy.
#[derive(Clone, Copy)]
pub struct Side {
    kind: CUmemorytype,
    host: *mut c_void,
    device: CUdeviceptr,
    pitch: usize,
}

pub fn host(host: *mut c_void, pitch: usize) -> Side {
    Side { kind: CUmemorytype::CU_MEMORYTYPE_HOST, host, device: 0, pitch }
}

pub fn device(device: CUdeviceptr, pitch: usize) -> Side {
    Side { kind: CUmemorytype::CU_MEMORYTYPE_DEVICE, host: null_mut(), device, pitch }
}

pub fn rows(from: Side, to: Side, width: usize, height: usize) -> CUDA_MEMCPY2D {
    CUDA_MEMCPY2D {
        srcMemoryType: from.kind,
        srcHost: from.host,
        srcDevice: from.device,
        srcPitch: from.pitch,
        dstMemoryType: to.kind,
        dstHost: to.host,
        dstDevice: to.device,
        dstPitch: to.pitch,
        WidthInBytes: width,
        Height: height,
        ..CUDA_MEMCPY2D::default()
    }
}
