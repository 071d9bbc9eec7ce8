//! The clock of waits on the host: the machine's, unless the driver has its own.

use core::time::Duration;

#[cfg(doc)]
use crate::driver::Driver;

/// A clock for waits on the host, in place of the machine's clock.
///
/// A software driver may have virtual time, which moves only while something waits for it. Such a
/// driver implements this trait, and attaches its clock with [`Driver::with_clock`]. The waits of
/// this crate with a limit then use that time. Other code that waits on the host should do the
/// same: if [`Driver::clock`] returns a clock, call its [`wait`](Self::wait). The driver of the
/// machine has no such clock.
///
/// ```
/// use std::time::Duration;
///
/// use cuda_events::{Driver, Event, Result};
///
/// /// Waits for the first of two events, for at most `limit`.
/// fn first(driver: Driver, events: [&Event; 2], limit: Duration) -> Result<Option<usize>> {
///     let begun = std::time::Instant::now();
///     let now = || driver.clock().map_or_else(|| begun.elapsed(), |clock| clock.now());
///     let until = now() + limit;
///     loop {
///         for (index, event) in events.into_iter().enumerate() {
///             if event.query()?.is_done() {
///                 return Ok(Some(index));
///             }
///         }
///         if now() >= until {
///             return Ok(None);
///         }
///         match driver.clock() {
///             Some(clock) => clock.wait(until),
///             None => std::thread::sleep(Duration::from_micros(100)),
///         }
///     }
/// }
/// # // The second event is done after ten seconds of virtual time.
/// # use cuda_events::{Context, Device, EventFlags, Stream, StreamOptions};
/// # use cuda_soft_driver::{SoftDriver, Time};
/// # let soft = SoftDriver::builder().time(Time::Virtual).build();
/// # let driver = soft.driver();
/// # let context = Context::primary(Device::new(driver, 0)?)?;
/// # let stream = || Stream::new(&context, StreamOptions::new());
/// # let streams = [stream()?, stream()?];
/// # soft.busy(&streams[0], Duration::from_secs(20));
/// # soft.busy(&streams[1], Duration::from_secs(10));
/// # let slow = streams[0].record_event(EventFlags::empty())?;
/// # let quick = streams[1].record_event(EventFlags::empty())?;
/// # assert_eq!(first(driver, [&slow, &quick], Duration::from_secs(9))?, None);
/// # assert_eq!(first(driver, [&slow, &quick], Duration::from_secs(3600))?, Some(1));
/// # Ok::<(), cuda_events::Error>(())
/// ```
pub trait HostClock: Send + Sync {
    /// Returns the time since a fixed moment. The time never decreases.
    fn now(&self) -> Duration;

    /// Blocks the calling thread until something may have changed, or until the clock shows
    /// `until`.
    ///
    /// The call may return early. If time cannot move, it must return within some milliseconds of
    /// real time. The caller then checks its condition, and calls again. Time does not move during
    /// that check.
    fn wait(&self, until: Duration);

    /// Reports that the calling thread has seen, without a driver call, that `what` is pending.
    /// `what` is any number that stands for the question.
    ///
    /// If a thread asks the same question again and again, this call blocks it as
    /// [`wait`](Self::wait) does, so that time can move.
    fn polled(&self, what: usize);

    /// Reports that a task begins to wait for work of this driver. The clock calls `look` before
    /// time moves. `look` must check everything that tasks wait for, and return after it has woken
    /// each task whose wait is over.
    fn begin_task(&self, look: fn());

    /// Reports that the task's wait is over, or was given up.
    fn end_task(&self);

    /// Reports that the calling thread serves other threads, such as the thread behind `look`. The
    /// clock does not count its calls as the program's, and does not wait for it.
    fn serve(&self);
}
