//! Watching every driver call: for traces, profiles and checkers.

use core::cell::Cell;
use core::fmt;
use std::sync::{Arc, PoisonError, RwLock, TryLockError};
use std::time::{Duration, Instant};

use crate::driver::Driver;
use crate::driver::panics;
use crate::driver::trampolines::{self, Returned, SLOTS, TARGETS, Target};
use crate::error::{Error, Result};
use crate::sys::{CUresult, Function};

/// One driver call, as an observer sees it after it returned; see [`Driver::observe`].
///
/// ```
/// use cuda_events::sys::CUresult;
///
/// # let soft = cuda_soft_driver::SoftDriver::new();
/// # let driver = soft.driver();
/// // The slow and the failed ones only.
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
    /// The arguments in order, each as the number that it is: a handle or a pointer is its address,
    /// a negative integer its 32 bits, an interprocess handle its first eight bytes.
    pub arguments: &'a [u64],
    /// The code that it returned.
    pub result: CUresult,
    /// The handle that a call which creates gave, such as `cuEventCreate`, `cuIpcOpenEventHandle`,
    /// `cuDevicePrimaryCtxRetain` or `cuStreamEndCapture`
    /// ([`EntryPoint::creates`](crate::sys::EntryPoint)). None for other calls and for those that
    /// failed. Among [`arguments`](Self::arguments) is only the address of the place for it.
    pub created: Option<u64>,
    /// When it was called.
    pub started: Instant,
    /// How long it took.
    pub elapsed: Duration,
}

/// `cuEventRecord(0x5581c8, 0x5581d0) = CUDA_SUCCESS (0) in 1.3µs`, and for a call that creates
/// `cuEventCreate(0x7ffc30, 2) = CUDA_SUCCESS (0) in 1.3µs, created 0x5581c8`.
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

/// Who is told of the calls through a slot's trampolines.
struct Place {
    observer: Option<Arc<Observer>>,
    /// The driver that was observed through this slot last, and its observed form.
    made: Option<(Driver, Driver)>,
}

static PLACES: [RwLock<Place>; SLOTS] =
    [const { RwLock::new(Place { observer: None, made: None }) }; SLOTS];

thread_local! {
    /// Whether this thread is in an observer. It has no destructor, as calls are made in those of
    /// other thread-locals too.
    static OBSERVING: Cell<bool> = const { Cell::new(false) };
}

/// Tells the observer of a slot, if it has one. It is inside of a C function, which a panic must
/// not leave.
fn tell(slot: usize, returned: &Returned<'_>) {
    let elapsed = returned.started.elapsed();
    // What an observer does itself through the result, it would be told of again, and so on.
    if OBSERVING.get() {
        return;
    }
    // It does not wait for the lock. Whoever changes this place holds it for a moment only, and a
    // call that returns in that moment may be told or not. In a forked child the thread that held
    // it is gone, and a wait would never end.
    let place = match PLACES.get(slot).map(RwLock::try_read) {
        Some(Ok(place)) => place,
        Some(Err(TryLockError::Poisoned(place))) => place.into_inner(),
        Some(Err(TryLockError::WouldBlock)) | None => return,
    };
    // Its own share: the observer may be taken away meanwhile, by another thread or by itself.
    let Some(observer) = place.observer.clone() else { return };
    drop(place);
    let Returned { function, arguments, result, created, started } = *returned;
    OBSERVING.set(true);
    panics::contain(|| observer(&Call { function, arguments, result, created, started, elapsed }));
    // The last share, if it was taken away.
    panics::contain(|| drop(observer));
    OBSERVING.set(false);
}

impl Driver {
    /// The same driver with an observer in front of every entry point: each call that is made
    /// through the result, and through what is created with it, is told to `observer` after it
    /// returned, on the thread that made it.
    ///
    /// An observer must not wait for a thread that drops a [`Completion`](crate::ext::Completion),
    /// and must not drop one: such a drop waits for the query that the observer may just be told
    /// of.
    ///
    /// Calls through `self` are not observed, and cost what they did. Calls that an observer makes
    /// itself are told to nobody. A panic in it is contained, and the call goes on.
    /// [`stop_observing`](Self::stop_observing) takes the observer away; otherwise it is kept for
    /// the rest of the process, as the driver is.
    ///
    /// A process has sixteen places for observers, and each serves one driver for good, as objects
    /// with its functions may be anywhere. So it can have sixteen observers at a time, of sixteen
    /// drivers in all; two loads of one library with different default streams are two drivers.
    /// This itself makes no driver call.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicUsize, Ordering};
    ///
    /// # let soft = cuda_soft_driver::SoftDriver::new();
    /// # let driver = soft.driver();
    /// static CALLS: AtomicUsize = AtomicUsize::new(0);
    ///
    /// let observed = driver.observe(|call| {
    ///     CALLS.fetch_add(1, Ordering::Relaxed);
    ///     eprintln!("{call}");
    /// })?;
    /// cuda_events::Device::count(observed)?;
    /// // cuInit and cuDeviceGetCount.
    /// assert_eq!(CALLS.load(Ordering::Relaxed), 2);
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::TooManyObservers`].
    pub fn observe(self, observer: impl Fn(&Call<'_>) + Send + Sync + 'static) -> Result<Self> {
        // The places are filled from the first on, so one that serves this driver comes before one
        // that serves none.
        for (slot, (target, place)) in TARGETS.iter().zip(&PLACES).enumerate() {
            // Looked at as a reader first: the calls of the observers that are there go on being
            // told.
            if place.read().unwrap_or_else(PoisonError::into_inner).observer.is_some() {
                continue;
            }
            let mut place = place.write().unwrap_or_else(PoisonError::into_inner);
            if place.observer.is_some() {
                continue;
            }
            let target = target.get_or_init(|| Target { symbols: self.symbols(), tell });
            if !target.symbols.is_same(self.symbols()) {
                continue;
            }
            let observed = match place.made {
                Some((real, observed)) if real == self => observed,
                _ => self.with_symbols(trampolines::observed(self.symbols(), slot)),
            };
            *place = Place { observer: Some(Arc::new(observer)), made: Some((self, observed)) };
            return Ok(observed);
        }
        Err(Error::TooManyObservers)
    }

    /// Takes the observer of this driver away, and gives its place back: whether there was one.
    /// `self` is what [`observe`](Self::observe) gave; for any other driver this does nothing.
    ///
    /// This driver and the objects that were created through it go on working. Their calls reach
    /// the driver as before, and are told to nobody, until [`observe`](Self::observe) gives the
    /// place to another observer of the same driver, who is told of them too. It makes no driver
    /// call.
    ///
    /// A call that returns in the moment of the change may be told or not.
    ///
    /// It may be called from any thread, and by the observer itself. It does not wait: another
    /// thread may just be telling the observer of a call, and the observer is dropped when the last
    /// such thread has returned from it.
    ///
    /// ```
    /// use cuda_events::Device;
    /// use std::sync::mpsc::channel;
    ///
    /// # let soft = cuda_soft_driver::SoftDriver::new();
    /// # let driver = soft.driver();
    /// let (sender, receiver) = channel();
    /// let observed = driver.observe(move |call| drop(sender.send(call.function)))?;
    /// Device::count(observed)?;
    /// assert!(observed.stop_observing());
    /// Device::count(observed)?;
    /// // The sender went with the observer, so that this ends.
    /// assert_eq!(receiver.iter().count(), 2);
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    pub fn stop_observing(self) -> bool {
        let is_mine = |place: &Place| place.made.is_some_and(|(_, observed)| observed == self);
        let observer = PLACES.iter().find_map(|place| {
            if !is_mine(&place.read().unwrap_or_else(PoisonError::into_inner)) {
                return None;
            }
            let mut place = place.write().unwrap_or_else(PoisonError::into_inner);
            let mine = is_mine(&place);
            place.observer.take_if(|_| mine)
        });
        // Dropped here, not under the lock.
        observer.is_some()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    /// As in a child that was forked while another thread changed the place: nobody will ever let
    /// go of the lock.
    #[test]
    fn telling_waits_for_no_lock() {
        let last = SLOTS - 1;
        let held = PLACES[last].write().unwrap_or_else(PoisonError::into_inner);
        let (done, told) = channel();
        std::thread::spawn(move || {
            let (function, result) =
                (crate::sys::Function::cuInit, crate::sys::CUresult::CUDA_SUCCESS);
            tell(
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
        assert_eq!(told.recv_timeout(Duration::from_secs(60)), Ok(()), "it waits for the lock");
        drop(held);
    }
}
