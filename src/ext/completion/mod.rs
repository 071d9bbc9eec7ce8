//! Completions as futures, on any executor.
//!
//! Host functions would be the other way to learn of a completion, and the wrong one: the driver
//! does not run them once the context has failed, so that such a future would never resolve. Here
//! one thread asks, and an error resolves it.

mod entry;
mod poller;

use core::fmt;
use core::pin::Pin;
use core::task::{Context as TaskContext, Poll};
use std::sync::Arc;

use self::entry::{Entry, Handle, Watch, lock};
use crate::ext::event_pool::PooledEvent;
use crate::ext::needs::sync::{AtomicBool, Mutex, Ordering};
use crate::ext::needs::{forked, note_failure};
use crate::sys::Function;
use crate::{Error, Event, EventFlags, EventRef, Result, StreamRef};

/// A future that resolves when all work that an event's last record stands for is done.
///
/// It resolves with an error when the context fails, and at once when the event is done or was
/// never recorded. It needs no particular executor. One thread asks the driver for all pending
/// completions of the process: the poller. It starts when it is first needed, and sleeps while
/// nothing is pending. It does not disturb stream captures of other threads.
///
/// Driver calls: `cuEventQuery` between two of `cuThreadExchangeStreamCaptureMode` at the first
/// poll, and from then on one `cuEventQuery` now and then, by the poller.
///
/// A task is woken some tens of microseconds after its work is done, also beside thousands of
/// others that have been pending for longer than ten milliseconds. Work that takes long is told
/// later in proportion, up to a millisecond. What has been pending for long beside thousands of
/// others, or has just begun together with thousands of others, is told some milliseconds later.
/// All the asking takes about a tenth of a core at the most, however many are pending.
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
/// in the [relaxed](crate::capture::CaptureMode::Relaxed) capture mode, which is the poller's. The
/// poller runs nothing else of the caller's, except for [observers](crate::Driver::observe) of its
/// queries: an observer must not wait for a thread that drops a future.
///
/// # Captures
///
/// Until the future has resolved or is dropped, the poller is another thread that uses its event.
/// So do not record the event in a [`Capture`](crate::capture::Capture) with
/// [`record`](EventRef::record): the next query would invalidate the capture. Drop the future
/// first. [`record_external`](StreamRef::record_external) and
/// [`wait_external`](StreamRef::wait_external) may name it: they do not make the event a part of
/// the capture.
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

impl<E: AsRef<EventRef> + 'static> Completion<E> {
    /// Waits for the event's latest record. Record first: an event that was never recorded is done.
    /// One that is recorded again before the future has resolved is waited for until its new record
    /// is done. It makes no driver call.
    ///
    /// It calls `as_ref` once: the event that it names then is the one that is waited for. If the
    /// wait fails, dropping the future calls `as_ref` once more, so that an event of a pool is not
    /// used again.
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
    /// It records an event of its own. That is not for a stream which captures: asking for an event
    /// of a capture is an error, and invalidates the capture.
    ///
    /// Driver calls: those of [`record_event`](Self::record_event), and later those of
    /// [`Completion`].
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

/// `event.await`; the event goes back to its pool when it is done, and is destroyed when the answer
/// is an error.
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
        if forked() {
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
        let watch = if forked() {
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
            // The poller has the handle only. A pool that the event comes from is to know.
            note_failure((*self.event).as_ref());
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

static_assertions::assert_impl_all!(Completion: Send, Sync, Unpin);
