//! Behaviours of the models on `docs/parity.md` that no other test shows.

use crate::common;

use std::collections::HashSet;
use std::pin::pin;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::task::{Context as TaskContext, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use common::counting::{calls, counting};
use common::{Door, Gpu, Latch, SlowWork, begin_capture, current, not_run};
use cuda_events::capture::{CaptureMode, CaptureStatus};
use cuda_events::ext::{EventPool, IpcLease, LazyEvent, StreamScope, current_stream};
use cuda_events::sys::{CUdevice_attribute, CUresult, Function};
use cuda_events::{
    Context, Device, Driver, Error, Event, EventFlags, EventRef, ForeignStream, Progress, Stream,
    StreamOptions, StreamRef, Version,
};
use cuda_soft_driver::SoftDriver;
use cuda_timelines::CudaStreamExt;

/// Two devices' primary contexts, on the software driver or on a machine that has two.
fn with_two_devices(work: impl FnOnce(Driver, [Context; 2])) {
    let gpu = Gpu::new();
    let soft = (Door::chosen() == Door::Soft).then(|| SoftDriver::builder().devices(2).build());
    let driver = soft.as_ref().map_or(gpu.driver, SoftDriver::driver);
    if Device::count(driver).expect("a count") < 2 {
        return not_run("this machine has one device");
    }
    let primary = |ordinal| {
        Device::new(driver, ordinal).and_then(Context::primary).expect("the primary context")
    };
    work(driver, [primary(0), primary(1)]);
}

fn stream(context: &Context) -> Stream {
    Stream::new(context, StreamOptions::new()).expect("a stream")
}

#[test]
fn what_is_there_prints_its_handle() {
    let gpu = Gpu::new();
    let stream = gpu.stream();
    let event = stream.record_event(EventFlags::BLOCKING_SYNC).expect("an event");
    let text = format!("{event:?}");
    assert!(
        text.contains(&format!("{:?}", event.as_raw())) && text.contains("BLOCKING_SYNC"),
        "{text}"
    );
    let text = format!("{stream:?}");
    assert!(text.contains(&format!("{:?}", stream.as_raw())), "{text}");
    let lazy = LazyEvent::new(EventFlags::TIMING).expect("an event to be");
    let text = format!("{lazy:?}");
    assert!(text.contains("NotCreated") && text.contains("TIMING"), "{text}");
    lazy.record(&stream).expect("a record");
    let text = format!("{lazy:?}");
    assert!(
        text.contains("Recorded") && text.contains(&format!("{:?}", stream.context().as_raw())),
        "{text}"
    );
    let context = format!("{:?}", gpu.context);
    assert!(context.contains(&format!("{:?}", gpu.context.as_raw())), "{context}");
    let pool = EventPool::new(&gpu.context, EventFlags::TIMING).expect("a pool");
    assert_eq!(
        format!("{pool:?}"),
        format!("EventPool {{ context: {context}, flags: EventFlags(TIMING), .. }}")
    );
    let current = gpu.context.make_current().expect("the context can be made current");
    assert_eq!(format!("{current:?}"), format!("CurrentContext {{ context: {context}, .. }}"));
    let version = format!("version: {}, ", gpu.driver.version());
    let text = format!("{:?}", gpu.driver);
    assert!(text.contains(&version), "{text}");
}

#[test]
fn a_context_waits_with_all_its_streams() {
    let gpu = Gpu::new();
    let streams = [gpu.stream(), gpu.stream()];
    // The driver may run one after the other, so that each is the last once.
    for order in [[0, 1], [1, 0]] {
        let works = order.map(|at| SlowWork::put_into(&streams[at]));
        works.iter().for_each(SlowWork::let_go);
        let synchronized = gpu.context.synchronize();
        assert_eq!((synchronized, works.each_ref().map(SlowWork::is_done)), (Ok(()), [true; 2]));
    }
    assert_eq!(streams.map(|stream| stream.query()), [Ok(Progress::Done), Ok(Progress::Done)]);
}

#[test]
#[allow(clippy::mutable_key_type, reason = "the hash is that of the handle, which does not change")]
fn contexts_and_streams_are_hashed_by_handle() {
    let gpu = Gpu::new();
    let again = Context::primary(gpu.device).expect("the primary context");
    assert_eq!(HashSet::from([gpu.context.clone(), again]).len(), 1);
    let (one, two) = (gpu.stream(), gpu.stream());
    // SAFETY: `one` outlives it.
    let same = unsafe { StreamRef::from_raw(&gpu.context, one.as_raw()) };
    assert_eq!(HashSet::from([&*one, &*two, &same]).len(), 2);
}

#[test]
fn a_device_says_what_it_supports() {
    let gpu = Gpu::new();
    let range = gpu.context.stream_priority_range().expect("a range");
    let priorities = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED;
    let supported = gpu.device.attribute(priorities).expect("an answer");
    assert_eq!(supported != 0, range.greatest < range.least);
    let interprocess = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED;
    let supported = gpu.device.attribute(interprocess);
    if gpu.driver.version() < Version::new(12, 0) {
        assert_eq!(
            supported.err().and_then(|error| error.code()),
            Some(CUresult::CUDA_ERROR_INVALID_VALUE)
        );
        return;
    }
    let exported =
        Event::new(&gpu.context, EventFlags::INTERPROCESS).and_then(|event| event.ipc_descriptor());
    assert_eq!(supported.map(|supported| supported != 0), Ok(exported.is_ok()));
}

#[test]
fn any_device_may_be_current() {
    with_two_devices(|driver, [first, second]| {
        let working = stream(&first);
        for other in [None, Some(&first), Some(&second)] {
            let guard =
                other.map(|other| other.make_current().expect("the context can be made current"));
            let before = current(driver);
            let event = Event::new(&first, EventFlags::INTERPROCESS).expect("an event");
            let latch = Latch::hold(&working);
            event.record(&working).expect("a record");
            assert_eq!(event.query(), Ok(Progress::Pending));
            assert_eq!(event.synchronize_timeout(Duration::ZERO), Ok(Progress::Pending));
            event.ipc_descriptor().expect("a descriptor");
            latch.release();
            assert_eq!(event.synchronize(), Ok(()));
            assert_eq!(working.synchronize(), Ok(()));
            assert_eq!(
                working.record_event(EventFlags::empty()).expect("an event").context(),
                &first
            );
            drop(event);
            assert_eq!(current(driver), before);
            drop(guard);
        }
    });
}

#[test]
fn hot_calls_are_one_on_other_devices_too() {
    with_two_devices(|driver, [_, second]| {
        let counted =
            Device::new(counting(driver), 0).and_then(Context::primary).expect("a context");
        let working = stream(&counted);
        let timed = || Event::new(&counted, EventFlags::TIMING).expect("an event");
        let (start, end) = (timed(), timed());
        let _other = second.make_current().expect("the context can be made current");
        let made = calls(|| {
            start.record(&working)?;
            end.record(&working)?;
            end.synchronize()?;
            let _ = end.query()?;
            start.elapsed_ms(&end)?;
            working.wait_event(&end)?;
            working.synchronize()?;
            working.query()
        });
        assert_eq!((made.0, made.1.len()), (Ok(Progress::Done), 8), "{:?}", made.1);
    });
}

#[test]
fn a_stream_waits_for_one_of_another_device() {
    with_two_devices(|_, [first, second]| {
        let (working, waiting) = (stream(&first), stream(&second));
        let latch = Latch::hold(&working);
        waiting.wait_stream(&working).expect("a join");
        assert_eq!(waiting.query(), Ok(Progress::Pending));
        latch.release();
        assert_eq!(waiting.synchronize(), Ok(()));
        assert_eq!(working.query(), Ok(Progress::Done), "what was waited for is done");
    });
}

#[test]
fn a_stream_waits_for_one_of_another_library() {
    let gpu = Gpu::new();
    let (owner, waiting) = (Arc::new(gpu.stream()), gpu.stream());
    // SAFETY: the owner keeps the stream.
    let theirs = unsafe { ForeignStream::new(&gpu.context, owner.as_raw(), owner.clone()) }
        .expect("a stream");
    let latch = Latch::hold(&owner);
    waiting.wait_stream(&theirs).expect("a join");
    assert_eq!(waiting.query(), Ok(Progress::Pending));
    latch.release();
    assert_eq!(waiting.synchronize(), Ok(()));
}

#[test]
fn each_stream_is_one_of_its_own() {
    let gpu = Gpu::new();
    // PyTorch has 32.
    let streams: Vec<Stream> = (0..100).map(|_| gpu.stream()).collect();
    let handles: HashSet<_> = streams.iter().map(|stream| stream.as_raw()).collect();
    assert_eq!(handles.len(), streams.len());
    let latch = Latch::hold(&streams[0]);
    for stream in &streams[1..] {
        assert_eq!(stream.query(), Ok(Progress::Done));
    }
    latch.release();
    streams[0].synchronize().expect("the work ends");
}

#[test]
fn a_scope_of_no_stream_changes_nothing() {
    let gpu = Gpu::new();
    let stream = Arc::new(gpu.stream());
    let _outer = StreamScope::enter(stream.clone());
    for chosen in [None, Some(Arc::new(gpu.stream()))] {
        let expected = chosen.clone().unwrap_or(stream.clone());
        let _scope = chosen.map(StreamScope::enter);
        assert_eq!(*current_stream(&gpu.context), **expected);
    }
    assert_eq!(*current_stream(&gpu.context), **stream);
}

#[test]
fn a_scope_can_be_exchanged_for_another() {
    let gpu = Gpu::new();
    let [original, first, second] = [0, 1, 2].map(|_| Arc::new(gpu.stream()));
    let _outer = StreamScope::enter(original.clone());
    let mut scope = StreamScope::enter(first.clone());
    assert_eq!(*current_stream(&gpu.context), **first);
    // The new one is entered before the old one is left.
    drop(std::mem::replace(&mut scope, StreamScope::enter(second.clone())));
    assert_eq!(*current_stream(&gpu.context), **second);
    drop(scope);
    assert_eq!(*current_stream(&gpu.context), **original);
    assert_eq!(Arc::strong_count(&first), 1);
}

#[test]
fn a_wait_of_a_stream_returns_at_once() {
    let gpu = Gpu::new();
    let (held, waiting) = (gpu.stream(), gpu.stream());
    // Blocking concerns the host's own wait, which PyTorch's documentation has wrong.
    for flags in [EventFlags::empty(), EventFlags::BLOCKING_SYNC] {
        let latch = Latch::hold(&held);
        let event = held.record_event(flags).expect("an event");
        // On this side of the latch: if the call waited, it would wait forever.
        waiting.wait_event(&event).expect("a wait");
        assert_eq!(waiting.query(), Ok(Progress::Pending));
        latch.release();
        assert_eq!(waiting.synchronize(), Ok(()));
    }
}

#[test]
fn the_time_is_there_after_a_synchronize() {
    let gpu = Gpu::new();
    let stream = gpu.stream();
    let timed = || stream.record_event(EventFlags::TIMING).expect("an event");
    // On MPS this order is a deadlock, and short times come out reversed.
    for _ in 0..50 {
        let (start, end) = (timed(), timed());
        end.synchronize().expect("the work ends");
        assert!(start.elapsed_ms(&end).expect("a time") >= 0.0);
        start.elapsed(&end).expect("it is not reversed");
    }
}

#[test]
fn the_time_may_be_between_two_streams() {
    let gpu = Gpu::new();
    let (first, second) = (gpu.stream(), gpu.stream());
    let before = Instant::now();
    let start = first.record_event(EventFlags::TIMING).expect("an event");
    let latch = Latch::hold(&first);
    second.wait_stream(&first).expect("a join");
    let end = second.record_event(EventFlags::TIMING).expect("an event");
    start.synchronize().expect("nothing holds it");
    let held = Instant::now();
    while held.elapsed() < Duration::from_millis(3) {
        std::hint::spin_loop();
    }
    latch.release();
    end.synchronize().expect("the work ends");
    let at_most = before.elapsed().as_secs_f32() * 1000.0;
    let elapsed = start.elapsed_ms(&end).expect("a time");
    assert!(elapsed >= 2.9, "{elapsed} ms, but the first stream was held for 3 ms");
    assert!(elapsed <= at_most + 0.1, "{elapsed} ms, but it took {at_most} ms here");
}

#[test]
fn awaiting_a_failing_context_errs() {
    let gpu = Gpu::new();
    let Some(soft) = gpu.soft() else {
        return not_run(
            "only a software driver in the process has contexts that fail when they are told to",
        );
    };
    let stream = gpu.stream();
    let latch = Latch::hold(&stream);
    let (woken, told) = channel();
    let waker = Waker::from(Arc::new(Told(woken)));
    let mut task = TaskContext::from_waker(&waker);
    let mut completion = pin!(stream.completion().expect("a completion"));
    assert_eq!(completion.as_mut().poll(&mut task), Poll::Pending);
    soft.fail_contexts(CUresult::CUDA_ERROR_LAUNCH_FAILED);
    // The task polls no more until it is woken, as an executor does.
    told.recv_timeout(Duration::from_secs(60)).expect("the failure wakes the task");
    let Poll::Ready(result) = completion.as_mut().poll(&mut task) else {
        panic!("it was woken for nothing")
    };
    let (function, code) = (Function::cuEventQuery, CUresult::CUDA_ERROR_LAUNCH_FAILED);
    assert_eq!(result, Err(Error::Driver { function, code }));
    latch.release();
}

/// A waker that tells the test.
struct Told(Sender<()>);

impl Wake for Told {
    fn wake(self: Arc<Self>) {
        self.0.send(()).expect("the test listens");
    }
}

#[test]
fn awaiting_breaks_no_others_capture() {
    let gpu = Gpu::new();
    let (held, captured) = (gpu.stream(), gpu.stream());
    let latch = Latch::hold(&held);
    let mut completion = pin!(held.completion().expect("a completion"));
    let mut late = pin!(held.completion().expect("a completion"));
    let mut task = TaskContext::from_waker(Waker::noop());
    assert_eq!(completion.as_mut().poll(&mut task), Poll::Pending);
    // Queries of any thread invalidate a global capture unless the thread is exempt.
    let capture = begin_capture(&captured, CaptureMode::Global).expect("a capture");
    // The first poll asks by itself, in the thread that polls.
    let elsewhere = || late.as_mut().poll(&mut TaskContext::from_waker(Waker::noop()));
    let first = std::thread::scope(|scope| scope.spawn(elsewhere).join().expect("no panic"));
    assert_eq!(first, Poll::Pending);
    latch.release();
    let started = Instant::now();
    while completion.as_mut().poll(&mut task) != Poll::Ready(Ok(())) {
        assert!(
            started.elapsed() < Duration::from_secs(60),
            "the completion resolves while the capture goes on"
        );
        std::thread::yield_now();
    }
    capture.end().expect("the capture was left alone");
}

#[test]
fn a_new_stream_does_not_capture() {
    let gpu = Gpu::new();
    for mode in [CaptureMode::Global, CaptureMode::ThreadLocal, CaptureMode::Relaxed] {
        let captured = gpu.stream();
        let capture = begin_capture(&captured, mode).expect("a capture");
        assert_eq!(captured.capture_status(), Ok(CaptureStatus::Active));
        // More than PyTorch's 32, after which it gives the capturing one again.
        let new: Vec<_> = (0..40).map(|_| gpu.stream()).collect();
        assert!(
            new.iter().all(|stream| stream.capture_status() == Ok(CaptureStatus::None)),
            "{mode:?}"
        );
        let events: Vec<_> = new
            .iter()
            .map(|stream| stream.record_event(EventFlags::empty()).expect("an event"))
            .collect();
        capture.end().expect("a graph");
        assert!(
            events.iter().all(|event| event.synchronize() == Ok(())),
            "recorded, and not captured"
        );
        // The driver may give a new stream the handle of one that was destroyed while it captured.
        drop(begin_capture(&captured, mode).map(std::mem::forget));
        drop(captured);
        assert_eq!(gpu.stream().capture_status(), Ok(CaptureStatus::None));
    }
}

#[test]
fn a_weak_reference_keeps_no_stream() {
    let gpu = Gpu::new();
    let context =
        Device::new(counting(gpu.driver), 0).and_then(Context::primary).expect("a context");
    let owner = Arc::new(stream(&context));
    let weak = Arc::downgrade(&owner);
    assert!(weak.upgrade().is_some_and(|stream| stream.query() == Ok(Progress::Done)));
    let scope = StreamScope::enter(weak.upgrade().expect("the owner keeps it"));
    drop(owner);
    assert!(
        weak.upgrade().is_some_and(|stream| *current_stream(&context) == **stream),
        "the scope keeps it"
    );
    let ((), made) = calls(|| drop(scope));
    assert_eq!(made, [Function::cuStreamDestroy_v2], "the weak reference does not");
    assert!(weak.upgrade().is_none());
}

#[test]
fn a_stream_waits_for_every_kind_of_event() {
    let gpu = Gpu::new();
    let held = gpu.stream();
    let new = |flags| Event::new(&gpu.context, flags).expect("an event");
    let owned = new(EventFlags::empty());
    let shared = Arc::new(new(EventFlags::TIMING));
    let others = new(EventFlags::BLOCKING_SYNC);
    // SAFETY: `others` outlives it.
    let borrowed = unsafe { EventRef::from_raw(&gpu.context, others.as_raw(), others.flags()) };
    let pool = EventPool::new(&gpu.context, EventFlags::empty()).expect("a pool");
    let pooled = pool.take().expect("an event");
    let leased = IpcLease::new(Arc::new(new(EventFlags::INTERPROCESS))).expect("a lease");
    let lazy = LazyEvent::new(EventFlags::empty()).expect("an event to be");
    let latch = Latch::hold(&held);
    for event in [&*owned, &shared, &borrowed, &pooled, &leased] {
        event.record(&held).expect("a record");
    }
    lazy.record(&held).expect("a record");
    type Wait<'a> = (&'a str, &'a dyn Fn(&StreamRef) -> cuda_events::Result<()>);
    let waits: [Wait<'_>; 6] = [
        ("owned", &|stream| stream.wait_event(&owned)),
        ("shared", &|stream| stream.wait_event(&shared)),
        ("borrowed", &|stream| stream.wait_event(&borrowed)),
        ("pooled", &|stream| stream.wait_event(&pooled)),
        ("leased", &|stream| stream.wait_event(&leased)),
        ("lazy", &|stream| lazy.wait(stream)),
    ];
    let waiting = waits.map(|(kind, wait)| {
        let stream = gpu.stream();
        wait(&stream).expect("a wait");
        (kind, stream)
    });
    for (kind, stream) in &waiting {
        assert_eq!(stream.query(), Ok(Progress::Pending), "{kind}");
    }
    latch.release();
    for (kind, stream) in &waiting {
        assert_eq!(stream.synchronize(), Ok(()), "{kind}");
    }
}

#[test]
fn each_device_has_its_own_current_stream() {
    with_two_devices(|_, contexts| {
        let is_default = || {
            for context in &contexts {
                assert_eq!(*current_stream(context), StreamRef::default_stream(context));
            }
        };
        is_default();
        let streams = contexts.each_ref().map(|context| Arc::new(stream(context)));
        let first = StreamScope::enter(streams[0].clone());
        assert_eq!(*current_stream(&contexts[1]), StreamRef::default_stream(&contexts[1]));
        let second = StreamScope::enter(streams[1].clone());
        for (ordinal, context) in (0..).zip(&contexts) {
            let current = current_stream(context);
            assert_eq!(*current, **streams[ordinal as usize]);
            assert_eq!(current.device().ordinal(), ordinal);
            // An event can be recorded in a stream of its own device only.
            let event = Event::new(context, EventFlags::empty()).expect("an event");
            assert_eq!(event.record(&current), Ok(()));
            assert_eq!(event.synchronize(), Ok(()));
        }
        std::thread::scope(|scope| {
            scope.spawn(is_default);
        });
        drop(first);
        assert_eq!(*current_stream(&contexts[0]), StreamRef::default_stream(&contexts[0]));
        assert_eq!(*current_stream(&contexts[1]), **streams[1]);
        drop(second);
        is_default();
    });
}

#[test]
fn a_record_on_another_device_names_both() {
    with_two_devices(|_, [first, second]| {
        let event = Event::new(&first, EventFlags::empty()).expect("an event");
        let error = event.record(&stream(&second)).expect_err("it is of another device");
        assert!(
            matches!(error, Error::ContextMismatch { device: 0, other_device: 1, .. }),
            "{error:?}"
        );
        let text = error.to_string();
        assert!(text.contains("device 0") && text.contains("device 1"), "{text}");
        // It was only refused.
        assert_eq!(event.record(&stream(&first)), Ok(()));
        assert_eq!(event.synchronize(), Ok(()));
    });
}
