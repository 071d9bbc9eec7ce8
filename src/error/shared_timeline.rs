//! Why a timeline cannot be shared between processes.

/// Why a timeline was not [shared](crate::ext::TimelineFile) with other processes, or not
/// [imported](crate::ext::ImportedTimeline).
///
/// ```
/// use cuda_events::Error;
/// use cuda_events::ext::TimelineDescriptor;
/// use cuda_events::ipc::SharedTimelineError;
///
/// let wrong = SharedTimelineError::DescriptorLength { found: 3, expected: 20 };
/// assert_eq!(TimelineDescriptor::from_bytes(&[0; 3]), Err(Error::SharedTimeline(wrong)));
/// ```
///
/// Its `Debug` is its text.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SharedTimelineError {
    /// The descriptor does not have a descriptor's length.
    DescriptorLength {
        /// How many bytes were given.
        found: u32,
        /// How many a descriptor of this version has.
        expected: u32,
    },
    /// The descriptor does not begin as one does.
    DescriptorMagic,
    /// The descriptor is of a version that this crate does not know.
    DescriptorVersion {
        /// The version that it states.
        found: u16,
        /// The version that this crate reads.
        expected: u16,
    },
    /// The descriptor was damaged: its check value does not fit.
    DescriptorChecksum,
    /// The descriptor is whole, and names a place that no file of timelines has.
    NoSuchTimeline {
        /// The place.
        index: u16,
    },
    /// The file descriptor is of something else than a file of memory (`memfd`). On Windows the
    /// handle is of something else than a section, or the section is of a file on a disk, which can
    /// fail to be read.
    NotMemory,
    /// The file can be truncated, resized or sealed anew, so that looking at it could end this
    /// process. On Windows the section has pages that are not there.
    Unsealed,
    /// The file does not have the size of a file of timelines.
    FileSize {
        /// Its size, or the largest number there is here.
        found: u32,
        /// The size of a file of timelines.
        expected: u32,
    },
    /// There are no timelines in the file.
    FileMagic,
    /// The timelines in the file are of a version that this crate does not know.
    FileVersion {
        /// The version that the file states.
        found: u16,
        /// The version that this crate reads.
        expected: u16,
    },
    /// The descriptor belongs to a timeline of another file.
    OtherFile,
    /// The file, or the device memory, has no place left for a timeline.
    FileFull,
    /// The handle is of a timeline that this process made.
    SameProcess {
        /// The process id.
        pid: u32,
    },
    /// The handle is of a timeline on another device than that of the context in which it was to be
    /// opened.
    MemoryOfOtherDevice {
        /// The ordinal that the timeline's device has in this process; none if it is not visible
        /// here.
        exported: Option<u16>,
        /// The device of the context.
        context: u16,
    },
    /// The driver opened the handle, and the memory is not that of the timeline: it was freed, and
    /// is something else now.
    OtherMemory,
    /// The operating system refused to make, map or lock the file, or, on Windows, to let this
    /// process watch the maker.
    System {
        /// The system's error: `errno`, or what `GetLastError` says.
        errno: i32,
    },
    /// This platform has no memory that is safe to share with a process that is not trusted. Linux
    /// and Windows have.
    Platform,
}

impl std::error::Error for SharedTimelineError {}
