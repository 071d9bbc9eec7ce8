//! Sequences of calls of the software driver's C entry points, with good, stale, foreign and
//! made-up handles. A slow model predicts every answer.

use std::ffi::{CStr, c_void};
use std::ptr::{null_mut, without_provenance_mut};
use std::sync::{Arc, LazyLock, Mutex};

use cuda_events::sys::*;
use cuda_soft_driver::{OnMisuse, SoftDriver, Time};

use super::bytes::Bytes;
use super::model::{Answer, DEVICES, Fate, Life, Model, NOT_READY, SUCCESS, Word};
#[cfg(target_os = "linux")]
use super::model::{Descriptor, OPAQUE, TIMELINE};

mod capture;
mod memory;
mod nodes;
#[cfg(target_os = "linux")]
mod semaphores;

/// The entry points, by the names that the driver exports.
macro_rules! table {
    ($($name:ident: $exported:literal, $ty:ty;)*) => {
        #[allow(non_snake_case)]
        struct Table {
            $($name: <$ty as EntryPointType>::Pointer,)*
        }

        impl Table {
            fn of(soft: &SoftDriver) -> Self {
                let find = |name: &CStr| {
                    let address = soft.resolve(name);
                    assert!(!address.is_null(), "{name:?}");
                    address
                };
                Self {
                    $($name: {
                        // SAFETY: the address of the function of this name, which has this type.
                        unsafe {
                            std::mem::transmute::<*mut c_void, <$ty as EntryPointType>::Pointer>(
                                find($exported))
                        }
                    },)*
                }
            }
        }
    };
}

table! {
    init: c"cuInit", PFN_cuInit_v2000;
    event_create: c"cuEventCreate", PFN_cuEventCreate_v2000;
    event_destroy: c"cuEventDestroy_v2", PFN_cuEventDestroy_v4000;
    record: c"cuEventRecord", PFN_cuEventRecord_v2000;
    wait: c"cuStreamWaitEvent", PFN_cuStreamWaitEvent_v3020;
    event_query: c"cuEventQuery", PFN_cuEventQuery_v2000;
    event_synchronize: c"cuEventSynchronize", PFN_cuEventSynchronize_v2000;
    elapsed: c"cuEventElapsedTime", PFN_cuEventElapsedTime_v2000;
    stream_create: c"cuStreamCreateWithPriority", PFN_cuStreamCreateWithPriority_v5050;
    stream_destroy: c"cuStreamDestroy_v2", PFN_cuStreamDestroy_v4000;
    stream_query: c"cuStreamQuery", PFN_cuStreamQuery_v2000;
    stream_synchronize: c"cuStreamSynchronize", PFN_cuStreamSynchronize_v2000;
    launch: c"cuLaunchHostFunc", PFN_cuLaunchHostFunc_v10000;
    export: c"cuIpcGetEventHandle", PFN_cuIpcGetEventHandle_v4010;
    import: c"cuIpcOpenEventHandle", PFN_cuIpcOpenEventHandle_v4010;
    context_create: c"cuCtxCreate_v2", PFN_cuCtxCreate_v3020;
    context_destroy: c"cuCtxDestroy_v2", PFN_cuCtxDestroy_v4000;
    context_synchronize: c"cuCtxSynchronize", PFN_cuCtxSynchronize_v2000;
    push: c"cuCtxPushCurrent_v2", PFN_cuCtxPushCurrent_v4000;
    pop: c"cuCtxPopCurrent_v2", PFN_cuCtxPopCurrent_v4000;
    set: c"cuCtxSetCurrent", PFN_cuCtxSetCurrent_v4000;
    get: c"cuCtxGetCurrent", PFN_cuCtxGetCurrent_v4000;
    retain: c"cuDevicePrimaryCtxRetain", PFN_cuDevicePrimaryCtxRetain_v7000;
    release: c"cuDevicePrimaryCtxRelease_v2", PFN_cuDevicePrimaryCtxRelease_v11000;
    reset: c"cuDevicePrimaryCtxReset_v2", Option<unsafe extern "C" fn(CUdevice) -> CUresult>;
    exchange: c"cuThreadExchangeStreamCaptureMode", PFN_cuThreadExchangeStreamCaptureMode_v10010;
    record_with: c"cuEventRecordWithFlags", PFN_cuEventRecordWithFlags_v11010;
    begin: c"cuStreamBeginCapture_v2", PFN_cuStreamBeginCapture_v10010;
    end: c"cuStreamEndCapture", PFN_cuStreamEndCapture_v10000;
    is_capturing: c"cuStreamIsCapturing", PFN_cuStreamIsCapturing_v10000;
    capture_info: c"cuStreamGetCaptureInfo_v2", PFN_cuStreamGetCaptureInfo_v11030;
    instantiate: c"cuGraphInstantiateWithFlags", PFN_cuGraphInstantiateWithFlags_v11040;
    graph_launch: c"cuGraphLaunch", PFN_cuGraphLaunch_v10000;
    graph_destroy: c"cuGraphDestroy", PFN_cuGraphDestroy_v10000;
    exec_destroy: c"cuGraphExecDestroy", PFN_cuGraphExecDestroy_v10000;
    graph_create: c"cuGraphCreate", PFN_cuGraphCreate_v10000;
    add_record: c"cuGraphAddEventRecordNode", PFN_cuGraphAddEventRecordNode_v11010;
    add_wait: c"cuGraphAddEventWaitNode", PFN_cuGraphAddEventWaitNode_v11010;
    get_record: c"cuGraphEventRecordNodeGetEvent", PFN_cuGraphEventRecordNodeGetEvent_v11010;
    get_wait: c"cuGraphEventWaitNodeGetEvent", PFN_cuGraphEventWaitNodeGetEvent_v11010;
    set_record: c"cuGraphEventRecordNodeSetEvent", PFN_cuGraphEventRecordNodeSetEvent_v11010;
    set_wait: c"cuGraphEventWaitNodeSetEvent", PFN_cuGraphEventWaitNodeSetEvent_v11010;
    exec_set_record: c"cuGraphExecEventRecordNodeSetEvent",
        PFN_cuGraphExecEventRecordNodeSetEvent_v11010;
    exec_set_wait: c"cuGraphExecEventWaitNodeSetEvent",
        PFN_cuGraphExecEventWaitNodeSetEvent_v11010;
    import_semaphore: c"cuImportExternalSemaphore", PFN_cuImportExternalSemaphore_v10000;
    destroy_semaphore: c"cuDestroyExternalSemaphore", PFN_cuDestroyExternalSemaphore_v10000;
    signal: c"cuSignalExternalSemaphoresAsync", PFN_cuSignalExternalSemaphoresAsync_v10000;
    wait_semaphores: c"cuWaitExternalSemaphoresAsync", PFN_cuWaitExternalSemaphoresAsync_v10000;
    alloc: c"cuMemAlloc_v2", PFN_cuMemAlloc_v3020;
    free: c"cuMemFree_v2", PFN_cuMemFree_v3020;
    host_alloc: c"cuMemHostAlloc", PFN_cuMemHostAlloc_v2020;
    host_free: c"cuMemFreeHost", PFN_cuMemFreeHost_v2000;
    set8: c"cuMemsetD8Async", PFN_cuMemsetD8Async_v3020;
    set32: c"cuMemsetD32Async", PFN_cuMemsetD32Async_v3020;
    to_device: c"cuMemcpyHtoDAsync_v2", PFN_cuMemcpyHtoDAsync_v3020;
    to_host: c"cuMemcpyDtoHAsync_v2", PFN_cuMemcpyDtoHAsync_v3020;
    copy: c"cuMemcpyDtoDAsync_v2", PFN_cuMemcpyDtoDAsync_v3020;
    write32: c"cuStreamWriteValue32_v2", PFN_cuStreamWriteValue32_v11070;
    write64: c"cuStreamWriteValue64_v2", PFN_cuStreamWriteValue64_v11070;
    wait32: c"cuStreamWaitValue32_v2", PFN_cuStreamWaitValue32_v11070;
    wait64: c"cuStreamWaitValue64_v2", PFN_cuStreamWaitValue64_v11070;
}

fn at<T>(handle: u64) -> *mut T {
    without_provenance_mut(handle as usize)
}

/// A host function's number, and where it goes when the function is called.
struct Function {
    number: u32,
    called: Arc<Mutex<Vec<u32>>>,
}

unsafe extern "C" fn called(function: *mut c_void) {
    // SAFETY: a `Function` of the run, which waits for all functions before it ends.
    let function = unsafe { &*function.cast::<Function>() };
    function.called.lock().expect("no panic").push(function.number);
}

/// Another driver of this process, and a context, a stream, an event and memory of it.
static OTHERS: LazyLock<(SoftDriver, [u64; 3], u64)> = LazyLock::new(|| {
    let soft = SoftDriver::builder().on_misuse(OnMisuse::Error).build();
    let table = Table::of(&soft);
    let (mut context, mut stream, mut event) = (null_mut(), null_mut(), null_mut());
    let mut address = 0;
    // SAFETY: places for the handles; the flags and the device exist.
    let codes = unsafe {
        [
            (table.init)(0),
            (table.context_create)(&mut context, 0, 0),
            (table.stream_create)(&mut stream, 0, 0),
            (table.event_create)(&mut event, 0),
            (table.alloc)(&mut address, 512),
            (table.pop)(null_mut()),
        ]
    };
    assert_eq!(codes.map(|code| code.0), [0; 6]);
    (soft, [context.addr(), stream.addr(), event.addr()].map(|handle| handle as u64), address)
});

/// How many calls a failure shows.
const LOGGED: usize = 24;

struct Run {
    soft: SoftDriver,
    table: Table,
    model: Model,
    misuses: usize,
    #[allow(clippy::vec_box, reason = "the driver has their addresses")]
    functions: Vec<Box<Function>>,
    called: Arc<Mutex<Vec<u32>>>,
    /// Imported semaphores, as the other API has them.
    #[cfg(target_os = "linux")]
    theirs: Vec<(u64, cuda_soft_driver::ExternalSemaphore)>,
}

impl Run {
    fn new() -> Self {
        let builder = SoftDriver::builder().devices(DEVICES as u32).on_misuse(OnMisuse::Error);
        let soft = builder.time(Time::Virtual).log(LOGGED).build();
        let table = Table::of(&soft);
        // SAFETY: the flags must be 0.
        assert_eq!(unsafe { (table.init)(0) }.0, 0);
        soft.hold_host_functions(true);
        let mut model = Model::default();
        (model.others, model.others_memory) = (OTHERS.1, OTHERS.2);
        Self {
            soft,
            table,
            model,
            misuses: 0,
            functions: Vec::new(),
            called: Arc::default(),
            #[cfg(target_os = "linux")]
            theirs: Vec::new(),
        }
    }

    #[track_caller]
    fn expect(&mut self, name: &str, code: CUresult, expected: Answer) {
        let misuses = self.soft.misuses();
        let told = misuses.len() - self.misuses;
        self.misuses = misuses.len();
        assert_eq!(
            (code.0, told),
            (expected.0, usize::from(expected.1)),
            "{name}: the model expects {expected:?}: {:?}; the last calls:\n{}",
            misuses.last(),
            self.last_calls()
        );
    }

    fn last_calls(&self) -> String {
        let log = self.soft.log();
        log.iter().map(|record| format!("  {record}\n")).collect()
    }

    /// A handle of any kind, or none.
    fn handle(&self, bytes: &mut Bytes<'_>, kind: usize) -> u64 {
        let model = &self.model;
        let choice = bytes.byte();
        let kind = if choice.is_multiple_of(7) { usize::from(choice / 7) % 3 } else { kind };
        let which = usize::from(bytes.byte());
        let pick = |all: Vec<u64>| {
            if all.is_empty() { 0 } else { all[which % all.len()] }
        };
        match choice {
            248..=250 => model.others[usize::from(choice - 248)],
            251..=255 => [0, 1, 2, 0x1234, 0x7fff_ffff_f000][usize::from(choice - 251)],
            _ => match kind {
                0 => pick(model.contexts.iter().map(|it| it.handle).collect()),
                1 => pick(model.made().map(|it| it.handle).chain([0, 1, 2]).collect()),
                _ => pick(model.events.iter().map(|it| it.handle).collect()),
            },
        }
    }

    /// Lets all held work be done.
    fn drain(&mut self) {
        if !self.model.anything_pending() {
            return;
        }
        // They would forbid to wait.
        self.end_captures();
        self.soft.hold_host_functions(false);
        for stream in self.model.made().filter(|it| it.life == Life::Alive) {
            // SAFETY: a good handle.
            let _ = unsafe { (self.table.stream_synchronize)(at(stream.handle)) };
        }
        for event in self.model.events.iter().filter(|it| it.life == Life::Alive) {
            // SAFETY: a good handle.
            let _ = unsafe { (self.table.event_synchronize)(at(event.handle)) };
        }
        for context in self.model.contexts.iter().filter(|it| it.alive) {
            // SAFETY: a good handle; the stack is left as it was.
            unsafe {
                let _ = (self.table.push)(at(context.handle));
                let _ = (self.table.context_synchronize)();
                let _ = (self.table.pop)(null_mut());
            }
        }
        self.soft.hold_host_functions(true);
        let called = std::mem::take(&mut *self.called.lock().expect("no panic"));
        self.model.drain(&called);
    }

    /// Waits for work that is not held, as far as a stream has some. A thread that is relaxed may
    /// do that beside captures.
    fn settle(&mut self, handle: u64) {
        let Ok(stream) = self.model.stream(handle) else { return };
        if self.model.would_wait(stream) || !self.model.is_plain(stream) {
            return;
        }
        let mut mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        // SAFETY: a good handle, and a place for the mode.
        let code = unsafe {
            let _ = (self.table.exchange)(&mut mode);
            let code = (self.table.stream_synchronize)(at(handle));
            let _ = (self.table.exchange)(&mut mode);
            code
        };
        self.expect("cuStreamSynchronize", code, (0, false));
    }

    /// A host function of a number of its own.
    fn function(&mut self) -> (u32, *mut c_void) {
        let number = self.functions.len() as u32;
        self.functions.push(Box::new(Function { number, called: self.called.clone() }));
        (number, std::ptr::from_mut(&mut **self.functions.last_mut().expect("it")).cast())
    }

    // SAFETY of the blocks below: as of those of `step`. Whether it could be made.
    #[allow(clippy::undocumented_unsafe_blocks)]
    fn create_event(&mut self, flags: u32) -> bool {
        let mut event = null_mut();
        let code = unsafe { (self.table.event_create)(&mut event, flags) };
        match self.model.event_create(flags) {
            Ok(context) => {
                self.expect("cuEventCreate", code, (SUCCESS, false));
                self.model.event_created(context, flags, event.addr() as u64);
                true
            }
            Err(answer) => {
                self.expect("cuEventCreate", code, answer);
                false
            }
        }
    }

    #[allow(clippy::undocumented_unsafe_blocks)]
    fn create_stream(&mut self, flags: u32) -> bool {
        let mut stream = null_mut();
        let code = unsafe { (self.table.stream_create)(&mut stream, flags, 0) };
        match self.model.stream_create(flags) {
            Ok(context) => {
                self.expect("cuStreamCreateWithPriority", code, (SUCCESS, false));
                self.model.stream_created(context, flags, stream.addr() as u64);
                true
            }
            Err(answer) => {
                self.expect("cuStreamCreateWithPriority", code, answer);
                false
            }
        }
    }

    // SAFETY of the blocks below: as of those of `step`.
    #[allow(clippy::undocumented_unsafe_blocks)]
    fn record(&mut self, event: u64, stream: u64) {
        let Some(expected) = self.model.record(event, stream, 0) else { return };
        let code = unsafe { (self.table.record)(at(event), at(stream)) };
        self.expect("cuEventRecord", code, expected);
    }

    #[allow(clippy::undocumented_unsafe_blocks)]
    fn wait(&mut self, stream: u64, event: u64, flags: u32) {
        let Some(expected) = self.model.wait(stream, event, flags) else { return };
        let code = unsafe { (self.table.wait)(at(stream), at(event), flags) };
        self.expect("cuStreamWaitEvent", code, expected);
    }

    #[allow(clippy::undocumented_unsafe_blocks)]
    fn launch(&mut self, stream: u64, none: bool) {
        let (number, data) = self.function();
        let function: Option<unsafe extern "C" fn(*mut c_void)> =
            if none { None } else { Some(called) };
        let expected = self.model.launch(stream, function.map(|_| number));
        let Some(expected) = expected else { return };
        let code = unsafe { (self.table.launch)(at(stream), function, data) };
        self.expect("cuLaunchHostFunc", code, expected);
    }

    // SAFETY of the blocks below: misuse is an error on this driver, which takes any number for a
    // handle; the places are on the stack.
    #[allow(clippy::undocumented_unsafe_blocks)]
    fn step(&mut self, bytes: &mut Bytes<'_>) {
        let operation = bytes.byte() % 58;
        match operation {
            0 | 1 => {
                let flags = [0, 1, 2, 3, 4, 6, 7, 8][bytes.below(8)];
                self.create_event(flags);
            }
            2 => {
                let handle = self.handle(bytes, 2);
                let code = unsafe { (self.table.event_destroy)(at(handle)) };
                let expected = self.model.event_destroy(handle);
                self.expect("cuEventDestroy", code, expected);
            }
            3..=5 => {
                let (event, stream) = (self.handle(bytes, 2), self.handle(bytes, 1));
                self.record(event, stream);
            }
            6 | 7 => {
                let (event, stream) = (self.handle(bytes, 2), self.handle(bytes, 1));
                let flags = [0, 0, 0, 0, 0, 0, 1, 2][bytes.below(8)];
                self.wait(stream, event, flags);
            }
            8 => {
                let handle = self.handle(bytes, 2);
                let Some(expected) = self.model.event_query(handle) else { return };
                let code = unsafe { (self.table.event_query)(at(handle)) };
                self.expect("cuEventQuery", code, expected);
            }
            9 => {
                let (start, end) = (self.handle(bytes, 2), self.handle(bytes, 2));
                let mut time = 77.0;
                let Some(expected) = self.model.elapsed(start, end) else { return };
                let code = unsafe { (self.table.elapsed)(&mut time, at(start), at(end)) };
                self.expect("cuEventElapsedTime", code, expected);
                // Time stands still except for a step that tells records apart. What fails leaves
                // the place alone.
                assert_eq!(time == 77.0, code.0 != 0);
                assert!(code.0 != 0 || time.abs() < 0.1, "{time} ms");
            }
            10 | 11 => {
                let flags = [0, 1, 1, 2][bytes.below(4)];
                self.create_stream(flags);
            }
            12 => {
                let handle = self.handle(bytes, 1);
                let code = unsafe { (self.table.stream_destroy)(at(handle)) };
                let expected = self.model.stream_destroy(handle);
                self.expect("cuStreamDestroy", code, expected);
            }
            13 => {
                let handle = self.handle(bytes, 1);
                let Some(expected) = self.model.stream_query(handle) else { return };
                let code = unsafe { (self.table.stream_query)(at(handle)) };
                self.expect("cuStreamQuery", code, expected);
            }
            14 => {
                let (handle, none) = (self.handle(bytes, 1), bytes.byte() >= 240);
                self.launch(handle, none);
            }
            15 => {
                self.drain();
                let handle = self.handle(bytes, 1);
                if let Some(expected) = self.model.stream_synchronize(handle) {
                    let code = unsafe { (self.table.stream_synchronize)(at(handle)) };
                    self.expect("cuStreamSynchronize", code, expected);
                }
                let handle = self.handle(bytes, 2);
                if let Some(expected) = self.model.event_synchronize(handle) {
                    let code = unsafe { (self.table.event_synchronize)(at(handle)) };
                    self.expect("cuEventSynchronize", code, expected);
                }
                if let Some(expected) = self.model.context_synchronize() {
                    let code = unsafe { (self.table.context_synchronize)() };
                    self.expect("cuCtxSynchronize", code, expected);
                }
            }
            16 => {
                let event = self.handle(bytes, 2);
                let mut handle = CUipcEventHandle { reserved: [0; 64] };
                let code = unsafe { (self.table.export)(&mut handle, at(event)) };
                let expected = self.model.export(event);
                self.expect("cuIpcGetEventHandle", code, expected);
                if code.0 == 0 {
                    let mut event = null_mut();
                    let code = unsafe { (self.table.import)(&mut event, handle) };
                    let expected = self.model.import();
                    self.expect("cuIpcOpenEventHandle", code, expected);
                }
            }
            17..=22 => self.contexts(operation, bytes),
            24..=33 => self.memory(operation - 24, bytes),
            34..=43 => self.capture(operation - 34, bytes),
            44..=49 => self.nodes(operation - 44, bytes),
            50..=52 => self.whole_capture(bytes),
            #[cfg(target_os = "linux")]
            53..=56 => self.semaphores(operation - 53, bytes),
            _ => {
                self.end_captures();
                self.drain();
                let device = self.device(bytes);
                if bytes.byte() < 32 {
                    let code = unsafe { (self.table.reset)(device) };
                    let expected = self.model.reset(device);
                    self.expect("cuDevicePrimaryCtxReset", code, expected);
                } else {
                    let code = unsafe { (self.table.release)(device) };
                    let expected = self.model.release(device);
                    self.expect("cuDevicePrimaryCtxRelease", code, expected);
                }
            }
        }
    }

    // SAFETY of the blocks below: as in `step`.
    #[allow(clippy::undocumented_unsafe_blocks)]
    fn contexts(&mut self, operation: u8, bytes: &mut Bytes<'_>) {
        match operation {
            17 => {
                self.end_captures();
                let (flags, device) = ([0, 1, 2, 3, 4, 0x100][bytes.below(6)], self.device(bytes));
                let mut context = null_mut();
                let code = unsafe { (self.table.context_create)(&mut context, flags, device) };
                match self.model.context_create(flags, device) {
                    Ok(_) => {
                        self.expect("cuCtxCreate", code, (0, false));
                        self.model.context_created(context.addr() as u64);
                    }
                    Err(answer) => self.expect("cuCtxCreate", code, answer),
                }
            }
            18 => {
                self.end_captures();
                self.drain();
                let handle = self.handle(bytes, 0);
                let code = unsafe { (self.table.context_destroy)(at(handle)) };
                let expected = self.model.context_destroy(handle);
                self.expect("cuCtxDestroy", code, expected);
            }
            19 => {
                let handle = self.handle(bytes, 0);
                let code = unsafe { (self.table.push)(at(handle)) };
                let expected = self.model.push(handle);
                self.expect("cuCtxPushCurrent", code, expected);
            }
            20 => {
                let top = self.model.top();
                let mut context = null_mut();
                let code = unsafe { (self.table.pop)(&mut context) };
                let expected = self.model.pop();
                self.expect("cuCtxPopCurrent", code, expected);
                assert_eq!(context.addr() as u64, top);
            }
            21 => {
                let handle = self.handle(bytes, 0);
                let code = unsafe { (self.table.set)(at(handle)) };
                let expected = self.model.set(handle);
                self.expect("cuCtxSetCurrent", code, expected);
                let mut context = null_mut();
                let code = unsafe { (self.table.get)(&mut context) };
                self.expect("cuCtxGetCurrent", code, (0, false));
                assert_eq!(context.addr() as u64, self.model.top());
            }
            _ => {
                self.end_captures();
                let device = self.device(bytes);
                let mut context = null_mut();
                let code = unsafe { (self.table.retain)(&mut context, device) };
                match self.model.retain(device) {
                    Ok(device) => {
                        self.expect("cuDevicePrimaryCtxRetain", code, (0, false));
                        self.model.retained(device, context.addr() as u64);
                    }
                    Err(answer) => self.expect("cuDevicePrimaryCtxRetain", code, answer),
                }
            }
        }
    }

    fn device(&self, bytes: &mut Bytes<'_>) -> i32 {
        [0, 0, 0, 1, 1, 2, -1][bytes.below(7)]
    }

    /// What is left is what the model has left.
    fn end(mut self) {
        self.end_captures();
        self.drain();
        self.compare_memory();
        let (live, model) = (self.soft.live(), &self.model);
        let events = model.events.iter().filter(|it| it.life == Life::Alive).count();
        let streams = model.made().filter(|it| it.life == Life::Alive).count();
        let contexts = model.contexts.iter().filter(|it| it.alive && !it.primary).count();
        let retains: u32 = model.retained.iter().sum();
        let memory = model.memory.iter().filter(|it| it.alive).count();
        let graphs = model.graphs.iter().filter(|it| it.life == Life::Alive).count();
        let execs = model.execs.iter().filter(|it| it.alive).count();
        assert_eq!((live.captures, live.graphs, live.graph_execs), (0, graphs, execs), "{live}");
        #[cfg(target_os = "linux")]
        {
            let semaphores = model.semaphores.iter().filter(|it| it.life == Life::Alive);
            assert_eq!(live.external_semaphores, semaphores.count(), "{live}");
        }
        assert_eq!(
            (live.events, live.streams, live.contexts, live.retains, live.allocations, live.lost),
            (events, streams, contexts, retains as usize, memory, model.lost),
            "{live}"
        );
        self.exchange(0);
        self.soft.hold_host_functions(false);
        for device in 0..DEVICES as i32 {
            // SAFETY: a device that is there.
            let _ = unsafe { (self.table.reset)(device) };
        }
        // SAFETY: the handle is not wanted. The stack is this thread's, and the next driver's.
        while unsafe { (self.table.pop)(null_mut()) }.0 == 0 {}
    }
}

/// Makes the calls that the bytes say, on a driver of their own, and compares each answer.
pub fn run(data: &[u8]) {
    let mut bytes = Bytes(data);
    let mut run = Run::new();
    // So that most sequences have something to work with.
    if bytes.byte() < 224 {
        let mut start = Bytes(&[22, 0, 19, 1, 0, 0, 0, 10, 1]);
        while !start.is_empty() {
            run.step(&mut start);
        }
    }
    let mut steps = 0;
    while !bytes.is_empty() && steps < 256 {
        run.step(&mut bytes);
        steps += 1;
    }
    run.end();
}
