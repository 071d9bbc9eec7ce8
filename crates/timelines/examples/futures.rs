//! Awaits GPU work in tokio. The thread goes on with other tasks meanwhile.

use std::sync::mpsc::channel;

use cuda_events::{Context, EventFlags, Stream, StreamOptions};
use cuda_soft_driver::SoftDriver;
use cuda_timelines::{CudaEventExt, CudaStreamExt};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // One thread: if an await blocked it, this program would not end.
    tokio::runtime::Builder::new_current_thread().build()?.block_on(run())
}

async fn run() -> Result<(), Box<dyn std::error::Error>> {
    // The first GPU, or the software driver on a machine without one.
    let soft = SoftDriver::new();
    let context = Context::primary(soft.gpu_or_soft()?)?;
    println!("on {}", context.device().name()?);

    // Work that ends when the second task below sends a message.
    let stream = Stream::new(&context, StreamOptions::new())?;
    let (end, ended) = channel();
    stream.launch_host_function(move || {
        let _ = ended.recv();
    })?;
    let done = stream.record_event(EventFlags::empty())?;

    let waits = tokio::spawn(async move {
        println!("the first task waits for the event");
        done.completion().await?;
        println!("the first task's work is done");
        Ok::<_, cuda_events::Error>(())
    });
    let ends = tokio::spawn(async move {
        println!("the second task runs meanwhile");
        let _ = end.send(());
    });
    waits.await??;
    ends.await?;

    // Awaits the work that is in the stream now. This crate creates the event.
    let completion = stream.completion()?;
    tokio::spawn(completion).await??;
    assert!(stream.query()?.is_done());
    Ok(())
}
