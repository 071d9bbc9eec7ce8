//! The event pool.

use crate::common::{self, table};

use std::collections::HashSet;
use std::ffi::c_void;
use std::pin::{Pin, pin};
use std::sync::Mutex;
use std::task::{Context as TaskContext, Poll, Waker};
use std::time::Duration;

use common::counting::{calls, counting, fail_next};
use common::own_process;
use common::{Gpu, Latch};
use cuda_events::ext::{EventPool, PooledEvent};
use cuda_events::sys::{CUevent, CUresult, Function};
use cuda_events::{
    Context, Device, Driver, Error, EventFlags, EventRef, Progress, Stream, StreamOptions,
};
use cuda_timelines::Completion;

fn pool(gpu: &Gpu) -> EventPool {
    EventPool::new(&gpu.context, EventFlags::empty()).expect("a pool")
}

#[test]
fn what_is_given_back_is_taken_without_a_call() {
    own_process!();
    let gpu = Gpu::new();
    let context = Device::new(counting(gpu.driver), 0)
        .and_then(Context::primary)
        .expect("the primary context");
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
fn a_pending_event_can_be_given_back() {
    own_process!();
    let gpu = Gpu::new();
    let (held, waiting, idle) = (gpu.stream(), gpu.stream(), gpu.stream());
    let pool = pool(&gpu);
    let latch = Latch::hold(&held);
    let event = pool.take().expect("an event");
    event.record(&held).expect("a record");
    waiting.wait_event(&event).expect("a wait");
    drop(event);
    let event = pool.take().expect("the same event");
    assert_eq!(event.query(), Ok(Progress::Pending), "it carries the record of whoever had it");
    event.record(&idle).expect("a record");
    event.synchronize().expect("nothing holds the idle stream");
    assert_eq!(waiting.query(), Ok(Progress::Pending), "the wait saw the first record");
    latch.release();
    waiting.synchronize().expect("the work ends");
}

#[test]
fn an_event_can_be_taken_and_recorded_in_one() {
    own_process!();
    let gpu = Gpu::new();
    let context = Device::new(counting(gpu.driver), 0)
        .and_then(Context::primary)
        .expect("the primary context");
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
fn an_event_whose_await_is_an_error_is_destroyed() {
    own_process!();
    let gpu = Gpu::new();
    let context = Device::new(counting(gpu.driver), 0)
        .and_then(Context::primary)
        .expect("the primary context");
    let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
    let pool = EventPool::new(&context, EventFlags::empty()).expect("a pool");
    let ask = || {
        let event = pool.record_event(&stream).expect("an event");
        event.synchronize().expect("no work");
        pin!(Completion::new(event)).poll(&mut TaskContext::from_waker(Waker::noop()))
    };
    assert_eq!(ask(), Poll::Ready(Ok(())));
    assert_eq!(pool.available(), 1);
    fail_next(Function::cuEventQuery, CUresult::CUDA_ERROR_LAUNCH_FAILED);
    let refused = Error::Driver {
        function: Function::cuEventQuery,
        code: CUresult::CUDA_ERROR_LAUNCH_FAILED,
    };
    assert_eq!(ask(), Poll::Ready(Err(refused)));
    assert_eq!(pool.available(), 0);
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
    let context = Device::new(counting(gpu.driver), 0)
        .and_then(Context::primary)
        .expect("the primary context");
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

#[test]
fn an_event_that_answered_an_error_is_destroyed() {
    own_process!();
    let gpu = Gpu::new();
    let context = Device::new(counting(gpu.driver), 0)
        .and_then(Context::primary)
        .expect("the primary context");
    let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
    let pool = EventPool::new(&context, EventFlags::empty()).expect("a pool");
    let failing = [Function::cuEventRecord, Function::cuEventQuery, Function::cuEventSynchronize];
    let code = CUresult::CUDA_ERROR_LAUNCH_FAILED;
    for function in failing {
        let event = pool.take().expect("an event");
        fail_next(function, code);
        let results = [event.record(&stream).err(), event.query().err(), event.synchronize().err()];
        let refused = |other| (other == function).then_some(Error::Driver { function, code });
        assert_eq!(results, failing.map(refused));
        assert_eq!(calls(|| drop(event)).1, [Function::cuEventDestroy_v2], "{function}");
        assert_eq!(pool.available(), 0);
    }
    for timeout in [Duration::ZERO, Duration::MAX] {
        let event = pool.take().expect("an event");
        let function = Function::cuEventQuery;
        fail_next(function, code);
        assert_eq!(event.synchronize_timeout(timeout), Err(Error::Driver { function, code }));
        assert_eq!(
            calls(|| drop(event)).1,
            [Function::cuEventDestroy_v2],
            "a wait with a limit of {timeout:?}"
        );
        assert_eq!(pool.available(), 0);
    }
    let event = pool.take().expect("an event");
    assert_eq!(calls(|| event.discard()).1, [Function::cuEventDestroy_v2]);
    fail_next(Function::cuEventCreate, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
    assert_eq!(
        pool.take().err().and_then(|error| error.code()),
        Some(CUresult::CUDA_ERROR_OUT_OF_MEMORY)
    );
}

/// Whoever has no more than an `&EventRef` need not know of pools; nor does a future that holds a
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
    let context = Device::new(counting(gpu.driver), 0)
        .and_then(Context::primary)
        .expect("the primary context");
    let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
    let pool = EventPool::new(&context, EventFlags::empty()).expect("a pool");
    let code = CUresult::CUDA_ERROR_LAUNCH_FAILED;
    type Use = fn(&EventRef, &Stream) -> Option<Error>;
    let uses: [(Function, Use); 4] = [
        (Function::cuEventRecord, |event, stream| event.record(stream).err()),
        (Function::cuEventQuery, |event, _| event.query().err()),
        (Function::cuEventSynchronize, |event, _| event.synchronize().err()),
        (Function::cuEventQuery, |event, _| event.synchronize_timeout(Duration::MAX).err()),
    ];
    for (function, use_it) in uses {
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

#[test]
fn many_threads_share_a_pool_and_no_event() {
    own_process!();
    let gpu = Gpu::new();
    let pool = pool(&gpu);
    // The events that are out now.
    let out = Mutex::new(HashSet::new());
    std::thread::scope(|scope| {
        for _ in 0..8 {
            let (gpu, pool, out) = (&gpu, &pool, &out);
            scope.spawn(move || {
                let stream = gpu.stream();
                for round in 0..300 {
                    let events: Vec<_> =
                        (0..round % 20).map(|_| pool.take().expect("an event")).collect();
                    for event in &events {
                        assert!(
                            out.lock().expect("no panic").insert(event.as_raw() as usize),
                            "two have it at once"
                        );
                        event.record(&stream).expect("a record");
                    }
                    let give_back = move || {
                        for event in events {
                            assert!(
                                out.lock().expect("no panic").remove(&(event.as_raw() as usize))
                            );
                        }
                    };
                    // By another thread than took them, now and then.
                    if round % 7 == 0 {
                        scope.spawn(give_back);
                    } else {
                        give_back();
                    }
                }
                stream.synchronize().expect("the work ends");
            });
        }
    });
    assert_eq!(out.lock().expect("no panic").len(), 0);
    let free = pool.available();
    assert!(free > 0);
    let events: Vec<_> = (0..free).map(|_| pool.take().expect("an event")).collect();
    let handles: HashSet<_> = events.iter().map(|event| event.as_raw()).collect();
    assert_eq!(handles.len(), free, "an event was given to two");
}

/// Counted in front of the driver, whichever thread destroys what comes back.
#[test]
fn a_pool_that_closes_while_events_come_back_loses_none() {
    own_process!();
    static REAL: Mutex<Option<Driver>> = Mutex::new(None);
    static DESTROYED: Mutex<Vec<usize>> = Mutex::new(Vec::new());
    unsafe extern "C" fn destroy(event: CUevent) -> CUresult {
        DESTROYED.lock().expect("no panic").push(event as usize);
        let real = REAL.lock().expect("no panic").expect("the driver behind");
        // SAFETY: the caller's argument, passed on.
        unsafe { (real.symbols().cuEventDestroy_v2)(event) }
    }
    for _ in 0..50 {
        let gpu = Gpu::new();
        *REAL.lock().expect("no panic") = Some(gpu.driver);
        let driver = table::replaced(gpu.driver, |function| {
            (function == Function::cuEventDestroy_v2)
                .then_some(destroy as unsafe extern "C" fn(CUevent) -> CUresult as *mut c_void)
        });
        let context =
            Device::new(driver, 0).and_then(Context::primary).expect("the primary context");
        let pool = EventPool::new(&context, EventFlags::empty()).expect("a pool");
        let events: Vec<_> = (0..40).map(|_| pool.take().expect("an event")).collect();
        let mut made: Vec<_> = events.iter().map(|event| event.as_raw() as usize).collect();
        std::thread::scope(|scope| {
            scope.spawn(move || drop(events));
            scope.spawn(move || drop(pool));
        });
        let mut destroyed = std::mem::take(&mut *DESTROYED.lock().expect("no panic"));
        made.sort_unstable();
        destroyed.sort_unstable();
        assert_eq!(destroyed, made, "each is destroyed, and once");
    }
}
