//! Images in memory of which only the address is known, as the driver gets them.

use super::{Wrapper, length};

/// Why there is no image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotLocated {
    /// There is no image, or a part of it is not there.
    Unreadable,
    /// It is PTX, and longer than allowed.
    LongText,
    /// It is larger than allowed.
    TooLarge,
}

/// An image in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Located {
    /// Where it begins: not where its wrapper does.
    pub address: u64,
    /// How many bytes it has. Of PTX without the zero that ends it.
    pub bytes: usize,
    /// What was read of it already, and perhaps of what comes after it. Of PTX all.
    pub start: Vec<u8>,
}

/// Finds the image at an address, or that the wrapper there names, of at most `most` bytes, or
/// `most_text` for PTX.
///
/// `read` reads so many bytes of memory, or fewer if there are no more. It is asked for what the
/// image's own headers say, which may be damaged.
///
/// # Errors
///
/// When there is no image, or it is too large.
pub fn locate(
    mut address: u64,
    most: u64,
    most_text: usize,
    read: &dyn Fn(u64, usize) -> Vec<u8>,
) -> Result<Located, NotLocated> {
    let mut start = read(address, 64);
    if let Some(wrapper) = Wrapper::parse(&start) {
        address = wrapper.address;
        start = read(address, 64);
    }
    if is_text(&start) {
        let text = text(address, most_text, read).ok_or(NotLocated::Unreadable)?;
        return match text.len() {
            bytes if bytes > most_text => Err(NotLocated::LongText),
            bytes => Ok(Located { address, bytes, start: text }),
        };
    }
    loop {
        let count = match length(&start) {
            Ok(Some(bytes)) if bytes > most => return Err(NotLocated::TooLarge),
            Ok(Some(bytes)) => return Ok(Located { address, bytes: bytes as usize, start }),
            Err(needed) if needed <= most && needed > start.len() as u64 => needed as usize,
            _ => return Err(NotLocated::Unreadable),
        };
        start = read(address, count);
        if start.len() < count {
            return Err(NotLocated::Unreadable);
        }
    }
}

/// The text there, without the zero that ends it, or the begin of one that is longer than `most`. It
/// is read page by page, as the next one may not be there.
fn text(address: u64, most: usize, read: &dyn Fn(u64, usize) -> Vec<u8>) -> Option<Vec<u8>> {
    const PAGE: u64 = 4096;
    let mut all = Vec::new();
    while all.len() <= most {
        let at = address.checked_add(all.len() as u64)?;
        let count = (PAGE - at % PAGE) as usize;
        let part = read(at, count);
        if let Some(end) = part.iter().position(|byte| *byte == 0) {
            all.extend(part.get(..end)?);
            return Some(all);
        }
        if part.len() < count {
            return None;
        }
        all.extend(part);
    }
    Some(all)
}

/// Whether it is no fat binary and no cubin.
fn is_text(start: &[u8]) -> bool {
    let text = |byte: &u8| (0x20..0x7f).contains(byte) || byte.is_ascii_whitespace();
    start.get(..8).is_some_and(|start| start.iter().all(text))
}
