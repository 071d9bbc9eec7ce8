//! One run of a scenario with one fault, and what must hold after it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use cuda_events::sys::{
    CU_STREAM_PER_THREAD, CUcontext, CUdeviceptr, CUresult, CUstreamCaptureMode, ENTRY_POINTS,
    Function,
};
use cuda_events::{Driver, Error, IpcEventDescriptor, Result};
use cuda_soft_driver::{CallRecord, Fault, Live, SoftDriver};

use crate::scenarios::{Run, Scenario};

/// How the N-th call fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// That call, instead of doing its work.
    Once,
    /// That call and all from then on, instead of their work.
    FromThenOn,
    /// That call, after its work: what a driver does that answers with the error of work from
    /// before.
    AfterTheWork,
}

#[derive(Clone, Copy, Debug)]
pub struct Failure {
    pub nth: u64,
    pub code: CUresult,
    pub mode: Mode,
}

/// What was seen of a run.
pub struct Seen {
    pub struck: bool,
    /// Whether all was looked at; else only that nothing panicked and nothing was misused.
    pub judged: bool,
    /// The entry points that were called, in order.
    pub called: Vec<Function>,
    /// What the driver was too old for.
    pub unsupported: Vec<Error>,
}

/// The calls whose failure a destructor swallows.
const DESTROYS: &[Function] = &[
    Function::cuEventDestroy_v2,
    Function::cuStreamDestroy_v2,
    Function::cuGraphDestroy,
    Function::cuGraphExecDestroy,
    Function::cuDevicePrimaryCtxRelease_v2,
    Function::cuGreenCtxDestroy,
    Function::cuMemFree_v2,
    Function::cuIpcCloseMemHandle,
    Function::cuDestroyExternalSemaphore,
];

/// The calls that do not both work and fail on any driver: a handle that nobody was given, a mode
/// that was changed.
fn all_or_nothing(function: Function) -> bool {
    let name = function.name();
    name.contains("Create")
        || name.contains("Capture")
        || name.contains("Instantiate")
        || matches!(
            function,
            Function::cuDevicePrimaryCtxRetain
                | Function::cuCtxPushCurrent_v2
                | Function::cuIpcOpenEventHandle
                | Function::cuIpcOpenMemHandle_v2
                | Function::cuMemAlloc_v2
        )
}

pub fn function(record: &CallRecord) -> Option<Function> {
    static BY_NAME: LazyLock<HashMap<&'static str, Function>> = LazyLock::new(|| {
        ENTRY_POINTS.iter().map(|entry| (entry.function.name(), entry.function)).collect()
    });
    let name = record.function.strip_suffix("_ptsz").unwrap_or(record.function);
    BY_NAME.get(name).copied()
}

/// The calling thread and its contexts, as they are before a run and must be after it.
struct Surroundings {
    driver: Driver,
    primary: CUcontext,
    below: [CUcontext; 2],
    memory: CUdeviceptr,
    /// Whether the two contexts are on the thread's stack.
    stacked: bool,
}

#[track_caller]
fn raw(code: CUresult) {
    assert_eq!(code, CUresult::CUDA_SUCCESS, "the harness's own call failed with {code}");
}

impl Surroundings {
    fn set_up(driver: Driver, stacked: bool) -> Self {
        let symbols = driver.symbols();
        let (mut primary, mut below, mut memory) = (null_mut(), [null_mut(); 2], 0);
        // SAFETY: places for what is given; the flags and the device exist.
        unsafe {
            raw((symbols.cuInit)(0));
            // So that the context outlives whatever the run leaves behind.
            raw((symbols.cuDevicePrimaryCtxRetain)(&mut primary, 0));
            raw((symbols.cuCtxPushCurrent_v2)(primary));
            // The first memory of a software driver is zero. A memset would start a thread.
            raw((symbols.cuMemAlloc_v2)(&mut memory, 64));
            raw((symbols.cuCtxPopCurrent_v2)(&mut null_mut()));
            for context in &mut below {
                raw((symbols.cuCtxCreate_v2)(context, 0, 0));
            }
            if !stacked {
                raw((symbols.cuCtxPopCurrent_v2)(&mut null_mut()));
                raw((symbols.cuCtxPopCurrent_v2)(&mut null_mut()));
            }
        }
        Self { driver, primary, below, memory, stacked }
    }

    /// Takes off what is on the stack, from the top.
    fn stack(&self) -> Vec<CUcontext> {
        let mut stack = Vec::new();
        let mut top = null_mut();
        // SAFETY: a place for the handle.
        while unsafe { (self.driver.symbols().cuCtxPopCurrent_v2)(&mut top) }
            == CUresult::CUDA_SUCCESS
        {
            stack.push(top);
        }
        stack
    }

    fn expected_stack(&self) -> Vec<CUcontext> {
        if self.stacked { vec![self.below[1], self.below[0]] } else { Vec::new() }
    }

    /// The thread's capture mode, which is as it was at the start afterwards.
    fn capture_mode(&self) -> CUstreamCaptureMode {
        let mut mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL;
        // SAFETY: a place with a mode.
        raw(unsafe { (self.driver.symbols().cuThreadExchangeStreamCaptureMode)(&mut mode) });
        mode
    }

    fn tear_down(self) {
        let symbols = self.driver.symbols();
        // SAFETY: what `set_up` made, given back once.
        unsafe {
            for context in self.below {
                raw((symbols.cuCtxDestroy_v2)(context));
            }
            raw((symbols.cuCtxPushCurrent_v2)(self.primary));
            raw((symbols.cuMemFree_v2)(self.memory));
            raw((symbols.cuCtxPopCurrent_v2)(&mut null_mut()));
            raw((symbols.cuDevicePrimaryCtxRelease_v2)(0));
        }
    }

    /// Ends a capture in the thread's own default stream, which goes with nothing.
    fn end_capture(&self) {
        let symbols = self.driver.symbols();
        let mut graph = null_mut();
        // SAFETY: the stream's handle is a constant; a place for the graph, which is destroyed.
        unsafe {
            raw((symbols.cuCtxPushCurrent_v2)(self.primary));
            raw((symbols.cuStreamEndCapture)(CU_STREAM_PER_THREAD, &mut graph));
            raw((symbols.cuGraphDestroy)(graph));
            raw((symbols.cuCtxPopCurrent_v2)(&mut null_mut()));
        }
    }
}

/// Runs a scenario on a driver, with a fault or without, and checks what must hold afterwards.
///
/// # Errors
///
/// What did not hold.
pub fn attempt(
    soft: &SoftDriver,
    driver: Driver,
    scenario: &Scenario,
    stacked: bool,
    import: IpcEventDescriptor,
    failure: Option<Failure>,
) -> Result<Seen, String> {
    let surroundings = Surroundings::set_up(driver, stacked);
    let before = (soft.live(), soft.injected(), soft.misuses().len());
    soft.clear_log();
    if let Some(Failure { nth, code, mode }) = failure {
        let thread = std::thread::current();
        let fault =
            Fault::on("*").in_thread(thread.name().expect("a named thread")).nth(nth).answer(code);
        soft.inject(match mode {
            Mode::Once => fault.once(),
            Mode::FromThenOn => fault.from_then_on(),
            Mode::AfterTheWork => fault.once().after_the_work(),
        });
    }
    let run = Run {
        driver,
        foreign: surroundings.below[0],
        memory: surroundings.memory,
        import,
        token: Arc::new(()),
        refusals: RefCell::default(),
        unsupported: RefCell::default(),
    };
    let result = catch_unwind(AssertUnwindSafe(|| (scenario.run)(&run)));
    soft.clear_faults();
    let log = soft.log();
    let struck = soft.injected() > before.1;
    let first = log.iter().find(|record| record.injected);
    let result = result.map_err(|_| "it panicked")?;
    if let (Some(first), Some(Mode::AfterTheWork)) = (first, failure.map(|failure| failure.mode))
        && function(first).is_none_or(all_or_nothing)
    {
        // No driver does that, and what it leaves behind nobody can know.
        surroundings.stack();
        // But what the harness holds itself: the driver's place is not for the next one before.
        // SAFETY: one release for the one retain; whether it works is of no account.
        let _ = unsafe { (driver.symbols().cuDevicePrimaryCtxRelease_v2)(0) };
        return Ok(Seen { struck, judged: false, called: Vec::new(), unsupported: Vec::new() });
    }
    if let (Some(first), Some(failure)) = (first, failure) {
        check_report(scenario, &run, failure, first, &log, &result)?;
    } else if let Err(error) = &result {
        return Err(format!("without a fault it failed: {error}"));
    }

    let failed =
        |what: &str| log.iter().any(|record| record.injected && record.function.contains(what));
    if failed("BeginCaptureToGraph") && failed("GetCaptureInfo") {
        // Nobody can tell whether the graph is captured into, so that it is left alone forever,
        // with all that it keeps.
        surroundings.stack();
        // Also the graph's share of the context, which nobody gives back. With the places of as
        // many such runs as there are, a later run would get one whose driver is still in use.
        for _ in 0..2 {
            // SAFETY: as above.
            let _ = unsafe { (driver.symbols().cuDevicePrimaryCtxRelease_v2)(0) };
        }
        return Ok(Seen { struck, judged: false, called: Vec::new(), unsupported: Vec::new() });
    }

    let undone = |record: &&CallRecord| {
        record.injected
            && failure.is_some_and(|failure| failure.mode != Mode::AfterTheWork)
            && function(record).is_some()
    };
    let undone: Vec<&CallRecord> = log.iter().filter(undone).collect();
    // What a pop that failed has left on the stack; a single failure must not.
    for _ in undone.iter().filter(|record| record.function == "cuCtxPopCurrent_v2") {
        if failure.is_some_and(|failure| failure.mode == Mode::FromThenOn) {
            // SAFETY: the popped handle is not wanted.
            raw(unsafe { (driver.symbols().cuCtxPopCurrent_v2)(null_mut()) });
        }
    }
    let (stack, expected) = (surroundings.stack(), surroundings.expected_stack());
    if stack != expected {
        return Err(format!("the thread's context stack is {stack:?}, and was {expected:?}"));
    }
    let mode = surroundings.capture_mode();
    let exchange = |record: &&CallRecord| {
        function(record) == Some(Function::cuThreadExchangeStreamCaptureMode)
    };
    if mode != CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL && !undone.iter().any(exchange) {
        return Err(format!("the thread's capture mode is {mode:?}"));
    }
    // A destroying call that was kept from its work leaves exactly what it was for: making it now
    // must succeed, and leave nothing.
    for record in &undone {
        redo(driver, record)?;
    }
    // An end that was kept from its work, or that the guard could not even ask for.
    let unended = |record: &CallRecord| {
        function(record).is_some_and(|function| {
            function == Function::cuStreamEndCapture || scenario.silent.contains(&function)
        })
    };
    let hopeless = failure.is_some_and(|failure| failure.mode == Mode::FromThenOn);
    if soft.live().captures > before.0.captures
        && (hopeless || log.iter().filter(|record| record.injected).any(unended))
    {
        surroundings.end_capture();
    }
    // A context that cannot be made current, or work that cannot be waited for, keeps the memory
    // that was to be freed.
    let waited_later = |failed: &CallRecord| {
        let mut waits = log.iter().filter(|record| {
            function(record) == Some(Function::cuStreamSynchronize)
                && record.arguments.first() == failed.arguments.first()
        });
        waits.next_back().is_some_and(|last| !last.injected)
    };
    let keeps_memory = |record: &CallRecord| {
        function(record).is_some_and(|function| {
            record.injected
                && scenario.silent.contains(&function)
                && matches!(
                    function,
                    Function::cuCtxGetCurrent
                        | Function::cuCtxPushCurrent_v2
                        | Function::cuCtxPopCurrent_v2
                        | Function::cuThreadExchangeStreamCaptureMode
                        | Function::cuEventRecord
                        | Function::cuEventSynchronize
                        | Function::cuStreamSynchronize
                )
                && !(function == Function::cuStreamSynchronize && waited_later(record))
        })
    };
    // Timelines leave what processes share to the context.
    let shares = |record: &CallRecord| {
        let shared = [Function::cuIpcGetMemHandle, Function::cuIpcOpenMemHandle_v2];
        !record.injected && function(record).is_some_and(|function| shared.contains(&function))
    };
    let leaks = log.iter().any(|record| keeps_memory(record) || shares(record));
    settle(soft, &run, before.0, leaks)?;
    let misuses = soft.misuses();
    if misuses.len() > before.2 {
        return Err(format!("misuse: {misuses:?}"));
    }
    surroundings.tear_down();
    let unsupported = run.unsupported.take();
    Ok(Seen {
        struck,
        judged: true,
        called: log.iter().filter_map(function).collect(),
        unsupported,
    })
}

/// Whether the first failure was told as it should be.
fn check_report(
    scenario: &Scenario,
    run: &Run,
    failure: Failure,
    first: &CallRecord,
    log: &[CallRecord],
    result: &Result<()>,
) -> Result<(), String> {
    let Some(failed) = function(first) else {
        return Err(format!("an unknown function was called: {first}"));
    };
    // What the driver logged is no part of the result.
    if matches!(failed, Function::cuLogsDumpToMemory | Function::cuLogsCurrent) {
        return Ok(());
    }
    let names = |error: &Error, function: Function| {
        error.function() == Some(function) && error.code() == Some(failure.code)
    };
    if let Err(error) = result {
        let text = error.to_string();
        // The typed causes are about what is wrong and not about the call, which is in the value.
        if let Error::Driver { function, code } = error
            && !(text.contains(function.name()) && text.contains(&code.0.to_string()))
        {
            return Err(format!("the text does not name the call and the code: {text}"));
        }
        if names(error, failed) {
            return Ok(());
        }
    }
    // The scenario was told, and took it for what a healthy driver answers there.
    if run.refusals.borrow().iter().any(|error| names(error, failed)) {
        return Ok(());
    }
    let not_ready = failure.code == CUresult::CUDA_ERROR_NOT_READY
        && matches!(failed, Function::cuEventQuery | Function::cuStreamQuery);
    let destroyed = DESTROYS.contains(&failed) && !scenario.closes.contains(&failed);
    if not_ready || destroyed || scenario.silent.contains(&failed) {
        return match result {
            Ok(()) => Ok(()),
            // A later one that failed.
            Err(error)
                if log.iter().any(|record| {
                    record.injected && function(record).is_some_and(|f| names(error, f))
                }) =>
            {
                Ok(())
            }
            Err(error) => Err(format!("{first} led to another error: {error}")),
        };
    }
    match result {
        Ok(()) => Err(format!("nothing was told of {first}")),
        Err(error) => Err(format!("{first} was told as {error:?}")),
    }
}

/// Makes a destroying call that was kept from its work.
fn redo(driver: Driver, record: &CallRecord) -> Result<(), String> {
    let symbols = driver.symbols();
    let Some(&handle) = record.arguments.first() else { return Ok(()) };
    let address = std::ptr::without_provenance_mut::<()>(handle as usize);
    // SAFETY: the handle that the library gave up with that call, so that nobody else has it.
    let code = unsafe {
        match function(record) {
            Some(Function::cuEventDestroy_v2) => (symbols.cuEventDestroy_v2)(address.cast()),
            Some(Function::cuStreamDestroy_v2) => (symbols.cuStreamDestroy_v2)(address.cast()),
            Some(Function::cuGraphDestroy) => (symbols.cuGraphDestroy)(address.cast()),
            Some(Function::cuGraphExecDestroy) => (symbols.cuGraphExecDestroy)(address.cast()),
            Some(Function::cuDestroyExternalSemaphore) => {
                let destroy = symbols.cuDestroyExternalSemaphore.expect("it was called before");
                destroy(address.cast())
            }
            // In the primary context, which has it.
            Some(Function::cuMemFree_v2 | Function::cuIpcCloseMemHandle) => {
                let mut primary = null_mut();
                raw((symbols.cuDevicePrimaryCtxRetain)(&mut primary, 0));
                raw((symbols.cuCtxPushCurrent_v2)(primary));
                let code = match function(record) {
                    Some(Function::cuMemFree_v2) => (symbols.cuMemFree_v2)(handle),
                    _ => (symbols.cuIpcCloseMemHandle)(handle),
                };
                raw((symbols.cuCtxPopCurrent_v2)(&mut null_mut()));
                raw((symbols.cuDevicePrimaryCtxRelease_v2)(0));
                code
            }
            Some(Function::cuDevicePrimaryCtxRelease_v2) => {
                (symbols.cuDevicePrimaryCtxRelease_v2)(handle as i32)
            }
            Some(Function::cuGreenCtxDestroy) => {
                let destroy = symbols.cuGreenCtxDestroy.expect("it was called before");
                destroy(address.cast())
            }
            _ => return Ok(()),
        }
    };
    // The green context ended meanwhile, and its streams with it. After the end of any other it
    // would be a misuse.
    let ended = function(record) == Some(Function::cuStreamDestroy_v2)
        && code == CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if code == CUresult::CUDA_SUCCESS || ended {
        Ok(())
    } else {
        Err(format!("{record}, made again, answers {code}"))
    }
}

/// Waits until what others had of the run is given back: the poller's event, the driver's host
/// functions. With `leaks` memory may be left.
fn settle(soft: &SoftDriver, run: &Run, before: Live, leaks: bool) -> Result<(), String> {
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let (mut live, closures) = (soft.live(), Arc::strong_count(&run.token) - 1);
        if leaks {
            live.allocations = live.allocations.min(before.allocations);
        }
        if live == before && closures == 0 {
            return Ok(());
        }
        if Instant::now() > until {
            return Err(format!(
                "{closures} closures are kept; before it were {before}, now {}",
                soft.leak_report()
            ));
        }
        std::thread::yield_now();
    }
}
