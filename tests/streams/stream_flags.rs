//! What a wait or a record of a stream can be told for one call: a time limit, flags.

use crate::common::{self, table};

use std::ptr::null_mut;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use common::counting::{calls, counting};
use common::{Gpu, Latch, check, current};
use cuda_events::capture::{RecordFlags, WaitFlags};
use cuda_events::sys::{CUresult, CUstreamCaptureMode, Function};
use cuda_events::{
    Context, Device, Error, Event, EventFlags, Progress, Stream, StreamOptions, StreamRef, Version,
};

/// That it is not waited for longer is held in virtual time, by the unit tests of `src/timeout.rs`.
#[test]
fn a_stream_is_waited_for_as_long_as_said() {
    let gpu = Gpu::new();
    let stream = gpu.stream();
    assert_eq!(
        stream.synchronize_timeout(Duration::ZERO),
        Ok(Progress::Done),
        "an idle stream is done at once"
    );
    let latch = Latch::hold(&stream);
    assert_eq!(stream.synchronize_timeout(Duration::ZERO), Ok(Progress::Pending));
    let started = Instant::now();
    let limit = Duration::from_millis(20);
    assert_eq!(stream.synchronize_timeout(limit), Ok(Progress::Pending));
    assert!(started.elapsed() >= limit);
    latch.release();
    assert_eq!(stream.synchronize_timeout(Duration::from_secs(60)), Ok(Progress::Done));
    assert_eq!(stream.query(), Ok(Progress::Done));
}

#[test]
fn later_work_does_not_prolong_the_wait() {
    /// What the observer does when the wait has begun: it puts a second latch into the stream and
    /// releases the first.
    struct Begun {
        stream: StreamRef,
        first: Latch,
        second: Sender<Latch>,
    }
    let begun: Arc<Mutex<Option<Begun>>> = Arc::default();
    let gpu = Gpu::new();
    let observed = {
        let begun = begun.clone();
        gpu.driver.observe(move |call| {
            if call.function == Function::cuEventRecord
                && let Some(Begun { stream, first, second }) =
                    begun.lock().expect("no panic").take()
            {
                second.send(Latch::hold(&stream)).expect("the test listens");
                first.release();
            }
        })
    };
    let context = Device::new(observed.expect("an observer"), 0)
        .and_then(Context::primary)
        .expect("a context");
    let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
    let first = Latch::hold(&stream);
    let (second, behind) = channel();
    // SAFETY: the observer drops it before `stream` is.
    let unobserved = unsafe { StreamRef::from_raw(&gpu.context, stream.as_raw()) };
    *begun.lock().expect("no panic") = Some(Begun { stream: unobserved, first, second });

    assert_eq!(stream.synchronize_timeout(Duration::from_secs(20)), Ok(Progress::Done));
    let second = behind.recv().expect("the observer saw the record");
    assert_eq!(stream.query(), Ok(Progress::Pending), "later work is in the stream");
    second.release();
}

#[test]
fn a_busy_stream_is_waited_for_by_an_event() {
    let gpu = Gpu::new();
    let context =
        Device::new(counting(gpu.driver), 0).and_then(Context::primary).expect("a context");
    let _current = context.make_current().expect("the context can be made current");
    let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
    let (done, made) = calls(|| stream.synchronize_timeout(Duration::from_secs(60)));
    assert_eq!((done, made.as_slice()), (Ok(Progress::Done), [Function::cuStreamQuery].as_slice()));

    let latch = Latch::hold(&stream);
    let (done, made) = calls(|| stream.synchronize_timeout(Duration::from_millis(2)));
    assert_eq!(done, Ok(Progress::Pending));
    let (first, rest) = made.split_at(4);
    let expected = [
        Function::cuStreamQuery,
        Function::cuCtxGetCurrent,
        Function::cuEventCreate,
        Function::cuEventRecord,
    ];
    assert_eq!(first, expected);
    let (last, queries) = rest.split_last().expect("the event is destroyed");
    assert_eq!(*last, Function::cuEventDestroy_v2);
    assert!(
        !queries.is_empty() && queries.iter().all(|function| *function == Function::cuEventQuery),
        "{made:?}"
    );
    latch.release();
}

#[test]
fn default_streams_take_a_time_limit_too() {
    let gpu = Gpu::new();
    for stream in
        [StreamRef::legacy_default(&gpu.context), StreamRef::per_thread_default(&gpu.context)]
    {
        assert_eq!(stream.synchronize_timeout(Duration::ZERO), Ok(Progress::Done));
        let latch = {
            let _current = gpu.context.make_current().expect("the context can be made current");
            Latch::hold(&stream)
        };
        assert_eq!(stream.synchronize_timeout(Duration::from_millis(2)), Ok(Progress::Pending));
        latch.release();
        assert_eq!(stream.synchronize_timeout(Duration::from_secs(60)), Ok(Progress::Done));
    }
    assert!(current(gpu.driver).is_null());
}

#[test]
fn without_flags_they_are_ordinary() {
    let gpu = Gpu::new();
    let context =
        Device::new(counting(gpu.driver), 0).and_then(Context::primary).expect("a context");
    let stream = |_| Stream::new(&context, StreamOptions::new()).expect("a stream");
    let [first, second] = [0, 1].map(stream);
    let event = Event::new(&context, EventFlags::empty()).expect("an event");
    let latch = Latch::hold(&first);
    // SAFETY: no flags.
    let (recorded, made) = calls(|| unsafe { event.record_with(&first, RecordFlags::empty()) });
    assert_eq!((recorded, made.as_slice()), (Ok(()), [Function::cuEventRecord].as_slice()));
    // SAFETY: no flags.
    let (waiting, made) = calls(|| unsafe { second.wait_event_with(&event, WaitFlags::empty()) });
    assert_eq!((waiting, made.as_slice()), (Ok(()), [Function::cuStreamWaitEvent].as_slice()));
    assert_eq!((event.query(), second.query()), (Ok(Progress::Pending), Ok(Progress::Pending)));
    latch.release();
    assert_eq!(second.synchronize(), Ok(()));
}

#[test]
fn external_is_for_capturing_streams_only() {
    let gpu = Gpu::new();
    if !common::needs(gpu.driver, cuda_events::sys::Function::cuEventRecordWithFlags) {
        return;
    }
    let (stream, event) =
        (gpu.stream(), Event::new(&gpu.context, EventFlags::empty()).expect("an event"));
    // SAFETY: the stream does not capture.
    let refused =
        unsafe { event.record_with(&stream, RecordFlags::EXTERNAL) }.expect_err("an error");
    assert_eq!(refused.function(), Some(Function::cuEventRecordWithFlags));
    assert_eq!(refused.code(), Some(CUresult::CUDA_ERROR_ILLEGAL_STATE));
    // SAFETY: the stream does not capture.
    let refused =
        unsafe { stream.wait_event_with(&event, WaitFlags::EXTERNAL) }.expect_err("an error");
    assert_eq!(refused.function(), Some(Function::cuStreamWaitEvent));
    assert_eq!(refused.code(), Some(CUresult::CUDA_ERROR_ILLEGAL_STATE));
    assert_eq!(stream.query(), Ok(Progress::Done), "nothing was put into the stream");
}

#[test]
fn flags_that_the_driver_does_not_know_reach_it() {
    let gpu = Gpu::new();
    if !common::needs(gpu.driver, cuda_events::sys::Function::cuEventRecordWithFlags) {
        return;
    }
    let (stream, event) =
        (gpu.stream(), Event::new(&gpu.context, EventFlags::empty()).expect("an event"));
    let (record, wait) = (RecordFlags::from_bits_retain(0x80), WaitFlags::from_bits_retain(0x80));
    // SAFETY: the stream does not capture.
    let refused =
        unsafe { [event.record_with(&stream, record), stream.wait_event_with(&event, wait)] };
    for refused in refused {
        assert_eq!(
            refused.err().and_then(|error| error.code()),
            Some(CUresult::CUDA_ERROR_INVALID_VALUE)
        );
    }
}

#[test]
fn older_drivers_record_without_flags() {
    let gpu = Gpu::new();
    const FUNCTION: Function = Function::cuEventRecordWithFlags;
    let driver = table::hiding(gpu.driver, &[FUNCTION]);
    let context = Device::new(driver, 0).and_then(Context::primary).expect("a context");
    let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
    let event = Event::new(&context, EventFlags::empty()).expect("an event");
    // SAFETY: no flags.
    assert_eq!(unsafe { event.record_with(&stream, RecordFlags::empty()) }, Ok(()));
    let expected = Error::Unsupported {
        function: FUNCTION,
        since: Version::new(11, 1),
        driver: driver.version(),
    };
    // SAFETY: the stream does not capture.
    assert_eq!(unsafe { event.record_with(&stream, RecordFlags::EXTERNAL) }, Err(expected));
}

#[test]
fn in_a_capture_external_ones_are_nodes() {
    let gpu = Gpu::new();
    if !common::needs(gpu.driver, cuda_events::sys::Function::cuEventRecordWithFlags) {
        return;
    }
    let stream = gpu.stream();
    let symbols = gpu.driver.symbols();
    let [inside, outside] =
        [0, 1].map(|_| Event::new(&gpu.context, EventFlags::empty()).expect("an event"));
    outside.record(&stream).expect("a record");
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
    // SAFETY: the stream is alive.
    check(Function::cuStreamBeginCapture_v2, unsafe {
        (symbols.cuStreamBeginCapture_v2)(stream.as_raw(), mode)
    });
    // An ordinary wait for this event would end the capture: it was recorded outside.
    // SAFETY: both events outlive the graph.
    unsafe {
        assert_eq!(stream.wait_event_with(&outside, WaitFlags::EXTERNAL), Ok(()));
        assert_eq!(inside.record_with(&stream, RecordFlags::EXTERNAL), Ok(()));
    }
    let mut graph = null_mut();
    // SAFETY: the stream is alive; a place for the handle.
    check(Function::cuStreamEndCapture, unsafe {
        (symbols.cuStreamEndCapture)(stream.as_raw(), &mut graph)
    });
    // SAFETY: the graph is owned here.
    check(Function::cuGraphDestroy, unsafe { (symbols.cuGraphDestroy)(graph) });
    assert_eq!(
        inside.query(),
        Ok(Progress::Done),
        "it was not recorded: the graph was not launched"
    );
}
