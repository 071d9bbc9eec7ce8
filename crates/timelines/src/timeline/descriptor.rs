//! What names a timeline among those of a file.

use core::fmt;

use super::line::LINES;
use cuda_events::Result;
use cuda_events::foundation::{Damage, Envelope};
use cuda_events::ipc::SharedTimelineError as Refusal;

const ENVELOPE: Envelope = Envelope { magic: *b"CUTL", version: 1 };

/// Identifies a shared [timeline](super::Timeline::shared) within its [file](super::TimelineFile),
/// for the process that [imports](super::ImportedTimeline) it.
///
/// Send it with the file descriptor, as [bytes](Self::to_bytes). Its checksum detects damage. A
/// forged descriptor names another timeline of the same file, or is refused.
///
/// [`TimelineFile`](super::TimelineFile) has an example.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TimelineDescriptor {
    pub(super) index: u16,
    /// The file's number, which it has from its maker.
    pub(super) file: u64,
}

impl TimelineDescriptor {
    /// The length of [`to_bytes`](Self::to_bytes) in bytes.
    pub const LEN: usize = 20;

    /// Returns the 20 bytes to send. The numbers are little-endian. The last four bytes are a
    /// CRC-32 of the first 16.
    ///
    /// | bytes | field |
    /// | --- | --- |
    /// | 0–3 | `CUTL` |
    /// | 4–5 | version, 1 |
    /// | 6–7 | the timeline's place in the file |
    /// | 8–15 | the file's number |
    /// | 16–19 | CRC-32 (ISO-HDLC) |
    ///
    /// [`TimelineFile`](super::TimelineFile) has an example.
    pub fn to_bytes(&self) -> [u8; Self::LEN] {
        ENVELOPE.seal(&[&self.index.to_le_bytes(), &self.file.to_le_bytes()])
    }

    /// Parses the bytes of [`to_bytes`](Self::to_bytes). It makes no driver call.
    ///
    /// [`TimelineFile`](super::TimelineFile) has an example.
    ///
    /// # Errors
    ///
    /// [`Error::SharedTimeline`](cuda_events::Error::SharedTimeline) with the first of these that
    /// applies: [`DescriptorMagic`](Refusal::DescriptorMagic),
    /// [`DescriptorVersion`](Refusal::DescriptorVersion),
    /// [`DescriptorLength`](Refusal::DescriptorLength),
    /// [`DescriptorChecksum`](Refusal::DescriptorChecksum) or
    /// [`NoSuchTimeline`](Refusal::NoSuchTimeline).
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let mut fields = ENVELOPE.unseal(bytes, Self::LEN).map_err(refusal)?;
        let index = place(fields.take().map_err(refusal)?)?;
        Ok(Self { index, file: u64::from_le_bytes(fields.take().map_err(refusal)?) })
    }
}

/// A place among the lines of a file or of device memory, of which the first is its own.
pub(super) fn place(index: [u8; 2]) -> Result<u16, Refusal> {
    let index = u16::from_le_bytes(index);
    if (1..LINES).contains(&usize::from(index)) {
        Ok(index)
    } else {
        Err(Refusal::NoSuchTimeline { index })
    }
}

/// What is wrong with a descriptor or a handle of a timeline.
pub(super) fn refusal(damage: Damage) -> Refusal {
    match damage {
        Damage::Length { found, expected } => Refusal::DescriptorLength { found, expected },
        Damage::Magic => Refusal::DescriptorMagic,
        Damage::Version { found, expected } => Refusal::DescriptorVersion { found, expected },
        // The checksum, and what a later release may look for.
        _ => Refusal::DescriptorChecksum,
    }
}

impl fmt::Debug for TimelineDescriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimelineDescriptor")
            .field("index", &self.index)
            .field("file", &format_args!("{:#018x}", self.file))
            .finish()
    }
}
