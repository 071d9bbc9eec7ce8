//! What names a timeline among those of a file.

use core::fmt;

use super::line::LINES;
use crate::Result;
use crate::ipc::SharedTimelineError as Refusal;

const VERSION: u16 = 1;
const MAGIC: [u8; 4] = *b"CUTL";

/// Names a shared [timeline](super::Timeline::shared) among those of its
/// [file](super::TimelineFile), for the process that [imports](super::ImportedTimeline) it.
///
/// Send it beside the file descriptor, as [bytes](Self::to_bytes). The check value in it finds
/// damage. A forged descriptor names another timeline of the same file, or is refused.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TimelineDescriptor {
    pub(super) index: u16,
    /// The file's number, which it has from its maker.
    pub(super) file: u64,
}

impl TimelineDescriptor {
    /// The length of [`to_bytes`](Self::to_bytes).
    pub const LEN: usize = 20;

    /// The form to send: 20 bytes, little-endian, of which the last four are a CRC-32 of those
    /// before.
    ///
    /// | bytes | field |
    /// | --- | --- |
    /// | 0–3 | `CUTL` |
    /// | 4–5 | version, 1 |
    /// | 6–7 | the timeline's place in the file |
    /// | 8–15 | the file's number |
    /// | 16–19 | CRC-32 (ISO-HDLC) |
    pub fn to_bytes(&self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        let [version, index] = [VERSION, self.index].map(u16::to_le_bytes);
        let fields: [&[u8]; 4] = [&MAGIC, &version, &index, &self.file.to_le_bytes()];
        let mut rest = bytes.as_mut_slice();
        for field in fields {
            let (place, after) = rest.split_at_mut(field.len());
            place.copy_from_slice(field);
            rest = after;
        }
        let (body, check) = bytes.split_at_mut(Self::LEN - 4);
        check.copy_from_slice(&crc32fast::hash(body).to_le_bytes());
        bytes
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote. It makes no driver call.
    ///
    /// # Errors
    ///
    /// [`Error::SharedTimeline`](crate::Error::SharedTimeline) with
    /// [`DescriptorMagic`](Refusal::DescriptorMagic),
    /// [`DescriptorVersion`](Refusal::DescriptorVersion),
    /// [`DescriptorLength`](Refusal::DescriptorLength),
    /// [`DescriptorChecksum`](Refusal::DescriptorChecksum) or
    /// [`NoSuchTimeline`](Refusal::NoSuchTimeline), whichever is found first.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let wrong_length = Refusal::DescriptorLength {
            found: u32::try_from(bytes.len()).unwrap_or(u32::MAX),
            expected: Self::LEN as u32,
        };
        let rest = &mut &*bytes;
        if take(rest).ok_or(wrong_length)? != MAGIC {
            return Err(Refusal::DescriptorMagic.into());
        }
        let version = u16::from_le_bytes(take(rest).ok_or(wrong_length)?);
        if version != VERSION {
            return Err(Refusal::DescriptorVersion { found: version, expected: VERSION }.into());
        }
        let Some((body, check)) = bytes.split_last_chunk().filter(|_| bytes.len() == Self::LEN)
        else {
            return Err(wrong_length.into());
        };
        if crc32fast::hash(body) != u32::from_le_bytes(*check) {
            return Err(Refusal::DescriptorChecksum.into());
        }
        let index = u16::from_le_bytes(take(rest).ok_or(wrong_length)?);
        // The first place is the file's own.
        if !(1..LINES).contains(&usize::from(index)) {
            return Err(Refusal::NoSuchTimeline { index }.into());
        }
        Ok(Self { index, file: u64::from_le_bytes(take(rest).ok_or(wrong_length)?) })
    }
}

/// Takes the first `N` bytes off.
fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (field, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(*field)
}

impl fmt::Debug for TimelineDescriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimelineDescriptor")
            .field("index", &self.index)
            .field("file", &format_args!("{:#018x}", self.file))
            .finish()
    }
}
