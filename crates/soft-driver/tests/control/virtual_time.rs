//! The waits of `cuda-events` in virtual time: with a limit, as futures, and loops of questions.

use std::sync::mpsc::channel;
use std::task::{Context as Task, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use cuda_events::sys::CUresult;
use cuda_events::{
    Context, Device, Driver, Event, EventFlags, HostClock, Progress, Stream, StreamOptions,
};
use cuda_events_test_support::futures::block_on;
use cuda_soft_driver::{Scheduler, SoftDriver, Time};
use cuda_timelines::{CudaEventExt, CudaStreamExt, Timeline};

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

/// A driver in virtual time, its context and its clock.
struct Machine {
    soft: SoftDriver,
    clock: &'static dyn HostClock,
    context: Context,
}

impl Machine {
    fn new(scheduler: Scheduler) -> Self {
        let soft = SoftDriver::builder().time(Time::Virtual).scheduler(scheduler).build();
        let driver: Driver = soft.driver();
        let context = Device::new(driver, 0).and_then(Context::primary).unwrap();
        Self { soft, clock: driver.clock().expect("time is virtual"), context }
    }

    fn stream(&self) -> Stream {
        Stream::new(&self.context, StreamOptions::new()).unwrap()
    }

    /// A stream that is busy for so long, with an event behind that.
    fn busy(&self, time: Duration) -> (Stream, Event) {
        let stream = self.stream();
        self.soft.busy(&stream, time);
        let event = stream.record_event(EventFlags::empty()).unwrap();
        (stream, event)
    }

    /// The virtual time that `f` takes.
    fn takes<T>(&self, f: impl FnOnce() -> T) -> (T, Duration) {
        let before = self.clock.now();
        let result = f();
        (result, self.clock.now() - before)
    }
}

fn all() -> impl Iterator<Item = Machine> {
    [Scheduler::Prompt, Scheduler::Seeded(3)].into_iter().map(Machine::new)
}

#[test]
fn the_machines_clock_is_used_in_real_time() {
    assert!(SoftDriver::new().driver().clock().is_none());
}

/// A wait ends with the work, or at its limit: to the nanosecond, whatever the machine does.
#[test]
fn waits_with_a_limit_take_part() {
    for machine in all() {
        let (stream, event) = machine.busy(SECOND);
        let limits = [SECOND / 4, SECOND / 4];
        for limit in limits {
            let waited = machine.takes(|| event.synchronize_timeout(limit));
            assert_eq!(waited, (Ok(Progress::Pending), limit));
        }
        let waited = machine.takes(|| stream.synchronize_timeout(SECOND / 4));
        assert_eq!(waited, (Ok(Progress::Pending), SECOND / 4));
        let waited = machine.takes(|| event.synchronize_timeout(HOUR));
        assert_eq!(waited, (Ok(Progress::Done), SECOND / 4));

        let timeline = Timeline::new(machine.stream()).unwrap();
        machine.soft.busy(timeline.stream(), SECOND);
        let point = timeline.signal().unwrap();
        let waits: [&dyn Fn() -> cuda_timelines::Result<Progress>; 2] =
            [&|| point.wait_timeout(SECOND / 4), &|| point.spin_timeout(SECOND / 4)];
        for wait in waits {
            assert_eq!(machine.takes(wait), (Ok(Progress::Pending), SECOND / 4));
        }
        assert_eq!(machine.takes(|| point.wait()), (Ok(()), SECOND / 2));
    }
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "threads that sleep are only seen on Linux")]
fn futures_take_part() {
    for machine in all() {
        let (_stream, event) = machine.busy(SECOND);
        let (_other, later) = machine.busy(2 * SECOND);
        let timeline = Timeline::new(machine.stream()).unwrap();
        machine.soft.busy(timeline.stream(), 3 * SECOND);
        let point = timeline.signal().unwrap();
        let begun = machine.clock.now();
        let mut seen = Vec::new();
        block_on(async {
            event.completion().await.unwrap();
            seen.push(machine.clock.now() - begun);
            later.completion().await.unwrap();
            seen.push(machine.clock.now() - begun);
            point.await.unwrap();
            seen.push(machine.clock.now() - begun);
        });
        assert_eq!(seen, [SECOND, 2 * SECOND, 3 * SECOND]);
    }
}

/// No wait at all: the program asks again and again, with a call of the driver or without.
#[test]
fn loops_of_questions_take_part() {
    for machine in all() {
        let (stream, event) = machine.busy(SECOND);
        let timeline = Timeline::new(machine.stream()).unwrap();
        machine.soft.busy(timeline.stream(), SECOND);
        let first = timeline.signal().unwrap();
        machine.soft.busy(timeline.stream(), SECOND);
        let second = timeline.signal().unwrap();
        machine.soft.busy(timeline.stream(), SECOND);
        let third = timeline.signal().unwrap();
        machine.soft.busy(&stream, 4 * SECOND);
        let begun = machine.clock.now();
        let now = || machine.clock.now() - begun;
        for _ in 0..8 {
            for _ in 0..4 {
                assert!(event.query().unwrap().is_pending());
            }
            drop(machine.stream());
        }
        assert_eq!(now(), Duration::ZERO, "a question is no wait, nor are more with other calls");
        while event.query().unwrap().is_pending() {}
        assert_eq!(now(), SECOND);
        assert!(first.is_done());
        while !second.is_done() {}
        assert_eq!(now(), 2 * SECOND);
        while third.query().unwrap().is_pending() {}
        assert_eq!(now(), 3 * SECOND);
        while stream.synchronize_timeout(Duration::ZERO).unwrap().is_pending() {}
        assert_eq!(now(), 5 * SECOND);
        // Of several, in turn: each is seen when it is done, and not later.
        let pending = [3, 1, 2].map(|seconds| machine.busy(seconds * SECOND));
        let mut left: Vec<_> = pending.iter().map(|(_, event)| event).collect();
        let begun = machine.clock.now();
        let mut seen = Vec::new();
        while !left.is_empty() {
            left.retain(|event| {
                let done = event.query().unwrap().is_done();
                if done {
                    seen.push(machine.clock.now() - begun);
                }
                !done
            });
        }
        assert_eq!(seen, [SECOND, 2 * SECOND, 3 * SECOND]);
    }
}

/// Time waits for a thread that computes before it gives the driver work.
#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "threads that sleep are only seen on Linux")]
fn time_waits_for_threads_that_run() {
    let machine = Machine::new(Scheduler::Prompt);
    for _ in 0..5 {
        let (_first, short) = machine.busy(SECOND);
        let (_second, long) = machine.busy(2 * SECOND);
        let begun = machine.clock.now();
        let (machine, short, long) = (&machine, &short, &long);
        thread::scope(|scope| {
            let waits = scope.spawn(move || {
                long.synchronize().unwrap();
                machine.clock.now() - begun
            });
            let works = scope.spawn(move || {
                assert!(short.synchronize_timeout(HOUR).unwrap().is_done());
                // Some milliseconds of work, by its own time.
                let _ = (0..500_000_u64)
                    .fold(1, |sum: u64, at| std::hint::black_box(sum.wrapping_mul(31) + at % 7));
                let (_stream, event) = machine.busy(SECOND / 4);
                event.synchronize().unwrap();
                machine.clock.now() - begun
            });
            assert_eq!(works.join().unwrap(), SECOND + SECOND / 4);
            assert_eq!(waits.join().unwrap(), 2 * SECOND);
        });
    }
}

/// What one run of the scheduler does: who finished at what time.
type Run = Vec<(usize, Duration)>;

/// An hour of jobs on four streams, by a scheduler that waits for whatever is done first.
fn hour(seed: u64) -> Run {
    let machine = Machine::new(Scheduler::Seeded(seed));
    let mut random = seed;
    let mut draw = move || {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        Duration::from_millis(1_000 + (random >> 33) % 240_000)
    };
    let streams = [(); 4].map(|()| machine.stream());
    let begun = machine.clock.now();
    let mut run = Run::new();
    let mut submit = |at: usize| {
        machine.soft.busy(&streams[at], draw());
        Box::pin(streams[at].completion().unwrap())
    };
    let mut jobs: Vec<_> = (0..4).map(&mut submit).collect();
    block_on(std::future::poll_fn(|task| {
        loop {
            let mut done = None;
            for (at, job) in jobs.iter_mut().enumerate() {
                if let Poll::Ready(result) = job.as_mut().poll(task) {
                    result.unwrap();
                    done = Some(at);
                    break;
                }
            }
            let Some(at) = done else { return Poll::Pending };
            let now = machine.clock.now() - begun;
            run.push((at, now));
            if now >= HOUR {
                return Poll::Ready(());
            }
            jobs[at] = submit(at);
        }
    }));
    run
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "threads that sleep are only seen on Linux")]
fn an_hour_is_the_same_in_each_run() {
    let first = hour(7);
    assert!(first.len() > 80 && first.last().unwrap().1 >= HOUR, "{}", first.len());
    assert_eq!(hour(7), first);
    assert_ne!(hour(8), first);
}

/// Threads that each wait in their own way, and one that is told by another.
#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "threads that sleep are only seen on Linux")]
fn threads_have_the_same_times_in_each_run() {
    let run = || {
        let machine = Machine::new(Scheduler::Prompt);
        let machine = &machine;
        let begun = machine.clock.now();
        thread::scope(|scope| {
            let (sender, receiver) = channel();
            let workers = [
                scope.spawn(move || {
                    let mut times = Vec::new();
                    for at in 1..12_u32 {
                        let (_stream, event) = machine.busy(at * SECOND / 7);
                        event.synchronize().unwrap();
                        times.push(machine.clock.now() - begun);
                        sender.send(at).unwrap();
                    }
                    times
                }),
                scope.spawn(move || {
                    let mut times = Vec::new();
                    while let Ok(at) = receiver.recv() {
                        let (_stream, event) = machine.busy(at * SECOND / 11);
                        while event.synchronize_timeout(SECOND / 13).unwrap().is_pending() {}
                        times.push(machine.clock.now() - begun);
                    }
                    times
                }),
                scope.spawn(move || {
                    let mut times = Vec::new();
                    for at in 1..12_u32 {
                        let (_stream, event) = machine.busy(at * SECOND / 5);
                        block_on(event.completion()).unwrap();
                        times.push(machine.clock.now() - begun);
                    }
                    times
                }),
            ];
            workers.map(|worker| worker.join().unwrap())
        })
    };
    assert_eq!(run(), run());
}

/// A context that has failed writes nothing, and virtual time does not end that wait: each form of a
/// wait asks the driver, at its limit and without one.
#[test]
fn waits_in_a_failed_context_end() {
    for machine in all() {
        let timeline = Timeline::new(machine.stream()).unwrap();
        machine.soft.busy(timeline.stream(), SECOND);
        let point = timeline.signal().unwrap();
        machine.soft.fail_contexts(CUresult::CUDA_ERROR_LAUNCH_FAILED);
        let waits: [&dyn Fn() -> cuda_timelines::Result<Progress>; 5] = [
            &|| point.wait_timeout(SECOND / 4),
            &|| point.spin_timeout(SECOND / 4),
            &|| point.wait_timeout(HOUR),
            &|| point.wait().map(|()| Progress::Done),
            &|| block_on(async { point.await.map(|()| Progress::Done) }),
        ];
        for (at, wait) in waits.into_iter().enumerate() {
            let error = wait().expect_err("the context has failed");
            assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_LAUNCH_FAILED), "{at}");
        }
    }
}

/// Nobody waits for ever for a driver that is gone.
#[test]
fn time_is_real_after_the_end() {
    let Machine { soft, clock, context } = Machine::new(Scheduler::Prompt);
    drop((context, soft));
    let (end, begun) = (clock.now(), Instant::now());
    while clock.now() < end + Duration::from_millis(2) {
        clock.wait(end + HOUR);
        assert!(begun.elapsed() < Duration::from_secs(120), "time stands still");
    }
}

/// A dropped future is waited for no longer: time stands still where nothing waits.
#[test]
fn time_stands_where_nothing_waits() {
    let machine = Machine::new(Scheduler::Prompt);
    let (_stream, event) = machine.busy(SECOND);
    let (_other, _later) = machine.busy(HOUR);
    block_on(event.completion()).unwrap();
    let mut given_up = Box::pin(machine.stream().completion().unwrap());
    let _ = given_up.as_mut().poll(&mut Task::from_waker(Waker::noop()));
    drop(given_up);
    let now = machine.clock.now();
    // The thread that lets time pass for tasks would have had its chance.
    thread::sleep(Duration::from_millis(5));
    assert_eq!(machine.clock.now(), now);
}
