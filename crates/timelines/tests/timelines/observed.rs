//! Observers that use the objects of this crate: none runs under one of its locks.

use crate::common;

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context as TaskContext, Poll, Waker};

use common::Latch;
use common::futures::{block_on, pend, wait_until};
use common::hooked::on_the_poller;
use common::timelines::{WRITE, gpu};
use cuda_events::observer::Call;
use cuda_events::sys::Function;
use cuda_events::{Context, Device, Driver, Stream, StreamOptions, StreamRef};
#[cfg(target_os = "linux")]
use cuda_timelines::TimelineFile;
use cuda_timelines::{Completion, CudaStreamExt, Error, PointCompletion, Timeline};

/// A context whose driver has the observer.
fn context(real: Driver, observer: impl Fn(&Call) + Send + Sync + 'static) -> Context {
    let driver = real.observe(observer).expect("there is room");
    Device::new(driver, 0).and_then(Context::primary).expect("the primary context")
}

fn stream(context: &Context) -> Stream {
    Stream::new(context, StreamOptions::new()).expect("a stream")
}

/// Runs `work` in a thread, as it may wait forever.
fn ends<T: Send + 'static>(what: &str, work: impl FnOnce() -> T + Send + 'static) -> T {
    let worker = std::thread::spawn(work);
    wait_until(what, || worker.is_finished());
    worker.join().expect("no panic")
}

#[test]
fn an_observer_may_signal_the_timeline_that_signals() {
    let Some(gpu) = gpu() else { return };
    let timeline = Arc::new(OnceLock::<Arc<Timeline>>::new());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let context = context(gpu.driver, {
        let (timeline, seen) = (Arc::clone(&timeline), Arc::clone(&seen));
        move |call| {
            if let (WRITE, Some(timeline)) = (call.function, timeline.get()) {
                let more = timeline.signal().expect("a signal").value();
                let submitted = timeline.submitted().expect("a value");
                seen.lock().expect("no panic").push((call.arguments[2], more, submitted));
            }
        }
    });
    let own = Arc::new(Timeline::new(stream(&context)).expect("a timeline"));
    let start = own.submitted().expect("a value");
    timeline.set(Arc::clone(&own)).expect("it is set once");
    let signals = Arc::clone(&own);
    let own_values = ends("the signals return", move || {
        // The observer has run when a signal returns.
        [(); 3].map(|()| signals.signal().expect("a signal").value())
    });
    assert_eq!(own_values, [1, 3, 5].map(|own| start + own));
    let expected = [1, 3, 5].map(|own| (start + own, start + own + 1, start + own + 1));
    assert_eq!(*seen.lock().expect("no panic"), expected);
    own.stream().synchronize().expect("the stream works");
    assert_eq!(own.completed(), start + 6);
    assert!(context.driver().stop_observing());
}

/// A signal has found that its timeline is not poisoned, and has not begun its write.
#[test]
fn a_signal_that_a_poison_overtakes_writes_nothing() {
    let Some(gpu) = gpu() else { return };
    let timeline = Arc::new(OnceLock::<Arc<Timeline>>::new());
    let poisoned = Arc::new(AtomicUsize::new(0));
    let context = context(gpu.driver, {
        let (timeline, poisoned) = (Arc::clone(&timeline), Arc::clone(&poisoned));
        move |call| {
            // The poison asks, too.
            if let (Function::cuStreamIsCapturing, Some(timeline)) = (call.function, timeline.get())
                && poisoned.fetch_add(1, Ordering::SeqCst) == 0
            {
                timeline.poison().expect("a write");
            }
        }
    });
    let stream = Arc::new(stream(&context));
    // SAFETY: the stream outlives the timeline.
    let foreign = unsafe { StreamRef::from_raw(&context, stream.as_raw()) };
    let own = Arc::new(Timeline::new(foreign).expect("a timeline"));
    timeline.set(Arc::clone(&own)).expect("it is set once");
    let submitted = own.submitted().expect("a value");
    assert_eq!(own.signal(), Err(Error::Poisoned));
    assert!(poisoned.load(Ordering::SeqCst) > 0);
    assert_eq!(own.submitted(), Ok(submitted));
    stream.synchronize().expect("the stream works");
    assert!(context.driver().stop_observing());
}

/// What an observer drops in a query of the crate's thread; of these events only, or of any.
struct Dropped<T> {
    given: Mutex<Option<(T, Option<u64>)>>,
    count: AtomicUsize,
}

impl<T> Dropped<T> {
    fn new() -> Arc<Self> {
        Arc::new(Self { given: Mutex::new(None), count: AtomicUsize::new(0) })
    }

    fn observe(&self, call: &Call) {
        if call.function != Function::cuEventQuery || !on_the_poller() {
            return;
        }
        let mut given = self.given.lock().expect("no panic");
        let of_this = |event: Option<u64>| event.is_none_or(|event| call.arguments[0] == event);
        let dropped = given.take_if(|(_, event)| of_this(*event));
        drop(given);
        if let Some((dropped, _)) = dropped {
            drop(dropped);
            self.count.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn give(&self, it: T, event: Option<u64>) {
        *self.given.lock().expect("no panic") = Some((it, event));
    }

    fn is_dropped(&self) -> bool {
        self.count.load(Ordering::SeqCst) == 1
    }
}

/// In the very query that the thread makes for it.
#[test]
fn an_observer_may_drop_the_future_that_is_asked_for() {
    let Some(gpu) = gpu() else { return };
    let dropped = Dropped::<PointCompletion>::new();
    let seen = Arc::clone(&dropped);
    let context = context(gpu.driver, move |call| seen.observe(call));
    let timeline = Timeline::new(stream(&context)).expect("a timeline");
    let latch = Latch::hold(timeline.stream());
    let point = timeline.signal().expect("a signal");
    let mut future = point.into_future();
    pend(&mut future, Waker::noop());
    dropped.give(future, None);
    wait_until("the observer drops it", || dropped.is_dropped());
    // The timelines' thread completes other futures all the same.
    let mut next = point.into_future();
    pend(&mut next, Waker::noop());
    latch.release();
    assert_eq!(block_on(next), Ok(()));
    assert!(context.driver().stop_observing());
}

#[test]
fn an_observer_may_drop_the_completion_that_is_asked_for() {
    let Some(gpu) = gpu() else { return };
    let dropped = Dropped::<Pin<Box<Completion>>>::new();
    let seen = Arc::clone(&dropped);
    let context = context(gpu.driver, move |call| seen.observe(call));
    let stream = stream(&context);
    let latch = Latch::hold(&stream);
    let mut completion = Box::pin(stream.completion().expect("a completion"));
    let polled = completion.as_mut().poll(&mut TaskContext::from_waker(Waker::noop()));
    assert_eq!(polled, Poll::Pending);
    dropped.give(completion, None);
    wait_until("the observer drops it", || dropped.is_dropped());
    let next = stream.completion().expect("a completion");
    latch.release();
    assert_eq!(block_on(next), Ok(()));
    assert!(context.driver().stop_observing());
}

/// The thread asks for the event of the file while a signal of its timelines is pending.
#[test]
#[cfg(target_os = "linux")]
fn an_observer_may_drop_the_file_that_is_watched() {
    let Some(gpu) = gpu() else { return };
    let dropped = Dropped::<TimelineFile>::new();
    let created = Arc::new(Mutex::new(Vec::new()));
    let context = context(gpu.driver, {
        let (dropped, created) = (Arc::clone(&dropped), Arc::clone(&created));
        move |call| {
            if let (Function::cuEventCreate, Some(event)) = (call.function, call.created) {
                created.lock().expect("no panic").push(event);
            }
            dropped.observe(call);
        }
    });
    let stream = Arc::new(stream(&context));
    let file = TimelineFile::new(&context).expect("a file");
    let watched = created.lock().expect("no panic")[0];
    let timeline = Timeline::shared(Arc::clone(&stream), &file).expect("a timeline");
    let latch = Latch::hold(&stream);
    let point = timeline.signal().expect("a signal");
    // Then the file is the last that has the event.
    drop(timeline);
    dropped.give(file, Some(watched));
    wait_until("the observer drops it", || dropped.is_dropped());
    latch.release();
    assert_eq!(block_on(point.into_future()), Ok(()));
    assert!(context.driver().stop_observing());
}
