//! Advice for each code of the driver: what to do, and whether the process can go on.

use crate::sys::{CUresult, Function};

/// The one list of the codes after which CUDA no longer works in this process.
pub(super) fn is_sticky(code: CUresult) -> bool {
    matches!(
        code,
        CUresult::CUDA_ERROR_ECC_UNCORRECTABLE
            | CUresult::CUDA_ERROR_NVLINK_UNCORRECTABLE
            | CUresult::CUDA_ERROR_CONTAINED
            | CUresult::CUDA_ERROR_ILLEGAL_ADDRESS
            | CUresult::CUDA_ERROR_LAUNCH_TIMEOUT
            | CUresult::CUDA_ERROR_ASSERT
            | CUresult::CUDA_ERROR_HARDWARE_STACK_ERROR
            | CUresult::CUDA_ERROR_ILLEGAL_INSTRUCTION
            | CUresult::CUDA_ERROR_MISALIGNED_ADDRESS
            | CUresult::CUDA_ERROR_INVALID_ADDRESS_SPACE
            | CUresult::CUDA_ERROR_INVALID_PC
            | CUresult::CUDA_ERROR_LAUNCH_FAILED
            | CUresult::CUDA_ERROR_TENSOR_MEMORY_LEAK
            | CUresult::CUDA_ERROR_MPS_CLIENT_TERMINATED
            | CUresult::CUDA_ERROR_EXTERNAL_DEVICE
    )
}

/// The advice for a code, if the code alone or together with the call shows the cause.
pub(super) fn advice(function: Function, code: CUresult) -> Option<&'static str> {
    Some(match (function, code) {
        (_, CUresult::CUDA_ERROR_DEINITIALIZED) => {
            "the driver has ended: the process is ending, or, with a driver in software, the \
             SoftDriver was dropped before the objects that use it"
        }
        (_, CUresult::CUDA_ERROR_NOT_PERMITTED) => {
            "a host function may make no driver call; have another thread make it, when the \
             function asks it to"
        }
        (
            Function::cuEventDestroy_v2 | Function::cuStreamDestroy_v2,
            CUresult::CUDA_ERROR_INVALID_HANDLE,
        ) => {
            "the driver has no such object; other code, or a raw handle, may have destroyed it \
             before"
        }
        (_, CUresult::CUDA_ERROR_STUB_LIBRARY) => {
            "this is the CUDA toolkit's stub library, which is for linking only; install the \
                NVIDIA display driver"
        }
        (_, CUresult::CUDA_ERROR_NO_DEVICE) => {
            "no CUDA device is visible; look at nvidia-smi and at CUDA_VISIBLE_DEVICES; run \
             cuda-events-doctor for details"
        }
        (Function::cuInit, CUresult::CUDA_ERROR_NOT_INITIALIZED) => {
            "CUDA does not survive a fork; perhaps other code of this program used CUDA before \
             this process was forked"
        }
        (Function::cuInit, CUresult::CUDA_ERROR_INVALID_DEVICE) => {
            "a device that this process was given cannot be used; look at nvidia-smi -L and at \
                CUDA_VISIBLE_DEVICES"
        }
        (Function::cuInit, CUresult::CUDA_ERROR_UNKNOWN) => {
            "the driver does not reach its kernel module; run nvidia-modprobe -u -c 0, give the \
             container its devices (/dev/nvidia-uvm among them), or reboot; run cuda-events-doctor \
             for details"
        }
        (
            Function::cuInit,
            CUresult::CUDA_ERROR_OUT_OF_MEMORY | CUresult::CUDA_ERROR_OPERATING_SYSTEM,
        ) => {
            "the operating system refused a request of the driver; check this process's limits \
             (ulimit -v, ulimit -n) and those of its container or sandbox"
        }
        (
            Function::cuInit | Function::cuDevicePrimaryCtxRetain,
            CUresult::CUDA_ERROR_NOT_SUPPORTED,
        ) => {
            "this device or platform is not set up for CUDA; a virtual GPU needs a type, a licence \
             and settings with CUDA"
        }
        (Function::cuDevicePrimaryCtxRetain, CUresult::CUDA_ERROR_OUT_OF_MEMORY) => {
            "there is no room for the context, which takes some hundred megabytes of the device's \
             memory; nvidia-smi lists the processes that use it; check this process's limits \
             (ulimit -v) too"
        }
        (_, CUresult::CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER) => "update the NVIDIA display driver",
        (_, CUresult::CUDA_ERROR_DEVICE_UNAVAILABLE) => {
            "another process uses the device exclusively, or its compute mode prohibits CUDA; look \
             at nvidia-smi -q -d COMPUTE"
        }
        (_, CUresult::CUDA_ERROR_SYSTEM_NOT_READY) => {
            "the machine is not ready for CUDA; one with NVSwitch needs nvidia-fabricmanager of \
                the driver's own version"
        }
        (_, CUresult::CUDA_ERROR_SYSTEM_DRIVER_MISMATCH) => {
            "the driver library does not fit the kernel module; after a driver update, reboot, and \
             start containers again; run cuda-events-doctor for details"
        }
        (_, CUresult::CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE) => {
            "the library belongs to a forward-compatibility package (cuda-compat), which this \
             device does not support; take its folder out of the library search path; run \
             cuda-events-doctor for details"
        }
        (
            Function::cuIpcGetEventHandle
            | Function::cuEventCreate
            | Function::cuIpcOpenEventHandle,
            CUresult::CUDA_ERROR_NOT_SUPPORTED,
        ) => "this device or platform has no interprocess events (WSL, for one, has none)",
        (Function::cuIpcOpenEventHandle, CUresult::CUDA_ERROR_MAP_FAILED) => {
            "the exporting process has ended or belongs to another user, or the two processes do \
                not share /dev/shm and process ids"
        }
        (Function::cuIpcOpenEventHandle, CUresult::CUDA_ERROR_INVALID_CONTEXT) => {
            "an event cannot be opened in the process that exported it"
        }
        (
            Function::cuIpcGetEventHandle
            | Function::cuEventCreate
            | Function::cuIpcOpenEventHandle,
            CUresult::CUDA_ERROR_OUT_OF_MEMORY,
        ) => {
            "the device's memory, or the context's interprocess events (a few thousand), are used \
                up"
        }
        (
            Function::cuEventQuery
            | Function::cuEventSynchronize
            | Function::cuEventElapsedTime
            | Function::cuEventElapsedTime_v2
            | Function::cuStreamWaitEvent,
            CUresult::CUDA_ERROR_INVALID_VALUE,
        ) => {
            "the event was last recorded in a capture, and that capture has ended; record it \
             again, or capture the record with record_external"
        }
        (_, CUresult::CUDA_ERROR_INVALID_CONTEXT) => "no context is current on this thread",
        (_, CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED) => "the context was destroyed",
        (_, CUresult::CUDA_ERROR_CAPTURED_EVENT) => {
            "the event was last recorded in a capture; only waits in that capture can use it until \
             it is recorded again outside"
        }
        (
            Function::cuStreamBeginCapture_v2 | Function::cuStreamBeginCaptureToGraph,
            CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
        ) => "the legacy default stream cannot be captured",
        (
            Function::cuStreamBeginCapture_v2 | Function::cuStreamBeginCaptureToGraph,
            CUresult::CUDA_ERROR_ILLEGAL_STATE,
        ) => "the stream is already capturing, or another stream is capturing into this graph",
        (_, CUresult::CUDA_ERROR_MPS_CLIENT_TERMINATED) => {
            "the MPS server has ended this process's connection; only a new process can use CUDA \
             again"
        }
        (_, code) if is_sticky(code) => {
            "work on the device failed, and the context with it; only a new process can use CUDA \
             again"
        }
        _ => return capture_advice(function, code),
    })
}

/// The advice for the codes of captures.
fn capture_advice(function: Function, code: CUresult) -> Option<&'static str> {
    Some(match (function, code) {
        (
            Function::cuStreamEndCapture
            | Function::cuStreamUpdateCaptureDependencies
            | Function::cuStreamUpdateCaptureDependencies_v2
            | Function::cuEventRecordWithFlags
            | Function::cuStreamWaitEvent,
            CUresult::CUDA_ERROR_ILLEGAL_STATE,
        ) => "the stream is not capturing",
        (Function::cuGraphLaunch, CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) => {
            "a graph cannot be launched in a capturing stream; this call invalidated the capture"
        }
        (
            Function::cuCtxRecordEvent | Function::cuCtxWaitEvent,
            CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
        ) => "a stream of the context is capturing; this call invalidated the capture",
        (_, CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) => {
            "a stream capture in progress does not allow this call; see CaptureMode and \
                ThreadCaptureMode"
        }
        (_, CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED) => {
            "an earlier call invalidated the stream's capture; end it, then capture again"
        }
        (_, CUresult::CUDA_ERROR_STREAM_CAPTURE_MERGE) => {
            "the event was recorded in another capture, and two captures cannot be joined"
        }
        (_, CUresult::CUDA_ERROR_STREAM_CAPTURE_UNMATCHED) => {
            "the capture began in another stream; end it in that stream"
        }
        (_, CUresult::CUDA_ERROR_STREAM_CAPTURE_UNJOINED) => {
            "the stream in which the capture began does not wait for all work of the other streams \
                in it"
        }
        (_, CUresult::CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD) => {
            "only the thread that began a capture can end it, unless its mode is relaxed"
        }
        (_, CUresult::CUDA_ERROR_LOSSY_QUERY) => {
            "the dependencies carry edge data, and a query older than CUDA 12.3 cannot return it"
        }
        (_, CUresult::CUDA_ERROR_STREAM_CAPTURE_ISOLATION) => {
            "a capturing stream can wait only for events of its own capture, unless the wait is \
                external"
        }
        (_, CUresult::CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) => {
            "the legacy default stream cannot be used while a blocking stream captures"
        }
        _ => return None,
    })
}
