//! Many transfers in flight: a task that queries all their events once a millisecond, as the block
//! manager of NVIDIA Dynamo does, beside futures.

use core::ffi::c_void;
use core::future::Future;
use core::pin::Pin;
use core::sync::atomic::{AtomicU64, Ordering};
use core::task::{Context as TaskContext, Poll, Waker};
use std::future::IntoFuture;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::task::Wake;
use std::time::{Duration, Instant};

use cuda_events::ext::{EventPool, PooledEvent};
use cuda_events::{Context, EventFlags, Stream, StreamOptions};
use cuda_timelines::{Completion, Timeline};
use serde_json::{Value, json};

use crate::completions::{cpu_time, launch, nanoseconds};
use crate::rounds::{percentile, rounded};

const STREAMS: usize = 16;
/// How often the task looks.
const TICK: Duration = Duration::from_millis(1);

#[derive(Clone, Copy, PartialEq)]
enum Way {
    /// The transfers say themselves when they end: the processor time without any wait.
    Nobody,
    Task,
    Futures,
    Points,
}

const WAYS: [(Way, &str); 4] = [
    (Way::Nobody, "nobody waits"),
    (Way::Task, "a task queries each event once a millisecond"),
    (Way::Futures, "futures of events"),
    (Way::Points, "futures of points"),
];

pub fn measure(context: &Context, in_flight: usize, report: &mut impl FnMut(Value)) {
    for (way, name) in WAYS {
        let (cpu, started) = (cpu_time(), Instant::now());
        let mut late = transfers(context, way, in_flight, in_flight * 10);
        let share = (cpu_time() - cpu).as_secs_f64() / started.elapsed().as_secs_f64();
        late.sort_by(f64::total_cmp);
        report(json!({
            "kind": "in flight",
            "way": name,
            "in_flight": in_flight,
            "p50_us": rounded(percentile(&late, 0.5)),
            "p99_us": rounded(percentile(&late, 0.99)),
            "cpu_percent": rounded(share * 100.0),
            "samples": late.len(),
        }));
    }
}

/// A host function that sleeps stands for the copies, and notes when they end.
struct Transfer {
    base: Instant,
    duration: Duration,
    ended: AtomicU64,
    woken: AtomicU64,
    index: usize,
    done: Sender<usize>,
    awaited: bool,
}

impl Transfer {
    extern "C" fn run(transfer: *mut c_void) {
        // SAFETY: `transfers` made it a raw pointer for this call.
        let transfer = unsafe { Arc::from_raw(transfer.cast_const().cast::<Self>()) };
        std::thread::sleep(transfer.duration);
        transfer.ended.store(nanoseconds(transfer.base), Ordering::Release);
        if !transfer.awaited {
            let _ = transfer.done.send(transfer.index);
        }
    }
}

impl Wake for Transfer {
    fn wake(self: Arc<Self>) {
        self.woken.store(nanoseconds(self.base), Ordering::Release);
        let _ = self.done.send(self.index);
    }
}

type Waiting = Pin<Box<dyn Future<Output = ()>>>;

/// How late the waiters of so many transfers were woken, in microseconds.
fn transfers(context: &Context, way: Way, in_flight: usize, total: usize) -> Vec<f64> {
    let streams: Vec<Arc<Stream>> = (0..STREAMS)
        .map(|_| Arc::new(Stream::new(context, StreamOptions::new()).expect("a stream")))
        .collect();
    let timelines: Vec<Timeline> = streams
        .iter()
        .filter(|_| way == Way::Points)
        .map(|stream| Timeline::new(Arc::clone(stream)).expect("a timeline"))
        .collect();
    let pool = EventPool::new(context, EventFlags::empty()).expect("a pool");
    let (base, (done, finished)) = (Instant::now(), channel());
    let (register, registered) = channel();
    let task = std::thread::spawn(move || look_each_tick(&registered));
    let mut started: Vec<(Arc<Transfer>, Option<Waiting>)> = Vec::with_capacity(total);
    let mut ended = 0;
    for index in 0..total {
        if index - ended == in_flight {
            finish(&finished, &mut started);
            ended += 1;
        }
        let duration = Duration::from_micros(20 + (index as u64 * 7919) % 61);
        let (ended, woken) = Default::default();
        let (done, awaited) = (done.clone(), way != Way::Nobody);
        let transfer = Arc::new(Transfer { base, duration, ended, woken, index, done, awaited });
        let stream = &streams[index % STREAMS];
        let data = Arc::into_raw(Arc::clone(&transfer)).cast_mut().cast();
        launch(stream, Some(Transfer::run), data);
        let record = || pool.record_event(stream).expect("a record");
        let waiting: Option<Waiting> = match way {
            Way::Nobody => {
                record();
                None
            }
            Way::Task => {
                let waker = Waker::from(Arc::clone(&transfer));
                register.send((record(), waker)).expect("the task runs");
                None
            }
            Way::Futures => {
                let event = record();
                Some(Box::pin(async { Completion::new(event).await.expect("no work fails") }))
            }
            Way::Points => {
                let point = timelines[index % STREAMS].signal().expect("a signal");
                let future = point.into_future();
                Some(Box::pin(async { future.await.expect("no work fails") }))
            }
        };
        started.push((transfer, waiting));
        look(&mut started[index]);
    }
    (ended..total).for_each(|_| finish(&finished, &mut started));
    drop(register);
    task.join().expect("the task does not panic");
    for stream in &streams {
        stream.synchronize().expect("no work fails");
    }
    let time = |of: &AtomicU64| of.load(Ordering::Acquire) as f64;
    let woken = started.iter().filter(|(transfer, _)| time(&transfer.woken) > 0.0);
    woken.map(|(of, _)| (time(&of.woken) - time(&of.ended)) / 1000.0).collect()
}

/// Polls the transfer's future, if it has one.
fn look((transfer, waiting): &mut (Arc<Transfer>, Option<Waiting>)) {
    let waker = Waker::from(Arc::clone(transfer));
    let poll = |future: &mut Waiting| future.as_mut().poll(&mut TaskContext::from_waker(&waker));
    if waiting.as_mut().map(poll) == Some(Poll::Ready(())) {
        *waiting = None;
        if transfer.woken.load(Ordering::Acquire) == 0 {
            // Done before it was waited for: there is no sample.
            let _ = transfer.done.send(transfer.index);
        }
    }
}

/// Waits until one more is done.
fn finish(finished: &Receiver<usize>, started: &mut [(Arc<Transfer>, Option<Waiting>)]) {
    let index = finished.recv_timeout(Duration::from_secs(20)).expect("a transfer ends in 20 s");
    look(&mut started[index]);
}

/// The task: it queries all the events that wait, and sleeps until the next tick.
fn look_each_tick(registered: &Receiver<(PooledEvent, Waker)>) {
    let (mut waiting, mut tick, mut open) = (Vec::new(), Instant::now(), true);
    while open || !waiting.is_empty() {
        tick += TICK;
        std::thread::sleep(tick.saturating_duration_since(Instant::now()));
        loop {
            match registered.try_recv() {
                Ok(transfer) => waiting.push(transfer),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => {
                    open = false;
                    break;
                }
            }
        }
        let done =
            |(event, _): &mut (PooledEvent, Waker)| event.query().expect("no work fails").is_done();
        waiting.extract_if(.., done).for_each(|(_, waker)| waker.wake());
    }
}
