//! The one thread that this crate starts: it looks at what futures wait for.
//!
//! What there is to look at is another file's: `completion/poller.rs` asks the driver for events,
//! and `timeline/poller.rs` loads the values of timelines. Each takes its rounds when it is due.

use core::time::Duration;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::precise_sleep::PreciseSleep;
use crate::capture::{CaptureMode, ThreadCaptureMode};
use crate::{Driver, Result};

/// How long the thread sleeps between two rounds at the least; it is what a future waits for on
/// average twice over.
pub(super) const PAUSE: Duration = Duration::from_micros(25);
/// How long it sleeps at the most, when nothing has happened for long.
pub(super) const LONGEST_PAUSE: Duration = Duration::from_millis(1);

/// How long to wait between two rounds, when nothing has come or happened for so long. What has
/// been quiet for long may be told a little later, in proportion.
pub(super) fn pause(quiet: Duration) -> Duration {
    (quiet / 2000).clamp(PAUSE, LONGEST_PAUSE)
}

/// Whoever has something to look at.
pub(super) trait Rounds: Send {
    /// Takes over what has arrived, and looks once. `called` says whether something may have
    /// arrived.
    fn round(&mut self, called: bool) -> Next;
}

/// When the next round is, after this one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Next {
    /// When somebody calls: there is nothing to look at.
    Called,
    /// After `pause`, or when somebody calls, but not before `rest` is over.
    In { rest: Duration, pause: Duration },
}

/// A place for one kind of rounds on the thread. There is one for each kind, in a static.
pub(super) struct Seat {
    pub(super) make: fn() -> Box<dyn Rounds>,
}

/// The thread's inbox.
///
/// Why no arrival is slept through:
///
/// 1. What arrives is put where the rounds take it from, and after that [`Seat::call`] puts the
///    seat into `called` under this lock. If `asleep` is set, it clears it and notifies.
/// 2. The thread looks at `called` and sets `asleep` under the same lock. It goes to sleep and
///    gives the lock back in one step, which is what a condition variable does.
/// 3. So a seat is called either before the thread looks, which then finds it, or after the thread
///    has begun to sleep. Then `asleep` is set, and the notification reaches the thread.
/// 4. A seat that the thread has found has a round after that, which takes all that arrived before
///    the round. What arrives during the round, too late for it, has called the seat anew.
/// 5. While the thread looks or rests, `asleep` is not set. What arrives then waits until it takes
///    the inbox: for one round and one rest, of a millisecond at the most.
///
/// Why there is one thread: `started` is read and set under the lock, with the start in between.
/// The new thread waits for that lock first.
struct Inbox {
    called: Vec<&'static Seat>,
    /// Whether there is the thread.
    started: bool,
    /// Whether the thread waits for a notification.
    asleep: bool,
}

static INBOX: Mutex<Inbox> =
    Mutex::new(Inbox { called: Vec::new(), started: false, asleep: false });
static ARRIVAL: Condvar = Condvar::new();

fn lock(inbox: &Mutex<Inbox>) -> MutexGuard<'_, Inbox> {
    // It is never left half changed.
    inbox.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Seat {
    /// Hands something over, by `put`, and has a round begin soon; whether there is a thread. If
    /// the system has none, `put` is not called.
    pub(super) fn call(&'static self, put: impl FnOnce()) -> bool {
        let mut inbox = lock(&INBOX);
        if !inbox.started {
            let thread = std::thread::Builder::new().name("cuda-events".to_owned()).spawn(run);
            inbox.started = thread.is_ok();
            if !inbox.started {
                return false;
            }
        }
        put();
        if !inbox.called.iter().any(|seat| core::ptr::eq(*seat, self)) {
            inbox.called.push(self);
        }
        if core::mem::take(&mut inbox.asleep) {
            ARRIVAL.notify_one();
        }
        true
    }
}

/// Drops on a thread of its own what may block when it is dropped, and would hold up all futures on
/// this one. If the system has no thread, it is dropped here.
pub(super) fn drop_apart<T: Send + 'static>(given: T) {
    let name = "cuda-events-drop".to_owned();
    let _ = std::thread::Builder::new().name(name).spawn(move || drop(given));
}

/// A kind of rounds, and when it has its turn.
struct Turn {
    seat: &'static Seat,
    rounds: Box<dyn Rounds>,
    called: bool,
    /// Until when it rests, called or not.
    rested: Instant,
    /// When it is due without being called.
    next: Option<Instant>,
}

impl Turn {
    /// When it is due; never, if nobody calls.
    fn due(&self) -> Option<Instant> {
        if self.called { Some(self.rested) } else { self.next }
    }

    fn take(&mut self) {
        let next = self.rounds.round(core::mem::take(&mut self.called));
        let now = Instant::now();
        (self.rested, self.next) = match next {
            Next::Called => (now, None),
            Next::In { rest, pause } => (now + rest, Some(now + pause.max(rest))),
        };
    }
}

fn run() {
    let _precise = PreciseSleep::begin();
    let mut turns: Vec<Turn> = Vec::new();
    loop {
        let mut inbox = lock(&INBOX);
        while inbox.called.is_empty() && turns.iter().all(|turn| turn.due().is_none()) {
            inbox.asleep = true;
            inbox = ARRIVAL.wait(inbox).unwrap_or_else(PoisonError::into_inner);
        }
        for seat in inbox.called.drain(..) {
            match turns.iter_mut().find(|turn| core::ptr::eq(turn.seat, seat)) {
                Some(turn) => turn.called = true,
                None => {
                    let (rounds, rested) = ((seat.make)(), Instant::now());
                    turns.push(Turn { seat, rounds, called: true, rested, next: None });
                }
            }
        }
        drop(inbox);
        let now = Instant::now();
        for turn in turns.iter_mut().filter(|turn| turn.due().is_some_and(|due| due <= now)) {
            turn.take();
        }
        let waiting = || turns.iter().filter(|turn| turn.due().is_some());
        let Some(rested) = waiting().map(|turn| turn.rested).min() else { continue };
        // Nothing that comes now could have a round before that.
        std::thread::sleep(rested.saturating_duration_since(Instant::now()));
        if let Some(due) = waiting().filter_map(Turn::due).min() {
            wait_for_call(due.saturating_duration_since(Instant::now()));
        }
    }
}

/// Sleeps until somebody calls, or so long.
fn wait_for_call(time: Duration) {
    let mut inbox = lock(&INBOX);
    if inbox.called.is_empty() && !time.is_zero() {
        inbox.asleep = true;
        let waited = ARRIVAL.wait_timeout(inbox, time);
        waited.unwrap_or_else(PoisonError::into_inner).0.asleep = false;
    }
}

/// The drivers that have this thread's queries leave other threads' captures alone.
#[derive(Default)]
pub(super) struct Relaxed(Vec<Driver>);

impl Relaxed {
    /// Has them do so. It is never set back.
    pub(super) fn with(&mut self, driver: Driver) -> Result<()> {
        if !self.0.contains(&driver) {
            core::mem::forget(ThreadCaptureMode::exchange(driver, CaptureMode::Relaxed)?);
            self.0.push(driver);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The documentation promises the figures.
    #[test]
    fn pauses_grow_with_the_quiet() {
        let pauses = [(0, 25), (10_000, 25), (50_000, 25), (100_000, 50), (1_000_000, 500)];
        for (quiet, micros) in pauses {
            let quiet = Duration::from_micros(quiet);
            assert_eq!(pause(quiet), Duration::from_micros(micros), "{quiet:?}");
        }
        for quiet in [2, 10, 1_000_000] {
            assert_eq!(pause(Duration::from_secs(quiet)), LONGEST_PAUSE);
        }
    }
}
