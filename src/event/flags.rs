//! The flags of events.

use bitflags::bitflags;

use crate::debug_by_names::debug_by_names;
use crate::sys::CU_EVENT_DISABLE_TIMING;

#[cfg(doc)]
use super::EventRef;

bitflags! {
    /// Flags for creating an event.
    ///
    /// By default no flag is set. Such an event is the cheapest. It takes no time stamps, a thread
    /// that waits for it spins, and no other process can use it.
    ///
    /// The bits are not those of the driver.
    ///
    /// ```
    /// use cuda_events::{Context, Device, Event, EventFlags};
    ///
    /// # use cuda_soft_driver::examples::Driver;
    /// let driver = Driver::load()?;
    /// let context = Context::primary(Device::new(driver, 0)?)?;
    /// let event = Event::new(&context, EventFlags::TIMING | EventFlags::BLOCKING_SYNC)?;
    /// assert!(event.flags().contains(EventFlags::TIMING));
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    #[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
    pub struct EventFlags: u32 {
        /// The thread sleeps in [`synchronize`](EventRef::synchronize) instead of spinning
        /// (`CU_EVENT_BLOCKING_SYNC`). This saves a core, but the thread wakes later
        /// (`docs/performance.md`). Waits of streams are not affected.
        const BLOCKING_SYNC = 1;
        /// Records take a time stamp, which [`elapsed_ms`](EventRef::elapsed_ms) needs. The flag is
        /// the opposite of the driver's `CU_EVENT_DISABLE_TIMING`. Records of such an event cost
        /// several times as much as others (`docs/performance.md`).
        const TIMING = 2;
        /// Other processes can open the event (`CU_EVENT_INTERPROCESS`). An event cannot have both
        /// `INTERPROCESS` and `TIMING`. Before a record, the stream waits until the previous record
        /// of the event is done. The previous record may come from another process. Records of such
        /// an event cost several times as much as others (`docs/performance.md`).
        const INTERPROCESS = 4;
    }
}

debug_by_names!(EventFlags);

impl EventFlags {
    /// The driver's flags: the same bits, except that the timing bit is inverted.
    pub(super) const fn to_driver(self) -> u32 {
        self.bits() ^ CU_EVENT_DISABLE_TIMING
    }
}
