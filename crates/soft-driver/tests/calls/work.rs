//! A context that failed, and memory: what no GPU shows.

use crate::common;

use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, Ordering};

use common::*;
use cuda_events::sys::*;
use cuda_soft_driver::SoftDriver;

/// What was submitted before the failure, too.
#[test]
fn a_context_that_has_failed_never_writes_a_value() {
    extern "C" fn set(_: CUstream, _: CUresult, called: *mut c_void) {
        // SAFETY: the counter that is passed with it.
        unsafe { &*called.cast::<AtomicU32>() }.store(1, Ordering::SeqCst);
    }
    let raw = Raw::new();
    let stream = raw.stream(1);
    let called = AtomicU32::new(0);
    let mut word = 0;
    unsafe {
        assert_eq!((raw.cuMemAlloc_v2)(&mut word, 8).0, OK);
        let value = || *std::ptr::with_exposed_provenance::<u64>(word as usize);
        let write = raw.cuStreamWriteValue64_v2.unwrap();
        assert_eq!(write(stream, word, 1, 0).0, OK);
        raw.sync(stream);
        assert_eq!(value(), 1);
        let latch = raw.latch(stream);
        latch.reached();
        assert_eq!(write(stream, word, 2, 0).0, OK);
        // Callbacks are called after a failure, too.
        let place = std::ptr::from_ref(&called).cast_mut().cast();
        assert_eq!(raw.cuStreamAddCallback.unwrap()(stream, Some(set), place, 0).0, OK);
        raw.soft.fail_contexts(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
        latch.release();
        assert_eq!(write(stream, word, 3, 0), CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
        while called.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        assert_eq!(value(), 1);
    }
}

#[test]
fn the_memory_of_a_device_is_as_much_as_configured() {
    let raw = Raw::with(SoftDriver::builder().memory(1 << 20));
    let (mut address, mut free, mut total) = (0, 0, 0);
    unsafe {
        assert_eq!((raw.cuMemAlloc_v2)(&mut address, 4096).0, OK);
        assert_eq!((raw.cuMemGetInfo_v2)(&mut free, &mut total).0, OK);
        assert_eq!((free, total), ((1 << 20) - 4096, 1 << 20));
        assert_eq!((raw.cuMemAlloc_v2)(&mut address, 1 << 20).0, OUT_OF_MEMORY);
    }
}

/// Streams have their attributes from others of their context alone.
#[test]
fn attributes_are_copied_within_a_context() {
    let raw = Raw::with(SoftDriver::builder().devices(2));
    let [here, there] = [0, 1].map(|device| raw.retain(device));
    let copy = raw.cuStreamCopyAttributes.unwrap();
    let synchronize = CUstreamAttrID(3);
    let policy = |stream| {
        let mut value = CUstreamAttrValue { syncPolicy: CUsynchronizationPolicy(0) };
        let code = unsafe { raw.cuStreamGetAttribute.unwrap()(stream, synchronize, &mut value) };
        (code.0, unsafe { value.syncPolicy })
    };
    raw.set_current(there);
    let other = raw.stream(1);
    raw.set_current(here);
    let (from, to) = (raw.stream(1), raw.stream(1));
    let before = policy(to);
    let spin = CUstreamAttrValue { syncPolicy: CUsynchronizationPolicy(2) };
    let set = raw.cuStreamSetAttribute.unwrap();
    assert_eq!(unsafe { set(from, synchronize, &spin) }.0, OK);
    assert_eq!(unsafe { copy(other, from) }.0, INVALID_VALUE);
    assert_eq!([policy(other), policy(to)], [before; 2]);
    assert_eq!(unsafe { copy(to, from) }.0, OK);
    assert_eq!(policy(to), (OK, CUsynchronizationPolicy(2)));
}

/// The flags of a primary context are set before it is made, or while it is retained.
#[test]
fn a_primary_contexts_flags_are_set_at_any_time() {
    let raw = Raw::with(SoftDriver::builder().devices(2));
    let set = |flags: u32| {
        let code = call!(raw, cuDevicePrimaryCtxSetFlags_v2(1 => i32, flags => u32));
        assert_eq!(code, OK);
    };
    let state = || {
        let (mut flags, mut active) = (77, 77);
        let code = unsafe { (raw.cuDevicePrimaryCtxGetState)(1, &mut flags, &mut active) };
        assert_eq!(code.0, OK);
        (flags, active)
    };
    let current = || {
        let mut flags = 77;
        assert_eq!(call!(raw, cuCtxGetFlags(&mut flags => *mut u32)), OK);
        flags
    };
    assert_eq!(state(), (0, 0));
    set(4);
    assert_eq!(state(), (4, 0));
    raw.set_current(raw.retain(1));
    assert_eq!((state(), current()), ((4, 1), 4 | 8));
    set(1);
    assert_eq!((state(), current()), ((1, 1), 1 | 8));
    assert_eq!(unsafe { (raw.cuDevicePrimaryCtxRelease_v2)(1) }.0, OK);
    set(2);
    assert_eq!(state(), (2, 0));
}
