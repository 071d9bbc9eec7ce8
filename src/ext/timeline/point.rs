//! Points: places in a timeline.

use core::fmt;
use core::hash::{Hash, Hasher};
use core::time::Duration;

use super::crossing::{self, wait_value};
use super::line::Line;
use super::slot::Slot;
use super::wait::{self, Rest};
use crate::ext::needs::forked;
use crate::sys::Function;
use crate::{Error, Progress, Result, StreamRef};

/// A place in a [timeline](crate::ext::Timeline): all work that was in the stream when
/// [`signal`](crate::ext::Timeline::signal) was called.
///
/// A point exists only once its signal was submitted. It is a plain value: copy it, send it to
/// other threads, keep millions. It keeps nothing alive, it may outlive its timeline, and a point
/// that was reached stays reached.
///
/// # Waiting
///
/// | | the thread | from the signal to the waiter's return |
/// | --- | --- | --- |
/// | [`is_done`](Self::is_done) | looks once, by one load | |
/// | [`query`](Self::query) | looks, and asks the driver if the point is not reached | |
/// | [`spin`](Self::spin), [`spin_timeout`](Self::spin_timeout) | uses its core | the shortest of these; a thread that spins for an event is told some microseconds sooner |
/// | [`wait`](Self::wait), [`wait_timeout`](Self::wait_timeout) | sleeps between looks, a 64th of the time it has waited, between 20 µs and 1 ms | some tens of microseconds, longer after a long wait |
/// | `point.await` | none: one thread of the process looks for all | as for [`Completion`](crate::ext::Completion) |
/// | [`StreamRef::wait_point`] | none: the stream waits | |
///
/// # Failures
///
/// A context that has failed never signals. So the waiting methods and futures ask the driver every
/// 5 ms, and return its error. They never wait longer than that for a signal that cannot come, plus
/// what the one driver call takes. A loop of waits with a short limit learns of it as well: before
/// a wait returns [`Pending`](Progress::Pending), it asks if no wait for the timeline has asked for
/// 5 ms. The first such wait for a timeline does not ask, whatever its limit below 5 ms. `is_done`
/// asks nobody: a loop around it alone may never end.
///
/// For a point of an [imported](crate::ext::ImportedTimeline) timeline they ask the system as often
/// whether the maker's process lives, and return
/// [`Error::ExporterGone`] if it does not.
///
/// [`Error::Poisoned`] says that the timeline was
/// [poisoned](crate::ext::Timeline::poison) before it got there, and
/// [`Error::ContextDropped`] that the last share of the context was
/// dropped first, so that nobody can ask the driver. In a forked child `is_done` tells what the
/// parent sees, and all else returns [`Error::ForkedChild`].
///
/// ```
/// use cuda_events::ext::Timeline;
/// # use cuda_events::{Context, Device, Stream, StreamOptions};
/// # let soft = cuda_soft_driver::SoftDriver::new();
/// # let driver = soft.driver();
/// # let context = Context::primary(Device::new(driver, 0)?)?;
/// # let stream = Stream::new(&context, StreamOptions::new())?;
/// let timeline = Timeline::new(stream)?;
/// let first = timeline.signal()?;
/// let second = timeline.signal()?;
/// second.wait()?;
/// assert!(first.is_done());
/// # Ok::<(), cuda_events::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Point {
    /// The slot's, so that a look is one load.
    line: &'static Line,
    slot: &'static Slot,
    value: u64,
}

impl Point {
    pub(super) fn new(slot: &'static Slot, value: u64) -> Self {
        Self { line: slot.line, slot, value }
    }

    pub(super) fn slot(&self) -> &'static Slot {
        self.slot
    }

    #[inline(always)]
    pub(super) fn look(&self) -> Result<Progress> {
        match self.line.look(self.value) {
            Ok(Progress::Done) => Ok(Progress::Done),
            seen => self.slot.judge(self.value, seen),
        }
    }

    /// The point's value. Values of one timeline rise by one from signal to signal; the first is
    /// not always 1, and a signal that failed leaves a gap.
    #[inline]
    pub fn value(&self) -> u64 {
        self.value
    }

    /// Whether the point is reached, so that its stream has done all work that was in it. It is one
    /// load: no driver call, no lock, from as many threads as you like.
    ///
    /// The caller sees what that work has written. False does not mean that the point will be
    /// reached; [`query`](Self::query) tells failures.
    #[must_use = "the work may still be pending"]
    #[inline(always)]
    pub fn is_done(&self) -> bool {
        self.line.reached() >= self.value
    }

    /// Whether the point is reached, or an error if it cannot be. It does not wait.
    ///
    /// No driver call if the point is reached. Otherwise one, `cuEventQuery`, of an event that it
    /// creates for the time of the call (`cuEventCreate` with the context current,
    /// `cuEventDestroy`) unless another thread waits for this timeline, between two of
    /// `cuThreadExchangeStreamCaptureMode`, so that captures of other threads go on.
    ///
    /// # Errors
    ///
    /// See [above](Self#failures).
    pub fn query(&self) -> Result<Progress> {
        wait::refuse_fork()?;
        if self.look()?.is_pending() {
            wait::ask_once(self.slot)?;
        }
        self.look()
    }

    /// Blocks until the point is reached. The thread sleeps between looks.
    ///
    /// Driver calls: those of [`query`](Self::query) every 5 ms.
    ///
    /// # Errors
    ///
    /// See [above](Self#failures).
    #[doc(alias = "synchronize")]
    pub fn wait(&self) -> Result<()> {
        wait::wait(self.slot, self.value, Duration::MAX, Rest::Sleep).map(drop)
    }

    /// As [`wait`](Self::wait), for at most `timeout`: whether the point is reached. It may return
    /// later by the driver calls that it makes.
    ///
    /// Driver calls: those of [`query`](Self::query) every 5 ms, over all waits for the timeline
    /// [whose limits are shorter](Self#failures).
    ///
    /// # Errors
    ///
    /// See [above](Self#failures).
    #[doc(alias = "synchronize_timeout")]
    pub fn wait_timeout(&self, timeout: Duration) -> Result<Progress> {
        wait::wait(self.slot, self.value, timeout, Rest::Sleep)
    }

    /// As [`wait`](Self::wait), but the thread looks all the time: it returns sooner and takes a
    /// core.
    ///
    /// # Errors
    ///
    /// See [above](Self#failures).
    pub fn spin(&self) -> Result<()> {
        wait::wait(self.slot, self.value, Duration::MAX, Rest::Spin).map(drop)
    }

    /// As [`spin`](Self::spin), for at most `timeout`: whether the point is reached. Driver calls
    /// as for [`wait_timeout`](Self::wait_timeout).
    ///
    /// # Errors
    ///
    /// See [above](Self#failures).
    pub fn spin_timeout(&self, timeout: Duration) -> Result<Progress> {
        wait::wait(self.slot, self.value, timeout, Rest::Spin)
    }
}

/// Two are equal when they are the same value of one timeline.
impl PartialEq for Point {
    fn eq(&self, other: &Self) -> bool {
        core::ptr::eq(self.line, other.line) && self.value == other.value
    }
}

impl Eq for Point {}

impl Hash for Point {
    fn hash<H: Hasher>(&self, state: &mut H) {
        core::ptr::hash(self.line, state);
        self.value.hash(state);
    }
}

impl fmt::Debug for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Point")
            .field("value", &self.value)
            .field("is_done", &self.is_done())
            .finish()
    }
}

impl StreamRef {
    /// Makes all work that is put into this stream from now on wait until the point is reached. The
    /// stream may belong to any context and any device of the process.
    ///
    /// No program that waits for points alone can deadlock: `docs/timelines.md` has the proof.
    ///
    /// No driver call if the point is reached already. Otherwise one, `cuStreamWaitValue64`; for a
    /// stream of another context than the timeline's also `cuStreamIsCapturing` and those of
    /// [`record_event`](Self::record_event). While that wait is pending it holds a share of both
    /// contexts, which the drop of a timeline or a later wait between two contexts gives back. If
    /// such a share is the last one by then, a thread of its own ends the context, so that neither
    /// blocks.
    ///
    /// In a capture the wait becomes a node. Each launch waits for that same point, so that only
    /// the first can have to wait.
    ///
    /// # Errors
    ///
    /// [`Error::Poisoned`], and the driver's error, where the point
    /// [can never be reached](Point#failures) and that is known;
    /// [`Error::TimelineInCapture`] in a capture for a point of
    /// another context; [`Error::ContextDropped`];
    /// [`Error::DriverMismatch`]; what the driver returns;
    /// [`Error::ForkedChild`].
    #[doc(alias = "cuStreamWaitValue64")]
    #[inline]
    pub fn wait_point(&self, point: Point) -> Result<()> {
        if forked() {
            return Err(Error::ForkedChild { function: Function::cuStreamWaitValue64_v2 });
        }
        // What the work before the signal has written is seen by whatever is submitted from now on:
        // the load has seen the value.
        if point.look()?.is_done() {
            return Ok(());
        }
        submit_wait(self, point.slot, point.value)
    }
}

/// Has the stream wait for a value of the line. The caller has looked whether this is a forked
/// child.
#[inline]
#[allow(unsafe_code)]
pub(super) fn submit_wait(stream: &StreamRef, slot: &'static Slot, value: u64) -> Result<()> {
    if crossing::is_needed(stream, slot) {
        return crossing::submit_wait(stream, slot, value);
    }
    // SAFETY: as for `wait_value`; the page is registered in the stream's context, which the stream
    // keeps alive.
    unsafe { wait_value(stream, slot, value) }
}

static_assertions::assert_impl_all!(Point: Copy, Send, Sync);
