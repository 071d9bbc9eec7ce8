//! Watching driver calls through a table of trampolines.

use crate::common;

use std::sync::{Arc, Mutex};

use common::Gpu;
use common::own_process;
use cuda_events::sys::{CUresult, Function};
use cuda_events::{Context, Device, Driver, Error, Event, EventFlags, Stream, StreamOptions};

/// What an observer gets of a call: entry point, arguments, result.
type SeenCall = (Function, Vec<u64>, CUresult);

/// It runs in a process of its own, because it fills the places for observers. `observers.rs` takes
/// observers away.
#[test]
fn an_observer_sees_each_call() {
    own_process!();
    let gpu = Gpu::new();
    let seen_calls: Arc<Mutex<Vec<SeenCall>>> = Arc::default();
    let sink = Arc::clone(&seen_calls);
    let observed = gpu.driver.observe(move |call| {
        sink.lock().expect("no panic").push((call.function, call.arguments.to_vec(), call.result));
    });
    let observed = observed.expect("the first observer");
    let take = || std::mem::take(&mut *seen_calls.lock().expect("no panic"));
    assert_ne!(observed, gpu.driver);
    assert_eq!(
        (observed.version(), observed.library()),
        (gpu.driver.version(), gpu.driver.library())
    );

    let context = Device::new(observed, 0).and_then(Context::primary).expect("the primary context");
    let functions: Vec<_> = take().into_iter().map(|(function, ..)| function).collect();
    assert_eq!(
        functions,
        [Function::cuInit, Function::cuDeviceGet, Function::cuDevicePrimaryCtxRetain]
    );

    let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
    let event = Event::new(&context, EventFlags::BLOCKING_SYNC).expect("an event");
    take();
    let (raw_event, raw_stream) = (event.as_raw() as u64, stream.as_raw() as u64);
    event.record(&stream).expect("a record");
    event.synchronize().expect("no work");
    stream.wait_event(&event).expect("a wait");
    // A call that fails is reported with its code.
    let refused = event.elapsed_ms(&event).expect_err("it keeps no time");
    assert_eq!(refused.code(), Some(CUresult::CUDA_ERROR_INVALID_HANDLE));
    let calls = take();
    let expected = [
        (Function::cuEventRecord, vec![raw_event, raw_stream], CUresult::CUDA_SUCCESS),
        (Function::cuEventSynchronize, vec![raw_event], CUresult::CUDA_SUCCESS),
        (Function::cuStreamWaitEvent, vec![raw_stream, raw_event, 0], CUresult::CUDA_SUCCESS),
    ];
    assert_eq!(calls[..3], expected);
    assert_eq!(calls[3].2, CUresult::CUDA_ERROR_INVALID_HANDLE);
    assert_eq!(calls[3].1[1..], [raw_event, raw_event]);
    // After it the driver's log is read, if it has one.
    let of_log = [Function::cuLogsDumpToMemory, Function::cuLogsCurrent];
    assert!(calls[4..].iter().all(|(function, ..)| of_log.contains(function)), "{calls:?}");

    // What an observer does through the result is not reported to it, which would have no end.
    let (itself, seen) = (Arc::new(Mutex::new(None)), Arc::new(Mutex::new(0)));
    let again = gpu.driver.observe({
        let (itself, seen) = (Arc::clone(&itself), Arc::clone(&seen));
        move |_| {
            *seen.lock().expect("no panic") += 1;
            let driver: Option<Driver> = *itself.lock().expect("no panic");
            if let Some(driver) = driver {
                Device::count(driver).expect("a count");
            }
        }
    });
    let again = again.expect("another observer");
    *itself.lock().expect("no panic") = Some(again);
    Device::count(again).expect("a count");
    Device::count(again).expect("a count");
    // Of cuInit the first time, and of both counts.
    assert_eq!(*seen.lock().expect("no panic"), 3);

    // Every entry point has a trampoline, and none is there that the driver lacks.
    for entry in cuda_events::sys::ENTRY_POINTS {
        let (real, trampoline) = (
            gpu.driver.symbols().address(entry.function),
            observed.symbols().address(entry.function),
        );
        assert_eq!(real.is_null(), trampoline.is_null(), "{}", entry.function);
        assert!(real.is_null() || real != trampoline, "{}", entry.function);
    }

    // Observers stack, and a panic of one stays with it.
    let panics =
        observed.observe(|_| std::panic::resume_unwind(Box::new(()))).expect("the third observer");
    assert!(Device::count(panics).expect("the call goes on") > 0);
    assert_eq!(take().last().map(|(function, ..)| *function), Some(Function::cuDeviceGetCount));
    // Three places are taken; there are sixteen.
    for place in 3..16 {
        observed.observe(|_| {}).unwrap_or_else(|error| panic!("place {place}: {error}"));
    }
    assert_eq!(observed.observe(|_| {}).err(), Some(Error::TooManyObservers));
    // A place that is given back serves the driver that it served.
    assert!(panics.stop_observing());
    assert_eq!(gpu.driver.observe(|_| {}).err(), Some(Error::TooManyObservers));
    assert_eq!(observed.observe(|_| {}), Ok(panics));
}
