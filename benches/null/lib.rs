//! The null driver: a CUDA driver whose functions return success at once, so that only the cost of
//! calling is left.
//!
//! What a function gives through a pointer is plausible and always the same. One context is
//! current, for all threads, so that asking for it is one load. No time passes between two events.
//! Nothing is checked.
//!
//! What `cuda-events` binds is exported: what is written out here, and whatever else there is only
//! succeeds.

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

/// A parameter of the driver's calls that nothing looks at. Integers and pointers are passed alike
/// in the C ABI of the 64-bit targets that this runs on.
type Any = usize;

/// Functions that are written out: they give something, where each `*name = value` is one store
/// through a parameter, or do something. What is `absent` is not exported. Whatever else is bound
/// only succeeds.
macro_rules! functions {
    (
        gives { $($name:ident($($parameter:ident: $type:ty),*) {
            $(*$out:ident = $value:expr;)* })* }
        does { $($doing:ident($($given:ident: $given_type:ty),*) $body:block)* }
        absent { $($absent:ident)* }
    ) => {
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
        $(
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $doing($($given: $given_type),*) -> c_int {
                $body
                0
            }
        )*
        define_unless_written!(($) $($name)* $($doing)* $($absent)*);
    };
}

/// Defines the macro that gives what follows a name, or nothing if the name is written out.
macro_rules! define_unless_written {
    (($dollar:tt) $($written:ident)*) => {
        macro_rules! unless_written {
            $(($written $dollar($dollar _given:tt)*) => {};)*
            ($dollar name:ident $dollar($dollar given:tt)*) => { $dollar($dollar given)* };
        }
    };
}

macro_rules! succeed {
    ($($page:ident { $(
        $need:ident $function:ident $(($header:ident))? $typedef:ident $($twin:ident)?
            $(, $creates:ident)?;
    )* })*) => {
        $($(unless_written! { $function
            #[unsafe(no_mangle)]
            pub extern "C" fn $function() -> c_int {
                0
            }
        })*)*
    };
}

functions! {
    gives {
        cuDriverGetVersion(version: *mut c_int) { *version = 13000; }
        cuDeviceGet(device: *mut c_int, _ordinal: c_int) { *device = 0; }
        cuDeviceGetCount(count: *mut c_int) { *count = 1; }
        cuDeviceGetName(name: *mut [u8; 5], _length: c_int, _device: c_int) { *name = *b"null\0"; }
        cuDeviceGetAttribute(value: *mut c_int, _attribute: c_int, _device: c_int) { *value = 1; }
        cuDeviceTotalMem_v2(bytes: *mut usize, _device: c_int) { *bytes = 1 << 30; }
        cuDeviceGetUuid(uuid: *mut [u8; 16], _device: c_int) { *uuid = UUID; }
        cuDeviceGetUuid_v2(uuid: *mut [u8; 16], _device: c_int) { *uuid = UUID; }
        cuDevicePrimaryCtxRetain(context: *mut Handle, _device: c_int) { *context = CONTEXT; }
        cuDevicePrimaryCtxGetState(_device: c_int, flags: *mut c_uint,
            active: *mut c_int) { *flags = 0; *active = 1; }
        cuCtxGetCurrent(context: *mut Handle) { *context = CURRENT.load(Ordering::Relaxed); }
        cuCtxGetDevice(device: *mut c_int) { *device = 0; }
        cuCtxGetDevice_v2(device: *mut c_int, _context: Any) { *device = 0; }
        cuCtxGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int) { *least = 0;
        *greatest = -5; }
        cuEventCreate(event: *mut Handle, _flags: c_uint) { *event = EVENT; }
        cuEventElapsedTime(milliseconds: *mut f32, _start: Any, _end: Any) { *milliseconds = 0.0; }
        cuEventElapsedTime_v2(milliseconds: *mut f32, _start: Any,
            _end: Any) { *milliseconds = 0.0; }
        cuIpcGetEventHandle(handle: *mut [u8; 64], _event: Any) { *handle = [7; 64]; }
        cuIpcOpenEventHandle(event: *mut Handle) { *event = EVENT; }
        cuStreamCreate(stream: *mut Handle, _flags: c_uint) { *stream = STREAM; }
        cuStreamCreateWithPriority(stream: *mut Handle, _flags: c_uint,
            _priority: c_int) { *stream = STREAM; }
        cuStreamGetPriority(_stream: Any, priority: *mut c_int) { *priority = 0; }
        cuStreamGetFlags(_stream: Any, flags: *mut c_uint) { *flags = 1; }
        cuStreamGetId(_stream: Any, id: *mut u64) { *id = 1; }
        cuStreamGetCtx(_stream: Any, context: *mut Handle) { *context = CONTEXT; }
        cuGetErrorName(_code: c_int, text: *mut *const c_char) { *text = c"null".as_ptr(); }
        cuGetErrorString(_code: c_int, text: *mut *const c_char) { *text = c"null".as_ptr(); }
    }
    does {
        cuMemHostAlloc(memory: *mut *mut c_void, bytes: usize) {
            // Zeroed and in lines of its own; nothing frees it, as little here is ever freed.
            let memory_of = vec![0_u128; bytes.div_ceil(16) + 256].leak().as_mut_ptr();
            let start = memory_of.map_addr(|address| address.next_multiple_of(4096));
            // SAFETY: the driver's contract: the caller passes a place for the result.
            unsafe { *memory = start.cast() };
        }
        cuMemHostGetDevicePointer_v2(device: *mut usize, memory: *mut c_void) {
            // SAFETY: as above.
            unsafe { *device = memory.expose_provenance() };
        }
        // The value is there at once.
        cuStreamWriteValue64_v2(_stream: Any, address: usize, value: u64) {
            // SAFETY: the driver's contract: eight bytes of the host's, which others read as they
            // change.
            unsafe { core::ptr::with_exposed_provenance_mut::<u64>(address).write_volatile(value) };
        }
        cuCtxSetCurrent(context: Handle) {
            CURRENT.store(context, Ordering::Relaxed);
        }
        cuCtxPushCurrent_v2(context: Handle) {
            BEFORE.store(CURRENT.load(Ordering::Relaxed), Ordering::Relaxed);
            CURRENT.store(context, Ordering::Relaxed);
        }
        cuCtxPopCurrent_v2(context: *mut Handle) {
            // SAFETY: the driver's contract: the caller passes a place for the result.
            unsafe { *context = CURRENT.load(Ordering::Relaxed) };
            CURRENT.store(BEFORE.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        cuLaunchHostFunc(_stream: Any, function: unsafe extern "C" fn(*mut c_void),
            data: *mut c_void) {
            // SAFETY: the driver's contract: the caller passes a function that takes `data`.
            unsafe { function(data) };
        }
    }
    // A lookup that succeeds without an address would hide all the others.
    absent { cuGetProcAddress cuGetProcAddress_v2 }
}

cuda_events::for_each_entry_point!(succeed);
