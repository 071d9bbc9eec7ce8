//! The threads of the calling program: the number and the name of each, and for each machine its
//! context stack.

pub(crate) mod idle;
pub(crate) mod processor_time;

use core::cell::{Cell, RefCell};
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::collections::BTreeMap;
use std::sync::Mutex;

use crate::machine::places::SLOTS;
use crate::sync::lock;

static NEXT: AtomicU32 = AtomicU32::new(0);
static THREADS: Mutex<Threads> = Mutex::new(Threads { all: Vec::new(), names: BTreeMap::new() });
static ENDED: AtomicUsize = AtomicUsize::new(0);

struct Threads {
    /// The threads in the order of their numbers.
    all: Vec<ThreadInfo>,
    /// How many have each name. A driver has threads of its own, so a program with many drivers one
    /// after the other has many of one name.
    names: BTreeMap<String, usize>,
}

#[derive(Default)]
struct ThreadInfo {
    name: String,
    /// As reports name it: with a number, if an earlier thread has the same name.
    label: String,
    ended: bool,
}

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

/// What a thread has on all machines. It is kept apart from the guard that frees it: at the end of
/// the process exit handlers run after the thread's destructors, and the thread's context must
/// still be current then.
type Machines = [RefCell<OnMachine>; SLOTS];

thread_local! {
    static NUMBER: Cell<u32> = const { Cell::new(UNKNOWN) };
    static MACHINES: Cell<Option<&'static Machines>> = const { Cell::new(None) };
    static GUARD: Cell<Option<Guard>> = const { Cell::new(None) };
}

const UNKNOWN: u32 = u32::MAX;

/// Where the system has no variables of threads, but keys, the others may be gone before this one.
struct Guard {
    number: u32,
    machines: &'static Machines,
}

impl Drop for Guard {
    fn drop(&mut self) {
        idle::ends();
        let Self { number, machines } = *self;
        if !is_main(number) {
            let mut threads = lock(&THREADS);
            if let Some(thread) = threads.all.get_mut(number as usize) {
                thread.ended = true;
                ENDED.fetch_add(1, Ordering::Relaxed);
            }
        }
        // With a current context it is kept, in case that this is the end of the process and not
        // just of the thread.
        if machines.iter().all(|on| on.borrow().stack.is_empty()) {
            MACHINES.set(None);
            // SAFETY: the box that `machines` leaked in this thread; nothing else refers to it.
            drop(unsafe { Box::from_raw(core::ptr::from_ref(machines).cast_mut()) });
        }
    }
}

/// Gets the calling thread ready. To note what a thread does at its end takes the loader's lock, and
/// a library's constructor that makes a call has it: so no thread may have a machine's lock then.
pub(crate) fn ready() {
    machines();
}

fn machines() -> &'static Machines {
    MACHINES.get().unwrap_or_else(|| {
        let machines: &'static Machines = Box::leak(Box::default());
        MACHINES.set(Some(machines));
        // The standard library notes it, too, when it is asked for the thread's name.
        if has_variables() {
            let number = number();
            let _ = GUARD.try_with(|guard| guard.set(Some(Guard { number, machines })));
        }
        machines
    })
}

/// Whether the calling thread has its variables still. A destructor of one may make calls, and then
/// the standard library may know no thread any more.
fn has_variables() -> bool {
    GUARD.try_with(|_| ()).is_ok()
}

/// The name that the standard library knows. On Windows the system has the same one, and a question
/// to the library may panic in the destructors of a thread.
fn own_name() -> Option<String> {
    let current = (cfg!(not(windows)) && has_variables()).then(std::thread::current)?;
    current.name().map(str::to_owned)
}

/// The name that the system has for the calling thread: in the shared library the standard library
/// knows only of threads that it started there itself.
#[cfg(target_os = "linux")]
fn system_name() -> Option<String> {
    let mut name = [0_u8; 16];
    // SAFETY: room for the 16 bytes that a name has at most, with its terminator.
    let code = unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    let name = core::ffi::CStr::from_bytes_until_nul(&name).ok()?;
    (code == 0 && !name.is_empty()).then(|| name.to_string_lossy().into_owned())
}

#[cfg(windows)]
fn system_name() -> Option<String> {
    use windows_sys::Win32::Foundation::LocalFree;
    use windows_sys::Win32::System::Threading::{GetCurrentThread, GetThreadDescription};
    let mut text = core::ptr::null_mut();
    // SAFETY: the handle is a constant; a place for the text.
    let code = unsafe { GetThreadDescription(GetCurrentThread(), &raw mut text) };
    if code < 0 || text.is_null() {
        return None;
    }
    // SAFETY: on success it is a string that ends in zero.
    let units = (0..).take_while(|at| unsafe { *text.add(*at) } != 0).count();
    // SAFETY: so many units are there.
    let name = String::from_utf16_lossy(unsafe { core::slice::from_raw_parts(text, units) });
    // SAFETY: the system allocated it for this.
    unsafe { LocalFree(text.cast()) };
    (!name.is_empty()).then_some(name)
}

#[cfg(not(any(target_os = "linux", windows)))]
fn system_name() -> Option<String> {
    None
}

/// Whether the process ends with this thread, whose exit handlers still make calls.
#[cfg(target_os = "linux")]
fn is_main(_number: u32) -> bool {
    // SAFETY: they have no preconditions.
    unsafe { libc::getpid() == libc::gettid() }
}

#[cfg(not(target_os = "linux"))]
fn is_main(number: u32) -> bool {
    number == 0
}

fn register() -> u32 {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = own_name().or_else(system_name);
    let name = name.unwrap_or_else(|| format!("thread {number}"));
    let mut threads = lock(&THREADS);
    let at = number as usize;
    if threads.all.len() <= at {
        threads.all.resize_with(at + 1, ThreadInfo::default);
    }
    // A thread without a name of its own has the name of the one that started it.
    let same = threads.names.entry(name.clone()).or_default();
    *same += 1;
    let label = if *same == 1 { name.clone() } else { format!("{name} ({same})") };
    threads.all[at] = ThreadInfo { name, label, ended: false };
    number
}

/// Holds the table of threads, for a fork.
#[cfg(all(unix, not(miri)))]
pub(crate) fn hold() -> impl Sized + 'static {
    lock(&THREADS)
}

/// The number of the calling thread.
pub(crate) fn number() -> u32 {
    match NUMBER.get() {
        UNKNOWN => {
            let number = register();
            NUMBER.set(number);
            number
        }
        number => number,
    }
}

fn info<T>(number: u32, what: impl FnOnce(&ThreadInfo) -> T) -> Option<T> {
    lock(&THREADS).all.get(number as usize).map(what)
}

fn text(number: u32, what: impl FnOnce(&ThreadInfo) -> String) -> String {
    info(number, what).unwrap_or_else(|| "an ending thread".to_owned())
}

/// The name of a thread by its number.
pub(crate) fn name(number: u32) -> String {
    text(number, |thread| thread.name.clone())
}

/// The name of a thread by its number, which no other thread has.
pub(crate) fn label(number: u32) -> String {
    text(number, |thread| thread.label.clone())
}

/// How many threads have ended.
pub(crate) fn ended() -> usize {
    ENDED.load(Ordering::Relaxed)
}

pub(crate) fn has_ended(number: u32) -> bool {
    info(number, |thread| thread.ended).unwrap_or(false)
}

/// Runs `f` on what the calling thread has on a machine.
pub(crate) fn with<R>(slot: usize, epoch: u64, f: impl FnOnce(&mut OnMachine) -> R) -> R {
    let mut on = machines()[slot].borrow_mut();
    if on.epoch != epoch {
        *on = OnMachine { epoch, ..OnMachine::default() };
        idle::uses(slot);
    }
    f(&mut on)
}

/// Ends the process because the program did what is undefined on a real driver.
#[cold]
pub(crate) fn abort(call: &str, what: &str) -> ! {
    end(&format!("{call}: {what} (thread \"{}\")", name(number())));
}

/// Ends the process with this message.
#[cold]
pub(crate) fn end(what: &str) -> ! {
    crate::say!("{what}");
    crate::say!(
        "this is undefined on a real driver, so the process ends here; with misuse=error \
         (Builder::on_misuse) it is an error"
    );
    std::process::abort();
}

#[cfg(test)]
mod tests {
    use super::MACHINES;

    #[test]
    fn a_thread_is_ready_before_it_has_a_lock() {
        let soft = crate::SoftDriver::new();
        let machine = soft.machine();
        let ready = std::thread::spawn(move || {
            let _locked = machine.lock();
            MACHINES.get().is_some()
        });
        assert!(ready.join().expect("it ends"));
    }
}
