//! Reserved addresses, and memory that is mapped there.

use crate::common;

use std::ptr::null_mut;

use common::*;
use cuda_events_test_support::pools::{allocation, location};
use cuda_soft_driver::abi::{CUmemAccessDesc, CUmemAllocationProp};

const PIECE: usize = 2 << 20;

fn free_memory(raw: &Raw) -> usize {
    let (mut free, mut total) = (0, 0);
    assert_eq!(unsafe { (raw.cuMemGetInfo_v2)(&mut free, &mut total) }.0, OK);
    free
}

fn release(raw: &Raw, handle: u64) {
    assert_eq!(call!(raw, cuMemRelease(handle => u64)), OK);
}

/// Accesses are allowed to mappings that fill a range: one that begins with a mapping and ends with
/// one is not enough. What is released and not mapped is free again.
#[test]
fn mappings_with_a_gap_are_no_range() {
    let raw = Raw::new();
    let (before, mut address) = (free_memory(&raw), 0_u64);
    let code = call!(raw, cuMemAddressReserve(&mut address => *mut u64, 3 * PIECE => usize,
        0 => usize, 0 => u64, 0 => u64));
    assert_eq!((code, free_memory(&raw)), (OK, before));
    let unmap = |at: u64, pieces: usize| call!(raw, cuMemUnmap(at => u64, pieces * PIECE => usize));
    let allow = |at: u64, pieces: usize| {
        let access = CUmemAccessDesc { location: location(0), flags: 3 };
        call!(raw, cuMemSetAccess(at => u64, pieces * PIECE => usize,
            &access => *const CUmemAccessDesc, 1 => usize))
    };
    let at = |piece: usize| address + (piece * PIECE) as u64;
    let mut mapped = 0;
    for piece in [0, 2, 1] {
        let mut handle = 0_u64;
        let code = call!(raw, cuMemCreate(&mut handle => *mut u64, PIECE => usize,
            &allocation() => *const CUmemAllocationProp, 0 => u64));
        assert_eq!(code, OK);
        let code = call!(raw, cuMemMap(at(piece) => u64, PIECE => usize, 0 => usize,
            handle => u64, 0 => u64));
        assert_eq!(code, OK);
        // Without a place for it there is no further handle, and it lasts as long as it is mapped.
        let code = call!(raw, cuMemRetainAllocationHandle(null_mut() => *mut u64,
            at(piece) => u64));
        assert_eq!(code, INVALID_VALUE);
        release(&raw, handle);
        mapped += 1;
        assert_eq!(before - free_memory(&raw), mapped * PIECE);
        let all = if mapped == 3 { OK } else { INVALID_VALUE };
        assert_eq!((allow(address, 3), allow(at(0), 1)), (all, OK), "{mapped}");
        assert_eq!(allow(at(0), 2), all, "{mapped}");
        assert_eq!(allow(at(0) + 1, 1), INVALID_VALUE);
    }
    // What is unmapped may have a gap.
    assert_eq!((unmap(at(1), 1), allow(address, 3)), (OK, INVALID_VALUE));
    assert_eq!((unmap(at(0) + 1, 1), unmap(address, 3)), (INVALID_VALUE, OK));
    assert_eq!(free_memory(&raw), before);
    let code = call!(raw, cuMemAddressFree(address => u64, 3 * PIECE => usize));
    assert_eq!(code, OK);
}
