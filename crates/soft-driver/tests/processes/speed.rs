//! How long the hot calls take. Printed, and asserted only where a build is optimised: a debug
//! build or a busy machine says nothing about the driver.

use crate::common;

use std::time::Instant;

use common::*;
use cuda_events::sys::*;
use cuda_events_test_support::own_process;

fn nanoseconds(name: &str, mut call: impl FnMut()) {
    const CALLS: u32 = if cfg!(debug_assertions) { 5_000 } else { 200_000 };
    let best = (0..5).map(|_| {
        let began = Instant::now();
        for _ in 0..CALLS {
            call();
        }
        began.elapsed().as_nanos() as f64 / f64::from(CALLS)
    });
    let best = best.fold(f64::INFINITY, f64::min);
    println!("{name:32} {best:6.0} ns");
}

#[test]
fn hot_calls() {
    own_process!();
    let raw = Raw::new();
    let (stream, other, held) = (raw.stream(1), raw.stream(0), raw.stream(1));
    let (plain, timing, pending) = (raw.event(CU_EVENT_DISABLE_TIMING), raw.event(0), raw.event(0));
    let latch = raw.latch(held);
    raw.record(pending, held);
    nanoseconds("record, no timing", || raw.record(plain, stream));
    nanoseconds("record, timing", || raw.record(timing, stream));
    nanoseconds("record, blocking stream", || raw.record(plain, other));
    nanoseconds("query, done", || assert_eq!(raw.query(plain), OK));
    nanoseconds("query, pending", || assert_eq!(raw.query(pending), NOT_READY));
    nanoseconds("wait for what is done", || raw.wait(stream, plain));
    nanoseconds("stream query", || assert!(!raw.busy(stream)));
    nanoseconds("synchronize, done", || {
        assert_eq!(unsafe { (raw.cuEventSynchronize)(plain) }.0, OK);
    });
    nanoseconds("record and wait, pending", || {
        raw.record(pending, held);
    });
    nanoseconds("create and destroy", || {
        let event = raw.event(0);
        assert_eq!(unsafe { (raw.cuEventDestroy_v2)(event) }.0, OK);
    });
    latch.release();
    raw.sync(held);
}

/// What this process used of the processor while its streams were idle or waiting.
#[cfg(target_os = "linux")]
#[test]
fn waiting_costs_nothing() {
    fn used() -> f64 {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: a place for the time.
        assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) }, 0);
        time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
    }
    // Other tests use the processor too.
    own_process!();
    let raw = Raw::new();
    let held = raw.stream(1);
    let latch = raw.latch(held);
    latch.reached();
    let event = raw.event(CU_EVENT_DISABLE_TIMING);
    raw.record(event, held);
    let waiting: Vec<CUstream> = (0..1000).map(|_| raw.stream(1)).collect();
    for stream in &waiting {
        raw.wait(*stream, event);
    }
    let before = used();
    std::thread::sleep(std::time::Duration::from_millis(300));
    let spent = used() - before;
    assert!(spent < 0.03, "{spent} s of processor time while nothing was to do");
    latch.release();
    for stream in waiting {
        raw.sync(stream);
    }
}
