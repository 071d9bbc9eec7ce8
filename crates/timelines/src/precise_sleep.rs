//! Short sleeps.

/// Makes the calling thread's short sleeps as short as they are asked to be, until it is dropped;
/// Linux adds 50 µs otherwise.
pub(super) struct PreciseSleep(#[cfg(target_os = "linux")] Option<core::ffi::c_ulong>);

#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
mod slack {
    use core::ffi::{c_int, c_ulong};

    const PR_SET_TIMERSLACK: c_int = 29;
    const PR_GET_TIMERSLACK: c_int = 30;

    unsafe extern "C" {
        fn prctl(option: c_int, ...) -> c_int;
    }

    pub(super) fn get() -> Option<c_ulong> {
        // SAFETY: the option takes nothing and returns a number of this thread.
        let nanoseconds = unsafe { prctl(PR_GET_TIMERSLACK) };
        c_ulong::try_from(nanoseconds).ok()
    }

    pub(super) fn set(nanoseconds: c_ulong) {
        // SAFETY: the option takes one number and concerns this thread only.
        unsafe { prctl(PR_SET_TIMERSLACK, nanoseconds) };
    }
}

#[cfg(target_os = "linux")]
impl PreciseSleep {
    pub(super) fn begin() -> Self {
        let before = slack::get();
        if before.is_some() {
            slack::set(1000);
        }
        Self(before)
    }
}

#[cfg(target_os = "linux")]
impl Drop for PreciseSleep {
    fn drop(&mut self) {
        if let Some(before) = self.0 {
            slack::set(before);
        }
    }
}

#[cfg(not(target_os = "linux"))]
impl PreciseSleep {
    pub(super) fn begin() -> Self {
        Self()
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// The thread is the program's.
    #[test]
    #[cfg_attr(miri, ignore = "Miri has no prctl")]
    fn the_threads_own_sleeps_are_as_before() {
        slack::set(70_000);
        let precise = PreciseSleep::begin();
        assert_eq!(slack::get(), Some(1000));
        drop(precise);
        assert_eq!(slack::get(), Some(70_000));
    }
}
