//! The host's own accesses to pinned memory, by the protection of pages.
//!
//! From the submission of an asynchronous copy until the host is ordered after it, its pinned pages
//! are protected: those that it reads from writes, those that it writes from all accesses. The
//! device goes on as ever. An access of the host faults: [`faults`] notes it in [`accesses`], lifts
//! the [`protection`], and has the access tried again. The next hook gives it to the checker, which
//! decides by the accessed bytes whether the order is missing. [`calls`] does the same for system
//! calls, which would fail. The page of a flag that a stream will write is protected from writes as
//! well: the host may set the flag back before its next call. [`budget`] bounds what all this may
//! take.

use core::sync::atomic::{AtomicU8, Ordering};

pub(crate) mod accesses;
pub(crate) mod budget;
pub(crate) mod bytes;
pub mod calls;
pub mod faults;
pub(crate) mod protection;

/// The program has not come to the driver yet.
const UNDECIDED: u8 = 0;
const ON: u8 = 1;
const OFF: u8 = 2;

static STATE: AtomicU8 = AtomicU8::new(UNDECIDED);

/// Whether pages may be protected.
pub(crate) fn is_on() -> bool {
    STATE.load(Ordering::Relaxed) == ON
}

/// Whether pages may be protected some day.
pub(crate) fn may_be_on() -> bool {
    STATE.load(Ordering::Relaxed) != OFF
}

/// Nothing is protected from now on.
pub(crate) fn stop() {
    STATE.store(OFF, Ordering::Relaxed);
}

/// Nothing is protected any longer, nor will be: after an error, and in the child of a fork.
pub(crate) fn give_up() {
    stop();
    protection::forget_all();
}

/// Whether accesses wait for the next hook, or pages to be protected anew.
pub(crate) fn has_more() -> bool {
    accesses::any() || protection::has_holes()
}

/// Gets ready to protect pages.
pub(crate) fn prepare() {
    faults::look_up();
    faults::unblock();
    STATE.store(ON, Ordering::Relaxed);
}
