//! For numba-cuda and FFmpeg: devices by their bus addresses, the compute capability, access
//! between devices.

use core::ffi::{c_char, c_int, c_uint};

use crate::abi::*;
use crate::arg::{In, Ptr};
use crate::device::check;
use crate::machine::State;
use crate::machine::call_frame::CallFrame;

exports! { $ [device::bus]
    cuDeviceComputeCapability => device_compute_capability;
    cuDeviceCanAccessPeer => device_can_access_peer;
    cuDeviceGetPCIBusId => device_get_pci_bus_id;
    cuDeviceGetByPCIBusId => device_get_by_pci_bus_id;
    cuDeviceGetP2PAttribute => device_get_p2p_attribute;
}

pub(crate) fn device_compute_capability(
    call: &CallFrame,
    major: Ptr<c_int>,
    minor: Ptr<c_int>,
    device: CUdevice,
) -> Answer {
    let state = call.ready()?;
    major.required()?;
    minor.required()?;
    check(&state, device)?;
    major.put(9)?;
    minor.put(0)
}

pub(crate) fn device_can_access_peer(
    call: &CallFrame,
    can: Ptr<c_int>,
    device: CUdevice,
    peer: CUdevice,
) -> Answer {
    let state = call.ready()?;
    can.required()?;
    let (device, peer) = (check(&state, device)?, check(&state, peer)?);
    can.put(i32::from(device != peer))
}

/// What a device can do with another one's memory: how well compared with others, whether at all,
/// with atomic operations, with arrays, and whether with some atomic operations alone.
pub(crate) fn device_get_p2p_attribute(
    call: &CallFrame,
    value: Ptr<c_int>,
    attribute: c_uint,
    device: CUdevice,
    peer: CUdevice,
) -> Answer {
    let state = call.ready()?;
    value.required()?;
    let (device, peer) = (check(&state, device)?, check(&state, peer)?);
    if device == peer {
        return Err(INVALID_DEVICE);
    }
    value.put(match attribute {
        2..=4 => 1,
        1 => 0,
        5 if state.config.version >= 13000 => 0,
        _ => return Err(INVALID_VALUE),
    })
}

fn bus_id(state: &State, device: usize) -> String {
    format!("0000:{:02X}:00.0", state.devices[device].physical() + 1)
}

pub(crate) fn device_get_pci_bus_id(
    call: &CallFrame,
    text: Ptr<c_char>,
    length: c_int,
    device: CUdevice,
) -> Answer {
    let state = call.ready()?;
    let device = check(&state, device)?;
    text.put_text(&bus_id(&state, device), length)
}

pub(crate) fn device_get_by_pci_bus_id(
    call: &CallFrame,
    device: Ptr<CUdevice>,
    text: In<c_char>,
) -> Answer {
    let state = call.ready()?;
    device.required()?;
    text.required()?;
    let wanted = text.text();
    let found = (0..state.devices.len()).find(|device| {
        let id = bus_id(&state, *device);
        wanted.eq_ignore_ascii_case(id.as_bytes())
            || wanted.eq_ignore_ascii_case(&id.as_bytes()[5..])
    });
    device.put(found.ok_or(INVALID_DEVICE)? as CUdevice)
}
