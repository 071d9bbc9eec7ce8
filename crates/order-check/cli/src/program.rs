//! Programs into which the loader does not take the library, or that do not start with it.

use std::env;
use std::ffi::{CString, OsStr, OsString};
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use cuda_order_check_preload::Elf;

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
            return why(&path, file).map(|why| (path, why));
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

fn why(path: &Path, file: File) -> Option<&'static str> {
    let status = file.metadata().ok()?;
    let elf = Elf::read(file)?;
    if has_other_rights(path, &status) {
        return Some("has the rights of another user: it is not checked");
    }
    if !elf.is_for_this_machine {
        return Some("is for another machine: it is not checked");
    }
    if elf.has_loader {
        // As the programs of gcc do.
        let is_it = |name: &Vec<u8>| {
            name.starts_with(b"libasan.so") || name.starts_with(b"libclang_rt.asan")
        };
        let wants_first = elf.needed().iter().any(is_it) && !is_order_free();
        return wants_first.then_some(
            "has AddressSanitizer's library, which wants to be loaded first: it does not start \
             without ASAN_OPTIONS=verify_asan_link_order=0",
        );
    }
    // The loader is no program of its own: it is given one.
    let is_loader = path.file_name()?.as_bytes().starts_with(b"ld-");
    (!is_loader).then_some("is statically linked: it is not checked")
}

/// Whether the library of AddressSanitizer may come later.
fn is_order_free() -> bool {
    let options = env::var_os("ASAN_OPTIONS").unwrap_or_default();
    options.to_string_lossy().contains("verify_asan_link_order=0")
}

/// Whether the file changes the user, the group or the capabilities.
fn has_other_rights(path: &Path, file: &Metadata) -> bool {
    let capable = CString::new(path.as_os_str().as_bytes()).is_ok_and(|path| {
        let name = c"security.capability".as_ptr();
        // SAFETY: two C strings; without a place the call returns the size.
        unsafe { libc::getxattr(path.as_ptr(), name, std::ptr::null_mut(), 0) > 0 }
    });
    // SAFETY: both have no preconditions.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    file.mode() & libc::S_ISUID != 0 && file.uid() != user
        || file.mode() & libc::S_ISGID != 0 && file.mode() & 0o010 != 0 && file.gid() != group
        || user != 0 && capable
}
