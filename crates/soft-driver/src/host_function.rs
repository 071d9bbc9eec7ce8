//! Host functions and callbacks in a stream, and the data that is handed back to them.

use core::ffi::{c_uint, c_void};

use crate::abi::*;
use crate::arg::{Memory, Ptr, StreamArg};
use crate::engine::work::Task;
use crate::machine::call_frame::CallFrame;

/// The program's function behind a pointer argument that is only handed back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UserData(pub(crate) *mut c_void);

// SAFETY: never dereferenced here; the program gave it for another thread to get.
unsafe impl Send for UserData {}

/// A function of the program, to be called in stream order.
#[derive(Clone, Copy, Debug)]
pub(crate) enum HostCall {
    Function(unsafe extern "C" fn(*mut c_void), UserData),
    Callback(unsafe extern "C" fn(CUstream, CUresult, *mut c_void), u64, UserData),
}

/// What destroys a user object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Destroy(pub(crate) unsafe extern "C" fn(*mut c_void), pub(crate) UserData);

pub(crate) fn launch_host_func(
    call: &CallFrame,
    stream: StreamArg,
    host_fn: CUhostFn,
    user_data: Memory,
) -> Answer {
    let mut state = call.ready()?;
    let function = host_fn.ok_or(INVALID_VALUE)?;
    let stream = state.stream(call, stream)?;
    let host = HostCall::Function(function, UserData(user_data.raw()));
    if state.captured_host(stream, host)? {
        return Ok(());
    }
    state.ensure_host_thread(call.machine)?;
    state.submit(call.machine, stream, Task::Host(host));
    Ok(())
}

pub(crate) fn launch_host_func_v2(
    call: &CallFrame,
    stream: StreamArg,
    host_fn: CUhostFn,
    user_data: Memory,
    sync_mode: c_uint,
) -> Answer {
    if sync_mode > CU_HOST_TASK_SPINWAIT {
        return call.refuse(INVALID_VALUE);
    }
    launch_host_func(call, stream, host_fn, user_data)
}

pub(crate) fn stream_add_callback(
    call: &CallFrame,
    stream: StreamArg,
    callback: CUstreamCallback,
    user_data: Ptr<c_void>,
    flags: c_uint,
) -> Answer {
    let mut state = call.ready()?;
    let function = callback.ok_or(INVALID_VALUE)?;
    if flags != 0 {
        return Err(INVALID_VALUE);
    }
    let index = state.stream(call, stream)?;
    state.refuse_in_capture(index)?;
    state.ensure_host_thread(call.machine)?;
    let host = HostCall::Callback(function, stream.addr(), UserData(user_data.raw()));
    state.submit(call.machine, index, Task::Host(host));
    Ok(())
}
