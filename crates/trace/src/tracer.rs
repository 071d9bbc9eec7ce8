//! Recording and collecting spans of GPU work.

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
use cuda_events::{Context, Error, EventFlags, EventRef, Result, Stream, StreamOptions, StreamRef};
use cuda_timelines::Completion;

#[cfg(doc)]
use cuda_events::sys::functions::{
    cuEventCreate, cuEventElapsedTime, cuEventQuery, cuEventRecord,
    cuThreadExchangeStreamCaptureMode,
};

use crate::clock::{Clock, Elapsed, Place, Stamp, between};
use crate::stream_id::StreamId;
use crate::thread::{Quiet, Thread, lock};
use crate::trace::{Args, GpuSpan, Trace};

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

/// The start of a span that is open longer than this is looked at before its end.
const LONG: Duration = Duration::from_secs(1);

/// Threads spread over these, so they seldom share one.
const SHARDS: usize = 16;

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

/// The spans of the threads whose numbers have the same remainder.
#[derive(Default)]
struct Shard {
    /// The open spans. A `Span` keeps its index here.
    open: Vec<Option<Open>>,
    free: Vec<usize>,
    ended: Vec<Ended>,
    /// Events of collected spans, for the next spans of the same threads. The pool is shared by all
    /// threads, and is slower if it has more events than slots.
    spare: Vec<PooledEvent>,
    /// When an anchor may be due. None if that is not known.
    due: Option<Instant>,
}

/// A span that was begun.
struct Open {
    name: Cow<'static, str>,
    stream: StreamId,
    thread: Thread,
    begun: Instant,
    start: Start,
    labels: Option<Box<Labels>>,
}

/// What a span was given besides its name. Few spans have any.
#[derive(Default)]
struct Labels {
    category: Option<Cow<'static, str>>,
    args: Args,
}

enum Start {
    Recorded(PooledEvent),
    /// The start, if it was placed before the span's end, so no anchor is kept for it.
    Known(Box<(Stamp, Place)>),
}

/// A span that was ended. Its work may be pending.
struct Ended {
    open: Open,
    ended: Instant,
    end: End,
}

enum End {
    Own(PooledEvent),
    /// A share is with a future, if one waits for the span.
    Shared(Arc<PooledEvent>),
}

/// A span whose work is done, and which waits for an anchor after it.
struct Ready {
    name: Cow<'static, str>,
    stream: StreamId,
    thread: Thread,
    begun: Instant,
    ended: Instant,
    times: Times,
    labels: Option<Box<Labels>>,
}

struct Times {
    start: Stamp,
    /// The start's place on the host's axis, if it is known.
    placed: Option<Place>,
    end: Stamp,
    duration: Elapsed,
}

#[derive(Default)]
struct Collected {
    /// For each stream in the order in which the spans were ended, which is also the order in which
    /// their work is done.
    pending: BTreeMap<StreamId, VecDeque<Ended>>,
    ready: Vec<Ready>,
    /// Empty, and as long as what a drain has taken in: the next drain gives it to a shard.
    taken: Vec<Ended>,
    failed: usize,
    /// The first error that no drain has returned.
    error: Option<Error>,
}

/// A running span, from [`Tracer::span`].
///
/// It borrows neither the stream nor the tracer. If it is dropped without [`end`](Self::end), the
/// span is not collected, and [`Tracer::dropped`] counts it. The drop makes no driver call, unless
/// the pool destroys its event.
#[must_use = "a span that is dropped has no end, and is not kept"]
pub struct Span {
    inner: Arc<Inner>,
    shard: usize,
    place: usize,
    /// The event for the end, if the shard had one to spare.
    spare: Option<PooledEvent>,
    armed: bool,
    labels: Option<Box<Labels>>,
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
        clock.keep_narrowest();
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
        self.begin(stream, name.into())
    }

    fn begin(&self, stream: &StreamRef, name: Cow<'static, str>) -> Result<Span> {
        let inner = &self.0;
        let _quiet = Quiet::new();
        let begun = inner.host.now();
        let thread = Thread::current();
        let shard = shard_of(&thread);
        let (first, spare, due) = match inner.shard(shard) {
            Some(mut shard) => (shard.spare.pop(), shard.spare.pop(), shard.is_due(begun)),
            None => (None, None, false),
        };
        if due {
            inner.keep_anchored(begun, shard);
        }
        let start = Start::Recorded(inner.record(stream, first)?);
        let stream = StreamId::of(stream, &thread);
        let open = Open { name, stream, thread, begun, start, labels: None };
        let place = inner.shard(shard).map_or(usize::MAX, |mut shard| shard.open(open));
        Ok(Span { inner: Arc::clone(inner), shard, place, spare, armed: true, labels: None })
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

impl Span {
    /// Adds an argument: a name and a value, which the trace shows with the span.
    ///
    /// ```
    /// # use cuda_events::{Context, Device, Stream, StreamOptions};
    /// # use cuda_events_trace::Tracer;
    /// # let soft = cuda_soft_driver::SoftDriver::new();
    /// # let driver = soft.driver();
    /// # let context = Context::primary(Device::new(driver, 0)?)?;
    /// # let stream = Stream::new(&context, StreamOptions::new())?;
    /// # let tracer = Tracer::new(&context)?;
    /// let span = tracer.span(&stream, "forward")?.category("model").arg("batch", 8);
    /// // ... submit work to the stream ...
    /// span.end(&stream)?;
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    pub fn arg(mut self, name: impl Into<Cow<'static, str>>, value: impl fmt::Display) -> Self {
        self.labels().args.push((name.into(), value.to_string()));
        self
    }

    /// Sets the category. In the page, spans of one category have one colour; other spans have a
    /// colour for each name. Perfetto filters by category. A span has no colour by itself: a colour
    /// shows what belongs together.
    pub fn category(mut self, category: impl Into<Cow<'static, str>>) -> Self {
        self.labels().category = Some(category.into());
        self
    }

    fn labels(&mut self) -> &mut Labels {
        self.labels.get_or_insert_default()
    }

    /// Ends the span: records a second timing event in the stream.
    ///
    /// The span's time ends when the work that is in the stream now is done. Usually this is the
    /// stream in which the span began. With another stream that waits for it, the span lasts until
    /// the work of that stream is done. The span is shown in the row of the stream in which it
    /// began.
    ///
    /// Driver calls: those of [`Tracer::span`].
    ///
    /// [`Tracer`] has an example.
    ///
    /// # Errors
    ///
    /// The errors of [`Tracer::span`]. The span is then counted as dropped.
    #[inline]
    pub fn end(self, stream: &StreamRef) -> Result<()> {
        self.end_in(stream)
    }

    fn end_in(mut self, stream: &StreamRef) -> Result<()> {
        let inner = &self.inner;
        let _quiet = Quiet::new();
        let spare = self.spare.take().or_else(|| inner.shard(self.shard)?.spare.pop());
        let end = End::Own(inner.record(stream, spare)?);
        let ended = inner.host.now();
        let mut due = false;
        if let Some(mut shard) = inner.shard(self.shard) {
            due = shard.is_due(ended);
            if let Some(mut open) = shard.close(self.place) {
                open.labels = self.labels.take();
                shard.ended.push(Ended { open, ended, end });
            }
        }
        if due {
            inner.keep_anchored(ended, self.shard);
        }
        self.armed = false;
        Ok(())
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        if !self.armed {
            return;
        }
        let _quiet = Quiet::new();
        self.inner.dropped.fetch_add(1, Ordering::Relaxed);
        let forgotten = self.inner.shard(self.shard).and_then(|mut shard| shard.close(self.place));
        // Given back when the shard is free again.
        drop((forgotten, self.spare.take()));
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Span").finish_non_exhaustive()
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

impl Shard {
    const fn new() -> Self {
        Self { open: Vec::new(), free: Vec::new(), ended: Vec::new(), spare: Vec::new(), due: None }
    }

    /// Stores an open span, and returns its index.
    fn open(&mut self, open: Open) -> usize {
        if let Some(place) = self.free.pop()
            && let Some(free) = self.open.get_mut(place)
        {
            *free = Some(open);
            return place;
        }
        self.open.push(Some(open));
        self.open.len() - 1
    }

    fn is_due(&self, now: Instant) -> bool {
        self.due.is_none_or(|due| now >= due)
    }

    fn close(&mut self, place: usize) -> Option<Open> {
        let open = self.open.get_mut(place)?.take()?;
        self.free.push(place);
        Some(open)
    }
}

impl End {
    fn event(&self) -> &EventRef {
        match self {
            Self::Own(event) => event,
            Self::Shared(event) => event,
        }
    }
}

impl Ended {
    fn times(&self, clock: &mut Clock) -> Result<Times> {
        // There is an anchor from the first on: see `Tracer::with`.
        let none = || Error::Driver {
            function: Function::cuEventElapsedTime,
            code: CUresult::CUDA_ERROR_NOT_FOUND,
        };
        let event = self.end.event();
        let (start, placed, near) = match &self.open.start {
            Start::Recorded(start) => {
                // The first question is also whether it is done.
                let milliseconds = start.elapsed_ms(event)?;
                let start = clock.stamp(start)?.ok_or_else(none)?;
                (start, None, clock.after(start, milliseconds))
            }
            Start::Known(known) => (known.0, Some(known.1), None),
        };
        let (end, duration) = match near {
            Some(near) => near,
            None => {
                let end = clock.stamp(event)?.ok_or_else(none)?;
                (end, between(start, end))
            }
        };
        if duration.ns < 0.0 {
            Err(Error::EndBeforeStart)
        } else {
            Ok(Times { start, placed, end, duration })
        }
    }

    /// Gives the events to the spare ones of the thread's shard.
    fn into_ready(self, times: Times, spare: &mut [Vec<PooledEvent>; SHARDS]) -> Ready {
        let Self { open: Open { name, stream, thread, begun, start, labels }, ended, end } = self;
        if let Some(spare) = spare.get_mut(shard_of(&thread)) {
            if let Start::Recorded(event) = start {
                spare.push(event);
            }
            if let End::Own(event) = end {
                spare.push(event);
            }
        }
        Ready { name, stream, thread, begun, ended, times, labels }
    }

    /// Returns a future for the span's end. The two share the end's event.
    fn wait(self) -> (Self, Completion<Arc<PooledEvent>>) {
        let Self { open, ended, end } = self;
        let event = match end {
            End::Own(event) => Arc::new(event),
            End::Shared(event) => event,
        };
        (Self { open, ended, end: End::Shared(Arc::clone(&event)) }, Completion::new(event))
    }

    /// Drops the span's events, and does not give them to another span, because the driver returned
    /// an error for them.
    fn discard(self) {
        if let Start::Recorded(event) = self.open.start {
            event.discard();
        }
        match self.end {
            End::Own(event) => event.discard(),
            End::Shared(event) => {
                if let Some(event) = Arc::into_inner(event) {
                    event.discard();
                }
            }
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

    /// Takes in what threads have ended, in the order of the ends. `taken` is empty before.
    fn take_in(&self, taken: &mut Vec<Ended>) {
        for shard in &self.shards {
            let mut shard = lock(shard);
            if taken.is_empty() && !shard.ended.is_empty() {
                // Nothing is moved, and the shard has room for as many.
                core::mem::swap(taken, &mut shard.ended);
            } else {
                taken.append(&mut shard.ended);
            }
        }
        // Several threads, or one shard in which threads overtook each other.
        if !taken.is_sorted_by_key(|span| span.ended) {
            taken.sort_by_key(|span| span.ended);
        }
    }

    /// Takes in what threads have ended, and lets all of it wait.
    fn queue(&self, collected: &mut Collected) {
        let Collected { pending, taken, .. } = collected;
        self.take_in(taken);
        for span in taken.drain(..) {
            pending.entry(span.open.stream).or_default().push_back(span);
        }
    }

    /// The spans that are done, and whose place on the host's axis is known.
    fn collect(&self, collected: &mut Collected) -> Vec<GpuSpan> {
        let _quiet = Quiet::new();
        let _relaxed = self.relaxed();
        let Collected { pending, ready, taken, failed, error } = collected;
        self.take_in(taken);
        let mut drain = Drain {
            inner: self,
            clock: lock(&self.clock),
            anchored: Anchored::NotTried,
            given: Vec::with_capacity(ready.len() + taken.len()),
            ready: Vec::new(),
            spare: Default::default(),
            failed,
            error,
        };
        // All times of this drain are seen from the anchors that are done now.
        if let Err(error) = drain.clock.settle(|| self.now()) {
            drain.note(error);
        }
        for ready in ready.drain(..) {
            drain.give(ready);
        }
        for queue in pending.values_mut() {
            while let Some(span) = queue.pop_front() {
                if let Some(span) = drain.look(span) {
                    queue.push_front(span);
                    break;
                }
            }
        }
        pending.retain(|_, queue| !queue.is_empty());
        for span in taken.drain(..) {
            let stream = span.open.stream;
            // The spans that are still in the queue come before it.
            match pending.get_mut(&stream) {
                Some(queue) => queue.push_back(span),
                None => {
                    if let Some(span) = drain.look(span) {
                        pending.entry(stream).or_default().push_back(span);
                    }
                }
            }
        }
        let Drain { mut clock, given, ready: later, spare, .. } = drain;
        *ready = later;
        for (shard, mut spare) in self.shards.iter().zip(spare) {
            if !spare.is_empty() {
                lock(shard).spare.append(&mut spare);
            }
        }
        self.look_at_long_ones(&mut clock, pending);
        clock.forget();
        given
    }

    #[inline]
    fn place(&self, clock: &mut Clock, ready: Ready) -> GpuSpan {
        let Ready { name, stream, thread, begun, ended, times, labels } = ready;
        let Labels { category, args } = labels.map_or_else(Labels::default, |labels| *labels);
        let Times { start, placed, end, duration } = times;
        let start = placed.unwrap_or_else(|| clock.place(start));
        let (end, error) = end_of(start, clock.place(end));
        let at = |ns: f64| self.origin + nanoseconds(ns);
        GpuSpan {
            name,
            category,
            args,
            stream,
            thread,
            begun,
            ended,
            start: at(start.ns),
            end: at(end),
            error: not_below(error),
            duration: nanoseconds(duration.ns),
            duration_error: not_below(duration.error),
        }
    }

    /// Finds the start of spans that are open for long or whose work takes long, so no anchors are
    /// kept for them.
    fn look_at_long_ones(
        &self,
        clock: &mut Clock,
        pending: &mut BTreeMap<StreamId, VecDeque<Ended>>,
    ) {
        let now = self.host.now();
        let mut look = |open: &mut Open| {
            if let Start::Recorded(event) = &open.start
                && now.saturating_duration_since(open.begun) >= LONG
                // An error is met again at the end.
                && let Ok(Some(start)) = clock.stamp(event)
                && clock.newest().is_some_and(|newest| start.device <= newest)
            {
                open.start = Start::Known(Box::new((start, clock.place(start))));
            }
        };
        for shard in &self.shards {
            lock(shard).open.iter_mut().flatten().for_each(&mut look);
        }
        pending.values_mut().flatten().for_each(|ended| look(&mut ended.open));
    }
}

/// What one drain works with.
struct Drain<'a> {
    inner: &'a Inner,
    clock: MutexGuard<'a, Clock>,
    anchored: Anchored,
    given: Vec<GpuSpan>,
    /// The spans without a done anchor after them, and those behind them in their streams. The next
    /// drain looks at them first.
    ready: Vec<Ready>,
    spare: [Vec<PooledEvent>; SHARDS],
    failed: &'a mut usize,
    error: &'a mut Option<Error>,
}

/// Whether this drain has recorded an anchor.
#[derive(Clone, Copy, PartialEq)]
enum Anchored {
    NotTried,
    Tried,
    /// It failed, and no later one will be better.
    Failed,
}

impl Drain<'_> {
    /// Gives a span back if its work is pending.
    #[inline]
    fn look(&mut self, span: Ended) -> Option<Ended> {
        match span.times(&mut self.clock) {
            Err(Error::NotReady { .. }) => return Some(span),
            Ok(times) => {
                let ready = span.into_ready(times, &mut self.spare);
                self.give(ready);
            }
            Err(error) => {
                *self.failed += 1;
                span.discard();
                self.note(error);
            }
        }
        None
    }

    #[cold]
    fn note(&mut self, error: Error) {
        self.error.get_or_insert(error);
    }

    /// Places a span, if there is an anchor after it and none of its stream is kept back.
    #[inline]
    fn give(&mut self, ready: Ready) {
        if self.is_anchored(ready.times.end)
            && !self.ready.iter().any(|kept| kept.stream == ready.stream)
        {
            let span = self.inner.place(&mut self.clock, ready);
            self.given.push(span);
        } else {
            self.ready.push(ready);
        }
    }

    #[inline]
    fn is_anchored(&mut self, end: Stamp) -> bool {
        self.clock.newest().is_some_and(|newest| end.device <= newest) || self.anchor(end)
    }

    /// All that was done before this drain comes before an anchor that the drain records.
    #[cold]
    #[inline(never)]
    fn anchor(&mut self, end: Stamp) -> bool {
        if self.anchored == Anchored::NotTried {
            self.anchored = Anchored::Tried;
            let (inner, clock) = (self.inner, &mut self.clock);
            // One that is pending may be stamped before the spans.
            let done = clock.settle(|| inner.now()).and_then(|settled| {
                let done = inner.anchor(clock)?;
                if done && !settled { inner.anchor(clock) } else { Ok(done) }
            });
            if let Err(error) = done {
                self.note(error);
                self.anchored = Anchored::Failed;
            }
        }
        self.anchored == Anchored::Failed
            || self.clock.newest().is_some_and(|newest| end.device <= newest)
    }
}

/// The end of a span, and the error of its places. Start and end may be placed by different
/// anchors, so the end may come out before the start.
#[inline]
fn end_of(start: Place, end: Place) -> (f64, f64) {
    (end.ns.max(start.ns), start.error.max(end.error))
}

/// Returns the shard of a thread's spans.
fn shard_of(thread: &Thread) -> usize {
    thread.number() as usize % SHARDS
}

/// The nearest whole number of nanoseconds. `f64::round` is a slow call on many targets.
fn nanoseconds(ns: f64) -> Duration {
    Duration::from_nanos((ns.max(0.0) + 0.5) as u64)
}

/// The next whole number of nanoseconds.
fn not_below(ns: f64) -> Duration {
    let whole = ns as u64;
    Duration::from_nanos(whole.saturating_add(u64::from((whole as f64) < ns)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_does_not_end_before_its_start() {
        let place = |ns, error| Place { ns, error };
        assert_eq!(end_of(place(10.0, 1.0), place(15.0, 2.0)), (15.0, 2.0));
        assert_eq!(end_of(place(10.0, 3.0), place(15.0, 2.0)), (15.0, 3.0));
        assert_eq!(end_of(place(10.0, 1.0), place(9.0, 2.0)), (10.0, 2.0));
    }

    #[test]
    fn times_are_rounded_and_bounds_are_rounded_up() {
        for (ns, nearest, bound) in [
            (-7.0, 0, 0),
            (0.0, 0, 0),
            (0.25, 0, 1),
            (0.5, 1, 1),
            (41.0, 41, 41),
            (41.5, 42, 42),
            (1e15 + 0.25, 1_000_000_000_000_000, 1_000_000_000_000_001),
            (f64::INFINITY, u64::MAX, u64::MAX),
        ] {
            assert_eq!(nanoseconds(ns), Duration::from_nanos(nearest), "{ns}");
            assert_eq!(not_below(ns), Duration::from_nanos(bound), "{ns}");
        }
    }
}
