//! Limits and cache settings of a context: nothing in software depends on them, and the program can
//! read them back.

use core::ffi::c_uint;

use crate::abi::*;
use crate::arg::Ptr;
use crate::model::call_frame::CallFrame;
use crate::model::context::LIMITS;

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
    state.contexts[context].settings.limits[limit] = value;
    Ok(())
}

/// Both configurations are one of four.
fn check_config(config: u32) -> Answer {
    if config > 3 { Err(INVALID_VALUE) } else { Ok(()) }
}

pub(crate) fn ctx_get_cache_config(call: &CallFrame, config: Ptr<c_uint>) -> Answer {
    let state = call.ready()?;
    let context = state.current(call)?;
    config.put(state.contexts[context].settings.cache)
}

pub(crate) fn ctx_set_cache_config(call: &CallFrame, config: c_uint) -> Answer {
    let mut state = call.ready()?;
    check_config(config)?;
    let context = state.current(call)?;
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
    check_config(config)?;
    let context = state.current(call)?;
    state.contexts[context].settings.shared_memory = config;
    Ok(())
}

pub(crate) fn ctx_reset_persisting_l2_cache(call: &CallFrame) -> Answer {
    let state = call.ready()?;
    state.current(call)?;
    Ok(())
}
