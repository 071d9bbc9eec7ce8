//! Every hooked function has a row: what a call touches, to the byte, and what it orders.
//!
//! Each name is called through the stand-in: by the software driver, if that has the function, whose
//! own checker must find the same; otherwise by a driver that does nothing and says that it has; and
//! by one that refuses. What takes a stream gets one, and the default stream. Programs are around
//! the call. In some of them other streams touch all memory before: what is reported are the bytes
//! that the call touches. In the other one everybody who may be ordered writes a byte before the
//! call, and reads everybody's after it: what is not reported is what the call orders.

// Rows are read beside each other.
#[rustfmt::skip]
mod table;

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, CString, c_void};
use std::ops::Range;
use std::ptr::null_mut;
use std::sync::Mutex;

use Area::{From, From1, Got, Host, To, To1};
use cuda_events::sys::{CUcontext, CUevent, CUresult, CUstream};
use cuda_events_test_support::planted::{NON_BLOCKING, aside, builder};
use cuda_events_test_support::raw::{
    Front, INVALID_VALUE, NOT_READY, NOT_SUPPORTED, OK, Raw, per_thread,
};
use cuda_order_check_engine::{Finding, Problem, Report, Side};
use cuda_order_check_preload as preload;
use cuda_soft_driver::SoftDriver;

use super::front::settings;

/// The words that a function gets: six in registers, the others on the stack. A structure that is
/// given by its value has its words on the stack.
type Words = [u64; 14];
type Function = unsafe extern "C" fn(
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
) -> u32;

/// Memory that calls touch, each with room around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Area {
    /// Device memory.
    To,
    From,
    /// That of the second device.
    To1,
    From1,
    /// Pinned memory.
    Host,
    /// What the call has given out, counted from its end.
    Got,
}

const AREAS: [Area; 6] = [To, From, To1, From1, Host, Got];
/// Where an area begins in its memory, and what its bytes are.
const BEGIN: u64 = 1024;
const BYTES: i64 = 512;

/// The bytes that a call touches.
type Touch = (bool, Area, Range<i64>);

fn reads(area: Area, range: Range<i64>) -> Vec<Touch> {
    vec![(false, area, range)]
}

fn writes(area: Area, range: Range<i64>) -> Vec<Touch> {
    vec![(true, area, range)]
}

/// So many rows of five bytes, each `pitch` after the one before it.
fn rows(write: bool, area: Area, first: i64, [pitch, height]: [i64; 2]) -> Vec<Touch> {
    (0..height).map(|row| (write, area, first + row * pitch..first + row * pitch + 5)).collect()
}

/// Who may be ordered: streams, and the host.
///
/// A and B do not block, L does, and P is the thread's default stream: all of the first device's
/// context. D does not block, and E does: they are of the second device's. T is of a third context.
const ACTORS: &str = "ABLPDETH";
const HOST: usize = 7;
/// The call that the accesses after the call have, as the stand-in reports each two calls once.
const LATER: &str = "later";
/// The call itself.
const CALL: usize = 8;

/// Who is before whom.
type Order = BTreeSet<(usize, usize)>;

/// `AB>H *>T`; S is the stream of the call, with M also that of the second device if that takes
/// part in a legacy stream, and C what the call does.
fn order(text: &str, stream: &str) -> Order {
    let side = |text: &str| -> Vec<usize> {
        let text = text
            .replace('*', ACTORS)
            .replace('M', if stream == "LP" { "LPE" } else { stream })
            .replace('S', stream);
        let at = |of| if of == 'C' { CALL } else { ACTORS.find(of).expect("an actor") };
        text.chars().map(at).collect()
    };
    let mut all = Order::new();
    for pair in text.split_whitespace() {
        let (one, two) = pair.split_once('>').expect("an order");
        all.extend(
            side(one).into_iter().flat_map(|one| side(two).into_iter().map(move |two| (one, two))),
        );
    }
    // What the host has done or seen is before what is submitted later.
    all.insert((HOST, CALL));
    all.extend((0..HOST).map(|at| (HOST, at)));
    let seen: Vec<usize> = all.iter().filter(|of| of.1 == HOST).map(|of| of.0).collect();
    all.extend(seen.into_iter().flat_map(|of| (0..HOST).map(move |at| (of, at))));
    all
}

/// What a function does.
struct Row {
    /// Without versions and suffixes. A version with other parameters has its own row.
    names: &'static str,
    args: fn(&Run) -> Vec<u64>,
    setup: fn(&Run),
    before: fn(&Run),
    then: fn(&Run),
    touches: Vec<Touch>,
    orders: &'static str,
    /// How many errors are found beside those that the orders and the touched bytes are read from.
    finds: usize,
    /// What remains of a call that is refused.
    refused: (&'static str, Vec<Touch>, usize),
    /// The context that is current in the call.
    current: usize,
    /// A function of the software driver that stands for one that it lacks.
    like: &'static str,
    /// What a driver that does nothing gives out: the argument, and what.
    gives: fn(&Run) -> Vec<(usize, u64)>,
    modes: &'static [Mode],
    /// Whether the stream that it is given is the default one: no, or both.
    streams: &'static [bool],
    /// Why the software driver's own checker finds something else.
    differs: bool,
}

fn row(names: &'static str, args: fn(&Run) -> Vec<u64>) -> Row {
    Row {
        names,
        args,
        setup: |_| (),
        before: |_| (),
        then: |_| (),
        touches: Vec::new(),
        orders: "",
        finds: 0,
        refused: ("", Vec::new(), 0),
        current: 0,
        like: "",
        gives: |_| Vec::new(),
        modes: &[Mode::Soft, Mode::Refused],
        streams: &[false],
        differs: false,
    }
}

impl Row {
    fn has(&self, name: &str) -> bool {
        self.names.split_whitespace().any(|own| own == name)
    }

    /// What comes before everything that is looked at, as do the steps that the arguments take.
    fn setup(self, setup: fn(&Run)) -> Self {
        Self { setup, ..self }
    }

    /// The steps before the call.
    fn before(self, before: fn(&Run)) -> Self {
        Self { before, ..self }
    }

    /// The steps after it.
    fn then(self, then: fn(&Run)) -> Self {
        Self { then, ..self }
    }

    /// What it touches, and what that is ordered with.
    fn touches(self, all: impl IntoIterator<Item = Vec<Touch>>) -> Self {
        Self { touches: all.into_iter().flatten().collect(), ..self }
    }

    fn orders(self, orders: &'static str) -> Self {
        Self { orders, ..self }
    }

    fn finds(self, finds: usize) -> Self {
        Self { finds, ..self }
    }

    fn current(self, current: usize) -> Self {
        Self { current, ..self }
    }

    fn like(self, like: &'static str) -> Self {
        Self { like, ..self }
    }

    fn gives(self, gives: fn(&Run) -> Vec<(usize, u64)>) -> Self {
        Self { gives, ..self }
    }

    fn refused(self, orders: &'static str, touches: Vec<Touch>, finds: usize) -> Self {
        Self { refused: (orders, touches, finds), ..self }
    }

    /// It counts before the driver is called, as it gives back what others may get at once.
    fn counts_before(self) -> Self {
        Self { refused: (self.orders, self.touches.clone(), self.finds), ..self }
    }

    /// Other calls have to see that the driver has done nothing as well.
    fn both(self) -> Self {
        Self { modes: &[Mode::Soft, Mode::Stub, Mode::Refused], ..self }
    }

    /// The software driver needs other arguments, or others than these would end.
    fn without_driver(self) -> Self {
        Self { modes: &[Mode::Stub, Mode::Refused], ..self }
    }

    /// It is in a stream: the one that it is given, and then the default one.
    fn in_stream(self) -> Self {
        Self { streams: &[false, true], ..self }
    }

    /// It is in the default stream.
    fn in_default(self) -> Self {
        Self { streams: &[true], ..self }
    }

    fn differs(self) -> Self {
        Self { differs: true, ..self }
    }
}

/// What the function that is tested does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// It is the software driver's.
    Soft,
    /// It does nothing.
    Stub,
    /// It fails.
    Refused,
}

struct Tested {
    name: String,
    like: &'static str,
    /// What the next call does.
    mode: Mode,
    gives: Vec<(usize, u64)>,
    /// The software driver's function, and the one that stands for it.
    real: [usize; 2],
    /// The memory that [`extra`] gives out.
    memory: u64,
}

static TESTED: Mutex<Tested> = Mutex::new(Tested {
    name: String::new(),
    like: "",
    mode: Mode::Soft,
    gives: Vec::new(),
    real: [0; 2],
    memory: 0,
});

/// The function that is tested.
#[rustfmt::skip]
unsafe extern "C" fn tested(
    a: u64, b: u64, c: u64, d: u64, e: u64, f: u64, g: u64, h: u64, i: u64, j: u64, k: u64, l: u64,
    m: u64, n: u64,
) -> u32 {
    let words = [a, b, c, d, e, f, g, h, i, j, k, l, m, n];
    let (mode, gives, real) = {
        let of = TESTED.lock().unwrap();
        (of.mode, of.gives.clone(), of.real)
    };
    match mode {
        Mode::Soft => {
            let real = real.into_iter().filter(|of| *of != 0);
            let mut codes = real.map(|of| unsafe { forward(of as *mut c_void, words) });
            codes.find(|code| *code != NOT_SUPPORTED).unwrap_or(NOT_SUPPORTED)
        }
        Mode::Refused => INVALID_VALUE,
        Mode::Stub => {
            let gives = gives.into_iter().filter(|(at, _)| words[*at] != 0);
            gives.for_each(|(at, value)| unsafe { *(words[at] as *mut u64) = value });
            OK
        }
    }
}

unsafe fn forward(function: *mut c_void, words: Words) -> u32 {
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n] = words;
    unsafe {
        let function: Function = std::mem::transmute(function);
        function(a, b, c, d, e, f, g, h, i, j, k, l, m, n)
    }
}

/// A function that other steps need, and that the software driver does not have for them: it gives
/// out 64 bytes, or does nothing.
unsafe extern "C" fn extra<const N: usize>(address: *mut u64, bytes: *mut usize) -> u32 {
    if N == 0 {
        unsafe {
            address.write(TESTED.lock().unwrap().memory);
            bytes.write(64);
        }
    }
    OK + std::hint::black_box(N as u32) - N as u32
}

fn with_tested(soft: &SoftDriver, name: &CStr) -> *mut c_void {
    let mut of = TESTED.lock().unwrap();
    if *name.to_bytes() == *of.name.as_bytes() {
        let like = CString::new(of.like).unwrap();
        of.real = [name, &*like].map(|name| soft.resolve(name).expose_provenance());
        return tested as *mut c_void;
    }
    match name.to_bytes() {
        b"cuLibraryGetGlobal" => extra::<0> as *mut c_void,
        b"cuLibraryUnload" => extra::<1> as *mut c_void,
        _ => soft.resolve(name),
    }
}

const BEHIND: Front = Front {
    install: |soft| preload::install(&|name| with_tested(soft, name), &settings()),
    resolve: |soft, name| preload::target(name, &|name| with_tested(soft, name)),
    // Here it is told of accesses by itself.
    declare: |_, _, _, _| (),
};

/// Which of the programs it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Probe {
    /// Other streams have read everything.
    Read,
    /// They have written everything.
    Written,
    Order,
}

/// What a row has for its calls.
struct Run {
    raw: Raw,
    mode: Mode,
    /// The stream that the call is given.
    s: u64,
    a: CUstream,
    b: CUstream,
    /// One that no other step uses.
    x: CUstream,
    actors: [CUstream; 7],
    /// The last one is that of streams that nothing else has an order with.
    contexts: [CUcontext; 4],
    e: [CUevent; 2],
    memory: BTreeMap<Area, u64>,
    /// 64 bytes of device memory that the stand-in has not seen, and some of the host.
    hidden: u64,
    page: u64,
    /// What calls write.
    out: Box<[Cell<u64>; 16]>,
    /// The end of what the call has given out.
    end: Cell<u64>,
    /// Whether the call was made and did not fail.
    done: Cell<bool>,
    kept: RefCell<Vec<Box<dyn Any>>>,
}

impl Run {
    fn new(mode: Mode, default: bool) -> Self {
        let raw = Raw::behind(builder(0).devices(2), BEHIND);
        let first = raw.retain(0);
        let second = raw.retain(1);
        let good = |code: CUresult| assert_eq!(code.0, OK);
        let [third, fourth] = [0; 2].map(|device| {
            let mut context = null_mut();
            good(unsafe { (raw.cuCtxCreate_v2)(&mut context, 0, device) });
            context
        });
        let mut memory = BTreeMap::new();
        let mut streams = Vec::new();
        for (context, flags, areas) in [
            (first, &[1, 1, 0][..], &[To, From][..]),
            (second, &[1, 0], &[To1, From1]),
            (third, &[0], &[]),
        ] {
            raw.set_current(context);
            streams.extend(flags.iter().map(|flags| raw.stream(*flags)));
            for area in areas {
                let mut at = 0;
                good(unsafe { (raw.cuMemAlloc_v2)(&mut at, 4096) });
                memory.insert(*area, at + BEGIN);
            }
        }
        raw.set_current(first);
        let mut pinned = null_mut();
        good(unsafe { (raw.cuMemHostAlloc)(&mut pinned, 4096, 1) });
        memory.insert(Host, pinned.addr() as u64 + BEGIN);
        let mut hidden = 0;
        good(unsafe { (raw.soft.driver().symbols().cuMemAlloc_v2)(&mut hidden, 64) });
        TESTED.lock().unwrap().memory = hidden;
        let layout = std::alloc::Layout::from_size_align(8192, 4096).unwrap();
        let page = unsafe { std::alloc::alloc_zeroed(layout) }.expose_provenance() as u64;
        let [a, b, l, d, e, t] = streams[..] else { panic!("six streams") };
        let x = raw.stream(NON_BLOCKING);
        let events = [raw.event(0), raw.event(0)];
        Self {
            mode,
            s: if default { 0 } else { a.addr() as u64 },
            a,
            b,
            x,
            actors: [a, b, l, per_thread(), d, e, t],
            contexts: [first, second, third, fourth],
            e: events,
            memory,
            hidden,
            page,
            out: Box::new([const { Cell::new(0) }; 16]),
            end: Cell::new(0),
            done: Cell::new(false),
            kept: RefCell::default(),
            raw,
        }
    }

    /// Where the words of a structure are, until the end.
    fn keep<T: 'static>(&self, of: Vec<T>) -> u64 {
        let at = of.as_ptr().expose_provenance() as u64;
        self.kept.borrow_mut().push(Box::new(of));
        at
    }

    /// The place of what a call writes.
    fn out(&self, at: usize) -> u64 {
        (&raw const self.out[at]).expose_provenance() as u64
    }

    fn got(&self, at: usize) -> u64 {
        self.out[at].get()
    }

    fn at(&self, area: Area) -> u64 {
        if area == Got { self.end.get() } else { self.memory[&area] }
    }

    fn event(&self, at: usize) -> u64 {
        self.e[at].addr() as u64
    }

    /// Another function, as the program calls it.
    fn call(&self, name: &str, words: &[u64]) -> u32 {
        let function = self.raw.resolve(&CString::new(name).unwrap());
        assert!(!function.is_null(), "{name} is not there");
        let mut all = Words::default();
        all[..words.len()].copy_from_slice(words);
        unsafe { forward(function, all) }
    }

    /// One that succeeds.
    fn good(&self, name: &str, words: &[u64]) {
        assert_eq!(self.call(name, words), OK, "{name}");
    }

    /// A function of the driver, of which the stand-in sees nothing.
    fn unseen(&self, name: &CStr, words: &[u64]) -> u32 {
        let mut all = Words::default();
        all[..words.len()].copy_from_slice(words);
        unsafe { forward(self.raw.soft.resolve(name), all) }
    }

    fn record(&self, event: usize, stream: CUstream) {
        self.call("cuEventRecord", &[self.event(event), stream.addr() as u64]);
    }

    fn wait(&self, stream: CUstream, event: usize) {
        self.call("cuStreamWaitEvent", &[stream.addr() as u64, self.event(event), 0]);
    }

    fn joined(&self, one: CUstream, two: CUstream) {
        self.record(1, one);
        self.wait(two, 1);
    }

    /// A memset of 32 bytes.
    fn set(&self, stream: CUstream, area: Area) {
        self.call("cuMemsetD8Async", &[self.at(area), 1, 32, stream.addr() as u64]);
    }

    /// The work of an actor, before the call or after it.
    fn work(&self, actor: usize, later: bool, (at, bytes): (u64, usize), write: bool) {
        if actor < HOST {
            let context = self.contexts[[0, 0, 0, 0, 1, 1, 2][actor]];
            let place = actor + 8 * usize::from(later);
            let stream = self.actors[actor];
            return self
                .in_context(context, || self.stream_work(place, stream, (at, bytes), write));
        }
        if self.mode == Mode::Soft {
            let at = std::ptr::with_exposed_provenance::<u8>(at as usize);
            match later {
                false => self.raw.host_access(at, bytes, write),
                true => self.raw.host_access(at, bytes, write),
            };
        }
        let name = if write { "host_writes" } else { "host_reads" };
        preload::declare(if later { LATER } else { name }, None, at, bytes as u64, write);
    }

    /// Work that has a place of its own in the program, as each two places are reported once.
    #[rustfmt::skip]
    fn stream_work(&self, place: usize, stream: CUstream, (at, bytes): (u64, usize), write: bool) {
        match place {
            _ if self.mode != Mode::Soft => (),
            0 => _ = self.raw.work(stream, at, bytes, write),
            1 => _ = self.raw.work(stream, at, bytes, write),
            2 => _ = self.raw.work(stream, at, bytes, write),
            3 => _ = self.raw.work(stream, at, bytes, write),
            4 => _ = self.raw.work(stream, at, bytes, write),
            5 => _ = self.raw.work(stream, at, bytes, write),
            6 => _ = self.raw.work(stream, at, bytes, write),
            8 => _ = self.raw.work(stream, at, bytes, write),
            9 => _ = self.raw.work(stream, at, bytes, write),
            10 => _ = self.raw.work(stream, at, bytes, write),
            11 => _ = self.raw.work(stream, at, bytes, write),
            12 => _ = self.raw.work(stream, at, bytes, write),
            13 => _ = self.raw.work(stream, at, bytes, write),
            _ => _ = self.raw.work(stream, at, bytes, write),
        }
        let name = if write { "writes" } else { "reads" };
        let name = if place >= 8 { LATER } else { name };
        preload::declare(name, Some(stream.addr()), at, bytes as u64, write);
    }

    fn in_context<R>(&self, context: CUcontext, run: impl FnOnce() -> R) -> R {
        let mut before = null_mut();
        unsafe { (self.raw.cuCtxGetCurrent)(&mut before) };
        if before == context {
            return run();
        }
        self.raw.set_current(context);
        let result = run();
        self.raw.set_current(before);
        result
    }
}

/// The driver of the next run waits for what was not given back.
impl Drop for Run {
    fn drop(&mut self) {
        for context in &self.contexts[2..] {
            self.unseen(c"cuCtxDestroy_v2", &[context.addr() as u64]);
        }
        for device in 0..2 {
            while self.unseen(c"cuDevicePrimaryCtxRelease_v2", &[device]) == OK {}
        }
        let layout = std::alloc::Layout::from_size_align(8192, 4096).unwrap();
        let page = std::ptr::with_exposed_provenance_mut(self.page as usize);
        unsafe { std::alloc::dealloc(page, layout) };
    }
}

/// The versions of a name that have its parameters, with and without suffixes, have one row.
fn row_of<'a>(table: &'a [Row], name: &str) -> Vec<&'a Row> {
    let plain = ["_ptsz", "_ptds"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
    let base = match plain.rsplit_once("_v") {
        Some((base, version)) if version.parse::<u32>().is_ok() => base,
        _ => plain,
    };
    let of = |name: &str| -> Vec<&Row> { table.iter().filter(|row| row.has(name)).collect() };
    let own = of(plain);
    if own.is_empty() { of(base) } else { own }
}

/// A call, and what is around it.
struct Around<'a> {
    row: &'a Row,
    run: &'a Run,
    probe: Probe,
    /// What it is to touch, and each byte of that.
    touches: &'a [Touch],
    bytes: Vec<(Area, i64)>,
    /// The streams that have read or written everything.
    others: [CUstream; 6],
}

impl Around<'_> {
    /// The byte that an actor writes.
    fn byte(&self, of: usize) -> u64 {
        self.run.at(Host) - BEGIN + of as u64
    }

    /// A byte of the call's for each actor before it, and then for each after it. Those of the
    /// call's streams come first, where there are few bytes.
    fn spot(&self, at: usize) -> Option<(Area, i64)> {
        let (at, count) = (at / 8 * 8 + [0, 3, 2, 1, 4, 5, 6, 7][at % 8], self.bytes.len());
        self.bytes.get(if count < 16 { at } else { at * count / 16 }).copied()
    }

    fn address(&self, (area, byte): (Area, i64)) -> u64 {
        self.run.at(area).wrapping_add_signed(byte)
    }

    /// The call gives out the memory that it touches.
    fn gives(&self) -> bool {
        self.bytes.iter().any(|(area, _)| *area == Got)
    }

    /// Another stream reads or writes a whole area.
    fn other(&self, area: Area) {
        let (run, write) = (self.run, self.probe == Probe::Written);
        let before = if area == Got { BYTES as u64 / 2 } else { 0 };
        let place = (run.at(area) - before, BYTES as usize);
        let stream = self.others[area as usize];
        run.in_context(run.contexts[3], || run.stream_work(area as usize, stream, place, write));
    }

    fn before(&self) {
        if self.probe != Probe::Order {
            return AREAS.into_iter().filter(|area| *area != Got).for_each(|area| self.other(area));
        }
        for one in 0..CALL {
            self.run.work(one, false, (self.byte(one), 1), true);
            if let Some(at) = self.spot(one).filter(|(area, _)| *area != Got) {
                self.run.work(one, false, (self.address(at), 1), true);
            }
        }
    }

    fn after(&self) {
        if self.probe != Probe::Order {
            if self.run.end.get() != 0 {
                self.other(Got);
            }
            return (self.row.then)(self.run);
        }
        (self.row.then)(self.run);
        for two in 0..CALL {
            self.run.work(two, true, (self.byte(0), CALL), false);
            if let Some(at) = self.spot(8 + two) {
                self.run.work(two, true, (self.address(at), 1), true);
            }
        }
    }

    /// Makes the call.
    fn call(&self, name: &str, words: &[u64]) -> u32 {
        let (row, run) = (self.row, self.run);
        (row.before)(run);
        {
            let mut of = TESTED.lock().unwrap();
            (of.mode, of.gives) = (run.mode, (row.gives)(run));
        }
        run.raw.set_current(run.contexts[row.current]);
        let mut code = run.call(name, words);
        while code == NOT_READY {
            std::thread::yield_now();
            code = run.call(name, words);
        }
        TESTED.lock().unwrap().mode = Mode::Soft;
        run.raw.set_current(run.contexts[0]);
        run.done.set(code == OK);
        if code == OK && run.end.get() == 0 && self.gives() {
            run.end.set(run.got(0) + 64);
        }
        code
    }

    /// What is wrong with the order that the call makes.
    fn ordered(&self, reports: &[&Report], mut claimed: Order) -> Option<String> {
        let pairs = (0..=CALL).flat_map(|one| (0..=CALL).map(move |two| (one, two)));
        let asked = |&(one, two): &(usize, usize)| match (one, two) {
            (CALL, two) => two != CALL && self.spot(8 + two).is_some(),
            // Nobody was there before memory that the call gives out.
            (one, CALL) => self.spot(one).is_some() && !self.gives(),
            (one, two) => one != two,
        };
        let mut all: Order = pairs.filter(asked).collect();
        for report in reports {
            let sides = [&report.first, &report.second];
            let Some(at) = report.shared.first().map(|of| of.start) else { continue };
            let later = sides.into_iter().find(|side| *side.call.name == *LATER);
            let one = at.wrapping_sub(self.byte(0)) as usize;
            if let Some(by) = later.filter(|_| one < CALL) {
                // The default stream has another number here.
                let is = |of: u64| self.run.actors.iter().position(|own| own.addr() as u64 == of);
                let two = by.agent.stream_id().map_or(HOST, |of| is(of.0).unwrap_or(3));
                all.remove(&(one, two));
            }
            let looks = ["writes", "host_writes", LATER];
            let looks = sides.into_iter().any(|side| looks.contains(&&*side.call.name));
            let is_at = |of| looks && self.spot(of).is_some_and(|of| self.address(of) == at);
            for actor in 0..CALL {
                if is_at(actor) {
                    all.remove(&(actor, CALL));
                }
                if is_at(8 + actor) {
                    all.remove(&(CALL, actor));
                }
            }
        }
        claimed.retain(asked);
        let text = |of: &Order, without: &Order| -> String {
            let name = |at: &usize| ACTORS.chars().nth(*at).unwrap_or('C');
            of.difference(without)
                .map(|(one, two)| format!(" {}>{}", name(one), name(two)))
                .collect()
        };
        let (lacks, more) = (text(&claimed, &all), text(&all, &claimed));
        (all != claimed).then(|| format!("no order{lacks}; unclaimed{more}"))
    }

    /// What is wrong with the bytes that it touches, and with the errors.
    fn touched(&self, reports: &[&Report], wanted: usize) -> Option<String> {
        let mut touched: BTreeMap<Area, BTreeSet<i64>> = BTreeMap::new();
        let mut finds = String::new();
        let mut count = 0;
        for report in reports {
            let by = |side: &Side| {
                let stream = side.agent.stream_id()?.0;
                self.others.iter().position(|of| of.addr() as u64 == stream)
            };
            match [&report.first, &report.second].into_iter().find_map(by) {
                Some(area) if report.problem == Problem::Race => {
                    let area = AREAS[area];
                    for range in &report.shared {
                        let bytes =
                            range.clone().map(|at| at.wrapping_sub(self.run.at(area)) as i64);
                        touched.entry(area).or_default().extend(bytes);
                    }
                }
                _ => {
                    count += 1;
                    finds += &format!("\n{report}");
                }
            }
        }
        let mut claimed: BTreeMap<Area, BTreeSet<i64>> = BTreeMap::new();
        for (write, area, range) in self.touches {
            if *write || self.probe == Probe::Written {
                claimed.entry(*area).or_default().extend(range.clone());
            }
        }
        let right = touched == claimed && count == wanted;
        let text = |all: BTreeMap<Area, BTreeSet<i64>>| -> String {
            all.iter().map(|(area, bytes)| format!(" {area:?}{}", ranges(bytes))).collect()
        };
        let [touched, claimed] = [touched, claimed].map(text);
        let errors = format!("{count} errors and not {wanted}{finds}");
        (!right).then(|| format!("it touches{touched} and not{claimed}; {errors}"))
    }
}

/// One of the programs around a call: what is wrong.
fn program(row: &Row, name: &str, (mode, default): (Mode, bool), probe: Probe) -> Vec<String> {
    *TESTED.lock().unwrap() = Tested {
        name: name.to_owned(),
        like: row.like,
        mode: Mode::Soft,
        gives: Vec::new(),
        real: [0; 2],
        memory: 0,
    };
    let mut run = Run::new(mode, default);
    if mode == Mode::Soft && TESTED.lock().unwrap().real == [0; 2] {
        run.mode = Mode::Stub;
    }
    let (run, mode) = (&run, run.mode);
    run.raw.set_current(run.contexts[3]);
    let others = AREAS.map(|_| run.raw.stream(NON_BLOCKING));
    run.raw.set_current(run.contexts[0]);
    let (claims, touches, finds) = match mode {
        Mode::Refused => (row.refused.0, &row.refused.1, row.refused.2),
        _ => (row.orders, &row.touches, row.finds),
    };
    let of_touch =
        |(_, area, range): &Touch| range.clone().map(|at| (*area, at)).collect::<Vec<_>>();
    let bytes = touches.iter().flat_map(of_touch).collect();
    let around = Around { row, run, probe, touches, bytes, others };
    (row.setup)(run);
    let words = (row.args)(run);
    around.before();
    let code = around.call(name, &words);
    around.after();
    let found = preload::take_findings();
    let reports: Vec<_> = found.iter().filter_map(Finding::report).collect();
    let mut wrong = Vec::new();
    if (code == OK) == (mode == Mode::Refused) {
        wrong.push(format!("it returned {code}"));
    }
    if mode == Mode::Soft && !row.differs {
        let mut own: Vec<_> = run.raw.soft.order_findings().iter().map(parts).collect();
        let mut found: Vec<_> = reports.iter().map(|of| parts(of)).collect();
        own.sort();
        found.sort();
        if own != found {
            wrong.push(format!("the driver finds\n  {own:x?}\n  and not\n  {found:x?}"));
        }
    }
    let stream = match (default, name.ends_with("_ptsz") || name.ends_with("_ptds")) {
        (false, _) => "A",
        (true, false) => "LP",
        (true, true) => "P",
    };
    wrong.extend(match probe {
        Probe::Order => around.ordered(&reports, order(claims, stream)),
        _ => around.touched(&reports, finds),
    });
    wrong
}

/// ` 3..7 9..10`
fn ranges(bytes: &BTreeSet<i64>) -> String {
    let mut text = String::new();
    for byte in bytes {
        if !bytes.contains(&(byte - 1)) {
            text += &format!(" {byte}..");
        }
        if !bytes.contains(&(byte + 1)) {
            text += &(byte + 1).to_string();
        }
    }
    text
}

/// What the stand-in and the driver say alike of an error. (A default stream has another number
/// here and there.)
fn parts(of: &Report) -> (String, Vec<(u64, u64)>) {
    (format!("{:?}", of.problem), of.shared.iter().map(|of| (of.start, of.end)).collect())
}

/// The names of the hooked functions.
fn names() -> impl Iterator<Item = &'static str> {
    preload::names().map(|name| name.to_str().expect("a name of the driver"))
}

#[test]
fn each_hooked_function_has_a_row() {
    let table = table::table();
    let without: Vec<_> = names().filter(|name| row_of(&table, name).is_empty()).collect();
    assert_eq!(without, [""; 0], "hooks without a row");
    let has = |own: &str| names().any(|name| row_of(&table, name).iter().any(|row| row.has(own)));
    let unused: Vec<_> =
        table.iter().flat_map(|row| row.names.split_whitespace()).filter(|own| !has(own)).collect();
    assert_eq!(unused, [""; 0], "rows of functions that are not hooked");
}

/// How many tests have a part of the names each.
const PARTS: usize = 4;

/// The calls of some of the names do what their rows say.
#[track_caller]
fn rows_hold(test: &str, part: usize) {
    aside(test, || {
        let table = table::table();
        let (mut wrong, mut calls) = (Vec::new(), 0);
        for name in names().skip(part).step_by(PARTS) {
            for row in row_of(&table, name) {
                let programs = row.modes.iter().flat_map(|mode| {
                    let first = if *mode == Mode::Refused { row.streams.len() - 1 } else { 0 };
                    row.streams[first..].iter().map(move |default| (*mode, *default))
                });
                // With writes alone, it does not matter whether others have written or read.
                let reads = row.touches.iter().any(|(write, ..)| !write);
                for (mode, default) in programs {
                    for probe in [Probe::Read, Probe::Written, Probe::Order] {
                        if match probe {
                            Probe::Read => reads && mode == Mode::Refused,
                            Probe::Written => !reads,
                            Probe::Order => false,
                        } {
                            continue;
                        }
                        calls += 1;
                        let all = program(row, name, (mode, default), probe).into_iter();
                        let stream = if default { "default stream" } else { "stream" };
                        wrong.extend(
                            all.map(|of| format!("{name} ({mode:?}, {stream}, {probe:?}): {of}")),
                        );
                    }
                }
            }
        }
        let count = wrong.len();
        assert_eq!(count, 0, "of {calls} programs {count} differ:\n{}", wrong.join("\n"));
    });
}

#[test]
fn rows_hold_1() {
    rows_hold("rows_hold_1", 0);
}

#[test]
fn rows_hold_2() {
    rows_hold("rows_hold_2", 1);
}

#[test]
fn rows_hold_3() {
    rows_hold("rows_hold_3", 2);
}

#[test]
fn rows_hold_4() {
    rows_hold("rows_hold_4", 3);
}
