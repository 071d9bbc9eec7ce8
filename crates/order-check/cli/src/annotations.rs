//! What programs say by `cuda_order_check.h` and by NVTX: names of streams, accesses, regions.

#![allow(clippy::missing_safety_doc)]

use core::ffi::{CStr, c_char, c_int, c_uint, c_void};

use cuda_order_check_preload::{declare, flush, name_stream, pop_region, push_region};

/// A text of the program.
///
/// # Safety
///
/// NULL or a C string.
unsafe fn text(start: *const c_char) -> String {
    if start.is_null() {
        return String::new();
    }
    // SAFETY: as the caller says.
    unsafe { CStr::from_ptr(start) }.to_string_lossy().into_owned()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuda_order_check_name_stream(stream: usize, name: *const c_char) {
    // SAFETY: the header asks for a C string.
    name_stream(stream, &unsafe { text(name) });
}

#[unsafe(no_mangle)]
pub extern "C" fn cuda_order_check_reads(stream: usize, address: u64, bytes: usize) {
    declare("cuda_order_check_reads", Some(stream), address, bytes as u64, false);
}

#[unsafe(no_mangle)]
pub extern "C" fn cuda_order_check_writes(stream: usize, address: u64, bytes: usize) {
    declare("cuda_order_check_writes", Some(stream), address, bytes as u64, true);
}

#[unsafe(no_mangle)]
pub extern "C" fn cuda_order_check_host_reads(address: u64, bytes: usize) {
    declare("cuda_order_check_host_reads", None, address, bytes as u64, false);
}

#[unsafe(no_mangle)]
pub extern "C" fn cuda_order_check_host_writes(address: u64, bytes: usize) {
    declare("cuda_order_check_host_writes", None, address, bytes as u64, true);
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuda_order_check_push(name: *const c_char) {
    // SAFETY: the header asks for a C string.
    push_region(&unsafe { text(name) });
}

#[unsafe(no_mangle)]
pub extern "C" fn cuda_order_check_pop() {
    pop_region();
}

/// The pytest plugin calls this at the begin and after each test.
#[unsafe(no_mangle)]
pub extern "C" fn cuda_order_check_flush() {
    flush();
}

/// The first fields of NVTX's `nvtxEventAttributes_t`.
#[repr(C)]
struct Attributes {
    head: [u64; 4],
    /// 1 for a C string.
    message_type: u64,
    message: *const c_char,
}

unsafe extern "C" fn range_push(name: *const c_char) -> c_int {
    // SAFETY: NVTX asks for a C string.
    push_region(&unsafe { text(name) }) as c_int - 1
}

unsafe extern "C" fn range_push_with(attributes: *const Attributes) -> c_int {
    // SAFETY: NVTX asks for attributes.
    let name = unsafe { attributes.as_ref() }.filter(|given| given.message_type as u32 == 1);
    // SAFETY: then it is a C string.
    push_region(&name.map_or_else(String::new, |given| unsafe { text(given.message) })) as c_int - 1
}

extern "C" fn range_pop() -> c_int {
    pop_region() as c_int
}

/// NVTX's `NvtxExportTableCallbacks`.
#[repr(C)]
pub(crate) struct Callbacks {
    size: usize,
    /// Gives the places of a module's functions, and how many there are.
    table: Option<unsafe extern "C" fn(c_uint, *mut *mut *mut *const c_void, *mut c_uint) -> c_int>,
}

/// NVTX calls this in the library that `NVTX_INJECTION64_PATH` names.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn InitializeInjectionNvtx2(
    export_table: Option<unsafe extern "C" fn(u32) -> *const Callbacks>,
) -> c_int {
    let functions: [(c_uint, usize, *const c_void); 5] = [
        (1, 8, range_push_with as *const c_void),
        (1, 9, range_push as *const c_void),
        (1, 11, range_pop as *const c_void),
        // Streams of the driver and of the runtime, which are the same.
        (2, 5, cuda_order_check_name_stream as *const c_void),
        (4, 3, cuda_order_check_name_stream as *const c_void),
    ];
    // SAFETY: NVTX's own function; 1 is the table of callbacks.
    let Some(callbacks) = export_table.and_then(|table| unsafe { table(1).as_ref() }) else { return 0 };
    let Some(table) = callbacks.table else { return 0 };
    for (module, index, function) in functions {
        let (mut places, mut count) = (core::ptr::null_mut(), 0);
        // SAFETY: places for the results; a place of a function within the table takes one of its
        // type, as NVTX's list of indices has it.
        unsafe {
            if table(module, &mut places, &mut count) != 0
                && !places.is_null()
                && index < count as usize
                && let Some(place) = places.add(index).read().as_mut()
            {
                *place = function;
            }
        }
    }
    1
}
