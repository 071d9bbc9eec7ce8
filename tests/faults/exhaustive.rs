//! Every driver call of every scenario fails once, with every code, and once together with all calls behind it.
//!
//! After each run: no panic and no abort, the error names the call and has its code, nothing is leaked and nothing
//! destroyed twice, and the thread is as it was. This runs on the software driver in this process whatever the other tests
//! run on: no other one fails on command.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use crate::harness::{Failure, Mode, attempt};
use crate::scenarios::{SCENARIOS, Scenario};
use cuda_events::sys::{CUresult, Function};
use cuda_events::{Error, IpcEventDescriptor, LoadOptions, Version};
use cuda_soft_driver::{OnMisuse, SoftDriver};

/// What a driver can plausibly answer, and one code that nobody knows.
pub const CODES: &[CUresult] = &[
    CUresult::CUDA_ERROR_INVALID_VALUE,
    CUresult::CUDA_ERROR_OUT_OF_MEMORY,
    CUresult::CUDA_ERROR_NOT_INITIALIZED,
    CUresult::CUDA_ERROR_DEINITIALIZED,
    CUresult::CUDA_ERROR_INVALID_DEVICE,
    CUresult::CUDA_ERROR_INVALID_CONTEXT,
    CUresult::CUDA_ERROR_INVALID_HANDLE,
    CUresult::CUDA_ERROR_NOT_READY,
    CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED,
    CUresult::CUDA_ERROR_LAUNCH_FAILED,
    CUresult::CUDA_ERROR_NOT_SUPPORTED,
    CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
    CUresult(4242),
];

/// Some of them: one of creation, one that queries map, one of work that failed, one unknown.
const FEWER: &[CUresult] = &[
    CUresult::CUDA_ERROR_OUT_OF_MEMORY,
    CUresult::CUDA_ERROR_NOT_READY,
    CUresult::CUDA_ERROR_LAUNCH_FAILED,
    CUresult(4242),
];

/// On what the scenarios run.
#[derive(Clone, Copy)]
struct Plan {
    version: (u32, u32),
    /// Whether the thread has contexts on its stack.
    stacked: bool,
    per_thread: bool,
    codes: &'static [CUresult],
}

const PLANS: &[Plan] = &[
    Plan { version: (13, 0), stacked: false, per_thread: false, codes: CODES },
    Plan { version: (13, 0), stacked: true, per_thread: false, codes: FEWER },
    Plan { version: (12, 4), stacked: true, per_thread: true, codes: FEWER },
    Plan { version: (11, 4), stacked: false, per_thread: true, codes: FEWER },
    Plan { version: (11, 0), stacked: true, per_thread: false, codes: FEWER },
];

/// More calls than any scenario makes.
const MANY: usize = 4096;

pub fn soft_driver(version: (u32, u32)) -> SoftDriver {
    SoftDriver::builder().version(version.0, version.1).devices(2).on_misuse(OnMisuse::Error).log(MANY).build()
}

/// What all runs together have done.
#[derive(Default)]
struct Total {
    called: BTreeSet<Function>,
    /// Injected runs by scenario.
    runs: BTreeMap<&'static str, u64>,
}

/// Runs one scenario until no call is left to fail, with every code and mode.
fn exhaust(plan: Plan, scenario: &Scenario, import: IpcEventDescriptor, total: &Mutex<Total>) -> Result<(), String> {
    let once = |failure: Option<Failure>| {
        let soft = soft_driver(plan.version);
        let options = LoadOptions::new().per_thread_default_stream(plan.per_thread);
        let driver = soft.try_driver(&options).expect("the software driver resolves");
        attempt(&soft, driver, scenario, plan.stacked, import, failure).map_err(|what| {
            let log: Vec<String> = soft.log().iter().map(|record| format!("\n  {record}")).collect();
            format!(
                "{} on {:?} (stacked {}, per thread {}) with {failure:?}: {what}\nthe calls:{}",
                scenario.name,
                plan.version,
                plan.stacked,
                plan.per_thread,
                log.concat()
            )
        })
    };
    let healthy = once(None)?;
    total.lock().expect("no test panics with it").called.extend(healthy.called);
    for error in healthy.unsupported {
        let Error::Unsupported { since, .. } = error else { return Err(format!("{error:?}")) };
        assert!(since > Version::new(plan.version.0, plan.version.1), "{error}");
    }
    let mut runs = 0;
    for mode in [Mode::Once, Mode::FromThenOn, Mode::AfterTheWork] {
        for &code in plan.codes {
            for nth in 1.. {
                assert!(nth < MANY as u64, "{} does not end", scenario.name);
                let seen = once(Some(Failure { nth, code, mode }))?;
                if !seen.struck {
                    break;
                }
                runs += u64::from(seen.judged);
            }
        }
    }
    *total.lock().expect("no test panics with it").runs.entry(scenario.name).or_default() += runs;
    Ok(())
}

#[test]
fn every_call_of_every_scenario_fails() {
    let started = Instant::now();
    let (child, import) = crate::exporter::start();
    let only = std::env::var("CUDA_EVENTS_TEST_SCENARIO").ok();
    let work: Vec<(Plan, &Scenario)> = SCENARIOS
        .iter()
        .filter(|scenario| only.as_ref().is_none_or(|only| only == scenario.name))
        .flat_map(|scenario| PLANS.iter().map(move |plan| (*plan, scenario)))
        .collect();
    let (next, total) = (AtomicUsize::new(0), Mutex::new(Total::default()));
    let failures = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for name in ["exhaustive-1", "exhaustive-2"] {
            let worker = || {
                while let Some((plan, scenario)) = work.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(what) = exhaust(*plan, scenario, import, &total) {
                        failures.lock().expect("nothing panics with it").push(what);
                    }
                }
            };
            std::thread::Builder::new().name(name.to_owned()).spawn_scoped(scope, worker).expect("a thread");
        }
    });
    let failures = failures.into_inner().expect("all workers have ended");
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    let total = total.into_inner().expect("all workers have ended");
    for (name, runs) in &total.runs {
        println!("{runs:6} injected runs of {name}");
    }
    let sum: u64 = total.runs.values().sum();
    println!("{sum:6} injected runs of {} scenarios in {:.1?}", total.runs.len(), started.elapsed());
    if only.is_none() {
        crate::methods::assert_all_reached(&total.called);
        assert!(sum > 40_000, "{sum} injected runs");
    }
    drop(child);
}
