//! The thread's work for points: it checks all that are pending in the process.

use crate::error::{Error, Result};
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::sync::{Arc, Mutex};

use super::foreign::Follow;
use super::queue::{Answers, Entry};
use super::slot::Slot;
use super::wait::ASK;
use crate::sync::lock;
use crate::thread::{LONGEST_PAUSE, Next, Relaxed, Rounds, Seat};
use crate::time::{Moment, now};

/// How long the thread sleeps between two rounds at the least: shorter than for events, as a round
/// of loads costs less than waking up.
const PAUSE: Duration = Duration::from_micros(15);

/// How long to wait between two rounds, when nothing has come or happened for so long.
fn pause(quiet: Duration) -> Duration {
    (quiet / 500).clamp(PAUSE, LONGEST_PAUSE)
}

/// Timelines that are new to the poller.
static ARRIVED: Mutex<Vec<&'static Slot>> = Mutex::new(Vec::new());
/// Other new work of the thread, such as imports that streams have begun to wait for.
static IMPORTS: Mutex<Vec<Arc<dyn Follow>>> = Mutex::new(Vec::new());
static SEAT: Seat = Seat { make: || Box::new(Points::default()) };

/// Whether a call of the thread for this module's work has succeeded. The thread never ends, and
/// each call after that succeeds, so work that was put before a failed call is found at the latest
/// with the call that set this.
static STARTED: AtomicBool = AtomicBool::new(false);

fn call() -> bool {
    let called = SEAT.call(|| {});
    if called {
        STARTED.store(true, Ordering::Release);
    }
    called
}

/// Whether there is the thread, and it looks at what was put before any call that failed. If not,
/// a caller that needs it must call again, even if its work was put there earlier.
pub(super) fn is_started() -> bool {
    STARTED.load(Ordering::Acquire)
}

/// Starts the thread unless there is one.
pub(super) fn start() -> Result<()> {
    if is_started() || call() { Ok(()) } else { Err(Error::NoThread) }
}

/// Has the poller look at the slot, which it has already unless this is the `first` future; whether
/// there is a poller.
pub(super) fn watch(slot: &'static Slot, first: bool) -> bool {
    if first {
        // Also where there is no thread yet: once started, it looks here too.
        lock(&ARRIVED).push(slot);
    }
    call()
}

/// Has the poller look after something, such as the import that a stream waits for, which it has
/// already unless this is the `first` time; whether there is a poller.
pub(super) fn follow(link: Arc<dyn Follow>, first: bool) -> bool {
    if first {
        let mut imports = lock(&IMPORTS);
        // While there is no thread, the same work may be put again and again.
        if is_started() || !imports.iter().any(|put| Arc::ptr_eq(put, &link)) {
            imports.push(link);
        }
    }
    call()
}

/// The timelines with waiting futures.
#[derive(Default)]
struct Points {
    watched: Vec<&'static Slot>,
    /// The imports that streams wait for, and since when their exporters were seen to have ended.
    followed: Vec<(Arc<dyn Follow>, Option<Moment>)>,
    /// Empty between two rounds; kept for its memory.
    due: Vec<Arc<Entry>>,
    /// When the driver was asked last.
    asked: Option<Moment>,
    /// When a future last came or was woken.
    changed: Option<Moment>,
    answers: Answers,
    relaxed: Relaxed,
}

impl Rounds for Points {
    fn round(&mut self, called: bool) -> Next {
        let now = now();
        self.watched.append(&mut lock(&ARRIVED));
        self.followed.extend(lock(&IMPORTS).drain(..).map(|link| (link, None)));
        let woken = self.look(now);
        if woken > 0 || called {
            self.changed = Some(now);
        }
        if self.watched.is_empty() && !self.followed.iter().any(|(link, _)| link.is_relayed()) {
            if self.followed.is_empty() {
                return Next::Called;
            }
            // The device sees the values itself.
            return Next::In { rest: PAUSE, pause: ASK };
        }
        let quiet = self.changed.map_or(Duration::ZERO, |changed| now - changed);
        Next::In { rest: PAUSE, pause: pause(quiet) }
    }
}

impl Points {
    /// One load a timeline, and a call of the driver now and then. How many futures were woken.
    fn look(&mut self, now: Moment) -> usize {
        let ask = self.asked.is_none_or(|asked| now - asked >= ASK);
        if ask {
            self.asked = Some(now);
        }
        let Self { watched, followed, due, answers, relaxed, .. } = self;
        answers.begin_round();
        followed.retain_mut(|(link, gone)| link.follow(ask, now, gone));
        let mut woken = 0;
        watched.retain(|slot| {
            slot.queue.take_reached(slot.line.reached(), due);
            woken += due.len();
            due.drain(..).for_each(|entry| entry.wake(None));
            if ask {
                woken += look_for_failure(slot, answers, relaxed, due);
            }
            !slot.queue.is_left()
        });
        woken
    }
}

/// Wakes all who wait for a timeline that will not get there.
fn look_for_failure(
    slot: &Slot,
    answers: &mut Answers,
    relaxed: &mut Relaxed,
    due: &mut Vec<Arc<Entry>>,
) -> usize {
    let asked = slot.queue.ask(answers, relaxed).and_then(|()| slot.ask_maker());
    if let Err(error) = &asked {
        slot.condemn(error);
    }
    if asked.is_err() || slot.is_over() {
        slot.queue.take_all(due);
    }
    let error = asked.err();
    let woken = due.len();
    due.drain(..).for_each(|entry| entry.wake(error.clone()));
    woken
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The documentation promises the figures.
    #[test]
    fn pauses_grow_with_the_quiet() {
        for (quiet, micros) in [(0, 15), (7_500, 15), (10_000, 20), (100_000, 200)] {
            let quiet = Duration::from_micros(quiet);
            assert_eq!(pause(quiet), Duration::from_micros(micros), "{quiet:?}");
        }
        for millis in [500, 1000, 3_600_000] {
            assert_eq!(pause(Duration::from_millis(millis)), LONGEST_PAUSE);
        }
    }
}
