//! The answers of special times: in a forked child, in a host function, after the end of the
//! driver.

use crate::abi::*;
use crate::context::primary::released;
use crate::front::export::base;
use crate::machine::call_frame::{CallFrame, Words};
use crate::machine::config::Rules;
use crate::machine::switches::{FORKED, PRETEND_FORKED, SHUT_DOWN};

/// The result of a call after the end of the driver, in a forked child, or in a host function.
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
    let refused = || {
        let strict = call.machine.lock().config.rules == Rules::Strict;
        strict || refused_in_host_function(base(call.name()))
    };
    (call.in_host_function() && refused()).then_some(NOT_PERMITTED)
}

/// What a host function may not call, as measured on the real driver; its contract forbids every
/// call.
pub(crate) fn refused_in_host_function(base: &str) -> bool {
    matches!(
        base,
        "cuCtxGetCurrent"
            | "cuCtxSetCurrent"
            | "cuCtxPushCurrent"
            | "cuCtxPopCurrent"
            | "cuDevicePrimaryCtxRetain"
            | "cuCtxSynchronize"
            | "cuDeviceGet"
            | "cuDeviceGetCount"
            | "cuEventCreate"
            | "cuStreamCreate"
            | "cuStreamCreateWithPriority"
            | "cuIpcGetEventHandle"
    )
}

/// What asks about nothing that other calls change, so that it works before `cuInit` and in a
/// forked child.
fn asks_about_no_state(base: &str) -> bool {
    matches!(
        base,
        "cuDriverGetVersion" | "cuGetErrorName" | "cuGetErrorString" | "cuGetProcAddress"
    )
}

/// Notes what the program gives back with a call that does no work.
pub(crate) fn given_back(call: &CallFrame, words: &Words) {
    let base = base(call.name());
    if base.starts_with("cuDevicePrimaryCtxRe") && base != "cuDevicePrimaryCtxRetain" {
        released(call, words.0[0] as usize, base.ends_with("Reset"));
    } else if ["Destroy", "MemFree", "Unregister"].iter().any(|verb| base.contains(verb))
        && let Ok(mut state) = call.lock()
    {
        state.misuses.losses.give_up(words.0[0]);
    }
}

/// What a child of `fork` answers on a driver that its parent initialised.
pub(crate) fn forked_answer(call: &CallFrame, words: &Words) -> Option<CUresult> {
    match base(call.name()) {
        base if asks_about_no_state(base) => None,
        "cuStreamDestroy" => {
            let stream = words.0[0];
            let what = format!(
                "stream {stream:#x} is destroyed in a forked child, where the real driver crashes"
            );
            Some(call.machine.lock().misuses.undefined(call, &what, NOT_INITIALIZED))
        }
        "cuEventQuery"
        | "cuEventSynchronize"
        | "cuEventDestroy"
        | "cuEventRecord"
        | "cuStreamQuery"
        | "cuStreamSynchronize"
        | "cuStreamWaitEvent" => Some(SUCCESS),
        _ => Some(NOT_INITIALIZED),
    }
}
