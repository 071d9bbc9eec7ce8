//! Very many events alive at a time.

use std::time::Instant;

use core::ptr::null_mut;
use cuda_events::sys::{CUevent, CUresult};
use cuda_events::{Context, Event, EventFlags};
use serde_json::{Value, json};

use crate::rounds::{rounded, spread};

/// In how many steps the number grows and shrinks.
const STEPS: usize = 20;

/// `measured_bytes`: whether all memory that is taken meanwhile is this crate's, as it is on the
/// null driver.
pub fn measure(
    context: &Context,
    measured_bytes: bool,
    live: usize,
    repetitions: usize,
    report: &mut impl FnMut(Value),
) {
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
    let c = || grow_and_shrink(live, create, destroy);
    let safe = || {
        grow_and_shrink(
            live,
            || Event::new(context, EventFlags::empty()).expect("an event"),
            drop::<Event>,
        )
    };
    // The driver and the allocator keep memory of what is gone: all are to find it there.
    c();
    safe();
    // Another one is first each time.
    let pairs: Vec<[Cost; 2]> = (0..repetitions)
        .map(|repetition| {
            if repetition % 2 == 0 {
                [c(), safe()]
            } else {
                let safe = safe();
                [c(), safe]
            }
        })
        .collect();
    for (index, implementation) in ["c", "safe"].into_iter().enumerate() {
        let costs: Vec<&Cost> = pairs.iter().map(|pair| &pair[index]).collect();
        let bytes = if measured_bytes { rounded(costs[0].bytes).into() } else { Value::Null };
        let mut row = json!({
            "kind": "scale", "implementation": implementation, "live": live, "bytes": bytes,
                "repetitions": repetitions,
        });
        type Way = (&'static str, fn(&Cost) -> &Steps);
        let ways: [Way; 2] = [("create", |cost| &cost.create), ("drop", |cost| &cost.destroy)];
        for (what, steps) in ways {
            let over_c =
                || pairs.iter().map(|pair| steps(&pair[index]).growth() / steps(&pair[0]).growth());
            row[what] = json!({
                "few_ns": spread(costs.iter().map(|cost| steps(cost).few).collect()),
                "most_ns": spread(costs.iter().map(|cost| steps(cost).most).collect()),
                "all_ns": spread(costs.iter().flat_map(|cost| steps(cost).all.clone()).collect()),
                "growth": spread(costs.iter().map(|cost| steps(cost).growth()).collect()),
                "growth_over_c": spread(over_c().collect()),
            });
        }
        report(row);
    }
}

struct Cost {
    bytes: f64,
    create: Steps,
    destroy: Steps,
}

/// Nanoseconds for one call, by step; with the fewest and with the most events alive.
struct Steps {
    all: Vec<f64>,
    few: f64,
    most: f64,
}

impl Steps {
    fn growth(&self) -> f64 {
        self.most / self.few
    }
}

fn grow_and_shrink<T>(
    live: usize,
    mut create: impl FnMut() -> T,
    mut destroy: impl FnMut(T),
) -> Cost {
    let step = live / STEPS;
    let before = heap();
    let mut events = Vec::with_capacity(live);
    let each = |started: Instant| started.elapsed().as_secs_f64() * 1e9 / step as f64;
    let growing: Vec<f64> = (0..STEPS)
        .map(|_| {
            let started = Instant::now();
            events.extend((0..step).map(|_| create()));
            each(started)
        })
        .collect();
    let bytes = (heap() - before) / events.len() as f64;
    let shrinking: Vec<f64> = (0..STEPS)
        .map(|_| {
            let rest = events.len() - step;
            let started = Instant::now();
            events.drain(rest..).for_each(&mut destroy);
            each(started)
        })
        .collect();
    Cost {
        bytes,
        create: Steps { few: growing[0], most: growing[STEPS - 1], all: growing },
        destroy: Steps { few: shrinking[STEPS - 1], most: shrinking[0], all: shrinking },
    }
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
