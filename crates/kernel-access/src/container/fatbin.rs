//! Fat binaries: a header, then entries, each with a header of its own and a payload that may be
//! compressed.

use std::borrow::Cow;
use std::io::Read as _;

use super::{Entry, Error, Form, Image, damaged, ptx, starts_with};
use crate::bytes::{slice, u16, u32, u64};

const WRAPPER: u32 = 0x4662_43b1;
const FATBIN: u32 = 0xba55_ed50;

const PTX: u16 = 1;
const CUBIN: u16 = 2;

const LZ4: u64 = 0x2000;
const ZSTD: u64 = 0x8000;

/// A payload that claims to be larger is an error, and so is a fat binary whose payloads together
/// do: a few damaged bytes could otherwise ask for any amount of memory.
pub const MAX_DECOMPRESSED: u64 = 1 << 30;

/// What compiled programs register, and hand to `cuModuleLoadFatBinary` and `cuLibraryLoadData`: the
/// address of a fat binary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Wrapper {
    /// The address of the fat binary in the process that the wrapper is of.
    pub address: u64,
}

impl Wrapper {
    /// The wrapper that the bytes are, if they are one.
    pub fn parse(image: &[u8]) -> Option<Self> {
        starts_with(image, WRAPPER).then_some(())?;
        u64(image, 8).map(|address| Self { address })
    }
}

pub(super) fn is_fatbin(image: &[u8]) -> bool {
    starts_with(image, FATBIN)
}

pub(super) fn length(start: &[u8]) -> Option<u64> {
    u64::from(u16(start, 6)?).checked_add(u64(start, 8)?)
}

pub(super) fn entries<'a>(
    image: &'a [u8],
    wanted: &dyn Fn(Form, u32) -> bool,
    most: u64,
) -> Result<Vec<Entry<'a>>, Error> {
    let end = damaged(length(image), "a fat binary's header")?;
    let header = damaged(u16(image, 6), "a fat binary's header")?;
    let image = damaged(slice(image, 0, end), "a fat binary's length")?;
    let mut at = u64::from(header);
    if at < 16 {
        return Err(Error::Damaged("a fat binary's header"));
    }
    let mut entries = Vec::new();
    let mut room = most.min(MAX_DECOMPRESSED);
    // Between two entries, and after the last, there may be zeros.
    while end - at >= 64 {
        let kind = damaged(u16(image, at), "an entry's header")?;
        let header = u64::from(damaged(u32(image, at + 4), "an entry's header")?);
        let padded = damaged(u64(image, at + 8), "an entry's header")?;
        if header < 64 {
            return Err(Error::Damaged("an entry's header"));
        }
        let compressed = u64::from(damaged(u32(image, at + 16), "an entry's header")?);
        let architecture = damaged(u32(image, at + 28), "an entry's header")?;
        let flags = damaged(u64(image, at + 40), "an entry's header")?;
        let raw = damaged(u64(image, at + 56), "an entry's header")?;
        let payload = damaged(
            at.checked_add(header).and_then(|start| slice(image, start, padded)),
            "an entry's length",
        )?;
        // The payload is in the image, so neither overflows.
        at += header + padded;
        let form = match kind {
            PTX => Form::Ptx,
            CUBIN => Form::Cubin,
            // Link-time code, sources and debugging: nothing that runs.
            _ => continue,
        };
        if !wanted(form, architecture) {
            continue;
        }
        let payload = if flags & (LZ4 | ZSTD) == 0 {
            Cow::Borrowed(payload)
        } else {
            room = damaged(room.checked_sub(raw), "an entry's size")?;
            let payload = damaged(slice(payload, 0, compressed), "an entry's compressed size")?;
            Cow::Owned(decompress(payload, flags, raw)?)
        };
        let image = match form {
            Form::Ptx => ptx(payload).map_err(|_| Error::Damaged("an entry's PTX"))?,
            Form::Cubin => Image::Cubin(payload),
        };
        entries.push(Entry { architecture: Some(architecture), image });
    }
    Ok(entries)
}

fn decompress(payload: &[u8], flags: u64, raw: u64) -> Result<Vec<u8>, Error> {
    let Ok(size) = usize::try_from(raw) else { return Err(Error::Damaged("an entry's size")) };
    let bytes = if flags & ZSTD != 0 {
        let mut bytes = Vec::new();
        ruzstd::decoding::StreamingDecoder::new(payload)
            .map_err(|_| Error::Damaged("an entry's zstd data"))?
            // One more than there should be, which shows that there are too many.
            .take(raw + 1)
            .read_to_end(&mut bytes)
            .map_err(|_| Error::Damaged("an entry's zstd data"))?;
        bytes
    } else {
        // A block of LZ4 has at most 255 bytes for each of its own, whatever its header claims.
        if raw / 255 > payload.len() as u64 {
            return Err(Error::Damaged("an entry's size"));
        }
        lz4_flex::block::decompress(payload, size)
            .map_err(|_| Error::Damaged("an entry's LZ4 data"))?
    };
    if bytes.len() == size { Ok(bytes) } else { Err(Error::Damaged("an entry's size")) }
}
