//! The errors of timelines.

use core::fmt;

use cuda_events::sys::{CUresult, Function};

/// A `Result` with this crate's [`Error`].
pub type Result<T, E = Error> = core::result::Result<T, E>;

/// The errors that timelines and points return.
///
/// [`Cuda`](Self::Cuda) contains an error of cuda-events, such as that of a driver call that
/// failed. The futures of events ([`Completion`](crate::Completion)) return [`cuda_events::Error`]
/// itself. The guide
/// [errors](https://docs.rs/cuda-events/latest/cuda_events/guide/errors/index.html) has each error
/// with its cause and what to do.
///
/// `Debug` prints the same text as `Display`, because most programs show an error by `unwrap` or by
/// returning it from `main`. The type has at most 16 bytes.
///
/// ```
/// use cuda_events::{Context, Device, StreamRef};
/// use cuda_timelines::{Error, Timeline};
///
/// # use cuda_soft_driver::examples::Driver;
/// let driver = Driver::load()?;
/// let context = Context::primary(Device::new(driver, 0)?)?;
/// let refused = Timeline::new(StreamRef::per_thread_default(&context)).unwrap_err();
/// assert_eq!(refused, Error::PerThreadTimeline);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// An error of cuda-events: a driver call failed or was not made.
    Cuda(cuda_events::Error),
    /// A signal of a timeline, or a wait for a point of another context, was given to a capturing
    /// stream. No call was made: each launch of the graph would write the same value again.
    TimelineInCapture {
        /// The call that was not made.
        function: Function,
    },
    /// A timeline cannot belong to the per-thread default stream. It is a different stream in each
    /// thread, so the counter could go back. No call was made.
    PerThreadTimeline,
    /// A timeline, a [`TimelineFile`](crate::TimelineFile) or a
    /// [`TimelineMemory`](crate::TimelineMemory) serves only streams of the context that it was made
    /// in, and a timeline only graphs of that context. No call was made.
    ContextMismatch {
        /// The device of the stream's context.
        device: u16,
        /// The device of the context of the timeline, the file, the memory or the graph.
        other_device: u16,
    },
    /// The timeline was poisoned before it reached the value.
    Poisoned,
    /// The point is not reached, and its timeline's context has ended, as nothing keeps it alive.
    /// So this process cannot find out whether the point will be reached. For a timeline of another
    /// process: this process dropped its [`ImportedTimeline`](crate::ImportedTimeline).
    ContextDropped,
    /// The process that had to signal an imported timeline has ended before the timeline reached
    /// the value.
    ExporterGone,
    /// The operating system refused to start the crate's [poller](crate#threads). Shared timelines
    /// need it, and so do waits of streams for timelines of other contexts or processes. The
    /// process or its container may have reached its limit of threads. The call can be made again.
    NoThread,
    /// Sharing or importing a timeline failed.
    SharedTimeline(SharedTimelineError),
}

impl Error {
    /// Returns the driver call that failed or was not made; `None` if the error does not belong to
    /// one call.
    pub fn function(&self) -> Option<Function> {
        match self {
            Self::Cuda(error) => error.function(),
            Self::TimelineInCapture { function } => Some(*function),
            Self::ContextMismatch { .. } => Some(Function::cuStreamWriteValue64_v2),
            Self::SharedTimeline(SharedTimelineError::SameProcess { .. }) => {
                Some(Function::cuIpcOpenMemHandle_v2)
            }
            _ => None,
        }
    }

    /// Returns the driver's code; `None` if no call was made.
    pub fn code(&self) -> Option<CUresult> {
        match self {
            Self::Cuda(error) => error.code(),
            Self::SharedTimeline(SharedTimelineError::SameProcess { .. }) => {
                Some(CUresult::CUDA_ERROR_INVALID_CONTEXT)
            }
            _ => None,
        }
    }

    /// Returns whether this error ends the use of CUDA in this process, as
    /// [`cuda_events::Error::is_sticky`] does.
    pub fn is_sticky(&self) -> bool {
        matches!(self, Self::Cuda(error) if error.is_sticky())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cuda(error) => error.fmt(f),
            Self::TimelineInCapture { function } => write!(
                f,
                "{function} was not called: the stream captures, and each launch of the graph \
                 would write or wait for the same value again; signal in the stream of the launch, \
                 after the launch"
            ),
            Self::PerThreadTimeline => f.write_str(
                "a timeline cannot belong to the per-thread default stream, which is another \
                 stream in each thread; create a stream for it",
            ),
            Self::ContextMismatch { device, other_device } => {
                f.write_str("no call was made: the stream")?;
                if device == other_device {
                    write!(
                        f,
                        ", and the timeline, file, memory or graph, belong to two contexts of \
                         device {device}"
                    )?;
                } else {
                    write!(
                        f,
                        " belongs to a context of device {device}, and the timeline, file, memory \
                         or graph to one of device {other_device}"
                    )?;
                }
                f.write_str("; make all of them in one context")
            }
            Self::Poisoned => f.write_str(
                "the timeline was poisoned before it reached the value: its owner gave up or is \
                 gone",
            ),
            Self::ContextDropped => f.write_str(
                "the point is not reached, and the last share of its timeline's context was \
                 dropped, so nothing can show whether it ever will be; keep the timeline or the \
                 context until its points are reached",
            ),
            Self::ExporterGone => f.write_str(
                "the process that had to signal the timeline has ended before it did; import from \
                 its successor",
            ),
            Self::NoThread => f.write_str(
                "the operating system started no thread for cuda-timelines, which looks after \
                 streams that wait for other contexts or processes, and after shared timelines; \
                 raise the limit of threads (RLIMIT_NPROC, or pids.max of the container), and call \
                 again",
            ),
            Self::SharedTimeline(error) => error.fmt(f),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

// No `source`: the text of the inner error is already the text of this error, and a report that
// prints the chain would print it twice.
impl std::error::Error for Error {}

impl From<cuda_events::Error> for Error {
    fn from(error: cuda_events::Error) -> Self {
        Self::Cuda(error)
    }
}

/// For `?` on an event's descriptor that was parsed.
impl From<cuda_events::ipc::DescriptorError> for Error {
    fn from(error: cuda_events::ipc::DescriptorError) -> Self {
        Self::Cuda(error.into())
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

/// The reason why a timeline could not be shared with other processes, or imported from one.
///
/// ```
/// use cuda_timelines::SharedTimelineError;
///
/// let wrong = SharedTimelineError::DescriptorLength { found: 3, expected: 20 };
/// assert_eq!(wrong.to_string(), "timeline descriptor refused: it has 3 bytes, not 20");
/// ```
///
/// `Debug` prints the same text as `Display`.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SharedTimelineError {
    /// The descriptor has the wrong length.
    DescriptorLength {
        /// The number of bytes given.
        found: u32,
        /// The number of bytes in a descriptor of this version.
        expected: u32,
    },
    /// The bytes do not begin like a timeline descriptor.
    DescriptorMagic,
    /// The descriptor has a version that this crate does not support.
    DescriptorVersion {
        /// The descriptor's version.
        found: u16,
        /// The version that this crate reads.
        expected: u16,
    },
    /// The descriptor is damaged: its checksum does not match.
    DescriptorChecksum,
    /// The descriptor is intact, but names a place that no file of timelines has.
    NoSuchTimeline {
        /// The number of the place.
        index: u16,
    },
    /// The descriptor names a timeline that is shared in another way.
    OtherKind {
        /// Whether the timeline is in device memory, and not in a file.
        in_memory: bool,
    },
    /// The file descriptor does not belong to a file of memory (`memfd`). On Windows: the handle
    /// does not belong to a section, or the section belongs to a file on a disk, where a read can
    /// fail.
    NotMemory,
    /// The file can be truncated, resized or sealed anew, so reading it could end this process. On
    /// Windows: some pages of the section are not committed.
    Unsealed,
    /// The file's size is not that of a file of timelines.
    FileSize {
        /// The file's size, or `u32::MAX` if it is larger.
        found: u32,
        /// The size of a file of timelines.
        expected: u32,
    },
    /// The file contains no timelines.
    FileMagic,
    /// The timelines in the file have a version that this crate does not support.
    FileVersion {
        /// The file's version.
        found: u16,
        /// The version that this crate reads.
        expected: u16,
    },
    /// The descriptor belongs to a timeline of another file.
    OtherFile,
    /// The file or the device memory has no place left for a timeline.
    FileFull,
    /// The driver refused to open the handle with `CUDA_ERROR_INVALID_CONTEXT`, probably because
    /// this process made the timeline: the process that made it has the id of this one.
    SameProcess {
        /// The process id.
        pid: u32,
    },
    /// The timeline is on another device than the context in which the handle was opened.
    MemoryOfOtherDevice {
        /// The ordinal of the timeline's device in this process; `None` if it is not visible here.
        exported: Option<u16>,
        /// The device of the context.
        context: u16,
    },
    /// The driver opened the handle, but the memory is not the timeline's: probably it was freed,
    /// and is in other use now.
    OtherMemory,
    /// The operating system refused to create, map or lock the file, or, on Windows, to let this
    /// process watch its exporter.
    System {
        /// The system's error: `errno`, or the number from `GetLastError`.
        errno: i32,
    },
    /// This platform has no memory that is safe to share with an untrusted process. Linux and
    /// Windows have it.
    Platform,
}

impl fmt::Display for SharedTimelineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DescriptorLength { found, expected } => {
                write!(f, "timeline descriptor refused: it has {found} bytes, not {expected}")
            }
            Self::DescriptorMagic => f.write_str(
                "timeline descriptor refused: it does not begin like one; send the bytes of \
                 TimelineDescriptor::to_bytes",
            ),
            Self::DescriptorVersion { found, expected } => write!(
                f,
                "timeline descriptor refused: it is of version {found}, and this cuda-timelines \
                 reads version {expected}; use the same release in both processes"
            ),
            Self::DescriptorChecksum => f.write_str(
                "timeline descriptor refused: it was damaged on the way (its checksum does not \
                 match)",
            ),
            Self::NoSuchTimeline { index } => write!(
                f,
                "timeline descriptor refused: it names place {index}, which no file or memory of \
                 timelines has; use the same release in both processes"
            ),
            Self::OtherKind { in_memory: true } => f.write_str(
                "the descriptor names a timeline in device memory; import it with \
                 ImportedTimeline::open_memory",
            ),
            Self::OtherKind { in_memory: false } => f.write_str(
                "the descriptor names a timeline in a file; import it with ImportedTimeline::open, \
                 and with the file",
            ),
            Self::NotMemory if cfg!(windows) => f.write_str(
                "the handle does not belong to a section of the page file; send the handle of a \
                 TimelineFile",
            ),
            Self::NotMemory => f.write_str(
                "the file descriptor does not belong to a file of memory (memfd); send the file \
                 descriptor of a TimelineFile",
            ),
            Self::Unsealed if cfg!(windows) => f.write_str(
                "the section has pages that are not committed, so reading them would end this \
                 process; send the handle of a TimelineFile",
            ),
            Self::Unsealed => f.write_str(
                "the file of memory is not sealed against shrinking, growing and other seals, so \
                 its owner could end this process by truncating it; send the file descriptor of a \
                 TimelineFile",
            ),
            Self::FileSize { found, expected } => write!(
                f,
                "the file of memory has {found} bytes, and a file of timelines has {expected}; \
                 send the file of a TimelineFile, and use the same release in both processes"
            ),
            Self::FileMagic => f.write_str(
                "the file of memory contains no timelines; send the file of a TimelineFile",
            ),
            Self::FileVersion { found, expected } => write!(
                f,
                "the timelines in the file are of version {found}, and this cuda-timelines reads \
                 version {expected}; use the same release in both processes"
            ),
            Self::OtherFile => f.write_str(
                "the descriptor belongs to a timeline of another file; send each descriptor \
                 together with the file of its timeline",
            ),
            Self::FileFull => f.write_str(
                "there is no place left for a timeline, and those of dropped timelines are not \
                 used again; make another TimelineFile or TimelineMemory",
            ),
            Self::SameProcess { pid } => write!(
                f,
                "{} failed with {}: probably this process (id {pid}) made the timeline's handle, \
                 and device memory can be opened only in another one; pass the timeline itself",
                Function::cuIpcOpenMemHandle_v2,
                CUresult::CUDA_ERROR_INVALID_CONTEXT,
            ),
            Self::MemoryOfOtherDevice { exported: Some(exported), context } => write!(
                f,
                "the timeline's memory is on device {exported}, and the context is of device \
                 {context}; open it in a context of device {exported}"
            ),
            Self::MemoryOfOtherDevice { exported: None, context } => write!(
                f,
                "the timeline's memory is on a device that this process does not see, and the \
                 context is of device {context}; look at CUDA_VISIBLE_DEVICES in both processes"
            ),
            Self::OtherMemory => f.write_str(
                "the memory behind the timeline's handle is not the timeline's: probably its owner \
                 freed it; keep the TimelineMemory in its process, and send a new handle",
            ),
            Self::System { errno } => write!(
                f,
                "the operating system refused a file of timelines: {}; {}",
                std::io::Error::from_raw_os_error(*errno),
                if cfg!(windows) {
                    "an importer needs the right to map the file for reading and to open its \
                     exporter's process"
                } else {
                    "it needs /proc and Linux 3.17, and Linux 5.1 for a file that only its \
                     exporter can write"
                }
            ),
            Self::Platform => f.write_str(
                "this platform has no memory that is safe to share, so timelines cannot be shared \
                 between processes; use interprocess events",
            ),
        }
    }
}

impl fmt::Debug for SharedTimelineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for SharedTimelineError {}
