//! Completions as futures, on any executor.
//!
//! Host functions would be the other way to learn of a completion, and the wrong one: the driver does not run them once
//! the context has failed, so that such a future would never resolve. Here one thread asks, and an error resolves it.

use core::any::Any;
use core::fmt;
use core::pin::Pin;
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::{Context as TaskContext, Poll, Waker};
use core::time::Duration;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::capture::{CaptureMode, ThreadCaptureMode};
use crate::driver::Driver;
use crate::driver::fork;
use crate::error::{Error, Result};
use crate::event::{self, Event, EventFlags, EventRef};
use crate::ext::event_pool::PooledEvent;
use crate::progress::Progress;
use crate::stream::StreamRef;
use crate::sys::{CUevent, Function};

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
/// It resolves with an error when the context fails, and at once when the event is done or was
/// never recorded. It needs no particular executor. One thread asks the driver for all pending
/// completions of the process: the poller. It starts when it is first needed, and sleeps while
/// nothing is pending. It does not disturb stream captures of other threads.
///
/// Driver calls: `cuEventQuery` between two of `cuThreadExchangeStreamCaptureMode` at the first poll, and from then on one
/// `cuEventQuery` now and then, by the poller.
///
/// A task is woken some tens of microseconds after its work is done, 18 µs in the median on an H200, also beside thousands of
/// others. Work that takes long is told later in proportion, up to a millisecond, and what has been pending for long beside
/// thousands of others some milliseconds later. All the asking takes about a tenth of a core at the most.
///
/// # Dropping it
///
/// The future owns the event, and whoever drops the future drops the event, on his own thread. Once
/// that drop has returned, the poller never asks for this event again. The drop waits for one
/// `cuEventQuery` at most, which the poller may be making at that moment. So do not drop the future
/// in a [host function](StreamRef::launch_host_function), for which that query may wait.
///
/// The poller has no share of an event or of a context: it has the driver's handle of the event,
/// and the drop takes that away.
///
/// # Wakers
///
/// The poller wakes the tasks. A waker's `wake` runs on the poller's thread and delays all other
/// completions of the process. It should hand the task on, as those of executors do. It should
/// neither block, nor run the task, nor drop the last share of a context. CUDA calls in it are made
/// in the [relaxed](CaptureMode::Relaxed) capture mode, which is the poller's. The poller runs
/// nothing else of the caller's, except for [observers](Driver::observe) of its queries: an
/// observer must not wait for a thread that drops a future.
///
/// # Captures
///
/// Until the future has resolved or is dropped, the poller is another thread that uses its event.
/// So do not record the event in a [`Capture`](crate::capture::Capture) with [`record`](EventRef::record):
/// the next query would invalidate the capture. Drop the future first.
/// [`record_external`](StreamRef::record_external) and [`wait_external`](StreamRef::wait_external)
/// may name it: they do not make the event a part of the capture.
///
/// # What holds the event
///
/// `E` holds the event: an [`Event`], an `Arc<Event>` to go on using it, a [`PooledEvent`], or an
/// `Arc` of one.
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
///     // An event you recorded.
///     stream.record_event(EventFlags::empty())?.await?;
///     // Everything that is in the stream now.
///     stream.completion()?.await
/// })?;
/// # Ok::<(), cuda_events::Error>(())
/// ```
#[must_use = "futures do nothing unless they are awaited"]
pub struct Completion<E: AsRef<EventRef> + 'static = Event> {
    entry: Arc<Entry>,
    /// Neither moved nor lent mutably as long as the entry has the handle; see `Watch::ask`.
    event: Box<E>,
}

/// What the future and the poller share. Nothing in it belongs to the caller but the waker, which
/// the poller only ever takes out to give it to `wake`.
struct Entry {
    driver: Driver,
    /// Whether the poller has the entry. Only the future looks at it.
    registered: AtomicBool,
    watch: Mutex<Watch>,
}

/// No code of the caller's runs while this is locked: a waker is cloned, dropped and woken before
/// or after.
struct Watch {
    /// None once there is a result, or the future was dropped.
    event: Option<Handle>,
    result: Option<Result<()>>,
    waker: Option<Waker>,
}

/// The driver's handle of an event that a future keeps alive.
#[derive(Clone, Copy)]
struct Handle(CUevent);

// SAFETY: CUDA's driver API may be called from any thread, and the handle is an address that this
// crate never dereferences.
#[allow(unsafe_code)]
unsafe impl Send for Handle {}

impl<E: AsRef<EventRef> + 'static> Completion<E> {
    /// Waits for the event's latest record. Record first: an event that was never recorded is done. One that is recorded
    /// again before the future has resolved is waited for until its new record is done. It makes no driver call.
    ///
    /// It calls `as_ref` once, and nothing calls it later: the event that it names is the one.
    pub fn new(event: E) -> Self {
        let event = Box::new(event);
        let named: &EventRef = (*event).as_ref();
        let driver = named.context().driver();
        let watch = Watch { event: Some(Handle(named.as_raw())), result: None, waker: None };
        let entry = Entry { driver, registered: AtomicBool::new(false), watch: Mutex::new(watch) };
        Self { entry: Arc::new(entry), event }
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

/// So that `Completion<Arc<PooledEvent>>` leaves the event in use.
impl AsRef<EventRef> for Arc<PooledEvent> {
    fn as_ref(&self) -> &EventRef {
        self
    }
}

impl<E: AsRef<EventRef> + 'static> Future for Completion<E> {
    type Output = Result<()>;

    fn poll(self: Pin<&mut Self>, task: &mut TaskContext<'_>) -> Poll<Result<()>> {
        if fork::forked() {
            // The poller did not come along.
            return Poll::Ready(Err(Error::ForkedChild { function: Function::cuEventQuery }));
        }
        let entry = &self.entry;
        let registered = entry.registered.load(Ordering::Relaxed);
        let (result, known) = entry.look(registered, task.waker());
        if let Some(result) = result {
            return Poll::Ready(result);
        }
        if !known {
            let (result, spare) = entry.wake_later(task.waker().clone());
            drop(spare);
            if let Some(result) = result {
                return Poll::Ready(result);
            }
        }
        if !registered {
            if register(Arc::clone(entry)) {
                entry.registered.store(true, Ordering::Relaxed);
            } else {
                // The system has no thread for it: let the executor ask again.
                task.waker().wake_by_ref();
            }
        }
        Poll::Pending
    }
}

impl<E: AsRef<EventRef> + 'static> Drop for Completion<E> {
    fn drop(&mut self) {
        let watch = if fork::forked() {
            // Nobody asks here, and a lock that the poller had at the fork is never released.
            self.entry.watch.try_lock().ok()
        } else {
            // Waits for the one query that may be under way, so that none comes after this.
            Some(lock(&self.entry.watch))
        };
        let Some(mut watch) = watch else { return };
        watch.event = None;
        let waker = watch.waker.take();
        let failed = matches!(watch.result, Some(Err(_)));
        drop(watch);
        if failed {
            // The query was of the event inside, so that the pooled one around it does not know.
            let event: &dyn Any = &*self.event;
            let shared = || event.downcast_ref::<Arc<PooledEvent>>().map(|event| &**event);
            if let Some(pooled) = event.downcast_ref::<PooledEvent>().or_else(shared) {
                pooled.fail();
            }
        }
        drop(waker);
    }
}

impl<E: AsRef<EventRef> + fmt::Debug + 'static> fmt::Debug for Completion<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Copied first: what is written to is the caller's, and must not run under the lock.
        let result = self.entry.watch.try_lock().ok().and_then(|watch| watch.result.clone());
        f.debug_struct("Completion").field("event", &self.event).field("result", &result).finish()
    }
}

impl Entry {
    /// The result, if there is one, and whether this very waker will be woken. The first time it
    /// asks the driver.
    fn look(&self, registered: bool, waker: &Waker) -> (Option<Result<()>>, bool) {
        let mut watch = lock(&self.watch);
        if !registered {
            // Otherwise the query would invalidate another thread's capture.
            let relaxed = ThreadCaptureMode::exchange(self.driver, CaptureMode::Relaxed);
            watch.ask(self.driver, relaxed.as_ref().map(|_| ()).map_err(Error::clone));
        }
        (watch.result.clone(), watch.waker.as_ref().is_some_and(|known| known.will_wake(waker)))
    }

    /// Has `waker` woken when there is a result, unless there is one by now. It gives back the
    /// waker that is not needed, for the caller to drop when nothing is locked.
    fn wake_later(&self, waker: Waker) -> (Option<Result<()>>, Option<Waker>) {
        let mut watch = lock(&self.watch);
        match watch.result.clone() {
            None => (None, watch.waker.replace(waker)),
            result => (result, Some(waker)),
        }
    }

    /// Asks once for the poller, if its thread may ask; whether there is nothing left to ask.
    fn ask(&self, allowed: Result<()>) -> bool {
        let mut watch = lock(&self.watch);
        watch.ask(self.driver, allowed);
        let over = watch.event.is_none();
        let waker = if over { watch.waker.take() } else { None };
        drop(watch);
        if let Some(waker) = waker {
            // It may panic, and must not take this thread with it, on which all the others wait.
            fork::contain(|| waker.wake());
        }
        over
    }
}

impl Watch {
    /// Asks whether the wait is over, unless that is known or the future was dropped. An error ends
    /// the wait, too.
    #[allow(unsafe_code)]
    fn ask(&mut self, driver: Driver, allowed: Result<()>) {
        let Some(Handle(event)) = self.event else { return };
        // SAFETY: the event is alive. `as_ref` gave it for a borrow of the future's `event`, and
        // that borrow can go on until the future is dropped: the box neither moves its content nor
        // lends it mutably. The destructor takes the handle out under the lock that is held here,
        // before it drops the box. A future that is leaked leaks the box with it, and what is in
        // there borrows from nothing shorter, as it is `'static`.
        let asked = allowed.and_then(|()| unsafe { event::query(driver, event) });
        self.result = match asked {
            Ok(Progress::Done) => Some(Ok(())),
            Ok(Progress::Pending) => return,
            Err(error) => Some(Err(error)),
        };
        self.event = None;
    }
}

/// The poller's inbox.
struct Inbox {
    arrived: Vec<Arc<Entry>>,
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
fn register(entry: Arc<Entry>) -> bool {
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
        let pause = pause(started - changed);
        poller.accept(arrived, started);
        let (over, not_yet) = poller.ask(started, pause / (SHARE - 1));
        let asked = started.elapsed();
        if over > 0 {
            changed = Instant::now();
        }
        if !poller.is_idle() {
            let rest = rest(asked, over, not_yet);
            std::thread::sleep(rest);
            wait_for_arrival(pause.saturating_sub(rest));
        }
    }
}

/// How long to wait between two rounds, when nothing has come or completed for so long. What has
/// been quiet for long may be told a little later, in proportion.
fn pause(quiet: Duration) -> Duration {
    (quiet / 2000).clamp(PAUSE, LONGEST_PAUSE)
}

/// How long to sleep after a round that took so long, in which so many were over and so many not
/// yet, even if a completion arrives. Sleep pays only for the asking that was in vain, and never
/// more than the longest pause: this thread may have been held up.
fn rest(asked: Duration, over: u32, not_yet: u32) -> Duration {
    let in_vain = asked * not_yet / (over + not_yet).max(1);
    (in_vain * (SHARE - 1)).clamp(PAUSE, LONGEST_PAUSE)
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
    young: Vec<(Arc<Entry>, Instant)>,
    old: Vec<Arc<Entry>>,
    /// Which of the old ones is next.
    next: usize,
    /// The drivers that have this thread's queries leave other threads' captures alone.
    relaxed: Vec<Driver>,
}

impl Poller {
    fn is_idle(&self) -> bool {
        self.young.is_empty() && self.old.is_empty()
    }

    /// Takes over completions that arrived by `now`.
    fn accept(&mut self, arrived: Vec<Arc<Entry>>, now: Instant) {
        self.young.extend(arrived.into_iter().map(|entry| (entry, now)));
    }

    /// One round, which asks for the old ones about as long as for the young ones, and for `time` at the least. How many
    /// are over, and how many were asked and are not.
    fn ask(&mut self, started: Instant, time: Duration) -> (u32, u32) {
        let (mut over, mut not_yet) = (0, 0);
        let mut at = 0;
        while let Some((entry, arrived)) = self.young.get(at) {
            let is_over = entry.ask(relax(&mut self.relaxed, entry.driver));
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
            if !is_over {
                self.old.push(entry);
            }
        }
        let until = started + time.max(started.elapsed() * 2);
        for _ in 0..self.old.len() {
            if self.next >= self.old.len() {
                self.next = 0;
            }
            let Some(entry) = self.old.get(self.next) else { break };
            if entry.ask(relax(&mut self.relaxed, entry.driver)) {
                over += 1;
                self.old.swap_remove(self.next);
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

static_assertions::assert_impl_all!(Completion: Send, Sync, Unpin);

#[cfg(test)]
mod tests {
    use super::*;

    const MICROSECOND: Duration = Duration::from_micros(1);

    /// The documentation promises the figures.
    #[test]
    fn pauses_grow_with_the_quiet_to_a_millisecond() {
        for (quiet, micros) in [(0, 25), (10_000, 25), (50_000, 25), (100_000, 50), (1_000_000, 500)] {
            assert_eq!(pause(MICROSECOND * quiet), MICROSECOND * micros, "{quiet}");
        }
        for quiet in [2, 10, 1_000_000] {
            assert_eq!(pause(Duration::from_secs(quiet)), Duration::from_millis(1));
        }
    }

    /// A stream that is held until the sender is dropped, completions of it that are pending, and
    /// which events were asked for.
    struct Held {
        _soft: cuda_soft_driver::SoftDriver,
        stream: crate::Stream,
        release: std::sync::mpsc::Sender<()>,
        pending: Vec<Completion>,
        asked: Arc<Mutex<Vec<u64>>>,
    }

    impl Held {
        fn new(pending: usize) -> Self {
            let soft = cuda_soft_driver::SoftDriver::new();
            let options = crate::LoadOptions::new();
            // SAFETY: the software driver has the driver's ABI, and its functions are part of this
            // program.
            #[allow(unsafe_code)]
            let driver = unsafe { Driver::from_resolver(&mut |name| soft.resolve(name), &options) };
            let asked = Arc::new(Mutex::new(Vec::new()));
            let note = Arc::clone(&asked);
            let driver = driver.unwrap().observe(move |call| {
                if call.function == Function::cuEventQuery {
                    lock(&note).push(call.arguments[0]);
                }
            });
            let device = crate::Device::new(driver.unwrap(), 0);
            let context = device.and_then(crate::Context::primary).unwrap();
            let stream = crate::Stream::new(&context, crate::StreamOptions::new()).unwrap();
            let (release, released) = std::sync::mpsc::channel::<()>();
            let hold = move || {
                let _ = released.recv();
            };
            stream.launch_host_function(hold).unwrap();
            let pending = (0..pending).map(|_| stream.completion().unwrap()).collect();
            Self { _soft: soft, stream, release, pending, asked }
        }

        fn entries(&self) -> Vec<Arc<Entry>> {
            self.pending.iter().map(|completion| Arc::clone(&completion.entry)).collect()
        }

        fn handles(&self) -> Vec<u64> {
            self.pending.iter().map(|future| future.event.as_raw().addr() as u64).collect()
        }

        fn asked(&self) -> Vec<u64> {
            core::mem::take(&mut *lock(&self.asked))
        }
    }

    const LONG: Duration = Duration::from_secs(3600);

    #[test]
    fn a_round_asks_for_as_many_old_ones_as_it_has_time_for_and_goes_on_where_it_stopped() {
        const OLD: usize = 40;
        let held = Held::new(OLD);
        let all = held.handles();
        let mut poller = Poller::default();
        poller.old.extend(held.entries());

        // With time for all, all are asked once.
        assert_eq!(poller.ask(Instant::now(), LONG), (0, OLD as u32));
        assert_eq!(held.asked(), all);
        // Without time, one after the other, round by round. A round that is held up may ask for
        // more.
        let mut fewest = u32::MAX;
        let mut told = Vec::new();
        while told.len() < 3 * OLD {
            let (over, not_yet) = poller.ask(Instant::now(), Duration::ZERO);
            assert!(over == 0 && not_yet > 0);
            fewest = fewest.min(not_yet);
            told.append(&mut held.asked());
        }
        assert!(fewest < 5, "{fewest} in each round");
        let expected = all.iter().cycle();
        assert!(told.iter().zip(expected).all(|(told, expected)| told == expected), "in turn");
        // Those that are over leave, and no other is left out.
        drop(held.release);
        held.stream.synchronize().unwrap();
        assert_eq!(poller.ask(Instant::now(), LONG), (OLD as u32, 0));
        assert!(poller.is_idle());
    }

    /// So that a new completion does not wait for thousands of old ones.
    #[test]
    fn a_new_completion_is_asked_for_in_every_round_before_the_old_ones() {
        const OLD: usize = 40;
        let held = Held::new(OLD + 1);
        let (mut entries, all) = (held.entries(), held.handles());
        let new = entries.pop().unwrap();
        let arrival = Instant::now();
        let mut poller = Poller::default();
        poller.old.extend(entries);
        poller.accept(vec![new], arrival);

        // Each round begins when the new one has just arrived, and has no time for the old ones.
        for round in 0..20 {
            poller.ask(arrival, Duration::ZERO);
            let asked = held.asked();
            assert_eq!(asked.first(), all.last(), "round {round}");
            assert!(asked.len() > 1, "an old one has its turn in round {round}");
        }
        // It is new until ten milliseconds are over.
        poller.ask(arrival + YOUNG - MICROSECOND, Duration::ZERO);
        assert_eq!(poller.young.len(), 1);
        poller.ask(arrival + YOUNG, Duration::ZERO);
        assert_eq!((poller.young.len(), poller.old.len()), (0, OLD + 1));
        drop(held.release);
    }

    #[test]
    fn only_asking_in_vain_is_paid_for_with_sleep() {
        // A tenth of a core: eleven times as long as it took.
        assert_eq!(rest(MICROSECOND * 10, 0, 100), MICROSECOND * 110);
        assert_eq!(rest(MICROSECOND * 10, 50, 50), MICROSECOND * 55);
        for (asked, over, not_yet) in [(10, 100, 0), (1, 0, 1), (0, 0, 0)] {
            assert_eq!(rest(MICROSECOND * asked, over, not_yet), PAUSE, "{asked} {over} {not_yet}");
        }
        // The thread was held up, for an hour even.
        for seconds in [1, 3600] {
            assert_eq!(rest(Duration::from_secs(seconds), 0, 10_000), LONGEST_PAUSE);
        }
    }
}
