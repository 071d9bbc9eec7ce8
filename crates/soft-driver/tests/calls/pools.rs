//! Memory pools, and allocations and frees in stream order.

use crate::common;

use std::ffi::c_void;
use std::ptr::null_mut;

use common::*;
use cuda_events::sys::*;
use cuda_soft_driver::abi::{AccessDesc, Location, PoolProps};
use cuda_soft_driver::{OrderCheck, SoftDriver};

const NON_BLOCKING: u32 = 1;
const ON_DEVICE: u32 = 1;

type Pool = *mut c_void;

fn location(id: i32) -> Location {
    Location { kind: ON_DEVICE, id }
}

fn props(handle_types: u32) -> PoolProps {
    PoolProps {
        alloc_type: 1,
        handle_types,
        location: location(0),
        security_attributes: null_mut(),
        max_size: 0,
        usage: 0,
        reserved: [0; 54],
    }
}

fn create(raw: &Raw, props: &PoolProps) -> Result<Pool, u32> {
    let mut pool = null_mut();
    match call!(raw, cuMemPoolCreate(&mut pool => *mut Pool, props => *const PoolProps)) {
        OK => Ok(pool),
        code => Err(code),
    }
}

fn destroy(raw: &Raw, pool: Pool) -> u32 {
    call!(raw, cuMemPoolDestroy(pool => Pool))
}

fn alloc(raw: &Raw, bytes: usize, stream: CUstream) -> u64 {
    let mut address = 0;
    let code = call!(raw, cuMemAllocAsync(&mut address => *mut u64, bytes => usize,
        stream => CUstream));
    assert_eq!(code, OK);
    address
}

fn alloc_from(raw: &Raw, bytes: usize, pool: Pool, stream: CUstream) -> Result<u64, u32> {
    let mut address = 0;
    match call!(raw, cuMemAllocFromPoolAsync(&mut address => *mut u64, bytes => usize,
        pool => Pool, stream => CUstream))
    {
        OK => Ok(address),
        code => Err(code),
    }
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

fn set(raw: &Raw, pool: Pool, attribute: u32, mut value: u64) -> u32 {
    let place = std::ptr::from_mut(&mut value).cast();
    call!(raw, cuMemPoolSetAttribute(pool => Pool, attribute => u32, place => *mut c_void))
}

fn fill(raw: &Raw, address: u64, words: usize, stream: CUstream) -> u32 {
    unsafe { (raw.cuMemsetD32Async)(address, 7, words, stream) }.0
}

/// The memory is there until its stream has come so far, for other streams too.
#[test]
fn memory_is_freed_in_stream_order() {
    // What it does is not ordered.
    let raw = Raw::planting(SoftDriver::builder());
    let (stream, other) = (raw.stream(NON_BLOCKING), raw.stream(NON_BLOCKING));
    let address = alloc(&raw, 64, stream);
    let latch = raw.latch(stream);
    assert_eq!(fill(&raw, address, 16, stream), OK);
    assert_eq!(free(&raw, address, stream), OK);
    assert_eq!(free(&raw, address, stream), INVALID_VALUE, "it is freed already");
    assert_eq!(unsafe { (raw.cuMemFree_v2)(address) }.0, INVALID_VALUE);
    assert_eq!(raw.soft.live().allocations, 0, "there is nothing left to do");
    // Work that comes before the free, by what the streams wait for.
    assert_eq!(fill(&raw, address, 16, other), OK);
    raw.sync(other);
    latch.release();
    raw.sync(stream);
    assert_eq!(fill(&raw, address, 16, other), INVALID_VALUE);
    // What was allocated otherwise, and what is freed otherwise.
    let mut plain = 0;
    assert_eq!(unsafe { (raw.cuMemAlloc_v2)(&mut plain, 64) }.0, OK);
    assert_eq!(free(&raw, plain, stream), OK);
    let pooled = alloc(&raw, 64, stream);
    assert_eq!(unsafe { (raw.cuMemFree_v2)(pooled) }.0, OK);
    assert_eq!(free(&raw, pooled, stream), INVALID_VALUE);
    assert_eq!(free(&raw, 0, stream), OK);
    let mut pinned = null_mut();
    assert_eq!(unsafe { (raw.cuMemHostAlloc)(&mut pinned, 64, 0) }.0, OK);
    assert_eq!(free(&raw, pinned.expose_provenance() as u64, stream), INVALID_VALUE);
    assert_eq!(unsafe { (raw.cuMemFreeHost)(pinned) }.0, OK);
}

#[test]
fn the_pools_of_a_device() {
    let raw = Raw::with(SoftDriver::builder().devices(2));
    let get = |device: i32, default: bool| {
        let mut pool = null_mut();
        let code = if default {
            call!(raw, cuDeviceGetDefaultMemPool(&mut pool => *mut Pool, device => i32))
        } else {
            call!(raw, cuDeviceGetMemPool(&mut pool => *mut Pool, device => i32))
        };
        assert_eq!(code, OK);
        pool
    };
    let set_pool =
        |device: i32, pool: Pool| call!(raw, cuDeviceSetMemPool(device => i32, pool => Pool));
    let default = get(0, true);
    assert_eq!(get(0, false), default);
    assert_ne!(get(1, true), default);
    assert_eq!(destroy(&raw, default), INVALID_VALUE);
    let own = create(&raw, &props(0)).unwrap();
    assert_eq!(set_pool(1, own), INVALID_VALUE, "of another device");
    assert_eq!(set_pool(0, own), OK);
    assert_eq!((get(0, false), get(0, true)), (own, default));
    let stream = raw.stream(NON_BLOCKING);
    let address = alloc(&raw, 1000, stream);
    assert_eq!(attribute(&raw, own, 7), Ok(1024));
    assert_eq!(attribute(&raw, default, 7), Ok(0));
    let (mut of, mut place) = (null_mut::<c_void>(), location(0));
    let pointer = std::ptr::from_mut(&mut of).cast();
    let asked = call!(raw, cuPointerGetAttribute(pointer => *mut c_void, 17 => u32,
        address => u64));
    assert_eq!((asked, of), (OK, own));
    // The forms that name a place.
    let mut pool = null_mut();
    let code = call!(raw, cuMemGetMemPool(&mut pool => *mut Pool, &mut place => *mut Location,
        1 => u32));
    assert_eq!((code, pool), (OK, own));
    let code = call!(raw, cuMemSetMemPool(&mut place => *mut Location, 1 => u32,
        default => Pool));
    assert_eq!((code, get(0, false)), (OK, default));
    let code = call!(raw, cuMemGetDefaultMemPool(&mut pool => *mut Pool,
        &mut place => *mut Location, 2 => u32));
    assert_eq!(code, NOT_SUPPORTED, "managed");
    // A pool that is destroyed lives as long as its memory, and the device is back to its own.
    assert_eq!(set_pool(0, own), OK);
    assert_eq!(destroy(&raw, own), OK);
    assert_eq!(get(0, false), default);
    assert_eq!(destroy(&raw, own), INVALID_VALUE);
    assert_eq!(alloc_from(&raw, 16, own, stream), Err(INVALID_VALUE));
    assert_eq!(fill(&raw, address, 250, stream), OK);
    assert_eq!(free(&raw, address, stream), OK);
    raw.sync(stream);
}

#[test]
fn what_a_pool_counts_and_keeps() {
    const CHUNK: u64 = 2 << 20;
    let raw = Raw::new();
    let stream = raw.stream(NON_BLOCKING);
    let pool = create(&raw, &props(0)).unwrap();
    let all = || (1..=8).map(|which| attribute(&raw, pool, which).unwrap()).collect::<Vec<_>>();
    assert_eq!(all(), [1, 1, 1, 0, 0, 0, 0, 0]);
    assert_eq!((attribute(&raw, pool, 0), attribute(&raw, pool, 99)), (Err(1), Err(1)));
    let address = alloc_from(&raw, 3 << 20, pool, stream).unwrap();
    assert_eq!(all()[4..], [2 * CHUNK, 2 * CHUNK, 3 << 20, 3 << 20]);
    assert_eq!(set(&raw, pool, 4, CHUNK), OK);
    assert_eq!(free(&raw, address, stream), OK);
    raw.sync(stream);
    assert_eq!(all()[3..], [CHUNK, CHUNK, 2 * CHUNK, 0, 3 << 20]);
    assert_eq!(call!(raw, cuMemPoolTrimTo(pool => Pool, 0 => usize)), OK);
    assert_eq!((set(&raw, pool, 6, 0), set(&raw, pool, 8, 0)), (OK, OK));
    assert_eq!(all(), [1, 1, 1, CHUNK, 0, 0, 0, 0]);
    for (which, value) in [(5, 0), (6, 1), (7, 0), (8, 1), (99, 0)] {
        assert_eq!(set(&raw, pool, which, value), INVALID_VALUE, "attribute {which}");
    }
    assert_eq!(set(&raw, pool, 2, 0), OK);
    assert_eq!(attribute(&raw, pool, 2), Ok(0));
    // It is memory of the device.
    let (mut before, mut after, mut total) = (0, 0, 0);
    let info = |free: &mut usize, total: &mut usize| {
        assert_eq!(call!(raw, cuMemGetInfo_v2(free => *mut usize, total => *mut usize)), OK);
    };
    info(&mut before, &mut total);
    let address = alloc_from(&raw, 4096, pool, stream).unwrap();
    info(&mut after, &mut total);
    assert_eq!(before - after, 4096);
    assert_eq!(free(&raw, address, stream), OK);
    raw.sync(stream);
    info(&mut after, &mut total);
    assert_eq!(before, after);
    assert_eq!(destroy(&raw, pool), OK);
    // One with a limit.
    let limited = create(&raw, &PoolProps { max_size: 4096, ..props(0) }).unwrap();
    let address = alloc_from(&raw, 4096, limited, stream).unwrap();
    assert_eq!(alloc_from(&raw, 1, limited, stream), Err(OUT_OF_MEMORY));
    assert_eq!(free(&raw, address, stream), OK);
    raw.sync(stream);
    assert!(alloc_from(&raw, 1, limited, stream).is_ok());
}

#[test]
fn what_makes_no_pool() {
    let raw = Raw::new();
    let on = |kind, id| PoolProps { location: Location { kind, id }, ..props(0) };
    for (props, code) in [
        (PoolProps { alloc_type: 0, ..props(0) }, INVALID_VALUE),
        (PoolProps { alloc_type: 2, ..props(0) }, NOT_SUPPORTED),
        (on(ON_DEVICE, 7), INVALID_VALUE),
        (on(0, 0), INVALID_VALUE),
        (on(2, 0), NOT_SUPPORTED),
        (props(8), NOT_PERMITTED),
        (props(2), NOT_SUPPORTED),
        (props(16), INVALID_VALUE),
    ] {
        assert_eq!(create(&raw, &props), Err(code), "{props:?}");
    }
    let stream = raw.stream(NON_BLOCKING);
    assert_eq!(alloc(&raw, 0, stream), 0);
    // Attributes say so.
    let value = |which| {
        let mut value = 77;
        let attribute = CUdevice_attribute(which);
        assert_eq!(unsafe { (raw.cuDeviceGetAttribute)(&mut value, attribute, 0) }.0, OK);
        value
    };
    assert_eq!([103, 115, 119].map(value), [1, 1, 9]);
    let alone = Raw::with(SoftDriver::builder().ipc(false));
    let mut value = 77;
    let attribute = CUdevice_attribute(103);
    assert_eq!(unsafe { (alone.cuDeviceGetAttribute)(&mut value, attribute, 0) }.0, OK);
    assert_eq!((value, create(&alone, &props(1))), (0, Err(NOT_SUPPORTED)));
}

#[test]
fn access_of_other_devices() {
    let raw = Raw::with(SoftDriver::builder().devices(2));
    let pool = create(&raw, &props(0)).unwrap();
    let set = |id, flags| {
        let description = AccessDesc { location: location(id), flags };
        call!(raw, cuMemPoolSetAccess(pool => Pool, &description => *const AccessDesc,
            1 => usize))
    };
    let get = |id| {
        let (mut flags, mut place) = (77, location(id));
        let code = call!(raw, cuMemPoolGetAccess(&mut flags => *mut u32, pool => Pool,
            &mut place => *mut Location));
        assert_eq!(code, OK);
        flags
    };
    assert_eq!((get(0), get(1)), (3, 0));
    assert_eq!((set(1, 3), get(1)), (OK, 3));
    assert_eq!((set(1, 0), get(1)), (OK, 0));
    assert_eq!(set(0, 0), INVALID_VALUE, "its own device");
    assert_eq!(set(1, 2), INVALID_VALUE);
    assert_eq!(set(2, 3), 101);
}

/// By a descriptor and by what names the memory. The two drivers are those of two processes.
#[test]
#[cfg(target_os = "linux")]
fn a_pool_for_another_process() {
    use cuda_soft_driver::abi::PoolPointer;
    let (exporter, importer) = (Raw::new(), Raw::new());
    let (there, here) = (exporter.stream(NON_BLOCKING), importer.stream(NON_BLOCKING));
    let pool = create(&exporter, &props(1)).unwrap();
    let address = alloc_from(&exporter, 64, pool, there).unwrap();
    assert_eq!(fill(&exporter, address, 16, there), OK);
    exporter.sync(there);
    let mut descriptor = -1;
    let place = std::ptr::from_mut(&mut descriptor).cast();
    let export = |raw: &Raw, pool: Pool, kind: u32| {
        call!(raw, cuMemPoolExportToShareableHandle(place => *mut c_void, pool => Pool,
            kind => u32, 0 => u64))
    };
    assert_eq!(export(&exporter, create(&exporter, &props(0)).unwrap(), 1), INVALID_VALUE);
    assert_eq!(export(&exporter, pool, 8), INVALID_VALUE);
    assert_eq!(export(&exporter, pool, 1), OK);
    assert!(descriptor >= 0);
    let import = |handle: i32| {
        let mut pool = null_mut();
        let handle = std::ptr::without_provenance_mut(handle as usize);
        let code = call!(importer, cuMemPoolImportFromShareableHandle(&mut pool => *mut Pool,
            handle => *mut c_void, 1 => u32, 0 => u64));
        (code, pool)
    };
    assert_eq!(import(9999).0, INVALID_VALUE);
    let (code, imported) = import(descriptor);
    assert_eq!(code, OK);
    unsafe { libc::close(descriptor) };
    let mut data = PoolPointer { reserved: [0; 64] };
    let name = |of: u64, data: &mut PoolPointer| {
        let raw = &exporter;
        call!(raw, cuMemPoolExportPointer(data => *mut PoolPointer, of => u64))
    };
    let mut plain = 0;
    assert_eq!(unsafe { (exporter.cuMemAlloc_v2)(&mut plain, 64) }.0, OK);
    assert_eq!(name(plain, &mut data), INVALID_VALUE);
    assert_eq!(name(address, &mut data), OK);
    let open = |pool: Pool, data: &PoolPointer| {
        let mut address = 0;
        let code = call!(importer, cuMemPoolImportPointer(&mut address => *mut u64,
            pool => Pool, data => *const PoolPointer));
        (code, address)
    };
    let own = create(&importer, &props(1)).unwrap();
    assert_eq!(open(own, &data).0, INVALID_VALUE, "not an imported one");
    assert_eq!(open(imported, &PoolPointer { reserved: [0; 64] }).0, INVALID_VALUE);
    let (code, opened) = open(imported, &data);
    assert_eq!(code, OK);
    assert_eq!(alloc_from(&importer, 64, imported, here), Err(INVALID_VALUE));
    let word = std::ptr::with_exposed_provenance_mut::<u32>(opened as usize);
    assert_eq!(unsafe { word.read_volatile() }, 7);
    unsafe { word.write_volatile(9) };
    let other = std::ptr::with_exposed_provenance::<u32>(address as usize);
    assert_eq!(unsafe { other.read_volatile() }, 9);
    assert_eq!(free(&importer, opened, here), OK);
    importer.sync(here);
    assert_eq!(destroy(&importer, imported), OK);
    assert_eq!(free(&exporter, address, there), OK);
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
