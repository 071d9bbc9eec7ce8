//! What the checked files import from the rest of the crate, in as few lines as they can do with.

use core::ffi::c_void;
use std::sync::atomic::{AtomicBool as Seen, Ordering};

use loom::cell::UnsafeCell;

use crate::sync;

/// Tries all orders with no more than four interruptions; how many there were. Nearly all faults
/// show with two.
pub fn run(check: fn()) -> usize {
    let runs = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = std::sync::Arc::clone(&runs);
    let mut all = loom::model::Builder::new();
    all.preemption_bound = Some(all.preemption_bound.unwrap_or(4));
    all.check(move || {
        count.fetch_add(1, Ordering::Relaxed);
        check();
    });
    runs.load(Ordering::Relaxed)
}

/// Something that one thread at a time may use, and that must not be used once it is over.
pub struct Probe {
    cell: UnsafeCell<u64>,
    over: Seen,
    done: sync::AtomicBool,
}

impl Probe {
    /// It is never freed, so that a wrong use of it is seen.
    pub fn new() -> &'static Self {
        Box::leak(Box::new(Self {
            cell: UnsafeCell::new(0),
            over: Seen::new(false),
            done: sync::AtomicBool::new(false),
        }))
    }

    /// It changes: everything that was done with it must happen before this.
    pub fn change(&self) {
        self.cell.with_mut(|value| {
            assert!(!self.over.load(Ordering::Relaxed), "it is over");
            // SAFETY: loom has just looked whether another thread may be here.
            unsafe { *value += 1 };
        });
    }

    /// It is looked at: all changes must happen before this.
    pub fn look(&self) -> u64 {
        assert!(!self.over.load(Ordering::Relaxed), "it is over");
        // SAFETY: as above.
        self.cell.with(|value| unsafe { *value })
    }

    /// The work that it stands for is done.
    pub fn finish(&self) {
        self.done.store(true, Ordering::Relaxed);
    }

    /// Whether it is. Another thread may run before the answer.
    fn is_done(&self) -> bool {
        let done = self.done.load(Ordering::Relaxed);
        assert!(!self.over.load(Ordering::Relaxed), "it is over");
        done
    }

    pub fn end(&self) {
        self.change();
        self.over.store(true, Ordering::Relaxed);
    }
}

// SAFETY: loom finds accesses at a time.
unsafe impl Sync for Probe {}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    ContextDropped,
    Driver { function: sys::Function, code: sys::CUresult },
    ExporterGone,
    ForkedChild { function: sys::Function },
    Init { code: sys::CUresult, library: Option<&'static str> },
    InterprocessPool,
    Poisoned,
    TimingWithInterprocess,
}

impl Error {
    pub fn code(&self) -> Option<sys::CUresult> {
        match self {
            Self::Driver { code, .. } => Some(*code),
            _ => None,
        }
    }
}

pub type Result<T> = core::result::Result<T, Error>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    Done,
    Pending,
}

pub mod error {
    pub use super::{Error, Result};

    /// What the driver logged is read without any shared state.
    pub mod log {
        use super::super::sys::{CUresult, Function};

        pub fn note(_: super::super::Symbols, _: Function, _: CUresult) {}
    }
}

#[allow(non_camel_case_types)]
pub mod sys {
    pub type CUevent = *mut core::ffi::c_void;

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct CUresult(pub u32);

    impl CUresult {
        pub const CUDA_SUCCESS: Self = Self(0);
    }

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Function {
        cuEventCreate,
        cuEventQuery,
        cuInit,
    }
}

pub mod capture_count {
    pub fn under_way() -> bool {
        false
    }
}

pub mod capture {
    use super::{Driver, Result};

    pub enum CaptureMode {
        Relaxed,
    }

    pub struct ThreadCaptureMode;

    impl ThreadCaptureMode {
        pub fn exchange(_: Driver, _: CaptureMode) -> Result<Self> {
            Ok(Self)
        }
    }
}

/// The driver's table, as far as initialising it goes.
pub struct Instance {
    pub initialised: sync::AtomicBool,
}

/// The table of functions, which nothing here looks into.
pub struct Symbols;

#[derive(Clone, Copy)]
pub struct Driver(pub &'static Instance);

impl Driver {
    pub fn new() -> Self {
        let initialised = sync::AtomicBool::new(false);
        Self(Box::leak(Box::new(Instance { initialised })))
    }

    pub fn file(&self) -> Option<&'static str> {
        None
    }

    pub fn symbols(&self) -> Symbols {
        Symbols
    }
}

impl PartialEq for Driver {
    fn eq(&self, other: &Self) -> bool {
        core::ptr::eq(self.0, other.0)
    }
}

pub mod call {
    use super::Driver;
    use super::sys::{CUresult, Function};

    pub struct Answer {
        pub function: Function,
        pub code: CUresult,
    }

    impl Answer {
        pub fn is_success(&self) -> bool {
            self.code == CUresult::CUDA_SUCCESS
        }
    }

    /// SAFETY: it calls nothing; the files that use it mark it as what may.
    pub unsafe fn succeed(function: Function) -> super::Result<Answer> {
        Ok(Answer { function, code: CUresult::CUDA_SUCCESS })
    }

    macro_rules! call {
        ($driver:expr, $function:ident($($argument:expr),*)) => {
            crate::world::call::succeed(crate::sys::Function::$function)
        };
    }
    pub(crate) use call;
}

/// The fork handler, which is registered once.
pub mod fork {
    use crate::sync::{AtomicBool, Mutex, Ordering, global};

    global! {
        static HANDLER: Mutex<bool> = Mutex::new(false);
    }
    global! {
        static REGISTERED: AtomicBool = AtomicBool::new(false);
    }

    pub fn forked() -> bool {
        false
    }

    pub fn note_initialised() {
        let mut once = HANDLER.lock().unwrap();
        if !core::mem::replace(&mut *once, true) {
            REGISTERED.store(true, Ordering::Relaxed);
        }
    }

    /// What a child that is forked now has.
    pub fn is_registered() -> bool {
        REGISTERED.load(Ordering::Relaxed)
    }
}

#[derive(Clone, Debug)]
pub struct Context;

impl Context {
    pub fn driver(&self) -> Driver {
        unreachable!("no check asks a context for it")
    }

    pub fn as_raw(&self) -> *mut c_void {
        core::ptr::null_mut()
    }
}

pub struct StreamRef;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventFlags(u32);

impl EventFlags {
    pub const TIMING: Self = Self(1);
    pub const INTERPROCESS: Self = Self(4);

    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    pub fn empty() -> Self {
        Self(0)
    }
}

impl core::ops::BitOr for EventFlags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// An event that one at a time records, and that is destroyed once.
pub struct EventRef {
    probe: &'static Probe,
    driver: Option<Driver>,
}

pub struct Event(EventRef);

impl EventRef {
    pub fn record(&self, _: &StreamRef) -> Result<()> {
        self.probe.change();
        Ok(())
    }

    pub fn as_raw(&self) -> sys::CUevent {
        core::ptr::from_ref(self.probe).cast_mut().cast()
    }

    pub fn probe(&self) -> &'static Probe {
        self.probe
    }

    pub fn has_failed(&self) -> bool {
        false
    }

    /// The pool destroys such an event; no check discards one.
    pub fn mark_failed(&self) {}

    pub fn context(&self) -> At {
        At(self.driver.expect("a driver is asked for this event"))
    }
}

/// The context of an event.
pub struct At(Driver);

impl At {
    pub fn driver(&self) -> Driver {
        self.0
    }

    pub fn as_raw(&self) -> *mut c_void {
        core::ptr::null_mut()
    }
}

impl Event {
    pub fn new(_: &Context, _: EventFlags) -> Result<Self> {
        Ok(Self(EventRef { probe: Probe::new(), driver: None }))
    }

    pub fn of(driver: Driver) -> Self {
        Self(EventRef { probe: Probe::new(), driver: Some(driver) })
    }
}

impl core::ops::Deref for Event {
    type Target = EventRef;

    fn deref(&self) -> &EventRef {
        &self.0
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        self.probe.end();
    }
}

pub mod thread {
    #[derive(Default)]
    pub struct Relaxed;

    impl Relaxed {
        pub fn with(&mut self, _: super::Driver) -> super::Result<()> {
            Ok(())
        }
    }

    pub fn contain(code: impl FnOnce()) {
        code();
    }
}

pub mod time {
    pub type Moment = u64;
}

pub mod foundation {
    pub use super::fork::forked as is_forked_child;

    /// No check has an observer.
    pub fn deferring_observers<G>(guard: G) -> Box<G> {
        Box::new(guard)
    }
}

pub mod handle_traits {
    macro_rules! impl_handle_traits {
        ($($ignored:tt)*) => {};
    }
    pub(crate) use impl_handle_traits;
}

pub mod handle {
    use super::{EventRef, Probe, Progress, Result};

    #[derive(Clone, Copy)]
    pub struct EventHandle(&'static Probe);

    impl EventHandle {
        pub fn of(event: &EventRef) -> Self {
            Self(event.probe)
        }

        /// Whether the event's work is done.
        ///
        /// # Safety
        ///
        /// None: probes are never freed. The event may be over: that is what is looked for.
        pub unsafe fn query(self) -> Result<Progress> {
            Ok(if self.0.is_done() { Progress::Done } else { Progress::Pending })
        }
    }
}
