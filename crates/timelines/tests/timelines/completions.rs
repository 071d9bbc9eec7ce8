//! Completions as futures: on tokio, and on an executor of a few lines.

use crate::common;

use std::path::PathBuf;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context as TaskContext, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use common::futures::{Unpark, block_on, pend, wait_until};
use common::own_process;
use common::{Gpu, Latch};
use cuda_events::capture::CaptureMode;
use cuda_events::ext::EventPool;
use cuda_events::sys::CUresult;
use cuda_events::{Context, Device, Event, EventFlags, EventRef, Progress, Stream, StreamOptions};
use cuda_timelines::{Completion, CudaEventExt, CudaStreamExt};

#[test]
fn it_resolves_when_the_work_is_done() {
    let gpu = Gpu::new();
    let stream = gpu.stream();
    let latch = Latch::hold(&stream);
    let mut completion = pin!(stream.completion().expect("a completion"));
    let text = format!("{completion:?}");
    assert!(text.starts_with("Completion { event: "), "{text}");
    let unpark = Unpark::new();
    let waker = Waker::from(Arc::clone(&unpark));
    for _ in 0..3 {
        assert_eq!(completion.as_mut().poll(&mut TaskContext::from_waker(&waker)), Poll::Pending);
    }
    assert_eq!(unpark.woken(), 0, "nothing is done");
    latch.release();
    assert_eq!(block_on(completion.as_mut()), Ok(()));
    assert_eq!(block_on(completion.as_mut()), Ok(()), "polling again gives the same");
}

#[test]
fn what_is_done_resolves_at_once() {
    let gpu = Gpu::new();
    let mut never =
        pin!(Completion::new(Event::new(&gpu.context, EventFlags::empty()).expect("an event")));
    let mut task = TaskContext::from_waker(Waker::noop());
    assert_eq!(never.as_mut().poll(&mut task), Poll::Ready(Ok(())));
    let stream = gpu.stream();
    let done = stream.record_event(EventFlags::empty()).expect("an event");
    done.synchronize().expect("no work");
    assert_eq!(pin!(done.completion()).poll(&mut task), Poll::Ready(Ok(())));
}

#[test]
fn an_event_can_be_shared_pooled_or_given_away() {
    own_process!();
    let gpu = Gpu::new();
    let stream = gpu.stream();
    let pool = EventPool::new(&gpu.context, EventFlags::empty()).expect("a pool");
    let shared = Arc::new(stream.record_event(EventFlags::TIMING).expect("an event"));
    block_on(async {
        Completion::new(Arc::clone(&shared)).await?;
        stream.record_event(EventFlags::BLOCKING_SYNC)?.completion().await?;
        let pooled = pool.take()?;
        pooled.record(&stream)?;
        pooled.completion().await
    })
    .expect("no work fails");
    assert_eq!(shared.query(), Ok(Progress::Done));
    assert_eq!(pool.available(), 1, "awaited, it was given back");
    // A pooled event that is shared goes back when the last one has done with it.
    let pooled = Arc::new(pool.record_event(&stream).expect("an event"));
    let both = [Completion::new(Arc::clone(&pooled)), Completion::new(Arc::clone(&pooled))];
    for completion in both {
        assert_eq!(block_on(completion), Ok(()));
    }
    assert_eq!(pooled.query(), Ok(Progress::Done));
    assert_eq!(pool.available(), 0, "it is still in use");
    drop(pooled);
    assert_eq!(pool.available(), 1);
}

#[test]
fn the_latest_waker_is_the_one_that_is_woken() {
    let gpu = Gpu::new();
    let stream = gpu.stream();
    let latch = Latch::hold(&stream);
    let mut completion = stream.completion().expect("a completion");
    let (first, latest) = (Unpark::new(), Unpark::new());
    pend(&mut completion, &Waker::from(Arc::clone(&first)));
    pend(&mut completion, &Waker::from(Arc::clone(&latest)));
    assert_eq!(Arc::strong_count(&first), 1, "nobody keeps the waker that was replaced");
    latch.release();
    wait_until("nobody is woken", || latest.woken() == 1);
    assert_eq!(block_on(completion), Ok(()));
    assert_eq!((first.woken(), latest.woken()), (0, 1));
}

#[test]
fn ten_thousand_are_pending_and_half_dropped() {
    let gpu = Gpu::new();
    let stream = gpu.stream();
    let latch = Latch::hold(&stream);
    let waker = Waker::from(Unpark::new());
    let mut completions: Vec<_> =
        (0..10_000).map(|_| Box::pin(stream.completion().expect("a completion"))).collect();
    for completion in &mut completions {
        assert_eq!(completion.as_mut().poll(&mut TaskContext::from_waker(&waker)), Poll::Pending);
    }
    if cfg!(target_os = "linux") {
        // A thread gives itself its name, a moment after it was started.
        wait_until("the poller has started", || !pollers().is_empty());
        assert_eq!(pollers().len(), 1, "one thread for all");
    }
    let left = completions.split_off(5_000);
    drop(completions);
    latch.release();
    for completion in left {
        assert_eq!(block_on(completion), Ok(()));
    }
    if cfg!(target_os = "linux") {
        assert_eq!(pollers().len(), 1, "the same one for all that came later");
    }
}

/// The folders in /proc of this process's threads that poll.
fn pollers() -> Vec<PathBuf> {
    let threads = std::fs::read_dir("/proc/self/task").expect("the threads of this process");
    let folders = threads.filter_map(|thread| thread.ok().map(|thread| thread.path()));
    // One that has ended meanwhile has no name.
    folders
        .filter(|folder| {
            std::fs::read_to_string(folder.join("comm")).is_ok_and(|name| name == "cuda-events\n")
        })
        .collect()
}

/// How often the poller has gone to sleep or was put to it, on Linux: a thread that sleeps for good
/// adds nothing.
fn switches() -> Vec<String> {
    if !cfg!(target_os = "linux") {
        return Vec::new();
    }
    let pollers = pollers();
    assert_eq!(pollers.len(), 1, "the poller has started, and never ends");
    let status = std::fs::read_to_string(pollers[0].join("status")).expect("the poller never ends");
    let counts: Vec<_> =
        status.lines().filter(|line| line.contains("ctxt_switches")).map(str::to_owned).collect();
    assert_eq!(counts.len(), 2, "Linux counts both kinds: {status}");
    counts
}

#[test]
fn the_poller_is_still_when_nothing_is_pending() {
    // Nothing of other tests is pending there.
    own_process!();
    let gpu = Gpu::new();
    let queries = Arc::new(AtomicUsize::new(0));
    let (seen, test) = (Arc::clone(&queries), std::thread::current().id());
    let driver = gpu.driver.observe(move |_| {
        if std::thread::current().id() != test {
            seen.fetch_add(1, Ordering::SeqCst);
        }
    });
    let context =
        Device::new(driver.expect("a free slot"), 0).and_then(Context::primary).expect("a context");
    let (held, idle) =
        [(); 2].map(|()| Stream::new(&context, StreamOptions::new()).expect("a stream")).into();
    let asked = || queries.load(Ordering::SeqCst);
    // Once what is under way has ended, it stays quiet.
    let quiet = |what: &str| {
        let state = || (asked(), switches());
        let started = Instant::now();
        let mut before = state();
        loop {
            std::thread::sleep(Duration::from_millis(200));
            let after = state();
            if before == after {
                break;
            }
            assert!(
                started.elapsed() < Duration::from_secs(60),
                "{what}: the poller goes on, {before:?} and {after:?}"
            );
            before = after;
        }
    };
    let latch = Latch::hold(&held);
    let mut pending = Box::pin(held.completion().expect("a completion"));
    let mut dropped = Box::pin(held.completion().expect("a completion"));
    let mut task = TaskContext::from_waker(Waker::noop());
    for completion in [&mut pending, &mut dropped] {
        assert_eq!(completion.as_mut().poll(&mut task), Poll::Pending);
    }
    let before = asked();
    wait_until("the poller asks", || asked() >= before + 10);
    drop((pending, dropped));
    quiet("all were dropped");
    let resolved = held.completion().expect("a completion");
    latch.release();
    assert_eq!(block_on(resolved), Ok(()));
    assert_eq!(block_on(idle.completion().expect("a completion")), Ok(()));
    quiet("all have resolved");
}

#[test]
fn it_works_on_tokio() {
    let gpu = Gpu::new();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().expect("a runtime");
    let streams: Vec<_> = (0..8).map(|_| gpu.stream()).collect();
    runtime.block_on(async {
        let mut tasks = tokio::task::JoinSet::new();
        for stream in &streams {
            for _ in 0..20 {
                tasks.spawn(stream.completion().expect("a completion"));
            }
        }
        let mut resolved = 0;
        while let Some(result) = tasks.join_next().await {
            assert_eq!(result.expect("no panic"), Ok(()));
            resolved += 1;
        }
        assert_eq!(resolved, 160);
    });
    let latch = Latch::hold(&streams[0]);
    runtime.block_on(async {
        let waited = streams[0].completion().expect("a completion");
        let mut waited = Box::pin(waited);
        std::future::poll_fn(|context| {
            assert_eq!(waited.as_mut().poll(context), Poll::Pending, "the stream is held");
            Poll::Ready(())
        })
        .await;
        drop(waited);
        let waited = tokio::spawn(streams[0].completion().expect("a completion"));
        latch.release();
        assert_eq!(waited.await.expect("no panic"), Ok(()));
    });
}

#[test]
fn pending_ones_disturb_no_others_capture() {
    let gpu = Gpu::new();
    let (held, captured) = (gpu.stream(), gpu.stream());
    let latch = Latch::hold(&held);
    let waker = Waker::from(Unpark::new());
    let poll = |completion: &mut Pin<Box<Completion>>| {
        completion.as_mut().poll(&mut TaskContext::from_waker(&waker))
    };
    // One that the poller asks for already, and one that is asked for the first time during the
    // capture.
    let mut early = Box::pin(held.completion().expect("a completion"));
    let late = held.record_event(EventFlags::empty()).expect("an event");
    assert_eq!(poll(&mut early), Poll::Pending);
    let capture = common::begin_capture(&captured, CaptureMode::Global).expect("a capture");
    let mut late = Box::pin(Completion::new(late));
    std::thread::scope(|scope| {
        scope.spawn(|| assert_eq!(poll(&mut late), Poll::Pending));
    });
    latch.release();
    assert_eq!(block_on(early), Ok(()));
    assert_eq!(block_on(late), Ok(()));
    capture.end().expect("the capture was not invalidated");
}

#[test]
fn a_failed_context_resolves_with_its_error() {
    let gpu = Gpu::new();
    let Some(soft) = gpu.soft() else {
        // Only the software driver fails on command; a real one would take all tests of this
        // process with it. What the poller does with an error is seen on any driver by
        // `poller_errors.rs`.
        return common::not_run("this driver's contexts do not fail");
    };
    let stream = gpu.stream();
    let latch = Latch::hold(&stream);
    let mut completion = pin!(stream.completion().expect("a completion"));
    assert_eq!(
        completion.as_mut().poll(&mut TaskContext::from_waker(Waker::noop())),
        Poll::Pending
    );
    soft.fail_contexts(CUresult::CUDA_ERROR_LAUNCH_FAILED);
    let error = block_on(completion).expect_err("the context has failed");
    assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_LAUNCH_FAILED));
    drop(latch);
}

/// The poller asks by the handle: it has nothing of the caller's, whose type could panic, block, or
/// name another event.
#[test]
fn as_ref_is_called_once_by_the_maker() {
    struct Once(Event, Arc<AtomicUsize>);
    impl AsRef<EventRef> for Once {
        fn as_ref(&self) -> &EventRef {
            if self.1.fetch_add(1, Ordering::SeqCst) > 0 {
                std::panic::resume_unwind(Box::new("the type's own fault"));
            }
            &self.0
        }
    }
    let gpu = Gpu::new();
    let stream = gpu.stream();
    let latch = Latch::hold(&stream);
    let asked = Arc::new(AtomicUsize::new(0));
    let event = stream.record_event(EventFlags::empty()).expect("an event");
    let mut completion = Completion::new(Once(event, Arc::clone(&asked)));
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    let unpark = Unpark::new();
    pend(&mut completion, &Waker::from(Arc::clone(&unpark)));
    latch.release();
    wait_until("nobody is woken", || unpark.woken() == 1);
    assert_eq!(block_on(completion), Ok(()));
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

/// Only the handle goes to another thread.
#[test]
fn what_holds_the_event_may_stay_on_its_thread() {
    struct Local(Rc<Event>);
    impl AsRef<EventRef> for Local {
        fn as_ref(&self) -> &EventRef {
            &self.0
        }
    }
    let gpu = Gpu::new();
    let stream = gpu.stream();
    let latch = Latch::hold(&stream);
    let event = Rc::new(stream.record_event(EventFlags::empty()).expect("an event"));
    let mut completion = Completion::new(Local(Rc::clone(&event)));
    pend(&mut completion, Waker::noop());
    latch.release();
    assert_eq!(block_on(completion), Ok(()));
    assert_eq!(event.query(), Ok(Progress::Done));
}

#[test]
fn a_waker_that_panics_does_not_stop_the_others() {
    static WOKEN: AtomicBool = AtomicBool::new(false);
    struct Panics;
    impl Wake for Panics {
        fn wake(self: Arc<Self>) {
            WOKEN.store(true, Ordering::SeqCst);
            std::panic::resume_unwind(Box::new("the waker's own fault"));
        }
    }
    let gpu = Gpu::new();
    let stream = gpu.stream();
    let latch = Latch::hold(&stream);
    let mut bad = stream.completion().expect("a completion");
    pend(&mut bad, &Waker::from(Arc::new(Panics)));
    latch.release();
    wait_until("nobody is woken", || WOKEN.load(Ordering::SeqCst));
    // One that the poller is given after the panic.
    let latch = Latch::hold(&stream);
    let mut good = stream.completion().expect("a completion");
    let unpark = Unpark::new();
    pend(&mut good, &Waker::from(Arc::clone(&unpark)));
    latch.release();
    wait_until("the poller is gone", || unpark.woken() == 1);
    assert_eq!(block_on(good), Ok(()));
    assert_eq!(block_on(bad), Ok(()));
}

/// Without anything that would make it likely: `poller_errors.rs` does. Of an older poller, which
/// could ask once more after the drop, one capture in some thousands was spoiled.
#[test]
fn captures_beside_dropped_futures_are_not_spoiled() {
    let gpu = Gpu::new();
    let (held, captured) = (gpu.stream(), gpu.stream());
    let latch = Latch::hold(&held);
    let event = Arc::new(Event::new(&gpu.context, EventFlags::empty()).expect("an event"));
    for round in 0..3_000 {
        event.record(&held).expect("a record outside of captures");
        let mut completion = Completion::new(Arc::clone(&event));
        pend(&mut completion, Waker::noop());
        // Long enough, in some of the rounds, for the poller to be at it.
        for _ in 0..round % 64 {
            std::thread::yield_now();
        }
        drop(completion);
        let capture =
            common::begin_capture(&captured, CaptureMode::ThreadLocal).expect("a capture");
        event.record(&captured).expect("a record in the capture");
        let ended = capture.end();
        assert!(ended.is_ok(), "round {round}: the capture was spoiled: {ended:?}");
    }
    latch.release();
}
