//! Calls without a stream: what the host is after when they return. NVIDIA documents it ("API
//! synchronization behavior").

use std::ffi::c_void;
use std::ptr::without_provenance;

use cuda_events::sys::*;
use cuda_soft_driver::abi::CUDA_MEMCPY2D;

use super::desk::{Desk, synchronous_memset};
use super::{RACE, Row};
use crate::raw::*;
use crate::rows::{device, host, rows};

fn done(p: &Desk<'_>, code: u32) -> u64 {
    p.number(CUresult(code))
}

/// Work in the default stream, of which the host then is after nothing unless it waits.
fn then_reads(p: &Desk<'_>, one: u64) -> (u64, u64) {
    if p.mended {
        p.raw.sync(legacy());
    }
    (one, p.reads(p.b))
}

#[rustfmt::skip] // A row in few lines.
pub const ROWS: &[Row] = &[
    ("a memset without a stream, and a non-blocking stream", RACE, |p| {
        let one = p.number(unsafe { synchronous_memset(p)(p.buffer, 1, 64) });
        then_reads(p, one)
    }),
    ("a memset of words without a stream", RACE, |p| {
        let one = done(p, call!(p.raw, cuMemsetD32_v2(p.buffer => u64, 1 => u32, 16 => usize)));
        then_reads(p, one)
    }),
    ("a memset of rows without a stream", RACE, |p| {
        let one = done(p, call!(p.raw, cuMemsetD2D8_v2(p.buffer => u64, 16 => usize, 1 => u8,
            16 => usize, 4 => usize)));
        then_reads(p, one)
    }),
    ("a copy of device memory without a stream", RACE, |p| {
        let (to, from) = (p.buffer, p.other);
        let one = done(p, call!(p.raw, cuMemcpyDtoD_v2(to => u64, from => u64, 64 => usize)));
        then_reads(p, one)
    }),
    ("a copy between addresses without a stream", RACE, |p| {
        let (to, from) = (p.buffer, p.other);
        let one = done(p, call!(p.raw, cuMemcpy(to => u64, from => u64, 64 => usize)));
        then_reads(p, one)
    }),
    ("a copy of rows without a stream", RACE, |p| {
        let copy = rows(device(p.other, 16), device(p.buffer, 16), 16, 4);
        let one = done(p, call!(p.raw, cuMemcpy2D_v2(&copy => *const CUDA_MEMCPY2D)));
        then_reads(p, one)
    }),
    ("ordinary memory is uploaded without a stream", RACE, |p| {
        let from = [0_u8; 64];
        let one = done(p, call!(p.raw, cuMemcpyHtoD_v2(p.buffer => u64,
            from.as_ptr().cast() => *const c_void, 64 => usize)));
        then_reads(p, one)
    }),
    ("rows of ordinary memory are uploaded without a stream", RACE, |p| {
        let from = [0_u8; 64];
        let from = host(from.as_ptr().cast_mut().cast(), 16);
        let copy = rows(from, device(p.buffer, 16), 16, 4);
        let one = done(p, call!(p.raw, cuMemcpy2D_v2(&copy => *const CUDA_MEMCPY2D)));
        then_reads(p, one)
    }),
    ("a peer copy without a stream, and the host", RACE, |p| {
        let (to, from, context) = (p.buffer, p.other, p.context());
        let one = done(p, call!(p.raw, cuMemcpyPeer(to => u64, context => CUcontext, from => u64,
            context => CUcontext, 64 => usize)));
        if p.mended { p.raw.sync(legacy()); }
        (one, p.raw.host_access(without_provenance::<u8>(p.buffer as usize), 64, false))
    }),
];
