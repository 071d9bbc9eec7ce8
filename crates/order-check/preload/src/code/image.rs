//! The images that a program loads, as they were then.

use core::sync::atomic::{AtomicUsize, Ordering};
use std::ffi::CStr;
use std::os::unix::ffi::OsStrExt as _;

use cuda_kernel_access::container::{Wrapper, length};

use crate::code::maps::{self, FilePlace};
use crate::code::{Reason, keep};
use crate::lock::{Lock, Rank};

/// Images in memory that the program may free are copied: so many bytes, all together.
const COPIES: usize = 32 << 20;

/// Smaller ones are copied without a question where they are.
const SMALL: usize = 64 << 10;

/// The largest image that is looked at.
const LARGEST: u64 = 256 << 20;

/// How many bytes are copied.
static COPIED: AtomicUsize = AtomicUsize::new(0);

/// How many bytes are copied, for tests.
#[cfg(test)]
pub(crate) fn copied() -> usize {
    COPIED.load(Ordering::Relaxed)
}

/// An image that a module or a library was loaded from. It ends with that.
#[derive(Debug)]
pub(crate) struct Image {
    source: Lock<Source>,
}

#[derive(Debug)]
enum Source {
    /// It lies in a file, which is mapped here.
    Mapped {
        address: u64,
        bytes: usize,
        file: FilePlace,
    },
    Copied(Box<[u8]>),
    Missing(&'static str),
}

impl Source {
    fn copy(bytes: Vec<u8>) -> Self {
        if keep(&COPIED, bytes.len(), COPIES) {
            Self::Copied(bytes.into_boxed_slice())
        } else {
            Self::Missing(FULL)
        }
    }

    /// Bytes that lie in a file, if they are so many that a question is worth it.
    fn mapped(address: u64, bytes: usize) -> Option<Self> {
        let range = [address, address.checked_add(bytes as u64)?];
        let file = (bytes > SMALL).then(|| maps::file_of(range, false)).flatten()?;
        Some(Self::Mapped { address, bytes, file })
    }

    /// These, which were read from there.
    fn of_bytes(address: u64, bytes: Vec<u8>) -> Self {
        Self::mapped(address, bytes.len()).unwrap_or_else(|| Self::copy(bytes))
    }

    fn of_memory(mut address: u64) -> Self {
        const UNREADABLE: &str = "its image cannot be read";
        let mut start = maps::read(address, 64);
        if let Some(wrapper) = Wrapper::parse(&start) {
            address = wrapper.address;
            start = maps::read(address, 64);
        }
        if is_text(&start) {
            return match text(address) {
                Some(text) if text.len() > LONGEST => Self::Missing("its PTX is too long"),
                Some(text) => Self::of_bytes(address, text),
                None => Self::Missing(UNREADABLE),
            };
        }
        let bytes = loop {
            let count = match length(&start) {
                Ok(Some(bytes)) => break bytes,
                Err(needed) if needed <= LARGEST && needed > start.len() as u64 => needed as usize,
                _ => return Self::Missing(UNREADABLE),
            };
            start = maps::read(address, count);
            if start.len() < count {
                return Self::Missing(UNREADABLE);
            }
        };
        if bytes > LARGEST {
            return Self::Missing("its image is too large");
        }
        let bytes = bytes as usize;
        if let Some(mapped) = Self::mapped(address, bytes) {
            return mapped;
        }
        if COPIED.load(Ordering::Relaxed) + bytes > COPIES {
            return Self::Missing(FULL);
        }
        if start.len() < bytes {
            start = maps::read(address, bytes);
        }
        start.truncate(bytes);
        if start.len() == bytes { Self::copy(start) } else { Self::Missing(UNREADABLE) }
    }
}

const FULL: &str = "there was no room for its image";

/// The longest PTX that is kept.
pub(crate) const LONGEST: usize = 8 << 20;

/// The text there, without the zero that ends it, or the begin of one that is longer than that. It is
/// read page by page, as the next one may not be there.
fn text(address: u64) -> Option<Vec<u8>> {
    const PAGE: u64 = 4096;
    let mut all = Vec::new();
    while all.len() <= LONGEST {
        let at = address.checked_add(all.len() as u64)?;
        let count = (PAGE - at % PAGE) as usize;
        let part = maps::read(at, count);
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

impl Drop for Source {
    fn drop(&mut self) {
        if let Self::Copied(bytes) = self {
            COPIED.fetch_sub(bytes.len(), Ordering::Relaxed);
        }
    }
}

impl Image {
    fn new(source: Source) -> Self {
        Self { source: Lock::new(Rank::Code, source) }
    }

    /// The image that a call has just loaded from memory: a fat binary, a cubin or a text.
    pub(crate) fn at(address: usize) -> Self {
        Self::new(Source::of_memory(address as u64))
    }

    /// The image that a call has just loaded from this file.
    pub(crate) fn file(path: &CStr) -> Self {
        let path = std::path::Path::new(std::ffi::OsStr::from_bytes(path.to_bytes()));
        let room = COPIES.saturating_sub(COPIED.load(Ordering::Relaxed)) as u64;
        let source = match std::fs::metadata(path) {
            Ok(of) if !of.is_file() => Source::Missing("its image is in no file"),
            Ok(of) if of.len() > room => Source::Missing(FULL),
            Ok(_) => match std::fs::read(path) {
                Ok(bytes) => Source::copy(bytes),
                Err(_) => Source::Missing("the file of its image cannot be read"),
            },
            Err(_) => Source::Missing("the file of its image cannot be read"),
        };
        Self::new(source)
    }

    /// The module or library ends, and the image with it.
    pub(crate) fn ends(&self) {
        if let Ok(mut source) = self.source.lock() {
            *source = Source::Missing("its code was unloaded");
        }
    }

    /// Its bytes, as they were loaded.
    pub(crate) fn bytes(&self) -> Result<Vec<u8>, Reason> {
        let mapped = match &*self.source.lock().map_err(|_| "an error")? {
            Source::Mapped { address, bytes, file } => (*address, *bytes, *file),
            Source::Copied(bytes) => return Ok(bytes.to_vec()),
            Source::Missing(why) => return Err((*why).into()),
        };
        let (address, count, file) = mapped;
        let is_there = || maps::file_of([address, address + count as u64], true) == Some(file);
        // It may be unmapped meanwhile, and something else be there.
        if is_there() {
            let bytes = maps::read(address, count);
            if bytes.len() == count && is_there() {
                return Ok(bytes);
            }
        }
        Err("the file of its image is no longer mapped".into())
    }
}
