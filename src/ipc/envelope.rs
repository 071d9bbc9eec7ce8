//! The envelope of a message from one process to another: its kind, its version, its fields, and a
//! checksum, which detects damage.

/// Describes one kind of message to another process: four bytes that identify the kind, and the
/// version of the kind's fields.
///
/// [`seal`](Self::seal) puts fields into an envelope with a checksum (CRC-32), and
/// [`unseal`](Self::unseal) takes them out. The checksum detects damage, and not forgery: anyone
/// can make a valid envelope.
///
/// ```
/// use cuda_events::foundation::{Damage, Envelope};
///
/// const TICKET: Envelope = Envelope { magic: *b"TICK", version: 1 };
/// // Magic, version, eight bytes of fields, checksum.
/// const LENGTH: usize = 4 + 2 + 8 + 4;
///
/// let mut bytes: [u8; LENGTH] = TICKET.seal(&[&7_u64.to_le_bytes()]);
/// let mut fields = TICKET.unseal(&bytes, LENGTH)?;
/// assert_eq!(u64::from_le_bytes(fields.take()?), 7);
///
/// bytes[8] ^= 1;
/// assert_eq!(TICKET.unseal(&bytes, LENGTH).err(), Some(Damage::Checksum));
/// # Ok::<(), Damage>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// The first four bytes of the message.
    pub magic: [u8; 4],
    /// The version of the fields.
    pub version: u16,
}

/// The reason why [`Envelope::unseal`] refuses a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Damage {
    /// The message has another length.
    Length {
        /// The number of bytes that there are.
        found: u32,
        /// The number of bytes that there should be.
        expected: u32,
    },
    /// The message begins with other bytes.
    Magic,
    /// The message has another version.
    Version {
        /// Its version.
        found: u16,
        /// The version that is read.
        expected: u16,
    },
    /// Some bytes are damaged.
    Checksum,
}

impl core::fmt::Display for Damage {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Length { found, expected } => {
                write!(f, "the message has {found} bytes, and should have {expected}")
            }
            Self::Magic => f.write_str("the message is of another kind: its first bytes differ"),
            Self::Version { found, expected } => write!(
                f,
                "the message has version {found}, and this program reads version {expected}: \
                 update the older of the two programs"
            ),
            Self::Checksum => {
                f.write_str("the message was damaged on its way: its checksum differs")
            }
        }
    }
}

impl core::error::Error for Damage {}

const CHECK: usize = 4;

impl Envelope {
    /// Returns the whole message of `N` bytes. The fields fill the space between the first six
    /// bytes (magic and version) and the last four (checksum). Fields that are too long for this
    /// space are cut, and missing bytes are zero.
    pub fn seal<const N: usize>(self, fields: &[&[u8]]) -> [u8; N] {
        let mut bytes = [0; N];
        let version = self.version.to_le_bytes();
        let all = self.magic.iter().chain(&version).chain(fields.iter().copied().flatten());
        bytes.iter_mut().zip(all).for_each(|(place, byte)| *place = *byte);
        if let Some((body, check)) = bytes.split_last_chunk_mut::<CHECK>() {
            *check = crc32fast::hash(body).to_le_bytes();
        }
        bytes
    }

    /// Checks a message that must have `length` bytes, and returns its fields.
    ///
    /// # Errors
    ///
    /// [`Damage`], with the first of these that is wrong: the magic, the version, the length, the
    /// checksum.
    pub fn unseal(self, bytes: &[u8], length: usize) -> Result<Fields<'_>, Damage> {
        let found = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let expected = u32::try_from(length).unwrap_or(u32::MAX);
        let mut fields = Fields { rest: bytes, short: Damage::Length { found, expected } };
        if fields.take()? != self.magic {
            return Err(Damage::Magic);
        }
        let version = u16::from_le_bytes(fields.take()?);
        if version != self.version {
            return Err(Damage::Version { found: version, expected: self.version });
        }
        let Some((body, check)) = bytes.split_last_chunk().filter(|_| bytes.len() == length) else {
            return Err(fields.short);
        };
        if crc32fast::hash(body) != u32::from_le_bytes(*check) {
            return Err(Damage::Checksum);
        }
        Ok(fields)
    }
}

/// The fields of a message, from [`Envelope::unseal`], which has an example.
#[derive(Debug)]
pub struct Fields<'a> {
    rest: &'a [u8],
    short: Damage,
}

impl Fields<'_> {
    /// Takes the next `N` bytes out. The checksum at the end counts as fields, too.
    ///
    /// # Errors
    ///
    /// [`Damage::Length`] if fewer are left.
    pub fn take<const N: usize>(&mut self) -> Result<[u8; N], Damage> {
        let (field, after) = self.rest.split_first_chunk().ok_or(self.short)?;
        self.rest = after;
        Ok(*field)
    }
}
