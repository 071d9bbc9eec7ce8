//! The answers of special times: in a forked child, in a host function, after the end of the
//! driver.

use crate::abi::*;
use crate::context::primary::released;
use crate::front::exports::Id;
use crate::machine::call_frame::{CallFrame, Words};
use crate::machine::config::Rules;
use crate::machine::switches::{FORKED, PRETEND_FORKED, SHUT_DOWN};

/// What is answered in special times, whatever the call is for.
pub(crate) fn special(call: &CallFrame, words: &Words) -> Option<CUresult> {
    let switches = &call.machine.switches;
    if switches.has(SHUT_DOWN) || !call.is_current() {
        return Some(DEINITIALIZED);
    }
    if switches.has(FORKED | PRETEND_FORKED)
        && let Some(code) = forked_answer(call, words)
    {
        return Some(code);
    }
    let refused =
        || call.machine.lock().config.rules == Rules::Strict || refused_in_host_function(call.id());
    (call.in_host_function() && refused()).then_some(NOT_PERMITTED)
}

/// What a host function may not call, as measured on the real driver; its contract forbids every
/// call.
pub(crate) fn refused_in_host_function(id: Id) -> bool {
    matches!(
        id,
        Id::cuCtxGetCurrent
            | Id::cuCtxSetCurrent
            | Id::cuCtxPushCurrent
            | Id::cuCtxPushCurrent_v2
            | Id::cuCtxPopCurrent
            | Id::cuCtxPopCurrent_v2
            | Id::cuDevicePrimaryCtxRetain
            | Id::cuCtxSynchronize
            | Id::cuCtxSynchronize_v2
            | Id::cuDeviceGet
            | Id::cuDeviceGetCount
            | Id::cuEventCreate
            | Id::cuStreamCreate
            | Id::cuStreamCreateWithPriority
            | Id::cuIpcGetEventHandle
    )
}

/// What asks about nothing that other calls change, so that it works before `cuInit` and in a
/// forked child.
fn asks_about_no_state(id: Id) -> bool {
    matches!(
        id,
        Id::cuDriverGetVersion
            | Id::cuGetErrorName
            | Id::cuGetErrorString
            | Id::cuGetProcAddress
            | Id::cuGetProcAddress_v2
            | Id::cuGetProcAddress_v2_ptsz
    )
}

/// Notes what the program gives back with a call that does no work.
pub(crate) fn given_back(call: &CallFrame, words: &Words) {
    match call.id() {
        Id::cuDevicePrimaryCtxRelease | Id::cuDevicePrimaryCtxRelease_v2 => {
            released(call, words.0[0] as usize, false);
        }
        Id::cuDevicePrimaryCtxReset | Id::cuDevicePrimaryCtxReset_v2 => {
            released(call, words.0[0] as usize, true);
        }
        Id::cuEventDestroy
        | Id::cuEventDestroy_v2
        | Id::cuStreamDestroy
        | Id::cuStreamDestroy_v2
        | Id::cuDestroyExternalSemaphore
        | Id::cuMemFree_v2
        | Id::cuMemFreeAsync
        | Id::cuMemFreeAsync_ptsz
        | Id::cuMemFreeHost
        | Id::cuMemHostUnregister => {
            if let Ok(mut state) = call.lock() {
                state.losses.give_up(words.0[0]);
            }
        }
        _ => {}
    }
}

/// What a child of `fork` answers on a driver that its parent initialised.
pub(crate) fn forked_answer(call: &CallFrame, words: &Words) -> Option<CUresult> {
    match call.id() {
        id if asks_about_no_state(id) => None,
        Id::cuStreamDestroy | Id::cuStreamDestroy_v2 => {
            let stream = words.0[0];
            let what = format!(
                "stream {stream:#x} is destroyed in a forked child, where the real driver crashes"
            );
            Some(call.machine.lock().misuses.undefined(call, &what, NOT_INITIALIZED))
        }
        Id::cuEventQuery
        | Id::cuEventSynchronize
        | Id::cuEventDestroy
        | Id::cuEventDestroy_v2
        | Id::cuEventRecord
        | Id::cuEventRecord_ptsz
        | Id::cuStreamQuery
        | Id::cuStreamQuery_ptsz
        | Id::cuStreamSynchronize
        | Id::cuStreamSynchronize_ptsz
        | Id::cuStreamWaitEvent
        | Id::cuStreamWaitEvent_ptsz => Some(SUCCESS),
        _ => Some(NOT_INITIALIZED),
    }
}
