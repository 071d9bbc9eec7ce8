//! cudarc, which was not written with the software driver in mind, on whatever `libcuda.so` the
//! loader finds.
//!
//! Every scenario asserts what it saw; the first one that is not as it should be ends the program
//! with a panic. `FOREIGN_DRIVER` is `soft` or `native` and says which driver it must be.

use std::env;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use cudarc::driver::sys::{
    self, CUevent_flags, CUgraphInstantiate_flags, CUresult, CUstreamCaptureMode,
};
use cudarc::driver::{CudaContext, CudaStream, DriverError, result};

type Checked = Result<(), DriverError>;
/// Is told whether the driver must be the software one.
type Scenario = fn(bool) -> Checked;

fn main() {
    let soft = match env::var("FOREIGN_DRIVER").as_deref() {
        Ok("soft") => true,
        Ok("native") => false,
        other => panic!("FOREIGN_DRIVER is {other:?}: say soft or native"),
    };
    let scenarios: &[(&str, Scenario)] = &[
        ("device queries", device_queries),
        ("contexts", contexts),
        ("streams", streams),
        ("events", events),
        ("timing", timing),
        ("a host function holds a stream", host_function),
        ("memory", memory),
        ("capture and replay", capture),
        ("threads", threads),
        ("errors", errors),
    ];
    for (name, scenario) in scenarios {
        if let Err(error) = scenario(soft) {
            panic!("{name}: {error:?}");
        }
    }
    println!(
        "{} scenarios: {}",
        scenarios.len(),
        scenarios.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
    );
}

fn device_queries(soft: bool) -> Checked {
    let count = CudaContext::device_count()?;
    assert!(count >= 1, "{count} devices");
    let context = CudaContext::new(0)?;
    let name = context.name()?;
    assert_eq!(
        name.contains("software driver"),
        soft,
        "the driver of `{name}` is not the one that \
        was asked for"
    );
    assert_eq!(context.ordinal(), 0);
    assert_ne!(context.uuid()?.bytes, [0; 16]);
    assert!(context.compute_capability()?.0 >= 3);
    assert!(context.attribute(sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_WARP_SIZE)? > 0);
    let (free, total) = context.mem_get_info()?;
    assert!(
        free > 0 && free <= total && total <= context.total_mem()?,
        "{free} of {total} bytes \
        free"
    );
    Ok(())
}

fn contexts(_soft: bool) -> Checked {
    let primary = CudaContext::new(0)?;
    assert!(primary.is_primary());
    assert_eq!(*primary, *CudaContext::new(0)?, "a second retain gives another primary context");
    let own = CudaContext::new_non_primary(0, sys::CUctx_flags::CU_CTX_SCHED_BLOCKING_SYNC as u32)?;
    assert!(!own.is_primary());
    assert_ne!(primary.cu_ctx(), own.cu_ctx());
    assert_eq!(result::ctx::get_current()?, Some(own.cu_ctx()));
    own.synchronize()?;
    own.set_blocking_synchronize()?;
    let limit = sys::CUlimit::CU_LIMIT_PRINTF_FIFO_SIZE;
    let bytes = own.get_limit(limit)?;
    assert!(bytes > 0);
    own.set_limit(limit, 2 * bytes)?;
    assert!(own.get_limit(limit)? >= 2 * bytes, "the driver may round up, and only up");
    own.set_cache_config(sys::CUfunc_cache::CU_FUNC_CACHE_PREFER_L1)?;
    own.get_cache_config()?;
    primary.synchronize()?;
    assert_eq!(result::ctx::get_current()?, Some(primary.cu_ctx()));

    // An event of one context is waited for in the other.
    let (here, there) = (primary.new_stream()?, own.new_stream()?);
    let event = there.record_event(None)?;
    here.wait(&event)?;
    here.synchronize()?;
    assert_eq!(event.record(&here), Err(DriverError(CUresult::CUDA_ERROR_INVALID_CONTEXT)));
    // SAFETY: both handles live; cudarc's own check, seen above, is passed by.
    let mixed = unsafe { result::event::record(event.cu_event(), here.cu_stream()) };
    assert_eq!(mixed, Err(DriverError(CUresult::CUDA_ERROR_INVALID_HANDLE)));
    Ok(())
}

fn streams(_soft: bool) -> Checked {
    let context = CudaContext::new(0)?;
    context.bind_to_thread()?;
    let (least, greatest) = result::stream::get_priority_range()?;
    assert!(greatest <= least);
    let urgent = context.new_stream_with_priority(greatest)?;
    let mut priority = i32::MAX;
    // SAFETY: a live stream, and an integer to write to.
    unsafe { sys::cuStreamGetPriority(urgent.cu_stream(), &mut priority) }.result()?;
    assert_eq!(priority, greatest);
    let mut flags = 0;
    // SAFETY: as above.
    unsafe { sys::cuStreamGetFlags(urgent.cu_stream(), &mut flags) }.result()?;
    assert_eq!(flags, sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32);

    let streams = [
        context.default_stream(),
        context.per_thread_stream(),
        context.new_stream()?,
        urgent.fork()?,
    ];
    for stream in &streams {
        for other in &streams {
            stream.join(other)?;
        }
        stream.synchronize()?;
        // SAFETY: a live stream.
        unsafe { sys::cuStreamQuery(stream.cu_stream()) }.result()?;
    }
    Ok(())
}

fn events(_soft: bool) -> Checked {
    let context = CudaContext::new(0)?;
    let stream = context.new_stream()?;
    for flags in [
        None,
        Some(CUevent_flags::CU_EVENT_DEFAULT),
        Some(CUevent_flags::CU_EVENT_BLOCKING_SYNC),
        Some(CUevent_flags::CU_EVENT_DISABLE_TIMING),
    ] {
        let event = context.new_event(flags)?;
        assert!(
            event.try_is_complete()?,
            "an event that was never recorded has nothing to wait \
            for"
        );
        event.synchronize()?;
        event.record(&stream)?;
        event.synchronize()?;
        assert!(event.try_is_complete()? && event.is_complete());
        stream.wait(&event)?;
        event.record(&context.default_stream())?;
        event.record(&context.per_thread_stream())?;
        event.synchronize()?;
    }
    Ok(())
}

fn timing(_soft: bool) -> Checked {
    let context = CudaContext::new(0)?;
    let stream = context.new_stream()?;
    let mut bytes = stream.alloc_zeros::<u8>(1 << 20)?;
    let start = stream.record_event(Some(CUevent_flags::CU_EVENT_DEFAULT))?;
    stream.memset_zeros(&mut bytes)?;
    let end = stream.record_event(Some(CUevent_flags::CU_EVENT_DEFAULT))?;
    let forward = start.elapsed_ms(&end)?;
    let backward = end.elapsed_ms(&start)?;
    assert!((0.0..60_000.0).contains(&forward), "{forward} ms");
    assert_eq!(forward, -backward);
    assert_eq!(start.elapsed_ms(&start)?, 0.0);

    let untimed = stream.record_event(None)?;
    assert_eq!(start.elapsed_ms(&untimed), Err(DriverError(CUresult::CUDA_ERROR_INVALID_HANDLE)));
    let unrecorded = context.new_event(Some(CUevent_flags::CU_EVENT_DEFAULT))?;
    assert_eq!(
        start.elapsed_ms(&unrecorded),
        Err(DriverError(CUresult::CUDA_ERROR_INVALID_HANDLE))
    );
    Ok(())
}

/// Opened once; a stream waits for it in a host function.
#[derive(Default)]
struct Latch {
    open: Mutex<bool>,
    changed: Condvar,
}

impl Latch {
    fn hold(self: &Arc<Self>, stream: &CudaStream) -> Checked {
        unsafe extern "C" fn wait(latch: *mut c_void) {
            // SAFETY: the pointer came from `Arc::into_raw` below, and this function runs once.
            let latch = unsafe { Arc::from_raw(latch.cast::<Latch>()) };
            let mut open = latch.open.lock().unwrap();
            while !*open {
                open = latch.changed.wait(open).unwrap();
            }
        }
        let latch = Arc::into_raw(self.clone()).cast_mut().cast();
        // SAFETY: the function takes over the reference that `latch` stands for, and calls nothing
        // of CUDA's.
        unsafe { result::stream::launch_host_function(stream.cu_stream(), wait, latch) }
    }

    fn open(&self) {
        *self.open.lock().unwrap() = true;
        self.changed.notify_all();
    }
}

/// A latch opens also when an assertion fails, so that the process can end.
struct OpensWhenDropped(Arc<Latch>);

impl Drop for OpensWhenDropped {
    fn drop(&mut self) {
        self.0.open();
    }
}

fn host_function(_soft: bool) -> Checked {
    static RAN: AtomicU32 = AtomicU32::new(0);
    unsafe extern "C" fn ran(amount: *mut c_void) {
        RAN.fetch_add(amount as usize as u32, Ordering::SeqCst);
    }
    let context = CudaContext::new(0)?;
    let (held, waiting, free) =
        (context.new_stream()?, context.new_stream()?, context.new_stream()?);
    let before = held.record_event(None)?;
    before.synchronize()?;

    let latch = OpensWhenDropped(Arc::default());
    latch.0.hold(&held)?;
    let after = held.record_event(None)?;
    assert!(before.try_is_complete()?);
    assert!(!after.try_is_complete()? && !after.is_complete());
    // SAFETY: a live stream.
    let query = unsafe { sys::cuStreamQuery(held.cu_stream()) };
    assert_eq!(query, CUresult::CUDA_ERROR_NOT_READY);

    waiting.wait(&after)?;
    let next = waiting.record_event(None)?;
    assert!(!next.try_is_complete()?, "the wait did not hold the stream back");
    // SAFETY: the function takes a number in place of a pointer.
    unsafe { result::stream::launch_host_function(waiting.cu_stream(), ran, 5 as *mut c_void) }?;
    let done = waiting.record_event(None)?;
    assert!(!done.try_is_complete()?);
    free.record_event(None)?.synchronize()?;
    assert_eq!(RAN.load(Ordering::SeqCst), 0);

    // The event is used again; the stream keeps waiting for what it was told to wait for.
    after.record(&free)?;
    after.synchronize()?;
    assert!(!next.try_is_complete()? && !done.try_is_complete()?);

    latch.0.open();
    done.synchronize()?;
    assert_eq!(RAN.load(Ordering::SeqCst), 5);
    held.synchronize()?;
    Ok(())
}

fn memory(_soft: bool) -> Checked {
    const LENGTH: usize = 4096;
    let context = CudaContext::new(0)?;
    let (first, second) = (context.new_stream()?, context.new_stream()?);
    let numbers: Vec<u32> = (0..LENGTH as u32).collect();

    // cudarc orders the two streams with events of its own.
    let uploaded = first.clone_htod(&numbers)?;
    let mut copy = second.clone_dtod(&uploaded)?;
    assert!(first.clone_dtoh(&copy)? == numbers, "the copy differs");
    second.memset_zeros(&mut copy.slice_mut(..LENGTH / 2))?;
    let halves = first.clone_dtoh(&copy)?;
    assert!(halves[..LENGTH / 2].iter().all(|number| *number == 0));
    assert!(halves[LENGTH / 2..] == numbers[LENGTH / 2..], "the second half is not as it was");

    // SAFETY: written before it is read.
    let mut pinned = unsafe { context.alloc_pinned_with_flags::<u32>(LENGTH, 0) }?;
    pinned.as_mut_slice()?.copy_from_slice(&numbers);
    second.memcpy_htod(&pinned, &mut copy)?;
    pinned.as_mut_slice()?.fill(0);
    second.memcpy_dtoh(&copy, &mut pinned)?;
    assert!(pinned.as_slice()? == numbers, "the way through pinned memory changed something");

    context.bind_to_thread()?;
    let device = copy.leak();
    let mut bytes = vec![0_u8; 4 * LENGTH];
    // SAFETY: as many bytes as were allocated for `copy`, which nobody else has any more.
    unsafe {
        result::memset_d8_async(device, 0xa5, bytes.len(), first.cu_stream())?;
        result::memcpy_dtoh_async(&mut bytes, device, first.cu_stream())?;
        first.synchronize()?;
        result::memory_free(device)?;
    }
    assert!(bytes.iter().all(|byte| *byte == 0xa5));
    Ok(())
}

fn capture(_soft: bool) -> Checked {
    const LENGTH: usize = 256;
    let context = CudaContext::new(0)?;
    let (stream, branch) = (context.new_stream()?, context.new_stream()?);
    let mut bytes = stream.clone_htod(&[7_u8; LENGTH])?;
    let untouched = stream.clone_htod(&[7_u8; LENGTH])?;
    stream.synchronize()?;
    let address = bytes.leak();

    stream.begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)?;
    branch.join(&stream)?;
    assert_eq!(
        branch.capture_status()?,
        sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE
    );
    // SAFETY: the memory is live until it is freed below, after the graph.
    unsafe { result::memset_d8_async(address, 9, LENGTH, branch.cu_stream()) }?;
    stream.join(&branch)?;
    let graph = stream.end_capture(CUgraphInstantiate_flags(0))?.expect(
        "there was something to \
        capture",
    );
    assert_eq!(stream.capture_status()?, sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE);

    // SAFETY: nobody else has the memory any more.
    bytes = unsafe { stream.upgrade_device_ptr(address, LENGTH) };
    assert!(stream.clone_dtoh(&bytes)? == [7; LENGTH], "to capture is not to run");
    graph.upload()?;
    for _ in 0..2 {
        graph.launch()?;
    }
    let after = stream.record_event(None)?;
    after.synchronize()?;
    assert!(stream.clone_dtoh(&bytes)? == [9; LENGTH], "the graph did not run");
    assert!(stream.clone_dtoh(&untouched)? == [7; LENGTH], "the graph wrote beside its memory");
    Ok(())
}

fn threads(_soft: bool) -> Checked {
    let context = CudaContext::new(0)?;
    let stream = context.new_stream()?;
    let event = stream.record_event(Some(CUevent_flags::CU_EVENT_BLOCKING_SYNC))?;
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let own = context.new_stream()?;
                    for _ in 0..100 {
                        event.record(&own)?;
                        own.wait(&event)?;
                        event.synchronize()?;
                        context.per_thread_stream().join(&own)?;
                    }
                    own.synchronize()
                })
            })
            .collect();
        workers.into_iter().try_for_each(|worker| worker.join().unwrap())
    })?;
    context.check_err()
}

fn errors(soft: bool) -> Checked {
    let beyond = CudaContext::new(CudaContext::device_count()? as usize).map(drop);
    assert_eq!(beyond, Err(DriverError(CUresult::CUDA_ERROR_INVALID_DEVICE)));
    let error = DriverError(CUresult::CUDA_ERROR_NOT_READY);
    assert_eq!(error.error_name()?, c"CUDA_ERROR_NOT_READY");
    assert!(!error.error_string()?.is_empty());

    // Images are read; cudarc would panic if the function were not there at all.
    if soft {
        let refused = Err(DriverError(CUresult::CUDA_ERROR_INVALID_IMAGE));
        let context = CudaContext::new(0)?;
        context.bind_to_thread()?;
        // SAFETY: an empty text is a bad image, with which nothing else is done.
        assert_eq!(unsafe { result::module::load_data(c"".as_ptr().cast()) }.map(drop), refused);
    }
    Ok(())
}
