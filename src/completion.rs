//! Completions as futures, on any executor.
//!
//! Host functions would be the other way to learn of a completion, and the wrong one: the driver does not run them once
//! the context has failed, so that such a future would never resolve. Here one thread asks, and an error resolves it.

use core::any::Any;
use core::pin::Pin;
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::{Context as TaskContext, Poll, Waker};
use core::time::Duration;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::capture::{CaptureMode, ThreadCaptureMode};
use crate::driver::Driver;
use crate::error::{Error, Result};
use crate::event::{Event, EventFlags, EventRef};
use crate::pool::PooledEvent;
use crate::process;
use crate::progress::Progress;
use crate::stream::StreamRef;
use crate::sys::Function;

/// How long the poller sleeps between two rounds at the least; it is what a completion waits for on average twice over.
const PAUSE: Duration = Duration::from_micros(25);
/// How long it sleeps at the most, when nothing has completed for long.
const LONGEST_PAUSE: Duration = Duration::from_millis(1);
/// The share of a core that asking may take, one of this many parts. Waking up comes on top: a tenth in all.
const SHARE: u32 = 12;
/// For how long a completion is asked for in every round.
const YOUNG: Duration = Duration::from_millis(10);

/// A future that resolves when all work that an event's last record stands for is done.
///
/// It resolves with an error when the context fails, and at once when the event is done or was never recorded. It needs
/// no particular executor. One thread, started when it is first needed and asleep while nothing is pending, asks the
/// driver for all pending completions of the process; it does not disturb stream captures of other threads. Dropping a
/// future before it resolves waits for nothing.
///
/// Driver calls: `cuEventQuery` between two of `cuThreadExchangeStreamCaptureMode` at the first poll, and from then on one
/// `cuEventQuery` now and then, by that thread.
///
/// A task is woken some tens of microseconds after its work is done, 18 µs in the median on an H200, also beside thousands of
/// others. Work that takes long is told later in proportion, up to a millisecond, and what has been pending for long beside
/// thousands of others some milliseconds later. All the asking takes about a tenth of a core at the most.
///
/// That thread also wakes the tasks. What a waker does delays all other completions of the process: it should hand the
/// task on, as those of executors do, and neither block nor run the task itself. CUDA calls in it are made in the
/// [relaxed](CaptureMode::Relaxed) capture mode, which is the thread's.
///
/// While a completion is pending, do not record its event in a capture: the next query would invalidate that capture.
/// [`record_external`](StreamRef::record_external) in a capture does no harm.
///
/// `E` is what holds the event: an [`Event`], an `Arc<Event>` to go on using it, or a [`PooledEvent`].
///
/// ```
/// # use cuda_events::{Context, Device, EventFlags, Stream, StreamOptions};
/// # let soft = cuda_soft_driver::SoftDriver::new();
/// # let driver = soft.driver();
/// # let context = Context::primary(Device::new(driver, 0)?)?;
/// # let stream = Stream::new(&context, StreamOptions::new())?;
/// # fn block_on<F: Future>(future: F) -> F::Output {
/// #     struct Unpark(std::thread::Thread);
/// #     impl std::task::Wake for Unpark {
/// #         fn wake(self: std::sync::Arc<Self>) { self.0.unpark() }
/// #     }
/// #     let waker = std::sync::Arc::new(Unpark(std::thread::current())).into();
/// #     let mut future = std::pin::pin!(future);
/// #     loop {
/// #         match future.as_mut().poll(&mut std::task::Context::from_waker(&waker)) {
/// #             std::task::Poll::Ready(output) => return output,
/// #             std::task::Poll::Pending => std::thread::park(),
/// #         }
/// #     }
/// # }
/// block_on(async {
///     // An event of one's own.
///     stream.record_event(EventFlags::empty())?.await?;
///     // Everything that is in the stream now.
///     stream.completion()?.await
/// })?;
/// # Ok::<(), cuda_events::Error>(())
/// ```
#[must_use = "futures do nothing unless they are awaited"]
#[derive(Debug)]
pub struct Completion<E: AsRef<EventRef> + Send + Sync + 'static = Event> {
    entry: Arc<Entry<E>>,
    /// Whether the poller has the entry.
    registered: bool,
}

#[derive(Debug)]
struct Entry<E> {
    driver: Driver,
    cancelled: AtomicBool,
    watch: Mutex<Watch<E>>,
}

#[derive(Debug)]
struct Watch<E> {
    /// None once the future was dropped.
    event: Option<E>,
    result: Option<Result<()>>,
    waker: Option<Waker>,
}

impl<E: AsRef<EventRef> + Send + Sync + 'static> Completion<E> {
    /// Waits for the event's latest record. Record first: an event that was never recorded is done. One that is recorded
    /// again before the future has resolved is waited for until its new record is done. It makes no driver call.
    pub fn new(event: E) -> Self {
        let driver = event.as_ref().context().driver();
        let watch = Watch { event: Some(event), result: None, waker: None };
        let entry = Entry { driver, cancelled: AtomicBool::new(false), watch: Mutex::new(watch) };
        Self { entry: Arc::new(entry), registered: false }
    }
}

impl StreamRef {
    /// A future that resolves when all work that is in the stream now is done.
    ///
    /// It records an event of its own. That is not for a stream which captures: asking for an event of a capture is an
    /// error, and invalidates the capture.
    ///
    /// Driver calls: those of [`record_event`](Self::record_event), and later those of [`Completion`].
    ///
    /// # Errors
    ///
    /// As [`record_event`](Self::record_event).
    pub fn completion(&self) -> Result<Completion> {
        Ok(Completion::new(self.record_event(EventFlags::empty())?))
    }
}

/// `event.await`; the event is destroyed when it is done.
impl IntoFuture for Event {
    type Output = Result<()>;
    type IntoFuture = Completion;

    fn into_future(self) -> Completion {
        Completion::new(self)
    }
}

/// `event.await`; the event goes back to its pool when it is done, and is destroyed when the answer is an error.
impl IntoFuture for PooledEvent {
    type Output = Result<()>;
    type IntoFuture = Completion<Self>;

    fn into_future(self) -> Completion<Self> {
        Completion::new(self)
    }
}

/// So that `Completion<Arc<Event>>` leaves the event in use.
impl AsRef<EventRef> for Arc<Event> {
    fn as_ref(&self) -> &EventRef {
        self
    }
}

impl<E: AsRef<EventRef> + Send + Sync + 'static> Future for Completion<E> {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, task: &mut TaskContext<'_>) -> Poll<Result<()>> {
        if process::forked() {
            // The poller did not come along.
            return Poll::Ready(Err(Error::ForkedChild { function: Function::cuEventQuery }));
        }
        let mut watch = lock(&self.entry.watch);
        if let Some(result) = &watch.result {
            return Poll::Ready(result.clone());
        }
        let ask = |event: &EventRef| {
            // Else the query would invalidate another thread's capture.
            let _relaxed = ThreadCaptureMode::exchange(self.entry.driver, CaptureMode::Relaxed)?;
            event.query()
        };
        if !self.registered && watch.settle(ask) {
            return watch.result.clone().map_or(Poll::Pending, Poll::Ready);
        }
        match &mut watch.waker {
            Some(waker) => waker.clone_from(task.waker()),
            None => watch.waker = Some(task.waker().clone()),
        }
        drop(watch);
        if !self.registered {
            self.registered = register(Arc::clone(&self.entry) as Arc<dyn Pending>);
            if !self.registered {
                // The system has no thread for it: let the executor ask again.
                task.waker().wake_by_ref();
            }
        }
        Poll::Pending
    }
}

impl<E: AsRef<EventRef> + Send + Sync + 'static> Drop for Completion<E> {
    fn drop(&mut self) {
        self.entry.cancelled.store(true, Ordering::SeqCst);
        // Not waited for: if the poller is asking about this very event, it drops it when it has its answer.
        let event = self.entry.watch.try_lock().ok().and_then(|mut watch| watch.event.take());
        drop(event);
    }
}

impl<E: AsRef<EventRef> + 'static> Watch<E> {
    /// Asks `query` whether the wait is over; an error ends it too.
    fn settle(&mut self, query: impl FnOnce(&EventRef) -> Result<Progress>) -> bool {
        let Some(event) = &self.event else { return true };
        self.result = match query(event.as_ref()) {
            Ok(Progress::Done) => Some(Ok(())),
            Ok(Progress::Pending) => None,
            Err(error) => {
                // What was asked is the event inside, so that the pooled one around it does not know.
                if let Some(pooled) = (event as &dyn Any).downcast_ref::<PooledEvent>() {
                    pooled.fail();
                }
                Some(Err(error))
            }
        };
        self.result.is_some()
    }
}

/// What the poller sees of an entry.
trait Pending: Send + Sync {
    fn driver(&self) -> Driver;
    /// Asks once, if this thread may; whether there is nothing left to ask. It runs what belongs to the caller: it may
    /// panic.
    fn ask(&self, allowed: Result<()>) -> bool;
}

impl<E: AsRef<EventRef> + Send + Sync + 'static> Pending for Entry<E> {
    fn driver(&self) -> Driver {
        self.driver
    }

    fn ask(&self, allowed: Result<()>) -> bool {
        let mut watch = lock(&self.watch);
        let over = watch.settle(|event| allowed.and_then(|()| event.query()));
        let waker = if over { watch.waker.take() } else { None };
        let cancelled = self.cancelled.load(Ordering::SeqCst);
        let event = if cancelled { watch.event.take() } else { None };
        drop(watch);
        drop(event);
        if let Some(waker) = waker {
            waker.wake();
        }
        over || cancelled
    }
}

/// The poller's inbox.
struct Inbox {
    arrived: Vec<Arc<dyn Pending>>,
    started: bool,
    asleep: bool,
}

static INBOX: Mutex<Inbox> = Mutex::new(Inbox { arrived: Vec::new(), started: false, asleep: false });
static ARRIVAL: Condvar = Condvar::new();

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is locked here is never left half changed.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Hands an entry to the poller; whether there is one.
fn register(entry: Arc<dyn Pending>) -> bool {
    let mut inbox = lock(&INBOX);
    if !inbox.started {
        let thread = std::thread::Builder::new().name("cuda-events".to_owned()).spawn(poll_for_ever);
        inbox.started = thread.is_ok();
        if !inbox.started {
            return false;
        }
    }
    inbox.arrived.push(entry);
    if core::mem::take(&mut inbox.asleep) {
        ARRIVAL.notify_one();
    }
    true
}

fn poll_for_ever() {
    sleep_precisely();
    let mut poller = Poller::default();
    let mut changed = Instant::now();
    loop {
        let mut inbox = lock(&INBOX);
        while poller.is_idle() && inbox.arrived.is_empty() {
            inbox.asleep = true;
            inbox = ARRIVAL.wait(inbox).unwrap_or_else(PoisonError::into_inner);
        }
        let arrived = core::mem::take(&mut inbox.arrived);
        drop(inbox);
        let started = Instant::now();
        if !arrived.is_empty() {
            changed = started;
        }
        // What has been quiet for long may be told a little later, in proportion.
        let pause = ((started - changed) / 2000).clamp(PAUSE, LONGEST_PAUSE);
        poller.young.extend(arrived.into_iter().map(|entry| (entry, started)));
        let (over, not_yet) = poller.ask(started, pause / (SHARE - 1));
        let asked = started.elapsed();
        if over > 0 {
            changed = Instant::now();
        }
        if !poller.is_idle() {
            // Only the asking that was in vain is paid for with sleep, and no more of it than asking takes: this thread may have
            // been held up.
            let in_vain = asked * not_yet / (over + not_yet).max(1);
            let rest = (in_vain * (SHARE - 1)).clamp(PAUSE, LONGEST_PAUSE);
            std::thread::sleep(rest);
            wait_for_arrival(pause.saturating_sub(rest));
        }
    }
}

/// Sleeps until a completion arrives, or so long.
fn wait_for_arrival(time: Duration) {
    let mut inbox = lock(&INBOX);
    if inbox.arrived.is_empty() && !time.is_zero() {
        inbox.asleep = true;
        let waited = ARRIVAL.wait_timeout(inbox, time);
        waited.unwrap_or_else(PoisonError::into_inner).0.asleep = false;
    }
}

/// What the poller asks for. Most work is short: what has just come is asked in every round, and of what has been pending for
/// longer as much as there is time for, so that a new completion does not wait for thousands of old ones.
#[derive(Default)]
struct Poller {
    young: Vec<(Arc<dyn Pending>, Instant)>,
    old: Vec<Arc<dyn Pending>>,
    /// Which of the old ones is next.
    next: usize,
    /// The drivers that have this thread's queries leave other threads' captures alone.
    relaxed: Vec<Driver>,
}

impl Poller {
    fn is_idle(&self) -> bool {
        self.young.is_empty() && self.old.is_empty()
    }

    /// One round, which asks for the old ones about as long as for the young ones, and for `time` at the least. How many
    /// are over, and how many were asked and are not.
    fn ask(&mut self, started: Instant, time: Duration) -> (u32, u32) {
        let (mut over, mut not_yet) = (0, 0);
        let mut at = 0;
        while let Some((entry, arrived)) = self.young.get(at) {
            let is_over = is_over(&mut self.relaxed, entry);
            let is_young = started - *arrived < YOUNG;
            if is_over {
                over += 1;
            } else {
                not_yet += 1;
            }
            if !is_over && is_young {
                at += 1;
                continue;
            }
            let (entry, _) = self.young.swap_remove(at);
            if is_over {
                discard(entry);
            } else {
                self.old.push(entry);
            }
        }
        let until = started + time.max(started.elapsed() * 2);
        for _ in 0..self.old.len() {
            if self.next >= self.old.len() {
                self.next = 0;
            }
            let Some(entry) = self.old.get(self.next) else { break };
            if is_over(&mut self.relaxed, entry) {
                over += 1;
                discard(self.old.swap_remove(self.next));
                // The next one may be over, too, and is not asked in vain.
                continue;
            }
            not_yet += 1;
            self.next += 1;
            if Instant::now() >= until {
                break;
            }
        }
        (over, not_yet)
    }
}

/// Asks once. Wakers and events of the caller's own types may panic, in their destructors too, and must not take this thread
/// with them, on which all the others wait.
fn is_over(relaxed: &mut Vec<Driver>, entry: &Arc<dyn Pending>) -> bool {
    let mut over = true;
    process::contain(|| over = entry.ask(relax(relaxed, entry.driver())));
    over
}

fn discard(entry: Arc<dyn Pending>) {
    process::contain(|| drop(entry));
}

/// Has this thread's queries leave other threads' captures alone. It is never set back.
fn relax(relaxed: &mut Vec<Driver>, driver: Driver) -> Result<()> {
    if !relaxed.contains(&driver) {
        core::mem::forget(ThreadCaptureMode::exchange(driver, CaptureMode::Relaxed)?);
        relaxed.push(driver);
    }
    Ok(())
}

/// Makes short sleeps of this thread as short as they are asked to be; Linux adds 50 us else.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
fn sleep_precisely() {
    use core::ffi::{c_int, c_ulong};
    const PR_SET_TIMERSLACK: c_int = 29;
    unsafe extern "C" {
        fn prctl(option: c_int, ...) -> c_int;
    }
    // SAFETY: the option takes one number and concerns this thread only. Without it completions are told later.
    unsafe { prctl(PR_SET_TIMERSLACK, 1000 as c_ulong) };
}

#[cfg(not(target_os = "linux"))]
fn sleep_precisely() {}
