//! Times a copy from the host to the device with two events.

use std::ptr::null_mut;

use cuda_events::sys::{CUresult, Function};
use cuda_events::{Context, Device, Driver, Error, Event, EventFlags, Stream, StreamOptions};
use cuda_soft_driver::SoftDriver;

const BYTES: usize = 16 << 20;

fn main() -> cuda_events::Result<()> {
    // The NVIDIA driver, or the software driver on a machine without one.
    let soft = SoftDriver::new();
    let driver = Driver::load().unwrap_or_else(|_| soft.driver());
    let context = Context::primary(Device::new(driver, 0)?)?;
    println!("on {}", context.device().name()?);

    let stream = Stream::new(&context, StreamOptions::new())?;
    let start = Event::new(&context, EventFlags::TIMING)?;
    let end = Event::new(&context, EventFlags::TIMING)?;

    // This crate has no memory allocator. The driver's allocator is in its function table.
    let symbols = driver.symbols();
    let _current = context.make_current()?;
    let (mut to, mut from) = (0, null_mut());
    // SAFETY: both pointers are valid for writes; the context is current.
    unsafe {
        check(Function::cuMemAlloc_v2, (symbols.cuMemAlloc_v2)(&mut to, BYTES))?;
        check(Function::cuMemHostAlloc, (symbols.cuMemHostAlloc)(&mut from, BYTES, 0))?;
    }

    start.record(&stream)?;
    // SAFETY: both buffers have `BYTES` bytes and are freed after the copy.
    check(Function::cuMemcpyHtoDAsync_v2, unsafe {
        (symbols.cuMemcpyHtoDAsync_v2)(to, from, BYTES, stream.as_raw())
    })?;
    end.record(&stream)?;
    end.synchronize()?;

    let time = start.elapsed(&end)?;
    assert!(!time.is_zero(), "a copy takes time");
    println!("{BYTES} bytes in {time:?}: {:.1} GB/s", BYTES as f64 / time.as_secs_f64() / 1e9);

    // SAFETY: both were allocated above, and the copy is over.
    unsafe {
        check(Function::cuMemFree_v2, (symbols.cuMemFree_v2)(to))?;
        check(Function::cuMemFreeHost, (symbols.cuMemFreeHost)(from))
    }
}

fn check(function: Function, code: CUresult) -> cuda_events::Result<()> {
    match code {
        CUresult::CUDA_SUCCESS => Ok(()),
        code => Err(Error::Driver { function, code }),
    }
}
