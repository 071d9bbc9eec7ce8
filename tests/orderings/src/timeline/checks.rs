//! Lines, what is known of another process's, the relay, and the queue of futures.

use std::sync::Arc;
use std::task::{Wake, Waker};

use loom::sync::Mutex;
use loom::thread;

use super::followed::{Called, Followed};
use super::foreign::Foreign;
use super::line::{LARGEST, Line};
use super::queue::{Entry, Key, Queue};
use super::shared_failure::Failure;
use crate::sys::{CUresult, Function};
use crate::world::Probe;
use crate::{Check, Driver, Error, Event, Progress};

pub const ALL: &[Check] = &[
    ("line_publishes", line_publishes),
    ("line_counts", line_counts),
    ("line_has_the_cause", line_has_the_cause),
    ("line_ends_by_itself_only", line_ends_by_itself_only),
    ("relay_publishes", relay_publishes),
    ("followed_by_one", followed_by_one),
    ("followed_to_the_largest", followed_to_the_largest),
    ("called_by_each_signal", called_by_each_signal),
    ("context_fails_after_its_signal", context_fails_after_its_signal),
    ("failure_is_recorded", failure_is_recorded),
    ("maker_ends_after_its_signal", maker_ends_after_its_signal),
    ("queue_forgets_nobody", queue_forgets_nobody),
    ("queue_takes_who_can_see_it", queue_takes_who_can_see_it),
    ("queue_returns_errors", queue_returns_errors),
    ("queue_marks_whom_it_takes", queue_marks_whom_it_takes),
];

fn is_done(line: &Line, value: u64) -> bool {
    line.look(value) == Ok(Progress::Done)
}

/// Who sees a value sees what was done before its signal, by `look` and by `reached`.
fn line_publishes() {
    let (line, probe) = (Arc::new(Line::default()), Probe::new());
    let host = {
        let line = Arc::clone(&line);
        thread::spawn(move || {
            probe.change();
            line.advance();
        })
    };
    let other = {
        let line = Arc::clone(&line);
        thread::spawn(move || {
            if line.reached() == 1 {
                probe.look();
            }
        })
    };
    if is_done(&line, 1) {
        probe.look();
    }
    host.join().unwrap();
    other.join().unwrap();
}

/// Threads that signal at once get values of their own, and the last value stands for all of them.
fn line_counts() {
    let (line, probes) = (Arc::new(Line::default()), [Probe::new(), Probe::new()]);
    let threads = probes.map(|probe| {
        let line = Arc::clone(&line);
        thread::spawn(move || {
            probe.change();
            line.advance()
        })
    });
    if is_done(&line, 2) {
        probes.into_iter().for_each(|probe| _ = probe.look());
    }
    let mut values = threads.map(|thread| thread.join().unwrap());
    values.sort_unstable();
    assert_eq!(values, [1, 2]);
}

/// Who sees that a line is poisoned sees why, and that it stays so when a stream writes over it.
fn line_has_the_cause() {
    let line = Arc::new(Line::default());
    let other = {
        let line = Arc::clone(&line);
        thread::spawn(move || line.poison(Some(CUresult(700))))
    };
    let why = Err(Error::Driver { function: Function::cuEventQuery, code: CUresult(700) });
    let seen = line.look(1);
    assert!(seen == Ok(Progress::Pending) || seen == why, "{seen:?}");
    assert!(seen.is_ok() || line.look(1) == why);
    other.join().unwrap();
    assert_eq!(line.look(1), why);
}

/// A line that a host has poisoned is not taken for one that its own stream has ended.
fn line_ends_by_itself_only() {
    let line = Arc::new(Line::default());
    let other = {
        let line = Arc::clone(&line);
        thread::spawn(move || line.poison(None))
    };
    assert!(!line.has_ended());
    other.join().unwrap();
    assert!(!line.has_ended() && line.releases_all());
}

/// Who sees the value of the relay sees what was done before the maker's signal.
fn relay_publishes() {
    let (line, relay) = (Arc::new(Line::default()), Arc::new(Line::default()));
    let probe = Probe::new();
    let maker = {
        let line = Arc::clone(&line);
        thread::spawn(move || {
            probe.change();
            line.advance();
        })
    };
    let poller = {
        let (line, relay) = (Arc::clone(&line), Arc::clone(&relay));
        thread::spawn(move || relay.raise(line.reached()))
    };
    if is_done(&relay, 1) {
        probe.look();
    }
    maker.join().unwrap();
    poller.join().unwrap();
}

/// The value 1 is reached, and a stream begins to wait for 2 while the thread looks: afterwards the
/// thread has the import, once.
fn followed_by_one() {
    let followed = Arc::new(Followed::new());
    assert!(followed.begin(1));
    let thread = {
        let followed = Arc::clone(&followed);
        thread::spawn(move || usize::from(!followed.is_over(|waited| waited <= 1)))
    };
    let given = usize::from(followed.begin(2));
    assert_eq!(thread.join().unwrap() + given, 1);
}

/// Streams begin to wait for 7 and for 3, in either order: the thread has the import until 7.
fn followed_to_the_largest() {
    let followed = Arc::new(Followed::new());
    let other = {
        let followed = Arc::clone(&followed);
        thread::spawn(move || followed.begin(7))
    };
    let first = followed.begin(3);
    assert!(other.join().unwrap() != first, "one of the two gives it to the thread");
    assert!(!followed.is_over(|waited| waited <= 3));
    assert!(followed.is_over(|waited| waited <= 7));
}

/// Two streams signal while the thread looks, which has the timelines from an earlier signal:
/// afterwards the thread has them, once.
fn called_by_each_signal() {
    let called = Arc::new(Called::new());
    // The signals that are pending on two timelines.
    let states = Arc::new([Mutex::new(0), Mutex::new(0)]);
    assert!(called.begin());
    let poller = {
        let (called, states) = (Arc::clone(&called), Arc::clone(&states));
        let is_over = move || states.iter().all(|state| *state.lock().unwrap() == 0);
        thread::spawn(move || usize::from(!called.is_over(is_over)))
    };
    let signal = |at: usize| {
        let (called, states) = (Arc::clone(&called), Arc::clone(&states));
        move || {
            *states[at].lock().unwrap() += 1;
            usize::from(called.is_off() && called.begin())
        }
    };
    let other = thread::spawn(signal(0));
    let given = signal(1)() + other.join().unwrap();
    assert_eq!(poller.join().unwrap() + given, 1);
}

/// A context that signals and then fails has signalled, for all who learn of its failure.
fn context_fails_after_its_signal() {
    let (line, failure) = (Arc::new(Line::default()), Arc::new(Failure::default()));
    let other = {
        let (line, failure) = (Arc::clone(&line), Arc::clone(&failure));
        thread::spawn(move || {
            line.advance();
            failure.record(&line, CUresult(700));
        })
    };
    let seen = failure.judge(line.look(1), || line.reached() >= 1);
    assert!(seen.is_ok(), "{seen:?}");
    other.join().unwrap();
}

/// Who sees that an own context has poisoned the line knows its failure. The line alone would not
/// tell it from what another process has written there.
fn failure_is_recorded() {
    let (line, failure) = (Arc::new(Line::default()), Arc::new(Failure::default()));
    let other = {
        let (line, failure) = (Arc::clone(&line), Arc::clone(&failure));
        thread::spawn(move || failure.record(&line, CUresult(700)))
    };
    let why = Err(Error::Driver { function: Function::cuEventQuery, code: CUresult(700) });
    let seen = failure.judge(line.look(1), || false);
    assert!(seen == Ok(Progress::Pending) || seen == why, "{seen:?}");
    other.join().unwrap();
}

/// A maker that signals and then ends has signalled, for all who learn of its end.
fn maker_ends_after_its_signal() {
    let (line, foreign) = (Arc::new(Line::default()), Arc::new(Foreign::new()));
    // As the system does: it releases the lock of a process that has ended.
    let life = Arc::new(Mutex::new(true));
    let maker = {
        let (line, life) = (Arc::clone(&line), Arc::clone(&life));
        thread::spawn(move || {
            line.advance();
            *life.lock().unwrap() = false;
        })
    };
    let asks = {
        let foreign = Arc::clone(&foreign);
        thread::spawn(move || {
            if !*life.lock().unwrap() {
                foreign.note_end();
            }
        })
    };
    let seen = foreign.judge(line.look(1), || line.look(1));
    assert!(seen.is_ok(), "{seen:?}");
    maker.join().unwrap();
    asks.join().unwrap();
}

/// Whether the task was woken.
#[derive(Default)]
struct Woken(Mutex<bool>);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        *self.0.lock().unwrap() = true;
    }
}

/// A slot, as far as futures see it, and the poller's inbox.
struct Slot {
    line: Line,
    queue: Queue,
    arrived: Mutex<usize>,
    health: Event,
}

impl Slot {
    fn new() -> Arc<Self> {
        let (line, queue) = (Line::default(), Queue::new());
        let health = Event::of(Driver::new());
        Arc::new(Self { line, queue, arrived: Mutex::new(0), health })
    }

    /// A future's first `poll`: the entry, if it is not done by then.
    fn poll(&self, value: u64) -> Option<(Arc<Entry>, Key, Arc<Woken>)> {
        let (entry, woken) = (Arc::<Entry>::default(), Arc::new(Woken::default()));
        let (key, first) = self.queue.insert(value, Arc::clone(&entry), &self.health);
        if first {
            *self.arrived.lock().unwrap() += 1;
        }
        assert_eq!(entry.wake_later(&Waker::from(Arc::clone(&woken))), None);
        let taken = entry.is_taken();
        if is_done(&self.line, value) {
            self.queue.remove(&key, &entry);
            return None;
        }
        // Nobody takes the value back here.
        assert!(!taken, "it was taken before its value was reached");
        Some((entry, key, woken))
    }

    /// A round of the poller, which has the slot so often.
    fn round(&self, has: &mut usize) {
        *has += core::mem::take(&mut *self.arrived.lock().unwrap());
        assert!(*has <= 1, "the poller was given the slot twice");
        if *has == 0 {
            return;
        }
        let mut due = Vec::new();
        self.queue.take_reached(self.line.reached(), &mut due);
        due.drain(..).for_each(|entry| entry.wake(None));
        *has -= usize::from(self.queue.is_left());
    }
}

/// A future comes while the poller looks after another one and may forget the slot.
fn queue_forgets_nobody() {
    let slot = Slot::new();
    let first = slot.poll(1);
    slot.line.advance();
    let poller = {
        let slot = Arc::clone(&slot);
        thread::spawn(move || {
            let mut has = 0;
            slot.round(&mut has);
            has
        })
    };
    let second = slot.poll(2);
    let mut has = poller.join().unwrap();
    slot.line.advance();
    slot.round(&mut has);
    for (.., woken) in first.into_iter().chain(second) {
        assert!(*woken.0.lock().unwrap());
    }
    assert_eq!(has, 0, "nobody waits, and the poller has the slot");
}

/// The signal comes while a future does, and the poller looks.
fn queue_takes_who_can_see_it() {
    let slot = Slot::new();
    let others = {
        let (one, two) = (Arc::clone(&slot), Arc::clone(&slot));
        let signals = thread::spawn(move || _ = one.line.advance());
        let polls = thread::spawn(move || {
            let mut has = 0;
            two.round(&mut has);
            has
        });
        (signals, polls)
    };
    let future = slot.poll(1);
    others.0.join().unwrap();
    let mut has = others.1.join().unwrap();
    slot.round(&mut has);
    if let Some((.., woken)) = future {
        assert!(*woken.0.lock().unwrap());
    }
}

/// An error that the line does not tell reaches the task: it is woken, or sees it at once.
fn queue_returns_errors() {
    let (entry, woken) = (Arc::<Entry>::default(), Arc::new(Woken::default()));
    let poller = {
        let entry = Arc::clone(&entry);
        thread::spawn(move || entry.wake(Some(Error::ContextDropped)))
    };
    let seen = entry.wake_later(&Waker::from(Arc::clone(&woken)));
    poller.join().unwrap();
    assert!(seen == Some(Error::ContextDropped) || *woken.0.lock().unwrap());
}

/// A task that the poller takes out of the queue is woken, or sees that it was taken: it would wait
/// for nobody otherwise, where its value was put back.
fn queue_marks_whom_it_takes() {
    let (entry, woken) = (Arc::<Entry>::default(), Arc::new(Woken::default()));
    let poller = {
        let entry = Arc::clone(&entry);
        thread::spawn(move || entry.wake(None))
    };
    assert_eq!(entry.wake_later(&Waker::from(Arc::clone(&woken))), None);
    let taken = entry.is_taken();
    poller.join().unwrap();
    assert!(taken || *woken.0.lock().unwrap());
}
