//! How many driver calls each operation makes, and which: counted in front of the driver under test.

mod common;

use common::Gpu;
use common::counting::{calls, counting};
use cuda_events::Progress;
use cuda_events::sys::Function::{self, *};
use cuda_events::{Context, Device, Event, EventFlags, Stream, StreamOptions, StreamRef};

/// A context of a counting driver, in front of the one under test.
struct Counted {
    context: Context,
    // Last: it owns the driver.
    _gpu: Gpu,
}

impl Counted {
    fn new() -> Self {
        let gpu = Gpu::new();
        let device = Device::new(counting(gpu.driver), 0).expect("device 0");
        Self { context: Context::primary(device).expect("the primary context"), _gpu: gpu }
    }

    fn stream(&self) -> Stream {
        Stream::new(&self.context, StreamOptions::new()).expect("a stream")
    }

    fn event(&self, flags: EventFlags) -> Event {
        Event::new(&self.context, flags).expect("an event")
    }
}

#[track_caller]
fn makes<T>(expected: &[Function], work: impl FnOnce() -> cuda_events::Result<T>) -> T {
    let (result, made) = calls(work);
    assert_eq!(made, expected);
    result.expect("the call succeeds")
}

/// The one lookup of the newest elapsed-time call that the driver has.
fn elapsed_function(context: &Context) -> Function {
    match context.driver().symbols().cuEventElapsedTime_v2 {
        Some(_) => cuEventElapsedTime_v2,
        None => cuEventElapsedTime,
    }
}

#[test]
fn each_hot_operation_is_one_driver_call() {
    let gpu = Counted::new();
    let (stream, other) = (gpu.stream(), gpu.stream());
    let (start, end) = (gpu.event(EventFlags::TIMING), gpu.event(EventFlags::TIMING));

    makes(&[cuEventRecord], || start.record(&stream));
    makes(&[cuEventRecord], || end.record(&stream));
    makes(&[cuEventSynchronize], || end.synchronize());
    assert!(makes(&[cuEventQuery], || end.query()).is_done());
    assert!(makes(&[cuEventQuery], || end.synchronize_timeout(std::time::Duration::ZERO)).is_done());
    makes(&[cuStreamWaitEvent], || other.wait_event(&end));
    makes(&[elapsed_function(&gpu.context)], || start.elapsed_ms(&end));
    makes(&[cuStreamSynchronize], || stream.synchronize());
    assert!(makes(&[cuStreamQuery], || stream.query()).is_done());
    makes(&[cuStreamGetPriority], || stream.priority());
    makes(&[cuStreamGetFlags], || stream.is_blocking());
}

#[test]
fn it_is_one_call_too_while_another_context_is_current() {
    let gpu = Counted::new();
    let (stream, event) = (gpu.stream(), gpu.event(EventFlags::empty()));
    let (driver, mut other) = (gpu.context.driver(), std::ptr::null_mut());
    // SAFETY: a place for the handle; the context is current from here on.
    let code = unsafe { (driver.symbols().cuCtxCreate_v2)(&mut other, 0, gpu.context.device().as_raw()) };
    common::check(cuCtxCreate_v2, code);
    makes(&[cuEventRecord], || event.record(&stream));
    makes(&[cuStreamWaitEvent], || stream.wait_event(&event));
    let _ = makes(&[cuEventQuery], || event.query());
    makes(&[cuStreamSynchronize], || stream.synchronize());
    // SAFETY: nothing was made in it.
    common::check(cuCtxDestroy_v2, unsafe { (driver.symbols().cuCtxDestroy_v2)(other) });
}

#[test]
fn wait_stream_is_two_driver_calls_once_the_event_is_there() {
    let gpu = Counted::new();
    let (stream, other) = (gpu.stream(), gpu.stream());
    stream.wait_stream(&other).expect("the first join");
    makes(&[cuEventRecord, cuStreamWaitEvent], || stream.wait_stream(&other));
    let third = gpu.stream();
    makes(&[cuEventRecord, cuStreamWaitEvent], || third.wait_stream(&other));
}

#[test]
fn creation_asks_for_the_current_context_and_changes_it_only_where_it_must() {
    let gpu = Counted::new();
    let elsewhere = [cuCtxGetCurrent, cuCtxPushCurrent_v2, cuEventCreate, cuCtxPopCurrent_v2];
    makes(&elsewhere, || Event::new(&gpu.context, EventFlags::empty()));
    let (_, made) = calls(|| drop(gpu.event(EventFlags::empty())));
    assert_eq!(made.last(), Some(&cuEventDestroy_v2));
    assert_eq!(made.len(), elsewhere.len() + 1);

    let _current = gpu.context.make_current().expect("the context can be made current");
    makes(&[cuCtxGetCurrent, cuEventCreate], || Event::new(&gpu.context, EventFlags::empty()));
    makes(&[cuCtxGetCurrent, cuStreamCreate], || Stream::new(&gpu.context, StreamOptions::new()));
}

#[test]
fn a_default_stream_costs_one_more_call_with_its_context_current_and_three_without() {
    let gpu = Counted::new();
    let event = gpu.event(EventFlags::empty());
    for stream in [StreamRef::legacy_default(&gpu.context), StreamRef::per_thread_default(&gpu.context)] {
        makes(&[cuCtxGetCurrent, cuCtxPushCurrent_v2, cuEventRecord, cuCtxPopCurrent_v2], || event.record(&stream));
        let _current = gpu.context.make_current().expect("the context can be made current");
        makes(&[cuCtxGetCurrent, cuEventRecord], || event.record(&stream));
        let _ = makes(&[cuCtxGetCurrent, cuStreamQuery], || stream.query());
    }
}

#[test]
fn closing_and_dropping_are_one_call() {
    let gpu = Counted::new();
    let (event, stream) = (gpu.event(EventFlags::empty()), gpu.stream());
    makes(&[cuEventDestroy_v2], || event.close());
    makes(&[cuStreamDestroy_v2], || stream.close());
    let (event, stream) = (gpu.event(EventFlags::empty()), gpu.stream());
    assert_eq!(calls(|| drop(event)).1, [cuEventDestroy_v2]);
    assert_eq!(calls(|| drop(stream)).1, [cuStreamDestroy_v2]);
    let (event, stream) = (gpu.event(EventFlags::empty()), gpu.stream());
    let ((raw_event, raw_stream), made) = calls(|| (event.into_raw(), stream.into_raw()));
    assert_eq!(made, []);
    // SAFETY: both were given up by their owners a line above.
    drop(unsafe {
        (Event::from_raw(&gpu.context, raw_event, EventFlags::empty()), Stream::from_raw(&gpu.context, raw_stream))
    });
}

#[test]
fn naming_what_others_own_makes_no_call_and_destroys_nothing() {
    let gpu = Counted::new();
    let (event, stream) = (gpu.event(EventFlags::empty()), gpu.stream());
    let ((), made) = calls(|| {
        // SAFETY: the owners outlive what is borrowed here.
        let borrowed = unsafe {
            (
                cuda_events::EventRef::from_raw(&gpu.context, event.as_raw(), event.flags()),
                StreamRef::from_raw(&gpu.context, stream.as_raw()),
            )
        };
        drop(borrowed);
    });
    assert_eq!(made, []);
    event.record(&stream).expect("both are alive");
}

#[test]
fn a_wait_that_times_out_only_queries() {
    let gpu = Counted::new();
    let (stream, event) = (gpu.stream(), gpu.event(EventFlags::empty()));
    let latch = common::Latch::hold(&stream);
    event.record(&stream).expect("a record");
    let (done, made) = calls(|| event.synchronize_timeout(std::time::Duration::from_millis(5)));
    assert_eq!(done, Ok(Progress::Pending));
    assert!(made.len() > 1 && made.iter().all(|function| *function == cuEventQuery), "{made:?}");
    latch.release();
    event.synchronize().expect("the work is released");
}
