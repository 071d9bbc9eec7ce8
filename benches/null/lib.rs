//! The null driver: a CUDA driver whose functions return success at once, so that only the cost of calling is left.
//!
//! What a function gives through a pointer is plausible and always the same. One context is current, for all threads, so
//! that asking for it is one load. Nothing is checked.

#![allow(non_snake_case, clippy::missing_safety_doc)]

use core::ffi::{c_char, c_int, c_uint, c_void};
use core::sync::atomic::{AtomicUsize, Ordering};

type Handle = usize;

const CONTEXT: Handle = 0x10_0000;
const EVENT: Handle = 0x20_0000;
const STREAM: Handle = 0x30_0000;
const UUID: [u8; 16] = *b"the null driver!";

static CURRENT: AtomicUsize = AtomicUsize::new(0);
static BEFORE: AtomicUsize = AtomicUsize::new(0);

/// A parameter of the driver's calls that nothing looks at. Integers and pointers are passed alike in the C ABI of the
/// 64-bit targets that this runs on.
type Any = usize;

/// Functions that give something: each `*name = value` is one store through a parameter.
macro_rules! gives {
    ($($name:ident($($parameter:ident: $type:ty),*) { $(*$out:ident = $value:expr;)* })*) => {
        $(
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($parameter: $type),*) -> c_int {
                $(let _ = $parameter;)*
                $(
                    // SAFETY: the driver's contract: the caller passes a place for the result.
                    unsafe { *$out = $value };
                )*
                0
            }
        )*
    };
}

/// Functions that only succeed.
macro_rules! succeed {
    ($($name:ident)*) => {
        $(
            #[unsafe(no_mangle)]
            pub extern "C" fn $name() -> c_int {
                0
            }
        )*
    };
}

gives! {
    cuDriverGetVersion(version: *mut c_int) { *version = 13000; }
    cuDeviceGet(device: *mut c_int, _ordinal: c_int) { *device = 0; }
    cuDeviceGetCount(count: *mut c_int) { *count = 1; }
    cuDeviceGetName(name: *mut [u8; 5], _length: c_int, _device: c_int) { *name = *b"null\0"; }
    cuDeviceGetAttribute(value: *mut c_int, _attribute: c_int, _device: c_int) { *value = 1; }
    cuDeviceTotalMem_v2(bytes: *mut usize, _device: c_int) { *bytes = 1 << 30; }
    cuDeviceGetUuid(uuid: *mut [u8; 16], _device: c_int) { *uuid = UUID; }
    cuDeviceGetUuid_v2(uuid: *mut [u8; 16], _device: c_int) { *uuid = UUID; }
    cuDevicePrimaryCtxRetain(context: *mut Handle, _device: c_int) { *context = CONTEXT; }
    cuDevicePrimaryCtxGetState(_device: c_int, flags: *mut c_uint, active: *mut c_int) { *flags = 0; *active = 1; }
    cuCtxGetCurrent(context: *mut Handle) { *context = CURRENT.load(Ordering::Relaxed); }
    cuCtxGetDevice(device: *mut c_int) { *device = 0; }
    cuCtxGetDevice_v2(device: *mut c_int, _context: Any) { *device = 0; }
    cuCtxGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int) { *least = 0; *greatest = -5; }
    cuEventCreate(event: *mut Handle, _flags: c_uint) { *event = EVENT; }
    cuEventElapsedTime(milliseconds: *mut f32, _start: Any, _end: Any) { *milliseconds = 1.0; }
    cuEventElapsedTime_v2(milliseconds: *mut f32, _start: Any, _end: Any) { *milliseconds = 1.0; }
    cuIpcGetEventHandle(handle: *mut [u8; 64], _event: Any) { *handle = [7; 64]; }
    cuIpcOpenEventHandle(event: *mut Handle) { *event = EVENT; }
    cuStreamCreate(stream: *mut Handle, _flags: c_uint) { *stream = STREAM; }
    cuStreamCreateWithPriority(stream: *mut Handle, _flags: c_uint, _priority: c_int) { *stream = STREAM; }
    cuStreamGetPriority(_stream: Any, priority: *mut c_int) { *priority = 0; }
    cuStreamGetFlags(_stream: Any, flags: *mut c_uint) { *flags = 1; }
    cuStreamGetId(_stream: Any, id: *mut u64) { *id = 1; }
    cuStreamGetCtx(_stream: Any, context: *mut Handle) { *context = CONTEXT; }
    cuGetErrorName(_code: c_int, text: *mut *const c_char) { *text = c"null".as_ptr(); }
    cuGetErrorString(_code: c_int, text: *mut *const c_char) { *text = c"null".as_ptr(); }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxSetCurrent(context: Handle) -> c_int {
    CURRENT.store(context, Ordering::Relaxed);
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxPushCurrent_v2(context: Handle) -> c_int {
    BEFORE.store(CURRENT.load(Ordering::Relaxed), Ordering::Relaxed);
    CURRENT.store(context, Ordering::Relaxed);
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuCtxPopCurrent_v2(context: *mut Handle) -> c_int {
    // SAFETY: the driver's contract: the caller passes a place for the result.
    unsafe { *context = CURRENT.load(Ordering::Relaxed) };
    CURRENT.store(BEFORE.load(Ordering::Relaxed), Ordering::Relaxed);
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuLaunchHostFunc(
    _stream: Any,
    function: unsafe extern "C" fn(*mut c_void),
    data: *mut c_void,
) -> c_int {
    // SAFETY: the driver's contract: the caller passes a function that takes `data`.
    unsafe { function(data) };
    0
}

succeed! {
    cuInit cuDevicePrimaryCtxRelease_v2
    cuCtxCreate_v2 cuCtxCreate_v4 cuCtxDestroy_v2 cuCtxSynchronize cuCtxSynchronize_v2 cuCtxGetFlags cuCtxGetId
    cuCtxFromGreenCtx cuCtxRecordEvent cuCtxWaitEvent
    cuGreenCtxRecordEvent cuGreenCtxWaitEvent cuGreenCtxStreamCreate
    cuEventDestroy_v2 cuEventRecord cuEventRecordWithFlags cuEventQuery cuEventSynchronize
    cuStreamDestroy_v2 cuStreamQuery cuStreamSynchronize cuStreamWaitEvent
    cuStreamGetCtx_v2 cuStreamGetGreenCtx cuStreamGetDevice cuStreamGetDevResource
    cuStreamGetAttribute cuStreamSetAttribute cuStreamCopyAttributes cuStreamAddCallback cuLaunchHostFunc_v2
    cuStreamAttachMemAsync
    cuStreamBeginCapture_v2 cuStreamBeginCaptureToGraph cuStreamBeginRecaptureToGraph cuStreamBeginCaptureToCig
    cuStreamEndCapture cuStreamEndCaptureToCig cuStreamIsCapturing
    cuStreamGetCaptureInfo cuStreamGetCaptureInfo_v2 cuStreamGetCaptureInfo_v3
    cuStreamUpdateCaptureDependencies cuStreamUpdateCaptureDependencies_v2 cuThreadExchangeStreamCaptureMode
    cuStreamWaitValue32 cuStreamWaitValue32_v2 cuStreamWaitValue64 cuStreamWaitValue64_v2
    cuStreamWriteValue32 cuStreamWriteValue32_v2 cuStreamWriteValue64 cuStreamWriteValue64_v2
    cuStreamBatchMemOp cuStreamBatchMemOp_v2
    cuMemGetInfo_v2 cuMemAlloc_v2 cuMemFree_v2 cuMemHostAlloc cuMemFreeHost cuMemHostGetDevicePointer_v2
    cuMemsetD8Async cuMemsetD32Async cuMemcpyHtoDAsync_v2 cuMemcpyDtoHAsync_v2 cuMemcpyDtoDAsync_v2
    cuGraphCreate cuGraphInstantiate_v2 cuGraphInstantiateWithFlags cuGraphLaunch cuGraphDestroy cuGraphExecDestroy
    cuGraphAddEventRecordNode cuGraphAddEventWaitNode
    cuGraphEventRecordNodeGetEvent cuGraphEventRecordNodeSetEvent
    cuGraphEventWaitNodeGetEvent cuGraphEventWaitNodeSetEvent
    cuGraphExecEventRecordNodeSetEvent cuGraphExecEventWaitNodeSetEvent
}
