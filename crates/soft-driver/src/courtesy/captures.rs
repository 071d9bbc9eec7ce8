//! For programs that link to the oldest form of a capture.

use crate::abi::*;
use crate::arg::StreamArg;
use crate::capture::calls::stream_begin_capture;
use crate::machine::call_frame::CallFrame;

/// The form of CUDA 10.0, whose captures are global.
pub(crate) fn stream_begin_capture_v1(call: &CallFrame, stream: StreamArg) -> Answer {
    stream_begin_capture(call, stream, CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL)
}
