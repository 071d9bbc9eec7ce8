//! What a wait or a record of a stream can be told for one call: a time limit, flags.

use crate::common::{self};

use std::time::{Duration, Instant};

use common::counting::{calls, counted_context};
use common::{Gpu, Latch, current};
use cuda_events::sys::Function;
use cuda_events::{Progress, Stream, StreamOptions, StreamRef};

/// That it is not waited for longer is held in virtual time, by the unit tests of `src/timeout.rs`.
#[test]
fn a_stream_is_waited_for_until_the_limit() {
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
fn a_stream_with_work_is_waited_for_by_an_event() {
    let gpu = Gpu::new();
    let context = counted_context(gpu.driver);
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
