//! Whole contexts: records of all their work, and waits of all of it.

use crate::common;

use common::counting::{counted_context, fail_next};
use common::{Gpu, Latch, Other, current};
use cuda_events::sys::{CUresult, Function};
use cuda_events::{Error, Event, EventFlags, Progress, Stream, StreamOptions};

#[test]
fn a_record_stands_for_the_work_of_all_streams() {
    let Some(gpu) = Gpu::with(Function::cuCtxRecordEvent) else { return };
    let streams = [
        gpu.stream(),
        Stream::new(&gpu.context, StreamOptions::new().blocking(true)).expect("a stream"),
    ];
    let event = Event::new(&gpu.context, EventFlags::empty()).expect("an event");
    event.record_context(&gpu.context).expect("a record");
    assert_eq!(event.synchronize(), Ok(()), "there is no work");
    for stream in &streams {
        let latch = Latch::hold(stream);
        event.record_context(&gpu.context).expect("a record");
        assert_eq!(event.query(), Ok(Progress::Pending));
        latch.release();
        assert_eq!(event.synchronize(), Ok(()));
    }
    let before = streams[0].record_event(EventFlags::empty()).expect("an event");
    event.record_context(&gpu.context).expect("a record");
    let later = Latch::hold(&streams[0]);
    assert_eq!(event.synchronize(), Ok(()), "work that comes later is not its concern");
    assert_eq!(before.query(), Ok(Progress::Done));
    later.release();
    assert!(current(gpu.driver).is_null());
}

#[test]
fn a_wait_of_a_context_holds_all_later_work() {
    let Some(gpu) = Gpu::with(Function::cuCtxRecordEvent) else { return };
    let other = Other::new(&gpu);
    let elsewhere = Stream::new(&other, StreamOptions::new()).expect("a stream");
    let streams = [gpu.stream(), gpu.stream()];
    gpu.context
        .wait_event(&Event::new(&other, EventFlags::empty()).expect("an event"))
        .expect("nothing to wait for");
    let latch = Latch::hold(&elsewhere);
    let event = elsewhere.record_event(EventFlags::empty()).expect("an event");
    gpu.context.wait_event(&event).expect("an event of another context may be waited for");
    let ends = streams
        .each_ref()
        .map(|stream| stream.record_event(EventFlags::empty()).expect("an event"));
    for end in &ends {
        assert_eq!(end.query(), Ok(Progress::Pending));
    }
    latch.release();
    for end in &ends {
        assert_eq!(end.synchronize(), Ok(()));
    }
    assert_eq!(event.query(), Ok(Progress::Done));
    assert!(current(gpu.driver).is_null());
}

#[test]
fn the_event_must_be_of_the_context() {
    let Some(gpu) = Gpu::with(Function::cuCtxRecordEvent) else { return };
    let other = Other::new(&gpu);
    let event = Event::new(&other, EventFlags::empty()).expect("an event");
    let error = event.record_context(&gpu.context).expect_err("another context");
    let expected = Error::ContextMismatch {
        function: Function::cuCtxRecordEvent,
        code: Some(CUresult::CUDA_ERROR_INVALID_HANDLE),
        device: 0,
        other_device: 0,
    };
    assert_eq!(error, expected);
    assert!(error.to_string().contains("another context of device 0 than the work"), "{error}");
    event.record_context(&other).expect("its own context");
    assert_eq!(event.synchronize(), Ok(()));
}

/// Only that code, and only for two contexts, means that they do not go together.
#[test]
fn another_refusal_is_the_drivers_own() {
    let Some(gpu) = Gpu::with(Function::cuCtxRecordEvent) else { return };
    let other = Other::new(&gpu);
    let context = counted_context(gpu.driver);
    let event = Event::new(&context, EventFlags::empty()).expect("an event");
    let function = Function::cuCtxRecordEvent;
    for (given, code) in [
        (&context, CUresult::CUDA_ERROR_INVALID_HANDLE),
        (&*other, CUresult::CUDA_ERROR_LAUNCH_FAILED),
        (&context, CUresult::CUDA_ERROR_LAUNCH_FAILED),
    ] {
        fail_next(function, code);
        assert_eq!(event.record_context(given), Err(Error::Driver { function, code }));
    }
}
