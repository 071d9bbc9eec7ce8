//! Values that another thread sees before the call returns that has submitted them.

use std::ffi::CStr;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use cuda_order_check_preload as preload;

use super::front::{FRONT, found, settings};
use super::*;

/// The stream that another thread uses once it has seen the value, and the memory there.
static STREAM: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
static MEMORY: AtomicU64 = AtomicU64::new(0);

/// Another thread sees that the word has changed, and goes on.
fn goes_on(word: u64) {
    let word: *mut u32 = std::ptr::with_exposed_provenance_mut(word as usize);
    // SAFETY: a word of pinned memory that a stream writes.
    while unsafe { AtomicU32::from_ptr(word) }.load(Ordering::Acquire) == 0 {
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
    ($($name:ident $function:literal [$word:ident] ($($argument:ident: $ty:ty),*);)*) => {
        $(mod $name {
            use super::*;

            pub(super) static REAL: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

            pub(super) unsafe extern "C" fn call($($argument: $ty),*) -> u32 {
                type Real = unsafe extern "C" fn($($ty),*) -> u32;
                let real = REAL.load(Ordering::Relaxed);
                // SAFETY: the driver's function has this type.
                let code = unsafe { std::mem::transmute::<*mut c_void, Real>(real)($($argument),*) };
                goes_on($word);
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
    value b"cuStreamWriteValue32_v2" [to] (stream: CUstream, to: u64, value: u32, flags: u32);
    copy b"cuMemcpyDtoHAsync_v2" [to] (to: u64, from: u64, bytes: usize, stream: CUstream);
    memset b"cuMemsetD32Async" [to] (to: u64, value: u32, count: usize, stream: CUstream);
}

type Kind = (&'static str, fn(&Desk<'_>) -> u32);

/// A word of managed memory, of which nobody looks at the value.
fn managed(p: &Desk<'_>) -> u64 {
    let mut word = 0;
    let code = call!(p.raw, cuMemAllocManaged(&mut word => *mut u64, 4 => usize, 1 => u32));
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

const KINDS: [Kind; 6] = [
    ("a copy to memory of a map", |p| {
        call!(p.raw, cuMemcpyDtoHAsync_v2(of_map(p) => u64, p.other => u64, 4 => usize,
            p.a => CUstream))
    }),
    ("a value", |p| {
        call!(p.raw, cuStreamWriteValue32_v2(p.a => CUstream, word_address(p) => u64, 1 => u32,
            0 => u32))
    }),
    ("a copy", |p| {
        call!(p.raw, cuMemcpyDtoHAsync_v2(word_address(p) => u64, p.other => u64, 4 => usize,
            p.a => CUstream))
    }),
    ("a copy to managed memory", |p| {
        call!(p.raw, cuMemcpyDtoHAsync_v2(managed(p) => u64, p.other => u64, 4 => usize,
            p.a => CUstream))
    }),
    (
        "a memset of managed memory",
        |p| call!(p.raw, cuMemsetD32Async(managed(p) => u64, 1 => u32, 1 => usize, p.a => CUstream)),
    ),
    ("a memset", |p| {
        call!(p.raw, cuMemsetD32Async(word_address(p) => u64, 1 => u32, 1 => usize,
            p.a => CUstream))
    }),
];

#[test]
fn a_value_may_be_seen_before_its_call_returns() {
    aside("a_value_may_be_seen_before_its_call_returns", || {
        let front = Front {
            install: |soft| preload::install(&|name| slowly(soft, name), &settings()),
            resolve: |soft, name| preload::target(name, &|name| slowly(soft, name)),
            ..FRONT
        };
        for (what, writes) in KINDS {
            // Without the class `host` a value counts as seen at once.
            for (before, watched) in [(true, true), (false, true), (true, false)] {
                let raw = Raw::behind(builder(0), front);
                if !watched {
                    preload::watch_host(Some("this is a test"), &|_| null_mut());
                }
                let p = Desk::new(&raw, false);
                STREAM.store(p.b.cast(), Ordering::Relaxed);
                MEMORY.store(p.buffer, Ordering::Relaxed);
                word(&p).store(0, Ordering::Release);
                p.set(p.a, p.other, 64);
                if before {
                    p.writes(p.a);
                }
                assert_eq!(writes(&p), OK);
                if !before {
                    p.writes(p.a);
                }
                p.end();
                // What the stream does after the value is not ordered.
                assert_eq!(found().len(), usize::from(!before), "{what}");
            }
        }
    });
}

/// The same of a graph's nodes, as far as the host reads what they write by one load.
#[test]
fn a_flag_of_a_graph_may_be_seen_before_its_launch_returns() {
    aside("a_flag_of_a_graph_may_be_seen_before_its_launch_returns", || {
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
    });
}
