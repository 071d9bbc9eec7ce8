//! Completions as futures, on any executor.
//!
//! Host functions are not used here: the driver does not run them after the context has failed, so
//! such a future would never resolve. Instead one thread queries the events, and an error resolves
//! the future.

mod entry;
mod rounds;

use core::fmt;
use core::pin::Pin;
use core::task::{Context as TaskContext, Poll};
use std::sync::Arc;

use cuda_events::foundation::is_forked_child;
use cuda_events::sys::Function;
use cuda_events::{Error, Event, EventRef, Result};

use self::entry::{Entry, Watch};
use crate::handle::EventHandle;
use crate::sync::{AtomicBool, Mutex, Ordering, lock};
use crate::thread::look_now;
use crate::time::TaskWait;

#[cfg(doc)]
use crate::calls::*;

/// A future that resolves when the work before an event's last record is done.
///
/// ```
/// use std::sync::Arc;
///
/// use cuda_events::{Context, Device, EventFlags, Stream, StreamOptions};
/// use cuda_timelines::{CudaEventExt, CudaStreamExt};
///
/// # use cuda_soft_driver::examples::Driver;
/// let driver = Driver::load()?;
/// let context = Context::primary(Device::new(driver, 0)?)?;
/// let stream = Stream::new(&context, StreamOptions::new())?;
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
/// // `block_on` comes from your executor, for example `pollster::block_on`.
/// block_on(async {
///     // An event that you recorded.
///     stream.record_event(EventFlags::empty())?.completion().await?;
///     // An event that you use afterwards.
///     let event = Arc::new(stream.record_event(EventFlags::empty())?);
///     Arc::clone(&event).completion().await?;
///     assert!(event.query()?.is_done());
///     // Everything that is in the stream now.
///     stream.completion()?.await
/// })?;
/// # Ok::<(), cuda_events::Error>(())
/// ```
///
/// [`event.completion()`](crate::CudaEventExt::completion) takes the event. That may be an
/// [`Event`], an `Arc<Event>` if you use the event afterwards, a
/// [`PooledEvent`](cuda_events::ext::PooledEvent), or an `Arc` of one.
/// [`stream.completion()`](crate::CudaStreamExt::completion) needs no event.
///
/// If the context fails, the future resolves with an error. If the event is done or was never
/// recorded, the future resolves at once, with `Ok`. It works with any executor: the crate's
/// [poller](crate#threads) queries the driver for all pending completions.
///
/// A task is woken shortly after its work is done. The delay grows with the time that the work has
/// been pending, up to one millisecond. With thousands of pending completions it is some
/// milliseconds. All queries together take at most about a tenth of a core.
/// For thousands of waits at once, futures of [points](crate::Point) resolve sooner.
///
/// Driver calls: at the first poll [`cuEventQuery`], between two calls of
/// [`cuThreadExchangeStreamCaptureMode`]. After that the poller repeats `cuEventQuery`.
///
/// # Cancel safety
///
/// Dropping the future ends the wait and nothing else: the GPU's work goes on. So the future can be
/// used in `select!` and with a timeout. In a loop, make the future once and await `&mut future`: a
/// new [`stream.completion()`](crate::CudaStreamExt::completion) would wait for newer work, too.
///
/// The future owns the event; dropping the future drops the event on the same thread. The drop may
/// wait for one `cuEventQuery` of the poller. Do not drop the future in a [host
/// function](cuda_events::StreamRef::launch_host_function), where this can deadlock.
///
/// # Captures
///
/// While the future is pending, do not record its event in a
/// [`Capture`](cuda_events::capture::Capture) with [`record`](EventRef::record): the next query
/// would invalidate the capture. You may use
/// [`record_external`](cuda_events::StreamRef::record_external) and
/// [`wait_external`](cuda_events::StreamRef::wait_external), which do not make the event a part of
/// the capture. The poller does not disturb captures of other events.
///
/// # Executors and observers
///
/// The poller runs two kinds of your code: `wake` of a waker, and observers (`Driver::observe`) of
/// its queries. Both delay all other completions of the process, and must not block.
///
/// `wake` should hand the task to an executor, as executors' wakers do. It must not run the task,
/// or drop the last object that keeps a context alive.
///
/// # A borrowed event
///
/// A future does not take a borrowed event: if the future were leaked, the event could be destroyed
/// while the poller still queries it. So this does not compile:
///
/// ```compile_fail,E0597
/// use cuda_events::{Event, EventRef};
/// use cuda_timelines::Completion;
///
/// struct Borrowed<'a>(&'a Event);
///
/// impl AsRef<EventRef> for Borrowed<'_> {
///     fn as_ref(&self) -> &EventRef {
///         self.0
///     }
/// }
///
/// fn leak(event: Event) {
///     // error: `event` does not live long enough
///     core::mem::forget(Completion::new(Borrowed(&event)));
/// }
/// ```
#[must_use = "futures do nothing unless they are awaited"]
pub struct Completion<E: AsRef<EventRef> + 'static = Event> {
    entry: Arc<Entry>,
    /// Neither moved nor lent mutably as long as the entry has the handle; see `Watch::ask`.
    event: Box<E>,
    /// Until the result is returned, if the driver has its own clock.
    wait: Option<TaskWait>,
}

impl<E: AsRef<EventRef> + 'static> Completion<E> {
    /// Waits for the event's latest record. It makes no driver call.
    ///
    /// Record the event first: an event that was never recorded is done. If the event is recorded
    /// again before the future has resolved, the future waits for the new record.
    ///
    /// If the wait fails, the event is marked as failed, so that a pool does not use it again.
    pub fn new(event: E) -> Self {
        let event = Box::new(event);
        let named: &EventRef = (*event).as_ref();
        let driver = named.context().driver();
        let watch = Watch { event: Some(EventHandle::of(named)), result: None, waker: None };
        let entry = Entry { driver, registered: AtomicBool::new(false), watch: Mutex::new(watch) };
        Self { entry: Arc::new(entry), event, wait: None }
    }
}

impl<E: AsRef<EventRef> + 'static> Future for Completion<E> {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, task: &mut TaskContext<'_>) -> Poll<Result<()>> {
        if is_forked_child() {
            // The poller did not come along.
            return Poll::Ready(Err(Error::ForkedChild { function: Function::cuEventQuery }));
        }
        let polled = self.look(task);
        if polled.is_ready() {
            self.wait = None;
            if self.entry.driver.host_reads().is_some() {
                // The poller has asked. A driver that checks what each thread has learned is
                // asked by this thread, too; an error is the one that the poller has got.
                let _ = (*self.event).as_ref().query();
            }
        } else if self.wait.is_none() {
            self.wait = TaskWait::begin(self.entry.driver, look_now);
        }
        polled
    }
}

impl<E: AsRef<EventRef> + 'static> Completion<E> {
    fn look(&self, task: &TaskContext<'_>) -> Poll<Result<()>> {
        let entry = &self.entry;
        let registered = entry.registered.load(Ordering::Relaxed);
        let (result, is_left) = entry.look(registered, task.waker());
        if let Some(result) = result {
            return Poll::Ready(result);
        }
        if !is_left {
            let (result, spare) = entry.wake_later(task.waker().clone());
            drop(spare);
            if let Some(result) = result {
                return Poll::Ready(result);
            }
        }
        if !registered {
            if rounds::register(Arc::clone(entry)) {
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
        let watch = if is_forked_child() {
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
            // The poller has the handle only. A pool that the event comes from must learn of it.
            (*self.event).as_ref().mark_failed();
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

#[cfg(test)]
mod tests {
    use core::task::Waker;

    use super::*;
    use cuda_events::{Context, Device, EventFlags, Stream, StreamOptions};
    use cuda_soft_driver::SoftDriver;

    /// However often it is polled, the poller has it once, and asks for it once a round.
    #[test]
    #[cfg_attr(miri, ignore = "it runs on the software driver, with which it takes Miri minutes")]
    fn a_future_is_registered_once() {
        let soft = SoftDriver::new();
        let context = Device::new(soft.driver(), 0).and_then(Context::primary).unwrap();
        let stream = Stream::new(&context, StreamOptions::new()).unwrap();
        let (release, released) = std::sync::mpsc::channel::<()>();
        let wait = move || {
            let _ = released.recv();
        };
        stream.launch_host_function(wait).unwrap();
        let mut completion = Completion::new(stream.record_event(EventFlags::empty()).unwrap());
        for _ in 0..3 {
            let mut task = TaskContext::from_waker(Waker::noop());
            assert!(Pin::new(&mut completion).poll(&mut task).is_pending());
            assert_eq!(Arc::strong_count(&completion.entry), 2, "its own share and the poller's");
        }
        drop(release);
        stream.synchronize().unwrap();
    }
}
