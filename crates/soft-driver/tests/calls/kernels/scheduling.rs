//! What runs beside kernels, in which order and at which time.

use crate::common;

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use common::*;
use cuda_events_test_support::own_process;
use cuda_soft_driver::{Scheduler, SoftDriver, Time};

use super::{Handle, NON_BLOCKING, WORDS, contents, function, launch, memory, register_add};

/// A module's load waits for the work of the device, and a library's where all code is loaded at
/// once.
#[test]
fn what_loads_code_waits() {
    own_process!();
    let raw = Raw::with(SoftDriver::builder().time(Time::Virtual));
    raw.soft.kernel("kernel", |_| ());
    let stream = raw.stream(NON_BLOCKING);
    for (mode, module, library) in [("LAZY", true, false), ("EAGER", true, true)] {
        // SAFETY: no other thread of this process looks at its environment.
        unsafe { std::env::set_var("CUDA_MODULE_LOADING", mode) };
        let waits = |load: &dyn Fn(&mut Handle) -> u32| {
            raw.keep_busy(stream, Duration::from_secs(3600));
            assert_eq!(load(&mut null_mut()), OK, "{mode}");
            let waited = !raw.busy(stream);
            raw.sync(stream);
            waited
        };
        let image = || c"anything".as_ptr().cast();
        let waited = waits(
            &|out| call!(raw, cuModuleLoadData(out => *mut Handle, image() => *const c_void)),
        );
        assert_eq!(waited, module, "{mode}: a module");
        let none = null_mut::<c_void>;
        let waited = waits(&|out| {
            call!(raw, cuLibraryLoadData(out => *mut Handle, image() => *const c_void,
                none() => *mut c_void, none() => *mut c_void, 0 => u32,
                none() => *mut c_void, none() => *mut c_void, 0 => u32))
        });
        assert_eq!(waited, library, "{mode}: a library");
    }
}

/// Kernels of two streams that wait for each other run at the same time, and a kernel that waits
/// for the host does not hold up copies.
#[test]
fn kernels_run_beside_each_other() {
    let raw = Raw::new();
    let arrived = Arc::new(AtomicU32::new(0));
    let meet = arrived.clone();
    raw.soft.kernel("meet", move |_| {
        meet.fetch_add(1, Ordering::SeqCst);
        while meet.load(Ordering::SeqCst) < 5 {
            std::thread::yield_now();
        }
    });
    let (meet, address) = (function(&raw, c"meet"), memory(&raw));
    let streams = [(); 4].map(|()| raw.stream(NON_BLOCKING));
    for stream in streams {
        assert_eq!(launch(&raw, meet, stream, 0, 0), OK);
    }
    let other = raw.stream(NON_BLOCKING);
    assert_eq!(unsafe { (raw.cuMemsetD32Async)(address, 7, WORDS, other) }.0, OK);
    raw.sync(other);
    assert!(streams.iter().all(|stream| raw.busy(*stream)));
    arrived.fetch_add(1, Ordering::SeqCst);
    for stream in streams {
        raw.sync(stream);
    }
}

/// As many kernels run at a time as on a GPU, and copies go on beside them.
#[test]
fn many_kernels_run_beside_each_other() {
    const KERNELS: usize = 128;
    let raw = Raw::new();
    let address = memory(&raw);
    let (arrived, open) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let (here, gate) = (arrived.clone(), open.clone());
    raw.soft.kernel("waits", move |_| {
        here.fetch_add(1, Ordering::SeqCst);
        while gate.load(Ordering::SeqCst) == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    let waits = function(&raw, c"waits");
    let streams = [(); KERNELS + 2].map(|()| raw.stream(NON_BLOCKING));
    for stream in streams {
        assert_eq!(launch(&raw, waits, stream, 0, 0), OK);
    }
    let all = Instant::now() + Duration::from_secs(60);
    while arrived.load(Ordering::SeqCst) < KERNELS as u32 {
        assert!(Instant::now() < all, "{arrived:?} kernels run");
        std::thread::sleep(Duration::from_millis(1));
    }
    let other = raw.stream(NON_BLOCKING);
    assert_eq!(unsafe { (raw.cuMemsetD32Async)(address, 7, WORDS, other) }.0, OK);
    raw.sync(other);
    assert_eq!(arrived.load(Ordering::SeqCst), KERNELS as u32);
    open.store(1, Ordering::SeqCst);
    for stream in streams {
        raw.sync(stream);
    }
}

/// The first copies of a program go on beside kernels, too.
#[test]
fn copies_run_beside_kernels() {
    let raw = Raw::new();
    let (mut address, open) = (0, Arc::new(AtomicU32::new(0)));
    assert_eq!(unsafe { (raw.cuMemAlloc_v2)(&mut address, 4 * WORDS) }.0, OK);
    let gate = open.clone();
    raw.soft.kernel("waits", move |_| {
        while gate.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
    });
    let waits = function(&raw, c"waits");
    let streams = [(); 3].map(|()| raw.stream(NON_BLOCKING));
    for stream in streams {
        assert_eq!(launch(&raw, waits, stream, 0, 0), OK);
    }
    let other = raw.stream(NON_BLOCKING);
    let event = raw.event(2);
    assert_eq!(unsafe { (raw.cuMemsetD32Async)(address, 7, WORDS, other) }.0, OK);
    raw.record(event, other);
    let soon = Instant::now() + Duration::from_secs(60);
    while raw.query(event) == NOT_READY && Instant::now() < soon {
        std::thread::yield_now();
    }
    let done = raw.query(event);
    open.store(1, Ordering::SeqCst);
    assert_eq!(done, OK);
}

/// A kernel is work of its stream: it is after what takes virtual time, and takes none.
#[test]
fn a_kernel_in_virtual_time() {
    let raw = Raw::with(SoftDriver::builder().time(Time::Virtual));
    register_add(&raw.soft);
    let (add, address) = (function(&raw, c"add"), memory(&raw));
    let stream = raw.stream(NON_BLOCKING);
    let (start, end) = (raw.event(0), raw.event(0));
    raw.record(start, stream);
    raw.keep_busy(stream, Duration::from_secs(3600));
    assert_eq!(launch(&raw, add, stream, address, 1), OK);
    raw.record(end, stream);
    raw.soft.advance(Duration::from_secs(3599));
    assert_eq!(raw.query(end), NOT_READY);
    raw.sync(stream);
    assert_eq!(raw.elapsed(start, end), Ok(3_600_000.0));
    assert_eq!(contents(&raw, address), [2; WORDS]);
}

/// Virtual time goes on while a kernel runs, which may wait for the very thread that waits.
#[test]
fn virtual_time_beside_a_kernel() {
    let raw = Raw::with(SoftDriver::builder().time(Time::Virtual));
    let open = Arc::new(AtomicU32::new(0));
    let word = open.clone();
    raw.soft.kernel("latch", move |_| {
        while word.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
    });
    let latch = function(&raw, c"latch");
    let (held, other) = (raw.stream(NON_BLOCKING), raw.stream(NON_BLOCKING));
    assert_eq!(launch(&raw, latch, held, 0, 0), OK);
    raw.keep_busy(other, Duration::from_secs(3600));
    raw.sync(other);
    assert!(raw.busy(held));
    open.store(1, Ordering::SeqCst);
    raw.sync(held);
}

/// A random order of independent work, in which a kernel is as any other.
#[test]
fn kernels_in_a_random_order() {
    let orders = [(); 2].map(|()| {
        let raw = Raw::with(SoftDriver::builder().scheduler(Scheduler::Seeded(7)));
        let ran = Arc::new(Mutex::new(Vec::new()));
        let order = ran.clone();
        let kernel = raw.soft.kernel("note", move |launch| {
            order.lock().unwrap().push(launch.parameter::<u32>(1));
        });
        kernel.parameters(&[8, 4]);
        let note = function(&raw, c"note");
        let streams = [(); 4].map(|()| raw.stream(NON_BLOCKING));
        for number in 0..16 {
            assert_eq!(launch(&raw, note, streams[number as usize % 4], 0, number), OK);
        }
        for stream in streams {
            raw.sync(stream);
        }
        drop(raw);
        Arc::into_inner(ran).unwrap().into_inner().unwrap()
    });
    assert_eq!(orders[0], orders[1]);
    assert_ne!(orders[0], (0..16).collect::<Vec<u32>>());
    for stream in 0..4 {
        let of_stream = orders[0].iter().filter(|number| **number % 4 == stream);
        assert!(of_stream.is_sorted());
    }
}

/// A kernel calls no function of the driver.
#[test]
fn a_kernel_that_calls_the_driver() {
    let raw = Raw::new();
    let (query, free) = (raw.cuCtxSynchronize, raw.cuMemFree_v2);
    let mut memory = 0;
    assert_eq!(unsafe { (raw.cuMemAlloc_v2)(&mut memory, 64) }.0, OK);
    let (send, receive) = std::sync::mpsc::channel();
    raw.soft.kernel("calls", move |_| {
        // No context need be current to free memory.
        send.send(unsafe { [query().0, free(memory).0] }).unwrap();
    });
    let calls = function(&raw, c"calls");
    assert_eq!(launch(&raw, calls, legacy(), 0, 0), OK);
    raw.sync(legacy());
    assert_eq!(receive.try_recv(), Ok([NOT_PERMITTED; 2]));
}
