//! Completions as futures, on any executor.
//!
//! Host functions would be the other way to learn of a completion, and the wrong one: the driver does not run them once
//! the context has failed, so that such a future would never resolve. Here one thread asks, and an error resolves it.

mod poller;

use core::any::Any;
use core::fmt;
use core::pin::Pin;
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::{Context as TaskContext, Poll, Waker};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::capture::{CaptureMode, ThreadCaptureMode};
use crate::driver::Driver;
use crate::driver::{fork, panics};
use crate::error::{Error, Result};
use crate::event::{self, Event, EventFlags, EventRef};
use crate::ext::event_pool::PooledEvent;
use crate::progress::Progress;
use crate::stream::StreamRef;
use crate::sys::{CUevent, Function};

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
/// A task is woken some tens of microseconds after its work is done, also beside thousands of others that have been
/// pending for longer than ten milliseconds. Work that takes long is told later in proportion, up to a millisecond. What
/// has been pending for long beside thousands of others, or has just begun together with thousands of others, is told
/// some milliseconds later. All the asking takes about a tenth of a core at the most, however many are pending.
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
///
/// Why no query comes after the drop:
///
/// 1. A query is made under the lock of `watch`, from before its `event` is read until the driver has
///    returned ([`Watch::ask`]).
/// 2. The future's destructor takes `event` out under that lock.
/// 3. So each query has either returned when the destructor gets the lock, or finds no event.
/// 4. The box that has the event is dropped after the destructor's body, and so after 2.
///
/// Why a task is woken, or sees the result itself:
///
/// 1. `poll` leaves its waker under the lock, and only if there is no result ([`Entry::wake_later`]).
///    Otherwise it returns the result.
/// 2. The poller stores the result under the lock, and takes the waker out before it gives the lock
///    back ([`Entry::ask`]).
/// 3. One of the two comes first. If it is the waker, the poller finds it and wakes it. If it is the
///    result, `poll` finds it.
/// 4. The poller does ask: the first `poll` hands the entry over after it has left its waker, and the
///    poller keeps an entry until it is over. If there is no poller, the task is woken at once and
///    its next `poll` tries again.
/// 5. A later `poll` with another waker replaces the one that is there, under the lock. So the poller
///    wakes the last one, or has taken the one before, whose result that `poll` finds.
///
/// Why the poller drops nothing of the caller's:
///
/// 1. The event and its context are in the future's box. The entry has the bare handle.
/// 2. A waker that is not needed is dropped by the future: by the `poll` that replaces it, or by the
///    destructor, which finds it if the poller has not taken it.
/// 3. A waker that the poller has taken is consumed by its own `wake`. That hands the share on to the
///    executor. `wake_by_ref` would leave a share here, which this thread would have to drop. If the
///    executor is gone, `wake` itself may drop the task: nobody else is left to do it, and to keep the
///    waker in the entry instead would be a circle that nobody ever frees.
/// 4. The poller's share of an entry may be the last one. The entry has neither event nor waker then.
struct Entry {
    driver: Driver,
    /// Whether the poller has the entry. Only `poll` reads and writes it, which has the future to
    /// itself: whatever hands the future to another thread orders these accesses.
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
            if poller::register(Arc::clone(entry)) {
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
            panics::contain(|| waker.wake());
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is locked here is never left half changed.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

static_assertions::assert_impl_all!(Completion: Send, Sync, Unpin);
