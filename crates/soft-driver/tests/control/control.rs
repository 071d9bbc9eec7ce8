//! What a test can do with the driver: the log, text commands, time, the seeded scheduler, the ends
//! of a driver.

use crate::common;

use std::ptr::null_mut;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::*;
use cuda_events::sys::*;
use cuda_events_test_support::own_process;
use cuda_soft_driver::{Builder, Fault, HostOrder, OrderCheck, Rules, Scheduler, SoftDriver, Time};

const NO_TIMING: u32 = CU_EVENT_DISABLE_TIMING;

/// The slot of an ended driver goes to another one, which has nothing to do with what code still
/// reports for the first.
#[test]
fn what_is_read_for_an_ended_driver_is_nothing_to_the_next() {
    own_process!();
    let checked = || {
        let builder = SoftDriver::builder().check_order(OrderCheck::Report);
        builder.order_host(HostOrder::Reported).build()
    };
    let first = checked();
    let saw = first.driver().host_reads().expect("it checks the order");
    let before = first.calls();
    saw(0x1000, 1);
    assert_eq!(first.calls(), before + 1);
    drop(first);
    // One of them has its slot, as these are all.
    let next = [(); 16].map(|()| checked());
    let calls = || next.each_ref().map(SoftDriver::calls);
    let before = calls();
    saw(0x1000, 2);
    assert_eq!(calls(), before);
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
