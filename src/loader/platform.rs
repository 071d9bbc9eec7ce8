//! The differences between platforms: where the driver library may be, how to open it, and whether
//! the environment is trusted.

#[cfg(any(unix, windows))]
pub(crate) use dynamic::{file_of, open};
#[cfg(not(any(unix, windows)))]
pub(crate) use unsupported::open;

/// The names to try when the caller names no library, in order.
///
/// Never `libcuda.so`: that is the linker's name, and where a CUDA toolkit is installed it is often
/// the stub library.
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
pub(crate) const CANDIDATES: &[&str] = &[
    // The display driver's own name, through the system's search.
    "libcuda.so.1",
    // Windows Subsystem for Linux keeps the driver in a folder that not every distribution lists in
    // ld.so.conf.
    "/usr/lib/wsl/lib/libcuda.so.1",
];
/// The name to try when the caller names no library: the one in the Windows system folder.
#[cfg(all(windows, target_pointer_width = "64"))]
pub(crate) const CANDIDATES: &[&str] = &["nvcuda.dll"];
/// NVIDIA has no driver for this platform.
#[cfg(not(all(any(target_os = "linux", windows), target_pointer_width = "64")))]
pub(crate) const CANDIDATES: &[&str] = &[];

/// The reason why [`CANDIDATES`] is empty.
#[cfg(target_pointer_width = "64")]
pub(crate) const NO_DRIVER: &str = "NVIDIA has no driver for this platform";
/// The reason why [`CANDIDATES`] is empty.
#[cfg(not(target_pointer_width = "64"))]
pub(crate) const NO_DRIVER: &str = "this is a 32-bit program, and CUDA drivers serve only 64-bit \
    ones; build it for a 64-bit target";

/// Whether a driver can be used at all. The declarations are those of 64-bit targets. On other
/// targets `CUdeviceptr` has 32 bits, and on Windows the calls have another convention, so even an
/// existing library must not be called.
pub(crate) const fn supported() -> bool {
    cfg!(target_pointer_width = "64")
}

/// Whether this program is statically linked. With musl it cannot open a library. With glibc it
/// can, but then it has a second C library, and most libraries crash.
#[cfg(all(target_os = "linux", target_feature = "crt-static"))]
pub(crate) fn is_static() -> bool {
    // The address of the program's dynamic loader, if there is one: this code may also be in a
    // library that a dynamic program has opened.
    const AT_BASE: core::ffi::c_ulong = 7;
    auxiliary(AT_BASE) == 0
}

/// Whether this program is statically linked, where that matters.
#[cfg(not(all(target_os = "linux", target_feature = "crt-static")))]
pub(crate) const fn is_static() -> bool {
    false
}

#[cfg(any(unix, windows))]
#[allow(unsafe_code)]
mod dynamic {
    use core::ffi::{CStr, c_void};
    use std::error::Error;
    use std::path::{Path, PathBuf};

    /// An opened library. Nothing in this crate closes one that turned out to be a driver.
    pub(crate) struct Library(libloading::Library);

    /// Opens the library at `path`, or by name through the system's search; the error is the
    /// system's text.
    ///
    /// # Safety
    ///
    /// The library's initialisation code runs.
    pub(crate) unsafe fn open(path: &Path) -> Result<Library, String> {
        #[cfg(unix)]
        // SAFETY: passed on to the caller. RTLD_NOW makes an unresolved symbol an error here and
        // not a crash later.
        let library = unsafe {
            use libloading::os::unix;
            unix::Library::open(Some(path), unix::RTLD_NOW | unix::RTLD_LOCAL)
        };
        #[cfg(windows)]
        // SAFETY: passed on to the caller. A bare name is looked up only in the system folder, so a
        // library in the application's folder or in PATH cannot replace it.
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

    /// libloading's own text only names the call that failed; the system's reason is its source.
    fn text(error: &libloading::Error) -> String {
        error.source().map_or_else(|| error.to_string(), |source| source.to_string())
    }

    impl Library {
        /// The address of an exported symbol, or NULL.
        pub(crate) fn symbol(&self, name: &CStr) -> *mut c_void {
            // SAFETY: the symbol is used only as an address here, and a `*mut c_void` may hold any
            // address.
            let symbol = unsafe { self.0.get::<*mut c_void>(name) };
            symbol.map_or(core::ptr::null_mut(), |symbol| *symbol)
        }

        /// Keeps the library open for the rest of the process: the driver has its own threads and
        /// exit handlers, and its function pointers are given out as `'static`.
        pub(crate) fn leak(self) {
            core::mem::forget(self.0);
        }
    }

    /// The file that contains the code at `address`, if the platform can find it.
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
        let mut info =
            DlInfo { file: null.cast(), base: null, symbol: null.cast(), symbol_address: null };
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

    /// The file that contains the code at `address`, if the platform can find it.
    #[cfg(windows)]
    pub(crate) fn file_of(address: *mut c_void) -> Option<PathBuf> {
        use std::os::windows::ffi::OsStringExt;

        /// Get the handle of the module at this address, without counting a reference.
        const FROM_ADDRESS: u32 = 4 | 2;
        /// The longest possible path.
        const LONGEST: usize = 1 << 15;

        #[link(name = "kernel32", kind = "raw-dylib")]
        unsafe extern "system" {
            fn GetModuleHandleExW(
                flags: u32,
                address: *const c_void,
                module: *mut *mut c_void,
            ) -> i32;
            fn GetModuleFileNameW(module: *mut c_void, name: *mut u16, room: u32) -> u32;
        }

        let mut module = core::ptr::null_mut();
        // SAFETY: with these flags it takes any address, and fills the handle.
        if unsafe { GetModuleHandleExW(FROM_ADDRESS, address, &mut module) } == 0 {
            return None;
        }
        let mut name = vec![0; LONGEST];
        // SAFETY: the library stays loaded for the call, and the buffer has the length that is
        // passed.
        let length = unsafe { GetModuleFileNameW(module, name.as_mut_ptr(), LONGEST as u32) };
        let name = name.get(..length as usize).filter(|name| !name.is_empty())?;
        Some(PathBuf::from(std::ffi::OsString::from_wide(name)))
    }
}

#[cfg(not(any(unix, windows)))]
mod unsupported {
    use core::ffi::{CStr, c_void};
    use std::path::Path;

    /// This platform has no libraries to open.
    pub(crate) enum Library {}

    #[allow(unsafe_code)]
    pub(crate) unsafe fn open(_path: &Path) -> Result<Library, String> {
        Err("this platform has no dynamic libraries, so it has no CUDA driver".to_owned())
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

/// Returns none: this platform names no file of an address.
#[cfg(not(any(unix, windows)))]
pub(crate) fn file_of(_address: *mut core::ffi::c_void) -> Option<std::path::PathBuf> {
    None
}

/// Whether the process has more rights than the user who set its environment (set-user-ID, file
/// capabilities, elevation).
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn privileged() -> bool {
    const AT_SECURE: core::ffi::c_ulong = 23;
    auxiliary(AT_SECURE) != 0
}

/// Whether the process was started with this value of an environment variable. Code of the process
/// can change what [`var_os`](std::env::var_os) returns, without `unsafe` before edition 2024. It
/// does not change what the kernel keeps of the start.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn started_with(variable: &str, value: &std::ffi::OsStr) -> bool {
    let Ok(environment) = std::fs::read("/proc/self/environ") else { return false };
    let mut values = environment.split(|&byte| byte == 0).filter_map(|entry| {
        entry.strip_prefix(variable.as_bytes()).and_then(|rest| rest.strip_prefix(b"="))
    });
    // The first counts, as for getenv.
    values.next() == Some(value.as_encoded_bytes())
}

/// Whether the process was started with this value of the variable. Windows keeps no environment of
/// the start, so [`at_start`] does.
#[cfg(windows)]
pub(crate) fn started_with(variable: &str, value: &std::ffi::OsStr) -> bool {
    variable == super::DRIVER_VARIABLE && at_start::value() == Some(value)
}

/// What [`DRIVER_VARIABLE`](super::DRIVER_VARIABLE) was before any code of this program ran that
/// could change it without vouching for that.
#[cfg(windows)]
#[allow(unsafe_code)]
mod at_start {
    use std::ffi::{OsStr, OsString};
    use std::sync::OnceLock;

    static VALUE: OnceLock<Option<OsString>> = OnceLock::new();

    extern "C" fn keep() {
        _ = VALUE.set(std::env::var_os(crate::loader::DRIVER_VARIABLE));
    }

    // SAFETY: in this section the C runtime of a program or library expects pointers to functions
    // of this type. It calls each once, before `main` or while the library is loaded.
    #[used]
    #[unsafe(link_section = ".CRT$XCU")]
    static KEEP: extern "C" fn() = keep;

    /// None also if no C runtime called the functions of the section: then each value is refused.
    pub(super) fn value() -> Option<&'static OsStr> {
        VALUE.get()?.as_deref()
    }
}

/// The environment is not trusted on this platform: see [`privileged`].
#[cfg(not(any(target_os = "linux", target_os = "android", windows)))]
pub(crate) fn started_with(_variable: &str, _value: &std::ffi::OsStr) -> bool {
    false
}

/// A word of the auxiliary vector, which the kernel gives each program; 0 if it is not there.
#[cfg(any(target_os = "linux", target_os = "android"))]
#[allow(unsafe_code)]
fn auxiliary(kind: core::ffi::c_ulong) -> core::ffi::c_ulong {
    use core::ffi::c_ulong;
    unsafe extern "C" {
        fn getauxval(kind: c_ulong) -> c_ulong;
    }
    // SAFETY: the declaration is the C library's, which takes any number.
    unsafe { getauxval(kind) }
}

/// The reason why the environment is not trusted if [`privileged`] returns true.
pub(crate) const WHY_PRIVILEGED: &str = if cfg!(any(target_os = "linux", target_os = "android")) {
    "this program has more rights than the user who started it (set-user-ID, set-group-ID, file \
     capabilities)"
} else if cfg!(windows) {
    "this process is elevated (it runs as administrator), or that cannot be detected"
} else {
    "on this platform it cannot be detected whether this process has more rights than the user who \
     started it"
};

/// Whether the process has more rights than the user who set its environment (set-user-ID, file
/// capabilities, elevation).
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
        fn GetTokenInformation(
            token: *mut c_void,
            class: u32,
            out: *mut c_void,
            size: u32,
            needed: *mut u32,
        ) -> i32;
    }
    let mut token = core::ptr::null_mut();
    // SAFETY: the declarations are those of the Windows SDK; the process handle is a constant that
    // needs no closing.
    if unsafe { OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &mut token) } == 0 {
        return true;
    }
    let (mut elevated, mut needed) = (1_u32, 0_u32);
    // SAFETY: TokenElevation fills one 32-bit word, and a place of that size is passed; the token
    // is open.
    let succeeded = unsafe {
        GetTokenInformation(token, TOKEN_ELEVATION, (&raw mut elevated).cast(), 4, &mut needed)
    };
    // SAFETY: the token was opened above and is closed once.
    unsafe { CloseHandle(token) };
    succeeded == 0 || elevated != 0
}

/// If the rights cannot be detected, the environment is not trusted.
#[cfg(not(any(target_os = "linux", target_os = "android", windows)))]
pub(crate) fn privileged() -> bool {
    true
}

#[cfg(all(test, windows))]
#[allow(unsafe_code)]
mod tests {
    use std::ffi::OsStr;
    use std::process::Command;

    use super::super::DRIVER_VARIABLE;
    use super::started_with;

    const NAME: &str = "loader::platform::tests::only_the_start_sets_the_variable";
    /// The value that the child is started with, or "none".
    const ROLE: &str = "A_TEST_STARTED_WITH";

    /// The emulator's processes are elevated, where the variable does not count at all, so this
    /// asks the function.
    #[test]
    fn only_the_start_sets_the_variable() {
        let Some(started) = std::env::var_os(ROLE) else {
            for started in ["none", "C:\\one\\nvcuda.dll", "C:\\\u{f6}\\nvcuda.dll"] {
                let mut child = Command::new(std::env::current_exe().expect("this program"));
                child.args(["--exact", NAME]).env(ROLE, started).env_remove(DRIVER_VARIABLE);
                if started != "none" {
                    child.env(DRIVER_VARIABLE, started);
                }
                let output = child.output().expect("the child runs");
                let said = String::from_utf8_lossy(&output.stdout);
                assert!(output.status.success() && said.contains("1 passed"), "{said}");
            }
            return;
        };
        let is_set = started != "none";
        assert_eq!(started_with(DRIVER_VARIABLE, &started), is_set);
        let changed = OsStr::new("C:\\two\\nvcuda.dll");
        // SAFETY: no other thread of this process reads or writes its environment.
        unsafe { std::env::set_var(DRIVER_VARIABLE, changed) };
        assert!(!started_with(DRIVER_VARIABLE, changed));
        assert_eq!(started_with(DRIVER_VARIABLE, &started), is_set);
    }
}
