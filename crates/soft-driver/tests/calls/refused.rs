//! What calls refuse because of what they are called for, not of an argument that is no value.

use crate::common;

use std::ffi::c_void;
use std::ptr::null_mut;

use common::*;
use cuda_events::sys::*;
use cuda_soft_driver::{Builder, SoftDriver};

const INVALID_CONTEXT: u32 = 201;
const NOT_REGISTERED: u32 = 713;

fn context(raw: &Raw) -> CUcontext {
    let mut context = null_mut();
    assert_eq!(unsafe { (raw.cuCtxCreate_v2)(&mut context, 0, 0) }.0, OK);
    context
}

/// A stream that captures refuses what no graph can have, and its capture goes on.
#[test]
fn a_capture_refuses_what_no_graph_has() {
    let raw = Raw::new();
    let stream = raw.stream(1);
    let (mut managed, mut device) = (0_u64, 0_u64);
    let code = call!(raw, cuMemAllocManaged(&mut managed => *mut u64, 64 => usize, 1 => u32));
    assert_eq!(code, OK);
    let code = call!(raw, cuMemAllocAsync(&mut device => *mut u64, 64 => usize,
        stream => CUstream));
    assert_eq!(code, OK);
    raw.sync(stream);
    let attach = || {
        call!(raw, cuStreamAttachMemAsync(stream => CUstream, managed => u64,
        0 => usize, 4 => u32))
    };
    let prefetch = || {
        call!(raw, cuMemPrefetchAsync(managed => u64, 64 => usize, 0 => i32,
        stream => CUstream))
    };
    let free = || call!(raw, cuMemFreeAsync(device => u64, stream => CUstream));
    // Of the whole thread nothing is unsafe.
    let begun = unsafe { (raw.cuStreamBeginCapture_v2)(stream, CUstreamCaptureMode(2)) };
    assert_eq!(begun.0, OK);
    assert_eq!((attach(), prefetch(), free()), (NOT_SUPPORTED, NOT_SUPPORTED, INVALID_VALUE));
    let mut graph = null_mut();
    assert_eq!(unsafe { (raw.cuStreamEndCapture)(stream, &mut graph) }.0, OK);
    assert_eq!((attach(), prefetch(), free()), (OK, OK, OK));
}

/// Each of these ends or gives back what another call made.
#[test]
fn memory_is_given_back_by_the_call_for_its_kind() {
    let raw = Raw::new();
    let mut pinned: *mut c_void = null_mut();
    assert_eq!(unsafe { (raw.cuMemHostAlloc)(&mut pinned, 4096, 0) }.0, OK);
    let mut words = vec![0_u64; 1024];
    let own = words.as_mut_ptr().cast::<c_void>();
    let register = || call!(raw, cuMemHostRegister_v2(own => *mut c_void, 4096 => usize, 0 => u32));
    let unregister = |at| call!(raw, cuMemHostUnregister(at => *mut c_void));
    let free = |at| call!(raw, cuMemFreeHost(at => *mut c_void));
    assert_eq!(unregister(own), NOT_REGISTERED);
    assert_eq!(register(), OK);
    assert_eq!(free(own), INVALID_VALUE);
    assert_eq!(unregister(pinned), NOT_REGISTERED);
    assert_eq!(unregister(own.wrapping_byte_add(8)), NOT_REGISTERED);
    assert_eq!((unregister(own), unregister(own)), (OK, NOT_REGISTERED));
    assert_eq!((register(), unregister(own)), (OK, OK));
    assert_eq!(free(pinned), OK);
}

#[test]
fn contexts_refuse_what_is_not_theirs() {
    let raw = Raw::with(SoftDriver::builder().devices(2));
    let primary = raw.retain(0);
    let other = raw.retain(1);
    let destroy = |context| call!(raw, cuCtxDestroy_v2(context => CUcontext));
    assert_eq!((destroy(null_mut()), destroy(primary)), (INVALID_VALUE, INVALID_CONTEXT));
    let enable = |context, flags: u32| {
        call!(raw, cuCtxEnablePeerAccess(context => CUcontext,
        flags => u32))
    };
    let disable = |context| call!(raw, cuCtxDisablePeerAccess(context => CUcontext));
    assert_eq!((enable(null_mut(), 0), disable(null_mut())), (INVALID_CONTEXT, INVALID_CONTEXT));
    assert_eq!((enable(other, 1), enable(primary, 0)), (INVALID_VALUE, 217));
    assert_eq!(disable(other), 705);
    assert_eq!((enable(other, 0), enable(other, 0)), (OK, 704));
    assert_eq!((disable(other), disable(other)), (OK, 705));
    raw.set_current(primary);

    // A capture's event is no end of work.
    let (stream, event) = (raw.stream(1), raw.event(0));
    let begun = unsafe { (raw.cuStreamBeginCapture_v2)(stream, CUstreamCaptureMode(2)) };
    assert_eq!(begun.0, OK);
    raw.record(event, stream);
    let own = context(&raw);
    raw.set_current(primary);
    let wait = || call!(raw, cuCtxWaitEvent(own => CUcontext, event => CUevent));
    assert_eq!(wait(), INVALID_VALUE);
    let mut graph = null_mut();
    assert_eq!(unsafe { (raw.cuStreamEndCapture)(stream, &mut graph) }.0, OK);
    raw.record(event, stream);
    assert_eq!(wait(), OK);
    assert_eq!(destroy(own), OK);
}

/// Only a device has access to memory that it can be given. Memory can be mapped on Linux only.
#[cfg(target_os = "linux")]
#[test]
fn access_to_mapped_memory_is_for_devices() {
    use cuda_events_test_support::pools::{allocation, location};
    use cuda_soft_driver::abi::{CUmemAccessDesc, CUmemAllocationProp, CUmemLocationType};

    const PIECE: usize = 2 << 20;
    let raw = Raw::new();
    let (mut at, mut handle) = (0_u64, 0_u64);
    let code = call!(raw, cuMemAddressReserve(&mut at => *mut u64, PIECE => usize, 0 => usize,
        0 => u64, 0 => u64));
    assert_eq!(code, OK);
    let code = call!(raw, cuMemCreate(&mut handle => *mut u64, PIECE => usize,
        &allocation() => *const CUmemAllocationProp, 0 => u64));
    assert_eq!(code, OK);
    let code = call!(raw, cuMemMap(at => u64, PIECE => usize, 0 => usize, handle => u64,
        0 => u64));
    assert_eq!(code, OK);
    for (type_, id, expected) in [
        (CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE, 0, OK),
        (CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE, 1, INVALID_VALUE),
        (CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE, -1, INVALID_VALUE),
        (CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST, 0, INVALID_VALUE),
    ] {
        let mut place = location(0);
        (place.type_, place.id) = (type_, id);
        let access = CUmemAccessDesc { location: place, flags: 3 };
        let code = call!(raw, cuMemSetAccess(at => u64, PIECE => usize,
            &access => *const CUmemAccessDesc, 1 => usize));
        assert_eq!(code, expected, "{type_:?} {id}");
    }
    // Nothing is left of memory for which there was no place.
    let free = || {
        let (mut free, mut total) = (0, 0);
        assert_eq!(unsafe { (raw.cuMemGetInfo_v2)(&mut free, &mut total) }.0, OK);
        free
    };
    let before = free();
    let code = call!(raw, cuMemCreate(null_mut() => *mut u64, PIECE => usize,
        &allocation() => *const CUmemAllocationProp, 0 => u64));
    assert_eq!((code, free()), (INVALID_VALUE, before));
}

/// Without processes that share, all that is for other processes says so.
#[test]
fn what_is_for_other_processes_can_be_off() {
    for (setting, is_on) in [("ipc=on", true), ("ipc=off", false)] {
        if is_on && !cfg!(target_os = "linux") {
            continue;
        }
        let raw = Raw::with(Builder::from_text(setting).expect("a setting"));
        let flags = if is_on { CU_EVENT_INTERPROCESS } else { 0 };
        let event = raw.event(CU_EVENT_DISABLE_TIMING | flags);
        let mut handle = CUipcEventHandle { reserved: [0; 64] };
        let code = unsafe { (raw.cuIpcGetEventHandle)(&mut handle, event) }.0;
        assert_eq!(code, if is_on { OK } else { NOT_SUPPORTED }, "{setting}");
        let mut opened = null_mut();
        let code = unsafe { (raw.cuIpcOpenEventHandle)(&mut opened, handle) }.0;
        assert_eq!(code == NOT_SUPPORTED, !is_on, "{setting}: {code}");
    }
}
