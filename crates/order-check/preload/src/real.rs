//! The real library: found as the loader does, but for the stand-in itself.

use core::ffi::{CStr, c_void};
use std::ffi::CString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const NAME: &str = "libcuda.so.1";

/// The path of the real library. `own` is the stand-in's path; `CUDA_ORDER_CHECK_LIBRARY` names the
/// real one.
pub fn find(own: Option<&Path>) -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("CUDA_ORDER_CHECK_LIBRARY") {
        return Some(path.into());
    }
    let number = |path: &Path| std::fs::metadata(path).ok().map(|of| (of.dev(), of.ino()));
    let own = own.and_then(number);
    let path = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let named: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let usual = [
        "/usr/lib/x86_64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu",
        "/lib/x86_64-linux-gnu",
        "/usr/lib64",
        "/lib64",
        "/usr/lib",
        "/usr/lib/wsl/lib",
        "/usr/local/nvidia/lib64",
    ];
    let all = named.into_iter().chain(usual.map(PathBuf::from));
    all.map(|folder| folder.join(NAME))
        .find(|path| number(path).is_some_and(|number| Some(number) != own))
}

/// Opens a library, and returns a look-up of its functions.
pub fn open(path: &Path) -> Option<impl Fn(&CStr) -> *mut c_void + use<>> {
    use std::os::unix::ffi::OsStrExt;
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
