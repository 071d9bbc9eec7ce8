//! The futures that wait for points of one timeline.

use core::task::Waker;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::handle::EventHandle;
use crate::sync::{AtomicU64, Mutex, Ordering, lock};
use crate::thread::{Relaxed, contain};
use cuda_events::foundation::{deferring_observers, is_forked_child};
use cuda_events::{Driver, Event};

/// The value, and a number that no other future of the slot has.
pub(super) type Key = (u64, u64);

#[derive(Default)]
pub(super) struct Entry(Mutex<State>);

/// No code of the caller's runs while this is locked: a waker is cloned, dropped and woken before
/// or after.
#[derive(Default)]
struct State {
    waker: Option<Waker>,
    /// The error that the line does not show.
    error: Option<Error>,
    /// Whether it was taken out of the queue to be woken.
    taken: bool,
}

/// The futures that wait for points of one slot, the nearest first.
pub(super) struct Queue {
    /// The least value in the queue, or `u64::MAX`. The poller compares it with the line, and locks
    /// the queue only when a future must be woken. It is stored under the queue's lock; a reader
    /// without the lock may see it late, in a later round.
    next: AtomicU64,
    inner: Mutex<Inner>,
}

struct Inner {
    entries: BTreeMap<Key, Arc<Entry>>,
    numbers: u64,
    /// Whether the poller has the slot.
    watched: bool,
    /// The driver, the handle of the context, and the event.
    health: Option<(Driver, usize, EventHandle)>,
}

/// The driver's results in one round, by driver and context. The waiting futures keep the contexts
/// alive, so no handle is reused.
#[derive(Default)]
pub(super) struct Answers(Vec<(Driver, usize, Result<()>)>);

impl Answers {
    pub(super) fn begin_round(&mut self) {
        self.0.clear();
    }
}

impl Inner {
    fn next(&self) -> u64 {
        self.entries.first_key_value().map_or(u64::MAX, |((value, _), _)| *value)
    }
}

impl Queue {
    pub(super) fn new() -> Self {
        let inner = Inner { entries: BTreeMap::new(), numbers: 0, watched: false, health: None };
        Self { next: AtomicU64::new(u64::MAX), inner: Mutex::new(inner) }
    }

    /// Puts an entry into the queue: its key, and whether the poller must be given the slot.
    pub(super) fn insert(&self, value: u64, entry: Arc<Entry>, health: &Event) -> (Key, bool) {
        let mut inner = lock(&self.inner);
        inner.numbers += 1;
        let key = (value, inner.numbers);
        inner.entries.insert(key, entry);
        let context = health.context();
        inner.health = Some((context.driver(), context.as_raw().addr(), EventHandle::of(health)));
        let first = !core::mem::replace(&mut inner.watched, true);
        self.next.store(inner.next(), Ordering::Relaxed);
        (key, first)
    }

    /// Takes an entry out, if it is there. What it has is dropped with nothing locked.
    pub(super) fn remove(&self, key: &Key, entry: &Entry) {
        let inner = if is_forked_child() {
            // A lock that another thread had at the fork is never released.
            self.inner.try_lock().ok()
        } else {
            Some(lock(&self.inner))
        };
        let Some(mut inner) = inner else { return };
        let queued = inner.entries.remove(key);
        self.next.store(inner.next(), Ordering::Relaxed);
        drop(inner);
        drop(queued);
        let waker = entry.0.try_lock().ok().and_then(|mut state| state.waker.take());
        drop(waker);
    }

    /// Takes out the entries up to the value that the line has reached, if there are any.
    pub(super) fn take_reached(&self, reached: u64, due: &mut Vec<Arc<Entry>>) {
        if self.next.load(Ordering::Relaxed) <= reached {
            self.take(Some(reached), due);
        }
    }

    pub(super) fn take_all(&self, due: &mut Vec<Arc<Entry>>) {
        self.take(None, due);
    }

    fn take(&self, reached: Option<u64>, due: &mut Vec<Arc<Entry>>) {
        let mut inner = lock(&self.inner);
        while let Some(first) = inner.entries.first_entry() {
            if reached.is_some_and(|reached| first.key().0 > reached) {
                break;
            }
            due.push(first.remove());
        }
        self.next.store(inner.next(), Ordering::Relaxed);
    }

    /// Whether no future waits, so the poller forgets the slot. The next future registers it again.
    pub(super) fn is_left(&self) -> bool {
        if self.next.load(Ordering::Relaxed) != u64::MAX {
            return false;
        }
        let mut inner = lock(&self.inner);
        inner.watched = !inner.entries.is_empty();
        !inner.watched
    }

    /// Asks the driver whether the context works, if anybody waits and it was not asked about that
    /// context in this round.
    #[allow(unsafe_code)]
    pub(super) fn ask(&self, round: &mut Answers, relaxed: &mut Relaxed) -> Result<()> {
        let inner = deferring_observers(lock(&self.inner));
        let Some((driver, context, event)) = &inner.health else { return Ok(()) };
        if inner.entries.is_empty() {
            return Ok(());
        }
        if let Some(earlier) =
            round.0.iter().find(|earlier| (earlier.0, earlier.1) == (*driver, *context))
        {
            return earlier.2.clone();
        }
        // SAFETY: the event is alive. Each future in the queue has a share of one event, which is
        // the same for all: a new one is made only when nobody has the old one any more. A future
        // takes itself out under the lock that is held here before it gives up its share. The one
        // that came last has noted the handle.
        let query = || unsafe { event.query() }.map(drop);
        let answer = relaxed.with(*driver).and_then(|()| query()).map_err(Error::from);
        round.0.push((*driver, *context, answer.clone()));
        answer
    }
}

impl Entry {
    /// Wakes the task; with an error that the line does not show.
    pub(super) fn wake(&self, error: Option<Error>) {
        let mut state = lock(&self.0);
        state.error = error;
        state.taken = true;
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            // It may panic, and must not take this thread with it, on which all the others wait.
            contain(|| waker.wake());
        }
    }

    /// Whether no future waits for it any more.
    pub(super) fn is_taken(&self) -> bool {
        lock(&self.0).taken
    }

    /// Has `waker` woken from now on, unless there is an error by now. A waker that is not needed
    /// any more is dropped with nothing locked.
    pub(super) fn wake_later(&self, waker: &Waker) -> Option<Error> {
        let state = lock(&self.0);
        if state.error.is_some() || state.waker.as_ref().is_some_and(|left| left.will_wake(waker)) {
            return state.error.clone();
        }
        drop(state);
        let new = waker.clone();
        let mut state = lock(&self.0);
        let spare = state.waker.replace(new);
        let error = state.error.clone();
        drop(state);
        drop(spare);
        error
    }
}
