//! The cause that an error names is the cause, on the driver under test.

use crate::common;

use common::counting::{calls, counting, fail_next};
use common::{Gpu, Latch, Other};
use cuda_events::sys::{CUresult, Function};
use cuda_events::{Context, Device, Error, Event, EventFlags, Stream, StreamOptions};

use crate::errors::*;

fn timing(context: &Context) -> Event {
    Event::new(context, EventFlags::TIMING).expect("an event")
}

fn stream(context: &Context) -> Stream {
    Stream::new(context, StreamOptions::new()).expect("a stream")
}

/// The call that `elapsed_ms` makes on this driver.
fn elapsed(gpu: &Gpu) -> Function {
    if gpu.driver.symbols().cuEventElapsedTime_v2.is_some() {
        ELAPSED
    } else {
        Function::cuEventElapsedTime
    }
}

#[test]
fn a_record_on_a_stream_of_another_context() {
    let gpu = Gpu::new();
    let other = Other::new(&gpu);
    let (own, foreign) = (stream(&gpu.context), stream(&other));
    let event = timing(&gpu.context);
    let error =
        Error::ContextMismatch { function: RECORD, code: Some(HANDLE), device: 0, other_device: 0 };
    assert_eq!(event.record(&foreign), Err(error.clone()));
    assert_eq!(timing(&other).record(&own), Err(error));
    // It was only refused.
    assert_eq!(event.record(&own), Ok(()));
    assert_eq!(event.synchronize(), Ok(()));
}

#[test]
fn the_time_between_events_of_two_contexts() {
    let gpu = Gpu::new();
    let other = Other::new(&gpu);
    let (own, foreign) = (stream(&gpu.context), stream(&other));
    let (start, end) = (timing(&gpu.context), timing(&other));
    start.record(&own).and_then(|()| start.synchronize()).expect("idle work");
    end.record(&foreign).and_then(|()| end.synchronize()).expect("idle work");
    let error = Error::ContextMismatch {
        function: elapsed(&gpu),
        code: Some(HANDLE),
        device: 0,
        other_device: 0,
    };
    assert_eq!(start.elapsed_ms(&end), Err(error.clone()));
    assert_eq!(end.elapsed_ms(&start), Err(error));
}

#[test]
fn the_time_between_events_without_time_stamps() {
    let gpu = Gpu::new();
    let stream = stream(&gpu.context);
    let error = Error::TimingDisabled { function: elapsed(&gpu), code: Some(HANDLE) };
    let timing = timing(&gpu.context);
    timing.record(&stream).expect("a record");
    for flags in [EventFlags::empty(), EventFlags::BLOCKING_SYNC, EventFlags::INTERPROCESS] {
        let plain = Event::new(&gpu.context, flags).expect("an event");
        // Recorded or not, this is what is wrong.
        for _ in 0..2 {
            assert_eq!(plain.elapsed_ms(&timing), Err(error.clone()), "{flags:?}");
            assert_eq!(timing.elapsed_ms(&plain), Err(error.clone()), "{flags:?}");
            assert_eq!(plain.elapsed_ms(&plain), Err(error.clone()), "{flags:?}");
            plain.record(&stream).and_then(|()| plain.synchronize()).expect("idle work");
        }
    }
}

#[test]
fn the_time_from_or_to_an_event_that_was_never_recorded() {
    let gpu = Gpu::new();
    let stream = stream(&gpu.context);
    let (recorded, never) = (timing(&gpu.context), timing(&gpu.context));
    recorded.record(&stream).and_then(|()| recorded.synchronize()).expect("idle work");
    let error = Error::NotRecorded { function: elapsed(&gpu), code: Some(HANDLE) };
    assert_eq!(recorded.elapsed_ms(&never), Err(error.clone()));
    assert_eq!(never.elapsed_ms(&recorded), Err(error.clone()));
    assert_eq!(never.elapsed_ms(&never), Err(error));
}

#[test]
fn the_time_to_an_event_that_is_not_done() {
    let gpu = Gpu::new();
    let stream = stream(&gpu.context);
    let (start, end) = (timing(&gpu.context), timing(&gpu.context));
    start.record(&stream).and_then(|()| start.synchronize()).expect("idle work");
    let latch = Latch::hold(&stream);
    end.record(&stream).expect("a record");
    let error = Error::NotReady { function: elapsed(&gpu), code: CUresult::CUDA_ERROR_NOT_READY };
    assert_eq!(start.elapsed_ms(&end), Err(error.clone()));
    assert_eq!(end.elapsed_ms(&start), Err(error));
    latch.release();
    end.synchronize().expect("the work ends");
    assert!(start.elapsed_ms(&end).expect("both are done") > 0.0);
}

/// What is wrong with the events themselves comes before where they are, and that before what was
/// done with them: no record would mend the first, nor the second.
#[test]
fn of_several_causes_the_time_names_the_first() {
    let gpu = Gpu::new();
    let driver = counting(gpu.driver);
    let context =
        Context::primary(Device::new(driver, 0).expect("device 0")).expect("the primary context");
    let other = Other::new(&gpu);
    let function = elapsed(&gpu);
    let device = 0;
    let plain = |context| Event::new(context, EventFlags::empty()).expect("an event");
    let disabled = Error::TimingDisabled { function, code: Some(HANDLE) };
    let mismatch =
        Error::ContextMismatch { function, code: Some(HANDLE), device, other_device: device };
    let never = Error::NotRecorded { function, code: Some(HANDLE) };
    for (start, end, error) in [
        // Without time stamps, of two contexts, never recorded.
        (plain(&context), timing(&other), &disabled),
        (timing(&context), plain(&other), &disabled),
        (plain(&context), plain(&other), &disabled),
        // Of two contexts, never recorded.
        (timing(&context), timing(&other), &mismatch),
        (timing(&context), timing(&context), &never),
    ] {
        // The driver gives one code for all of them.
        fail_next(function, HANDLE);
        assert_eq!(start.elapsed_ms(&end).as_ref(), Err(error));
    }
    // Another code has one meaning, whatever else there is to say.
    fail_next(function, CUresult::CUDA_ERROR_NOT_READY);
    let not_ready = Error::NotReady { function, code: CUresult::CUDA_ERROR_NOT_READY };
    assert_eq!(timing(&context).elapsed_ms(&timing(&context)), Err(not_ready));
}

#[test]
fn a_device_that_is_not_there() {
    let gpu = Gpu::new();
    let count = Device::count(gpu.driver).expect("a count");
    for ordinal in [count, count + 1, i32::MAX as u32, u32::MAX] {
        assert_eq!(Device::new(gpu.driver, ordinal), Err(Error::NoSuchDevice { ordinal, count }));
    }
}

#[test]
fn an_event_that_would_be_timed_and_interprocess() {
    let gpu = Gpu::new();
    let driver = counting(gpu.driver);
    let context =
        Context::primary(Device::new(driver, 0).expect("device 0")).expect("the primary context");
    for flags in [EventFlags::TIMING | EventFlags::INTERPROCESS, EventFlags::all()] {
        let (refused, made) = calls(|| Event::new(&context, flags).map(drop));
        assert_eq!((refused, made), (Err(Error::TimingWithInterprocess), vec![]));
    }
}

#[test]
fn what_has_no_known_cause_stays_the_drivers_answer() {
    let gpu = Gpu::new();
    let driver = counting(gpu.driver);
    let context =
        Context::primary(Device::new(driver, 0).expect("device 0")).expect("the primary context");
    let stream = stream(&context);
    let (start, end) = (timing(&context), timing(&context));
    let unknown = CUresult(4242);
    // One context, so a refused handle is not explained by it.
    for code in [HANDLE, unknown] {
        fail_next(RECORD, code);
        assert_eq!(start.record(&stream), Err(refused(RECORD, code)));
    }
    for code in [unknown, CUresult::CUDA_ERROR_LAUNCH_FAILED, CUresult::CUDA_ERROR_CAPTURED_EVENT] {
        fail_next(elapsed(&gpu), code);
        assert_eq!(start.elapsed_ms(&end), Err(refused(elapsed(&gpu), code)));
    }
    // An error is never "not done".
    for code in [HANDLE, unknown] {
        fail_next(Function::cuEventQuery, code);
        assert_eq!(start.query(), Err(refused(Function::cuEventQuery, code)));
        fail_next(Function::cuStreamQuery, code);
        assert_eq!(stream.query(), Err(refused(Function::cuStreamQuery, code)));
    }
}

#[test]
fn a_failure_to_create_names_the_call_that_failed() {
    let gpu = Gpu::new();
    let driver = counting(gpu.driver);
    let memory = CUresult::CUDA_ERROR_OUT_OF_MEMORY;
    let device = Device::new(driver, 0).expect("device 0");
    fail_next(Function::cuDevicePrimaryCtxRetain, memory);
    assert_eq!(Context::primary(device), Err(refused(Function::cuDevicePrimaryCtxRetain, memory)));
    let context = Context::primary(device).expect("the primary context");
    for function in [
        Function::cuCtxGetCurrent,
        Function::cuCtxPushCurrent_v2,
        Function::cuEventCreate,
        Function::cuCtxPopCurrent_v2,
    ] {
        fail_next(function, memory);
        assert_eq!(
            Event::new(&context, EventFlags::empty()).map(drop),
            Err(refused(function, memory))
        );
        assert!(common::current(gpu.driver).is_null(), "{function}");
    }
    let options = StreamOptions::new();
    for (options, function) in [
        (options, Function::cuStreamCreate),
        (options.priority(0), Function::cuCtxGetStreamPriorityRange),
        (options.priority(0), Function::cuStreamCreateWithPriority),
    ] {
        fail_next(function, memory);
        assert_eq!(Stream::new(&context, options).map(drop), Err(refused(function, memory)));
    }
    let event = Event::new(&context, EventFlags::INTERPROCESS).expect("an event");
    fail_next(Function::cuIpcGetEventHandle, memory);
    assert_eq!(event.ipc_descriptor(), Err(refused(Function::cuIpcGetEventHandle, memory)));
}
