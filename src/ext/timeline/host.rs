//! Timelines that the host advances.

use core::fmt;
use std::sync::Arc;

use super::crossing;
use super::descriptor::TimelineDescriptor;
use super::ending;
use super::file::{SharedFile, TimelineFile};
use super::point::{Point, submit_wait};
use super::slot::{self, Slot, lock};
use super::wait;
use crate::ext::needs::forked;
use crate::{Context, Result, StreamRef};

use super::line::LARGEST;

/// A timeline that the host advances, for a stage of the CPU between two stages of the GPU.
///
/// [`signal`](Self::signal) is one step of memory: no driver call and no lock. Any thread may
/// signal; each signal has a value of its own, and the value never goes back.
///
/// A signal of the host happens at once, so that its point is reached when it exists. Streams
/// profit from it by [`wait_ahead`](Self::wait_ahead), which is submitted before the host has
/// signalled. Read its rule about hardware channels. Where the host can submit the second stage
/// after its own, no wait is needed at all.
///
/// Dropping it releases streams that still wait ahead, at once and by no driver call. Nobody can
/// signal any more then. It never blocks; like an event it holds a share of its context, and only
/// [the last share](Context#dropping-the-last-share) can block.
///
/// ```
/// use cuda_events::ext::{HostTimeline, Timeline};
/// # use cuda_events::{Context, Device, Stream, StreamOptions};
/// # let soft = cuda_soft_driver::SoftDriver::new();
/// # let driver = soft.driver();
/// # let context = Context::primary(Device::new(driver, 0)?)?;
/// # let stream = |context| Stream::new(context, StreamOptions::new());
/// # let (first, second) = (stream(&context)?, stream(&context)?);
/// let ready = HostTimeline::new(&context)?;
/// let computed = Timeline::new(first)?;
/// // ... the first stage is put into `computed.stream()` ...
/// let point = computed.signal()?;
/// ready.wait_ahead(&second, ready.completed() + 1)?;
/// // ... the last stage is put into `second` ...
/// point.wait()?;
/// // ... the stage of the CPU ...
/// ready.signal()?;
/// second.synchronize()?;
/// # Ok::<(), cuda_events::Error>(())
/// ```
pub struct HostTimeline {
    slot: &'static Slot,
    context: Context,
    /// Where other processes see it.
    file: Option<Arc<SharedFile>>,
}

impl HostTimeline {
    /// A timeline that nobody has signalled. Streams of all contexts may wait for it.
    ///
    /// No driver call, unless 64 timelines of the context share no page of memory that has room:
    /// then `cuMemHostRegister` and `cuMemHostGetDevicePointer` with the context current.
    ///
    /// # Errors
    ///
    /// What the driver returns; [`Error::ForkedChild`](crate::Error::ForkedChild).
    pub fn new(context: &Context) -> Result<Self> {
        wait::refuse_fork()?;
        let slot = slot::allocate(context)?;
        Ok(Self { slot, context: context.clone(), file: None })
    }

    /// A timeline that other processes see: those which have the file. Its
    /// [descriptor](Self::descriptor) names it for them. Streams and hosts of all of them can wait
    /// for it.
    ///
    /// Dropping it releases all that wait for it. No driver call.
    ///
    /// # Errors
    ///
    /// [`Error::SharedTimeline`](crate::Error::SharedTimeline) with
    /// [`FileFull`](crate::ipc::SharedTimelineError::FileFull);
    /// [`Error::ForkedChild`](crate::Error::ForkedChild).
    pub fn shared(file: &TimelineFile) -> Result<Self> {
        let (file, context) = (Arc::clone(file.shared()), file.context().clone());
        Ok(Self { slot: file.take()?, context, file: Some(file) })
    }

    /// Names the timeline for other processes, if it is [shared](Self::shared).
    pub fn descriptor(&self) -> Option<TimelineDescriptor> {
        self.file.as_ref().and_then(|file| file.descriptor(self.slot))
    }

    /// Reaches the next value, and releases the streams that wait for it.
    ///
    /// Work that waits for it sees what this thread has written until now.
    ///
    /// # Errors
    ///
    /// [`Error::ForkedChild`](crate::Error::ForkedChild), and nothing else.
    pub fn signal(&self) -> Result<Point> {
        wait::refuse_fork()?;
        Ok(Point::new(self.slot, self.slot.line.advance()))
    }

    /// The value of the last signal, or what the first one counts on from: one load.
    #[must_use]
    #[inline]
    pub fn completed(&self) -> u64 {
        self.slot.line.reached()
    }

    /// Makes all work that is put into the stream from now on wait for a value that the host may
    /// not have signalled yet. **It can deadlock**, in the same way as
    /// [`Timeline::wait_ahead`](super::Timeline::wait_ahead): streams share hardware channels, and
    /// work that the host waits for before it signals may stand in line after this very wait.
    ///
    /// Driver calls, errors and captures as for [`StreamRef::wait_point`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn wait_ahead(&self, stream: &StreamRef, value: u64) -> Result<()> {
        wait_ahead(self.slot, stream, value)
    }

    /// The context that it was made in.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Gives the timeline up: streams that wait for values that were not signalled are released,
    /// and hosts that wait for them get [`Error::Poisoned`](crate::Error::Poisoned). No driver
    /// call.
    pub fn poison(self) {
        if !forked() {
            self.slot.line.poison(None);
        }
    }
}

/// `wait_ahead` of both kinds of timelines.
pub(super) fn wait_ahead(slot: &'static Slot, stream: &StreamRef, value: u64) -> Result<()> {
    wait::refuse_fork()?;
    let value = value.min(LARGEST);
    if slot.line.look(value)?.is_done() {
        return Ok(());
    }
    // Noted first, and not taken back: whoever drops the timeline must know of each that is there.
    {
        let mut state = lock(&slot.state);
        state.ahead = state.ahead.max(value);
    }
    submit_wait(stream, slot, value)
}

impl Drop for HostTimeline {
    fn drop(&mut self) {
        if forked() {
            return;
        }
        lock(&self.slot.state).submitted = self.slot.line.reached();
        ending::end(self.slot);
        slot::release(self.slot);
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
