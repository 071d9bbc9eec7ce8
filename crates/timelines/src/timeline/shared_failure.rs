//! The failure of the context of a line that other processes may write.

use super::line::{self, Line};
use crate::error::{Error, Result};
use crate::sync::{AtomicU32, Ordering};
use cuda_events::Progress;
use cuda_events::sys::CUresult;

/// Whether this process's driver has reported that the context of its line failed. Other processes
/// may write the line, so it does not show that.
#[derive(Default)]
pub(super) struct Failure(AtomicU32);

impl Failure {
    /// Poisons the line, because the context has failed with this code.
    pub(super) fn record(&self, line: &Line, code: CUresult) {
        // First, so that a thread that sees the poison finds the reason. Spare exchange: the checks
        // have one failure. With two, the first stays.
        let order = Ordering::Relaxed;
        let _ = self.0.compare_exchange(0, code.0, Ordering::Release, order);
        line.poison(Some(code));
    }

    pub(super) fn error(&self) -> Option<Error> {
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
        match (self.error(), seen) {
            (None, Ok(seen)) => Ok(seen),
            // Reached after that look, and before the context failed.
            _ if reached() => Ok(Progress::Done),
            (Some(failure), _) => Err(failure),
            (None, Err(_)) => Err(Error::Poisoned),
        }
    }
}
