//! Interprocess memory: handles of device memory, and what other processes open by them.

use core::ffi::c_uint;
use std::sync::Arc;

use crate::abi::*;
use crate::arg::Ptr;
use crate::machine::call_frame::CallFrame;
use crate::machine::{Locked, State};
use crate::memory::{Allocation, Kind, Region};
use crate::processes::shared_memory::{AVAILABLE, Named, import};

/// Peer access is there as soon as it is needed (`CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS`); the one
/// flag that there is.
const LAZY_PEER_ACCESS: c_uint = 1;

fn available(state: &State) -> Answer {
    if state.config.ipc && AVAILABLE { Ok(()) } else { Err(NOT_SUPPORTED) }
}

pub(crate) fn ipc_get_mem_handle(
    call: &CallFrame,
    handle: Ptr<MemHandle>,
    address: CUdeviceptr,
) -> Answer {
    let mut state = call.ready()?;
    handle.required()?;
    available(&state)?;
    state.current(call)?;
    let (region, bytes) = match state.memory.around(address) {
        Some((_, Allocation { kind: Kind::Device, region, bytes, .. })) => (region.clone(), *bytes),
        _ => return Err(INVALID_VALUE),
    };
    // Without them the system has no such files.
    let (Some(backing), Some(arena)) = (&region.backing, &mut state.memory.arena) else {
        return Err(NOT_SUPPORTED);
    };
    let reserved = arena.export(backing, bytes)?.to_bytes();
    state.feed(|feed, _| feed.memory_exported(address));
    handle.put(MemHandle { reserved })
}

pub(crate) fn ipc_open_mem_handle(
    call: &CallFrame,
    address: Ptr<CUdeviceptr>,
    handle: MemHandle,
    flags: c_uint,
) -> Answer {
    let mut state = call.ready()?;
    address.required()?;
    available(&state)?;
    if flags & !LAZY_PEER_ACCESS != 0 {
        return Err(INVALID_VALUE);
    }
    let context = state.current(call)?;
    state.captures.refuse_unsafe(call)?;
    let named = Named::parse(&handle.reserved).ok_or(INVALID_VALUE)?;
    if state.memory.arena.as_ref().is_some_and(|arena| arena.is_of(&named)) {
        return Err(INVALID_CONTEXT);
    }
    // Documented: the same address each time, and as many closes.
    if let Some((there, count)) = state.memory.imported(context, &named) {
        *count += 1;
        return address.put(there);
    }
    // The exporter may be another driver of this process, whose thread needs nothing of this one's
    // state.
    let base = import(&named)?;
    let bytes = named.bytes as usize;
    let region =
        Arc::new(Region { base, bytes, owned: true, backing: None, alias: Default::default() });
    let kind = Kind::Imported(named, 1);
    state
        .memory
        .by_address
        .insert(base as u64, Allocation { region, context, kind, bytes, freeing: false });
    state.feed_allocation(base, bytes, kind);
    address.put(base as u64)
}

pub(crate) fn ipc_close_mem_handle(call: &CallFrame, address: CUdeviceptr) -> Answer {
    let mut state: Locked = call.ready()?;
    state.current(call)?;
    state.captures.refuse_unsafe(call)?;
    match state.memory.by_address.get_mut(&address) {
        Some(Allocation { kind: Kind::Imported(_, count), .. }) if *count > 1 => {
            *count -= 1;
            Ok(())
        }
        Some(Allocation { kind: Kind::Imported(..), .. }) => {
            state.memory.by_address.remove(&address);
            state.feed(|feed, _| feed.free(address));
            Ok(())
        }
        _ => Err(INVALID_VALUE),
    }
}
