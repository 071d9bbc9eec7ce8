//! The end of a timeline that is dropped.

use std::sync::Arc;

use super::foreign::Follow;
use super::slot::Slot;
use super::{file, poller, wait};
use crate::ext::needs::{Moment, keeps};
use crate::ext::poller::give_back;

/// Ends a timeline that was dropped: it signals no more. Waits for values above the last signal are
/// released after it. If that signal is pending, the crate's thread does this. It makes no driver
/// call. If the last signal was refused, this process cannot know when it has happened.
pub(super) fn end(slot: &'static Slot) {
    if slot.close() && !slot.release_waits() && !poller::follow(Arc::new(Ending(slot)), true) {
        // The system has no thread for it, and nobody must wait forever.
        slot.line.poison(None);
    }
}

/// The thread's work for a timeline that was dropped while a signal was pending, and for which a
/// stream waits ahead.
struct Ending(&'static Slot);

impl Follow for Ending {
    fn is_relayed(&self) -> bool {
        false
    }

    fn follow(&self, ask: bool, _now: Moment, _gone: &mut Option<Moment>) -> bool {
        if !ask {
            return true;
        }
        if self.0.release_waits() {
            file::sweep();
            return false;
        }
        // A failed context never signals; the question poisons. One that somebody else owns may end
        // with the last share that this program holds knowingly, and is not asked.
        if let Some((_, Some(context))) = self.0.home() {
            if keeps(&context) {
                let _ = wait::ask_once(self.0);
            }
            give_back(context);
        }
        true
    }
}
