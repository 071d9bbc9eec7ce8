//! The functions that a library exports, read from its file. The library is not opened as one,
//! which would run its code.

use std::collections::BTreeSet;

use cuda_events::sys::ENTRY_POINTS;

use crate::system::System;

/// The most that is read of a table: far more than a driver library has.
const MOST: u64 = 16 << 20;

/// The driver functions of this crate's table that a library lacks.
pub(crate) struct Lacks {
    /// Those without which the library is refused.
    pub(crate) required: Vec<String>,
    pub(crate) optional: Vec<String>,
}

impl Lacks {
    /// None if the file's list of exports cannot be read.
    pub(crate) fn find(system: &System, path: &str) -> Option<Self> {
        let exported = exported(system, path)?;
        let lacks = |required| {
            ENTRY_POINTS
                .iter()
                .filter(|entry| entry.required == required)
                .map(|entry| entry.function.name())
                .filter(|name| !exported.contains(*name))
                .map(str::to_owned)
                .collect()
        };
        Some(Self { required: lacks(true), optional: lacks(false) })
    }
}

/// The names in the dynamic symbol table of a 64-bit little-endian ELF file.
fn exported(system: &System, path: &str) -> Option<BTreeSet<String>> {
    const DYNAMIC_SYMBOLS: u64 = 11;
    let header = system.part(path, 0, 64).ok()?;
    let count = number::<2>(&header, 0x3c)?;
    let size = number::<2>(&header, 0x3a)?;
    let sections = system.part(path, number::<8>(&header, 0x28)?, count * size).ok()?;
    let mut sections = sections.chunks_exact(usize::try_from(size).ok().filter(|size| *size > 0)?);
    let table = |section: &[u8]| {
        let bytes = number::<8>(section, 0x20)?.min(MOST);
        system.part(path, number::<8>(section, 0x18)?, bytes).ok()
    };
    let mut all = sections.clone();
    let section = sections.find(|section| number::<4>(section, 4) == Some(DYNAMIC_SYMBOLS))?;
    let strings = all.nth(number::<4>(section, 0x28)?.try_into().ok()?);
    let (symbols, strings) = (table(section)?, table(strings?)?);
    let names = symbols.as_chunks::<24>().0.iter().filter_map(|symbol| {
        // What is defined elsewhere is imported, and what is local is not exported.
        let (binding, section) = (number::<1>(symbol, 4)? >> 4, number::<2>(symbol, 6)?);
        let start = usize::try_from(number::<4>(symbol, 0)?).ok()?;
        let name = strings.get(start..)?.split(|byte| *byte == 0).next()?;
        let exported = binding != 0 && section != 0;
        exported.then(|| String::from_utf8_lossy(name).into_owned())
    });
    Some(names.collect())
}

/// The little-endian number of so many bytes at a place.
fn number<const BYTES: usize>(bytes: &[u8], at: usize) -> Option<u64> {
    let part = bytes.get(at..at.checked_add(BYTES)?)?;
    Some(part.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}
