//! The errors of this crate, with advice.

mod advice;
#[cfg(feature = "safe")]
mod descriptor;
pub(crate) mod log;
mod texts;

use std::path::PathBuf;

use crate::Version;
use crate::loader::LoadError;
use crate::sys::{CUresult, Function};

#[cfg(feature = "safe")]
pub use descriptor::DescriptorError;

#[cfg(doc)]
use crate::sys::calls::*;

/// A `Result` with this crate's [`Error`].
pub type Result<T, E = Error> = core::result::Result<T, E>;

/// The errors that this crate returns.
///
/// If a driver call failed, the error keeps the driver's code ([`code`](Self::code)) and the call
/// ([`function`](Self::function)). "No call was made" means that this crate found the mistake
/// before the call.
///
/// A driver's code often has several causes. If such an error has a variant of its own, the variant
/// names the probable cause: it is left when the flags and contexts of the objects exclude others,
/// and other code may have asserted these wrongly, or destroyed an object. Then the text says
/// "probably", and the code, the call and the driver's [lines](Self::driver_log) are there too.
///
/// The [errors guide](crate::guide::errors) lists each error, its cause, and what to do. Pending
/// work is not an error: see [`Progress`](crate::Progress).
///
/// `Debug` prints the text of `Display`, and below it the lines that the driver
/// [logged](Self::driver_log). `unwrap`, and an error returned from `main`, print with `Debug`. The
/// type has at most 16 bytes.
///
/// ```
/// use cuda_events::{Context, Device, Error, Event, EventFlags};
///
/// # use cuda_soft_driver::examples::Driver;
/// let driver = Driver::load()?;
/// let context = Context::primary(Device::new(driver, 0)?)?;
/// let start = Event::new(&context, EventFlags::TIMING)?;
/// let end = Event::new(&context, EventFlags::TIMING)?;
///
/// let error = start.elapsed_ms(&end).unwrap_err();
/// assert!(matches!(error, Error::NotRecorded { .. }));
/// println!("{error}");
/// // cuEventElapsedTime_v2 failed with CUDA_ERROR_INVALID_HANDLE (400): probably one of the two
/// // events was never recorded; record both first (a destroyed event has the same code)
/// # Ok::<(), cuda_events::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// No driver library could be loaded.
    Load(LoadError),
    /// The driver could not be initialised: [`cuInit`] failed.
    Init {
        /// The driver's code.
        code: CUresult,
        /// The library's file, as [`Driver::library`](crate::Driver::library) returns it.
        library: Option<&'static PathBuf>,
    },
    /// A driver call failed.
    Driver {
        /// The call.
        function: Function,
        /// The driver's code. A code that this crate has no name for keeps its number.
        code: CUresult,
    },
    /// The loaded driver is too old for this call. No call was made. A misspelt name given to
    /// [`entry_point`](crate::Driver::entry_point) is this error too.
    Unsupported {
        /// The call.
        function: Function,
        /// The CUDA version that introduced it.
        since: Version,
        /// The driver's version.
        driver: Version,
    },
    /// This process was forked after the driver was initialised. No call was made: CUDA does not
    /// work in such a process.
    ForkedChild {
        /// The call that was not made.
        function: Function,
    },
    /// Two objects belong to different driver libraries. No call was made: to one library, a handle
    /// of the other is an arbitrary address.
    DriverMismatch {
        /// The call that was not made.
        function: Function,
    },
    /// Two objects belong to different contexts, but the call needs one context. With a code of the
    /// driver, that is the probable cause. For recording and timing events, a primary context and
    /// its [green](crate::Context::green) contexts count as one.
    ///
    /// No call was made in these cases:
    ///
    /// * A stream or a context waits for an [interprocess](crate::EventFlags::INTERPROCESS) event
    ///   of another context. The driver would crash. Ordinary events may belong to any context.
    /// * A stream uses a [semaphore](crate::external) of another context. Streams of a
    ///   [green](crate::Context::green) context can use none, so importing a semaphore into a green
    ///   context returns this error too.
    /// * [`copy_attributes_from`](crate::StreamRef::copy_attributes_from) gets a stream of another
    ///   context.
    /// * [`ForeignStream::new`](crate::ForeignStream::new) gets a stream of another context than
    ///   the given one.
    ContextMismatch {
        /// The call.
        function: Function,
        /// The driver's code; `None` if the call was not made.
        code: Option<CUresult>,
        /// The device of the event or of the semaphore. For two events or two streams, that of
        /// `self`. For [`ForeignStream::new`](crate::ForeignStream::new), that of the given
        /// context.
        device: u16,
        /// The device of the other object.
        other_device: u16,
    },
    /// A closure was given to a capturing stream. No call was made: a closure can run only once,
    /// but the captured graph may be launched many times.
    ClosureInCapture {
        /// The call that was not made.
        function: Function,
    },
    /// There is no device with this ordinal: [`cuDeviceGet`] failed, and the number of devices
    /// explains it.
    NoSuchDevice {
        /// The requested ordinal.
        ordinal: u32,
        /// The number of devices; ordinals start at 0.
        count: u32,
    },
    /// An event takes no time stamps; with a code of the driver, probably. For elapsed time, create
    /// both events with [`EventFlags::TIMING`](crate::EventFlags::TIMING).
    TimingDisabled {
        /// The call.
        function: Function,
        /// The driver's code; `None` if no call was made because a
        /// [`LazyEvent`](crate::ext::LazyEvent) has no event yet.
        code: Option<CUresult>,
    },
    /// An event was never recorded; with a code of the driver, probably. Record both events before
    /// you call [`elapsed`](crate::EventRef::elapsed). Record a lazy event before you call
    /// [`wait_recorded`](crate::ext::LazyEvent::wait_recorded).
    NotRecorded {
        /// The call.
        function: Function,
        /// The driver's code; `None` if no call was made.
        code: Option<CUresult>,
    },
    /// An event is not complete. Elapsed time needs two complete events.
    NotReady {
        /// The call.
        function: Function,
        /// The driver's code.
        code: CUresult,
    },
    /// The time from one event to another is negative, and a `Duration` cannot be negative. The
    /// driver call succeeded.
    EndBeforeStart,
    /// A graph node was used with a graph that it does not belong to. No call was made.
    GraphMismatch {
        /// The call that was not made.
        function: Function,
    },
    /// The stream does not take part in the capture. No call was made.
    CaptureMismatch {
        /// The call that was not made.
        function: Function,
    },
    /// A [green context](crate::Context::green) cannot be made of these resources. No call was
    /// made.
    ResourceMismatch {
        /// The call that was not made.
        function: Function,
    },
    /// An event cannot have both [`TIMING`](crate::EventFlags::TIMING) and
    /// [`INTERPROCESS`](crate::EventFlags::INTERPROCESS). No call was made.
    TimingWithInterprocess,
    /// The event cannot be exported: it was created without
    /// [`EventFlags::INTERPROCESS`](crate::EventFlags::INTERPROCESS). No call was made.
    NotInterprocess,
    /// An imported event cannot be exported again. No call was made.
    ExportOfImport,
    /// Streams of a [green](crate::Context::green) context must be
    /// [non-blocking](crate::StreamOptions::blocking). No call was made.
    BlockingInGreenContext,
    /// The [exporter](crate::ipc::ExporterProcess) of an event has ended before the event's record
    /// completed.
    ExporterGone,
    /// A [semaphore](crate::external) cannot be imported in a context of another device. No call
    /// was made.
    SemaphoreOfOtherDevice {
        /// The call that was not made.
        function: Function,
        /// The ordinal of the semaphore's device in this process; `None` if it is not visible here.
        semaphore: Option<u16>,
        /// The device of the context.
        context: u16,
    },
    /// The driver cannot import this handle as a [semaphore](crate::external) of that kind; with a
    /// code of the driver, probably. Or one call was given the same binary semaphore twice.
    NotASemaphore {
        /// The call.
        function: Function,
        /// The driver's code; `None` if no call was made.
        code: Option<CUresult>,
    },
    /// There is no room for another observer (`Driver::observe`) of this driver. A process
    /// has room for sixteen observers.
    TooManyObservers,
    /// A pool cannot hold events with [`INTERPROCESS`](crate::EventFlags::INTERPROCESS). No call
    /// was made.
    InterprocessPool,
    /// The priority is outside the context's range. No call was made: the driver would clamp the
    /// priority silently.
    PriorityOutOfRange {
        /// The requested priority.
        priority: i32,
        /// The least important priority, the largest number.
        least: i32,
        /// The most important priority, the smallest number.
        greatest: i32,
    },
    /// An IPC descriptor is invalid, or cannot be used here.
    #[cfg(feature = "safe")]
    Descriptor(DescriptorError),
}

impl Error {
    /// Returns the driver call that failed or was not made; `None` if the error does not belong to
    /// one call.
    ///
    /// ```
    /// use cuda_events::{Context, Device, Event, EventFlags};
    ///
    /// # use cuda_soft_driver::examples::Driver;
    /// let driver = Driver::load()?;
    /// let context = Context::primary(Device::new(driver, 0)?)?;
    /// let event = Event::new(&context, EventFlags::empty())?;
    /// if let Err(error) = event.elapsed_ms(&event) {
    ///     println!("{:?} returned {:?}", error.function(), error.code());
    /// }
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    pub fn function(&self) -> Option<Function> {
        match *self {
            Self::Driver { function, .. }
            | Self::Unsupported { function, .. }
            | Self::ForkedChild { function }
            | Self::DriverMismatch { function }
            | Self::ContextMismatch { function, .. }
            | Self::ClosureInCapture { function }
            | Self::GraphMismatch { function }
            | Self::CaptureMismatch { function }
            | Self::ResourceMismatch { function }
            | Self::SemaphoreOfOtherDevice { function, .. }
            | Self::NotASemaphore { function, .. }
            | Self::TimingDisabled { function, .. }
            | Self::NotRecorded { function, .. }
            | Self::NotReady { function, .. } => Some(function),
            Self::Init { .. } => Some(Function::cuInit),
            Self::NoSuchDevice { .. } => Some(Function::cuDeviceGet),
            #[cfg(feature = "safe")]
            Self::Descriptor(DescriptorError::SameProcess { .. }) => {
                Some(Function::cuIpcOpenEventHandle)
            }
            _ => None,
        }
    }

    /// Returns the driver's code; `None` if no call was made.
    ///
    /// [`function`](Self::function) has an example.
    pub fn code(&self) -> Option<CUresult> {
        match *self {
            Self::Driver { code, .. } | Self::Init { code, .. } | Self::NotReady { code, .. } => {
                Some(code)
            }
            Self::ContextMismatch { code, .. }
            | Self::NotASemaphore { code, .. }
            | Self::TimingDisabled { code, .. }
            | Self::NotRecorded { code, .. } => code,
            Self::NoSuchDevice { .. } => Some(CUresult::CUDA_ERROR_INVALID_DEVICE),
            #[cfg(feature = "safe")]
            Self::Descriptor(DescriptorError::SameProcess { .. }) => {
                Some(CUresult::CUDA_ERROR_INVALID_CONTEXT)
            }
            _ => None,
        }
    }

    /// Returns the lines that the driver logged for the call that failed; `None` if it logged none.
    ///
    /// From CUDA 12.9 on the driver logs why it refused a call. If a call fails with an unexpected
    /// code, this crate reads the driver's new log lines ([`cuLogsDumpToMemory`], and once in each
    /// thread [`cuLogsCurrent`]). It keeps up to eight lines of the failed call.
    ///
    /// Each thread keeps the lines of its last failed call only. So call this method in the thread
    /// in which the call failed, before its next call fails. The method makes no driver call.
    ///
    /// In rare cases the lines belong to another call of the same function with the same error.
    ///
    /// The log is not read for `CUDA_ERROR_NOT_READY`, `CUDA_ERROR_DEINITIALIZED` and
    /// `CUDA_ERROR_NOT_PERMITTED`.
    ///
    /// ```
    /// use cuda_events::{Context, Device, Event, EventFlags};
    ///
    /// # use cuda_soft_driver::examples::Driver;
    /// let driver = Driver::load()?;
    /// let context = Context::primary(Device::new(driver, 0)?)?;
    /// let event = Event::new(&context, EventFlags::empty())?;
    /// if let Err(error) = event.synchronize() {
    ///     println!("{error}");
    ///     println!("{}", error.driver_log().unwrap_or_default());
    /// }
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    pub fn driver_log(&self) -> Option<String> {
        log::lines_of(self.function()?, self.code()?)
    }

    /// Returns whether this error ends the use of CUDA in this process. Only a new process can use
    /// the device again.
    ///
    /// The call that returned such an error is not its cause. Earlier work on the device failed, or
    /// the hardware did, and the context failed with it. From then on every call on the context's
    /// events and streams returns the same code, in every thread.
    /// [`Context::primary`](crate::Context::primary) of the device returns it, too.
    /// [`Error::ForkedChild`] is sticky too.
    ///
    /// It makes no driver call.
    ///
    /// ```
    /// use cuda_events::{Context, Device, Stream, StreamOptions};
    ///
    /// # let _ = || {
    /// let driver = cuda_events::Driver::load()?;
    /// # Ok::<_, cuda_events::Error>(driver) };
    /// # let soft = cuda_soft_driver::SoftDriver::new();
    /// # let driver = soft.driver();
    /// let context = Context::primary(Device::new(driver, 0)?)?;
    /// let stream = Stream::new(&context, StreamOptions::new())?;
    /// // ... work is put into `stream`, and a kernel of it writes to a bad address ...
    /// # soft.fail_contexts(cuda_events::sys::CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
    /// match stream.synchronize() {
    ///     Ok(()) => println!("the results can be read"),
    ///     // No retry helps. Let a supervisor start another process.
    ///     Err(error) if error.is_sticky() => eprintln!("{error}"),
    ///     Err(error) => return Err(error),
    /// }
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    pub fn is_sticky(&self) -> bool {
        matches!(self, Self::ForkedChild { .. }) || self.code().is_some_and(advice::is_sticky)
    }

    /// Out of line, so callers need not keep its arguments in registers across a successful call.
    #[cold]
    #[inline(never)]
    pub(crate) fn driver(function: Function, code: CUresult) -> Self {
        Self::Driver { function, code }
    }
}

impl Function {
    /// Turns the code that this function returned into a result. The error names the function and
    /// the code.
    ///
    /// It makes no driver call, and a success costs one comparison.
    /// [`call!`](crate::foundation::call) also makes the call; its error has the lines that the
    /// driver [logged](Error::driver_log).
    ///
    /// ```
    /// use cuda_events::sys::Function;
    ///
    /// # use cuda_soft_driver::examples::Driver;
    /// let driver = Driver::load()?;
    /// let mut count = 0;
    /// // SAFETY: the driver writes only the number.
    /// let code = unsafe { (driver.symbols().cuDeviceGetCount)(&mut count) };
    /// let error = Function::cuDeviceGetCount.check(code).unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     "cuDeviceGetCount failed with CUDA_ERROR_NOT_INITIALIZED (3)"
    /// );
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Driver`] for every code except `CUDA_SUCCESS`.
    #[inline(always)]
    pub fn check(self, code: CUresult) -> Result<()> {
        if code == CUresult::CUDA_SUCCESS { Ok(()) } else { Err(Error::driver(self, code)) }
    }
}

// No `source`: the text of a load or descriptor error is already the text of this error, and a
// report that prints the chain would print it twice.
impl std::error::Error for Error {}

impl From<LoadError> for Error {
    fn from(error: LoadError) -> Self {
        Self::Load(error)
    }
}

#[cfg(feature = "safe")]
impl From<DescriptorError> for Error {
    fn from(error: DescriptorError) -> Self {
        Self::Descriptor(error)
    }
}

static_assertions::assert_impl_all!(Error: Send, Sync, Clone, std::error::Error);
static_assertions::const_assert!(size_of::<Error>() <= 16);
static_assertions::const_assert!(size_of::<Result<()>>() <= 16);
