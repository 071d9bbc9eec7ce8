//! Points: places in a timeline.

use core::fmt;
use core::hash::{Hash, Hasher};
use core::time::Duration;

use super::crossing::{self, wait_value};
use super::line::Line;
use super::slot::Slot;
use super::wait::{self, Rest};
use crate::error::{Error, Result};
use crate::time::has_hooks;
use cuda_events::Error::ForkedChild;
use cuda_events::foundation::is_forked_child;
use cuda_events::sys::Function;
use cuda_events::{Progress, StreamRef};

#[cfg(doc)]
use crate::{CudaStreamExt, calls::*};

/// A place in a [timeline](crate::Timeline), which [`signal`](crate::Timeline::signal) returns.
///
/// The point is reached when the stream has done all work that was put into it before the signal.
///
/// A point exists only after its signal was submitted. It is a plain value: copy it, send it to
/// other threads, keep millions. It keeps nothing alive and may outlive its timeline. A point that
/// was reached stays reached.
///
/// ```
/// use cuda_events::{Context, Device, Stream, StreamOptions};
/// use cuda_timelines::Timeline;
///
/// # use cuda_soft_driver::examples::Driver;
/// let driver = Driver::load()?;
/// let context = Context::primary(Device::new(driver, 0)?)?;
/// let stream = Stream::new(&context, StreamOptions::new())?;
/// let timeline = Timeline::new(stream)?;
/// let first = timeline.signal()?;
/// let second = timeline.signal()?;
/// assert_eq!(second.value(), first.value() + 1);
/// second.wait()?;
/// assert!(first.is_done());
/// assert!(second.query()?.is_done());
/// # Ok::<(), cuda_timelines::Error>(())
/// ```
///
/// # Waiting
///
/// | | the thread | delay from the signal |
/// | --- | --- | --- |
/// | [`is_done`](Self::is_done) | checks once, with one load | |
/// | [`query`](Self::query) | checks, and queries the driver if the point is not reached | |
/// | [`spin`](Self::spin), [`spin_timeout`](Self::spin_timeout) | checks all the time, and uses its core | the shortest |
/// | [`wait`](Self::wait), [`wait_timeout`](Self::wait_timeout) | sleeps between checks, for 20 µs at first and for 1 ms at most | grows with the time waited, up to the length of a sleep |
/// | `point.await` | none: the crate's [poller](crate#threads) checks all points | as for [`Completion`](crate::Completion) |
/// | [`CudaStreamExt::wait_point`] | none: the stream waits | |
///
/// `docs/performance.md` has figures of the delays.
///
/// # Failures
///
/// A failed context never signals. So the waiting methods and futures query the driver every 5 ms,
/// and return its error. They detect a failure within 5 ms, plus the time of one driver call. A
/// loop of waits with a short timeout detects it equally soon. `is_done` never queries: a loop
/// around it alone may never end.
///
/// For a point of an [imported](crate::ImportedTimeline) timeline, the waiting methods and
/// futures also check, equally often, whether the exporter's process lives.
///
/// * [`Error::ExporterGone`]: the exporter's process has ended.
/// * [`Error::Poisoned`]: the timeline was [poisoned](crate::Timeline::poison) before it reached
///   the point.
/// * [`Error::ContextDropped`]: the timeline's context has ended, so the driver cannot be queried.
/// * [`ForkedChild`]: all methods except `is_done` return it in a forked child. `is_done` returns
///   what the parent would see.
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
            Ok(Progress::Done) => {
                self.note_read();
                Ok(Progress::Done)
            }
            seen => self.slot.judge(self.value, seen),
        }
    }

    /// What [`Slot::look_after`] gives.
    pub(super) fn look_after(&self, error: Error) -> Result<Progress> {
        let seen = self.slot.look_after(self.value, error)?;
        if seen.is_done() {
            self.note_read();
        }
        Ok(seen)
    }

    /// Reports to a driver that checks it that the calling thread has read a reached point.
    #[inline(always)]
    fn note_read(&self) {
        if has_hooks() {
            self.report_read();
        }
    }

    #[cold]
    fn report_read(&self) {
        if let Some((driver, _)) = self.slot.home()
            && let Some(saw) = driver.host_reads()
        {
            // Not what the word holds by now: that may be a later value, which nobody has waited for.
            let (address, _) = self.line.word();
            saw(address, self.value);
        }
    }

    /// Returns the point's value. Values of one timeline rise by one from signal to signal.
    ///
    /// The first value is not always 1, and a failed signal leaves a gap.
    #[inline]
    pub fn value(&self) -> u64 {
        self.value
    }

    /// Returns whether the point is reached: the stream has done all work before it.
    ///
    /// It is one load: no driver call and no lock, from any number of threads. After `true` the
    /// caller sees the writes of that work. After `false` the point may never be reached;
    /// [`query`](Self::query) reports failures.
    #[must_use = "the work may still be pending"]
    #[inline(always)]
    pub fn is_done(&self) -> bool {
        let is_done = self.line.reached() >= self.value;
        if has_hooks() { self.is_done_with_hooks(is_done) } else { is_done }
    }

    /// For drivers with their own clock, where a loop around `is_done` lets time pass, and for
    /// those that check what was read.
    #[cold]
    fn is_done_with_hooks(&self, is_done: bool) -> bool {
        if !is_done && let Some(clock) = wait::clock_of(self.slot) {
            clock.polled(core::ptr::from_ref(self.line).addr());
        }
        let is_done = self.line.reached() >= self.value;
        if is_done {
            self.report_read();
        }
        is_done
    }

    /// Waits, and reports what the calling thread has read.
    fn wait_for(&self, timeout: Duration, rest: Rest) -> Result<Progress> {
        let progress = wait::wait(self.slot, self.value, timeout, rest)?;
        if progress.is_done() {
            self.note_read();
        }
        Ok(progress)
    }

    /// Returns whether the point is reached, or an error if it never will be. It does not wait.
    ///
    /// No driver call if the point is reached. Otherwise [`cuEventQuery`], between two calls of
    /// [`cuThreadExchangeStreamCaptureMode`], so captures of other threads go on. Unless another
    /// thread waits for this timeline, this method also creates an event and destroys it
    /// ([`cuEventCreate`] with the context current, [`cuEventDestroy`]).
    ///
    /// # Errors
    ///
    /// See [Failures](Self#failures).
    pub fn query(&self) -> Result<Progress> {
        wait::refuse_fork()?;
        if self.look()?.is_pending() {
            if let Some(clock) = wait::clock_of(self.slot) {
                return wait::polled(clock, self.slot, self.value);
            }
            if let Err(error) = wait::ask_once(self.slot) {
                return self.look_after(error);
            }
        }
        self.look()
    }

    /// Blocks until the point is reached. The thread sleeps between checks.
    ///
    /// Driver calls: those of [`query`](Self::query) every 5 ms.
    ///
    /// # Errors
    ///
    /// See [Failures](Self#failures).
    #[doc(alias = "synchronize")]
    pub fn wait(&self) -> Result<()> {
        self.wait_for(Duration::MAX, Rest::Sleep).map(drop)
    }

    /// Blocks until the point is reached, for at most `timeout`, and returns whether it is. The
    /// thread sleeps between checks.
    ///
    /// Driver calls: those of [`query`](Self::query) every 5 ms. They may delay the return beyond
    /// the timeout. Many short waits make them every 5 ms, too.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use cuda_events::{Context, Device, Stream, StreamOptions};
    /// use cuda_timelines::Timeline;
    ///
    /// # use cuda_soft_driver::examples::Driver;
    /// let driver = Driver::load()?;
    /// let context = Context::primary(Device::new(driver, 0)?)?;
    /// let stream = Stream::new(&context, StreamOptions::new())?;
    /// let timeline = Timeline::new(stream)?;
    /// // ... work is put into `timeline.stream()` ...
    /// let point = timeline.signal()?;
    /// if point.wait_timeout(Duration::from_secs(10))?.is_pending() {
    ///     println!("the work takes longer than ten seconds");
    /// }
    /// # Ok::<(), cuda_timelines::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// See [Failures](Self#failures).
    #[doc(alias = "synchronize_timeout")]
    pub fn wait_timeout(&self, timeout: Duration) -> Result<Progress> {
        self.wait_for(timeout, Rest::Sleep)
    }

    /// Spins until the point is reached. It returns earlier than [`wait`](Self::wait), and uses a
    /// core.
    ///
    /// ```
    /// use cuda_events::{Context, Device, Stream, StreamOptions};
    /// use cuda_timelines::Timeline;
    ///
    /// # use cuda_soft_driver::examples::Driver;
    /// let driver = Driver::load()?;
    /// let context = Context::primary(Device::new(driver, 0)?)?;
    /// let stream = Stream::new(&context, StreamOptions::new())?;
    /// let timeline = Timeline::new(stream)?;
    /// let point = timeline.signal()?;
    /// point.spin()?;
    /// assert!(point.is_done());
    /// # Ok::<(), cuda_timelines::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// See [Failures](Self#failures).
    pub fn spin(&self) -> Result<()> {
        self.wait_for(Duration::MAX, Rest::Spin).map(drop)
    }

    /// Spins until the point is reached, for at most `timeout`, and returns whether it is.
    ///
    /// Driver calls are those of [`wait_timeout`](Self::wait_timeout).
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use cuda_events::{Context, Device, Stream, StreamOptions};
    /// use cuda_timelines::Timeline;
    ///
    /// # use cuda_soft_driver::examples::Driver;
    /// let driver = Driver::load()?;
    /// let context = Context::primary(Device::new(driver, 0)?)?;
    /// let stream = Stream::new(&context, StreamOptions::new())?;
    /// let timeline = Timeline::new(stream)?;
    /// // ... short work is put into `timeline.stream()` ...
    /// let point = timeline.signal()?;
    /// // Spins as long as the work usually takes, and sleeps if it takes longer.
    /// if point.spin_timeout(Duration::from_micros(50))?.is_pending() {
    ///     point.wait()?;
    /// }
    /// assert!(point.is_done());
    /// # Ok::<(), cuda_timelines::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// See [Failures](Self#failures).
    pub fn spin_timeout(&self, timeout: Duration) -> Result<Progress> {
        self.wait_for(timeout, Rest::Spin)
    }
}

/// Two points are equal if they have the same value in one timeline.
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

/// The body of [`CudaStreamExt::wait_point`].
#[inline]
pub(crate) fn wait_point(stream: &StreamRef, point: Point) -> Result<()> {
    if is_forked_child() {
        return Err(ForkedChild { function: Function::cuStreamWaitValue64_v2 }.into());
    }
    // What the work before the signal has written is seen by whatever is submitted from now on: the
    // load has seen the value.
    if point.look()?.is_done() {
        return Ok(());
    }
    submit_wait(stream, point.slot, point.value)
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
    // keeps alive, and which ends after the work of its streams. No capture of this crate is under
    // way. Code that begins a capture without this crate vouches for the contexts of its streams.
    Ok(unsafe { wait_value(stream, slot, value) }?)
}

static_assertions::assert_impl_all!(Point: Copy, Send, Sync);

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::Timeline;
    use crate::sync::lock;
    use cuda_events::{Context, Device, Driver, LoadOptions, Stream, StreamOptions};
    use cuda_soft_driver::SoftDriver;

    static READS: Mutex<Vec<(usize, u64)>> = Mutex::new(Vec::new());

    /// A point that is reached when a question about its context fails has been read, too. One that
    /// is not has not.
    #[test]
    #[cfg_attr(miri, ignore = "it runs on the software driver, with which it takes Miri minutes")]
    #[allow(unsafe_code)]
    fn a_point_that_is_reached_after_a_failed_question_was_read() {
        let soft = SoftDriver::new();
        // SAFETY: the software driver has the driver's ABI, and its functions are part of this
        // program.
        let driver = unsafe {
            Driver::from_resolver(&mut |name| soft.resolve(name), &LoadOptions::new()).unwrap()
        };
        let driver = driver.with_host_reads(&|address, value| lock(&READS).push((address, value)));
        let context = Device::new(driver, 0).and_then(Context::primary).unwrap();
        let stream = Stream::new(&context, StreamOptions::new()).unwrap();
        let timeline = Timeline::new(stream).unwrap();
        let point = timeline.signal().unwrap();
        point.wait().unwrap();
        let (word, _) = point.line.word();
        lock(&READS).clear();
        let later = Point::new(point.slot, point.value + 1);
        assert_eq!(later.look_after(Error::ContextDropped), Err(Error::ContextDropped));
        assert_eq!(*lock(&READS), []);
        assert_eq!(point.look_after(Error::ContextDropped), Ok(Progress::Done));
        assert_eq!(*lock(&READS), [(word, point.value)]);
    }
}
