//! One way to make a driver call, which names it once.
//!
//! [`ask!`] ties the name of an entry point to its pointer in the table, to the checks that come
//! before the call, and to the error that names it:
//!
//! ```text
//! unsafe { call!(self.driver, cuEventSynchronize(self.raw)) } // Result<()>
//! // the driver's code, with the name
//! unsafe { ask!(self.driver, cuEventQuery(self.raw)) }?.progress()
//! // may be missing: Error::Unsupported
//! unsafe { call!(self, cuStreamGetId?(self.as_raw(), &mut id)) }
//! // the first that the driver has
//! unsafe { call!(self, cuNew(one, more) or cuOld(one)) }
//! // the name and the pointer, for a later call
//! let add = entry!(driver, cuGraphAddEventRecordNode?)?;
//! ```
//!
//! The first argument is the object [`Through`] which the call is made. A required entry point is
//! written plainly, an optional one with a question mark or before an `or`; other forms do not
//! compile. The caller writes the `unsafe` block and argues why the arguments are valid.

use crate::driver::{Driver, flag, fork};
use crate::error::{Error, Result};
use crate::progress::Progress;
use crate::sys::{CUresult, Function, Symbols};

/// An object through which a call is made: it has the table, and checks whether the call may be
/// made.
pub(crate) trait Through: Sized {
    /// The driver whose table has the call.
    fn driver(&self) -> Driver;

    /// An error if the call must not be made.
    fn check(&self, function: Function) -> Result<()>;

    /// Makes the call, if it may be made.
    #[inline(always)]
    fn make(
        self,
        function: Function,
        call: impl FnOnce(&'static Symbols) -> CUresult,
    ) -> Result<CUresult> {
        self.check(function)?;
        Ok(call(self.driver().symbols()))
    }

    /// The error for an entry point that the driver does not have.
    #[cold]
    fn unsupported(&self, function: Function) -> Error {
        let driver = self.driver().version();
        let unsupported =
            Error::Unsupported { function, since: function.entry_point().version, driver };
        // In a forked child that error comes first, whatever the driver has.
        self.check(function).err().unwrap_or(unsupported)
    }
}

/// In a forked child no call is made.
impl Through for Driver {
    #[inline(always)]
    fn driver(&self) -> Driver {
        *self
    }

    #[inline(always)]
    fn check(&self, function: Function) -> Result<()> {
        self.check_fork(function)
    }
}

/// A driver that was just called, so this is not a forked child.
#[derive(Clone, Copy)]
pub(crate) struct Ready(Driver);

impl Ready {
    /// For code that has just called the driver.
    #[inline(always)]
    pub(crate) fn after_a_call(driver: Driver) -> Self {
        Self(driver)
    }
}

impl Through for Ready {
    #[inline(always)]
    fn driver(&self) -> Driver {
        self.0
    }

    #[inline(always)]
    fn check(&self, _function: Function) -> Result<()> {
        Ok(())
    }
}

/// Two drivers whose objects are used in one call; it is made through the table of the first.
#[derive(Clone, Copy)]
pub(crate) struct Both(Driver, Driver);

impl Through for Both {
    #[inline(always)]
    fn driver(&self) -> Driver {
        self.0
    }

    #[inline(always)]
    fn check(&self, function: Function) -> Result<()> {
        self.0.check_same(self.1, function)
    }
}

impl Driver {
    /// For a call that also takes an object of `other`.
    #[inline(always)]
    pub(crate) fn with(self, other: Self) -> Both {
        Both(self, other)
    }

    /// An error if `other` is of another library, so its objects cannot be used with this driver's;
    /// or if the process was forked after the driver was initialised.
    #[inline(always)]
    pub(crate) fn check_same(self, other: Self, function: Function) -> Result<()> {
        if flag::unusual() { self.check_closely(other, function) } else { Ok(()) }
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn check_closely(self, other: Self, function: Function) -> Result<()> {
        self.check_fork(function)?;
        if self.is_same_library(other) { Ok(()) } else { Err(Error::DriverMismatch { function }) }
    }

    /// An error in a process that was forked after the driver was initialised.
    #[inline(always)]
    pub(crate) fn check_fork(self, function: Function) -> Result<()> {
        if fork::forked() { Err(Error::ForkedChild { function }) } else { Ok(()) }
    }
}

/// The code that the driver returned, with the call.
#[derive(Clone, Copy)]
#[must_use]
pub(crate) struct Answer {
    pub(crate) function: Function,
    pub(crate) code: CUresult,
}

impl Answer {
    /// Makes a call, if it may be made. The closure gets the table as an argument, so it captures
    /// only the call's arguments, which a cold path then takes in registers.
    #[inline(always)]
    pub(crate) fn of(
        through: impl Through,
        function: Function,
        call: impl FnOnce(&'static Symbols) -> CUresult,
    ) -> Result<Self> {
        through.make(function, call).map(|code| Self { function, code })
    }

    #[inline(always)]
    pub(crate) fn is_success(self) -> bool {
        self.code == CUresult::CUDA_SUCCESS
    }

    /// `Ok` for success, otherwise the plain driver error.
    #[inline(always)]
    pub(crate) fn check(self) -> Result<()> {
        Error::check(self.function, self.code)
    }

    /// The same for a query, where "not ready" is not an error.
    #[inline(always)]
    pub(crate) fn progress(self) -> Result<Progress> {
        match self.code {
            CUresult::CUDA_SUCCESS => Ok(Progress::Done),
            CUresult::CUDA_ERROR_NOT_READY => Ok(Progress::Pending),
            _ => Err(self.error()),
        }
    }

    /// The plain driver error.
    #[inline(always)]
    pub(crate) fn error(self) -> Error {
        Error::driver(self.function, self.code)
    }
}

/// An entry point by its name and its pointer, for a call whose name is needed before it is made.
#[derive(Clone, Copy)]
pub(crate) struct Entry<F> {
    pub(crate) function: Function,
    pub(crate) pointer: F,
}

impl<F: Copy> Entry<F> {
    /// Makes the call, if it may be made.
    #[inline(always)]
    pub(crate) fn ask(
        self,
        through: impl Through,
        call: impl FnOnce(F) -> CUresult,
    ) -> Result<Answer> {
        Answer::of(through, self.function, |_| call(self.pointer))
    }

    /// The answer with this code, as if the driver had returned it.
    pub(crate) fn answer(self, code: CUresult) -> Answer {
        Answer { function: self.function, code }
    }
}

/// Makes a driver call, if it may be made. The result is the driver's [`Answer`], or the reason why
/// no call was made.
macro_rules! ask {
    ($through:expr, $function:ident($($argument:expr),* $(,)?)) => {
        $crate::driver::call::Answer::of($through, $crate::sys::Function::$function, |symbols| {
            (symbols.$function)($($argument),*)
        })
    };
    ($through:expr, $function:ident?($($argument:expr),* $(,)?)) => {{
        let through = $through;
        match $crate::driver::call::Through::driver(&through).symbols().$function {
            Some(pointer) => {
                $crate::driver::call::Answer::of(through, $crate::sys::Function::$function, |_| {
                    pointer($($argument),*)
                })
            }
            None => Err($crate::driver::call::Through::unsupported(&through,
                $crate::sys::Function::$function)),
        }
    }};
    ($through:expr, $function:ident($($argument:expr),* $(,)?) or $($otherwise:tt)+) => {{
        let through = $through;
        match $crate::driver::call::Through::driver(&through).symbols().$function {
            Some(pointer) => {
                $crate::driver::call::Answer::of(through, $crate::sys::Function::$function, |_| {
                    pointer($($argument),*)
                })
            }
            None => $crate::driver::call::ask!(through, $($otherwise)+),
        }
    }};
}

/// As [`ask!`], for a call where only success matters.
macro_rules! call {
    ($through:expr, $($call:tt)+) => {
        match $crate::driver::call::ask!($through, $($call)+) {
            Ok(answer) => answer.check(),
            Err(error) => Err(error),
        }
    };
}

/// An [`Entry`]. If the last entry point named is optional, it is a result, and its error names the
/// first one. The checks before the call are made with the call.
macro_rules! entry {
    ($through:expr, $function:ident) => {
        $crate::driver::call::Entry {
            function: $crate::sys::Function::$function,
            pointer: $crate::driver::call::Through::driver(&$through).symbols().$function,
        }
    };
    ($through:expr, $function:ident?) => {{
        let through = $through;
        match $crate::driver::call::Through::driver(&through).symbols().$function {
            Some(pointer) => Ok($crate::driver::call::Entry {
                function: $crate::sys::Function::$function,
                pointer,
            }),
            None => Err($crate::driver::call::Through::unsupported(
                &through,
                $crate::sys::Function::$function,
            )),
        }
    }};
    ($through:expr, $function:ident or $otherwise:ident?) => {{
        let through = $through;
        match $crate::driver::call::Through::driver(&through).symbols().$function {
            Some(pointer) => Ok($crate::driver::call::Entry {
                function: $crate::sys::Function::$function,
                pointer,
            }),
            None => match $crate::driver::call::entry!(through, $otherwise?) {
                Ok(entry) => Ok(entry),
                Err(_) => Err($crate::driver::call::Through::unsupported(
                    &through,
                    $crate::sys::Function::$function,
                )),
            },
        }
    }};
    ($through:expr, $function:ident or $otherwise:ident) => {{
        let through = $through;
        match $crate::driver::call::Through::driver(&through).symbols().$function {
            Some(pointer) => {
                $crate::driver::call::Entry { function: $crate::sys::Function::$function, pointer }
            }
            None => $crate::driver::call::entry!(through, $otherwise),
        }
    }};
}

pub(crate) use {ask, call, entry};
