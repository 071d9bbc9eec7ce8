//! The last release of a context with work that never ends: it waits, as on a real driver, and the
//! driver's drop ends that.

use crate::common;

use std::ptr::null_mut;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use common::*;
use cuda_events::sys::*;
use cuda_events_test_support::pools::Pool;
use cuda_soft_driver::SoftDriver;

const NO_TIMING: u32 = CU_EVENT_DISABLE_TIMING;

/// Ends a context in another thread, sees that this waits for its work, and has `end` end that: the
/// answer.
///
/// `waiting` says when the call is inside: a thread waits in the driver for a context's work.
fn ending(
    soft: SoftDriver,
    call: impl FnOnce() -> CUresult + Send + 'static,
    end: impl FnOnce(SoftDriver),
) -> u32 {
    let ended = begin(move || call().0);
    while soft.waiting_for_work() == 0 {
        assert!(!ended.is_finished(), "it did not wait");
        std::thread::yield_now();
    }
    // Whatever else is done meanwhile.
    for _ in 0..100 {
        std::thread::scope(|other| other.spawn(|| soft.calls()).join().unwrap());
        assert_eq!(soft.waiting_for_work(), 1, "it waits no more");
    }
    end(soft);
    ended.join()
}

/// Until the call that waits has ended: with the machine's lock held, the work of it is done.
fn until_it_has_ended(soft: &SoftDriver) {
    let until = Instant::now() + Duration::from_secs(60);
    while soft.waiting_for_work() > 0 {
        assert!(Instant::now() < until, "it still waits");
        std::thread::yield_now();
    }
}

/// A driver whose first context has work that ends when the word is written.
struct Stuck {
    soft: SoftDriver,
    release: unsafe extern "C" fn(CUdevice) -> CUresult,
    word: *const std::sync::atomic::AtomicU32,
}

// SAFETY: the word is an atomic, in memory that lives as long as the driver's context.
unsafe impl Send for Stuck {}

fn waits_for_a_value() -> Stuck {
    let soft = SoftDriver::new();
    let symbols = *soft.driver().symbols();
    let (mut context, mut stream, mut memory) = (null_mut(), null_mut(), null_mut());
    unsafe {
        assert_eq!((symbols.cuInit)(0).0, OK);
        assert_eq!((symbols.cuDevicePrimaryCtxRetain)(&mut context, 0).0, OK);
        assert_eq!((symbols.cuCtxSetCurrent)(context).0, OK);
        assert_eq!((symbols.cuStreamCreate)(&mut stream, 1).0, OK);
        assert_eq!((symbols.cuMemHostAlloc)(&mut memory, 64, 0).0, OK);
        memory.cast::<u64>().write(0);
        let wait = symbols.cuStreamWaitValue32_v2.unwrap();
        assert_eq!(wait(stream, memory.addr() as u64, 5, CU_STREAM_WAIT_VALUE_EQ).0, OK);
    }
    Stuck { soft, release: symbols.cuDevicePrimaryCtxRelease_v2, word: memory.cast() }
}

#[test]
fn the_last_release_waits_for_a_value() {
    let Stuck { soft, release, word } = waits_for_a_value();
    let write = |soft: SoftDriver| {
        unsafe { &*word }.store(5, std::sync::atomic::Ordering::Release);
        // The driver goes when the release is done, and not before.
        until_it_has_ended(&soft);
    };
    assert_eq!(ending(soft, move || unsafe { release(0) }, write), OK);
}

#[test]
fn the_drivers_drop_ends_a_wait_for_a_value() {
    let Stuck { soft, release, .. } = waits_for_a_value();
    assert_eq!(ending(soft, move || unsafe { release(0) }, drop), DEINITIALIZED);
}

#[test]
fn the_drivers_drop_ends_a_wait_for_what_is_held_back() {
    let soft = SoftDriver::new();
    let symbols = *soft.driver().symbols();
    unsafe extern "C" fn never(_: *mut std::ffi::c_void) {
        unreachable!("it is held back");
    }
    let (mut context, mut stream) = (null_mut(), null_mut());
    soft.hold_host_functions(true);
    unsafe {
        assert_eq!((symbols.cuInit)(0).0, OK);
        assert_eq!((symbols.cuCtxCreate_v2)(&mut context, 0, 0).0, OK);
        assert_eq!((symbols.cuStreamCreate)(&mut stream, 1).0, OK);
        assert_eq!((symbols.cuLaunchHostFunc)(stream, Some(never), null_mut()).0, OK);
    }
    let context = context.expose_provenance();
    let destroy = move || unsafe {
        (symbols.cuCtxDestroy_v2)(std::ptr::with_exposed_provenance_mut(context))
    };
    assert_eq!(ending(soft, destroy, drop), DEINITIALIZED);
}

#[test]
fn the_last_release_waits_for_host_functions() {
    let soft = SoftDriver::new();
    let symbols = *soft.driver().symbols();
    unsafe extern "C" fn wait(receiver: *mut std::ffi::c_void) {
        let receiver = unsafe { Box::from_raw(receiver.cast::<std::sync::mpsc::Receiver<()>>()) };
        let _ = receiver.recv();
    }
    let (mut context, mut stream) = (null_mut(), null_mut());
    let (sender, receiver) = channel::<()>();
    unsafe {
        assert_eq!((symbols.cuInit)(0).0, OK);
        assert_eq!((symbols.cuDevicePrimaryCtxRetain)(&mut context, 0).0, OK);
        assert_eq!((symbols.cuCtxSetCurrent)(context).0, OK);
        assert_eq!((symbols.cuStreamCreate)(&mut stream, 1).0, OK);
        let data = Box::into_raw(Box::new(receiver)).cast();
        assert_eq!((symbols.cuLaunchHostFunc)(stream, Some(wait), data).0, OK);
    }
    let release = symbols.cuDevicePrimaryCtxRelease_v2;
    let let_go = |soft: SoftDriver| {
        drop(sender);
        until_it_has_ended(&soft);
    };
    assert_eq!(ending(soft, move || unsafe { release(0) }, let_go), OK);
}

#[test]
fn a_failure_ends_a_release_that_waits() {
    let Stuck { soft, release, .. } = waits_for_a_value();
    let fail = |soft: SoftDriver| {
        soft.fail_contexts(CUresult(719));
        until_it_has_ended(&soft);
    };
    assert_eq!(ending(soft, move || unsafe { release(0) }, fail), OK);
    // And it waits for nothing in a context that has no work.
    let raw = Raw::new();
    let (stream, event) = (raw.stream(1), raw.event(NO_TIMING));
    raw.record(event, stream);
    assert_eq!(unsafe { (raw.cuDevicePrimaryCtxRelease_v2)(0) }.0, OK);
}

/// A handle of a driver that was dropped, whose place another driver has: each call says that its
/// driver has ended, whatever the kind of the handle.
#[test]
fn handles_of_a_dropped_driver_are_no_others() {
    type Call = fn(&Raw, u64) -> u32;
    fn handle<T>(number: u64) -> *mut T {
        std::ptr::with_exposed_provenance_mut(number as usize)
    }
    let calls: [(&str, Call); 7] = [
        ("context", |raw, number| unsafe { (raw.cuCtxSetCurrent)(handle(number)) }.0),
        ("stream", |raw, number| unsafe { (raw.cuStreamQuery)(handle(number)) }.0),
        ("event", |raw, number| unsafe { (raw.cuEventQuery)(handle(number)) }.0),
        ("graph", |raw, number| unsafe { (raw.cuGraphDestroy)(handle(number)) }.0),
        ("executable graph", |raw, number| unsafe { (raw.cuGraphExecDestroy)(handle(number)) }.0),
        (
            "green context",
            |raw, number| unsafe { raw.cuGreenCtxDestroy.unwrap()(handle(number)) }.0,
        ),
        ("wait", |raw, number| unsafe { (raw.cuEventSynchronize)(handle(number)) }.0),
    ];
    let made = |raw: &Raw| unsafe {
        let (mut context, mut graph, mut exec) = (null_mut(), null_mut(), null_mut());
        assert_eq!((raw.cuCtxGetCurrent)(&mut context).0, OK);
        assert_eq!((raw.cuGraphCreate)(&mut graph, 0).0, OK);
        assert_eq!(raw.cuGraphInstantiateWithFlags.unwrap()(&mut exec, graph, 0).0, OK);
        let (mut green, mut description) = (null_mut(), null_mut());
        let (mut all, kind) =
            (CUdevResource::default(), CUdevResourceType::CU_DEV_RESOURCE_TYPE_SM);
        assert_eq!(raw.cuDeviceGetDevResource.unwrap()(0, &mut all, kind).0, OK);
        assert_eq!(raw.cuDevResourceGenerateDesc.unwrap()(&mut description, &mut all, 1).0, OK);
        assert_eq!(raw.cuGreenCtxCreate.unwrap()(&mut green, description, 0, 1).0, OK);
        let (stream, event) = (raw.stream(1), raw.event(NO_TIMING));
        [
            context.expose_provenance() as u64,
            stream.expose_provenance() as u64,
            event.expose_provenance() as u64,
            graph.expose_provenance() as u64,
            exec.expose_provenance() as u64,
            green.expose_provenance() as u64,
            event.expose_provenance() as u64,
        ]
    };
    let builder = || SoftDriver::builder().version(13, 0);
    let former = made(&Raw::with(builder()));
    // One of the next drivers has the place of that one.
    let place = |handles: [u64; 7]| handles[1] >> 39;
    let mut all = std::iter::repeat_with(|| Raw::with(builder())).take(64);
    let raw = all.find(|raw| place(made(raw)) == place(former)).expect("places are used again");
    let codes: Vec<_> = calls
        .into_iter()
        .zip(former)
        .map(|((kind, call), number)| (kind, call(&raw, number)))
        .collect();
    // Of graphs a driver says no more than that it has no such one.
    let code = |kind: &str| if kind.contains("graph") { INVALID_VALUE } else { DEINITIALIZED };
    let expected = calls.map(|(kind, _)| (kind, code(kind)));
    assert_eq!(codes, expected);
}

/// A process has places for sixteen drivers, and the next one of a place finds nothing of the last.
#[test]
fn a_driver_begins_with_nothing() {
    for driver in 0..40 {
        let raw = Raw::new();
        let (mut free, mut total, mut pool, mut threshold) = (0, 0, null_mut(), 0_u64);
        let place = std::ptr::from_mut(&mut threshold).cast::<std::ffi::c_void>();
        assert_eq!(unsafe { (raw.cuMemGetInfo_v2)(&mut free, &mut total) }.0, OK);
        assert_eq!(free, total, "{driver}");
        let code = call!(raw, cuDeviceGetDefaultMemPool(&mut pool => *mut Pool, 0 => i32));
        assert_eq!(code, OK);
        let code = call!(raw, cuMemPoolGetAttribute(pool => Pool, 4 => u32,
            place => *mut std::ffi::c_void));
        assert_eq!((code, threshold), (OK, 0), "{driver}");
        let mut mine = 1_u64 << 20;
        let place = std::ptr::from_mut(&mut mine).cast::<std::ffi::c_void>();
        let code = call!(raw, cuMemPoolSetAttribute(pool => Pool, 4 => u32,
            place => *mut std::ffi::c_void));
        assert_eq!(code, OK);
        // Left to the end of the driver.
        let mut memory = 0;
        assert_eq!(unsafe { (raw.cuMemAlloc_v2)(&mut memory, 64) }.0, OK);
        let code = call!(raw, cuMemAllocAsync(&mut memory => *mut u64, 64 => usize,
            legacy() => CUstream));
        assert_eq!(code, OK);
    }
}

/// The end of a context waits for the work of its device, but not in a host function, which is part
/// of that.
#[test]
fn a_host_function_ends_its_context() {
    let (raw, mut context) = (Raw::new(), null_mut());
    assert_eq!(unsafe { (raw.cuCtxCreate_v2)(&mut context, 0, 0) }.0, OK);
    let (destroy, context) = (raw.cuCtxDestroy_v2, context.expose_provenance());
    let (send, ended) = channel();
    raw.host(raw.stream(1), move || {
        let context = std::ptr::with_exposed_provenance_mut(context);
        let _ = send.send(unsafe { destroy(context) }.0);
    });
    assert_eq!(ended.recv_timeout(Duration::from_secs(60)), Ok(OK));
}
