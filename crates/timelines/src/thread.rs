//! The one thread that this crate starts, for all futures.
//!
//! Two other files do the work: `completion/rounds.rs` queries the driver for events, and
//! `timeline/rounds.rs` loads the values of timelines. Each takes its rounds when it is due.

use core::cell::Cell;
use core::time::Duration;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use cuda_events::capture::{CaptureMode, ThreadCaptureMode};
use cuda_events::{Context, Driver, Result};

use crate::inbox::Inbox;
use crate::precise_sleep::PreciseSleep;
use crate::sync::{global, lock};

/// The shortest sleep between two rounds. On average a future waits half as long.
pub(super) const PAUSE: Duration = Duration::from_micros(25);
/// The longest sleep, when nothing has happened for long.
pub(super) const LONGEST_PAUSE: Duration = Duration::from_millis(1);

/// The pause between two rounds, after a quiet time of this length. A completion after a long quiet
/// time may be noticed a little later, in proportion.
pub(super) fn pause(quiet: Duration) -> Duration {
    (quiet / 2000).clamp(PAUSE, LONGEST_PAUSE)
}

/// One kind of rounds on the thread.
pub(super) trait Rounds: Send {
    /// Accepts arrivals, and runs one round. `called` is set if something may have arrived.
    fn round(&mut self, called: bool) -> Next;

    /// The same, and checks everything, however long that takes.
    fn whole_round(&mut self) -> Next {
        self.round(true)
    }
}

/// When the next round is, after this one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Next {
    /// At the next call: there is nothing to check.
    Called,
    /// After `pause`, or at the next call, but not before `rest` is over.
    In { rest: Duration, pause: Duration },
}

/// A place for one kind of rounds on the thread. There is one for each kind, in a static.
pub(super) struct Seat {
    pub(super) make: fn() -> Box<dyn Rounds>,
}

global! {
    /// The thread's inbox.
    static INBOX: Inbox<Seat> = Inbox::new();
}

/// How many whole rounds were asked for, and how many of those requests were met.
struct Requests {
    made: u64,
    met: u64,
}

static REQUESTS: Mutex<Requests> = Mutex::new(Requests { made: 0, met: 0 });
static MET: Condvar = Condvar::new();
/// A request that wakes the thread, and does nothing else.
static WAKE: Seat = Seat { make: || Box::new(Nothing) };

struct Nothing;

impl Rounds for Nothing {
    fn round(&mut self, _called: bool) -> Next {
        Next::Called
    }
}

fn requests() -> MutexGuard<'static, Requests> {
    lock(&REQUESTS)
}

thread_local! {
    static IS_POLLER: Cell<bool> = const { Cell::new(false) };
}

/// Has the thread check everything, and returns after it has woken all tasks whose wait is over.
/// For clocks that are about to move; see
/// [`HostClock::begin_task`](cuda_events::HostClock::begin_task).
pub(super) fn look_now() {
    // A task that runs on the thread itself has a waker that polls; its executor sees to that.
    if IS_POLLER.get() {
        return;
    }
    let mut state = requests();
    state.made += 1;
    let mine = state.made;
    drop(state);
    if !WAKE.call(|| {}) {
        return;
    }
    let mut state = requests();
    while state.met < mine {
        state = MET.wait(state).unwrap_or_else(PoisonError::into_inner);
    }
}

impl Seat {
    /// Hands something over, by `put`, and has a round begin soon; whether there is a thread. If
    /// the system has none, `put` is not called.
    pub(super) fn call(&'static self, put: impl FnOnce()) -> bool {
        INBOX.call(self, put, || {
            std::thread::Builder::new().name("cuda-events".to_owned()).spawn(run).is_ok()
        })
    }
}

/// Drops a value in a separate thread, because its drop may block and would delay all futures on
/// this one. If the system provides no thread, the drop happens here.
pub(super) fn drop_apart<T: Send + 'static>(given: T) {
    let name = "cuda-events-drop".to_owned();
    let _ = std::thread::Builder::new().name(name).spawn(move || drop(given));
}

/// Gives a share of a context back. If it is the last one, a separate thread ends the context.
pub(super) fn give_back(context: Context) {
    if let Some(last) = context.drop_unless_last() {
        drop_apart(last);
    }
}

/// Runs a waker, which is code of the caller. A panic must not take this thread with it, on which
/// all other futures wait. The panic hook has reported the panic. Its payload is dropped here, and
/// leaked if that panics again.
pub(super) fn contain(code: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(code))
        && let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(payload)))
    {
        core::mem::forget(payload);
    }
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
    /// The time at which it is due; never without a call.
    fn due(&self) -> Option<Instant> {
        if self.called { Some(self.rested) } else { self.next }
    }

    fn take(&mut self, whole: bool) {
        let called = core::mem::take(&mut self.called);
        let next = if whole { self.rounds.whole_round() } else { self.rounds.round(called) };
        let now = Instant::now();
        (self.rested, self.next) = match next {
            Next::Called => (now, None),
            Next::In { rest, pause } => (now + rest, Some(now + pause.max(rest))),
        };
    }
}

fn run() {
    IS_POLLER.set(true);
    let _precise = PreciseSleep::begin();
    let (mut turns, mut called): (Vec<Turn>, _) = (Vec::new(), Vec::new());
    loop {
        INBOX.take(turns.iter().all(|turn| turn.due().is_none()), &mut called);
        for seat in called.drain(..) {
            match turns.iter_mut().find(|turn| core::ptr::eq(turn.seat, seat)) {
                Some(turn) => turn.called = true,
                None => {
                    let (rounds, rested) = ((seat.make)(), Instant::now());
                    turns.push(Turn { seat, rounds, called: true, rested, next: None });
                }
            }
        }
        // Read before the round: what is asked for during the round is met by the next one.
        let made = requests().made;
        let whole = made > requests().met;
        let now = Instant::now();
        for turn in
            turns.iter_mut().filter(|turn| whole || turn.due().is_some_and(|due| due <= now))
        {
            turn.take(whole);
        }
        if whole {
            requests().met = made;
            MET.notify_all();
            continue;
        }
        let waiting = || turns.iter().filter(|turn| turn.due().is_some());
        let Some(rested) = waiting().map(|turn| turn.rested).min() else { continue };
        // Nothing that comes now could have a round before that.
        std::thread::sleep(rested.saturating_duration_since(Instant::now()));
        if let Some(due) = waiting().filter_map(Turn::due).min() {
            INBOX.sleep(due.saturating_duration_since(Instant::now()));
        }
    }
}

/// The drivers that have this thread's queries leave other threads' captures alone.
#[derive(Default)]
pub(super) struct Relaxed(Vec<Driver>);

impl Relaxed {
    /// Has them do so. It is never set back.
    pub(super) fn with(&mut self, driver: Driver) -> Result<()> {
        if !self.0.contains(&driver) {
            if let Some(clock) = driver.clock() {
                clock.serve();
            }
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

    /// Rounds that return one answer, and note how they were taken.
    struct Same(Next, std::sync::mpsc::Sender<&'static str>);

    impl Rounds for Same {
        fn round(&mut self, called: bool) -> Next {
            let _ = self.1.send(if called { "called" } else { "due" });
            self.0
        }

        fn whole_round(&mut self) -> Next {
            let _ = self.1.send("whole");
            self.0
        }
    }

    /// A turn comes after the pause, and after a call as soon as the rest is over; never before.
    #[test]
    fn turns_come_after_their_rest() {
        static SEAT: Seat = Seat { make: || Box::new(Nothing) };
        let (sender, taken) = std::sync::mpsc::channel();
        let turn = |next| {
            let rounds = Box::new(Same(next, sender.clone()));
            Turn { seat: &SEAT, rounds, called: true, rested: Instant::now(), next: None }
        };
        let ms = Duration::from_millis;
        for (rest, pause) in [(2, 5), (5, 2), (3, 3), (0, 1)] {
            let (rest, pause) = (ms(rest), ms(pause));
            let mut turn = turn(Next::In { rest, pause });
            let before = Instant::now();
            turn.take(false);
            assert!(turn.rested >= before + rest && turn.rested <= Instant::now() + rest);
            let due = turn.due().unwrap();
            assert_eq!(due - turn.rested, pause.max(rest) - rest, "{rest:?}, {pause:?}");
            turn.called = true;
            assert_eq!(turn.due(), Some(turn.rested));
            turn.take(true);
            turn.take(false);
            assert_eq!([(); 3].map(|()| taken.recv().unwrap()), ["called", "whole", "due"]);
        }
        let mut turn = turn(Next::Called);
        turn.take(false);
        assert_eq!(turn.due(), None, "not without a call");
        turn.called = true;
        assert_eq!(turn.due(), Some(turn.rested));
    }
}
