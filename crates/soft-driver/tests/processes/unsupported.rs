//! What is not supported: what is printed when it is called.

#![cfg(target_os = "linux")]

use cuda_events::capture::{Capture, CaptureMode};
use cuda_events::sys::*;
use cuda_events::{Context, Device, Stream, StreamOptions};
use cuda_events_test_support::shared_library;

use crate::shared::{load, run};

/// A call that is not supported says so by name, once, however often it is called, and before
/// `cuInit` too.
#[test]
fn an_unsupported_function_is_reported_once() {
    let errors = run("inner_unsupported", "version=13.1");
    let printed: Vec<&str> = errors
        .lines()
        .filter_map(|line| line.strip_prefix("cuda-soft-driver: "))
        .filter(|line| line.contains("not supported"))
        .collect();
    assert_eq!(
        printed,
        [
            "cuGetExportTable is not supported: programs of the CUDA runtime (PyTorch, CuPy) \
             cannot run here",
            "cuModuleGetTexRef is not supported: it returns CUDA_ERROR_NOT_SUPPORTED",
            "cuLaunchGrid is not supported: it returns CUDA_ERROR_NOT_SUPPORTED",
            "cuCheckpointProcessLock is not supported: it returns CUDA_ERROR_NOT_SUPPORTED",
            "CU_STREAM_MEM_OP_ATOMIC_REDUCTION is not supported: it returns \
             CUDA_ERROR_NOT_SUPPORTED",
            "an attribute of cuLaunchKernelEx with an effect is not supported: it returns \
             CUDA_ERROR_NOT_SUPPORTED",
            "cuMemAllocAsync in a capture is not supported: it returns CUDA_ERROR_NOT_SUPPORTED",
            "cuMemPoolCreate is not supported: it returns CUDA_ERROR_NOT_SUPPORTED",
        ],
        "{errors}"
    );
}

#[test]
#[ignore = "another process, which the tests start: cargo test -p cuda-soft-driver --test \
    processes"]
fn inner_unsupported() {
    let path = std::ffi::CString::new(shared_library().to_str().unwrap()).unwrap();
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
    assert!(!handle.is_null());
    let call = |name: &std::ffi::CStr| {
        let found = unsafe { libc::dlsym(handle, name.as_ptr()) };
        assert!(!found.is_null(), "{name:?}");
        type Anything = unsafe extern "C" fn(usize, usize) -> u32;
        let nothing = 0;
        let place = std::ptr::from_ref(&nothing).addr();
        unsafe { std::mem::transmute::<*mut libc::c_void, Anything>(found)(place, place) }
    };
    assert_ne!(call(c"cuGetExportTable"), 0);
    assert_eq!(unsafe { (load().unwrap().symbols().cuInit)(0) }.0, 0);
    let names =
        [c"cuGetExportTable", c"cuModuleGetTexRef", c"cuLaunchGrid", c"cuCheckpointProcessLock"];
    for _ in 0..3 {
        for name in names {
            assert_ne!(call(name), 0);
        }
    }
    let context = Context::primary(Device::new(load().unwrap(), 0).unwrap()).unwrap();
    let stream = Stream::new(&context, StreamOptions::new()).unwrap();
    let batch = load().unwrap().symbols().cuStreamBatchMemOp_v2.unwrap();
    let mut reduction = CUstreamBatchMemOpParams {
        atomicReduction: CUstreamMemOpAtomicReductionParams {
            operation: CUstreamBatchMemOpType::CU_STREAM_MEM_OP_ATOMIC_REDUCTION,
            flags: 0,
            reductionOp: CUstreamAtomicReductionOpType::CU_STREAM_ATOMIC_REDUCTION_OP_ADD,
            dataType: CUstreamAtomicReductionDataType::CU_STREAM_ATOMIC_REDUCTION_UNSIGNED_32,
            address: 0,
            value: 1,
            alias: 0,
        },
    };
    for _ in 0..2 {
        let code = unsafe { batch(stream.as_raw(), 1, &mut reduction, 0) };
        assert_eq!(code, CUresult::CUDA_ERROR_NOT_SUPPORTED);
    }
    // An event that the launch would record is such an attribute.
    #[repr(C)]
    struct Config {
        sizes: [u32; 7],
        stream: CUstream,
        attributes: *const [u64; 9],
        count: u32,
    }
    let attribute = [7; 9];
    let config =
        Config { sizes: [1; 7], stream: stream.as_raw(), attributes: &attribute, count: 1 };
    let _current = context.make_current().unwrap();
    for _ in 0..2 {
        type Launch = unsafe extern "C" fn(*const Config, usize, usize, usize) -> CUresult;
        let code = unsafe {
            let launch = libc::dlsym(handle, c"cuLaunchKernelEx".as_ptr());
            std::mem::transmute::<*mut libc::c_void, Launch>(launch)(&config, 0, 0, 0)
        };
        assert_eq!(code, CUresult::CUDA_ERROR_NOT_SUPPORTED);
    }
    // What is supported in other uses.
    type Alloc = unsafe extern "C" fn(*mut CUdeviceptr, usize, CUstream) -> CUresult;
    type Create = unsafe extern "C" fn(*mut *mut libc::c_void, *const u32) -> CUresult;
    let find = |name: &std::ffi::CStr| unsafe { libc::dlsym(handle, name.as_ptr()) };
    let (alloc, create): (Alloc, Create) = unsafe {
        let [alloc, create] = [c"cuMemAllocAsync", c"cuMemPoolCreate"].map(find);
        (
            std::mem::transmute::<*mut libc::c_void, Alloc>(alloc),
            std::mem::transmute::<*mut libc::c_void, Create>(create),
        )
    };
    let capture = unsafe { Capture::begin(&stream, CaptureMode::Relaxed) }.unwrap();
    // `CUmemPoolProps`: pinned memory of device 0, to be shared by handles of another system.
    let props: [u32; 22] = std::array::from_fn(|at| [1, 2, 1].get(at).copied().unwrap_or(0));
    for _ in 0..2 {
        let (mut address, mut pool) = (0, std::ptr::null_mut());
        let code = unsafe { alloc(&mut address, 64, stream.as_raw()) };
        assert_eq!(code, CUresult::CUDA_ERROR_NOT_SUPPORTED);
        let code = unsafe { create(&mut pool, props.as_ptr()) };
        assert_eq!(code, CUresult::CUDA_ERROR_NOT_SUPPORTED);
    }
    drop(capture);
}
