//! What can be wrong with an IPC descriptor.

/// Why an IPC descriptor was refused.
///
/// ```
/// use cuda_events::{Error, IpcEventDescriptor};
/// use cuda_events::ipc::DescriptorError;
///
/// let mut bytes = IpcEventDescriptor::from_raw([7; 64], false).to_bytes();
/// bytes[40] ^= 1;
/// let wrong = Error::Descriptor(DescriptorError::Checksum);
/// assert_eq!(IpcEventDescriptor::from_bytes(&bytes), Err(wrong));
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
    /// It is text that begins as a descriptor's does, with something among its hexadecimal digits
    /// that is none.
    Text,
    /// It was damaged: its check value does not fit.
    Checksum,
    /// It is whole, and has flags that this crate does not know.
    Flags {
        /// The bits that are unknown.
        unknown: u16,
    },
    /// It was exported by a process of this number, which is this process's own, and the driver
    /// refused to open it.
    SameProcess {
        /// The process id.
        pid: u32,
    },
    /// It belongs to another device than the context that it was to be opened in.
    DeviceMismatch {
        /// The ordinal that the event's device has in this process; none if it is not visible here.
        exported: Option<u16>,
        /// The device of the context.
        context: u16,
    },
}

impl std::error::Error for DescriptorError {}
