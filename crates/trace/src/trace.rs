//! The collected trace, and its two output formats.

use core::fmt;
use core::ops::Range;
use core::time::Duration;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Instant;

use cuda_events::Error;

use crate::host::{CounterValue, DriverCall, HostRecords, HostSpan, Marker};
use crate::stream_id::StreamId;
use crate::thread::Thread;

/// Names and values that a span was given.
pub type Args = Vec<(Cow<'static, str>, String)>;

/// A span of GPU work with its times.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct GpuSpan {
    /// The span's name.
    pub name: Cow<'static, str>,
    /// The span's category. In the page, spans of one category have one colour.
    pub category: Option<Cow<'static, str>>,
    /// The span's arguments.
    pub args: Args,
    /// The stream in which the span began.
    pub stream: StreamId,
    /// The thread that began the span.
    pub thread: Thread,
    /// The time at which the host began the span.
    pub begun: Instant,
    /// The time at which the host ended the span. Its work may still have been pending.
    pub ended: Instant,
    /// The time at which the device reached the begin, on the host's clock.
    pub start: Instant,
    /// The time at which the device reached the end, on the host's clock.
    pub end: Instant,
    /// The error bound of [`start`](Self::start) and [`end`](Self::end).
    ///
    /// It is half of the time in which the host saw the [anchors](crate::Tracer#the-clock) before
    /// and after the span. It assumes that both clocks keep their rates between two anchors. If the
    /// driver returned an error for the later anchor, it assumes a drift of at most 600 ppm.
    pub error: Duration,
    /// The time that the work took, on the device's clock.
    pub duration: Duration,
    /// The error bound of [`duration`](Self::duration), from the precision of the driver's numbers.
    ///
    /// For a span of up to half a second it is at most 15 ns. For a longer one it grows by as much
    /// for each [anchor](crate::Tracer#the-clock) during the span. If no other span begins or ends
    /// for a long time, it is half a step of the driver's `f32` for that time: 2 µs for a minute,
    /// 125 µs for an hour.
    ///
    /// NVIDIA states a resolution of about half a microsecond for the time stamps themselves.
    pub duration_error: Duration,
}

/// A collected trace: spans of the GPU and of the host, and driver calls.
///
/// Write it for Perfetto, or as a page for a browser. [`Tracer::finish`](crate::Tracer::finish)
/// returns one. If you collect spans with [`Tracer::drain_ready`](crate::Tracer::drain_ready), add
/// them to a trace of your own.
///
/// ```
/// # use cuda_events::{Context, Device, Stream, StreamOptions};
/// use cuda_events_trace::{Trace, Tracer};
///
/// # let soft = cuda_soft_driver::SoftDriver::new();
/// # let driver = soft.driver();
/// # let context = Context::primary(Device::new(driver, 0)?)?;
/// # let stream = Stream::new(&context, StreamOptions::new())?;
/// let tracer = Tracer::new(&context)?;
/// tracer.span(&stream, "work")?.end(&stream)?;
/// stream.synchronize()?;
///
/// let mut trace = Trace::new();
/// trace.spans.extend(tracer.drain_ready()?);
/// // Any writer works, such as a file.
/// let mut page = Vec::new();
/// trace.write_html(&mut page).expect("memory takes it");
/// assert!(page.starts_with(b"<!doctype html>"));
/// # Ok::<(), cuda_events::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Trace {
    /// Spans of GPU work.
    pub spans: Vec<GpuSpan>,
    /// Spans of the host.
    pub host_spans: Vec<HostSpan>,
    /// Driver calls. Waits of streams for events become arrows.
    pub calls: Vec<DriverCall>,
    /// Values of counters. Each counter has a row.
    pub counters: Vec<CounterValue>,
    /// Markers.
    pub markers: Vec<Marker>,
    /// The range of time that the page shows first. `None` is the whole trace.
    ///
    /// ```
    /// # let mut trace = cuda_events_trace::Trace::new();
    /// if let (Some(first), Some(last)) = (trace.spans.first(), trace.spans.last()) {
    ///     trace.shown_first = Some(first.start..last.end);
    /// }
    /// ```
    pub shown_first: Option<Range<Instant>>,
    /// The names of each stream, with the times at which they were given. The driver uses the
    /// handle of a destroyed stream again, so one `StreamId` can have several names.
    pub stream_names: BTreeMap<StreamId, Vec<(Instant, String)>>,
    /// The number of ended spans whose work was not done within the timeout.
    pub unfinished: usize,
    /// The number of spans that are still open.
    pub open: usize,
    /// The number of spans that were dropped without an end.
    pub dropped: usize,
    /// The number of spans that have no time because of an error.
    pub failed: usize,
    /// The first error that neither [`drain_ready`](crate::Tracer::drain_ready) nor
    /// [`drain`](crate::Tracer::drain) has returned.
    pub error: Option<Error>,
}

impl Trace {
    /// Creates an empty trace.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the records of a host recorder.
    pub fn add_host(&mut self, records: HostRecords) {
        let HostRecords { mut spans, mut calls, mut counters, mut markers } = records;
        self.host_spans.append(&mut spans);
        self.calls.append(&mut calls);
        self.counters.append(&mut counters);
        self.markers.append(&mut markers);
    }

    /// Adds another trace, such as one of another device's tracer.
    pub fn merge(&mut self, mut other: Self) {
        self.spans.append(&mut other.spans);
        self.host_spans.append(&mut other.host_spans);
        self.calls.append(&mut other.calls);
        self.counters.append(&mut other.counters);
        self.markers.append(&mut other.markers);
        self.shown_first = self.shown_first.take().or(other.shown_first);
        for (stream, mut names) in std::mem::take(&mut other.stream_names) {
            let all = self.stream_names.entry(stream).or_default();
            all.append(&mut names);
            all.sort_by_key(|(at, _)| *at);
        }
        self.unfinished += other.unfinished;
        self.open += other.open;
        self.dropped += other.dropped;
        self.failed += other.failed;
        self.error = self.error.take().or(other.error);
    }

    /// What is not shown, in words; empty if nothing is missing.
    pub(crate) fn missing(&self) -> String {
        let mut text = String::new();
        let counts = [
            (self.unfinished, "not done before the timeout"),
            (self.open, "not ended yet"),
            (self.dropped, "dropped without an end"),
            (self.failed, "failed"),
        ];
        for (count, what) in counts {
            if count > 0 {
                let separator = if text.is_empty() { "not shown: " } else { ", " };
                text.push_str(&format!("{separator}{count} {what}"));
            }
        }
        if let Some(error) = &self.error {
            let separator = if text.is_empty() { "" } else { "; " };
            text.push_str(&format!("{separator}{error}"));
        }
        text
    }
}

/// Prints a summary: the number of spans, and the missing ones.
impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { spans, host_spans, calls, .. } = self;
        write!(
            f,
            "{} spans of the GPU, {} of the host, {} driver calls",
            spans.len(),
            host_spans.len(),
            calls.len()
        )?;
        let missing = self.missing();
        if missing.is_empty() { Ok(()) } else { write!(f, "; {missing}") }
    }
}
