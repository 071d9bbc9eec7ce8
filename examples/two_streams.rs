//! Orders the work of two streams by an event. The host waits once, at the end.

use std::sync::mpsc::channel;
use std::time::Duration;

use cuda_events::{Context, Event, EventFlags, Stream, StreamOptions};
use cuda_soft_driver::SoftDriver;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The first GPU, or the software driver on a machine without one.
    let soft = SoftDriver::new();
    let context = Context::primary(soft.gpu_or_soft()?)?;
    println!("on {}", context.device().name()?);

    let producer = Stream::new(&context, StreamOptions::new())?;
    let consumer = Stream::new(&context, StreamOptions::new())?;
    let produced = Event::new(&context, EventFlags::empty())?;

    // A host function stands for a kernel or a copy. It ends when the host sends a message.
    let (end, ended) = channel();
    producer.launch_host_function(move || {
        let _ = ended.recv();
    })?;
    produced.record(&producer)?;
    consumer.wait_event(&produced)?;
    // ... work is put into `consumer` ...
    let consumed = consumer.record_event(EventFlags::empty())?;

    // Both streams have work queued, and none of it is done.
    assert!(consumed.synchronize_timeout(Duration::from_millis(20))?.is_pending());
    assert!(produced.query()?.is_pending());
    end.send(())?;
    consumed.synchronize()?;
    assert!(produced.query()?.is_done(), "the consumer ran after the producer");

    // The same order without an event to keep: record and wait in one call.
    consumer.wait_stream(&producer)?;
    consumer.synchronize()?;
    println!("the consumer ran after the producer");
    Ok(())
}
