//! Interprocess memory: handles of device memory, and what other processes open by them.

use core::ffi::c_uint;

use crate::abi::*;
use crate::allocation;
use crate::arg::Ptr;
use crate::context::all_streams::after_work_of;
use crate::machine::State;
use crate::machine::call_frame::CallFrame;
use crate::memory::{Kind, Region};
use crate::processes::shared_memory::{AVAILABLE, Named, import};

exports! { $ [ipc::memory]
    cuIpcGetMemHandle => ipc_get_mem_handle;
    cuIpcOpenMemHandle_v2 => ipc_open_mem_handle;
    cuIpcCloseMemHandle => ipc_close_mem_handle;
    cuIpcOpenMemHandle => ipc_open_mem_handle;
}

fn available(state: &State) -> Answer {
    if state.config.ipc && AVAILABLE { Ok(()) } else { Err(NOT_SUPPORTED) }
}

pub(crate) fn ipc_get_mem_handle(
    call: &CallFrame,
    handle: Ptr<CUipcMemHandle>,
    address: CUdeviceptr,
) -> Answer {
    let mut state = call.ready()?;
    handle.required()?;
    available(&state)?;
    state.current(call)?;
    let reserved = state.memory.export(address)?.to_bytes();
    state.feed(|feed, _| feed.memory_exported(address));
    handle.put(CUipcMemHandle { reserved })
}

pub(crate) fn ipc_open_mem_handle(
    call: &CallFrame,
    address: Ptr<CUdeviceptr>,
    handle: CUipcMemHandle,
    flags: c_uint,
) -> Answer {
    let mut state = call.ready()?;
    address.required()?;
    available(&state)?;
    // Peer access is there as soon as it is needed: the one flag that there is.
    if flags & !CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS != 0 {
        return Err(INVALID_VALUE);
    }
    let context = state.current(call)?;
    let named = Named::parse(&handle.reserved).ok_or(INVALID_VALUE)?;
    if state.memory.exports(&named) {
        return Err(INVALID_CONTEXT);
    }
    // Documented: the same address each time, and as many closes.
    if let Some(there) = state.memory.open_again(context, &named) {
        return address.put(there);
    }
    // The exporter may be another driver of this process, whose thread needs nothing of this one's
    // state.
    let base = import(&named)?;
    let bytes = named.bytes as usize;
    let region = Region::new(base, bytes, true, None);
    let owner = allocation::owner(&state, context);
    let State { memory, feed, .. } = &mut *state;
    let kind = Kind::Imported(named, 1);
    address.put(memory.add(feed.as_deref_mut(), owner, region, bytes, kind))
}

pub(crate) fn ipc_close_mem_handle(call: &CallFrame, address: CUdeviceptr) -> Answer {
    let mut state = call.ready()?;
    state.current(call)?;
    // As a card did, for a stream that waited for a value.
    if let Some(device) = state.memory.opened_on(address) {
        state = after_work_of(call, state, device)?;
    }
    let State { memory, feed, .. } = &mut *state;
    memory.close(feed.as_deref_mut(), address)
}
