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
            fn GetModuleHandleExW(flags: u32, of: *const c_void, module: *mut *mut c_void) -> i32;
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

/// No file to name.
#[cfg(not(any(unix, windows)))]
pub(crate) fn file_of(_address: *mut core::ffi::c_void) -> Option<std::path::PathBuf> {
    None
}

/// Whether there may be code at the address of an exported symbol.
///
/// There is none if the address is in a part of a loaded library that is not executable, such as
/// data. An address outside of all libraries belongs to a thread-local variable, is a plain number,
/// or belongs to code that was made at run time (some emulators replace a library like this); then
/// the memory's rights decide. With glibc, data that a linker put beside code is detected too. NULL
/// is not an address and passes.
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
#[allow(unsafe_code)]
pub(crate) fn is_code(address: *mut core::ffi::c_void) -> bool {
    use core::ffi::{c_char, c_int, c_void};

    const PT_LOAD: u32 = 1;
    const PF_X: u32 = 1;

    /// ELF's `Elf64_Phdr`: one part of a library that is loaded.
    #[repr(C)]
    struct Part {
        kind: u32,
        flags: u32,
        offset: u64,
        address: u64,
        physical_address: u64,
        file_size: u64,
        memory_size: u64,
        alignment: u64,
    }

    /// The beginning of the C library's `dl_phdr_info`.
    #[repr(C)]
    struct Info {
        base: u64,
        name: *const c_char,
        parts: *const Part,
        count: u16,
    }

    type Visit = unsafe extern "C" fn(*const Info, usize, *mut c_void) -> c_int;
    unsafe extern "C" {
        fn dl_iterate_phdr(visit: Visit, data: *mut c_void) -> c_int;
    }

    /// Returns 0 to continue, 1 if the address was found and is executable, 2 if it was found and
    /// is not executable.
    unsafe extern "C" fn visit(info: *const Info, _size: usize, address: *mut c_void) -> c_int {
        // SAFETY: the C library passes a library's description, whose table has that many entries.
        let parts = unsafe {
            let info = &*info;
            let parts = if info.parts.is_null() {
                &[]
            } else {
                core::slice::from_raw_parts(info.parts, info.count.into())
            };
            parts.iter().map(|part| (info.base.wrapping_add(part.address), part))
        };
        for (start, part) in parts.filter(|(_, part)| part.kind == PT_LOAD) {
            if (address.addr() as u64).wrapping_sub(start) < part.memory_size {
                return if part.flags & PF_X != 0 { 1 } else { 2 };
            }
        }
        0
    }

    if address.is_null() {
        return true;
    }
    // SAFETY: the declarations are those of the C library and of ELF; `visit` takes any address and
    // does not unwind.
    match unsafe { dl_iterate_phdr(visit, address) } {
        0 => is_executable_memory(address.addr()),
        found => found == 1 && !is_object(address),
    }
}

/// Whether the library marks its symbol at exactly this address as data: some linkers put constants
/// beside code.
#[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]
#[allow(unsafe_code)]
fn is_object(address: *mut core::ffi::c_void) -> bool {
    use core::ffi::{c_char, c_int, c_void};
    use core::ptr::{null, null_mut};

    const RTLD_DL_SYMENT: c_int = 1;
    const STT_OBJECT: u8 = 1;

    /// The C library's `Dl_info`.
    #[repr(C)]
    struct Info {
        file: *const c_char,
        base: *mut c_void,
        symbol: *const c_char,
        symbol_address: *mut c_void,
    }

    /// ELF's `Elf64_Sym`.
    #[repr(C)]
    struct Symbol {
        name: u32,
        info: u8,
        other: u8,
        section: u16,
        value: u64,
        size: u64,
    }

    unsafe extern "C" {
        fn dladdr1(
            address: *const c_void,
            info: *mut Info,
            extra: *mut *const Symbol,
            what: c_int,
        ) -> c_int;
    }

    let mut info =
        Info { file: null(), base: null_mut(), symbol: null(), symbol_address: null_mut() };
    let mut symbol = null();
    // SAFETY: the declarations are those of glibc, which takes any address; with this option it
    // returns a symbol.
    let found = unsafe { dladdr1(address, &mut info, &mut symbol, RTLD_DL_SYMENT) } != 0;
    // SAFETY: NULL, or a symbol of a library that is loaded.
    let symbol = unsafe { symbol.as_ref() }.filter(|_| found && info.symbol_address == address);
    symbol.is_some_and(|symbol| symbol.info & 0xf == STT_OBJECT)
}

/// On other systems a symbol's kind is not available.
#[cfg(all(target_os = "linux", not(target_env = "gnu"), target_pointer_width = "64"))]
fn is_object(_address: *mut core::ffi::c_void) -> bool {
    false
}

/// Whether the process may execute the memory at the address. True if `/proc` cannot be read.
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
fn is_executable_memory(address: usize) -> bool {
    std::fs::read("/proc/self/maps").map_or(true, |maps| is_executable_in(&maps, address))
}

/// The same from the lines of that file, such as `7f00-7f20 r-xp 0 0:0 0 [name]`. The name may
/// contain any bytes.
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
fn is_executable_in(maps: &[u8], address: usize) -> bool {
    maps.split(|&byte| byte == b'\n').any(|line| {
        let mut fields = line
            .splitn(3, |&byte| byte == b' ')
            .map(|field| str::from_utf8(field).unwrap_or_default());
        let (range, rights) =
            (fields.next().unwrap_or_default(), fields.next().unwrap_or_default());
        let number = |digits| usize::from_str_radix(digits, 16).ok();
        let bounds = range.split_once('-').and_then(|(start, end)| number(start).zip(number(end)));
        rights.contains('x') && bounds.is_some_and(|(start, end)| (start..end).contains(&address))
    })
}

/// On other systems there is no check.
#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
pub(crate) fn is_code(_address: *mut core::ffi::c_void) -> bool {
    true
}

/// Whether the process has more rights than the user who set its environment (set-user-ID, file
/// capabilities, elevation).
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn privileged() -> bool {
    const AT_SECURE: core::ffi::c_ulong = 23;
    auxiliary(AT_SECURE) != 0
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
    let known = unsafe {
        GetTokenInformation(token, TOKEN_ELEVATION, (&raw mut elevated).cast(), 4, &mut needed)
    };
    // SAFETY: the token was opened above and is closed once.
    unsafe { CloseHandle(token) };
    known == 0 || elevated != 0
}

/// If the rights cannot be detected, the environment is not trusted.
#[cfg(not(any(target_os = "linux", target_os = "android", windows)))]
pub(crate) fn privileged() -> bool {
    true
}

#[cfg(all(test, target_os = "linux", target_pointer_width = "64"))]
mod tests {
    use core::cell::Cell;
    use core::ffi::c_void;
    use core::ptr::{null_mut, without_provenance_mut};
    use core::sync::atomic::AtomicU32;

    use super::*;

    #[test]
    fn what_a_symbol_may_be_an_address_of() {
        static DATA: AtomicU32 = AtomicU32::new(1);
        thread_local! {
            static OWN: Cell<u32> = const { Cell::new(1) };
        }
        let function: fn() -> bool = || true;
        assert!(is_code(function as *mut c_void));
        assert!(is_code(null_mut()), "no symbol");
        assert!(is_executable_memory(function as usize));
        assert!(!is_executable_memory((&raw const DATA).addr()));
        for (data, what) in [
            (DATA.as_ptr().cast(), "a variable"),
            (OWN.with(Cell::as_ptr).cast(), "a thread-local variable, in no library"),
            (without_provenance_mut(0x1234), "a number, at which there is no memory"),
        ] {
            assert!(!is_code(data), "{what}");
        }
    }

    /// The library beside this program has such a constant.
    #[cfg(target_env = "gnu")]
    #[test]
    fn a_constant_beside_code_is_none() {
        let library =
            std::env::current_exe().unwrap().with_file_name("libcuda_events_fake_library.so");
        // SAFETY: without a certain variable its initialisation code does nothing.
        #[allow(unsafe_code)]
        let library = unsafe { open(&library) }.unwrap();
        let constant = library.symbol(c"fake_constant_beside_code");
        assert!(!constant.is_null() && is_object(constant));
        assert!(!is_code(constant));
    }

    #[test]
    fn memory_of_no_library_tells() {
        let maps = b"1000-2000 r-xp 00000000 08:01 7 /a b\xff\n2000-3000 rw-p 00000000 00:00 0 \
            [x-xp]\n3000-3800 rwxp 0 0:0 0\n";
        for (address, executable) in
            [(0xfff, false), (0x1000, true), (0x1fff, true), (0x2000, false), (0x37ff, true)]
        {
            assert_eq!(is_executable_in(maps, address), executable, "{address:#x}");
        }
        assert!(!is_executable_in(maps, 0x3800));
        assert!(!is_executable_in(b"", 0x1000));
    }
}
