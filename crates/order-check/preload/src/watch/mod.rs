//! What each hooked call means: the calls of the feed, and what these need to know of the driver.
//!
//! No lock is held while a real function runs, as it may wait for a function of the program that
//! makes calls itself. So two calls that overlap may come to the feed in either order; of two calls
//! that the program has ordered the earlier one comes first. What gives a number back, such as a
//! free, comes to the feed before the real call, as another thread may get the number at once.
//! Questions to the driver are asked with the lock, so what the driver itself calls does not wait
//! for it.

use core::ffi::{CStr, c_char, c_uint, c_void};
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
mod driver;
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
mod summary;
#[cfg(test)]
mod tests;
mod threads;
mod trace;
mod underway;
mod unmodelled;
pub(crate) mod values;

use crate::pinned::faults::Inside;
use crate::pinned::table::{self, readable};
use crate::settings::{Kind, Settings};
use driver::{NameOf, ParamInfo, of_driver};
use graphs::Node;
use hosts::Host;
use kernels::{KERNELS, Kernel};
use later::Waiting;
use memory::Allocation;
use objects::Objects;
use output::{Output, Word};
use pinned::Pinned;
use summary::{COUNTED, Seen};
use threads::{note_end, threads};
use trace::{NUMBER, TRACE, Trace, note};
use underway::{UnderWay, Visible, around_seen};
use values::{Pending, load};

pub(crate) use copies::{BatchCopy, Block, Copy2D, Copy3D};
pub(crate) use graphs::NodePlace;
pub(crate) use hosts::{HostParams, NodeParams};
pub(crate) use kernels::LaunchConfig;
pub(crate) use nodes::{KernelParams, OldKernelParams, SetParams};
pub use output::{pop_region, push_region};
pub use pinned::watch_host;
pub use summary::{count_by, summary};
pub(crate) use threads::thread;
pub(crate) use trace::{Argument, run};
pub(crate) use unmodelled::unmodelled;
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

of_driver! {
    Questions {
        current: c"cuCtxGetCurrent" (*mut Handle),
        device: c"cuCtxGetDevice" (*mut i32),
        attribute: c"cuPointerGetAttribute" (*mut c_void, c_uint, Address),
        range: c"cuMemGetAddressRange_v2" (*mut Address, *mut usize, Address),
        array: c"cuArray3DGetDescriptor_v2" (*mut copies::Array, Handle),
        stream_context: c"cuStreamGetCtx" (Handle, *mut Handle),
        stream_flags: c"cuStreamGetFlags" (Handle, *mut c_uint),
        kernel_name: c"cuKernelGetName" (*mut *const c_char, Handle),
        function_name: c"cuFuncGetName" (*mut *const c_char, Handle),
        kernel_parameter: c"cuKernelGetParamInfo" (Handle, usize, *mut usize, *mut usize),
        function_parameter: c"cuFuncGetParamInfo" (Handle, usize, *mut usize, *mut usize),
    }
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
    /// Memory that is not allocated in stream order.
    devices: BTreeMap<Address, Allocation>,
    /// The objects of memory that ends with them: the module, library or graphics resource that the
    /// program has asked, and the library that it is a module of, or the same.
    owned: BTreeMap<Address, [Handle; 2]>,
    /// A primary context may have ended, and the driver has not said yet what is left.
    may_be_gone: bool,
    /// The modules of libraries, each with its library and its context.
    modules: HashMap<Handle, (Handle, Handle)>,
    pending: Vec<Pending>,
    /// The nodes of captures, by their numbers, of the graphs that were captured, and of executable
    /// graphs.
    captured: HashMap<u64, Vec<Node>>,
    graphs: HashMap<Handle, Vec<Node>>,
    execs: HashMap<Handle, Vec<Node>>,
    /// The executable graphs whose nodes the driver was asked for.
    built: HashMap<Handle, graphs::Built>,
    /// How often the checker was given the nodes of one: a measure of time.
    defined: u64,
    under_way: Vec<UnderWay>,
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
    /// Nodes that were changed.
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
    cuda_order_check::trace::demangle_with(kernels::demangled);
    let mut watch = WATCH.lock().unwrap_or_else(PoisonError::into_inner);
    *watch = Some(Watch {
        feed: Feed::new(Options::new().unseen_writers(true), output),
        questions: Questions::new(resolve),
        calls: 0,
        seen: Seen::default(),
        place: 0,
        defaults: BTreeMap::new(),
        contexts: BTreeMap::new(),
        devices: BTreeMap::new(),
        owned: BTreeMap::new(),
        may_be_gone: false,
        modules: HashMap::new(),
        pending: Vec::new(),
        captured: HashMap::new(),
        graphs: HashMap::new(),
        execs: HashMap::new(),
        built: HashMap::new(),
        defined: 0,
        under_way: Vec::new(),
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

/// What waits for the next call comes to the checker, unless another thread makes calls just now.
pub(crate) fn catch_up() {
    let _inside = Inside::new();
    let work = || WATCH.try_lock().ok()?.as_mut().map(Watch::catch_up);
    guard::own(work);
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

impl Watch {
    /// Before the next call: what waits for it.
    fn catch_up(&mut self) {
        self.submit_waiting();
        self.hear();
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
        self.threads_ended();
        if unseen > 0 {
            self.order_everything();
        }
        if self.may_be_gone {
            self.forget_gone();
        }
    }

    /// A call was not seen, or nothing is known of what it does.
    fn order_everything(&mut self) {
        self.feed.barrier();
        self.stop_looking();
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

    /// The current context.
    fn context(&self) -> Handle {
        let mut context = 0;
        if let Some(current) = self.questions.current {
            // SAFETY: a place for the answer.
            unsafe { current(&mut context) };
        }
        context
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

    /// The memory ends: nobody looks there any longer. What is pending counts as seen, or can be
    /// seen no longer.
    fn forget(&mut self, address: Address, seen: bool) -> Option<Allocation> {
        let of = self.devices.remove(&address)?;
        let range = address..address.saturating_add(of.bytes as u64);
        let gone = self.pending.extract_if(.., |of| range.contains(&of.cell.address));
        gone.collect::<Vec<_>>().into_iter().for_each(|of| self.ends_looking(of, seen));
        Some(of)
    }

    fn all_contexts(&self, device: Option<i32>) -> Vec<ContextId> {
        let of = |at: &i32| device.is_none_or(|device| *at == device);
        let all = self.contexts.iter().filter(|(_, at)| of(at));
        all.map(|(context, _)| ContextId(*context as u64)).collect()
    }

    fn allocated(&mut self, address: Address, bytes: usize, memory: Memory) {
        self.replaced(address, bytes);
        let (context, _) = self.current();
        self.devices.insert(address, Allocation { bytes, context });
        self.feed.allocate(address, bytes as u64, memory);
    }
}

#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Bytes([u8; 64]);
