//! Waits beside threads that record and query at full speed, and launches beside a thread that
//! makes events: what one thread's way of waiting or marking costs the others.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;
use std::sync::Arc;
use std::time::Instant;

use cuda_events::ext::EventPool;
use cuda_events::{Context, Event, EventFlags, Stream, StreamOptions};
use cuda_timelines::Timeline;
use serde_json::{Value, json};

use crate::completions::{cpu_time, short, wake_row};
use crate::rounds::{percentile, rounded};
use crate::timelines::{Between, Bytes, WAYS, lateness};

/// The threads that record and query.
const THREADS: usize = 8;
/// How long one round of launches takes.
const ROUND: Duration = Duration::from_millis(500);
/// How many events the other thread makes a second.
const EACH: Duration = Duration::from_micros(100);

pub fn measure(context: &Context, samples: usize, report: &mut impl FnMut(Value)) {
    waits(context, samples, report);
    launches(context, samples.div_ceil(250), report);
    waiters(context, report);
}

/// Runs `work` while threads record and query; and how many pairs of calls they made a second.
fn beside<T>(context: &Context, work: impl FnOnce() -> T) -> (T, f64) {
    let (stop, pairs) = (AtomicBool::new(false), AtomicU64::new(0));
    let (result, took) = std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let stream = Stream::new(context, StreamOptions::new()).expect("a stream");
                let event = Event::new(context, EventFlags::empty()).expect("an event");
                let mut made = 0;
                while !stop.load(Ordering::Relaxed) {
                    event.record(&stream).expect("a record");
                    let _ = event.query().expect("a query");
                    made += 1;
                }
                pairs.fetch_add(made, Ordering::Relaxed);
                stream.synchronize().expect("no work fails");
            });
        }
        // They have begun by then.
        std::thread::sleep(Duration::from_millis(20));
        let started = Instant::now();
        let result = work();
        let took = started.elapsed() + Duration::from_millis(20);
        stop.store(true, Ordering::Relaxed);
        (result, took)
    });
    (result, pairs.into_inner() as f64 / took.as_secs_f64())
}

/// How soon each way of waiting learns of the end beside the crowd, and what is left to the crowd.
fn waits(context: &Context, samples: usize, report: &mut impl FnMut(Value)) {
    let timeline = Timeline::new(Stream::new(context, StreamOptions::new()).expect("a stream"))
        .expect("a timeline");
    let bytes = Bytes::new(context);
    for way in WAYS {
        let between = Between::Memset(&bytes);
        let measured = || -> Vec<f64> {
            let one = |sample| lateness(context, &timeline, way, between, short(sample));
            (0..samples).filter_map(one).collect()
        };
        let (late, pairs) = beside(context, measured);
        let mut row = wake_row(way, "100 to 310 us", 0, late);
        row["kind"] = "crowd wake".into();
        row["threads"] = THREADS.into();
        row["pairs_a_second"] = pairs.round().into();
        report(row);
    }
}

/// Microseconds of each submission of a memset, while another thread does something at a rate.
fn launches(context: &Context, rounds: usize, report: &mut impl FnMut(Value)) {
    let pool = EventPool::new(context, EventFlags::empty()).expect("a pool");
    let marked = Timeline::new(Stream::new(context, StreamOptions::new()).expect("a stream"))
        .expect("a timeline");
    let stream = || marked.stream();
    let ways: [(&str, &(dyn Fn() + Sync)); 4] = [
        ("nothing", &|| {}),
        ("record_event, and drop", &|| {
            drop(stream().record_event(EventFlags::empty()).expect("a record"));
        }),
        ("a pooled event, recorded", &|| {
            drop(pool.record_event(stream()).expect("a record"));
        }),
        ("a signal of a timeline", &|| {
            marked.signal().expect("a signal");
        }),
    ];
    let launching = Stream::new(context, StreamOptions::new()).expect("a stream");
    let bytes = Bytes::new(context);
    for (way, mark) in ways {
        let (mut launch, mut own) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            let stop = AtomicBool::new(false);
            std::thread::scope(|scope| {
                let marking = scope.spawn(|| {
                    let mut times = Vec::new();
                    while !stop.load(Ordering::Relaxed) {
                        let started = Instant::now();
                        mark();
                        times.push(started.elapsed().as_nanos() as f64 / 1000.0);
                        while started.elapsed() < EACH {
                            core::hint::spin_loop();
                        }
                    }
                    times
                });
                let begun = Instant::now();
                while begun.elapsed() < ROUND {
                    let started = Instant::now();
                    Between::Memset(&bytes).submit(&launching);
                    launch.push(started.elapsed().as_nanos() as f64 / 1000.0);
                    // The queue never fills, which would be what is measured.
                    if launch.len() % 256 == 0 {
                        launching.synchronize().expect("no work fails");
                    }
                }
                stop.store(true, Ordering::Relaxed);
                own.extend(marking.join().expect("the other thread ends"));
            });
            stream().synchronize().expect("no work fails");
        }
        let shares = |times: &mut Vec<f64>| {
            times.sort_by(f64::total_cmp);
            json!({
                "p50": rounded(percentile(times, 0.5)), "p99": rounded(percentile(times, 0.99)),
                "p99.9": rounded(percentile(times, 0.999)), "max": rounded(percentile(times, 1.0)),
                "samples": times.len(),
            })
        };
        report(json!({
            "kind": "crowd launch", "way": way, "launch_us": shares(&mut launch),
            "own_us": shares(&mut own),
        }));
    }
}

/// The processor time and the threads of a hundred waiters of one point.
fn waiters(context: &Context, report: &mut impl FnMut(Value)) {
    const WAITERS: usize = 100;
    let held = Arc::new(Stream::new(context, StreamOptions::new()).expect("a stream"));
    for way in ["points, futures", "events, BLOCKING_SYNC, a thread each"] {
        let hold = crate::completions::Hold::new(&held);
        let timeline = Timeline::new(Arc::clone(&held)).expect("a timeline");
        let point = timeline.signal().expect("a signal");
        let event = held.record_event(EventFlags::BLOCKING_SYNC).expect("a record");
        std::thread::scope(|scope| {
            let mut futures = Vec::new();
            if way.starts_with("points") {
                let mut context = core::task::Context::from_waker(core::task::Waker::noop());
                for _ in 0..WAITERS {
                    let mut future = Box::pin(std::future::IntoFuture::into_future(point));
                    assert!(future.as_mut().poll(&mut context).is_pending(), "it is held");
                    futures.push(future);
                }
            } else {
                for _ in 0..WAITERS {
                    scope.spawn(|| event.synchronize().expect("no work fails"));
                }
            }
            std::thread::sleep(ROUND);
            let (cpu, started) = (cpu_time(), Instant::now());
            std::thread::sleep(2 * ROUND);
            let share = (cpu_time() - cpu).as_secs_f64() / started.elapsed().as_secs_f64();
            let threads = std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count);
            report(json!({
                "kind": "crowd waiters", "way": way, "waiting": WAITERS,
                "cpu_percent": rounded(share * 100.0), "threads": threads,
            }));
            drop(hold);
        });
    }
}
