//! Waiting for a point on the host.

use core::time::Duration;
use std::sync::Arc;

pub(super) use super::asked::ASK;
use super::slot::Slot;
use crate::error::{Error, Result};
use crate::precise_sleep::PreciseSleep;
use crate::time::{Moment, has_hooks, let_others_run, now, sleep};
use cuda_events::Error::ForkedChild;
use cuda_events::capture::{CaptureMode, ThreadCaptureMode};
use cuda_events::foundation::is_forked_child;
use cuda_events::sys::Function;
use cuda_events::{Event, HostClock, Progress};

/// For how long a sleeper only lets other threads run.
const EAGER: Duration = Duration::from_micros(20);
const SHORTEST_SLEEP: Duration = Duration::from_micros(20);
const LONGEST_SLEEP: Duration = Duration::from_millis(1);
/// A sleep is this part of the time waited so far, so a late wake-up is late in proportion.
const PART: u32 = 64;
/// How many looks a spinner takes between two looks at the clock.
const LOOKS: u32 = 32;

/// How a thread passes the time between two looks.
#[derive(Clone, Copy)]
pub(super) enum Rest {
    Spin,
    Sleep,
}

pub(super) fn wait(slot: &Slot, value: u64, timeout: Duration, rest: Rest) -> Result<Progress> {
    refuse_fork()?;
    if slot.look(value)?.is_done() {
        return Ok(Progress::Done);
    }
    if let Some(clock) = clock_of(slot) {
        return wait_by(clock, slot, value, timeout);
    }
    let started = now();
    let (mut asked, mut health, mut precise) = (Duration::ZERO, None, None);
    loop {
        let waited = now() - started;
        if waited >= timeout {
            return give_up(slot, value, started + waited, &mut health);
        }
        let left = timeout - waited;
        match rest {
            Rest::Spin => spin(slot, value),
            Rest::Sleep if waited < EAGER => let_others_run(),
            Rest::Sleep => {
                precise.get_or_insert_with(PreciseSleep::begin);
                sleep(pause(waited, left));
            }
        }
        if slot.look(value)?.is_done() {
            return Ok(Progress::Done);
        }
        let waited = now() - started;
        if waited - asked >= ASK {
            asked = waited;
            slot.asked.note(started + waited);
            if let Err(error) = ask(slot, &mut health) {
                return slot.look_after(value, error);
            }
        }
    }
}

/// How long to sleep between two looks, after a wait of this length.
fn pause(waited: Duration, left: Duration) -> Duration {
    (waited / PART).clamp(SHORTEST_SLEEP, LONGEST_SLEEP).min(left)
}

/// The clock of the timeline's driver, if it is not the machine's.
#[inline(always)]
pub(super) fn clock_of(slot: &Slot) -> Option<&'static dyn HostClock> {
    if has_hooks() { slot.home().and_then(|(driver, _)| driver.clock()) } else { None }
}

/// A wait by another clock than the machine's, which returns when it is worth while to look again.
fn wait_by(clock: &dyn HostClock, slot: &Slot, value: u64, timeout: Duration) -> Result<Progress> {
    if timeout.is_zero() {
        return polled(clock, slot, value);
    }
    let until = clock.now().saturating_add(timeout);
    let mut health = None;
    // By the machine's clock: in a failed context the other one stands still.
    let mut asked = (clock.now(), now());
    while !slot.look(value)?.is_done() {
        if clock.now() >= until {
            if let Err(error) = ask(slot, &mut health) {
                return slot.look_after(value, error);
            }
            return slot.look(value);
        }
        clock.wait(until);
        if asked.0 != clock.now() {
            asked = (clock.now(), now());
        } else if now() - asked.1 >= ASK {
            asked.1 = now();
            if let Err(error) = ask(slot, &mut health) {
                return slot.look_after(value, error);
            }
        }
    }
    Ok(Progress::Done)
}

/// A question for a point that is pending, by another clock than the machine's.
pub(super) fn polled(clock: &dyn HostClock, slot: &Slot, value: u64) -> Result<Progress> {
    clock.polled(slot.question(value));
    match slot.look(value)? {
        Progress::Done => Ok(Progress::Done),
        Progress::Pending => give_up(slot, value, now(), &mut None),
    }
}

/// The end of a wait whose time is up. A loop of short waits must detect failures, too: the wait
/// asks if no wait has asked for as long as a long wait goes without.
fn give_up(
    slot: &Slot,
    value: u64,
    now: Moment,
    health: &mut Option<Arc<Event>>,
) -> Result<Progress> {
    if !slot.asked.is_due(now) {
        return Ok(Progress::Pending);
    }
    match ask(slot, health) {
        Ok(()) => slot.look(value),
        Err(error) => slot.look_after(value, error),
    }
}

fn spin(slot: &Slot, value: u64) {
    for _ in 0..LOOKS {
        if !matches!(slot.look(value), Ok(Progress::Pending)) {
            return;
        }
        core::hint::spin_loop();
    }
}

/// Asks the driver once whether the context of a timeline works, and the system whether its
/// exporter lives.
pub(super) fn ask_once(slot: &Slot) -> Result<()> {
    ask(slot, &mut None)
}

/// As [`ask_once`]; the event that it asks about is kept in `health` for the next time.
pub(super) fn ask(slot: &Slot, health: &mut Option<Arc<Event>>) -> Result<()> {
    slot.ask_maker()?;
    let event = match health {
        Some(event) => event,
        None => {
            // In a context that has failed nothing can be created either.
            let event = slot.health().inspect_err(|error| slot.condemn(error))?;
            health.insert(event)
        }
    };
    // Otherwise the query would invalidate another thread's capture.
    let relaxed = ThreadCaptureMode::exchange(event.context().driver(), CaptureMode::Relaxed)?;
    let asked = event.query().map(drop).map_err(Error::from);
    drop(relaxed);
    asked.inspect_err(|error| slot.condemn(error))
}

impl Slot {
    /// A number for the question whether the line has a value.
    fn question(&self, value: u64) -> usize {
        core::ptr::from_ref(self.line).addr().wrapping_add(value as usize)
    }

    /// An error if the line is another process's, and that has ended.
    pub(super) fn ask_maker(&self) -> Result<()> {
        match self.foreign() {
            Some(foreign) => foreign.link()?.ask(),
            None => Ok(()),
        }
    }

    /// Poisons the line if the error is one after which its stream writes nothing any more. The
    /// stream of another process's line goes on.
    pub(super) fn condemn(&self, error: &Error) {
        if let Some(code) = error.code()
            && error.is_sticky()
            && self.foreign().is_none()
        {
            self.fail(code);
        }
    }
}

/// In a forked child nothing signals, and the driver cannot be asked.
pub(super) fn refuse_fork() -> Result<()> {
    if is_forked_child() {
        return Err(ForkedChild { function: Function::cuEventQuery }.into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The documentation promises the figures.
    #[test]
    fn a_sleep_is_a_part_of_the_time_waited() {
        let ends = [(0, 20), (1_280, 20), (2_560, 40), (32_000, 500), (64_000, 1000)];
        for (waited, micros) in ends {
            let waited = Duration::from_micros(waited);
            assert_eq!(pause(waited, Duration::MAX), Duration::from_micros(micros), "{waited:?}");
        }
        assert_eq!(pause(Duration::from_secs(60), Duration::MAX), LONGEST_SLEEP);
        // A pause ends with the timeout at the latest.
        let left = Duration::from_micros(7);
        assert_eq!(pause(Duration::from_secs(60), left), left);
    }
}
