//! How exact an elapsed time is: the way that the documentation of `elapsed_ms` names to keep the
//! resolution over long times. In virtual time, so on the software
//! driver only.

use std::time::Duration;

use cuda_events::{Context, Device, EventFlags, Stream, StreamOptions};
use cuda_soft_driver::{SoftDriver, Time};

/// The grid of the time stamps of the software driver, which is an H200's.
const TICK_NS: u64 = 32;

/// The distance to the next larger number, in microseconds.
fn step_us(milliseconds: f32) -> f64 {
    (f64::from(f32::from_bits(milliseconds.to_bits() + 1)) - f64::from(milliseconds)) * 1000.0
}

#[test]
fn a_chain_keeps_what_one_time_loses() {
    // An hour and a bit, in parts that are no round numbers.
    const PARTS: u64 = 7300;
    let soft = SoftDriver::builder().time(Time::Virtual).build();
    let context = Context::primary(Device::new(soft.driver(), 0).expect("device 0"))
        .expect("the primary context");
    let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
    let record = || {
        let event = stream.record_event(EventFlags::TIMING).expect("an event");
        event.synchronize().expect("no work");
        event
    };
    let first = record();
    let mut previous = None;
    let (mut sum_ms, mut told_ticks, mut true_ticks) = (0.0, 0, 0);
    for part in 0..PARTS {
        // 493 to 500 ms.
        let ticks = (493_000_000 + part * 1_234_567 % 6_999_000) / TICK_NS;
        soft.advance(Duration::from_nanos(ticks * TICK_NS));
        let next = record();
        let milliseconds = f64::from(
            previous.as_ref().unwrap_or(&first).elapsed_ms(&next).expect("both are done"),
        );
        sum_ms += milliseconds;
        told_ticks += (milliseconds * 1e6 / TICK_NS as f64).round() as u64;
        true_ticks += ticks;
        previous = Some(next);
    }
    let last = previous.expect("some parts");
    let true_us = (true_ticks * TICK_NS) as f64 / 1e3;
    let off_us = |milliseconds: f64| (milliseconds * 1e3 - true_us).abs();
    // One time over all of it is off by up to half a step of 250 us, the sum by about a
    // microsecond, and the sum of parts that are rounded to the grid by nothing.
    let whole = first.elapsed_ms(&last).expect("both are done");
    let off = off_us(f64::from(whole));
    assert!(true_us > 3.6e9 && off > 10.0 && off <= step_us(whole) / 2.0, "{off} us");
    assert!(off_us(sum_ms) < 2.0, "{} us", off_us(sum_ms));
    assert_eq!(told_ticks, true_ticks);
    // A minute of such parts is within the half microsecond that NVIDIA names.
    let minute: f64 = (0..120).map(|part| f64::from((497.0 + f64::from(part) / 97.0) as f32)).sum();
    let exact: f64 = (0..120).map(|part| 497.0 + f64::from(part) / 97.0).sum();
    assert!((minute - exact).abs() * 1e3 < 0.5);
}
