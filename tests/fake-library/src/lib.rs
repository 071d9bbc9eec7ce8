//! A library that is no usable CUDA driver: it has a version and nothing else, and its
//! initialisation code calls back into the program that opens it.

#![cfg(target_os = "linux")]

use std::ffi::{CStr, c_char, c_int};

#[used]
// SAFETY: the system calls each address in this section when it opens the library, with arguments
// that `initialise` does not look at.
#[unsafe(link_section = ".init_array")]
static INITIALISE: extern "C" fn() = initialise;

/// Calls the function whose address is in the environment, if there is one.
extern "C" fn initialise() {
    unsafe extern "C" {
        fn getenv(name: *const c_char) -> *const c_char;
        fn strtoull(text: *const c_char, end: *mut *mut c_char, base: c_int) -> usize;
    }
    const VARIABLE: &CStr = c"CUDA_EVENTS_TEST_INITIALISE";
    // SAFETY: C strings; nobody changes the environment while a test opens this library.
    let address = unsafe {
        let text = getenv(VARIABLE.as_ptr());
        if text.is_null() { 0 } else { strtoull(text, std::ptr::null_mut(), 16) }
    };
    // SAFETY: zero is `None`; otherwise the test that set the variable put the address of a
    // function of this type there.
    let call = unsafe { std::mem::transmute::<usize, Option<extern "C" fn()>>(address) };
    if let Some(call) = call {
        call();
    }
}

/// CUDA 10.0.
///
/// # Safety
///
/// `version` is a place for a number.
#[allow(non_snake_case, reason = "the driver's name")]
// SAFETY: nothing else in the programs that open this library has the name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDriverGetVersion(version: *mut c_int) -> c_int {
    // SAFETY: as the caller says.
    unsafe { version.write(10_000) };
    0
}
