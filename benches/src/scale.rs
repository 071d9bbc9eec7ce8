//! Very many events alive at a time.

use std::time::Instant;

use core::ptr::null_mut;
use cuda_events::sys::{CUevent, CUresult};
use cuda_events::{Context, Event, EventFlags};
use serde_json::{Value, json};

use crate::rounds::{rounded, spread};

/// In how many steps the number grows and shrinks.
const STEPS: usize = 20;

/// `measured_bytes`: whether all memory that is taken meanwhile is this crate's, as it is on the null driver.
pub fn measure(context: &Context, measured_bytes: bool, live: usize, report: &mut impl FnMut(Value)) {
    let symbols = context.driver().symbols();
    let create = || {
        let mut event: CUevent = null_mut();
        // SAFETY: a place for the handle; the context is current.
        let code = unsafe { (symbols.cuEventCreate)(&mut event, 2) };
        assert_eq!(code, CUresult::CUDA_SUCCESS, "cuEventCreate failed");
        event
    };
    let destroy = |event| {
        // SAFETY: it was created above, and is destroyed once.
        let code = unsafe { (symbols.cuEventDestroy_v2)(event) };
        assert_eq!(code, CUresult::CUDA_SUCCESS, "cuEventDestroy failed");
    };
    // The driver keeps memory of events that are gone: both are to find it there.
    grow_and_shrink(live, create, destroy);
    report(row("c", live, measured_bytes, grow_and_shrink(live, create, destroy)));
    let create = || Event::new(context, EventFlags::empty()).expect("an event");
    report(row("safe", live, measured_bytes, grow_and_shrink(live, create, drop)));
}

struct Cost {
    bytes: f64,
    create: Vec<f64>,
    destroy: Vec<f64>,
}

fn grow_and_shrink<T>(live: usize, mut create: impl FnMut() -> T, mut destroy: impl FnMut(T)) -> Cost {
    let step = live / STEPS;
    let before = heap();
    let mut events = Vec::with_capacity(live);
    let mut cost = Cost { bytes: 0.0, create: Vec::new(), destroy: Vec::new() };
    let each = |started: Instant| started.elapsed().as_secs_f64() * 1e9 / step as f64;
    for _ in 0..STEPS {
        let started = Instant::now();
        events.extend((0..step).map(|_| create()));
        cost.create.push(each(started));
    }
    cost.bytes = (heap() - before) / events.len() as f64;
    for _ in 0..STEPS {
        let rest = events.len() - step;
        let started = Instant::now();
        events.drain(rest..).for_each(&mut destroy);
        cost.destroy.push(each(started));
    }
    cost
}

fn row(implementation: &str, live: usize, measured_bytes: bool, cost: Cost) -> Value {
    let first_and_last = |steps: &[f64]| match steps {
        [first, .., last] => json!({ "first": rounded(*first), "last": rounded(*last) }),
        _ => Value::Null,
    };
    json!({
        "kind": "scale",
        "implementation": implementation,
        "live": live,
        "bytes": if measured_bytes { rounded(cost.bytes).into() } else { Value::Null },
        "create_steps": first_and_last(&cost.create),
        "create_ns": spread(cost.create),
        "destroy_steps": first_and_last(&cost.destroy),
        "destroy_ns": spread(cost.destroy),
    })
}

/// The bytes that this process has from the allocator.
#[cfg(target_env = "gnu")]
fn heap() -> f64 {
    // SAFETY: it takes nothing and gives numbers.
    let info = unsafe { libc::mallinfo2() };
    (info.uordblks + info.hblkhd) as f64
}

#[cfg(not(target_env = "gnu"))]
fn heap() -> f64 {
    f64::NAN
}
