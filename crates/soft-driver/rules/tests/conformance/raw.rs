//! The raw table as a rule calls it, and the setup that most rules share.

use std::cell::RefCell;
use std::ffi::{CStr, c_void};
use std::mem::transmute;
use std::path::PathBuf;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, channel, sync_channel};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use cuda_events::sys::more::types;
use cuda_events::sys::*;
use cuda_soft_driver::{Builder, SoftDriver};
use cuda_test_harness::{TestDriver, named_library, shared_library, soft_settings, watch};
use libloading::Library;

pub const BLOCKING: u32 = CU_STREAM_DEFAULT;
pub const NON_BLOCKING: u32 = CU_STREAM_NON_BLOCKING;
pub const TIMING: u32 = CU_EVENT_DEFAULT;
pub const NO_TIMING: u32 = CU_EVENT_DISABLE_TIMING;
pub const INTERPROCESS: u32 = CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING;

/// The default streams by their handles.
pub const NULL_STREAM: CUstream = null_mut();
pub const LEGACY: CUstream = CU_STREAM_LEGACY;
pub const PER_THREAD: CUstream = CU_STREAM_PER_THREAD;

/// The driver's entry points, under the names that it exports.
#[derive(Clone, Copy)]
pub struct Raw {
    /// Never freed: a thread may call it while the process ends.
    table: &'static Table,
    version: Version,
}

impl Raw {
    /// # Safety
    ///
    /// What `export` returns for a name is NULL, or the driver's function of that name, which stays
    /// valid.
    ///
    /// The holder passes places that can be written, and handles that are live, NULL, or of a kind
    /// that the driver checks (measured). Rules that pass other handles run only on the software
    /// driver, which checks them.
    unsafe fn new(export: &dyn Fn(&CStr) -> *mut c_void) -> Self {
        // SAFETY: the caller's.
        let table = Box::leak(Box::new(unsafe { Table::new(export) }));
        let mut raw = Self { table, version: Version::from_raw(0) };
        let mut version = 0;
        must!(raw.cuDriverGetVersion(&mut version));
        raw.version = Version::from_raw(version.try_into().expect("versions are positive"));
        raw
    }

    /// The CUDA version of the driver.
    pub fn version(&self) -> Version {
        self.version
    }
}

/// Defines the calls, and the table of their functions: in each line the functions with so many
/// arguments.
macro_rules! calls {
    ($($takes:ident $arguments:tt: $($name:ident)*;)*) => {
        /// The functions by their exported names; `None` where the driver exports none.
        #[allow(non_snake_case)]
        struct Table {
            $($($name: types::$name,)*)*
        }

        impl Table {
            /// # Safety
            ///
            /// As `Raw::new`.
            unsafe fn new(export: &dyn Fn(&CStr) -> *mut c_void) -> Self {
                Self {
                    // SAFETY: NULL is `None`, and all else is the driver's function of that type.
                    $($($name: unsafe {
                        transmute::<*mut c_void, types::$name>(export(exported_name!($name)))
                    },)*)*
                }
            }
        }

        $(calls!(@takes $takes $arguments);)*
        $($(calls!(@call $takes $arguments $name);)*)*
    };
    (@takes $takes:ident ($($argument:ident: $type:ident),*)) => {
        /// The types of the arguments.
        #[allow(dead_code, reason = "without arguments there is none")]
        pub trait $takes {
            $(type $type;)*
        }

        impl<$($type),*> $takes for Option<unsafe extern "C" fn($($type),*) -> CUresult> {
            $(type $type = $type;)*
        }
    };
    (@call $takes:ident ($($argument:ident: $type:ident),*) $name:ident) => {
        #[allow(non_snake_case, clippy::too_many_arguments)]
        impl Raw {
            pub fn $name(&self, $($argument: <types::$name as $takes>::$type),*) -> CUresult {
                let call = self.table.$name;
                let call = call.expect(concat!("the driver has no ", stringify!($name)));
                // SAFETY: the arguments are as `Raw::new` requires.
                unsafe { call($($argument),*) }
            }
        }
    };
}

/// The name of a function as a C string.
macro_rules! exported_name {
    ($name:ident) => {
        const {
            match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => panic!("a name without NUL"),
            }
        }
    };
}

calls! {
    Takes0():
        cuCtxSynchronize cuProfilerStart cuProfilerStop;
    Takes1(a: A):
        cuCtxDestroy_v2 cuCtxDetach cuCtxDisablePeerAccess cuCtxGetCurrent cuCtxGetDevice
        cuCtxPopCurrent_v2 cuCtxPushCurrent_v2 cuCtxSetCacheConfig cuCtxSetCurrent
        cuCtxSetSharedMemConfig cuCtxSynchronize_v2 cuDestroyExternalSemaphore cuDeviceGetCount
        cuDevicePrimaryCtxRelease_v2 cuDriverGetVersion cuEventDestroy_v2 cuEventQuery
        cuEventSynchronize cuGraphDestroy cuGraphDestroyNode cuGraphExecDestroy cuGreenCtxDestroy
        cuInit cuIpcCloseMemHandle cuLibraryUnload cuMemFreeHost cuMemFree_v2 cuMemHostUnregister
        cuMemPoolDestroy cuMemRelease cuMemcpy2DUnaligned_v2 cuMemcpy2D_v2 cuMemcpy3DPeer
        cuMemcpy3D_v2 cuModuleGetLoadingMode cuModuleUnload cuStreamDestroy_v2 cuStreamQuery
        cuStreamSynchronize cuThreadExchangeStreamCaptureMode;
    Takes2(a: A, b: B):
        cuCtxAttach cuCtxEnablePeerAccess cuCtxFromGreenCtx cuCtxGetDevice_v2 cuCtxGetId
        cuCtxGetStreamPriorityRange cuCtxRecordEvent cuCtxSetLimit cuCtxWaitEvent cuDeviceGet
        cuDeviceGetDefaultMemPool cuDeviceGetMemPool cuDeviceGetUuid cuDevicePrimaryCtxRetain
        cuDeviceSetMemPool cuEventCreate cuEventRecord cuFuncGetName cuGetErrorName cuGetErrorString
        cuGetExportTable cuGraphBatchMemOpNodeGetParams cuGraphBatchMemOpNodeSetParams
        cuGraphChildGraphNodeGetGraph cuGraphClone cuGraphCreate cuGraphEventRecordNodeGetEvent
        cuGraphEventRecordNodeSetEvent cuGraphEventWaitNodeGetEvent cuGraphEventWaitNodeSetEvent
        cuGraphExecGetFlags cuGraphExecGetId cuGraphGetId cuGraphHostNodeGetParams
        cuGraphHostNodeSetParams cuGraphLaunch cuGraphMemcpyNodeGetParams cuGraphMemcpyNodeSetParams
        cuGraphMemsetNodeGetParams cuGraphMemsetNodeSetParams cuGraphNodeGetContainingGraph
        cuGraphNodeGetLocalId cuGraphNodeGetType cuGreenCtxRecordEvent cuGreenCtxWaitEvent
        cuImportExternalSemaphore cuIpcGetEventHandle cuIpcGetMemHandle cuIpcOpenEventHandle
        cuKernelGetFunction cuKernelGetName cuLibraryGetModule cuMemAddressFree cuMemAlloc_v2
        cuMemFreeAsync cuMemGetAllocationPropertiesFromHandle cuMemHostGetFlags cuMemPoolCreate
        cuMemPoolExportPointer cuMemPoolTrimTo cuMemRetainAllocationHandle cuMemUnmap
        cuMemcpy2DAsync_v2 cuMemcpy3DPeerAsync cuModuleLoadData cuStreamBeginCapture_v2
        cuStreamCreate cuStreamEndCapture cuStreamGetCtx cuStreamGetDevice cuStreamGetFlags
        cuStreamGetGreenCtx cuStreamGetId cuStreamGetPriority cuStreamIsCapturing
        cuUserObjectRelease cuUserObjectRetain;
    Takes3(a: A, b: B, c: C):
        cuCtxCreate_v2 cuCtxGetDevResource cuDevResourceGenerateDesc cuDeviceCanAccessPeer
        cuDeviceGetAttribute cuDeviceGetDevResource cuDeviceGetLuid cuDeviceGetName
        cuDevicePrimaryCtxGetState cuEventElapsedTime cuEventElapsedTime_v2 cuEventRecordWithFlags
        cuGraphExecBatchMemOpNodeSetParams cuGraphExecEventRecordNodeSetEvent
        cuGraphExecEventWaitNodeSetEvent cuGraphExecHostNodeSetParams cuGraphExecUpdate_v2
        cuGraphGetNodes cuGraphGetRootNodes cuGraphInstantiateWithFlags cuGraphInstantiateWithParams
        cuGraphNodeFindInClone cuGraphNodeGetDependencies cuGraphNodeGetDependentNodes
        cuGraphNodeGetEnabled cuGraphNodeSetEnabled cuGraphReleaseUserObject
        cuGreenCtxGetDevResource cuIpcOpenMemHandle_v2 cuLaunchHostFunc cuLibraryGetKernel
        cuMemAllocAsync cuMemAllocManaged cuMemGetAccess cuMemGetAddressRange_v2
        cuMemGetAllocationGranularity cuMemHostAlloc cuMemHostGetDevicePointer_v2
        cuMemHostRegister_v2 cuMemPoolGetAccess cuMemPoolGetAttribute cuMemPoolImportPointer
        cuMemPoolSetAccess cuMemPoolSetAttribute cuMemcpyDtoD_v2 cuMemcpyDtoH_v2 cuMemcpyHtoD_v2
        cuMemsetD8_v2 cuModuleGetFunction cuPointerGetAttribute cuStreamCreateWithPriority
        cuStreamGetAttribute cuStreamGetCaptureInfo cuStreamGetCtx_v2 cuStreamSetAttribute
        cuStreamWaitEvent;
    Takes4(a: A, b: B, c: C, d: D):
        cuDeviceGetP2PAttribute cuGetProcAddress cuGraphAddDependencies cuGraphAddEmptyNode
        cuGraphExecMemcpyNodeSetParams cuGraphExecMemsetNodeSetParams cuGraphExecUpdate
        cuGraphGetEdges cuGraphRemoveDependencies cuGraphRetainUserObject cuGreenCtxCreate
        cuGreenCtxStreamCreate cuLaunchHostFunc_v2 cuMemAdvise cuMemAllocFromPoolAsync cuMemCreate
        cuMemPoolExportToShareableHandle cuMemPoolImportFromShareableHandle cuMemPrefetchAsync
        cuMemSetAccess cuMemcpyAsync cuMemcpyDtoDAsync_v2 cuMemcpyDtoHAsync_v2 cuMemcpyHtoDAsync_v2
        cuMemsetD32Async cuMemsetD8Async cuPointerGetAttributes cuSignalExternalSemaphoresAsync
        cuStreamAddCallback cuStreamAttachMemAsync cuStreamUpdateCaptureDependencies
        cuStreamWaitValue32_v2 cuStreamWaitValue64_v2 cuStreamWriteValue32_v2
        cuStreamWriteValue64_v2 cuWaitExternalSemaphoresAsync;
    Takes5(a: A, b: B, c: C, d: D, e: E):
        cuGetProcAddress_v2 cuGraphAddBatchMemOpNode cuGraphAddChildGraphNode
        cuGraphAddEventRecordNode cuGraphAddEventWaitNode cuGraphAddHostNode cuMemAddressReserve
        cuMemAllocPitch_v2 cuMemMap cuMemPrefetchAsync_v2 cuMemcpyPeer cuMemsetD2D16_v2
        cuStreamUpdateCaptureDependencies_v2 cuUserObjectCreate;
    Takes6(a: A, b: B, c: C, d: D, e: E, f: F):
        cuDevSmResourceSplitByCount cuGraphAddMemcpyNode cuGraphAddMemsetNode cuMemcpyPeerAsync
        cuStreamBeginCaptureToGraph cuStreamGetCaptureInfo_v2;
    Takes7(a: A, b: B, c: C, d: D, e: E, f: F, g: G):
        cuStreamGetCaptureInfo_v3;
    Takes8(a: A, b: B, c: C, d: D, e: E, f: F, g: G, h: H):
        cuLibraryLoadData;
    Takes11(a: A, b: B, c: C, d: D, e: E, f: F, g: G, h: H, i: I, j: J, k: K):
        cuLaunchKernel;
}

/// Where a driver's functions come from.
enum Exports {
    Soft(SoftDriver),
    Library(&'static Library),
}

impl Exports {
    fn of(chosen: TestDriver, settings: &str) -> Self {
        match chosen {
            TestDriver::Soft => {
                let builder = Builder::from_text(&soft_settings(settings));
                Self::Soft(builder.expect("settings that are understood").build())
            }
            TestDriver::Shared => Self::Library(open(&[shared_library()])),
            TestDriver::Native => Self::Library(open(&match named_library() {
                Some(path) => vec![path],
                None => SYSTEM.iter().map(PathBuf::from).collect(),
            })),
        }
    }

    /// The address that a linker finds under a name, NULL for none.
    fn address(&self, name: &CStr) -> *mut c_void {
        match self {
            Self::Soft(soft) => soft.resolve(name),
            Self::Library(library) => {
                // SAFETY: the address is only read, and not called as this type.
                let symbol = unsafe { library.get::<*mut c_void>(name.to_bytes_with_nul()) };
                // SAFETY: as above.
                let address = symbol.map(|symbol| unsafe { symbol.try_as_raw_ptr() });
                address.ok().flatten().unwrap_or(null_mut())
            }
        }
    }
}

/// The names of the machine's own driver.
const SYSTEM: &[&str] = if cfg!(windows) {
    &["nvcuda.dll"]
} else {
    &["libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"]
};

/// The driver library of this process: the first of these that can be opened.
fn open(candidates: &[PathBuf]) -> &'static Library {
    static LIBRARY: OnceLock<Library> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let mut errors = Vec::new();
        for path in candidates {
            // SAFETY: it is named as a driver, whose initialisers may run.
            match unsafe { Library::new(path) } {
                Ok(library) => return library,
                Err(error) => {
                    let cause = std::error::Error::source(&error).map(|it| format!(": {it}"));
                    errors.push(format!("{error}{}", cause.unwrap_or_default()));
                }
            }
        }
        panic!("no driver can be opened: {}", errors.join("; "))
    })
}

/// A driver. Unless the rig is bare, the primary context of the driver's first device is current on
/// this thread.
pub struct Rig {
    raw: Raw,
    pub device: CUdevice,
    /// NULL if the rig is bare.
    pub context: CUcontext,
    created: RefCell<Vec<CUcontext>>,
    exports: Exports,
    _turn: Option<MutexGuard<'static, ()>>,
}

impl std::ops::Deref for Rig {
    type Target = Raw;

    fn deref(&self) -> &Raw {
        &self.raw
    }
}

impl Rig {
    /// The driver before `cuInit`.
    pub fn bare(settings: &str) -> Self {
        // Each rule makes a new software driver in the process. A loaded library is shared by all
        // rules, with one primary context and one thread for host functions, so its rules take
        // turns.
        static TURN: Mutex<()> = Mutex::new(());
        let chosen = TestDriver::chosen();
        let turn = (chosen != TestDriver::Soft)
            .then(|| TURN.lock().unwrap_or_else(PoisonError::into_inner));
        watch::alive();
        let exports = Exports::of(chosen, settings);
        // SAFETY: the functions are a driver's, which stays loaded, and the rules keep the duties.
        let raw = unsafe { Raw::new(&|name| exports.address(name)) };
        let created = RefCell::default();
        Self { raw, device: 0, context: null_mut(), created, exports, _turn: turn }
    }

    /// With the primary context of the first device current.
    pub fn new(settings: &str) -> Self {
        let mut rig = Self::bare(settings);
        must!(rig.cuInit(0));
        must("cuDeviceGet", rig.raw.cuDeviceGet(&mut rig.device, 0));
        must(
            "cuDevicePrimaryCtxRetain",
            rig.raw.cuDevicePrimaryCtxRetain(&mut rig.context, rig.device),
        );
        must!(rig.cuCtxSetCurrent(rig.context));
        rig
    }

    /// The software driver, where it is part of this process.
    pub fn soft(&self) -> Option<&SoftDriver> {
        match &self.exports {
            Exports::Soft(soft) => Some(soft),
            Exports::Library(_) => None,
        }
    }

    /// The address that a linker finds under an exported name, NULL for none.
    pub fn export(&self, name: &CStr) -> *mut c_void {
        self.exports.address(name)
    }

    /// Another context of the same device, which is current nowhere.
    pub fn new_context(&self) -> CUcontext {
        self.new_context_on(self.device)
    }

    pub fn new_context_on(&self, device: CUdevice) -> CUcontext {
        let (mut context, mut popped) = (null_mut(), null_mut());
        must!(self.cuCtxCreate_v2(&mut context, 0, device));
        must!(self.cuCtxPopCurrent_v2(&mut popped));
        self.created.borrow_mut().push(context);
        context
    }

    /// Destroys what `new_context` made.
    pub fn destroy_context(&self, context: CUcontext) -> CUresult {
        self.created.borrow_mut().retain(|created| *created != context);
        self.cuCtxDestroy_v2(context)
    }

    /// Does some work with another context current.
    pub fn within<T>(&self, context: CUcontext, work: impl FnOnce() -> T) -> T {
        must!(self.cuCtxPushCurrent_v2(context));
        let result = work();
        must!(self.cuCtxPopCurrent_v2(&mut null_mut()));
        result
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        // A rule may leave any state. Handles that no longer work need no cleanup.
        for context in self.created.take() {
            let _ = self.cuCtxDestroy_v2(context);
        }
        if !self.context.is_null() {
            let _ = self.cuCtxSetCurrent(null_mut());
            // The last release resets the context: the next rule starts with an empty one.
            let _ = self.cuDevicePrimaryCtxRelease_v2(self.device);
        }
    }
}

/// What `must!` does, with a call that has another name here.
#[track_caller]
pub fn must(call: &str, code: CUresult) {
    assert!(code == CUresult::CUDA_SUCCESS, "{call} returned {code}");
}

/// A code in the form of the results.
pub fn code_text(code: CUresult) -> String {
    if code == CUresult::CUDA_SUCCESS { "success".to_owned() } else { code.to_string() }
}

/// Short forms of these calls for rules.
impl Raw {
    #[track_caller]
    pub fn event(&self, flags: u32) -> CUevent {
        let mut event = null_mut();
        must!(self.cuEventCreate(&mut event, flags));
        event
    }

    #[track_caller]
    pub fn stream(&self, flags: u32) -> CUstream {
        let mut stream = null_mut();
        must!(self.cuStreamCreate(&mut stream, flags));
        stream
    }

    #[track_caller]
    pub fn record(&self, event: CUevent, stream: CUstream) {
        must!(self.cuEventRecord(event, stream));
    }

    /// A new event without timing that was recorded in a stream.
    #[track_caller]
    pub fn recorded(&self, stream: CUstream) -> CUevent {
        let event = self.event(NO_TIMING);
        self.record(event, stream);
        event
    }

    #[track_caller]
    pub fn synchronize(&self, stream: CUstream) {
        must!(self.cuStreamSynchronize(stream));
    }

    /// Queries an event until it is done or the time is up, and returns the last code. With a wrong
    /// driver, a rule that synchronizes would never end.
    pub fn settled(&self, event: CUevent) -> CUresult {
        let begun = Instant::now();
        loop {
            let code = self.cuEventQuery(event);
            if code != CUresult::CUDA_ERROR_NOT_READY || begun.elapsed() > Duration::from_secs(60) {
                return code;
            }
            std::thread::yield_now();
        }
    }

    pub fn current(&self) -> CUcontext {
        let mut context = null_mut();
        must!(self.cuCtxGetCurrent(&mut context));
        context
    }

    pub fn id(&self, stream: CUstream) -> u64 {
        let mut id = 0;
        must!(self.cuStreamGetId(stream, &mut id));
        id
    }

    /// The time between two events in milliseconds, or the code.
    pub fn elapsed(&self, start: CUevent, end: CUevent) -> Result<f32, CUresult> {
        let mut milliseconds = f32::NAN;
        match self.cuEventElapsedTime(&mut milliseconds, start, end) {
            CUresult::CUDA_SUCCESS => Ok(milliseconds),
            code => Err(code),
        }
    }

    pub fn elapsed_code(&self, start: CUevent, end: CUevent) -> CUresult {
        self.elapsed(start, end).err().unwrap_or(CUresult::CUDA_SUCCESS)
    }

    pub fn descriptor(&self, event: CUevent) -> [u8; 64] {
        let mut handle = CUipcEventHandle { reserved: [0; 64] };
        must!(self.cuIpcGetEventHandle(&mut handle, event));
        handle.reserved
    }

    /// Opens a descriptor, and returns the code and the event, or NULL.
    pub fn open(&self, descriptor: [u8; 64]) -> (CUresult, CUevent) {
        let mut event = null_mut();
        let code = self.cuIpcOpenEventHandle(&mut event, CUipcEventHandle { reserved: descriptor });
        (code, event)
    }

    pub fn device_count(&self) -> i32 {
        let mut count = 0;
        must!(self.cuDeviceGetCount(&mut count));
        count
    }

    /// Makes a stream call a function once. A function that is never called is leaked.
    pub fn host(&self, stream: CUstream, work: impl FnOnce() + Send + 'static) -> CUresult {
        type Work = Box<dyn FnOnce() + Send>;
        extern "C" fn call(work: *mut c_void) {
            // SAFETY: the pointer is the box that was leaked below for this one call.
            let work = unsafe { Box::from_raw(work.cast::<Work>()) };
            // A panic must not pass through the driver. The rule that waits for the function shows
            // the failure.
            let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        }
        let work: Box<Work> = Box::new(Box::new(work));
        self.cuLaunchHostFunc(stream, Some(call), Box::into_raw(work).cast())
    }

    /// Holds a stream until the latch is released or dropped.
    #[track_caller]
    pub fn hold(&self, stream: CUstream) -> Latch {
        let (release, receiver): (SyncSender<()>, Receiver<()>) = sync_channel(1);
        let code = self.host(stream, move || {
            // Ends when the latch sends or is dropped.
            let _ = receiver.recv();
        });
        must("cuLaunchHostFunc", code);
        Latch(release)
    }
}

/// Holds a stream.
pub struct Latch(SyncSender<()>);

impl Latch {
    pub fn release(self) {
        drop(self.0);
    }
}

/// A word of host memory that the device sees.
pub struct Word<'a> {
    raw: &'a Raw,
    host: *mut c_void,
    pub device: CUdeviceptr,
}

impl<'a> Word<'a> {
    pub fn new(raw: &'a Raw) -> Self {
        let (mut host, mut device) = (null_mut(), 0);
        must!(raw.cuMemHostAlloc(&mut host, 64, CU_MEMHOSTALLOC_DEVICEMAP));
        must!(raw.cuMemHostGetDevicePointer_v2(&mut device, host, 0));
        let word = Self { raw, host, device };
        word.word().store(0, Ordering::SeqCst);
        word
    }

    pub fn word(&self) -> &AtomicU32 {
        // SAFETY: 64 bytes of the driver's page-aligned host memory, alive while `self` is, and
        // used as atomics only.
        unsafe { AtomicU32::from_ptr(self.host.cast()) }
    }
}

impl Drop for Word<'_> {
    fn drop(&mut self) {
        let _ = self.raw.cuMemFreeHost(self.host);
    }
}

/// Does some work on another thread, which has no context, and waits for it.
pub fn elsewhere<T>(work: impl FnOnce() -> T) -> T {
    struct Carry<T>(T);
    // SAFETY: only one thread at a time uses the value, because this one waits until the other has
    // ended. Handles are numbers, which every thread may pass to the driver.
    unsafe impl<T> Send for Carry<T> {}
    impl<T> Carry<T> {
        fn open(self) -> T {
            self.0
        }
    }
    let work = Carry(work);
    let ended = std::thread::scope(|scope| scope.spawn(move || Carry((work.open())())).join());
    match ended {
        Ok(result) => result.open(),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// A handle that can be sent to another thread, as a number.
#[derive(Clone, Copy)]
pub struct Sent(usize);

impl Sent {
    pub fn new<T>(handle: *mut T) -> Self {
        Self(handle.expose_provenance())
    }

    pub fn get<T>(self) -> *mut T {
        std::ptr::with_exposed_provenance_mut(self.0)
    }
}

/// The time for which a call that waits is watched.
pub const SHORT: Duration = Duration::from_millis(300);
/// On a busy machine, a call that does not wait returns within this time.
pub const LONG: Duration = Duration::from_secs(10);

/// Makes a call that may wait for a stream in another thread, and has the stream go on once the
/// call has returned or the time is over.
pub fn beside_a_wait(
    rig: &Rig,
    patience: Duration,
    call: impl FnOnce() -> CUresult + Send + 'static,
    release: impl FnOnce(),
) -> String {
    let (sender, receiver) = channel();
    let (context, raw) = (Sent::new(rig.current()), **rig);
    let thread = std::thread::spawn(move || {
        must!(raw.cuCtxSetCurrent(context.get()));
        let _ = sender.send(call());
    });
    match receiver.recv_timeout(patience) {
        Ok(code) => format!("returns at once, {}", code_text(code)),
        Err(RecvTimeoutError::Timeout) => {
            release();
            let code = receiver.recv_timeout(LONG).map_or("never".to_owned(), code_text);
            thread.join().expect("no panic");
            format!("waits, then {code}")
        }
        Err(RecvTimeoutError::Disconnected) => "panicked".to_owned(),
    }
}
