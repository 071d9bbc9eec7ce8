//! What can go wrong, and what to do about it.

mod advice;
mod descriptor;
mod shared_timeline;
mod texts;

use std::path::PathBuf;

use crate::Version;
use crate::loader::LoadError;
use crate::sys::{CUresult, Function};

pub use descriptor::DescriptorError;
pub use shared_timeline::SharedTimelineError;

/// A `Result` with this crate's [`Error`].
pub type Result<T, E = Error> = core::result::Result<T, E>;

/// Everything that a call of this crate can return except success.
///
/// Where the driver refused a call, the error has the driver's code ([`code`](Self::code)) and the
/// call ([`function`](Self::function)) beside the cause. This crate looks for a cause only after a
/// call has failed.
///
/// Its `Debug` is its text, as most programs show an error by `unwrap` or by returning it from
/// `main`. It is at most 16 bytes.
///
/// ```
/// use cuda_events::{Error, Event, EventFlags};
/// # use cuda_events::{Context, Device};
/// # let soft = cuda_soft_driver::SoftDriver::new();
/// # let driver = soft.driver();
/// # let context = Context::primary(Device::new(driver, 0)?)?;
/// # let start = Event::new(&context, EventFlags::TIMING)?;
/// # let end = Event::new(&context, EventFlags::TIMING)?;
///
/// let error = start.elapsed_ms(&end).unwrap_err();
/// assert!(matches!(error, Error::NotRecorded { .. }));
/// assert_eq!(
///     error.to_string(),
///     "cuEventElapsedTime_v2 failed with CUDA_ERROR_INVALID_HANDLE (400): one of the two events \
///      was never recorded; record both first"
/// );
/// # Ok::<(), cuda_events::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// No driver library could be loaded.
    Load(LoadError),
    /// The driver could not be initialised: `cuInit` failed.
    Init {
        /// The driver's code.
        code: CUresult,
        /// The library's file, as [`Driver::library`](crate::Driver::library) gives it.
        library: Option<&'static PathBuf>,
    },
    /// A driver call failed.
    Driver {
        /// The call.
        function: Function,
        /// What it answered. A code that this crate does not know keeps its number.
        code: CUresult,
    },
    /// The loaded driver is too old to have this call.
    Unsupported {
        /// The call.
        function: Function,
        /// The CUDA version that introduced it.
        since: Version,
        /// The driver's version.
        driver: Version,
    },
    /// This process was forked after the driver was initialised. Nothing of CUDA works in such a
    /// process.
    ForkedChild {
        /// The call that was not made.
        function: Function,
    },
    /// Two objects belong to different driver libraries. The driver was not asked: to each of them,
    /// the other's handle is an arbitrary address.
    DriverMismatch {
        /// The call that was not made.
        function: Function,
    },
    /// Two objects that must belong to one context do not. The primary context and its
    /// [green](crate::Context::green) ones count as one where an event is recorded or timed.
    ///
    /// Where the driver does not find out by itself, it is not asked:
    ///
    /// * A stream or a context can wait only for those
    ///   [interprocess](crate::EventFlags::INTERPROCESS) events that belong to its own context: the
    ///   driver crashes over another wait. Ordinary events may belong to any context.
    /// * A stream can use the [semaphores](crate::external) of its own context.
    /// * Two streams must belong to one context, or a stream to the context that it was named with:
    ///   to the driver, the default streams of two contexts have one handle.
    ContextMismatch {
        /// The call.
        function: Function,
        /// The driver's code; none if no call failed.
        code: Option<CUresult>,
        /// The device of the first object's context: of the event's, if one of the two is an event.
        device: u16,
        /// The device of the other object's context.
        other_device: u16,
    },
    /// A closure was given to a capturing stream. The driver was not asked: it would keep a
    /// function that runs once in a graph that may be launched many times, and a callback would
    /// invalidate the capture.
    ClosureInCapture {
        /// The call that was not made.
        function: Function,
    },
    /// There is no device of this ordinal.
    NoSuchDevice {
        /// What was asked for.
        ordinal: u32,
        /// How many devices there are; they are numbered from 0.
        count: u32,
    },
    /// Elapsed time needs both events created with
    /// [`EventFlags::TIMING`](crate::EventFlags::TIMING).
    TimingDisabled {
        /// The call.
        function: Function,
        /// The driver's code; none if the driver was not asked, as an event is not created yet.
        code: Option<CUresult>,
    },
    /// An event was never recorded: elapsed time needs both recorded, and
    /// [`LazyEvent::wait_recorded`](crate::ext::LazyEvent::wait_recorded) the one.
    NotRecorded {
        /// The call.
        function: Function,
        /// The driver's code; none if the driver was not asked. A wait for such an event is over at
        /// once for it.
        code: Option<CUresult>,
    },
    /// Elapsed time needs both events completed.
    NotReady {
        /// The call.
        function: Function,
        /// What it answered.
        code: CUresult,
    },
    /// The time from one event to another is negative, which a `Duration` cannot be. The driver
    /// gave the time.
    EndBeforeStart,
    /// A graph node was used with another graph than its own. The driver was not asked.
    GraphMismatch {
        /// The call that was not made.
        function: Function,
    },
    /// The stream takes no part in the capture. The driver was not asked.
    CaptureMismatch {
        /// The call that was not made.
        function: Function,
    },
    /// A [green context](crate::Context::green) cannot be made of these resources: of none, of one
    /// of another device, or of several that are not different parts of one split. The driver was
    /// not asked: it may end the process.
    ResourceMismatch {
        /// The call that was not made.
        function: Function,
    },
    /// An event cannot have both [`TIMING`](crate::EventFlags::TIMING) and
    /// [`INTERPROCESS`](crate::EventFlags::INTERPROCESS). The driver was not asked.
    TimingWithInterprocess,
    /// Only an event created with [`EventFlags::INTERPROCESS`](crate::EventFlags::INTERPROCESS) can
    /// be exported. The driver was not asked.
    NotInterprocess,
    /// An imported event cannot be exported again. The driver was not asked.
    ExportOfImport,
    /// A signal of a [timeline](crate::ext::Timeline#captures) was given to a capturing stream, or
    /// a wait for a point of another context. The driver was not asked: it would have each launch
    /// of the graph write the same value again.
    TimelineInCapture {
        /// The call that was not made.
        function: Function,
    },
    /// A [timeline](crate::ext::Timeline) cannot belong to the per-thread default stream, which is
    /// another stream in each thread, so that its value would not only rise. The driver was not
    /// asked.
    PerThreadTimeline,
    /// The timeline was [poisoned](crate::ext::Timeline::poison) before it reached the value.
    Poisoned,
    /// The point is not reached, and the last share of its timeline's context was dropped, so that
    /// the driver cannot be asked whether it ever will be. For a point of an
    /// [imported](crate::ext::ImportedTimeline) timeline: that was dropped.
    ContextDropped,
    /// The process that had to signal an [imported](crate::ext::ImportedTimeline) timeline has
    /// ended before it reached the value.
    ExporterGone,
    /// A [semaphore](crate::external) was to be imported in a context of another device than its
    /// own. The driver was not asked.
    SemaphoreOfOtherDevice {
        /// The call that was not made.
        function: Function,
        /// The ordinal that the semaphore's device has in this process; none if it is not visible
        /// here.
        semaphore: Option<u16>,
        /// The device of the context.
        context: u16,
    },
    /// What was to be imported is no [semaphore](crate::external) of that kind that the driver can
    /// import.
    NotASemaphore {
        /// The call.
        function: Function,
        /// The driver's code; none if it was not asked, as the handle stands for none.
        code: Option<CUresult>,
    },
    /// The process has no place for another [observer](crate::Driver::observe) of this driver.
    TooManyObservers,
    /// A pool cannot hold events with [`INTERPROCESS`](crate::EventFlags::INTERPROCESS).
    InterprocessPool,
    /// The context's streams have no such priority. The driver was not asked: it would have clamped
    /// it silently.
    PriorityOutOfRange {
        /// What was asked for.
        priority: i32,
        /// The range's least important end, the largest number.
        least: i32,
        /// The range's most important end, the smallest number.
        greatest: i32,
    },
    /// An IPC descriptor was refused.
    Descriptor(DescriptorError),
    /// A timeline could not be shared with other processes, or not be imported from one.
    SharedTimeline(SharedTimelineError),
}

impl Error {
    /// The driver call that failed or was not made; none where no single call is to blame.
    pub fn function(&self) -> Option<Function> {
        match *self {
            Self::Driver { function, .. }
            | Self::Unsupported { function, .. }
            | Self::ForkedChild { function }
            | Self::DriverMismatch { function }
            | Self::TimelineInCapture { function }
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
            Self::Descriptor(DescriptorError::SameProcess { .. }) => {
                Some(Function::cuIpcOpenEventHandle)
            }
            _ => None,
        }
    }

    /// The driver's own code, where the driver was asked.
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
            Self::Descriptor(DescriptorError::SameProcess { .. }) => {
                Some(CUresult::CUDA_ERROR_INVALID_CONTEXT)
            }
            _ => None,
        }
    }

    /// Whether CUDA is lost for this process, so that only a new process can use the device again.
    ///
    /// Such an error is not about the call that returned it. Work on the device has failed earlier,
    /// or the hardware has, and took the context with it: every later call on its events and
    /// streams returns the same code in every thread, and so does retaining the device's primary
    /// context again. The codes are those after which NVIDIA's documentation asks for a new
    /// process, and the uncorrectable errors of memory and NVLink. [`Error::ForkedChild`] is sticky
    /// too.
    ///
    /// It makes no driver call.
    ///
    /// ```
    /// use cuda_events::Error;
    /// use cuda_events::sys::{CUresult, Function};
    ///
    /// let error = |code| Error::Driver { function: Function::cuEventQuery, code };
    /// assert!(error(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS).is_sticky());
    /// assert!(!error(CUresult::CUDA_ERROR_OUT_OF_MEMORY).is_sticky());
    /// ```
    pub fn is_sticky(&self) -> bool {
        matches!(self, Self::ForkedChild { .. }) || self.code().is_some_and(advice::is_sticky)
    }

    /// `Ok` for success, otherwise the plain driver error.
    #[inline(always)]
    pub(crate) fn check(function: Function, code: CUresult) -> Result<()> {
        if code == CUresult::CUDA_SUCCESS { Ok(()) } else { Err(Self::driver(function, code)) }
    }

    /// Out of line, so that callers keep nothing in registers across a successful call for its
    /// sake.
    #[cold]
    #[inline(never)]
    pub(crate) fn driver(function: Function, code: CUresult) -> Self {
        Self::Driver { function, code }
    }

    /// Two objects belong to contexts that do not go together there, of devices of these ordinals.
    #[cold]
    pub(crate) fn context_mismatch(
        function: Function,
        code: Option<CUresult>,
        devices: [u32; 2],
    ) -> Self {
        // No machine has so many devices.
        let [device, other_device] =
            devices.map(|ordinal| u16::try_from(ordinal).unwrap_or(u16::MAX));
        Self::ContextMismatch { function, code, device, other_device }
    }
}

// No `source`: the text of a load or descriptor error is this error's own text already, and a
// report that prints the chain would say it twice.
impl std::error::Error for Error {}

impl From<LoadError> for Error {
    fn from(error: LoadError) -> Self {
        Self::Load(error)
    }
}

impl From<DescriptorError> for Error {
    fn from(error: DescriptorError) -> Self {
        Self::Descriptor(error)
    }
}

impl From<SharedTimelineError> for Error {
    fn from(error: SharedTimelineError) -> Self {
        Self::SharedTimeline(error)
    }
}

static_assertions::assert_impl_all!(Error: Send, Sync, Clone, std::error::Error);
static_assertions::const_assert!(size_of::<Error>() <= 16);
static_assertions::const_assert!(size_of::<Result<()>>() <= 16);
