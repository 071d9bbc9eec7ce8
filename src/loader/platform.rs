//! What differs by platform: where the driver library may be, how to open one, and whether the environment is trusted.

#[cfg(any(unix, windows))]
pub(crate) use supported::open;
#[cfg(not(any(unix, windows)))]
pub(crate) use unsupported::open;

/// The names to try when the caller names no library, in order.
///
/// Never `libcuda.so`: that is the linker's name, and where a CUDA toolkit is installed it is often the stub library.
#[cfg(target_os = "linux")]
pub(crate) const CANDIDATES: &[&str] = &[
    // The display driver's own name, through the system's search.
    "libcuda.so.1",
    // Windows Subsystem for Linux keeps the driver in a folder that not every distribution lists in ld.so.conf.
    "/usr/lib/wsl/lib/libcuda.so.1",
];
/// The name to try when the caller names no library: the one in the Windows system folder.
#[cfg(windows)]
pub(crate) const CANDIDATES: &[&str] = &["nvcuda.dll"];
/// NVIDIA has no driver for this platform.
#[cfg(not(any(target_os = "linux", windows)))]
pub(crate) const CANDIDATES: &[&str] = &[];

#[cfg(any(unix, windows))]
#[allow(unsafe_code)]
mod supported {
    use core::ffi::{CStr, c_void};
    use std::error::Error;
    use std::path::{Path, PathBuf};

    /// An opened library. Nothing in this crate closes one that turned out to be a driver.
    pub(crate) struct Library(libloading::Library);

    /// Opens the library at `path`, or by name through the system's search; the error is the system's text.
    ///
    /// # Safety
    ///
    /// The library's initialisation code runs.
    pub(crate) unsafe fn open(path: &Path) -> Result<Library, String> {
        if path.as_os_str().is_empty() {
            // To dlopen it would name the program itself.
            return Err("the path is empty".to_owned());
        }
        #[cfg(unix)]
        // SAFETY: passed on to the caller. RTLD_NOW makes an unresolved symbol an error here and not a crash later.
        let library = unsafe {
            use libloading::os::unix;
            unix::Library::open(Some(path), unix::RTLD_NOW | unix::RTLD_LOCAL)
        };
        #[cfg(windows)]
        // SAFETY: passed on to the caller. A bare name is looked up in the system folder only, so that neither the
        // application's folder nor PATH can put another library in its place.
        let library = unsafe {
            use libloading::os::windows;
            let flags = if path.is_absolute() {
                windows::LOAD_WITH_ALTERED_SEARCH_PATH
            } else {
                windows::LOAD_LIBRARY_SEARCH_SYSTEM32
            };
            windows::Library::load_with_flags(path, flags)
        };
        library.map(|library| Library(library.into())).map_err(|error| text(&error))
    }

    /// libloading's own text says only which call failed; the system's reason is its source.
    fn text(error: &libloading::Error) -> String {
        error.source().map_or_else(|| error.to_string(), |source| source.to_string())
    }

    impl Library {
        /// The address of an exported symbol, or NULL.
        pub(crate) fn symbol(&self, name: &CStr) -> *mut c_void {
            // SAFETY: the symbol is only taken as an address here, and a `*mut c_void` may hold any address.
            let symbol = unsafe { self.0.get::<*mut c_void>(name) };
            symbol.map_or(core::ptr::null_mut(), |symbol| *symbol)
        }

        /// Keeps the library open for the rest of the process: the driver has threads and exit handlers of its own,
        /// and its function pointers are handed out as `'static`.
        pub(crate) fn leak(self) {
            core::mem::forget(self.0);
        }
    }

    /// The file that holds the code at `address`, where the platform can tell.
    #[cfg(unix)]
    pub(crate) fn file_of(address: *mut c_void) -> Option<PathBuf> {
        use core::ffi::{c_char, c_int};
        use std::os::unix::ffi::OsStrExt;

        /// POSIX's `Dl_info`.
        #[repr(C)]
        struct DlInfo {
            file: *const c_char,
            base: *mut c_void,
            symbol: *const c_char,
            symbol_address: *mut c_void,
        }

        unsafe extern "C" {
            fn dladdr(address: *const c_void, info: *mut DlInfo) -> c_int;
        }

        let null = core::ptr::null_mut::<c_void>();
        let mut info = DlInfo { file: null.cast(), base: null, symbol: null.cast(), symbol_address: null };
        // SAFETY: dladdr takes any address and fills the struct, which is laid out as POSIX says.
        let found = unsafe { dladdr(address, &mut info) };
        if found == 0 || info.file.is_null() {
            return None;
        }
        // SAFETY: on success the name is a C string that lives as long as the library is loaded.
        let file = unsafe { CStr::from_ptr(info.file) };
        let file = PathBuf::from(std::ffi::OsStr::from_bytes(file.to_bytes()));
        Some(file.canonicalize().unwrap_or(file))
    }

    /// The file that holds the code at `address`, where the platform can tell.
    #[cfg(windows)]
    pub(crate) fn file_of(_address: *mut c_void) -> Option<PathBuf> {
        None
    }
}

#[cfg(any(unix, windows))]
pub(crate) use supported::file_of;

#[cfg(not(any(unix, windows)))]
mod unsupported {
    use core::ffi::{CStr, c_void};
    use std::path::Path;

    /// There is nothing to open on this platform.
    pub(crate) enum Library {}

    #[allow(unsafe_code)]
    pub(crate) unsafe fn open(_path: &Path) -> Result<Library, String> {
        Err("this platform has no dynamic libraries that a CUDA driver could be in".to_owned())
    }

    impl Library {
        pub(crate) fn symbol(&self, _name: &CStr) -> *mut c_void {
            match *self {}
        }

        pub(crate) fn leak(self) {
            match self {}
        }
    }
}

/// No file to name.
#[cfg(not(any(unix, windows)))]
pub(crate) fn file_of(_address: *mut core::ffi::c_void) -> Option<std::path::PathBuf> {
    None
}

/// Whether the process has more rights than whoever set its environment (set-user-ID, file capabilities, elevation).
#[cfg(any(target_os = "linux", target_os = "android"))]
#[allow(unsafe_code)]
pub(crate) fn privileged() -> bool {
    use core::ffi::c_ulong;
    const AT_SECURE: c_ulong = 23;
    unsafe extern "C" {
        fn getauxval(kind: c_ulong) -> c_ulong;
    }
    // SAFETY: the declaration is the C library's; it reads the vector that the kernel gave this process.
    unsafe { getauxval(AT_SECURE) != 0 }
}

/// Whether the process has more rights than whoever set its environment (set-user-ID, file capabilities, elevation).
#[cfg(windows)]
#[allow(unsafe_code)]
pub(crate) fn privileged() -> bool {
    use core::ffi::c_void;
    const TOKEN_QUERY: u32 = 8;
    const TOKEN_ELEVATION: u32 = 20;
    #[link(name = "kernel32", kind = "raw-dylib")]
    unsafe extern "system" {
        fn GetCurrentProcess() -> *mut c_void;
        fn CloseHandle(handle: *mut c_void) -> i32;
    }
    #[link(name = "advapi32", kind = "raw-dylib")]
    unsafe extern "system" {
        fn OpenProcessToken(process: *mut c_void, access: u32, token: *mut *mut c_void) -> i32;
        fn GetTokenInformation(token: *mut c_void, class: u32, out: *mut c_void, size: u32, needed: *mut u32) -> i32;
    }
    let mut token = core::ptr::null_mut();
    // SAFETY: the declarations are those of the Windows SDK; the process handle is a constant that needs no closing.
    if unsafe { OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &mut token) } == 0 {
        return true;
    }
    let (mut elevated, mut needed) = (1_u32, 0_u32);
    // SAFETY: TokenElevation fills one 32-bit word, which is what is passed, with its size; the token is open.
    let known = unsafe { GetTokenInformation(token, TOKEN_ELEVATION, (&raw mut elevated).cast(), 4, &mut needed) };
    // SAFETY: the token was opened above and is closed once.
    unsafe { CloseHandle(token) };
    known == 0 || elevated != 0
}

/// Where nothing can be said, the environment is not trusted.
#[cfg(not(any(target_os = "linux", target_os = "android", windows)))]
pub(crate) fn privileged() -> bool {
    true
}
