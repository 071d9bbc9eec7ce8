//! The end of a timeline that is dropped.

use std::sync::Arc;

use super::foreign::Follow;
use super::slot::Slot;
use super::{file, rounds, wait};
use crate::sync::lock;
use crate::thread::give_back;
use crate::time::Moment;

/// Ends a timeline that was dropped: it signals no more. Waits for values above the last signal are
/// released after it. If that signal is pending, the crate's thread does this. It makes no driver
/// call. If the last signal was refused, this process cannot know when it has happened.
pub(super) fn end(slot: &'static Slot) {
    if slot.close() {
        follow(Ending { slot, passed: None });
    }
}

/// Ends a timeline that was dropped, whose line other processes can write. Its stream was given
/// the end of all waits, and after it the value of the mark, which is this process's own line.
pub(super) fn end_exposed(slot: &'static Slot, mark: &'static Slot, value: u64) {
    follow(Ending { slot, passed: Some((mark, value)) });
}

fn follow(ending: Ending) {
    let slot = ending.slot;
    if !ending.is_over() && !rounds::follow(Arc::new(ending), true) {
        // The system has no thread for it, and nobody must wait forever.
        slot.line.poison(None);
        lock(&slot.state).ended = true;
    }
}

/// The thread's work for a timeline that was dropped while a signal was pending, and for which a
/// stream waits ahead.
struct Ending {
    slot: &'static Slot,
    /// If other processes can write the line: where, and by which value, the stream shows that it
    /// has passed its last signal.
    passed: Option<(&'static Slot, u64)>,
}

impl Ending {
    /// Releases the waits, if the last signal has happened; returns whether nothing is left to do.
    fn is_over(&self) -> bool {
        let Some((mark, value)) = self.passed else { return self.slot.release_waits() };
        // A later owner of the mark's line continues from the value.
        let over = self.slot.is_finished() || mark.line.reached() >= value;
        if over {
            self.slot.finish();
        }
        over
    }
}

impl Follow for Ending {
    fn is_relayed(&self) -> bool {
        false
    }

    fn follow(&self, ask: bool, _now: Moment, _gone: &mut Option<Moment>) -> bool {
        if !ask {
            return true;
        }
        if self.is_over() {
            file::sweep();
            return false;
        }
        // A failed context never signals; the question poisons. One that somebody else owns may end
        // with the last share that this program holds knowingly, and is not asked.
        if let Some((_, Some(context))) = self.slot.home() {
            if !context.is_borrowed() {
                let _ = wait::ask_once(self.slot);
            }
            give_back(context);
        }
        true
    }
}
