//! One way to make a driver call, which names it once.
//!
//! [`call!`] ties the name of an entry point to its pointer in the table, to the checks that come
//! before the call, and to the error that names it. `?` returns the reason why no call was made;
//! a method of [`Answer`] makes a result of the driver's code:
//!
//! ```text
//! unsafe { call!(self.driver, cuEventSynchronize(self.raw)) }?.check()
//! unsafe { call!(self.driver, cuEventQuery(self.raw)) }?.progress()
//! // may be missing: Error::Unsupported
//! unsafe { call!(self, cuStreamGetId?(self.as_raw(), &mut id)) }?.check()
//! // the first that the driver has
//! unsafe { call!(self, cuNew(one, more) or cuOld(one)) }?.check()
//! // takes an object of another driver, too
//! unsafe { call!(stream, event.driver(); cuEventRecord(event.as_raw(), stream.as_raw())) }?.check()
//! // the name and the pointer, for a later call
//! let add = entry!(driver, cuGraphAddEventRecordNode?)?;
//! ```
//!
//! The first argument is the [`Target`] of the call. A required entry point is
//! written plainly, an optional one with a question mark or before an `or`; other forms do not
//! compile. The caller writes the `unsafe` block and argues why the arguments are valid.

use crate::driver::{Driver, flag, fork};
#[cfg(feature = "safe")]
use crate::error::log;
use crate::error::{Error, Result};
#[cfg(feature = "safe")]
use crate::progress::Progress;
use crate::sys::Function;
#[cfg(feature = "safe")]
use crate::sys::{CUresult, Symbols};

/// The object that a call is made on: a driver, or a stream, whose handle may depend on the current
/// context.
#[cfg(feature = "safe")]
pub(crate) trait Target: Copy {
    /// The driver whose table has the call.
    fn driver(self) -> Driver;

    /// Makes a call that also takes an object of `other`, unless [`Driver::check`] refuses it. The
    /// closure gets the table as an argument, so it captures only the call's arguments.
    fn make(
        self,
        other: Driver,
        function: Function,
        call: impl FnOnce(&'static Symbols) -> CUresult,
    ) -> Result<Answer>;
}

#[cfg(feature = "safe")]
impl Target for Driver {
    #[inline(always)]
    fn driver(self) -> Driver {
        self
    }

    #[inline(always)]
    fn make(
        self,
        other: Driver,
        function: Function,
        call: impl FnOnce(&'static Symbols) -> CUresult,
    ) -> Result<Answer> {
        self.check(other, function)?;
        Ok(Answer { driver: self, function, code: call(self.symbols()) })
    }
}

impl Driver {
    /// An error in a process that was forked after the driver was initialised; or if `other` is of
    /// another library, so its objects cannot be used with this driver's.
    #[inline(always)]
    pub(crate) fn check(self, other: Self, function: Function) -> Result<()> {
        if flag::unusual() { self.check_closely(other, function) } else { Ok(()) }
    }

    /// Checks as [`check`](Self::check) does, without another object.
    #[cfg(feature = "safe")]
    #[inline(always)]
    pub(crate) fn check_alone(self, function: Function) -> Result<()> {
        self.check(self, function)
    }

    #[cold]
    #[inline(never)]
    fn check_closely(self, other: Self, function: Function) -> Result<()> {
        if fork::forked() {
            Err(Error::ForkedChild { function })
        } else if !self.is_same_library(other) {
            Err(Error::DriverMismatch { function })
        } else {
            Ok(())
        }
    }

    /// The error for an entry point that the driver does not have. The errors of a forked child and
    /// of an object of another driver library come first, whatever the driver has.
    #[cold]
    pub(crate) fn unsupported(self, other: Self, function: Function) -> Error {
        let since = function.entry_point().version;
        let unsupported = Error::Unsupported { function, since, driver: self.version() };
        self.check(other, function).err().unwrap_or(unsupported)
    }
}

/// The code that the driver returned, with the call.
#[cfg(feature = "safe")]
#[derive(Clone, Copy)]
#[must_use]
pub(crate) struct Answer {
    driver: Driver,
    pub(crate) function: Function,
    pub(crate) code: CUresult,
}

#[cfg(feature = "safe")]
impl Answer {
    #[inline(always)]
    pub(crate) fn is_success(self) -> bool {
        self.code == CUresult::CUDA_SUCCESS
    }

    /// `Ok` for success, otherwise the plain driver error.
    #[inline(always)]
    pub(crate) fn check(self) -> Result<()> {
        self.check_or(Self::error)
    }

    /// The same with an error that the caller makes of the answer.
    #[inline(always)]
    pub(crate) fn check_or(self, error: impl FnOnce(Self) -> Error) -> Result<()> {
        if self.is_success() { Ok(()) } else { Err(error(self)) }
    }

    /// The same for a query, where "not ready" is not an error.
    #[inline(always)]
    pub(crate) fn progress(self) -> Result<Progress> {
        self.progress_or(Self::error)
    }

    /// The same with an error that the caller makes of the answer.
    #[inline(always)]
    pub(crate) fn progress_or(self, error: impl FnOnce(Self) -> Error) -> Result<Progress> {
        match self.code {
            CUresult::CUDA_SUCCESS => Ok(Progress::Done),
            CUresult::CUDA_ERROR_NOT_READY => Ok(Progress::Pending),
            _ => Err(error(self)),
        }
    }

    /// The code that a call on this driver returned.
    #[inline(always)]
    pub(crate) fn new(driver: Driver, function: Function, code: CUresult) -> Self {
        Self { driver, function, code }
    }

    /// The plain driver error, with what the driver logged.
    #[inline(always)]
    pub(crate) fn error(self) -> Error {
        log::failed(self.driver.symbols(), self.function, self.code)
    }

    /// An error of this answer that names a probable cause, with what the driver logged.
    #[cold]
    pub(crate) fn probably(self, error: Error) -> Error {
        log::note(self.driver.symbols(), self.function, self.code);
        error
    }
}

/// An entry point by its name and its pointer, from
/// [`Driver::entry_point`](crate::Driver::entry_point). [`call!`](crate::foundation::call) makes
/// calls of it.
///
/// `F` is the function pointer itself, so a struct can keep entry points. The type that
/// `entry_point` takes, and not that of the field, says which function is meant:
///
/// ```
/// use cuda_events::foundation::{Entry, call};
/// use cuda_events::sys::{CUdeviceptr, CUresult, EntryPointType, PFN_cuMemFree_v3020};
/// use cuda_events::{Result, Version};
///
/// // A typedef `PFN_*` is an `Option` of the pointer; a type of your own need not be one.
/// type Free = <PFN_cuMemFree_v3020 as EntryPointType>::Pointer;
/// type Reserve =
///     unsafe extern "C" fn(*mut CUdeviceptr, usize, usize, CUdeviceptr, u64) -> CUresult;
///
/// struct Memory {
///     free: Entry<Free>,
///     reserve: Entry<Reserve>,
/// }
///
/// impl Memory {
///     fn new(driver: cuda_events::Driver) -> Result<Self> {
///         let (three, ten) = (Version::new(3, 2), Version::new(10, 2));
///         // SAFETY: NVIDIA's `PFN_cuMemFree_v3020` and `PFN_cuMemAddressReserve_v10020`.
///         let (free, reserve) = unsafe {
///             let free = driver.entry_point::<Free>(c"cuMemFree", three)?;
///             (free, driver.entry_point::<Reserve>(c"cuMemAddressReserve", ten)?)
///         };
///         Ok(Self { free, reserve })
///     }
/// }
///
/// # use cuda_soft_driver::examples::Driver;
/// let driver = Driver::load()?;
/// let memory = Memory::new(driver)?;
/// # cuda_events::Device::count(driver)?;
/// // SAFETY: freeing NULL does nothing.
/// unsafe { call!(driver, (memory.free)(0)) }?;
/// println!("{}", memory.reserve.function());
/// # Ok::<(), cuda_events::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Entry<F> {
    pub(crate) function: Function,
    pub(crate) pointer: F,
}

impl<F: Copy> Entry<F> {
    /// Returns the function, which errors name.
    pub fn function(self) -> Function {
        self.function
    }

    /// Returns the pointer, for a call without the checks of [`call!`](crate::foundation::call).
    pub fn pointer(self) -> F {
        self.pointer
    }
}

impl<F> core::fmt::Debug for Entry<F> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Entry").field(&self.function).finish()
    }
}

#[cfg(feature = "safe")]
impl<F: Copy> Entry<F> {
    /// Makes the call, if it may be made.
    #[inline(always)]
    pub(crate) fn call(
        self,
        target: impl Target,
        call: impl FnOnce(F) -> CUresult,
    ) -> Result<Answer> {
        target.make(target.driver(), self.function, |_| call(self.pointer))
    }
}

/// Makes a driver call, if it may be made. The result is the driver's [`Answer`], or the reason why
/// no call was made.
#[cfg(feature = "safe")]
macro_rules! call {
    // The call on two variables.
    (@ $target:ident, $other:ident, $function:ident($($argument:expr),* $(,)?)) => {
        $crate::driver::call::Target::make(
            $target, $other, $crate::sys::Function::$function,
            |symbols| (symbols.$function)($($argument),*),
        )
    };
    (@ $target:ident, $other:ident, $function:ident?($($argument:expr),* $(,)?)) => {
        match $crate::driver::call::Target::driver($target).symbols().$function {
            Some(pointer) => $crate::driver::call::Target::make(
                $target, $other, $crate::sys::Function::$function,
                |_| pointer($($argument),*),
            ),
            None => Err($crate::driver::call::Target::driver($target)
                .unsupported($other, $crate::sys::Function::$function)),
        }
    };
    (@ $target:ident, $other:ident, $function:ident($($argument:expr),* $(,)?) or $($or:tt)+) => {
        match $crate::driver::call::Target::driver($target).symbols().$function {
            Some(pointer) => $crate::driver::call::Target::make(
                $target, $other, $crate::sys::Function::$function,
                |_| pointer($($argument),*),
            ),
            None => $crate::driver::call::call!(@ $target, $other, $($or)+),
        }
    };
    ($target:expr, $other:expr; $($call:tt)+) => {{
        let (target, other): (_, $crate::driver::Driver) = ($target, $other);
        $crate::driver::call::call!(@ target, other, $($call)+)
    }};
    ($target:expr, $($call:tt)+) => {{
        let target = $target;
        let other = $crate::driver::call::Target::driver(target);
        $crate::driver::call::call!(@ target, other, $($call)+)
    }};
}

/// An [`Entry`]; for an optional entry point a result. The checks before the call are made with the
/// call.
#[cfg(feature = "safe")]
macro_rules! entry {
    ($target:expr, $function:ident) => {
        $crate::driver::call::Entry {
            function: $crate::sys::Function::$function,
            pointer: $crate::driver::call::Target::driver($target).symbols().$function,
        }
    };
    ($target:expr, $function:ident?) => {{
        let driver = $crate::driver::call::Target::driver($target);
        match driver.symbols().$function {
            Some(pointer) => Ok($crate::driver::call::Entry {
                function: $crate::sys::Function::$function,
                pointer,
            }),
            None => Err(driver.unsupported(driver, $crate::sys::Function::$function)),
        }
    }};
}

#[cfg(feature = "safe")]
pub(crate) use {call, entry};
