//! The reasons why an IPC descriptor is refused.

/// The reason why an IPC descriptor was refused.
///
/// ```
/// use cuda_events::IpcEventDescriptor;
/// use cuda_events::ipc::DescriptorError;
///
/// let mut bytes = IpcEventDescriptor::from_raw([7; 64], false).to_bytes();
/// bytes[40] ^= 1;
/// assert_eq!(IpcEventDescriptor::from_bytes(&bytes), Err(DescriptorError::Checksum));
/// ```
///
/// `Debug` prints the same text as `Display`.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DescriptorError {
    /// The descriptor has the wrong length.
    Length {
        /// The number of bytes given.
        found: u32,
        /// The number of bytes in a descriptor of this version.
        expected: u32,
    },
    /// The bytes or the text do not begin like a descriptor.
    Magic,
    /// The descriptor has a version that this crate does not support.
    Version {
        /// The descriptor's version.
        found: u16,
        /// The version that this crate reads.
        expected: u16,
    },
    /// The text begins like a descriptor, but has characters that are not hexadecimal digits, or an
    /// odd number of them.
    Text,
    /// The descriptor is damaged: its checksum does not match, or it names an exporter and has no
    /// flag for one.
    Checksum,
    /// The descriptor is intact, but has flags that this crate does not support.
    Flags {
        /// The unknown bits.
        unknown: u16,
    },
    /// The driver refused to open the descriptor with `CUDA_ERROR_INVALID_CONTEXT`, probably because
    /// this process exported it: the exporting process has the id of this one.
    SameProcess {
        /// The process id.
        pid: u32,
    },
    /// The event belongs to another device than the context.
    DeviceMismatch {
        /// The ordinal of the event's device in this process; `None` if it is not visible here.
        exported: Option<u16>,
        /// The device of the context.
        context: u16,
    },
}

impl std::error::Error for DescriptorError {}
