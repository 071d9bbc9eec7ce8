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
    state.devices[ordinal].owe();
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
        let primary = match self.devices[ordinal].primary() {
            (Some(primary), flags) => {
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
            (None, flags) => self.new_context(call, device, flags, true)?,
        };
        self.devices[ordinal].retain(primary);
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
        state.tear_down(call, primary, reset);
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
    let ordinal = device::check(&state, device)?;
    let of = &state.devices[ordinal];
    flags.put(of.primary().1)?;
    active.put(i32::from(of.retains() > 0))
}
