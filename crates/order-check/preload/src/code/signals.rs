//! Kernels by which the host may see in memory how far the device is: it polls a flag that one of them sets,
//! and so it is after all work before that kernel, of any stream.

use core::sync::atomic::Ordering;
use std::collections::VecDeque;
use std::sync::Arc;

use crate::code::kernel::KernelCode;
use crate::code::time::CANDIDATES;
use crate::lock::{Lock, Rank};

/// Of so many kernels it is known when they were launched last.
const KERNELS: usize = 1024;

/// Those that were launched with memory that the host may access, too, and the last call that launched one
/// which is no longer among them.
static LAUNCHED: Lock<(VecDeque<Arc<KernelCode>>, u64)> =
    Lock::new(Rank::Code, (VecDeque::new(), 0));

/// The number of a launch that may come at any time, as one of a graph does.
pub(crate) const ANY_TIME: u64 = u64::MAX;

/// A kernel with memory of the host is launched by the call with this number.
pub(crate) fn launched(code: &Arc<KernelCode>, number: u64) {
    let is_new = code.last_with_host.fetch_max(number, Ordering::Relaxed) == 0;
    if is_new && let Ok(mut all) = LAUNCHED.lock() {
        all.0.push_back(code.clone());
        if all.0.len() > KERNELS
            && let Some(oldest) = all.0.pop_front()
        {
            all.1 = all.1.max(oldest.last_with_host.swap(0, Ordering::Relaxed));
        }
    }
}

/// The kernels that were launched by this call or later ones; `None` if others may have been.
fn since(number: u64) -> Option<Vec<Arc<KernelCode>>> {
    let all = LAUNCHED.lock().ok().filter(|all| all.1 < number)?;
    let is_since = |code: &&Arc<KernelCode>| code.last_with_host.load(Ordering::Relaxed) >= number;
    Some(all.0.iter().filter(is_since).cloned().collect())
}

/// Whether any of them was launched.
pub(crate) fn any_since(number: u64) -> bool {
    since(number).is_none_or(|all| !all.is_empty())
}

/// Whether the host may have seen that the work of this call is over. The code of kernels may be decoded for
/// it.
pub(crate) fn may_be_since(number: u64) -> bool {
    let may_signal = |code: &Arc<KernelCode>| code.may_signal(CANDIDATES);
    since(number).is_none_or(|all| all.iter().any(may_signal))
}

/// For tests: calls are counted anew.
#[cfg(test)]
pub(crate) fn forget() {
    *LAUNCHED.lock().expect("no panic") = Default::default();
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{KERNELS, any_since, forget, launched, may_be_since, since};
    use crate::code::kernel::KernelCode;

    /// Kernels of which nothing is known, each launched by a call of its own, and the first one again.
    #[test]
    fn launches_count_from_a_call_on() {
        let _turn = crate::hooks::tests::TURN.lock();
        let code = || Arc::new(KernelCode::new("kernel".to_owned(), 90, None));
        const BEGIN: u64 = 100;
        forget();
        let first = code();
        assert!(!any_since(BEGIN) && !may_be_since(BEGIN));
        launched(&first, BEGIN + 5);
        launched(&first, BEGIN + 3);
        assert_eq!([4, 5, 6].map(|at| any_since(BEGIN + at)), [true, true, false]);
        assert_eq!([4, 5, 6].map(|at| may_be_since(BEGIN + at)), [true, true, false]);
        for at in 0..KERNELS as u64 {
            launched(&code(), BEGIN + 10 + at);
        }
        launched(&first, BEGIN + 4);
        // One more than there is room for: another one has its place.
        for number in [4, 5] {
            assert!(since(BEGIN + number).is_none(), "{number}");
        }
        let all = since(BEGIN + KERNELS as u64).expect("they are known");
        assert_eq!(all.len(), 10);
        forget();
    }
}
