//! Recording and collecting spans of GPU work.

mod collect;
mod span;
mod states;

use core::fmt;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use core::time::Duration;
use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::Instant;

use cuda_events::capture::{CaptureMode, ThreadCaptureMode};
use cuda_events::ext::{EventPool, PooledEvent};
use cuda_events::sys::{CUresult, Function};
use cuda_events::{Context, Error, EventFlags, Result, Stream, StreamOptions, StreamRef};
use cuda_timelines::Completion;

#[cfg(doc)]
use cuda_events::sys::functions::{
    cuEventCreate, cuEventElapsedTime, cuEventQuery, cuEventRecord,
    cuThreadExchangeStreamCaptureMode,
};

use crate::clock::Clock;
use crate::stream_id::StreamId;
use crate::thread::{Quiet, Thread, lock};
use crate::trace::{GpuSpan, Trace};
use crate::tracer::collect::Collected;
use crate::tracer::states::{Ended, SHARDS, Shard};

pub use crate::tracer::span::Span;

/// The maximum age of the newest anchor while spans are recorded. The time between two anchors can
/// be twice that, and can still be rounded to the grid of the device's time stamps.
const ANCHOR_EVERY: Duration = Duration::from_millis(250);

/// How long a call of [`Tracer::span`] or a drain waits until an anchor is done. On a GPU that
/// takes some microseconds, unless the stream shares its hardware channel with others.
const SPIN: Duration = Duration::from_micros(50);

/// The number of anchors at the beginning: they show the resolution of the device's time stamps.
const FIRST_ANCHORS: usize = 12;

/// How long the first anchor may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Records spans of GPU work in the streams of one context, and places them on the host's clock.
///
/// [`span`](Self::span) records a timing event in a stream, and [`Span::end`] a second one. Neither
/// waits for the work. [`drain_ready`](Self::drain_ready), [`drain`](Self::drain) and
/// [`finish`](Self::finish) collect the spans whose work is done.
///
/// Spans may begin and end on any thread, and in any stream of the tracer's context or of a [green
/// context](Context::green) made from it. They may nest. Clones share one tracer.
///
/// ```
/// use cuda_events::{Context, Device, Stream, StreamOptions};
/// use cuda_events_trace::Tracer;
/// use std::time::Duration;
///
/// # let soft = cuda_soft_driver::SoftDriver::new();
/// # let driver = soft.driver();
/// let context = Context::primary(Device::new(driver, 0)?)?;
/// let stream = Stream::new(&context, StreamOptions::new())?;
/// let tracer = Tracer::new(&context)?;
///
/// let span = tracer.span(&stream, "preprocess")?;
/// // ... submit work to the stream ...
/// span.end(&stream)?;
///
/// let trace = tracer.finish(Duration::from_secs(10));
/// println!("{} took {:?}", trace.spans[0].name, trace.spans[0].duration);
/// # Ok::<(), cuda_events::Error>(())
/// ```
///
/// # The clock
///
/// From time to time a call of `span` or `end` records an anchor. This is a timing event in the
/// tracer's own stream, with the host's time before the record and after the event was seen done.
/// The call waits at most 50 µs until the event is done. An anchor that is not done by then is
/// checked again later, and is less exact. The tracer places a span between the two anchors around
/// it. The span's times are as exact as these anchors: [`GpuSpan::error`] has the error bound.
///
/// The driver returns times as `f32` milliseconds, which become coarse for long times. This does
/// not affect the durations of a tracer that runs for a long time, if it records spans all the
/// time: see [`GpuSpan::duration_error`].
///
/// # Captures
///
/// Do not begin or end a span in a capturing stream. The record would become a part of the capture,
/// and [`drain_ready`](Self::drain_ready), perhaps on another thread, would query the captured
/// event. See the Safety section of [`Capture::begin`](cuda_events::capture::Capture::begin).
#[derive(Clone)]
pub struct Tracer(Arc<Inner>);

struct Inner {
    context: Context,
    pool: EventPool,
    /// The stream of the anchors. It is non-blocking, so no default stream waits for it.
    stream: Stream,
    host: HostClock,
    origin: Instant,
    /// When the next anchor is due, in nanoseconds since the origin.
    due: AtomicU64,
    clock: Mutex<Clock>,
    shards: [Mutex<Shard>; SHARDS],
    /// The thread that holds this lock collects spans. This lock is taken before the clock's lock
    /// and before a shard's lock.
    collected: Mutex<Collected>,
    dropped: AtomicUsize,
    names: Mutex<BTreeMap<StreamId, Vec<(Instant, String)>>>,
}

/// The source of the host's time: tests use their own.
enum HostClock {
    Monotonic,
    Given(Box<dyn Fn() -> Instant + Send + Sync>),
}

impl Tracer {
    /// Creates a tracer for the streams of this context.
    ///
    /// It creates a stream and records twelve anchors, which show how exact the device's time is.
    /// This takes some hundred microseconds. It waits for the first anchor for at most ten seconds.
    ///
    /// Driver calls: those of [`Stream::new`], and for each anchor [`cuEventCreate`] with the
    /// context current, [`cuEventRecord`], [`cuEventQuery`] and [`cuEventElapsedTime`].
    ///
    /// # Errors
    ///
    /// The errors of these calls. `CUDA_ERROR_NOT_READY` if the first anchor is not done in time, for
    /// example because other work of the process blocks the hardware channel.
    pub fn new(context: &Context) -> Result<Self> {
        Self::with(context, HostClock::Monotonic)
    }

    /// Like [`new`](Self::new) with another clock of the host, for tests in virtual time.
    #[doc(hidden)]
    pub fn with_host_clock(
        context: &Context,
        now: impl Fn() -> Instant + Send + Sync + 'static,
    ) -> Result<Self> {
        Self::with(context, HostClock::Given(Box::new(now)))
    }

    fn with(context: &Context, host: HostClock) -> Result<Self> {
        let _quiet = Quiet::new();
        let inner = Inner {
            context: context.clone(),
            pool: EventPool::new(context, EventFlags::TIMING)?,
            stream: Stream::new(context, StreamOptions::new())?,
            origin: host.now(),
            host,
            due: AtomicU64::new(0),
            clock: Mutex::new(Clock::new()),
            shards: [const { Mutex::new(Shard::new()) }; SHARDS],
            collected: Mutex::default(),
            dropped: AtomicUsize::new(0),
            names: Mutex::default(),
        };
        let mut clock = lock(&inner.clock);
        let relaxed = inner.relaxed();
        let waits = Instant::now();
        for _ in 0..FIRST_ANCHORS {
            while !inner.anchor(&mut clock)? {
                if waits.elapsed() > PATIENCE {
                    return Err(Error::Driver {
                        function: Function::cuEventQuery,
                        code: CUresult::CUDA_ERROR_NOT_READY,
                    });
                }
                std::thread::sleep(SPIN);
            }
        }
        drop((clock, relaxed));
        Ok(Self(Arc::new(inner)))
    }

    /// Begins a span: records a timing event in the stream.
    ///
    /// The span's time begins when the work that is in the stream now is done. One driver call:
    /// [`cuEventRecord`]. If the pool of events is empty, also those of
    /// [`Event::new`](cuda_events::Event::new); [`reserve`](Self::reserve) makes these in advance.
    /// Four times a second it also records an anchor: [`cuEventRecord`], [`cuEventQuery`] for at
    /// most 50 µs and [`cuEventElapsedTime`], between two calls of
    /// [`cuThreadExchangeStreamCaptureMode`].
    ///
    /// # Errors
    ///
    /// [`Error::ContextMismatch`] for a stream of another context; [`Error::ForkedChild`]; the
    /// driver's error, such as one of work that was launched before.
    #[inline]
    pub fn span(&self, stream: &StreamRef, name: impl Into<Cow<'static, str>>) -> Result<Span> {
        Span::begin(&self.0, stream, name.into())
    }

    /// Runs `work` within a span, and returns its result. An error of `work` has precedence over an
    /// error of the span's end.
    ///
    /// ```
    /// # use cuda_events::{Context, Device, Error, Stream, StreamOptions};
    /// # use cuda_events_trace::Tracer;
    /// # let soft = cuda_soft_driver::SoftDriver::new();
    /// # let driver = soft.driver();
    /// # let context = Context::primary(Device::new(driver, 0)?)?;
    /// # let stream = Stream::new(&context, StreamOptions::new())?;
    /// # let tracer = Tracer::new(&context)?;
    /// tracer.time(&stream, "copy", || {
    ///     // ... submit work to the stream ...
    ///     Ok::<_, Error>(())
    /// })?;
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`span`](Self::span), before `work` runs; those of `work`; those of [`Span::end`].
    pub fn time<T, E: From<Error>>(
        &self,
        stream: &StreamRef,
        name: impl Into<Cow<'static, str>>,
        work: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        let span = self.span(stream, name)?;
        let worked = work();
        let ended = span.end(stream);
        let value = worked?;
        ended?;
        Ok(value)
    }

    /// Creates events for this many more spans, so each begin and each end makes one driver call.
    ///
    /// Driver calls: those of [`EventPool::reserve`].
    ///
    /// ```
    /// # use cuda_events::{Context, Device, Stream, StreamOptions};
    /// # use cuda_events_trace::Tracer;
    /// # use std::time::Duration;
    /// # let soft = cuda_soft_driver::SoftDriver::new();
    /// # let driver = soft.driver();
    /// # let context = Context::primary(Device::new(driver, 0)?)?;
    /// # let stream = Stream::new(&context, StreamOptions::new())?;
    /// let tracer = Tracer::new(&context)?;
    /// tracer.reserve(2)?;
    ///
    /// // These spans use the four events that `reserve` created.
    /// for name in ["load", "run"] {
    ///     tracer.span(&stream, name)?.end(&stream)?;
    /// }
    /// assert_eq!(tracer.finish(Duration::from_secs(10)).spans.len(), 2);
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`EventPool::reserve`].
    pub fn reserve(&self, spans: usize) -> Result<()> {
        let _quiet = Quiet::new();
        self.0.pool.reserve(spans.saturating_mul(2))
    }

    /// Names the row of a stream. The default name contains the driver's handle.
    ///
    /// The driver may give the handle of a destroyed stream to a later stream. If the later stream
    /// gets a name, it has its own row. Otherwise it shares the row of the destroyed stream.
    pub fn name_stream(&self, stream: &StreamRef, name: impl Into<String>) {
        let (id, name) = (StreamId::of(stream, &Thread::current()), name.into());
        let mut all = lock(&self.0.names);
        let names = all.entry(id).or_default();
        if names.last().is_none_or(|(_, last)| *last != name) {
            names.push((self.0.host.now(), name));
        }
    }

    /// Returns the spans whose work is done, in the order in which each stream did them. It does
    /// not wait for work.
    ///
    /// It queries the oldest span of each stream. If that span is done, it queries the next one.
    /// When it finds the first span that was done after the last anchor, it records an anchor, and
    /// waits at most 50 µs until the anchor is done. If an older anchor is still pending, it first
    /// waits at most 50 µs for the older anchor. A later call returns the spans that were done
    /// after the last anchor that is done.
    ///
    /// Driver calls: two or three of [`cuEventElapsedTime`] for each span that is done, one for the
    /// first pending span of each stream, and those of an anchor, as in [`span`](Self::span).
    ///
    /// [`Trace`] has an example.
    ///
    /// # Errors
    ///
    /// The first error since the last call that returned an error:
    ///
    /// * The driver's error for the events of a span. The span is counted in
    ///   [`failed`](Self::failed) and not kept.
    /// * The driver's error for an anchor.
    /// * [`Error::EndBeforeStart`] for a span that ended in another stream before it began.
    ///
    /// If there are also spans to return, this call returns the spans, and a later call returns the
    /// error.
    pub fn drain_ready(&self) -> Result<Vec<GpuSpan>> {
        let mut collected = lock(&self.0.collected);
        let spans = self.0.collect(&mut collected);
        match collected.error.take() {
            Some(error) if spans.is_empty() => Err(error),
            error => {
                collected.error = error;
                Ok(spans)
            }
        }
    }

    /// Like [`drain_ready`](Self::drain_ready), but waits until the work of all ended spans is
    /// done.
    ///
    /// The future needs no particular executor: see [`Completion`]. Dropping it loses no span.
    ///
    /// ```
    /// # use cuda_events::{Context, Device, Stream, StreamOptions};
    /// # use cuda_events_trace::Tracer;
    /// # use std::sync::Arc;
    /// # use std::task::{self, Poll, Wake};
    /// # struct Unpark(std::thread::Thread);
    /// # impl Wake for Unpark {
    /// #     fn wake(self: Arc<Self>) {
    /// #         self.0.unpark();
    /// #     }
    /// # }
    /// # fn block_on<F: Future>(future: F) -> F::Output {
    /// #     let waker = task::Waker::from(Arc::new(Unpark(std::thread::current())));
    /// #     let mut future = std::pin::pin!(future);
    /// #     loop {
    /// #         match future.as_mut().poll(&mut task::Context::from_waker(&waker)) {
    /// #             Poll::Ready(output) => return output,
    /// #             Poll::Pending => std::thread::park(),
    /// #         }
    /// #     }
    /// # }
    /// # let soft = cuda_soft_driver::SoftDriver::new();
    /// # let driver = soft.driver();
    /// # let context = Context::primary(Device::new(driver, 0)?)?;
    /// # let stream = Stream::new(&context, StreamOptions::new())?;
    /// let tracer = Tracer::new(&context)?;
    /// tracer.span(&stream, "work")?.end(&stream)?;
    ///
    /// // `block_on` comes from your executor, for example `pollster::block_on`.
    /// let spans = block_on(tracer.drain())?;
    /// assert_eq!(spans[0].name, "work");
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`drain_ready`](Self::drain_ready).
    pub async fn drain(&self) -> Result<Vec<GpuSpan>> {
        let waits: Vec<Completion<Arc<PooledEvent>>> = {
            let mut collected = lock(&self.0.collected);
            self.0.queue(&mut collected);
            let last = |pending: &mut VecDeque<Ended>| {
                let (ended, wait) = pending.pop_back()?.wait();
                pending.push_back(ended);
                Some(wait)
            };
            collected.pending.values_mut().filter_map(last).collect()
        };
        for wait in waits {
            // An error is the drain's to return, which meets it too.
            let _ = wait.await;
        }
        self.drain_ready()
    }

    /// Waits until the work of all ended spans is done, for at most `timeout`, and returns the
    /// spans. It does not return spans again that [`drain_ready`](Self::drain_ready) or
    /// [`drain`](Self::drain) has returned.
    ///
    /// It always returns a trace: [`Trace::unfinished`], [`Trace::failed`] and [`Trace::error`]
    /// describe missing spans. The tracer may be used again afterwards.
    ///
    /// Driver calls: those of [`drain_ready`](Self::drain_ready), repeatedly.
    pub fn finish(&self, timeout: Duration) -> Trace {
        let inner = &self.0;
        let began = Instant::now();
        let mut trace = Trace::new();
        let mut pause = Duration::from_micros(20);
        loop {
            let mut collected = lock(&inner.collected);
            trace.spans.append(&mut inner.collect(&mut collected));
            trace.unfinished = collected.ready.len()
                + collected.pending.values().map(VecDeque::len).sum::<usize>();
            trace.failed = collected.failed;
            trace.error = trace.error.or(collected.error.take());
            drop(collected);
            if trace.unfinished == 0 || began.elapsed() >= timeout {
                break;
            }
            std::thread::sleep(pause.min(timeout.saturating_sub(began.elapsed())));
            pause = (pause * 2).min(Duration::from_millis(1));
        }
        trace.open = self.open();
        trace.dropped = self.dropped();
        trace.stream_names = lock(&inner.names).clone();
        trace
    }

    /// The number of spans that were dropped without an end.
    pub fn dropped(&self) -> usize {
        self.0.dropped.load(Ordering::Relaxed)
    }

    /// The number of spans that have begun and were neither ended nor dropped.
    pub fn open(&self) -> usize {
        let count = |shard: &Shard| shard.open.iter().flatten().count();
        self.0.shards.iter().map(|shard| count(&lock(shard))).sum()
    }

    /// The number of ended spans that have no time, because the driver returned an error for one of
    /// their events. [`drain_ready`](Self::drain_ready) and [`drain`](Self::drain) return the
    /// errors.
    pub fn failed(&self) -> usize {
        lock(&self.0.collected).failed
    }

    /// The context whose streams this tracer traces.
    pub fn context(&self) -> &Context {
        &self.0.context
    }
}

impl fmt::Debug for Tracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tracer").field("context", &self.0.context).finish_non_exhaustive()
    }
}

impl HostClock {
    #[inline]
    fn now(&self) -> Instant {
        match self {
            Self::Monotonic => Instant::now(),
            Self::Given(now) => now(),
        }
    }
}

impl Inner {
    /// Nanoseconds since the origin.
    fn since(&self, at: Instant) -> u64 {
        at.saturating_duration_since(self.origin).as_nanos() as u64
    }

    fn now(&self) -> f64 {
        self.since(self.host.now()) as f64
    }

    /// As long as the result lives, the driver calls of this thread do not invalidate a capture of
    /// another thread.
    fn relaxed(&self) -> Result<ThreadCaptureMode> {
        ThreadCaptureMode::exchange(self.context.driver(), CaptureMode::Relaxed)
    }

    /// None if the lock is held forever, as it may be in a forked child.
    fn shard(&self, shard: usize) -> Option<MutexGuard<'_, Shard>> {
        let shard = self.shards.get(shard)?;
        for _ in 0..1 << 20 {
            match shard.try_lock() {
                Ok(shard) => return Some(shard),
                Err(TryLockError::Poisoned(shard)) => return Some(shard.into_inner()),
                Err(TryLockError::WouldBlock) => std::thread::yield_now(),
            }
        }
        None
    }

    /// Records an event that a drain gave back for these threads, or one of the pool. Nothing is
    /// locked meanwhile: an observer of the call may use the tracer.
    #[inline]
    fn record(&self, stream: &StreamRef, spare: Option<PooledEvent>) -> Result<PooledEvent> {
        match spare {
            // If that fails, the drop destroys the event.
            Some(event) => event.record(stream).map(|()| event),
            None => self.pool.record_event(stream),
        }
    }

    /// Takes an anchor if the newest is old, and notes in the shard when the next is due.
    #[cold]
    #[inline(never)]
    fn keep_anchored(&self, now: Instant, shard: usize) {
        if self.since(now) >= self.due.load(Ordering::Relaxed) {
            self.anchor_when_due();
        }
        let due = self.origin + Duration::from_nanos(self.due.load(Ordering::Relaxed));
        if let Some(mut shard) = self.shard(shard) {
            shard.due = Some(due);
        }
    }

    fn anchor_when_due(&self) {
        // Somebody else is at it.
        let Ok(mut clock) = self.clock.try_lock() else { return };
        let _relaxed = self.relaxed();
        // The span's own record meets the error, too.
        let _ = self.anchor(&mut clock);
    }

    /// Records an anchor, unless one is pending, and looks for it for a short time. Whether it is
    /// done.
    fn anchor(&self, clock: &mut Clock) -> Result<bool> {
        let begun = Instant::now();
        self.due.store(self.since(self.host.now() + ANCHOR_EVERY), Ordering::Relaxed);
        clock.settle(|| self.now())?;
        if !clock.is_pending() {
            let low = self.now();
            clock.begin(self.pool.record_event(&self.stream)?, low);
        }
        loop {
            if clock.settle(|| self.now())? {
                return Ok(true);
            }
            if begun.elapsed() >= SPIN {
                return Ok(false);
            }
            core::hint::spin_loop();
        }
    }
}
