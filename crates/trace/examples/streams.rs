//! Traces two streams and two threads, and writes `trace.html` and `trace.json`, or the two
//! named files.
//!
//! ```text
//! cargo run --package cuda-events-trace --example streams -- [--soft] [FILE.html [FILE.json]]
//! ```
//!
//! With `--soft`, or without an NVIDIA driver, it runs on the software driver, whose streams are
//! busy for a given time. On a GPU the work is memsets.

use std::fs::File;
use std::io::BufWriter;
use std::time::Duration;

use cuda_events::{Context, Device, Driver, Error, EventFlags, Stream, StreamOptions, StreamRef};
use cuda_events_trace::{HostRecorder, Tracer};
use cuda_soft_driver::SoftDriver;
use memory::DeviceBuffer;

#[path = "../../../examples/memory/mod.rs"]
mod memory;

const BYTES: usize = 64 << 20;

/// Work for a stream.
struct Work<'a> {
    soft: Option<&'a SoftDriver>,
    memory: &'a DeviceBuffer,
}

impl Work<'_> {
    fn put_into(&self, stream: &StreamRef, amount: u32) -> Result<(), Error> {
        if let Some(soft) = self.soft {
            soft.busy(stream, Duration::from_millis(2) * amount);
            return Ok(());
        }
        for _ in 0..amount {
            self.memory.fill(1, stream)?;
        }
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments: Vec<_> = std::env::args().skip(1).collect();
    let soft_wanted = arguments.iter().any(|argument| argument == "--soft");
    arguments.retain(|argument| argument != "--soft");
    let mut files = arguments.into_iter();
    let html = files.next().unwrap_or_else(|| "trace.html".to_owned());
    let json = files.next().unwrap_or_else(|| "trace.json".to_owned());

    let native = if soft_wanted { None } else { Driver::load().ok() };
    let soft = native.is_none().then(SoftDriver::new);
    let Some(driver) = native.or(soft.as_ref().map(SoftDriver::driver)) else {
        return Err("no driver was found".into());
    };
    let recorder = HostRecorder::new();
    let driver = recorder.observe(driver)?;
    let context = Context::primary(Device::new(driver, 0)?)?;
    let copies = Stream::new(&context, StreamOptions::new())?;
    let compute = Stream::new(&context, StreamOptions::new())?;
    let memory = DeviceBuffer::new(&context, BYTES)?;
    let work = Work { soft: soft.as_ref(), memory: &memory };

    let tracer = Tracer::new(&context)?;
    tracer.name_stream(&copies, "copies");
    tracer.name_stream(&compute, "compute");
    for step in 0..3 {
        recorder.marker(format!("step {step}"));
        recorder.counter("uploads", 1.0);
        let _step = recorder.span("step").arg("number", step);
        let upload = tracer.span(&copies, "upload")?.category("copy").arg("step", step);
        work.put_into(&copies, 1)?;
        upload.end(&copies)?;
        let uploaded = copies.record_event(EventFlags::empty())?;
        // Another thread consumes.
        let (tracer, recorder, compute, work) = (&tracer, &recorder, &compute, &work);
        let consume = move || -> Result<(), Error> {
            let _span = recorder.span("launch");
            compute.wait_event(&uploaded)?;
            let outer = tracer.span(compute, format!("step {step}"))?;
            tracer.time(compute, "forward <attention & \"norm\">", || work.put_into(compute, 1))?;
            tracer.time(compute, "backward", || work.put_into(compute, 2))?;
            outer.end(compute)
        };
        recorder.counter("uploads", 0.0);
        std::thread::scope(|scope| {
            let builder = std::thread::Builder::new().name("consumer".to_owned());
            builder.spawn_scoped(scope, consume)?.join().map_err(|_| "the consumer panicked")??;
            Ok::<_, Box<dyn std::error::Error>>(())
        })?;
    }
    let mut trace = tracer.finish(Duration::from_secs(60));
    driver.stop_observing();
    trace.add_host(recorder.take());
    trace.write_html(&mut BufWriter::new(File::create(&html)?))?;
    trace.write_chrome(&mut BufWriter::new(File::create(&json)?))?;
    println!("{trace}; written: {html}, {json}");
    Ok(())
}
