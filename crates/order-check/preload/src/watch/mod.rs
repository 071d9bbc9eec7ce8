//! What each hooked call means: the calls of the feed, and what these need to know of the driver.
//!
//! No lock is held while a real function runs, as it may wait for a function of the program that
//! makes calls itself. So two calls that overlap may come to the feed in either order; of two calls
//! that the program has ordered the earlier one comes first. What gives a number back, such as a
//! free, comes to the feed before the real call, as another thread may get the number at once.

use core::ffi::{CStr, c_uint, c_void};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::fs::OpenOptions;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use crate::names::{base, edited, is_like_a_hooked_one};
use crate::thunks;
use cuda_order_check::feed::{Awaited, Creator, Feed, Memory, Semaphore};
use cuda_order_check::{
    Access, AccessKind, Call as Made, Cell, Compare, ContextId, EventId, Finding, GraphId, Options,
    StreamId, StreamKind, Stride, ThreadId,
};

pub(crate) mod copies;
pub(crate) mod events;
pub(crate) mod graphs;
pub(crate) mod guard;
pub(crate) mod hosts;
pub(crate) mod kernels;
mod later;
pub(crate) mod memory;
mod nodes;
mod objects;
mod output;
mod pinned;
pub(crate) mod streams;
#[cfg(test)]
mod tests;
mod trace;
pub(crate) mod values;

use crate::pinned::faults::Inside;
use crate::pinned::table::{self, readable};
use crate::settings::{Kind, Settings};
use graphs::Node;
pub(crate) use graphs::NodePlace;
use hosts::Host;
use kernels::{KERNELS, Kernel};
use later::Waiting;
use memory::Owner;
use objects::Objects;
use output::{Output, Word};
use pinned::Pinned;
use trace::{NUMBER, TRACE, Trace, note};

pub(crate) use copies::{BatchCopy, Block, Copy2D, Copy3D};
pub(crate) use hosts::{HostParams, NodeParams};
pub(crate) use kernels::LaunchConfig;
pub(crate) use nodes::{KernelParams, OldKernelParams, SetParams};
pub use output::{pop_region, push_region};
pub use pinned::watch_host;
pub(crate) use trace::{Argument, run};
pub(crate) use values::Value;

type Code = c_uint;
type Handle = usize;
type Address = u64;
/// A host function of the program.
pub(crate) type Function = Option<unsafe extern "C" fn(*mut c_void)>;

const OK: Code = 0;
const NOT_READY: Code = 600;
/// `CU_STREAM_NON_BLOCKING`.
const NON_BLOCKING: c_uint = 1;
/// `CU_EVENT_RECORD_EXTERNAL` and `CU_EVENT_WAIT_EXTERNAL`.
const EXTERNAL: c_uint = 1;
/// How many values are looked at, at most, that the host may see.
const PENDING: usize = 64;

/// A hooked call.
pub(crate) struct Call {
    pub(crate) name: &'static str,
    /// Whether NULL means the per-thread default stream.
    pub(crate) per_thread: bool,
}

impl Call {
    /// The thread that a default stream belongs to; 0 for the legacy one.
    fn thread_of_default(&self, stream: Handle) -> u64 {
        if stream == 2 || stream == 0 && self.per_thread { thread() } else { 0 }
    }
}

/// How many threads have made calls.
static THREADS: AtomicU64 = AtomicU64::new(0);

fn threads() -> u64 {
    THREADS.load(Ordering::Relaxed)
}

pub(crate) fn thread() -> u64 {
    thread_local!(static NUMBER: u64 = THREADS.fetch_add(1, Ordering::Relaxed) + 1);
    NUMBER.try_with(|number| *number).unwrap_or(0)
}

/// The threads that have ended since the last call.
static ENDED: Mutex<Vec<u64>> = Mutex::new(Vec::new());
static HAVE_ENDED: AtomicBool = AtomicBool::new(false);

/// The calling thread is known from now on, and its end will be noted. It is noted after the
/// destructors of all variables of the thread, which may make calls.
fn note_end() {
    /// Its value in a thread is the thread's number.
    static KEY: OnceLock<Option<libc::pthread_key_t>> = OnceLock::new();
    extern "C" fn ended(number: *mut c_void) {
        if !guard::off() {
            let mut all = ENDED.lock().unwrap_or_else(PoisonError::into_inner);
            all.push(number.addr() as u64);
            HAVE_ENDED.store(true, Ordering::Release);
        }
    }
    let key = KEY.get_or_init(|| {
        let mut key = 0;
        // SAFETY: a place for the key, and a function of this library, which nothing unloads.
        (unsafe { libc::pthread_key_create(&mut key, Some(ended)) } == 0).then_some(key)
    });
    if let Some(key) = key {
        // SAFETY: a key that was made.
        unsafe {
            libc::pthread_setspecific(*key, core::ptr::without_provenance(thread() as usize))
        };
    }
}

/// A few bytes that a stream will write where the host can see them.
struct Pending {
    place: u64,
    cell: Cell,
    /// What is there before.
    old: u64,
    /// The entry that protects the page of a flag from stores of the host.
    page: Option<usize>,
    /// The stream's work up to the value.
    work: Option<Awaited>,
}

#[derive(Clone, Copy)]
struct Questions {
    current: Option<unsafe extern "C" fn(*mut Handle) -> Code>,
    device: Option<unsafe extern "C" fn(*mut i32) -> Code>,
    attribute: Option<unsafe extern "C" fn(*mut c_void, c_uint, Address) -> Code>,
    range: Option<RangeOf>,
    array: Option<copies::ArrayOf>,
    stream_context: Option<unsafe extern "C" fn(Handle, *mut Handle) -> Code>,
    stream_flags: Option<unsafe extern "C" fn(Handle, *mut c_uint) -> Code>,
    /// The parameters of a `CUkernel` and of a `CUfunction`, and their names.
    parameters: [Option<ParamInfo>; 2],
    names: [Option<NameOf>; 2],
}

type NameOf = unsafe extern "C" fn(*mut *const core::ffi::c_char, Handle) -> Code;

type ParamInfo = unsafe extern "C" fn(Handle, usize, *mut usize, *mut usize) -> Code;

/// How many waits for external semaphores are remembered.
const OUTSIDE: usize = 1024;

/// What the summary counts.
#[derive(Clone, Copy, Default)]
struct Seen {
    kernels: u64,
    /// With memsets.
    copies: u64,
    /// Launches of graphs.
    graphs: u64,
    /// Those of graphs whose nodes are not all modelled.
    unknown: u64,
    /// Copies of arrays whose elements have an unknown size.
    formats: u64,
    /// Nodes of graphs that allocate memory.
    allocating: u64,
    /// Graphs that kernels may launch.
    launchable: u64,
    /// Nodes that kernels may change.
    changeable: u64,
}

struct Watch {
    feed: Feed<Output>,
    questions: Questions,
    calls: u64,
    seen: Seen,
    place: u64,
    /// The default streams, by context and thread (0: the legacy one).
    defaults: BTreeMap<(Handle, u64), StreamId>,
    contexts: BTreeMap<Handle, i32>,
    /// The bytes of memory whose free waits, and its device.
    devices: HashMap<Address, (usize, Option<i32>)>,
    /// The memory of modules, libraries and graphics resources.
    owned: BTreeMap<Address, Owner>,
    /// The modules of libraries, each with its library and its context.
    modules: HashMap<Handle, (Handle, Handle)>,
    pending: Vec<Pending>,
    /// The nodes of captures, by their numbers, and of graphs.
    captured: HashMap<u64, Vec<Node>>,
    graphs: HashMap<Handle, Vec<Node>>,
    /// The executable graphs whose nodes the driver was asked for.
    built: HashMap<Handle, Vec<nodes::Flat>>,
    /// Captures of whose nodes only some are known here: into graphs that have nodes already, or of
    /// calls that are not modelled.
    partial: HashSet<u64>,
    /// The place of all external semaphores, whose value is never written.
    outside: Semaphore,
    /// The calls that wait for one, since the last signal.
    outside_waits: Vec<u64>,
    /// Green contexts, each with its device and the contexts that stand for it.
    greens: HashMap<Handle, (i32, Vec<Handle>)>,
    keeper: hosts::Keeper,
    /// The streams that calls have created.
    streams: BTreeSet<Handle>,
    /// Nodes that were changed or destroyed.
    changed: HashSet<Handle>,
    graph_questions: nodes::Questions,
    /// The user objects of graphs.
    objects: HashMap<Handle, BTreeSet<u64>>,
    /// How often code was unloaded: handles of kernels may be those of others since.
    unloads: u64,
    /// What is known of kernels' parameters.
    kernels: HashMap<Handle, Kernel>,
    /// How many there may be before those of unloaded code are forgotten.
    most_kernels: usize,
    /// The names of kernels and of their words. They are never freed, as reports may last.
    names: HashSet<&'static str>,
    waiting: Waiting,
    /// The contexts and kernels that were loaded.
    loaded: HashSet<(Handle, Handle)>,
    /// The numbers of user objects.
    numbers: HashMap<Handle, u64>,
    pinned: Pinned,
    /// Those that were destroyed, and those that are waited for.
    in_use: Objects,
    /// Whether the summary was written.
    ended: bool,
}

static WATCH: Mutex<Option<Watch>> = Mutex::new(None);

static AT_FIRST_CALL: OnceLock<fn()> = OnceLock::new();

/// Sets what a process does at its first call.
pub(crate) fn at_first_call(does: fn()) {
    let _ = AT_FIRST_CALL.set(does);
}

pub(crate) fn start(resolve: &dyn Fn(&CStr) -> *mut c_void, settings: &Settings) {
    let parameters = [c"cuKernelGetParamInfo", c"cuFuncGetParamInfo"];
    let names = [c"cuKernelGetName", c"cuFuncGetName"];
    // SAFETY: NULL, or the driver's functions of these names.
    let questions = unsafe {
        Questions {
            current: core::mem::transmute::<*mut c_void, Option<_>>(resolve(c"cuCtxGetCurrent")),
            device: core::mem::transmute::<*mut c_void, Option<_>>(resolve(c"cuCtxGetDevice")),
            attribute: core::mem::transmute::<*mut c_void, Option<_>>(resolve(
                c"cuPointerGetAttribute",
            )),
            stream_context: core::mem::transmute::<*mut c_void, Option<_>>(resolve(
                c"cuStreamGetCtx",
            )),
            stream_flags: core::mem::transmute::<*mut c_void, Option<_>>(resolve(
                c"cuStreamGetFlags",
            )),
            range: core::mem::transmute::<*mut c_void, Option<RangeOf>>(resolve(
                c"cuMemGetAddressRange_v2",
            )),
            array: core::mem::transmute::<*mut c_void, Option<copies::ArrayOf>>(resolve(
                c"cuArray3DGetDescriptor_v2",
            )),
            names: names
                .map(|name| core::mem::transmute::<*mut c_void, Option<NameOf>>(resolve(name))),
            parameters: parameters
                .map(|name| core::mem::transmute::<*mut c_void, Option<ParamInfo>>(resolve(name))),
        }
    };
    let open = |path: &String| {
        let path = path.replace("%p", &std::process::id().to_string());
        let file = OpenOptions::new().create(true).append(true).open(&path);
        output::open(&path, "there is no trace", file)
    };
    if let Some(file) = settings.trace.as_ref().and_then(open) {
        let counts = Mutex::new(HashMap::new());
        let _ = TRACE.set(Trace { file, begin: Instant::now(), counts });
    }
    let output = Output::new(settings);
    guard::start();
    let mut watch = WATCH.lock().unwrap_or_else(PoisonError::into_inner);
    *watch = Some(Watch {
        feed: Feed::new(Options::default(), output),
        questions,
        calls: 0,
        seen: Seen::default(),
        place: 0,
        defaults: BTreeMap::new(),
        contexts: BTreeMap::new(),
        devices: HashMap::new(),
        owned: BTreeMap::new(),
        modules: HashMap::new(),
        pending: Vec::new(),
        captured: HashMap::new(),
        graphs: HashMap::new(),
        built: HashMap::new(),
        partial: HashSet::new(),
        outside: Semaphore::new(false),
        outside_waits: Vec::new(),
        greens: HashMap::new(),
        keeper: hosts::Keeper::new(resolve),
        streams: BTreeSet::new(),
        changed: HashSet::new(),
        graph_questions: nodes::Questions::new(resolve),
        objects: HashMap::new(),
        numbers: HashMap::new(),
        unloads: 0,
        kernels: HashMap::new(),
        most_kernels: KERNELS,
        names: HashSet::new(),
        waiting: Waiting::default(),
        loaded: HashSet::new(),
        pinned: Pinned::new(),
        in_use: Objects::default(),
        ended: false,
    });
}

/// The findings since the last call.
pub fn take_findings() -> Vec<Finding> {
    with(|watch| watch.feed.observer_mut().take()).unwrap_or_default()
}

/// Reports what was held back until the end, and writes how much was seen, and what was not.
pub fn summary() {
    if guard::off() && guard::error().is_none() {
        return;
    }
    let Some(mut watch) = lock_at_end() else { return };
    let Some(watch) = &mut *watch else { return };
    if std::mem::replace(&mut watch.ended, true) {
        return;
    }
    if let Some(error) = guard::error() {
        let text = format!("order check: off since an error inside the checker: {error}");
        watch.feed.observer_mut().findings.note(&text);
        return;
    }
    let _inside = Inside::new();
    guard::own(|| sum_up(watch));
}

/// What waits for the next call comes to the checker, unless another thread makes calls just now.
pub(crate) fn catch_up() {
    let _inside = Inside::new();
    let work = || WATCH.try_lock().ok()?.as_mut().map(Watch::catch_up);
    guard::own(work);
}

/// The lock, also after an error. A thread that ends the process, or that goes on, may have it.
fn lock_at_end() -> Option<MutexGuard<'static, Option<Watch>>> {
    for _ in 0..5000 {
        match WATCH.try_lock() {
            Ok(watch) => return Some(watch),
            Err(TryLockError::Poisoned(of)) => return Some(of.into_inner()),
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
    None
}

fn sum_up(watch: &mut Watch) {
    watch.submit_waiting();
    let of_host = watch.pinned.lines();
    watch.stop_watching();
    let unlisted = crate::hooks::unlisted();
    let words = watch.kernels.values().flat_map(Kernel::judged);
    watch.feed.observer_mut().decide(words);
    let (calls, seen) = (watch.calls, watch.seen);
    let findings = &mut watch.feed.observer_mut().findings;
    // A program that only looks for a driver has none.
    if calls > 0 {
        findings.summary(&[
            ("kernels", seen.kernels),
            ("copies", seen.copies),
            ("graphs", seen.graphs),
            ("threads", threads()),
        ]);
    }
    of_host.iter().for_each(|line| findings.note(&format!("order check: {line}")));
    for name in unlisted {
        let like = match is_like_a_hooked_one(&name) {
            true => ", though others of its name are modelled",
            false => "",
        };
        findings.note(&format!("order check: not in the list of functions: {name}{like}"));
    }
    for (name, calls) in thunks::called() {
        let text = "not modelled, so each call counts as ordering everything";
        findings.note(&format!("order check: {text}: {name} {calls} times"));
    }
    for (count, one, what) in [
        (seen.unknown, "launch", "launches of graphs"),
        (seen.formats, "copy", "batches of copies of arrays whose format is unknown"),
    ] {
        let text = format!("not modelled, so each {one} counts as ordering everything");
        if count > 0 {
            findings.note(&format!("order check: {text}: {count} {what}"));
        }
    }
    for (count, what) in [
        (seen.launchable, "graphs may be launched by kernels; such launches are not seen"),
        (
            seen.changeable,
            "nodes of graphs may be changed by kernels; their accesses are not known",
        ),
        (
            seen.allocating,
            "nodes of graphs allocate memory; kernels with its addresses are not seen",
        ),
    ] {
        if count > 0 {
            findings.note(&format!("order check: {count} {what}"));
        }
    }
    let mut tables = 0;
    if let Some(of) = COUNTED.get() {
        of(&mut |name, calls| {
            tables += if name == "cuGetExportTable" { calls } else { 0 };
        });
    }
    if tables > 0 {
        let text = "tables of functions without names were asked for";
        findings.note(&format!("order check: {tables} {text}; calls through them are not seen"));
    }
}

/// The graphics resources of a call that unmaps them.
fn unmapped(arguments: &[Handle; 6]) -> Vec<Handle> {
    let (count, first) = (arguments[0] as u32, arguments[1]);
    let first: *const Handle = core::ptr::with_exposed_provenance(first);
    let count = if first.is_null() { 0 } else { count as usize };
    // SAFETY: the program's list, of so many.
    (0..count).map(|at| unsafe { first.add(at).read() }).collect()
}

/// Whether a call adds a node that allocates memory.
fn allocates(name: &str, arguments: &[Handle; 6]) -> bool {
    /// `CU_GRAPH_NODE_TYPE_MEM_ALLOC`, with which the description of a node begins.
    const ALLOCATES: c_uint = 10;
    let of = match (name, base(name)) {
        (_, "cuGraphAddMemAllocNode") => return true,
        ("cuGraphAddNode", _) => arguments[4],
        (_, "cuGraphAddNode") => arguments[5],
        _ => 0,
    };
    // SAFETY: NULL or the program's description.
    unsafe { read(core::ptr::with_exposed_provenance::<c_uint>(of)) == ALLOCATES }
}

/// A call comes of which only the name is known: it may order anything, or change a graph.
pub(crate) fn unmodelled(name: &'static str, arguments: &[Handle; 6]) {
    if name.starts_with("cuGraph") && name.contains("Launch") {
        hosts::unseen();
    }
    begin(&Call { name, per_thread: false }, |watch| match edited(name) {
        Some(what) => {
            watch.seen.allocating += u64::from(allocates(name, arguments));
            watch.edited(what, arguments);
        }
        None => {
            watch.order_everything();
            watch.note_captures();
            match base(name) {
                "cuWaitExternalSemaphoresAsync" => watch.wait_outside(name, arguments[3]),
                "cuSignalExternalSemaphoresAsync" => watch.signal_outside(),
                "cuModuleUnload" | "cuLibraryUnload" => {
                    watch.owner_ends(arguments[0]);
                    watch.unloaded();
                }
                "cuDevicePrimaryCtxReset" | "cuDevicePrimaryCtxRelease" => {
                    memory::may_end();
                    watch.unloaded();
                }
                "cuGraphicsUnmapResources" => {
                    unmapped(arguments).into_iter().for_each(|of| watch.owner_ends(of));
                }
                _ => {}
            }
        }
    });
}

/// Reports an access that no driver sees: of work in a stream, or of the host.
pub fn declare(
    name: &'static str,
    stream: Option<Handle>,
    address: Address,
    bytes: u64,
    write: bool,
) {
    let access = if write { Access::write } else { Access::read }(address, bytes);
    let call = Call { name, per_thread: false };
    begin(&call, |watch| match stream {
        Some(stream) => {
            let stream = watch.stream(&call, stream);
            watch.feed.work(stream, &[access]);
            if write {
                watch.node(stream, Node::Work);
            }
        }
        None => watch.feed.host(&[access]),
    });
}

/// Reports name the stream so.
pub fn name_stream(stream: Handle, name: &str) {
    let call = Call { name: "cuda_order_check_name_stream", per_thread: false };
    begin(&call, |watch| {
        let stream = watch.stream(&call, stream);
        watch.feed.stream_name(stream, name);
    });
}

/// Gives each function that is not hooked, and how often it was called.
type Counted = fn(&mut dyn FnMut(&'static str, u64));

static COUNTED: OnceLock<Counted> = OnceLock::new();

/// Sets what counts the calls of functions that are not hooked.
pub fn count_by(counted: Counted) {
    let _ = COUNTED.set(counted);
}

fn with<R>(f: impl FnOnce(&mut Watch) -> R) -> Option<R> {
    enter(|watch| {
        watch.catch_up();
        let result = f(watch);
        watch.settle();
        result
    })
}

/// What waits for the next call still waits.
fn enter<R>(f: impl FnOnce(&mut Watch) -> R) -> Option<R> {
    let _inside = Inside::new();
    // A panic has poisoned the lock, and has left the rest as it was then.
    guard::own(|| WATCH.lock().ok()?.as_mut().map(f)).flatten()
}

/// A call begins.
fn begin<R>(call: &Call, f: impl FnOnce(&mut Watch) -> R) -> Option<R> {
    with(|watch| {
        watch.begin(call);
        f(watch)
    })
}

/// The real call, and what it means if it succeeds.
fn after(call: &Call, real: impl FnOnce() -> Code, f: impl FnOnce(&mut Watch)) -> Code {
    let code = real();
    if code == OK {
        begin(call, f);
    }
    code
}

/// What is marked before the real call, and what a success means.
fn around<B>(
    call: &Call,
    before: impl FnOnce(&mut Watch) -> B,
    real: impl FnOnce() -> Code,
    f: impl FnOnce(&mut Watch, B),
) -> Code {
    let begun: Option<(Made, B)> = begin(call, |watch| {
        let before = before(watch);
        (watch.feed.caller(), before)
    });
    let code = real();
    if let (OK, Some((caller, before))) = (code, begun) {
        with(|watch| {
            watch.feed.resume(caller);
            // The program may store other values before its next call.
            watch.look();
            f(watch, before);
        });
    }
    code
}

/// What a call has written to a place of the program.
///
/// # Safety
///
/// The place must be NULL or hold a value.
unsafe fn read<T: Copy + Default>(place: *const T) -> T {
    // SAFETY: as the caller says.
    if place.is_null() { T::default() } else { unsafe { place.read() } }
}

/// So many bytes of memory that the host can read, at most eight.
fn load(cell: Cell) -> u64 {
    let aligned = cell.address.is_multiple_of(u64::from(cell.bytes));
    let address = cell.address as usize;
    // SAFETY: the callers ask for pinned memory that is not freed, or for memory that the program
    // gives to the call under way. Others may write it, hence the atomics.
    unsafe {
        match cell.bytes {
            4 if aligned => {
                let word = core::ptr::with_exposed_provenance_mut(address);
                u64::from(AtomicU32::from_ptr(word).load(Ordering::Acquire))
            }
            8 if aligned => {
                let word = core::ptr::with_exposed_provenance_mut(address);
                AtomicU64::from_ptr(word).load(Ordering::Acquire)
            }
            count => {
                let first: *const u8 = core::ptr::with_exposed_provenance(address);
                let byte = |at: usize| match at < usize::from(count) {
                    true => first.add(at).read_volatile(),
                    false => 0,
                };
                u64::from_le_bytes(core::array::from_fn(byte))
            }
        }
    }
}

impl Watch {
    /// Before the next call: what waits for it.
    fn catch_up(&mut self) {
        self.submit_waiting();
        self.facts();
    }

    /// A call has its number.
    fn numbered(&mut self, name: &'static str) {
        self.calls += 1;
        let _ = NUMBER.try_with(|number| number.set(self.calls));
        self.feed.observer_mut().begins(name);
        guard::planted(name);
    }

    /// A call begins.
    fn begin(&mut self, call: &Call) {
        if self.calls == 0 {
            // Not at the load: a child of a fork that comes before has its own files.
            self.feed.observer_mut().open();
            AT_FIRST_CALL.get().into_iter().for_each(|does| does());
        }
        let unseen = guard::take_unseen();
        self.numbered(call.name);
        self.look();
        if !self.feed.has_begun(ThreadId(thread())) {
            note_end();
        }
        self.feed.begin(call.name, self.calls, None);
        if HAVE_ENDED.swap(false, Ordering::Acquire) {
            self.threads_ended();
        }
        if unseen > 0 {
            self.order_everything();
        }
        if memory::may_have_ended() {
            self.forget_ended();
        }
    }

    /// The default streams of threads end with them. Their work goes on.
    fn threads_ended(&mut self) {
        let ended = match ENDED.try_lock() {
            Ok(mut all) => std::mem::take(&mut *all),
            Err(TryLockError::Poisoned(of)) => std::mem::take(&mut *of.into_inner()),
            // This call may be one of a signal handler that has interrupted the end of a thread.
            Err(TryLockError::WouldBlock) => return HAVE_ENDED.store(true, Ordering::Release),
        };
        let mut streams = Vec::new();
        self.defaults.retain(|(_, thread), stream| {
            let ends = ended.contains(thread);
            streams.extend(ends.then_some(*stream));
            !ends
        });
        streams.into_iter().for_each(|stream| self.feed.stream_destroy(stream));
        ended.into_iter().for_each(|thread| self.feed.thread_ended(ThreadId(thread)));
    }

    /// A call was not seen, or nothing is known of what it does.
    fn order_everything(&mut self) {
        self.feed.barrier();
        self.stop_looking();
    }

    /// A call may have added a node to any capture.
    fn note_captures(&mut self) {
        let streams = self.streams.iter().map(|of| StreamId(*of as u64));
        let all = streams.chain(self.defaults.values().copied());
        self.partial.extend(all.filter_map(|stream| self.feed.capture_of(stream)));
    }

    /// A stream waits for an external semaphore. What signals it may come after work that is
    /// submitted later. So the wait is over when the host has waited for it, or after everything
    /// that comes before the next signal.
    fn wait_outside(&mut self, name: &'static str, stream: Handle) {
        let stream = self.stream(&Call { name, per_thread: name.ends_with("_ptsz") }, stream);
        if self.feed.capture_of(stream).is_none() {
            if self.outside_waits.len() == OUTSIDE {
                self.signal_outside();
            }
            self.feed.wait_value(stream, self.outside.cell(), 1, Compare::Equal);
            self.outside_waits.push(self.feed.caller().number);
        }
    }

    /// A stream signals an external semaphore: other APIs may go on, and signal others.
    fn signal_outside(&mut self) {
        for call in std::mem::take(&mut self.outside_waits) {
            self.feed.wait_ended(self.outside.cell(), call);
        }
    }

    /// Memory may end: what is pending there counts as seen.
    fn stop_looking(&mut self) {
        std::mem::take(&mut self.pending).into_iter().for_each(|of| self.has_seen(of));
    }

    /// The host may have seen the value, and nothing more is to be seen there.
    fn has_seen(&mut self, Pending { place, page, .. }: Pending) {
        page.into_iter().for_each(table::remove);
        self.feed.written(place, true);
    }

    fn current(&mut self) -> (Handle, i32) {
        let (mut context, mut device) = (0, 0);
        if let (Some(current), Some(of)) = (self.questions.current, self.questions.device) {
            // SAFETY: places for the answers.
            unsafe { (current(&mut context), of(&mut device)) };
        }
        self.contexts.insert(context, device);
        (context, device)
    }

    /// A stream that was seen before.
    fn known_stream(&self, call: &Call, stream: Handle) -> Option<StreamId> {
        if stream > 2 {
            return self.streams.contains(&stream).then_some(StreamId(stream as u64));
        }
        self.defaults.get(&(self.context(), call.thread_of_default(stream))).copied()
    }

    /// The current context.
    fn context(&self) -> Handle {
        let mut context = 0;
        if let Some(current) = self.questions.current {
            // SAFETY: a place for the answer.
            unsafe { current(&mut context) };
        }
        context
    }

    fn stream(&mut self, call: &Call, stream: Handle) -> StreamId {
        if let Some(stream) = self.known_stream(call, stream) {
            return stream;
        }
        if stream > 2 {
            self.found(stream);
            return StreamId(stream as u64);
        }
        let thread = call.thread_of_default(stream);
        let per_thread = thread != 0;
        let (context, device) = self.current();
        // Not the number of those that are left: a context that ends takes its own away.
        let stream = StreamId((1 << 61) + self.new_place());
        self.defaults.insert((context, thread), stream);
        let (kind, creator) = match per_thread {
            true => (StreamKind::Blocking, Creator::PerThread),
            false => (StreamKind::Legacy, Creator::Driver),
        };
        self.feed.stream_create(stream, (ContextId(context as u64), device), kind, creator);
        stream
    }

    /// A stream that no call has created, as far as this library has seen.
    fn found(&mut self, stream: Handle) {
        let (mut context, mut flags) = (0, 0);
        let Questions { stream_context, stream_flags, .. } = self.questions;
        // SAFETY: a stream that the driver has just accepted, and places for the answers.
        unsafe {
            stream_context.map(|ask| ask(stream, &mut context));
            stream_flags.map(|ask| ask(stream, &mut flags));
        }
        let (current, device) = self.current();
        let context = if context == 0 { current } else { context };
        let device = *self.contexts.entry(context).or_insert(device);
        self.created(stream, (context, device), flags);
    }

    fn created(&mut self, stream: Handle, (context, device): (Handle, i32), flags: c_uint) {
        self.in_use.created(stream);
        self.streams.insert(stream);
        let kind = match flags & NON_BLOCKING {
            0 => StreamKind::Blocking,
            _ => StreamKind::NonBlocking,
        };
        let context = (ContextId(context as u64), device);
        self.feed.stream_create(StreamId(stream as u64), context, kind, Creator::Call);
    }

    /// The contexts whose work a wait for a context waits for: a green one has those that stand for
    /// it, and the work of these is in another one of their device.
    fn contexts_of(&mut self, context: Handle) -> Vec<ContextId> {
        if let Some((_, contexts)) = self.greens.get(&context) {
            return contexts.iter().chain([&context]).map(|of| ContextId(*of as u64)).collect();
        }
        let current = self.current();
        let context = if context == 0 { current.0 } else { context };
        match self.contexts.get(&context) {
            Some(device) if !self.greens.is_empty() => self.all_contexts(Some(*device)),
            _ => vec![ContextId(context as u64)],
        }
    }

    /// An operation is a node, if the stream is captured.
    fn node(&mut self, stream: StreamId, node: Node) {
        if let Some(capture) = self.feed.capture_of(stream) {
            self.captured.entry(capture).or_default().push(node);
        }
    }

    fn new_place(&mut self) -> u64 {
        self.place += 1;
        self.place
    }

    /// Code was unloaded: its kernels' handles may be those of others.
    fn unloaded(&mut self) {
        self.unloads += 1;
        self.loaded.clear();
    }

    /// Values that streams have written meanwhile: the host may have seen them.
    fn look(&mut self) {
        self.look_before(false);
    }

    /// The same, or before accesses are judged that were too early.
    fn look_before(&mut self, judged: bool) {
        let pending = std::mem::take(&mut self.pending);
        for of in pending {
            let Pending { cell, old, page, .. } = of;
            let spent = page.and_then(table::spent);
            let early = spent.as_ref().is_some_and(|of| of.early && judged);
            let now = match spent.as_ref().and_then(|of| of.found) {
                // What comes after the access does not matter.
                Some(found) if found != old || early => found,
                // The host has not read what it must not read.
                _ if readable(cell.address as usize) => load(cell),
                _ => old,
            };
            // If the page was open, the host may have set the flag back.
            if now == old && (spent.is_none() || early) {
                self.pending.push(of);
                continue;
            }
            self.has_seen(of);
            if now != old
                && cell.address.is_multiple_of(u64::from(cell.bytes))
                && matches!(cell.bytes, 4 | 8)
            {
                self.feed.word_written(cell, now);
            }
        }
    }

    /// A word will be written, where the host may have stored a value.
    fn find_stored(&mut self, address: Address, bytes: u64) {
        if matches!(bytes, 4 | 8) && address.is_multiple_of(bytes) {
            let cell = Cell { address, bytes: bytes as u8 };
            self.feed.find_stored(cell, || load(cell));
        }
    }

    /// A few bytes will be written that the host can see: what is there now.
    fn before_write(&self, address: Address, bytes: u64) -> Option<(Cell, u64)> {
        let visible = matches!(self.feed.memory(address), Some(Memory::Host | Memory::Managed));
        let cell = Cell { address, bytes: u8::try_from(bytes).ok().filter(|it| *it <= 8)? };
        visible.then(|| (cell, load(cell)))
    }

    /// The place of a write that is looked for. Others have none: if other processes see them, they
    /// may have seen them at any time.
    fn place_of(&mut self, stream: StreamId, before: Option<(Cell, u64)>) -> Option<u64> {
        let (cell, old) = before.filter(|_| self.feed.capture_of(stream).is_none())?;
        let place = self.new_place();
        self.look_for(Pending { place, cell, old, page: None, work: None });
        Some(place)
    }

    fn look_for(&mut self, of: Pending) {
        if self.pending.len() >= PENDING {
            let oldest = self.pending.remove(0);
            self.has_seen(oldest);
        }
        self.pending.push(of);
    }

    /// The memory ends: nobody looks there any longer. What is pending counts as seen.
    fn forget(&mut self, address: Address) -> Option<(usize, Option<i32>)> {
        let (bytes, device) = self.devices.remove(&address)?;
        let range = address..address.saturating_add(bytes as u64);
        let gone = self.pending.extract_if(.., |of| range.contains(&of.cell.address));
        gone.collect::<Vec<_>>().into_iter().for_each(|of| self.has_seen(of));
        Some((bytes, device))
    }

    fn all_contexts(&self, device: Option<i32>) -> Vec<ContextId> {
        let of = |at: &i32| device.is_none_or(|device| *at == device);
        let all = self.contexts.iter().filter(|(_, at)| of(at));
        all.map(|(context, _)| ContextId(*context as u64)).collect()
    }

    fn allocated(&mut self, address: Address, bytes: usize, memory: Memory) {
        self.replaced(address, bytes);
        let (_, device) = self.current();
        let device = (memory != Memory::Host).then_some(device);
        self.devices.insert(address, (bytes, device));
        self.feed.allocate(address, bytes as u64, memory);
    }
}

#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Bytes([u8; 64]);

type RangeOf = unsafe extern "C" fn(*mut Address, *mut usize, Address) -> Code;
