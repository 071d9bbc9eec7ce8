//! This process's knowledge about its own line that others may write.

use super::line::{self, Line};
use crate::error::{Error, Result};
use crate::sync::{AtomicU32, Ordering};
use cuda_events::Progress;
use cuda_events::sys::CUresult;

/// This process's knowledge about its own line that others may write: whether its driver has
/// reported that the context failed.
#[derive(Default)]
pub(super) struct Known(AtomicU32);

impl Known {
    /// Poisons the line, because the context has failed with this code.
    pub(super) fn fail(&self, line: &Line, code: CUresult) {
        // First, so that a thread that sees the poison knows the reason. Spare exchange: the checks
        // have one failure. With two, the first stays.
        let order = Ordering::Relaxed;
        let _ = self.0.compare_exchange(0, code.0, Ordering::Release, order);
        line.poison(Some(code));
    }

    pub(super) fn failure(&self) -> Option<Error> {
        let code = CUresult(self.0.load(Ordering::Acquire));
        (code != CUresult::CUDA_SUCCESS).then(|| line::failure(code))
    }

    /// Interprets a look at the line, if the value was not reached. Any process with the file may
    /// have written a reason there: a code of the driver would mean that this process's own context
    /// has failed.
    #[cold]
    pub(super) fn judge(
        &self,
        seen: Result<Progress>,
        reached: impl FnOnce() -> bool,
    ) -> Result<Progress> {
        match (self.failure(), seen) {
            (None, Ok(seen)) => Ok(seen),
            // Reached after that look, and before the context failed.
            _ if reached() => Ok(Progress::Done),
            (Some(failure), _) => Err(failure),
            (None, Err(_)) => Err(Error::Poisoned),
        }
    }
}
