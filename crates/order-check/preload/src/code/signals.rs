//! Kernels that are in an order with the host by flags in its memory. The host polls a flag that one of them
//! sets: it is after all work before that kernel then, of any stream. Or the kernel polls one that the host sets:
//! work behind it waits for what the host does before.

use core::sync::atomic::Ordering;
use std::collections::VecDeque;
use std::sync::Arc;

use crate::code::kernel::KernelCode;
use crate::code::time::CANDIDATES;
use crate::lock::{Lock, Rank};

/// Of so many kernels it is known when they were launched first and last.
const KERNELS: usize = 1024;

/// The number of a launch that may come at any time, as one of a graph does.
pub(crate) const ANY_TIME: u64 = u64::MAX;

const SIGNALS: &str = "the host may see in memory how far it is, and such an order is not seen";

const HOLDS: &str =
    "a kernel before it may wait for the host through memory, and such an order is not seen";

/// Those that were launched with memory that the host may access, too.
struct Launched {
    /// With the call that launched each first.
    codes: VecDeque<(u64, Arc<KernelCode>)>,
    /// Whether there were more.
    are_more: bool,
}

static LAUNCHED: Lock<Launched> =
    Lock::new(Rank::Code, Launched { codes: VecDeque::new(), are_more: false });

/// A kernel with memory of the host is launched by the call with this number.
pub(crate) fn launched(code: &Arc<KernelCode>, number: u64) {
    let is_new = code.last_with_host.fetch_max(number, Ordering::Relaxed) == 0;
    if is_new && let Ok(mut all) = LAUNCHED.lock() {
        if all.codes.len() == KERNELS {
            all.are_more = true;
        } else {
            let first = if number == ANY_TIME { 0 } else { number };
            all.codes.push_back((first, code.clone()));
        }
    }
}

/// Whether there are any of them.
pub(crate) fn any() -> bool {
    LAUNCHED.lock().map_or(true, |all| !all.codes.is_empty())
}

/// Why the host may be in an order with the work of this call. The code of kernels may be decoded for it.
pub(crate) fn may_order(number: u64) -> Option<&'static str> {
    let codes = match LAUNCHED.lock() {
        Ok(all) if !all.are_more => all.codes.clone(),
        _ => return Some(SIGNALS),
    };
    codes.iter().find_map(|(first, code)| {
        let is_since = code.last_with_host.load(Ordering::Relaxed) >= number;
        if is_since && code.has_flags(CANDIDATES).signals {
            return Some(SIGNALS);
        }
        (*first < number && code.has_flags(CANDIDATES).waits).then_some(HOLDS)
    })
}

/// For tests: calls are counted anew.
#[cfg(test)]
pub(crate) fn forget() {
    *LAUNCHED.lock().expect("no panic") = Launched { codes: VecDeque::new(), are_more: false };
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{ANY_TIME, HOLDS, KERNELS, SIGNALS, any, forget, launched, may_order};
    use crate::code::kernel::KernelCode;

    /// Kernels of which nothing is known, so they may signal what is before them, and hold back what is behind.
    #[test]
    fn launches_count_from_their_calls_on() {
        let _turn = crate::hooks::tests::TURN.lock();
        let code = || Arc::new(KernelCode::new("kernel".to_owned(), 90, None));
        forget();
        assert!(!any() && may_order(1).is_none());
        let first = code();
        for number in [5, 7, 6] {
            launched(&first, number);
        }
        assert!(any());
        let found = [4, 7, 8].map(may_order);
        assert_eq!(found, [Some(SIGNALS), Some(SIGNALS), Some(HOLDS)]);
        forget();
        launched(&code(), ANY_TIME);
        assert_eq!(may_order(1), Some(SIGNALS));
        forget();
        let all: Vec<_> = (0..KERNELS as u64).map(|at| (code(), 10 + at)).collect();
        all.iter().for_each(|(code, at)| launched(code, *at));
        assert_eq!(may_order(5000), Some(HOLDS));
        launched(&code(), 4000);
        assert_eq!(may_order(5000), Some(SIGNALS), "there are more than it knows");
        forget();
    }
}
