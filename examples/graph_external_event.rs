//! A graph that records an event at each launch. Another stream waits for that event.

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use cuda_events::capture::{Capture, CaptureMode};
use cuda_events::{Context, Event, EventFlags, Stream, StreamOptions};
use cuda_soft_driver::SoftDriver;

static RUNS: AtomicU32 = AtomicU32::new(0);

/// Stands for a kernel.
unsafe extern "C" fn work(_: *mut c_void) {
    std::thread::sleep(Duration::from_millis(5));
    RUNS.fetch_add(1, Ordering::Relaxed);
}

fn main() -> cuda_events::Result<()> {
    // The first GPU, or the software driver on a machine without one.
    let soft = SoftDriver::new();
    let context = Context::primary(soft.gpu_or_soft()?)?;
    println!("on {}", context.device().name()?);

    let stream = Stream::new(&context, StreamOptions::new())?;
    let consumer = Stream::new(&context, StreamOptions::new())?;
    let done = Arc::new(Event::new(&context, EventFlags::empty())?);

    // SAFETY: no other thread uses the stream until the capture has ended.
    let capture = unsafe { Capture::begin(&stream, CaptureMode::ThreadLocal) }?;
    // SAFETY: the function makes no driver call, does not unwind, and ignores its argument.
    unsafe { stream.launch_host_function_raw(work, null_mut()) }?;
    // `record` would only order work in the capture. `record_external` adds a node to the graph.
    stream.record_external(&done)?;
    let graph = capture.end()?.instantiate()?;
    assert_eq!(RUNS.load(Ordering::Relaxed), 0, "a capture runs no work");

    for launch in 1..=3 {
        graph.launch(&stream)?;
        consumer.wait_event(&done)?;
        // ... work on the result is put into `consumer` ...
        consumer.synchronize()?;
        assert_eq!(RUNS.load(Ordering::Relaxed), launch, "the consumer waits for this launch");
        println!("launch {launch}: the consumer ran after the work");
    }
    Ok(())
}
