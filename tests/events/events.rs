//! Events: what a record stands for, waiting, timing, flags, raw handles.

use crate::common;

use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use common::{Gpu, Latch, SlowWork};
use cuda_events::{Error, Event, EventFlags, EventRef, Progress};

#[test]
fn an_event_that_was_never_recorded_stands_for_no_work() {
    let gpu = Gpu::new();
    let stream = gpu.stream();
    let event = Event::new(&gpu.context, EventFlags::empty()).expect("an event");
    assert_eq!(event.query(), Ok(Progress::Done));
    assert_eq!(event.synchronize(), Ok(()));
    assert_eq!(event.synchronize_timeout(Duration::ZERO), Ok(Progress::Done));
    assert_eq!(stream.wait_event(&event), Ok(()));
    assert_eq!(stream.synchronize(), Ok(()));
}

#[test]
fn a_record_stands_for_the_work_before_it() {
    let gpu = Gpu::new();
    let stream = gpu.stream();
    let event = Event::new(&gpu.context, EventFlags::empty()).expect("an event");
    let latch = Latch::hold(&stream);
    event.record(&stream).expect("a record");
    assert_eq!(event.query(), Ok(Progress::Pending));
    assert_eq!(stream.query(), Ok(Progress::Pending));
    latch.release();
    event.synchronize().expect("the work ends");
    assert_eq!(event.query(), Ok(Progress::Done));
}

#[test]
fn a_new_record_leaves_waits_for_the_old_one() {
    let gpu = Gpu::new();
    let (held, idle, waiting) = (gpu.stream(), gpu.stream(), gpu.stream());
    let event = Event::new(&gpu.context, EventFlags::empty()).expect("an event");
    let latch = Latch::hold(&held);
    event.record(&held).expect("the first record");
    waiting.wait_event(&event).expect("a wait for the first record");
    event.record(&idle).expect("the second record");
    event.synchronize().expect("the second record has nothing to wait for");
    assert_eq!(event.query(), Ok(Progress::Done));
    assert_eq!(waiting.query(), Ok(Progress::Pending), "the wait was for the first record");
    latch.release();
    assert_eq!(waiting.synchronize(), Ok(()));
}

#[test]
fn synchronize_blocks_until_the_work_is_done() {
    let gpu = Gpu::new();
    type Wait = fn(&Event) -> Result<(), Error>;
    let waits: [Wait; 2] =
        [|event| event.synchronize(), |event| event.synchronize_timeout(Duration::MAX).map(drop)];
    for flags in [
        EventFlags::empty(),
        EventFlags::BLOCKING_SYNC,
        EventFlags::TIMING,
        EventFlags::INTERPROCESS,
    ] {
        for wait in waits {
            let stream = gpu.stream();
            let event = Event::new(&gpu.context, flags).expect("an event");
            let work = SlowWork::put_into(&stream);
            event.record(&stream).expect("a record");
            assert_eq!(event.query(), Ok(Progress::Pending), "{flags:?}");
            work.let_go();
            assert_eq!((wait(&event), work.is_done()), (Ok(()), true), "{flags:?}");
            assert_eq!(event.query(), Ok(Progress::Done), "{flags:?}");
        }
    }
}

#[test]
fn a_wait_with_a_timeout_ends_with_the_work_or_the_time() {
    let gpu = Gpu::new();
    let stream = gpu.stream();
    let event = Event::new(&gpu.context, EventFlags::empty()).expect("an event");
    let latch = Latch::hold(&stream);
    event.record(&stream).expect("a record");
    let started = Instant::now();
    assert_eq!(event.synchronize_timeout(Duration::from_millis(20)), Ok(Progress::Pending));
    assert!(started.elapsed() >= Duration::from_millis(20), "it gave up too early");
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| event.synchronize_timeout(Duration::from_secs(60)));
        latch.release();
        assert_eq!(waiter.join().expect("no panic"), Ok(Progress::Done));
    });
    assert_eq!(event.synchronize_timeout(Duration::MAX), Ok(Progress::Done));
}

#[test]
fn elapsed_time_is_in_milliseconds_and_has_a_sign() {
    let gpu = Gpu::new();
    let stream = gpu.stream();
    let timed = || Event::new(&gpu.context, EventFlags::TIMING).expect("an event");
    let (start, end) = (timed(), timed());
    let before = Instant::now();
    start.record(&stream).expect("a record");
    let latch = Latch::hold(&stream);
    end.record(&stream).expect("a record");
    // The stream is held between the two, for a time that is measured on this side of it.
    start.synchronize().expect("nothing holds the first");
    let held = Instant::now();
    while held.elapsed() < Duration::from_millis(3) {
        std::hint::spin_loop();
    }
    let at_least = held.elapsed().as_secs_f32() * 1000.0;
    latch.release();
    end.synchronize().expect("the latch is released");
    // Both records are done between the first call and here.
    let at_most = before.elapsed().as_secs_f32() * 1000.0;
    let elapsed = start.elapsed_ms(&end).expect("both are timed, recorded and done");
    assert!(elapsed >= at_least - 0.1, "{elapsed} ms, but the stream was held for {at_least} ms");
    assert!(elapsed <= at_most + 0.1, "{elapsed} ms, but it took {at_most} ms here");
    assert_eq!(end.elapsed_ms(&start), Ok(-elapsed));
    assert_eq!(start.elapsed_ms(&start), Ok(0.0));
}

#[test]
fn flags_are_what_was_asked_for() {
    let gpu = Gpu::new();
    let all = [
        EventFlags::empty(),
        EventFlags::TIMING,
        EventFlags::BLOCKING_SYNC,
        EventFlags::TIMING | EventFlags::BLOCKING_SYNC,
        EventFlags::INTERPROCESS,
        EventFlags::INTERPROCESS | EventFlags::BLOCKING_SYNC,
    ];
    for flags in all {
        let event = Event::new(&gpu.context, flags).expect("an event");
        assert_eq!(event.flags(), flags);
        assert!(!event.is_imported());
        assert_eq!(event.context(), &gpu.context);
        assert_eq!(event.device(), gpu.device);
    }
    assert_eq!(EventFlags::default(), EventFlags::empty());
    for flags in [EventFlags::TIMING | EventFlags::INTERPROCESS, EventFlags::all()] {
        assert_eq!(Event::new(&gpu.context, flags).err(), Some(Error::TimingWithInterprocess));
    }
}

/// On a real driver: the software driver sleeps whatever the flags. That they reach the driver is
/// seen by `tests/costs/hot_path.rs`.
#[test]
fn a_blocking_event_does_not_burn_the_core_that_waits() {
    const HELD: Duration = Duration::from_millis(200);
    fn processor_time() -> Duration {
        let stat = std::fs::read_to_string("/proc/thread-self/schedstat")
            .expect("Linux tells a thread's time");
        let nanoseconds =
            stat.split_whitespace().next().expect("the first field is the time on a processor");
        Duration::from_nanos(nanoseconds.parse().expect("a number"))
    }
    let gpu = Gpu::new();
    let stream = gpu.stream();
    let event = Event::new(&gpu.context, EventFlags::BLOCKING_SYNC).expect("an event");
    let latch = Latch::hold(&stream);
    event.record(&stream).expect("a record");
    let (waits, begun) = channel();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(move || {
            let before = processor_time();
            let started = Instant::now();
            waits.send(()).expect("the test listens");
            event.synchronize().expect("the work ends");
            (processor_time() - before, started.elapsed())
        });
        begun.recv().expect("the thread starts");
        // What is measured is the time on the processor in a wait of this length: the length itself
        // is not waited for.
        let held = Instant::now();
        while held.elapsed() < HELD {
            std::thread::park_timeout(HELD.saturating_sub(held.elapsed()));
        }
        latch.release();
        let (burnt, waited) = waiter.join().expect("no panic");
        assert!(waited >= HELD, "it waited {waited:?} for work that took {HELD:?}");
        assert!(burnt < waited / 4, "a wait of {waited:?} took {burnt:?} of a processor");
    });
}

#[test]
fn record_event_makes_an_event_of_the_streams_context() {
    let gpu = Gpu::new();
    let stream = gpu.stream();
    let latch = Latch::hold(&stream);
    let event = stream.record_event(EventFlags::BLOCKING_SYNC).expect("an event");
    assert_eq!(event.flags(), EventFlags::BLOCKING_SYNC);
    assert_eq!(event.context(), stream.context());
    assert_eq!(event.query(), Ok(Progress::Pending));
    latch.release();
    event.synchronize().expect("the work ends");
}

#[test]
fn handles_go_out_and_come_back() {
    let gpu = Gpu::new();
    let stream = gpu.stream();
    let event = Event::new(&gpu.context, EventFlags::empty()).expect("an event");
    let raw = event.as_raw();
    {
        // SAFETY: `event` outlives it.
        let borrowed = unsafe { EventRef::from_raw(&gpu.context, raw, EventFlags::empty()) };
        borrowed.record(&stream).expect("a record");
        borrowed.synchronize().expect("the work ends");
        assert_eq!(&borrowed, &*event);
        assert_eq!(borrowed.as_raw(), raw);
    }
    assert_eq!(event.query(), Ok(Progress::Done), "dropping what was borrowed destroys nothing");
    assert_eq!(event.into_raw(), raw);
    // SAFETY: the event was given up a line above.
    let event = unsafe { Event::from_raw(&gpu.context, raw, EventFlags::empty()) };
    assert_eq!(event.query(), Ok(Progress::Done));
    assert_eq!(event.close(), Ok(()));
}

#[test]
#[allow(clippy::mutable_key_type, reason = "the hash is that of the handle, which does not change")]
fn equality_and_hash_are_by_handle() {
    use std::collections::HashSet;
    let gpu = Gpu::new();
    let event = || Event::new(&gpu.context, EventFlags::empty()).expect("an event");
    let (one, two) = (event(), event());
    assert_ne!(one, two);
    // SAFETY: `one` outlives it; flags that differ do not matter.
    let same = unsafe { EventRef::from_raw(&gpu.context, one.as_raw(), EventFlags::TIMING) };
    assert_eq!(*one, same);
    let set: HashSet<&EventRef> = [&*one, &*two, &same].into();
    assert_eq!(set.len(), 2);
}

#[test]
fn a_pending_event_can_be_dropped_and_waits_for_it_stay() {
    let gpu = Gpu::new();
    let (held, waiting) = (gpu.stream(), gpu.stream());
    let latch = Latch::hold(&held);
    let event = held.record_event(EventFlags::empty()).expect("an event");
    waiting.wait_event(&event).expect("a wait");
    drop(event);
    assert_eq!(waiting.query(), Ok(Progress::Pending));
    latch.release();
    assert_eq!(waiting.synchronize(), Ok(()));
}

#[test]
fn events_work_from_many_threads() {
    let gpu = Gpu::new();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let stream = gpu.stream();
                for _ in 0..200 {
                    let event = stream.record_event(EventFlags::empty()).expect("an event");
                    event.synchronize().expect("the work ends");
                    assert_eq!(event.query(), Ok(Progress::Done));
                }
            });
        }
    });
}

#[test]
fn progress_is_either_done_or_pending() {
    for (progress, done) in [(Progress::Done, true), (Progress::Pending, false)] {
        assert_eq!((progress.is_done(), progress.is_pending()), (done, !done));
    }
}
