//! Times a copy from the host to the device with two events.

use cuda_events::{Context, Event, EventFlags, Stream, StreamOptions};
use cuda_soft_driver::SoftDriver;
use memory::{DeviceBuffer, HostBuffer};

mod memory;

const BYTES: usize = 16 << 20;

fn main() -> cuda_events::Result<()> {
    // The first GPU, or the software driver on a machine without one.
    let soft = SoftDriver::new();
    let context = Context::primary(soft.gpu_or_soft()?)?;
    println!("on {}", context.device().name()?);

    let stream = Stream::new(&context, StreamOptions::new())?;
    let start = Event::new(&context, EventFlags::TIMING)?;
    let end = Event::new(&context, EventFlags::TIMING)?;

    // This crate has no memory allocator. `memory/mod.rs` wraps the driver's.
    let (to, from) = (DeviceBuffer::new(&context, BYTES)?, HostBuffer::new(&context, BYTES)?);

    start.record(&stream)?;
    to.upload(&from, &stream)?;
    end.record(&stream)?;
    end.synchronize()?;

    let time = start.elapsed(&end)?;
    assert!(!time.is_zero(), "a copy takes time");
    println!("{BYTES} bytes in {time:?}: {:.1} GB/s", BYTES as f64 / time.as_secs_f64() / 1e9);
    Ok(())
}
