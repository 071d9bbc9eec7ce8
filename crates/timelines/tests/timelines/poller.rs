//! The poller behind completions, from the driver's side: what it calls, when, and what it never
//! does.

use crate::common::{self, hooked};

use std::cell::RefCell;
use std::fmt::Write;
use std::pin::Pin;
use std::ptr::without_provenance;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context as TaskContext, Poll, RawWaker, RawWakerVTable, Wake, Waker};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use common::Latch;
use common::futures::{PATIENCE, block_on, pend, wait_until};
use common::own_process;
use cuda_events::capture::CaptureMode;
use cuda_events::ext::EventPool;
use cuda_events::sys::{CUresult, Function};
use cuda_events::{Context, Event, EventFlags};
use cuda_timelines::Completion;
use hooked::{Calls, Hooked, Made, handle, hook_in, on_the_poller, unhook};

/// A waker's inside, which notes by which thread it was dropped.
struct Task {
    /// Woken tasks are put here, as into the queue of an executor.
    woken: Arc<Mutex<Vec<Arc<Task>>>>,
    dropped_by: Arc<Mutex<Vec<ThreadId>>>,
}

impl Task {
    fn new() -> Arc<Self> {
        Arc::new(Self { woken: Arc::default(), dropped_by: Arc::default() })
    }
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        let woken = Arc::clone(&self.woken);
        woken.lock().expect("no panic").push(self);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        panic!("the poller would be left with a share, and drop it");
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.dropped_by.lock().expect("no panic").push(thread::current().id());
    }
}

/// The poller is held in its query of an event; meanwhile the future is dropped, and the event
/// recorded in a capture. The drop must not return before the query has: a query of an event of a
/// capture invalidates it.
#[test]
fn no_query_comes_after_the_drop() {
    own_process!();
    let gpu = Hooked::new();
    let calls = Calls::new();
    let (held, captured) = (gpu.gpu.stream(), gpu.gpu.stream());
    let latch = Latch::hold(&held);
    let event = Arc::new(gpu.record(&held));
    for round in 0..20 {
        event.record(&held).expect("a record outside of captures");
        let mut completion = Completion::new(Arc::clone(&event));
        pend(&mut completion, Waker::noop());
        // The query ends by itself when the drop waits for it, and otherwise when the event is in
        // the capture.
        calls.hold(handle(&event), Duration::from_millis(20));
        drop(completion);
        let asked = calls.asked(handle(&event));
        let capture =
            common::begin_capture(&captured, CaptureMode::ThreadLocal).expect("a capture");
        event.record(&captured).expect("a record in the capture");
        calls.release();
        calls.wait_outside();
        let ended = capture.end();
        assert!(ended.is_ok(), "round {round}: the capture was spoiled: {ended:?}");
        assert_eq!(
            calls.asked(handle(&event)),
            asked,
            "round {round}: it was asked for after the drop"
        );
    }
    latch.release();
}

#[test]
fn a_drop_waits_for_no_other_query() {
    own_process!();
    let gpu = Hooked::new();
    let calls = Calls::new();
    let held = gpu.gpu.stream();
    let latch = Latch::hold(&held);
    let (other, event) = (gpu.record(&held), Arc::new(gpu.record(&held)));
    let (its, others) = (handle(&event), handle(&other));
    let mut waiting = Completion::new(other);
    let mut dropped = Completion::new(Arc::clone(&event));
    pend(&mut waiting, Waker::noop());
    pend(&mut dropped, Waker::noop());
    wait_until("the poller asks for it", || calls.asked(its) > 0);
    calls.hold(others, PATIENCE);
    let (done, is_done) = channel();
    thread::spawn(move || {
        drop(dropped);
        done.send(()).expect("the test waits");
    });
    let returned = is_done.recv_timeout(PATIENCE / 2);
    let (asked, others_asked) = (calls.asked(its), calls.asked(others));
    calls.release();
    assert_eq!(returned, Ok(()), "the drop waited for another event's query");
    wait_until("the poller goes on", || calls.asked(others) > others_asked + 50);
    assert_eq!(calls.asked(its), asked);
    latch.release();
    assert_eq!(block_on(&mut waiting), Ok(()));
}

/// However often a task polls, its thread asks once, and the poller has the future once.
#[test]
fn only_the_first_poll_asks_the_driver() {
    own_process!();
    let gpu = Hooked::new();
    let calls = Calls::new();
    let held = gpu.gpu.stream();
    let latch = Latch::hold(&held);
    let event = gpu.record(&held);
    let mut completion = Completion::new(event);
    let (first, second) = (Waker::from(Task::new()), Waker::from(Task::new()));
    for waker in [&first, &second].iter().cycle().take(100) {
        pend(&mut completion, waker);
    }
    let own = calls
        .lock()
        .made
        .iter()
        .filter(|made| !made.by_the_poller)
        .map(|made| made.function)
        .collect::<Vec<_>>();
    let exchange = Function::cuThreadExchangeStreamCaptureMode;
    assert_eq!(own, [exchange, Function::cuEventQuery, exchange]);
    latch.release();
    assert_eq!(block_on(&mut completion), Ok(()));
}

/// Neither an event, nor the last share of a context, nor a waker is ever dropped by the poller.
#[test]
fn dropping_a_future_drops_what_it_holds() {
    own_process!();
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum When {
        Completed,
        WhileThePollerAsks,
        Pending,
    }
    let gpu = Hooked::new();
    let calls = Calls::new();
    let held = gpu.gpu.stream();
    for when in [When::Completed, When::WhileThePollerAsks, When::Pending] {
        let latch = Latch::hold(&held);
        let context = Context::primary(gpu.context.device()).expect("a share of its own");
        let event = Event::new(&context, EventFlags::empty()).expect("an event");
        event.record(&held).expect("a record");
        let its = handle(&event);
        // From here on the future has the only share of this context, and of this waker.
        drop(context);
        let mut completion = Completion::new(event);
        let task = Task::new();
        let (woken, dropped_by) = (Arc::clone(&task.woken), Arc::clone(&task.dropped_by));
        pend(&mut completion, &Waker::from(task));
        wait_until("the poller asks for it", || calls.asked(its) > 0);
        match when {
            When::Completed => {
                latch.release();
                wait_until("it is woken", || !woken.lock().expect("no panic").is_empty());
                assert_eq!(dropped_by.lock().expect("no panic").len(), 0);
                woken.lock().expect("no panic").clear();
            }
            // The query ends by itself, if slowly, when the drop waits for it.
            When::WhileThePollerAsks => calls.hold(its, Duration::from_millis(100)),
            When::Pending => {}
        }
        let before = calls.gone().len();
        let dropping = thread::spawn(move || {
            drop(completion);
            thread::current().id()
        });
        let dropping = dropping.join().expect("no panic");
        let gone = calls.gone().split_off(before);
        let by_it = |made: &Made| {
            (made.function, made.thread) == (made.function, dropping) && !made.by_the_poller
        };
        assert!(gone.iter().all(by_it), "{when:?}: {gone:?}");
        let functions: Vec<_> = gone.iter().map(|made| made.function).collect();
        let both = [Function::cuEventDestroy_v2, Function::cuDevicePrimaryCtxRelease_v2];
        assert_eq!(functions, both, "{when:?}: when the drop has returned, all is gone");
        let expected = if when == When::Completed { thread::current().id() } else { dropping };
        assert_eq!(*dropped_by.lock().expect("no panic"), [expected], "{when:?}");
        calls.release();
    }
    // The poller has been through what it had.
    let latch = Latch::hold(&held);
    let event = gpu.record(&held);
    let its = handle(&event);
    let mut completion = Completion::new(event);
    pend(&mut completion, Waker::noop());
    wait_until("the poller goes on", || calls.asked(its) > 10);
    assert!(calls.gone().iter().all(|made| !made.by_the_poller));
    latch.release();
    assert_eq!(block_on(&mut completion), Ok(()));
}

/// On every driver, as no context has to fail for it.
#[test]
fn an_error_of_the_poller_costs_a_pooled_event() {
    own_process!();
    const CODE: CUresult = CUresult::CUDA_ERROR_LAUNCH_FAILED;
    let gpu = Hooked::new();
    let held = gpu.gpu.stream();
    let latch = Latch::hold(&held);
    hook_in(|function, _, answer| {
        (answer.is_none() && function == Function::cuEventQuery && on_the_poller()).then_some(CODE)
    });
    let mut completion = Completion::new(gpu.record(&held));
    pend(&mut completion, Waker::noop());
    let error = block_on(&mut completion).expect_err("the poller got an error");
    assert_eq!((error.function(), error.code()), (Some(Function::cuEventQuery), Some(CODE)));
    assert_eq!(block_on(&mut completion), Err(error), "polling again gives the same");

    let pool = EventPool::new(&gpu.context, EventFlags::empty()).expect("a pool");
    let take = || pool.record_event(&held).expect("an event");
    let mut pooled = Completion::new(take());
    pend(&mut pooled, Waker::noop());
    block_on(&mut pooled).expect_err("the poller got an error");
    drop(pooled);
    assert_eq!(pool.available(), 0, "an event that answered an error is not given back");

    let event = Arc::new(take());
    let mut shared = Completion::new(Arc::clone(&event));
    pend(&mut shared, Waker::noop());
    block_on(&mut shared).expect_err("the poller got an error");
    drop(shared);
    drop(event);
    assert_eq!(pool.available(), 0, "the last one to have it gives it to nobody");

    // One that nobody polls any more, too.
    let mut dropped = Completion::new(take());
    let task = Task::new();
    let woken = Arc::clone(&task.woken);
    pend(&mut dropped, &Waker::from(task));
    wait_until("it is woken", || !woken.lock().expect("no panic").is_empty());
    woken.lock().expect("no panic").clear();
    drop(dropped);
    assert_eq!(pool.available(), 0);

    unhook();
    let mut good = Completion::new(Arc::new(take()));
    pend(&mut good, Waker::noop());
    latch.release();
    assert_eq!(block_on(&mut good), Ok(()));
    drop(good);
    assert_eq!(pool.available(), 1, "one without an error is given back");
}

/// In windows of so many sleeps of this thread, which the machine holds up as it does the poller's:
/// one window is enough.
#[test]
fn the_poller_sleeps_a_millisecond_at_the_most() {
    own_process!();
    const SLEEPS: usize = 20;
    let gpu = Hooked::new();
    let calls = Calls::new();
    let held = gpu.gpu.stream();
    let latch = Latch::hold(&held);
    let event = gpu.record(&held);
    let its = handle(&event);
    let mut completion = Completion::new(event);
    pend(&mut completion, Waker::noop());
    let windows = (0..50).map(|_| {
        let before = calls.asked(its);
        (0..SLEEPS).for_each(|_| thread::sleep(Duration::from_millis(1)));
        calls.asked(its) - before
    });
    let most = windows.take_while(|asked| *asked < SLEEPS / 2).collect::<Vec<_>>();
    assert!(most.len() < 50, "it asked so often, in windows of {SLEEPS} ms: {most:?}");
    latch.release();
    assert_eq!(block_on(&mut completion), Ok(()));
}

/// Otherwise Linux adds 50 us to each sleep, which is more than a completion waits for in the
/// median.
#[cfg(target_os = "linux")]
#[test]
fn the_pollers_sleeps_are_as_short_as_it_asks_for() {
    own_process!();
    const PR_GET_TIMERSLACK: i32 = 30;
    unsafe extern "C" {
        fn prctl(option: i32, ...) -> i32;
    }
    static SLACK: AtomicUsize = AtomicUsize::new(0);
    let gpu = Hooked::new();
    let held = gpu.gpu.stream();
    let latch = Latch::hold(&held);
    hook_in(|function, _, answer| {
        if answer.is_none() && function == Function::cuEventQuery && on_the_poller() {
            // SAFETY: the option takes nothing, and returns a number of nanoseconds.
            SLACK.store(unsafe { prctl(PR_GET_TIMERSLACK) } as usize, Ordering::SeqCst);
        }
        None
    });
    let mut completion = Completion::new(gpu.record(&held));
    pend(&mut completion, Waker::noop());
    wait_until("the poller asks", || SLACK.load(Ordering::SeqCst) != 0);
    assert_eq!(SLACK.load(Ordering::SeqCst), 1000);
    latch.release();
    assert_eq!(block_on(&mut completion), Ok(()));
}

/// The pauses are at least as long as they are promised, however slow the machine is: it can only
/// make them longer.
#[test]
fn the_poller_rests_between_two_questions() {
    own_process!();
    // Long enough that the longer pauses show, also where each round takes a while.
    const QUIET: Duration = Duration::from_secs(2);
    let gpu = Hooked::new();
    let calls = Calls::new();
    let held = gpu.gpu.stream();
    let latch = Latch::hold(&held);
    let event = gpu.record(&held);
    let its = handle(&event);
    let mut completion = Completion::new(event);
    let started = Instant::now();
    pend(&mut completion, Waker::noop());
    while started.elapsed() < QUIET {
        thread::sleep(Duration::from_millis(20));
    }
    let asked = calls.asked(its);
    // After this time without news it asks every 25 us for the first 50 ms, and from then on every
    // two thousandth of the time that has gone by.
    let quiet = started.elapsed().as_secs_f64();
    let most = 2000.0 * (1.0 + (quiet / 0.05).ln());
    assert!(asked > 1, "nobody asks");
    assert!((asked as f64) < most * 1.05 + 2.0, "{asked} questions in {quiet} s, and not {most}");
    latch.release();
    assert_eq!(block_on(&mut completion), Ok(()));
}

/// They do not make the event a part of the capture, so that the poller may go on asking for it.
#[test]
fn external_nodes_take_a_pending_event() {
    own_process!();
    let gpu = Hooked::new();
    if !common::needs(gpu.gpu.driver, Function::cuEventRecordWithFlags) {
        return;
    }
    let calls = Calls::new();
    let (held, captured) = (gpu.gpu.stream(), gpu.gpu.stream());
    let latch = Latch::hold(&held);
    let event = Arc::new(gpu.record(&held));
    let its = handle(&event);
    let mut completion = Completion::new(Arc::clone(&event));
    pend(&mut completion, Waker::noop());
    for mode in [CaptureMode::Global, CaptureMode::ThreadLocal, CaptureMode::Relaxed] {
        let capture = common::begin_capture(&captured, mode).expect("a capture");
        for _ in 0..20 {
            captured.record_external(&event).expect("a node");
            captured.wait_external(&event).expect("a node");
            let asked = calls.asked(its);
            wait_until("the poller asks meanwhile", || calls.asked(its) > asked + 1);
        }
        capture.end().expect("the capture is whole");
    }
    latch.release();
    assert_eq!(block_on(&mut completion), Ok(()));
}

#[cfg(unix)]
#[test]
fn a_forked_child_gets_an_error_and_does_not_hang() {
    own_process!();
    use common::child;
    use cuda_events::Error;

    let gpu = Hooked::new();
    let calls = Calls::new();
    let held = gpu.gpu.stream();
    let latch = Latch::hold(&held);
    let (event, fresh) = (gpu.record(&held), gpu.record(&held));
    let its = handle(&event);
    let mut completion = Completion::new(event);
    let fresh = Completion::new(fresh);
    pend(&mut completion, Waker::noop());
    // What the poller has locked stays so in the child.
    calls.hold(its, PATIENCE);
    let mut completions = Some((completion, fresh));
    let (output, status) = common::fork::in_child(|| {
        child::end_after(20);
        let before = calls.lock().made.len();
        let (mut pending, mut fresh) = completions.take().expect("the child has its copies");
        let mut task = TaskContext::from_waker(Waker::noop());
        let polled = [Pin::new(&mut pending).poll(&mut task), Pin::new(&mut fresh).poll(&mut task)];
        let expected = Poll::Ready(Err(Error::ForkedChild { function: Function::cuEventQuery }));
        let mut wrong = String::new();
        if polled.iter().any(|polled| *polled != expected) {
            wrong += &format!("{polled:?} ");
        }
        let _ = format!("{pending:?} {fresh:?}");
        drop((pending, fresh));
        let made = calls.lock().made.split_off(before);
        if made.is_empty() { wrong } else { format!("{wrong}{made:?}") }
    });
    calls.release();
    latch.release();
    assert_eq!(
        (output.as_str(), status),
        ("", 0),
        "what was wrong in the child, and its wait status"
    );
    let (mut completion, mut fresh) = completions.expect("the parent has its own");
    assert_eq!(block_on(&mut completion), Ok(()));
    assert_eq!(block_on(&mut fresh), Ok(()));
}

/// The poller wakes tasks that wait for another event, whatever goes on in this thread. The event
/// is done, and the first query of this thread returns that it is not, so that it takes no host
/// function: those of a held stream are in their way.
#[track_caller]
fn the_poller_works(gpu: &Context, calls: &Calls) {
    let event = Event::new(gpu, EventFlags::empty()).expect("an event");
    calls.lock().pretended = Some(handle(&event));
    let mut completion = Completion::new(event);
    let task = Task::new();
    let woken = Arc::clone(&task.woken);
    pend(&mut completion, &Waker::from(task));
    wait_until("the poller is held up", || !woken.lock().expect("no panic").is_empty());
    woken.lock().expect("no panic").clear();
}

type Next = Option<(Tricky, Box<dyn FnOnce()>)>;

thread_local! {
    /// What this thread does when it next clones or drops a `tricky` waker.
    static NEXT: RefCell<Next> = const { RefCell::new(None) };
}
static TRICKY_WOKEN: AtomicUsize = AtomicUsize::new(0);

#[derive(Clone, Copy, PartialEq)]
enum Tricky {
    Clone,
    Drop,
}

/// A waker that is none of the others, and runs what the thread has in `NEXT`.
fn tricky(number: usize) -> Waker {
    const TABLE: RawWakerVTable = RawWakerVTable::new(
        |data| {
            run(Tricky::Clone);
            RawWaker::new(data, &TABLE)
        },
        |_| {
            TRICKY_WOKEN.fetch_add(1, Ordering::SeqCst);
        },
        |_| {
            TRICKY_WOKEN.fetch_add(1, Ordering::SeqCst);
        },
        |_| run(Tricky::Drop),
    );
    fn run(now: Tricky) {
        let next = NEXT.with_borrow_mut(|next| next.take_if(|(when, _)| *when == now));
        if let Some((_, next)) = next {
            next();
        }
    }
    // SAFETY: the data is a number, which is never dereferenced, and everything may be done from
    // any thread.
    unsafe { Waker::from_raw(RawWaker::new(without_provenance(number), &TABLE)) }
}

/// All completions of the process would wait for a lock that is held while code of the caller's
/// runs.
#[test]
fn wakers_hold_up_no_other_completion() {
    own_process!();
    struct Sink<F: FnMut()>(F);
    impl<F: FnMut()> Write for Sink<F> {
        fn write_str(&mut self, _: &str) -> std::fmt::Result {
            (self.0)();
            Ok(())
        }
    }
    let gpu = Hooked::new();
    let calls = Calls::new();
    let held = gpu.gpu.stream();
    let latch = Latch::hold(&held);
    let mut completion = Completion::new(gpu.record(&held));
    let (first, second, third) = (tricky(1), tricky(2), tricky(3));
    let next = |when| {
        let (context, calls) = (gpu.context.clone(), Arc::clone(&calls));
        NEXT.set(Some((when, Box::new(move || the_poller_works(&context, &calls)))));
    };
    let is_over = || NEXT.with_borrow(Option::is_none);
    pend(&mut completion, &first);
    next(Tricky::Drop);
    pend(&mut completion, &second);
    assert!(is_over(), "the old waker was dropped");
    next(Tricky::Clone);
    pend(&mut completion, &third);
    assert!(is_over(), "the new waker was cloned");
    write!(Sink(|| the_poller_works(&gpu.context, &calls)), "{completion:?}")
        .expect("the sink takes all");
    next(Tricky::Drop);
    drop(completion);
    assert!(is_over(), "the last waker was dropped");
    latch.release();
}

#[test]
fn a_result_while_a_waker_is_cloned_counts() {
    own_process!();
    let gpu = Hooked::new();
    let held = gpu.gpu.stream();
    let latch = Latch::hold(&held);
    let mut completion = Completion::new(gpu.record(&held));
    let (first, second) = (tricky(1), tricky(2));
    pend(&mut completion, &first);
    let before = TRICKY_WOKEN.load(Ordering::SeqCst);
    let woken = move || {
        latch.release();
        wait_until("the first waker is woken", || TRICKY_WOKEN.load(Ordering::SeqCst) > before);
    };
    NEXT.set(Some((Tricky::Clone, Box::new(woken))));
    let polled = Pin::new(&mut completion).poll(&mut TaskContext::from_waker(&second));
    assert_eq!(polled, Poll::Ready(Ok(())), "nobody will wake the second waker");
}

/// A waker that waits for the thread which drops the future: it does not get stuck.
#[test]
fn a_future_can_be_dropped_while_its_waker_is_woken() {
    own_process!();
    struct Waits(Mutex<(Sender<()>, Receiver<()>)>);
    impl Wake for Waits {
        fn wake(self: Arc<Self>) {
            let (begun, dropped) = &*self.0.lock().expect("one wake");
            begun.send(()).expect("the test waits");
            // An error when the test has failed.
            let _ = dropped.recv_timeout(PATIENCE);
        }
    }
    let gpu = Hooked::new();
    let held = gpu.gpu.stream();
    let latch = Latch::hold(&held);
    let mut completion = Completion::new(gpu.record(&held));
    let ((begun, has_begun), (done, dropped)) = (channel(), channel());
    pend(&mut completion, &Waker::from(Arc::new(Waits(Mutex::new((begun, dropped))))));
    latch.release();
    has_begun.recv_timeout(PATIENCE).expect("it is woken");
    let started = Instant::now();
    drop(completion);
    assert!(started.elapsed() < PATIENCE / 2, "the drop waited for the waker");
    done.send(()).expect("the waker waits");
}
