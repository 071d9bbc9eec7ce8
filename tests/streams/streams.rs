//! Streams: order, joins, default streams, priorities, raw handles.

use crate::common;

use common::{Gpu, Latch};
use cuda_events::{Error, EventFlags, LoadOptions, Progress, Stream, StreamOptions, StreamRef};

#[test]
fn wait_stream_waits_for_the_work_that_is_there() {
    let gpu = Gpu::new();
    let (first, second) = (gpu.stream(), gpu.stream());
    for _ in 0..3 {
        let before = Latch::hold(&first);
        second.wait_stream(&first).expect("a join");
        assert_eq!(second.query(), Ok(Progress::Pending));
        before.release();
        assert_eq!(second.synchronize(), Ok(()));
        let after = Latch::hold(&first);
        assert_eq!(second.query(), Ok(Progress::Done), "the join is over");
        after.release();
        first.synchronize().expect("the work ends");
    }
    first.wait_stream(&first).expect("a stream may wait for itself");
    assert_eq!(first.synchronize(), Ok(()));
}

#[test]
fn options_reach_the_driver() {
    let gpu = Gpu::new();
    let stream = |options| Stream::new(&gpu.context, options).expect("a stream");
    assert_eq!(
        stream(StreamOptions::new()).is_blocking(),
        Ok(false),
        "non-blocking is the default"
    );
    assert_eq!(stream(StreamOptions::new().blocking(true)).is_blocking(), Ok(true));
    let range = gpu.context.stream_priority_range().expect("a range");
    assert!(range.greatest <= range.least, "{range:?}");
    assert_eq!(stream(StreamOptions::new()).priority(), Ok(range.least.min(0)));
    for priority in range.greatest..=range.least {
        assert!(range.contains(priority));
        let stream = stream(StreamOptions::new().blocking(true).priority(priority));
        assert_eq!(stream.priority(), Ok(priority));
        assert_eq!(stream.is_blocking(), Ok(true));
    }
}

#[test]
fn a_priority_out_of_range_is_refused_with_the_range() {
    let gpu = Gpu::new();
    let range = gpu.context.stream_priority_range().expect("a range");
    for priority in [range.least + 1, range.greatest - 1, i32::MIN, i32::MAX] {
        let error = Stream::new(&gpu.context, StreamOptions::new().priority(priority))
            .expect_err("it is out of range");
        let expected =
            Error::PriorityOutOfRange { priority, least: range.least, greatest: range.greatest };
        assert_eq!(error, expected);
        let text = error.to_string();
        assert!(
            text.contains(&range.least.to_string()) && text.contains(&range.greatest.to_string()),
            "{text}"
        );
    }
}

#[test]
fn null_means_what_the_driver_was_loaded_for() {
    for per_thread in [false, true] {
        let gpu = Gpu::with_options(&LoadOptions::new().per_thread_default_stream(per_thread));
        assert_eq!(gpu.driver.is_per_thread_default_stream(), per_thread);
        // SAFETY: NULL is a default stream's handle.
        let null = unsafe { StreamRef::from_raw(&gpu.context, std::ptr::null_mut()) };
        assert_eq!(null.query(), Ok(Progress::Done));
        null.record_event(EventFlags::empty()).expect("an event").synchronize().expect("no work");
        let Ok(id) = null.id() else {
            // Drivers before 12.0 give streams no ids.
            assert!(gpu.driver.version() < cuda_events::Version::new(12, 0));
            continue;
        };
        let same = if per_thread {
            StreamRef::per_thread_default(&gpu.context)
        } else {
            StreamRef::legacy_default(&gpu.context)
        };
        assert_eq!(same.id(), Ok(id));
    }
}

#[test]
fn joins_of_two_threads_do_not_mix() {
    // One object, and in each thread another stream: what one thread joins must not become what the
    // other waits for.
    let gpu = Gpu::new();
    let own = StreamRef::per_thread_default(&gpu.context);
    let (mine, theirs) = (gpu.stream(), gpu.stream());
    let held = gpu.stream();
    let latch = Latch::hold(&held);
    // This thread's default stream waits for the latch, the other thread's is idle.
    own.wait_stream(&held).expect("a join");
    std::thread::scope(|scope| {
        mine.wait_stream(&own).expect("a join");
        scope.spawn(|| theirs.wait_stream(&own).expect("a join")).join().expect("no panic");
        mine.wait_stream(&own).expect("a join");
    });
    assert_eq!(theirs.synchronize(), Ok(()), "nothing is in the other thread's stream");
    assert_eq!(mine.query(), Ok(Progress::Pending), "this thread's stream is held");
    latch.release();
    assert_eq!(mine.synchronize(), Ok(()));
}

#[test]
fn streams_work_from_many_threads() {
    let gpu = Gpu::new();
    let shared = gpu.stream();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    let own = gpu.stream();
                    own.wait_stream(&shared).expect("a join");
                    shared.wait_stream(&own).expect("a join");
                    own.synchronize().expect("the work ends");
                }
            });
        }
    });
    shared.synchronize().expect("the work ends");
}
