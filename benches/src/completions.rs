//! Waiting: how soon a waiter learns that an event is done, and what processor time waiting takes.

use core::ffi::c_void;
use core::hint::spin_loop;
use core::pin::pin;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use core::task::{Context as TaskContext, Poll, Waker};
use std::future::Future;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::task::Wake;
use std::thread::Thread;
use std::time::{Duration, Instant};

use cuda_events::sys::{CUhostFn, CUresult};
use cuda_events::{BorrowedStream, Completion, Context, Event, EventFlags, Stream, StreamOptions};
use serde_json::{Value, json};

use crate::rounds::{percentile, rounded};

pub fn measure(context: &Context, samples: usize, report: &mut impl FnMut(Value)) {
    let stream = Stream::new(context, StreamOptions::new()).expect("a stream");
    let ways: [(&str, EventFlags); 3] = [
        ("synchronize, spinning", EventFlags::empty()),
        ("synchronize, BLOCKING_SYNC", EventFlags::BLOCKING_SYNC),
        ("future", EventFlags::empty()),
    ];
    let base = Instant::now();
    let mut late: [Vec<f64>; 3] = Default::default();
    for sample in 0..samples {
        for ((way, flags), late) in ways.iter().zip(&mut late) {
            let event = Event::new(context, *flags).expect("an event");
            // So that the end falls anywhere between two looks of whoever looks from time to time.
            let work = Duration::from_micros(100 + (sample as u64 * 7919) % 211);
            let work = Box::new(Work { base, duration: work, ended: AtomicU64::new(0) });
            let data: *const Work = &raw const *work;
            launch(&stream, Some(Work::run), data.cast_mut().cast());
            event.record(&stream).expect("a record");
            let woken = match *way {
                "future" => wait(base, event),
                _ => event.synchronize().map(|()| Some(nanoseconds(base))).expect("the event is done"),
            };
            stream.synchronize().expect("the stream is done");
            if let Some(woken) = woken {
                late.push((woken as f64 - work.ended.load(Ordering::Relaxed) as f64) / 1000.0);
            }
        }
    }
    for ((way, _), mut late) in ways.into_iter().zip(late) {
        late.sort_by(f64::total_cmp);
        report(json!({
            "kind": "wake",
            "way": way,
            "p50_us": rounded(percentile(&late, 0.5)),
            "p90_us": rounded(percentile(&late, 0.9)),
            "p99_us": rounded(percentile(&late, 0.99)),
            "samples": late.len(),
        }));
    }
    idle(context, report);
}

fn nanoseconds(base: Instant) -> u64 {
    base.elapsed().as_nanos() as u64
}

/// A host function that takes a while and notes when it ended.
struct Work {
    base: Instant,
    duration: Duration,
    ended: AtomicU64,
}

impl Work {
    extern "C" fn run(work: *mut c_void) {
        // SAFETY: the box lives until the stream was synchronized.
        let work = unsafe { &*work.cast::<Self>() };
        let started = Instant::now();
        while started.elapsed() < work.duration {
            spin_loop();
        }
        work.ended.store(nanoseconds(work.base), Ordering::Relaxed);
    }
}

fn launch(stream: &BorrowedStream, function: CUhostFn, data: *mut c_void) {
    let symbols = stream.context().driver().symbols();
    // SAFETY: the stream is alive, and the caller passes what the function takes.
    let code = unsafe { (symbols.cuLaunchHostFunc)(stream.as_raw(), function, data) };
    assert_eq!(code, CUresult::CUDA_SUCCESS, "cuLaunchHostFunc failed");
}

struct Signal {
    base: Instant,
    woken: AtomicU64,
    waiter: Thread,
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.woken.store(nanoseconds(self.base), Ordering::Release);
        self.waiter.unpark();
    }
}

/// When the event's future was woken; none if it was done before it was waited for.
fn wait(base: Instant, event: Event) -> Option<u64> {
    let signal = Arc::new(Signal { base, woken: AtomicU64::new(0), waiter: std::thread::current() });
    let waker = Waker::from(Arc::clone(&signal));
    let mut completion = pin!(Completion::new(event));
    if completion.as_mut().poll(&mut TaskContext::from_waker(&waker)).is_ready() {
        return None;
    }
    loop {
        std::thread::park();
        let woken = signal.woken.load(Ordering::Acquire);
        if woken != 0 {
            return Some(woken);
        }
    }
}

/// How long the processor time is measured.
const IDLE: Duration = Duration::from_secs(2);
/// How many events there are; the completions share them, so that no queue of the driver's fills up.
const EVENTS: usize = 64;

struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Release);
    }
}

fn idle(context: &Context, report: &mut impl FnMut(Value)) {
    let stream = Stream::new(context, StreamOptions::new()).expect("a stream");
    for waiting in [0, 1, 1_000, 10_000] {
        let (release, receiver) = sync_channel::<()>(0);
        let receiver = Box::into_raw(Box::new(receiver));
        launch(&stream, Some(hold), receiver.cast());
        let events: Vec<Arc<Event>> =
            (0..EVENTS).map(|_| Arc::new(stream.record_event(EventFlags::empty()).expect("a record"))).collect();
        let woken = Arc::new(Count(AtomicUsize::new(0)));
        let waker = Waker::from(Arc::clone(&woken));
        let mut completions: Vec<_> =
            events.iter().cycle().take(waiting).map(|event| Box::pin(Completion::new(Arc::clone(event)))).collect();
        for completion in &mut completions {
            let poll = completion.as_mut().poll(&mut TaskContext::from_waker(&waker));
            assert!(matches!(poll, Poll::Pending), "the stream is held");
        }
        std::thread::sleep(IDLE / 4);
        let (cpu, started) = (cpu_time(), Instant::now());
        std::thread::sleep(IDLE);
        let share = (cpu_time() - cpu).as_secs_f64() / started.elapsed().as_secs_f64();
        release.send(()).expect("the stream is held");
        while woken.0.load(Ordering::Acquire) < waiting {
            std::thread::sleep(Duration::from_millis(1));
        }
        report(json!({ "kind": "idle", "waiting": waiting, "cpu_percent": rounded(share * 100.0) }));
    }
}

/// A host function that blocks until it is told to end.
extern "C" fn hold(receiver: *mut c_void) {
    // SAFETY: the box that was leaked for this one call.
    let receiver = unsafe { Box::from_raw(receiver.cast::<Receiver<()>>()) };
    let _ = receiver.recv();
}

/// What this process has used, in user and system mode.
fn cpu_time() -> Duration {
    // SAFETY: plain numbers, for which zero is a value.
    let mut usage: libc::rusage = unsafe { core::mem::zeroed() };
    // SAFETY: a place for the answer.
    let code = unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut usage) };
    assert_eq!(code, 0, "the process has no usage");
    let time = |time: libc::timeval| Duration::new(time.tv_sec.unsigned_abs(), time.tv_usec as u32 * 1000);
    time(usage.ru_utime) + time(usage.ru_stime)
}
