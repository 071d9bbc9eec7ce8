//! The same operations on many threads, each with its own events and streams.

use std::sync::{Arc, Barrier, Mutex};
use std::time::{Duration, Instant};

use cuda_events::{Context, EventFlags, EventPool, IpcEventDescriptor};
use cudarc::driver::CudaContext;
use serde_json::{Value, json};

use crate::loops::{OPERATIONS, Operation, Timed};
use crate::rig::{Rig, leaked_context};
use crate::rounds::spread;

/// How many threads, and the operations.
const THREADS: [usize; 5] = [1, 2, 4, 8, 16];
const MEASURED: [&str; 5] =
    ["record", "query, done", "create + drop", "create + drop, context leaked", "pool take + return"];
/// What one batch of calls takes on one thread, about.
const BATCH: Duration = Duration::from_micros(500);

/// Nanoseconds for one call on one thread: of its processor time, and of wall-clock time.
struct Cost {
    cpu: f64,
    wall: f64,
}

pub fn measure(context: &Context, peer: &Arc<CudaContext>, rounds: usize, report: &mut impl FnMut(Value)) {
    // One of each for all threads.
    let leaked = leaked_context(context);
    let pool = EventPool::new(context, EventFlags::empty()).expect("a pool");
    let operations: Vec<&Operation> =
        MEASURED.iter().filter_map(|name| OPERATIONS.iter().find(|operation| operation.name == *name)).collect();
    assert_eq!(operations.len(), MEASURED.len(), "an operation has another name now");
    for threads in THREADS {
        let barrier = Barrier::new(threads);
        // By operation and implementation, over threads and rounds.
        let costs: Vec<Vec<Mutex<Vec<Cost>>>> =
            operations.iter().map(|operation| operation.loops.iter().map(|_| Mutex::default()).collect()).collect();
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    let mut rig = Rig::new(context, &leaked, peer, IpcEventDescriptor::from_raw([0; 64], false));
                    rig.pool = pool.clone();
                    let batches: Vec<Vec<u64>> = operations
                        .iter()
                        .map(|operation| operation.loops.iter().map(|timed| batch(&rig, timed)).collect())
                        .collect();
                    for round in 0..=rounds {
                        for (operation, (batches, costs)) in operations.iter().zip(batches.iter().zip(&costs)) {
                            for (timed, (batch, costs)) in operation.loops.iter().zip(batches.iter().zip(costs)) {
                                if timed.implementation() == "raw" {
                                    // It is what C is.
                                    continue;
                                }
                                barrier.wait();
                                let (cpu, wall) = (cpu_time(), Instant::now());
                                let left = (timed.run)(&rig, *batch);
                                let (cpu, wall) = (cpu_time() - cpu, wall.elapsed());
                                assert_eq!(left, 0, "{} failed", timed.function);
                                rig.settle();
                                // The first round warms up.
                                if round > 0 {
                                    let each = |time: Duration| time.as_secs_f64() * 1e9 / *batch as f64;
                                    let cost = Cost { cpu: each(cpu), wall: each(wall) };
                                    costs.lock().expect("no thread panicked").push(cost);
                                }
                            }
                        }
                    }
                });
            }
        });
        for (operation, costs) in operations.iter().zip(costs) {
            for (timed, costs) in operation.loops.iter().zip(costs) {
                let costs = costs.into_inner().expect("no thread panicked");
                if costs.is_empty() {
                    continue;
                }
                report(json!({
                    "kind": "threads",
                    "operation": operation.name,
                    "implementation": timed.implementation(),
                    "threads": threads,
                    "cpu_ns": spread(costs.iter().map(|cost| cost.cpu).collect()),
                    "wall_ns": spread(costs.iter().map(|cost| cost.wall).collect()),
                }));
            }
        }
    }
}

fn batch(rig: &Rig, timed: &Timed) -> u64 {
    (timed.run)(rig, 64);
    let started = Instant::now();
    (timed.run)(rig, 256);
    let each = started.elapsed().as_secs_f64() / 256.0;
    rig.settle();
    ((BATCH.as_secs_f64() / each) as u64).clamp(64, 500_000)
}

/// What the calling thread has used.
fn cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a place for the time; the clock is the calling thread's.
    let code = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    assert_eq!(code, 0, "the thread has no clock");
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}
