//! Values that another thread sees before the call returns that has submitted them.

use std::ffi::{CStr, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};

use cuda_events::sys::{CUgraphExec, CUstream};
use cuda_events_test_support::aside;
use cuda_events_test_support::planted::{Desk, builder, word, word_address};
use cuda_events_test_support::raw::{Front, INVALID_VALUE, OK, Raw, call};
use cuda_order_check_preload as preload;
use cuda_soft_driver::SoftDriver;

use super::front::{FRONT, found, settings};

/// The stream that another thread uses once it has seen the value, and the memory there.
static STREAM: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
static MEMORY: AtomicU64 = AtomicU64::new(0);

/// Another thread sees that the word has changed, and goes on.
fn goes_on(word: u64) {
    if word == 0 {
        return;
    }
    let word: *mut u32 = std::ptr::with_exposed_provenance_mut(word as usize);
    // SAFETY: a word of pinned memory that a stream writes.
    while word.addr() as u64 > NOT_AWAITED
        && unsafe { AtomicU32::from_ptr(word) }.load(Ordering::Acquire) == 0
    {
        std::thread::yield_now();
    }
    let other = std::thread::spawn(|| {
        let stream = STREAM.load(Ordering::Relaxed).cast();
        (FRONT.declare)(Some(stream), MEMORY.load(Ordering::Relaxed), 4, true);
    });
    other.join().expect("it ends");
}

/// The driver's functions, each of which returns after the other thread's call.
macro_rules! slow {
    ($($name:ident $function:literal ($($argument:ident: $ty:ty),*);)*) => {
        $(mod $name {
            use std::ffi::c_void;
            use std::ptr::null_mut;
            use std::sync::atomic::{AtomicPtr, Ordering};

            use cuda_events::sys::CUstream;
            use cuda_events_test_support::raw::INVALID_VALUE;

            use super::{FAILS, WORD, goes_on};

            pub(super) static REAL: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

            pub(super) unsafe extern "C" fn call($($argument: $ty),*) -> u32 {
                type Real = unsafe extern "C" fn($($ty),*) -> u32;
                let real = REAL.load(Ordering::Relaxed);
                let code = match FAILS.load(Ordering::Relaxed) {
                    true => INVALID_VALUE,
                    // SAFETY: the driver's function has this type.
                    false => unsafe {
                        std::mem::transmute::<*mut c_void, Real>(real)($($argument),*)
                    },
                };
                goes_on(WORD.load(Ordering::Relaxed));
                code
            }
        })*

        fn slowly(soft: &SoftDriver, name: &CStr) -> *mut c_void {
            let real = soft.resolve(name);
            match name.to_bytes() {
                $($function => {
                    $name::REAL.store(real, Ordering::Relaxed);
                    $name::call as *mut c_void
                })*
                b"cuGraphLaunch" => {
                    LAUNCH.store(real, Ordering::Relaxed);
                    launch as *mut c_void
                }
                b"cuMemMap" => mapped as *mut c_void,
                _ => real,
            }
        }
    };
}

/// The driver's function, and the word that a launch writes.
static LAUNCH: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
static WORD: AtomicU64 = AtomicU64::new(0);

/// Whether the driver refuses the calls.
static FAILS: AtomicBool = AtomicBool::new(false);

unsafe extern "C" fn launch(exec: CUgraphExec, stream: CUstream) -> u32 {
    type Real = unsafe extern "C" fn(CUgraphExec, CUstream) -> u32;
    let real = LAUNCH.load(Ordering::Relaxed);
    // SAFETY: the driver's function has this type.
    let code = unsafe { std::mem::transmute::<*mut c_void, Real>(real)(exec, stream) };
    goes_on(WORD.load(Ordering::Relaxed));
    code
}

/// The memory is there already.
unsafe extern "C" fn mapped(_: u64) -> u32 {
    OK
}

slow! {
    value b"cuStreamWriteValue32_v2" (stream: CUstream, to: u64, value: u32, flags: u32);
    long b"cuStreamWriteValue64_v2" (stream: CUstream, to: u64, value: u64, flags: u32);
    batch b"cuStreamBatchMemOp_v2" (stream: CUstream, count: u32, operations: *mut c_void, flags: u32);
    to_host b"cuMemcpyDtoHAsync_v2" (to: u64, from: u64, bytes: usize, stream: CUstream);
    on_device b"cuMemcpyDtoDAsync_v2" (to: u64, from: u64, bytes: usize, stream: CUstream);
    any b"cuMemcpyAsync" (to: u64, from: u64, bytes: usize, stream: CUstream);
    halves b"cuMemsetD16Async" (to: u64, value: u16, count: usize, stream: CUstream);
    memset b"cuMemsetD32Async" (to: u64, value: u32, count: usize, stream: CUstream);
}

/// Calls that write so many bytes at an address.
type Write = fn(&Desk<'_>, u64, usize) -> u32;

/// With the widths that each can have.
const WRITES: [(&str, &[usize], Write); 8] = [
    (
        "value 32",
        &[4],
        |p, to, _| call!(p.raw, cuStreamWriteValue32_v2(p.a => CUstream, to => u64, 1 => u32, 0 => u32)),
    ),
    (
        "value 64",
        &[8],
        |p, to, _| call!(p.raw, cuStreamWriteValue64_v2(p.a => CUstream, to => u64, 1 => u64, 0 => u32)),
    ),
    ("batch", &[4], |p, to, bytes| {
        let operation = [bytes as u64 / 2, to, 1, 0, 0, 0];
        call!(p.raw, cuStreamBatchMemOp_v2(p.a => CUstream, 1 => u32,
            operation.as_ptr() => *const u64, 0 => u32))
    }),
    ("copy to the host", &[1, 2, 4, 8, 9], |p, to, bytes| {
        call!(p.raw, cuMemcpyDtoHAsync_v2(to => u64, p.other => u64, bytes => usize,
            p.a => CUstream))
    }),
    ("copy on the device", &[4, 8, 9], |p, to, bytes| {
        call!(p.raw, cuMemcpyDtoDAsync_v2(to => u64, p.other => u64, bytes => usize,
            p.a => CUstream))
    }),
    (
        "copy",
        &[1, 4, 8, 9],
        |p, to, bytes| call!(p.raw, cuMemcpyAsync(to => u64, p.other => u64, bytes => usize, p.a => CUstream)),
    ),
    (
        "memset 16",
        &[2, 4, 8, 10],
        |p, to, bytes| call!(p.raw, cuMemsetD16Async(to => u64, 1 => u16, bytes / 2 => usize, p.a => CUstream)),
    ),
    (
        "memset 32",
        &[4, 8, 12],
        |p, to, bytes| call!(p.raw, cuMemsetD32Async(to => u64, 1 => u32, bytes / 4 => usize, p.a => CUstream)),
    ),
];

/// An address that no thread waits for.
const NOT_AWAITED: u64 = 1;

/// Memory for a flag, and whether the host sees it.
type Where = (&'static str, bool, fn(&Desk<'_>) -> u64);

const PLACES: [Where; 4] = [
    ("pinned", true, |p| word_address(p)),
    ("managed", true, managed),
    ("of a map", true, of_map),
    ("device", false, |p| p.buffer + 64),
];

/// What a stream has done before a flag, another thread may be after before the call returns that
/// has submitted both. In a capture no flag is written, and the host sees none that is longer than
/// eight bytes or on the device.
#[test]
fn a_flag_may_be_seen_before_its_call_returns() {
    aside!();
    let front = Front {
        install: |soft| preload::install(&|name| slowly(soft, name), &settings()),
        resolve: |soft, name| preload::target(name, &|name| slowly(soft, name)),
        ..FRONT
    };
    let each = |(name, writes): (&str, Write),
                (place, visible, memory): Where,
                bytes: usize,
                how: (bool, bool, bool)| {
        let (captured, before, watched) = how;
        let raw = Raw::behind(builder(0), front);
        if !watched {
            // Without the class `host` a value counts as seen at once.
            preload::watch_host(Some("this is a test"), &|_| null_mut());
        }
        let p = Desk::new(&raw, false);
        STREAM.store(p.b.cast(), Ordering::Relaxed);
        MEMORY.store(p.buffer, Ordering::Relaxed);
        word(&p).store(0, Ordering::Release);
        let to = memory(&p);
        p.set(p.a, p.other, 64);
        if before {
            p.writes(p.a);
        }
        if captured {
            p.capture(p.a);
        }
        WORD.store(if visible && !captured { to } else { NOT_AWAITED }, Ordering::Relaxed);
        assert_eq!(writes(&p, to, bytes), OK, "{name}");
        WORD.store(0, Ordering::Relaxed);
        if captured {
            p.end_capture(p.a);
        }
        // What the stream does after the flag is not ordered.
        if !before {
            p.writes(p.a);
        }
        p.end();
        let seen = before && !captured && visible && bytes <= 8;
        let place = format!("{name}, {bytes} bytes, {place}, {how:?}");
        assert_eq!(found().len(), usize::from(!seen), "{place}");
    };
    for (name, widths, writes) in WRITES {
        let write = (name, writes);
        for place in PLACES {
            for how in [(false, true, true), (false, false, true), (true, true, true)] {
                each(write, place, widths[0], how);
            }
        }
        each(write, PLACES[0], widths[0], (false, true, false));
        for (&bytes, place) in widths[1..].iter().zip(PLACES.into_iter().cycle()) {
            each(write, place, bytes, (false, true, true));
        }
        for place in &PLACES[..2] {
            each(write, *place, widths[widths.len() - 1], (false, true, true));
        }
    }
}

/// A word of managed memory, of which nobody looks at the value.
fn managed(p: &Desk<'_>) -> u64 {
    let mut word = 0;
    let code = call!(p.raw, cuMemAllocManaged(&mut word => *mut u64, 64 => usize, 1 => u32));
    assert_eq!(code, OK);
    word
}

/// A word of memory of the host that a map gives.
fn of_map(p: &Desk<'_>) -> u64 {
    let mut word = null_mut();
    // SAFETY: a place for the address.
    let code = unsafe { (p.raw.soft.driver().symbols().cuMemHostAlloc)(&mut word, 64, 0) };
    assert_eq!(code.0, OK);
    let word = word.expose_provenance() as u64;
    let code = call!(p.raw, cuMemMap(word => u64, 64 => usize, 0 => usize, 0 => u64, 0 => u64));
    assert_eq!(code, OK);
    word
}

/// The same of a graph's nodes, as far as the host reads what they write by one load.
#[test]
fn a_flag_of_a_graph_may_be_seen_before_its_launch_returns() {
    aside!();
    let front = Front {
        install: |soft| preload::install(&|name| slowly(soft, name), &settings()),
        resolve: |soft, name| preload::target(name, &|name| slowly(soft, name)),
        ..FRONT
    };
    for (bytes, reports) in [(4, 0), (8, 0), (9, 1)] {
        let raw = Raw::behind(builder(0), front);
        let p = Desk::new(&raw, false);
        let mut word = 0;
        let code = call!(raw, cuMemAllocManaged(&mut word => *mut u64, 64 => usize, 1 => u32));
        assert_eq!(code, OK);
        STREAM.store(p.b.cast(), Ordering::Relaxed);
        MEMORY.store(p.buffer, Ordering::Relaxed);
        WORD.store(word, Ordering::Relaxed);
        p.set(p.a, p.other, 64);
        raw.sync(p.a);
        let exec = p.captured(|| {
            p.writes(p.c);
            p.copy(p.c, word, p.other, bytes);
        });
        let code = call!(raw, cuGraphLaunch(exec => CUgraphExec, p.a => CUstream));
        assert_eq!(code, OK);
        p.end();
        assert_eq!(found().len(), reports, "{bytes} bytes");
    }
}

/// A call that fails in a capture adds no node, though another thread makes a call meanwhile.
#[test]
fn a_captured_flag_that_is_refused_is_no_node() {
    aside!();
    let front = Front {
        install: |soft| preload::install(&|name| slowly(soft, name), &settings()),
        resolve: |soft, name| preload::target(name, &|name| slowly(soft, name)),
        ..FRONT
    };
    for ((name, widths, writes), (place, visible, memory)) in
        WRITES.into_iter().flat_map(|write| PLACES.map(|place| (write, place)))
    {
        // Whether a flag that was written is seen already depends on the time.
        for fails in [true, false].into_iter().take(if visible { 1 } else { 2 }) {
            let raw = Raw::behind(builder(0), front);
            let p = Desk::new(&raw, false);
            STREAM.store(p.b.cast(), Ordering::Relaxed);
            MEMORY.store(p.other + 2048, Ordering::Relaxed);
            let to = memory(&p);
            p.set(p.a, p.other, 64);
            raw.sync(p.a);
            p.capture(p.a);
            p.writes(p.a);
            WORD.store(NOT_AWAITED, Ordering::Relaxed);
            FAILS.store(fails, Ordering::Relaxed);
            let code = writes(&p, to, widths[0]);
            FAILS.store(false, Ordering::Relaxed);
            WORD.store(0, Ordering::Relaxed);
            assert_eq!(code, if fails { INVALID_VALUE } else { OK }, "{name}");
            let exec = p.end_capture(p.a);
            let code = call!(raw, cuGraphLaunch(exec => CUgraphExec, p.a => CUstream));
            assert_eq!(code, OK);
            // What comes before a flag that was seen is ordered.
            p.writes(p.b);
            p.end();
            assert_eq!(found().len(), 1, "{name}, {place}, {fails}");
        }
    }
}
