//! What a test can do with the driver: the log, leak checks, faults, time, the seeded scheduler,
//! the special times.

use crate::common;

use std::ptr::{null_mut, without_provenance_mut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use common::*;
use cuda_events::sys::*;
use cuda_events_test_support::own_process;
use cuda_soft_driver::{Builder, Fault, Rules, Scheduler, SoftDriver, Time};

const NO_TIMING: u32 = CU_EVENT_DISABLE_TIMING;

fn fault(pattern: &str, code: u32) -> Fault {
    Fault::on(pattern).answer(CUresult(code))
}

#[test]
fn the_log_has_calls_arguments_results_and_threads() {
    let raw = Raw::with(SoftDriver::builder().log(3));
    let event = raw.event(NO_TIMING);
    raw.record(event, legacy());
    assert_eq!(raw.query(event), OK);
    assert_eq!(raw.query(null_mut()), INVALID_HANDLE);
    let log = raw.soft.log();
    let names: Vec<_> = log.iter().map(|record| record.function).collect();
    assert_eq!(names, ["cuEventRecord", "cuEventQuery", "cuEventQuery"]);
    assert_eq!(log[0].arguments, [event.addr() as u64, 1]);
    assert_eq!((log[0].result.0, log[2].result.0), (OK, INVALID_HANDLE));
    assert_eq!(log[1].number, log[0].number + 1);
    assert_eq!(log[2].number, raw.soft.calls());
    assert!(log[0].at <= log[1].at);
    assert!(log[0].thread.ends_with("the_log_has_calls_arguments_results_and_threads"));
    let expected = format!("{} [{}] cuEventRecord({event:p}, 1) = 0", log[0].number, log[0].thread);
    assert_eq!(log[0].to_string(), expected);
    raw.soft.clear_log();
    assert!(raw.soft.log().is_empty());
}

#[test]
fn the_log_has_created_handles_and_no_lookups() {
    let raw = Raw::with(SoftDriver::builder().log(200));
    let (event, mut graph, mut memory) = (raw.event(NO_TIMING), null_mut(), 0);
    unsafe {
        assert_eq!((raw.cuGraphCreate)(&mut graph, 0).0, OK);
        assert_eq!((raw.cuMemAlloc_v2)(&mut memory, 8).0, OK);
        assert_eq!((raw.cuEventCreate)(null_mut(), 0).0, INVALID_VALUE);
    }
    raw.query(event);
    let log = raw.soft.log();
    let given = |name: &str| log.iter().rfind(|call| call.function == name).unwrap().given;
    assert_eq!(given("cuGraphCreate"), Some(graph.addr() as u64));
    assert_eq!(given("cuMemAlloc_v2"), Some(memory));
    assert_eq!((given("cuEventCreate"), given("cuEventQuery")), (None, None));
    let made = log.iter().find(|call| call.function == "cuEventCreate").unwrap();
    assert_eq!(made.given, Some(event.addr() as u64));
    assert!(made.to_string().ends_with(&format!(" = 0, gave {event:p}")), "{made}");
    let lookups = |soft: &SoftDriver| {
        soft.log().iter().filter(|call| call.function.starts_with("cuGetProc")).count()
    };
    assert_eq!(lookups(&raw.soft), 0);
    let soft = SoftDriver::builder().log(200).log_lookups(true).build();
    soft.driver();
    assert!(lookups(&soft) > 50);
}

#[test]
fn commands_that_cannot_be_meant_are_refused() {
    let soft = SoftDriver::builder().time(Time::Virtual).build();
    for (command, expected) in [
        ("clear=1", "clear takes no value"),
        ("injected=3", "injected takes no value"),
        ("live=1", "live takes no value"),
        ("fail", "fail takes a value: fail=..."),
        ("fail=soon", "a number like 2 or a name like CUDA_ERROR_OUT_OF_MEMORY"),
        ("advance=soon", "`soon` is not a whole number of nanoseconds"),
        ("dance", "there is no command `dance`: use fault, clear"),
        ("fail=0", "a context cannot fail with `0`"),
        ("fail=CUDA_ERROR_NOT_READY", "a context cannot fail with"),
        ("fault=cuEventQuery:block:poison", "needs a result code"),
    ] {
        let printed = soft.control(command).expect_err(command);
        assert!(printed.contains(expected), "{command}: {printed}");
    }
    for command in ["advance=5000000000", "fail=CUDA_ERROR_LAUNCH_FAILED", "clear", "live"] {
        assert!(soft.control(command).is_ok(), "{command}");
    }
}

#[test]
fn real_time_is_not_moved_by_anyone() {
    let soft = SoftDriver::new();
    assert!(soft.control("advance=5").unwrap_err().contains("time=virtual"));
    let moved = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        soft.advance(Duration::from_nanos(5))
    }));
    assert!(moved.is_err());
}

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
fn garbage_goes_to_results_and_not_to_arrays() {
    let raw = Raw::new();
    let (stream, event) = (raw.stream(1), raw.event(NO_TIMING));
    let (mut graph, mut node) = (null_mut(), null_mut());
    raw.soft.inject(fault("cu*Node*", 7).poison());
    raw.soft.inject(fault("cuStreamUpdate*", 7).poison());
    unsafe {
        assert_eq!((raw.cuGraphCreate)(&mut graph, 0).0, OK);
        let add = raw.cuGraphAddEventRecordNode.unwrap();
        assert_eq!(add(&mut node, graph, std::ptr::null(), 0, event).0, 7);
        assert_eq!(node.addr(), usize::from_ne_bytes([0xA5; size_of::<usize>()]), "a result");
        // An array of no room, as a slice of none has it: it is at no address that can be written
        // to.
        let none = std::ptr::dangling_mut();
        assert_eq!(raw.cuStreamUpdateCaptureDependencies.unwrap()(stream, none, 0, 0).0, 7);
        assert_eq!(
            raw.cuStreamUpdateCaptureDependencies_v2.unwrap()(stream, none, std::ptr::null(), 0, 0)
                .0,
            7
        );
        // And one with nodes keeps them.
        let mut nodes = [null_mut::<CUgraphNode_st>(); 2];
        assert_eq!(
            raw.cuStreamUpdateCaptureDependencies.unwrap()(stream, nodes.as_mut_ptr(), 2, 0).0,
            7
        );
        assert_eq!(nodes, [null_mut(); 2]);
    }
    assert_eq!(raw.soft.injected(), 4);
}

/// Registering memory makes nothing that has to be given back: the memory is the program's, and the
/// registration ends with the context.
#[test]
fn registered_memory_is_no_leak() {
    let raw = Raw::bare(SoftDriver::builder().log(100));
    assert_eq!(unsafe { (raw.cuInit)(0) }.0, OK);
    let context = raw.retain(0);
    raw.set_current(context);
    let memory = [0_u64; 8];
    let register =
        || unsafe { (raw.cuMemHostRegister_v2)(memory.as_ptr().cast_mut().cast(), 64, 3) }.0;
    assert_eq!(register(), OK);
    assert_eq!(register(), CUresult::CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED.0);
    assert_eq!(raw.soft.live().allocations, 0);
    assert_eq!(unsafe { (raw.cuDevicePrimaryCtxRelease_v2)(0) }.0, OK);
    raw.soft.assert_no_leaks();
    raw.set_current(raw.retain(0));
    assert_eq!(register(), OK, "the registration ended with the context");
    assert_eq!(unsafe { (raw.cuDevicePrimaryCtxRelease_v2)(0) }.0, OK);
    raw.soft.assert_no_leaks();
}

/// Memory that other processes may have open, or this one from them, may end with its context.
#[test]
#[cfg(target_os = "linux")]
fn shared_memory_may_end_with_its_context() {
    let exporter = Raw::with(SoftDriver::builder());
    let importer = Raw::with(SoftDriver::builder());
    let (mut memory, mut opened) = (0, 0);
    let mut handle = CUipcMemHandle { reserved: [0; 64] };
    unsafe {
        assert_eq!((exporter.cuMemAlloc_v2)(&mut memory, 8).0, OK);
        assert_eq!((exporter.cuIpcGetMemHandle)(&mut handle, memory).0, OK);
        let open = importer.cuIpcOpenMemHandle_v2.expect("it has the call");
        assert_eq!(open(&mut opened, handle, 1).0, OK);
        let allocations = [&exporter, &importer].map(|raw| raw.soft.live().allocations);
        assert_eq!(allocations, [1, 1], "they are not freed");
        for raw in [&exporter, &importer] {
            assert_eq!((raw.cuDevicePrimaryCtxRelease_v2)(0).0, OK);
            raw.soft.assert_no_leaks();
        }
    }
}

/// Another process's memory has one address in a context, for as long as it is open there.
#[test]
#[cfg(target_os = "linux")]
fn shared_memory_is_closed_as_often_as_it_was_opened() {
    let exporter = Raw::with(SoftDriver::builder());
    let importer = Raw::with(SoftDriver::builder());
    let open = importer.cuIpcOpenMemHandle_v2.expect("it has the call");
    let (mut memory, mut handle) = (0, CUipcMemHandle { reserved: [0; 64] });
    unsafe {
        assert_eq!((exporter.cuMemAlloc_v2)(&mut memory, 8).0, OK);
        assert_eq!((exporter.cuIpcGetMemHandle)(&mut handle, memory).0, OK);
        for times in 1..4 {
            let opened = [(); 3].map(|()| {
                let mut opened = 0;
                assert_eq!(open(&mut opened, handle, 1).0, OK);
                opened
            });
            assert_eq!(opened, [opened[0]; 3], "{times}");
            for left in [2, 1, 0] {
                let set = (importer.cuMemsetD32Async)(opened[0], 1, 2, legacy()).0;
                assert_eq!((set, importer.soft.live().allocations), (OK, 1), "{left}");
                assert_eq!((importer.cuIpcCloseMemHandle)(opened[0]).0, OK, "{left}");
            }
            assert_eq!((importer.cuIpcCloseMemHandle)(opened[0]).0, INVALID_VALUE);
            assert_eq!(importer.soft.live().allocations, 0, "{times}");
        }
    }
}

/// A close of another process's memory waits for the device, as a free does.
#[test]
#[cfg(target_os = "linux")]
fn a_close_of_shared_memory_waits() {
    let exporter = Raw::with(SoftDriver::builder());
    let importer = Raw::with(SoftDriver::builder());
    let (mut memory, mut opened) = (0, 0);
    let mut handle = CUipcMemHandle { reserved: [0; 64] };
    let open = importer.cuIpcOpenMemHandle_v2.expect("it has the call");
    let close = importer.cuIpcCloseMemHandle;
    let mut context = null_mut();
    unsafe {
        assert_eq!((exporter.cuMemAlloc_v2)(&mut memory, 8).0, OK);
        assert_eq!((exporter.cuIpcGetMemHandle)(&mut handle, memory).0, OK);
        assert_eq!((importer.cuCtxGetCurrent)(&mut context).0, OK);
    }
    let stream = importer.stream(1);
    let latch = importer.latch(stream);
    assert_eq!(unsafe { open(&mut opened, handle, 1) }.0, OK, "to open it does not wait");
    let (set, context) = (importer.cuCtxSetCurrent, context.addr());
    let closing = std::thread::spawn(move || unsafe {
        assert_eq!(set(without_provenance_mut(context)).0, OK);
        close(opened).0
    });
    std::thread::sleep(std::time::Duration::from_millis(50));
    assert!(!closing.is_finished());
    latch.release();
    assert_eq!(closing.join().expect("no panic"), OK);
    assert_eq!(unsafe { (importer.cuStreamDestroy_v2)(stream) }.0, OK);
}

#[test]
fn leaks_are_counted_and_reported() {
    let raw = Raw::bare(SoftDriver::builder().log(100));
    assert_eq!(unsafe { (raw.cuInit)(0) }.0, OK);
    raw.soft.assert_no_leaks();
    let context = raw.retain(0);
    raw.set_current(context);
    let (stream, event) = (raw.stream(0), raw.event(CU_EVENT_INTERPROCESS | NO_TIMING));
    // Default streams are nobody's to give back.
    raw.sync(legacy());
    raw.sync(per_thread());
    let mut memory = 0;
    assert_eq!(unsafe { (raw.cuMemAlloc_v2)(&mut memory, 8) }.0, OK);
    let live = raw.soft.live();
    assert_eq!((live.retains, live.contexts, live.streams, live.events), (1, 0, 1, 1));
    assert_eq!((live.ipc_slots, live.allocations, live.graphs), (1, 1, 0));
    let report = raw.soft.leak_report();
    assert!(report.starts_with(
        "1 retain of a primary context, 1 stream, 1 event, 1 interprocess slot, 1 piece of memory"
    ));
    assert!(report.contains("stream 0x") && report.contains("cuStreamCreate("), "{report}");
    let failed =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| raw.soft.assert_no_leaks()));
    assert!(failed.is_err());
    unsafe {
        // A stream with work is given back all the same.
        let latch = raw.latch(stream);
        assert_eq!((raw.cuStreamDestroy_v2)(stream).0, OK);
        assert_eq!(raw.soft.live().streams, 0);
        latch.release();
        assert_eq!((raw.cuEventDestroy_v2)(event).0, OK);
        assert_eq!((raw.cuMemFree_v2)(memory).0, OK);
        assert_eq!((raw.cuDevicePrimaryCtxRelease_v2)(0).0, OK);
    }
    raw.soft.assert_no_leaks();
}

#[test]
fn what_only_its_context_destroys_is_a_leak() {
    let raw = Raw::with(SoftDriver::builder().log(100));
    let made = |raw: &Raw| (raw.stream(1), raw.event(NO_TIMING));
    // The driver's own are nobody's to destroy.
    raw.sync(legacy());
    raw.sync(per_thread());
    let (stream, event) = made(&raw);
    let mut memory = 0;
    let mut other = null_mut();
    unsafe {
        assert_eq!((raw.cuMemAlloc_v2)(&mut memory, 8).0, OK);
        // What was tried is not counted.
        raw.soft.inject(fault("cu*Destroy_v2", 7));
        let (stream, event) = made(&raw);
        assert_eq!(((raw.cuStreamDestroy_v2)(stream).0, (raw.cuEventDestroy_v2)(event).0), (7, 7));
        raw.soft.clear_faults();
        assert_eq!((raw.cuDevicePrimaryCtxRelease_v2)(0).0, OK);
        assert_eq!(raw.soft.live().lost, 3);
        assert_eq!((raw.cuCtxCreate_v2)(&mut other, 0, 0).0, OK);
        made(&raw);
        assert_eq!((raw.cuCtxDestroy_v2)(other).0, OK);
        // Nothing can be destroyed in a context that failed.
        assert_eq!((raw.cuCtxCreate_v2)(&mut other, 0, 0).0, OK);
        made(&raw);
        raw.soft.fail_contexts(CUresult(719));
        assert_eq!((raw.cuCtxDestroy_v2)(other).0, OK);
    }
    assert_eq!(raw.soft.live().lost, 5);
    let report = raw.soft.leak_report();
    assert!(report.starts_with("5 objects destroyed only with their context\n"), "{report}");
    for (what, handle) in
        [("stream", stream.addr()), ("event", event.addr()), ("piece of memory", memory as usize)]
    {
        assert!(report.contains(&format!("lost {what} {handle:#x}")), "{report}");
    }
    let failed =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| raw.soft.assert_no_leaks()));
    assert!(failed.is_err());
}

/// A green context ends its streams before CUDA 13.1, and leaves them to their owner from then on.
#[test]
fn what_a_green_context_leaves_of_its_streams() {
    for (minor, destroyed, live, lost) in [(0, DESTROYED, 0, 1), (1, OK, 1, 0)] {
        let raw = Raw::with(SoftDriver::builder().version(13, minor));
        let mut all = CUdevResource::default();
        let (mut description, mut green, mut stream) = (null_mut(), null_mut(), null_mut());
        unsafe {
            let sm = CUdevResourceType::CU_DEV_RESOURCE_TYPE_SM;
            assert_eq!(raw.cuDeviceGetDevResource.expect("of 12.4")(0, &mut all, sm).0, OK);
            let describe = raw.cuDevResourceGenerateDesc.expect("of 12.4");
            assert_eq!(describe(&mut description, &mut all, 1).0, OK);
            assert_eq!(raw.cuGreenCtxCreate.expect("of 12.4")(&mut green, description, 0, 1).0, OK);
            let create = raw.cuGreenCtxStreamCreate.expect("of 12.5");
            assert_eq!(create(&mut stream, green, CU_STREAM_NON_BLOCKING, 0).0, OK);
            assert_eq!(raw.cuGreenCtxDestroy.expect("of 12.4")(green).0, OK);
            let left = raw.soft.live();
            assert_eq!((left.streams, left.lost), (live, lost), "13.{minor}");
            assert_eq!((raw.cuStreamDestroy_v2)(stream).0, destroyed, "13.{minor}");
            let left = raw.soft.live();
            assert_eq!((left.streams, left.lost), (0, lost), "13.{minor}");
        }
        assert!(raw.soft.misuses().is_empty(), "13.{minor}");
    }
}

#[test]
fn faults_strike_as_configured() {
    let raw = Raw::new();
    let event = raw.event(NO_TIMING);
    let stream = raw.stream(1);
    let codes = |count: usize| -> Vec<u32> { (0..count).map(|_| raw.query(event)).collect() };
    raw.soft.inject(fault("cuEventQuery", 7).nth(2));
    assert_eq!(codes(4), [OK, 7, OK, OK]);
    raw.soft.clear_faults();
    raw.soft.inject(fault("cuEventQuery", 7).nth(2).from_then_on());
    assert_eq!(codes(4), [OK, 7, 7, 7]);
    raw.soft.clear_faults();
    raw.soft.inject(fault("cuEvent*", 7).every(2));
    assert_eq!(codes(5), [OK, 7, OK, 7, OK]);
    raw.soft.clear_faults();
    raw.soft.inject(fault("cuEventQuery", 7).once());
    assert_eq!(codes(2), [7, OK]);
    raw.soft.clear_faults();
    let chance = || {
        raw.soft.inject(fault("*", 7).probability(0.5, 42));
        let codes = codes(100);
        raw.soft.clear_faults();
        codes
    };
    let struck = chance();
    assert_eq!(chance(), struck, "the same again from the same seed");
    assert!((20..80).contains(&struck.iter().filter(|code| **code == 7).count()));
    raw.soft.inject(fault("cuEventQuery", 7).in_thread("somebody else"));
    assert_eq!(codes(1), [OK]);
    std::thread::scope(|scope| {
        let (raw, event) = (&raw, event.expose_provenance());
        let query = move || raw.query(std::ptr::with_exposed_provenance_mut(event));
        let other = std::thread::Builder::new()
            .name("somebody else".into())
            .spawn_scoped(scope, query)
            .unwrap();
        assert_eq!(other.join().unwrap(), 7);
    });
    raw.soft.clear_faults();

    // Instead of the work, or after it.
    let mut made = stream;
    raw.soft.inject(fault("cuStreamCreate", 2));
    assert_eq!(unsafe { (raw.cuStreamCreate)(&mut made, 0) }.0, 2);
    assert_eq!((made, raw.soft.live().streams), (stream, 1), "untouched");
    raw.soft.clear_faults();
    raw.soft.inject(fault("cuStreamCreate", 2).poison());
    assert_eq!(unsafe { (raw.cuStreamCreate)(&mut made, 0) }.0, 2);
    assert_eq!(made.addr(), usize::from_ne_bytes([0xA5; size_of::<usize>()]));
    raw.soft.clear_faults();
    raw.soft.inject(fault("cuStreamCreate", 2).after_the_work());
    assert_eq!(unsafe { (raw.cuStreamCreate)(&mut made, 0) }.0, 2);
    assert_eq!(raw.soft.live().streams, 2);
    raw.soft.clear_faults();
    assert!(raw.soft.injected() > 10);
}

#[test]
fn a_call_can_be_held() {
    let raw = Raw::new();
    let event = raw.event(NO_TIMING);
    let held = Fault::on("cuEventQuery").block().once();
    for (fault, answer) in [(held.clone(), OK), (held.answer(CUresult(7)), 7)] {
        raw.soft.inject(fault);
        let released = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let (raw, event, released) = (&raw, event.expose_provenance(), &released);
            let held = scope.spawn(move || {
                let code = raw.query(std::ptr::with_exposed_provenance_mut(event));
                (code, released.load(Ordering::SeqCst))
            });
            while raw.soft.blocked() == 0 {
                assert!(!held.is_finished(), "it is not held");
                std::thread::yield_now();
            }
            // It had every chance to go on: another thread's whole life passes, and calls of that
            // and of this one.
            for _ in 0..100 {
                scope.spawn(|| raw.soft.calls()).join().unwrap();
                assert_eq!(raw.soft.blocked(), 1);
            }
            released.store(true, Ordering::SeqCst);
            assert_eq!(raw.soft.release(), 1);
            assert_eq!(held.join().unwrap(), (answer, true));
        });
    }
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
fn lookups_can_lie() {
    let raw =
        Raw::bare(SoftDriver::builder().without("cuStreamGetId").null_lookup("cuStreamGetDevice"));
    assert!(raw.soft.resolve(c"cuStreamGetId").is_null());
    assert!(raw.cuStreamGetId.is_none());
    let ask = raw.cuGetProcAddress_v2.unwrap();
    let mut function = std::ptr::without_provenance_mut(1);
    let mut status = CUdriverProcAddressQueryResult(9);
    let name = c"cuStreamGetDevice".as_ptr().cast();
    assert_eq!(unsafe { ask(name, &mut function, 13000, 0, &mut status) }.0, OK);
    assert!(function.is_null());
    assert_eq!(status.0, 0);
    let soft = SoftDriver::builder().without("cuEventRecord").build();
    assert!(soft.try_driver(&cuda_events::LoadOptions::new()).is_err());
    let stub = Raw::bare(SoftDriver::builder().init_result(CUresult::CUDA_ERROR_STUB_LIBRARY));
    assert_eq!(unsafe { (stub.cuInit)(0) }.0, 34);
    let wrong = Raw::bare(SoftDriver::builder().lookup_as("cuEventElapsedTime", "cuEventQuery"));
    let expected: *const () = wrong.cuEventQuery as *const ();
    assert_eq!(wrong.cuEventElapsedTime as *const (), expected);
}

#[test]
fn what_is_not_supported_is_a_call_like_any_other() {
    own_process!();
    // Two drivers, because the functions are not the same for each.
    let (raw, other) = (Raw::bare(SoftDriver::builder().log(2)), Raw::new());
    type Anything = unsafe extern "C" fn() -> CUresult;
    let find = |raw: &Raw| unsafe {
        std::mem::transmute::<_, Anything>(raw.soft.resolve(c"cuImportExternalMemory"))
    };
    let import = find(&raw);
    assert_eq!(unsafe { import() }.0, NOT_INITIALIZED);
    assert_eq!(unsafe { (raw.cuInit)(0) }.0, OK);
    assert_eq!(unsafe { import() }.0, NOT_SUPPORTED);
    raw.soft.inject(fault("cuImportExternalM*", 218).nth(2));
    assert_eq!([0; 3].map(|_| unsafe { import() }.0), [NOT_SUPPORTED, 218, NOT_SUPPORTED]);
    let log: Vec<_> =
        raw.soft.log().iter().map(|record| (record.function, record.result.0)).collect();
    assert_eq!(log, [("cuImportExternalMemory", 218), ("cuImportExternalMemory", NOT_SUPPORTED)]);
    raw.soft.shut_down();
    assert_eq!(unsafe { import() }.0, DEINITIALIZED);
    assert_eq!(unsafe { find(&other)() }.0, NOT_SUPPORTED);
}

#[test]
fn after_the_shutdown_and_after_the_drop() {
    let raw = Raw::new();
    let event = raw.event(0);
    raw.soft.shut_down();
    assert_eq!(raw.query(event), DEINITIALIZED);
    assert_eq!(unsafe { (raw.cuInit)(0) }.0, DEINITIALIZED);
    let query: unsafe extern "C" fn(CUevent) -> CUresult = raw.cuEventQuery;
    drop(raw);
    let code = unsafe { query(event) }.0;
    // Another test may have the slot by now, and not be initialised yet.
    assert!(matches!(code, DEINITIALIZED | NOT_INITIALIZED), "{code}");
    let next: Vec<Raw> = (0..8).map(|_| Raw::new()).collect();
    assert_eq!(unsafe { query(event) }.0, DEINITIALIZED, "and any later holder");
    assert!(next.iter().all(|raw| raw.soft.misuses().is_empty()));
}

#[test]
fn virtual_time_is_what_the_work_takes() {
    let raw = Raw::with(SoftDriver::builder().time(Time::Virtual));
    let stream = raw.stream(0);
    let (start, end) = (raw.event(0), raw.event(0));
    let mut memory = 0;
    assert_eq!(unsafe { (raw.cuMemAlloc_v2)(&mut memory, 1 << 20) }.0, OK);
    raw.record(start, stream);
    raw.soft.advance(Duration::from_millis(5));
    raw.record(end, stream);
    assert!((raw.elapsed(start, end).unwrap() - 5.0).abs() < 1e-3);
    raw.record(start, stream);
    assert_eq!(unsafe { (raw.cuMemsetD8Async)(memory, 1, 1 << 20, stream) }.0, OK);
    raw.record(end, stream);
    raw.sync(stream);
    assert!((raw.elapsed(start, end).unwrap() - 1024e-6).abs() < 1e-4);
}

#[test]
fn calls_can_take_longer() {
    let raw = Raw::with(SoftDriver::builder().latency(Duration::from_micros(300)));
    let event = raw.event(NO_TIMING);
    let began = Instant::now();
    for _ in 0..10 {
        raw.query(event);
    }
    assert!(began.elapsed() >= Duration::from_millis(3));
}

#[test]
fn host_functions_can_be_held_back() {
    let raw = Raw::new();
    let stream = raw.stream(0);
    raw.soft.hold_host_functions(true);
    raw.host(stream, || {});
    // Whatever else is done meanwhile: it is not called.
    let mut memory = 0;
    assert_eq!(unsafe { (raw.cuMemAlloc_v2)(&mut memory, 64) }.0, OK);
    let other = raw.stream(1);
    for _ in 0..500 {
        assert_eq!(unsafe { (raw.cuMemsetD8Async)(memory, 1, 64, other) }.0, OK);
        raw.sync(other);
    }
    assert!(raw.busy(stream));
    raw.soft.hold_host_functions(false);
    raw.sync(stream);
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

#[test]
fn what_was_destroyed_in_a_failed_context_is_no_leak() {
    let raw = Raw::with(SoftDriver::builder().log(100));
    let (stream, other) = (raw.stream(1), raw.stream(1));
    let (event, kept) = (raw.event(NO_TIMING), raw.event(NO_TIMING));
    let shared = if cfg!(target_os = "linux") {
        raw.event(CU_EVENT_INTERPROCESS | NO_TIMING)
    } else {
        raw.event(0)
    };
    raw.soft.fail_contexts(CUresult(719));
    for event in [event, shared] {
        assert_eq!(unsafe { (raw.cuEventDestroy_v2)(event) }.0, 719);
    }
    assert_eq!(unsafe { (raw.cuStreamDestroy_v2)(stream) }.0, 719);
    // What the program has not tried to destroy is still its own.
    let live = raw.soft.live();
    assert_eq!((live.streams, live.events, live.ipc_slots, live.lost), (1, 1, 0, 0));
    let report = raw.soft.leak_report();
    let in_report = |handle: usize| report.contains(&format!("{handle:#x}"));
    assert_eq!([other.addr(), kept.addr()].map(in_report), [true; 2], "{report}");
    assert_eq!([stream.addr(), event.addr(), shared.addr()].map(in_report), [false; 3], "{report}");
    unsafe {
        assert_eq!(
            ((raw.cuEventDestroy_v2)(kept).0, (raw.cuStreamDestroy_v2)(other).0),
            (719, 719)
        );
        assert_eq!((raw.cuDevicePrimaryCtxRelease_v2)(0).0, OK);
    }
    raw.soft.assert_no_leaks();
}

#[test]
fn strict_rules_refuse_every_call_in_a_host_function() {
    let raw = Raw::with(SoftDriver::builder().rules(Rules::Strict));
    let stream = raw.stream(0);
    let (query, event) = (raw.cuEventQuery, raw.event(0).expose_provenance());
    let code = Arc::new(Mutex::new(None));
    let answer = code.clone();
    raw.host(stream, move || {
        let code = unsafe { query(std::ptr::with_exposed_provenance_mut(event)) };
        *answer.lock().unwrap() = Some(code.0);
    });
    raw.sync(stream);
    assert_eq!(*code.lock().unwrap(), Some(NOT_PERMITTED));
}

/// The order in which independent work is done under a seed.
fn order(seed: u64) -> Vec<usize> {
    let raw = Raw::with(SoftDriver::builder().scheduler(Scheduler::Seeded(seed)));
    let order = Arc::new(Mutex::new(Vec::new()));
    let streams: Vec<CUstream> = (0..4).map(|_| raw.stream(1)).collect();
    for round in 0..4 {
        for (number, stream) in streams.iter().enumerate() {
            let order = order.clone();
            raw.host(*stream, move || order.lock().unwrap().push(10 * number + round));
        }
    }
    for stream in streams {
        raw.sync(stream);
    }
    let order = order.lock().unwrap().clone();
    for number in 0..4 {
        let own: Vec<usize> = order.iter().copied().filter(|entry| entry / 10 == number).collect();
        assert_eq!(
            own,
            (0..4).map(|round| 10 * number + round).collect::<Vec<_>>(),
            "in order within a stream"
        );
    }
    order
}

#[test]
fn a_seed_makes_an_order_and_makes_it_again() {
    // The driver says its seed past the harness.
    own_process!();
    let first = order(1);
    assert_eq!(first.len(), 16);
    assert_eq!(order(1), first);
    assert_eq!(order(1), first);
    assert!((2..10).any(|seed| order(seed) != first), "another seed, another order");
}

#[test]
fn seeded_work_is_done_without_calls_too() {
    own_process!();
    let raw = Raw::with(SoftDriver::builder().scheduler(Scheduler::Seeded(3)));
    let (one, two) = (raw.stream(1), raw.stream(0));
    let event = raw.event(NO_TIMING);
    let latch = raw.latch(one);
    raw.record(event, one);
    raw.wait(two, event);
    raw.record(event, legacy());
    // Nobody calls the driver until the latch was reached.
    latch.reached();
    latch.release();
    let (sent, received) = std::sync::mpsc::channel();
    raw.host(two, move || sent.send(()).unwrap());
    received.recv().unwrap();
    assert_eq!(unsafe { (raw.cuCtxSynchronize)() }.0, OK);
    assert_eq!(raw.query(event), OK);
}

#[test]
fn settings_as_text() {
    let raw =
        Raw::bare(Builder::from_text("devices=2,version=12.0,fault=cuDeviceGet:code=46").unwrap());
    let mut count = 0;
    let mut device = 0;
    unsafe {
        assert_eq!((raw.cuInit)(0).0, OK);
        assert_eq!((raw.cuDeviceGetCount)(&mut count).0, OK);
        assert_eq!((raw.cuDeviceGet)(&mut device, 0).0, 46);
    }
    assert_eq!(count, 2);
    assert!(raw.cuEventElapsedTime_v2.is_none());
}

/// What is refused is blamed on the line that asked for it.
#[test]
fn refusals_name_the_callers_line() {
    let raw = Raw::new();
    let blamed = |refused: &dyn Fn()| {
        static PLACE: Mutex<Option<(String, u32)>> = Mutex::new(None);
        let before = std::panic::take_hook();
        let thread = std::thread::current().id();
        std::panic::set_hook(Box::new(move |info| {
            let place = info.location().map(|at| (at.file().to_owned(), at.line()));
            if std::thread::current().id() == thread {
                *PLACE.lock().unwrap() = place;
            } else {
                eprintln!("{info}");
            }
        }));
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(refused));
        std::panic::set_hook(before);
        assert!(ended.is_err());
        PLACE.lock().unwrap().take().expect("it has a place")
    };
    let here = |line| (file!().to_owned(), line);
    let inject = || raw.soft.inject(Fault::on("cuNothing"));
    assert_eq!(blamed(&inject), here(line!() - 1));
    let advance = || raw.soft.advance(Duration::from_secs(1));
    assert_eq!(blamed(&advance), here(line!() - 1));
    let fail = || raw.soft.fail_contexts(CUresult(OK));
    assert_eq!(blamed(&fail), here(line!() - 1));
    let wait = || raw.keep_busy(std::ptr::without_provenance_mut(0x1234), Duration::from_secs(1));
    assert_eq!(blamed(&wait), here(line!() - 1));
    let build = || drop(SoftDriver::builder().devices(9).build());
    assert_eq!(blamed(&build), here(line!() - 1));
}

/// The numbers of calls in logs and reports do not depend on how a program finds the functions.
#[test]
fn look_ups_of_functions_do_not_count() {
    let soft = SoftDriver::builder().log(10).build();
    let driver = soft.driver();
    // The version is what loading asks the driver for.
    assert_eq!(soft.calls(), 1);
    cuda_events::Device::count(driver).expect("a driver");
    let numbers: Vec<u64> = soft.log().iter().map(|call| call.number).collect();
    assert_eq!(numbers, [1, 2, 3]);
}
