//! The driver's functions, as the program would get them without this library.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

pub type Handle = *mut c_void;
pub type Code = c_int;

/// The real `dlsym`.
pub fn symbol(library: *mut c_void, name: &CStr) -> *mut c_void {
    type Dlsym = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;
    static REAL: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
    let mut real = REAL.load(Ordering::Relaxed);
    if real.is_null() {
        let version = c"GLIBC_2.2.5".as_ptr();
        // SAFETY: both are texts that end.
        real = unsafe { libc::dlvsym(libc::RTLD_NEXT, c"dlsym".as_ptr(), version) };
        if real.is_null() {
            return real;
        }
        REAL.store(real, Ordering::Relaxed);
    }
    // SAFETY: that is dlsym's type, and the library is what the caller gave or opened.
    unsafe { std::mem::transmute::<*mut c_void, Dlsym>(real)(library, name.as_ptr()) }
}

/// A function of the driver's library, if that is loaded.
pub fn real(name: &CStr) -> *mut c_void {
    static LIBRARY: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
    let mut library = LIBRARY.load(Ordering::Relaxed);
    if library.is_null() {
        // SAFETY: a text that ends. The library is loaded by the program itself.
        library = unsafe { libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW) };
        LIBRARY.store(library, Ordering::Relaxed);
    }
    if library.is_null() { library } else { symbol(library, name) }
}

macro_rules! table {
    ($($name:ident($($type:ty),*) = $symbol:literal;)*) => {
        /// What the experiment calls.
        pub struct Driver {
            $(pub $name: unsafe extern "C" fn($($type),*) -> Code,)*
        }

        pub fn driver() -> Option<&'static Driver> {
            static DRIVER: OnceLock<Option<Driver>> = OnceLock::new();
            DRIVER.get_or_init(|| Some(Driver {
                $($name: {
                    let found = real($symbol);
                    if found.is_null() {
                        return None;
                    }
                    // SAFETY: the driver's function of that name has that type.
                    unsafe {
                        std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($type),*) -> Code>(found)
                    }
                },)*
            })).as_ref()
        }
    };
}

table! {
    synchronize() = c"cuCtxSynchronize";
    context(*mut Handle) = c"cuCtxGetCurrent";
    device(*mut c_int) = c"cuCtxGetDevice";
    attribute(*mut c_int, c_int, c_int) = c"cuDeviceGetAttribute";
    allocate(*mut u64, usize) = c"cuMemAlloc_v2";
    free(u64) = c"cuMemFree_v2";
    range(*mut u64, *mut usize, u64) = c"cuMemGetAddressRange_v2";
    pointer(*mut c_void, c_int, u64) = c"cuPointerGetAttribute";
    copy(u64, u64, usize) = c"cuMemcpy";
    to_host(*mut c_void, u64, usize) = c"cuMemcpyDtoH_v2";
    set(u64, u8, usize) = c"cuMemsetD8_v2";
    load(*mut Handle, *const c_void) = c"cuModuleLoadData";
    function(*mut Handle, Handle, *const c_char) = c"cuModuleGetFunction";
    launch(
        Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle, *mut *mut c_void,
        *mut *mut c_void
    ) = c"cuLaunchKernel";
    kernel_name(*mut *const c_char, Handle) = c"cuKernelGetName";
    kernel_library(*mut Handle, Handle) = c"cuKernelGetLibrary";
    function_name(*mut *const c_char, Handle) = c"cuFuncGetName";
    function_module(*mut Handle, Handle) = c"cuFuncGetModule";
    library_module(*mut Handle, Handle) = c"cuLibraryGetModule";
}
