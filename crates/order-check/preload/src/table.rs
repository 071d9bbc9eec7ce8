//! The hooked functions: their names and parameters, and what each call gives to its hook.

use core::cell::Cell;
use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use core::ptr::null;
use core::sync::atomic::{AtomicPtr, Ordering};

use cuda_events::sys::more::{
    CUDA_GRAPH_INSTANTIATE_PARAMS, CUDA_KERNEL_NODE_PARAMS_v1, CUDA_KERNEL_NODE_PARAMS_v2,
    CUDA_MEMCPY2D, CUDA_MEMCPY3D, CUDA_MEMCPY3D_BATCH_OP, CUDA_MEMCPY3D_PEER,
    CUDA_MEMSET_NODE_PARAMS, CUlaunchConfig, CUmemLocation, CUmemcpyAttributes,
};
use cuda_events::sys::{
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC, CUDA_HOST_NODE_PARAMS, CUstreamBatchMemOpParams,
};
use cuda_order_check_engine::feed::Memory;

use crate::abi::{compare, name};
use crate::call::{Bytes, Call};
use crate::code::image::Image;
use crate::hooks::run::{Argument, run};
use crate::hooks::{
    copies, events, graphs, host_functions as hosts, kernels, memory, modules, streams,
    user_objects, values,
};
use crate::state::blocks::{Block, OfBatch};
use crate::state::executions::NodeParams;
use crate::state::values::Value;

type Code = c_uint;
type Handle = usize;
type Address = u64;

macro_rules! hooks {
    ($($($name:ident $(| $twin:ident)?),*: $arguments:tt
        => $module:ident::$hook:ident $values:tt;)*) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        #[derive(Clone, Copy)]
        pub(crate) enum Index { $($($name, $($twin,)?)*)* Count }

        /// The addresses of the real ones.
        pub(crate) static REAL: [AtomicPtr<c_void>; Index::Count as usize] =
            [const { AtomicPtr::new(core::ptr::null_mut()) }; Index::Count as usize];

        $(hooks!(@each $($name $($twin)?)*: $arguments => $module::$hook $values);)*

        /// The names of the hooked functions, and the hooks.
        pub(crate) static HOOKED: [(&CStr, unsafe extern "C" fn()); Index::Count as usize] = [
            $($(hooks!(@entry $name), $(hooks!(@entry $twin),)?)*)*
        ];

        $(hooks!(@compare $($name)*: $arguments);)*
    };
    (@entry $name:ident) => {
        (
            name!($name),
            // SAFETY: only an address, which is called by its own type.
            unsafe {
                core::mem::transmute::<*const (), unsafe extern "C" fn()>(
                    $name as *const ())
            },
        )
    };
    // The type of a twin is that of its function.
    (@compare $($name:ident)*: $arguments:tt) => { $(hooks!(@compare_one $name $arguments);)* };
    (@compare_one $name:ident ($($argument:ident: $ty:ty),* $(,)?)) => {
        compare!($name unsafe extern "C" fn($($ty),*) -> Code);
    };
    (@each $($name:ident)*: $arguments:tt => $module:ident::$hook:ident $values:tt) => {
        $(hooks!(@one $name $arguments => $module::$hook $values);)*
    };
    (@one $name:ident ($($argument:ident: $ty:ty),* $(,)?)
        => $module:ident::$hook:ident [$($value:expr),*]) => {
        #[allow(non_snake_case)]
        unsafe extern "C" fn $name($($argument: $ty),*) -> Code {
            let name = stringify!($name);
            let call = Call { name, per_thread: name.ends_with("_ptsz") || name.ends_with("_ptds") };
            let real = REAL[Index::$name as usize].load(Ordering::Relaxed);
            let made = Cell::new(None);
            let real = || {
                // SAFETY: the real function of this name, with the program's own arguments. A hook
                // is the address of nothing where the real library lacks the function.
                let code = unsafe {
                    core::mem::transmute::<*mut c_void, unsafe extern "C" fn($($ty),*) -> Code>(real)(
                        $($argument),*
                    )
                };
                made.set(Some(code));
                code
            };
            let hook = || $module::$hook(&call, real, $($value),*);
            run(name, &made, hook, real, |_done, _show| {
                $(_show(stringify!($argument), Argument::handle($argument), &|| {
                    Argument::show($argument, _done)
                });)*
            })
        }
    };
}

hooks! {
    cuEventCreate: (event: *mut Handle, flags: c_uint) => events::create [event];
    cuEventDestroy, cuEventDestroy_v2: (event: Handle) => events::destroy [event];
    cuEventRecord | cuEventRecord_ptsz: (event: Handle, stream: Handle)
        => events::record [event, stream];
    cuEventRecordWithFlags | cuEventRecordWithFlags_ptsz: (event: Handle, stream: Handle,
        flags: c_uint)
        => events::record_with_flags [event, stream, flags];
    cuEventQuery: (event: Handle) => events::query [event];
    cuEventSynchronize: (event: Handle) => events::synchronize [event];
    cuEventElapsedTime, cuEventElapsedTime_v2: (time: *mut f32, start: Handle, end: Handle)
        => events::elapsed [start, end];
    cuStreamCreate: (stream: *mut Handle, flags: c_uint) => streams::create [stream, flags];
    cuStreamCreateWithPriority: (stream: *mut Handle, flags: c_uint, priority: c_int)
        => streams::create [stream, flags];
    cuStreamDestroy, cuStreamDestroy_v2: (stream: Handle) => streams::destroy [stream];
    cuStreamWaitEvent | cuStreamWaitEvent_ptsz: (stream: Handle, event: Handle, flags: c_uint)
        => streams::wait_event [stream, event, flags];
    cuStreamQuery | cuStreamQuery_ptsz: (stream: Handle) => streams::query [stream];
    cuStreamSynchronize | cuStreamSynchronize_ptsz: (stream: Handle)
        => streams::synchronize [stream];
    cuStreamBeginCapture | cuStreamBeginCapture_ptsz: (stream: Handle)
        => streams::capture_begin [stream];
    cuStreamBeginCapture_v2 | cuStreamBeginCapture_v2_ptsz: (stream: Handle, mode: c_uint)
        => streams::capture_begin [stream];
    cuStreamEndCapture | cuStreamEndCapture_ptsz: (stream: Handle, graph: *mut Handle)
        => streams::capture_end [stream, graph];
    cuStreamUpdateCaptureDependencies | cuStreamUpdateCaptureDependencies_ptsz: (stream: Handle,
        after: *const Handle, count: usize, flags: c_uint)
        => streams::capture_moved [stream];
    cuStreamUpdateCaptureDependencies_v2 | cuStreamUpdateCaptureDependencies_v2_ptsz:
        (stream: Handle, after: *const Handle, edges: *const c_void, count: usize, flags: c_uint)
        => streams::capture_moved [stream];
    cuCtxEnablePeerAccess: (peer: Handle, flags: c_uint) => streams::peer_access [peer, true];
    cuCtxDisablePeerAccess: (peer: Handle) => streams::peer_access [peer, false];
    cuCtxSynchronize: () => streams::context_synchronize [0];
    cuCtxSynchronize_v2: (context: Handle) => streams::context_synchronize [context];
    cuCtxDestroy, cuCtxDestroy_v2: (context: Handle) => streams::context_destroy [context];
    cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, cuDevicePrimaryCtxReset,
        cuDevicePrimaryCtxReset_v2: (device: i32) => memory::release_context [];
    cuCtxRecordEvent: (context: Handle, event: Handle) => streams::context_record [context, event];
    cuCtxWaitEvent: (context: Handle, event: Handle) => streams::context_wait [context, event];
    cuGreenCtxRecordEvent: (green: Handle, event: Handle) => streams::context_record [green, event];
    cuGreenCtxWaitEvent: (green: Handle, event: Handle) => streams::context_wait [green, event];

    cuModuleLoad: (module: *mut Handle, path: *const c_char)
        => modules::load_module [module, &|| modules::file(path)];
    cuModuleLoadData, cuModuleLoadFatBinary: (module: *mut Handle, image: *const c_void)
        => modules::load_module [module, &|| Image::at(image.addr())];
    cuModuleLoadDataEx: (module: *mut Handle, image: *const c_void, count: c_uint,
        options: *mut c_uint, values: *mut *mut c_void)
        => modules::load_module [module, &|| Image::at(image.addr())];
    cuLibraryLoadData: (library: *mut Handle, image: *const c_void, options: *mut c_uint,
        values: *mut *mut c_void, count: c_uint, library_options: *mut c_uint,
        library_values: *mut *mut c_void, library_count: c_uint)
        => modules::load_library [library, &|| Image::at(image.addr())];
    cuLibraryLoadFromFile: (library: *mut Handle, path: *const c_char, options: *mut c_uint,
        values: *mut *mut c_void, count: c_uint, library_options: *mut c_uint,
        library_values: *mut *mut c_void, library_count: c_uint)
        => modules::load_library [library, &|| modules::file(path)];
    cuModuleGetFunction: (function: *mut Handle, module: Handle, name: *const c_char)
        => modules::take [function, module];
    cuLibraryGetKernel: (kernel: *mut Handle, library: Handle, name: *const c_char)
        => modules::take [kernel, library];
    cuModuleUnload: (module: Handle) => memory::unload [module];
    cuLibraryUnload: (library: Handle) => memory::unload [library];
    cuKernelGetFunction: (function: *mut Handle, kernel: Handle)
        => modules::load_kernel [function, kernel];

    cuModuleGetGlobal_v2: (address: *mut Address, bytes: *mut usize, module: Handle,
        name: *const c_char)
        => memory::global [&REAL[Index::cuModuleGetGlobal_v2 as usize], address, bytes, module,
            name];
    cuLibraryGetGlobal: (address: *mut Address, bytes: *mut usize, library: Handle,
        name: *const c_char)
        => memory::global [&REAL[Index::cuLibraryGetGlobal as usize], address, bytes, library,
            name];
    cuLibraryGetManaged: (address: *mut Address, bytes: *mut usize, library: Handle,
        name: *const c_char)
        => memory::global [&REAL[Index::cuLibraryGetManaged as usize], address, bytes, library,
            name];
    cuLibraryGetModule: (module: *mut Handle, library: Handle)
        => memory::module_of [module, library];
    cuExternalMemoryGetMappedBuffer: (address: *mut Address, memory: Handle, part: *const CUDA_EXTERNAL_MEMORY_BUFFER_DESC)
        => memory::map_external [address, part];
    cuGraphicsResourceGetMappedPointer_v2: (address: *mut Address, bytes: *mut usize,
        resource: Handle)
        => memory::map_resource [address, bytes, resource];

    cuMemAlloc_v2: (address: *mut Address, bytes: usize)
        => memory::allocate [address, bytes, Memory::Device];
    cuMemAllocManaged: (address: *mut Address, bytes: usize, flags: c_uint)
        => memory::allocate [address, bytes, Memory::Managed];
    cuMemAllocHost_v2: (memory: *mut Address, bytes: usize)
        => memory::allocate [memory, bytes, Memory::Host];
    cuMemHostAlloc: (memory: *mut Address, bytes: usize, flags: c_uint)
        => memory::allocate [memory, bytes, Memory::Host];
    cuMemHostRegister, cuMemHostRegister_v2: (memory: Address, bytes: usize, flags: c_uint)
        => memory::register [memory, bytes, flags];
    cuMemHostUnregister: (memory: Address) => memory::unregister [memory];
    cuMemFree_v2: (address: Address) => memory::free [address];
    cuMemFreeHost: (memory: Address) => memory::free [memory];
    cuMemAllocAsync | cuMemAllocAsync_ptsz: (address: *mut Address, bytes: usize, stream: Handle)
        => memory::allocate_async [address, bytes, None, stream];
    cuMemAllocFromPoolAsync | cuMemAllocFromPoolAsync_ptsz: (address: *mut Address, bytes: usize,
        pool: Handle, stream: Handle)
        => memory::allocate_async [address, bytes, Some(pool), stream];
    cuMemFreeAsync | cuMemFreeAsync_ptsz: (address: Address, stream: Handle)
        => memory::free_async [address, stream];

    cuMemcpyHtoDAsync_v2 | cuMemcpyHtoDAsync_v2_ptsz: (to: Address, from: Address,
        bytes: usize, stream: Handle)
        => copies::copy [[Block::device(to), Block::host(from)], [bytes, 1, 1], Some(stream)];
    cuMemcpyDtoHAsync_v2 | cuMemcpyDtoHAsync_v2_ptsz: (to: Address, from: Address,
        bytes: usize, stream: Handle)
        => copies::copy [[Block::host(to), Block::device(from)], [bytes, 1, 1], Some(stream)];
    cuMemcpyDtoDAsync_v2 | cuMemcpyDtoDAsync_v2_ptsz: (to: Address, from: Address,
        bytes: usize, stream: Handle)
        => copies::copy [[Block::device(to), Block::device(from)], [bytes, 1, 1], Some(stream)];
    cuMemcpyAsync | cuMemcpyAsync_ptsz: (to: Address, from: Address, bytes: usize, stream: Handle)
        => copies::copy [[Block::any(to), Block::any(from)], [bytes, 1, 1], Some(stream)];
    cuMemcpyHtoD_v2 | cuMemcpyHtoD_v2_ptds: (to: Address, from: Address, bytes: usize)
        => copies::copy [[Block::device(to), Block::host(from)], [bytes, 1, 1], None];
    cuMemcpyDtoH_v2 | cuMemcpyDtoH_v2_ptds: (to: Address, from: Address, bytes: usize)
        => copies::copy [[Block::host(to), Block::device(from)], [bytes, 1, 1], None];
    cuMemcpyDtoD_v2 | cuMemcpyDtoD_v2_ptds: (to: Address, from: Address, bytes: usize)
        => copies::copy [[Block::device(to), Block::device(from)], [bytes, 1, 1], None];
    cuMemcpy | cuMemcpy_ptds: (to: Address, from: Address, bytes: usize)
        => copies::copy [[Block::any(to), Block::any(from)], [bytes, 1, 1], None];

    cuMemcpyHtoA_v2 | cuMemcpyHtoA_v2_ptds: (to: Handle, at: usize, from: Address,
        bytes: usize)
        => copies::copy [[Block::array(), Block::host(from)], [bytes, 1, 1], None];
    cuMemcpyHtoAAsync_v2 | cuMemcpyHtoAAsync_v2_ptsz: (to: Handle, at: usize,
        from: Address, bytes: usize, stream: Handle)
        => copies::copy [[Block::array(), Block::host(from)], [bytes, 1, 1], Some(stream)];
    cuMemcpyAtoH_v2 | cuMemcpyAtoH_v2_ptds: (to: Address, from: Handle, at: usize,
        bytes: usize)
        => copies::copy [[Block::host(to), Block::array()], [bytes, 1, 1], None];
    cuMemcpyAtoHAsync_v2 | cuMemcpyAtoHAsync_v2_ptsz: (to: Address, from: Handle,
        at: usize, bytes: usize, stream: Handle)
        => copies::copy [[Block::host(to), Block::array()], [bytes, 1, 1], Some(stream)];
    cuMemcpyDtoA_v2 | cuMemcpyDtoA_v2_ptds: (to: Handle, at: usize, from: Address,
        bytes: usize)
        => copies::copy [[Block::array(), Block::device(from)], [bytes, 1, 1], None];
    cuMemcpyAtoD_v2 | cuMemcpyAtoD_v2_ptds: (to: Address, from: Handle, at: usize,
        bytes: usize)
        => copies::copy [[Block::device(to), Block::array()], [bytes, 1, 1], None];
    cuMemcpyAtoA_v2 | cuMemcpyAtoA_v2_ptds: (to: Handle, to_at: usize, from: Handle,
        from_at: usize, bytes: usize)
        => copies::copy [[Block::array(), Block::array()], [bytes, 1, 1], None];

    cuMemcpyWithAttributesAsync | cuMemcpyWithAttributesAsync_ptsz:
        (to: Address, from: Address, bytes: usize, attributes: *const CUmemcpyAttributes, stream: Handle)
        => copies::with_attributes
            [[Block::any(to), Block::any(from)], bytes, attributes, stream];
    cuMemcpyBatchAsync | cuMemcpyBatchAsync_ptsz:
        (to: *const Address, from: *const Address, bytes: *const usize, count: usize,
            attributes: *const CUmemcpyAttributes, first: *const usize, attributes_count: usize,
            failed: *mut usize, stream: Handle)
        => copies::batch [[to, from], bytes, count,
            OfBatch { all: attributes, first, count: attributes_count }, stream];
    cuMemcpyBatchAsync_v2 | cuMemcpyBatchAsync_v2_ptsz:
        (to: *const Address, from: *const Address, bytes: *const usize, count: usize,
            attributes: *const CUmemcpyAttributes, first: *const usize, attributes_count: usize,
            stream: Handle)
        => copies::batch [[to, from], bytes, count,
            OfBatch { all: attributes, first, count: attributes_count }, stream];
    cuMemcpy3DBatchAsync | cuMemcpy3DBatchAsync_ptsz: (count: usize, copies: *const CUDA_MEMCPY3D_BATCH_OP,
        failed: *mut usize, flags: u64, stream: Handle)
        => copies::batch_rows [copies, count, stream];
    cuMemcpy3DBatchAsync_v2 | cuMemcpy3DBatchAsync_v2_ptsz: (count: usize,
        copies: *const CUDA_MEMCPY3D_BATCH_OP, flags: u64, stream: Handle)
        => copies::batch_rows [copies, count, stream];
    cuMemcpy3DWithAttributesAsync | cuMemcpy3DWithAttributesAsync_ptsz: (copy: *const CUDA_MEMCPY3D_BATCH_OP,
        flags: u64, stream: Handle)
        => copies::batch_rows [copy, 1, stream];
    cuMemcpy3DPeer | cuMemcpy3DPeer_ptds: (copy: *const CUDA_MEMCPY3D_PEER) => copies::peer_rows [copy];
    cuMemcpy3DPeerAsync | cuMemcpy3DPeerAsync_ptsz: (copy: *const CUDA_MEMCPY3D_PEER, stream: Handle)
        => copies::rows [copy, Some(stream)];
    cuMemPrefetchAsync | cuMemPrefetchAsync_ptsz:
        (address: Address, bytes: usize, device: c_int, stream: Handle)
        => streams::plain [stream];
    cuMemPrefetchAsync_v2 | cuMemPrefetchAsync_v2_ptsz:
        (address: Address, bytes: usize, location: CUmemLocation, flags: c_uint, stream: Handle)
        => streams::plain [stream];

    cuMemPrefetchBatchAsync | cuMemPrefetchBatchAsync_ptsz:
        (addresses: *const Address, sizes: *const usize, count: usize, places: *const c_void,
            first: *const usize, places_count: usize, flags: u64, stream: Handle)
        => streams::plain [stream];
    cuMemDiscardBatchAsync | cuMemDiscardBatchAsync_ptsz: (addresses: *const Address,
        sizes: *const usize, count: usize, flags: u64, stream: Handle)
        => copies::discard [addresses, sizes, count, stream];
    cuMemDiscardAndPrefetchBatchAsync | cuMemDiscardAndPrefetchBatchAsync_ptsz:
        (addresses: *const Address, sizes: *const usize, count: usize, places: *const c_void,
            first: *const usize, places_count: usize, flags: u64, stream: Handle)
        => copies::discard [addresses, sizes, count, stream];
    cuGraphUpload | cuGraphUpload_ptsz: (exec: Handle, stream: Handle) => streams::plain [stream];

    cuMemMap: (address: Address, bytes: usize, offset: usize, memory: u64, flags: u64)
        => memory::map [address, bytes];
    cuMemUnmap: (address: Address, bytes: usize) => memory::unmap [address, bytes];
    cuGreenCtxCreate: (green: *mut Handle, resources: Handle, device: c_int, flags: c_uint)
        => streams::green [green, device];
    cuCtxFromGreenCtx: (context: *mut Handle, green: Handle) => streams::context_from_green [context, green];
    cuGreenCtxStreamCreate:
        (stream: *mut Handle, green: Handle, flags: c_uint, priority: c_int)
        => streams::create_green [stream, green, flags];
    cuStreamBeginCaptureToGraph | cuStreamBeginCaptureToGraph_ptsz:
        (stream: Handle, graph: Handle, after: *const Handle, edges: *const c_void, count: usize,
            mode: c_uint)
        => streams::capture_into [stream];
    cuStreamBeginRecaptureToGraph | cuStreamBeginRecaptureToGraph_ptsz:
        (stream: Handle, mode: c_uint, graph: Handle, function: *const c_void, data: *const c_void)
        => streams::capture_into [stream];

    cuMemsetD8Async | cuMemsetD8Async_ptsz: (to: Address, value: u8, count: usize, stream: Handle)
        => copies::set [Block::device(to), (value.into(), 1), [count, 1], Some(stream)];
    cuMemsetD16Async | cuMemsetD16Async_ptsz: (to: Address, value: u16, count: usize, stream: Handle)
        => copies::set [Block::device(to), (value.into(), 2), [count, 1], Some(stream)];
    cuMemsetD32Async | cuMemsetD32Async_ptsz: (to: Address, value: u32, count: usize, stream: Handle)
        => copies::set [Block::device(to), (value, 4), [count, 1], Some(stream)];
    cuMemsetD8_v2 | cuMemsetD8_v2_ptds: (to: Address, value: u8, count: usize)
        => copies::set [Block::device(to), (value.into(), 1), [count, 1], None];
    cuMemsetD16_v2 | cuMemsetD16_v2_ptds: (to: Address, value: u16, count: usize)
        => copies::set [Block::device(to), (value.into(), 2), [count, 1], None];
    cuMemsetD32_v2 | cuMemsetD32_v2_ptds: (to: Address, value: u32, count: usize)
        => copies::set [Block::device(to), (value, 4), [count, 1], None];

    cuMemcpy2D_v2 | cuMemcpy2D_v2_ptds, cuMemcpy2DUnaligned_v2 | cuMemcpy2DUnaligned_v2_ptds: (copy: *const CUDA_MEMCPY2D)
        => copies::rows [copy, None];
    cuMemcpy2DAsync_v2 | cuMemcpy2DAsync_v2_ptsz: (copy: *const CUDA_MEMCPY2D,
        stream: Handle)
        => copies::rows [copy, Some(stream)];
    cuMemcpy3D_v2 | cuMemcpy3D_v2_ptds: (copy: *const CUDA_MEMCPY3D)
        => copies::rows [copy, None];
    cuMemcpy3DAsync_v2 | cuMemcpy3DAsync_v2_ptsz: (copy: *const CUDA_MEMCPY3D,
        stream: Handle)
        => copies::rows [copy, Some(stream)];
    cuMemcpyPeer | cuMemcpyPeer_ptds: (to: Address, to_context: Handle, from: Address,
        from_context: Handle, bytes: usize)
        => copies::peer [[Block::device(to), Block::device(from)], [bytes, 1, 1],
            [to_context, from_context]];
    cuMemcpyPeerAsync | cuMemcpyPeerAsync_ptsz: (to: Address, to_context: Handle, from: Address,
        from_context: Handle, bytes: usize, stream: Handle)
        => copies::copy [[Block::device(to), Block::device(from)], [bytes, 1, 1], Some(stream)];
    cuMemsetD2D8_v2 | cuMemsetD2D8_v2_ptds: (to: Address, pitch: usize, value: u8,
        width: usize, height: usize)
        => copies::set [Block::rows(to, pitch), (value.into(), 1), [width, height], None];
    cuMemsetD2D16_v2 | cuMemsetD2D16_v2_ptds: (to: Address, pitch: usize, value: u16,
        width: usize, height: usize)
        => copies::set [Block::rows(to, pitch), (value.into(), 2), [width, height], None];
    cuMemsetD2D32_v2 | cuMemsetD2D32_v2_ptds: (to: Address, pitch: usize, value: u32,
        width: usize, height: usize)
        => copies::set [Block::rows(to, pitch), (value, 4), [width, height], None];
    cuMemsetD2D8Async | cuMemsetD2D8Async_ptsz: (to: Address, pitch: usize, value: u8, width: usize,
        height: usize, stream: Handle)
        => copies::set [Block::rows(to, pitch), (value.into(), 1), [width, height], Some(stream)];
    cuMemsetD2D16Async | cuMemsetD2D16Async_ptsz: (to: Address, pitch: usize, value: u16,
        width: usize, height: usize, stream: Handle)
        => copies::set [Block::rows(to, pitch), (value.into(), 2), [width, height], Some(stream)];
    cuMemsetD2D32Async | cuMemsetD2D32Async_ptsz: (to: Address, pitch: usize, value: u32,
        width: usize, height: usize, stream: Handle)
        => copies::set [Block::rows(to, pitch), (value, 4), [width, height], Some(stream)];

    cuStreamBatchMemOp | cuStreamBatchMemOp_ptsz,
        cuStreamBatchMemOp_v2 | cuStreamBatchMemOp_v2_ptsz: (stream: Handle, count: c_uint, operations: *const CUstreamBatchMemOpParams,
        flags: c_uint)
        => values::batch [stream, count, operations];
    cuGraphRetainUserObject: (graph: Handle, object: Handle, count: c_uint, flags: c_uint)
        => user_objects::retain [graph, object];
    cuStreamWriteValue32 | cuStreamWriteValue32_ptsz,
        cuStreamWriteValue32_v2 | cuStreamWriteValue32_v2_ptsz: (stream: Handle, to: Address, value: u32, flags: c_uint)
        => values::apply [stream, &[Value::write(to, 4, value.into())]];
    cuStreamWriteValue64 | cuStreamWriteValue64_ptsz,
        cuStreamWriteValue64_v2 | cuStreamWriteValue64_v2_ptsz: (stream: Handle, to: Address, value: u64, flags: c_uint)
        => values::apply [stream, &[Value::write(to, 8, value)]];
    cuStreamWaitValue32 | cuStreamWaitValue32_ptsz,
        cuStreamWaitValue32_v2 | cuStreamWaitValue32_v2_ptsz: (stream: Handle, at: Address, value: u32, flags: c_uint)
        => values::apply [stream, &[Value::wait(at, 4, value.into(), flags)]];
    cuStreamWaitValue64 | cuStreamWaitValue64_ptsz,
        cuStreamWaitValue64_v2 | cuStreamWaitValue64_v2_ptsz: (stream: Handle, at: Address, value: u64, flags: c_uint)
        => values::apply [stream, &[Value::wait(at, 8, value, flags)]];

    cuLaunchKernel | cuLaunchKernel_ptsz: (function: Handle, grid_x: c_uint, grid_y: c_uint,
        grid_z: c_uint, block_x: c_uint, block_y: c_uint, block_z: c_uint, shared: c_uint,
        stream: Handle, parameters: *const Handle, extra: *const Handle)
        => kernels::launch [(function, [grid_x, grid_y, grid_z, block_x, block_y, block_z]), stream,
            parameters, extra];
    cuLaunchCooperativeKernel | cuLaunchCooperativeKernel_ptsz: (function: Handle, grid_x: c_uint,
        grid_y: c_uint, grid_z: c_uint, block_x: c_uint, block_y: c_uint, block_z: c_uint,
        shared: c_uint, stream: Handle, parameters: *const Handle)
        => kernels::launch [(function, [grid_x, grid_y, grid_z, block_x, block_y, block_z]), stream,
            parameters, null()];
    cuLaunchKernelEx | cuLaunchKernelEx_ptsz: (config: *const CUlaunchConfig, function: Handle,
        parameters: *const Handle, extra: *const Handle)
        => kernels::launch_ex [config, function, parameters, extra];

    cuIpcGetEventHandle: (descriptor: *mut c_void, event: Handle) => events::exported [event];
    cuIpcOpenEventHandle: (event: *mut Handle, descriptor: Bytes) => events::imported [event];
    cuIpcGetMemHandle, cuMemPoolExportPointer: (descriptor: *mut c_void, address: Address)
        => memory::exported [address];
    cuMemPoolImportPointer: (address: *mut Address, pool: Handle, descriptor: *mut c_void)
        => memory::imported [address];
    cuIpcOpenMemHandle, cuIpcOpenMemHandle_v2: (address: *mut Address, descriptor: Bytes,
        flags: c_uint)
        => memory::imported [address];
    cuIpcCloseMemHandle: (address: Address) => memory::closed [address];
    cuMemAllocPitch_v2: (address: *mut Address, pitch: *mut usize, width: usize,
        height: usize, element: c_uint)
        => memory::allocate_rows [address, pitch, height];
    cuGraphInstantiate, cuGraphInstantiate_v2: (exec: *mut Handle, graph: Handle, node: *mut Handle,
        log: *mut c_char, size: usize)
        => graphs::instantiate [exec, graph, 0];
    cuGraphInstantiateWithParams | cuGraphInstantiateWithParams_ptsz: (exec: *mut Handle,
        graph: Handle, settings: *const CUDA_GRAPH_INSTANTIATE_PARAMS)
        => graphs::instantiate_with [exec, graph, settings];
    cuGraphClone: (clone: *mut Handle, graph: Handle) => graphs::duplicate [clone, graph];
    cuGraphExecUpdate_v2: (exec: Handle, graph: Handle, result: *mut c_void)
        => graphs::update [exec, graph];
    cuGraphExecUpdate:
        (exec: Handle, graph: Handle, node: *mut Handle, result: *mut c_uint)
        => graphs::update [exec, graph];
    cuGraphHostNodeGetParams: (node: Handle, params: *mut CUDA_HOST_NODE_PARAMS)
        => hosts::of_node [params];
    cuGraphNodeGetParams: (node: Handle, params: *mut NodeParams) => hosts::of_any_node [params];
    cuGraphExecKernelNodeSetParams:
        (exec: Handle, node: Handle, params: *const CUDA_KERNEL_NODE_PARAMS_v1)
        => graphs::set_kernel [exec, node, params];
    cuGraphExecKernelNodeSetParams_v2:
        (exec: Handle, node: Handle, params: *const CUDA_KERNEL_NODE_PARAMS_v2)
        => graphs::set_kernel [exec, node, params];
    cuGraphExecMemcpyNodeSetParams:
        (exec: Handle, node: Handle, params: *const CUDA_MEMCPY3D, context: Handle)
        => graphs::set_copy [exec, node, params];
    cuGraphExecMemsetNodeSetParams:
        (exec: Handle, node: Handle, params: *const CUDA_MEMSET_NODE_PARAMS, context: Handle)
        => graphs::set_memset [exec, node, params];
    cuGraphNodeSetEnabled: (exec: Handle, node: Handle, enabled: c_uint)
        => graphs::set_enabled [exec, node, enabled];
    cuGraphInstantiateWithFlags: (exec: *mut Handle, graph: Handle, flags: u64)
        => graphs::instantiate [exec, graph, flags];
    cuGraphDestroyNode: (node: Handle) => graphs::destroy_node [node];
    cuGraphExecDestroy: (exec: Handle) => graphs::destroy_exec [exec];
    cuGraphDestroy: (graph: Handle) => graphs::destroy [graph];
    cuGraphLaunch | cuGraphLaunch_ptsz: (exec: Handle, stream: Handle)
        => graphs::launch [exec, stream];
}
