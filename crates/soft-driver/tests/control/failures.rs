//! Contexts that fail.

use crate::common;

use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use common::*;
use cuda_events::sys::*;
use cuda_soft_driver::SoftDriver;

use crate::faults::fault;

const NO_TIMING: u32 = CU_EVENT_DISABLE_TIMING;

#[test]
fn contexts_do_not_fail_with_what_is_no_failure() {
    let raw = Raw::new();
    for code in [OK, NOT_READY] {
        let fails = std::panic::AssertUnwindSafe(|| raw.soft.fail_contexts(CUresult(code)));
        assert!(std::panic::catch_unwind(fails).is_err(), "{code}");
    }
    let event = raw.event(0);
    assert_eq!(raw.elapsed(event, event), Err(INVALID_HANDLE), "it works as before");
}

#[test]
fn a_context_that_failed_stays_so() {
    let raw = Raw::new();
    let (stream, waiting) = (raw.stream(1), raw.stream(1));
    let (event, done) = (raw.event(NO_TIMING), raw.event(NO_TIMING));
    raw.record(done, stream);
    let ran = Arc::new(Mutex::new(Vec::new()));
    let latch = raw.latch(stream);
    latch.reached();
    let notes = ran.clone();
    raw.host(stream, move || notes.lock().unwrap().push("a host function"));
    static STATUS: Mutex<Option<u32>> = Mutex::new(None);
    unsafe extern "C" fn callback(_: CUstream, status: CUresult, _: *mut std::ffi::c_void) {
        *STATUS.lock().unwrap() = Some(status.0);
    }
    assert_eq!(
        unsafe { raw.cuStreamAddCallback.unwrap()(stream, Some(callback), null_mut(), 0) }.0,
        OK
    );
    raw.record(event, stream);
    raw.wait(waiting, event);
    raw.soft.fail_contexts(CUresult(719));
    latch.release();
    let mut out = null_mut();
    unsafe {
        assert_eq!(raw.query(done), 719);
        assert_eq!((raw.cuEventSynchronize)(event).0, 719);
        assert_eq!((raw.cuStreamQuery)(stream).0, 719);
        assert_eq!((raw.cuEventCreate)(&mut out, 0).0, 719);
        assert_eq!((raw.cuStreamSynchronize)(legacy()).0, 719);
        assert_eq!((raw.cuEventDestroy_v2)(event).0, 719);
        let mut context = null_mut();
        assert_eq!((raw.cuCtxGetCurrent)(&mut context).0, OK);
        assert_eq!((raw.cuCtxSetCurrent)(context).0, OK);
        while STATUS.lock().unwrap().is_none() {
            std::thread::yield_now();
        }
        assert_eq!(*STATUS.lock().unwrap(), Some(719), "callbacks are told");
        assert!(ran.lock().unwrap().is_empty(), "host functions are left out");
        assert_eq!((raw.cuDevicePrimaryCtxRelease_v2)(0).0, OK);
        assert_eq!(
            (raw.cuDevicePrimaryCtxRetain)(&mut context, 0).0,
            719,
            "only a new process can use CUDA again"
        );
    }
    // The same by a fault: the call's own context.
    let raw = Raw::new();
    let event = raw.event(0);
    raw.soft.inject(fault("cuEventRecord", 700).once().fails_context());
    assert_eq!(unsafe { (raw.cuEventRecord)(event, legacy()) }.0, 700);
    assert_eq!(raw.query(event), 700);
}

#[test]
fn a_failure_wakes_those_that_wait_for_ever() {
    // Often, for the failure may come before the thread waits.
    for _ in 0..50 {
        let raw = Raw::new();
        let (held, stream) = (raw.stream(1), raw.stream(1));
        let event = raw.event(NO_TIMING);
        let latch = raw.latch(held);
        latch.reached();
        raw.record(event, held);
        raw.wait(stream, event);
        std::thread::scope(|scope| {
            let (raw, stream, before) = (&raw, stream.expose_provenance(), raw.soft.calls());
            let stream = move || std::ptr::with_exposed_provenance_mut(stream);
            let waiting = scope.spawn(move || unsafe { (raw.cuStreamSynchronize)(stream()) }.0);
            while raw.soft.calls() == before {
                std::thread::yield_now();
            }
            raw.soft.fail_contexts(CUresult(719));
            assert_eq!(waiting.join().unwrap(), 719);
        });
        latch.release();
    }
}

#[test]
fn the_context_of_the_call_is_the_one_that_fails() {
    // With the other one current, and with none.
    for other in [true, false] {
        let raw = Raw::with(SoftDriver::builder().devices(2));
        let [first, second] = [0, 1].map(|device| {
            raw.set_current(raw.retain(device));
            (raw.event(NO_TIMING), raw.stream(1))
        });
        if !other {
            raw.set_current(null_mut());
        }
        raw.soft.inject(fault("cuEventQuery", 719).once().fails_context());
        assert_eq!(raw.query(first.0), 719);
        assert_eq!(raw.query(first.0), 719);
        assert_eq!(raw.query(second.0), OK, "the other device's");
        assert_eq!(unsafe { (raw.cuStreamQuery)(first.1) }.0, 719);
        assert_eq!(unsafe { (raw.cuStreamQuery)(second.1) }.0, OK);
    }
}

#[test]
fn after_an_error_held_functions_are_left_out() {
    let raw = Raw::new();
    let stream = raw.stream(0);
    let ran = Arc::new(Mutex::new(false));
    let note = ran.clone();
    raw.soft.hold_host_functions(true);
    raw.host(stream, move || *note.lock().unwrap() = true);
    raw.soft.fail_contexts(CUresult(719));
    raw.soft.hold_host_functions(false);
    // Another context works, and its host functions come after.
    let mut other = null_mut();
    assert_eq!(unsafe { (raw.cuCtxCreate_v2)(&mut other, 0, 0) }.0, OK);
    let healthy = raw.stream(0);
    raw.host(healthy, || {});
    raw.sync(healthy);
    assert!(!*ran.lock().unwrap());
}

#[test]
fn nothing_is_held_back_in_a_context_that_failed() {
    let raw = Raw::new();
    let (stream, event) = (raw.stream(0), raw.event(NO_TIMING));
    let ran = Arc::new(AtomicBool::new(false));
    let note = ran.clone();
    static STATUS: Mutex<Option<u32>> = Mutex::new(None);
    unsafe extern "C" fn callback(_: CUstream, status: CUresult, _: *mut std::ffi::c_void) {
        *STATUS.lock().unwrap() = Some(status.0);
    }
    raw.soft.hold_host_functions(true);
    raw.host(stream, move || note.store(true, Ordering::SeqCst));
    // Long enough for the driver's thread to have seen it, and to wait.
    let (mut memory, other) = (0, raw.stream(1));
    assert_eq!(unsafe { (raw.cuMemAlloc_v2)(&mut memory, 64) }.0, OK);
    for _ in 0..500 {
        assert_eq!(unsafe { (raw.cuMemsetD8Async)(memory, 1, 64, other) }.0, OK);
        raw.sync(other);
    }
    // The memory goes with its context: a free waits for all work, and so for what is held.
    assert_eq!(
        unsafe { raw.cuStreamAddCallback.unwrap()(stream, Some(callback), null_mut(), 0) }.0,
        OK
    );
    raw.record(event, stream);
    raw.soft.fail_contexts(CUresult(719));
    // A thread that waits for the streams is not held either, the last release above all.
    let release = raw.cuDevicePrimaryCtxRelease_v2;
    assert_eq!(begin(move || unsafe { release(0) }.0).join(), OK);
    assert_eq!(*STATUS.lock().unwrap(), Some(719), "callbacks are told");
    assert!(!ran.load(Ordering::SeqCst), "functions are left out");
    // In a context that works they are held all the same, and it does not wait for the failed one.
    let mut other = null_mut();
    assert_eq!(unsafe { (raw.cuCtxCreate_v2)(&mut other, 0, 0) }.0, OK);
    let healthy = raw.stream(0);
    let note = ran.clone();
    raw.host(healthy, move || note.store(true, Ordering::SeqCst));
    assert!(raw.busy(healthy));
    raw.soft.hold_host_functions(false);
    raw.sync(healthy);
    assert!(ran.load(Ordering::SeqCst));
}
