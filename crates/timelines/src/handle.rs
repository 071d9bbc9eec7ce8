//! Events of which this crate has only the driver's handle.

use cuda_events::foundation::call;
use cuda_events::sys::{CUevent, CUresult};
use cuda_events::{Driver, EventRef, Progress, Result};

/// The driver's handle of an event that something else keeps alive.
///
/// The thread has no share of an event or of a context: dropping the last share would block it.
#[derive(Clone, Copy)]
pub(crate) struct EventHandle {
    driver: Driver,
    raw: CUevent,
}

// SAFETY: CUDA's driver API may be called from any thread, and the handle is an address that this
// crate never dereferences.
#[allow(unsafe_code)]
unsafe impl Send for EventHandle {}

impl EventHandle {
    pub(crate) fn of(event: &EventRef) -> Self {
        Self { driver: event.context().driver(), raw: event.as_raw() }
    }

    /// Queries the event: one `cuEventQuery`.
    ///
    /// # Safety
    ///
    /// The event must be alive.
    #[allow(unsafe_code)]
    pub(crate) unsafe fn query(self) -> Result<Progress> {
        // SAFETY: the caller vouches for the event.
        match unsafe { call!(self.driver, cuEventQuery(self.raw)) } {
            Ok(()) => Ok(Progress::Done),
            Err(error) if error.code() == Some(CUresult::CUDA_ERROR_NOT_READY) => {
                Ok(Progress::Pending)
            }
            Err(error) => Err(error),
        }
    }
}
