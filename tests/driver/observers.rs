//! Observers that come and go, and what a call's description says.

use crate::common;

use std::collections::HashMap;
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Barrier, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use common::counting::{counting, fail_next};
use common::{Gpu, begin_capture, check, needs};
use cuda_events::capture::CaptureMode;
use cuda_events::graph::Graph;
use cuda_events::sys::{CUresult, Function};
use cuda_events::{Context, Device, Driver, Event, EventFlags, Stream, StreamOptions};
use cuda_soft_driver::SoftDriver;

/// Long enough for whatever is not stuck.
const LONG: Duration = Duration::from_secs(60);

/// One test at a time: each of a few software drivers has a place for observers, and not all places
/// are needed.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What an observer gets: the call, the handle that it created, its text.
type SeenCall = (Function, Vec<u64>, Option<u64>, String);

fn reporting(driver: Driver) -> (Driver, Receiver<SeenCall>) {
    let (sender, seen_calls) = channel();
    let sender = Mutex::new(sender);
    let observed = driver.observe(move |call| {
        let sender = sender.lock().expect("no panic");
        let _ =
            sender.send((call.function, call.arguments.to_vec(), call.created, call.to_string()));
    });
    (observed.expect("a place is free"), seen_calls)
}

/// The functions of the calls seen so far.
fn functions(seen_calls: &Receiver<SeenCall>) -> Vec<Function> {
    seen_calls.try_iter().map(|(function, ..)| function).collect()
}

fn context(driver: Driver) -> Context {
    Device::new(driver, 0).and_then(Context::primary).expect("the primary context")
}

#[test]
fn a_place_can_be_had_again_and_again() {
    let _alone = alone();
    // More often than there are places.
    for _ in 0..4 {
        let gpu = Gpu::new();
        for round in 0..20 {
            let kept = Arc::new(());
            let held = Arc::clone(&kept);
            let calls = Arc::new(AtomicUsize::new(0));
            let counter = Arc::clone(&calls);
            let observed = gpu.driver.observe(move |_| {
                let _ = &held;
                counter.fetch_add(1, Ordering::Relaxed);
            });
            let observed = observed.unwrap_or_else(|error| panic!("round {round}: {error}"));
            Device::count(observed).expect("a count");
            let seen_calls = calls.load(Ordering::Relaxed);
            assert!(seen_calls >= 1);
            assert_eq!(Arc::strong_count(&kept), 2);
            // A driver that is not observed has no observer to lose.
            assert!(!gpu.driver.stop_observing());
            assert!(observed.stop_observing());
            assert!(!observed.stop_observing());
            // The observer is gone, with what it held, and gets no call.
            assert_eq!(Arc::strong_count(&kept), 1);
            Device::count(observed).expect("a count");
            assert_eq!(calls.load(Ordering::Relaxed), seen_calls);
        }
    }
}

#[test]
fn what_was_made_through_it_lives_on() {
    let _alone = alone();
    let gpu = Gpu::new();
    let (observed, seen_calls) = reporting(gpu.driver);
    let context = context(observed);
    let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
    let event = stream.record_event(EventFlags::TIMING).expect("an event");
    assert!(observed.stop_observing());
    assert!(functions(&seen_calls).len() > 4);
    assert_eq!(seen_calls.try_recv(), Err(TryRecvError::Disconnected), "the observer is gone");

    // To nobody.
    event.record(&stream).and_then(|()| event.synchronize()).expect("the driver is there");
    let second = Event::new(&context, EventFlags::TIMING).expect("an event");
    second.record(&stream).and_then(|()| second.synchronize()).expect("the driver is there");
    assert!(event.elapsed_ms(&second).expect("both are done") >= 0.0);

    // To the next observer of this driver, whose driver is the same: objects of both are at home in
    // one table.
    let (again, seen_calls) = reporting(gpu.driver);
    assert_eq!(again, observed);
    second.record(&stream).expect("a record");
    assert_eq!(functions(&seen_calls), [Function::cuEventRecord]);
    drop((event, second, stream));
    assert_eq!(
        functions(&seen_calls),
        [Function::cuEventDestroy_v2, Function::cuEventDestroy_v2, Function::cuStreamDestroy_v2]
    );
    assert!(again.stop_observing());
    drop(context);
    assert_eq!(seen_calls.try_iter().count(), 0);
}

#[test]
fn observers_get_created_handles() {
    let _alone = alone();
    let gpu = Gpu::new();
    // In front of a driver that can be made to fail.
    let counted = counting(gpu.driver);
    let (observed, seen_calls) = reporting(counted);
    let context = context(observed);
    let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
    let urgent =
        Stream::new(&context, StreamOptions::new().priority_clamped(-100)).expect("a stream");
    let event = Event::new(&context, EventFlags::BLOCKING_SYNC).expect("an event");
    let capture = begin_capture(&stream, CaptureMode::Relaxed).expect("a capture");
    let captured = capture.end().expect("an empty graph");
    let mut handles = vec![
        (Function::cuDevicePrimaryCtxRetain, context.as_raw() as u64),
        (Function::cuStreamCreate, stream.as_raw() as u64),
        (Function::cuStreamCreateWithPriority, urgent.as_raw() as u64),
        (Function::cuEventCreate, event.as_raw() as u64),
        (Function::cuStreamEndCapture, captured.as_raw() as u64),
    ];
    if needs(observed, Function::cuGraphAddEventRecordNode) {
        let mut graph = Graph::new(&context).expect("a graph");
        let event = Arc::new(Event::new(&context, EventFlags::empty()).expect("an event"));
        let node = graph.add_event_record_node(&[], &event).expect("a node");
        let exec = graph.instantiate().expect("an executable graph");
        handles.push((Function::cuEventCreate, event.as_raw() as u64));
        handles.push((Function::cuGraphCreate, graph.as_raw() as u64));
        handles.push((Function::cuGraphAddEventRecordNode, node.as_raw() as u64));
        let instantiate = match observed.symbols().cuGraphInstantiateWithFlags {
            Some(_) => Function::cuGraphInstantiateWithFlags,
            None => Function::cuGraphInstantiate_v2,
        };
        handles.push((instantiate, exec.as_raw() as u64));
    }
    let mut seen: HashMap<(Function, u64), String> = HashMap::new();
    for (function, arguments, created, text) in seen_calls.try_iter() {
        assert_eq!(created.is_some(), function.entry_point().creates, "{text}");
        match created {
            Some(handle) => {
                assert!(text.ends_with(&format!(", created {handle:#x}")), "{text}");
                assert!(
                    !arguments.contains(&handle),
                    "{text}: the place is reported, not the handle"
                );
                assert!(seen.insert((function, handle), text).is_none());
            }
            None => assert!(!text.contains("created"), "{text}"),
        }
    }
    handles.sort_by_key(|(function, handle)| (function.name(), *handle));
    let mut created: Vec<_> = seen.into_keys().collect();
    created.sort_by_key(|(function, handle)| (function.name(), *handle));
    assert_eq!(created, handles);

    // A call that fails creates nothing, whatever is in the place.
    fail_next(Function::cuEventCreate, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
    assert!(Event::new(&context, EventFlags::empty()).is_err());
    let refused: Vec<_> = seen_calls
        .try_iter()
        .filter(|(function, ..)| *function == Function::cuEventCreate)
        .collect();
    assert!(
        matches!(&refused[..],
            [(_, _, None, text)] if text.contains("CUDA_ERROR_OUT_OF_MEMORY (2)")),
        "{refused:?}"
    );
    drop((event, urgent, stream, captured, context));
    assert!(observed.stop_observing());
}

#[test]
fn observers_get_arguments_as_numbers() {
    let _alone = alone();
    let gpu = Gpu::new();
    let (observed, seen_calls) = reporting(gpu.driver);
    // No device has such a number, so that nothing comes of it.
    for (ordinal, told_as, text) in [
        (4095, 4095, "4095"),
        (4096, 4096, "0x1000"),
        (-1, 0xffff_ffff, "0xffffffff"),
        (i32::MIN, 0x8000_0000, "0x80000000"),
    ] {
        let mut device = 0;
        let place = &raw mut device;
        // SAFETY: a place for the one integer.
        let code = unsafe { (observed.symbols().cuDeviceGet)(place, ordinal) };
        assert_eq!(code, CUresult::CUDA_ERROR_INVALID_DEVICE);
        let (function, arguments, created, shown) =
            seen_calls.try_recv().expect("the call is reported");
        assert_eq!((function, created), (Function::cuDeviceGet, None));
        assert_eq!(arguments, [place.addr() as u64, told_as]);
        let begins = format!(
            "cuDeviceGet({:#x}, {text}) = CUDA_ERROR_INVALID_DEVICE (101) in ",
            place.addr()
        );
        assert!(shown.starts_with(&begins), "{shown}");
    }
    // Of an interprocess handle the first eight bytes, in their order.
    let mut event = std::ptr::null_mut();
    let mut handle = cuda_events::sys::CUipcEventHandle { reserved: [0; 64] };
    handle.reserved[..9].copy_from_slice(&[1, 2, 3, 4, 5, 6, 7, 8, 9]);
    let context = context(observed);
    let current = context.make_current().expect("current");
    seen_calls.try_iter().for_each(drop);
    // SAFETY: a place for the handle; these bytes are nobody's event.
    let code = unsafe { (observed.symbols().cuIpcOpenEventHandle)(&mut event, handle) };
    let (_, arguments, created, _) = seen_calls.try_recv().expect("the call is reported");
    assert_eq!(arguments[1], 0x0807_0605_0403_0201);
    // A driver does not always find that out.
    assert_eq!(created, (code == CUresult::CUDA_SUCCESS).then_some(event as u64));
    if code == CUresult::CUDA_SUCCESS {
        // SAFETY: it was opened above, and nothing uses it.
        check(Function::cuEventDestroy_v2, unsafe {
            (observed.symbols().cuEventDestroy_v2)(event)
        });
    }
    drop(current);
    drop(context);
    assert!(observed.stop_observing());
}

/// Looked at by the test and not by the observer, whose panics are contained.
#[test]
fn observers_get_the_begin_and_duration_of_a_call() {
    const LEAST: Duration = Duration::from_millis(2);
    let _alone = alone();
    let gpu = Gpu::new();
    // A driver whose calls take this long at the least: to an observer of it, another one is
    // a part of the call.
    let slow = gpu.driver.observe(|_| {
        let began = Instant::now();
        while began.elapsed() < LEAST {
            std::hint::spin_loop();
        }
    });
    let slow = slow.expect("a place is free");
    let (sender, seen_calls) = channel();
    let sender = Mutex::new(sender);
    let observed = slow.observe(move |call| {
        let seen_calls = (call.started, call.elapsed, Instant::now(), call.to_string());
        sender.lock().expect("no panic").send(seen_calls).expect("the test listens");
    });
    let observed = observed.expect("a place is free");
    for _ in 0..3 {
        let before = Instant::now();
        let mut version = 0;
        // SAFETY: a place for the one integer.
        let code = unsafe { (observed.symbols().cuDriverGetVersion)(&mut version) };
        check(Function::cuDriverGetVersion, code);
        let (started, elapsed, at, text) = seen_calls.try_recv().expect("the call is reported");
        assert!(before <= started && started + elapsed <= at, "{text}");
        assert!(elapsed >= LEAST, "{text}");
        assert!(text.ends_with(&format!(" = CUDA_SUCCESS (0) in {elapsed:?}")), "{text}");
    }
    assert!(observed.stop_observing() && slow.stop_observing());
}

#[test]
fn an_observer_can_be_removed_while_it_runs() {
    let _alone = alone();
    let gpu = Gpu::new();
    let (inside, go_on) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
    let kept = Arc::new(());
    let observed = gpu.driver.observe({
        let (inside, go_on, held) = (Arc::clone(&inside), Arc::clone(&go_on), Arc::clone(&kept));
        move |_| {
            let _ = &held;
            inside.wait();
            go_on.wait();
        }
    });
    let observed = observed.expect("a place is free");
    let reporting = std::thread::spawn(move || {
        let mut version = 0;
        // SAFETY: a place for the one integer.
        let code = unsafe { (observed.symbols().cuDriverGetVersion)(&mut version) };
        check(Function::cuDriverGetVersion, code);
    });
    inside.wait();
    // It does not wait for that thread, which still has the observer.
    assert!(observed.stop_observing());
    assert_eq!(Arc::strong_count(&kept), 2);
    // Its place is free meanwhile.
    let next = gpu.driver.observe(|_| {}).expect("a place is free");
    go_on.wait();
    reporting.join().expect("the call went well");
    assert_eq!(Arc::strong_count(&kept), 1);
    assert!(next.stop_observing());

    // By itself, from the first call on.
    let itself: Arc<Mutex<Option<Driver>>> = Arc::default();
    let calls = Arc::new(AtomicUsize::new(0));
    let observed = gpu.driver.observe({
        let (itself, calls) = (Arc::clone(&itself), Arc::clone(&calls));
        move |_| {
            calls.fetch_add(1, Ordering::Relaxed);
            let driver: Option<Driver> = *itself.lock().expect("no panic");
            assert!(driver.is_some_and(Driver::stop_observing));
        }
    });
    let observed = observed.expect("a place is free");
    *itself.lock().expect("no panic") = Some(observed);
    for _ in 0..3 {
        Device::count(observed).expect("a count");
    }
    assert_eq!((calls.load(Ordering::Relaxed), Arc::strong_count(&calls)), (1, 1));
}

/// What an observer owns may use its place, whose lock it must not be dropped under.
#[test]
fn an_observer_is_dropped_with_nothing_locked() {
    struct Uses(Driver, Sender<Driver>);
    impl Drop for Uses {
        fn drop(&mut self) {
            assert!(!self.0.stop_observing(), "it is removed already");
            let next = self.0.observe(|_| {}).expect("its place is free");
            let _ = self.1.send(next);
        }
    }
    let _alone = alone();
    let gpu = Gpu::new();
    let observed = gpu.driver.observe(|_| {}).expect("a place is free");
    assert!(observed.stop_observing());
    let (sender, dropped) = channel();
    let uses = Mutex::new(Uses(observed, sender));
    let again = gpu.driver.observe(move |_| drop(uses.lock())).expect("a place is free");
    assert_eq!(again, observed);
    // In a thread, as it may wait forever.
    let removing = std::thread::spawn(move || again.stop_observing());
    let Ok(next) = dropped.recv_timeout(LONG) else {
        // The lock is never released, and all other tests would wait for it. Not eprintln, which
        // the test harness captures.
        let _ = writeln!(std::io::stderr(), "the observer's drop waits for the lock of its place");
        std::process::abort();
    };
    assert!(removing.join().expect("no panic"), "it was removed");
    assert!(next.stop_observing());
}

/// A place keeps what it was built of. Another driver that gets it is called all the same.
#[test]
fn a_place_another_driver_had_calls_its_own() {
    let _alone = alone();
    let drivers = [1, 2, 3].map(|count| (count, SoftDriver::builder().devices(count).build()));
    for _ in 0..20 {
        for (count, soft) in &drivers {
            let (observed, seen_calls) = reporting(soft.driver());
            assert_eq!(Device::count(observed), Ok(*count));
            assert_eq!(functions(&seen_calls).last(), Some(&Function::cuDeviceGetCount));
            assert!(observed.stop_observing());
        }
    }
}
