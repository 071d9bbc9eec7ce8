//! The envelope of a message from one process to another: its kind, its version, its fields, and a
//! checksum, which detects damage.

use crate::context::Origin;
use crate::device::Uuid;
use crate::driver::process::{Identity, Numbering};

/// A kind of envelope: four bytes that identify it, and the version that is written and read.
#[derive(Clone, Copy)]
pub(crate) struct Envelope {
    pub(crate) magic: [u8; 4],
    pub(crate) version: u16,
}

/// The reason why an envelope is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Damage {
    Length { found: u32, expected: u32 },
    Magic,
    Version { found: u16, expected: u16 },
    Checksum,
}

const CHECK: usize = 4;

impl Envelope {
    /// The whole envelope of `N` bytes. The fields fill the space between magic, version and
    /// checksum.
    pub(crate) fn seal<const N: usize>(self, fields: &[&[u8]]) -> [u8; N] {
        let mut bytes = [0; N];
        let version = self.version.to_le_bytes();
        let all = self.magic.iter().chain(&version).chain(fields.iter().copied().flatten());
        bytes.iter_mut().zip(all).for_each(|(place, byte)| *place = *byte);
        if let Some((body, check)) = bytes.split_last_chunk_mut::<CHECK>() {
            *check = crc32fast::hash(body).to_le_bytes();
        }
        bytes
    }

    /// The fields of an envelope of `length` bytes. If several things are wrong, it returns the
    /// most general: first the magic, then the version.
    pub(crate) fn unseal(self, bytes: &[u8], length: usize) -> Result<Fields<'_>, Damage> {
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

/// The fields of an envelope that were not taken out yet.
pub(crate) struct Fields<'a> {
    rest: &'a [u8],
    short: Damage,
}

impl Fields<'_> {
    /// Takes the next `N` bytes out.
    pub(crate) fn take<const N: usize>(&mut self) -> Result<[u8; N], Damage> {
        let (field, after) = self.rest.split_first_chunk().ok_or(self.short)?;
        self.rest = after;
        Ok(*field)
    }

    pub(crate) fn take_origin(&mut self) -> Result<Origin, Damage> {
        Ok(Origin {
            pid: u32::from_le_bytes(self.take()?),
            device: Uuid::from_bytes(self.take()?),
            process: Identity {
                started: u64::from_le_bytes(self.take()?),
                numbering: Numbering {
                    pid_namespace: u32::from_le_bytes(self.take()?),
                    time_namespace: u32::from_le_bytes(self.take()?),
                    boot: self.take()?,
                },
            },
        })
    }
}

/// The bytes that [`Fields::take_origin`] reads; all zero for none.
pub(crate) fn origin_bytes(origin: Option<Origin>) -> [u8; 52] {
    let mut bytes = [0; 52];
    if let Some(Origin { pid, device, process: Identity { started, numbering } }) = origin {
        let fields: [&[u8]; 6] = [
            &pid.to_le_bytes(),
            device.as_bytes(),
            &started.to_le_bytes(),
            &numbering.pid_namespace.to_le_bytes(),
            &numbering.time_namespace.to_le_bytes(),
            &numbering.boot,
        ];
        let all = fields.into_iter().flatten();
        bytes.iter_mut().zip(all).for_each(|(place, byte)| *place = *byte);
    }
    bytes
}
