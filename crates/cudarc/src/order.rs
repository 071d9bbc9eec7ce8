//! What kernels access, for the order checker.

use core::ffi::{CStr, c_int, c_void};
use core::mem::transmute;
use std::sync::OnceLock;

use cudarc::driver::{CudaStream, DevicePtr, DevicePtrMut, sys};

use crate::exported;

/// Tells the order checker that work which is submitted to the stream now, such as a kernel, reads
/// the slice.
///
/// The order checker is in the driver library: the software driver with `order=report`, or
/// `cuda-order-check run`. With any other library this function does nothing.
///
/// Like a launch of cudarc, this function first makes the stream wait for the writes that cudarc
/// has tracked, and records the read for later writes. So with cudarc's tracking on, the checker
/// finds nothing between cudarc's streams.
pub fn declare_reads<T>(stream: &CudaStream, slice: &impl DevicePtr<T>) {
    let Some(checker) = checker() else { return };
    let (address, _tracked) = slice.device_ptr(stream);
    checker.declare(&checker.reads, stream, address, slice.num_bytes());
}

/// Like [`declare_reads`], for a slice that the work writes.
pub fn declare_writes<T>(stream: &CudaStream, slice: &mut impl DevicePtrMut<T>) {
    let Some(checker) = checker() else { return };
    let bytes = slice.num_bytes();
    let (address, _tracked) = slice.device_ptr_mut(stream);
    checker.declare(&checker.writes, stream, address, bytes);
}

struct Checker {
    reads: Function,
    writes: Function,
}

enum Function {
    InFront(InFront),
    Within(Within),
}

/// A function of the checker in front of the driver.
type InFront = unsafe extern "C" fn(sys::CUstream, u64, usize);
/// The same function of the software driver.
type Within = unsafe extern "C" fn(sys::CUstream, u64, usize) -> c_int;

impl Checker {
    fn declare(&self, function: &Function, stream: &CudaStream, address: u64, bytes: usize) {
        let stream = stream.cu_stream();
        match function {
            // SAFETY: the function takes a stream's handle and a range, and reads no memory.
            Function::InFront(call) => unsafe { call(stream, address, bytes) },
            // SAFETY: as above. Its code says that the stream accepts no work, as the next call of
            // the driver does.
            Function::Within(call) => drop(unsafe { call(stream, address, bytes) }),
        }
    }
}

fn checker() -> Option<&'static Checker> {
    static CHECKER: OnceLock<Option<Checker>> = OnceLock::new();
    CHECKER.get_or_init(find).as_ref()
}

fn find() -> Option<Checker> {
    let find = |name: &CStr| Some(exported(name)).filter(|address| !address.is_null());
    if let (Some(reads), Some(writes)) =
        (find(c"cuda_order_check_reads"), find(c"cuda_order_check_writes"))
    {
        // SAFETY: what `cuda-order-check` exports under this name has this type.
        let typed = |it| Function::InFront(unsafe { transmute::<*mut c_void, InFront>(it) });
        return Some(Checker { reads: typed(reads), writes: typed(writes) });
    }
    let (reads, writes) = (find(c"cuda_soft_driver_reads")?, find(c"cuda_soft_driver_writes")?);
    // SAFETY: what the software driver exports under this name has this type.
    let typed = |it| Function::Within(unsafe { transmute::<*mut c_void, Within>(it) });
    Some(Checker { reads: typed(reads), writes: typed(writes) })
}
