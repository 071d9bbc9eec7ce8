//! Stream capture.

use crate::abi::*;
use crate::arg::{Ptr, StreamArg};
use crate::engine::HostCall;
use crate::entry::Call;
use crate::machine::State;
use crate::memory::MemoryWork;

pub(crate) type CaptureKey = u32;

/// Where in a capture an event was recorded.
#[derive(Clone, Debug)]
pub(crate) struct Mark {}

pub(crate) struct Captures {}

impl Captures {
    pub(crate) const fn new() -> Self {
        Self {}
    }
}

impl State {
    pub(crate) fn end_captures_of(&mut self, _context: u32) {}
    pub(crate) fn refuse_context_in_capture(&mut self, _call: &Call, _context: u32) -> Answer {
        Ok(())
    }
    pub(crate) fn refuse_stream_in_capture(&mut self, _call: &Call, _stream: u32) -> Answer {
        Ok(())
    }
    pub(crate) fn refuse_event_in_capture(&mut self, _call: &Call, _event: u32) -> Answer {
        Ok(())
    }
    pub(crate) fn refuse_callback_in_capture(&mut self, _stream: u32) -> Answer {
        Ok(())
    }
    pub(crate) fn refuse_value_in_capture(&mut self, _stream: u32) -> Answer {
        Ok(())
    }
    pub(crate) fn invalidate_captures_of(&mut self, _context: u32) -> Answer {
        Ok(())
    }
    pub(crate) fn leave_capture(&mut self, _stream: u32) {}
    pub(crate) fn captured_wait(&mut self, _: &Call, _: u32, _: u32, _: bool) -> Result<bool, CUresult> {
        Ok(false)
    }
    pub(crate) fn captured_record(&mut self, _: &Call, _: u32, _: u32, _: bool) -> Result<bool, CUresult> {
        Ok(false)
    }
    pub(crate) fn captured_host(&mut self, _: &Call, _: u32, _: HostCall) -> Result<bool, CUresult> {
        Ok(false)
    }
    pub(crate) fn captured_memory(&mut self, _: &Call, _: u32, _: &MemoryWork) -> Result<bool, CUresult> {
        Ok(false)
    }
    pub(crate) fn captured_code(&self, _: &Mark) -> CUresult {
        INVALID_VALUE
    }
}

pub(crate) fn stream_is_capturing(call: &Call, stream: StreamArg, status: Ptr<CUstreamCaptureStatus>) -> Answer {
    let mut state = call.ready()?;
    status.required()?;
    state.stream(call, stream)?;
    status.put(CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE)
}
