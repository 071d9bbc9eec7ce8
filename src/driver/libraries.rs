//! Whether this process has loaded more than one driver library.

use super::flag;
use crate::sync::{AtomicUsize, Ordering, global};

/// Notes that a driver library was loaded; `library` identifies it and is not 0.
pub(super) fn note(library: usize) {
    global! {
        static FIRST: AtomicUsize = AtomicUsize::new(0);
    }
    let first = FIRST.compare_exchange(0, library, Ordering::Relaxed, Ordering::Relaxed);
    if first.is_err_and(|first| first != library) {
        // For why every user of this driver sees the flag, see `flag`, step 3.
        flag::set(flag::SEVERAL_LIBRARIES);
    }
}
