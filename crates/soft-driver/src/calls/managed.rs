//! What a program says of managed memory: who uses it next. In software it is where everybody can
//! use it, so that nothing moves.

use core::ffi::{c_int, c_uint};

use crate::abi::*;
use crate::arg::StreamArg;
use crate::device;
use crate::memory::Kind;
use crate::model::call_frame::CallFrame;
use crate::model::machine::State;

/// The host, where a device is wanted (`CU_DEVICE_CPU`).
const HOST: c_int = -1;

impl State {
    /// Where managed memory begins that has a whole range.
    fn managed(&self, address: u64, bytes: usize) -> Result<u64, CUresult> {
        let (base, allocation) = self.memory.around(address).ok_or(INVALID_VALUE)?;
        if allocation.kind != Kind::Managed || self.memory.within(address, bytes).is_none() {
            return Err(INVALID_VALUE);
        }
        Ok(base)
    }

    /// Where managed memory is to be: on a device, or on the host.
    fn check_goal(&self, location: Location) -> Answer {
        match location.kind {
            1 => device::check(self, location.id).map(drop),
            2..=4 => Ok(()),
            _ => Err(INVALID_VALUE),
        }
    }
}

/// The location of the older forms, which name a device or the host.
fn location(device: CUdevice) -> Location {
    Location { kind: if device == HOST { 2 } else { 1 }, id: device }
}

pub(crate) fn mem_prefetch_async_v2(
    call: &CallFrame,
    address: CUdeviceptr,
    bytes: usize,
    goal: Location,
    flags: c_uint,
    stream: StreamArg,
) -> Answer {
    let mut state = call.ready()?;
    if flags != 0 || bytes == 0 {
        return Err(INVALID_VALUE);
    }
    state.check_goal(goal)?;
    let stream = state.stream(call, stream)?;
    state.managed(address, bytes)?;
    if state.streams[stream].capture.is_some() {
        return Err(NOT_SUPPORTED);
    }
    Ok(())
}

pub(crate) fn mem_prefetch_async(
    call: &CallFrame,
    address: CUdeviceptr,
    bytes: usize,
    device: CUdevice,
    stream: StreamArg,
) -> Answer {
    mem_prefetch_async_v2(call, address, bytes, location(device), 0, stream)
}

/// From reading mostly (1) to who does not access it (6).
pub(crate) fn mem_advise_v2(
    call: &CallFrame,
    address: CUdeviceptr,
    bytes: usize,
    advice: c_uint,
    goal: Location,
) -> Answer {
    let state = call.ready()?;
    if !(1..=6).contains(&advice) || bytes == 0 {
        return Err(INVALID_VALUE);
    }
    // Those about reading are of no place.
    if advice > 2 {
        state.check_goal(goal)?;
    }
    state.managed(address, bytes).map(drop)
}

pub(crate) fn mem_advise(
    call: &CallFrame,
    address: CUdeviceptr,
    bytes: usize,
    advice: c_uint,
    device: CUdevice,
) -> Answer {
    mem_advise_v2(call, address, bytes, advice, location(device))
}

/// Documented: the whole of it, to every stream (1), to none (2) or to one that is no default one
/// (4).
pub(crate) fn stream_attach_mem_async(
    call: &CallFrame,
    stream: StreamArg,
    address: CUdeviceptr,
    bytes: usize,
    flags: c_uint,
) -> Answer {
    let mut state = call.ready()?;
    if !matches!(flags, 1 | 2 | 4) || (flags == 4 && stream.addr() <= 2) {
        return Err(INVALID_VALUE);
    }
    let stream = state.stream(call, stream)?;
    let base = state.managed(address, 1)?;
    let whole = state.memory.0.get(&base).map_or(0, |allocation| allocation.bytes);
    if base != address || (bytes != 0 && bytes != whole) {
        return Err(INVALID_VALUE);
    }
    if state.streams[stream].capture.is_some() {
        return Err(NOT_SUPPORTED);
    }
    Ok(())
}
