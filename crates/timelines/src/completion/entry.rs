//! The state that a future and the poller share.

use core::task::Waker;

use cuda_events::capture::{CaptureMode, ThreadCaptureMode};
use cuda_events::foundation::deferring_observers;
use cuda_events::{Driver, Error, Progress, Result};

use crate::handle::EventHandle;
use crate::sync::{AtomicBool, Mutex, lock};
use crate::thread::contain;

/// Nothing in it belongs to the caller but the waker, which
/// the poller only ever takes out to give it to `wake`.
///
/// Why no query comes after the drop:
///
/// 1. A query is made under the lock of `watch`, from before its `event` is read until the driver
///    has returned ([`Watch::ask`]).
/// 2. The future's destructor takes `event` out under that lock.
/// 3. So each query has either returned when the destructor gets the lock, or finds no event.
/// 4. The box that has the event is dropped after the destructor's body, and so after 2.
///
/// Why a task is woken, or sees the result itself:
///
/// 1. `poll` leaves its waker under the lock, and only if there is no result
///    ([`Entry::wake_later`]). Otherwise it returns the result.
/// 2. The poller stores the result under the lock, and takes the waker out before it gives the lock
///    back ([`Entry::ask`]).
/// 3. One of the two comes first. If it is the waker, the poller finds it and wakes it. If it is
///    the result, `poll` finds it.
/// 4. The poller does ask: the first `poll` hands the entry over after it has left its waker, and
///    the poller keeps an entry until it is over. If there is no poller, the task is woken at once
///    and its next `poll` tries again.
/// 5. A later `poll` with another waker replaces the one that is there, under the lock. So the
///    poller wakes the last one, or has taken the one before, whose result that `poll` finds.
///
/// Why the poller drops nothing of the caller's:
///
/// 1. The event and its context are in the future's box. The entry has the bare handle.
/// 2. A waker that is not needed is dropped by the future: by the `poll` that replaces it, or by
///    the destructor, which finds it if the poller has not taken it.
/// 3. A waker that the poller has taken is consumed by its own `wake`. That hands the share on to
///    the executor. `wake_by_ref` would leave a share here, which this thread would have to drop.
///    If the executor is gone, `wake` itself may drop the task: no other code is left to do it.
///    Keeping the waker in the entry instead would create a reference cycle that is never freed.
/// 4. The poller's share of an entry may be the last one. The entry has neither event nor waker
///    then.
pub(super) struct Entry {
    pub(super) driver: Driver,
    /// Whether the poller has the entry. Only `poll` reads and writes it, with exclusive access to
    /// the future: handing the future to another thread orders these accesses.
    pub(super) registered: AtomicBool,
    pub(super) watch: Mutex<Watch>,
}

/// No code of the caller's runs while this is locked: a waker is cloned, dropped and woken before
/// or after.
pub(super) struct Watch {
    /// None once there is a result, or the future was dropped.
    pub(super) event: Option<EventHandle>,
    pub(super) result: Option<Result<()>>,
    pub(super) waker: Option<Waker>,
}

impl Entry {
    /// The result, if there is one, and whether this very waker will be woken. The first time it
    /// asks the driver.
    pub(super) fn look(&self, registered: bool, waker: &Waker) -> (Option<Result<()>>, bool) {
        let mut watch = deferring_observers(lock(&self.watch));
        if !registered {
            // Otherwise the query would invalidate another thread's capture.
            let relaxed = ThreadCaptureMode::exchange(self.driver, CaptureMode::Relaxed);
            watch.ask(relaxed.as_ref().map(|_| ()).map_err(Error::clone));
        }
        (watch.result.clone(), watch.waker.as_ref().is_some_and(|left| left.will_wake(waker)))
    }

    /// Has `waker` woken when there is a result, unless there is one by now. It gives back the
    /// waker that is not needed, for the caller to drop when nothing is locked.
    pub(super) fn wake_later(&self, waker: Waker) -> (Option<Result<()>>, Option<Waker>) {
        let mut watch = lock(&self.watch);
        match watch.result.clone() {
            None => (None, watch.waker.replace(waker)),
            result => (result, Some(waker)),
        }
    }

    /// Asks once for the poller, if its thread may ask; whether there is nothing left to ask.
    pub(super) fn ask(&self, allowed: Result<()>) -> bool {
        let mut watch = deferring_observers(lock(&self.watch));
        watch.ask(allowed);
        let over = watch.event.is_none();
        let waker = if over { watch.waker.take() } else { None };
        drop(watch);
        if let Some(waker) = waker {
            // It may panic, and must not take this thread with it, on which all the others wait.
            contain(|| waker.wake());
        }
        over
    }
}

impl Watch {
    /// Asks whether the wait is over, unless there is a result or the future was dropped. An error
    /// ends the wait, too.
    #[allow(unsafe_code)]
    fn ask(&mut self, allowed: Result<()>) {
        let Some(event) = self.event else { return };
        // SAFETY: the event is alive. `as_ref` gave it for a borrow of the future's `event`, and
        // that borrow can go on until the future is dropped: the box neither moves its content nor
        // lends it mutably. The destructor takes the handle out under the lock that is held here,
        // before it drops the box. A future that is leaked leaks the box with it, and what is in
        // there borrows from nothing shorter, as it is `'static`.
        let asked = allowed.and_then(|()| unsafe { event.query() });
        self.result = match asked {
            Ok(Progress::Done) => Some(Ok(())),
            Ok(Progress::Pending) => return,
            Err(error) => Some(Err(error)),
        };
        self.event = None;
    }
}
