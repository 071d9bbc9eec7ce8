//! Timelines that the host advances.

use core::fmt;
use std::sync::Arc;

use super::crossing;
use super::descriptor::TimelineDescriptor;
use super::ending;
use super::file::{SharedFile, TimelineFile};
use super::pages;
use super::point::{Point, submit_wait};
use super::slot::Slot;
use super::wait;
#[cfg(doc)]
use crate::error::Error;
use crate::error::Result;
use cuda_events::foundation::is_forked_child;
use cuda_events::{Context, StreamRef};

use super::line::LARGEST;

#[cfg(doc)]
use crate::calls::*;
use crate::sync::lock;

/// A timeline that the host advances, for a CPU stage between two GPU stages.
///
/// [`signal`](Self::signal) is one atomic operation: no driver call and no lock. Any thread may
/// signal. Each signal has its own value, and the value never goes back.
///
/// A signal of the host happens at once, so the point that `signal` returns is already reached.
/// Streams [wait ahead](Self::wait_ahead) for such signals: you submit their waits before the host
/// signals. Read the deadlock rule of `wait_ahead`. If the host can submit the second GPU stage
/// after its own stage, you need no timeline.
///
/// Dropping the timeline releases the streams that still wait ahead, at once and without a driver
/// call. The timeline, like an event, keeps its context alive. If it is the [last
/// object](Context#dropping-the-last-share) that does so, its drop ends the context, which can
/// block. Otherwise the drop never blocks.
///
/// ```
/// use cuda_events::{Context, Device, Stream, StreamOptions};
/// use cuda_timelines::{HostTimeline, Timeline};
///
/// # use cuda_soft_driver::examples::Driver;
/// let driver = Driver::load()?;
/// let context = Context::primary(Device::new(driver, 0)?)?;
/// let stream = |context| Stream::new(context, StreamOptions::new());
/// let (first, second) = (stream(&context)?, stream(&context)?);
/// let ready = HostTimeline::new(&context)?;
/// let computed = Timeline::new(first)?;
/// // ... submit the first stage to `computed.stream()` ...
/// let point = computed.signal()?;
/// ready.wait_ahead(&second, ready.completed() + 1)?;
/// // ... submit the last stage to `second` ...
/// point.wait()?;
/// // ... run the CPU stage ...
/// ready.signal()?;
/// second.synchronize()?;
/// assert_eq!(ready.context(), &context);
/// # Ok::<(), cuda_timelines::Error>(())
/// ```
pub struct HostTimeline {
    slot: &'static Slot,
    context: Context,
    /// Where other processes see it.
    file: Option<Arc<SharedFile>>,
    /// The line for other processes, if they can write it: this process does not read it.
    copy: Option<&'static Slot>,
}

impl HostTimeline {
    /// Creates a timeline without signals. Streams of all contexts may wait for it.
    ///
    /// No driver call if a memory page of the context has room; a page holds 64 timelines.
    /// Otherwise [`cuMemHostRegister`] and [`cuMemHostGetDevicePointer`] with the context current.
    ///
    /// # Errors
    ///
    /// The driver's error, such as `CUDA_ERROR_OUT_OF_MEMORY`;
    /// [`ForkedChild`](cuda_events::Error::ForkedChild).
    pub fn new(context: &Context) -> Result<Self> {
        wait::refuse_fork()?;
        let slot = pages::allocate(context)?;
        Ok(Self { slot, context: context.clone(), file: None, copy: None })
    }

    /// Creates a timeline that every process with the file sees.
    ///
    /// Its [descriptor](Self::descriptor) identifies it in those processes. Their streams and hosts
    /// can wait for it. Dropping it releases all waits for it. [`TimelineFile::new`] has an
    /// example.
    ///
    /// Driver calls: those of [`new`](Self::new) for a [writable](TimelineFile::writable) file, and
    /// none for others.
    ///
    /// # Errors
    ///
    /// * [`Error::SharedTimeline`] with
    ///   [`FileFull`](crate::SharedTimelineError::FileFull) if the file already had 63
    ///   timelines.
    /// * [`ForkedChild`](cuda_events::Error::ForkedChild).
    pub fn shared(file: &TimelineFile) -> Result<Self> {
        let (file, context) = (Arc::clone(file.shared()), file.context().clone());
        let (slot, copy) = if file.is_exposed() {
            let own = pages::allocate(&context)?;
            let copy = file.take(own.line.reached()).inspect_err(|_| pages::release(own))?;
            (own, Some(copy))
        } else {
            (file.take(0)?, None)
        };
        Ok(Self { slot, context, file: Some(file), copy })
    }

    /// Returns the descriptor for other processes, if the timeline is [shared](Self::shared).
    ///
    /// [`TimelineFile::new`] has an example.
    pub fn descriptor(&self) -> Option<TimelineDescriptor> {
        self.file.as_ref().and_then(|file| file.descriptor(self.copy.unwrap_or(self.slot)))
    }

    /// Reaches the next value, and releases the streams that wait for it.
    ///
    /// Work that waits for the value sees this thread's earlier writes.
    ///
    /// # Errors
    ///
    /// Only [`ForkedChild`](cuda_events::Error::ForkedChild).
    pub fn signal(&self) -> Result<Point> {
        wait::refuse_fork()?;
        let point = Point::new(self.slot, self.slot.line.advance());
        if let Some(copy) = self.copy {
            // Loaded again, because the load acquires: if another thread's signal comes with this
            // value, that thread's earlier writes come with it, too.
            copy.line.raise(self.slot.line.reached());
        }
        Ok(point)
    }

    /// Returns the value of the last signal, or the start value before the first signal, with one
    /// load.
    #[must_use]
    #[inline]
    pub fn completed(&self) -> u64 {
        self.slot.line.reached()
    }

    /// Makes all later work in the stream wait for a value that the host may not have signalled
    /// yet.
    ///
    /// **It can deadlock**, as [`Timeline::wait_ahead`](super::Timeline::wait_ahead) can. Streams
    /// share hardware channels, so other work may be queued behind this wait. If the host waits for
    /// that work before it signals, neither continues.
    ///
    /// Its driver calls, and its effect in a capture, are those of
    /// [`CudaStreamExt::wait_point`](crate::CudaStreamExt::wait_point).
    ///
    /// # Errors
    ///
    /// The errors of [`CudaStreamExt::wait_point`](crate::CudaStreamExt::wait_point).
    pub fn wait_ahead(&self, stream: &StreamRef, value: u64) -> Result<()> {
        wait_ahead(self.slot, stream, value)
    }

    /// Returns the context that the timeline was created in.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Ends the timeline now and releases all waits. No driver call.
    ///
    /// Streams that wait for later values are released. Hosts that wait for later values get
    /// [`Error::Poisoned`]. A later [`signal`](Self::signal) still reaches its point.
    ///
    /// ```
    /// use cuda_events::{Context, Device, Stream, StreamOptions};
    /// use cuda_timelines::HostTimeline;
    ///
    /// # use cuda_soft_driver::examples::Driver;
    /// let driver = Driver::load()?;
    /// let context = Context::primary(Device::new(driver, 0)?)?;
    /// let stream = Stream::new(&context, StreamOptions::new())?;
    /// let ready = HostTimeline::new(&context)?;
    /// ready.wait_ahead(&stream, ready.completed() + 1)?;
    /// // The CPU stage has failed: its signal will never come.
    /// ready.poison();
    /// stream.synchronize()?; // the stream is released
    /// # Ok::<(), cuda_timelines::Error>(())
    /// ```
    pub fn poison(&self) {
        if !is_forked_child() {
            self.slot.line.poison(None);
            if let Some(copy) = self.copy {
                copy.line.poison(None);
            }
        }
    }
}

/// `wait_ahead` of both kinds of timelines.
pub(super) fn wait_ahead(slot: &'static Slot, stream: &StreamRef, value: u64) -> Result<()> {
    wait::refuse_fork()?;
    let value = value.min(LARGEST);
    if slot.look(value)?.is_done() {
        return Ok(());
    }
    // Noted first, and not taken back: the drop of the timeline must find each that is there.
    {
        let mut state = lock(&slot.state);
        state.ahead = state.ahead.max(value);
    }
    submit_wait(stream, slot, value)
}

impl Drop for HostTimeline {
    fn drop(&mut self) {
        if is_forked_child() {
            return;
        }
        lock(&self.slot.state).submitted = self.slot.line.reached();
        ending::end(self.slot);
        pages::release(self.slot);
        if let Some(copy) = self.copy {
            copy.finish();
        }
        crossing::sweep(crossing::ALL);
    }
}

impl fmt::Debug for HostTimeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostTimeline")
            .field("completed", &self.completed())
            .field("poisoned", &self.slot.line.is_poisoned())
            .field("context", &self.context)
            .finish()
    }
}

static_assertions::assert_impl_all!(HostTimeline: Send, Sync);
