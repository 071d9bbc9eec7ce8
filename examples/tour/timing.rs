//! Part 2: the duration of a memset and a copy, measured by the device.

use std::io::Write;

use cuda_events::sys::CUresult;
use cuda_events::{Context, Error, Event, EventFlags, Stream, StreamOptions};

use crate::gpu::finish;
use crate::memory::{DeviceBuffer, HostBuffer};
use crate::report::{Failure, Table};
use crate::trace::Spans;

const REPETITIONS: usize = 11;
const VALUE: u32 = 0xC0DE_DA7A;

pub(crate) fn show(
    out: &mut impl Write,
    table: &mut Table,
    context: &Context,
    spans: &Spans,
    bytes: usize,
) -> Result<(), Failure> {
    let mib = bytes >> 20;
    let available = context.device().total_memory()?;
    if bytes > available / 2 {
        let available = available >> 20;
        return Err(Failure::Usage(format!(
            "--mib {mib} needs two buffers of {mib} MiB; the device has {available} MiB"
        )));
    }
    let no_room = |error: Error| match error.code() {
        Some(CUresult::CUDA_ERROR_OUT_OF_MEMORY) => Failure::Runtime(format!(
            "the device has no room for two buffers of {mib} MiB now: {error}"
        )),
        _ => error.into(),
    };
    let first = DeviceBuffer::new(context, bytes).map_err(no_room)?;
    let second = DeviceBuffer::new(context, bytes).map_err(no_room)?;
    let stream = Stream::new(context, StreamOptions::new())?;

    writeln!(out, "\n2. Timing: {mib} MiB on one stream, between two timing events")?;
    spans.name(&stream, "2. timing");
    let memset = median_ms(spans, "memset", &stream, || first.fill(VALUE, &stream))?;
    let copy = median_ms(spans, "copy", &stream, || first.copy_to(&second, &stream))?;

    // The numbers count only if the work was done.
    let end = HostBuffer::new(context, bytes.min(1 << 20))?;
    second.download(&end, &stream)?;
    finish(&stream.record_event(EventFlags::empty())?)?;
    // SAFETY: the event after the copy is done, and nothing else writes there.
    if unsafe { end.words() }.iter().any(|word| *word != VALUE) {
        return Err(Failure::Runtime("the copy does not have the bytes of the memset".to_owned()));
    }

    for (what, name, ms, moved, counted) in [
        ("memset", "cuMemsetD32Async", memset, bytes, "bytes written"),
        ("copy", "cuMemcpyDtoDAsync", copy, 2 * bytes, "bytes read plus bytes written"),
    ] {
        let rate = moved as f64 / 1e9 / (f64::from(ms) / 1e3);
        writeln!(out, "   {what:6}  {ms:9.3} ms  {rate:9.1} GB/s  {name}, {counted}")?;
        table.row(
            &format!("{what} of {mib} MiB"),
            &format!("{ms:.3} ms"),
            &format!("{rate:.1} GB/s"),
            counted,
        );
    }
    writeln!(
        out,
        "   Each time is the median of {REPETITIONS} runs after a warm-up; 1 GB is 10^9 bytes. The \
         data was checked."
    )?;
    Ok(())
}

/// The median time of several runs of `work` in milliseconds, after one run that is not counted.
fn median_ms(
    spans: &Spans,
    name: &'static str,
    stream: &Stream,
    work: impl Fn() -> Result<(), Error>,
) -> Result<f32, Failure> {
    let start = Event::new(stream.context(), EventFlags::TIMING)?;
    let end = Event::new(stream.context(), EventFlags::TIMING)?;
    let mut times = Vec::with_capacity(REPETITIONS);
    for repetition in 0..=REPETITIONS {
        // Around what is timed, so that a span's records are not.
        spans.show(stream, name, || {
            start.record(stream)?;
            work()?;
            end.record(stream)
        })?;
        finish(&end)?;
        if repetition > 0 {
            times.push(start.elapsed_ms(&end)?);
        }
    }
    times.sort_by(f32::total_cmp);
    Ok(times[REPETITIONS / 2])
}
