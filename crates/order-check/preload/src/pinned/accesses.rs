//! Accesses of the host that came too early, until the next hook takes them: places of a fixed number,
//! which a handler of a signal fills without a lock.

use core::cell::UnsafeCell;
use core::ffi::c_int;
use core::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};

/// How many accesses can wait for the next hook.
const WAITING_AT_MOST: usize = 64;
/// How many return addresses are taken of an access.
pub(crate) const FRAMES: usize = 32;

/// An access of the host that came too early, for all that the tables show.
pub(crate) struct EarlyAccess {
    pub(crate) bytes: [usize; 2],
    pub(crate) writes: bool,
    pub(crate) thread: u64,
    /// The system call, or the load or the store.
    pub(crate) name: &'static str,
    pub(crate) frames: [usize; FRAMES],
    /// A file with Python's stack, which the reader closes; or -1.
    pub(crate) python: c_int,
}

impl EarlyAccess {
    pub(crate) const NONE: Self =
        Self { bytes: [0; 2], writes: false, thread: 0, name: "", frames: [0; FRAMES], python: -1 };
}

struct Slot {
    /// 0: free; 1: somebody writes or reads it; 2: full.
    state: AtomicU8,
    order: AtomicU64,
    access: UnsafeCell<EarlyAccess>,
}

// SAFETY: who has set the state to 1 has the access alone.
unsafe impl Sync for Slot {}

static RING: [Slot; WAITING_AT_MOST] = [const {
    Slot {
        state: AtomicU8::new(0),
        order: AtomicU64::new(0),
        access: UnsafeCell::new(EarlyAccess::NONE),
    }
}; WAITING_AT_MOST];

static WAITING: AtomicUsize = AtomicUsize::new(0);
static ORDER: AtomicU64 = AtomicU64::new(0);
/// How many accesses found no place.
static LOST: AtomicU64 = AtomicU64::new(0);

/// A number for what happens now. What one thread does later has a larger one.
pub(crate) fn next_order() -> u64 {
    ORDER.fetch_add(1, Ordering::Relaxed)
}

/// Notes an access for the next hook, without a lock.
pub(crate) fn note(fill: impl FnOnce(&mut EarlyAccess)) {
    let claim = |slot: &&Slot| {
        slot.state.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok()
    };
    let Some(slot) = RING.iter().find(claim) else {
        LOST.fetch_add(1, Ordering::Relaxed);
        return;
    };
    // SAFETY: this thread has set the state to 1.
    fill(unsafe { &mut *slot.access.get() });
    slot.order.store(next_order(), Ordering::Relaxed);
    // First, so that whoever takes it never counts below zero.
    WAITING.fetch_add(1, Ordering::Release);
    slot.state.store(2, Ordering::Release);
}

pub(crate) fn any() -> bool {
    WAITING.load(Ordering::Relaxed) > 0
}

/// How many accesses could not be noted.
pub(crate) fn lost() -> u64 {
    LOST.load(Ordering::Relaxed)
}

/// The accesses that wait, each with its number, the oldest first. The caller has the watch's lock.
pub(crate) fn take() -> Vec<(u64, EarlyAccess)> {
    if WAITING.load(Ordering::Relaxed) == 0 {
        return Vec::new();
    }
    let mut all = Vec::new();
    for slot in &RING {
        if slot.state.compare_exchange(2, 1, Ordering::Acquire, Ordering::Relaxed).is_ok() {
            let order = slot.order.load(Ordering::Relaxed);
            // SAFETY: this thread has set the state to 1.
            let access = core::mem::replace(unsafe { &mut *slot.access.get() }, EarlyAccess::NONE);
            slot.state.store(0, Ordering::Release);
            WAITING.fetch_sub(1, Ordering::Relaxed);
            all.push((order, access));
        }
    }
    all.sort_unstable_by_key(|(order, _)| *order);
    all
}

#[cfg(test)]
mod tests {
    use super::{LOST, Ordering, WAITING_AT_MOST, any, lost, note, take};

    /// Accesses come in the order in which they were noted, not in that of their places; those without
    /// a place are counted.
    #[test]
    fn accesses_wait_in_order() {
        let _turn = crate::lock::TURN.lock();
        take();
        note(|first| {
            note(|second| second.name = "second");
            first.name = "first";
        });
        assert!(any());
        let names = || take().into_iter().map(|(_, access)| access.name).collect::<Vec<_>>();
        assert_eq!(names(), ["second", "first"]);
        assert!(!any());
        let before = lost();
        for _ in 0..WAITING_AT_MOST + 2 {
            note(|access| access.name = "one of many");
        }
        assert_eq!((lost() - before, names().len()), (2, WAITING_AT_MOST));
        assert!(!any() && names().is_empty());
        // Other tests in this process expect that no access was lost.
        LOST.store(before, Ordering::Relaxed);
    }
}
