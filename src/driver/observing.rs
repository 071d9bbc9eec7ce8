//! The observers of driver calls.

use core::cell::{Cell, RefCell};
use core::fmt;
use core::mem::{self, ManuallyDrop};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError};
use std::time::{Duration, Instant};

use crate::driver::Driver;
use crate::driver::panics;
use crate::driver::trampolines::{self, Returned, SLOTS, TARGETS, Target};
use crate::error::{Error, Result};
use crate::sys::{CUresult, Function};

#[cfg(doc)]
use crate::sys::calls::*;

/// One driver call that has returned, as passed to an observer; see [`Driver::observe`].
///
/// ```
/// use cuda_events::sys::CUresult;
///
/// # use cuda_soft_driver::examples::Driver;
/// let driver = Driver::load()?;
/// // Prints only slow calls and failed calls.
/// let observed = driver.observe(|call| {
///     if call.result != CUresult::CUDA_SUCCESS || call.elapsed.as_millis() > 10 {
///         eprintln!("{call}");
///     }
/// })?;
/// # let _ = observed;
/// # Ok::<(), cuda_events::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Call<'a> {
    /// The entry point.
    pub function: Function,
    /// The arguments in order, each as a number. A handle or a pointer is its address, a negative
    /// integer is its 32 bits, and an interprocess handle is its first eight bytes.
    pub arguments: &'a [u64],
    /// The code that the call returned.
    pub result: CUresult,
    /// The handle of the object that the call created; `None` for other calls and for calls that
    /// failed.
    ///
    /// [`cuEventCreate`], [`cuIpcOpenEventHandle`], [`cuDevicePrimaryCtxRetain`] and
    /// [`cuStreamEndCapture`] are such calls (see [`EntryPoint::creates`](crate::sys::EntryPoint)).
    /// Their [`arguments`](Self::arguments) contain only the address of the place for the handle.
    pub created: Option<u64>,
    /// The time at which the call began.
    pub started: Instant,
    /// The duration of the call.
    pub elapsed: Duration,
}

/// Prints `cuEventRecord(0x5581c8, 0x5581d0) = CUDA_SUCCESS (0) in 1.3µs`, and for a call that
/// creates `cuEventCreate(0x7ffc30, 2) = CUDA_SUCCESS (0) in 1.3µs, created 0x5581c8`.
impl fmt::Display for Call<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(", self.function)?;
        for (index, argument) in self.arguments.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            // Flags and counts are small, addresses are not.
            if *argument < 4096 {
                write!(f, "{separator}{argument}")?
            } else {
                write!(f, "{separator}{argument:#x}")?
            }
        }
        write!(f, ") = {} in {:?}", self.result, self.elapsed)?;
        self.created.map_or(Ok(()), |handle| write!(f, ", created {handle:#x}"))
    }
}

type Observer = dyn Fn(&Call<'_>) + Send + Sync;

/// The observer of the calls through a slot's trampolines.
struct Place {
    observer: Option<Arc<Observer>>,
    /// The driver that was last observed through this slot, and its observed form.
    made: Option<(Driver, Driver)>,
}

static PLACES: [RwLock<Place>; SLOTS] =
    [const { RwLock::new(Place { observer: None, made: None }) }; SLOTS];

/// Locks for reading. A panic of another thread is no error: what is locked is never half changed.
fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

/// Locks for writing, as [`read`] does.
fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

thread_local! {
    // They have no destructors, because destructors of other thread-locals make calls too.

    /// Whether this thread is in an observer.
    static OBSERVING: Cell<bool> = const { Cell::new(false) };
    /// Whether this thread calls observers later. It has no destructor, because destructors of other
    /// thread-locals make calls too.
    pub(super) static DEFERRAL: Cell<Deferral> = const { Cell::new(Deferral::Off) };
    /// The calls whose observers run later. It is empty unless `DEFERRAL` is `Filled`.
    static DEFERRED: RefCell<ManuallyDrop<Vec<Deferred>>> = const {
        RefCell::new(ManuallyDrop::new(Vec::new())) };
}

/// Whether a thread calls observers later.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Deferral {
    Off,
    Empty,
    /// Calls have returned whose observers are to run.
    Filled,
}

/// A call that has returned, and whose observer runs later.
struct Deferred {
    observer: Arc<Observer>,
    function: Function,
    arguments: Box<[u64]>,
    result: CUresult,
    created: Option<u64>,
    started: Instant,
    elapsed: Duration,
}

/// Calls the observers of what was deferred.
#[cold]
#[inline(never)]
pub(super) fn call_deferred() {
    let deferred = DEFERRED.with_borrow_mut(|deferred| mem::take(&mut **deferred));
    for call in deferred {
        let Deferred { observer, function, ref arguments, result, created, started, elapsed } =
            call;
        call_observer(observer, &Call { function, arguments, result, created, started, elapsed });
    }
}

/// Calls an observer. This may run inside a C function, which a panic must not leave.
fn call_observer(observer: Arc<Observer>, call: &Call<'_>) {
    OBSERVING.set(true);
    panics::contain(|| observer(call));
    // This may be the last share, if the observer was removed.
    panics::contain(|| drop(observer));
    OBSERVING.set(false);
}

/// Calls the observer of a slot, if it has one, or notes the call for later.
fn notify(slot: usize, returned: &Returned<'_>) {
    let elapsed = returned.started.elapsed();
    // Calls that an observer makes itself are not observed: that would never end.
    if OBSERVING.get() {
        return;
    }
    // It does not wait for the lock. A thread that changes this place holds the lock only for a
    // moment, and a call that returns in that moment may be observed or not. In a forked child the
    // thread that held the lock is gone, and a wait would never end.
    let place = match PLACES.get(slot).map(RwLock::try_read) {
        Some(Ok(place)) => place,
        Some(Err(TryLockError::Poisoned(place))) => place.into_inner(),
        Some(Err(TryLockError::WouldBlock)) | None => return,
    };
    // Its own share: another thread, or the observer itself, may remove the observer meanwhile.
    let Some(observer) = place.observer.clone() else { return };
    drop(place);
    let Returned { function, arguments, result, created, started } = *returned;
    if DEFERRAL.get() == Deferral::Off {
        let call = Call { function, arguments, result, created, started, elapsed };
        return call_observer(observer, &call);
    }
    let arguments = arguments.into();
    let call = Deferred { observer, function, arguments, result, created, started, elapsed };
    DEFERRED.with_borrow_mut(|deferred| deferred.push(call));
    DEFERRAL.set(Deferral::Filled);
}

impl Driver {
    /// The method [`observe`](Self::observe).
    pub(super) fn add_observer(self, observer: Arc<Observer>) -> Result<Self> {
        // The places are filled from the first on, so a place that serves this driver comes before
        // one that serves no driver yet.
        for (slot, (target, place)) in TARGETS.iter().zip(&PLACES).enumerate() {
            // The read lock comes first, so calls of existing observers are still observed.
            if read(place).observer.is_some() {
                continue;
            }
            let mut place = write(place);
            if place.observer.is_some() {
                continue;
            }
            let target = target.get_or_init(|| Target { symbols: self.symbols(), notify });
            if !target.symbols.is_same(self.symbols()) {
                continue;
            }
            let observed = match place.made {
                Some((real, observed)) if real == self => observed,
                _ => self.with_symbols(trampolines::observed(self.symbols(), slot)),
            };
            *place = Place { observer: Some(observer), made: Some((self, observed)) };
            return Ok(observed);
        }
        Err(Error::TooManyObservers)
    }

    /// The method [`stop_observing`](Self::stop_observing).
    pub(super) fn remove_observer(self) -> bool {
        let is_mine = |place: &Place| place.made.is_some_and(|(_, observed)| observed == self);
        let observer = PLACES.iter().find_map(|place| {
            if !is_mine(&read(place)) {
                return None;
            }
            let mut place = write(place);
            let mine = is_mine(&place);
            place.observer.take_if(|_| mine)
        });
        // Dropped here, not under the lock.
        observer.is_some()
    }
}

static_assertions::assert_impl_all!(
    Call<'static>: std::panic::UnwindSafe, std::panic::RefUnwindSafe
);

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;
    use crate::driver::deferring::deferring_observers;

    /// The observers run when the outermost guard is dropped, in the order of the calls, and after
    /// what it guards.
    #[test]
    fn observers_run_after_the_guard() {
        struct Guarded<'a>(&'a dyn Fn());

        impl Drop for Guarded<'_> {
            fn drop(&mut self) {
                (self.0)();
            }
        }

        let (_soft, driver) = crate::driver::software();
        let (sender, receiver) = channel();
        let observed = driver.observe(move |call| {
            let seen = (call.function, call.arguments.len(), call.result, call.elapsed);
            sender.send((seen, call.started.elapsed())).unwrap();
        });
        let observed = observed.unwrap();
        let count = || drop(crate::Device::count(observed));
        count();
        let direct: Vec<_> = receiver.try_iter().map(|((function, ..), _)| function).collect();
        let none = || assert!(receiver.try_recv().is_err(), "an observer ran under the guard");
        const LATER: Duration = Duration::from_millis(2);

        let outer = deferring_observers(Guarded(&none));
        let inner = deferring_observers(());
        count();
        drop(inner);
        none();
        count();
        std::thread::sleep(LATER);
        // It drops the guarded value first, and that value checks that no observer has run.
        drop(outer);
        let deferred: Vec<_> = receiver.try_iter().collect();
        let expected = [Function::cuDeviceGetCount; 2];
        assert_eq!(direct.last(), expected.last());
        assert!(deferred.iter().map(|((function, ..), _)| *function).eq(expected));
        for ((_, arguments, result, elapsed), age) in deferred {
            assert_eq!((arguments, result), (1, CUresult::CUDA_SUCCESS));
            // The time of the call, and not of its observer.
            assert!(elapsed + LATER <= age, "{elapsed:?} of {age:?}");
        }
        count();
        assert_eq!(receiver.try_iter().count(), 1);
        assert!(observed.stop_observing());
    }

    /// As in a child that was forked while another thread changed the place: the lock is never
    /// released.
    #[test]
    fn observing_takes_no_lock() {
        let last = SLOTS - 1;
        let held = write(&PLACES[last]);
        let (done, finished) = channel();
        std::thread::spawn(move || {
            let (function, result) =
                (crate::sys::Function::cuInit, crate::sys::CUresult::CUDA_SUCCESS);
            notify(
                last,
                &Returned {
                    function,
                    arguments: &[],
                    result,
                    created: None,
                    started: Instant::now(),
                },
            );
            let _ = done.send(());
        });
        assert_eq!(finished.recv_timeout(Duration::from_secs(60)), Ok(()), "it waits for the lock");
        drop(held);
    }
}
