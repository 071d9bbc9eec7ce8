//! What each hooked call means: the calls of the feed, and what these need to know of the driver.
//!
//! No lock is held while a real function runs, as it may wait for a function of the program that
//! makes calls itself. So two calls that overlap may come to the feed in either order; of two calls
//! that the program has ordered the earlier one comes first. What gives a number back, such as a
//! free, comes to the feed before the real call, as another thread may get the number at once.

use core::ffi::{CStr, c_uint, c_void};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::cell::{Cell as Local, RefCell};
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use crate::hooks;
use cuda_order_check::feed::{Awaited, Creator, Feed, Memory, Observer};
use cuda_order_check::{
    Access, AccessKind, Call as Made, Cell, Compare, ContextId, EventId, Finding, GraphId, Options,
    StreamId, StreamKind, Stride, ThreadId,
};

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

/// What the function's name says about a side of a copy.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Device,
    Host,
    Any,
}

/// Where a copy reads or writes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Device,
    Pinned,
    Managed,
    /// Ordinary memory of the program.
    Pageable,
}

/// The threads of the process, and where findings go.
struct Output {
    log: Option<File>,
    findings: Vec<Finding>,
    count: u64,
    /// Words within structures that count or not, by the names of the operations that use them.
    words: HashMap<&'static str, Word>,
    /// Findings about words of which it is not known yet whether they count.
    held: Vec<(&'static str, Finding)>,
    /// The pairs of calls that were reported, as a kernel is reported once for all its words.
    reported: HashSet<[String; 2]>,
}

/// Whether a word within a structure counts as an address.
#[derive(Clone, Copy)]
struct Word {
    /// The name of the kernel's launch.
    kernel: &'static str,
    counts: Option<bool>,
}

fn thread() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    thread_local!(static NUMBER: u64 = LAST.fetch_add(1, Ordering::Relaxed) + 1);
    NUMBER.try_with(|number| *number).unwrap_or(0)
}

impl Observer for Output {
    fn thread(&self) -> ThreadId {
        ThreadId(thread())
    }

    fn thread_name(&self, thread: ThreadId) -> String {
        std::thread::current().name().map_or_else(|| thread.0.to_string(), str::to_owned)
    }

    fn finding(&mut self, finding: Finding) {
        let sides = finding.report().map(|report| [&report.first, &report.second]);
        let word = sides.into_iter().flatten().find_map(|side| {
            self.words.get_key_value(&*side.call.name).map(|(name, word)| (*name, word.counts))
        });
        match word {
            Some((name, None)) => self.held.push((name, finding)),
            Some((_, Some(false))) => {}
            Some((_, Some(true))) | None => self.report(finding),
        }
    }
}

impl Output {
    fn report(&mut self, finding: Finding) {
        if let Some(report) = finding.report() {
            let mut pair = [&report.first, &report.second].map(|side| {
                let kernel = self.words.get(&*side.call.name).map(|word| word.kernel);
                let stream = side.agent.stream_id().map_or(0, |stream| stream.0);
                format!("{} {stream:#x} {}", kernel.unwrap_or(&side.call.name), side.agent)
            });
            pair.sort_unstable();
            // Between other calls the checker sees to it.
            if !self.words.is_empty() && !self.reported.insert(pair) {
                return;
            }
        }
        self.count += 1;
        self.write(&finding.to_string());
        self.findings.push(finding);
    }

    /// It is known now which of a kernel's words count.
    fn decide(&mut self, words: impl Iterator<Item = (&'static str, bool)>) {
        for (name, counts) in words {
            if let Some(word) = self.words.get_mut(name) {
                word.counts = Some(counts);
            }
        }
        let held = std::mem::take(&mut self.held);
        for (name, finding) in held {
            match self.words.get(name).and_then(|word| word.counts) {
                None => self.held.push((name, finding)),
                Some(false) => {}
                Some(true) => self.report(finding),
            }
        }
    }

    fn write(&mut self, text: &str) {
        let line = format!("{text}\n");
        let _ = match &mut self.log {
            Some(file) => file.write_all(line.as_bytes()),
            None => std::io::stderr().write_all(line.as_bytes()),
        };
    }
}

/// A few bytes that a stream will write where the host can see them.
struct Pending {
    place: u64,
    cell: Cell,
    /// What is there before.
    old: u64,
}

/// A host function of a stream or a graph.
struct Host {
    function: Function,
    data: Handle,
    /// The places of the executions that are submitted.
    places: Mutex<VecDeque<u64>>,
    /// Whether a graph has it, which may execute it again.
    captured: bool,
}

/// A node of a captured graph, as far as launches ask for it.
#[derive(Clone)]
enum Node {
    Host(Arc<Host>),
    Write(Access),
    WriteValue(Cell, u64),
    WaitValue(Cell),
    /// Work that the host does not poll, and that writes.
    Work,
}

/// What is asked of the driver.
#[derive(Clone, Copy)]
struct Questions {
    current: Option<unsafe extern "C" fn(*mut Handle) -> Code>,
    device: Option<unsafe extern "C" fn(*mut i32) -> Code>,
    attribute: Option<unsafe extern "C" fn(*mut c_void, c_uint, Address) -> Code>,
    range: Option<RangeOf>,
    /// The parameters of a `CUkernel` and of a `CUfunction`, and their names.
    parameters: [Option<ParamInfo>; 2],
    names: [Option<NameOf>; 2],
}

type NameOf = unsafe extern "C" fn(*mut *const core::ffi::c_char, Handle) -> Code;

type ParamInfo = unsafe extern "C" fn(Handle, usize, *mut usize, *mut usize) -> Code;

struct Watch {
    feed: Feed<Output>,
    questions: Questions,
    calls: u64,
    place: u64,
    /// The default streams, by context and thread (0: the legacy one).
    defaults: HashMap<(Handle, u64), StreamId>,
    contexts: BTreeMap<Handle, i32>,
    /// The bytes of memory whose free waits, and its device.
    devices: HashMap<Address, (usize, Option<i32>)>,
    pending: Vec<Pending>,
    /// The nodes of captures, by their numbers, and of graphs.
    captured: HashMap<u64, Vec<Node>>,
    graphs: HashMap<Handle, Vec<Node>>,
    /// The user objects of graphs.
    objects: HashMap<Handle, Vec<u64>>,
    /// What is known of kernels' parameters.
    kernels: HashMap<Handle, Kernel>,
    /// The numbers of user objects.
    numbers: HashMap<Handle, u64>,
}

static WATCH: Mutex<Option<Watch>> = Mutex::new(None);

fn lock() -> MutexGuard<'static, Option<Watch>> {
    WATCH.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn start(
    resolve: &dyn Fn(&CStr) -> *mut c_void,
    log: Option<&str>,
    trace: Option<&str>,
) {
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
            range: core::mem::transmute::<*mut c_void, Option<RangeOf>>(resolve(
                c"cuMemGetAddressRange_v2",
            )),
            names: names
                .map(|name| core::mem::transmute::<*mut c_void, Option<NameOf>>(resolve(name))),
            parameters: parameters
                .map(|name| core::mem::transmute::<*mut c_void, Option<ParamInfo>>(resolve(name))),
        }
    };
    let open = |path: &str| {
        let path = path.replace("%p", &std::process::id().to_string());
        OpenOptions::new().create(true).append(true).open(path).ok()
    };
    let log = log.and_then(open);
    if let Some(file) = trace.and_then(open) {
        let counts = Mutex::new(HashMap::new());
        let _ = TRACE.set(Trace { file, begin: Instant::now(), counts });
    }
    let output = Output {
        log,
        findings: Vec::new(),
        count: 0,
        words: HashMap::new(),
        held: Vec::new(),
        reported: HashSet::new(),
    };
    *lock() = Some(Watch {
        feed: Feed::new(Options::default(), output),
        questions,
        calls: 0,
        place: 0,
        defaults: HashMap::new(),
        contexts: BTreeMap::new(),
        devices: HashMap::new(),
        pending: Vec::new(),
        captured: HashMap::new(),
        graphs: HashMap::new(),
        objects: HashMap::new(),
        numbers: HashMap::new(),
        kernels: HashMap::new(),
    });
}

/// The findings since the last call.
pub fn take_findings() -> Vec<Finding> {
    with(|watch| std::mem::take(&mut watch.feed.observer_mut().findings)).unwrap_or_default()
}

/// Reports what was held back until the end, and writes how much was seen, and what was not.
pub fn summary() {
    let unlisted = hooks::unlisted();
    // A thread that ends the process may have the lock.
    let Ok(mut watch) = WATCH.try_lock() else { return };
    let Some(watch) = &mut *watch else { return };
    let words = watch.kernels.values().flat_map(Kernel::judged);
    watch.feed.observer_mut().decide(words);
    let all = watch.calls;
    let output = watch.feed.observer_mut();
    let count = output.count;
    output.write(&format!("order check: {count} findings in {all} calls"));
    for name in unlisted {
        output.write(&format!("order check: not in the list of functions: {name}"));
    }
    if let Some(of) = COUNTED.get() {
        of(&mut |name, calls| {
            if calls > 0 && matters(name) {
                output.write(&format!("order check: not modelled: {name} {calls} times"));
            }
        });
    }
}

/// Whether a function orders work or touches memory, as far as its name says so.
fn matters(name: &str) -> bool {
    const PARTS: [&str; 14] = [
        "Synchronize",
        "Query",
        "Wait",
        "Record",
        "Memcpy",
        "Memset",
        "MemFree",
        "MemAlloc",
        "Map",
        "Unmap",
        "Launch",
        "Stream",
        "Event",
        "Graph",
    ];
    let asks = ["Get", "IsCapturing", "Occupancy", "ExchangeStreamCaptureMode"]
        .iter()
        .any(|part| name.contains(part));
    !asks && PARTS.iter().any(|part| name.contains(part))
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

thread_local! {
    /// The number of the call under way, for the trace.
    static NUMBER: Local<u64> = const { Local::new(0) };
    /// What a hook adds to its line.
    static NOTE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// A line for each hooked call. Reports give the same numbers of calls.
static TRACE: OnceLock<Trace> = OnceLock::new();

struct Trace {
    file: File,
    begin: Instant,
    /// How often each function that is not hooked had been called at the last line.
    counts: Mutex<HashMap<&'static str, u64>>,
}

impl Trace {
    fn write(&self, line: &str) {
        let mut text = String::new();
        if let Some(of) = COUNTED.get() {
            let mut before = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
            of(&mut |name, count| {
                let last = before.entry(name).or_default();
                if count != *last {
                    let _ = write!(text, " {name} {}", count - *last);
                    *last = count;
                }
            });
        }
        if !text.is_empty() {
            text = format!("not hooked:{text}\n");
        }
        let micros = self.begin.elapsed().as_micros();
        let _ = (&self.file).write_all(format!("{text}{micros} us {line}").as_bytes());
    }
}

/// Gives each function that is not hooked, and how often it was called.
type Counted = fn(&mut dyn FnMut(&'static str, u64));

static COUNTED: OnceLock<Counted> = OnceLock::new();

/// Sets what counts the calls of functions that are not hooked.
pub fn count_by(counted: Counted) {
    let _ = COUNTED.set(counted);
}

/// A hook adds this to the line of its call.
fn note(text: impl FnOnce() -> String) {
    if TRACE.get().is_some() {
        let _ = NOTE.try_with(|note| note.borrow_mut().push_str(&text()));
    }
}

/// An argument in the trace.
pub(crate) trait Argument: Copy {
    /// Its value; `done`: the call has written what it points to.
    fn show(self, done: bool) -> String;
}

macro_rules! arguments {
    ($($ty:ty)*) => {$(
        impl Argument for $ty {
            fn show(self, _: bool) -> String {
                format!("{self:#x}")
            }
        }
    )*};
}

arguments! { u8 u16 u32 u64 usize i32 }

impl<T> Argument for *const T {
    fn show(self, _: bool) -> String {
        format!("{:#x}", self.addr())
    }
}

impl<T: 'static> Argument for *mut T {
    fn show(self, done: bool) -> String {
        let ty = core::any::TypeId::of::<T>();
        let word = [core::any::TypeId::of::<usize>(), core::any::TypeId::of::<u64>()].contains(&ty);
        if word && done && !self.is_null() {
            // SAFETY: the place for a handle or an address, which the call has written.
            return format!("->{:#x}", unsafe { self.cast::<u64>().read_unaligned() });
        }
        format!("{:#x}", self.addr())
    }
}

impl Argument for Bytes {
    fn show(self, _: bool) -> String {
        "...".into()
    }
}

/// A hook runs. Its line goes to the trace, if there is one.
pub(crate) fn traced(
    name: &'static str,
    hook: impl FnOnce() -> Code,
    arguments: impl FnOnce(bool, &mut dyn FnMut(&str, String)),
) -> Code {
    let Some(trace) = TRACE.get() else { return hook() };
    let clear = || {
        let _ = NUMBER.try_with(|number| number.set(0));
        NOTE.try_with(|note| std::mem::take(&mut *note.borrow_mut())).unwrap_or_default()
    };
    clear();
    let code = hook();
    let number = NUMBER.try_with(Local::get).unwrap_or_default();
    let mut line = format!("#{number} thread {} {name}", thread());
    arguments(code == OK, &mut |argument, value| {
        let _ = write!(line, " {argument}={value}");
    });
    let _ = writeln!(line, " = {code}{}", clear());
    trace.write(&line);
    code
}

fn with<R>(f: impl FnOnce(&mut Watch) -> R) -> Option<R> {
    lock().as_mut().map(f)
}

/// A call begins.
fn begin<R>(call: &Call, f: impl FnOnce(&mut Watch) -> R) -> Option<R> {
    with(|watch| {
        watch.calls += 1;
        let _ = NUMBER.try_with(|number| number.set(watch.calls));
        watch.look();
        watch.feed.begin(call.name, watch.calls, None);
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
    fn current(&mut self) -> (Handle, i32) {
        let (mut context, mut device) = (0, 0);
        if let (Some(current), Some(of)) = (self.questions.current, self.questions.device) {
            // SAFETY: places for the answers.
            unsafe { (current(&mut context), of(&mut device)) };
        }
        self.contexts.insert(context, device);
        (context, device)
    }

    fn stream(&mut self, call: &Call, stream: Handle) -> StreamId {
        let per_thread = stream == 2 || stream == 0 && call.per_thread;
        if stream > 2 {
            return StreamId(stream as u64);
        }
        let (context, device) = self.current();
        let key = (context, if per_thread { thread() } else { 0 });
        if let Some(stream) = self.defaults.get(&key) {
            return *stream;
        }
        let stream = StreamId((1 << 61) + self.defaults.len() as u64);
        self.defaults.insert(key, stream);
        let (kind, creator) = match per_thread {
            true => (StreamKind::Blocking, Creator::PerThread),
            false => (StreamKind::Legacy, Creator::Driver),
        };
        self.feed.stream_create(stream, (ContextId(context as u64), device), kind, creator);
        stream
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

    /// Values that streams have written meanwhile: the host may have seen them.
    fn look(&mut self) {
        let pending = std::mem::take(&mut self.pending);
        for Pending { place, cell, old } in pending {
            let now = load(cell);
            if now == old {
                self.pending.push(Pending { place, cell, old });
                continue;
            }
            self.feed.written(place, true);
            if cell.address.is_multiple_of(u64::from(cell.bytes)) && matches!(cell.bytes, 4 | 8) {
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

    /// The place of a write, and that it is looked for.
    fn place_of(&mut self, stream: StreamId, before: Option<(Cell, u64)>) -> Option<u64> {
        let place = self.new_place();
        if let Some((cell, old)) = before
            && self.feed.capture_of(stream).is_none()
        {
            if self.pending.len() >= PENDING {
                let oldest = self.pending.remove(0);
                self.feed.written(oldest.place, true);
            }
            self.pending.push(Pending { place, cell, old });
        }
        Some(place)
    }

    /// The memory ends: nobody looks there any longer. What is pending counts as seen.
    fn forget(&mut self, address: Address) -> Option<(usize, Option<i32>)> {
        let (bytes, device) = self.devices.remove(&address)?;
        let range = address..address.saturating_add(bytes as u64);
        let gone = self.pending.extract_if(.., |of| range.contains(&of.cell.address));
        gone.for_each(|of| self.feed.written(of.place, true));
        Some((bytes, device))
    }

    fn side(&self, side: Side, address: Address) -> Place {
        match (self.feed.memory(address), side) {
            (Some(Memory::Host), _) => Place::Pinned,
            (Some(Memory::Managed), _) => Place::Managed,
            (Some(_), _) | (None, Side::Device) => Place::Device,
            (None, Side::Host) => Place::Pageable,
            (None, Side::Any) => {
                let mut kind: u64 = 0;
                let known = self.questions.attribute.is_some_and(|ask| {
                    // SAFETY: a place for CU_POINTER_ATTRIBUTE_MEMORY_TYPE.
                    OK == unsafe { ask((&raw mut kind).cast(), 2, address) }
                });
                if known { Place::Device } else { Place::Pageable }
            }
        }
    }

    fn all_contexts(&self, device: Option<i32>) -> Vec<ContextId> {
        let of = |at: &i32| device.is_none_or(|device| *at == device);
        let all = self.contexts.iter().filter(|(_, at)| of(at));
        all.map(|(context, _)| ContextId(*context as u64)).collect()
    }

    fn allocated(&mut self, address: Address, bytes: usize, memory: Memory) {
        let (_, device) = self.current();
        let device = (memory != Memory::Host).then_some(device);
        self.devices.insert(address, (bytes, device));
        self.feed.allocate(address, bytes as u64, memory);
    }
}

pub(crate) fn event_create(
    call: &Call,
    real: impl FnOnce() -> Code,
    event: *mut Handle,
    _flags: c_uint,
) -> Code {
    after(call, real, |watch| {
        // SAFETY: the place for the handle, which a success has written.
        watch.feed.event_create(EventId(unsafe { read(event) } as u64), false)
    })
}

pub(crate) fn event_destroy(call: &Call, real: impl FnOnce() -> Code, event: Handle) -> Code {
    begin(call, |watch| watch.feed.event_destroy(EventId(event as u64)));
    real()
}

pub(crate) fn event_record(
    call: &Call,
    real: impl FnOnce() -> Code,
    event: Handle,
    stream: Handle,
) -> Code {
    after(call, real, |watch| {
        let stream = watch.stream(call, stream);
        watch.feed.record(EventId(event as u64), stream);
        // Nobody sees its end: another process may report it from now on.
        watch.feed.record_exported(EventId(event as u64), None);
    })
}

pub(crate) fn event_record_with_flags(
    call: &Call,
    real: impl FnOnce() -> Code,
    event: Handle,
    stream: Handle,
    flags: c_uint,
) -> Code {
    if flags & EXTERNAL == 0 {
        return event_record(call, real, event, stream);
    }
    after(call, real, |watch| {
        let stream = watch.stream(call, stream);
        watch.feed.record_external(EventId(event as u64), stream);
    })
}

pub(crate) fn event_query(call: &Call, real: impl FnOnce() -> Code, event: Handle) -> Code {
    let code = real();
    if code == OK || code == NOT_READY {
        begin(call, |watch| watch.feed.event_query(EventId(event as u64), code == OK));
    }
    code
}

pub(crate) fn event_synchronize(call: &Call, real: impl FnOnce() -> Code, event: Handle) -> Code {
    let before = |watch: &mut Watch| watch.feed.await_event(EventId(event as u64));
    around(call, before, real, |watch, awaited| watch.feed.reached(&awaited))
}

pub(crate) fn event_elapsed(
    call: &Call,
    real: impl FnOnce() -> Code,
    _time: *mut f32,
    start: Handle,
    end: Handle,
) -> Code {
    after(call, real, |watch| {
        watch.feed.event_query(EventId(start as u64), true);
        watch.feed.event_query(EventId(end as u64), true);
    })
}

pub(crate) fn stream_create(
    call: &Call,
    real: impl FnOnce() -> Code,
    stream: *mut Handle,
    flags: c_uint,
) -> Code {
    after(call, real, |watch| {
        // SAFETY: the place for the handle, which a success has written.
        let stream = StreamId(unsafe { read(stream) } as u64);
        let (context, device) = watch.current();
        let kind = match flags & NON_BLOCKING {
            0 => StreamKind::Blocking,
            _ => StreamKind::NonBlocking,
        };
        let context = (ContextId(context as u64), device);
        watch.feed.stream_create(stream, context, kind, Creator::Call);
    })
}

pub(crate) fn stream_create_with_priority(
    call: &Call,
    real: impl FnOnce() -> Code,
    stream: *mut Handle,
    flags: c_uint,
    _priority: i32,
) -> Code {
    stream_create(call, real, stream, flags)
}

pub(crate) fn stream_destroy(call: &Call, real: impl FnOnce() -> Code, stream: Handle) -> Code {
    if stream > 2 {
        begin(call, |watch| watch.feed.stream_destroy(StreamId(stream as u64)));
    }
    real()
}

pub(crate) fn stream_wait_event(
    call: &Call,
    real: impl FnOnce() -> Code,
    stream: Handle,
    event: Handle,
    flags: c_uint,
) -> Code {
    after(call, real, |watch| {
        let stream = watch.stream(call, stream);
        match flags & EXTERNAL {
            0 => watch.feed.wait(stream, EventId(event as u64)),
            _ => watch.feed.wait_external(stream, EventId(event as u64)),
        }
    })
}

pub(crate) fn stream_query(call: &Call, real: impl FnOnce() -> Code, stream: Handle) -> Code {
    let code = real();
    if code == OK || code == NOT_READY {
        begin(call, |watch| {
            let stream = watch.stream(call, stream);
            watch.feed.stream_query(stream, code == OK);
        });
    }
    code
}

fn await_stream(watch: &mut Watch, call: &Call, stream: Handle) -> Awaited {
    let stream = watch.stream(call, stream);
    watch.feed.await_stream(stream)
}

pub(crate) fn stream_synchronize(call: &Call, real: impl FnOnce() -> Code, stream: Handle) -> Code {
    let before = |watch: &mut Watch| await_stream(watch, call, stream);
    around(call, before, real, |watch, awaited| watch.feed.reached(&awaited))
}

pub(crate) fn capture_begin(
    call: &Call,
    real: impl FnOnce() -> Code,
    stream: Handle,
    _mode: c_uint,
) -> Code {
    after(call, real, |watch| {
        let stream = watch.stream(call, stream);
        watch.feed.capture_begin(stream);
    })
}

pub(crate) fn capture_end(
    call: &Call,
    real: impl FnOnce() -> Code,
    stream: Handle,
    graph: *mut Handle,
) -> Code {
    let code = real();
    begin(call, |watch| {
        let stream = watch.stream(call, stream);
        // SAFETY: the place for the handle, which a success has written.
        let graph = (code == OK).then(|| unsafe { read(graph) }).filter(|graph| *graph != 0);
        let nodes = watch.feed.capture_of(stream).and_then(|of| watch.captured.remove(&of));
        watch.feed.capture_end(stream, graph.map(|graph| GraphId(graph as u64)));
        watch.graphs.extend(graph.map(|graph| (graph, nodes.unwrap_or_default())));
    });
    code
}

pub(crate) fn context_synchronize(call: &Call, real: impl FnOnce() -> Code) -> Code {
    let before = |watch: &mut Watch| {
        let (context, _) = watch.current();
        watch.feed.await_contexts(&[ContextId(context as u64)])
    };
    around(call, before, real, |watch, awaited| watch.feed.reached(&awaited))
}

pub(crate) fn context_synchronize_of(
    call: &Call,
    real: impl FnOnce() -> Code,
    context: Handle,
) -> Code {
    let before = |watch: &mut Watch| {
        let context = if context == 0 { watch.current().0 } else { context };
        watch.feed.await_contexts(&[ContextId(context as u64)])
    };
    around(call, before, real, |watch, awaited| watch.feed.reached(&awaited))
}

/// A load may wait for the work before, of any context, and libraries rely on that: it counts as if
/// it did.
fn load_code(call: &Call, real: impl FnOnce() -> Code) -> Code {
    let before = |watch: &mut Watch| watch.feed.await_contexts(&watch.all_contexts(None));
    around(call, before, real, |watch, awaited| watch.feed.reached(&awaited))
}

pub(crate) fn load_module(
    call: &Call,
    real: impl FnOnce() -> Code,
    _module: *mut Handle,
    _code: *const c_void,
) -> Code {
    load_code(call, real)
}

pub(crate) fn load_module_with(
    call: &Call,
    real: impl FnOnce() -> Code,
    _module: *mut Handle,
    _code: *const c_void,
    _count: c_uint,
    _options: *mut c_uint,
    _values: *mut *mut c_void,
) -> Code {
    load_code(call, real)
}

#[allow(clippy::too_many_arguments)]
pub(crate) fn load_library(
    call: &Call,
    real: impl FnOnce() -> Code,
    _library: *mut Handle,
    _code: *const c_void,
    _jit: *mut c_uint,
    _jit_values: *mut *mut c_void,
    _jit_count: c_uint,
    _options: *mut c_uint,
    _values: *mut *mut c_void,
    _count: c_uint,
) -> Code {
    load_code(call, real)
}

pub(crate) fn context_destroy(call: &Call, real: impl FnOnce() -> Code, context: Handle) -> Code {
    begin(call, |watch| {
        watch.feed.context_destroy(ContextId(context as u64));
        watch.contexts.remove(&context);
        watch.defaults.retain(|(of, _), _| *of != context);
    });
    real()
}

/// The collector of a context's record.
const COLLECTOR: StreamId = StreamId((1 << 61) - 1);

pub(crate) fn context_record(
    call: &Call,
    real: impl FnOnce() -> Code,
    context: Handle,
    event: Handle,
) -> Code {
    after(call, real, |watch| {
        let context = if context == 0 { watch.current().0 } else { context };
        let context = [ContextId(context as u64)];
        watch.feed.context_record(&context, EventId(event as u64), COLLECTOR);
    })
}

pub(crate) fn context_wait(
    call: &Call,
    real: impl FnOnce() -> Code,
    context: Handle,
    event: Handle,
) -> Code {
    after(call, real, |watch| {
        let context = if context == 0 { watch.current().0 } else { context };
        watch.feed.context_wait(&[ContextId(context as u64)], EventId(event as u64));
    })
}

fn allocate_as(
    call: &Call,
    real: impl FnOnce() -> Code,
    address: *mut Address,
    bytes: usize,
    memory: Memory,
) -> Code {
    // SAFETY: the place for the address, which a success has written.
    after(call, real, |watch| watch.allocated(unsafe { read(address) }, bytes, memory))
}

pub(crate) fn allocate(
    call: &Call,
    real: impl FnOnce() -> Code,
    address: *mut Address,
    bytes: usize,
) -> Code {
    allocate_as(call, real, address, bytes, Memory::Device)
}

pub(crate) fn allocate_managed(
    call: &Call,
    real: impl FnOnce() -> Code,
    address: *mut Address,
    bytes: usize,
    _flags: c_uint,
) -> Code {
    allocate_as(call, real, address, bytes, Memory::Managed)
}

pub(crate) fn allocate_host(
    call: &Call,
    real: impl FnOnce() -> Code,
    address: *mut Address,
    bytes: usize,
) -> Code {
    allocate_as(call, real, address, bytes, Memory::Host)
}

pub(crate) fn allocate_host_with(
    call: &Call,
    real: impl FnOnce() -> Code,
    address: *mut Address,
    bytes: usize,
    _flags: c_uint,
) -> Code {
    allocate_as(call, real, address, bytes, Memory::Host)
}

pub(crate) fn register(
    call: &Call,
    real: impl FnOnce() -> Code,
    address: Address,
    bytes: usize,
    _flags: c_uint,
) -> Code {
    after(call, real, |watch| watch.allocated(address, bytes, Memory::Host))
}

pub(crate) fn unregister(call: &Call, real: impl FnOnce() -> Code, address: Address) -> Code {
    begin(call, |watch| {
        watch.forget(address);
        watch.feed.unregister(address);
    });
    real()
}

/// A free waits for the work before, of the memory's device or of all devices.
pub(crate) fn free(call: &Call, real: impl FnOnce() -> Code, address: Address) -> Code {
    begin(call, |watch| {
        if let Some((_, device)) = watch.forget(address) {
            let contexts = watch.all_contexts(device);
            let awaited = watch.feed.await_contexts(&contexts);
            watch.feed.reached(&awaited);
        }
        watch.feed.free(address);
    });
    real()
}

pub(crate) fn allocate_async(
    call: &Call,
    real: impl FnOnce() -> Code,
    address: *mut Address,
    bytes: usize,
    stream: Handle,
) -> Code {
    after(call, real, |watch| {
        let stream = watch.stream(call, stream);
        // SAFETY: the place for the address, which a success has written.
        watch.feed.allocate_async(stream, unsafe { read(address) }, bytes as u64);
    })
}

pub(crate) fn allocate_from_pool(
    call: &Call,
    real: impl FnOnce() -> Code,
    address: *mut Address,
    bytes: usize,
    _pool: Handle,
    stream: Handle,
) -> Code {
    allocate_async(call, real, address, bytes, stream)
}

pub(crate) fn free_async(
    call: &Call,
    real: impl FnOnce() -> Code,
    address: Address,
    stream: Handle,
) -> Code {
    begin(call, |watch| {
        let stream = watch.stream(call, stream);
        watch.feed.free_async(stream, address);
    });
    real()
}

/// A copy or a memset that is about to be made.
struct Before {
    stream: StreamId,
    places: [Place; 2],
    flag: Option<(Cell, u64)>,
    content: Option<u64>,
    awaited: Awaited,
}

/// One side of a copy.
#[derive(Clone, Copy)]
pub(crate) struct Block {
    side: Side,
    address: Address,
    pitch: usize,
    slice: usize,
}

impl Block {
    fn at(side: Side, address: Address) -> Self {
        Self { side, address, pitch: 0, slice: 0 }
    }
}

/// The bytes of a row, the rows of a layer, and the layers.
type Extent = [usize; 3];

/// The accesses of a block.
fn rows(block: Block, extent: Extent, access: fn(u64, u64) -> Access) -> Vec<Access> {
    let [width, height, depth] = extent.map(|it| it as u64);
    let (pitch, slice) = (block.pitch as u64, block.slice as u64);
    let layer = |layer: u64| {
        let address = block.address.wrapping_add(layer.wrapping_mul(slice));
        access(address, width).rows(height, Stride { width, pitch: pitch.max(width) })
    };
    (0..depth).map(layer).collect()
}

impl Watch {
    fn before_copy(
        &mut self,
        call: &Call,
        [to, from]: [Block; 2],
        extent: Extent,
        stream: Handle,
    ) -> Before {
        let stream = self.stream(call, stream);
        let places = [to, from].map(|block| self.side(block.side, block.address));
        let bytes = extent.iter().product::<usize>() as u64;
        let one = extent[1..] == [1, 1];
        if one {
            self.find_stored(to.address, bytes);
        }
        let flag = self.before_write(to.address, bytes).filter(|_| one);
        let readable = matches!(places[1], Place::Pinned | Place::Pageable);
        let content = (readable && bytes <= 8 && one)
            .then(|| load(Cell { address: from.address, bytes: bytes as u8 }));
        let awaited = self.feed.await_stream(stream);
        Before { stream, places, flag, content, awaited }
    }

    fn copied(&mut self, before: &Before, [to, from]: [Block; 2], extent: Extent) {
        let Before { stream, places, flag, content, .. } = before;
        let captured = self.feed.capture_of(*stream).is_some();
        let mut all = rows(to, extent, Access::write);
        if !captured {
            if places[1] == Place::Pageable {
                self.feed.pageable(&rows(from, extent, Access::read));
            }
            if places[0] == Place::Pageable {
                self.feed.pageable(&all);
            }
            if let (Some(content), [write]) = (content, &mut all[..]) {
                *write = write.clone().filled(*content);
            }
        }
        if captured || places[1] != Place::Pageable {
            let reads = rows(from, extent, Access::read);
            // In the order of the driver's own checker, as reports name the nearest access.
            let at = if extent[1..] == [1, 1] { 0 } else { all.len() };
            all.splice(at..at, reads);
        }
        self.wrote(*stream, *flag, &all);
    }

    /// A copy or a memset is submitted.
    fn wrote(&mut self, stream: StreamId, flag: Option<(Cell, u64)>, all: &[Access]) {
        let place = self.place_of(stream, flag);
        if let Some(write) = all.iter().find(|access| access.kind == AccessKind::Write) {
            let range = &write.range;
            self.feed.forget_words(range.start, range.end - range.start);
            self.node(stream, Node::Write(write.clone()));
        }
        self.feed.write(stream, place, all);
    }

    fn reached_stream(&mut self, stream: StreamId) {
        let awaited = self.feed.await_stream(stream);
        self.feed.reached(&awaited);
    }
}

fn copy_blocks(
    call: &Call,
    real: impl FnOnce() -> Code,
    blocks: [Block; 2],
    extent: Extent,
    stream: Option<Handle>,
) -> Code {
    if extent.contains(&0) {
        return real();
    }
    let handle = stream.unwrap_or(0);
    let before = |watch: &mut Watch| watch.before_copy(call, blocks, extent, handle);
    around(call, before, real, |watch, before| {
        watch.copied(&before, blocks, extent);
        if watch.feed.capture_of(before.stream).is_some() {
            return;
        }
        let on_host = |place: Place| matches!(place, Place::Pinned | Place::Pageable);
        let waits = before.places[0] == Place::Pageable || before.places.into_iter().all(on_host);
        match before.places {
            _ if waits => watch.reached_stream(before.stream),
            _ if stream.is_some() => {}
            [Place::Device, Place::Device] => {}
            [Place::Device, Place::Pageable] => watch.feed.reached(&before.awaited),
            _ => watch.reached_stream(before.stream),
        }
    })
}

#[allow(clippy::too_many_arguments)]
pub(crate) fn copy_async(
    call: &Call,
    real: impl FnOnce() -> Code,
    to_side: Side,
    from_side: Side,
    to: Address,
    from: Address,
    bytes: usize,
    stream: Handle,
) -> Code {
    let blocks = [Block::at(to_side, to), Block::at(from_side, from)];
    copy_blocks(call, real, blocks, [bytes, 1, 1], Some(stream))
}

pub(crate) fn copy(
    call: &Call,
    real: impl FnOnce() -> Code,
    to_side: Side,
    from_side: Side,
    to: Address,
    from: Address,
    bytes: usize,
) -> Code {
    let blocks = [Block::at(to_side, to), Block::at(from_side, from)];
    copy_blocks(call, real, blocks, [bytes, 1, 1], None)
}

/// A side of `CUDA_MEMCPY2D`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Side2D {
    x: usize,
    y: usize,
    kind: u32,
    host: Handle,
    device: Address,
    array: Handle,
    pitch: usize,
}

/// `CUDA_MEMCPY2D`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Copy2D {
    from: Side2D,
    to: Side2D,
    width: usize,
    height: usize,
}

/// A side of `CUDA_MEMCPY3D`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Side3D {
    x: usize,
    y: usize,
    z: usize,
    lod: usize,
    kind: u32,
    host: Handle,
    device: Address,
    array: Handle,
    reserved: Handle,
    pitch: usize,
    height: usize,
}

/// `CUDA_MEMCPY3D`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Copy3D {
    from: Side3D,
    to: Side3D,
    extent: Extent,
}

const _: () = assert!(size_of::<Copy2D>() == 128 && size_of::<Copy3D>() == 200);

impl From<Copy2D> for Copy3D {
    fn from(copy: Copy2D) -> Self {
        let side = |Side2D { x, y, kind, host, device, array, pitch }: Side2D| Side3D {
            x,
            y,
            kind,
            host,
            device,
            array,
            pitch,
            ..Side3D::default()
        };
        Self { from: side(copy.from), to: side(copy.to), extent: [copy.width, copy.height, 1] }
    }
}

impl Side3D {
    /// Where it is; nowhere for an array.
    fn block(&self) -> Block {
        let (side, address) = match self.kind {
            1 => (Side::Host, self.host as u64),
            2 => (Side::Device, self.device),
            4 => (Side::Any, self.device),
            _ => return Block::at(Side::Device, 0),
        };
        let slice = self.pitch * self.height;
        let address = address + (self.x + self.y * self.pitch + self.z * slice) as u64;
        Block { side, address, pitch: self.pitch, slice }
    }
}

fn copy_rows(
    call: &Call,
    real: impl FnOnce() -> Code,
    copy: Copy3D,
    stream: Option<Handle>,
) -> Code {
    copy_blocks(call, real, [copy.to.block(), copy.from.block()], copy.extent, stream)
}

pub(crate) fn copy_2d(call: &Call, real: impl FnOnce() -> Code, copy: *const Copy2D) -> Code {
    // SAFETY: NULL or the program's description.
    copy_rows(call, real, unsafe { read(copy) }.into(), None)
}

pub(crate) fn copy_2d_async(
    call: &Call,
    real: impl FnOnce() -> Code,
    copy: *const Copy2D,
    stream: Handle,
) -> Code {
    // SAFETY: as above.
    copy_rows(call, real, unsafe { read(copy) }.into(), Some(stream))
}

pub(crate) fn copy_3d(call: &Call, real: impl FnOnce() -> Code, copy: *const Copy3D) -> Code {
    // SAFETY: as above.
    copy_rows(call, real, unsafe { read(copy) }, None)
}

pub(crate) fn copy_3d_async(
    call: &Call,
    real: impl FnOnce() -> Code,
    copy: *const Copy3D,
    stream: Handle,
) -> Code {
    // SAFETY: as above.
    copy_rows(call, real, unsafe { read(copy) }, Some(stream))
}

/// It comes after all work of the contexts, and before all their later work.
pub(crate) fn copy_peer(
    call: &Call,
    real: impl FnOnce() -> Code,
    to: Address,
    to_context: Handle,
    from: Address,
    from_context: Handle,
    bytes: usize,
) -> Code {
    after(call, real, |watch| {
        let mut contexts = vec![to_context, from_context, watch.current().0];
        contexts.sort_unstable();
        contexts.dedup();
        let contexts: Vec<_> = contexts.iter().map(|of| ContextId(*of as u64)).collect();
        let stream = watch.stream(call, 0);
        watch.feed.stream_waits_for_contexts(stream, &contexts);
        let accesses = [Access::write(to, bytes as u64), Access::read(from, bytes as u64)];
        watch.wrote(stream, None, &accesses);
        watch.feed.contexts_wait_for_stream(&contexts, stream);
    })
}

#[allow(clippy::too_many_arguments)]
pub(crate) fn copy_peer_async(
    call: &Call,
    real: impl FnOnce() -> Code,
    to: Address,
    _to_context: Handle,
    from: Address,
    _from_context: Handle,
    bytes: usize,
    stream: Handle,
) -> Code {
    copy_async(call, real, Side::Device, Side::Device, to, from, bytes, stream)
}

/// A value of so many bytes, until it has eight.
fn repeated(value: u32, width: usize) -> u64 {
    let bytes = value.to_le_bytes();
    u64::from_le_bytes(core::array::from_fn(|at| {
        bytes.get(at % width.clamp(1, 4)).copied().unwrap_or_default()
    }))
}

fn set(
    call: &Call,
    real: impl FnOnce() -> Code,
    to: Block,
    (value, element): (u32, usize),
    [count, height]: [usize; 2],
    stream: Option<Handle>,
) -> Code {
    let extent = [element.saturating_mul(count), height, 1];
    if extent.contains(&0) {
        return real();
    }
    let before = |watch: &mut Watch| watch.before_copy(call, [to, to], extent, stream.unwrap_or(0));
    around(call, before, real, |watch, before| {
        let write = rows(to, extent, Access::write).into_iter();
        let content = repeated(value, element);
        let write: Vec<Access> = write.map(|write| write.filled(content)).collect();
        watch.wrote(before.stream, before.flag, &write);
        if stream.is_none() && before.places[0] != Place::Device {
            watch.reached_stream(before.stream);
        }
    })
}

macro_rules! sets {
    ($($asynchronous:ident $synchronous:ident $rows_async:ident $rows:ident $ty:ty;)*) => {$(
        pub(crate) fn $asynchronous(
            call: &Call, real: impl FnOnce() -> Code, to: Address, value: $ty, count: usize,
            stream: Handle,
        ) -> Code {
            let (to, value) = (Block::at(Side::Device, to), (u32::from(value), size_of::<$ty>()));
            set(call, real, to, value, [count, 1], Some(stream))
        }

        pub(crate) fn $synchronous(
            call: &Call, real: impl FnOnce() -> Code, to: Address, value: $ty, count: usize,
        ) -> Code {
            let (to, value) = (Block::at(Side::Device, to), (u32::from(value), size_of::<$ty>()));
            set(call, real, to, value, [count, 1], None)
        }

        #[allow(clippy::too_many_arguments)]
        pub(crate) fn $rows_async(
            call: &Call, real: impl FnOnce() -> Code, to: Address, pitch: usize, value: $ty,
            width: usize, height: usize, stream: Handle,
        ) -> Code {
            let to = Block { side: Side::Device, address: to, pitch, slice: 0 };
            set(call, real, to, (u32::from(value), size_of::<$ty>()), [width, height], Some(stream))
        }

        pub(crate) fn $rows(
            call: &Call, real: impl FnOnce() -> Code, to: Address, pitch: usize, value: $ty,
            width: usize, height: usize,
        ) -> Code {
            let to = Block { side: Side::Device, address: to, pitch, slice: 0 };
            set(call, real, to, (u32::from(value), size_of::<$ty>()), [width, height], None)
        }
    )*};
}

sets! {
    set_async8 set8 set_rows_async8 set_rows8 u8;
    set_async16 set16 set_rows_async16 set_rows16 u16;
    set_async32 set32 set_rows_async32 set_rows32 u32;
}

/// An operation on a value.
#[derive(Clone, Copy)]
struct Value {
    cell: Cell,
    value: u64,
    /// The condition of a wait.
    wait: Option<Compare>,
}

fn compare(flags: c_uint) -> Compare {
    match flags & 3 {
        0 => Compare::GreaterOrEqual,
        1 => Compare::Equal,
        2 => Compare::And,
        _ => Compare::Nor,
    }
}

fn on_values(call: &Call, real: impl FnOnce() -> Code, stream: Handle, values: &[Value]) -> Code {
    let before = |watch: &mut Watch| -> Vec<_> {
        let flag = |Value { cell, .. }: &Value| {
            watch.feed.find_stored(*cell, || load(*cell));
            watch.before_write(cell.address, u64::from(cell.bytes))
        };
        values.iter().map(flag).collect()
    };
    around(call, before, real, |watch, flags| {
        let stream = watch.stream(call, stream);
        for (Value { cell, value, wait }, flag) in values.iter().copied().zip(flags) {
            match wait {
                Some(compare) => {
                    watch.feed.wait_value(stream, cell, value, compare);
                    watch.node(stream, Node::WaitValue(cell));
                }
                None => {
                    let place = watch.place_of(stream, flag);
                    watch.feed.write_value(stream, place, cell, value);
                    watch.node(stream, Node::WriteValue(cell, value));
                }
            }
        }
    })
}

pub(crate) fn batch(
    call: &Call,
    real: impl FnOnce() -> Code,
    stream: Handle,
    count: c_uint,
    operations: *const [u64; 6],
    _flags: c_uint,
) -> Code {
    let count = if operations.is_null() { 0 } else { count as usize };
    // SAFETY: the program's operations, so many.
    let all = (0..count).map(|at| unsafe { operations.add(at).read() });
    let value = |[kind, address, value, flags, ..]: [u64; 6]| {
        let (bytes, wait) = match kind as u32 {
            1 => (4, Some(compare(flags as u32))),
            2 => (4, None),
            4 => (8, Some(compare(flags as u32))),
            5 => (8, None),
            _ => return None,
        };
        let value = if bytes == 4 { value & u64::from(u32::MAX) } else { value };
        Some(Value { cell: Cell { address, bytes }, value, wait })
    };
    let values: Vec<Value> = all.filter_map(value).collect();
    on_values(call, real, stream, &values)
}

macro_rules! values {
    ($($write:ident $wait:ident $ty:ty;)*) => {$(
        pub(crate) fn $write(
            call: &Call, real: impl FnOnce() -> Code, stream: Handle, address: Address, value: $ty,
            _flags: c_uint,
        ) -> Code {
            let cell = Cell { address, bytes: size_of::<$ty>() as u8 };
            on_values(call, real, stream, &[Value { cell, value: u64::from(value), wait: None }])
        }

        pub(crate) fn $wait(
            call: &Call, real: impl FnOnce() -> Code, stream: Handle, address: Address, value: $ty,
            flags: c_uint,
        ) -> Code {
            let (cell, wait) = (Cell { address, bytes: size_of::<$ty>() as u8 }, compare(flags));
            let value = u64::from(value);
            on_values(call, real, stream, &[Value { cell, value, wait: Some(wait) }])
        }
    )*};
}

values! {
    write_value32 wait_value32 u32;
    write_value64 wait_value64 u64;
}

/// In the place of the program's host function.
unsafe extern "C" fn run_host(data: *mut c_void) {
    // SAFETY: the box that `host_function` gave away: once to a stream, which runs it once, or for
    // ever to a graph.
    let host = unsafe { Arc::from_raw(data.cast_const().cast::<Host>()) };
    let place = host.places.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    if let Some(place) = place {
        with(|watch| watch.feed.function_begins(place));
    }
    if let Some(function) = host.function {
        // SAFETY: the program's function with its own data.
        unsafe { function(core::ptr::with_exposed_provenance_mut(host.data)) };
    }
    if let Some(place) = place {
        with(|watch| watch.feed.function_ends(place));
    }
    if host.captured {
        std::mem::forget(host);
    }
}

pub(crate) fn host_function(
    call: &Call,
    real: impl FnOnce(Function, Handle) -> Code,
    stream: Handle,
    function: Function,
    data: Handle,
) -> Code {
    if function.is_none() {
        return real(function, data);
    }
    let made = begin(call, |watch| {
        let id = watch.stream(call, stream);
        let captured = watch.feed.capture_of(id).is_some();
        let place = watch.new_place();
        let places = Mutex::new((!captured).then_some(place).into_iter().collect());
        let host = Arc::new(Host { function, data, places, captured });
        // It may begin before the real call returns.
        watch.feed.function(id, place);
        if captured {
            // It is one of each launch.
            watch.feed.function_left(place);
            watch.node(id, Node::Host(host.clone()));
        }
        (host, place)
    });
    let Some((host, place)) = made else { return real(function, data) };
    let raw = Arc::into_raw(host);
    let code = real(Some(run_host), raw.expose_provenance());
    if code != OK {
        // SAFETY: the driver has not taken it.
        drop(unsafe { Arc::from_raw(raw) });
        with(|watch| watch.feed.function_ends(place));
    }
    code
}

pub(crate) fn instantiate(
    call: &Call,
    real: impl FnOnce() -> Code,
    exec: *mut Handle,
    graph: Handle,
    _flags: u64,
) -> Code {
    after(call, real, |watch| {
        // SAFETY: the place for the handle, which a success has written.
        let exec = unsafe { read(exec) };
        watch.feed.graph_copy(GraphId(graph as u64), GraphId(exec as u64));
        let nodes = watch.graphs.get(&graph).cloned().unwrap_or_default();
        watch.graphs.insert(exec, nodes);
        let objects = watch.objects.get(&graph).cloned().unwrap_or_default();
        watch.objects.insert(exec, objects);
    })
}

pub(crate) fn graph_destroy(call: &Call, real: impl FnOnce() -> Code, graph: Handle) -> Code {
    begin(call, |watch| {
        let objects = watch.objects.remove(&graph).unwrap_or_default();
        watch.feed.graph_destroy(GraphId(graph as u64), objects);
        watch.graphs.remove(&graph);
    });
    real()
}

pub(crate) fn launch(
    call: &Call,
    real: impl FnOnce() -> Code,
    exec: Handle,
    stream: Handle,
) -> Code {
    // Its host functions may begin before the real call returns.
    begin(call, |watch| {
        let stream = watch.stream(call, stream);
        let nodes = watch.graphs.get(&exec).cloned().unwrap_or_default();
        for node in &nodes {
            match node {
                Node::WriteValue(cell, _) | Node::WaitValue(cell) => {
                    watch.feed.find_stored(*cell, || load(*cell));
                }
                Node::Write(access) => {
                    let range = &access.range;
                    watch.find_stored(range.start, range.end - range.start);
                }
                Node::Host(_) | Node::Work => {}
            }
        }
        watch.feed.launch(stream, GraphId(exec as u64));
        for node in nodes {
            match node {
                Node::Host(host) => {
                    let place = watch.new_place();
                    watch.feed.function(stream, place);
                    host.places.lock().unwrap_or_else(PoisonError::into_inner).push_back(place);
                }
                Node::Write(access) => {
                    let (address, end) = (access.range.start, access.range.end);
                    let flag = watch.before_write(address, end - address);
                    let place = watch.place_of(stream, flag);
                    watch.feed.forget_words(address, end - address);
                    watch.feed.write(stream, place, &[access]);
                }
                Node::WriteValue(cell, value) => {
                    let flag = watch.before_write(cell.address, u64::from(cell.bytes));
                    let place = watch.place_of(stream, flag);
                    watch.feed.write_value(stream, place, cell, value);
                }
                Node::WaitValue(_) => {}
                Node::Work => watch.feed.write(stream, None, &[]),
            }
        }
        watch.feed.launched();
    });
    real()
}

/// A user object's destructor.
struct Destructor {
    function: Function,
    data: Handle,
    number: u64,
}

/// In the place of the program's destructor.
unsafe extern "C" fn run_destructor(data: *mut c_void) {
    // SAFETY: the box that `create_object` gave away, which the driver gives back once.
    let of = unsafe { Box::from_raw(data.cast::<Destructor>()) };
    with(|watch| {
        watch.feed.object_released(of.number);
        watch.feed.destructor_begins();
    });
    if let Some(function) = of.function {
        // SAFETY: the program's destructor with its own data.
        unsafe { function(core::ptr::with_exposed_provenance_mut(of.data)) };
    }
    with(|watch| watch.feed.destructor_ends());
}

/// # Safety
///
/// `object` must be NULL or a place for a handle, which a success has written.
pub(crate) unsafe fn create_object(
    call: &Call,
    real: impl FnOnce(Function, Handle) -> Code,
    object: *mut Handle,
    function: Function,
    data: Handle,
) -> Code {
    let number = begin(call, Watch::new_place).unwrap_or_default();
    let raw = Box::into_raw(Box::new(Destructor { function, data, number }));
    let code = real(Some(run_destructor), raw.expose_provenance());
    if code == OK {
        // SAFETY: as the caller says.
        with(|watch| watch.numbers.insert(unsafe { read(object) }, number));
    } else {
        // SAFETY: the driver has not taken it.
        drop(unsafe { Box::from_raw(raw) });
    }
    code
}

pub(crate) fn retain_object(
    call: &Call,
    real: impl FnOnce() -> Code,
    graph: Handle,
    object: Handle,
    _count: c_uint,
    _flags: c_uint,
) -> Code {
    after(call, real, |watch| {
        let number = watch.numbers.get(&object).copied();
        watch.objects.entry(graph).or_default().extend(number);
    })
}

/// 64 bytes by value: a descriptor for other processes.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Bytes([u8; 64]);

pub(crate) fn event_exported(
    call: &Call,
    real: impl FnOnce() -> Code,
    _descriptor: *mut c_void,
    event: Handle,
) -> Code {
    after(call, real, |watch| watch.feed.event_exported(EventId(event as u64), None))
}

pub(crate) fn event_imported(
    call: &Call,
    real: impl FnOnce() -> Code,
    event: *mut Handle,
    _descriptor: Bytes,
) -> Code {
    // SAFETY: the place for the handle, which a success has written.
    after(call, real, |watch| watch.feed.event_create(EventId(unsafe { read(event) } as u64), true))
}

pub(crate) fn memory_exported(
    call: &Call,
    real: impl FnOnce() -> Code,
    _descriptor: *mut c_void,
    address: Address,
) -> Code {
    after(call, real, |watch| watch.feed.memory_exported(address))
}

pub(crate) fn memory_imported(
    call: &Call,
    real: impl FnOnce() -> Code,
    address: *mut Address,
    _descriptor: Bytes,
    _flags: c_uint,
) -> Code {
    after(call, real, |watch| {
        // SAFETY: the place for the address, which a success has written.
        let address = unsafe { read(address) };
        let (mut base, mut bytes) = (0, 0);
        if let Some(ask) = watch.questions.range {
            // SAFETY: places for the answers.
            unsafe { ask(&mut base, &mut bytes, address) };
        }
        // The driver may have opened it before.
        if watch.feed.memory(address).is_none() {
            watch.feed.allocate(address, bytes as u64, Memory::Exported);
        }
    })
}

pub(crate) fn memory_closed(call: &Call, real: impl FnOnce() -> Code, address: Address) -> Code {
    let code = real();
    begin(call, |watch| {
        // It may be open still.
        let (mut base, mut bytes) = (0, 0);
        // SAFETY: places for the answers.
        let mut ask = |ask: RangeOf| unsafe { ask(&mut base, &mut bytes, address) };
        if code == OK && watch.questions.range.is_none_or(|of| ask(of) != OK) {
            watch.feed.free(address);
        }
    });
    code
}

type RangeOf = unsafe extern "C" fn(*mut Address, *mut usize, Address) -> Code;

pub(crate) fn allocate_rows(
    call: &Call,
    real: impl FnOnce() -> Code,
    address: *mut Address,
    pitch: *mut usize,
    _width: usize,
    height: usize,
    _element: c_uint,
) -> Code {
    after(call, real, |watch| {
        // SAFETY: the places for the address and the pitch, which a success has written.
        let (address, pitch) = unsafe { (read(address), read(pitch)) };
        watch.allocated(address, pitch * height, Memory::Device);
    })
}

pub(crate) fn instantiate_with_log(
    call: &Call,
    real: impl FnOnce() -> Code,
    exec: *mut Handle,
    graph: Handle,
    _node: *mut Handle,
    _log: *mut core::ffi::c_char,
    _size: usize,
) -> Code {
    instantiate(call, real, exec, graph, 0)
}

pub(crate) fn instantiate_with(
    call: &Call,
    real: impl FnOnce() -> Code,
    exec: *mut Handle,
    graph: Handle,
    _settings: *mut c_void,
) -> Code {
    instantiate(call, real, exec, graph, 0)
}

pub(crate) fn graph_clone(
    call: &Call,
    real: impl FnOnce() -> Code,
    clone: *mut Handle,
    graph: Handle,
) -> Code {
    instantiate(call, real, clone, graph, 0)
}

pub(crate) fn graph_update(
    call: &Call,
    real: impl FnOnce() -> Code,
    exec: Handle,
    graph: Handle,
    _result: *mut c_void,
) -> Code {
    after(call, real, |watch| {
        watch.feed.graph_copy(GraphId(graph as u64), GraphId(exec as u64));
        let nodes = watch.graphs.get(&graph).cloned().unwrap_or_default();
        watch.graphs.insert(exec, nodes);
        let objects = watch.objects.get(&graph).cloned().unwrap_or_default();
        watch.objects.entry(exec).or_default().extend(objects);
    })
}

/// What is known of a kernel: its parameters, and the words in them that may be addresses.
#[derive(Default)]
struct Kernel {
    /// The call and the kernel, for reports; never freed, as those may last.
    name: &'static str,
    /// Offset and size of each.
    parameters: Vec<(usize, usize)>,
    launches: u32,
    /// The words within structures: the name of the operations that use each, and in how many
    /// launches it was an address of known memory. A structure may have words that the program
    /// never sets, and that hold old addresses.
    words: HashMap<(usize, usize), (&'static str, u32)>,
}

/// After so many launches, or at the end, a word within a structure is an address if it was one at
/// nine of ten.
const LAUNCHES: u32 = 10;

impl Kernel {
    /// Whether each word within a structure is an address.
    fn judged(&self) -> impl Iterator<Item = (&'static str, bool)> {
        let least = self.launches * 9;
        self.words.values().map(move |(name, hits)| (*name, hits * 10 >= least))
    }
}

/// What a launch reads: what is an address, and the words that may be none, by their operations.
type Reads = (Vec<Access>, Vec<(&'static str, Access)>);

/// The least part of `CUlaunchConfig` that matters.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct LaunchConfig {
    sizes: [c_uint; 7],
    stream: Handle,
    attributes: Handle,
    count: c_uint,
}

/// `CUlaunchAttribute`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct Attribute {
    id: c_uint,
    value: [u64; 8],
}

const _: () = assert!(size_of::<LaunchConfig>() == 56 && size_of::<Attribute>() == 72);

impl Watch {
    fn kernel(&mut self, call: &Call, function: Handle) -> &mut Kernel {
        let Questions { parameters, names, .. } = self.questions;
        self.kernels.entry(function).or_insert_with(|| {
            let of = |ask: ParamInfo| {
                let parameter = |index| {
                    let (mut offset, mut size) = (0, 0);
                    // SAFETY: a handle that the driver has just launched, and places for the
                    // answers.
                    let code = unsafe { ask(function, index, &mut offset, &mut size) };
                    (code == OK).then_some((offset, size))
                };
                (0..).map_while(parameter).collect::<Vec<_>>()
            };
            let named = |ask: NameOf| {
                let mut name = core::ptr::null();
                // SAFETY: as above; the name is a C string of the driver's.
                let text = unsafe {
                    match ask(&mut name, function) {
                        OK if !name.is_null() => CStr::from_ptr(name).to_string_lossy(),
                        _ => return None,
                    }
                };
                Some(&*String::leak(format!("{} of {text}", call.name)))
            };
            // A handle of the other kind is refused.
            let all = parameters.into_iter().flatten().map(of).find(|all| !all.is_empty());
            let name = names.into_iter().flatten().find_map(named).unwrap_or(call.name);
            Kernel { name, parameters: all.unwrap_or_default(), ..Kernel::default() }
        })
    }

    /// The bytes that a kernel's parameters point to, as far as they are addresses of known memory.
    /// What the kernel does there is not known: it counts as a read of the one byte, which any
    /// copy, memset or free of that byte must be ordered with.
    fn pointed_to(
        &mut self,
        call: &Call,
        function: Handle,
        parameters: *const Handle,
        extra: *const Handle,
    ) -> Reads {
        let kernel = self.kernel(call, function);
        kernel.launches += 1;
        let (launches, all) = (kernel.launches, kernel.parameters.clone());
        let launch = kernel.name;
        // SAFETY: `extra` is a list that ends with 0; 1 stands before the address of a buffer.
        let buffer = unsafe {
            let mut at = extra;
            loop {
                match if at.is_null() { 0 } else { at.read() } {
                    0 => break None,
                    1 => break Some(at.add(1).read()),
                    _ => at = at.add(2),
                }
            }
        };
        let (mut accesses, mut open) = (Vec::new(), Vec::new());
        for (index, (offset, size)) in all.into_iter().enumerate() {
            let base = match buffer {
                Some(buffer) => buffer + offset,
                None if parameters.is_null() => continue,
                // SAFETY: the program gives the address of each parameter.
                None => unsafe { parameters.add(index).read() },
            };
            // Words are aligned in the buffer of all parameters.
            let first = offset.next_multiple_of(8) - offset;
            for at in (first..size.saturating_sub(7)).step_by(8) {
                let word: *const u64 = core::ptr::with_exposed_provenance(base + at);
                // SAFETY: within the parameter.
                let word = unsafe { word.read_unaligned() };
                if self.feed.memory(word).is_none() {
                    continue;
                }
                let access = Access::read(word, 1);
                note(|| format!(" {index}+{at}/{size}:{word:#x}"));
                if size <= 8 {
                    accesses.push(access);
                    continue;
                }
                let words = &mut self.kernel(call, function).words;
                let (name, hits) = words.entry((index, at)).or_insert_with(|| {
                    let name = format!("{launch}, byte {at} of parameter {index}");
                    (String::leak(name), 0)
                });
                *hits += 1;
                if launches < LAUNCHES {
                    open.push((*name, access));
                } else if *hits * 10 >= launches * 9 {
                    accesses.push(access);
                }
            }
        }
        if launches == LAUNCHES {
            let words: Vec<_> = self.kernel(call, function).judged().collect();
            self.feed.observer_mut().decide(words.into_iter());
        }
        (accesses, open)
    }
}

fn launched(
    call: &Call,
    real: impl FnOnce() -> Code,
    function: Handle,
    stream: Handle,
    parameters: *const Handle,
    extra: *const Handle,
    records: &[Handle],
) -> Code {
    let code = real();
    if code != OK {
        return code;
    }
    let Some(name) = with(|watch| watch.kernel(call, function).name) else { return code };
    begin(&Call { name, per_thread: call.per_thread }, |watch| {
        let stream = watch.stream(call, stream);
        note(|| format!(" [{name}]"));
        let (accesses, open) = watch.pointed_to(call, function, parameters, extra);
        let launch = watch.feed.caller();
        for (word, access) in open {
            let words = &mut watch.feed.observer_mut().words;
            words.entry(word).or_insert(Word { kernel: name, counts: None });
            let mut call = launch.clone();
            call.name = word.into();
            watch.feed.resume(call);
            watch.feed.work(stream, &[access]);
        }
        watch.feed.resume(launch);
        watch.feed.work(stream, &accesses);
        for event in records {
            watch.feed.record(EventId(*event as u64), stream);
        }
    });
    code
}

#[allow(clippy::too_many_arguments)]
pub(crate) fn launch_kernel(
    call: &Call,
    real: impl FnOnce() -> Code,
    function: Handle,
    _grid_x: c_uint,
    _grid_y: c_uint,
    _grid_z: c_uint,
    _block_x: c_uint,
    _block_y: c_uint,
    _block_z: c_uint,
    _shared: c_uint,
    stream: Handle,
    parameters: *const Handle,
    extra: *const Handle,
) -> Code {
    launched(call, real, function, stream, parameters, extra, &[])
}

#[allow(clippy::too_many_arguments)]
pub(crate) fn launch_cooperative(
    call: &Call,
    real: impl FnOnce() -> Code,
    function: Handle,
    _grid_x: c_uint,
    _grid_y: c_uint,
    _grid_z: c_uint,
    _block_x: c_uint,
    _block_y: c_uint,
    _block_z: c_uint,
    _shared: c_uint,
    stream: Handle,
    parameters: *const Handle,
) -> Code {
    launched(call, real, function, stream, parameters, core::ptr::null(), &[])
}

pub(crate) fn launch_kernel_ex(
    call: &Call,
    real: impl FnOnce() -> Code,
    config: *const LaunchConfig,
    function: Handle,
    parameters: *const Handle,
    extra: *const Handle,
) -> Code {
    // SAFETY: NULL or the program's description, with so many attributes.
    let config = unsafe { read(config) };
    let attribute = |at: usize| {
        let first: *const Attribute = core::ptr::with_exposed_provenance(config.attributes);
        // SAFETY: as above.
        unsafe { first.add(at).read() }
    };
    let count = if config.attributes == 0 { 0 } else { config.count as usize };
    // CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT and _LAUNCH_COMPLETION_EVENT: events that are recorded
    // before the kernel has ended. What waits for them is taken to be after all of it.
    let records = (0..count).map(attribute).filter(|of| matches!(of.id, 7 | 12));
    let records: Vec<Handle> = records.map(|of| of.value[0] as Handle).collect();
    launched(call, real, function, config.stream, parameters, extra, &records)
}
