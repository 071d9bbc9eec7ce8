//! Memory pools, and allocations and frees in stream order.

use crate::common;

use std::ffi::c_void;
use std::ptr::null_mut;
use std::time::Duration;

use common::*;
use cuda_events::sys::*;
use cuda_events_test_support::pools::*;
use cuda_soft_driver::abi::{
    CUmemAllocationType, CUmemLocation, CUmemLocationType, CUmemPoolProps,
};
use cuda_soft_driver::{OrderCheck, SoftDriver, Time};

const NON_BLOCKING: u32 = 1;
fn alloc(raw: &Raw, bytes: usize, stream: CUstream) -> u64 {
    let mut address = 0;
    let code = call!(raw, cuMemAllocAsync(&mut address => *mut u64, bytes => usize,
        stream => CUstream));
    assert_eq!(code, OK);
    address
}

fn free(raw: &Raw, address: u64, stream: CUstream) -> u32 {
    call!(raw, cuMemFreeAsync(address => u64, stream => CUstream))
}

fn attribute(raw: &Raw, pool: Pool, attribute: u32) -> Result<u64, u32> {
    let mut value = 0_u64;
    let place = std::ptr::from_mut(&mut value).cast();
    match call!(raw, cuMemPoolGetAttribute(pool => Pool, attribute => u32, place => *mut c_void)) {
        OK => Ok(value),
        code => Err(code),
    }
}

fn fill(raw: &Raw, address: u64, words: usize, stream: CUstream) -> u32 {
    unsafe { (raw.cuMemsetD32Async)(address, 7, words, stream) }.0
}

/// What the software driver does not have, and what it is configured not to have.
#[test]
fn what_makes_no_pool() {
    let raw = Raw::new();
    let managed = CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_MANAGED;
    let on_host = CUmemLocation { type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST, id: 0 };
    for (props, code) in [
        (CUmemPoolProps { allocType: managed, ..props(0) }, NOT_SUPPORTED),
        (CUmemPoolProps { location: on_host, ..props(0) }, NOT_SUPPORTED),
        (props(8), NOT_PERMITTED),
        (props(2), NOT_SUPPORTED),
    ] {
        assert_eq!(create(&raw, &props), Err(code), "{props:?}");
    }
    let alone = Raw::with(SoftDriver::builder().ipc(false));
    let mut value = 77;
    let attribute = CUdevice_attribute(103);
    assert_eq!(unsafe { (alone.cuDeviceGetAttribute)(&mut value, attribute, 0) }.0, OK);
    assert_eq!((value, create(&alone, &props(1))), (0, Err(NOT_SUPPORTED)));
}

/// Memory that a stream is to free is no longer the program's: a free waits for nothing, and fails.
#[test]
fn a_second_free_does_not_wait() {
    let raw = Raw::with(SoftDriver::builder().time(Time::Virtual));
    let stream = raw.stream(NON_BLOCKING);
    let mut memory = 0;
    assert_eq!(unsafe { (raw.cuMemAlloc_v2)(&mut memory, 64) }.0, OK);
    raw.keep_busy(stream, Duration::from_secs(3600));
    assert_eq!(free(&raw, memory, stream), OK);
    assert_eq!(unsafe { (raw.cuMemFree_v2)(memory) }.0, INVALID_VALUE);
    assert!(raw.busy(stream), "time has passed");
    raw.sync(stream);
}

/// It counts the memory that it keeps, in blocks of two megabytes, and what is free of the device.
#[test]
fn what_a_pool_counts() {
    const BLOCK: u64 = 2 << 20;
    let raw = Raw::new();
    let stream = raw.stream(NON_BLOCKING);
    let pool = create(&raw, &props(0)).unwrap();
    let all = || (5..=8).map(|which| attribute(&raw, pool, which).unwrap()).collect::<Vec<_>>();
    let free_memory = || {
        let (mut free, mut total) = (0, 0);
        assert_eq!(unsafe { (raw.cuMemGetInfo_v2)(&mut free, &mut total) }.0, OK);
        free
    };
    let before = free_memory();
    let address = alloc_from(&raw, 3 << 20, pool, stream).unwrap();
    assert_eq!(all(), [2 * BLOCK, 2 * BLOCK, 3 << 20, 3 << 20]);
    assert_eq!(before - free_memory(), 3 << 20);
    assert_eq!(free(&raw, address, stream), OK);
    raw.sync(stream);
    assert_eq!(all(), [0, 2 * BLOCK, 0, 3 << 20]);
    assert_eq!(free_memory(), before);
    assert_eq!((destroy(&raw, pool), destroy(&raw, pool)), (OK, INVALID_VALUE));
    assert_eq!(alloc_from(&raw, 16, pool, stream), Err(INVALID_VALUE));
    let limited = create(&raw, &CUmemPoolProps { maxSize: 4096, ..props(0) }).unwrap();
    let address = alloc_from(&raw, 4096, limited, stream).unwrap();
    assert_eq!(alloc_from(&raw, 1, limited, stream), Err(OUT_OF_MEMORY));
    assert_eq!(free(&raw, address, stream), OK);
    raw.sync(stream);
    assert!(alloc_from(&raw, 1, limited, stream).is_ok());
}

/// Whether memory may be used again is on or off, for each of the three ways: any number is on.
#[test]
fn reuse_is_on_or_off() {
    let raw = Raw::new();
    let pool = create(&raw, &props(0)).unwrap();
    for which in 1..=3 {
        assert_eq!(attribute(&raw, pool, which), Ok(1));
        for (set, got) in [(0, 0), (1, 1), (0, 0), (2, 1)] {
            let mut value: u32 = set;
            let place = std::ptr::from_mut(&mut value).cast();
            let code = call!(raw, cuMemPoolSetAttribute(pool => Pool, which => u32,
                place => *mut c_void));
            assert_eq!((code, attribute(&raw, pool, which)), (OK, Ok(got)), "{which}: {set}");
        }
    }
}

/// A high mark that is set back is at what there is now.
#[test]
fn high_marks_are_set_back() {
    let raw = Raw::new();
    let stream = raw.stream(NON_BLOCKING);
    let pool = create(&raw, &props(0)).unwrap();
    let large = alloc_from(&raw, 8 << 20, pool, stream).unwrap();
    let small = alloc_from(&raw, 4096, pool, stream).unwrap();
    assert_eq!(free(&raw, large, stream), OK);
    raw.sync(stream);
    for (now, high) in [(5, 6), (7, 8)] {
        let before = attribute(&raw, pool, high).unwrap();
        let used = attribute(&raw, pool, now).unwrap();
        assert!(0 < used && used < before, "{now}");
        let mut zero = 0_u64;
        let place = std::ptr::from_mut(&mut zero).cast();
        let code = call!(raw, cuMemPoolSetAttribute(pool => Pool, high => u32,
            place => *mut c_void));
        assert_eq!((code, attribute(&raw, pool, high)), (OK, Ok(used)), "{high}");
    }
    assert_eq!(free(&raw, small, stream), OK);
    raw.sync(stream);
}

/// What a real driver leaves undefined: memory that is freed twice, and used after its free.
#[test]
fn memory_is_there_until_its_stream_has_freed_it() {
    let raw = Raw::planting(SoftDriver::builder());
    let (stream, other) = (raw.stream(NON_BLOCKING), raw.stream(NON_BLOCKING));
    let address = alloc(&raw, 64, stream);
    let latch = raw.latch(stream);
    assert_eq!(free(&raw, address, stream), OK);
    assert_eq!(free(&raw, address, stream), INVALID_VALUE, "it is freed already");
    assert_eq!(unsafe { (raw.cuMemFree_v2)(address) }.0, INVALID_VALUE);
    assert_eq!(raw.soft.live().allocations, 0, "there is nothing left to do");
    assert_eq!(fill(&raw, address, 16, other), OK);
    raw.sync(other);
    latch.release();
    raw.sync(stream);
    assert_eq!(fill(&raw, address, 16, other), INVALID_VALUE);
}

/// Memory begins and ends in its stream: what another stream does with it has to come between.
#[test]
fn the_order_checker_sees_stream_ordered_memory() {
    // Its reports are for nobody.
    cuda_events_test_support::own_process!();
    #[derive(PartialEq, Clone, Copy, Debug)]
    enum Planted {
        Nothing,
        UseBeforeAllocation,
        FreeBeforeUse,
        UseAfterFree,
    }
    use Planted::*;
    for planted in [Nothing, UseBeforeAllocation, FreeBeforeUse, UseAfterFree] {
        let raw = Raw::planting(SoftDriver::builder().check_order(OrderCheck::Report));
        let (a, b) = (raw.stream(NON_BLOCKING), raw.stream(NON_BLOCKING));
        let (allocated, used) = (raw.event(2), raw.event(2));
        let address = alloc(&raw, 64, a);
        raw.record(allocated, a);
        if planted != UseBeforeAllocation {
            raw.wait(b, allocated);
        }
        assert_eq!(fill(&raw, address, 16, b), OK);
        raw.record(used, b);
        if planted != FreeBeforeUse {
            raw.wait(a, used);
        }
        if planted == UseAfterFree {
            let latch = raw.latch(a);
            assert_eq!(free(&raw, address, a), OK);
            assert_eq!(fill(&raw, address, 16, a), OK);
            latch.release();
        } else {
            assert_eq!(free(&raw, address, a), OK);
        }
        raw.sync(a);
        raw.sync(b);
        let findings = order_texts(&raw.soft);
        assert_eq!(findings.is_empty(), planted == Nothing, "{planted:?}: {findings:?}");
        let named = match planted {
            Nothing => continue,
            UseBeforeAllocation => "cuMemAllocAsync",
            FreeBeforeUse | UseAfterFree => "cuMemFreeAsync",
        };
        assert!(findings[0].contains(named), "{planted:?}: {findings:?}");
    }
}

/// A context takes its memory with it, and the pools count that.
#[test]
fn pooled_memory_goes_with_its_context() {
    let raw = Raw::new();
    let pool = create(&raw, &props(0)).unwrap();
    let mut context = null_mut();
    assert_eq!(unsafe { (raw.cuCtxCreate_v2)(&mut context, 0, 0) }.0, OK);
    let stream = raw.stream(NON_BLOCKING);
    alloc_from(&raw, 4096, pool, stream).unwrap();
    let latch = raw.latch(stream);
    latch.reached();
    latch.release();
    assert_eq!(unsafe { (raw.cuCtxDestroy_v2)(context) }.0, OK);
    assert_eq!(attribute(&raw, pool, 7), Ok(0));
    assert_eq!(raw.soft.live().lost, 2, "the memory and the stream");
    assert_eq!(destroy(&raw, pool), OK);
}

/// Work on memory that is freed meanwhile is done on memory that is there.
#[test]
fn memory_that_is_freed_under_work() {
    // It is undefined on a real driver.
    let raw = Raw::planting(SoftDriver::builder());
    let stream = raw.stream(0);
    let (mut memory, mut pinned) = (0, null_mut());
    unsafe {
        assert_eq!((raw.cuMemAlloc_v2)(&mut memory, 64).0, OK);
        assert_eq!((raw.cuMemHostAlloc)(&mut pinned, 64, 0).0, OK);
        let latch = raw.latch(stream);
        assert_eq!((raw.cuMemsetD8Async)(memory, 9, 64, stream).0, OK);
        assert_eq!((raw.cuMemcpyDtoHAsync_v2)(pinned, memory, 64, stream).0, OK);
        let free = call!(raw, cuMemFreeAsync(memory => u64, raw.stream(1) => CUstream));
        assert_eq!(free, OK);
        assert_eq!((raw.cuMemFree_v2)(memory).0, INVALID_VALUE);
        latch.release();
        raw.sync(stream);
        assert_eq!(std::slice::from_raw_parts(pinned.cast::<u8>(), 64), [9; 64]);
    }
}
