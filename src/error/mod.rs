//! What can go wrong, and what to do about it.

use core::fmt;
use std::path::PathBuf;

use crate::Version;
use crate::loader::LoadError;
use crate::sys::{CUresult, Function};

/// A `Result` with this crate's [`Error`].
pub type Result<T, E = Error> = core::result::Result<T, E>;

/// Everything that a call of this crate can return except success.
///
/// Where the driver refused a call, the error has the driver's code ([`code`](Self::code)) and the call
/// ([`function`](Self::function)) beside the cause. This crate looks for a cause only after a call has failed.
///
/// Its `Debug` is its text, as most programs show an error by `unwrap` or by returning it from `main`. It is at most 16
/// bytes.
///
/// ```
/// use cuda_events::{Error, Event, EventFlags};
/// # use cuda_events::{Context, Device};
/// # let soft = cuda_soft_driver::SoftDriver::new();
/// # let driver = soft.driver();
/// # let context = Context::primary(Device::new(driver, 0)?)?;
/// # let (start, end) = (Event::new(&context, EventFlags::TIMING)?, Event::new(&context, EventFlags::TIMING)?);
///
/// let error = start.elapsed_ms(&end).unwrap_err();
/// assert!(matches!(error, Error::NotRecorded { .. }));
/// assert_eq!(
///     error.to_string(),
///     "cuEventElapsedTime_v2 failed with CUDA_ERROR_INVALID_HANDLE (400): one of the two events was never recorded; \
///      record both first"
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
    /// This process was forked after the driver was initialised. Nothing of CUDA works in such a process.
    ForkedChild {
        /// The call that was not made.
        function: Function,
    },
    /// Two objects belong to different driver libraries. The driver was not asked: to each of them, the other's handle is
    /// an arbitrary address.
    OtherDriver {
        /// The call that was not made.
        function: Function,
    },
    /// Two streams that must belong to one context do not, or a stream does not belong to the context that it was named
    /// with. The driver was not asked: to it, default streams of two contexts have one handle.
    OtherContext {
        /// The call that was not made.
        function: Function,
        /// The device of the first stream's context.
        device: u32,
        /// The device of the other stream's context.
        other_device: u32,
    },
    /// A closure was given to a capturing stream. The driver was not asked: it would keep a function that runs once in a
    /// graph that may be launched many times, and a callback would invalidate the capture.
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
    /// Two objects that must belong to one context do not. The primary context and its [green](crate::Context::green) ones
    /// count as one there.
    ContextMismatch {
        /// The call.
        function: Function,
        /// What it answered.
        code: CUresult,
        /// The device of the first event's context.
        event_device: u32,
        /// The device of the stream's, or the second event's, context.
        other_device: u32,
    },
    /// A stream can wait only for those [interprocess](crate::EventFlags::INTERPROCESS) events that belong to its own
    /// context. The driver was not asked: it crashes over such a wait. Ordinary events may belong to any context.
    WaitAcrossContexts {
        /// The call that was not made.
        function: Function,
        /// The device of the event's context.
        event_device: u32,
        /// The device of the context that was to wait.
        other_device: u32,
    },
    /// Elapsed time needs both events created with [`EventFlags::TIMING`](crate::EventFlags::TIMING).
    TimingDisabled {
        /// The call.
        function: Function,
        /// What it answered.
        code: CUresult,
    },
    /// Elapsed time needs both events recorded.
    NotRecorded {
        /// The call.
        function: Function,
        /// What it answered.
        code: CUresult,
    },
    /// Elapsed time needs both events completed.
    NotReady {
        /// The call.
        function: Function,
        /// What it answered.
        code: CUresult,
    },
    /// The time from one event to another is negative, which a `Duration` cannot be. The driver gave the time.
    EndBeforeStart,
    /// There is nothing to wait for, as the [lazy event](crate::ext::LazyEvent) was not recorded. The driver was not asked: for
    /// it such a wait is over at once.
    NeverRecorded,
    /// A graph node was used with another graph than its own. The driver was not asked.
    NodeOfOtherGraph {
        /// The call that was not made.
        function: Function,
    },
    /// The stream takes no part in the capture. The driver was not asked.
    OtherCapture {
        /// The call that was not made.
        function: Function,
    },
    /// A [green context](crate::Context::green) cannot be made of these resources: of none, of one of another device, or of
    /// several that are not different parts of one split. The driver was not asked: it may end the process.
    ResourceMismatch {
        /// The call that was not made.
        function: Function,
    },
    /// An event cannot have both [`TIMING`](crate::EventFlags::TIMING) and
    /// [`INTERPROCESS`](crate::EventFlags::INTERPROCESS). The driver was not asked.
    TimingWithInterprocess,
    /// Only an event created with [`EventFlags::INTERPROCESS`](crate::EventFlags::INTERPROCESS) can be exported. The
    /// driver was not asked.
    NotInterprocess,
    /// An imported event cannot be exported again. The driver was not asked.
    ExportOfImport,
    /// The process has no place for another [observer](crate::Driver::observe) of this driver.
    TooManyObservers,
    /// A pool cannot hold events with [`INTERPROCESS`](crate::EventFlags::INTERPROCESS).
    InterprocessPool,
    /// The context's streams have no such priority. The driver was not asked: it would have clamped it silently.
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
}

impl Error {
    /// The driver call that failed or was not made; none where no single call is to blame.
    pub fn function(&self) -> Option<Function> {
        match *self {
            Self::Driver { function, .. }
            | Self::Unsupported { function, .. }
            | Self::ForkedChild { function }
            | Self::OtherDriver { function }
            | Self::OtherContext { function, .. }
            | Self::ClosureInCapture { function }
            | Self::NodeOfOtherGraph { function }
            | Self::OtherCapture { function }
            | Self::ResourceMismatch { function }
            | Self::ContextMismatch { function, .. }
            | Self::WaitAcrossContexts { function, .. }
            | Self::TimingDisabled { function, .. }
            | Self::NotRecorded { function, .. }
            | Self::NotReady { function, .. } => Some(function),
            Self::Init { .. } => Some(Function::cuInit),
            Self::NoSuchDevice { .. } => Some(Function::cuDeviceGet),
            Self::Descriptor(DescriptorError::SameProcess { .. }) => Some(Function::cuIpcOpenEventHandle),
            _ => None,
        }
    }

    /// The driver's own code, where the driver was asked.
    pub fn code(&self) -> Option<CUresult> {
        match *self {
            Self::Driver { code, .. }
            | Self::Init { code, .. }
            | Self::ContextMismatch { code, .. }
            | Self::TimingDisabled { code, .. }
            | Self::NotRecorded { code, .. }
            | Self::NotReady { code, .. } => Some(code),
            Self::NoSuchDevice { .. } => Some(CUresult::CUDA_ERROR_INVALID_DEVICE),
            Self::Descriptor(DescriptorError::SameProcess { .. }) => Some(CUresult::CUDA_ERROR_INVALID_CONTEXT),
            _ => None,
        }
    }

    /// Whether CUDA is lost for this process, so that only a new process can use the device again.
    ///
    /// Such an error is not about the call that returned it. Work on the device has failed earlier, or the hardware has,
    /// and took the context with it: every later call on its events and streams returns the same code in every thread,
    /// and so does retaining the device's primary context again. The codes are those after which NVIDIA's documentation
    /// asks for a new process, and the uncorrectable errors of memory and NVLink. [`Error::ForkedChild`] is sticky too.
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
        matches!(self, Self::ForkedChild { .. }) || self.code().is_some_and(is_sticky)
    }

    /// `Ok` for success, otherwise the plain driver error.
    #[inline(always)]
    pub(crate) fn check(function: Function, code: CUresult) -> Result<()> {
        if code == CUresult::CUDA_SUCCESS { Ok(()) } else { Err(Self::driver(function, code)) }
    }

    /// Out of line, so that callers keep nothing in registers across a successful call for its sake.
    #[cold]
    #[inline(never)]
    pub(crate) fn driver(function: Function, code: CUresult) -> Self {
        Self::Driver { function, code }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Load(error) => error.fmt(f),
            Self::Init { code, library } => {
                write!(f, "{}", Function::cuInit)?;
                if let Some(library) = library {
                    write!(f, " of {}", library.display())?;
                }
                failed(f, Function::cuInit, *code)
            }
            Self::Driver { function, code } => {
                write!(f, "{function}")?;
                failed(f, *function, *code)
            }
            Self::Unsupported { function, since, driver } if driver < since => {
                write!(f, "{function} needs CUDA {since}, and the driver supports CUDA {driver}: update the driver")
            }
            Self::Unsupported { function, since, driver } => write!(
                f,
                "{function} is missing from the driver, which says that it supports CUDA {driver} and so should have this \
                 call of CUDA {since}"
            ),
            Self::ForkedChild { function } => write!(
                f,
                "{function} was not called: this process was forked after CUDA was initialised, and CUDA does not \
                 survive a fork; fork before the first use of a device, or start the child with exec"
            ),
            Self::OtherDriver { function } => write!(
                f,
                "{function} was not called: its objects belong to two different driver libraries of this process; use \
                 objects of one"
            ),
            Self::OtherContext { function: Function::cuStreamGetCtx, device, other_device } if device == other_device => {
                write!(
                    f,
                    "the stream belongs to another context of device {device} than the one that it was named with; name \
                     that one with Context::from_raw_with_owner"
                )
            }
            Self::OtherContext { function: Function::cuStreamGetCtx, device, other_device } => write!(
                f,
                "the stream belongs to a context of device {other_device}, and was named with one of device {device}; \
                 name it with one of its own device"
            ),
            Self::OtherContext { function, device, other_device } => {
                write!(f, "{function} was not called: the streams belong to ")?;
                if device == other_device {
                    write!(f, "two contexts of device {device}")?;
                } else {
                    write!(f, "contexts of device {device} and of device {other_device}")?;
                }
                f.write_str("; both must belong to one context")
            }
            Self::ClosureInCapture { function } => write!(
                f,
                "{function} was not called: the stream captures, and a closure runs once, where a graph can be launched \
                 many times; call it outside of the capture, or capture a function with launch_host_function_raw"
            ),
            Self::NoSuchDevice { ordinal, count: 0 } => write!(
                f,
                "there is no device {ordinal}: this process sees none; look at nvidia-smi and at CUDA_VISIBLE_DEVICES"
            ),
            Self::NoSuchDevice { ordinal, count: 1 } => {
                write!(f, "there is no device {ordinal}: the only device is device 0")
            }
            Self::NoSuchDevice { ordinal, count } => {
                write!(f, "there is no device {ordinal}: the devices are 0 to {}", count - 1)
            }
            Self::ContextMismatch { function, code, event_device, other_device } => {
                let other = match function {
                    Function::cuEventRecord | Function::cuEventRecordWithFlags => "stream",
                    Function::cuCtxRecordEvent => "work",
                    _ => "other event",
                };
                write!(f, "{function} failed with {code}: the event belongs to ")?;
                if event_device == other_device {
                    write!(f, "another context of device {event_device} than the {other}")?;
                } else {
                    write!(f, "a context of device {event_device}, the {other} to one of device {other_device}")?;
                }
                f.write_str("; both must belong to one context")
            }
            Self::WaitAcrossContexts { function, event_device, other_device } => {
                write!(f, "{function} was not called: the interprocess event belongs to ")?;
                if event_device == other_device {
                    write!(f, "another context of device {event_device}")?;
                } else {
                    write!(f, "a context of device {event_device}, not {other_device}")?;
                }
                f.write_str(
                    ", and the driver crashes over such a wait; wait in a stream of the event's context, and let the other \
                     stream wait for that one with wait_stream",
                )
            }
            Self::TimingDisabled { function, code } => write!(
                f,
                "{function} failed with {code}: one of the two events takes no time stamps; create both with \
                 EventFlags::TIMING, which interprocess events cannot have"
            ),
            Self::NotRecorded { function, code } => {
                write!(f, "{function} failed with {code}: one of the two events was never recorded; record both first")
            }
            Self::NotReady { function, code } => write!(
                f,
                "{function} failed with {code}: the work before one of the two events is not done; synchronize with the \
                 later event first"
            ),
            Self::EndBeforeStart => f.write_str(
                "the end was recorded before the start; exchange the two events, or take elapsed_ms, which has a sign",
            ),
            Self::NeverRecorded => f.write_str(
                "the event was not recorded, and a wait does not wait for a record that comes later: record it before",
            ),
            Self::NodeOfOtherGraph { function } => {
                write!(f, "{function} was not called: the node belongs to another graph")
            }
            Self::OtherCapture { function } => write!(
                f,
                "{function} was not called: the stream is not of this capture; let it wait for an event that was \
                 recorded in the capture"
            ),
            Self::ResourceMismatch { function } => write!(
                f,
                "{function} was not called: a green context takes one resource of its device, or several different parts \
                 of one split"
            ),
            Self::TimingWithInterprocess => f.write_str(
                "an event cannot be both TIMING and INTERPROCESS: the driver does not time interprocess events; create \
                 one event for each",
            ),
            Self::NotInterprocess => {
                f.write_str("only an event created with EventFlags::INTERPROCESS has an IPC descriptor")
            }
            Self::ExportOfImport => f.write_str(
                "an imported event has no IPC descriptor of its own: pass on the one that it was imported from",
            ),
            Self::TooManyObservers => f.write_str(
                "this process has no place left for an observer of this driver; take one away with stop_observing, or let \
                 one do the work of two",
            ),
            Self::InterprocessPool => f.write_str(
                "a pool cannot hold interprocess events: one that was given back may still be open in another process",
            ),
            Self::PriorityOutOfRange { priority, least, greatest } => write!(
                f,
                "stream priority {priority} is out of range: this context has {least} (least important) to {greatest} \
                 (most important)"
            ),
            Self::Descriptor(error) => error.fmt(f),
        }
    }
}

/// The end of a text: the code, and what to do about it.
fn failed(f: &mut fmt::Formatter<'_>, function: Function, code: CUresult) -> fmt::Result {
    write!(f, " failed with {code}")?;
    match advice(function, code) {
        Some(advice) => write!(f, ": {advice}"),
        None => Ok(()),
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

// No `source`: the text of a load or descriptor error is this error's own text already, and a report that prints the
// chain would say it twice.
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

/// Why an IPC descriptor was refused.
///
/// ```
/// use cuda_events::{Error, IpcEventDescriptor};
/// use cuda_events::ipc::DescriptorError;
///
/// let mut bytes = IpcEventDescriptor::from_raw([7; 64], false).to_bytes();
/// bytes[40] ^= 1;
/// assert_eq!(IpcEventDescriptor::from_bytes(&bytes), Err(Error::Descriptor(DescriptorError::Checksum)));
/// ```
///
/// Its `Debug` is its text.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DescriptorError {
    /// It does not have a descriptor's length.
    Length {
        /// How many bytes were given.
        found: u32,
        /// How many a descriptor of this version has.
        expected: u32,
    },
    /// It does not begin as a descriptor does: these bytes, or this text, are something else.
    Magic,
    /// It is of a version that this crate does not know.
    Version {
        /// The version that it states.
        found: u16,
        /// The version that this crate reads.
        expected: u16,
    },
    /// It is text that begins as a descriptor's does, with something among its hexadecimal digits that is none.
    Text,
    /// It was damaged: its check value does not fit.
    Checksum,
    /// It is whole, and has flags that this crate does not know.
    Flags {
        /// The bits that are unknown.
        unknown: u16,
    },
    /// It was exported by a process of this number, which is this process's own, and the driver refused to open it.
    SameProcess {
        /// The process id.
        pid: u32,
    },
    /// It belongs to another device than the context that it was to be opened in.
    OtherDevice {
        /// The ordinal that the event's device has in this process; none if it is not visible here.
        exported: Option<u16>,
        /// The device of the context.
        context: u16,
    },
}

impl fmt::Display for DescriptorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IPC event descriptor refused: ")?;
        match self {
            Self::Length { found, expected } => write!(f, "it has {found} bytes, not {expected}"),
            Self::Magic => f.write_str(
                "it does not begin as one, neither as its text nor as the bytes of IpcEventDescriptor::to_bytes; the \
                 driver's own 64 bytes are read by IpcEventDescriptor::from_raw",
            ),
            Self::Version { found, expected } => write!(
                f,
                "it is of version {found}, and this cuda-events reads version {expected}; use the same release in both \
                 processes"
            ),
            Self::Text => {
                f.write_str("its text has characters that are no hexadecimal digits, or an odd number of them")
            }
            Self::Checksum => f.write_str("it was damaged on the way (its check value does not fit)"),
            Self::Flags { unknown } => write!(
                f,
                "it has flags that this cuda-events does not know ({unknown:#x}); use the same release in both processes"
            ),
            Self::SameProcess { pid } => write!(
                f,
                "it was exported by this process (id {pid}), and an interprocess event can be opened only in another \
                 one; if it comes from a process in another pid namespace, the two must not have the same id"
            ),
            Self::OtherDevice { exported: Some(exported), context } => write!(
                f,
                "its event belongs to device {exported}, and the context to device {context}; open it in a context of \
                 device {exported}"
            ),
            Self::OtherDevice { exported: None, context } => write!(
                f,
                "its event belongs to a device that this process does not see, and the context to device {context}; \
                 look at CUDA_VISIBLE_DEVICES in both processes"
            ),
        }
    }
}

impl fmt::Debug for DescriptorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for DescriptorError {}

/// The one list of the codes after which nothing works in this process any more.
fn is_sticky(code: CUresult) -> bool {
    matches!(
        code,
        CUresult::CUDA_ERROR_ECC_UNCORRECTABLE
            | CUresult::CUDA_ERROR_NVLINK_UNCORRECTABLE
            | CUresult::CUDA_ERROR_CONTAINED
            | CUresult::CUDA_ERROR_ILLEGAL_ADDRESS
            | CUresult::CUDA_ERROR_LAUNCH_TIMEOUT
            | CUresult::CUDA_ERROR_ASSERT
            | CUresult::CUDA_ERROR_HARDWARE_STACK_ERROR
            | CUresult::CUDA_ERROR_ILLEGAL_INSTRUCTION
            | CUresult::CUDA_ERROR_MISALIGNED_ADDRESS
            | CUresult::CUDA_ERROR_INVALID_ADDRESS_SPACE
            | CUresult::CUDA_ERROR_INVALID_PC
            | CUresult::CUDA_ERROR_LAUNCH_FAILED
            | CUresult::CUDA_ERROR_TENSOR_MEMORY_LEAK
            | CUresult::CUDA_ERROR_MPS_CLIENT_TERMINATED
            | CUresult::CUDA_ERROR_EXTERNAL_DEVICE
    )
}

/// What to do about a code, where the code alone or with the call tells.
fn advice(function: Function, code: CUresult) -> Option<&'static str> {
    Some(match (function, code) {
        (_, CUresult::CUDA_ERROR_DEINITIALIZED) => "the driver is shutting down with the process",
        (_, CUresult::CUDA_ERROR_STUB_LIBRARY) => {
            "this is the CUDA toolkit's stub library, which is for linking only; install the NVIDIA display driver"
        }
        (_, CUresult::CUDA_ERROR_NO_DEVICE) => {
            "no CUDA device is visible; look at nvidia-smi and at CUDA_VISIBLE_DEVICES"
        }
        (Function::cuInit, CUresult::CUDA_ERROR_NOT_INITIALIZED) => {
            "if other code of this program used CUDA before this process was forked, that is the cause: CUDA does not \
             survive a fork"
        }
        (Function::cuInit, CUresult::CUDA_ERROR_INVALID_DEVICE) => {
            "a device that this process was given cannot be used; look at nvidia-smi -L and at CUDA_VISIBLE_DEVICES"
        }
        (Function::cuInit, CUresult::CUDA_ERROR_UNKNOWN) => {
            "the driver does not reach its kernel module; run nvidia-modprobe -u -c 0, give the container its devices \
             (/dev/nvidia-uvm among them), or reboot"
        }
        (_, CUresult::CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER) => "update the NVIDIA display driver",
        (_, CUresult::CUDA_ERROR_DEVICE_UNAVAILABLE) => {
            "another process has the device to itself, or its compute mode prohibits CUDA; look at nvidia-smi -q -d COMPUTE"
        }
        (_, CUresult::CUDA_ERROR_SYSTEM_NOT_READY) => {
            "the machine is not ready for CUDA; one with NVSwitch needs nvidia-fabricmanager of the driver's own version"
        }
        (_, CUresult::CUDA_ERROR_SYSTEM_DRIVER_MISMATCH) => {
            "the driver library does not fit the kernel module; after a driver update, reboot, and start containers again"
        }
        (_, CUresult::CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE) => {
            "the library is of a forward-compatibility package (cuda-compat), which this device does not support; take \
             its folder out of the library search path"
        }
        (
            Function::cuIpcGetEventHandle | Function::cuEventCreate | Function::cuIpcOpenEventHandle,
            CUresult::CUDA_ERROR_NOT_SUPPORTED,
        ) => "this device or platform has no interprocess events (WSL, for one, has none)",
        (Function::cuIpcOpenEventHandle, CUresult::CUDA_ERROR_MAP_FAILED) => {
            "the exporting process is gone or another user's, or the two do not share /dev/shm and process ids"
        }
        (Function::cuIpcOpenEventHandle, CUresult::CUDA_ERROR_INVALID_CONTEXT) => {
            "an event cannot be opened in the process that exported it"
        }
        (
            Function::cuIpcGetEventHandle | Function::cuEventCreate | Function::cuIpcOpenEventHandle,
            CUresult::CUDA_ERROR_OUT_OF_MEMORY,
        ) => "the device's memory, or the context's interprocess events (a few thousand), are used up",
        (
            Function::cuEventQuery
            | Function::cuEventSynchronize
            | Function::cuEventElapsedTime
            | Function::cuEventElapsedTime_v2
            | Function::cuStreamWaitEvent,
            CUresult::CUDA_ERROR_INVALID_VALUE,
        ) => {
            "an event that was last recorded in a capture stands for nothing once that capture has ended; record it again, \
             or capture the record with record_external"
        }
        (_, CUresult::CUDA_ERROR_INVALID_CONTEXT) => "no context is current on this thread",
        (_, CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED) => "the context was destroyed",
        (_, CUresult::CUDA_ERROR_CAPTURED_EVENT) => {
            "the event was last recorded in a capture, and serves only waits in that capture until it is recorded outside"
        }
        (
            Function::cuStreamBeginCapture_v2 | Function::cuStreamBeginCaptureToGraph,
            CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
        ) => "the legacy default stream cannot be captured",
        (
            Function::cuStreamBeginCapture_v2 | Function::cuStreamBeginCaptureToGraph,
            CUresult::CUDA_ERROR_ILLEGAL_STATE,
        ) => "the stream captures already, or another stream into this graph",
        (
            Function::cuStreamEndCapture
            | Function::cuStreamUpdateCaptureDependencies
            | Function::cuStreamUpdateCaptureDependencies_v2
            | Function::cuEventRecordWithFlags
            | Function::cuStreamWaitEvent,
            CUresult::CUDA_ERROR_ILLEGAL_STATE,
        ) => "the stream does not capture",
        (Function::cuGraphLaunch, CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) => {
            "a graph cannot be launched in a capturing stream; its capture is invalidated now"
        }
        (Function::cuCtxRecordEvent | Function::cuCtxWaitEvent, CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) => {
            "a stream of the context captures; its capture is invalidated now"
        }
        (_, CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) => {
            "a stream capture in progress does not allow this call; see CaptureMode and ThreadCaptureMode"
        }
        (_, CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED) => {
            "an earlier call invalidated the stream's capture; once it is ended, capture again"
        }
        (_, CUresult::CUDA_ERROR_STREAM_CAPTURE_MERGE) => {
            "the event was recorded in another capture, and two captures cannot be joined"
        }
        (_, CUresult::CUDA_ERROR_STREAM_CAPTURE_UNMATCHED) => "the capture began in another stream; end it there",
        (_, CUresult::CUDA_ERROR_STREAM_CAPTURE_UNJOINED) => {
            "the stream in which the capture began does not wait for all work of the other streams in it"
        }
        (_, CUresult::CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD) => {
            "a capture that is not relaxed must be ended by the thread that began it"
        }
        (_, CUresult::CUDA_ERROR_LOSSY_QUERY) => {
            "the dependencies carry edge data, which the driver's query of before CUDA 12.3 leaves out"
        }
        (_, CUresult::CUDA_ERROR_STREAM_CAPTURE_ISOLATION) => {
            "a capturing stream can wait only for events of its own capture, unless the wait is external"
        }
        (_, CUresult::CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) => {
            "the legacy default stream cannot be used while a blocking stream captures"
        }
        (_, CUresult::CUDA_ERROR_MPS_CLIENT_TERMINATED) => {
            "the MPS server has ended this process's connection; only a new process recovers"
        }
        (_, code) if is_sticky(code) => {
            "work on the device failed and took the context with it; only a new process recovers"
        }
        _ => return None,
    })
}

static_assertions::assert_impl_all!(Error: Send, Sync, Clone, std::error::Error);
static_assertions::const_assert!(size_of::<Error>() <= 16);
static_assertions::const_assert!(size_of::<Result<()>>() <= 16);
