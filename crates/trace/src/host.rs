//! The host's part of a trace: spans of code, and driver calls.

use core::fmt;
use std::borrow::Cow;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use cuda_events::observer::Call;
use cuda_events::sys::{CUresult, Function};
use cuda_events::{Driver, Result};

use crate::stream_id::StreamId;
use crate::thread::{Quiet, Thread, lock};
use crate::trace::Args;

const SHARDS: usize = 16;

/// How many arguments of a call are kept; none that this crate reads comes later.
const ARGUMENTS: usize = 6;

/// Records the host's work: driver calls, spans of the crate `tracing` (feature `tracing`), and
/// spans of your own.
///
/// [`take`](Self::take) returns the records, for [`Trace::add_host`](crate::Trace::add_host). Until
/// then the recorder keeps all of them. Clones share one recorder. It may be used from any thread.
///
/// ```
/// use cuda_events::{Context, Device, EventFlags, Stream, StreamOptions};
/// use cuda_events_trace::{HostRecorder, Trace};
///
/// # let soft = cuda_soft_driver::SoftDriver::new();
/// # let driver = soft.driver();
/// let recorder = HostRecorder::new();
/// let observed = recorder.observe(driver)?;
/// let context = Context::primary(Device::new(observed, 0)?)?;
/// let one = Stream::new(&context, StreamOptions::new())?;
/// let two = Stream::new(&context, StreamOptions::new())?;
/// {
///     let _span = recorder.span("join");
///     let event = one.record_event(EventFlags::empty())?;
///     two.wait_event(&event)?;
/// }
/// observed.stop_observing();
///
/// let mut trace = Trace::new();
/// trace.add_host(recorder.take());
/// assert_eq!(trace.host_spans[0].name, "join");
/// assert!(trace.calls.iter().any(|call| call.function.name() == "cuStreamWaitEvent"));
/// # Ok::<(), cuda_events::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct HostRecorder(Arc<[Mutex<HostRecords>; SHARDS]>);

/// The records of a [`HostRecorder`].
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct HostRecords {
    /// Spans of code.
    pub spans: Vec<HostSpan>,
    /// Driver calls.
    pub calls: Vec<DriverCall>,
    /// Values of counters.
    pub counters: Vec<CounterValue>,
    /// Markers.
    pub markers: Vec<Marker>,
}

/// A counter's new value and its time, from [`HostRecorder::counter`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CounterValue {
    /// The counter's name.
    pub name: Cow<'static, str>,
    /// The time from which the counter has the value.
    pub at: Instant,
    /// The value.
    pub value: f64,
}

/// A point in time with a name, from [`HostRecorder::marker`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Marker {
    /// The marker's name.
    pub name: Cow<'static, str>,
    /// The thread that set the marker.
    pub thread: Thread,
    /// The time of the marker.
    pub at: Instant,
}

/// A span of code on the host.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HostSpan {
    /// The span's name.
    pub name: Cow<'static, str>,
    /// The span's category. In the page, spans of one category have one colour.
    pub category: Option<Cow<'static, str>>,
    /// The span's arguments; the fields of a span of `tracing`.
    pub args: Args,
    /// The thread that ran the code.
    pub thread: Thread,
    /// The time at which the thread entered the span.
    pub start: Instant,
    /// The time at which the thread left the span.
    pub end: Instant,
}

/// A driver call of the program. The calls of a tracer itself are not recorded.
#[derive(Clone)]
#[non_exhaustive]
pub struct DriverCall {
    /// The entry point.
    pub function: Function,
    /// The code that the call returned.
    pub result: CUresult,
    /// The thread that made the call.
    pub thread: Thread,
    /// The time before the call.
    pub start: Instant,
    /// The time after the call returned.
    pub end: Instant,
    arguments: [u64; ARGUMENTS],
    count: usize,
    /// Whether a NULL stream means the calling thread's default stream.
    per_thread: bool,
}

/// A record of an event, or a wait for one.
pub(crate) struct Edge {
    pub(crate) is_wait: bool,
    pub(crate) event: u64,
    /// The stream; a call does not name its device.
    pub(crate) stream: StreamId,
}

impl DriverCall {
    /// The arguments in order, each as a number: see
    /// [`observer::Call`](cuda_events::observer::Call). At most six are kept.
    pub fn arguments(&self) -> &[u64] {
        self.arguments.get(..self.count).unwrap_or_default()
    }

    /// The effect of the call on the order of streams, if the call succeeded.
    pub(crate) fn edge(&self) -> Option<Edge> {
        if self.result != CUresult::CUDA_SUCCESS {
            return None;
        }
        let (is_wait, event, stream) = match (self.function, self.arguments()) {
            (Function::cuEventRecord | Function::cuEventRecordWithFlags, &[event, stream, ..]) => {
                (false, event, stream)
            }
            (Function::cuStreamWaitEvent, &[stream, event, ..]) => (true, event, stream),
            _ => return None,
        };
        let stream = StreamId::named(0, stream as usize, self.per_thread, &self.thread);
        Some(Edge { is_wait, event, stream })
    }
}

/// Prints `cuEventRecord(0x5581c8, 0x5581d0) = CUDA_SUCCESS (0)`.
impl fmt::Display for DriverCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(", self.function)?;
        for (index, argument) in self.arguments().iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            // Flags and counts are small, addresses are not.
            if *argument < 4096 {
                write!(f, "{separator}{argument}")?;
            } else {
                write!(f, "{separator}{argument:#x}")?;
            }
        }
        write!(f, ") = {}", self.result)
    }
}

impl fmt::Debug for DriverCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl HostRecorder {
    /// Creates an empty recorder.
    pub fn new() -> Self {
        Self::default()
    }

    /// Observes a driver: calls through the result, and through objects created with it, are
    /// recorded.
    ///
    /// Call [`Driver::stop_observing`] on the result to stop. A trace shows the calls in the rows
    /// of their threads, and an arrow for each wait of a stream for an event. The [type](Self) has
    /// an example.
    ///
    /// # Errors
    ///
    /// [`Error::TooManyObservers`](cuda_events::Error::TooManyObservers).
    pub fn observe(&self, driver: Driver) -> Result<Driver> {
        let recorder = self.clone();
        let per_thread = driver.is_per_thread_default_stream();
        driver.observe(move |call| recorder.keep_call(call, per_thread))
    }

    fn keep_call(&self, call: &Call<'_>, per_thread: bool) {
        if Quiet::is_on() {
            return;
        }
        let mut arguments = [0; ARGUMENTS];
        let mut count = 0;
        for (kept, argument) in arguments.iter_mut().zip(call.arguments) {
            *kept = *argument;
            count += 1;
        }
        let thread = Thread::current();
        let end = call.started + call.elapsed;
        let Call { function, result, started: start, .. } = *call;
        let call =
            DriverCall { function, result, thread, start, end, arguments, count, per_thread };
        self.with_shard(call.thread.number(), |kept| kept.calls.push(call));
    }

    /// Records a span of the calling thread until the result is dropped.
    #[must_use = "the span ends when this is dropped"]
    pub fn span(&self, name: impl Into<Cow<'static, str>>) -> HostSpanGuard<'_> {
        let (name, start) = (name.into(), Instant::now());
        HostSpanGuard { recorder: self, name, category: None, args: Args::new(), start }
    }

    pub(crate) fn keep_span(
        &self,
        name: Cow<'static, str>,
        category: Option<Cow<'static, str>>,
        args: Args,
        start: Instant,
    ) {
        let end = Instant::now();
        let span = HostSpan { name, category, args, thread: Thread::current(), start, end };
        self.with_shard(span.thread.number(), |kept| kept.spans.push(span));
    }

    /// Records the value that a counter has from now on, such as the bytes in use.
    ///
    /// A trace shows each counter in a row of its own. A value that is not finite is not shown.
    ///
    /// ```
    /// # let recorder = cuda_events_trace::HostRecorder::new();
    /// recorder.counter("batches in flight", 2.0);
    /// recorder.marker("epoch 1");
    /// # let records = recorder.take();
    /// # assert_eq!((records.counters.len(), records.markers.len()), (1, 1));
    /// ```
    pub fn counter(&self, name: impl Into<Cow<'static, str>>, value: f64) {
        let counter = CounterValue { name: name.into(), at: Instant::now(), value };
        self.with_shard(Thread::current().number(), |kept| kept.counters.push(counter));
    }

    /// Records a point in time with a name, in the row of the calling thread.
    pub fn marker(&self, name: impl Into<Cow<'static, str>>) {
        let marker = Marker { name: name.into(), thread: Thread::current(), at: Instant::now() };
        self.with_shard(marker.thread.number(), |kept| kept.markers.push(marker));
    }

    /// Removes and returns the records.
    pub fn take(&self) -> HostRecords {
        let mut all = HostRecords::default();
        for shard in self.0.iter() {
            let mut kept = core::mem::take(&mut *lock(shard));
            all.spans.append(&mut kept.spans);
            all.calls.append(&mut kept.calls);
            all.counters.append(&mut kept.counters);
            all.markers.append(&mut kept.markers);
        }
        all
    }

    fn with_shard(&self, thread: u64, keep: impl FnOnce(&mut HostRecords)) {
        if let Some(shard) = self.0.get(thread as usize % SHARDS) {
            keep(&mut lock(shard));
        }
    }
}

impl fmt::Debug for HostRecorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostRecorder").finish_non_exhaustive()
    }
}

/// A running span of the host, from [`HostRecorder::span`].
#[derive(Debug)]
pub struct HostSpanGuard<'a> {
    recorder: &'a HostRecorder,
    name: Cow<'static, str>,
    category: Option<Cow<'static, str>>,
    args: Args,
    start: Instant,
}

impl HostSpanGuard<'_> {
    /// Adds an argument, which the trace shows with the span. See [`Span::arg`](crate::Span::arg).
    pub fn arg(mut self, name: impl Into<Cow<'static, str>>, value: impl fmt::Display) -> Self {
        self.args.push((name.into(), value.to_string()));
        self
    }

    /// Sets the category. See [`Span::category`](crate::Span::category).
    pub fn category(mut self, category: impl Into<Cow<'static, str>>) -> Self {
        self.category = Some(category.into());
        self
    }
}

impl Drop for HostSpanGuard<'_> {
    fn drop(&mut self) {
        let (name, category) = (core::mem::take(&mut self.name), self.category.take());
        self.recorder.keep_span(name, category, core::mem::take(&mut self.args), self.start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record and a wait have their arguments in other orders, and what failed orders nothing.
    #[test]
    fn calls_that_order_name_the_event_and_the_stream() {
        let edge = |function, result, arguments: [u64; 2], per_thread| {
            let (thread, now) = (Thread::current(), Instant::now());
            let [first, second] = arguments;
            let arguments = [first, second, 0, 0, 0, 0];
            let call = DriverCall {
                function,
                result,
                thread,
                start: now,
                end: now,
                arguments,
                count: 3,
                per_thread,
            };
            call.edge().map(|edge| (edge.is_wait, edge.event, edge.stream))
        };
        let stream = |raw, per_thread| StreamId::named(0, raw, per_thread, &Thread::current());
        let done = CUresult::CUDA_SUCCESS;
        let wait = Function::cuStreamWaitEvent;
        for record in [Function::cuEventRecord, Function::cuEventRecordWithFlags] {
            for per_thread in [false, true] {
                for raw in [0, 4096] {
                    let named = stream(raw, per_thread);
                    let recorded = edge(record, done, [7, raw as u64], per_thread);
                    assert_eq!(recorded, Some((false, 7, named)));
                    let waited = edge(wait, done, [raw as u64, 7], per_thread);
                    assert_eq!(waited, Some((true, 7, named)));
                }
            }
            let failed = CUresult::CUDA_ERROR_INVALID_HANDLE;
            assert_eq!(edge(record, failed, [7, 4096], false), None);
        }
        assert_eq!(edge(Function::cuEventQuery, done, [7, 4096], false), None);
    }
}
