//! An upload, a kernel and a download with cudarc, ordered by pooled events, and awaited with a
//! limit.
//!
//! Without NVRTC, or on the software driver, a memset takes the kernel's place.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use cuda_events::ext::EventPool;
use cuda_events::{EventFlags, Stream, StreamOptions};
use cuda_events_cudarc::{adopt_stream, declare_writes};
use cudarc::driver::{CudaContext, CudaSlice, CudaStream, LaunchConfig, PushKernelArg};
use cudarc::nvrtc;

const N: usize = 1 << 20;
const SOURCE: &str = r#"extern "C" __global__ void twice(unsigned *data, unsigned count) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) data[i] *= 2;
}"#;

/// Doubles the data in a kernel, or sets it to zero; returns which.
fn compute(stream: &Arc<CudaStream>, data: &mut CudaSlice<u32>) -> Result<u32, Box<dyn Error>> {
    // SAFETY: it opens a library by the name of NVRTC.
    let nvrtc = unsafe { nvrtc::sys::is_culib_present() };
    if !nvrtc || stream.context().name()?.contains("software driver") {
        stream.memset_zeros(data)?;
        return Ok(0);
    }
    let module = stream.context().load_module(nvrtc::compile_ptx(SOURCE)?)?;
    let (twice, count) = (module.load_function("twice")?, N as u32);
    let mut launch = stream.launch_builder(&twice);
    // SAFETY: the kernel has these parameters, and stays within the data.
    unsafe { launch.arg(&mut *data).arg(&count).launch(LaunchConfig::for_num_elems(count)) }?;
    // For an order checker: no driver sees what a kernel writes.
    declare_writes(stream, data);
    Ok(2)
}

fn main() -> Result<(), Box<dyn Error>> {
    let theirs = CudaContext::new(0)?;
    println!("on {}", theirs.name()?);
    let (uploads, work) = (theirs.new_stream()?, theirs.new_stream()?);
    let (up, compute_in) = (adopt_stream(&uploads)?, adopt_stream(&work)?);
    let pool = EventPool::new(up.context(), EventFlags::empty())?;

    let mut data = uploads.clone_htod(&vec![21_u32; N])?;
    let uploaded = pool.record_event(&up)?;
    compute_in.wait_event(&uploaded)?;
    let factor = compute(&work, &mut data)?;
    let computed = pool.record_event(&compute_in)?;

    // A stream of cuda-events waits for cudarc's, and the host with a limit.
    let ours = Stream::new(up.context(), StreamOptions::new())?;
    ours.wait_event(&computed)?;
    assert!(ours.synchronize_timeout(Duration::from_secs(60))?.is_done());
    assert_eq!(work.clone_dtoh(&data)?, vec![21 * factor; N]);
    println!("{}", if factor == 2 { "a kernel doubled the data" } else { "a memset, no kernel" });
    Ok(())
}
