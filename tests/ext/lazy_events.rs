//! Lazy events: what there is before the first record, and what makes it.

use crate::common;

use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;

use common::{Gpu, Latch, Other};
use cuda_events::capture::CaptureMode;
use cuda_events::ext::{LazyEvent, LazyState};
use cuda_events::sys::{CUresult, Function};
use cuda_events::{
    Context, Device, Error, Event, EventFlags, IpcEventDescriptor, Progress, Stream, StreamOptions,
};

fn lazy(flags: EventFlags) -> LazyEvent {
    LazyEvent::new(flags).expect("an event to be")
}

#[test]
fn nothing_is_there_before_the_first_record() {
    let gpu = Gpu::new();
    let calls = Arc::new(Mutex::new(Vec::new()));
    let seen = calls.clone();
    let driver = gpu.driver.observe(move |call| seen.lock().expect("no panic").push(call.function));
    let context = Device::new(driver.expect("a free slot"), 0)
        .and_then(Context::primary)
        .expect("the context");
    let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
    let calls = || std::mem::take(&mut *calls.lock().expect("no panic"));
    calls();

    let event = lazy(EventFlags::BLOCKING_SYNC);
    assert_eq!(event.state(), LazyState::NotCreated);
    assert_eq!(event.flags(), EventFlags::BLOCKING_SYNC);
    assert!(event.event().is_none());
    assert!(event.context().is_none());
    assert!(event.device().is_none());
    assert_eq!(event.query(), Ok(Progress::Done));
    assert_eq!(event.synchronize(), Ok(()));
    assert_eq!(event.synchronize_timeout(Duration::ZERO), Ok(Progress::Done));
    assert_eq!(event.wait(&stream), Ok(()));
    assert_eq!(calls(), []);
    drop(event);
    assert_eq!(calls(), [], "and nothing to destroy");

    let event = lazy(EventFlags::empty());
    event.record(&stream).expect("a record");
    let made = calls();
    assert_eq!(made.iter().filter(|call| **call == Function::cuEventCreate).count(), 1, "{made:?}");
    assert_eq!(made.last(), Some(&Function::cuEventRecord));
    assert_eq!(event.state(), LazyState::Recorded);
    event.record(&stream).expect("a record");
    assert_eq!(calls(), [Function::cuEventRecord], "from then on it is one call");
    event.synchronize().expect("the work ends");
    calls();
    drop(event);
    assert_eq!(calls(), [Function::cuEventDestroy_v2]);
}

#[test]
fn the_first_record_creates_it_for_good() {
    let gpu = Gpu::new();
    let stream = gpu.stream();
    let event = lazy(EventFlags::BLOCKING_SYNC);
    let latch = Latch::hold(&stream);
    event.record(&stream).expect("a record");
    assert_eq!(event.query(), Ok(Progress::Pending));
    assert_eq!(event.synchronize_timeout(Duration::ZERO), Ok(Progress::Pending));
    let created = event.event().expect("it is created").clone();
    assert_eq!(created.flags(), EventFlags::BLOCKING_SYNC);
    assert_eq!(event.context(), Some(&gpu.context));
    let waiting = gpu.stream();
    event.wait(&waiting).expect("a wait");
    assert_eq!(waiting.query(), Ok(Progress::Pending));
    latch.release();
    assert_eq!(event.synchronize(), Ok(()));
    assert_eq!(waiting.synchronize(), Ok(()));
    event.record(&waiting).expect("a record");
    assert!(
        Arc::ptr_eq(&created, event.event().expect("it is created")),
        "recording again keeps the driver object"
    );
}

#[test]
fn the_context_is_that_of_the_first_stream() {
    let gpu = Gpu::new();
    let other = Other::new(&gpu);
    let elsewhere = Stream::new(&other, StreamOptions::new()).expect("a stream");
    let event = lazy(EventFlags::empty());
    event.record(&elsewhere).expect("a record");
    assert_eq!(event.context(), Some(&*other));
    let error = event.record(&gpu.stream()).expect_err("it is in another context");
    assert!(matches!(error, Error::ContextMismatch { .. }), "{error}");
}

#[test]
fn the_three_states_are_distinguished() {
    let gpu = Gpu::new();
    let stream = gpu.stream();
    let event = lazy(EventFlags::empty());
    let not_recorded = Error::NotRecorded { function: Function::cuStreamWaitEvent, code: None };
    assert_eq!(event.state(), LazyState::NotCreated);
    assert_eq!(event.wait_recorded(&stream), Err(not_recorded.clone()));
    let created = event.create(&gpu.context).expect("an event").clone();
    assert!(Arc::ptr_eq(&created, event.create(&gpu.context).expect("the same event")));
    assert_eq!(event.state(), LazyState::Created);
    assert_eq!(event.query(), Ok(Progress::Done));
    assert_eq!(event.wait(&stream), Ok(()));
    assert_eq!(event.wait_recorded(&stream), Err(not_recorded));
    assert_eq!(event.record_once(&stream), Ok(true));
    assert_eq!(event.state(), LazyState::Recorded);
    assert_eq!(event.record_once(&stream), Ok(false));
    assert_eq!(event.wait_recorded(&stream), Ok(()));
    assert!(LazyState::NotCreated < LazyState::Created && LazyState::Created < LazyState::Recorded);
}

#[test]
fn elapsed_time_names_the_first_missing_record() {
    let gpu = Gpu::new();
    let stream = gpu.stream();
    let (start, end, untimed) =
        (lazy(EventFlags::TIMING), lazy(EventFlags::TIMING), lazy(EventFlags::empty()));
    // No driver is known yet, and no call is made: the newest one is named.
    let function = Function::cuEventElapsedTime_v2;
    assert_eq!(start.elapsed_ms(&untimed), Err(Error::TimingDisabled { function, code: None }));
    assert_eq!(untimed.elapsed(&start), Err(Error::TimingDisabled { function, code: None }));
    let not_recorded = start.elapsed_ms(&end).expect_err("neither is recorded");
    assert_eq!(not_recorded, Error::NotRecorded { function, code: None });
    assert_eq!((not_recorded.function(), not_recorded.code()), (Some(function), None));
    assert!(
        not_recorded.to_string().starts_with("cuEventElapsedTime_v2 was not called: "),
        "{not_recorded}"
    );
    start.record(&stream).expect("a record");
    untimed.record(&stream).expect("a record");
    // The call that the one driver has; no call is made either.
    let has_new = gpu.driver.symbols().cuEventElapsedTime_v2.is_some();
    let function = if has_new { function } else { Function::cuEventElapsedTime };
    for (one, other) in [(&start, &end), (&end, &start)] {
        assert_eq!(one.elapsed(other), Err(Error::NotRecorded { function, code: None }));
    }
    let code = Some(CUresult::CUDA_ERROR_INVALID_HANDLE);
    assert_eq!(start.elapsed_ms(&untimed), Err(Error::TimingDisabled { function, code }));
    end.create(&gpu.context).expect("an event");
    assert_eq!(
        start.elapsed_ms(&end),
        Err(Error::NotRecorded { function, code }),
        "created is not recorded"
    );
    let latch = Latch::hold(&stream);
    end.record(&stream).expect("a record");
    assert!(matches!(start.elapsed_ms(&end), Err(Error::NotReady { .. })));
    latch.release();
    end.synchronize().expect("the work ends");
    let milliseconds = start.elapsed_ms(&end).expect("a time");
    assert!(milliseconds >= 0.0);
    assert_eq!(end.elapsed_ms(&start), Ok(-milliseconds));
    assert!(start.elapsed(&end).is_ok());
}

#[test]
fn flags_that_cannot_be_are_refused_at_once() {
    let error = LazyEvent::new(EventFlags::TIMING | EventFlags::INTERPROCESS)
        .expect_err("there is no such event");
    assert_eq!(error, Error::TimingWithInterprocess);
}

#[test]
fn a_record_in_a_capture_is_no_first_record() {
    let Some(gpu) = Gpu::with(Function::cuEventRecordWithFlags) else { return };
    let stream = gpu.stream();
    let (start, end) = (lazy(EventFlags::TIMING), lazy(EventFlags::TIMING));
    let capture = common::begin_capture(&stream, CaptureMode::ThreadLocal).expect("a capture");
    start.record_external(&stream).expect("a record");
    end.record_external(&stream).expect("a record");
    let graph = capture.end().expect("a graph");
    assert_eq!((start.state(), end.state()), (LazyState::Created, LazyState::Created));
    assert_eq!(start.query(), Ok(Progress::Done), "until the graph is launched");
    assert!(matches!(start.elapsed(&end), Err(Error::NotRecorded { .. })));
    let exec = graph.instantiate().expect("an executable graph");
    let latch = Latch::hold(&stream);
    exec.launch(&stream).expect("a launch");
    assert_eq!(start.query(), Ok(Progress::Pending));
    latch.release();
    end.synchronize().expect("the work ends");
    start.elapsed(&end).expect("a time");

    let fork = lazy(EventFlags::empty());
    let capture = common::begin_capture(&stream, CaptureMode::ThreadLocal).expect("a capture");
    let other = gpu.stream();
    fork.record(&stream).expect("a record");
    fork.wait(&other).expect("the fork");
    capture.end().expect("nothing was put into the other stream");
    assert_eq!(fork.state(), LazyState::Created);
    fork.record(&stream).expect("a record");
    assert_eq!(fork.state(), LazyState::Recorded);

    // Outside of a capture an external record is a record.
    let outside = lazy(EventFlags::empty());
    outside.record_external(&stream).expect("a record");
    assert_eq!(outside.state(), LazyState::Recorded);
}

#[test]
fn external_waits_in_captures_create_the_event() {
    let gpu = Gpu::new();
    let (stream, elsewhere) = (gpu.stream(), gpu.stream());
    let event = lazy(EventFlags::empty());
    event.wait_external(&stream).expect("nothing to wait for");
    assert_eq!(event.state(), LazyState::NotCreated);
    let capture = common::begin_capture(&stream, CaptureMode::ThreadLocal).expect("a capture");
    event.wait_external(&stream).expect("a wait");
    let exec = capture.end().and_then(|graph| graph.instantiate()).expect("an executable graph");
    assert_eq!(event.state(), LazyState::Created);
    let latch = Latch::hold(&elsewhere);
    event.record(&elsewhere).expect("a record");
    exec.launch(&stream).expect("a launch");
    assert_eq!(stream.query(), Ok(Progress::Pending));
    latch.release();
    assert_eq!(stream.synchronize(), Ok(()));
}

#[test]
fn an_export_creates_it() {
    let gpu = Gpu::new();
    let event = lazy(EventFlags::INTERPROCESS | EventFlags::BLOCKING_SYNC);
    let descriptor: IpcEventDescriptor = event.ipc_descriptor(&gpu.context).expect("a descriptor");
    assert!(descriptor.is_blocking_sync());
    assert_eq!(event.state(), LazyState::Created);
    assert_eq!(event.context(), Some(&gpu.context));
    assert_eq!(event.ipc_descriptor(&gpu.context), Ok(descriptor));
    let private = lazy(EventFlags::empty());
    assert_eq!(private.ipc_descriptor(&gpu.context), Err(Error::NotInterprocess));
    assert_eq!(private.state(), LazyState::NotCreated);
}

#[test]
fn an_event_can_become_a_lazy_one() {
    let gpu = Gpu::new();
    let stream = gpu.stream();
    let event = Event::new(&gpu.context, EventFlags::TIMING).expect("an event");
    let raw = event.as_raw();
    let event = LazyEvent::from(event);
    assert_eq!(event.state(), LazyState::Created);
    assert_eq!(event.flags(), EventFlags::TIMING);
    event.record(&stream).expect("a record");
    assert_eq!(event.event().expect("it is created").as_raw(), raw);
}

#[test]
fn a_record_that_fails_is_none() {
    let gpu = Gpu::new();
    let stream = gpu.stream();
    let event = lazy(EventFlags::INTERPROCESS);
    event.create(&gpu.context).expect("an event");
    let capture = common::begin_capture(&stream, CaptureMode::Relaxed).expect("a capture");
    // The driver does not capture interprocess events.
    event.record(&stream).expect_err("an interprocess event");
    drop(capture);
    assert_eq!(event.state(), LazyState::Created);
    assert_eq!(event.record_once(&stream), Ok(true));
}

#[test]
fn first_records_of_many_threads_create_one_event() {
    let gpu = Gpu::new();
    let streams: Vec<Stream> = (0..4).map(|_| gpu.stream()).collect();
    for _ in 0..50 {
        let event = lazy(EventFlags::empty());
        let together = Barrier::new(streams.len());
        let record = |stream: &Stream| {
            together.wait();
            event.record(stream).expect("a record");
            event.event().expect("it is created").as_raw().addr()
        };
        let record = &record;
        let handles: Vec<usize> = std::thread::scope(|scope| {
            let threads: Vec<_> =
                streams.iter().map(|stream| scope.spawn(move || record(stream))).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        assert!(handles.iter().all(|handle| *handle == handles[0]), "{handles:?}");
        assert_eq!(event.state(), LazyState::Recorded);
        event.synchronize().expect("no work");
    }
}
