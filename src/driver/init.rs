//! Initialising the driver.

use super::call::{Answer, call};
use super::{Driver, fork};
use crate::error::{Error, Result, log};
use crate::sync::Ordering;

#[cfg(doc)]
use crate::sys::calls::*;

impl Driver {
    /// Initialises the driver, once.
    ///
    /// Why no thread uses the driver before the fork handler is there:
    ///
    /// 1. A thread that has called [`cuInit`] registers the handler, and then stores `initialised`,
    ///    with release.
    /// 2. A thread that loads `true`, with acquire, reads that store: the handler is registered
    ///    before its next call.
    /// 3. A thread that loads `false` does step 1 itself. Both calls can be repeated.
    #[allow(unsafe_code)]
    pub(crate) fn init(self) -> Result<Self> {
        if self.0.initialised.load(Ordering::Acquire) && !fork::forked() {
            return Ok(self);
        }
        // SAFETY: the flags must be 0; the call can be repeated, so two threads may race here.
        let answer = unsafe { call!(self, cuInit(0)) }?;
        if !answer.is_success() {
            return Err(self.init_error(answer));
        }
        fork::note_initialised();
        self.0.initialised.store(true, Ordering::Release);
        Ok(self)
    }

    #[cold]
    fn init_error(self, Answer { function, code, .. }: Answer) -> Error {
        log::note(self.symbols(), function, code);
        Error::Init { code, library: self.file() }
    }
}
