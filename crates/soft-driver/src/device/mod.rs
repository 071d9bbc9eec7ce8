//! Devices: which there are, what they are asked, and their entry points.

use core::ffi::{c_char, c_int, c_uint};

use crate::abi::*;
use crate::arg::Ptr;
use crate::machine::State;
use crate::machine::call_frame::CallFrame;
use crate::processes;

exports! { $ [device]
    cuDeviceGet => device_get;
    cuDeviceGetCount => device_get_count;
    cuDeviceGetName => device_get_name;
    cuDeviceGetAttribute => device_get_attribute;
    cuDeviceTotalMem_v2 => device_total_mem;
    cuDeviceGetUuid => device_get_uuid;
    cuDeviceGetUuid_v2 => device_get_uuid;
    cuDeviceGetLuid => device_get_luid;
}

pub(crate) mod attributes;
pub(crate) mod bus;
pub(crate) mod state;
pub(crate) mod visible;

/// The multiprocessors of a device, as an H200 has them.
pub(crate) const MULTIPROCESSORS: u32 = 132;

/// The name of every device, from `cuDeviceGetName`.
pub const DEVICE_NAME: &str = "CUDA software driver (no GPU)";

/// The ordinal, if there is such a device.
pub(crate) fn check(state: &State, device: CUdevice) -> Result<usize, CUresult> {
    usize::try_from(device)
        .ok()
        .filter(|ordinal| *ordinal < state.devices.len())
        .ok_or(INVALID_DEVICE)
}

pub(crate) fn device_get(call: &CallFrame, device: Ptr<CUdevice>, ordinal: c_int) -> Answer {
    let state = call.ready()?;
    device.required()?;
    check(&state, ordinal)?;
    device.put(ordinal)
}

pub(crate) fn device_get_count(call: &CallFrame, count: Ptr<c_int>) -> Answer {
    let state = call.ready()?;
    count.put(state.devices.len() as c_int)
}

pub(crate) fn device_get_name(
    call: &CallFrame,
    name: Ptr<c_char>,
    length: c_int,
    device: CUdevice,
) -> Answer {
    let state = call.ready()?;
    check(&state, device)?;
    name.put_text(DEVICE_NAME, length)
}

/// The same device has the same UUID in every process, as a real one has.
pub(crate) fn device_get_uuid(call: &CallFrame, uuid: Ptr<CUuuid>, device: CUdevice) -> Answer {
    let state = call.ready()?;
    let device = check(&state, device)?;
    uuid.put(CUuuid { bytes: visible::uuid(state.devices[device].physical()) })
}

/// What Windows knows the device by. A system without such names has none.
pub(crate) fn device_get_luid(
    call: &CallFrame,
    luid: Ptr<c_char>,
    node_mask: Ptr<c_uint>,
    device: CUdevice,
) -> Answer {
    let state = call.ready()?;
    let device = check(&state, device)?;
    if !cfg!(windows) {
        return Err(NOT_SUPPORTED);
    }
    luid.required()?;
    let uuid = visible::uuid(state.devices[device].physical());
    for (index, byte) in uuid.into_iter().take(8).enumerate() {
        luid.put_at(index, byte as c_char);
    }
    node_mask.put(1)
}

pub(crate) fn device_total_mem(call: &CallFrame, bytes: Ptr<usize>, device: CUdevice) -> Answer {
    let state = call.ready()?;
    check(&state, device)?;
    bytes.put(state.config.devices.memory as usize)
}

/// A card's value, or another one where a device of this driver differs.
fn attribute_value(state: &State, attribute: u32, device: usize) -> i32 {
    match attribute {
        16 => MULTIPROCESSORS as i32,
        33 => 1 + state.devices[device].physical() as i32, // PCI bus
        // Handles of pools for other processes, and interprocess events.
        103 | 119 | 125 if !(state.config.ipc && processes::AVAILABLE) => 0,
        // What would send a program to calls that this driver does not have: virtual memory, of
        // the device and of the host, other devices that read its memory, multicast.
        102 | 110 | 116 | 117 | 124 | 128 | 132 | 141 | 142 | 144 | 145 => 0,
        _ => attributes::value(attribute),
    }
}

pub(crate) fn device_get_attribute(
    call: &CallFrame,
    value: Ptr<c_int>,
    attribute: CUdevice_attribute,
    device: CUdevice,
) -> Answer {
    let state = call.ready()?;
    value.required()?;
    if attribute.0 == 0 || attribute.0 > attributes::last_known(state.config.version) {
        return Err(INVALID_VALUE);
    }
    let device = check(&state, device)?;
    value.put(attribute_value(&state, attribute.0, device))
}
