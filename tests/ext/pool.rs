//! The event pool.

use crate::common::{self};

use std::collections::HashSet;
use std::pin::Pin;
use std::task::{Context as TaskContext, Poll, Waker};
use std::time::Duration;

use common::counting::{calls, counted_context, fail_next};
use common::{Gpu, Latch};
use common::{own_process, table};
use cuda_events::ext::{EventPool, PooledEvent};
use cuda_events::sys::{CUresult, Function};
use cuda_events::{Context, Device, Error, EventFlags, EventRef, Progress, Stream, StreamOptions};
use cuda_timelines::Completion;

fn pool(gpu: &Gpu) -> EventPool {
    EventPool::new(&gpu.context, EventFlags::empty()).expect("a pool")
}

#[test]
fn what_is_given_back_is_taken_without_a_call() {
    own_process!();
    let gpu = Gpu::new();
    let context = counted_context(gpu.driver);
    let pool = EventPool::new(&context, EventFlags::TIMING).expect("a pool");
    let event = pool.take().expect("an event");
    assert_eq!(event.flags(), EventFlags::TIMING);
    assert_eq!(event.context(), &context);
    assert_eq!(pool.flags(), EventFlags::TIMING);
    assert!(format!("{pool:?}").ends_with("flags: EventFlags(TIMING), .. }"), "{pool:?}");
    let raw = event.as_raw();
    let ((), made) = calls(|| {
        drop(event);
        for _ in 0..3 {
            let again = pool.take().expect("the event that was given back");
            assert_eq!(again.as_raw(), raw);
        }
    });
    assert_eq!(made, []);
    assert_eq!(pool.available(), 1);
    assert_eq!(calls(|| drop(pool)).1.first(), Some(&Function::cuEventDestroy_v2));
}

#[test]
fn events_that_are_out_at_one_time_are_different_ones() {
    own_process!();
    let gpu = Gpu::new();
    let pool = pool(&gpu);
    for _ in 0..2 {
        // More than the slots hold, so that the list behind them is in use too.
        let events: Vec<_> = (0..500).map(|_| pool.take().expect("an event")).collect();
        let handles: HashSet<_> = events.iter().map(|event| event.as_raw()).collect();
        assert_eq!(handles.len(), 500);
        assert_eq!(pool.available(), 0);
        drop(events);
        assert_eq!(pool.available(), 500);
    }
    pool.clear();
    assert_eq!(pool.available(), 0);
    pool.reserve(20).expect("events");
    assert_eq!(pool.available(), 20);
}

#[test]
fn an_event_can_be_taken_and_recorded_in_one() {
    own_process!();
    let gpu = Gpu::new();
    let context = counted_context(gpu.driver);
    let (held, idle) =
        (gpu.stream(), Stream::new(&context, StreamOptions::new()).expect("a stream"));
    let pool = EventPool::new(&context, EventFlags::empty()).expect("a pool");
    let latch = Latch::hold(&held);
    drop(pool.record_event(&held).expect("an event"));
    let (event, made) = calls(|| pool.record_event(&idle).expect("the same event"));
    assert_eq!(made, [Function::cuEventRecord]);
    event.synchronize().expect("nothing holds the idle stream");
    latch.release();
    held.synchronize().expect("the work ends");
    drop(event);
    let (function, code) = (Function::cuEventRecord, CUresult::CUDA_ERROR_LAUNCH_FAILED);
    fail_next(function, code);
    let (refused, made) = calls(|| pool.record_event(&idle).map(drop));
    assert_eq!(refused, Err(Error::Driver { function, code }));
    assert_eq!(made, [Function::cuEventRecord, Function::cuEventDestroy_v2]);
    assert_eq!(pool.available(), 0, "the event that could not be recorded is gone");
}

#[test]
fn interprocess_events_are_refused() {
    own_process!();
    let gpu = Gpu::new();
    let refused = |flags| EventPool::new(&gpu.context, flags).err();
    assert_eq!(refused(EventFlags::INTERPROCESS), Some(Error::InterprocessPool));
    assert_eq!(
        refused(EventFlags::INTERPROCESS | EventFlags::BLOCKING_SYNC),
        Some(Error::InterprocessPool)
    );
    assert_eq!(refused(EventFlags::all()), Some(Error::TimingWithInterprocess));
}

#[test]
fn an_event_may_outlive_its_pool_and_is_destroyed_then() {
    own_process!();
    let gpu = Gpu::new();
    let context = counted_context(gpu.driver);
    let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
    let pool = EventPool::new(&context, EventFlags::empty()).expect("a pool");
    let clone = pool.clone();
    let event = pool.take().expect("an event");
    drop(pool);
    drop(clone.take().expect("a clone is the same pool"));
    assert_eq!(clone.available(), 1);
    drop(clone);
    event.record(&stream).expect("the event is alive");
    event.synchronize().expect("no work");
    assert_eq!(calls(|| drop(event)).1, [Function::cuEventDestroy_v2]);
}

/// Code that has no more than an `&EventRef` need not know of pools; nor does a future that holds a
/// type of the caller's.
#[test]
fn an_error_through_a_reference_to_the_event_counts() {
    struct Job(PooledEvent);
    impl AsRef<EventRef> for Job {
        fn as_ref(&self) -> &EventRef {
            &self.0
        }
    }
    let gpu = Gpu::new();
    let context = counted_context(gpu.driver);
    let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
    let pool = EventPool::new(&context, EventFlags::empty()).expect("a pool");
    let code = CUresult::CUDA_ERROR_LAUNCH_FAILED;
    type Use = fn(&EventRef, &Stream) -> Option<Error>;
    let uses: [(Function, Use); 5] = [
        (Function::cuEventRecord, |event, stream| event.record(stream).err()),
        (Function::cuCtxRecordEvent, |event, stream| event.record_context(stream.context()).err()),
        (Function::cuEventQuery, |event, _| event.query().err()),
        (Function::cuEventSynchronize, |event, _| event.synchronize().err()),
        (Function::cuEventQuery, |event, _| event.synchronize_timeout(Duration::MAX).err()),
    ];
    for (function, use_it) in uses {
        if gpu.driver.symbols().address(function).is_null() {
            continue;
        }
        let event = pool.take().expect("an event");
        assert_eq!(use_it(&event, &stream), None);
        fail_next(function, code);
        assert_eq!(use_it(&event, &stream), Some(Error::Driver { function, code }));
        assert_eq!(use_it(&event, &stream), None, "it was this once");
        assert_eq!(calls(|| drop(event)).1, [Function::cuEventDestroy_v2], "{function}");
        assert_eq!(pool.available(), 0);
    }
    let mut completion = Completion::new(Job(pool.take().expect("an event")));
    fail_next(Function::cuEventQuery, code);
    let waited = Pin::new(&mut completion).poll(&mut TaskContext::from_waker(Waker::noop()));
    assert_eq!(waited, Poll::Ready(Err(Error::Driver { function: Function::cuEventQuery, code })));
    assert_eq!(calls(|| drop(completion)).1, [Function::cuEventDestroy_v2]);
    assert_eq!(pool.available(), 0);
}

/// A call that was not made leaves the event as it was.
#[test]
fn only_the_drivers_errors_count() {
    own_process!();
    let gpu = Gpu::new();
    let driver = table::hiding(gpu.driver, &[Function::cuCtxRecordEvent]);
    let context = Device::new(driver, 0).and_then(Context::primary).expect("the context");
    let pool = EventPool::new(&context, EventFlags::empty()).expect("a pool");
    let soft = cuda_soft_driver::SoftDriver::new();
    let other = Device::new(soft.driver(), 0).and_then(Context::primary).expect("the context");
    let other = Stream::new(&other, StreamOptions::new()).expect("a stream");
    let event = pool.take().expect("an event");
    assert!(matches!(event.record(&other), Err(Error::DriverMismatch { .. })));
    assert!(matches!(event.record_context(&context), Err(Error::Unsupported { .. })));
    #[cfg(unix)]
    {
        let mut inherited = Some(pool.take().expect("an event"));
        let available = common::fork::in_child(|| {
            let refused = inherited.take().map(|event| (event.query(), event.synchronize()));
            assert!(matches!(
                refused,
                Some((Err(Error::ForkedChild { .. }), Err(Error::ForkedChild { .. })))
            ));
            pool.available().to_string()
        });
        assert_eq!(available, ("1".to_owned(), 0));
        std::mem::forget(inherited);
    }
    drop(event);
    assert_eq!(pool.available(), 1);
}

/// What is pending is no error.
#[test]
fn an_event_that_is_not_done_in_time_is_given_back() {
    own_process!();
    let gpu = Gpu::new();
    let stream = gpu.stream();
    let pool = pool(&gpu);
    let latch = Latch::hold(&stream);
    let event = pool.record_event(&stream).expect("an event");
    assert_eq!(event.query(), Ok(Progress::Pending));
    assert_eq!(event.synchronize_timeout(Duration::from_millis(1)), Ok(Progress::Pending));
    drop(event);
    assert_eq!(pool.available(), 1);
    latch.release();
}
