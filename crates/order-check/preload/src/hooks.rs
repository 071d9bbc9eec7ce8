//! The hooked functions: their names and signatures, and the addresses of the real ones.

use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use core::sync::atomic::{AtomicPtr, Ordering};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError, RwLock};

use crate::watch::{self, Bytes, Call, Copy2D, Copy3D, LaunchConfig, Side};

type Code = c_uint;
type Handle = usize;
type Address = u64;

macro_rules! hooks {
    ($($($name:ident),* => watch::$hook:ident [$($before:expr),*] $arguments:tt;)*) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        #[derive(Clone, Copy)]
        enum Index { $($($name,)*)* Count }

        static REAL: [AtomicPtr<c_void>; Index::Count as usize] =
            [const { AtomicPtr::new(core::ptr::null_mut()) }; Index::Count as usize];

        #[allow(non_snake_case)]
        mod functions {
            use super::*;
            $(hooks!(@each $($name)* => $hook [$($before),*] $arguments);)*
        }

        /// The names of the hooked functions, and the hooks.
        pub static HOOKED: [(&CStr, unsafe extern "C" fn()); Index::Count as usize] = [
            $($((
                // SAFETY: the text ends with the one zero.
                unsafe {
                    CStr::from_bytes_with_nul_unchecked(
                        concat!(stringify!($name), "\0").as_bytes())
                },
                // SAFETY: only an address, which is called by its own type.
                unsafe {
                    core::mem::transmute::<*const (), unsafe extern "C" fn()>(
                        functions::$name as *const ())
                },
            ),)*)*
        ];
    };
    (@each $($name:ident)* => $hook:ident $before:tt $arguments:tt) => {
        $(hooks!(@one $name => $hook $before $arguments);)*
    };
    (@one $name:ident => $hook:ident [$($before:expr),*] ($($argument:ident: $ty:ty),*)) => {
        pub(super) unsafe extern "C" fn $name($($argument: $ty),*) -> Code {
            let name = stringify!($name);
            let call = Call { name, per_thread: name.ends_with("_ptsz") || name.ends_with("_ptds") };
            let real = REAL[Index::$name as usize].load(Ordering::Relaxed);
            let real = move || {
                // SAFETY: the real function of this name, with the program's own arguments. A hook
                // is the address of nothing where the real library lacks the function.
                unsafe {
                    core::mem::transmute::<*mut c_void, unsafe extern "C" fn($($ty),*) -> Code>(real)(
                        $($argument),*
                    )
                }
            };
            let hook = || watch::$hook(&call, real, $($before,)* $($argument),*);
            watch::traced(name, hook, |_done, _show| {
                $(_show(stringify!($argument), watch::Argument::show($argument, _done));)*
            })
        }
    };
}

hooks! {
    cuEventCreate => watch::event_create [] (event: *mut Handle, flags: c_uint);
    cuEventDestroy, cuEventDestroy_v2 => watch::event_destroy [] (event: Handle);
    cuEventRecord, cuEventRecord_ptsz => watch::event_record [] (event: Handle, stream: Handle);
    cuEventRecordWithFlags, cuEventRecordWithFlags_ptsz
        => watch::event_record_with_flags [] (event: Handle, stream: Handle, flags: c_uint);
    cuEventQuery => watch::event_query [] (event: Handle);
    cuEventSynchronize => watch::event_synchronize [] (event: Handle);
    cuEventElapsedTime, cuEventElapsedTime_v2
        => watch::event_elapsed [] (time: *mut f32, start: Handle, end: Handle);
    cuStreamCreate => watch::stream_create [] (stream: *mut Handle, flags: c_uint);
    cuStreamCreateWithPriority
        => watch::stream_create_with_priority [] (stream: *mut Handle, flags: c_uint, priority: c_int);
    cuStreamDestroy, cuStreamDestroy_v2 => watch::stream_destroy [] (stream: Handle);
    cuStreamWaitEvent, cuStreamWaitEvent_ptsz
        => watch::stream_wait_event [] (stream: Handle, event: Handle, flags: c_uint);
    cuStreamQuery, cuStreamQuery_ptsz => watch::stream_query [] (stream: Handle);
    cuStreamSynchronize, cuStreamSynchronize_ptsz => watch::stream_synchronize [] (stream: Handle);
    cuStreamBeginCapture, cuStreamBeginCapture_v2, cuStreamBeginCapture_ptsz,
    cuStreamBeginCapture_v2_ptsz => watch::capture_begin [] (stream: Handle, mode: c_uint);
    cuStreamEndCapture, cuStreamEndCapture_ptsz
        => watch::capture_end [] (stream: Handle, graph: *mut Handle);
    cuCtxSynchronize => watch::context_synchronize [] ();
    cuCtxSynchronize_v2 => watch::context_synchronize_of [] (context: Handle);
    cuCtxDestroy, cuCtxDestroy_v2 => watch::context_destroy [] (context: Handle);
    cuCtxRecordEvent => watch::context_record [] (context: Handle, event: Handle);
    cuCtxWaitEvent => watch::context_wait [] (context: Handle, event: Handle);

    cuModuleLoad, cuModuleLoadData, cuModuleLoadFatBinary
        => watch::load_module [] (module: *mut Handle, code: *const c_void);
    cuModuleLoadDataEx => watch::load_module_with []
        (module: *mut Handle, code: *const c_void, count: c_uint, options: *mut c_uint,
            values: *mut *mut c_void);
    cuLibraryLoadData, cuLibraryLoadFromFile => watch::load_library []
        (library: *mut Handle, code: *const c_void, jit: *mut c_uint, jit_values: *mut *mut c_void,
            jit_count: c_uint, options: *mut c_uint, values: *mut *mut c_void, count: c_uint);

    cuMemAlloc, cuMemAlloc_v2 => watch::allocate [] (address: *mut Address, bytes: usize);
    cuMemAllocManaged
        => watch::allocate_managed [] (address: *mut Address, bytes: usize, flags: c_uint);
    cuMemAllocHost, cuMemAllocHost_v2 => watch::allocate_host [] (memory: *mut Address, bytes: usize);
    cuMemHostAlloc
        => watch::allocate_host_with [] (memory: *mut Address, bytes: usize, flags: c_uint);
    cuMemHostRegister, cuMemHostRegister_v2
        => watch::register [] (memory: Address, bytes: usize, flags: c_uint);
    cuMemHostUnregister => watch::unregister [] (memory: Address);
    cuMemFree, cuMemFree_v2 => watch::free [] (address: Address);
    cuMemFreeHost => watch::free [] (memory: Address);
    cuMemAllocAsync, cuMemAllocAsync_ptsz
        => watch::allocate_async [] (address: *mut Address, bytes: usize, stream: Handle);
    cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync_ptsz
        => watch::allocate_from_pool
        [] (address: *mut Address, bytes: usize, pool: Handle, stream: Handle);
    cuMemFreeAsync, cuMemFreeAsync_ptsz => watch::free_async [] (address: Address, stream: Handle);

    cuMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2, cuMemcpyHtoDAsync_v2_ptsz
        => watch::copy_async [Side::Device, Side::Host]
        (to: Address, from: Address, bytes: usize, stream: Handle);
    cuMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2, cuMemcpyDtoHAsync_v2_ptsz
        => watch::copy_async [Side::Host, Side::Device]
        (to: Address, from: Address, bytes: usize, stream: Handle);
    cuMemcpyDtoDAsync, cuMemcpyDtoDAsync_v2, cuMemcpyDtoDAsync_v2_ptsz
        => watch::copy_async [Side::Device, Side::Device]
        (to: Address, from: Address, bytes: usize, stream: Handle);
    cuMemcpyAsync, cuMemcpyAsync_ptsz
        => watch::copy_async [Side::Any, Side::Any]
        (to: Address, from: Address, bytes: usize, stream: Handle);
    cuMemcpyHtoD, cuMemcpyHtoD_v2, cuMemcpyHtoD_v2_ptds
        => watch::copy [Side::Device, Side::Host] (to: Address, from: Address, bytes: usize);
    cuMemcpyDtoH, cuMemcpyDtoH_v2, cuMemcpyDtoH_v2_ptds
        => watch::copy [Side::Host, Side::Device] (to: Address, from: Address, bytes: usize);
    cuMemcpyDtoD, cuMemcpyDtoD_v2, cuMemcpyDtoD_v2_ptds
        => watch::copy [Side::Device, Side::Device] (to: Address, from: Address, bytes: usize);
    cuMemcpy, cuMemcpy_ptds
        => watch::copy [Side::Any, Side::Any] (to: Address, from: Address, bytes: usize);

    cuMemsetD8Async, cuMemsetD8Async_ptsz
        => watch::set_async8 [] (to: Address, value: u8, count: usize, stream: Handle);
    cuMemsetD16Async, cuMemsetD16Async_ptsz
        => watch::set_async16 [] (to: Address, value: u16, count: usize, stream: Handle);
    cuMemsetD32Async, cuMemsetD32Async_ptsz
        => watch::set_async32 [] (to: Address, value: u32, count: usize, stream: Handle);
    cuMemsetD8, cuMemsetD8_v2, cuMemsetD8_v2_ptds
        => watch::set8 [] (to: Address, value: u8, count: usize);
    cuMemsetD16, cuMemsetD16_v2, cuMemsetD16_v2_ptds
        => watch::set16 [] (to: Address, value: u16, count: usize);
    cuMemsetD32, cuMemsetD32_v2, cuMemsetD32_v2_ptds
        => watch::set32 [] (to: Address, value: u32, count: usize);

    cuMemcpy2D, cuMemcpy2D_v2, cuMemcpy2D_v2_ptds, cuMemcpy2DUnaligned, cuMemcpy2DUnaligned_v2,
    cuMemcpy2DUnaligned_v2_ptds => watch::copy_2d [] (copy: *const Copy2D);
    cuMemcpy2DAsync, cuMemcpy2DAsync_v2, cuMemcpy2DAsync_v2_ptsz
        => watch::copy_2d_async [] (copy: *const Copy2D, stream: Handle);
    cuMemcpy3D, cuMemcpy3D_v2, cuMemcpy3D_v2_ptds => watch::copy_3d [] (copy: *const Copy3D);
    cuMemcpy3DAsync, cuMemcpy3DAsync_v2, cuMemcpy3DAsync_v2_ptsz
        => watch::copy_3d_async [] (copy: *const Copy3D, stream: Handle);
    cuMemcpyPeer, cuMemcpyPeer_ptds => watch::copy_peer []
        (to: Address, to_context: Handle, from: Address, from_context: Handle, bytes: usize);
    cuMemcpyPeerAsync, cuMemcpyPeerAsync_ptsz => watch::copy_peer_async []
        (to: Address, to_context: Handle, from: Address, from_context: Handle, bytes: usize,
            stream: Handle);
    cuMemsetD2D8, cuMemsetD2D8_v2, cuMemsetD2D8_v2_ptds => watch::set_rows8 []
        (to: Address, pitch: usize, value: u8, width: usize, height: usize);
    cuMemsetD2D16, cuMemsetD2D16_v2, cuMemsetD2D16_v2_ptds => watch::set_rows16 []
        (to: Address, pitch: usize, value: u16, width: usize, height: usize);
    cuMemsetD2D32, cuMemsetD2D32_v2, cuMemsetD2D32_v2_ptds => watch::set_rows32 []
        (to: Address, pitch: usize, value: u32, width: usize, height: usize);
    cuMemsetD2D8Async, cuMemsetD2D8Async_ptsz => watch::set_rows_async8 []
        (to: Address, pitch: usize, value: u8, width: usize, height: usize, stream: Handle);
    cuMemsetD2D16Async, cuMemsetD2D16Async_ptsz => watch::set_rows_async16 []
        (to: Address, pitch: usize, value: u16, width: usize, height: usize, stream: Handle);
    cuMemsetD2D32Async, cuMemsetD2D32Async_ptsz => watch::set_rows_async32 []
        (to: Address, pitch: usize, value: u32, width: usize, height: usize, stream: Handle);

    cuStreamBatchMemOp, cuStreamBatchMemOp_v2, cuStreamBatchMemOp_ptsz, cuStreamBatchMemOp_v2_ptsz
        => watch::batch []
        (stream: Handle, count: c_uint, operations: *const [u64; 6], flags: c_uint);
    cuGraphRetainUserObject => watch::retain_object []
        (graph: Handle, object: Handle, count: c_uint, flags: c_uint);
    cuStreamWriteValue32, cuStreamWriteValue32_v2, cuStreamWriteValue32_ptsz,
    cuStreamWriteValue32_v2_ptsz
        => watch::write_value32 [] (stream: Handle, to: Address, value: u32, flags: c_uint);
    cuStreamWriteValue64, cuStreamWriteValue64_v2, cuStreamWriteValue64_ptsz,
    cuStreamWriteValue64_v2_ptsz
        => watch::write_value64 [] (stream: Handle, to: Address, value: u64, flags: c_uint);
    cuStreamWaitValue32, cuStreamWaitValue32_v2, cuStreamWaitValue32_ptsz,
    cuStreamWaitValue32_v2_ptsz
        => watch::wait_value32 [] (stream: Handle, at: Address, value: u32, flags: c_uint);
    cuStreamWaitValue64, cuStreamWaitValue64_v2, cuStreamWaitValue64_ptsz,
    cuStreamWaitValue64_v2_ptsz
        => watch::wait_value64 [] (stream: Handle, at: Address, value: u64, flags: c_uint);

    cuLaunchKernel, cuLaunchKernel_ptsz => watch::launch_kernel [] (
        function: Handle, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint,
        block_y: c_uint, block_z: c_uint, shared: c_uint, stream: Handle,
        parameters: *const Handle, extra: *const Handle);
    cuLaunchCooperativeKernel, cuLaunchCooperativeKernel_ptsz => watch::launch_cooperative [] (
        function: Handle, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint,
        block_y: c_uint, block_z: c_uint, shared: c_uint, stream: Handle,
        parameters: *const Handle);
    cuLaunchKernelEx, cuLaunchKernelEx_ptsz => watch::launch_kernel_ex [] (
        config: *const LaunchConfig, function: Handle, parameters: *const Handle,
        extra: *const Handle);

    cuIpcGetEventHandle => watch::event_exported [] (descriptor: *mut c_void, event: Handle);
    cuIpcOpenEventHandle => watch::event_imported [] (event: *mut Handle, descriptor: Bytes);
    cuIpcGetMemHandle => watch::memory_exported [] (descriptor: *mut c_void, address: Address);
    cuIpcOpenMemHandle, cuIpcOpenMemHandle_v2 => watch::memory_imported []
        (address: *mut Address, descriptor: Bytes, flags: c_uint);
    cuIpcCloseMemHandle => watch::memory_closed [] (address: Address);
    cuMemAllocPitch, cuMemAllocPitch_v2 => watch::allocate_rows []
        (address: *mut Address, pitch: *mut usize, width: usize, height: usize, element: c_uint);
    cuGraphInstantiate, cuGraphInstantiate_v2 => watch::instantiate_with_log []
        (exec: *mut Handle, graph: Handle, node: *mut Handle, log: *mut c_char, size: usize);
    cuGraphInstantiateWithParams, cuGraphInstantiateWithParams_ptsz => watch::instantiate_with []
        (exec: *mut Handle, graph: Handle, settings: *mut c_void);
    cuGraphClone => watch::graph_clone [] (clone: *mut Handle, graph: Handle);
    cuGraphExecUpdate_v2 => watch::graph_update []
        (exec: Handle, graph: Handle, result: *mut c_void);
    cuGraphInstantiateWithFlags
        => watch::instantiate [] (exec: *mut Handle, graph: Handle, flags: u64);
    cuGraphExecDestroy => watch::graph_destroy [] (exec: Handle);
    cuGraphDestroy => watch::graph_destroy [] (graph: Handle);
    cuGraphLaunch, cuGraphLaunch_ptsz => watch::launch [] (exec: Handle, stream: Handle);
}

/// The hooks that need more of the real function than to be called with the same arguments.
unsafe extern "C" fn launch_host(stream: Handle, function: watch::Function, data: Handle) -> Code {
    host("cuLaunchHostFunc", HOST.load(Ordering::Relaxed), stream, function, data)
}

unsafe extern "C" fn launch_host_ptsz(
    stream: Handle,
    function: watch::Function,
    data: Handle,
) -> Code {
    host("cuLaunchHostFunc_ptsz", HOST_PTSZ.load(Ordering::Relaxed), stream, function, data)
}

static HOST: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
static HOST_PTSZ: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());

fn host(
    name: &'static str,
    real: *mut c_void,
    stream: Handle,
    function: watch::Function,
    data: Handle,
) -> Code {
    type Real = unsafe extern "C" fn(Handle, watch::Function, Handle) -> Code;
    // SAFETY: the real function of that name.
    let real = unsafe { core::mem::transmute::<*mut c_void, Real>(real) };
    let call = Call { name, per_thread: name.ends_with("_ptsz") };
    // SAFETY: the program's arguments, or the stand-in's own function with its data.
    let real = |of, data| unsafe { real(stream, of, data) };
    let hook = || watch::host_function(&call, real, stream, function, data);
    watch::traced(name, hook, |done, show| show("stream", watch::Argument::show(stream, done)))
}

static OBJECT: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());

unsafe extern "C" fn create_object(
    object: *mut Handle,
    data: Handle,
    destroy: watch::Function,
    count: c_uint,
    flags: c_uint,
) -> Code {
    type Real = unsafe extern "C" fn(*mut Handle, Handle, watch::Function, c_uint, c_uint) -> Code;
    // SAFETY: the real function of that name.
    let real = unsafe { core::mem::transmute::<*mut c_void, Real>(OBJECT.load(Ordering::Relaxed)) };
    let call = Call { name: "cuUserObjectCreate", per_thread: false };
    // SAFETY: the program's arguments, or the stand-in's own function with its data.
    let real = |of, data| unsafe { real(object, data, of, count, flags) };
    // SAFETY: the place for the handle.
    unsafe { watch::create_object(&call, real, object, destroy, data) }
}

static LOOK_UP: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
static LOOK_UP_V2: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());

/// The exports of the stand-in, by the addresses of the real functions. Some of these have two
/// names; then it is the first.
static EXPORTED: RwLock<BTreeMap<usize, usize>> = RwLock::new(BTreeMap::new());

/// The stand-in exports a real function at `own`, which look-ups then return.
pub fn exported(real: *const c_void, own: *const c_void) {
    let mut all = EXPORTED.write().unwrap_or_else(PoisonError::into_inner);
    all.entry(real.addr()).or_insert(own.expose_provenance());
}

/// Functions that were looked up, and that the stand-in does not export.
static UNLISTED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// The names of the functions that were looked up, and that the stand-in does not export.
pub(crate) fn unlisted() -> BTreeSet<String> {
    UNLISTED.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// What was looked up is the export of the real function, or its hook, where there is one.
///
/// # Safety
///
/// A C string, and a place for the address, which the real function has written.
unsafe fn hooked(code: Code, name: *const c_char, function: *mut *mut c_void) -> Code {
    if code == 0 && !function.is_null() {
        // SAFETY: as the caller says.
        unsafe {
            let all = EXPORTED.read().unwrap_or_else(PoisonError::into_inner);
            *function = match all.get(&(*function).addr()) {
                Some(own) => core::ptr::with_exposed_provenance_mut(*own),
                None => {
                    if !all.is_empty() && !(*function).is_null() {
                        let name = CStr::from_ptr(name).to_string_lossy().into_owned();
                        UNLISTED.lock().unwrap_or_else(PoisonError::into_inner).insert(name);
                    }
                    hook_of(*function)
                }
            };
        }
    }
    code
}

unsafe extern "C" fn look_up(
    name: *const c_char,
    function: *mut *mut c_void,
    version: c_int,
    flags: u64,
) -> Code {
    type Real = unsafe extern "C" fn(*const c_char, *mut *mut c_void, c_int, u64) -> Code;
    // SAFETY: the real function with the program's arguments.
    unsafe {
        let real = core::mem::transmute::<*mut c_void, Real>(LOOK_UP.load(Ordering::Relaxed));
        hooked(real(name, function, version, flags), name, function)
    }
}

unsafe extern "C" fn look_up_v2(
    name: *const c_char,
    function: *mut *mut c_void,
    version: c_int,
    flags: u64,
    status: *mut c_uint,
) -> Code {
    type Real =
        unsafe extern "C" fn(*const c_char, *mut *mut c_void, c_int, u64, *mut c_uint) -> Code;
    // SAFETY: as above.
    unsafe {
        let real = core::mem::transmute::<*mut c_void, Real>(LOOK_UP_V2.load(Ordering::Relaxed));
        hooked(real(name, function, version, flags, status), name, function)
    }
}

fn others() -> [(&'static CStr, *const (), &'static AtomicPtr<c_void>); 5] {
    [
        (c"cuLaunchHostFunc", launch_host as *const (), &HOST),
        (c"cuLaunchHostFunc_ptsz", launch_host_ptsz as *const (), &HOST_PTSZ),
        (c"cuUserObjectCreate", create_object as *const (), &OBJECT),
        (c"cuGetProcAddress", look_up as *const (), &LOOK_UP),
        (c"cuGetProcAddress_v2", look_up_v2 as *const (), &LOOK_UP_V2),
    ]
}

/// Every hook: its name, its address, and where the real function's address is.
fn all() -> impl Iterator<Item = (&'static CStr, *mut c_void, &'static AtomicPtr<c_void>)> {
    let plain =
        HOOKED.iter().zip(&REAL).map(|((name, hook), real)| (*name, *hook as *const (), real));
    plain.chain(others()).map(|(name, hook, real)| (name, hook.cast_mut().cast(), real))
}

/// The hook of a real function's address, or that address.
fn hook_of(real: *mut c_void) -> *mut c_void {
    let found = all().find(|(_, _, of)| !real.is_null() && of.load(Ordering::Relaxed) == real);
    found.map_or(real, |(_, hook, _)| hook)
}

/// Looks up the real functions, and begins to watch. `log` is where findings go; `None` for standard
/// error. `trace` is where a line for each hooked call goes.
pub fn install(resolve: &dyn Fn(&CStr) -> *mut c_void, log: Option<&str>, trace: Option<&str>) {
    all().for_each(|(name, _, real)| real.store(resolve(name), Ordering::Relaxed));
    watch::start(resolve, log, trace);
}

/// The address of a name in the stand-in: the hook, or the real function, or NULL where the real
/// library has none.
pub fn target(name: &CStr, resolve: &dyn Fn(&CStr) -> *mut c_void) -> *mut c_void {
    hook_of(resolve(name))
}
