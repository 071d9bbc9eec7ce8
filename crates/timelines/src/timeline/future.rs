//! Points as futures.

use core::fmt;
use core::pin::Pin;
use core::task::{Context as TaskContext, Poll};
use std::sync::Arc;

use super::foreign::{Foreign, Link};
use super::point::Point;
use super::queue::{Entry, Key};
use super::rounds;
use super::slot::Slot;
use super::wait;
use crate::error::Result;
use crate::thread::look_now;
use crate::time::TaskWait;
use cuda_events::{Event, Progress};

#[cfg(doc)]
use crate::calls::*;

/// A future that resolves when a [`Point`] is reached, created by `point.await`.
///
/// It resolves with an error in the cases where [the waiting methods](Point#failures) return one.
/// It works with any executor.
///
/// The crate's [poller](crate#threads) checks all pending points, with one load for each timeline,
/// and wakes the tasks. It checks every 15 µs at first. If nothing happens it checks less often:
/// after half a second, once a millisecond. Every 5 ms it queries the driver for each context with
/// awaited timelines.
///
/// The first poll of a pending point creates an event, as [`Point::query`] does, unless another
/// task or thread already waits for the same timeline. A pending future keeps the timeline's
/// context alive. The rules of [`Completion`](crate::Completion#executors-and-observers) for wakers
/// hold here, too.
///
/// ```
/// use cuda_events::{Context, Device, Stream, StreamOptions};
/// use cuda_timelines::Timeline;
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
/// let timeline = Timeline::new(stream)?;
/// let point = timeline.signal()?;
/// // `block_on` comes from your executor, for example `pollster::block_on`.
/// block_on(async { point.await })?;
/// // The future itself, for code that needs its type:
/// let future = point.into_future();
/// assert_eq!(future.point(), point);
/// block_on(future)?;
/// # Ok::<(), cuda_timelines::Error>(())
/// ```
///
/// # Cancel safety
///
/// Dropping the future ends the wait and nothing else, so it can be used in `select!` and with a
/// timeout. A point is a plain value: await it again, as often as you like. The drop waits for at
/// most one [`cuEventQuery`] that the poller may be making.
#[must_use = "futures do nothing unless they are awaited"]
pub struct PointCompletion {
    point: Point,
    waiting: Option<Waiting>,
    /// Whether there was a thread when it came into the queue, or later.
    followed: bool,
}

/// A future that is in the queue, or was.
struct Waiting {
    key: Key,
    entry: Arc<Entry>,
    /// Shared by all futures that are in the queue of one slot, so that as long as one is there the
    /// queue may ask for it.
    health: Arc<Event>,
    /// How the exporter of another process's line is asked for.
    #[expect(dead_code, reason = "held for its share")]
    link: Option<Arc<dyn Link>>,
    /// If the driver has its own clock.
    #[expect(dead_code, reason = "the clock counts the task until this is dropped")]
    wait: Option<TaskWait>,
}

/// `point.await`.
impl IntoFuture for Point {
    type Output = Result<()>;
    type IntoFuture = PointCompletion;

    fn into_future(self) -> PointCompletion {
        PointCompletion::new(self)
    }
}

impl PointCompletion {
    pub(super) fn new(point: Point) -> Self {
        Self { point, waiting: None, followed: false }
    }

    /// Returns the point that this future waits for.
    pub fn point(&self) -> Point {
        self.point
    }

    fn look(&self) -> Poll<Result<()>> {
        match self.point.look() {
            Ok(Progress::Done) => Poll::Ready(Ok(())),
            Ok(Progress::Pending) => Poll::Pending,
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}

impl Future for PointCompletion {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, task: &mut TaskContext<'_>) -> Poll<Result<()>> {
        if let Err(error) = wait::refuse_fork() {
            return Poll::Ready(Err(error));
        }
        if let ready @ Poll::Ready(_) = self.look() {
            return ready;
        }
        let point = self.point;
        let slot: &'static Slot = point.slot();
        if self.waiting.is_none() {
            let health = match slot.health() {
                Ok(health) => health,
                Err(error) => {
                    slot.condemn(&error);
                    return Poll::Ready(point.look_after(error).map(drop));
                }
            };
            let link = match slot.foreign().map(Foreign::link).transpose() {
                Ok(link) => link,
                Err(error) => {
                    return Poll::Ready(point.look_after(error).map(drop));
                }
            };
            let entry = Arc::<Entry>::default();
            let (key, first) = slot.queue.insert(point.value(), Arc::clone(&entry), &health);
            let wait = TaskWait::begin(health.context().driver(), look_now);
            self.waiting = Some(Waiting { key, entry, health, link, wait });
            self.followed = rounds::watch(slot, first);
        } else if !self.followed {
            self.followed = rounds::watch(slot, false);
        }
        if !self.followed {
            // The system starts no thread: let the executor ask again, which tries again.
            task.waker().wake_by_ref();
        }
        if let Some(waiting) = &self.waiting
            && let Some(error) = waiting.entry.wake_later(task.waker())
        {
            return Poll::Ready(point.look_after(error).map(drop));
        }
        // The poller may have taken the entry before the waker was in it. Then it had seen the line
        // as it must be for that, before it locked the entry; this thread has locked the entry
        // after it, and so sees the line at least as it was then.
        let seen = self.look();
        if seen.is_pending() && self.waiting.as_ref().is_some_and(|it| it.entry.is_taken()) {
            // The poller has come after that look, or another process has put the value back since.
            // The future waits anew.
            self.leave();
            task.waker().wake_by_ref();
        }
        seen
    }
}

impl Drop for PointCompletion {
    fn drop(&mut self) {
        self.leave();
    }
}

impl PointCompletion {
    /// Takes this future out of the poller's queue.
    fn leave(&mut self) {
        let Some(Waiting { key, entry, health, .. }) = self.waiting.take() else { return };
        self.point.slot().queue.remove(&key, &entry);
        // Last: with it the queue may have nobody whose event it asks for.
        drop(health);
    }
}

impl fmt::Debug for PointCompletion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PointCompletion").field("point", &self.point).finish_non_exhaustive()
    }
}

static_assertions::assert_impl_all!(PointCompletion: Send, Sync, Unpin);
