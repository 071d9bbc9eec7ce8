//! The images that a program loads, as they were then.

use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::ffi::CStr;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::Arc;

use cuda_kernel_access::container::{Located, NotLocated, locate};
use cuda_order_check_engine::own_memory;

use crate::code::maps::{self, FilePlace};
use crate::code::{Reason, reserve};
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
    /// The variables that the program has asked for, in memory that is there.
    variables: Lock<Arc<[Variable]>>,
    has_variables: AtomicBool,
}

/// A variable of a module: its name in the image, and where it is.
#[derive(Debug)]
pub(crate) struct Variable {
    pub(crate) name: Box<str>,
    pub(crate) range: Range<u64>,
}

/// Of so many variables of an image it is remembered where they are: each launch of its kernels may use them.
const VARIABLES: usize = 16;

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
        if reserve(&COPIED, bytes.len(), COPIES) {
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

    fn of_memory(address: u64) -> Self {
        const UNREADABLE: &str = "its image cannot be read";
        let found = locate(address, LARGEST, LONGEST, &own_memory::read);
        let Located { address, bytes, mut start, .. } = match found {
            Ok(found) => found,
            Err(NotLocated::LongText) => return Self::Missing("its PTX is too long"),
            Err(NotLocated::TooLarge) => return Self::Missing("its image is too large"),
            Err(_) => return Self::Missing(UNREADABLE),
        };
        if let Some(mapped) = Self::mapped(address, bytes) {
            return mapped;
        }
        if COPIED.load(Ordering::Relaxed) + bytes > COPIES {
            return Self::Missing(FULL);
        }
        if start.len() < bytes {
            start = own_memory::read(address, bytes);
        }
        start.truncate(bytes);
        if start.len() == bytes { Self::copy(start) } else { Self::Missing(UNREADABLE) }
    }
}

const FULL: &str = "there was no room for its image";

/// The longest PTX that is copied.
pub(crate) const LONGEST: usize = 8 << 20;

impl Drop for Source {
    fn drop(&mut self) {
        if let Self::Copied(bytes) = self {
            COPIED.fetch_sub(bytes.len(), Ordering::Relaxed);
        }
    }
}

impl Image {
    fn new(source: Source) -> Self {
        Self {
            source: Lock::new(Rank::Code, source),
            variables: Lock::new(Rank::Code, Arc::default()),
            has_variables: AtomicBool::new(false),
        }
    }

    /// The program has asked for a variable, which is here.
    pub(crate) fn has_variable(&self, name: &str, range: &Range<u64>) {
        let is_it = |one: &Variable| *one.name == *name && one.range == *range;
        if self.variables().is_some_and(|all| all.iter().any(is_it)) {
            return;
        }
        let is_other = |one: &Variable| *one.name != *name && one.range.start != range.start;
        let new = || Variable { name: name.into(), range: range.clone() };
        self.change_variables(|all| {
            all.retain(is_other);
            if all.len() < VARIABLES {
                all.push(new());
            }
        });
    }

    /// The memory at this address is gone.
    pub(crate) fn ends_variable(&self, address: u64) {
        self.change_variables(|all| all.retain(|one| one.range.start != address));
    }

    fn change_variables(&self, change: impl FnOnce(&mut Vec<Variable>)) {
        let Ok(mut variables) = self.variables.lock() else { return };
        let copy = |one: &Variable| Variable { name: one.name.clone(), range: one.range.clone() };
        let mut all: Vec<Variable> = variables.iter().map(copy).collect();
        change(&mut all);
        self.has_variables.store(!all.is_empty(), Ordering::Relaxed);
        *variables = all.into();
    }

    /// The variables that the program has asked for; none if there are none.
    pub(crate) fn variables(&self) -> Option<Arc<[Variable]>> {
        if !self.has_variables.load(Ordering::Relaxed) {
            return None;
        }
        self.variables.lock().ok().map(|all| all.clone())
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
            Ok(file) if !file.is_file() => Source::Missing("its image is in no file"),
            Ok(file) if file.len() > room => Source::Missing(FULL),
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
            let bytes = own_memory::read(address, count);
            if bytes.len() == count && is_there() {
                return Ok(bytes);
            }
        }
        Err("the file of its image is no longer mapped".into())
    }
}
