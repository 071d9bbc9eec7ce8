//! A driver whose calls are written down, by the thread that makes them.

use std::cell::RefCell;
use std::ffi::{CStr, c_void};

use cuda_events::sys::*;
use cuda_events::{Driver, LoadOptions};

/// A call that was made: the entry point, and its arguments as numbers.
pub type Made = (Function, Vec<u64>);

thread_local! {
    static REAL: RefCell<Option<Driver>> = const { RefCell::new(None) };
    static CALLS: RefCell<Vec<Made>> = const { RefCell::new(Vec::new()) };
    static FAIL: RefCell<Option<(Function, CUresult)>> = const { RefCell::new(None) };
}

/// A driver that counts what this thread calls, in front of `real`.
pub fn counting(real: Driver) -> Driver {
    REAL.set(Some(real));
    // SAFETY: each address is either one of `real`'s table or a function below of the same type.
    unsafe { Driver::from_resolver(&mut |name| resolve(real, name), &LoadOptions::new()) }.expect("the same table")
}

/// The calls that `work` makes on this thread through counting drivers.
pub fn calls<T>(work: impl FnOnce() -> T) -> (T, Vec<Function>) {
    let (result, made) = calls_with_arguments(work);
    (result, made.into_iter().map(|(function, _)| function).collect())
}

/// As `calls`, with what the driver was given: an integer, or the address that a handle or pointer is.
pub fn calls_with_arguments<T>(work: impl FnOnce() -> T) -> (T, Vec<Made>) {
    CALLS.take();
    let result = work();
    (result, CALLS.take())
}

/// Lets the next call of `function` on this thread fail with `code`, without doing its work.
pub fn fail_next(function: Function, code: CUresult) {
    FAIL.set(Some((function, code)));
}

fn resolve(real: Driver, name: &CStr) -> *mut c_void {
    // Without cuGetProcAddress every entry point is asked for by its exported name.
    if name.to_bytes().starts_with(b"cuGetProcAddress") {
        return std::ptr::null_mut();
    }
    let Some(entry) = ENTRY_POINTS.iter().find(|entry| entry.name == name) else {
        return std::ptr::null_mut();
    };
    let address = real.symbols().address(entry.function);
    if address.is_null() { address } else { counted(entry.function).unwrap_or(address) }
}

/// An argument as a number: its first eight bytes, which of all but interprocess handles is the whole.
fn word<T: Copy>(argument: &T) -> u64 {
    let mut word = [0; 8];
    let length = size_of::<T>().min(word.len());
    // SAFETY: `length` bytes are within both; arguments are integers, pointers and the handle, which have no padding.
    unsafe { std::ptr::copy_nonoverlapping(std::ptr::from_ref(argument).cast(), word.as_mut_ptr(), length) };
    u64::from_le_bytes(word)
}

fn enter(function: Function, arguments: &[u64]) -> Result<&'static Symbols, CUresult> {
    CALLS.with_borrow_mut(|calls| calls.push((function, arguments.to_vec())));
    if let Some((_, code)) = FAIL.with_borrow_mut(|fail| fail.take_if(|(failing, _)| *failing == function)) {
        return Err(code);
    }
    Ok(REAL.with_borrow(|real| real.expect("a counting driver was made on this thread")).symbols())
}

/// The entry points that the safe layer calls, required ones plain and optional ones by their typedef.
macro_rules! counted {
    ($($name:ident($($argument:ident: $type:ty),*) $([$optional:ident])?;)*) => {
        fn counted(function: Function) -> Option<*mut c_void> {
            $({
                unsafe extern "C" fn call($($argument: $type),*) -> CUresult {
                    match enter(Function::$name, &[$(word(&$argument)),*]) {
                        // SAFETY: the caller's arguments, passed on.
                        Ok(symbols) => unsafe { (symbols.$name$(.$optional())?)($($argument),*) },
                        Err(code) => code,
                    }
                }
                if function == Function::$name {
                    return Some(call as unsafe extern "C" fn($($type),*) -> CUresult as *mut c_void);
                }
            })*
            None
        }
    };
}

counted! {
    cuInit(flags: u32);
    cuDeviceGet(device: *mut CUdevice, ordinal: i32);
    cuDeviceGetCount(count: *mut i32);
    cuDeviceGetUuid(uuid: *mut CUuuid, device: CUdevice);
    cuDeviceGetUuid_v2(uuid: *mut CUuuid, device: CUdevice) [unwrap];
    cuDevicePrimaryCtxRetain(context: *mut CUcontext, device: CUdevice);
    cuDevicePrimaryCtxRelease_v2(device: CUdevice);
    cuCtxGetCurrent(context: *mut CUcontext);
    cuCtxSetCurrent(context: CUcontext);
    cuCtxPushCurrent_v2(context: CUcontext);
    cuCtxPopCurrent_v2(context: *mut CUcontext);
    cuCtxGetDevice(device: *mut CUdevice);
    cuCtxGetDevice_v2(device: *mut CUdevice, context: CUcontext) [unwrap];
    cuCtxSynchronize();
    cuCtxGetStreamPriorityRange(least: *mut i32, greatest: *mut i32);
    cuEventCreate(event: *mut CUevent, flags: u32);
    cuEventDestroy_v2(event: CUevent);
    cuEventRecord(event: CUevent, stream: CUstream);
    cuEventRecordWithFlags(event: CUevent, stream: CUstream, flags: u32) [unwrap];
    cuEventQuery(event: CUevent);
    cuEventSynchronize(event: CUevent);
    cuEventElapsedTime(milliseconds: *mut f32, start: CUevent, end: CUevent);
    cuEventElapsedTime_v2(milliseconds: *mut f32, start: CUevent, end: CUevent) [unwrap];
    cuIpcGetEventHandle(handle: *mut CUipcEventHandle, event: CUevent);
    cuIpcOpenEventHandle(event: *mut CUevent, handle: CUipcEventHandle);
    cuStreamCreate(stream: *mut CUstream, flags: u32);
    cuStreamCreateWithPriority(stream: *mut CUstream, flags: u32, priority: i32);
    cuStreamDestroy_v2(stream: CUstream);
    cuStreamQuery(stream: CUstream);
    cuStreamSynchronize(stream: CUstream);
    cuStreamWaitEvent(stream: CUstream, event: CUevent, flags: u32);
    cuStreamGetPriority(stream: CUstream, priority: *mut i32);
    cuStreamGetFlags(stream: CUstream, flags: *mut u32);
    cuStreamGetId(stream: CUstream, id: *mut u64) [unwrap];
    cuStreamGetCtx(stream: CUstream, context: *mut CUcontext);
    cuStreamIsCapturing(stream: CUstream, status: *mut CUstreamCaptureStatus);
    cuStreamBeginCapture_v2(stream: CUstream, mode: CUstreamCaptureMode);
    cuStreamEndCapture(stream: CUstream, graph: *mut CUgraph);
    cuThreadExchangeStreamCaptureMode(mode: *mut CUstreamCaptureMode);
    cuGraphCreate(graph: *mut CUgraph, flags: u32);
    cuGraphDestroy(graph: CUgraph);
    cuGraphInstantiateWithFlags(exec: *mut CUgraphExec, graph: CUgraph, flags: u64) [unwrap];
    cuGraphLaunch(exec: CUgraphExec, stream: CUstream);
    cuGraphExecDestroy(exec: CUgraphExec);
}
