//! Advice for each code of the driver: what it means or where it probably comes from, what to do, and
//! whether the process can go on.

use core::fmt;

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

/// What a text says after the code.
pub(super) enum Advice {
    /// What the code itself means, by NVIDIA's description of it.
    Meaning(&'static str),
    /// The usual cause of the code in this call. There may be others.
    Cause(&'static str),
}

/// What a text has before a cause that the driver did not name.
pub(super) const PROBABLY: &str = "probably ";

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Meaning(text) => f.write_str(text),
            Self::Cause(text) => write!(f, "{PROBABLY}{text}"),
        }
    }
}

/// The advice for a code. A cause in this call comes before the meaning, as it says more.
pub(super) fn advice(function: Function, code: CUresult) -> Option<Advice> {
    let cause = cause(function, code).or_else(|| capture_cause(function, code));
    cause.map(Advice::Cause).or_else(|| meaning(code).map(Advice::Meaning))
}

/// What the code means, whatever the call.
fn meaning(code: CUresult) -> Option<&'static str> {
    Some(match code {
        CUresult::CUDA_ERROR_DEINITIALIZED => {
            "the driver has ended: the process is ending, or, with a driver in software, the \
             SoftDriver was dropped before the objects that use it"
        }
        CUresult::CUDA_ERROR_STUB_LIBRARY => {
            "this is the CUDA toolkit's stub library, which is for linking only; install the \
             NVIDIA display driver"
        }
        CUresult::CUDA_ERROR_NO_DEVICE => {
            "no CUDA device is visible; look at nvidia-smi and at CUDA_VISIBLE_DEVICES; run \
             cuda-events-doctor for details"
        }
        CUresult::CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER => "update the NVIDIA display driver",
        CUresult::CUDA_ERROR_SYSTEM_NOT_READY => {
            "the machine is not ready for CUDA; one with NVSwitch needs nvidia-fabricmanager of \
             the driver's own version"
        }
        CUresult::CUDA_ERROR_SYSTEM_DRIVER_MISMATCH => {
            "the driver library does not fit the kernel module; after a driver update, reboot, and \
             start containers again; run cuda-events-doctor for details"
        }
        CUresult::CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE => {
            "the library belongs to a forward-compatibility package (cuda-compat), which this \
             device does not support; take its folder out of the library search path; run \
             cuda-events-doctor for details"
        }
        CUresult::CUDA_ERROR_MPS_CLIENT_TERMINATED => {
            "the MPS server has ended this process's connection; only a new process can use CUDA \
             again"
        }
        code if is_sticky(code) => {
            "work on the device failed, and the context with it; only a new process can use CUDA \
             again"
        }
        code => return capture_meaning(code),
    })
}

/// The usual cause of a code in a call.
fn cause(function: Function, code: CUresult) -> Option<&'static str> {
    Some(match (function, code) {
        (_, CUresult::CUDA_ERROR_NOT_PERMITTED) => {
            "a host function made the call, and may make none; have another thread make it, when \
             the function asks it to"
        }
        (_, CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED) => {
            "other code has destroyed the context, or the raw handle is of another kind"
        }
        (_, CUresult::CUDA_ERROR_INVALID_HANDLE) => {
            "other code, or a raw handle, has destroyed the object; or the raw handle is of \
             another kind or context"
        }
        (Function::cuInit, CUresult::CUDA_ERROR_NOT_INITIALIZED) => {
            "this process was forked after other code used CUDA in it, and CUDA does not survive a \
             fork; if there was no fork, run cuda-events-doctor for details"
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
        (_, CUresult::CUDA_ERROR_DEVICE_UNAVAILABLE) => {
            "another process uses the device exclusively, or its compute mode prohibits CUDA; look \
             at nvidia-smi -q -d COMPUTE"
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
            "this process exported the event, and only another one can open it; or no context is \
             current on this thread, or other code destroyed it"
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
            "the event was last recorded in a capture that has ended; record it again, or capture \
             the record with record_external (a wrong argument of a raw call has the same code)"
        }
        (_, CUresult::CUDA_ERROR_INVALID_CONTEXT) => {
            "no context is current on this thread, or other code destroyed it"
        }
        _ => return None,
    })
}

/// The usual cause of a code of captures in a call.
fn capture_cause(function: Function, code: CUresult) -> Option<&'static str> {
    Some(match (function, code) {
        (
            Function::cuStreamBeginCapture_v2 | Function::cuStreamBeginCaptureToGraph,
            CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
        ) => "the stream is the legacy default stream, which cannot be captured",
        (
            Function::cuStreamBeginCapture_v2 | Function::cuStreamBeginCaptureToGraph,
            CUresult::CUDA_ERROR_ILLEGAL_STATE,
        ) => "the stream is already capturing, or another stream is capturing into this graph",
        (
            Function::cuStreamEndCapture
            | Function::cuStreamUpdateCaptureDependencies
            | Function::cuStreamUpdateCaptureDependencies_v2
            | Function::cuEventRecordWithFlags
            | Function::cuStreamWaitEvent,
            CUresult::CUDA_ERROR_ILLEGAL_STATE,
        ) => "the stream is not capturing",
        (Function::cuGraphLaunch, CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) => {
            "the stream is capturing, and a graph cannot be launched there; this call invalidated \
             the capture"
        }
        (
            Function::cuCtxRecordEvent | Function::cuCtxWaitEvent,
            CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
        ) => "a stream of the context is capturing; this call invalidated the capture",
        _ => return None,
    })
}

/// What the codes of captures mean.
fn capture_meaning(code: CUresult) -> Option<&'static str> {
    Some(match code {
        CUresult::CUDA_ERROR_CAPTURED_EVENT => {
            "the event was last recorded in a capture; only waits in that capture can use it until \
             it is recorded again outside"
        }
        CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED => {
            "a stream capture in progress does not allow this call; see CaptureMode and \
             ThreadCaptureMode"
        }
        CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED => {
            "an earlier call invalidated the stream's capture; end it, then capture again"
        }
        CUresult::CUDA_ERROR_STREAM_CAPTURE_MERGE => {
            "the event was recorded in another capture, and two captures cannot be joined"
        }
        CUresult::CUDA_ERROR_STREAM_CAPTURE_UNMATCHED => {
            "the capture began in another stream; end it in that stream"
        }
        CUresult::CUDA_ERROR_STREAM_CAPTURE_UNJOINED => {
            "the stream in which the capture began does not wait for all work of the other streams \
             in it"
        }
        CUresult::CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD => {
            "only the thread that began a capture can end it, unless its mode is relaxed"
        }
        CUresult::CUDA_ERROR_LOSSY_QUERY => {
            "the dependencies carry edge data, and a query older than CUDA 12.3 cannot return it"
        }
        CUresult::CUDA_ERROR_STREAM_CAPTURE_ISOLATION => {
            "a capturing stream can wait only for events of its own capture, unless the wait is \
             external"
        }
        CUresult::CUDA_ERROR_STREAM_CAPTURE_IMPLICIT => {
            "the legacy default stream cannot be used while a blocking stream captures"
        }
        _ => return None,
    })
}
