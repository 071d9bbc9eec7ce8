//! The same operations on many threads, each with its own events and streams.
//!
//! All threads make one operation from one moment on until another, so that each has all the others
//! beside it.

use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::time::{Duration, Instant};

use cuda_events::{Context, IpcEventDescriptor};
use cudarc::driver::CudaContext;
use serde_json::{Value, json};

use crate::loops::{Operation, Timed, operations};
use crate::processes::numbers;
use crate::rig::{Rig, leaked_context, pool};
use crate::rounds::spread;

/// How many threads, and the operations.
const THREADS: [usize; 5] = [1, 2, 4, 8, 16];
const MEASURED: [&str; 5] = [
    "record",
    "query, done",
    "create + drop",
    "create + drop, context leaked",
    "pool take + return",
];
/// For how long all threads make the same calls.
const WINDOW: Duration = Duration::from_micros(500);
/// What calls between two looks at the clock take at the least.
const BATCH: Duration = Duration::from_micros(20);
/// C measured against itself: by how much two measurements of the same thing differ.
pub const AGAIN: &str = "c again";

/// One loop of one operation, and its name in the figures.
struct Measured {
    operation: &'static str,
    name: &'static str,
    timed: &'static Timed,
}

fn measured() -> Vec<Vec<Measured>> {
    let wanted = operations();
    let find = |name: &&str| wanted.iter().copied().find(|operation| operation.name == *name);
    MEASURED
        .iter()
        .filter_map(find)
        .map(|Operation { name: operation, loops }| {
            // The raw table is what C is.
            let wanted = loops.iter().filter(|timed| timed.implementation() != "raw");
            let again = Measured { operation, name: AGAIN, timed: &loops[0] };
            let all =
                wanted.map(|timed| Measured { operation, name: timed.implementation(), timed });
            all.chain([again]).collect()
        })
        .collect()
}

/// What the threads share.
struct Meeting {
    barrier: Barrier,
    base: Instant,
    /// Nanoseconds after `base`.
    start: AtomicU64,
    /// The shortest time that a thread took for a batch.
    shortest: AtomicU64,
    /// Of all threads: when the last began, calls, and nanoseconds of processor and wall-clock
    /// time.
    sum: Mutex<Sum>,
}

#[derive(Default)]
struct Sum {
    late: Duration,
    calls: u64,
    cpu: Duration,
    wall: Duration,
}

/// The samples of so many rounds, for the process that started this one.
pub fn measure(context: &Context, peer: &Arc<CudaContext>, rounds: usize) -> Value {
    // One of each for all threads.
    let leaked = leaked_context(context);
    let pool = pool(context);
    let operations = measured();
    let cores = cores();
    let mut rows = Vec::new();
    // More threads than cores are not beside each other, but take turns.
    for threads in THREADS.into_iter().filter(|&threads| threads <= cores.len()) {
        let meeting = Meeting {
            barrier: Barrier::new(threads),
            base: Instant::now(),
            start: AtomicU64::new(0),
            shortest: AtomicU64::new(u64::MAX),
            sum: Mutex::default(),
        };
        // By operation, implementation and round; null where the threads were not beside each
        // other.
        let samples: Mutex<Vec<Vec<[Vec<Value>; 2]>>> = Mutex::new(
            operations
                .iter()
                .map(|each| each.iter().map(|_| Default::default()).collect())
                .collect(),
        );
        std::thread::scope(|scope| {
            for &core in &cores[..threads] {
                let (meeting, samples, operations) = (&meeting, &samples, &operations);
                let (leaked, pool) = (&leaked, &pool);
                scope.spawn(move || {
                    stay_on(core);
                    let mut rig = Rig::new(
                        context,
                        leaked,
                        peer,
                        IpcEventDescriptor::from_raw([0; 64], false),
                    );
                    rig.pool = pool.clone();
                    let batches: Vec<Vec<u64>> = operations
                        .iter()
                        .map(|each| {
                            each.iter()
                                .map(|measured| batch(&rig, measured.timed, meeting))
                                .collect()
                        })
                        .collect();
                    for round in 0..rounds {
                        for (operation, (each, batches)) in
                            operations.iter().zip(&batches).enumerate()
                        {
                            for turn in 0..each.len() {
                                // Another one is first in each round.
                                let index = (turn + round) % each.len();
                                let Some(sum) =
                                    together(&rig, each[index].timed, batches[index], meeting)
                                else {
                                    continue;
                                };
                                let beside = sum.late < WINDOW / 5;
                                let cost = |time: Duration| match beside {
                                    true => (time.as_secs_f64() * 1e9 / sum.calls as f64).into(),
                                    false => Value::Null,
                                };
                                let mut samples = samples.lock().expect("no thread panicked");
                                let [cpu, wall] = &mut samples[operation][index];
                                cpu.push(cost(sum.cpu));
                                wall.push(cost(sum.wall));
                            }
                        }
                    }
                });
            }
        });
        let samples = samples.into_inner().expect("no thread panicked");
        for (each, samples) in operations.iter().zip(samples) {
            for (measured, [cpu, wall]) in each.iter().zip(samples) {
                let (operation, name) = (measured.operation, measured.name);
                rows.push(json!({
                    "operation": operation, "implementation": name, "threads": threads, "cpu": cpu,
                    "wall": wall,
                }));
            }
        }
    }
    rows.into()
}

/// What several processes measured, as if one had.
pub fn report_all(processes: &[Value], report: &mut impl FnMut(Value)) {
    let rows = |process: &Value| process.as_array().cloned().unwrap_or_default();
    let first = rows(&processes[0]);
    // All processes give the same rows in the same order.
    let all = |row: usize, what: &str| -> Vec<f64> {
        processes.iter().flat_map(|process| numbers(&process[row][what])).collect()
    };
    let mut c = 0;
    for (index, row) in first.iter().enumerate() {
        if row["implementation"] == "c" {
            c = index;
        }
        let ratio = |what| {
            spread(all(index, what).iter().zip(all(c, what)).map(|(own, c)| own / c).collect())
        };
        report(json!({
            "kind": "threads",
            "operation": row["operation"],
            "implementation": row["implementation"],
            "threads": row["threads"],
            "cpu_ns": spread(all(index, "cpu")),
            "wall_ns": spread(all(index, "wall")),
            "cpu_ratio": ratio("cpu"),
            "wall_ratio": ratio("wall"),
            "rounds": all(index, "wall").iter().filter(|sample| sample.is_finite()).count(),
            "processes": processes.len(),
        }));
    }
}

/// All threads make the calls for as long as the window is; one of them gets the sum.
fn together(rig: &Rig, timed: &Timed, batch: u64, meeting: &Meeting) -> Option<Sum> {
    if meeting.barrier.wait().is_leader() {
        *meeting.sum.lock().expect("no thread panicked") = Sum::default();
        // By then all of them are awake.
        let start = meeting.base.elapsed() + Duration::from_micros(100);
        meeting.start.store(start.as_nanos() as u64, Ordering::Relaxed);
    }
    meeting.barrier.wait();
    let start = meeting.base + Duration::from_nanos(meeting.start.load(Ordering::Relaxed));
    while Instant::now() < start {
        core::hint::spin_loop();
    }
    let (cpu, began) = (cpu_time(), Instant::now());
    let mut calls = 0;
    let wall = loop {
        assert_eq!((timed.run)(rig, batch), 0, "{} failed", timed.function);
        calls += batch;
        let now = Instant::now();
        if now >= start + WINDOW {
            break now - began;
        }
    };
    let cpu = cpu_time() - cpu;
    {
        let mut sum = meeting.sum.lock().expect("no thread panicked");
        sum.late = sum.late.max(began - start);
        sum.calls += calls;
        sum.cpu += cpu;
        sum.wall += wall;
    }
    rig.settle();
    let leader = meeting.barrier.wait().is_leader();
    leader.then(|| core::mem::take(&mut *meeting.sum.lock().expect("no thread panicked")))
}

/// How many calls all threads make between two looks at the clock: the same for all, found with all
/// of them at it.
fn batch(rig: &Rig, timed: &Timed, meeting: &Meeting) -> u64 {
    let mut batch = 1;
    loop {
        if meeting.barrier.wait().is_leader() {
            meeting.shortest.store(u64::MAX, Ordering::Relaxed);
        }
        meeting.barrier.wait();
        let started = Instant::now();
        assert_eq!((timed.run)(rig, batch), 0, "{} failed", timed.function);
        meeting.shortest.fetch_min(started.elapsed().as_nanos() as u64, Ordering::Relaxed);
        rig.settle();
        meeting.barrier.wait();
        if u128::from(meeting.shortest.load(Ordering::Relaxed)) >= BATCH.as_nanos() {
            return batch;
        }
        batch *= 2;
    }
}

/// The cores that this process may use.
fn cores() -> Vec<usize> {
    // SAFETY: plain bits, for which zero is a value.
    let mut set: libc::cpu_set_t = unsafe { core::mem::zeroed() };
    // SAFETY: a place for the bits, and its size.
    let code = unsafe { libc::sched_getaffinity(0, size_of_val(&set), &mut set) };
    assert_eq!(code, 0, "the process has no cores");
    // SAFETY: the number is in the set's range.
    (0..libc::CPU_SETSIZE as usize).filter(|&core| unsafe { libc::CPU_ISSET(core, &set) }).collect()
}

/// Keeps the calling thread on a core: threads that wake each other are put on one core else,
/// beside idle ones.
fn stay_on(core: usize) {
    // SAFETY: plain bits, for which zero is a value.
    let mut set: libc::cpu_set_t = unsafe { core::mem::zeroed() };
    // SAFETY: the number is in the set's range.
    unsafe { libc::CPU_SET(core, &mut set) };
    // SAFETY: the bits, and their size.
    let code = unsafe { libc::sched_setaffinity(0, size_of_val(&set), &set) };
    assert_eq!(code, 0, "a core of this process's cannot be used");
}

/// What the calling thread has used.
fn cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a place for the time; the clock is the calling thread's.
    let code = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    assert_eq!(code, 0, "the thread has no clock");
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}
