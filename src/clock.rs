//! The clock of waits on the host: the machine's, unless the driver has its own.

use core::time::Duration;

#[cfg(doc)]
use crate::driver::Driver;

/// A clock for waits on the host, in place of the machine's clock.
///
/// A driver in software may have virtual time, which moves only while something waits for it. Such
/// a driver implements this trait and attaches it with [`Driver::with_clock`]. From then on, waits
/// of this crate with a limit use that time. Other code that waits on the host should do the same:
/// if [`Driver::clock`] returns a clock, wait with [`wait`](Self::wait). `cuda-soft-driver` does it
/// for its virtual time. A real driver has no such clock.
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
    /// Returns the time since some fixed moment. It never decreases.
    fn now(&self) -> Duration;

    /// Blocks the calling thread until something may have changed, or until the clock shows
    /// `until`.
    ///
    /// It may return early, and must return after at most some milliseconds of real time if time
    /// cannot move. The caller then checks what it waits for, and calls again. While the caller
    /// checks, time does not move.
    fn wait(&self, until: Duration);

    /// The calling thread learned, without a driver call, that `what` is pending. `what` is any
    /// number that stands for the question.
    ///
    /// A thread that asks the same thing over and over takes part in the time, too: this blocks it
    /// as [`wait`](Self::wait) does.
    fn polled(&self, what: usize);

    /// A task begins to wait for work of this driver. `look` is called before time moves: it must
    /// check everything that tasks wait for, and return after it has woken each task whose wait is
    /// over.
    fn begin_task(&self, look: fn());

    /// The task's wait is over, or was given up.
    fn end_task(&self);

    /// The calling thread is one that watches for others, such as the one behind `look`. Its calls
    /// are not the program's, and it is not waited for.
    fn serve(&self);
}
