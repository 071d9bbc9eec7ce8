//! Timers, and elapsed time as a duration.

use crate::common;

use std::time::{Duration, Instant};

use common::{Gpu, Latch};
use cuda_events::capture::CaptureMode;
use cuda_events::ext::Timer;
use cuda_events::sys::Function;
use cuda_events::{Error, Progress};

#[test]
fn a_timer_has_the_time_once_the_work_is_done() {
    let gpu = Gpu::new();
    let stream = gpu.stream();
    let before = Instant::now();
    let timer = Timer::start(&stream).expect("a timer");
    let latch = Latch::hold(&stream);
    let timing = timer.stop().expect("a timing");
    assert_eq!(timing.query(), Ok(Progress::Pending));
    assert!(matches!(timing.elapsed(), Err(Error::NotReady { .. })));
    assert!(matches!(timing.elapsed_ms(), Err(Error::NotReady { .. })));
    // The stream is held behind the start, for a time that is measured on this side of it.
    timing.start().synchronize().expect("nothing holds the start");
    let held = Instant::now();
    while held.elapsed() < Duration::from_millis(3) {
        std::hint::spin_loop();
    }
    let at_least = held.elapsed();
    latch.release();
    let elapsed = timing.synchronize().expect("a time");
    let (at_most, slack) = (before.elapsed(), Duration::from_micros(100));
    assert!(elapsed + slack >= at_least, "{elapsed:?}, but it was held for {at_least:?}");
    assert!(elapsed <= at_most + slack, "{elapsed:?}, but it took {at_most:?} here");
    assert_eq!(timing.query(), Ok(Progress::Done));
    assert_eq!(timing.elapsed(), Ok(elapsed), "it can be asked again");
    assert_eq!(timing.synchronize(), Ok(elapsed));
    let milliseconds = timing.elapsed_ms().expect("a time");
    assert!(
        (f64::from(milliseconds) - elapsed.as_secs_f64() * 1000.0).abs() < 1e-3,
        "{milliseconds} ms, {elapsed:?}"
    );
    assert_eq!(timing.start().elapsed_ms(timing.end()), Ok(milliseconds));
}

#[test]
fn a_timer_in_a_capture_has_the_time_of_each_launch() {
    let Some(gpu) = Gpu::with(Function::cuEventRecordWithFlags) else { return };
    let stream = gpu.stream();
    let capture = common::begin_capture(&stream, CaptureMode::ThreadLocal).expect("a capture");
    let timing = Timer::start(&stream).and_then(Timer::stop).expect("a timing");
    let exec = capture.end().and_then(|graph| graph.instantiate()).expect("an executable graph");
    assert_eq!(timing.query(), Ok(Progress::Done));
    assert!(matches!(timing.elapsed(), Err(Error::NotRecorded { .. })), "it was never launched");
    for _ in 0..2 {
        let latch = Latch::hold(&stream);
        exec.launch(&stream).expect("a launch");
        assert_eq!(timing.query(), Ok(Progress::Pending));
        latch.release();
        timing.synchronize().expect("a time");
    }
}
