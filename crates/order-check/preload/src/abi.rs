//! Checks that hooks, and questions to the driver, have the types of the driver's functions.
//!
//! A hook has handles and addresses as numbers: it looks nothing up through them. So its type is
//! another one than that of `wrapper.h` and `wrapper-more.h`, and must only be passed in the same
//! way. What does not fit does not compile.

use core::ffi::c_void;

use cuda_events::sys::more::{
    CUDA_ARRAY3D_DESCRIPTOR, CUDA_EXTERNAL_MEMORY_BUFFER_DESC, CUDA_GRAPH_INSTANTIATE_PARAMS,
    CUDA_HOST_NODE_PARAMS, CUDA_KERNEL_NODE_PARAMS_v1, CUDA_KERNEL_NODE_PARAMS_v2, CUDA_MEMCPY2D,
    CUDA_MEMCPY3D, CUDA_MEMCPY3D_BATCH_OP, CUDA_MEMCPY3D_PEER, CUDA_MEMSET_NODE_PARAMS,
    CUgraphRecaptureCallback, CUhostFn, CUipcEventHandle, CUipcMemHandle, CUlaunchConfig,
    CUmemLocation, CUmemcpyAttributes, CUstreamBatchMemOpParams, CUstreamCallback,
};

use crate::call::{Address, Bytes, Callback, Code, Function, Handle};

cuda_events::__passing!(returns Code);

/// Compares the type of a function with that of the driver's function of this exported name.
macro_rules! compare {
    ($name:ident is $own:expr) => {
        const _: () = $crate::abi::is::<_, cuda_events::sys::more::types::$name>($own);
    };
    ($name:ident $own:ty) => {
        const _: () = $crate::abi::is_called_as::<$own, cuda_events::sys::more::types::$name>();
    };
}

/// The name as a C string.
macro_rules! name {
    ($name:ident) => {
        const {
            match core::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes())
            {
                Ok(name) => name,
                Err(_) => c"",
            }
        }
    };
}

pub(crate) use {compare, name};

cuda_events::__passing! { structures
    CUDA_ARRAY3D_DESCRIPTOR, CUDA_EXTERNAL_MEMORY_BUFFER_DESC, CUDA_GRAPH_INSTANTIATE_PARAMS,
    CUDA_HOST_NODE_PARAMS, CUDA_KERNEL_NODE_PARAMS_v1, CUDA_KERNEL_NODE_PARAMS_v2, CUDA_MEMCPY2D,
    CUDA_MEMCPY3D, CUDA_MEMCPY3D_BATCH_OP, CUDA_MEMCPY3D_PEER, CUDA_MEMSET_NODE_PARAMS,
    CUlaunchConfig, CUmemLocation, CUmemcpyAttributes, CUstreamBatchMemOpParams,
}

// Functions of the program, and bytes.
cuda_events::__passing! { types
    Function: CUhostFn, Callback: CUstreamCallback, *const c_void: CUgraphRecaptureCallback,
    Bytes: CUipcEventHandle, Bytes: CUipcMemHandle,
}

/// A handle, an address and what has one are numbers.
impl<T> PassedAs<*mut T> for Handle {}
impl<T> PassedAs<*const T> for Handle {}
impl<T> PassedAs<*mut T> for Address {}
impl<T> PassedAs<*const T> for Address {}
