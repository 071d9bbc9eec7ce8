//! Every driver call of every scenario fails once, with every code, and once together with all
//! calls behind it.
//!
//! That is tens of thousands of runs, which the gate does. `cargo test` does a part of them, the
//! same each time: every call of every scenario fails in every mode, with one code and one plan
//! each. `CUDA_EVENTS_TEST_FAULTS` is `all`, or a seed that chooses other codes and plans.
//!
//! After each run: no panic and no abort, the error names the call and has its code, nothing is
//! leaked and nothing destroyed twice, and the thread is as it was. This runs on the software
//! driver in this process whatever the other tests run on: no other one fails on command.

use std::collections::{BTreeMap, HashSet};
use std::ffi::CStr;
use std::io::Write as _;
use std::ptr::null_mut;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use crate::common::watch::alive;
use crate::harness::{Failure, Mode, attempt};
use crate::scenarios::{SCENARIOS, Scenario};
use cuda_events::sys::{CUresult, ENTRY_POINTS, Function};
use cuda_events::{Driver, Error, IpcEventDescriptor, LoadOptions, Version};
use cuda_soft_driver::exports::NEWEST;
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
    // The newest that the software driver has: a new function is tested from the start.
    Plan { version: NEWEST, stacked: false, per_thread: false, codes: CODES },
    Plan { version: (13, 0), stacked: true, per_thread: false, codes: FEWER },
    Plan { version: (12, 4), stacked: true, per_thread: true, codes: FEWER },
    Plan { version: (11, 4), stacked: false, per_thread: true, codes: FEWER },
    Plan { version: (11, 0), stacked: true, per_thread: false, codes: FEWER },
];

macro_rules! functions {
    ($($name:ident)*) => { &[$(Function::$name),*] };
}

/// Entry points that no scenario calls: those of loading (loading.rs), of Windows, of the thread
/// that frees memory of timelines, and those that no method calls.
const WITHOUT_SCENARIO: &[Function] = functions! {
    cuDriverGetVersion cuGetProcAddress cuGetProcAddress_v2 cuDeviceGetLuid cuMemFree_v2
    cuIpcCloseMemHandle

    cuGetErrorName cuGetErrorString cuLogsDumpToFile cuLogsRegisterCallback
    cuLogsUnregisterCallback cuDeviceGetHostAtomicCapabilities
    cuDeviceGetP2PAtomicCapabilities cuDevicePrimaryCtxGetState cuCtxCreate_v2 cuCtxCreate_v4
    cuCtxDestroy_v2 cuCtxSetCurrent cuCtxSynchronize_v2 cuCtxGetFlags cuGreenCtxGetDevResource
    cuDevSmResourceSplit cuGreenCtxGetId cuGreenCtxRecordEvent cuGreenCtxWaitEvent
    cuGreenCtxStreamCreate cuStreamGetDevResource cuMemGetInfo_v2 cuMemHostAlloc cuMemFreeHost
    cuMemsetD32Async cuMemcpyHtoDAsync_v2 cuMemcpyDtoDAsync_v2
    cuDeviceRegisterAsyncNotification cuDeviceUnregisterAsyncNotification cuStreamGetCtx_v2
    cuStreamGetDevice cuStreamAttachMemAsync cuStreamBeginRecaptureToGraph
    cuStreamBeginCaptureToCig cuStreamEndCaptureToCig cuLaunchHostFunc_v2 cuGraphGetId
    cuGraphExecGetId cuGraphNodeGetLocalId cuGraphNodeGetToolsId cuGraphAddHostNode
    cuGraphHostNodeGetParams cuGraphHostNodeSetParams cuGraphExecHostNodeSetParams
    cuGraphBatchMemOpNodeGetParams cuGraphBatchMemOpNodeSetParams
    cuGraphAddExternalSemaphoresSignalNode cuGraphExternalSemaphoresSignalNodeGetParams
    cuGraphExternalSemaphoresSignalNodeSetParams
    cuGraphExecExternalSemaphoresSignalNodeSetParams cuGraphAddExternalSemaphoresWaitNode
    cuGraphExternalSemaphoresWaitNodeGetParams cuGraphExternalSemaphoresWaitNodeSetParams
    cuGraphExecExternalSemaphoresWaitNodeSetParams cuImportExternalMemory
    cuExternalMemoryGetMappedBuffer cuDestroyExternalMemory
    cuCheckpointProcessGetRestoreThreadId cuCheckpointProcessGetState cuCheckpointProcessLock
    cuCheckpointProcessCheckpoint cuCheckpointProcessRestore cuCheckpointProcessUnlock
    cuCheckpointOperationComplete cuCoredumpGetAttribute cuCoredumpGetAttributeGlobal
    cuCoredumpSetAttribute cuCoredumpSetAttributeGlobal cuCoredumpRegisterStartCallback
    cuCoredumpRegisterCompleteCallback cuCoredumpDeregisterStartCallback
    cuCoredumpDeregisterCompleteCallback
};

/// More than there are cores: the scenarios of timelines mostly wait.
const WORKERS: usize = 4;

/// More calls than any scenario makes.
const MANY: usize = 4096;

pub fn soft_driver(version: (u32, u32)) -> SoftDriver {
    SoftDriver::builder()
        .version(version.0, version.1)
        .devices(2)
        .on_misuse(OnMisuse::Error)
        .log(MANY)
        .build()
}

/// What all runs together have done.
#[derive(Default)]
struct Total {
    called: HashSet<Function>,
    /// Injected runs by scenario.
    runs: BTreeMap<&'static str, u64>,
}

/// What the environment asks for.
const FAULTS_VARIABLE: &str = "CUDA_EVENTS_TEST_FAULTS";

/// Which of the runs are done.
#[derive(Clone, Copy)]
enum Share {
    All,
    /// Each call fails once in each mode. The seed chooses the plan and the code.
    Part(u64),
}

impl Share {
    fn asked_for() -> Self {
        match std::env::var(FAULTS_VARIABLE).as_deref() {
            Ok("all") => Self::All,
            Ok(seed) => Self::Part(seed.parse().expect("CUDA_EVENTS_TEST_FAULTS is all or a seed")),
            Err(_) => Self::Part(0),
        }
    }

    /// Whether the run is done in which this call of the scenario at this place fails with this
    /// code of this plan.
    fn has(self, [scenario, plan, mode, nth, code]: [u64; 5]) -> bool {
        let Self::Part(seed) = self else { return true };
        let codes = |plans: &[Plan]| plans.iter().map(|plan| plan.codes.len() as u64).sum::<u64>();
        // SplitMix64.
        let mixed = [scenario, mode, nth].into_iter().fold(seed, |state, word| {
            let mixed = state.wrapping_add(word).wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ (mixed >> 31)
        });
        mixed % codes(PLANS) == codes(&PLANS[..plan as usize]) + code
    }
}

impl std::fmt::Display for Share {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let command = "cargo test --test faults every_call_of_every_scenario";
        match self {
            Self::All => write!(formatter, "all runs: {FAULTS_VARIABLE}=all {command}"),
            Self::Part(seed) => {
                write!(formatter, "a part of the runs: {FAULTS_VARIABLE}={seed} {command}")
            }
        }
    }
}

/// Runs one scenario with every code and mode and each of its calls failing, or a share of that.
fn exhaust(
    (place, plan, scenario): (usize, Plan, &Scenario),
    share: Share,
    import: IpcEventDescriptor,
    total: &Mutex<Total>,
) -> Result<(), String> {
    let once = |failure: Option<Failure>| {
        let soft = soft_driver(plan.version);
        let options = LoadOptions::new().per_thread_default_stream(plan.per_thread);
        // By exported names: look-ups by `cuGetProcAddress` are calls, which take a third of a run.
        let mut resolve = |name: &CStr| match name.to_bytes().starts_with(b"cuGetProcAddress") {
            true => null_mut(),
            false => soft.resolve(name),
        };
        // SAFETY: the functions of the software driver are part of this program.
        let driver = unsafe { Driver::from_resolver(&mut resolve, &options) };
        let driver = driver.expect("the software driver resolves");
        attempt(&soft, driver, scenario, plan.stacked, import, failure).map_err(|what| {
            let log: Vec<String> =
                soft.log().iter().map(|record| format!("\n  {record}")).collect();
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
    let calls = healthy.called.len();
    total.lock().expect("no test panics with it").called.extend(healthy.called);
    for error in healthy.unsupported {
        let Error::Unsupported { since, .. } = error else { return Err(format!("{error:?}")) };
        assert!(since > Version::new(plan.version.0, plan.version.1), "{error}");
    }
    let mut runs = 0;
    let (scenario_at, plan_at) = ((place / PLANS.len()) as u64, (place % PLANS.len()) as u64);
    for (mode_at, mode) in (0..).zip([Mode::Once, Mode::FromThenOn, Mode::AfterTheWork]) {
        for (code_at, &code) in (0..).zip(plan.codes) {
            for nth in 1.. {
                assert!(nth < MANY as u64, "{} does not end", scenario.name);
                // What others do for a scenario they do in fewer calls or more, as it happens.
                let may_be_the_end = nth > calls as u64;
                let is_chosen = share.has([scenario_at, plan_at, mode_at, nth, code_at]);
                match (is_chosen, may_be_the_end) {
                    (true, _) => {}
                    (false, true) => break,
                    (false, false) => continue,
                }
                alive();
                let seen = once(Some(Failure { nth, code, mode }))?;
                if !seen.struck && may_be_the_end {
                    break;
                }
                runs += u64::from(seen.struck && seen.judged);
            }
        }
    }
    *total.lock().expect("no test panics with it").runs.entry(scenario.name).or_default() += runs;
    Ok(())
}

#[test]
fn every_call_of_every_scenario_fails() {
    let started = Instant::now();
    let share = Share::asked_for();
    // Past the harness, which keeps to itself what a test prints that passes.
    let _ = writeln!(std::io::stderr(), "every_call_of_every_scenario_fails: {share}");
    let (child, import) = crate::exporter::start();
    let only = std::env::var("CUDA_EVENTS_TEST_SCENARIO").ok();
    let all = SCENARIOS.iter().flat_map(|scenario| PLANS.iter().map(move |plan| (*plan, scenario)));
    let work: Vec<(usize, Plan, &Scenario)> = all
        .enumerate()
        .map(|(place, (plan, scenario))| (place, plan, scenario))
        .filter(|(_, _, scenario)| only.as_ref().is_none_or(|only| only == scenario.name))
        .collect();
    let (next, total) = (AtomicUsize::new(0), Mutex::new(Total::default()));
    let failures = Mutex::new(Vec::new());
    let worker = || {
        while let Some(item) = work.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(what) = exhaust(*item, share, import, &total) {
                failures.lock().expect("nothing panics with it").push(what);
            }
        }
    };
    std::thread::scope(|scope| {
        for nth in 2..=WORKERS {
            std::thread::Builder::new()
                .name(format!("exhaustive-{nth}"))
                .spawn_scoped(scope, worker)
                .expect("a thread");
        }
        // This thread as well: a test whose thread only waits has no sign of life to give.
        worker();
    });
    let failures = failures.into_inner().expect("all workers have ended");
    assert!(failures.is_empty(), "{}\n\n{share}", failures.join("\n\n"));
    let total = total.into_inner().expect("all workers have ended");
    for (name, runs) in &total.runs {
        println!("{runs:6} injected runs of {name}");
    }
    let sum: u64 = total.runs.values().sum();
    println!(
        "{sum:6} injected runs of {} scenarios in {:.1?}",
        total.runs.len(),
        started.elapsed()
    );
    if only.is_none() {
        let forgotten: Vec<_> = ENTRY_POINTS
            .iter()
            .map(|entry| entry.function)
            .filter(|function| {
                !total.called.contains(function) && !WITHOUT_SCENARIO.contains(function)
            })
            .collect();
        // Some scenarios are for Linux only.
        assert!(
            forgotten.is_empty() || !cfg!(target_os = "linux"),
            "{forgotten:?}: no scenario calls them: add calls to scenarios.rs or \
             graphs_and_ipc.rs, or, if no method calls them either, add them to WITHOUT_SCENARIO"
        );
        let least = match share {
            Share::All => 80_000,
            Share::Part(_) => 2_000,
        };
        assert!(sum > least, "{sum} injected runs, {share}");
    }
    drop(child);
}
