//! The real library: found as the loader does, except for stand-ins.

use core::ffi::{CStr, c_void};
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::elf::Elf;

const NAME: &str = "libcuda.so.1";

/// What the stand-in exports, and no driver.
const MARKER: &CStr = c"cuda_order_check_name_stream";

/// The path of the real library: that of the settings, or the first that the loader would take.
/// Another stand-in is none, nor is the current folder, which an empty part of `LD_LIBRARY_PATH`
/// stands for: the program may have another one.
///
/// # Errors
///
/// One sentence, if there is none.
pub fn find(settings: &crate::Settings) -> Result<PathBuf, String> {
    if let Some(path) = &settings.library {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
        return match is_stand_in(&path) {
            true => Err(format!("{} is no driver, but the order checker", path.display())),
            false => Ok(path),
        };
    }
    let path = crate::settings::variable("LD_LIBRARY_PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).filter(|folder| !folder.as_os_str().is_empty());
    let named = folders.filter_map(|folder| std::path::absolute(folder.join(NAME)).ok());
    let named: Vec<PathBuf> = named.collect();
    let cache = std::fs::read("/etc/ld.so.cache").unwrap_or_default();
    let usual = [
        "/lib/x86_64-linux-gnu",
        "/usr/lib/x86_64-linux-gnu",
        "/lib64",
        "/usr/lib64",
        "/usr/lib",
        "/usr/lib/wsl/lib",
        "/usr/local/nvidia/lib64",
        "/run/opengl-driver/lib",
    ];
    let usual = usual.map(|folder| Path::new(folder).join(NAME));
    let mut all = named.into_iter().chain(cached(&cache)).chain(usual);
    let found = all.find(|path| path.is_file() && !is_of_other_machine(path) && !is_stand_in(path));
    found.ok_or_else(|| {
        let variable = crate::VARIABLE;
        format!(
            "there is no {NAME} here; --library, or {variable}=library=PATH, names one elsewhere; \
             without a GPU: cuda-soft-driver run -- cuda-order-check run -- PROGRAM"
        )
    })
}

/// Whether this is a library for another kind of processor, which the loader passes over.
fn is_of_other_machine(path: &Path) -> bool {
    Elf::open(path).is_some_and(|elf| !elf.is_for_this_machine)
}

/// Whether this file is the checker's own, or another version of it.
fn is_stand_in(path: &Path) -> bool {
    let marker = MARKER.to_str().unwrap_or_default();
    Elf::open(path).is_some_and(|elf| elf.has_name(marker))
}

/// The paths of the library in the loader's cache, for this kind of processor.
fn cached(cache: &[u8]) -> Vec<PathBuf> {
    const MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
    /// `FLAG_ELF_LIBC6 | FLAG_X8664_LIB64`
    const FLAGS: u32 = 0x303;
    // An older cache may stand before this one; the places of texts are counted from here.
    let begin = cache.windows(MAGIC.len()).position(|at| at == MAGIC);
    let Some(cache) = begin.and_then(|begin| cache.get(begin..)) else { return Vec::new() };
    let word = |at: usize| -> Option<u32> {
        Some(u32::from_le_bytes(cache.get(at..at.checked_add(4)?)?.try_into().ok()?))
    };
    let text = |at: u32| CStr::from_bytes_until_nul(cache.get(at as usize..)?).ok();
    let entry = |index: usize| {
        // After 48 bytes come entries of 24: the flags, and the places of the name and the path.
        let at = 48 + 24 * index;
        let (flags, name, path) = (word(at)?, text(word(at + 4)?)?, text(word(at + 8)?)?);
        let is_it = flags == FLAGS && name.to_bytes() == NAME.as_bytes();
        is_it.then(|| PathBuf::from(OsStr::from_bytes(path.to_bytes())))
    };
    let count = word(20).unwrap_or(0) as usize;
    (0..count.min(cache.len() / 24)).filter_map(entry).collect()
}

/// Opens a library, and returns a look-up of its functions. `None` also if the loader gives the
/// stand-in for it, which has the driver's name.
pub fn open(path: &Path) -> Option<impl Fn(&CStr) -> *mut c_void + use<>> {
    // The loader would wait for what writes into a pipe.
    if !path.is_file() {
        return None;
    }
    let path = CString::new(path.as_os_str().as_bytes()).ok()?;
    // Not `dlopen`: a stand-in has that function too, and gives itself for the driver.
    let flags = libc::RTLD_NOW | libc::RTLD_LOCAL;
    // SAFETY: a C string. The library's constructors are the driver's own.
    let library = unsafe { libc::dlmopen(libc::LM_ID_BASE, path.as_ptr(), flags) };
    if library.is_null() {
        return None;
    }
    let library = library.expose_provenance();
    // SAFETY: a library that is never closed, and a C string.
    let resolve = move |name: &CStr| unsafe {
        libc::dlsym(core::ptr::with_exposed_provenance_mut(library), name.as_ptr())
    };
    resolve(MARKER).is_null().then_some(resolve)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{cached, is_of_other_machine};

    #[test]
    fn libraries_of_other_machines_are_passed_over() {
        let own = std::env::current_exe().expect("it has a path");
        assert!(!is_of_other_machine(&own));
        let folder = std::env::temp_dir().join(format!("order-check-elf-{}", std::process::id()));
        std::fs::create_dir(&folder).expect("a new folder");
        let path = folder.join("libcuda.so.1");
        for (class, machine, other) in [(2, 62, false), (1, 3, true), (2, 183, true)] {
            let mut begin = [0; 64];
            begin[..5].copy_from_slice(&[0x7f, b'E', b'L', b'F', class]);
            begin[18] = machine;
            std::fs::write(&path, begin).expect("a new file");
            assert_eq!(is_of_other_machine(&path), other, "{class} {machine}");
        }
        std::fs::remove_dir_all(folder).expect("it was made here");
    }

    #[test]
    fn the_loaders_cache_is_read() {
        let mut cache = b"glibc-ld.so.cache1.1".to_vec();
        let texts = "libcuda.so.1\0/wrong/libcuda.so.1\0/right/libcuda.so.1\0";
        let begin = 48 + 3 * 24;
        let entries = [(0x303, 13, 13), (0x003, 0, 13), (0x303, 0, 33)];
        cache.extend(u32::to_le_bytes(entries.len() as u32));
        cache.resize(48, 0);
        for (flags, name, path) in entries {
            cache.extend([flags, begin + name, begin + path].map(u32::to_le_bytes).concat());
            cache.extend([0; 12]);
        }
        cache.extend(texts.as_bytes());
        assert_eq!(cached(&cache), [Path::new("/right/libcuda.so.1")]);
        // A damaged one is no worse than none.
        (0..cache.len()).for_each(|end| drop(cached(&cache[..end])));
        // This machine's own: whatever is there.
        cached(&std::fs::read("/etc/ld.so.cache").unwrap_or_default());
    }
}
