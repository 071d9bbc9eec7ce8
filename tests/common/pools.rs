//! Memory pools of a raw table, and memory without an address.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "each calls the raw table with handles that it gave out and places on the stack"
)]

use std::ffi::c_void;
use std::ptr::null_mut;

use cuda_events::sys::CUstream;
use cuda_soft_driver::abi::{
    CUmemAllocationHandleType, CUmemAllocationProp, CUmemAllocationType, CUmemLocation,
    CUmemLocationType, CUmemPoolProps,
};

use crate::raw::*;

pub type Pool = *mut c_void;

pub fn location(id: i32) -> CUmemLocation {
    CUmemLocation { type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE, id }
}

/// Memory of the first device without an address.
pub fn allocation() -> CUmemAllocationProp {
    CUmemAllocationProp {
        type_: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
        location: location(0),
        ..CUmemAllocationProp::default()
    }
}

pub fn props(handle_types: u32) -> CUmemPoolProps {
    CUmemPoolProps {
        allocType: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
        handleTypes: CUmemAllocationHandleType(handle_types),
        location: location(0),
        ..CUmemPoolProps::default()
    }
}

pub fn create(raw: &Raw, props: &CUmemPoolProps) -> Result<Pool, u32> {
    let mut pool = null_mut();
    match call!(raw, cuMemPoolCreate(&mut pool => *mut Pool, props => *const CUmemPoolProps)) {
        OK => Ok(pool),
        code => Err(code),
    }
}

pub fn destroy(raw: &Raw, pool: Pool) -> u32 {
    call!(raw, cuMemPoolDestroy(pool => Pool))
}

pub fn alloc_from(raw: &Raw, bytes: usize, pool: Pool, stream: CUstream) -> Result<u64, u32> {
    let mut address = 0;
    match call!(raw, cuMemAllocFromPoolAsync(&mut address => *mut u64, bytes => usize,
        pool => Pool, stream => CUstream))
    {
        OK => Ok(address),
        code => Err(code),
    }
}
