//! Programs into which the loader does not take the library, or that do not start with it.

use std::env;
use std::ffi::{CString, OsStr, OsString};
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// How many interpreters of scripts are looked through, as the system does.
const SCRIPTS: usize = 5;

/// The file of a program, or of a script's interpreter, and why it is not checked. `None` if it is,
/// or if that cannot be found out.
pub(crate) fn unchecked(name: &OsStr) -> Option<(PathBuf, &'static str)> {
    let mut path = found(name)?;
    for _ in 0..SCRIPTS {
        // To open a pipe waits for what writes there.
        if !fs::metadata(&path).ok()?.is_file() {
            return None;
        }
        let file = File::open(&path).ok()?;
        let begin = begin(&file).ok()?;
        let Some(line) = begin.strip_prefix(b"#!") else {
            return why(&path, &file, &begin).map(|why| (path, why));
        };
        let mut words = line.split(|sign| matches!(sign, b' ' | b'\t' | b'\n' | 0));
        path = OsString::from_vec(words.find(|word| !word.is_empty())?.to_vec()).into();
    }
    None
}

/// The file that the system takes for a name.
fn found(name: &OsStr) -> Option<PathBuf> {
    if name.as_bytes().contains(&b'/') {
        return Some(name.into());
    }
    let is_program = |path: &PathBuf| {
        fs::metadata(path).is_ok_and(|found| found.is_file() && found.mode() & 0o111 != 0)
    };
    let all = env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    env::split_paths(&all).map(|folder| folder.join(name)).find(is_program)
}

fn begin(file: &File) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; 256];
    let count = file.read_at(&mut bytes, 0)?;
    bytes.truncate(count);
    Ok(bytes)
}

fn why(path: &Path, file: &File, begin: &[u8]) -> Option<&'static str> {
    const CLASS_64: u8 = 2;
    const X86_64: u64 = 62;
    const LOADED: u64 = 1;
    const DYNAMIC: u64 = 2;
    const INTERPRETER: u64 = 3;
    if !begin.starts_with(b"\x7fELF") {
        return None;
    }
    if has_other_rights(path, &file.metadata().ok()?) {
        return Some("has the rights of another user: it is not checked");
    }
    if begin.get(4) != Some(&CLASS_64) || number(begin, 18, 2)? != X86_64 {
        return Some("is for another machine: it is not checked");
    }
    let (at, size) = (number(begin, 32, 8)?, number(begin, 54, 2)?);
    let (mut has_loader, mut dynamic, mut loaded) = (false, None, Vec::new());
    for index in 0..number(begin, 56, 2)? {
        let mut header = [0; 56];
        file.read_exact_at(&mut header, at.checked_add(index * size)?).ok()?;
        // Where it is in the file and in memory, and how long.
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
    if has_loader {
        let wants_first = needs_sanitizer(file, &dynamic?, &loaded)? && !is_order_free();
        return wants_first.then_some(
            "has AddressSanitizer's library, which wants to be loaded first: it does not start \
             without ASAN_OPTIONS=verify_asan_link_order=0",
        );
    }
    // The loader is no program of its own: it is given one.
    let is_loader = path.file_name()?.as_bytes().starts_with(b"ld-");
    (!is_loader).then_some("is statically linked: it is not checked")
}

/// A part of a program.
struct Part {
    offset: u64,
    address: u64,
    bytes: u64,
}

/// Whether a program needs the library of AddressSanitizer, as those of gcc do.
fn needs_sanitizer(file: &File, dynamic: &Part, loaded: &[Part]) -> Option<bool> {
    const NEEDED: u64 = 1;
    const STRINGS: u64 = 5;
    let mut bytes = vec![0; usize::try_from(dynamic.bytes.min(1 << 16)).ok()?];
    file.read_exact_at(&mut bytes, dynamic.offset).ok()?;
    let entries = || bytes.chunks_exact(16).map(|of| Some((number(of, 0, 8)?, number(of, 8, 8)?)));
    let (_, strings) = entries().flatten().find(|(kind, _)| *kind == STRINGS)?;
    let within = |part: &&Part| {
        strings.checked_sub(part.address).is_some_and(|offset| offset < part.bytes)
    };
    let part = loaded.iter().find(within)?;
    let strings = part.offset.checked_add(strings - part.address)?;
    let is_it = |at: u64| {
        let mut name = [0; 20];
        let count = file.read_at(&mut name, strings.checked_add(at)?).ok()?;
        let name = name.get(..count)?;
        Some(name.starts_with(b"libasan.so") || name.starts_with(b"libclang_rt.asan"))
    };
    let mut needed = entries().flatten().filter(|(kind, _)| *kind == NEEDED);
    Some(needed.any(|(_, at)| is_it(at) == Some(true)))
}

/// Whether the library of AddressSanitizer may come later.
fn is_order_free() -> bool {
    let options = env::var_os("ASAN_OPTIONS").unwrap_or_default();
    options.to_string_lossy().contains("verify_asan_link_order=0")
}

/// So many bytes at an offset.
fn number(bytes: &[u8], at: usize, count: usize) -> Option<u64> {
    let own = bytes.get(at..at + count)?;
    Some(own.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

/// Whether the file changes the user, the group or the capabilities.
fn has_other_rights(path: &Path, of: &Metadata) -> bool {
    let capable = CString::new(path.as_os_str().as_bytes()).is_ok_and(|path| {
        let name = c"security.capability".as_ptr();
        // SAFETY: two C strings; without a place the call returns the size.
        unsafe { libc::getxattr(path.as_ptr(), name, std::ptr::null_mut(), 0) > 0 }
    });
    // SAFETY: both have no preconditions.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    of.mode() & libc::S_ISUID != 0 && of.uid() != user
        || of.mode() & libc::S_ISGID != 0 && of.mode() & 0o010 != 0 && of.gid() != group
        || user != 0 && capable
}
