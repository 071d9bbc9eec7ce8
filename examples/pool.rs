//! Takes short-lived events from a pool: a thousand uses, and two events created.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use cuda_events::ext::EventPool;
use cuda_events::sys::Function;
use cuda_events::{Context, Device, EventFlags, Stream, StreamOptions};
use cuda_soft_driver::SoftDriver;

fn main() -> cuda_events::Result<()> {
    // The first GPU, or the software driver on a machine without one.
    let soft = SoftDriver::new();
    let device = soft.gpu_or_soft()?;

    // An observer counts the events that the driver creates.
    let created = Arc::new(AtomicU32::new(0));
    let count = created.clone();
    let driver = device.driver().observe(move |call| {
        if call.function == Function::cuEventCreate {
            count.fetch_add(1, Ordering::Relaxed);
        }
    })?;
    let context = Context::primary(Device::new(driver, 0)?)?;
    println!("on {}", context.device().name()?);

    let producer = Stream::new(&context, StreamOptions::new())?;
    let consumer = Stream::new(&context, StreamOptions::new())?;
    let pool = EventPool::new(&context, EventFlags::empty())?;
    pool.reserve(2)?;

    for _ in 0..1000 {
        // ... work is put into `producer` ...
        let produced = pool.record_event(&producer)?;
        consumer.wait_event(&produced)?;
        // ... work is put into `consumer` ...
        // The event returns to the pool here. The queued wait still refers to this record.
    }
    consumer.synchronize()?;

    assert_eq!(pool.available(), 2);
    assert_eq!(created.load(Ordering::Relaxed), 2);
    println!("1000 events taken, {} created", created.load(Ordering::Relaxed));
    Ok(())
}
