//! cudarc's context, stream and event, used through cuda-events.

use std::error::Error;
use std::sync::Arc;

use cuda_events::{
    Context, Device, Driver, EventFlags, EventRef, ForeignStream, Stream, StreamOptions,
};
use cudarc::driver::{CudaContext, sys};

/// What the page of `ForeignStream` shows.
pub fn adopt() -> Result<(), Box<dyn Error>> {
    // cudarc's own.
    let theirs = CudaContext::new(0)?;
    let their_stream = theirs.new_stream()?;

    // Retains the same primary context once more, so objects made here may outlive cudarc's.
    let context = Context::primary(Device::new(Driver::load()?, 0)?)?;
    let raw = their_stream.cu_stream().cast();
    // SAFETY: the `Arc` keeps the stream alive, and no other thread captures it.
    let stream = unsafe { ForeignStream::new(&context, raw, their_stream.clone()) }?;
    let done = stream.record_event(EventFlags::empty())?;

    let their_event = their_stream.record_event(None)?;
    // SAFETY: `their_event` is dropped after `event`. It has no timing and no other flag, and is
    // recorded in no capture.
    let event =
        unsafe { EventRef::from_raw(&context, their_event.cu_event().cast(), EventFlags::empty()) };
    Stream::new(&context, StreamOptions::new())?.wait_event(&event)?;

    drop((event, their_event, stream, their_stream, theirs));
    done.synchronize()?; // keeps the primary context
    Ok(())
}

/// A context that is not the primary one, adopted with its owner: an event outlives all that cudarc
/// had.
pub fn adopt_another() -> Result<(), Box<dyn Error>> {
    let theirs = CudaContext::new_non_primary(0, sys::CUctx_flags::CU_CTX_SCHED_AUTO as u32)?;
    let their_stream = theirs.new_stream()?;
    let driver = Driver::load()?;

    // SAFETY: the `Arc` keeps the context alive, and none of its streams is captured.
    let context =
        unsafe { Context::from_raw_with_owner(driver, theirs.cu_ctx().cast(), theirs.clone()) }?;
    let raw = their_stream.cu_stream().cast();
    // SAFETY: the `Arc` keeps the stream alive, and no other thread captures it.
    let stream = unsafe { ForeignStream::new(&context, raw, their_stream.clone()) }?;
    let done = stream.record_event(EventFlags::empty())?;
    let weak = Arc::downgrade(&theirs);
    drop((stream, context, their_stream, theirs));
    assert!(weak.upgrade().is_some(), "the event keeps cudarc's context");
    done.synchronize()?;
    drop(done);
    assert!(weak.upgrade().is_none(), "nothing else did");

    // A stream of one context is not taken for one of another.
    let primary = Context::primary(Device::new(driver, 0)?)?;
    let theirs = CudaContext::new_non_primary(0, sys::CUctx_flags::CU_CTX_SCHED_AUTO as u32)?;
    let their_stream = theirs.new_stream()?;
    // SAFETY: as above.
    let refused = unsafe {
        ForeignStream::new(&primary, their_stream.cu_stream().cast(), their_stream.clone())
    };
    assert!(
        matches!(
            refused,
            Err(cuda_events::Error::ContextMismatch { device: 0, other_device: 0, .. })
        ),
        "{refused:?}"
    );
    Ok(())
}
