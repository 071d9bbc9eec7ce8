//! What a thread of the calling program carries: its number, and for each machine a context stack.

use core::cell::RefCell;
use core::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::machine::SLOTS;

static NEXT: AtomicU32 = AtomicU32::new(0);
static NAMES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// What one thread has on one machine.
#[derive(Default)]
pub(crate) struct OnMachine {
    /// Which life of the slot this belongs to; another one's is thrown away.
    epoch: u64,
    /// Indices of contexts, the current one last.
    pub(crate) stack: Vec<u32>,
    /// The stream capture mode that `cuThreadExchangeStreamCaptureMode` set.
    pub(crate) capture_mode: u32,
    /// Whether this is the machine's thread that runs host functions.
    pub(crate) in_host_function: bool,
}

struct Thread {
    number: u32,
    machines: [OnMachine; SLOTS],
}

thread_local! {
    static THREAD: RefCell<Thread> = RefCell::new(Thread {
        number: register(),
        machines: Default::default(),
    });
}

fn register() -> u32 {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = std::thread::current().name().map_or_else(|| format!("thread {number}"), str::to_owned);
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    let at = number as usize;
    if names.len() <= at {
        names.resize(at + 1, String::new());
    }
    names[at] = name;
    number
}

/// The number of the calling thread; `u32::MAX` while its thread-local values are being destroyed.
pub(crate) fn number() -> u32 {
    THREAD.try_with(|thread| thread.borrow().number).unwrap_or(u32::MAX)
}

/// The name of a thread by its number.
pub(crate) fn name(number: u32) -> String {
    let names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    names.get(number as usize).cloned().unwrap_or_else(|| "an ending thread".to_owned())
}

/// Runs `f` on what the calling thread has on a machine. A thread that is ending has nothing.
pub(crate) fn with<R>(slot: usize, epoch: u64, f: impl FnOnce(&mut OnMachine) -> R) -> R {
    let mut f = Some(f);
    let done = THREAD.try_with(|thread| {
        let mut thread = thread.borrow_mut();
        let on = &mut thread.machines[slot];
        if on.epoch != epoch {
            *on = OnMachine { epoch, ..OnMachine::default() };
        }
        f.take().map(|f| f(on))
    });
    match (done, f) {
        (Ok(Some(result)), _) => result,
        (_, Some(f)) => f(&mut OnMachine { epoch, ..OnMachine::default() }),
        (_, None) => unreachable!("the closure was either run or kept"),
    }
}

/// Ends the process because the program did what is undefined on a real driver.
#[cold]
pub(crate) fn abort(call: &str, what: &str) -> ! {
    crate::say!("{call}: {what} (thread \"{}\")", name(number()));
    crate::say!("undefined on a real driver, so the process ends here; on_misuse can make it an error");
    std::process::abort();
}
