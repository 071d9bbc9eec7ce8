//! Timing in interleaved rounds, and what is said of many samples.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::loops::{Operation, operations};
use crate::processes::numbers;
use crate::rig::Rig;

/// What one batch of calls takes, about.
const BATCH: Duration = Duration::from_micros(100);

/// Median and tenth and ninetieth percentile of those that are numbers.
pub fn spread(mut samples: Vec<f64>) -> Value {
    samples.retain(|sample| sample.is_finite());
    samples.sort_by(f64::total_cmp);
    json!({
        "median": rounded(percentile(&samples, 0.5)),
        "p10": rounded(percentile(&samples, 0.1)),
        "p90": rounded(percentile(&samples, 0.9)),
    })
}

/// Of sorted samples, between which it interpolates.
pub fn percentile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let at = share * last as f64;
    let below = at.floor();
    let (low, high) = (sorted[below as usize], sorted[at.ceil() as usize]);
    low + (high - low) * (at - below)
}

/// Three decimals are more than any figure here is good for.
pub fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

/// Samples by operation, implementation and round, and how many calls made one.
pub struct Samples {
    nanoseconds: Vec<Vec<Vec<f64>>>,
    batches: Vec<Vec<u64>>,
}

/// Times every operation of every implementation, in turns.
pub fn measure(rig: &Rig, rounds: usize) -> Samples {
    let operations = operations();
    let batches: Vec<Vec<u64>> = operations
        .iter()
        .map(|operation| {
            (0..operation.loops.len()).map(|index| batch(rig, operation, index)).collect()
        })
        .collect();
    let mut nanoseconds: Vec<Vec<Vec<f64>>> = operations
        .iter()
        .map(|operation| vec![Vec::with_capacity(rounds); operation.loops.len()])
        .collect();
    for round in 0..rounds {
        for (operation, (batches, samples)) in
            operations.iter().zip(batches.iter().zip(&mut nanoseconds))
        {
            let count = operation.loops.len();
            for turn in 0..count {
                // Another one is first in each round.
                let index = (turn + round) % count;
                samples[index].push(time(rig, operation, index, batches[index]));
            }
        }
    }
    Samples { nanoseconds, batches }
}

impl Samples {
    /// For another process to read.
    pub fn to_json(&self) -> Value {
        json!({ "nanoseconds": self.nanoseconds, "batches": self.batches })
    }

    /// What several processes measured, as if one had.
    pub fn merge(processes: &[Value]) -> Self {
        let nanoseconds = |operation: usize, index: usize| -> Vec<f64> {
            processes
                .iter()
                .flat_map(|process| numbers(&process["nanoseconds"][operation][index]))
                .collect()
        };
        let batch = |operation: usize, index: usize| {
            processes[0]["batches"][operation][index].as_u64().unwrap_or(0)
        };
        let operations = operations();
        let each = |operation: usize| 0..operations[operation].loops.len();
        Self {
            nanoseconds: (0..operations.len())
                .map(|operation| {
                    each(operation).map(|index| nanoseconds(operation, index)).collect()
                })
                .collect(),
            batches: (0..operations.len())
                .map(|operation| each(operation).map(|index| batch(operation, index)).collect())
                .collect(),
        }
    }

    pub fn report(&self, processes: usize, mut report: impl FnMut(Value)) {
        for (operation, (batches, samples)) in
            operations().iter().zip(self.batches.iter().zip(&self.nanoseconds))
        {
            let c = &samples[0];
            let safe = operation.loops.iter().position(|timed| timed.implementation() == "safe");
            for (timed, (batch, own)) in operation.loops.iter().zip(batches.iter().zip(samples)) {
                let pairs = || own.iter().zip(c);
                let mut row = json!({
                    "kind": "time",
                    "operation": operation.name,
                    "implementation": timed.implementation(),
                    "ns": spread(own.clone()),
                    "over_c": spread(pairs().map(|(own, c)| own - c).collect()),
                    "ratio": spread(pairs().map(|(own, c)| own / c).collect()),
                    "rounds": own.len(),
                    "processes": processes,
                    "batch": batch,
                });
                if let (Some(safe), "cudarc") = (safe, timed.implementation()) {
                    row["over_safe"] = spread(
                        own.iter().zip(&samples[safe]).map(|(own, safe)| own / safe).collect(),
                    );
                }
                report(row);
            }
        }
    }
}

/// Nanoseconds for one call.
fn time(rig: &Rig, operation: &Operation, index: usize, batch: u64) -> f64 {
    let started = Instant::now();
    let failed = (operation.loops[index].run)(rig, batch);
    let elapsed = started.elapsed();
    assert_eq!(failed, 0, "calls of {} failed", operation.loops[index].function);
    rig.settle();
    elapsed.as_secs_f64() * 1e9 / batch as f64
}

/// How many calls make a batch.
fn batch(rig: &Rig, operation: &Operation, index: usize) -> u64 {
    // The first calls warm up.
    time(rig, operation, index, 64);
    let nanoseconds = time(rig, operation, index, 64);
    ((BATCH.as_secs_f64() * 1e9 / nanoseconds) as u64).clamp(16, 200_000)
}
