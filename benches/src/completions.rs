//! Waiting: how soon a waiter learns that an event is done, and what processor time waiting takes.

use core::ffi::c_void;
use core::hint::spin_loop;
use core::pin::pin;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use core::task::{Context as TaskContext, Poll, Waker};
use std::future::Future;
use std::sync::Arc;
use std::task::Wake;
use std::thread::Thread;
use std::time::{Duration, Instant};

use cuda_events::mem_ops::{WaitCondition, WaitValueFlags};
use cuda_events::sys::{CUhostFn, CUresult};
use cuda_events::{Context, Event, EventFlags, Stream, StreamOptions, StreamRef};
use cuda_timelines::Completion;
use serde_json::{Value, json};

use crate::rounds::{percentile, rounded};

/// Work of another length each time, so that its end falls anywhere between two looks of one that
/// looks from time to time.
pub fn short(sample: usize) -> Duration {
    Duration::from_micros(100 + (sample as u64 * 7919) % 211)
}

fn long(sample: usize) -> Duration {
    Duration::from_micros(50_000 + (sample as u64 * 7919) % 2111)
}

pub fn measure(context: &Context, samples: usize, report: &mut impl FnMut(Value)) {
    // Made one after the other, so that the driver gives them different queues and the held one
    // holds up no other.
    let (stream, held) =
        (Stream::new(context, StreamOptions::new()), Stream::new(context, StreamOptions::new()));
    let (stream, held) = (stream.expect("a stream"), held.expect("a stream"));
    let ways: [(&str, EventFlags); 3] = [
        ("synchronize, spinning", EventFlags::empty()),
        ("synchronize, BLOCKING_SYNC", EventFlags::BLOCKING_SYNC),
        (FUTURE, EventFlags::empty()),
    ];
    let mut late: [Vec<f64>; 3] = Default::default();
    for sample in 0..samples {
        for ((way, flags), late) in ways.iter().zip(&mut late) {
            late.extend(lateness(context, &stream, way, *flags, short(sample)));
        }
    }
    for ((way, _), late) in ways.into_iter().zip(late) {
        report(wake_row(way, "100 to 310 us", 0, late));
    }
    // A thread that asks less often the longer it is quiet is late here.
    let late = (0..samples.div_ceil(40))
        .filter_map(|sample| lateness(context, &stream, FUTURE, EventFlags::empty(), long(sample)));
    report(wake_row(FUTURE, "50 ms", 0, late.collect()));
    beside_others(context, &stream, &held, samples, report);
}

const FUTURE: &str = "future";

/// How long after the end of the work its waiter runs, in microseconds; none if it was done before
/// it was waited for.
fn lateness(
    context: &Context,
    stream: &Stream,
    way: &str,
    flags: EventFlags,
    duration: Duration,
) -> Option<f64> {
    let base = Instant::now();
    let event = Event::new(context, flags).expect("an event");
    let work = Box::new(Work { base, duration, ended: AtomicU64::new(0) });
    let data: *const Work = &raw const *work;
    launch(stream, Some(Work::run), data.cast_mut().cast());
    event.record(stream).expect("a record");
    let woken = match way {
        FUTURE => wait(base, event),
        _ => event.synchronize().map(|()| Some(nanoseconds(base))).expect("the event is done"),
    };
    stream.synchronize().expect("the stream is done");
    Some((woken? as f64 - work.ended.load(Ordering::Relaxed) as f64) / 1000.0)
}

pub fn wake_row(way: &str, work: &str, others: usize, mut late: Vec<f64>) -> Value {
    late.sort_by(f64::total_cmp);
    json!({
        "kind": "wake",
        "way": way,
        "work": work,
        "others": others,
        "events": others.min(EVENTS),
        "p50_us": rounded(percentile(&late, 0.5)),
        "p90_us": rounded(percentile(&late, 0.9)),
        "p99_us": rounded(percentile(&late, 0.99)),
        "samples": late.len(),
    })
}

pub fn nanoseconds(base: Instant) -> u64 {
    base.elapsed().as_nanos() as u64
}

/// A host function that takes a while and notes when it ended.
pub struct Work {
    pub base: Instant,
    pub duration: Duration,
    pub ended: AtomicU64,
}

impl Work {
    pub extern "C" fn run(work: *mut c_void) {
        // SAFETY: the box lives until the stream was synchronized.
        let work = unsafe { &*work.cast::<Self>() };
        let started = Instant::now();
        while started.elapsed() < work.duration {
            spin_loop();
        }
        work.ended.store(nanoseconds(work.base), Ordering::Relaxed);
    }
}

pub fn launch(stream: &StreamRef, function: CUhostFn, data: *mut c_void) {
    let symbols = stream.context().driver().symbols();
    // SAFETY: the stream is alive, and the caller passes what the function takes.
    let code = unsafe { (symbols.cuLaunchHostFunc)(stream.as_raw(), function, data) };
    assert_eq!(code, CUresult::CUDA_SUCCESS, "cuLaunchHostFunc failed");
}

pub struct Signal {
    pub base: Instant,
    pub woken: AtomicU64,
    pub waiter: Thread,
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.woken.store(nanoseconds(self.base), Ordering::Release);
        self.waiter.unpark();
    }
}

/// When the event's future was woken; none if it was done before it was waited for.
pub fn wait(base: Instant, event: Event) -> Option<u64> {
    let signal =
        Arc::new(Signal { base, woken: AtomicU64::new(0), waiter: std::thread::current() });
    let waker = Waker::from(Arc::clone(&signal));
    let mut completion = pin!(Completion::new(event));
    if completion.as_mut().poll(&mut TaskContext::from_waker(&waker)).is_ready() {
        return None;
    }
    let started = Instant::now();
    loop {
        std::thread::park_timeout(Duration::from_secs(1));
        assert!(started.elapsed() < Duration::from_secs(20), "no completion was reported for 20 s");
        let woken = signal.woken.load(Ordering::Acquire);
        if woken != 0 {
            return Some(woken);
        }
    }
}

/// How long the processor time is measured.
pub const IDLE: Duration = Duration::from_secs(2);
/// How many events there are; the completions share them, so that no queue of the driver's fills
/// up.
const EVENTS: usize = 64;
/// How long fresh work is measured beside so many others at the most, however late its waiters are.
const BESIDE: Duration = Duration::from_secs(5);

pub struct Count(pub AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Release);
    }
}

/// The processor time while so many completions are pending, and how late fresh ones are then.
fn beside_others(
    context: &Context,
    stream: &Stream,
    held: &Stream,
    samples: usize,
    report: &mut impl FnMut(Value),
) {
    for waiting in [0, 1, 1_000, 10_000] {
        let hold = Hold::new(held);
        let events: Vec<Arc<Event>> = (0..waiting.min(EVENTS))
            .map(|_| Arc::new(held.record_event(EventFlags::empty()).expect("a record")))
            .collect();
        let woken = Arc::new(Count(AtomicUsize::new(0)));
        let waker = Waker::from(Arc::clone(&woken));
        let mut completions: Vec<_> = events
            .iter()
            .cycle()
            .take(waiting)
            .map(|event| Box::pin(Completion::new(Arc::clone(event))))
            .collect();
        for completion in &mut completions {
            let poll = completion.as_mut().poll(&mut TaskContext::from_waker(&waker));
            assert!(matches!(poll, Poll::Pending), "the stream is held");
        }
        std::thread::sleep(IDLE / 4);
        let (cpu, started) = (cpu_time(), Instant::now());
        std::thread::sleep(IDLE);
        let share = (cpu_time() - cpu).as_secs_f64() / started.elapsed().as_secs_f64();
        report(json!({
            "kind": "idle", "waiting": waiting, "events": events.len(),
            "cpu_percent": rounded(share * 100.0),
        }));
        if waiting > 0 {
            let started = Instant::now();
            let late =
                (0..samples).take_while(|_| started.elapsed() < BESIDE).filter_map(|sample| {
                    lateness(context, stream, FUTURE, EventFlags::empty(), short(sample))
                });
            report(wake_row(FUTURE, "100 to 310 us", waiting, late.collect()));
        }
        drop(hold);
        while woken.0.load(Ordering::Acquire) < waiting {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Holds a stream until it is dropped. A host function that blocks would hold up those of all other
/// streams too.
pub struct Hold<'a> {
    stream: &'a StreamRef,
    word: *mut c_void,
}

impl<'a> Hold<'a> {
    pub fn new(stream: &'a StreamRef) -> Self {
        const DEVICEMAP: u32 = 2;
        let symbols = stream.context().driver().symbols();
        let (mut word, mut address) = (null_mut(), 0);
        // SAFETY: a place for the memory; the context is current.
        let code = unsafe { (symbols.cuMemHostAlloc)(&mut word, 64, DEVICEMAP) };
        assert_eq!(code, CUresult::CUDA_SUCCESS, "cuMemHostAlloc failed");
        let hold = Self { stream, word };
        hold.word().store(0, Ordering::SeqCst);
        // SAFETY: a place for the address; the memory is mapped.
        let code = unsafe { (symbols.cuMemHostGetDevicePointer_v2)(&mut address, word, 0) };
        assert_eq!(code, CUresult::CUDA_SUCCESS, "cuMemHostGetDevicePointer failed");
        // SAFETY: the memory is freed when the stream is done.
        let held = unsafe {
            stream.wait_value32(address, 1, WaitCondition::Equal, WaitValueFlags::empty())
        };
        held.expect("a wait for a value in memory");
        hold
    }

    fn word(&self) -> &AtomicU32 {
        // SAFETY: 64 bytes that live as long as this; all others that look at them only read.
        unsafe { &*self.word.cast::<AtomicU32>() }
    }
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        self.word().store(1, Ordering::SeqCst);
        self.stream.synchronize().expect("the stream is done");
        // SAFETY: nothing looks at it any more.
        unsafe { (self.stream.context().driver().symbols().cuMemFreeHost)(self.word) };
    }
}

/// What this process has used, in user and system mode.
pub fn cpu_time() -> Duration {
    // SAFETY: plain numbers, for which zero is a value.
    let mut usage: libc::rusage = unsafe { core::mem::zeroed() };
    // SAFETY: a place for the answer.
    let code = unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut usage) };
    assert_eq!(code, 0, "the process has no usage");
    let time =
        |time: libc::timeval| Duration::new(time.tv_sec.unsigned_abs(), time.tv_usec as u32 * 1000);
    time(usage.ru_utime) + time(usage.ru_stime)
}
