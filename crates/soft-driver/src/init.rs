//! `cuInit`, the driver's version, and the names and texts of errors.

use core::ffi::{CStr, c_char, c_int, c_uint};

use crate::abi::*;
use crate::arg::Ptr;
use crate::device::state::Device;
use crate::device::visible;
use crate::engine::channel;
use crate::errors;
use crate::machine::call_frame::CallFrame;

exports! { $ [init]
    cuInit => init;
    cuDriverGetVersion => driver_get_version;
    cuGetErrorName => get_error_name;
    cuGetErrorString => get_error_string;
}

pub(crate) fn init(call: &CallFrame, flags: c_uint) -> Answer {
    let mut state = call.lock()?;
    if flags != 0 {
        return Err(INVALID_VALUE);
    }
    if state.life.initialised {
        return Ok(());
    }
    if state.config.init_result != 0 {
        return Err(CUresult(state.config.init_result));
    }
    let count = state.config.devices.count as usize;
    let visible = match state.config.devices.visible_from_environment {
        Some(true) => visible::from_environment(count)?,
        _ => (0..count).collect(),
    };
    if visible.is_empty() {
        return Err(NO_DEVICE);
    }
    state.devices = visible.into_iter().map(Device::new).collect();
    state.engine.channels.per_context =
        state.config.connections.unwrap_or_else(channel::from_environment);
    state.life.initialised = true;
    Ok(())
}

pub(crate) fn driver_get_version(call: &CallFrame, version: Ptr<c_int>) -> Answer {
    let state = call.lock()?;
    version.put(state.config.version)
}

pub(crate) fn get_error_name(
    call: &CallFrame,
    error: CUresult,
    text: Ptr<*const c_char>,
) -> Answer {
    error_text(call, error, |entry| entry.0, text)
}

pub(crate) fn get_error_string(
    call: &CallFrame,
    error: CUresult,
    text: Ptr<*const c_char>,
) -> Answer {
    error_text(call, error, |entry| entry.1, text)
}

fn error_text(
    call: &CallFrame,
    error: CUresult,
    text_of: fn((&'static CStr, &'static CStr)) -> &'static CStr,
    text: Ptr<*const c_char>,
) -> Answer {
    let state = call.lock()?;
    let known = errors::since(error) <= state.config.version;
    let found = if known { errors::find(error).map(text_of) } else { None };
    if text.is_null() {
        return Err(state.misuses.undefined(
            call,
            "NULL, which the real driver dereferences",
            INVALID_VALUE,
        ));
    }
    match found {
        Some(found) => text.put(found.as_ptr().cast()),
        None => {
            text.put_if(core::ptr::null());
            Err(INVALID_VALUE)
        }
    }
}
