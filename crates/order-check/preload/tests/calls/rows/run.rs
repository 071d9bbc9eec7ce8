//! What a row has for its calls: a driver, streams, contexts and memory.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_void};
use std::ptr::null_mut;
use std::sync::Mutex;

use cuda_events::sys::{CUcontext, CUevent, CUresult, CUstream};
use cuda_events_test_support::planted::{NON_BLOCKING, builder};
use cuda_events_test_support::raw::{Front, INVALID_VALUE, NOT_SUPPORTED, OK, Raw, per_thread};
use cuda_order_check_preload as preload;
use cuda_soft_driver::SoftDriver;

use super::Area::{From, From1, Got, Host, To, To1};
use super::{Area, BEGIN, HOST, LATER};
use crate::front::settings;

/// The words that a function gets: six in registers, the others on the stack. A structure that is
/// given by its value has its words on the stack.
pub(super) type Words = [u64; 14];
pub(super) type Function = unsafe extern "C" fn(
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

/// What the function that is tested does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// It is the software driver's.
    Soft,
    /// A function that does nothing and succeeds.
    Stub,
    /// A function that fails.
    Refused,
}

pub(super) struct Tested {
    pub(super) name: String,
    pub(super) like: &'static str,
    /// What the next call does.
    pub(super) mode: Mode,
    pub(super) gives: Vec<(usize, u64)>,
    /// The software driver's function, and the one that stands for it.
    pub(super) real: [usize; 2],
    /// The memory that [`extra`] gives out.
    pub(super) memory: u64,
}

pub(super) static TESTED: Mutex<Tested> = Mutex::new(Tested {
    name: String::new(),
    like: "",
    mode: Mode::Soft,
    gives: Vec::new(),
    real: [0; 2],
    memory: 0,
});

/// The function that is tested.
#[rustfmt::skip]
pub(super) unsafe extern "C" fn tested(
    a: u64, b: u64, c: u64, d: u64, e: u64, f: u64, g: u64, h: u64, i: u64, j: u64, k: u64, l: u64,
    m: u64, n: u64,
) -> u32 {
    let words = [a, b, c, d, e, f, g, h, i, j, k, l, m, n];
    let (mode, gives, real) = {
        let setup = TESTED.lock().unwrap();
        (setup.mode, setup.gives.clone(), setup.real)
    };
    match mode {
        Mode::Soft => {
            let real = real.into_iter().filter(|function| *function != 0);
            let mut codes = real.map(|function| unsafe { forward(function as *mut c_void, words) });
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

pub(super) unsafe fn forward(function: *mut c_void, words: Words) -> u32 {
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n] = words;
    unsafe {
        let function: Function = std::mem::transmute(function);
        function(a, b, c, d, e, f, g, h, i, j, k, l, m, n)
    }
}

/// A function that other steps need, and that the software driver does not have for them: it gives
/// out 64 bytes, or does nothing.
pub(super) unsafe extern "C" fn extra<const N: usize>(address: *mut u64, bytes: *mut usize) -> u32 {
    if N == 0 {
        unsafe {
            address.write(TESTED.lock().unwrap().memory);
            bytes.write(64);
        }
    }
    OK + std::hint::black_box(N as u32) - N as u32
}

pub(super) fn with_tested(soft: &SoftDriver, name: &CStr) -> *mut c_void {
    let mut setup = TESTED.lock().unwrap();
    if *name.to_bytes() == *setup.name.as_bytes() {
        let like = CString::new(setup.like).unwrap();
        setup.real = [name, &*like].map(|name| soft.resolve(name).expose_provenance());
        return tested as *mut c_void;
    }
    match name.to_bytes() {
        b"cuLibraryGetGlobal" => extra::<0> as *mut c_void,
        b"cuLibraryUnload" => extra::<1> as *mut c_void,
        _ => soft.resolve(name),
    }
}

pub(super) const BEHIND: Front = Front {
    install: |soft| preload::install(&|name| with_tested(soft, name), &settings()),
    resolve: |soft, name| preload::target(name, &|name| with_tested(soft, name)),
    // Here it is told of accesses by itself.
    declare: |_, _, _, _| (),
};

/// What a row has for its calls.
pub(super) struct Run {
    pub(super) raw: Raw,
    pub(super) mode: Mode,
    /// The stream that the call is given.
    pub(super) s: u64,
    pub(super) a: CUstream,
    pub(super) b: CUstream,
    /// One that no other step uses.
    pub(super) x: CUstream,
    pub(super) actors: [CUstream; 7],
    /// The last one is that of streams that nothing else has an order with.
    pub(super) contexts: [CUcontext; 4],
    pub(super) e: [CUevent; 2],
    pub(super) memory: BTreeMap<Area, u64>,
    /// 64 bytes of device memory that the stand-in has not seen, and some of the host.
    pub(super) hidden: u64,
    pub(super) page: u64,
    /// Places for the results of calls.
    pub(super) out: Box<[Cell<u64>; 16]>,
    /// The end of what the call has given out.
    pub(super) end: Cell<u64>,
    /// Whether the call was made and did not fail.
    pub(super) done: Cell<bool>,
    pub(super) kept: RefCell<Vec<Box<dyn Any>>>,
}

impl Run {
    pub(super) fn new(mode: Mode, default: bool) -> Self {
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
    pub(super) fn keep<T: 'static>(&self, values: Vec<T>) -> u64 {
        let at = values.as_ptr().expose_provenance() as u64;
        self.kept.borrow_mut().push(Box::new(values));
        at
    }

    /// The place of what a call writes.
    pub(super) fn out(&self, at: usize) -> u64 {
        (&raw const self.out[at]).expose_provenance() as u64
    }

    pub(super) fn got(&self, at: usize) -> u64 {
        self.out[at].get()
    }

    pub(super) fn at(&self, area: Area) -> u64 {
        if area == Got { self.end.get() } else { self.memory[&area] }
    }

    pub(super) fn event(&self, at: usize) -> u64 {
        self.e[at].addr() as u64
    }

    /// Another function, as the program calls it.
    pub(super) fn call(&self, name: &str, words: &[u64]) -> u32 {
        let function = self.raw.resolve(&CString::new(name).unwrap());
        assert!(!function.is_null(), "{name} is not there");
        let mut all = Words::default();
        all[..words.len()].copy_from_slice(words);
        unsafe { forward(function, all) }
    }

    /// A call that must succeed.
    pub(super) fn good(&self, name: &str, words: &[u64]) {
        assert_eq!(self.call(name, words), OK, "{name}");
    }

    /// A function of the driver, of which the stand-in sees nothing.
    pub(super) fn unseen(&self, name: &CStr, words: &[u64]) -> u32 {
        let mut all = Words::default();
        all[..words.len()].copy_from_slice(words);
        unsafe { forward(self.raw.soft.resolve(name), all) }
    }

    pub(super) fn record(&self, event: usize, stream: CUstream) {
        self.call("cuEventRecord", &[self.event(event), stream.addr() as u64]);
    }

    pub(super) fn wait(&self, stream: CUstream, event: usize) {
        self.call("cuStreamWaitEvent", &[stream.addr() as u64, self.event(event), 0]);
    }

    pub(super) fn joined(&self, one: CUstream, two: CUstream) {
        self.record(1, one);
        self.wait(two, 1);
    }

    /// A memset of 32 bytes.
    pub(super) fn set(&self, stream: CUstream, area: Area) {
        self.call("cuMemsetD8Async", &[self.at(area), 1, 32, stream.addr() as u64]);
    }

    /// The work of an actor, before the call or after it.
    pub(super) fn work(&self, actor: usize, later: bool, (at, bytes): (u64, usize), write: bool) {
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
    pub(super) fn stream_work(&self, place: usize, stream: CUstream, (at, bytes): (u64, usize), write: bool) {
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

    pub(super) fn in_context<R>(&self, context: CUcontext, run: impl FnOnce() -> R) -> R {
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
