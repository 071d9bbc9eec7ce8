//! Items for crates on top of this one, beyond events and streams.
//!
//! A crate that wraps more of the driver (memory, modules, kernels) makes the calls by itself, with
//! these items. This workspace's own crates do the same: `cuda-events-cudarc` uses
//! [`ForeignCapture`], and `cuda-timelines` uses all the others. Besides, `cuda-timelines` uses
//! hidden hooks that the software driver and observers need in tests.
//!
//! | for | use |
//! | --- | --- |
//! | a driver call that no method makes | [`call!`] |
//! | a function that this crate has no declaration of | [`Driver::entry_point`](crate::Driver::entry_point), [`Entry`] |
//! | a call that you make by a raw function pointer | [`sys::Function::check`](Function::check) turns the result code into an [`Error`] that names the call |
//! | calls that depend on the current context | [`with_current`] |
//! | referring to a context without keeping it alive | [`WeakContext`] |
//! | dropping a context without blocking | [`Context::drop_unless_last`] |
//! | whether two contexts of one device share memory and events | they do if [`Context::is_retained`] is true for both |
//! | whether other code may end a context | [`Context::is_borrowed`] |
//! | whether two objects belong to one driver library | [`Driver::is_same_library`](crate::Driver::is_same_library) |
//! | reporting that an event failed | [`EventRef::mark_failed`](crate::EventRef::mark_failed) |
//! | skipping calls that would become part of a capture | [`is_capture_under_way`] |
//! | keeping objects that captured nodes refer to | [`OwnCapture`], [`GraphValue`] |
//! | captures that another library began | [`ForeignCapture`] |
//! | making no driver call in a forked child | [`is_forked_child`] |
//! | detecting damage in bytes from another process | [`Envelope`] |
//! | finding the device and the process that an object belongs to, from another process | [`Origin`], [`ExporterProcess::of_origin`](crate::ipc::ExporterProcess::of_origin) |
//!
//! ```
//! use cuda_events::foundation::{call, with_current};
//! use cuda_events::sys::CUdeviceptr;
//! use cuda_events::{Context, Device, Result};
//!
//! /// Memory of a device; dropping it frees it.
//! struct Buffer {
//!     context: Context,
//!     address: CUdeviceptr,
//! }
//!
//! impl Buffer {
//!     fn new(context: &Context, bytes: usize) -> Result<Self> {
//!         let (driver, mut address) = (context.driver(), 0);
//!         // SAFETY: the context is current, and the driver writes only the address.
//!         let alloc = || unsafe { call!(driver, cuMemAlloc_v2(&mut address, bytes)) };
//!         with_current(context, alloc)?;
//!         Ok(Self { context: context.clone(), address })
//!     }
//! }
//!
//! impl Drop for Buffer {
//!     fn drop(&mut self) {
//!         let driver = self.context.driver();
//!         // SAFETY: this value owns the memory.
//!         let free = || unsafe { call!(driver, cuMemFree_v2(self.address)) };
//!         let _ = with_current(&self.context, free);
//!     }
//! }
//!
//! # use cuda_soft_driver::examples::Driver;
//! let driver = Driver::load()?;
//! let context = Context::primary(Device::new(driver, 0)?)?;
//! let buffer = Buffer::new(&context, 4096)?;
//! // The error looks like the errors of this crate.
//! let refused = Buffer::new(&context, 0).err().map(|error| error.to_string());
//! assert!(refused.is_some_and(|text| text.starts_with("cuMemAlloc_v2 failed")));
//! # Ok::<(), cuda_events::Error>(())
//! ```

#[cfg(all(doc, feature = "safe"))]
use crate::capture::Capture;
#[cfg(feature = "safe")]
use crate::context::Context;
use crate::driver::{Driver, fork};
use crate::error::{Error, Result, log};
#[cfg(doc)]
use crate::sys::calls::*;
use crate::sys::{CUresult, Function, Symbols};

#[cfg(feature = "safe")]
pub use crate::capture::external::OwnCapture;
#[cfg(feature = "safe")]
pub use crate::capture::foreign::ForeignCapture;
#[cfg(feature = "safe")]
pub use crate::context::WeakContext;
#[cfg(feature = "safe")]
#[doc(hidden)]
pub use crate::driver::HostReads;
pub use crate::driver::call::Entry;
#[cfg(feature = "safe")]
#[doc(hidden)]
pub use crate::driver::deferring::{Deferring, deferring_observers};
#[cfg(feature = "safe")]
pub use crate::graph::retained::GraphValue;
#[cfg(feature = "safe")]
pub use crate::ipc::envelope::{Damage, Envelope, Fields};
#[cfg(feature = "safe")]
pub use crate::ipc::origin::Origin;

/// Makes a driver call, and returns a [`Result<()>`](crate::Result) whose error names the call.
///
/// The first argument is the [`Driver`]. The second is the call: the name of a field of
/// [`Symbols`], with its arguments. An entry point that some drivers lack has a question mark; one
/// of this driver's [`entry_point`](crate::Driver::entry_point) stands in parentheses. The caller
/// writes the `unsafe` block, and argues that the arguments are valid.
///
/// Like the methods of this crate, the macro makes no call in a forked child, and observers (feature
/// `observe`) see the call. Without a call no argument is evaluated, and a `?` in one leaves the
/// function that has the macro.
///
/// ```
/// use cuda_events::foundation::{call, with_current};
/// use cuda_events::sys::CUresult;
/// use cuda_events::{Context, Device, Stream, StreamOptions};
///
/// # use cuda_soft_driver::examples::Driver;
/// let driver = Driver::load()?;
/// let context = Context::primary(Device::new(driver, 0)?)?;
/// let stream = Stream::new(&context, StreamOptions::new())?;
/// let mut id = 0;
/// // SAFETY: the stream is alive, and the driver writes only the number.
/// unsafe { call!(driver, cuStreamGetId?(stream.as_raw(), &mut id)) }?;
/// assert_eq!(stream.id()?, id);
/// let mut address = 0;
/// // SAFETY: the driver writes only the address.
/// let alloc = || unsafe { call!(driver, cuMemAlloc_v2(&mut address, 0)) };
/// let refused = with_current(&context, alloc).expect_err("nothing is allocated");
/// assert_eq!(refused.code(), Some(CUresult::CUDA_ERROR_INVALID_VALUE));
/// # Ok::<(), cuda_events::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Driver`] for every code except `CUDA_SUCCESS`; [`Error::Unsupported`] if the driver
/// lacks the entry point; [`Error::ForkedChild`].
#[doc(inline)]
pub use crate::foundation_call as call;

#[doc(hidden)]
#[macro_export]
macro_rules! foundation_call {
    ($driver:expr, $function:ident($($argument:expr),* $(,)?)) => {
        match $crate::foundation::Calling::begin($driver, $crate::sys::Function::$function) {
            ::core::result::Result::Ok(calling) => {
                calling.end((calling.symbols().$function)($($argument),*))
            }
            ::core::result::Result::Err(error) => ::core::result::Result::Err(error),
        }
    };
    ($driver:expr, ($entry:expr)($($argument:expr),* $(,)?)) => {{
        let (driver, entry) = ($driver, $entry);
        match $crate::foundation::Calling::begin(
            driver,
            $crate::foundation::Entry::function(entry),
        ) {
            ::core::result::Result::Ok(calling) => {
                calling.end($crate::foundation::Entry::pointer(entry)($($argument),*))
            }
            ::core::result::Result::Err(error) => ::core::result::Result::Err(error),
        }
    }};
    ($driver:expr, $function:ident?($($argument:expr),* $(,)?)) => {
        match $crate::foundation::Calling::begin($driver, $crate::sys::Function::$function) {
            ::core::result::Result::Ok(calling) => match calling.symbols().$function {
                ::core::option::Option::Some(pointer) => calling.end(pointer($($argument),*)),
                ::core::option::Option::None => {
                    ::core::result::Result::Err(calling.unsupported())
                }
            },
            ::core::result::Result::Err(error) => ::core::result::Result::Err(error),
        }
    };
}

/// A call that [`call!`] may make. The macro has the call itself, and no closure, so that an argument
/// with a question mark leaves the caller's function.
#[doc(hidden)]
#[derive(Clone, Copy)]
#[allow(missing_debug_implementations, reason = "no program has one")]
pub struct Calling {
    driver: Driver,
    function: Function,
}

impl Calling {
    /// What comes before the call.
    ///
    /// # Errors
    ///
    /// [`Error::ForkedChild`].
    #[inline(always)]
    pub fn begin(driver: Driver, function: Function) -> Result<Self> {
        if is_forked_child() {
            return Err(Error::ForkedChild { function });
        }
        Ok(Self { driver, function })
    }

    /// The table of the call.
    #[inline(always)]
    pub fn symbols(self) -> &'static Symbols {
        self.driver.symbols()
    }

    /// What comes of the call's code.
    ///
    /// # Errors
    ///
    /// [`Error::Driver`] for every code except `CUDA_SUCCESS`.
    #[inline(always)]
    pub fn end(self, code: CUresult) -> Result<()> {
        if code != CUresult::CUDA_SUCCESS {
            return Err(log::failed(self.symbols(), self.function, code));
        }
        if self.function.initialises() {
            fork::note_initialised();
        }
        Ok(())
    }

    /// The error if the driver lacks the function.
    #[inline(always)]
    pub fn unsupported(self) -> Error {
        self.driver.unsupported(self.driver, self.function)
    }
}

/// Calls `f` with the context current on the calling thread. It leaves the thread's context stack
/// as it was, even if `f` fails or panics.
///
/// Driver calls: [`cuCtxGetCurrent`], and if the context is not current already,
/// [`cuCtxPushCurrent`] and [`cuCtxPopCurrent`]. [The module](self) has an example.
///
/// # Errors
///
/// * The error of `f`.
/// * The driver's error, if `f` succeeds and the driver refuses to restore the previous context.
///   The result of `f` is dropped.
/// * [`Error::ForkedChild`]; `f` is not called.
#[cfg(feature = "safe")]
#[inline]
pub fn with_current<T>(context: &Context, f: impl FnOnce() -> Result<T>) -> Result<T> {
    context.with_current(f)
}

/// Returns whether a [`Capture`] is in progress anywhere in this process.
///
/// During a capture, some calls of any thread invalidate the capture or become a part of its graph,
/// for example the destruction of an event that was recorded in it. Code that can do without such a
/// call checks this function first. It is one load, and no driver call.
///
/// A capture that another library begins counts while a [`ForeignCapture`] of it exists.
/// [`capture_status`](crate::StreamRef::capture_status) asks the driver about one stream.
///
/// ```
/// use cuda_events::capture::{Capture, CaptureMode};
/// use cuda_events::foundation::is_capture_under_way;
/// use cuda_events::{Context, Device, Stream, StreamOptions};
///
/// # use cuda_soft_driver::examples::Driver;
/// let driver = Driver::load()?;
/// let context = Context::primary(Device::new(driver, 0)?)?;
/// let stream = Stream::new(&context, StreamOptions::new())?;
/// // SAFETY: no other thread has this stream.
/// let capture = unsafe { Capture::begin(&stream, CaptureMode::ThreadLocal) }?;
/// assert!(is_capture_under_way());
/// capture.end()?;
/// # Ok::<(), cuda_events::Error>(())
/// ```
#[cfg(feature = "safe")]
#[inline(always)]
pub fn is_capture_under_way() -> bool {
    crate::driver::capture_count::under_way()
}

/// Returns whether this process was forked after the driver was initialised. Such a process cannot
/// use the driver.
///
/// Methods of this crate that call the driver return [`Error::ForkedChild`] in such a process. It
/// is known if this crate initialised the driver, by a method or by `call!(driver, cuInit(0))`.
/// Other code checks this function: a destructor, for example, or code that takes a lock that a
/// thread of the parent may have held. It is one load, and no driver call.
///
/// ```
/// use cuda_events::foundation::is_forked_child;
///
/// assert!(!is_forked_child());
/// ```
#[inline(always)]
pub fn is_forked_child() -> bool {
    crate::driver::fork::forked()
}
