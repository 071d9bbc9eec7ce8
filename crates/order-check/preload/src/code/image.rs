//! The images that a program loads, as they were then.

use core::sync::atomic::{AtomicUsize, Ordering};
use std::ffi::CStr;
use std::os::unix::ffi::OsStrExt as _;

use cuda_kernel_access::container::{Wrapper, length};

use crate::code::Reason;
use crate::code::maps::{self, FilePlace};
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
        let count = bytes.len();
        let room = |copied: usize| copied.checked_add(count).filter(|all| *all <= COPIES);
        match COPIED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, room) {
            Ok(_) => Self::Copied(bytes.into_boxed_slice()),
            Err(_) => Self::Missing(FULL),
        }
    }

    fn of_memory(mut address: u64) -> Self {
        const UNREADABLE: &str = "its image cannot be read";
        let mut start = maps::read(address, 64);
        if let Some(wrapper) = Wrapper::parse(&start) {
            address = wrapper.address;
            start = maps::read(address, 64);
        }
        if is_text(&start) {
            return Self::Missing(TEXT);
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
        if bytes > SMALL
            && let Some(file) = maps::file_of([address, address + bytes as u64], false)
        {
            return Self::Mapped { address, bytes, file };
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

/// What is compiled by the driver, which does not say what it made of it.
const TEXT: &str = "the driver has compiled it from PTX";

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
                Ok(bytes) if is_text(&bytes) => Source::Missing(TEXT),
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
