//! Modules and libraries.

use crate::common;

use std::ffi::{CStr, c_void};
use std::ptr::null_mut;

use common::*;
use cuda_events::sys::*;
use cuda_soft_driver::SoftDriver;

use super::{
    Handle, LAUNCH_FAILED, NON_BLOCKING, NOT_FOUND, WORDS, contents, find, function, launch,
    launch_with, load, memory, register_add,
};

/// Without a kernel only images are loaded; with one, an unknown name is not found, and the driver's
/// log lists what there is.
#[test]
fn names_that_are_not_registered() {
    let raw = Raw::new();
    let mut module = null_mut();
    let image = c"anything".as_ptr().cast();
    let code = call!(raw, cuModuleLoadData(&mut module => *mut Handle, image => *const c_void));
    let reads_images = cfg!(all(feature = "images", target_os = "linux"));
    let refused = if reads_images { CUresult::CUDA_ERROR_INVALID_IMAGE.0 } else { NOT_SUPPORTED };
    assert_eq!(code, refused);
    register_add(&raw.soft);
    raw.soft.kernel("scale", |_| ());
    let module = load(&raw);
    assert_eq!(find(&raw, module, c"ad"), Err(NOT_FOUND));
    let log = || {
        let (mut text, mut size) = (vec![0_u8; 4096], 4096_usize);
        let code = call!(raw, cuLogsDumpToMemory(null_mut() => *mut u32,
            text.as_mut_ptr() => *mut u8, &mut size => *mut usize, 0 => u32));
        assert_eq!(code, OK);
        String::from_utf8_lossy(&text[..size]).into_owned()
    };
    let text = log();
    assert!(text.contains("no kernel \"ad\" is registered"), "{text}");
    assert!(text.contains("\"add\", \"scale\""), "{text}");
    assert_eq!(find(&raw, module, c"add"), find(&raw, module, c"add"));

    // A file that is not there.
    let missing = c"/nowhere/kernels.cubin".as_ptr().cast();
    let mut other = null_mut();
    let code = call!(raw, cuModuleLoad(&mut other => *mut Handle, missing => *const c_void));
    assert_eq!(code, CUresult::CUDA_ERROR_FILE_NOT_FOUND.0);
    let code = call!(raw, cuModuleLoadData(&mut other => *mut Handle, null_mut() => Handle));
    assert_eq!(code, INVALID_VALUE);
    let add = find(&raw, module, c"add").unwrap();
    assert_eq!(call!(raw, cuModuleUnload(module => Handle)), OK);
    assert_eq!(launch(&raw, add, legacy(), 0, 0), INVALID_HANDLE);
    assert_eq!(call!(raw, cuModuleUnload(module => Handle)), INVALID_HANDLE);
}

/// The codes are those of an H200.
#[test]
fn modules_end_with_their_context() {
    let raw = Raw::new();
    register_add(&raw.soft);
    raw.soft.kernel("fails", |_| panic!("as planned"));
    let unload = |module: Handle| call!(raw, cuModuleUnload(module => Handle));

    let mut context = null_mut();
    assert_eq!(unsafe { (raw.cuCtxCreate_v2)(&mut context, 0, 0) }.0, OK);
    let (module, stream) = (load(&raw), raw.stream(NON_BLOCKING));
    let (add, fails) = (find(&raw, module, c"add").unwrap(), find(&raw, module, c"fails").unwrap());

    // What would wait ends a capture.
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL;
    assert_eq!(unsafe { (raw.cuStreamBeginCapture_v2)(stream, mode) }.0, OK);
    load(&raw);
    assert_eq!(unload(module), CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED.0);
    let ended = unsafe { (raw.cuStreamEndCapture)(stream, &mut null_mut()) };
    assert_eq!(ended, CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);

    let one = ([1; 3], [1; 3], 0);
    assert_eq!(launch_with(&raw, fails, stream, one, null_mut(), null_mut()), OK);
    assert_eq!(unsafe { (raw.cuStreamSynchronize)(stream) }.0, LAUNCH_FAILED);
    assert_eq!(unload(module), LAUNCH_FAILED);
    assert_eq!(find(&raw, module, c"add"), Err(LAUNCH_FAILED));
    assert_eq!(launch(&raw, add, stream, 0, 0), LAUNCH_FAILED);

    let _ = unsafe { (raw.cuCtxDestroy_v2)(context) };
    assert_eq!(find(&raw, module, c"add"), Err(INVALID_HANDLE));
    assert_eq!(launch(&raw, add, legacy(), 0, 0), INVALID_HANDLE);
}

#[test]
fn libraries_are_of_every_context() {
    let raw = Raw::with(SoftDriver::builder().devices(2));
    register_add(&raw.soft);
    let (mut library, mut kernel) = (null_mut(), null_mut());
    let nothing = null_mut::<c_void>;
    let code = call!(raw, cuLibraryLoadData(&mut library => *mut Handle,
        c"anything".as_ptr().cast() => *const c_void, nothing() => Handle, nothing() => Handle,
        0 => u32, nothing() => Handle, nothing() => Handle, 0 => u32));
    assert_eq!(code, OK);
    let code = call!(raw, cuLibraryGetKernel(&mut kernel => *mut Handle, library => Handle,
        c"add".as_ptr() => *const std::ffi::c_char));
    assert_eq!(code, OK);
    let (mut module, mut own) = (null_mut(), null_mut());
    let code = call!(raw, cuLibraryGetModule(&mut module => *mut Handle, library => Handle));
    assert_eq!((code, find(&raw, module, c"add").is_ok()), (OK, true));
    let code = call!(raw, cuKernelGetFunction(&mut own => *mut Handle, kernel => Handle));
    assert_eq!(code, OK);
    let mut name = std::ptr::null();
    let code = call!(raw, cuKernelGetName(&mut name => *mut *const std::ffi::c_char,
        kernel => Handle));
    assert_eq!((code, unsafe { CStr::from_ptr(name) }), (OK, c"add"));

    let of_first = function(&raw, c"add");
    let (address, first) = (memory(&raw), raw.stream(NON_BLOCKING));
    assert_eq!(launch(&raw, own, first, address, 1), OK);
    raw.sync(first);
    let other = raw.retain(1);
    raw.set_current(other);
    let (there, second) = (memory(&raw), raw.stream(NON_BLOCKING));
    assert_eq!(launch(&raw, kernel, second, there, 2), OK);
    raw.sync(second);
    assert_eq!(contents(&raw, there), [3; WORDS]);
    // A module's function is one of its context alone.
    assert_eq!(launch(&raw, of_first, second, there, 2), INVALID_HANDLE);
    assert_eq!(call!(raw, cuLibraryUnload(library => Handle)), OK);
    assert_eq!(launch(&raw, kernel, second, there, 2), INVALID_HANDLE);
}
