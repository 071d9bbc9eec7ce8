//! Primary contexts: retain, release, reset.

use core::ffi::{c_int, c_uint};

use crate::abi::*;
use crate::arg::Ptr;
use crate::device;
use crate::machine::call_frame::CallFrame;
use crate::machine::places::PLACES;
use crate::machine::{Locked, State};

pub(crate) fn device_primary_ctx_retain(
    call: &CallFrame,
    context: Ptr<CUcontext>,
    device: CUdevice,
) -> Answer {
    let mut state = call.ready()?;
    context.required()?;
    let ordinal = device::check(&state, device)?;
    let primary = state.retain_primary(call, device, ordinal)?;
    state.devices[ordinal].held += 1;
    context.put(state.context_handle(primary))
}

impl State {
    /// One more retain of a device's primary context, which is made if it is not there.
    pub(crate) fn retain_primary(
        &mut self,
        call: &CallFrame,
        device: CUdevice,
        ordinal: usize,
    ) -> Result<u32, CUresult> {
        let flags = self.devices[ordinal].flags;
        let primary = match self.devices[ordinal].primary {
            Some(primary) => {
                if let Some(code) = self.engine.failure(primary) {
                    // Measured: after a trapped kernel only a new process recovers.
                    return Err(code);
                }
                if !self.contexts[primary].alive {
                    let id = self.next_id();
                    let entry = &mut self.contexts[primary];
                    (entry.alive, entry.id, entry.flags) = (true, id, flags);
                    self.engine.revive_context(primary);
                }
                primary
            }
            None => {
                let primary = self.new_context(call, device, flags, true)?;
                self.devices[ordinal].primary = Some(primary);
                primary
            }
        };
        self.devices[ordinal].retained += 1;
        Ok(primary)
    }
}

/// The program has given back a primary context, whatever the call returns. It does so once.
pub(crate) fn released(call: &CallFrame, device: usize, all: bool) {
    let mut state = call.machine.lock();
    if state.epoch != call.epoch || !state.taken {
        drop(state);
        PLACES.released(call.machine.slot, device, all);
    } else if let Some(device) = state.devices.get_mut(device) {
        device.held = if all { 0 } else { device.held.saturating_sub(1) };
    }
}

/// Ends a primary context without retains: after the last release, or at a `reset`.
pub(crate) fn reset_primary(
    call: &CallFrame,
    state: Locked,
    ordinal: usize,
    reset: bool,
) -> Answer {
    let Some(primary) =
        state.devices[ordinal].primary.filter(|primary| state.contexts[*primary].alive)
    else {
        return Ok(());
    };
    let mut state = call.machine.drain(state, primary)?;
    if state.contexts[primary].alive && state.devices[ordinal].retained == 0 {
        state.tear_down(call, primary, reset);
    }
    Ok(())
}

pub(crate) fn device_primary_ctx_release(call: &CallFrame, device: CUdevice) -> Answer {
    released(call, device as usize, false);
    let mut state = call.ready()?;
    let ordinal = device::check(&state, device)?;
    let entry = &mut state.devices[ordinal];
    if entry.retained == 0 {
        return Err(INVALID_CONTEXT);
    }
    entry.retained -= 1;
    if entry.retained > 0 { Ok(()) } else { reset_primary(call, state, ordinal, false) }
}

pub(crate) fn device_primary_ctx_get_state(
    call: &CallFrame,
    device: CUdevice,
    flags: Ptr<c_uint>,
    active: Ptr<c_int>,
) -> Answer {
    let state = call.ready()?;
    let ordinal = device::check(&state, device)?;
    flags.put(state.devices[ordinal].flags)?;
    active.put(i32::from(state.devices[ordinal].retained > 0))
}
