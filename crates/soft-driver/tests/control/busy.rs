//! Work of a given duration: streams are busy at the same time, in virtual time and in real time.

use crate::common;

use std::ptr::null_mut;
use std::time::Duration;

use common::*;
use cuda_events::sys::*;
use cuda_events_test_support::own_process;
use cuda_soft_driver::{OrderCheck, Scheduler, SoftDriver, Time};

const HOUR: Duration = Duration::from_secs(3600);

/// Virtual time, with work at once and by seeds.
fn all() -> impl Iterator<Item = Raw> {
    let with = |scheduler| {
        let builder = SoftDriver::builder().time(Time::Virtual).scheduler(scheduler);
        Raw::with(builder)
    };
    [Scheduler::Prompt].into_iter().chain((1..6).map(Scheduler::Seeded)).map(with)
}

/// Hours from one event to another, in whole ones. A stamp may be some ticks late.
fn hours(raw: &Raw, start: CUevent, end: CUevent) -> i64 {
    let milliseconds = f64::from(raw.elapsed(start, end).expect("both are done"));
    let hours = milliseconds / 3_600_000.0;
    assert!((hours - hours.round()).abs() < 0.001, "{hours} hours");
    hours.round() as i64
}

#[test]
fn streams_are_busy_at_the_same_time() {
    own_process!();
    for raw in all() {
        let [start, one, two, both] = [(); 4].map(|()| raw.event(0));
        let [a, b, c] = [(); 3].map(|()| raw.stream(1));
        raw.record(start, a);
        raw.sync(a);
        raw.keep_busy(a, HOUR);
        raw.record(one, a);
        raw.keep_busy(b, HOUR);
        raw.keep_busy(b, 2 * HOUR);
        raw.record(two, b);
        // After both: one hour more than the longer of the two.
        raw.wait(c, one);
        raw.wait(c, two);
        raw.keep_busy(c, HOUR);
        raw.record(both, c);
        assert_eq!([one, two, both].map(|event| raw.query(event)), [NOT_READY; 3]);
        // Who waits lets the time pass, and no more of it than that.
        assert_eq!(unsafe { (raw.cuEventSynchronize)(one) }.0, OK);
        assert_eq!(hours(&raw, start, one), 1);
        assert_eq!(raw.query(two), NOT_READY);
        raw.sync(c);
        assert_eq!(hours(&raw, start, two), 3);
        assert_eq!(hours(&raw, start, both), 4);
    }
}

#[test]
fn advance_ends_what_is_over_by_then() {
    own_process!();
    for raw in all() {
        let [start, one, two] = [(); 3].map(|()| raw.event(0));
        let stream = raw.stream(1);
        raw.record(start, stream);
        raw.sync(stream);
        for event in [one, two] {
            raw.keep_busy(stream, 2 * HOUR);
            raw.record(event, stream);
        }
        raw.soft.advance(HOUR);
        assert_eq!(raw.query(one), NOT_READY);
        // Far over: what comes next begins when the one before it ends, and not at the end of this.
        raw.soft.advance(9 * HOUR);
        raw.sync(stream);
        assert_eq!((hours(&raw, start, one), hours(&raw, start, two)), (2, 4));
        let now = raw.event(0);
        raw.record(now, stream);
        raw.sync(stream);
        assert_eq!(hours(&raw, start, now), 10);
    }
}

/// What ends at this very moment has ended.
#[test]
fn what_ends_now_is_over() {
    own_process!();
    for raw in all() {
        let stream = raw.stream(1);
        raw.keep_busy(stream, HOUR);
        raw.soft.advance(HOUR);
        assert!(!raw.busy(stream));
    }
}

/// A function of the program may wait for the thread that waits for a busy stream.
#[test]
fn a_function_that_runs_does_not_stop_the_time() {
    own_process!();
    for hold in [false, true] {
        for raw in all() {
            let (held, free) = (raw.stream(1), raw.stream(1));
            raw.soft.hold_host_functions(hold);
            let latch = (!hold).then(|| raw.latch(held));
            if hold {
                raw.host(held, || {});
            } else {
                raw.record(raw.event(0), held);
            }
            raw.keep_busy(free, HOUR);
            raw.sync(free);
            assert!(raw.busy(held));
            raw.soft.hold_host_functions(false);
            if let Some(latch) = latch {
                latch.release();
            }
            raw.sync(held);
        }
    }
}

/// Copies and functions between busy streams: nobody waits for ever.
#[test]
fn time_passes_after_copies_and_functions() {
    own_process!();
    for raw in all() {
        let (stream, other) = (raw.stream(1), raw.stream(1));
        let (start, end) = (raw.event(0), raw.event(0));
        let mut memory = 0;
        assert_eq!(unsafe { (raw.cuMemAlloc_v2)(&mut memory, 4096) }.0, OK);
        raw.record(start, stream);
        for _ in 0..20 {
            assert_eq!(unsafe { (raw.cuMemsetD8Async)(memory, 1, 4096, stream) }.0, OK);
            raw.keep_busy(stream, HOUR);
            raw.host(stream, || {});
            raw.keep_busy(other, HOUR / 2);
        }
        raw.record(end, stream);
        assert_eq!(unsafe { (raw.cuCtxSynchronize)() }.0, OK);
        // Time also passes for the other stream where a loaded machine is slow to run a function.
        let passed = raw.elapsed(start, end).expect("both are done") / 3_600_000.0;
        assert!((19.999..30.001).contains(&passed), "{passed} hours");
        assert_eq!(unsafe { (raw.cuMemFree_v2)(memory) }.0, OK);
    }
}

/// A copy takes its time, by the end of which a busy stream may be over.
#[test]
fn a_copy_moves_the_time_of_busy_streams() {
    let raw = Raw::with(SoftDriver::builder().time(Time::Virtual));
    let [busy, copies] = [(); 2].map(|()| raw.stream(1));
    let mut memory = 0;
    assert_eq!(unsafe { (raw.cuMemAlloc_v2)(&mut memory, 1 << 20) }.0, OK);
    for (ns, is_over) in [(1024, true), (1025, false)] {
        raw.keep_busy(busy, Duration::from_nanos(ns));
        assert_eq!(unsafe { (raw.cuMemsetD8Async)(memory, 1, 1 << 20, copies) }.0, OK);
        assert_eq!(raw.busy(busy), !is_over, "{ns} ns");
        raw.sync(busy);
    }
    assert_eq!(unsafe { (raw.cuMemFree_v2)(memory) }.0, OK);
}

#[test]
fn a_graph_can_be_busy() {
    own_process!();
    for raw in all() {
        let stream = raw.stream(1);
        let (start, end) = (raw.event(0), raw.event(0));
        let (mut graph, mut exec) = (null_mut(), null_mut());
        unsafe {
            let relaxed = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
            assert_eq!((raw.cuStreamBeginCapture_v2)(stream, relaxed).0, OK);
            raw.keep_busy(stream, HOUR);
            assert_eq!((raw.cuStreamEndCapture)(stream, &mut graph).0, OK);
            assert!(!raw.busy(stream), "a capture does nothing");
            assert_eq!(raw.cuGraphInstantiateWithFlags.unwrap()(&mut exec, graph, 0).0, OK);
            raw.record(start, stream);
            for _ in 0..3 {
                assert_eq!((raw.cuGraphLaunch)(exec, stream).0, OK);
            }
            raw.record(end, stream);
            raw.sync(stream);
            assert_eq!(hours(&raw, start, end), 3);
            assert_eq!((raw.cuGraphExecDestroy)(exec).0, OK);
            assert_eq!((raw.cuGraphDestroy)(graph).0, OK);
        }
    }
}

/// In real time a stream that is busy for an hour holds nobody else, and neither a failed context
/// nor the end of the driver waits for it.
#[test]
fn real_time_is_real_and_shared() {
    let raw = Raw::new();
    let [long, short, next] = [(); 3].map(|()| raw.stream(1));
    let (start, end) = (raw.event(0), raw.event(0));
    raw.keep_busy(long, HOUR);
    raw.record(start, short);
    raw.keep_busy(short, Duration::from_millis(2));
    raw.record(end, short);
    raw.keep_busy(next, Duration::from_millis(1));
    raw.wait(next, end);
    raw.sync(next);
    assert!(raw.elapsed(start, end).expect("both are done") >= 2.0);
    assert!(raw.busy(long));
    raw.soft.fail_contexts(CUresult(719));
    assert_eq!(unsafe { (raw.cuStreamSynchronize)(long) }.0, 719);
    assert_eq!(unsafe { (raw.cuDevicePrimaryCtxRelease_v2)(0) }.0, OK);

    let raw = Raw::new();
    let stream = raw.stream(1);
    raw.keep_busy(stream, HOUR);
}

/// What ends sooner does not wait for what ends later and was there before.
#[test]
fn short_work_ends_before_long_work() {
    let raw = Raw::new();
    let (long, short) = (raw.stream(1), raw.stream(1));
    raw.keep_busy(long, HOUR);
    for _ in 0..8 {
        raw.keep_busy(short, Duration::from_millis(1));
        raw.sync(short);
    }
    assert!(raw.busy(long));
    raw.soft.shut_down();
}

#[test]
fn a_failed_context_is_not_busy_in_virtual_time() {
    let raw = Raw::with(SoftDriver::builder().time(Time::Virtual));
    let stream = raw.stream(1);
    raw.keep_busy(stream, HOUR);
    raw.keep_busy(stream, HOUR);
    raw.soft.fail_contexts(CUresult(719));
    assert_eq!(unsafe { (raw.cuStreamQuery)(stream) }.0, 719);
    assert_eq!(unsafe { (raw.cuDevicePrimaryCtxRelease_v2)(0) }.0, OK);
}

/// It is work like other work: the legacy default stream waits for it, and is an operation.
#[test]
fn the_legacy_default_stream_waits_for_it() {
    let builder = SoftDriver::builder().time(Time::Virtual).check_order(OrderCheck::Report);
    let raw = Raw::with(builder);
    let (one, two) = (raw.stream(0), raw.stream(0));
    let (start, end) = (raw.event(0), raw.event(0));
    raw.record(start, one);
    let mut memory = 0;
    unsafe {
        assert_eq!((raw.cuMemAlloc_v2)(&mut memory, 64).0, OK);
        assert_eq!((raw.cuMemsetD8Async)(memory, 1, 64, one).0, OK);
        raw.keep_busy(one, HOUR);
        raw.keep_busy(legacy(), HOUR);
        assert_eq!((raw.cuMemsetD8Async)(memory, 1, 64, two).0, OK);
        raw.record(end, two);
        raw.sync(two);
        assert_eq!(hours(&raw, start, end), 2);
        assert_eq!((raw.cuMemFree_v2)(memory).0, OK);
    }
    assert_eq!(order_texts(&raw.soft), [""; 0]);
}
