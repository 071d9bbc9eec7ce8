//! The raw table of a machine that the software driver makes, and latches: what the software
//! driver's own tests use.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "each calls the raw table with handles that it gave out and places on the stack"
)]

use std::ffi::{CStr, c_void};
use std::ops::Deref;
use std::ptr::{null_mut, without_provenance_mut};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::time::Duration;

use cuda_events::sys::*;
use cuda_events::{Context, Driver, LoadOptions, StreamRef};
use cuda_soft_driver::{Builder, OnMisuse, SoftDriver};

pub use crate::{call, order_texts};
use crate::{ordered, watch};

pub const OK: u32 = 0;
pub const INVALID_VALUE: u32 = 1;
pub const OUT_OF_MEMORY: u32 = 2;
pub const NOT_INITIALIZED: u32 = 3;
pub const DEINITIALIZED: u32 = 4;
pub const INVALID_CONTEXT: u32 = 201;
pub const MAP_FAILED: u32 = 205;
pub const INVALID_HANDLE: u32 = 400;
pub const ILLEGAL_STATE: u32 = 401;
pub const NOT_READY: u32 = 600;
pub const DESTROYED: u32 = 709;
pub const NOT_PERMITTED: u32 = 800;
pub const NOT_SUPPORTED: u32 = 801;

/// Calls an entry point that the crate does not bind by its exported name: the code.
#[macro_export]
macro_rules! call {
    ($raw:expr, $name:ident($($argument:expr => $type:ty),* $(,)?)) => {{
        let name = std::ffi::CString::new(stringify!($name)).unwrap();
        let function = $raw.resolve(&name);
        assert!(!function.is_null(), "{} is not exported", stringify!($name));
        let function: unsafe extern "C" fn($($type),*) -> u32 =
            unsafe { std::mem::transmute(function) };
        unsafe { function($($argument),*) }
    }};
}

/// The default streams by handle.
pub fn legacy() -> CUstream {
    without_provenance_mut(1)
}

pub fn per_thread() -> CUstream {
    without_provenance_mut(2)
}

/// `CUDA_KERNEL_NODE_PARAMS`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct NodeParams {
    pub function: *mut c_void,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared: u32,
    pub parameters: *mut *mut c_void,
    pub extra: *mut *mut c_void,
}

/// A call in a thread of its own, which may take long, or forever.
pub struct Begun<T>(Receiver<T>);

pub fn begin<T: Send + 'static>(call: impl FnOnce() -> T + Send + 'static) -> Begun<T> {
    let (send, ended) = sync_channel(1);
    std::thread::spawn(move || send.send(call()));
    Begun(ended)
}

impl<T> Begun<T> {
    pub fn is_finished(&self) -> bool {
        !matches!(self.0.try_recv(), Err(TryRecvError::Empty))
    }

    /// What it returned. One that hangs is a failure, and not the test run's end.
    pub fn join(self) -> T {
        self.0.recv_timeout(Duration::from_secs(60)).expect("the call returns")
    }
}

/// A machine and its raw table. Misuse is an error, so that a test can look at it.
pub struct Raw {
    symbols: Symbols,
    pub soft: SoftDriver,
    front: Option<Front>,
}

/// A library in front of the driver.
#[derive(Clone, Copy)]
pub struct Front {
    /// Puts it in front of this driver.
    pub install: fn(&SoftDriver),
    /// The address of a name in it.
    pub resolve: fn(&SoftDriver, &CStr) -> *mut c_void,
    /// Reports an access of a stream or of the host: its address and bytes, and whether it writes.
    pub declare: fn(Option<CUstream>, u64, usize, bool),
}

impl Deref for Raw {
    type Target = Symbols;

    fn deref(&self) -> &Symbols {
        &self.symbols
    }
}

/// Nobody uses it any more: the next driver need not wait for what was never given back.
impl Drop for Raw {
    fn drop(&mut self) {
        // What is not heard is waited for by nobody, and counts all the same.
        self.soft.shut_down();
        // More often than any test retains one.
        for device in (0..8).flat_map(|device| [device; 32]) {
            unsafe { (self.symbols.cuDevicePrimaryCtxRelease_v2)(device) };
        }
    }
}

impl Raw {
    /// Not initialised.
    pub fn bare(builder: Builder) -> Self {
        Self::of(ordered(builder.on_misuse(OnMisuse::Error)).build())
    }

    /// As `with`, for a test that has errors for the order checker on purpose: the environment does
    /// not turn that on or off.
    pub fn planting(builder: Builder) -> Self {
        Self::of(builder.on_misuse(OnMisuse::Error).build()).started()
    }

    fn of(soft: SoftDriver) -> Self {
        watch::alive();
        Self { symbols: *soft.driver().symbols(), soft, front: None }
    }

    /// As `planting`, with a library in front of the driver.
    pub fn behind(builder: Builder, front: Front) -> Self {
        let soft = builder.on_misuse(OnMisuse::Error).build();
        (front.install)(&soft);
        let resolve = &mut |name: &CStr| (front.resolve)(&soft, name);
        let driver = unsafe { Driver::from_resolver(resolve, &LoadOptions::new()) };
        let symbols = *driver.expect("it has the functions of the driver").symbols();
        let mut raw = Self::of(soft);
        (raw.symbols, raw.front) = (symbols, Some(front));
        raw.started()
    }

    /// The address of a function by name.
    pub fn resolve(&self, name: &CStr) -> *mut c_void {
        match self.front {
            Some(front) => (front.resolve)(&self.soft, name),
            None => self.soft.resolve(name),
        }
    }

    /// Reports an access of the host.
    #[track_caller]
    pub fn host_access<T>(&self, memory: *const T, bytes: usize, write: bool) -> u64 {
        match write {
            true => self.soft.host_writes(memory, bytes),
            false => self.soft.host_reads(memory, bytes),
        }
        self.declared(None, memory.addr() as u64, bytes, write)
    }

    /// Reports an access of work in a stream.
    #[track_caller]
    pub fn work(&self, stream: CUstream, address: u64, bytes: usize, write: bool) -> u64 {
        let mut current = null_mut();
        assert_eq!(unsafe { (self.soft.driver().symbols().cuCtxGetCurrent)(&mut current) }.0, OK);
        let context = unsafe { Context::from_raw(self.soft.driver(), current) }.expect("it is one");
        let borrowed = unsafe { StreamRef::from_raw(&context, stream) };
        match write {
            true => self.soft.writes(&borrowed, address, bytes),
            false => self.soft.reads(&borrowed, address, bytes),
        }
        self.declared(Some(stream), address, bytes, write)
    }

    fn declared(&self, stream: Option<CUstream>, at: u64, bytes: usize, write: bool) -> u64 {
        let number = self.soft.calls();
        if let Some(front) = self.front {
            (front.declare)(stream, at, bytes, write);
        }
        number
    }

    /// As `new`, and misuse ends the process.
    pub fn with_default_misuse() -> Self {
        Self::of(ordered(SoftDriver::builder()).build()).started()
    }

    /// Initialised, with the first device's primary context current in this thread.
    pub fn new() -> Self {
        Self::with(SoftDriver::builder())
    }

    pub fn with(builder: Builder) -> Self {
        Self::bare(builder).started()
    }

    fn started(self) -> Self {
        assert_eq!(unsafe { (self.cuInit)(0) }.0, OK);
        let context = self.retain(0);
        self.set_current(context);
        self
    }

    pub fn retain(&self, device: i32) -> CUcontext {
        let mut context = null_mut();
        assert_eq!(unsafe { (self.cuDevicePrimaryCtxRetain)(&mut context, device) }.0, OK);
        context
    }

    pub fn set_current(&self, context: CUcontext) {
        assert_eq!(unsafe { (self.cuCtxSetCurrent)(context) }.0, OK);
    }

    pub fn stream(&self, flags: u32) -> CUstream {
        let mut stream = null_mut();
        assert_eq!(unsafe { (self.cuStreamCreate)(&mut stream, flags) }.0, OK);
        stream
    }

    pub fn event(&self, flags: u32) -> CUevent {
        let mut event = null_mut();
        assert_eq!(unsafe { (self.cuEventCreate)(&mut event, flags) }.0, OK);
        event
    }

    pub fn record(&self, event: CUevent, stream: CUstream) {
        assert_eq!(unsafe { (self.cuEventRecord)(event, stream) }.0, OK);
    }

    pub fn query(&self, event: CUevent) -> u32 {
        unsafe { (self.cuEventQuery)(event) }.0
    }

    pub fn wait(&self, stream: CUstream, event: CUevent) {
        assert_eq!(unsafe { (self.cuStreamWaitEvent)(stream, event, 0) }.0, OK);
    }

    pub fn busy(&self, stream: CUstream) -> bool {
        match unsafe { (self.cuStreamQuery)(stream) }.0 {
            OK => false,
            NOT_READY => true,
            code => panic!("cuStreamQuery: {code}"),
        }
    }

    /// Gives a stream work that takes so long.
    #[track_caller]
    pub fn keep_busy(&self, stream: CUstream, duration: Duration) {
        let mut current = null_mut();
        assert_eq!(unsafe { (self.cuCtxGetCurrent)(&mut current) }.0, OK);
        let context = unsafe { Context::from_raw(self.soft.driver(), current) }.expect("it is one");
        self.soft.busy(&unsafe { StreamRef::from_raw(&context, stream) }, duration);
    }

    pub fn sync(&self, stream: CUstream) {
        assert_eq!(unsafe { (self.cuStreamSynchronize)(stream) }.0, OK);
    }

    pub fn elapsed(&self, start: CUevent, end: CUevent) -> Result<f32, u32> {
        let mut milliseconds = f32::NAN;
        match unsafe { (self.cuEventElapsedTime)(&mut milliseconds, start, end) }.0 {
            OK => Ok(milliseconds),
            code => Err(code),
        }
    }

    /// Runs `f` on the stream.
    pub fn host(&self, stream: CUstream, f: impl FnOnce() + Send + 'static) {
        unsafe extern "C" fn call(data: *mut c_void) {
            let f = unsafe { Box::from_raw(data.cast::<Box<dyn FnOnce() + Send>>()) };
            f();
        }
        let boxed: Box<Box<dyn FnOnce() + Send>> = Box::new(Box::new(f));
        let code =
            unsafe { (self.cuLaunchHostFunc)(stream, Some(call), Box::into_raw(boxed).cast()) };
        assert_eq!(code.0, OK);
    }

    /// Holds the stream until the latch is released or dropped.
    pub fn latch(&self, stream: CUstream) -> Latch {
        let (release, held): (SyncSender<()>, Receiver<()>) = sync_channel(1);
        let (begin, begun) = sync_channel(1);
        self.host(stream, move || {
            let _ = begin.send(());
            let _ = held.recv();
        });
        Latch { release: Some(release), begun }
    }
}

pub struct Latch {
    release: Option<SyncSender<()>>,
    begun: Receiver<()>,
}

impl Latch {
    /// Waits until the stream is at the latch.
    pub fn reached(&self) {
        self.begun.recv().expect("the latch runs");
    }

    pub fn release(mut self) {
        self.release.take();
    }
}
