//! Memory pools of a raw table.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "each calls the raw table with handles that it gave out and places on the stack"
)]

use std::ffi::c_void;
use std::ptr::null_mut;

use cuda_events::sys::CUstream;
use cuda_soft_driver::abi::{Location, PoolProps};

use crate::raw::*;

const ON_DEVICE: u32 = 1;

pub type Pool = *mut c_void;

pub fn location(id: i32) -> Location {
    Location { kind: ON_DEVICE, id }
}

pub fn props(handle_types: u32) -> PoolProps {
    PoolProps {
        alloc_type: 1,
        handle_types,
        location: location(0),
        security_attributes: null_mut(),
        max_size: 0,
        usage: 0,
        gpu_direct_rdma_capable: 0,
        reserved: [0; 53],
    }
}

pub fn create(raw: &Raw, props: &PoolProps) -> Result<Pool, u32> {
    let mut pool = null_mut();
    match call!(raw, cuMemPoolCreate(&mut pool => *mut Pool, props => *const PoolProps)) {
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
