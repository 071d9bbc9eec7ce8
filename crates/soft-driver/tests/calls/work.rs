//! Streams, events, host functions and memory.

use crate::common;

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use common::*;
use cuda_events::sys::*;
use cuda_soft_driver::SoftDriver;

const NO_TIMING: u32 = CU_EVENT_DISABLE_TIMING;

#[test]
fn work_in_a_stream_is_done_in_order_and_asynchronously() {
    let raw = Raw::new();
    let stream = raw.stream(0);
    let order = Arc::new(Mutex::new(Vec::new()));
    let latch = raw.latch(stream);
    for number in 0..10 {
        let order = order.clone();
        raw.host(stream, move || order.lock().unwrap().push(number));
    }
    latch.reached();
    assert!(raw.busy(stream));
    assert!(order.lock().unwrap().is_empty());
    latch.release();
    raw.sync(stream);
    assert!(!raw.busy(stream));
    assert_eq!(*order.lock().unwrap(), (0..10).collect::<Vec<_>>());
}

/// What was submitted before the failure, too.
#[test]
fn a_context_that_has_failed_never_writes_a_value() {
    extern "C" fn tell(_: CUstream, _: CUresult, told: *mut c_void) {
        // SAFETY: the counter that is passed with it.
        unsafe { &*told.cast::<AtomicU32>() }.store(1, Ordering::SeqCst);
    }
    let raw = Raw::new();
    let stream = raw.stream(1);
    let told = AtomicU32::new(0);
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
        let place = std::ptr::from_ref(&told).cast_mut().cast();
        assert_eq!((raw.cuStreamAddCallback)(stream, Some(tell), place, 0).0, OK);
        raw.soft.fail_contexts(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
        latch.release();
        assert_eq!(write(stream, word, 3, 0), CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
        while told.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        assert_eq!(value(), 1);
    }
}

#[test]
fn a_wait_keeps_the_record_it_saw() {
    let raw = Raw::new();
    let (held, waiting, idle) = (raw.stream(1), raw.stream(1), raw.stream(1));
    let event = raw.event(NO_TIMING);
    assert_eq!(raw.query(event), OK, "never recorded");
    let latch = raw.latch(held);
    raw.record(event, held);
    raw.wait(waiting, event);
    assert_eq!(raw.query(event), NOT_READY);
    raw.record(event, idle);
    assert_eq!(raw.query(event), OK, "re-recorded on an idle stream");
    assert!(raw.busy(waiting), "the wait keeps the first record");
    assert_eq!(unsafe { (raw.cuEventDestroy_v2)(event) }.0, OK);
    assert!(raw.busy(waiting), "also when the event is gone");
    latch.release();
    raw.sync(waiting);
}

#[test]
fn elapsed_time() {
    let raw = Raw::new();
    let stream = raw.stream(0);
    let (start, end, plain) = (raw.event(0), raw.event(0), raw.event(NO_TIMING));
    assert_eq!(raw.elapsed(start, end), Err(INVALID_HANDLE), "never recorded");
    raw.record(start, stream);
    raw.record(plain, stream);
    assert_eq!(raw.elapsed(start, plain), Err(INVALID_HANDLE), "no timing");
    let latch = raw.latch(stream);
    raw.record(end, stream);
    assert_eq!(raw.elapsed(start, end), Err(NOT_READY));
    latch.release();
    assert_eq!(unsafe { (raw.cuEventSynchronize)(end) }.0, OK);
    let time = raw.elapsed(start, end).unwrap();
    assert!(time > 0.0);
    assert_eq!(raw.elapsed(end, start), Ok(-time));
    assert_eq!(raw.elapsed(end, end), Ok(0.0));
    // Short differences, for a number of few digits tells where it lies; a longer one is less
    // exact.
    for _ in 0..100 {
        raw.record(start, stream);
        raw.record(end, stream);
        let ticks = f64::from(raw.elapsed(start, end).unwrap()) * 1e6 / 32.0;
        assert!(
            (ticks - ticks.round()).abs() < 1e-3 + 1e-7 * ticks && ticks.round() >= 1.0,
            "{ticks} ticks are not on a grid of 32 ns"
        );
    }
    raw.record(end, stream);
    let time = raw.elapsed(start, end).unwrap();
    let mut milliseconds = 0.0;
    assert_eq!(unsafe { raw.cuEventElapsedTime_v2.unwrap()(&mut milliseconds, start, end) }.0, OK);
    assert_eq!(milliseconds, time);
    assert_eq!(unsafe { (raw.cuEventElapsedTime)(null_mut(), start, end) }.0, INVALID_HANDLE);
}

#[test]
fn legacy_and_blocking_streams_wait_for_each_other() {
    let raw = Raw::new();
    let (b1, b2, free) = (raw.stream(0), raw.stream(0), raw.stream(CU_STREAM_NON_BLOCKING));
    let event = raw.event(NO_TIMING);
    let latch = raw.latch(b1);
    latch.reached();
    assert!(raw.busy(null_mut()), "query of the legacy stream is about all blocking ones");
    assert!(!raw.busy(b2));
    let done = raw.event(NO_TIMING);
    raw.record(done, free);
    raw.wait(legacy(), done);
    assert!(!raw.busy(b2), "query asks only about what the stream was given");
    raw.record(event, b2);
    assert_eq!(raw.query(event), NOT_READY, "a wait in the legacy stream is an operation");
    raw.record(done, free);
    assert_eq!(raw.query(done), OK, "a non-blocking stream takes no part");
    let mine = raw.event(NO_TIMING);
    raw.record(mine, per_thread());
    assert_eq!(raw.query(mine), NOT_READY, "the per-thread stream is a blocking one");
    latch.release();
    raw.sync(null_mut());
    raw.sync(b2);
    raw.sync(per_thread());
    assert_eq!((raw.query(event), raw.query(mine)), (OK, OK));

    let latch = raw.latch(free);
    latch.reached();
    assert!(!raw.busy(legacy()));
    raw.sync(legacy());
    latch.release();
    raw.sync(free);
}

#[test]
fn host_functions_of_all_streams_run_one_at_a_time() {
    let raw = Raw::new();
    let (one, two) = (raw.stream(1), raw.stream(1));
    let latch = raw.latch(one);
    latch.reached();
    let ran = Arc::new(AtomicU32::new(0));
    let counter = ran.clone();
    raw.host(two, move || {
        counter.fetch_add(1, Ordering::SeqCst);
    });
    assert!(raw.busy(two));
    assert_eq!(ran.load(Ordering::SeqCst), 0);
    latch.release();
    raw.sync(two);
    assert_eq!(ran.load(Ordering::SeqCst), 1);
    // No two of many are ever in their functions at once.
    let inside = Arc::new(AtomicU32::new(0));
    for number in 0..400 {
        let inside = inside.clone();
        raw.host(if number % 2 == 0 { one } else { two }, move || {
            let others = inside.fetch_add(1, Ordering::SeqCst);
            std::thread::yield_now();
            inside.fetch_sub(1 + 1000 * others, Ordering::SeqCst);
        });
    }
    raw.sync(one);
    raw.sync(two);
    assert_eq!(inside.load(Ordering::SeqCst), 0);
}

#[test]
fn callbacks_get_the_stream_and_the_status() {
    static SEEN: Mutex<Option<(usize, u32, usize)>> = Mutex::new(None);
    unsafe extern "C" fn callback(stream: CUstream, status: CUresult, data: *mut c_void) {
        *SEEN.lock().unwrap() = Some((stream.addr(), status.0, data.addr()));
    }
    let raw = Raw::new();
    let stream = raw.stream(0);
    let data = std::ptr::without_provenance_mut(77);
    assert_eq!(
        unsafe { (raw.cuStreamAddCallback)(stream, Some(callback), data, 1) }.0,
        INVALID_VALUE
    );
    assert_eq!(unsafe { (raw.cuStreamAddCallback)(stream, None, data, 0) }.0, INVALID_VALUE);
    assert_eq!(unsafe { (raw.cuStreamAddCallback)(stream, Some(callback), data, 0) }.0, OK);
    raw.sync(stream);
    assert_eq!(*SEEN.lock().unwrap(), Some((stream.addr(), OK, 77)));
}

#[test]
fn what_a_host_function_may_call() {
    let raw = Arc::new(Raw::new());
    let stream = raw.stream(0);
    let event = raw.event(0);
    let answers = Arc::new(Mutex::new(Vec::new()));
    let (inner, answer) = (Arc::as_ptr(&raw).expose_provenance(), answers.clone());
    let handle = event.expose_provenance();
    raw.host(stream, move || {
        // The test waits for this function before it drops the machine.
        let raw = unsafe { &*std::ptr::with_exposed_provenance::<Raw>(inner) };
        let event = std::ptr::with_exposed_provenance_mut(handle);
        let (mut count, mut other, mut context) = (0, null_mut(), null_mut());
        let codes = unsafe {
            [
                (raw.cuEventQuery)(event),
                (raw.cuDriverGetVersion)(&mut count),
                (raw.cuDeviceGetCount)(&mut count),
                (raw.cuEventCreate)(&mut other, 0),
                (raw.cuCtxGetCurrent)(&mut context),
                (raw.cuStreamQuery)(null_mut()),
            ]
        };
        answer.lock().unwrap().extend(codes.map(|code| code.0));
    });
    raw.sync(stream);
    let refused = NOT_PERMITTED;
    assert_eq!(*answers.lock().unwrap(), [OK, OK, refused, refused, refused, refused]);
}

#[test]
fn memory_is_set_and_copied_in_stream_order() {
    // It frees memory that work still uses, on purpose.
    let raw = Raw::planting(SoftDriver::builder().memory(1 << 20));
    let stream = raw.stream(0);
    let (mut a, mut b) = (0, 0);
    unsafe {
        assert_eq!((raw.cuMemAlloc_v2)(&mut a, 4096).0, OK);
        assert_eq!((raw.cuMemAlloc_v2)(&mut b, 4096).0, OK);
        let mut too_much = 0;
        assert_eq!((raw.cuMemAlloc_v2)(&mut too_much, 1 << 20).0, OUT_OF_MEMORY);
        assert_eq!((raw.cuMemAlloc_v2)(&mut too_much, 0).0, INVALID_VALUE);
        let (mut free, mut total) = (0, 0);
        assert_eq!((raw.cuMemGetInfo_v2)(&mut free, &mut total).0, OK);
        assert_eq!((free, total), ((1 << 20) - 8192, 1 << 20));

        let (mut pinned, mut nobodys) = (null_mut(), 0);
        assert_eq!((raw.cuMemHostAlloc)(&mut pinned, 4096, 0).0, OK);
        // Nothing is allocated from here on, so that this is nobody's: what is behind `a` may be
        // `b`.
        assert_eq!((raw.cuMemAlloc_v2)(&mut nobodys, 4096).0, OK);
        assert_eq!((raw.cuMemFree_v2)(nobodys).0, OK);
        let latch = raw.latch(stream);
        let out = std::slice::from_raw_parts(pinned.cast::<u8>(), 4096);
        assert_eq!((raw.cuMemsetD32Async)(a, 0x0403_0201, 1024, stream).0, OK);
        assert_eq!((raw.cuMemsetD8Async)(a, 9, 4, stream).0, OK);
        assert_eq!((raw.cuMemcpyDtoDAsync_v2)(b, a, 4096, stream).0, OK);
        assert_eq!((raw.cuMemcpyDtoHAsync_v2)(pinned, b, 4096, stream).0, OK);
        assert_eq!((raw.cuMemcpyDtoDAsync_v2)(b, a, 4097, stream).0, INVALID_VALUE, "past the end");
        assert_eq!((raw.cuMemsetD8Async)(a + 4095, 0, 2, stream).0, INVALID_VALUE, "over the end");
        assert_eq!((raw.cuMemsetD8Async)(nobodys, 0, 1, stream).0, INVALID_VALUE);
        // Freed while work still uses it: that work is done on memory that is there.
        let free = call!(raw, cuMemFreeAsync(a => u64, raw.stream(1) => CUstream));
        assert_eq!(free, OK);
        assert_eq!((raw.cuMemFree_v2)(a).0, INVALID_VALUE);
        assert_eq!(out[4], 0, "nothing has happened yet");
        latch.release();
        raw.sync(stream);
        assert_eq!(out[..8], [9, 9, 9, 9, 1, 2, 3, 4]);
        assert_eq!(out[4092..], [1, 2, 3, 4]);
    }
}

#[test]
fn ordinary_memory_is_copied_before_the_call_returns() {
    let raw = Raw::new();
    let stream = raw.stream(1);
    let mut memory = 0;
    unsafe {
        assert_eq!((raw.cuMemAlloc_v2)(&mut memory, 8).0, OK);
        let latch = raw.latch(stream);
        let mut bytes = [1_u8; 8];
        assert_eq!((raw.cuMemcpyHtoDAsync_v2)(memory, bytes.as_ptr().cast(), 8, stream).0, OK);
        bytes = [9; 8];
        assert_eq!(bytes[0], 9);
        latch.release();
        let mut out = [0_u8; 8];
        assert_eq!((raw.cuMemcpyDtoHAsync_v2)(out.as_mut_ptr().cast(), memory, 8, stream).0, OK);
        assert_eq!(out, [1; 8]);
    }
}

#[test]
fn destroying_busy_streams_returns_at_once() {
    let raw = Raw::new();
    let stream = raw.stream(1);
    let event = raw.event(NO_TIMING);
    let latch = raw.latch(stream);
    let ran = Arc::new(AtomicU32::new(0));
    let counter = ran.clone();
    raw.host(stream, move || {
        counter.fetch_add(1, Ordering::SeqCst);
    });
    raw.record(event, stream);
    assert_eq!(unsafe { (raw.cuStreamDestroy_v2)(stream) }.0, OK);
    assert_eq!(raw.query(event), NOT_READY);
    latch.release();
    assert_eq!(unsafe { (raw.cuEventSynchronize)(event) }.0, OK);
    assert_eq!(ran.load(Ordering::SeqCst), 1);
}

#[test]
fn waits_cross_contexts_and_devices_but_records_do_not() {
    let raw = Raw::with(SoftDriver::builder().devices(2));
    let here = raw.stream(0);
    let second = raw.retain(1);
    raw.set_current(second);
    let there = raw.stream(0);
    let event = raw.event(NO_TIMING);
    assert_eq!(unsafe { (raw.cuEventRecord)(event, here) }.0, INVALID_HANDLE);
    let latch = raw.latch(there);
    raw.record(event, there);
    raw.wait(here, event);
    assert!(raw.busy(here));
    latch.release();
    raw.sync(here);
}

#[test]
fn a_whole_context_records_and_waits() {
    let raw = Raw::new();
    let (held, idle) = (raw.stream(1), raw.stream(1));
    let (event, after) = (raw.event(NO_TIMING), raw.event(NO_TIMING));
    let context = raw.retain(0);
    let latch = raw.latch(held);
    assert_eq!(unsafe { raw.cuCtxRecordEvent.unwrap()(context, event) }.0, OK);
    assert_eq!(raw.query(event), NOT_READY);
    assert_eq!(unsafe { raw.cuCtxWaitEvent.unwrap()(context, event) }.0, OK);
    assert!(!raw.busy(idle), "asking is about what the stream was given");
    raw.record(after, idle);
    assert_eq!(raw.query(after), NOT_READY, "what comes now waits");
    let late = raw.stream(1);
    raw.record(after, late);
    assert_eq!(raw.query(after), NOT_READY, "in a stream that was made later too");
    latch.release();
    for stream in [held, idle, late] {
        raw.sync(stream);
    }
    raw.record(after, idle);
    assert_eq!((raw.query(event), raw.query(after)), (OK, OK));
}

#[cfg(target_os = "linux")]
#[test]
fn records_of_an_interprocess_event_wait_in_turn() {
    let raw = Raw::new();
    let (held, idle) = (raw.stream(1), raw.stream(1));
    let event = raw.event(CU_EVENT_INTERPROCESS | NO_TIMING);
    let latch = raw.latch(held);
    raw.record(event, held);
    raw.record(event, idle);
    assert_eq!(raw.query(event), NOT_READY);
    assert!(raw.busy(idle));
    latch.release();
    raw.sync(idle);
    assert_eq!(raw.query(event), OK);
}

#[test]
fn stream_memory_operations_park_the_stream() {
    let raw = Raw::new();
    let (one, two) = (raw.stream(1), raw.stream(1));
    let mut memory = null_mut();
    assert_eq!(unsafe { (raw.cuMemHostAlloc)(&mut memory, 64, 0) }.0, OK);
    let mut address = 0;
    assert_eq!(unsafe { (raw.cuMemHostGetDevicePointer_v2)(&mut address, memory, 0) }.0, OK);
    let wait = raw.cuStreamWaitValue32_v2.unwrap();
    let write = raw.cuStreamWriteValue32_v2.unwrap();
    assert_eq!(unsafe { wait(one, address, 5, CU_STREAM_WAIT_VALUE_GEQ) }.0, OK);
    assert!(raw.busy(one));
    assert_eq!(unsafe { write(two, address, 7, 0) }.0, OK);
    raw.sync(one);
    // And a write by the host.
    assert_eq!(unsafe { wait(one, address, 8, CU_STREAM_WAIT_VALUE_EQ) }.0, OK);
    assert!(raw.busy(one));
    unsafe { AtomicU32::from_ptr(memory.cast()) }.store(8, Ordering::Release);
    raw.sync(one);
    assert_eq!(unsafe { wait(one, address + 1, 8, 0) }.0, INVALID_VALUE, "not aligned");
}

#[test]
fn misuse_is_told_with_its_history() {
    let raw = Raw::new();
    let event = raw.event(0);
    let stream = raw.stream(0);
    assert_eq!(unsafe { (raw.cuEventDestroy_v2)(event) }.0, OK);
    assert_eq!(raw.query(event), INVALID_HANDLE);
    assert_eq!(unsafe { (raw.cuEventQuery)(stream.cast()) }.0, DESTROYED, "another kind");
    assert_eq!(
        unsafe { (raw.cuStreamQuery)(std::ptr::without_provenance_mut(0xFFFF)) }.0,
        INVALID_HANDLE
    );
    let misuses = raw.soft.misuses();
    assert!(misuses[0].starts_with("cuEventQuery: event 0x"), "{misuses:?}");
    assert!(misuses[0].contains("was destroyed by cuEventDestroy_v2, call "), "{misuses:?}");
    assert!(misuses[0].contains("misuse_is_told_with_its_history"), "{misuses:?}");
    assert!(misuses[1].contains("is a stream, where a event is expected"), "{misuses:?}");
}

#[test]
fn ten_thousand_streams_and_a_million_events() {
    let raw = Raw::new();
    let streams: Vec<CUstream> = (0..10_000).map(|_| raw.stream(1)).collect();
    let events: Vec<CUevent> = (0..1_000_000).map(|_| raw.event(NO_TIMING)).collect();
    for (stream, event) in streams.iter().zip(&events) {
        raw.record(*event, *stream);
    }
    assert!(events.iter().all(|event| raw.query(*event) == OK));
    for event in events {
        assert_eq!(unsafe { (raw.cuEventDestroy_v2)(event) }.0, OK);
    }
    for stream in streams {
        assert_eq!(unsafe { (raw.cuStreamDestroy_v2)(stream) }.0, OK);
    }
}
