//! The clocks of waits: the machine's, which is virtual in unit tests, or the driver's own.

use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};

use cuda_events::{Driver, HostClock};

#[cfg(not(test))]
pub(crate) use real::*;
#[cfg(test)]
pub(crate) use virtually::*;

#[cfg(not(test))]
mod real {
    pub(crate) use std::thread::{sleep, yield_now as let_others_run};
    use std::time::Instant;

    pub(crate) type Moment = Instant;

    pub(crate) fn now() -> Moment {
        Instant::now()
    }
}

/// Whether a timeline's driver has ever had its own clock, or a function for what the host reads.
/// Checks of points read this first.
static HAS_HOOKS: AtomicBool = AtomicBool::new(false);

/// Notes that a timeline uses this driver, before the timeline has points.
pub(crate) fn note_hooks(driver: Driver) {
    if driver.clock().is_some() || driver.host_reads().is_some() {
        HAS_HOOKS.store(true, Ordering::Relaxed);
    }
}

/// Whether a timeline may have such a driver. A thread that has a point got it after `note_hooks`,
/// so it sees the value.
#[inline(always)]
pub(crate) fn has_hooks() -> bool {
    HAS_HOOKS.load(Ordering::Relaxed)
}

/// The wait of a task, as the driver's own clock counts it.
pub(crate) struct TaskWait(&'static dyn HostClock);

/// The clock takes a task off whatever has happened to it.
impl core::panic::RefUnwindSafe for TaskWait {}
impl core::panic::UnwindSafe for TaskWait {}

impl TaskWait {
    /// `None` with the machine's clock.
    pub(crate) fn begin(driver: Driver, look: fn()) -> Option<Self> {
        let clock = driver.clock()?;
        clock.begin_task(look);
        Some(Self(clock))
    }
}

impl Drop for TaskWait {
    fn drop(&mut self) {
        self.0.end_task();
    }
}

impl fmt::Debug for TaskWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TaskWait")
    }
}

/// A clock for each thread that advances only when the thread sleeps or yields, so tests count
/// instead of waiting.
#[cfg(test)]
mod virtually {
    use core::cell::Cell;
    use core::time::Duration;

    thread_local! {
        static NOW: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    }

    pub(crate) type Moment = Duration;

    pub(crate) fn now() -> Moment {
        NOW.get()
    }

    pub(crate) fn sleep(time: Duration) {
        NOW.set(NOW.get() + time);
    }

    pub(crate) fn let_others_run() {
        sleep(Duration::from_micros(1));
    }
}
