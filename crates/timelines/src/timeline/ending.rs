//! The end of a timeline: poison, and the drop.

use std::sync::Arc;

use cuda_events::foundation::{deferring_observers, is_capture_under_way, is_forked_child};
use cuda_events::mem_ops::WriteValueFlags;

use super::foreign::Follow;
use super::line::Line;
use super::slot::{Slot, State};
use super::{Timeline, crossing, file, pages, refuse_fork, rounds, wait};
use crate::error::Result;
use crate::sync::lock;
use crate::thread::give_back;
use crate::time::Moment;

impl Timeline {
    /// The method [`poison`](Self::poison).
    pub(super) fn end_now(self) -> Result<()> {
        refuse_fork()?;
        self.slot.line.poison(None);
        self.end(&mut deferring_observers(lock(&self.slot.state)))
    }

    /// Has the stream end all waits after its last signal, if it still works.
    #[allow(unsafe_code)]
    fn end(&self, state: &mut State) -> Result<()> {
        state.over = true;
        if self.foreign || is_capture_under_way() {
            self.refuse_capture()?;
        }
        // SAFETY: the state is locked.
        Ok(unsafe { self.write(Line::end_after(state.submitted)) }?)
    }

    /// Has the stream end all waits after its last signal, and then write the mark, whose value is
    /// returned. Only this shows when the last signal has happened, if others can
    /// write the line. None if the stream captures or does not work.
    #[cold]
    #[allow(unsafe_code)]
    fn end_exposed(&self, mark: &'static Slot, state: &mut State) -> Option<u64> {
        // Also for a stream of one's own: a graph would keep the addresses.
        self.refuse_capture().ok()?;
        if !state.over {
            // SAFETY: the state is locked.
            unsafe { self.write(Line::end_after(state.submitted)) }.ok()?;
        }
        let mut own = lock(&mark.state);
        own.submitted += 1;
        let value = own.submitted;
        // SAFETY: as for `write`; the mark is a line of the stream's context.
        let written =
            unsafe { self.stream.write_value64(mark.address(), value, WriteValueFlags::empty()) };
        if written.is_err() {
            // The driver may have taken it all the same, so the line is not used again.
            mark.line.poison(None);
            return None;
        }
        state.over = true;
        Some(value)
    }
}

impl Drop for Timeline {
    fn drop(&mut self) {
        if is_forked_child() {
            return;
        }
        // Also of a capture that other code has begun: what is put into a graph here would be
        // written at each launch, long after the memory was freed.
        let captures = self.word.is_some() && self.refuse_capture().is_err();
        let mut state = deferring_observers(lock(&self.slot.state));
        let passed = self.mark.and_then(|mark| Some((mark, self.end_exposed(mark, &mut state)?)));
        if passed.is_some() {
            // The stream ends it.
        } else if state.refused == Some(state.submitted) && self.slot.is_awaited(&state) {
            // Only the stream shows when it has passed a signal that may not be there.
            if self.end(&mut state).is_err() {
                self.slot.line.poison(None);
            }
        } else if let Some(word) = self.word.as_ref().filter(|_| !state.over && !captures) {
            // The host cannot store there. Nobody could be given an error.
            let _ = self.write_word(word, Line::end_after(state.submitted));
        }
        let signal = (state.refused != Some(state.submitted)).then_some(state.submitted);
        drop(state);
        if let Some(word) = self.word.take() {
            word.end(&self.stream, captures, signal.map(|value| (self.slot, value)));
        }
        match passed {
            Some((mark, value)) => end_exposed(self.slot, mark, value),
            None => end(self.slot),
        }
        pages::release(self.slot);
        self.mark.into_iter().for_each(pages::release);
        crossing::sweep(crossing::ALL);
    }
}

/// Ends a timeline that was dropped: it signals no more. Waits for values above the last signal are
/// released after it. If that signal is pending, the crate's thread does this. It makes no driver
/// call. If the last signal was refused, nothing shows when it has happened.
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
