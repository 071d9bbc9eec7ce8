//! For cudarc and cuda.core: prefetching of managed memory and advice on it, which change nothing
//! that a program could see.

use core::ffi::{c_int, c_uint};

use crate::abi::*;
use crate::arg::StreamArg;
use crate::device;
use crate::machine::State;
use crate::machine::call_frame::CallFrame;

exports! { $ [allocation::advice]
    cuMemPrefetchAsync, cuMemPrefetchAsync_ptsz => mem_prefetch_async;
    cuMemPrefetchAsync_v2, cuMemPrefetchAsync_v2_ptsz => mem_prefetch_async_v2;
    cuMemAdvise => mem_advise;
    cuMemAdvise_v2 => mem_advise_v2;
}

/// The host, where a device is wanted (`CU_DEVICE_CPU`).
const HOST: c_int = -1;

/// Where managed memory is to be: on a device, or on the host.
fn check_goal(state: &State, location: CUmemLocation) -> Answer {
    match location.type_ {
        CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE => {
            device::check(state, location.id).map(drop)
        }
        CUmemLocationType(2..=4) => Ok(()),
        _ => Err(INVALID_VALUE),
    }
}

/// The location of the older forms, which name a device or the host.
fn location(device: CUdevice) -> CUmemLocation {
    let type_ = match device {
        HOST => CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST,
        _ => CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
    };
    CUmemLocation { type_, id: device }
}

pub(crate) fn mem_prefetch_async_v2(
    call: &CallFrame,
    address: CUdeviceptr,
    bytes: usize,
    goal: CUmemLocation,
    flags: c_uint,
    stream: StreamArg,
) -> Answer {
    let mut state = call.ready()?;
    if flags != 0 || bytes == 0 {
        return Err(INVALID_VALUE);
    }
    check_goal(&state, goal)?;
    let stream = state.stream(call, stream)?;
    state.memory.addresses.managed(address, bytes)?;
    if state.captures.is_capturing(stream) {
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
    goal: CUmemLocation,
) -> Answer {
    let mut state = call.ready()?;
    if !(1..=6).contains(&advice) || bytes == 0 {
        return Err(INVALID_VALUE);
    }
    // Those about reading are of no place, and a device that there is not is as good as one.
    if advice > 2 {
        check_goal(&state, goal)?;
    } else if !matches!(goal.type_, CUmemLocationType(1..=4)) {
        return Err(INVALID_VALUE);
    }
    state.current(call)?;
    state.captures.refuse_unsafe()?;
    state.memory.addresses.managed(address, bytes).map(drop)
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
