//! Assumptions of the rest of the crate about the ABI, checked by the compiler.

use static_assertions::{assert_eq_align, assert_eq_size, const_assert, const_assert_eq};

use crate::sys::*;

// The wrappers and the resolver move function pointers through `Option` and `*mut c_void`.
assert_eq_size!(PFN_cuEventRecord_v2000, *mut core::ffi::c_void);
assert_eq_size!(<PFN_cuEventRecord_v2000 as EntryPointType>::Pointer, PFN_cuEventRecord_v2000);
// The driver writes handles through `CUevent *`, and the wrappers compare them as addresses.
assert_eq_size!(CUevent, CUstream, CUcontext, usize);
assert_eq_align!(CUevent, usize);
// C's `int` and `unsigned int`.
assert_eq_size!(CUresult, CUdevice, u32);
assert_eq_align!(CUresult, u32);
assert_eq_size!(CUdeviceptr, u64);
// The IPC handles travel by value and are 64 bytes without alignment.
assert_eq_size!(CUipcEventHandle, CUipcMemHandle, [u8; 64]);
assert_eq_align!(CUipcEventHandle, CUipcMemHandle, u8);
assert_eq_size!(CUuuid, [u8; 16]);
// `record` and its siblings compare with zero.
const_assert_eq!(CUresult::CUDA_SUCCESS.0, 0);
// `EventFlags` flips one bit on the way to the driver.
const_assert_eq!(CU_EVENT_DISABLE_TIMING, 2);
const_assert_eq!(CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS, 7);
// `Function` is two bytes, which keeps `Error` at sixteen, and most of them are for functions that
// are not in the table.
const_assert!(ENTRY_POINTS.len() < 4096);
assert_eq_size!(Function, u16);
// The driver writes whole resources: 144 bytes since CUDA 12.4, also in drivers older than 13.1.
// The count of multiprocessors has always been the first field of its kind.
#[cfg(target_pointer_width = "64")]
assert_eq_size!(CUdevResource, [u8; 144]);
const_assert_eq!(core::mem::offset_of!(CUdevResource, u), 96);
const_assert_eq!(core::mem::offset_of!(CUdevSmResource, smCount), 0);
// A timeline's value is the first field in either array of parameters, and reserved fields are
// zero.
#[cfg(target_pointer_width = "64")]
assert_eq_size!(CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC, [u8; 96]);
#[cfg(target_pointer_width = "64")]
assert_eq_size!(
    CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS,
    CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS,
    [u8; 144]
);
#[cfg(target_pointer_width = "64")]
assert_eq_size!(CUDA_EXTERNAL_MEMORY_HANDLE_DESC, [u8; 104]);
#[cfg(target_pointer_width = "64")]
assert_eq_size!(CUDA_EXTERNAL_MEMORY_BUFFER_DESC, [u8; 88]);
