//! Faults that calls have, and calls and host functions that are held.

use crate::common;

use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use common::*;
use cuda_events::sys::*;
use cuda_events_test_support::own_process;
use cuda_soft_driver::{Fault, SoftDriver};

const NO_TIMING: u32 = CU_EVENT_DISABLE_TIMING;

pub fn fault(pattern: &str, code: u32) -> Fault {
    Fault::on(pattern).answer(CUresult(code))
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
