//! Waits for an event with a limit, and stays in control when the work takes longer.

use std::sync::mpsc::channel;
use std::time::Duration;

use cuda_events::{Context, EventFlags, Progress, Stream, StreamOptions};
use cuda_soft_driver::SoftDriver;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The first GPU, or the software driver on a machine without one.
    let soft = SoftDriver::new();
    let context = Context::primary(soft.gpu_or_soft()?)?;
    println!("on {}", context.device().name()?);

    // Work that ends when the host sends a message.
    let stream = Stream::new(&context, StreamOptions::new())?;
    let (end, ended) = channel();
    stream.launch_host_function(move || {
        let _ = ended.recv();
    })?;
    let done = stream.record_event(EventFlags::empty())?;

    let limit = Duration::from_millis(20);
    match done.synchronize_timeout(limit)? {
        Progress::Done => unreachable!("the work has not been ended"),
        Progress::Pending => println!("not done after {limit:?}"),
    }
    // A stream has the same method.
    assert!(stream.synchronize_timeout(limit)?.is_pending());

    end.send(())?;
    assert!(done.synchronize_timeout(Duration::from_secs(60))?.is_done());
    println!("done");
    Ok(())
}
