//! Some driver calls, held and written down whichever thread makes them; so it is with the
//! poller's.
//!
//! There is one poller in a process, and one hook: the tests that use this take turns.

use std::ffi::c_void;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};
use std::thread::{self, ThreadId};
use std::time::Duration;

use cuda_events::sys::{
    CUdevice, CUdeviceptr, CUevent, CUresult, CUstream, CUstreamCaptureMode, Function,
};
use cuda_events::{Context, Device, Driver, Event, EventFlags, EventRef, Stream};

use crate::Gpu;

use crate::futures::PATIENCE;
use crate::table;

/// Before a call (None) or after it, with what it answered. What is returned before a call is
/// answered in its place.
type Hook = dyn Fn(Function, usize, Option<CUresult>) -> Option<CUresult> + Send + Sync;

static REAL: RwLock<Option<Driver>> = RwLock::new(None);
static HOOK: RwLock<Option<Arc<Hook>>> = RwLock::new(None);

fn call(function: Function, argument: usize, real: impl FnOnce(Driver) -> CUresult) -> CUresult {
    let driver =
        REAL.read().unwrap_or_else(PoisonError::into_inner).expect("a hooked driver was made");
    let hook = HOOK.read().unwrap_or_else(PoisonError::into_inner).clone();
    let Some(hook) = hook else { return real(driver) };
    if let Some(code) = hook(function, argument, None) {
        return code;
    }
    let code = real(driver);
    hook(function, argument, Some(code));
    code
}

macro_rules! hooked {
    ($($name:ident($argument:ident: $type:ty) $number:expr;)*) => {
        fn hooked(function: Function) -> Option<*mut c_void> {
            $({
                unsafe extern "C" fn entry($argument: $type) -> CUresult {
                    call(Function::$name, $number, |driver| {
                        // SAFETY: the caller's argument, passed on.
                        unsafe { (driver.symbols().$name)($argument) }
                    })
                }
                if function == Function::$name {
                    return Some(entry as unsafe extern "C" fn($type) -> CUresult as *mut c_void);
                }
            })*
            None
        }
    };
}

hooked! {
    cuEventQuery(event: CUevent) event as usize;
    cuEventDestroy_v2(event: CUevent) event as usize;
    cuDevicePrimaryCtxRelease_v2(device: CUdevice) usize::try_from(device).expect("an ordinal");
    cuThreadExchangeStreamCaptureMode(mode: *mut CUstreamCaptureMode) mode as usize;
}

unsafe extern "C" fn write_value(
    stream: CUstream,
    address: CUdeviceptr,
    value: u64,
    flags: u32,
) -> CUresult {
    call(Function::cuStreamWriteValue64_v2, value as usize, |driver| {
        let write = driver.symbols().cuStreamWriteValue64_v2.expect("only its callers are hooked");
        // SAFETY: the caller's arguments, passed on.
        unsafe { write(stream, address, value, flags) }
    })
}

/// The hook of an entry point, of which `driver` has the function.
fn hook_of(driver: Driver, function: Function) -> Option<*mut c_void> {
    if function == Function::cuStreamWriteValue64_v2 {
        return driver.symbols().cuStreamWriteValue64_v2.map(|_| write_value as *mut c_void);
    }
    hooked(function)
}

/// One call that was made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Made {
    pub function: Function,
    pub argument: usize,
    pub thread: ThreadId,
    pub by_the_poller: bool,
}

/// A hook that writes down all calls, and holds the poller in a query of one event.
#[derive(Default)]
pub struct Calls {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
pub struct State {
    pub made: Vec<Made>,
    /// The event whose queries by the poller are held, and for how long at the most.
    held: Option<(usize, Duration)>,
    /// An event whose queries by others than the poller say that it is pending.
    pub pretended: Option<usize>,
    /// The event in whose query the poller is held, or was: until that query has returned.
    inside: Option<usize>,
}

impl Calls {
    pub fn new() -> Arc<Self> {
        let calls = Arc::new(Self::default());
        let hook = Arc::clone(&calls);
        hook_in(move |function, argument, answer| {
            if answer.is_none() {
                hook.before(function, argument)
            } else {
                hook.after(function, argument)
            }
        });
        calls
    }

    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic")
    }

    fn before(&self, function: Function, argument: usize) -> Option<CUresult> {
        let by_the_poller = on_the_poller();
        let mut state = self.lock();
        state.made.push(Made { function, argument, thread: thread::current().id(), by_the_poller });
        if function != Function::cuEventQuery {
            return None;
        }
        if !by_the_poller {
            return (state.pretended == Some(argument)).then_some(CUresult::CUDA_ERROR_NOT_READY);
        }
        let is_held = |state: &State| state.held.is_some_and(|(event, _)| event == argument);
        if let Some((_, most)) = state.held.filter(|_| is_held(&state)) {
            state.inside = Some(argument);
            self.changed.notify_all();
            drop(
                self.changed
                    .wait_timeout_while(state, most, |state| is_held(state))
                    .expect("no panic"),
            );
        }
        None
    }

    fn after(&self, function: Function, argument: usize) -> Option<CUresult> {
        let mut state = self.lock();
        if function == Function::cuEventQuery && on_the_poller() && state.inside == Some(argument) {
            state.inside = None;
            self.changed.notify_all();
        }
        None
    }

    /// Holds the poller in each query of this event, for so long at the most, and waits until it is
    /// in one.
    pub fn hold(&self, event: usize, most: Duration) {
        let mut state = self.lock();
        state.held = Some((event, most));
        let waited =
            self.changed.wait_timeout_while(state, PATIENCE, |state| state.inside.is_none());
        assert!(!waited.expect("no panic").1.timed_out(), "the poller does not ask");
    }

    pub fn release(&self) {
        self.lock().held = None;
        self.changed.notify_all();
    }

    /// Waits until the poller is not in a query that was held.
    pub fn wait_outside(&self) {
        let waited =
            self.changed.wait_timeout_while(self.lock(), PATIENCE, |state| state.inside.is_some());
        assert!(!waited.expect("no panic").1.timed_out(), "the query does not end");
    }

    /// How often the poller has asked for an event.
    pub fn asked(&self, event: usize) -> usize {
        let is_it = |made: &&Made| {
            made.by_the_poller && (made.function, made.argument) == (Function::cuEventQuery, event)
        };
        self.lock().made.iter().filter(is_it).count()
    }

    /// What was destroyed and released, in order, and by which thread.
    pub fn gone(&self) -> Vec<Made> {
        let is_end = |made: &&Made| {
            matches!(
                made.function,
                Function::cuEventDestroy_v2 | Function::cuDevicePrimaryCtxRelease_v2
            )
        };
        self.lock().made.iter().filter(is_end).copied().collect()
    }
}

pub fn on_the_poller() -> bool {
    thread::current().name() == Some("cuda-events")
}

pub fn hook_in(
    hook: impl Fn(Function, usize, Option<CUresult>) -> Option<CUresult> + Send + Sync + 'static,
) {
    *HOOK.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(hook));
}

pub fn unhook() {
    *HOOK.write().unwrap_or_else(PoisonError::into_inner) = None;
}

/// A device of a driver with the hook.
pub struct Hooked {
    // Above what holds the driver.
    pub context: Context,
    pub gpu: Gpu,
    _turn: MutexGuard<'static, ()>,
}

impl Hooked {
    pub fn new() -> Self {
        static TURN: Mutex<()> = Mutex::new(());
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        unhook();
        let gpu = Gpu::new();
        *REAL.write().unwrap_or_else(PoisonError::into_inner) = Some(gpu.driver);
        let driver = table::replaced(gpu.driver, |function| hook_of(gpu.driver, function));
        let context =
            Device::new(driver, 0).and_then(Context::primary).expect("the primary context");
        Self { context, gpu, _turn: turn }
    }

    pub fn record(&self, stream: &Stream) -> Event {
        let event = Event::new(&self.context, EventFlags::empty()).expect("an event");
        event.record(stream).expect("a record");
        event
    }
}

impl Drop for Hooked {
    fn drop(&mut self) {
        unhook();
    }
}

pub fn handle(event: &EventRef) -> usize {
    event.as_raw() as usize
}
