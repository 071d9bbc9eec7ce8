//! NVIDIA's page of each entry point: the one place that knows an address.
//!
//! A line has the entry point, the CUDA version that introduced it and, if NVIDIA's page uses
//! another name, that name: after `is`, the name that the headers give to this entry point alone;
//! after `under`, a name that it shares with an older one. The name `PAGE` of a group stands for
//! `group__CUDA__PAGE.html`.
//!
//! An entry point without a line, a line without an entry point, and a version or a name that
//! differs from the typedef's are errors of the compiler.

/// The name that NVIDIA's page uses.
macro_rules! named {
    ($function:ident) => {
        stringify!($function)
    };
    ($function:ident $named:ident) => {
        stringify!($named)
    };
}

macro_rules! pages {
    ($($page:ident {
        $($function:ident $since:literal $(is $header:ident)? $(under $shared:ident)?;)*
    })*) => {
        /// The version of an entry point and the link to its page, as a part of a sentence. The
        /// fragment of the address makes the browser show the place with the name.
        macro_rules! page {
            $($(($function) => {
                concat!(
                    "since CUDA ",
                    stringify!($since),
                    ": [NVIDIA's page](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__",
                    stringify!($page),
                    ".html#:~:text=",
                    named!($function $($header)? $($shared)?),
                    ")",
                )
            };)*)*
        }

        /// The version of an entry point and the name on its page, to compare with the typedef.
        macro_rules! page_facts {
            $($(($function) => {
                (stringify!($since), named!($function $($header)? $($shared)?))
            };)*)*
        }

        /// The lines' entry points, each of which exists, and the names for documentation.
        macro_rules! calls {
            () => {
                $($(const _: Function = Function::$function;)*)*

                /// The driver's calls under the names that documentation uses. A module that
                /// imports them can write the name of a call in brackets, and it is a link.
                #[cfg(doc)]
                pub(crate) mod calls {
                    pub(crate) use super::Function::*;
                    $($($(pub(crate) use super::Function::$function as $header;)?)*)*
                }
            };
        }
    };
}

pages! {
    INITIALIZE {
        cuInit 2.0;
    }
    VERSION {
        cuDriverGetVersion 2.2;
    }
    DRIVER__ENTRY__POINT {
        cuGetProcAddress 11.3;
        cuGetProcAddress_v2 12.0 under cuGetProcAddress;
    }
    ERROR {
        cuGetErrorName 6.0;
        cuGetErrorString 6.0;
    }
    DEVICE {
        cuDeviceGet 2.0;
        cuDeviceGetCount 2.0;
        cuDeviceGetName 2.0;
        cuDeviceGetAttribute 2.0;
        cuDeviceTotalMem_v2 3.2 is cuDeviceTotalMem;
        cuDeviceGetUuid 9.2;
        cuDeviceGetUuid_v2 11.4 under cuDeviceGetUuid;
        cuDeviceGetLuid 10.0;
    }
    PRIMARY__CTX {
        cuDevicePrimaryCtxRetain 7.0;
        cuDevicePrimaryCtxRelease_v2 11.0 is cuDevicePrimaryCtxRelease;
        cuDevicePrimaryCtxGetState 7.0;
    }
    CTX {
        cuCtxCreate_v2 3.2 is cuCtxCreate;
        cuCtxCreate_v4 12.5 under cuCtxCreate;
        cuCtxDestroy_v2 4.0 is cuCtxDestroy;
        cuCtxGetCurrent 4.0;
        cuCtxSetCurrent 4.0;
        cuCtxPushCurrent_v2 4.0 is cuCtxPushCurrent;
        cuCtxPopCurrent_v2 4.0 is cuCtxPopCurrent;
        cuCtxGetDevice 2.0;
        cuCtxGetDevice_v2 13.0 under cuCtxGetDevice;
        cuCtxSynchronize 2.0;
        cuCtxSynchronize_v2 13.0 under cuCtxSynchronize;
        cuCtxGetStreamPriorityRange 5.5;
        cuCtxGetFlags 7.0;
        cuCtxGetId 12.0;
        cuCtxRecordEvent 12.5;
        cuCtxWaitEvent 12.5;
    }
    GREEN__CONTEXTS {
        cuDeviceGetDevResource 12.4;
        cuCtxGetDevResource 12.4;
        cuGreenCtxGetDevResource 12.4;
        cuDevSmResourceSplitByCount 12.4;
        cuDevResourceGenerateDesc 12.4;
        cuGreenCtxCreate 12.4;
        cuGreenCtxDestroy 12.4;
        cuCtxFromGreenCtx 12.4;
        cuGreenCtxRecordEvent 12.4;
        cuGreenCtxWaitEvent 12.4;
        cuGreenCtxStreamCreate 12.5;
        cuStreamGetGreenCtx 12.4;
        cuStreamGetDevResource 13.1;
    }
    EVENT {
        cuEventCreate 2.0;
        cuEventDestroy_v2 4.0 is cuEventDestroy;
        cuEventRecord 2.0;
        cuEventRecordWithFlags 11.1;
        cuEventQuery 2.0;
        cuEventSynchronize 2.0;
        cuEventElapsedTime 2.0;
        cuEventElapsedTime_v2 12.8 under cuEventElapsedTime;
    }
    MEM {
        cuIpcGetEventHandle 4.1;
        cuIpcOpenEventHandle 4.1;
        cuMemGetInfo_v2 3.2 is cuMemGetInfo;
        cuMemAlloc_v2 3.2 is cuMemAlloc;
        cuMemFree_v2 3.2 is cuMemFree;
        cuIpcGetMemHandle 4.1;
        cuIpcOpenMemHandle_v2 11.0 is cuIpcOpenMemHandle;
        cuIpcCloseMemHandle 4.1;
        cuMemHostAlloc 2.2;
        cuMemFreeHost 2.0;
        cuMemHostRegister_v2 6.5 is cuMemHostRegister;
        cuMemHostGetDevicePointer_v2 3.2 is cuMemHostGetDevicePointer;
        cuMemsetD8Async 3.2;
        cuMemsetD32Async 3.2;
        cuMemcpyHtoDAsync_v2 3.2 is cuMemcpyHtoDAsync;
        cuMemcpyDtoHAsync_v2 3.2 is cuMemcpyDtoHAsync;
        cuMemcpyDtoDAsync_v2 3.2 is cuMemcpyDtoDAsync;
    }
    STREAM {
        cuStreamCreate 2.0;
        cuStreamCreateWithPriority 5.5;
        cuStreamDestroy_v2 4.0 is cuStreamDestroy;
        cuStreamQuery 2.0;
        cuStreamSynchronize 2.0;
        cuStreamWaitEvent 3.2;
        cuStreamGetPriority 5.5;
        cuStreamGetFlags 5.5;
        cuStreamGetId 12.0;
        cuStreamGetCtx 9.2;
        cuStreamGetCtx_v2 12.5 under cuStreamGetCtx;
        cuStreamGetDevice 12.8;
        cuStreamGetAttribute 11.0;
        cuStreamSetAttribute 11.0;
        cuStreamCopyAttributes 11.0;
        cuStreamAddCallback 5.0;
        cuStreamAttachMemAsync 6.0;
        cuStreamBeginCapture_v2 10.1 is cuStreamBeginCapture;
        cuStreamBeginCaptureToGraph 12.3;
        cuStreamBeginRecaptureToGraph 13.3;
        cuStreamBeginCaptureToCig 13.1;
        cuStreamEndCapture 10.0;
        cuStreamEndCaptureToCig 13.1;
        cuStreamIsCapturing 10.0;
        cuStreamGetCaptureInfo 10.1;
        cuStreamGetCaptureInfo_v2 11.3 under cuStreamGetCaptureInfo;
        cuStreamGetCaptureInfo_v3 12.3 under cuStreamGetCaptureInfo;
        cuStreamUpdateCaptureDependencies 11.3;
        cuStreamUpdateCaptureDependencies_v2 12.3 under cuStreamUpdateCaptureDependencies;
        cuThreadExchangeStreamCaptureMode 10.1;
    }
    EXEC {
        cuLaunchHostFunc 10.0;
        cuLaunchHostFunc_v2 13.1 under cuLaunchHostFunc;
    }
    MEMOP {
        cuStreamWaitValue32 8.0;
        cuStreamWaitValue32_v2 11.7 under cuStreamWaitValue32;
        cuStreamWaitValue64 9.0;
        cuStreamWaitValue64_v2 11.7 under cuStreamWaitValue64;
        cuStreamWriteValue32 8.0;
        cuStreamWriteValue32_v2 11.7 under cuStreamWriteValue32;
        cuStreamWriteValue64 9.0;
        cuStreamWriteValue64_v2 11.7 under cuStreamWriteValue64;
        cuStreamBatchMemOp 8.0;
        cuStreamBatchMemOp_v2 11.7 under cuStreamBatchMemOp;
    }
    GRAPH {
        cuGraphCreate 10.0;
        cuGraphInstantiate_v2 11.0 is cuGraphInstantiate;
        cuGraphInstantiateWithFlags 11.4;
        cuGraphLaunch 10.0;
        cuGraphDestroy 10.0;
        cuGraphExecDestroy 10.0;
        cuGraphAddEventRecordNode 11.1;
        cuGraphAddEventWaitNode 11.1;
        cuGraphEventRecordNodeGetEvent 11.1;
        cuGraphEventRecordNodeSetEvent 11.1;
        cuGraphEventWaitNodeGetEvent 11.1;
        cuGraphEventWaitNodeSetEvent 11.1;
        cuGraphExecEventRecordNodeSetEvent 11.1;
        cuGraphExecEventWaitNodeSetEvent 11.1;
    }
    EXTRES__INTEROP {
        cuImportExternalSemaphore 10.0;
        cuDestroyExternalSemaphore 10.0;
        cuSignalExternalSemaphoresAsync 10.0;
        cuWaitExternalSemaphoresAsync 10.0;
        cuImportExternalMemory 10.0;
        cuExternalMemoryGetMappedBuffer 10.0;
        cuDestroyExternalMemory 10.0;
    }
}

/// Whether a line's version, such as `11.4`, is the typedef's, such as 11040.
#[allow(
    clippy::indexing_slicing,
    reason = "called in const blocks only, where a bad index does not compile"
)]
#[allow(dead_code, reason = "Rust 1.88 does not count uses in unnamed constants")]
pub(crate) const fn is_version(since: &str, version: u32) -> bool {
    let since = since.as_bytes();
    let (mut at, mut major, mut number) = (0, 0, 0);
    while at < since.len() {
        if since[at] == b'.' {
            (major, number) = (number, 0);
        } else {
            number = number * 10 + (since[at] - b'0') as u32;
        }
        at += 1;
    }
    major * 1000 + number * 10 == version
}

/// Whether both names are the same.
#[allow(
    clippy::indexing_slicing,
    reason = "called in const blocks only, where a bad index does not compile"
)]
#[allow(dead_code, reason = "Rust 1.88 does not count uses in unnamed constants")]
pub(crate) const fn is_name(named: &str, base: &str) -> bool {
    let (named, base) = (named.as_bytes(), base.as_bytes());
    let mut at = 0;
    while at < named.len() && at < base.len() && named[at] == base[at] {
        at += 1;
    }
    at == named.len() && at == base.len()
}

const _: () = {
    assert!(is_version("11.4", 11040) && is_version("2.0", 2000));
    assert!(!is_version("11.4", 11050) && !is_version("11.4", 12040));
    assert!(is_name("cuInit", "cuInit"));
    assert!(!is_name("cuInit", "cuInit_v2") && !is_name("cuInis", "cuInit"));
};
