//! The reasons why a timeline cannot be shared between processes.

/// The reason why a timeline could not be shared with other processes or imported
/// from one (crate `cuda-timelines`).
///
/// ```
/// use cuda_events::ipc::SharedTimelineError;
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
    /// The handle belongs to a timeline that this process made.
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
    /// The driver opened the handle, but the memory is no longer the timeline's: it was freed and
    /// is in other use now.
    OtherMemory,
    /// The operating system refused to create, map or lock the file, or, on Windows, to let this
    /// process watch its maker.
    System {
        /// The system's error: `errno`, or the number from `GetLastError`.
        errno: i32,
    },
    /// The operating system started no thread for the crate, which would look after streams that
    /// wait for other processes and after shared timelines. The process or its container may have
    /// as many threads as it may have. The call can be made again.
    NoThread,
    /// This platform has no memory that is safe to share with an untrusted process. Linux and
    /// Windows have it.
    Platform,
}

impl std::error::Error for SharedTimelineError {}
