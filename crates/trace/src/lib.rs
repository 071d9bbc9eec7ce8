//! Records GPU work as spans between timing events of [`cuda_events`], and draws them on a time
//! axis.
//!
//! The axis shows the time of the host's clock. The picture is a file for Perfetto, or one HTML
//! file.
//!
//! A [`Tracer`] records spans in the streams of a context, from any thread. Recording does not wait
//! for the work. It waits only to read the GPU's clock, four times a second. A [`HostRecorder`]
//! records driver calls, and spans, counters and markers of the host. A [`Trace`] combines both,
//! and writes them.
//!
//! ```no_run
//! use cuda_events::{Context, Device, Driver, EventFlags, Stream, StreamOptions};
//! use cuda_events_trace::{HostRecorder, Tracer};
//! use std::fs::File;
//! use std::time::Duration;
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     // Records the driver calls. If a stream waits for another one, the trace shows an arrow.
//!     // Omit it if you do not need this.
//!     let recorder = HostRecorder::new();
//!     let driver = recorder.observe(Driver::load()?)?;
//!
//!     let context = Context::primary(Device::new(driver, 0)?)?;
//!     let copies = Stream::new(&context, StreamOptions::new())?;
//!     let work = Stream::new(&context, StreamOptions::new())?;
//!     let tracer = Tracer::new(&context)?;
//!     tracer.name_stream(&copies, "copies");
//!     tracer.name_stream(&work, "work");
//!
//!     let upload = tracer.span(&copies, "upload")?;
//!     // ... submit copies to the stream `copies` ...
//!     upload.end(&copies)?;
//!     let uploaded = copies.record_event(EventFlags::empty())?;
//!     work.wait_event(&uploaded)?;
//!     tracer.time(&work, "compute", || {
//!         // ... launch kernels in the stream `work` ...
//!         Ok::<_, cuda_events::Error>(())
//!     })?;
//!
//!     // Waits at most a minute for the work of ended spans.
//!     let mut trace = tracer.finish(Duration::from_secs(60));
//!     driver.stop_observing();
//!     trace.add_host(recorder.take());
//!     trace.write_html(&mut File::create("trace.html")?)?;
//!     trace.write_chrome(&mut File::create("trace.json")?)?;
//!     Ok(())
//! }
//! ```
//!
//! `trace.html` opens in any browser, without a network. `trace.json` is for Perfetto.
//!
//! # Cost
//!
//! A span takes two timing records, two events of a pool, and two readings of the host's clock.
//! Four times a second, a call of [`Tracer::span`] or [`Span::end`] also reads the GPU's clock: it
//! records one more event, and waits for it for at most 50 µs. Collecting a span makes two or three
//! calls of [`cuEventElapsedTime`].
//!
//! A tracer keeps its spans until [`Tracer::drain_ready`], [`Tracer::drain`] or [`Tracer::finish`]
//! collects them. In a long run, collect the spans from time to time. Otherwise memory and events
//! pile up.
//!
//! # Feature flags
//!
//! `tracing`: [`HostRecorder::layer`](HostRecorder) is a layer of `tracing-subscriber`. It shows
//! spans of the crate `tracing` in the rows of their threads.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![deny(missing_docs, unreachable_pub, unsafe_code)]
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::unreachable
)]
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)
)]

#[cfg(doc)]
use cuda_events::sys::functions::cuEventElapsedTime;

mod chrome;
mod clock;
mod host;
mod html;
mod json;
#[cfg(feature = "tracing")]
mod layer;
mod picture;
mod stream_id;
mod thread;
mod trace;
mod tracer;
mod write;

pub use host::{
    CounterValue, DriverCall, HostRecorder, HostRecords, HostSpan, HostSpanGuard, Marker,
};
#[cfg(feature = "tracing")]
pub use layer::HostLayer;
pub use stream_id::StreamId;
pub use thread::Thread;
pub use trace::{Args, GpuSpan, Trace};
pub use tracer::{Span, Tracer};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
