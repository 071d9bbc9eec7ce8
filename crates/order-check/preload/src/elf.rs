//! What the file of a program or a library says of itself.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use cuda_order_check_engine::files;

/// A file of a program or a library.
pub struct Elf {
    file: File,
    /// Whether it is for this kind of processor. Of another one nothing more is read.
    pub is_for_this_machine: bool,
    /// Whether it names a loader, as programs do that are not statically linked.
    pub has_loader: bool,
    dynamic: Option<Part>,
    loaded: Vec<Part>,
}

/// Where a part is in the file and in memory, and how long it is.
struct Part {
    offset: u64,
    address: u64,
    bytes: u64,
}

impl Elf {
    /// `None` if it cannot be read, or is no such file.
    pub fn open(path: &Path) -> Option<Self> {
        Self::read(files::plain(path).ok()?)
    }

    /// As [`open`](Self::open), of a file that is open.
    pub fn read(file: File) -> Option<Self> {
        const CLASS_64: u8 = 2;
        const X86_64: u64 = 62;
        const LOADED: u64 = 1;
        const DYNAMIC: u64 = 2;
        const INTERPRETER: u64 = 3;
        let mut begin = [0; 64];
        let count = file.read_at(&mut begin, 0).ok()?;
        let is_elf = count >= 20 && begin.starts_with(b"\x7fELF");
        let is_for_this_machine =
            begin.get(4) == Some(&CLASS_64) && number(&begin, 18, 2)? == X86_64;
        let (mut has_loader, mut dynamic, mut loaded) = (false, None, Vec::new());
        let (at, size) = (number(&begin, 32, 8)?, number(&begin, 54, 2)?);
        let headers = if is_elf && is_for_this_machine { number(&begin, 56, 2)? } else { 0 };
        for index in 0..headers {
            let mut header = [0; 56];
            file.read_exact_at(&mut header, at.checked_add(index * size)?).ok()?;
            let part = Part {
                offset: number(&header, 8, 8)?,
                address: number(&header, 16, 8)?,
                bytes: number(&header, 32, 8)?,
            };
            match number(&header, 0, 4)? {
                LOADED => loaded.push(part),
                DYNAMIC => dynamic = Some(part),
                INTERPRETER => has_loader = true,
                _ => {}
            }
        }
        is_elf.then_some(Self { file, is_for_this_machine, has_loader, dynamic, loaded })
    }

    /// The values that the dynamic section has for a tag.
    fn values(&self, tag: u64) -> Vec<u64> {
        let read = || {
            let part = self.dynamic.as_ref()?;
            let mut bytes = vec![0; usize::try_from(part.bytes.min(1 << 16)).ok()?];
            self.file.read_exact_at(&mut bytes, part.offset).ok()?;
            Some(bytes)
        };
        let bytes = read().unwrap_or_default();
        let value =
            |entry: &[u8; 16]| (number(entry, 0, 8)? == tag).then(|| number(entry, 8, 8)).flatten();
        bytes.as_chunks().0.iter().filter_map(value).collect()
    }

    /// The names of functions and libraries, each with a zero after it.
    fn names(&self) -> Option<Vec<u8>> {
        const STRINGS: u64 = 5;
        const SIZE: u64 = 10;
        let address = *self.values(STRINGS).first()?;
        let within = |part: &&Part| {
            address.checked_sub(part.address).is_some_and(|offset| offset < part.bytes)
        };
        let part = self.loaded.iter().find(within)?;
        let size = (*self.values(SIZE).first()?).min(part.bytes - (address - part.address));
        let mut names = vec![0; usize::try_from(size).ok()?];
        let at = part.offset.checked_add(address - part.address)?;
        self.file.read_exact_at(&mut names, at).ok()?;
        Some(names)
    }

    /// Whether it exports, or asks for, a function of this name.
    pub fn has_name(&self, name: &str) -> bool {
        let names = self.names().unwrap_or_default();
        names.split(|sign| *sign == 0).any(|own| own == name.as_bytes())
    }

    /// The names of the libraries that it needs.
    pub fn needed(&self) -> Vec<Vec<u8>> {
        const NEEDED: u64 = 1;
        let names = self.names().unwrap_or_default();
        let name = |at: u64| {
            let rest = names.get(usize::try_from(at).ok()?..)?;
            rest.split(|sign| *sign == 0).next().map(<[u8]>::to_vec)
        };
        self.values(NEEDED).into_iter().filter_map(name).collect()
    }
}

/// So many bytes at an offset.
fn number(bytes: &[u8], at: usize, count: usize) -> Option<u64> {
    let own = bytes.get(at..at + count)?;
    Some(own.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}
