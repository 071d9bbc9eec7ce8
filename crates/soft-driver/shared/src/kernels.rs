//! The C functions with which a program registers kernels of the software driver.

use core::ffi::{c_char, c_void};

use cuda_soft_driver::abi::{CUdeviceptr, CUresult};
use cuda_soft_driver::{
    KernelInC, LaunchInC, kernel_copies_shared_library, kernel_declares_shared_library,
    kernel_shared_library, start_shared_library,
};

use super::exported;

/// Registers a kernel, with the size of each parameter and, for the order checker, a second
/// function that declares what a launch reads and writes. NULL as `run` removes the kernel.
/// See `SoftDriver::kernel`.
///
/// # Safety
///
/// `name` must be NULL or a C string, and `sizes` point to `count` sizes. The functions must
/// be valid, with `user`, until the kernel is removed or replaced and its launches are done.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuda_soft_driver_kernel(
    name: *const c_char,
    sizes: *const usize,
    count: usize,
    run: Option<KernelInC>,
    accesses: Option<KernelInC>,
    user: *mut c_void,
) -> CUresult {
    start_shared_library(exported);
    // SAFETY: the caller's promise is the same.
    unsafe { kernel_shared_library(name, sizes, count, run, accesses, user) }
}

/// Reads memory of the driver in a kernel.
///
/// # Safety
///
/// `launch` must be what the kernel got, in this call of it, and `to` have room for `bytes`
/// bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuda_soft_driver_kernel_load(
    launch: *const LaunchInC,
    address: CUdeviceptr,
    to: *mut c_void,
    bytes: usize,
) -> CUresult {
    // SAFETY: the caller's promise is the same.
    unsafe { kernel_copies_shared_library(launch, address, to, bytes, false) }
}

/// Writes memory of the driver in a kernel.
///
/// # Safety
///
/// `launch` must be what the kernel got, in this call of it, and `from` have `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuda_soft_driver_kernel_store(
    launch: *const LaunchInC,
    address: CUdeviceptr,
    from: *const c_void,
    bytes: usize,
) -> CUresult {
    // SAFETY: the caller's promise is the same, and nothing is written to `from`.
    unsafe { kernel_copies_shared_library(launch, address, from.cast_mut(), bytes, true) }
}

/// Declares in `accesses` that the launch reads these bytes.
///
/// # Safety
///
/// `launch` must be what the function got, in this call of it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuda_soft_driver_kernel_reads(
    launch: *const LaunchInC,
    address: CUdeviceptr,
    bytes: usize,
) -> CUresult {
    // SAFETY: the caller's promise is the same.
    unsafe { kernel_declares_shared_library(launch, address, bytes, false) }
}

/// Declares in `accesses` that the launch writes these bytes.
///
/// # Safety
///
/// As for `cuda_soft_driver_kernel_reads`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuda_soft_driver_kernel_writes(
    launch: *const LaunchInC,
    address: CUdeviceptr,
    bytes: usize,
) -> CUresult {
    // SAFETY: the caller's promise is the same.
    unsafe { kernel_declares_shared_library(launch, address, bytes, true) }
}
