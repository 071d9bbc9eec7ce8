//! The end of a timeline: poison, and the drop.

use core::sync::atomic::Ordering;
use std::sync::Arc;

use cuda_events::foundation::{deferring_observers, is_capture_under_way, is_forked_child};
use cuda_events::mem_ops::WriteValueFlags;

use super::foreign::Follow;
use super::line::Line;
use super::slot::{Slot, State};
use super::{ENDS, Timeline, crossing, file, pages, refuse_fork, rounds, wait};
use crate::error::Result;
use crate::sync::lock;
use crate::thread::give_back;
use crate::time::Moment;

impl Timeline {
    /// The method [`poison`](Self::poison).
    pub(super) fn poison_now(&self) -> Result<()> {
        refuse_fork()?;
        // Before the lock: a signal of another thread may have it, and wait for a stream that this
        // releases.
        self.release_now();
        self.end(&mut deferring_observers(lock(&self.slot.state)))
    }

    /// The method [`release_waits`](Self::release_waits).
    pub(super) fn release_now(&self) {
        self.special.fetch_or(ENDS, Ordering::Relaxed);
        self.slot.line.poison(None);
    }

    /// Has the stream end all waits after its last signal, if it still works.
    #[allow(unsafe_code)]
    fn end(&self, state: &mut State) -> Result<()> {
        state.over = true;
        if self.is_foreign() || is_capture_under_way() {
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
        // Also for a stream that the timeline created: a graph would keep the addresses.
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
        // written at each launch.
        let captures = self.word.is_some() && self.refuse_capture().is_err();
        let mut state = deferring_observers(lock(&self.slot.state));
        let passed = self.mark.and_then(|mark| Some((mark, self.end_exposed(mark, &mut state)?)));
        if passed.is_some() {
            // The stream's own writes end the waits.
        } else if state.refused == Some(state.submitted) && self.slot.is_awaited(&state) {
            // Only the stream shows when it has passed a signal that may not be there.
            if self.end(&mut state).is_err() {
                self.slot.line.poison(None);
            }
        } else if let Some(word) = self.word.as_ref().filter(|_| !state.over && !captures) {
            // The host cannot store there. Nobody could be given an error.
            let _ = self.write_word(word, Line::end_after(state.submitted));
        }
        drop(state);
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

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use crate::{Error, HostTimeline, TimelineFile};
    use cuda_events::{Context, Device, Stream, StreamOptions};
    use cuda_soft_driver::{Fault, SoftDriver, abi::CUresult};

    /// Where the driver refuses the write of the mark, it may have taken it all the same: a later
    /// owner of the line would see it.
    #[test]
    fn a_mark_that_was_refused_is_not_used_again() {
        let soft = SoftDriver::new();
        let context = Device::new(soft.driver(), 0).and_then(Context::primary).unwrap();
        let file = TimelineFile::writable(&context).unwrap();
        // The first write is that of the end in the file. None strikes at the third.
        for (nth, after, refused) in [(2, false, true), (2, true, true), (3, false, false)] {
            let stream = Stream::new(&context, StreamOptions::new()).unwrap();
            let timeline = Timeline::shared(stream, &file).unwrap();
            timeline.signal().unwrap();
            let mark = timeline.mark.unwrap();
            let fault = Fault::on("cuStreamWriteValue64*").nth(nth).answer(CUresult(999));
            soft.inject(if after { fault.after_the_work() } else { fault });
            drop(timeline);
            soft.clear_faults();
            context.synchronize().unwrap();
            let found = (mark.is_lost(), mark.is_idle());
            assert_eq!(found, (refused, !refused), "{nth} {after}");
        }
    }

    /// Where a timeline's stream is gone, another one ends it once its signals are reached. A signal
    /// that was pending takes the poison away from streams.
    #[test]
    fn waits_are_released_without_the_stream() {
        let soft = SoftDriver::new();
        let context = Device::new(soft.driver(), 0).and_then(Context::primary).unwrap();
        let stream = || Stream::new(&context, StreamOptions::new()).unwrap();
        let (latch, follower) = (HostTimeline::new(&context).unwrap(), stream());
        let mut timeline = Timeline::new(stream()).unwrap();
        latch.wait_ahead(timeline.stream(), 1).unwrap();
        timeline.signal().unwrap();
        timeline.wait_ahead(&follower, 5).unwrap();
        timeline.release_waits().unwrap();
        follower.synchronize().unwrap();
        assert_eq!(timeline.signal().map(drop), Err(Error::Poisoned));
        assert_eq!(timeline.move_to(stream()), Ok(false), "a signal is pending");
        latch.signal().unwrap();
        timeline.stream().synchronize().unwrap();
        assert!(!timeline.slot.line.releases_all(), "the signal has written over it");
        assert_eq!(timeline.move_to(stream()), Ok(true));
        assert_eq!(timeline.poison(), Ok(()));
        context.synchronize().unwrap();
        assert!(timeline.slot.line.releases_all());
        assert_eq!(timeline.move_to(stream()), Ok(false), "it has ended");
    }

    /// A poison may wait for the lock of a signal that is blocked in the driver. No later signal
    /// takes the lock before it.
    #[test]
    fn a_poison_comes_before_later_signals() {
        let soft = SoftDriver::new();
        let context = Device::new(soft.driver(), 0).and_then(Context::primary).unwrap();
        let timeline = Timeline::new(Stream::new(&context, StreamOptions::new()).unwrap()).unwrap();
        timeline.signal().unwrap();
        let blocked = lock(&timeline.slot.state);
        std::thread::scope(|scope| {
            let poison = scope.spawn(|| timeline.poison());
            while !timeline.slot.line.is_poisoned() {
                std::thread::yield_now();
            }
            let later = scope.spawn(|| timeline.signal().map(drop));
            // It does not wait for the lock, which is released below.
            assert_eq!(later.join().unwrap(), Err(Error::Poisoned));
            assert!(!poison.is_finished());
            drop(blocked);
            assert_eq!(poison.join().unwrap(), Ok(()));
        });
    }
}
