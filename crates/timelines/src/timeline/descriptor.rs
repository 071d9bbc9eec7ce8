//! What names a timeline for other processes: a place in a file, or in device memory.

use core::fmt;

#[cfg(doc)]
use crate::error::Error;
use crate::error::{Result, SharedTimelineError as Refusal};
use cuda_events::Uuid;
use cuda_events::foundation::{Damage, Envelope, Origin};

use super::device_memory::PLACES;
use super::line::LINES;

const FILE: Envelope = Envelope { magic: *b"CUTL", version: 1 };
const MEMORY: Envelope = Envelope { magic: *b"CUTH", version: 1 };

/// Identifies a timeline for the process that [imports](super::ImportedTimeline) it.
///
/// Send it as [bytes](Self::to_bytes). Its checksum detects damage, not forgery.
///
/// * The descriptor of a timeline in a [file](super::TimelineFile) names a place in the file. Send
///   it together with the file descriptor. A forged descriptor is refused, or names another
///   timeline of the same file.
/// * The descriptor of a timeline in [device memory](super::TimelineMemory) is sent alone. It
///   contains the driver's 64 bytes, the timeline's place in the memory, a random number that
///   identifies the memory, the UUID of the device, and the exporter's process. A forged descriptor
///   can name other device memory of the same user: accept it only from processes that you trust.
///
/// [`TimelineFile`](super::TimelineFile) and [`TimelineMemory`](super::TimelineMemory) have
/// examples.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TimelineDescriptor(pub(super) Named);

/// What a descriptor names: a line of a file, or of device memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Named {
    File(InFile),
    Memory(InMemory),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct InFile {
    pub(super) index: u16,
    /// The file's number, which it has from its exporter.
    pub(super) file: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct InMemory {
    pub(super) index: u16,
    pub(super) maker: Origin,
    pub(super) memory: [u8; 64],
    /// The memory's number, which it has from its exporter.
    pub(super) number: u64,
}

impl TimelineDescriptor {
    /// The number of bytes of a timeline in a file.
    pub const FILE_LEN: usize = 20;

    /// The number of bytes of a timeline in device memory.
    pub const MEMORY_LEN: usize = 136;

    /// Returns the bytes to send: [20](Self::FILE_LEN) for a timeline in a file, and
    /// [136](Self::MEMORY_LEN) for a timeline in device memory. The numbers are little-endian. The
    /// last four bytes are a CRC-32 (ISO-HDLC) of the other bytes.
    ///
    /// | in a file | in memory | field |
    /// | --- | --- | --- |
    /// | 0–3 | 0–3 | `CUTL` in a file, `CUTH` in memory |
    /// | 4–5 | 4–5 | version, 1 |
    /// | 6–7 | 6–7 | the timeline's place |
    /// | | 8–59 | the exporter's process and device, as in [`Origin::to_bytes`] |
    /// | | 60–123 | the driver's bytes |
    /// | 8–15 | 124–131 | the number of the file or of the memory |
    /// | 16–19 | 132–135 | CRC-32 |
    ///
    /// [`TimelineFile`](super::TimelineFile) has an example.
    pub fn to_bytes(&self) -> Vec<u8> {
        let sealed = match self.0 {
            Named::File(InFile { index, file }) => {
                let fields: [&[u8]; 2] = [&index.to_le_bytes(), &file.to_le_bytes()];
                FILE.seal::<{ Self::FILE_LEN }>(&fields).map(Vec::from)
            }
            Named::Memory(InMemory { index, maker, memory, number }) => {
                let (maker, number) = (maker.to_bytes(), number.to_le_bytes());
                let fields: [&[u8]; 4] = [&index.to_le_bytes(), &maker, &memory, &number];
                MEMORY.seal::<{ Self::MEMORY_LEN }>(&fields).map(Vec::from)
            }
        };
        // The fields have this length. Without bytes it is no message of any kind.
        sealed.unwrap_or_default()
    }

    /// Parses the bytes of [`to_bytes`](Self::to_bytes). It makes no driver call.
    ///
    /// [`TimelineFile`](super::TimelineFile) has an example.
    ///
    /// # Errors
    ///
    /// [`Error::SharedTimeline`] with the first of these that applies:
    /// [`DescriptorMagic`](Refusal::DescriptorMagic),
    /// [`DescriptorVersion`](Refusal::DescriptorVersion),
    /// [`DescriptorLength`](Refusal::DescriptorLength),
    /// [`DescriptorChecksum`](Refusal::DescriptorChecksum) or
    /// [`NoSuchTimeline`](Refusal::NoSuchTimeline).
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        // By the length first: then damage of the first bytes is not taken for the other kind.
        let in_memory = match bytes.len() {
            Self::FILE_LEN => false,
            Self::MEMORY_LEN => true,
            _ => bytes.starts_with(&MEMORY.magic),
        };
        let named = if in_memory {
            let mut fields = MEMORY.unseal(bytes, Self::MEMORY_LEN).map_err(refusal)?;
            Named::Memory(InMemory {
                index: place(fields.take().map_err(refusal)?, PLACES)?,
                maker: Origin::from_bytes(&fields.take().map_err(refusal)?),
                memory: fields.take().map_err(refusal)?,
                number: u64::from_le_bytes(fields.take().map_err(refusal)?),
            })
        } else {
            let mut fields = FILE.unseal(bytes, Self::FILE_LEN).map_err(refusal)?;
            Named::File(InFile {
                index: place(fields.take().map_err(refusal)?, LINES)?,
                file: u64::from_le_bytes(fields.take().map_err(refusal)?),
            })
        };
        Ok(Self(named))
    }

    /// Returns the process id of the exporter, in the exporter's pid namespace, or `None` for a
    /// timeline in a file.
    ///
    /// [`TimelineMemory`](super::TimelineMemory) has an example.
    pub fn exporter_pid(&self) -> Option<u32> {
        self.in_memory().map(|named| named.maker.pid())
    }

    /// Returns the UUID of the device that has the memory, or `None` for a timeline in a file.
    ///
    /// [`TimelineMemory`](super::TimelineMemory) has an example.
    pub fn device_uuid(&self) -> Option<Uuid> {
        self.in_memory().map(|named| named.maker.device())
    }

    pub(super) fn in_memory(&self) -> Option<&InMemory> {
        match &self.0 {
            Named::File(_) => None,
            Named::Memory(named) => Some(named),
        }
    }

    pub(super) fn in_file(&self) -> Option<&InFile> {
        match &self.0 {
            Named::File(named) => Some(named),
            Named::Memory(_) => None,
        }
    }
}

/// A place among the lines of a file or of device memory, of which the first is its own.
fn place(index: [u8; 2], lines: usize) -> Result<u16, Refusal> {
    let index = u16::from_le_bytes(index);
    if (1..lines).contains(&usize::from(index)) {
        Ok(index)
    } else {
        Err(Refusal::NoSuchTimeline { index })
    }
}

/// What is wrong with a descriptor.
fn refusal(damage: Damage) -> Refusal {
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
        let mut debug = f.debug_struct("TimelineDescriptor");
        match &self.0 {
            Named::File(InFile { index, file }) => {
                debug.field("index", index).field("file", &format_args!("{file:#018x}")).finish()
            }
            Named::Memory(InMemory { index, maker, number, .. }) => debug
                .field("index", index)
                .field("exporter_pid", &maker.pid())
                .field("device_uuid", &maker.device())
                .field("number", &format_args!("{number:#018x}"))
                .finish_non_exhaustive(),
        }
    }
}
