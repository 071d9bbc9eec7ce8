//! The result codes by name.
//!
//! The driver has names for its codes too, but it gives none once it is shutting down, and none for codes newer than
//! itself.

use core::fmt;

use super::bindings::CUresult;

macro_rules! names {
    ($($name:ident)*) => {
        impl CUresult {
            /// The code's name in `cuda.h`, such as `CUDA_ERROR_INVALID_HANDLE`; none for a code that CUDA 13.5 does
            /// not have.
            pub const fn name(self) -> Option<&'static str> {
                match self {
                    $(Self::$name => Some(stringify!($name)),)*
                    _ => None,
                }
            }
        }
    };
}

names! {
    CUDA_SUCCESS
    CUDA_ERROR_INVALID_VALUE
    CUDA_ERROR_OUT_OF_MEMORY
    CUDA_ERROR_NOT_INITIALIZED
    CUDA_ERROR_DEINITIALIZED
    CUDA_ERROR_PROFILER_DISABLED
    CUDA_ERROR_PROFILER_NOT_INITIALIZED
    CUDA_ERROR_PROFILER_ALREADY_STARTED
    CUDA_ERROR_PROFILER_ALREADY_STOPPED
    CUDA_ERROR_STUB_LIBRARY
    CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER
    CUDA_ERROR_DEVICE_UNAVAILABLE
    CUDA_ERROR_MULTICAST_RESOURCE_FULL
    CUDA_ERROR_NO_DEVICE
    CUDA_ERROR_INVALID_DEVICE
    CUDA_ERROR_DEVICE_NOT_LICENSED
    CUDA_ERROR_INVALID_IMAGE
    CUDA_ERROR_INVALID_CONTEXT
    CUDA_ERROR_CONTEXT_ALREADY_CURRENT
    CUDA_ERROR_MAP_FAILED
    CUDA_ERROR_UNMAP_FAILED
    CUDA_ERROR_ARRAY_IS_MAPPED
    CUDA_ERROR_ALREADY_MAPPED
    CUDA_ERROR_NO_BINARY_FOR_GPU
    CUDA_ERROR_ALREADY_ACQUIRED
    CUDA_ERROR_NOT_MAPPED
    CUDA_ERROR_NOT_MAPPED_AS_ARRAY
    CUDA_ERROR_NOT_MAPPED_AS_POINTER
    CUDA_ERROR_ECC_UNCORRECTABLE
    CUDA_ERROR_UNSUPPORTED_LIMIT
    CUDA_ERROR_CONTEXT_ALREADY_IN_USE
    CUDA_ERROR_PEER_ACCESS_UNSUPPORTED
    CUDA_ERROR_INVALID_PTX
    CUDA_ERROR_INVALID_GRAPHICS_CONTEXT
    CUDA_ERROR_NVLINK_UNCORRECTABLE
    CUDA_ERROR_JIT_COMPILER_NOT_FOUND
    CUDA_ERROR_UNSUPPORTED_PTX_VERSION
    CUDA_ERROR_JIT_COMPILATION_DISABLED
    CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY
    CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC
    CUDA_ERROR_CONTAINED
    CUDA_ERROR_INSUFFICIENT_LOADER_VERSION
    CUDA_ERROR_INVALID_SOURCE
    CUDA_ERROR_FILE_NOT_FOUND
    CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND
    CUDA_ERROR_SHARED_OBJECT_INIT_FAILED
    CUDA_ERROR_OPERATING_SYSTEM
    CUDA_ERROR_INVALID_HANDLE
    CUDA_ERROR_ILLEGAL_STATE
    CUDA_ERROR_LOSSY_QUERY
    CUDA_ERROR_NOT_FOUND
    CUDA_ERROR_NOT_READY
    CUDA_ERROR_ILLEGAL_ADDRESS
    CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES
    CUDA_ERROR_LAUNCH_TIMEOUT
    CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING
    CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED
    CUDA_ERROR_PEER_ACCESS_NOT_ENABLED
    CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE
    CUDA_ERROR_CONTEXT_IS_DESTROYED
    CUDA_ERROR_ASSERT
    CUDA_ERROR_TOO_MANY_PEERS
    CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED
    CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED
    CUDA_ERROR_HARDWARE_STACK_ERROR
    CUDA_ERROR_ILLEGAL_INSTRUCTION
    CUDA_ERROR_MISALIGNED_ADDRESS
    CUDA_ERROR_INVALID_ADDRESS_SPACE
    CUDA_ERROR_INVALID_PC
    CUDA_ERROR_LAUNCH_FAILED
    CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE
    CUDA_ERROR_TENSOR_MEMORY_LEAK
    CUDA_ERROR_NOT_PERMITTED
    CUDA_ERROR_NOT_SUPPORTED
    CUDA_ERROR_SYSTEM_NOT_READY
    CUDA_ERROR_SYSTEM_DRIVER_MISMATCH
    CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE
    CUDA_ERROR_MPS_CONNECTION_FAILED
    CUDA_ERROR_MPS_RPC_FAILURE
    CUDA_ERROR_MPS_SERVER_NOT_READY
    CUDA_ERROR_MPS_MAX_CLIENTS_REACHED
    CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED
    CUDA_ERROR_MPS_CLIENT_TERMINATED
    CUDA_ERROR_CDP_NOT_SUPPORTED
    CUDA_ERROR_CDP_VERSION_MISMATCH
    CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
    CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
    CUDA_ERROR_STREAM_CAPTURE_MERGE
    CUDA_ERROR_STREAM_CAPTURE_UNMATCHED
    CUDA_ERROR_STREAM_CAPTURE_UNJOINED
    CUDA_ERROR_STREAM_CAPTURE_ISOLATION
    CUDA_ERROR_STREAM_CAPTURE_IMPLICIT
    CUDA_ERROR_CAPTURED_EVENT
    CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD
    CUDA_ERROR_TIMEOUT
    CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE
    CUDA_ERROR_EXTERNAL_DEVICE
    CUDA_ERROR_INVALID_CLUSTER_SIZE
    CUDA_ERROR_FUNCTION_NOT_LOADED
    CUDA_ERROR_INVALID_RESOURCE_TYPE
    CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION
    CUDA_ERROR_KEY_ROTATION
    CUDA_ERROR_STREAM_DETACHED
    CUDA_ERROR_GRAPH_RECAPTURE_FAILURE
    CUDA_ERROR_FABRIC_NOT_READY
    CUDA_ERROR_UNKNOWN
}

/// The name and the number, `CUDA_ERROR_INVALID_HANDLE (400)`; for an unknown code `an unknown CUDA error (4242)`.
impl fmt::Display for CUresult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name().unwrap_or("an unknown CUDA error");
        write!(f, "{name} ({})", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::CUresult;

    #[test]
    fn every_bound_code_has_its_name() {
        let bindings = include_str!("bindings.rs");
        let (_, after) = bindings.split_once("impl CUresult {").expect("bindings.rs declares CUresult");
        let (constants, _) = after.split_once("\n}").expect("the block ends");
        let mut codes = 0;
        for constant in constants.split("pub const ").skip(1) {
            let (name, rest) = constant.split_once(':').expect("a constant has a type");
            let value: String = rest.chars().filter(char::is_ascii_digit).collect();
            let code = CUresult(value.parse().expect("a constant has a number"));
            assert_eq!(code.name(), Some(name));
            codes += 1;
        }
        assert!(codes > 100, "only {codes} codes were found in bindings.rs");
    }

    #[test]
    fn an_unknown_code_keeps_its_number() {
        assert_eq!(CUresult(4242).name(), None);
        assert_eq!(CUresult(4242).to_string(), "an unknown CUDA error (4242)");
        assert_eq!(CUresult(400).to_string(), "CUDA_ERROR_INVALID_HANDLE (400)");
    }
}
