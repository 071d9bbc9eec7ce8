//! Sequences of calls of the software driver's C entry points, with good, stale, foreign and
//! made-up handles. A slow model predicts every answer.

use std::ffi::{CStr, c_void};
use std::ptr::{null_mut, without_provenance_mut};
use std::sync::LazyLock;

use cuda_events::sys::*;
use cuda_soft_driver::{OnMisuse, SoftDriver, Time};

use super::bytes::Bytes;
use super::model::{Answer, DEVICES, Life, Model};

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
}

fn at<T>(handle: u64) -> *mut T {
    without_provenance_mut(handle as usize)
}

unsafe extern "C" fn nothing(_: *mut c_void) {}

/// Another driver of this process, and a context, a stream and an event of it.
static OTHERS: LazyLock<(SoftDriver, [u64; 3])> = LazyLock::new(|| {
    let soft = SoftDriver::builder().on_misuse(OnMisuse::Error).build();
    let table = Table::of(&soft);
    let (mut context, mut stream, mut event) = (null_mut(), null_mut(), null_mut());
    // SAFETY: places for the handles; the flags and the device exist.
    let codes = unsafe {
        [
            (table.init)(0),
            (table.context_create)(&mut context, 0, 0),
            (table.stream_create)(&mut stream, 0, 0),
            (table.event_create)(&mut event, 0),
            (table.pop)(null_mut()),
        ]
    };
    assert_eq!(codes.map(|code| code.0), [0; 5]);
    (soft, [context.addr(), stream.addr(), event.addr()].map(|handle| handle as u64))
});

struct Run {
    soft: SoftDriver,
    table: Table,
    model: Model,
    misuses: usize,
}

impl Run {
    fn new() -> Self {
        let builder = SoftDriver::builder().devices(DEVICES as u32).on_misuse(OnMisuse::Error);
        let soft = builder.time(Time::Virtual).build();
        let table = Table::of(&soft);
        // SAFETY: the flags must be 0.
        assert_eq!(unsafe { (table.init)(0) }.0, 0);
        soft.hold_host_functions(true);
        let mut model = Model::default();
        model.others = OTHERS.1;
        Self { soft, table, model, misuses: 0 }
    }

    #[track_caller]
    fn expect(&mut self, name: &str, code: CUresult, expected: Answer) {
        let misuses = self.soft.misuses();
        let told = misuses.len() - self.misuses;
        self.misuses = misuses.len();
        assert_eq!(
            (code.0, told),
            (expected.0, usize::from(expected.1)),
            "{name}: the model expects {expected:?}: {:?}",
            misuses.last()
        );
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
                1 => pick(model.streams.iter().map(|it| it.handle).chain([0, 1, 2]).collect()),
                _ => pick(model.events.iter().map(|it| it.handle).collect()),
            },
        }
    }

    /// Lets all held work be done.
    fn drain(&mut self) {
        if !self.model.anything_pending() {
            return;
        }
        self.soft.hold_host_functions(false);
        for stream in self.model.streams.iter().filter(|it| it.life == Life::Alive) {
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
        self.model.drain();
    }

    // SAFETY of the blocks below: misuse is an error on this driver, which takes any number for a
    // handle; the places are on the stack.
    #[allow(clippy::undocumented_unsafe_blocks)]
    fn step(&mut self, bytes: &mut Bytes<'_>) {
        let operation = bytes.byte() % 24;
        match operation {
            0 | 1 => {
                let flags = [0, 1, 2, 3, 4, 6, 7, 8][bytes.below(8)];
                let mut event = null_mut();
                let code = unsafe { (self.table.event_create)(&mut event, flags) };
                match self.model.event_create(flags) {
                    Ok(context) => {
                        self.expect("cuEventCreate", code, (0, false));
                        self.model.event_created(context, flags, event.addr() as u64);
                    }
                    Err(answer) => self.expect("cuEventCreate", code, answer),
                }
            }
            2 => {
                let handle = self.handle(bytes, 2);
                let code = unsafe { (self.table.event_destroy)(at(handle)) };
                let expected = self.model.event_destroy(handle);
                self.expect("cuEventDestroy", code, expected);
            }
            3..=5 => {
                let (event, stream) = (self.handle(bytes, 2), self.handle(bytes, 1));
                let code = unsafe { (self.table.record)(at(event), at(stream)) };
                let expected = self.model.record(event, stream);
                self.expect("cuEventRecord", code, expected);
            }
            6 | 7 => {
                let (event, stream) = (self.handle(bytes, 2), self.handle(bytes, 1));
                let flags = [0, 0, 0, 0, 0, 0, 1, 2][bytes.below(8)];
                let code = unsafe { (self.table.wait)(at(stream), at(event), flags) };
                let expected = self.model.wait(stream, event, flags);
                self.expect("cuStreamWaitEvent", code, expected);
            }
            8 => {
                let handle = self.handle(bytes, 2);
                let code = unsafe { (self.table.event_query)(at(handle)) };
                let expected = self.model.event_query(handle);
                self.expect("cuEventQuery", code, expected);
            }
            9 => {
                let (start, end) = (self.handle(bytes, 2), self.handle(bytes, 2));
                let mut time = 77.0;
                let code = unsafe { (self.table.elapsed)(&mut time, at(start), at(end)) };
                let expected = self.model.elapsed(start, end);
                self.expect("cuEventElapsedTime", code, expected);
                // Time stands still except for a step that tells records apart. What fails leaves
                // the place alone.
                assert_eq!(time == 77.0, code.0 != 0);
                assert!(code.0 != 0 || time.abs() < 0.1, "{time} ms");
            }
            10 | 11 => {
                let flags = [0, 1, 1, 2][bytes.below(4)];
                let mut stream = null_mut();
                let code = unsafe { (self.table.stream_create)(&mut stream, flags, 0) };
                match self.model.stream_create(flags) {
                    Ok(context) => {
                        self.expect("cuStreamCreateWithPriority", code, (0, false));
                        self.model.stream_created(context, flags, stream.addr() as u64);
                    }
                    Err(answer) => self.expect("cuStreamCreateWithPriority", code, answer),
                }
            }
            12 => {
                let handle = self.handle(bytes, 1);
                let code = unsafe { (self.table.stream_destroy)(at(handle)) };
                let expected = self.model.stream_destroy(handle);
                self.expect("cuStreamDestroy", code, expected);
            }
            13 => {
                let handle = self.handle(bytes, 1);
                let code = unsafe { (self.table.stream_query)(at(handle)) };
                let expected = self.model.stream_query(handle);
                self.expect("cuStreamQuery", code, expected);
            }
            14 => {
                let handle = self.handle(bytes, 1);
                let code = unsafe { (self.table.launch)(at(handle), Some(nothing), null_mut()) };
                let expected = self.model.launch(handle);
                self.expect("cuLaunchHostFunc", code, expected);
            }
            15 => {
                self.drain();
                let handle = self.handle(bytes, 1);
                let code = unsafe { (self.table.stream_synchronize)(at(handle)) };
                let expected = self.model.stream_synchronize(handle);
                self.expect("cuStreamSynchronize", code, expected);
                let handle = self.handle(bytes, 2);
                let code = unsafe { (self.table.event_synchronize)(at(handle)) };
                let expected = self.model.event_synchronize(handle);
                self.expect("cuEventSynchronize", code, expected);
                let code = unsafe { (self.table.context_synchronize)() };
                let expected = self.model.context_synchronize();
                self.expect("cuCtxSynchronize", code, expected);
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
            17 => {
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
            22 => {
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
            _ => {
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

    fn device(&self, bytes: &mut Bytes<'_>) -> i32 {
        [0, 0, 0, 1, 1, 2, -1][bytes.below(7)]
    }

    /// What is left is what the model has left.
    fn end(mut self) {
        self.drain();
        let (live, model) = (self.soft.live(), &self.model);
        let events = model.events.iter().filter(|it| it.life == Life::Alive).count();
        let streams = model.streams.iter().filter(|it| it.life == Life::Alive).count();
        let contexts = model.contexts.iter().filter(|it| it.alive && !it.primary).count();
        let retains: u32 = model.retained.iter().sum();
        assert_eq!(
            (live.events, live.streams, live.contexts, live.retains, live.lost),
            (events, streams, contexts, retains as usize, model.lost),
            "{live}"
        );
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
