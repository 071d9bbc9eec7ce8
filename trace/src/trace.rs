//! What was collected, and the two forms in which it is written.

use core::fmt;
use core::time::Duration;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Instant;

use cuda_events::Error;

use crate::host::{DriverCall, HostRecords, HostSpan};
use crate::picture::Picture;
use crate::stream_id::StreamId;
use crate::thread::Thread;
use crate::{chrome, html};

/// A span of GPU work whose time is known.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct GpuSpan {
    /// Its name.
    pub name: Cow<'static, str>,
    /// The stream that it was begun in.
    pub stream: StreamId,
    /// The thread that began it.
    pub thread: Thread,
    /// When the host began it.
    pub begun: Instant,
    /// When the host ended it. The work may have been pending.
    pub ended: Instant,
    /// When the device came to its beginning, on the host's axis.
    pub start: Instant,
    /// When the device came to its end, on the host's axis.
    pub end: Instant,
    /// How far off [`start`](Self::start) and [`end`](Self::end) can be: half of the time that the
    /// host needed to see an anchor, as measured before and after the span.
    ///
    /// It holds as long as the device's clock and the host's keep their rates between two anchors.
    /// A span that no anchor follows, because the driver returned an error for one, is placed as if
    /// the clocks drifted apart by 600 ppm at most.
    pub error: Duration,
    /// How long the work took, by the device's clock.
    pub duration: Duration,
    /// How far off [`duration`](Self::duration) can be by the steps of the driver's numbers: none
    /// where the device's stamps are known to lie on a grid of 32 ns, 15 ns at most otherwise, for
    /// spans of up to half a second. A longer one has two such errors, and one for each anchor
    /// while it lasted. Where no span was begun or ended for long meanwhile, it has half a step of
    /// that time: a quarter of a microsecond for 4 s, 2 µs for a minute, 125 µs for an hour.
    ///
    /// NVIDIA names a resolution of about half a microsecond for the stamps themselves.
    pub duration_error: Duration,
}

/// What was collected: spans of the GPU and of the host, and driver calls. It is written for
/// Perfetto, or as a page for a browser.
///
/// [`Tracer::finish`](crate::Tracer::finish) makes one. A program that drains puts its spans into
/// one of its own.
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
/// // To a file, or to whatever else can be written to.
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
    /// The names of streams' rows.
    pub stream_names: BTreeMap<StreamId, String>,
    /// How many spans were ended whose work was not done within the limit.
    pub unfinished: usize,
    /// How many spans were neither ended nor dropped.
    pub open: usize,
    /// How many spans were dropped without an end.
    pub dropped: usize,
    /// How many spans have no time because of an error.
    pub failed: usize,
    /// The first error that nobody was told of before.
    pub error: Option<Error>,
}

impl Trace {
    /// An empty trace.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds what a recorder of the host kept.
    pub fn add_host(&mut self, records: HostRecords) {
        let HostRecords { mut spans, mut calls } = records;
        self.host_spans.append(&mut spans);
        self.calls.append(&mut calls);
    }

    /// Adds another trace, such as that of another device's tracer.
    pub fn merge(&mut self, mut other: Self) {
        self.spans.append(&mut other.spans);
        self.host_spans.append(&mut other.host_spans);
        self.calls.append(&mut other.calls);
        self.stream_names.append(&mut other.stream_names);
        self.unfinished += other.unfinished;
        self.open += other.open;
        self.dropped += other.dropped;
        self.failed += other.failed;
        self.error = self.error.take().or(other.error);
    }

    /// Writes it as Chrome trace JSON, which Perfetto opens.
    ///
    /// A row is a stream or a thread of the host. Spans of one stream that overlap without nesting
    /// take another row. A wait of a stream for an event is an arrow from the last span that ended
    /// in the event's stream before the record, to the first span that begins in the waiting stream
    /// after the wait; where there is no such span, between the two driver calls.
    ///
    /// # Errors
    ///
    /// Those of the writer.
    pub fn write_chrome(&self, out: &mut impl Write) -> io::Result<()> {
        chrome::write(&Picture::of(self), out)
    }

    /// Writes it as one HTML file. A browser shows it without a network: rows, zoom, the times of
    /// what is under the pointer, and the arrows of [`write_chrome`](Self::write_chrome).
    ///
    /// # Errors
    ///
    /// Those of the writer.
    pub fn write_html(&self, out: &mut impl Write) -> io::Result<()> {
        html::write(&Picture::of(self), out)
    }

    /// What is not shown, in words; empty if nothing is missing.
    pub(crate) fn missing(&self) -> String {
        let mut text = String::new();
        let counts = [
            (self.unfinished, "not done in time"),
            (self.open, "without an end yet"),
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

/// In short: how many spans, and what is missing.
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
