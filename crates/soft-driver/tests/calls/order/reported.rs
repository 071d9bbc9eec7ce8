//! Programs whose order is made on the host. With `HostOrder::Reported` an error among threads is
//! reported whichever thread comes first. One that a host function or a value in host memory would
//! hide is reported although the function has run, or the value was written, before.

use std::cell::Cell;
use std::ptr::{from_ref, null_mut};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use cuda_events::sys::*;
use cuda_soft_driver::{HostOrder, OrderCheck, SoftDriver};

use super::each;
use crate::common::*;
use cuda_events_test_support::aside;
use cuda_events_test_support::planted::desk::synchronous_copy;
use cuda_events_test_support::planted::*;

const DESTROYED: &str = "error: missing order: an object is destroyed";

/// Whose turn it is, of two threads. The checker knows of no order by it.
#[derive(Default)]
struct Turns(Mutex<usize>, Condvar);

/// What two threads use of a desk, one after the other.
struct Shared<'a>(&'a Desk<'a>, CUcontext, Turns);

// SAFETY: the handles are good in each thread, and the turns keep the threads apart.
unsafe impl Sync for Shared<'_> {}

type Body = fn(&Desk<'_>) -> u64;

impl Shared<'_> {
    fn run(&self, turn: usize, body: Body) -> u64 {
        let mut now = self.2.0.lock().unwrap();
        while *now < turn {
            now = self.2.1.wait(now).unwrap();
        }
        drop(now);
        let soft = &self.0.raw.soft;
        self.0.raw.set_current(self.1);
        let number = body(self.0);
        soft.hand_over(token(self.0, 1));
        *self.2.0.lock().unwrap() += 1;
        self.2.1.notify_all();
        number
    }
}

/// Numbers that each desk has for itself.
fn token(p: &Desk<'_>, number: u64) -> u64 {
    p.pinned.addr() as u64 + number
}

/// Runs each body in a thread of its own, the second one first if they are `turned`. Both are
/// joined.
fn threads(p: &Desk<'_>, turned: bool, one: Body, two: Body) -> Pair {
    let shared = &Shared(p, p.context(), Turns::default());
    let pair = std::thread::scope(|scope| {
        let one = scope.spawn(move || shared.run(usize::from(turned), one));
        let two = scope.spawn(move || shared.run(usize::from(!turned), two));
        (one.join().unwrap(), two.join().unwrap())
    });
    p.raw.soft.take_over(token(p, 1));
    pair
}

fn hands_over(p: &Desk<'_>) {
    p.raw.soft.hand_over(token(p, 2));
}

fn takes_over(p: &Desk<'_>) {
    p.raw.soft.take_over(token(p, 2));
}

/// The bodies have no order in the faulty program, so that each comes first on half of the seeds.
fn any_order(p: &Desk<'_>, seed: u64, one: Body, two: Body) -> Pair {
    threads(p, !p.mended && seed % 2 == 1, one, two)
}

/// A stream writes the word in pinned memory.
fn signal(p: &Desk<'_>, stream: CUstream, value: u32) {
    let write = p.raw.cuStreamWriteValue32_v2.unwrap();
    p.number(unsafe { write(stream, word_address(p), value, 0) });
}

fn await_value(p: &Desk<'_>, stream: CUstream, value: u32) {
    let wait = p.raw.cuStreamWaitValue32_v2.unwrap();
    p.number(unsafe { wait(stream, word_address(p), value, GEQ) });
}

/// Goes on when this is so. What it asks the driver meanwhile is about nothing.
fn until(p: &Desk<'_>, so: impl Fn() -> bool) {
    while !so() {
        p.raw.busy(p.c);
    }
}

fn until_written(p: &Desk<'_>, value: u32) {
    until(p, || word(p).load(Ordering::Acquire) == value);
}

type Row = (&'static str, &'static str, fn(&Desk<'_>, u64) -> Pair);

#[rustfmt::skip] // A row in few lines.
const ROWS: &[Row] = &[
    ("a thread has waited, and another one was not told", RACE, |p, seed| {
        any_order(p, seed, |p| {
            let one = p.writes(p.a);
            p.raw.sync(p.a);
            if p.mended { hands_over(p); }
            one
        }, |p| {
            if p.mended { takes_over(p); }
            p.reads(p.b)
        })
    }),
    ("a thread hands over, and then waits", RACE, |p, seed| {
        any_order(p, seed, |p| {
            let one = p.writes(p.a);
            if !p.mended { hands_over(p); }
            p.raw.sync(p.a);
            if p.mended { hands_over(p); }
            one
        }, |p| { takes_over(p); p.reads(p.b) })
    }),
    ("a thread asks an event, and another one was not told", RACE, |p, seed| {
        any_order(p, seed, |p| {
            let one = p.writes(p.a);
            p.record(0, p.a);
            while p.raw.query(p.e[0]) != OK {}
            if p.mended { hands_over(p); }
            one
        }, |p| {
            if p.mended { takes_over(p); }
            p.reads(p.b)
        })
    }),
    ("the host writes in a thread, a stream reads for another one", RACE, |p, seed| {
        any_order(p, seed, |p| {
            let one = p.host_writes();
            if p.mended { hands_over(p); }
            one
        }, |p| {
            if p.mended { takes_over(p); }
            p.upload(p.b)
        })
    }),
    ("a joined thread, of which nobody was told", RACE, |p, _| {
        let shared = &Shared(p, p.context(), Turns::default());
        let one = std::thread::scope(|scope| {
            let one = scope.spawn(move || shared.run(0, |p| {
                let one = p.writes(p.a);
                p.raw.sync(p.a);
                one
            }));
            one.join().unwrap()
        });
        if p.mended { p.raw.soft.take_over(token(p, 1)); }
        (one, p.reads(p.b))
    }),
    ("an event is destroyed while another thread records it", DESTROYED, |p, _| {
        threads(p, false, |p| {
            let one = p.record(0, p.a);
            if p.mended { hands_over(p); }
            one
        }, |p| {
            if p.mended { takes_over(p); }
            p.number(unsafe { (p.raw.cuEventDestroy_v2)(p.e[0]) })
        })
    }),

    // Who has waited, where host functions and other threads come between.
    ("a host function runs, and the thread waits for the stream", RACE, |p, _| {
        let one = p.writes(p.a);
        p.raw.host(p.a, || {});
        if p.mended { p.raw.sync(p.a); }
        (one, p.reads(p.b))
    }),
    ("a host function runs, and the thread waits for the event", RACE, |p, _| {
        let one = p.writes(p.a);
        p.raw.host(p.a, || {});
        p.record(0, p.a);
        if p.mended { p.event_sync(0); }
        (one, p.reads(p.b))
    }),
    ("a host function runs, and the thread waits for the context", RACE, |p, _| {
        let one = p.writes(p.a);
        p.raw.host(p.a, || {});
        if p.mended { p.number(unsafe { (p.raw.cuCtxSynchronize)() }); }
        (one, p.reads(p.b))
    }),
    ("a host function runs, and the thread waits in a copy", RACE, |p, _| {
        let one = p.get(p.a, p.buffer, 64);
        p.raw.host(p.a, || {});
        p.record(0, p.a);
        p.wait(legacy(), 0);
        let to = p.pinned;
        if p.mended { p.number(unsafe { synchronous_copy(p)(to, p.other, 64) }); }
        (one, p.writes(p.b))
    }),
    ("a host function runs, and the thread ends the context", RACE, |p, _| {
        let (one, two) = (Cell::new(0), Cell::new(0));
        p.elsewhere(|_| {
            let stream = p.raw.stream(NON_BLOCKING);
            one.set(p.writes(stream));
            p.raw.host(stream, || {});
            if !p.mended { two.set(p.reads(p.b)); }
        });
        if p.mended { two.set(p.reads(p.b)); }
        (one.get(), two.get())
    }),
    ("a thread waits, and another one makes calls meanwhile", RACE, |p, _| {
        let shared = &Shared(p, p.context(), Turns::default());
        let one = std::thread::scope(|scope| {
            let waits = scope.spawn(move || {
                let (shared, mut ended) = (shared, null_mut());
                let p = shared.0;
                p.number(unsafe { (p.raw.cuCtxCreate_v2)(&mut ended, 0, 0) });
                let stream = p.raw.stream(NON_BLOCKING);
                let one = p.writes(stream);
                await_value(p, stream, 1);
                p.number(unsafe { (p.raw.cuCtxDestroy_v2)(ended) });
                hands_over(p);
                one
            });
            while p.raw.soft.waiting_for_work() == 0 { std::thread::yield_now(); }
            p.raw.busy(p.c);
            word(p).store(1, Ordering::Release);
            while !waits.is_finished() { p.raw.busy(p.c); }
            waits.join().unwrap()
        });
        word(p).store(0, Ordering::Release);
        if p.mended { takes_over(p); }
        let two = p.reads(p.b);
        takes_over(p);
        (one, two)
    }),

    // What the host may have seen.
    ("a host function that has run", RACE, |p, _| {
        let one = p.writes(p.a);
        let ran = Arc::new(AtomicBool::new(false));
        let (has_run, token) = (ran.clone(), token(p, 2));
        let soft = p.mended.then(|| from_ref(&p.raw.soft).expose_provenance());
        p.raw.host(p.a, move || {
            if let Some(soft) = soft {
                // SAFETY: the driver waits for its host functions before it ends.
                let soft = unsafe { &*std::ptr::with_exposed_provenance::<SoftDriver>(soft) };
                soft.hand_over(token);
            }
            has_run.store(true, Ordering::Release);
        });
        until(p, || ran.load(Ordering::Acquire));
        if p.mended { takes_over(p); }
        (one, p.reads(p.b))
    }),
    ("a value in pinned memory that is there", RACE, |p, _| {
        let one = p.writes(p.a);
        signal(p, p.a, 1);
        until_written(p, 1);
        if p.mended { p.raw.soft.host_saw(from_ref(word(p)).cast::<u32>(), 1); }
        (one, p.reads(p.b))
    }),
    ("a value in pinned memory, and another stream waits for it", RACE, |p, _| {
        let one = p.writes(p.a);
        signal(p, p.a, 1);
        until_written(p, 1);
        await_value(p, if p.mended { p.b } else { p.c }, 1);
        (one, p.reads(p.b))
    }),
    ("a value in pinned memory is written before the work", RACE, |p, _| {
        if !p.mended { signal(p, p.a, 1); }
        let one = p.writes(p.a);
        if p.mended { signal(p, p.a, 1); }
        await_value(p, p.b, 1);
        (one, p.reads(p.b))
    }),
    ("too low a value in pinned memory is waited for", RACE, |p, _| {
        signal(p, p.a, 1);
        let one = p.writes(p.a);
        signal(p, p.a, 2);
        until_written(p, 2);
        await_value(p, p.b, if p.mended { 2 } else { 1 });
        (one, p.reads(p.b))
    }),
    ("the host has seen an earlier value in pinned memory", RACE, |p, _| {
        signal(p, p.a, 1);
        until_written(p, 1);
        p.raw.soft.host_saw(from_ref(word(p)).cast::<u32>(), 1);
        let one = p.download(p.a);
        signal(p, p.a, 2);
        until_written(p, 2);
        if p.mended { p.raw.soft.host_saw(from_ref(word(p)).cast::<u32>(), 2); }
        (one, p.host_reads())
    }),
];

#[test]
fn each_declared_error_is_reported_on_every_seed() {
    aside!();
    for seed in 0..SEEDS {
        let raw = Raw::planting(builder(seed).order_host(HostOrder::Reported));
        for (kind, begins, program) in ROWS {
            each(&raw, seed, kind, begins, |desk| program(desk, seed));
        }
    }
}

/// What is told, and what a new thread knows, is order: nothing is reported.
#[test]
fn declared_order_gives_no_report() {
    aside!();
    let raw = Raw::planting(builder(0).order_host(HostOrder::Reported));
    for round in 0..20 {
        let desk = Desk::new(&raw, true);
        let p = &desk;
        // Threads that have ended keep later ones from knowing nothing.
        threads(p, false, |p| p.reads(p.a), |p| p.reads(p.b));
        p.raw.sync(p.b);
        // One thread uploads ordinary memory that another one only reads.
        static PAGE: [u8; 64] = [1; 64];
        let upload = |p: &Desk<'_>| {
            let upload: unsafe extern "C" fn(CUdeviceptr, *const u8, usize) -> CUresult =
                unsafe { std::mem::transmute(p.raw.resolve(c"cuMemcpyHtoD_v2")) };
            p.number(unsafe { upload(p.buffer, PAGE.as_ptr(), 64) })
        };
        let reads = |p: &Desk<'_>| {
            p.raw.soft.host_reads(&PAGE, 64);
            0
        };
        p.raw.sync(p.a);
        threads(p, round % 2 == 1, upload, reads);
        p.raw.sync(null_mut());
        // A stream goes on when the host stores the value: any thread may have done that.
        await_value(p, p.b, 1);
        p.reads(p.b);
        p.raw.sync(p.a);
        p.writes(p.a);
        p.raw.sync(p.a);
        word(p).store(1, Ordering::Release);
        p.raw.sync(p.b);
        word(p).store(0, Ordering::Release);
        desk.end();
        assert_eq!(order_texts(&raw.soft), [""; 0], "round {round}");
    }
}

/// Threads without a name of their own are told apart.
#[test]
fn reports_distinguish_threads() {
    aside!();
    let builder = SoftDriver::builder().check_order(OrderCheck::Report);
    let raw = Raw::planting(builder.order_host(HostOrder::Reported));
    let desk = Desk::new(&raw, false);
    threads(&desk, false, |p| p.writes(p.a), |p| p.reads(p.b));
    desk.end();
    let found = order_texts(&raw.soft).concat();
    let by: Vec<&str> = found
        .lines()
        .filter_map(|line| line.split_once(", by thread "))
        .map(|(_, name)| name)
        .collect();
    assert!(by.len() == 2 && by[0] != by[1], "{found}");
}

/// The per-thread default streams of two threads have one handle, and two names.
#[test]
fn reports_distinguish_per_thread_default_streams() {
    aside!();
    let builder = SoftDriver::builder().check_order(OrderCheck::Report);
    let raw = Raw::planting(builder);
    let desk = Desk::new(&raw, false);
    let sets: Body = |p| p.set(std::ptr::without_provenance_mut(2), p.buffer, 64);
    threads(&desk, false, sets, sets);
    desk.end();
    let found = raw.soft.order_findings().remove(0).order;
    let order = found.strip_prefix("stream ").unwrap();
    let (one, two) = order.split_once(" is not after any call on stream ").unwrap();
    assert!(one.starts_with("0x2 (the per-thread default stream of thread "), "{found}");
    assert!(two.starts_with("0x2 (the per-thread default stream of thread "), "{found}");
    assert_ne!(one, two);
}

/// A value is read as what its reader takes it for: only so many bytes are one.
#[test]
#[should_panic(expected = "this stream, value or driver accepts no report")]
fn a_value_has_four_or_eight_bytes() {
    let raw = Raw::planting(SoftDriver::builder().check_order(OrderCheck::Report));
    raw.soft.host_saw(from_ref(&AtomicU32::new(0)).cast::<u32>(), 0);
    raw.soft.host_saw(from_ref(&0_u16), 0);
}
