//! What the tests share: the driver under test, latches that hold a stream, and what
//! `cuda-test-harness` has: child processes, and the choice of the driver by
//! `CUDA_EVENTS_TEST_DRIVER`. With the software driver in the process,
//! `CUDA_EVENTS_TEST_VERSION=11.0` makes it of that version of CUDA.
//!
//! What is process-wide makes a test need a process of its own: forks, the pool (which looks at all
//! captures), the poller, the count of host functions, the places for observers and for software
//! drivers, the processor time. See [`own_process`].

#![allow(clippy::macro_metavars_in_unsafe, reason = "the arguments of a call are a test's own")]
#![allow(clippy::new_without_default, reason = "what tests set up is not a default of anything")]
#![allow(
    clippy::not_unsafe_ptr_arg_deref,
    reason = "tests hand handles on, and know that they are good"
)]

pub mod allocations;
pub mod counting;
#[cfg(unix)]
pub mod fork;
pub mod futures;
#[cfg(any(target_os = "linux", windows))]
pub mod handover;
pub mod hooked;
pub mod planted;
pub mod pools;
pub mod raw;
pub mod rows;
pub mod table;
#[cfg(target_os = "linux")]
pub mod threads;
pub mod timelines;
pub mod trap;
#[cfg(target_os = "linux")]
pub mod victims;

use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cuda_events::capture::{Capture, CaptureMode};
use cuda_events::graph::{Graph, GraphNode};
use cuda_events::sys::{CUresult, Function};
use cuda_events::{
    Context, Device, Driver, Error, LoadOptions, Stream, StreamOptions, StreamRef, Version,
};
use cuda_soft_driver::{Builder, OrderCheck, SoftDriver, Time};

pub use cuda_test_harness::TestDriver;
#[cfg(any(target_os = "linux", windows))]
pub use cuda_test_harness::memory;
pub use cuda_test_harness::{
    NOT_RUN, beside, cases, child, named_library, own_process, say_not_run, shared_library,
    soft_settings, watch,
};

/// Loads one library, or says why it is none. Tests name the software driver, files that do not
/// exist, and libraries that may be opened and export nothing that is called.
pub fn load_from(path: impl AsRef<Path>) -> Result<Driver, Error> {
    // SAFETY: as above.
    unsafe { Driver::load_from(path) }
}

/// Options with one library, of which the same is true.
pub fn options_of(path: impl Into<PathBuf>) -> LoadOptions {
    with_path(LoadOptions::new(), path)
}

fn with_path(options: LoadOptions, path: impl Into<PathBuf>) -> LoadOptions {
    // SAFETY: as for `load_from`.
    unsafe { options.path(path) }
}

/// A driver that is too old: see its package.
pub fn fake_library() -> PathBuf {
    beside("cuda_events_fake_library", "cuda-events-fake-library")
}

/// A driver for one test, with the primary context of its first device.
pub struct Gpu {
    pub context: Context,
    pub device: Device,
    pub driver: Driver,
    // After everything above, so that it looks for leaks when all is dropped.
    soft: Option<SoftDriver>,
    _alone: Option<MutexGuard<'static, ()>>,
}

impl Gpu {
    pub fn new() -> Self {
        Self::with_options(&LoadOptions::new())
    }

    /// Where the driver has what a test needs: see [`needs`].
    #[track_caller]
    pub fn with(function: Function) -> Option<Self> {
        let gpu = Self::new();
        needs(gpu.driver, function).then_some(gpu)
    }

    /// `options` without a path.
    pub fn with_options(options: &LoadOptions) -> Self {
        Self::set_up(options, |builder| builder)
    }

    /// As `new`; the clock of the software driver in the process stands still until the test moves
    /// it.
    pub fn with_virtual_time() -> Self {
        Self::set_up(&LoadOptions::new(), |builder| builder.time(Time::Virtual))
    }

    fn set_up(options: &LoadOptions, set_up: impl FnOnce(Builder) -> Builder) -> Self {
        // The software driver in the process is made anew for each test. A loaded library is one
        // for all, with one legacy default stream and one thread for host functions: its tests take
        // turns.
        static TURN: Mutex<()> = Mutex::new(());
        let alone = (TestDriver::chosen() != TestDriver::Soft)
            .then(|| TURN.lock().unwrap_or_else(PoisonError::into_inner));
        let (driver, soft) = load_with(options, set_up);
        let device = Device::new(driver, 0).expect("device 0");
        let context = Context::primary(device).expect("the primary context");
        Self { context, device, driver, soft, _alone: alone }
    }

    pub fn stream(&self) -> Stream {
        Stream::new(&self.context, StreamOptions::new()).expect("a stream")
    }

    /// The in-process software driver, where that is what the test runs on.
    pub fn soft(&self) -> Option<&SoftDriver> {
        self.soft.as_ref()
    }
}

/// Another context of the same device, current nowhere. What is made in it goes before it: dropping
/// it destroys it.
pub struct Other(ManuallyDrop<Context>);

impl Other {
    pub fn new(gpu: &Gpu) -> Self {
        let symbols = gpu.driver.symbols();
        let (mut raw, mut popped) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: places for the handles, and a device that is there; creating the context has made
        // it current.
        unsafe {
            check(
                Function::cuCtxCreate_v2,
                (symbols.cuCtxCreate_v2)(&mut raw, 0, gpu.device.as_raw()),
            );
            check(Function::cuCtxPopCurrent_v2, (symbols.cuCtxPopCurrent_v2)(&mut popped));
        }
        assert_eq!(popped, raw);
        // SAFETY: it lives as long as this does.
        Self(ManuallyDrop::new(
            unsafe { Context::from_raw(gpu.driver, raw) }.expect("its device is known"),
        ))
    }
}

impl std::ops::Deref for Other {
    type Target = Context;

    fn deref(&self) -> &Context {
        &self.0
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let (destroy, raw) = (self.0.driver().symbols().cuCtxDestroy_v2, self.0.as_raw());
        // SAFETY: this is the destructor. What the context has made for itself goes before it.
        unsafe { ManuallyDrop::drop(&mut self.0) };
        // SAFETY: it was created above, and nothing uses it any more.
        check(Function::cuCtxDestroy_v2, unsafe { destroy(raw) });
    }
}

/// Loads the chosen driver, without using a device.
pub fn load(options: &LoadOptions) -> (Driver, Option<SoftDriver>) {
    load_with(options, |builder| builder)
}

fn load_with(
    options: &LoadOptions,
    set_up: impl FnOnce(Builder) -> Builder,
) -> (Driver, Option<SoftDriver>) {
    watch::alive();
    match TestDriver::chosen() {
        TestDriver::Soft => {
            let soft = set_up(soft_driver()).build();
            // SAFETY: the software driver has the driver's ABI, and its functions are part of this
            // program.
            let driver = unsafe { Driver::from_resolver(&mut |name| soft.resolve(name), options) };
            (driver.expect("the software driver resolves"), Some(soft))
        }
        TestDriver::Shared => {
            let driver = Driver::load_with(&with_path(options.clone(), shared_library()));
            (driver.expect("the shared software driver loads"), None)
        }
        TestDriver::Native => {
            let options = match named_library() {
                Some(path) => &with_path(options.clone(), path),
                None => options,
            };
            (Driver::load_with(options).expect("this machine has an NVIDIA driver"), None)
        }
    }
}

/// The order checker's errors and then its warnings, as it writes them.
pub fn order_texts(soft: &SoftDriver) -> Vec<String> {
    let errors = soft.order_findings().into_iter().map(|error| format!("error: {error}"));
    let warnings = soft.order_warnings().into_iter().map(|warning| format!("warning: {warning}"));
    errors.chain(warnings).collect()
}

/// With the order checker, where the environment asks for it: that is for every test, except those
/// which plant an error. The gate's step `order` asks.
pub fn ordered(builder: Builder) -> Builder {
    let ambient = std::env::var("CUDA_SOFT_DRIVER").unwrap_or_default();
    match ambient.split(',').find_map(|pair| pair.strip_prefix("order=")) {
        Some("abort") => builder.check_order(OrderCheck::Abort),
        Some("report") => builder.check_order(OrderCheck::Report),
        _ => builder,
    }
}

/// The software driver in the process, of the version that is asked for; in the process of one test
/// with the settings of that.
fn soft_driver() -> Builder {
    let builder = match child::role() {
        Some(_) => Builder::from_text(&soft_settings("")).expect("settings of the software driver"),
        None => SoftDriver::builder(),
    };
    let builder = ordered(builder);
    let Ok(version) = std::env::var("CUDA_EVENTS_TEST_VERSION") else {
        return builder;
    };
    let part = |part: &str| part.parse().ok();
    let parts =
        version.split_once('.').and_then(|(major, minor)| Some((part(major)?, part(minor)?)));
    let Some((major, minor)) = parts else {
        panic!("CUDA_EVENTS_TEST_VERSION is {version:?}; it takes 12.4 and its like")
    };
    builder.version(major, minor)
}

/// Whether the driver has what a test needs. If not, it says so, so that nobody takes the test for
/// done, and the test returns. That the library then refuses is seen by `tests/faults/versions.rs`.
#[track_caller]
pub fn needs(driver: Driver, function: Function) -> bool {
    let since = function.entry_point().version;
    let there = !driver.symbols().address(function).is_null();
    assert_eq!(
        there,
        since <= driver.version(),
        "{function} is of CUDA {since}, the driver of {}",
        driver.version()
    );
    needs_version(driver, since, function.name())
}

/// As [`needs`], for what is of a version and no entry point of its own.
pub fn needs_version(driver: Driver, since: Version, what: &str) -> bool {
    let there = since <= driver.version();
    if !there {
        say_not_run(&format!(
            "it needs {what} of CUDA {since}, and the driver is of {}",
            driver.version()
        ));
    }
    there
}

/// Holds a stream: work behind it does not run until the latch is released or dropped.
pub struct Latch {
    release: Option<SyncSender<()>>,
    begun: Receiver<()>,
}

/// What the latch's function takes over: where it says that it runs, and what it waits for.
type Held = (SyncSender<()>, Receiver<()>);

impl Latch {
    pub fn hold(stream: &StreamRef) -> Self {
        extern "C" fn wait(held: *mut c_void) {
            // SAFETY: the pointer is the box that `hold` leaked for this one call.
            let held = unsafe { Box::from_raw(held.cast::<Held>()) };
            // Without a latch any more, nobody wants to know.
            let _ = held.0.send(());
            // Ends when the latch sends or is dropped.
            let _ = held.1.recv();
        }
        let (release, receiver) = sync_channel(1);
        let (begins, begun) = sync_channel(1);
        let receiver = Box::into_raw(Box::new((begins, receiver)));
        let driver = stream.context().driver();
        // SAFETY: the stream is alive, and the function takes the box over.
        let code = unsafe {
            (driver.symbols().cuLaunchHostFunc)(stream.as_raw(), Some(wait), receiver.cast())
        };
        check(Function::cuLaunchHostFunc, code);
        Self { release: Some(release), begun }
    }

    /// Waits until the stream is at the latch, so that the driver's thread for it runs.
    pub fn reached(&self) {
        self.begun.recv().expect("the latch runs");
    }

    pub fn release(mut self) {
        if let Some(release) = self.release.take() {
            release.send(()).expect("the stream reached its latch or will");
        }
    }
}

/// Work in a stream that waits to be let go, and takes a while from then on.
///
/// It tells a wait that blocks from one that returns at once: right after the one, and only then,
/// the work is done. What blocks is right however slow the machine is.
pub struct SlowWork {
    go: SyncSender<()>,
    done: Arc<AtomicBool>,
}

impl SlowWork {
    pub fn put_into(stream: &StreamRef) -> Self {
        let (go, gone) = sync_channel::<()>(1);
        let done = Arc::new(AtomicBool::new(false));
        let is_over = done.clone();
        let work = move || {
            // Ends when it is let go or dropped.
            let _ = gone.recv();
            let began = Instant::now();
            while began.elapsed() < Duration::from_millis(10) {
                std::hint::spin_loop();
            }
            is_over.store(true, Ordering::SeqCst);
        };
        stream.launch_host_function(work).expect("a host function");
        Self { go, done }
    }

    pub fn let_go(&self) {
        self.go.send(()).expect("the work waits for it, or will");
    }

    pub fn is_done(&self) -> bool {
        self.done.load(Ordering::SeqCst)
    }
}

/// Says that a test, or a part of one, cannot run here. The software driver
/// in the process can do everything, so there it is a failure.
#[track_caller]
pub fn not_run(why: &str) {
    assert_ne!(TestDriver::chosen(), TestDriver::Soft, "{why}");
    say_not_run(why);
}

/// For calls on the raw table.
#[track_caller]
pub fn check(function: Function, code: CUresult) {
    assert_eq!(code, CUresult::CUDA_SUCCESS, "{function} failed with {code}");
}

/// The calling thread's current context, NULL for none.
pub fn current(driver: Driver) -> cuda_events::sys::CUcontext {
    let mut current = std::ptr::null_mut();
    // SAFETY: a place for the handle.
    check(Function::cuCtxGetCurrent, unsafe { (driver.symbols().cuCtxGetCurrent)(&mut current) });
    current
}

/// Begins a capture: no test uses a capturing stream from two threads at a time.
pub fn begin_capture(stream: &StreamRef, mode: CaptureMode) -> cuda_events::Result<Capture<'_>> {
    // SAFETY: as this function says of its callers.
    unsafe { Capture::begin(stream, mode) }
}

/// As `begin_capture`, into a graph.
pub fn begin_capture_to_graph<'a>(
    stream: &'a StreamRef,
    graph: Graph,
    after: &[GraphNode],
    mode: CaptureMode,
) -> cuda_events::Result<Capture<'a>> {
    // SAFETY: as `begin_capture` says of its callers.
    unsafe { Capture::begin_to_graph(stream, graph, after, mode) }
}

/// CRC-32 (ISO-HDLC), bit by bit.
pub fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = crc >> 1 ^ (0xEDB8_8320 & (crc & 1).wrapping_neg());
        }
    }
    !crc
}
