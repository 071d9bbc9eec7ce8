//! A library that looks like a CUDA driver and is none: what it exports under the name of a driver
//! function is data, and its initialisation code calls back into the program that opens it.

#![cfg(target_os = "linux")]
#![allow(non_upper_case_globals)]

use std::ffi::{CStr, c_char, c_int};
use std::sync::atomic::AtomicI32;

/// Data that can be written, so that no linker puts it beside code.
// SAFETY: nothing else of this library or of the program has the name; that it is no function is
// what it is for.
#[unsafe(no_mangle)]
pub static cuDriverGetVersion: AtomicI32 = AtomicI32::new(12080);

/// A constant that the linker puts beside code, as some do with all constants.
// SAFETY: nothing else has the name; a linker joins all sections of such a name to the code, which
// nothing runs into.
#[unsafe(no_mangle)]
#[unsafe(link_section = ".text.constant")]
pub static fake_constant_beside_code: c_int = 12080;

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
