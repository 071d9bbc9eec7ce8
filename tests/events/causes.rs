//! The cause that an error names is the cause, on the driver under test.

use crate::common;

use common::counting::{counted_context, fail_next};
use common::{Gpu, Latch, Other, TestDriver, not_run};
use cuda_events::capture::RecordFlags;
use cuda_events::sys::{CUresult, Function};
use cuda_events::{Context, Device, Error, Event, EventFlags, Stream, StreamOptions};
use cuda_soft_driver::SoftDriver;

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
    // In one context, the same code is another refusal; and another code is none of contexts.
    let counted = counted_context(gpu.driver);
    let (event, own) = (timing(&counted), stream(&counted));
    for code in [HANDLE, CUresult::CUDA_ERROR_LAUNCH_FAILED] {
        fail_next(RECORD, code);
        assert_eq!(event.record(&own), Err(refused(RECORD, code)));
    }
}

#[test]
fn a_record_on_another_device_names_both() {
    let soft = (TestDriver::chosen() == TestDriver::Soft)
        .then(|| SoftDriver::builder().devices(2).build());
    let gpu = Gpu::new();
    let driver = soft.as_ref().map_or(gpu.driver, SoftDriver::driver);
    let Ok(second) = Device::new(driver, 1).and_then(Context::primary) else {
        return not_run("this machine has one device");
    };
    let first = Device::new(driver, 0).and_then(Context::primary).expect("the context");
    let error = timing(&first).record(&stream(&second));
    let expected =
        Error::ContextMismatch { function: RECORD, code: Some(HANDLE), device: 0, other_device: 1 };
    assert_eq!(error, Err(expected));
}

/// A record with flags gives the cause as a plain record does. What the driver says of the flag
/// itself, outside of a capture, is no cause of contexts.
#[test]
fn a_record_with_flags_on_a_stream_of_another_context() {
    let gpu = Gpu::new();
    let other = Other::new(&gpu);
    let (own, foreign) = (stream(&gpu.context), stream(&other));
    let event = timing(&gpu.context);
    let external = |stream: &Stream| {
        // SAFETY: no stream is capturing, so that no graph keeps the event.
        unsafe { event.record_with(stream, RecordFlags::EXTERNAL) }
    };
    let function = Function::cuEventRecordWithFlags;
    if gpu.driver.symbols().cuEventRecordWithFlags.is_none() {
        let error = external(&foreign).expect_err("CUDA 11.0 has no such record");
        return assert!(matches!(error, Error::Unsupported { .. }), "{error:?}");
    }
    let illegal = CUresult::CUDA_ERROR_ILLEGAL_STATE;
    assert_eq!(external(&own), Err(refused(function, illegal)));
    let mismatch =
        Error::ContextMismatch { function, code: Some(HANDLE), device: 0, other_device: 0 };
    if gpu.soft().is_some() {
        assert_eq!(external(&foreign), Err(mismatch));
    } else {
        // Which of its two faults a real driver names was not measured.
        let refused = [Err(mismatch), Err(refused(function, illegal))];
        assert!(refused.contains(&external(&foreign)));
    }
    // It was only refused.
    assert_eq!(event.record(&own), Ok(()));
    assert_eq!(event.synchronize(), Ok(()));
}

/// What is wrong with the events themselves comes before where they are, and that before what was
/// done with them: no record would mend the first, nor the second.
#[test]
fn the_first_cause_of_a_time_that_is_missing() {
    let gpu = Gpu::new();
    let other = Other::new(&gpu);
    let (own, foreign) = (stream(&gpu.context), stream(&other));
    let function = elapsed(&gpu);
    let disabled = || Error::TimingDisabled { function, code: Some(HANDLE) };
    let never = || Error::NotRecorded { function, code: Some(HANDLE) };
    let mismatch =
        Error::ContextMismatch { function, code: Some(HANDLE), device: 0, other_device: 0 };
    let recorded = |context: &Context, stream| {
        let event = timing(context);
        event.record(stream).and_then(|()| event.synchronize()).expect("idle work");
        event
    };
    let (start, elsewhere) = (recorded(&gpu.context, &own), recorded(&other, &foreign));
    for flags in [EventFlags::empty(), EventFlags::BLOCKING_SYNC, EventFlags::INTERPROCESS] {
        let plain = Event::new(&gpu.context, flags).expect("an event");
        for _ in 0..2 {
            assert_eq!(plain.elapsed_ms(&start), Err(disabled()), "{flags:?}");
            assert_eq!(start.elapsed_ms(&plain), Err(disabled()), "{flags:?}");
            assert_eq!(plain.elapsed_ms(&elsewhere), Err(disabled()), "{flags:?}");
            plain.record(&own).and_then(|()| plain.synchronize()).expect("idle work");
        }
    }
    let unrecorded = timing(&gpu.context);
    assert_eq!(start.elapsed_ms(&elsewhere), Err(mismatch.clone()));
    assert_eq!(elsewhere.elapsed_ms(&unrecorded), Err(mismatch));
    assert_eq!(start.elapsed_ms(&unrecorded), Err(never()));
    assert_eq!(unrecorded.elapsed_ms(&start), Err(never()));
    let latch = Latch::hold(&own);
    let pending = own.record_event(EventFlags::TIMING).expect("an event");
    let not_ready = Error::NotReady { function, code: CUresult::CUDA_ERROR_NOT_READY };
    assert_eq!(start.elapsed_ms(&pending), Err(not_ready.clone()));
    assert_eq!(pending.elapsed_ms(&start), Err(not_ready));
    latch.release();
    pending.synchronize().expect("the work ends");
    assert!(start.elapsed_ms(&pending).expect("both are done") > 0.0);
}

#[test]
fn a_device_that_is_not_there() {
    let gpu = Gpu::new();
    let count = Device::count(gpu.driver).expect("a count");
    for ordinal in [count, i32::MAX as u32, u32::MAX] {
        assert_eq!(Device::new(gpu.driver, ordinal), Err(Error::NoSuchDevice { ordinal, count }));
    }
}

/// The waits of events and streams return with the work, and not before.
#[test]
fn synchronize_blocks_until_the_work_is_done() {
    use common::SlowWork;
    use cuda_events::Progress;
    use std::time::Duration;

    let gpu = Gpu::new();
    type Wait = fn(&Event, &Stream) -> Result<(), Error>;
    let waits: [Wait; 5] = [
        |event, _| event.synchronize(),
        |event, _| event.synchronize_timeout(Duration::MAX).map(drop),
        |_, stream| stream.synchronize(),
        |_, stream| stream.synchronize_timeout(Duration::MAX).map(drop),
        |event, _| event.context().synchronize(),
    ];
    for wait in waits {
        let stream = gpu.stream();
        let work = SlowWork::put_into(&stream);
        let event = stream.record_event(EventFlags::empty()).expect("a record");
        assert_eq!(event.query(), Ok(Progress::Pending));
        work.let_go();
        assert_eq!((wait(&event, &stream), work.is_done()), (Ok(()), true));
        assert_eq!(event.query(), Ok(Progress::Done));
    }
}
