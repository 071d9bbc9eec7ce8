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
/// let mut bytes: [u8; LENGTH] = TICKET.seal(&[&7_u64.to_le_bytes()])?;
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

/// The reason why [`Envelope::unseal`] refuses a message, or [`Envelope::seal`] makes none.
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
        /// The version of the message.
        found: u16,
        /// The version that is read.
        expected: u16,
    },
    /// Some bytes are damaged.
    Checksum,
}

impl Damage {
    fn length(found: usize, expected: usize) -> Self {
        let [found, expected] =
            [found, expected].map(|length| u32::try_from(length).unwrap_or(u32::MAX));
        Self::Length { found, expected }
    }
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

impl Envelope {
    /// Returns the whole message of `N` bytes. The fields are between the first six bytes (magic and
    /// version) and the last four (checksum).
    ///
    /// # Errors
    ///
    /// [`Damage::Length`] if the fields do not fill this space exactly.
    pub fn seal<const N: usize>(self, fields: &[&[u8]]) -> Result<[u8; N], Damage> {
        let version = self.version.to_le_bytes();
        let mut bytes = [self.magic.as_slice(), &version].concat();
        bytes.extend(fields.iter().copied().flatten());
        bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
        bytes.try_into().map_err(|bytes: Vec<u8>| Damage::length(bytes.len(), N))
    }

    /// Checks a message that must have `length` bytes, and returns its fields.
    ///
    /// # Errors
    ///
    /// [`Damage`], with the first of these that is wrong: the magic, the version, the length, the
    /// checksum.
    pub fn unseal(self, bytes: &[u8], length: usize) -> Result<Fields<'_>, Damage> {
        let mut fields = Fields { rest: bytes, short: Damage::length(bytes.len(), length) };
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

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: Envelope = Envelope { magic: *b"KIND", version: 3 };

    /// Nothing is cut and nothing is made up: a message with a checksum has all fields.
    #[test]
    fn fields_fill_a_message() {
        let seal =
            |length: usize| KIND.seal::<18>(&[&vec![7; length / 2], &vec![7; length.div_ceil(2)]]);
        for length in 0..32 {
            let refused = Damage::Length { found: length as u32 + 10, expected: 18 };
            match seal(length) {
                Ok(bytes) => {
                    assert_eq!(length, 8);
                    let mut fields = KIND.unseal(&bytes, 18).expect("it is whole");
                    assert_eq!(fields.take(), Ok([7; 8]));
                }
                Err(damage) => assert!(length != 8 && damage == refused, "{length}: {damage:?}"),
            }
        }
        assert!(KIND.seal::<9>(&[]).is_err() && KIND.seal::<10>(&[]).is_ok());
    }
}
