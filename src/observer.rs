//! Watching every driver call: for traces, profiles and checkers.

use core::cell::Cell;
use core::fmt;
use std::time::{Duration, Instant};

use crate::driver::Driver;
use crate::error::{Error, Result};
use crate::process;
use crate::sys::trampolines::{TARGETS, Target};
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
    /// The arguments in order, each as the number that it is: a handle or a pointer is its address, a negative integer
    /// its 32 bits, an interprocess handle its first eight bytes.
    pub arguments: &'a [u64],
    /// What it answered.
    pub result: CUresult,
    /// When it was called.
    pub started: Instant,
    /// How long it took.
    pub elapsed: Duration,
}

/// `cuEventRecord(0x5581c8, 0x5581d0) = CUDA_SUCCESS (0) in 1.3µs`
impl fmt::Display for Call<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(", self.function)?;
        for (index, argument) in self.arguments.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            // Flags and counts are small, addresses are not.
            if *argument < 4096 { write!(f, "{separator}{argument}")? } else { write!(f, "{separator}{argument:#x}")? }
        }
        write!(f, ") = {} in {:?}", self.result, self.elapsed)
    }
}

thread_local! {
    /// Whether this thread is in an observer. It has no destructor, as calls are made in those of other thread-locals too.
    static OBSERVING: Cell<bool> = const { Cell::new(false) };
}

impl Driver {
    /// The same driver with an observer in front of every entry point: each call that is made through the result, and
    /// through what is created with it, is told to `observer` after it returned, on the thread that made it.
    ///
    /// Calls through `self` are not observed, and cost what they did. Calls that an observer makes itself are not told to
    /// any. A panic in it is contained, and the call goes on. It is kept for the rest of the process, as the driver is; a
    /// process can have four. This itself makes no driver call.
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
        let mut target = Target {
            symbols: self.symbols(),
            tell: Box::new(move |function, arguments, result, started| {
                let elapsed = started.elapsed();
                let call = Call { function, arguments, result, started, elapsed };
                // What it does itself through the result, it would be told of again, and so on.
                if !OBSERVING.replace(true) {
                    // It is inside a C function, which a panic must not leave.
                    process::contain(|| observer(&call));
                    OBSERVING.set(false);
                }
            }),
        };
        for (slot, place) in TARGETS.iter().enumerate() {
            match place.set(target) {
                Ok(()) => return Ok(self.with_symbols(self.symbols().observed(slot))),
                Err(mine) => target = mine,
            }
        }
        Err(Error::TooManyObservers)
    }
}
