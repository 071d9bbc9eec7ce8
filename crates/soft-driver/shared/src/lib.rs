//! The software CUDA driver as a shared library: the driver's exported names, with one software
//! driver.
//!
//! The environment variable `CUDA_SOFT_DRIVER` configures it when the first function is called; see
//! `cuda_soft_driver::Builder::from_text` for the settings.

#![allow(non_snake_case, missing_docs, clippy::missing_safety_doc)]
// What the exports jump with. There are CUDA drivers for these alone.
#![cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]

use core::ffi::{c_char, c_int, c_void};

use cuda_soft_driver::abi::*;
use cuda_soft_driver::exports::{Address, COUNT, Id, Slot, addresses};
use cuda_soft_driver::{
    access_shared_library, alias_shared_library, busy_shared_library,
    external_semaphore_shared_library, for_each_export, hand_shared_library,
    name_stream_shared_library, saw_shared_library, signal_external_semaphore_shared_library,
    start_shared_library,
};

/// Where each export jumps to, in the order of the list.
static FUNCTIONS: [Address; COUNT] = addresses::<Library>();

/// The machine of this library.
struct Library;

impl Slot for Library {
    fn slot() -> usize {
        start_shared_library(exported);
        0
    }
}

/// Jumps to the function at a place of the list, with all arguments as they are.
#[cfg(target_arch = "x86_64")]
macro_rules! jump {
    ($place:expr) => {
        core::arch::naked_asm!(
            "jmp qword ptr [rip + {functions} + 8 * {place}]",
            functions = sym FUNCTIONS,
            place = const $place,
        )
    };
}

#[cfg(target_arch = "aarch64")]
macro_rules! jump {
    ($place:expr) => {
        core::arch::naked_asm!(
            "adrp x16, {functions} + 8 * {place}",
            "ldr x16, [x16, :lo12:{functions} + 8 * {place}]",
            "br x16",
            functions = sym FUNCTIONS,
            place = const $place,
        )
    };
}

macro_rules! function {
    ($name:ident) => {
        /// # Safety
        ///
        /// The arguments must be valid as the driver's C declaration demands.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            jump!(Id::$name.place())
        }
    };
}

macro_rules! export {
    ($($name:ident $($version:literal)?),*) => {
        $(function!($name);)*

        /// The addresses of the exports, in the order of the list.
        fn exported() -> Vec<usize> {
            vec![$($name as *const () as usize),*]
        }
    };
}

for_each_export!(export);

/// Executes a text command; see `SoftDriver::control`.
///
/// # Safety
///
/// `command` must be a C string, and `answer` NULL or a place for `room` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuda_soft_driver_control(
    command: *const c_char,
    answer: *mut c_char,
    room: usize,
) -> c_int {
    start_shared_library(exported);
    // SAFETY: the caller's promise is the same.
    unsafe { cuda_soft_driver::control_shared_library(command, answer, room) }
}

/// Reports to the order checker that work submitted to a stream now, such as a kernel, reads these
/// bytes; see `SoftDriver::reads`.
///
/// # Safety
///
/// No call is unsafe: no pointer is dereferenced.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuda_soft_driver_reads(
    stream: CUstream,
    address: CUdeviceptr,
    bytes: usize,
) -> CUresult {
    start_shared_library(exported);
    access_shared_library(Some(stream), address, bytes, false)
}

/// Reports bytes that the work writes; see `SoftDriver::writes`.
///
/// # Safety
///
/// As for `cuda_soft_driver_reads`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuda_soft_driver_writes(
    stream: CUstream,
    address: CUdeviceptr,
    bytes: usize,
) -> CUresult {
    start_shared_library(exported);
    access_shared_library(Some(stream), address, bytes, true)
}

/// Reports to the order checker that the host itself reads these bytes of pinned memory; see
/// `SoftDriver::host_reads`.
///
/// # Safety
///
/// As for `cuda_soft_driver_reads`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuda_soft_driver_host_reads(
    memory: *const c_void,
    bytes: usize,
) -> CUresult {
    start_shared_library(exported);
    access_shared_library(None, memory.addr() as CUdeviceptr, bytes, false)
}

/// Reports bytes that the host writes; see `SoftDriver::host_writes`.
///
/// # Safety
///
/// As for `cuda_soft_driver_reads`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuda_soft_driver_host_writes(
    memory: *const c_void,
    bytes: usize,
) -> CUresult {
    start_shared_library(exported);
    access_shared_library(None, memory.addr() as CUdeviceptr, bytes, true)
}

/// Reports to the order checker that the calling thread hands over; see `SoftDriver::hand_over`.
///
/// # Safety
///
/// As for `cuda_soft_driver_reads`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuda_soft_driver_hand_over(token: u64) -> CUresult {
    start_shared_library(exported);
    hand_shared_library(token, true)
}

/// Reports to the order checker that the calling thread takes over; see `SoftDriver::take_over`.
///
/// # Safety
///
/// As for `cuda_soft_driver_reads`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuda_soft_driver_take_over(token: u64) -> CUresult {
    start_shared_library(exported);
    hand_shared_library(token, false)
}

/// Reports to the order checker that the host has read this value of 4 or 8 bytes, which a stream
/// writes; see `SoftDriver::host_saw`.
///
/// # Safety
///
/// As for `cuda_soft_driver_reads`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuda_soft_driver_host_saw(
    memory: *const c_void,
    value: u64,
    bytes: usize,
) -> CUresult {
    start_shared_library(exported);
    saw_shared_library(memory.addr() as CUdeviceptr, value, bytes)
}

/// Gives a stream a name for the order checker's reports; see `SoftDriver::name_stream`.
///
/// # Safety
///
/// `name` must be NULL or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuda_soft_driver_name_stream(
    stream: CUstream,
    name: *const c_char,
) -> CUresult {
    start_shared_library(exported);
    // SAFETY: the caller's promise is the same.
    unsafe { name_stream_shared_library(stream, name) }
}

/// Keeps a stream busy for a duration; see `SoftDriver::busy`.
///
/// # Safety
///
/// As for `cuda_soft_driver_reads`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuda_soft_driver_busy(stream: CUstream, nanoseconds: u64) -> CUresult {
    start_shared_library(exported);
    busy_shared_library(stream, nanoseconds)
}

mod kernels;

/// Makes an external semaphore, a timeline or a binary one, and returns its descriptor, or -1. An
/// import takes ownership of the descriptor; see `ExternalSemaphore`.
///
/// # Safety
///
/// There is nothing that a caller could do wrong.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuda_soft_driver_external_semaphore(timeline: c_int) -> c_int {
    external_semaphore_shared_library(timeline != 0)
}

/// Signals an external semaphore, as a graphics queue would; see `ExternalSemaphore::signal`. It
/// returns `CUDA_ERROR_INVALID_VALUE` where that method panics, and for any other descriptor.
///
/// # Safety
///
/// There is nothing that a caller could do wrong.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuda_soft_driver_signal_external_semaphore(
    descriptor: c_int,
    value: u64,
) -> CUresult {
    signal_external_semaphore_shared_library(descriptor, value)
}

/// Has streams access this pinned memory by a mapping of their own, as a device does, so that the
/// program may protect its pages. It returns 0 if that is not possible: memory that was registered
/// has to be a shared mapping.
///
/// # Safety
///
/// If the driver has allocated the memory, then nobody has written it yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuda_soft_driver_alias(memory: *const c_void) -> c_int {
    alias_shared_library(memory.addr()).into()
}

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod load {
    //! What happens when the library is loaded, and when the process ends.

    extern "C" fn at_exit() {
        cuda_soft_driver::end_shared_library();
    }

    extern "C" fn at_load() {
        cuda_order_check_engine::hide::hide(&cuda_soft_driver::shared_library_lacks());
        // Registered while the library is loaded, as the real driver does: exit handlers that the
        // program registered before run after it and find the driver gone; later ones run before.
        // SAFETY: the handler is part of this library, which nothing may unload once it was used.
        unsafe { libc::atexit(at_exit) };
    }

    #[used]
    #[unsafe(link_section = ".init_array")]
    static AT_LOAD: extern "C" fn() = at_load;
}
