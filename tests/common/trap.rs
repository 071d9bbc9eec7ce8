//! A context that fails, and no other: by a kernel that traps, or as the software driver has it.

use std::ffi::{CStr, c_char, c_uint, c_void};
use std::mem::transmute;
use std::ptr::null_mut;

use cuda_events::sys::{CUresult, CUstream, Function};
use cuda_events::{Context, Driver, Stream, StreamOptions};
use cuda_soft_driver::{Fault, SoftDriver};

use crate::check;

/// What everything in the context answers from then on.
pub const FAILED: CUresult = CUresult::CUDA_ERROR_LAUNCH_FAILED;

const KERNELS: &CStr = c".version 6.0\n.target sm_50\n.address_size 64\n\
    .visible .entry empty()\n{\n    ret;\n}\n\
    .visible .entry broken()\n{\n    trap;\n}\n";

/// Breaks a context when it is sprung.
pub struct Trap<'a> {
    stream: Stream,
    soft: Option<&'a SoftDriver>,
    broken: *mut c_void,
}

impl<'a> Trap<'a> {
    /// Prepares it. On a real driver this may wait for work of the context, so hold no stream yet.
    pub fn set(context: &Context, soft: Option<&'a SoftDriver>) -> Self {
        let stream = Stream::new(context, StreamOptions::new()).expect("a stream");
        let broken = if soft.is_some() { null_mut() } else { load(&stream) };
        Self { stream, soft, broken }
    }

    /// Breaks the context. On a real driver it takes a moment.
    pub fn spring(&self) {
        let Some(soft) = self.soft else { return launch(&self.stream, self.broken) };
        let code = cuda_soft_driver::abi::CUresult(FAILED.0);
        soft.inject(Fault::on("cuStreamGetPriority").answer(code).fails_context().once());
        assert_eq!(self.stream.priority().map_err(|error| error.code()), Err(Some(FAILED)));
    }
}

fn entry(driver: Driver, name: &CStr) -> *mut c_void {
    let look_up = driver.symbols().cuGetProcAddress_v2.expect("a driver of CUDA 12.0");
    let mut found = null_mut();
    // SAFETY: a name, and a place for the address; the status may be NULL.
    let code = unsafe { look_up(name.as_ptr().cast(), &mut found, 12000, 0, null_mut()) };
    check(Function::cuGetProcAddress_v2, code);
    assert!(!found.is_null(), "{name:?} is not there");
    found
}

fn load(stream: &Stream) -> *mut c_void {
    type ModuleLoadData = unsafe extern "C" fn(*mut *mut c_void, *const c_void) -> CUresult;
    type ModuleGetFunction =
        unsafe extern "C" fn(*mut *mut c_void, *mut c_void, *const c_char) -> CUresult;
    let driver = stream.context().driver();
    let _current = stream.context().make_current().expect("the context");
    let (mut module, mut empty, mut broken) = (null_mut(), null_mut(), null_mut());
    // SAFETY: the types above are the driver's; places for the handles, and texts that end in NUL.
    unsafe {
        let load: ModuleLoadData = transmute(entry(driver, c"cuModuleLoadData"));
        let find: ModuleGetFunction = transmute(entry(driver, c"cuModuleGetFunction"));
        assert_eq!(load(&mut module, KERNELS.as_ptr().cast()), CUresult::CUDA_SUCCESS);
        assert_eq!(find(&mut empty, module, c"empty".as_ptr()), CUresult::CUDA_SUCCESS);
        assert_eq!(find(&mut broken, module, c"broken".as_ptr()), CUresult::CUDA_SUCCESS);
    }
    // The first launch in a context waits for other work.
    launch(stream, empty);
    stream.synchronize().expect("a kernel that does nothing");
    broken
}

fn launch(stream: &Stream, kernel: *mut c_void) {
    #[rustfmt::skip]
    type LaunchKernel = unsafe extern "C" fn(*mut c_void, c_uint, c_uint, c_uint, c_uint, c_uint,
        c_uint, c_uint, CUstream, *mut *mut c_void, *mut *mut c_void) -> CUresult;
    let _current = stream.context().make_current().expect("the context");
    let driver = stream.context().driver();
    // SAFETY: the type above is the driver's; a live function without arguments, a live stream.
    let code = unsafe {
        let launch: LaunchKernel = transmute(entry(driver, c"cuLaunchKernel"));
        launch(kernel, 1, 1, 1, 1, 1, 1, 0, stream.as_raw(), null_mut(), null_mut())
    };
    assert_eq!(code, CUresult::CUDA_SUCCESS, "cuLaunchKernel");
}
