//! Adopts the context and a stream of cudarc. An event of this crate is recorded after cudarc's
//! work, and stays valid when all objects of cudarc are dropped.
//!
//! cudarc opens the driver by itself. Without a GPU, `examples/cudarc/run` puts the software driver
//! in its place.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use cuda_events::{
    Context, Device, Driver, EventFlags, EventRef, ForeignStream, Stream, StreamOptions,
};
use cudarc::driver::CudaContext;

fn main() -> Result<(), Box<dyn Error>> {
    // cudarc's objects, and its work.
    let theirs = CudaContext::new(0)?;
    let their_stream = theirs.new_stream()?;
    let mut data = their_stream.alloc_zeros::<u32>(1 << 20)?;
    their_stream.memcpy_htod(&vec![7; 1 << 20], &mut data)?;
    let their_event = their_stream.record_event(None)?;

    // cudarc works in the primary context. This retains it once more.
    let context = Context::primary(Device::new(Driver::load()?, 0)?)?;
    assert_eq!(context.as_raw().cast(), theirs.cu_ctx());
    println!("on {}", context.device().name()?);

    let raw = their_stream.cu_stream().cast();
    // SAFETY: the `Arc` keeps the stream alive, and no thread captures it.
    let stream = unsafe { ForeignStream::new(&context, raw, their_stream.clone()) }?;
    let done = stream.record_event(EventFlags::empty())?;

    // Our stream waits for cudarc's event, borrowed.
    let ours = Stream::new(&context, StreamOptions::new())?;
    let raw = their_event.cu_event().cast();
    // SAFETY: cudarc's event lives longer than the borrowed form, and no capture records it. Its
    // flags are DISABLE_TIMING alone, which `empty` means.
    ours.wait_event(&unsafe { EventRef::from_raw(&context, raw, EventFlags::empty()) })?;

    // cudarc goes. The event keeps the context, and waits with a limit.
    let weak = Arc::downgrade(&their_stream);
    drop((data, their_event, stream, their_stream, theirs));
    assert!(weak.upgrade().is_none(), "nothing keeps cudarc's stream alive");
    assert!(done.synchronize_timeout(Duration::from_secs(60))?.is_done());
    ours.synchronize()?;
    println!("the work of cudarc is done");
    Ok(())
}
