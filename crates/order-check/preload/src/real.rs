//! The real library: found as the loader does, but for the stand-in itself.

use core::ffi::{CStr, c_void};
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const NAME: &str = "libcuda.so.1";

/// The path of the real library: that of the settings, or the first that the loader would take and
/// that is not `own`, the stand-in.
pub fn find(own: &Path, settings: &crate::Settings) -> Option<PathBuf> {
    if let Some(path) = &settings.library {
        return Some(path.clone());
    }
    let number = |path: &Path| std::fs::metadata(path).ok().map(|of| (of.dev(), of.ino()));
    let own = number(own);
    let path = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let named: Vec<PathBuf> =
        std::env::split_paths(&path).map(|folder| folder.join(NAME)).collect();
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
    let all = named.into_iter().chain(cached(&cache)).chain(usual);
    let mut all = all.filter(|path| number(path).is_some_and(|number| Some(number) != own));
    all.find(|path| !is_of_other_machine(path))
}

/// Whether this is a library for another kind of processor, which the loader passes over.
fn is_of_other_machine(path: &Path) -> bool {
    use std::io::Read as _;
    let mut begin = [0; 20];
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut begin));
    // 64 bits, and x86-64.
    read.is_ok() && begin.starts_with(b"\x7fELF") && (begin[4], begin[18]) != (2, 62)
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

/// Opens a library, and returns a look-up of its functions.
pub fn open(path: &Path) -> Option<impl Fn(&CStr) -> *mut c_void + use<>> {
    let path = CString::new(path.as_os_str().as_bytes()).ok()?;
    // SAFETY: a C string. The library's constructors are the driver's own.
    let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if library.is_null() {
        return None;
    }
    let library = library.expose_provenance();
    // SAFETY: a library that is never closed, and a C string.
    Some(move |name: &CStr| unsafe {
        libc::dlsym(core::ptr::with_exposed_provenance_mut(library), name.as_ptr())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
