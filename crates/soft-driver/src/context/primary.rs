//! Primary contexts: retain, release, reset.

use core::ffi::{c_int, c_uint};

use crate::abi::*;
use crate::arg::Ptr;
use crate::context;
use crate::device;
use crate::machine::call_frame::CallFrame;
use crate::machine::places::PLACES;
use crate::machine::{Locked, State};

exports! { $ [context::primary]
    cuDevicePrimaryCtxRetain => device_primary_ctx_retain;
    cuDevicePrimaryCtxRelease_v2 => device_primary_ctx_release;
    cuDevicePrimaryCtxGetState => device_primary_ctx_get_state;
    cuDevicePrimaryCtxRelease => device_primary_ctx_release;
}

pub(crate) fn device_primary_ctx_retain(
    call: &CallFrame,
    context: Ptr<CUcontext>,
    device: CUdevice,
) -> Answer {
    let mut state = call.ready()?;
    context.required()?;
    let ordinal = device::check(&state, device)?;
    let primary = retain_primary(&mut state, call, device, ordinal)?;
    state.devices[ordinal].owe();
    context.put(state.context_handle(primary))
}

/// One more retain of a device's primary context, which is made if it is not there.
pub(crate) fn retain_primary(
    state: &mut State,
    call: &CallFrame,
    device: CUdevice,
    ordinal: usize,
) -> Result<u32, CUresult> {
    let primary = match state.devices[ordinal].primary() {
        (Some(primary), flags) => {
            if let Some(code) = state.engine.contexts.failure(primary) {
                // Measured: after a trapped kernel only a new process recovers.
                return Err(code);
            }
            if !state.contexts[primary].alive {
                let id = state.life.next_id();
                let entry = &mut state.contexts[primary];
                (entry.alive, entry.id, entry.flags) = (true, id, flags);
                state.engine.contexts.revive(primary);
            }
            primary
        }
        (None, flags) => state.new_context(call, device, flags, true)?,
    };
    state.devices[ordinal].retain(primary);
    Ok(primary)
}

/// The program has given back a primary context, whatever the call returns. It does so once.
pub(crate) fn released(call: &CallFrame, device: usize, all: bool) {
    let mut state = call.machine.lock();
    if state.life.epoch != call.epoch || !state.life.taken {
        drop(state);
        PLACES.released(call.machine.slot, device, all);
    } else if let Some(device) = state.devices.get_mut(device) {
        device.given_back(all);
    }
}

/// Ends a primary context without retains: after the last release, or at a `reset`.
pub(crate) fn reset_primary(
    call: &CallFrame,
    state: Locked,
    ordinal: usize,
    reset: bool,
) -> Answer {
    let (primary, _) = state.devices[ordinal].primary();
    let Some(primary) = primary.filter(|primary| state.contexts[*primary].alive) else {
        return Ok(());
    };
    let mut state = call.machine.drain(state, primary)?;
    if state.contexts[primary].alive && state.devices[ordinal].retains() == 0 {
        context::tear_down(&mut state, call, primary, reset);
    }
    Ok(())
}

pub(crate) fn device_primary_ctx_release(call: &CallFrame, device: CUdevice) -> Answer {
    released(call, device as usize, false);
    let mut state = call.ready()?;
    let ordinal = device::check(&state, device)?;
    let last = state.devices[ordinal].release()?;
    if last { reset_primary(call, state, ordinal, false) } else { Ok(()) }
}

pub(crate) fn device_primary_ctx_get_state(
    call: &CallFrame,
    device: CUdevice,
    flags: Ptr<c_uint>,
    active: Ptr<c_int>,
) -> Answer {
    let state = call.ready()?;
    flags.required()?;
    active.required()?;
    let ordinal = device::check(&state, device)?;
    let entry = &state.devices[ordinal];
    flags.put(entry.primary().1)?;
    active.put(i32::from(entry.retains() > 0))
}
