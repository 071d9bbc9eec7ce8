//! For cudarc (limits, flags), FFmpeg (limits, primary contexts), numba-cuda and cuda.core (access
//! between devices): settings of contexts, and older ways to create them.

use core::ffi::{c_int, c_uint};

use crate::abi::*;
use crate::allocation;
use crate::arg::{ContextArg, Ptr};
use crate::context::all_streams::after_work_of;
use crate::context::primary::{released, reset_primary};
use crate::context::state::LIMITS;
use crate::context::{check_flags, ctx_create, ctx_destroy};
use crate::device;
use crate::machine::call_frame::CallFrame;

exports! { $ [context::settings]
    cuDevicePrimaryCtxReset => device_primary_ctx_reset;
    cuDevicePrimaryCtxReset_v2 => device_primary_ctx_reset;
    cuDevicePrimaryCtxSetFlags => device_primary_ctx_set_flags;
    cuDevicePrimaryCtxSetFlags_v2 => device_primary_ctx_set_flags;
    cuCtxCreate_v3 => ctx_create_v3;
    cuCtxAttach => ctx_attach;
    cuCtxDetach => ctx_detach;
    cuCtxSetFlags => ctx_set_flags;
    cuCtxGetApiVersion => ctx_get_api_version;
    cuCtxGetLimit => ctx_get_limit;
    cuCtxSetLimit => ctx_set_limit;
    cuCtxGetCacheConfig => ctx_get_cache_config;
    cuCtxSetCacheConfig => ctx_set_cache_config;
    cuCtxGetSharedMemConfig => ctx_get_shared_mem_config;
    cuCtxSetSharedMemConfig => ctx_set_shared_mem_config;
    cuCtxResetPersistingL2Cache => ctx_reset_persisting_l2_cache;
    cuCtxEnablePeerAccess => ctx_enable_peer_access;
    cuCtxDisablePeerAccess => ctx_disable_peer_access;
}

/// Limits that the driver knows, but this one does not.
const KNOWN_LIMITS: u32 = 10;

fn check(limit: u32) -> Result<usize, CUresult> {
    match limit as usize {
        limit if limit < LIMITS => Ok(limit),
        _ if limit < KNOWN_LIMITS => Err(CUresult::CUDA_ERROR_UNSUPPORTED_LIMIT),
        _ => Err(INVALID_VALUE),
    }
}

pub(crate) fn ctx_get_limit(call: &CallFrame, value: Ptr<usize>, limit: c_uint) -> Answer {
    let state = call.ready()?;
    value.required()?;
    let limit = check(limit)?;
    let context = state.current(call)?;
    value.put(state.contexts[context].settings.limits[limit])
}

pub(crate) fn ctx_set_limit(call: &CallFrame, limit: c_uint, value: usize) -> Answer {
    let mut state = call.ready()?;
    let limit = check(limit)?;
    let context = state.current(call)?;
    state.captures.refuse_unsafe()?;
    // Measured: memory for stacks, once it changes.
    if limit == 0 && state.contexts[context].settings.limits[limit] != value {
        let device = allocation::owner(&state, context).device;
        state = after_work_of(call, state, device)?;
    }
    state.contexts[context].settings.limits[limit] = value;
    Ok(())
}

/// Configurations of the cache are one of four, and those of shared memory one of three.
fn check_config(config: u32, last: u32) -> Answer {
    if config > last { Err(INVALID_VALUE) } else { Ok(()) }
}

pub(crate) fn ctx_get_cache_config(call: &CallFrame, config: Ptr<c_uint>) -> Answer {
    let state = call.ready()?;
    let context = state.current(call)?;
    config.put(state.contexts[context].settings.cache)
}

pub(crate) fn ctx_set_cache_config(call: &CallFrame, config: c_uint) -> Answer {
    let mut state = call.ready()?;
    check_config(config, 3)?;
    let context = state.current(call)?;
    state.captures.refuse_unsafe()?;
    state.contexts[context].settings.cache = config;
    Ok(())
}

pub(crate) fn ctx_get_shared_mem_config(call: &CallFrame, config: Ptr<c_uint>) -> Answer {
    let state = call.ready()?;
    let context = state.current(call)?;
    config.put(state.contexts[context].settings.shared_memory)
}

pub(crate) fn ctx_set_shared_mem_config(call: &CallFrame, config: c_uint) -> Answer {
    let mut state = call.ready()?;
    check_config(config, 2)?;
    let context = state.current(call)?;
    state.captures.refuse_unsafe()?;
    state.contexts[context].settings.shared_memory = config;
    Ok(())
}

pub(crate) fn ctx_reset_persisting_l2_cache(call: &CallFrame) -> Answer {
    let state = call.ready()?;
    state.current(call)?;
    Ok(())
}

pub(crate) fn ctx_create_v3(
    call: &CallFrame,
    context: Ptr<CUcontext>,
    _params: Ptr<CUexecAffinityParam>,
    count: c_int,
    flags: c_uint,
    device: CUdevice,
) -> Answer {
    if count != 0 {
        return call.refuse(CUresult::CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY);
    }
    ctx_create(call, context, flags, device)
}

/// One more use of the current context.
pub(crate) fn ctx_attach(call: &CallFrame, context: Ptr<CUcontext>, flags: c_uint) -> Answer {
    let mut state = call.ready()?;
    context.required()?;
    if flags != 0 {
        return Err(INVALID_VALUE);
    }
    let current = state.current(call)?;
    state.contexts[current].uses += 1;
    context.put(state.context_handle(current))
}

/// One use less. Documented: the context is current in the calling thread, and the last use
/// destroys it. A primary context is kept by its retains, and lives on.
pub(crate) fn ctx_detach(call: &CallFrame, context: ContextArg) -> Answer {
    let mut state = call.ready()?;
    if context.is_null() {
        return Err(INVALID_CONTEXT);
    }
    let index = state.context(call, context)?;
    if state.top(call) != Some(index) || state.contexts[index].uses == 0 {
        return Err(INVALID_CONTEXT);
    }
    let entry = &mut state.contexts[index];
    if entry.uses > 1 || entry.primary {
        entry.uses -= 1;
        return Ok(());
    }
    drop(state);
    ctx_destroy(call, context)
}

pub(crate) fn ctx_set_flags(call: &CallFrame, flags: c_uint) -> Answer {
    let mut state = call.ready()?;
    check_flags(flags)?;
    let context = state.current(call)?;
    state.contexts[context].flags = flags;
    Ok(())
}

pub(crate) fn ctx_get_api_version(
    call: &CallFrame,
    context: ContextArg,
    version: Ptr<c_uint>,
) -> Answer {
    let state = call.ready()?;
    version.required()?;
    if context.is_null() {
        state.current(call)?;
    } else {
        state.context(call, context)?;
    }
    version.put(3020)
}

pub(crate) fn ctx_enable_peer_access(call: &CallFrame, peer: ContextArg, flags: c_uint) -> Answer {
    let mut state = call.ready()?;
    let current = state.current(call)?;
    if flags != 0 {
        return Err(INVALID_VALUE);
    }
    let peer =
        if peer.is_null() { return Err(INVALID_CONTEXT) } else { state.context(call, peer)? };
    // Measured: also the current context itself, for which INVALID_CONTEXT is documented.
    if state.contexts[peer].device == state.contexts[current].device {
        return Err(CUresult::CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
    }
    match state.contexts[current].settings.peers.insert(peer) {
        true => Ok(()),
        false => Err(CUresult::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED),
    }
}

pub(crate) fn ctx_disable_peer_access(call: &CallFrame, peer: ContextArg) -> Answer {
    let mut state = call.ready()?;
    let current = state.current(call)?;
    let peer =
        if peer.is_null() { return Err(INVALID_CONTEXT) } else { state.context(call, peer)? };
    match state.contexts[current].settings.peers.remove(&peer) {
        true => Ok(()),
        false => Err(CUresult::CUDA_ERROR_PEER_ACCESS_NOT_ENABLED),
    }
}

pub(crate) fn device_primary_ctx_reset(call: &CallFrame, device: CUdevice) -> Answer {
    released(call, device as usize, true);
    let mut state = call.ready()?;
    let ordinal = device::check(&state, device)?;
    state.devices[ordinal].reset();
    reset_primary(call, state, ordinal, true)
}

pub(crate) fn device_primary_ctx_set_flags(
    call: &CallFrame,
    device: CUdevice,
    flags: c_uint,
) -> Answer {
    let mut state = call.ready()?;
    let ordinal = device::check(&state, device)?;
    check_flags(flags)?;
    if let Some(primary) = state.devices[ordinal].set_flags(flags) {
        state.contexts[primary].flags = flags;
    }
    Ok(())
}
