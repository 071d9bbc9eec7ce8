//! A forked child that does some work and tells.

pub use cuda_test_harness::fork::in_child;

use cuda_events::sys::functions::cuDriverGetVersion;

use crate::counting::Watched;

impl Watched {
    /// Runs `work` in a forked child, which must make no call through this driver and must not
    /// crash; gives what it returned.
    #[track_caller]
    pub fn none_in_child(&self, work: impl FnOnce() -> String) -> String {
        let (reply, status) = in_child(|| {
            self.made();
            let reply = work();
            assert_eq!(self.made(), [], "calls of a forked child");
            // Had there been one, it would have been written down.
            let mut version = 0;
            // SAFETY: a place for the one integer; the call needs no initialised driver.
            unsafe { (self.driver.symbols().cuDriverGetVersion)(&mut version) };
            assert_eq!(self.made(), [cuDriverGetVersion]);
            reply
        });
        assert_eq!(status, 0, "the child crashed or panicked: wait status {status}");
        reply
    }
}
